"""Tests a file system fault at every call: the result is a clean error or correct, and files are complete."""

from __future__ import annotations

import ast
import errno
import io
import os
import re
import signal
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradcli
from gradcli.cli.main import main
from gradcli.cli.process.environment import Environment
from gradcli.errors import OutputError
from gradcli.io import output
from tests import faults
from tests.faults import Faults, Killed, every

FAULTS = {
    "no space": faults.failing(errno.ENOSPC),
    "input/output error": faults.failing(errno.EIO),
    "too many files": faults.failing(errno.EMFILE),
    "interrupted": faults.interrupted,
    "short": faults.short,
}
HARMLESS = {"interrupted", "short"}
TABLE = "\n".join(f"{n},{n}" for n in range(3000)) + "\n"
READING = {
    "npy": ["sum(x)", "x=@a.npy"],
    "npz": ["sum(x)", "x=@a.npz:x"],
    "compressed npz": ["sum(x)", "x=@c.npz"],
    "csv": ["sum(x)", "x=@a.csv:1"],
    "tsv": ["sum(x)", "x=@a.tsv"],
    "json": ["sum(x)", "x=@a.json"],
    "parquet": ["sum(x)", "x=@a.parquet:x"],
    "a program": ["--file", "program", "x=3"],
    "variables": ["sum(x)", "--vars", "vars.json"],
    "a missing file": ["sum(x)", "x=@b.npy"],
}


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.arange(3000.0)
    np.save("a.npy", x)
    np.savez("a.npz", x=x, y=x)
    np.savez_compressed("c.npz", x=x)
    Path("a.csv").write_text(TABLE)
    Path("a.tsv").write_text(TABLE.replace(",", "\t"))
    Path("a.json").write_text(f"{x.tolist()}")
    Path("vars.json").write_text(f'{{"x": {x.tolist()}}}')
    Path("program").write_text("# much to read\n" * 2000 + "x**2\n")


