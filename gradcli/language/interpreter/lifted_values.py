"""What a function reads from outside, as values of a trace of it.

A trace holds what depends on none of its variables fixed, so that a right side that has k and -k reads two numbers. A
solution would then be differentiated by each of them alone, and the difference of both may be nothing beside either. With
k itself as a value of the trace, -k is computed there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.errors import NotRecordableError
from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.machine import Scope
from gradcli.language.interpreter.values import Closure, Value
from gradcli.loops.body_tracing import Trace, Traced
from gradcli.primitives.bind import Kind

# The number of elements of the largest array of which all become inputs of the trace.
_MOST = 100


@contextmanager
def lifted(function: Value, given: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Within the block, numbers from outside that a function of the program reads are values of the trace of the first
    traced argument, if that is a trace of all; yields the arguments, of which the same holds."""
    trace = next((g.trace for g in given if isinstance(g, Traced)), None)
    if trace is None or not trace.computes_all:
        yield given
        return
    replaced: list[tuple[Scope, str, Value, Value]] = []
    scope = function.scope if isinstance(function, Closure) else None
    while scope is not None:
        for name, value in scope.names.items():
            inside = _inside(value, trace)
            if inside is not value:
                replaced.append((scope, name, value, inside))
        scope = scope.outer
    for scope, name, _, inside in replaced:
        scope.names[name] = inside
    try:
        yield [_inside(g, trace) for g in given]
    finally:
        for scope, name, value, inside in replaced:
            if scope.names.get(name) is inside:
                scope.names[name] = value


def _inside(value: Value, trace: Trace) -> Value:
    """A number or small array that is differentiated by, as a value of the trace; anything else as it is."""
    if isinstance(value, ProgramList):
        items = [_inside(item, trace) for item in value.items]
        return value if all(map(_is, items, value.items)) else ProgramList(items, value.span, value.made)
    if not isinstance(value, Kind) or isinstance(value, Traced) or arrays.dtype_name(value) != "float64":
        return value
    if math.prod(arrays.shape(value)) > _MOST:
        return value
    try:
        return trace.inside(value)
    except NotRecordableError:
        return value


def _is(a: Value, b: Value) -> bool:
    return a is b
