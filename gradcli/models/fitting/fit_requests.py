"""The request of a fit with its checks, and the records of its results."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.errors import BindingError, UsageError, did_you_mean, expect, expect_callable
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import checked_arguments
from gradcli.models.data import DataTable
from gradcli.models.fitting.problem.fit_problems import Parameters
from gradcli.models.fitting.problem.likelihoods import FAMILIES, LOG_DENSITY, LOSSES, MEANS, Assumptions, likelihood
from gradcli.models.fitting.results.fit_results import Fit
from gradcli.models.fitting.search.estimation import SearchEnd, SearchEnds, SearchOptions
from gradcli.models.fitting.statistics.inference import (
    CLUSTER,
    ERRORS,
    INFORMATION,
    FitRows,
    Statistics,
    cluster_column,
)
from gradcli.models.uncertainty.uncertain_values import Uncertain
from gradcli.named_tuples import NamedTuple


class Resampling(NamedTuple):
    """The number of `bootstrap` samples, 0 for none; whether to compute the `jackknife`; and the number of `folds` of a
    cross-validation, 0 for none."""

    bootstrap: int = 0
    jackknife: bool = False
    folds: int = 0


class FitRequest(NamedTuple):
    """A request to fit a model to the data of a table, with settings of the parameters and assumptions about the rows.

    `sigma`, `trials`, `weights` and the values of `x_sigma`, which are by predictor, are names of columns or numbers. `by`
    is the column of groups, `clusters` that of clusters of rows, `offset` an expression of columns, `derived` are
    expressions of parameters by name, and `against` is another model to compare with. `events` are the doses of
    differential equations, which may have a `sigma` for each response. `random` says which parameters vary by which
    columns, as `Asym|Tree`, beside the random effects in the model; `restricted` asks for REML. `contours` are pairs of
    parameters whose confidence regions are wanted. `correlated` asks for the correlations of several responses. With
    `profile` intervals come from the profile likelihood. `limits` are the largest numbers of steps and of array
    elements for a row.
    """

    model: str
    response: str | None
    table: DataTable
    parameters: Parameters
    known: Assumptions
    sigma: str | float | Mapping[str, str | float] | None = None
    x_sigma: Mapping[str, str | float] = {}
    by: str | None = None
    profile: bool = False
    limits: tuple[int, int] = (MAX_STEPS, MAX_ELEMENTS)
    trials: str | float | None = None
    offset: str | None = None
    events: DataTable | None = None
    derived: Mapping[str, str] = {}
    weights: str | float | None = None
    clusters: str | None = None
    against: str | None = None
    resampling: Resampling = Resampling()
    random: Sequence[str] = ()
    restricted: bool = False
    contours: Sequence[tuple[str, str]] = ()
    correlated: bool = False


class FitSolution(NamedTuple):
    """The end of a search, and the rows and statistics there, in which this fit is at index `place`."""

    ending: SearchEnd
    rows: FitRows
    statistics: Statistics
    place: int = 0

    def alone(self) -> FitSolution:
        """The same with the rows and statistics of this fit alone."""
        return FitSolution(self.ending, self.rows.chosen(self.place), self.statistics.chosen(self.place))


class Solutions(NamedTuple):
    """The ends of the searches of g fits, and their rows and statistics there."""

    endings: SearchEnds
    rows: FitRows
    statistics: Statistics


class FitOutcome(NamedTuple):
    """A fit, and its solution at index `place` of `among`, which is None where the rows could not be fitted."""

    fit: Fit
    among: Solutions | None = None
    place: int = 0

    @property
    def solved(self) -> FitSolution | None:
        found, place = self.among, self.place
        return None if found is None else FitSolution(found.endings.one(place), found.rows, found.statistics, place)


class FitResults(NamedTuple):
    """The fits, a single one where there are no groups, and the number of rows left out because a number is missing."""

    fits: list[Fit]
    left_out: int


def check(request: FitRequest, search: SearchOptions) -> None:
    """Check a request.

    Raises UsageError for invalid options and for options that exclude each other, CallError for arguments of a wrong
    type, and BindingError for an unknown column of groups or clusters.
    """
    known = request.known
    if known.family != LOG_DENSITY:
        checked_arguments.one_of(known.family, FAMILIES, "family")
    checked_arguments.one_of(known.loss, LOSSES, "loss")
    likelihood(known.family, known.loss)
    if not 0 < known.level < 1:
        raise UsageError(f"there is no level {known.level:g}", hint="it lies between 0 and 1: 0.95")
    checked_arguments.integer(search.starts, "the number of starts", 1)
    checked_arguments.integer(search.seed, "the seed", 0)
    if search.watch is not None:
        expect_callable(search.watch, "what watches the iterations is a function")
    limits.check(max_steps=request.limits[0], max_elements=request.limits[1])
    _check_loss(request)
    _check_errors_of_predictors(request)
    _check_standard_errors(request)
    _check_comparisons(request)
    _check_weights(request)
    _check_density(request)
    _check_family(request)
    if request.by is not None and request.by not in request.table.columns:
        columns = request.table.columns
        hint = did_you_mean(request.by, columns, f"they have {', '.join(columns) or 'none'}")
        raise BindingError(f"the data have no column '{request.by}' of groups", hint=hint)


def _check_loss(request: FitRequest) -> None:
    known = request.known
    if known.loss_scale is not None and not known.is_robust:
        raise UsageError("the loss linear has no scale", hint=f"--loss {' or '.join(LOSSES[1:])} has one")
    if known.loss_scale is not None and not 0 < known.loss_scale < math.inf:
        raise UsageError(
            f"there is no scale {known.loss_scale:g} of a loss",
            hint="it is a residual from which on the loss is robust, above 0, or mad",
        )
    if request.profile and known.loss != "linear":
        raise UsageError("a robust loss has no likelihood, and so no profile", hint="leave out one of them")


def _check_errors_of_predictors(request: FitRequest) -> None:
    if not request.x_sigma:
        return
    if not request.known.is_least_squares:
        raise UsageError("errors of the predictors are for least squares", hint="leave out the loss, or the family")
    if request.parameters.priors:
        raise UsageError("errors of the predictors cannot stand beside a prior", hint="leave out one of them")
    if request.profile:
        raise UsageError("there is no profile with errors of the predictors", hint="leave out one of them")


def _check_family(request: FitRequest) -> None:
    """Check the standard deviations and the trials, which not every family has."""
    known = request.known
    has_sigma, has_trials = request.sigma is not None, request.trials is not None
    if known.family == LOG_DENSITY and (has_sigma or known.absolute):
        raise UsageError("a likelihood has no standard deviation", hint="it reads the column itself")
    if known.family == LOG_DENSITY and has_trials:
        raise UsageError("a likelihood has no trials", hint="it reads the column itself")
    if known.family != "gaussian" and (has_sigma or known.absolute):
        instead = "--trials gives the weights of binomial rows" if known.family == "binomial" else "leave out --sigma"
        raise UsageError(f"the family {known.family} has no standard deviation", hint=instead)
    if known.family != "binomial" and has_trials:
        raise UsageError(f"the family {known.family} has no trials", hint="--family binomial has them")
    if known.absolute and not has_sigma:
        raise UsageError("--absolute-sigma takes standard deviations as they stand", hint="give them by --sigma")


def _check_standard_errors(request: FitRequest) -> None:
    """Raise UsageError for options that exclude robust standard errors, and BindingError for an unknown column of
    clusters."""
    known = request.known
    if known.errors == INFORMATION:
        return
    if known.is_robust:
        raise UsageError("a robust loss has errors of its own", hint="leave out --errors, or --loss")
    if request.profile:
        raise UsageError("a profile of the likelihood has no robust errors", hint="leave out one of them")
    if request.x_sigma:
        raise UsageError("errors of the predictors have no robust errors", hint="leave out one of them")
    columns = request.table.columns
    if known.errors == CLUSTER and request.clusters not in columns:
        hint = did_you_mean(str(request.clusters), columns, f"they have {', '.join(columns) or 'none'}")
        raise BindingError(f"the data have no column '{request.clusters}' of clusters", hint=hint)


def _check_comparisons(request: FitRequest) -> None:
    """Check contours, comparisons and resampling: raise UsageError for options that exclude each other and for invalid
    counts, and CallError for counts that are not whole."""
    checked_arguments.integer(request.resampling.bootstrap, "the number of bootstrap samples", 0)
    checked_arguments.integer(request.resampling.folds, "the number of folds", 0)
    options = []
    if request.contours:
        options.append("--contour")
        if request.known.is_robust or request.known.errors != INFORMATION:
            raise UsageError("a contour is of the likelihood", hint="leave out --contour, or --loss or --errors")
    if request.against is not None:
        options.append("--against")
        if request.known.is_robust or request.parameters.priors or request.known.errors != INFORMATION:
            raise UsageError(
                "tests of models rest on the likelihood", hint="leave out --against, or --loss, --prior or --errors"
            )
    if request.resampling.bootstrap:
        options.append("--bootstrap")
    if request.resampling.jackknife:
        options.append("--jackknife")
    if request.resampling.folds:
        options.append("--cross-validate")
        if request.known.family not in MEANS:
            what = "a likelihood" if request.known.family == LOG_DENSITY else f"the family {request.known.family}"
            raise UsageError(
                f"--cross-validate compares responses with means, and {what} has no model of the mean",
                hint=f"it is for {', '.join(MEANS)}",
            )
        if request.resampling.folds < 2:
            raise UsageError("a cross-validation has at least 2 folds", hint="--cross-validate 10")
    for option in options:
        if request.by is not None:
            raise UsageError(f"{option} is for one fit, and --by makes several", hint="leave out one of them")
        if request.x_sigma:
            raise UsageError(f"{option} is not for errors of the predictors", hint="leave out --x-sigma")


def _check_weights(request: FitRequest) -> None:
    if request.weights is None:
        return
    if request.sigma is not None:
        raise UsageError(
            "--weights and --sigma both weight the rows", hint="the weight is 1/sigma²: leave out one of them"
        )
    if request.known.family == "binomial":
        raise UsageError("the weights of binomial rows are their trials", hint="--trials gives them")


def _check_density(request: FitRequest) -> None:
    """Raise UsageError for a response and an offset of a likelihood."""
    if request.known.family != LOG_DENSITY:
        return
    if request.response is not None:
        raise UsageError("a likelihood reads its response itself", hint="leave out --response")
    if request.offset is not None:
        raise UsageError("a likelihood has no link, and so no offset", hint="write it into the likelihood")


def errors_of(said: str) -> tuple[str, str | None]:
    """The kind of standard errors, and the column of clusters, from what is `said`. Raises UsageError for others, and
    CallError for what is no text."""
    expect(said, str, "a kind of standard error is a text")
    column = cluster_column(said)
    if column is not None:
        return CLUSTER, column
    return checked_arguments.one_of(said, ERRORS, "kind of standard error, beside cluster:COLUMN,"), None


def pair_of(said: str) -> tuple[str, str]:
    """The two parameters of a contour, as in `a,b`. Raises UsageError for another number of them, and CallError for
    what is no text."""
    expect(said, str, "a contour is of two parameters, 'a,b'")
    names = [name.strip() for name in said.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise UsageError(f"a contour is of two parameters, and '{said}' is not two", hint="--contour a,b")
    return names[0], names[1]


def check_contours(pairs: Sequence[tuple[str, str]], names: Sequence[str], fixed: Collection[str]) -> None:
    """Raise BindingError for a contour of a name that is no parameter, or one that is kept at its value."""
    for name in (name for pair in pairs for name in pair):
        if name not in names:
            hint = did_you_mean(name, names, f"its parameters are {', '.join(names)}")
            raise BindingError(f"there is a contour of '{name}', and the model has no such parameter", hint=hint)
        if name in fixed:
            raise BindingError(
                f"there is a contour of '{name}', which is kept at its value", hint="leave out one of them"
            )


def refuse(options: Mapping[str, object], what: str) -> None:
    """Raise UsageError for the first option that is given, since it is not for `what`."""
    for option, given in options.items():
        if given:
            raise UsageError(f"{option} is not for {what}", hint="leave it out")


def check_used(request: FitRequest, needed: Sequence[str]) -> None:
    """Raise BindingError for a column or a name of one that was given and that nothing reads."""
    for name in request.table.given:
        if name not in needed and name != request.by:
            raise BindingError(f"'{name}' is given a column, and nothing reads it", hint="leave it out")


def prior_of(known: Uncertain, name: str) -> tuple[float, float]:
    """The mean and the standard deviation of a prior. Raises BindingError where it is an array, or complex."""
    if arrays.is_complex(known.value):
        raise BindingError(f"the prior of '{name}' is complex, and parameters are real")
    if arrays.shape(known.value):
        raise BindingError(f"the prior of '{name}' is of several numbers, and a parameter is one")
    return float(known.value), float(known.u)
