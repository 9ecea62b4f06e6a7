"""The special functions of the language, by their names in `torch.special` and `scipy.special`."""

from __future__ import annotations

from typing import Any

# PyTorch's polynomials, which take the degree behind the number.
_DEGREE_LAST = {
    "chebyshev_polynomial_t": "eval_chebyt",
    "chebyshev_polynomial_u": "eval_chebyu",
    "hermite_polynomial_h": "eval_hermite",
    "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre",
    "legendre_polynomial_p": "eval_legendre",
}


def __getattr__(name: str) -> Any:
    from gradcli.primitives import table

    if name in _DEGREE_LAST:
        polynomial = table.known(_DEGREE_LAST[name])
        return lambda input, n: polynomial(n, input)
    if name == "spherical_bessel_j0":
        return lambda input: table.known("spherical_jn")(0, input)
    found = None if name.startswith("_") else table.find(name, "scipy.special")
    if found is None:
        raise AttributeError(f"module 'gradcli.special' has no attribute {name!r}{table.reason_suffix(name)}")
    return found
