"""Builds the problem of a fit, and the point where its search begins, from a model, data and settings of the
parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from gradcli import arrays
from gradcli.errors import BindingError, ShapeError, Span, UsageError, did_you_mean
from gradcli.language.names import scope
from gradcli.language.names.evaluator_functions import TRANSFORMS
from gradcli.language.syntax import tree
from gradcli.models.data import Data, DataTable
from gradcli.models.fitting.notation.model_texts import ModelText
from gradcli.models.fitting.problem.fit_units import Scaling, in_units, units_of
from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.problem.problems import Problem, in_row
from gradcli.models.packing import Bounds, Packing
from gradcli.models.value_checks import nonfinite_error, real_value
from gradcli.named_tuples import NamedTuple
from gradcli.rows.plan import check_dots, hint_of_column, nearest_column
from gradcli.rows.row_programs import RowProgram


class Parameters(NamedTuple):
    """Settings of the parameters, by name: the values to `start` from, the names of those `fixed` there, the `bounds`,
    and the `priors`, each a mean and a standard deviation."""

    start: Mapping[str, float]
    fixed: Collection[str] = ()
    bounds: Mapping[str, Bounds] = {}
    priors: Mapping[str, tuple[float, float]] = {}

    def without(self, names: Collection[str]) -> Parameters:
        """The settings of other parameters than these."""
        return Parameters(
            {name: value for name, value in self.start.items() if name not in names},
            [name for name in self.fixed if name not in names],
            {name: pair for name, pair in self.bounds.items() if name not in names},
            {name: pair for name, pair in self.priors.items() if name not in names},
        )


class ModelNames(NamedTuple):
    """The names in a model: `predictors`, the columns of the data that the model reads; `columns`, these and those that
    the response reads; `parameters`, in the order of the text; `needed`, all columns that must have numbers."""

    predictors: tuple[str, ...]
    columns: tuple[str, ...]
    parameters: tuple[str, ...]
    needed: tuple[str, ...]


class PosedFit(NamedTuple):
    """A problem, and the start values of its parameters.

    `names` are those of all parameters, including fixed ones; `start` `[p]` has the free ones alone, nan where no value
    is given. `response_name` is the response as it is written, and `warnings` are about its values. All numbers are in
    `units` where these are not None. `part` is the column that is 1 in the rows of real parts and 0 in those of imaginary
    ones, None for a real response.
    """

    problem: Problem
    names: Sequence[str]
    start: Any
    response_name: str
    warnings: Sequence[str] = ()
    units: Scaling | None = None
    part: str | None = None

    @property
    def least_rows(self) -> int:
        """The least number of rows that a fit takes: the number of parameters without a prior, and at least 1."""
        return max(1, self.problem.count - self.problem.dof)


def classify_names(
    text: ModelText,
    table: DataTable,
    given: Parameters,
    others: Sequence[str] = (),
    indexed: Collection[str] = (),
) -> ModelNames:
    """Classify the names in a model as columns of a table and parameters; `others` are further columns that are needed,
    and `indexed` are the parameters that have values by level.

    Raises BindingError for a name in the response that is no column, for settings of a parameter that the model does
    not have, and for a model without parameters.
    """
    columns, parameters = [], []
    reads = scope.free_names(text.model)
    for part in (text.model, text.response):
        check_dots(part, table.columns, part.source)
    scope.check_names(text.model, [*table.columns, *reads])
    # A parameter may have the name of a function, such as `gamma`, unless the model passes functions to functions.
    calls = {node.name for node in tree.all_nodes(text.model) if isinstance(node, tree.Call)}
    applied = {name for name in reads if scope.is_function(name, ())} if calls & TRANSFORMS else set()
    for name, read in reads.items():
        if name in table.columns:
            columns.append(name)
        elif name in given.start or not (name in scope.CONSTANTS or read.maybe_assigned or name in applied):
            parameters.append(name)
    if "e" in reads and not reads["e"].maybe_assigned and "e" not in (*columns, *parameters):
        _check_euler_e(text.model, parameters)
    predictors = tuple(columns)
    for name, read in scope.free_names(text.response).items():
        if name in table.columns:
            columns.append(name)
        elif name not in scope.CONSTANTS:
            known = hint_of_column(name, table.columns, _columns_hint(table))
            if name in given.start:
                known = f"{name} is given one number, and a response has one in each row: {name}=[1,2,3]"
            raise BindingError(
                f"the response '{name}' is no column of the data",
                hint=known,
                span=read.span,
                source=text.response.source,
            )
    check_settings(given, parameters, table.columns)
    free = [name for name in parameters if name not in given.fixed]
    if not predictors and not indexed and len(free) > 1 and not given.priors and table.columns:
        mistaken = next((name for name in free if nearest_column(name, table.columns)), free[0])
        raise BindingError(
            f"the model reads no column of the data, and '{mistaken}' is a parameter of it",
            hint=hint_of_column(mistaken, table.columns, _columns_hint(table)),
            span=reads[mistaken].span,
            source=text.model.source,
        )
    if not free:
        constant = next((name for name in reads if name in scope.CONSTANTS and name not in table.columns), None)
        hint = "every name that it reads is a column of the data" + (" or fixed" if given.fixed else "")
        if constant is not None and not given.fixed:
            hint = f"{constant} is a constant; with a start, {constant}=1, it is a parameter"
        elif predictors and not given.fixed:
            a, b = [name for name in ("a", "b", "c", "d") if name not in table.columns][:2]
            hint = (
                f"each parameter has a name: write {text.response_name} ~ {a} + {b}*{predictors[0]} for a straight line"
            )
        raise BindingError("the model has no parameters to fit", hint=hint)
    return ModelNames(
        predictors, tuple(dict.fromkeys(columns)), tuple(parameters), tuple(dict.fromkeys([*columns, *others]))
    )


def _check_euler_e(model: tree.Module, parameters: Sequence[str]) -> None:
    """Raise BindingError where `e`, which is Euler's number, is probably meant as the parameter that follows `d`.
    Beside a parameter `d`, `e` is accepted only as the base of a power."""
    nodes = [*tree.all_nodes(model)]
    powers = [node.left for node in nodes if isinstance(node, tree.Binary) and node.operator == "**"]
    powers += [
        node.arguments[0] for node in nodes if isinstance(node, tree.Call) and node.name == "pow" and node.arguments
    ]
    other = next(
        (node for node in nodes if isinstance(node, tree.Name) and node.id == "e" and node not in powers), None
    )
    if other is not None and "d" in parameters:
        raise BindingError(
            "'e' is Euler's number here, and stands as a parameter does beside 'd'",
            hint="with a start, e=1, it is a parameter; exp(1) is the number",
            span=other.span,
            source=model.source,
        )


def _columns_hint(table: DataTable) -> str:
    if table.columns:
        return f"the data have {', '.join(table.columns)}"
    return "there are no data: give a file, or x=[1,2,3]"


def check_settings(
    given: Parameters, parameters: Sequence[str], columns: Sequence[str], states: Sequence[str] = ()
) -> None:
    """Raise BindingError for settings of names that are no parameters, where `states` may have values too, for fixed
    ones without a value, and for bounds and priors of fixed ones."""
    for what, said, known in (
        ("a start", given.start, (*parameters, *states)),
        ("bounds", given.bounds, parameters),
        ("a prior", given.priors, parameters),
        ("a fixed value", given.fixed, (*parameters, *states)),
    ):
        for name in said:
            if name not in known:
                _refuse_setting(name, what, parameters, columns)
    for name in given.fixed:
        if name not in given.start:
            raise BindingError(f"'{name}' is to be fixed, and has no value", hint=f"give it one: {name}=1")
    for what, named in (("bounds", given.bounds), ("a prior", given.priors)):
        for name in named:
            if name in given.fixed:
                raise BindingError(f"'{name}' is kept at its value, and is given {what}", hint="leave out one of them")


def _refuse_setting(name: str, what: str, parameters: Sequence[str], columns: Sequence[str]) -> NoReturn:
    if name in columns:
        raise BindingError(f"'{name}' is given {what} and is a column of the data", hint="leave out one of them")
    hint = did_you_mean(name, parameters, f"its parameters are {', '.join(parameters) or 'none'}")
    raise BindingError(f"'{name}' is given {what}, and the model does not use it", hint=hint)


def posed_fit(
    text: ModelText,
    names: ModelNames,
    data: Data,
    given: Parameters,
    known: Assumptions,
    sigma: Any,
    trials: Any,
    limits: tuple[int, int],
    has_distances: bool = False,
) -> PosedFit:
    """Build the problem for some data.

    `sigma` are standard deviations, `[n]` or one number. `trials` are those of each row of a binomial family, `[n]` or
    one number, None where the response expresses them. `has_distances` says that predictors have errors; the standard
    deviations of the response then count by their absolute size.

    Raises BindingError for too few data, for invalid standard deviations, trials and responses, and for a start outside
    its bounds.
    """
    free = [name for name in names.parameters if name not in given.fixed]
    check_count(len(data.rows), data, given, free)
    check_sigma(sigma, data.rows)
    start, bounds, priors = point_of(given, free)
    response = observed(text.response, text.response_name, data, known.family, sigma, trials, limits)
    problem = Problem(
        text.model,
        {name: data.columns[name] for name in scope.free_names(text.model) if name in data.columns},
        response.values,
        free,
        known,
        sigma=response.sigma,
        fixed={name: float(given.start[name]) for name in given.fixed},
        priors=priors,
        bounds=bounds,
        limits=limits,
        places=data.rows,
        is_typed=text.response.source.strip() in data.columns,
    )
    check_shape(problem, start)
    units = units_of(problem, start, known.absolute or has_distances)
    if units is not None:
        problem, start = in_units(problem, units), start / units.parameters
    return PosedFit(problem, names.parameters, start, text.response_name, response.warnings, units)


def check_count(count: int, data: Data, given: Parameters, free: Sequence[str]) -> None:
    """Raise BindingError where `count` numbers are too few for the `free` parameters."""
    if count + len(given.priors) < len(free):
        raise BindingError(
            f"there are too few data: {count:,} row{'s' * (count != 1)} for {len(free)} parameter{'s' * (len(free) != 1)}"
            + (f"; left out, as a number is missing there: {data.left_out:,}" if data.left_out else ""),
            hint="--fix keeps a parameter at its value",
        )
    if not count:
        raise BindingError("there are too few data: none", hint="a row counts where all numbers are there")


class StartPoint(NamedTuple):
    """The `start` values of free parameters, nan where none is given, the lower and upper `bounds`, and the means and
    standard deviations of the `priors`."""

    start: Any
    bounds: tuple[Any, Any]
    priors: tuple[Any, Any]


def point_of(given: Parameters, free: Sequence[str]) -> StartPoint:
    """The settings as vectors. Raises BindingError for starts that are not finite or outside their bounds, and for
    priors without uncertainty."""
    np = arrays.numpy_namespace()
    for name, number in given.start.items():
        if not np.isfinite(number):
            raise BindingError(
                f"the start of '{name}' is {number:g}", hint="a search starts from finite numbers, or none"
            )
    start = np.array([given.start.get(name, np.nan) for name in free])
    low, high = Packing.of(dict.fromkeys(free, 0.0)).bounds(given.bounds)
    for i, name in enumerate(free):
        value = start[i]
        if value < low[i] or value > high[i]:
            raise BindingError(
                f"the start {name}={value:g} is outside its bounds, {low[i]:g} to {high[i]:g}",
                hint="give a start between them, or none",
            )
    mean, u = np.zeros(len(free)), np.full(len(free), np.inf)
    for name, (center, deviation) in given.priors.items():
        if not deviation > 0:
            raise BindingError(
                f"the prior of '{name}' has the uncertainty {deviation:g}", hint="--fix fixes a parameter"
            )
        mean[free.index(name)], u[free.index(name)] = center, deviation
    return StartPoint(start, (low, high), (mean, u))


def check_shape(problem: Problem, start: Any) -> None:
    """Raise ShapeError where the model's value in a row is not a single number."""
    np = arrays.numpy_namespace()
    shape = problem.shape(np.where(np.isnan(start), 1.0, start))
    if shape:
        raise ShapeError(
            f"the model has a value of shape {list(shape)} in a row, and a response is one number",
            span=problem.model.body[-1].span,
            source=problem.model.source,
        )


