"""`torch.accelerator`, as seen on a machine without accelerators; see `gradcli.cuda`."""

from __future__ import annotations

from gradcli.cuda import device_count, is_available, synchronize

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def current_accelerator(check_available: bool = False) -> None:
    """Return None, as there is no accelerator."""
