"""Tests `gradcli serve` by real clients: of MCP on the standard streams, and of HTTP on the loopback."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from gradcli.cli.command import command_named
from gradcli.cli.options import fields
from gradcli.cli.serving import http_server, tools

COMMAND = [sys.executable, "-m", "gradcli", "serve"]


class Server(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    token: str

    def ask(self, body: Any, method: str = "POST", path: str = "/", **headers: str | None) -> tuple[int, Any]:
        """The status and the object that answer a request; `headers` replace the usual ones, None leaves one out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        usual = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        given = {n.replace("_", "-"): v for n, v in {**usual, **headers}.items()}
        text = body if isinstance(body, (bytes, str)) or body is None else json.dumps(body)
        connection.request(method, path, text, {n: v for n, v in given.items() if v is not None})
        answer = connection.getresponse()
        found = answer.read()
        connection.close()
        try:
            return answer.status, json.loads(found)
        except ValueError:
            return answer.status, found.decode()

    def eval(self, program: str, **values: Any) -> tuple[int, Any]:
        return self.ask({"command": "eval", "program": program, "values": values})


def started(*words: str, **variables: str) -> Server:
    process = subprocess.Popen(
        [*COMMAND, "--http", "0", *words], stderr=subprocess.PIPE, text=True, env={**os.environ, **variables}
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.fullmatch(r"serving on http://127\.0\.0\.1:(\d+)(?:, token (\S+))?\n", line)
    assert found is not None, line
    return Server(process, int(found[1]), found[2] or variables["GRADCLI_TOKEN"])


def stopped(server: Server) -> None:
    server.process.send_signal(signal.SIGINT)
    with server.process:
        server.process.wait(timeout=20)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = started("--max-seconds", "2", "--max-memory", "600MB", "--workers", "2")
    yield made
    stopped(made)


def test_a_request_gets_what_the_command_prints(server, run):
    status, found = server.eval("log(x**q)", x=5, q=3)
    assert status == 200
    assert found == run("eval", "log(x**q)", "x=5", "q=3", "--json").json
    status, found = server.ask({"command": "diff", "program": "log(x**q)", "wrt": ["x"], "order": 2, "to": "latex"})
    assert (status, found["derivatives"]) == (200, {"x,x": r"-\frac{q}{x^{2}}"})
    status, found = server.ask({"command": "solve", "program": "x**2 = b", "values": {"b": 4}, "start": {"x": 1}})
    assert (status, found["roots"][0]["point"]["x"]) == (200, pytest.approx(2))
    data = {"x": [1, 2, 3], "y": [2.1, 3.9, 6], "a": 1}
    status, found = server.ask({"command": "fit", "program": "y ~ a*x", "values": data})
    assert (status, found["model"], found["n"]) == (200, "y ~ a*x", 3)


@pytest.mark.parametrize("name", tools.NAMES)
def test_every_tool_answers(server, name):
    programs = {
        "fit": "y ~ a*x", "design": "y ~ a*x", "solve": "x**2 = 2", "ode": "x' = -x", "sample": "-x**2/2",
    }  # fmt: skip
    values = {
        "fit": {"x": [1, 2], "y": [2, 4.1]}, "solve": {}, "plot": {"x": "0..1"}, "propagate": {"x": "1.0±0.1"},
        "ode": {"x": 1, "t": "0..1"}, "design": {"x": "0..1", "a": 1},
    }  # fmt: skip
    request = {"program": programs.get(name, "x**2"), "values": values.get(name, {"x": 3})}
    if name == "solve":
        request["start"] = {"x": 1}
    if name == "sample":
        request |= {"chains": 1, "draws": 500, "warmup": 200}
    status, found = server.ask({"command": name} if name == "ops" else {"command": name, **request})
    assert (status, found.get("schema")) == (200, "gradcli/1"), found


def test_ode_and_explain_answer_as_the_commands_do(server, run):
    asked = {"command": "ode", "program": "x'' = -w**2*x", "points": 3, "wrt": ["w"], "stop": "x = 0"}
    status, found = server.ask({**asked, "values": {"x": 1, "x'": 0, "w": 2, "t": "0..10"}})
    words = ["x'' = -w**2*x", "x=1", "x'=0", "w=2", "t=0..10", "--points", "3", "--wrt", "w", "--stop", "x = 0"]
    assert (status, found) == (200, run("ode", *words, "--json").json)
    asked = {"command": "ode", "program": "dx/dt = -x", "values": {"x": 1, "t": [0, 1]}, "digits": 20}
    assert server.ask(asked) == (200, run("ode", "dx/dt = -x", "x=1", "t=[0,1]", "--digits", "20", "--json").json)
    status, found = server.ask({"command": "explain", "program": "x*sin(x)", "symbolic": True})
    assert (status, found) == (200, run("explain", "x*sin(x)", "--symbolic", "--json").json)
    status, found = server.ask({"command": "explain", "program": "log(x**q)", "values": {"x": 5, "q": 3}, "order": 2})
    assert (status, found) == (200, run("explain", "log(x**q)", "x=5", "q=3", "--order", "2", "--json").json)


def test_proofs_and_samples_answer_as_the_commands_do(server, run):
    asked = {
        "command": "minimize",
        "program": "(x - 1)**2 + 1",
        "values": {"x": 0},
        "bounds": ["x=-2:2"],
        "prove": True,
    }
    words = ["(x - 1)**2 + 1", "x=0", "--bounds", "x=-2:2", "--prove"]
    assert server.ask(asked)[1]["proof"] == run("minimize", *words, "--json").json["proof"]
    asked = {
        "command": "solve",
        "program": "x**2 = 2",
        "start": {},
        "values": {"x": "-2..2"},
        "all": True,
        "prove": True,
    }
    assert (
        server.ask(asked)[1]["proof"] == run("solve", "x**2 = 2", "x=-2..2", "--all", "--prove", "--json").json["proof"]
    )
    asked = {"command": "sample", "program": "-x**2/2", "values": {"x": 3}, "chains": 1, "draws": 500, "warmup": 200}
    words = ["-x**2/2", "x=3", "--chains", "1", "--draws", "500", "--warmup", "200"]
    assert server.ask(asked)[1] == run("sample", *words, "--json").json


def test_errors_say_what_and_where(server):
    status, found = server.eval("x + lgo(x)", x=5)
    assert (status, found["error"]["message"], found["error"]["column"]) == (422, "unknown function 'lgo'", 5)
    assert found["error"]["hint"] == "did you mean 'log'?"
    status, found = server.ask({"command": "evla", "program": "x"})
    assert (status, found["error"]["hint"]) == (422, "did you mean 'eval'?")
    status, found = server.ask({"command": "eval", "program": "x", "save": "/tmp/x.npz"})
    assert (status, found["error"]["message"]) == (422, "eval takes no 'save'")
    status, found = server.ask({"command": "eval", "program": "x", "values": {"x": 1}, "order": "2"})
    assert (status, found["error"]["message"]) == (422, "'order' is a whole number")


@pytest.mark.parametrize(
    "request_",
    [
        {"program": "--file=/etc/hostname"},
        {"program": "-"},
        {"program": "/etc/hostname"},
        {"program": "x=@/etc/hostname"},
        {"program": "@/etc/hostname"},
        {"program": "x", "values": {"x": "@/etc/hostname"}},
        {"program": "x", "values": {"x": " @-"}},
        {"program": "x", "values": {"x": {"a": 1}}},
        {"program": "x", "values": {"--file": "/etc/hostname"}},
        {"program": "x", "values": {"x": "1", "x y": "2"}},
        {"program": "x", "values": [1]},
        {"program": "x", "values": {"x": 1}, "wrt": ["--file=/etc/hostname"]},
        {"program": "open('/etc/hostname')"},
        {"program": 7},
        {"program": "\x00"},
        {"program": "x.__class__", "values": {"x": 1}},
    ],
)
@pytest.mark.parametrize("command", ["eval", "fit", "ode", "explain", "sample"])
def test_no_request_reads_a_file(server, command, request_):
    hostname = Path("/etc/hostname").read_text(encoding="utf-8").strip()
    status, found = server.ask({"command": command, **request_})
    assert status == 422
    assert not hostname or hostname not in json.dumps(found)
    assert "stands where the program should" not in json.dumps(found)


def test_no_option_of_a_tool_names_a_file_or_a_limit():
    for name in tools.NAMES:
        for option in tools._options(name).values():
            assert not re.search("path|-file|directory|cluster|backend|device|max-", option.flag), option
        assert set(tools._OPTIONS[name].split()) <= {field.name for field in fields(command_named(name).options)}


def test_strangers_are_refused(server):
    asked = {"command": "eval", "program": "1"}
    assert server.ask(asked, Authorization=None)[0] == 401
    assert server.ask(asked, Authorization="Bearer x")[0] == 401
    assert server.ask(asked, Authorization=f"Basic {server.token}")[0] == 401
    assert server.ask(None, method="GET", Authorization=None)[0] == 401
    assert server.ask(asked, Host="evil.example")[0] == 400
    assert server.ask(asked, Origin="http://localhost")[0] == 403
    assert server.ask(asked, Content_Type="text/plain")[0] == 415
    assert server.ask(asked, path="/etc")[0] == 404
    assert "GET / lists the tools" in server.ask(asked, path="/eval")[1]["error"]["hint"]
    assert "Authorization: Bearer" in server.ask(asked, Authorization=None)[1]["error"]["hint"]
    assert server.ask(asked, method="PUT")[0] == 405


def test_only_the_loopback_is_listened_on(server):
    with open("/proc/net/tcp", encoding="ascii") as table:
        places = [line.split()[1] for line in table if line.split()[3] == "0A"]
    assert [place for place in places if place.endswith(f":{server.port:04X}")] == [f"0100007F:{server.port:04X}"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 400), ("{", 400), ("[]", 400), ("{}", 400), ("null", 400), (b"\xff\xfe", 400), ("[" * 100_000, 400),
        (b'{"command": "eval", "program": "' + b"x" * 2_000_000 + b'"}', 413),
    ],
)  # fmt: skip
def test_bodies_that_are_no_request(server, body, status):
    try:
        found = server.ask(body)
    except (BrokenPipeError, ConnectionResetError):
        # Not all of a long body is read.
        found = (413, None)
    assert found[0] == status


