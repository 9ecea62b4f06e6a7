"""Panels for a first sample of integrands that misses no peak between its nodes, as far as bounds can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.functionals.integrals.quadrature import Integrand, sampled

# Takes lower and upper ends of intervals and the numbers of integrals, arrays [n]; returns lower and upper bounds of
# the integrands there, [n].
Bounds = Callable[[Any, Any, Any], tuple[Any, Any]]

# A panel is halved if an integrand could leave the range of its samples by more than this multiple of the range, and
# what is hidden is more than this part of the integral of the magnitude, if no other is asked for.
_LEAVING, _HIDDEN = 4.0, 1e-10
# Bounds on the number of halvings and of panels that are examined at once.
_MOST_HALVINGS, _MOST_PANELS = 40, 4_096
# Bound on the number of halvings at the end of a tail.
_MOST_BESIDE_INFINITY = 20


def resolving_panels(
    function: Integrand, bounds: Bounds, row: Any, low: Any, high: Any, part: float = _HIDDEN
) -> tuple[Any, Any, Any]:
    """The panels, halved where the integrand may have a peak that no node saw, of more than a part of the integral."""
    np = arrays.numpy_namespace()
    kept = []
    sizes: Any = np.zeros(row.max() + 1)
    for halvings in range(_MOST_HALVINGS):
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
        if hides.sum() > _MOST_PANELS:
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
