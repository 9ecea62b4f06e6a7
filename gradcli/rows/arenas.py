"""How many threads of a run over rows share the memory that has been let go of."""

from __future__ import annotations

import sys

# Of glibc, in malloc.h.
_ARENA_MAX = -8
_ARENAS = 2


def share() -> None:
    """Have all threads that start from now on take their memory from two heaps.

    glibc has a heap for each thread, up to eight on each core, and keeps in it what the thread's blocks of rows were made
    of: 50 MB of 380 on two cores. The blocks are few and large, so that nobody waits for a heap.
    """
    if sys.platform != "linux":
        return
    import ctypes

    set_option = getattr(ctypes.pythonapi, "mallopt", None)
    if set_option is not None:
        set_option(_ARENA_MAX, _ARENAS)
