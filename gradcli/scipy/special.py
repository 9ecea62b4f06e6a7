"""`scipy.special`, with gradcli's functions for tensors."""

from __future__ import annotations

from typing import Any

from scipy import special as _special

from gradcli.numpy.dispatch import dispatched


def __getattr__(name: str) -> Any:
    found = getattr(_special, name)
    return dispatched(found, name, "scipy.special", "numpy") if callable(found) else found


def __dir__() -> list[str]:
    return dir(_special)
