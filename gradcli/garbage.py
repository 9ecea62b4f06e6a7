"""Pauses the collection of garbage while many objects are made that all stay.

Modules and traced programs are made of tens of thousands of objects. Collections, which find none of them to be garbage,
would take a third of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """Context manager and decorator within which no garbage is collected; for work of less than a second."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
