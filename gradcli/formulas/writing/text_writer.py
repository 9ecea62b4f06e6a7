"""Writes programs as text in any output language, with minimal parentheses and names for long repeated parts."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from gradcli import arrays, limits
from gradcli.errors import DifferentiationError, LimitError
from gradcli.formulas.writing.documents import Document, Formulas
from gradcli.formulas.writing.naming import Names, Naming, names_of
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import without_dead_code

Operand = TypeVar("Operand")

# Precedence levels, loosest first. A product at TIMES consists of * and / only, so that a minus in front of it may be
# read as the sign of its first factor.
CONDITIONAL, COMPARE, SUM, PRODUCT, TIMES, UNARY, POWER, ATOM = range(8)

# A text with more characters, or with deeper nesting, gets a name even if it is used once.
_LONGEST = 2_000
_DEEPEST = 60
# A repeated long operand of a spelling may add at most this many characters before it gets a name.
_REPEATED = 60
# The maximum length of a text in a language without names for parts.
_LONGEST_WITHOUT_NAMES = 200_000
# Cost of one equation, in eighths of a step, and the number of characters that cost one eighth more.
_EQUATION = 24
_CHARACTERS = 64
# A length up to which no part of a body gets a name.
_INLINE = 1_000_000


class Fragment(NamedTuple):
    """The text of an expression, its precedence level, its nesting depth, and whether it consists only of numbers
    joined by + - *."""

    text: str
    level: int = ATOM
    depth: int = 0
    plain: bool = False

    def at(self, level: int) -> str:
        """The text where an operand of precedence `level` is expected, in parentheses if needed."""
        return self.text if self.level >= level else f"({self.text})"


# Makes the text of an equation from those of its operands.
Spelling = Callable[[Equation, Sequence[Fragment]], Fragment]


# The same with a function that gives a text a name, for spellings that use a part several times.
SpellingWithPart = Callable[[Equation, Sequence[Fragment], Callable[[str], str]], Fragment]


class BooleanConversion(NamedTuple):
    """The conversions of a language from a truth value to the number 0 or 1, and from a number to a condition."""

    as_number: Callable[[Fragment], Fragment]
    of_number: Callable[[Fragment], Fragment]


class Language(NamedTuple):
    """The description of a language in which programs are written.

    `functions` has the spellings by the name of the primitive, `with_parts` those that name a part, and `others` finds
    those of all other primitives; `document` writes derivatives. `parts` says whether parts of a program can be named,
    `tensors` whether there are tensors; `truths` is None where truth values are numbers; `comment` begins a comment
    line; `imaginary_unit` is the text of 1j, None where there are no complex numbers."""

    name: str
    functions: Mapping[str, Spelling]
    number: Callable[[Any], Fragment]
    array: Callable[[Any], Fragment]
    document: Callable[[Formulas], Document]
    naming: Naming = Naming()
    parts: bool = True
    with_parts: Mapping[str, SpellingWithPart] = {}
    others: Callable[[Primitive], Spelling | None] = lambda _primitive: None
    truths: BooleanConversion | None = None
    tensors: bool = True
    comment: str = "#"
    imaginary_unit: str | None = None

    def spelling(self, primitive: Primitive) -> Spelling | None:
        """The spelling of a primitive, if it has one without named parts."""
        return self.functions.get(primitive.name) or self.others(primitive)

    def check_complex(self) -> str:
        """The text of 1j. Raises DifferentiationError where the language has no complex numbers."""
        if self.imaginary_unit is None:
            raise DifferentiationError(
                f"complex numbers cannot be written as {self.name}", hint="--to text, latex, python or c can"
            )
        return self.imaginary_unit

    def writes(self, primitive: Primitive) -> bool:
        """Return whether the language has a spelling for a primitive."""
        return primitive.name in self.with_parts or self.spelling(primitive) is not None


class UnsupportedPrimitiveError(DifferentiationError):
    """Raised for a primitive that a language cannot write."""

    def __init__(self, equation: Equation, language: str) -> None:
        self.primitive = equation.primitive
        called = f"'{self.primitive.called}'"
        if "function" in equation.params:
            called = f"the derivative of '{equation.params['function']}' by its parameters"
        super().__init__(f"{called} cannot be written as {language}", hint="gradcli eval computes it")


class Written(NamedTuple):
    """The named parts of a program in order, the texts of its outputs, and the variables of its parts by name."""

    parts: Sequence[tuple[str, str]]
    results: Sequence[str]
    variables: Mapping[str, Variable]

    @property
    def result(self) -> str:
        """The text of the output of a program with one output."""
        (result,) = self.results
        return result


def write(
    program: Program,
    language: Language,
    names: Names | None = None,
    *,
    short: int = 0,
    levels: Mapping[str, int] | None = None,
) -> Written:
    """A program in a language, whose inputs have the given names; `levels` are the precedence levels of names that are
    expressions.

    An expression that is used once, or has at most `short` characters, is written where it is used; others are named.
    Raises UnsupportedPrimitiveError for a function that the language lacks, and LimitError for a text that is too long."""
    program = without_dead_code(program._replace(guards=()))
    return _TextWriter(program, language, names or names_of(program, language.naming), short, levels or {}).write()


class _TextWriter:
    def __init__(
        self, program: Program, language: Language, names: Names, short: int, levels: Mapping[str, int]
    ) -> None:
        self.program = program
        self.language = language
        self.short = short
        atoms = [a for e in program.equations for a in e.inputs] + list(program.outputs)
        self.uses = Counter(a for a in atoms if isinstance(a, Variable))
        self.names = names
        self.pieces = {
            v: Fragment(names.inputs[v.name or ""], levels.get(v.name or "", ATOM))
            for v in program.inputs
            if v in self.uses
        }
        self.parts: list[tuple[str, str]] = []
        self.variables: dict[str, Variable] = {}

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
                        # Free the text, which may be long.
                        del self.pieces[atom]
        return Written(self.parts, [self._atom(output).text for output in self.program.outputs], self.variables)

    def _operands(self, equation: Equation) -> list[Fragment]:
        truths = self.language.truths
        if truths is None:
            return [self._atom(a) for a in equation.inputs]
        return operands_of(equation, self._atom, lambda a: self._number(a, truths), lambda a: self._truth(a, truths))

    def _truth(self, atom: Atom, truths: BooleanConversion) -> Fragment:
        piece = self._atom(atom)
        return truths.of_number(piece)._replace(depth=piece.depth + 1)

    def _number(self, atom: Atom, truths: BooleanConversion) -> Fragment:
        if not isinstance(atom, Variable):
            return self._atom(arrays.astype(atom, "float64"))
        piece = self.pieces[atom]
        return truths.as_number(piece)._replace(depth=piece.depth + 1)

    def _atom(self, atom: Atom) -> Fragment:
        if isinstance(atom, Variable):
            return self.pieces[atom]
        if arrays.is_complex(atom):
            if atom != 1j:
                raise DifferentiationError(
                    "these complex numbers have no formula", hint="gradcli eval computes the derivatives at a point"
                )
            return self._imaginary_unit()
        return self.language.array(atom) if arrays.shape(atom) else self.language.number(atom)

    def _imaginary_unit(self) -> Fragment:
        return Fragment(self.language.check_complex())

    def _spelled(self, equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        name, spelling = equation.primitive.name, self.language.spelling(equation.primitive)
        if name == "cast" and self.language.truths and (_conditions(equation) or _is_truth(equation.inputs[0])):
            (piece,) = operands
        elif name in self.language.with_parts:
            piece = self.language.with_parts[name](equation, operands, partial(self._named, equation.output))
        elif spelling is not None:
            piece = self._without_repeats(spelling, equation, operands)
        else:
            raise UnsupportedPrimitiveError(equation, self.language.name)
        return piece._replace(depth=1 + max((o.depth for o in operands), default=0))

    def _without_repeats(self, spelling: Spelling, equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        """The piece of an equation, with names for long operands that the spelling repeats: nested repetitions would
        grow exponentially."""
        piece = spelling(equation, operands)
        if not self.language.parts or len(piece.text) <= _REPEATED:
            return piece
        long = [(piece.text.count(o.text) - 1) * len(o.text) > _REPEATED for o in operands]
        if not any(long):
            return piece
        named = [
            Fragment(self._named(a, o.text)) if is_long else o for a, o, is_long in zip(equation.inputs, operands, long)
        ]
        return spelling(equation, named)

    def _placed(self, variable: Variable, piece: Fragment) -> Fragment:
        """A piece as it is written where the variable is used: its text, or the name that it gets."""
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
        return Fragment(self._named(variable, piece.text), plain=piece.plain)

    def _named(self, of: Atom, text: str) -> str:
        """The name given to a new part, which is a variable or computed for it."""
        name = self.names.new_part_name(len(self.parts) + 1)
        self.parts.append((name, text))
        if isinstance(of, Variable):
            self.variables[name] = of
        return name


def expect_numbers(program: Program, place: str) -> None:
    """Raise DifferentiationError for tensor inputs, which `place`, a column or a language, does not have."""
    for variable in program.inputs:
        if variable.shape:
            raise DifferentiationError(
                f"'{variable.name}' is a tensor, and {place} has numbers alone", hint="--to python has tensors"
            )


def operands_of(
    equation: Equation,
    same: Callable[[Atom], Operand],
    number: Callable[[Atom], Operand],
    truth: Callable[[Atom], Operand],
) -> list[Operand]:
    """The operands of an equation, converted by `number` where a truth value is computed with, by `truth` where a
    number is used as a condition, and else by `same`."""
    inputs, conditions = equation.inputs, _conditions(equation)
    kept = (
        equation.primitive.truths and equation.params.get("dtype") is None and all(map(_is_truth, inputs[conditions:]))
    )
    found = [same(a) if _is_truth(a) else truth(a) for a in inputs[:conditions]]
    return found + [same(a) if kept or not _is_truth(a) else number(a) for a in inputs[conditions:]]


def _is_truth(atom: Atom) -> bool:
    return arrays.dtype_name(atom) == "bool"


def _conditions(equation: Equation) -> int:
    """The number of leading operands of an equation that are conditions."""
    name = equation.primitive.name
    if name == "cast":
        return int(equation.params["dtype"] == "bool")
    return (
        len(equation.inputs)
        if name in ("logical_not", "logical_and", "logical_or", "any", "all")
        else int(name == "where")
    )


# --- spellings shared by languages


# x - tanh(x) loses digits for small x. The first terms of its series have a relative error below 1e-13 for |x| < 0.01.
TANHSHRINK = "{0}*{0}*{0}*(1.0/3.0 - {0}*{0}*(2.0/15.0 - 17.0/315.0*{0}*{0}))"
# The levels of Python's arithmetic operators; all others are comparisons.
_LEVELS = {"+": SUM, "-": SUM, "*": TIMES, "/": TIMES, "//": PRODUCT, "%": PRODUCT, "@": PRODUCT, "**": POWER}
# The levels that the left and right operands of an operator need.
_SIDES = {COMPARE: (SUM, SUM), SUM: (SUM, PRODUCT), PRODUCT: (PRODUCT, UNARY), POWER: (ATOM, UNARY)}


def with_order(name: str) -> Spelling:
    """A function of its order and an operand. Raises UnsupportedPrimitiveError for orders below 0, as derivatives of
    expn have."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        n = equation.params["n"]
        if n < 0:
            raise UnsupportedPrimitiveError(equation, "a formula")
        return function(name, str(n), operands[0].text)

    return spelling


