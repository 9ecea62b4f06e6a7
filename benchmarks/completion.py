"""Measures what a key of completion takes, in bash and in `gradcli shell`: the least of several runs, in milliseconds."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gradcli.cli.process.environment import Environment
from gradcli.cli.shell import completions
from gradcli.cli.shell.read_loop import Shell

RUNS, KEYS = 5, 20
# What stands before the cursor in the shell.
TYPED = ("", "l", "log", ":", ":d", ":diff x --", ":diff x --to ", "y = @", "x + s")
IN_BASH = f"""
source ./script; COMP_LINE='gradcli ops log'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=(gradcli ops log); COMP_CWORD=2
for i in {{1..{KEYS}}}; do _gradcli; done"""


def least_milliseconds(run: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return 1e3 * min(times)


def main() -> None:
    """Print a line for each."""
    with tempfile.TemporaryDirectory() as folder:
        script = subprocess.run(["gradcli", "completion", "bash"], capture_output=True, text=True, check=True).stdout
        (Path(folder) / "script").write_text(script, encoding="utf-8")
        bash = [shutil.which("bash") or "bash", "-c", IN_BASH]
        print(f"bash, a key: {least_milliseconds(lambda: subprocess.run(bash, cwd=folder, check=True)) / KEYS:.2f}")
    shell = Shell(Environment.of_process())
    for line in ("x = 5", "xs = [1, 2]", "f(t) = 3*t**2"):
        shell.run(line)
    workspace = shell.workspace
    for before in TYPED:
        completions.completions(before, workspace)
        print(f"shell, {before!r}: {least_milliseconds(lambda: completions.completions(before, workspace)):.2f}")  # noqa: B023


if __name__ == "__main__":
    main()
