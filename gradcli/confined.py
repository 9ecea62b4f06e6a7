"""A call in a process of its own, which ends where it takes too long or too much memory, or where its caller ends.

The operating system holds these limits, inside a single call of a library too, where nothing in this process could.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from gradcli.errors import CallError, GradcliError, LimitError, UsageError, internal

Result = TypeVar("Result")

_MOST_SECONDS = 1_000_000
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([kMGT]?)(i?)B)?", re.IGNORECASE)
# What a process is started with. Behind it stand what `answer` takes, and where Python finds modules.
_START = "import sys; sys.path[:] = sys.argv[5:]; from gradcli.confined import answer; answer(*sys.argv[1:5])"
# So many bytes are left for the error that says that there is no more memory.
_TO_REPORT = 2**24
# A process with fewer bytes left than this for so many seconds, where it is looked at, has none.
_TOO_FEW = 2**18
_LOOK = 0.5
# How much this process may have, where that is limited.
_memory: int | None = None
# What libraries say, each in an error of its own, where the system refuses them memory.
_REFUSED = re.compile("cannot allocate memory|can't start new thread|unable to allocate", re.IGNORECASE)


class Limits(NamedTuple):
    """How many seconds a process may take, from its start on, and how many bytes of memory; None is no limit.

    The memory is what it has reserved for itself to write to, used or not: `RLIMIT_DATA` of Linux.
    Other systems have no such limit, and what is asked for here is let be.
    """

    seconds: float | None = None
    memory: int | None = None

    @classmethod
    def of(cls, seconds: float | None, memory: int | str | None) -> Limits:
        """The limits that a user asks for. Raises UsageError for what is none, or cannot be held here."""
        if os.name != "posix":
            raise UsageError("limits on time and memory need a POSIX system", hint="limit the steps and the elements")
        if memory is not None and sys.platform != "linux":
            raise UsageError("a limit on memory needs Linux", hint="limit the time, the steps and the elements")
        return cls(None if seconds is None else _seconds(seconds), None if memory is None else byte_count(memory))


def _seconds(seconds: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _MOST_SECONDS:
        raise UsageError(f"{seconds!r} is no limit in seconds", hint=f"give more than 0 and at most {_MOST_SECONDS:,}")
    return float(seconds)


def byte_count(size: int | str, what: str = "size of memory") -> int:
    """A number of bytes, or a text such as `500MB`, of 1000 × 1000 bytes each, or `2GiB`, of 1024 × 1024 × 1024.

    Raises UsageError, which names `what` was asked for, where it is neither.
    """
    found = size
    if isinstance(size, str) and (match := _SIZE.fullmatch(size.strip())):
        number, letter, binary = match.groups(default="")
        power = " kmgt".index(letter.lower() or " ")
        found = int(float(number) * (1024 if binary else 1000) ** power)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 2**63:
        raise UsageError(f"{size!r} is no {what}", hint="give a number of bytes, or as in 500MB or 2GiB")
    return found


def size_text(size: int) -> str:
    """A number of bytes in the unit in which it is the smallest whole number."""
    units = {f"{prefix}{'i' * (k == 1024)}B": k**n for k in (1000, 1024) for n, prefix in enumerate("kMGT", 1)}
    whole = {size // factor: unit for unit, factor in units.items() if size % factor == 0}
    return f"{min(whole):,} {whole[min(whole)]}" if whole else f"{size:,} bytes"


def call(
    limits: Limits,
    function: Callable[..., Result],
    *arguments: object,
    descriptors: Sequence[int] = (),
    linear_algebra: bool = True,
) -> Result:
    """What `function`, which is one of a module, returns for `arguments`; both go to and fro by pickling.

    The process has `descriptors` open, and neither standard streams nor anything else of this one. It has ended,
    and left nothing behind, when this returns or raises, and it ends when this process does. One without
    `linear_algebra`, which is not to compute with matrices, starts sooner where its memory is limited.

    Raises the GradcliError that `function` raises, CallError for arguments that cannot be pickled, and LimitError where
    a limit is reached, or where the process ends in any other way than by an answer.
    """
    try:
        sent = pickle.dumps((function, arguments))
    except (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise CallError(f"what is given cannot be sent to a process of its own: {error}") from None
    settings = (limits.seconds, limits.memory, linear_algebra or None, os.getpid())
    words = ("" if n is None else str(n) for n in settings)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, *words, *(place for place in sys.path if isinstance(place, str))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise LimitError(f"no process can be started: {error.strerror or error}") from error
    with process:
        try:
            reply = _reply(process, sent, limits)
        finally:
            process.kill()
    if not reply:
        raise _died(process.returncode, limits)
    returned, result = pickle.loads(reply)
    if not returned:
        raise result
    found: Result = result
    return found


def _reply(process: subprocess.Popen[bytes], question: bytes, limits: Limits) -> bytes:
    """What the process writes until it ends. Raises LimitError where it reaches a limit and does not end by that."""
    ends = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
    exhausted = False
    while True:
        left = max(0.0, ends - time.monotonic())
        try:
            return process.communicate(question, min(left, _LOOK))[0]
        except subprocess.TimeoutExpired:
            if left <= _LOOK:
                raise _too_long(limits) from None
        # Python without memory may go round for ever in search of enough for an exception.
        was, exhausted = exhausted, _is_exhausted(process.pid, limits)
        if was and exhausted:
            raise _too_much(limits)
        question = b""


def _is_exhausted(process: int, limits: Limits) -> bool:
    """Whether the process has less memory left than anything could be done with."""
    if limits.memory is None or sys.platform != "linux":
        return False
    import resource

    try:
        # Its limit is higher before it has limited itself, and when it says that it has reached that.
        most = resource.prlimit(process, resource.RLIMIT_DATA)[0]
        return most != resource.RLIM_INFINITY and _reserved(str(process)) > most - _TOO_FEW
    except (OSError, StopIteration):
        # It has ended by now.
        return False


def _too_long(limits: Limits) -> LimitError:
    return LimitError(f"the program takes longer than {limits.seconds:g} s", hint="raise the limit with --max-seconds")


def _too_much(limits: Limits) -> LimitError:
    return LimitError(
        f"the program needs more than {size_text(limits.memory or 0)} of memory",
        hint="raise the limit with --max-memory, or make the arrays smaller",
    )


def _died(status: int, limits: Limits) -> LimitError:
    """The error for a process that ended without an answer."""
    if status == -signal.SIGALRM:
        return _too_long(limits)
    how = f"exit status {status}" if status >= 0 else _signal_name(-status)
    if limits.memory is None:
        return LimitError(f"the process of the program died: {how}", hint="it may have run out of memory")
    return LimitError(
        f"the process of the program died: {how}, as where {size_text(limits.memory)} of memory are too few",
        hint="raise the limit with --max-memory, or make the arrays smaller",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def out_of_memory(error: BaseException) -> LimitError | None:
    """The error where what was raised, or what that came from, means that there was no more memory; else None."""
    # Python loses a MemoryError at times, where its memory is limited, and then wonders.
    without = MemoryError if _memory is None else (MemoryError, SystemError)
    if not isinstance(error, without) and not any(_REFUSED.search(str(e)) for e in _causes(error)):
        return None
    if _memory is None:
        return LimitError("out of memory", hint="make the arrays smaller")
    _allow_a_report()
    return _too_much(Limits(memory=_memory))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What was raised, and what that came from."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def answer(seconds: str, memory: str, linear_algebra: str, caller: str) -> None:
    """The life of the process: it takes a call from its standard input, and writes to its standard output what
    comes of it. What libraries print goes nowhere."""
    replies = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        _end_with(int(caller))
        if seconds:
            _limit_time(float(seconds))
        if memory and sys.platform == "linux":
            if linear_algebra:
                _load_linear_algebra()
            _limit_memory(int(memory))
        function, arguments = pickle.loads(sys.stdin.buffer.read())
        reply = pickle.dumps((True, function(*arguments)))
    except Exception as error:
        reply = pickle.dumps((False, _explained(error)))
    replies.write(reply)
    replies.flush()
    # Threads of libraries are not waited for, and what they would clean up goes with the process.
    os._exit(0)


def _explained(error: Exception) -> GradcliError:
    return error if isinstance(error, GradcliError) else out_of_memory(error) or internal(error)


def _end_with(caller: int) -> None:
    """Have this process end, wherever it is, when the one ends that started it."""
    # Even where that ignores interrupts: a library that gets no more memory may end itself by one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
        if os.getppid() != caller:
            os._exit(1)


def _limit_time(seconds: float) -> None:
    """Have the system end this process, for the case that its caller cannot."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory(memory: int) -> None:
    """Have the system refuse more memory. Raises LimitError where this process has more already."""
    import resource

    reserved = _reserved()
    if reserved > memory:
        raise LimitError(
            f"{size_text(memory)} of memory are too few to start",
            hint=f"Python and its libraries alone take {reserved // 1_000_000 + 1} MB",
        )
    global _memory
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    highest = memory + _TO_REPORT if most == resource.RLIM_INFINITY else min(memory + _TO_REPORT, most)
    resource.setrlimit(resource.RLIMIT_DATA, (min(memory, highest), highest))
    _memory = memory
    # What is taken apart needs memory to say so.
    sys.unraisablehook = _allow_a_report


def _reserved(process: str = "self") -> int:
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))


def memory_left() -> int | None:
    """How many bytes this process may still reserve, where that is limited."""
    return None if _memory is None else max(0, _memory - _reserved())


def _allow_a_report(_unraisable: object = None) -> None:
    """Let this process, which has no memory left, have enough to say so."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _load_linear_algebra() -> None:
    """Have the libraries for matrices loaded, with their buffers: without memory for these they hang, or end the
    process. They use one core, as each further one takes a buffer, and what a program needs must not depend on it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    threading.stack_size(2**20)
    import numpy
    from scipy import linalg

    matrix = numpy.ones((100, 100)) + 100 * numpy.eye(100)
    numpy.linalg.inv(matrix)
    linalg.expm(matrix)
