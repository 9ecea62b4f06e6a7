"""Estimates how many digits of a value and its gradient were lost to rounding.

Two estimates are combined: first-order error bounds, and the differences from a second run with other roundings, which
also shows effects beyond first order.

To first order, the error of a result is the sum over all operations of their rounding error times the derivative of the
result by their output: S. Linnainmaa, "Taylor expansion of the accumulated rounding error", BIT 16 (1976). The gradient
consists of operations of its own, so the backward pass is recorded as well and differentiated by its intermediate
results. The rounding error of an arithmetic operation is computed exactly (T. Dekker, "A floating-point technique for
extending the available precision", Numerische Mathematik 18, 1971); that of other operations is bounded. Equal
operations on equal numbers have equal rounding errors and count as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from gradcli import arrays
from gradcli.arrays import floats
from gradcli.autograd.engine import observing
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.primitive_node import PrimitiveNode, fit
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.accuracy import digits_of, first_digits_left, half_of_digits, largest, loss_of_value, loss_text
from gradcli.calculus.derivatives import gradients
from gradcli.calculus.first_orders import Function
from gradcli.calculus.higher_orders import leaf_with_shadow
from gradcli.evaluation.diagnose import RoundingErrorEstimate, Warning, inaccurate
from gradcli.evaluation.inner_derivative_accuracy import number_of, shadow_distance
from gradcli.functionals import shortfalls
from gradcli.kinds import jets
from gradcli.kinds.perturbed_roundings import Perturbation, is_exact_result, is_first_power, is_short, rounding_key
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.entries.arithmetic import absolute, add, divide, identity, multiply, negative, subtract
from gradcli.primitives.entries.complex_parts import conjugate, from_parts, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.powers import sqrt, whole_power
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.primitive import Primitive

# Bound of the error of non-arithmetic functions in units of the unit roundoff: 2 units in the last place.
_FUNCTION_ERROR = 4.0
# Bounds on the number of terms of a sum whose rounding error is computed, and on their size, so that none overflows.
_MOST_SUMMED, _LARGEST_SUMMED = 1_000, 1e300
# Dekker's splitter: it splits a 53-bit number into two of 26 bits.
_SPLITTER = 2.0**27 + 1.0


class _RoundingError(NamedTuple):
    """The rounding error of an operation: its value if `known`, else a bound of its magnitude.

    `constants` are the operands that are rounded constants, by index. Operations with equal `key` have equal rounding
    errors.
    """

    key: Any
    error: Any
    known: bool
    constants: Mapping[int, float]
    operands: Sequence[Any]
    result: Any


class ErrorBounds(NamedTuple):
    """Bounds of the error of a number, and the gradients of that number.

    `without_cancellation` assumes that no errors cancel; in `with_cancellation` errors of known sign cancel. `unknown` is
    the share of errors of which only bounds are known.
    """

    without_cancellation: float
    with_cancellation: float
    gradients: Sequence[Any]
    unknown: float


class ErrorTerms:
    """The rounding errors of the operations of a run, including its recorded backward pass."""

    def __init__(self, exact: Collection[float]) -> None:
        # Literals that count as exact although they have many digits.
        self._exact = exact
        self._steps: dict[Node, _RoundingError] = {}
        self._last: tuple[Sequence[Any], Any] = ((), None)

    def __len__(self) -> int:
        return len(self._steps)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within the block, keep the operations on leaves that are Taylor series."""
        token = recorders.set((self._keep, *recorders.get()))
        seen = jets.observer.set(self._see_operands)
        try:
            yield
        finally:
            jets.observer.reset(seen)
            recorders.reset(token)

    def _see_operands(self, operands: Sequence[Any], result: Any) -> None:
        self._last = operands, result

    def _keep(self, node: Node, result: Any) -> None:
        operands, made = self._last
        if made is not result or not isinstance(node, PrimitiveNode):
            return
        numbers = [constant(o) for o in operands]
        constants = {
            i: operand
            for i, operand in enumerate(operands)
            if type(operand) is float
            and math.isfinite(operand)
            and not (is_short(operand) or abs(operand) in self._exact)
        }
        number = constant(result)
        with arrays.quiet():
            error, known = _rounded_off(node.primitive, number, numbers, node.params)
        if constants or (error is not None and not (known and _is_zero(error))):
            key = rounding_key(node.primitive, numbers, node.params) or node
            self._steps[node] = _RoundingError(key, 0.0 if error is None else error, known, constants, numbers, number)

    def bounds(self, result: Tensor, cotangent: Any, leaves: Sequence[Tensor]) -> ErrorBounds:
        """Bound the error of the sum of `result` weighted by `cotangent`."""
        terms: dict[Any, Any] = {}
        known: set[Any] = set()

        def see(node: Node, cotangents: Sequence[Any], _pulled: Sequence[Any]) -> None:
            step = self._steps.get(node)
            if step is not None and cotangents[0] is not None:
                if step.known:
                    known.add(step.key)
                for key, term in _terms(node, step, constant(cotangents[0])):
                    terms[key] = terms[key] + term if key in terms else term

        with observing(see):
            found = gradients(result, leaves, cotangent)
        with arrays.quiet():
            without_cancellation = math.fsum(_size(term) for term in terms.values())
            unknown = math.fsum(_size(term) for key, term in terms.items() if key not in known)
            joint = math.fsum(_total(term) for key, term in terms.items() if key in known)
        return ErrorBounds(without_cancellation, abs(joint) + unknown, found, unknown)


