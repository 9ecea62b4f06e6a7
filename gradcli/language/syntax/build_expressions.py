"""The semantic actions of the grammar's rules for expressions: functions that make nodes from the children of a rule.

Children are tokens, nodes, and tuples of nodes. Constraints that the grammar cannot express, such as the order of
arguments, are checked here and raise ProgramSyntaxError.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradcli.errors import ProgramSyntaxError, Proposal, Span
from gradcli.language.syntax import tree
from gradcli.language.syntax.bound_variables import with_function
from gradcli.language.syntax.lexer import Token, normalised, place
from gradcli.type_hints import Any, TypeAlias

Child: TypeAlias = "tree.SyntaxNode | Token"

_CONSTANTS = {"True": True, "False": False, "None": None}


def nodes(children: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(child for child in children if isinstance(child, tree.SyntaxNode))


def identifier(token: Token) -> str:
    """The name of a token in normal form."""
    return normalised(token.value)


# Operators


def conditional(
    body: tree.Expression, _1: Token, test: tree.Expression, _2: Token, orelse: tree.Expression
) -> tree.Conditional:
    return tree.Conditional(Span(body.span.start, orelse.span.end), test, body, orelse)


def lambda_(word: Token, *rest: Any) -> tree.Lambda:
    parameters = rest[0] if len(rest) == 3 else ()
    check_parameters(parameters)
    return tree.Lambda(Span(word.start_pos, rest[-1].span.end), parameters, rest[-1])


def lambda_parameters(*children: Child) -> tuple[tree.Parameter, ...]:
    return nodes(children)


def parameter(token: Token, *rest: Any) -> tree.Parameter:
    """A parameter: its name, its default, and an annotation, which is ignored."""
    default = rest[-1] if len(rest) > 1 and rest[-2].value == "=" else None
    end = default.span.end if default is not None else token.end_pos
    return tree.Parameter(Span(token.start_pos, end), identifier(token), default, False)


def check_parameters(parameters: Iterable[tree.Parameter | tree.BoundName]) -> None:
    """Raise ProgramSyntaxError for duplicate names, and for a parameter without a default after one with a default."""
    names: set[str] = set()
    defaults = False
    for given in parameters:
        if given.name in names:
            raise ProgramSyntaxError(f"two parameters are named '{given.name}'", span=given.span)
        names.add(given.name)
        if not isinstance(given, tree.Parameter) or given.keyword_only:
            continue
        if defaults and given.default is None:
            raise ProgramSyntaxError(
                f"the parameter '{given.name}' has no default value, and one before it has",
                hint="put the parameters without a default first",
                span=given.span,
            )
        defaults = given.default is not None


def logical(left: tree.Expression, operator: Token, right: tree.Expression) -> tree.Logical:
    span = Span(left.span.start, right.span.end)
    return tree.Logical(span, operator.value, left, right)  # type: ignore[arg-type]


# Typographic operators, and the ones that the tree has for them.
_IN_ASCII = {"·": "*", "⋅": "*", "×": "*", "": "*", "÷": "/", "−": "-", "^": "**", "≤": "<=", "≥": ">=", "≠": "!="}


def _operator(token: Token) -> Any:
    return _IN_ASCII.get(token.value, token.value)


def unary(operator: Token, operand: tree.Expression) -> tree.Unary:
    span = Span(operator.start_pos, operand.span.end)
    if isinstance(operand, tree.Factorial) and _is_bare(operand, operand.operand):
        raise AmbiguousSyntax(span, "(-{0})!", "-({0}!)", operand.operand.span)
    return tree.Unary(span, _operator(operator), operand)


def compare(*children: Any) -> tree.Compare:
    span = Span(children[0].span.start, children[-1].span.end)
    for sign, right in zip(children[1::2], children[2::2]):
        if sign.value == "<" and isinstance(right, tree.Unary) and _is_an_arrow(sign, right):
            raise AmbiguousSyntax(span, "{0} = {1}", "{0} < -{1}", children[0].span, right.operand.span)
    operators = tuple(_operator(operator) for operator in children[1::2])
    found = tree.Compare(span, operators, children[::2])
    if not all(isinstance(operand, _WRITTEN) for operand in found.operands):
        return found
    # Imported here, and below, as few programs have operations of constants.
    from gradcli.language.syntax.whole_constants import compared_with_digits

    return compared_with_digits(found)


# Expressions that may be constants.
_WRITTEN = (tree.Number, tree.Binary, tree.Unary, tree.Factorial)


def _is_an_arrow(sign: Token, right: tree.Unary) -> bool:
    """Return whether `<-` is written without a space, and a space follows, as in `x <- 2`."""
    return right.operator == "-" and right.span.start == sign.end_pos and right.operand.span.start > sign.end_pos + 1


def is_none(operand: tree.Expression, *words: Token) -> tree.NoneTest:
    return tree.NoneTest(Span(operand.span.start, words[-1].end_pos), operand, len(words) == 3)


def binary(left: tree.Expression, operator: Token, right: tree.Expression) -> tree.Expression:
    span = Span(left.span.start, right.span.end)
    if operator.type == "IMPLICIT":
        if isinstance(right, tree.Number):
            raise AmbiguousSyntax(
                span, "{0}*{1}", "one number", left.span, right.span, hint="write {one}, or the number alone"
            )
        if isinstance(right, tree.Factorial) and _is_bare(right, right.operand):
            raise AmbiguousSyntax(span, "({0}*{1})!", "{0}*({1}!)", left.span, right.operand.span)
        right = _with_imaginary_unit(right)
    elif operator.value == "^":
        _check_imaginary_base(left, right.span)
    elif operator.value == "+" and _is_an_error(left, operator, right):
        hint = "write {one}, or {0} without its uncertainty"
        raise AmbiguousSyntax(span, "{0} - {1}", "{0} ± {1}", left.span, right.operand.span, hint=hint)  # type: ignore[attr-defined]
    found = tree.Binary(span, _operator(operator), place(operator), left, right)
    if found.operator not in _LOSING or not (isinstance(left, _WRITTEN) and isinstance(right, _WRITTEN)):
        return found
    from gradcli.language.syntax.whole_constants import with_digits

    return with_digits(found)


# Results of these operations may have lost all digits, where operands have more than a float.
_LOSING = frozenset(["+", "-", "//", "%"])


def _with_imaginary_unit(factor: tree.Expression) -> tree.Expression:
    """The factor directly after a number, in which the name `i` may be the imaginary unit, as in `2i` and `2i^2`."""
    if isinstance(factor, tree.Name):
        return tree.ImaginaryUnit(factor.span, "i", "") if factor.id == "i" and not factor.module else factor
    if isinstance(factor, tree.Binary) and factor.operator == "**" and _is_bare(factor, factor.left):
        base = _with_imaginary_unit(factor.left)
        return tree.Binary(factor.span, "**", factor.operator_span, base, factor.right)
    return factor


def _check_imaginary_base(base: tree.Expression, exponent: Span) -> None:
    """Raise AmbiguousSyntax for `2j^2`, which is 2*j^2 in books and (2*j)^2 in MATLAB. Python's `2j**2` is clear."""
    bare = isinstance(base, tree.Imaginary) and base.span.end - base.span.start == len(base.text) + 1
    if bare and base.value != 1.0:  # type: ignore[attr-defined]
        number = Span(base.span.start, base.span.end - 1)
        power = Span(base.span.end, exponent.end)
        span = Span(base.span.start, exponent.end)
        raise AmbiguousSyntax(span, "{0}*(1j{1})", "({0}j){1}", number, power)


