"""Validation of arguments that are not differentiated: axes, shapes, counts, indices, options."""

from __future__ import annotations

from collections.abc import Collection

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives.bind import Kind, concrete
from gradcli.type_hints import Any

# NumPy's limit on the number of dimensions; no array library has a higher one.
MOST_AXES = 64
_INT = frozenset({int})


def one_number(value: Any, what: str) -> Any:
    """`value` as a Python number, or as a ball where no float equals it.

    Raises EvaluationError if it is not a single real number.
    """
    number = _plain(value)
    if type(number) is complex:
        raise EvaluationError(f"{what} must be a real number, not {number}")
    if number is None:
        number = concrete(value)
        if not arrays.is_array(number) or arrays.shape(number):
            raise EvaluationError(f"{what} must be one number")
    return number


def one_number_or_tensor(value: Any, what: str) -> Any:
    """Like `one_number`, but a tensor or another `Kind` is returned unchanged, so that it can be differentiated by."""
    number = one_number(value, what)
    return value if isinstance(value, Kind) else number


def one_float(value: Any, what: str) -> float:
    """`value` as a float. Raises EvaluationError if it is not a single number, or a ball that no float equals."""
    number = one_number(value, what)
    if type(number) not in arrays.PYTHON_NUMBERS:
        raise EvaluationError(f"{what} must be a number that a float is, as 0.5 is and 1/3 is not")
    try:
        return float(number)
    except OverflowError:
        raise EvaluationError("an integer is too large for a float") from None


def boolean(value: Any, what: str) -> bool:
    """`value` as a bool. Raises EvaluationError if it is not a single number."""
    return value if type(value) is bool else bool(one_number(value, what))


def option(value: Any, choices: Collection[str], what: str) -> str:
    """`value`, which must be one of the strings in `choices`. Raises EvaluationError otherwise; `what` names the
    option."""
    if not isinstance(value, str) or value not in choices:
        given = repr(value) if isinstance(value, str) else "what is no text"
        raise EvaluationError(f"there is no {what} {given:.40}", hint=f"it is {', '.join(map(repr, choices))}")
    return value


def integer(value: Any, what: str) -> int:
    """`value` as an int. Raises EvaluationError if it is not a single integer."""
    number = _plain(value)
    if number is None:
        raise EvaluationError(f"{what} must be a whole number")
    if type(number) is complex:
        raise EvaluationError(f"{what} must be a whole number, not {number}")
    if number != number or abs(number) == float("inf") or number != int(number):
        raise EvaluationError(f"{what} must be a whole number, not {number}")
    return int(number)


def _plain(value: Any) -> Any:
    """`value` as a Python number if it is one or a 0-dimensional array, else None."""
    number: Any = concrete(value)
    if type(number) not in arrays.PYTHON_NUMBERS and getattr(number, "ndim", 1) == 0:
        number = arrays.to_numpy(number).item()
    return number if type(number) in arrays.PYTHON_NUMBERS else None


def whole_numbers(value: Any, what: str) -> Shape:
    """`value`, an integer or a sequence of integers, as a tuple of ints.

    Raises EvaluationError for other numbers and for bools, whose meaning differs between libraries.
    """
    if type(value) is int:
        return (value,)
    if type(value) is tuple and len(value) <= MOST_AXES and _INT.issuperset(map(type, value)):
        return value
    value = concrete(value)
    if type(value) in arrays.PYTHON_NUMBERS or getattr(value, "ndim", 1) == 0:
        return (_no_truth(value, what),)
    if arrays.is_array(value):
        value = arrays.to_numpy(value)
    try:
        if len(value) > MOST_AXES:
            raise ShapeError(f"{len(value):,} numbers are too many for the axes of a tensor, at most {MOST_AXES}")
        return tuple(_no_truth(item, what) for item in value)
    except TypeError:
        raise EvaluationError(f"{what} must be made of whole numbers") from None


def _no_truth(value: Any, what: str) -> int:
    # Fast path: nearly all values are ints.
    if type(value) is int:
        return value
    number = _plain(value)
    if type(number) is bool:
        raise EvaluationError(f"{what} must be a whole number, not {number}")
    return integer(number, what)


def gathered(numbers: tuple[Any, ...], what: str) -> Shape:
    """Integers given as separate arguments or as one sequence, as a tuple of ints."""
    return whole_numbers(numbers[0] if len(numbers) == 1 else numbers, what)


def integer_array(value: Any, what: str) -> Any:
    """`value` as an int64 array. Raises EvaluationError if its numbers are not integers."""
    array = arrays.to_numpy(value)
    # Numbers outside int64 are rejected beforehand, as `astype` would warn about them.
    known = array.dtype.kind in "iuf" and (abs(array) < 2.0**63).all()
    integers = array.astype("int64") if known else None
    if integers is None or (integers != array).any():
        raise EvaluationError(f"{what} must be made of whole numbers")
    return integers


def diagonal_number(k: Any, rows: int, columns: int) -> int:
    """The offset of a diagonal of a `rows` by `columns` matrix, clamped to the offsets just outside its corners."""
    return max(-rows, min(integer(k, "a diagonal"), columns))


def normalize_axis(axis: Any, ndim: int) -> int:
    """The axis as a non-negative number. Raises ShapeError if it is out of range."""
    number = _no_truth(axis, "an axis")
    if not -ndim <= number < ndim:
        raise ShapeError(f"axis {number} is out of range for a tensor of {ndim} dimensions")
    return number % ndim


def normalize_axes(axis: Any, ndim: int) -> Shape:
    """The axes as sorted non-negative numbers without repetition; None means all axes."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and ndim:
        return (normalize_axis(axis, ndim),)
    numbers = whole_numbers(axis, "an axis")
    if not ndim:
        # NumPy and PyTorch accept the axes of a vector (0 and -1) for a scalar; there is nothing to reduce.
        for number in numbers:
            normalize_axis(number, 1)
        return ()
    axes = sorted(normalize_axis(a, ndim) for a in numbers)
    if len(set(axes)) < len(axes):
        raise ShapeError("the same axis is named twice")
    return tuple(axes)
