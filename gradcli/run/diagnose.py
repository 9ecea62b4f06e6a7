"""Where a nan, an infinity or a kink came from: warnings with a place in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli import arrays
from gradcli.autograd.ancestors import ancestors
from gradcli.autograd.modes import current_span
from gradcli.autograd.node import Node
from gradcli.autograd.observers import observing
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.errors import Span
from gradcli.kinds.batch import stacked
from gradcli.kinds.switching import switches
from gradcli.language.operations import operation_at
from gradcli.language.syntax.tree import Module
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.comparisons import equal, isfinite
from gradcli.primitives.primitive import Primitive
from gradcli.run.felt_roundings import FeltRoundings

if TYPE_CHECKING:
    from gradcli.kinds.taylor import Jet


class Warning(NamedTuple):
    """Something about a result that a user should know; `span` is its place in the program."""

    code: str
    phase: str
    operation: str
    span: Span
    message: str
    # About how many digits are right, of derivatives that lost more than half of them.
    digits: Mapping[str, int] | None = None


def unused_parts(program: Module) -> list[Warning]:
    """Warnings of what a program says and does not use."""
    if len(program.body) == 1:
        return []
    # One statement uses all that it says.
    from gradcli.language.unused import unused

    return [Warning("unused", "parse", "statement", part.span, part.message) for part in unused(program)]


class Watch:
    """Collects warnings while a program runs forward and backward."""

    def __init__(self, program: Module) -> None:
        self.program = program
        # Whether the run went beyond its limits before its end.
        self.stopped = False
        self.nonfinite: dict[str, Warning] = {}
        self.nonsmooth: dict[Span, Warning] = {}
        # A coefficient that is not finite of a series that was made at a place, of finite ones.
        self.unseen: dict[Span | None, Any] = {}
        # The operands of an operation that gave what is not finite, and the place of the number in its result.
        self.before: dict[str, tuple[list[Any], tuple[int, ...]]] = {}
        # What the program calls the operation at a place, and its latest operands there.
        self.seen: dict[Span, tuple[str, list[Any]]] = {}
        # Comparisons of what is equal, where the derivative may be that of one branch.
        self.ties: dict[Span, Warning] = {}
        # Whether the value has all derivatives where the program switches; None where it does not switch.
        self.settled: bool | None = None
        # Where a series lost its digits first.
        self.lossy: Span | None = None
        # How far roundings are felt, where that is looked at.
        self.felt: FeltRoundings | None = None

    @contextmanager
    def roundings(self) -> Iterator[None]:
        """Within the block, the program runs whose roundings the backward pass is to tell of."""
        self.felt = FeltRoundings()
        with self.felt.recording():
            yield

    @contextmanager
    def derivatives(self, *, nonfinite: bool, inaccurate: bool) -> Iterator[None]:
        """Within the block, backward passes are watched for kinks, and where `nonfinite`, they and
        Taylor series for numbers that are not finite, or where `inaccurate` these for a loss of digits."""
        with self._series(nonfinite, inaccurate), observing(self._see_node if nonfinite else self._see_plain):
            yield

    @contextmanager
    def _series(self, nonfinite: bool, inaccurate: bool) -> Iterator[None]:
        if not nonfinite and not inaccurate:
            yield
            return
        # Loaded where there is something to find in a series.
        from gradcli.kinds import taylor

        token = taylor.observer.set(self._see_series if nonfinite else self._see_loss)
        try:
            yield
        finally:
            taylor.observer.reset(token)

    def _see_plain(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        self.see_kink(node, cotangents, pulled)
        if self.felt is not None:
            self.felt.see(node, cotangents, pulled)

    def _see_node(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        self.see_kink(node, cotangents, pulled)
        self.see_backward(node, cotangents, pulled)

    def see_kinks(self, value: Any) -> None:
        """Note every node of the graph of `value` that is not smooth; one without influence on the
        first derivative may have some on the second."""
        with arrays.quiet():
            for node in ancestors(value):
                self.see_kink(node, (1.0,), ())

    def see_kink(self, node: Node, cotangents: Sequence[Any], _pulled: Sequence[Any]) -> None:
        """Note a node that is differentiated where its function is not smooth."""
        if not isinstance(node, PrimitiveNode) or node.span is None or node.span in self.nonsmooth:
            return
        if node.is_smooth() or _all_zero(cotangents[0]):
            return
        name = operation_at(self.program, node.span) or node.primitive.name
        message = f"'{name}' is not differentiable here, for {_describe(node.operands, None)}"
        self.nonsmooth[node.span] = Warning("nonsmooth", "backward", name, node.span, message)

    def see_tie(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Note a comparison of what is equal, or a kink, where the program may go another way nearby; see
        `gradcli.kinds.switching`."""
        span = current_span.get()
        if span is None or span in self.ties or not switches(primitive, operands, params):
            return
        called, where = operation_at(self.program, span), _describe([constant(o) for o in operands], None)
        name = called or primitive.operator or primitive.name
        if called is None and primitive.smooth is None:
            text = f"the branches of '{name}' differ here, in value or derivative, for {where}"
        else:
            text = f"'{name}' is not differentiable here, for {where}"
        self.ties[span] = Warning("nonsmooth", "backward", name, span, text)

    def see_forward(self, span: Span, operation: str, operands: Sequence[Any], result: Any) -> None:
        """Note the first operation whose result is not finite though its operands are, and the
        first whose operands were not finite already."""
        arguments = [constant(o) for o in operands]
        self.seen[span] = operation, arguments
        self._see_coefficient(span)
        phase = "forward" if all(map(_finite, arguments)) else "inputs"
        self._see(phase, span, [result], "'{}' gives {}")

    def see_backward(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        """Note the first node whose operands' cotangents are not finite though its own are."""
        self._see_coefficient(node.span)
        if node.span in self.seen and all_finite(*cotangents):
            results = [p for p in pulled if p is not None]
            self._see("backward", node.span, results, "the derivative of '{}' is {}")

    def _see_series(self, operands: Sequence[Any], result: Jet) -> None:
        if result.varies is None:
            # What is not finite is looked at again as one that is followed.
            return
        bad = next((c for c in result.coefficients if not _finite(c)), None)
        given = (c for o in operands if isinstance(o, type(result)) for c in o.coefficients)
        if bad is not None and all_finite(*given):
            self.unseen[current_span.get()] = bad

    def _see_loss(self, operands: Sequence[Any], result: Jet) -> None:
        from gradcli.calculus.accuracy import is_inaccurate

        if self.lossy is None and is_inaccurate(result) and not any(map(is_inaccurate, operands)):
            self.lossy = current_span.get()

    def inaccurate(self, digits: Mapping[str, int]) -> Warning:
        """The warning of derivatives that lost digits, at the first place that does."""
        from gradcli.calculus.accuracy import loss_text

        return inaccurate(self.program, self.lossy, "'{}' loses digits here: " + loss_text(digits), digits)

    def _see_coefficient(self, span: Span | None) -> None:
        """Note what a series had at this place, now that the operands there are known."""
        bad = self.unseen.pop(span, None)
        if bad is not None and span in self.seen:
            self._see("backward", span, [bad], "the derivative of '{}' is {}")

    def _see(self, phase: str, span: Span, results: Sequence[Any], text: str) -> None:
        bad = next((r for r in results if not _finite(r)), None)
        if bad is None or phase in self.nonfinite:
            return
        name, operands = self.seen[span]
        number, where = _first_nonfinite(bad)
        written_there = operation_at(self.program, span)
        if written_there in (None, name):
            message = f"{text.format(name, _kind(number, where))} for {_describe(operands, where)}"
        else:
            # Another form computes this: its last operation is none that the program has.
            name, expression = written_there, self.program.source[span.start : span.end]
            message = text.format(" ".join(expression.split()), _kind(number, where))
        self.before[phase] = operands, where
        written = "backward" if phase == "backward" else "forward"
        self.nonfinite[phase] = Warning("nonfinite", written, name, span, message)

    def warnings(self, *, finite: bool, value_is_finite: bool, inputs_are_finite: bool) -> list[Warning]:
        """What was noted, where `finite` says so of all results, or of all that kinks do not explain.

        A nan of the value was born forward, or came with an input; it explains those that follow
        backward. Where the value is finite, what was born forward did not reach it.
        """
        switching = [] if self.settled else [*(self.ties | self.nonsmooth).values()]
        if finite:
            return switching
        phases = ("backward",) if value_is_finite else ("forward", "inputs")
        last = self.program.body[-1].span
        if self.stopped:
            why = "a result is not finite, where that comes from takes too many steps to find"
        elif inputs_are_finite:
            name = "result" if not value_is_finite else "derivative"
            why = f"a {name} is not finite, though all numbers that it is made of are"
        else:
            why = "a result is not finite, as an input is not"
        operation = "input" if not inputs_are_finite else operation_at(self.program, last) or "program"
        unborn = Warning("nonfinite", "backward" if value_is_finite else "forward", operation, last, why)
        return [next((self.nonfinite[p] for p in phases if p in self.nonfinite), unborn), *switching]

    def operands_of(self, warning: Warning) -> tuple[list[Any], tuple[int, ...]]:
        """The operands of the operation that a warning is of, and the place of the number in its result that is not
        finite; none where they are not known."""
        return next((self.before[p] for p, known in self.nonfinite.items() if known is warning), ([], ()))


def inaccurate(program: Module, place: Span | None, text: str, digits: Mapping[str, int] | None = None) -> Warning:
    """The warning that digits are lost in the operation at a place, which the text has a gap for; where none does it
    alone, at the last statement."""
    span = program.body[-1].span if place is None else place
    name = operation_at(program, span) or "program"
    return Warning("inaccurate", "backward", name, span, text.format(name), digits)


def _finite(value: Any) -> bool:
    return not (arrays.is_array(value) or isinstance(value, Kind)) or assume(isfinite(constant(value)))


def _all_zero(value: Any) -> bool:
    return assume(equal(constant(value), 0))


def all_finite(*values: Any) -> bool:
    """Whether every number in `values`, None among them aside, is finite."""
    return all(_finite(v) for v in values if v is not None)


def _first_nonfinite(value: Any) -> tuple[float, tuple[int, ...]]:
    """The first such number, and its place; in a batch, its place in its row."""
    numbers = stacked(constant(value))
    array, finite = arrays.on_host(numbers), arrays.on_host(isfinite(numbers))
    if not arrays.shape(array):
        return float(array), ()
    place = tuple(int(i) for i in arrays.numpy_namespace().argwhere(~finite)[0])
    return float(array[place]), place[len(place) - len(arrays.shape(value)) :]


def _kind(number: float, where: tuple[int, ...]) -> str:
    return f"{number!r} at {list(where)}" if where else repr(number)


def _describe(operands: Sequence[Any], where: tuple[int, ...] | None) -> str:
    """The operands as people read them: numbers, or the number at the place in question."""
    texts = [_operand_text(o, where) for o in operands if arrays.is_array(o)]
    if not texts:
        return "its operands"
    return f"{'operand' if len(texts) == 1 else 'operands'} {' and '.join(texts)}"


def _operand_text(operand: Any, where: tuple[int, ...] | None) -> str:
    shape = arrays.shape(operand)
    if not shape:
        return repr(float(operand))
    if where is not None and len(where) >= len(shape):
        tail = where[len(where) - len(shape) :]
        place = tuple(0 if size == 1 else i for i, size in zip(tail, shape))
        if all(i < size for i, size in zip(place, shape)):
            return repr(float(arrays.on_host(operand)[place]))
    return f"of shape {list(shape)}"
