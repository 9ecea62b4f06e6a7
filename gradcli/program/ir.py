"""The straight-line program: primitives applied to variables, one equation after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.primitive import Primitive


class Variable:
    """An input, or the result of an equation. `name` is that of the user, where there is one."""

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, shape: Shape, dtype: str, name: str | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name or 'v'}:{self.dtype}{list(self.shape)}"


# The index of an element in a tensor, an integer for each axis.
Key = tuple[int, ...]


def element_name(name: str, key: Key) -> str:
    """The name of an element of a tensor."""
    return f"{name}[{', '.join(map(str, key))}]"


def owner_name(name: str) -> str:
    """The name of the tensor that an element belongs to, from the name of the element; other names are returned as they
    are."""
    return name.partition("[")[0]


class Element(Variable):
    """An input that is the element at `key` of the tensor `base`."""

    __slots__ = ("base", "key")

    def __init__(self, base: Variable, key: Key) -> None:
        super().__init__((), base.dtype, element_name(base.name or "", key))
        self.base = base
        self.key = key


# A variable, or a constant: a number or an array.
Atom = Any


class Equation(NamedTuple):
    """`output` is `primitive` applied to `inputs`."""

    primitive: Primitive
    inputs: tuple[Atom, ...]
    params: Mapping[str, Any]
    output: Variable


def elements(equations: Iterable[Equation]) -> int:
    """The cost of equations in array elements computed, or other work of equal duration."""
    return sum(
        e.primitive.elements([arrays.shape(a) for a in e.inputs], e.params) * e.primitive.time for e in equations
    )


class Program(NamedTuple):
    """A function from `inputs` to `outputs`, valid for inputs for which all elements of all `guards` are true."""

    inputs: tuple[Variable, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    guards: tuple[Variable, ...] = ()


# A program that can be run: maps inputs to outputs; None where a guard does not hold.
Executable = Callable[[Sequence[Any]], Sequence[Any] | None]


class _Several(Protocol):
    """A step that computes several equations."""

    @property
    def equations(self) -> Mapping[Variable, Equation]: ...


def last_uses(steps: Sequence[Equation | _Several], outputs: Iterable[Atom]) -> Mapping[int, Sequence[Variable]]:
    """Map the number of each step to the variables that no later step reads and that are not outputs."""
    last: dict[Variable, int] = {}
    for number, step in enumerate(steps):
        equations = (step,) if isinstance(step, Equation) else step.equations.values()
        for equation in equations:
            last[equation.output] = number
            for atom in equation.inputs:
                if isinstance(atom, Variable):
                    last[atom] = number
    for atom in outputs:
        if isinstance(atom, Variable):
            last.pop(atom, None)
    found: dict[int, list[Variable]] = {}
    for variable, number in last.items():
        found.setdefault(number, []).append(variable)
    return found


class MalformedProgramError(AssertionError):
    """A recording or a pass made an invalid program: a defect of gradcli."""


def check(program: Program) -> Program:
    """Return the program if it is well formed.

    Every variable must be defined once, before its first use, and every constant must be an array. Raises
    MalformedProgramError otherwise.
    """
    known = set(program.inputs)
    if len(known) != len(program.inputs):
        raise MalformedProgramError("an input is there twice")
    for primitive, inputs, _, output in program.equations:
        for atom in inputs:
            if not (atom in known if isinstance(atom, Variable) else arrays.is_array(atom)):
                raise MalformedProgramError(f"'{primitive.name}' reads what was not defined: {atom!r}")
        if output in known:
            raise MalformedProgramError(f"'{primitive.name}' defines what is defined already")
        known.add(output)
    for atom in (*program.outputs, *program.guards):
        if not (atom in known if isinstance(atom, Variable) else arrays.is_array(atom)):
            raise MalformedProgramError(f"an output was not defined: {atom!r}")
    return program
