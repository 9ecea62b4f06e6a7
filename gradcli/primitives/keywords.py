"""The keywords of other libraries, and what they are called here."""

from __future__ import annotations

from collections.abc import Collection

# The first of the names that a function has is meant.
_MEANINGS = {
    "dim": ("axis", "axes"),
    "dims": ("axis", "axes"),
    "axes": ("axis",),
    "keepdim": ("keepdims",),
    "ddof": ("correction",),
    "unbiased": ("correction",),
    "a_min": ("min",),
    "a_max": ("max",),
    "fill_value": ("value",),
    "steps": ("num",),
    "shifts": ("shift",),
    "diagonal": ("k",),
    "offset": ("k",),
    "p": ("ord",),
}


def rename(keyword: str, known: Collection[str]) -> str:
    """The one of the `known` names that a keyword means; the keyword itself, where there is none."""
    if keyword in known:
        return keyword
    return next((name for name in _MEANINGS.get(keyword, ()) if name in known), keyword)
