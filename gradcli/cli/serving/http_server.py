"""An HTTP server on the loopback: a JSON object in, and one out."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gradcli import __version__
from gradcli.cli.serving import tools
from gradcli.cli.serving.worker_processes import BusyError, Workers
from gradcli.errors import UsageError

_ADDRESS = "127.0.0.1"
# The names of the server in the Host header. A request with another may come from a web page whose domain name was
# made to resolve to this machine (DNS rebinding).
_HOSTS = ["127.0.0.1", "localhost"]
# Bytes of a request, and seconds in which all of it must come.
_LONGEST, _REQUEST_TIMEOUT = 1_000_000, 10.0
# Connections at a time.
_MOST_CONNECTIONS = 256


def serve(workers: Workers, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Answer requests until interrupted; `ready` gets the address. Raises UsageError where the port is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_ADDRESS, port))
        listening.listen(_MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {port} cannot be used: {error}", hint="--http 0 takes a free one") from None
    config = uvicorn.Config(
        _application(workers, token),
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
    )
    ready(f"http://{_ADDRESS}:{listening.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listening])


def _application(workers: Workers, token: str) -> Starlette:
    # Each waiting request holds a thread.
    limiter = anyio.CapacityLimiter(_MOST_CONNECTIONS)
    return Starlette(
        routes=[
            Route("/", partial(_answer, workers, token, limiter), methods=["POST"]),
            Route("/", partial(_tools, token), methods=["GET"]),
        ],
        exception_handlers={404: _nowhere},
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS, www_redirect=False)],
    )


async def _nowhere(_request: Request, _error_of_starlette: Exception) -> Response:
    return _error(404, "there is nothing at this path", "POST / takes a request, GET / lists the tools")


async def _tools(token: str, request: Request) -> Response:
    refused = _refused(request, token)
    if refused is not None:
        return refused
    found = [{"name": n, "description": tools.description(n), "arguments": tools.schema(n)} for n in tools.NAMES]
    return JSONResponse({"schema": "gradcli/1", "version": __version__, "tools": found})


async def _answer(workers: Workers, token: str, limiter: anyio.CapacityLimiter, request: Request) -> Response:
    refused = _refused(request, token)
    if refused is not None:
        return refused
    try:
        async with asyncio.timeout(_REQUEST_TIMEOUT):
            body = await _body(request)
    except TimeoutError:
        return _error(408, "the request does not come")
    except ClientDisconnect:
        return _error(400, "the request ends early")
    if body is None:
        return _error(413, f"a request has at most {_LONGEST:,} bytes")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return _error(400, "the body is no JSON")
    if not isinstance(asked, dict) or "command" not in asked:
        return _error(400, 'the body is an object, as in {"command": "eval", "program": "x**2", "values": {"x": 3}}')
    command = asked.pop("command")
    try:
        answer = await anyio.to_thread.run_sync(workers.answer, command, asked, limiter=limiter)
    except BusyError as error:
        return JSONResponse({"error": error.as_json()}, 503)
    return JSONResponse(answer.members, 200 if answer.succeeded else 422)


async def _body(request: Request) -> bytes | None:
    """The body; None where it is too long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _LONGEST:
            return None
        parts.append(part)
    return b"".join(parts)


def _refused(request: Request, token: str) -> Response | None:
    """The answer to a request without the token, or from a web page."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.casefold() != "bearer" or not secrets.compare_digest(given.strip().encode(), token.encode()):
        hint = "send the header Authorization: Bearer TOKEN, with the token that gradcli serve prints"
        return _error(401, "the token is missing or wrong", hint, {"WWW-Authenticate": "Bearer"})
    if "origin" in request.headers:
        return _error(403, "pages of a browser are not answered")
    if request.method == "POST" and request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return _error(415, "the body is application/json", "send the header Content-Type: application/json")
    return None


def _error(status: int, message: str, hint: str | None = None, headers: dict[str, Any] | None = None) -> Response:
    told = {} if hint is None else {"hint": hint}
    return JSONResponse({"error": {"kind": "request", "message": message, **told}}, status, headers)
