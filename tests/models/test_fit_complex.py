"""Fits of complex responses: both parts of each row are measurements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars
import pytest

from gradcli.models import fit

# The impedance of a Randles circuit, a resistor before a resistor beside a capacitor, with errors that are no random
# numbers.
FREQUENCIES = np.logspace(0, 5, 60)
MEASURED = 10 + 100 / (1 + 1j * FREQUENCIES * 1e-5 * 100)
MEASURED = MEASURED + 0.5 * np.sin(7 * np.arange(60)) + 0.5j * np.cos(11 * np.arange(60))
MODEL = "R0 + R1/(1 + 1j*w*C*R1)"
START = {"R0": 8.0, "R1": 80.0, "C": 2e-5}

# From SciPy, with z, w and sigma as above:
#
#     def residuals(q):
#         r = (q[0] + q[1]/(1 + 1j*w*q[2]*1e-5*q[1]) - z)/sigma
#         return np.concatenate([r.real, r.imag])
#
#     found = least_squares(residuals, [8, 80, 2], xtol=1e-15, ftol=1e-15, gtol=1e-15, jac="3-point")
#     covariance = np.linalg.inv(found.jac.T @ found.jac) * 2*found.cost/(2*60 - 3)
#
# The values and standard errors of R0, R1 and 1e5 C, and 2*found.cost.
EXPECTED = {
    None: (
        (9.994171136, 100.0239982, 0.9997856122),
        (0.07744831, 0.09461244, 0.00271824),
        14.9771997608,
    ),
    "modulus": (
        (9.963593354, 100.0392581, 0.9994709273),
        (0.04694803, 0.2976043, 0.00511714),
        0.0303225367921,
    ),
}


@pytest.fixture
def data(tmp_path):
    """A table with the measurements as pairs of columns and as complex numbers."""
    path = tmp_path / "eis.csv"
    rows = [f"{w!r},{z.real!r},{z.imag!r},{z!r}" for w, z in zip(FREQUENCIES.tolist(), MEASURED.tolist())]
    path.write_text("\n".join(["w,zre,zim,z", *rows]) + "\n")
    return str(path)


def starts():
    return [f"{name}={value}" for name, value in START.items()]


@pytest.mark.parametrize("response", ["complex(zre, zim)", "z", "zre + 1j*zim"])
@pytest.mark.parametrize("sigma", [None, "modulus"])
def test_values_and_standard_errors_are_those_of_stacked_parts(run, data, response, sigma):
    options = [] if sigma is None else ["--sigma", sigma]
    done = run("fit", f"{response} ~ {MODEL}", data, *starts(), *options, "--json")
    assert done.status == 0
    found = done.json
    values, errors, squares = EXPECTED[sigma]
    own = [found["estimates"][name] for name in START]
    np.testing.assert_allclose([e["value"] for e in own], np.multiply(values, [1, 1, 1e-5]), rtol=1e-7)
    np.testing.assert_allclose([e["error"] for e in own], np.multiply(errors, [1, 1, 1e-5]), rtol=1e-5)
    assert found["rss"] == pytest.approx(squares, rel=1e-9)
    assert (found["n"], found["rows"], found["dof"]) == (120, 60, 117)
    assert found["curvature"]["intrinsic"] < 0.1


def test_starts_may_be_left_out(run, data):
    found = run("fit", f"z ~ {MODEL}", data, "--json").json
    assert found["estimates"]["R1"]["value"] == pytest.approx(EXPECTED[None][0][1], rel=1e-7)


def test_the_table_has_rows_and_parts(run, data):
    lines = run("fit", f"z ~ {MODEL}", data, *starts()).out.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith(("rows", "real and imaginary parts"))] == [
        "60",
        "120",
    ]


def test_r2_is_about_the_complex_mean():
    found = fit("z ~ a + 0*w", w=FREQUENCIES, z=MEASURED.real + 3j, a=1.0)
    variation = np.square(np.abs(MEASURED.real - MEASURED.real.mean())).sum()
    assert found.r2 == pytest.approx(1 - found.rss / variation, rel=1e-12)


def test_from_python_with_large_numbers():
    found = fit(f"z ~ {MODEL}", {"w": FREQUENCIES, "z": MEASURED * 1e80}, R0=8e80, R1=80e80, C=2e-85)
    assert found.estimates["R1"].value == pytest.approx(EXPECTED[None][0][1] * 1e80, rel=1e-7)
    assert 0.999 < found.r2 < 1
    assert found.rows == 60


def test_structs_of_a_parquet_file(tmp_path):
    path = tmp_path / "z.parquet"
    numbers = [{"re": z.real, "im": z.imag} for z in MEASURED.tolist()]
    polars.DataFrame({"w": FREQUENCIES, "z": numbers}).write_parquet(path)
    found = fit(f"z ~ {MODEL}", str(path), START)
    assert found.estimates["C"].value == pytest.approx(EXPECTED[None][0][2] * 1e-5, rel=1e-7)


def test_names_that_the_parts_use_may_be_columns():
    w = np.arange(1.0, 9.0)
    z = (2 + 3j) * w + 5 + 0.1j * np.sin(w)
    found = fit("z ~ (a + b*1j)*part + c + 0*real", {"z": z, "part": w, "real": w}, sigma="modulus")
    part = found.estimates
    assert [part[name].value for name in "abc"] == pytest.approx([2, 3, 5], rel=0.02)


@pytest.mark.parametrize(
    "model",
    [
        "part = w; z ~ complex(a*part, b*part)",
        "f = lambda part: complex(a*part, b*part); z ~ f(w)",
        "j = w; z ~ complex(a*j, b*j)",
        "complex(x, y) = x + 2j*y; z ~ complex(a*w, b/2*w)",
        "real(x) = 0; imag(x) = 0; z ~ a*w + 1j*b*w",
    ],
)
def test_names_that_the_parts_use_may_be_those_of_the_model(model):
    w = np.arange(1.0, 9.0)
    found = fit(model, {"z": (2 + 3j) * w, "w": w}).estimates
    assert [found["a"].value, found["b"].value] == pytest.approx([2, 3], rel=1e-12)


def test_a_column_called_modulus_comes_first():
    w = np.arange(1.0, 6.0)
    data = {"w": w, "z": (1 + 2j) * w**2, "modulus": w**4}
    by_column = fit("z ~ a*w", {**data, "s": w**4}, sigma="s")
    assert fit("z ~ a*w", data, sigma="modulus").estimates == by_column.estimates


def test_both_parts_of_a_row_are_sampled_together(data):
    """The jackknife leaves out rows: with 60 fits and the t distribution of 59 degrees of freedom."""
    found = fit(f"z ~ {MODEL}", data, START, jackknife=True, bootstrap=40)
    assert found.jackknife.samples == 60
    assert found.bootstrap.estimates["R1"].error == pytest.approx(found.estimates["R1"].error, rel=0.5)


def test_errors_of_clusters_of_rows_are_those_of_the_sandwich(data):
    found = fit("z ~ a", data, errors="cluster:w")
    residuals = (MEASURED - found.estimates["a"].value).real
    # Only real parts depend on a; each row is a cluster.
    squares = np.square(residuals).sum() / 60**2
    assert found.estimates["a"].error == pytest.approx(np.sqrt(squares * 119 / 119 * 60 / 59), rel=1e-9)
    assert found.clusters == 60


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["z ~ a + 0*w", "--by", "w"], "--by is for real responses"),
        (["z ~ a[w]"], "parameters with levels are for real responses"),
        (["z ~ a*w", "a=1", "--x-sigma", "w=1"], "errors of the predictors are for real responses"),
        (["z ~ a*w", "--errors", "robust"], "takes the two parts of a complex number for independent"),
        (["z ~ a*w", "--residuals", "r.csv"], "no files are written for complex responses"),
        (["z ~ a*w", "--predict", "r.csv"], "no files are written for complex responses"),
        (["z ~ a*w", "--plot", "r.png"], "no files are written for complex responses"),
        (["zre ~ a*w", "--sigma", "modulus"], "--sigma modulus is for complex responses"),
        (["z - z ~ a*w", "--sigma", "modulus"], "the response is 0 in row 1"),
        (["z ~ a*w", "--sigma", "z"], "the column 'z' has complex numbers"),
        (["zre ~ real(a*z)", "a=1"], "the column 'z' has complex numbers"),
        (["z ~ a*w", "--family", "poisson"], "the column 'z' has complex numbers"),
        (["zre ~ a*exp(1j*w)", "a=1"], "a fit takes real numbers"),
        (["1/(z - z) ~ a*w"], "in row 1 of the data: 'divide' gives"),
    ],
)
def test_what_is_refused(run, data, words, message):
    done = run("fit", words[0], data, *words[1:])
    assert done.status
    assert message in done.err


@pytest.mark.parametrize(
    ("model", "place"),
    [
        ("z ~ a + w/(w - w)", "w/(w - w)"),
        ("q = 1j; z ~ a*q*log(-w)", "log(-w)"),
        ("z ~ [a, w]", "[a, w]"),
        ("1/(z - z) ~ a*w", "1/(z - z)"),
        ("[z, z] ~ a*w", "[z, z]"),
    ],
)
def test_errors_show_what_was_written(run, data, model, place):
    lines = run("fit", model, data, "a=1").err.splitlines()
    source, marks = (line.removeprefix("  | ") for line in lines if line.startswith("  | "))
    assert source in (model, place)
    assert source[marks.index("^") : len(marks)] == place


def test_errors_of_the_other_model_show_what_was_written(run, data):
    assert "  | a/(w - w)\n" in run("fit", "z ~ a*w", data, "a=1", "--against", "a/(w - w)").err


@pytest.mark.parametrize(
    "words",
    [("minimize", "sum((a*w - z)**2)", "{data}", "a=1"), ("plot", "w", "w=0..3", "--data", "{data}:w,z")],
)
def test_other_commands_refuse_complex_columns(run, data, words):
    done = run(*(word.format(data=data) for word in words))
    assert done.status
    assert "the column 'z' has complex numbers, and real ones are needed" in done.err


def test_a_real_response_may_read_complex_columns(run, data):
    of_parts = run("fit", "sqrt(zre**2 + zim**2) ~ a + b*log(w)", data, "--json").json
    found = run("fit", "abs(z) ~ a + b*log(w)", data, "--json").json
    assert found["n"] == 60
    assert found["estimates"]["a"]["value"] == pytest.approx(of_parts["estimates"]["a"]["value"], rel=1e-12)


# The impedance of a Randles circuit with 60 points, examples/data/randles.csv, fitted relative to its modulus. From SciPy
# 1.17.1's least_squares with 3-point differences and tolerances of 1e-15, as above; lmfit 1.3.4 and impedance.py 1.7.1
# print the same values and standard errors to 8 and 5, and to 7 and 3 digits.
RANDLES = "w = 2*pi*f; complex(re, im) ~ R0 + 1/(1/(R1 + A*(1 - 1j)/sqrt(w)) + 1j*w*C1)"
OF_RANDLES = {
    "R0": (19.9802290532816, 0.021605840926223183),
    "R1": (150.01268419543516, 0.2199665601832335),
    "C1": (1.9974107771099362e-05, 3.930304461003722e-08),
    "A": (39.79759347265845, 0.32774541189695433),
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("start", [{"R0": 10, "R1": 100, "C1": 1e-5, "A": 10}, {}])
def test_an_impedance_spectrum(run, start):
    data = str(Path(__file__).parents[2] / "examples" / "data" / "randles.csv")
    words = [f"{name}={value}" for name, value in start.items()]
    found = run("fit", RANDLES, data, *words, "--sigma", "modulus", "--json").json
    for name, (value, error) in OF_RANDLES.items():
        assert found["estimates"][name]["value"] == pytest.approx(value, rel=1e-9)
        assert found["estimates"][name]["error"] == pytest.approx(error, rel=1e-8)
    assert found["rss"] == pytest.approx(0.003166687041508218, rel=1e-12)


def test_the_complex_resonator_of_lmfit():
    """lmfit 1.3.4's example "Complex Resonator Model", with NumPy's random numbers of the seed 123 as there; the values
    and standard errors that it prints, which are right to about 7 and 5 digits."""
    f = np.linspace(99.95, 100.05, 100)
    numbers = np.random.RandomState(123)
    s21 = 1 - 10000 / (9000 - 9000j) / (1 + 2j * 10000 * (f - 100) / 100)
    s21 = s21 + 0.02 * (numbers.randn(100) + 1j * numbers.randn(100))
    found = fit(
        "s21 ~ 1 - Q/(Qr + 1j*Qi)/(1 + 2j*Q*(f - f0)/f0)", {"f": f, "s21": s21}, f0=100.0, Q=3000.0, Qr=5000.0, Qi=0.0
    )
    expected = {
        "f0": (100.00009558691049, 7.030803268568283e-05),
        "Q": (10059.497166512447, 142.29463647178372),
        "Qr": (9180.6201736431, 133.7776810681972),
        "Qi": (-9137.03666728445, 133.76969205361695),
    }
    for name, (value, error) in expected.items():
        assert found.estimates[name].value == pytest.approx(value, rel=3e-7)
        assert found.estimates[name].error == pytest.approx(error, rel=3e-5)
    # The sum of squares that is not above its own.
    assert found.rss <= 0.08533642390485119
    assert found.reduced_chi2 == pytest.approx(0.0004353899178818938, rel=1e-9)
    assert 0.98 < found.r2 < 1


class TestComplexParameters:
    """A pole and its residue, from a frequency response."""

    @pytest.fixture
    def data(self, tmp_path):
        w = np.linspace(0.5, 4, 12)
        drawn = np.random.default_rng(0)
        z = (2 - 1.5j) / (1j * w + 0.7 - 2j) + 0.3 + 1e-3 * (drawn.normal(size=12) + 1j * drawn.normal(size=12))
        path = tmp_path / "response.csv"
        path.write_text(
            "w,zre,zim\n" + "".join(f"{a!r},{b.real!r},{b.imag!r}\n" for a, b in zip(w.tolist(), z.tolist()))
        )
        return str(path)

    def test_the_parts_are_those_of_real_parameters(self, run, data):
        words = ["--derive", "damping=-real(p)/abs(p)", "--json"]
        found = run("fit", "complex(zre, zim) ~ r/(1j*w - p) + d", data, "r=1+0j", "p=-1+1.5j", "d=0", *words).json
        model = "complex(zre, zim) ~ (a + 1j*b)/(1j*w - (c + 1j*e)) + d"
        derived = "damping=-c/sqrt(c**2 + e**2)"
        same = run("fit", model, data, "a=1", "b=0", "c=-1", "e=1.5", "d=0", "--derive", derived, "--json").json
        for part, name in (("r_re", "a"), ("r_im", "b"), ("p_re", "c"), ("p_im", "e"), ("d", "d")):
            for what in ("value", "error", "low", "high"):
                assert found["estimates"][part][what] == pytest.approx(
                    same["estimates"][name][what], rel=1e-6, abs=1e-9
                )
        assert found["derived"]["damping"] == pytest.approx(same["derived"]["damping"], rel=1e-6)

    def test_fixed_ones_bounds_and_real_responses(self, run, data):
        model = "complex(zre, zim) ~ r/(1j*w - p) + d"
        words = ["r=1+0j", "p=-1+1.5j", "d=0.3+0j", "--fix", "d", "--bounds", "p_re=:-0.71", "--json"]
        found = run("fit", model, data, *words).json["estimates"]
        assert (found["d_re"]["value"], found["d_im"]["value"], found["d_re"]["fixed"]) == (0.3, 0, True)
        assert found["p_re"]["value"] == pytest.approx(-0.71)
        found = fit("zre ~ real(r/(1j*w - p)) + d", data, {"r": 1 + 0j, "p": -1 + 1.5j, "d": 0})
        assert found.estimates["p_im"].value == pytest.approx(2, abs=0.01)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["r=1j", "p=1j", "--bounds", "p=0:1"], "'p' is complex, and bounds are those of real numbers"),
            (["r=1j", "p=1j", "--prior", "p=1±0.1"], "'p' is complex, and a prior is one of a real number"),
            (["r=1j", "p=1j", "q=1j"], "'q' is given a start, and the model does not use it"),
        ],
    )
    def test_what_is_refused(self, run, data, words, message):
        outcome = run("fit", "complex(zre, zim) ~ r/(1j*w - p)", data, *words)
        assert outcome.status
        assert message in outcome.err
