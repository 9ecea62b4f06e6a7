"""`jax.scipy.special`."""

from __future__ import annotations

from typing import Any

from gradcli.jax.arrays import from_module
from gradcli.scipy import special as _special


def __getattr__(name: str) -> Any:
    return from_module(_special, name)