def check_sigma(sigma: Any, places: Any) -> None:
    """Raise BindingError for standard deviations that are not finite and above 0."""
    np = arrays.numpy_namespace()
    values = np.atleast_1d(sigma)
    bad = ~((values > 0) & np.isfinite(values))
    if bad.any():
        where = f" in row {int(places[bad.argmax()]) + 1}" if np.ndim(sigma) else ""
        raise BindingError(
            f"sigma is {values[bad.argmax()]:g}{where}, and a standard deviation is above 0",
            hint="leave such rows out, or give a number for all of them",
        )


def sigma_of_weights(said: str | float, data: Data) -> Any:
    """The standard deviations up to a factor, `[n]` or one number, of rows whose weights are a column or a number.

    Raises BindingError for weights that are not above 0.
    """
    np = arrays.numpy_namespace()
    weights = np.asarray(data.columns[said] if isinstance(said, str) else float(said))
    bad = ~((weights > 0) & np.isfinite(weights))
    if bad.any():
        where = f" in row {int(data.rows[bad.argmax()]) + 1}" if weights.ndim else ""
        raise BindingError(
            f"the weight is {np.atleast_1d(weights)[bad.argmax()]:g}{where}, and weights are above 0",
            hint="leave such rows out, or give a number for all of them",
        )
    return weights**-0.5


