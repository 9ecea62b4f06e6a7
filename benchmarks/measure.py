"""Shared parts of the benchmarks: interleaved rounds, medians, and tables."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One row of a table: the times in seconds for each column, or the reason why there are none."""

    name: str
    times: Sequence[Sequence[float]] = ()
    missing: str | None = None


def interleaved(
    jobs: Mapping[str, Callable[[], Sequence[float]]], rounds: int, warmups: int
) -> dict[str, list[tuple[float, ...]]]:
    """The times of each job, run in turn, so that disturbances affect all of them alike.

    The result has, for each job, one sequence of times per column.
    """
    found: dict[str, list[Sequence[float]]] = {name: [] for name in jobs}
    for turn in range(warmups + rounds):
        for name, job in jobs.items():
            times = job()
            if turn >= warmups:
                found[name].append(times)
    return {name: list(zip(*times)) for name, times in found.items()}


def table(rows: Sequence[Row], columns: Sequence[str], unit: tuple[str, float], baseline: str) -> str:
    """A Markdown table of medians, their quartiles, and the ratios to the row `baseline`."""
    label, scale = unit
    lines = [
        "| | " + " | ".join(f"{c}, {label} | quartiles | ratio" for c in columns) + " |",
        "|---|" + "---:|" * (3 * len(columns)),
    ]
    bases = next(([median(t) for t in row.times] for row in rows if row.name == baseline and row.times), None)
    for row in rows:
        cells = _missing(row.missing, len(columns)) if row.missing else _cells(row, bases, scale)
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _missing(why: str, columns: int) -> list[str]:
    return [why, "", ""] + ["", "", ""] * (columns - 1)


def _cells(row: Row, bases: Sequence[float] | None, scale: float) -> list[str]:
    cells = []
    for i, times in enumerate(row.times):
        low, middle, high = (q / scale for q in quantiles(times, n=4))
        ratio = f"{median(times) / bases[i]:.2f}" if bases else "-"
        cells += [short(middle), f"{short(low)} to {short(high)}", ratio]
    return cells


def short(number: float) -> str:
    """A number to three digits, or as an integer if it is at least 1000."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def circumstances(packages: Sequence[str]) -> dict[str, str]:
    """The date, the processor, and the versions of the packages."""
    found = {
        "date": datetime.date.today().isoformat(),
        "CPU": _cpu(),
        "Python": platform.python_version(),
    }
    return found | {name: _version(name) for name in ("gradcli", *packages)}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
    return f"{model or platform.processor() or platform.machine()}, {lines.count('') or 1} cores"


def arguments(description: str | None, rounds: int) -> argparse.Namespace:
    """The options that all benchmarks have."""
    return parser(description, rounds).parse_args()


def parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """The parser of these options, for a benchmark that adds its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="how often each job is measured")
    parser.add_argument("--json", metavar="PATH", help="write every time that was measured")
    parser.add_argument(
        "--write", action="store_true", help="put the tables into README.md, where it has a place for them"
    )
    return parser


def write_json(
    path: str, about: Mapping[str, str], tables: Mapping[str, Sequence[Row]], columns: Sequence[str]
) -> None:
    def record(row: Row) -> dict[str, Any]:
        if row.missing:
            return {"missing": row.missing}
        return {column: {"median": median(times), "seconds": list(times)} for column, times in zip(columns, row.times)}

    whole = {"about": about, "tables": {title: {r.name: record(r) for r in rows} for title, rows in tables.items()}}
    Path(path).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def write_readme(place: str, about: Mapping[str, str], tables: Mapping[str, str]) -> None:
    """Replace the text between `<!-- place -->` and `<!-- end -->` in README.md."""
    readme = Path(__file__).parent / "README.md"
    begin = f"<!-- {place} -->\n"
    before, found, rest = readme.read_text(encoding="utf-8").partition(begin)
    if not found:
        raise SystemExit(f"error: {readme} has no {begin.strip()}")
    date, *versions = (f"{name} {value}" for name, value in about.items())
    text = f"\nMeasured: {date}; {', '.join(versions)}.\n"
    text += "".join(f"\n{title}:\n\n{rows}\n" for title, rows in tables.items())
    readme.write_text(f"{before}{begin}{text}\n{rest[rest.index('<!-- end -->') :]}", encoding="utf-8")


def publish(options: argparse.Namespace, place: str, about: Mapping[str, str], tables: Mapping[str, str]) -> None:
    """Print the tables, and write them to README.md if requested."""
    show(about, tables)
    if options.write:
        write_readme(place, about, tables)


def show(about: Mapping[str, str], tables: Mapping[str, str]) -> None:
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    for title, text in tables.items():
        print(f"\n{title}\n\n{text}")