LIMITED = [
    ("y = x; while y > 0 { y = y + 1 }; y", "longer than 2 s|more than 2,000,000 steps"),
    ("y = ones(15000, 15000)", "memory"),
    ("y = sum(inv(eye(9000) + 0.1*ones(9000, 9000)))", "longer than 2 s|memory|elements"),
    ("(" * 5000 + "x" + ")" * 5000, "brackets|nested|deep"),
]


@pytest.mark.parametrize(("program", "message"), LIMITED)
def test_requests_have_limits(server, program, message):
    began = time.monotonic()
    status, found = server.ask({"command": "eval", "program": f"{program}; 0*x", "values": {"x": 1}})
    assert status == 422
    assert re.search(message, found["error"]["message"]), found
    assert time.monotonic() - began < 6


def test_a_long_result_is_refused(server):
    status, found = server.ask({"command": "eval", "program": "ones(1300, 1300)", "no_grad": True})
    assert (status, found["error"]["message"]) == (422, "the result has more than 5,000,000 bytes")


def test_a_busy_server_answers_others_in_turn(server):
    endless = {"command": "eval", "program": LIMITED[0][0], "values": {"x": 1}}
    with ThreadPoolExecutor(12) as pool:
        slow = [pool.submit(server.ask, endless) for _ in range(4)]
        fast = [pool.submit(server.eval, "x**2", x=i) for i in range(8)]
        assert [f.result()[1]["value"] for f in fast] == [float(i * i) for i in range(8)]
        assert [f.result()[0] for f in slow] == [422] * 4


