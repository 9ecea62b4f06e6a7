"""Tests that the output shown in README.md, docs/ and examples/ is what the program prints, and that the commands of
CONTRIBUTING.md work.

On a page, a `console` block has `$ command` lines (continued in `> ` lines) and their output, including standard error;
a `python` block is a doctest, and a `session` block has the inputs of `gradcli shell` behind its prompts. Blocks that use PyTorch run in tests/backends, where it is installed. An example says how
it is run in its `# Run:` comment; its output is in `<example>.out` beside it. `python -m tests.project.test_docs` rewrites the
outputs, except those of doctests.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import io
import itertools
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import gradcli
from gradcli.cli.main import COMMANDS, main
from gradcli.cli.process.environment import Environment
from gradcli.cli.shell.read_loop import Shell
from gradcli.cli.shell.typed_text import CONTINUED, PROMPT, inputs_of
from gradcli.formulas import sympy_simplification
from tests import forking_server

pytestmark = pytest.mark.all_cases

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PACKAGE = Path(gradcli.__file__).resolve().parent.parent
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = (README, CONTRIBUTING, *sorted((ROOT / "docs").glob("*.md")))
EXAMPLES = sorted(p for suffix in ("sh", "py", "grad") for p in (ROOT / "examples").glob(f"*.{suffix}"))

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"^# Run: ((?:.*\\\n)*.*)", re.MULTILINE)
_FLOAT = re.compile(r"(?:\d+\.\d*|\.\d+|\d+(?=e[+-]?\d))(?:e[+-]?\d+)?")
# Characters that a shell interprets outside of single quotes.
_SHELL = re.compile(r"""[|&;<>$`"\\*?\[\](){}#~\n]""")


class Block(NamedTuple):
    """A fenced block of a page, its first line number, and the second-level heading above it."""

    page: str
    language: str
    text: str
    line: int
    section: str

    @property
    def of_a_worked_example(self) -> bool:
        """Whether it describes a modified copy of the package: see tests/worked_examples.py."""
        return self.section.startswith("How to add ")


class Step(NamedTuple):
    """A command as written in a block, as passed to the shell, and its documented output."""

    written: str
    command: str
    output: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, m[1], m[2], text.count("\n", 0, m.start(2)) + 1, _section(text[: m.start()]))
        for m in _FENCE.finditer(text)
    ]


def _section(before: str) -> str:
    return re.findall(r"^## (.*)$", "## \n" + before, re.MULTILINE)[-1]


def steps(block: Block) -> Iterator[Step]:
    for written in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE)[1:]:
        lines = written.splitlines(keepends=True)
        end = next((i for i, line in enumerate(lines) if i and not line.startswith("> ")), len(lines))
        command = "".join(line[2:] for line in lines[:end])
        yield Step("".join(lines[:end]), command, "".join(lines[end:]))


def turns(block: Block) -> Iterator[Step]:
    """The inputs of a `session` block, each with what it prints."""
    for written in re.split(rf"^(?={PROMPT})", block.text, flags=re.MULTILINE)[1:]:
        lines = written.splitlines(keepends=True)
        end = next((i for i, line in enumerate(lines) if i and not line.startswith(CONTINUED.strip())), len(lines))
        typed = "".join(line[2:] or "\n" for line in lines[:end])
        yield Step("".join(lines[:end]), typed, "".join(lines[end:]))


def words_of(command: str) -> list[str] | None:
    """The arguments of a single gradcli call; None for commands that need a shell, and for help, whose width is that of the workspace."""
    command = command.strip()
    if "--help" in command or _SHELL.search(re.sub(r"'[^']*'", "", command)):
        return None
    program, *words = shlex.split(command)
    return words if program == "gradcli" else None


def command_of(example: Path) -> str:
    """The command in the first comment of an example."""
    found = _RUN.search(example.read_text(encoding="utf-8"))
    assert found is not None, f"{example.name} has no '# Run:' comment"
    return re.sub(r"\\\n# *", "", found[1])


def output_of(example: Path) -> Path:
    return example.with_name(example.name + ".out")


class Workspace:
    """A directory with the examples, in which `gradcli` and `python` are those of this run. With the socket of a server
    (see tests/forking_server.py), that runs `gradcli`."""

    def __init__(
        self,
        directory: Path,
        package: Path = PACKAGE,
        examples: Path = ROOT / "examples",
        server: str | None = None,
    ) -> None:
        self.directory = directory / "work"
        self.directory.mkdir()
        (self.directory / "examples").symlink_to(examples)
        programs = directory / "bin"
        programs.mkdir()
        command = "-m gradcli" if server is None else f"-I -S '{directory / 'forked.py'}' '{server}'"
        if server is not None:
            (directory / "forked.py").write_text(forking_server.PROGRAM, encoding="utf-8")
        for name, arguments in (("gradcli", command), ("python", "")):
            program = programs / name
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' {arguments} \"$@\"\n", encoding="utf-8")
            program.chmod(0o755)
        self.variables = dict(os.environ) | {
            # Options of the run that this test is part of.
            "PYTEST_ADDOPTS": "",
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(package),
            "PYTHONUTF8": "1",
            "COLUMNS": "100",
        }

    def run(self, command: str) -> str:
        """The output of a command, standard output and error together."""
        words = words_of(command)
        return self.run_in_shell(command) if words is None else self.run_here(words)

    def run_here(self, words: list[str]) -> str:
        """The output of a gradcli call, run in this process to save the startup time."""
        printed = io.StringIO()
        with contextlib.chdir(self.directory):
            main(words, Environment(io.StringIO(), printed, printed, {}))
        return printed.getvalue()

    def run_session(self, typed: Iterable[str]) -> Iterator[str]:
        """What each input of a session of `gradcli shell` prints."""
        printed = io.StringIO()
        shell = Shell(Environment(None, printed, printed, {}))
        for text in typed:
            with contextlib.chdir(self.directory):
                shell.run_all(inputs_of(text))
            yield printed.getvalue()
            printed.seek(0)
            printed.truncate()

    def run_in_shell(self, command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.directory,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Prevents hanging; a compiler on a busy machine may take minutes.
            timeout=300,
            encoding="utf-8",
        )
        return done.stdout


def same(expected: str, actual: str) -> bool:
    """Whether two texts agree: floats to 12 digits, because platforms differ in the last ones, and everything else
    except for spaces at the end of a line or beside a float, which align columns."""
    (words, floats), (actual_words, actual_floats) = _parts(expected), _parts(actual)
    return words == actual_words and all(itertools.starmap(_alike, zip(floats, actual_floats, strict=True)))


def _alike(a: str, b: str) -> bool:
    # Numbers with more digits than a float are proved, and equal everywhere.
    if a == b or max(map(_digits, (a, b))) > sys.float_info.dig + 2:
        return a == b
    return math.isclose(float(a), float(b), rel_tol=1e-12, abs_tol=0)


def _digits(text: str) -> int:
    return len(re.sub(r"\D", "", text.partition("e")[0]).lstrip("0"))


def _parts(text: str) -> tuple[list[str], list[str]]:
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).rstrip("\n")
    return [word.strip(" ") for word in _FLOAT.split(text)], _FLOAT.findall(text)


def check(where: str, command: str, expected: str, actual: str) -> None:
    if not same(expected, actual):
        pytest.fail(f"{where}\n$ {command}\n--- is said to print\n{expected}\n--- prints\n{actual}", pytrace=False)


def need_jq(text: str) -> None:
    if re.search(r"\bjq\b", text) and shutil.which("jq") is None:
        pytest.skip("jq is not installed")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with forking_server.started(tmp_path_factory.mktemp("server"), {**os.environ, "PYTHONPATH": str(PACKAGE)}) as path:
        yield path


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, so that no command can change the files of the checkout."""
    return shutil.copytree(ROOT / "examples", tmp_path_factory.mktemp("copy") / "examples")


@pytest.fixture
def workspace(tmp_path: Path, examples: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    # What SymPy simplifies at once may take longer than its limit in seconds where other processes take the cores.
    monkeypatch.setattr(sympy_simplification, "LIMITS", sympy_simplification.LIMITS._replace(seconds=120.0))
    return Workspace(tmp_path, examples=examples, server=server)


BLOCKS = {page.name: blocks(page) for page in PAGES}
CONSOLE_BLOCKS = [
    block
    for found in BLOCKS.values()
    for block in found
    if block.language == "console" and not block.of_a_worked_example
]


@pytest.mark.parametrize("block", CONSOLE_BLOCKS, ids=lambda block: f"{block.page}-{block.line}")
def test_a_console_block_is_true(block: Block, workspace: Workspace) -> None:
    need_jq(block.text)
    assert block.text.startswith("$ ")
    for step in steps(block):
        check(
            f"{block.page}, the block at line {block.line}",
            step.command,
            step.output,
            workspace.run(step.command),
        )


SESSIONS = [block for found in BLOCKS.values() for block in found if block.language == "session"]


@pytest.mark.parametrize("block", SESSIONS, ids=lambda block: f"{block.page}-{block.line}")
def test_a_session_of_the_shell_is_true(block: Block, workspace: Workspace) -> None:
    said = [*turns(block)]
    assert said
    for step, printed in zip(said, workspace.run_session(step.command for step in said), strict=True):
        check(f"{block.page}, the block at line {block.line}", step.written, step.output, printed)


class _Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or same(want, got)


def calls_pytorch(session: Block) -> bool:
    return "torch." in session.text and "import gradcli as torch" not in session.text


def sessions(page: Path, *, of_pytorch: bool) -> list[Block]:
    found = [block for block in BLOCKS[page.name] if block.language == "python"]
    return [block for block in found if calls_pytorch(block) == of_pytorch]


def check_sessions(page: Path, found: Iterable[Block]) -> None:
    """Run Python sessions in order, with shared names."""
    report: list[str] = []
    runner = doctest.DocTestRunner(_Checker(), verbose=False)
    names: dict[str, object] = {}
    for session in found:
        test = doctest.DocTestParser().get_doctest(session.text, names, page.name, str(page), session.line - 1)
        assert test.examples
        runner.run(test, out=report.append, clear_globs=False)
        names |= test.globs
    assert not report, "".join(report)


WITH_SESSIONS = [page for page in PAGES if sessions(page, of_pytorch=False)]
WITH_PYTORCH = [page for page in PAGES if sessions(page, of_pytorch=True)]


def test_there_are_python_sessions() -> None:
    assert README in WITH_SESSIONS


@pytest.mark.parametrize("page", WITH_SESSIONS, ids=lambda page: page.name)
def test_the_python_sessions_of_a_page_are_true(
    page: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.directory)
    check_sessions(page, sessions(page, of_pytorch=False))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_is_checked_or_sets_up(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("^ *```", text, re.MULTILINE)) == 2 * len(BLOCKS[page.name])
    languages = [block.language for block in BLOCKS[page.name] if not block.of_a_worked_example]
    if page == README:
        assert set(languages) == {"bash", "console", "python"}
        assert languages.count("bash") == 2
    elif page == CONTRIBUTING:
        assert set(languages) == {"bash"}
    else:
        assert set(languages) <= {"console", "python", "session"}


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, and those that are written as such."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    written = re.findall(r'<a id="([^"]+)"></a>', text)
    assert len(written) == len({*written})
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | {*written}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"(?<!`)\[[^\]\n]+\]\(([^)\s]+)\)", text):
        if not target.startswith("https://"):
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            assert found.exists(), target
            assert found.is_relative_to(ROOT)
            assert not anchor or anchor in anchors(found), target


def test_every_page_is_named_in_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"({page.relative_to(ROOT)})" not in text] == []


@pytest.mark.slow
def test_the_tests_of_one_thing_that_contributors_are_shown_pass() -> None:
    (block,) = [block for block in BLOCKS[CONTRIBUTING.name] if block.section == "Test one thing"]
    for command in block.text.splitlines():
        program, *words = shlex.split(command)
        assert program == ".venv/bin/python"
        done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("gradcli eval 'log(x**q)' x=5\n", ["eval", "log(x**q)", "x=5"]),
        ("gradcli eval '\ny = x\ny' x=5", ["eval", "\ny = x\ny", "x=5"]),
        ("gradcli eval 'x' x=5 | jq .value", None),
        ("gradcli eval x x=$HOME", None),
        ("gradcli eval --help", None),
        ("sh examples/sweep.sh", None),
    ],
)
def test_what_takes_no_shell_is_run_in_this_process(command: str, words: list[str] | None) -> None:
    assert words_of(command) == words


