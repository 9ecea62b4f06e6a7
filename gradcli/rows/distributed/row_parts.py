"""The rows of tables as work in parts on a cluster, and the report of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from gradcli.errors import GradcliError
from gradcli.io import json_text
from gradcli.named_tuples import NamedTuple
from gradcli.rows.distributed import workers
from gradcli.rows.distributed.cluster import Tell, check_same
from gradcli.rows.distributed.job import Job
from gradcli.rows.distributed.manifest import Manifest, Part
from gradcli.rows.element_columns import Shapes
from gradcli.rows.failures import Failure, TextForNumber
from gradcli.rows.pipeline import ReportedRow, RunReport
from gradcli.rows.plan import of_plain

# The size of the parts of a table in bytes, by default.
PART_BYTES = 2**26
_COUNTS = ("rows_in", "rows_out", "missing", "failed", "nonfinite", "texts", "inaccurate")


class RowWork:
    """`job` on the files at `paths`, in parts of `part_bytes`; see `cluster.Work`."""

    command = "map"
    relief = "--part-bytes makes the parts smaller"

    def __init__(self, job: Job, paths: Sequence[str], shapes: Shapes | None, part_bytes: int | None) -> None:
        self.paths = paths
        self._job = job.as_json()
        self._shapes = shapes
        self._part_bytes = part_bytes

    @cached_property
    def _size(self) -> int:
        return len(json_text.dumps(self._job))

    def described(self, earlier: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The job as plain data, with the size of the parts."""
        return {**self._job, "part_bytes": self._part_bytes or (earlier or {}).get("part_bytes", PART_BYTES)}

    def divided(self, begun: Manifest, tell: Tell) -> tuple[Sequence[Part], Sequence[str]]:
        """The parts of each file. A file that cannot be divided is one part, whose task will report the reason."""
        part_bytes = begun.job["part_bytes"]
        numbers = range(len(begun.inputs))
        told = dict(tell("divide", numbers, lambda number: self._of(begun, number) | {"part_bytes": part_bytes}))
        parts = [Part(number, *bounds) for number in numbers for bounds in told[number].get("parts", [(None, None)])]
        return parts, [told[number].get("format", "csv") for number in numbers]

    def task(self, begun: Manifest, part: int) -> dict[str, Any]:
        """The data of a part's task: the range of a file, and the target of its results."""
        input, start, end = begun.parts[part]
        about = {"start": start, "end": end, "shapes": self._shapes, "target": begun.path(part)}
        return self._of(begun, input or 0) | about

    def _of(self, begun: Manifest, number: int) -> dict[str, Any]:
        return {"job": self._job, "path": begun.inputs[number].path, "size": begun.inputs[number].size}

    def size(self, _part: Part) -> int:
        """The size of the job's data, which are the same for all parts."""
        return self._size

    def check(self, done: Manifest) -> None:
        """Raise GradcliError where an input has changed, since workers read the files throughout the run."""
        check_same(done)


def report(done: Manifest, names: Sequence[str], dtype: str) -> RunReport:
    """The report on all rows that were computed, with numbers in a dtype; `names` are those of the inputs as the user
    gave them."""
    total = RunReport()
    for _, result, place in _placed(done, names):
        if "error" not in result:
            counts = {name: result[name] for name in _COUNTS}
            failure, text = result["first_failure"], result["first_text"]
            total = total.plus(
                RunReport(
                    **counts,
                    first_failure=failure and Failure(**place.of(failure)),
                    first_nonfinite=_reported(result["first_nonfinite"], place, dtype),
                    lost=tuple(result["lost"]),
                    first_text=text and TextForNumber(**place.of(text)),
                    first_inaccurate=_reported(result["first_inaccurate"], place, dtype),
                )
            )
    return total


def _reported(row: Mapping[str, Any] | None, place: _Place, dtype: str) -> ReportedRow | None:
    return None if row is None else ReportedRow(**place.of(row))._replace(inputs=of_plain(row["inputs"], dtype))


def failures(done: Manifest, names: Sequence[str]) -> Iterator[tuple[str, GradcliError]]:
    """The file names and the errors of parts that failed."""
    for part, result, place in _placed(done, names):
        if "error" not in result:
            continue
        error = result["error"]
        if "row" in error:
            yield done.name(part), Failure(**place.of(error)).error(with_source=True)
        else:
            path = done.inputs[done.parts[part].input or 0].path
            yield done.name(part), workers.error_of(error, "" if path in error["message"] else f"{place.table}: ")


class _Place(NamedTuple):
    """The position of a part: its table, and the number of rows before it."""

    table: str
    rows: int

    def of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The data of a row of the part, with its number and its table."""
        return {**row, "row": self.rows + row["row"], "source": self.table}


def _placed(done: Manifest, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any], _Place]]:
    """The parts that were computed or failed, with their results and positions."""
    place = _Place("", 0)
    for part, (where, result) in enumerate(zip(done.parts, done.results)):
        if not where.start:
            place = _Place(names[where.input or 0], 0)
        if result is not None:
            yield part, result, place
        if result is None or "rows_in" not in result:
            # The number of rows of this part is not known.
            place = _Place(f"{names[where.input or 0]} behind {done.name(part)}", 0)
        else:
            place = place._replace(rows=place.rows + result["rows_in"])
