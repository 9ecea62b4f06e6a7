"""Which functions of FLINT numbers there are, by name: where each is, what it costs, and what the missing ones need."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

_HOMES = (
    "flint_functions",
    "flint_elementary",
    "flint_special",
    "flint_incomplete",
    "flint_bessel",
    "flint_analytic",
    "flint_reciprocals",
)

# The cost of functions is in eighths of a step of the budget: about 0.4 µs each.
# The number of bits that an addition or multiplication processes in an eighth of a step.
_BITS = 100
# The cost of an elementary function such as exp in eighths of a step grows by bits/_EACH + bits**2/_SQUARE.
_EACH, _SQUARE = 50, 50_000
# A special function costs _SPECIAL + bits/_MORE times as much as an elementary one, and more in proportion if its
# relative cost in floats is a multiple of _LONG.
_SPECIAL, _MORE, _LONG = 10, 1_000, 4
# The largest relative costs of a function of complex balls, and of one that sums Bernoulli numbers: what takes long in
# floats takes about as long as other functions in balls.
_LONGEST_OF_COMPLEX, _LONGEST_SUM_OF_COMPLEX = 8, 16
# How many operations of arithmetic, or elementary functions, of a compiled program of complex balls cost as one in floats:
# integrals for which the steps suffice take up to half a minute.
_ELEMENTARY_OF_COMPLEX = 4
# Functions that sum many terms with Bernoulli numbers cost an additional factor of 1 + bits/_SUMS.
_OF_SUMS = frozenset({"polygamma", "riemann_zeta", "hurwitz_zeta"})
_SUMS = 1_500

# The functions without a definition in ball arithmetic, and the missing operation that each would need.
MISSING_FUNCTIONS = {
    "cholesky": "Cholesky decomposition",
    "cond": "singular values; a norm of order 1, inf or 'fro' has digits",
    "eigh": "eigenvectors",
    "eigvalsh": "eigenvalues",
    "logm": "logarithms of matrices",
    "matrix_rank": "singular values",
    "nextafter": "neighbours of a number",
    "qr": "QR decomposition",
    "sqrtm": "square roots of matrices",
    "svd": "singular vectors",
    "svdvals": "singular values",
}
# The same for functions of functions, which are not functions of the namespace.
MISSING_FUNCTIONALS = {
    "nsum": "enclosed sums of infinite series that converge slowly; finite and fast ones have digits",
}


@cache
def home_of(name: str) -> str | None:
    """The module of the function of numbers with this name, None if there is none.

    Modules used most are searched first.
    """
    return next((home for home in _HOMES if hasattr(import_module(f"gradcli.arrays.flint.{home}"), name)), None)


@cache
def of_numbers(name: str) -> Callable[..., Any] | None:
    """The function of numbers with this name, None if there is none."""
    home = home_of(name)
    return None if home is None else getattr(import_module(f"gradcli.arrays.flint.{home}"), name)


@lru_cache(512)
def cost(name: str, time: int, bits: int) -> int:
    """The cost of a function of numbers in eighths of a step, at a precision of `bits`.

    `time` is its relative cost in floats. The name "" stands for a sum or product.
    """
    home = home_of(name) if name else None
    if home is None or home == "flint_functions":
        return 1 + bits // _BITS
    elementary = 4 + bits // _EACH + bits * bits // _SQUARE
    if home == "flint_elementary":
        return elementary
    sums = 1 + bits // _SUMS if name in _OF_SUMS else 1
    return elementary * (_SPECIAL + bits // _MORE) * max(1, time // _LONG) * sums


def cost_of_complex(name: str, time: int, bits: int) -> float:
    """The cost of a function of complex balls in eighths of a step, at a precision of `bits`."""
    if home_of(name) in (None, "flint_functions", "flint_elementary"):
        return cost(name, time, bits) / _ELEMENTARY_OF_COMPLEX
    return cost(name, min(time, _LONGEST_SUM_OF_COMPLEX if name in _OF_SUMS else _LONGEST_OF_COMPLEX), bits)
