"""Tests `gradcli propagate` of complex values: both parts with their covariance, modulus and angle."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from gradcli import propagate
from gradcli.errors import BindingError, EvaluationError

DIVIDER = "1/(1 + 1j*w*R*C)"
# With x = w R C = 2 and the relative uncertainties 0.01 of R and of C.
X, U_X = 2.0, 2.0 * math.hypot(0.01, 0.01)
# The derivatives by x of both parts of 1/(1 + i x), of the modulus and of the angle.
SLOPES = {
    "real": -2 * X / (1 + X**2) ** 2,
    "imag": (X**2 - 1) / (1 + X**2) ** 2,
    "abs": -X / (1 + X**2) ** 1.5,
    "angle": -1 / (1 + X**2),
}
VALUES = {"real": 1 / (1 + X**2), "imag": -X / (1 + X**2), "abs": (1 + X**2) ** -0.5, "angle": -math.atan(X)}


def test_a_divider():
    found = propagate(DIVIDER, w=1000, R=(2000, 20), C=(1e-6, 1e-8))
    assert found.value == pytest.approx(VALUES, rel=1e-14)
    assert found.u == pytest.approx({name: abs(slope) * U_X for name, slope in SLOPES.items()}, rel=1e-13)
    parts = np.asarray([SLOPES["real"], SLOPES["imag"]]) * U_X
    assert found.covariance == pytest.approx(np.outer(parts, parts), rel=1e-13)
    assert found.budget["imag"][0].sensitivity == pytest.approx(SLOPES["imag"] * X / 2000)


def test_on_the_command_line(run):
    words = (DIVIDER, "w=1000", "R=2000±20", "C=1e-6±1e-8")
    found = run("propagate", *words, "--json").json
    assert found["value"] == pytest.approx(VALUES)
    assert np.shape(found["covariance"]) == (2, 2)
    table = run("propagate", *words, "--quiet").out
    assert "abs                   0.4472 ± 0.0051" in table
    assert (
        "covariance  real        imag\nreal        2.048e-05   -1.536e-05\nimag        -1.536e-05  1.152e-05" in table
    )


def test_independent_parts_and_their_correlation():
    """Of a + i b with a = 3 and b = 4, by the law of propagation."""
    found = propagate("complex(a, b)", a=(3, 0.1), b=(4, 0.2), correlation={"a,b": 0.5})
    covariance = np.asarray([[0.01, 0.01], [0.01, 0.04]])
    assert found.covariance == pytest.approx(covariance)
    assert found.u["abs"] == pytest.approx(math.sqrt(np.asarray([0.6, 0.8]) @ covariance @ [0.6, 0.8]))
    assert found.u["angle"] == pytest.approx(math.sqrt(np.asarray([-0.16, 0.12]) @ covariance @ [-0.16, 0.12]))


def test_several_complex_values():
    found = propagate("a = 1j*x; b = x + 2j; [a, b]", x=(3, 0.1))
    assert [*found.value] == [f"{part}({name})" for part in ("real", "imag", "abs", "angle") for name in "ab"]
    assert found.value["abs(b)"] == pytest.approx(math.sqrt(13))
    assert found.covariance == pytest.approx(0.01 * np.outer([0, 1, 1, 0], [0, 1, 1, 0]))
    table = found.report()[-1]
    assert [row[0] for row in table.rows] == ["real(a)", "real(b)", "imag(a)", "imag(b)"]
    found = propagate("v = exp(1j*[1, 2]*x)", x=(0.5, 0.1))
    assert found.value["angle(value[1])"] == pytest.approx(1.0)


def test_own_names_of_a_program_do_not_matter():
    found = propagate("real(x) = 7; abs(z) = 9; complex(x, 4)", x=(3, 0.1))
    assert found.value == pytest.approx({"real": 3, "imag": 4, "abs": 5, "angle": math.atan2(4, 3)})


def test_samples_agree():
    found = propagate(DIVIDER, w=1000, R=(2000, 20), C=(1e-6, 1e-8), samples=20_000)
    for name, u in found.u.items():
        assert found.monte_carlo[name].u == pytest.approx(u, rel=0.05)


def test_zero_has_no_linear_modulus_and_angle():
    found = propagate("complex(a, b)", a=(0, 0.1), b=(0, 0.1))
    assert found.u["real"] == pytest.approx(0.1)
    assert math.isnan(found.u["abs"])
    assert math.isnan(found.u["angle"])
    assert any(warning.code == "nonsmooth" for warning in found.warnings)


def test_a_jump_of_the_angle_is_warned_of():
    found = propagate("complex(a, b)", a=(-1, 0.1), b=(0.05, 0.1))
    assert any("jumps" in warning.message for warning in found.warnings)


# From GTC 1.5.1, for
#
#     z = ucomplex(1.2-0.7j, (0.1, 0.2), independent=False)
#     set_correlation(0.4, z.real, z.imag)
#     w = ucomplex(-0.5+2j, (0.05, 0.03))
#
# The parts of each value y, its variances and covariance y.v.rr, y.v.ri and y.v.ii, and the standard uncertainties of
# magnitude(y) and phase(y).
GTC = {
    "z*w": (
        0.7999999999999999,
        2.75,
        0.18254100000000004,
        -0.0013440000000000014,
        0.03652100000000001,
        0.21724009403834108,
        0.14475225197544014,
    ),
    "z/w": (
        -0.47058823529411764,
        -0.48235294117647054,
        0.008254021671196465,
        -0.003398193795572371,
        0.003873978328803534,
        0.05111531624431554,
        0.14475225197544017,
    ),
    "z - 2j*w": (
        5.2,
        0.30000000000000004,
        0.013600000000000001,
        0.008000000000000002,
        0.05000000000000001,
        0.12099903585960174,
        0.04248077265945672,
    ),
    "exp(z)": (
        2.539365489226066,
        -2.1388780453240583,
        0.33437803209284145,
        0.17793041517960115,
        0.2167807869392386,
        0.33201169227365473,
        0.2,
    ),
    "log(z)": (
        0.32876000145839707,
        -0.5280744484263596,
        0.005519611264731939,
        -0.004724959059303606,
        0.0203871244865634,
        0.1430878769689032,
        0.11848916156591492,
    ),
    "sqrt(z)": (
        1.1378146595436753,
        -0.3076072162230435,
        0.001441853623526492,
        -0.00011658031088082913,
        0.007555843260832196,
        0.043783812744787515,
        0.07139174407199234,
    ),
    "sin(z)": (
        1.1698665727426565,
        -0.27487868678117583,
        0.016919109761165126,
        -0.011991377661333732,
        0.018418508985132247,
        0.149458539845568,
        0.09487726636478523,
    ),
    "tan(z)": (
        0.47786410383263633,
        -1.347219739906119,
        0.05766997567816007,
        -0.033170150248380284,
        0.042430340962578916,
        0.2550193896708988,
        0.130998898226894,
    ),
    "asin(z)": (
        0.9113541895315601,
        -0.9786545955936737,
        0.01936656061212815,
        0.009062267690891714,
        0.01038217178420504,
        0.07426664861573615,
        0.11640761010916946,
    ),
    "acos(z)": (
        0.6594421372633364,
        0.9786545955936737,
        0.01936656061212815,
        0.009062267690891714,
        0.01038217178420504,
        0.14692461600661,
        0.0765557260946844,
    ),
    "atan(z)": (
        0.970240307795099,
        -0.2600749516525136,
        0.0022443966975448696,
        -0.002060620697513832,
        0.005302887035039776,
        0.05899217366917482,
        0.06348943143572107,
    ),
    "sinh(z)": (
        1.1544997246948547,
        -1.166456341965758,
        0.07854946703488505,
        0.04817819950290792,
        0.06462339071175867,
        0.15277122420110834,
        0.21092691487571233,
    ),
    "tanh(z)": (
        0.9544807059989405,
        -0.17207341976303495,
        0.003833407052441613,
        -0.0019192182126440726,
        0.0022646098777419584,
        0.06674005163159583,
        0.041803228889534715,
    ),
    "asinh(z)": (
        1.0927647857577372,
        -0.4356135790797416,
        0.0032690610781151343,
        -0.0014490784766562513,
        0.016156802779876675,
        0.0776731268439248,
        0.09837470537088228,
    ),
    "acosh(z)": (
        0.9786545955936737,
        -0.6594421372633364,
        0.01038217178420504,
        -0.009062267690891714,
        0.01936656061212815,
        0.14692461600661,
        0.0765557260946844,
    ),
    "atanh(z)": (
        0.5770573776534307,
        -1.0785743834118922,
        0.014318814627560678,
        -0.0025111590608201456,
        0.0033809269562122004,
        0.08890518108093584,
        0.08091030023818918,
    ),
    "z**w": (
        1.474838408135234,
        1.943122188980499,
        0.11706835447682587,
        0.05311897634338583,
        0.5459733152709169,
        0.6635981902913142,
        0.19344140115699346,
    ),
    "z**3": (
        -0.03600000000000003,
        -2.681,
        1.3271130000000002,
        0.2926872000000001,
        0.34909200000000007,
        0.5976012048180627,
        0.42835046443195385,
    ),
    "2**z": (
        2.032231821034698,
        -1.071478169943546,
        0.058645129299448685,
        0.04284678374427169,
        0.06814718122450049,
        0.15924340521600833,
        0.13862943611198905,
    ),
    "conj(z)*w": (
        -2.0,
        2.05,
        0.15054100000000004,
        0.06134400000000001,
        0.06852100000000003,
        0.21724009403834102,
        0.14475225197544017,
    ),
    "log10(z)": (
        0.14277865450388685,
        -0.22933981898567132,
        0.001041063247485512,
        -0.0008911825464856522,
        0.0038452501465977514,
        0.06214227539484607,
        0.11848916156591492,
    ),
}


@pytest.mark.parametrize("program", GTC)
def test_complex_inputs_are_those_of_gtc(program):
    w = {"w": "(-0.5±0.05)+(2±0.03)j"} if "w" in program else {}
    found = propagate(program, z="(1.2±0.1)-(0.7±0.2)j", correlation={"real(z),imag(z)": 0.4}, **w)
    covariance = found.covariance
    numbers = (
        *(found.value[part] for part in ("real", "imag")),
        *(covariance[0, 0], covariance[0, 1], covariance[1, 1]),
        *(found.u[part] for part in ("abs", "angle")),
    )
    assert numbers == pytest.approx(GTC[program], rel=1e-13)


def test_degrees_of_freedom_of_a_complex_input():
    """`magnitude(z)*a` by GTC 1.5.1, with z = ucomplex(1+2j, (0.96, -0.34, -0.34, 0.27), 5) and a = ureal(1, 1, 6)."""
    z = (1 + 2j, complex(math.sqrt(0.96), math.sqrt(0.27)))
    correlation = {"real(z),imag(z)": -0.34 / math.sqrt(0.96 * 0.27)}
    found = propagate("abs(z)*a", z=z, a=(1, 1), correlation=correlation, dof={"z": 5, "a": 6})
    assert (found.u, found.dof) == pytest.approx((2.2662744758744475, 6.325223456013963), rel=1e-13)


def test_complex_observations(run, tmp_path):
    """As GTC 1.5.1's type_a.estimate."""
    data = tmp_path / "observations.csv"
    observations = "(0.101+0.52j) (0.104+0.49j) (0.098+0.53j) (0.107+0.51j) (0.095+0.50j) (0.103+0.54j)"
    data.write_text("\n".join(["z", *observations.split()]))
    found = run("propagate", "z", f"z=@{data}:z", "--json").json
    assert found["value"]["real"] == pytest.approx(0.10133333333333333)
    assert found["value"]["imag"] == pytest.approx(0.515)
    expected = [[3.1111111111111073e-06, -3.3333333333333177e-07], [-3.3333333333333177e-07, 5.833333333333346e-05]]
    assert np.asarray(found["covariance"]) == pytest.approx(np.asarray(expected))
    assert found["u"]["abs"] == pytest.approx(0.007493247191090613)
    assert found["u"]["angle"] == pytest.approx(0.004384354709086884)
    assert found["dof"]["abs"] == pytest.approx(5)


