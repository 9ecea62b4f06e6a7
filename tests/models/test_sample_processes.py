"""Tests `gradcli sample` on several cores: the same draws, errors and progress as in one process, and no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.errors import EvaluationError, LimitError
from gradcli.models import sample
from gradcli.models.results import Sampling
from gradcli.models.sampling import chain_processes

FUNNEL = {"v": 0.0, "x": np.zeros(3)}
SETTINGS: dict[str, Any] = {"draws": 30, "warmup": 40, "chains": 3}


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the number of cores; processes are started for any work that several share."""

    def cores(count: int) -> None:
        monkeypatch.setattr(chain_processes, "cores", lambda: count)
        monkeypatch.setattr(chain_processes, "_START", 0.0)

    return cores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "values", "bounds"),
    [
        ("-v**2/18 - sum(x**2*exp(-v))/2 - 3*v/2", FUNNEL, None),
        # Control flow that depends on the numbers, so that each chain evaluates in its own order.
        ("if v > 0 { -v**2/2 } else { -v**2 }", {"v": 1.0}, None),
        ("-s - sum(x**2)/s - sin(s)", {"s": 1.0, "x": np.ones(2)}, "s=0:"),
    ],
)
def test_the_draws_do_not_depend_on_the_cores(on: Any, program: str, values: Any, bounds: Any) -> None:
    found = []
    for count in (1, 2, 5):
        on(count)
        told: list[Sampling] = []
        found.append(sample(program, values, bounds=bounds, watch=told.append, seed=7, **SETTINGS))
        assert all(t.samples == 210 and 0 < t.drawn <= 210 for t in told)
    one, *others = found
    for other in others:
        assert other.posterior == one.posterior
        assert other.step_sizes == one.step_sizes
        assert all(np.array_equal(other.draws[name], one.draws[name]) for name in values)


def test_errors_of_processes(on: Any) -> None:
    on(2)
    with pytest.raises(EvaluationError, match="no finite log density"):
        sample("where(x > 1e9, 0.0, -inf)*1 + 0*x", x=0, **SETTINGS)
    with pytest.raises(LimitError, match="steps"):
        sample("-x**2/2", x=0, max_steps=20, max_depth=8, target=0.999, **SETTINGS)


def test_what_watches_may_end_the_chains(on: Any) -> None:
    on(2)

    def watch(_told: Sampling) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample("-sum(x**2)/2", x=np.zeros(50), draws=2_000, warmup=2_000, watch=watch)
    assert not _children(os.getpid())


@pytest.mark.skipif(sys.platform != "linux" or chain_processes.cores() < 2, reason="reads /proc, and needs two cores")
def test_an_interrupt_ends_all_processes() -> None:
    words = ["sample", "-sum(x**2)/2 - sum(x**4)", "x=zeros(100)", "--draws", "1000000", "--quiet"]
    with subprocess.Popen([sys.executable, "-m", "gradcli", *words], stderr=subprocess.PIPE) as command:
        try:
            end = time.monotonic() + 30
            while len(children := _children(command.pid)) < 2:
                assert time.monotonic() < end
                assert command.poll() is None
                time.sleep(0.02)
            # Only the command gets the signal; in a terminal its children do too.
            command.send_signal(signal.SIGINT)
            assert command.wait(10) == 130
        finally:
            command.kill()
    # A process that was just being started ends when it finds that its caller has.
    while any(_is_alive(child) for child in children):
        assert time.monotonic() < end + 30
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]
