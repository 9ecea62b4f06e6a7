"""Distributions of vectors, and combinations of distributions: `Independent` and mixtures."""

from __future__ import annotations

from typing import Any, Self

from gradcli.arrays.shapes import broadcast
from gradcli.autograd import generators
from gradcli.distributions import constraints
from gradcli.distributions.discrete import Categorical
from gradcli.distributions.distribution import (
    LOG_2_PI,
    Distribution,
    as_tensor,
    constrained,
    dtype_of,
    exactly_one,
    sum_rightmost,
)
from gradcli.distributions.univariate import Gamma
from gradcli.errors import ArgumentError
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.comparisons import clip, where
from gradcli.primitives.entries.linear import diagonal
from gradcli.primitives.entries.linear_algebra.decompositions import cholesky
from gradcli.primitives.entries.linear_algebra.linear_systems import solve_triangular
from gradcli.primitives.entries.linear_algebra.matrices import inv
from gradcli.primitives.entries.manipulation.gather_scatter import one_hot
from gradcli.primitives.entries.special_functions.special import digamma, lgamma
from gradcli.primitives.entries.statistics import logsumexp


class OfMatrix(Distribution):
    """The base class of distributions given a covariance matrix, its inverse, or its Cholesky factor, the lower triangular
    matrix L with L@L.T = covariance_matrix. The others are computed from the factor, `_scale`."""

    has_rsample = True
    _scale: Any

    @staticmethod
    def _given(**matrices: Any) -> tuple[str, Any]:
        """The name of the one matrix that is given, and the matrix."""
        name = exactly_one(**matrices)
        return name, as_tensor(matrices[name])

    @staticmethod
    def _factor(name: str, matrix: Any) -> Any:
        """The Cholesky factor for a matrix that is given by this name."""
        if name == "scale_tril":
            return matrix
        return cholesky(inv(matrix) if name == "precision_matrix" else matrix)

    def __getattr__(self, name: str) -> Any:
        if name not in ("covariance_matrix", "precision_matrix", "scale_tril") or "_scale" not in vars(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
        size = self.event_shape[-1]
        scale = broadcast_to(self._scale, (*self.batch_shape, size, size))
        if name == "scale_tril":
            return scale
        covariance = scale @ scale.mT
        return covariance if name == "covariance_matrix" else inv(covariance)


class MultivariateNormal(OfMatrix):
    """The multivariate normal distribution with mean `loc`, given its covariance matrix, the inverse of that, or the
    lower triangular matrix L with L@L.T = covariance_matrix."""

    parameter_names = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
    support = constraints.real_vector
    loc: Any

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._given(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        mean = as_tensor(loc)
        if mean.ndim < 1:
            raise ArgumentError("loc must be at least one-dimensional.")
        if matrix.ndim < 2:
            raise ArgumentError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = broadcast([mean.shape[:-1], matrix.shape[:-2]])
        size = mean.shape[-1]
        self.loc = broadcast_to(mean, (*batch, size))
        self.__dict__[name] = broadcast_to(matrix, (*batch, size, size))
        self._scale = self._factor(name, matrix)
        super().__init__(batch, (size,), validate_args)

    def expand(self, batch_shape: Any) -> Self:
        shape = (*batch_shape, *self.event_shape)
        scale = broadcast_to(self._scale, (*batch_shape, *self.event_shape, *self.event_shape))
        return type(self)(broadcast_to(self.loc, shape), scale_tril=scale, validate_args=self._validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = as_tensor(generators.normal(self._extended_shape(sample_shape), dtype_of(self.loc)))
        return self.loc + (self._scale @ drawn[..., None]).squeeze(-1)

    def _log_prob(self, value: Any) -> Any:
        centred = as_tensor(value) - self.loc
        lead = broadcast([centred.shape[:-1], self._scale.shape[:-2]])
        size = self.event_shape[0]
        scale = broadcast_to(self._scale, (*lead, size, size))
        standard = solve_triangular(scale, broadcast_to(centred, (*lead, size))[..., None], lower=True).squeeze(-1)
        return -0.5 * (size * LOG_2_PI + (standard**2).sum(-1)) - self._half_log_det()

    def _half_log_det(self) -> Any:
        return diagonal(self._scale, 0, -2, -1).log().sum(-1)

    def entropy(self) -> Any:
        found = 0.5 * self.event_shape[0] * (1.0 + LOG_2_PI) + self._half_log_det()
        return broadcast_to(found, self.batch_shape)

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        return broadcast_to((self._scale**2).sum(-1), (*self.batch_shape, *self.event_shape))


class Dirichlet(Distribution):
    """Probability vectors (nonnegative with sum 1) along the last axis."""

    has_rsample = True
    parameter_names = ("concentration",)
    arg_constraints = constrained(concentration=constraints.positive)
    support = constraints.simplex

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        self.concentration = as_tensor(concentration)
        if self.concentration.ndim < 1:
            raise ArgumentError("`concentration` parameter must be at least one-dimensional.")
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        parts = Gamma(self.concentration, 1.0, False).rsample(sample_shape)
        return parts / parts.sum(-1, keepdims=True)

    def _log_prob(self, value: Any) -> Any:
        a = self.concentration
        return ((a - 1.0) * as_tensor(value).log()).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    def entropy(self) -> Any:
        a = self.concentration
        total = a.sum(-1)
        rest = (total - a.shape[-1]) * digamma(total) - ((a - 1.0) * digamma(a)).sum(-1)
        return lgamma(a).sum(-1) - lgamma(total) + rest

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, keepdims=True)

    @property
    def mode(self) -> Any:
        above = clip(self.concentration - 1, 0.0)
        total = above.sum(-1, keepdims=True)
        corner = one_hot(self.concentration.argmax(-1), self.event_shape[0])
        return where(total == 0, corner, above / where(total == 0, 1.0, total))

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, keepdims=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))


