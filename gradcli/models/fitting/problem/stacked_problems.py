"""Stacks the problems of many groups of rows to one, in which the parameters are columns beside the data."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.models.fitting.problem.likelihoods import Cost
from gradcli.models.fitting.problem.linearisations import Linearised, linearised_at_once, projected_costs
from gradcli.models.fitting.problem.problems import Problem

# Largest number of derivatives in memory at once: few enough for the caches, and enough to make the cost of a call
# small.
_MOST = 2**20
# Largest numbers of rows and of groups of a portion.
_ROWS, _GROUPS = 2**16, 2**10


class Stacked(Problem):
    """The problems of g groups of rows, padded to m rows each.

    Columns and responses are `[g, m]`, and `real` `[g, m]` is False for padding. `sigma` is infinite for padding; it is
    a single number only where there is none. Points are `[g, p]`, one for each group.
    """

    real: Any

    @classmethod
    def of(cls, problem: Problem, groups: Sequence[Any]) -> Stacked:
        """The stacked problem of groups, each given as the indices of its rows."""
        counts = np.array([len(rows) for rows in groups])
        m = counts.max()
        real = np.arange(m) < counts[:, None]
        # Padding repeats the last row of its group.
        ends = np.cumsum(counts)
        places = np.concatenate(groups)[(ends - counts)[:, None] + np.minimum(np.arange(m), counts[:, None] - 1)]
        found = cls.__new__(cls)
        found.__dict__.update(problem.with_rows(places).__dict__)
        # Errors of stacked problems do not name rows.
        del found.places
        found.real = real
        if not real.all():
            found.sigma = np.where(real, found.sigma, np.inf)
        return found

    @property
    def count(self) -> int:
        return int(self.real.shape[1])

    @property
    def dof(self) -> Any:
        """The degrees of freedom `[g]` of each group."""
        return super().dof - self.count + self.real.sum(axis=1)

    def chosen(self, which: Any) -> Stacked:
        """The groups at some indices."""
        return self._part(lambda of_rows: of_rows.take(which, axis=0))

    def with_rows(self, rows: Any) -> Stacked:
        return self._part(lambda of_rows: of_rows[:, rows])

    def _part(self, taken: Callable[[Any], Any]) -> Stacked:
        found = copy.copy(self)
        found.columns = {name: taken(column) for name, column in self.columns.items()}
        found.response, found.real = taken(self.response), taken(self.real)
        found.sigma = taken(self.sigma) if np.ndim(self.sigma) else self.sigma
        return found

    def columns_of(self, points: Any) -> tuple[Any, list[Any]]:
        return self._by_row(
            self._first.run(*self._inputs(points), rows=self.real.size), self.real.shape, self.parameters
        )

    def second_of(self, points: Any) -> tuple[Any, list[Any]]:
        """The values `[g, m]`, and the derivatives, `[g, m]` each: by the parameters, and then by pairs of them."""
        found = self._second.run(*self._inputs(points), rows=self.real.size)
        return self._by_row(found, self.real.shape, self._second.keys)

    def cost(self, value: Any) -> Cost:
        cost = super().cost(value)
        return cost if self.real.all() else Cost(*(np.where(self.real, part, 0.0) for part in cost))

    def _inputs(self, points: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        columns = {name: column.ravel() for name, column in self.columns.items()}
        columns |= {name: np.repeat(points[:, i], self.count) for i, name in enumerate(self.parameters)}
        return columns, self.fixed

    def linearised(self, points: Any, which: Any) -> Linearised:
        """The linearisation of the groups at the indices `which` `[k]`, each at its point of `[k, p]`."""
        parts = [linearised_at_once(some, own) for some, own in self._blocks(points, which)]
        return parts[0] if len(parts) == 1 else Linearised(*map(np.concatenate, zip(*parts)))

    def projected_costs(self, points: Any, which: Any, linear: Sequence[int]) -> Any:
        """The costs of the groups at the indices `which` `[k]`, each at its point of `[k, p]` with the `linear`
        parameters at their best values."""
        return np.concatenate([projected_costs(some, own, linear) for some, own in self._blocks(points, which)])

    def _blocks(self, points: Any, which: Any) -> Iterator[tuple[Stacked, Any]]:
        """The groups at some indices, and their points, in blocks whose derivatives fit into memory."""
        at_once = max(1, _MOST // (self.count * (len(self.parameters) + 1)))
        every = np.arange(len(self.real))
        for start in range(0, len(which), at_once):
            own = slice(start, start + at_once)
            # No copy is needed in the usual case of all groups.
            yield self if np.array_equal(which[own], every) else self.chosen(which[own]), points[own]


def by_size(sizes: Any) -> Iterator[Any]:
    """The indices of groups with these numbers of rows, collected by sizes that are alike up to a factor of 2."""
    # The number of bits of size - 1.
    bits = np.frexp(sizes - 1)[1]
    for own in np.unique(bits):
        yield np.flatnonzero(bits == own)


def portions(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The portions in which groups with these numbers of rows are fitted, in their order, as half-open ranges of
    groups. They are large enough to hide the cost of a call, and small enough to occupy many workers."""
    ends = np.cumsum(sizes)
    start = rows = 0
    while start < len(ends):
        end = min(start + _GROUPS, max(start + 1, int(np.searchsorted(ends, rows + _ROWS, side="right"))))
        yield start, min(end, len(ends))
        start, rows = end, int(ends[min(end, len(ends)) - 1])
