"""What compiled programs take and give: Python's numbers, arrays and lists as values of the language, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError, expect
from gradcli.primitives.bind import concrete
from gradcli.primitives.operators import operand

# The kinds of complex numbers, times and durations.
_NO_NUMBERS = "cmM"


def listed(names: Sequence[str]) -> tuple[str, ...]:
    """Names as a tuple. Raises CallError for anything else."""
    try:
        found = tuple(names)
    except TypeError:
        raise CallError(f"names are given as a list of them, not {type(names).__name__}") from None
    for name in found:
        expect(name, str, "a name is a text")
    return found


def value(given: Any, *, truths: bool = False) -> Any:
    """A number, array, list or Tensor as a value of the language, where all numbers are floats; with `truths` a tensor of
    truth values as it is.

    Raises EvaluationError for an array of complex numbers, dates and the like.
    """
    if isinstance(given, Tensor):
        return given
    array = operand(given)
    if arrays.is_floating(array) or (truths and is_truths(array)):
        return array
    # Of NumPy, which would take what is real of complex numbers, and count the days of dates.
    if type(array) not in arrays.PLAIN and getattr(array.dtype, "kind", "f") in _NO_NUMBERS:
        raise EvaluationError(f"cannot make an array of real numbers from {array.dtype} values")
    return arrays.astype(array, "float64")


def beside(given: Any, namespace: arrays.Namespace) -> Any:
    """An input that is an array of NumPy, beside others of a namespace, as one of it."""
    return given if isinstance(given, Tensor) or type(given) in arrays.PLAIN else namespace.asarray(given)


def dtype(bindings: Mapping[str, Any]) -> str:
    """float32 where every array is; a number alone has no say."""
    given = {arrays.dtype_name(concrete(b)) for b in bindings.values() if type(concrete(b)) is not float}
    return "float32" if given == {"float32"} else "float64"


def is_truths(given: Any) -> bool:
    """Whether an input is a tensor of truth values, which take elements and are differentiated by nothing."""
    if type(given) in arrays.PLAIN:
        return False
    array = concrete(given)
    return arrays.dtype_name(array) == "bool" and bool(arrays.shape(array))


def leaf(given: Any) -> Tensor:
    return Tensor(given.inner if isinstance(given, Tensor) else given).requires_grad_(not is_truths(given))


def plain(result: Any, inputs: Mapping[str, Any]) -> Any:
    """A result as a number, or an array that shares no memory with the `inputs`; truth values as 0 and 1."""
    return _apart_from(map(concrete, inputs.values()), result)


def plain_by_name(results: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Results as `plain` gives them, none of which shares memory with another."""
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
    if array is None or arrays.is_floating(array):
        return arrays.unshared(array, others)
    return arrays.astype(array, "float64")
