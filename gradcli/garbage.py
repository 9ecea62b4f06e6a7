"""Pauses the collection of garbage while many objects are made that all stay.

Modules and traced programs are made of tens of thousands of objects, none of which is garbage. Looking at all of them
would take a tenth of the time to the first result of a program.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Context manager and decorator within which no garbage is collected; for work of less than a second."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def imports_promoted() -> Iterator[None]:
    """Context manager for imports: no garbage is collected within it, and then all objects are in the oldest generation.

    Otherwise the next collections of both younger generations would look at all objects of the modules. Garbage of the
    caller is promoted too, and is found by a full collection, so that this is only for what happens a few times.
    """
    with collection_paused():
        yield
        # `unfreeze` would also release what the caller has frozen.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
