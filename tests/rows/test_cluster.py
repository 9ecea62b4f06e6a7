"""Tests `gradcli map --cluster`: the results are the same on many machines, whatever happens to the workers.

Tests that do not need processes use a pool of threads with the interface of Dask.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars
import pytest

from gradcli.errors import GradcliError, UsageError
from gradcli.models.fitting.problem import stacked_problems
from gradcli.rows.distributed import dask_pool, workers
from gradcli.rows.distributed.manifest import Manifest
from tests.cluster_pools import Died, Killed, killed_at

PROGRAM = "sin(q*log(x))*exp(-x)"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of 1,000 rows, with line breaks in fields."""
    path = tmp_path / "table.csv"
    rows = [f'{k},{1 + k % 7 / 4},{k % 5 - 2},"a\n{k}"' for k in range(1, 1001)]
    path.write_text("\n".join(["n,x,q,note", *rows, ""]))
    return path


@pytest.fixture
def on(run: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """`on('local', PROGRAM, FILE, …)` runs in parts of 4 kB, into the directory `out`."""

    def on(where: str, *words: object) -> Any:
        usual = {"--output": tmp_path / "out", "--part-bytes": "4kB"}
        added = [word for name, value in usual.items() if name not in words for word in (name, value)]
        return run("map", *map(str, (*words, "--cluster", where, *added)))

    return on


def manifest(directory: Path) -> Any:
    return json.loads((directory / "gradcli-map.json").read_text())


def parts(directory: Path) -> list[Path]:
    return sorted(directory.glob("part-*"))


def joined(directory: Path) -> str:
    """The concatenated parts, with one header."""
    texts = [part.read_bytes().decode() for part in parts(directory)]
    header = texts[0][: texts[0].index("\n") + 1]
    assert all(text.startswith(header) for text in texts)
    return header + "".join(text.removeprefix(header) for text in texts)


def states(directory: Path) -> list[str]:
    return [part["state"] for part in manifest(directory)["parts"]]


def failing(path: Path, *rows: int) -> None:
    """Make rows of the table fail, by a date instead of a number."""
    text = path.read_text()
    for row in rows:
        text = re.sub(f"\n{row},[^,]*", f"\n{row},2020-01-01", text)
    path.write_text(text)


def done(directory: Path) -> int:
    """The number of parts that are done according to the manifest."""
    return states(directory).count("done") if (directory / "gradcli-map.json").exists() else 0


def test_complex_numbers_go_to_workers_and_back(run, on, tmp_path, threads):
    table = tmp_path / "table.csv"
    table.write_text("z\n(1+2j)\n0\n")
    words = ("a/z", table, "a=1j")
    whole = run("map", *map(str, words))
    outcome = on("local", *words)
    assert outcome.status == 0
    assert joined(tmp_path / "out") == whole.out
    assert outcome.err == whole.err.replace("row 2", f"row 2 of {table}")


def test_parts_are_what_one_machine_writes(run, on, table, tmp_path, threads):
    whole = run("map", PROGRAM, str(table))
    assert whole.status == 0
    outcome = on("local", PROGRAM, table)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    out = tmp_path / "out"
    assert joined(out) == whole.out
    assert [part.name for part in parts(out)] == [f"part-{k:05}.csv" for k in range(len(parts(out)))]
    assert len(parts(out)) > 3
    assert sorted(os.listdir(out)) == ["gradcli-map.json", *(part.name for part in parts(out))]


def test_the_manifest_says_what_was_done(on, table, tmp_path, threads):
    on("local", "a*x", table, "a=2", "--wrt", "x", "--on-error", "skip")
    found = manifest(tmp_path / "out")
    status = table.stat()
    assert found["program"] == "a*x"
    assert found["bindings"] == {"columns": {}, "shared": {"a": 2.0}}
    assert found["version"] == workers.VERSION
    assert found["inputs"] == [{"path": str(table), "size": status.st_size, "modified": status.st_mtime_ns}]
    assert (found["schema"], found["rows"], found["parts_missing"]) == (1, 1000, 0)
    ends = [part["end"] for part in found["parts"]]
    assert ends[-1] == status.st_size
    starts = [part["start"] for part in found["parts"]]
    assert starts == [0, *ends[:-1]]
    sizes = [end - start for start, end in zip(starts, ends)]
    assert max(sizes) <= 4000
    assert min(sizes[:-1]) > 3700
    assert sum(part["result"]["rows_in"] for part in found["parts"]) == 1000


def test_several_files_in_the_order_of_the_input(run, on, table, tmp_path, threads):
    other = tmp_path / "a.csv"
    other.write_text("n,x,q,note\n0,3,1,\n")
    on("local", PROGRAM, table, other, "--wrt", "x")
    out = tmp_path / "out"
    assert [part["input"] for part in manifest(out)["parts"]][-2:] == [0, 1]
    assert joined(out) == run("map", PROGRAM, str(table), str(other), "--wrt", "x").out


def test_json_lines(run, on, tmp_path, threads):
    path = tmp_path / "table.jsonl"
    path.write_text("".join(f'{{"x": {1 + k / 8}, "note": "a\\n{{\\"{k}"}}\n' for k in range(600)))
    assert on("local", "x**2", path).status == 0
    texts = [part.read_text() for part in parts(tmp_path / "out")]
    assert "".join(texts) == run("map", "x**2", str(path)).out
    assert len(texts) > 3
    assert on("local", "x**2", path, "--to", "csv", "--output", tmp_path / "csv").status == 0
    assert joined(tmp_path / "csv") == run("map", "x**2", str(path), "--to", "csv").out


@pytest.mark.parametrize("rows", [0, 1, 600])
def test_parquet(run, on, tmp_path, threads, rows):
    path = tmp_path / "table.parquet"
    frame = polars.DataFrame({"k": range(rows), "x": [1 + k / 8 for k in range(rows)]})
    frame.write_parquet(path, compression="uncompressed", row_group_size=100)
    assert on("local", "x**2", path, "--part-bytes", "2kB").status == 0
    texts = [polars.read_parquet(part) for part in parts(tmp_path / "out")]
    assert run("map", "x**2", str(path), "--output", str(tmp_path / "whole.parquet")).status == 0
    assert polars.concat(texts).equals(polars.read_parquet(tmp_path / "whole.parquet"))
    assert (len(texts) > 3) == (rows > 1)


def test_a_run_that_was_killed_goes_on_where_it_was(run, on, table, tmp_path, threads):
    threads(killed_at(4), 1)
    with pytest.raises(Killed):
        on("local", PROGRAM, table)
    out = tmp_path / "out"
    assert states(out)[:4] == ["done", "done", "done", "waiting"]
    kept = {part: part.stat().st_mtime_ns for part in parts(out)[:3]}
    pools = threads()
    assert on("local", PROGRAM, table, "--resume").status == 0
    assert pools[-1].given == len(parts(out)) - 3
    assert {part: part.stat().st_mtime_ns for part in kept} == kept
    assert joined(out) == run("map", PROGRAM, str(table)).out
    # Nothing is left to do.
    assert on("local", PROGRAM, table, "--resume").status == 0
    assert pools[-1].given == 0


def test_a_part_that_is_gone_or_cut_is_computed_again(run, on, table, tmp_path, threads):
    on("local", PROGRAM, table)
    out = tmp_path / "out"
    whole = joined(out)
    parts(out)[2].unlink()
    os.truncate(out / "part-00003.csv", 10)
    (out / ".gradcli-0123.tmp").write_text("half of a par")
    pools = threads()
    assert on("local", PROGRAM, table, "--resume").status == 0
    assert pools[-1].given == 2
    assert joined(out) == whole
    assert ".gradcli-0123.tmp" not in os.listdir(out)


def test_a_run_is_resumed_only_as_it_was(on, table, tmp_path, threads):
    threads(killed_at(2), 1)
    with pytest.raises(Killed):
        on("local", "a*x", table, "a=2")
    threads()
    other = tmp_path / "b.csv"
    other.write_text("n,x\n1,2\n")
    # A file that another process is writing.
    written = tmp_path / "out" / ".gradcli-0123.tmp"
    written.touch()
    for words, difference in (
        (("a+x", table, "a=2"), 'another program: "a*x", not "a+x"'),
        (("a*x", table, "a=3"), "another a: 2.0, not 3.0"),
        (("a*x", table, "a=2", "--wrt", "x"), 'another wrt: null, not ["x"]'),
        (("a*x", table, "a=2", "--part-bytes", "8kB"), "another part_bytes: 4000, not 8000"),
        (("a*x", table, other, "a=2"), f"other inputs, as {str(other)!r}"),
    ):
        outcome = on("local", *words, "--resume")
        assert outcome.status == 2
        assert difference in outcome.err
    outcome = on("local", "a*x", table, "a=2")
    assert outcome.status == 2
    assert "--resume continues it" in outcome.err
    with open(table, "a") as file:
        file.write("1001,1,1,\n")
    outcome = on("local", "a*x", table, "a=2", "--resume")
    assert outcome.status == 2
    assert f"{str(table)!r} has changed since the run began" in outcome.err
    assert written.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "is damaged"),
        (lambda text: "[]", "is damaged"),
        (lambda text: "[" * 100_000, "is damaged"),
        (lambda text: text.replace('"parts"', '"part"'), "is damaged"),
        (lambda text: text.replace('"schema":1', '"schema":2'), "is of a later gradcli"),
        (
            lambda text: text.replace(f'"version":"{workers.VERSION}"', '"version":"0.0.9"'),
            "is one of gradcli 0.0.9, not",
        ),
    ],
)
def test_a_manifest_that_is_none(on, table, tmp_path, threads, change, message):
    on("local", "x", table)
    path = tmp_path / "out" / "gradcli-map.json"
    path.write_text(change(path.read_text()))
    before = path.read_text()
    outcome = on("local", "x", table, "--resume")
    assert outcome.status == 2
    assert message in outcome.err
    assert path.read_text() == before


