"""Checks hand-written derivative rules by proof: derivatives with and without the `backward` clauses, in ball
arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.calculus.checks.gradcheck import (
    MISMATCH,
    NONFINITE,
    Check,
    Report,
    badness,
    directions,
    entries,
    gradients_along,
)
from gradcli.errors import DifferentiationError
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete
from gradcli.proofs import digits

if TYPE_CHECKING:
    from gradcli.arrays.flint.balls import Number

# Digits of the first comparison, and of the last: numbers that it does not distinguish agree.
_FIRST, _MOST = 40, 1_000

Gradient = Mapping[str, Any]


class _Both(NamedTuple):
    """The gradient by hand-written rules, and the gradient without them."""

    written: Gradient
    own: Gradient


class _Checked(NamedTuple):
    """A program at a point of its leaves, and the directions of the inner derivatives of higher orders."""

    program: tree.Module
    bindings: Mapping[str, Any]
    point: Mapping[str, Any]
    along: Sequence[Any]

    def gradient(self, order: int, *, rewrite: bool = True, clauses: bool = True) -> Gradient:
        """Return the gradient of the derivative of order `order` - 1 along the directions."""

        def function(**leaves: Any) -> Any:
            return evaluate(self.program, {**self.bindings, **leaves}, rewrite=rewrite, clauses=clauses).value

        found = gradients_along(function, self.point, self.along, order - 1)[1]
        return {name: None if g is None else concrete(g) for name, g in found.items()}


def check_by_proof(
    program: tree.Module, bindings: Mapping[str, Any], wrt: Sequence[str], order: int, tolerance: float
) -> Report:
    """Compare the derivatives of a program up to `order` with those without its `backward` clauses, both proved in ball
    arithmetic.

    They agree where they differ by at most `tolerance`, relative to their size, or are not distinguished with 1,000
    digits. In each row `difference` is the proved derivative, and `digits` the number of its digits that the
    floating-point derivative has. Raises DifferentiationError where there is nothing to differentiate by, and what the
    program raises, also in ball arithmetic.
    """
    host = {name: arrays.astype(arrays.on_host(value), "float64") for name, value in bindings.items()}
    point = {name: host[name] for name in wrt}
    if not any(map(entries, point.values())):
        raise DifferentiationError("there is nothing to differentiate by")
    checked = _Checked(program, host, point, directions(point))
    return Report(tuple(row for n in range(1, order + 1) for row in _rows(checked, n, tolerance)))


def _rows(checked: _Checked, order: int, tolerance: float) -> Iterator[Check]:
    """Yield the worst entry of each leaf in one order."""
    found, point = checked.gradient(order), checked.point
    in_floats = {name: None if g is None else arrays.on_host(g) for name, g in found.items()}
    with digits.computing(as_written=False):
        from gradcli.arrays.flint.balls import precise

        def compute() -> _Both:
            balls = checked._replace(
                bindings={n: arrays.in_default_namespace(value) for n, value in checked.bindings.items()}
            )
            written, own = (balls.gradient(order, rewrite=False, clauses=clauses) for clauses in (True, False))
            return _Both(written, own)

        both, bits = digits.at_rising_precision(compute, lambda both: _are_told(both, point, tolerance), _FIRST, _MOST)
    worst: dict[str, Check] = {}
    with precise(bits):
        for name, index, written, own in _pairs(both, point):
            gradient = in_floats[name]
            reverse = None if gradient is None else float(gradient[index] if index else gradient)
            check = _check(name, order, index, reverse, written, own, tolerance)
            worst[name] = min(worst.get(name, check), check, key=badness)
    yield from worst.values()


def _number(gradient: Any, index: tuple[int, ...]) -> Number:
    """The element of a gradient as a ball; 0 where the gradient is None."""
    from gradcli.arrays.flint.balls import exact

    return exact(0) if gradient is None else gradient.numbers[index] if index else gradient.numbers


def _pairs(both: _Both, point: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...], Number, Number]]:
    for name, array in point.items():
        for index in entries(array):
            yield name, index, _number(both.written[name], index), _number(both.own[name], index)


def _are_told(both: _Both, point: Mapping[str, Any], tolerance: float) -> bool:
    return all(_agree(a, b, tolerance) is not None for _, _, a, b in _pairs(both, point))


def _agree(written: Number, own: Number, tolerance: float) -> bool | None:
    """Return whether two numbers are close; None where the balls leave that undecided."""
    from gradcli.arrays.flint.balls import exact, to_float

    if not math.isfinite(to_float(written - own)):
        return False
    distance, most = abs(written - own), exact(tolerance) * _size(written, own)
    return True if distance <= most else False if distance > most else None


def _size(one: Number, other: Number) -> Number:
    return (abs(one) + abs(other)) / 2


def _check(
    leaf: str, order: int, index: tuple[int, ...], reverse: float | None, written: Number, own: Number, tolerance: float
) -> Check:
    from gradcli.arrays.flint.balls import to_float
    from gradcli.arrays.flint.correct_digits import correct_digits

    proved = to_float(own)
    if not math.isfinite(proved) or not math.isfinite(to_float(written)):
        return Check(leaf, order, index, reverse, proved, math.nan, math.nan, 0, NONFINITE)
    right = correct_digits(reverse or 0.0, own)
    error = to_float(abs(written - own)) / (to_float(_size(written, own)) or 1.0)
    problem = MISMATCH if _agree(written, own, tolerance) is False else None
    return Check(leaf, order, index, reverse, proved, 0.0, error, right.proved if right else 0, problem)
