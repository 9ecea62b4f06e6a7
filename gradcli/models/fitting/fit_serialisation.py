"""Converts a posed fit of groups of rows to plain data that can be sent to workers, and back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli import limits
from gradcli.errors import UsageError
from gradcli.models.fitting.estimation import SearchOptions
from gradcli.models.fitting.fit_problems import PosedFit
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.fit_runs import Fitting
from gradcli.models.fitting.group_fits import GroupSearch
from gradcli.models.fitting.inference import Assumptions
from gradcli.models.fitting.model_texts import read_model
from gradcli.models.fitting.offsets import with_offset
from gradcli.models.fitting.problems import Problem


def question_data(request: FitRequest, fitting: Fitting, plan: GroupSearch | None) -> dict[str, Any]:
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
        "start": array_data(question.start),
        "warnings": [*question.warnings],
        "known": problem.known._asdict(),
        "fixed": problem.fixed,
        "priors": [*map(array_data, problem.priors)],
        "bounds": [*map(array_data, (problem.low, problem.high))],
        "profile": fitting.profile,
        "starts": fitting.search.starts,
        "seed": fitting.search.seed,
        "plan": plan
        and {**plan._asdict(), "candidates": array_data(plan.candidates), "linear": [*map(int, plan.linear)]},
    }


def row_data(fitting: Fitting) -> dict[str, Any]:
    """The rows of a posed fit."""
    problem = fitting.question.problem
    return {
        "columns": {name: array_data(column) for name, column in problem.columns.items()},
        "values": array_data(problem.response),
        "sigma": array_data(problem.sigma),
        "places": array_data(problem.places),
        "deviations": {name: array_data(deviation) for name, deviation in fitting.deviations.items()},
    }


def fitting_of(question: Mapping[str, Any], rows: Mapping[str, Any]) -> Fitting:
    """The posed fit from which `question_data` and `row_data` were made."""
    with limits.within(*question["limits"]):
        text = read_model(question["model"], question["response"])
        if question["offset"] is not None:
            text = with_offset(text, question["offset"], question["known"]["family"], rows["columns"])
    mean, u = map(_array_of, question["priors"])
    low, high = map(_array_of, question["bounds"])
    problem = Problem(
        text.model,
        {name: _array_of(column) for name, column in rows["columns"].items()},
        _array_of(rows["values"]),
        question["parameters"],
        Assumptions(**question["known"]),
        sigma=_array_of(rows["sigma"]),
        fixed=question["fixed"],
        priors=(mean, u),
        bounds=(low, high),
        limits=tuple(question["limits"]),
        places=_array_of(rows["places"]),
        is_typed=question["is_typed"],
    )
    posed = PosedFit(problem, question["names"], _array_of(question["start"]), text.response_name, question["warnings"])
    deviations = {name: _array_of(deviation) for name, deviation in rows["deviations"].items()}
    search = SearchOptions(question["starts"], question["seed"])
    return Fitting(posed, deviations, question["profile"], search)


def plan_of_data(question: Mapping[str, Any]) -> GroupSearch | None:
    """The search plan of groups from `question_data`; None where each group is searched alone."""
    told = question["plan"]
    return told and GroupSearch(**{**told, "candidates": _array_of(told["candidates"])})


def array_data(array: Any) -> Any:
    """An array of numbers as its type, its shape and its little-endian bytes in base64; a single number as a float."""
    if not np.ndim(array):
        return float(array)
    array = np.ascontiguousarray(array)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"type": little.dtype.str, "shape": [*array.shape], "bytes": base64.b64encode(little.tobytes()).decode()}


def _array_of(told: Any) -> Any:
    if isinstance(told, float):
        return told
    found = np.frombuffer(base64.b64decode(told["bytes"]), told["type"]).reshape(told["shape"])
    return found.astype(found.dtype.newbyteorder("="))
