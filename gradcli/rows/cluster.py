"""Work in parts: many machines compute them, each part goes to a file of its own, and a manifest says which are done."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

from gradcli.errors import GradcliError, OutputError, UsageError
from gradcli.io import system
from gradcli.rows import driver, manifest, sources, workers
from gradcli.rows.driver import Died, Pool, Tasks
from gradcli.rows.manifest import Input, Manifest, Part
from gradcli.rows.pipeline import Progress

RETRIES = 3

# What workers tell of tasks of a kind, each of which has a number: the kind, the numbers, and what makes the data of one.
Tell = Callable[[str, Iterable[int], Callable[[int], dict[str, Any]]], Iterable[tuple[int, dict[str, Any]]]]


class Work(Protocol):
    """What is computed: by which `command`, of which `paths`, and what may help a worker that `died_of` a part.

    `described` says, as `json` writes it, what makes it another run where that differs; `earlier` is what a run that is
    to be resumed said. `divided` cuts the inputs into parts, with the formats of `Manifest.divide`, `task` is what a
    worker is told of one, about `size` bytes, and `check` raises GradcliError where the inputs are others by now.
    """

    @property
    def command(self) -> str: ...
    @property
    def paths(self) -> Sequence[str]: ...
    @property
    def relief(self) -> str: ...
    def described(self, earlier: Mapping[str, Any] | None, /) -> Mapping[str, Any]: ...
    def divided(self, begun: Manifest, tell: Tell, /) -> tuple[Sequence[Part], Sequence[str]]: ...
    def task(self, begun: Manifest, part: int, /) -> dict[str, Any]: ...
    def size(self, part: Part, /) -> int: ...
    def check(self, done: Manifest, /) -> None: ...


class Request(NamedTuple):
    """`work` whose parts go into a directory. Parts that are there already are an error unless they are to be `resume`d.
    A task is tried again `retries` times where its worker dies."""

    work: Work
    directory: str
    resume: bool = False
    retries: int = RETRIES


def run(request: Request, begun: Manifest, pool: Pool, progress: Callable[[Progress], object] = lambda _: None) -> None:
    """Have all parts computed that are not done; the manifest says what came of each, also where this is interrupted.
    `progress` is called after each, with the parts that are done and the rows of this time.

    Raises GradcliError where the cluster is lost or an input changes, and UsageError for workers of another version.
    """
    work = request.work
    left = [part for part, result in enumerate(begun.results) if result is None]
    tasks = _tasks(work.command, left, lambda part: work.task(begun, part), lambda part: work.size(begun.parts[part]))
    count, rows = len(begun.parts) - len(left), 0
    try:
        with closing(_told(request, pool, tasks)) as results:
            for part, result in results:
                begun.note(part, result)
                count, rows = count + 1, rows + result.get("rows_in", 0)
                progress(Progress(count, rows))
    finally:
        begun.save()
    work.check(begun)
    for part in begun.elsewhere():
        raise GradcliError(
            f"a worker has written {begun.path(part)!r}, which is not here",
            hint="all workers must see the same directory, as --output names it",
        )


def begin(request: Request, pool: Pool) -> Manifest:
    """The run with its parts: that which is to be resumed, or a new one.

    Raises UsageError where the directory has another run, or one that is not to be resumed.
    """
    work, directory = request.work, request.directory
    inputs = [*map(found, work.paths)]
    earlier = manifest.left(directory, work.command)
    resumed = earlier if request.resume else None
    begun = Manifest(directory, work.command, workers.VERSION, work.described(resumed), inputs)
    if resumed is not None:
        begun.take_up(resumed)
        return begun
    _make_directory(request, earlier is not None)

    def tell(kind: str, keys: Iterable[int], task: Callable[[int], dict[str, Any]]) -> Iterable[tuple[int, Any]]:
        return _told(request, pool, _tasks(kind, keys, task, lambda _: 0))

    begun.divide(*work.divided(begun, tell))
    begun.save()
    return begun


def found(path: str) -> Input:
    """A file as it is. Raises BindingError where there is none that all workers could read."""
    with sources.readable(path):
        return manifest.found(path)


def check_same(done: Manifest) -> None:
    """Raise GradcliError where a file is not what the manifest says any more."""
    for each in done.inputs:
        if found(each.path) != each:
            raise GradcliError(f"{each.path!r} has changed while it was read", hint="compute all of it again")


def _make_directory(request: Request, has_run: bool) -> None:
    """Make the directory, or see that no parts are in it, which nobody could tell from those of this run."""
    directory = request.directory
    try:
        system.make_directory(directory)
        has_parts = any(name.startswith(manifest.PREFIX) for name in system.names_in(directory))
    except OSError as error:
        raise OutputError(
            f"cannot write into {directory!r}: {error.strerror or error}", hint="name another directory"
        ) from error
    if has_run:
        raise UsageError(
            f"there are parts of a run in {directory!r}", hint="--resume continues it; else name another directory"
        )
    if has_parts:
        raise UsageError(
            f"there are parts in {directory!r}, and no run of gradcli {request.work.command} that wrote them",
            hint="name another directory",
        )


def _tasks(
    kind: str, keys: Iterable[int], task: Callable[[int], dict[str, Any]], size: Callable[[int], int]
) -> Tasks[int]:
    return Tasks(workers.perform, keys, lambda key: (workers.VERSION, kind, task(key)), size)


def _told(request: Request, pool: Pool, tasks: Tasks[int]) -> Generator[tuple[int, dict[str, Any]]]:
    """What workers tell of each task. Raises UsageError where they are of another version."""
    with closing(driver.done(pool, tasks, request.retries)) as results:
        for key, result in results:
            if isinstance(result, Died):
                yield key, {"error": _died(result.workers, request.work.relief)}
            elif "version" in result:
                raise workers.other_version(result["version"])
            else:
                yield key, result


def _died(count: int, relief: str) -> dict[str, Any]:
    message = "the worker died" if count == 1 else f"{count} workers died of it, one after the other"
    return {"message": message, "hint": f"they may have run out of memory: {relief}", "span": None, "text": None}
