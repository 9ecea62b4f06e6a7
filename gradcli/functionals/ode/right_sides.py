"""The right side of a system and its Jacobian as Python functions of numbers, with their rounding errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.arrays.mathematical_constants import GOLDEN_RATIO
from gradcli.executors.scalars import ScalarWriter
from gradcli.functionals.body import Body
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.solver_progress import NoStepError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.program.ir import Atom, Program, Variable

# Bound on the rounding of states within a step, in units in the last place.
_ROUNDED = 16


def rounded_otherwise(program: Program, inputs: Sequence[Any], states: int) -> list[Any]:
    """The outputs of a program, numbers or arrays, where `states` of the inputs after the first one, and the result of
    each operation, are changed by some units in the last place. The changes are irregular, as equal ones may cancel."""
    known: dict[Atom, Any] = dict(zip(program.inputs, inputs))
    changes = (1.0 + _ROUNDED * 2.0**-52 * (k * GOLDEN_RATIO % 1.0 - 0.5) for k in itertools.count(1))
    for state in program.inputs[1 : 1 + states]:
        known[state] = known[state] * next(changes)
    with arrays.using_namespace(None), arrays.quiet():
        for primitive, atoms, params, output in program.equations:
            result = bind(primitive, [known[a] if isinstance(a, Variable) else a for a in atoms], params)
            known[output] = result * next(changes) if output.dtype == "float64" else result
    return [known[o] if isinstance(o, Variable) else o for o in program.outputs]


Function = Callable[..., list[float]]

_functions: WeakKeyDictionary[Body, Function] = WeakKeyDictionary()


class Bodies(NamedTuple):
    """The right sides of all states of a system, and the system of those that are no derivatives of others."""

    all: Body
    base: System


def bodies(system: System) -> Bodies:
    return Bodies(system.body, system.base or system)


class RightSides:
    """Those of a system with its given values. All raise NoStepError where they have no value."""

    def __init__(self, bodies: Bodies, given: Sequence[float]) -> None:
        self._base = bodies.base
        self._all = function(bodies.all)
        self._given = given
        self.base_states = self._base.states

    def rates(self, time: float, states: Sequence[float]) -> list[float]:
        """The slopes of all states."""
        try:
            return self._all(time, *states, *self._given)
        except (ArithmeticError, ValueError):
            raise NoStepError from None

    def all_rates(self, times: Any, states: Any) -> Any:
        """The slopes of all states at some times, [times, states]."""
        return self._at_each(self._all, times, states)

    def base_rates(self, times: Any, states: Any) -> Any:
        """The slopes of the states that are no derivatives, [times, states]."""
        return self._at_each(function(self._base.body), times, states)

    def base_rounding(self, times: Any, states: Any) -> Any:
        """What rounding may change those slopes by, [times, states]."""
        np, program = arrays.numpy_namespace(), self._base.body.program
        found = rounded_otherwise(program, [times, *states.T, *self._given[: self._base.given]], self.base_states)
        changed = [np.broadcast_to(rates, times.shape) for rates in found[: self.base_states]]
        return np.array(changed).T - self.base_rates(times, states)

    def jacobians(self, times: Any, states: Any) -> Any:
        """The derivatives of those slopes by those states, [times, slopes, states]."""
        count = self._base.states
        return self._at_each(function(self._base.jacobian), times, states).reshape(len(times), count, count)

    def _at_each(self, function: Function, times: Any, states: Any) -> Any:
        try:
            rows = [function(t, *row, *self._given) for t, row in zip(times.tolist(), states.tolist())]
        except (ArithmeticError, ValueError):
            raise NoStepError from None
        return arrays.numpy_namespace().array(rows)


def function(body: Body) -> Function:
    """A body as a function of numbers."""
    found = _functions.get(body)
    if found is None:
        writer = ScalarWriter(body.program)
        inputs = ", ".join(writer.names[v] for v in body.program.inputs)
        lines = writer.statements()
        outputs = ", ".join(writer.number(o) for o in body.program.outputs)
        text = [f"def rates({inputs}):", *(f"    {line}" for line in lines), f"    return [{outputs}]"]
        found = _functions[body] = writer.defined("rates", text)
    return found
