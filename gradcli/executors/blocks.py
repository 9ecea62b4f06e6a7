"""Programs on arrays: segments over blocks, on a thread for each core, and the rest array by array."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.executors import schedule, ufuncs
from gradcli.executors.kernel import Kernel
from gradcli.executors.schedule import Segment, last_uses
from gradcli.primitives.bind import assume, bind
from gradcli.program.ir import Atom, Equation, Program, Variable, elements

Step = Callable[[dict[Variable, Any]], bool]


class Blocks:
    """A program, ready to run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        steps = schedule.schedule(program).steps
        guards = set(program.guards)
        self.freed = last_uses(steps, program.outputs)
        # What is computed by `bind` is charged there.
        self.elements = elements(e for step in steps for e in _unbound(step))
        own = schedule.exclusive(program)
        self.steps = [
            _segment(s, own.intersection(self.freed.get(i, ())))
            if isinstance(s, Segment)
            else _whole(s, s.output in guards)
            for i, s in enumerate(steps)
        ]

    def run(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The outputs for `inputs`, or None where a guard does not hold. What its primitives raise
        is raised."""
        limits.charge(self.elements)
        known: dict[Variable, Any] = dict(zip(self.program.inputs, inputs))
        if not all(assume(known[g]) for g in self.program.guards if g in known):
            return None
        with arrays.quiet():
            for number, step in enumerate(self.steps):
                if not step(known):
                    return None
                for variable in self.freed.get(number, ()):
                    known.pop(variable, None)
        return [_value(a, known) for a in self.program.outputs]


def _unbound(step: Segment | Equation) -> Iterable[Equation]:
    if isinstance(step, Segment):
        return step.equations.values()
    return () if _into_new(step) is None else (step,)


def _value(atom: Atom, known: dict[Variable, Any]) -> Any:
    return known[atom] if isinstance(atom, Variable) else atom


def _segment(segment: Segment, dying: frozenset[Variable]) -> Step:
    kernel = Kernel(segment, dying)

    def step(known: dict[Variable, Any]) -> bool:
        found = kernel.run(known)
        if found is None:
            return False
        known.update(found)
        return True

    return step


def _whole(equation: Equation, guard: bool) -> Step:
    inputs, output = equation.inputs, equation.output
    compute = _into_new(equation) or functools.partial(_bound, equation)

    def step(known: dict[Variable, Any]) -> bool:
        result = known[output] = compute([_value(a, known) for a in inputs])
        return not guard or assume(result)

    return step


def _bound(equation: Equation, operands: Sequence[Any]) -> Any:
    return bind(equation.primitive, operands, equation.params)


def _into_new(equation: Equation) -> Callable[[Sequence[Any]], Any] | None:
    """An elementwise equation on arrays as one call of NumPy; None where it is none."""
    shape, dtype = equation.output.shape, equation.output.dtype
    function = ufuncs.into(equation.primitive, equation.params) if shape and ufuncs.is_plain(equation) else None
    if function is None:
        return None
    empty = arrays.numpy_namespace().empty
    write, surcharge = function, equation.primitive.surcharge

    def compute(operands: Sequence[Any]) -> Any:
        if surcharge is not None:
            limits.charge(surcharge(*operands, **equation.params))
        result = empty(shape, dtype)
        write(*operands, result)
        return result

    return compute
