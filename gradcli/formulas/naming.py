"""What the names of a program are called in a language: no two of them alike, and none as something that the language has."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from gradcli.program.ir import Program


def with_underscores(name: str, taken: Callable[[str], bool] = lambda _name: False) -> Iterator[str]:
    """A name, and more and more underscores behind it; those that are not `taken` by the language."""
    return (spelled for n in itertools.count() if not taken(spelled := name + n * "_"))


class Naming(NamedTuple):
    """How a language writes names. `spellings` are what one may be called, the best first: valid in the
    language, no words of it, and as many as it takes; two with the same `key` are one name to the language."""

    spellings: Callable[[str], Iterable[str]] = with_underscores
    key: Callable[[str], str] = str


class Names:
    """The names in a text; `inputs` are those of a program's inputs, by what the user calls them."""

    def __init__(self, naming: Naming, inputs: Collection[str] = ()) -> None:
        self._naming = naming
        self._taken: set[str] = set()
        # Whoever can keep his name does.
        unchanged = {name for name in inputs if next(iter(naming.spellings(name))) == name}
        found = {name: self.new(name) for name in sorted(inputs, key=lambda name: name not in unchanged)}
        self.inputs = {name: found[name] for name in inputs}

    def new(self, name: str) -> str:
        """What something is called that is to be called `name`."""
        spelled = next(filter(self._is_free, self._naming.spellings(name)))
        self._taken.add(self._naming.key(spelled))
        return spelled

    def numbered(self, stem: str, number: int) -> str:
        """The first free name of those that are `stem` and a number, from this one on."""
        name = next(name for n in itertools.count(number) if self._is_free(name := f"{stem}{n}"))
        self._taken.add(self._naming.key(name))
        return name

    def _is_free(self, name: str) -> bool:
        return self._naming.key(name) not in self._taken

    def inside(self) -> Names:
        """The names of a function in this text, which may have others that nobody outside sees."""
        names = Names(self._naming)
        names._taken |= self._taken
        names.inputs = self.inputs
        return names


def names_of(program: Program, naming: Naming) -> Names:
    """The names in a text about a program."""
    return Names(naming, [variable.name or "" for variable in program.inputs])
