"""The semantic actions of the grammar's rules for statements; see `build_expressions`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gradcli.errors import ProgramSyntaxError, Span
from gradcli.language.syntax import tree
from gradcli.language.syntax.build_expressions import Child, check_parameters, identifier, nodes
from gradcli.language.syntax.lexer import Token, place
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Any


class ParsedBlock(NamedTuple):
    """The statements of a block, and the offset of its end."""

    statements: tuple[tree.Statement, ...]
    end: int


def program(*children: Child) -> tuple[tree.Statement, ...]:
    return nodes(children)


def block(*children: Any) -> ParsedBlock:
    statements = nodes(children)
    closing = children[-1]
    # DEDENT may be several blank lines after the last statement.
    end = statements[-1].span.end if closing.type == "DEDENT" and statements else closing.end_pos
    return ParsedBlock(statements, end)


def evaluate(value: tree.Expression) -> tree.Evaluate:
    return tree.Evaluate(value.span, value)


def bare_tuple(first: tree.Expression, *rest: Any) -> tree.Tuple:
    items = (first, *nodes(rest[-1])) if isinstance(rest[-1], tuple) and not isinstance(rest[-1], Token) else (first,)
    end = items[-1].span.end if len(items) > 1 else rest[0].end_pos
    return tree.Tuple(Span(first.span.start, end), items)


# Names and elements


def assign(*children: Any) -> tree.Statement:
    """`name = value`, `a, b = value`, `a = b = value`, or `f(a, b) = value` with or without a `backward` clause."""
    *given, value = nodes(c for c in children if not isinstance(c, tree.Backward))
    rule = children[-1] if isinstance(children[-1], tree.Backward) else None
    span = Span(given[0].span.start, (rule or value).span.end)
    first = given[0]
    if len(given) == 1 and isinstance(first, tree.Call) and first.receiver is None:
        return _function(span, first, value, rule)
    if rule is not None:
        raise ProgramSyntaxError(
            "only a function has a backward",
            hint="write f(x) = … backward(g) = …",
            span=Span(rule.span.start, rule.span.start + len("backward")),
        )
    return tree.Assign(span, tuple(_target(g, value) for g in given), value)


def annotated(target: tree.Expression, _: Token, annotation: tree.Expression, *rest: Any) -> tree.Statement:
    """`name: float = value`, whose annotation is ignored."""
    if not rest:
        raise ProgramSyntaxError(
            f"'{target.id}' is given no value" if isinstance(target, tree.Name) else "unexpected ':'",
            hint="write name = value",
            span=Span(target.span.start, annotation.span.end),
        )
    return assign(target, *rest)


def augment(target: tree.Expression, operator: Token, value: tree.Expression) -> tree.Augment:
    if not isinstance(target, (tree.Name, tree.Index)):
        raise _cannot_assign(target)
    symbol: Any = operator.value[:-1]
    return tree.Augment(Span(target.span.start, value.span.end), target, symbol, place(operator), value)


def _target(node: tree.Expression, value: tree.Expression) -> tree.SyntaxNode:
    """The target of an assignment. Raises ProgramSyntaxError where it does not fit a display of values."""
    # A worklist, as parentheses may be nested deeper than Python's recursion limit; inner targets follow outer ones.
    given: list[tuple[tree.Expression, tree.Expression | None]] = [(node, value)]
    for target, display in given:
        if isinstance(target, tree.List) and target.items:
            values = display.items if type(display) is tree.Tuple else None
            if values is not None and len(values) != len(target.items):
                raise ProgramSyntaxError(
                    f"{len(target.items)} names do not fit {len(values)} values",
                    span=Span(values[0].span.start, values[-1].span.end),
                )
            given += zip(target.items, values or [None] * len(target.items))
        elif not isinstance(target, (tree.Name, tree.Index)):
            raise _cannot_assign(target)
    made: deque[tree.SyntaxNode] = deque()
    for target, _ in reversed(given):
        if isinstance(target, tree.List):
            # In this order, the inner targets of this one are at the front of the queue, the last one first.
            parts = [made.popleft() for _ in target.items]
            made.append(tree.TargetList(target.span, tuple(reversed(parts))))
        else:
            made.append(tree.BoundName(target.span, target.id) if isinstance(target, tree.Name) else target)
    return made[0]


def _cannot_assign(target: tree.Expression) -> ProgramSyntaxError:
    what, hint = "an expression", "'==' compares, and gradcli solve takes equations"
    match target:
        case tree.Number():
            what = "a number"
        case tree.String():
            what = "a string"
        case tree.Constant(_, value):
            what, hint = f"'{value}'", f"'{value}' is a reserved word; choose another name"
        case tree.List():
            what, hint = "a list", "several names stand without brackets, as in Q, R = qr(A)"
        case tree.Attribute(_, _, name):
            what, hint = f"the attribute '{name}'", "assign to a name without '.'"
        case tree.Call(_, name):
            what, hint = f"the method call '.{name}(…)'", "define a function as f(x) = …"
    return ProgramSyntaxError(f"cannot assign to {what}", hint=hint, span=target.span)


# Functions


def _function(span: Span, head: tree.Call, body: tree.Expression, rule: tree.Backward | None) -> tree.Define:
    given: tuple[tree.Expression | tree.Keyword, ...] = (*head.arguments, *head.keywords)
    parameters = tuple(_parameter(argument) for argument in given)
    check_parameters(parameters if rule is None else (*parameters, rule.cotangent))
    if rule is not None and len(rule.gradients) != len(parameters):
        raise _wrong_count(head.name, len(parameters), rule)
    return tree.Define(span, head.name, head.name_span, parameters, body, rule)


def _parameter(argument: tree.Expression | tree.Keyword) -> tree.Parameter:
    if isinstance(argument, tree.Name):
        return tree.Parameter(argument.span, argument.id, None, False)
    if isinstance(argument, tree.Keyword):
        return tree.Parameter(argument.span, argument.name, argument.value, False)
    raise ProgramSyntaxError(
        "a parameter is a name",
        hint="define a function as in f(a, b) = a*b; '==' compares",
        span=argument.span,
    )


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


def backward(word: Token, _1: Token, name: Token, _2: Token, _3: Token, gradients: Any) -> tree.Backward:
    span = Span(word.start_pos, gradients[-1].span.end)
    return tree.Backward(span, tree.BoundName(place(name), identifier(name)), gradients)


def def_(word: Token, name: Token, _: Token, *rest: Any) -> tree.Define:
    body: ParsedBlock = rest[-1]
    given = rest[0] if isinstance(rest[0], tuple) and not isinstance(rest[0], Token) else ()
    parameters = _with_kinds(given)
    check_parameters(parameters)
    span = Span(word.start_pos, body.end)
    within = Span(body.statements[0].span.start, body.end) if body.statements else span
    return tree.Define(span, identifier(name), place(name), parameters, tree.Block(within, body.statements), None)


def parameters(*children: Any) -> tuple[Any, ...]:
    return tuple(c for c in children if not isinstance(c, Token) or c.value in "*/")


def keyword_only(star: Token) -> Token:
    return star


def positional_only(slash: Token) -> Token:
    return slash


def _with_kinds(given: Sequence[Any]) -> tuple[tree.Parameter, ...]:
    """The parameters, with those after a `*` marked as keyword-only."""
    found: list[tree.Parameter] = []
    behind = False
    for parameter in given:
        if isinstance(parameter, Token):
            behind = behind or parameter.value == "*"
        else:
            found.append(tree.Parameter(parameter.span, parameter.name, parameter.default, behind))
    return tuple(found)


def return_(word: Token, value: tree.Expression | None = None) -> tree.Return:
    return tree.Return(Span(word.start_pos, value.span.end if value else word.end_pos), value)


# Control flow


def break_(word: Token) -> tree.Break:
    return tree.Break(place(word))


def continue_(word: Token) -> tree.Continue:
    return tree.Continue(place(word))


def pass_(word: Token) -> tree.Pass:
    return tree.Pass(place(word))


def if_(
    word: Token,
    test: tree.Expression,
    body: ParsedBlock,
    otherwise: ParsedBlock | tree.If | None = None,
) -> tree.If:
    orelse: tuple[tree.Statement, ...] = ()
    end = body.end
    if isinstance(otherwise, tree.If):
        orelse, end = (otherwise,), otherwise.span.end
    elif otherwise is not None:
        orelse, end = otherwise
    return tree.If(Span(word.start_pos, end), test, body.statements, orelse)


def else_(_: Token, otherwise: ParsedBlock | tree.If) -> ParsedBlock | tree.If:
    return otherwise


def for_(word: Token, targets: tree.SyntaxNode, _: Token, iterable: tree.Expression, body: ParsedBlock) -> tree.For:
    return tree.For(Span(word.start_pos, body.end), targets, iterable, body.statements)


def while_(word: Token, test: tree.Expression, body: ParsedBlock) -> tree.While:
    return tree.While(Span(word.start_pos, body.end), test, body.statements)


# Imports


class _Module(NamedTuple):
    name: str
    span: Span


def dotted(*parts: Token) -> _Module:
    return _Module("".join(p.value for p in parts), Span(parts[0].start_pos, parts[-1].end_pos))


def module(name: _Module, *_alias: Token) -> _Module:
    return name


def everything(star: Token) -> _Module:
    return _Module("", place(star))


def import_(word: Token, *rest: Any) -> tree.Import:
    """`import a, b` or `from a import b`. The names were resolved before, in `libraries`."""
    from gradcli.language.syntax import import_prefixes

    modules = [part for part in rest if isinstance(part, _Module)]
    span = Span(word.start_pos, modules[-1].span.end)
    if word.value == "from":
        modules = modules[:1]
    for found in modules:
        if not import_prefixes.known(found.name):
            raise ProgramSyntaxError(
                f"'{found.name}' cannot be imported",
                hint="math, numpy, scipy, torch and jax can; define what else is needed as f(x) = …",
                span=found.span,
            )
    return tree.Import(span, " ".join(found.name.partition(".")[0] for found in modules))
