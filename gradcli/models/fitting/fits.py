"""Fits: the parameters of a model for which it is nearest to data, and what can be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import BindingError
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models.data import table_of
from gradcli.models.fitting.estimation import SearchOptions
from gradcli.models.fitting.fit_files import FitFiles
from gradcli.models.fitting.fit_problems import Parameters
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.inference import Assumptions
from gradcli.models.fitting.requested_fits import performed
from gradcli.models.results import Watcher
from gradcli.models.uncertainty import uncertain_values


def fit(
    model: str,
    data: Any = None,
    values: Mapping[str, Any] | None = None,
    *,
    response: str | None = None,
    fix: Sequence[str] = (),
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
    prior: Mapping[str, Any] | None = None,
    sigma: str | float | None = None,
    absolute_sigma: bool = False,
    loss: str = "linear",
    family: str = "gaussian",
    x_sigma: Mapping[str, str | float] | None = None,
    by: str | None = None,
    level: float = 0.95,
    profile: bool = False,
    residuals: str | None = None,
    predict: str | None = None,
    plot: str | None = None,
    starts: int = 32,
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    watch: Watcher | None = None,
    **named: Any,
) -> Any:
    """Fit a model `y ~ f`, or `f` with the `response` apart, to data: a `Fit`, also where the search does not converge; with
    `by`, a column, a list of them, one for each group of rows in which that is the same.

    Names that are columns of the data are data, the others parameters. The data are the path of a table, or a list of
    them, a data frame, an Arrow table, or a mapping of columns to arrays. `values`, or keywords of any name, are where the
    search for parameters begins; those without one are found, from at most `starts` points, which a `seed` chooses. An
    array among them is a column.
    Those of `fix` stay at their values; `bounds` are pairs, None for no bound; a `prior` is "500±50", or a mean with its
    standard deviation. `sigma` is a column or a number: standard deviations up to a common factor, or with
    `absolute_sigma` as they stand. A `loss` is one of `linear soft_l1 huber cauchy`, a `family` of `gaussian poisson
    binomial`. `x_sigma` are columns or numbers too, the standard deviations of predictors by name, for distances in all
    directions. `level` is that of the confidence intervals, which with `profile` are those of the likelihood's profile.

    `residuals` and `predict` are paths of tables to write, by the ending CSV, JSON lines, Parquet or Arrow: the rows of the
    fit, and all rows with predictors, also those without a response, with the model's value there, its standard error, its
    confidence band and the band of a further response. `plot` is that of a picture.

    Raises BindingError for names and data that do not fit together, and EvaluationError where the model has no finite
    value at the start.
    """
    np = arrays.numpy_namespace()
    given = {**(values or {}), **named}
    vectors = {name: value for name, value in given.items() if np.ndim(value)}
    numbers = {name: float(value) for name, value in given.items() if name not in vectors}
    request = FitRequest(
        model,
        response,
        table_of(data).with_vectors(vectors),
        Parameters(numbers, tuple(fix), _bounds(bounds or {}), _priors(prior or {})),
        Assumptions(family, loss, absolute_sigma, level),
        sigma,
        x_sigma or {},
        by,
        profile,
        (max_steps, max_elements),
    )
    found = performed(request, SearchOptions(starts, seed, watch), FitFiles(residuals, predict, plot)).fits
    return found[0] if by is None else found


def _bounds(given: Mapping[str, tuple[float | None, float | None]]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, pair in given.items():
        try:
            low, high = pair
        except (TypeError, ValueError):
            raise BindingError(
                f"the bounds of '{name}' are no pair", hint="(0, 1), or (0, None) for no upper one"
            ) from None
        found[name] = (float("-inf") if low is None else float(low), float("inf") if high is None else float(high))
    return found


def _priors(given: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, said in given.items():
        uncertain = uncertain_values.given(said, name)
        if uncertain is None:
            raise BindingError(f"the prior of '{name}' has no uncertainty", hint=f"write {name}=500±50")
        found[name] = (float(uncertain.value), float(uncertain.u))
    return found