def test_a_manifest_of_a_later_version_may_have_more_keys(on, table, tmp_path, threads):
    on("local", "x", table)
    path = tmp_path / "out" / "gradcli-map.json"
    path.write_text(
        path.read_text()
        .replace('"schema":1', '"schema":1,"later":{"a":1}')
        .replace('"result":{', '"result":{"later":1,')
    )
    assert on("local", "x", table, "--resume").status == 0


def test_a_part_that_fails_for_its_data_does_not_stop_the_others(run, on, table, tmp_path, threads):
    failing(table, 600)
    outcome = on("local", PROGRAM, table, "--on-error", "fail")
    assert outcome.status == 1
    out = tmp_path / "out"
    [failed] = [part for part in manifest(out)["parts"] if part["state"] != "done"]
    assert failed["state"] == "failed"
    assert f"{failed['file']} is missing: row 600 of {table}" in outcome.err
    assert failed["file"] not in os.listdir(out)
    assert len(parts(out)) == len(manifest(out)["parts"]) - 1
    # A failed part is tried again, with the same result.
    pools = threads()
    again = on("local", PROGRAM, table, "--on-error", "fail", "--resume")
    assert (again.status, again.err, pools[-1].given) == (1, outcome.err, 1)


def test_failing_rows_are_counted_over_all_parts(run, on, table, tmp_path, threads):
    failing(table, 600, 900)
    whole = run("map", PROGRAM, str(table))
    outcome = on("local", PROGRAM, table)
    assert outcome.status == 0
    assert "2 of 1,000 rows failed" in whole.err
    assert outcome.err.replace(f" of {table}", "") == whole.err
    assert joined(tmp_path / "out") == whole.out


