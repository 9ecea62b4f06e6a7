"""Functions of NumPy where tensors stand in lists, of which NumPy would take the numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.autograd.numpy_protocols import call_function
from gradcli.calculus.containers import leaves
from gradcli.errors import CallError
from gradcli.primitives import table
from gradcli.primitives.bind import Kind


def dispatched(function: Callable[..., Any], name: str, *dialects: str) -> Callable[..., Any]:
    """The function of a library, and for calls with tensors the one of gradcli that has its name and meaning."""
    found = table.find(name, *dialects)
    if found is None:
        return function

    @functools.wraps(function)
    def either(*arguments: Any, **keywords: Any) -> Any:
        return (found if has_tensors((arguments, keywords)) else function)(*arguments, **keywords)

    return either


def recorded(function: Any) -> Any:
    """A name of NumPy. Its functions find tensors in lists too, in which NumPy does not look for them; ufuncs, types and
    constants are as they are."""
    if not callable(function) or isinstance(function, (type, np.ufunc)):
        return function

    @functools.wraps(function)
    def either(*arguments: Any, **keywords: Any) -> Any:
        if has_tensors((arguments, keywords)):
            return call_function(function, (), arguments, keywords)
        return function(*arguments, **keywords)

    return either


def has_tensors(value: Any) -> bool:
    """Whether there is a tensor among arguments, and in their lists."""
    return any(isinstance(leaf, Kind) for leaf in leaves(value))


array, asarray, asanyarray, full = (
    dispatched(getattr(np, name), own)
    for name, own in (("array", "array"), ("asarray", "asarray"), ("asanyarray", "asarray"), ("full", "full"))
)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:  # noqa: N803
    """Matrices with the last axis of D on their diagonals, as the last two axes: `autograd.numpy.make_diagonal`."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise CallError("make_diagonal takes offset=0, axis1=-1 and axis2=-2 alone")
    return table.known("diag_embed")(D)