@pytest.mark.parametrize("program", ["log(x**q)", "log(x*", "log(0*x)"])
def test_a_command_prints_the_same_in_this_process(program: str, workspace: Workspace) -> None:
    words = ["eval", program, "x=5"] + ["q=3"] * ("q" in program)
    printed = workspace.run_here(words)
    assert printed == workspace.run_in_shell(shlex.join(["gradcli", *words]))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_what_stands_beside_it(example: Path, workspace: Workspace) -> None:
    need_jq(example.read_text(encoding="utf-8"))
    command = command_of(example)
    expected = output_of(example).read_text(encoding="utf-8")
    check(f"examples/{output_of(example).name}", command, expected, workspace.run(command))


def test_every_output_belongs_to_an_example() -> None:
    assert {output_of(example) for example in EXAMPLES} == set((ROOT / "examples").glob("*.out"))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("value  4.8283137373023015\n", "value  4.828313737302301"),
        ("[0.1, 0.30000000000000004]", "[0.1, 0.3                ]"),
        ("x   1e-05  \n", "x   1.0000000000000001e-05\n"),
        ("x   0.1\n   y\n", "x   0.1\n   y\n"),
    ],
)
def test_texts_that_agree(expected: str, actual: str) -> None:
    assert same(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("value  4.8283137373", "value  4.8283137374"),
        ("x   0.0", "x   1e-300"),
        ("x   0.5", "y   0.5"),
        ("x   0.5", "x   -0.5"),
        ("x   0.5", "x   0.5\nwarning"),
        ("1 row", "2 row"),
        ("x   0.5", "x   nan"),
        ("  | log(x)\n  | ^^^\n", "  | log(x)\n  |  ^^^\n"),
        ("0.5", ""),
    ],
)
def test_texts_that_differ(expected: str, actual: str) -> None:
    assert not same(expected, actual)


