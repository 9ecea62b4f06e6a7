"""Results that some rows lack while others have them: arrays that are masked in those rows."""

from __future__ import annotations

from typing import Any

from gradcli import arrays


def masked(array: Any, absent: Any) -> Any:
    """Results `[n, …]`, which the rows `absent` lack."""
    np = arrays.numpy_namespace()
    mask = np.broadcast_to(absent.reshape(-1, *[1] * (array.ndim - 1)), array.shape)
    return np.ma.masked_array(array, mask)


def unmasked(found: Any) -> tuple[Any, Any | None]:
    """The numbers of results `[n, …]`, and which rows lack them, None where they are not masked."""
    # NumPy's module for masked arrays takes a while to load, and most runs have none.
    if not hasattr(found, "mask"):
        return found, None
    np = arrays.numpy_namespace()
    return np.ma.getdata(found), np.ma.getmaskarray(found).any(axis=tuple(range(1, found.ndim)))


def without(found: Any, null: Any) -> tuple[Any, Any]:
    """The numbers of results, and the rows that have none: those of `null`, which have no results at all, among them."""
    values, absent = unmasked(found)
    return values, null if absent is None else null | absent
