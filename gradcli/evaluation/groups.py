"""Assigns each operation of a run to the function call or loop that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gradcli.autograd.node import Node
from gradcli.errors import Span
from gradcli.language.interpreter.provenance import Frame
from gradcli.language.names import scope
from gradcli.language.syntax import tree


class Group(NamedTuple):
    """The operations of a call or a loop.

    `kind` is `function` for a function of the program, `operation` for a function of the language that takes several
    steps, or `loop`, which made `times` iterations. `parent` is the index of the enclosing group, which is smaller.
    """

    kind: str
    name: str
    span: Span
    times: int
    parent: int | None


class Grouping(NamedTuple):
    """The groups of a run.

    `group_of` has for each operation the index of its innermost group; `called` has the function of the language that
    was called, where the operation is all that the call recorded.
    """

    groups: Sequence[Group]
    group_of: Sequence[int | None]
    called: Sequence[str | None]


def grouped(program: tree.Module, nodes: Sequence[Node], frames: Sequence[Frame]) -> Grouping:
    """Group operations, which are given in execution order; `frames` are in the order in which they began."""
    frame_of = _innermost(nodes, frames)
    functions = scope.defined_functions(program)
    groups: list[Group] = []
    around: list[int | None] = []
    called: list[str | None] = []
    for frame, size in zip(frames, sizes(frame_of, frames)):
        parent = None if frame.parent is None else around[frame.parent]
        group = _group(frame, functions, parent)
        single = group.kind == "operation" and size == 1
        called.append(group.name if single else None)
        if size and not single:
            groups.append(group)
            parent = len(groups) - 1
        around.append(parent)
    return Grouping(
        groups,
        [None if number is None else around[number] for number in frame_of],
        [None if number is None else called[number] for number in frame_of],
    )


def _innermost(nodes: Sequence[Node], frames: Sequence[Frame]) -> list[int | None]:
    """Return the index of the innermost frame of each operation."""
    found: list[int | None] = []
    open_frames: list[int] = []
    number = 0
    for node in nodes:
        while number < len(frames) and frames[number].begin < node.sequence:
            if frames[number].end > node.sequence:
                open_frames.append(number)
            number += 1
        while open_frames and frames[open_frames[-1]].end < node.sequence:
            open_frames.pop()
        found.append(open_frames[-1] if open_frames else None)
    return found


def sizes(inside: Iterable[int | None], around: Sequence[Frame | Group]) -> list[int]:
    """Return the number of operations in each frame or group, nested ones included.

    `inside` has for each operation the index of its frame or group.
    """
    found = [0] * len(around)
    for number in inside:
        if number is not None:
            found[number] += 1
    for number in reversed(range(len(around))):
        parent = around[number].parent
        if parent is not None:
            found[parent] += found[number]
    return found


def _group(frame: Frame, functions: frozenset[str], parent: int | None) -> Group:
    node = frame.node
    if isinstance(node, tree.Call):
        kind = "function" if node.name in functions else "operation"
        return Group(kind, node.name, node.span, 1, parent)
    if isinstance(node, tree.For):
        return Group("loop", "for", Span(node.span.start, node.iterable.span.end), frame.times, parent)
    return Group("loop", "while", Span(node.span.start, node.test.span.end), frame.times, parent)
