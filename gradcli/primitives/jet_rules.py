"""Jet rules (rules for truncated Taylor series), by family.

A rule `rule(primitive, y, *operands, **params)` is a generator of the coefficients 1, 2, 3, … of the result `y`. Each
may depend on lower coefficients of `y`, and on coefficients of the operands up to its own order; the operands are all
series (see `gradcli.kinds.jets.Jet`). None stands for zero. As every coefficient is computed once and kept, a rule
that sums over products takes O(N**2) multiplications for N coefficients. The recurrences are those of A. Griewank and
A. Walther, "Evaluating Derivatives" (2nd edition, 2008), chapter 13.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from gradcli import limits
from gradcli.primitives.bind import bind
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.primitives.primitive import Primitive

Coefficients = Iterator[Any]

# The number of coefficients, zero or not, that are visited at the cost of an eighth of a step.
_LOOKS = 4
# The cost of a product of two coefficients, in eighths of a step.
_TERM = 2


def locally_constant(_primitive: Primitive, _y: Any, *_operands: Any, **_params: Any) -> Coefficients:
    """Rule of a function whose derivative is 0 wherever it exists."""
    return itertools.repeat(None)


def linear(primitive: Primitive, y: Any, *operands: Any, **params: Any) -> Coefficients:
    """Rule of a function that is jointly linear in the operands that have a derivative."""
    varied = [primitive.rule(i) is not None for i in range(len(operands))]
    for k in itertools.count(1):
        parts = [x.coefficient(k) if v else x.inner for x, v in zip(operands, varied)]
        if all(part is None for part, v in zip(parts, varied) if v):
            yield None
        else:
            yield bind(primitive, [x.zeros() if part is None else part for x, part in zip(operands, parts)], params)


def multilinear(primitive: Primitive, y: Any, *operands: Any, **params: Any) -> Coefficients:
    """Rule of a function that is linear in each of its operands: the product rule."""
    for k in itertools.count(1):
        yield y.total(bind(primitive, parts, params) for parts in _parts_of_order(k, operands))


def _parts_of_order(k: int, operands: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """All choices of one nonzero coefficient of each operand whose orders add up to `k`."""
    first, rest = operands[0], operands[1:]
    limits.charge_steps(1 + k // _LOOKS)
    if not rest:
        last = first.coefficient(k)
        if last is not None:
            yield (last,)
        return
    for i in range(k + 1):
        part = first.coefficient(i)
        if part is not None:
            yield from ((part, *others) for others in _parts_of_order(k - i, rest))


def products(
    operation: Callable[[Any, Any], Any], a: Any, b: Any, k: int, first: int = 0, last: int = 0
) -> Iterator[Any]:
    """`operation` of coefficients i of `a` and k - i of `b`, for i from `first` to k - `last`."""
    first, end = max(first, k - b.degree), min(k - last, a.degree) + 1
    limits.charge_steps(1 + max(0, end - first) // _LOOKS)
    terms = 0
    for i in range(first, end):
        left, right = a.coefficient(i), b.coefficient(k - i)
        if left is not None and right is not None:
            terms += 1
            yield operation(left, right)
    limits.charge_steps(_TERM * terms)


def from_derivative(primitive: Primitive, y: Any, *operands: Any, **params: Any) -> Coefficients:
    """Rule of a function whose Jacobian by each operand is symmetric, such as every elementwise one.

    The vjp rule then also computes the jvp: y' is the sum over operands of rule(x'), where x' and the operands are
    series one order shorter. A rule that reads y reads the series under construction, and never needs a coefficient
    that is not known yet.
    """
    inner = y.inside_rule(primitive, operands, params)
    terms = [
        primitive.rule(i)(x.derivative(), y, *inner, **params)
        for i, x in enumerate(operands)
        if primitive.rule(i) is not None and x.coefficient(1) is not None
    ]
    yield from integrate_coefficients(y, y.total(terms))


def integrate_coefficients(y: Any, slope: Any) -> Coefficients:
    """The coefficients of y from those of y', a series, a constant, or None for 0."""
    if slope is None:
        yield from itertools.repeat(None)
    slope = y.lift(slope)
    for k in itertools.count(1):
        yield y.scaled(slope.coefficient(k - 1), 1, k)


def jet_through_definition(function: Callable[..., Any]) -> Callable[..., Coefficients]:
    """The jet rule of a primitive that equals `function`, which is composed of other primitives."""

    def rule(_primitive: Primitive, y: Any, *operands: Any, **params: Any) -> Coefficients:
        made = y.lift(function(*operands, **params))
        yield from map(made.coefficient, itertools.count(1))

    return rule
