"""The sides of the equations that rules of differentiation give, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.errors import DifferentiationError, Span
from gradcli.formulas import languages
from gradcli.formulas.derivation import derivation
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.formulas.writing.documents import with_squares
from gradcli.formulas.writing.naming import Names
from gradcli.formulas.writing.text_writer import (
    ATOM,
    COMPARE,
    CONDITIONAL,
    POWER,
    PRODUCT,
    SUM,
    TIMES,
    UNARY,
    Fragment,
    write,
)
from gradcli.language.names import scope
from gradcli.language.syntax import parse, tree
from gradcli.named_tuples import NamedTuple

_LEVELS = {"+": SUM, "-": SUM, "*": TIMES, "/": TIMES, "//": PRODUCT, "%": PRODUCT, "**": POWER}


class Plain(NamedTuple):
    """An expression of the program."""

    node: tree.Expression


class Derivative(NamedTuple):
    """The derivative of an expression of the program."""

    node: tree.Expression


class OperandDerivative(NamedTuple):
    """The derivative of an operation or call by one of its operands, `number`, at those operands."""

    node: tree.Expression
    operands: Sequence[tree.Expression]
    number: int


class Literal(NamedTuple):
    """0 or 1."""

    text: str


class Negative(NamedTuple):
    side: Any


class ProductSide(NamedTuple):
    factors: Sequence[Any]


class Total(NamedTuple):
    """A sum of terms with their signs, + or -."""

    terms: Sequence[tuple[str, Any]]


class QuotientSide(NamedTuple):
    above: Any
    below: Any


class Square(NamedTuple):
    side: Any


class Choice(NamedTuple):
    condition: tree.Expression
    first: Any
    second: Any


class SideWriter:
    """Writes sides as text for readers, in LaTeX, or as programs, where `diff(u, x)` is the derivative of u by x."""

    def __init__(self, program: tree.Module, by: str, form: str) -> None:
        self._program = program
        self._by = by
        self._latex = form == "latex"
        self._form = form
        self._language = languages.find("latex" if self._latex else "text")
        self._defined = tuple(s for s in program.body if isinstance(s, tree.Define))
        self._multiply = r" \cdot " if self._latex else "*"

    def write(self, side: Any) -> Fragment:
        """The text of a side, with its precedence."""
        match side:
            case Plain(node):
                return self._plain(node)
            case Derivative(node):
                return self._derivative(node)
            case OperandDerivative():
                return self._partial(side)
            case Literal(text):
                return Fragment(text)
            case Negative(inner):
                return Fragment(f"-{self._behind_minus(self.write(inner))}", UNARY)
            case ProductSide(factors):
                return self._product([self.write(f) for f in factors])
            case Total(terms):
                return self._total([(sign, self.write(term)) for sign, term in terms])
            case QuotientSide(above, below):
                return self._quotient(self.write(above), self.write(below))
            case Square(inner):
                text = self._at(self.write(inner), ATOM)
                return Fragment(f"{text}^{{2}}" if self._latex else f"{text}**2", POWER)
            case Choice(condition, first, second):
                return self._choice(self._plain(condition), self.write(first), self.write(second))
        raise TypeError(type(side).__name__)

    def _at(self, piece: Fragment, level: int) -> str:
        if piece.level >= level:
            return piece.text
        return f"\\left({piece.text}\\right)" if self._latex else f"({piece.text})"

    def _behind_minus(self, piece: Fragment) -> str:
        """A term with a minus in front of it; never two in a row."""
        return self._at(piece, ATOM + 1 if piece.text.startswith("-") else TIMES)

    def _product(self, factors: Sequence[Fragment]) -> Fragment:
        wanted = [f for f in factors if f.text != "1"] or [Fragment("1")]
        if len(wanted) == 1:
            return wanted[0]
        first, *others = wanted
        texts = [self._at(first, UNARY if first.level == UNARY else TIMES), *(self._at(f, POWER) for f in others)]
        return Fragment(self._multiply.join(texts), TIMES)

    def _total(self, terms: Sequence[tuple[str, Fragment]]) -> Fragment:
        text = ""
        for sign, piece in terms:
            if not text:
                text = self._at(piece, SUM) if sign == "+" else f"-{self._behind_minus(piece)}"
            elif sign == "+" and piece.text.startswith("-") and piece.level >= TIMES:
                text += f" - {piece.text[1:]}"
            else:
                text += f" {sign} {self._at(piece, TIMES) if sign == '+' else self._behind_minus(piece)}"
        return Fragment(text, SUM)

    def _quotient(self, above: Fragment, below: Fragment) -> Fragment:
        if self._latex:
            return Fragment(f"\\frac{{{above.text}}}{{{below.text}}}", POWER)
        return Fragment(f"{self._at(above, TIMES if above.level != UNARY else UNARY)}/{self._at(below, POWER)}", TIMES)

    def _choice(self, condition: Fragment, first: Fragment, second: Fragment) -> Fragment:
        if self._latex:
            return Fragment(
                f"\\begin{{cases}} {first.text} & {condition.text} \\\\ {second.text} & \\text{{otherwise}} \\end{{cases}}"
            )
        return Fragment(f"where({condition.text}, {first.text}, {second.text})")

    def _derivative(self, node: tree.Expression) -> Fragment:
        if isinstance(node, tree.Name) and node.id == self._by and self._form != "program":
            return Fragment("1")
        inside = self._plain(node).text
        if self._latex:
            by = self._spelled(self._by)
            return Fragment(f"\\frac{{\\mathrm{{d}}}}{{\\mathrm{{d}}{by}}}\\left({inside}\\right)")
        return Fragment(f"diff({inside}, {self._by})" if self._form == "program" else f"d/d{self._by}({inside})")

    def _spelled(self, name: str) -> str:
        return next(iter(self._language.naming.spellings(name)))

    def _plain(self, node: tree.Expression) -> Fragment:
        if self._latex:
            return self._as_latex(node)
        source = self._program.source
        begin, end = without_brackets(source, node.span)
        text = " ".join(source[begin:end].split())
        return Fragment(
            f"({text})" if isinstance(node, tree.Conditional) and self._form == "program" else text, level(node)
        )

    def _as_latex(self, node: tree.Expression) -> Fragment:
        if isinstance(node, tree.Number):
            return self._language.number(node.value)
        if isinstance(node, tree.Name) and node.id not in scope.CONSTANTS:
            return Fragment(self._spelled(node.id))
        module = self._module(node)
        names = [n for n in scope.free_names(module) if n not in scope.CONSTANTS]
        if not names:
            return Fragment(f"\\mathtt{{{self._program.source[node.span.start : node.span.end]}}}", level(node))
        recorded = with_squares(derivation(module, {}, names, 1)[()])
        found = level(node)
        is_fraction = isinstance(node, tree.Binary) and node.operator == "/"
        return Fragment(write(recorded, self._language).result, POWER if is_fraction else found)

    def _module(self, node: tree.Expression) -> tree.Module:
        """An expression by itself, in which assigned names stand for any number."""
        return tree.Module(node.span, self._program.source, (*self._defined, tree.Evaluate(node.span, node)))

    def _partial(self, side: OperandDerivative) -> Fragment:
        taken = {n.id for n in tree.all_nodes(self._program) if isinstance(n, tree.Name)}
        # Names that the program does not have, for the operands.
        places = [f"u_{i}" + "_" * sum(f"u_{i}" in t for t in taken) for i in range(len(side.operands))]
        replaced = {operand: tree.Name(operand.span, place, "") for operand, place in zip(side.operands, places)}
        module = self._module(rebuilt(side.node, replaced))
        found = derivatives_as_formulas(module, {}, [places[side.number]]).derivatives
        program = found[places[side.number]]
        operands = [self._plain(operand) for operand in side.operands]
        names = Names(self._language.naming, program.inputs)
        spelled = dict(zip(places, operands))
        names.inputs = names.inputs | {v.name: spelled[v.name].text for v in program.inputs if v.name in spelled}
        levels = {place: operand.level for place, operand in spelled.items()}
        text = write(program, self._language._replace(parts=False), names, levels=levels).result
        if not self._latex:
            return Fragment(text, level(parse(text).body[-1].value))  # type: ignore[attr-defined]
        plain = SideWriter(self._program, self._by, "text").write(side)
        return Fragment(text, POWER if text.startswith(r"\frac") and plain.level == TIMES else plain.level)


def rebuilt(node: tree.SyntaxNode, replaced: Mapping[Any, Any]) -> Any:
    """An expression with some of its parts replaced."""
    built: dict[tree.SyntaxNode, Any] = {}

    def with_parts(field: Any) -> Any:
        if isinstance(field, tuple):
            return tuple(map(with_parts, field))
        return built.get(field, field) if isinstance(field, tree.SyntaxNode) else field

    for part in reversed([*tree.walk(node)]):
        kind = type(part)
        if part in replaced:
            built[part] = replaced[part]
        elif kind.below:
            fields = [getattr(part, field) for field in kind.__match_args__]
            below = [field in kind.below for field in kind.__match_args__]
            built[part] = kind(*(with_parts(value) if holds else value for value, holds in zip(fields, below)))
    return built.get(node, node)


def level(node: Any) -> int:
    """The precedence of an expression as it is written."""
    if isinstance(node, tree.Binary):
        return _LEVELS.get(node.operator, SUM)
    if isinstance(node, tree.Unary):
        return UNARY
    if isinstance(node, tree.Compare):
        return COMPARE
    return CONDITIONAL if isinstance(node, (tree.Conditional, tree.Logical)) else ATOM


def without_brackets(text: str, span: Span) -> Span:
    """The span of an expression in a text without the brackets around all of it."""
    begin, end = span
    while text[begin] == "(" and text[end - 1] == ")":
        depth = 0
        for at in range(begin, end - 1):
            depth += (text[at] == "(") - (text[at] == ")")
            if not depth:
                return Span(begin, end)
        begin, end = begin + 1, end - 1
        while text[begin].isspace():
            begin += 1
        while text[end - 1].isspace():
            end -= 1
    return Span(begin, end)


def no_formula(node: tree.SyntaxNode, program: tree.Module, what: str) -> DifferentiationError:
    """The error that a part of a program is not differentiated by rules."""
    return DifferentiationError(
        f"--symbolic explains formulas of numbers, and {what}",
        hint="without --symbolic, the steps of a run are explained",
        span=node.span,
        source=program.source,
    )
