"""The array namespace of NumPy: its own functions, and the functions of the language that it lacks.

Every namespace provides the functions defined here.
"""

from __future__ import annotations

import builtins
import math
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from gradcli import limits
from gradcli.arrays import dtypes, spellings
from gradcli.arrays.backends import Device, host, out_of_memory
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.dtypes import PYTHON_NUMBERS, complex_dtype, default_dtype, dtype_name
from gradcli.errors import GradcliError

Array = Any
name = "numpy"
device_name = "cpu"
scalars = None
tidy = dtypes.tidy
asarray, astype, copy, zeros, ones, all = np.asarray, np.astype, np.copy, np.zeros, np.ones, np.all


class _PublicSettings:
    """NumPy's handling of floating-point errors, with the methods of a context variable."""

    get = staticmethod(np.geterr)

    def set(self, handling: Mapping[str, Any]) -> Any:
        return np.seterr(**handling)

    def reset(self, before: Mapping[str, Any]) -> None:
        np.seterr(**before)


_settings: Any
try:
    # The private names that `errstate` itself uses; they are not part of NumPy's public interface.
    _ufuncs: Any = import_module("numpy._core.umath")
    _settings, _ignoring = _ufuncs._extobj_contextvar, _ufuncs._make_extobj(all="ignore")
except (ImportError, AttributeError):
    _settings, _ignoring = _PublicSettings(), dict.fromkeys(np.geterr(), "ignore")


