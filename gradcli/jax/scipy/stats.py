"""`jax.scipy.stats`: distributions, each a namespace of its functions."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gradcli.jax.arrays import from_module
from gradcli.scipy import stats as _stats


class _Distribution(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return from_module(getattr(_stats, self.__name__), name)


def __getattr__(name: str) -> Any:
    if name not in _stats.__all__:
        raise AttributeError(f"module 'gradcli.jax.scipy.stats' has no attribute {name!r}")
    return _Distribution(name)
