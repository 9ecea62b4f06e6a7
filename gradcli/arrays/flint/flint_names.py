"""Find the module and the function of FLINT numbers that belong to a name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

_HOMES = (
    "flint_functions",
    "flint_elementary",
    "flint_special",
    "flint_incomplete",
    "flint_bessel",
    "flint_analytic",
    "flint_inverses",
    "flint_reciprocals",
)


@cache
def home_of(name: str) -> str | None:
    """The module of the function of numbers with this name, None if there is none.

    Modules used most are searched first.
    """
    return next((home for home in _HOMES if hasattr(import_module(f"gradcli.arrays.flint.{home}"), name)), None)


@cache
def of_numbers(name: str) -> Callable[..., Any] | None:
    """The function of numbers with this name, None if there is none."""
    home = home_of(name)
    return None if home is None else getattr(import_module(f"gradcli.arrays.flint.{home}"), name)
