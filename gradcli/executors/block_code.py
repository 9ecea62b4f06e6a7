"""Generate the code of a segment: a Python function that computes the equations for one block."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.executors import schedule, ufuncs
from gradcli.executors.buffers import Buffer, Buffers
from gradcli.executors.demand import Demand
from gradcli.executors.merged import Merged, Step, merged
from gradcli.executors.reused_memory import Lines
from gradcli.executors.schedule import Segment, last_uses
from gradcli.executors.waves import WAVES
from gradcli.program.ir import Atom, Equation, Variable


class Code:
    """The generated `function(budget, *blocks)`, which computes one block of any size.

    `blocks` are the blocks of the atoms in `loaded`, of the variables in `stored`, into which results are written, and
    buffers cut from those of `pool`. The function returns the block's part of each reduction, or None if a guard does
    not hold. A result in `over` is written over the array of the operand that it is mapped to.
    """

    def __init__(self, segment: Segment, dying: frozenset[Variable], demand: Demand) -> None:
        """Results may be written over the arrays of the variables in `dying`; `demand` says what is compiled."""
        self.segment = segment
        self.loaded: list[Atom] = []
        self.stored = [*segment.stored]
        self.over: dict[Variable, Variable] = {}
        self._dying = dying
        equations = [*segment.equations.values()]
        steps: Sequence[Step] = equations
        if demand.merged:
            steps = merged(equations, {*segment.stored, *segment.guards}, lambda _equation: True)
        freed = last_uses(steps, ())
        self._last = {v: number for number, variables in freed.items() for v in variables}
        places = {v: f"r{i}" for i, v in enumerate(self.stored)}
        self._lines = Lines(equations, freed, places.get, demand.together)
        self.function = self._compiled(steps, freed, [*places.values()])
        row = math.prod(segment.shape[1:]) if segment.is_partial() else 1
        # The maximum number of elements of a block, and the size of each buffer.
        self.block = max(schedule.BLOCK, row)
        self.pool = Buffers([Buffer((self.block,), b.dtype) for b in self._lines.buffers])

    def _compiled(
        self, steps: Sequence[Step], freed: Mapping[int, Sequence[Variable]], places: Sequence[str]
    ) -> Callable[..., Any]:
        lines, body = self._lines, self._lines.body
        parts = {e.output: f"p{i}" for i, e in enumerate(self.segment.reductions())}
        for number, step in enumerate(steps):
            self._step(number, step, parts)
            lines.release(freed.get(number, ()))
        names = [lines.operand(a) for a in self.loaded]
        blocks = [*names, *places, *(f"b{i}" for i in range(len(lines.buffers)))]
        return lines.function(
            [
                f"def program({', '.join(['budget', *blocks])}):",
                *(f"    {line}" for line in body),
                f"    return ({''.join(f'{part}, ' for part in parts.values())})",
            ]
        )

    def _step(self, number: int, step: Step, parts: Mapping[Variable, str]) -> None:
        if isinstance(step, Merged):
            for variable in step.inputs:
                self._load(variable)
            for variable in step.outputs:
                self._write_over(number, variable)
            self._lines.compute_merged(number, step)
            self._check(step.outputs)
        elif isinstance(step, Equation):
            for atom in step.inputs:
                self._load(atom)
            if step.primitive.elementwise:
                if step.primitive not in WAVES and ufuncs.is_in_place(step):
                    self._write_over(number, step.output)
                self._lines.compute(number, step)
            else:
                self._lines.body.append(f"{parts[step.output]} = {self._reduction(step)}")
            self._check([step.output])

    def _check(self, variables: Sequence[Variable]) -> None:
        for name in (self._lines.names[v] for v in variables if v in self.segment.guards):
            self._lines.body.append(f"if not {name}.item({name}.argmin()): return None")

    def _load(self, atom: Atom) -> None:
        """Add an operand that is not computed in the segment to the blocks."""
        key = atom if isinstance(atom, Variable) else id(atom)
        if key not in self._lines.names and (isinstance(atom, Variable) or arrays.shape(atom)):
            self._lines.names[key] = f"x{len(self.loaded)}"
            self.loaded.append(atom)

    def _reduction(self, equation: Equation) -> str:
        """The expression that reduces a block.

        A partial reduction keeps its axes, so that blocks can be concatenated.
        """
        reduce = self._lines.constant(ufuncs.joining(equation.primitive).reduce)
        name, axis = self._lines.operand(equation.inputs[0]), equation.params["axis"]
        whole = len(axis) == len(arrays.shape(equation.inputs[0]))
        return f"{reduce}({name}, None)" if whole else f"{reduce}({name}, {axis!r}, None, None, True)"

    def _write_over(self, number: int, output: Variable) -> None:
        """Write a stored result over an operand of the same shape and dtype that is not read any more, if any."""
        if output not in self.segment.stored:
            return
        for atom in self.loaded:
            if not isinstance(atom, Variable) or atom not in self._dying or atom in self.over.values():
                continue
            if self._last[atom] <= number and (atom.shape, atom.dtype) == (output.shape, output.dtype):
                self.over[output] = atom
                return
