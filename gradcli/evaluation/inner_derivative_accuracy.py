"""Judges the accuracy of derivatives that a program takes itself, by comparison with shadow values of other
roundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import current_span
from gradcli.autograd.tensor import Tensor
from gradcli.calculus import program_derivatives
from gradcli.calculus.accuracy import (
    deviation,
    digits_left_by_order,
    largest,
    loss_of_order,
    loss_text,
)
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.first_orders import Function
from gradcli.calculus.higher_orders import leaf_with_shadow
from gradcli.errors import Span
from gradcli.evaluation.diagnose import Warning, inaccurate
from gradcli.kinds.batch import unwrap_rows
from gradcli.kinds.jets import Jet, perturbed_of
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.language.syntax.tree import Module
from gradcli.primitives.bind import Kind

# Runs a program with leaves as inputs, and reports every operation to the callback.
Observed = Callable[[Mapping[str, Any], Callable[[Span, str, Sequence[Any], Any], None]], None]


def explain_by_rounding(
    run: Observed, bindings: Mapping[str, Any], warning: Warning, known: Sequence[Any], where: Any
) -> Warning:
    """Explain a non-finite number by rounding, where that is its cause.

    That is the case where an operand lies at the edge of a domain (0 or 1) to within its rounding error. `known` are
    the operands of the operation, and `where` the index of the number in its result. Returns `warning`, with another
    message where rounding is the cause.
    """
    if not all(type(k) is float for k in known):
        # The results of operations on tensors are never known to be exact.
        return warning
    roundings = Perturbation(spare_exact=True)
    leaves = {n: leaf_with_shadow(v, roundings) for n, v in bindings.items() if arrays.is_floating(v)}
    lost: list[bool] = []

    def observe(span: Span, _name: str, operands: Sequence[Any], _result: Any) -> None:
        if span == warning.span and not lost and len(operands) == len(known):
            pairs = [(_element(number_of(o), where), o) for o in operands]
            if all(number == _element(k, where) for (number, _), k in zip(pairs, known)):
                lost.append(any(_is_on_edge(number, _element(shadow_distance(o), where)) for number, o in pairs))

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
    """The element at an index of the shape that the operand is broadcast to."""
    if type(operand) in arrays.PYTHON_NUMBERS or not arrays.is_array(operand):
        return operand
    shape = arrays.shape(operand)
    places = where[len(where) - len(shape) :]
    if len(places) != len(shape) or not all(size == 1 or i < size for i, size in zip(places, shape)):
        return None
    return float(arrays.on_host(operand)[tuple(0 if size == 1 else i for i, size in zip(places, shape))])


def shadow_distance(result: Any) -> Any:
    """Return the distance of the numbers from their shadow; None where they have none."""
    series = _series(result)
    if not isinstance(series, Jet) or series.shadow is None:
        return None
    return unwrap_rows(deviation(series.inner, perturbed_of(series).inner))


class InnerDerivativeObserver:
    """Observes the derivatives that a program takes itself, and judges their accuracy."""

    def __init__(self, program: Module) -> None:
        self.program = program
        # The number of derivatives taken.
        self.taken = 0
        # The place of the first derivative of order 2 or more.
        self.place: Span | None = None
        # The largest derivative seen: the rounding error of a number must be compared with it, so that a number of the
        # size of that error counts as 0.
        self.largest = 0.0
        self.warning: Warning | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within the block, observe the derivatives that a program takes."""
        token = program_derivatives.observer.set(self._see)
        try:
            yield
        finally:
            program_derivatives.observer.reset(token)

    def _see(self, orders: Sequence[Any]) -> None:
        self.taken += 1
        if self.place is None and len(orders) > 2:
            self.place = current_span.get()
        numbers = [*map(number_of, orders[1:])]
        # Numbers that are being recorded have no values.
        if self.warning is not None or any(isinstance(n, Kind) for n in numbers):
            return
        self.largest = max(self.largest, *map(largest, numbers), 0.0)
        left = _digits_left(orders)
        if self.taken == 1:
            # A first-order derivative is not judged the first time; a later one may be the derivative of a derivative.
            left.pop(1, None)
        if left:
            order = max(left, key=lambda n: (-left[n], n))
            self._warn(current_span.get(), loss_of_order(order, left[order]))

    def see_gradient(self, run: Function, bindings: Mapping[str, Any], wrt: Sequence[str], cotangent: Any) -> None:
        """Run the program on slightly perturbed inputs, and judge also the gradient of its value by `wrt`."""
        roundings = Perturbation()
        leaves = {n: leaf_with_shadow(v, roundings) for n, v in bindings.items() if arrays.is_floating(v)}
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
        """Return the warning that derivatives of order 2 or more could not be judged within the step limit."""
        if self.place is None:
            return []
        return [inaccurate(self.program, self.place, "whether '{}' loses digits here takes too many steps to find")]

    def _warn(self, place: Span | None, text: str, left: Mapping[str, int] | None = None) -> None:
        self.warning = inaccurate(self.program, place, "'{}' loses digits here: " + text, left)


def number_of(derivative: Any) -> Any:
    """The numbers of a tensor, or the leading coefficients of the Taylor series in it."""
    series = _series(derivative)
    return unwrap_rows(series.inner if isinstance(series, Jet) else series)


def _series(derivative: Any) -> Any:
    return derivative.inner if isinstance(derivative, Tensor) else derivative


def _digits_left(orders: Sequence[Any], beside: float = 0.0) -> dict[int, int]:
    """Return about how many digits are right, by order, of derivatives that lost more than half of them.

    The first of `orders` is the differentiated value; its magnitude is taken to be at least `beside`.
    """
    found, apart = {}, {}
    # Orders are shifted by one, because derivatives are judged from order 2 on.
    for order, series in enumerate(map(_series, orders), 1):
        distance = shadow_distance(series)
        if distance is not None:
            number = number_of(series)
            found[order] = max(largest(number), beside) if order == 1 else number
            apart[order] = distance
    return {order - 1: digits for order, digits in digits_left_by_order(found, apart).items()}
