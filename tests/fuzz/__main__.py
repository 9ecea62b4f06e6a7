"""Runs programs at random until its time is over: `python -m tests.fuzz --seconds 60`.

Program i of a seed is the same in every run: `--first I --count 1` runs it again. The first finding of a kind is made
short; findings are printed and added to a file of cases, which the suite runs. The exit status is 1 where anything was found.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.fuzz import checks, mutations
from tests.fuzz.case import Case, Finding
from tests.fuzz.minimise import minimised
from tests.fuzz.programs import program

FOUND = mutations.TESTS / "data" / "fuzz.jsonl"
# A worker that says nothing for so long hangs where no alarm reaches it.
_SILENT = 180.0
_EVERY = 30.0
_GIBIBYTES = 6
# So many of a kind are shown, which may be faults of their own; the first of them is made short.
_SHOWN = 8


def main() -> int:
    options = _options()
    fuzzer = _Fuzzer(options)
    try:
        fuzzer.run()
    except KeyboardInterrupt:
        pass
    finally:
        fuzzer.stop()
    print(fuzzer.summary(), flush=True)
    return 1 if fuzzer.kinds else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="which programs (default: 0)")
    parser.add_argument(
        "--mode",
        choices=[*checks.MODES],
        default="quick",
        help="quick: parse, evaluate, differentiate (default); loops: as a whole and round by round; full: all commands, orders and executors",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="the first program (default: 0)")
    parser.add_argument("--count", type=int, default=None, metavar="N", help="no more than so many programs")
    parser.add_argument(
        "--corpus", metavar="PATH", help="further programs to spoil: a file of JSON lines, or a folder of them"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=FOUND,
        metavar="PATH",
        help="where findings are added (default: tests/data/fuzz.jsonl)",
    )
    return parser.parse_args()


class _Worker:
    """A process that does every so-many-th program, and what is known of it."""

    def __init__(self, options: argparse.Namespace, number: int, first: int) -> None:
        self.number = number
        self.next = first
        self.heard = time.monotonic()
        self.pipe, other = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=_work, args=(options, first, other), daemon=True)
        self.process.start()
        other.close()


def _work(options: argparse.Namespace, first: int, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    checks.prepare(_GIBIBYTES)
    check = checks.MODES[options.mode]
    cases = mutations.corpus(options.corpus)
    last = sys.maxsize if options.count is None else options.first + options.count
    done, said = 0, time.monotonic()
    known: set[str] = set()
    for i in range(first, last, options.jobs):
        case = program(options.seed, i, cases)
        found = checks.guarded(check, case)
        done += 1
        if found is not None and found.key not in known:
            known.add(found.key)
            case, found = _shortest(check, case, found)
        if found is not None or time.monotonic() - said > 1:
            pipe.send((i, done, None if found is None else (case, found)))
            done, said = 0, time.monotonic()
    pipe.send((last, done, None))


def _shortest(check: checks.Check, case: Case, found: Finding) -> tuple[Case, Finding]:
    """A shorter case that is wrong alike, and what is wrong with it."""

    def still(candidate: Case) -> bool:
        again = checks.guarded(check, candidate)
        return again is not None and again.key == found.key

    short = minimised(case, still)
    return short, checks.guarded(check, short) or found


class _Fuzzer:
    """The workers, and what they found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.started = time.monotonic()
        self.programs = 0
        self.kinds: Counter[str] = Counter()
        self.workers = [_Worker(options, n, options.first + n) for n in range(options.jobs)]

    def run(self) -> None:
        said = self.started
        while self.workers and time.monotonic() - self.started < self.options.seconds:
            for pipe in wait([w.pipe for w in self.workers], timeout=1.0):
                self._hear(next(w for w in self.workers if w.pipe is pipe))
            for worker in [w for w in self.workers if time.monotonic() - w.heard > _SILENT]:
                self._lost(worker, "hangs")
            if time.monotonic() - said > _EVERY:
                said = time.monotonic()
                print(self.summary().partition("\n")[0], flush=True)

    def _hear(self, worker: _Worker) -> None:
        try:
            i, done, found = worker.pipe.recv()
        except EOFError:
            worker.process.join()
            if worker.process.exitcode:
                self._lost(worker, f"ends the process with {worker.process.exitcode}")
            else:
                self.workers.remove(worker)
            return
        worker.heard = time.monotonic()
        worker.next = i + self.options.jobs
        self.programs += done
        if found is not None:
            self._report(i, *found)

    def _lost(self, worker: _Worker, what: str) -> None:
        """A worker hangs or died, at some program after the last that it told of."""
        worker.process.kill()
        self.workers.remove(worker)
        print(f"a program from {worker.next} on {what}: --first {worker.next} --count 1000 finds it", flush=True)
        self.kinds[what] += 1
        self.workers.append(_Worker(self.options, worker.number, worker.next + 100 * self.options.jobs))

    def _report(self, i: int, case: Case, found: Finding) -> None:
        self.kinds[found.key] += 1
        if self.kinds[found.key] > _SHOWN:
            return
        print(f"\n--- program {i}: {found.key}\n{case.line()}\n{found.detail}", flush=True)
        with self.options.out.open("a", encoding="utf-8") as file:
            file.write(case.line(found=found.key) + "\n")

    def stop(self) -> None:
        for worker in self.workers:
            worker.process.kill()
            worker.process.join()

    def summary(self) -> str:
        seconds = time.monotonic() - self.started
        rate = self.programs / seconds
        kinds = "".join(f"\n  {count} × {kind}" for kind, count in self.kinds.most_common())
        return f"{self.programs:,} programs ({self.options.mode}, seed {self.options.seed}) in {seconds:,.0f} s, {rate:,.0f} a second, {len(self.kinds)} kinds of findings{kinds}"


if __name__ == "__main__":
    sys.exit(main())
