"""Caches programs over rows, so that fitting one model to many data sets records it only once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from gradcli.language.syntax.tree import Module
from gradcli.rows.row_programs import RowProgram

# Number of programs in the cache, and the longest source text in characters that is cached.
_MOST, _LONGEST = 16, 2**12

_programs: OrderedDict[Any, RowProgram] = OrderedDict()
_lock = threading.Lock()


def row_program(model: Module, wrt: Sequence[str], order: int, max_steps: int, max_elements: int) -> RowProgram:
    """Return the program that computes the rows of a model, with derivatives by `wrt` up to `order`, from the cache.

    A cached program is reused only while all its rows have taken the same execution path. Its results do not depend on
    the cache.
    """
    key = model.source, tuple(wrt), order, max_steps, max_elements
    with _lock:
        found = _programs.pop(key, None)
        if found is None or not found.is_one_path:
            found = RowProgram(model, wrt, order, max_steps=max_steps, max_elements=max_elements)
        if len(model.source) <= _LONGEST:
            _programs[key] = found
        if len(_programs) > _MOST:
            _programs.popitem(last=False)
    return found
