"""The problem of a fit: the values of a model and their exact derivatives at rows of data, and the costs of these."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from gradcli import arrays
from gradcli.errors import GradcliError
from gradcli.evaluation.derivative_traces import Trace, row_derivatives
from gradcli.evaluation.recording_cache import BoundedCache
from gradcli.evaluation.row_evaluation import evaluated
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models.fitting.problem.batched_matrices import unpacked
from gradcli.models.fitting.problem.likelihoods import Assumptions, Cost
from gradcli.models.value_checks import nonfinite_error
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_programs import RowProgram
from gradcli.rows.row_results import RowResults


class RowComputation(Protocol):
    """Computes the values of rows and their derivatives by the `keys`, as `RowProgram` does."""

    @property
    def keys(self) -> Sequence[str]: ...

    def run(self, columns: Mapping[str, Any], shared: Mapping[str, Any], *, rows: int) -> RowResults: ...


class ResponseFit(NamedTuple):
    """The goodness of fit of one of several responses: its number `n` of rows, its residual sum of squares, in units
    of `sigma` where that is given, the root `s` of the mean of these squares, and R²."""

    n: int
    rss: float
    s: float
    r2: float

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class Problem:
    """A model with p free `parameters`, and n rows of data.

    `columns` are arrays `[n]` by name, `response` is `[n]`, its standard deviations `sigma` are `[n]` or one number,
    and `fixed` are numbers by name. `known` are the assumptions about the rows. `priors` are means and standard
    deviations, `[p]` each, the latter infinite for parameters without a prior; `low` and `high` `[p]` are the bounds.
    `places` `[n]` are the indices of the rows in the user's table, which errors name. `is_typed` says that the response
    is a column itself, not an expression. `loss_scale` is the threshold of a robust loss, a factor that `sigma` and the
    standard deviations of the priors include.
    """

    loss_scale = 1.0
    # The codes [n] of the clusters of rows, where errors are those of clusters.
    clusters: Any = None
    # Whether groups of rows can be searched together, and the largest number of derivatives to rank starts by.
    is_stackable = True
    most_candidate_elements = 2**24
    # Whether a search may begin at many points.
    is_searched_widely = True

    def __init__(
        self,
        model: Module,
        columns: Mapping[str, Any],
        response: Any,
        parameters: Sequence[str],
        known: Assumptions,
        *,
        sigma: Any = 1.0,
        fixed: Mapping[str, float] | None = None,
        priors: tuple[Any, Any] | None = None,
        bounds: tuple[Any, Any] | None = None,
        limits: tuple[int, int] | None = None,
        places: Any = None,
        is_typed: bool = True,
    ) -> None:
        np = arrays.numpy_namespace()
        p = len(parameters)
        self.model = model
        self.columns = columns
        self.response = response
        self.parameters = tuple(parameters)
        self.known = known
        self.likelihood = known.likelihood
        self.sigma = sigma
        self.fixed = dict(fixed or {})
        self.priors = priors or (np.zeros(p), np.full(p, np.inf))
        self.low, self.high = bounds or (np.full(p, -np.inf), np.full(p, np.inf))
        self.places = np.arange(len(response)) if places is None else places
        self.is_typed = is_typed
        self.limits = limits or (MAX_STEPS, MAX_ELEMENTS)
        self._first: RowComputation = self.program(self.parameters, 1)
        self._second: RowComputation = self.program(self.parameters, 2)

    def program(self, wrt: Sequence[str], order: int) -> RowProgram:
        """The program of the model with its derivatives up to an order by `wrt`, parameters and columns."""
        return row_program(self.model, wrt, order, *self.limits)

    def row_trace(self, inputs: Mapping[str, Any], wrt: Sequence[str], order: int) -> Trace:
        """The model at one row with its derivatives, recorded. Raises GradcliError where it cannot be recorded."""
        return row_derivatives(self.model, inputs, {}, wrt, order, apart=False)

    def recorded(self, point: Any, wrt: Sequence[str] = (), order: int = 0) -> Trace:
        """The model at the first row, recorded at a point `[p]`. Raises GradcliError where it cannot be recorded."""
        row = {name: column[0] for name, column in self.columns.items()}
        inputs = {**row, **self.fixed, **dict(zip(self.parameters, map(float, point)))}
        with arrays.using_namespace(None):
            return self.row_trace(inputs, wrt, order)

    @property
    def has_second(self) -> bool:
        """True if the second derivatives of each row are affordable."""
        return True

    @property
    def predictors(self) -> Mapping[str, Any]:
        """The columns that predictions need."""
        return self.columns

    @property
    def count(self) -> int:
        """The number n of rows."""
        return len(self.response)

    @property
    def dof(self) -> int:
        """The degrees of freedom; each prior counts as a row."""
        return self.count + int(arrays.numpy_namespace().isfinite(self.priors[1]).sum()) - len(self.parameters)

    @property
    def has_priors(self) -> bool:
        return bool(arrays.numpy_namespace().isfinite(self.priors[1]).any())

    @property
    def response_norm(self) -> Any:
        """The length of the responses divided by their standard deviations."""
        np = arrays.numpy_namespace()
        with np.errstate(all="ignore"):
            weighted = self.response / self.sigma
            return np.sqrt(np.vecdot(weighted, weighted))

    def with_rows(self, rows: Any) -> Problem:
        """The same problem with some of the rows."""
        np = arrays.numpy_namespace()
        found = copy.copy(self)
        found.columns = {name: column[rows] for name, column in self.columns.items()}
        found.response, found.places = self.response[rows], self.places[rows]
        found.sigma = self.sigma[rows] if np.ndim(self.sigma) else self.sigma
        found.clusters = None if self.clusters is None else self.clusters[rows]
        return found

    def with_scaled_priors(self, scale: float) -> Problem:
        """The same problem where the standard deviations of the rows are `scale` times `sigma`: those of the priors are
        divided by `scale` to keep the weights of rows and priors in proportion."""
        found = copy.copy(self)
        found.priors = self.priors[0], self.priors[1] / scale
        return found

    def with_loss_scale(self, loss_scale: float, deviation: float) -> Problem:
        """The same problem with the threshold of the robust loss at `loss_scale` times `sigma`. The standard deviations
        of the rows, against which priors are weighted, are `deviation` times `sigma`."""
        found = self.with_scaled_priors(deviation / loss_scale)
        found.sigma = self.sigma * loss_scale
        found.loss_scale = loss_scale
        return found

    def of_least_squares(self) -> Problem:
        """The same problem with a gaussian family and no robust loss."""
        found = copy.copy(self)
        found.known = self.known._replace(family="gaussian", loss="linear")
        found.likelihood = found.known.likelihood
        return found

    def sampled(self, most: int) -> Problem:
        """The same problem with `most` of the rows, one at a random place in each of as many equal stretches; the
        problem itself where it has at most 8 times as many."""
        np = arrays.numpy_namespace()
        if self.count <= 8 * most:
            return self
        chosen = (np.arange(most) + np.random.default_rng(0).random(most)) * (self.count / most)
        return self.with_rows(chosen.astype(int))

    def shape(self, point: Any) -> tuple[int, ...]:
        """The shape of the model's value in the first row; that of a number where it fails there."""
        row = {name: float(column[0]) for name, column in self.columns.items()}
        try:
            return arrays.shape(evaluated(self.model, self._shared(point) | row, (), 0, self.limits).value)
        except GradcliError:
            return ()

    def _shared(self, point: Any) -> dict[str, float]:
        """The inputs that are the same in all rows at a point `[p]`."""
        return {**self.fixed, **dict(zip(self.parameters, map(float, point)))}

    def results(self, point: Any) -> RowResults:
        """The model's values and derivatives by row, with the rows that failed."""
        return self._first.run(self.columns, self._shared(point), rows=self.count)

    def rows(self, point: Any) -> tuple[Any, Any]:
        """The model's values `[n]` at a point `[p]`, and their derivatives by the parameters `[n, p]`; nan where a row
        fails."""
        found = self.results(point)
        return self._values(found), self.stacked(found, self.parameters, self.count)

    def at(self, columns: Mapping[str, Any], count: int, point: Any) -> tuple[Any, Any]:
        """Like `rows`, for `count` other rows with these columns."""
        found = self._first.run(columns, self._shared(point), rows=count)
        return self._values(found), self.stacked(found, self.parameters, count)

    def columns_of(self, points: Any) -> tuple[Any, list[Any]]:
        """The values `[g, n]` at several points `[g, p]`, and the derivatives by each parameter, `[g, n]` each."""
        np = arrays.numpy_namespace()
        g, n = len(points), self.count
        if g == 1:
            found = self.results(points[0])
        else:
            columns = {name: np.tile(column, g) for name, column in self.columns.items()}
            columns |= {name: np.repeat(points[:, i], n) for i, name in enumerate(self.parameters)}
            found = self._first.run(columns, self.fixed, rows=g * n)
        return self._by_row(found, (g, n), self.parameters)

    def second(self, point: Any) -> tuple[Any, Any, Any]:
        """Like `rows`, followed by the second derivatives `[n, k]` by each pair of parameters once, in the order of
        `numpy.triu_indices`."""
        found = self._second.run(self.columns, self._shared(point), rows=self.count)
        keys = [key for key in self._second.keys if "," in key]
        first = self.stacked(found, self.parameters, self.count)
        return self._values(found), first, self.stacked(found, keys, self.count)

    def hessian_terms(self, point: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
        """Like `rows`, followed by a function that computes the sum `[p, p]` of the second derivatives of the rows
        times `[n]` factors."""
        value, first, second = self.second(point)
        return value, first, lambda factors: unpacked(factors @ second, len(self.parameters))

    def failure(self, point: Any, when: str = "at the start, ") -> GradcliError | None:
        """The error, with its row, that the model or a derivative has no finite value at a point; None where all rows
        have one. `when` is the beginning of its message."""
        error, row = self._failure(point)
        if error is None:
            return None
        if self._fails_elsewhere(point, error, row):
            error.hint = "so it is with other values of the parameters: leave out such rows, or change the model"
        return in_row(when, self.places[row], error)

    def _fails_elsewhere(self, point: Any, error: GradcliError, row: int) -> bool:
        """Return whether a row fails at other points too, and at near ones in the same operation, so that the failure
        does not depend on the parameters."""
        beside = abs(point) + 1
        near = [self._failure(other) for other in (beside, -beside)]
        far = [self._failure(other) for other in (1e3 * beside, -1e3 * beside)]
        return all(other is not None and place == row for other, place in near + far) and all(
            other is not None and other.span == error.span for other, _ in near
        )

    def _failure(self, point: Any) -> tuple[GradcliError | None, int]:
        """The error of the first row that has no finite value at a point, and the index of that row; None and -1 where
        all rows have one."""
        np = arrays.numpy_namespace()
        found = self.results(point)
        for failed in found.failures:
            return failed.error, failed.index
        value, derivatives = self._by_row(found, (1, self.count), self.parameters)
        bad = ~np.isfinite(value[0])
        for derivative in derivatives:
            bad |= ~np.isfinite(derivative[0])
        if not bad.any():
            return None, -1
        row = int(bad.argmax())
        given = {name: float(column[row]) for name, column in self.columns.items()}
        error = nonfinite_error(self.model, given | self._shared(point), self.parameters, "the model is not finite")
        error.hint = "give other start values, or bounds that keep the model where it has a value"
        return error, row

    def of_responses(self, point: Any) -> Mapping[str, ResponseFit] | None:
        """The goodness of fit of each of several responses at a point; None for one response."""
        return None

    def cost(self, value: Any) -> Cost:
        """The costs of the rows for the model's values `[…, n]`."""
        with arrays.numpy_namespace().errstate(all="ignore"):
            return self.likelihood(value, self.response, self.sigma)

    def prior_residuals(self, points: Any) -> Any:
        """The distances of points `[…, p]` from the means of the priors, in standard deviations."""
        mean, u = self.priors
        return (points - mean) / u

    def _by_row(self, found: RowResults, shape: tuple[int, int], keys: Sequence[str]) -> tuple[Any, list[Any]]:
        np = arrays.numpy_namespace()
        absent = [found.derivatives[key] is None for key in keys]
        nothing = np.zeros(shape) if any(absent) else None
        return self._values(found).reshape(shape), [
            nothing if none else found.derivative(key).reshape(shape) for none, key in zip(absent, keys)
        ]

    def _values(self, found: RowResults) -> Any:
        np = arrays.numpy_namespace()
        return np.asarray(found.value, "float64")

    def stacked(self, found: RowResults, keys: Sequence[str], rows: int) -> Any:
        """The derivatives of `rows` by their keys, `[rows, k]`; each column is contiguous in memory."""
        np = arrays.numpy_namespace()
        stacked = np.zeros((len(keys), rows))
        for i, key in enumerate(keys):
            stacked[i] = found.derivative(key)
        return stacked.T


def in_row(when: str, place: int, error: GradcliError) -> GradcliError:
    """The same error with a message that begins with `when` and the number of its row; `place` is the index of the row
    in the table."""
    error.message = f"{when}in row {place + 1} of the data: {error.message}"
    error.args = (error.message,)
    return error


# --- programs over rows, recorded once for many data sets

# Number of programs in the cache, and the longest source text in characters that is cached.
_MOST, _LONGEST = 16, 2**12

_programs: BoundedCache[Any, RowProgram] = BoundedCache(_MOST)
_lock = threading.Lock()


def row_program(model: Module, wrt: Sequence[str], order: int, max_steps: int, max_elements: int) -> RowProgram:
    """Return the program that computes the rows of a model, with derivatives by `wrt` up to `order`, from the cache.

    A cached program is reused only while all its rows have taken the same execution path. Its results do not depend on
    the cache.
    """
    key = model.source, tuple(wrt), order, max_steps, max_elements
    with _lock:
        found = _programs.pop(key, None)
        if found is None or not found.is_one_path:
            found = RowProgram(model, wrt, order, max_steps=max_steps, max_elements=max_elements)
        if len(model.source) <= _LONGEST:
            _programs[key] = found
    return found
