"""`minimize`: the minimum of a program by the method that suits it, from one start or, for a global minimum, from many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from gradcli import arrays, limits
from gradcli.compiled.compiling import compile
from gradcli.compiled.programs import CompiledProgram
from gradcli.errors import BindingError, LimitError, UsageError, as_bool, did_you_mean, expect, expect_callable
from gradcli.evaluation import python_values
from gradcli.io.text_tables import Table, members, number_text
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import checked_arguments, complex_unknowns, dense_matrices, results
from gradcli.models.data import DataTable, table_of
from gradcli.models.optima import optimality, proved_minima, scipy_methods
from gradcli.models.optima.constraints import Constraints
from gradcli.models.optima.local_search import search
from gradcli.models.optima.newton import NewtonEnd
from gradcli.models.optima.objectives import MOST_DENSE, Objective, is_sparse
from gradcli.models.optima.optimality import RESIDUAL_TOLERANCE, Active, infeasible
from gradcli.models.optima.optimization_problems import MinimizeRequest, OptimizationProblem, check_start, pose
from gradcli.models.optima.proved_minima import MinimumProof, ProvedEnd
from gradcli.models.optima.training import STOCHASTIC, Training, of_training, train
from gradcli.models.optima.verdicts import Verdict, verdict_of
from gradcli.models.packing import Bounds, Packing
from gradcli.models.results import MAY_BE_NULL, Iteration, ProgressCallback, Reported
from gradcli.named_tuples import NamedTuple

METHODS = ("auto", "newton", *scipy_methods.METHODS, *STOCHASTIC)
# The default upper bound of iterations.
_MOST = 1_000
# Upper bound of the starts of a global search: more would exceed the limit of steps.
_MOST_STARTS = 10_000
# The maximum number of active constraints in a table.
_MOST_ROWS = 20
# The default number of starts: `_STARTS` and `_FOR_EACH` per variable, at most `_MOST_SEARCHES`.
_STARTS, _FOR_EACH, _MOST_SEARCHES = 20, 10, 200
# Upper bound of the iterations of each local search.
_SHORT = 200
# Relative distance of points and values beyond which minima count as different.
_APART = 1e-5
# Without bounds, starts are drawn within this multiple of max(1, abs(start)) of the given start.
_AROUND = 10.0
# The largest offset, as a share of the range, from a point without a gradient to the start of a search.
_ASIDE = 1e-4
# Where more than this share of the searches ended at minima that no other search found, many minima are likely to be
# unseen (I. J. Good, "The population frequencies of species", Biometrika 40 (1953) 237).
_UNSEEN = 0.1
# Upper bound of the variables: in more dimensions, sampled points are too sparse to be useful.
_MOST_VARIABLES = 50
# The number of sampled points, and of nearest neighbours that must all be higher around a candidate.
_SAMPLES, _NEAREST = 4_000, 8
# The mutation strategies of SciPy's differential evolution: the first explores more widely, the second is faster in
# many dimensions.
_STRATEGIES = ("currenttobest1bin", "best1bin")
# Points of a population per variable, and upper bounds of the generations and of the evaluated points of one evolution.
_SAMPLES_FOR_EACH, _GENERATIONS, _MOST_POINTS = 15, 1_000, 150_000
# The value of points that violate constraints, above all other values.
_FORBIDDEN = 1e200


@dataclass(frozen=True)
class Minimum(Reported):
    """The lowest point that was found, with the fields of `gradcli minimize --json`.

    `point` is by name. `gradient_norm` is the norm of the gradient that active bounds and constraints leave.
    `eigenvalues` holds the smallest (`min`) and the largest (`max`) eigenvalue of the Hessian, or of the Hessian of the
    Lagrangian where constraints are active; None for an unknown one. `kind` is "minimum" ("maximum" with `max=True`),
    "saddle", "flat", "bound", "kink" where the objective is not smooth, or None where the gradient does not vanish.

    `multipliers` are by the text of each active constraint and bound, `sensitivity` is by constant, `minima` is the
    number of different minima that a global search found, `proof` has the proved bounds, and `left_out` the number of
    data rows that lack a number. What was not asked for is None.
    """

    value: float
    point: dict[str, Any]
    gradient_norm: float
    eigenvalues: dict[str, float | None] | None = field(metadata=MAY_BE_NULL)
    kind: str | None = field(metadata=MAY_BE_NULL)
    multipliers: dict[str, float] | None = field(metadata=MAY_BE_NULL)
    sensitivity: dict[str, Sensitivity] | None = field(metadata=MAY_BE_NULL)
    minima: int | None
    proof: MinimumProof | None
    left_out: int | None
    iterations: int
    evaluations: int
    converged: bool
    message: str

    def report(self) -> Sequence[Table]:
        return _tables(self)


def minimize(
    program: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    data: Any = None,
    wrt: Sequence[str] | str | None = None,
    const: Sequence[str] | str | None = None,
    method: str = "auto",
    max: bool = False,
    bounds: Mapping[str, Bounds] | Sequence[str] | str | None = None,
    subject_to: Sequence[str] | str = (),
    global_: bool = False,
    starts: int | None = None,
    prove: bool = False,
    integer: Sequence[str] | str = (),
    seed: int = 0,
    sensitivity: Sequence[str] | str = (),
    steps: int | None = None,
    lr: float | None = None,
    momentum: float | None = None,
    batch: int | None = None,
    epochs: int | None = None,
    schedule: str | None = None,
    trace: str | None = None,
    plot: str | None = None,
    watch: ProgressCallback | None = None,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> Minimum:
    """The minimum of a scalar program from a start, or with `max` its maximum, as `gradcli minimize` finds it.

    The start and the constants are given by name, in `values` or as keyword arguments. A complex number counts as two
    variables, its parts, which are called real(z) and imag(z) in `bounds`. The names `wrt` are varied, or
    all names except those in `const` and `sensitivity` and the columns of `data`, a table as `gradcli.fit` takes it.
    `bounds` are texts such as "x=0:1,y=0:" or pairs by name, `subject_to` texts such as "x**2 + y <= 1", also with `>=`
    and `=`. With `global_`, many `starts` are tried, drawn with `seed`; a number of starts implies it. `watch` is
    called with each iteration; `trace` and `plot` are the paths of a table of the iterations and of a picture of the
    objective.

    With `prove`, bounds of the global minimum between the `bounds` of all names are proved, and the boxes found that
    contain all its minimisers; the names in `integer` are then whole numbers.

    `steps` is the largest number of iterations. For "adam", "sgd" and "rmsprop" it is their exact number; alternatively
    `epochs` counts passes over the rows of the data, `batch` of them at a time. The learning rate `lr` follows a
    `schedule`, and `momentum` is that of the method.

    Where the search fails, the result is the best point, `converged` is False, and `message` says why. A call may take
    `max_steps` steps and compute `max_elements` array elements, as many for each row of the data. Raises what compiling
    and evaluating raise, BindingError for a name without a value and for a start outside of its bounds, EvaluationError
    where there is no number at the start, and UsageError for options that contradict each other.
    """
    if watch is not None:
        expect_callable(watch, "what watches the iterations is a function")
    results.check_paths(trace, plot)
    expect(program, str, "a program is a text")
    training = Training(method, steps, lr, momentum, batch, epochs, schedule, seed)
    checked_arguments.one_of(method, METHODS, "method")
    training.check()
    chosen = _Search(
        method,
        steps or _MOST,
        _number_of_starts(starts),
        as_bool(global_, "global_") or starts is not None,
        as_bool(prove, "prove"),
        checked_arguments.names(integer, "'integer'"),
        training,
    )
    chosen.check()
    given = {**checked_arguments.mapping_by_name(values, "'values'"), **named}
    of_complex = [name for name, value in given.items() if arrays.is_complex(python_values.value(value))]

    def names_in_parts(names: Any, label: str) -> list[str]:
        return complex_unknowns.names_in_parts(checked_arguments.names(names, label), of_complex)

    def compiled(text: str) -> CompiledProgram:
        made = compile(text, max_steps=max_steps, max_elements=max_elements)
        if not of_complex:
            return made
        return CompiledProgram(complex_unknowns.of_parts(made.program, of_complex), max_steps, max_elements)

    constants = names_in_parts(sensitivity, "'sensitivity'")
    request = MinimizeRequest(
        program,
        complex_unknowns.in_parts(given, of_complex),
        None if wrt is None else names_in_parts(wrt, "'wrt'"),
        [*dict.fromkeys([*names_in_parts(const, "'const'"), *constants])],
        data if isinstance(data, DataTable) else table_of(data),
        bounds,
        checked_arguments.names(subject_to, "'subject_to'"),
        as_bool(max, "max"),
        chosen.is_global,
    )
    problem = pose(request, compiled, (max_steps, max_elements))
    _check_constants(constants, request.values)
    history = results.History(kept=trace is not None)
    watchers = [
        each for each in (history if trace is not None or plot is not None else None, watch) if each is not None
    ]

    def watched(iteration: Iteration) -> None:
        for each in watchers:
            each(iteration)

    with limits.within(*problem.limits), arrays.quiet():
        result = chosen.run(problem, constants, watched)
    if trace is not None:
        history.save_table(trace, problem.objective.packing)
    if plot is not None:
        history.save_curve(plot, program)
    return replace(result, point=complex_unknowns.joined(result.point, of_complex)) if of_complex else result


def _number_of_starts(starts: Any) -> int | None:
    if starts is None:
        return None
    number = checked_arguments.integer(starts, "the number of starts", 1)
    if number > _MOST_STARTS:
        raise UsageError(f"the number of starts is {number}, and at most {_MOST_STARTS:,}")
    return number


def _check_constants(constants: Sequence[str], values: Mapping[str, Any]) -> None:
    """Raise BindingError for a constant without a value, to which the sensitivity is asked for."""
    for name in constants:
        if name not in values:
            hint = did_you_mean(name, values, f"give it a value, as in {name}=1")
            raise BindingError(f"the sensitivity to '{name}' is asked for, which has no value", hint=hint)


class _Search(NamedTuple):
    """How the minimum is searched for, as the caller chose it."""

    method: str
    steps: int
    starts: int | None
    is_global: bool
    is_proved: bool
    whole: Sequence[str]
    training: Training

    def check(self) -> None:
        """Raise UsageError for options that contradict each other."""
        is_stochastic = self.method in STOCHASTIC
        if self.is_global and is_stochastic:
            raise UsageError(f"--global and --method {self.method} contradict each other", hint="leave out one of them")
        if self.is_proved and (self.is_global or is_stochastic):
            other = "--global" if self.is_global else f"--method {self.method}"
            raise UsageError(f"--prove and {other} contradict each other", hint="--prove looks at the whole box")
        if self.whole and not self.is_proved:
            raise UsageError("whole numbers are for --prove", hint="add --prove, with --bounds of all names")

    def run(self, problem: OptimizationProblem, constants: Sequence[str], watch: ProgressCallback) -> Minimum:
        if self.method in STOCHASTIC:
            return _result(problem, train(problem, self.training, watch), constants, None, self.training, None)
        if self.is_proved:
            fixed, proved = proved_minima.prove(problem, self.whole, self.method, watch)
            return _result(fixed, proved.found, constants, None, self.training, proved)
        if self.is_global:
            ends = _search_globally(problem, self.method, self.steps, self.starts, self.training.seed, watch)
            return _result(problem, ends.lowest, constants, ends, self.training, None)
        found = search(problem, problem.start, self.method, self.steps, watch)
        return _result(problem, found, constants, None, self.training, None)


def _result(
    problem: OptimizationProblem,
    found: NewtonEnd,
    constants: Sequence[str],
    everywhere: GlobalEnd | None,
    training: Training,
    proved: ProvedEnd | None,
) -> Minimum:
    """The result for the point at which the search ended."""
    np = arrays.numpy_namespace()
    objective, constraints, x = problem.objective, problem.constraints, found.point
    evaluations = objective.evaluations
    verdict = verdict_of(problem, found)
    there = verdict.active
    trained = of_training(found, verdict) if training.method in STOCHASTIC else None
    converged, message = trained or (verdict.converged, verdict.message)
    if converged and everywhere is not None:
        message = f"{message}: {everywhere.told(objective.sign < 0)}"
    if proved is not None:
        converged, message = proved.proof.closed and bool(proved.proof.minimisers), proved.message
    by_products = None if len(constraints) or verdict.kind == "kink" else objective
    eigenvalues = optimality.eigenvalues(verdict.hessian, by_products, x)
    if objective.sign < 0:
        least, most = eigenvalues["min"], eigenvalues["max"]
        eigenvalues = {"min": None if most is None else -most, "max": None if least is None else -least}
    moved = sensitivities(problem, x, verdict, constants) if constants and converged else None
    return Minimum(
        objective.sign * found.value,
        objective.packing.named(x),
        float(np.linalg.norm(there.slope)),
        eigenvalues,
        verdict.kind,
        _multipliers(problem, there, x),
        moved,
        None if everywhere is None else everywhere.minima,
        None if proved is None else proved.proof,
        problem.left_out or None,
        found.iterations,
        evaluations,
        converged,
        message,
    )


def _multipliers(problem: OptimizationProblem, there: optimality.Active, x: Any) -> dict[str, float] | None:
    """The multipliers by the text of each active constraint and bound; None where there are no constraints and
    bounds."""
    np = arrays.numpy_namespace()
    if not len(problem.constraints) and not (np.isfinite(problem.low) | np.isfinite(problem.high)).any():
        return None
    found = {problem.constraints.labels[n]: float(m) for n, m in zip(there.numbers, there.multipliers)}
    labels = problem.objective.packing.labels() if there.fixed.any() else []
    for place in np.flatnonzero(there.fixed):
        low, high = float(problem.low[place]), float(problem.high[place])
        bound = f"= {low}" if low == high else f">= {low}" if x[place] <= low else f"<= {high}"
        found[f"{labels[place]} {bound}"] = float(there.of_bounds[place])
    return found


# --- the derivatives of a minimum by constants

_SINGULAR = "the minimum is not one point that moves smoothly with the constants: the Hessian is singular there"
# A multiplier times the norm of its normal counts as 0 up to this share of the first gradient.
_NO_FORCE = 1e-10


@dataclass(frozen=True)
class Sensitivity:
    """The derivatives by a constant: `value` of the minimal value, a number or an array of the constant's shape, and
    `point` by name of each variable, of its shape followed by the constant's. They are None where they do not exist,
    with the `reason`."""

    value: Any = field(metadata=MAY_BE_NULL)
    point: dict[str, Any]
    reason: str | None = None


def sensitivities(posed: OptimizationProblem, x: Any, verdict: Verdict, names: Sequence[str]) -> dict[str, Sensitivity]:
    """The derivatives of a minimum by the named constants, or the reasons why they do not exist: the linear system is
    singular, the active constraints depend on the direction of the change, or second derivatives are not known."""
    np = arrays.numpy_namespace()
    objective, constraints, there = posed.objective, posed.constraints, verdict.active
    varied = objective.packing
    constants = Packing.of({name: constraints.constants[name] for name in names})
    together = Packing({**varied.shapes, **constants.shapes})
    weights = np.zeros(len(constraints))
    weights[there.numbers] = there.multipliers
    reason = _obstacle(verdict)
    if reason is not None:
        return {name: Sensitivity(None, dict.fromkeys(varied.shapes), reason) for name in names}
    first, mixed = _by_constants(objective, varied, constants, x)
    if len(there.numbers):
        first = first + weights @ constraints.jacobian(x, constants)
        mixed = mixed + constraints.hessian(x, weights, together)[: varied.size, varied.size :]
    touched = _touched(posed, x, there)
    moved = None if touched else _moved(verdict.hessian, constraints, x, there, mixed, constants)
    reason = None if moved is not None else touched or _SINGULAR
    places = constants.places()
    return {
        name: Sensitivity(
            # At a weakly active constraint the value is still differentiable, and only the point is not.
            _shaped(objective.sign * first[places[name]], shape) if reason != _SINGULAR else None,
            {
                one: None if moved is None else _shaped(moved[place, places[name]], (*varied.shapes[one], *shape))
                for one, place in varied.places().items()
            },
            reason,
        )
        for name, shape in constants.shapes.items()
    }


def _obstacle(verdict: Verdict) -> str | None:
    if verdict.kind == "kink":
        return "the objective is not smooth at the minimum"
    if verdict.hessian is None:
        return "the second derivatives are not known, and with them how the minimum moves"
    return _SINGULAR if verdict.is_flat else None


def _touched(posed: OptimizationProblem, x: Any, there: Active) -> str | None:
    """Why the point has only one-sided derivatives: a constraint or bound is active with a multiplier of 0. None where
    there is none."""
    np = arrays.numpy_namespace()
    nothing = _NO_FORCE * posed.objective.steepest
    forces = abs(there.multipliers) * np.linalg.norm(there.normals, axis=1)
    weak = (forces <= nothing) & ~posed.constraints.is_equation[there.numbers]
    if weak.any():
        label = posed.constraints.labels[there.numbers[int(weak.argmax())]]
        return f"the constraint '{label}' is only touched: its multiplier is 0"
    at_bound = ((x <= posed.low) | (x >= posed.high)) & (posed.low < posed.high) & (abs(there.of_bounds) <= nothing)
    if at_bound.any():
        label = posed.objective.packing.labels()[int(at_bound.argmax())]
        return f"the bound of {label} is only touched: its multiplier is 0"
    return None


def _shaped(numbers: Any, shape: tuple[int, ...]) -> Any:
    # Adding 0.0 turns -0.0 into 0.0.
    return numbers.reshape(shape) + 0.0 if shape else float(numbers.ravel()[0]) + 0.0


def _by_constants(objective: Objective, varied: Packing, constants: Packing, x: Any) -> tuple[Any, Any]:
    """The gradient `[c]` of the objective by the constants, and its mixed second derivatives `[n, c]` by variables and
    constants."""
    np = arrays.numpy_namespace()
    values, known = objective.values(x), objective.program.inputs
    names = [name for name in constants.shapes if name in known]
    given = {name: value for name, value in values.items() if name in known}
    _, found = objective.program.value_and_grad(given, names)
    first = objective.sign * constants.flat({name: found.get(name) for name in constants.shapes})
    mixed = np.zeros((varied.size, constants.size))
    if names:
        rows, columns = varied.places(), constants.places()
        both = [*(name for name in varied.shapes if name in known), *names]
        # A dense Hessian would also hold the second derivatives by the variables, n² elements.
        sparse = varied.size > MOST_DENSE
        for key, block in objective.program.hessian(given, both, sparse=sparse).items():
            one, other = key.split(",")
            if block is None or one not in rows or other not in columns:
                continue
            place, along = rows[one], columns[other]
            if sparse:
                mixed[place.start + block.row, along.start + block.column] = block.value
            else:
                mixed[place, along] = np.reshape(block, (place.stop - place.start, along.stop - along.start))
    return first, objective.sign * mixed


def _moved(hessian: Any, constraints: Constraints, x: Any, there: Active, mixed: Any, constants: Packing) -> Any:
    """The derivatives `[n, c]` of the point by the constants; None where the linear system for them is singular."""
    np = arrays.numpy_namespace()
    free, needed = ~there.fixed, there.holding
    moved = np.zeros_like(mixed)
    if is_sparse(hessian):
        from scipy.sparse.linalg import splu

        try:
            moved[free] = -splu(hessian[free][:, free].tocsc()).solve(mixed[free])
        except RuntimeError:
            return None
        return moved
    rows = there.normals[needed][:, free]
    matrix = dense_matrices.with_constraints(hessian[np.ix_(free, free)], rows)
    shifted = constraints.jacobian(x, constants)[there.numbers[needed]] if len(rows) else np.zeros((0, constants.size))
    right = -np.concatenate([mixed[free], shifted])
    if not len(matrix):
        return moved
    # Equilibrate the matrix, so that the units of the variables do not affect its condition number.
    sizes = np.sqrt(np.maximum(abs(matrix).max(axis=0), 1e-300))
    scaled = matrix / sizes[:, None] / sizes
    if dense_matrices.condition_number(scaled) > 1e13:
        return None
    moved[free] = (dense_matrices.solve(scaled, right / sizes[:, None]) / sizes[:, None])[: int(free.sum())]
    return moved


def _tables(found: Any) -> list[Table]:
    found_tables = [
        members({"value": found.value, **_rows_of_point(found.point)}),
        *(_of_proof(found.proof) if found.proof is not None else ()),
        members(
            {
                "gradient norm": found.gradient_norm,
                "eigenvalues": _range(found.eigenvalues),
                "kind": found.kind,
                "minima": found.minima,
                "rows left out": found.left_out,
                "iterations": found.iterations,
                "evaluations": found.evaluations,
                "ended": found.message,
            }
        ),
    ]
    if found.multipliers:
        rows = [(text, number_text(m)) for text, m in islice(found.multipliers.items(), _MOST_ROWS)]
        if len(found.multipliers) > len(rows):
            rows.append(("…", f"{len(found.multipliers) - len(rows):,} more"))
        found_tables.append(Table(("active", "multiplier"), rows))
    for name, moved in (found.sensitivity or {}).items():
        derivatives = {"value": moved.value} if moved.value is not None else {}
        derivatives |= {n: d for n, d in moved.point.items() if d is not None}
        rows = [(n, number_text(d)) for n, d in derivatives.items()]
        if moved.reason is not None:
            rows.append(("point" if rows else "all", f"none: {moved.reason}"))
        found_tables.append(Table(("of", f"derivative by {name}"), rows))
    return found_tables


def _of_proof(proof: Any) -> list[Table]:
    """The proved bounds, and a row for each box that may contain global minimisers."""
    ends = [
        number_text(end) if end is not None else infinite
        for end, infinite in ((proof.low, "-inf"), (proof.high, "inf"))
    ]
    is_empty = proof.low is None and proof.high is None and not proof.minimisers
    bounds = members({"proved": None if is_empty else f"{ends[0]} to {ends[1]}", "boxes": proof.boxes})
    rows = []
    for minimiser in islice(proof.minimisers, _MOST_ROWS):
        parts = [f"{number_text(low)} to {number_text(high)}" for low, high in minimiser.box.values()]
        rows.append((*parts, "at most one" if minimiser.unique else "perhaps more"))
    left = len(proof.minimisers) - len(rows) + proof.left
    if not rows:
        return [bounds]
    names = [*proof.minimisers[0].box]
    if left:
        rows.append(("…", *[""] * (len(names) - 1), f"{left:,} more boxes"))
    return [bounds, Table((*names, "minimisers"), rows)]


def _rows_of_point(point: Mapping[str, Any]) -> dict[str, Any]:
    """The point by names; a variable called `value` gets a space, because the table has a row of that name."""
    return {("value " if name == "value" else name): value for name, value in point.items()}


def _range(eigenvalues: Mapping[str, float | None] | None) -> str | None:
    if eigenvalues is None:
        return None
    ends = ["unknown" if end is None else f"{end:.6g}" for end in eigenvalues.values()]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


class GlobalEnd(NamedTuple):
    """The lowest point that was found, the numbers of different `minima`, of `searches`, and of minima that only one
    search found (`alone`), and whether a limit of the run ended the global search early (`is_cut`)."""

    lowest: NewtonEnd
    minima: int
    searches: int
    alone: int
    is_cut: bool

    def told(self, is_maximum: bool) -> str:
        """A message on how likely a lower minimum is."""
        lowest, lower = ("highest", "higher") if is_maximum else ("lowest", "lower")
        which = "the only one" if self.minima == 1 else f"the {lowest} of {self.minima:,}"
        found = f"{which} that {self.searches:,} searches found"
        if self.is_cut:
            return f"{found} before a limit was met: there may be a {lower} one"
        if self.alone > max(1.0, _UNSEEN * self.searches):
            return f"{found}, {self.alone:,} of them once: there are more, and there may be a {lower} one"
        return f"{found}, which does not prove that there is no {lower} one"


def _search_globally(
    posed: OptimizationProblem, method: str, most: int, starts: int | None, seed: int, watch: ProgressCallback
) -> GlobalEnd:
    """The lowest minimum that local searches find from `starts` starts and from the results of differential evolution.
    The starts are the given one, sampled points that are lower than their neighbours, and a Latin hypercube between the
    bounds or, without bounds, around the given start. A search that ended lower without converging is continued, and its
    end replaces the minimum."""
    ends: list[NewtonEnd] = []
    found: list[NewtonEnd] = []
    is_cut = False

    def search_from(start: Any, longest: int) -> None:
        if math.isfinite(posed.objective.value_and_gradient(start)[0]):
            ended = search(posed, start, method, longest, watch)
            if verdict_of(posed, ended).converged:
                found.append(ended)
            ends.append(ended)

    search_from(posed.start, most)
    population, others = _starts(posed, starts, seed)
    for further in (lambda: others, lambda: _evolved(posed, population, seed, watch)):
        try:
            # At a limit, the minima found so far are reported: optional_budget leaves a part of the budget for
            # their verdicts.
            with limits.optional_budget():
                for start in further():
                    search_from(start, min(most, _SHORT))
        except LimitError:
            is_cut = True
    if not ends:
        check_start(posed.objective, posed.start)
    failed = [end for end in ends if not any(end is each for each in found)]
    minima = _distinct(found)
    lowest = minima[0][0] if minima else failed[0]
    spent = sum(end.iterations for end in ends)
    # A search that ended below all minima without converging is continued; it may show that there is no lowest minimum.
    deeper = [end for end in failed if _is_below(posed, end, lowest)]
    if deeper:
        deepest = min(deeper, key=lambda end: end.value)
        ended = search(posed, deepest.point, method, most, watch) if math.isfinite(deepest.value) else deepest
        spent += ended.iterations
        lowest = ended if _is_below(posed, ended, lowest) else deepest
        if verdict_of(posed, lowest).converged:
            minima.append([lowest])
    alone = sum(len(ends) == 1 for ends in minima)
    return GlobalEnd(lowest._replace(iterations=spent), len(minima), len(ends), alone, is_cut)


def _distinct(found: Sequence[NewtonEnd]) -> list[list[NewtonEnd]]:
    """The ends of searches that are the same minimum together, the lowest minimum first."""
    minima: list[list[NewtonEnd]] = []
    for each in sorted(found, key=lambda each: each.value):
        known = next((ends for ends in minima if _is_same(each, ends[0])), None)
        if known is None:
            minima.append([each])
        else:
            known.append(each)
    return minima


def _is_below(posed: OptimizationProblem, end: NewtonEnd, lowest: NewtonEnd) -> bool:
    """Return whether `end` is lower than `lowest` by more than `_APART`, and violates no constraint."""
    if not end.value < lowest.value - _APART * (1.0 + abs(lowest.value)):
        return False
    return not len(posed.constraints) or not infeasible(posed.constraints, end.point).any()


def _is_same(one: NewtonEnd, other: NewtonEnd) -> bool:
    near = abs(one.point - other.point) <= _APART * (1.0 + abs(one.point))
    return bool(near.all()) and abs(one.value - other.value) <= _APART * (1.0 + abs(one.value))


def _starts(posed: OptimizationProblem, count: int | None, seed: int) -> tuple[Population | None, Any]:
    """The population between the bounds, None for too many variables, and the starts `[k, n]` in addition to the given
    one."""
    np = arrays.numpy_namespace()
    size = len(posed.start)
    left = (min(_MOST_SEARCHES, _STARTS + _FOR_EACH * size) if count is None else count) - 1
    reach = _AROUND * np.maximum(1.0, abs(posed.start))
    low = np.where(np.isfinite(posed.low), posed.low, np.minimum(posed.start, posed.high) - reach)
    high = np.where(np.isfinite(posed.high), posed.high, np.maximum(posed.start, low) + reach)
    generator = np.random.default_rng(seed)
    population = Population(posed, low, high) if size <= _MOST_VARIABLES else None
    low_points = np.zeros((0, size)) if population is None else population.low_points(left // 2, generator)
    left -= len(low_points)
    # A Latin hypercube: each variable has one point in each of `left` equal parts of its range.
    parts = np.stack([generator.permutation(left) for _ in range(size)], axis=1)
    cube = low + (parts + generator.random((left, size))) / max(left, 1) * (high - low)
    return population, np.concatenate([low_points, cube])


def _evolved(
    posed: OptimizationProblem, population: Population | None, seed: int, watch: ProgressCallback
) -> Iterator[Any]:
    """The results of differential evolution, slightly moved where a kink leaves them without a gradient."""
    np = arrays.numpy_namespace()
    if population is None:
        return
    generator = np.random.default_rng(seed)
    for point in population.evolved(seed, watch):
        is_smooth = np.isfinite(posed.objective.value_and_gradient(point)[1]).all()
        aside = _ASIDE * (generator.random(len(point)) - 0.5) * (population.high - population.low)
        yield point if is_smooth else np.clip(point + aside, population.low, population.high)


class Population:
    """Evaluates an objective at many points between `low` and `high`, and keeps the lowest one."""

    def __init__(self, posed: OptimizationProblem, low: Any, high: Any) -> None:
        self._posed, self.low, self.high = posed, low, high
        self.lowest: Any = None
        self._least = math.inf

    def values(self, points: Any) -> Any:
        """The values `[k]` at points `[k, n]`, infinite where there are none. Where constraints are violated, a value
        is very large and depends on the violation only."""
        np = arrays.numpy_namespace()
        found = self._posed.objective.values_at(points)
        if len(self._posed.constraints):
            residuals = self._posed.constraints.residuals_at(points)
            violated = np.nan_to_num(self._posed.constraints.violation(residuals), nan=np.inf).sum(axis=1)
            found = np.where(violated > RESIDUAL_TOLERANCE, _FORBIDDEN * (1.0 + np.log1p(violated)), found)
        place = int(found.argmin())
        if found[place] < self._least:
            self.lowest, self._least = points[place].copy(), float(found[place])
        return found

    def low_points(self, count: int, generator: Any) -> Any:
        """At most `count` of the lowest sampled points that are lower than all their nearest neighbours, `[k, n]`."""
        from scipy.spatial import KDTree

        np = arrays.numpy_namespace()
        shares = generator.random((_SAMPLES, len(self.low)))
        points = self.low + shares * (self.high - self.low)
        try:
            with limits.optional_budget():
                values = self.values(points)
        except LimitError:
            return points[:0]
        near = KDTree(shares).query(shares, _NEAREST + 1)[1][:, 1:]
        is_low = np.isfinite(values) & (values[:, None] <= values[near]).all(axis=1)
        order = np.argsort(values[is_low], kind="stable")
        return points[is_low][order[:count]]

    def evolved(self, seed: int, watch: ProgressCallback) -> list[Any]:
        """The lowest point that differential evolution finds, for each strategy."""
        found = []
        for strategy in _STRATEGIES:
            self.lowest, self._least = None, math.inf
            try:
                with limits.optional_budget():
                    self._evolve(strategy, seed, watch)
            except LimitError:
                # The best point so far is a start as well.
                pass
            if self.lowest is not None:
                found.append(self.lowest)
        return found

    def _evolve(self, strategy: str, seed: int, watch: ProgressCallback) -> None:
        from scipy.optimize import differential_evolution

        np = arrays.numpy_namespace()
        sign = self._posed.objective.sign
        generations = 0

        def told(_point: Any, _convergence: float = 0.0) -> bool:
            nonlocal generations
            generations += 1
            watch(Iteration(generations, sign * self._least, None, self.lowest))
            # Returning True ends the evolution, where no point has a finite value.
            return self.lowest is None

        with np.errstate(all="ignore"):
            differential_evolution(
                lambda columns: self.values(np.ascontiguousarray(columns.T)),
                np.stack([self.low, self.high], axis=1),
                strategy=strategy,
                popsize=_SAMPLES_FOR_EACH,
                maxiter=min(_GENERATIONS, _MOST_POINTS // (_SAMPLES_FOR_EACH * len(self.low))),
                rng=np.random.default_rng(seed),
                callback=told,
                polish=False,
                vectorized=True,
                updating="deferred",
            )
