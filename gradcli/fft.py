"""Fourier transforms, by their names in `torch.fft` and `numpy.fft`; `gradcli.fft(x)` is `gradcli.fft.fft(x)`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

# Functions that create a tensor instead of transforming one.
_MADE = frozenset({"fftfreq", "rfftfreq"})


class _Transforms(ModuleType):
    def __getattr__(self, name: str) -> Any:
        from gradcli.autograd.creation import creation_functions
        from gradcli.primitives import table

        if name in _MADE:
            return getattr(creation_functions, name)
        found = None if name.startswith("_") else table.find(name)
        if found is None:
            raise AttributeError(f"module 'gradcli.fft' has no attribute {name!r}{table.reason_suffix(name)}")
        return found

    def __call__(self, x: Any, *arguments: Any, **keywords: Any) -> Any:
        return self.fft(x, *arguments, **keywords)


sys.modules[__name__].__class__ = _Transforms
