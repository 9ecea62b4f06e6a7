"""Tests the command among Unix tools: interrupts, pipes, closed and full streams, encodings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from gradcli.io import system

SHELL = [sys.executable, "-m", "gradcli"]

# Runs the command and interrupts it at the import whose number is the first argument.
INTERRUPTED_AT = """
import signal, sys
from gradcli.__main__ import run
left = int(sys.argv.pop(1))
def hook(event, _):
    global left
    if event == "import":
        left -= 1
        if not left:
            signal.raise_signal(signal.SIGINT)
sys.addaudithook(hook)
run()
"""


# A program that runs for minutes, whose loop is not known to be endless, and is run round by round.
LONG = (
    *("while 1 { x = x + ones(300); if sum(x) < 0 { break } }; sum(x)", "x=1", "--no-grad"),
    *("--max-steps", str(10**9), "--max-elements", str(10**15)),
)


@pytest.mark.usefixtures("listening")
def test_an_interrupt_of_a_program():
    words = ["eval", *LONG]
    process = subprocess.Popen([*SHELL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.6)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "interrupted\n")
    assert process.returncode == 130


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("at", [1, 2, 20, 80, 120, 180])
def test_an_interrupt_while_something_is_imported(at):
    words = [sys.executable, "-c", INTERRUPTED_AT, str(at), "eval", "sum(x**2)", "x=[1,2]"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("seconds", [0.005, 0.02, 0.05, 0.1, 0.2, 0.3])
def test_an_interrupt_soon_after_the_start(seconds):
    """Until the first line of the command runs, the interpreter handles interrupts."""
    process = subprocess.Popen(
        [*SHELL, "eval", *LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert out == ""
    if process.returncode == 130:
        assert err == "interrupted\n"
    else:
        assert os.path.join("gradcli", "cli") not in err
        assert "KeyboardInterrupt" in err or process.returncode < 0


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize(
    ("code", "out"),
    [
        # A library that turns it into another error, one that drops it, and one in which nothing can be raised.
        ("try: signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt as e: raise ImportError from None", ""),
        ("try: signal.raise_signal(signal.SIGINT)\nexcept BaseException: pass", "done\n"),
        (
            "class C:\n def __del__(self): signal.raise_signal(signal.SIGINT)\n"
            "C()\nimport time; time.sleep(5); print('awake')",
            "",
        ),
    ],
    ids=["replaced", "dropped", "finalizer"],
)
def test_an_interrupt_that_a_library_swallows(code, out):
    text = (
        "import signal, sys; from gradcli.cli import main, command\n"
        f"def call(*_):\n exec({code!r}, globals())\n print('done')\n return main.ExitStatus.SUCCESS\n"
        "command.call = call\nmain.run()"
    )
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, out, "interrupted\n")


@pytest.mark.usefixtures("listening")
def test_an_interrupt_when_all_is_done():
    text = (
        "import atexit, signal; from gradcli.__main__ import run\n"
        "atexit.register(signal.raise_signal, signal.SIGINT)\nrun()"
    )
    words = [sys.executable, "-c", text, "eval", "x", "x=1", "--no-grad"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "value  1.0\n", "")


@pytest.mark.usefixtures("listening")
def test_an_interrupt_that_is_ignored_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    words = [sys.executable, "-c", INTERRUPTED_AT, "40", "eval", "x", "x=1", "--no-grad"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "value  1.0\n", "")


COMMANDS = {
    "help": ["--help"],
    "help of a command": ["eval", "--help"],
    "nothing": [],
    "version": ["--version"],
    "eval": ["eval", "x*ones(50,50)", "x=3", "--no-grad"],
    "graph": ["graph", "x**2", "x=1", "--to", "svg"],
    "diff": ["diff", "x**2", "--json"],
    "ops": ["ops"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_closed_pipe_ends_quietly(words):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*SHELL, *words], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def redirected(redirection, words, **options):
    """The command run by a shell with a redirection, such as `>&-`."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *SHELL, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_what_cannot_be_written_is_an_error(words):
    done = redirected(">&-", words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot write the result: standard output is closed" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["ops"]])
def test_a_full_disk_is_an_error(words):
    done = redirected(">/dev/full", words)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write the result: No space left on device\n")
    assert redirected(">/dev/full 2>/dev/full", words).returncode == 1


def test_nobody_hears_the_errors():
    assert redirected("2>&-", ["eval", "lgo(x)", "x=1"]).returncode == 2
    done = redirected("2>&-", ["eval", "x/0", "x=1", "--no-grad"])
    assert (done.returncode, done.stdout) == (0, "value  inf\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no names in directories there")
def test_a_pipe_that_nobody_has_the_other_end_of(run, tmp_path, monkeypatch):
    monkeypatch.setattr(system, "_OTHER_END", 0.2)
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    for words in (["eval", "--file", pipe, "x=1"], ["eval", "x", "--vars", pipe], ["map", "x", pipe]):
        assert "it is a pipe, and no process writes to it" in run(*words).err
    done = run("map", "x", "--output", pipe, stdin="x\n1\n")
    assert (done.status, "it is a pipe, and no process reads from it" in done.err) == (1, True)
    with subprocess.Popen([sys.executable, "-c", f"open({pipe!r}, 'w').write('x**2')"]):
        monkeypatch.setattr(system, "_OTHER_END", 60)
        assert run("eval", "--file", pipe, "x=3", "--no-grad").out == "value  9.0\n"
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert run("map", "x", "--output", pipe, "--no-grad", stdin="x\n1\n").status == 0
        assert reader.stdout.read() == b"x,value\n1,1.0\n"


def test_a_file_never_gets_the_number_of_a_closed_stream(tmp_path):
    """Otherwise output of libraries to standard error would be written into the file."""
    code = "import os, sys; from gradcli.cli.process.environment import Environment; Environment.of_process()\n"
    code += f"sys.exit(open({str(tmp_path / 'a')!r}, 'w').fileno())"
    command = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, check=False).returncode > 2


