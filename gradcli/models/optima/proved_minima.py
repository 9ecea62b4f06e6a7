"""`minimize --prove`: bounds of the global minimum in a box that are proved, and the boxes of its minimisers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import BindingError, EvaluationError, LimitError, NotRecordableError, did_you_mean
from gradcli.language.syntax import parse
from gradcli.language.syntax.tree import Module
from gradcli.models.optima import optimality
from gradcli.models.optima.local_search import search
from gradcli.models.optima.newton import NewtonEnd
from gradcli.models.optima.optimization_problems import OptimizationProblem
from gradcli.models.results import MAY_BE_NULL, Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple

# Upper bound of the iterations of each search for a lower point.
_MOST_ITERATIONS = 200
# The number of further starts of such searches.
_STARTS = 5
# Upper bound of the boxes of minimisers that are listed in a result.
_MOST_LISTED = 100


@dataclass(frozen=True)
class Minimiser:
    """A box that may contain global minimisers: for each name the lower and the upper end. Where `unique`, it contains
    one of them at most."""

    box: dict[str, tuple[Any, Any]]
    unique: bool


@dataclass(frozen=True)
class MinimumProof:
    """Proved bounds of the global minimum, None where there is none, whether they are `closed`, and the boxes that
    contain all global minimisers. `boxes` is the number of boxes that were looked at, and `left` the number of the
    minimisers' boxes that are not listed, 0 where all are."""

    low: float | None = field(metadata=MAY_BE_NULL)
    high: float | None = field(metadata=MAY_BE_NULL)
    closed: bool
    minimisers: list[Minimiser]
    left: int
    boxes: int


class ProvedEnd(NamedTuple):
    """The end of a search, its proof, and the message."""

    found: NewtonEnd
    proof: MinimumProof
    message: str


def prove(
    problem: OptimizationProblem, whole: Sequence[str], method: str, watch: ProgressCallback
) -> tuple[OptimizationProblem, ProvedEnd]:
    """Bound the global minimum of a problem whose names all have bounds; those in `whole` are whole numbers.

    Returns the problem in which the whole numbers are fixed at the best point, with the end of the search there. Raises
    BindingError for a name without bounds, and EvaluationError where control flow depends on what is varied.
    """
    # python-flint is needed only where something is to be proved.
    from gradcli.proofs.box_programs import BoxProgram
    from gradcli.proofs.feasible_points import Condition
    from gradcli.proofs.global_minimum import MinimumSearch

    np = arrays.numpy_namespace()
    objective, packing = problem.objective, problem.objective.packing
    is_whole = _is_whole(problem, whole)
    _check_bounds(problem)

    def boxed(program: Module, constants: Any) -> BoxProgram:
        try:
            return BoxProgram(program, packing.shapes, constants, problem.start)
        except NotRecordableError as error:
            raise EvaluationError(
                "a proof needs the same operations in the whole box, and here they depend on what is varied",
                hint="write where(condition, a, b) for an if",
                span=error.span,
                source=program.source,
            ) from None

    def improve(point: Any) -> tuple[Any, Any]:
        fixed = problem._replace(
            low=np.where(is_whole, np.rint(point), problem.low), high=np.where(is_whole, np.rint(point), problem.high)
        )
        begin = np.where(is_whole, np.rint(point), point)
        if not math.isfinite(objective.value_and_gradient(begin)[0]):
            return point, None
        try:
            ended = search(fixed, begin, method, _MOST_ITERATIONS, lambda _: None)
        except EvaluationError:
            return point, None
        if not conditions:
            return ended.point, None
        there = optimality.active(ended.gradient, problem.constraints, ended.point, fixed.low, fixed.high)
        multipliers = np.zeros(len(problem.constraints))
        multipliers[there.numbers] = there.multipliers
        # The Lagrangian is below the objective where inequalities have multipliers that are not negative.
        return ended.point, np.where(problem.constraints.is_equation, multipliers, np.maximum(multipliers, 0.0))

    program = objective.program.program
    residuals = [parse(each.residual) for each in problem.constraints.relations]
    conditions = [
        Condition(boxed(each, problem.constraints.constants), relation.is_equation)
        for each, relation in zip(residuals, problem.constraints.relations)
    ]

    def lagrangian(multipliers: Any) -> BoxProgram:
        ends = np.cumsum([each.program.count for each in conditions])[:-1]
        terms = [(np.array([objective.sign]), program), *zip(np.split(multipliers, ends), residuals)]
        return BoxProgram(
            program, packing.shapes, {**problem.constraints.constants, **objective.constants}, problem.start, terms
        )

    bounding = MinimumSearch(
        boxed(program, objective.constants), conditions, lagrangian, problem.low, problem.high, is_whole, objective.sign
    )

    def tell(boxes: int, high: float) -> None:
        watch(Iteration(boxes, objective.sign * high))

    spread = [problem.low + share * (problem.high - problem.low) for share in _halton(packing.size)]
    starts = [np.where(is_whole, np.rint(start), start) for start in (problem.start, *spread)]
    with limits.optional_budget():
        found = bounding.run(starts, improve, tell)
    proof = _proof(problem, found)
    point = starts[0] if found.point is None else found.point
    fixed = problem._replace(
        low=np.where(is_whole, point, problem.low), high=np.where(is_whole, point, problem.high), start=point
    )
    try:
        polished = search(fixed, point, method, _MOST_ITERATIONS, watch)
    except (EvaluationError, LimitError):
        polished = None
    value, gradient = objective.value(point), objective.value_and_gradient(point)[1]
    if polished is None or not polished.value <= value:
        polished = NewtonEnd(point, value, gradient, 0, False, "")
    return fixed, ProvedEnd(polished, proof, _message(problem, found, proof))


