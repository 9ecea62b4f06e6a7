"""Reductions that Python, NumPy and mathematics read differently: resolves them, or raises an error with both
readings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.errors import CallError, EvaluationError, Proposal
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Evaluator, Scope
from gradcli.language.interpreter.values import Value, as_tensor_or_number
from gradcli.language.syntax import tree
from gradcli.primitives.entries.arithmetic import add, multiply
from gradcli.primitives.entries.comparisons import maximum, minimum
from gradcli.primitives.entries.reductions import max_, min_, prod, sum_
from gradcli.primitives.entries.shape import stack
from gradcli.primitives.operation import Operation

_OF_TWO: Mapping[str, Callable[..., Value]] = {"max": maximum, "min": minimum, "sum": add, "prod": multiply}
_OF_ALL: Mapping[str, Callable[..., Value]] = {"max": max_, "min": min_, "sum": sum_, "prod": prod}


def resolve_reduction(
    machine: Evaluator,
    node: tree.Call,
    operation: Operation,
    positional: Sequence[Value],
    keywords: Mapping[str, Value],
    scope: Scope,
) -> Callable[[], Value] | None:
    """The computation of a reduction of several operands or of a list, None where it is a reduction of one tensor.

    Raises CallError and EvaluationError for ambiguous calls.
    """
    if keywords or not positional:
        return None
    python = not node.module and node.receiver is None
    first = positional[0]
    if python and len(positional) == 1 and operation.name in _OF_TWO and isinstance(first, ProgramList):
        return functools.partial(_of_list, node, operation.name, first)
    if python and machine.imports and operation.name in _OF_TWO and _is_matrix(first):
        raise EvaluationError(
            f"Python's '{node.name}' of a matrix goes along its rows, and the library's over all elements",
            hint=f"write {node.name}(x, axis=0) for the first, np.{node.name}(x) for the second",
            span=node.span,
        )
    if python and len(positional) == 2 and operation.name == "sum" and _is_made_list(first):
        return lambda: add(as_tensor_or_number(positional[1], "'sum'"), _of_list(node, "sum", first))
    if len(positional) < 2 or len(operation.parameters) < 2 or operation.parameters[1].name != "axis":
        return None
    if python and operation.name not in _OF_TWO_AT_LEAST and isinstance(tree.positional(node)[0], tree.Number):
        raise _no_tensor(machine, node)
    outer = _input(machine, tree.positional(node)[1], scope)
    if operation.name in _OF_TWO_AT_LEAST and (python or (operation.dialects and outer is not None)):
        _check_operands(node, operation.name, positional)
        values = [as_tensor_or_number(v, f"'{node.name}'") for v in positional]
        return lambda: functools.reduce(_OF_TWO[operation.name], values)
    if outer is not None:
        raise _no_axis(machine, node, operation.name, outer)
    return None


_OF_TWO_AT_LEAST = ("max", "min")


def _no_tensor(machine: Evaluator, node: tree.Call) -> CallError:
    """The error for a reduction of numbers as separate arguments, as in `mean(1, 2, 3)`."""
    places = [argument.span for argument in tree.positional(node)]
    written = f"{node.name}([{machine.program.source[places[0].start : places[-1].end]}])"
    return CallError(
        f"'{node.name}' takes one tensor, and {len(places)} arguments were given",
        hint=Proposal(f"write {written}", written),
        span=node.span,
    )


def _no_axis(machine: Evaluator, node: tree.Call, name: str, outer: tree.Name) -> CallError:
    """The error for an input that is passed by position as an axis."""
    whole, given = (machine.program.source[a.span.start : a.span.end] for a in tree.positional(node)[:2])
    both = {"max": f"maximum({whole}, {given})", "min": f"minimum({whole}, {given})", "sum": f"{whole} + {given}"}
    other = f", {both[name]} for both, element by element" if name in both else ""
    return CallError(
        f"'{outer.id}' is an input, and the second argument of '{node.name}' is an axis",
        hint=f"{node.name}({whole}, axis={given}) for an axis{other}",
        span=tree.positional(node)[1].span,
    )


def _is_matrix(value: Value) -> bool:
    return (
        not isinstance(value, (ProgramList, str, type(None)))
        and len(arrays.shape(as_tensor_or_number(value, "a reduction"))) > 1
    )


def _is_made_list(value: Value) -> bool:
    return isinstance(value, ProgramList) and value.made in ("generated", "grown")


def _input(machine: Evaluator, argument: tree.Expression, scope: Scope) -> tree.Name | None:
    """The first input that an argument is, or is computed from by operators; None where there is none."""
    parts: list[tree.SyntaxNode] = [argument]
    for part in parts:
        if isinstance(part, tree.Name) and not part.module and machine.is_input(part.id, scope):
            return part
        if isinstance(part, (tree.Unary, tree.Binary)):
            parts += tree.children(part)
    return None


def _check_operands(node: tree.Call, name: str, positional: Sequence[Value]) -> None:
    """Raise CallError for a literal whole number after a tensor, which may be an axis or an operand."""
    second = tree.positional(node)[1]
    literal = second.operand if isinstance(second, tree.Unary) else second
    if not isinstance(literal, tree.Number) or not literal.value.is_integer():
        return
    if len(positional) == 2 and arrays.shape(as_tensor_or_number(positional[0], "an operand")):
        text = f"{'-' * isinstance(second, tree.Unary)}{literal.value:g}"
        raise CallError(
            f"{node.name}(x, {text}) can be an axis, or the {name}imum of each element and {text}",
            hint=f"write {node.name}(x, axis={text}) or {name}imum(x, {text})",
            span=node.span,
        )


def _of_list(node: tree.Call, name: str, given: ProgramList) -> Value:
    """Reduce a list item by item, as Python does.

    Raises EvaluationError for a display of tensors, which NumPy reduces as a whole.
    """
    if given.is_vector:
        return _OF_ALL[name](as_tensor_or_number(given, f"'{name}'"))
    limits.charge_steps(len(given.items))
    items = [as_tensor_or_number(i, f"'{name}'") for i in given.items]
    shapes = {arrays.shape(i) for i in items}
    if shapes <= {()}:
        return _OF_ALL[name](as_tensor_or_number(given, f"'{name}'"))
    if not _is_made_list(given):
        python = {"sum": "adds the items", "prod": "multiplies the items"}.get(name, "compares the items")
        numpy = {"sum": "adds all elements", "prod": "multiplies all elements"}.get(name, "compares all elements")
        raise EvaluationError(
            f"'{name}' of a list of tensors {python} in Python, and {numpy} in NumPy",
            hint=f"write {name}([…], axis=0) for the first, np.{name}([…]) for the second",
            span=node.span,
        )
    if len(shapes) == 1:
        return _OF_ALL[name](stack(items), axis=0)
    return functools.reduce(_OF_TWO[name], items)
