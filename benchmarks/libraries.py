"""The array libraries on a device: identical input numbers, copies, and their own derivatives."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Computes a value and both gradients, and returns when the device has finished.
Run = Callable[[], Sequence[Any]]

# x and q are multiples of these numbers modulo 2**32, which every library can generate on its device.
FACTORS = (2654435761, 2246822519)
_MASK = 2**32 - 1


class Torch:
    def __init__(self, device: str) -> None:
        self.torch = importlib.import_module("torch")
        self.version = str(self.torch.__version__)
        if device == "cuda" and not self.torch.cuda.is_available():
            raise RuntimeError(f"PyTorch {self.version} finds no CUDA device")
        self.device = self.torch.device(device)
        self.device_name = self.torch.cuda.get_device_name() if device == "cuda" else "CPU"

    def numbers(self, elements: int, dtype: str) -> tuple[Any, ...]:
        """x and q, uniformly distributed between 0.5 and 1.5."""
        found = []
        for factor in FACTORS:
            whole = self.torch.arange(elements, device=self.device) * factor & _MASK
            found.append((whole.to(self.torch.float64) / 2**32 + 0.5).to(getattr(self.torch, dtype)))
        return tuple(found)

    def wait(self, _outputs: Any) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def forget_peak(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.empty_cache()
            self.torch.cuda.reset_peak_memory_stats()

    def peak(self) -> int | None:
        """The peak memory in bytes since `forget_peak`, if the library reports it."""
        return self.torch.cuda.max_memory_allocated() if self.device.type == "cuda" else None

    def copy(self, x: Any, q: Any) -> Run:
        pairs = [(self.torch.empty_like(a), a) for a in (x, q)]

        def run() -> Sequence[Any]:
            copies = [there.copy_(here) for there, here in pairs]
            self.wait(copies)
            return copies

        return run

    def _function(self, x: Any, q: Any) -> Any:
        return (self.torch.log(x**q) * self.torch.sin(x) + self.torch.exp(-x * x)).sum()

    def own(self, x: Any, q: Any) -> Run:
        return self._own(self._function, x, q)

    def own_compiled(self, x: Any, q: Any) -> Run:
        return self._own(self.torch.compile(self._function), x, q)

    def _own(self, function: Callable[..., Any], x: Any, q: Any) -> Run:
        leaves = [a.requires_grad_() for a in (x, q)]

        def run() -> Sequence[Any]:
            value = function(*leaves)
            outputs = (value.detach(), *self.torch.autograd.grad(value, leaves))
            self.wait(outputs)
            return outputs

        return run


class Cupy:
    def __init__(self, device: str) -> None:
        self.cupy = importlib.import_module("cupy")
        self.version = str(self.cupy.__version__)
        if device != "cuda":
            raise RuntimeError("CuPy computes on CUDA devices alone")
        properties = self.cupy.cuda.runtime.getDeviceProperties(self.cupy.cuda.Device().id)
        self.device_name = properties["name"].decode()

    def numbers(self, elements: int, dtype: str) -> tuple[Any, ...]:
        wholes = (self.cupy.arange(elements) * factor & _MASK for factor in FACTORS)
        return tuple((whole / 2**32 + 0.5).astype(dtype) for whole in wholes)

    def wait(self, _outputs: Any) -> None:
        self.cupy.cuda.Device().synchronize()

    def forget_peak(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()

    def peak(self) -> int | None:
        # The pool returns no memory by itself, so its size is the peak.
        return int(self.cupy.get_default_memory_pool().total_bytes())

    def copy(self, x: Any, q: Any) -> Run:
        pairs = [(self.cupy.empty_like(a), a) for a in (x, q)]

        def run() -> Sequence[Any]:
            for there, here in pairs:
                self.cupy.copyto(there, here)
            self.wait(pairs)
            return [there for there, _ in pairs]

        return run


class Jax:
    def __init__(self, device: str) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.version = str(self.jax.__version__)
        self.device = self.jax.devices(device)[0]
        self.device_name = "CPU" if device == "cpu" else self.device.device_kind

    def numbers(self, elements: int, dtype: str) -> tuple[Any, ...]:
        jnp = self.jax.numpy

        def make() -> tuple[Any, ...]:
            wholes = (jnp.arange(elements, dtype="int64") * factor & _MASK for factor in FACTORS)
            return tuple((whole / 2**32 + 0.5).astype(dtype) for whole in wholes)

        with self.jax.default_device(self.device):
            # Compiled as one program, so that intermediate results need no memory.
            made = self.jax.block_until_ready(self.jax.jit(make)())
        # Committed to the device, so that computations stay there.
        return tuple(self.jax.device_put(made, self.device))

    def wait(self, outputs: Any) -> None:
        self.jax.block_until_ready(outputs)

    def forget_peak(self) -> None:
        """JAX cannot reset the peak, which is that of the whole process."""

    def peak(self) -> int | None:
        return (self.device.memory_stats() or {}).get("peak_bytes_in_use")

    def copy(self, x: Any, q: Any) -> Run:
        return self._run(self.jax.jit(lambda x, q: (self.jax.numpy.copy(x), self.jax.numpy.copy(q))), x, q)

    def own_compiled(self, x: Any, q: Any) -> Run:
        jnp = self.jax.numpy

        def function(x: Any, q: Any) -> Any:
            return (jnp.log(x**q) * jnp.sin(x) + jnp.exp(-x * x)).sum()

        compiled = self.jax.jit(self.jax.value_and_grad(function, (0, 1)))

        def flat(x: Any, q: Any) -> Sequence[Any]:
            value, gradients = compiled(x, q)
            return value, *gradients

        return self._run(flat, x, q)

    def _run(self, function: Callable[..., Sequence[Any]], x: Any, q: Any) -> Run:
        def run() -> Sequence[Any]:
            outputs = function(x, q)
            self.wait(outputs)
            return outputs

        return run


LIBRARIES: Mapping[str, Callable[[str], Any]] = {"torch": Torch, "cupy": Cupy, "jax": Jax}
