"""The functions of the language on numbers of mpmath, and on arrays of NumPy whose elements they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from tests.references import ELEMENTWISE


class NotJudgedError(Exception):
    """The judge lacks what a program asks for, or finds no number for it."""


def exact(value: Any) -> Any:
    """A value of Python or NumPy as a number of mpmath, a truth value, or an array of either."""
    if isinstance(value, (mpf, bool)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (list, tuple, range)):
        items = [exact(item) for item in value]
        shapes = {np.shape(item) for item in items}
        if len(shapes) > 1:
            raise NotJudgedError("lists of unequal lengths")
        made = np.empty((len(items), *next(iter(shapes), ())), object)
        for i, item in enumerate(items):
            made[i] = item
        return made
    if isinstance(value, np.ndarray):
        return value if value.dtype in (object, bool) else _each(mpf, value)
    if isinstance(value, (int, float, np.number)):
        return mpf(value.item() if isinstance(value, np.number) else value)
    if isinstance(value, mpmath.mpc):
        return mpf("nan")
    raise NotJudgedError(f"a value of {type(value).__name__}")


def numeric(value: Any) -> Any:
    """`exact`, with 0 and 1 for truth values."""
    value = exact(value)
    if isinstance(value, bool):
        return mpf(int(value))
    if isinstance(value, np.ndarray):
        return _each(lambda x: mpf(int(x)) if isinstance(x, (bool, np.bool_)) else x, value)
    return value


def _each(function: Callable[..., Any], *operands: Any) -> Any:
    """A function of each element; a number for numbers."""
    if not any(isinstance(o, np.ndarray) for o in operands):
        return function(*operands)
    shape = np.broadcast_shapes(*map(np.shape, operands))
    given = [np.broadcast_to(np.asarray(o, object), shape) for o in operands]
    found = np.empty(shape, object)
    for place in np.ndindex(*shape):
        found[place] = function(*(o[place] for o in given))
    return found if shape else found[()]


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers, nan where it is none or no real one."""

    def of_numbers(*operands: Any) -> Any:
        result = function(*operands)
        return mpf("nan") if isinstance(result, mpmath.mpc) else exact(result)

    return of_numbers


def whole(value: Any) -> int:
    number = numeric(value)
    if isinstance(number, np.ndarray):
        if number.size != 1:
            raise NotJudgedError("an array for a whole number")
        number = number.item()
    if number != mpmath.floor(number):
        raise NotJudgedError("a fraction for a whole number")
    return int(number)


def truth(value: Any) -> bool:
    value = exact(value)
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise NotJudgedError("the truth of an array")
        value = value.item()
    return bool(value)


# --- elementwise


def _decided(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda x, y: bool(test(x, y))


def _round(x: Any, decimals: Any = 0) -> Any:
    if decimals:
        raise NotJudgedError("a rounding to decimals")
    return mpmath.nint(x)


def _zeta(x: Any, q: Any = None, n: Any = 0) -> Any:
    if n or q is not None:
        raise NotJudgedError("a zeta function of several numbers")
    return mpmath.zeta(x)


def _nan_to_num(x: Any) -> Any:
    if not mpmath.isfinite(x):
        raise NotJudgedError("nan_to_num of no number")
    return x


def _elu(x: Any, a: Any = 1) -> Any:
    return x if x > 0 else a * mpmath.expm1(x)


def _gelu(x: Any, approximate: Any = "none") -> Any:
    if approximate != "none":
        raise NotJudgedError("an approximate gelu")
    return x * mpmath.ncdf(x)


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else max(x, low)
    return x if high is None else min(x, high)


def _lambertw(x: Any, k: Any = 0) -> Any:
    if k or x < -1 / mpmath.e:
        raise NotJudgedError("another branch of lambertw")
    return mpmath.re(mpmath.lambertw(x))


def _multigammaln(a: Any, d: Any) -> Any:
    d = int(d)
    parts = [mpmath.loggamma(a - mpf(i) / 2) for i in range(d)]
    return mpmath.log(mpmath.pi) * d * (d - 1) / 4 + sum(parts)


def _gammainc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True) if a > 0 and x >= 0 else mpmath.nan


def _gammaincc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, regularized=True) if a > 0 and x >= 0 else mpmath.nan


def _betainc(a: Any, b: Any, x: Any) -> Any:
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        return mpmath.nan
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _copysign(x: Any, y: Any) -> Any:
    if y == 0:
        raise NotJudgedError("the sign of a zero")
    return abs(x) * mpmath.sign(y)


