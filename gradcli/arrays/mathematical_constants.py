"""Irrational constants for derivative rules: floats, or balls at the current precision if the namespace is exact.

A rule calls the constant each time that it is used, because the digits of a ball depend on the current precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from gradcli.arrays.namespaces import chosen_namespace
from gradcli.type_hints import Any

Array = Any

# The golden ratio, below 1: the fractional parts of its first multiples are far from each other.
GOLDEN_RATIO = 0.6180339887498949


def by_formula(formula: Callable[[Any], Any]) -> Callable[[], Array]:
    """A constant given by a formula, in which the parameter `m` is `math` or its counterpart for balls.

    For example `by_formula(lambda m: 2.0 / m.sqrt(m.pi))`.
    """
    number: float = formula(math)

    def value() -> Array:
        namespace = chosen_namespace()
        if namespace is None or namespace.scalars is None:
            return number
        return namespace.asarray(formula(_exactly()))

    return value


def decimal(text: str) -> Callable[[], Array]:
    """A constant given by its decimal digits."""
    number = float(text)

    def value() -> Array:
        namespace = chosen_namespace()
        if namespace is None or namespace.scalars is None:
            return number
        return namespace.asarray(_exactly().from_text(text))

    return value


def ratio(numerator: int, denominator: int = 1) -> Array:
    """The fraction numerator/denominator; in an exact namespace without rounding."""
    namespace = chosen_namespace()
    if namespace is None or namespace.scalars is None:
        return numerator / denominator
    return namespace.asarray(_exactly().ratio(numerator, denominator))


def is_exact() -> bool:
    """Return whether the chosen namespace is exact, so that rules need no care about rounding errors."""
    namespace = chosen_namespace()
    return namespace is not None and namespace.scalars is not None


def working_precision() -> int:
    """The working precision in bits of balls if the chosen namespace is exact, else 0."""
    if not is_exact():
        return 0
    from gradcli.arrays.flint.balls import precision

    return precision()


@cache
def _exactly() -> Any:
    from gradcli.arrays.flint import flint_constants

    return flint_constants


pi = by_formula(lambda m: m.pi)
log_2 = by_formula(lambda m: m.log(2))
log_10 = by_formula(lambda m: m.log(10))
half_log_2_pi = by_formula(lambda m: 0.5 * m.log(2 * m.pi))
sqrt_2_pi = by_formula(lambda m: m.sqrt(2 * m.pi))
