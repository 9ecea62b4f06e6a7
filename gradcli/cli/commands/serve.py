"""The command `gradcli serve`: answers other programs, by MCP or by HTTP."""

from __future__ import annotations

import gc
import os
import secrets
from functools import partial

from gradcli import install_command
from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.errors import BackendError, ExitStatus, UsageError
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.subprocess_calls import byte_count
from gradcli.type_hints import Annotated

# The variable with the token of the HTTP server; without it, one is made.
_TOKEN = "GRADCLI_TOKEN"
_SHORTEST_TOKEN = 16
# Python's own thresholds of garbage collection.
_GARBAGE = (700, 10, 10)

_HELP = """\
Tools are the commands: each takes a program, the values of its names and its
options, and gives the JSON of --json. Every request runs in a process of its own
within limits; none reads or writes a file. The HTTP server listens on 127.0.0.1
alone and answers requests with its token, which GRADCLI_TOKEN gives or which is
printed.

Examples:

  gradcli serve --stdio

  gradcli serve --http 8765 --max-seconds 2

  gradcli serve --http 0 --max-memory 500MB
"""


class ServeOptions(opt.Options):
    """The options of `gradcli serve`."""

    stdio: Annotated[
        bool,
        opt.Option("--stdio", brief="MCP on the standard streams.", help="Speak MCP on standard input and output."),
    ] = False
    http: Annotated[
        int | None,
        opt.Option(
            "--http",
            brief="HTTP on this port.",
            metavar="PORT",
            min=0,
            max=65535,
            help="Speak HTTP on this port; 0 takes a free one.",
        ),
    ] = None
    workers: Annotated[
        int, opt.Option("--workers", metavar="N", min=1, max=256, help="Answer up to N requests at a time.")
    ] = max(2, os.cpu_count() or 2)
    # Not named as in other commands, where such limits hold for the command itself.
    request_seconds: Annotated[
        float,
        opt.Option(
            "--max-seconds",
            brief=True,
            metavar="S",
            help="The most seconds of a request.",
        ),
    ] = 10.0
    request_memory: Annotated[
        str,
        opt.Option(
            "--max-memory",
            brief="The most memory, as in 500MB or 2GiB.",
            metavar="SIZE",
            help="The most memory of a request, as in 500MB or 2GiB.",
        ),
    ] = "1GiB"
    max_steps: opt.MaxSteps = MAX_STEPS
    max_elements: opt.MaxElements = MAX_ELEMENTS


def run(options: ServeOptions, environment: Environment) -> ExitStatus:
    """Serve until the input ends or an interrupt; see `gradcli serve --help`."""
    if options.stdio == (options.http is not None):
        raise UsageError("gradcli serve is either for --stdio or for --http PORT", hint="gradcli serve --stdio")
    if not 0 < options.request_seconds <= 3600:
        raise UsageError("--max-seconds of a request is more than 0 and at most 3,600")
    memory = byte_count(options.request_memory)
    try:
        if options.stdio:
            from gradcli.cli.serving import mcp_server
        else:
            from gradcli.cli.serving import http_server
    except ImportError:
        raise BackendError(
            "serving needs the package mcp, which is not installed", hint=install_command.install_command("serve")
        ) from None
    from gradcli.cli.serving.worker_processes import RequestLimits, Workers

    # A command that soon ends collects garbage seldom, and each connection leaves some.
    gc.set_threshold(*_GARBAGE)
    limits = RequestLimits(options.request_seconds, memory, options.max_steps, options.max_elements)
    workers = Workers(limits, options.workers)
    workers.start()
    try:
        if options.stdio:
            mcp_server.serve(workers)
        else:
            token = _token(environment)
            http_server.serve(workers, options.http or 0, token, partial(_tell, environment, token))
    finally:
        workers.close()
    return ExitStatus.SUCCESS


def _tell(environment: Environment, token: str, url: str) -> None:
    """Say where the server listens, and how to ask it."""
    is_given = bool(environment.variables.get(_TOKEN))
    shown = f"${_TOKEN}" if is_given else token
    environment.write_error(f"serving on {url}" + ("" if is_given else f", token {token}"))
    environment.write_error(
        f'for example: curl -H "Authorization: Bearer {shown}" -H "Content-Type: application/json" '
        f"""-d '{{"command": "eval", "program": "x**2", "values": {{"x": 3}}}}' {url}"""
    )


def _token(environment: Environment) -> str:
    given = environment.variables.get(_TOKEN)
    if given and (len(given) < _SHORTEST_TOKEN or not given.isascii() or not given.isprintable()):
        raise UsageError(f"{_TOKEN} is at least {_SHORTEST_TOKEN} characters of ASCII")
    return given or secrets.token_urlsafe(32)


COMMAND = Command(ServeOptions, run, _HELP)
