"""Fits: the parameters of a model for which it is nearest to data, and what can be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import BindingError
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import uncertain_values
from gradcli.models.data import Data, Table, table_of
from gradcli.models.estimation import Search, estimated
from gradcli.models.fit_problems import Parameters, Posed, names_of, posed
from gradcli.models.fitted import Ending, Fit, fitted
from gradcli.models.inference import Assumptions, Rows, Statistics, statistics
from gradcli.models.model_texts import read_model
from gradcli.models.problems import Problem
from gradcli.models.results import Watcher


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
    level: float = 0.95,
    starts: int = 32,
    seed: int = 0,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    watch: Watcher | None = None,
    **named: Any,
) -> Fit:
    """Fit a model `y ~ f`, or `f` with the `response` apart, to data; see `Fit` for what comes back, also where the search
    does not converge.

    Names that are columns of the data are data, the others parameters. The data are the path of a table, or a list of
    them, a data frame, an Arrow table, or a mapping of columns to arrays. `values`, or keywords of any name, are where the
    search for parameters begins; those without one are found, from at most `starts` points, which a `seed` chooses. An
    array among them is a column.
    Those of `fix` stay at their values; `bounds` are pairs, None for no bound; a `prior` is "500±50", or a mean with its
    standard deviation. `sigma` is a column or a number: standard deviations up to a common factor, or with
    `absolute_sigma` as they stand. A `loss` is one of `linear soft_l1 huber cauchy`, a `family` of `gaussian poisson
    binomial`; `level` is that of the confidence intervals.

    Raises BindingError for names and data that do not fit together, and EvaluationError where the model has no finite
    value at the start.
    """
    np = arrays.numpy_namespace()
    given = {**(values or {}), **named}
    vectors = {name: value for name, value in given.items() if np.ndim(value)}
    numbers = {name: float(value) for name, value in given.items() if name not in vectors}
    table = table_of(data).with_vectors(vectors)
    parameters = Parameters(numbers, tuple(fix), _bounds(bounds or {}), _priors(prior or {}))
    known = Assumptions(family, loss, absolute_sigma, level)
    most = max_steps, max_elements
    question, _ = asked(model, response, table, parameters, known, sigma, most)
    ending = estimated(question.problem, question.start, Search(starts, seed, watch))
    return concluded(question, ending)


def concluded(question: Posed, ending: Ending) -> Fit:
    """What is said of a fit that ended so."""
    problem = question.problem
    return fitted(question.names, problem.fixed, [ending], statistics_of(problem, ending))[0]


def asked(
    model: str,
    response: str | None,
    table: Table,
    parameters: Parameters,
    known: Assumptions,
    sigma: str | float | None,
    most: tuple[int, int],
    others: Sequence[str] = (),
) -> tuple[Posed, Data]:
    """The problem, and its data; `others` are columns that must have numbers too."""
    with limits.within(*most):
        text = read_model(model, response)
        named = [sigma] if isinstance(sigma, str) else []
        names = names_of(text, table, parameters, [*named, *others])
    data = table.taken(names.needed)
    deviations = data.columns[sigma] if isinstance(sigma, str) else 1.0 if sigma is None else float(sigma)
    return posed(text, names, data, parameters, known, deviations, most), data


def statistics_of(problem: Problem, ending: Ending) -> Statistics:
    """What can be said of estimates."""
    np = arrays.numpy_namespace()
    free = ending.free
    value, first, second = problem.second(ending.point)
    i, j = np.triu_indices(len(free))
    mean, u = problem.priors
    rows = Rows(
        value[None],
        problem.response[None],
        np.broadcast_to(np.asarray(problem.sigma, "float64"), value.shape)[None],
        np.ones((1, len(value)), "bool"),
        first[None][..., free],
        second[None][..., free[i] & free[j]],
        ((ending.point - mean)[None, free], u[None, free]),
    )
    return statistics(rows, problem.known)


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
