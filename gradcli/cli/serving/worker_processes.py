"""Runs each request in a process of its own, forked from one that has loaded gradcli, within limits of time and memory.

A request sees no other: its process begins as the one that it is forked from, which runs none, and ends with it.
"""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

from gradcli import subprocess_calls
from gradcli.cli.process.environment import Environment
from gradcli.cli.serving import tools
from gradcli.errors import GradcliError, LimitError, UsageError
from gradcli.io import system
from gradcli.named_tuples import NamedTuple

# Arguments are the descriptor of the socket that requests come from, and `sys.path`.
_START = "import sys; sys.path[:] = sys.argv[2:]; from gradcli.cli.serving.worker_processes import fork_for_each; fork_for_each(int(sys.argv[1]))"
_LENGTH = struct.Struct("!Q")
# Seconds that the answer of a process may take beyond its limit, before it is given up.
_GRACE = 2.0
# Bytes of an answer; longer ones are refused.
_LONGEST_ANSWER = 5_000_000
# The threads of linear algebra take memory, and do not survive a fork.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class RequestLimits(NamedTuple):
    """The limits of a request: seconds, bytes of memory, steps and elements of a program."""

    seconds: float
    memory: int
    steps: int
    elements: int

    def options(self) -> list[str]:
        return [f"--max-steps={self.steps}", f"--max-elements={self.elements}"]


class JsonReply(NamedTuple):
    """The JSON object of a result, or of an error."""

    succeeded: bool
    members: dict[str, Any]


class BusyError(GradcliError):
    """Raised where more requests wait than may."""


class Workers:
    """A pool of `size` processes, for which at most `most_waiting` requests wait."""

    def __init__(self, limits: RequestLimits, size: int, most_waiting: int = 200) -> None:
        if not hasattr(os, "fork"):
            raise UsageError("gradcli serve needs a POSIX system")
        self.limits = limits
        self.size = size
        self._places = threading.BoundedSemaphore(size)
        self._waiting = threading.BoundedSemaphore(size + most_waiting)
        self._lock = threading.Lock()
        self._parent: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def start(self) -> None:
        """Start the process that others are forked from, which takes some time to load."""
        with self._lock:
            self._started()

    def close(self) -> None:
        """End the process that others are forked from; those that run end at their limits."""
        with self._lock:
            if self._parent is not None:
                process, channel = self._parent
                channel.close()
                process.kill()
                process.wait()
                self._parent = None

    def answer(self, command: Any, arguments: Any) -> JsonReply:
        """Run a request. Every failure becomes an answer, but BusyError is raised where too many wait."""
        try:
            words = tools.command_line(command, arguments, self.limits.options())
        except GradcliError as error:
            return _failed(error)
        except ValueError:
            # Python writes no integer of more than some thousand digits.
            return _failed(UsageError("a number of the request has too many digits"))
        if not self._waiting.acquire(blocking=False):
            raise BusyError("too many requests are waiting", hint="try again later")
        try:
            with self._places:
                return _read(self._run(words), tools.BLANK[words[0]])
        except GradcliError as error:
            return _failed(error)
        finally:
            self._waiting.release()

    def _run(self, words: Sequence[str]) -> dict[str, Any]:
        began = time.monotonic()
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._fork(theirs)
            ours.settimeout(self.limits.seconds + _GRACE)
            request = json.dumps({"words": words, "limits": self.limits}).encode()
            try:
                ours.sendall(_LENGTH.pack(len(request)) + request)
                answer = _received(ours)
            except OSError:
                answer = None
        if answer is not None:
            found: dict[str, Any] = json.loads(answer)
            return found
        if time.monotonic() - began >= self.limits.seconds:
            raise LimitError(f"the request takes longer than {self.limits.seconds:g} s")
        raise LimitError("the process of the request died", hint="it may have run out of memory")

    def _fork(self, channel: socket.socket) -> None:
        """Have a process forked that answers on `channel`. One that has died is started anew, once."""
        with self._lock:
            for attempt in range(2):
                process, parent = self._started()
                try:
                    socket.send_fds(parent, [b"1"], [channel.fileno()])
                    return
                except OSError:
                    parent.close()
                    process.kill()
                    process.wait()
                    self._parent = None
                    if attempt:
                        raise LimitError("no process can be started") from None

    def _started(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._parent is None or self._parent[0].poll() is not None:
            ours, theirs = socket.socketpair()
            with theirs:
                process = subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        _START,
                        str(theirs.fileno()),
                        *filter(None, [*sys.path, system.current_directory()]),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **_ONE_THREAD},
                    start_new_session=True,
                )
            # It says when it has loaded: the time of a request begins after that.
            ours.recv(1)
            self._parent = process, ours
        return self._parent


