"""Weierstrass's elliptic function of the lattice of 1 and tau, and what its derivatives need, in NumPy.

The ratio of the periods is moved to abs(Re tau) <= 1/2, abs(tau) >= 1, where sums over the rows of the lattice, each of
which is a function of exp(2*pi*i*z), converge as powers of exp(-5.4); see Johansson, arXiv:1806.06725, section 4.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradcli.arrays.host_functions import check_on_host

# The rows beside the one through 0 that are not below rounding errors, and the terms of Eisenstein series.
_ROWS, _TERMS = 8, 12
# An inversion at least doubles the imaginary part of tau, up to the last ones; smaller ones than floats have are no more.
_INVERSIONS = 2_200
# The ends of the region of tau are moved by rounding.
_INSIDE = 1.0 - 1e-12
_TURN = 2j * math.pi


class _Reduced(NamedTuple):
    """Operands in the region where sums converge: the functions of the given ones follow from those of `z` and `tau`."""

    z: Any
    tau: Any
    # The given lattice over that of 1 and the new tau.
    scale: Any
    # What the logarithmic derivative of theta has beside its value at z, over `scale`.
    shift: Any
    # -1 where the sign of z was changed, else 1.
    sign: Any
    # What the Eisenstein series of weight 2 has beside its value at tau, over `scale` squared.
    rise: Any


def _reduced(xp: Any, z: Any, tau: Any) -> _Reduced:
    """Raises MissingFunctionError for arrays of another library."""
    check_on_host(xp, "elliptic_p")
    import numpy as np

    z, tau = np.broadcast_arrays(np.asarray(z, "complex128"), np.asarray(tau, "complex128"))
    is_known = np.isfinite(z) & np.isfinite(tau) & (np.imag(tau) > 0.0)
    z, tau = np.where(is_known, z, math.nan), np.where(is_known, tau, 1j)
    scale, shift, rise = np.ones_like(tau), np.zeros_like(tau), np.zeros_like(tau)
    for _ in range(_INVERSIONS):
        tau = tau - np.round(np.real(tau))
        inverted = np.abs(tau) < _INSIDE
        if not inverted.any():
            break
        by = np.where(inverted, tau, 1.0)
        shift = shift - np.where(inverted, _TURN * z / (by * scale), 0.0)
        rise = rise - np.where(inverted, 12.0 / (_TURN * by * scale * scale), 0.0)
        scale, z, tau = scale * by, z / by, np.where(inverted, -1.0 / by, tau)
    rows = np.round(np.imag(z) / np.imag(tau))
    z = z - rows * tau
    z = z - np.round(np.real(z))
    sign = np.where(np.imag(z) < 0.0, -1.0, 1.0)
    return _Reduced(z * sign, tau, scale, shift - _TURN * rows / scale, sign, rise)


def _over_rows(np: Any, at: _Reduced, term: Any, parity: int) -> Any:
    """The sum over the rows of a function of t = exp(2*pi*i*u) and 1 - t, which is odd or even in u."""
    turned = _TURN * at.z
    total = term(np.exp(turned), -np.expm1(turned))
    for row in range(1, _ROWS + 1):
        for side in (1, -1):
            t = np.exp(_TURN * row * at.tau + side * turned)
            total = total + (parity if side < 0 else 1) * term(t, 1.0 - t)
    return total


def elliptic_p(xp: Any, z: Any, tau: Any) -> Any:
    """Weierstrass's function."""
    at = _reduced(xp, z, tau)
    import numpy as np

    with np.errstate(all="ignore"):
        rows = _over_rows(np, at, lambda t, rest: t / (rest * rest), 1)
        value = -4.0 * math.pi**2 * rows - math.pi**2 / 3.0 * _eisenstein(np, at.tau, 2)
        return _as_given(np, value / (at.scale * at.scale), z, tau)


def elliptic_p_prime(xp: Any, z: Any, tau: Any) -> Any:
    """The derivative of Weierstrass's function by z."""
    at = _reduced(xp, z, tau)
    import numpy as np

    with np.errstate(all="ignore"):
        rows = _over_rows(np, at, lambda t, rest: t * (1.0 + t) / (rest * rest * rest), -1)
        return _as_given(np, at.sign * -8j * math.pi**3 * rows / (at.scale * at.scale * at.scale), z, tau)


def theta_slope(xp: Any, z: Any, tau: Any) -> Any:
    """The derivative by z of the logarithm of the first theta function, with the zeros of Weierstrass's sigma."""
    at = _reduced(xp, z, tau)
    import numpy as np

    with np.errstate(all="ignore"):
        turned = _TURN * at.z
        total = -0.5 * (1.0 + np.exp(turned)) / -np.expm1(turned)
        for row in range(1, _ROWS + 1):
            for side in (1, -1):
                t = np.exp(_TURN * row * at.tau + side * turned)
                total = total - side * t / (1.0 - t)
        return _as_given(np, at.sign * _TURN * total / at.scale + at.shift, z, tau)


def eisenstein(xp: Any, tau: Any, k: int) -> Any:
    """The Eisenstein series of weight k = 2, 4 or 6, which is 1 at infinity."""
    at = _reduced(xp, 0.0, tau)
    import numpy as np

    value = _eisenstein(np, at.tau, k) / at.scale**k
    value = value + at.rise if k == 2 else value
    return _as_given(np, np.where(np.imag(tau) > 0.0, value, math.nan), tau)


def _eisenstein(np: Any, tau: Any, k: int) -> Any:
    q = np.exp(_TURN * tau)
    terms = sum(n ** (k - 1) * q**n / (1.0 - q**n) for n in range(1, _TERMS))
    return 1.0 + {2: -24.0, 4: 240.0, 6: -504.0}[k] * terms


def _as_given(np: Any, value: Any, *operands: Any) -> Any:
    """A result in the precision of the arrays among its operands."""
    dtypes = [x.dtype for x in operands if hasattr(x, "dtype")]
    return value.astype(np.result_type("complex64", *dtypes)) if dtypes else value
