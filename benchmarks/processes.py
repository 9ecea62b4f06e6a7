"""Compares libraries that each run in their own process, so that their threads do not compete."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from measure import Row, arguments, circumstances, interleaved, publish, table, write_json

# A task to measure, which returns numbers or arrays, as its library does: gradients may be in a tuple or a dict.
Run = Callable[[], Sequence[Any]]


class Comparison(NamedTuple):
    """A table of a benchmark: `kind` is the method of a library that makes its tasks, `baseline` the row that ratios
    refer to, `calls` the number of calls per round, `what` the name of the result. If `given` is the size of inputs and
    outputs in MiB, the memory beyond them gets a table too."""

    kind: str
    baseline: str
    calls: int
    unit: tuple[str, float]
    what: str
    given: float | None = None


def flat(result: Sequence[Any] | Mapping[str, Any]) -> Iterator[Any]:
    """The numbers and arrays of a result in order."""
    for part in result.values() if isinstance(result, Mapping) else result:
        if isinstance(part, (tuple, Mapping)):
            yield from flat(part)
        else:
            yield part


def serve(connection: Connection, make: Callable[[], Any], kind: str) -> None:
    """The body of a child process: make the tasks of a library, send their results, the memory and the time that the
    first calls took, and then a time and the memory so far for each request (task, number of calls)."""
    import numpy as np

    begin = time.perf_counter()
    try:
        library = make()
        before = memory("VmRSS")
        runs = getattr(library, kind)()
        results = {title: [np.asarray(a, float) for a in flat(run())] for title, run in runs.items()}
        connection.send((results, (memory("VmHWM") - before) / 2**20, time.perf_counter() - begin))
    except Exception as error:
        connection.send((f"{type(error).__name__}: {str(error).splitlines()[0]}", 0.0, 0.0))
        return
    while (asked := connection.recv()) is not None:
        title, calls = asked
        run = runs[title]
        start = time.perf_counter()
        for _ in range(calls):
            run()
        seconds = (time.perf_counter() - start) / calls
        connection.send((seconds, (memory("VmHWM") - before) / 2**20))


def memory(what: str) -> int:
    """`VmRSS`, the resident memory, or `VmHWM`, its peak, in bytes; 0 where Linux does not report it."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(what)), 0)


class Peers:
    """A child process for each library that has a task."""

    def __init__(self, libraries: Mapping[str, Callable[[], Any]], kind: str) -> None:
        self.missing: list[Row] = []
        self.results: dict[str, Sequence[Any]] = {}
        # The memory up to the first call, and up to the latest, and the seconds from the import to the first result.
        self.memory: dict[str, float] = {}
        self.peak: dict[str, float] = {}
        self.first: dict[str, float] = {}
        self.connections: dict[str, Connection] = {}
        self.processes: list[Any] = []
        context = multiprocessing.get_context("spawn")
        for name, library in libraries.items():
            if getattr(library.func if isinstance(library, partial) else library, kind, None) is None:
                continue
            here, there = context.Pipe()
            self.processes.append(context.Process(target=serve, args=(there, library, kind), daemon=True))
            self.processes[-1].start()
            results, used, seconds = here.recv()
            if isinstance(results, str):
                self.missing.append(Row(name, missing=results))
                continue
            for title, numbers in results.items():
                self.results[title], self.memory[title], self.connections[title] = numbers, used, here
                self.first[title] = seconds

    def check(self) -> None:
        """Exit if the libraries do not compute the same numbers; of those that have no gradients, the value."""
        import numpy as np

        expected = next(iter(self.results.values()))
        for name, numbers in self.results.items():
            for actual, wanted in zip(numbers, expected[:1] if len(numbers) == 1 else expected, strict=True):
                if not np.allclose(actual.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-12):
                    sys.exit(f"error: {name} finds other numbers")

    def timer(self, title: str, calls: int) -> Callable[[], Sequence[float]]:
        connection = self.connections[title]

        def job() -> Sequence[float]:
            # Threads of the previous library may still be spinning while they wait for work.
            time.sleep(0.05)
            connection.send((title, calls))
            seconds, self.peak[title] = connection.recv()
            return (seconds,)

        return job

    def close(self) -> None:
        for connection in set(self.connections.values()):
            connection.send(None)
        for process in self.processes:
            # A process that ends would disturb the next measurement.
            process.join()


class Measured(NamedTuple):
    rows: list[Row]
    table: str
    memory: Mapping[str, float]


def measure(libraries: Mapping[str, Callable[[], Any]], comparison: Comparison, rounds: int) -> Measured:
    """Call the tasks of all libraries in turn. Exits if they do not compute the same numbers."""
    peers = Peers(libraries, comparison.kind)
    peers.check()
    timers = {name: peers.timer(name, comparison.calls) for name in peers.results}
    rows = [Row(n, t) for n, t in interleaved(timers, rounds, warmups=3).items()] + peers.missing
    peers.close()
    return Measured(rows, table(rows, [comparison.what], comparison.unit, comparison.baseline), peers.memory)


def compare(
    description: str | None,
    place: str,
    libraries: Mapping[str, Callable[[], Any]],
    comparisons: Mapping[str, Comparison],
    packages: Sequence[str],
    column: str = "time",
) -> None:
    """Run a whole benchmark: a table of the libraries for each comparison, by title. `place` is the marker of the
    tables in README.md, `packages` are those whose versions are reported, and `column` is the name of a time in the
    JSON file."""
    options = arguments(description, rounds=30)
    rows: dict[str, list[Row]] = {}
    tables = {}
    for title, comparison in comparisons.items():
        measured = measure(libraries, comparison, options.rounds)
        rows[title] = measured.rows
        tables[f"{title}, {options.rounds} rounds"] = measured.table
        if comparison.given is not None:
            tables["its memory at the first call, beyond inputs and outputs"] = _beyond(
                comparison.given, measured.memory
            )
    about = circumstances(packages)
    publish(options, place, about, tables)
    if options.json:
        write_json(options.json, about, rows, [column])


def _beyond(given: float, memory: Mapping[str, float]) -> str:
    lines = [f"| {name} | {max(used - given, 0):.0f} |" for name, used in memory.items()]
    return "\n".join(["| | MiB |", "|---|---:|", *lines])