def _halton(size: int) -> Any:
    """Points spread over the unit cube by Halton's sequence, at which searches for lower points begin too."""
    np = arrays.numpy_namespace()
    primes: list[int] = []
    number = 2
    while len(primes) < size:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return np.array([[_radical_inverse(k, prime) for prime in primes] for k in range(1, _STARTS + 1)])


def _radical_inverse(number: int, base: int) -> float:
    """The digits of a number in a base, mirrored at the point."""
    found, place = 0.0, 1.0 / base
    while number:
        number, digit = divmod(number, base)
        found, place = found + digit * place, place / base
    return found


def _is_whole(problem: OptimizationProblem, whole: Sequence[str]) -> Any:
    """Whether each varied number is whole. Raises BindingError for a name that is not varied."""
    np = arrays.numpy_namespace()
    places = problem.objective.packing.places()
    found = np.zeros(problem.objective.packing.size, "bool")
    for name in whole:
        if name not in places:
            hint = did_you_mean(name, places, f"there are {', '.join(places)}")
            raise BindingError(f"'{name}' is to be a whole number, and is not varied", hint=hint)
        found[places[name]] = True
    return found


def _check_bounds(problem: OptimizationProblem) -> None:
    """Raise BindingError for a name without two finite bounds."""
    np = arrays.numpy_namespace()
    open_ = ~(np.isfinite(problem.low) & np.isfinite(problem.high))
    if open_.any():
        label = problem.objective.packing.labels()[int(open_.argmax())]
        raise BindingError(
            f"a proof needs bounds of every name, and '{label}' has none on one side",
            hint=f"--bounds {label.partition('[')[0]}=-10:10",
        )


def _proof(problem: OptimizationProblem, found: Any) -> MinimumProof:
    packing = problem.objective.packing
    ends = [_outward(found.low, -math.inf), _outward(found.high, math.inf)]
    if problem.objective.sign < 0:
        ends = [-end for end in reversed(ends)]
    told = [
        Minimiser(
            {name: (least, most) for (name, least), most in zip(packing.named(a).items(), packing.named(b).values())},
            unique,
        )
        for a, b, unique in found.minimisers[:_MOST_LISTED]
    ]
    if not told and math.isinf(found.high):
        return MinimumProof(None, None, found.ended is None, [], 0, found.boxes)
    low, high = (None if math.isinf(end) else end + 0.0 for end in ends)
    return MinimumProof(low, high, found.ended is None, told, len(found.minimisers) - len(told), found.boxes)


def _outward(end: float, side: float) -> float:
    """The next float towards `side`, so that its shortest decimal is a bound too; whole numbers below 2**53, which are
    printed exactly, stay."""
    is_exact = abs(end) < 2**53 and float(end).is_integer()
    return end if is_exact or math.isinf(end) else math.nextafter(end, side)


def _message(problem: OptimizationProblem, found: Any, proof: MinimumProof) -> str:
    what = "maximum" if problem.objective.sign < 0 else "minimum"
    if math.isinf(found.high) and not found.minimisers:
        where = "meets the conditions" if len(problem.constraints) else "has a value"
        return f"no point of the box {where}, which is proved"
    if found.ended is None:
        return f"the global {what}, which is proved"
    return f"the bounds of the global {what} are proved, but not closed: {found.ended}"
