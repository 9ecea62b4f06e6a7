"""The states of a system at some times, by the method that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.errors import EvaluationError
from gradcli.functionals.ode import python_code, taylor
from gradcli.functionals.ode.recurrences import recurrences
from gradcli.functionals.ode.system import System

_codes: WeakKeyDictionary[System, python_code.Coefficients] = WeakKeyDictionary()


def solve(
    system: System, given: Any, times: Any, *, method: str, rtol: float, atol: float, breaks: Sequence[float]
) -> Any:
    """The states, of shape [problems, times, states], of problems with `given` values of shape [problems, given].

    Raises EvaluationError where a solution does not exist up to the last time.
    """
    np = arrays.numpy_namespace()
    found = np.empty((*times.shape, system.states))
    for row, (values, moments) in enumerate(zip(given.tolist(), times.tolist())):
        found[row] = _solved(system, values, moments, rtol)
    return found


def _solved(system: System, given: Sequence[float], times: Sequence[float], rtol: float) -> Any:
    check_order(times)
    code = _codes.get(system)
    if code is None:
        code = _codes[system] = python_code.coefficients(recurrences(system.body.program, system.states))
    start = [float(s) for s in system.start(*given)]

    def expansion(order: int, time: float, states: Sequence[float]) -> Any:
        return code(order, time, *states, *given)

    return taylor.trajectory(expansion, start, times, system.groups, rtol)


def check_order(times: Sequence[float]) -> None:
    """Raise EvaluationError for times that are not in order, or not on one side of the start."""
    signs = {b > a for a, b in zip((0.0, *times), times) if a != b}
    if len(signs) > 1:
        raise EvaluationError("times go back", hint="they have to ascend, or to descend, from the first one")
