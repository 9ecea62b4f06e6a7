"""`numpy.linalg` with differentiable functions, available as `gradcli.numpy.linalg`."""

from __future__ import annotations

from typing import Any

import numpy.linalg as _linalg

from gradcli.numpy.dispatch import dispatching


def __getattr__(name: str) -> Any:
    found = globals()[name] = dispatching(getattr(_linalg, name))
    return found


def __dir__() -> list[str]:
    return dir(_linalg)
