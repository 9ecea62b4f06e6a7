"""Continuous distributions of single numbers."""

from __future__ import annotations

import math
from typing import Any

from gradcli.autograd import generators
from gradcli.distributions import constraints
from gradcli.distributions.constraints import Constraint
from gradcli.distributions.distribution import (
    LOG_2_PI,
    Univariate,
    as_tensor,
    constrained,
    dtype_of,
)
from gradcli.errors import ArgumentError
from gradcli.primitives.entries.comparisons import clip, logical_and, where
from gradcli.primitives.entries.special_functions.incomplete_inverses import betaincinv, gammaincinv
from gradcli.primitives.entries.special_functions.special import betaln, digamma, lgamma

# The Euler–Mascheroni constant, the mean of the standard Gumbel distribution.
EULER_GAMMA = 0.5772156649015329


class Normal(Univariate):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    has_rsample = True
    support = constraints.real
    parameter_names = ("loc", "scale")
    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = generators.normal(self._extended_shape(sample_shape), dtype_of(self.loc))
        return self.loc + drawn * self.scale

    def entropy(self) -> Any:
        return 0.5 + 0.5 * LOG_2_PI + self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        return self.scale**2

    @property
    def stddev(self) -> Any:
        return self.scale


class LogNormal(Univariate):
    """The distribution of exp(x) for normal x with mean `loc` and standard deviation `scale`."""

    has_rsample = True
    support = constraints.positive
    parameter_names = ("loc", "scale")
    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return Normal(self.loc, self.scale, False).rsample(sample_shape).exp()

    def entropy(self) -> Any:
        return Normal(self.loc, self.scale, False).entropy() + self.loc

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Any:
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()