def sigmas_of(said: str | float | Mapping[str, str | float] | None, responses: Sequence[str]) -> list[str | float]:
    """The standard deviations of each of several responses: columns, numbers, or expressions of differential equations.
    Raises BindingError for other names."""
    if not isinstance(said, Mapping):
        return [1.0 if said is None else said] * len(responses)
    for name in said:
        if name not in responses:
            hint = did_you_mean(name, responses, f"the responses are {', '.join(responses)}")
            raise BindingError(f"--sigma names '{name}', which is no response", hint=hint)
    missing = next((name for name in responses if name not in said), None)
    if missing is not None:
        raise BindingError(f"--sigma names other responses, and not '{missing}'", hint=f"{missing}=1")
    return [said[name] for name in responses]


# --- the responses of rows, and the trials of binomial ones

# Distance of a share times its trials from a whole number up to which it is a count, as in R's glm; and the relative
# distance for a quotient of whole numbers.
_WHOLE, _ROUNDING = 1e-3, 1e-9


class Observed(NamedTuple):
    """The values of a response, their standard deviations, and warnings about them."""

    values: Any
    sigma: Any
    warnings: Sequence[str]


def observed(
    response: tree.Module, name: str, data: Data, family: str, sigma: Any, trials: Any, limits: tuple[int, int]
) -> Observed:
    """A response of a family; for `sigma` and `trials` see `posed_fit`. Raises BindingError where the family cannot have
    such values."""
    values = response_of(response, data, limits)
    said = trials is not None
    if family == "binomial":
        trials = binomial_trials(response, values, trials, data, limits)
        # The variance of a share of n trials is that of a single trial divided by n.
        sigma = trials**-0.5
    check_response(family, values, name, data.rows)
    return Observed(values, sigma, response_warnings(family, values, trials, name, said))