@pytest.mark.parametrize("program", ["n/(x-2)*q", "[n/(x-2), q]"])
def test_results_that_are_not_finite_are_counted_over_all_parts(run, on, table, tmp_path, threads, program):
    whole = run("map", program, str(table))
    assert "have results that are not finite; the first is row 4" in whole.err
    outcome = on("local", program, table)
    assert outcome.err.replace(f" of {table}", "") == whole.err


def test_rows_with_few_right_digits_are_counted_over_all_parts(run, on, table, tmp_path, threads):
    program = "odeint(lambda y, t: [10*(y[1] - y[0]), y[0]*(r - y[2]) - y[1], y[0]*y[1] - 8/3*y[2]], [1, 1, 1], [0, 40])[1][0]"
    table.write_text("r,n\n" + "".join(f"{28 if i % 10 == 7 else 1},{i}\n" for i in range(50)))
    whole = run("map", program, str(table))
    assert "5 of 50 rows have results with few right digits; the first is row 8" in whole.err
    outcome = on("local", program, table)
    assert outcome.err.replace(f" of {table}", "") == whole.err


def test_a_task_whose_worker_died_is_given_to_another(run, on, table, tmp_path, threads):
    def before(number: int, _part: str) -> None:
        if number in (3, 5):
            raise Died(1)

    pools = threads(before)
    assert on("local", PROGRAM, table, "--retries", "1").status == 0
    assert joined(tmp_path / "out") == run("map", PROGRAM, str(table)).out
    assert pools[-1].given == len(parts(tmp_path / "out")) + 2


