"""The straight-line program: primitives applied to variables, one equation after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.primitives.primitive import Primitive


class Variable:
    """What an input or an equation gives. `name` is what a user calls it, where there is such a name."""

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, shape: Shape, dtype: str, name: str | None = None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name or 'v'}:{self.dtype}{list(self.shape)}"


# The place of an element in a tensor, a number for each axis.
Key = tuple[int, ...]


def element_name(name: str, key: Key) -> str:
    """What an element of a tensor is called."""
    return f"{name}[{', '.join(map(str, key))}]"


def owner_name(name: str) -> str:
    """What the tensor of an element is called by the name of the element; of another input its name."""
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
    """How many array elements equations compute, or the work that takes as long."""
    return sum(
        e.primitive.elements([arrays.shape(a) for a in e.inputs], e.params) * e.primitive.time for e in equations
    )


class Program(NamedTuple):
    """`outputs` of `inputs`. It is good for inputs for which every element of each of `guards` is true."""

    inputs: tuple[Variable, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    guards: tuple[Variable, ...] = ()


# A program that can be run: from inputs to outputs; None where a guard does not hold.
Executable = Callable[[Sequence[Any]], Sequence[Any] | None]
