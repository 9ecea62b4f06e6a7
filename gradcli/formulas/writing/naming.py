"""Chooses distinct names for a program's variables that are valid and unreserved in the output language."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from gradcli.arrays.shapes import Shape
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Element, Key, Program, Variable, element_name
from gradcli.program.passes import needed_variables


def with_underscores(name: str, taken: Callable[[str], bool] = lambda _name: False) -> Iterator[str]:
    """The name followed by 0, 1, 2, … underscores, without those that the language has `taken`."""
    return (spelled for n in itertools.count() if not taken(spelled := name + n * "_"))


def in_brackets(name: str, key: Key) -> Iterator[str]:
    """The name of an element of a tensor in Python's syntax."""
    yield element_name(name, key)


def elements_of_rows(name: str, key: Key) -> Iterator[str]:
    """The name of an element of an array of arrays, as in C."""
    yield name + "".join(f"[{i}]" for i in key)


# Characters to escape: those outside ASCII, and the letters u and U where they would read as an escape.
_ESCAPE = re.compile("u(?=[0-9a-f]{4})|U(?=[0-9a-f]{8})|[^\x00-\x7f]")


def in_ascii(name: str) -> str:
    """A name with its characters outside ASCII as u03c3 or U0001d7d8; different names stay different."""
    return _ESCAPE.sub(_escaped, name)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"u{code:04x}" if code < 0x10000 else f"U{code:08x}"


class Naming(NamedTuple):
    """The rules by which a language writes names.

    `spellings` yields candidate spellings of a name, best first, without end: all valid in the language and not
    reserved. Two spellings with the same `key` are the same name to the language. `elements` yields candidate spellings
    of the element at a key of the tensor with a given spelling."""

    spellings: Callable[[str], Iterable[str]] = with_underscores
    key: Callable[[str], str] = str
    elements: Callable[[str, Key], Iterable[str]] = in_brackets


class Names:
    """The assignment of spellings to names in a text: `inputs` by the names of a program's inputs, `owners` the
    spelling of the tensor that each input is an element of, and `parameters` the shapes by spelling."""

    def __init__(self, naming: Naming, inputs: Sequence[Variable] = ()) -> None:
        self._naming = naming
        self._taken: set[str] = set()
        shapes: dict[str, Shape] = {}
        for variable in inputs:
            name = _owner(variable).name or ""
            shapes[name] = _owner(variable).shape or _enclosing_shape(variable, shapes.get(name, ()))
        # Names whose spelling is unchanged come first, so that they keep it.
        unchanged = {name for name in shapes if next(iter(naming.spellings(name))) == name}
        found = {name: self.new(name) for name in sorted(shapes, key=lambda name: name not in unchanged)}
        self.parameters = {found[name]: shape for name, shape in shapes.items()}
        self.owners = {variable.name or "": found[_owner(variable).name or ""] for variable in inputs}
        self.inputs = {
            name: self._first(naming.elements(owner, variable.key)) if isinstance(variable, Element) else owner
            for variable, (name, owner) in zip(inputs, self.owners.items(), strict=True)
        }

    def new(self, name: str) -> str:
        """A new spelling for `name` that is not taken yet."""
        return self._first(self._naming.spellings(name))

    def _first(self, spellings: Iterable[str]) -> str:
        spelled = next(filter(self._is_free, spellings))
        self._taken.add(self._naming.key(spelled))
        return spelled

    def new_part_name(self, number: int) -> str:
        """The first free name of the form v<n>, from n = `number`."""
        name = next(name for n in itertools.count(number) if self._is_free(name := f"v{n}"))
        self._taken.add(self._naming.key(name))
        return name

    def _is_free(self, name: str) -> bool:
        return self._naming.key(name) not in self._taken

    def read_by(self, program: Program) -> Sequence[str]:
        """The parameters that the outputs of a program depend on."""
        return [*dict.fromkeys(self.owners[name] for name in inputs_read_by(program))]

    def local_scope(self) -> Names:
        """The names inside a function of this text: the same inputs, and room for local names."""
        names = Names(self._naming)
        names._taken |= self._taken
        names.inputs, names.owners, names.parameters = self.inputs, self.owners, self.parameters
        return names


def inputs_read_by(program: Program) -> Sequence[str]:
    """The original names of the inputs that the outputs of a program depend on."""
    needed = needed_variables(program.equations, program.outputs)
    return [v.name or "" for v in program.inputs if v in needed]


def names_of(program: Program, naming: Naming) -> Names:
    """The names for a text written from a program."""
    return Names(naming, program.inputs)


def _owner(variable: Variable) -> Variable:
    return variable.base if isinstance(variable, Element) else variable


def _enclosing_shape(variable: Variable, shape: Shape) -> Shape:
    """The smallest shape that contains the elements seen so far and this one."""
    if not isinstance(variable, Element):
        return ()
    return tuple(max(size, i + 1) for size, i in itertools.zip_longest(shape, variable.key, fillvalue=0))
