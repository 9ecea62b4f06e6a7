"""Transforms from all real numbers to those that satisfy a constraint: `biject_to` and `transform_to`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.distributions import constraints
from gradcli.distributions.constraints import Constraint
from gradcli.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StickBreakingTransform,
    Transform,
    identity_transform,
)

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Finds, for a constraint, a transform of all real numbers to those that satisfy it."""

    def __init__(self) -> None:
        self._factories: dict[type[Constraint], Factory] = {}

    def register(self, constraint: Constraint | type[Constraint], factory: Factory | None = None) -> Any:
        """Register a function of a constraint that returns its transform; a decorator without a function."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform. Raises NotImplementedError for a constraint that has none."""
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


# The transforms of `biject_to` are bijective; those of `transform_to` may take more numbers than needed.
biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _above(lower_bound: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(lower_bound, 1)])


def _between(constraint: Any) -> Transform:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, (int, float)) and lower == 0 and isinstance(upper, (int, float)) and upper == 1:
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(lower, upper - lower)])


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda _constraint: identity_transform)
    _registry.register(
        constraints.greater_than, lambda c: ExpTransform() if c is constraints.positive else _above(c.lower_bound)
    )
    _registry.register(
        constraints.greater_than_eq, lambda c: ExpTransform() if c is constraints.nonnegative else _above(c.lower_bound)
    )
    _registry.register(
        constraints.less_than, lambda c: ComposeTransform([ExpTransform(), AffineTransform(c.upper_bound, -1)])
    )
    _registry.register(constraints.interval, _between)
    _registry.register(constraints.half_open_interval, _between)
    _registry.register(constraints.corr_cholesky, lambda _constraint: CorrCholeskyTransform())


def _independent(registry: ConstraintRegistry) -> Factory:
    return lambda c: IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims)


biject_to.register(constraints.independent, _independent(biject_to))
transform_to.register(constraints.independent, _independent(transform_to))
biject_to.register(constraints.simplex, lambda _constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _constraint: SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _constraint: LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _constraint: PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _constraint: PositiveDefiniteTransform())
