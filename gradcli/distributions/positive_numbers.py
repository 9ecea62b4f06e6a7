"""Continuous distributions of numbers above a bound: heavy tails, extreme values, ratios."""

from __future__ import annotations

import math
from typing import Any

from gradcli.autograd import generators
from gradcli.distributions import constraints
from gradcli.distributions.constraints import Constraint
from gradcli.distributions.distribution import Univariate, as_tensor, constrained, dtype_of
from gradcli.distributions.univariate import EULER_GAMMA, Cauchy, FoldedAtZero, Gamma
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.special_functions.special import digamma, lgamma


class HalfCauchy(FoldedAtZero):
    """The distribution of abs(x) for x of a Cauchy distribution with centre 0 and half-width `scale`."""

    @property
    def _both(self) -> Cauchy:
        return Cauchy(0.0, self.scale, False)

    @property
    def mean(self) -> Any:
        return self.scale * 0.0 + math.inf

    variance = mean


class Weibull(Univariate):
    """The distribution of scale*x**(1/concentration) for exponential x with mean 1."""

    has_rsample = True
    support = constraints.positive
    parameter_names = ("scale", "concentration")
    arg_constraints = constrained(scale=constraints.positive, concentration=constraints.positive)

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        super().__init__(scale, concentration, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = as_tensor(generators.exponential(self._extended_shape(sample_shape), dtype_of(self.scale)))
        return self.scale * drawn ** (1 / self.concentration)

    def _log_prob(self, value: Any) -> Any:
        x, k = as_tensor(value) / self.scale, self.concentration
        return (k / self.scale).log() + (k - 1) * x.log() - x**k

    def cdf(self, value: Any) -> Any:
        return -(-((as_tensor(value) / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Any) -> Any:
        return self.scale * (-(-as_tensor(value)).log1p()) ** (1 / self.concentration)

    def entropy(self) -> Any:
        return EULER_GAMMA * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1

    def _moment(self, order: int) -> Any:
        return self.scale**order * lgamma(1 + order / self.concentration).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** (1 / k)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self._moment(1) ** 2


class Pareto(Univariate):
    """The distribution above `scale` with density proportional to x**(-alpha - 1)."""

    has_rsample = True
    parameter_names = ("scale", "alpha")
    arg_constraints = constrained(scale=constraints.positive, alpha=constraints.positive)
    alpha: Any

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        super().__init__(scale, alpha, validate_args=validate_args)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        return constraints.greater_than_eq(self.scale)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = as_tensor(generators.exponential(self._extended_shape(sample_shape), dtype_of(self.scale)))
        return self.scale * (drawn / self.alpha).exp()

    def _log_prob(self, value: Any) -> Any:
        x = as_tensor(value)
        return self.alpha.log() + self.alpha * (self.scale / x).log() - x.log()

    def cdf(self, value: Any) -> Any:
        return -(self.alpha * (self.scale / as_tensor(value)).log()).expm1()

    def icdf(self, value: Any) -> Any:
        return self.scale * (-(-as_tensor(value)).log1p() / self.alpha).exp()

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)

    @property
    def mean(self) -> Any:
        a = where(self.alpha > 1, self.alpha, 2.0)
        return where(self.alpha > 1, a * self.scale / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = where(self.alpha > 2, self.alpha, 3.0)
        return where(self.alpha > 2, self.scale**2 * a / ((a - 1) ** 2 * (a - 2)), math.inf)


class InverseGamma(Univariate):
    """The distribution of 1/x for x of a gamma distribution."""

    has_rsample = True
    support = constraints.positive
    parameter_names = ("concentration", "rate")
    arg_constraints = constrained(concentration=constraints.positive, rate=constraints.positive)

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(concentration, rate, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return 1 / Gamma(self.concentration, self.rate, False).rsample(sample_shape)

    def _log_prob(self, value: Any) -> Any:
        x, a = as_tensor(value), self.concentration
        return a * self.rate.log() - lgamma(a) - (a + 1) * x.log() - self.rate / x

    def cdf(self, value: Any) -> Any:
        return 1 - Gamma(self.concentration, self.rate, False).cdf(1 / as_tensor(value))

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + lgamma(a) - (1 + a) * digamma(a)

    @property
    def mean(self) -> Any:
        a = where(self.concentration > 1, self.concentration, 2.0)
        return where(self.concentration > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = where(self.concentration > 2, self.concentration, 3.0)
        return where(self.concentration > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)


class FisherSnedecor(Univariate):
    """The F distribution: of the ratio of two chi-squared numbers, each divided by its degrees of freedom."""

    has_rsample = True
    support = constraints.positive
    parameter_names = ("df1", "df2")
    arg_constraints = constrained(df1=constraints.positive, df2=constraints.positive)
    df1: Any
    df2: Any

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        super().__init__(df1, df2, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        above, below = (Gamma(df / 2, df, False).rsample(sample_shape) for df in (self.df1, self.df2))
        return above / below

    def _log_prob(self, value: Any) -> Any:
        x, one, two, ratio = as_tensor(value), self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        return (
            lgamma(one + two) - lgamma(one) - lgamma(two)
            + one * ratio.log() + (one - 1) * x.log() - (one + two) * (ratio * x).log1p()
        )  # fmt: skip

    @property
    def mean(self) -> Any:
        df = where(self.df2 > 2, self.df2, math.nan)
        return df / (df - 2)

    @property
    def mode(self) -> Any:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Any:
        df = where(self.df2 > 4, self.df2, math.nan)
        return 2 * df**2 * (self.df1 + df - 2) / (self.df1 * (df - 2) ** 2 * (df - 4))


class GeneralizedPareto(Univariate):
    """The limit distribution of what exceeds a high bound `loc`: its tail is heavy for a positive `concentration`,
    exponential for 0, and ends for a negative one."""

    has_rsample = True
    parameter_names = ("loc", "scale", "concentration")
    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive, concentration=constraints.real)

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, scale, concentration, validate_args=validate_args)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        ends = where(self.concentration < 0, self.loc - self.scale / self._nonzero, math.inf)
        return constraints.interval(self.loc, ends)

    @property
    def _is_exponential(self) -> Any:
        # Below the tolerance of PyTorch's isclose.
        return self.concentration.abs() <= 1e-8

    @property
    def _nonzero(self) -> Any:
        return where(self._is_exponential, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(as_tensor(generators.uniform(self._extended_shape(sample_shape), dtype_of(self.loc))))

    def _log_prob(self, value: Any) -> Any:
        z, k = (as_tensor(value) - self.loc) / self.scale, self._nonzero
        return -self.scale.log() - where(self._is_exponential, z, (1 / k + 1) * (k * z).log1p())

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of numbers above a value."""
        z, k = (as_tensor(value) - self.loc) / self.scale, self._nonzero
        return where(self._is_exponential, -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Any) -> Any:
        left, k = (-as_tensor(value)).log1p(), self._nonzero
        return self.loc + self.scale * where(self._is_exponential, -left, (-k * left).expm1() / k)

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1

    @property
    def mean(self) -> Any:
        k = where(self.concentration < 1, self.concentration, math.nan)
        return self.loc + self.scale / (1 - k)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        k = where(self.concentration < 0.5, self.concentration, math.nan)
        return self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
