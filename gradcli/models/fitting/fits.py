"""Fits: the parameters of a model for which it is nearest to data, and what can be said of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.errors import BindingError, expect, flag
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import arguments
from gradcli.models.data import table_of
from gradcli.models.fitting.estimation import SearchOptions
from gradcli.models.fitting.fit_files import FitFiles
from gradcli.models.fitting.fit_problems import Parameters
from gradcli.models.fitting.fit_requests import FitRequest, prior_of
from gradcli.models.fitting.inference import Assumptions
from gradcli.models.fitting.likelihoods import MEDIAN
from gradcli.models.fitting.requested_fits import performed
from gradcli.models.optima.bounds import bounds_of
from gradcli.models.packing import Bounds
from gradcli.models.results import Watcher
from gradcli.models.uncertainty import uncertain_values


def fit(
    model: str,
    data: Any = None,
    values: Mapping[str, Any] | None = None,
    *,
    response: str | None = None,
    fix: Sequence[str] | str = (),
    bounds: Mapping[str, Bounds] | Sequence[str] | str | None = None,
    prior: Mapping[str, Any] | None = None,
    sigma: str | float | Sequence[float] | None = None,
    absolute_sigma: bool = False,
    loss: str = "linear",
    loss_scale: str | float | None = None,
    family: str = "gaussian",
    trials: str | float | Sequence[float] | None = None,
    offset: str | float | Sequence[float] | None = None,
    x_sigma: Mapping[str, str | float | Sequence[float]] | None = None,
    by: str | None = None,
    level: float = 0.95,
    profile: bool = False,
    residuals: str | os.PathLike[str] | None = None,
    predict: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
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
    Those of `fix`, a name or a list, stay at their values; `bounds` are pairs, None for no bound, or texts such as
    "a=0:1,b=0:"; a `prior` is "500±50", or a tuple of a mean and its standard deviation. `sigma` is a column, a number, or
    an array of a number for each row: standard deviations up to a common factor, or with `absolute_sigma` as they stand. A `loss` is one of `linear soft_l1 huber cauchy`; the residual from
    which on a robust one is no square follows from the median of the residuals, or is `loss_scale`, in units of `sigma`. A
    `family` is one of `gaussian poisson binomial`; of a binomial one the response is 0 or 1, or the share of events among
    `trials`, which are such as `sigma` is, or the response is written as events/trials. An `offset` is a known term of the link's scale, added to a
    measurement, to the logarithm of a count, or to the log-odds of an event: an expression of columns, a number, or an array. `x_sigma` are such too, the standard deviations of predictors by name, for distances in all directions.
    `level` is that of the confidence intervals, which with `profile` are those of the likelihood's profile. `watch` is
    called with each iteration.

    `residuals` and `predict` are paths of tables to write, by the ending CSV, JSON lines, Parquet or Arrow: the rows of the
    fit, and all rows with predictors, also those without a response, with the model's value there, its standard error, its
    confidence band and the band of a further response. `plot` is that of a picture.

    Raises BindingError for names and data that do not fit together, CallError and UsageError for arguments that are none
    or contradict each other, and EvaluationError where the model has no finite value at the start.
    """
    expect(model, str, "a model is a text")
    for text, what in ((response, "'response' is a text"), (by, "'by' is the name of a column")):
        if text is not None:
            expect(text, str, what)
    given = {**arguments.named(values, "'values'"), **named}
    columns = {name: value for name, value in given.items() if arguments.is_array(value)}
    numbers = {n: arguments.number(value, f"the start of '{n}'") for n, value in given.items() if n not in columns}
    # No name of a model is written as these are.
    deviations = None if sigma is None else _of_rows(sigma, "sigma=[…]", columns)
    term = None if offset is None else str(_of_rows(offset, "offset_of_rows", columns))
    of_trials = None if trials is None else _of_rows(trials, "trials=[…]", columns)
    of_predictors = {
        name: _of_rows(said, f"x_sigma={{'{name}': […]}}", columns)
        for name, said in arguments.named(x_sigma, "'x_sigma'").items()
    }
    request = FitRequest(
        model,
        response,
        table_of(data).with_vectors(columns),
        Parameters(numbers, arguments.names(fix, "'fix'"), bounds_of(bounds), _priors(prior)),
        Assumptions(
            family,
            loss,
            flag(absolute_sigma, "absolute_sigma"),
            arguments.number(level, "'level'"),
            _loss_scale(loss_scale),
        ),
        deviations,
        of_predictors,
        by,
        flag(profile, "profile"),
        (max_steps, max_elements),
        of_trials,
        term,
    )
    files = FitFiles(
        arguments.path(residuals, "'residuals'"), arguments.path(predict, "'predict'"), arguments.path(plot, "'plot'")
    )
    found = performed(request, SearchOptions(starts, seed, watch), files).fits
    return found[0] if by is None else found


def _of_rows(said: Any, title: str, columns: dict[str, Any]) -> Any:
    """Standard deviations, or trials, as a request has them: an array is among the columns then, under a title."""
    if isinstance(said, str):
        return said
    if not arguments.is_array(said):
        return arguments.number(said, f"a number for each row, as in {title},")
    columns[title] = said
    return title


def _priors(given: Any) -> dict[str, tuple[float, float]]:
    found = {}
    for name, said in arguments.named(given, "'prior'").items():
        uncertain = uncertain_values.given(said, name)
        if uncertain is None:
            raise BindingError(f"the prior of '{name}' has no uncertainty", hint=f"write {name}=500±50")
        found[name] = prior_of(uncertain, name)
    return found


def _loss_scale(given: Any) -> float | None:
    """None where the scale follows from the median of the residuals."""
    if given is None or (isinstance(given, str) and given == MEDIAN):
        return None
    return arguments.number(given, "'loss_scale'")
