"""Poses fits with random effects: checks of the options, the levels, and the likelihood of the design of the rows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.models.data import Categories, Data
from gradcli.models.fitting.derived_quantities import DerivedQuantity
from gradcli.models.fitting.effects.effect_structure import Covariances, EffectStructure, Levels
from gradcli.models.fitting.effects.factor_problems import FactorProblem
from gradcli.models.fitting.effects.laplace_likelihood import LaplaceLikelihood
from gradcli.models.fitting.effects.row_costs import RowCosts, constant_cost
from gradcli.models.fitting.effects.row_designs import RowDesign
from gradcli.models.fitting.fit_requests import FitRequest, refuse
from gradcli.models.fitting.notation.random_terms import RandomTerm, check_varied
from gradcli.models.fitting.problem.factors import level_texts
from gradcli.models.fitting.problem.fit_problems import PosedFit, program_values
from gradcli.models.fitting.problem.fit_texts import FitTexts
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.search.estimation import SearchOptions
from gradcli.models.fitting.statistics.inference import INFORMATION
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.new_tables import unused_name


class MixedFit(NamedTuple):
    """A posed fit with random effects: the one without them, `question`; the programs of the model; its data; the terms
    with their levels and the factors of their effects, `[n]` each; whether the likelihood is the restricted one; and
    what a `FitJob` has besides."""

    question: PosedFit
    texts: FitTexts
    data: Data
    levels: Sequence[Levels]
    factors: Sequence[Any]
    restricted: bool
    profile: bool
    search: SearchOptions
    derived: Sequence[DerivedQuantity]


def check_random(request: FitRequest, texts: FitTexts) -> None:
    """Raise UsageError for options that random effects lack, and for `--reml` without them."""
    if texts.random is None:
        if request.restricted:
            raise UsageError("REML is for random effects", hint="write them into the model, as (1|column)")
        return
    known = request.known
    options = {
        "--x-sigma": request.x_sigma,
        "--loss": known.is_robust,
        "--errors": known.errors != INFORMATION,
        "--contour": request.contours,
        "--against": request.against is not None,
        "--cross-validate": request.resampling.folds,
        "--absolute-sigma": known.absolute,
    }
    refuse(options, "random effects")
    if request.resampling.bootstrap or request.resampling.jackknife:
        sampled_column(texts.random.terms)
    if request.restricted and known.family != "gaussian":
        raise UsageError("REML is for the family gaussian", hint="leave out --reml")
    if request.restricted:
        given = request.parameters
        options = {"--prior": given.priors, "--bounds": given.bounds, "--profile": request.profile}
        refuse(options, "REML, whose likelihood is not one of the parameters")
    if request.profile and request.derived:
        raise UsageError("derived quantities have no profile with random effects", hint="leave out --profile")


def sampled_column(terms: Sequence[RandomTerm]) -> str:
    """The column whose levels are sampled, within which all effects vary. Raises UsageError where there is none."""
    common = [name for name in terms[0].columns if all(name in term.columns for term in terms)]
    if not common:
        raise UsageError(
            "samples are of the levels of one column, and the random effects vary by several that are not nested",
            hint="leave out --bootstrap and --jackknife",
        )
    return common[0]


def sampled_data(data: Data, column: str, units: Sequence[Any]) -> Data:
    """The rows of some levels of a column, given as the indices of their rows, which are levels of their own where one is
    there more than once."""
    rows = np.concatenate(units)
    texts = {name: own.at(rows) for name, own in data.texts.items()}
    of_unit = np.repeat(np.arange(len(units)), [len(own) for own in units])
    texts[column] = Categories([f"{k}" for k in range(len(units))], of_unit)
    return Data({name: numbers[rows] for name, numbers in data.columns.items()}, data.rows[rows], 0, texts)


def random_columns(terms: Sequence[RandomTerm], columns: Sequence[str]) -> list[str]:
    """The columns of numbers that the effects are multiplied by.

    Raises BindingError for another name.
    """
    found: list[str] = []
    for term in terms:
        for effect in term.effects:
            if effect.factor is None:
                continue
            for name, read in scope.free_names(parse_charged(effect.factor)).items():
                if name in columns:
                    found.append(name)
                elif name not in scope.CONSTANTS:
                    raise BindingError(
                        f"'{name}' in a random effect of '{term.group}' is no column of the data",
                        hint="a parameter that varies stands in --random 'NAME|COLUMN'",
                        span=read.span,
                        source=effect.factor,
                    )
    return found


def posed_mixed(
    question: PosedFit,
    texts: FitTexts,
    data: Data,
    request: FitRequest,
    search: SearchOptions,
    derived: Sequence[DerivedQuantity],
) -> MixedFit:
    """Pose a fit with random effects, from the one without them.

    Raises BindingError for an effect on what is no parameter, and for levels that are too few, or more than the rows.
    """
    assert texts.random is not None
    if question.units is not None:
        raise UsageError(
            "numbers as large or small as these have no random effects", hint="give the data in other units"
        )
    problem = question.problem
    base = problem.base if isinstance(problem, FactorProblem) else (*problem.parameters, *problem.fixed)
    check_varied(texts.random.terms, texts.random.names, texts.text.model, base)
    levels = [_levels(term, data) for term in texts.random.terms]
    _check_levels(levels, request.known.is_scaled, len(data.rows))
    factors = [
        np.ones(len(data.rows)) if effect.factor is None else _factor(effect.factor, data, request.limits)
        for term in texts.random.terms
        for effect in term.effects
    ]
    return MixedFit(question, texts, data, levels, factors, request.restricted, request.profile, search, derived)


def _factor(text: str, data: Data, limits: tuple[int, int]) -> Any:
    found = np.broadcast_to(np.asarray(program_values(parse_charged(text), data, limits), "float64"), len(data.rows))
    bad = ~np.isfinite(found)
    if bad.any():
        raise EvaluationError(
            f"{text}, the factor of a random effect, is not finite in row {data.rows[bad.argmax()] + 1}"
        )
    return found


def _levels(term: RandomTerm, data: Data) -> Levels:
    """The levels of a term, or the combinations of levels that there are, in the order of the rows."""
    own = [data.texts[column] for column in term.columns]
    key = np.zeros(len(data.rows), "int64")
    for texts in own:
        key = key * len(texts.names) + texts.codes
    _, first, codes = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    parts = [level_texts(texts.at(first[order]).texts()) for texts in own]
    names = [*map(":".join, zip(*parts))]
    if len({*names}) < len(names):
        raise BindingError(
            f"two combinations of levels of '{term.group}' have one text", hint="write the levels without ':'"
        )
    return Levels(term, names, np.argsort(order)[codes])


def _check_levels(levels: Sequence[Levels], is_scaled: bool, rows: int) -> None:
    for each in levels:
        count, group = len(each.names), each.term.group
        if count < 2:
            raise BindingError(
                f"'{group}' is the same in all rows, and a random effect varies by it",
                hint="leave out the random effect",
            )
        if is_scaled and count * len(each.term.effects) >= rows:
            raise BindingError(
                f"the rows, {rows:,}, are no more than the random effects of '{group}', {count:,} levels with "
                f"{len(each.term.effects)} each: they cannot be told from residuals",
                hint="leave out the random effect, or some of it",
            )


class PosedEffects(NamedTuple):
    """The design of the rows of a fit, its covariances, the row variables that are constant, and the place of the
    logarithm of the residual standard deviation, None for families without one."""

    design: RowDesign
    covariances: Covariances
    constants: Mapping[str, float]
    spread: str | None


def posed_effects(job: MixedFit) -> PosedEffects:
    problem = job.question.problem
    random = job.texts.random
    assert random is not None
    p, structure = len(problem.parameters), EffectStructure(job.levels)
    every = [*problem.parameters, *problem.fixed]
    slots = dict(problem.slots) if isinstance(problem, FactorProblem) else {name: i for i, name in enumerate(every)}
    varied = {effect.name for each in job.levels for effect in each.term.effects}
    constants = {
        name: float(problem.fixed[every[slot]])
        for name, slot in slots.items()
        if not np.ndim(slot) and slot >= p and name not in varied
    }
    names = [*(name for name in slots if name not in constants), *random.names]
    spread = None
    if problem.known.family == "gaussian":
        spread = unused_name(
            "log_s", {*names, *constants, *job.data.columns, *re.findall(r"\w+", mixed_model(job).source)}
        )
        # The places before it are those of free and fixed numbers and of unknown levels.
        slots[spread] = len(every) + 1
        names.append(spread)
    design = RowDesign(names, slots, p, problem.count, structure, job.factors)
    return PosedEffects(design, Covariances(structure), constants, spread)


def numbers_of(problem: Problem, point: Any, spread: float) -> Any:
    """All numbers of the design: free parameters, fixed ones, nan for unknown levels, and `spread`."""
    return np.array([*point, *problem.fixed.values(), math.nan, spread])


def row_problem(job: MixedFit, posed: PosedEffects) -> Problem:
    """The model of the mean as a problem whose parameters are the row variables."""
    problem = job.question.problem
    model = mixed_model(job)
    reads = scope.free_names(model)
    return Problem(
        model,
        {name: column for name, column in job.data.columns.items() if name in reads},
        problem.response,
        [name for name in posed.design.names if name != posed.spread],
        problem.known,
        fixed=posed.constants,
        limits=problem.limits,
        places=problem.places,
    )


def mixed_model(job: MixedFit) -> Any:
    assert job.texts.mixed is not None
    return job.texts.mixed.model


def laplace_likelihood(job: MixedFit, posed: PosedEffects, start: Any, spread: float) -> LaplaceLikelihood:
    """Laplace's approximation of the likelihood, as a function of the free parameters, the `spread` where there is one,
    and the parameters of the covariances; `start` `[p]` and `spread` are values to begin from."""
    problem, design = job.question.problem, posed.design
    free = [*range(design.count)]
    weight = 1 / np.square(problem.sigma)
    if posed.spread is not None:
        weight = problem.sigma
        free.append(design.slots[posed.spread])
    costs = RowCosts(
        mixed_model(job),
        problem.known.family,
        design.names,
        design.varied,
        job.data.columns,
        posed.constants,
        problem.response,
        weight,
        problem.limits,
        posed.spread,
    )
    constant = constant_cost(problem.known.family, problem.response, np.broadcast_to(weight, design.rows))
    numbers = numbers_of(problem, start, spread)
    return LaplaceLikelihood(design, posed.covariances, costs, constant, numbers, free, problem.priors)
