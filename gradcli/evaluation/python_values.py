"""Converts the arguments of compiled programs to values of the language, and results back to numbers and arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError, expect
from gradcli.primitives.bind import concrete
from gradcli.primitives.operators import operand
from gradcli.type_hints import Any

# NumPy dtype kinds that are rejected: durations and dates.
_NO_NUMBERS = "mM"


def names_tuple(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple. Raises CallError for anything that is not a sequence of names."""
    try:
        found = tuple(names)
    except TypeError:
        raise CallError(f"names are given as a list of them, not {type(names).__name__}") from None
    for name in found:
        expect(name, str, "a name is a text")
    return found


def value(given: Any, *, truths: bool = False) -> Any:
    """Convert a number, array, list or Tensor to a value of the language, whose numbers are floats or complex.

    With `truths`, boolean arrays are returned unconverted. Raises EvaluationError for an array of dates and the like.
    """
    if isinstance(given, Tensor):
        return given
    array = operand(given)
    if arrays.is_inexact(array) or (truths and is_boolean_array(array)):
        return array
    # NumPy would silently turn dates into day counts.
    if type(array) not in arrays.PYTHON_NUMBERS and getattr(array.dtype, "kind", "f") in _NO_NUMBERS:
        raise EvaluationError(f"cannot make an array of numbers from {array.dtype} values")
    return arrays.astype(array, "float64")


def in_namespace(given: Any, namespace: arrays.Namespace) -> Any:
    """Convert a NumPy array to `namespace`, the array library of the other inputs; numbers and Tensors stay as they
    are."""
    return given if isinstance(given, Tensor) or type(given) in arrays.PYTHON_NUMBERS else namespace.asarray(given)


def dtype(bindings: Mapping[str, Any]) -> str:
    """Return "float32" where every array has that precision, else "float64". Python floats and complex numbers do not count."""
    values = (concrete(b) for b in bindings.values())
    given = {arrays.real_dtype(arrays.dtype_name(v)) for v in values if type(v) not in (float, complex)}
    return "float32" if given == {"float32"} else "float64"


def is_boolean_array(given: Any) -> bool:
    """Return whether an input is a boolean array (not a scalar), which selects elements and is not differentiated."""
    if type(given) in arrays.PYTHON_NUMBERS:
        return False
    array = concrete(given)
    return arrays.dtype_name(array) == "bool" and bool(arrays.shape(array))


def leaf(given: Any) -> Tensor:
    return Tensor(given.inner if isinstance(given, Tensor) else given).requires_grad_(not is_boolean_array(given))


def plain(result: Any, inputs: Mapping[str, Any]) -> Any:
    """Return a result as a number, or as an array that shares no memory with `inputs`; booleans become 0 and 1."""
    if type(result) is float:
        return result
    return _apart_from(map(concrete, inputs.values()), result)


def plain_by_name(results: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return results as `plain` does, none of which shares memory with another."""
    found: dict[str, Any] = {}
    others = [*map(concrete, inputs.values())]
    for name, result in results.items():
        found[name] = _apart_from(others, result)
        others.append(found[name])
    return found


def _apart_from(others: Iterable[Any], result: Any) -> Any:
    if type(result) is float:
        return result
    array = concrete(result)
    if array is None or arrays.is_inexact(array):
        return arrays.unshared(array, others)
    return arrays.astype(array, "float64")