def _terms(node: Any, step: _RoundingError, cotangent: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (key, term): the first-order contributions of an operation's rounding error and of its rounded constants to
    a result."""
    yield step.key, cotangent * step.error
    for i, number in step.constants.items():
        if node.primitive.differentiable(len(step.operands)) >> i & 1:
            by = node.primitive.rule(i)(cotangent, step.result, *step.operands, **node.params)
            yield number, fit(by, number) * (arrays.epsilon("float64") / 2 * number)


def _size(term: Any) -> float:
    if type(term) is float:
        return 0.0 if math.isnan(term) else abs(term)
    xp = arrays.numpy_namespace()
    return float(xp.sum(xp.where(xp.isnan(term), 0.0, xp.abs(term))))


def _total(term: Any) -> float:
    if type(term) is float:
        return term if math.isfinite(term) else 0.0
    xp = arrays.numpy_namespace()
    return float(xp.sum(xp.where(xp.isfinite(term), xp.real(term), 0.0)))


def _rounded_off(
    primitive: Primitive, result: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Return the rounding error of each element (None: exact), and whether it is known or only a bound."""
    if (
        primitive in (negative, identity)
        or primitive in _EXACT_OF_PARTS
        or primitive.moves
        or primitive.selects
        or primitive.truths
    ):
        return None, True
    if primitive is absolute and not any(map(arrays.is_complex, operands)):
        return None, True
    unit = arrays.epsilon(arrays.real_dtype(arrays.dtype_name(result))) / 2
    if unit == 0.0:
        return None, True
    if is_first_power(primitive, params):
        return None, True
    exactly = _square_error if primitive is whole_power and params["n"] == 2.0 else _EXACT_ERRORS.get(primitive)
    in_complex = any(map(arrays.is_complex, (result, *operands)))
    if in_complex and all(map(_is_short, (result, *operands))):
        return None, True
    # The parts of complex products and quotients are sums of several roundings: they have the bound of a function.
    if exactly is not None and (primitive in (add, subtract) or not in_complex):
        found = exactly(*map(_wide, (result, *operands)))
        # Splitting may overflow for large numbers; the bound of half an ulp remains.
        return (found, True) if _is_finite(found) else (unit * abs(result), False)
    if type(result) is float and not in_complex:
        summed = _summands(primitive, operands)
        if summed is not None:
            return math.fsum([*summed, -result]), True
    if all(type(n) is float for n in (result, *operands)):
        if is_exact_result(result, operands):
            return None, True
    elif not primitive.elementwise and all(map(_is_short, (result, *operands))):
        # Sums of integers.
        return None, True
    if primitive.elementwise:
        return _FUNCTION_ERROR * unit * abs(result), False
    # A sum rounds each partial sum.
    size = max(map(arrays.size, operands))
    if primitive.multilinear or primitive.reduces is add:
        terms = bind(primitive, [abs(o) for o in operands], params)
    else:
        terms = abs(result)
    return (_FUNCTION_ERROR + math.log2(max(size, 1))) * unit * terms, False


def _summands(primitive: Primitive, operands: Sequence[Any]) -> list[float] | None:
    """The numbers whose sum is the result of a sum of all elements, or of a product of two vectors; None for any other
    operation, and where numbers are too large."""
    if max(map(arrays.size, operands), default=0) > _MOST_SUMMED:
        return None
    terms = [*map(_wide, operands)]
    if primitive is sum_:
        found = arrays.numpy_namespace().asarray(terms[0]).ravel()
    elif primitive is matmul and all(arrays.shape(t) == (arrays.size(t),) for t in terms):
        products = terms[0] * terms[1]
        found = arrays.numpy_namespace().concat([products, _product_error(products, *terms)])
    else:
        return None
    return found.tolist() if abs(found).max(initial=0.0) < _LARGEST_SUMMED else None


def _wide(number: Any) -> Any:
    """Convert to double precision, in which the rounding errors of float32 operations are exact."""
    if type(number) in (float, complex):
        return number
    return arrays.numpy_namespace().asarray(number, "complex128" if arrays.is_complex(number) else "float64")


def _is_finite(number: Any) -> bool:
    return math.isfinite(number) if type(number) is float else bool(arrays.numpy_namespace().isfinite(number).all())


def _is_zero(error: Any) -> bool:
    return error == 0.0 if type(error) is float else not arrays.numpy_namespace().any(error)


def _is_short(number: Any) -> bool:
    """Return whether all numbers have at most 24 significant bits, so that they are not results of rounding."""
    if type(number) is float:
        return is_short(number)
    xp = arrays.numpy_namespace()
    if arrays.is_complex(number):
        return all(map(_is_short, (xp.real(number), xp.imag(number))))
    fractions, _ = xp.frexp(number)
    return bool(xp.all(xp.equal(xp.ldexp(fractions, 24) % 1.0, 0.0)))


def _sum_error(total: Any, a: Any, b: Any) -> Any:
    other = total - a
    return (a - (total - other)) + (b - other)


def _product_error(product: Any, a: Any, b: Any) -> Any:
    high_a, low_a = _split(a)
    high_b, low_b = _split(b)
    return low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)


