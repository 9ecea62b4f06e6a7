"""JAX's functional updates, `x.at[i].set(v)`, which return a new tensor with replaced elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli import arrays
from gradcli.errors import CallError
from gradcli.language.interpreter import call_arguments
from gradcli.language.interpreter.machine import Evaluator, Task, arguments_of
from gradcli.language.interpreter.statements import evaluate_index
from gradcli.language.interpreter.values import Value, as_tensor_or_number
from gradcli.language.syntax import tree
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import add, divide, multiply
from gradcli.primitives.entries.comparisons import maximum, minimum
from gradcli.primitives.entries.indexing import index, scatter
from gradcli.primitives.entries.manipulation.functional_update import set_at
from gradcli.primitives.entries.powers import power
from gradcli.primitives.signature import parse_signature


def _added(x: Value, key: Any, value: Value) -> Value:
    # Values for repeated indices are all added.
    taken = arrays.shape(index(x, key))
    return add(x, scatter(broadcast_to(value, taken), key, arrays.shape(x)))


def _combined(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Any, Value], Value]:
    return lambda x, key, value: set_at(x, key, operation(index(x, key), value))


_RULES: Mapping[str, Callable[[Value, Any, Value], Value]] = {
    "set": set_at,
    "add": _added,
    "multiply": _combined(multiply),
    "mul": _combined(multiply),
    "divide": _combined(divide),
    "min": _combined(minimum),
    "max": _combined(maximum),
    "power": _combined(power),
}


def evaluate_update(machine: Evaluator, node: tree.Call) -> Task:
    """Evaluate the update and return the new tensor. Raises CallError for an unknown method of `at`."""
    if node.name not in _RULES:
        raise CallError(
            f"'.at[…].{node.name}' is not known", hint=f"x.at[i].set(v), or .{', .'.join(_RULES)}", span=node.name_span
        )
    place = node.receiver
    assert isinstance(place, tree.Index)
    assert isinstance(place.value, tree.Attribute)
    x = as_tensor_or_number((yield place.value.value), "'.at'")
    key = yield from evaluate_index(machine, place)
    positional, keywords = yield from arguments_of(node.arguments, node.keywords)
    call_arguments.fit(node.name, parse_signature("values"), positional, keywords)
    value = as_tensor_or_number([*positional, *keywords.values()][0], f"'{node.name}'")
    return _RULES[node.name](x, key, value)
