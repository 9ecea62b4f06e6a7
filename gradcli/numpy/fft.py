"""`numpy.fft`, available as `gradcli.numpy.fft`."""

from __future__ import annotations

from typing import Any

import numpy.fft as _fft


def __getattr__(name: str) -> Any:
    return getattr(_fft, name)


def __dir__() -> list[str]:
    return dir(_fft)