def _quotient_error(quotient: Any, a: Any, b: Any) -> Any:
    product = quotient * b
    return _divided((a - product) - _product_error(product, quotient, b), b)


def _sqrt_error(root: Any, x: Any) -> Any:
    product = root * root
    return _divided((x - product) - _product_error(product, root, root), 2.0 * root)


def _square_error(square: Any, x: Any) -> Any:
    return _product_error(square, x, x)


def _divided(a: Any, b: Any) -> Any:
    return floats.divide(a, b) if type(a) is float and type(b) is float else a / b


def _split(a: Any) -> tuple[Any, Any]:
    """Split a number into a sum of two numbers with half as many bits."""
    c = _SPLITTER * a
    high = c - (c - a)
    return high, a - high


_EXACT_OF_PARTS = frozenset({conjugate, from_parts, imaginary_part, real_part})
_EXACT_ERRORS: Mapping[Primitive, Callable[..., Any]] = {
    add: _sum_error,
    subtract: lambda total, a, b: _sum_error(total, a, -b),
    multiply: _product_error,
    divide: _quotient_error,
    sqrt: _sqrt_error,
}


# Assumed relative error of inputs that are not short decimals: 8 units in the last place.
_OF_INPUTS = 2.0**-49
# Bound on the ratio of the error of an operation in the second run to its ordinary rounding error.
_EXAGGERATED = 32.0
# Relative accuracy of the first-order sum of rounding errors with known signs.
_OF_TERMS = 2.0**-44
# Advice that ends each warning.
_MORE = "; --digits computes more, --certify proves how many are right"


def first_losses(
    program: tree.Module,
    rounding_estimate: RoundingErrorEstimate,
    run: Function,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
) -> list[Warning]:
    """Return warnings where the scalar value or its gradient lost more than half of the digits, at the operation with
    the largest error term.

    `run` evaluates the program for given leaves.
    """
    roundings = Perturbation(spare_exact=True)
    terms = _terms_of(program)
    leaves = {n: leaf_with_shadow(v, roundings) for n, v in bindings.items() if arrays.is_floating(v)}
    # Integrals and the like that only this estimate needs are not among the results.
    with shortfalls.ignoring(), terms.recording():
        value = run(leaves)
        wrt = [name for name in wrt if name in leaves]
        found = dict(zip(wrt, gradients(value, [leaves[name] for name in wrt], create_graph=True)))
    judge = LossEstimator(terms, [*leaves.values()])
    with shortfalls.ignoring():
        judged = {name: judge.digits(gradient) for name, gradient in found.items() if gradient is not None}
        return loss_warnings(program, rounding_estimate, judge.loss(value), judged)