def update() -> None:
    """Write the printed output into the pages and the .out files."""
    with tempfile.TemporaryDirectory() as directory:
        numbers = iter(range(1_000_000))

        def workspace() -> Workspace:
            (here := Path(directory, str(next(numbers)))).mkdir()
            return Workspace(here)

        for example in EXAMPLES:
            rewrite(output_of(example), workspace().run(command_of(example)))
        add_commands()
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            for block in blocks(page):
                if block.language == "console" and not block.of_a_worked_example:
                    text = with_output(text, block, workspace())
                elif block.language == "session":
                    text = with_answers(text, block, workspace())
            rewrite(page, text)


def add_commands() -> None:
    """Add a section for each command to their page, and its line to the contents."""
    page = ROOT / "docs" / "commands.md"
    text = page.read_text(encoding="utf-8")
    for name in COMMANDS:
        command = f"gradcli {name}"
        if f"\n$ {command} --help-all\n" not in text:
            text += f"\n## {command}\n\n```console\n$ {command} --help-all\n```\n"
    contents = "".join(f"- [gradcli {name}](#gradcli-{name}): {summary}\n" for name, summary in COMMANDS.items())
    text = re.sub(r"(?:^- \[gradcli .*\n)+", lambda _: contents, text, count=1, flags=re.MULTILINE)
    page.write_text(text, encoding="utf-8")


def with_output(text: str, block: Block, workspace: Workspace) -> str:
    """A page with the printed output of a block's commands, without trailing spaces."""
    printed = "".join(step.written + workspace.run(step.command) for step in steps(block))
    printed = re.sub(r"[ \t]+$", "", printed, flags=re.MULTILINE)
    return text.replace(f"```console\n{block.text}```", f"```console\n{printed}```", 1)


def with_answers(text: str, block: Block, workspace: Workspace) -> str:
    """A page with what the inputs of a session print."""
    said = [*turns(block)]
    answers = workspace.run_session(step.command for step in said)
    printed = "".join(step.written + answer for step, answer in zip(said, answers, strict=True))
    return text.replace(f"```session\n{block.text}```", f"```session\n{printed}```", 1)


def rewrite(path: Path, text: str) -> None:
    """Write a file unless it already has the same content."""
    if not path.exists() or not same(path.read_text(encoding="utf-8"), text):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update()