def _failed(error: GradcliError) -> JsonReply:
    return JsonReply(False, {"error": error.as_json()})


def _read(run: dict[str, Any], blank: str) -> JsonReply:
    """The answer of a command from what it printed, without the `blank` before the program."""
    members = {}
    with suppress(ValueError):
        members = json.loads(run["out"])
    for name in ("program", "model"):
        if isinstance(members.get(name), str):
            members[name] = members[name].removeprefix(blank)
    for warning in members.get("warnings", ()):
        _move(warning, len(blank))
    if run["status"] == 0 and members:
        return JsonReply(True, members)
    for line in run["err"].splitlines():
        with suppress(ValueError):
            if "error" in (found := json.loads(line)):
                _move(found["error"], len(blank))
                return JsonReply(False, members | found)
    message = run["err"].strip() or "the request was not computed"
    return JsonReply(False, members | {"error": {"kind": "evaluation", "message": message}})


def _move(place: Any, by: int) -> None:
    """Move a place on the first line of the program to the left. Those of a binding are in its value."""
    if isinstance(place, dict) and place.get("line") == 1 and place.get("kind") != "binding":
        place["column"] = max(1, place["column"] - by)


def _received(channel: socket.socket) -> bytes | None:
    """A message that its length precedes; None where the other end closed before."""
    head = _exactly(channel, _LENGTH.size)
    return None if head is None else _exactly(channel, *_LENGTH.unpack(head))


def _exactly(channel: socket.socket, count: int) -> bytes | None:
    parts, left = [], count
    while left:
        part = channel.recv(min(left, 2**20))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


# --- in the processes


def fork_for_each(descriptor: int) -> None:
    """The main function of the process that others are forked from: one for each descriptor that comes. It ends when the
    server does, which closes the socket."""
    _load()
    # The system takes the statuses of the processes, which nobody waits for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests = socket.socket(fileno=descriptor)
    requests.sendall(b"1")
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1, 1)
        if not message:
            os._exit(0)
        try:
            process = os.fork()
        except OSError:
            process = -1
        if process == 0:
            requests.close()
            _answer_and_exit(descriptors[0])
        for each in descriptors:
            os.close(each)


def _load() -> None:
    """Load what requests need, so that they do not."""
    subprocess_calls.load_linear_algebra()
    for name in tools.NAMES:
        import_module(f"gradcli.cli.commands.{name}")
    # A first request loads more than later ones do.
    programs = {"fit": "y ~ a*x", "solve": "x**2 = 2", "ode": "dx/dt = -x", "sample": "-x**2/2"}
    for command in tools.NAMES:
        program = programs.get(command, "log(x**2)")
        few = ["--chains=1", "--draws=4", "--warmup=4"] if command == "sample" else []
        values = {
            "fit": ["x=[1,2,3]", "y=[1,2,4]"], "solve": ["x~1"], "plot": ["x=1..2"], "diff": [], "ode": ["x=1", "t=0..1"]
        }.get(command, ["x=1.5"])  # fmt: skip
        words = [] if command == "ops" else [*few, "--", program, *values]
        _run_here([command, "--json", *words])
    gc.collect()
    gc.freeze()


def _answer_and_exit(descriptor: int) -> None:
    try:
        channel = socket.socket(fileno=descriptor)
        # A client that sends nothing holds no process.
        channel.settimeout(_GRACE)
        message = _received(channel)
        if message is not None:
            request = json.loads(message)
            limits = RequestLimits(*request["limits"])
            channel.settimeout(None)
            _limit(limits)
            answer = json.dumps(_run_here(request["words"])).encode()
            if len(answer) > _LONGEST_ANSWER:
                error = LimitError(f"the result has more than {_LONGEST_ANSWER:,} bytes").as_json()
                answer = json.dumps({"status": 1, "out": "", "err": json.dumps({"error": error})}).encode()
            channel.sendall(_LENGTH.pack(len(answer)) + answer)
    finally:
        os._exit(0)


def _limit(limits: RequestLimits) -> None:
    import resource

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    subprocess_calls.limit_this_process(subprocess_calls.Limits(limits.seconds, limits.memory))


def _run_here(words: Sequence[str]) -> dict[str, Any]:
    from gradcli.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    status = main(words, Environment(None, out, err, {}, _refuse_to_save))
    return {"status": int(status), "out": out.getvalue(), "err": err.getvalue()}


def _refuse_to_save(path: str, write: Callable[[IO[bytes]], object]) -> None:
    raise UsageError("a request writes no files")
