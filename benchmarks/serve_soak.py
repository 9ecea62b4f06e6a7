"""Sends thousands of requests to `gradcli serve --http`, hostile ones among them, and says whether each was answered as it
should be, how long that took, and how the memory of the server went: `python benchmarks/serve_soak.py [REQUESTS]`."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

# Of a thousand requests: a kind, how many, the statuses that are right for it.
_KINDS = {
    "good": (800, {200}),
    "wrong": (60, {422}),
    "file": (40, {422}),
    "endless": (5, {422}),
    "memory": (15, {422}),
    "junk": (30, {400}),
    "stranger": (30, {401, 400, 403}),
    "long": (10, {413, None}),
    "aborted": (10, {None}),
}
_THREADS = 8
# Bytes by which the memory of the server may grow after the first thousand requests.
_MOST_GROWN = 5_000_000


def main(count: int) -> int:
    words = [sys.executable, "-m", "gradcli", "serve", "--http", "0", "--max-seconds", "2", "--max-memory", "500MB"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r":(\d+), token (\S+)", line)
        assert found is not None, line
        soak = _Soak(int(found[1]), found[2], server.pid)
        try:
            return soak.run(count)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


class _Soak:
    def __init__(self, port: int, token: str, process: int) -> None:
        self.port, self.token, self.process = port, token, process
        self.wrong: list[str] = []
        self.seconds: dict[str, list[float]] = {kind: [] for kind in _KINDS}
        self.answered: Counter[tuple[str, int | None]] = Counter()
        self.lock = threading.Lock()

    def run(self, count: int) -> int:
        chance = random.Random(1)
        kinds = chance.choices([*_KINDS], [share for share, _ in _KINDS.values()], k=count)
        began = time.monotonic()
        memory = [self._memory()]
        with ThreadPoolExecutor(_THREADS) as pool:
            for start in range(0, count, 1000):
                [*pool.map(self._one, enumerate(kinds[start : start + 1000], start))]
                memory.append(self._memory())
                print(
                    f"{start + 1000:,} requests, {time.monotonic() - began:.0f} s, {_megabytes(memory[-1])}", flush=True
                )
        for (kind, status), number in sorted(self.answered.items(), key=str):
            times = sorted(self.seconds[kind])
            print(
                f"{kind:9} {status}  {number:6,}  median {times[len(times) // 2] * 1000:.0f} ms, most {times[-1]:.2f} s"
            )
        time.sleep(1)
        print(f"processes left: {self._processes()}")
        print(f"answered wrongly or not at all: {len(self.wrong)}")
        for each in self.wrong[:10]:
            print(" ", each)
        grown = sum(memory[-1]) - sum(memory[1])
        print(f"memory after the first thousand requests: {grown / 1e6:+.1f} MB")
        return 1 if self.wrong or grown > _MOST_GROWN else 0

    def _one(self, numbered: tuple[int, str]) -> None:
        number, kind = numbered
        began = time.monotonic()
        status, answer = self._ask(kind, number)
        with self.lock:
            self.seconds[kind].append(time.monotonic() - began)
            self.answered[kind, status] += 1
            right = status in _KINDS[kind][1]
            if kind == "good" and right:
                x = 1 + number % 97
                right = abs(answer["grad"]["x"] - 3 / x) < 1e-12
            if not right:
                self.wrong.append(f"{number} {kind} {status} {str(answer)[:200]}")

    def _ask(self, kind: str, number: int) -> tuple[int | None, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = self._body(kind, number)
        if kind == "stranger":
            headers |= ({"Authorization": "Bearer x"}, {"Host": "evil.example"}, {"Origin": "http://evil.example"})[
                number % 3
            ]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            if kind == "aborted":
                connection.connect()
                connection.sock.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
                return None, None
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(b"{") else text
        except (ConnectionError, http.client.HTTPException) as error:
            return None, repr(error)
        finally:
            connection.close()

    @staticmethod
    def _body(kind: str, number: int) -> bytes:
        programs = {
            "good": "log(x**q)",
            "wrong": ("log(x", "lgo(x)", "x + u", "x.__class__", "f(x) = f(x); f(x)")[number % 5],
            "file": ("x=@/etc/passwd", "@/etc/passwd", "--file=/etc/passwd", "-", "open(x)")[number % 5],
            "endless": "y = x; while y > 0 { y = y + q/1e9 }; y",
            "memory": ("sum(x*q*ones(9000, 9000))", "sum(x*inv(eye(3000) + q))", "x*q*ones(10**9)[0]")[number % 3],
        }
        if kind == "junk":
            return (b"{", b"[]", b"\xff\x00", b"{}", b"[" * 50_000)[number % 5]
        if kind == "long":
            return b'{"command": "eval", "program": "' + b"x" * 1_500_000 + b'"}'
        values = {"x": 1 + number % 97, "q": 3}
        return json.dumps({"command": "eval", "program": programs.get(kind, "x"), "values": values}).encode()

    def _memory(self) -> list[int]:
        """The resident memory of the server and of the process that others are forked from, in bytes."""
        return [_resident(process) for process in (self.process, *self._children(self.process))]

    def _processes(self) -> int:
        return sum(1 + len(self._children(child)) for child in self._children(self.process))

    @staticmethod
    def _children(process: int) -> list[int]:
        return [pid for pid in _pids() if _parent(pid) == process]


def _megabytes(sizes: Sequence[int]) -> str:
    return " + ".join(f"{size / 1e6:.1f} MB" for size in sizes)


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def _parent(process: int) -> int | None:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _resident(process: int) -> int:
    with open(f"/proc/{process}/statm", encoding="ascii") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 10_000))
