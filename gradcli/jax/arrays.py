"""Arrays of NumPy as tensors, which is what functions of JAX give and take."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.calculus.containers import mapped
from gradcli.calculus.mapping import as_tensor


def to_tensor(x: Any) -> Any:
    """An array, or a number of NumPy, as a tensor; all else as it is."""
    return as_tensor(x) if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biuf" else x


def of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy or SciPy that gives tensors."""

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        return mapped(to_tensor, function(*arguments, **keywords))

    return called


def given_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's that is given tensors for arrays, and gives them."""

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        positional, named = mapped(to_tensor, (arguments, keywords))
        return mapped(to_tensor, function(*positional, **named))

    return called


def from_module(module: Any, name: str) -> Any:
    """A name of a module whose functions give tensors; its constants and types are as they are."""
    found = getattr(module, name)
    return of_tensors(found) if callable(found) and not isinstance(found, type) else found
