"""Estimates how many digits of a derivative are right, from its distance to a shadow computed with other roundings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from gradcli import arrays
from gradcli.kinds import batch
from gradcli.kinds.jets import Jet
from gradcli.primitives.entries.arithmetic import absolute, multiply, subtract

# Relative error of a float64 number that has lost half of its bits.
_HALF_OF_A_FLOAT = 2.0**-26
# Approximate ratio of the perturbation of an operation in the shadow to its rounding error.
_EXAGGERATED = 8.0
# The largest unit of a leaf: its powers do not overflow.
_LARGEST_UNIT = 1e15
_NO_LEAVES: Mapping[str, Any] = {}
# Number of deviations within which a computed derivative is considered 0.
_BY_CHANCE = 16.0


def half_of_digits(number: Any) -> float:
    """The relative error of a number that has lost half of its bits."""
    return math.ldexp(1.0, math.floor(math.log2(arrays.epsilon(arrays.dtype_name(number))) / 2))


def deviation(one: Any, other: Any) -> Any:
    """The distance of two numbers of any kinds."""
    return absolute(subtract(one, other))


def is_inaccurate(series: Any) -> bool:
    """Return whether a coefficient of a watched Taylor series has lost more than half of its digits."""
    if not isinstance(series, Jet) or series.shadow is None:
        return False
    found, apart = {}, {}
    # Counted from order 2, since lower orders are not judged.
    for order, pair in enumerate(zip(series.coefficients, series.shadow.coefficients), 2):
        if pair[0] is not None and pair[1] is not None:
            found[order], apart[order] = batch.unwrap_rows(pair[0]), batch.unwrap_rows(deviation(*pair))
    return bool(digits_left_by_order(found, apart))


def digits_left_by_order(found: Mapping[int, Any], deviations: Mapping[int, Any]) -> dict[int, int]:
    """Like `digits_left`, for derivatives by a single leaf, keyed by order."""

    def named(numbers: Mapping[int, Any]) -> dict[str, Any]:
        return {",".join("t" * order): number for order, number in numbers.items()}

    return {len(key.split(",")): digits for key, digits in digits_left(named(found), named(deviations)).items()}


def digits_left(
    found: Mapping[str, Any], deviations: Mapping[str, Any], value: Any = 0.0, leaves: Mapping[str, Any] = _NO_LEAVES
) -> dict[str, int]:
    """Return about how many digits are right, for each derivative that lost more than half of them.

    `found` and `deviations` are arrays keyed by leaves joined with commas; `value` is the differentiated value. A
    tensor is judged by its worst element. Derivatives of order 1 are not judged, nor are numbers that are not finite or
    have a shadow that is not finite. Orders are compared as if each number among the `leaves` that is above 1 in
    magnitude were the unit of its derivatives: sqrt(1 + x**2) bends little at 1e6, and by as many digits as elsewhere.

    An element that is 0 up to rounding has no relative error of its own. It is judged relative to the largest
    derivative by the same leaves (or fewer) whose order differs by at most one, and of further orders below those that
    cancelled exactly. For a mixed derivative the scale is limited by mixed ones of neighbouring or lower order that are
    certainly nonzero. An element that is exactly 0 is judged relative to all lower orders and the value.
    """
    suspects = [key for key, d in deviations.items() if "," in key and d is not None and not _is_near(found[key], d)]
    if not suspects:
        return {}
    found, deviations = _in_units_of(leaves, found), _in_units_of(leaves, deviations)
    sizes, apart = _Sizes(found), _Sizes(deviations)
    certain = _Sizes({k: d for k, d in found.items() if d is not None and largest(d) > _BY_CHANCE * apart.of(k)})
    left = {}
    for key in suspects:

        def exact(key: str = key) -> float:
            return max(sizes.near(key, below=len(key)), largest(value))

        # A derivative that cancelled exactly does not show how large its neighbours may be.
        below = 1 + sizes.zeros_below(key, apart)
        near = max(sizes.near(key), certain.near(key, below) if below > 1 else 0.0)
        # Derivatives by a single leaf may exceed a nonzero mixed one by orders of magnitude.
        scale = min(near, certain.mixed(key))
        lost = _lost(found[key], deviations[key], _BY_CHANCE * apart.near(key), scale, exact)
        if lost > half_of_digits(found[key]):
            left[key] = digits_of(lost)
    return left


def _in_units_of(leaves: Mapping[str, Any], derivatives: Mapping[str, Any]) -> Mapping[str, Any]:
    """Derivatives times the numbers above 1 among the leaves that they are by."""
    units = {
        name: min(abs(float(leaf)), _LARGEST_UNIT)
        for name, leaf in leaves.items()
        if not arrays.shape(leaf) and not arrays.is_complex(leaf) and abs(float(leaf)) > 1.0
    }
    if not units:
        return derivatives
    factors = {key: math.prod(units.get(name, 1.0) for name in key.split(",")) for key in derivatives}
    return {key: None if d is None else multiply(d, factors[key]) for key, d in derivatives.items()}


def first_digits_left(number: Any, distance: Any) -> int | None:
    """Return about how many digits of a gradient are right, from its distance to the shadow; None where at least half
    are.

    An element that is 0 up to rounding is judged relative to the largest element.
    """
    apart = multiply(distance, 1.0 / _EXAGGERATED)
    beside = largest(number)
    lost = _lost(number, apart, _BY_CHANCE * largest(apart), beside, lambda: beside)
    return None if lost <= half_of_digits(number) else digits_of(lost)


def digits_of(lost: float) -> int:
    """The number of right digits for a relative error."""
    return 0 if lost >= 1 else math.floor(-math.log10(lost))


def _is_near(number: Any, distance: Any) -> bool:
    """A cheap test whether a number has certainly lost few digits, as most have."""
    return type(number) is float and type(distance) is float and distance <= _HALF_OF_A_FLOAT * abs(number)


def _lost(derivative: Any, distance: Any, noise: float, scale: float, exact: Callable[[], float]) -> float:
    """The largest relative error of an element.

    Elements not above `noise` are judged relative to `scale`, and elements that are exactly 0 relative to `exact()`.
    Elements whose shadow is not finite, as outside a domain, count as exact.
    """
    number, apart = arrays.on_host(derivative), arrays.on_host(distance)
    if type(number) is float and type(apart) is float:
        if apart == 0 or not math.isfinite(apart):
            return 0.0
        size = abs(number)
        return arrays.floats.divide(apart, exact() if size == 0 else scale if size <= noise else size)
    xp = arrays.numpy_namespace()
    with arrays.quiet():
        sizes = xp.abs(number)
        zero = xp.equal(sizes, 0.0)
        scales = xp.where(zero, exact() if xp.any(zero) else 0.0, xp.where(xp.less_equal(sizes, noise), scale, sizes))
        judged = xp.logical_and(xp.isfinite(apart), xp.not_equal(apart, 0.0))
        return float(xp.max(xp.where(judged, xp.divide(apart, scales), 0.0), initial=0.0))


def loss_text(left: Mapping[str, int]) -> str:
    """The result of `digits_left` in words."""
    worst = min(left, key=lambda key: (left[key], -len(key)))
    leaves = worst.split(",")
    which = f"of order {len(leaves)} by {leaves[0]}" if len({*leaves}) == 1 < len(leaves) else f"by {worst}"
    others = f", {len(left) - 1} other{'s' if len(left) > 2 else ''} fewer than half" if len(left) > 1 else ""
    return f"the derivative {which} has {digits_text(left[worst])}{others}"


def loss_of_value(left: int | None) -> str:
    """The number of right digits of a value in words; None for a value that is at most as large as its error."""
    if left is None:
        return "the value cannot be distinguished from 0"
    return f"the value has {digits_text(left)}"


def loss_of_order(order: int, left: int) -> str:
    """The number of right digits of a derivative of some order in words."""
    return f"the derivative of order {order} has {digits_text(left)}"


def digits_text(digits: int) -> str:
    """A number of right digits in words."""
    return {0: "no right digit", 1: "one right digit"}.get(digits, f"about {digits} right digits")


class _Sizes:
    """The largest magnitudes of derivatives, by set of leaves and order."""

    def __init__(self, derivatives: Mapping[str, Any]) -> None:
        self._largest: dict[frozenset[str], dict[int, float]] = {}
        for key, derivative in derivatives.items():
            if derivative is not None:
                leaves, order = _kind(key)
                by_order = self._largest.setdefault(leaves, {})
                by_order[order] = max(by_order.get(order, 0.0), largest(derivative))

    def near(self, key: str, below: int = 1) -> float:
        """Estimate the magnitude of a derivative from those by the same leaves or a subset of them.

        The orders considered are from `below` lower to one higher; Taylor coefficients of equal size are assumed, hence
        the factorials.
        """
        leaves, order = _kind(key)
        found = 0.0
        for others, by_order in self._largest.items():
            if others <= leaves:
                for n in range(max(1, order - below), order + 2):
                    if n in by_order:
                        found = max(found, by_order[n] * _factor(order, n))
        return found

    def zeros_below(self, key: str, apart: _Sizes) -> int:
        """Count the orders directly below whose derivatives by the same leaves all cancelled exactly."""
        leaves, order = _kind(key)
        own, others = self._largest.get(leaves, {}), apart._largest.get(leaves, {})
        count = 0
        while own.get(order - count - 1) == 0 and others.get(order - count - 1):
            count += 1
        return count

    def of(self, key: str) -> float:
        """The largest derivative by the same leaves and of the same order."""
        leaves, order = _kind(key)
        return self._largest.get(leaves, {}).get(order, 0.0)

    def mixed(self, key: str) -> float:
        """Estimate the magnitude of a mixed derivative from nonzero ones by the same leaves, of order at most one
        higher.

        Infinite where there are none, and for a derivative by a single leaf.
        """
        leaves, order = _kind(key)
        by_order = self._largest.get(leaves, {}) if len(leaves) > 1 else {}
        sizes = [size * _factor(order, n) for n, size in by_order.items() if size and n <= order + 1]
        return max(sizes, default=math.inf)


@lru_cache(1024)
def _factor(order: int, other: int) -> float:
    return math.factorial(order) / math.factorial(other)


@lru_cache(1024)
def _kind(key: str) -> tuple[frozenset[str], int]:
    leaves = key.split(",")
    return frozenset(leaves), len(leaves)


def largest(derivative: Any) -> float:
    """The largest finite magnitude among the elements."""
    if type(derivative) is float:
        return abs(derivative) if math.isfinite(derivative) else 0.0
    number = arrays.on_host(derivative)
    if not arrays.shape(number):
        size = float(abs(number))
        return size if math.isfinite(size) else 0.0
    xp = arrays.numpy_namespace()
    return float(xp.max(xp.where(xp.isfinite(number), xp.abs(number), 0.0), initial=0.0))
