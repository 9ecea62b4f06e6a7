"""`numpy.random`, available as `gradcli.numpy.random`."""

from __future__ import annotations

from typing import Any

import numpy.random as _random


def __getattr__(name: str) -> Any:
    return getattr(_random, name)


def __dir__() -> list[str]:
    return dir(_random)
