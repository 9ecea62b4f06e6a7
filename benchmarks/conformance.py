"""Checks which conformance programs give PyTorch's values and gradients on a device, eagerly and compiled."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs import Failure, Job, Received, Send, explanation, run

MODES = ("eager", "compiled")
# The largest relative error of agreement; _OF_LARGEST times the largest number of a case is added to the denominator.
AGREES = 1e-9
_OF_LARGEST = 1e-5
AGREEMENT, DIFFERENCE, FAILURE, NOT_RECORDED = "agrees", "differs", "fails", "not recorded"
# The verdict of a compiled program that fell back to eager evaluation because it has warnings.
EAGER = "agrees, eagerly"
# PyTorch's compiler takes seconds for each program: it runs last, with all processors.
_SLOWEST = "torch"
# The seconds that a program may need that is started just before the deadline.
_OVERTIME = 10.0


def cases(path: Path) -> list[dict[str, Any]]:
    """The programs of a .jsonl file, or of all such files in a folder; empty if there is none. The order is shuffled
    with a fixed seed, so that those that are reached in time are a fair sample."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path] if path.exists() else []
    found = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    random.Random(0).shuffle(found)
    return found


def check(send: Send, name: str, device: str, mode: str, given: Sequence[Mapping[str, Any]], until: float) -> None:
    """Send a record for each program, as `(id, record)`, until the time `until`."""
    from gradcli import arrays

    namespace = arrays.chosen(name, device)
    for case in given:
        if time.monotonic() > until:
            return
        start = time.perf_counter()
        record = _checked(case, mode, namespace)
        send((case["id"], record | {"seconds": time.perf_counter() - start}))


def _checked(case: Mapping[str, Any], mode: str, namespace: Any) -> dict[str, Any]:
    from gradcli.errors import NotRecordableError

    try:
        result, eagerly = _computed(case, mode, namespace)
    except NotRecordableError as error:
        return {"verdict": NOT_RECORDED, "message": error.message}
    except Exception as error:
        return {"verdict": FAILURE, "message": explanation(error)}
    error = _error(result, case)
    agreement = EAGER if eagerly and mode == "compiled" else AGREEMENT
    return {"verdict": agreement if error <= AGREES else DIFFERENCE, "error": error}


def _computed(case: Mapping[str, Any], mode: str, namespace: Any) -> tuple[Any, bool]:
    """The result, computed as in `gradcli eval`, and whether it was computed eagerly."""
    from unittest import mock

    from gradcli import arrays
    from gradcli.evaluation import session
    from gradcli.language.syntax import parse

    with arrays.using_namespace(namespace), arrays.using_dtype("float64"):
        bindings = {name: _placed(value) for name, value in case["bindings"].items()}
        request = session.EvaluationRequest(
            program=parse(case["program"]),
            bindings=bindings,
            wrt=case.get("wrt", tuple(bindings)),
            grad_output=_placed(case["grad_output"]) if "grad_output" in case else None,
            executor=mode,
        )
        with mock.patch.object(session, "_run", wraps=session._run) as eagerly:
            return session.run(request), eagerly.called


def _placed(value: Any) -> Any:
    from gradcli import arrays

    return arrays.in_default_namespace(arrays.asarray(_numbers(value), "float64"))


def _numbers(value: Any) -> Any:
    """Nested lists of numbers, with the strings for nan and infinities converted."""
    return [_numbers(v) for v in value] if isinstance(value, list) else float(value)


def _error(result: Any, case: Mapping[str, Any]) -> float:
    """The largest relative error of a value or gradient; infinite where only one of a pair exists."""
    import numpy as np

    value = np.asarray(_numbers(case["value"]))
    scale = max([1.0, *np.abs(value[np.isfinite(value)]).tolist()])
    pairs = [(result.value, case["value"])]
    pairs += [((result.grad or {}).get(name), gradient) for name, gradient in case["grad"].items()]
    return max(_difference(found, expected, scale) for found, expected in pairs)


def _difference(found: Any, expected: Any, scale: float) -> float:
    import numpy as np

    if found is None or expected is None:
        return 0.0 if found is expected else float("inf")
    found, expected = np.asarray(found, float), np.asarray(_numbers(expected))
    if found.shape != expected.shape:
        return float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return float("inf")
    found, expected = found[finite], expected[finite]
    errors = np.abs(found - expected) / (np.abs(expected) + _OF_LARGEST * scale)
    return float(errors.max(initial=0.0))


def check_all(
    tables: dict[str, Any],
    names: Sequence[str],
    device: str,
    given: Sequence[Mapping[str, Any]],
    width: int,
    until: float,
    found: Received,
) -> None:
    """Add a table of records by program for each library and mode to `tables`, using `width` processes at a time;
    `found` is called with everything that they send."""
    jobs = [
        Job(f"{name} {mode}", check, (name, device, mode, part, until - _OVERTIME))
        for mode in MODES
        for name in sorted(names, key=lambda name: name == _SLOWEST)
        for part in _parts(given, name, mode, width)
    ]
    for job in jobs:
        tables.setdefault(job.name, {"programs": {}, "problems": []})

    def take(job: Job, message: Any) -> None:
        if isinstance(message, Failure):
            tables[job.name]["problems"].append(message.why)
        else:
            case, record = message
            tables[job.name]["programs"][case] = record
        found(job, message)

    run(jobs, take, until=until, width=width)


def _parts(given: Sequence[Any], name: str, mode: str, width: int) -> Sequence[Sequence[Any]]:
    """The programs divided among the processes of a library and mode."""
    number = width if (name, mode) == (_SLOWEST, "compiled") else max(1, width // 4)
    return [given[part::number] for part in range(number)]


def table(tables: Mapping[str, Any], number: int) -> str:
    """A Markdown table with a row for each library and mode; `number` is the number of programs."""
    verdicts = (AGREEMENT, DIFFERENCE, FAILURE, NOT_RECORDED, EAGER)
    head = ["", *verdicts, "not reached", "worst relative error of those that agree", ""]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * 7 + "---|"]
    for name, found in tables.items():
        records = found["programs"].values()
        counts = [sum(r["verdict"] == v for r in records) for v in verdicts]
        worst = max((r["error"] for r in records if r["verdict"] in (AGREEMENT, EAGER)), default=None)
        cells = [name, *map(str, counts), str(number - len(records)), "-" if worst is None else f"{worst:.1e}"]
        lines.append(f"| {' | '.join([*cells, '; '.join(dict.fromkeys(found['problems']))])} |")
    return "\n".join(lines)


def disagreements(tables: Mapping[str, Any], given: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each program whose result differs or that fails (other than by not being recordable)."""
    programs = {case["id"]: case["program"] for case in given}
    return [
        f"{name}, {case}: {programs[case]!r} {record['verdict']}: {record.get('message') or record['error']}"
        for name, found in tables.items()
        for case, record in found["programs"].items()
        if record["verdict"] in (DIFFERENCE, FAILURE)
    ]
