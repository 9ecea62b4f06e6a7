"""Chains on several cores: processes that make one chain after the other, where that takes longer than starting them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe, wait

from gradcli import arrays, limits, subprocess_calls
from gradcli.errors import GradcliError, LimitError
from gradcli.executors.thread_pool import cores
from gradcli.models.results import Sampling
from gradcli.models.sampling.chains import Chain, ChainSeeds, SamplerSettings, chain
from gradcli.models.sampling.densities import LogDensity, SampledDensity

# Called with the number of iterations of all chains that are done.
Watch = Callable[[Sampling], object]

# Seconds that a process takes to start and to compile a density, on a core of 2020.
_START = 0.7
# Leapfrog steps of a transition, as many as a well-conditioned density of ten numbers takes.
_STEPS = 8
# Seconds of a transition beyond its steps.
_TRANSITION = 5e-5
# Seconds between two reports of a process.
_REPORT_INTERVAL = 0.1
# The code of a process. Its arguments are those of `serve`, followed by `sys.path`.
_CODE = "import sys; sys.path[:] = sys.argv[3:]; from gradcli.models.sampling.chain_processes import serve; serve(*map(int, sys.argv[1:3]))"


def chains(target: SampledDensity, settings: SamplerSettings, watch: Watch) -> list[Chain]:
    """The chains, which are the same on any number of cores."""
    workers = min(settings.chains, cores())
    with arrays.quiet(), limits.within(*target.budget):
        density = LogDensity(target)
        shared = workers > 1 and _can_start() and _saved(density.seconds(), settings, workers) > _START
    if shared:
        return _in_processes(target, settings, workers, watch)
    each = settings.warmup + settings.draws
    found = []
    for number, seed in enumerate(settings.seeds()):

        def tell(done: int, before: int = number * each) -> None:
            watch(Sampling(before + done, settings.chains * each))

        found.append(chain(density, target, settings, seed, tell))
    return found


def _can_start() -> bool:
    # A limit of memory is one of this process, and further ones would multiply it.
    return os.name == "posix" and bool(sys.executable) and subprocess_calls.memory_left() is None


def _saved(seconds: float, settings: SamplerSettings, workers: int) -> float:
    """The seconds that processes save, from the time of one evaluation."""
    rounds = -(-settings.chains // workers)
    each = settings.warmup + settings.draws
    return (seconds * _STEPS + _TRANSITION) * each * (settings.chains - rounds)


def _in_processes(target: SampledDensity, settings: SamplerSettings, workers: int, watch: Watch) -> list[Chain]:
    seeds = settings.seeds()
    waiting = list(range(len(seeds)))
    each, done, found = settings.warmup + settings.draws, [0] * len(seeds), dict[int, Chain]()
    with _started(workers) as processes:
        for process in processes:
            process.send((target, settings))
            process.send((number := waiting.pop(0), seeds[number]))
        while len(found) < len(seeds):
            ready = wait(processes)
            for process in (p for p in processes if p in ready):
                number, result = _received(process)
                if isinstance(result, int):
                    done[number] = result
                    watch(Sampling(sum(done), len(seeds) * each))
                    continue
                found[number], done[number] = result, each
                if waiting:
                    process.send((number := waiting.pop(0), seeds[number]))
    return [found[number] for number in range(len(seeds))]


def _received(process: Connection) -> tuple[int, int | Chain]:
    try:
        number, result = process.recv()
    except (EOFError, OSError):
        raise LimitError("a process of the chains died", hint="it may have run out of memory") from None
    if isinstance(result, GradcliError):
        raise result
    return number, result


@contextmanager
def _started(count: int) -> Iterator[Sequence[Connection]]:
    """Processes that have ended when the block is left, by their connections."""
    ours: list[Connection] = []
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            one, other = Pipe()
            ours.append(one)
            with other:
                processes.append(_process(other))
        yield ours
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        for connection in ours:
            connection.close()


def _process(connection: Connection) -> subprocess.Popen[bytes]:
    words = (str(connection.fileno()), str(os.getpid()), *(place for place in sys.path if isinstance(place, str)))
    null = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _CODE, *words], stdin=null, stdout=null, stderr=null, pass_fds=[connection.fileno()]
        )
    except OSError as error:
        raise LimitError(f"no process can be started: {error.strerror or error}") from error


def serve(descriptor: int, caller: int) -> None:
    """The main function of a process: receives what is sampled, and then for each number and seed of a chain sends how
    many iterations are done, and at last the chain, or the error that it raises."""
    subprocess_calls.end_with(caller)
    # The calling process handles Ctrl-C, and ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(descriptor) as connection:
        try:
            target, settings = connection.recv()
            densities: list[LogDensity] = []
            while True:
                number, seed = connection.recv()
                tell = _progress(connection, number)
                connection.send((number, _chain_or_error(target, settings, seed, densities, tell)))
        except (EOFError, BrokenPipeError):
            # The calling process has ended.
            return


def _progress(connection: Connection, number: int) -> Callable[[int], None]:
    """Sends how many iterations of a chain are done, but not too often."""
    told = time.monotonic()

    def tell(done: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _REPORT_INTERVAL:
            told = time.monotonic()
            connection.send((number, done))

    return tell


def _chain_or_error(
    target: SampledDensity,
    settings: SamplerSettings,
    seeds: ChainSeeds,
    densities: list[LogDensity],
    tell: Callable[[int], None],
) -> Chain | GradcliError:
    try:
        # Made here, since that may raise an error too.
        if not densities:
            with arrays.quiet(), limits.within(*target.budget):
                densities.append(LogDensity(target))
        return chain(densities[0], target, settings, seeds, tell)
    except BrokenPipeError:
        raise
    except Exception as error:
        return subprocess_calls.explained(error)
