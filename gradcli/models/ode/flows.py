"""The flow of a system: its states at later times, with derivatives by the states it begins with and by parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import EvaluationError
from gradcli.functionals.body import Body
from gradcli.functionals.functional_calls import ATOL
from gradcli.functionals.ode.system import System, initial_value_problem
from gradcli.functionals.ode.trajectory import trajectory
from gradcli.functionals.tracing import traced
from gradcli.language.differential_equations import DifferentialEquations
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.models.ode.expansions import Array, Expansion
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.indexing import index


class Flow:
    """The flow of equations; `parameters` are the names that it may be differentiated by or that differ between problems,
    `shared` the values of all others."""

    def __init__(
        self,
        equations: DifferentialEquations,
        parameters: Sequence[str],
        shared: Mapping[str, Any],
        method: str,
        rtol: float,
    ) -> None:
        self.equations = equations
        self.parameters = tuple(parameters)
        self.method = method
        self.rtol = rtol
        self._shared = dict(shared)
        self._slopes = equations.slopes
        self._reads = scope.free_names(self._slopes)
        self._systems: dict[Any, System] = {}

    def at(
        self, start: Array, parameters: Array, times: Array, order: int, by: Sequence[int] | None = None
    ) -> Expansion:
        """The states `[g, t, n]` of g problems, which start with `start` `[g, n]` at the first of the times `[t]`.

        Their derivatives are by the n states at the start, followed by the `parameters` `[g, p]`; those by others than the
        numbers `by` of these are not computed, and 0. Raises EvaluationError where a solution does not exist up to the
        last time.
        """
        base = self._system(times[0] if is_exact() else float(times[0]))
        n, count = base.states, base.given
        by = range(count) if by is None else by
        # What the derivatives of each order are, as the numbers of the states of the system.
        system, first = base, None
        if order > 0:
            system, column = base.sensitivities_by(by)
            first = np.array(column, int).reshape(len(by), n).T
        second = None
        if order > 1:
            # The number of the derivative by a given value of each state of the first derivatives.
            every = system.states
            system, column = system.sensitivities_by(by)
            second = np.array(column, int).reshape(len(by), every)[:, first].transpose(1, 2, 0)
        given: Any = np.concatenate([start, parameters], axis=1)
        moments: Any = np.broadcast_to(times, (len(given), len(times)))
        params = {"system": system, "method": self.method, "rtol": self.rtol, "atol": ATOL, "breaks": ()}
        if is_exact():
            operands = (arrays.in_default_namespace(x) for x in (given, moments))
            found = bind(trajectory, tuple(operands), params).numbers
        else:
            with arrays.using_namespace(None):
                found = np.asarray(bind(trajectory, (given, moments), params))
        parts = [None if part is None else found[..., part] for part in (first, second)]
        if len(by) < count:
            for k, part in enumerate(parts):
                if part is not None:
                    whole: Any = np.zeros((*part.shape[: part.ndim - k - 1], *[count] * (k + 1)), part.dtype)
                    whole[(..., *np.ix_(*[by] * (k + 1)))] = part
                    parts[k] = whole
        return Expansion(found[..., :n], *parts)

    def _system(self, origin: Any) -> System:
        """The system of the lapse since an origin of time, which matters where the equations read the time."""
        key = origin if self.equations.time in self._reads else 0.0
        if is_exact() and key not in self._systems:
            self._systems[key] = self._traced(arrays.in_default_namespace(key))
        if key not in self._systems:
            self._systems[key] = self._traced(key)
        return self._systems[key]

    def _traced(self, origin: Any) -> System:
        names = (*self.equations.states, *self.parameters)
        n = len(self.equations.states)

        def slopes(lapse: Any, *values: Any) -> list[Any]:
            known = {self.equations.time: lapse + origin, **dict(zip(names, values))}
            read = {k: v for k, v in known.items() if k in self._reads}
            found = evaluate(self._slopes, {**self._shared, **read}).value
            if arrays.is_complex(found):
                raise EvaluationError(
                    "the derivative of a real state is complex", hint="write its start as a complex number, as in 1+0j"
                )
            return [index(found, k) for k in range(n)]

        with nullcontext() if is_exact() else arrays.using_namespace(None):
            body = traced(slopes, [()] * (1 + len(names))).body
        # The parameters are given values, and not varied by a step.
        held = Body(body.paths, body.program, 1 + n)
        return initial_value_problem(held, [None] * n)
