"""Tensors from numbers and arrays."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor


def tensor(
    data: Any,
    *,
    requires_grad: bool = False,
    dtype: str | None = None,
    backend: str | None = None,
    device: str | None = None,
) -> Tensor:
    """A leaf Tensor with a copy of `data`: a number, nested sequences of numbers, or an array.

    `dtype` is "float64" or "float32"; without it floats are float64, arrays keep theirs, and
    integers stay integers, which cannot require grad. Raises ShapeError for ragged sequences and
    UsageError for a dtype, backend or device that is not there.
    """
    arrays.check_backend(backend, device)
    arrays.check_dtype(dtype)
    made = Tensor(arrays.asarray(data.data if isinstance(data, Tensor) else data, dtype))
    made.requires_grad = requires_grad
    return made
