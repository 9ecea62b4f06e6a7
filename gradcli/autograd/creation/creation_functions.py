"""Creation functions with PyTorch's arguments and defaults: zeros, ones, ranges, triangular indices.

They wrap the functions of the language with the same names, which return arrays.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.creation.factory import as_tensor, new_leaf
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError
from gradcli.primitives.axes import integer
from gradcli.primitives.entries.arithmetic import zeros_like as zeros_in_its_place
from gradcli.primitives.entries.manipulation import creation
from gradcli.primitives.entries.manipulation.creation import one_host_number, read_shape
from gradcli.primitives.entries.sampled_data import fourier


def zeros(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Zeros of a shape, given as separate sizes or as one sequence.

    `dtype` defaults to the default dtype; `device`, `backend` and `requires_grad` are those of `tensor`.
    """
    return _filled(size, 0, dtype or arrays.default_dtype(), options)


def ones(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Ones of a shape; see `zeros`."""
    return _filled(size, 1, dtype or arrays.default_dtype(), options)


def empty(*size: Any, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor of a shape with unspecified values; they are zeros."""
    return _filled(size, 0, dtype or arrays.default_dtype(), options)


def full(size: Any = (), fill_value: Any = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor of a shape filled with one value, whose dtype it takes by default; see `zeros`."""
    shape, value = options.pop("shape", size), options.pop("value", fill_value)
    if value is None:
        raise CallError('full() missing 1 required positional arguments: "fill_value"')
    return new_leaf(creation.full(shape, one_host_number(value, "full")), dtype=dtype or _dtype_of(value), **options)


def _dtype_of(value: Any) -> str | None:
    return arrays.default_dtype() if type(value) is float else None


def _filled(size: tuple[Any, ...], value: int, dtype: Any, options: dict[str, Any]) -> Tensor:
    for name in ("size", "shape"):
        if name in options:
            size = (options.pop(name),)
    sizes = read_shape(size)
    made = arrays.made(lambda xp: xp.full(sizes, value, dtype="float64")) if sizes else float(value)
    return new_leaf(made, dtype=dtype, **options)


def zeros_like(input: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """Zeros with the shape of a tensor and, by default, its dtype and device."""
    return _like(input, 0, dtype, options)


def ones_like(input: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """Ones like a tensor; see `zeros_like`."""
    return _like(input, 1, dtype, options)


empty_like = zeros_like


def full_like(input: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor like another, filled with one value; see `zeros_like`."""
    return _like(input, fill_value, dtype, options)


def _like(source: Any, value: Any, dtype: Any, options: dict[str, Any]) -> Tensor:
    # A batched source gives a batched result, which can be changed in place by batched values.
    made = as_tensor(zeros_in_its_place(as_tensor(source).detach()))
    made = as_tensor(made, dtype or as_tensor(source).dtype)
    if type(value) is not int or value != 0:
        made = made.fill_(value).detach()
    return new_leaf(made.inner, **options)


def eye(n: Any, m: Any = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """The identity matrix with n rows and m columns (n by default); see `zeros`."""
    return new_leaf(creation.eye(n, m), dtype=dtype or arrays.default_dtype(), **options)


def arange(start: Any = None, end: Any = None, step: Any = 1, *, dtype: Any = None, **options: Any) -> Tensor:
    """The numbers start, start + step, … below end; start is 0 if one number is given.

    They are integers if all three are.
    """
    end = options.pop("stop", end)
    if start is None and end is None:
        raise CallError("arange() needs the end of the range", hint="arange(3) is 0, 1, 2")
    given = (0, start if end is None else end, step) if end is None or start is None else (start, end, step)
    first, last, by = (one_host_number(_numbers(v), "arange") for v in given)
    if by == 0 or not all(math.isfinite(v) for v in (first, last, by)):
        raise EvaluationError("'arange' needs finite numbers and a step that is not 0")
    count = max(math.ceil((last - first) / by), 0)
    limits.charge(count)
    whole_ones = all(not arrays.is_floating(v) for v in (first, last, by))
    made = arrays.made(lambda xp: first + by * xp.arange(count, dtype="int64" if whole_ones else "float64"))
    return new_leaf(made, dtype=dtype or ("int64" if whole_ones else arrays.default_dtype()), **options)


def linspace(
    start: Any, end: Any = None, steps: Any = None, *, endpoint: bool = True, dtype: Any = None, **options: Any
) -> Any:
    """`steps` (50 by default) evenly spaced numbers from start to end, which is left out unless `endpoint`.

    They are in the graph of start and end if these are tensors.
    """
    end, count = (
        options.pop("stop", end),
        integer(options.pop("num", 50 if steps is None else steps), "a number of steps"),
    )
    if any(isinstance(v, Tensor) and v.requires_grad for v in (start, end)):
        return creation.linspace(start, end, count, endpoint)
    first, last = (float(one_host_number(_numbers(v), "linspace")) for v in (start, end))
    (count,) = read_shape((count,))
    whole = count if endpoint else count + 1
    step = (last - first) / max(whole - 1, 1)

    def points(xp: Any) -> Any:
        # Computed from both ends, so that both are exact and the points are symmetric, as in PyTorch.
        places = xp.arange(count)
        return xp.where(places < max(whole // 2, 1), first + step * places, last - step * (whole - 1 - places))

    return new_leaf(arrays.made(points), dtype=dtype or arrays.default_dtype(), **options)


def logspace(
    start: Any, end: Any = None, steps: Any = None, base: Any = 10.0, *, dtype: Any = None, **options: Any
) -> Any:
    """The powers of a base whose exponents are `linspace(start, end, steps)`."""
    end, steps = options.pop("stop", end), options.pop("num", steps)
    powers = base ** linspace(start, end, steps, dtype="float64")
    return powers if powers.requires_grad else new_leaf(powers.inner, dtype=dtype or arrays.default_dtype(), **options)


def tril_indices(row: Any, col: Any = None, offset: Any = 0, *, dtype: Any = "int64", **options: Any) -> Tensor:
    """The row and column indices of the elements of a matrix on and below a diagonal."""
    return _triangle(row, col, lambda columns, rows: columns <= rows + integer(offset, "an offset"), dtype, options)


def triu_indices(row: Any, col: Any = None, offset: Any = 0, *, dtype: Any = "int64", **options: Any) -> Tensor:
    """The row and column indices of the elements of a matrix on and above a diagonal."""
    return _triangle(row, col, lambda columns, rows: columns >= rows + integer(offset, "an offset"), dtype, options)


def fftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None, **options: Any) -> Any:
    """The frequencies of `fft` of n samples at a distance d, in the graph of d if it is a tensor; see `zeros`."""
    return _of_distance(fourier.fftfreq(n, d), dtype, options)


def rfftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None, **options: Any) -> Any:
    """The frequencies of `rfft` of n samples at a distance d; see `fftfreq`."""
    return _of_distance(fourier.rfftfreq(n, d), dtype, options)


def _of_distance(found: Any, dtype: Any, options: dict[str, Any]) -> Any:
    return found if isinstance(found, Tensor) else new_leaf(found, dtype=dtype or arrays.default_dtype(), **options)


def _triangle(row: Any, col: Any, holds: Any, dtype: Any, options: dict[str, Any]) -> Tensor:
    rows, columns = read_shape((row, row if col is None else col))
    made = arrays.made(lambda xp: xp.stack(xp.nonzero(holds(xp.arange(columns), xp.arange(rows)[:, None]))))
    return new_leaf(made, dtype=dtype, **options)


def _numbers(value: Any) -> Any:
    """A tensor detached from the graph; other values unchanged."""
    return value.detach() if isinstance(value, Tensor) else value
