"""Continuous distributions of numbers in an interval, and of angles."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.autograd import generators
from gradcli.distributions import constraints
from gradcli.distributions.discrete import ProbabilityOrLogits, clipped_probs, numpy_generator
from gradcli.distributions.distribution import Univariate, as_tensor, constrained, dtype_of
from gradcli.distributions.univariate import EULER_GAMMA
from gradcli.primitives.entries.comparisons import clip, logical_or, where
from gradcli.primitives.entries.exponential import log1p, softplus
from gradcli.primitives.entries.special_functions.bessel import i0e, i1e
from gradcli.primitives.entries.special_functions.special import betaln, digamma


class Kumaraswamy(Univariate):
    """The distribution on [0, 1] with the distribution function 1 - (1 - x**concentration1)**concentration0."""

    has_rsample = True
    support = constraints.unit_interval
    parameter_names = ("concentration1", "concentration0")
    arg_constraints = constrained(concentration1=constraints.positive, concentration0=constraints.positive)

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        super().__init__(concentration1, concentration0, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = as_tensor(generators.uniform(self._extended_shape(sample_shape), dtype_of(self.concentration1)))
        return (1 - drawn ** (1 / self.concentration0)) ** (1 / self.concentration1)

    def _log_prob(self, value: Any) -> Any:
        x, a, b = as_tensor(value), self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * x.log() + (b - 1) * (-(x**a)).log1p()

    def cdf(self, value: Any) -> Any:
        return -(self.concentration0 * (-(as_tensor(value) ** self.concentration1)).log1p()).expm1()

    def icdf(self, value: Any) -> Any:
        return (-((-as_tensor(value)).log1p() / self.concentration0).expm1()) ** (1 / self.concentration1)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / b) + (1 - 1 / a) * (digamma(b + 1) + EULER_GAMMA) - a.log() - b.log()

    def _moment(self, order: int) -> Any:
        return self.concentration0 * betaln(1 + order / self.concentration1, self.concentration0).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        has_one = (a >= 1) & (b >= 1)
        return where(has_one, ((a - 1) / (a * b - 1)) ** (1 / a), math.nan)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self._moment(1) ** 2


class ContinuousBernoulli(ProbabilityOrLogits):
    """The distribution on [0, 1] with density proportional to probs**x*(1 - probs)**(1 - x).

    Between the probabilities `lims`, where the formulas are 0/0 at 1/2, its functions are polynomials, as in PyTorch.
    G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli" (NeurIPS 2019).
    """

    has_rsample = True
    parameter_names = ("probs", "logits")
    support = constraints.unit_interval
    arg_constraints = constrained(probs=constraints.unit_interval, logits=constraints.real)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self._lims = lims

    @property
    def _probs(self) -> Any:
        return clipped_probs(self.probs)

    @property
    def _is_far(self) -> Any:
        return logical_or(self._probs <= self._lims[0], self._probs > self._lims[1])

    @property
    def _far(self) -> Any:
        return where(self._is_far, self._probs, self._lims[0])

    def _log_norm(self) -> Any:
        """The logarithm of the factor of the density."""
        p, square = self._far, (self._probs - 0.5) ** 2
        far = (log1p(-p) - p.log()).abs().log() - (1 - 2 * p).abs().log()
        return where(self._is_far, far, math.log(2) + (4 / 3 + 104 / 45 * square) * square)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(as_tensor(generators.uniform(self._extended_shape(sample_shape), dtype_of(self._probs))))

    def _log_prob(self, value: Any) -> Any:
        return as_tensor(value) * self.logits - softplus(self.logits) + self._log_norm()

    def cdf(self, value: Any) -> Any:
        x = as_tensor(value)
        inside, p = clip(x, 0.0, 1.0), self._far
        far = (p**inside * (1 - p) ** (1 - inside) + p - 1) / (2 * p - 1)
        return where(x <= 0, 0.0, where(x >= 1, 1.0, where(self._is_far, far, inside)))

    def icdf(self, value: Any) -> Any:
        x, p = as_tensor(value), self._far
        far = (log1p(-p + x * (2 * p - 1)) - log1p(-p)) / (p.log() - log1p(-p))
        return where(self._is_far, far, x)

    def entropy(self) -> Any:
        none, one = log1p(-self._probs), self._probs.log()
        return self.mean * (none - one) - self._log_norm() - none

    @property
    def mean(self) -> Any:
        p, x = self._far, self._probs - 0.5
        far = p / (2 * p - 1) + 1 / (log1p(-p) - p.log())
        return where(self._is_far, far, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Any:
        p, square = self._far, (self._probs - 0.5) ** 2
        far = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (log1p(-p) - p.log()) ** 2
        return where(self._is_far, far, 1 / 12 - (1 / 15 - 128 / 945 * square) * square)


class VonMises(Univariate):
    """The distribution of angles with density proportional to exp(concentration*cos(x - loc))."""

    support = constraints.real
    parameter_names = ("loc", "concentration")
    arg_constraints = constrained(loc=constraints.real, concentration=constraints.positive)

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        super().__init__(loc, concentration, validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        loc, kappa = (arrays.to_numpy(x.detach().inner) for x in (self.loc, self.concentration))
        drawn = numpy_generator().vonmises(0.0, kappa, self._extended_shape(sample_shape)) + loc
        # Samples are angles from -pi to pi, as in PyTorch.
        return as_tensor((drawn + math.pi) % (2 * math.pi) - math.pi).to(dtype_of(self.loc))

    def _log_prob(self, value: Any) -> Any:
        kappa = self.concentration
        # The Bessel function is exp(kappa)*i0e(kappa).
        return kappa * ((as_tensor(value) - self.loc).cos() - 1) - math.log(2 * math.pi) - i0e(kappa).log()

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """The circular variance, 1 less the length of the mean of (cos(x), sin(x))."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)
