"""From a request of `minimize` to an optimisation problem: an objective of one vector within bounds and constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.compiled.programs import CompiledProgram
from gradcli.errors import BindingError, DifferentiationError, EvaluationError, UnknownNameError, did_you_mean
from gradcli.evaluation import python_values, session
from gradcli.language.names import scope
from gradcli.models.data import DataTable
from gradcli.models.optima.bounds import bounds_of
from gradcli.models.optima.constraints import Constraints, relations
from gradcli.models.optima.objectives import Objective
from gradcli.models.packing import Bounds, Packing
from gradcli.named_tuples import NamedTuple


class MinimizeRequest(NamedTuple):
    """The input of `minimize`: the `values` of names, those that are `varied` (None for all but the `constant` ones),
    the `table` of data, bounds and constraints. Where it `is_global`, the objective need not be finite at the start."""

    text: str
    values: Mapping[str, Any]
    varied: Sequence[str] | None
    constant: Sequence[str]
    table: DataTable
    bounds: Mapping[str, Bounds] | Sequence[str] | str | None
    subject_to: Sequence[str]
    is_maximum: bool
    is_global: bool


class OptimizationProblem(NamedTuple):
    """An optimisation problem: an objective to minimise from `start` `[n]` between `low` and `high` `[n]`.

    `rows` is the number of complete rows of the data, `left_out` that of the others, and `by_row` are the names of
    constants with one element per row. `limits` are the steps and the array elements that a search may take, the latter
    multiplied by the number of rows.
    """

    objective: Objective
    constraints: Constraints
    start: Any
    low: Any
    high: Any
    rows: int
    by_row: Sequence[str]
    left_out: int
    limits: tuple[int, int]


def pose(
    asked: MinimizeRequest, compile: Callable[[str], CompiledProgram], budget: tuple[int, int]
) -> OptimizationProblem:
    """The problem that a request poses. Raises what compiling and evaluating raise, BindingError for a name without a
    value, a name that nothing reads, and a start outside of its bounds, and EvaluationError where the objective is not
    finite at the start."""
    program = compile(asked.text)
    values = {name: _number(name, asked.values[name]) for name in python_values.names_tuple([*asked.values])}
    compared = [relation for text in asked.subject_to for relation in relations(text)]
    varied = _varied(asked, values)
    packing = Packing.of({name: values[name] for name in varied})
    probe = Constraints(compared, packing, {}, compile)
    own = scope.free_names(program.program)
    reads = [*program.inputs, *(n for n in probe.inputs if n not in program.inputs)]
    for name in values:
        if name in asked.table.columns:
            raise BindingError(f"'{name}' is given a value and is a column of the data", hint=f"leave out {name}=…")
    needed = [n for n in reads if n in asked.table.columns]
    data = asked.table.taken(needed)
    constants = {**{n: v for n, v in values.items() if n not in varied}, **data.columns}
    _check_names(asked, program, reads, {*values, *data.columns})
    used = {name: value for name, value in constants.items() if name in own}
    objective = Objective(program, packing, used, -1.0 if asked.is_maximum else 1.0)
    constraints = Constraints(compared, packing, constants, compile)
    start = packing.flat(values)
    low, high = packing.bounds(bounds_of(asked.bounds))
    outside = (start < low) | (start > high)
    if outside.any():
        place = int(outside.argmax())
        raise BindingError(
            f"the start {packing.labels()[place]}={float(start[place])} is outside of its bounds, "
            f"{float(low[place])} to {float(high[place])}",
            hint="start within them",
        )
    check_start(objective, start, may_fail=asked.is_global)
    constraints.begin(start)
    rows = len(data.rows) or max((arrays.shape(v)[0] for v in used.values() if arrays.shape(v)), default=0)
    by_row = [name for name, value in used.items() if arrays.shape(value)[:1] == (rows,)]
    most = budget[0], budget[1] * max(1, len(data.rows))
    return OptimizationProblem(objective, constraints, start, low, high, rows, by_row, data.left_out, most)


def _number(name: str, value: Any) -> Any:
    found = arrays.on_host(arrays.astype(python_values.value(value), "float64"))
    if not arrays.numpy_namespace().isfinite(found).all():
        raise BindingError(f"the value of '{name}' is not finite", hint="a search starts from numbers")
    return found


def _varied(asked: MinimizeRequest, values: Mapping[str, Any]) -> list[str]:
    varied = [n for n in values if n not in asked.constant] if asked.varied is None else [*asked.varied]
    for name in (*varied, *asked.constant):
        if name not in values:
            hint = did_you_mean(name, values, f"give it a value, as in {name}=1")
            raise BindingError(f"'{name}' has no value", hint=hint)
        if name in varied and name in asked.constant:
            raise BindingError(f"'{name}' is to be varied and is a constant", hint="leave out one of them")
    if not varied or not any(arrays.size(values[name]) for name in varied):
        raise BindingError("there is nothing to vary", hint="give a name a start, as in x=1")
    return varied


def _check_names(asked: MinimizeRequest, program: CompiledProgram, reads: Sequence[str], known: set[str]) -> None:
    own = scope.free_names(program.program)
    for name in asked.values:
        if name not in own and name not in reads:
            raise scope.unread_name(name, reads, known, program.program)
    for name in reads:
        if name not in known and name not in scope.CONSTANTS:
            read = own.get(name)
            raise UnknownNameError(
                f"'{name}' has no value",
                hint=did_you_mean(name, known, f"give it a start, as in {name}=1"),
                span=read and read.span,
                source=asked.text if read else None,
            )


def check_start(objective: Objective, start: Any, *, may_fail: bool = False) -> None:
    """Raise DifferentiationError where the objective is not a scalar, and, unless that `may_fail`, EvaluationError with
    its place in the source where the value or the gradient is not finite at the start."""
    program, given = objective.program.program, objective.values(start)
    known = objective.program(**given)
    shape = arrays.shape(known)
    if arrays.is_complex(known):
        raise DifferentiationError(
            "what is minimised is a real number, and the value is complex",
            hint="real(…), imag(…) and abs(…) of it are real",
            span=program.body[-1].span,
            source=program.source,
        )
    if shape:
        raise DifferentiationError(
            f"what is minimised is a number, and the value has shape {list(shape)}",
            hint="sum(…) or mean(…) of it is one",
        )
    value, _ = objective.value_and_gradient(start)
    if math.isfinite(value) or may_fail:
        return
    bindings = {name: arrays.asarray(v, "float64") for name, v in given.items()}
    result = session.run(session.EvaluationRequest(program, bindings, tuple(objective.names)))
    found = next((w for w in result.warnings if w.code == "nonfinite"), None)
    raise EvaluationError(
        "there is no number, or no gradient, at the start" + (f": {found.message}" if found else ""),
        hint="start where the program has a value",
        span=found and found.span,
        source=program.source if found else None,
    )
