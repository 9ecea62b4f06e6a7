"""Measures whole processes that read large files and write a file of gradients.

`gradcli eval` with `.npy` files and `--save`, against scripts that do the same with PyTorch and with JAX, for two
arrays of 4,000,000 float64 numbers; and with one and with three columns of a `.csv` file of 1,000,000 rows, against
NumPy's loadtxt of all columns.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import Row, arguments, circumstances, interleaved, publish, table, write_json
from startup import PEERS, gradcli, run, timed

PROGRAM = "sum(log(x**q)*sin(x)+exp(-x*x))"
ELEMENTS = 4_000_000
BASELINE = "PyTorch"
COLUMNS, ROWS = ("x", "y", "z"), 1_000_000
LOADTXT = "import numpy, sys; print(numpy.loadtxt(sys.argv[1], delimiter=',', skiprows=1).prod(axis=1).sum())"
SCRIPTS = {"PyTorch": ("torch", "arrays_with_torch.py"), "JAX": ("jax", "arrays_with_jax.py")}


def commands(folder: Path) -> tuple[dict[str, Sequence[str]], list[Row]]:
    """The jobs by name, and rows for the peers that are missing."""
    x, q = str(folder / "x.npy"), str(folder / "q.npy")
    names = (f"x=@{x}", f"q=@{q}")
    found: dict[str, Sequence[str]] = {
        "gradcli": (gradcli(), "eval", PROGRAM, *names, "--save", str(folder / "gradcli.npz")),
        "gradcli, eager": (
            *(gradcli(), "eval", PROGRAM, *names, "--executor", "eager"),
            *("--save", str(folder / "gradcli, eager.npz")),
        ),
    }
    missing = []
    for name, (package, script) in SCRIPTS.items():
        if importlib.util.find_spec(package):
            found[name] = (sys.executable, str(PEERS / script), x, q, str(folder / f"{name}.npz"))
        else:
            missing.append(Row(name, missing=f"{package} is not installed"))
    return found, missing


def make_files(folder: Path) -> None:
    import numpy as np

    draw = np.random.default_rng(0)
    for name in ("x", "q"):
        np.save(folder / f"{name}.npy", draw.random(ELEMENTS) + 0.5)


def table_commands(folder: Path) -> dict[str, Sequence[str]]:
    """Write the table, and return the jobs that read it."""
    import numpy as np

    path = folder / "table.csv"
    rows = np.random.default_rng(0).random((ROWS, len(COLUMNS))).tolist()
    path.write_text("\n".join([",".join(COLUMNS), *(",".join(map(repr, row)) for row in rows), ""]))
    read = [f"{name}=@{path}:{name}" for name in COLUMNS]
    return {
        "gradcli, three columns": (gradcli(), "eval", "*".join(COLUMNS).join(["sum(", ")"]), *read, "--no-grad"),
        "gradcli, one column": (gradcli(), "eval", "sum(x)", read[0], "--no-grad"),
        "NumPy, three columns": (sys.executable, "-c", LOADTXT, str(path)),
    }


def check(jobs: Mapping[str, Sequence[str]], folder: Path) -> None:
    """Exit if the jobs do not all write the same numbers."""
    import numpy as np

    for command in jobs.values():
        run(command)
    expected = np.load(folder / "gradcli.npz")
    for name in jobs:
        found = np.load(folder / f"{name}.npz")
        if not all(np.allclose(found[key], expected[key], rtol=1e-11, atol=1e-13) for key in expected):
            sys.exit(f"error: {name} writes other numbers")


def main() -> None:
    options = arguments(__doc__, rounds=15)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder)
        jobs, missing = commands(folder)
        check(jobs, folder)
        timers = {title: functools.partial(timed, command) for title, command in jobs.items()}
        rows = [Row(n, times) for n, times in interleaved(timers, options.rounds, warmups=1).items()] + missing
        tables_read = {title: functools.partial(timed, command) for title, command in table_commands(folder).items()}
        of_tables = [Row(n, times) for n, times in interleaved(tables_read, options.rounds, warmups=1).items()]
    about = circumstances([package for package, _ in SCRIPTS.values()] + ["numpy"])
    tables = {
        f"Files to file, {options.rounds} rounds": table(rows, ["process"], ("ms", 1e-3), BASELINE),
        "Columns of a table": table(of_tables, ["process"], ("ms", 1e-3), "NumPy, three columns"),
    }
    publish(options, "files", about, tables)
    if options.json:
        write_json(options.json, about, {"files": rows, "tables": of_tables}, ["process"])


if __name__ == "__main__":
    main()
