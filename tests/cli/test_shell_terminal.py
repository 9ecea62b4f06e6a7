"""Tests `gradcli shell` at a pseudo-terminal, by what stands on the screen."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

import pexpect
import pyte

PACKAGE = Path(__file__).resolve().parents[2]
# Seconds to wait for what is expected; a busy machine may take long to load.
_PATIENCE = 60
CTRL_C, CTRL_D, CTRL_R, CTRL_U, BACKSPACE, UP = "\x03", "\x04", "\x12", "\x15", "\x7f", "\x1b[A"


class Terminal:
    """A session of gradcli at a terminal, and its screen."""

    def __init__(self, arguments: list[str], columns: int, variables: dict[str, str]) -> None:
        self.screen = pyte.Screen(columns, 24)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.process = pexpect.spawn(
            sys.executable, ["-m", "gradcli", *arguments], dimensions=(24, columns), env=variables
        )
        self.process.delaybeforesend = None

    @property
    def text(self) -> str:
        """The screen, without blanks at the ends of lines and lines at the end."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def wait(self, seen: Callable[[], bool], what: str = "") -> None:
        """Wait until something is seen on the screen."""
        until = time.monotonic() + _PATIENCE
        while not seen():
            try:
                read = self.process.read_nonblocking(65536, timeout=0.1)
            except pexpect.TIMEOUT:
                read = b""
            except pexpect.EOF:
                break
            self.written += read
            self._stream.feed(read)
            assert time.monotonic() < until, f"not seen: {what}\n{self.text}"
        assert seen(), f"not seen: {what}\n{self.text}"

    def shows(self, text: str) -> None:
        self.wait(lambda: text in self.text, text)

    def prompted(self, prompt: str = ">") -> None:
        """Wait for a prompt behind which nothing stands."""
        self.wait(lambda: self._row().rstrip() == prompt and self.screen.cursor.x == 2, "a prompt")

    def _row(self) -> str:
        return str(self.screen.display[self.screen.cursor.y])

    def type(self, keys: str) -> None:
        self.process.send(keys)

    def enter(self, *inputs: str) -> None:
        """Type inputs, each of which runs, and wait for the next prompt."""
        for text in inputs:
            self.prompted()
            self.type(text)
            # The row with the cursor has the end of the text.
            self.wait(lambda end=text[-8:]: self._row().rstrip().endswith(end), text)  # type: ignore[misc]
            row = self.screen.cursor.y
            self.type("\r")
            self.wait(lambda row=row: self.screen.cursor.y != row or "error" in self.text, text)  # type: ignore[misc]
            self.prompted()

    def ends(self) -> int:
        """Wait for the end of the process; its exit status."""
        self.process.expect(pexpect.EOF, timeout=_PATIENCE)
        self._stream.feed(self.process.before)
        self.process.close()
        return int(self.process.exitstatus)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """`opened('--plain', columns=40)` starts a session in an empty directory, whose history is in it too."""
    terminals: list[Terminal] = []

    def opened(*arguments: str, columns: int = 80, **more: str) -> Terminal:
        unwanted = ("NO_COLOR", "COLUMNS", "LINES", "TERM")
        variables = {name: value for name, value in os.environ.items() if name not in unwanted}
        variables |= {"TERM": "xterm", "XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": str(PACKAGE)} | more
        terminals.append(Terminal([*arguments], columns, variables))
        return terminals[-1]

    yield opened
    for terminal in terminals:
        terminal.process.close(force=True)


@pytest.mark.parametrize("columns", [80, 40])
def test_a_session(opened, columns):
    terminal = opened(columns=columns)
    terminal.enter("x = 5", "q = 3", "log(x**q)")
    assert terminal.lines == [
        "Try x=5; q=3; log(x**q)  :help  :quit",
        "> x = 5",
        "> q = 3",
        "> log(x**q)",
        " value  4.828313737302301",
        "",
        "  by   gradient",
        " ─────────────────────────",
        "  x    0.6",
        "  q    1.6094379124341003",
        "",
        ">",
    ]
    terminal.type(":quit\r")
    assert terminal.ends() == 0