def _is_an_error(left: tree.Expression, operator: Token, right: tree.Expression) -> bool:
    """Return whether `+-` joins two numbers, as in 1.25+-0.02, which may be meant as an uncertainty."""
    return (
        isinstance(right, tree.Unary)
        and right.operator == "-"
        and isinstance(left, tree.Number)
        and isinstance(right.operand, tree.Number)
        and left.span.end == operator.start_pos
        and right.operand.span.start == operator.end_pos + 1
    )


def superscript(base: tree.Expression, exponent: Token) -> tree.Binary:
    _check_imaginary_base(base, place(exponent))
    number = float(normalised(exponent.value).replace("−", "-"))
    span = Span(base.span.start, exponent.end_pos)
    power: tree.Expression = tree.Number(place(exponent), abs(number), "")
    if exponent.value.startswith("⁻"):
        power = tree.Unary(place(exponent), "-", power)
    return tree.Binary(span, "**", place(exponent), base, power)


def factorial(operand: tree.Expression, sign: Token) -> tree.Factorial:
    span = Span(operand.span.start, sign.end_pos)
    if isinstance(operand, tree.Factorial) and _is_bare(operand, operand.operand):
        raise AmbiguousSyntax(span, "({0})!", "the double factorial", operand.span, hint="write {one}")
    return tree.Factorial(span, operand)


