"""The Taylor coefficients of the solution of a system in ball arithmetic, and its right side on boxes of complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import acb, arb

from gradcli import limits
from gradcli.arrays.flint.balls import Balls, exact
from gradcli.executors import stepwise
from gradcli.functionals.body import Body
from gradcli.functionals.ode.ode_system import System, slopes_by_states
from gradcli.functionals.ode.recurrences import Recurrences, recurrences
from gradcli.functionals.ode.taylor_python_code import SeriesWriter
from gradcli.functionals.ode.wide_balls import WideProgram
from gradcli.program.ir import Atom, Program, Variable

# The products of coefficients that an eighth of a step pays for.
_PRODUCTS = 8


class BallSeries:
    """The series of some states, and of further outputs of a body."""

    def __init__(self, body: Body, states: int) -> None:
        system = recurrences(body.program, states)
        self._recurrences = len(system.recurrences)
        self._program = WideProgram(system.program)
        self._function = _BallWriter(system, self._program.variables).function()

    def at(self, order: int, time: arb, states: Sequence[arb], given: Sequence[arb]) -> list[list[arb]]:
        """The coefficients up to `order` of the states, and up to one order less of the further outputs.

        They are not finite where the right side has none.
        """
        limits.charge_steps(order * order * self._recurrences // (2 * _PRODUCTS))
        found = self._program.all_values([acb(x) for x in (time, *states, *given)], analytic=False)
        numbers = [x.real if type(x) is acb else x for x in found]
        try:
            series = self._function(order, numbers)
        except (ZeroDivisionError, TypeError):
            # A condition is not decided, or a divisor may be 0.
            return [[arb("nan")] * (order + 1)] * len(states)
        return [[arb(c) for c in coefficients] for coefficients in series]


class _BallWriter(SeriesWriter):
    """The order-0 values are given as a list; constants are balls."""

    def __init__(self, system: Recurrences, variables: Sequence[Variable]) -> None:
        super().__init__(system)
        self.known["decided"] = _decided
        self.names = {v: f"numbers[{i}]" for i, v in enumerate(variables)}

    def function(self) -> Any:
        return self.written("numbers", [])

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Variable):
            return self.names[atom]
        return repr(atom) if type(atom) is bool else self._constant(arb(_number(atom)))

    def number(self, atom: Atom) -> str:
        return self._atom(atom)

    def _constant(self, number: arb) -> str:
        name = f"number{len(self.known)}"
        self.known[name] = number
        return name

    def _choose(self, operands: Sequence[Atom], _output: Variable) -> str:
        condition, a, b = operands
        return f"{self._last(a)} if decided({self._atom(condition)}) else {self._last(b)}"

    def _power(self, operands: Sequence[Atom], output: Variable) -> str:
        return self._power_of_nonzero(operands, output)


def _decided(condition: bool | None) -> bool:
    if condition is None:
        raise TypeError
    return condition


def _number(atom: Any) -> Any:
    return atom.numbers if type(atom) is Balls else exact(atom)


class ComplexField:
    """The slopes of the states, or other outputs of a body, on boxes of complex numbers."""

    def __init__(self, body: Body, outputs: int) -> None:
        self._program = WideProgram(body.program)
        self._outputs = self._program.outputs[:outputs]

    def sizes(self, time: acb, states: Sequence[acb], given: Sequence[acb]) -> list[arb]:
        """Bounds of the magnitudes; not finite where an output is not known to be analytic on the box."""
        found = self._program.all_values([time, *states, *given], analytic=True)
        return [_size(found[o]) for o in self._outputs]


def _size(number: acb) -> arb:
    return number.abs_upper() if number.is_finite() else arb.pos_inf()


def with_jacobian(system: System) -> Body:
    """The right side of a system, followed by its derivatives by the states, row by row."""
    states = system.states

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        slopes, others = slopes_by_states(program, inputs, states)
        return [*stepwise.outputs(program, inputs)[:states], *slopes, *others]

    return system.body.derived(run, system.body.bound, system.given)