def test_a_task_that_kills_its_workers_is_given_up(on, table, tmp_path, threads):
    def before(_number: int, part: str) -> None:
        if part == "part-00001.csv":
            raise Died(1)

    threads(before, 1)
    outcome = on("local", PROGRAM, table, "--retries", "2")
    assert outcome.status == 1
    assert f"part-00001.csv is missing: {table}: 3 workers died of it" in outcome.err
    assert states(tmp_path / "out").count("failed") == 1
    assert "waiting" not in states(tmp_path / "out")


def test_an_interrupt_cancels_what_is_left_and_keeps_what_is_done(on, table, tmp_path, threads, monkeypatch):
    pools = threads(lambda *_: time.sleep(0.01))
    record = Manifest.record

    def interrupted(self: Manifest, part: int, result: dict[str, Any]) -> None:
        record(self, part, result)
        raise KeyboardInterrupt

    monkeypatch.setattr(Manifest, "record", interrupted)
    outcome = on("local", PROGRAM, table)
    assert (outcome.status, outcome.err) == (130, "interrupted\n")
    assert done(tmp_path / "out") == 1
    assert pools[-1].cancelled
    monkeypatch.undo()


def test_a_cluster_that_is_lost_leaves_what_was_done(on, table, tmp_path, threads):
    def before(number: int, _part: str) -> None:
        if number == 3:
            raise ConnectionError("gone")

    threads(before, 1)
    outcome = on("local", PROGRAM, table)
    assert outcome.status == 1
    assert "the cluster is lost: gone" in outcome.err
    assert states(tmp_path / "out")[:3] == ["done", "done", "waiting"]


def test_an_input_that_changes_while_it_is_read(on, table, tmp_path, threads):
    threads(lambda number, _: number == 3 and os.utime(table, (1, 1)))
    outcome = on("local", PROGRAM, table)
    assert outcome.status == 1
    assert f"{str(table)!r} has changed while it was read" in outcome.err
    assert on("local", PROGRAM, table, "--resume").status == 2


def test_a_worker_that_sees_other_files(on, table, tmp_path, threads):
    def elsewhere(number: int, _part: str) -> None:
        if number == 3:
            (tmp_path / "out" / "part-00000.csv").unlink()

    threads(elsewhere, 1)
    outcome = on("local", PROGRAM, table)
    assert outcome.status == 1
    assert "part-00000.csv', which is not here" in outcome.err

    threads(lambda number, _: number == 1 and os.truncate(table, 100))
    assert on("local", PROGRAM, table, "--resume").status == 1
    assert "has 100 bytes, and had" in manifest(tmp_path / "out")["parts"][0]["result"]["error"]["message"]


def test_more_rows_fail_than_are_allowed(on, table, tmp_path, threads):
    failing(table, 100, 900)
    assert on("local", PROGRAM, table, "--max-errors", "2").status == 0
    outcome = on("local", PROGRAM, table, "--max-errors", "1", "--output", tmp_path / "one")
    assert outcome.status == 1
    assert "2 rows failed, and --max-errors allows 1" in outcome.err
    assert set(states(tmp_path / "one")) == {"done"}


def test_errors_and_counts_as_json(on, table, tmp_path, threads):
    failing(table, 600)
    outcome = on("local", PROGRAM, table, "--on-error", "fail", "--json")
    error, rows = map(json.loads, outcome.err.splitlines())
    assert error["error"]["message"].startswith(f"part-00002.csv is missing: row 600 of {table}, where ")
    assert (outcome.status, rows["rows"]["failed"]) == (1, 0)
    assert rows["rows"]["rows_out"] == manifest(tmp_path / "out")["rows"]


def test_a_file_among_others_that_is_none(on, table, tmp_path, threads):
    outcome = on("local", PROGRAM, table, tmp_path / "none.csv")
    assert outcome.status == 2
    assert "none.csv': there is no such file" in outcome.err
    (tmp_path / "empty.csv").touch()
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    outcome = on("local", PROGRAM, tmp_path / "other.csv", table)
    assert outcome.status == 2
    outcome = on("local", PROGRAM, table, tmp_path / "empty.csv", tmp_path / "other.csv")
    assert outcome.status == 1
    assert f"part-00005.csv is missing: {tmp_path / 'empty.csv'} is empty" in outcome.err
    assert "other.csv: the table has no column" in outcome.err
    assert states(tmp_path / "out")[-3:] == ["done", "failed", "failed"]


