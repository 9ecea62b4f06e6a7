"""Runs gradcli commands in forks of one process that has imported the libraries, which otherwise take most of the time
of a command of a shell script.

A command has its own process, descriptors, directory and environment variables; only its imports are shared. `PROGRAM`
is the script that stands for `gradcli`: it passes its descriptors to the server, and exits with the command's status.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# `socket` and `json` would take longer to import than Python to start.
PROGRAM = """\
import marshal, os, sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket
server = socket(AF_UNIX, SOCK_SEQPACKET)
server.connect(sys.argv[1])
descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
message = marshal.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)])
server.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
sys.exit(int(server.recv(16) or 1))
"""
_LIBRARIES = ("numpy", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.sparse.linalg", "flint")
_LARGEST_MESSAGE = 200_000


def _run(words: list[str], directory: str, variables: dict[str, str], descriptors: list[int]) -> None:
    """Run a command in this process, as `python -m gradcli` does."""
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(variables)
    sys.stdin, sys.stdout, sys.stderr = (
        open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for descriptor, mode in enumerate(["r", "w", "w"])
    )
    sys.argv = ["gradcli", *words]
    try:
        runpy.run_module("gradcli", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    # Python would free its objects one by one, and so copy the pages of all imported modules.
    os._exit(int(status or 0))


def serve(path: str) -> None:
    """Answer until standard input ends."""
    for command in (Path(__file__).parent.parent / "gradcli/cli/commands").glob("[!_]*.py"):
        importlib.import_module(f"gradcli.cli.commands.{command.stem}")
    for name in _LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen()
    # The end of a child makes this readable.
    ended, wakened = socket.socketpair()
    wakened.setblocking(False)
    signal.set_wakeup_fd(wakened.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print("ready", flush=True)
    # A collection would copy the pages of all imported objects in each child.
    gc.freeze()
    clients: dict[int, socket.socket] = {}
    while sys.stdin not in (ready := select.select([server, ended, sys.stdin], [], [])[0]):
        if ended in ready:
            ended.recv(1000)
            _send_statuses(clients)
        if server in ready:
            client, _ = server.accept()
            message, descriptors, *_ = socket.recv_fds(client, _LARGEST_MESSAGE, 3)
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (server, ended, wakened, client, *clients.values()):
                    each.close()
                _run(*marshal.loads(message), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            clients[child] = client


def _send_statuses(clients: dict[int, socket.socket]) -> None:
    """Send the exit statuses of the children that have ended to their clients."""
    for child in [*clients]:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(status)
            with clients.pop(child) as client, suppress(OSError):
                client.send(str(status if status >= 0 else 128 - status).encode())


@contextmanager
def started(directory: Path, variables: dict[str, str]) -> Iterator[str]:
    """The path of the socket of a server."""
    path = str(directory / "gradcli")
    command = [sys.executable, "-m", "tests.forking_server", path]
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield path
        server.stdin.close()


if __name__ == "__main__":
    serve(sys.argv[1])
