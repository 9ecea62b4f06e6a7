"""Tests commands in child processes: limits of time and memory, and that nothing is left after they end."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli import subprocess_calls
from gradcli.errors import AccuracyWarning, CallError, LimitError, UsageError
from gradcli.subprocess_calls import Limits

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="memory is limited, and processes are listed, on Linux alone"
)

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(gradcli.__file__).resolve().parent.parent)}
COMMAND = [sys.executable, "-m", "gradcli"]
# Takes minutes within one library call.
LONG = ("eval", "sum(svdvals(ones(20000, 2000)))", "--no-grad", "--max-elements", "99999999999999")
HUGE = ("eval", "sum(zeros(50000, 50000) + x)", "x=1", "--max-elements", "99999999999999")


def sleep(seconds):
    time.sleep(seconds)


def double(x):
    print("noise")
    os.write(2, b"noise")
    return 2 * x


def fail(error):
    raise error


def spin_without_memory():
    kept = []
    try:
        while True:
            kept.append(bytes(10_000))
    except MemoryError:
        while True:
            pass


def die(number):
    os.kill(os.getpid(), number)


def children() -> set[str]:
    """The child processes of this process that have not been waited for."""
    pid = os.getpid()
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Checks that a test leaves no process behind; those of other tests are ignored."""
    before = children()
    yield
    assert not children() - before


class TestCalls:
    def test_a_call_gives_what_its_function_returns_or_raises(self, capfd):
        assert subprocess_calls.call(Limits(), double, 21) == 42
        assert (subprocess_calls.call(Limits(10, 10**9), double, np.arange(3.0)) == [0, 2, 4]).all()
        assert capfd.readouterr() == ("", "")
        error = LimitError("too much", hint="less")
        with pytest.raises(LimitError, match="too much") as raised:
            subprocess_calls.call(Limits(), fail, error)
        assert raised.value.report() == error.report()
        with pytest.raises(gradcli.GradcliError, match="internal error: KeyError: 'k'"):
            subprocess_calls.call(Limits(), fail, KeyError("k"))

    @pytest.mark.usefixtures("nothing_left")
    def test_one_that_goes_round_without_memory(self):
        with pytest.raises(LimitError, match="needs more than 250 MB of memory"):
            subprocess_calls.call(Limits(memory=250_000_000), spin_without_memory)

    def test_one_that_ends_in_another_way(self):
        for number in (signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT):
            with pytest.raises(LimitError, match=f"the process of the program died: {number.name}"):
                subprocess_calls.call(Limits(), die, number)
        with pytest.raises(LimitError, match="died: exit status 3, as where 1 GiB of memory are too few"):
            subprocess_calls.call(Limits(memory=2**30), os._exit, 3)
        with pytest.raises(LimitError, match=r"longer than 0\.5 s"):
            subprocess_calls.call(Limits(seconds=0.5), sleep, 600)
        # An alarm of the child itself, after the caller was stopped.
        with pytest.raises(LimitError, match="longer than 100 s"):
            subprocess_calls.call(Limits(seconds=100), die, signal.SIGALRM)

    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("1", 1),
            ("500MB", 500_000_000),
            ("2 GiB", 2**31),
            ("1.5kb", 1500),
            ("7B", 7),
            ("1tib", 2**40),
            (10**9, 10**9),
        ],
    )
    def test_sizes(self, text, size):
        assert Limits.of(None, text).memory == size

    @pytest.mark.parametrize("size", ["", "0", "-1", "5M", "much", "1e9", "1.2.3GB", "99999999TB", 0, True, 1.5])
    def test_what_is_no_size(self, size):
        with pytest.raises(UsageError, match="is no size of memory"):
            Limits.of(None, size)

    @pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, 1e300])
    def test_what_is_no_time(self, seconds):
        with pytest.raises(UsageError, match="is no limit in seconds"):
            Limits.of(seconds, None)


COMMANDS = [
    (["eval", "x**q", "x=5", "q=3", "--json"], 0),
    (["eval", "log(x)", "x=0", "--fail-on-nonfinite"], 1),
    (["eval", "log(x)", "y=0", "--json"], 2),
    (["check", "f(t) = t**2 backward(g) = g; f(x)", "x=3"], 1),
    (["graph", "sin(x)", "x=1", "--values"], 0),
    (["diff", "x**3", "--to", "latex"], 0),
    (["eval", "ü + x", "x=1"], 2),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("words", "status"), COMMANDS)
def test_a_command_within_its_limits_prints_what_it_prints_without_them(run, words, status):
    assert run(*words).status == status
    assert run(*words, "--max-seconds", "60", "--max-memory", "1GB") == run(*words)


