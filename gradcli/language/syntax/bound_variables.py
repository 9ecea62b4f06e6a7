"""Calls that bind a variable, such as `integrate(exp(-t), t, 0, x)`, as calls with a function of that variable."""

from __future__ import annotations

from gradcli.errors import Span
from gradcli.language.syntax import tree

# The functions whose first argument may be an expression in a variable that another argument names. The number of
# arguments is that of a call with the variable by itself, as in `limit(sin(x)/x, x, 0)`.
BINDING = {"integrate": 4, "nsum": 4, "summation": 4, "limit": 3}


def with_function(call: tree.Call) -> tree.Call:
    """The call with `lambda t: expression` in place of the expression and the variable t; any other call unchanged.

    The variable is the first argument after the expression that is a name which the expression reads, or the last one:
    `integrate(expr, t, a, b)` and `integrate(expr, a, b, t)`. A tuple `(t, a, b)` binds t as well; of several, the
    first is the innermost. A point of a limit that is neither a name nor a number becomes a function too, although it
    does not read the variable: a limit computes the point together with the expression.
    """
    if call.name not in BINDING or call.receiver is not None or len(call.arguments) < 2:
        return call
    expression, *rest = call.arguments
    if all(isinstance(a, tree.Tuple) and len(a.items) > 1 and _is_variable(a.items[0]) for a in rest):
        for part in rest:
            variable, *limits = part.items  # type: ignore[attr-defined]
            expression = _bound(call, expression, variable, tuple(limits))
        return expression  # type: ignore[return-value]
    place = _place_of_variable(expression, rest, BINDING[call.name])
    if place is None:
        return call
    variable, limits = rest[place], (*rest[:place], *rest[place + 1 :])
    if call.name == "limit" and not isinstance(limits[0], (tree.Name, tree.Number)) and not _reads(limits[0], variable):
        limits = (_function_of(variable, limits[0]), *limits[1:])
    return _bound(call, expression, variable, limits)


def _bound(
    call: tree.Call, expression: tree.Expression, variable: tree.SyntaxNode, limits: tuple[tree.Expression, ...]
) -> tree.Call:
    function = _function_of(variable, expression)
    return tree.Call(call.span, call.name, call.name_span, None, (function, *limits), call.keywords, call.module)


def _function_of(variable: tree.SyntaxNode, expression: tree.Expression) -> tree.Lambda:
    assert isinstance(variable, tree.Name)
    parameter = tree.Parameter(variable.span, variable.id, None, False)
    return tree.Lambda(Span(expression.span.start, expression.span.end), (parameter,), expression)


def _place_of_variable(expression: tree.Expression, rest: list[tree.Expression], count: int) -> int | None:
    if len(rest) + 1 < count or isinstance(expression, tree.Lambda):
        return None
    if _is_variable(rest[0]) and (_reads(expression, rest[0]) or isinstance(expression, tree.Number)):
        return 0
    return 2 if count == 4 and _is_variable(rest[2]) and _reads(expression, rest[2]) else None


def _is_variable(node: tree.SyntaxNode) -> bool:
    return isinstance(node, tree.Name) and not node.module


def _reads(expression: tree.Expression, variable: tree.SyntaxNode) -> bool:
    return any(isinstance(n, tree.Name) and n.id == variable.id for n in tree.walk(expression))  # type: ignore[attr-defined]
