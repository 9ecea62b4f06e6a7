"""Tests special functions by the names of their libraries: values, gradients, formulas, and unknown derivatives."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import gradcli
from tests.language.test_pasted_code import value_and_grad


def _owens_t(h: Any, a: Any) -> Any:
    return mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mpmath.pi)


def _student(df: Any, t: Any) -> Any:
    return mpmath.betainc(df / 2, mpmath.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2


SPECIAL = [
    ("scipy.special.jv(2.5, x)", special.jv(2.5, 3.0), special.jvp(2.5, 3.0)),
    ("scipy.special.jv(-3, x)", special.jv(-3, 3.0), special.jvp(-3, 3.0)),
    ("torch.special.bessel_y0(x)", special.y0(3.0), -special.y1(3.0)),
    ("torch.special.scaled_modified_bessel_k1(x)", special.k1e(3.0), special.k1e(3.0) * 2 / 3 - special.k0e(3.0)),
    ("torch.igamma(2, x)", special.gammainc(2, 3.0), 3 * np.exp(-3.0)),
    ("jax.scipy.special.betainc(2, 3, x/6)", special.betainc(2, 3, 0.5), 12 * 0.5**3 / 6),
    ("scipy.special.zeta(x, 2) + zeta(4) - zeta(x, 1)", np.pi**4 / 90 - 1, 0.0),
    ("lambertw(x*exp(x))", 3.0, 4 / 4),
    ("lambertw(-x*exp(-x), -1)", -3.0, -1.0),
    ("scipy.special.expn(2, x)", special.expn(2, 3.0), -special.exp1(3.0)),
]


@pytest.mark.parametrize(("program", "value", "gradient"), SPECIAL)
def test_special_functions(program, value, gradient):
    found, by = value_and_grad(program, x=3.0)
    np.testing.assert_allclose(found, value, 1e-13)
    np.testing.assert_allclose(by["x"], gradient, 1e-12, 1e-15)


@pytest.mark.parametrize(("a", "b"), [(-0.4, 1.2), (1.2, -0.4), (-1.5, -1.2), (-2.5, -0.5), (-1.5, 0.5), (0.7, 1.3)])
def test_beta_has_its_sign_where_an_operand_is_negative(a, b):
    found = gradcli.compile("beta(a, b)")(a=a, b=b)
    np.testing.assert_allclose(found, special.beta(a, b), 1e-14)


@pytest.mark.parametrize(("a", "b"), [(-0.6, 1.3), (1.2, -0.4), (-1.5, -1.2), (0.7, 1.3)])
def test_the_derivative_of_beta_is_written_for_operands_of_any_sign(run, a, b):
    formulas = run("diff", "beta(a, b)", "--json").json["derivatives"]
    for name, k in (("a", 0), ("b", 1)):
        expected = float(mpmath.diff(mpmath.beta, (a, b), (1 - k, k)))
        assert gradcli.compile(formulas[name])(a=a, b=b) == pytest.approx(expected, rel=1e-12)


# Each with mpmath's function of the same operands, and operands: derivatives by all of them are compared.
BY_PARAMETERS = [
    ("jv(v, x)", mpmath.besselj, {"v": 2.5, "x": 30.0}),
    ("jv(v, x)", mpmath.besselj, {"v": 0.0, "x": 0.7}),
    ("yv(v, x)", mpmath.bessely, {"v": 3.0, "x": 0.01}),
    ("iv(v, x)", mpmath.besseli, {"v": 1.5, "x": 20.0}),
    ("kv(v, x)", mpmath.besselk, {"v": 0.3, "x": 1e-3}),
    ("kv(v, x)", mpmath.besselk, {"v": 30.0, "x": 500.0}),
    ("kve(v, x)", lambda v, x: mpmath.exp(x) * mpmath.besselk(v, x), {"v": 2.5, "x": 1e4}),
    ("struve(v, x)", mpmath.struveh, {"v": 1.5, "x": 12.0}),
    ("gammainc(a, x)", lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), {"a": 1e-3, "x": 0.5}),
    ("gammaincc(a, x)", lambda a, x: mpmath.gammainc(a, x, regularized=True), {"a": 30.0, "x": 90.0}),
    ("betainc(a, b, x)", lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True), {"a": 2.5, "b": 0.5, "x": 1e-3}),
    ("ellipkinc(p, m)", mpmath.ellipf, {"p": 1.2, "m": 1e-9}),
    ("ellipeinc(p, m)", mpmath.ellipe, {"p": 2.5, "m": -40.0}),
    ("elliprd(x, y, z)", mpmath.elliprd, {"x": 1e-3, "y": 2.0, "z": 0.5}),
    ("hyp1f1(a, b, x)", mpmath.hyp1f1, {"a": 20.7, "b": -7.3, "x": -0.7}),
    ("hyp2f1(a, b, c, z)", mpmath.hyp2f1, {"a": -7.3, "b": 2.5, "c": 20.7, "z": -5.0}),
    ("polylog(s, z)", lambda s, z: mpmath.re(mpmath.polylog(s, z)), {"s": 2.0, "z": 0.7}),
    ("owens_t(h, a)", _owens_t, {"h": 6.0, "a": 1e-6}),
    ("stdtr(v, t)", _student, {"v": 1.0, "t": -1e-8}),
]


@pytest.mark.cases(6)
@pytest.mark.parametrize(("program", "function", "point"), BY_PARAMETERS)
def test_derivatives_by_all_operands(program, function, point):
    value, gradient = gradcli.compile(program).value_and_grad(point)
    with mpmath.workdps(60):
        numbers = [mpmath.mpf(x) for x in point.values()]
        assert value == pytest.approx(float(function(*numbers)), rel=1e-12)
        for i, name in enumerate(point):
            order = tuple(int(i == k) for k in range(len(numbers)))
            expected = float(mpmath.diff(function, tuple(numbers), order))
            assert gradient[name] == pytest.approx(expected, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("diff(kv(v, x), v, 2)", lambda v, x: mpmath.diff(lambda u: mpmath.besselk(u, x), v, 2)),
        ("diff(diff(jv(v, x), v), x)", lambda v, x: mpmath.diff(mpmath.besselj, (v, x), (1, 1))),
        ("diff(gammaincinv(v, x/3), v, 2)", None),
    ],
)
def test_second_derivatives_by_parameters(program, value):
    with mpmath.workdps(40):
        v, x = mpmath.mpf(1.5), mpmath.mpf(0.7)
        if value is None:
            root = lambda a: mpmath.findroot(  # noqa: E731
                lambda y: mpmath.gammainc(a, 0, y, regularized=True) - x / 3, (0.6, 0.61)
            )
            expected = mpmath.diff(root, v, 2)
        else:
            expected = value(v, x)
    assert gradcli.compile(program)(v=1.5, x=0.7) == pytest.approx(float(expected), rel=1e-11)


def test_a_derivative_by_a_parameter_has_digits(run):
    outcome = run("eval", "kv(v, x)", "v=2.5", "x=0.7", "--wrt", "v", "--digits", "40")
    with mpmath.workdps(60):
        expected = mpmath.diff(lambda v: mpmath.besselk(v, mpmath.mpf(7) / 10), mpmath.mpf(5) / 2)
        assert mpmath.nstr(expected, 40) in outcome.out


def test_a_derivative_that_is_complex_is_nan():
    assert np.isnan(gradcli.compile("diff(jv(v, x), v)")(v=2.0, x=-1.0))


def test_a_derivative_by_a_parameter_is_no_formula(run):
    outcome = run("diff", "gammainc(a, x)", "--wrt", "a")
    assert outcome.err.startswith("error: the derivative of 'gammainc' by its parameters cannot be written as text")
    assert r"\partial_{1}" in run("diff", "gammainc(a, x)", "--wrt", "a", "--to", "latex").out


# The same functions by the names of SciPy, SymPy, Julia and PyTorch.
ALIKE = [
    ("scipy.special.kn(2, x)", "kv(2, x)"),
    ("besselk(2, x) + besselj(2, x) + bessely(2, x) + besseli(2, x)", "kv(2, x) + jv(2, x) + yv(2, x) + iv(2, x)"),
    ("scipy.special.airy(x)[2]", "airybi(x)"),
    ("a, b, c, d = scipy.special.airy(x); a*d - b*c", "1/pi + 0*x"),
    ("S, C = scipy.special.fresnel(x); S + C", "fresnels(x) + fresnelc(x)"),
    ("scipy.special.sici(x)[0] + scipy.special.shichi(x)[1]", "Si(x) + Chi(x)"),
    ("elliptic_k(x/9) + elliptic_e(x/9) + elliptic_f(0.3, x/9)", "ellipk(x/9) + ellipe(x/9) + ellipkinc(0.3, x/9)"),
    ("elliptic_e(0.3, x/9)", "ellipeinc(0.3, x/9)"),
    ("Ei(x) + E1(x) + LambertW(x) + loggamma(x)", "expi(x) + exp1(x) + lambertw(x) + lgamma(x)"),
    ("Max(x, 1, 0.3) + Min(x, 5)", "maximum(x, 1) + minimum(x, 5)"),
    ("Piecewise((x**2, x < 1), (log(x), x < 3), (7, True))", "log(x) if x < 3 else 7"),
    ("lowergamma(2.5, x) + uppergamma(2.5, x)", "gamma(2.5) + 0*x"),
    ("torch.special.airy_ai(x)", "airyai(x)"),
    (
        "legendre(3, x) + chebyshevt(3, x) + hermite(3, x)",
        "eval_legendre(3, x) + eval_chebyt(3, x) + eval_hermite(3, x)",
    ),
    ("assoc_legendre(3, 2, x/9)", "scipy.special.lpmv(2, 3, x/9)"),
    ("sympy.sinc(x)", "sin(x)/x"),
    ("sympy.jn(2, x)", "scipy.special.spherical_jn(2, x)"),
]


@pytest.mark.parametrize(("program", "other"), ALIKE)
def test_the_names_of_other_systems(program, other):
    value, gradient = gradcli.compile(program).value_and_grad({"x": 2.5})
    expected, wanted = gradcli.compile(other).value_and_grad({"x": 2.5})
    assert value == pytest.approx(expected, rel=1e-13)
    assert gradient["x"] == pytest.approx(wanted["x"], rel=1e-12, abs=1e-14)


def test_pieces_of_a_tensor_and_pieces_that_leave_a_gap(run):
    assert "0.6931471805599453]" in run("eval", "Piecewise((log(x), x > 0), (0, True))", "x=[-1,2]", "--no-grad").out
    assert run("eval", "Piecewise((x, x < 1))", "x=2", "--json").json["value"] == "NaN"


def test_a_name_that_sympy_means_otherwise_is_an_error_beside_its_names(run):
    outcome = run("eval", "Max(x, 1) + sinc(x)", "x=2")
    assert outcome.err.splitlines()[0] == "error: 'sinc' means one thing in SymPy and another in NumPy"
    assert outcome.err.splitlines()[-1] == "hint: write sympy.sinc(…) or np.sinc(…)"


def test_spherical_harmonics_that_are_complex_name_those_that_are_not(run):
    outcome = run("eval", "scipy.special.sph_harm_y(2, 1, x, 0.3)", "x=0.7")
    assert "sph_legendre_p(n, m, theta)*cos(m*phi) is its real part" in outcome.err
    found = gradcli.compile("sph_legendre_p(3, -2, x)*cos(-2*0.3)")(x=0.7)
    assert found == pytest.approx(special.sph_harm_y(3, -2, 0.7, 0.3).real, rel=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 30])
def test_polynomials_are_those_of_scipy(n):
    names = ["hermite", "hermitenorm", "legendre", "laguerre", "chebyt", "chebyu"]
    for x in (-0.9, 0.3, 1.7):
        for name in names:
            expected = getattr(special, f"eval_{name}")(n, x)
            assert gradcli.compile(f"eval_{name}({n}, x)")(x=x) == pytest.approx(expected, rel=1e-12)
        found = gradcli.compile(f"eval_jacobi({n}, 0.5, 1.5, x)")(x=x)
        assert found == pytest.approx(special.eval_jacobi(n, 0.5, 1.5, x), rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    ["k0e(x)", "i0e(x)", "i1e(x)", "k1e(x)", "dawsn(x)", "ellipk(x)", "ellipe(x)", "expn(1, x)", "gammainc(2, x)"],
)
def test_formulas_of_derivatives_that_cancel_are_in_functions_that_have_a_name(run, program):
    for order in ("1", "3"):
        found = run("diff", program, "--order", order).out.strip()
        expected = gradcli.compile(f"diff({program}, x, {order})")(x=0.7)
        assert gradcli.compile(found)(x=0.7) == pytest.approx(expected, rel=1e-10)


def test_bessel_functions_of_any_order_at_zero():
    assert [gradcli.iv(v, 0.0) for v in (0.0, 2.0, -0.6)] == [1.0, 0.0, np.inf]


def test_the_sign_of_gamma_is_smooth_between_whole_numbers(run):
    outcome = run("eval", "sum(gammasgn(x))", "x=[-2.5, -1.5, -0.5, 2]", "--json")
    assert outcome.json["value"] == 0.0
    assert "warnings" not in outcome.json


# Values and slopes by mpmath, where libraries round the angle of an oscillation, or subtract large terms.
BESSEL = [
    ("j0(x)", 1e10, 2.175591750246892e-06, 7.676508175684158e-06),
    ("j0(x)", 1e300, -7.860673062724093e-151, 1.3681360450342481e-151),
    ("j1(x)", 1e15, 2.4468665123771328e-08, 6.156638646884997e-09),
    ("jv(0, x)", 1e15, 6.156638646885021e-09, -2.4468665123771328e-08),
    ("jv(1, x)", 1e5, 0.0018467575628825677, -0.001719219583811601),
    ("jv(7, x)", -1e18, -6.270071914094411e-10, 4.934387036790141e-10),
    ("jv(200, x)", 1e16, 8.661427680763043e-10, -7.931694266804997e-09),
    ("jv(-2.3, x)", 1e22, -1.8691426107660082e-12, -7.756821716229977e-12),
    ("y0(x)", 1e10, -7.676508175792937e-06, 2.175591750630717e-06),
    ("y1(x)", 1e6, -0.00033104337672417626, -0.0007259681912918024),
    ("yv(200, x)", 1e7, 0.00023672509629775958, -8.731098496825949e-05),
    ("yv(-120.2, x)", 1000.1, 0.025317051878218828, 0.0004844292344365984),
    ("yv(-20.3, x)", 1e9, 6.565362140257172e-06, 2.4362179544837783e-05),
    ("yv(-127.499999999, x)", 20.0, 1.8665030623164934e76, -1.1750465975750212e77),
    ("yv(-120.5, x)", 0.1, 0.0, 0.0),
    ("yv(200, x)", 0.1, -np.inf, np.inf),
    ("jv(-100.3, x)", 1e-3, np.inf, -np.inf),
    ("jv(1e-9, x)", 1e-9, 0.9999999791608032, 0.9999999786608033),
    ("iv(1, x)", 1e-200, 5e-201, 0.5),
    ("iv(2.5, x)", 1e-100, 5.319230405352436e-252, 1.3298076013381089e-151),
    ("iv(50.3, x)", 1e200, np.inf, np.inf),
    ("ive(2.5, x)", 1e4, 0.0039882260968558065, -1.9929164609520674e-07),
    ("ive(300, x)", 1e6, 0.0003813878546815105, -1.7353150477729217e-10),
    ("ive(0, x)", 1e15, 1.2615662610100802e-08, -6.307831305050403e-24),
    ("ive(-2.999999999, x)", 0.09, 3.392591705623862e-05, -0.00023926013297966166),
]


@pytest.mark.parametrize(("program", "x", "value", "slope"), BESSEL)
def test_bessel_functions_have_their_digits_far_out_and_near_zero(run, program, x, value, slope):
    outcome = run("eval", program, f"x={x}", "--json").json
    found = [outcome["value"], outcome["grad"]["x"]]
    assert [float(number) for number in found] == pytest.approx([value, slope], rel=2e-13)
    # In an array, beside a small number.
    beside, by = gradcli.compile(program).value_and_grad({"x": np.array([0.5, x])}, grad_output=np.ones(2))
    assert [beside[1], by["x"][1]] == pytest.approx([value, slope], rel=2e-13)


# By mpmath: an integral of the density with 50 digits.
OF_LARGE = [
    ("betainc(1e10, 1e10, x)", 0.5, 0.5, 112837.91670814079),
    ("betainc(1e16, 1e16, x)", 0.5, 0.5, 112837916.70955126),
    ("betainc(1e300, 1e300, x)", 0.5, 0.5, 1.1283791670955126e150),
    ("betainc(1.142078734627049e+19, 6.123431773304181e+18, x)", 0.6509715404504914, 0.4999995644630517, None),
    ("betainc(75481193536065.58, 687839786999669.6, x)", 0.09888521458223619, 1.3764984299420357e-05, None),
    ("betainc(10983916579.466713, 11597967125.98897, x)", 0.4863861792310307, 4.8691471433761665e-08, None),
    ("betainc(2.5, 1e300, x)", 1e-300, 0.15085496391539036, 2.7673833161372966e299),
    ("betainc(1, 1e300, x)", 1e-300, 0.6321205588285577, 3.678794411714423e299),
    ("betainc(inf, 2, x)", 0.4, 0.0, 0.0),
    ("gammainc(1e16, x)", 1e16, 0.50000000132980760, 3.989422804014327e-09),
    ("gammainc(inf, x)", 2.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("program", "x", "value", "slope"), OF_LARGE)
def test_incomplete_functions_of_large_parameters(run, program, x, value, slope):
    outcome = run("eval", program, f"x={x}", "--json").json
    assert outcome["value"] == pytest.approx(value, rel=2e-13)
    if slope is not None:
        assert outcome["grad"]["x"] == pytest.approx(slope, rel=2e-13)


@pytest.mark.parametrize(
    ("program", "x", "derivatives"),
    [
        ("gammainc(1, x)", 0, [1, -1, 1]),
        ("gammainc(2, x)", 0, [0, 1, -2]),
        ("gammaincc(3, x)", 0, [0, 0, -1]),
        ("gammainc(1.5, x)", 0, [0, np.inf]),
        ("betainc(1, 1, x)", 1, [1, 0, 0]),
        ("betainc(1, 2, x)", 0, [2, -2, 0]),
        ("betainc(2, 3, x)", 0, [0, 12, -48]),
        ("betainc(2, 3, x)", 1, [0, 0, 24]),
        ("betainc(2, 0.5, x)", 1, [np.inf, np.inf]),
    ],
)
def test_incomplete_functions_at_their_ends(run, program, x, derivatives):
    outcome = run("eval", program, f"x={x}", "--order", str(len(derivatives)), "--json").json
    found = [outcome["grad"]["x"], *outcome["derivatives"].values()]
    assert [float(d) for d in found] == pytest.approx(derivatives, rel=1e-14)


@pytest.mark.parametrize(("function", "exact"), [("comb", math.comb), ("perm", math.perm)])
def test_choices_among_whole_numbers_are_whole(run, function, exact):
    pairs = [(34, 15), (45, 12), (100, 30), (170, 85), (26, 9), (10, 0), (7, 7), (50000, 3)]
    for n, k in pairs:
        found = run("eval", f"{function}({n}, {k})", "--json").json["value"]
        assert found == pytest.approx(exact(n, k), rel=2.3e-16)
        assert exact(n, k) > 2**53 or found == exact(n, k)
    n, k = np.array(pairs, float).T
    found = gradcli.compile(f"{function}(n, k)")(n=n, k=k)
    np.testing.assert_allclose(found, [float(exact(*pair)) for pair in pairs], 2.3e-16)


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("comb(1000, 500)", 2.702882409454366e299),
        ("comb(1000000, 50)", 3.2839240782023247e235),
        ("comb(1000000.5, 40.2)", 9.2536730980705e192),
        ("perm(1000000.5, 40.2)", 1.5836767309384855e241),
        ("perm(100.5, 50.25)", 1.1546731426710183e94),
        ("perm(8e14, 0.3256)", 71194.44351784263),
    ],
)
def test_choices_among_many(run, program, value):
    assert run("eval", program, "--json").json["value"] == pytest.approx(value, rel=2e-14)


@pytest.mark.parametrize(
    ("program", "values", "value", "slopes"),
    [
        ("zeta(s, q)", {"s": 0.5, "q": 2}, -2.460354508809587, {"s": -3.9226461392091516, "q": -0.8061876743427442}),
        ("zeta(s, q)", {"s": -1.5, "q": 3.2}, -4.688677555887902, {"q": -4.4175899690303714}),
        ("zeta(s, q)", {"s": -7, "q": 2.1535534837056654}, -2.71573671918621, {"q": -16.51565643635037}),
        ("zeta(s, q)", {"s": -40.3, "q": 100}, -7.782226285457075e80, {}),
        ("zeta(s, q)", {"s": 0, "q": 0.25}, 0.25, {"q": -1.0}),
        ("zeta(x, 1)", {"x": 1e15}, 1.0, {"x": 0.0}),
        ("zeta(x, q)", {"x": np.nan, "q": -np.inf}, np.nan, {}),
        ("rgamma(x)", {"x": -3}, 0.0, {"x": -6.0}),
        ("rgamma(x)", {"x": 150.5}, 2.1454289173407215e-262, {"x": -1.0749965827187751e-261}),
        ("rgamma(x)", {"x": 1e4}, 0.0, {"x": 0.0}),
        ("xlogy(0, y)", {"y": 0}, 0.0, {"y": 0.0}),
        ("xlogy(x, y)", {"x": 0, "y": 0}, 0.0, {"x": 0.0, "y": 0.0}),
        ("xlog1py(0, y)", {"y": -1}, 0.0, {"y": 0.0}),
        ("sum(xlogy([0, 1], p))", {"p": [0, 1]}, 0.0, {"p": [0.0, 1.0]}),
        ("sum(rel_entr([0, 1], q))", {"q": [0, 1]}, 0.0, {"q": [0.0, -1.0]}),
    ],
)
def test_values_and_slopes_at_edges_and_far_out(run, program, values, value, slopes):
    # Derivatives of zeta by a negative `s` take seconds.
    words = ["--wrt", ",".join(slopes)] if slopes else []
    outcome = run("eval", program, *(f"{name}={number}" for name, number in values.items()), *words, "--json").json
    assert float(outcome["value"]) == pytest.approx(value, rel=5e-14, nan_ok=True)
    for name, slope in slopes.items():
        assert outcome["grad"][name] == pytest.approx(slope, rel=2e-13)
