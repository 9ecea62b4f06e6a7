"""The functions of the language, with the meaning that their names have in `torch.linalg`, else in `numpy.linalg`."""

from __future__ import annotations

from typing import Any

# Functions that give permutations or whole numbers, as tensors where they are called with one.
_OF_TENSORS = frozenset({"lu", "lu_factor", "matrix_rank"})


def __getattr__(name: str) -> Any:
    from gradcli.primitives import table

    if name in _OF_TENSORS:
        from gradcli.autograd.operations.tensor_functions import function

        return function(name)
    found = None if name.startswith("_") else table.find(name, "torch.linalg", "linalg")
    if found is None:
        raise AttributeError(f"module 'gradcli.linalg' has no attribute {name!r}{table.reason_suffix(name)}")
    return found
