"""The rewrite rules of the algebra by primitive: each function as a sum of products, or of a simpler operand.

A rule receives the algebra, the operands and the parameters, and returns the expression, or None where it does not
apply. The identities hold where the functions are smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import broadcast
from gradcli.errors import EvaluationError, ShapeError
from gradcli.formulas.simplification.algebra import (
    Algebra,
    Formula,
    OpaqueCall,
    Product,
    Sum,
    Symbol,
    is_call,
    topological_order,
)
from gradcli.formulas.simplification.numbers import closed_form
from gradcli.primitives import table
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, add, multiply, subtract
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    greater_equal,
    isfinite,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from gradcli.primitives.entries.elementwise.trigonometric import cos, sin, sinc, tanh
from gradcli.primitives.entries.exponential import log
from gradcli.primitives.entries.powers import raised
from gradcli.primitives.entries.special_functions.special import bessel_i, bessel_j, digamma
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.primitive import Primitive

# _Named applies a primitive, by its name, to the operand; _First gives the derivatives of order 0 and 1.
_Named = Callable[[str], Formula]
_First = Callable[[Algebra, Formula, _Named], tuple[Formula, Formula]]
# From an algebra, an operand, an order n, and the derivatives of order n - 2 and n - 1: the derivative of order n.
_Next = Callable[[Algebra, Formula, int, Formula, Formula], Formula]


# The functions whose derivatives are primitives of the same name, with the order as parameter.
_FAMILIES = frozenset({"scaled_i", "k0e", "dawsn", "ellipk", "ellipe"})


def _primitive(name: str) -> Primitive:
    # The primitive is loaded already: a program contains its derivative.
    from gradcli.primitives.entries.special_functions.bessel import scaled_i

    found = scaled_i if name == "scaled_i" else table.known(name)
    assert isinstance(found, Primitive)
    return found


def _by_recurrence(first: _First, following: _Next) -> Any:
    """The rule of a primitive whose parameter n is the order of its derivative."""

    def identity(algebra: Algebra, operands: Sequence[Formula], params: Mapping[str, Any]) -> Formula | None:
        x, n = operands[0], params["n"]
        if not n:
            return None

        def named(other: str) -> Formula:
            return algebra.function(_primitive(other), x, **({"n": 0} if other in _FAMILIES else {}))

        before, value = first(algebra, x, named)
        for k in range(2, n + 1):
            before, value = value, following(algebra, x, k, before, value)
        return value

    return identity


def _linear(algebra: Algebra, constant: Any, slope: Any, x: Formula) -> Formula:
    return algebra.add(algebra.number(Fraction(constant)), algebra.scale(Fraction(slope), x))


def _first_i(algebra: Algebra, _x: Formula, named: _Named) -> tuple[Formula, Formula]:
    return named("scaled_i"), algebra.add(named("scaled_i"), algebra.negative(named("i1e")))


def _next_i(algebra: Algebra, x: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(algebra.multiply(_linear(algebra, n - 1, 2, x), value), algebra.scale(3 - 2 * n, before))
    return algebra.divide(total, x)


def _first_k(algebra: Algebra, _x: Formula, named: _Named) -> tuple[Formula, Formula]:
    return named("k0e"), algebra.add(named("k1e"), algebra.negative(named("k0e")))


def _next_k(algebra: Algebra, x: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(algebra.multiply(_linear(algebra, n - 1, -2, x), value), algebra.scale(2 * n - 3, before))
    return algebra.divide(total, x)


def _first_dawsn(algebra: Algebra, x: Formula, named: _Named) -> tuple[Formula, Formula]:
    return named("dawsn"), algebra.add(algebra.one, algebra.scale(-2, algebra.multiply(x, named("dawsn"))))


def _next_dawsn(algebra: Algebra, x: Formula, n: int, before: Formula, value: Formula) -> Formula:
    return algebra.add(algebra.scale(-2, algebra.multiply(x, value)), algebra.scale(2 - 2 * n, before))


def _first_ellipk(algebra: Algebra, m: Formula, named: _Named) -> tuple[Formula, Formula]:
    of_second = algebra.divide(named("ellipe"), _linear(algebra, 1, -1, m))
    value = algebra.divide(algebra.add(of_second, algebra.negative(named("ellipk"))), algebra.scale(2, m))
    return named("ellipk"), value


def _next_ellipk(algebra: Algebra, m: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(
        algebra.scale(Fraction(2 * n - 3, 2) ** 2, before),
        algebra.multiply(_linear(algebra, 1 - n, 2 * n - 2, m), value),
    )
    return algebra.divide(total, algebra.multiply(m, _linear(algebra, 1, -1, m)))


def _first_ellipe(algebra: Algebra, m: Formula, named: _Named) -> tuple[Formula, Formula]:
    difference = algebra.add(named("ellipe"), algebra.negative(named("ellipk")))
    return named("ellipe"), algebra.divide(difference, algebra.scale(2, m))


def _next_ellipe(algebra: Algebra, m: Formula, n: int, before: Formula, value: Formula) -> Formula:
    total = algebra.add(
        algebra.scale(Fraction((n - 2) ** 2) - Fraction(1, 4), before),
        algebra.multiply(_linear(algebra, 1 - n, 2 * n - 3, m), value),
    )
    return algebra.divide(total, algebra.multiply(m, _linear(algebra, 1, -1, m)))


def _exponential_integral(algebra: Algebra, operands: Sequence[Formula], params: Mapping[str, Any]) -> Formula | None:
    """expn of order 0 and below: DLMF 8.19.12."""
    x, n = operands[0], params["n"]
    if n > 0:
        return None
    exponential = algebra.power(algebra.euler, algebra.negative(x))
    value = algebra.divide(exponential, x)
    for k in range(1, 1 - n):
        value = algebra.divide(algebra.add(exponential, algebra.scale(k, value)), x)
    return value


def _gamma_density(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    a, x = operands
    gamma = algebra.function(_primitive("gamma"), a)
    power = algebra.power(x, algebra.add(a, algebra.number(-1)))
    return algebra.multiply(
        power, algebra.power(algebra.euler, algebra.negative(x)), algebra.power(gamma, algebra.number(-1))
    )


def _beta_density(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    a, b, x = operands
    shape = broadcast([a.shape, b.shape])
    beta = algebra.call(_primitive("betaln"), [a, b], {}, shape, "float64")
    return algebra.multiply(
        algebra.power(x, algebra.add(a, algebra.number(-1))),
        algebra.power(algebra.add(algebra.one, algebra.negative(x)), algebra.add(b, algebra.number(-1))),
        algebra.power(algebra.euler, algebra.negative(beta)),
    )


def _ive_slope(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    v, x = operands
    shape = broadcast([v.shape, x.shape])
    if isinstance(v, Sum) and v.terms.keys() == {algebra.one}:
        # Orders v - 1 and v + 1 are fractions in the rules; a decimal order would make them different nodes.
        v = algebra.number(Fraction(v.terms[algebra.one]))

    def of_order(step: int) -> Formula:
        return algebra.call(_primitive("ive"), [algebra.add(v, algebra.number(step)), x], {}, shape, "float64")

    there = algebra.multiply(algebra.function(_primitive("sign"), x), of_order(0))
    return algebra.add(
        algebra.scale(Fraction(1, 2), of_order(-1)),
        algebra.scale(Fraction(1, 2), of_order(1)),
        algebra.scale(-1, there),
    )


_SPECIAL_IDENTITIES = {
    "scaled_i": _by_recurrence(_first_i, _next_i),
    "k0e": _by_recurrence(_first_k, _next_k),
    "dawsn": _by_recurrence(_first_dawsn, _next_dawsn),
    "ellipk": _by_recurrence(_first_ellipk, _next_ellipk),
    "ellipe": _by_recurrence(_first_ellipe, _next_ellipe),
    "expn": _exponential_integral,
    "gamma_density": _gamma_density,
    "beta_density": _beta_density,
    "ive_slope": _ive_slope,
}


Identity = Callable[[Algebra, Sequence[Formula], Mapping[str, Any]], Formula | None]

_HALF = Fraction(1, 2)
_LOG_TWO_PI = math.log(2.0 * math.pi)


def number(algebra: Algebra, value: float) -> Formula:
    """A finite number, with the factors pi, log(n) and sqrt(n) that its digits reveal."""
    if value == math.e:
        return algebra.euler
    if abs(value) == _LOG_TWO_PI:
        logarithm_of_two_pi = algebra.function(log, algebra.scale(2, algebra.pi))
        return algebra.scale(1 if value > 0 else -1, logarithm_of_two_pi)
    coefficient, pi, root, n, logarithm = closed_form(value)
    parts = [algebra.number(coefficient)]
    if pi:
        parts.append(algebra.power(algebra.pi, algebra.number(pi)))
    if root != 1:
        parts.append(algebra.power(algebra.number(root), algebra.number(_HALF)))
    if logarithm:
        parts.append(algebra.power(algebra.function(log, algebra.number(n)), algebra.number(logarithm)))
    return algebra.multiply(*parts)


def _power_of(exponent: Fraction | int) -> Identity:
    return lambda algebra, operands, _params: algebra.power(operands[0], algebra.number(exponent))


def _logarithm(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula | None:
    x = operands[0]
    if x is algebra.one:
        return algebra.zero
    if x is algebra.euler:
        return algebra.one
    if isinstance(x, Product) and algebra.euler in x.powers:
        exponent = x.powers[algebra.euler]
        rest = algebra.divide(x, algebra.power(algebra.euler, exponent))
        return exponent if rest is algebra.one else algebra.add(exponent, algebra.function(log, rest))
    return None


def _absolute(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula | None:
    x = operands[0]
    value = algebra.as_number(x)
    if value is not None:
        return algebra.number(abs(value))
    if isinstance(x, Product) and all(b is algebra.euler or algebra.is_even(e) for b, e in x.powers.items()):
        return x
    return None


def _hypotenuse(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula | None:
    """hypot of a symbol and a number as sqrt(x**2 + c); other operands stay, because their squares may overflow."""
    if not any(algebra.as_number(o) is not None for o in operands):
        return None
    if not all(isinstance(o, Symbol) or algebra.as_number(o) is not None for o in operands):
        return None
    two = algebra.number(2)
    squares = [algebra.power(o, two) for o in operands]
    return algebra.power(algebra.add(*squares), algebra.number(_HALF))


def make_where(algebra: Algebra, condition: Formula, x: Formula, y: Formula, dtype: str = "float64") -> Formula:
    """where(condition, x, y); nested choices of the same value are merged into one."""
    if condition is algebra.true or x is y:
        return x
    if condition is algebra.false:
        return y
    if is_call(x, "where") and x.children[1] is y:
        x = _with_swapped_branches(algebra, x)
    if is_call(y, "where") and y.children[2] is x:
        y = _with_swapped_branches(algebra, y)
    if is_call(x, "where") and x.children[2] is y:
        condition, x = _joined(algebra, logical_and, condition, x.children[0]), x.children[1]
    elif is_call(y, "where") and y.children[1] is x:
        condition, y = _joined(algebra, logical_or, condition, y.children[0]), y.children[2]
    return algebra.call(where, [condition, x, y], {}, broadcast([condition.shape, x.shape, y.shape]), dtype)


_OPPOSITE: Mapping[Primitive | None, Primitive] = {
    less: greater_equal, greater_equal: less, greater: less_equal, less_equal: greater, equal: not_equal, not_equal: equal,
}  # fmt: skip


def opposite(algebra: Algebra, condition: Formula) -> Formula | None:
    """The comparison that holds exactly where `condition` does not; None if there is none (or with nan constants)."""
    other = _OPPOSITE.get(condition.primitive) if isinstance(condition, OpaqueCall) else None
    return (
        None
        if other is None or algebra.has_nan
        else algebra.call(other, condition.children, {}, condition.shape, "bool")
    )


def _with_swapped_branches(algebra: Algebra, choice: Formula) -> Formula:
    """A choice with its branches swapped and the opposite condition, where that is a comparison."""
    condition, x, y = choice.children
    against = opposite(algebra, condition)
    if against is None or not isinstance(choice, OpaqueCall):
        return choice
    return algebra.call(where, [against, y, x], {}, choice.shape, choice.dtype)


def _joined(algebra: Algebra, how: Primitive, *conditions: Formula) -> Formula:
    return algebra.call(how, conditions, {}, broadcast([c.shape for c in conditions]), "bool")


def _choice(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    condition, x, y = operands
    of_truths = all(isinstance(o, OpaqueCall) and o.dtype == "bool" for o in (x, y))
    return make_where(algebra, condition, x, y, "bool" if of_truths else "float64")


def _conjunction(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula | None:
    if algebra.false in operands:
        return algebra.false
    left = [o for o in operands if o is not algebra.true]
    return (left or [algebra.true])[0] if len(left) < 2 else None


def _disjunction(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula | None:
    if algebra.true in operands:
        return algebra.true
    left = [o for o in operands if o is not algebra.false]
    return (left or [algebra.false])[0] if len(left) < 2 else None


def _negation(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula | None:
    return {algebra.true: algebra.false, algebra.false: algebra.true}.get(operands[0])


def _equality(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula | None:
    """Return whether two formulas are equal, or None if unknown.

    Different formulas are equal at single points only, unless they choose or pick elements; that is decided by probing.
    Where the program itself compares for equality, those points count and the comparison stays. A formula is not
    compared with itself unless it is a number: nan is not equal to itself.
    """
    if operands[0] is operands[1]:
        return None if algebra.as_number(operands[0]) is None else algebra.true
    apart = algebra.add(operands[0], algebra.negative(operands[1]))
    if algebra.as_number(apart) is not None:
        return algebra.false
    of_number = any(algebra.as_number(o) is not None for o in operands)
    if not all(_is_generic(o, of_number) for o in operands):
        return None
    found = are_equal(algebra, *operands)
    if found is None or (not found and algebra.equality and not _has_infinity(apart)):
        return None
    return algebra.true if found else algebra.false


def _has_infinity(node: Formula) -> bool:
    """Return whether a term of a sum is infinite, so that the finite rest does not matter."""
    terms = node.terms if isinstance(node, Sum) else ()
    constants = [t.array for t in terms if isinstance(t, OpaqueCall) and t.primitive is None]
    return any(arrays.all_true(abs(constant) == math.inf) for constant in constants)


def _inequality(algebra: Algebra, operands: Sequence[Formula], params: Mapping[str, Any]) -> Formula | None:
    equal = _equality(algebra, operands, params)
    return None if equal is None else _negation(algebra, [equal], params)


def _is_generic(node: Formula, of_number: bool) -> bool:
    """Return whether a node contains nothing that can be constant over a range: piecewise functions and predicates such
    as floor(x) and x > 1; and, unless `of_number` (it is compared with a number), nothing that can coincide with
    another formula over a range, such as abs(x) or a maximum."""
    stack, seen = [node], {node}
    while stack:
        current = stack.pop()
        if isinstance(current, OpaqueCall) and current.primitive is not None:
            primitive = current.primitive
            predicate = primitive.truths and primitive.vjp is None
            if primitive.elementwise and (primitive.selects or primitive.piecewise or predicate):
                return False
            if not of_number and (not primitive.elementwise or primitive.smooth is not None):
                return False
        below = [c for c in current.children if c not in seen]
        seen.update(below)
        stack.extend(below)
    return True


def _lower_order(primitive: Primitive, sign: int) -> Identity:
    """Bessel functions of higher order by those of orders 0 and 1: DLMF 10.6.1 and 10.29.1."""

    def identity(algebra: Algebra, operands: Sequence[Formula], params: Mapping[str, Any]) -> Formula | None:
        x, n = operands[0], params["n"]
        if n < 2:
            return None
        below, at = algebra.function(primitive, x, n=0), algebra.function(primitive, x, n=1)
        for k in range(1, n):
            step = algebra.multiply(algebra.number(2 * k * sign), algebra.divide(at, x))
            below, at = at, algebra.add(step, algebra.scale(-sign, below))
        return at

    return identity


def _sinc(algebra: Algebra, operands: Sequence[Formula], params: Mapping[str, Any]) -> Formula | None:
    """The n-th derivative of sinc, by the recurrence that `sinc` uses away from 0."""
    x, n = operands[0], params["n"]
    if n == 0:
        return None
    angle = algebra.multiply(algebra.pi, x)
    before = algebra.function(sinc, x, n=0)
    for k in range(1, n + 1):
        wave = algebra.function((sin, cos)[k % 2], angle)
        scale = algebra.multiply(
            algebra.number((1, 1, -1, -1)[k % 4]), algebra.power(algebra.pi, algebra.number(k - 1))
        )
        before = algebra.divide(algebra.add(algebra.multiply(scale, wave), algebra.scale(-k, before)), x)
    return before


def _digamma_rise(algebra: Algebra, operands: Sequence[Formula], _params: Mapping[str, Any]) -> Formula:
    return algebra.add(
        algebra.function(digamma, algebra.add(*operands)), algebra.negative(algebra.function(digamma, operands[0]))
    )


def _one_minus_square(algebra: Algebra, x: Formula) -> Formula:
    return algebra.add(algebra.one, algebra.negative(algebra.power(x, algebra.number(2))))


IDENTITIES: dict[str, Identity] = {
    "identity": lambda _algebra, operands, _params: operands[0],
    "cast": lambda algebra, operands, _params: operands[0] if operands[0] in (algebra.one, algebra.zero) else None,
    "add": lambda algebra, operands, _params: algebra.add(*operands),
    "subtract": lambda algebra, operands, _params: algebra.add(operands[0], algebra.negative(operands[1])),
    "negative": lambda algebra, operands, _params: algebra.negative(operands[0]),
    "multiply": lambda algebra, operands, _params: algebra.multiply(*operands),
    "divide": lambda algebra, operands, _params: algebra.divide(*operands),
    "reciprocal": _power_of(-1),
    "sqrt": _power_of(_HALF),
    "one_minus_square": lambda algebra, operands, _params: _one_minus_square(algebra, operands[0]),
    "over_one_plus_square": lambda algebra, operands, _params: algebra.power(
        algebra.add(algebra.one, algebra.power(operands[0], algebra.number(2))), algebra.number(-1)
    ),
    "sech_square": lambda algebra, operands, _params: _one_minus_square(algebra, algebra.function(tanh, operands[0])),
    "digamma_rise": _digamma_rise,
    "flat_sqrt": _power_of(_HALF),
    "rsqrt": _power_of(-_HALF),
    "whole_power": lambda algebra, operands, params: algebra.power(operands[0], algebra.number(Fraction(params["n"]))),
    "pow": lambda algebra, operands, _params: algebra.power(*operands),
    "exp": lambda algebra, operands, _params: algebra.power(algebra.euler, operands[0]),
    "exp2": lambda algebra, operands, _params: algebra.power(algebra.number(2), operands[0]),
    "log": _logarithm,
    "abs": _absolute,
    "hypot": _hypotenuse,
    "where": _choice,
    "logical_and": _conjunction,
    "logical_or": _disjunction,
    "logical_not": _negation,
    "equal": _equality,
    "not_equal": _inequality,
    "isfinite": lambda algebra, _operands, _params: None if algebra.finiteness else algebra.true,
    "bessel_j": _lower_order(bessel_j, 1),
    "bessel_i": _lower_order(bessel_i, -1),
    "sinc": _sinc,
    **_SPECIAL_IDENTITIES,
}


def is_linear(primitive: Primitive) -> bool:
    """Return whether a scalar factor of any operand can be taken out of the function."""
    if primitive.elementwise or primitive.variadic:
        return False
    return primitive.multilinear or (primitive.jet is linear and len(primitive.vjp or ()) == 1)  # type: ignore[arg-type]


# --- numerical tests of identity at random points

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
    """Return whether two formulas agree at all sample points; None where they agree at some points or in some elements
    only. False, too, where they cannot be evaluated."""
    nodes = sorted({*topological_order(one), *topological_order(other)}, key=lambda node: node.rank)
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
    return arrays.all_true(near) or (False if arrays.all_true(logical_not(near)) else None)


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
    if isinstance(node, OpaqueCall):
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
