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


def is_complex_of_run(dtype: Any) -> bool:
    """Return whether a dtype is the complex one in the precision of the run."""
    return dtype is not None and _last_name(dtype) in _COMPLEX[arrays.complex_dtype(arrays.default_dtype())]


def check_properties(dtype: Any = None, device: Any = None, requires_grad: Any = False) -> None:
    """Raise CallError as `check_is_there`, which the complex dtype of the run passes too."""
    check_is_there(None if is_complex_of_run(dtype) else dtype, device, requires_grad)


def of_dtype(x: Any, dtype: Any) -> Any:
    """`x` in a dtype that `check_properties` passes: a complex one makes a real `x` complex; a real one is an error for
    a complex `x`, whose imaginary parts it would drop."""
    if dtype is not None and is_complex_of_run(dtype) != arrays.is_complex(x):
        default = arrays.default_dtype()
        return cast(x, default if arrays.is_complex(x) else arrays.complex_dtype(default))
    return x


def _as_it_is(x: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Any:
    check_properties(dtype, device, requires_grad)
    made = of_dtype(x, dtype)
    return identity(x) if made is x else made


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
            "'item' gives a number without a gradient in PyTorch, and this tensor has one to lose",
            hint="write detach(x) for a constant, and reshape(x, ()) for the number with its gradient",
        )
    return number


item = Composite(
    "item", "x", "the one element as a number; an error where that loses a gradient", _item,
    derivative="none",
    example="'item([[2*3]])'",
)  # fmt: skip
