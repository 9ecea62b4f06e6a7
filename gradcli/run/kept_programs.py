"""Programs over rows that are kept for the next time: who fits a model to one data set after the other records it once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from gradcli.language.syntax.tree import Module
from gradcli.run.row_programs import RowProgram

# So many programs are kept, of no more characters than this.
_MOST, _LONGEST = 16, 2**12

_programs: OrderedDict[Any, RowProgram] = OrderedDict()
_lock = threading.Lock()


def row_program(model: Module, wrt: Sequence[str], order: int, max_steps: int, max_elements: int) -> RowProgram:
    """The program that computes a model's rows, with its derivatives by `wrt` up to `order`: that which did so before,
    where all rows took the same path through it. What it gives does not depend on that."""
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
