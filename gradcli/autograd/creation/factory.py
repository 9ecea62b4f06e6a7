"""Create tensors from numbers and arrays."""

from __future__ import annotations

from contextlib import nullcontext
from types import NoneType
from typing import Any

from gradcli import arrays
from gradcli.autograd.dtype_names import canonical_dtype, known_dtype
from gradcli.autograd.modes import inference, no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError, ShapeError, UsageError, did_you_mean, expect
from gradcli.primitives.axes import whole_numbers

# The options of creation functions.
_OPTIONS = ("dtype", "backend", "device", "requires_grad", "layout", "pin_memory", "memory_format", "out", "generator")
# The numbers of the dtype int64.
_INT64 = range(-(2**63), 2**63)


def tensor(
    data: Any,
    *,
    requires_grad: bool = False,
    dtype: Any = None,
    backend: str | None = None,
    device: str | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A leaf Tensor with a copy of `data`: a number, nested sequences of numbers and tensors, or an array.

    `dtype` is the name of a dtype, or a dtype of NumPy, PyTorch or Python. Without it floats get the default dtype,
    arrays keep theirs, and integers stay integers, which cannot require grad. `backend` is "numpy", "torch", "cupy" or
    "jax", and `device` one of its devices, such as "cpu" or "cuda:0"; without them an array stays in its library.
    `pin_memory` has no effect. Raises ShapeError for ragged sequences, UsageError for an unknown dtype, backend or
    device, BackendError for one that is not available, and EvaluationError for values that the dtype cannot represent.
    """
    for option in (backend, device):
        expect(option, (str, NoneType), "backend and device are texts")
    name = known_dtype(dtype, UsageError) or _dtype_of(data)
    # Tensors in a list contribute their values only, even if they require grad.
    with no_grad() if type(data) in (list, tuple) else nullcontext():
        array = arrays.asarray(data.inner if isinstance(data, Tensor) else data, name)
    if type(array) is int and array not in _INT64:
        raise EvaluationError("an integer is too large for int64", hint="write it with a decimal point")
    return new_leaf(array, backend=backend, device=device, requires_grad=requires_grad)


def _dtype_of(data: Any) -> str | None:
    """The dtype of a tensor made without one: the default dtype, or the complex one of its precision, for Python numbers
    that are no integers; None to keep that of the data."""
    default = arrays.default_dtype()
    if (
        default == "float64"
        or isinstance(data, Tensor)
        or (type(data) not in arrays.PYTHON_NUMBERS and arrays.is_array(data))
    ):
        return None
    array = arrays.asarray(data)
    if arrays.is_complex(array):
        return arrays.complex_dtype(default)
    return default if arrays.is_floating(array) else None


def new_leaf(
    array: Any,
    *,
    dtype: Any = None,
    backend: str | None = None,
    device: str | None = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
    out: Tensor | None = None,
    **unknown: Any,
) -> Tensor:
    """A newly created array as a leaf Tensor, with the options of creation functions; or `out`, filled with its values.

    `layout`, `pin_memory` and `memory_format` have no effect. Raises CallError for an unknown option, and ShapeError for
    an `out` of another shape.
    """
    for option in unknown:
        raise CallError(f"there is no option '{option}' of a tensor that is made", hint=did_you_mean(option, _OPTIONS))
    if out is not None:
        if out.shape != arrays.shape(array):
            raise ShapeError(f"out has the shape {list(out.shape)}, and the result {list(arrays.shape(array))}")
        return out.copy_(Tensor(array))
    name = known_dtype(dtype)
    if name is not None:
        array = arrays.astype(array, name)
    if backend is not None or device is not None:
        array = arrays.moved(array, backend, None if device is None else str(device))
    made = Tensor(array)
    if inference.get():
        made.version = None
    made.requires_grad = requires_grad
    return made


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` itself if it is a tensor with this dtype and device, else a tensor converted to them."""
    made = data if isinstance(data, Tensor) else tensor(data)
    converted: Tensor = made.to(dtype=dtype, device=device)
    return converted


def from_numpy(array: Any) -> Tensor:
    """A leaf Tensor with a copy of a NumPy array. Raises CallError for anything else."""
    if arrays.backend_of(type(array)) != "numpy":
        raise CallError(f"expected np.ndarray (got {type(array).__name__})")
    return tensor(array)


def Variable(data: Any = (), requires_grad: bool = False) -> Any:
    """PyTorch's old constructor of tensors: a leaf that shares the data of a given tensor."""
    made = data.detach() if isinstance(data, Tensor) else tensor(data)
    return made.requires_grad_(requires_grad)


class TensorType:
    """One of PyTorch's old tensor types, such as `FloatTensor`.

    `FloatTensor([1, 2])` converts data to its dtype, and `FloatTensor(2, 3)` makes a tensor of a shape.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._dtype = known_dtype(name)

    def __call__(self, *data: Any) -> Tensor:
        if len(data) == 1 and type(data[0]) is not int:
            return tensor(data[0], dtype=self._dtype)
        return new_leaf(arrays.zeros(whole_numbers(data, "a size"), "float64"), dtype=self._dtype)

    def __repr__(self) -> str:
        return f"gradcli.{self.__name__}"


def __getattr__(name: str) -> TensorType:
    """A tensor type by its name. Raises AttributeError for other names."""
    if name.startswith("_") or not name.endswith("Tensor") or canonical_dtype(name) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return TensorType(name)


def is_tensor(obj: Any) -> bool:
    """Return whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return whether a tensor has a floating dtype. Raises CallError if it is not a tensor."""
    expect(input, Tensor, "is_floating_point takes a tensor")
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Return whether a tensor has a complex dtype. Raises CallError if it is not a tensor."""
    expect(input, Tensor, "is_complex takes a tensor")
    return input.is_complex()


def from_dlpack(source: Any) -> Tensor:
    """A leaf Tensor with a copy of an array of any library that supports DLPack.

    An array of a library that gradcli knows stays in that library; others become NumPy arrays and must be on the CPU.
    Raises CallError for an object without `__dlpack__`.
    """
    if not hasattr(source, "__dlpack__"):
        raise CallError(f"from_dlpack takes an array with '__dlpack__', not a {type(source).__name__}")
    if isinstance(source, Tensor) or arrays.is_array(source):
        return tensor(source)
    return tensor(arrays.numpy_namespace().from_dlpack(source))


def is_inference(x: Tensor) -> bool:
    """Return whether a tensor is an inference tensor; see `inference_mode`. Raises CallError if it is not a tensor."""
    expect(x, Tensor, "is_inference takes a tensor")
    return x.is_inference()
