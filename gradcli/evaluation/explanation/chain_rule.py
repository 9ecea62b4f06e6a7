"""Explains the gradient of a run by the chain rule: its steps, their local derivatives, and the products that add
up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.engine import observing
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.targets import ancestors
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import non_holomorphic_node
from gradcli.errors import DifferentiationError, Span, locating
from gradcli.evaluation import session
from gradcli.evaluation.diagnose import Warning
from gradcli.evaluation.explanation.labels import Labels
from gradcli.evaluation.explanation.local_derivatives import LocalDerivative, local_derivatives, pulled_numbers
from gradcli.evaluation.explanation.second_order import SecondDerivative, second_derivatives
from gradcli.evaluation.explanation.step_texts import StepTexts, end_of_head, shortened
from gradcli.evaluation.explanation.units import Unit, Units
from gradcli.language.interpreter.expression_trace import Event, ExpressionTrace
from gradcli.language.interpreter.run import evaluate
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.names.resolution import resolve
from gradcli.language.operations import operation_at
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import ones_like
from gradcli.primitives.entries.complex_parts import conjugate_of

# A longer condition or branch is shortened.
_LONGEST = 100
# Cost of a step, in eighths of a step of the interpreter: its formulas are derived and simplified.
_STEP = 400


class ExplanationRequest(NamedTuple):
    """A request for an explanation.

    `bindings` are arrays by name, `wrt` names those to differentiate by, `order` is 1 or 2, and `language` is that of
    the formulas, `text` or `latex`. With `expand` nothing is folded.
    """

    program: tree.Module
    bindings: Mapping[str, Any]
    wrt: Sequence[str]
    order: int = 1
    language: str = "text"
    expand: bool = False


class Term(NamedTuple):
    """A product of the chain rule: the gradient of a later step times its local derivative.

    `through` is the label of the step, `gradient` its gradient, `local` the local derivative as a number, None where it
    is a rule for tensors, and `value` the product.
    """

    through: str
    gradient: Any
    local: Any
    value: Any


class Step(NamedTuple):
    """A value that the run computed.

    `text` is what was computed, with the labels of earlier steps in it, `math` the same in the language of the formulas.
    `kind` is `step`, `function`, `loop` or `statement`, `times` the number of iterations of a loop, and `constants` are
    the numbers that its text reads and that are not inputs. The `terms` add up to the gradient.
    """

    kind: str
    label: str
    symbol: str
    text: str
    math: str
    span: Span
    times: int
    value: Any
    constants: Mapping[str, Any]
    local: Sequence[LocalDerivative]
    gradient: Any
    terms: Sequence[Term]


class Note(NamedTuple):
    """A branch or iteration on the execution path.

    A note of the kind `branch` has the truth of its condition and the source that was `taken`; one of the kind `round`
    has the number of an iteration and the constants that it assigned.
    """

    kind: str
    text: str
    span: Span
    truth: bool = False
    taken: str = ""
    number: int = 0
    assigned: Mapping[str, Any] = {}


class Leaf(NamedTuple):
    """An input that was differentiated by; its gradient is None where the value does not depend on it."""

    label: str
    symbol: str
    value: Any
    gradient: Any
    terms: Sequence[Term]


class Explanation(NamedTuple):
    """The value, the inputs, the steps and notes in the order of the run, and the gradients."""

    program: tree.Module
    value: Any
    symbol: str
    inputs: Mapping[str, Any]
    course: Sequence[Step | Note]
    leaves: Sequence[Leaf]
    second: Sequence[SecondDerivative]
    warnings: Sequence[Warning]


def explain(request: ExplanationRequest) -> Explanation:
    """Run a program and explain its gradient.

    Raises what `evaluate` raises, and DifferentiationError for a value that is not a number or depends on no input.
    """
    program = request.program
    # A program that does not end within the limits is found out here, before each of its steps is kept.
    compared = _differentiated(request)
    with locating(program.source, program.body[-1].span):
        in_complex = resolve(program).makes_complex or any(map(arrays.is_complex, request.bindings.values()))
        if in_complex:
            _check_complex(request, compared)
        return _ChainRule(request, in_complex=in_complex).explanation(compared)


def _check_complex(request: ExplanationRequest, compared: session.Result) -> None:
    """Raise DifferentiationError for a program that may have complex numbers and no first derivative of a complex value
    to explain."""
    if not arrays.is_complex(compared.value):
        raise DifferentiationError(
            "with complex numbers the chain rule is explained for a complex value, and this one is real",
            hint="gradcli eval has its gradient",
        )
    if request.order == 2:
        raise DifferentiationError(
            "the chain rule of second order is explained for real numbers", hint="gradcli eval --order 2 has its result"
        )


def _differentiated(request: ExplanationRequest) -> session.Result:
    """The derivatives that `gradcli eval` prints, beside which the products are checked.

    Raises DifferentiationError for a value that is not a number.
    """
    program, bindings = request.program, request.bindings
    order = 2 if request.order == 2 else None
    try:
        return session.run(session.EvaluationRequest(program, bindings, _wanted(request), order=order))
    except DifferentiationError:
        value = session.run(session.EvaluationRequest(program, bindings, gradient=False)).value
        if not arrays.shape(value):
            raise
        raise DifferentiationError(
            f"the chain rule explains the gradient of a number, and the value has shape {list(arrays.shape(value))}",
            hint="sum(…) of it is a number, and so is an element, as in (…)[0]",
            span=program.body[-1].span,
            source=program.source,
        ) from None


def _wanted(request: ExplanationRequest) -> list[str]:
    """The names to differentiate by that have a value."""
    return [name for name in request.wrt if name in request.bindings]


class _ChainRule:
    """A forward and a backward run, with the steps and notes recorded in them."""

    def __init__(self, request: ExplanationRequest, *, in_complex: bool) -> None:
        self.request = request
        wrt = frozenset(request.wrt)
        # The derivatives of a complex value by real inputs are those by complex ones, where every step is analytic.
        start = {n: v + 0j if in_complex and n in wrt else v for n, v in request.bindings.items()}
        self.leaves = {n: Tensor(v).requires_grad_(n in wrt) for n, v in start.items()}
        self.trace = ExpressionTrace(request.program)
        token = recorders.set((self.trace.record, *recorders.get()))
        try:
            self.value = evaluate(request.program, self.leaves, rewrite=False, provenance=self.trace).value
        finally:
            recorders.reset(token)
        if not isinstance(self.value, Tensor) or not self.value.requires_grad:
            self.value = Tensor(self.value)
        if in_complex:
            self._check_analytic()
        nodes = ancestors(self.value)[::-1]
        if any(node.outputs > 1 for node in nodes):
            raise DifferentiationError(
                "a function with several results cannot be explained", hint="gradcli graph shows its operations"
            )
        self.units = Units(self.trace.root, frozenset(nodes), expand=request.expand)
        self.nodes = [node for node in nodes if node in self.units.of]
        self.gradients: dict[Any, Any] = {}
        self.parts: dict[Any, dict[Unit, Any]] = {}
        self._differentiate()
        self.shown = self._shown()
        self._pulled: dict[Node, Mapping[Any, Any]] = {}
        self._results_of = Counter(self.units.of[node] for node in self.shown)
        self.labels = Labels(request.program, self.leaves, self.trace, self.shown, request.language)

    def _check_analytic(self) -> None:
        """Raise DifferentiationError where a step between the inputs and the value is not analytic."""
        node = non_holomorphic_node(self.value, [leaf for leaf in self.leaves.values() if leaf.requires_grad])
        if node is not None:
            name = operation_at(self.request.program, node.span) if node.span is not None else None
            called = f"'{name}'" if name else "this operation"
            raise DifferentiationError(
                f"with complex numbers the chain rule is explained where each step is analytic, and {called} is not",
                hint="gradcli eval differentiates it",
                span=node.span,
            )

    def _differentiate(self) -> None:
        """Run backward: the gradient of each operation and leaf, and the parts of it that come through each unit."""

        def see(node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
            unit = self.units.of.get(node)
            if unit is None:
                # A pass within this one, as the derivative of an integral takes.
                return
            self.gradients[node] = cotangents[0]
            for edge, part in zip(node.edges, pulled):
                if edge is not None and part is not None:
                    within = self.parts.setdefault(edge[0], {})
                    within[unit] = part if unit not in within else within[unit] + part

        if self.nodes:
            with observing(see), arrays.quiet():
                self.value.backward(ones_like(self.value.detach()), retain_graph=True)

    def _shown(self) -> list[Node]:
        """The operations whose results are labelled: those that another unit uses, and the value."""
        used = {t for node in self.nodes for t in node.targets if self.units.of.get(t) is not self.units.of[node]}
        last = self.value.grad_fn
        return [node for node in self.nodes if node in used or node is last]

    def explanation(self, compared: session.Result) -> Explanation:
        request = self.request
        limits.charge_steps(_STEP * len(self.shown))
        course: list[tuple[float, Step | Note]] = [(node.sequence, self._step(node)) for node in self.shown]
        course = sorted([*course, *self._notes()], key=lambda item: item[0])
        wanted = _wanted(request)
        leaves = [self._leaf(name, self.leaves[name]) for name in wanted]
        last = self.value.grad_fn or self.value
        second = second_derivatives(self, wanted) if request.order == 2 else []
        return Explanation(
            request.program,
            as_numpy(self.value),
            self.labels.symbol(last),
            {name: as_numpy(value) for name, value in request.bindings.items()},
            [item for _, item in course],
            leaves,
            second,
            [*compared.warnings, *_differences(request.program, as_numpy(self.value), leaves, second, compared)],
        )

    def _step(self, node: Node) -> Step:
        unit, texts = self.units.of[node], self.texts(node)
        return Step(
            kind=_kind(unit),
            label=self.labels.label(node),
            symbol=self.labels.symbol(node),
            text=texts.text,
            math=texts.math(self.request.language),
            span=unit.event.node.span,
            times=len(unit.event.rounds),
            value=as_numpy(self.trace.results[node]),
            constants=texts.constants(self.request.bindings),
            local=local_derivatives(node, unit, self, texts),
            gradient=_shown_number(self.gradients.get(node)),
            terms=self._terms(node),
        )

    def _leaf(self, name: str, leaf: Tensor) -> Leaf:
        terms = self._terms(leaf)
        # The derivative of an analytic function is the conjugate of the gradient.
        gradient = 1.0 if self.value is leaf else None if leaf.grad is None else _shown_number(conjugate_of(leaf.grad))
        return Leaf(name, self.labels.symbol(leaf), as_numpy(self.request.bindings[name]), gradient, terms)

    def _terms(self, target: Any) -> list[Term]:
        """The products that add up to the gradient of an operation or leaf, one for each unit that uses it."""
        terms = []
        for unit, part in sorted(self.parts.get(target, {}).items(), key=lambda item: item[0].nodes[0].sequence):
            results = [node for node in self.shown if self.units.of[node] is unit]
            single = results[0] if len(results) == 1 else None
            local = None if single is None else self.local_numbers(single).get(target)
            if local is not None and arrays.is_complex(part):
                local = local + 0j
            through = " and ".join(self.labels.symbol(node) for node in results)
            gradient = None if single is None else _shown_number(self.gradients[single])
            terms.append(Term(through, gradient, _shown_number(local), _shown_number(part)))
        return terms

    def texts(self, node: Node) -> StepTexts:
        """The value that a step computed."""
        unit = self.units.of[node]
        return StepTexts(self.request.program, unit, self.labels, single=self._results_of[unit] == 1)

    def values(self, texts: StepTexts) -> Mapping[str, Any]:
        """The values of the operands of a step, by identifier."""
        return {i: as_numpy(self.trace.results.get(source, source)) for i, source in texts.operands.items()}

    def local_numbers(self, node: Node) -> Mapping[Any, Any]:
        """The derivatives of a step by its operands as numbers or, for elementwise steps, tensors; None where they are
        neither."""
        if node not in self._pulled:
            self._pulled[node] = pulled_numbers(node, self.units)
        return self._pulled[node]

    def _notes(self) -> Iterable[tuple[float, Note]]:
        for event in self.units.open:
            node = event.node
            if isinstance(node, (tree.If, tree.Conditional)) and event.parts:
                yield event.times[0], self._branch(event, node)
            elif isinstance(node, (tree.For, tree.While)):
                text = self._text(Span(node.span.start, end_of_head(node)))
                for number, began in enumerate(event.rounds, 1):
                    yield began, Note("round", text, node.span, number=number, assigned=self._assigned(event, number))

    def _branch(self, event: Event, node: tree.If | tree.Conditional) -> Note:
        truth = bool(as_numpy(event.parts[0][1]))
        way = node.body if truth else node.orelse
        nodes = way if isinstance(way, tuple) else (way,)
        taken = self._text(Span(nodes[0].span.start, nodes[-1].span.end)) if nodes else ""
        return Note("branch", self._text(node.test.span), node.test.span, truth, taken)

    def _assigned(self, event: Event, number: int) -> Mapping[str, Any]:
        """The loop variables of an iteration that are constants."""
        count, rounds = len(event.bound), len(event.rounds)
        each = count // rounds if rounds else 0
        bound = event.bound[(number - 1) * each : number * each]
        return {n: as_numpy(v) for n, v in bound if isinstance(v, (int, float))}

    def _text(self, span: Span) -> str:
        return shortened(self.request.program.source[span.start : span.end], _LONGEST)


def _shown_number(value: Any) -> Any:
    """A derivative as a NumPy array or number; a complex one without signs of zeros that conjugation leaves."""
    found = as_numpy(value)
    return found + 0.0 if found is not None and arrays.is_complex(found) else found


def _kind(unit: Unit) -> str:
    if not unit.folded:
        return "step"
    if isinstance(unit.event.node, (tree.For, tree.While, tree.Comprehension)):
        return "loop"
    return "function" if isinstance(unit.event.node, (tree.Call, tree.Apply)) else "statement"


# Relative difference of results that are computed in two forms, beyond which they are reported as different.
_TOLERANCE = 1e-9


def _differences(
    program: tree.Module,
    value: Any,
    leaves: Sequence[Leaf],
    second: Sequence[SecondDerivative],
    compared: session.Result,
) -> Iterable[Warning]:
    """Warnings where the program as it stands gives other numbers than `gradcli eval`, which uses stable forms."""
    import numpy as np

    pairs = [("value", value, compared.value)]
    found = compared.grad or {}
    pairs += [(f"gradient by {leaf.label}", leaf.gradient, found.get(leaf.label)) for leaf in leaves]
    derivatives = compared.derivatives or {}
    pairs += [(f"derivative by {s.by}", s.value, derivatives.get(s.by)) for s in second]
    for what, own, other in pairs:
        if (
            own is not None
            and other is not None
            and not np.allclose(own, other, rtol=_TOLERANCE, atol=0.0, equal_nan=True)
        ):
            message = f"the {what} is {own} by these steps, and {other} by gradcli eval, which uses stable forms"
            yield Warning("rewritten", "forward", "program", program.body[-1].span, message)
            return
