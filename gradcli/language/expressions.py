"""The values of expressions other than calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.modes import current_span
from gradcli.errors import GradcliError, UnknownNameError, nearest
from gradcli.language.machine import Machine, Task
from gradcli.language.operations import ATTRIBUTES, BINARY, COMPARE
from gradcli.language.stable import Rewritten
from gradcli.language.syntax import tree
from gradcli.language.values import Value, in_dtype, number, one_of, truth
from gradcli.primitives import arithmetic, table
from gradcli.primitives.bind import assume
from gradcli.primitives.comparisons import logical_not, where
from gradcli.primitives.indexing import index
from gradcli.primitives.shape import stack

# To stack tensors, beside what any operation on arrays takes, in eighths of steps.
_STACK = 24


def _list(machine: Machine, node: tree.List) -> Task:
    items = []
    for item in node.items:
        items.append(number((yield item), "a tensor"))
    current_span.set(node.span)
    if items and all(type(i) is bool for i in items):
        return arrays.placed(arrays.asarray(items))
    if all(type(i) in arrays.PLAIN for i in items):
        return arrays.placed(arrays.asarray([float(i) for i in items], arrays.default_dtype()))
    limits.charge_steps(_STACK)
    return stack([in_dtype(i) for i in items])


def _unary(machine: Machine, node: tree.Unary) -> Task:
    value = yield node.operand
    if node.operator == "not":
        return not truth(value, node.operand)
    value = number(value, f"'{node.operator}'")
    return machine.apply(node, "negative", arithmetic.negative, value) if node.operator == "-" else value


def _binary(machine: Machine, node: tree.Binary) -> Task:
    left = yield node.left
    right = yield node.right
    operation = BINARY[node.operator]
    left, right = number(left, f"'{node.operator}'"), number(right, f"'{node.operator}'")
    return machine.apply(node, operation.name, operation, left, right)


def _compare(machine: Machine, node: tree.Compare) -> Task:
    left = yield node.operands[0]
    result: Value = True
    for operator, operand in zip(node.operators, node.operands[1:]):
        right = yield operand
        left, right = number(left, f"'{operator}'"), number(right, f"'{operator}'")
        result = machine.apply(node, COMPARE[operator].name, COMPARE[operator], left, right)
        left = right
        if operand is not node.operands[-1] and not truth(result, node):
            break
    return result


def _logical(machine: Machine, node: tree.Logical) -> Task:
    left = yield node.left
    if truth(left, node.left) == (node.operator == "or"):
        return left
    return (yield node.right)


def _conditional(machine: Machine, node: tree.Conditional) -> Task:
    test = yield node.test
    return (yield node.body if truth(test, node.test) else node.orelse)


def _stable_form(machine: Machine, node: Rewritten) -> Task:
    rule = node.rule
    if rule.when is None:
        machine.rewritten[node] = None
        return (yield node.stable)
    values = {}
    for name, part in node.parts.items():
        values[name] = number((yield part), f"'{rule.pattern}'")
    holds = rule.when(**values)
    everywhere = assume(holds)
    if everywhere or rule.apart is None or assume(logical_not(holds)):
        return (yield from _in_one_form(machine, node, values, stable=everywhere))
    within, without = ({n: where(holds, *pair) for n, pair in pairs.items()} for pairs in _apart(values, rule.apart))
    stable = yield from _in_one_form(machine, node, within, stable=True)
    original = yield from _in_one_form(machine, node, without, stable=False)
    return where(holds, stable, original)


def _apart(values: Mapping[str, Value], numbers: tuple[float, float]) -> Sequence[Mapping[str, tuple[Value, Value]]]:
    """What each name stands for in the stable form, and in the original one: where the condition holds, and else."""
    within, without = numbers
    return {n: (v, within) for n, v in values.items()}, {n: (without, v) for n, v in values.items()}


def _in_one_form(machine: Machine, node: Rewritten, values: Mapping[str, Value], *, stable: bool) -> Task:
    # The forms read the parts again, which must not evaluate them again.
    machine.held.update({part: values[name] for name, part in node.parts.items()})
    try:
        if stable:
            machine.rewritten[node] = None
            return (yield node.stable)
        return (yield from machine.handlers[type(node.original)](machine, node.original))
    finally:
        # The form that is used in place of this one may have let go of them already.
        for part in node.parts.values():
            machine.held.pop(part, None)


def _attribute(machine: Machine, node: tree.Attribute) -> Task:
    value = number((yield node.value), f"'.{node.name}'")
    if node.name not in ATTRIBUTES:
        raise _unknown_attribute(node)
    return machine.apply(node, node.name, ATTRIBUTES[node.name], value)


def _unknown_attribute(node: tree.Attribute) -> GradcliError:
    if table.find(node.name) is not None:
        hint = f"'{node.name}' is a method: call it, as in x.{node.name}()"
    else:
        close = nearest(node.name, ATTRIBUTES)
        hint = f"did you mean '.{close}'?" if close else f"attributes are .{', .'.join(ATTRIBUTES)}"
    return UnknownNameError(f"unknown attribute '{node.name}'", hint=hint, span=node.name_span)


def _index(machine: Machine, node: tree.Index) -> Task:
    value = yield node.value
    items: Sequence[tree.SyntaxNode] = node.items
    if len(items) == 1 and isinstance(items[0], tree.Tuple):
        items = items[0].items
    key = []
    for item in items:
        key.append((yield from _index_item(item)))
    if isinstance(value, tuple):
        return one_of(value, key)
    value = number(value, "an index")
    return machine.apply(node, "index", index, value, tuple(key))


def _index_item(item: tree.SyntaxNode) -> Task:
    if isinstance(item, tree.Ellipsis):
        return Ellipsis
    if isinstance(item, tree.Slice):
        bounds = []
        for bound in (item.start, item.stop, item.step):
            bounds.append(None if bound is None else (yield bound))
        return slice(*bounds)
    return (yield item)


def _constant(_machine: Machine, node: Any, _names: object, _opaque: object) -> Value:
    return node.value


HANDLERS: dict[type, Callable[..., Task]] = {
    tree.List: _list,
    tree.Tuple: _list,
    tree.Unary: _unary,
    tree.Binary: _binary,
    tree.Compare: _compare,
    tree.Logical: _logical,
    tree.Conditional: _conditional,
    tree.Attribute: _attribute,
    tree.Index: _index,
    Rewritten: _stable_form,
}

SIMPLE: dict[type, Callable[..., Value]] = {
    tree.Number: _constant,
    tree.String: _constant,
    tree.Constant: _constant,
    tree.Name: Machine.lookup,
}
