"""`minimize --prove`: bounds of the global minimum in a box that are proved, and the boxes of its minimisers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.errors import BindingError, EvaluationError, LimitError, did_you_mean
from gradcli.language.syntax import parse
from gradcli.language.syntax.tree import Module
from gradcli.models.optima import optimality
from gradcli.models.optima.local_search import search
from gradcli.models.optima.newton import NewtonEnd
from gradcli.models.optima.optimization_problems import OptimizationProblem
from gradcli.models.results import MAY_BE_NULL, Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gradcli.proofs.box_programs import BoxProgram
    from gradcli.proofs.feasible_points import Condition
    from gradcli.proofs.global_minimum import MinimumSearch

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
    np = arrays.numpy_namespace()
    is_whole = _is_whole(problem, whole)
    _check_bounds(problem)
    proving = _Proving(problem, is_whole, method)
    objective = problem.objective

    def tell(boxes: int, high: float) -> None:
        watch(Iteration(boxes, objective.sign * high))

    spread = [problem.low + share * (problem.high - problem.low) for share in _halton(objective.packing.size)]
    starts = [np.where(is_whole, np.rint(start), start) for start in (problem.start, *spread)]
    bounding = proving.search_of_boxes()
    with limits.optional_budget():
        found = bounding.run(starts, proving.improved, tell)
    proof = _proof(problem, found)
    fixed = proving.fixed_at(starts[0] if found.point is None else found.point)
    return fixed, ProvedEnd(_polished(fixed, method, watch), proof, _message(problem, found, proof))


class _Proving:
    """What a proof needs of a problem: its programs over boxes, and searches for lower points in floats."""

    def __init__(self, problem: OptimizationProblem, is_whole: Any, method: str) -> None:
        self._problem = problem
        self._is_whole = is_whole
        self._method = method
        self._program = problem.objective.program.program
        self._residuals = [parse(each.residual) for each in problem.constraints.relations]
        self._conditions = self._conditions_over_boxes()

    def search_of_boxes(self) -> MinimumSearch:
        # python-flint is needed only where something is to be proved.
        from gradcli.proofs.global_minimum import MinimumSearch

        problem = self._problem
        return MinimumSearch(
            self._over_boxes(self._program, problem.objective.constants),
            self._conditions,
            self._lagrangian,
            problem.low,
            problem.high,
            self._is_whole,
            problem.objective.sign,
        )

    def fixed_at(self, point: Any) -> OptimizationProblem:
        """The problem whose whole numbers are those of a point, at which it starts."""
        np = arrays.numpy_namespace()
        start = np.where(self._is_whole, np.rint(point), point)
        return self._problem._replace(
            low=np.where(self._is_whole, start, self._problem.low),
            high=np.where(self._is_whole, start, self._problem.high),
            start=start,
        )

    def improved(self, point: Any) -> tuple[Any, Any]:
        """A point that is lower or the same, and the multipliers there, None without constraints."""
        fixed = self.fixed_at(point)
        if not math.isfinite(fixed.objective.value_and_gradient(fixed.start)[0]):
            return point, None
        try:
            ended = search(fixed, fixed.start, self._method, _MOST_ITERATIONS, lambda _: None)
        except EvaluationError:
            return point, None
        return ended.point, self._multipliers(fixed, ended) if self._conditions else None

    def _multipliers(self, fixed: OptimizationProblem, ended: NewtonEnd) -> Any:
        np = arrays.numpy_namespace()
        constraints = self._problem.constraints
        there = optimality.active(ended.gradient, constraints, ended.point, fixed.low, fixed.high)
        multipliers = np.zeros(len(constraints))
        multipliers[there.numbers] = there.multipliers
        # The Lagrangian is below the objective where inequalities have multipliers that are not negative.
        return np.where(constraints.is_equation, multipliers, np.maximum(multipliers, 0.0))

    def _conditions_over_boxes(self) -> list[Condition]:
        from gradcli.proofs.feasible_points import Condition

        constraints = self._problem.constraints
        return [
            Condition(self._over_boxes(residual, constraints.constants), relation.is_equation)
            for residual, relation in zip(self._residuals, constraints.relations)
        ]

    def _lagrangian(self, multipliers: Any) -> BoxProgram:
        np = arrays.numpy_namespace()
        objective, constraints = self._problem.objective, self._problem.constraints
        ends = np.cumsum([each.program.count for each in self._conditions])[:-1]
        terms = [
            (np.array([objective.sign]), self._program),
            *zip(np.split(multipliers, ends), self._residuals),
        ]
        return self._over_boxes(self._program, {**constraints.constants, **objective.constants}, terms)

    def _over_boxes(self, program: Module, constants: Any, terms: Sequence[tuple[Any, Module]] = ()) -> BoxProgram:
        from gradcli.proofs.box_programs import BoxProgram, needing_one_path

        with needing_one_path(program, "what is varied"):
            return BoxProgram(program, self._problem.objective.packing.shapes, constants, self._problem.start, terms)


def _polished(fixed: OptimizationProblem, method: str, watch: ProgressCallback) -> NewtonEnd:
    """The end of a search from the start of a problem, or the start itself where that finds nothing lower."""
    objective, start = fixed.objective, fixed.start
    value, gradient = objective.value(start), objective.value_and_gradient(start)[1]
    try:
        found = search(fixed, start, method, _MOST_ITERATIONS, watch)
    except (EvaluationError, LimitError):
        found = None
    return found if found is not None and found.value <= value else NewtonEnd(start, value, gradient, 0, False, "")


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
