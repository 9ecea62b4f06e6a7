"""Functions of pasted code that change no number: copies, conversions to the current dtype or device, sizes."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.errors import CallError, EvaluationError, ShapeError
from gradcli.primitives.axes import boolean, normalize_axis
from gradcli.primitives.bind import constant
from gradcli.primitives.conversions import cast, reshape
from gradcli.primitives.entries.arithmetic import identity
from gradcli.primitives.operation import Composite

SUBJECT = "shape"

_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
_FLOATS = {"float64": ("float64", "float", "double", "d"), "float32": ("float32", "single", "f")}


def check_is_there(dtype: Any = None, device: Any = None, requires_grad: Any = False) -> None:
    """Raise CallError for a dtype or device other than that of the run, and for requires_grad=True."""
    used = arrays.default_dtype()
    if dtype is not None and _last_name(dtype) not in _FLOATS[used]:
        name = dtype.__name__ if isinstance(dtype, type) else dtype
        raise CallError(
            f"numbers are {used} here, and dtype asks for {name}", hint="leave dtype out, or run with --dtype"
        )
    if device is not None and not isinstance(device, str):
        raise CallError("a device is a text such as 'cpu'")
    if device is not None and arrays.default_namespace().device_name.partition(":")[0] != device.partition(":")[0]:
        raise CallError(f"tensors are not on {device!r} here", hint="leave device out, or run with --device")
    if boolean(requires_grad, "'requires_grad'"):
        raise CallError(
            "a tensor that the program makes has no gradient of its own",
            hint="leave requires_grad out, and give the tensor as an input: inputs have gradients",
        )


# Names of complex dtypes, of the precision in use or of their own.
_COMPLEX = {"complex128": ("complex", "complex128", "cdouble"), "complex64": ("complex", "complex64", "cfloat")}


def _as_it_is(x: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Any:
    of_complex = arrays.complex_dtype(arrays.default_dtype())
    if dtype is not None and _last_name(dtype) in _COMPLEX[of_complex]:
        check_is_there(None, device, requires_grad)
        return cast(x, of_complex)
    check_is_there(dtype, device, requires_grad)
    # A real dtype is an error for complex numbers, whose imaginary parts it would drop.
    return identity(x) if dtype is None or not arrays.is_complex(x) else cast(x, arrays.default_dtype())


def _last_name(dtype: Any) -> str:
    """The name of a dtype without its module."""
    return str(dtype.__name__ if isinstance(dtype, type) else dtype).rpartition(".")[2]


asarray = Composite(
    "asarray", "x, dtype=None, device=None, requires_grad=False",
    "x as it is; dtype and device may say what is there anyway", _as_it_is,
    derivative="g",
    aliases=("as_tensor", "from_numpy", "contiguous", "ascontiguousarray"),
    samples=((_MATRIX,), 0.7),
)  # fmt: skip

copy = Composite(
    "copy", "x, dtype=None, device=None, requires_grad=False",
    "a tensor of its own with the numbers of x; dtype and device may say what is there anyway", _as_it_is,
    derivative="g",
    aliases=("clone", "array", "tensor"),
    samples=((_MATRIX,), 0.7),
)  # fmt: skip


positive = Composite(
    "positive", "x", "x as it is", identity,
    derivative="g",
    aliases=("real_if_close", "resolve_conj", "resolve_neg"),
    samples=((_MATRIX,), 0.7),
)  # fmt: skip


def _size(x: Any, axis: Any = None) -> float:
    sizes = arrays.shape(x)
    return float(math.prod(sizes) if axis is None else sizes[normalize_axis(axis, len(sizes))])


size = Composite(
    "size", "x, axis=None", "how many elements there are, or how many along an axis", _size,
    derivative="none",
    aliases=("numel",),
    example="'size(x) + size(x, 0)' x='[[1, 2, 3], [4, 5, 6]]'",
)  # fmt: skip


def one_element(x: Any) -> Any:
    """The single element of a tensor as a scalar, differentiable. Raises ShapeError for other sizes."""
    if math.prod(arrays.shape(x)) != 1:
        raise ShapeError(f"'item' needs one element, and the tensor has shape {list(arrays.shape(x))}")
    return reshape(x, ())


def _item(x: Any) -> Any:
    number = one_element(x)
    if constant(number) is not number and getattr(number, "requires_grad", True):
        raise EvaluationError(
            "'item' gives a number without a gradient in PyTorch, and with one this has something to lose",
            hint="write detach(x) for a constant, and reshape(x, ()) for the number with its gradient",
        )
    return number


item = Composite(
    "item", "x", "the one element as a number; an error where that loses a gradient", _item,
    derivative="none",
    example="'item([[2*3]])'",
)  # fmt: skip
