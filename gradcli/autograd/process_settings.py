"""Settings of PyTorch's process that programs make at their beginning, and that change no number here."""

from __future__ import annotations

import os
from typing import Any

from gradcli.autograd.dtype_names import known_dtype, set_default_dtype
from gradcli.errors import ArgumentError, CallError

_PRECISIONS = ("highest", "high", "medium")


def set_num_threads(number: int) -> None:
    """Accept a number of threads and do nothing: NumPy and its libraries choose theirs."""
    if type(number) is not int or number < 1:
        raise CallError("set_num_threads expects a positive integer")


set_num_interop_threads = set_num_threads


def get_num_threads() -> int:
    """The number of cores."""
    return os.cpu_count() or 1


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accept the mode and do nothing: all algorithms are deterministic."""


def are_deterministic_algorithms_enabled() -> bool:
    """Return True: all algorithms are deterministic."""
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Accept a precision and do nothing: products are computed in full. Raises ArgumentError for an unknown one."""
    if precision not in _PRECISIONS:
        raise ArgumentError(f"float32_matmul_precision must be one of {', '.join(_PRECISIONS)}, not {precision!r}")


def get_float32_matmul_precision() -> str:
    """The precision of products of matrices in float32."""
    return "highest"


def set_printoptions(**_options: Any) -> None:
    """Accept the options and do nothing: numbers are printed in full."""


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a type of tensors, such as "torch.DoubleTensor"."""
    name = t if isinstance(t, str) else getattr(t, "__name__", type(t).__name__)
    set_default_dtype(known_dtype(name.rpartition(".")[2]))
