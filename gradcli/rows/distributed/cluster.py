"""Work in parts on a cluster: each part is done once by workers that may die, and written to its own file; a manifest
says which parts are done."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from gradcli.errors import GradcliError, OutputError, UsageError
from gradcli.io import system
from gradcli.named_tuples import NamedTuple
from gradcli.rows.distributed import manifest, workers
from gradcli.rows.distributed.manifest import InputFile, Manifest, Part
from gradcli.rows.formats import sources
from gradcli.rows.pipeline import RunProgress

# How often a part is computed again, by default, after its worker was lost.
RETRIES = 3

# Runs tasks of a kind, given their numbers and a function that makes the data of each, and yields their numbers and
# results.
Tell = Callable[[str, Iterable[int], Callable[[int], dict[str, Any]]], Iterable[tuple[int, dict[str, Any]]]]
_Key = TypeVar("_Key")
# Upper bounds of the tasks submitted at a time, and of the bytes of their arguments, which the scheduler holds.
_MOST_TASKS, _MOST_BYTES = 1_000, 2**26
# Seconds without a finished task after which the pool is checked for workers.
_LOOK = 1.0


class Work(Protocol):
    """The job of a cluster: its `command`, the input `paths`, and `relief`, advice for workers that died of a part.

    `described` is plain data that must be equal for a run to be resumed; `earlier` is that of the run to be resumed.
    `divided` divides the inputs into parts, with the formats of `Manifest.divide`. `task` is the data of a part's task,
    about `size` bytes, and `check` raises GradcliError where an input has changed.
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


class ClusterRequest(NamedTuple):
    """`work` whose parts are written into a directory. Existing parts are an error unless the run is to `resume`. A
    task is retried `retries` times where its worker dies."""

    work: Work
    directory: str
    resume: bool = False
    retries: int = RETRIES


def run(
    request: ClusterRequest, begun: Manifest, pool: Pool, progress: Callable[[RunProgress], object] = lambda _: None
) -> None:
    """Compute all parts that are not done; the manifest records their results, also where the run is interrupted.
    `progress` is called after each part with the number of parts that are done and of rows of this run.

    Raises GradcliError where the cluster is lost or an input changes, and UsageError for workers of another version.
    """
    work = request.work
    left = [part for part, result in enumerate(begun.results) if result is None]
    tasks = _tasks(work.command, left, lambda part: work.task(begun, part), lambda part: work.size(begun.parts[part]))
    count, rows = len(begun.parts) - len(left), 0
    try:
        with closing(_told(request, pool, tasks)) as results:
            for part, result in results:
                begun.record(part, result)
                count, rows = count + 1, rows + result.get("rows_in", 0)
                progress(RunProgress(count, rows))
    finally:
        begun.save()
    work.check(begun)
    for part in begun.parts_without_files():
        raise GradcliError(
            f"a worker has written {begun.path(part)!r}, which is not here",
            hint="all workers must see the same directory, as --output names it",
        )


def begin(request: ClusterRequest, pool: Pool) -> Manifest:
    """The manifest of the run: of the one that is resumed, or of a new one.

    Raises UsageError where the directory holds another run, or one that is not to be resumed.
    """
    work, directory = request.work, request.directory
    inputs = [*map(found, work.paths)]
    earlier = manifest.read_record(directory, work.command)
    resumed = earlier if request.resume else None
    begun = Manifest(directory, work.command, workers.VERSION, work.described(resumed), inputs)
    if resumed is not None:
        begun.resume(resumed)
        return begun
    _make_directory(request, earlier is not None)

    def tell(kind: str, keys: Iterable[int], task: Callable[[int], dict[str, Any]]) -> Iterable[tuple[int, Any]]:
        return _told(request, pool, _tasks(kind, keys, task, lambda _: 0))

    begun.divide(*work.divided(begun, tell))
    begun.save()
    return begun


def found(path: str) -> InputFile:
    """The size and the modification time of a file. Raises BindingError where it is not a file that all workers could
    read."""
    with sources.readable(path):
        return manifest.found(path)


def check_same(done: Manifest) -> None:
    """Raise GradcliError where an input has changed since the manifest was made."""
    for each in done.inputs:
        if found(each.path) != each:
            raise GradcliError(f"{each.path!r} has changed while it was read", hint="compute all of it again")


def _make_directory(request: ClusterRequest, has_run: bool) -> None:
    """Create the directory, and check that it holds no parts, which could not be told from those of this run."""
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


def _told(request: ClusterRequest, pool: Pool, tasks: Tasks[int]) -> Generator[tuple[int, dict[str, Any]]]:
    """The result of each task. Raises UsageError for workers of another version."""
    with closing(_run_tasks(pool, tasks, request.retries)) as results:
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


class Future(Protocol):
    """The interface shared by the futures of `concurrent.futures` and Dask."""

    def add_done_callback(self, function: Callable[[Any], object], /) -> object: ...
    def result(self) -> Any: ...


class Pool(Protocol):
    """A pool of workers.

    `check` is called when no task has ended for a while, and raises the GradcliError that ends the run. `deaths` is the
    number of workers that died of a task whose future raises `error`, and raises the GradcliError that ends the run for
    other errors.
    """

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future: ...
    def cancel(self, futures: Sequence[Any], /) -> None: ...
    def check(self) -> object: ...
    def deaths(self, error: BaseException, /) -> int: ...


class Died(NamedTuple):
    """The result of a task that was given up since this number of workers died of it."""

    workers: int


class Tasks(NamedTuple, Generic[_Key]):
    """The tasks of a run, one for each of the `keys`. `function` is called with the `arguments` of a key, which are
    computed at submission and take about `size` bytes as long as the task runs."""

    function: Callable[..., Any]
    keys: Iterable[_Key]
    arguments: Callable[[_Key], Sequence[Any]]
    size: Callable[[_Key], int]


def _run_tasks(pool: Pool, tasks: Tasks[_Key], retries: int) -> Generator[tuple[_Key, Any]]:
    """The key and the result of each task, or Died, in the order in which they end.

    A task whose worker died is submitted again, at most `retries` times. Tasks that still run when the generator is
    closed are cancelled.
    """
    ended: SimpleQueue[Any] = SimpleQueue()
    left = [*tasks.keys][::-1]
    deaths = dict.fromkeys(left, 0)
    running: dict[Any, _Key] = {}
    held = 0

    try:
        while left or running:
            while left and _fits(tasks.size(left[-1]), len(running), held):
                key = left.pop()
                held += tasks.size(key)
                future = pool.submit(tasks.function, *tasks.arguments(key))
                running[future] = key
                future.add_done_callback(ended.put)
            future = _next(ended, pool)
            key = running.pop(future)
            held -= tasks.size(key)
            try:
                result = future.result()
            except Exception as error:
                deaths[key] += pool.deaths(error)
                if deaths[key] <= retries:
                    left.append(key)
                    continue
                result = Died(deaths[key])
            yield key, result
    finally:
        pool.cancel([*running])


def _fits(size: int, running: int, held: int) -> bool:
    """Return whether another task may be submitted while `running` others run."""
    return not running or (running < _MOST_TASKS and held + size <= _MOST_BYTES)


def _next(ended: SimpleQueue[Any], pool: Pool) -> Any:
    """The future of the next task that ends."""
    while True:
        try:
            return ended.get(timeout=_LOOK)
        except Empty:
            pool.check()
