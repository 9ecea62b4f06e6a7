"""Probability distributions under the names of SciPy, JAX and PyTorch, each declared once.

The functions of a distribution take z = (x - loc)/scale and the shape parameters, its quantiles p and the shape
parameters. They are evaluated inside the support only; the values outside, 0 or infinite, are filled in here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from gradcli.arrays.mathematical_constants import by_formula
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.entries.arithmetic import add, divide, floor, multiply, negative, ones_like, subtract
from gradcli.primitives.entries.comparisons import equal, greater, less, logical_or, not_equal, where
from gradcli.primitives.entries.exponential import exp, expm1, log, log1p, xlog1py, xlogy
from gradcli.primitives.entries.powers import power
from gradcli.primitives.entries.special_functions.distributions import log_ndtr, log_student_density, stdtr, stdtrit
from gradcli.primitives.entries.special_functions.incomplete_inverses import (
    betaincc,
    betainccinv,
    betaincinv,
    gammainccinv,
    gammaincinv,
)
from gradcli.primitives.entries.special_functions.integrals import (
    beta_density,
    betainc,
    gamma_density,
    gammainc,
    gammaincc,
)
from gradcli.primitives.entries.special_functions.special import betaln, lgamma, ndtr, ndtri
from gradcli.primitives.operation import Composite

Function = Callable[..., Any]
_half_log_2_pi, _over_sqrt_2_pi = (
    by_formula(lambda m: 0.5 * m.log(2.0 * m.pi)),
    by_formula(lambda m: 1.0 / m.sqrt(2.0 * m.pi)),
)
# Where the density is below this bound, its logarithm is computed from logarithms rather than from the density.
_SMALL_DENSITY = 1e-250


class DistributionFunctions(NamedTuple):
    """A distribution.

    shapes
        SciPy's names of the shape parameters
    below, above
        the distribution function and its complement; `quantile` and `tail` are their inverses
    torch
        PyTorch's parameters, and a function from them to the shape parameters, loc and scale
    support
        the ends of the support in z; `inside` is a point in it
    discrete
        whether it is on integers, with a mass instead of a density and without a scale
    last
        the largest integer of the support of a discrete distribution, as a function of the shape parameters
    near_zero
        where a scale moves the singularity of the density at z = 0: functions `exponent(*shapes)` and `rest(z, *shapes)`
        with log_density = exponent*log(z) + rest. By z alone its derivative is infinite there, and by the scale it is not
    """

    shapes: str
    log_density: Function
    below: Function
    above: Function
    quantile: Function | None
    tail: Function | None
    torch: tuple[str, Function]
    density: Function | None = None
    log_above: Function | None = None
    log_below: Function | None = None
    support: tuple[float, float] = (0.0, math.inf)
    inside: float = 0.5
    discrete: bool = False
    last: Function | None = None
    near_zero: tuple[Function, Function] | None = None


def _log_gamma_density(z: Any, a: Any) -> Any:
    """The logarithm of the gamma density: of the density itself, which is accurate for large a, unless that is near
    underflow."""
    density = gamma_density(a, z)
    small = less(density, _SMALL_DENSITY)
    plain = subtract(subtract(xlogy(subtract(a, 1.0), z), z), lgamma(a))
    return where(small, plain, log(where(small, 1.0, density)))


def _gamma_rest(z: Any, a: Any) -> Any:
    """The logarithm of the gamma density without its power of z."""
    return negative(add(z, lgamma(a)))


def _student(z: Any, df: Any) -> Any:
    return log_student_density(df, z)


def _f_share(z: Any, n: Any, d: Any) -> Any:
    """The argument n*z/(n*z + d) of the beta distribution function that gives the F distribution function at z."""
    return divide(multiply(n, z), add(multiply(n, z), d))


def _f_log_density(z: Any, n: Any, d: Any) -> Any:
    half, other = multiply(0.5, n), multiply(0.5, d)
    ratio = divide(n, d)
    powers = add(multiply(half, log(ratio)), xlogy(subtract(half, 1.0), z))
    return subtract(subtract(powers, multiply(add(half, other), log1p(multiply(ratio, z)))), betaln(half, other))


def _f_quantile(inverse: Function, other: Function) -> Function:
    def quantile(p: Any, n: Any, d: Any) -> Any:
        below, above = inverse(0.5 * n, 0.5 * d, p), other(0.5 * d, 0.5 * n, p)
        return divide(multiply(d, below), multiply(n, above))

    return quantile


def _binomial_log_mass(k: Any, n: Any, p: Any) -> Any:
    rest = subtract(n, k)
    choices = add(betaln(add(rest, 1.0), add(k, 1.0)), log(add(n, 1.0)))
    return subtract(add(xlogy(k, p), xlog1py(rest, negative(p))), choices)


_DECLARED: Mapping[str, DistributionFunctions] = {
    "norm": DistributionFunctions(
        "",
        log_density=lambda z: subtract(multiply(-0.5, multiply(z, z)), _half_log_2_pi()),
        density=lambda z: multiply(exp(multiply(-0.5, multiply(z, z))), _over_sqrt_2_pi()),
        below=ndtr, above=lambda z: ndtr(negative(z)),
        log_below=log_ndtr, log_above=lambda z: log_ndtr(negative(z)),
        quantile=ndtri, tail=lambda p: negative(ndtri(p)),
        support=(-math.inf, math.inf),
        torch=("loc, scale", lambda loc, scale: ((), loc, scale)),
    ),
    "t": DistributionFunctions(
        "df",
        log_density=_student,
        below=lambda z, df: stdtr(df, z), above=lambda z, df: stdtr(df, negative(z)),
        quantile=lambda p, df: stdtrit(df, p), tail=lambda p, df: negative(stdtrit(df, p)),
        support=(-math.inf, math.inf),
        torch=("df, loc=0.0, scale=1.0", lambda df, loc, scale: ((df,), loc, scale)),
    ),
    "chi2": DistributionFunctions(
        "df",
        log_density=lambda z, df: subtract(_log_gamma_density(0.5 * z, 0.5 * df), log(2.0 * ones_like(z))),
        density=lambda z, df: multiply(0.5, gamma_density(0.5 * df, 0.5 * z)),
        below=lambda z, df: gammainc(0.5 * df, 0.5 * z), above=lambda z, df: gammaincc(0.5 * df, 0.5 * z),
        quantile=lambda p, df: multiply(2.0, gammaincinv(0.5 * df, p)),
        tail=lambda p, df: multiply(2.0, gammainccinv(0.5 * df, p)),
        near_zero=(
            lambda df: subtract(0.5 * df, 1.0),
            lambda z, df: subtract(_gamma_rest(0.5 * z, 0.5 * df), 0.5 * df * log(2.0 * ones_like(z))),
        ),
        torch=("df", lambda df: ((df,), 0.0, 1.0)),
    ),
    "f": DistributionFunctions(
        "dfn, dfd",
        log_density=_f_log_density,
        below=lambda z, n, d: betainc(0.5 * n, 0.5 * d, _f_share(z, n, d)),
        above=lambda z, n, d: betainc(0.5 * d, 0.5 * n, divide(d, add(multiply(n, z), d))),
        quantile=_f_quantile(betaincinv, betainccinv), tail=_f_quantile(betainccinv, betaincinv),
        torch=("df1, df2", lambda df1, df2: ((df1, df2), 0.0, 1.0)),
    ),
    "gamma": DistributionFunctions(
        "a",
        log_density=_log_gamma_density, density=lambda z, a: gamma_density(a, z),
        below=lambda z, a: gammainc(a, z), above=lambda z, a: gammaincc(a, z),
        quantile=lambda p, a: gammaincinv(a, p), tail=lambda p, a: gammainccinv(a, p),
        near_zero=(lambda a: subtract(a, 1.0), _gamma_rest),
        torch=("concentration, rate", lambda a, rate: ((a,), 0.0, divide(1.0, rate))),
    ),
    "beta": DistributionFunctions(
        "a, b",
        log_density=lambda z, a, b: subtract(
            add(xlogy(subtract(a, 1.0), z), xlog1py(subtract(b, 1.0), negative(z))), betaln(a, b)
        ),
        density=lambda z, a, b: beta_density(a, b, z),
        below=lambda z, a, b: betainc(a, b, z), above=lambda z, a, b: betaincc(a, b, z),
        quantile=lambda p, a, b: betaincinv(a, b, p), tail=lambda p, a, b: betainccinv(a, b, p),
        support=(0.0, 1.0),
        torch=("concentration1, concentration0", lambda a, b: ((a, b), 0.0, 1.0)),
    ),
    "expon": DistributionFunctions(
        "",
        log_density=negative, density=lambda z: exp(negative(z)),
        below=lambda z: negative(expm1(negative(z))), above=lambda z: exp(negative(z)), log_above=negative,
        quantile=lambda p: negative(log1p(negative(p))), tail=lambda p: negative(log(p)),
        torch=("rate", lambda rate: ((), 0.0, divide(1.0, rate))),
    ),
    "weibull_min": DistributionFunctions(
        "c",
        log_density=lambda z, c: subtract(add(log(c), xlogy(subtract(c, 1.0), z)), power(z, c)),
        density=lambda z, c: multiply(multiply(c, power(z, subtract(c, 1.0))), exp(negative(power(z, c)))),
        below=lambda z, c: negative(expm1(negative(power(z, c)))), above=lambda z, c: exp(negative(power(z, c))),
        log_above=lambda z, c: negative(power(z, c)),
        quantile=lambda p, c: power(negative(log1p(negative(p))), divide(1.0, c)),
        tail=lambda p, c: power(negative(log(p)), divide(1.0, c)),
        torch=("scale, concentration", lambda scale, c: ((c,), 0.0, scale)),
    ),
    "lognorm": DistributionFunctions(
        "s",
        log_density=lambda z, s: subtract(
            multiply(-0.5, power(divide(log(z), s), 2.0)), add(log(multiply(s, z)), _half_log_2_pi())
        ),
        below=lambda z, s: ndtr(divide(log(z), s)), above=lambda z, s: ndtr(negative(divide(log(z), s))),
        log_below=lambda z, s: log_ndtr(divide(log(z), s)),
        log_above=lambda z, s: log_ndtr(negative(divide(log(z), s))),
        quantile=lambda p, s: exp(multiply(s, ndtri(p))), tail=lambda p, s: exp(negative(multiply(s, ndtri(p)))),
        torch=("loc, scale", lambda loc, scale: ((scale,), 0.0, exp(loc))),
    ),
    "uniform": DistributionFunctions(
        "",
        log_density=lambda z: multiply(0.0, z), density=ones_like,
        below=lambda z: z, above=lambda z: subtract(1.0, z),
        quantile=lambda p: p, tail=lambda p: subtract(1.0, p),
        support=(0.0, 1.0),
        torch=("low, high", lambda low, high: ((), low, subtract(high, low))),
    ),
    "poisson": DistributionFunctions(
        "mu",
        log_density=lambda k, mu: _log_gamma_density(mu, add(k, 1.0)),
        density=lambda k, mu: gamma_density(add(k, 1.0), mu),
        below=lambda k, mu: gammaincc(add(k, 1.0), mu), above=lambda k, mu: gammainc(add(k, 1.0), mu),
        quantile=None, tail=None,
        inside=1.0, discrete=True,
        torch=("rate", lambda rate: ((rate,), 0.0, 1.0)),
    ),
    "binom": DistributionFunctions(
        "n, p",
        log_density=_binomial_log_mass,
        below=lambda k, n, p: betaincc(add(k, 1.0), subtract(n, k), p),
        above=lambda k, n, p: betainc(add(k, 1.0), subtract(n, k), p),
        quantile=None, tail=None,
        inside=0.0, discrete=True, last=lambda n, _p: n,
        torch=("total_count, probs", lambda n, p: ((n, p), 0.0, 1.0)),
    ),
}  # fmt: skip

# The distributions of torch.distributions, by the names used here.
_IN_TORCH = {
    "Normal": "norm", "StudentT": "t", "Chi2": "chi2", "FisherSnedecor": "f", "Gamma": "gamma", "Beta": "beta",
    "Exponential": "expon", "Weibull": "weibull_min", "LogNormal": "lognorm", "Uniform": "uniform", "Poisson": "poisson",
    "Binomial": "binom",
}  # fmt: skip


def _log_of(probability: Function, other: Function) -> Function:
    """The logarithm of `probability`, by log1p of its complement `other` where that is the smaller one."""

    def logarithm(*operands: Any) -> Any:
        low, high = probability(*operands), other(*operands)
        small = less(low, 0.5)
        return where(small, log(where(small, low, 1.0)), log1p(negative(where(small, 0.0, high))))

    return logarithm


class _Method(NamedTuple):
    """A method of a distribution: its function of z or of a probability, and the values below and above the support.

    `scaled` is "divided" if the result is divided by the scale, "logarithm" if log(scale) is subtracted.
    """

    doc: str
    function: Function
    outside: tuple[float, float] = (0.0, 0.0)
    scaled: str = ""


def _methods(d: DistributionFunctions) -> Mapping[str, _Method]:
    density = d.density or (lambda *operands: exp(d.log_density(*operands)))
    infinite = (-math.inf, -math.inf)
    mass = "mass" if d.discrete else "density"
    found = {
        "pmf" if d.discrete else "pdf": _Method(mass, density, scaled="divided"),
        "logpmf" if d.discrete else "logpdf": _Method(f"logarithm of the {mass}", d.log_density, infinite, "logarithm"),
        "cdf": _Method("distribution function", d.below, (0.0, 1.0)),
        "logcdf": _Method(
            "logarithm of the distribution function", d.log_below or _log_of(d.below, d.above), (-math.inf, 0.0)
        ),
        "sf": _Method("1 - the distribution function", d.above, (1.0, 0.0)),
        "logsf": _Method(
            "logarithm of 1 - the distribution function", d.log_above or _log_of(d.above, d.below), (0.0, -math.inf)
        ),
    }
    if d.quantile is not None and d.tail is not None:
        found["ppf"] = _Method("quantile of p", d.quantile)
        found["isf"] = _Method("quantile of 1 - p", d.tail)
    return found


def _of_point(d: DistributionFunctions, method: _Method, is_mass: bool) -> Function:
    """A method as a function of x, the shape parameters, loc and scale."""
    low, high = d.support

    def function(x: Any, shapes: Sequence[Any], loc: Any, scale: Any) -> Any:
        z = divide(subtract(x, loc), scale)
        if method.scaled == "logarithm" and d.near_zero is not None and not assume(not_equal(constant(z), 0.0)):
            at_zero = equal(z, 0.0)
            there = _log_density_at_zero(d.near_zero, where(at_zero, subtract(x, loc), 1.0), shapes, scale)
            return where(at_zero, there, away_from_zero(where(at_zero, d.inside, z), shapes, scale))
        return away_from_zero(z, shapes, scale)

    def away_from_zero(z: Any, shapes: Sequence[Any], scale: Any) -> Any:
        if d.discrete and not is_mass:
            z = floor(z)
        below = less(z, low) if low > -math.inf else None
        last = d.last(*shapes) if d.last is not None else high
        # The formulas of discrete distribution functions are not valid at the last integer, so it counts as above.
        above = logical_or(greater(z, last), equal(z, last)) if d.last is not None and not is_mass else greater(z, last)
        if below is None:
            value = method.function(z, *shapes)
        else:
            between = logical_or(below, above)
            if d.discrete and is_mass:
                between = logical_or(between, greater(z, floor(z)))
            value = method.function(where(between, d.inside, z), *shapes)
            value = where(between, where(above, method.outside[1], method.outside[0]), value)
        if method.scaled == "divided":
            return divide(value, scale)
        return subtract(value, log(scale)) if method.scaled == "logarithm" else value

    return function


def _log_density_at_zero(near_zero: tuple[Function, Function], x: Any, shapes: Sequence[Any], scale: Any) -> Any:
    """The logarithm of a density at x = 0, by logarithms of x and of the scale rather than of their quotient."""
    exponent_of, rest = near_zero
    exponent = exponent_of(*shapes)
    logarithms = subtract(xlogy(exponent, x), multiply(add(exponent, 1.0), log(scale)))
    return add(logarithms, rest(divide(x, scale), *shapes))


def _of_probability(method: _Method) -> Function:
    return lambda p, shapes, loc, scale: add(loc, multiply(scale, method.function(p, *shapes)))


def _in_scipy(name: str, d: DistributionFunctions) -> dict[str, Composite]:
    count = len(d.shapes.split(", ")) if d.shapes else 0
    options = ("loc",) if d.discrete else ("loc", "scale")

    def entry(method_name: str, method: _Method) -> Composite:
        of = _function(d, method_name, method)

        def definition(x: Any, *rest: Any, **named: Any) -> Any:
            given = dict(zip(options, rest[count:])) | named
            return of(x, rest[:count], given.get("loc", 0.0), given.get("scale", 1.0))

        first = "q" if method_name in _QUANTILES else "k" if d.discrete else "x"
        signature = ", ".join([first, *d.shapes.split(", ")] if d.shapes else [first])
        signature += ", loc=0.0" if d.discrete else ", loc=0.0, scale=1.0"
        return _entry(method_name, signature, method.doc, definition, f"scipy.stats.{name}")

    return {method_name: entry(method_name, method) for method_name, method in _methods(d).items()}


def _in_torch(name: str, d: DistributionFunctions) -> dict[str, Composite]:
    methods = _methods(d)
    parameters, read = d.torch
    found = {}
    for method_name, own in (("log_prob", "logpmf" if d.discrete else "logpdf"), ("cdf", "cdf"), ("icdf", "ppf")):
        if own in methods:
            of = _function(d, own, methods[own])
            defaults = [p.partition("=")[2] for p in parameters.split(", ")]

            def definition(value: Any, *given: Any, of: Function = of, defaults: Any = defaults, **named: Any) -> Any:
                names = [p.partition("=")[0] for p in parameters.split(", ")]
                rest = [named.get(n, float(x or "nan")) for n, x in zip(names, defaults)][len(given) :]
                return of(value, *read(*given, *rest))

            doc = methods[own].doc
            found[method_name] = _entry(
                method_name, f"value, {parameters}", doc, definition, f"torch.distributions.{name}"
            )
    return found


_QUANTILES, _MASSES = ("ppf", "isf"), ("pdf", "pmf", "logpdf", "logpmf")


def _function(d: DistributionFunctions, name: str, method: _Method) -> Function:
    return _of_probability(method) if name in _QUANTILES else _of_point(d, method, name in _MASSES)


def _entry(name: str, signature: str, doc: str, definition: Function, dialect: str) -> Composite:
    return Composite(
        name, signature, f"{doc} of {dialect}", definition,
        derivative="that of its formula, by all parameters", dialects=dialect,
    )  # fmt: skip


@cache
def methods(distribution: str) -> Mapping[str, Composite]:
    """The functions of a distribution, given as `scipy.stats.norm` or `torch.distributions.Normal`, by name."""
    library, _, name = distribution.removeprefix("jax.").rpartition(".")
    return _in_scipy(name, _DECLARED[name]) if library == "scipy.stats" else _in_torch(name, _DECLARED[_IN_TORCH[name]])


def parameters(distribution: str) -> str:
    """The signature of the parameters that construct a distribution."""
    library, _, name = distribution.removeprefix("jax.").rpartition(".")
    if library != "scipy.stats":
        return _DECLARED[_IN_TORCH[name]].torch[0]
    d = _DECLARED[name]
    shapes = f"{d.shapes}, " if d.shapes else ""
    return f"{shapes}loc=0.0" if d.discrete else f"{shapes}loc=0.0, scale=1.0"
