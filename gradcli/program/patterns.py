"""Patterns of equations, written with the primitives that they match.

A pattern is an ordinary Python function of its parts, such as `lambda x: exp(log(x))`. Called with `Pattern`s it
describes what to match. Its replacement is another function, called with `PatternTerm`s, which add equations to a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from gradcli.arrays.shapes import Shape
from gradcli.kinds.levels import PATTERN
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.ir import Atom, Equation, Variable

Parts = dict[str, Atom]


class Draft(Protocol):
    """The part of `gradcli.program.builder.Builder` that rules read and add to."""

    @property
    def definitions(self) -> Mapping[Variable, Equation]: ...

    def definition(self, atom: Atom) -> Equation | None: ...

    def holds(self, predicate: Primitive, inputs: Sequence[Atom]) -> bool: ...

    def apply(
        self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Atom: ...

    def elementwise(self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any]) -> Atom: ...


class Pattern(Operators):
    """A named part, or a primitive applied to patterns and numbers."""

    __slots__ = ("name", "operands", "params", "primitive")
    level = PATTERN

    def __init__(
        self,
        name: str | None,
        primitive: Primitive | None = None,
        operands: Sequence[Any] = (),
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.primitive = primitive
        self.operands = operands
        self.params = params or {}

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Pattern:
        """The pattern of a primitive applied to operands; operators and primitives call this."""
        return Pattern(None, primitive, operands, params)


class PatternTerm(Operators):
    """An atom of a program under construction; applying a primitive to terms adds an equation."""

    __slots__ = ("atom", "draft")
    level = PATTERN

    def __init__(self, draft: Draft, atom: Atom) -> None:
        self.draft = draft
        self.atom = atom

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> PatternTerm:
        """Add the equation of a primitive applied to terms and numbers, and return its result; operators and primitives
        call this."""
        draft = next(o.draft for o in operands if isinstance(o, PatternTerm))
        atoms = [o.atom if isinstance(o, PatternTerm) else o for o in operands]
        return PatternTerm(draft, draft.elementwise(primitive, atoms, params))


class Template(NamedTuple):
    """A pattern that is ready to be matched."""

    root: Pattern

    @property
    def primitive(self) -> Primitive:
        assert self.root.primitive is not None
        return self.root.primitive


def template(pattern: Callable[..., Any]) -> Template:
    return Template(pattern(**{name: Pattern(name) for name in parts_of(pattern)}))


def parts_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parts that a pattern, a replacement or a condition refers to."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def match(
    sought: Template, inputs: Sequence[Atom], params: Mapping[str, Any], definitions: Mapping[Variable, Equation]
) -> Parts | None:
    """Return the atoms of the parts where the pattern's primitive is applied to `inputs`; None where the pattern does
    not match."""
    if sought.root.params and dict(params) != sought.root.params:
        return None
    return next(_operands(sought.root, inputs, {}, definitions), None)


def _operands(
    pattern: Pattern, inputs: Sequence[Atom], parts: Parts, definitions: Mapping[Variable, Equation]
) -> Iterator[Parts]:
    for order in _orders(pattern, inputs):
        if all(_may_fit(p, a, definitions) for p, a in zip(pattern.operands, order)):
            yield from _all(list(zip(pattern.operands, order)), parts, definitions)


def _orders(pattern: Pattern, inputs: Sequence[Any]) -> Iterator[Sequence[Any]]:
    yield inputs
    if pattern.primitive is not None and pattern.primitive.commutative:
        yield inputs[::-1]


# Names of parts that match only constants.
CONSTANTS = frozenset({"c", "d"})


# The property of an atom that decides which patterns may match it: its primitive, its value with sign, or True for
# another constant; None for anything else.
Sort = Primitive | tuple[float, float] | bool | None


class Sorts:
    """The sorts of atoms, as far as the operands of some templates distinguish them."""

    def __init__(self, templates: Sequence[Template]) -> None:
        operands = [o for t in templates for o in t.root.operands]
        self._primitives = {o.primitive for o in operands if isinstance(o, Pattern)}
        self._numbers = {_signed(o) for o in operands if not isinstance(o, Pattern)}

    def of(self, atom: Atom, definitions: Mapping[Variable, Equation]) -> Sort:
        """The sort of an atom: its primitive, its number with its sign, True for another constant, or None."""
        if isinstance(atom, Variable):
            equation = definitions.get(atom)
            return equation.primitive if equation is not None and equation.primitive in self._primitives else None
        number = program_constants.number(atom)
        signed = None if number is None else _signed(number)
        return signed if signed in self._numbers else True


def _signed(number: float) -> tuple[float, float]:
    return float(number), math.copysign(1.0, number)


def may_match(sought: Template, sorts: Sequence[Sort]) -> bool:
    """Return whether a template may match operands of these sorts."""
    return any(all(map(_begins, sought.root.operands, order)) for order in _orders(sought.root, sorts))


def _begins(pattern: Any, sort: Sort) -> bool:
    if not isinstance(pattern, Pattern):
        return sort == _signed(pattern)
    if pattern.primitive is not None:
        return sort is pattern.primitive
    return pattern.name not in CONSTANTS or sort is True or isinstance(sort, tuple)


def _may_fit(pattern: Any, atom: Atom, definitions: Mapping[Variable, Equation]) -> bool:
    """Return whether the root of a pattern matches: a cheap test, which most patterns fail."""
    if not isinstance(pattern, Pattern):
        return program_constants.is_number(atom, pattern)
    if pattern.primitive is None:
        return pattern.name not in CONSTANTS or (
            program_constants.is_constant(atom) and program_constants.keeps_signs(atom)
        )
    if not isinstance(atom, Variable):
        return False
    equation = definitions.get(atom)
    return equation is not None and equation.primitive is pattern.primitive and equation.params == pattern.params


def _all(pairs: Sequence[tuple[Any, Atom]], parts: Parts, definitions: Mapping[Variable, Equation]) -> Iterator[Parts]:
    """Yield the assignments of parts for which every pattern matches its atom."""
    if not pairs:
        yield parts
        return
    (pattern, atom), *others = pairs
    if not isinstance(pattern, Pattern):
        yield from _all(others, parts, definitions)
    elif pattern.name is not None:
        known = parts.get(pattern.name)
        if known is None or _same(known, atom):
            yield from _all(others, parts | {pattern.name: atom}, definitions)
    elif _may_fit(pattern, atom, definitions):
        for found in _operands(pattern, definitions[atom].inputs, parts, definitions):
            yield from _all(others, found, definitions)


def _same(first: Atom, second: Atom) -> bool:
    if isinstance(first, Variable) or isinstance(second, Variable):
        return first is second
    return program_constants.key(first) == program_constants.key(second)
