"""Distributions of matrices, and the multivariate normal distribution whose covariance is of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any, Self

from gradcli.arrays.shapes import broadcast
from gradcli.autograd import generators
from gradcli.distributions import constraints
from gradcli.distributions.distribution import (
    Distribution,
    as_tensor,
    broadcast_all,
    constrained,
    dtype_of,
)
from gradcli.distributions.multivariate import MultivariateNormal, OfMatrix
from gradcli.distributions.univariate import Beta, Chi2
from gradcli.errors import ArgumentError
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.comparisons import clip, where
from gradcli.primitives.entries.linear import diagonal
from gradcli.primitives.entries.linear_algebra.linear_systems import cholesky_solve, slogdet
from gradcli.primitives.entries.manipulation.gather_scatter import diag_embed
from gradcli.primitives.entries.shape import tril
from gradcli.primitives.entries.special_functions.distributions import multigammaln
from gradcli.primitives.entries.special_functions.special import digamma, lgamma


class LowRankMultivariateNormal(MultivariateNormal):
    """The multivariate normal distribution with covariance cov_factor@cov_factor.T + diag(cov_diag)."""

    cov_factor: Any
    cov_diag: Any

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        mean, factor, variances = as_tensor(loc), as_tensor(cov_factor), as_tensor(cov_diag)
        if mean.ndim < 1 or factor.ndim < 2:
            raise ArgumentError("loc must be at least one-dimensional, and cov_factor two-dimensional.")
        size = mean.shape[-1]
        if factor.shape[-2] != size or variances.shape[-1:] != (size,):
            raise ArgumentError(
                f"cov_factor must be a batch of matrices with {size} rows, and cov_diag of {size} numbers"
            )
        batch = broadcast([mean.shape[:-1], factor.shape[:-2], variances.shape[:-1]])
        self.cov_factor = broadcast_to(factor, (*batch, *factor.shape[-2:]))
        self.cov_diag = broadcast_to(variances, (*batch, size))
        if validate_args is not False:
            self._check("cov_diag", self.cov_diag, constraints.positive)
        covariance = self.cov_factor @ self.cov_factor.mT + diag_embed(self.cov_diag)
        super().__init__(mean, covariance, validate_args=validate_args)

    def expand(self, batch_shape: Any) -> Self:
        loc, factor, variances = (
            broadcast_to(x, (*batch_shape, *x.shape[len(self.batch_shape) :]))
            for x in (self.loc, self.cov_factor, self.cov_diag)
        )
        return type(self)(loc, factor, variances, self._validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape, dtype = self._extended_shape(sample_shape), dtype_of(self.loc)
        of_factor = as_tensor(generators.normal((*shape[:-1], self.cov_factor.shape[-1]), dtype))
        of_diagonal = generators.normal(shape, dtype)
        correlated = (self.cov_factor @ of_factor[..., None]).squeeze(-1)
        return self.loc + correlated + self.cov_diag.sqrt() * of_diagonal


class Wishart(OfMatrix):
    """The distribution of X.T@X for a matrix X with `df` rows of normal numbers with mean 0, given their covariance
    matrix, the inverse of that, or the lower triangular matrix L with L@L.T = covariance_matrix."""

    parameter_names = ("covariance_matrix", "precision_matrix", "scale_tril")
    support = constraints.positive_definite

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._given(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        count = as_tensor(df)
        if matrix.ndim < 2:
            raise ArgumentError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        size = matrix.shape[-1]
        if not (count > size - 1).all():
            raise ArgumentError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        batch = broadcast([count.shape, matrix.shape[:-2]])
        self.df = broadcast_to(count, batch)
        self.__dict__[name] = broadcast_to(matrix, (*batch, size, size))
        self._scale = broadcast_to(self._factor(name, matrix), (*batch, size, size))
        super().__init__(batch, (size, size), validate_args)

    @property
    def arg_constraints(self) -> Any:  # type: ignore[override]
        matrices = dict.fromkeys(("covariance_matrix", "precision_matrix"), constraints.positive_definite)
        return matrices | {"scale_tril": constraints.lower_cholesky}

    def expand(self, batch_shape: Any) -> Self:
        scale = broadcast_to(self._scale, (*batch_shape, *self.event_shape))
        return type(self)(broadcast_to(self.df, tuple(batch_shape)), scale_tril=scale, validate_args=False)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Bartlett's decomposition: a lower triangular matrix of normal numbers, with the roots of chi-squared ones on
        the diagonal."""
        size, shape = self.event_shape[0], self._extended_shape(sample_shape)
        counts = self.df.unsqueeze(-1) - as_tensor([*map(float, range(size))]).to(self._scale.dtype)
        squares = Chi2(counts, False).rsample(sample_shape)
        below = tril(as_tensor(generators.normal(shape, dtype_of(self._scale))), -1)
        root = self._scale @ (below + diag_embed(squares.sqrt()))
        return root @ root.mT

    def _log_norm(self) -> Any:
        """p*log(2)/2 and the logarithm of the determinant of L, p being the size of the matrix."""
        return self.event_shape[0] * math.log(2) / 2 + diagonal(self._scale, 0, -2, -1).log().sum(-1)

    def _log_prob(self, value: Any) -> Any:
        x, p = as_tensor(value), self.event_shape[0]
        lead = broadcast([x.shape[:-2], self.batch_shape])
        x, scale = (broadcast_to(matrix, (*lead, p, p)) for matrix in (x, self._scale))
        spread = diagonal(cholesky_solve(x, scale), 0, -2, -1).sum(-1) / 2
        log_det = slogdet(x)[1]
        return -self.df * self._log_norm() - multigammaln(self.df / 2, p) + (self.df - p - 1) / 2 * log_det - spread

    def entropy(self) -> Any:
        nu, p = self.df, self.event_shape[0]
        digammas = sum(digamma(nu / 2 - i / 2) for i in range(p))
        return (p + 1) * self._log_norm() + multigammaln(nu / 2, p) - (nu - p - 1) / 2 * digammas + nu * p / 2

    @property
    def mean(self) -> Any:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self.event_shape[0] - 1
        return where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        covariance = self.covariance_matrix
        variances = diagonal(covariance, 0, -2, -1)
        return self.df[..., None, None] * (covariance**2 + variances[..., None] * variances[..., None, :])


