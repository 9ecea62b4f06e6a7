"""What the tests share: running the command line with streams of their own."""

from __future__ import annotations

import gc
import io
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from gradcli.cli.environment import Environment
from gradcli.cli.main import main
from tests.cluster_pools import Before, Pool


def pytest_collection_finish() -> None:
    """The tests stay until the end: the garbage collector need not walk all of them again and again, and what is run
    in this process is collected as seldom as the command does it in its own."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)


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
    """`run('eval', 'x**2', 'x=3')` gives the exit status and what was printed."""

    def run(*arguments: str, stdin: str = "", variables: dict[str, str] | None = None) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        status = main(arguments, Environment(io.StringIO(stdin), out, err, variables or {}))
        return Outcome(int(status), out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def listening() -> Iterator[None]:
    """Processes that are started end by an interrupt: whoever starts the tests in the background has it ignored."""
    # What a handler of Python's is for another program is the default.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Pool]]:
    """`threads(before, count)` has `--cluster` lead to a pool of threads; the pools that were opened are listed."""
    from gradcli.rows import dask_pool

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
