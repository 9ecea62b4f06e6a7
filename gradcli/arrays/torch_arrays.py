"""The array namespace of PyTorch. Its autograd is off: the tensors only carry numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache, reduce
from typing import Any

import array_api_compat.torch as standard_torch
import torch

from gradcli.arrays import floats, numpy_arrays, spellings
from gradcli.arrays.backends import Device, host, out_of_memory
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.dtypes import PYTHON_NUMBERS
from gradcli.arrays.index_keys import check_key, has_arrays, without_negative_steps
from gradcli.arrays.standard import StandardArrays, Step
from gradcli.errors import BackendError, GradcliError, UsageError

Array = Any
Key = tuple[Any, ...]

no_grad: Callable[[], AbstractContextManager[Any]] = torch.no_grad
# Inductor compiles a loop round by round, which takes some 10 ms for each operation of each round: a minute for the
# most operations of a program with loops.
_MOST_UNROLLED = 5_000
# Inductor computes an operation anew wherever it is read, up to a number of operations: this option, by default 50. In a
# program of more nodes than `_LONG`, the time to compile may be exponential in it.
_LONG, _LONG_OPTIONS = 100, {"realize_opcount_threshold": 4}
# Whether a program is traced for Inductor.
_tracing: ContextVar[bool] = ContextVar("gradcli_torch_tracing", default=False)


def _elementwise(name: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """`function`, whose name in the language is `name`, extended to Python numbers beside tensors.

    Integers become floats as in NumPy.
    """
    spelling = spellings.of(name)
    floating = not spelling.keeps_integers
    # Functions that are operators accept a Python number as the second operand.
    takes_numbers = spelling.operator is not None

    def apply(*operands: Any) -> Array:
        if takes_numbers and type(operands[1]) is float and getattr(operands[0], "is_floating_point", bool)():
            return function(*operands)
        given = [o for o in operands if type(o) not in PYTHON_NUMBERS]
        if not given:
            return getattr(floats, name)(*operands)
        dtype = _dtype_of(given, floating or float in map(type, operands))
        device = given[0].device
        return function(
            *(
                torch.scalar_tensor(o, dtype=_dtype_beside(o, dtype), device=device)
                if type(o) in PYTHON_NUMBERS
                else o.to(dtype)
                if floating and not (o.is_floating_point() or o.is_complex())
                else o
                for o in operands
            )
        )

    return apply


def _dtype_of(tensors: Sequence[Array], floating: bool) -> Any:
    """The dtype to which real Python numbers are converted beside `tensors`."""
    for tensor in tensors:
        if tensor.is_floating_point() or tensor.is_complex():
            return tensor.dtype.to_real()
    return torch.float64 if floating else torch.int64


def _dtype_beside(number: Any, dtype: Any) -> Any:
    """The dtype of a Python number where real ones have `dtype`."""
    if type(number) is complex:
        return dtype.to_complex()
    return torch.bool if type(number) is bool else dtype


class TorchArrays(common_definitions.SpecialFunctions, StandardArrays):
    """PyTorch on one of its devices; functions of the Python array API come from array-api-compat."""

    name = "torch"
    weak_numbers = True
    compiler_hint = (
        "PyTorch needs a C++ compiler such as g++ for it, on a GPU Triton; --executor eager computes without"
    )

    def __init__(self, device: Any) -> None:
        super().__init__(standard_torch, device)
        self.linalg = _TorchLinearAlgebra()

    def __getattr__(self, name: str) -> Any:
        found = self._function(name)
        setattr(self, name, found)
        return found

    def _function(self, name: str) -> Any:
        spelling = spellings.of(name)
        if not spelling.elementwise:
            return getattr(self.namespace, name, None) or spellings.defined(self, name)
        theirs = spelling.within("torch", name)
        function = getattr(torch, theirs, None) or getattr(torch.special, theirs, None)
        return spellings.defined(self, name) if function is None else _elementwise(name, function)

    def owns(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def from_numpy(self, array: Any) -> Array:
        # PyTorch takes no arrays with negative strides, as those of reversed arrays are.
        return torch.tensor(numpy_arrays.asarray(array, order="C"), device=self.device)

    def to_numpy(self, array: Array) -> Any:
        return array.detach().cpu().numpy()

    def asarray(self, value: Any, dtype: str | None = None) -> Array:
        if not self.owns(value):
            return self.from_numpy(numpy_arrays.asarray(value, dtype))
        return value.detach() if dtype is None else value.detach().to(self.dtype(dtype))

    def astype(self, array: Array, dtype: str) -> Array:
        return array.to(self.dtype(dtype))

    def copy(self, array: Array) -> Array:
        return array.detach().clone()

    def may_share_memory(self, array: Array, other: Array) -> bool:
        return self.owns(other) and array.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()

    def synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def quiet(self) -> AbstractContextManager[Any]:
        return no_grad()

    def operand(self, value: Any) -> Array:
        # Inductor compiles code for the strides of the example operands.
        return self.asarray(value).contiguous()

    def compiled(self, function: Callable[..., Any], operands: Sequence[Array]) -> Callable[..., Any]:
        """`function` compiled by Inductor, the compiler behind `torch.compile`, for operands like `operands`."""
        with warnings.catch_warnings():
            # PyTorch emits deprecation warnings about its own modules.
            warnings.simplefilter("ignore")
            # Imported here, because it takes a second to load.
            import torch._inductor
            from torch.fx.experimental.proxy_tensor import make_fx

            token = _tracing.set(True)
            try:
                graph = make_fx(function, tracing_mode="fake")(*operands)
            finally:
                _tracing.reset(token)
            options = _LONG_OPTIONS if len(graph.graph.nodes) > _LONG else None
            run: Callable[..., Any] = torch._inductor.compile(graph, list(operands), options)
        return run

    def scan(
        self, step: Step, start: Sequence[Array], counters: Sequence[float], rows: Sequence[Array]
    ) -> tuple[Sequence[Array], Sequence[Array]]:
        if not _tracing.get():
            return super().scan(step, start, counters, rows)
        from torch.fx.experimental.proxy_tensor import get_proxy_mode

        graph = get_proxy_mode().tracer.graph

        def bounded(values: Sequence[Array], counter: float, row: Sequence[Array]) -> Sequence[Array]:
            if len(graph.nodes) > _MOST_UNROLLED:
                raise BackendError(
                    f"the backend torch compiles loops round by round, up to {_MOST_UNROLLED:,} operations, and these have more",
                    hint="--executor eager computes without PyTorch's compiler",
                )
            return step(values, counter, row)

        return super().scan(bounded, start, counters, rows)

    def explained(self, error: Exception) -> GradcliError | None:
        text = str(error)
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in text:
            return out_of_memory(text, _memory(self.device))
        return None

    # --- where PyTorch gives something else than NumPy

    def index(self, x: Array, key: Key) -> Array:
        check_key(key, tuple(x.shape))
        key, flipped = without_negative_steps(key, tuple(x.shape))
        return (torch.flip(x, flipped) if flipped else x)[self._moved(key)]

    def _moved(self, key: Key) -> Key:
        return tuple(torch.as_tensor(k, device=self.device) if hasattr(k, "dtype") else k for k in key)

    def scatter_add(self, values: Array, key: Key, shape: Sequence[int]) -> Array:
        """Zeros of `shape` with `values` added at `key`; values at repeated positions accumulate."""
        values = self.asarray(values)
        check_key(key, tuple(shape))
        out = torch.zeros(tuple(shape), dtype=values.dtype, device=self.device)
        if not has_arrays(key):
            key, flipped = without_negative_steps(key, tuple(shape))
            out[key] = values
            return torch.flip(out, flipped) if flipped else out
        positions = self.index(torch.arange(out.numel(), device=self.device).reshape(out.shape), key)
        values = values.broadcast_to(positions.shape)
        return out.view(-1).index_add_(0, positions.reshape(-1), values.reshape(-1)).view(out.shape)

    def sign(self, x: Array) -> Array:
        return torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)

    def heaviside(self, x: Array, y: Any) -> Array:
        return common_definitions.heaviside(self, x, y)

    def lgamma(self, x: Array) -> Array:
        return common_definitions.lgamma(self, x, self._function("lgamma"))

    def remainder(self, x: Array, y: Array) -> Array:
        return common_definitions.remainder(self, x, y, self._function("remainder"))

    def j0(self, x: Array) -> Array:
        return common_definitions.jv(self, 0, x)

    def j1(self, x: Array) -> Array:
        return common_definitions.jv(self, 1, x)

    def y0(self, x: Array) -> Array:
        return common_definitions.bessel_y(self, 0, x, self._function("y0"))

    def y1(self, x: Array) -> Array:
        return common_definitions.bessel_y(self, 1, x, self._function("y1"))

    def complex(self, real: Any, imag: Any) -> Array:
        parts = [self.asarray(part) for part in self.promoted([real, imag], truths=False)]
        dtype = reduce(torch.promote_types, (part.dtype for part in parts))
        return torch.complex(*torch.broadcast_tensors(*(part.to(dtype) for part in parts)))

    def angle(self, x: Array) -> Array:
        return torch.angle(x) if x.is_complex() else torch.atan2(torch.zeros_like(x), x)

    def imag(self, x: Array) -> Array:
        return torch.imag(x) if x.is_complex() else torch.zeros_like(x)

    def matmul(self, x: Array, y: Array) -> Array:
        dtype = torch.promote_types(x.dtype, y.dtype)
        return torch.matmul(x.to(dtype), y.to(dtype))

    def einsum(self, *operands: Array, subscripts: str) -> Array:
        dtype = reduce(torch.promote_types, (o.dtype for o in operands))
        return torch.einsum(subscripts, *(o.to(dtype) for o in operands))

    def expm(self, x: Array) -> Array:
        return torch.linalg.matrix_exp(x)


class _TorchLinearAlgebra:
    """`torch.linalg`, with nan for matrices that are not finite where LAPACK gives numbers."""

    def __getattr__(self, name: str) -> Any:
        return getattr(standard_torch.linalg, name)

    def eigvalsh(self, x: Array) -> Array:
        return torch.where(_are_finite(x).unsqueeze(-1), torch.linalg.eigvalsh(x), torch.nan)

    def eigh(self, x: Array) -> tuple[Array, Array]:
        values, vectors = torch.linalg.eigh(x)
        finite = _are_finite(x).unsqueeze(-1)
        return torch.where(finite, values, torch.nan), torch.where(finite.unsqueeze(-1), vectors, torch.nan)

    def slogdet(self, x: Array) -> tuple[Array, Array]:
        sign, logarithm = torch.linalg.slogdet(x)
        return torch.where(torch.isnan(logarithm), torch.nan, sign), logarithm


def _are_finite(matrices: Array) -> Array:
    return torch.isfinite(matrices).all(-1).all(-1)


def namespace_of(array: Array) -> TorchArrays:
    return _on(array.device)


@cache
def _on(device: Any) -> TorchArrays:
    return TorchArrays(device)


def version() -> str:
    return str(torch.__version__)


def on_device(name: str) -> TorchArrays:
    """PyTorch on `cpu`, `cuda` or `cuda:N`. Raises UsageError or BackendError if there is no such device."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(
            f"the backend torch has no device {name!r}", hint="its devices are cpu, cuda and cuda:N"
        ) from None
    if device.type == "cpu":
        return _on(torch.device("cpu"))
    if device.type != "cuda":
        raise UsageError(f"the backend torch has no device {name!r}", hint="its devices are cpu, cuda and cuda:N")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (device.index or 0) >= count:
        raise BackendError(_missing(name, count), hint="gradcli backends shows what is there")
    return _on(torch.device("cuda", device.index or 0))


def _missing(name: str, count: int) -> str:
    if torch.version.cuda is None:
        return f"there is no device {name!r}: this PyTorch, {torch.__version__}, is built without CUDA"
    return f"there is no device {name!r}: PyTorch finds {count} CUDA devices"


def devices() -> Iterator[Device]:
    yield host("cpu")
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        free, total = torch.cuda.mem_get_info(i)
        yield Device(f"cuda:{i}", torch.cuda.get_device_name(i), total, free)


def _memory(device: Any) -> int | None:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else host("cpu").free