def _terms_of(program: tree.Module) -> ErrorTerms:
    """The error terms of a run of a program, whose numbers are taken as exact."""
    return ErrorTerms({node.value for node in tree.all_nodes(program) if isinstance(node, tree.Number)})


def loss_warnings(
    program: tree.Module,
    rounding_estimate: RoundingErrorEstimate,
    loss: RoundingLoss | None,
    judged: Mapping[str, int | None],
) -> list[Warning]:
    """Return the warnings of the `loss` of a value, and of the right digits of its derivatives; None if there is none."""
    warnings = []
    if loss is not None:
        digits = digits_of(loss.relative)
        text = loss_of_value(digits if loss.told else None)
        warnings.append(_rounding_warning(program, rounding_estimate, "forward", text, {"value": digits}))
    left = {name: digits for name, digits in judged.items() if digits is not None}
    if left:
        warnings.append(_rounding_warning(program, rounding_estimate, "backward", loss_text(left), left))
    return warnings


def _rounding_warning(
    program: tree.Module, rounding_estimate: RoundingErrorEstimate, phase: str, text: str, left: Mapping[str, int]
) -> Warning:
    found = inaccurate(
        program, rounding_estimate.place, "the rounding error of '{}' is amplified: " + text + _MORE, left
    )
    return found._replace(phase=phase)


class RoundingLoss(NamedTuple):
    """The relative error of a number, and whether the number is distinguished from 0."""

    relative: float
    told: bool


class LossEstimator:
    """Judges the value of a run and its gradient by its rounding errors."""

    # Bound on the operations that all backward passes visit, with one pass for each element of a gradient.
    MOST_VISITS = 5_000

    def __init__(self, terms: ErrorTerms, leaves: Sequence[Tensor]) -> None:
        self.terms = terms
        self.leaves = leaves
        self.inputs = [number_of(leaf) for leaf in leaves]
        self.exact = all(map(_is_exact, self.inputs))

    def digits(self, gradient: Tensor) -> int | None:
        """Return how many digits of the worst element of a gradient are right; None where at least half are."""
        if arrays.size(gradient) * len(self.terms) > self.MOST_VISITS:
            distance = shadow_distance(gradient)
            return None if distance is None else first_digits_left(number_of(gradient), distance)
        losses = [loss for unit in units(gradient) for loss in [self.loss(gradient, unit)] if loss is not None]
        return min((digits_of(loss.relative) for loss in losses), default=None)

    def loss(self, result: Any, unit: Any = None, modulus: float | None = None) -> RoundingLoss | None:
        """Return the loss of a number, or of the gradient element that `unit` selects; with `modulus`, of a number with
        this modulus that it is a part of.

        None where less than half of the digits are lost, where the number is as close to 0 as the uncertainty of the
        inputs explains, or where no operation rounded.
        """
        if not isinstance(result, Tensor) or not result.requires_grad or not len(self.terms):
            return None
        number, distance = (element(numbers, unit) for numbers in (number_of(result), shadow_distance(result)))
        bound, cancelled, gradient, unknown = self.terms.bounds(result, unit, self.leaves)
        size = abs(number) if modulus is None else modulus
        if size == 0.0 < bound and cancelled <= _OF_TERMS * bound:
            # After correction by the known rounding errors, the number is 0 again.
            return None
        if modulus == distance == 0.0 and unknown > 0.5 * bound:
            # Complex numbers have bounds where their parts are exact, as the real part of x/2j is.
            return None
        # Errors cancel to first order only.
        error = min(bound, cancelled + bound * (bound / size)) if size > bound else bound
        error = max(error, distance / _EXAGGERATED)
        if error == 0.0 or error <= half_of_digits(number_of(result)) * (size - error):
            return None
        # A 0 whose error is not known may be right, as at a root of an equation, and an element near 0 of a gradient is
        # one beside larger ones.
        is_wrong = unit is None and (size > 0.0 or cancelled - unknown > unknown + _OF_TERMS * bound)
        if not (self.exact and is_wrong) and max(size, error) <= self._by_inputs(gradient):
            return None
        return RoundingLoss(error / (size - error), True) if size > error else RoundingLoss(1.0, False)

    def _by_inputs(self, gradient: Sequence[Any]) -> float:
        """Bound the error of a number that is due to the rounding of the inputs."""
        shares = (largest(multiply(number_of(g), x)) for g, x in zip(gradient, self.inputs) if g is not None)
        return _OF_INPUTS * math.fsum(shares)


