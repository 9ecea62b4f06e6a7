"""Runs jobs in child processes, which send results as they go, and ends them at a deadline."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

# Seconds that a process has to end after it was terminated.
_GRACE = 5.0

Send = Callable[[Any], None]


class Job(NamedTuple):
    """`function(send, *arguments)` in a child process, which calls `send` with its results."""

    name: str
    function: Callable[..., None]
    arguments: Sequence[Any]


class Failure(NamedTuple):
    """The last message of a job that ended early."""

    why: str


Received = Callable[[Job, Any], None]


def explanation(error: BaseException) -> str:
    """An error as one line of text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def _work(connection: Connection, function: Callable[..., None], arguments: Sequence[Any]) -> None:
    try:
        function(connection.send, *arguments)
    except Exception as error:
        connection.send(Failure(explanation(error)))


class _Running:
    """A job with its process and connection."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self.job = job
        self.connection, there = context.Pipe(duplex=False)
        # Not a daemon, because compilers may start processes of their own.
        self.process: BaseProcess = context.Process(target=_work, args=(there, job.function, job.arguments))
        self.process.start()
        # Only the child holds the other end, so that its exit closes the connection.
        there.close()

    def end(self) -> None:
        self.process.terminate()
        self.process.join(_GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def run(jobs: Sequence[Job], received: Received, *, until: float, width: int = 1) -> None:
    """Run the jobs, `width` at a time, and pass on what they send, until the time `until` (of `time.monotonic`), when
    the remaining ones are ended."""
    waiting, running = list(jobs), list[_Running]()
    try:
        while waiting or running:
            left = until - time.monotonic()
            if left <= 0:
                break
            while waiting and len(running) < width:
                running.append(_Running(waiting.pop(0)))
            for ready in wait([r.connection for r in running], timeout=left):
                one = next(r for r in running if r.connection is ready)
                if not _receive(one, received):
                    running.remove(one)
        for one in running:
            one.process.terminate()
        for one in running:
            received(one.job, Failure("its time was up"))
        for job in waiting:
            received(job, Failure("no time was left"))
    finally:
        for one in running:
            one.end()


def _receive(running: _Running, received: Received) -> bool:
    """Pass on one message; returns whether there may be more."""
    try:
        message = running.connection.recv()
    except EOFError:
        running.process.join(_GRACE)
        status = running.process.exitcode
        running.end()
        if status:
            received(running.job, Failure(f"its process ended with status {status}"))
        return False
    received(running.job, message)
    return True
