"""An MCP server on standard input and output, whose tools are the commands."""

from __future__ import annotations

import json
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from gradcli import __version__
from gradcli.cli.serving import tools
from gradcli.cli.serving.worker_processes import BusyError, JsonReply, Workers

_INSTRUCTIONS = (
    "Values and exact derivatives of formulas: eval for numbers, diff for formulas, and fits, minima, roots, uncertainties "
    "and series by derivatives. Results have an object in JSON; an error says what is wrong, where, and what to write."
)


def serve(workers: Workers) -> None:
    """Answer requests until standard input ends."""
    anyio.run(_serve, workers)


async def _serve(workers: Workers) -> None:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name) for name in tools.NAMES])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            answer = await anyio.to_thread.run_sync(workers.answer, params.name, params.arguments or {})
        except BusyError as error:
            answer = JsonReply(False, {"error": error.as_json()})
        text = json.dumps(answer.members, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=answer.members,
            is_error=not answer.succeeded,
        )

    server = Server(
        "gradcli", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )
    async with stdio_server() as (requests, replies):
        await server.run(requests, replies, server.create_initialization_options())


def _tool(name: str) -> types.Tool:
    return types.Tool(
        name=name,
        description=tools.description(name),
        input_schema=tools.schema(name),
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
