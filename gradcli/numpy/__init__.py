"""NumPy with functions that tensors are recorded by, as `autograd.numpy` is: `import gradcli.numpy as np`.

Each name is NumPy's. Its functions call those of gradcli where they are given tensors, see
`gradcli.autograd.numpy_protocols`; `gradcli.numpy.made` has those that NumPy does not hand on.
"""

from __future__ import annotations

from typing import Any

import numpy as _numpy

from gradcli.numpy import fft, linalg, random
from gradcli.numpy.made import array, asanyarray, asarray, full

__all__ = ["array", "asanyarray", "asarray", "fft", "full", "linalg", "random"]


def __getattr__(name: str) -> Any:
    return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
