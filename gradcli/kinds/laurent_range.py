"""Laurent series at every point of a range, in ball arithmetic: functions in the neighbourhood of a removable
singularity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.arrays.flint.balls import exact, stands_for_others
from gradcli.kinds.jets import Jet, without_observer
from gradcli.kinds.laurent import Laurent, NoSeriesError
from gradcli.kinds.levels import PATTERN
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, reciprocal, subtract
from gradcli.primitives.entries.powers import whole_power
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}


class LaurentRange(Operators):
    """(x - point)**valuation*g(x) for all x in a range around the point.

    `center` is its Laurent series at the point, which has the valuation, and `jet` the Taylor series of g at each x, a
    `Jet` of balls that enclose its coefficients.

    If f has a zero of order m at the point, f(x) = (x - point)**m*g(x), and coefficient k of g in a range that contains
    the point is a mean of coefficient m + k of f in it: ∫ f_(m+k)(point + s (x - point)) w(s) ds over s from 0 to 1,
    where w is a weight with integral 1.
    """

    __slots__ = ("center", "distance", "jet")
    level = PATTERN
    dtype = "float64"
    shape = ()

    def __init__(self, center: Laurent, jet: Jet, distance: Any) -> None:
        self.center = center
        self.jet = jet
        # A ball that contains x - point for all x.
        self.distance = distance

    @property
    def inner(self) -> Any:
        # No rule may branch on the value.
        raise NoSeriesError("a Laurent series is no number")

    @staticmethod
    def variable(point: Any, distance: Any, order: int) -> LaurentRange:
        """The variable x, for all x with x - point in the ball `distance`, with series up to `order`."""
        with without_observer():
            return LaurentRange(Laurent.variable(point, order), Jet([point + distance, 1.0], order), distance)._from(0)

    def taylor(self) -> Sequence[Any]:
        """The coefficients of the series at every x, as balls. Raises NoSeriesError if there is a pole."""
        jet = self._shifted(0)
        return [jet.coefficient(k) for k in range(jet.order + 1)]

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if primitive in _OF_ZERO and any(map(_is_zero, operands)):
            # The constant 0 has no Laurent series.
            return _OF_ZERO[primitive](*operands)
        known = next(o for o in operands if isinstance(o, LaurentRange))
        with without_observer():
            parts = [o if isinstance(o, LaurentRange) else known._constant(o) for o in operands]
            if primitive is reciprocal:
                primitive, parts = divide, [known._constant(1.0), *parts]
            valuation = _valuation(primitive, [part.center.valuation for part in parts], params)
            jets = [part.jet if primitive in _FACTORED else part._shifted(valuation) for part in parts]
            center = bind(primitive, [part.center for part in parts], params)
            return LaurentRange(center, bind(primitive, jets, params), known.distance)._from(valuation)

    def _constant(self, value: Any) -> LaurentRange:
        return LaurentRange(self.center._constant(value), Jet([value], self.jet.order), self.distance)._from(0)

    def _from(self, valuation: int) -> LaurentRange:
        """The same function, with `jet` divided by the power of x - point by which the valuation of `center` exceeds
        `valuation`."""
        zeros = self.center.valuation - valuation
        jet = self.jet
        if zeros > jet.order:
            raise NoSeriesError("a function that is 0 to all orders that are known")
        if zeros:
            jet = Jet([jet.coefficient(k) for k in range(zeros, jet.order + 1)], jet.order - zeros)
        return LaurentRange(self.center, jet, self.distance)

    def _shifted(self, valuation: int) -> Jet:
        """The Taylor series of the function divided by (x - point)**valuation. Raises NoSeriesError if it has a
        pole."""
        zeros = self.center.valuation - valuation
        if zeros < 0:
            raise NoSeriesError("a function of what has a pole")
        if not zeros:
            return self.jet
        power = bind(whole_power, (Jet([self.distance, 1.0], self.jet.order),), {"n": float(zeros)})
        return bind(multiply, (self.jet, power), _NO_PARAMS)  # type: ignore[no-any-return]


def _is_zero(operand: Any) -> bool:
    """Return whether an operand is the exact constant 0."""
    if isinstance(operand, LaurentRange):
        return False
    number = exact(operand.item() if hasattr(operand, "item") else operand)
    return not stands_for_others(number) and bool(number == 0)


# The results of sums and products with an operand 0.
_OF_ZERO: Mapping[Primitive, Callable[[Any, Any], Any]] = {
    add: lambda a, b: b if _is_zero(a) else a,
    subtract: lambda a, b: bind(negative, (b,), _NO_PARAMS) if _is_zero(a) else a,
    multiply: lambda _a, _b: 0.0,
}

# Primitives whose result for f*t**m is their result for f times a power of t.
_FACTORED = frozenset({multiply, divide, negative, whole_power})


def _valuation(primitive: Primitive, of_operands: Sequence[int], params: Mapping[str, Any]) -> int:
    """The valuation of the result, from those of the operands, before cancellation is taken into account."""
    if primitive is whole_power:
        return of_operands[0] * int(params["n"])
    if primitive is divide:
        return of_operands[0] - of_operands[1]
    if primitive is negative:
        return of_operands[0]
    if primitive is multiply:
        return sum(of_operands)
    return min(of_operands) if primitive is add or primitive is subtract else 0
