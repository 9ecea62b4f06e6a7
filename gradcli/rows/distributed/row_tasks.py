"""The worker's tasks for rows of tables: dividing a file into parts, and computing one part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import IO, Any

from gradcli.errors import GradcliError
from gradcli.io import output, system
from gradcli.rows.distributed.job import Job
from gradcli.rows.distributed.workers import SAME_FILES
from gradcli.rows.failures import RowError
from gradcli.rows.formats.columnar import ColumnarReader
from gradcli.rows.formats.opening import open_table
from gradcli.rows.formats.reading import ByteRange, ColumnSelection, TableReader, TableReadOptions
from gradcli.rows.formats.sources import format_of
from gradcli.rows.pipeline import ReportedRow, RunReport, run_rows
from gradcli.rows.plan import make_plan, plain


def divide(task: Mapping[str, Any]) -> dict[str, Any]:
    """The format of the file at `path` and, under `parts`, its parts of about `part_bytes`."""
    _check_size(task)
    job = Job.of_json(task["job"])
    format, found = divide_files(task["path"], job.reading, task["part_bytes"])
    return {"format": job.to or format, "parts": [(None, None) if part is None else part for part in found]}


def compute(task: Mapping[str, Any]) -> dict[str, Any]:
    """Write the results of the part from `start` to before `end` of the file at `path` to the file `target`, and return
    the counts of its rows and its bytes."""
    _check_size(task)
    job, path, target = Job.of_json(task["job"]), task["path"], task["target"]
    bounds = None if task["start"] is None else ByteRange(task["start"], task["end"])
    try:
        with closing(open_table(path, job.reading, bounds)) as reader:
            report = _written(job, reader, task["shapes"], target)
    except RowError as error:
        with closing(open_table(path, job.reading, bounds)) as reader:
            rows = sum(piece.block().rows for piece in reader.pieces(ColumnSelection(())))
        return {"error": error.failure._asdict(), "rows_in": rows}
    failure, text = report.first_failure, report.first_text
    return report._asdict() | {
        "first_failure": None if failure is None else failure._asdict(),
        "first_nonfinite": _of_row(report.first_nonfinite),
        "first_inaccurate": _of_row(report.first_inaccurate),
        "first_text": None if text is None else text._asdict(),
        "bytes": system.status(target).st_size,
    }


def _of_row(row: ReportedRow | None) -> dict[str, Any] | None:
    return None if row is None else row._asdict() | {"inputs": plain(row.inputs)}


def _check_size(task: Mapping[str, Any]) -> None:
    """Raise GradcliError where the file does not have the size that the task states."""
    path, size = task["path"], task["size"]
    there = size if size is None else system.status(path).st_size
    if there != size:
        raise GradcliError(f"{path!r} has {there} bytes, and had {size}", hint=SAME_FILES)


def _written(job: Job, reader: TableReader, shapes: Mapping[str, Sequence[int]] | None, target: str) -> RunReport:
    plan = make_plan(job.asked, reader.columns)
    settled = None if shapes is None else {key: tuple(shape) for key, shape in shapes.items()}
    reports = []

    def write(stream: IO[bytes]) -> None:
        reports.append(run_rows([reader], plan, job.to or reader.format, stream, job.policy, threads=1, shapes=settled))

    # Synced to disk, since the manifest may record it as done.
    output.write_atomically(target, write, on_disk=True)
    return reports[0]


# --- the division of a file into tasks

# The least number of pieces of a part, so that its size deviates from the wanted one by at most about this fraction.
_PIECES = 16


def divide_files(path: str, reading: TableReadOptions, part_bytes: int) -> tuple[str, list[ByteRange | None]]:
    """The format of a file and its parts: byte ranges of about `part_bytes` that begin and end at record boundaries, or
    row ranges of a columnar file. None stands for the whole of a file that cannot be divided.

    Raises BindingError where the file cannot be read.
    """
    block = max(1, min(reading.block, part_bytes // _PIECES))
    with closing(open_table(path, reading._replace(block=block))) as reader:
        if reader.size is None or not reader.divisible or format_of(path)[1] is not None:
            return reader.format, [None]
        if isinstance(reader, ColumnarReader):
            most = reader.rows * part_bytes // max(1, reader.size)
            return reader.format, [*_of_rows(reader.rows, max(1, most))]
        # One pass over the file, with the same division into blocks as for reading.
        sizes = [piece.size for piece in reader.pieces(ColumnSelection(()))]
        header = reader.size - sum(sizes)
    return reader.format, [*_filled([header, *sizes], part_bytes)]


def _of_rows(rows: int, most: int) -> Iterator[ByteRange]:
    """Ranges of at most `most` rows."""
    for start in range(0, max(rows, 1), most):
        yield ByteRange(start, min(start + most, rows))


def _filled(sizes: Iterable[int], most: int) -> Iterator[ByteRange]:
    """Consecutive ranges of bytes, each with as many of the pieces of these sizes as fit into `most` bytes."""
    start = end = 0
    for size in sizes:
        if end > start and end + size - start > most:
            yield ByteRange(start, end)
            start = end
        end += size
    yield ByteRange(start, end)
