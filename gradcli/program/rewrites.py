"""The table of rewrites of a program, each with the reason why it is valid.

`EXACT` rewrites keep every bit of every result, including nan, infinities and the sign of zero, for inputs that satisfy
the program's guards; the payload of a nan may change. `FAST` rewrites hold for real numbers, and may change rounding,
or nan and infinities where numbers overflow.

A pattern is an ordinary Python function of its parts, such as `lambda x: exp(log(x))`. Called with `Pattern`s it
describes what to match. Its replacement is another function, called with `PatternTerm`s, which add equations to a
program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.kinds.levels import PATTERN
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.conversions import broadcast_to, cast, permute, reshape
from gradcli.primitives.entries.arithmetic import identity, negative, ones_like, sign, zeros_like
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    not_equal,
    where,
)
from gradcli.primitives.entries.complex_parts import from_parts, imaginary_part, real_part
from gradcli.primitives.entries.exponential import relu
from gradcli.primitives.entries.powers import general_power, whole_power
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


# Cost of a replacement in eighths of steps: with exact rules, and with all rules, since more rules are tried.
_REPLACED, _REPLACED_FAST = 16, 96

EXACT, FAST = "exact", "fast"


class Rewrite(NamedTuple):
    """`pattern` may be computed as `replacement`, where a guard implies `given`.

    A part named c or d matches a constant, and what is computed from such parts is folded to a constant. Every other
    part matches anything.
    """

    pattern: Callable[..., Any]
    replacement: Callable[..., Any]
    tag: str
    why: str
    given: Callable[..., Any] | None = None


class MovingRewrite(NamedTuple):
    """`function(draft, inputs, params, shape)` returns a cheaper form of `primitive`, or None.

    It serves primitives that move elements, which patterns cannot describe.
    """

    primitive: Primitive
    function: Callable[..., Atom | None]
    tag: str
    why: str


def _simpler_permute(draft: Draft, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape) -> Atom | None:
    axes = params["axes"]
    if axes == tuple(range(len(axes))):
        return inputs[0]
    sizes = arrays.shape(inputs[0])
    if [a for a in axes if sizes[a] != 1] == [a for a in range(len(axes)) if sizes[a] != 1]:
        return draft.apply(reshape, inputs, {"shape": shape}, shape, inputs[0].dtype)
    inner = draft.definition(inputs[0])
    if inner is None or inner.primitive is not permute:
        return None
    both = {"axes": tuple(inner.params["axes"][a] for a in axes)}
    return draft.apply(permute, inner.inputs, both, shape, inputs[0].dtype)


def _from_the_first(primitive: Primitive) -> Callable[..., Atom | None]:
    """Two applications of `primitive` are replaced by the last one; one without effect is removed."""

    def rule(draft: Draft, inputs: Sequence[Atom], _params: Mapping[str, Any], shape: Shape) -> Atom | None:
        if arrays.shape(inputs[0]) == shape:
            return inputs[0]
        inner = draft.definition(inputs[0])
        if inner is None or inner.primitive is not primitive:
            return None
        return draft.apply(primitive, inner.inputs, {"shape": shape}, shape, inputs[0].dtype)

    return rule


def _same_dtype(_draft: Draft, inputs: Sequence[Atom], params: Mapping[str, Any], _shape: Shape) -> Atom | None:
    return inputs[0] if arrays.dtype_name(inputs[0]) == params["dtype"] else None


# The first rule that matches is applied.
TABLE: tuple[Rewrite | MovingRewrite, ...] = (
    Rewrite(lambda x: identity(x), lambda x: x, EXACT, "the identity"),
    Rewrite(lambda x: zeros_like(x), lambda x: 0.0, EXACT, "only the shape of x matters"),
    Rewrite(lambda x: ones_like(x), lambda x: 1.0, EXACT, "only the shape of x matters"),
    MovingRewrite(cast, _same_dtype, EXACT, "x has this dtype"),
    # Arithmetic.
    Rewrite(lambda x: x * 1.0, lambda x: x, EXACT, "1 is neutral"),
    Rewrite(lambda x: x / 1.0, lambda x: x, EXACT, "1 is neutral"),
    Rewrite(lambda x: x - 0.0, lambda x: x, EXACT, "0 is neutral, and -0.0 - 0.0 is -0.0"),
    Rewrite(lambda x: x + -0.0, lambda x: x, EXACT, "-0.0 is neutral"),
    Rewrite(lambda x: x * -1.0, lambda x: -x, EXACT, "only the sign changes"),
    Rewrite(lambda x: x / -1.0, lambda x: -x, EXACT, "only the sign changes"),
    Rewrite(lambda x: negative(negative(x)), lambda x: x, EXACT, "only the sign changes"),
    Rewrite(lambda x, y: x + (-y), lambda x, y: x - y, EXACT, "the definition of subtraction"),
    Rewrite(lambda x, y: x - (-y), lambda x, y: x + y, EXACT, "the definition of subtraction"),
    Rewrite(lambda x: (-x) - x, lambda x: -2.0 * x, EXACT, "doubling is exact"),
    Rewrite(lambda c, x: c * (-x), lambda c, x: (-c) * x, EXACT, "rounding is the same for both signs"),
    Rewrite(lambda x, y: x * (-y), lambda x, y: -(x * y), EXACT, "rounding is the same for both signs"),
    Rewrite(lambda x, y: (-x) / y, lambda x, y: -(x / y), EXACT, "rounding is the same for both signs"),
    Rewrite(lambda x, y: x / (-y), lambda x, y: -(x / y), EXACT, "rounding is the same for both signs"),
    Rewrite(lambda c, x: -(c * x), lambda c, x: (-c) * x, EXACT, "rounding is the same for both signs"),
    Rewrite(lambda c, x: -(c / x), lambda c, x: (-c) / x, EXACT, "rounding is the same for both signs"),
    Rewrite(lambda x: abs(-x), lambda x: abs(x), EXACT, "only the sign changes"),
    Rewrite(lambda x: abs(abs(x)), lambda x: abs(x), EXACT, "a magnitude is not negative"),
    Rewrite(lambda x: maximum(x, x), lambda x: x, EXACT, "both are the same"),
    Rewrite(lambda x: minimum(x, x), lambda x: x, EXACT, "both are the same"),
    # Powers.
    Rewrite(lambda x: whole_power(x, n=0.0), lambda x: 1.0, EXACT, "x**0 is 1, also for nan"),
    Rewrite(lambda x: whole_power(x, n=1.0), lambda x: x, EXACT, "x**1 is x"),
    Rewrite(lambda x: whole_power(x, n=2.0), lambda x: x * x, EXACT, "this is how a square is computed"),
    Rewrite(lambda x: general_power(x, 0.0), lambda x: 1.0, EXACT, "x**0 is 1, also for nan"),
    Rewrite(lambda x: general_power(x, 1.0), lambda x: x, EXACT, "x**1 is x"),
    Rewrite(lambda x: general_power(1.0, x), lambda x: 1.0, EXACT, "1**x is 1, also for nan"),
    # Choices.
    Rewrite(lambda x, y: where(True, x, y), lambda x, y: x, EXACT, "the condition is known"),
    Rewrite(lambda x, y: where(False, x, y), lambda x, y: y, EXACT, "the condition is known"),
    Rewrite(lambda p, x: where(p, x, x), lambda p, x: x, EXACT, "both are the same"),
    Rewrite(lambda p, x, y: where(logical_not(p), x, y), lambda p, x, y: where(p, y, x), EXACT, "what 'not' means"),
    Rewrite(
        lambda p, x, y, z: where(p, where(p, x, y), z), lambda p, x, y, z: where(p, x, z), EXACT, "p is known there"
    ),
    Rewrite(
        lambda p, x, y, z: where(p, x, where(p, y, z)), lambda p, x, y, z: where(p, x, z), EXACT, "p is known there"
    ),
    Rewrite(lambda p: logical_not(logical_not(p)), lambda p: p, EXACT, "what 'not' means"),
    Rewrite(lambda p: logical_and(p, True), lambda p: p, EXACT, "what 'and' means"),
    Rewrite(lambda p: logical_and(p, False), lambda p: False, EXACT, "what 'and' means"),
    Rewrite(lambda p: logical_and(p, p), lambda p: p, EXACT, "what 'and' means"),
    Rewrite(lambda p: logical_or(p, logical_not(p)), lambda p: True, EXACT, "what 'or' means"),
    Rewrite(lambda p: logical_or(p, True), lambda p: True, EXACT, "what 'or' means"),
    Rewrite(lambda p: logical_or(p, False), lambda p: p, EXACT, "what 'or' means"),
    Rewrite(lambda p: logical_or(p, p), lambda p: p, EXACT, "what 'or' means"),
    # Implied by guards.
    Rewrite(lambda x: abs(x), lambda x: x, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: sign(x), lambda x: 1.0, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: relu(x), lambda x: x, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: maximum(x, 0.0), lambda x: x, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: equal(x, 0.0), lambda x: False, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: not_equal(x, 0.0), lambda x: True, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: greater_equal(x, 0.0), lambda x: True, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: less(x, 0.0), lambda x: False, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: less_equal(x, 0.0), lambda x: False, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: isnan(x), lambda x: False, EXACT, "x is positive", lambda x: greater(x, 0.0)),
    Rewrite(lambda x: isnan(x), lambda x: False, EXACT, "x is finite", lambda x: isfinite(x)),
    Rewrite(lambda x: not_equal(x, x), lambda x: False, EXACT, "x is finite", lambda x: isfinite(x)),
    # Parts of complex numbers.
    Rewrite(lambda x, y: real_part(from_parts(x, y)), lambda x, y: x, EXACT, "a number is made of its parts"),
    Rewrite(lambda x, y: imaginary_part(from_parts(x, y)), lambda x, y: y, EXACT, "a number is made of its parts"),
    # Elements that are moved.
    MovingRewrite(reshape, _from_the_first(reshape), EXACT, "only the last shape counts"),
    MovingRewrite(broadcast_to, _from_the_first(broadcast_to), EXACT, "only the last shape counts"),
    MovingRewrite(
        permute, _simpler_permute, EXACT, "one order of axes does for two; an axis of size 1 can be anywhere"
    ),
    # Rules for real numbers only: of many candidates, those that were seen to shorten long formulas.
    Rewrite(lambda x: x + 0.0, lambda x: x, FAST, "-0.0 + 0.0 is 0.0"),
    Rewrite(lambda x: x * 0.0, lambda x: 0.0, FAST, "x is finite"),
    Rewrite(lambda x, y: x * (1.0 / y), lambda x, y: x / y, FAST, "the definition of division"),
    Rewrite(lambda c, d, x: c * (d * x), lambda c, d, x: (c * d) * x, FAST, "multiplication is associative"),
    Rewrite(lambda c, d, x: (c * x) / d, lambda c, d, x: (c / d) * x, FAST, "multiplication is associative"),
    Rewrite(lambda c, d, x: c * (x / d), lambda c, d, x: (c / d) * x, FAST, "multiplication is associative"),
    Rewrite(lambda x, y, z: x * y + x * z, lambda x, y, z: x * (y + z), FAST, "multiplication is distributive"),
)


class _Prepared(NamedTuple):
    template: Template
    replacement: Callable[..., Any]
    replacement_parts: tuple[str, ...]
    given: Template | None
    constants: tuple[str, ...]


class Rewrites:
    """The rules of the table with some of its tags, by the primitive at the root of their pattern."""

    def __init__(self, tags: Sequence[str]) -> None:
        self._rules: dict[Primitive, list[_Prepared | MovingRewrite]] = {}
        for rule in TABLE:
            if rule.tag not in tags:
                continue
            if isinstance(rule, MovingRewrite):
                self._rules.setdefault(rule.primitive, []).append(rule)
            else:
                prepared = _prepared(rule)
                self._rules.setdefault(prepared.template.primitive, []).append(prepared)
        self._sorts = {
            primitive: Sorts([rule.template for rule in rules if isinstance(rule, _Prepared)])
            for primitive, rules in self._rules.items()
        }
        self._cost = _REPLACED_FAST if FAST in tags else _REPLACED
        # The rules that may match, by primitive and sorts of the operands: for most operands there are none.
        self._fitting: dict[tuple[Primitive, tuple[Sort, ...]], Sequence[_Prepared | MovingRewrite]] = {}

    def _that_may_fit(
        self, draft: Draft, primitive: Primitive, inputs: Sequence[Atom]
    ) -> Sequence[_Prepared | MovingRewrite]:
        known = self._sorts.get(primitive)
        if known is None:
            return ()
        definitions = draft.definitions
        sorts = tuple([known.of(atom, definitions) for atom in inputs])
        found = self._fitting.get((primitive, sorts))
        if found is None:
            rules = self._rules[primitive]
            found = [r for r in rules if isinstance(r, MovingRewrite) or may_match(r.template, sorts)]
            self._fitting[primitive, sorts] = found
        return found

    def rewritten(
        self,
        draft: Draft,
        primitive: Primitive,
        inputs: Sequence[Atom],
        params: Mapping[str, Any],
        shape: Shape,
        _dtype: str,
    ) -> Atom | None:
        """Return the replacement of `primitive` applied to `inputs`; None where no rule matches."""
        for rule in self._that_may_fit(draft, primitive, inputs):
            if isinstance(rule, MovingRewrite):
                found = rule.function(draft, inputs, params, shape)
                if found is not None:
                    return found
                continue
            parts = match(rule.template, inputs, params, draft.definitions)
            if (
                parts is not None
                and _is_small(rule, parts)
                and (rule.given is None or _holds(draft, rule.given, parts))
            ):
                limits.charge_steps(self._cost)
                return _replaced(draft, rule, parts)
        return None


@cache
def rewrites(*tags: str) -> Rewrites:
    return Rewrites(tags)


def _prepared(rule: Rewrite) -> _Prepared:
    given = None if rule.given is None else template(rule.given)
    fixed = tuple(name for name in parts_of(rule.pattern) if name in CONSTANTS)
    return _Prepared(template(rule.pattern), rule.replacement, parts_of(rule.replacement), given, fixed)


def _is_small(rule: _Prepared, parts: Parts) -> bool:
    """Return whether the result of a rule's constants is small enough to be folded. Otherwise the rules that move a
    sign out of a product and into its constant would undo one another forever."""
    shapes = [arrays.shape(parts[name]) for name in rule.constants]
    return not any(shapes) or program_constants.may_be_folded(broadcast(shapes))


def _holds(draft: Draft, given: Template, parts: Parts) -> bool:
    atoms = [getattr(o, "name", None) for o in given.root.operands]
    inputs = [o if name is None else parts[name] for o, name in zip(given.root.operands, atoms)]
    return draft.holds(given.primitive, inputs)


def _replaced(draft: Draft, rule: _Prepared, parts: Parts) -> Atom:
    result = rule.replacement(**{name: PatternTerm(draft, parts[name]) for name in rule.replacement_parts})
    return result.atom if isinstance(result, PatternTerm) else result
