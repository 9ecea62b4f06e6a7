"""The task of a worker: a posed fit and its rows as plain data that can be sent, and what the worker does with them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import IO, Any

import numpy as np

from gradcli import limits
from gradcli.errors import UsageError
from gradcli.io import output, system
from gradcli.models.fitting.derived_quantities import read_within
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.fit_runs import FitJob, run_portion
from gradcli.models.fitting.groups import group_reports
from gradcli.models.fitting.problem.fit_problems import PosedFit
from gradcli.models.fitting.problem.fit_texts import texts_of
from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.responses.density_problems import density_problem
from gradcli.models.fitting.search.estimation import SearchOptions
from gradcli.models.fitting.search.group_fits import GroupSearch


def serialised_fit(request: FitRequest, fitting: FitJob, plan: GroupSearch | None) -> dict[str, Any]:
    """All of a posed fit except its rows. Raises UsageError for numbers so large or small that they have units."""
    question, problem = fitting.question, fitting.question.problem
    if question.units is not None:
        raise UsageError("numbers as large or small as these are for one machine", hint="give the data in other units")
    return {
        "model": request.model,
        "response": request.response,
        "offset": request.offset,
        "limits": [*request.limits],
        "is_typed": problem.is_typed,
        "names": [*question.names],
        "parameters": [*problem.parameters],
        "start": encoded_array(question.start),
        "warnings": [*question.warnings],
        "known": problem.known._asdict(),
        "fixed": problem.fixed,
        "priors": [*map(encoded_array, problem.priors)],
        "bounds": [*map(encoded_array, (problem.low, problem.high))],
        "profile": fitting.profile,
        "derived": dict(request.derived),
        "starts": fitting.search.starts,
        "seed": fitting.search.seed,
        "plan": plan
        and {**plan._asdict(), "candidates": encoded_array(plan.candidates), "linear": [*map(int, plan.linear)]},
    }


def serialised_rows(fitting: FitJob) -> dict[str, Any]:
    """The rows of a posed fit."""
    problem = fitting.question.problem
    return {
        "columns": {name: encoded_array(column) for name, column in problem.columns.items()},
        "values": encoded_array(problem.response),
        "sigma": encoded_array(problem.sigma),
        "places": encoded_array(problem.places),
        "clusters": None if problem.clusters is None else encoded_array(problem.clusters),
        "deviations": {name: encoded_array(deviation) for name, deviation in fitting.deviations.items()},
    }


def fitting_of(question: Mapping[str, Any], rows: Mapping[str, Any]) -> FitJob:
    """The posed fit from which `serialised_fit` and `serialised_rows` were made."""
    with limits.within(*question["limits"]):
        known = Assumptions(**question["known"])
        text, density, *_ = texts_of(
            question["model"], question["response"], question["offset"], known, rows["columns"]
        )
    mean, u = map(decoded_array, question["priors"])
    low, high = map(decoded_array, question["bounds"])
    kind: Callable[..., Problem] = Problem if not known.is_density else partial(density_problem, density=density)
    problem = kind(
        text.model,
        {name: decoded_array(column) for name, column in rows["columns"].items()},
        decoded_array(rows["values"]),
        question["parameters"],
        known,
        sigma=decoded_array(rows["sigma"]),
        fixed=question["fixed"],
        priors=(mean, u),
        bounds=(low, high),
        limits=tuple(question["limits"]),
        places=decoded_array(rows["places"]),
        is_typed=question["is_typed"],
    )
    if rows["clusters"] is not None:
        problem.clusters = decoded_array(rows["clusters"])
    posed = PosedFit(
        problem, question["names"], decoded_array(question["start"]), text.response_name, question["warnings"]
    )
    deviations = {name: decoded_array(deviation) for name, deviation in rows["deviations"].items()}
    search = SearchOptions(question["starts"], question["seed"])
    derived = read_within(question["derived"], posed.names, tuple(question["limits"]))
    return FitJob(posed, deviations, question["profile"], search, derived)


def plan_of_data(question: Mapping[str, Any]) -> GroupSearch | None:
    """The search plan of groups from `serialised_fit`; None where each group is searched alone."""
    told = question["plan"]
    return told and GroupSearch(**{**told, "candidates": decoded_array(told["candidates"])})


def encoded_array(array: Any) -> Any:
    """An array of numbers as its type, its shape and its little-endian bytes in base64; a single number as a float."""
    if not np.ndim(array):
        return float(array)
    array = np.ascontiguousarray(array)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"type": little.dtype.str, "shape": [*array.shape], "bytes": base64.b64encode(little.tobytes()).decode()}


def decoded_array(told: Any) -> Any:
    if isinstance(told, float):
        return told
    found = np.frombuffer(base64.b64decode(told["bytes"]), told["type"]).reshape(told["shape"])
    return found.astype(found.dtype.newbyteorder("="))


def compute(task: Mapping[str, Any]) -> dict[str, Any]:
    """Write the fits of the `groups`, whose rows follow each other, to the file `target`, and return their account."""
    question, groups, target = task["question"], task["groups"], task["target"]
    fitting = fitting_of(question, task["rows"])
    ends = np.cumsum([group["rows"] for group in groups], dtype=int)
    rows = {group["name"]: np.arange(end - group["rows"], end) for group, end in zip(groups, ends.tolist())}
    concluded = run_portion(fitting, rows, plan_of_data(question))
    fits = [replace(each.fit, left_out=group["left_out"]) for each, group in zip(concluded, groups)]

    def write(stream: IO[bytes]) -> None:
        group_reports.write(fits, question["model"], task["by"], task["format"], stream)

    # On disk before the manifest records it.
    output.write_atomically(target, write, on_disk=True)
    rows_in = int(sum(group["rows"] for group in groups))
    return {"rows_in": rows_in, **group_reports.summary_of(fits).as_json(), "bytes": system.status(target).st_size}
