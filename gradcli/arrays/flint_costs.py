"""What functions of numbers of flint take, in eighths of the steps that a run may take: about 0.4 µs each."""

from __future__ import annotations

from functools import lru_cache

from gradcli.arrays.flint_names import home_of

# Bits of a number that are added or multiplied in an eighth.
_BITS = 100
# Of an exponential: bits that are taken for one, and the root of the bits that all of them are taken together in one.
_EACH, _SQUARE = 50, 50_000
# How many times that other functions take, and in how many bits they take that once more; and from which time on, in
# that of elements in floats, a function takes more than those.
_SPECIAL, _MORE, _LONG = 10, 1_000, 4
# Those that sum many terms with numbers of Bernoulli, and the bits in which they take once more than the others.
_OF_SUMS = frozenset({"polygamma", "riemann_zeta", "hurwitz_zeta"})
_SUMS = 1_500


@lru_cache(512)
def eighths(name: str, time: int, bits: int) -> int:
    """Those that a function of numbers takes at a precision, of one that takes so much `time` in floats; a sum or a
    product where the name is ""."""
    home = home_of(name) if name else None
    if home is None or home == "flint_functions":
        return 1 + bits // _BITS
    elementary = 4 + bits // _EACH + bits * bits // _SQUARE
    if home == "flint_elementary":
        return elementary
    sums = 1 + bits // _SUMS if name in _OF_SUMS else 1
    return elementary * (_SPECIAL + bits // _MORE) * max(1, time // _LONG) * sums
