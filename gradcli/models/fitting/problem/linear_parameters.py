"""Finds the parameters that enter a model linearly: in its program, the derivative by such a parameter does not depend
on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import GradcliError
from gradcli.models.fitting.problem.problems import Problem
from gradcli.program.ir import Program, Variable
from gradcli.program.passes import needed_variables, optimise


def linear_parameters(problem: Problem, point: Any) -> list[int]:
    """The indices of a largest set, found greedily, of parameters without bounds in which together the model is linear.
    Parameters on which the execution path of the program depends are not linear.

    `point` is a point at which the program is recorded.
    """
    names = problem.parameters
    try:
        with limits.optional_budget():
            trace = problem.recorded(point, names, 1)
        program = optimise(trace.program)
    except GradcliError:
        return []
    guarded = _reached(program, program.guards)
    reached = [
        _reached(program, () if place is None else (program.outputs[place],))
        for place in (trace.positions[name] for name in names)
    ]
    bounded = arrays.numpy_namespace().isfinite([problem.low, problem.high]).any(axis=0)
    candidates = [
        i for i, name in enumerate(names) if name not in reached[i] and name not in guarded and not bounded[i]
    ]
    return _largest(candidates, [{k for k in candidates if names[k] in reached[i]} for i in range(len(names))])


def projected_parameters(problem: Problem, linear: Sequence[int]) -> Sequence[int]:
    """The linear parameters that can be projected out, as their best values follow from the others: all for least
    squares, else none."""
    return linear if problem.known.is_least_squares else ()


def _reached(program: Program, outputs: Sequence[object]) -> set[str]:
    """The names of the inputs on which the outputs depend."""
    needed = needed_variables(program.equations, outputs)
    return {v.name for v in needed | {o for o in outputs if isinstance(o, Variable)} if v.name is not None}


def _largest(candidates: Sequence[int], conflicts: Sequence[set[int]]) -> list[int]:
    """Candidates without conflicts among them, chosen greedily from those with the fewest conflicts on."""
    chosen: list[int] = []
    for i in sorted(candidates, key=lambda i: (len(conflicts[i]), i)):
        if not conflicts[i] & set(chosen):
            chosen.append(i)
    return sorted(chosen)
