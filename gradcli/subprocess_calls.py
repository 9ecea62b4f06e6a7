"""Calls a function in a subprocess that is ended at a limit of time or memory, or when its caller ends.

The operating system enforces the limits, so that they also hold inside a single call of a library.
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
from typing import TypeVar

from gradcli.errors import CallError, GradcliError, LimitError, UsageError, internal
from gradcli.named_tuples import NamedTuple

Result = TypeVar("Result")

# The highest limit of time in seconds that a user can set.
_MOST_SECONDS = 1_000_000
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([kMGT]?)(i?)B)?", re.IGNORECASE)
# The code of the subprocess. Its arguments are those of `subprocess_main`, followed by `sys.path`.
_START = "import sys; sys.path[:] = sys.argv[5:]; from gradcli.subprocess_calls import subprocess_main; subprocess_main(*sys.argv[1:5])"
# Bytes of memory added to the limit for reporting that memory has run out.
_TO_REPORT = 2**24
# A process counts as out of memory where two checks, `_LOOK` seconds apart, both find fewer than `_TOO_FEW` bytes left.
_TOO_FEW = 2**18
_LOOK = 0.5
# The memory limit of this process in bytes, if it has one.
_memory: int | None = None
# Messages of various libraries' errors where the system refuses them memory.
_REFUSED = re.compile("cannot allocate memory|can't start new thread|unable to allocate", re.IGNORECASE)


class Limits(NamedTuple):
    """Limits of a process: seconds from its start, and bytes of memory. None means no limit.

    The memory is what the process has reserved for writing, used or not: `RLIMIT_DATA` on Linux. Other systems have no
    such limit, and `memory` is ignored there.
    """

    seconds: float | None = None
    memory: int | None = None

    @classmethod
    def of(cls, seconds: float | None, memory: int | str | None) -> Limits:
        """The limits that a user asks for. Raises UsageError for invalid ones, and for those that the system lacks."""
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
    """A number of bytes, from a number or a text such as `500MB` (500 * 1000**2 bytes) or `2GiB` (2 * 1024**3 bytes).

    Raises UsageError, whose message names `what` was asked for, where `size` is neither.
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
    """Call `function`, which must be importable, in a subprocess and return its result; both ways are pickled.

    The process inherits `descriptors`, but neither standard streams nor other files. It has ended when this returns or
    raises, and it ends when the calling process does. Without `linear_algebra`, which promises that no matrices are
    computed with, it starts sooner where memory is limited.

    Raises the GradcliError that `function` raises, CallError for arguments that cannot be pickled, and LimitError where
    a limit is reached or the process ends without an answer.
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
    """The output of the process. Raises LimitError where it reaches a limit without ending by itself."""
    ends = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
    exhausted = False
    while True:
        left = max(0.0, ends - time.monotonic())
        try:
            return process.communicate(question, min(left, _LOOK))[0]
        except subprocess.TimeoutExpired:
            if left <= _LOOK:
                raise _too_long(limits) from None
        # Without memory, Python may loop forever trying to allocate an exception.
        was, exhausted = exhausted, _is_exhausted(process.pid, limits)
        if was and exhausted:
            raise _too_much(limits)
        question = b""


def _is_exhausted(process: int, limits: Limits) -> bool:
    """Return whether the process has less than `_TOO_FEW` bytes of memory left."""
    if limits.memory is None or sys.platform != "linux":
        return False
    import resource

    try:
        # The soft limit is higher before the process has limited itself, and while it reports that memory has run out.
        most = resource.prlimit(process, resource.RLIMIT_DATA)[0]
        return most != resource.RLIM_INFINITY and _reserved(str(process)) > most - _TOO_FEW
    except (OSError, StopIteration):
        # The process has ended by now.
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
    """The LimitError to report where an exception, or a cause of it, means that memory has run out; otherwise None."""
    # Where memory is limited, Python at times loses a MemoryError and raises SystemError instead.
    without = MemoryError if _memory is None else (MemoryError, SystemError)
    if not isinstance(error, without) and not any(_REFUSED.search(str(e)) for e in _causes(error)):
        return None
    if _memory is None:
        return LimitError("out of memory", hint="make the arrays smaller")
    _allow_a_report()
    return _too_much(Limits(memory=_memory))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, and the exceptions that caused it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def subprocess_main(seconds: str, memory: str, linear_algebra: str, caller: str) -> None:
    """The main function of the subprocess: reads a pickled call from standard input, and writes the pickled result.

    The result goes to standard output; output of libraries is discarded.
    """
    replies = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        end_with(int(caller))
        if seconds:
            _limit_time(float(seconds))
        if memory and sys.platform == "linux":
            if linear_algebra:
                load_linear_algebra()
            _limit_memory(int(memory))
        function, arguments = pickle.loads(sys.stdin.buffer.read())
        reply = pickle.dumps((True, function(*arguments)))
    except Exception as error:
        reply = pickle.dumps((False, explained(error)))
    replies.write(reply)
    replies.flush()
    # Exits without waiting for threads of libraries; the system cleans up after them.
    os._exit(0)


def explained(error: Exception) -> GradcliError:
    return error if isinstance(error, GradcliError) else out_of_memory(error) or internal(error)


def limit_this_process(limits: Limits) -> None:
    """Let the system hold this process to limits. Raises LimitError where it has more memory already."""
    if limits.seconds is not None:
        _limit_time(limits.seconds)
    if limits.memory is not None and sys.platform == "linux":
        _limit_memory(limits.memory)


def end_with(caller: int) -> None:
    """End this process when its caller ends."""
    # Restores the default for SIGINT even where the caller ignores it: a library without memory may end itself so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
        if os.getppid() != caller:
            os._exit(1)


def _limit_time(seconds: float) -> None:
    """Let the system end this process after `seconds`, in case the caller cannot."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory(memory: int) -> None:
    """Let the system refuse memory beyond `memory` bytes. Raises LimitError where this process already has more."""
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
    # Errors in finalizers need memory to be reported.
    sys.unraisablehook = _allow_a_report


def _reserved(process: str = "self") -> int:
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))


def memory_left() -> int | None:
    """The number of bytes that this process may still reserve, or None where that is not limited."""
    return None if _memory is None else max(0, _memory - _reserved())


def _allow_a_report(_unraisable: object = None) -> None:
    """Raise the soft limit to the hard one, so that there is memory for reporting that it has run out."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def load_linear_algebra() -> None:
    """Load the linear algebra libraries and have them allocate their buffers.

    Without memory for these they hang, or end the process. They get one thread, as each one takes a buffer, and the
    memory that a program needs must not depend on the number of cores.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    threading.stack_size(2**20)
    import numpy
    from scipy import linalg

    matrix = numpy.ones((100, 100)) + 100 * numpy.eye(100)
    numpy.linalg.inv(matrix)
    linalg.expm(matrix)
