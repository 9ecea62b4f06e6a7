"""The instructions for one block of a segment: what is computed into which buffer, and when that is used again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.executors import ufuncs
from gradcli.executors.schedule import Segment
from gradcli.executors.sincos import SinCos
from gradcli.primitives import trigonometric
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Variable

Environment = list[Any]

WAVES = (trigonometric.sin, trigonometric.cos)


class Instruction(NamedTuple):
    """`compute` of the slots that `take` names, the last of which it writes into; where `made` is a
    slot, the result goes there instead."""

    compute: Callable[..., Any]
    take: Callable[[Environment], Sequence[Any]]
    made: int | None


class Surcharge(NamedTuple):
    """What is charged for the numbers of a block, those that `take` names, beyond what is charged for any."""

    of: Callable[..., int]
    take: Callable[[Environment], Sequence[Any]]


class Reduction(NamedTuple):
    """A reduction of the blocks in `slot`."""

    equation: Equation
    slot: int


class Guard(NamedTuple):
    """The blocks in `slot` must be true everywhere."""

    slot: int


class Code:
    """The instructions for a block. Every variable and constant has a slot in an environment, in
    which a thread has the current block of each."""

    def __init__(self) -> None:
        self.slots: dict[Any, int] = {}
        self.steps: list[Instruction | Surcharge | Reduction | Guard] = []
        # By slot: a buffer's number and dtype.
        self.buffers: dict[int, tuple[int, str]] = {}
        self.loaded: dict[int, Atom] = {}
        # Results that are written over an operand.
        self.over: dict[Variable, Variable] = {}


def instructions(segment: Segment, dying: frozenset[Variable], together: SinCos | None) -> Code:
    """The code for a segment. It may write over the arrays of `dying`; `together` computes sines with their cosines."""
    return _Compiler(segment, dying, together).compile()


class _Compiler:
    """Slots, buffers and instructions for the equations of a segment."""

    def __init__(self, segment: Segment, dying: frozenset[Variable], together: SinCos | None) -> None:
        self.code = Code()
        self.segment = segment
        self.dying = dying
        self.together = together
        # By operand: the sine and the cosine of it.
        self.waves: dict[Any, dict[Primitive, Variable]] = {}
        for equation in segment.equations.values():
            if equation.primitive in WAVES:
                self.waves.setdefault(_key(equation.inputs[0]), {})[equation.primitive] = equation.output
        self.free: dict[str, list[int]] = {}
        self.count = 0
        self.last = self._last_uses()

    def compile(self) -> Code:
        guards = set(self.segment.guards)
        for number, equation in enumerate(self.segment.equations.values()):
            for atom in equation.inputs:
                self._load(atom)
            if equation.primitive.elementwise:
                self._compute(number, equation)
            else:
                self.code.steps.append(Reduction(equation, self.code.slots[_key(equation.inputs[0])]))
            if equation.output in guards:
                self.code.steps.append(Guard(self.code.slots[equation.output]))
            self._release(number, (*equation.inputs, equation.output))
        return self.code

    def _last_uses(self) -> dict[Any, int]:
        last: dict[Any, int] = {}
        for number, equation in enumerate(self.segment.equations.values()):
            last.update((_key(a), number) for a in (equation.output, *equation.inputs))
        return last

    def _slot(self, key: Any) -> int:
        return self.code.slots.setdefault(key, len(self.code.slots))

    def _load(self, atom: Atom) -> None:
        key = _key(atom)
        if key not in self.code.slots:
            self.code.loaded[self._slot(key)] = atom

    def _compute(self, number: int, equation: Equation) -> None:
        if self._is_wave(equation):
            self._compute_waves(equation)
            return
        self._surcharge(equation)
        function = ufuncs.into(equation.primitive, equation.params) if ufuncs.is_plain(equation) else None
        operands = [self.code.slots[_key(a)] for a in equation.inputs]
        if function is not None and equation.primitive not in ufuncs.NOT_IN_PLACE:
            self._write_over(number, equation)
            self._release(number, equation.inputs)
        out = self._slot(equation.output)
        if function is None:
            self.code.steps.append(Instruction(_forward(equation), _getter(operands), out))
            return
        self._give_buffer(equation.output, equation.output.dtype)
        self.code.steps.append(Instruction(function, _getter([*operands, out]), None))

    def _surcharge(self, equation: Equation) -> None:
        surcharge = equation.primitive.surcharge
        if surcharge is not None:
            slots = [self.code.slots[_key(a)] for a in equation.inputs]
            self.code.steps.append(Surcharge(functools.partial(surcharge, **equation.params), _getter(slots)))

    def _write_over(self, number: int, equation: Equation) -> None:
        """Have a result that is stored take the place of an operand that is not read any more."""
        output = equation.output
        if output not in self.segment.stored:
            return
        for atom in self.code.loaded.values():
            if not isinstance(atom, Variable) or atom not in self.dying or atom in self.code.over.values():
                continue
            if self.last[atom] <= number and (atom.shape, atom.dtype) == (output.shape, output.dtype):
                self.code.over[output] = atom
                return

    def _is_wave(self, equation: Equation) -> bool:
        """Whether a sine or cosine is computed together with the other."""
        operand = equation.inputs[0] if equation.primitive in WAVES else None
        return (
            self.together is not None
            and isinstance(operand, Variable)
            and (operand.shape == self.segment.shape and operand.dtype == "float64")
        )

    def _compute_waves(self, equation: Equation) -> None:
        if equation.output in self.code.slots:
            return
        self._surcharge(equation)
        operand = equation.inputs[0]
        pair = self.waves[_key(operand)]
        # What nobody reads is written too.
        keys = [pair.get(wave, (wave, operand)) for wave in WAVES]
        for key in keys:
            self._give_buffer(key, "float64")
        slots = [self.code.slots[key] for key in (_key(operand), *keys)]
        assert self.together is not None
        self.code.steps.append(Instruction(self.together, _getter(slots), None))
        for key in keys:
            if not isinstance(key, Variable):
                self._free(key)

    def _give_buffer(self, key: Any, dtype: str) -> None:
        if key not in self.segment.stored:
            self.code.buffers[self._slot(key)] = (self._buffer(dtype), dtype)
        else:
            self._slot(key)

    def _buffer(self, dtype: str) -> int:
        free = self.free.get(dtype)
        if free:
            return free.pop()
        self.count += 1
        return self.count

    def _release(self, number: int, atoms: Sequence[Atom]) -> None:
        """Have the buffers of what is not read any more used again."""
        for key in {_key(a) for a in atoms}:
            slot = self.code.slots.get(key)
            if slot in self.code.buffers and self.last.get(key) == number:
                self._free(key)
                del self.last[key]

    def _free(self, key: Any) -> None:
        buffer, dtype = self.code.buffers[self.code.slots[key]]
        self.free.setdefault(dtype, []).append(buffer)


def _key(atom: Atom) -> Any:
    """What an atom is told from others by: a constant by its identity."""
    return atom if isinstance(atom, Variable) else id(atom)


def _getter(slots: Sequence[int]) -> Callable[[Environment], Sequence[Any]]:
    if len(slots) > 1:
        return itemgetter(*slots)
    slot = slots[0]
    return lambda environment: (environment[slot],)


def _forward(equation: Equation) -> Callable[..., Any]:
    primitive, params = equation.primitive, equation.params
    xp = arrays.numpy_namespace()

    def forward(*operands: Any) -> Any:
        return primitive.forward(xp, *xp.promoted(operands, truths=primitive.truths), **params)

    return forward
