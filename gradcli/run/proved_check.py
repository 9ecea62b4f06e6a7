"""The check of derivatives by proof: rules that are written by hand beside the derivatives of what they are rules of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli import arrays
from gradcli.calculus.gradcheck import MISMATCH, NONFINITE, Check, Report, badness, directions, entries, gradients_along
from gradcli.errors import DifferentiationError
from gradcli.language.interpreter import evaluate
from gradcli.language.syntax import tree
from gradcli.primitives.bind import concrete
from gradcli.run import digits

if TYPE_CHECKING:
    from gradcli.arrays.balls import Number

# The digits with which a comparison is tried first, and those after which numbers that are not told apart agree.
_FIRST, _MOST = 40, 1_000

Gradient = Mapping[str, Any]


class _Both(NamedTuple):
    """A gradient by the rules that are written, and that of the functions themselves."""

    written: Gradient
    own: Gradient


class _Checked(NamedTuple):
    """A program at a point of its leaves, and the directions along which it is differentiated before."""

    program: tree.Module
    bindings: Mapping[str, Any]
    point: Mapping[str, Any]
    along: Sequence[Any]

    def gradient(self, order: int, *, rewrite: bool = True, clauses: bool = True) -> Gradient:
        """That of the derivative of one order less."""

        def function(**leaves: Any) -> Any:
            return evaluate(self.program, {**self.bindings, **leaves}, rewrite=rewrite, clauses=clauses).value

        found = gradients_along(function, self.point, self.along, order - 1)[1]
        return {name: None if g is None else concrete(g) for name, g in found.items()}


def check_by_proof(
    program: tree.Module, bindings: Mapping[str, Any], wrt: Sequence[str], order: int, tolerance: float
) -> Report:
    """Compare the derivatives of a program up to `order` by reverse mode with those that it has without the `backward`
    clauses in it, both proved in ball arithmetic.

    They agree where they differ by at most `tolerance`, relative to their size, or cannot be told apart with 1,000 digits.
    `difference` of a row is the proved one, and `digits` says how many of it the one in floats has. Raises
    DifferentiationError where there is nothing to differentiate by, and what the program raises, also in ball arithmetic.
    """
    host = {name: arrays.astype(arrays.on_host(value), "float64") for name, value in bindings.items()}
    point = {name: host[name] for name in wrt}
    if not any(map(entries, point.values())):
        raise DifferentiationError("there is nothing to differentiate by")
    checked = _Checked(program, host, point, directions(point))
    return Report(tuple(row for n in range(1, order + 1) for row in _rows(checked, n, tolerance)))


def _rows(checked: _Checked, order: int, tolerance: float) -> Iterator[Check]:
    """The worst entry of each leaf in one order."""
    found, point = checked.gradient(order), checked.point
    in_floats = {name: None if g is None else arrays.on_host(g) for name, g in found.items()}
    with digits.computing(as_written=False):
        from gradcli.arrays.balls import precise

        def compute() -> _Both:
            balls = checked._replace(bindings={n: arrays.placed(value) for n, value in checked.bindings.items()})
            written, own = (balls.gradient(order, rewrite=False, clauses=clauses) for clauses in (True, False))
            return _Both(written, own)

        both, bits = digits.refined(compute, lambda both: _are_told(both, point, tolerance), _FIRST, _MOST)
    worst: dict[str, Check] = {}
    with precise(bits):
        for name, index, written, own in _pairs(both, point):
            gradient = in_floats[name]
            reverse = None if gradient is None else float(gradient[index] if index else gradient)
            check = _check(name, order, index, reverse, written, own, tolerance)
            worst[name] = min(worst.get(name, check), check, key=badness)
    yield from worst.values()


def _number(gradient: Any, index: tuple[int, ...]) -> Number:
    """An element of a gradient in balls, 0 where there is none."""
    from gradcli.arrays.balls import exact

    return exact(0) if gradient is None else gradient.numbers[index] if index else gradient.numbers


def _pairs(both: _Both, point: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...], Number, Number]]:
    for name, array in point.items():
        for index in entries(array):
            yield name, index, _number(both.written[name], index), _number(both.own[name], index)


def _are_told(both: _Both, point: Mapping[str, Any], tolerance: float) -> bool:
    return all(_agree(a, b, tolerance) is not None for _, _, a, b in _pairs(both, point))


def _agree(written: Number, own: Number, tolerance: float) -> bool | None:
    """Whether two numbers are close; None where that is not certain."""
    from gradcli.arrays.balls import exact, to_float

    if not math.isfinite(to_float(written - own)):
        return False
    distance, most = abs(written - own), exact(tolerance) * _size(written, own)
    return True if distance <= most else False if distance > most else None


def _size(one: Number, other: Number) -> Number:
    return (abs(one) + abs(other)) / 2


def _check(
    leaf: str, order: int, index: tuple[int, ...], reverse: float | None, written: Number, own: Number, tolerance: float
) -> Check:
    from gradcli.arrays.balls import to_float
    from gradcli.arrays.right_digits import right_digits

    proved = to_float(own)
    if not math.isfinite(proved) or not math.isfinite(to_float(written)):
        return Check(leaf, order, index, reverse, proved, math.nan, math.nan, 0, NONFINITE)
    right = right_digits(reverse or 0.0, own)
    error = to_float(abs(written - own)) / (to_float(_size(written, own)) or 1.0)
    problem = MISMATCH if _agree(written, own, tolerance) is False else None
    return Check(leaf, order, index, reverse, proved, 0.0, error, right.proved if right else 0, problem)
