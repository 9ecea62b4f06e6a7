"""Represents the graph of a run as data: operations, their operands, and the call or loop that each belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.engine import observing
from gradcli.autograd.function_node import FunctionNode
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError, Span, locating
from gradcli.evaluation.session import no_single_number
from gradcli.language.interpreter.provenance import CallFrame, Log
from gradcli.language.interpreter.run import evaluate
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.names.resolution import resolve
from gradcli.language.stable.stable_expressions import RewrittenExpression
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.powers import whole_power

# Cost of one vertex, its description and grouping, in eighths of a step.
_VERTEX = 20


class GraphRequest(NamedTuple):
    """A request for a graph. `bindings` are arrays by name; `wrt` names those to differentiate by.

    With `values` every vertex has its value and, with `gradient`, the gradient of the program's value by it.
    """

    program: tree.Module
    bindings: Mapping[str, Any]
    wrt: Sequence[str] = ()
    values: bool = False
    gradient: bool = True
    grad_output: Any = None
    rewrite: bool = True


class Vertex(NamedTuple):
    """A recorded operation, or a leaf, whose `operation` is None.

    `name` is the first variable that held it, `span` its position in the program, `operands` the indices of the
    vertices that the backward pass continues to, and `group` the index of its innermost group.
    """

    operation: str | None
    grad_fn: str | None
    name: str | None
    span: Span | None
    shape: tuple[int, ...]
    operands: tuple[int, ...]
    group: int | None
    value: Any
    grad: Any


class Graph(NamedTuple):
    """The graph of a run. Operands precede the operations that use them.

    The last vertex is the value, and the only vertex where the value depends on no leaf.
    """

    program: tree.Module
    value: Any
    vertices: Sequence[Vertex]
    groups: Sequence[Group]
    rewritten: Sequence[RewrittenExpression]


def run(request: GraphRequest) -> Graph:
    """Run a program and collect its graph.

    Raises what `evaluate` raises, and DifferentiationError for gradients of a non-scalar value without a cotangent.
    """
    wrt = frozenset(request.wrt)
    leaves = {n: Tensor(v).requires_grad_(n in wrt) for n, v in request.bindings.items()}
    log = Log()
    results: dict[Any, Any] = {}
    token = recorders.set((results.__setitem__, *recorders.get()))
    try:
        evaluation = evaluate(request.program, leaves, rewrite=request.rewrite, provenance=log)
    finally:
        recorders.reset(token)
    value = evaluation.value
    nodes = ancestors(value)[::-1]
    limits.charge_steps(_VERTEX * len(nodes))
    gradients = _gradients(request, value) if request.values and request.gradient else {}
    grouping = _grouped(request.program, nodes, log.frames)
    vertices = _vertices(request, value, nodes, log, grouping, results, gradients)
    return Graph(request.program, as_numpy(value), vertices, grouping.groups, evaluation.rewritten)


def _gradients(request: GraphRequest, value: Any) -> dict[Any, Any]:
    """Return the gradient of the value by each operation and leaf that the backward pass reaches."""
    found: dict[Any, Any] = {}
    if not isinstance(value, Tensor) or not value.requires_grad:
        return found
    source = request.program.source
    with locating(source, request.program.body[-1].span):
        if value.shape and request.grad_output is None:
            raise DifferentiationError(
                no_single_number(value.shape),
                hint=f"--grad-output EXPR weights the elements of the value, of shape {list(value.shape)}; "
                "--no-grad shows values alone",
            )

        if arrays.is_complex(value) and request.grad_output is None:
            raise DifferentiationError(
                "the gradient in a graph is that of a real value, and this one is complex",
                hint="--grad-output EXPR weights it, --no-grad shows values alone, and abs(…) is real",
            )

        def see(node: Node, cotangents: Sequence[Any], _pulled: Sequence[Any]) -> None:
            found[node] = cotangents[0]

        with observing(see):
            value.backward(request.grad_output)
    return found


def _vertices(
    request: GraphRequest,
    value: Any,
    nodes: Sequence[Node],
    log: Log,
    grouping: Grouping,
    results: Mapping[Any, Any],
    gradients: Mapping[Any, Any],
) -> list[Vertex]:
    leaves = _leaves(value, nodes)
    numbers = {item: i for i, item in enumerate([*leaves, *nodes])}
    vertices = [_leaf(leaf, log.names, request) for leaf in leaves]
    places = {n.operator_span: n.span for n in tree.all_nodes(request.program) if isinstance(n, tree.Binary)}
    for node, group, called in zip(nodes, grouping.group_of, grouping.called):
        result = results[node]
        vertices.append(
            Vertex(
                operation=called or _operation(node),
                grad_fn=node.name(),
                name=log.names.get(node),
                span=node.span and places.get(node.span, node.span),
                shape=arrays.shape(result),
                operands=tuple(numbers[target] for target in node.targets),
                group=group,
                value=as_numpy(result) if request.values else None,
                grad=as_numpy(gradients.get(node)),
            )
        )
    return vertices


def _operation(node: Node) -> str:
    if isinstance(node, PrimitiveNode):
        return "pow" if node.primitive is whole_power else node.primitive.name
    return node.function.__name__ if isinstance(node, FunctionNode) else node.name()


def _leaves(value: Any, nodes: Sequence[Node]) -> list[Tensor]:
    """Return the leaves in the order of their first use; only the value where it is a leaf itself."""
    targets = (target for node in nodes for target in node.targets)
    alone = value if isinstance(value, Tensor) else Tensor(value)
    return [*dict.fromkeys(target for target in targets if not isinstance(target, Node))] if nodes else [alone]


def _leaf(leaf: Tensor, names: Mapping[Any, str], request: GraphRequest) -> Vertex:
    grad = leaf.grad if request.values else None
    return Vertex(
        operation=None,
        grad_fn=None,
        name=names.get(leaf) if leaf.requires_grad else None,
        span=None,
        shape=leaf.shape,
        operands=(),
        group=None,
        value=as_numpy(leaf) if request.values else None,
        grad=as_numpy(grad),
    )


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


def _grouped(program: tree.Module, nodes: Sequence[Node], frames: Sequence[CallFrame]) -> Grouping:
    """Group operations, which are given in execution order; `frames` are in the order in which they began."""
    frame_of = _innermost(nodes, frames)
    functions = resolve(program).functions
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


def _innermost(nodes: Sequence[Node], frames: Sequence[CallFrame]) -> list[int | None]:
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


def sizes(inside: Iterable[int | None], around: Sequence[CallFrame | Group]) -> list[int]:
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


def _group(frame: CallFrame, functions: frozenset[str], parent: int | None) -> Group:
    node = frame.node
    if isinstance(node, tree.Call):
        kind = "function" if node.name in functions else "operation"
        return Group(kind, node.name, node.span, 1, parent)
    if isinstance(node, tree.For):
        return Group("loop", "for", Span(node.span.start, node.iterable.span.end), frame.times, parent)
    return Group("loop", "while", Span(node.span.start, node.test.span.end), frame.times, parent)