def test_a_client_that_sends_nothing_is_let_go(monkeypatch, listening):
    """By a server in this process, which waits for a shorter time than that of the command."""
    monkeypatch.setattr(http_server, "_REQUEST_TIMEOUT", 0.2)
    answers = []

    def ask(port):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(
                    b"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
                )
                answers.append(connection.recv(1000).partition(b"\r\n")[0])
            answers.append(Server(None, port, "token").ask(None, method="GET")[0])
        finally:
            signal.raise_signal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        http_server.serve(None, 0, "token", lambda place: pool.submit(ask, int(place.rpartition(":")[2])))
    assert answers == [b"HTTP/1.1 408 Request Timeout", 200]


def test_requests_leave_nothing_behind(server):
    """A definition of one request is not known to the next."""
    assert server.eval("f(x) = x**3; f(x)", x=2)[0] == 200
    assert server.eval("f(x)", x=2)[0] == 422


def test_the_forking_process_is_started_anew(server):
    children = subprocess.run(
        ["ps", "--ppid", str(server.process.pid), "-o", "pid="], capture_output=True, text=True
    ).stdout.split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    time.sleep(0.2)
    assert server.eval("x**2", x=3)[1]["value"] == 9


def test_the_token_of_the_environment_is_not_printed():
    server = started(GRADCLI_TOKEN="a" * 32)
    assert server.eval("x", x=1)[0] == 200
    assert server.process.stderr.readline().startswith('for example: curl -H "Authorization: Bearer $GRADCLI_TOKEN"')
    stopped(server)
    assert server.process.returncode in (0, 130)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_line_of_curl_that_is_printed_asks_the_server(server):
    line = server.process.stderr.readline().removeprefix("for example: ")
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["value"] == 9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "either for --stdio or for --http PORT"),
        (["--stdio", "--http", "1"], "either for --stdio or for --http PORT"),
        (["--http", "0", "--max-seconds", "0"], "more than 0"),
        (["--http", "0", "--max-memory", "much"], "'much' is no size of memory"),
        (["--http", "70000"], "--http"),
    ],
)
def test_command_lines_that_are_wrong(run, words, message):
    outcome = run("serve", *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


# --- MCP


def by_mcp(*requests: tuple[str, dict[str, Any]]) -> tuple[Any, list[Any]]:
    """The tools of a server, and the results of calls, by the client of the package mcp."""
    from mcp import Client, StdioServerParameters  # takes a second

    async def session() -> tuple[Any, list[Any]]:
        parameters = StdioServerParameters(
            command=sys.executable, args=[*COMMAND[1:], "--stdio", "--max-seconds", "2"], env={**os.environ}
        )
        async with Client(parameters) as client:
            listed = await client.list_tools()
            return listed.tools, [await client.call_tool(name, arguments) for name, arguments in requests]

    return anyio.run(session)


def test_a_client_of_mcp():
    listed, results = by_mcp(
        ("eval", {"program": "log(x**q)", "values": {"x": 5, "q": 3}}),
        ("diff", {"program": "log(x**q)", "to": "latex"}),
        ("eval", {"program": "x + lgo(x)", "values": {"x": 5}}),
        ("eval", {"program": LIMITED[0][0], "values": {"x": 1}}),
        ("eval", {"program": "x", "values": {"x": "@/etc/hostname"}}),
        ("minimize", {"program": "(x - 1)**2", "values": {"x": 0}}),
        ("ode", {"program": "dx/dt = -k*x", "values": {"x": 1, "k": 2, "t": [0, 1]}}),
        ("explain", {"program": "log(x**q)", "values": {"x": 5, "q": 3}}),
        ("ode", {"program": "dx/dt = -x + lgo(x)", "values": {"x": 1, "t": "0..1"}}),
    )
    assert [tool.name for tool in listed] == [*tools.NAMES]
    properties = {tool.name: tool.input_schema["properties"] for tool in listed}
    assert properties["eval"]["order"]["type"] == "integer"
    assert properties["diff"]["wrt"] == {
        "type": "array", "items": {"type": "string"}, "description": "Differentiate by these, as in x,q; default: every name it reads.",
    }  # fmt: skip
    assert results[0].structured_content["grad"] == {"x": 0.6, "q": 1.6094379124341003}
    assert json.loads(results[0].content[0].text) == results[0].structured_content
    assert results[1].structured_content["derivatives"]["x"] == r"\frac{q}{x}"
    assert [result.is_error for result in results] == [False, False, True, True, True, False, False, False, True]
    assert results[2].structured_content["error"]["hint"] == "did you mean 'log'?"
    assert results[5].structured_content["point"] == {"x": 1.0}
    assert results[6].structured_content["columns"]["x"] == pytest.approx([1.0, math.exp(-2)])
    assert results[7].structured_content["value"] == pytest.approx(3 * math.log(5))
    assert results[8].structured_content["error"]["column"] == 14
