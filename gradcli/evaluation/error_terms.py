"""Bounds the effect of rounding errors on a value and its gradient, to first order.

The error of a result is the sum over all operations of their rounding error times the derivative of the result by their
output: S. Linnainmaa, "Taylor expansion of the accumulated rounding error", BIT 16 (1976). The gradient consists of
operations of its own, so the backward pass is recorded as well and differentiated by its intermediate results. The
rounding error of an arithmetic operation is computed exactly (T. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18, 1971); that of other operations is bounded. Equal operations on equal
numbers have equal rounding errors and count as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli import arrays
from gradcli.arrays import floats
from gradcli.autograd.engine import observing
from gradcli.autograd.node import Node, recorders
from gradcli.autograd.primitive_node import PrimitiveNode, fit
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.kinds import jets
from gradcli.kinds.perturbed_roundings import is_exact_result, is_first_power, is_short, rounding_key
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.entries.arithmetic import absolute, add, divide, identity, multiply, negative, subtract
from gradcli.primitives.entries.complex_parts import conjugate, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.complex_numbers import from_parts
from gradcli.primitives.entries.powers import sqrt, whole_power
from gradcli.primitives.primitive import Primitive

# Bound of the error of non-arithmetic functions in units of the unit roundoff: 2 units in the last place.
_FUNCTION_ERROR = 4.0
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