class LKJCholesky(Distribution):
    """Lower triangular matrices L with ones as row norms: L@L.T is a matrix of correlations, with density proportional to
    its determinant to the power `concentration` - 1.

    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended onion
    method" (Journal of Multivariate Analysis, 2009).
    """

    parameter_names = ("concentration",)
    support = constraints.corr_cholesky
    arg_constraints = constrained(concentration=constraints.positive)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ArgumentError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def expand(self, batch_shape: Any) -> Self:
        return self._with_parameters(batch_shape, concentration=broadcast_to(self.concentration, tuple(batch_shape)))

    def sample(self, sample_shape: Any = ()) -> Any:
        dtype = dtype_of(self.concentration)
        offsets = as_tensor([0.0, *map(float, range(self.dim - 1))]).to(dtype)
        last = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2) - 0.5 * offsets
        squares = Beta(offsets + 0.5, last, False).sample(sample_shape).unsqueeze(-1)
        drawn = tril(as_tensor(generators.normal(self._extended_shape(sample_shape), dtype)), -1)
        norms = (drawn**2).sum(-1, keepdims=True).sqrt()
        below = squares.sqrt() * drawn / where(norms == 0, 1.0, norms)
        return below + diag_embed(clip(1 - (below**2).sum(-1), 0.0).sqrt())

    def _log_prob(self, value: Any) -> Any:
        diagonals = diagonal(as_tensor(value), 0, -2, -1)[..., 1:]
        orders = as_tensor([float(self.dim - i) for i in range(2, self.dim + 1)]).to(diagonals.dtype)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + orders
        others = self.dim - 1
        half = self.concentration + 0.5 * others
        log_norm = 0.5 * others * math.log(math.pi) + multigammaln(half - 0.5, others) - lgamma(half) * others
        return (powers * diagonals.log()).sum(-1) - log_norm