@pytest.mark.parametrize(
    ("text", "value", "u"),
    [
        ("(1±0.1)+(2±0.2)j", 1 + 2j, (0.1, 0.2)),
        ("(1±0.1) - (2±0.2)i", 1 - 2j, (0.1, 0.2)),
        ("-(1±10%)-(2+-0.2)j", -1 - 2j, (0.1, 0.2)),
        ("1.0(1)+2.0(2)j", 1 + 2j, (0.1, 0.2)),
        ("-1.0(1)e3+2.0(2)e-1j", -1000 + 0.2j, (100, 0.02)),
        ("(2±0.2)j", 2j, (0, 0.2)),
        ("1+(2±0.2)j", 1 + 2j, (0, 0.2)),
        ("(1±0.1)+2e-1j", 1 + 0.2j, (0.1, 0)),
        (".5(1)-2j", 0.5 - 2j, (0.1, 0)),
    ],
)
def test_spellings_of_a_complex_input(text, value, u):
    found = propagate("z", z=text)
    assert complex(found.value["real"], found.value["imag"]) == pytest.approx(value)
    assert (found.u["real"], found.u["imag"]) == pytest.approx(u)


def test_arrays_of_complex_inputs(run):
    """The parts of each element have a name in the budget, and for correlations."""
    words = ("abs(z[0]*z[1])", "z=[(1±0.1)+(2±0.1)j, 3, 4±0.2]", "--correlation", "real(z[0]),imag(z[0])=0.5")
    found = run("propagate", *words, "--json").json
    names = ["real(z[0])", "real(z[1])", "real(z[2])", "imag(z[0])", "imag(z[1])", "imag(z[2])"]
    assert [entry["name"] for entry in found["budget"]] == names
    assert found["u"] == pytest.approx(3 / math.sqrt(5) * math.sqrt(0.01 + 0.04 + 4 * 0.005))
    of_array = propagate("z", z=(np.asarray([1 + 2j, 3]), np.asarray([0.1 + 0.2j, 0.3])))
    assert [*of_array.u.values()][:4] == pytest.approx([0.1, 0.3, 0.2, 0])


