"""NumPy with differentiable functions, as `autograd.numpy`: `import gradcli.numpy as np`.

All names are NumPy's. Called with tensors, functions dispatch to gradcli, see `numpy_protocols`;
`gradcli.numpy.dispatch` has those for which NumPy does not dispatch.
"""

from __future__ import annotations

from typing import Any

import numpy as _numpy

from gradcli.numpy import fft, linalg, random
from gradcli.numpy.dispatch import array, asanyarray, asarray, dispatching, full, make_diagonal
from gradcli.primitives.index_tricks import c_, r_

__all__ = ["array", "asanyarray", "asarray", "c_", "fft", "full", "linalg", "make_diagonal", "r_", "random"]


def __getattr__(name: str) -> Any:
    found = globals()[name] = dispatching(getattr(_numpy, name))
    return found


def __dir__() -> list[str]:
    return dir(_numpy)
