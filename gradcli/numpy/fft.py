"""`numpy.fft` with differentiable functions, available as `gradcli.numpy.fft`."""

from __future__ import annotations

from typing import Any

import numpy.fft as _fft

from gradcli.numpy.dispatch import dispatching


def __getattr__(name: str) -> Any:
    found = globals()[name] = dispatching(getattr(_fft, name))
    return found


def __dir__() -> list[str]:
    return dir(_fft)
