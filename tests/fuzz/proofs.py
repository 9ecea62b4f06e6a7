"""Second derivatives from differences of values that are proved in ball arithmetic, which know no rule of a derivative:
the judge where inputs are so far out that the square of a number or its inverse is no float, and all ways lack range."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gradcli import limits
from gradcli.errors import EvaluationError, GradcliError
from gradcli.evaluation import session
from gradcli.evaluation.session import EvaluationRequest
from gradcli.proofs import digits
from tests.fuzz import checks, commands, readings
from tests.fuzz.case import Finding
from tests.fuzz.comparison import Comparison, Way
from tests.fuzz.readings import VALUE, Numbers, Point, Reading, limited

# A step is so much of an input: what its square has to do with the third derivative is below every float.
_STEP = 1_500
_BITS = 3 * _STEP + 2_000
_MOST_STEPS = 10_000_000
# So many bits must be certain.
_CERTAIN = 30
# For each two of them there are four values.
_MOST_INPUTS = 4
# The inverse of less than half a last place, a prime: no period of a function has it.
_NUDGE = 10**16 + 61
# What a sum with 1 loses.
_LOST = 2.0**-55
# Of the largest number at hand.
_NOISE = 16 * 2.0**-52
# As near are derivatives at two points that round to one, where floats can tell what they are.
_ALIKE_BESIDE = 1e-3
# What is smaller is as good as 0.
_TINY = 1e-300


def disagreement(point: Point) -> Finding | None:
    """Finite second derivatives that are far from those of differences; nothing where there are none."""
    if commands.ON_PURPOSE.search(point.program.source) or sum(map(np.size, point.leaves.values())) > _MOST_INPUTS:
        return None
    try:
        with limited():
            ordinary = session.run(EvaluationRequest(point.program, point.leaves, tuple(point.leaves)))
        if any(w.code == "nonsmooth" for w in ordinary.warnings):
            return None
        first, beside = by_differences(point), by_differences(point, nudge=True)
    except (GradcliError, NotImplementedError):
        return None
    if not all(np.allclose(beside[key], first[key], _ALIKE_BESIDE, _TINY) for key in first):
        # Less than the last place of a float decides, such as the half in cospi(x - 0.5) of a large x.
        return None
    value = readings.as_numbers(ordinary.value)
    if not np.isfinite(value) or not np.allclose(value, first[VALUE], _ALIKE_BESIDE, _TINY):
        # It is beyond the floats, or is chosen by what they cannot tell, as by expm1(x) > x of a tiny x.
        return None
    ways = [
        Way("reverse mode far out", _finite(readings.twice_by_reverse_mode), widens=True),
        Way("series far out", _finite(lambda p: readings.by_series(p, 3)), widens=True),
    ]
    return next(filter(None, (_finding(way, first, point) for way in ways)), None)


def is_absorbed(way: Way, first: Numbers, point: Point) -> bool:
    """Whether a way has the second derivatives that are proved, and `first` what sums with larger numbers left of them:
    1 + 1e-75 - 1 in the second of expit(q)*logsumexp(q) at 170.6."""
    if sum(map(np.size, point.leaves.values())) > _MOST_INPUTS:
        return False
    try:
        # Functions take the more steps the further out they are.
        proved, gradients = by_differences(point, steps=_MOST_STEPS), readings.by_reverse_mode(point)
    except (GradcliError, NotImplementedError):
        return False
    lost = _NOISE * max(float(np.max(np.abs(numbers))) for numbers in gradients.values() if numbers is not None)
    near = all(np.all(np.abs(numbers - first.get(key, numbers)) <= lost) for key, numbers in proved.items())
    return near and Comparison(by_differences, proved, point).finding(way) is None


def _finding(way: Way, first: Numbers, point: Point) -> Finding | None:
    """That a way differs from the differences, there and where sums with 1 round to one beside the point: x - 1 of a tiny
    x is -1, which is a kink of some functions."""
    found = Comparison(by_differences, first, point).finding(way)
    for sign in (1, -1):
        if found is None:
            return None
        beside = point.at({name: leaf + sign * _LOST for name, leaf in point.leaves.items()})
        try:
            there = by_differences(beside)
        except (GradcliError, NotImplementedError):
            continue
        if (
            Comparison(by_differences, there, beside).finding(way._replace(reading=lambda _: way.reading(point)))
            is None
        ):
            return None
    return found


def by_differences(point: Point, nudge: bool = False, steps: int = 20 * checks.MAX_STEPS) -> Numbers:
    """The value, which is a scalar, and its second derivatives; with `nudge` where each input has moved by less than
    half of its last place. Raises EvaluationError where they are not certain."""
    if not all(np.isfinite(leaf).all() for leaf in point.leaves.values()):
        raise EvaluationError("there is nothing beside an infinity")
    shapes = {name: np.shape(leaf) for name, leaf in point.leaves.items()}
    elements = [(name, key) for name, shape in shapes.items() for key in np.ndindex(shape)]
    with digits.computing(as_written=False), _precise(), limits.within(steps, 20 * checks.MAX_ELEMENTS):
        at = _Surroundings(point, nudge)
        found: Numbers = {VALUE: _certain(at.value([]))}
        for one, other in itertools.combinations_with_replacement(shapes, 2):
            found[f"{one},{other}"] = np.zeros(shapes[one] + shapes[other])
        for one, other in itertools.product(elements, elements):
            key = f"{one[0]},{other[0]}"
            if key in found:
                found[key][one[1] + other[1]] = _certain(at.second_derivative(one, other))
    return found


def _precise() -> AbstractContextManager[None]:
    from gradcli.arrays.flint.balls import precise

    return precise(_BITS)


# An element of an input.
_Element = tuple[str, tuple[int, ...]]


class _Surroundings:
    """The values of a program at a point and beside it."""

    def __init__(self, point: Point, nudge: bool) -> None:
        from flint import fmpq

        self.point = point
        scale = 1 + fmpq(1, _NUDGE) if nudge else fmpq(1)
        self.exact = {name: _fractions(leaf, scale) for name, leaf in point.leaves.items()}

    def value(self, moves: Sequence[tuple[_Element, int]]) -> Any:
        """Where elements are moved by so many steps."""
        from gradcli.arrays.flint.balls import Balls

        there = {name: numbers.copy() for name, numbers in self.exact.items()}
        for (name, key), count in moves:
            there[name][key] += count * self.step((name, key))
        inputs = {name: Balls(numbers if numbers.shape else numbers[()]) for name, numbers in there.items()}
        found = self.point.evaluate(inputs)
        if not isinstance(found, Balls) or found.shape:
            raise EvaluationError("this is for numbers")
        return found.numbers

    def step(self, element: _Element) -> Any:
        from flint import fmpq

        name, key = element
        return (abs(self.exact[name][key]) or fmpq(1)) / fmpq(2) ** _STEP

    def second_derivative(self, one: _Element, other: _Element) -> Any:
        total: Any = 0
        for i, j in itertools.product((1, -1), (1, -1)):
            total += i * j * self.value([(one, i), (other, j)])
        return total / (4 * self.step(one) * self.step(other))


def _fractions(leaf: Any, scale: Any) -> Any:
    """So many times floats as what they are, in an object array."""
    from flint import fmpq

    numbers = np.empty(np.shape(leaf), object)
    for key in np.ndindex(numbers.shape):
        numbers[key] = scale * fmpq(*float(np.asarray(leaf)[key]).as_integer_ratio())
    return numbers


def _certain(number: Any) -> float:
    """A number as a float. Raises EvaluationError where a ball is too wide for most of its digits."""
    from flint import arb

    ball = arb(number)
    if not ball.is_finite() or (ball.rel_accuracy_bits() < _CERTAIN and not abs(ball) < _TINY):
        raise EvaluationError("this is not certain")
    return float(ball)


def _finite(reading: Reading) -> Reading:
    """The derivatives of a reading that are finite: nobody takes others for right."""

    def found(point: Point) -> Numbers:
        numbers = {key: readings.as_numbers(d) for key, d in reading(point).items() if key != VALUE and d is not None}
        return {key: d for key, d in numbers.items() if np.isfinite(d).all()}

    return found
