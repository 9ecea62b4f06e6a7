"""The array namespace of NumPy: its own functions, and what the language needs beyond them.

Every namespace has the functions that are here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache, partial
from typing import Any

import numpy as np

from gradcli.arrays import dtypes, scipy_special, spellings
from gradcli.arrays.backends import Device
from gradcli.arrays.dtypes import PLAIN, default_dtype, dtype_name
from gradcli.arrays.memory import host, out_of_memory
from gradcli.errors import GradcliError

Array = Any
name = "numpy"
device_name = "cpu"
quiet = partial(np.errstate, all="ignore")
tidy = dtypes.tidy
asarray, astype, copy, zeros, ones, all = np.asarray, np.astype, np.copy, np.zeros, np.ones, np.all

_NUMBERS = frozenset({float, int})
# Below it 1/(1 + exp(-x)) is exp(x), and above it exp(-x) is finite, for float32 too.
SIGMOID_IS_EXP = -80.0


def __getattr__(name: str) -> Any:
    return _function(name)


class _LinearAlgebra:
    """`numpy.linalg`, of finite numbers where LAPACK iterates: of others it may print what it thinks of them, or
    never come back."""

    @cache  # noqa: B019 - there is one
    def __getattr__(self, name: str) -> Any:
        function = getattr(np.linalg, name)
        return partial(_of_finite, function) if name in _ITERATES else function


_ITERATES = frozenset({"eigh", "eigvalsh", "pinv", "svd", "svdvals"})
linalg = _LinearAlgebra()


def _of_finite(function: Any, x: Array, **params: Any) -> Any:
    if not np.isfinite(x).all():
        raise np.linalg.LinAlgError("the matrix has a number that is not finite")
    return function(x, **params)


# Not kept among the globals of this module, where `any` and `max` are those of Python.
@cache
def _function(name: str) -> Any:
    spelling = spellings.of(name)
    found = getattr(np, spelling.within("numpy", name), None)
    if found is None and "scipy" in spelling.names:
        found = getattr(scipy_special, name)
    return spellings.defined(sys.modules[__name__], name) if found is None else found


def synchronise() -> None:
    """NumPy has computed when it returns."""


def promoted(operands: Sequence[Array], *, truths: bool) -> Sequence[Array]:
    """Numbers and arrays of NumPy, with integers beside float32 made float32, where NumPy would make both float64.

    Truth values stay what they are where `truths`, and else become the numbers 0 and 1.
    """
    chars = {"?" if type(o) is bool else o.dtype.char for o in operands if type(o) not in _NUMBERS}
    if "?" in chars and not truths:
        operands = _as_numbers(operands, chars)
    if "f" not in chars or "d" in chars or chars.isdisjoint("ilqILQ"):
        return operands
    return [o if type(o) in PLAIN or o.dtype.kind not in "iu" else o.astype("float32") for o in operands]


def _as_numbers(operands: Sequence[Array], chars: Set[str]) -> Sequence[Array]:
    """The operands, with truth values as numbers in the floating dtype of the others, or the default one."""
    dtype = "float64" if "d" in chars else "float32" if "f" in chars else default_dtype()
    return [tidy(np.asarray(o, dtype)) if dtype_name(o) == "bool" else o for o in operands]


def explained(error: Exception) -> GradcliError | None:
    return out_of_memory(str(error), host(device_name).free) if isinstance(error, MemoryError) else None


def to_numpy(array: Array) -> Any:
    return np.asarray(array)


def owned(array: Array) -> Array:
    return array.copy() if isinstance(array, np.ndarray) and array.flags.writeable else array


def unshared(array: Array, others: Iterable[Array]) -> Array:
    if not isinstance(array, np.ndarray):
        return array
    shared = not array.flags.writeable or any(_may_share_memory(array, other) for other in others)
    return array.copy() if shared else array


def _may_share_memory(array: Array, other: Array) -> bool:
    return isinstance(other, np.ndarray) and np.may_share_memory(array, other)


def index(x: Array, key: Any) -> Array:
    """x[key], for ints, slices, None, Ellipsis and arrays of whole numbers."""
    return np.asarray(x)[key]


def scatter_add(values: Array, key: Any, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with `values` added at `key`; positions that repeat add up."""
    values = np.asarray(values)
    out = np.zeros(shape, values.dtype)
    if any(isinstance(item, np.ndarray) for item in key):
        np.add.at(out, key, values)
    else:
        # No position repeats, and this takes an eighth of the time.
        out[key] += values
    return out


def einsum(*operands: Array, subscripts: str) -> Array:
    # Pairwise contraction keeps a product of many operands from looping over all indices at once.
    return np.einsum(subscripts, *operands, optimize=len(operands) > 2)


def contraction_steps(shapes: Sequence[tuple[int, ...]], *, subscripts: str) -> Sequence[tuple[int, ...]]:
    """Which operands `einsum` multiplies at once, step by step; each product comes behind those left."""
    if len(shapes) <= 2:
        return [tuple(range(len(shapes)))]
    operands = [np.broadcast_to(0.0, shape) for shape in shapes]
    steps: Sequence[tuple[int, ...]] = np.einsum_path(subscripts, *operands, optimize=True)[0][1:]
    return steps


def expm(x: Array) -> Array:
    """The exponential of each matrix over the last two axes."""
    import scipy.linalg

    return scipy.linalg.expm(x)


def sigmoid(x: Array) -> Array:
    value = np.divide(1.0, np.add(1.0, np.exp(np.negative(x))))
    low = np.less(x, SIGMOID_IS_EXP)
    return np.where(low, np.exp(np.minimum(x, 0.0)), value) if low.any() else value


def lgamma(x: Array) -> Array:
    # SciPy has -inf at -inf, against the C standard and `math`.
    return np.where(np.isneginf(x), np.inf, scipy_special.lgamma(x))


def version() -> str:
    return np.__version__


def devices() -> Iterator[Device]:
    yield host(device_name)
