"""Flattens containers of numbers, arrays and tensors to one vector, a NumPy array if there are no tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.calculus.functions import flattening, pytrees
from gradcli.calculus.functions.differential_operators import as_array
from gradcli.numpy.dispatch import has_tensors


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers in tuples, lists and dicts (by sorted keys) as one vector, and the function that restores the
    container from such a vector."""
    vector, fill = flattening.flatten(_with_sorted_keys(value))

    def unflatten(given: Any) -> Any:
        return fill(given) if has_tensors(given) else pytrees.mapped(as_array, fill(given))

    return (vector if has_tensors(value) else as_array(vector)), unflatten


def _with_sorted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, (tuple, list)):
        items = [_with_sorted_keys(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """`func` as a function of a vector in place of its first argument, whose structure `example` shows; the function
    that restores the container; and the vector of the example."""
    vector, unflatten = flatten(example)

    def of_vector(given: Any, *arguments: Any, **keywords: Any) -> Any:
        return flatten(func(unflatten(given), *arguments, **keywords))[0]

    return of_vector, unflatten, vector