def operators(
    without: str = "", *, form: Callable[[str, int], Spelling] | None = None, **other: str
) -> dict[str, Spelling]:
    """The spellings of binary operators, except those in `without`; `other` replaces symbols by the primitive's name,
    and `form` makes a spelling from the symbol and its level."""
    return {
        name: (form or infix)(other.get(name, symbol), _LEVELS.get(symbol, COMPARE))
        for name, symbol in table.operators().items()
        if name != "negative" and symbol not in without.split()
    }


def infix(symbol: str, level: int) -> Spelling:
    """A left-associative binary operator, with parentheses around operands of a looser level."""
    if level == TIMES:
        return times(symbol)
    before, after = _SIDES[level]
    between = f" {symbol} " if level in (COMPARE, SUM) else symbol

    def spelling(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        first, second = operands
        return Fragment(f"{first.at(before)}{between}{second.at(after)}", level)

    return spelling


def times(symbol: str) -> Spelling:
    """The operators * and /."""

    def spelling(_equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        first, second = operands
        level = PRODUCT if first.level == PRODUCT else TIMES
        return Fragment(f"{first.at(PRODUCT)}{symbol}{second.at(UNARY)}", level)

    return spelling


def negated_piece(operand: Fragment) -> Fragment:
    """A piece with a minus in front; never two in a row, which C and SQL would read as an operator or a comment."""
    if operand.level < TIMES or operand.text.startswith("-"):
        return Fragment(f"-({operand.text})", UNARY)
    return Fragment(f"-{operand.text}", min(operand.level, UNARY))


def function(name: str, *arguments: str) -> Fragment:
    return Fragment(f"{name}({', '.join(arguments)})")


def template(text: str, level: int = ATOM, *, inner: int = ATOM) -> Spelling:
    """A spelling from a text with {0}, {1}, … for the operands, in parentheses if looser than `inner`."""
    return lambda _equation, operands: Fragment(text.format(*[o.at(inner) for o in operands]), level)


def by_powers_of_two(exact: Spelling, others: Spelling | None, language: str) -> Spelling:
    """`exact` where the second operand is a constant power of two, for which the quotient is not rounded; else
    `others`, or an UnsupportedPrimitiveError if there is none."""

    def spelled(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        if _is_power_of_two(equation.inputs[1]):
            return exact(equation, operands)
        if others is None:
            raise UnsupportedPrimitiveError(equation, language)
        return others(equation, operands)

    return spelled


def _is_power_of_two(atom: Atom) -> bool:
    return not isinstance(atom, Variable) and not arrays.shape(atom) and abs(math.frexp(float(atom))[0]) == 0.5


def by_part(part: str, form: str) -> SpellingWithPart:
    """A spelling `form` in which {0} is a named part, made from the operand by the template `part`."""

    def spelled(_equation: Equation, operands: Sequence[Fragment], named: Callable[[str], str]) -> Fragment:
        return Fragment(form.format(named(part.format(operands[0].at(ATOM)))))

    return spelled


def clipped(between_numbers: Spelling, maximum: Spelling, minimum: Spelling) -> Spelling:
    """`between_numbers` where both bounds are ordered constants. Otherwise maximum and then minimum, which propagate
    nan bounds and let the upper bound win where it is below the lower one."""

    def spelled(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        x, lower, upper = operands
        bounds = equation.inputs[1:]
        if not any(isinstance(bound, Variable) for bound in bounds) and float(bounds[0]) <= float(bounds[1]):
            return between_numbers(equation, operands)
        return minimum(equation, [maximum(equation, [x, lower]), upper])

    return spelled


def comparisons_without_nan(
    form: str, operator: Callable[[str, int], Spelling], equal: str = "=="
) -> dict[str, Spelling]:
    """Spellings for a language that treats nan as larger than every number and as equal to itself.

    `operator` makes a comparison from its symbol. Where it would hold for nan, `form` combines its text {0} with the
    operand {1} that must not be nan, unless that is a constant.
    """
    symbols = {"less": ("<", 1), "less_equal": ("<=", 1), "greater": (">", 0), "greater_equal": (">=", 0)}
    symbols["equal"] = (equal, 0)
    return {name: _without_nan(operator(symbol, COMPARE), place, form) for name, (symbol, place) in symbols.items()}


def _without_nan(comparison: Spelling, place: int, form: str) -> Spelling:
    def spelled(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        found = comparison(equation, operands)
        if not isinstance(equation.inputs[place], Variable):
            return found
        return Fragment(form.format(found.text, operands[place].at(ATOM)))

    return spelled


def unsupported(language: str) -> Spelling:
    """A spelling that raises UnsupportedPrimitiveError, for a function that other dialects of the language have."""

    def spelled(equation: Equation, _operands: Sequence[Fragment]) -> Fragment:
        raise UnsupportedPrimitiveError(equation, language)

    return spelled


def calls(
    language: str, name: Callable[[Primitive], str], by_signature: Mapping[str, Callable[[str], Spelling]] = {}
) -> Callable[[Primitive], Spelling | None]:
    """Spellings for the primitives that a language has a `name` for: calls with the operands only, or the spelling in
    `by_signature` for the names of the operands and parameters."""

    def spelling(primitive: Primitive) -> Spelling | None:
        called = name(primitive)
        signature = "" if primitive.internal else " ".join(p.name for p in primitive.parameters)
        if signature in by_signature and called:
            return by_signature[signature](called)
        return plain_call(language, called) if called else None

    return spelling


def plain_call(language: str, name: str) -> Spelling:
    """A call with the operands only; raises UnsupportedPrimitiveError if there are parameters."""

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        if equation.params:
            raise UnsupportedPrimitiveError(equation, language)
        return function(name, *(o.text for o in operands))

    return spelling


def listed_array(constant: Any, number: Callable[[Any], str]) -> str:
    """The elements of a constant array as nested lists in text."""
    limits.charge_steps(limits.UNITS_PER_STEP * arrays.size(constant))
    return listed(arrays.tolist(constant), number)


def listed(value: Any, number: Callable[[Any], str]) -> str:
    """Nested lists of numbers as text."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(listed(v, number) for v in value)}]"
    return number(value)


# Spellings of languages without tensors whose literals are those of C.
SCALAR_FUNCTIONS: Mapping[str, Spelling] = {
    "reciprocal": template("1.0/{0}", TIMES),
    "one_minus_square": template("(1.0 - {0})*(1.0 + {0})", TIMES),
    "over_one_plus_square": template("1.0/(1.0 + {0}*{0})", TIMES),
    "identity": lambda _equation, operands: operands[0],
    "cast": lambda _equation, operands: operands[0],
    "zeros_like": lambda _equation, _operands: Fragment("0.0"),
    "ones_like": lambda _equation, _operands: Fragment("1.0"),
}


def with_body(language: Callable[[], Language], names: str, form: str, level: int = ATOM) -> Spelling:
    """The spelling of a primitive of two limits and a body.

    The `form` has places for `body`, `variable`, `low` and `high`; the variable gets the first of some one-letter names
    that no operand mentions.
    """

    def spelling(equation: Equation, operands: Sequence[Fragment]) -> Fragment:
        low, high, *reads = operands
        variable = _free_name(names, [o.text for o in operands])
        program = equation.params["body"].program
        inputs = Names(language().naming)
        texts = [variable, *(read.at(ATOM) for read in reads)]
        inputs.inputs = {v.name or "": text for v, text in zip(program.inputs, texts)}
        body = write(program, language()._replace(parts=False), inputs, short=_INLINE).result
        return Fragment(form.format(body=body, variable=variable, low=low.text, high=high.text), level)

    return spelling


def _free_name(names: str, texts: Sequence[str]) -> str:
    """The first of the one-letter names, or of these with a number, that no text has as a word."""
    taken = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    candidates = itertools.chain(names, (f"{names[0]}{n}" for n in itertools.count(1)))
    return next(name for name in candidates if name not in taken)
