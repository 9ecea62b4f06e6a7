"""Dtypes and devices under PyTorch's names: strings that compare equal to the dtypes of other libraries."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

from gradcli import arrays
from gradcli.errors import CallError, GradcliError
from gradcli.type_hints import Any

# The dtypes of Python's types, and PyTorch's names of dtypes that differ from the names here.
_TYPES = {float: "float64", int: "int64", complex: "complex128"}
_OTHER_NAMES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "int": "int32",
    "short": "int16",
    # The names of tensor types.
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
_BYTES = {
    "complex128": 16,
    "complex64": 8,
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


class Dtype(str):
    """The name of a dtype; it compares equal to the same dtype of NumPy, PyTorch and Python."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other if isinstance(other, str) else canonical_dtype(other) or "")

    def __ne__(self, other: object) -> bool:
        return not self == other

    @property
    def is_floating_point(self) -> bool:
        return self.startswith("float")

    @property
    def is_complex(self) -> bool:
        return self.startswith("complex")

    @property
    def is_signed(self) -> bool:
        return self not in ("uint8", "bool")

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return _BYTES[self]


@cache
def named(dtype: str) -> Dtype:
    """The dtype for its canonical name."""
    return Dtype(dtype)


def canonical_dtype(given: Any) -> str | None:
    """The canonical name of a dtype that is given as in PyTorch, NumPy or Python; None if it is not a dtype."""
    name = _TYPES.get(given, given.__name__) if isinstance(given, type) else str(given).rpartition(".")[2]
    if name == "Tensor":
        return arrays.default_dtype()
    name = _OTHER_NAMES.get(name, name)
    return name if name in _BYTES else None


def known_dtype(given: Any, kind: type[GradcliError] = CallError) -> str | None:
    """The canonical name of a dtype; None for None. Raises an error of class `kind` for anything else."""
    if given is None:
        return None
    name = canonical_dtype(given)
    if name is None:
        raise kind(f"there is no dtype {given!r:.60}", hint=f"the dtypes are {', '.join(sorted(_BYTES))}")
    return name


def type_of_tensors(dtype: str) -> str:
    """PyTorch's name of the tensor type of a dtype, such as "DoubleTensor"."""
    return next(name for name, known in _OTHER_NAMES.items() if known == dtype and name.endswith("Tensor"))


def get_default_dtype() -> Dtype:
    """The dtype of tensors that are made from floats without a `dtype`."""
    return named(arrays.default_dtype())


def set_default_dtype(d: Any) -> None:
    """Set the dtype of tensors that are made from floats, in this context.

    Raises CallError for a dtype other than the floating ones that gradcli computes in.
    """
    name = known_dtype(d)
    if name not in arrays.DTYPES:
        raise CallError(
            f"only floating-point types are supported as the default type, not {name}",
            hint=f"the dtypes are {' and '.join(arrays.DTYPES)}",
        )
    arrays.set_default_dtype(name)


class Device(str):
    """The name of a device, such as "cpu" or "cuda:0"."""

    __slots__ = ()

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> Device:
        name = f"cuda:{type}" if isinstance(type, int) else str(type)
        return str.__new__(cls, name if index is None else f"{name}:{index}")

    @property
    def type(self) -> str:
        return str(self).partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        number = str(self).partition(":")[2]
        return int(number) if number else None

    def __repr__(self) -> str:
        number = self.index
        return f"device(type={self.type!r})" if number is None else f"device(type={self.type!r}, index={number})"


def finfo(dtype: Any = None) -> SimpleNamespace:
    """The limits of a floating dtype (the default dtype if None): `eps`, `max`, `min`, `tiny`, `bits`.

    Raises CallError for other dtypes."""
    name = known_dtype(dtype) or arrays.default_dtype()
    if not name.startswith("float"):
        raise CallError(f"finfo() takes a floating dtype, not {name}", hint="iinfo() takes whole ones")
    found = arrays.numpy_namespace().finfo(name)
    names = ("eps", "max", "min", "tiny", "smallest_normal", "resolution")
    return SimpleNamespace(bits=8 * _BYTES[name], dtype=name, **{n: float(getattr(found, n)) for n in names})


def iinfo(dtype: Any) -> SimpleNamespace:
    """The limits of an integer dtype: `max`, `min`, `bits`. Raises CallError for other dtypes."""
    name = known_dtype(dtype)
    if name is None or "int" not in name:
        raise CallError(f"iinfo() takes a dtype of whole numbers, not {name}", hint="finfo() takes floating ones")
    found = arrays.numpy_namespace().iinfo(name)
    return SimpleNamespace(bits=8 * _BYTES[name], dtype=name, max=int(found.max), min=int(found.min))


def set_default_device(device: Any) -> None:
    """Set the device on which tensors are made, which can only be the CPU. Raises CallError for another."""
    if device is not None and Device(device).type != "cpu":
        raise CallError(
            f"tensors are made on the CPU unless it is said otherwise, not on {str(device)!r}",
            hint="tensor(…, backend=…, device=…) makes one elsewhere",
        )


# PyTorch's names of the classes.
device, dtype = Device, Dtype


def __getattr__(name: str) -> Dtype:
    """The dtypes under all of their names, such as `gradcli.double`."""
    known = canonical_dtype(name)
    if known is None or name.endswith("Tensor"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return named(known)
