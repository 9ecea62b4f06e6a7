"""Elementwise primitives as NumPy functions that write into an existing array.

Each is called as `function(*operands, out)`. `out` may be one of the operands, except for primitives in `NOT_IN_PLACE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gradcli import arrays
from gradcli.arrays.definitions import common_definitions
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, exponential, powers
from gradcli.primitives.entries.elementwise import trigonometric
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation

Into = Callable[..., Any]

_FLOATING = frozenset({"float64", "float32"})

NOT_IN_PLACE = frozenset({comparisons.where})
# Functions of one operand that are several calls of NumPy.
OF_SEVERAL_CALLS = frozenset(
    {powers.rsqrt, exponential.sigmoid, trigonometric.sech_square, trigonometric.over_one_plus_square}
)

# With fewer elements, a masked copy is as fast as selecting by bit operations.
_FEW = 1024


@cache
def _own() -> Mapping[Primitive, Into]:
    """Primitives that are not a single NumPy function, or one with a different call."""
    np = arrays.numpy_namespace()

    def rsqrt(x: Any, out: Any) -> None:
        np.divide(1.0, np.sqrt(x, out), out)

    def sigmoid(x: Any, out: Any) -> None:
        low = np.less(x, np.SIGMOID_IS_EXP)
        below = np.exp(np.extract(low, x)) if low.any() else None
        np.exp(np.negative(x, out), out)
        np.divide(1.0, np.add(out, 1.0, out), out)
        if below is not None:
            np.place(out, np.broadcast_to(low, out.shape), below)

    def sech_square(x: Any, out: Any) -> None:
        np.divide(1.0, np.cosh(x, out), out)
        np.multiply(out, out, out)

    def over_one_plus_square(x: Any, out: Any) -> None:
        np.multiply(x, common_definitions.SMALL, out)
        np.add(np.multiply(out, out, out), common_definitions.SMALL**2, out)
        np.divide(common_definitions.SMALL**2, out, out)

    return {
        arithmetic.identity: lambda x, out: np.copyto(out, x),
        arithmetic.reciprocal: lambda x, out: np.divide(1.0, x, out),
        arithmetic.zeros_like: lambda _x, out: out.fill(0.0),
        arithmetic.ones_like: lambda _x, out: out.fill(1.0),
        conversions.cast: lambda x, out: np.copyto(out, x, casting="unsafe"),
        comparisons.where: _where,
        powers.general_power: np.power,
        powers.rsqrt: rsqrt,
        exponential.sigmoid: sigmoid,
        trigonometric.sech_square: sech_square,
        trigonometric.over_one_plus_square: over_one_plus_square,
        # NumPy accepts `out` only as a keyword here.
        comparisons.maximum: lambda x, y, out: np.maximum(x, y, out=out),
        comparisons.minimum: lambda x, y, out: np.minimum(x, y, out=out),
        exponential.relu: lambda x, out: np.maximum(x, 0.0, out=out),
    }


def in_place_function(primitive: Primitive, params: Mapping[str, Any]) -> Into | None:
    """The function for `primitive`; None if there is none."""
    if primitive is powers.whole_power:
        return _whole_power(params["n"])
    return _own().get(primitive) or _ufunc(primitive)


def of(equation: Equation) -> Into | None:
    """The function for an equation on arrays; None if there is none."""
    return in_place_function(equation.primitive, equation.params) if is_plain(equation) else None


def is_in_place(equation: Equation) -> bool:
    """Return whether the result of an equation may be written over its operands."""
    return equation.primitive not in NOT_IN_PLACE and of(equation) is not None


def reduction_ufunc(reduction: Primitive) -> Any:
    """The NumPy ufunc that combines two elements in a reduction."""
    assert reduction.reduces is not None
    return getattr(arrays.numpy_namespace(), reduction.reduces.name)


def _where(condition: Any, x: Any, y: Any, out: Any) -> None:
    np = arrays.numpy_namespace()
    # A number is true if it is not 0, as in `np.where`.
    chosen = np.asarray(condition, bool)
    count = int(np.count_nonzero(chosen))
    if count in (0, chosen.size):
        np.copyto(out, x if count else y)
    elif out.size < _FEW:
        np.copyto(out, y)
        np.copyto(out, x, where=chosen)
    else:
        _choose_bits(chosen, x, y, out)


def _choose_bits(chosen: Any, x: Any, y: Any, out: Any) -> None:
    """`where` without branches: y ^ ((x ^ y) & mask) on the bits of the numbers.

    For unordered conditions, mispredicted branches make the masked copy take five times as long.
    """
    np = arrays.numpy_namespace()
    bits = f"i{out.itemsize}"
    mask = chosen.astype(bits)
    np.negative(mask, mask)
    of_x, of_y = (np.asarray(a, out.dtype).view(bits) for a in (x, y))
    result = out.view(bits)
    np.bitwise_xor(of_x, of_y, result)
    np.bitwise_and(result, mask, result)
    np.bitwise_xor(result, of_y, result)


def _whole_power(n: float) -> Into:
    np = arrays.numpy_namespace()

    def odd(x: Any, out: Any) -> None:
        size = np.abs(x)
        np.copysign(np.power(size, n, size), x, out)

    if n == 2:
        return lambda x, out: np.multiply(x, x, out)
    # NumPy computes powers of negative numbers without vectorisation.
    return odd if n % 2 else lambda x, out: np.power(np.abs(x, out), n, out)


@cache
def _ufunc(primitive: Primitive) -> Into | None:
    np = arrays.numpy_namespace()
    # The spelling is checked first, so that SciPy is not imported only to find what NumPy lacks.
    if primitive.function is None or "numpy" not in primitive.spelling:
        return None
    found = getattr(np, primitive.function, None)
    return found if isinstance(found, np.ufunc) else None


def is_plain(equation: Equation) -> bool:
    """Return whether NumPy's promotion rules are those of the language for an equation.

    No operand may be an integer or truth value, except Python ints.
    """
    dtypes = {arrays.dtype_name(a) for a in equation.inputs if type(a) is not int}
    if equation.primitive.truths:
        dtypes -= {"bool"}
    return dtypes <= _FLOATING
