"""Tests gradcli's backends on a device: their correctness, and their bandwidth relative to a plain copy.

Runs the conformance programs on PyTorch, CuPy and JAX, eagerly and compiled, and computes a value and both gradients of
large arrays, compared with each library's own derivatives. Every library has its own process, and what is missing, or
does not fit into memory or time, becomes a row that says so. Runs on the GPU if there is one, within ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import bandwidth
import conformance
from jobs import Failure, Job, Send, explanation, run
from libraries import LIBRARIES
from measure import circumstances, parser, publish

PROGRAMS = Path(__file__).parent.parent / "tests" / "data" / "torch-float64.jsonl"
ELEMENTS = {"cuda": 200_000_000, "cpu": 2_000_000}
# The largest share of the time for the bandwidth; the conformance programs have the rest.
_FOR_BANDWIDTH = 0.5
# Seconds reserved for writing the results.
_TO_END = 5.0
# Minimum seconds between writes of the report while programs are checked.
_EVERY = 10.0


def arguments() -> argparse.Namespace:
    found = parser(__doc__, rounds=20)
    found.add_argument("--device", choices=tuple(ELEMENTS), help="default: cuda where a library finds it")
    found.add_argument(
        "--elements", type=int, help="of each array; default: 200,000,000 on a GPU, 2,000,000 on the CPU"
    )
    found.add_argument("--budget", type=float, default=570, metavar="SECONDS", help="for everything together")
    found.add_argument("--programs", type=Path, default=PROGRAMS, metavar="PATH", help="a .jsonl file, or a folder")
    found.add_argument("--only", choices=("bandwidth", "conformance"), help="one part alone")
    return found.parse_args()


class Report:
    """All results so far, written to a file as it grows."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.start = self.written = time.monotonic()
        self.whole: dict[str, Any] = {"finished": False}

    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def write(self) -> None:
        self.written = time.monotonic()
        self.whole["elapsed"] = self.elapsed()
        if self.path is not None:
            beside = Path(f"{self.path}.part")
            beside.write_text(json.dumps(self.whole, indent=1) + "\n", encoding="utf-8")
            beside.replace(self.path)

    def say(self, text: str) -> None:
        print(f"{self.elapsed():6.1f} s  {text}", file=sys.stderr, flush=True)


def survey(send: Send, name: str, device: str) -> None:
    """Send the version and device of a library, and the reason why gradcli cannot use it, if there is one."""
    library = LIBRARIES[name](device)
    send({"version": library.version, "device": library.device_name, "gradcli": _problem(name, device)})


def _problem(name: str, device: str) -> str | None:
    try:
        import gradcli
        from gradcli import arrays

        gradcli.compile("x")
        arrays.chosen(name, device)
    except Exception as error:
        return explanation(error)
    return None


def surveyed(device: str | None, until: float) -> tuple[str, dict[str, dict[str, Any]]]:
    """The device (the GPU unless no library finds one), and the survey of each library."""
    for wanted in (device,) if device else tuple(ELEMENTS):
        found: dict[str, dict[str, Any]] = {}

        def take(job: Job, message: Any, found: dict[str, dict[str, Any]] = found) -> None:
            found[job.name] = {"problem": message.why} if isinstance(message, Failure) else message

        run([Job(name, survey, (name, wanted)) for name in LIBRARIES], take, until=until, width=len(LIBRARIES))
        if any("version" in one for one in found.values()):
            break
    return wanted, {name: found[name] for name in LIBRARIES}


def tell(report: Report, libraries: dict[str, dict[str, Any]]) -> None:
    for name, one in libraries.items():
        if "problem" in one:
            report.say(f"{name} is left out: {one['problem']}")
            continue
        report.say(f"{name} {one['version']} on {one['device']}")
        if one["gradcli"] is not None:
            report.say(f"gradcli cannot use {name}: {one['gradcli']}{_hint(one['gradcli'])}")


def _hint(problem: str) -> str:
    hints = {
        "'gradcli'": "PYTHONPATH=. is the way to run it from a checkout",
        "'lark'": "the parse tables in gradcli/language/syntax/_lalr.py, which pip install writes, do without it",
        "'array_api_compat'": "pip install array-api-compat",
    }
    return next((f"; {hint}" for name, hint in hints.items() if name in problem), "")


def measure_bandwidth(report: Report, names: list[str], options: argparse.Namespace, until: float) -> dict[str, str]:
    tables: dict[str, dict[str, Any]] = {dtype: {} for dtype in bandwidth.DTYPES}
    report.whole["bandwidth"] = tables

    def found(job: Job, message: Any) -> None:
        what = message.why if isinstance(message, Failure) else message[1].get("missing") or f"{message[0]} measured"
        report.say(f"{job.name}: {what}")
        report.write()

    bandwidth.measure_all(tables, names, options.device, options, until, found)
    where = "the GPU" if options.device == "cuda" else "the CPU"
    return {
        f"{bandwidth.PROGRAM} of {options.elements:,} {dtype} elements on {where}": bandwidth.table(tables[dtype])
        for dtype in bandwidth.DTYPES
    }


def check_conformance(report: Report, names: list[str], options: argparse.Namespace, until: float) -> dict[str, str]:
    given = conformance.cases(options.programs)
    if not given:
        report.say(f"there are no conformance programs at {options.programs}")
        return {}
    tables: dict[str, Any] = {}
    report.whole["conformance"] = tables

    def found(job: Job, message: Any) -> None:
        if isinstance(message, Failure):
            report.say(f"{job.name}: {message.why}")
        if time.monotonic() - report.written > _EVERY:
            report.say(", ".join(f"{name} {len(t['programs'])}" for name, t in tables.items()))
            report.write()

    conformance.check_all(tables, names, options.device, given, os.cpu_count() or 1, until, found)
    for line in conformance.disagreements(tables, given):
        report.say(line)
    where = "the GPU" if options.device == "cuda" else "the CPU"
    return {f"{len(given)} conformance programs on {where}": conformance.table(tables, len(given))}


def measured(report: Report, names: list[str], options: argparse.Namespace, end: float) -> dict[str, str]:
    """The tables of both parts, by title."""
    tables: dict[str, str] = {}
    if options.only != "conformance":
        share = 1.0 if options.only else _FOR_BANDWIDTH
        tables |= measure_bandwidth(report, names, options, time.monotonic() + share * (end - time.monotonic()))
    if options.only != "bandwidth":
        tables |= check_conformance(report, names, options, end)
    return tables


def main() -> None:
    options = arguments()
    # Preallocating all memory would starve the other processes.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    # A cache of an earlier run would hide the compile time.
    os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    report = Report(options.json)
    end = report.start + options.budget - _TO_END
    options.device, libraries = surveyed(options.device, end)
    options.elements = options.elements or ELEMENTS[options.device]
    names = [name for name, one in libraries.items() if "version" in one]
    about = circumstances(["numpy"]) | {name: one.get("version", "missing") for name, one in libraries.items()}
    about["device"] = next((one["device"] for one in libraries.values() if "device" in one), "none")
    report.whole |= {"about": about, "libraries": libraries, "elements": options.elements, "device": options.device}
    tell(report, libraries)
    try:
        tables = measured(report, names, options, end)
        report.whole["finished"] = True
    finally:
        report.write()
    publish(options, "devices", about, tables)
    print(f"\n{report.elapsed():.0f} s")


if __name__ == "__main__":
    main()
