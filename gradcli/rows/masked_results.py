"""Results that only some rows lack, as masked arrays."""

from __future__ import annotations

from typing import Any

from gradcli import arrays


def masked(array: Any, absent: Any) -> Any:
    """Results `[n, …]` masked in the rows marked by `absent` `[n]`."""
    np = arrays.numpy_namespace()
    mask = np.broadcast_to(absent.reshape(-1, *[1] * (array.ndim - 1)), array.shape)
    return np.ma.masked_array(array, mask)


def unmasked(found: Any) -> tuple[Any, Any | None]:
    """The data of results `[n, …]`, and a mask of the rows that lack them, None where they are not masked."""
    # numpy.ma takes a while to import, and most runs have no masked results.
    if not hasattr(found, "mask"):
        return found, None
    np = arrays.numpy_namespace()
    return np.ma.getdata(found), np.ma.getmaskarray(found).any(axis=tuple(range(1, found.ndim)))


def without(found: Any, null: Any) -> tuple[Any, Any]:
    """The data of results, and a mask of the rows without them, including the rows `null`, which have no results at
    all."""
    values, absent = unmasked(found)
    return values, null if absent is None else null | absent
