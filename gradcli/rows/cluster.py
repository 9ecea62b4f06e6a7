"""Tables in parts: many machines compute them, each part goes to a file of its own, and a manifest says which are done."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from gradcli.errors import GradcliError, OutputError, Span, UsageError
from gradcli.io import json_text, system
from gradcli.rows import driver, manifest, sources, workers
from gradcli.rows.driver import Died, Pool
from gradcli.rows.failures import Failure
from gradcli.rows.job import Job
from gradcli.rows.manifest import Input, Manifest, Part
from gradcli.rows.pipeline import Odd, Progress, Report
from gradcli.rows.plan import of_plain
from gradcli.rows.spread import Shapes

PART_BYTES = 2**26
_COUNTS = ("rows_in", "rows_out", "missing", "failed", "nonfinite")
RETRIES = 3


class Request(NamedTuple):
    """`job` for the files at `paths`, in parts of `part_bytes`, into a directory. Parts that are there already are an
    error unless they are to be `resume`d. A task is tried again `retries` times where its worker dies."""

    job: Job
    paths: Sequence[str]
    directory: str
    shapes: Shapes | None = None
    part_bytes: int | None = None
    resume: bool = False
    retries: int = RETRIES


def run(request: Request, begun: Manifest, pool: Pool, progress: Callable[[Progress], object] = lambda _: None) -> None:
    """Have all parts computed that are not done; the manifest says what came of each, also where this is interrupted.
    `progress` is called after each, with the parts that are done and the rows of this time.

    Raises GradcliError where the cluster is lost or an input changes, and UsageError for workers of another version.
    """
    job = request.job.as_json()
    tasks = {
        part: (workers.VERSION, job, *_known(begun, where), where[1:], request.shapes, begun.path(part))
        for part, where in enumerate(begun.parts)
        if begun.results[part] is None
    }
    told, rows = len(begun.parts) - len(tasks), 0
    try:
        with closing(_told(request, pool, workers.compute, tasks)) as results:
            for part, result in results:
                begun.note(part, result)
                told, rows = told + 1, rows + result.get("rows_in", 0)
                progress(Progress(told, rows))
    finally:
        begun.save()
    _check(begun)


def _known(begun: Manifest, part: Part) -> tuple[str, int | None]:
    """The path and the size of the file of a part."""
    return begun.inputs[part.input][:2]


def begin(request: Request, pool: Pool) -> Manifest:
    """The run with its parts: that which is to be resumed, or a new one.

    Raises UsageError where the directory has another run, or one that is not to be resumed.
    """
    job, inputs = request.job.as_json(), [*map(found, request.paths)]
    earlier = manifest.left(request.directory)
    if earlier is not None and request.resume:
        part_bytes = request.part_bytes or earlier.get("part_bytes", PART_BYTES)
        begun = Manifest(request.directory, workers.VERSION, job, inputs, part_bytes)
        begun.take_up(earlier)
        return begun
    begun = Manifest(request.directory, workers.VERSION, job, inputs, request.part_bytes or PART_BYTES)
    _make_directory(request.directory)
    _divide(request, begun, job, pool)
    begun.save()
    return begun


def found(path: str) -> Input:
    """A file as it is. Raises BindingError where there is none that all workers could read."""
    with sources.readable(path):
        return manifest.found(path)


def _make_directory(directory: str) -> None:
    """Make the directory, or see that no parts are in it, which nobody could tell from those of this run."""
    try:
        system.make_directory(directory)
        names = sorted(name for name in system.names_in(directory) if name.startswith(manifest.PREFIX))
    except OSError as error:
        raise OutputError(
            f"cannot write into {directory!r}: {error.strerror or error}", hint="name another directory"
        ) from error
    if names or manifest.left(directory) is not None:
        raise UsageError(
            f"there are parts of a run in {directory!r}", hint="--resume continues it; else name another directory"
        )


def _divide(request: Request, begun: Manifest, job: dict[str, Any], pool: Pool) -> None:
    """Cut the inputs into parts. One that cannot be cut is a part: why it cannot be read is told with that."""
    tasks = {
        number: (workers.VERSION, job, each.path, each.size, begun.part_bytes)
        for number, each in enumerate(begun.inputs)
    }
    told = dict(_told(request, pool, workers.divide, tasks))
    parts = [Part(number, *bounds) for number in tasks for bounds in told[number].get("parts", [(None, None)])]
    begun.divide(parts, [told[number].get("format", "csv") for number in tasks])


def _told(
    request: Request, pool: Pool, function: Callable[..., dict[str, Any]], tasks: Mapping[int, tuple[Any, ...]]
) -> Generator[tuple[int, dict[str, Any]]]:
    """What workers tell of each task. Raises UsageError where they are of another version."""
    size = len(json_text.dumps(request.job.as_json()))
    with closing(driver.done(pool, function, tasks, request.retries, size)) as results:
        for key, result in results:
            if isinstance(result, Died):
                yield key, {"error": _died(result.workers)}
            elif "version" in result:
                raise workers.other_version(result["version"])
            else:
                yield key, result


def _died(count: int) -> dict[str, Any]:
    message = "the worker died" if count == 1 else f"{count} workers died of it, one after the other"
    hint = "they may have run out of memory: --part-bytes makes the parts smaller"
    return {"message": message, "hint": hint, "span": None, "text": None}


def _check(done: Manifest) -> None:
    """Raise GradcliError where what was read, or written, is not what the manifest says."""
    for each in done.inputs:
        if found(each.path) != each:
            raise GradcliError(f"{each.path!r} has changed while it was read", hint="compute all of it again")
    for part in done.elsewhere():
        raise GradcliError(
            f"a worker has written {done.path(part)!r}, which is not here",
            hint="all workers must see the same directory, as --output names it",
        )


def report(done: Manifest, names: Sequence[str], dtype: str) -> Report:
    """What became of all rows that were computed, in numbers of a dtype; `names` are those of the inputs, as a user knows
    them."""
    total = Report()
    for _, result, place in _placed(done, names):
        if "error" not in result:
            counts = {name: result[name] for name in _COUNTS}
            failure, odd = result["first_failure"], result["first_nonfinite"]
            total = total.plus(
                Report(
                    **counts,
                    first_failure=failure and Failure(**place.of(failure)),
                    first_nonfinite=odd and Odd(**place.of(odd))._replace(inputs=of_plain(odd["inputs"], dtype)),
                    lost=tuple(result["lost"]),
                )
            )
    return total


def failures(done: Manifest, names: Sequence[str]) -> Iterator[tuple[str, GradcliError]]:
    """The names of the files of parts that are missing, and why."""
    for part, result, place in _placed(done, names):
        if "error" not in result:
            continue
        error = result["error"]
        if "row" in error:
            yield done.name(part), Failure(**place.of(error)).error(with_source=True)
        else:
            span = error["span"] and Span(*error["span"])
            message, path = error["message"], done.inputs[done.parts[part].input].path
            if path not in message:
                message = f"{place.table}: {message}"
            yield done.name(part), GradcliError(message, hint=error["hint"], span=span, source=error["text"])


class _Place(NamedTuple):
    """Where a part begins: behind so many rows of what `table` says."""

    table: str
    rows: int

    def of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """What is told of a row of the part, with its number and its table."""
        return {**row, "row": self.rows + row["row"], "source": self.table}


def _placed(done: Manifest, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any], _Place]]:
    """The parts that were computed, or failed, what came of them, and where they begin."""
    place = _Place("", 0)
    for part, (where, result) in enumerate(zip(done.parts, done.results)):
        if not where.start:
            place = _Place(names[where.input], 0)
        if result is not None:
            yield part, result, place
        if result is None or "rows_in" not in result:
            # Nobody knows how many rows that was.
            place = _Place(f"{names[where.input]} behind {done.name(part)}", 0)
        else:
            place = place._replace(rows=place.rows + result["rows_in"])
