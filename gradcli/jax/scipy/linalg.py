"""`jax.scipy.linalg`."""

from __future__ import annotations

from typing import Any

from gradcli.jax.arrays import from_module
from gradcli.scipy import linalg as _linalg


def __getattr__(name: str) -> Any:
    return from_module(_linalg, name)
