"""The states of a system at some times, by the method that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.errors import EvaluationError
from gradcli.functionals.ode import python_code, radau, taylor
from gradcli.functionals.ode.progress import NoStepError, Problem, Progress
from gradcli.functionals.ode.recurrences import NoRecurrenceError, recurrences
from gradcli.functionals.ode.right_sides import RightSides
from gradcli.functionals.ode.system import System

# Bound on the number of steps.
_MOST_STEPS = 100_000
# A system is tested for stiffness after every so many steps, if there are as many times more to go.
_TEST_STEPS, _WORTH_TESTING = 25, 4
# A system is stiff if the fastest decay within a step is at least this.
_STIFF = 2.0

_codes: WeakKeyDictionary[System, python_code.Coefficients | None] = WeakKeyDictionary()


def solve(
    system: System, given: Any, times: Any, *, method: str, rtol: float, atol: float, breaks: Sequence[float]
) -> Any:
    """The states, of shape [problems, times, states], of problems with `given` values of shape [problems, given].

    Raises EvaluationError where a solution does not exist up to the last time.
    """
    np = arrays.numpy_namespace()
    found = np.empty((*times.shape, system.states))
    for row, (values, moments) in enumerate(zip(given.tolist(), times.tolist())):
        found[row] = _solved(Problem(system, values, rtol, atol), moments, method)
    return found


def _solved(problem: Problem, times: Sequence[float], method: str) -> Any:
    check_order(times)
    progress = Progress(times, [float(s) for s in problem.system.start(*problem.given)])
    sides = RightSides(problem.system, problem.given)
    if method != "radau" and not progress.done:
        _by_taylor(problem, progress, sides, stays=method == "taylor")
    if not progress.done:
        _by_radau(problem, progress, sides)
    return progress.found


def _by_taylor(problem: Problem, progress: Progress, sides: RightSides, *, stays: bool) -> None:
    """Go on by Taylor's method, to the end or, unless it `stays`, to where another method is better."""
    code = _code(problem.system)
    if code is None:
        if stays:
            raise EvaluationError("the right side has no recurrence of Taylor coefficients")
        return

    def expansion(order: int, time: float, states: Sequence[float]) -> taylor.Series:
        return code(order, time, *states, *problem.given)

    try:
        stepper = taylor.Stepper(problem, progress, expansion)
        while not progress.done:
            stepper.advance()
            _check_steps(progress)
            ahead = abs(progress.left) / stepper.step.length if stepper.step.length else 0.0
            tests = not stays and progress.steps % _TEST_STEPS == 0 and ahead > _WORTH_TESTING * progress.steps
            if tests and _is_stiff(sides, progress, stepper.step.length):
                return
    except NoStepError:
        if stays:
            _refuse(problem, progress, sides)


def _code(system: System) -> python_code.Coefficients | None:
    if system not in _codes:
        try:
            _codes[system] = python_code.coefficients(recurrences(system.body.program, system.states))
        except NoRecurrenceError:
            _codes[system] = None
    return _codes[system]


def _is_stiff(sides: RightSides, progress: Progress, length: float) -> bool:
    """Whether a step is short only because something decays quickly."""
    np = arrays.numpy_namespace()
    count = sides.base_states
    try:
        (jacobian,) = sides.jacobians(np.array([progress.time]), np.array([progress.states[:count]]))
        fastest = min(np.linalg.eigvals(jacobian * np.sign(progress.left)), key=lambda value: value.real)
    except (NoStepError, np.linalg.LinAlgError):
        return False
    return bool(-fastest.real * length > _STIFF and -fastest.real > abs(fastest.imag))


def _by_radau(problem: Problem, progress: Progress, sides: RightSides) -> None:
    try:
        stepper = radau.Stepper(problem, progress, sides)
        while not progress.done:
            stepper.advance()
            _check_steps(progress)
    except NoStepError:
        _refuse(problem, progress, sides)


def _refuse(problem: Problem, progress: Progress, sides: RightSides) -> None:
    raise EvaluationError(f"the solution leaves to infinity at t = {progress.time:.8g}")


def _check_steps(progress: Progress) -> None:
    if progress.steps > _MOST_STEPS:
        raise EvaluationError(f"the solution takes more than {_MOST_STEPS:,} steps; it came to t = {progress.time:.6g}")


def check_order(times: Sequence[float]) -> None:
    """Raise EvaluationError for times that are not in order, or not on one side of the start."""
    signs = {b > a for a, b in zip((0.0, *times), times) if a != b}
    if len(signs) > 1:
        raise EvaluationError("times go back", hint="they have to ascend, or to descend, from the first one")
