"""What PyTorch's code asks of GPUs before it takes one. Tensors are made on the CPU unless a backend is named, as in
`tensor(data, backend="cupy")`; `gradcli backends` shows the devices of each."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Whether a device that is asked for without a backend may be a GPU: it may not."""
    return False


def device_count() -> int:
    """How many such devices there are."""
    return 0


def current_device() -> int:
    """Raises RuntimeError: there is none."""
    raise RuntimeError("No CUDA GPUs are available")


def manual_seed_all(seed: Any) -> None:
    """Seed the numbers that GPUs draw: there are none."""


manual_seed = manual_seed_all


def synchronize(device: Any = None) -> None:
    """Wait for what was asked of a GPU: there is nothing."""


empty_cache = synchronize
