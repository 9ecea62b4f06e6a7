"""Prove the global minima of published problems, and compare them with the published optima.

    python benchmarks/proved_minima.py [--seconds 60] [--json PATH] [NAME]...

The problems of `proofs/minima.bch` are written in Minibex, the language of IBEX (https://github.com/ibex-team/ibex-lib), of
whose benchmark `benchs/optim/easy` most of them are; the others are from GLOBALLib, and from W. Hock, K. Schittkowski, Test
Examples for Nonlinear Programming Codes, 1981. A problem counts as closed where the gap between the bounds is at most 1e-3,
relative to the value, or 1e-7: IBEX's defaults. Seconds are CPU time.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gradcli
from gradcli.errors import EvaluationError, LimitError

PROBLEMS = Path(__file__).parent / "proofs" / "minima.bch"
RELATIVE, ABSOLUTE = 1e-3, 1e-7


class Minibex(NamedTuple):
    """A problem in gradcli's language: the names with their ranges, the objective (None for a system of equations), and
    the conditions."""

    name: str
    known: str
    ranges: dict[str, tuple[float, float]]
    objective: str | None
    conditions: list[str]


def problems(path: Path) -> Iterator[Minibex]:
    """The problems in a file; before each stands `// problem NAME optimum NUMBER`, or `roots NUMBER`."""
    parts = re.split(r"^// problem (\S+) (?:optimum|roots) (\S+)$", path.read_text(), flags=re.MULTILINE)
    for name, known, text in zip(parts[1::3], parts[2::3], parts[3::3]):
        yield _translated(name, known, text)


def _translated(name: str, known: str, text: str) -> Minibex:
    text = re.sub(r"//.*", "", text)
    found = re.fullmatch(
        r"\s*(?:constants(?P<constants>.*?))?variables(?P<variables>.*?)(?:minimize(?P<objective>.*?);)?\s*"
        r"constraints(?P<conditions>.*)end\s*",
        text,
        flags=re.DOTALL | re.IGNORECASE,
    )
    assert found is not None, name
    constants = dict(re.findall(r"(\w+)\s*=\s*([^;]+);", found["constants"] or ""))
    ranges = {
        each: (float(low), float(high))
        for each, low, high in re.findall(r"(\w+)\s+in\s*\[\s*([^,\s]+)\s*,\s*([^\]\s]+)\s*\]", found["variables"])
    }
    conditions = [_expression(each, constants) for each in found["conditions"].split(";") if each.strip()]
    objective = None if found["objective"] is None else _expression(found["objective"], constants)
    return Minibex(name, known, ranges, objective, conditions)


def _expression(text: str, constants: dict[str, str]) -> str:
    text = " ".join(text.split()).replace("^", "**")
    text = re.sub(r"\bln\b", "log", text)
    for name, value in constants.items():
        text = re.sub(rf"\b{name}\b", f"({value})", text)
    return text


def proved(problem: Minibex, seconds: float) -> dict[str, Any]:
    """The proved bounds of a problem after at most so many seconds of CPU time."""
    begin = time.process_time()

    def watch(_iteration: Any) -> None:
        if time.process_time() - begin > seconds:
            raise LimitError(f"the proof takes more than {seconds:g} s")

    made: dict[str, Any] = {
        "name": problem.name,
        "variables": len(problem.ranges),
        "constraints": len(problem.conditions),
        "known": problem.known,
    }
    assert problem.objective is not None
    for start in _starts(problem):
        try:
            found = gradcli.minimize(
                problem.objective, start, bounds=problem.ranges, subject_to=problem.conditions, prove=True, watch=watch,
                max_steps=10**9, max_elements=10**12,
            )  # fmt: skip
            break
        except EvaluationError as error:
            failed = str(error)
    else:
        return made | {"low": None, "high": None, "seconds": time.process_time() - begin, "error": failed}
    proof = found.proof
    assert proof is not None
    return made | {
        "low": proof.low,
        "high": proof.high,
        "boxes": proof.boxes,
        "seconds": time.process_time() - begin,
        "message": found.message,
    }


def _starts(problem: Minibex) -> Iterator[dict[str, float]]:
    """Points in the box, at one of which the program has a value."""
    generator = random.Random(0)
    for size in (1e3, 1e3, 1e3, 1.0, 1.0, 1.0, 1.0):
        start = {}
        for name, (low, high) in problem.ranges.items():
            least, most = min(max(low, -size), high), max(min(high, size), low)
            start[name] = least + generator.uniform(0.2, 0.8) * (most - least)
        yield start


def is_closed(row: dict[str, Any]) -> bool:
    low, high = row["low"], row["high"]
    return low is not None and high is not None and high - low <= max(RELATIVE * abs(high), ABSOLUTE)


def contains(row: dict[str, Any]) -> bool:
    """Whether the known optimum, which is published to some digits, lies between the bounds."""
    known = float(row["known"])
    rounding = 10.0 ** -len(row["known"].partition(".")[2]) if "." in row["known"] else 0.0
    rounding += 1e-9 * max(1.0, abs(known))
    low, high = row["low"], row["high"]
    return (low is None or low <= known + rounding) and (high is None or known - rounding <= high)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json")
    asked = parser.parse_args()
    rows = []
    for problem in problems(PROBLEMS):
        if asked.names and problem.name not in asked.names:
            continue
        row = proved(problem, asked.seconds)
        rows.append(row)
        print(
            f"{row['name']:16} {row['variables']:3} {row['constraints']:3}  {row['low']!s:>22} {row['high']!s:>22} "
            f"{row['known']:>14}  {'closed' if is_closed(row) else 'open':6} "
            f"{'contained' if contains(row) else 'NOT CONTAINED'} {row['seconds']:6.1f} s {row.get('boxes', 0):7}"
            f"{'  ' + row['error'] if 'error' in row else ''}",
            flush=True,
        )
    closed, right = sum(map(is_closed, rows)), sum(map(contains, rows))
    print(f"{len(rows)} problems: {closed} closed, {right} with the published optimum between the bounds")
    if asked.json:
        Path(asked.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
