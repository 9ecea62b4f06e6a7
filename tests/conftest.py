"""What the tests share: running the command line with streams of their own."""

from __future__ import annotations

import gc
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gradcli.cli.environment import Environment
from gradcli.cli.main import main


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
