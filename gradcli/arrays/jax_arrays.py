"""The array namespace of JAX. Its own differentiation is not used: the arrays only carry numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special

from gradcli.arrays import numpy_arrays, spellings
from gradcli.arrays.backends import Device, host, out_of_memory
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.index_keys import check_key
from gradcli.arrays.standard import StandardArrays, Step
from gradcli.errors import BackendError, GradcliError, UsageError
from gradcli.named_tuples import NamedTuple

Array = Any
Key = tuple[Any, ...]

_DEVICES_HINT = "its devices are cpu, cuda and cuda:N"


class JaxArrays(common_definitions.SpecialFunctions, StandardArrays):
    """JAX on one of its devices."""

    name = "jax"
    weak_numbers = True
    compiler_hint = "--executor eager computes without XLA's compiler for whole programs"

    def __init__(self, device: Any) -> None:
        super().__init__(jnp, device)
        self.linalg = _JaxLinearAlgebra()

    def __getattr__(self, name: str) -> Any:
        theirs = spellings.of(name).within("jax", name)
        found = getattr(jax.scipy.special, theirs, None) or getattr(jnp, theirs, None) or spellings.defined(self, name)
        setattr(self, name, found)
        return found

    def from_numpy(self, array: Any) -> Array:
        if array.dtype.name in ("float64", "int64", "complex128"):
            self._need_64_bits()
        return jax.device_put(array.copy(), self.device)

    def _need_64_bits(self) -> None:
        # By default JAX converts float64 and int64 to 32 bits.
        jax.config.update("jax_enable_x64", True)

    def astype(self, array: Array, dtype: str) -> Array:
        if dtype in ("float64", "complex128"):
            self._need_64_bits()
        return array.astype(dtype)

    def copy(self, array: Array) -> Array:
        return array

    def may_share_memory(self, _array: Array, _other: Array) -> bool:
        # JAX arrays are immutable, so sharing memory is harmless.
        return False

    def zeros(self, shape: Sequence[int], dtype: str) -> Array:
        return self.from_numpy(numpy_arrays.zeros(tuple(shape), dtype))

    def ones(self, shape: Sequence[int], dtype: str) -> Array:
        return self.from_numpy(numpy_arrays.ones(tuple(shape), dtype))

    def synchronise(self) -> None:
        # JAX has no call that synchronises a device; waiting for all live arrays also covers the temporary ones that
        # they depend on.
        jax.block_until_ready(jax.live_arrays(self.device.platform))

    def quiet(self) -> AbstractContextManager[Any]:
        return nullcontext()

    @contextmanager
    def assumptions(self) -> Iterator[list[Array]]:
        tracing = _Tracing(self, [])
        token = _tracing.set(tracing)
        try:
            yield tracing.assumed
        finally:
            _tracing.reset(token)

    def operand(self, value: Any) -> Any:
        # A Python float stays weakly typed: it takes the dtype of the arrays that it is combined with.
        return value if type(value) in (float, complex) else self.asarray(value)

    def compiled(self, function: Callable[..., Any], operands: Sequence[Any]) -> Callable[..., Any]:
        """`function` compiled by XLA for operands with the shapes and dtypes of `operands`."""
        run: Callable[..., Any] = jax.jit(function).lower(*operands).compile()
        return run

    def explained(self, error: Exception) -> GradcliError | None:
        text = str(error)
        return out_of_memory(text, _device(self.device).free) if "RESOURCE_EXHAUSTED" in text else None

    # --- where JAX gives something else than NumPy

    def scan(
        self, step: Step, start: Sequence[Array], counters: Sequence[float], rows: Sequence[Array]
    ) -> tuple[Sequence[Array], Sequence[Array]]:
        def body(values: Sequence[Array], given: tuple[Any, Sequence[Array]]) -> tuple[list[Array], list[Array]]:
            found = [*step(values, *given)]
            return found, found

        found: tuple[list[Array], list[Array]] = jax.lax.scan(body, [*start], (self.asarray([*counters]), [*rows]))
        return found

    def index(self, x: Array, key: Key) -> Array:
        check_key(key, tuple(x.shape))
        return x[key]

    def scatter_add(self, values: Array, key: Key, shape: Sequence[int]) -> Array:
        """Zeros of `shape` with `values` added at `key`; values at repeated positions accumulate."""
        check_key(key, tuple(shape))
        return jnp.zeros(tuple(shape), values.dtype, device=self.device).at[key].add(values)

    def remainder(self, x: Array, y: Array) -> Array:
        return common_definitions.remainder(self, x, y, jnp.remainder)

    def floor_divide(self, x: Array, y: Array) -> Array:
        value = jnp.floor_divide(x, y)
        return jnp.where(value == 0, jnp.copysign(jnp.zeros_like(value), jnp.divide(x, y)), value)

    def digamma(self, x: Array) -> Array:
        return jnp.where(x == 0, -jnp.copysign(math.inf, x), jax.scipy.special.digamma(x))

    def lgamma(self, x: Array) -> Array:
        return common_definitions.lgamma(self, x, jax.scipy.special.gammaln)

    def gamma(self, x: Array) -> Array:
        return common_definitions.gamma(self, x)

    def j0(self, x: Array) -> Array:
        return common_definitions.jv(self, 0, x)

    def j1(self, x: Array) -> Array:
        return common_definitions.jv(self, 1, x)

    def complex(self, real: Any, imag: Any) -> Array:
        dtype = jnp.result_type(real, imag)
        parts = [jnp.asarray(part, dtype) for part in (real, imag)]
        return jax.lax.complex(*jnp.broadcast_arrays(*parts))

    def einsum(self, *operands: Array, subscripts: str) -> Array:
        return jnp.einsum(subscripts, *operands)

    def expm(self, x: Array) -> Array:
        return jax.scipy.linalg.expm(x)


class LinAlgError(ValueError):
    """The counterpart of `numpy.linalg.LinAlgError`, which is recognised by its name."""


class _JaxLinearAlgebra:
    """`jax.numpy.linalg`, with errors where it returns nan and inf and NumPy raises LinAlgError."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp.linalg, name)

    def inv(self, x: Array) -> Array:
        _check_regular(x)
        return jnp.linalg.inv(x)

    def solve(self, a: Array, b: Array) -> Array:
        _check_regular(a)
        return jnp.linalg.solve(a, b)

    def cholesky(self, x: Array) -> Array:
        found = jnp.linalg.cholesky(x)
        _require(~jnp.isnan(found).any() | jnp.isnan(x).any(), "Matrix is not positive definite")
        return found


