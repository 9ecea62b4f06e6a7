"""The array namespace of plain Python floats: `math` with IEEE results instead of exceptions.

A scalar program needs no array library; this namespace has every elementwise function of the language and nothing else.
"""

from __future__ import annotations

import builtins
import math
import operator
import sys
from collections.abc import Callable
from math import copysign, inf, isfinite, isinf, isnan, nan
from types import BuiltinFunctionType

from gradcli.arrays.definitions import common_definitions
from gradcli.type_hints import Any, TypeVar

__all__ = ["copysign", "isfinite", "isinf", "isnan"]

Unary = Callable[[float], float]
Function = TypeVar("Function", bound=Callable[..., Any])

# By function of this module: the function that it wraps, which returns the same values, or raises where this has nan or
# inf.
_raising: dict[Any, Any] = {}


def _catching(raising: Callable[..., Any]) -> Callable[[Function], Function]:
    """Register the function that the decorated one wraps and whose exceptions it catches."""

    def mark(function: Function) -> Function:
        _raising[function] = raising
        return function

    return mark


def raising(name: str) -> Any:
    """The Python built-in that equals the function `name` of this module, but raises where that returns nan or inf.

    None if there is none.
    """
    function = globals().get(name)
    found = _raising.get(function, function)
    return found if isinstance(found, BuiltinFunctionType) else None


