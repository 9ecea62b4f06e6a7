"""Reports decompositions that take the symmetric part of a matrix that is not symmetric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_told: ContextVar[Callable[[str], object] | None] = ContextVar("gradcli_symmetric_parts", default=None)
told_now = _told.get


@contextmanager
def telling(tell: Callable[[str], object]) -> Iterator[None]:
    """Within the block, `tell` is called for every decomposition that takes the symmetric part of another matrix, with
    what that matrix is not: "symmetric" or "Hermitian"."""
    token = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(token)
