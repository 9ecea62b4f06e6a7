"""Numbers that are no floats, as functions of the namespace: the float next to such a number as ever, and the number
itself where the namespace that was chosen is exact.

A rule that is written with one calls for it each time, as the digits of a ball are those of the precision that holds then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from gradcli.arrays.namespaces import chosen_namespace

Array = Any


def by_formula(formula: Callable[[Any], Any]) -> Callable[[], Array]:
    """A number by its formula, `by_formula(lambda m: 2.0 / m.sqrt(m.pi))`, in which `m` has what is used of `math`."""
    number: float = formula(math)

    def value() -> Array:
        namespace = chosen_namespace()
        if namespace is None or namespace.scalars is None:
            return number
        return namespace.asarray(formula(_exactly()))

    return value


def decimal(text: str) -> Callable[[], Array]:
    """A number by its decimal digits."""
    number = float(text)

    def value() -> Array:
        namespace = chosen_namespace()
        if namespace is None or namespace.scalars is None:
            return number
        return namespace.asarray(_exactly().from_text(text))

    return value


def ratio(numerator: int, denominator: int = 1) -> Array:
    """A fraction, or a whole number that may be too large for a float to be it."""
    namespace = chosen_namespace()
    if namespace is None or namespace.scalars is None:
        return numerator / denominator
    return namespace.asarray(_exactly().ratio(numerator, denominator))


def is_exact() -> bool:
    """Whether the namespace that was chosen is exact, so that no rule has to look after roundings."""
    namespace = chosen_namespace()
    return namespace is not None and namespace.scalars is not None


@cache
def _exactly() -> Any:
    from gradcli.arrays import flint_constants

    return flint_constants


pi = by_formula(lambda m: m.pi)
log_2 = by_formula(lambda m: m.log(2))
half_log_2_pi = by_formula(lambda m: 0.5 * m.log(2 * m.pi))
sqrt_2_pi = by_formula(lambda m: m.sqrt(2 * m.pi))
