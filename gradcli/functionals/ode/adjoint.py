"""Cotangents of what a system is given, by the adjoint equations: at a cost that hardly depends on how much that is.

For a solution of y' = f(t, y, given) with cotangents of its states at some times, l' = -f_y^T l and m' = -f_given^T l are
solved backward from the last time, and a cotangent is added to l where its time is passed. What l is at the start is the
cotangent of the states there, and m that of what is given (L. S. Pontryagin and others, 1962; Y. Cao, S. Li, L. Petzold
and R. Serban, SIAM J. Sci. Comput. 24 (2003), 1076).

The states are solved backward beside them. At the end of each step of the solution they are set to what they were there,
so that what grows backward has no time to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.executors import stepwise
from gradcli.functionals.body import Body
from gradcli.functionals.ode import taylor
from gradcli.functionals.ode.progress import NoStepError, Problem, Progress
from gradcli.functionals.ode.recurrences import NoRecurrenceError
from gradcli.functionals.ode.right_sides import function
from gradcli.functionals.ode.smooth_pieces import switching
from gradcli.functionals.ode.solution import check_steps, followed
from gradcli.functionals.ode.system import System
from gradcli.primitives.bind import constant
from gradcli.program.ir import Program


class _Equations(NamedTuple):
    """The system of the states y, their cotangents l and those of what is given, m, by the lapse since the last time; it
    is given that lapse, what the states are given, and y and l at the last time. `starts` has the cotangents of what is
    given from those of the states at the start, which follow it."""

    system: System
    starts: Body


_made: WeakKeyDictionary[System, _Equations] = WeakKeyDictionary()


def has_adjoint(system: System) -> bool:
    """Whether the right side bends and jumps nowhere, so that its adjoint equations hold everywhere."""
    return not switching(system.body.program, 1 + system.states)


def cotangents(system: System, given: Any, times: Any, outer: Any, **options: Any) -> Any:
    """The cotangents `[given]` of `given` values `[given]` from those of the states at `times`, `outer` `[times,
    states]`; None where the solution is stiff, so that the states cannot be solved backward.

    Raises EvaluationError where a solution does not exist up to the last time.
    """
    np = arrays.numpy_namespace()
    if not np.isfinite(given).all() or not np.isfinite(times).all():
        return np.full(len(given), np.nan)
    try:
        with arrays.using_namespace(None):
            return _swept(system, given.tolist(), times.tolist(), outer, **options)
    except (NoStepError, NoRecurrenceError):
        return None


def _swept(
    system: System,
    given: Sequence[float],
    times: Sequence[float],
    outer: Any,
    *,
    method: str,
    rtol: float,
    atol: float,
    breaks: Sequence[float],
) -> Any:
    np = arrays.numpy_namespace()
    n, equations = system.states, _equations(system)
    problem = Problem(system, given, times[0], tuple(sorted(breaks)), rtol, atol)
    lapses = [t - times[0] for t in times]
    forward = followed(problem, lapses, method, keeps=True)
    if forward.passed is None:
        return None
    last = lapses[-1]
    # What the states are at the ends of steps and where cotangents enter, and the cotangents.
    known = {t - last: states for t, states in (*forward.passed, *zip(lapses, forward.found))}
    entering: dict[float, Any] = {}
    for t, cotangent in zip(lapses, outer):
        entering[t - last] = entering.get(t - last, 0.0) + cotangent
    begin = entering.pop(0.0)
    backward = Problem(equations.system, [last, *given, *known[0.0], *begin], 0.0, tuple(known), rtol, atol)
    progress = Progress([-last], [*known[0.0], *begin, *[0.0] * len(given)])
    stepper = taylor.Stepper(backward, progress) if last else None
    while not progress.done:
        assert stepper is not None
        stepper.advance()
        check_steps(backward, progress)
        if progress.time in known and not progress.done:
            states = [*progress.states]
            states[:n] = known[progress.time]
            states[n : 2 * n] = np.add(states[n : 2 * n], entering.pop(progress.time, 0.0)).tolist()
            stepper.restart(states)
    at_start = np.add(progress.states[n : 2 * n], entering.pop(-last, 0.0)).tolist()
    return np.add(progress.states[2 * n :], function(equations.starts)(*given, *at_start))


def _equations(system: System) -> _Equations:
    found = _made.get(system)
    if found is None:
        found = _made[system] = _made_of(system)
    return found


def _made_of(system: System) -> _Equations:
    n, count = system.states, system.given

    def slopes(program: Program, inputs: Sequence[Any]) -> list[Any]:
        lapse, states, pulled = inputs[0], inputs[1 : 1 + n], inputs[1 + n : 1 + 2 * n]
        last, *given = inputs[1 + 2 * n + count : 2 + 2 * n + 2 * count]
        rates, found = _pulled(program, [last + lapse], [*states, *given], pulled)
        # What follows the rates are the conditions of a path.
        return [*rates[:n], *(-1.0 * c for c in found), *rates[n:]]

    def begin(_program: Program, inputs: Sequence[Any]) -> list[Any]:
        return [*inputs[1 + count :], *[0.0] * count]

    def starts(program: Program, inputs: Sequence[Any]) -> list[Any]:
        return _pulled(program, [], inputs[:count], inputs[count:])[1]

    bound, reads = 1 + 2 * n + count, 1 + count + 2 * n
    adjoint = System(
        system.body.derived(slopes, bound, reads), system.start.derived(begin, 0, reads), scales=(n, n, count)
    )
    return _Equations(adjoint, system.start.derived(starts, 0, count + n))


def _pulled(
    program: Program, fixed: Sequence[Any], inputs: Sequence[Any], outer: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The results of a program, and the cotangents of its inputs after the `fixed` ones from those of its results."""
    leaves = [Tensor(x).requires_grad_() for x in inputs]
    with enable_grad():
        results = stepwise.outputs(program, [*fixed, *leaves])
    pairs = [(y, g) for y, g in zip(results, outer) if isinstance(y, Tensor) and y.requires_grad]
    found: Sequence[Any] = [None] * len(leaves)
    if pairs and leaves:
        found = grad([y for y, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True)
    return [*map(constant, results)], [0.0 if c is None else constant(c) for c in found]
