"""The error of a call whose arguments are nothing to compute with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import CallError, EvaluationError, GradcliError
from gradcli.primitives.bind import Kind

# What Python and array libraries raise for arguments of another type than they take.
FOREIGN = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


def refuse(name: str, arguments: Sequence[Any], named: Mapping[str, Any], error: Exception) -> None:
    """Raise the error that names the argument which `error` came of, unless `error` is gradcli's, or none is to blame."""
    if isinstance(error, GradcliError):
        return
    given = [*arguments, *named.values()]
    for blamed in (_no_value, _no_operand, _too_large):
        for value in given:
            found = blamed(name, value)
            if found is not None:
                raise found from error


def _no_value(name: str, value: Any) -> GradcliError | None:
    """The error for what no function takes."""
    if value is None or isinstance(value, bool | int | float | str | slice | range | Kind) or value is Ellipsis:
        return None
    if isinstance(value, list | tuple):
        return next(filter(None, (_no_value(name, item) for item in _flat(value))), None)
    if arrays.is_array(value) and getattr(value.dtype, "kind", "f") in "fiub":
        return None
    if arrays.is_array(value):
        return CallError(f"'{name}' takes no array of {value.dtype}", hint="give it real numbers")
    return CallError(f"'{name}' takes no {type(value).__name__}", hint="give it numbers, arrays or tensors")


def _flat(values: Any) -> Any:
    """The items of nested sequences, without recursion."""
    left = [iter(values)]
    while left:
        for item in left[-1]:
            if isinstance(item, list | tuple):
                left.append(iter(item))
                break
            yield item
        else:
            left.pop()


def _no_operand(name: str, value: Any) -> GradcliError | None:
    """The error for what some functions take, as a parameter."""
    if value is None or isinstance(value, str | slice | range) or value is Ellipsis:
        return CallError(f"'{name}' takes no {value!r} there", hint=f"gradcli ops {name} shows what it takes")
    if isinstance(value, list | tuple):
        try:
            arrays.asarray(value)
        except GradcliError as error:
            return error
    return None


def _too_large(_name: str, value: Any) -> GradcliError | None:
    items = _flat(value) if isinstance(value, list | tuple) else (value,)
    for item in items:
        if isinstance(item, int):
            try:
                float(item)
            except OverflowError:
                return EvaluationError("an integer is too large for a float")
    return None
