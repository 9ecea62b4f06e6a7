"""Measures whole processes that read a table and write it with the value and both derivatives of each row.

`gradcli map` from CSV to CSV and from Parquet to Parquet, against Polars expressions with derivatives written by hand
(read whole or streamed), the same in SQL with DuckDB, and pandas with PyTorch; for a formula of 5 operations and one of
40. Also the peak memory of each, and the number of one-line JSON requests answered per second, each of which waits for
its answer.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from measure import Row, circumstances, interleaved, parser, publish, table, write_json
from startup import ENVIRONMENT, PEERS, gradcli

FORMULAS = {
    "short": "sin(q*log(x))*exp(-x)",
    "long": " + ".join(f"sin({k}*x*q)*exp(-{k}*x)/(1 + {k}*q*q)" for k in range(1, 5)),
}
BASELINE = "Polars, streaming"
# By title in the tables: the package, the script that uses it, and its mode.
SCRIPTS = {
    "Polars, eager": ("polars", "rows_with_polars.py", "eager"),
    BASELINE: ("polars", "rows_with_polars.py", "streaming"),
    "DuckDB": ("duckdb", "rows_with_duckdb.py", "-"),
    "pandas with PyTorch": ("torch", "rows_with_torch.py", "-"),
}
QUESTIONS = 5_000
# Rows written at a time.
CHUNK = 1_000_000
MEGABYTE = 1_000_000


def make_table(path: Path, rows: int) -> None:
    import numpy as np
    import polars as pl

    draw = np.random.default_rng(0)
    if path.suffix == ".parquet":
        pl.DataFrame({"x": draw.uniform(0.1, 3, rows), "q": draw.uniform(0.5, 2, rows)}).write_parquet(path)
        return
    with path.open("wb") as file:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            part = pl.DataFrame({"x": draw.uniform(0.1, 3, count), "q": draw.uniform(0.5, 2, count)})
            part.write_csv(file, include_header=not start)


def commands(formula: str, source: Path) -> tuple[dict[str, Sequence[str]], list[Row]]:
    """The jobs by name, and rows for the peers that are missing."""

    def target(name: str) -> str:
        return str(source.with_name(f"{name}{source.suffix}"))

    found: dict[str, Sequence[str]] = {
        "gradcli": (gradcli(), "map", FORMULAS[formula], str(source), "--output", target("gradcli"))
    }
    missing = []
    for name, (package, script, way) in SCRIPTS.items():
        if importlib.util.find_spec(package):
            found[name] = (sys.executable, str(PEERS / script), way, formula, str(source), target(name))
        else:
            missing.append(Row(name, missing=f"{package} is not installed"))
    return found, missing


def measured(command: Sequence[str]) -> tuple[float, float]:
    """The time in seconds and the peak memory in bytes of a process that writes the table named by its last
    argument."""
    # Replacing an existing file atomically would add the time of its deletion.
    Path(command[-1]).unlink(missing_ok=True)
    # Wait until the output of the previous process is on disk.
    os.sync()
    start = time.perf_counter()
    process = subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"error: {command[0]} ended with {process.returncode}")
    return seconds, usage.ru_maxrss * 1024.0


def check(jobs: Sequence[str], source: Path) -> None:
    """Exit if the jobs do not all write the same numbers."""
    import polars as pl

    read = pl.read_csv if source.suffix == ".csv" else pl.read_parquet
    names = ["value", "d_x", "d_q"]
    expected = read(source.with_name(f"gradcli{source.suffix}")).select(names)
    for name in jobs:
        found = read(source.with_name(f"{name}{source.suffix}")).select(names)
        differences = (found - expected).select(pl.all().abs().max()).row(0)
        if found.height != expected.height or max(differences) > 1e-9:
            sys.exit(f"error: {name} writes other numbers")


def questions(count: int) -> float:
    """The number of requests answered per second through a pipe, each of which waits for its answer."""
    words = (gradcli(), "map", FORMULAS["short"], "-", "--from", "jsonl", "--quiet")
    with subprocess.Popen(words, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(x: float) -> None:
            process.stdin.write(b'{"x":%r,"q":0.5}\n' % x)
            process.stdin.flush()
            assert b'"value":' in process.stdout.readline()

        for warming in range(100):
            ask(1 + warming / 100)
        start = time.perf_counter()
        for number in range(count):
            ask(1 + number / count)
        seconds = time.perf_counter() - start
        process.stdin.close()
    return count / seconds


def compare(formula: str, source: Path, rounds: int) -> list[Row]:
    jobs, missing = commands(formula, source)
    timers = {name: functools.partial(measured, command) for name, command in jobs.items()}
    rows = [Row(name, times) for name, times in interleaved(timers, rounds, warmups=1).items()]
    # In its own process, because the peak memory of child processes starts at that of this one.
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        apart.submit(check, list(jobs), source).result()
    return rows + missing


def main() -> None:
    reader = parser(__doc__, rounds=3)
    reader.add_argument("--rows", type=int, default=5_000_000, help="rows of the table")
    reader.add_argument("--formats", default="csv,parquet", help="the formats of tables")
    reader.add_argument("--formulas", default="short,long", help="short, long, or both")
    options = reader.parse_args()
    found: dict[str, list[Row]] = {}
    for suffix in options.formats.split(","):
        with tempfile.TemporaryDirectory() as name:
            source = Path(name, f"table.{suffix}")
            make_table(source, options.rows)
            for formula in options.formulas.split(","):
                title = f"{suffix} to {suffix}, the {formula} formula, {options.rows:,} rows"
                found[title] = compare(formula, source, options.rounds)
    about = circumstances(["polars", "duckdb", "pandas", "torch", "numpy"])
    tables = {}
    for title, rows in found.items():
        times = [Row(row.name, row.times[:1], row.missing) for row in rows]
        memory = [Row(row.name, row.times[1:], row.missing) for row in rows]
        tables[title] = table(times, ["process"], ("s", 1.0), BASELINE)
        tables[f"{title}, peak memory"] = table(memory, ["memory"], ("MB", MEGABYTE), BASELINE)
    answered = [questions(QUESTIONS) for _ in range(options.rounds)]
    tables["Questions of one line of JSON"] = (
        f"{median(answered):,.0f} a second, of {options.rounds} runs with {QUESTIONS:,} each."
    )
    publish(options, "rows", about, tables)
    if options.json:
        write_json(options.json, about, found, ["seconds", "bytes"])


if __name__ == "__main__":
    main()
