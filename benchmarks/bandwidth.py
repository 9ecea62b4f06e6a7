"""Measures the memory bandwidth of a value and both gradients of large arrays on a device, relative to a plain copy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles
from typing import Any

from jobs import Failure, Job, Received, Send, explanation, run
from libraries import FACTORS, LIBRARIES, Run
from measure import short

PROGRAM = "sum(log(x**q)*sin(x)+exp(-x*x))"
DTYPES = ("float32", "float64")
# By title in the tables: the library and the way it computes (a method of the library, or a key of OURS).
COPIES = {
    "copy by PyTorch": ("torch", "copy"),
    "copy by CuPy": ("cupy", "copy"),
    "copy by JAX": ("jax", "copy"),
}
ROWS = {
    "gradcli, torch compiled": ("torch", "compiled"),
    "gradcli, cupy compiled": ("cupy", "compiled"),
    "gradcli, jax compiled": ("jax", "compiled"),
    "gradcli, torch eager": ("torch", "eager"),
    "gradcli, cupy eager": ("cupy", "eager"),
    "gradcli, jax eager": ("jax", "eager"),
    "PyTorch": ("torch", "own"),
    "torch.compile": ("torch", "own_compiled"),
    "jax.jit": ("jax", "own_compiled"),
}
# The number of leading elements of each gradient that are compared with the formula.
_COMPARED = 1000
_TOLERANCES = {"float32": 1e-4, "float64": 1e-10}
_WARMUPS = 2
_FEWEST_ROUNDS = 3


def eager(library: Any, x: Any, q: Any) -> Run:
    import gradcli

    program = gradcli.compile(PROGRAM, max_elements=100 * len(x))

    def run() -> Sequence[Any]:
        leaves = [gradcli.Tensor(a).requires_grad_() for a in (x, q)]
        value = program(x=leaves[0], q=leaves[1])
        outputs = [t.inner for t in (value, *gradcli.grad(value, leaves))]
        library.wait(outputs)
        return outputs

    return run


def compiled(library: Any, x: Any, q: Any) -> Run:
    from gradcli import arrays
    from gradcli.evaluation.recordings import abstract, recording
    from gradcli.language.syntax import parse

    namespace, dtype = arrays.foreign_namespace((x, q)), arrays.dtype_name(x)
    with arrays.using_dtype(dtype):
        made = recording(parse(PROGRAM), {"x": abstract(x), "q": abstract(q)}, ("x", "q"), namespace=namespace)

    def run() -> Sequence[Any]:
        with arrays.using_dtype(dtype):
            outcome = made.outcome([x, q])
        if outcome is None:
            raise RuntimeError("the recorded program is not good for these inputs")
        outputs = [outcome.value, *outcome.derivatives.values()]
        library.wait(outputs)
        return outputs

    return run


OURS: Mapping[str, Callable[[Any, Any, Any], Run]] = {"eager": eager, "compiled": compiled}


def measure(send: Send, name: str, device: str, kind: str, elements: int, rounds: int, seconds: float) -> None:
    """Send a record for each dtype, as `(dtype, record)`; each takes `rounds` rounds, or stops after `seconds`."""
    library = LIBRARIES[name](device)
    for dtype in DTYPES:
        try:
            record = _measured(library, kind, elements, dtype, rounds, seconds)
        except Exception as error:
            record = {"missing": explanation(error)}
        send((dtype, record))


def _measured(library: Any, kind: str, elements: int, dtype: str, rounds: int, seconds: float) -> dict[str, Any]:
    x, q = library.numbers(elements, dtype)
    library.forget_peak()
    clock = time.perf_counter
    start = clock()
    run = OURS[kind](library, x, q) if kind in OURS else getattr(library, kind)(x, q)
    outputs = run()
    first = clock() - start
    record = {"first": first} | ({} if kind == "copy" else _checked(outputs, x, dtype))
    del outputs
    for _ in range(_WARMUPS):
        run()
    times: list[float] = []
    begun = clock()
    while len(times) < _FEWEST_ROUNDS or (len(times) < rounds and clock() - begun < seconds):
        start = clock()
        run()
        times.append(clock() - start)
    middle = median(times)
    # Reads of both inputs, and writes of both gradients or copies.
    moved = 4 * elements * (4 if dtype == "float32" else 8)
    found = {"median": middle, "seconds": times, "bytes": moved, "bandwidth": moved / middle, "peak": library.peak()}
    return record | found


def _checked(outputs: Sequence[Any], x: Any, dtype: str) -> dict[str, float]:
    """The value. Raises TypeError if the results are not arrays of the library or dtype of `x`, and ArithmeticError if
    the first elements of the gradients are wrong."""
    if any(type(o).__module__.partition(".")[0] != type(x).__module__.partition(".")[0] for o in outputs):
        raise TypeError(f"the results are no arrays of {type(x).__module__}")
    for name, found, expected in zip("xq", outputs[1:], _expected(dtype)):
        if not str(found.dtype).endswith(dtype):
            raise TypeError(f"the gradient by {name} is {found.dtype}")
        numbers = found[:_COMPARED].tolist()
        error = max(abs(a - e) / (1 + abs(e)) for a, e in zip(numbers, expected))
        if not error < _TOLERANCES[dtype]:
            raise ArithmeticError(f"the gradient by {name} is wrong by {error:.2g}")
    return {"value": float(outputs[0])}


def _expected(dtype: str) -> Sequence[Sequence[float]]:
    """The first elements of both gradients, by the formula."""
    import numpy as np

    wholes = (np.arange(_COMPARED) * factor % 2**32 for factor in FACTORS)
    x, q = ((whole / 2**32 + 0.5).astype(dtype).astype(float) for whole in wholes)
    by_x = q / x * np.sin(x) + q * np.log(x) * np.cos(x) - 2 * x * np.exp(-x * x)
    return by_x.tolist(), (np.log(x) * np.sin(x)).tolist()


def measure_all(
    tables: dict[str, dict[str, Any]], names: Sequence[str], device: str, options: Any, until: float, found: Received
) -> None:
    """Add a record for each copy and row of the libraries in `names` to the tables by dtype. Each is measured in its
    own process, one after the other; `found` is called after each."""
    rows = {title: how for title, how in (COPIES | ROWS).items() if how[0] in names}

    def take(job: Job, message: Any) -> None:
        if isinstance(message, Failure):
            for dtype in DTYPES:
                tables[dtype].setdefault(job.name, {"missing": message.why})
        else:
            dtype, record = message
            tables[dtype][job.name] = record
        found(job, message)

    for number, (title, (name, kind)) in enumerate(rows.items()):
        now = time.monotonic()
        share = max(0.0, until - now) / (len(rows) - number)
        job = Job(title, measure, (name, device, kind, options.elements, options.rounds, share / 8))
        # Compilation takes longest; but no job may use more than three times its share of the remaining time.
        run([job], take, until=min(until, now + 3 * share))


def table(records: Mapping[str, Any]) -> str:
    """A Markdown table of the rows, with the bandwidth relative to the fastest round of a copy."""
    copies = [records[title] for title in COPIES if "seconds" in records.get(title, ())]
    # The fastest round shows what the device can do without disturbance.
    copy = max((record["bytes"] / min(record["seconds"]) for record in copies), default=None)
    expected = next((record["value"] for record in records.values() if "value" in record), None)
    lines = ["| | run, ms | quartiles | GB/s | of copy | first call, s | peak, GiB |", "|---|" + "---:|" * 6]
    for title, record in records.items():
        cells = [record["missing"], *[""] * 5] if "missing" in record else _cells(record, copy)
        if "value" in record and not math.isclose(record["value"], expected, rel_tol=1e-3):
            cells[0] += ", another value"
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cells(record: Mapping[str, Any], copy: float | None) -> list[str]:
    low, middle, high = (1000 * t for t in quantiles(record["seconds"], n=4))
    share = "-" if copy is None else f"{100 * record['bandwidth'] / copy:.0f} %"
    peak = "-" if record["peak"] is None else f"{record['peak'] / 2**30:.1f}"
    speed = short(record["bandwidth"] / 1e9)
    return [short(middle), f"{short(low)} to {short(high)}", speed, share, short(record["first"]), peak]
