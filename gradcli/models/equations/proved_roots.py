"""Roots with proved digits: Newton steps improve a point, and Krawczyk's operator proves a root next to it.

Where the operator maps a box into its interior, there is exactly one root in the box (R. Krawczyk, Computing 4 (1969)
187; R. E. Moore, R. B. Kearfott, M. J. Cloud, Introduction to Interval Analysis, 2009, section 8.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat, fmpq

from gradcli import arrays
from gradcli.arrays.flint import intervals
from gradcli.arrays.flint.balls import Balls, Number, UndecidedError, exact, precise, precision
from gradcli.arrays.flint.flint_matrices import identity_matrix
from gradcli.arrays.flint.intervals import Bounds
from gradcli.calculus.implicit import implicit_derivatives, square_jacobian
from gradcli.errors import EvaluationError
from gradcli.models.equations.systems import EquationSystem
from gradcli.named_tuples import NamedTuple
from gradcli.proofs import digits as proving
from gradcli.proofs.interval_evaluation import IntervalProgram

_MOST_STEPS, _MOST_WIDENINGS = 40, 6
# `_GUARD_BITS` bits of the working precision are allowed for rounding, and the first radius of the box is `_RADIUS_FACTOR` times the
# last Newton step.
_GUARD_BITS, _RADIUS_FACTOR = 16, 4
# The largest denominator of the fractions that are tried as exact roots.
_MAX_DENOMINATOR = 1_000

# Values by name, each a number or an array.
Numbers = dict[str, Any]


class ProvedRoot(NamedTuple):
    """Balls that enclose the unknowns at a root, and enclosures of its derivatives."""

    point: Numbers
    derivatives: Mapping[str, Mapping[str, Any]]

    def numbers(self) -> list[Number]:
        parts = [*self.point.values(), *(d for by in self.derivatives.values() for d in by.values())]
        return [n for part in parts for n in _flat(part)]

    def mapped(self, text: Callable[[Number], Any]) -> ProvedRoot:
        """A copy with `text` applied to each number; tensors become object arrays."""

        def each(part: Any) -> Any:
            numbers = part.numbers if type(part) is Balls else exact(part)
            if not getattr(numbers, "shape", ()):
                return text(numbers)
            return arrays.numpy_namespace().frompyfunc(text, 1, 1)(numbers)

        return ProvedRoot(
            {name: each(part) for name, part in self.point.items()},
            {name: {key: each(part) for key, part in by.items()} for name, by in self.derivatives.items()},
        )


def prove(
    system: EquationSystem, point: Any, bindings: Callable[[], Mapping[str, Any]], by: Sequence[str], order: int,
    digits: int, most: int,
) -> ProvedRoot:  # fmt: skip
    """The root next to a point, with derivatives up to an order by the constants `by`, each number as a text with
    `digits` proved digits. `bindings` gives the constants as balls at the current precision.

    Raises EvaluationError where no root can be proved with `most` digits, as at a root with a singular Jacobian.
    """
    with proving.computing():
        start = [exact(float(x)) for x in point]

        def compute() -> ProvedRoot:
            nonlocal start
            constants = {name: arrays.in_default_namespace(value) for name, value in bindings().items()}
            root = _Krawczyk(system, constants)
            start, balls = root.near(start)
            named = root.named(balls)
            if not order:
                return ProvedRoot(named, {})
            return ProvedRoot(
                named, implicit_derivatives(_with(system, constants), named, {n: constants[n] for n in by}, order)
            )

        try:
            found, bits = proving.at_rising_precision(
                compute, lambda f: proving.have_digits(f.numbers(), digits), digits, most
            )
        except UndecidedError as error:
            raise EvaluationError(
                f"no root can be proved near {_described(system, point)}",
                hint="its Jacobian is singular or nearly so, or a condition is open there; without --digits it is a float",
                span=error.span or system.equations.places[0],
                source=system.equations.program.source,
            ) from None
        with precise(bits):
            return found.mapped(lambda number: proving.text_of(number, digits, most))


def _described(system: EquationSystem, point: Any) -> str:
    return ", ".join(f"{label}={x:.6g}" for label, x in zip(system.packing.labels(), point))


def _with(system: EquationSystem, constants: Mapping[str, Any]) -> Any:
    return lambda given: system.function({**constants, **given})


class _Krawczyk:
    """Newton's method and Krawczyk's operator for equations in ball arithmetic at the current precision."""

    def __init__(self, system: EquationSystem, constants: Mapping[str, Any]) -> None:
        self.system = system
        self.constants = constants
        self.shapes = system.packing.shapes
        self.size = system.packing.size

    def named(self, numbers: Sequence[Number]) -> Numbers:
        """The unknowns by name, from the flat list of their numbers."""
        np = arrays.numpy_namespace()
        found: Numbers = {}
        for name, place in self.system.packing.places().items():
            if not self.shapes[name]:
                found[name] = Balls(numbers[place.start])
                continue
            array = np.empty(place.stop - place.start, object)
            array[:] = numbers[place]
            found[name] = Balls(array.reshape(self.shapes[name]))
        return found

    def near(self, start: Sequence[Number]) -> tuple[list[Number], list[Number]]:
        """A point next to a root, and balls that enclose this root and no other. Raises UndecidedError where none is
        proved."""
        point, steps = self._improved(start)
        tiny = fmpq(1, 2 ** (precision() - _GUARD_BITS))
        radii = [_RADIUS_FACTOR * abs(s) + abs(x) * tiny + tiny * tiny for x, s in zip(point, steps)]
        for _ in range(_MOST_WIDENINGS):
            found = self._mapped(point, radii)
            if found is not None:
                return point, self._exact(found) or found
            radii = [_RADIUS_FACTOR * _RADIUS_FACTOR * r for r in radii]
        raise UndecidedError("no root can be proved here")

    def _improved(self, start: Sequence[Number]) -> tuple[list[Number], list[Number]]:
        """The point after Newton steps, without radii, and the last step. The iteration stops where steps no longer
        halve."""
        point, before = [*start], None
        for _ in range(_MOST_STEPS):
            steps = [_rounded(s) for s in self._newton(point)]
            size = max((abs(s) for s in steps), default=fmpq(0))
            if before is not None and not size < before / 2:
                break
            point, before = [_rounded(x - s) for x, s in zip(point, steps)], size
            if not size:
                break
        return point, steps

    def _newton(self, point: Sequence[Number]) -> list[Number]:
        """The Newton step, to be subtracted from the point."""
        inverse, residuals = self._inverse(point), self._residuals(point)
        return (inverse * residuals).entries()  # type: ignore[no-any-return]

    def _residuals(self, point: Sequence[Number]) -> Any:
        value = self.system.function({**self.constants, **self.named(point)})
        return arb_mat(self.size, 1, [arb(n) for n in _flat(value)])

    def _inverse(self, point: Sequence[Number]) -> Any:
        """The inverse of the Jacobian at a point, in balls. Raises UndecidedError where the Jacobian may be
        singular."""
        jacobian = square_jacobian(_with(self.system, self.constants), self.named(point), self.constants)
        try:
            return arb_mat(self.size, self.size, [arb(n) for n in _flat(jacobian)]).inv()
        except ZeroDivisionError:
            raise UndecidedError("the Jacobian may be singular") from None

    def _mapped(self, point: Sequence[Number], radii: Sequence[Number]) -> list[Number] | None:
        """The image of a box around a point under Krawczyk's operator, where it lies in the interior of the box; else
        None."""
        middle = [_fraction(x) for x in point]
        box = tuple(Bounds(x - r, x + r) for x, r in zip(middle, map(_fraction, radii)))
        boxed = IntervalProgram(self.system.equations.program, self.constants, self.shapes, box)
        reading = boxed.read(box, 1)
        if not reading.continuous:
            return None
        inverse = self._inverse(point).mid()
        entries = [reading.found[i, (j,)] for i in range(self.size) for j in range(self.size)]
        if not all(e.is_finite for e in entries):
            return None
        jacobians = arb_mat(self.size, self.size, [intervals.ball(*e) for e in entries])
        around = arb_mat(self.size, 1, [arb(0, arb(r).abs_upper()) for r in radii])
        moved = (identity_matrix(self.size) - inverse * jacobians) * around - inverse * self._residuals(point)
        found = [arb(x) + m for x, m in zip(point, moved.entries())]
        inside = all(b.low < f.lower().fmpq() and f.upper().fmpq() < b.high for f, b in zip(found, box))
        return found if inside else None

    def _exact(self, found: Sequence[Number]) -> list[Number] | None:
        """The root as simple fractions, where these lie in the balls and solve the equations exactly; else None."""
        simple = [Fraction(float(x)).limit_denominator(_MAX_DENOMINATOR) for x in found]
        numbers: list[Number] = [fmpq(f.numerator, f.denominator) for f in simple]
        if not all((x - n).contains(0) for x, n in zip(found, numbers)):
            return None
        residuals = _flat(self.system.function({**self.constants, **self.named(numbers)}))
        return numbers if all(type(r) is fmpq and r == 0 for r in residuals) else None


def _flat(part: Any) -> list[Number]:
    numbers = part.numbers if type(part) is Balls else exact(part)
    return [*numbers.ravel()] if getattr(numbers, "shape", ()) else [numbers]


def _rounded(number: Number) -> Number:
    """The midpoint of a ball. Raises UndecidedError for one that is not finite."""
    ball = arb(number)
    if not ball.is_finite():
        raise UndecidedError("a step is not finite")
    return ball.mid()


def _fraction(number: Number) -> fmpq:
    return number if type(number) is fmpq else arb(number).mid().fmpq()