def test_carets_stand_under_a_mistake(opened):
    terminal = opened("shell")
    terminal.prompted()
    terminal.type("lgo(x) + 1")
    terminal.shows("> lgo(x) + 1\n  ^^^ unknown function 'lgo'; did you mean 'log'?")
    terminal.type(CTRL_U + "def f(t):\rlgo(t) ")
    terminal.shows(".     lgo(t)\n      ^^^ unknown function")
    terminal.type(BACKSPACE * 40 + "1")
    terminal.wait(lambda: "^" not in terminal.text)


def test_a_long_message_stands_below_the_carets(opened):
    terminal = opened(columns=40)
    terminal.prompted()
    terminal.type("lgo(x) + 1")
    terminal.shows("> lgo(x) + 1\n  ^^^\nunknown function 'lgo'; did you mean\n'log'?")


def test_the_function_at_the_cursor_is_described(opened):
    terminal = opened("shell")
    terminal.prompted()
    terminal.type("atan2(x")
    terminal.shows("\natan2(y, x)  derivative g*x/(x**2 + y**2)")
    terminal.type(CTRL_U)
    terminal.enter("f(t) = 3*t**2")
    terminal.type("f(")
    terminal.shows("\nf(t)  derivative 6*t")


def test_completion(opened):
    terminal = opened("shell")
    terminal.enter("length = 2")
    terminal.type("len\t")
    terminal.shows("length  input")
    terminal.type("\t\r*3\r")
    terminal.shows("value  6.0")
    terminal.prompted()
    terminal.type(":pro\t")
    terminal.shows("> :propagate")


def test_lines_of_a_block_are_indented(opened):
    terminal = opened("shell")
    terminal.prompted()
    terminal.type("def f(t):\rs = t**2\rreturn s\r\r")
    terminal.shows("> def f(t):\n.     s = t**2\n.     return s\n.\n>")
    terminal.enter("f(3)")
    assert "value  9.0" in terminal.text


def test_a_program_is_pasted(opened):
    terminal = opened("shell")
    terminal.prompted()
    program = "a = 2; x = 3\ndef g(t):\n    s = a*t\n\n    return s\n:diff g(x)\ng(4)"
    terminal.type(f"\x1b[200~{program}\x1b[201~")
    terminal.shows(". g(4)")
    terminal.type("\r")
    terminal.shows("value  8.0")
    assert "a: x\nx: a\n# a: 3.0 at a=2.0, x=3.0\n# x: 2.0 at a=2.0, x=3.0\n value  8.0" in terminal.text


def test_an_interrupt_loses_nothing(opened):
    terminal = opened("shell")
    terminal.enter("x = 5")
    terminal.type("1 + 1; while 1 > 0 { y = sin(x) }\r")
    terminal.shows("value  2.0")
    terminal.type(CTRL_C)
    terminal.shows("interrupted")
    terminal.enter("x")
    assert "value  5.0" in terminal.text
    terminal.type("half of it")
    terminal.shows("half of it")
    terminal.type(CTRL_C)
    terminal.prompted()
    terminal.type(UP)
    terminal.wait(lambda: terminal.text.count("> half of it") == 2)
    terminal.type(UP)
    terminal.wait(lambda: terminal.lines[-1] == "> x")
    terminal.type(CTRL_U + CTRL_D)
    assert terminal.ends() == 0


def test_history_goes_across_sessions(opened, tmp_path):
    first = opened("shell")
    first.enter("first = 1", "second = 2")
    first.type(CTRL_D)
    assert first.ends() == 0
    file = tmp_path / "gradcli" / "shell-history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = opened("shell")
    second.prompted()
    second.type(UP)
    second.shows("> second = 2")
    second.type(CTRL_U + CTRL_R + "fir")
    second.shows("> first = 1")
    # The first key ends the search.
    second.type("\r\r")
    second.prompted()
    second.type("sec" + UP)
    second.shows("> second = 2")


def test_an_error_keeps_the_session(opened):
    terminal = opened("shell")
    terminal.enter("x = 5")
    terminal.type("x + lgo(x)\r")
    terminal.shows("error: unknown function 'lgo'\n  | x + lgo(x)\n  |     ^^^\nhint: did you mean 'log'?")
    terminal.enter("x")
    assert "value  5.0" in terminal.text


