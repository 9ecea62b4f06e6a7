"""Invertible transforms with log-determinants of their Jacobians, and distributions of transformed samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.autograd.modes import no_grad
from gradcli.distributions import constraints
from gradcli.distributions.constraints import Constraint
from gradcli.distributions.distribution import Distribution, as_tensor, sum_rightmost
from gradcli.distributions.multivariate import Independent
from gradcli.errors import ArgumentError
from gradcli.primitives.entries.arithmetic import ones_like
from gradcli.primitives.entries.comparisons import clip
from gradcli.primitives.entries.elementwise.trigonometric import atanh, tanh
from gradcli.primitives.entries.exponential import logit, sigmoid, softplus
from gradcli.primitives.entries.linear import diagonal
from gradcli.primitives.entries.linear_algebra.decompositions import cholesky
from gradcli.primitives.entries.manipulation.gather_scatter import diag_embed
from gradcli.primitives.entries.scans import cumprod, cumsum, softmax
from gradcli.primitives.entries.shape import concat, stack, tril


class Transform:
    """The base class of transforms: a subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`; the latter is
    one number over the last axes, as many as `domain` has in one event."""

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective = False
    # 1 for an increasing transform, -1 for a decreasing one; needed for distribution functions.
    sign: Any = 1

    def __init__(self, cache_size: int = 0) -> None:
        """`cache_size` is ignored: inverses are computed."""

    @property
    def event_dim(self) -> int:
        """The number of axes of an event, of the domain and the codomain, where they have as many."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ArgumentError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    def __call__(self, x: Any) -> Any:
        return self._call(as_tensor(x))

    def forward_shape(self, shape: Shape) -> Shape:
        """The output shape for an input of this shape."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """The input shape for an output of this shape."""
        return shape

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        return _Inverse(self)

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the absolute derivative, or of the absolute determinant of the Jacobian, at x, given the
        value y."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and vars(self) == vars(other))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform = transform

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        return self.transform.codomain

    @property
    def codomain(self) -> Constraint:  # type: ignore[override]
        return self.transform.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.transform.bijective

    @property
    def sign(self) -> Any:
        return self.transform.sign

    @property
    def inv(self) -> Transform:
        return self.transform

    def forward_shape(self, shape: Shape) -> Shape:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.transform.forward_shape(shape)

    def _call(self, x: Any) -> Any:
        return self.transform._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self.transform._call(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.transform.log_abs_det_jacobian(y, x)


class AffineTransform(Transform):
    """loc + scale*x; the last `event_dim` axes are one event."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self) -> Any:
        return as_tensor(self.scale).sign()

    def forward_shape(self, shape: Shape) -> Shape:
        return broadcast([shape, arrays.shape(self.loc), arrays.shape(self.scale)])

    inverse_shape = forward_shape

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_rightmost(as_tensor(self.scale).abs().log() + x * 0.0, self.event_dim)


class ExpTransform(Transform):
    """exp(x)"""

    bijective = True
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """x**exponent for positive x."""

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = as_tensor(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """1/(1 + exp(-x))"""

    bijective = True
    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return logit(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x)"""

    bijective = True
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return tanh(x)

    def _inverse(self, y: Any) -> Any:
        return atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x)**2) without cancellation.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))"""

    bijective = True
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class AbsTransform(Transform):
    """abs(x), whose inverse is the positive one of two."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class SoftmaxTransform(Transform):
    """exp(x)/sum(exp(x)) along the last axis. Many x have the same value; the inverse gives its logarithms."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Any) -> Any:
        return softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(Transform):
    """Parts of a stick of length 1: each number says, by a sigmoid, which share of what is left is broken off.

    The Stan Reference Manual, "Unit simplex inverse transform".
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.simplex

    def forward_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] - 1)

    def _shares(self, x: Any) -> Any:
        return sigmoid(x - self._offsets(x))

    def _offsets(self, x: Any) -> Any:
        """The logarithms of the numbers of parts that follow, so that zeros give equal parts."""
        return as_tensor([math.log(count) for count in range(x.shape[-1], 0, -1)]).to(x.dtype)

    def _call(self, x: Any) -> Any:
        shares = self._shares(x)
        left, ones = cumprod(1 - shares, -1), ones_like(x[..., :1])
        return concat([shares, ones], -1) * concat([ones, left], -1)

    def _inverse(self, y: Any) -> Any:
        parts = y[..., :-1]
        left = 1 - cumsum(parts, -1)
        return parts.log() - left.log() + self._offsets(parts)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        moved = x - self._offsets(x)
        return (-moved - softplus(-moved) + y[..., :-1].log()).sum(-1)


class LowerCholeskyTransform(Transform):
    """The lower triangle of a matrix, with the exponentials of its diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return tril(x, -1) + diag_embed(diagonal(x, 0, -2, -1).exp())

    def _inverse(self, y: Any) -> Any:
        return tril(y, -1) + diag_embed(diagonal(y, 0, -2, -1).log())


class PositiveDefiniteTransform(Transform):
    """L@L.T of the matrix L that `LowerCholeskyTransform` gives."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Any) -> Any:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform()._inverse(cholesky(y))


class CorrCholeskyTransform(Transform):
    """The lower triangular matrix L for which L@L.T is a matrix of correlations, of the D*(D - 1)/2 numbers of its lower
    triangle, each of which tanh brings to (-1, 1).

    The Stan Reference Manual, "Cholesky factors of correlation matrices".
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def forward_shape(self, shape: Shape) -> Shape:
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ArgumentError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Shape) -> Shape:
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)

    def _call(self, x: Any) -> Any:
        size = self.forward_shape(x.shape)[-1]
        rows, columns = arrays.numpy_namespace().tril_indices(size, -1)
        bounded = tanh(x)
        # As in PyTorch, away from 1 and -1 by a rounding unit.
        unit = 2.0 ** (-23 if x.dtype == "float32" else -52)
        partial = x.new_zeros((*x.shape[:-1], size, size))
        partial[..., rows, columns] = clip(bounded, unit - 1, 1 - unit)
        left = cumprod((1 - partial**2).sqrt(), -1)
        ones = ones_like(left[..., :1])
        lower = partial + diag_embed(ones_like(partial[..., 0]))
        return lower * concat([ones, left[..., :-1]], -1)

    def _inverse(self, y: Any) -> Any:
        left = 1 - cumsum(y * y, -1)
        ones = ones_like(left[..., :1])
        before = concat([ones, left[..., :-1]], -1)
        rows, columns = arrays.numpy_namespace().tril_indices(y.shape[-1], -1)
        return atanh(y[..., rows, columns] / before[..., rows, columns].sqrt())

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        rows, columns = arrays.numpy_namespace().tril_indices(y.shape[-1], -2)
        left = (1 - cumsum(y * y, -1))[..., rows, columns]
        of_rows = 0.5 * left.log().sum(-1)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return of_rows + of_tanh


class CumulativeDistributionTransform(Transform):
    """The distribution function of a univariate distribution."""

    bijective = True
    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


class ReshapeTransform(Transform):
    """An event in another shape."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ArgumentError("in_shape, out_shape have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def forward_shape(self, shape: Shape) -> Shape:
        return _with_last(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _with_last(shape, self.out_shape, self.in_shape)

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_rightmost(x, len(self.in_shape)) * 0.0


class IndependentTransform(Transform):
    """A transform whose last axes are one event, so that its log-determinants are added up over them."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)
        self.bijective = base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)

    def _call(self, x: Any) -> Any:
        return self.base_transform._call(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform._inverse(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)


class StackTransform(Transform):
    """Transforms of the slices along an axis, one for each."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [*tseq], dim
        self.domain = _PerSlice([t.domain for t in self.transforms], dim)
        self.codomain = _PerSlice([t.codomain for t in self.transforms], dim)
        self.bijective = all(t.bijective for t in self.transforms)

    def _call(self, x: Any) -> Any:
        return stack([t(part) for t, part in zip(self.transforms, x.unbind(self.dim), strict=True)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return stack([t._inverse(part) for t, part in zip(self.transforms, y.unbind(self.dim), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        parts = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim), strict=True)
        return stack([t.log_abs_det_jacobian(one, other) for t, one, other in parts], self.dim)


class CatTransform(Transform):
    """Transforms of consecutive parts of an axis, whose lengths are `lengths`, by default 1 each."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [*tseq], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else [*lengths]
        self.bijective = all(t.bijective for t in self.transforms)

    def _parts(self, x: Any) -> Any:
        return zip(self.transforms, x.split(self.lengths, self.dim), strict=True)

    def _call(self, x: Any) -> Any:
        return concat([t(part) for t, part in self._parts(x)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return concat([t._inverse(part) for t, part in self._parts(y)], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        pairs = zip(self._parts(x), y.split(self.lengths, self.dim), strict=True)
        return concat([t.log_abs_det_jacobian(one, other) for (t, one), other in pairs], self.dim)


class _PerSlice(Constraint):
    """A constraint for each slice along an axis."""

    def __init__(self, parts: Sequence[Constraint], dim: int) -> None:
        self._parts, self._dim = parts, dim
        self.is_discrete = any(part.is_discrete for part in parts)
        self.event_dim = max(part.event_dim for part in parts)

    def check(self, value: Any) -> Any:
        made = as_tensor(value)
        return stack([part.check(v) for part, v in zip(self._parts, made.unbind(self._dim), strict=True)], self._dim)


class ComposeTransform(Transform):
    """The composition of transforms, the first one applied first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [*parts]

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        # From the last part to the first: the number of event axes in the input of each, which is at least its own.
        found, axes = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            axes = max(axes + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _over_axes(found, axes)

    @property
    def codomain(self) -> Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        # From the first part to the last: the number of event axes in the output of each, which is at least its own.
        found, axes = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            axes = max(axes + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _over_axes(found, axes)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        total, axes = x * 0.0 if not self.parts else 0.0, self.domain.event_dim
        for part in self.parts:
            y = part(x)
            total = total + sum_rightmost(part.log_abs_det_jacobian(x, y), axes - part.domain.event_dim)
            axes += part.codomain.event_dim - part.domain.event_dim
            x = y
        return total


identity_transform = ComposeTransform([])


class TransformedDistribution(Distribution):
    """The distribution of samples of a base distribution after transforms, applied in order."""

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else [*transforms]
        whole = self._whole
        base, size = base_distribution, len(base_distribution.event_shape)
        shape = (*base.batch_shape, *base.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ArgumentError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        result = whole.forward_shape(shape)
        wanted = whole.inverse_shape(result)
        batch = wanted[: len(wanted) - size]
        base = base if batch == base.batch_shape else base.expand(batch)
        short = whole.domain.event_dim - size
        self.base_dist = Independent(base, short) if short > 0 else base
        axes = whole.codomain.event_dim + max(size - whole.domain.event_dim, 0)
        cut = len(result) - axes
        super().__init__(result[:cut], result[cut:], validate_args)

    @property
    def _whole(self) -> ComposeTransform:
        """The composition of all transforms."""
        return ComposeTransform(self.transforms)

    @property
    def support(self) -> Any:  # type: ignore[override]
        """The codomain of the last transform, over the axes of an event."""
        found = self.transforms[-1].codomain if self.transforms else self.base_dist.support
        return None if found is None else _over_axes(found, len(self.event_shape))

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def expand(self, batch_shape: Any) -> Self:
        return type(self)(self.base_dist.expand(batch_shape), self.transforms, False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._whole(self.base_dist.rsample(sample_shape))

    def _log_prob(self, value: Any) -> Any:
        y, total, axes = as_tensor(value), 0.0, len(self.event_shape)
        for transform in reversed(self.transforms):
            x = transform._inverse(y)
            axes += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y), axes - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), axes - len(self.base_dist.event_shape))

    def cdf(self, value: Any) -> Any:
        below = self.base_dist.cdf(self._whole._inverse(as_tensor(value)))
        return self._whole.sign * (below - 0.5) + 0.5

    def icdf(self, value: Any) -> Any:
        return self._whole(self.base_dist.icdf(self._whole.sign * (as_tensor(value) - 0.5) + 0.5))


def _over_axes(constraint: Constraint, axes: int) -> Constraint:
    """A constraint whose events have at least `axes` axes, and hold where the given one holds for all elements."""
    short = axes - constraint.event_dim
    return constraints.independent(constraint, short) if short > 0 else constraint


def _with_last(shape: Shape, last: Shape, new: Shape) -> Shape:
    """A shape with its last sizes replaced. Raises ArgumentError where they are others."""
    cut = len(shape) - len(last)
    if cut < 0 or tuple(shape[cut:]) != last:
        raise ArgumentError(f"Shape mismatch: expected {last} at the end of {tuple(shape)}")
    return (*shape[:cut], *new)