def test_samples_of_complex_inputs_agree():
    found = propagate("1/z", z="(3±0.1)+(4±0.2)j", correlation={"real(z),imag(z)": -0.6}, samples=20_000)
    for name, u in found.u.items():
        assert found.monte_carlo[name].u == pytest.approx(u, rel=0.05)


def test_exact_complex_inputs():
    found = propagate("a*z", a=(2, 0.1), z=1 + 2j)
    assert found.covariance == pytest.approx(0.01 * np.outer([1, 2], [1, 2]))
    assert propagate("imag(a*z)", a=(2, 0.1), z="1+2j").u == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("z", "message"),
    [
        ("1+2j±0.1", "a complex number has no single uncertainty"),
        ("1±2j", "a complex number has no single uncertainty"),
        ("(1±0.1)+(2j±0.1)j", "a complex number has no single uncertainty"),
        ("(1±0.1)+([1,2]±0.1)j", "the parts of a complex number are real numbers"),
        ("(1±0.1)+(2±-0.1)j", "an uncertainty is not negative"),
        ("(1±0.1)(2±0.1)j", "this is no value with an uncertainty"),
        ("(1±0.1)*2j", "this is no value with an uncertainty"),
        ((1 + 2j, 0.1), "either the value or the uncertainty is complex"),
        ((1.0, 0.1j), "either the value or the uncertainty is complex"),
        ((1j, 0.1 - 0.1j), "an uncertainty is not negative"),
    ],
)
def test_what_is_no_complex_input(z, message):
    with pytest.raises(BindingError, match=message):
        propagate("a*z", a=(1, 0.1), z=z)


