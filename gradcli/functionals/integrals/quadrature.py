"""Adaptive quadrature of many integrals at once, each with its own limits, refined until all reach their tolerance.

Every refinement evaluates all nodes of all panels that are still inaccurate in one call of the integrand. The rule is
that of Gauss and Kronrod with 10 and 21 points (R. Piessens et al., QUADPACK, 1983).

The panels of a first sample are such that no peak is missed between its nodes, as far as bounds can tell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.named_tuples import NamedTuple

# Takes places and the number of the integral that each belongs to, two arrays [n]; returns the values, [n].
Integrand = Callable[[Any, Any], Any]

# The nodes of the Kronrod rule with 21 points from 0 to 1, its weights, and those of the Gauss rule with 10 points,
# which has every second of these nodes, beginning with the second.
_NODES = (
    0.0, 0.148874338981631210884826001129719984618, 0.294392862701460198131126603103865566163,
    0.433395394129247190799265943165784162201, 0.562757134668604683339000099272694140843,
    0.679409568299024406234327365114873575769, 0.780817726586416897063717578345042377163,
    0.865063366688984510732096688423493048528, 0.930157491355708226001207180059508346225,
    0.973906528517171720077964012084452053428, 0.995657163025808080735527280689002847921,
)  # fmt: skip
_KRONROD = (
    0.149445554002916905664936468389821203745, 0.147739104901338491374841515972068045524,
    0.142775938577060080797094273138717060885, 0.134709217311473325928054001771706832761,
    0.123491976262065851077958109585166211535, 0.109387158802297641899210590325804960272,
    0.093125454583697605535065465083366344390, 0.075039674810919952767043140916190009395,
    0.054755896574351996031381300244580176874, 0.032558162307964727478818972459390217650,
    0.011694638867371874278064396062192048396,
)  # fmt: skip
_GAUSS = (
    0.0, 0.295524224714752870173815619188769, 0.0, 0.269266719309996355091226921569469, 0.0,
    0.219086362515982043995534934228163, 0.0, 0.149451349150580593145863397657697, 0.0,
    0.066671344308688137593568809893332, 0.0,
)  # fmt: skip

# The number of equal panels that a refinement begins with.
FIRST_PANELS = 8
# Panels that were halved as often are left to `singular`, where they are few: a singularity, not an oscillation.
_MOST_HALVINGS = 8
_FEW = 12
# Bound on the number of panels of one integral.
_MOST_PANELS = 20_000
# The width of a panel, relative to its place, whose nodes are too few floats apart to show that an integrand is smooth.
_NARROWEST = 2.0**-44
# Panels without a finite value that were halved as often are left: the integrand is not defined there.
_MOST_INFINITE = 6
# Errors of a sum of terms that are too small to have all digits.
_UNDERFLOW = 1e-320
# Rounding errors of a sum of positive terms, relative to it.
_ROUNDING = 50 * 2.0**-53


class Panels(NamedTuple):
    """Panels of integrals: the number of the integral, both ends, the integral over the panel, the error estimate and
    the integral of the magnitude, each an array [n]."""

    row: Any
    low: Any
    high: Any
    value: Any
    error: Any
    size: Any

    def chosen(self, mask: Any) -> Panels:
        return Panels(*(part[mask] for part in self))


class RefinedPanels(NamedTuple):
    """The integrals over the panels that were refined, their error estimates and those of their magnitudes, [rows], and
    the panels that were left."""

    value: Any
    error: Any
    size: Any
    left: Panels

    def whole(self) -> tuple[Any, Any, Any]:
        """The integrals with those over the panels that were left, their errors and magnitudes."""
        return tuple(s + t for s, t in zip(self[:3], _sums([self.left], len(self.value))))


class Tolerance(NamedTuple):
    """An error is accepted if it is at most `relative` times the integral, a number or [rows], or `absolute` times that
    of the magnitude, or `negligible`."""

    relative: Any
    absolute: float
    negligible: float = _UNDERFLOW

    def of(self, value: Any, size: Any) -> Any:
        np = arrays.numpy_namespace()
        return np.maximum(self.relative * np.abs(value), max(self.absolute, _ROUNDING) * size + self.negligible)


def refined(
    new: Panels,
    function: Integrand,
    count: int,
    tolerance: Tolerance,
    most_halvings: int = _MOST_HALVINGS,
    most_panels: int = _MOST_PANELS,
) -> RefinedPanels:
    """The `count` integrals of a function over the panels `new`, halved until each integral reaches its tolerance or no
    more helps; a few panels at most as often as `most_halvings` says, and up to `most_panels` for each integral.

    Raises LimitError past the budget of the run.
    """
    np = arrays.numpy_namespace()
    # There may be no panels.
    done, left = [new.chosen(slice(0, 0))], [new.chosen(slice(0, 0))]
    halvings = 0
    while len(new.row):
        parts = [*done, new, *left]
        panels = sum(np.bincount(p.row, minlength=count) for p in parts)
        # Panels without a finite value say nothing about the others.
        value, error, size = _sums([p.chosen(np.isfinite(p.value)) for p in parts], count)
        allowed = tolerance.of(value, size)
        inaccurate = ~(error <= allowed)[new.row] & ~(new.error <= (allowed / (2 * panels))[new.row])
        inaccurate |= ~np.isfinite(new.value)
        done.append(new.chosen(~inaccurate))
        new = new.chosen(inaccurate)
        middle = 0.5 * (new.low + new.high)
        few = np.bincount(new.row, minlength=count)[new.row] <= _FEW
        hopeless = (few & (halvings >= most_halvings)) | (panels[new.row] > most_panels)
        hopeless |= new.high - new.low <= _NARROWEST * np.maximum(np.abs(new.low), np.abs(new.high))
        hopeless |= (middle <= new.low) | (~np.isfinite(new.value) & (halvings >= _MOST_INFINITE))
        left.append(new.chosen(hopeless))
        new, middle = new.chosen(~hopeless), middle[~hopeless]
        ends = np.concatenate([new.low, middle]), np.concatenate([middle, new.high])
        new = evaluated(function, np.concatenate([new.row, new.row]), *ends)
        halvings += 1
    return RefinedPanels(*_sums(done, count), Panels(*(np.concatenate(parts) for parts in zip(*left))))


def _sums(panels: Sequence[Panels], count: int) -> tuple[Any, Any, Any]:
    """The sums of values, errors and magnitudes for each of `count` integrals."""
    np = arrays.numpy_namespace()
    rows = np.concatenate([p.row for p in panels])
    parts = ([p.value for p in panels], [p.error for p in panels], [p.size for p in panels])
    # Without panels, `bincount` gives integers.
    return tuple(np.bincount(rows, np.concatenate(part), count).astype(float) for part in parts)


def evaluated(function: Integrand, row: Any, low: Any, high: Any) -> Panels:
    """The rule of Gauss and Kronrod on each panel."""
    np = arrays.numpy_namespace()
    _, kronrod, gauss = _rule()
    half = 0.5 * (high - low)
    found = sampled(function, row, low, high)
    value = half * (found @ kronrod)
    size = np.abs(half) * (np.abs(found) @ kronrod)
    difference = np.abs(value - half * (found @ gauss))
    # The error formula of QUADPACK: the difference of the rules overestimates that of the better one.
    mean = value / (2 * half)
    spread = np.abs(half) * (np.abs(found - mean[:, None]) @ kronrod)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = spread * np.minimum(1.0, (200 * difference / spread) ** 1.5)
    error = np.where((spread > 0) & (difference > 0), scaled, difference)
    return Panels(row, low, high, value, np.maximum(error, 2.0**-53 * np.abs(value)), size)


def sampled(function: Integrand, row: Any, low: Any, high: Any) -> Any:
    """The values at the nodes of the rule, [panels, nodes]."""
    np = arrays.numpy_namespace()
    nodes = nodes_between(low, high)
    limits.charge_steps(len(row))
    return function(nodes.ravel(), np.repeat(row, nodes.shape[1])).reshape(nodes.shape)


def nodes_between(low: Any, high: Any) -> Any:
    """The nodes of the rule in panels, [panels, nodes]."""
    return (0.5 * (low + high))[:, None] + (0.5 * (high - low))[:, None] * _rule()[0]


@functools.cache
def _rule() -> tuple[Any, Any, Any]:
    np = arrays.numpy_namespace()
    nodes, kronrod, gauss = map(np.array, (_NODES, _KRONROD, _GAUSS))
    return (
        np.concatenate([-nodes[:0:-1], nodes]),
        np.concatenate([kronrod[:0:-1], kronrod]),
        np.concatenate([gauss[:0:-1], gauss]),
    )


# Takes lower and upper ends of intervals and the numbers of integrals, arrays [n]; returns lower and upper bounds of
# the integrands there, [n].
Bounds = Callable[[Any, Any, Any], tuple[Any, Any]]

# A panel is halved if an integrand could leave the range of its samples by more than this multiple of the range, and
# what is hidden is more than this part of the integral of the magnitude, if no other is asked for.
_LEAVING, _HIDDEN = 4.0, 1e-10
# Bounds on the number of halvings and of panels that are examined at once.
_MOST_SAMPLED_HALVINGS, _MOST_SAMPLED_PANELS = 40, 4_096
# Bound on the number of halvings at the end of a tail.
_MOST_BESIDE_INFINITY = 20


def resolving_panels(
    function: Integrand, bounds: Bounds, row: Any, low: Any, high: Any, part: float = _HIDDEN
) -> tuple[Any, Any, Any]:
    """The panels, halved where the integrand may have a peak that no node saw, of more than a part of the integral."""
    np = arrays.numpy_namespace()
    kept = []
    sizes: Any = np.zeros(row.max() + 1)
    for halvings in range(_MOST_SAMPLED_HALVINGS):
        values = sampled(function, row, low, high)
        least, most = bounds(low, high, row)
        width = high - low
        finite = np.where(np.isfinite(values), values, 0.0)
        sizes = np.maximum(sizes, np.bincount(row, width * np.abs(finite).mean(axis=1), len(sizes)))
        # A peak that one node alone shows is not seen by the nodes of both halves.
        ordered = np.sort(finite, axis=1)
        lowest, highest = ordered[:, 1], ordered[:, -2]
        hides = hidden(least, most, lowest, highest, width, sizes[row], part)
        # Infinite bounds are those beside a singularity, which is found by its errors, or at the end of a tail, u = 0.
        hides &= (np.isfinite(least) & np.isfinite(most)) | ((low == 0.0) & (halvings < _MOST_BESIDE_INFINITY))
        if hides.sum() > _MOST_SAMPLED_PANELS:
            hides[:] = False
        kept.append((row[~hides], low[~hides], high[~hides]))
        if not hides.any():
            break
        row, low, high = row[hides], low[hides], high[hides]
        middle = 0.5 * (low + high)
        row = np.concatenate([row, row])
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    else:
        kept.append((row, low, high))
    return tuple(np.concatenate(parts) for parts in zip(*kept))


def hidden(least: Any, most: Any, lowest: Any, highest: Any, width: Any, size: Any, part: float = _HIDDEN) -> Any:
    """Return whether an integrand between two bounds may have a peak within a panel that samples from `lowest` to
    `highest` do not show, for integrals of a `size`."""
    np = arrays.numpy_namespace()
    beyond = np.maximum(most - highest, lowest - least)
    return (beyond > _LEAVING * (highest - lowest)) & (beyond * width > part * size)
