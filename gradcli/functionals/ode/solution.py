"""The states of a system at some times, by the method that suits it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from gradcli import arrays, limits
from gradcli.errors import EvaluationError
from gradcli.functionals.ode import batches, radau, taylor
from gradcli.functionals.ode.hidden_peaks import peaks
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.recurrences import NoRecurrenceError
from gradcli.functionals.ode.right_sides import RightSides, bodies
from gradcli.functionals.ode.solver_progress import NoStepError, SolverProblem, SolverProgress
from gradcli.functionals.ode.taylor_machine_code import SHORTEST

# Bound on the number of steps.
_MOST_STEPS = 100_000
# The number of steps between tests for stiffness, and the number of remaining steps from which one is made, relative to
# those taken, and at least: a step of an implicit method takes the time of some 50 others.
_TEST_STEPS, _WORTH_TESTING, _FEWEST_LEFT = 25, 4, 1_000
# A system is stiff if its fastest decay within a step is more than the first number, or than the second one where more
# steps are left than are allowed: steps that resolve the decay of rounding errors are shorter.
_STIFF, _RESOLVED = 2.0, 0.5
# A solution leaves to infinity where it grows by this part of its size in steps that shrink to nothing, or to this size.
_GROWING, _HUGE = 1e-4, 1e6


def solve(
    system: System, given: Any, times: Any, *, method: str, rtol: float, atol: float, breaks: Sequence[float]
) -> Any:
    """The states, of shape [problems, times, states], of problems with `given` values of shape [problems, given].

    Raises EvaluationError where a solution does not exist up to the last time.
    """
    np = arrays.numpy_namespace()
    found = np.empty((*times.shape, system.states))
    limits.charge_steps(found.size)
    solved = np.zeros(len(given), bool)
    if len(given) >= batches.FEWEST and method != "radau" and not breaks:
        ordered = [is_ordered(moments) for moments in times.tolist()]
        if all(ordered):
            solved = batches.solve(system, given, times - times[:, :1], found, rtol, atol)
    for row, (values, moments) in enumerate(zip(given.tolist(), times.tolist())):
        if solved[row]:
            continue
        if not all(map(math.isfinite, (*values, *moments))):
            # As it is where the shape alone is wanted.
            found[row] = math.nan
            continue
        if not is_ordered(moments):
            raise EvaluationError("times go back", hint="they have to ascend, or to descend, from the first one")
        problem = SolverProblem(system, values, moments[0], tuple(sorted(breaks)), rtol, atol)
        found[row] = _solved(problem, [t - moments[0] for t in moments], method)
    return found


def _solved(problem: SolverProblem, times: Sequence[float], method: str) -> Any:
    return followed(problem, times, method).found


def followed(problem: SolverProblem, times: Sequence[float], method: str, *, keeps: bool = False) -> SolverProgress:
    """The solution of a problem up to the last of some lapses; see `SolverProgress` for what it `keeps`."""
    progress = SolverProgress(times, [float(s) for s in problem.system.start(*problem.given)], keeps=keeps)
    hidden = peaks(problem.system, problem.given, times[-1])
    if hidden:
        problem = problem._replace(breaks=sorted([*problem.breaks, *(problem.origin + t for t in hidden)]))
    sides = RightSides(bodies(problem.system), problem.given)
    while not progress.done:
        blocked = None if method == "radau" else _by_taylor(problem, progress, sides, stays=method == "taylor")
        if not progress.done:
            progress.passed = None
            _by_radau(problem, progress, sides, blocked)
    return progress


def _by_taylor(problem: SolverProblem, progress: SolverProgress, sides: RightSides, *, stays: bool) -> float | None:
    """Go on by Taylor's method, to the end or, unless it `stays`, to where another method is better.

    Returns the length of a step that is too small where this method goes no further, which may be near one place alone,
    such as a removable singularity: near the zero of a divisor the rounding errors of coefficients grow with their
    order. Returns None otherwise.
    """
    keeps_steps = progress.passed is not None
    try:
        stepper = taylor.TaylorStepper(problem, progress)
        tested = progress.steps, progress.time
        while not progress.done:
            stepper.advance(1 if keeps_steps else _TEST_STEPS - progress.steps % _TEST_STEPS)
            check_steps(problem, progress)
            if progress.steps % _TEST_STEPS or stays:
                continue
            length = abs(progress.time - tested[1]) / (progress.steps - tested[0])
            tested = progress.steps, progress.time
            is_far = abs(progress.left) > length * max(_WORTH_TESTING * progress.steps, _FEWEST_LEFT)
            if is_far and _is_stiff(sides, progress, length):
                return None
    except NoRecurrenceError as error:
        if stays:
            raise EvaluationError(
                f"'{error}' has no recurrence of Taylor coefficients", hint="--method radau"
            ) from None
    except NoStepError:
        length = SHORTEST * abs(progress.time)
        if stays:
            _refuse(problem, progress, sides, length)
        return length
    return None


def _is_stiff(sides: RightSides, progress: SolverProgress, length: float) -> bool:
    """Return whether steps of a length are short only because something decays quickly."""
    np = arrays.numpy_namespace()
    count = sides.base_states
    try:
        (jacobian,) = sides.jacobians(np.array([progress.time]), np.array([progress.states[:count]]))
        fastest = min(np.linalg.eigvals(jacobian * np.sign(progress.left)), key=lambda value: value.real)
    except (NoStepError, np.linalg.LinAlgError):
        return False
    least = _STIFF if abs(progress.left) < _MOST_STEPS * length else _RESOLVED
    return bool(-fastest.real * length > least and -fastest.real > abs(fastest.imag))


def _by_radau(problem: SolverProblem, progress: SolverProgress, sides: RightSides, blocked: float | None) -> None:
    """Go on by Radau's method, to the end or, where `blocked` is the length of a step of another method that was too
    small, until the error alone limits the steps."""
    length = blocked or 0.0
    try:
        stepper = radau.RadauStepper(problem, progress)
        while not progress.done:
            before = progress.time
            stepper.advance()
            length = abs(progress.time - before)
            check_steps(problem, progress)
            if blocked is not None and not stepper.grows:
                return
    except NoStepError:
        _refuse(problem, progress, sides, length)


def _refuse(problem: SolverProblem, progress: SolverProgress, sides: RightSides, length: float) -> NoReturn:
    """Raise EvaluationError for a solution that goes no further, where steps have a length that is too small."""
    place = f"t = {problem.origin + progress.time:.8g}"
    try:
        rates = sides.rates(progress.time, progress.states)
    except NoStepError:
        rates = []
    # Near a pole or a logarithm the slope grows as the distance shrinks, near a root more slowly.
    size = max(map(abs, problem.system.start(*problem.given)), default=1.0) or 1.0
    if any(abs(r) * length > _GROWING * size for r in rates) or any(abs(s) > _HUGE * size for s in progress.states):
        raise EvaluationError(f"the solution leaves to infinity at {place}")
    if not all(map(math.isfinite, rates)) or not rates:
        raise EvaluationError(f"the right side has no finite value at {place}")
    jacobian = max((abs(x) for x in _jacobian(sides, progress)), default=math.inf)
    raise EvaluationError(
        f"the step becomes too small at {place}, where the right side changes by up to {jacobian:.2g} per unit of a state"
    )


def _jacobian(sides: RightSides, progress: SolverProgress) -> Sequence[float]:
    np = arrays.numpy_namespace()
    try:
        found = sides.jacobians(np.array([progress.time]), np.array([progress.states[: sides.base_states]]))
    except NoStepError:
        return []
    flat: Sequence[float] = found.ravel().tolist()
    return flat


def check_steps(problem: SolverProblem, progress: SolverProgress) -> None:
    """Raise EvaluationError for a solution that takes too many steps."""
    if progress.steps > _MOST_STEPS:
        place = problem.origin + progress.time
        raise EvaluationError(f"the solution takes more than {_MOST_STEPS:,} steps; it came to t = {place:.6g}")


def is_ordered(times: Sequence[float]) -> bool:
    """Return whether times ascend, or descend."""
    return len({b > a for a, b in itertools.pairwise(times) if a != b}) <= 1
