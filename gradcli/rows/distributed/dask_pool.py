"""The workers of a Dask cluster: of a running one, or of one that is started on this machine for a run."""

from __future__ import annotations

import logging
import os
import pkgutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from gradcli import install_command
from gradcli.errors import GradcliError, UsageError
from gradcli.rows.distributed import workers
from gradcli.timing import phase

_LOCAL = "local"
_HINT = "--cluster is tcp://HOST:PORT, local, or local:N for N workers"
# Upper bound of the workers that are started: the greater of `_ALWAYS` and `_EACH` per core.
_ALWAYS, _EACH = 8, 4
_LOST = "what is done is kept: --resume continues"
# Seconds between two checks for workers, and seconds without workers after which the user is told so, and after which
# the run ends.
_CHECK_INTERVAL, _UNTIL_MESSAGE, _UNTIL_END = 0.2, 5.0, 120.0


@contextmanager
def opened(where: str, tell: Callable[[str], object]) -> Iterator[DaskPool]:
    """A context with the workers at an address, or, for `local` or `local:N`, of a cluster that is closed with it.
    `tell` receives a message while there are no workers.

    Raises UsageError for an invalid address, GradcliError where Dask is not installed or nothing answers there.
    """
    local = _workers(where)
    distributed = _distributed()
    with ExitStack() as opening:
        opening.enter_context(quiet())
        try:
            address = where if local is None else opening.enter_context(started(local)).scheduler_address
            client = opening.enter_context(distributed.Client(address, set_as_default=False))
        except (OSError, TimeoutError, ValueError) as error:
            # Dask's own timeouts are of both types.
            raise GradcliError(f"no Dask cluster answers at {where}: {error}", hint=_HINT) from error
        pool = DaskPool(client, where, tell)
        while not pool.check():
            time.sleep(_CHECK_INTERVAL)
        yield pool


def _workers(where: str) -> int | None:
    """The number of workers to start here, None for a cluster that runs elsewhere."""
    name, _, count = where.partition(":")
    if name == _LOCAL:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if where == _LOCAL:
            return cores
        if count.isascii() and count.isdigit() and int(count):
            return _checked(int(count), max(_ALWAYS, _EACH * cores))
    elif where.startswith(("tcp://", "tls://")):
        return None
    raise UsageError(f"there is no cluster {where!r}", hint=_HINT)


def _checked(count: int, most: int) -> int:
    if count > most:
        raise UsageError(f"{count:,} workers are more than this machine may start, {most}", hint=_HINT)
    return count


@phase("import")
def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise GradcliError(
            "--cluster needs Dask, which is not installed",
            hint=f"{install_command.install_command('cluster')} installs it",
        ) from error
    return distributed


@contextmanager
def quiet() -> Iterator[None]:
    """A context without log messages of Dask on standard error: gradcli itself reports workers that died."""
    earlier = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(earlier)


@contextmanager
def started(count: int) -> Iterator[Any]:
    """A context with a local cluster of `count` processes that other machines cannot reach. It leaves no files
    behind."""
    import dask
    import distributed

    settings = {
        # The death of a worker is reported at once, and the driver decides about a retry.
        "distributed.scheduler.allowed-failures": 0,
        # A worker holds no queued tasks, so that its death only affects the one that it runs.
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with ExitStack() as opening:
        scratch = opening.enter_context(tempfile.TemporaryDirectory(prefix="gradcli-"))
        opening.enter_context(dask.config.set({**settings, "temporary-directory": scratch}))
        yield opening.enter_context(
            distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                memory_limit=None,
                silence_logs=logging.CRITICAL,
                # No dashboard page, and a random local port.
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                preload=[workers.__name__],
                env={"POLARS_MAX_THREADS": "1"},
            )
        )


class DaskPool:
    """The workers of a Dask cluster as a `driver.Pool`."""

    def __init__(self, client: Any, where: str, tell: Callable[[str], object]) -> None:
        self._client = client
        self._where = where
        self._tell = tell
        # The addresses of workers with this version, the time when there were workers last, and whether the user was
        # told that there are none.
        self._known: set[str] = set()
        self._seen = time.monotonic()
        self._told = False

    def check(self) -> bool:
        """Return whether there are workers. Raises UsageError for a new worker with another version or without gradcli,
        GradcliError where there have been no workers for long or the scheduler does not answer."""
        if self._client.status != "running":
            raise self._lost(OSError("it does not answer"))
        try:
            there = [*self._client.nthreads()]
            for address in there:
                if address not in self._known:
                    self._check_version(address)
        except (OSError, TimeoutError) as error:
            raise self._lost(error) from error
        seconds = time.monotonic() - self._seen
        if there:
            self._seen, self._told = time.monotonic(), False
        elif seconds > _UNTIL_END:
            raise GradcliError(
                f"there are no workers at {self._where}", hint="start some; what is done is kept: --resume continues"
            )
        elif seconds > _UNTIL_MESSAGE and not self._told:
            self._tell(f"there are no workers at {self._where}: waiting for some")
            self._told = True
        return bool(there)

    def _check_version(self, address: str) -> None:
        """Check the version of a worker. It is read as an attribute and not by a function of gradcli, since a worker
        that lacks a function of a task is lost."""
        version = self._answer(f"{workers.__name__}:VERSION", address)
        if isinstance(version, (ImportError, AttributeError)):
            version = self._answer("gradcli:__version__", address)
        if isinstance(version, OSError):
            # The worker has left the cluster.
            return
        if isinstance(version, ImportError):
            version = None
        if isinstance(version, Exception):
            raise self._lost(version)
        if version != workers.VERSION:
            raise workers.other_version(version)
        self._known.add(address)

    def _answer(self, name: str, address: str) -> Any:
        """The object with a dotted name in a worker, or the exception; workers answer while they run a task."""
        found = self._client.run(pkgutil.resolve_name, name, workers=[address], on_error="return")
        return found.get(address, OSError())

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        # The function is pickled by name, and workers look it up in their own installation.
        return self._client.submit(function, *arguments, pure=False)

    def cancel(self, futures: Sequence[Any], /) -> None:
        if futures and self._client.status == "running":
            self._client.cancel(futures)

    def deaths(self, error: BaseException, /) -> int:
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return int(error.allowed_failures) + 1
        raise self._lost(error) from error

    def _lost(self, error: BaseException) -> GradcliError:
        return GradcliError(f"the cluster at {self._where} is lost: {error}", hint=_LOST)
