"""Tensors from numbers and arrays."""

from __future__ import annotations

from types import NoneType
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import inference
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError, expect

_INT64 = range(-(2**63), 2**63)


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
    integers stay integers, which cannot require grad. `backend` is "numpy", "torch", "cupy" or
    "jax", and `device` one of its devices, as "cpu" or "cuda:0"; without them an array stays in its
    library. Raises ShapeError for ragged sequences, UsageError for a dtype, backend or device that
    does not exist, BackendError for one that is not there, and EvaluationError for what is no number of its dtype.
    """
    for option in (dtype, backend, device):
        expect(option, (str, NoneType), "dtype, backend and device are texts")
    arrays.check_dtype(dtype)
    array = arrays.asarray(data.inner if isinstance(data, Tensor) else data, dtype)
    if type(array) is int and array not in _INT64:
        raise EvaluationError("an integer is too large for int64", hint="write it with a decimal point")
    if backend is not None or device is not None:
        array = arrays.moved(array, backend, device)
    made = Tensor(array)
    if inference.get():
        made.version = None
    made.requires_grad = requires_grad
    return made


def from_dlpack(source: Any) -> Tensor:
    """A leaf Tensor with a copy of an array of any library that shares it by DLPack.

    An array of a library that gradcli knows stays in that, others become arrays of NumPy, as which they must be on the
    CPU. Raises CallError for what has no `__dlpack__`.
    """
    if not hasattr(source, "__dlpack__"):
        raise CallError(f"from_dlpack takes an array with '__dlpack__', not a {type(source).__name__}")
    if isinstance(source, Tensor) or arrays.is_array(source):
        return tensor(source)
    return tensor(arrays.numpy_namespace().from_dlpack(source))


def is_inference(x: Tensor) -> bool:
    """Whether a tensor was made in `inference_mode`, and is no view of one from outside. Raises CallError for what is none."""
    expect(x, Tensor, "is_inference takes a tensor")
    return x.is_inference()
