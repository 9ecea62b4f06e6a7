"""Converts NumPy arrays to tensors, which the functions of `gradcli.jax` accept and return."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.calculus.functions.mapping import as_tensor
from gradcli.calculus.functions.pytrees import mapped


def to_tensor(x: Any) -> Any:
    """A NumPy array or scalar of numbers as a tensor; anything else unchanged."""
    return as_tensor(x) if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biuf" else x


def returning_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of NumPy or SciPy so that it returns tensors."""

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        return mapped(to_tensor, function(*arguments, **keywords))

    return called


def with_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user's function so that it receives and returns tensors instead of arrays."""

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        positional, named = mapped(to_tensor, (arguments, keywords))
        return mapped(to_tensor, function(*positional, **named))

    return called


def from_module(module: Any, name: str) -> Any:
    """An attribute of a module; functions are wrapped to return tensors, constants and types are unchanged."""
    found = getattr(module, name)
    return returning_tensors(found) if callable(found) and not isinstance(found, type) else found
