"""Residuals that rounding errors would hide in floats, computed in ball arithmetic from the decimals that the data are
written as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb

from gradcli import limits
from gradcli.arrays.flint.balls import Balls, Number, exact, precise, shortest_decimal, to_float
from gradcli.calculus.batches_and_series import batch_of, rows_of
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import EvaluationError
from gradcli.kinds import batch
from gradcli.language.interpreter.run import evaluate
from gradcli.models.fitting.problem.problems import Problem
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete

# Precision of the balls in bits, and the radius up to which a residual may be uncertain, relative to the largest
# response.
_BITS, _NOTHING = 192, 2.0**-128
# Largest number of Gauss-Newton steps; the minimum is near.
_MOST_STEPS = 6


class ProvedResiduals(NamedTuple):
    """The floats `point` `[p]` next to the minimum of the squares, and the `residuals` `[n]` there: the responses less
    the model's values."""

    point: Any
    residuals: Any


def proved_residuals(problem: Problem, point: Any, free: Any, first: Any) -> ProvedResiduals:
    """The residuals at the minimum next to a point `[p]`, to which Gauss-Newton steps of the `free` parameters `[p]`
    lead; `first` `[n, p]` are the derivatives of the model there. To be called within `gradcli.proofs.digits.computing`.

    Raises EvaluationError where the balls are too wide to tell, and what the model raises in ball arithmetic.
    """
    with precise(_BITS):
        rows = _Rows(problem)
        numbers = [exact(number) for number in point.tolist()]
        left = rows.residuals(numbers)
        scales = np.linalg.norm(first[:, free] / rows.sigma[:, None], axis=0)
        slopes = first[:, free] / rows.sigma[:, None] / scales
        for _ in range(_MOST_STEPS):
            step = np.zeros(len(point))
            step[free] = np.linalg.lstsq(slopes, left / rows.sigma)[0] / scales
            further = [number + exact(part) for number, part in zip(numbers, step.tolist())]
            moved = rows.residuals(further)
            if not np.linalg.norm(moved / rows.sigma) < np.linalg.norm(left / rows.sigma):
                break
            numbers, left = further, moved
        nearest = np.array([to_float(number) for number in numbers])
        nearest[np.abs(nearest) * np.abs(first).max(axis=0) <= rows.nothing] = 0
        return ProvedResiduals(np.clip(nearest, problem.low, problem.high), left)


class _Rows:
    """The rows of a problem as exact decimals: those that their numbers are written as."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._fixed = {name: Balls(shortest_decimal(number)) for name, number in problem.fixed.items()}
        self._columns = {name: as_tensor(_balls(column)) for name, column in problem.columns.items()}
        self._response = _balls(problem.response).numbers
        self.nothing = _NOTHING * float(np.abs(problem.response).max())
        self.sigma = np.broadcast_to(np.asarray(problem.sigma, "float64"), problem.response.shape)

    def residuals(self, point: Sequence[Number]) -> Any:
        """The residuals `[n]` at a point as floats, 0 where these are below the uncertainty that is allowed."""
        problem, nesting = self._problem, batch.new_batch_id()
        shared = {**self._fixed, **dict(zip(problem.parameters, map(Balls, point)))}
        with limits.within(*problem.limits), batch.row_by_row(nesting):
            columns = {name: batch_of(column, nesting) for name, column in self._columns.items()}
            value = evaluate(problem.model, {**shared, **columns}).value
            values = concrete(rows_of(as_tensor(value), nesting, problem.count)).numbers
        return np.array([self._residual(y - value) for y, value in zip(self._response, values)])

    def _residual(self, off: Number) -> float:
        # Numbers that are not balls are exact fractions.
        if isinstance(off, arb) and not float(off.rad()) <= self.nothing:
            raise EvaluationError("the residuals are not told from rounding errors")
        found = to_float(off)
        return found if abs(found) > self.nothing else 0.0


def _balls(column: Any) -> Balls:
    numbers = np.empty(len(column), object)
    numbers[:] = [*map(shortest_decimal, column.tolist())]
    return Balls(numbers)
