"""The array namespace of CuPy: NumPy's functions on a CUDA device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import cupy
import cupyx
import cupyx.scipy.special
import numpy as np

from gradcli import install_command
from gradcli.arrays import spellings
from gradcli.arrays.backends import Device, out_of_memory
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.dtypes import complex_dtype
from gradcli.arrays.index_keys import check_key
from gradcli.arrays.standard import StandardArrays
from gradcli.errors import BackendError, GradcliError, UsageError

Array = Any
Key = tuple[Any, ...]


class CupyArrays(common_definitions.SpecialFunctions, StandardArrays):
    """CuPy on one of its devices, which is made the current device while a primitive runs."""

    name = "cupy"
    weak_numbers = True

    def __init__(self, device: Any) -> None:
        super().__init__(cupy, device)
        self.linalg = _CupyLinearAlgebra()

    @property
    def device_name(self) -> str:
        return f"cuda:{self.device.id}"

    def __getattr__(self, name: str) -> Any:
        theirs = spellings.of(name).within("cupy", name)
        found = (
            getattr(cupy, theirs, None) or getattr(cupyx.scipy.special, theirs, None) or spellings.defined(self, name)
        )
        setattr(self, name, found)
        return found

    def from_numpy(self, array: Any) -> Array:
        with self.device:
            return cupy.array(array)

    def to_numpy(self, array: Array) -> Any:
        return array.get()

    def astype(self, array: Array, dtype: str) -> Array:
        with self.device:
            return array.astype(dtype)

    def copy(self, array: Array) -> Array:
        with self.device:
            return array.copy()

    def may_share_memory(self, array: Array, other: Array) -> bool:
        return self.owns(other) and bool(cupy.may_share_memory(array, other))

    def zeros(self, shape: Sequence[int], dtype: str) -> Array:
        with self.device:
            return cupy.zeros(tuple(shape), dtype)

    def ones(self, shape: Sequence[int], dtype: str) -> Array:
        with self.device:
            return cupy.ones(tuple(shape), dtype)

    def synchronise(self) -> None:
        self.device.synchronize()

    def quiet(self) -> AbstractContextManager[Any]:
        # By default CuPy returns nan for singular matrices; the context makes it raise an error.
        return _Running(self.device)

    def explained(self, error: Exception) -> GradcliError | None:
        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            return out_of_memory(str(error), self.device.mem_info[0])
        return None

    # --- where CuPy gives something else than NumPy

    def index(self, x: Array, key: Key) -> Array:
        check_key(key, tuple(x.shape))
        return self.asarray(x)[self._moved(key)]

    def _moved(self, key: Key) -> Key:
        return tuple(self.asarray(k) if hasattr(k, "dtype") else k for k in key)

    def scatter_add(self, values: Array, key: Key, shape: Sequence[int]) -> Array:
        """Zeros of `shape` with `values` added at `key`; positions that repeat add up."""
        check_key(key, tuple(shape))
        # The atomic addition of CUDA supports only some integer types, and not bool.
        dtype = values.dtype if values.dtype.kind == "f" else cupy.float64
        out = cupy.zeros(tuple(shape), dtype)
        cupy.add.at(out, self._moved(key), values.astype(dtype, copy=False))
        return out.astype(values.dtype, copy=False)

    def where(self, condition: Any, x: Any, y: Any) -> Array:
        # CuPy accepts no Python number as the condition.
        return cupy.where(cupy.asarray(condition), x, y)

    def sort(self, x: Array, axis: int, stable: bool = True) -> Array:
        return cupy.sort(x, axis=axis)

    def argsort(self, x: Array, axis: int, stable: bool = True) -> Array:
        # CuPy's sort is stable, and has no `stable` parameter.
        return cupy.argsort(x, axis=axis)

    def remainder(self, x: Array, y: Array) -> Array:
        return common_definitions.remainder(self, x, y, self._remainder)

    def _remainder(self, x: Array, y: Array) -> Array:
        # CuPy's own remainder is x - floor(x/y)*y, which loses all digits for large x/y.
        value = cupy.fmod(x, y)
        opposite = cupy.logical_and(value != 0, cupy.signbit(value) != cupy.signbit(y))
        return cupy.where(opposite, value + y, value)

    def floor_divide(self, x: Array, y: Array) -> Array:
        return common_definitions.floor_divide(self, x, y)

    def lgamma(self, x: Array) -> Array:
        # CuPy, as SciPy, returns -inf at -inf; the C standard and `math` say inf.
        return cupy.where(x == -math.inf, math.inf, cupyx.scipy.special.gammaln(x))

    # Bessel functions are nan at the infinities in SciPy and in the other backends.

    def i0(self, x: Array) -> Array:
        return cupyx.scipy.special.i0(x) + (x - x)

    def i1(self, x: Array) -> Array:
        return cupyx.scipy.special.i1(x) + (x - x)

    def j0(self, x: Array) -> Array:
        return cupyx.scipy.special.j0(x) + (x - x)

    def j1(self, x: Array) -> Array:
        return cupyx.scipy.special.j1(x) + (x - x)

    def complex(self, real: Any, imag: Any) -> Array:
        real, imag = cupy.broadcast_arrays(cupy.asarray(real), cupy.asarray(imag))
        made = cupy.empty(real.shape, complex_dtype(str(cupy.result_type(real, imag))))
        made.real, made.imag = real, imag
        return made

    def einsum(self, *operands: Array, subscripts: str) -> Array:
        return cupy.einsum(subscripts, *operands, optimize=len(operands) > 2)

    def expm(self, x: Array) -> Array:
        from cupyx.scipy.linalg import expm

        # CuPy's function takes a single matrix, not a batch.
        matrices = [expm(matrix) for matrix in x.reshape(-1, *x.shape[-2:])] if x.size else [x]
        return cupy.stack(matrices).reshape(x.shape)


class _Running:
    """Make the device current, and make CuPy raise an error for a singular matrix."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.errors = cupyx.errstate(linalg="raise")

    def __enter__(self) -> None:
        self.device.__enter__()
        self.errors.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.errors.__exit__(*error)
        self.device.__exit__(*error)