def _ieee(function: Unary) -> Unary:
    """`function`, but nan outside its domain and inf where it overflows."""

    @_catching(function)
    def guarded(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return nan
        except OverflowError:
            return inf

    return guarded


def _whole(function: Callable[[float], int]) -> Unary:
    """A rounding function that keeps nan, the infinities and the sign of zero."""

    def rounded(x: float) -> float:
        return copysign(float(function(x)), x) if isfinite(x) else float(x)

    return rounded


add = operator.add
subtract = operator.sub
multiply = operator.mul
negative = operator.neg
positive = operator.pos
abs = builtins.abs
equal = operator.eq
not_equal = operator.ne
less = operator.lt
less_equal = operator.le
greater = operator.gt
greater_equal = operator.ge
logical_not = operator.not_

exp = _ieee(math.exp)
expm1 = _ieee(math.expm1)
sqrt = _ieee(math.sqrt)
sin = _ieee(math.sin)
cos = _ieee(math.cos)
tan = _ieee(math.tan)
asin = _ieee(math.asin)
acos = _ieee(math.acos)
atan = math.atan
cosh = _ieee(math.cosh)
tanh = math.tanh
asinh = math.asinh
acosh = _ieee(math.acosh)
atan2 = math.atan2
hypot = math.hypot
erf = math.erf
erfc = math.erfc
floor = _whole(math.floor)
ceil = _whole(math.ceil)
round = _whole(builtins.round)
trunc = _whole(math.trunc)


@_catching(operator.truediv)
def divide(x: float, y: float) -> float:
    try:
        return x / y
    except ZeroDivisionError:
        return nan if x == 0 or isnan(x) else copysign(inf, x) * copysign(1.0, y)
    except OverflowError:
        return float(x) / float(y)


@_catching(math.pow)
def pow(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -inf if x < 0 and y % 2 == 1 else inf
    except ValueError:
        if x != 0:
            return nan
        return copysign(inf, x) if y % 2 == 1 else inf


def cbrt(x: float) -> float:
    """The cube root: `math.cbrt`, whose last digits may be wrong, corrected by one step of Newton's method."""
    root = math.cbrt(x)
    if not 1e-280 < abs(x) < 1e280:
        if x == 0 or not isfinite(x):
            return root
        return cbrt(x * 2.0**900) * 2.0**-300 if abs(x) < 1 else cbrt(x * 2.0**-900) * 2.0**300
    corrected: float = common_definitions.corrected_cube_root(x, root)
    return corrected


def angle(x: float) -> float:
    return math.atan2(0.0, x)


def complex(real: float, imag: float) -> builtins.complex:
    return builtins.complex(real, imag)


def conj(x: float) -> float:
    """The number itself: a Taylor coefficient of a complex number may be real, as are those of `real` and `imag`."""
    return x


def real(x: float) -> float:
    return x


def imag(_x: float) -> float:
    return 0.0


def floor_divide(x: float, y: float) -> float:
    return divide(x, y) if y == 0 else float(x // y)


def remainder(x: float, y: float) -> float:
    """The remainder with the sign of the divisor, as Python's `%`."""
    if y == 0 or isinf(x):
        return nan
    return float(x) % y


def fmod(x: float, y: float) -> float:
    """The remainder with the sign of the dividend, as C's `fmod`."""
    if y == 0 or isinf(x):
        return nan
    return math.fmod(x, y)


def zeros_like(_x: float) -> float:
    return 0.0


def ones_like(_x: float) -> float:
    return 1.0


def sign(x: float) -> float:
    return float((x > 0) - (x < 0)) if x == x else nan


def heaviside(x: float, y: float) -> float:
    return float(y if x == 0 else x > 0) if x == x else x


def exp2(x: float) -> float:
    return pow(2.0, x)


def _logarithm(function: Unary, pole: float) -> Unary:
    @_catching(function)
    def logarithm(x: float) -> float:
        if x > pole:
            return function(x)
        return -inf if x == pole else nan

    return logarithm


log = _logarithm(math.log, 0.0)
log2 = _logarithm(math.log2, 0.0)
log10 = _logarithm(math.log10, 0.0)
log1p = _logarithm(math.log1p, -1.0)


@_catching(math.sinh)
def sinh(x: float) -> float:
    try:
        return math.sinh(x)
    except OverflowError:
        return copysign(inf, x)


@_catching(math.atanh)
def atanh(x: float) -> float:
    try:
        return math.atanh(x)
    except ValueError:
        return copysign(inf, x) if x in (-1.0, 1.0) else nan


def sigmoid(x: float) -> float:
    try:
        return 1.0 / (1.0 + math.exp(-x))
    except OverflowError:
        return math.exp(x)


def logaddexp(x: float, y: float) -> float:
    high, low = (x, y) if x >= y else (y, x)
    if isnan(x) or isnan(y):
        return nan
    return high if isinf(high) else high + math.log1p(math.exp(low - high))


def maximum(x: float, y: float) -> float:
    """The larger number; of zeros with different signs the second, as in NumPy."""
    return _chosen(x if x > y or x != x else y, x, y)


def minimum(x: float, y: float) -> float:
    """The smaller number; of zeros with different signs the second, as in NumPy."""
    return _chosen(x if x < y or x != x else y, x, y)


def where(condition: bool, x: float, y: float) -> float:
    return _chosen(x if condition else y, x, y)


def _chosen(number: float, x: Any, y: Any) -> float:
    """The chosen number promoted to the common type of x and y: float if either is a float, else int."""
    if type(x) is type(y):
        return number
    return float(number) if isinstance(x, float) or isinstance(y, float) else int(number)


def logical_and(x: bool, y: bool) -> bool:
    return bool(x) and bool(y)


def logical_or(x: bool, y: bool) -> bool:
    return bool(x) or bool(y)


@_catching(math.gamma)
def gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except ValueError:
        return copysign(inf, x) if x == 0 else nan
    except OverflowError:
        return copysign(inf, x)


def lgamma(x: float) -> float:
    if 0.75 < x < 1.25 or 1.75 < x < 2.25:
        return common_definitions.lgamma(sys.modules[__name__], x, math.lgamma)  # type: ignore[no-any-return]
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return inf


def __getattr__(name: str) -> Callable[..., float]:
    """An elementwise function that is neither in `math` nor defined here, computed by SciPy or NumPy."""
    from gradcli.arrays import namespaces, spellings

    spelling = spellings.of(name)
    if not spelling.elementwise:
        raise spellings.MissingFunctionError("numpy", name)
    xp = namespaces.numpy_namespace()
    function = getattr(xp, name)

    def scalar(*operands: float) -> float:
        with xp.quiet():
            return function(*operands).item()  # type: ignore[no-any-return]

    return scalar