def root(sign: Token, operand: tree.Expression) -> tree.Call:
    span = Span(sign.start_pos, operand.span.end)
    within = operand.left if isinstance(operand, tree.Binary) else getattr(operand, "operand", None)
    if isinstance(operand, (tree.Binary, tree.Factorial)) and _is_bare(operand, within):
        rest = Span(within.span.end, operand.span.end)  # type: ignore[union-attr]
        one, other = f"{sign.value}({{0}}{{1}})", f"({sign.value}{{0}}){{1}}"
        raise AmbiguousSyntax(span, one, other, within.span, rest)  # type: ignore[union-attr]
    name = "sqrt" if sign.value == "√" else "cbrt"
    return tree.Call(span, name, place(sign), None, (operand,), (), "")


def _is_bare(node: tree.Expression, first: Any) -> bool:
    """Return whether an expression has no parentheses around it, which is so where it starts at its first operand."""
    return bool(node.span.start == first.span.start)


# Calls, indices, attributes


def call(callee: tree.Expression, opening: Token, *rest: Token | tuple[tree.SyntaxNode, ...]) -> tree.Expression:
    arguments: Any = rest[0] if len(rest) == 2 else ()
    closing: Any = rest[-1]
    positional, keywords = _sorted_arguments(arguments)
    span = Span(callee.span.start, closing.end_pos)
    if isinstance(callee, tree.Attribute):
        return tree.Call(span, callee.name, callee.name_span, callee.value, positional, keywords, "")
    if isinstance(callee, tree.Name):
        if callee.id == "Piecewise" and positional and not keywords and all(map(_is_piece, positional)):
            return _piecewise(span, callee, positional)
        return with_function(tree.Call(span, callee.id, callee.span, None, positional, keywords, callee.module))
    if isinstance(callee, (tree.Call, tree.Apply, tree.Lambda, tree.Index)):
        return tree.Apply(span, callee, positional, keywords)
    raise ProgramSyntaxError(
        "only a function can be called",
        hint="write '*' before '(' to multiply",
        span=Span(opening.start_pos, closing.end_pos),
    )


def _is_piece(argument: tree.Expression) -> bool:
    """Return whether an argument is a pair (value, condition)."""
    return isinstance(argument, tree.Tuple) and len(argument.items) == 2


def _piecewise(span: Span, callee: tree.Name, pieces: tuple[Any, ...]) -> tree.Expression:
    """SymPy's `Piecewise((a, p), (b, q), …)`: the value with the first condition that holds, nan where none does."""
    value: tree.Expression = tree.Number(callee.span, math.nan, "")
    for piece in reversed(pieces):
        result, condition = piece.items
        if isinstance(condition, tree.Constant) and condition.value:
            value = result
        else:
            value = tree.Call(span, "where", callee.span, None, (condition, result, value), (), "sympy")
    return value


