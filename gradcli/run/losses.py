"""The derivatives that a program takes itself, beside their shadows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import current_span
from gradcli.autograd.tensor import Tensor
from gradcli.calculus import inside
from gradcli.calculus.accuracy import (
    deviation,
    digits_left_by_order,
    largest,
    loss_of_order,
    loss_text,
)
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.higher_orders import Function, watched_leaf
from gradcli.errors import Span
from gradcli.kinds.batch import stacked
from gradcli.kinds.rounding import Roundings
from gradcli.kinds.taylor import Jet, shadow_of
from gradcli.language.syntax.tree import Module
from gradcli.primitives.bind import Kind
from gradcli.run.diagnose import Warning, inaccurate

# What runs a program with leaves in place of its inputs, and tells of every operation.
Observed = Callable[[Mapping[str, Any], Callable[[Span, str, Sequence[Any], Any], None]], None]


def by_rounding(
    run: Observed, bindings: Mapping[str, Any], warning: Warning, known: Sequence[Any], where: Any
) -> Warning:
    """The warning of a number that is not finite, which says so where an operand of its operation is at the edge of the
    domain, 0 or 1, by rounding: where the `known` operands are off by as much as they are from it. `where` is the place of
    the number in the result."""
    if not all(type(k) is float for k in known):
        # Of tensors no result of an operation is known to be exact.
        return warning
    roundings = Roundings(spare_exact=True)
    leaves = {n: watched_leaf(v, roundings) for n, v in bindings.items() if arrays.is_floating(v)}
    lost: list[bool] = []

    def observe(span: Span, _name: str, operands: Sequence[Any], _result: Any) -> None:
        if span == warning.span and not lost and len(operands) == len(known):
            pairs = [(_element(number_of(o), where), o) for o in operands]
            if all(number == _element(k, where) for (number, _), k in zip(pairs, known)):
                lost.append(any(_is_on_edge(number, _element(apart_of(o), where)) for number, o in pairs))

    run(leaves, observe)
    if not any(lost):
        return warning
    text = (
        f"digits are lost by rounding: {warning.message}, which is off by as much as it is from the edge of the domain"
    )
    return warning._replace(message=f"{text}; --digits gives more")


def _is_on_edge(number: Any, apart: Any) -> bool:
    if type(number) is not float or type(apart) is not float or not apart > 0.0:
        return False
    return min(abs(number), abs(abs(number) - 1.0)) <= apart


def _element(operand: Any, where: tuple[int, ...]) -> Any:
    """The number at a place of what an operand is broadcast to."""
    if type(operand) in arrays.PLAIN or not arrays.is_array(operand):
        return operand
    shape = arrays.shape(operand)
    places = where[len(where) - len(shape) :]
    if len(places) != len(shape) or not all(size == 1 or i < size for i, size in zip(places, shape)):
        return None
    return float(arrays.on_host(operand)[tuple(0 if size == 1 else i for i, size in zip(places, shape))])


def apart_of(result: Any) -> Any:
    """How far numbers are from their shadow, where they have one."""
    series = _series(result)
    if not isinstance(series, Jet) or series.shadow is None:
        return None
    return stacked(deviation(series.inner, shadow_of(series).inner))


class Inside:
    """Sees the derivatives that a program takes."""

    def __init__(self, program: Module) -> None:
        self.program = program
        # How often a derivative was taken.
        self.taken = 0
        # Where one of order 2 or more was taken first.
        self.place: Span | None = None
        # The largest of them: what is as small as its rounding is 0 beside it.
        self.largest = 0.0
        self.warning: Warning | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within the block, derivatives that a program takes are seen."""
        token = inside.observer.set(self._see)
        try:
            yield
        finally:
            inside.observer.reset(token)

    def _see(self, orders: Sequence[Any]) -> None:
        self.taken += 1
        if self.place is None and len(orders) > 2:
            self.place = current_span.get()
        numbers = [*map(number_of, orders[1:])]
        # What is being recorded has no numbers yet.
        if self.warning is not None or any(isinstance(n, Kind) for n in numbers):
            return
        self.largest = max(self.largest, *map(largest, numbers), 0.0)
        left = _digits_left(orders)
        if self.taken == 1:
            # One of order 1 is not judged; a later one may be of a derivative.
            left.pop(1, None)
        if left:
            order = max(left, key=lambda n: (-left[n], n))
            self._warn(current_span.get(), loss_of_order(order, left[order]))

    def see_gradient(self, run: Function, bindings: Mapping[str, Any], wrt: Sequence[str], cotangent: Any) -> None:
        """Run the program, whose inputs are off by a few roundings, and judge the gradient of its value by `wrt` too."""
        roundings = Roundings()
        leaves = {n: watched_leaf(v, roundings) for n, v in bindings.items() if arrays.is_floating(v)}
        with self.watched():
            value = run(leaves)
        if self.warning is not None or not wrt or (arrays.shape(value) and cotangent is None):
            return
        wrt = [name for name in wrt if name in leaves]
        found = gradients(value, [leaves[name] for name in wrt], cotangent, retain_graph=False)
        left = {
            name: digits for name, g in zip(wrt, found) for digits in _digits_left([value, g], self.largest).values()
        }
        if left:
            self._warn(None, loss_text(left), left)

    def unknown(self) -> Sequence[Warning]:
        """The warning that derivatives of order 2 or more were too long for a second time."""
        if self.place is None:
            return []
        return [inaccurate(self.program, self.place, "whether '{}' loses digits here takes too many steps to find")]

    def _warn(self, place: Span | None, text: str, left: Mapping[str, int] | None = None) -> None:
        self.warning = inaccurate(self.program, place, "'{}' loses digits here: " + text, left)


def number_of(derivative: Any) -> Any:
    """The numbers of a tensor, or of the series that it is made of."""
    series = _series(derivative)
    return stacked(series.inner if isinstance(series, Jet) else series)


def _series(derivative: Any) -> Any:
    return derivative.inner if isinstance(derivative, Tensor) else derivative


def _digits_left(orders: Sequence[Any], beside: float = 0.0) -> dict[int, int]:
    """About how many digits are right, by order, of derivatives that lost more than half of them; the first of
    `orders` is what was differentiated, and at least as large as `beside`."""
    found, apart = {}, {}
    # As if of an order from 2 on, where derivatives are judged.
    for order, series in enumerate(map(_series, orders), 1):
        distance = apart_of(series)
        if distance is not None:
            number = number_of(series)
            found[order] = max(largest(number), beside) if order == 1 else number
            apart[order] = distance
    return {order - 1: digits for order, digits in digits_left_by_order(found, apart).items()}
