"""Tests distributions by the names of SciPy, JAX and PyTorch: values and gradients by all parameters, also in the
tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy import stats

import gradcli
from gradcli.primitives.distribution_names import DISTRIBUTIONS, METHODS
from gradcli.primitives.entries.libraries import probability

# The shape parameters of each distribution, and points in its body and its tails.
POINTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "norm": ((), (-30.0, -1.2, 0.3, 8.0)),
    "t": ((2.5,), (-1e4, -1.2, 0.01, 30.0)),
    "chi2": ((3.5,), (1e-8, 1.2, 9.0, 200.0)),
    "f": ((3.5, 6.0), (1e-8, 0.7, 2.5, 1e4)),
    "gamma": ((2.5,), (1e-8, 1.2, 9.0, 200.0)),
    "beta": ((2.5, 3.5), (1e-8, 0.2, 0.7, 0.9999)),
    "expon": ((), (1e-8, 0.7, 40.0)),
    "weibull_min": ((1.7,), (1e-8, 0.7, 12.0)),
    "lognorm": ((0.7,), (1e-8, 0.7, 1e4)),
    "uniform": ((), (0.1, 0.7, 0.999)),
    "poisson": ((3.5,), (0.0, 4.0, 60.0)),
    "binom": ((10.0, 0.3), (0.0, 4.0, 9.0)),
}
PROBABILITIES = (1e-9, 0.2, 0.5, 0.93)
LOC, SCALE = 0.25, 1.5


def cases() -> list[tuple[str, str, tuple[float, ...]]]:
    return [
        (name, method, shapes)
        for name, (shapes, _points) in POINTS.items()
        for method in probability.methods(f"scipy.stats.{name}")
    ]


def test_all_distributions_and_functions_are_compared():
    assert POINTS.keys() == DISTRIBUTIONS["scipy.stats"]
    torch = {
        m for name in DISTRIBUTIONS["torch.distributions"] for m in probability.methods(f"torch.distributions.{name}")
    }
    assert {method for _, method, _ in cases()} | torch == METHODS


@pytest.mark.parametrize(("name", "method", "shapes"), cases())
def test_values_are_those_of_scipy(name, method, shapes):
    of_points = POINTS[name][1] if method not in ("ppf", "isf") else PROBABILITIES
    theirs = getattr(getattr(stats, name), method)
    discrete = method in ("pmf", "logpmf") or name in ("poisson", "binom")
    options = (2.0,) if discrete else (LOC, SCALE)
    names = "abc"[: len(shapes)]
    program = f"scipy.stats.{name}.{method}(x, {''.join(f'{n}, ' for n in names)}{', '.join(map(str, options))})"
    for z in of_points:
        x = z if method in ("ppf", "isf") else z + 2.0 if discrete else LOC + SCALE * z
        found = gradcli.compile(program)(x=x, **dict(zip(names, shapes)))
        expected = theirs(x, *shapes, *options)
        if method in ("logcdf", "logsf") and -1e-9 < expected < 0:
            # SciPy takes the logarithm of a number that is rounded to 1.
            assert found == pytest.approx(expected, abs=1e-15)
        else:
            # SciPy's tail quantiles of F have 8 digits.
            rel = 1e-7 if (name, method) == ("f", "isf") else 1e-11
            assert found == pytest.approx(expected, rel=rel), (x, program)


def _normal(x: Any, m: Any, s: Any) -> Any:
    return mpmath.ncdf((x - m) / s)


def _student(x: Any, df: Any) -> Any:
    tail = mpmath.betainc(df / 2, mpf(1) / 2, 0, df / (df + x * x), regularized=True) / 2
    return tail if x < 0 else 1 - tail


def _gamma(x: Any, a: Any, scale: Any) -> Any:
    return mpmath.gammainc(a, 0, x / scale, regularized=True)


def _beta(x: Any, a: Any, b: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _f_tail(x: Any, n: Any, d: Any) -> Any:
    return mpmath.betainc(d / 2, n / 2, 0, d / (n * x + d), regularized=True)


def _inverse(function: Callable[..., Any], p: Any, *parameters: Any, start: float) -> Any:
    return mpmath.findroot(lambda x: function(x, *parameters) - p, (start, start * 1.0001), verify=False)


def _log(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: mpmath.log(function(*operands))


EXACT: list[tuple[str, Callable[..., Any], dict[str, float]]] = [
    ("scipy.stats.norm.cdf(x, loc=m, scale=s)", _normal, {"x": -20.0, "m": 0.3, "s": 1.2}),
    ("jax.scipy.stats.norm.logcdf(x, m, s)", _log(_normal), {"x": -70.0, "m": 0.3, "s": 1.2}),
    ("torch.distributions.Normal(m, s).cdf(x)", _normal, {"x": 2.0, "m": 0.3, "s": 1.2}),
    ("scipy.stats.t.cdf(x, v)", _student, {"x": -200.0, "v": 2.5}),
    ("scipy.stats.t.sf(x, v)", lambda x, v: _student(-x, v), {"x": 0.02, "v": 30.0}),
    ("scipy.stats.gamma.cdf(x, a, scale=s)", _gamma, {"x": 1e-4, "a": 2.5, "s": 0.7}),
    ("scipy.stats.gamma.sf(x, a, scale=s)", lambda x, a, s: 1 - _gamma(x, a, s), {"x": 60.0, "a": 2.5, "s": 0.7}),
    ("torch.distributions.Gamma(a, r).cdf(x)", lambda x, a, r: _gamma(x, a, 1 / r), {"x": 3.0, "a": 2.5, "r": 0.7}),
    ("scipy.stats.chi2.logsf(x, v)", _log(lambda x, v: mpmath.gammainc(v / 2, x / 2, regularized=True)), {"x": 300.0, "v": 3.5}),
    ("scipy.stats.beta.cdf(x, a, b)", _beta, {"x": 1e-5, "a": 2.5, "b": 0.7}),
    ("scipy.stats.f.sf(x, n, d)", _f_tail, {"x": 50.0, "n": 3.5, "d": 8.0}),
    (
        "scipy.stats.weibull_min.sf(x, c, scale=s)",
        lambda x, c, s: mpmath.exp(-((x / s) ** c)), {"x": 20.0, "c": 1.7, "s": 2.5},
    ),
    ("scipy.stats.lognorm.logpdf(x, s)", lambda x, s: -mpmath.log(x) ** 2 / (2 * s * s) - mpmath.log(x * s) - mpmath.log(2 * mpmath.pi) / 2, {"x": 1e-5, "s": 0.7}),
    ("scipy.stats.gamma.ppf(p, a)", lambda p, a: _inverse(lambda x, a: _gamma(x, a, 1), p, a, start=0.0158), {"p": 1e-4, "a": 2.5}),
    ("scipy.stats.beta.isf(p, a, b)", lambda p, a, b: 1 - _inverse(_beta, p, b, a, start=0.085), {"p": 1e-3, "a": 2.5, "b": 3.5}),
    ("scipy.stats.t.ppf(p, v)", lambda p, v: -_inverse(_student, 1 - p, v, start=4.5), {"p": 0.01, "v": 2.5}),
    ("torch.distributions.Weibull(s, c).log_prob(x)", lambda x, s, c: mpmath.log(c / s) + (c - 1) * mpmath.log(x / s) - (x / s) ** c, {"x": 3.0, "s": 2.0, "c": 1.7}),
]  # fmt: skip


@pytest.mark.parametrize(("program", "function", "point"), EXACT, ids=lambda value: value if type(value) is str else "")
def test_values_and_gradients_are_exact(program, function, point):
    value, gradient = gradcli.compile(program).value_and_grad(point)
    with mpmath.workdps(60):
        numbers = [mpf(x) for x in point.values()]
        assert float(value) == pytest.approx(float(function(*numbers)), rel=1e-12)
        for i, name in enumerate(point):
            order = tuple(int(i == k) for k in range(len(numbers)))
            expected = float(mpmath.diff(function, tuple(numbers), order))
            assert float(gradient[name]) == pytest.approx(expected, rel=1e-11)


SPELLINGS = [
    "scipy.stats.norm.logpdf(x, loc=m, scale=s)",
    "scipy.stats.norm(m, scale=s).logpdf(x)",
    "from scipy import stats; stats.norm.logpdf(x, m, s)",
    "import scipy.stats as st; st.norm.logpdf(x, m, s)",
    "from scipy.stats import norm; d = norm(m, s); d.logpdf(x)",
    "import jax.scipy as jsp; jsp.stats.norm.logpdf(x, m, scale=s)",
    "torch.distributions.Normal(m, s).log_prob(x)",
    "from torch.distributions import Normal; Normal(loc=m, scale=s).log_prob(x)",
    "import torch.distributions as dist; d = dist.Normal(m, s); d.log_prob(x)",
]


@pytest.mark.parametrize("program", SPELLINGS)
def test_the_ways_to_write_a_distribution(run, program):
    found = run("eval", program, "x=0.7", "m=0.2", "s=1.5", "--json").json
    assert found["value"] == pytest.approx(stats.norm.logpdf(0.7, 0.2, 1.5), rel=1e-14)
    assert found["grad"]["s"] == pytest.approx(0.25 / 1.5**3 - 1 / 1.5, rel=1e-14)


def test_outside_the_support(run):
    program = "[scipy.stats.gamma.pdf(x, 2), scipy.stats.gamma.logpdf(x, 2), scipy.stats.gamma.sf(x, 2)]"
    assert "[  0., -inf,   1.]" in run("eval", program, "x=-1", "--no-grad").out


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("scipy.stats.norm.entropy(x)", "'scipy.stats.norm' has no function 'entropy' here"),
        ("scipy.stats.cauchy.pdf(x)", "there is no distribution 'scipy.stats.cauchy' here"),
        ("x.pdf(3)", "'pdf' is a function of distributions, and this is none"),
        ("scipy.stats.norm(x, 1)", "the value of the program needs a number or a tensor, and this is a distribution"),
        ("torch.distributions.Normal(x).log_prob(1)", "'Normal' needs 'scale'"),
        ("torch.distributions.Poisson(x).icdf(0.5)", "'torch.distributions.Poisson' has no function 'icdf' here"),
    ],
)
def test_what_a_distribution_lacks(run, program, message):
    outcome = run("eval", program, "x=1")
    assert outcome.status != 0
    assert outcome.err.splitlines()[0] == f"error: {message}"


def test_a_sample_of_values_is_one_tensor(run):
    found = run("eval", "-sum(scipy.stats.norm.logpdf(y, m, s))", "y=[1,2,4]", "m=2", "s=1.5", "--json").json
    assert found["value"] == pytest.approx(-stats.norm.logpdf([1, 2, 4], 2, 1.5).sum(), rel=1e-14)
    assert np.shape(found["grad"]["y"]) == (3,)


def test_the_density_at_0_has_a_derivative_by_the_scale() -> None:
    at_zero = gradcli.compile("diff(scipy.stats.chi2.logpdf(x, 4, scale=s), s)")
    assert at_zero(x=0.0, s=2.0) == pytest.approx(-2 / 2.0)
    assert gradcli.compile("diff(scipy.stats.gamma.logpdf(x, 2, 1, s), s)")(x=1.0, s=4.0) == pytest.approx(-2 / 4.0)
