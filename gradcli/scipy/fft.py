"""`scipy.fft`, with gradcli's functions for tensors."""

from __future__ import annotations

from typing import Any

from scipy import fft as _fft

from gradcli.numpy.dispatch import dispatched


def __getattr__(name: str) -> Any:
    found = getattr(_fft, name)
    return dispatched(found, name, "scipy.fft", "numpy") if callable(found) else found


def __dir__() -> list[str]:
    return dir(_fft)
