"""Detects whether a result has no value, a pole or a jump within the uncertainties of its inputs, so that its moments
do not exist or are not those that the derivatives imply.

Each input is varied through its range, and all together along the direction of steepest change. Where neighbouring
values are far apart, the interval is refined until the difference vanishes, as it does where the result is continuous,
or persists.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from gradcli import limits
from gradcli.errors import EvaluationError, GradcliError, LimitError, Span
from gradcli.language.syntax.tree import Module
from gradcli.models.nonfinite_errors import nonfinite_error
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.models.uncertainty.monte_carlo import columns_of
from gradcli.rows.row_programs import RowProgram

# Range of an input on each side of its estimate, in standard uncertainties.
_NORMAL = 2.0
# Points of a range; and number of refinements, each of which divides the three intervals around the largest difference
# into as many points.
_POINTS, _DIVISIONS = 33, 6
# A difference is large where one interval has more than this fraction of the total variation along the range.
_MAX_VARIATION_SHARE = 0.2
# Limits of the ratio of the largest differences after all refinements and after half of them: the result is continuous
# below the first, has a pole above the second, and a jump in between.
_JUMP_RATIO, _POLE_RATIO = 0.25, 10.0
# Distance, relative to the range, at which a point without a value is evaluated beside it, where there may be a limit.
_BESIDE = 1e-9
# Precision of the places in warnings, relative to the range.
_TEXT_PRECISION = 1e-4
# With more inputs than this none is varied.
_MOST_INPUTS = 50


class Singularity(NamedTuple):
    """A singularity at a point `near` the estimates: its `kind`, one of `no value`, `pole` and `jump`; the `inputs`
    that are varied, in words; the span of the operation, and the message of an error."""

    kind: str
    inputs: str
    near: str
    span: Span | None
    message: str = ""


def singularities(module: Module, inputs: Quantities, scaled: Any, most: tuple[int, int]) -> list[Singularity]:
    """The first singularity of each kind that is found.

    `scaled` `[m, n]` are the sensitivities of the results by independent quantities of variance 1, and `most` the
    largest numbers of steps and elements of a run.
    """
    found: dict[str, Singularity] = {}
    # Exceeding the limits here must not keep the program from a result.
    with suppress(LimitError, EvaluationError), limits.optional_budget():
        scan = _Scan(module, inputs, most)
        for label, ends in _lines(inputs, scaled):
            for each in scan.along(label, *ends):
                found.setdefault(each.kind, each)
    return [*found.values()]


def _lines(inputs: Quantities, scaled: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """The lines to scan: what is varied, in words, and the first and the last point, `[n]` each."""
    places = np.flatnonzero(inputs.u).tolist()
    if len(places) > _MOST_INPUTS:
        return
    labels = inputs.packing.labels()
    for place in places:
        low, high = inputs.mean.copy(), inputs.mean.copy()
        assigned = inputs.distributions.get(place)
        reach = _NORMAL * inputs.u[place]
        low[place], high[place] = (low[place] - reach, high[place] + reach) if assigned is None else assigned.reach
        yield labels[place], (low, high)
    if len(places) < 2 or any(place in inputs.distributions for place in places):
        return
    for row in scaled:
        length = float(np.sqrt(row @ row))
        if 0 < length < np.inf:
            deviations = _NORMAL * inputs.deviations(row / length)
            yield "the inputs together", (inputs.mean - deviations, inputs.mean + deviations)


class _Scan:
    """Evaluates the program along lines, and finds singularities there."""

    def __init__(self, module: Module, inputs: Quantities, most: tuple[int, int]) -> None:
        self._module, self._inputs = module, inputs
        self._program = RowProgram(module, (), 0, max_steps=most[0], max_elements=most[1])

    def along(self, label: str, low: Any, high: Any) -> Iterator[Singularity]:
        """The singularities on the line from one point `[n]` to another."""
        shares = np.linspace(0.0, 1.0, _POINTS)
        values, lost = self._values(label, low, high, shares)
        if lost is not None:
            yield lost
            return
        for place in range(values.shape[1]):
            found = self._of_one(label, low, high, values[:, place], place)
            if found is not None:
                yield found

    def _of_one(self, label: str, low: Any, high: Any, values: Any, place: int) -> Singularity | None:
        """The singularity of the result at index `place`, with these `values` along the line; None where there is
        none."""
        steps = np.abs(np.diff(values))
        if not steps.max() > _MAX_VARIATION_SHARE * steps.sum():
            return None
        shares, differences = np.linspace(0.0, 1.0, _POINTS), []
        for _ in range(_DIVISIONS):
            widest = int(np.argmax(np.abs(np.diff(values))))
            start, end = max(0, widest - 1), min(_POINTS - 1, widest + 2)
            shares = np.linspace(shares[start], shares[end], _POINTS)
            every, lost = self._values(label, low, high, shares)
            if lost is not None:
                return lost
            values = every[:, place]
            differences.append(float(np.abs(np.diff(values)).max()))
        middle, last = differences[_DIVISIONS // 2 - 1], differences[-1]
        if not last > _JUMP_RATIO * middle:
            return None
        at = shares[int(np.argmax(np.abs(np.diff(values))))]
        kind = "pole" if last > _POLE_RATIO * middle else "jump"
        return Singularity(kind, label, self._said(low, high, at), self._module.body[-1].span)

    def _points(self, low: Any, high: Any, shares: Any) -> Any:
        return low + shares[:, None] * (high - low)

    def _values(self, label: str, low: Any, high: Any, shares: Any) -> tuple[Any, Singularity | None]:
        """The results `[k, m]` at points of a line, and the singularity at the first point that has no value, not even
        right beside it; None where all have one."""
        values, failures = self._run(low, high, shares)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        beside = _BESIDE * (shares[-1] - shares[0])
        for side in (-beside, beside):
            if len(bad):
                values[bad], _ = self._run(low, high, np.clip(shares[bad] + side, 0.0, 1.0))
                bad = bad[~np.isfinite(values[bad]).all(axis=1)]
        if not len(bad):
            return values, None
        return values, self._without_value(label, low, high, shares[bad[0]], failures.get(int(bad[0])))

    def _run(self, low: Any, high: Any, shares: Any) -> tuple[Any, dict[int, GradcliError]]:
        """The results `[k, m]` at points of a line, nan where the program fails, and the errors there by index."""
        found = self._program.run(
            columns_of(self._inputs, self._points(low, high, shares)), self._inputs.exact, rows=len(shares)
        )
        failures = {failed.index: failed.error for failed in found.failures}
        if found.value.dtype == object:
            raise EvaluationError("the value has other shapes elsewhere")
        return np.array(found.value, "float64").reshape(len(shares), -1), failures

    def _without_value(self, label: str, low: Any, high: Any, at: float, error: GradcliError | None) -> Singularity:
        if error is None:
            point = self._points(low, high, np.array([at]))[0]
            given = {**self._inputs.exact, **self._inputs.packing.named(point)}
            error = nonfinite_error(self._module, given, (), "it is not finite")
        return Singularity("no value", label, self._said(low, high, at), error.span, error.message)

    def _said(self, low: Any, high: Any, at: float) -> str:
        """A point of a line in words: the values of up to three inputs that are varied."""
        labels, varied = self._inputs.packing.labels(), np.flatnonzero(low != high).tolist()
        units = _TEXT_PRECISION * np.abs(high - low)
        near = self._points(low, high, np.array([at]))[0]
        return ", ".join(f"{labels[i]} = {round(near[i] / units[i]) * units[i]:.4g}" for i in varied[:3])
