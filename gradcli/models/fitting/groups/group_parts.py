"""Divides the fits of groups into parts for workers, and summarises the results of these."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import GradcliError
from gradcli.io import json_text
from gradcli.models.fitting.fit_execution import Prepared
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.fit_runs import plan_of
from gradcli.models.fitting.groups.group_reports import FitSummary
from gradcli.models.fitting.groups.group_tasks import serialised_fit, serialised_rows
from gradcli.models.fitting.problem.stacked_problems import portions
from gradcli.rows.distributed import workers
from gradcli.rows.distributed.cluster import Tell
from gradcli.rows.distributed.manifest import Manifest, Part

# Estimated bytes of a number in a task, in base64, and of the rest of a task.
_BYTES_PER_NUMBER, _BYTES_PER_TASK = 11, 2**12


class GroupWork:
    """The work of fitting the groups of a request whose data were read from `paths` (see `cluster.Work`); `format` is
    that of the tables to write.

    The rows of a group are sent with the task: they may be anywhere in the data, and only the process that has read all
    of the data knows where.
    """

    command = "fit"
    relief = "a group is fitted in one piece"

    def __init__(self, request: FitRequest, ready: Prepared, paths: Sequence[str], format: str) -> None:
        self.paths = paths
        self._request = request
        self._fitting = ready.fitting
        self._format = format
        self._question = serialised_fit(request, ready.fitting, plan_of(ready.fitting))
        left_out = ready.left_out(request.by)
        self._groups = [(name, rows, left_out.get(name, 0)) for name, rows in ready.groups.items()]

    def described(self, _earlier: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The request, and a digest of the rows that does not depend on the files they were read from."""
        request, question = self._request, self._question
        options = {
            name: getattr(request, name)
            for name in ("response", "sigma", "x_sigma", "trials", "offset", "by", "derived", "weights", "clusters")
        }
        asked = {name: question[name] for name in ("known", "profile", "starts", "seed", "limits")}
        return {
            "model": request.model,
            "parameters": request.parameters._asdict(),
            "options": {**options, **asked, "to": self._format},
            "data": self._digest(),
        }

    def _digest(self) -> str:
        problem = self._fitting.question.problem
        numbers = [*problem.columns.items(), ("", problem.response), ("", problem.sigma), ("", problem.places)]
        numbers += [*self._fitting.deviations.items(), *((name or "", rows) for name, rows, _ in self._groups)]
        about = [[name, np.shape(array)] for name, array in numbers], [left_out for *_, left_out in self._groups]
        found = hashlib.sha256(json_text.dumps(about).encode())
        for _, array in numbers:
            found.update(np.asarray(array, "<f8").tobytes())
        return found.hexdigest()

    def divided(self, _begun: Manifest, _tell: Tell) -> tuple[Sequence[Part], Sequence[str]]:
        """Portions of whole groups, the same as on one machine, so that the fits have the same digits."""
        parts = [Part(None, *bounds) for bounds in portions([len(rows) for _, rows, _ in self._groups])]
        return parts, [self._format]

    def task(self, begun: Manifest, part: int) -> dict[str, Any]:
        """The task of a part: the posed fit, the groups, and their rows, concatenated in the order of the groups."""
        _, start, end = begun.parts[part]
        groups = self._groups[start:end]
        places = np.concatenate([rows for _, rows, _ in groups])
        return {
            "question": self._question,
            "groups": [{"name": name, "rows": len(rows), "left_out": left_out} for name, rows, left_out in groups],
            "rows": serialised_rows(self._fitting.with_rows(places)),
            "by": self._request.by,
            "format": self._format,
            "target": begun.path(part),
        }

    def size(self, part: Part) -> int:
        """The approximate size of the task, in bytes."""
        rows = sum(len(rows) for _, rows, _ in self._groups[part.start : part.end])
        return _BYTES_PER_TASK + rows * _BYTES_PER_NUMBER * (len(self._fitting.question.problem.columns) + 3)

    def check(self, _done: Manifest) -> None:
        """Accept changed files: all data were read before anything was computed."""


def report(done: Manifest) -> FitSummary:
    """The account of all fits that were computed."""
    total = FitSummary()
    for result in done.results:
        if result is not None and "error" not in result:
            total = total.plus(FitSummary.of_json(result))
    return total


def failures(done: Manifest) -> Iterator[tuple[str, GradcliError]]:
    """The file names of the parts that failed, and their errors."""
    for part, result in enumerate(done.results):
        if result is not None and "error" in result:
            yield done.name(part), workers.error_of(result["error"])
