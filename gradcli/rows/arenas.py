"""The number of malloc arenas that the threads of a run share."""

from __future__ import annotations

import sys

# M_ARENA_MAX in glibc's malloc.h.
_ARENA_MAX = -8
_ARENAS = 2


def share() -> None:
    """Make all threads that start later allocate from two arenas.

    By default glibc uses an arena for each thread, up to eight per core, and each retains memory of freed blocks of
    rows: 50 MB of 380 on two cores. Blocks are few and large, so that threads rarely wait for an arena.
    """
    if sys.platform != "linux":
        return
    import ctypes

    set_option = getattr(ctypes.pythonapi, "mallopt", None)
    if set_option is not None:
        set_option(_ARENA_MAX, _ARENAS)
