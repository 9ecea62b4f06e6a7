"""What README.md and examples/ show is what the program prints.

In README.md a `console` block holds `$ command` lines (which go on in `> ` lines) and what they print,
standard error included; a `python` block is a doctest. An example says how it is run in its
`# Run:` comment, and beside it stands its output, `<example>.out`. `python -m tests.test_docs`
writes the outputs anew, those of the doctests aside.
"""

from __future__ import annotations

import doctest
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import gradcli

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
EXAMPLES = sorted(p for suffix in ("sh", "py", "grad") for p in (ROOT / "examples").glob(f"*.{suffix}"))

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"^# Run: ((?:.*\\\n)*.*)", re.MULTILINE)
_FLOAT = re.compile(r"(?:\d+\.\d*|\.\d+|\d+(?=e[+-]?\d))(?:e[+-]?\d+)?")


class Block(NamedTuple):
    """A fenced block of README.md and the line at which it begins."""

    language: str
    text: str
    line: int


class Step(NamedTuple):
    """A command as it is written in a block, as the shell gets it, and what it is said to print."""

    written: str
    command: str
    output: str


def blocks(readme: str) -> list[Block]:
    return [Block(m[1], m[2], readme.count("\n", 0, m.start(2)) + 1) for m in _FENCE.finditer(readme)]


def steps(block: Block) -> Iterator[Step]:
    for written in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE)[1:]:
        lines = written.splitlines(keepends=True)
        end = next((i for i, line in enumerate(lines) if i and not line.startswith("> ")), len(lines))
        command = "".join(line[2:] for line in lines[:end])
        yield Step("".join(lines[:end]), command, "".join(lines[end:]))


def command_of(example: Path) -> str:
    """The command in the first comment of an example."""
    found = _RUN.search(example.read_text(encoding="utf-8"))
    assert found is not None, f"{example.name} has no '# Run:' comment"
    return re.sub(r"\\\n# *", "", found[1])


def output_of(example: Path) -> Path:
    return example.with_name(example.name + ".out")


class Workspace:
    """A directory with a copy of the examples, in which `gradcli` and `python` are those of this run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "work"
        shutil.copytree(ROOT / "examples", self.directory / "examples")
        programs = directory / "bin"
        programs.mkdir()
        for name, arguments in (("gradcli", "-m gradcli"), ("python", "")):
            program = programs / name
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' {arguments} \"$@\"\n", encoding="utf-8")
            program.chmod(0o755)
        self.variables = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(Path(gradcli.__file__).resolve().parent.parent),
            "PYTHONUTF8": "1",
        }

    def run(self, command: str) -> str:
        """What a command prints, standard output and error together."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.directory,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            encoding="utf-8",
        )
        return done.stdout


def same(expected: str, actual: str) -> bool:
    """Whether two texts agree: in their floats to 12 digits, as platforms differ in the last ones,
    and in all else but the spaces at the end of a line or beside a float, which align columns."""
    (words, floats), (actual_words, actual_floats) = _parts(expected), _parts(actual)
    return words == actual_words and all(
        math.isclose(a, b, rel_tol=1e-12, abs_tol=0) for a, b in zip(floats, actual_floats, strict=True)
    )


def _parts(text: str) -> tuple[list[str], list[float]]:
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).rstrip("\n")
    return [word.strip(" ") for word in _FLOAT.split(text)], [float(f) for f in _FLOAT.findall(text)]


def check(where: str, command: str, expected: str, actual: str) -> None:
    if not same(expected, actual):
        pytest.fail(f"{where}\n$ {command}\n--- is said to print\n{expected}\n--- prints\n{actual}", pytrace=False)


def need_jq(text: str) -> None:
    if re.search(r"\bjq\b", text) and shutil.which("jq") is None:
        pytest.skip("jq is not installed")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


ALL_BLOCKS = blocks(README.read_text(encoding="utf-8"))
CONSOLE_BLOCKS = [block for block in ALL_BLOCKS if block.language == "console"]


@pytest.mark.parametrize("block", CONSOLE_BLOCKS, ids=lambda block: f"line-{block.line}")
def test_a_console_block_of_the_readme_is_true(block: Block, workspace: Workspace) -> None:
    need_jq(block.text)
    assert block.text.startswith("$ ")
    for step in steps(block):
        check(
            f"README.md, the block at line {block.line}",
            step.command,
            step.output,
            workspace.run(step.command),
        )


class _Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or same(want, got)


def test_the_python_sessions_of_the_readme_are_true(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [block for block in ALL_BLOCKS if block.language == "python"]
    assert sessions
    monkeypatch.chdir(workspace.directory)
    report: list[str] = []
    runner = doctest.DocTestRunner(_Checker(), verbose=False)
    names: dict[str, object] = {}
    for session in sessions:
        test = doctest.DocTestParser().get_doctest(session.text, names, "README.md", str(README), session.line - 1)
        assert test.examples
        runner.run(test, out=report.append, clear_globs=False)
        names |= test.globs
    assert not report, "".join(report)


def test_every_block_of_the_readme_is_checked_or_sets_up() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(re.findall("^ *```", text, re.MULTILINE)) == 2 * len(ALL_BLOCKS)
    languages = [block.language for block in ALL_BLOCKS]
    assert set(languages) == {"bash", "console", "python"}
    assert languages.count("bash") == 2


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
    """Write what is printed into README.md and the .out files."""
    with tempfile.TemporaryDirectory() as directory:
        for number, example in enumerate(EXAMPLES):
            (here := Path(directory, f"example-{number}")).mkdir()
            _rewrite(output_of(example), Workspace(here).run(command_of(example)))
        text = README.read_text(encoding="utf-8")
        for number, block in enumerate(CONSOLE_BLOCKS):
            (here := Path(directory, f"block-{number}")).mkdir()
            workspace = Workspace(here)
            printed = "".join(step.written + workspace.run(step.command) for step in steps(block))
            text = text.replace(f"```console\n{block.text}```", f"```console\n{printed}```", 1)
        _rewrite(README, text)


def _rewrite(path: Path, text: str) -> None:
    """Leave a file alone where it already says the same."""
    if not path.exists() or not same(path.read_text(encoding="utf-8"), text):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update()
