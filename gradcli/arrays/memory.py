"""The memory of the host, and the error for running out of memory."""

from __future__ import annotations

import os
import re

from gradcli.arrays.backends import Device
from gradcli.errors import LimitError

# Compiled at its first use, as few runs need it.
_SIZE = r"allocat(?:e|ing) ([\d,]+(?:\.\d+)?) ?(bytes|[KMGT]iB)"


def host(name: str) -> Device:
    """The CPU as a device, with the memory of the machine if the system reports it."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (os.sysconf(key) * page for key in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return Device(name, "processor")
    # Imported here, because few runs need it.
    from gradcli import subprocess_calls

    left = subprocess_calls.memory_left()
    return Device(name, "processor", total, free if left is None else min(free, left))


def out_of_memory(text: str, free: int | None) -> LimitError:
    """The error for running out of memory, with the free bytes and the requested size.

    The size is taken from the library's message `text`, if it is found there.
    """
    size = re.search(_SIZE, text, re.IGNORECASE)
    known = [f"{size[1]} {size[2]} asked for"] if size else []
    if free is not None:
        known.append(f"{free:,} bytes free")
    return LimitError(
        "out of memory" + (f": {', '.join(known)}" if known else ""),
        hint="make the arrays smaller, use --dtype float32, or a device with more memory (gradcli backends)",
    )
