"""The cost of functions of FLINT numbers, in eighths of a step of the budget: about 0.4 µs each."""

from __future__ import annotations

from functools import lru_cache

from gradcli.arrays.flint.flint_names import home_of

# The number of bits that an addition or multiplication processes in an eighth of a step.
_BITS = 100
# The cost of an elementary function such as exp in eighths of a step grows by bits/_EACH + bits**2/_SQUARE.
_EACH, _SQUARE = 50, 50_000
# A special function costs _SPECIAL + bits/_MORE times as much as an elementary one, and more in proportion if its
# relative cost in floats is a multiple of _LONG.
_SPECIAL, _MORE, _LONG = 10, 1_000, 4
# Functions that sum many terms with Bernoulli numbers cost an additional factor of 1 + bits/_SUMS.
_OF_SUMS = frozenset({"polygamma", "riemann_zeta", "hurwitz_zeta"})
_SUMS = 1_500


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
