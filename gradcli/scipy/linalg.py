"""`scipy.linalg`, with gradcli's functions for tensors."""

from __future__ import annotations

from typing import Any

from scipy import linalg as _linalg

from gradcli.numpy.dispatch import dispatched


def __getattr__(name: str) -> Any:
    found = getattr(_linalg, name)
    return dispatched(found, name, "scipy.linalg", "linalg") if callable(found) else found


def __dir__() -> list[str]:
    return dir(_linalg)