class quiet:
    """The effect of `numpy.errstate(all="ignore")` with settings that are built once.

    Building them, as `errstate` does each time, takes three times as long as an operation on a few numbers.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _settings.set(_ignoring)

    def __exit__(self, *_error: object) -> None:
        _settings.reset(self._token)


# Allocate and free a block once: glibc then raises its mmap threshold to this size and reuses freed memory for arrays
# below it. Otherwise the pages of each array of some 100 KB are mapped anew, which takes ten times as long as computing
# the array.
np.empty(2**24, "uint8")

_namespace = sys.modules[__name__]
_NUMBERS = frozenset({float, int})
_CHARS: dict[type, str] = {bool: "?", builtins.complex: "D"}
_ndarray, _float64, _FLOAT64 = np.ndarray, np.float64, np.dtype("float64")
_add_reduce: Any = np.add.reduce
# For smaller x, 1/(1 + exp(-x)) rounds to exp(x); for larger x, exp(-x) is finite, also in float32.
SIGMOID_IS_EXP = -80.0
# The maximum number of squarings in expm: each doubles the relative error, and after 64 no digit is left.
_SQUARINGS = 64
# From this number of elements on, inspecting the operands for a faster method pays.
_MANY = 64
# Up to this number of elements, copying is faster than creating a view.
_FEW = 4096
# NumPy sums 8 or more contiguous numbers in 8 accumulators.
_EIGHT = 8
# The bytes of a float64 number.
_bytes = struct.Struct("d").pack
_GAMMA_IS_INVERSE, _INVERSE_IS_LARGE, _EXP_IS_LARGE, _EXP_IS_INFINITE = 1e-30, 1e-300, 700.0, 720.0


def __getattr__(name: str) -> Any:
    found = _function(name)
    # Names of built-ins such as `any` and `max` are not cached in the module, because this module calls the built-ins.
    if not hasattr(builtins, name):
        globals()[name] = found
    return found


class _LinearAlgebra:
    """`numpy.linalg`, with an error for non-finite matrices in the iterative functions of LAPACK.

    For such matrices LAPACK may print warnings or not terminate.
    """

    @cache  # noqa: B019 - there is one
    def __getattr__(self, name: str) -> Any:
        function = getattr(np.linalg, name)
        return partial(_of_finite, function) if name in _ITERATES else function

    def det(self, x: Array) -> Array:
        found = np.linalg.det(x)
        return _unless_lost(found, found == 0, x)

    def slogdet(self, x: Array) -> tuple[Array, Array]:
        sign, logarithm = np.linalg.slogdet(x)
        logarithm = _unless_lost(logarithm, sign == 0, x)
        # LAPACK has a sign, though the determinant is nan.
        is_lost = np.isnan(logarithm)
        return np.where(is_lost, np.nan, sign) if np.any(is_lost) else sign, logarithm


def _unless_lost(found: Array, is_singular: Array, x: Array) -> Array:
    """Replace by nan the results for matrices with a non-finite element that LAPACK calls singular.

    LAPACK stops at a pivot of 0, but 0 times an infinite or nan element is nan.
    """
    lost = is_singular & ~np.isfinite(x).all((-2, -1)) if np.any(is_singular) else False
    return np.where(lost, np.nan, found) if np.any(lost) else found


_ITERATES = frozenset({"eigh", "eigvalsh", "pinv", "svd", "svdvals"})
linalg = _LinearAlgebra()


def _of_finite(function: Any, x: Array, **params: Any) -> Any:
    if not np.isfinite(x).all():
        raise np.linalg.LinAlgError("the matrix has a number that is not finite")
    return function(x, **params)


@cache
def _function(name: str) -> Any:
    spelling = spellings.of(name)
    found = getattr(np, spelling.within("numpy", name), None)
    if found is None and "scipy" in spelling.names:
        found = _of_scipy(name)
    return spellings.defined(sys.modules[__name__], name) if found is None else found


def _of_scipy(name: str) -> Any:
    # Loaded on demand, because few programs have special functions.
    from gradcli.arrays import scipy_special

    return getattr(scipy_special, name)


def synchronise() -> None:
    """Do nothing: NumPy computes eagerly."""


def promoted(operands: Sequence[Array], *, truths: bool) -> Sequence[Array]:
    """The operands, with integers beside float32 or complex64 converted to float32, where NumPy would promote to doubles.

    Truth values are kept if `truths`, and else become the numbers 0 and 1.
    """
    for operand in operands:
        kind = type(operand)
        if kind is not float and (kind in PYTHON_NUMBERS or operand.dtype is not _FLOAT64):
            break
    else:
        # The most frequent case.
        return operands
    chars = {_CHARS.get(type(o)) or o.dtype.char for o in operands if type(o) not in _NUMBERS}
    if "?" in chars and not truths:
        operands = _as_numbers(operands, chars)
    if chars.isdisjoint("fF") or not chars.isdisjoint("dD") or chars.isdisjoint("ilqILQ"):
        return operands
    return [o if type(o) in PYTHON_NUMBERS or o.dtype.kind not in "iu" else o.astype("float32") for o in operands]


def _as_numbers(operands: Sequence[Array], chars: Set[str]) -> Sequence[Array]:
    """The operands, with truth values converted to the floating dtype of the others, or to the default dtype."""
    dtype = "float64" if not chars.isdisjoint("dD") else "float32" if not chars.isdisjoint("fF") else default_dtype()
    return [tidy(np.asarray(o, dtype)) if dtype_name(o) == "bool" else o for o in operands]


def are_float64(operands: Iterable[Array]) -> bool:
    """Return whether all operands are Python floats or NumPy arrays of float64, which `run` takes without promotion."""
    for operand in operands:
        if type(operand) is not float and (type(operand) is not _ndarray or operand.dtype is not _FLOAT64):
            return False
    return True


@cache
def runner(primitive: Any) -> Callable[[Iterable[Array], Mapping[str, Any]], Any]:
    """A function of operands that need no promotion, and of params: it computes a primitive, with the result tidied and
    the warnings of NumPy ignored.

    A backward pass ignores them for all of its operations at once.
    """
    name = primitive.function
    compute = partial(primitive.forward, _namespace) if name is None else getattr(_namespace, name)

    def run(operands: Iterable[Array], params: Mapping[str, Any]) -> Any:
        if _settings.get() is _ignoring:
            result = compute(*operands, **params) if params else compute(*operands)
        else:
            token = _settings.set(_ignoring)
            try:
                result = compute(*operands, **params) if params else compute(*operands)
            finally:
                _settings.reset(token)
        kind = type(result)
        if kind is _ndarray and result.ndim:
            return result
        if kind is _float64:
            return result.item()
        return [tidy(r) for r in result] if kind is list else tidy(result)

    return run


def explained(error: Exception) -> GradcliError | None:
    return out_of_memory(str(error), host(device_name).free) if isinstance(error, MemoryError) else None


def to_numpy(array: Array) -> Any:
    return np.asarray(array)


def owned(array: Array) -> Array:
    return _copied(array) if isinstance(array, np.ndarray) and array.flags.writeable else array


def _copied(array: Array) -> Array:
    limits.charge(array.size)
    return array.copy()


def unshared(array: Array, others: Iterable[Array]) -> Array:
    if not isinstance(array, np.ndarray):
        return array
    shared = not array.flags.writeable or any(_may_share_memory(array, other) for other in others)
    return _copied(array) if shared else array


def _may_share_memory(array: Array, other: Array) -> bool:
    return isinstance(other, np.ndarray) and np.may_share_memory(array, other)


def index(x: Array, key: Any) -> Array:
    """x[key], for ints, slices, None, Ellipsis and integer arrays."""
    return np.asarray(x)[key]


def scatter_add(values: Array, key: Any, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with `values` added at `key`; values at repeated positions accumulate."""
    values = np.asarray(values)
    out = np.zeros(shape, values.dtype)
    if any(isinstance(item, np.ndarray) for item in key):
        np.add.at(out, key, values)
    else:
        # Without index arrays no position repeats, and this takes an eighth of the time of `np.add.at`.
        out[key] += values
    return out