class _Tracing(NamedTuple):
    """The namespace of a function that is being traced, and the conditions that its results assume to be true."""

    namespace: JaxArrays
    assumed: list[Array]


_tracing: ContextVar[_Tracing | None] = ContextVar("gradcli_jax_tracing", default=None)


def _require(condition: Array, message: str) -> None:
    tracing = _tracing.get()
    if tracing is not None:
        tracing.assumed.append(condition)
    elif not bool(condition):
        raise LinAlgError(message)


def _check_regular(x: Array) -> None:
    if x.size:
        factors = jax.scipy.linalg.lu_factor(x)[0]
        _require((jnp.diagonal(factors, axis1=-2, axis2=-1) != 0).all(), "Singular matrix")


def namespace_of(array: Array) -> JaxArrays:
    tracing = _tracing.get()
    # A tracer has no device.
    return _on(next(iter(array.devices()))) if tracing is None else tracing.namespace


@cache
def _on(device: Any) -> JaxArrays:
    return JaxArrays(device)


def version() -> str:
    return str(jax.__version__)


def on_device(name: str) -> JaxArrays:
    """JAX on `cpu`, `cuda` or `cuda:N`. Raises UsageError or BackendError if there is no such device."""
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or not (number or "0").isdigit():
        raise UsageError(f"the backend jax has no device {name!r}", hint=_DEVICES_HINT)
    try:
        there = jax.devices(kind)
    except RuntimeError:
        there = []
    if int(number or 0) >= len(there):
        raise BackendError(
            f"there is no device {name!r}: JAX finds {', '.join(map(str, _all_devices()))}",
            hint="pip install 'jax[cuda12]' is JAX for CUDA; gradcli backends shows what is there",
        )
    return _on(there[int(number or 0)])


def _all_devices() -> Sequence[Any]:
    found = {str(d): d for d in (*jax.devices(), *jax.devices("cpu"))}
    return tuple(found.values())


def devices() -> Iterator[Device]:
    for device in _all_devices():
        yield _device(device)


def _device(device: Any) -> Device:
    if device.platform == "cpu":
        return host(str(device))
    memory = device.memory_stats() or {}
    limit, used = memory.get("bytes_limit"), memory.get("bytes_in_use")
    return Device(str(device), device.device_kind, limit, None if limit is None or used is None else limit - used)