def _entr(x: Any) -> Any:
    return -_rel_entr(x, mpf(1))


def _rel_entr(x: Any, y: Any) -> Any:
    """Infinite where it is not defined, as in SciPy."""
    if x == 0 and y >= 0:
        return mpf(0)
    return x * mpmath.log(x / y) if x > 0 and y > 0 else mpmath.inf


# Defaults, as the floats that they are.
_SLOPE, _HALF = mpf(0.01), mpf(0.5)


def _inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of a number of things and of those taken from them, where there are so many."""

    def of_numbers(n: Any, k: Any) -> Any:
        if not 0 <= k <= n:
            raise NotJudgedError("more taken than there are")
        return function(n, k)

    return of_numbers


# Those whose references have arguments of their own.
_OTHERS: Mapping[str, Callable[..., Any]] = {
    "round": _round,
    "zeta": _zeta,
    "nan_to_num": _nan_to_num,
    "clip": _clip,
    "lambertw": _lambertw,
    "multigammaln": _multigammaln,
    "betainc": _betainc,
    "comb": _inside(mpmath.binomial),
    "perm": _inside(lambda n, k: mpmath.gamma(n + 1) / mpmath.gamma(n - k + 1)),
    "copysign": _copysign,
    "entr": _entr,
    "rel_entr": _rel_entr,
    "gelu": _gelu,
    "leaky_relu": lambda x, a=_SLOPE: x if x > 0 else a * x,
    "elu": _elu,
    "celu": lambda x, a=1: x if x > 0 else a * mpmath.expm1(x / a),
    "hardtanh": lambda x, low=-1, high=1: min(max(x, low), high),
    "softshrink": lambda x, a=_HALF: max(x - a, 0) + min(x + a, 0),
    "hardshrink": lambda x, a=_HALF: x if abs(x) > a else mpf(0),
    "where": lambda c, x, y: x if c else y,
    "lerp": lambda x, y, w: x + (y - x) * w,
    "addcmul": lambda x, y, z, v=1: x + v * y * z,
    "addcdiv": lambda x, y, z, v=1: x + v * y / z,
    "threshold": lambda x, t, v: x if x > t else v,
    "heaviside": lambda x, y: y if x == 0 else mpf(int(x > 0)),
    "polygamma": lambda n, x: mpmath.psi(int(n), x),
    "gammainc": _gammainc,
    "gammaincc": _gammaincc,
    "jv": mpmath.besselj,
    "yv": mpmath.bessely,
    "iv": mpmath.besseli,
    "ive": lambda v, x: mpmath.exp(-abs(x)) * mpmath.besseli(v, x),
    "expn": lambda n, x: mpmath.expint(int(n), x),
    "norm_pdf": lambda x, m=0, s=1: mpmath.npdf(x, m, s),
    "norm_cdf": lambda x, m=0, s=1: mpmath.ncdf(x, m, s),
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))),
    "not_equal": _decided(lambda x, y: x != y),
    "equal": _decided(lambda x, y: x == y),
    "less": _decided(lambda x, y: x < y),
    "less_equal": _decided(lambda x, y: x <= y),
    "greater": _decided(lambda x, y: x > y),
    "greater_equal": _decided(lambda x, y: x >= y),
    "logical_and": lambda x, y: bool(x) and bool(y),
    "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_not": lambda x: not x,
    "isfinite": lambda x: bool(mpmath.isfinite(x)),
    "isnan": lambda x: bool(mpmath.isnan(x)),
    "isinf": lambda x: bool(mpmath.isinf(x)),
}
_ARITHMETIC = ("add", "subtract", "multiply", "negative", "abs", "maximum", "minimum", "clip", "exp", "tanh", "atan")
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
# Of floats, as they are, and one that reads the place of its number in memory.
_NOT_OF_NUMBERS = {"nextafter", "cast", "isclose", "identity"}
_OF_NAN = {"where", "isnan", "isfinite", "isinf", "fmax", "fmin", "nan_to_num", *_ARITHMETIC, *_COMPARISONS}
_OF_ORDER = {"maximum", "minimum", "clip", "fmax", "fmin"}
_STEPS = {"floor", "ceil", "round", "trunc", "frac", "floor_divide", "remainder", "fmod"}
_LARGE = mpf(10) ** 9
_ON_TRUTHS = {"where", "logical_and", "logical_or", "logical_not"}


def elementwise(name: str, operands: Sequence[Any]) -> Any:
    """An elementwise function of exact operands."""
    function = _OTHERS.get(name)
    if function is None:
        reference = ELEMENTWISE.get(name)
        if reference is None or name in _NOT_OF_NUMBERS or reference.before or reference.then:
            raise NotJudgedError(f"the function {name}")
        if len(operands) != len(reference.domains):
            raise NotJudgedError(f"{name} of {len(operands)} arguments")
        function = reference.function
    given = [o if o is None or isinstance(o, str) else exact(o) if name in _ON_TRUTHS else numeric(o) for o in operands]
    if name in _OF_ORDER:
        _ordered(*given)
    if name in _STEPS:
        _small(*given)
    return _each(_real(function if name in _OF_NAN else _of_numbers(function)), *given)


def _ordered(*operands: Any) -> None:
    """Raise NotJudgedError for nan, of which nobody says whether it is the largest."""
    if any(isinstance(x, mpf) and mpmath.isnan(x) for o in operands for x in np.ravel(np.asarray(o, object))):
        raise NotJudgedError("an order of nan")


def _small(*operands: Any) -> None:
    """Raise NotJudgedError for numbers between which differences do not see the steps."""
    sizes = [abs(x) for o in operands for x in np.ravel(np.asarray(o, object)) if x]
    if any(x > _LARGE or x < 1 / _LARGE for x in sizes):
        raise NotJudgedError("steps of large numbers")


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """nan where an operand is: mpmath may compute with one for ever. What a function is at infinity is nobody's word."""

    def of_numbers(*operands: Any) -> Any:
        numbers = [o for o in operands if isinstance(o, mpf)]
        if any(map(mpmath.isinf, numbers)):
            raise NotJudgedError("a function of infinity")
        return mpmath.nan if any(map(mpmath.isnan, numbers)) else function(*operands)

    return of_numbers


