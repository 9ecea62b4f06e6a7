"""The names of `autograd.builtins`: Python's containers, and an `isinstance` for which a tensor is an array."""

from __future__ import annotations

import builtins
from typing import Any

from gradcli.primitives.bind import Kind

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple
__all__ = ["dict", "isinstance", "list", "tuple"]


def isinstance(value: Any, kinds: Any) -> bool:
    """Like Python's `isinstance`, except that a tensor is also an instance of `numpy.ndarray`."""
    if builtins.isinstance(value, kinds):
        return True
    return builtins.isinstance(value, Kind) and _has_arrays(kinds)


def _has_arrays(kinds: Any) -> bool:
    if builtins.isinstance(kinds, tuple):
        return any(map(_has_arrays, kinds))
    return getattr(kinds, "__module__", "") == "numpy" and getattr(kinds, "__name__", "") == "ndarray"
