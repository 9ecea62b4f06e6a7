"""Integrals up to a limit that moves and at which the integrand is singular, by the distance from that limit.

With x = end + step*u, the integrand is singular at u = 0 whatever moves the end, so that Leibniz' rule gives derivatives
of every order. Values that are polynomials in x are computed by their coefficients: x - end is step*u, and not the
difference of two numbers that are almost equal, of which floats come arbitrarily close to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.autograd.tensor import Tensor
from gradcli.functionals.body import Body
from gradcli.functionals.integrals.integral import integral
from gradcli.functionals.switches import number_of
from gradcli.kinds.branch_points import watching
from gradcli.kinds.jets import Jet
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.elementwise.trigonometric import one_minus_square
from gradcli.primitives.entries.powers import whole_power
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program, Variable

# The distance from a limit, relative to that between both, at which an integrand that is singular at the limit is smaller
# by this factor, as the derivative of sqrt(x) is.
_BESIDE, _LARGER = 1e-6, 64.0
# A bound on the degree of polynomials.
_MOST_DEGREE = 4
# A coefficient is 0 if, for all samples of what is read, it is this part of its summands and less.
_VANISHING = 2.0**-44


def is_singular_at(body: Body, limit: Any, other: Any, reads: Sequence[Any]) -> bool:
    """Return whether a function, or one of its derivatives up to the order that is asked for, is infinite or undefined at a
    finite limit by which is differentiated, or much larger there than a little closer to the other limit, as where
    rounding leaves a small number in place of 0."""
    # Inner integrals take long where their limits are computed from a place that is.
    if is_exact() or not isinstance(limit, Kind) or any(e.primitive is integral for e in body.program.equations):
        return False
    numbers = [n for n in map(number_of, (limit, other, *reads)) if n is not None]
    if len(numbers) < 2 + len(reads) or not math.isfinite(numbers[0]) or numbers[0] == numbers[1]:
        return False
    place, end, *given = numbers
    inside = place + _BESIDE * (end - place if math.isfinite(end) else math.copysign(1.0, end))
    order = max(map(_order, (limit, *reads)))
    # What is equal here is none of the program's branches.
    with watching(None), arrays.using_namespace(None), arrays.quiet():
        at, near = ([*body(x, *given), *body.partial(0)(x, *given)] for x in (place, inside))
        if order > 1:
            at, near = ([*found, *_further(body, x, given, order)] for found, x in ((at, place), (near, inside)))
    return any(not math.isfinite(x) or abs(x) > _LARGER * abs(y) for x, y in zip(at, near))


def _order(value: Any) -> int:
    """The order of the derivatives that a value is computed with."""
    order = 0
    while isinstance(value, (Tensor, Jet)):
        order += value.order if isinstance(value, Jet) else 1
        value = value.inner
    return order


def _further(body: Body, x: float, given: Sequence[float], order: int) -> list[float]:
    """The Taylor coefficients of a function at a place from order 2 on."""
    (found,) = body(Jet([x, 1.0], order), *given)
    coefficients = (found.coefficient(k) if isinstance(found, Jet) else None for k in range(2, order + 1))
    return [0.0 if c is None else float(c) for c in coefficients]


def by_distances(
    body: Body, low: Any, high: Any, reads: Sequence[Any], sampled: Sequence[float], params: Mapping[str, Any]
) -> Any:
    """The integral of a body with one result, whose singularities at moved ends are at fixed places of a new variable.

    `sampled` has samples of both limits and all reads. None where no end is singular, and where the distance from a
    singular one is not what the integrand computes with.
    """
    ends = [is_singular_at(body, *limits, reads) for limits in ((low, high), (high, low))]
    if not any(ends):
        return None
    length = sampled[1] - sampled[0]
    span = high - low if math.isfinite(length) else math.copysign(2.0, length)
    parts, rest = [], [low, high]
    for number, limit in enumerate((low, high)):
        if not ends[number]:
            continue
        sign = -1.0 if number else 1.0
        step = (0.5 * sign) * span
        beside = _beside(body, sign, [number_of(limit), *map(number_of, reads)], [sampled[number], *sampled[2:]])
        if beside is None:
            return None
        parts.append(bind(integral, (0.0, 1.0, limit, step, *reads), {"body": beside, **params}))
        rest[number] = limit + step
    if not all(ends):
        parts.append(bind(integral, (*rest, *reads), {"body": body, **params}))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _beside(body: Body, sign: float, *numbers: Sequence[Any]) -> Body | None:
    """The body by the new variable, which reads the end, the step, and what it reads itself; None where no difference from
    the end vanishes for all `numbers`, each of the end and of the reads."""
    vanished = False

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        nonlocal vanished
        u, end, step, *reads = inputs
        known = [_Coefficient(v, s, max(map(abs, s))) for v, *s in zip((end, *reads), *numbers)]
        polynomials = _Polynomials(step * u)
        value, *conditions = polynomials.outputs(program, known)
        vanished = vanished or polynomials.vanished
        return [(sign * step) * value, *conditions]

    found = body.derived(run, 1, 2 + body.reads)
    return found if vanished else None


class _Coefficient(NamedTuple):
    """A coefficient, its samples, and the magnitude of their summands."""

    value: Any
    samples: Sequence[float]
    size: float


# The coefficients from that of order 0 on; None is 0.
_Polynomial = list[_Coefficient | None]


class _Polynomials:
    """Runs a program on polynomials in a distance as far as its operations allow."""

    def __init__(self, distance: Any) -> None:
        self.distance = distance
        # Whether a constant coefficient was 0, so that a polynomial vanishes with the distance.
        self.vanished = False

    def outputs(self, program: Program, known: Sequence[_Coefficient]) -> list[Any]:
        """The outputs, where the first input is the first of the `known` numbers plus the distance, and the others are the
        others."""
        unit = [1.0] * len(known[0].samples)
        first: _Polynomial = [known[0], _Coefficient(1.0, unit, 1.0)]
        values: dict[Variable, Any] = dict(zip(program.inputs, [first, *([k] for k in known[1:])]))

        def value(atom: Any) -> Any:
            if isinstance(atom, Variable):
                return values[atom]
            plain = type(atom) in (float, int)
            return [_Coefficient(float(atom), [float(atom)] * len(unit), abs(atom))] if plain else atom

        for primitive, inputs, params, output in program.equations:
            operands = [value(a) for a in inputs]
            found = self._polynomial(primitive, operands, params)
            values[output] = bind(primitive, [*map(self.number, operands)], params) if found is None else found
        return [self.number(value(a)) for a in program.outputs]

    def number(self, operand: Any) -> Any:
        """The number that an operand is; one that vanishes with the distance is a multiple of it."""
        if not isinstance(operand, list):
            return operand
        found: Any = None
        for coefficient in reversed(operand):
            found = None if found is None else found * self.distance
            if coefficient is not None:
                found = coefficient.value if found is None else found + coefficient.value
        return 0.0 if found is None else found

    def _polynomial(
        self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> _Polynomial | None:
        """The result of an operation, if that is a polynomial."""
        if not all(isinstance(o, list) for o in operands):
            return None
        if all(len(o) == 1 and o[0] is not None for o in operands):
            return _of_constants(primitive, [o[0] for o in operands], params)
        rule = _RULES.get(primitive)
        found = None if rule is None else rule(*operands, **params)
        if found is None or len(found) > 1 + _MOST_DEGREE:
            return None
        if found[0] is None:
            self.vanished = True
        return found


def _of_constants(
    primitive: Primitive, operands: Sequence[_Coefficient], params: Mapping[str, Any]
) -> _Polynomial | None:
    if primitive.vjp is None:
        return None
    value = bind(primitive, [o.value for o in operands], params)
    with arrays.using_namespace(None), arrays.quiet():
        sampled = [float(bind(primitive, list(row), params)) for row in zip(*(o.samples for o in operands))]
    # The summands of a sum that vanishes are those of its operands.
    size = max(max(map(abs, sampled)), sum(o.size for o in operands) if primitive in (add, subtract) else 0.0)
    return [_Coefficient(value, sampled, size)]


def _combined(primitive: Primitive, a: _Coefficient | None, b: _Coefficient | None) -> _Coefficient | None:
    """A sum, difference or product of coefficients."""
    if primitive is multiply:
        if a is None or b is None:
            return None
        size = a.size * b.size
    else:
        if b is None:
            return a
        if a is None:
            return b if primitive is add else _negated(b)
        size = a.size + b.size
    with arrays.using_namespace(None):
        sampled = [float(bind(primitive, (x, y), {})) for x, y in zip(a.samples, b.samples)]
    if all(abs(s) <= _VANISHING * size for s in sampled):
        return None
    return _Coefficient(bind(primitive, (a.value, b.value), {}), sampled, size)


def _negated(c: _Coefficient) -> _Coefficient | None:
    return _combined(multiply, _constant(-1.0, c), c)


def _constant(number: float, like: _Coefficient) -> _Coefficient:
    return _Coefficient(number, [number] * len(like.samples), abs(number))


def _sum(primitive: Primitive) -> Callable[[_Polynomial, _Polynomial], _Polynomial]:
    def rule(a: _Polynomial, b: _Polynomial) -> _Polynomial:
        length = max(len(a), len(b))
        rows = ([*p, *[None] * (length - len(p))] for p in (a, b))
        return [_combined(primitive, x, y) for x, y in zip(*rows)]

    return rule


def _product(a: _Polynomial, b: _Polynomial) -> _Polynomial:
    found: _Polynomial = [None] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] = _combined(add, found[i + j], _combined(multiply, x, y))
    return found


def _power(a: _Polynomial, *, n: float) -> _Polynomial | None:
    if not 1 <= n <= _MOST_DEGREE:
        return None
    found = a
    for _ in range(int(n) - 1):
        found = _product(found, a)
    return found


def _negative(a: _Polynomial) -> _Polynomial:
    return [None if c is None else _negated(c) for c in a]


def _quotient(a: _Polynomial, b: _Polynomial) -> _Polynomial | None:
    """By a number."""
    divisor = b[0]
    if len(b) > 1 or divisor is None or 0.0 in divisor.samples:
        return None
    (inverse,) = _of_constants(divide, [_constant(1.0, divisor), divisor], {}) or [None]
    return _product(a, [inverse])


def _one_minus_square(a: _Polynomial) -> _Polynomial:
    one = _constant(1.0, next(c for c in a if c is not None))
    return _product(_sum(subtract)([one], a), _sum(add)([one], a))


_RULES: Mapping[Any, Callable[..., _Polynomial | None]] = {
    add: _sum(add),
    subtract: _sum(subtract),
    negative: _negative,
    multiply: _product,
    divide: _quotient,
    whole_power: _power,
    one_minus_square: _one_minus_square,
}
