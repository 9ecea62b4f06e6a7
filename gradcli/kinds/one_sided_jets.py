"""One-sided Taylor series as operands: f(x + t*v) for small t > 0, along a ray from a point that may be a kink.

A `Jet` is expanded at its point, where a kink has the derivative of a convention. A `OneSidedJet` is expanded on one side of
it: comparisons, signs and maxima are decided by the first coefficients that differ, and roots and quotients that are 0
at the point are series again, as sqrt(t**2) is t. If the series along all rays agree with one polynomial, it is the
Taylor polynomial of f, whatever kinks occur on the way; see `gradcli.calculus.kinks`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import broadcast
from gradcli.errors import EvaluationError
from gradcli.kinds import perturbation
from gradcli.kinds.jets import Jet
from gradcli.primitives.bind import Kind, assume, bind
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import (
    absolute,
    add,
    ceil,
    copysign,
    divide,
    floor,
    floor_divide,
    fmod,
    heaviside,
    multiply,
    negative,
    reciprocal,
    remainder,
    round_to_even,
    sign,
    subtract,
    trunc,
)
from gradcli.primitives.entries.comparisons import (
    clip_between,
    equal,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    not_equal,
    nowhere,
    where,
)
from gradcli.primitives.entries.elementwise.logarithmic_powers import power_times_log, power_times_logs
from gradcli.primitives.entries.elementwise.trigonometric import atan2, hypot
from gradcli.primitives.entries.exponential import expm1, relu
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear_algebra.decompositions import eigenvectors, eigvalsh, svdvals
from gradcli.primitives.entries.linear_algebra.singular_vectors import left_vectors, paired_values, right_vectors
from gradcli.primitives.entries.powers import cbrt, general_power, rsqrt, sqrt, whole_power
from gradcli.primitives.entries.reductions import argmax, argmin, max_, min_, order_statistic
from gradcli.primitives.entries.sampled_data.order_statistics import (
    cummax_positions,
    cummin_positions,
    positions_in_order,
)
from gradcli.primitives.entries.scans import sort
from gradcli.primitives.entries.shape import ravel
from gradcli.primitives.entries.special_functions.special import elu, leaky_relu
from gradcli.primitives.entries.statistics import flat_root, flat_sqrt
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}
# The order of a constant, whose coefficients are all known: the largest order of a series.
_MAX_ORDER = 170


class NoOneSidedSeriesError(EvaluationError):
    """A function has no one-sided Taylor series, or none that is known."""


class OutsideDomainError(NoOneSidedSeriesError):
    """A ray leaves the domain of a function."""


class OneSidedJet(Jet):
    """A Taylor series in t that is valid for small t > 0.

    A square root keeps its `square`, so that its even powers are exact although coefficients of roots are rounded. A
    matrix keeps its `decompositions`, so that its values and vectors belong together.

    With `poles`, the first coefficient, `inner`, is that of t**-poles.
    """

    __slots__ = ("decompositions", "poles", "square")
    one_sided = True

    def __init__(self, coefficients: Sequence[Any], order: int) -> None:
        super().__init__(coefficients, order)
        self.square: OneSidedJet | None = None
        self.decompositions: dict[Any, Any] = {}
        self.poles = 0

    def as_root_of(self, square: Any) -> OneSidedJet:
        self.square = square
        return self

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Apply the primitive on one side of the point. Raises NoOneSidedSeriesError at a kink or pole for which there
        is no rule."""
        if any(isinstance(o, OneSidedJet) and o.poles for o in operands):
            return _with_poles(primitive, operands, params)
        rule = _RULES.get(primitive)
        if rule is not None and not any(isinstance(o, Jet) and o.is_growing for o in operands):
            return rule(
                *[o if isinstance(o, OneSidedJet) else OneSidedJet([o], _MAX_ORDER) for o in operands], **params
            )
        if primitive.smooth is not None and rule is None:
            primals = [o.inner if isinstance(o, Jet) else o for o in operands]
            if not primitive.smooth(*primals, **params):
                raise NoOneSidedSeriesError(f"'{primitive.called}' has no one-sided series here")
        found = Jet._applied(primitive, operands, params)
        # A result under construction inside a rule does not have all coefficients yet.
        is_whole = primitive.elementwise and isinstance(found, OneSidedJet) and not found._growing
        return _with_constants(found, operands) if is_whole else found


