"""Numbers with proved digits, and arrays of them: exact fractions, and balls of FLINT's Arb.

A *number* here is an `fmpq`, an exact fraction, or an `arb`, a ball (midpoint and radius) that encloses the value.
Small fractions stay fractions, so that comparisons and zeros are exact; a fraction that grows beyond a few times the
working precision becomes a ball. An undefined result is `UNDEFINED`; the value at a pole is an infinity, as in IEEE
754. If a ball is too wide to decide a question, UndecidedError is raised instead of guessing.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from functools import cache
from numbers import Rational
from threading import RLock
from typing import Any

from flint import arb, ctx, fmpq, fmpz

from gradcli import limits
from gradcli.arrays import backends
from gradcli.arrays.dtypes import PYTHON_NUMBERS, is_complex
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError
from gradcli.errors import UndecidedError as UndecidedError

# An fmpq or an arb of python-flint, which has no type stubs.
Number = Any

UNDEFINED: Number = arb("nan")
INFINITY: Number = arb.pos_inf()
NEGATIVE_INFINITY: Number = arb.neg_inf()
_SPECIAL = (UNDEFINED, INFINITY, NEGATIVE_INFINITY)

# The largest height of a fraction in bits: this multiple of the working precision, and this absolute maximum.
_FRACTION, _LARGEST_FRACTION = 4, 2**14
# Arithmetic of fractions computes greatest common divisors, in time proportional to the square of their bits. Fractions
# above _SMALL_FRACTION bits are charged bits**2/_BITS eighths of a step.
_SMALL_FRACTION, _BITS = 2**9, 2**17
_TEXT = re.compile(r"([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")

_lock = RLock()


class Undecided:
    """The undecided questions in an evaluation over balls that stand for all numbers in them (interval evaluation).

    A comparison that the balls do not decide takes its truth value from `decisions`, in the order in which they occur;
    further ones are true. `jumped` records whether a function had a discontinuity inside a ball.
    """

    # The number of undecided comparisons that are explored; a further one raises UndecidedError.
    most = 4

    def __init__(self, decisions: Sequence[bool] = ()) -> None:
        self.decisions = [*decisions]
        self.count = 0
        self.jumped = False
        # For each pair of balls compared so far, the relations of "<=>" that are still possible. The balls are kept
        # alive, because the keys are their ids.
        self._left: dict[Any, tuple[str, Any]] = {}

    def decide(self, x: Number, relations: str, y: Number) -> bool:
        """Return whether one of `relations`, a subset of "<=>", holds between x and y; repeated calls give consistent
        answers.

        Raises UndecidedError if `most` comparisons are undecided already.
        """
        self.jumped = True
        key = _identity(x), _identity(y)
        left, _ = self._left.get(key, ("<=>", None))
        holds = "".join(r for r in left if r in relations)
        if holds in ("", left):
            return bool(holds)
        if self.count == len(self.decisions):
            if self.count == self.most:
                raise UndecidedError("two numbers cannot be told apart")
            self.decisions.append(True)
        self.count += 1
        truth = self.decisions[self.count - 1]
        self._left[key] = (holds if truth else "".join(r for r in left if r not in relations)), (x, y)
        return truth


def _identity(x: Number) -> Any:
    return x if type(x) is fmpq else id(x)


_doubts: ContextVar[Undecided | None] = ContextVar("gradcli_doubts", default=None)


@contextmanager
def interval_evaluation(doubts: Undecided | None) -> Iterator[None]:
    """Within the block, balls stand for all numbers in them, and undecided questions are recorded in `doubts`.

    If it is None, they raise UndecidedError.
    """
    token = _doubts.set(doubts)
    try:
        yield
    finally:
        _doubts.reset(token)


def is_interval_evaluation() -> bool:
    """Return whether balls stand for all numbers in them."""
    return _doubts.get() is not None


def record_discontinuity() -> None:
    """Record that a function has a discontinuity inside a ball."""
    doubts = _doubts.get()
    if doubts is not None:
        doubts.jumped = True


def stands_for_others(number: Number) -> bool:
    """Return whether a number is an inexact ball that stands for all numbers in it."""
    return type(number) is not fmpq and _doubts.get() is not None and not number.is_exact()


@contextmanager
def precise(bits: int) -> Iterator[None]:
    """Within the block FLINT computes with `bits` bits.

    The precision is global to the process, so a lock makes other threads wait until the block ends.
    """
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def precision() -> int:
    """The current working precision of FLINT in bits."""
    return ctx.prec  # type: ignore[no-any-return]


def bounded_height(number: Number) -> Number:
    """Convert a fraction that has grown too large to a ball, and charge the work on large fractions to the budget."""
    if type(number) is fmpq:
        bits = number.height_bits()
        if bits > _SMALL_FRACTION:
            limits.charge_steps(bits * bits // _BITS)
        if bits > _most_bits():
            return arb(number)
    return number


def _most_bits() -> int:
    return min(_FRACTION * ctx.prec, _LARGEST_FRACTION)  # type: ignore[no-any-return]


def real_number_needed() -> EvaluationError:
    """The error of a complex number in a computation that has proved digits of real numbers alone."""
    return EvaluationError(
        "this is proved of real numbers alone, and there is a complex one",
        hint="real(z), imag(z), abs(z) and angle(z) are real",
    )


def exact(value: Any) -> Number:
    """Convert a number of Python, NumPy or FLINT to a number without rounding.

    A float is its exact binary value; a string, a Decimal, or a float that keeps its source text (`text`) is that
    decimal. Raises EvaluationError for complex numbers, TypeError or ValueError for other values.
    """
    kind = type(value)
    if kind is fmpq or kind is arb:
        return value
    if kind is not float:
        text = str(value) if isinstance(value, (str, Decimal)) else getattr(value, "text", "")
        match = _TEXT.fullmatch(text) if text else None
        if match is not None:
            return _decimal(match)
        if isinstance(value, (Rational, bool)):
            return bounded_height(fmpq(value.numerator, value.denominator))
        if isinstance(value, complex):
            raise real_number_needed()
        value = operator.index(value) if hasattr(value, "__index__") else float(value)
        if type(value) is int:
            return bounded_height(fmpq(value))
    if not math.isfinite(value):
        return UNDEFINED if math.isnan(value) else INFINITY if value > 0 else NEGATIVE_INFINITY
    numerator, denominator = value.as_integer_ratio()
    number = fmpq(numerator, denominator)
    # A ball made from a float has radius 0.
    return number if number.height_bits() <= _most_bits() else arb(value)


def from_text(text: str) -> Number:
    """The number that a decimal literal such as `0.1`, `-1e-5` or `.5` denotes: 0.1 is one tenth.

    Raises ValueError for other text.
    """
    match = _TEXT.fullmatch(text.strip().replace("_", ""))
    if match is None:
        raise ValueError(f"{text!r} is not a decimal number")
    return _decimal(match)


def shortest_decimal(number: float) -> Number:
    """The shortest decimal that is read as a float, which is what the user wrote."""
    return from_text(repr(float(number)))


def _decimal(match: re.Match[str]) -> Number:
    """The number that the groups of a match of `_TEXT` denote."""
    if not (match[2] or match[3]):
        raise ValueError(f"{match[0]!r} is not a decimal number")
    sign, whole, behind, exponent = match.groups(default="")
    digits = (whole + behind).lstrip("0")
    if not digits:
        return fmpq(0)
    power = int(exponent or "0") - len(behind)
    if abs(power) + len(digits) > _most_bits():
        # The fraction would be too large, or unboundedly large for a huge exponent.
        return arb(f"{sign}{digits}e{power}")
    # fmpz parses them, because Python's `int` refuses strings of more than 4,300 digits.
    top = fmpq(-fmpz(digits) if sign == "-" else fmpz(digits))
    return bounded_height(top * fmpq(10) ** power)


def is_exact(number: Number) -> bool:
    """Return whether a number has no error radius; true for infinities and `UNDEFINED`."""
    return type(number) is fmpq or number.is_exact() or number is UNDEFINED


def is_nan(number: Number) -> bool:
    """Return whether a number is `UNDEFINED` or another nan ball."""
    return type(number) is arb and number.is_nan()


def decided(truth: bool, opposite: bool, x: Number, relations: str, y: Number) -> bool:
    """Return whether a relation of `relations`, a subset of "<=>", certainly holds between x and y.

    `truth` and `opposite` are FLINT's answers for the relation and its negation, as in `decided(x < y, x >= y, x, "<",
    y)`: FLINT affirms a comparison of balls only if it holds for all numbers in them. If both are false, the question
    goes to the current `Undecided`, or raises UndecidedError if there are none.
    """
    if truth is opposite:
        doubts = _doubts.get()
        if doubts is None:
            raise UndecidedError("two numbers cannot be told apart")
        return doubts.decide(x, relations, y)
    return truth


def checked_result(result: Number, operands: Sequence[Any]) -> Number:
    """Return a result that is finite, certainly infinite or certainly undefined. Raises UndecidedError otherwise."""
    if type(result) is fmpq or result.is_finite() or any(result is special for special in _SPECIAL):
        return result
    balls = [o for o in operands if type(o) is arb]
    if any(o.is_nan() for o in balls):
        return UNDEFINED
    if not result.is_nan() and result.is_exact():
        return INFINITY if result > 0 else NEGATIVE_INFINITY
    if result.is_nan() and all(o.is_exact() for o in balls):
        return UNDEFINED
    raise UndecidedError("it cannot be told whether a number is finite")


class _Dtype:
    """The dtype of all arrays of balls.

    It is named float64, because balls take the place of double-precision numbers.
    """

    name = "float64"

    def __repr__(self) -> str:
        return self.name


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    def apply(self: Balls, *others: Any) -> Any:
        if any(type(o) not in PYTHON_NUMBERS and backends.backend_of(type(o)) is None for o in others):
            # The other operand is of an unknown type and may define the reflected operator.
            return NotImplemented
        operands = (*others, self) if reflected else (self, *others)
        namespace = _namespace().of_complex_numbers() if any(map(is_complex, operands)) else _namespace()
        return getattr(namespace, name)(*operands)

    return apply


@cache
def _namespace() -> Any:
    return backends.namespace("flint")


class Balls:
    """An array of numbers: `numbers` is one number for zero dimensions, else an object array of NumPy."""

    __slots__ = ("numbers",)
    dtype = _Dtype()
    # Makes NumPy arrays defer binary operators to this class.
    __array_ufunc__ = None

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    @property
    def shape(self) -> Shape:
        return getattr(self.numbers, "shape", ())

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, key: Any) -> Any:
        return _namespace().index(self, key if type(key) is tuple else (key,))

    def item(self) -> Number:
        """The number of an array of one element."""
        return self.numbers.item() if self.shape else self.numbers

    def as_integer_ratio(self) -> tuple[int, int]:
        """The numerator and denominator of an array of one fraction. Raises ValueError for a ball."""
        number = self.item()
        if type(number) is not fmpq:
            raise ValueError("a ball is no fraction")
        return int(number.p), int(number.q)

    def __bool__(self) -> bool:
        return bool(_namespace().not_equal(Balls(self.item()), 0.0))

    def __float__(self) -> float:
        return to_float(self.item())

    def __repr__(self) -> str:
        return f"Balls({self.numbers!r})"

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", True)
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", True)
    __mod__, __rmod__ = _operator("remainder"), _operator("remainder", True)
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _operator("floor_divide", True)
    __neg__, __pos__, __abs__ = _operator("negative"), _operator("positive"), _operator("abs")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__ = _operator("equal")
    __ne__ = _operator("not_equal")
    __hash__ = None  # type: ignore[assignment]


def real_ball(value: Any) -> arb:
    """A number as a ball: one of `Balls`, or one that `exact` converts."""
    return arb(value.numbers if type(value) is Balls else exact(value))


def to_float(number: Number) -> float:
    """The float at or next to a fraction, or to the midpoint of a ball.

    Raises EvaluationError for a ball that stands for all numbers in it.
    """
    if type(number) is not fmpq and _doubts.get() is not None and number.is_finite() and number.rad() > 0:
        raise EvaluationError("an interval stands where one number is needed", hint="give this name a number")
    if type(number) is fmpq:
        try:
            return int(number.p) / int(number.q)
        except OverflowError:
            return math.inf if number > 0 else -math.inf
    return float(number)
