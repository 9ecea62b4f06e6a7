"""`jax.numpy`: the functions of NumPy, for tensors and with tensors as results."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gradcli import numpy as _numpy
from gradcli.autograd.tensor import Tensor
from gradcli.jax.arrays import from_module, returning_tensors
from gradcli.numpy import fft as _fft
from gradcli.numpy import linalg as _linalg


class _Linalg(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return from_module(_linalg, name)


class _Fft(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return from_module(_fft, name)


linalg = _Linalg(f"{__name__}.linalg", "`jax.numpy.linalg`, in the same way.")
fft = _Fft(f"{__name__}.fft", "`jax.numpy.fft`, in the same way.")
ndarray = Tensor
array, asarray = returning_tensors(_numpy.array), returning_tensors(_numpy.asarray)

__all__ = ["array", "asarray", "fft", "linalg", "ndarray"]


def __getattr__(name: str) -> Any:
    return from_module(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
