"""Exact whole numbers: those beyond 2**53 that no input changes are Python's integers, as floats would round them.

Operations and functions of whole numbers give integers where the result is whole and beyond 2**53. All else takes these
as floats, see `gradcli.language.interpreter.values.as_tensor_or_number`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence

from gradcli.language.interpreter.lists import ProgramList
from gradcli.language.interpreter.values import Value
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.language.syntax import tree
from gradcli.language.syntax.whole_constants import COMPARISONS, OPERATIONS

# The most binary digits of an integer, with which it is in the range of floats.
_MOST_BITS = 1023
# The largest number whose factorial is in the range of floats.
_LARGEST_FACTORIAL = 170


def _power(base: int, exponent: int) -> int | None:
    bits = exponent * max(base.bit_length() - 1, 0)
    return base**exponent if exponent >= 0 and bits <= _MOST_BITS else None


def _factorial(n: int) -> int | None:
    return math.factorial(n) if 0 <= n <= _LARGEST_FACTORIAL else None


def _fmod(a: int, b: int) -> int:
    """The remainder with the sign of the first number, as C has it."""
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


def _of_counts(count: Callable[[int, int], int]) -> Callable[[int, int], int | None]:
    """A function of combinatorics, where its results may be in the range of floats."""
    return lambda n, k: count(n, k) if 0 <= k <= n <= _MOST_BITS else None


def _product(numbers: Sequence[int]) -> int | None:
    return math.prod(numbers) if sum(n.bit_length() for n in numbers) <= 2 * _MOST_BITS else None


_OPERATORS: Mapping[str, Callable[[int, int], int | None]] = {**OPERATIONS, "**": _power}
# By the names of the table.
_OF_NUMBERS: Mapping[str, Callable[..., int | None]] = {
    "abs": abs, "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "fmod": _fmod, "power": _power, "square": lambda n: n * n,
    "factorial": _factorial, "comb": _of_counts(math.comb), "perm": _of_counts(math.perm),
}  # fmt: skip
_OF_LISTS: Mapping[str, Callable[[Sequence[int]], int | None]] = {"sum": sum, "prod": _product}
FUNCTIONS = _OF_NUMBERS.keys() | _OF_LISTS.keys()


def of_operator(symbol: str, left: Value, right: Value) -> int | float | None:
    """The result of an operator where floats would round it, or an operand; None elsewhere."""
    compute = _OPERATORS.get(symbol)
    return None if compute is None else _exact(compute, (left, right))


def of_function(name: str, operands: Sequence[Value]) -> int | float | None:
    """The result of a function where floats would round it, or an operand; None elsewhere."""
    if name in _OF_NUMBERS:
        return _exact(_OF_NUMBERS[name], operands)
    if len(operands) != 1 or type(operands[0]) is not ProgramList or operands[0].is_vector:
        return None
    numbers = _whole(operands[0].items)
    if numbers is None or (name == "sum" and sum(map(abs, numbers)) <= EXACT_INTEGERS):
        return None
    return _in_range(_OF_LISTS[name](numbers))


def compared(symbol: str, left: Value, right: Value) -> bool | None:
    """The result of a comparison of integers beyond 2**53; None for one of other numbers."""
    if int not in (type(left), type(right)):
        return None
    numbers = _whole((left, right))
    return None if numbers is None else COMPARISONS[symbol](*numbers)


def _exact(compute: Callable[..., int | None], operands: Sequence[Value]) -> int | float | None:
    numbers = _whole(operands)
    if numbers is None:
        return None
    try:
        result = _in_range(compute(*numbers))
    except (ZeroDivisionError, TypeError):
        # The function itself has a result for 0, and an error for operands that it does not take.
        return None
    # A small result of floats is what floats have.
    return result if type(result) is int or int in map(type, operands) else None


def _in_range(result: int | None) -> int | float | None:
    """An integer as a value of the language: as a float up to 2**53, None where it is beyond the range of floats."""
    if result is None or result.bit_length() > _MOST_BITS:
        return None
    return float(result) if abs(result) <= EXACT_INTEGERS else result


def _whole(values: Sequence[Value]) -> list[int] | None:
    """Values as integers; None if one is not a whole number, or may be a rounded one, as floats beyond 2**53."""
    numbers: list[int] = []
    for value in values:
        if type(value) is not int and not (
            type(value) is float and abs(value) <= EXACT_INTEGERS and value.is_integer()
        ):
            return None
        numbers.append(int(value))
    return numbers


def written(number: tree.Number) -> int | float:
    """A number from 2**53 on as it is written: an integer where it is written as one, without a point or exponent."""
    digits = number.text.replace("_", "")
    return (_in_range(int(digits)) if digits.isdecimal() else None) or number.value