def _sorted_arguments(
    given: tuple[tree.Expression | tree.Keyword, ...],
) -> tuple[tuple[tree.Expression, ...], tuple[tree.Keyword, ...]]:
    positional: list[tree.Expression] = []
    keywords: dict[str, tree.Keyword] = {}
    for argument in given:
        if isinstance(argument, tree.Keyword):
            if argument.name in keywords:
                raise ProgramSyntaxError(f"'{argument.name}' is given twice", span=argument.span)
            keywords[argument.name] = argument
        elif keywords:
            raise ProgramSyntaxError(
                "a positional argument follows a keyword argument",
                hint="put the arguments without a name first",
                span=argument.span,
            )
        else:
            positional.append(argument)
    return tuple(positional), tuple(keywords.values())


def arguments(*children: Child) -> tuple[tree.SyntaxNode, ...]:
    return nodes(children)


def keyword(name: tree.Expression, _: Token, value: tree.Expression) -> tree.Keyword:
    if not isinstance(name, tree.Name):
        raise ProgramSyntaxError(
            "a keyword argument begins with a name",
            hint="write name=value; '==' compares",
            span=name.span,
        )
    return tree.Keyword(Span(name.span.start, value.span.end), name.id, value)


def index(value: tree.Expression, _: Token, items: tuple[Any, ...], closing: Token) -> tree.Index:
    return tree.Index(Span(value.span.start, closing.end_pos), value, items)


def subscripts(*children: Child) -> tuple[tree.SyntaxNode, ...]:
    return nodes(children)


def slice_(*children: Any) -> tree.Slice:
    parts: list[tree.Expression | None] = [None]
    for child in children:
        if isinstance(child, tree.Expression):
            parts[-1] = child
        else:
            parts.append(None)
    start, stop, step = (*parts, None)[:3]
    return tree.Slice(Span(_start(children[0]), _end(children[-1])), start, stop, step)


def _start(child: Child) -> int:
    return child.span.start if isinstance(child, tree.SyntaxNode) else child.start_pos


def _end(child: Child) -> int:
    return child.span.end if isinstance(child, tree.SyntaxNode) else child.end_pos


def ellipsis(dots: Token) -> tree.Ellipsis:
    return tree.Ellipsis(place(dots))


def attribute(value: tree.Expression, _: Token, name: Token) -> tree.Attribute:
    span = Span(value.span.start, name.end_pos)
    return tree.Attribute(span, value, identifier(name), place(name))


# Atoms


def number(token: Token) -> tree.Number | tree.Imaginary:
    text = token.value
    if text[-1] in "jJ":
        return tree.Imaginary(place(token), float(text[:-1]), text[:-1])
    return tree.Number(place(token), float(text), text)


def string(token: Token) -> tree.String:
    return tree.String(place(token), token.value[1:-1])


def name(token: Token) -> tree.Name:
    return tree.Name(place(token), identifier(token), token.module)


def infinity(token: Token) -> tree.Number:
    return tree.Number(place(token), math.inf, "")


def constant(token: Token) -> tree.Constant:
    return tree.Constant(place(token), _CONSTANTS[token.value])


def group(opening: Token, value: tree.Expression, closing: Token) -> tree.Expression:
    """The same node with the span of the parentheses included, so that carets of its parents cover them."""
    fields: tuple[str, ...] = value.__match_args__
    rest = (getattr(value, field) for field in fields[1:])
    return type(value)(Span(opening.start_pos, closing.end_pos), *rest)


def tuple_(opening: Token, first: tree.Expression, *rest: Any) -> tree.Tuple:
    items = rest[1] if len(rest) == 3 else ()
    return tree.Tuple(Span(opening.start_pos, rest[-1].end_pos), (first, *items))


