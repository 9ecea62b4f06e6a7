"""The roots and targets of a backward pass, tensors and edges of the graph, and the operations between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, ValuesView
from operator import attrgetter

from gradcli import arrays, limits
from gradcli.autograd.node import AccumulateGrad, Edge, GradientEdge, Node
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import DifferentiationError
from gradcli.primitives.bind import Kind, constant
from gradcli.primitives.conversions import cast
from gradcli.type_hints import Any

Target = TensorBase | GradientEdge


def ancestors(*values: Any, after: int = -1, past: Callable[[Node], bool] | None = None) -> list[Node]:
    """The operations that `values` depend on, latest first, so that each precedes those that it depends on.

    `values` are nodes or Tensors; a node is its own ancestor, and other values have none. Nodes with a sequence number
    of at most `after` are left out, and so is everything reached only through nodes for which `past` is false. Each
    operation found is charged an eighth of a step.
    """
    found: set[Node] = set()
    waiting = [value._node if isinstance(value, TensorBase) else value for value in values]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node.sequence > after and node not in found:
            found.add(node)
            if past is None or past(node):
                waiting += [edge[0] for edge in node.edges if edge is not None]
    limits.charge_steps(len(found))
    return sorted(found, key=attrgetter("sequence"), reverse=True)


def beginning(sources: Iterable[Any]) -> int:
    """The sequence number of the earliest of some nodes and tensors; their dependents have higher numbers."""
    nodes = (s if isinstance(s, Node) else s._node or s for s in sources)
    return min((n.sequence if isinstance(n, Node) else n.since for n in nodes), default=-1)


def reaches_earlier(values: Sequence[Any], began: int, own: Iterable[Any] = ()) -> bool:
    """Return whether the graph of `values` has leaves older than the sequence number `began`, other than those in
    `own`."""
    targets = [edge[0] for node in ancestors(*values) for edge in node.edges if edge is not None]
    earlier = (t for t in (*values, *targets) if isinstance(t, TensorBase) and t.since < began)
    known = {id(x) for x in own}
    return any(t.is_leaf and t.requires_grad and id(t) not in known for t in earlier)


def cotangents_of(roots: Sequence[TensorBase], given: Any) -> Sequence[Any]:
    """The cotangent given for each root; None where none is given. Raises DifferentiationError for a wrong number."""
    if given is None:
        return (None,) * len(roots)
    cotangents = as_tuple(given)
    if len(cotangents) != len(roots):
        raise DifferentiationError(f"got {len(roots)} tensors and {len(cotangents)} gradients")
    return cotangents


def check_targets(targets: Sequence[Any]) -> None:
    """Raise DifferentiationError for a target that is neither a tensor that requires grad nor an edge of the graph."""
    for target in targets:
        if isinstance(target, GradientEdge):
            node: Any = target.node
            if not isinstance(node, Node):
                kind = type(node).__name__
                raise DifferentiationError(f"GradientEdge's first object must be an autograd.graph.Node but got {kind}")
        elif not isinstance(target, TensorBase) or not target.requires_grad:
            raise DifferentiationError("One of the differentiated Tensors does not require grad")


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One or several tensors or edges of the graph, as a tuple."""
    several = isinstance(value, (list, tuple, ValuesView)) and not isinstance(value, GradientEdge)
    return tuple(value) if several else (value,)


def edge_of(target: Target) -> Edge:
    """The edge to which the cotangent of a tensor goes, or that a GradientEdge stands for."""
    if not isinstance(target, GradientEdge):
        return target.edge
    node, number = target
    return (node.variable, 0) if isinstance(node, AccumulateGrad) else (node, number)


def root_of(root: Target) -> TensorBase:
    """The tensor to begin at; for a GradientEdge, a tensor of zeros with its place in the graph."""
    if not isinstance(root, GradientEdge):
        return root
    node, number = root
    if isinstance(node, AccumulateGrad):
        leaf: TensorBase = node.variable
        return leaf
    below = node.leaf()
    numbers = constant(below.inner)
    namespace = arrays.foreign_namespace((numbers,))
    made: TensorBase = below.made(
        arrays.zeros(node.shape_of(number), arrays.dtype_name(numbers), namespace), node, number
    )
    return made


def as_gradient(cotangent: Any, target: Target) -> Any:
    """A cotangent as a Tensor with the dtype of the target."""
    if cotangent is None or isinstance(target, GradientEdge):
        return cotangent
    gradient = cotangent if isinstance(cotangent, TensorBase) else target.made(cotangent)
    if arrays.dtype_name(gradient.inner) == arrays.dtype_name(target.inner):
        return gradient
    return cast(gradient, target.dtype)


def seed_of(i: int, root: TensorBase, gradient: Any, create_graph: bool) -> Any:
    """The cotangent of a root: the one given, or 1 for a scalar.

    Raises DifferentiationError if the root requires no grad, is not a scalar and has no gradient, or the shapes differ.
    """
    if not isinstance(root, TensorBase) or not root.requires_grad:
        raise DifferentiationError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if type(root.inner) is float:
            return root.made(1.0) if create_graph else 1.0
        if root.size != 1:
            raise DifferentiationError("grad can be implicitly created only for scalar outputs")
        if arrays.is_complex(root.inner):
            raise DifferentiationError(
                f"grad can be implicitly created only for real scalar outputs but got torch.{root.dtype}"
            )
        gradient = arrays.ones_like(root.inner)
    if not isinstance(gradient, Kind):
        gradient = arrays.like_library_of(arrays.asarray(gradient), root.inner)
    if arrays.shape(gradient) != root.shape:
        raise DifferentiationError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {list(arrays.shape(gradient))} "
            f"and output[{i}] has a shape of {list(root.shape)}."
        )
    if arrays.is_complex(gradient) and not arrays.is_complex(root.inner):
        raise DifferentiationError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {arrays.dtype_name(gradient)} and output[{i}] has a dtype of {root.dtype}."
        )
    if create_graph or (isinstance(gradient, TensorBase) and gradient.dual):
        return as_gradient(gradient, root)
    inner = gradient.inner if isinstance(gradient, TensorBase) else gradient
    return inner if arrays.dtype_name(inner) == root.dtype else cast(inner, root.dtype)


def nodes_between(roots: Sequence[TensorBase], targets: Sequence[Edge]) -> set[Any]:
    """The targets that are leaves, and the nodes through which a cotangent must pass to reach a target."""
    reached = {target for target, _ in targets}
    useful: set[Any] = {target for target in reached if not isinstance(target, Node)}
    for node in reversed(ancestors(*roots, after=beginning(reached))):
        for edge in node.edges:
            if edge is not None and (edge[0] in useful or edge[0] in reached):
                useful.add(node)
                break
    return useful
