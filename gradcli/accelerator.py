"""What PyTorch's code asks of accelerators before it takes one; see `gradcli.cuda`."""

from __future__ import annotations

from gradcli.cuda import device_count, is_available, synchronize

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def current_accelerator(check_available: bool = False) -> None:
    """The device that is asked for by no name: there is none."""
