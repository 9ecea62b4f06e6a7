"""Finds where a nan, an infinity or a kink came from, as warnings with a position in the program text.

Rounding errors are estimated from the ordinary backward pass, to decide whether a second run is worthwhile. To first
order the error of a result is the sum over all operations of their rounding error times the derivative of the result by
their output: S. Linnainmaa, "Taylor expansion of the accumulated rounding error", BIT 16 (1976). The magnitudes of
these terms select the runs that are repeated with other roundings to find how many digits are right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from gradcli import arrays
from gradcli.autograd.engine import observing
from gradcli.autograd.modes import current_span
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors
from gradcli.errors import Span
from gradcli.kinds.batch import unwrap_rows
from gradcli.kinds.branch_points import is_at_branch_point
from gradcli.language.operations import operation_at
from gradcli.language.syntax.tree import Module
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.entries.arithmetic import add, subtract
from gradcli.primitives.entries.comparisons import equal, isfinite
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.kinds.jets import Jet


class Warning(NamedTuple):
    """A warning about a result; `span` is its position in the program."""

    code: str
    phase: str
    operation: str
    span: Span
    message: str
    # Approximate numbers of right digits, for derivatives that lost more than half of them.
    digits: Mapping[str, int] | None = None


def unused_parts(program: Module) -> list[Warning]:
    """Return warnings about parts of a program that are not used."""
    if len(program.body) == 1:
        return []
    # Loaded on demand: a single statement uses all its parts.
    from gradcli.language.names.unused import unused

    return [Warning("unused", "parse", "statement", part.span, part.message) for part in unused(program)]


class Watch:
    """Collects warnings while a program runs forward and backward."""

    def __init__(self, program: Module) -> None:
        self.program = program
        # Whether the run stopped at its limits.
        self.stopped = False
        self.nonfinite: dict[str, Warning] = {}
        self.nonsmooth: dict[Span, Warning] = {}
        # The first non-finite coefficient of a Taylor series that was made of finite ones, by span.
        self.unseen: dict[Span | None, Any] = {}
        # By phase: the operands of the operation with a non-finite result, and the index of the number in that result.
        self.before: dict[str, tuple[list[Any], tuple[int, ...]]] = {}
        # The name of the operation at each span, and its latest operands.
        self.seen: dict[Span, tuple[str, list[Any]]] = {}
        # Comparisons of equal numbers, where the derivative may be that of a single branch.
        self.ties: dict[Span, Warning] = {}
        # Decompositions of matrices that are not symmetric, by span.
        self.asymmetric: dict[Span, Warning] = {}
        # Remainders and quotients of numbers whose last digits are not known, by span.
        self.without_digits: dict[Span, Warning] = {}
        # Whether the value has all derivatives at the points where the program switches; None where it does not switch.
        self.settled: bool | None = None
        # The first operation whose Taylor series lost digits.
        self.lossy: Span | None = None
        # The estimate of rounding errors, where requested.
        self.rounding_estimate: RoundingErrorEstimate | None = None

    @contextmanager
    def roundings(self) -> Iterator[None]:
        """Within the block, record the forward pass for the rounding-error estimate of the backward pass."""
        self.rounding_estimate = RoundingErrorEstimate()
        with self.rounding_estimate.recording():
            yield

    @contextmanager
    def derivatives(self, *, nonfinite: bool, inaccurate: bool) -> Iterator[None]:
        """Within the block, watch backward passes for kinks.

        With `nonfinite`, watch them and Taylor series for non-finite numbers; with `inaccurate`, watch Taylor series
        for a loss of digits.
        """
        with self._series(nonfinite, inaccurate), observing(self._see_node if nonfinite else self._see_plain):
            yield

    @contextmanager
    def _series(self, nonfinite: bool, inaccurate: bool) -> Iterator[None]:
        if not nonfinite and not inaccurate:
            yield
            return
        # Loaded on demand: most runs do not watch Taylor series.
        from gradcli.kinds import jets

        token = jets.observer.set(self._see_series if nonfinite else self._see_loss)
        try:
            yield
        finally:
            jets.observer.reset(token)

    def _see_plain(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        self.see_kink(node, cotangents, pulled)
        if self.rounding_estimate is not None:
            self.rounding_estimate.see(node, cotangents, pulled)

    def _see_node(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        self.see_kink(node, cotangents, pulled)
        self.see_backward(node, cotangents, pulled)

    def see_kinks(self, value: Any) -> None:
        """Note every non-smooth node of the graph of `value`: even one that does not affect the first derivative may
        affect the second."""
        with arrays.quiet():
            for node in ancestors(value):
                self.see_kink(node, (1.0,), ())

    def see_kink(self, node: Node, cotangents: Sequence[Any], _pulled: Sequence[Any]) -> None:
        """Note a node that is differentiated at a point where its function is not smooth."""
        if not isinstance(node, PrimitiveNode) or node.span is None or node.span in self.nonsmooth:
            return
        # A factor of 0 flattens a kink, and makes a kink of a jump.
        if node.is_smooth() or (assume(equal(constant(cotangents[0]), 0)) and not node.primitive.jumps):
            return
        name = operation_at(self.program, node.span) or node.primitive.name
        message = f"'{name}' is not differentiable here, for {_describe(node.operands, None)}"
        self.nonsmooth[node.span] = Warning("nonsmooth", "backward", name, node.span, message)

    def see_tie(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Note a comparison of equal numbers, or a kink, where nearby points take another branch; see
        `gradcli.kinds.branch_points`."""
        span = current_span.get()
        if span is None or span in self.ties or not is_at_branch_point(primitive, operands, params):
            return
        called, where = operation_at(self.program, span), _describe([constant(o) for o in operands], None)
        name = called or primitive.operator or primitive.name
        if called is None and primitive.smooth is None:
            text = f"the branches of '{name}' differ here, in value or derivative, for {where}"
        else:
            text = f"'{name}' is not differentiable here, for {where}"
        self.ties[span] = Warning("nonsmooth", "backward", name, span, text)

    def see_asymmetry(self, kind: str) -> None:
        """Note that a decomposition takes the symmetric, or Hermitian, part of a matrix that is not of that kind."""
        span = current_span.get() or self.program.body[-1].span
        name = operation_at(self.program, span) or "program"
        text = f"the matrix of '{name}' is not {kind}; its {kind} part is used"
        self.asymmetric.setdefault(span, Warning("asymmetric", "forward", name, span, text))

    def see_lost_digits(self, operator: str, number: float) -> None:
        """Note a remainder or quotient of a number beyond 2**53."""
        span = current_span.get() or self.program.body[-1].span
        name = operation_at(self.program, span) or "program"
        text = (
            f"'{operator}' of {number:.6g} depends on digits that floats beyond 2**53 do not have: they are "
            f"{math.ulp(number):.3g} apart; --digits computes with all"
        )
        self.without_digits.setdefault(span, Warning("inaccurate", "forward", name, span, text))

    def see_forward(self, span: Span, operation: str, operands: Sequence[Any], result: Any) -> None:
        """Note the first operation with a non-finite result of finite operands ("forward"), and the first with
        non-finite operands ("inputs")."""
        arguments = [constant(o) for o in operands]
        self.seen[span] = operation, arguments
        self._see_coefficient(span)
        phase = "forward" if all(map(_finite, arguments)) else "inputs"
        self._see(phase, span, [result], "'{}' gives {}")

    def see_backward(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        """Note the first node that turns finite cotangents into non-finite ones."""
        self._see_coefficient(node.span)
        if node.span in self.seen and all_finite(*cotangents):
            results = [p for p in pulled if p is not None]
            self._see("backward", node.span, results, "the derivative of '{}' is {}")

    def _see_series(self, operands: Sequence[Any], result: Jet) -> None:
        if result.varies is None:
            # A non-finite coefficient is examined later, in a series that tracks which elements vary.
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
        """The warning that derivatives lost digits, at the first operation where they did."""
        from gradcli.calculus.accuracy import loss_text

        return inaccurate(self.program, self.lossy, "'{}' loses digits here: " + loss_text(digits), digits)

    def _see_coefficient(self, span: Span | None) -> None:
        """Report the coefficient that a series had at this span, now that the operands there are known."""
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
            # A rewritten form computed this, whose last operation is not in the program text.
            name, expression = written_there, self.program.source[span.start : span.end]
            message = text.format(" ".join(expression.split()), _kind(number, where))
        self.before[phase] = operands, where
        written = "backward" if phase == "backward" else "forward"
        self.nonfinite[phase] = Warning("nonfinite", written, name, span, message)

    def warnings(self, *, finite: bool, value_is_finite: bool, inputs_are_finite: bool) -> list[Warning]:
        """Return the warnings; only those of kinks where `finite` says that all results, or all that kinks do not
        explain, are finite.

        A non-finite value comes from the forward pass or from an input, which also explains non-finite derivatives.
        Where the value is finite, non-finite numbers of the forward pass did not reach it, and only the backward pass
        is considered.
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
        """Return the operands of the operation that a warning is about, and the index of the non-finite number in its
        result.

        Both are empty where they are not known.
        """
        return next((self.before[p] for p, known in self.nonfinite.items() if known is warning), ([], ()))


def inaccurate(program: Module, place: Span | None, text: str, digits: Mapping[str, int] | None = None) -> Warning:
    """The warning that the operation at `place` loses digits; `text` has one gap for its name.

    Where no single operation is responsible (None), the place is the last statement.
    """
    span = program.body[-1].span if place is None else place
    name = operation_at(program, span) or "program"
    return Warning("inaccurate", "backward", name, span, text.format(name), digits)


def _finite(value: Any) -> bool:
    return not (arrays.is_array(value) or isinstance(value, Kind)) or assume(isfinite(constant(value)))


def all_finite(*values: Any) -> bool:
    """Return whether every number in `values` is finite; None is skipped."""
    return all(_finite(v) for v in values if v is not None)


def _first_nonfinite(value: Any) -> tuple[float | complex, tuple[int, ...]]:
    """Return the first non-finite number and its index; in a batch, the index within its row."""
    numbers = unwrap_rows(constant(value))
    array, finite = arrays.on_host(numbers), arrays.on_host(isfinite(numbers))
    if not arrays.shape(array):
        return _number(array), ()
    place = tuple(int(i) for i in arrays.numpy_namespace().argwhere(~finite)[0])
    return _number(array[place]), place[len(place) - len(arrays.shape(value)) :]


def _number(array: Any) -> float | complex:
    return complex(array) if arrays.is_complex(array) else float(array)


def _kind(number: float | complex, where: tuple[int, ...]) -> str:
    return f"{number!r} at {list(where)}" if where else repr(number)


def _describe(operands: Sequence[Any], where: tuple[int, ...] | None) -> str:
    """Describe operands for a message: as numbers, or as the number at the index in question."""
    texts = [_operand_text(o, where) for o in operands if arrays.is_array(o)]
    if not texts:
        return "its operands"
    return f"{'operand' if len(texts) == 1 else 'operands'} {' and '.join(texts)}"


def _operand_text(operand: Any, where: tuple[int, ...] | None) -> str:
    shape = arrays.shape(operand)
    if not shape:
        return repr(_number(operand))
    if where is not None and len(where) >= len(shape):
        tail = where[len(where) - len(shape) :]
        place = tuple(0 if size == 1 else i for i, size in zip(tail, shape))
        if all(i < size for i, size in zip(place, shape)):
            return repr(_number(arrays.on_host(operand)[place]))
    return f"of shape {list(shape)}"


# Ratio of the largest term to a result from which a run is repeated. It is some bits below half of the digits, as terms
# add up.
_SUSPECT = {"float64": 2.0**22, "float32": 2.0**8}
# Limits on the number of nodes and on the size of tensors; larger runs are not estimated.
_MOST_NODES = 2_000
_MOST_ELEMENTS = 1_000
# The types of results that are single numbers.
_NUMBERS = frozenset({float, complex})


class RoundingErrorEstimate:
    """The largest error term of one run, and the operation that it belongs to."""

    def __init__(self) -> None:
        self.place: Span | None = None
        # Whether every operation gave a scalar.
        self._scalar = True
        # Whether a sum of nonzero numbers is zero.
        self._vanished = False
        # By node or leaf, the sum of the nonzero cotangents sent to it.
        self._sent: dict[Any, complex] = {}
        self._largest = 0.0
        self._results: dict[Node, Any] = {}
        self._whole = True

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within the block, keep the results of operations."""
        token = recorders.set((self._keep, *recorders.get()))
        try:
            yield
        finally:
            recorders.reset(token)

    def _keep(self, node: Node, result: Any) -> None:
        if type(result) not in _NUMBERS:
            self._scalar = False
            if arrays.backend_of(type(result)) != "numpy" or arrays.size(result) > _MOST_ELEMENTS:
                self._whole = False
                return
        elif result == 0.0 and isinstance(node, PrimitiveNode) and node.primitive in (add, subtract):
            self._vanished = True
        if len(self._results) < _MOST_NODES:
            self._results[node] = result
        else:
            self._whole = False

    def see(self, node: Node, cotangents: Sequence[Any], pulled: Sequence[Any]) -> None:
        """Note the error term of an operation that a backward pass visits, and the cotangents that it sends to its
        operands."""
        for edge, cotangent in zip(node.edges, pulled):
            if edge is not None and type(cotangent) in _NUMBERS and cotangent != 0.0:
                self._sent[edge[0]] = self._sent.get(edge[0], 0.0) + cotangent
        result = self._results.get(node)
        # Batched cotangents are those of several backward passes, not of the gradient.
        if result is not None and cotangents[0] is not None and not isinstance(cotangents[0], Kind):
            size = _size(cotangents[0], result)
            if size > self._largest:
                self._largest, self.place = size, node.span

    @property
    def is_whole(self) -> bool:
        """True if all operations were noted, and there are some."""
        return self._whole and bool(self._results)

    def is_suspect(self, value: Any, gradients: Mapping[str, Any], leaves: Mapping[str, Any]) -> bool:
        """Return whether the scalar value or a gradient may have lost half of its digits."""
        if not self.is_whole:
            return False
        shares: list[float] = []
        for name, g in gradients.items():
            if type(g) in _NUMBERS:
                shares.append(_size(g, leaves[name]))
            elif g is not None:
                shares += _sizes(g, leaves[name])
        sizes = [_modulus(complex(value)), *shares]
        if min(sizes) == 0.0 and (not self._scalar or self._vanished or 0.0 in self._sent.values()):
            return True
        smallest = min([sizes[0], *(s for s in shares if s > 0.0)])
        return max(self._largest, *sizes) > _SUSPECT[arrays.real_dtype(arrays.dtype_name(value))] * smallest


def _modulus(number: complex) -> float:
    # `abs` raises an exception where the result is beyond floats.
    return math.hypot(number.real, number.imag)


def _size(derivative: Any, number: Any) -> float:
    """The largest magnitude of a derivative times the number that it is taken by."""
    if type(derivative) in _NUMBERS and type(number) in _NUMBERS:
        return _modulus(derivative * number)
    products = _products(derivative, number)
    return 0.0 if products is None else float(products.max(initial=0.0))


def _sizes(derivative: Any, number: Any) -> Sequence[float]:
    """The magnitudes of a derivative times the numbers that it is taken by."""
    products = _products(derivative, number)
    return [] if products is None else products.ravel().tolist()


def _products(derivative: Any, number: Any) -> Any:
    """The magnitudes of the products as a NumPy array; None for arrays of other libraries."""
    if arrays.backend_of(type(derivative)) not in ("numpy", None):
        return None
    xp = arrays.numpy_namespace()
    with arrays.quiet():
        return xp.abs(xp.multiply(derivative, number))
