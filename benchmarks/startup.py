"""Measures whole processes that compute one value and its gradients, as a shell user waits for them.

`gradcli eval 'log(x**q)' x=5 q=3 --json` against scripts that print the same numbers with other libraries. `python -c
pass` and `import numpy` show the share of Python and NumPy.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import Row, arguments, circumstances, interleaved, show, table, write_json

PEERS = Path(__file__).parent / "peers"
BASELINE = "HIPS autograd"
# By title in the table: the package, and the script that uses it.
SCRIPTS = {
    "HIPS autograd": ("autograd", "with_autograd.py"),
    "PyTorch": ("torch", "with_torch.py"),
    "JAX": ("jax", "with_jax.py"),
    "SymPy": ("sympy", "with_sympy.py"),
}
# qalc has no gradient by two variables: one call computes the value and both derivatives.
QALC = ("qalc", "-t", "-s", "precision 16", "[ln(5^3), diff(ln(x^3), x, 1, 5), diff(ln(5^x), x, 1, 3)]")
EXPECTED = (math.log(125), 0.6, math.log(5))
# Byte code caching must be on, so that other libraries are not slowed down.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def gradcli() -> str:
    """The console script beside this interpreter."""
    script = Path(sysconfig.get_path("scripts")) / ("gradcli.exe" if os.name == "nt" else "gradcli")
    if not script.exists():
        sys.exit(f"error: {sys.executable} has no gradcli beside it\nhint: {sys.executable} -m pip install .")
    return str(script)


def commands() -> tuple[dict[str, Sequence[str]], list[Row]]:
    """The jobs by name, and rows for the peers that are missing."""
    found: dict[str, Sequence[str]] = {"gradcli": (gradcli(), "eval", "log(x**q)", "x=5", "q=3", "--json")}
    missing = []
    for name, (package, script) in SCRIPTS.items():
        if importlib.util.find_spec(package):
            found[name] = (sys.executable, str(PEERS / script))
        else:
            missing.append(Row(name, missing=f"{package} is not installed"))
    if shutil.which(QALC[0]):
        found["qalc"] = QALC
    else:
        missing.append(Row("qalc", missing="qalc is not installed"))
    return found, missing


def scale() -> dict[str, Sequence[str]]:
    """Processes that compute nothing, for comparison."""
    found: dict[str, Sequence[str]] = {"python -c pass": (sys.executable, "-c", "pass")}
    if importlib.util.find_spec("numpy"):
        found["import numpy"] = (sys.executable, "-c", "import numpy")
    return found


def run(command: Sequence[str]) -> str:
    return subprocess.run(
        command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True
    ).stdout


def timed(command: Sequence[str]) -> tuple[float]:
    start = time.perf_counter()
    run(command)
    return (time.perf_counter() - start,)


def check(jobs: Mapping[str, Sequence[str]]) -> None:
    """Exit if the jobs do not all print the same numbers."""
    for name, command in jobs.items():
        text = run(command)
        if not all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(numbers(text), EXPECTED, strict=True)):
            sys.exit(f"error: {name} prints {text.strip()}, and not {EXPECTED}")


def numbers(text: str) -> Sequence[float]:
    """Value and gradients from a line of JSON or from qalc's vector."""
    if text.startswith("["):
        return [float(number) for number in re.split(r"[\[\]\s]+", text.strip()) if number]
    record = json.loads(text)
    return record["value"], record["grad"]["x"], record["grad"]["q"]


def main() -> None:
    options = arguments(__doc__, rounds=40)
    jobs, missing = commands()
    check(jobs)
    timers = {name: functools.partial(timed, command) for name, command in (jobs | scale()).items()}
    rows = [Row(name, times) for name, times in interleaved(timers, options.rounds, warmups=1).items()] + missing
    about = circumstances([*(package for package, _ in SCRIPTS.values()), "numpy"])
    about |= {"qalc": run(("qalc", "--version")).strip() if "qalc" in jobs else "not installed"}
    show(about, {f"Start to end, {options.rounds} rounds": table(rows, ["process"], ("ms", 1e-3), BASELINE)})
    if options.json:
        write_json(options.json, about, {"startup": rows}, ["process"])


if __name__ == "__main__":
    main()