def _is_exact(number: Any) -> bool:
    """Return whether an input is taken as exact: each of its numbers has few binary digits, or is the whole number that
    its shortest decimals say, as 1e16 is."""
    if arrays.is_complex(number):
        return False
    elements = [number] if type(number) is float else arrays.on_host(number).ravel().tolist()
    return all(
        is_short(x) or (math.isfinite(x) and x == x // 1.0 and int(x) == int(Decimal(repr(x)))) for x in elements
    )


def units(gradient: Tensor) -> Iterator[Any]:
    """Yield one unit cotangent for each element of a gradient; None for a scalar."""
    if not gradient.shape:
        yield None
        return
    for row in arrays.numpy_namespace().eye(arrays.size(gradient)):
        yield row.reshape(gradient.shape)


def element(numbers: Any, unit: Any) -> float:
    """The number, or the array element that `unit` selects; 0 where there are no numbers or it is not finite."""
    if numbers is None:
        return 0.0
    number = float(numbers if unit is None else arrays.on_host(numbers)[unit == 1.0][0])
    return number if math.isfinite(number) else 0.0


def complex_losses(
    program: tree.Module,
    rounding_estimate: RoundingErrorEstimate,
    run: Function,
    bindings: Mapping[str, Any],
    wrt: Sequence[str],
) -> list[Warning]:
    """Return warnings where the scalar value or its derivatives lost more than half of the digits.

    `run` evaluates the program for given leaves; some of them, or the value, are complex. The real and imaginary parts
    of complex inputs are leaves of their own. The errors of the parts of a number are compared with its modulus: a part
    that is far smaller than the other may have lost more digits.
    """
    roundings = Perturbation(spare_exact=True)
    terms = _terms_of(program)
    leaves = {n: _leaves(v, roundings) for n, v in bindings.items() if arrays.is_inexact(v)}
    with shortfalls.ignoring(), terms.recording():
        value = run({name: from_parts(*parts) if len(parts) > 1 else parts[0] for name, parts in leaves.items()})
        parts = [real(value), imag(value)] if arrays.is_complex(value) else [value]
        found = {name: _derivative(parts, leaves[name]) for name in wrt if name in leaves}
    judge = LossEstimator(terms, [leaf for both in leaves.values() for leaf in both])
    with shortfalls.ignoring():
        judged = {name: _digits(judge, derivative) for name, derivative in found.items() if derivative}
        return loss_warnings(program, rounding_estimate, _loss(judge, parts, None), judged)


def _leaves(number: Any, roundings: Perturbation) -> list[Tensor]:
    """An input as a leaf, a complex one as two."""
    parts = [real(number), imag(number)] if arrays.is_complex(number) else [number]
    return [leaf_with_shadow(part, roundings) for part in parts]


def _derivative(parts: Sequence[Any], leaves: Sequence[Tensor]) -> list[Tensor]:
    """The parts of the derivative by an input, without those that are 0 everywhere.

    By the Cauchy-Riemann equations, the real part of a value determines its derivative by a complex input.
    """
    found = [gradients(part, leaves, create_graph=True) for part in (parts[:1] if len(leaves) > 1 else parts)]
    return [g for pair in found for g in pair if g is not None]


def _digits(judge: LossEstimator, parts: Sequence[Tensor]) -> int | None:
    """The number of correct digits of the worst element of a derivative; None where at least half are correct."""
    if sum(arrays.size(part) for part in parts) * len(judge.terms) > judge.MOST_VISITS:
        return None
    # An element that is exactly 0 has no digits to lose, though the derivative of z/z, for example, has error terms.
    losses = [
        loss
        for unit in units(parts[0])
        if any(element(number_of(part), unit) for part in parts)
        for loss in [_loss(judge, parts, unit)]
        if loss is not None
    ]
    return min((digits_of(loss.relative) for loss in losses), default=None)


def _loss(judge: LossEstimator, parts: Sequence[Any], unit: Any) -> RoundingLoss | None:
    """The loss of a number by its parts, of an element of them with `unit`."""
    modulus = math.hypot(*(element(number_of(part), unit) for part in parts))
    losses = [judge.loss(part, unit, modulus) for part in parts]
    return max((loss for loss in losses if loss is not None), key=lambda loss: loss.relative, default=None)
