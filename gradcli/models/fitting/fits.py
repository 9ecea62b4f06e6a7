"""`fit`: estimates the parameters of a model from data."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.errors import BindingError, UsageError, as_bool, expect
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import checked_arguments
from gradcli.models.data import table_of
from gradcli.models.fitting.fit_execution import execute
from gradcli.models.fitting.fit_files import FitFiles
from gradcli.models.fitting.fit_requests import FitRequest, Resampling, errors_of, pair_of, prior_of
from gradcli.models.fitting.problem.fit_problems import Parameters
from gradcli.models.fitting.problem.likelihoods import FAMILIES, LOG_DENSITY, MEDIAN, Assumptions
from gradcli.models.fitting.responses.complex_fits import in_parts
from gradcli.models.fitting.search.estimation import SearchOptions
from gradcli.models.fitting.statistics.inference import INFORMATION
from gradcli.models.optima.bounds import bounds_of
from gradcli.models.packing import Bounds
from gradcli.models.results import ProgressCallback
from gradcli.models.uncertainty import uncertain_values
from gradcli.rows.formats.new_tables import unused_name


def fit(
    model: str | None = None,
    data: Any = None,
    values: Mapping[str, Any] | None = None,
    *,
    likelihood: str | None = None,
    response: str | None = None,
    fix: Sequence[str] | str = (),
    bounds: Mapping[str, Bounds] | Sequence[str] | str | None = None,
    prior: Mapping[str, Any] | None = None,
    sigma: str | float | Sequence[float] | Mapping[str, str | float | Sequence[float]] | None = None,
    absolute_sigma: bool = False,
    loss: str = "linear",
    loss_scale: str | float | None = None,
    family: str = "gaussian",
    trials: str | float | Sequence[float] | None = None,
    offset: str | float | Sequence[float] | None = None,
    x_sigma: Mapping[str, str | float | Sequence[float]] | None = None,
    by: str | None = None,
    weights: str | float | Sequence[float] | None = None,
    errors: str = INFORMATION,
    random: Sequence[str] | str = (),
    reml: bool = False,
    correlated: bool = False,
    derive: Mapping[str, str] | None = None,
    against: str | None = None,
    bootstrap: int = 0,
    jackknife: bool = False,
    cross_validate: int = 0,
    level: float = 0.95,
    profile: bool = False,
    contour: Sequence[str] | str = (),
    residuals: str | os.PathLike[str] | None = None,
    predict: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    starts: int = 32,
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    watch: ProgressCallback | None = None,
    **named: Any,
) -> Any:
    """Fit a model to data.

    The model is `y ~ f`, or `f` with the `response` given apart, or for several responses of a row `y1 ~ f; y2 ~ g`. Returns a `Fit`, also where the search does not
    converge; with `by`, the name of a column, a list of them, one for each group of rows in which that column is the
    same. Names that are columns of the data are predictors, the others are parameters.

    `data` is the path of a table or a list of them, a data frame, an Arrow table, or a mapping of columns to arrays.
    `values`, or keywords of any name, are the start values of parameters; an array among them is a column. Without a
    start value, parameters are searched from at most `starts` points, which the `seed` determines.

    Parameters in `fix`, a name or a list of names, keep their start values. `bounds` are pairs by name, None for no
    bound, or texts such as "a=0:1,b=0:". A `prior` is "500±50", or a tuple of a mean and its standard deviation, by
    name.

    `sigma` is a column, a number, or an array with a number for each row: standard deviations of the responses up to a
    common factor, or with `absolute_sigma` as they stand; those of several responses are by name, and without them
    their residuals may be `correlated`. `x_sigma` are those of predictors by name, of the same forms, for orthogonal
    distance regression.

    Instead of a model, a `likelihood` is the log density of a row, an expression of columns and parameters; the sum over
    the rows is maximised. `weights` of rows, of the forms of `sigma`, are factors of their log densities, and for
    measurements 1/sigma².

    `errors` says what standard errors are from: the `information`, or as `robust` or `cluster:COLUMN` the sandwich of
    rows or of clusters of them.

    A `loss` is one of `linear soft_l1 huber cauchy`; `loss_scale` is the residual, in units of `sigma`, from which on a
    robust one is no longer quadratic; without it, this follows from the median of the residuals. A `family` is one of
    `gaussian poisson binomial gamma negbinomial zipoisson beta weibull lognormal student multinomial ordinal`, of
    which the last two are for a column of categories. The response of a binomial family is 0
    or 1, or the share of events among `trials`, which have the forms of `sigma`, or it is written as events/trials. An
    `offset` is a known term on the scale of the link, added to a measurement, to the logarithm of a count, or to the
    log-odds of an event: an expression of columns, a number, or an array.

    In a model, `(1|column)` is a random effect, a number that varies by the column about 0; `(x|column)` has a slope by x
    too. `random` says which parameters vary about their means, as "Asym|Tree" or "ka,Cl|Subject", a text or a list of
    them. `reml` asks for restricted maximum likelihood, for linear models.

    `derive` are quantities to derive from the estimates, expressions of parameters by name, with standard errors by the
    delta method.

    `against` is another model of the same rows to compare with, or another family, or as "poisson: exp(a)" both. `bootstrap` is a number of samples of the rows, which the
    `seed` determines, and `jackknife` leaves out each row in turn; where errors are those of clusters, these are sampled.
    `cross_validate` is the number of parts of the rows, which the `seed` determines, each of which is predicted by a fit of
    the others.

    `level` is that of the confidence intervals, which with `profile` come from the profile likelihood. `contour`,
    "a,b" or a list of such texts, are pairs of parameters whose joint confidence regions are computed. `watch` is
    called with each iteration.

    `residuals` and `predict` are paths of tables to write, as CSV, JSON lines, Parquet or Arrow by the ending. The one
    has the fitted rows; the other has all rows with predictors, also those without a response, with the model's value,
    its standard error, its confidence band and the band of a further response. `plot` is the path of a picture.

    Raises BindingError for names and data that do not fit together, CallError and UsageError for invalid or
    contradicting arguments, and EvaluationError where the model has no finite value at the start.
    """
    if likelihood is not None:
        if model is not None or family != "gaussian":
            raise UsageError("a likelihood stands instead of a model and a family", hint="leave out one of them")
        model, family = likelihood, LOG_DENSITY
    else:
        checked_arguments.one_of(family, FAMILIES, "family")
    expect(model, str, "a model is a text")
    assert model is not None
    kind, clusters = errors_of(errors)
    for text, what in (
        (response, "'response' is a text"),
        (against, "'against' is a text"),
        (by, "'by' is the name of a column"),
    ):
        if text is not None:
            expect(text, str, what)
    given = {**checked_arguments.mapping_by_name(values, "'values'"), **named}
    columns = {name: value for name, value in given.items() if checked_arguments.is_array(value)}
    # Complex starts are replaced by their parts below.
    numbers: dict[str, Any] = {
        n: value if isinstance(value, complex) else checked_arguments.number(value, f"the start of '{n}'")
        for n, value in given.items()
        if n not in columns
    }
    table = table_of(data)
    # A column made from an array gets a title that is no name, except for an offset, whose title is read as an
    # expression: a name that neither the data nor the model have.
    term_title = unused_name("offset_of_rows", {*table.columns, *given, *re.findall(r"\w+", f"{model} {response}")})
    deviations = None if sigma is None else _sigma(sigma, columns)
    term = None if offset is None else str(_of_rows(offset, term_title, columns))
    weight = None if weights is None else _of_rows(weights, "weights=[…]", columns)
    of_trials = None if trials is None else _of_rows(trials, "trials=[…]", columns)
    of_predictors = {
        name: _of_rows(said, f"x_sigma={{'{name}': […]}}", columns)
        for name, said in checked_arguments.mapping_by_name(x_sigma, "'x_sigma'").items()
    }
    request = FitRequest(
        model,
        response,
        table.with_vectors(columns),
        Parameters(numbers, checked_arguments.names(fix, "'fix'"), bounds_of(bounds), _priors(prior)),
        Assumptions(
            family,
            loss,
            as_bool(absolute_sigma, "absolute_sigma"),
            checked_arguments.number(level, "'level'"),
            _loss_scale(loss_scale),
            kind,
        ),
        deviations,
        of_predictors,
        by,
        as_bool(profile, "profile"),
        (max_steps, max_elements),
        of_trials,
        term,
        derived=_texts(derive, "'derive'"),
        weights=weight,
        clusters=clusters,
        against=against,
        resampling=Resampling(bootstrap, as_bool(jackknife, "jackknife"), cross_validate),
        random=_random(random),
        restricted=as_bool(reml, "reml"),
        contours=_pairs(contour),
        correlated=as_bool(correlated, "correlated"),
    )
    files = FitFiles(
        checked_arguments.path(residuals, "'residuals'"),
        checked_arguments.path(predict, "'predict'"),
        checked_arguments.path(plot, "'plot'"),
    )
    found = execute(in_parts(request), SearchOptions(starts, seed, watch), files).fits
    return found[0] if by is None else found


def _sigma(said: Any, columns: dict[str, Any]) -> Any:
    """Like `_of_rows`, for the standard deviations of one response, or for those of several by name."""
    if not isinstance(said, Mapping):
        return _of_rows(said, "sigma=[…]", columns)
    return {
        name: _of_rows(own, f"sigma={{'{name}': […]}}", columns)
        for name, own in checked_arguments.mapping_by_name(said, "'sigma'").items()
    }


def _of_rows(said: Any, title: str, columns: dict[str, Any]) -> Any:
    """The name, expression or number that a request takes for standard deviations, trials or an offset; an array is
    added to the `columns` under the `title`."""
    if isinstance(said, str):
        return said
    if not checked_arguments.is_array(said):
        return checked_arguments.number(said, f"a number for each row, as in {title},")
    columns[title] = said
    return title


def _random(given: Any) -> list[str]:
    message = "'random' is a text, \"Asym|Tree\", or a list of them"
    expect(given, (str, Sequence), message)
    texts = [given] if isinstance(given, str) else [*given]
    for text in texts:
        expect(text, str, message)
    return texts


def _pairs(given: Any) -> list[tuple[str, str]]:
    expect(given, (str, Sequence), "'contour' is a text, \"a,b\", or a list of them")
    return [pair_of(said) for said in ([given] if isinstance(given, str) else given)]


def _texts(given: Any, what: str) -> dict[str, str]:
    found = checked_arguments.mapping_by_name(given, what)
    for name, text in found.items():
        expect(text, str, f"the formula of '{name}' is a text")
    return found


def _priors(given: Any) -> dict[str, tuple[float, float]]:
    found = {}
    for name, said in checked_arguments.mapping_by_name(given, "'prior'").items():
        uncertain = uncertain_values.uncertain_of_value(said, name)
        if uncertain is None:
            raise BindingError(f"the prior of '{name}' has no uncertainty", hint=f"write {name}=500±50")
        found[name] = prior_of(uncertain, name)
    return found


def _loss_scale(given: Any) -> float | None:
    """The threshold of a robust loss; None where it follows from the median of the residuals."""
    if given is None or (isinstance(given, str) and given == MEDIAN):
        return None
    return checked_arguments.number(given, "'loss_scale'")
