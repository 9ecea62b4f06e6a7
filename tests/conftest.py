"""Shared fixtures: running the command line with its own streams."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from gradcli.cli.main import main
from gradcli.cli.process.environment import Environment
from tests.cluster_pools import Before, Pool

# So many cases of a test are run, without `--all`, where it has no marker `all_cases`, `cases` or `slow`.
_MOST_CASES = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run every case of every test")


def pytest_configure() -> None:
    """Keep bytecode also where Python is told to write none: each command that a test starts would compile the package,
    and each worker all tests."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # For the workers, which start later: threads of linear algebra in each of them wait for one another's cores, so that
    # a product of small matrices takes up to 30 times as long. `gradcli.__main__` has one thread for the same reason.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Collect garbage as rarely as the command does in its own process. Collecting the tests makes little of it.
    gc.set_threshold(200_000, 20, 20)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with many cases, on each backend, keep those with the smallest checksums; all if a file or a test is
    named, or `-k` or `--all` is given."""
    if config.getoption("--all", False) or config.option.keyword or any(".py" in word for word in config.args):
        return
    tests: defaultdict[tuple[str, str | None, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0], _backend(item), _most_cases(item)].append(item)
    left_out = {item for (*_, most), cases in tests.items() for item in sorted(cases, key=_checksum)[most:]}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def _most_cases(item: pytest.Item) -> int:
    """How many cases of a test are run: none that is slow, else as the marker of the test, its class or its file says."""
    if item.get_closest_marker("slow"):
        return 0
    for mark in item.iter_markers():
        if mark.name == "all_cases":
            return sys.maxsize
        if mark.name == "cases":
            return int(mark.kwargs.get(_backend(item), mark.args[0]))
    return _MOST_CASES


def _checksum(item: pytest.Item) -> int:
    return zlib.crc32(item.name.encode())


def _backend(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("xp", callspec.params.get("backend"))


def pytest_collection_finish() -> None:
    """Exclude the test objects from garbage collection."""
    gc.collect()
    gc.freeze()


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


@pytest.fixture
def run() -> Callable[..., Outcome]:
    """`run('eval', 'x**2', 'x=3')` returns the exit status and the output."""

    def run(*arguments: str, stdin: str = "", variables: dict[str, str] | None = None) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        status = main(arguments, Environment(io.StringIO(stdin), out, err, variables or {}))
        return Outcome(int(status), out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def listening() -> Iterator[None]:
    """Restore the handlers of signals that are ignored when the tests run in the background or under nohup."""
    # Child processes inherit an ignored signal, but get the default action for a Python handler.
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Pool]]:
    """`threads(before, count)` makes `--cluster` use a pool of threads; returns the list of pools that were opened."""
    from gradcli.rows.distributed import dask_pool

    pools: list[Pool] = []

    def threads(before: Before = lambda *_: None, count: int = 2) -> list[Pool]:
        @contextmanager
        def opened(_where: str, _tell: object) -> Iterator[Pool]:
            pools.append(Pool(before, count))
            try:
                yield pools[-1]
            finally:
                pools[-1].close()

        monkeypatch.setattr(dask_pool, "opened", opened)
        return pools

    threads()
    return threads
