"""Arrays from lists with tensors in them, which NumPy would take the numbers of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.calculus.containers import leaves
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


def has_tensors(value: Any) -> bool:
    """Whether there is a tensor among arguments, and in their lists."""
    return any(isinstance(leaf, Kind) for leaf in leaves(value))


array, asarray, asanyarray, full = (
    dispatched(getattr(np, name), own)
    for name, own in (("array", "array"), ("asarray", "asarray"), ("asanyarray", "asarray"), ("full", "full"))
)
