"""The right sides of a system that bends or jumps: those of the piece that the solution is in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.functionals.body import Body
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.right_sides import Bodies, RightSides, bodies, function
from gradcli.functionals.ode.smooth_pieces import Decisions, Margin, decisions_at, piece, sliding_error, switching
from gradcli.functionals.ode.solver_progress import SolverProblem
from gradcli.functionals.ode.transitions import switches_between, through
from gradcli.loops.rolled_loop import BodyPath
from gradcli.named_tuples import NamedTuple

# Bound on the pieces that are tried at one place.
_MOST_TRIED = 10


class _Piece(NamedTuple):
    """A piece: its right sides, and the function of its margins with what they are."""

    bodies: Bodies
    values: Body | None
    margins: Sequence[Margin]


_pieces: WeakKeyDictionary[System, dict[Hashable, _Piece]] = WeakKeyDictionary()


def _piece(system: System, decisions: Decisions) -> _Piece:
    known = _pieces.setdefault(system, {})
    key = tuple(decisions.items())
    if key not in known:
        known[key] = _made(system, decisions)
    return known[key]


def _made(system: System, decisions: Decisions) -> _Piece:
    if not decisions:
        return _Piece(bodies(system), None, ())
    origin, base = system.origin or system, system.base or system
    program, margins = piece(origin.body.program, decisions, origin.states)
    smooth, values = (
        Body([BodyPath(part, ())], part, origin.body.bound)
        for part in (
            program._replace(outputs=program.outputs[: origin.states]),
            program._replace(outputs=program.outputs[origin.states :]),
        )
    )
    return _Piece(Bodies(system.lift(smooth), System(base.lift(smooth), base.start)), values, margins)


class PiecewiseSides:
    """The right sides of a problem in the piece of a place, which may be its end."""

    def __init__(self, problem: SolverProblem, time: float, states: Sequence[float]) -> None:
        self._problem = problem
        self._origin = problem.system.origin or problem.system
        program = self._origin.body.program
        numbers = switching(program, 1 + self._origin.states)
        place = self._place(time, states)
        self._decisions = decisions_at(program, numbers, place) if numbers else {}
        self._tried: list[Decisions] = []
        self._enter()

    def _enter(self) -> None:
        self._piece = _piece(self._problem.system, self._decisions)
        self.sides = RightSides(self._piece.bodies, self._problem.given)

    def _place(self, time: float, states: Sequence[float]) -> list[float]:
        return [time, *states[: self._origin.states], *self._problem.given[: self._origin.given]]

    @property
    def conditions(self) -> Sequence[int]:
        """The number of the equation that each margin is of."""
        return [margin.equation for margin in self._piece.margins]

    @property
    def has_margins(self) -> bool:
        """True if the piece ends somewhere."""
        return bool(self._piece.margins)

    def margins(self, time: float, states: Sequence[float]) -> Any:
        """The margins of the piece, `[margins]`: positive inside of it, nan where they have no value."""
        np = arrays.numpy_namespace()
        assert self._piece.values is not None
        try:
            return np.array(function(self._piece.values)(*self._place(time, states)))
        except (ArithmeticError, ValueError):
            return np.full(len(self._piece.margins), np.nan)

    def settle(self) -> None:
        """Note that the solution goes on inside the piece."""
        self._tried = []

    def cross(self, numbers: Sequence[int], time: float, states: Sequence[float]) -> Sequence[float]:
        """Go over to the piece behind some margins; returns the states there. Raises EvaluationError where pieces
        follow each other at one place."""
        before, margins = self._decisions, self._piece.margins
        self._tried.append(before)
        program = self._origin.body.program
        # What the piece did not depend on may have changed since it was decided.
        fresh = decisions_at(program, [*before], self._place(time, states))
        kept = {margin.equation: before[margin.equation] for margin in margins}
        self._decisions = {**fresh, **kept, **{margins[n].equation: margins[n].beyond for n in numbers}}
        if self._decisions in self._tried or len(self._tried) > _MOST_TRIED:
            raise sliding_error(self._problem.origin + time)
        after = through(self._problem, time, states, switches_between(before, self._decisions, margins))
        self._enter()
        return after