def test_standard_input_is_read_in_the_process(run):
    assert run("eval", "-", "x=3", "--max-seconds", "60", stdin="x**2") == run("eval", "x**2", "x=3")
    words = [*COMMAND, "eval", "x**2", "--vars", "-", "--max-seconds", "60", "--json"]
    done = subprocess.run(words, input='{"x": 3}', capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert '"value":9' in done.stdout


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    "words", [LONG, ("check", LONG[1] + "*x", "x=1", *LONG[3:]), ("graph", *LONG[1:2], *LONG[3:], "--values")]
)
def test_time(run, words):
    done = run(*words, "--max-seconds", "0.5")
    assert (done.status, done.out) == (1, "")
    assert done.err == "error: the program takes longer than 0.5 s\nhint: raise the limit with --max-seconds\n"


def test_memory(run):
    done = run(*HUGE, "--max-memory", "500MB")
    assert (done.status, done.out) == (1, "")
    assert "does not fit into memory: Unable to allocate 18.6 GiB" in done.err
    error = run(*HUGE, "--max-memory", "500MB", "--json").error
    assert (error["kind"], error["line"], error["column"]) == ("limit", 1, 5)
    growing = ("eval", "a = [x]; while 1 { a = concat([a, a]) }", "x=1", "--max-memory", "250MB")
    free = re.search(r"out of memory: .*?([\d,]+) bytes free", run(*growing).err)
    assert int(free[1].replace(",", "")) < 300_000_000
    error = run("eval", "x**2", "x=3", "--max-memory", "10MB", "--json").error
    assert error["message"] == "10 MB of memory are too few to start"
    # Python numbers only, so that no array library is loaded.
    done = run(
        "eval",
        "a=[x]; while 1 { a.append(x*x); a.append(x); if a[0] < 0 { break } }",
        "x=1",
        "--max-steps",
        "99999999999",
        "--max-memory",
        "190MB",
    )
    assert done.err.startswith("error: the program needs more than 190 MB of memory\nhint: ")


def test_limits_that_are_none(run):
    for words in (["--max-seconds", "0"], ["--max-memory", "5M"], ["--max-seconds", "nan"]):
        assert run("eval", "x", "x=1", *words).status == 2
    for words in (["--backend", "cupy"], ["--backend", "torch", "--device", "cuda"]):
        done = run("eval", "x", "x=1", "--max-seconds", "9", *words)
        assert done.status == 2
        assert "hold on the CPU alone" in done.err


def test_a_file_is_saved_by_a_command_that_ends(run, tmp_path):
    path = tmp_path / "out.npz"
    assert run("eval", "x**2", "x=[1,2]", "--no-grad", "--save", str(path), "--max-seconds", "60").status == 0
    assert np.load(path)["value"].tolist() == [1, 4]
    words = ["--no-grad", "--max-elements", "99999999999", "--max-memory", "450MB", "--json", "--save", str(path)]
    # There is enough memory for the array and its file, but not for its text.
    assert run("eval", "zeros(20000000)", *words).status == 1
    assert os.listdir(tmp_path) == ["out.npz"]
    assert run("eval", "x", "x=1", "--save", str(tmp_path / "no/out.npz"), "--max-seconds", "60").err.startswith(
        "error: cannot write"
    )


def running(words, **options):
    """A command that has started its child process, and that process."""
    started = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, **options
    )
    listed = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    while not (found := listed.read_text().split()):
        assert started.poll() is None
        time.sleep(0.02)
    return started, int(found[0])


def gone(pid):
    """Whether a process ends; a zombie counts as ended."""
    for _ in range(500):
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("when", [0, 0.5])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_nothing_is_left_of_a_command_that_is_ended(number, status, when, tmp_path):
    words = [*LONG, "--max-seconds", "600", "--max-memory", "8GB", "--save", str(tmp_path / "out.npz")]
    started, process = running(words, cwd=tmp_path)
    time.sleep(when)
    started.send_signal(number)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (status, b"")
    assert err == (b"interrupted\n" if number == signal.SIGINT else b"")
    assert gone(process)
    assert not os.listdir(tmp_path)


def test_a_closed_pipe_ends_quietly():
    read, write = os.pipe()
    os.close(read)
    words = ["eval", "x*ones(50,50)", "x=3", "--no-grad", "--json", "--max-seconds", "60"]
    done = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, env=ENVIRONMENT)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_gets_what_a_terminal_gets():
    def shown(*words):
        ours, theirs = pty.openpty()
        subprocess.run(
            [*COMMAND, "eval", "x**2", "x=3", *words],
            stdout=theirs,
            env=ENVIRONMENT | {"TERM": "xterm-256color"},
            check=True,
        )
        os.close(theirs)
        text = os.read(ours, 10_000)
        os.close(ours)
        return text

    assert b"\x1b[" in shown()
    assert shown("--max-seconds", "60") == shown()