def empty_tuple(opening: Token, closing: Token) -> tree.Tuple:
    return tree.Tuple(Span(opening.start_pos, closing.end_pos), ())


def list_(opening: Token, *rest: Any) -> tree.List:
    items = rest[0] if len(rest) == 2 else ()
    for item in items:
        if isinstance(item, tree.Binary) and isinstance(item.right, tree.Number) and item.operator in ("+", "-"):
            _check_items(item)
    return tree.List(Span(opening.start_pos, rest[-1].end_pos), items)


def _check_items(item: tree.Binary) -> None:
    """Raise AmbiguousSyntax for an item such as `[1 -2]`, where a sign touches only the second number."""
    first = item.left.operand if isinstance(item.left, tree.Unary) else item.left
    sign = item.operator_span
    if isinstance(first, tree.Number) and first.span.end < sign.start and sign.end == item.right.span.start:
        one, other = f"{{0}} {item.operator} {{1}}", f"{{0}}, {item.operator}{{1}}"
        raise AmbiguousSyntax(item.span, one, other, item.left.span, item.right.span)


def comprehended(opening: Token, element: tree.Expression, *rest: Any) -> tree.Comprehension:
    return tree.Comprehension(Span(opening.start_pos, rest[-1].end_pos), element, rest[:-1])


def generator(element: tree.Expression, *clauses: tree.Clause) -> tree.Comprehension:
    return tree.Comprehension(Span(element.span.start, clauses[-1].span.end), element, clauses)


def comprehension(
    word: Token, targets: tree.SyntaxNode, _: Token, iterable: tree.Expression, *rest: Any
) -> tree.Clause:
    conditions = nodes(rest)
    end = conditions[-1].span.end if conditions else iterable.span.end
    return tree.Clause(Span(word.start_pos, end), targets, iterable, conditions)


def targets(*children: Any) -> tree.BoundName | tree.TargetList:
    """The target of a loop: a single name, or several."""
    found = tuple(target(child) for child in nodes(children))
    commas = len(children) > 1
    return tree.TargetList(Span(found[0].span.start, found[-1].span.end), found) if commas else found[0]


def nested(
    opening: Token, within: tree.BoundName | tree.TargetList, closing: Token
) -> tree.BoundName | tree.TargetList:
    span = Span(opening.start_pos, closing.end_pos)
    return tree.TargetList(span, within.targets) if isinstance(within, tree.TargetList) else within


def target(node: Any) -> Any:
    """A name node as a binding of that name; other nodes unchanged."""
    return tree.BoundName(node.span, node.id) if isinstance(node, tree.Name) else node


def items(*children: Child) -> tuple[tree.SyntaxNode, ...]:
    return nodes(children)


class AmbiguousSyntax(Exception):
    """Raised by semantic actions for ambiguous syntax. In the texts of both readings, `{0}`, `{1}` … stand for the
    source at `parts`."""

    def __init__(self, span: Span, one: str, other: str, *parts: Span, hint: str = "write {one} or {other}") -> None:
        super().__init__(span)
        self.span = span
        self.texts = (one, other)
        self.parts = parts
        self.hint = hint

    def error(self, source: str) -> ProgramSyntaxError:
        """The error to report, given the source of the program."""
        given = [source[p.start : p.end] for p in self.parts]
        one, other = (text.format(*given) for text in self.texts)
        programs = [text for text, mark in ((one, "{one}"), (other, "{other}")) if mark in self.hint]
        hint = Proposal(self.hint.format(*given, one=one, other=other), *programs, span=self.span)
        return two_readings(self.span, one, other, hint)


def two_readings(span: Span, one: str, other: str, hint: str | None = None) -> ProgramSyntaxError:
    """The error for a span that can be read in two ways."""
    return ProgramSyntaxError(
        f"this can be read as {one} and as {other}", hint=hint or f"write {one} or {other}", span=span
    )
