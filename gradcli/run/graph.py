"""The graph of a run as data: its operations, what they depend on, and which call or loop each belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.autograd.ancestors import ancestors
from gradcli.autograd.function_node import FunctionNode
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.observers import observing
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError, Span, pointing_into
from gradcli.language.interpreter import evaluate
from gradcli.language.provenance import Log
from gradcli.language.stable import Rewritten
from gradcli.language.syntax import tree
from gradcli.language.values import plain
from gradcli.primitives.powers import whole_power
from gradcli.run.groups import Group, Grouping, grouped

# To say what is known of an operation, and to find where it belongs, in eighths of steps.
_VERTEX = 20


class GraphRequest(NamedTuple):
    """What to show. `bindings` are arrays by name, `wrt` those of them to differentiate by.

    With `values` every vertex gets its value and, with `gradient`, the gradient of the program's
    value by it.
    """

    program: tree.Module
    bindings: Mapping[str, Any]
    wrt: Sequence[str] = ()
    values: bool = False
    gradient: bool = True
    grad_output: Any = None
    rewrite: bool = True


class Vertex(NamedTuple):
    """A recorded operation, or a leaf, which has no `operation`.

    `name` is the first that the program gave it, `span` the place where it was computed,
    `operands` the numbers of the vertices that a gradient goes on to and `group` the number of
    the innermost group that it belongs to.
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
    """A run: its value, and what was recorded. Operands stand before the operations that use them,
    and the last vertex is the value, the only one where it depends on no leaf."""

    program: tree.Module
    value: Any
    vertices: Sequence[Vertex]
    groups: Sequence[Group]
    rewritten: Sequence[Rewritten]


def run(request: GraphRequest) -> Graph:
    """Run a program and collect its graph.

    Raises what `evaluate` raises, and DifferentiationError where the gradients of a value that is
    no scalar are asked for without a cotangent.
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
    grouping = grouped(request.program, nodes, log.frames)
    vertices = _vertices(request, value, nodes, log, grouping, results, gradients)
    return Graph(request.program, plain(value), vertices, grouping.groups, evaluation.rewritten)


def _gradients(request: GraphRequest, value: Any) -> dict[Any, Any]:
    """The gradient of the value by each operation and leaf that a backward pass reaches."""
    found: dict[Any, Any] = {}
    if not isinstance(value, Tensor) or not value.requires_grad:
        return found
    source = request.program.source
    with pointing_into(source, request.program.body[-1].span):
        if value.shape and request.grad_output is None:
            raise DifferentiationError(
                "grad can be implicitly created only for scalar outputs",
                hint=f"the value has shape {list(value.shape)}: --grad-output EXPR weights its elements, "
                "--no-grad shows values alone",
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
    places = {n.operator_span: n.span for n in tree.everything(request.program) if isinstance(n, tree.Binary)}
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
                value=plain(result) if request.values else None,
                grad=plain(gradients.get(node)),
            )
        )
    return vertices


def _operation(node: Node) -> str:
    if isinstance(node, PrimitiveNode):
        return "pow" if node.primitive is whole_power else node.primitive.name
    return node.function.__name__ if isinstance(node, FunctionNode) else node.name()


def _leaves(value: Any, nodes: Sequence[Node]) -> list[Tensor]:
    """The leaves, in the order in which they are first used; the value alone where it is one itself."""
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
        value=plain(leaf) if request.values else None,
        grad=plain(grad),
    )
