"""What a worker of a cluster does: functions that are called by name, with plain arguments and results.

Nothing else travels: a worker runs its own gradcli, within the limits that the job says, and refuses a job of another
version.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import IO, Any

from gradcli import __version__, confined
from gradcli.errors import GradcliError, UsageError, internal
from gradcli.io import output, system
from gradcli.rows import parts
from gradcli.rows.failures import RowError
from gradcli.rows.job import Job
from gradcli.rows.opening import open_table
from gradcli.rows.pipeline import Report, run_rows
from gradcli.rows.plan import plain, planned
from gradcli.rows.reading import Chosen, Range, Reader

VERSION = __version__
_SAME_FILES = "all workers must see the same files"


def divide(version: str, job: Mapping[str, Any], path: str, size: int | None, part_bytes: int) -> dict[str, Any]:
    """The format of a file and, under `parts`, where it is cut into parts of about `part_bytes`."""
    return _told(version, path, size, lambda: _divided(Job.of_json(job), path, part_bytes))


def compute(
    version: str,
    job: Mapping[str, Any],
    path: str,
    size: int | None,
    part: Sequence[int | None],
    shapes: Mapping[str, Sequence[int]] | None,
    target: str,
) -> dict[str, Any]:
    """Write the results of a part of a file to the file `target`, and tell the numbers of its rows and its bytes."""
    return _told(version, path, size, lambda: _computed(Job.of_json(job), path, part, shapes, target))


def _told(version: str, path: str, size: int | None, function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is told to who asked: what the function returns, under `error` why it does not, or under `version` that
    this is another gradcli."""
    if version != VERSION:
        return {"version": VERSION}
    try:
        there = size if size is None else system.status(path).st_size
        if there != size:
            raise GradcliError(f"{path!r} has {there} bytes, and had {size}", hint=_SAME_FILES)
        return function()
    except BaseException as error:  # Polars has one that is no Exception.
        return {"error": _plain(error)}


def _plain(error: BaseException) -> dict[str, Any]:
    if isinstance(error, OSError):
        error = GradcliError(f"the system refused: {error}", hint=_SAME_FILES)
    if not isinstance(error, GradcliError):
        error = confined.out_of_memory(error) or internal(error)
    return {"message": error.message, "hint": error.hint, "span": error.span, "text": error.source}


def _divided(job: Job, path: str, part_bytes: int) -> dict[str, Any]:
    format, found = parts.divided(path, job.reading, part_bytes)
    return {"format": job.to or format, "parts": [(None, None) if part is None else part for part in found]}


def _computed(
    job: Job, path: str, part: Sequence[int | None], shapes: Mapping[str, Sequence[int]] | None, target: str
) -> dict[str, Any]:
    start, end = part
    bounds = None if start is None or end is None else Range(start, end)
    try:
        with closing(open_table(path, job.reading, bounds)) as reader:
            report = _written(job, reader, shapes, target)
    except RowError as error:
        with closing(open_table(path, job.reading, bounds)) as reader:
            rows = sum(piece.block().rows for piece in reader.pieces(Chosen(())))
        return {"error": error.failure._asdict(), "rows_in": rows}
    failure, odd = report.first_failure, report.first_nonfinite
    return report._asdict() | {
        "first_failure": None if failure is None else failure._asdict(),
        "first_nonfinite": None if odd is None else odd._asdict() | {"inputs": plain(odd.inputs)},
        "bytes": system.status(target).st_size,
    }


def _written(job: Job, reader: Reader, shapes: Mapping[str, Sequence[int]] | None, target: str) -> Report:
    plan = planned(job.asked, reader.columns)
    settled = None if shapes is None else {key: tuple(shape) for key, shape in shapes.items()}
    reports = []

    def write(stream: IO[bytes]) -> None:
        reports.append(run_rows([reader], plan, job.to or reader.format, stream, job.policy, threads=1, shapes=settled))

    output.write_atomically(target, write)
    return reports[0]


def other_version(theirs: str | None) -> UsageError:
    """The error that workers run another version, or, where that is None, no gradcli."""
    run = "have no gradcli" if theirs is None else f"run gradcli {theirs}"
    return UsageError(f"the workers {run}, and this is gradcli {VERSION}", hint="install the same version everywhere")


def dask_setup(_worker: object) -> None:
    """Called by Dask in each process of a cluster of this machine: a Ctrl-C in the terminal is for who started it,
    who also says what there is to say."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