def _with_constants(found: OneSidedJet, operands: Sequence[Any]) -> OneSidedJet:
    """Replace the coefficients of an elementwise result by 0 where all operands are constant and the slope is
    infinite."""
    slope = found.coefficient(1)
    if slope is None or assume(isfinite(slope)):
        return found
    series = [o for o in operands if isinstance(o, Jet)]
    varies: Any = False
    for k, x in itertools.product(range(1, found.order + 1), series):
        if (coefficient := x.coefficient(k)) is not None:
            varies = logical_or(varies, not_equal(coefficient, 0.0))
    # The order is halved: coefficients beyond the known ones may differ from 0, as in the root of such a series.
    order = found.order // 2
    return OneSidedJet(
        [found.inner, *(where(varies, found.dense_coefficient(k), 0.0) for k in range(1, order + 1))], order
    )


def _with_poles(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Apply a primitive to operands with poles: to the operands times powers of t, and divide the result by a power of
    t."""
    if primitive is reciprocal:
        return divide(1.0, operands[0])
    poles = [o.poles if isinstance(o, OneSidedJet) else 0 for o in operands]
    if primitive.multilinear or primitive is multiply:
        total, powers = sum(poles), poles
    elif primitive is divide:
        total, powers = poles[0] - poles[1], poles
    elif primitive is whole_power and params["n"] > 0:
        total, powers = poles[0] * int(params["n"]), poles
    elif primitive.jet is linear or primitive in _HOMOGENEOUS:
        total = max(poles)
        differentiable = primitive.differentiable(len(operands))
        powers = [total if isinstance(o, OneSidedJet) or differentiable >> i & 1 else 0 for i, o in enumerate(operands)]
    else:
        raise NoOneSidedSeriesError(f"'{primitive.called}' of a pole has no series")
    found = bind(primitive, [_times_power(o, n) if n else o for o, n in zip(operands, powers)], params)
    return _over_power(found, total) if isinstance(found, OneSidedJet) else found


def _times_power(x: Any, n: int) -> OneSidedJet:
    """x*t**n, where n is at least the number of poles of x."""
    series = x if isinstance(x, OneSidedJet) else OneSidedJet([x], _MAX_ORDER)
    zeros = n - series.poles
    return OneSidedJet([series.zeros()] * zeros + [*series.coefficients], series.order + zeros)


def _over_power(x: OneSidedJet, n: int) -> OneSidedJet:
    """x/t**n, without leading zero coefficients of negative powers."""
    total = x.poles + n
    if total < 0:
        return _times_power(x, -n)
    coefficients = [*x.coefficients]
    while total and len(coefficients) > 1 and nowhere(not_equal(coefficients[0], 0.0)):
        coefficients, total = coefficients[1:], total - 1
        if coefficients[0] is None:
            coefficients[0] = x.zeros()
    if total > 0 and nowhere(not_equal(coefficients[0], 0.0)):
        # All known coefficients are 0.
        coefficients, total = [x.zeros()], 0
    found = OneSidedJet(coefficients, x.order - (x.poles + n - total))
    found.poles = total
    if found.order < 0:
        raise NoOneSidedSeriesError("a pole takes all coefficients that are known")
    return found


def _smoothly(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """Apply a primitive to series at a point where it is smooth."""
    return Jet._applied(primitive, operands, params)


# --- comparisons


def _trichotomy(a: OneSidedJet, b: OneSidedJet) -> tuple[Any, Any, Any]:
    """Return three masks: of the elements with a < b, with a = b and with a > b, for small t > 0."""
    below, above = less(a.inner, b.inner), greater(a.inner, b.inner)
    tied = equal(a.inner, b.inner)
    for k in range(1, min(a.order, b.order) + 1):
        first, second = a.coefficient(k), b.coefficient(k)
        if first is None and second is None:
            continue
        apart = subtract(a.dense_coefficient(k), b.dense_coefficient(k))
        below = logical_or(below, logical_and(tied, less(apart, 0.0)))
        above = logical_or(above, logical_and(tied, greater(apart, 0.0)))
        tied = logical_and(tied, equal(apart, 0.0))
    return below, tied, above


def _less(a: OneSidedJet, b: OneSidedJet) -> Any:
    return _trichotomy(a, b)[0]


def _less_equal(a: OneSidedJet, b: OneSidedJet) -> Any:
    below, tied, _ = _trichotomy(a, b)
    return logical_or(below, tied)


def _greater(a: OneSidedJet, b: OneSidedJet) -> Any:
    return _trichotomy(a, b)[2]


def _greater_equal(a: OneSidedJet, b: OneSidedJet) -> Any:
    _, tied, above = _trichotomy(a, b)
    return logical_or(tied, above)


def _equal(a: OneSidedJet, b: OneSidedJet) -> Any:
    return _trichotomy(a, b)[1]


def _not_equal(a: OneSidedJet, b: OneSidedJet) -> Any:
    return logical_not(_equal(a, b))


# --- selecting functions


def _absolute(x: OneSidedJet) -> Any:
    found: OneSidedJet = where(less(x, 0.0), negative(x), x)
    return found.as_root_of(multiply(x, x))


def _sign(x: OneSidedJet) -> Any:
    below, _, above = _trichotomy(x, OneSidedJet([0.0], _MAX_ORDER))
    return where(above, 1.0, where(below, -1.0, 0.0))


def _floor(x: OneSidedJet) -> Any:
    whole = bind(floor, (x.inner,), _NO_PARAMS)
    return where(less(x, whole), subtract(whole, 1.0), whole)


def _ceil(x: OneSidedJet) -> Any:
    return negative(_floor(negative(x)))


def _trunc(x: OneSidedJet) -> Any:
    return where(less(x, 0.0), _ceil(x), _floor(x))


def _round(x: OneSidedJet) -> Any:
    nearest = _floor(add(x, 0.5))
    # Halves that stay halves along the ray are rounded to even.
    return where(equal(subtract(nearest, x), 0.5), bind(round_to_even, (x.inner,), _NO_PARAMS), nearest)


def _heaviside(x: OneSidedJet, y: OneSidedJet) -> Any:
    below, _, above = _trichotomy(x, OneSidedJet([0.0], _MAX_ORDER))
    return where(above, 1.0, where(below, 0.0, y))


def _copysign(x: OneSidedJet, y: OneSidedJet) -> Any:
    signs = where(less(y, 0.0), -1.0, where(greater(y, 0.0), 1.0, bind(copysign, (1.0, y.inner), _NO_PARAMS)))
    return multiply(absolute(x), signs)


def _maximum(a: OneSidedJet, b: OneSidedJet) -> Any:
    return where(less(a, b), b, a)


def _minimum(a: OneSidedJet, b: OneSidedJet) -> Any:
    return where(greater(a, b), b, a)


def _clip(x: OneSidedJet, low: OneSidedJet, high: OneSidedJet) -> Any:
    return minimum(maximum(x, low), high)


def _relu(x: OneSidedJet) -> Any:
    return where(less(x, 0.0), 0.0, x)


def _leaky_relu(x: OneSidedJet, slope: OneSidedJet) -> Any:
    return where(greater(x, 0.0), x, multiply(slope, x))


def _elu(x: OneSidedJet, alpha: OneSidedJet) -> Any:
    return where(greater(x, 0.0), x, multiply(alpha, expm1(where(greater(x, 0.0), 0.0, x))))


def _floor_divide(x: OneSidedJet, y: OneSidedJet) -> Any:
    return floor(divide(x, y))


def _remainder(x: OneSidedJet, y: OneSidedJet) -> Any:
    return subtract(x, multiply(y, floor(divide(x, y))))


def _fmod(x: OneSidedJet, y: OneSidedJet) -> Any:
    return subtract(x, multiply(y, trunc(divide(x, y))))


def _extreme(primitive: Primitive) -> Callable[..., Any]:
    """Rule of the largest or smallest element along axes: ties are broken by the next coefficient."""

    def rule(x: OneSidedJet, *, axis: Any, keepdims: bool) -> Any:
        first = bind(primitive, (x.inner,), {"axis": axis, "keepdims": True})
        tied = equal(x.inner, first)
        worst = -math.inf if primitive is max_ else math.inf
        for k in range(1, x.order + 1):
            if x.coefficient(k) is None:
                continue
            among = where(tied, x.dense_coefficient(k), worst)
            tied = logical_and(tied, equal(among, bind(primitive, (among,), {"axis": axis, "keepdims": True})))
        found = [
            bind(primitive, (where(tied, x.dense_coefficient(k), worst),), {"axis": axis, "keepdims": keepdims})
            for k in range(x.order + 1)
        ]
        return OneSidedJet(found, x.order)

    return rule


# --- sorting


def _rising(x: OneSidedJet, axis: int) -> Any:
    """The positions in ascending order along an axis; ties are broken by the next coefficient."""
    np = arrays.numpy_namespace()
    keys = [np.moveaxis(_as_numpy(x.dense_coefficient(k)), axis, -1) for k in range(x.order, -1, -1)]
    return np.moveaxis(np.lexsort(keys), -1, axis)


def _as_numpy(coefficient: Any) -> Any:
    if is_exact() or isinstance(coefficient, Kind):
        raise NoOneSidedSeriesError("an order of what is no float")
    return arrays.to_numpy(coefficient)


def _taken(x: OneSidedJet, positions: Any, axis: int) -> OneSidedJet:
    np = arrays.numpy_namespace()
    found = [np.take_along_axis(_as_numpy(x.dense_coefficient(k)), positions, axis) for k in range(x.order + 1)]
    return OneSidedJet([arrays.like_library_of(c, x.inner) for c in found], x.order)


def _sort(x: OneSidedJet, *, axis: int) -> Any:
    return _taken(x, _rising(x, axis), axis)


def _order_statistic(x: OneSidedJet, *, k: int) -> Any:
    return index(_sort(x, axis=-1), (..., k))


def _positions_in_order(x: OneSidedJet, *, axis: int) -> Any:
    return arrays.in_default_namespace(_rising(x, axis))


def _running_position(primitive: Primitive) -> Callable[..., Any]:
    """The positions of running extremes, by the ranks of the elements: elements that are equal along the ray have equal
    ranks."""

    def rule(x: OneSidedJet, *, axis: int) -> Any:
        np = arrays.numpy_namespace()
        order = _rising(x, axis)
        ordered = [np.moveaxis(_as_numpy(c), axis, 0) for c in _taken(x, order, axis).coefficients]
        apart = np.any([c[1:] != c[:-1] for c in ordered], 0)
        steps = np.concatenate([np.zeros((1, *apart.shape[1:])), np.cumsum(apart, 0)])
        ranks = np.empty(order.shape)
        np.put_along_axis(ranks, order, np.moveaxis(steps, 0, axis), axis)
        return bind(primitive, (ranks,), {"axis": axis})

    return rule


def _position(largest: bool) -> Callable[..., Any]:
    def rule(x: OneSidedJet, *, axis: int | None, keepdims: bool) -> Any:
        np = arrays.numpy_namespace()
        flat: OneSidedJet = ravel(x) if axis is None else x
        found = np.take(_rising(negative(flat) if largest else flat, axis or 0), [0], axis or 0)
        if not keepdims:
            found = np.squeeze(found, axis or 0)
        elif axis is None:
            found = found.reshape((1,) * len(x.shape))
        return arrays.in_default_namespace(found)

    return rule


# --- operands that vanish at the point


def _valuations(x: OneSidedJet) -> Iterator[tuple[int, Any]]:
    """Yield each valuation m that occurs in x, with the mask of the elements that have it.

    The last valuation is x.order + 1, for elements all of whose coefficients are 0.
    """
    left: Any = broadcast_to(True, x.shape) if x.shape else True
    for k in range(x.order + 1):
        nonzero = logical_and(left, not_equal(x.dense_coefficient(k), 0.0))
        if not nowhere(nonzero):
            yield k, nonzero
        left = logical_and(left, logical_not(nonzero))
        if nowhere(left):
            return
    yield x.order + 1, left


def _shifted(x: OneSidedJet, there: Any, m: int, elsewhere: float) -> OneSidedJet:
    """x/t**m where the mask `there` is set, and a constant elsewhere."""
    found = [where(there, x.dense_coefficient(k + m), elsewhere if k == 0 else 0.0) for k in range(x.order - m + 1)]
    return OneSidedJet(found, x.order - m)


def _assembled(parts: Sequence[tuple[Any, int, Sequence[Any]]], order: int, shape: Any) -> OneSidedJet:
    """The series whose coefficients, under the mask of each part, are those of the part, starting at t**place."""
    found: list[Any] = [0.0] * (order + 1)
    for there, place, coefficients in parts:
        for k in range(place, order + 1):
            if k - place < len(coefficients):
                found[k] = where(there, coefficients[k - place], found[k])
    return OneSidedJet([broadcast_to(c, shape) if shape else c for c in found], order)


def _power(
    x: OneSidedJet, exponent: float, raise_to: Callable[[OneSidedJet], Any], *, of_negative: bool = False
) -> OneSidedJet:
    """x**exponent for an exponent above 0; `raise_to` computes the power where x is not 0.

    Raises OutsideDomainError for negative x unless `of_negative`.
    """
    if not of_negative and not nowhere(less(x, 0.0)):
        raise OutsideDomainError("a root of what is negative beside this point")
    parts: list[tuple[Any, int, Sequence[Any]]] = []
    order = x.order
    for m, there in _valuations(x):
        place = exponent * m
        if m > x.order or place != round(place):
            # It is only known that the coefficients up to t**place vanish.
            order = min(order, math.ceil(place) - 1)
            parts.append((there, 0, ()))
            continue
        raised = raise_to(_shifted(x, there, m, 1.0))
        order = min(order, int(place) + raised.order)
        parts.append((there, int(place), raised.coefficients))
    if order < 0:
        raise NoOneSidedSeriesError("a root has no series here")
    return _assembled(parts, order, x.shape)


def _square_root(primitive: Primitive) -> Callable[..., Any]:
    def rule(x: OneSidedJet) -> Any:
        if nowhere(equal(x.inner, 0.0)):
            return _smoothly(primitive, x)
        return _power(x, 0.5, lambda shifted: _smoothly(primitive, shifted)).as_root_of(x)

    return rule


def _cube_root(x: OneSidedJet) -> Any:
    if nowhere(equal(x.inner, 0.0)):
        return _smoothly(cbrt, x)
    return _power(x, 1.0 / 3.0, lambda shifted: _smoothly(cbrt, shifted), of_negative=True)


def _flat_root(x: OneSidedJet, *, n: float) -> Any:
    if nowhere(equal(x.inner, 0.0)):
        return _smoothly(flat_root, x, n=n)
    if n < 0:
        raise NoOneSidedSeriesError("a root has a pole here")
    return _power(x, 1.0 / n, lambda shifted: _smoothly(flat_root, shifted, n=n))


def _general_power(x: OneSidedJet, q: OneSidedJet) -> Any:
    if nowhere(equal(x.inner, 0.0)):
        return _smoothly(general_power, x, q)
    if q.degree or q.shape or not assume(greater(q.inner, 0.0)):
        raise NoOneSidedSeriesError("a power of 0 has no series here")
    exponent = q.inner
    return _power(x, float(exponent), lambda shifted: _smoothly(general_power, shifted, exponent))


def _whole_power(x: OneSidedJet, *, n: float) -> Any:
    if n < 0:
        return divide(1.0, whole_power(x, n=-n))
    if x.square is not None and n % 2 == 0:
        return whole_power(x.square, n=n / 2)
    return _smoothly(whole_power, x, n=n)


def _multiply(a: OneSidedJet, b: OneSidedJet) -> Any:
    if a is b and a.square is not None:
        return a.square
    found: OneSidedJet = _smoothly(multiply, a, b)
    for root, factor in ((a, b), (b, a)):
        if root.square is not None and not factor.degree:
            return found.as_root_of(multiply(root.square, multiply(factor.inner, factor.inner)))
    return found


def _divide(a: OneSidedJet, b: OneSidedJet) -> Any:
    if nowhere(equal(b.inner, 0.0)):
        return _smoothly(divide, a, b)
    shape = broadcast((a.shape, b.shape))
    a, b = (_spread(x, shape) for x in (a, b))
    parts: list[tuple[Any, int, Sequence[Any]]] = []
    order = min(a.order, b.order)
    for m, there in _valuations(b):
        if m > min(a.order, b.order):
            raise NoOneSidedSeriesError("a quotient by 0 has no series")
        for k in range(m):
            if not nowhere(logical_and(there, not_equal(a.dense_coefficient(k), 0.0))):
                return _over_power(divide(_times_power(a, m - k), b), m - k)
        quotient = _smoothly(divide, _shifted(a, there, m, 0.0), _shifted(b, there, m, 1.0))
        order = min(order, quotient.order)
        parts.append((there, 0, quotient.coefficients))
    return _assembled(parts, order, shape)


def _spread(x: OneSidedJet, shape: Any) -> OneSidedJet:
    if x.shape == shape:
        return x
    return OneSidedJet([None if c is None else broadcast_to(c, shape) for c in x.coefficients], x.order)


def _with_logarithm(primitive: Primitive) -> Callable[..., Any]:
    """Rule of a power times a logarithm, which has no series in integer powers at 0."""

    def rule(x: OneSidedJet, *rest: OneSidedJet, **params: Any) -> Any:
        if not nowhere(equal(x.inner, 0.0)):
            raise NoOneSidedSeriesError(f"'{primitive.called}' of 0 has no series in powers")
        return _smoothly(primitive, x, *rest, **params)

    return rule


def _hypot(a: OneSidedJet, b: OneSidedJet) -> Any:
    return sqrt(add(multiply(a, a), multiply(b, b)))


def _atan2(y: OneSidedJet, x: OneSidedJet) -> Any:
    """The angle by the leading terms of both operands. On the branch cut it is continued smoothly, as its derivatives
    are."""
    if nowhere(logical_and(equal(y.inner, 0.0), equal(x.inner, 0.0))):
        return _smoothly(atan2, y, x)
    shape = broadcast((y.shape, x.shape))
    y, x = (_spread(z, shape) for z in (y, x))
    parts: list[tuple[Any, int, Sequence[Any]]] = []
    order = min(y.order, x.order)
    left = broadcast_to(True, shape) if shape else True
    for m in range(order + 1):
        nonzero = logical_or(not_equal(y.dense_coefficient(m), 0.0), not_equal(x.dense_coefficient(m), 0.0))
        there = logical_and(left, nonzero)
        left = logical_and(left, logical_not(nonzero))
        if nowhere(there):
            continue
        turned = _smoothly(atan2, _shifted(y, there, m, 0.0), _shifted(x, there, m, 1.0))
        order = min(order, turned.order)
        parts.append((there, 0, turned.coefficients))
    if not nowhere(left):
        raise NoOneSidedSeriesError("an angle of (0, 0) has no series")
    return _assembled(parts, order, shape)


# --- eigenvalues and singular values


def _decomposed(primitive: Primitive, values: Primitive, series: Callable[[Any], Any], part: str) -> Callable[..., Any]:
    """The rule of a primitive that returns the field `part` of the decomposition `series` of a series of matrices.

    Where the primitive of the `values` is smooth it is the rule of a Jet, for all parts alike, as their signs depend on
    each other.
    """

    def rule(x: OneSidedJet) -> Any:
        if values.smooth is not None and values.smooth(x.inner):
            return _smoothly(primitive, x)
        np = arrays.numpy_namespace()
        given = np.stack([_as_numpy(x.dense_coefficient(k)) for k in range(x.order + 1)])
        if series not in x.decompositions:
            matrices = given.reshape(x.order + 1, -1, *given.shape[-2:])
            x.decompositions[series] = [series(matrices[:, i]) for i in range(matrices.shape[1])]
        found = [getattr(decomposition, part) for decomposition in x.decompositions[series]]
        length = min(map(len, found))
        if not length:
            raise NoOneSidedSeriesError(f"'{primitive.called}' has no series that is known here")
        joined = np.stack([f[:length] for f in found], 1)
        joined = joined.reshape(length, *given.shape[1:-2], *joined.shape[2:])
        return OneSidedJet([arrays.like_library_of(c, x.inner) for c in joined], length - 1)

    return rule


def _eigen(matrix: Any) -> perturbation.Eigen:
    return perturbation.eigen(0.5 * (matrix + arrays.numpy_namespace().swapaxes(matrix, -2, -1)))


# Primitives with f(c*x) = c*f(x) for c > 0, jointly in all operands, or whose result is the same for c*x.
_HOMOGENEOUS = frozenset(
    {
        add,
        subtract,
        negative,
        absolute,
        maximum,
        minimum,
        max_,
        min_,
        relu,
        sort,
        order_statistic,
        isfinite,
        isnan,
        sign,
    }
    | {less, less_equal, greater, greater_equal, equal, not_equal, positions_in_order, argmax, argmin}
)

_RULES: Mapping[Primitive, Callable[..., Any]] = {
    eigvalsh: _decomposed(eigvalsh, eigvalsh, _eigen, "values"),
    eigenvectors: _decomposed(eigenvectors, eigvalsh, _eigen, "vectors"),
    svdvals: _decomposed(svdvals, svdvals, perturbation.singular, "values"),
    paired_values: _decomposed(paired_values, svdvals, perturbation.singular, "values"),
    left_vectors: _decomposed(left_vectors, svdvals, perturbation.singular, "left"),
    right_vectors: _decomposed(right_vectors, svdvals, perturbation.singular, "right"),
    less: _less,
    less_equal: _less_equal,
    greater: _greater,
    greater_equal: _greater_equal,
    equal: _equal,
    not_equal: _not_equal,
    absolute: _absolute,
    sign: _sign,
    floor: _floor,
    ceil: _ceil,
    trunc: _trunc,
    round_to_even: _round,
    heaviside: _heaviside,
    copysign: _copysign,
    maximum: _maximum,
    minimum: _minimum,
    clip_between: _clip,
    relu: _relu,
    leaky_relu: _leaky_relu,
    elu: _elu,
    floor_divide: _floor_divide,
    remainder: _remainder,
    fmod: _fmod,
    max_: _extreme(max_),
    min_: _extreme(min_),
    sort: _sort,
    order_statistic: _order_statistic,
    positions_in_order: _positions_in_order,
    cummax_positions: _running_position(cummax_positions),
    cummin_positions: _running_position(cummin_positions),
    argmax: _position(largest=True),
    argmin: _position(largest=False),
    multiply: _multiply,
    sqrt: _square_root(sqrt),
    flat_sqrt: _square_root(flat_sqrt),
    flat_root: _flat_root,
    cbrt: _cube_root,
    general_power: _general_power,
    whole_power: _whole_power,
    power_times_log: _with_logarithm(power_times_log),
    power_times_logs: _with_logarithm(power_times_logs),
    divide: _divide,
    reciprocal: lambda x: divide(1.0, x),
    rsqrt: lambda x: divide(1.0, sqrt(x)),
    hypot: _hypot,
    atan2: _atan2,
}
