"""`gradcli solve` for complex unknowns: roots from a start, all roots of polynomials, their derivatives."""

import cmath

import numpy as np
import pytest

from gradcli.models.equations.roots import solve


def number(value):
    return complex(value["re"], value["im"]) if isinstance(value, dict) else value


def roots_of(run, *words):
    found = run("solve", *words, "--json")
    assert found.status == 0, found.err
    return [
        {
            "z": number(root["point"]["z"]),
            **{key: number(d) for key, d in ((root["derivatives"] or {}).get("z") or {}).items()},
        }
        for root in found.json["roots"]
    ]


def test_a_root_from_a_complex_start(run):
    (root,) = roots_of(run, "exp(z) = w", "z~1+1j", "w=2j")
    assert root["z"] == pytest.approx(cmath.log(2j), rel=1e-14)
    assert root["w"] == pytest.approx(1 / 2j, rel=1e-13)


def test_all_roots_of_a_polynomial_and_their_derivatives(run):
    found = roots_of(run, "z**3 = a", "z~1j", "a=8", "--all", "--order", "2")
    expected = sorted((2 * cmath.exp(2j * cmath.pi * k / 3) for k in range(3)), key=lambda z: (z.real, z.imag))
    for root, z in zip(sorted(found, key=lambda r: (round(r["z"].real, 9), r["z"].imag)), expected, strict=True):
        assert root["z"] == pytest.approx(z, rel=1e-14)
        # z = a**(1/3) on each branch.
        assert root["a"] == pytest.approx(z / 24, rel=1e-13)
        assert root["a,a"] == pytest.approx(-2 * z / (9 * 64), rel=1e-12)


def test_poles_of_a_circuit(run):
    low, high = roots_of(run, "s**2*L*C + s*R*C + 1 = 0".replace("s", "z"), "z~1j", "L=1e-3", "C=1e-6", "R=10", "--all")
    frequency = cmath.sqrt(1 / (1e-3 * 1e-6) - (10 / 2e-3) ** 2)
    assert high["z"] == pytest.approx(-5000 + 1j * frequency, rel=1e-13)
    assert low["z"] == pytest.approx(high["z"].conjugate(), rel=1e-13)


def test_multiple_roots_keep_their_digits(run):
    found = [root["z"] for root in roots_of(run, "(z - 1)**3*(z + 2j)**2 = 0", "z~1j", "--all")]
    np.testing.assert_allclose(found, [-2j, -2j, 1, 1, 1], atol=1e-14)


def test_several_complex_unknowns(run):
    found = run("solve", "z**2 + w = 1; w = 1j*z", "z~1+0.1j", "w~1j", "--json").json["roots"][0]["point"]
    z, w = number(found["z"]), number(found["w"])
    assert abs(z * z + w - 1) < 1e-14
    assert abs(w - 1j * z) < 1e-14


def test_from_python():
    found = solve("z**2 = c", start={"z": 1 + 1j}, c=-4.0)
    assert found.roots[0].point["z"] == pytest.approx(2j, abs=1e-14)
    assert found.roots[0].derivatives["z"]["c"] == pytest.approx(1 / 4j, abs=1e-14)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["z**2 = 1j", "z~1"], "the equations are complex, and their unknowns real"),
        (["exp(z) = 2", "z~1j", "--all"], "all complex roots are those of polynomials, up to the degree 100"),
        (["z**2 = 2", "z~1j", "--digits", "20"], "there are no proved digits of complex roots"),
        (["abs(z) = 1", "z~1j"], "there is 1 equation for 2 unknowns, where a complex one counts as two"),
        (["real(z) = 1; imag(z) = 2", "z~1+1j"], "the equations are of real numbers, and 'z' is complex"),
        (["abs(z)**2 + z = 1+1j", "z~1j"], "not known to be"),
    ],
)
def test_what_cannot_be_solved(run, words, message):
    done = run("solve", *words)
    assert done.status
    assert message in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "y ~ a*exp(1j*x)", "{data}", "a=1"], "a fit takes real numbers"),
        (["explain", "abs(z)**2", "z=1+2j"], "the chain rule is explained for a complex value"),
    ],
)
def test_other_commands_refuse_complex_values(run, tmp_path, words, message):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n1,2\n2,3\n3,5\n4,4\n")
    done = run(*(word.format(data=data) for word in words))
    assert done.status
    assert message in done.err


def test_a_real_value_of_complex_numbers_is_fitted(run, tmp_path):
    """The modulus of an impedance of a resistor beside a capacitor: R/sqrt(1 + (w*R*C)**2)."""
    frequencies = np.logspace(0, 3, 20)
    sizes = np.abs(100 / (1 + 1j * frequencies * 100 * 1e-4))
    data = tmp_path / "spectrum.csv"
    data.write_text("w,z\n" + "".join(f"{w},{z}\n" for w, z in zip(frequencies, sizes)))
    found = run("fit", "z ~ abs(R/(1 + 1j*w*R*C))", str(data), "R=50", "C=1e-3", "--json").json
    assert abs(found["estimates"]["R"]["value"]) == pytest.approx(100, rel=1e-9)
    assert abs(found["estimates"]["C"]["value"]) == pytest.approx(1e-4, rel=1e-9)
