"""`numpy.linalg`, under the name that it has beside `gradcli.numpy`."""

from __future__ import annotations

from typing import Any

import numpy.linalg as _linalg


def __getattr__(name: str) -> Any:
    return getattr(_linalg, name)


def __dir__() -> list[str]:
    return dir(_linalg)
