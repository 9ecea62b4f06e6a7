"""Special functions that neither `math` nor NumPy has, from SciPy, which is imported at their first use."""

from __future__ import annotations

from typing import Any

from gradcli.arrays import spellings
from gradcli.timing import phase


def __getattr__(name: str) -> Any:
    theirs = spellings.of(name).names.get("scipy")
    if theirs is None:
        raise spellings.MissingFunctionError("numpy", name)
    with phase("import"):
        import scipy.special

    return getattr(scipy.special, theirs)