@pytest.fixture(scope="module")
def both():
    text = "sum(x**q)"
    return gradcli.compile(text, max_seconds=60), gradcli.compile(text)


class TestPrograms:
    VALUES = {"x": [1.0, 2.0], "q": 3.0}  # noqa: RUF012

    @pytest.mark.cases(2)
    @pytest.mark.parametrize(
        ("method", "further"),
        [
            ("value_and_grad", {"grad_output": 2.0}),
            ("jacobian", {"wrt": ("q",)}),
            ("hessian", {"sparse": True}),
            ("derivatives", {"order": 2}),
        ],
    )
    def test_what_is_asked_is_what_there_is_without_limits(self, both, method, further):
        confined, plain = (getattr(program, method)(self.VALUES, **further) for program in both)
        assert repr(confined) == repr(plain)

    def test_values_and_functions(self, both):
        confined, plain = both
        assert (confined(**self.VALUES), confined.inputs) == (plain(**self.VALUES), plain.inputs)
        assert confined.compiled(("x", "q"), ("q",))([1.0], 3.0) == plain.compiled(("x", "q"), ("q",))([1.0], 3.0)
        with pytest.raises(gradcli.GradcliError, match="depends on the numbers"):
            gradcli.compile("x if x > 0 else 1", max_seconds=60).compiled(["x"])

    def test_errors(self, both):
        confined, _ = both
        with pytest.raises(gradcli.GradcliError, match="does not read 'y'"):
            confined(y=1.0)
        with pytest.raises(gradcli.GradcliError, match="a tensor cannot be sent"):
            confined(x=gradcli.tensor(1.0), q=2.0)
        with pytest.raises(gradcli.GradcliError, match="is never closed"):
            gradcli.compile("log(x", max_seconds=60)
        with pytest.raises(UsageError):
            gradcli.compile("x", max_memory="much")

    def test_the_warning_of_lost_digits(self):
        for limits in ({}, {"max_seconds": 60}):
            program = gradcli.compile("f(t) = 1 - cos(t); f(x)/x**2", **limits)
            with pytest.warns(AccuracyWarning, match="order 4 by x has no right digit") as seen:
                program.derivatives({"x": 1e-7}, 4)
            assert [w.filename for w in seen] == [__file__]

    def test_arguments_of_another_type(self, both):
        confined, _ = both
        for program in both:
            with pytest.raises(CallError, match="names are given as a list of them, not int"):
                program.value_and_grad(self.VALUES, 5)
            with pytest.raises(CallError, match="the values of a program are a mapping"):
                program.jacobian(3)
        for call in (
            lambda: confined.derivatives(self.VALUES, lambda: 1),
            lambda: confined.hessian(self.VALUES, sparse=threading.Lock()),
            lambda: gradcli.gradcheck(confined, self.VALUES, tolerance=threading.Lock()),
        ):
            with pytest.raises(CallError, match="cannot be sent to a process of its own"):
                call()

    @pytest.mark.usefixtures("nothing_left")
    def test_limits(self):
        with pytest.raises(LimitError, match=r"longer than 0\.5 s"):
            gradcli.compile(LONG[1], max_elements=10**15, max_seconds=0.5)()
        limited = {"max_elements": 10**15, "max_seconds": 60}
        assert gradcli.compile("sum(svdvals(x))", **limited).compiled(["x"])([[3.0, 0.0], [0.0, 4.0]])[0] == 7.0
        limited["max_seconds"] = 0.5
        with pytest.raises(LimitError, match=r"longer than 0\.5 s"):
            gradcli.compile("sum(svdvals(x))", **limited).compiled(["x"])(np.ones((3000, 3000)))
        program = gradcli.compile(HUGE[1], max_elements=10**15, max_memory=500_000_000)
        with pytest.raises(LimitError, match="does not fit into memory"):
            program.value_and_grad({"x": 1.0})

    def test_checks(self, both):
        confined, plain = both
        assert gradcli.gradcheck(confined, self.VALUES) == gradcli.gradcheck(plain, self.VALUES)
        with pytest.raises(LimitError, match=r"longer than 0\.5 s"):
            gradcli.gradcheck(LONG[1] + "*x", {"x": 1.0}, max_elements=10**15, max_seconds=0.5)
