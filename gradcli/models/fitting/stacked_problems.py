"""The problems of many groups of rows as one: their parameters are columns beside the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.models.fitting.likelihoods import Cost
from gradcli.models.fitting.linearisations import Linearised, linearised_at_once, projected_costs
from gradcli.models.fitting.problems import Problem

# So many numbers of derivatives are in memory at a time: as few as still hide what a call costs, as caches are small.
_MOST = 2**20
# Rows and groups of a portion.
_ROWS, _GROUPS = 2**16, 2**10


class Stacked(Problem):
    """The problems of g groups of a problem's rows, up to m rows in each: columns and responses are `[g, m]`, and `real`
    `[g, m]` says which of the rows there are; of others `sigma` is infinite, which is one number only where there are
    none. A point of each group is `[g, p]`."""

    real: Any

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
        # No error names a row of theirs.
        del found.places
        found.real = real
        if not real.all():
            found.sigma = np.where(real, found.sigma, np.inf)
        return found

    @property
    def count(self) -> int:
        return int(self.real.shape[1])

    def chosen(self, which: Any) -> Stacked:
        """Those of the groups at some places."""
        return self._part(lambda of_rows: of_rows.take(which, axis=0))

    def with_rows(self, rows: Any) -> Stacked:
        return self._part(lambda of_rows: of_rows[:, rows])

    def _part(self, taken: Callable[[Any], Any]) -> Stacked:
        found = Stacked.__new__(Stacked)
        found.__dict__.update(self.__dict__)
        found.columns = {name: taken(column) for name, column in self.columns.items()}
        found.response, found.real = taken(self.response), taken(self.real)
        found.sigma = taken(self.sigma) if np.ndim(self.sigma) else self.sigma
        return found

    def columns_of(self, points: Any) -> tuple[Any, list[Any]]:
        return self._by_row(
            self._first.run(*self._inputs(points), rows=self.real.size), self.real.shape, self.parameters
        )

    def second_of(self, points: Any) -> tuple[Any, list[Any]]:
        """The values `[g, m]`, and the derivatives, `[g, m]` each: those by the parameters, and then those by pairs of
        them."""
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
        """That of the groups at the places `which` `[k]`, each at its point of `[k, p]`."""
        parts = [linearised_at_once(some, own) for some, own in self._blocks(points, which)]
        return parts[0] if len(parts) == 1 else Linearised(*map(np.concatenate, zip(*parts)))

    def projected_costs(self, points: Any, which: Any, linear: Sequence[int]) -> Any:
        """Those of the groups at the places `which` `[k]`, with the best `linear` parameters, each at its point."""
        return np.concatenate([projected_costs(some, own, linear) for some, own in self._blocks(points, which)])

    def _blocks(self, points: Any, which: Any) -> Iterator[tuple[Stacked, Any]]:
        """The groups at some places, and their points, so many of them that their derivatives are in memory."""
        at_once = max(1, _MOST // (self.count * (len(self.parameters) + 1)))
        every = np.arange(len(self.real))
        for start in range(0, len(which), at_once):
            own = slice(start, start + at_once)
            # Mostly they are all of them, of which no copy is needed.
            yield self if np.array_equal(which[own], every) else self.chosen(which[own]), points[own]


def by_size(sizes: Any) -> Iterator[Any]:
    """The places of groups of so many rows that are alike in size, up to a factor of 2."""
    # As many bits as a number below them has.
    bits = np.frexp(sizes - 1)[1]
    for own in np.unique(bits):
        yield np.flatnonzero(bits == own)


def portions(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The portions in which groups of so many rows are fitted, from one group to before another, in their order: as many
    as are worth the while, and no more, so that there is something for each of many workers."""
    ends = np.cumsum(sizes)
    start = rows = 0
    while start < len(ends):
        end = min(start + _GROUPS, max(start + 1, int(np.searchsorted(ends, rows + _ROWS, side="right"))))
        yield start, min(end, len(ends))
        start, rows = end, int(ends[min(end, len(ends)) - 1])
