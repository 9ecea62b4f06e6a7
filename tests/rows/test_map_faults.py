"""Tests that no row of a table is lost or doubled by a fault, and that no output is half written."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.errors import GradcliError
from gradcli.rows.formats.opening import open_table
from gradcli.rows.formats.reading import TableReadOptions
from gradcli.rows.pipeline import FailurePolicy, run_rows
from gradcli.rows.plan import RowRequest, make_plan
from tests import faults
from tests.faults import Killed, every

SHELL = [sys.executable, "-m", "gradcli"]
WORDS = ["map", "x**2", "in.csv", "--output", "out.csv"]
HARMLESS = {"interrupted": faults.interrupted, "short": faults.short}
FAULTS = {name: faults.failing(number) for name, number in (("no space", errno.ENOSPC), ("too many", errno.EMFILE))}
EARLIER = b"what was there before\n"


@pytest.fixture
def _table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("x\n" + "".join(f"{n}\n" for n in range(50)))
    Path("out.csv").write_bytes(EARLIER)


def left():
    """The other files in the directory, and the output."""
    return sorted(set(os.listdir()) - {"in.csv", "out.csv"}), Path("out.csv").read_bytes()


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("fault", [*FAULTS, *HARMLESS])
def test_whatever_the_file_system_does(run, monkeypatch, fault):
    assert run(*WORDS).status == 0
    _, right = left()
    assert right.count(b"\n") == 51
    opened = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else None
    for injected in every(monkeypatch, {**FAULTS, **HARMLESS}[fault]):
        Path("out.csv").write_bytes(EARLIER)
        done = run(*WORDS)
        if fault in HARMLESS or not injected.reached or done.status == 0:
            # A path that seems not to be a file may still be opened.
            assert (done.status, done.err, left()) == (0, "", ([], right))
        else:
            assert done.status in (1, 2)
            assert re.match(r"error: cannot (read|write) '(in|out)\.csv': ", done.err)
            assert left() == ([], EARLIER)
        assert opened is None or len(os.listdir("/proc/self/fd")) == opened
    assert injected.at > 6


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("fault", [faults.killed, faults.killed_within])
def test_a_kill_at_every_call(run, monkeypatch, fault):
    run(*WORDS)
    _, right = left()
    for injected in every(monkeypatch, fault):
        Path("out.csv").write_bytes(EARLIER)
        try:
            run(*WORDS)
        except Killed:
            assert injected.killed
        rest, target = left()
        assert target in (EARLIER, right)
        for name in rest:
            assert re.fullmatch(r"\.gradcli-[0-9a-f]{16}\.tmp", name)
            Path(name).unlink()
    assert target == right


@pytest.mark.usefixtures("_table")
def test_a_disk_that_is_full(run):
    done = run("map", "x**2", "in.csv", "--output", "/dev/full")
    assert done.status == 1
    assert done.err.startswith("error: cannot write '/dev/full': No space left on device")


@pytest.mark.usefixtures("_table")
def test_a_file_that_changes_is_no_longer_like_the_first(run, monkeypatch):
    from gradcli.rows.formats import opening

    Path("b.csv").write_text("x\n1\n")
    opened = []

    def open_and_change(source, *further, **named):
        opened.append(source)
        if opened.count("b.csv") == 2:
            Path("b.csv").write_text("y\n1\n")
        return open_table(source, *further, **named)

    monkeypatch.setattr(opening, "open_table", open_and_change)
    done = run("map", "x**2", "in.csv", "b.csv", "--output", "out.csv")
    assert (done.status, Path("out.csv").read_bytes()) == (2, EARLIER)
    assert done.err.startswith("error: b.csv and in.csv have not the same columns")


@pytest.mark.usefixtures("listening")
def test_an_interrupt_of_who_waits_for_a_question():
    words = [*SHELL, "map", "x**2", "-", "--from", "jsonl"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for x in (1, 2):
            process.stdin.write(b'{"x":%d}\n' % x)
            process.stdin.flush()
            # It is answered before the next one is sent.
            assert process.stdout.readline() == b'{"x":%d,"value":%d.0,"d_x":%d.0}\n' % (x, x * x, 2 * x)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b"interrupted\n"


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_ended_leaves_no_file(number, tmp_path):
    words = [*SHELL, "map", "x**2", "-", "--output", str(tmp_path / "out.csv"), "--from", "csv"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"x\n1\n")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not os.listdir(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert os.listdir(tmp_path)
        process.send_signal(number)
        assert process.wait(20) == -number
        assert process.stderr.read() == b""
    assert os.listdir(tmp_path) == []


def test_a_blank_line_of_who_waits_for_an_answer():
    words = [*SHELL, "map", "x**2", "-", "--from", "jsonl", "--quiet", "--no-grad"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for line, answer in (
            (b"\n", {"error": "the line is blank", "line": "", "value": None}),
            (b'{"x":3}\n', {"x": 3, "value": 9}),
            (b" \r\n", {"error": "the line is blank", "line": "", "value": None}),
        ):
            process.stdin.write(line)
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == answer


@pytest.mark.usefixtures("_table")
def test_a_closed_pipe_ends_quietly():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*SHELL, *WORDS[:3]], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


# A value with a branch, an index that fails, and numbers that are missing.
PROGRAM = "y = [x, 2*x]; sin(y[int(n)]) if x > 1 else x**n"
FIELD = st.sampled_from(
    ["0", "1", "2", "-1", "3.5", "", "NA", "x", '"a,b"', '"a\nb"', "2024-01-02", "é", "1e999", " 2 "]
)
ROW = st.lists(FIELD, min_size=1, max_size=4).map(",".join)


def mapped(table, block, threads, policy=FailurePolicy()):  # noqa: B008
    """The output, the report, and the error that ended the run."""
    reader = open_table("table", TableReadOptions("csv", ",", block=block), stream=io.BytesIO(table))
    plan = make_plan(RowRequest(PROGRAM, wrt=("x",)), reader.columns)
    out = io.BytesIO()
    try:
        report = run_rows([reader], plan, reader.format, out, policy, threads=threads)
    except GradcliError as error:
        return out.getvalue(), error.report(), None
    return out.getvalue(), "", report


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(st.lists(ROW, max_size=12), st.sampled_from(["\n", "\r\n"]), st.integers(1, 60), st.integers(1, 4))
def test_the_same_bytes_however_a_table_is_cut(rows, line_end, block, threads):
    table = line_end.join(["x,n,note", *rows, ""]).encode()
    for policy in (FailurePolicy(), FailurePolicy(skip=True), FailurePolicy(max_failures=1)):
        whole = mapped(table, 2**20, 1, policy)
        assert mapped(table, block, threads, policy) == whole
    out, _, report = mapped(table, block, threads)
    assert report.rows_in == report.rows_out
    assert report.missing + report.failed <= report.rows_in
    assert out.startswith(table.rstrip(line_end.encode()).partition(line_end.encode())[0] + b",value,d_x")