@pytest.mark.parametrize("z", ["1±0.1+2j±0.1", "(1±0.1)+(2±0.1)*1j", "[1±0.1, (1±0.1)*2j]"])
def test_other_spellings_are_shown_the_right_one(z):
    with pytest.raises(BindingError, match="no value with an uncertainty") as caught:
        propagate("a*z", a=(1, 0.1), z=z)
    assert "(1±0.1)+(2±0.1)j" in caught.value.hint


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("program", "values", "more"),
    [
        (DIVIDER, {"w": "1000", "R": "2000±20", "C": "1.00(1)e-6"}, {}),
        ("exp(z*w)", {"z": "(1±0.1)+(2±0.2)j", "w": "3-0.5j"}, {"correlation": {"real(z),imag(z)": 0.3}}),
        ("abs(z)*a", {"z": "1.50(3)-2.00(4)j", "a": "2±5%"}, {"dof": {"z": 7.0, "a": 4.0}}),
        ("prod(z)", {"z": "[(1±0.1)+(2±0.2)j, 3, 2j]"}, {}),
        ("u = z**2; v = 1j*x; [u, v]", {"z": "(1±0.1)+(2±0.2)j", "x": "~uniform(1, 2)"}, {}),
        ("z", {"z": "(0±0.1)+(0±0.1)j"}, {}),
    ],
)
def test_proved_digits_agree_with_floats(program, values, more):
    floats, texts = (propagate(program, values, **more, digits=digits) for digits in (None, 20))
    _assert_agree(floats.value, texts.value)
    for name in ("u", "relative", "dof", "k", "interval"):
        _assert_agree(getattr(floats, name), getattr(texts, name))
    if floats.covariance is not None:
        np.testing.assert_allclose(np.asarray(texts.covariance, float), floats.covariance, rtol=1e-12, atol=1e-15)
    budgets = [
        [*found.budget.values()] if isinstance(found.budget, dict) else [found.budget] for found in (floats, texts)
    ]
    for own, proved in zip(*budgets, strict=True):
        for entry, other in zip(own, proved, strict=True):
            assert entry.name == other.name
            for name in ("value", "u", "sensitivity", "contribution", "share"):
                _assert_agree(getattr(entry, name), getattr(other, name))


