"""`torch.cuda`, as seen on a machine without GPUs.

Tensors are made on the CPU unless a backend is named, as in `tensor(data, backend="cupy")`; `gradcli backends` shows
the devices of each.
"""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Return whether a GPU is used without naming a backend, which is never so."""
    return False


def device_count() -> int:
    """The number of GPUs that are used without naming a backend: 0."""
    return 0


def current_device() -> int:
    """Raise RuntimeError, as there is no current device."""
    raise RuntimeError("No CUDA GPUs are available")


def manual_seed_all(seed: Any) -> None:
    """Accept the seed and do nothing."""


manual_seed = manual_seed_all


def synchronize(device: Any = None) -> None:
    """Do nothing."""


empty_cache = synchronize
