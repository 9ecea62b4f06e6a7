"""What is asked of a fit, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models.data import DataTable
from gradcli.models.fitting.fit_problems import Parameters
from gradcli.models.fitting.fitted import Ending, Fit
from gradcli.models.fitting.inference import Assumptions, Rows, Statistics


class FitRequest(NamedTuple):
    """What is asked: a model for the data of a table, with what is known of its parameters and of the rows.

    `sigma` is a column or a number, and so are those of `x_sigma`, by predictor; `by` is the column of groups; with
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


class Solved(NamedTuple):
    """Where a search ended, and there the rows and the statistics, which both stand at a `place` among some."""

    ending: Ending
    rows: Rows
    statistics: Statistics
    place: int = 0


class Concluded(NamedTuple):
    """A fit, and its solution, None where the rows could not be fitted."""

    fit: Fit
    solved: Solved | None


class Performed(NamedTuple):
    """The fits, one where there are no groups, and how many rows were left out, as a number is missing there."""

    fits: list[Fit]
    left_out: int
