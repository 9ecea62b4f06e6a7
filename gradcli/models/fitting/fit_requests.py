"""What is asked of a fit, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradcli import arrays, limits
from gradcli.errors import BindingError, UsageError, did_you_mean, expect_callable
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import arguments
from gradcli.models.data import DataTable
from gradcli.models.fitting.estimation import SearchOptions
from gradcli.models.fitting.fit_problems import Parameters
from gradcli.models.fitting.fitted import Ending, Endings, Fit
from gradcli.models.fitting.inference import Assumptions, Rows, Statistics
from gradcli.models.fitting.likelihoods import FAMILIES, LOSSES, likelihood
from gradcli.models.uncertainty.uncertain_values import Uncertain


class FitRequest(NamedTuple):
    """What is asked: a model for the data of a table, with what is known of its parameters and of the rows.

    `sigma` is a column or a number, and so are `trials` and those of `x_sigma`, by predictor; `by` is the column of groups; `offset` is an
    expression of columns. With
    `profile` intervals are those of the likelihood's profile. A row may take so many steps and array elements.
    """

    model: str
    response: str | None
    table: DataTable
    parameters: Parameters
    known: Assumptions
    sigma: str | float | None = None
    x_sigma: Mapping[str, str | float] = {}
    by: str | None = None
    profile: bool = False
    limits: tuple[int, int] = (MAX_STEPS, MAX_ELEMENTS)
    trials: str | float | None = None
    offset: str | None = None


class Solved(NamedTuple):
    """Where a search ended, and there the rows and the statistics, which both stand at a `place` among some."""

    ending: Ending
    rows: Rows
    statistics: Statistics
    place: int = 0

    def alone(self) -> Solved:
        """Without the others."""
        return Solved(self.ending, self.rows.chosen(self.place), self.statistics.chosen(self.place))


class Solutions(NamedTuple):
    """Where the searches of g fits ended, and there the rows and the statistics."""

    endings: Endings
    rows: Rows
    statistics: Statistics


class Concluded(NamedTuple):
    """A fit, and its solution, which stands at a `place` among some, None where the rows could not be fitted."""

    fit: Fit
    among: Solutions | None = None
    place: int = 0

    @property
    def solved(self) -> Solved | None:
        found, place = self.among, self.place
        return None if found is None else Solved(found.endings.one(place), found.rows, found.statistics, place)


class Performed(NamedTuple):
    """The fits, one where there are no groups, and how many rows were left out, as a number is missing there."""

    fits: list[Fit]
    left_out: int


def check(request: FitRequest, search: SearchOptions) -> None:
    """Raise UsageError for what is asked for and is none, or cannot be asked together, CallError for what is of another
    type, and BindingError for a column of groups that is not there."""
    known = request.known
    arguments.one_of(known.family, FAMILIES, "family")
    arguments.one_of(known.loss, LOSSES, "loss")
    likelihood(known.family, known.loss)
    if not 0 < known.level < 1:
        raise UsageError(f"there is no level {known.level:g}", hint="it lies between 0 and 1: 0.95")
    arguments.whole(search.starts, "the number of starts", 1)
    arguments.whole(search.seed, "the seed", 0)
    if search.watch is not None:
        expect_callable(search.watch, "what watches the iterations is a function")
    limits.check(max_steps=request.limits[0], max_elements=request.limits[1])
    if known.loss_scale is not None and not known.is_robust:
        raise UsageError("the loss linear has no scale", hint=f"--loss {' or '.join(LOSSES[1:])} has one")
    if known.loss_scale is not None and not 0 < known.loss_scale < math.inf:
        raise UsageError(
            f"there is no scale {known.loss_scale:g} of a loss",
            hint="it is a residual from which on the loss is robust, above 0, or mad",
        )
    if request.profile and known.loss != "linear":
        raise UsageError("a robust loss has no likelihood, and so no profile", hint="leave out one of them")
    if request.x_sigma and not known.is_least_squares:
        raise UsageError("errors of the predictors are for least squares", hint="leave out the loss, or the family")
    if request.x_sigma and request.parameters.priors:
        raise UsageError("errors of the predictors cannot stand beside a prior", hint="leave out one of them")
    if request.x_sigma and request.profile:
        raise UsageError("there is no profile with errors of the predictors", hint="leave out one of them")
    if known.family != "gaussian" and (request.sigma is not None or known.absolute):
        instead = "--trials gives the weights of binomial rows" if known.family == "binomial" else "leave out --sigma"
        raise UsageError(f"the family {known.family} has no standard deviation", hint=instead)
    if known.family != "binomial" and request.trials is not None:
        raise UsageError(f"the family {known.family} has no trials", hint="--family binomial has them")
    if known.absolute and request.sigma is None:
        raise UsageError("--absolute-sigma takes standard deviations as they stand", hint="give them by --sigma")
    if request.by is not None and request.by not in request.table.columns:
        columns = request.table.columns
        hint = did_you_mean(request.by, columns, f"they have {', '.join(columns) or 'none'}")
        raise BindingError(f"the data have no column '{request.by}' of groups", hint=hint)


def check_used(request: FitRequest, needed: Sequence[str]) -> None:
    """Raise BindingError for a column that was given by its name, and that nothing needs."""
    for name in request.table.given:
        if name not in needed and name != request.by:
            raise BindingError(f"'{name}' is given a column, and nothing reads it", hint="leave it out")


def prior_of(known: Uncertain, name: str) -> tuple[float, float]:
    """The mean and the standard deviation of a parameter. Raises BindingError for those of several numbers."""
    if arrays.shape(known.value):
        raise BindingError(f"the prior of '{name}' is of several numbers, and a parameter is one")
    return float(known.value), float(known.u)
