"""Complex inputs of a model as pairs of real ones: their parts are inputs of the program in their place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import Span
from gradcli.language.names import scope
from gradcli.language.syntax import tree

_BEFORE = Span(0, 0)


def part_names(name: str) -> tuple[str, str]:
    """The names of the real and the imaginary part of an input; the brackets keep them apart from other names."""
    return f"real({name})", f"imag({name})"


def of_parts(program: tree.Module, names: Collection[str]) -> tree.Module:
    """A program that begins by making each input among `names` of its parts."""
    read = [name for name in scope.free_names(program) if name in names]
    return tree.Module(program.span, program.source, (*map(_assignment, read), *program.body))


def _assignment(name: str) -> tree.Assign:
    parts = tuple(tree.Name(_BEFORE, part, "") for part in part_names(name))
    made = tree.Call(_BEFORE, "complex", _BEFORE, None, parts, (), "")
    return tree.Assign(_BEFORE, (tree.BoundName(_BEFORE, name),), made)


def names_in_parts(given: Sequence[str], names: Collection[str]) -> list[str]:
    """Names, with the parts of those among `names` in their place."""
    return [part for name in given for part in (part_names(name) if name in names else (name,))]


def in_parts(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Values by name, with the parts of those among `names` in their place."""
    xp = arrays.numpy_namespace()
    found: dict[str, Any] = {}
    for name, value in values.items():
        parts = (xp.real(value), xp.imag(value)) if name in names else (value,)
        found |= zip(names_in_parts([name], names), parts)
    return found


def joined(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Values by name, with those among `names` made of their parts."""
    parts = {part: name for name in names for part in part_names(name)}
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = parts.get(key, key)
        if name not in found:
            found[name] = value if name == key else _number(value, values[part_names(name)[1]])
    return found


def _number(real: Any, imag: Any) -> Any:
    return None if real is None or imag is None else real + 1j * imag