def roll(x: Array, shift: Any, axis: tuple[int, ...] | None = None) -> Array:
    # Joining two parts takes a third of the time of NumPy's function, which accepts more.
    if (axis is None and x.ndim != 1) or (axis is not None and len(axis) != 1):
        return np.roll(x, shift, axis)
    place, distance = (0, shift) if axis is None else (axis[0], shift[0])
    size = x.shape[place]
    begin = size - distance % size if size else 0
    before = (slice(None),) * place
    return np.concatenate((x[(*before, slice(begin, None))], x[(*before, slice(begin))]), axis=place)


def sum(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    # NumPy reduces a short last axis ten times slower than it adds the columns, with the same order of additions.
    many = type(x) is np.ndarray and x.size >= _MANY
    if not many or axis != (x.ndim - 1,) or not 1 < x.shape[-1] < _EIGHT or x.dtype.kind != "f":
        # The ufunc directly, without the dispatch overhead of `np.sum`.
        return _add_reduce(x, axis=axis, keepdims=keepdims)
    total = np.add(x[..., 0], 0.0)
    for column in range(1, x.shape[-1]):
        total = np.add(total, x[..., column], out=total)
    return total[..., None] if keepdims else total


def matmul(x: Array, y: Array) -> Array:
    # For vectors and matrices `dot` computes the same, and its call takes two thirds of the time.
    return np.dot(x, y) if x.ndim < 3 and y.ndim < 3 else np.matmul(x, y)


def permute_dims(x: Array, axes: tuple[int, ...]) -> Array:
    return (x if type(x) is _ndarray else np.asarray(x)).transpose(axes)


def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    return np.asarray(x).reshape(shape)


def broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    # For few elements, NumPy's function takes longer than making an array.
    if math.prod(shape) > _FEW or (type(x) is not float and np.ndim(x) > len(shape)):
        return np.broadcast_to(x, shape)
    if type(x) is float and shape:
        # A view of one number: beside many rows NumPy multiplies by it as by a number, in a seventh of the time of a row.
        return _ndarray(shape, np.float64, _bytes(x), 0, (0,) * len(shape))
    repeated = np.empty(shape, np.asarray(x).dtype)
    repeated[...] = x
    return repeated


def prod(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    value = np.prod(x, axis=axis, keepdims=keepdims)
    if value.dtype.kind != "f" or not (lost := _lacks_digits(value)).any():
        return value
    x = np.asarray(x)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    last = np.moveaxis(x, axes, range(-len(axes), 0)).reshape(*(n for a, n in enumerate(x.shape) if a not in axes), -1)
    size, exponent = np.frexp(last)
    with quiet():
        while size.shape[-1] > 1:
            odd = size.shape[-1] % 2
            pairs, shifts = np.frexp(size[..., : -odd or None : 2] * size[..., 1::2])
            shifts += exponent[..., : -odd or None : 2] + exponent[..., 1::2]
            size = np.concatenate([pairs, size[..., size.shape[-1] - odd :]], -1)
            exponent = np.concatenate([shifts, exponent[..., exponent.shape[-1] - odd :]], -1)
        return np.where(lost, np.ldexp(size, exponent).reshape(value.shape), value).astype(value.dtype)


def cumprod(x: Array, *, axis: int) -> Array:
    value = np.cumprod(x, axis=axis)
    if value.dtype.kind != "f" or not (lost := _lacks_digits(value)).any():
        return value
    size, exponent = np.frexp(np.moveaxis(x, axis, -1))
    reach = 1
    with quiet():
        while reach < size.shape[-1]:
            following, shifts = np.frexp(size[..., reach:] * size[..., :-reach])
            shifts += exponent[..., reach:] + exponent[..., :-reach]
            size = np.concatenate([size[..., :reach], following], -1)
            exponent = np.concatenate([exponent[..., :reach], shifts], -1)
            reach *= 2
        return np.where(lost, np.moveaxis(np.ldexp(size, exponent), -1, axis), value).astype(value.dtype)


def _lacks_digits(product: Array) -> Array:
    """Return whether a product may have overflowed or underflowed in between.

    Such products are recomputed with separate exponents.
    """
    return ~np.isfinite(product) | (np.abs(product) < np.finfo(product.dtype).smallest_normal)


def einsum(*operands: Array, subscripts: str) -> Array:
    # Pairwise contraction keeps a product of many operands from looping over all indices at once.
    return np.einsum(subscripts, *operands, optimize=len(operands) > 2)


def contraction_steps(shapes: Sequence[tuple[int, ...]], *, subscripts: str) -> Sequence[tuple[int, ...]]:
    """The contraction path of `einsum`: the positions of the operands to multiply in each step.

    Each product is appended to the remaining operands.
    """
    if len(shapes) <= 2:
        return [tuple(range(len(shapes)))]
    operands = [np.broadcast_to(0.0, shape) for shape in shapes]
    steps: Sequence[tuple[int, ...]] = np.einsum_path(subscripts, *operands, optimize=True)[0][1:]
    return steps


def complex(real: Array, imag: Array) -> Array:
    """The complex numbers with these parts, which real + 1j*imag would turn into nan where one of them is infinite."""
    real, imag = np.broadcast_arrays(real, imag)
    made = np.empty(real.shape, complex_dtype(str(np.result_type(real, imag))))
    made.real, made.imag = real, imag
    return made


def searchsorted(ordered: Array, values: Array, *, side: Any = "left") -> Array:
    return np.searchsorted(ordered, values, side=side)


def expm(x: Array) -> Array:
    """The exponential of each matrix over the last two axes, by scaling and squaring with a Taylor polynomial.

    SciPy's Padé approximation needs fewer squarings, but its division loses four digits.
    """
    x = np.asarray(x) * 1.0
    if not x.size:
        return x
    if x.dtype.kind == "c":
        # The exponential of [[a, -b], [b, a]] has the parts of that of a + i*b in the same places.
        rows = np.concatenate([x.real, -x.imag], -1), np.concatenate([x.imag, x.real], -1)
        found, size, value = expm(np.concatenate(rows, -2)), x.shape[-1], np.empty_like(x)
        value.real, value.imag = found[..., :size, :size], found[..., size:, :size]
        return value
    with quiet():
        given, exponent = x, np.frexp(_norm(x))[1]
        x = np.ldexp(x, -exponent[..., None, None])
        square, fourth = x @ x, x @ x @ x @ x
        # By A. Al-Mohy and N. Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009), the
        # polynomial is as accurate as for a matrix of this norm, which may be far smaller than that of x.
        size = np.minimum(_norm(x), np.maximum(_norm(fourth) ** 0.25, _norm(fourth @ x) ** 0.2))
        halvings = np.maximum(exponent + np.frexp(size)[1], 0)
        left = (exponent - halvings)[..., None, None]
        value = _exponential_polynomial(
            *(np.ldexp(p, k * left) for k, p in ((1, x), (2, square), (3, square @ x), (4, fourth)))
        )
        halvings = halvings[..., None, None]
        for k in range(min(halvings.max(), _SQUARINGS)):
            value = np.where(k < halvings, _squared(value), value)
        lost = halvings > _SQUARINGS
        return np.where(lost, _triangular_expm(np.where(lost, given, 0.0)), value) if lost.any() else value


def sqrtm(x: Array) -> Array:
    from gradcli.arrays import matrix_functions

    return matrix_functions.of_each("sqrtm", x)


def logm(x: Array) -> Array:
    from gradcli.arrays import matrix_functions

    return matrix_functions.of_each("logm", x)


def _triangular_expm(x: Array) -> Array:
    """The exponentials of triangular matrices, whose diagonals SciPy computes separately; nan for other matrices."""
    import scipy.linalg

    low, high = (part.any((-2, -1), keepdims=True) for part in (np.tril(x, -1), np.triu(x, 1)))
    full = np.logical_and(low, high)
    return np.where(full, np.nan, scipy.linalg.expm(np.where(full, 0.0, x)))


def _squared(x: Array) -> Array:
    """x @ x with 0*inf = 0, so that infinite elements affect only the results that they contribute to."""
    infinite = np.isinf(x)
    if not infinite.any():
        return x @ x
    sign, finite = np.sign(x), np.where(infinite, 0.0, x)
    large = np.where(infinite, sign, 0.0)
    direction = large @ sign + sign @ large
    terms = np.abs(large) @ np.abs(sign) + np.abs(sign) @ np.abs(large)
    overflow = np.where(np.abs(direction) < terms, np.nan, direction * np.inf)
    return np.where(terms == 0.0, finite @ finite, finite @ finite + overflow)


def _norm(x: Array) -> Array:
    """The 1-norm of each matrix: the largest sum of magnitudes in a column."""
    return np.abs(x).sum(-2).max(-1)


def _exponential_polynomial(x: Array, square: Array, cube: Array, fourth: Array) -> Array:
    """The sum of x**k/k! for k up to 16, in three matrix multiplications."""
    one = np.eye(x.shape[-1], dtype=x.dtype)
    value = fourth * (1.0 / math.factorial(16))
    for k in (12, 8, 4, 0):
        weights = [1.0 / math.factorial(k + j) for j in range(4)]
        value = value + (weights[3] * cube + weights[2] * square + weights[1] * x)
        value = value + weights[0] * one
        value = fourth @ value if k else value
    return value


def pow(x: Array, q: Array) -> Array:
    # NumPy computes powers of negative numbers without vectorisation.
    if type(q) is not float or np.size(x) < _MANY or q % 1.0 or x.dtype.kind != "f":
        return np.power(x, q)
    size = np.power(np.abs(x), q)
    return np.copysign(size, x) if q % 2.0 else size


def cbrt(x: Array) -> Array:
    """The cube root: NumPy's, corrected by one step of Newton's method as in `floats`.

    With some C libraries NumPy's is off by up to two units in the last place.
    """
    root = np.cbrt(x)
    if root.dtype != np.float64:
        return root
    # Scale numbers near the ends of the range, where the products below would overflow or underflow.
    size = np.abs(x)
    scale = np.where(size < 1e-280, 2.0**300, np.where(size > 1e280, 2.0**-300, 1.0))
    scaled, near = x * (scale * scale * scale), root * scale
    usable = np.isfinite(x) & (x != 0)
    return np.where(usable, common_definitions.corrected_cube_root(scaled, near) / scale, root)


def sigmoid(x: Array) -> Array:
    value = np.divide(1.0, np.add(1.0, np.exp(np.negative(x))))
    low = np.less(x, SIGMOID_IS_EXP)
    return np.where(low, np.exp(np.minimum(x, 0.0)), value) if low.any() else value


def lgamma(x: Array) -> Array:
    # SciPy returns -inf at -inf, where the C standard and `math` say inf, and inf where 1/x overflows.
    size = np.abs(x)
    value = np.where(np.isneginf(x), np.inf, _of_scipy("lgamma")(x))
    near = np.abs(np.abs(x - 1.5) - 0.5) < 0.25
    with quiet():
        value = np.where(size < _GAMMA_IS_INVERSE, -np.log(size), value)
        if near.any():
            value[near] = common_definitions.lgamma(np, np.asarray(x)[near], np.zeros_like)
    return value


def i0(x: Array) -> Array:
    return _late_overflow(_of_scipy("i0"), _of_scipy("i0e"), x)


def i1(x: Array) -> Array:
    return _late_overflow(_of_scipy("i1"), _of_scipy("i1e"), x)


def whole_iv(n: int, x: Array) -> Array:
    # For n > 1 SciPy returns nan where 1/x overflows, and for the largest x, where the value is infinite.
    size = np.abs(x)
    small = size < _INVERSE_IS_LARGE
    infinite = np.logical_and(size > n + 1e6, np.isfinite(x))
    x = np.where(small, 1.0, np.where(infinite, np.copysign(n + 1e6, x), x))
    return np.where(small, 0.0, _late_overflow(partial(_of_scipy("whole_iv"), n), partial(_of_scipy("ive"), n), x))


def _late_overflow(function: Callable[[Array], Array], scaled: Callable[[Array], Array], x: Array) -> Array:
    """A Bessel function for which SciPy returns inf as soon as exp(x) overflows.

    It is computed from the version that is scaled by exp(-abs(x)).
    """
    size = np.abs(x)
    large = np.logical_and(size > _EXP_IS_LARGE, size < _EXP_IS_INFINITE)
    if not large.any():
        return function(x)
    with quiet():
        half = np.exp(0.5 * size)
        return np.where(large, scaled(x) * half * half, function(x))


def version() -> str:
    return np.__version__


def devices() -> Iterator[Device]:
    yield host(device_name)
