"""How much memory there is, and the error where it is not enough."""

from __future__ import annotations

import os
import re

from gradcli.arrays.backends import Device
from gradcli.errors import LimitError

_UNITS = {"": 1, "bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = re.compile(r"(?:allocat\w*|requested)\D{0,30}?([\d,]+(?:\.\d+)?) ?(bytes|[KMGT]iB|)", re.IGNORECASE)


def host(name: str) -> Device:
    """The processor as a device, with the memory of the machine where the system tells."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (os.sysconf(key) * page for key in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return Device(name, "processor")
    return Device(name, "processor", total, free)


def out_of_memory(text: str, free: int | None) -> LimitError:
    """The error that says how many bytes were asked for, as far as the `text` of the library tells, and are free."""
    size = _SIZE.search(text)
    asked = int(float(size[1].replace(",", "")) * _UNITS[size[2]]) if size else None
    known = [f"{n:,} bytes {what}" for n, what in ((asked, "asked for"), (free, "free")) if n is not None]
    return LimitError(
        "out of memory" + (f": {', '.join(known)}" if known else ""),
        hint="make the arrays smaller, use --dtype float32, or a device with more memory (gradcli backends)",
    )
