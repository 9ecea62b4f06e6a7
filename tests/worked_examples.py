"""Applies each worked example of docs/architecture.md to a copy of the package, in which what it shows must be true.

In a section `How to add …` a `diff` block changes a file or creates one. A change is located by its lines, which must
occur once in the file; line numbers are omitted. `python -m tests.worked_examples` rewrites the outputs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.project.test_docs import ROOT, Block, Workspace, blocks, check, rewrite, steps, with_output

# Examples tested in tests/backends, where the libraries are installed.
OF_BACKENDS = ("How to add a backend",)
PAGE = ROOT / "docs" / "architecture.md"
_COPIED = (
    "gradcli",
    "grammar",
    "tests",
    "docs",
    "examples",
    "benchmarks",
    "README.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
)


def worked_examples() -> dict[str, list[Block]]:
    """The blocks of each example, by its heading."""
    found: dict[str, list[Block]] = {}
    for block in blocks(PAGE):
        if block.of_a_worked_example:
            found.setdefault(block.section, []).append(block)
    return found


class Copy(Workspace):
    """A copy of the repository, in which `gradcli` and `python` use the copied package."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "copy"
        self.root.mkdir()
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                # With the bytecode, which stays valid for files that are not changed, but without what is being written.
                shutil.copytree(source, self.root / name, ignore=shutil.ignore_patterns("*.pyc.*"))
            else:
                shutil.copy(source, self.root / name)
        super().__init__(directory, self.root)

    def run(self, command: str) -> str:
        return self.run_in_shell(command)

    def python(self, *words: str, timeout: float = 300) -> str:
        """The output of a run of Python in the copied repository, which must succeed."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.root,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def change(self, diff: str) -> None:
        """Apply a `diff` block."""
        head, *hunks = re.split(r"^@@\n", diff, flags=re.MULTILINE)
        before, after = re.findall(r"^(?:---|\+\+\+) (\S+)$", head, re.MULTILINE)
        path = self.root / after.removeprefix("b/")
        if before == "/dev/null":
            assert not path.exists(), f"{after} is no new file"
            text = ""
        else:
            assert before.removeprefix("a/") == after.removeprefix("b/")
            text = path.read_text(encoding="utf-8")
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] or "\n" for line in lines if line[0] in " -\n")
            new = "".join(line[1:] or "\n" for line in lines if line[0] in " +\n")
            assert text.count(old) == 1, f"{after} has {text.count(old)} places for\n{hunk}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")


def changed_copy(directory: Path, example: list[Block]) -> Copy:
    """A copy with the changes of an example."""
    copy = Copy(directory)
    for block in example:
        if block.language == "diff":
            copy.change(block.text)
    return copy


def check_console(example: list[Block], copy: Copy) -> None:
    """Check the commands that an example shows."""
    for block in example:
        if block.language == "console":
            for step in steps(block):
                where = f"{block.page}, the block at line {block.line}"
                check(where, step.command, step.output, copy.run(step.command))


def update() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for example in worked_examples().values():
        with tempfile.TemporaryDirectory() as directory:
            copy = changed_copy(Path(directory), example)
            for block in example:
                if block.language == "console":
                    text = with_output(text, block, copy)
    rewrite(PAGE, text)


if __name__ == "__main__":
    update()