def _assert_agree(own, proved):
    if isinstance(own, dict):
        assert own.keys() == proved.keys()
        own, proved = [*own.values()], [*proved.values()]
    np.testing.assert_allclose(np.asarray(proved, float), np.asarray(own, float), rtol=1e-11, atol=1e-15)


def test_proved_digits_beside_mpmath(run):
    found = run("propagate", "exp(z)", "z=(0.1±0.03)+(0.2±0.04)j", "--digits", "30", "--json").json
    with mpmath.workdps(50):
        value = mpmath.exp(mpmath.mpc("0.1", "0.2"))
        # The sensitivities are the parts of exp(z).
        u_real = mpmath.sqrt((value.real * mpmath.mpf("0.03")) ** 2 + (value.imag * mpmath.mpf("0.04")) ** 2)
        u_abs = mpmath.fabs(value) * mpmath.mpf("0.03")
        assert mpmath.almosteq(mpmath.mpf(found["value"]["imag"]), value.imag, 1e-29)
        assert mpmath.almosteq(mpmath.mpf(found["u"]["real"]), u_real, 1e-29)
        assert mpmath.almosteq(mpmath.mpf(found["u"]["abs"]), u_abs, 1e-29)
        assert float(found["u"]["angle"]) == 0.04


def test_errors_of_proved_digits_show_the_program(run):
    done = run("propagate", "log(z)", "z=(-1±0.1)+(0±0.1)j", "--digits", "9")
    assert "a number is on a branch cut" in done.err
    assert "  | log(z)\n  | ^^^^^^\n" in done.err


def test_what_complex_inputs_have_not(run):
    z = "z=(1±0.1)+(2±0.1)j"
    done = run("propagate", "z", z, "--correlation", "z,z=0.5")
    assert "its parts real(z) and imag(z) have correlations" in done.err
    done = run("fit", "y ~ a + 0*x", "--prior", "a=(1±0.1)+(2±0.1)j", "-", stdin="x,y\n1,1\n2,2\n3,1\n")
    assert "the prior of 'a' is complex, and parameters are real" in done.err


def test_what_is_not_propagated():
    with pytest.raises(EvaluationError, match="its last statement has no name"):
        propagate("if x > 0 { 1j*x } else { x + 0j }", x=(1, 0.1))


def test_parts_are_told_apart():
    """Also in quotients that are examined for removable singularities, and where a function has the name of a part."""
    found = propagate("real((z - 50)/(z + 50))", z="(30±0.5)+(20±0.3)j")
    slope = 100 / (80 + 20j) ** 2
    assert found.u == pytest.approx(math.hypot(0.5 * slope.real, 0.3 * slope.imag))
    found = propagate("real(z) = 7; sin(imag(z))/real(z)", z="(30±0.5)+(20±0.3)j")
    assert found.u == pytest.approx(0.3 * abs(math.cos(20)) / 7)
    found = propagate("sin(imag(z))/imag(z) + real(z)", z="(30±0.5)+(0±0.3)j")
    assert (found.value, found.u) == pytest.approx((31, 0.5))


@pytest.mark.parametrize("made", ["complex(a, b)", "polar(a, b)"])
def test_quotients_of_numbers_that_are_made_of_parts(made):
    given = propagate(f"z = {made}; real((z - 50)/(z + 50))", a=(3, 0.1), b=(2, 0.1))
    again = propagate(f"real(({made} - 50)/({made} + 50))", a=(3, 0.1), b=(2, 0.1))
    assert given.u == pytest.approx(again.u)


def test_errors_show_what_was_written(run):
    done = run("propagate", "floor(z)", "z=(1±0.1)+(2±0.1)j")
    assert "\n  | floor(z)\n  | ^^^^^^^^\n" in done.err


def test_errors_of_the_parts_have_no_place(run):
    done = run("propagate", "sum(z)", "z=[(1±0.1)+(2±0.1)j, 2j, 3]", "--max-elements", "2")
    assert done.status
    assert "error: " in done.err
    assert "internal" not in done.err