def response_of(response: tree.Module, data: Data, limits: tuple[int, int]) -> Any:
    """The response of each row.

    Raises UsageError where it reads no column, EvaluationError, with the operation, where it is not finite, and the
    error of the first row that fails.
    """
    np = arrays.numpy_namespace()
    if not any(name in data.columns for name in scope.free_names(response)):
        raise UsageError(
            "the response is no column of the data", span=Span(0, len(response.source)), source=response.source
        )
    found = real_value(program_values(response, data, limits), "a fit")
    bad = ~np.isfinite(found)
    if bad.any():
        row = int(bad.argmax())
        given = {name: data.columns[name][row].item() for name in scope.free_names(response) if name in data.columns}
        error = nonfinite_error(response, given, (), "the response is not finite")
        error.hint = "leave such rows out, or write the response otherwise"
        raise in_row("", data.rows[row], error)
    return found


def program_values(program: tree.Module, data: Data, limits: tuple[int, int]) -> Any:
    """The value of a program of columns in each row. Raises ShapeError where it is not one number, and the error of the
    first row that fails."""
    np = arrays.numpy_namespace()
    reads = {name: data.columns[name] for name in scope.free_names(program) if name in data.columns}
    name = program.source.strip()
    if name in reads:
        return reads[name]
    run = RowProgram(program, (), 0, max_steps=limits[0], max_elements=limits[1])
    found = run.run(reads, {}, rows=len(data.rows))
    for failed in found.failures:
        raise in_row("", data.rows[failed.index], failed.error)
    if np.ndim(found.value) > 1:
        raise ShapeError("the response is one number in a row", span=program.body[-1].span, source=program.source)
    return found.value


