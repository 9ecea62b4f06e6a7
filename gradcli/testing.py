"""`torch.testing`: comparison of tensors in tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.primitives.bind import concrete

__all__ = ["assert_allclose", "assert_close"]

# The tolerances of PyTorch, relative and absolute, for the dtype of the parts; 0 for other dtypes.
_TOLERANCES = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}

Message = str | Callable[[str], str] | None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise AssertionError unless `|actual - expected| <= atol + rtol*|expected|` everywhere.

    Tensors, arrays, numbers, and sequences and mappings of them are compared; shapes must agree, and with `check_dtype`
    dtypes. The tolerances are both given or neither; by default they depend on the less precise dtype, as in PyTorch.
    Raises ArgumentError for one tolerance alone.
    """
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ArgumentError(f"rtol and atol must both be specified or both be unspecified, but got no {missing}")
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    waiting: list[tuple[str, Any, Any]] = [("", actual, expected)]
    while waiting:
        place, one, other = waiting.pop()
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                _fail("The keys of the mappings do not match.", place, msg)
            waiting += [(f"{place}[{key!r}]", one[key], other[key]) for key in reversed([*one])]
        elif isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
            if len(one) != len(other):
                _fail(f"The length of the sequences mismatch: {len(one)} != {len(other)}", place, msg)
            waiting += [(f"{place}[{number}]", one[number], other[number]) for number in reversed(range(len(one)))]
        elif not isinstance(one, Tensor) and not isinstance(other, Tensor) and one is other:
            continue
        else:
            _compare(one, other, place, tolerances, equal_nan, check_dtype, msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: Any = None,
) -> None:
    """The older name of `assert_close`, which compares other dtypes too, and takes nan as equal to nan."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _compare(
    actual: Any,
    expected: Any,
    place: str,
    tolerances: tuple[float, float] | None,
    equal_nan: bool,
    check_dtype: bool,
    msg: Message,
) -> None:
    are_tensors = isinstance(actual, Tensor), isinstance(expected, Tensor)
    if are_tensors[0] != are_tensors[1]:
        kinds = f"{type(actual)} and {type(expected)}"
        raise TypeError(f"No comparison pair was able to handle inputs of type {kinds}.")
    dtypes = arrays.dtype_name(actual), arrays.dtype_name(expected)
    one, other = arrays.to_numpy(concrete(actual)), arrays.to_numpy(concrete(expected))
    if one.shape != other.shape:
        _fail(f"The values for attribute 'shape' do not match: {one.shape} != {other.shape}.", place, msg)
    if check_dtype and are_tensors[0] and dtypes[0] != dtypes[1]:
        _fail(f"The values for attribute 'dtype' do not match: {dtypes[0]} != {dtypes[1]}.", place, msg)
    chosen = [_TOLERANCES.get(arrays.real_dtype(dtype), (0.0, 0.0)) for dtype in dtypes]
    rtol, atol = tolerances or (max(r for r, _ in chosen), max(a for _, a in chosen))
    numpy = arrays.numpy_namespace()
    close = numpy.isclose(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if close.all():
        return
    if not one.ndim and not are_tensors[0]:
        _fail(f"Scalars are not close!\n\nExpected {expected} but got {actual}.", place, msg)
    _fail(_report(one, other, close, rtol, atol), place, msg)


def _report(one: Any, other: Any, close: Any, rtol: float, atol: float) -> str:
    """The number of elements that are not close, and the largest differences among them."""
    numpy = arrays.numpy_namespace()
    kind = "Tensor-likes are not equal!" if rtol == atol == 0.0 else "Tensor-likes are not close!"
    missed = int((~close).sum())
    lines = [kind, "", f"Mismatched elements: {missed} / {close.size} ({100 * missed / close.size:.1f}%)"]
    with numpy.quiet():
        absolute = numpy.where(close, 0.0, numpy.abs(one * 1.0 - other * 1.0))
        relative = numpy.where(close, 0.0, absolute / numpy.abs(other * 1.0))
    for name, differences, allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        worst = numpy.unravel_index(int(numpy.nan_to_num(differences, nan=math.inf).argmax()), one.shape)
        index = tuple(int(number) for number in worst)
        limit = f" (up to {allowed} allowed)" if rtol or atol else ""
        lines.append(f"Greatest {name} difference: {float(differences[worst])} at index {index}{limit}")
    return "\n".join(lines)


def _fail(message: str, place: str, msg: Message) -> None:
    text = f"{message}\n\nThe failure occurred for item {place}" if place else message
    raise AssertionError(msg(text) if callable(msg) else msg or text)
