"""A finding made short: what can be left out of its program and its numbers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.case import Case

_TOKEN = re.compile(r"\w+|\s+|\*\*|//|[<>=!]=|\.\.\.|.", re.DOTALL)


def minimised(case: Case, still: Callable[[Case], bool], seconds: float = 30.0) -> Case:
    """The shortest case that is found within some seconds for which `still` holds, as it does for `case`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shorter = next((c for c in _shorter(case) if time.monotonic() < end and still(c)), None)
        if shorter is None:
            break
        case = shorter
    return case


def _shorter(case: Case) -> Iterator[Case]:
    """Cases that have something less, large parts first."""
    yield from _without_tokens(case)
    for name, value in case.bindings.items():
        yield case._replace(bindings={n: v for n, v in case.bindings.items() if n != name})
        for simple in _simpler(value):
            yield case._replace(bindings={**case.bindings, name: simple})


def _without_tokens(case: Case) -> Iterator[Case]:
    tokens = _TOKEN.findall(case.program)
    yield from (case._replace(program=text) for text in _parts(tokens))
    size = len(tokens) // 2
    while size:
        for start in range(0, len(tokens), max(1, size // 2)):
            left = tokens[:start] + tokens[start + size :]
            if len(left) < len(tokens):
                yield case._replace(program="".join(left))
        size //= 2


def _parts(tokens: list[str]) -> Iterator[str]:
    """What stands in brackets, alone and in place of the call or group around it."""
    opened: list[int] = []
    for end, token in enumerate(tokens):
        if token in "([{":
            opened.append(end)
        elif token in ")]}" and opened:
            start = opened.pop()
            inside = tokens[start + 1 : end]
            yield "".join(inside)
            before = start - 1 if start and tokens[start - 1].isidentifier() else start
            yield "".join([*tokens[:before], *inside, *tokens[end + 1 :]])
            if before < start:
                yield "".join([*tokens[:before], "x", *tokens[end + 1 :]])


def _simpler(value: Any) -> Iterator[Any]:
    if isinstance(value, complex):
        yield value.real
        yield value.imag
        return
    if not isinstance(value, list):
        yield from (
            v for v in (1.0, 0.5, 2.0, float(round(value, 1)) if abs(value) < 1e9 else value) if _plainer(v, value)
        )
        return
    if value:
        yield value[0]
        if len(value) > 1:
            yield value[:1]
            yield value[:-1]
    for i, item in enumerate(value):
        for simple in _simpler(item) if not isinstance(item, list) else ():
            yield [*value[:i], simple, *value[i + 1 :]]


def _plainer(a: float, b: float) -> bool:
    return len(repr(a)) < len(repr(b)) or (len(repr(a)) == len(repr(b)) and abs(a) < abs(b))
