"""`numpy.random`, under the name that it has beside `gradcli.numpy`."""

from __future__ import annotations

from typing import Any

import numpy.random as _random


def __getattr__(name: str) -> Any:
    return getattr(_random, name)


def __dir__() -> list[str]:
    return dir(_random)
