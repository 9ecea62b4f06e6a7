"""The backward pass: it propagates cotangents from the roots to the leaves, one node at a time, latest first."""

from __future__ import annotations

import contextvars
import functools
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli import arrays, limits
from gradcli.autograd.hooks import Attached, Hooks, checked, replaced
from gradcli.autograd.modes import current_span, grad_enabled
from gradcli.autograd.node import (
    AccumulateGrad,
    Edge,
    GradientEdge,
    Node,
    all_conjugated,
    conjugated,
    next_sequence,
    recorders,
)
from gradcli.autograd.targets import (
    Target,
    ancestors,
    as_gradient,
    as_tuple,
    check_targets,
    cotangents_of,
    edge_of,
    nodes_between,
    root_of,
    seed_of,
)
from gradcli.autograd.tensor_base import TensorBase
from gradcli.autograd.untaken_masks import UntakenMasks, all_taken, has_zeros, taken_of_sum
from gradcli.errors import ArgumentError, DifferentiationError, GradcliError, Span, as_bool
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.comparisons import not_equal
from gradcli.type_hints import Any, TypeVar

# Called with each node, its cotangents and the resulting cotangents of its operands.
Observer = Callable[[Node, Sequence[Any], Sequence[Any]], None]
observer: ContextVar[Observer | None] = ContextVar("gradcli_observer", default=None)

# The visit of a node with its cotangents; a watcher is called in its place, with it as the first argument.
Visit = Callable[[Node, Sequence[Any]], Sequence[Any]]
visit_wrapper: ContextVar[Callable[[Visit, Node, Sequence[Any]], Sequence[Any]] | None] = ContextVar(
    "gradcli_watcher", default=None
)


@contextmanager
def observing(see: Observer | None) -> Iterator[None]:
    """Within the block, `see` is called for every node that a backward pass visits."""
    token = observer.set(see)
    try:
        yield
    finally:
        observer.reset(token)


AnyTensor = TypeVar("AnyTensor", bound=TensorBase)
# The pass that is running in this context.
current_pass: ContextVar[BackwardPass | None] = ContextVar("gradcli_current_pass", default=None)
# The number of nested passes that run on one thread's stack; deeper ones run on a new stack.
_PASSES_PER_STACK = 20
_next_pass = itertools.count().__next__

# The cost of a backward pass, of the visit of a node, and of a visit that is itself recorded, in eighths of a step.
_PASS = 80
_VISIT = 12
_VISIT_RECORDED = 24


def backward(
    tensors: TensorBase | Sequence[TensorBase],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorBase | Sequence[TensorBase] | None = None,
) -> None:
    """Accumulate the gradients of `tensors` in `.grad` of the leaves, or of `inputs` only.

    The gradients are those of the sum of `tensors`, weighted by `grad_tensors`.

    `grad_tensors` are the cotangents, one for each tensor and in its shape; None stands for the 1 of a scalar. The
    other arguments and the errors are those of `Tensor.backward`.
    """
    roots = as_tuple(tensors)
    targets = None if inputs is None else as_tuple(inputs)
    if targets == ():
        raise DifferentiationError("`inputs` argument to `backward()` cannot be empty.")
    check_targets(targets or ())
    retain = create_graph if retain_graph is None else retain_graph
    for target in targets or ():
        if isinstance(target, TensorBase):
            target.retain_grad()
    BackwardPass(roots, cotangents_of(roots, grad_tensors), targets, create_graph, retain, accumulate=True).run()


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
    """The gradients of `outputs` (their sum, weighted by `grad_outputs`) with respect to each of `inputs`.

    Nothing is accumulated in `.grad`. With `create_graph` the gradients can be differentiated again. The gradient of an
    unused input is None with `allow_unused`, and zeros with `materialize_grads`. Raises DifferentiationError if there
    are no inputs, an input or output has no graph, or an input is unused, and ArgumentError for `materialize_grads`
    with `allow_unused=False`.
    """
    if materialize_grads and allow_unused is False:
        raise ArgumentError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    roots, leaves = as_tuple(outputs), as_tuple(inputs)
    if not leaves:
        raise DifferentiationError("`inputs` argument to `grad()` cannot be empty.")
    check_targets(leaves)
    retain = create_graph if retain_graph is None else retain_graph
    found = BackwardPass(
        roots, cotangents_of(roots, grad_outputs), leaves, create_graph, retain, accumulate=False
    ).run()
    for i, leaf in enumerate(leaves):
        if found[i] is not None:
            continue
        if materialize_grads:
            if isinstance(leaf, GradientEdge):
                raise DifferentiationError("materialize_grads cannot be used when the given input is a GradientEdge")
            found[i] = leaf.made(zeros_like(leaf.inner)).requires_grad_()
        elif not allow_unused:
            raise DifferentiationError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
    return tuple(found)


