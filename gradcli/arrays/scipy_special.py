"""Special functions that neither `math` nor NumPy has, from SciPy, which is imported at their first use."""

from __future__ import annotations

from typing import Any

from gradcli.arrays import spellings
from gradcli.timing import phase

# Below this SciPy goes from pole to pole, which takes for ever far below it.
_MANY_POLES = -20.0


def polygamma(n: int, x: Any) -> Any:
    """With x the fraction f below some whole number, the sum over the poles on its right is that of 1 - f on without that
    of 1 - x on."""
    import numpy as np
    import scipy.special

    far = np.less(x, _MANY_POLES)
    if not far.any():
        with np.errstate(all="ignore"):
            return scipy.special.polygamma(n, x)
    fraction = np.where(far, x - np.floor(x), x)
    # Of the others the mirror image might be far below.
    right, rightmost = np.where(far, 1.0 - fraction, 1.0), np.where(far, 1.0 - x, 1.0)
    with np.errstate(all="ignore"):
        between = scipy.special.polygamma(n, right) - scipy.special.polygamma(n, rightmost)
        value = scipy.special.polygamma(n, fraction)
        return np.where(far, value + (-1.0) ** (n + 1) * between, value)


def erfinv(x: Any) -> Any:
    """SciPy takes a hundred times as long to say nan where there is none, than for a nan."""
    import numpy as np
    import scipy.special

    return scipy.special.erfinv(np.where(np.abs(x) > 1.0, np.nan, x))


def __getattr__(name: str) -> Any:
    theirs = spellings.of(name).names.get("scipy")
    if theirs is None:
        raise spellings.MissingFunctionError("numpy", name)
    with phase("import"):
        import scipy.special

    return getattr(scipy.special, theirs)
