"""Tests numerically whether two formulas are identical, by evaluating them at random points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.errors import EvaluationError, ShapeError
from gradcli.formulas.algebra import Algebra, Application, Formula, Product, Sum, Symbol, in_order
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, add, multiply, subtract
from gradcli.primitives.entries.comparisons import (
    equal,
    isfinite,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
)
from gradcli.primitives.entries.powers import raised

# Maps a random number from [0, 1) to a sample value: positive, negative, or larger.
_PROBES: tuple[Callable[[float], float], ...] = (
    lambda part: 0.3 + part,
    lambda part: -0.3 - part,
    lambda part: 2.0 + 3.0 * part,
)
# Formulas with larger tensors are not evaluated.
_MOST_ELEMENTS = 1_000
_ALIKE = 1e-12


def are_equal(algebra: Algebra, one: Formula, other: Formula) -> bool | None:
    """Whether two formulas agree at all sample points; None where they agree at some points or in some elements only.
    False, too, where they cannot be evaluated."""
    nodes = sorted({*in_order(one), *in_order(other)}, key=lambda node: node.rank)
    if any(math.prod(node.shape) > _MOST_ELEMENTS for node in nodes):
        return False
    with arrays.using_namespace(None):
        found = [_are_equal_at(algebra, nodes, n, one, other) for n in range(len(_PROBES))]
    return found[0] if len({*found}) == 1 else None


def _are_equal_at(algebra: Algebra, nodes: list[Formula], n: int, one: Formula, other: Formula) -> bool | None:
    known = algebra.probed.setdefault(n, {})
    try:
        for node in nodes:
            if node not in known:
                known[node] = _value(node, known, _PROBES[n])
        apart, size = absolute(subtract(known[one], known[other])), absolute(known[other])
        close = logical_and(isfinite(apart), less_equal(apart, multiply(_ALIKE, add(1.0, size))))
        # An infinity is close only to itself.
        near = logical_or(close, equal(known[one], known[other]))
    except (EvaluationError, ShapeError, OverflowError):
        # There is no value (such as the inverse of a singular matrix), or a coefficient overflows a float.
        return False
    return arrays.every(near) or (False if arrays.every(logical_not(near)) else None)


def _value(node: Formula, known: dict[Formula, Any], probe: Callable[[float], float]) -> Any:
    """The value of a node from the values of its children."""
    if isinstance(node, Symbol):
        if isinstance(node.value, float):
            return node.value
        # Imported here because most formulas are not probed.
        from random import Random

        parts = Random(node.rank)
        numbers = [probe(parts.random()) for _ in range(math.prod(node.shape))]
        return reshape(arrays.asarray(numbers, "float64"), node.shape) if node.shape else numbers[0]
    if isinstance(node, Application):
        if node.primitive is None:
            return node.array
        return bind(node.primitive, [known[c] for c in node.children], node.params)
    if isinstance(node, Product):
        result: Any = 1.0
        for base, exponent in node.powers.items():
            result = multiply(result, raised(known[base], known[exponent]))
        return result
    assert isinstance(node, Sum)
    result = 0.0
    for term, c in node.terms.items():
        result = add(result, multiply(float(c), known[term]))
    return result
