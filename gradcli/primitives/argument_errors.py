"""Errors for calls with arguments of unsupported types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradcli import arrays
from gradcli.errors import CallError, EvaluationError, GradcliError
from gradcli.primitives.bind import Kind
from gradcli.type_hints import Any

# The exceptions that Python and array libraries raise for arguments of unsupported types or values.
FOREIGN = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


def refuse(name: str, arguments: Sequence[Any], named: Mapping[str, Any], error: Exception) -> None:
    """Raise an error that names the argument that caused `error`; return if `error` is gradcli's own or no argument is
    at fault."""
    if isinstance(error, GradcliError):
        return
    given = [*arguments, *named.values()]
    for blamed in (_no_value, _no_operand, _too_large):
        for value in given:
            found = blamed(name, value)
            if found is not None:
                raise found from error


def _no_value(name: str, value: Any) -> GradcliError | None:
    """The error for a value that no function accepts, else None."""
    if (
        value is None
        or isinstance(value, bool | int | float | complex | str | slice | range | Kind)
        or value is Ellipsis
    ):
        return None
    if isinstance(value, list | tuple):
        return next(filter(None, (_no_value(name, item) for item in _flat(value))), None)
    if arrays.is_array(value) and getattr(value.dtype, "kind", "f") in "fiubc":
        return None
    if arrays.is_array(value):
        return CallError(f"'{name}' takes no array of {value.dtype}", hint="give it numbers")
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
    """The error for a value that functions accept as a parameter but not as an operand, else None."""
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
