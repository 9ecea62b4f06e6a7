"""Special functions that neither `math` nor NumPy has, from SciPy, which is imported at their first use."""

from __future__ import annotations

from typing import Any

from gradcli.timing import phase

# Our name: SciPy's name.
_NAMES = {
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "gamma": "gamma",
    "lgamma": "gammaln",
    "digamma": "digamma",
    "polygamma": "polygamma",
    "betaln": "betaln",
    "ndtri": "ndtri",
    "i0": "i0",
    "iv": "iv",
    "jv": "jv",
    "i1": "i1",
    "j0": "j0",
    "j1": "j1",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with phase("import"):
        import scipy.special

    return getattr(scipy.special, _NAMES[name])