def descriptors():
    return set(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else set()


@pytest.mark.cases(6)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("what", READING)
def test_reading(run, monkeypatch, what, fault):
    if what == "parquet":
        pq.write_table(pa.table({"x": np.arange(3000.0)}), "a.parquet")
    words = ["eval", *READING[what], "--json"]
    right = run(*words)
    assert right.status == (2 if what == "a missing file" else 0)
    opened = descriptors()
    for injected in every(monkeypatch, FAULTS[fault]):
        done = run(*words)
        if done.status == 0 or fault in HARMLESS or not injected.reached:
            assert done == right
        else:
            assert (done.status, done.out) == (2, "")
            assert re.search("cannot read|damaged|there is no", done.error["message"])
            assert done.error["hint"]
        assert descriptors() == opened
    assert injected.at > (1 if what == "a missing file" else 3)


SAVING = ["eval", "x**2", "x=[1,2,3]", "--jacobian", "--save", "out.npz"]


def whole(path):
    with np.load(path) as saved:
        return {key: saved[key].tolist() for key in saved.files}


@pytest.fixture(params=["new", "earlier"])
def earlier(request):
    """The bytes of the file before it is saved to, None if there is none."""
    if request.param == "new":
        return None
    Path("out.npz").write_bytes(b"earlier")
    return b"earlier"


def left(names):
    """What a save left behind, and what is at its path."""
    target = Path("out.npz")
    return sorted(set(os.listdir()) - names - {"out.npz"}), target.read_bytes() if target.exists() else None


@pytest.mark.parametrize("fault", FAULTS)
def test_saving(run, monkeypatch, earlier, fault):
    names, opened = set(os.listdir()), descriptors()
    right = run(*SAVING)
    _, new = left(names)
    values = whole("out.npz")
    assert values["value"] == [1.0, 4.0, 9.0]
    for injected in every(monkeypatch, FAULTS[fault]):
        put_back(earlier)
        done = run(*SAVING)
        assert descriptors() == opened
        if fault in HARMLESS or not injected.reached:
            assert (done, left(names)) == (right, ([], new))
        elif done.status == 0:
            # An archive can be written without seeking.
            assert (done, left(names)[0]) == (right, [])
            assert whole("out.npz") == values
        else:
            assert (done.status, done.out) == (1, "")
            assert done.err.startswith("error: cannot write 'out.npz': ")
            assert left(names) == ([], earlier)
    assert injected.at > 6


@pytest.mark.parametrize("fault", [faults.killed, faults.killed_within])
def test_a_kill_while_saving(run, monkeypatch, earlier, fault):
    names = set(os.listdir())
    run(*SAVING)
    _, new = left(names)
    for injected in every(monkeypatch, fault):
        put_back(earlier)
        try:
            run(*SAVING)
        except Killed:
            assert injected.killed
        rest, target = left(names)
        assert target in (earlier, new)
        assert all(re.fullmatch(r"\.gradcli-[0-9a-f]{16}\.tmp", name) for name in rest)
        for name in rest:
            Path(name).unlink()
    assert target == new


def put_back(content):
    Path("out.npz").unlink(missing_ok=True)
    if content is not None:
        Path("out.npz").write_bytes(content)


@pytest.mark.parametrize("fault", ["input/output error", "interrupted", "short"])
@pytest.mark.parametrize(("words", "path"), [(["-", "x=3"], "program"), (["sum(x)", "--vars", "-"], "vars.json")])
def test_standard_input(fault, words, path):
    def fed(at):
        injected = Faults(at, FAULTS[fault])
        out, err = io.StringIO(), io.StringIO()
        text = io.TextIOWrapper(io.BufferedReader(faults.file_with(injected)(os.open(path, os.O_RDONLY))), "utf-8")
        status = main(["eval", *words], Environment(text, out, err, {}))
        reached = injected.reached
        injected.at = 0
        text.close()
        return status, out.getvalue(), err.getvalue(), reached

    # The first call opens the file, which the shell does.
    at, (*right, _) = 2, fed(10**9)
    reached = True
    while reached:
        *done, reached = fed(at)
        if done != right:
            assert fault not in HARMLESS
            assert done[:2] == [2, ""]
            assert done[2].startswith("error: cannot read standard input: Input/output error\n")
        at += 1
    assert at > 4


def test_signals_while_files_are_read_and_written(run):
    """A real interruption of a system call, which is repeated."""
    right = run("eval", "sum(x)", "x=@a.csv:1", "--save", "out.npz")
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    try:
        for _ in range(5):
            assert run("eval", "sum(x)", "x=@a.csv:1", "--save", "out.npz") == right
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert whole("out.npz")["value"] == 2999 * 1500


# Files that may open files besides the I/O module: the parse tables and the table of entries, whose files belong to the
# package, and those that use the standard streams or the streams of a child process.
OTHERS = {
    "__main__.py",
    "install_command.py",
    "io/system.py",
    "language/syntax/parse_tables.py",
    "primitives/table.py",
    "cli/process/environment.py",
    "cli/process/child_process.py",
    # Writes where a shell looks for completions, or says that it cannot.
    "cli/commands/completion.py",
    # A history that cannot be read or written is as good as none.
    "cli/shell/editor.py",
    "subprocess_calls.py",
}


def test_there_is_one_door():
    """No other file opens, reads or writes files, so that all file access is tested here."""
    package = Path(gradcli.__file__).parent
    for path in package.rglob("*.py"):
        if path.relative_to(package).as_posix() in OTHERS:
            continue
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\bopen\b|\bos\b|\bpathlib\b", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "open", path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert node.attr not in {*faults.CALLS, "open", "read", "write", "rename"}, path
            if isinstance(node, ast.ImportFrom) and node.module == "pathlib":
                pytest.fail(f"{path} uses pathlib")


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_is_to_be_on_the_disk_is_waited_for(tmp_path, monkeypatch, on_disk):
    def fsync(_number):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fsync)
    target = tmp_path / "out.csv"
    with pytest.raises(OutputError, match="cannot write") if on_disk else nullcontext():
        output.write_atomically(str(target), lambda stream: stream.write(b"x"), on_disk=on_disk)
    assert target.exists() is not on_disk
    assert not [*tmp_path.glob(".gradcli-*")]
