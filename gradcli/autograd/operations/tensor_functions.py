"""Functions with a different meaning for tensors, as in PyTorch, than NumPy's functions of the same names.

A call with tensors and without a keyword of NumPy (`axis`, `keepdims`, `full_matrices`) has PyTorch's meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from gradcli import arrays
from gradcli.autograd.dtype_names import known_dtype
from gradcli.autograd.operations import bitwise, sampling_functions
from gradcli.autograd.tensor_base import TensorBase
from gradcli.primitives import table
from gradcli.primitives.bind import constant
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.sampled_data.order_statistics import Pair
from gradcli.primitives.signature import SEQUENCES

_WORDS_OF_NUMPY = frozenset({"axis", "keepdims", "full_matrices"})
_WORDS_OF_SPLIT = frozenset({"dim", "split_size", "split_size_or_sections"})


def _of_torch(name: str, *operands: Any, **params: Any) -> Any:
    found: Any = table.find(name, "torch")
    return found(*operands, **params)


def _sorted(x: Any, *operands: Any, **params: Any) -> Any:
    """PyTorch's `sort`, which also returns the indices, if an axis or order is given; else NumPy's."""
    return (_of_torch if operands or params else _of_language)("sort", x, *operands, **params)


def _split(x: Any, *operands: Any, **params: Any) -> Any:
    """PyTorch's `split`, which takes sizes of parts, if its keywords are used; else NumPy's, with their number."""
    return (_of_torch if _WORDS_OF_SPLIT & params.keys() else _of_language)("split", x, *operands, **params)


def _median(name: str, x: Any, *operands: Any, **params: Any) -> Any:
    """PyTorch's `median`, which also returns the index, along an axis; else NumPy's, the mean of the middle two."""
    return (_of_torch if operands or params else _of_language)(name, x, *operands, **params)


def _of_language(name: str, *operands: Any, **params: Any) -> Any:
    return table.known(name)(*operands, **params)


def _counting(name: str, x: Any, *operands: Any, dtype: Any = None, **params: Any) -> Any:
    """A sum or product, computed in `dtype` if one is given; truth values are counted as int64."""
    if dtype is not None and isinstance(x, TensorBase):
        x = cast(x, known_dtype(dtype))
    if isinstance(x, TensorBase) and type(x.inner) is not float and arrays.dtype_name(x.inner) == "bool":
        x = cast(x, "int64")
    return _of_language(name, x, *operands, **params)


def _in_whole_numbers(name: str, x: Any, *operands: Any, **params: Any) -> Any:
    """A selection among numbers, such as `clip`; integers stay integers."""
    result = _of_language(name, x, *operands, **params)
    given = (x, *operands, *params.values())
    if not any(v is not None and arrays.is_floating(v) for v in given):
        return result.to(x.dtype)
    return result


def _gradient(x: Any, *spacing: Any, **params: Any) -> Any:
    """PyTorch's `gradient`, a tensor for each axis; NumPy's where the spacing or an `axis` is given as there."""
    own = spacing or "axis" in params or not isinstance(x, TensorBase)
    found: Any = table.find("gradient", "numpy" if own else "torch")
    return found(x, *spacing, **params)


def _in_double(x: Any, y: Any) -> Any:
    """`float_power`, which computes in double precision."""
    pair = [
        cast(part, "float64") if isinstance(part, TensorBase) and not arrays.is_complex(part) else part
        for part in (x, y)
    ]
    return _of_language("float_power", *pair)


def _as_truth(of: Callable[..., Any]) -> Callable[..., bool]:
    return lambda *operands, **params: bool(constant(of(*operands, **params)))


def _extreme(name: str, x: Any, *operands: Any, **params: Any) -> Any:
    """The largest or smallest element, along an axis with its index; the dtype is kept."""
    found: Any = _of_torch(name, x, *operands, **params)
    if isinstance(found, Pair) and not arrays.is_floating(x):
        return found._replace(values=cast(found.values, arrays.dtype_name(x)))
    return found


def _where(condition: Any, *operands: Any, **params: Any) -> Any:
    """`where`; with a condition alone, the indices of the true elements, a tensor for each axis."""
    if operands or params:
        return _of_language("where", condition, *operands, **params)
    return _with_tensors(partial(_of_torch, "nonzero"))(condition, as_tuple=True)


def _counts(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """`bincount`, whose counts are int64; weighted sums keep their dtype."""
    found = _of_language("bincount", x, weights, minlength)
    return arrays.astype(found, "int64") if weights is None else found


def _bucketize(input: Any, boundaries: Any, *, out_int32: Any = False, right: Any = False) -> Any:
    """The number of the interval between ascending boundaries in which each element is."""
    found = MEANINGS["searchsorted"](boundaries, input, right=right)
    return found.to("int32") if out_int32 else found


def _with_tensors(of: Callable[..., Any], dtype: str | None = None) -> Callable[..., Any]:
    """Wrap a function that returns indices or counts, so that its results, which are in no graph, are tensors."""
    return lambda *operands, **params: _as_tensors(of(*operands, **params), dtype, _a_tensor(operands, params))


def _as_tensors(result: Any, dtype: str | None, beside: Any) -> Any:
    if isinstance(result, tuple):
        parts = [_as_tensors(part, dtype, beside) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    found: Any = result if isinstance(result, TensorBase) else beside.made(result)
    return found if dtype is None or found.requires_grad else found.to(dtype)


def _a_tensor(operands: Any, params: Any) -> Any:
    """The first tensor among the arguments of a call or in lists of them; None if there is none."""
    for value in (*operands, *params.values()):
        if isinstance(value, TensorBase):
            return value
        if type(value) in SEQUENCES:
            inside = _a_tensor(value, {})
            if inside is not None:
                return inside
    return None


# Functions that have NumPy's meaning if one of NumPy's keywords is used.
_BY_ITS_WORDS: dict[str, Callable[..., Any]] = {
    **{name: _with_tensors(partial(_extreme, name)) for name in ("max", "min")},
    **{name: _with_tensors(partial(_median, name)) for name in ("median", "nanmedian")},
    "sort": _with_tensors(_sorted),
    "split": _split,
    "squeeze": partial(_of_torch, "squeeze"),
    "svd": partial(_of_torch, "svd"),
}
_ALWAYS: dict[str, Callable[..., Any]] = {
    **{name: partial(_of_torch, name) for name in table.TORCH_EXTENSIONS["torch"] - _BY_ITS_WORDS.keys()},
    **{
        name: _with_tensors(partial(_of_torch, name), "int64")
        for name in ("argwhere", "digitize", "one_hot", "searchsorted")
    },
    **{name: partial(_counting, name) for name in ("sum", "mean", "prod", "cumsum", "cumprod", "nansum")},
    **{name: partial(_in_whole_numbers, name) for name in ("clamp", "clip", "clamp_min", "clamp_max")},
    "allclose": _as_truth(partial(_of_language, "allclose")),
    "bincount": _with_tensors(_counts),
    **{name: _with_tensors(partial(_of_language, name), "int64") for name in ("count_nonzero", "matrix_rank")},
    "float_power": _in_double,
    "equal": _as_truth(partial(_of_torch, "equal")),
    **{name: _with_tensors(partial(_of_language, name)) for name in ("cummax", "cummin", "lu", "lu_factor")},
    "meshgrid": partial(_of_torch, "meshgrid"),
    "nonzero": _with_tensors(partial(_of_torch, "nonzero")),
    "numel": arrays.size,
    "where": _where,
}
MEANINGS = _BY_ITS_WORDS | _ALWAYS


class TensorFunction:
    """A function of the language that has PyTorch's meaning when called with tensors."""

    def __init__(self, name: str) -> None:
        self._of_language = table.known(name)
        self._of_tensors = MEANINGS[name]
        self._has_words = name in _BY_ITS_WORDS
        self.__doc__ = self._of_language.doc

    def __call__(self, *operands: Any, **params: Any) -> Any:
        if params and self._has_words and not _WORDS_OF_NUMPY.isdisjoint(params):
            return self._of_language(*operands, **params)
        if not operands and "input" in params:
            operands = (params.pop("input"),)
        of = self._of_language if _a_tensor(operands, params) is None else self._of_tensors
        return of(*operands, **params)

    def __getattr__(self, name: str) -> Any:
        """Other attributes are those of the function of the language."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._of_language, name)

    def __repr__(self) -> str:
        return repr(self._of_language)


def in_place(name: str) -> Any:
    """The function of the Python interface that changes a tensor in place, such as `sin_`; None if there is none."""
    if name.endswith("_") and not name.startswith("_") and table.find(name[:-1]) is not None:
        return lambda x, *operands, **params: getattr(x, name)(*operands, **params)
    return None


# Functions that the language lacks, or has with another meaning.
_OWN: dict[str, Callable[..., Any]] = {
    "bernoulli": sampling_functions.bernoulli,
    **{
        f"bitwise_{name}": getattr(bitwise, f"bitwise_{name}")
        for name in ("and", "or", "xor", "not", "left_shift", "right_shift")
    },
    "bucketize": _bucketize,
    "combinations": sampling_functions.combinations,
    "detach": sampling_functions.detach,
    "diff": partial(_of_torch, "diff"),
    "fill_diagonal": sampling_functions.fill_diagonal,
    "gradient": _gradient,
    "histc": sampling_functions.histc,
    "isin": sampling_functions.isin,
    "mode": sampling_functions.mode,
    "multinomial": sampling_functions.multinomial,
    "put": sampling_functions.put,
    "select": partial(_of_torch, "select"),
    "unique": sampling_functions.unique,
    "unique_consecutive": sampling_functions.unique_consecutive,
}


@cache
def function(name: str) -> Any:
    """The function of the Python interface with this name; None if there is none."""
    if name in _OWN:
        return _OWN[name]
    return TensorFunction(name) if name in MEANINGS else table.find(name)
