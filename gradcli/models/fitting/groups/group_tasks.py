"""The task of a worker: fits one portion of groups and writes their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any

import numpy as np

from gradcli.io import output, system
from gradcli.models.fitting.fit_runs import run_portion
from gradcli.models.fitting.groups import group_tables
from gradcli.models.fitting.groups.fit_serialisation import fitting_of, plan_of_data
from gradcli.models.fitting.groups.fit_summaries import summary_of


def compute(task: Mapping[str, Any]) -> dict[str, Any]:
    """Write the fits of the `groups`, whose rows follow each other, to the file `target`, and return their account."""
    question, groups, target = task["question"], task["groups"], task["target"]
    fitting = fitting_of(question, task["rows"])
    ends = np.cumsum([group["rows"] for group in groups], dtype=int)
    rows = {group["name"]: np.arange(end - group["rows"], end) for group, end in zip(groups, ends.tolist())}
    concluded = run_portion(fitting, rows, plan_of_data(question))
    fits = [replace(each.fit, left_out=group["left_out"]) for each, group in zip(concluded, groups)]

    def write(stream: IO[bytes]) -> None:
        group_tables.write(fits, question["model"], task["by"], task["format"], stream)

    # On disk before the manifest records it.
    output.write_atomically(target, write, on_disk=True)
    rows_in = int(sum(group["rows"] for group in groups))
    return {"rows_in": rows_in, **summary_of(fits).as_json(), "bytes": system.status(target).st_size}
