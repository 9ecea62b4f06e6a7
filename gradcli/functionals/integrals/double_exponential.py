"""Integrals over the whole line by the trapezoidal rule in t, where x = sinh(π/2 sinh t) (H. Takahasi and M. Mori,
Publ. RIMS 9 (1974), 721): a rule of few nodes for smooth integrands, which matters where integrals are nested."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.functionals.integrals.quadrature import Integrand, Tolerance
from gradcli.functionals.integrals.resolution import Bounds, hidden
from gradcli.named_tuples import NamedTuple

# The distance of the first nodes in t, the largest t, at which x is 1e30, and the number of times the distance is halved.
_FIRST, _FARTHEST, _HALVINGS = 0.25, 4.5, 4
# Terms of the sum that are this part of the largest one and less are left out from then on, and what those at both ends
# have to be for the sum to be the integral.
_NEGLIGIBLE = 1e-20


class WholeLineIntegrals(NamedTuple):
    """The integrals of some rows, their error estimates and those of their magnitudes; and for which rows these are
    known to be right, as far as the nodes tell."""

    value: Any
    error: Any
    size: Any
    settled: Any


def whole_lines(function: Integrand, rows: Any, tolerance: Tolerance, bounds: Bounds | None) -> WholeLineIntegrals:
    """The integrals from -inf to inf of the integrands with the numbers `rows` [n].

    One is not settled where the sums do not converge at once, where the integrand has no value at a node, and where it may
    have a peak between nodes, if its `bounds` are known.
    """
    np = arrays.numpy_namespace()
    count = len(rows)
    t = _FIRST * np.arange(-round(_FARTHEST / _FIRST), round(_FARTHEST / _FIRST) + 1)
    values, terms = _terms(function, rows, t)
    largest = np.abs(terms).max(axis=1)
    # Terms that are not finite are not small.
    settled = np.isfinite(terms).all(axis=1) & (np.abs(terms[:, [0, -1]]).max(axis=1) <= _NEGLIGIBLE * largest)
    # That an integrand is 0 between nodes, too, where it is 0 at all of them, is known from bounds alone.
    settled &= (largest > 0) | (bounds is not None)
    found = [_FIRST * terms.sum(axis=1)]
    size, error = _FIRST * np.abs(terms).sum(axis=1), np.full(count, np.inf)
    step = _FIRST
    for _ in range(_HALVINGS):
        if not (settled & (largest > 0)).any() or (error <= tolerance.of(found[-1], size))[settled].all():
            break
        between = 0.5 * (t[1:] + t[:-1])
        wanted = _wanted(terms[settled & (largest > 0)])
        step *= 0.5
        new_values, new = np.zeros((count, len(between))), np.zeros((count, len(between)))
        new_values[:, wanted], new[:, wanted] = _terms(function, rows, between[wanted])
        settled &= np.isfinite(new).all(axis=1)
        t = _woven(t[None], between[None])[0]
        values, terms = _woven(values, new_values), _woven(terms, new)
        found.append(step * terms.sum(axis=1))
        size = step * np.abs(terms).sum(axis=1)
        error = _error(found)
    error = np.where(largest > 0, error, 0.0)
    settled &= error <= tolerance.of(found[-1], size)
    if bounds is not None:
        settled &= ~_hides(bounds, rows, t, values, size)
    return WholeLineIntegrals(found[-1], error, size, settled)


def _error(sums: list[Any]) -> Any:
    """Estimates of the errors of the last of some sums. Halving the distance of the nodes doubles the number of right
    digits; the estimate assumes only that the differences go on to shrink as they did."""
    np = arrays.numpy_namespace()
    if len(sums) < 3:
        return np.full(len(sums[0]), np.inf)
    before, last = (np.abs(b - a) for a, b in zip(sums[-3:], sums[-2:]))
    return 2.0 * last * np.minimum(1.0, np.divide(last, before, out=np.ones_like(last), where=before > 0))


def _terms(function: Integrand, rows: Any, t: Any) -> tuple[Any, Any]:
    """The values of the integrands at the nodes, and those times the derivative of x, [rows, nodes]."""
    np = arrays.numpy_namespace()
    x, weight = _node(t)
    limits.charge_steps(len(rows))
    with np.errstate(all="ignore"):
        values = function(np.tile(x, len(rows)), np.repeat(rows, len(x))).reshape(len(rows), len(x))
        return values, np.where(values == 0, 0.0, values * weight)


def _node(t: Any) -> tuple[Any, Any]:
    """x and its derivative by t."""
    np = arrays.numpy_namespace()
    inner = 0.5 * math.pi * np.sinh(t)
    return np.sinh(inner), np.cosh(inner) * 0.5 * math.pi * np.cosh(t)


def _wanted(terms: Any) -> Any:
    """Between which nodes some terms count."""
    np = arrays.numpy_namespace()
    counts = (np.abs(terms) > _NEGLIGIBLE * np.abs(terms).max(axis=1, keepdims=True)).any(axis=0)
    return counts[1:] | counts[:-1]


def _woven(first: Any, between: Any) -> Any:
    """The columns of two arrays in turn."""
    np = arrays.numpy_namespace()
    found = np.empty((len(first), first.shape[1] + between.shape[1]))
    found[:, ::2], found[:, 1::2] = first, between
    return found


def _hides(bounds: Bounds, rows: Any, t: Any, values: Any, size: Any) -> Any:
    """A mask of the integrands that may have a peak between two nodes."""
    np = arrays.numpy_namespace()
    x, _ = _node(t)
    low, high = (np.tile(part, len(rows)) for part in (x[:-1], x[1:]))
    least, most = (part.reshape(len(rows), -1) for part in bounds(low, high, np.repeat(rows, len(x) - 1)))
    # A maximum may be half-way between two nodes: their neighbours show how the integrand changes there.
    near = np.pad(values, ((0, 0), (1, 1)), mode="edge")
    around = np.stack([near[:, k : k + len(x) - 1] for k in range(4)])
    lowest, highest = around.min(axis=0), around.max(axis=0)
    return (hidden(least, most, lowest, highest, x[1:] - x[:-1], size[:, None])).any(axis=1)
