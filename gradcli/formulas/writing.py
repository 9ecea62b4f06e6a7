"""Programs as text in some language: with as few parentheses as it takes, and names for what is long and used twice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from gradcli import arrays, limits
from gradcli.errors import DifferentiationError, LimitError
from gradcli.formulas.documents import Document, Formulas
from gradcli.formulas.naming import Names, Naming, names_of
from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import without_dead_code

Operand = TypeVar("Operand")

# How tightly an expression holds together, loosest first. A product at TIMES is one of * and / alone,
# of which a minus in front may be taken for that of the first factor.
CONDITIONAL, COMPARE, SUM, PRODUCT, TIMES, UNARY, POWER, ATOM = range(8)

# What is longer, or nested deeper, is named even where it is used once.
_LONGEST = 2_000
_DEEPEST = 60
# An operand that a spelling has several times may take so many characters more.
_REPEATED = 60
# A text in a language without names for parts is at most this long.
_LONGEST_WITHOUT_NAMES = 200_000
# Of an equation, in eighths of steps, and how many characters more take one.
_EQUATION = 24
_CHARACTERS = 64


class Piece(NamedTuple):
    """The text of an expression, how tightly it holds together, how deep brackets nest in it, and whether there is
    nothing but numbers in it, and + - * between them."""

    text: str
    level: int = ATOM
    depth: int = 0
    plain: bool = False

    def at(self, level: int) -> str:
        """The text where an expression that holds together this tightly is asked for."""
        return self.text if self.level >= level else f"({self.text})"


# Gives the text of an equation from those of its operands.
Spelling = Callable[[Equation, Sequence[Piece]], Piece]


# The same for a text that needs a part with a name, which it is given a function to make.
SpellingWithPart = Callable[[Equation, Sequence[Piece], Callable[[str], str]], Piece]


class Truths(NamedTuple):
    """How a language writes the number, 0 or 1, that a truth value is, and whether a number is not 0."""

    as_number: Callable[[Piece], Piece]
    of_number: Callable[[Piece], Piece]


class Language(NamedTuple):
    """How a language writes programs. `functions` are its spellings by the name of the primitive,
    `with_parts` those that name a part, and `others` has those of every other primitive; `document` writes
    derivatives; `parts` says whether a program can give names to its parts, `tensors` whether it has any; `truths` is
    None where truth values are numbers of the language; a line that begins with `comment` says nothing."""

    name: str
    functions: Mapping[str, Spelling]
    number: Callable[[Any], Piece]
    array: Callable[[Any], Piece]
    document: Callable[[Formulas], Document]
    naming: Naming = Naming()
    parts: bool = True
    with_parts: Mapping[str, SpellingWithPart] = {}
    others: Callable[[Primitive], Spelling | None] = lambda _primitive: None
    truths: Truths | None = None
    tensors: bool = True
    comment: str = "#"

    def spelling(self, primitive: Primitive) -> Spelling | None:
        """Its spelling for a primitive, where it has one that names no part."""
        return self.functions.get(primitive.name) or self.others(primitive)

    def writes(self, primitive: Primitive) -> bool:
        """Whether it has a spelling for a primitive."""
        return primitive.name in self.with_parts or self.spelling(primitive) is not None


class LackingError(DifferentiationError):
    """A primitive that a language has no text for."""

    def __init__(self, equation: Equation, language: str) -> None:
        self.primitive = equation.primitive
        called = f"'{self.primitive.called}'"
        if "function" in equation.params:
            called = f"the derivative of '{equation.params['function']}' by its parameters"
        super().__init__(f"{called} cannot be written as {language}", hint="gradcli eval computes it")


class Written(NamedTuple):
    """The named parts of a program, in their order, and its results."""

    parts: Sequence[tuple[str, str]]
    results: Sequence[str]

    @property
    def result(self) -> str:
        """That of a program with one output."""
        (result,) = self.results
        return result


def write(program: Program, language: Language, names: Names | None = None, *, short: int = 0) -> Written:
    """A program in a language, where its inputs have these names.

    What is used once, or has at most `short` characters, stands where it is used; the rest is named.
    Raises LackingError for a function that the language lacks, LimitError for a text that is
    too long.
    """
    program = without_dead_code(program._replace(guards=()))
    return _TextWriter(program, language, names or names_of(program, language.naming), short).write()


class _TextWriter:
    def __init__(self, program: Program, language: Language, names: Names, short: int) -> None:
        self.program = program
        self.language = language
        self.short = short
        atoms = [a for e in program.equations for a in e.inputs] + list(program.outputs)
        self.uses = Counter(a for a in atoms if isinstance(a, Variable))
        self.names = names
        self.pieces = {v: Piece(names.inputs[v.name or ""]) for v in program.inputs if v in self.uses}
        self.parts: list[tuple[str, str]] = []

    def write(self) -> Written:
        left = Counter(self.uses)
        for equation in self.program.equations:
            operands = self._operands(equation)
            piece = self._spelled(equation, operands)
            limits.charge_steps(_EQUATION + len(piece.text) // _CHARACTERS)
            self.pieces[equation.output] = self._placed(equation.output, piece)
            for atom in equation.inputs:
                if isinstance(atom, Variable):
                    left[atom] -= 1
                    if not left[atom]:
                        # It may be long, and is not used any more.
                        del self.pieces[atom]
        return Written(self.parts, [self._atom(output).text for output in self.program.outputs])

    def _operands(self, equation: Equation) -> list[Piece]:
        truths = self.language.truths
        if truths is None:
            return [self._atom(a) for a in equation.inputs]
        return operands_of(equation, self._atom, lambda a: self._number(a, truths), lambda a: self._truth(a, truths))

    def _truth(self, atom: Atom, truths: Truths) -> Piece:
        piece = self._atom(atom)
        return truths.of_number(piece)._replace(depth=piece.depth + 1)

    def _number(self, atom: Atom, truths: Truths) -> Piece:
        if not isinstance(atom, Variable):
            return self._atom(arrays.astype(atom, "float64"))
        piece = self.pieces[atom]
        return truths.as_number(piece)._replace(depth=piece.depth + 1)

    def _atom(self, atom: Atom) -> Piece:
        if isinstance(atom, Variable):
            return self.pieces[atom]
        return self.language.array(atom) if arrays.shape(atom) else self.language.number(atom)

    def _spelled(self, equation: Equation, operands: Sequence[Piece]) -> Piece:
        name, spelling = equation.primitive.name, self.language.spelling(equation.primitive)
        if name == "cast" and self.language.truths and (_conditions(equation) or _is_truth(equation.inputs[0])):
            (piece,) = operands
        elif name in self.language.with_parts:
            piece = self.language.with_parts[name](equation, operands, self._named)
        elif spelling is not None:
            piece = self._without_repeats(spelling, equation, operands)
        else:
            raise LackingError(equation, self.language.name)
        return piece._replace(depth=1 + max((o.depth for o in operands), default=0))

    def _without_repeats(self, spelling: Spelling, equation: Equation, operands: Sequence[Piece]) -> Piece:
        """A piece in which a long operand that the spelling has several times has a name: nested, they would grow
        without end."""
        piece = spelling(equation, operands)
        if not self.language.parts or len(piece.text) <= _REPEATED:
            return piece
        long = [(piece.text.count(o.text) - 1) * len(o.text) > _REPEATED for o in operands]
        if not any(long):
            return piece
        return spelling(equation, [Piece(self._named(o.text)) if is_long else o for o, is_long in zip(operands, long)])

    def _placed(self, variable: Variable, piece: Piece) -> Piece:
        """A piece as it stands where it is used: itself, or its name."""
        if not self.language.parts:
            if len(piece.text) > _LONGEST_WITHOUT_NAMES:
                raise LimitError(
                    f"the formula is too long for {self.language.name}",
                    hint="--to text and --to python give names to its parts",
                )
            return piece
        inside = self.uses[variable] == 1 or len(piece.text) <= self.short
        if inside and len(piece.text) <= _LONGEST and piece.depth <= _DEEPEST:
            return piece
        return Piece(self._named(piece.text), plain=piece.plain)

    def _named(self, text: str) -> str:
        """The name of a new part."""
        name = self.names.numbered(len(self.parts) + 1)
        self.parts.append((name, text))
        return name


def operands_of(
    equation: Equation,
    same: Callable[[Atom], Operand],
    number: Callable[[Atom], Operand],
    truth: Callable[[Atom], Operand],
) -> list[Operand]:
    """The operands of an equation: the `number` of a truth value where it computes with it or has others beside it,
    whether a number is not 0, its `truth`, where that is a condition, and else the `same`."""
    inputs, conditions = equation.inputs, _conditions(equation)
    kept = (
        equation.primitive.truths and equation.params.get("dtype") is None and all(map(_is_truth, inputs[conditions:]))
    )
    found = [same(a) if _is_truth(a) else truth(a) for a in inputs[:conditions]]
    return found + [same(a) if kept or not _is_truth(a) else number(a) for a in inputs[conditions:]]


def _is_truth(atom: Atom) -> bool:
    return arrays.dtype_name(atom) == "bool"


def _conditions(equation: Equation) -> int:
    """How many of its operands, from the first, are asked for whether they are true."""
    name = equation.primitive.name
    if name == "cast":
        return int(equation.params["dtype"] == "bool")
    return (
        len(equation.inputs)
        if name in ("logical_not", "logical_and", "logical_or", "any", "all")
        else int(name == "where")
    )


# --- spellings that languages have in common


# x - tanh(x) loses the digits of a small x: the first terms of its series, of which the next is less than 1e-13 of them
# below 0.01.
TANHSHRINK = "{0}*{0}*{0}*(1.0/3.0 - {0}*{0}*(2.0/15.0 - 17.0/315.0*{0}*{0}))"
# Python's operators; the others compare.
_LEVELS = {"+": SUM, "-": SUM, "*": TIMES, "/": TIMES, "//": PRODUCT, "%": PRODUCT, "@": PRODUCT, "**": POWER}
# What the operands of an operator are asked for.
_SIDES = {COMPARE: (SUM, SUM), SUM: (SUM, PRODUCT), PRODUCT: (PRODUCT, UNARY), POWER: (ATOM, UNARY)}


def with_order(name: str) -> Spelling:
    """A function of its order and an operand. None has an order below 0, as derivatives of expn have."""

    def spelling(equation: Equation, operands: Sequence[Piece]) -> Piece:
        n = equation.params["n"]
        if n < 0:
            raise LackingError(equation, "a formula")
        return function(name, str(n), operands[0].text)

    return spelling


def operators(
    without: str = "", *, form: Callable[[str, int], Spelling] | None = None, **other: str
) -> dict[str, Spelling]:
    """The operators between two operands, `without` those that a language has not, and its `other` symbols by the
    names of the functions; written in a `form` of its own, given the symbol and how tightly it holds together."""
    return {
        name: (form or infix)(other.get(name, symbol), _LEVELS.get(symbol, COMPARE))
        for name, symbol in table.operators().items()
        if name != "negative" and symbol not in without.split()
    }


def infix(symbol: str, level: int) -> Spelling:
    """A binary operator that groups from the left, unless its operands must hold together more tightly."""
    if level == TIMES:
        return times(symbol)
    before, after = _SIDES[level]
    between = f" {symbol} " if level in (COMPARE, SUM) else symbol

    def spelling(_equation: Equation, operands: Sequence[Piece]) -> Piece:
        first, second = operands
        return Piece(f"{first.at(before)}{between}{second.at(after)}", level)

    return spelling


def times(symbol: str) -> Spelling:
    """The operators * and /."""

    def spelling(_equation: Equation, operands: Sequence[Piece]) -> Piece:
        first, second = operands
        level = PRODUCT if first.level == PRODUCT else TIMES
        return Piece(f"{first.at(PRODUCT)}{symbol}{second.at(UNARY)}", level)

    return spelling


def minus(operand: Piece) -> Piece:
    """A minus in front, which in a product is that of the first factor; never two, which C and SQL read otherwise."""
    if operand.level < TIMES or operand.text.startswith("-"):
        return Piece(f"-({operand.text})", UNARY)
    return Piece(f"-{operand.text}", min(operand.level, UNARY))


def function(name: str, *arguments: str) -> Piece:
    return Piece(f"{name}({', '.join(arguments)})")


def template(text: str, level: int = ATOM, *, inner: int = ATOM) -> Spelling:
    """A text with {0}, {1}, … for the operands, in parentheses unless they hold together as `inner`."""
    return lambda _equation, operands: Piece(text.format(*[o.at(inner) for o in operands]), level)


def by_powers_of_two(exact: Spelling, others: Spelling | None, language: str) -> Spelling:
    """`exact` where the second operand is a number that is a power of two, which a quotient by is not rounded, and
    `others` elsewhere; where there are none, the language lacks the function."""

    def spelled(equation: Equation, operands: Sequence[Piece]) -> Piece:
        if _is_power_of_two(equation.inputs[1]):
            return exact(equation, operands)
        if others is None:
            raise LackingError(equation, language)
        return others(equation, operands)

    return spelled


def _is_power_of_two(atom: Atom) -> bool:
    return not isinstance(atom, Variable) and not arrays.shape(atom) and abs(math.frexp(float(atom))[0]) == 0.5


def by_part(part: str, form: str, level: int = ATOM) -> SpellingWithPart:
    """A text with {0} for a part with a name, which is made of the operand."""

    def spelled(_equation: Equation, operands: Sequence[Piece], named: Callable[[str], str]) -> Piece:
        return Piece(form.format(named(part.format(operands[0].at(ATOM)))), level)

    return spelled


def clipped(between_numbers: Spelling, maximum: Spelling, minimum: Spelling) -> Spelling:
    """`between_numbers` where both bounds are numbers, of which the lower one is below; other bounds may be nan, and the
    upper one holds where it is below the lower one."""

    def spelled(equation: Equation, operands: Sequence[Piece]) -> Piece:
        x, lower, upper = operands
        bounds = equation.inputs[1:]
        if not any(isinstance(bound, Variable) for bound in bounds) and float(bounds[0]) <= float(bounds[1]):
            return between_numbers(equation, operands)
        return minimum(equation, [maximum(equation, [x, lower]), upper])

    return spelled


def lacking(language: str) -> Spelling:
    """Of what a language lacks that others of its kind have."""

    def spelled(equation: Equation, _operands: Sequence[Piece]) -> Piece:
        raise LackingError(equation, language)

    return spelled


def calls(
    language: str, name: Callable[[Primitive], str], by_signature: Mapping[str, Callable[[str], Spelling]] = {}
) -> Callable[[Primitive], Spelling | None]:
    """Calls of the primitives that a language has a `name` for: with the operands and nothing else, but for the functions
    whose operands and parameters have the names that are in `by_signature`."""

    def spelling(primitive: Primitive) -> Spelling | None:
        called = name(primitive)
        signature = "" if primitive.internal else " ".join(p.name for p in primitive.parameters)
        if signature in by_signature and called:
            return by_signature[signature](called)
        return plain_call(language, called) if called else None

    return spelling


def plain_call(language: str, name: str) -> Spelling:
    """A call with the operands and nothing else."""

    def spelling(equation: Equation, operands: Sequence[Piece]) -> Piece:
        if equation.params:
            raise LackingError(equation, language)
        return function(name, *(o.text for o in operands))

    return spelling


def listed_array(constant: Any, number: Callable[[Any], str]) -> str:
    """The elements of a constant."""
    limits.charge_steps(limits.STEP * arrays.size(constant))
    return listed(arrays.tolist(constant), number)


def listed(value: Any, number: Callable[[Any], str]) -> str:
    """Nested lists of numbers."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(listed(v, number) for v in value)}]"
    return number(value)
