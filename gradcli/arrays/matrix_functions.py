"""Square roots and logarithms of matrices, by SciPy."""

from __future__ import annotations

import math
import warnings
from typing import Any

# Errors of SciPy's algorithms, which compute with complex numbers, up to this many units of rounding of the largest
# element.
_ROUNDINGS = 2.0**20
# Matrices whose largest element is outside of this range are scaled, as SciPy's logm does not end where a Schur form
# overflows.
_SMALL, _LARGE = 1e-100, 1e100


def of_each(name: str, x: Any) -> Any:
    """The function of `scipy.linalg` of each matrix over the last two axes of a NumPy array.

    nan for a real matrix where it is not real, and for one that has no square root or no logarithm.
    """
    import numpy

    x = numpy.asarray(x)
    x = x if x.dtype.kind in "fc" else x.astype("float64")
    found = numpy.empty(x.shape, x.dtype)
    for place in numpy.ndindex(x.shape[:-2]):
        finite = x.shape[-1] and numpy.isfinite(x[place]).all()
        found[place] = _scaled(numpy, name, x[place]) if finite else numpy.nan
    return found


def _scaled(numpy: Any, name: str, x: Any) -> Any:
    """The function of one finite matrix, which is divided by a power of 4 where its elements are very large or small."""
    largest = float(numpy.abs(x).max())
    if largest == 0.0 or _SMALL <= largest <= _LARGE:
        return _of_one(numpy, name, x)
    half = math.frexp(largest)[1] // 2
    root = 2.0**half
    found = _of_one(numpy, name, x / root / root)
    if name == "sqrtm":
        return found * root
    return found + 2 * half * math.log(2.0) * numpy.eye(len(x))


def _of_one(numpy: Any, name: str, x: Any) -> Any:
    import scipy.linalg

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = getattr(scipy.linalg, name)(x)
    if any("exactly singular" in str(warning.message) for warning in said) and name == "logm":
        return numpy.nan
    unit = _ROUNDINGS * numpy.finfo(x.dtype).eps
    if x.dtype.kind != "c" and found.dtype.kind == "c":
        if not numpy.abs(found.imag).max() <= unit * numpy.abs(found).max():
            return numpy.nan
        found = found.real
    if name == "sqrtm" and not numpy.abs(found @ found - x).max() <= unit * numpy.abs(x).max():
        return numpy.nan
    return found