def test_words_that_are_wrong(run, on, table, tmp_path, threads, monkeypatch):
    for words, message in (
        (("--cluster", "local"), "--cluster writes parts into a directory"),
        (("--resume",), "--resume is for many machines"),
        (("--part-bytes", "1MB"), "--part-bytes is for many machines"),
        (("--cluster", "local", "--output", "o", "--part-bytes", "few"), "'few' is no size of parts"),
    ):
        outcome = run("map", "x", str(table), *words)
        assert outcome.status == 2
        assert message in outcome.err
    outcome = run("map", "x", "-", "--cluster", "local", "--output", str(tmp_path / "out"), stdin="x\n1\n")
    assert outcome.status == 2
    assert "standard input is on one machine alone" in outcome.err
    os.mkfifo(tmp_path / "pipe")
    outcome = on("local", "x", tmp_path / "pipe")
    assert outcome.status == 2
    assert "is no regular file" in outcome.err
    outcome = on("local", "x*y", table)
    assert outcome.status == 2
    assert "has no column 'y'" in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("remote", "there is no cluster 'remote'"),
        ("local:0", "there is no cluster 'local:0'"),
        ("local:1000000", "1,000,000 workers are more than this machine may start"),
        ("local:", "there is no cluster 'local:'"),
        ("http://a:1", "there is no cluster 'http://a:1'"),
    ],
)
def test_places_that_are_no_cluster(on, table, where, message):
    outcome = on(where, "x", table)
    assert outcome.status == 2
    assert message in outcome.err
    assert "tcp://HOST:PORT" in outcome.err


def test_without_dask(on, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = on("local", "x", table)
    assert outcome.status == 1
    assert "--cluster needs Dask, which is not installed" in outcome.err
    assert "[cluster]" in outcome.err


def test_nobody_answers(on, table):
    # Imported first, because the import sets its configuration.
    import distributed  # noqa: F401
    from dask import config

    with config.set({"distributed.comm.timeouts.connect": "100ms"}):
        outcome = on("tcp://127.0.0.1:9", "x", table)
    assert outcome.status == 1
    assert "no Dask cluster answers at tcp://127.0.0.1:9" in outcome.err


class Workers:
    """Workers of a Dask client that come and go; each answers when it is asked for its version."""

    status = "running"

    def __init__(self, **says: object) -> None:
        self.says = says

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.says, 1)

    def run(self, _function: object, _name: str, *, workers: list[str], on_error: str) -> dict[str, object]:
        assert on_error == "return"
        return {name: self.says[name] for name in workers if name in self.says}


@pytest.mark.parametrize(
    ("late", "message"), [(ModuleNotFoundError(), "the workers have no gradcli"), ("9.8.7", "run gradcli 9.8.7")]
)
def test_a_worker_that_comes_late_is_looked_at(late, message):
    client = Workers(first=workers.VERSION, gone=OSError())
    pool = dask_pool.DaskPool(client, "tcp://here:1", pytest.fail)
    assert pool.check()
    client.says["late"] = late
    with pytest.raises(UsageError, match=message):
        pool.check()


def test_no_workers_for_long(monkeypatch):
    now, told = [0.0], []
    monkeypatch.setattr(dask_pool, "time", SimpleNamespace(monotonic=lambda: now[0]))
    client = Workers()
    pool = dask_pool.DaskPool(client, "tcp://here:1", told.append)
    assert not pool.check()
    for _ in range(2):
        now[0] += 60
        assert not pool.check()
    assert told == ["there are no workers at tcp://here:1: waiting for some"]
    client.says["first"] = workers.VERSION
    assert pool.check()
    del client.says["first"]
    now[0] += 121
    with pytest.raises(GradcliError, match="there are no workers at tcp://here:1") as caught:
        pool.check()
    assert "--resume continues" in str(caught.value.hint)


