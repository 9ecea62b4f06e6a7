"""The cost of a row, minus its log density, as a program of the row variables; with its derivatives up to the fourth,
the higher ones along directions, which are few."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.models.fitting.notation.log_densities import HALF_LOG_TWO_PI
from gradcli.models.fitting.notation.model_texts import rewritten
from gradcli.models.fitting.problem.batched_matrices import pairs
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name
from gradcli.rows.row_programs import RowProgram
from gradcli.rows.row_results import RowResults

# Costs of a row by family, of the response {y}, the model's value {m}, and the weight {w}: for a gaussian family, whose
# logarithm of the residual standard deviation is {s}, the standard deviation of the row relative to that. A logarithm
# that counts for nothing is not computed, as it may have no derivatives at the end of its domain.
_COSTS = {
    "gaussian": f"0.5*(({{y}} - {{m}})*exp(-{{s}})/{{w}})**2 + {{s}} + log({{w}}) + {HALF_LOG_TWO_PI}",
    "poisson": "{w}*({m} - where({y} > 0, {y}*log({m}), 0))",
    "binomial": "-{w}*(where({y} > 0, {y}*log({m}), 0) + where({y} < 1, (1 - {y})*log(1 - {m}), 0))",
}
# The ends of the range of the model's value by family.
_RANGES = {"poisson": (0.0, np.inf), "binomial": (0.0, 1.0)}


def constant_cost(family: str, response: Any, weight: Any) -> float:
    """The sum of those parts of the costs that depend on no parameter, which the costs of rows lack."""
    from scipy.special import gammaln

    if family == "poisson":
        return float((weight * gammaln(response + 1)).sum())
    if family == "binomial":
        ways = gammaln(weight + 1) - gammaln(weight * response + 1) - gammaln(weight * (1 - response) + 1)
        return -float(ways.sum())
    return 0.0


class Slopes(NamedTuple):
    """The values `[n]` of a program, and its derivatives `[m, n]` and second derivatives `[m, m, n]` by the row
    variables."""

    value: Any
    first: Any
    second: Any


class RowCosts:
    """The costs of rows by the row variables `names`, of which the model reads also `columns` `[n]` and `constants`.

    The model is that of the family's mean, or for another family the log density itself. `varied` are the indices of the
    row variables to which effects are added.
    """

    def __init__(
        self,
        model: tree.Module,
        family: str,
        names: Sequence[str],
        varied: Sequence[int],
        columns: Mapping[str, Any],
        constants: Mapping[str, float],
        response: Any,
        weight: Any,
        limits: tuple[int, int],
        spread: str | None = None,
    ) -> None:
        n = self._count = len(response)
        reads = scope.free_names(model)
        self._names, self._varied, self._limits = tuple(names), [*varied], limits
        # By end; what is found out about a program serves all orders of its derivatives.
        self._texts: dict[str, tree.Module] = {}
        self._programs: dict[tuple[str, int, bool], RowProgram] = {}
        self._columns = {name: column for name, column in columns.items() if name in reads}
        self._constants = {name: value for name, value in constants.items() if name in reads}
        # The model may assign names of its own.
        self._taken = {*re.findall(r"\w+", model.source), *columns, *names, *constants}
        y, w, self._value = self._unused("y"), self._unused("w"), self._unused("value")
        self._columns |= {y: response, w: np.broadcast_to(np.asarray(weight, "float64"), n)}
        cost = _COSTS.get(family, "-{w}*{m}").replace("{y}", y).replace("{w}", w).replace("{m}", self._value)
        self._cost = self._unused("cost")
        self._model = model
        self._range = _RANGES.get(family)
        self._begin = [f"{self._value} = {{value}}", f"{self._cost} = {cost.replace('{s}', spread or '')}"]
        self._of_cost = self._cost
        self._directions = [self._unused(f"d_{name}") for name in names]
        self._of_directions = " + ".join(f"{d}*diff({self._cost}, {name})" for d, name in zip(self._directions, names))
        self._pairs = [(a, b) for i, a in enumerate(self._varied) for b in self._varied[i:]]
        self._moments = [self._unused(f"k_{names[a]}_{names[b]}") for a, b in self._pairs]
        self._of_moments = " + ".join(
            f"{k}*diff(diff({self._cost}, {names[a]}), {names[b]})" for k, (a, b) in zip(self._moments, self._pairs)
        )

    def _unused(self, name: str) -> str:
        found = unused_name(name, self._taken)
        self._taken.add(found)
        return found

    def _program(self, end: str, order: int, of_effects: bool) -> RowProgram:
        found = self._programs.get((end, order, of_effects))
        if found is None:
            names = [self._names[j] for j in self._varied] if of_effects else self._names
            steps, elements = self._limits
            if end not in self._texts:
                self._texts[end] = rewritten(self._model, [*self._begin, end])
            program = self._texts[end]
            found = RowProgram(program, names if order else (), order, max_steps=steps, max_elements=elements)
            self._programs[end, order, of_effects] = found
        return found

    def costs(self, values: Mapping[str, Any], *, of_effects: bool = False) -> Slopes:
        """The costs at values of the row variables, by all of them or by those alone to which effects are added."""
        found = self._slopes(self._of_cost, values, {}, 2, of_effects)
        if self._range is not None:
            low, high = self._range
            mean = self._values_of(self._value, values, {}, 0, of_effects).value
            found.value[~((mean >= low) & (mean <= high))] = np.inf
        return found

    def means(self, values: Mapping[str, Any]) -> Slopes:
        """The model's values, and their first derivatives."""
        return self._slopes(self._value, values, {}, 1, of_effects=False)

    def third(self, values: Mapping[str, Any], direction: Any, *, of_effects: bool = False) -> Any:
        """The derivative `[m, m, n]` of the second derivatives of the costs along a direction `[m, n]`."""
        given = dict(zip(self._directions, direction))
        return self._slopes(self._of_directions, values, given, 2, of_effects).second

    def of_moments(self, values: Mapping[str, Any], moments: Any, order: int) -> Slopes:
        """The scalar product of the second derivatives of the costs with `moments` `[m, m, n]`, and its derivatives."""
        given = {name: moments[a, b] * (1.0 if a == b else 2.0) for name, (a, b) in zip(self._moments, self._pairs)}
        return self._slopes(self._of_moments, values, given, order, of_effects=False)

    def _slopes(
        self, end: str, values: Mapping[str, Any], given: Mapping[str, Any], order: int, of_effects: bool
    ) -> Slopes:
        places = self._varied if of_effects else [*range(len(self._names))]
        m, n = len(self._names), self._count
        found = self._values_of(end, values, given, order, of_effects)
        value = np.array(np.broadcast_to(np.asarray(found.value, "float64"), n))
        first, second = np.zeros((m, n)), np.zeros((m, m, n)) if order > 1 else None
        for j in places:
            first[j] = found.derivative(self._names[j])
        if second is not None:
            for a, b in zip(*pairs(len(places))):
                i, j = places[a], places[b]
                second[i, j] = second[j, i] = found.derivative(f"{self._names[i]},{self._names[j]}")
        return Slopes(value, first, second)

    def _values_of(
        self, end: str, values: Mapping[str, Any], given: Mapping[str, Any], order: int, of_effects: bool
    ) -> RowResults:
        columns = {**self._columns, **given, **{name: v for name, v in values.items() if np.ndim(v)}}
        shared = {**self._constants, **{name: v for name, v in values.items() if not np.ndim(v)}}
        with np.errstate(all="ignore"):
            return self._program(end, order, of_effects).run(columns, shared, rows=self._count)