_COLOUR = re.compile(rb"\x1b\[[0-9;]*(?<![0-9])(?:3[0-7]|4[0-7]|9[0-7]|10[0-7])(?![0-9])[0-9;]*m")


def test_colours(opened):
    plain, coloured = opened("shell", NO_COLOR="1"), opened("shell")
    for terminal in (plain, coloured):
        terminal.enter("x = 5", "x**2")
        terminal.type("lgo(x) + 1")
        terminal.shows("^^^")
    assert not _COLOUR.search(plain.written)
    assert _COLOUR.search(coloured.written)
    assert "\nby  gradient\n" in plain.text


@pytest.mark.parametrize(("arguments", "term"), [((), "dumb"), (("shell", "--plain"), "xterm")])
def test_plain_lines(opened, arguments, term):
    terminal = opened(*arguments, TERM=term)
    terminal.prompted()
    for text in ("x = 5", "def f(t):", "    return t**2", "", "f(x)"):
        terminal.type(f"{text}\r")
    terminal.shows("x   10.0" if term == "dumb" else "10.0")
    assert "\x1b[" not in terminal.written.decode() or term != "dumb"
    terminal.prompted()
    # Python notices an interrupt between the output of the prompt and the read only at the next key.
    time.sleep(0.2)
    terminal.type(CTRL_C)
    terminal.wait(lambda: terminal.lines[-2:] == [">", ">"] or "^C" in terminal.text)
    terminal.prompted()
    terminal.type("x\r")
    terminal.shows("value  5.0")
    terminal.prompted()
    terminal.type(CTRL_D)
    assert terminal.ends() == 0


def test_without_prompt_toolkit_lines_are_plain(opened, tmp_path):
    (tmp_path / "prompt_toolkit.py").write_text("raise ImportError\n")
    terminal = opened("shell", PYTHONPATH=f"{tmp_path}{os.pathsep}{PACKAGE}")
    terminal.shows("note: completion and history need")
    terminal.prompted()
    terminal.type("1 + 1\r")
    terminal.shows("value  2.0")


def test_the_prompt_needs_no_array_library():
    script = (
        "import sys; import gradcli.cli.main, gradcli.cli.commands.shell, gradcli.cli.shell.editor; "
        "print(*(name for name in ('numpy', 'scipy', 'rich', 'pygments', 'lark') if name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize(
    "words", [["sin(x)", "x=0..9"], ["sin(x); cos(x)", "x=0..9"], ["1/(1 + 1j*w)", "w=0.1..10", "--log", "x"]]
)
def test_a_picture_fits_the_terminal(opened, words):
    terminal = opened("plot", *words, "--title", "the title")
    assert terminal.ends() == 0
    assert terminal.lines[0].strip() == "the title"
    assert len(terminal.lines) <= 23


@pytest.mark.parametrize(
    ("words", "columns", "lines"),
    [
        (
            ["eval", "x/3", "x=[1,2,3]", "--jacobian"],
            40,
            [
                "value",
                "[0.3333333333333333, 0.6666666666666666,",
                " 1.]",
                "by        x",
                "jacobian",
                "[[0.3333333333333333, 0., 0.],",
                " [0., 0.3333333333333333, 0.],",
                " [0., 0., 0.3333333333333333]]",
            ],
        ),
        (
            ["ops", "std"],
            80,
            [
                "std(x, axis=None, keepdims=False, correction=0)",
                "  standard deviation over the axes, the square root of var, without overflow",
                "derivative  g*(x - mean(x))/((n - correction)*std(x)), 0 where std(x) = 0",
                "domain      smooth where std(x) != 0",
                "edges       where all elements are equal, the derivative is 0",
                "            nan where n <= correction",
            ],
        ),
        (
            ["propagate", "a*b", "a=1±.1", "b=3"],
            36,
            [
                "value               3.00 ± 0.30",
                "relative uncertainty",
                "  0.1",
                "degrees of freedom  inf",
                "interval of 0.95",
                "  3.00 ± 0.59  (k = 1.96)",
            ],
        ),
    ],
)
def test_a_table_that_is_too_wide_stands_below_itself(opened, words, columns, lines):
    terminal = opened(*words, columns=columns)
    assert terminal.ends() == 0
    shown = [line for line in terminal.lines if line.strip()]
    assert shown[: len(lines)] == lines
