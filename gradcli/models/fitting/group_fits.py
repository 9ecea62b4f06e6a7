"""A fit for each group of rows, of many groups at once: their parameters are columns beside the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.models.fitting.convergence import largest_offset, relative_offset
from gradcli.models.fitting.descent import descend
from gradcli.models.fitting.inference import Rows, Statistics, statistics
from gradcli.models.fitting.likelihoods import Cost
from gradcli.models.fitting.linearisations import Linearised, linearised_at_once
from gradcli.models.fitting.packed_hessians import unpacked
from gradcli.models.fitting.problems import Problem

# So many numbers of derivatives are in memory at a time.
_MOST = 2**22
# A relative offset from which so many steps of Newton's method, whose error is squared by each, come to full precision.
_NEAR, _STEPS = 1e-4, 2


class Stacked(Problem):
    """The problems of g groups of a problem's rows, up to m rows in each: columns and responses are `[g, m]`, and `real`
    `[g, m]` says which of the rows there are; of others `sigma` is infinite, and `deviations` are finite. A point of each group is `[g, p]`."""

    real: Any
    deviations: Any

    @classmethod
    def of(cls, problem: Problem, groups: Sequence[Any]) -> Stacked:
        """That of groups, each of which is the places of its rows."""
        counts = np.array([len(rows) for rows in groups])
        m = counts.max()
        real = np.arange(m) < counts[:, None]
        # A row that is not there is the last one that is.
        ends = np.cumsum(counts)
        places = np.concatenate(groups)[(ends - counts)[:, None] + np.minimum(np.arange(m), counts[:, None] - 1)]
        found = cls.__new__(cls)
        found.__dict__.update(problem.with_rows(places).__dict__)
        found.real = real
        found.deviations = np.broadcast_to(np.asarray(found.sigma, "float64"), real.shape)
        found.sigma = np.where(real, found.deviations, np.inf)
        return found

    @property
    def count(self) -> int:
        return int(self.real.shape[1])

    def chosen(self, which: Any) -> Stacked:
        """Those of some of the groups."""
        return self._part(which)

    def with_rows(self, rows: Any) -> Stacked:
        return self._part((slice(None), rows))

    def _part(self, key: Any) -> Stacked:
        found = Stacked.__new__(Stacked)
        found.__dict__.update(self.__dict__)
        found.columns = {name: column[key] for name, column in self.columns.items()}
        found.response, found.real = self.response[key], self.real[key]
        found.sigma, found.deviations = self.sigma[key], self.deviations[key]
        return found

    def columns_of(self, points: Any) -> tuple[Any, list[Any]]:
        found = self._first.run(*self._inputs(points), rows=self.real.size)
        first = self._by_group(found, self.parameters)
        return self._values(found).reshape(self.real.shape), [first[..., i] for i in range(first.shape[-1])]

    def second_of(self, points: Any) -> tuple[Any, Any, Any]:
        """The values `[g, m]`, the derivatives `[g, m, p]`, and the second derivatives by pairs of parameters `[g, m, k]`."""
        found = self._second.run(*self._inputs(points), rows=self.real.size)
        keys = [key for key in self._second.keys if "," in key]
        return (
            self._values(found).reshape(self.real.shape),
            self._by_group(found, self.parameters),
            self._by_group(found, keys),
        )

    def cost(self, value: Any) -> Cost:
        return Cost(*(np.where(self.real, part, 0.0) for part in super().cost(value)))

    def _inputs(self, points: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        columns = {name: column.ravel() for name, column in self.columns.items()}
        columns |= {name: np.repeat(points[:, i], self.count) for i, name in enumerate(self.parameters)}
        return columns, self.fixed

    def _by_group(self, found: Any, keys: Sequence[str]) -> Any:
        return self.stacked(found, keys, self.real.size).reshape(*self.real.shape, len(keys))


class GroupFits(NamedTuple):
    """Of g groups the points `[g, p]`, whether each is a minimum between its bounds, what the search took, the rows
    there and the statistics."""

    points: Any
    converged: Any
    iterations: Any
    evaluations: Any
    rows: Rows
    statistics: Statistics


def fit_stacked(stacked: Stacked, start: Any) -> GroupFits:
    """Fit every group from the point `start` `[p]`."""
    g, p = len(stacked.real), len(stacked.parameters)
    at_once = max(1, _MOST // (stacked.count * (p + 1)))

    def linearise(points: Any, which: Any) -> Linearised:
        parts = [
            linearised_at_once(stacked.chosen(which[i : i + at_once]), points[i : i + at_once])
            for i in range(0, len(which), at_once)
        ]
        return parts[0] if len(parts) == 1 else Linearised(*map(np.concatenate, zip(*parts)))

    dof = stacked.real.sum(axis=1) - p + int(np.isfinite(stacked.priors[1]).sum())
    ended = descend(linearise, np.tile(start, (g, 1)), dof, low=stacked.low, high=stacked.high, reach=1.0, enough=_NEAR)
    points = ended.points
    for _ in range(_STEPS):
        points = _newton(stacked, points)
    value, first, second = stacked.second_of(points)
    priors = None
    if np.isfinite(stacked.priors[1]).any():
        priors = stacked.prior_residuals(points), np.tile(stacked.priors[1], (g, 1))
    rows = Rows(value, stacked.response, stacked.deviations, stacked.real, first, second, priors)
    found = statistics(rows, stacked.known)
    pull, hessian = _gradient_and_hessian(stacked, points, value, first, second)
    inside = np.linalg.norm((np.swapaxes(found.information.axes, 1, 2) @ pull[:, :, None])[:, :, 0], axis=1)
    costs = stacked.cost(value).value.sum(axis=1) + ((stacked.prior_residuals(points)) ** 2).sum(axis=1) / 2
    with np.errstate(all="ignore"):
        rest = np.sqrt(2 * costs)
        size = np.sqrt((np.where(stacked.real, value / stacked.sigma, 0.0) ** 2).sum(axis=1) / rows.real.sum(axis=1))
        minimum = relative_offset(inside, rest, p, dof) <= largest_offset(size, rest, dof)
    minimum &= _is_convex(hessian)
    minimum &= ((points > stacked.low) & (points < stacked.high)).all(axis=1)
    taken = ended.iterations + _STEPS, ended.evaluations + _STEPS + 1
    return GroupFits(points, minimum, *taken, rows._replace(second=None), found)


def _newton(stacked: Stacked, points: Any) -> Any:
    """The points after a step of Newton's method, where that has a minimum to go to."""
    pull, hessian = _gradient_and_hessian(stacked, points, *stacked.second_of(points))
    moved = points.copy()
    convex = _is_convex(hessian)
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("gii->gi", hessian[convex]))
        scaled = hessian[convex] / lengths[:, :, None] / lengths[:, None, :]
        moved[convex] -= np.linalg.solve(scaled, (pull[convex] / lengths)[:, :, None])[:, :, 0] / lengths
    return np.clip(moved, stacked.low, stacked.high)


