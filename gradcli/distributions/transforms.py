"""Invertible transforms with log-determinants of their Jacobians, and distributions of transformed samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.autograd.modes import no_grad
from gradcli.distributions.distribution import Distribution, as_tensor
from gradcli.distributions.multivariate import Independent
from gradcli.errors import ArgumentError
from gradcli.primitives.entries.exponential import logit, sigmoid, softplus
from gradcli.primitives.entries.trigonometric import atanh, tanh


class Transform:
    """The base class of transforms: a subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`; the latter is
    one number over the last `event_dim` axes."""

    event_dim: ClassVar[int] = 0
    # 1 for an increasing transform, -1 for a decreasing one; needed for distribution functions.
    sign: Any = 1

    def __init__(self, cache_size: int = 0) -> None:
        """`cache_size` is ignored: inverses are computed."""

    def __call__(self, x: Any) -> Any:
        return self._call(as_tensor(x))

    def forward_shape(self, shape: Shape) -> Shape:
        """The output shape for an input of this shape."""
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
    def event_dim(self) -> int:  # type: ignore[override]
        return self.transform.event_dim

    @property
    def sign(self) -> Any:
        return self.transform.sign

    @property
    def inv(self) -> Transform:
        return self.transform

    def forward_shape(self, shape: Shape) -> Shape:
        return self.transform.forward_shape(shape)

    def _call(self, x: Any) -> Any:
        return self.transform._inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self.transform._call(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.transform.log_abs_det_jacobian(y, x)


class AffineTransform(Transform):
    """loc + scale*x; the last `event_dim` axes are one event."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self._event_dim

    @property
    def sign(self) -> Any:
        return as_tensor(self.scale).sign()

    def forward_shape(self, shape: Shape) -> Shape:
        return broadcast([shape, arrays.shape(self.loc), arrays.shape(self.scale)])

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        slope = as_tensor(self.scale).abs().log() + x * 0.0
        return slope.sum(tuple(range(-self.event_dim, 0))) if self.event_dim else slope


class ExpTransform(Transform):
    """exp(x)"""

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """x**exponent for positive x."""

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

    def _call(self, x: Any) -> Any:
        return sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return logit(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class TanhTransform(Transform):
    """tanh(x)"""

    def _call(self, x: Any) -> Any:
        return tanh(x)

    def _inverse(self, y: Any) -> Any:
        return atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x)**2) without cancellation.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class SoftplusTransform(Transform):
    """log(1 + exp(x))"""

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class ComposeTransform(Transform):
    """The composition of transforms, the first one applied first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [*parts]

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max((part.event_dim for part in self.parts), default=0)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
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
        total: Any = 0.0
        for part in self.parts:
            y = part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, y), self.event_dim - part.event_dim)
            x = y
        return total


class TransformedDistribution(Distribution):
    """The distribution of samples of a base distribution after transforms, applied in order."""

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else [*transforms]
        whole = ComposeTransform(self.transforms)
        base, size = base_distribution, len(base_distribution.event_shape)
        shape = whole.forward_shape((*base.batch_shape, *base.event_shape))
        batch = shape[: len(shape) - size]
        base = base if batch == base.batch_shape else base.expand(batch)
        short = whole.event_dim - size
        if short > len(base.batch_shape):
            raise ArgumentError(f"base_distribution needs to have shape with size at least {whole.event_dim}")
        self.base_dist = Independent(base, short) if short > 0 else base
        super().__init__(self.base_dist.batch_shape, self.base_dist.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def expand(self, batch_shape: Any) -> Self:
        return type(self)(self.base_dist.expand(batch_shape), self.transforms, False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return ComposeTransform(self.transforms)(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return ComposeTransform(self.transforms)(self.base_dist.rsample(sample_shape))

    def _log_prob(self, value: Any) -> Any:
        y, total, axes = as_tensor(value), 0.0, len(self.event_shape)
        for transform in reversed(self.transforms):
            x = transform._inverse(y)
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, y), axes - transform.event_dim)
            y = x
        return total + self.base_dist.log_prob(y)

    def cdf(self, value: Any) -> Any:
        whole = ComposeTransform(self.transforms)
        below, rises = self.base_dist.cdf(whole._inverse(as_tensor(value))), whole.sign
        return rises * (below - 0.5) + 0.5

    def icdf(self, value: Any) -> Any:
        whole = ComposeTransform(self.transforms)
        return whole(self.base_dist.icdf(whole.sign * (as_tensor(value) - 0.5) + 0.5))


def _sum_rightmost(x: Any, count: int) -> Any:
    """The sum over the last `count` axes."""
    return x.sum(tuple(range(-count, 0))) if count else x