def processes(scratch: Path) -> list[str]:
    """The processes of workers that were started with this temporary directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (entry / "cmdline").read_text()
            if "spawn_main" in command and f"TMPDIR={scratch}".encode() in (entry / "environ").read_bytes():
                found.append(command)
    return found


def wait_for(condition: Callable[[], Any], pause: float = 0.01) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(pause)


def command(table: Path, where: str, out: Path) -> subprocess.Popen[str]:
    """A run in many parts in its own process, after its first part is done."""
    words = ["map", PROGRAM, table, "--cluster", where, "--output", out]
    process = subprocess.Popen(
        [sys.executable, "-m", "gradcli", *map(str, words), "--part-bytes", "250"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: process.poll() is not None or done(out))
    return process


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone lists its processes in /proc")
def test_workers_that_are_processes(run, on, table, tmp_path, monkeypatch):
    """A single test for all cases, because starting processes takes seconds."""
    scratch, whole = tmp_path / "scratch", run("map", PROGRAM, str(table)).out
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with dask_pool.quiet(), dask_pool.started(2) as cluster:
        at = cluster.scheduler_address
        assert processes(scratch)
        another_version_is_refused(on, table, at)
        a_worker_is_killed(on, table, tmp_path / "out", cluster)
        two = {part.name: part.read_bytes() for part in parts(tmp_path / "out")}
        assert joined(tmp_path / "out") == whole
        the_command_is_killed(run, table, tmp_path / "killed", at)
        groups_are_fitted(run, tmp_path, monkeypatch, cluster)
        cluster.scale(1)
        wait_for(lambda: len(cluster.scheduler.workers) == 1)
        outcome = on(at, PROGRAM, table, "--output", tmp_path / "one")
        assert (outcome.status, outcome.err) == (0, "")
        assert {part.name: part.read_bytes() for part in parts(tmp_path / "one")} == two
    the_command_is_interrupted(run, table, tmp_path / "interrupted")
    the_scheduler_is_lost(on, table, tmp_path / "lost")
    wait_for(lambda: not processes(scratch), 0.2)
    assert os.listdir(scratch) == []


def another_version_is_refused(on, table, at):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "VERSION", "9.8.7")
        outcome = on(at, PROGRAM, table)
    assert outcome.status == 2
    assert f"the workers run gradcli {workers.VERSION}, and this is gradcli 9.8.7" in outcome.err


def a_worker_is_killed(on, table, out, cluster):
    with one_killed(cluster, lambda: done(out)):
        outcome = on(cluster.scheduler_address, PROGRAM, table)
    assert (outcome.status, outcome.err) == (0, "")
    assert manifest(out)["rows"] == 1000


@contextmanager
def one_killed(cluster: Any, when: Callable[[], Any]) -> Iterator[None]:
    """Within the block a worker is killed as soon as a condition holds."""
    victim = next(worker.pid for worker in cluster.workers.values() if worker.pid)

    def kill() -> None:
        wait_for(when)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()


def groups_are_fitted(run, folder, monkeypatch, cluster):
    """Fits of groups whose rows are scattered over the table."""
    monkeypatch.setattr(stacked_problems, "_GROUPS", 2)
    data, out = folder / "groups.csv", folder / "fits"
    rows = [f"{k % 40},{k},{k % 40 + k % 7 / 8}" for k in range(400)]
    data.write_text("\n".join(["g,x,y", *rows, ""]))
    words = ("fit", "y ~ a + b*x", str(data), "--by", "g")
    with one_killed(cluster, lambda: [*out.glob("part-*")]):
        outcome = run(*words, "--cluster", cluster.scheduler_address, "--output", str(out))
    assert (outcome.status, outcome.err) == (0, "")
    assert len(parts(out)) == 20
    assert joined(out) == run(*words).out


def the_command_is_killed(run, table, out, at):
    """Killing the command keeps the manifest, which knows the finished parts."""
    with command(table, at, out) as process:
        process.kill()
    assert done(out) < len(states(out))
    outcome = run("map", PROGRAM, str(table), "--cluster", at, "--output", str(out), "--part-bytes", "250", "--resume")
    assert (outcome.status, outcome.err) == (0, "")
    assert joined(out) == run("map", PROGRAM, str(table)).out


def the_command_is_interrupted(run, table, out):
    """An interrupt by Ctrl-C in a terminal, which reaches the workers too."""
    with command(table, "local:1", out) as process:
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate()
    assert (process.returncode, *said) == (130, "", "interrupted\n")
    assert 0 < done(out) < len(states(out))
    assert {name for name in os.listdir(out) if name.startswith(".")} == set()


def the_scheduler_is_lost(on, table, out):
    with dask_pool.quiet(), dask_pool.started(0) as cluster:

        def close():
            # One client is Dask's own; the other may not have been accepted yet.
            wait_for(lambda: len(cluster.scheduler.clients) > 1)
            time.sleep(0.5)
            cluster.close()

        closing = threading.Thread(target=close)
        closing.start()
        outcome = on(cluster.scheduler_address, PROGRAM, table, "--output", out)
        closing.join()
    assert outcome.status == 1
    assert f"the cluster at {cluster.scheduler_address} is lost" in outcome.err