@pytest.mark.parametrize("redirection", ["<&-", "0>unreadable"])
@pytest.mark.parametrize("words", [["eval", "-"], ["eval", "x", "--vars", "-"]])
def test_standard_input_that_cannot_be_read(redirection, words, tmp_path):
    done = redirected(redirection, words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard input" in done.stderr
    assert "internal" not in done.stderr


def fed(words, content, **variables):
    done = subprocess.run([*SHELL, *words], input=content, capture_output=True, check=False, env=os.environ | variables)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
C_LOCALES = {
    "C": {"LC_ALL": "C"},
    "C as it was": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ascii streams": {"PYTHONIOENCODING": "ascii"},
    "Latin-1 streams": {"PYTHONIOENCODING": "latin-1"},
}


def test_a_byte_order_mark_on_standard_input():
    assert fed(["eval", "-", "x=3", "--no-grad"], BYTE_ORDER_MARK + b"x**2") == (0, "value  9.0\n", "")
    done = fed(["eval", "x**2", "--vars", "-", "--no-grad"], BYTE_ORDER_MARK + b'{"x": 3}')
    assert done == (0, "value  9.0\n", "")


def test_standard_input_that_is_no_utf_8():
    for variables in C_LOCALES.values():
        status, out, err = fed(["eval", "-", "x=3"], b"x\xff**2", **variables)
        assert (status, out) == (2, "")
        assert "standard input is not UTF-8 text" in err


@pytest.mark.parametrize("variables", C_LOCALES.values(), ids=C_LOCALES)
def test_another_locale(variables):
    status, out, err = fed(["eval", "σ**2 + é", "σ=3", "é=1", "--json"], b"", **variables)
    assert (status, err) == (0, "")
    assert json.loads(out)["grad"] == {"σ": 6.0, "é": 1.0}
    status, out, err = fed(["eval", "-", "--json", "σ=3"], "lgo(σ)".encode(), **variables)
    assert (status, out) == (2, "")
    assert json.loads(err)["error"]["hint"] == "did you mean 'log'?"
    status, out, err = fed(["graph", "-", "σ=3"], "σ**2".encode(), **variables)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] in ("└── σ", "+-- \\u03c3")


def test_box_characters_and_others_in_ascii():
    done = fed(["eval", "-", "--quiet", "𝜎=3"], "𝜎**2".encode(), PYTHONIOENCODING="ascii")
    assert done == (0, "value  9.0\n\nby  gradient\n\\u03c3   6.0\n", "")
    status, out, _ = fed(["eval", "--help"], b"", PYTHONIOENCODING="ascii")
    assert status == 0
    assert out.isascii()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["eval", "x^2", "x=3"], 0, "warning: standard input is not read"),
        (["diff", "x^2"], 0, "warning: standard input is not read"),
        (["eval", "x^2", "x=3", "--quiet"], 0, ""),
        (["eval", "x=3"], 2, "gradcli eval - x=3"),
        (["eval"], 2, "gradcli eval -"),
        (["eval", "-", "x=3"], 0, ""),
    ],
)
def test_a_program_on_standard_input_that_is_not_read(run, tmp_path, words, status, said):
    (tmp_path / "program").write_text("x^3\n")
    with (tmp_path / "program").open() as stream:
        from_file = subprocess.run([*SHELL, *words], stdin=stream, capture_output=True, text=True, check=False)
    from_pipe = subprocess.run([*SHELL, *words], input="x^3\n", capture_output=True, text=True, check=False)
    in_memory = run(*words, stdin="x^3\n")
    assert {from_file.returncode, from_pipe.returncode, in_memory.status} == {status}
    for err in (from_file.stderr, from_pipe.stderr, in_memory.err):
        assert said in err
        assert bool(err) == bool(said)


def test_lines_that_a_loop_has_read_some_of_are_nothing_to_warn_of(tmp_path):
    (tmp_path / "lines").write_text("1\n2\n3\n")
    with (tmp_path / "lines").open("rb", buffering=0) as stream:
        stream.read(2)
        done = subprocess.run([*SHELL, "eval", "2"], stdin=stream, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_registered_for_the_end_runs():
    code = "import atexit; atexit.register(print, 'the end'); from gradcli.__main__ import main; main()"
    words = [sys.executable, "-c", code, "eval", "x", "x=1", "--bare"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "1.0\nthe end\n"


def test_a_profiler_sees_the_end():
    words = [sys.executable, "-m", "cProfile", "-m", "gradcli", "eval", "x", "x=1", "--bare"]
    assert "function calls" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
