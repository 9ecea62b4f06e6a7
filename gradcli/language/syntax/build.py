"""One function per rule of the grammar, named there: the children to a node of the tree.

Children are tokens, nodes, and tuples of nodes. What the grammar cannot say, such as the order of
arguments, is said here by a ProgramSyntaxError.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from gradcli.errors import ProgramSyntaxError, Span
from gradcli.language.syntax import tree
from gradcli.language.syntax.lexer import Token, place

Child: TypeAlias = "tree.SyntaxNode | Token"

_PYTHON_STATEMENTS = {"break", "continue", "pass", "return"}
_CONSTANTS = {"True": True, "False": False, "None": None}


class Block(NamedTuple):
    statements: tuple[tree.Statement, ...]
    end: int


def _nodes(children: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(child for child in children if isinstance(child, tree.SyntaxNode))


def _identifier(token: Token) -> str:
    """The name as Python reads it: two spellings of one character are one name."""
    text = token.value
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


# Form


def program(*children: Child) -> tuple[tree.Statement, ...]:
    return _nodes(children)


def block(*children: Child) -> Block:
    return Block(_nodes(children), _end(children[-1]))


def evaluate(value: tree.Expression) -> tree.Evaluate:
    if isinstance(value, tree.Name) and value.id in _PYTHON_STATEMENTS:
        # Only a wrong program pays for the import.
        from gradcli.language.syntax.words import foreign_word

        raise foreign_word(value.id, value.span)
    return tree.Evaluate(value.span, value)


def assign(
    target: tree.Expression, _: Token, value: tree.Expression, rule: tree.Backward | None = None
) -> tree.Statement:
    """`name = value` or `f(a, b) = value`, the latter with a `backward` or without."""
    span = Span(target.span.start, (rule or value).span.end)
    if isinstance(target, tree.Name) and rule is None:
        return tree.Assign(span, target.id, target.span, value)
    if isinstance(target, tree.Tuple) and rule is None:
        return _unpacked(span, target.items, value.items if isinstance(value, tree.Tuple) else (value,))
    if isinstance(target, tree.Call) and target.receiver is None:
        given: tuple[tree.Expression | tree.Keyword, ...] = (*target.arguments, *target.keywords)
        parameters = tuple(_parameter(argument) for argument in given)
        _check_parameters(target.name, parameters, rule)
        return tree.Define(span, target.name, target.name_span, parameters, value, rule)
    if rule is not None:
        raise ProgramSyntaxError(
            "only a function has a backward",
            hint="write f(x) = … backward(g) = …",
            span=Span(rule.span.start, rule.span.start + len("backward")),
        )
    raise _cannot_assign(target)


def unpack(*children: Any) -> tree.Unpack:
    values = children[-1]
    targets = _nodes(children)
    return _unpacked(Span(targets[0].span.start, values[-1].span.end), targets, values)


def _unpacked(span: Span, targets: Sequence[tree.Expression], values: tuple[tree.Expression, ...]) -> tree.Unpack:
    if len(values) not in (1, len(targets)):
        raise ProgramSyntaxError(
            f"{len(targets)} names do not fit {len(values)} values",
            span=Span(values[0].span.start, values[-1].span.end),
        )
    for target in targets:
        if not isinstance(target, tree.Name):
            raise _cannot_assign(target)
    names = tuple(tree.BoundName(t.span, t.id) for t in targets if isinstance(t, tree.Name))
    return tree.Unpack(span, names, values)


def _parameter(argument: tree.Expression | tree.Keyword) -> tree.BoundName:
    if isinstance(argument, tree.Name):
        return tree.BoundName(argument.span, argument.id)
    if isinstance(argument, tree.Keyword):
        raise ProgramSyntaxError(
            f"the parameter '{argument.name}' cannot have a default value",
            hint="give every argument in the call",
            span=argument.span,
        )
    raise ProgramSyntaxError(
        "a parameter is a name",
        hint="define a function as in f(a, b) = a*b; '==' compares",
        span=argument.span,
    )


def _check_parameters(function: str, parameters: tuple[tree.BoundName, ...], rule: tree.Backward | None) -> None:
    names: set[str] = set()
    for parameter in parameters if rule is None else (*parameters, rule.cotangent):
        if parameter.name in names:
            raise ProgramSyntaxError(f"two parameters are named '{parameter.name}'", span=parameter.span)
        names.add(parameter.name)
    if rule is not None and len(rule.gradients) != len(parameters):
        raise _wrong_count(function, len(parameters), rule)


def _wrong_count(function: str, wanted: int, rule: tree.Backward) -> ProgramSyntaxError:
    given = len(rule.gradients)
    hint = "give one expression per parameter, separated by commas"
    if given == 1 and isinstance(rule.gradients[0], tree.List):
        hint += " and without brackets around them"
    return ProgramSyntaxError(
        f"'{function}' has {wanted} parameter{'s' * (wanted != 1)}, its backward gives {given}",
        hint=hint,
        span=Span(rule.gradients[0].span.start, rule.gradients[-1].span.end),
    )


def _cannot_assign(target: tree.Expression) -> ProgramSyntaxError:
    what, hint = "an expression", "'==' compares"
    match target:
        case tree.Number():
            what = "a number"
        case tree.String():
            what = "a string"
        case tree.Constant(_, value):
            what, hint = f"'{value}'", f"'{value}' is a reserved word; choose another name"
        case tree.List():
            what, hint = "a list", "several names stand without brackets, as in Q, R = qr(A)"
        case tree.Index():
            what, hint = "an element", "tensors do not change; where(condition, a, b) builds one"
        case tree.Attribute(_, _, name):
            what, hint = f"the attribute '{name}'", "assign to a name without '.'"
        case tree.Call(_, name):
            what, hint = f"the method call '.{name}(…)'", "define a function as f(x) = …"
    return ProgramSyntaxError(f"cannot assign to {what}", hint=hint, span=target.span)


def backward(word: Token, _1: Token, name: Token, _2: Token, _3: Token, gradients: Any) -> tree.Backward:
    span = Span(word.start_pos, gradients[-1].span.end)
    return tree.Backward(span, tree.BoundName(place(name), _identifier(name)), gradients)


def if_(
    word: Token,
    test: tree.Expression,
    body: Block,
    _: Token | None = None,
    otherwise: Block | tree.If | None = None,
) -> tree.If:
    orelse: tuple[tree.Statement, ...] = ()
    end = body.end
    if isinstance(otherwise, tree.If):
        orelse, end = (otherwise,), otherwise.span.end
    elif otherwise is not None:
        orelse, end = otherwise
    return tree.If(Span(word.start_pos, end), test, body.statements, orelse)


def for_(word: Token, name: Token, _: Token, iterable: tree.Expression, body: Block) -> tree.For:
    span = Span(word.start_pos, body.end)
    return tree.For(span, _identifier(name), place(name), iterable, body.statements)


def while_(word: Token, test: tree.Expression, body: Block) -> tree.While:
    return tree.While(Span(word.start_pos, body.end), test, body.statements)


# Operators


def conditional(
    body: tree.Expression, _1: Token, test: tree.Expression, _2: Token, orelse: tree.Expression
) -> tree.Conditional:
    return tree.Conditional(Span(body.span.start, orelse.span.end), test, body, orelse)


def logical(left: tree.Expression, operator: Token, right: tree.Expression) -> tree.Logical:
    span = Span(left.span.start, right.span.end)
    return tree.Logical(span, operator.value, left, right)  # type: ignore[arg-type]


def unary(operator: Token, operand: tree.Expression) -> tree.Unary:
    span = Span(operator.start_pos, operand.span.end)
    return tree.Unary(span, operator.value, operand)  # type: ignore[arg-type]


def compare(*children: Any) -> tree.Compare:
    span = Span(children[0].span.start, children[-1].span.end)
    operators = tuple(operator.value for operator in children[1::2])
    return tree.Compare(span, operators, children[::2])


def binary(left: tree.Expression, operator: Token, right: tree.Expression) -> tree.Binary:
    span = Span(left.span.start, right.span.end)
    symbol: Any = "**" if operator.value == "^" else operator.value
    return tree.Binary(span, symbol, place(operator), left, right)


# Calls, indices, attributes


def call(callee: tree.Expression, opening: Token, *rest: Token | tuple[tree.SyntaxNode, ...]) -> tree.Call:
    arguments: Any = rest[0] if len(rest) == 2 else ()
    closing: Any = rest[-1]
    positional, keywords = _sorted_arguments(arguments)
    receiver: tree.Expression | None = None
    if isinstance(callee, tree.Attribute):
        name, name_span, receiver = callee.name, callee.name_span, callee.value
    elif isinstance(callee, tree.Name):
        name, name_span = callee.id, callee.span
    else:
        raise ProgramSyntaxError(
            "only a function can be called",
            hint="write '*' before '(' to multiply",
            span=Span(opening.start_pos, closing.end_pos),
        )
    span = Span(callee.span.start, closing.end_pos)
    return tree.Call(span, name, name_span, receiver, positional, keywords)


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
    return _nodes(children)


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
    return _nodes(children)


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
    return tree.Attribute(span, value, _identifier(name), place(name))


# Atoms


def number(token: Token) -> tree.Number:
    return tree.Number(place(token), float(token.value))


def string(token: Token) -> tree.String:
    return tree.String(place(token), token.value[1:-1])


def name(token: Token) -> tree.Name:
    return tree.Name(place(token), _identifier(token))


def constant(token: Token) -> tree.Constant:
    return tree.Constant(place(token), _CONSTANTS[token.value])


def group(opening: Token, value: tree.Expression, closing: Token) -> tree.Expression:
    """The same node, its span widened to the parentheses, for the carets of what it is part of."""
    fields: tuple[str, ...] = value.__match_args__
    rest = (getattr(value, field) for field in fields[1:])
    return type(value)(Span(opening.start_pos, closing.end_pos), *rest)


def tuple_(opening: Token, first: tree.Expression, *rest: Any) -> tree.Tuple:
    items = rest[1] if len(rest) == 3 else ()
    return tree.Tuple(Span(opening.start_pos, rest[-1].end_pos), (first, *items))


def list_(opening: Token, *rest: Any) -> tree.List:
    items = rest[0] if len(rest) == 2 else ()
    return tree.List(Span(opening.start_pos, rest[-1].end_pos), items)


def items(*children: Child) -> tuple[tree.SyntaxNode, ...]:
    return _nodes(children)
