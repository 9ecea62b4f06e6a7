"""Constraints on parameters and values of distributions, with the names of `torch.distributions.constraints`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor

# The tolerance for the sum of the elements of a simplex and for symmetric matrices, as in PyTorch.
_TOLERANCE = 1e-6


class Constraint:
    """A set of numbers, or of vectors or matrices along the last `event_dim` axes."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Return whether the elements of a tensor or an array of NumPy are in the set: a truth value for each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.strip('_')}()"


class _Bounded(Constraint):
    """A constraint with bounds, which its text shows."""

    def __init__(self, **bounds: Any) -> None:
        self._bounds = bounds
        vars(self).update(bounds)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_shown(bound)}" for name, bound in self._bounds.items())
        return f"{super().__repr__()[:-2]}({shown})"


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _IntegerInterval(_Bounded):
    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Any) -> Any:
        lower, upper = (_comparable(value, bound) for bound in self._bounds.values())
        return (value % 1 == 0) & (value >= lower) & (value <= upper)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= _comparable(value, self._bounds["lower_bound"]))


class _GreaterThan(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Any) -> Any:
        return value > _comparable(value, self._bounds["lower_bound"])


class _GreaterThanEq(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Any) -> Any:
        return value >= _comparable(value, self._bounds["lower_bound"])


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Any) -> Any:
        return value < _comparable(value, self._bounds["upper_bound"])


class _Interval(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Any) -> Any:
        lower, upper = (_comparable(value, bound) for bound in self._bounds.values())
        return (value >= lower) & (value <= upper)


class _HalfOpenInterval(_Interval):
    def check(self, value: Any) -> Any:
        lower, upper = (_comparable(value, bound) for bound in self._bounds.values())
        return (value >= lower) & (value < upper)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < _TOLERANCE)


class _Multinomial(_Bounded):
    """Counts along the last axis whose sum is at most a number."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= _comparable(value, self._bounds["upper_bound"]))


class _Matrix(Constraint):
    """A set of matrices: a subclass says in `holds` which arrays of NumPy are in it."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.made(arrays.like_library_of(self.holds(arrays.to_numpy(value.detach().inner)), value.inner))
        return self.holds(value)

    def holds(self, value: Any) -> Any:
        raise NotImplementedError


class _LowerTriangular(_Matrix):
    def holds(self, value: Any) -> Any:
        return (arrays.numpy_namespace().triu(value, 1) == 0).all((-2, -1))


class _LowerCholesky(_LowerTriangular):
    def holds(self, value: Any) -> Any:
        return super().holds(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def holds(self, value: Any) -> Any:
        rounding = 10 * value.shape[-1] * arrays.numpy_namespace().finfo(value.dtype).eps
        norms = arrays.numpy_namespace().linalg.norm(value, axis=-1)
        return super().holds(value) & (abs(norms - 1) <= rounding).all(-1)


class _Square(_Matrix):
    def holds(self, value: Any) -> Any:
        return arrays.numpy_namespace().full(value.shape[:-2], value.shape[-2] == value.shape[-1])


class _Symmetric(_Square):
    def holds(self, value: Any) -> Any:
        square = super().holds(value)
        if not square.all():
            return square
        return arrays.numpy_namespace().isclose(value, value.swapaxes(-2, -1), atol=_TOLERANCE).all((-2, -1))


class _PositiveSemidefinite(_Symmetric):
    def holds(self, value: Any) -> Any:
        symmetric = super().holds(value)
        if not symmetric.all():
            return symmetric
        return (arrays.numpy_namespace().linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def holds(self, value: Any) -> Any:
        symmetric = super().holds(value)
        if not symmetric.all():
            return symmetric
        return (arrays.numpy_namespace().linalg.eigvalsh(value) > 0).all(-1)


class _IndependentConstraint(Constraint):
    """A constraint that holds where a constraint holds for all elements along the last axes."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        axes = tuple(range(-self.reinterpreted_batch_ndims, 0))
        return found.all(axes) if axes else found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Dependent(Constraint):
    """A placeholder for a constraint that depends on other parameters."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property):
    """A property of a distribution whose value is a constraint, as `support` may be."""

    def __init__(
        self, fget: Callable[[Any], Any] | None = None, *, is_discrete: bool = False, event_dim: int = 0
    ) -> None:
        super().__init__(fget)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fget: Callable[[Any], Any]) -> dependent_property:
        return dependent_property(fget, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other parameters."""
    return isinstance(constraint, _Dependent)


def _comparable(value: Any, bound: Any) -> Any:
    """A bound to compare with a value: an array of NumPy unless the value is a tensor."""
    if isinstance(bound, Tensor) and not isinstance(value, Tensor):
        return arrays.to_numpy(bound.detach().inner)
    return bound


def _shown(bound: Any) -> Any:
    return bound.item() if isinstance(bound, Tensor) and bound.numel() == 1 else bound


dependent = _Dependent()
independent = _IndependentConstraint
real = _Real()
real_vector = independent(real, 1)
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval = _Interval, _HalfOpenInterval
unit_interval = _Interval(0.0, 1.0)
simplex = _Simplex()
multinomial = _Multinomial
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