class BackwardPass:
    """One backward pass. It owns the cotangents until they reach a leaf.

    It propagates from tensors to all leaves, or only to `targets` (tensors and edges), where gradients are accumulated
    or returned. Zeros of `gradients` mean that an element is not asked for, and those of what was not selected that it was
    not taken, see `untaken_masks`; with `ordinary_zeros`, they are zeros like others.
    """

    def __init__(
        self,
        roots: Sequence[Target],
        gradients: Sequence[Any],
        targets: Sequence[Target] | None,
        create_graph: bool,
        retain_graph: bool,
        *,
        accumulate: bool,
        ordinary_zeros: bool = False,
    ) -> None:
        self.number = _next_pass()
        self.create_graph = as_bool(create_graph, "create_graph")
        self.retain_graph = as_bool(retain_graph, "retain_graph")
        self.accumulate = accumulate
        self.ordinary_zeros = ordinary_zeros
        self.targets = targets
        self.pending: dict[Node, list[Any]] = {}
        self.queue: list[tuple[int, Node]] = []
        self.untaken = UntakenMasks()
        # Whether the zeros that the node visited last sends are all ordinary zeros.
        self.plain = True
        self.leaves: dict[TensorBase, Any] = {}
        edges = [edge_of(t) for t in targets or ()]
        self.captured = {edge: None for edge in edges if isinstance(edge[0], Node)}
        self.observe = observer.get()
        self.budget = limits.budget()
        if self.budget is not None:
            self.budget.charge_steps(_PASS)
        self.roots = [root_of(root) for root in roots]
        self.seeds = [
            conjugated(seed_of(i, root, g, create_graph)) for i, (root, g) in enumerate(zip(self.roots, gradients))
        ]
        # Whether a seed asks for some elements only, such as a unit vector for a row of a Jacobian.
        self.partial = not ordinary_zeros and any(
            r.shape and not assume(not_equal(constant(s), 0)) for r, s in zip(self.roots, self.seeds)
        )
        # The constructor comes from the roots, because the class Tensor depends on this module.
        self.tensor = self.roots[0].made if roots else TensorBase.made
        self.lift = self.tensor if self.create_graph else None
        self.useful = None if targets is None else nodes_between(self.roots, edges)
        # The nodes and leaves that a cotangent must be sent to.
        self.wanted = None if self.useful is None else self.useful.union(node for node, _ in self.captured)
        if accumulate and self.wanted is not None:
            self.useful = self.wanted
        self.reached: set[Any] | None = None
        # Whether a leaf with hooks was reached; its hooks are called as soon as its gradient is complete.
        self.hooked = False
        self.ways: PendingEdges | None = None
        self.callbacks: list[Callable[[], object]] = []
        # The source span of the node that was visited last.
        self.span: Span | None = None
        # The number of passes that this one is nested in.
        self.depth = 0

    def run(self) -> list[Any]:
        """Run the pass and return the gradients of the targets; an empty list if they are accumulated."""
        outer = current_pass.get()
        if outer is not None:
            self.depth = outer.depth + 1
        if self.depth % _PASSES_PER_STACK == _PASSES_PER_STACK - 1:
            found: list[Any] = _run_in_new_thread(self._run)
            return found
        return self._run()

    def _run(self) -> list[Any]:
        token = current_pass.set(self)
        mode = grad_enabled.set(self.create_graph)
        span = current_span.set(None)
        # Saved-tensor hooks that a hook of the pass installs end with the pass.
        known = recorders.set(recorders.get())
        try:
            with arrays.quiet():
                self._propagate()
                results = self._results()
                for callback in self.callbacks:
                    callback()
                return results
        finally:
            recorders.reset(known)
            current_span.reset(span)
            grad_enabled.reset(mode)
            current_pass.reset(token)

    def visits(self, node: Node) -> bool:
        """Return whether the pass visits a node or ends there."""
        target = node.variable if isinstance(node, AccumulateGrad) else node
        if self.wanted is not None:
            return target in self.wanted
        if self.reached is None:
            self.reached = {root.edge[0] for root in self.roots}
            for passed in ancestors(*self.roots):
                self.reached.update([passed, *passed.targets])
        return target in self.reached

    def _propagate(self) -> None:
        for root, seed in zip(self.roots, self.seeds):
            self._send(root.edge, seed)
        watch = visit_wrapper.get()
        visit = self._visit if watch is None else functools.partial(watch, self._visit)
        queue, pending, useful, wanted = self.queue, self.pending, self.useful, self.wanted
        pull, send, budget, captured = self._pull, self._send, self.budget, self.captured
        while queue:
            node = heapq.heappop(queue)[1]
            cotangents = pending.pop(node)
            if budget is not None:
                budget.charge_steps(_VISIT_RECORDED if self.create_graph else _VISIT)
            if node.attached is not None:
                self._call_tensor_hooks(node.attached, cotangents)
            if captured:
                self._capture(node, cotangents)
            if useful is None or node in useful:
                visited = pull if watch is None and node.attached is None else visit
                for edge, cotangent in zip(node.edges, visited(node, cotangents)):
                    if edge is None:
                        continue
                    if cotangent is not None:
                        send(edge, cotangent)
                    elif wanted is None or edge[0] in wanted:
                        self._send_none(edge[0])
                if self.hooked:
                    self._end_leaves(node)
                if not self.retain_graph:
                    node.release()

    def _send(self, edge: Edge, cotangent: Any) -> None:
        target, number = edge
        if not isinstance(target, Node):
            known = self.leaves.get(target)
            self.leaves[target] = cotangent if known is None else known + cotangent
            if target._accumulator is not None and self.accumulate:
                self.hooked = True
            return
        slots = self.pending.get(target)
        if slots is None:
            heapq.heappush(self.queue, (-target.sequence, target))
            if target.outputs == 1:
                self.pending[target] = [cotangent]
                return
            slots = self.pending[target] = [None] * target.outputs
        known = slots[number]
        if known is None:
            slots[number] = cotangent
            return
        slots[number] = known + cotangent
        if target in self.untaken:
            plain = self.plain and not self.partial
            self.untaken.meet(target, plain or taken_of_sum(known, cotangent, slots[number]), slots)

    def _send_none(self, target: Any) -> None:
        """Mark a node or leaf as reached without a gradient, so that hooks and Functions are called."""
        if not isinstance(target, Node):
            self.leaves.setdefault(target, None)
        elif target not in self.pending:
            self.pending[target] = [None] * target.outputs
            heapq.heappush(self.queue, (-target.sequence, target))

    def _capture(self, node: Node, cotangents: Sequence[Any]) -> None:
        """Note the cotangents of a node that were asked for."""
        for number, cotangent in enumerate(cotangents):
            if (node, number) in self.captured:
                self.captured[node, number] = cotangent

    def _visit(self, node: Node, cotangents: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of a node's operands, with the hooks of the node applied."""
        attached = node.attached
        if attached is None or not (attached.before or attached.after):
            return self._pull(node, cotangents)
        cotangents = self._after_prehooks(attached, cotangents)
        pulled = self._pull(node, cotangents)
        if attached.after:
            shown: Sequence[Any] = all_conjugated(pulled)
            of_outputs = self._tensors(all_conjugated(cotangents))
            for hook in tuple(attached.after.values()):
                shown = self._plain(replaced(hook, shown, self._tensors(shown), of_outputs))
            pulled = all_conjugated(shown)
        return pulled

    def _pull(self, node: Node, cotangents: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of a node's operands; the observer is called."""
        if cotangents[0] is None and not node.takes_none and all(c is None for c in cotangents):
            return [None] * len(node.edges)
        # An edge counts as true, and None as false.
        wanted: Sequence[object] = node.edges
        if self.wanted is not None:
            wanted = [edge is not None and edge[0] in self.wanted for edge in node.edges]
        if node.span is not self.span:
            self.span = node.span
            current_span.set(node.span)
        self.plain = self.ordinary_zeros or (
            not (node.guarded or node.selects) and not (self.untaken and self.untaken.marks(node))
        )
        try:
            if self.plain:
                pulled = node.pull(cotangents, wanted, lift=self.lift)
            else:
                pulled = self._pull_guarded(node, cotangents, wanted)
        except GradcliError as error:
            error.locate(node.span)
            raise
        if self.observe is not None:
            self.observe(node, cotangents, pulled)
        return pulled

    def _pull_guarded(self, node: Node, cotangents: Sequence[Any], wanted: Sequence[object]) -> Sequence[Any]:
        """The cotangents of a node's operands where zeros may mean "not taken", or are going to."""
        # For a node recorded under a guard, it is unknown which zeros were computed.
        mask = None if node.guarded else self.untaken.get(node, True)
        guarded = mask is not True
        if not guarded:
            first = next(c for c in cotangents if c is not None)
            mask = all_taken(first) if not self.partial and has_zeros(first) else None
        began = next_sequence()
        masks: list[Any] = [None] * len(wanted)
        pulled = node.pull(
            cotangents, wanted, lift=self.lift, guarded=guarded, mask=mask, masks=None if node.guarded else masks
        )
        if guarded and self.create_graph:
            # When the recorded operations are differentiated, they meet these zeros again.
            for made in ancestors(*pulled, after=began):
                made.guarded = True
        for edge, cotangent, behind in zip(node.edges, pulled, masks):
            if edge is not None and cotangent is not None and isinstance(edge[0], Node):
                self.untaken.meet(edge[0], behind, None if self.partial else self.pending.get(edge[0]))
        return pulled

    def _call_tensor_hooks(self, attached: Attached, cotangents: list[Any]) -> None:
        for number, hooks in attached.tensors.items():
            cotangents[number] = self._after_hooks(hooks, cotangents[number])
        for number, reference in attached.retained.items():
            retained = reference()
            if retained is not None and cotangents[number] is not None:
                retained.accumulate_grad(self._as_tensor(conjugated(cotangents[number])), self.create_graph)

    def _after_hooks(self, hooks: Hooks, cotangent: Any) -> Any:
        gradient = conjugated(cotangent)
        for hook in tuple(hooks.values()):
            replacement = hook(None if gradient is None else self._as_tensor(gradient))
            if replacement is not None:
                (gradient,) = self._plain([checked(hook, replacement, gradient)])
        return conjugated(gradient)

    def _after_prehooks(self, attached: Attached, cotangents: Sequence[Any]) -> Sequence[Any]:
        if not attached.before:
            return cotangents
        gradients: Sequence[Any] = all_conjugated(cotangents)
        for hook in tuple(attached.before.values()):
            gradients = self._plain(replaced(hook, gradients, self._tensors(gradients)))
        return all_conjugated(gradients)

    def _end_leaves(self, node: Node) -> None:
        """Accumulate the gradients of those leaves with hooks that are complete after the visit of `node`."""
        if self.ways is None:
            self.ways = PendingEdges(self.pending, self.useful)
            ended = [leaf for leaf in self.leaves if has_hooks(leaf) and leaf not in self.ways]
        else:
            ended = self.ways.ended_by(node)
        for leaf in filter(self.leaves.__contains__, ended):
            self._accumulate(leaf, self.leaves.pop(leaf))

    def _results(self) -> list[Any]:
        if self.accumulate:
            for leaf, cotangent in self.leaves.items():
                self._accumulate(leaf, cotangent)
            return []
        for leaf, cotangent in self.leaves.items():
            self.leaves[leaf] = self._after_hooks_of_leaf(leaf, cotangent)
        return self._tensors([as_gradient(conjugated(self._found(target)), target) for target in self.targets or ()])

    def _after_hooks_of_leaf(self, leaf: TensorBase, cotangent: Any) -> Any:
        node = leaf._accumulator
        known = None if node is None else node.attached
        return cotangent if known is None else self._after_hooks(known.of_output(0), cotangent)

    def _accumulate(self, leaf: TensorBase, cotangent: Any) -> None:
        """Add a cotangent to the gradient of a leaf, and call the hooks of the leaf and of its AccumulateGrad node."""
        if not leaf.requires_grad or (self.useful is not None and leaf not in self.useful):
            return
        node = leaf._accumulator
        cotangent = self._after_hooks_of_leaf(leaf, cotangent)
        if node is not None and node.attached is not None:
            (cotangent,) = self._after_prehooks(node.attached, [cotangent])
        if cotangent is None:
            return
        gradient = as_gradient(conjugated(cotangent), leaf)
        leaf.accumulate_grad(gradient, self.create_graph)
        if node is None:
            return
        for hook in tuple(node.accumulated.values()):
            if hook(leaf) is not None:
                raise DifferentiationError("Tensor post accumulate grad hooks should return None.")
        for hook in tuple(node.attached.after.values()) if node.attached is not None else ():
            replaced(hook, (), (), [gradient])

    def _found(self, target: Target) -> Any:
        edge = edge_of(target)
        return self.captured[edge] if isinstance(edge[0], Node) else self.leaves.get(edge[0])

    def _tensors(self, cotangents: Sequence[Any]) -> list[Any]:
        return [None if c is None else self._as_tensor(c) for c in cotangents]

    def _plain(self, cotangents: Sequence[Any]) -> Sequence[Any]:
        """Cotangents in the form that this pass propagates: Tensors if the work is recorded, else their data."""
        if self.create_graph:
            return cotangents
        return [c.inner if isinstance(c, TensorBase) and not c.dual else c for c in cotangents]

    def _as_tensor(self, cotangent: Any) -> Any:
        return cotangent if isinstance(cotangent, TensorBase) else self.tensor(cotangent)


# --- leaves that the last cotangent has reached


class PendingEdges:
    """For each leaf with hooks, the number of edges through which a cotangent may still arrive.

    The edges are those of waiting nodes and their ancestors. If `useful` is not None, only those nodes are visited.
    """

    def __init__(self, waiting: Iterable[Node], useful: Container[Any] | None) -> None:
        nodes = (node for node in ancestors(*waiting) if useful is None or node in useful)
        self._left = Counter(target for node in nodes for target in node.targets if has_hooks(target))

    def __contains__(self, leaf: Any) -> bool:
        return leaf in self._left

    def ended_by(self, node: Node) -> list[Any]:
        """The leaves that no cotangent can reach any more, now that `node` was visited."""
        ended = []
        for target in node.targets:
            if target in self._left:
                self._left[target] -= 1
                if not self._left[target]:
                    del self._left[target]
                    ended.append(target)
        return ended


def has_hooks(target: Any) -> bool:
    """Return whether the target of an edge is a leaf that may have hooks."""
    return not isinstance(target, Node) and target._accumulator is not None


def _run_in_new_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a new thread with the current context, wait for it, and return or raise its outcome."""
    # Imported here as few graphs are that deep.
    import threading

    context = contextvars.copy_context()
    outcome: list[Any] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            outcome.append(context.run(function))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
