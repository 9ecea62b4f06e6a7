"""Cotangents of what a system is given, by the adjoint equations: at a cost that hardly depends on how much that is.

For a solution of y' = f(t, y, given) with cotangents of its states at some times, l' = -f_y^T l and m' = -f_given^T l are
solved backward from the last time, and a cotangent is added to l where its time is passed. What l is at the start is the
cotangent of the states there, and m that of what is given (L. S. Pontryagin and others, 1962; Y. Cao, S. Li, L. Petzold
and R. Serban, SIAM J. Sci. Comput. 24 (2003), 1076).

The states are solved backward beside them. Where they differ from what they were at the end of a step of the solution, by
more than the tolerance of steps, they are set to that, so that what grows backward has no time to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.executors import stepwise
from gradcli.functionals.body import Body
from gradcli.functionals.ode import taylor
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.recurrences import NoRecurrenceError
from gradcli.functionals.ode.right_sides import function
from gradcli.functionals.ode.smooth_pieces import switching
from gradcli.functionals.ode.solution import check_steps, followed
from gradcli.functionals.ode.solver_progress import NoStepError, SolverProblem, SolverProgress
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import constant
from gradcli.program.ir import Program

# The difference of states that are solved backward from those that are known, in units of the tolerance of a step, beyond
# which they are set to these: some steps add as much by rounding.
_MOST_OFF = 16


class _Equations(NamedTuple):
    """The system of the states y, their cotangents l and those of what the right side reads, m, by the lapse since the
    last time; it is given that lapse, what the states are given, and y and l at the last time. `reads` are the numbers of
    given values that the right side reads. `starts` has the cotangents of what is given from those of the states at the
    start, which follow it."""

    system: System
    reads: Sequence[int]
    starts: Body


_made: WeakKeyDictionary[System, _Equations] = WeakKeyDictionary()


def has_adjoint(system: System) -> bool:
    """Return whether the right side bends and jumps nowhere, so that its adjoint equations hold everywhere."""
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
    problem = SolverProblem(system, given, times[0], tuple(sorted(breaks)), rtol, atol)
    lapses = [t - times[0] for t in times]
    forward = followed(problem, lapses, method, keeps=True)
    if forward.passed is None:
        return None
    last = lapses[-1]
    # What the states are at the ends of steps and where cotangents enter, and the cotangents.
    known = {t - last: states for t, states in (*forward.passed, *zip(lapses, forward.found))}
    entering = {0.0: np.zeros(n)}
    for t, cotangent in zip(lapses, outer):
        entering[t - last] = entering.get(t - last, 0.0) + cotangent
    begin = entering.pop(0.0)
    stops = (*entering, *(b - last for b in problem.stops))
    backward = SolverProblem(equations.system, [last, *given, *known[0.0], *begin], 0.0, stops, rtol, atol)
    progress = SolverProgress(sorted(known, key=abs), [*known[0.0], *begin, *[0.0] * len(equations.reads)])
    stepper = taylor.TaylorStepper(backward, progress) if last else None
    while not progress.done:
        assert stepper is not None
        first = len(progress.found)
        stepper.advance()
        check_steps(backward, progress)
        for number in range(first, min(len(progress.found), len(progress.times) - 1)):
            time, states = progress.times[number], progress.found[number]
            if time in entering or _is_off(states[:n], known[time], problem.sizes(known[time]), stepper.tolerance):
                pulled = np.add(states[n : 2 * n], entering.pop(time, 0.0)).tolist()
                progress.go_back(number, [*known[time], *pulled, *states[2 * n :]])
                stepper.restart(progress.states)
                break
    at_start = np.add(progress.states[n : 2 * n], entering.pop(-last, 0.0)).tolist()
    found = np.array(function(equations.starts)(*given, *at_start))
    found[[*equations.reads]] += progress.states[2 * n :]
    return found


def _is_off(states: Sequence[float], known: Sequence[float], sizes: Sequence[float], tolerance: float) -> bool:
    """Return whether states differ from those that are known by more than the error of some steps."""
    np = arrays.numpy_namespace()
    return bool((np.abs(np.subtract(states, known)) > _MOST_OFF * tolerance * np.array(sizes)).any())


def _equations(system: System) -> _Equations:
    found = _made.get(system)
    if found is None:
        found = _made[system] = _made_of(system)
    return found


def _made_of(system: System) -> _Equations:
    n, count = system.states, system.given
    used = {x for e in system.body.program.equations for x in e.inputs} | {*system.body.program.outputs}
    read = [k for k, x in enumerate(system.body.program.inputs[1 + n :]) if x in used]
    bound, reads = 1 + 2 * n + len(read), 1 + count + 2 * n

    def slopes(program: Program, inputs: Sequence[Any]) -> list[Any]:
        lapse, states, pulled = inputs[0], inputs[1 : 1 + n], inputs[1 + n : 1 + 2 * n]
        last, *given = inputs[bound : bound + 1 + count]
        rates, found = _pulled(program, [last + lapse], [*states, *given], pulled)
        wanted = [*found[:n], *(found[n + k] for k in read)]
        # What follows the rates are the conditions of a path.
        return [*rates[:n], *(-1.0 * c for c in wanted), *rates[n:]]

    def begin(_program: Program, inputs: Sequence[Any]) -> list[Any]:
        return [*inputs[1 + count :], *[0.0] * len(read)]

    def starts(program: Program, inputs: Sequence[Any]) -> list[Any]:
        return _pulled(program, [], inputs[:count], inputs[count:])[1]

    adjoint = System(
        system.body.derived(slopes, bound, reads), system.start.derived(begin, 0, reads), scales=(n, n, len(read))
    )
    return _Equations(adjoint, read, system.start.derived(starts, 0, count + n))


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
