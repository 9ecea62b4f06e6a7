"""Straight-line Python for equations on arrays: NumPy's functions, called into memory that is used again.

The text is made of names that are made here and of numbers, whatever the program was made of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.executors import ufuncs
from gradcli.executors.buffers import Buffer
from gradcli.executors.merged import Merged
from gradcli.executors.sincos import SinCos
from gradcli.executors.waves import WAVES, is_wave
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Variable


class Lines:
    """The lines that compute equations one after the other, and what the names in them stand for.

    `freed` says which variables are not read any more after each equation, by its number. `place` says where a
    result is put: the name of an array, or None for a buffer. `together` computes sines with their cosines.
    """

    def __init__(
        self,
        equations: Sequence[Equation],
        freed: Mapping[int, Sequence[Variable]],
        place: Callable[[Variable], str | None],
        together: SinCos | None,
    ) -> None:
        self.body: list[str] = []
        self.known: dict[str, Any] = {}
        # By variable, and by the identity of an array among the constants that is not there as it is.
        self.names: dict[Any, str] = {}
        self.buffers: list[Buffer] = []
        self._freed = freed
        self._place = place
        self._together = together
        # By operand: the sine and the cosine of it.
        self._waves: dict[Variable, dict[Primitive, Variable]] = {}
        for equation in equations if together is not None else ():
            if is_wave(equation):
                self._waves.setdefault(equation.inputs[0], {})[equation.primitive] = equation.output
        self._global_names: dict[int, str] = {}
        # The names of variables in no buffer, the buffers of the others, and those in which nothing is.
        self._unbuffered: dict[Variable, str] = {}
        self._held: dict[Variable, int] = {}
        self._free: dict[Buffer, list[int]] = {}
        self._surcharges: dict[Any, str] = {}

    def compute(self, number: int, equation: Equation) -> None:
        """Write the lines for an elementwise equation."""
        if is_wave(equation) and self._together is not None:
            self._compute_waves(equation, self._together)
            return
        self._surcharge(equation)
        operands = [self.operand(a, _dtype_beside(equation.inputs)) for a in equation.inputs]
        function = ufuncs.of(equation)
        if function is None:
            self._compute_anew(equation, operands)
            return
        if ufuncs.is_in_place(equation):
            self._free_buffers(v for v in self._freed.get(number, ()) if v is not equation.output)
        self.body.append(f"{self.constant(function)}({', '.join([*operands, self._put(equation.output)])})")

    def compute_merged(self, number: int, merged: Merged) -> None:
        """Write the lines for equations that are computed together."""
        # The function of NumPy does not keep its code alive.
        self.constant(merged.loop)
        operands = [self.names[v] for v in merged.inputs]
        self._free_buffers(self._freed.get(number, ()))
        places = [self._put(v) for v in merged.outputs]
        self.body.append(f"{self.constant(merged.loop.ufunc)}({', '.join([*operands, *places])})")

    def operand(self, atom: Atom, dtype: str | None = None) -> str:
        """The name of a variable, or of a constant: a number as one of `dtype`, of which NumPy makes no array each time."""
        if isinstance(atom, Variable):
            return self.names[atom]
        if id(atom) in self.names:
            return self.names[id(atom)]
        if type(atom) is float and dtype is not None:
            np = arrays.numpy_namespace()
            # One too large for it is infinite, as it is beside arrays.
            with np.quiet():
                return self.constant(np.asarray(atom, dtype))
        return self.constant(atom)

    def constant(self, value: Any) -> str:
        """A name for anything."""
        name = self._global_names.get(id(value))
        if name is None:
            name = self._global_names[id(value)] = f"c{len(self.known)}"
            self.known[name] = value
        return name

    def new_name(self, variable: Variable) -> str:
        """A name for a variable that is in no buffer."""
        name = self.names[variable] = self._unbuffered[variable] = f"v{len(self.names)}"
        return name

    def is_buffer(self, variable: Variable) -> bool:
        """Whether it is in a buffer."""
        return variable in self._held

    def release(self, variables: Iterable[Variable]) -> list[str]:
        """Have the buffers of variables that are not read any more used again; the names of those in no buffer."""
        gone = [*variables]
        self._free_buffers(gone)
        return [self._unbuffered.pop(v) for v in gone if v in self._unbuffered]

    def function(self, lines: Sequence[str]) -> Callable[..., Any]:
        """The function that a text defines."""
        exec("\n".join(lines), self.known)
        made: Callable[..., Any] = self.known["program"]
        return made

    def _put(self, variable: Variable) -> str:
        """The name of the array into which a variable is computed."""
        place = self._place(variable)
        if place is None:
            kind = Buffer(variable.shape, variable.dtype)
            self._held[variable] = number = self._buffer(kind)
            place = f"b{number}"
        self.names[variable] = place
        return place

    def _free_buffers(self, variables: Iterable[Variable]) -> None:
        for variable in variables:
            buffer = self._held.pop(variable, None)
            if buffer is not None:
                self._free.setdefault(self.buffers[buffer], []).append(buffer)

    def _buffer(self, kind: Buffer) -> int:
        free = self._free.get(kind)
        if free:
            return free.pop()
        self.buffers.append(kind)
        return len(self.buffers) - 1

    def _compute_anew(self, equation: Equation, operands: Sequence[str]) -> None:
        """Without a function that writes into an array: what is computed is copied, where it must be in a place."""
        text = f"{self.constant(_forward(equation))}({', '.join(operands)})"
        place = self._place(equation.output)
        if place is None:
            self.body.append(f"{self.new_name(equation.output)} = {text}")
        else:
            self.names[equation.output] = place
            self.body.append(f"{place}[...] = {text}")

    def _compute_waves(self, equation: Equation, together: SinCos) -> None:
        if equation.output in self.names:
            return
        self._surcharge(equation)
        operand = equation.inputs[0]
        pair = self._waves[operand]
        # What nobody reads is written too.
        unread = [Variable(operand.shape, operand.dtype) for wave in WAVES if wave not in pair]
        outputs = [pair[wave] if wave in pair else unread[0] for wave in WAVES]
        sine, cosine = (f"b{self._buffer(Buffer(v.shape, v.dtype))}" if v in unread else self._put(v) for v in outputs)
        self.body.append(f"{self.constant(together)}({self.names[operand]}, {sine}, {cosine})")

    def _surcharge(self, equation: Equation) -> None:
        """Charge what is computed for some numbers beyond what is charged for any."""
        surcharge, params = equation.primitive.surcharge, equation.params
        if surcharge is None:
            return
        key = (surcharge, *params.items(), *(a if isinstance(a, Variable) else id(a) for a in equation.inputs))
        name = self._surcharges.get(key)
        found = f"budget.charge({name})"
        if name is None:
            name = self._surcharges[key] = f"s{len(self._surcharges)}"
            function = functools.partial(surcharge, **params) if params else surcharge
            operands = ", ".join(self.operand(a, None) for a in equation.inputs)
            found = f"{name} = {self.constant(function)}({operands}); budget.charge({name})"
        self.body.append(f"if budget is not None: {found}")


def _dtype_beside(atoms: Sequence[Atom]) -> str | None:
    """The dtype of a number of Python beside arrays."""
    dtypes = {
        a.dtype if isinstance(a, Variable) else arrays.dtype_name(a) for a in atoms if type(a) not in arrays.PLAIN
    }
    return next((d for d in arrays.DTYPES if d in dtypes), None)


def _forward(equation: Equation) -> Callable[..., Any]:
    primitive, params = equation.primitive, equation.params
    xp = arrays.numpy_namespace()

    def forward(*operands: Any) -> Any:
        return primitive.forward(xp, *xp.promoted(operands, truths=primitive.truths), **params)

    return forward
