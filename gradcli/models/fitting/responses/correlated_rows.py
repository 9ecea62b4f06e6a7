"""The joint log density of correlated responses with its derivatives, from the residuals of their formulas.

With the residuals e over their standard deviations s, u = e/s, and the correlations R of them, it is
-Σ log s - log(det R)/2 - u·R⁻¹u/2, up to a constant. A program of all of that would have too many derivatives to record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.models.fitting.notation.log_densities import HALF_LOG_TWO_PI
from gradcli.models.fitting.problem.problems import row_program
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_results import RowFailure, RowResults


class Spreads(NamedTuple):
    """The names of the parameters that are the standard deviations of the responses, and those of their correlations by
    pairs of numbers of responses, none where the responses are independent."""

    deviations: Sequence[str]
    correlations: Mapping[tuple[int, int], str]

    @property
    def names(self) -> list[str]:
        return [*self.deviations, *self.correlations.values()]

    def first(self, count: int) -> Spreads:
        """Those of the first responses."""
        among = {(i, j): name for (i, j), name in self.correlations.items() if j < count}
        return Spreads(self.deviations[:count], among)


def correlations_of(spreads: Spreads, values: Mapping[str, Any]) -> Any:
    """The matrix of correlations `[…, k, k]`, from values by name, numbers or `[…]`."""
    k = len(spreads.deviations)
    shape = np.broadcast_shapes(*(np.shape(values[name]) for name in spreads.correlations.values()))
    found = np.broadcast_to(np.eye(k), (*shape, k, k)).copy()
    for (i, j), name in spreads.correlations.items():
        found[..., i, j] = found[..., j, i] = values[name]
    return found


class CorrelatedRows:
    """Computes the joint log density of the k responses of a row with its derivatives by the `parameters`, up to an order,
    as `RowProgram` does for a program.

    `residuals` are the programs of the residuals of the responses. A row is a response of a row of the data, whose number
    is in the column `which`, and its density is that given the responses with smaller numbers: the joint density of all up
    to this one, less that of those before. `scale` is the column of the multiples of the standard deviations.
    """

    def __init__(
        self,
        residuals: Sequence[tree.Module],
        spreads: Spreads,
        parameters: Sequence[str],
        which: str,
        scale: str,
        order: int,
        limits: tuple[int, int],
    ) -> None:
        self._spreads, self._which, self._scale = spreads, which, scale
        self._parameters, self._order = tuple(parameters), order
        own = [[name for name in parameters if name in scope.free_names(each)] for each in residuals]
        self._programs = [row_program(each, names, order, *limits) for each, names in zip(residuals, own)]
        self._own = [[self._parameters.index(name) for name in names] for names in own]
        self._reads = [scope.free_names(each) for each in residuals]
        p = len(parameters)
        self._pairs = [(a, b) for a in range(p) for b in range(a, p)] if order > 1 else []
        self.keys = [*parameters, *(f"{parameters[a]},{parameters[b]}" for a, b in self._pairs)]

    def run(self, columns: Mapping[str, Any], shared: Mapping[str, Any], *, rows: int) -> RowResults:
        """As `RowProgram.run`."""
        p = len(self._parameters)
        found = np.zeros((1 + p + len(self._pairs), rows))
        failures = []
        for number in range(len(self._programs)):
            places = np.flatnonzero(columns[self._which] == number)
            if not len(places):
                continue
            own = {name: column[places] for name, column in columns.items()}
            with np.errstate(all="ignore"):
                residuals = [
                    program.run(_taken(own, reads), _taken(shared, reads), rows=len(places))
                    for program, reads in zip(self._programs[: number + 1], self._reads)
                ]
                values = {**shared, **own}
                before = self._joint(residuals[:number], values, len(places)) if number else 0.0
                found[:, places] = self._joint(residuals, values, len(places)) - before
            failed = [each for result in residuals for each in result.failures]
            failures += [RowFailure(int(places[each.index]), each.error) for each in failed]
        return RowResults(found[0], dict(zip(self.keys, found[1:])), failures)

    def _joint(self, found: Sequence[RowResults], values: Mapping[str, Any], m: int) -> Any:
        """The joint densities of the first responses in m rows, of which the residuals are `found`, followed by their
        derivatives, `[…, m]`."""
        count = len(found)
        spreads = self._spreads.first(count)
        deviations = [(self._place(name), np.asarray(values[name], "float64")) for name in spreads.deviations]
        sizes = np.stack([s * values[self._scale] for _, s in deviations])
        u = np.stack([each.value for each in found]) / sizes
        by = self._slopes_of_residuals(found, deviations, u, sizes)
        matrix = correlations_of(spreads, values)
        precision = np.linalg.inv(np.where(_is_definite(matrix)[..., None, None], matrix, np.nan))
        precision = np.broadcast_to(precision.T.reshape(count, count, -1), (count, count, m))
        w = np.einsum("klm,lm->km", precision, u)
        value = -np.linalg.slogdet(matrix)[1] / 2 - np.einsum("km,km->m", u, w) / 2 - count * HALF_LOG_TWO_PI
        value = value - np.log(sizes).sum(axis=0)
        slopes = -np.einsum("km,kam->am", w, by)
        for a, s in deviations:
            if a is not None:
                slopes[a] -= 1 / s
        free = [(i, j, a) for (i, j), name in spreads.correlations.items() if (a := self._place(name)) is not None]
        for i, j, a in free:
            slopes[a] += w[i] * w[j] - precision[i, j]
        every = [value, *slopes]
        if self._order > 1:
            bends = -np.einsum("klm,kam,lbm->abm", precision, by, by, optimize=True)
            self._bend_by_residuals(bends, found, deviations, w / sizes, u * w, by * w[:, None])
            _bend_by_correlations(bends, free, precision, w, by)
            every += [bends[a, b] for a, b in self._pairs]
        return np.stack(every)

    def _place(self, name: str) -> int | None:
        """The index of a parameter; None where it is fixed."""
        return self._parameters.index(name) if name in self._parameters else None

    def _slopes_of_residuals(
        self, found: Sequence[RowResults], deviations: Sequence[tuple[int | None, Any]], u: Any, sizes: Any
    ) -> Any:
        """The derivatives `[k, p, m]` of the residuals `u` `[k, m]` over the standard deviations."""
        by = np.zeros((len(u), len(self._parameters), u.shape[1]))
        for i, (each, own) in enumerate(zip(found, self._own)):
            for a in own:
                by[i, a] = each.derivative(self._parameters[a]) / sizes[i]
        for i, (last, s) in enumerate(deviations):
            if last is not None:
                by[i, last] = -u[i] / s
        return by

    def _bend_by_residuals(
        self,
        bends: Any,
        found: Sequence[RowResults],
        deviations: Sequence[tuple[int | None, Any]],
        factors: Any,
        squares: Any,
        moved: Any,
    ) -> None:
        """Add what the second derivatives of the residuals have a part in: `factors` are w over the standard deviations,
        `squares` u·w and `moved` the derivatives of u times w, of each response."""
        names = self._parameters
        for i, (each, own) in enumerate(zip(found, self._own)):
            for n, a in enumerate(own):
                for b in own[n:]:
                    change = factors[i] * each.derivative(f"{names[a]},{names[b]}")
                    bends[a, b] -= change
                    if a != b:
                        bends[b, a] -= change
        for i, (last, s) in enumerate(deviations):
            if last is None:
                continue
            for a in self._own[i]:
                bends[a, last] += moved[i, a] / s
                bends[last, a] += moved[i, a] / s
            bends[last, last] += (1 - 2 * squares[i]) / np.square(s)


def _bend_by_correlations(bends: Any, free: Sequence[tuple[int, int, int]], precision: Any, w: Any, by: Any) -> None:
    """Add the second derivatives by the `free` correlations, given by their pairs of responses and their places."""
    for i, j, a in free:
        # The change of w by this correlation.
        change = -(precision[:, i] * w[j] + precision[:, j] * w[i])
        crossed = -np.einsum("km,kbm->bm", change, by)
        bends[a] += crossed
        bends[:, a] += crossed
        for g, h, b in free:
            bends[b, a] += change[g] * w[h] + w[g] * change[h]
            bends[b, a] += precision[g, i] * precision[j, h] + precision[g, j] * precision[i, h]


def _taken(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def _is_definite(matrix: Any) -> Any:
    """A mask of the matrices `[…, k, k]` that are positive definite."""
    return np.linalg.eigvalsh(matrix)[..., 0] > 0
