"""From which size on a program is worth recording and compiling."""

from __future__ import annotations

from typing import Any, NamedTuple


class Worth(NamedTuple):
    """From how many elements of its largest input on: of a program that is run once, of one that is
    run for the first time and may be run again, and of one that is run again."""

    once: int
    first: int
    again: int


# By backend: what a compiler takes, against what it saves.
_WORTH = {
    "numpy": Worth(2**20, 2**18, 0),
    "jax": Worth(2**16, 2**18, 0),
    "torch": Worth(2**26, 2**26, 2**20),
    "cupy": Worth(2**22, 2**22, 0),
}


def worth(namespace: Any) -> Worth | None:
    """That for a namespace, NumPy's where it is None; None where there is no compiler for it."""
    return _WORTH.get("numpy" if namespace is None else namespace.name)
