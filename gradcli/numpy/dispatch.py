"""Wraps functions of NumPy so that tensors inside lists are found, where NumPy would take their values only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.autograd.operations.numpy_protocols import call_function
from gradcli.calculus.functions.pytrees import leaves
from gradcli.errors import CallError
from gradcli.primitives import table
from gradcli.primitives.bind import Kind


def dispatched(function: Callable[..., Any], name: str, *dialects: str) -> Callable[..., Any]:
    """A library's function that calls gradcli's function with that name and meaning where arguments contain tensors."""
    found = table.find(name, *dialects)
    if found is None:
        return function

    @functools.wraps(function)
    def either(*arguments: Any, **keywords: Any) -> Any:
        return (found if has_tensors((arguments, keywords)) else function)(*arguments, **keywords)

    return either


def dispatching(function: Any) -> Any:
    """A name of NumPy; functions also find tensors inside lists, where NumPy's dispatch does not look. Ufuncs, types
    and constants are unchanged."""
    if not callable(function) or isinstance(function, (type, np.ufunc)):
        return function

    @functools.wraps(function)
    def either(*arguments: Any, **keywords: Any) -> Any:
        if has_tensors((arguments, keywords)):
            return call_function(function, (), arguments, keywords)
        return function(*arguments, **keywords)

    return either


def has_tensors(value: Any) -> bool:
    """Return whether arguments, or containers among them, contain a tensor."""
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
