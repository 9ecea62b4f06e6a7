"""The backward pass: cotangents from the roots to the leaves, one node at a time, latest first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from gradcli import arrays, limits
from gradcli.autograd.ancestors import ancestors, beginning
from gradcli.autograd.modes import current_span, grad_enabled
from gradcli.autograd.node import Edge, Hook, Node, next_sequence
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.selection import everything, has_zeros
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import ArgumentError, DifferentiationError, GradcliError, flag
from gradcli.primitives.arithmetic import zeros_like
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.comparisons import logical_or, not_equal
from gradcli.primitives.conversions import cast
from gradcli.primitives.operators import operand

AnyTensor = TypeVar("AnyTensor", bound=TensorBase)
# Called with each node, its cotangents and the operands' cotangents that came of them.
Observer = Callable[[Node, Sequence[Any], Sequence[Any]], None]
observer: ContextVar[Observer | None] = ContextVar("gradcli_observer", default=None)

# Of a backward pass, in eighths of steps, of a node that it visits, and of one where the visit is itself recorded.
_PASS = 80
_VISIT = 12
_VISIT_RECORDED = 24


@contextmanager
def observing(see: Observer | None) -> Iterator[None]:
    """Within the block, `see` is told of every node that a backward pass visits."""
    token = observer.set(see)
    try:
        yield
    finally:
        observer.reset(token)


def backward(
    tensors: TensorBase | Sequence[TensorBase],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorBase | Sequence[TensorBase] | None = None,
) -> None:
    """Accumulate the gradients of `tensors` (of their sum, weighted by `grad_tensors`) in `.grad` of the leaves, or of
    `inputs` alone.

    `grad_tensors` are the cotangents, one for each tensor, in its shape; None stands for the 1 of a scalar. The other
    arguments and the errors are those of `Tensor.backward`.
    """
    roots = _as_tuple(tensors)
    targets = None if inputs is None else _as_tuple(inputs)
    if targets == ():
        raise DifferentiationError("`inputs` argument to `backward()` cannot be empty.")
    _check_targets(targets or ())
    retain = create_graph if retain_graph is None else retain_graph
    found = _Pass(roots, _cotangents(roots, grad_tensors), targets, create_graph, retain).run()
    for leaf, cotangent in found:
        if cotangent is not None and leaf.requires_grad:
            leaf.accumulate_grad(cotangent, create_graph)


def grad(
    outputs: TensorBase | Sequence[TensorBase],
    inputs: AnyTensor | Sequence[AnyTensor],
    grad_outputs: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[AnyTensor | None, ...]:
    """The gradients of `outputs` (their sum, weighted by `grad_outputs`) by each of `inputs`.

    Nothing is accumulated in `.grad`. With `create_graph` the gradients can be differentiated
    again; with `allow_unused` an input that does not matter gets None, and with `materialize_grads`
    zeros. Raises DifferentiationError where an input or output has no graph, or an input is not
    used, and ArgumentError for `materialize_grads` where `allow_unused` is False.
    """
    if materialize_grads and allow_unused is False:
        raise ArgumentError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    roots, leaves = _as_tuple(outputs), _as_tuple(inputs)
    _check_targets(leaves)
    retain = create_graph if retain_graph is None else retain_graph
    found = dict(_Pass(roots, _cotangents(roots, grad_outputs), leaves, create_graph, retain).run())
    for i, leaf in enumerate(leaves):
        if found[leaf] is not None:
            continue
        if materialize_grads:
            found[leaf] = leaf.made(zeros_like(leaf.inner)).requires_grad_()
        elif not allow_unused:
            raise DifferentiationError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
    return tuple(found[leaf] for leaf in leaves)


def _cotangents(roots: Sequence[TensorBase], given: Any) -> Sequence[Any]:
    """What is given as a cotangent of each root, None where nothing is."""
    if given is None:
        return (None,) * len(roots)
    cotangents = _as_tuple(given)
    if len(cotangents) != len(roots):
        raise DifferentiationError(f"got {len(roots)} tensors and {len(cotangents)} gradients")
    return cotangents


def _check_targets(targets: Sequence[TensorBase]) -> None:
    if not all(isinstance(t, TensorBase) and t.requires_grad for t in targets):
        raise DifferentiationError("One of the differentiated Tensors does not require grad")


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class _Pass:
    """One backward pass. Cotangents live here, and only here, until they reach a leaf."""

    def __init__(
        self,
        roots: Sequence[TensorBase],
        gradients: Sequence[Any],
        targets: Sequence[TensorBase] | None,
        create_graph: bool,
        retain_graph: bool,
    ) -> None:
        self.create_graph = flag(create_graph, "create_graph")
        self.retain_graph = flag(retain_graph, "retain_graph")
        self.targets = targets
        self.pending: dict[Node, list[Any]] = {}
        self.queue: list[tuple[int, Node]] = []
        # Nodes whose cotangents hold zeros that mean "not taken", with the mask of what was taken where
        # others were computed.
        self.untaken: dict[Node, Any] = {}
        self.leaves: dict[TensorBase, Any] = {}
        self.captured = {t.edge: None for t in targets or () if t.grad_fn is not None}
        self.observe = observer.get()
        self.budget = limits.budget()
        if self.budget is not None:
            self.budget.charge_steps(_PASS)
        self.seeds = [_seed(i, root, g, create_graph) for i, (root, g) in enumerate(zip(roots, gradients))]
        # As all but one number of what a row of a Jacobian begins with, such a zero means "not asked for".
        self.partial = any(r.shape and not assume(not_equal(constant(s), 0)) for r, s in zip(roots, self.seeds))
        self.roots = roots
        # The class of tensors stands above this file.
        self.tensor = roots[0].made if roots else TensorBase.made
        self.useful = None if targets is None else _between(roots, targets)
        # Where a cotangent must go to be wanted.
        self.wanted = None if self.useful is None else self.useful.union(node for node, _ in self.captured)

    def run(self) -> Iterable[tuple[Any, Any]]:
        """The leaves (or the targets) with their gradients."""
        mode = grad_enabled.set(self.create_graph)
        span = current_span.set(None)
        try:
            with arrays.quiet():
                self._propagate()
                return self._results()
        finally:
            current_span.reset(span)
            grad_enabled.reset(mode)

    def _propagate(self) -> None:
        for root, seed in zip(self.roots, self.seeds):
            self._send(root.edge, seed)
        while self.queue:
            node = heapq.heappop(self.queue)[1]
            cotangents = self._arrived(node)
            if self.useful is None or node in self.useful:
                for edge, cotangent in zip(node.edges, self._pull(node, cotangents)):
                    if edge is not None and cotangent is not None:
                        self._send(edge, cotangent)
                if not self.retain_graph:
                    node.release()

    def _send(self, edge: Edge, cotangent: Any) -> None:
        target, number = edge
        if not isinstance(target, Node):
            known = self.leaves.get(target)
            self.leaves[target] = cotangent if known is None else known + cotangent
            return
        slots = self.pending.get(target)
        if slots is None:
            slots = self.pending[target] = [None] * target.outputs
            heapq.heappush(self.queue, (-target.sequence, target))
        slots[number] = cotangent if slots[number] is None else slots[number] + cotangent

    def _arrived(self, node: Node) -> list[Any]:
        """The cotangents of a node, now that all have come: after its hooks, and noted where they are asked for."""
        if self.budget is not None:
            self.budget.charge_steps(_VISIT_RECORDED if self.create_graph else _VISIT)
        cotangents = self.pending.pop(node)
        if node.hooks or node.retained:
            self._call_hooks(node, cotangents)
        for number, cotangent in enumerate(cotangents) if self.captured else ():
            if (node, number) in self.captured:
                self.captured[node, number] = cotangent
        return cotangents

    def _pull(self, node: Node, cotangents: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of a node's operands, guarded against zeros that mean "not taken", for whoever observes."""
        wanted = [edge is not None and (self.wanted is None or edge[0] in self.wanted) for edge in node.edges]
        guarded = node.guarded or node in self.untaken
        selects = isinstance(node, PrimitiveNode) and node.primitive.selects
        # Of what was recorded under a guard nobody knows which zeros were computed.
        mask = None if node.guarded else self.untaken.get(node)
        if selects and not (guarded or self.partial) and has_zeros(cotangents[0]):
            mask = everything(cotangents[0])
        lift = self.tensor if self.create_graph else None
        current_span.set(node.span)
        began = next_sequence()
        try:
            pulled = node.pull(cotangents, wanted, lift=lift, guarded=guarded, mask=mask)
        except GradcliError as error:
            error.locate(node.span)
            raise
        if guarded and self.create_graph:
            # What was recorded meets these zeros again when it is itself differentiated.
            for made in ancestors(*pulled, after=began):
                made.guarded = True
        if self.observe is not None:
            self.observe(node, cotangents, pulled)
        if guarded or selects:
            for i, (edge, cotangent) in enumerate(zip(node.edges, pulled)):
                if edge is not None and cotangent is not None and isinstance(edge[0], Node):
                    self._mark(edge[0], None if node.guarded else node.mask_behind(i, cotangents, mask, cotangent))
        return pulled

    def _mark(self, target: Node, mask: Any) -> None:
        """Note that zeros on their way to `target` may mean "not taken", outside of a mask where there is one."""
        known = self.untaken.get(target)
        if mask is None or target.outputs > 1:
            mask = known
        elif known is not None:
            mask = logical_or(known, mask)
        self.untaken[target] = mask

    def _call_hooks(self, node: Node, cotangents: list[Any]) -> None:
        for number, hooks in (node.hooks or {}).items():
            if cotangents[number] is not None:
                cotangents[number] = self._after_hooks(hooks, cotangents[number])
        for number, reference in (node.retained or {}).items():
            retained = reference()
            if retained is not None and cotangents[number] is not None:
                retained.accumulate_grad(self._as_tensor(cotangents[number]), self.create_graph)

    def _after_hooks(self, hooks: Sequence[Hook], cotangent: Any) -> Any:
        for hook in tuple(hooks):
            replacement = hook(self._as_tensor(cotangent))
            if replacement is None:
                continue
            if arrays.shape(operand(replacement)) != arrays.shape(cotangent):
                raise DifferentiationError(f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value")
            cotangent = operand(replacement)
        if isinstance(cotangent, TensorBase) and not (self.create_graph or cotangent.dual):
            return cotangent.inner
        return cotangent

    def _results(self) -> Iterable[tuple[Any, Any]]:
        for leaf, cotangent in self.leaves.items():
            if leaf._hooks:
                self.leaves[leaf] = self._after_hooks(leaf._hooks, cotangent)
        return [(t, _gradient(self._found(t), t)) for t in self.targets or self.leaves]

    def _found(self, target: TensorBase) -> Any:
        return self.leaves.get(target) if target.grad_fn is None else self.captured[target.edge]

    def _as_tensor(self, cotangent: Any) -> Any:
        return cotangent if isinstance(cotangent, TensorBase) else self.tensor(cotangent)


def _gradient(cotangent: Any, tensor: TensorBase) -> Any:
    """A cotangent as the gradient of `tensor`, in its dtype."""
    if cotangent is None:
        return None
    gradient = cotangent if isinstance(cotangent, TensorBase) else tensor.made(cotangent)
    return gradient if gradient.dtype == tensor.dtype else cast(gradient, tensor.dtype)


def _seed(i: int, root: TensorBase, gradient: Any, create_graph: bool) -> Any:
    """The cotangent of a root: what was given, or 1 for a scalar."""
    if not isinstance(root, TensorBase) or not root.requires_grad:
        raise DifferentiationError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if root.size != 1:
            raise DifferentiationError("grad can be implicitly created only for scalar outputs")
        gradient = arrays.ones_like(root.inner)
    if not isinstance(gradient, Kind):
        gradient = arrays.beside(arrays.asarray(gradient), root.inner)
    if arrays.shape(gradient) != root.shape:
        raise DifferentiationError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {list(arrays.shape(gradient))} "
            f"and output[{i}] has a shape of {list(root.shape)}."
        )
    if create_graph or (isinstance(gradient, TensorBase) and gradient.dual):
        return _gradient(gradient, root)
    inner = gradient.inner if isinstance(gradient, TensorBase) else gradient
    return inner if arrays.dtype_name(inner) == root.dtype else cast(inner, root.dtype)


def _between(roots: Sequence[TensorBase], targets: Sequence[TensorBase]) -> set[Any]:
    """The targets that are leaves, and the nodes that a cotangent must pass to reach a target."""
    useful: set[Any] = {t for t in targets if t.grad_fn is None}
    captured = {t.grad_fn for t in targets if t.grad_fn is not None}
    for node in reversed(ancestors(*roots, after=beginning(targets))):
        for edge in node.edges:
            if edge is not None and (edge[0] in useful or edge[0] in captured):
                useful.add(node)
                break
    return useful