class _CupyLinearAlgebra:
    """`cupy.linalg` with the names of the Python array API."""

    def __getattr__(self, name: str) -> Any:
        return getattr(cupy.linalg, name)

    def svdvals(self, x: Array) -> Array:
        return cupy.linalg.svd(x, compute_uv=False)

    def solve(self, a: Array, b: Array) -> Array:
        if b.ndim > 1:
            batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            a, b = (cupy.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
        return cupy.linalg.solve(a, b)

    def pinv(self, x: Array, rtol: float) -> Array:
        return cupy.linalg.pinv(x, rcond=rtol)


def namespace_of(array: Array) -> CupyArrays:
    return _on(array.device.id)


@cache
def _on(number: int) -> CupyArrays:
    return CupyArrays(cupy.cuda.Device(number))


def version() -> str:
    return str(cupy.__version__)


def on_device(name: str) -> CupyArrays:
    """CuPy on `cuda` or `cuda:N`. Raises UsageError or BackendError where there is no such device."""
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number or "0").isdigit():
        raise UsageError(
            f"the backend cupy has no device {name!r}",
            hint="its devices are cuda and cuda:N; the backends torch and jax compute on the CPU too",
        )
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        raise BackendError(
            f"there is no device {name!r}: {error}",
            hint="the backend cupy needs an NVIDIA GPU with its driver; --backend torch or jax compute on the CPU too",
        ) from None
    if int(number or 0) >= count:
        raise BackendError(
            f"there is no device {name!r}: CuPy finds {count} CUDA devices", hint="gradcli backends shows what is there"
        )
    try:
        cupy.cuda.nvrtc.getVersion()
    except RuntimeError as error:
        # CuPy can be installed without the CUDA libraries, but needs NVRTC to compile its kernels.
        raise BackendError(
            f"CuPy does not find the libraries of CUDA: {str(error).partition(':')[0]}",
            hint=f"{install_command.install_command('cupy')} brings them, pip install 'cupy-cuda13x[ctk]' those of CUDA 13",
        ) from None
    return _on(int(number or 0))


def devices() -> Iterator[Device]:
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        name = cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
        free, total = cupy.cuda.Device(number).mem_info
        yield Device(f"cuda:{number}", name, total, free)
