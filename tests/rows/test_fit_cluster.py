"""Tests `gradcli fit --by --cluster`: the same table of groups on many machines, with threads as workers.

Worker processes are tested in test_cluster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.models.fitting.problem import stacked_problems
from gradcli.rows.distributed import workers
from tests.cluster_pools import Died

MODEL = "y ~ a*exp(-k*x)"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """24 groups of 1 to 12 rows, scattered over the file, and two rows without a number, one of them the only row of
    its group."""
    monkeypatch.setattr(stacked_problems, "_GROUPS", 10)
    random = np.random.default_rng(5)
    rows = []
    for group in range(24):
        for x in random.uniform(0, 4, 1 + group % 12):
            y = (2 + group / 9) * np.exp(-0.4 * x) + 0.05 * random.standard_normal()
            rows.append(f'"g,{group}",{x},{y},{0.05 + x / 40}')
    random.shuffle(rows)
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["g,x,y,dy", rows[0], "gone,1,,1", *rows[1:], '"g,7",1,NA,1', ""]))
    return path


@pytest.fixture
def on(run: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """`on(MODEL, FILE, …)` fits the groups of the column g, into the directory `out`."""

    def on(*words: object, stdin: str = "") -> Any:
        added = () if "--output" in words else ("--output", tmp_path / "out")
        return run("fit", *map(str, (*words, "--by", "g", "--cluster", "local", *added)), stdin=stdin)

    return on


def manifest(directory: Path) -> Any:
    return json.loads((directory / "gradcli-fit.json").read_text())


def joined(directory: Path, header: bool = True) -> str:
    """The concatenated parts, with one header."""
    texts = [part.read_text() for part in sorted(directory.glob("part-*"))]
    return texts[0] + "".join(text.partition("\n")[2] if header else text for text in texts[1:])


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "words",
    [
        ("--starts", "3"),
        ("a=2", "k=0.4", "--sigma", "dy", "--absolute-sigma", "--profile"),
        ("k=0.4", "--fix", "k", "--loss", "huber"),
        ("a=2", "k=0.4", "--x-sigma", "x=dy"),
        ("a=2", "k=0.4", "--offset", "x/100"),
        ("a=2", "k=0.4", "--sigma", "0.05", "--absolute-sigma", "--prior", "k=0.4±0.1", "--bounds", "a=0:3"),
    ],
)
def test_parts_are_what_one_machine_writes(run, on, table, tmp_path, threads, words):
    whole = run("fit", MODEL, str(table), *words, "--by", "g")
    outcome = on(MODEL, table, *words)
    assert (outcome.status, outcome.out, outcome.err) == (1, "", whole.err)
    assert "2 rows were left out" in whole.err
    assert "of 25 groups are not fitted; the first is " in whole.err
    assert joined(tmp_path / "out") == whole.out
    bounds = [(part["start"], part["end"]) for part in manifest(tmp_path / "out")["parts"]]
    assert bounds == [(0, 10), (10, 20), (20, 25)]


def test_json_lines(run, on, table, tmp_path, threads):
    whole = run("fit", MODEL, str(table), "a=2", "k=0.4", "--by", "g", "--json")
    outcome = on(MODEL, table, "a=2", "k=0.4", "--json")
    assert (outcome.status, outcome.err) == (1, whole.err)
    assert joined(tmp_path / "out", header=False) == whole.out
    assert manifest(tmp_path / "out")["parts"][0]["file"] == "part-00000.jsonl"


def test_the_data_may_be_where_no_worker_finds_them(run, on, table, tmp_path, threads):
    whole = run("fit", "y ~ a + b*x", str(table), "--by", "g")
    assert on("y ~ a + b*x", "-", stdin=table.read_text()).err == whole.err
    assert joined(tmp_path / "out") == whole.out
    assert manifest(tmp_path / "out")["inputs"] == []


def test_a_run_that_lost_its_scheduler_goes_on_where_it_was(run, on, table, tmp_path, threads):
    def before(number: int, _part: str) -> None:
        if number == 3:
            raise ConnectionError("gone")

    threads(before, 1)
    outcome = on(MODEL, table, "a=2", "k=0.4")
    assert outcome.status == 1
    assert "the cluster is lost: gone" in outcome.err
    out = tmp_path / "out"
    kept = {part: part.stat().st_mtime_ns for part in out.glob("part-*")}
    assert [part["state"] for part in manifest(out)["parts"]] == ["done", "done", "waiting"]
    threads()
    for words, difference in (
        (("y ~ a*exp(-x*k)", table, "a=2", "k=0.4"), 'another model: "y ~ a*exp(-k*x)", not "y ~ a*exp(-x*k)"'),
        ((MODEL, table, "a=2", "k=0.5"), "another k: 0.4, not 0.5"),
        ((MODEL, table, "a=2", "k=0.4", "--level", "0.9"), "another level: 0.95, not 0.9"),
        ((MODEL, table, "a=2", "k=0.4", "--json"), "has another to: "),
    ):
        outcome = on(*words, "--resume")
        assert outcome.status == 2
        assert difference in outcome.err
    outcome = on(MODEL, table, "a=2", "k=0.4")
    assert outcome.status == 2
    assert "--resume continues it" in outcome.err
    pools = threads()
    resumed = on(MODEL, table, "a=2", "k=0.4", "--resume")
    whole = run("fit", MODEL, str(table), "a=2", "k=0.4", "--by", "g")
    assert (resumed.err, joined(out)) == (whole.err, whole.out)
    assert pools[-1].given == 1
    assert {part: part.stat().st_mtime_ns for part in kept} == kept
    # Other data of the same size and modification time.
    text, times = table.read_text(), table.stat().st_mtime_ns
    table.write_text(text.replace('"g,1"', '"g,Z"', 1))
    os.utime(table, ns=(times, times))
    outcome = on(MODEL, table, "a=2", "k=0.4", "--resume")
    assert outcome.status == 2
    assert "has another data: " in outcome.err


def test_a_portion_that_kills_its_workers_is_given_up(on, table, tmp_path, threads):
    def before(_number: int, part: str) -> None:
        if part == "part-00001.csv":
            raise Died(1)

    threads(before)
    outcome = on(MODEL, table, "a=2", "k=0.4")
    assert outcome.status == 1
    assert "part-00001.csv is missing: 4 workers died of it" in outcome.err
    assert sorted(part.name for part in (tmp_path / "out").glob("part-*"))[:2] == ["part-00000.csv", "part-00002.csv"]


def test_a_limit_of_steps_is_an_error_of_the_portion(run, on, table, tmp_path, threads):
    program = "s = 0\nwhile s < 9:\n    s = s + 1\ny ~ a*x + s*b"
    whole = run("fit", program, str(table), "--by", "g", "--max-steps", "5")
    outcome = on(program, table, "--max-steps", "5")
    assert whole.status == outcome.status
    assert whole.err.splitlines()[0].removeprefix("error: ") in outcome.err


def test_a_worker_knows_no_other_kinds_of_tasks():
    told = workers.perform(workers.VERSION, "os:system", {})
    assert "internal error" in told["error"]["message"]
    assert workers.perform("9.8.7", "fit", {}) == {"version": workers.VERSION}


def test_words_that_are_wrong(run, on, table, tmp_path, threads):
    cluster = ("--cluster", "local", "--output", str(tmp_path / "out"))
    for words, message in (
        (cluster, "one fit is for one machine"),
        (("--by", "g", "--cluster", "local"), "--cluster writes parts into a directory"),
        (("--by", "g", "--output", "o"), "--output is for many machines"),
        (("--by", "g", "--resume"), "--resume is for many machines"),
        (("--by", "g", *cluster, "--residuals", "r.csv"), "--residuals is for one machine"),
        (("--by", "x", *cluster, "--max-seconds", "9"), "--max-seconds and --max-memory limit one process"),
        (("--by", "h", *cluster), "no column 'h'"),
    ):
        outcome = run("fit", MODEL, str(table), *words)
        assert outcome.status == 2
        assert message in outcome.err
    assert not (tmp_path / "out").exists()
    run("map", "x", str(table), *cluster)
    for resume in ((), ("--resume",)):
        outcome = on(MODEL, table, *resume)
        assert outcome.status == 2
        assert "no run of gradcli fit that wrote them" in outcome.err