class Independent(Distribution):
    """Treats the last batch axes of a distribution as event axes."""

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ArgumentError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def expand(self, batch_shape: Any) -> Self:
        own = self.base_dist.batch_shape[len(self.batch_shape) :]
        return type(self)(self.base_dist.expand((*batch_shape, *own)), self.reinterpreted_batch_ndims, False)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def _log_prob(self, value: Any) -> Any:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Any:
        return self._summed(self.base_dist.entropy())

    def _summed(self, found: Any) -> Any:
        return sum_rightmost(found, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """A mixture of the distributions along the last batch axis, weighted by a `Categorical`."""

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(component_distribution.batch_shape[:-1], component_distribution.event_shape, validate_args)

    def _for_each(self, value: Any) -> Any:
        return value.unsqueeze(-1 - len(self.event_shape))

    def _weights(self) -> Any:
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self.event_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        numbers = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
        found = self.component_distribution.sample(sample_shape)
        place = len(found.shape) - len(self.event_shape) - 1
        chosen = numbers.reshape(*numbers.shape, *[1] * (1 + len(self.event_shape)))
        chosen = chosen.expand(*numbers.shape, 1, *self.event_shape)
        return found.gather(place, chosen).squeeze(place)

    def _log_prob(self, value: Any) -> Any:
        of_each = self.component_distribution.log_prob(self._for_each(as_tensor(value)))
        return logsumexp(of_each + self.mixture_distribution.logits, -1)

    def cdf(self, value: Any) -> Any:
        of_each = self.component_distribution.cdf(self._for_each(as_tensor(value)))
        return (of_each * self.mixture_distribution.probs).sum(-1)

    @property
    def mean(self) -> Any:
        return (self._weights() * self.component_distribution.mean).sum(-1 - len(self.event_shape))

    @property
    def variance(self) -> Any:
        axis = -1 - len(self.event_shape)
        centred = self.component_distribution.mean - self._for_each(self.mean)
        return (self._weights() * (self.component_distribution.variance + centred**2)).sum(axis)
