"""Dtypes and devices as PyTorch's users name them: texts, which are equal to the names that other libraries have."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from gradcli import arrays
from gradcli.errors import CallError, GradcliError

# Python's and PyTorch's names of dtypes that are called otherwise here.
_TYPES = {float: "float64", int: "int64"}
_OTHER_NAMES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    # Those of the types of tensors.
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
    """The name of a dtype, which is equal to that dtype of NumPy, PyTorch and Python."""

    __slots__ = ()
    __hash__ = str.__hash__
    is_complex = False

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other if isinstance(other, str) else canonical_dtype(other) or "")

    def __ne__(self, other: object) -> bool:
        return not self == other

    @property
    def is_floating_point(self) -> bool:
        return self.startswith("float")

    @property
    def is_signed(self) -> bool:
        return self not in ("uint8", "bool")

    @property
    def itemsize(self) -> int:
        """The bytes of a number."""
        return _BYTES[self]


@cache
def named(dtype: str) -> Dtype:
    """The dtype with a name that it has here."""
    return Dtype(dtype)


def canonical_dtype(given: Any) -> str | None:
    """The name here of a dtype, given as PyTorch, NumPy or Python have it; None where it is none."""
    name = _TYPES.get(given, given.__name__) if isinstance(given, type) else str(given).rpartition(".")[2]
    name = _OTHER_NAMES.get(name, name)
    return name if name in _BYTES else None


def known_dtype(given: Any, kind: type[GradcliError] = CallError) -> str | None:
    """The name here of a dtype; None where none is given. Raises an error of a kind for what is no dtype."""
    if given is None:
        return None
    name = canonical_dtype(given)
    if name is None:
        raise kind(f"there is no dtype {given!r:.60}", hint=f"the dtypes are {', '.join(sorted(_BYTES))}")
    return name


def type_of_tensors(dtype: str) -> str:
    """PyTorch's name of the type of tensors of a dtype, as "DoubleTensor"."""
    return next(name for name, known in _OTHER_NAMES.items() if known == dtype and name.endswith("Tensor"))


def get_default_dtype() -> Dtype:
    """The dtype of tensors that are made from floats without one."""
    return named(arrays.default_dtype())


def set_default_dtype(d: Any) -> None:
    """Have tensors that are made from floats, from here on and in this thread, in another dtype.

    Raises CallError for one that is no floating dtype of those in which gradcli computes.
    """
    name = known_dtype(d)
    if name not in arrays.DTYPES:
        raise CallError(
            f"only floating-point types are supported as the default type, not {name}",
            hint=f"the dtypes are {' and '.join(arrays.DTYPES)}",
        )
    arrays.set_default_dtype(name)


class Device(str):
    """The name of a device, as "cpu" or "cuda:0"."""

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
    """The limits of a floating dtype, the default one unless another is given: `eps`, `max`, `min`, `tiny`, `bits`.

    Raises CallError for what is none."""
    name = known_dtype(dtype) or arrays.default_dtype()
    if not name.startswith("float"):
        raise CallError(f"finfo() takes a floating dtype, not {name}", hint="iinfo() takes whole ones")
    found = arrays.numpy_namespace().finfo(name)
    names = ("eps", "max", "min", "tiny", "smallest_normal", "resolution")
    return SimpleNamespace(bits=8 * _BYTES[name], dtype=name, **{n: float(getattr(found, n)) for n in names})


def iinfo(dtype: Any) -> SimpleNamespace:
    """The limits of a dtype of whole numbers: `max`, `min`, `bits`. Raises CallError for what is none."""
    name = known_dtype(dtype)
    if name is None or "int" not in name:
        raise CallError(f"iinfo() takes a dtype of whole numbers, not {name}", hint="finfo() takes floating ones")
    found = arrays.numpy_namespace().iinfo(name)
    return SimpleNamespace(bits=8 * _BYTES[name], dtype=name, max=int(found.max), min=int(found.min))


def set_default_device(device: Any) -> None:
    """Have tensors made on a device, which is the CPU. Raises CallError for another."""
    if device is not None and Device(device).type != "cpu":
        raise CallError(
            f"tensors are made on the CPU unless it is said otherwise, not on {str(device)!r}",
            hint="tensor(…, backend=…, device=…) makes one elsewhere",
        )


# As PyTorch calls them.
device, dtype = Device, Dtype


def __getattr__(name: str) -> Dtype:
    """The dtypes by all of their names, `gradcli.double` for one."""
    known = canonical_dtype(name)
    if known is None or name.endswith("Tensor"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return named(known)