# --- whole arrays


def _axes(axis: Any) -> Any:
    if axis is None:
        return None
    if isinstance(axis, (list, tuple, np.ndarray)):
        return tuple(whole(a) for a in axis)
    return whole(axis)


def _keep(keepdims: Any) -> bool:
    return truth(keepdims)


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduction(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        x = np.asarray(numeric(x), object)
        _ordered(x)
        return function(x, axis=_axes(axis), keepdims=_keep(keepdims))

    return reduction


def _sum(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.sum(np.asarray(numeric(x), object), axis=_axes(axis), keepdims=_keep(keepdims))


def _count(x: Any, axis: Any) -> int:
    shape = np.shape(x)
    axes = range(len(shape)) if axis is None else np.atleast_1d(_axes(axis))
    return math.prod(shape[a] for a in axes)


def _mean(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _sum(x, axis, keepdims) / mpf(_count(x, axis))


def _var(x: Any, axis: Any = None, keepdims: Any = False, correction: Any = 0) -> Any:
    x = numeric(x)
    square = (x - _mean(x, axis, True)) ** 2
    return _sum(square, axis, keepdims) / (_count(x, axis) - numeric(correction))


def _std(x: Any, axis: Any = None, keepdims: Any = False, correction: Any = 0) -> Any:
    return elementwise("sqrt", [_var(x, axis, keepdims, correction)])


def _median(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    x = np.asarray(numeric(x), object)
    _ordered(x)
    if axis is None:
        middle = _middle(np.sort(x, axis=None), -1)
        return np.full((1,) * x.ndim, middle) if _keep(keepdims) else middle
    found = _middle(np.sort(x, axis=whole(axis)), whole(axis))
    return np.expand_dims(found, whole(axis)) if _keep(keepdims) else found


def _middle(x: Any, axis: int) -> Any:
    n = x.shape[axis]
    return (np.take(x, (n - 1) // 2, axis) + np.take(x, n // 2, axis)) / 2


def _norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: Any = False) -> Any:
    size = abs(np.asarray(numeric(x), object))
    ord = numeric(ord)
    if not mpmath.isfinite(ord):
        reduce = np.max if ord > 0 else np.min
        return reduce(size, axis=_axes(axis), keepdims=_keep(keepdims))
    if ord == 0:
        raise NotJudgedError("a norm of order 0")
    total = _sum(_each(lambda a: mpmath.power(a, ord), size), axis, keepdims)
    return _each(lambda a: mpmath.power(a, 1 / ord), total)


def _logsumexp(x: Any, axis: Any = None, keepdims: Any = False, b: Any = 1) -> Any:
    b = 1 if b is None else numeric(b)
    return elementwise("log", [_sum(b * _each(mpmath.exp, numeric(x)), axis, keepdims)])


def _softmax(x: Any, axis: Any = -1) -> Any:
    e = _each(mpmath.exp, np.asarray(numeric(x), object))
    return e / _sum(e, axis, True)


def _cumulative(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis=None: function(np.asarray(numeric(x), object), axis=_axes(axis))


def _position(choose: Callable[..., Any]) -> Callable[..., Any]:
    def position(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        if axis is not None or _keep(keepdims):
            raise NotJudgedError("positions along an axis")
        items = [*np.ravel(np.asarray(numeric(x), object))]
        return mpf(items.index(choose(items)))

    return position


def _matrix(x: Any) -> Any:
    x = np.asarray(numeric(x), object)
    if x.ndim != 2 or not x.size:
        raise NotJudgedError("a stack of matrices")
    return mpmath.matrix(x.tolist())


def _array(a: Any) -> Any:
    return np.array(a.tolist(), object) if isinstance(a, mpmath.matrix) else a


def _det(a: Any) -> Any:
    """By the sum over permutations: mpmath's elimination is inexact where a pivot is almost 0."""
    a = np.asarray(numeric(a), object)
    if a.ndim != 2 or len(a) > 4 or len(a) != a.shape[1]:
        raise NotJudgedError("a large determinant")
    total = mpf(0)
    for order in itertools.permutations(range(len(a))):
        inversions = sum(order[i] > order[j] for i in range(len(a)) for j in range(i + 1, len(a)))
        total += (-1) ** inversions * math.prod(a[i, j] for i, j in enumerate(order))
    return total


def _inv(a: Any) -> Any:
    return _array(_matrix(a) ** -1)


def _solve(a: Any, b: Any) -> Any:
    return np.matmul(_inv(a), np.asarray(numeric(b), object))


def _matrix_power(a: Any, n: Any) -> Any:
    return _array(_matrix(a) ** whole(n))


def _cholesky(a: Any) -> Any:
    return _array(mpmath.cholesky(_matrix(a)))


def _einsum(subscripts: Any, *tensors: Any) -> Any:
    if not isinstance(subscripts, str):
        raise NotJudgedError("einsum of lists")
    return np.einsum(subscripts, *[np.asarray(numeric(t), object) for t in tensors])


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if isinstance(axes, (list, tuple, np.ndarray)):
        raise NotJudgedError("tensordot over named axes")
    return np.tensordot(np.asarray(numeric(a), object), np.asarray(numeric(b), object), whole(axes))


def _sizes(sizes: Sequence[Any]) -> tuple[int, ...]:
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple, np.ndarray)) else sizes
    return tuple(whole(s) for s in given)


def _filled(number: int) -> Callable[..., Any]:
    return lambda *shape: np.full(_sizes(shape), mpf(number), object)


def _eye(n: Any, m: Any = None) -> Any:
    return exact(np.eye(whole(n), None if m is None else whole(m)))


def _arange(start: Any, stop: Any = None, step: Any = 1) -> Any:
    start, stop = (mpf(0), numeric(start)) if stop is None else (numeric(start), numeric(stop))
    step = numeric(step)
    return exact([start + i * step for i in range(max(0, int(mpmath.ceil((stop - start) / step))))])


def _linspace(start: Any, stop: Any, num: Any = 50) -> Any:
    start, stop, num = numeric(start), numeric(stop), whole(num)
    if np.shape(start) or np.shape(stop):
        raise NotJudgedError("linspace of arrays")
    return exact([start + (stop - start) * i / max(1, num - 1) for i in range(num)])


def _transpose(x: Any, *axes: Any) -> Any:
    axes = _sizes(axes) if axes else ()
    return np.swapaxes(x, *axes) if len(axes) == 2 else np.transpose(x, axes or None)


def _with_whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy of an array and whole numbers."""

    def of_array(x: Any, *rest: Any, **named: Any) -> Any:
        x = np.asarray(numeric(x), object)
        return function(x, *map(_axes, rest), **{name: _axes(value) for name, value in named.items()})

    return of_array


def _of_list(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_list(tensors: Any, axis: Any = 0) -> Any:
        return function([np.asarray(numeric(t), object) for t in tensors], axis=whole(axis))

    return of_list


def _stacked(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tensors: function([np.asarray(numeric(t), object) for t in tensors])


def _product(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: function(np.asarray(numeric(a), object), np.asarray(numeric(b), object))


def _take(x: Any, indices: Any, axis: Any = None) -> Any:
    indices = np.asarray(numeric(indices), object)
    return np.take(np.asarray(numeric(x), object), indices.astype(int), _axes(axis))


def _full(shape: Any, value: Any) -> Any:
    return np.broadcast_to(numeric(value), _sizes([shape]))


ARRAYS: Mapping[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _reduced(np.prod),
    "max": _reduced(np.max),
    "min": _reduced(np.min),
    "ptp": _reduced(np.ptp),
    "var": _var,
    "std": _std,
    "median": _median,
    "norm": _norm,
    "logsumexp": _logsumexp,
    "softmax": _softmax,
    "softmin": lambda x, axis=-1: _softmax(-numeric(x), axis),
    "log_softmax": lambda x, axis=-1: _each(mpmath.log, _softmax(x, axis)),
    "cumsum": _cumulative(np.cumsum),
    "cumprod": _cumulative(np.cumprod),
    "sort": lambda x, axis=-1: _sorted(np.asarray(numeric(x), object), axis),
    "any": lambda x: any(map(truth, np.ravel(exact(x)))),
    "all": lambda x: all(map(truth, np.ravel(exact(x)))),
    "argmax": _position(max),
    "argmin": _position(min),
    "reshape": lambda x, *shape: np.reshape(numeric(x), _sizes(shape)),
    "transpose": lambda x, *axes: _transpose(np.asarray(numeric(x), object), *axes),
    "permute": lambda x, *axes: np.transpose(numeric(x), _sizes(axes)),
    "moveaxis": _with_whole(np.moveaxis),
    "swapaxes": _with_whole(np.swapaxes),
    "squeeze": _with_whole(np.squeeze),
    "expand_dims": _with_whole(np.expand_dims),
    "broadcast_to": lambda x, *shape: np.broadcast_to(np.asarray(numeric(x), object), _sizes(shape)),
    "flip": _with_whole(np.flip),
    "roll": _with_whole(np.roll),
    "tile": lambda x, *n: np.tile(np.asarray(numeric(x), object), _sizes(n)),
    "repeat": _with_whole(np.repeat),
    "ravel": _with_whole(np.ravel),
    "diag": _with_whole(np.diag),
    "tril": lambda x, k=0: _triangle(np.tril, x, k),
    "triu": lambda x, k=0: _triangle(np.triu, x, k),
    "take": _take,
    "concat": _of_list(np.concatenate),
    "stack": _of_list(np.stack),
    "vstack": _stacked(np.vstack),
    "hstack": _stacked(np.hstack),
    "matmul": _product(np.matmul),
    "dot": _product(np.dot),
    "inner": _product(np.inner),
    "vdot": _product(lambda a, b: np.dot(np.ravel(a), np.ravel(b))),
    "outer": _product(np.outer),
    "kron": _product(np.kron),
    "cross": _product(np.cross),
    "einsum": _einsum,
    "tensordot": _tensordot,
    "trace": _with_whole(np.trace),
    "diagonal": _with_whole(np.diagonal),
    "det": _det,
    "logdet": lambda a: elementwise("log", [_det(a)]),
    "inv": _inv,
    "solve": _solve,
    "matrix_power": _matrix_power,
    "matrix_exp": lambda a: _array(mpmath.expm(_matrix(a))),
    "cholesky": _cholesky,
    "zeros": _filled(0),
    "ones": _filled(1),
    "zeros_like": lambda x: np.full(np.shape(exact(x)), mpf(0), object),
    "ones_like": lambda x: np.full(np.shape(exact(x)), mpf(1), object),
    "full": _full,
    "full_like": lambda x, value: np.broadcast_to(numeric(value), np.shape(exact(x))),
    "eye": _eye,
    "arange": _arange,
    "linspace": _linspace,
}


def _sorted(x: Any, axis: Any) -> Any:
    _ordered(x)
    return np.sort(x, axis=_axes(axis))


def _triangle(function: Callable[..., Any], x: Any, k: Any) -> Any:
    x = np.asarray(numeric(x), object)
    kept = function(np.ones(x.shape), whole(k)) > 0
    return np.where(kept, x, mpf(0))


def call(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A function of the table by its name; its keywords have the names of its parameters."""
    function = ARRAYS.get(name)
    if function is None:
        if keywords:
            raise NotJudgedError(f"{name} with keywords")
        return elementwise(name, arguments)
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise NotJudgedError(f"{name}: {error}") from error