class FoldedAtZero(Univariate):
    """The base class of the distributions of abs(x) for x of a distribution `_both` that is symmetric about 0."""

    has_rsample = True
    support = constraints.nonnegative
    parameter_names = ("scale",)
    arg_constraints = constrained(scale=constraints.positive)

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(scale, validate_args=validate_args)

    @property
    def _both(self) -> Univariate:
        raise NotImplementedError

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._both.rsample(sample_shape).abs()

    def _log_prob(self, value: Any) -> Any:
        x = as_tensor(value)
        return where(x >= 0, self._both.log_prob(x) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        return 2 * self._both.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self._both.icdf((as_tensor(value) + 1) / 2)

    def entropy(self) -> Any:
        return self._both.entropy() - math.log(2)

    @property
    def mode(self) -> Any:
        return self.scale * 0.0


class HalfNormal(FoldedAtZero):
    """The distribution of abs(x) for normal x with mean 0 and standard deviation `scale`."""

    @property
    def _both(self) -> Normal:
        return Normal(0.0, self.scale, False)

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale**2 * (1 - 2 / math.pi)


class Uniform(Univariate):
    """The uniform distribution on [low, high)."""

    has_rsample = True
    parameter_names = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        super().__init__(low, high, validate_args=validate_args)
        if validate_args is not False and not (self.low < self.high).all():
            raise ArgumentError("Uniform is not defined when low>= high")

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = generators.uniform(self._extended_shape(sample_shape), dtype_of(self.low))
        return self.low + drawn * (self.high - self.low)

    def _log_prob(self, value: Any) -> Any:
        x = as_tensor(value)
        inside = logical_and(x >= self.low, x < self.high)
        return where(inside, -(self.high - self.low).log(), -math.inf)

    def entropy(self) -> Any:
        return (self.high - self.low).log()

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return self.low * 0.0 + math.nan

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12


class Exponential(Univariate):
    """The exponential distribution with mean 1/rate."""

    has_rsample = True
    support = constraints.nonnegative
    parameter_names = ("rate",)
    arg_constraints = constrained(rate=constraints.positive)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(rate, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return generators.exponential(self._extended_shape(sample_shape), dtype_of(self.rate)) / self.rate

    def entropy(self) -> Any:
        return 1.0 - self.rate.log()

    @property
    def mean(self) -> Any:
        return 1.0 / self.rate

    stddev = mean

    @property
    def mode(self) -> Any:
        return self.rate * 0.0

    @property
    def variance(self) -> Any:
        return self.rate**-2


class Laplace(Univariate):
    """The Laplace distribution, with a density proportional to exp(-abs(x - loc)/scale)."""

    has_rsample = True
    support = constraints.real
    parameter_names = ("loc", "scale")
    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        dtype = dtype_of(self.loc)
        # As in PyTorch, larger than -1 by one rounding unit, so that the logarithm is finite.
        least = 2.0 ** (-23 if dtype == "float32" else -52) - 1.0
        drawn = as_tensor(generators.uniform(self._extended_shape(sample_shape), dtype, least, 1.0))
        return self.loc - self.scale * drawn.sign() * (-drawn.abs()).log1p()

    def _log_prob(self, value: Any) -> Any:
        return -(2 * self.scale).log() - (as_tensor(value) - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Any:
        x = as_tensor(value) - self.loc
        return 0.5 - 0.5 * x.sign() * (-x.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Any:
        term = as_tensor(value) - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        return 2 * self.scale**2


class Cauchy(Univariate):
    """The Cauchy distribution with centre `loc` and half-width `scale`; it has no mean."""

    has_rsample = True
    support = constraints.real
    parameter_names = ("loc", "scale")
    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(generators.uniform(self._extended_shape(sample_shape), dtype_of(self.loc)))

    def _log_prob(self, value: Any) -> Any:
        return -math.log(math.pi) - self.scale.log() - (((as_tensor(value) - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        return ((as_tensor(value) - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * (math.pi * (as_tensor(value) - 0.5)).tan()

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc * 0.0 + math.nan

    @property
    def variance(self) -> Any:
        return self.loc * 0.0 + math.inf

    @property
    def mode(self) -> Any:
        return self.loc


class Gumbel(Univariate):
    """The Gumbel distribution, the limit distribution of the maximum of many numbers."""

    has_rsample = True
    support = constraints.real
    parameter_names = ("loc", "scale")
    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = generators.exponential(self._extended_shape(sample_shape), dtype_of(self.loc))
        return self.loc - self.scale * as_tensor(drawn).log()

    def _log_prob(self, value: Any) -> Any:
        y = (self.loc - as_tensor(value)) / self.scale
        return (y - y.exp()) - self.scale.log()

    def cdf(self, value: Any) -> Any:
        return (-((self.loc - as_tensor(value)) / self.scale).exp()).exp()

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * (-as_tensor(value).log()).log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + EULER_GAMMA)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER_GAMMA

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return math.pi**2 / 6 * self.scale**2


class Gamma(Univariate):
    """The gamma distribution with mean concentration/rate."""

    has_rsample = True
    support = constraints.nonnegative
    parameter_names = ("concentration", "rate")
    arg_constraints = constrained(concentration=constraints.positive, rate=constraints.positive)

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(concentration, rate, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        # Quantiles of uniform numbers have the derivatives of PyTorch's samples.
        drawn = generators.uniform(self._extended_shape(sample_shape), dtype_of(self.concentration))
        return gammaincinv(self.concentration, drawn) / self.rate

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1.0 - a) * digamma(a)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return (self.concentration - 1).clip(min=0.0) / self.rate

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2


class Chi2(Univariate):
    """The distribution of a sum of `df` squares of standard normal numbers."""

    has_rsample = True
    support = constraints.nonnegative
    parameter_names = ("df",)
    arg_constraints = constrained(df=constraints.positive)

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(df, validate_args=validate_args)

    @property
    def _gamma(self) -> Gamma:
        return Gamma(0.5 * self.df, 0.5, False)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._gamma.rsample(sample_shape)

    def entropy(self) -> Any:
        return self._gamma.entropy()

    @property
    def mean(self) -> Any:
        return self._gamma.mean

    @property
    def mode(self) -> Any:
        return self._gamma.mode

    @property
    def variance(self) -> Any:
        return self._gamma.variance


class Beta(Univariate):
    """The distribution on [0, 1] with density proportional to x**(concentration1 - 1)*(1 - x)**(concentration0 - 1)."""

    has_rsample = True
    support = constraints.unit_interval
    parameter_names = ("concentration1", "concentration0")
    arg_constraints = constrained(concentration1=constraints.positive, concentration0=constraints.positive)

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        super().__init__(concentration1, concentration0, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = generators.uniform(self._extended_shape(sample_shape), dtype_of(self.concentration1))
        return betaincinv(self.concentration1, self.concentration0, drawn)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        a, b = (clip(x - 1, 0.0) for x in (self.concentration1, self.concentration0))
        one_end = a + b == 0
        return where(one_end, self.concentration1 >= self.concentration0, a / where(one_end, 1.0, a + b))

    @property
    def variance(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b) ** 2 * (a + b + 1))


class StudentT(Univariate):
    """Student's t distribution with `df` degrees of freedom."""

    has_rsample = True
    support = constraints.real
    parameter_names = ("df", "loc", "scale")
    arg_constraints = constrained(df=constraints.positive, loc=constraints.real, scale=constraints.positive)

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        super().__init__(df, loc, scale, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        normal = generators.normal(self._extended_shape(sample_shape), dtype_of(self.df))
        square = Chi2(self.df, False).rsample(sample_shape)
        return self.loc + self.scale * (normal * (self.df / square).sqrt())

    def entropy(self) -> Any:
        half = 0.5 * self.df
        lbeta = betaln(half, 0.5)
        spread = 0.5 * (self.df + 1) * (digamma(half + 0.5) - digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + lbeta

    @property
    def mean(self) -> Any:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        df, square = self.df, self.scale**2
        more = where(df > 2, square * df / where(df > 2, df - 2, 1.0), math.inf)
        return where(df > 1, more, math.nan)