def check_response(family: str, response: Any, name: str, places: Any) -> None:
    """Raise BindingError where a family cannot have such a response."""
    if family == "poisson" and not (response >= 0).all():
        raise BindingError(f"'{name}' has values below 0, which are no counts", hint="--family poisson is for counts")


def binomial_trials(response: tree.Module, shares: Any, said: Any, data: Data, limits: tuple[int, int]) -> Any:
    """The trials `[n]` of a binomial response: those that are `said`, the divisor of a quotient of whole numbers, or 1
    in each row.

    Raises BindingError for responses that are not shares of them, and for trials that are not positive whole numbers.
    """
    np = arrays.numpy_namespace()
    name = response.source.strip()
    trials = _divisor(response, shares, data, limits) if said is None else np.broadcast_to(said, shares.shape)
    outside = ~((shares >= 0) & (shares <= 1))
    if outside.any():
        row = int(outside.argmax())
        raise BindingError(
            f"'{name}' is {shares[row]:g} in row {data.rows[row] + 1}, outside 0 to 1",
            hint="a binomial response is 0 or 1, or a share of --trials; of counts it is written events/trials",
        )
    if trials is None:
        parts = (shares > 0) & (shares < 1)
        if parts.any():
            row = int(parts.argmax())
            raise BindingError(
                f"'{name}' is {shares[row]:g} in row {data.rows[row] + 1}, and it is not said of how many trials",
                hint="--trials COLUMN says so; counts are written as events/trials",
            )
        return np.ones(shares.shape)
    bad = ~((trials >= 1) & (trials == np.floor(trials)) & np.isfinite(trials))
    if bad.any():
        row = int(bad.argmax())
        raise BindingError(
            f"the trials are {trials[row]:g} in row {data.rows[row] + 1}, and they are a whole number from 1 on",
            hint="leave such rows out, or give a number for all of them",
        )
    return trials


def _divisor(response: tree.Module, shares: Any, data: Data, limits: tuple[int, int]) -> Any:
    """The divisor of a response that is a quotient of whole numbers; None for others."""
    np = arrays.numpy_namespace()
    last = response.body[-1]
    if not (isinstance(last, tree.Evaluate) and isinstance(last.value, tree.Binary) and last.value.operator == "/"):
        return None
    right = last.value.right
    below = tree.Module(response.span, response.source, (*response.body[:-1], tree.Evaluate(right.span, right)))
    trials = real_value(program_values(below, data, limits), "a fit")
    events = shares * trials
    is_count = np.abs(events - np.round(events)) <= _ROUNDING * trials
    return trials if (is_count & (trials == np.floor(trials))).all() else None


def response_warnings(family: str, response: Any, trials: Any, name: str, said: bool) -> list[str]:
    """Warnings that a response may not be what its family takes it for; `said` tells that `trials` are given apart."""
    np = arrays.numpy_namespace()
    if family == "poisson" and (response != np.floor(response)).any():
        return [f"'{name}' has values that are no whole numbers: the standard errors are those of counts"]
    if family != "binomial" or not said:
        return []
    events = response * trials
    if (np.abs(events - np.round(events)) > _WHOLE).any():
        return [f"'{name}' times the trials is no whole number in some rows: the trials may be those of others"]
    if ((response == 0) | (response == 1)).all() and (trials > 1).any():
        return [f"'{name}' is 0 or 1 in all rows, and taken for the share of events: counts are written events/trials"]
    return []
