"""Where a function of numbers of flint is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

_HOMES = ("flint_functions", "flint_elementary", "flint_special", "flint_bessel")


@cache
def of_numbers(name: str) -> Callable[..., Any] | None:
    """The function of numbers of this name, None where there is none. What is asked for often comes first."""
    for home in _HOMES:
        found: Callable[..., Any] | None = getattr(import_module(f"gradcli.arrays.{home}"), name, None)
        if found is not None:
            return found
    return None