def _gradient_and_hessian(stacked: Stacked, points: Any, value: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """Those of the cost, `[g, p]` and `[g, p, p]`."""
    cost = stacked.cost(value)
    p = first.shape[-1]
    with np.errstate(all="ignore"):
        pull = (cost.first[:, None, :] @ first)[:, 0] + stacked.prior_residuals(points) / stacked.priors[1]
        hessian = np.swapaxes(first, 1, 2) @ (cost.second[:, :, None] * first)
        hessian += unpacked((cost.first[:, None, :] @ second)[:, 0], p)
        hessian[:, range(p), range(p)] += stacked.priors[1] ** -2.0
    return pull, hessian


def _is_convex(hessian: Any) -> Any:
    """Which matrices are positive definite."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("gii->gi", hessian))
        hessian = hessian / lengths[:, :, None] / lengths[:, None, :]
    convex = np.isfinite(hessian).all(axis=(1, 2))
    convex[convex] = np.linalg.eigvalsh(hessian[convex])[:, 0] > 0
    return convex


def by_size(groups: Sequence[Any]) -> Iterator[list[int]]:
    """The numbers of groups that are alike in size, up to a factor of 2."""
    sizes: dict[int, list[int]] = {}
    for number, rows in enumerate(groups):
        sizes.setdefault((len(rows) - 1).bit_length(), []).append(number)
    yield from sizes.values()
