"""Numbers whose digits are proved, and arrays of them: exact fractions, and balls of FLINT's Arb.

A *number* here is an `fmpq`, which is exact, or an `arb`, a ball that the number lies in: a midpoint and a
radius. A fraction stays one while it is small, so that comparisons and zeros are exact; one that has grown
beyond a few times the working precision becomes a ball. What has no value is `UNDEFINED`, and a pole has an infinity
as IEEE 754 says it. A ball that is too wide for an answer is never guessed at: that is an UndecidedError.
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
from gradcli.arrays.dtypes import PLAIN
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError
from gradcli.errors import UndecidedError as UndecidedError

# A number of flint: an fmpq or an arb.
Number = Any

UNDEFINED: Number = arb("nan")
INFINITY: Number = arb.pos_inf()
NEGATIVE_INFINITY: Number = arb.neg_inf()
_SPECIAL = (UNDEFINED, INFINITY, NEGATIVE_INFINITY)

# A fraction has at most so many times the bits of the working precision, and so many whatever that is.
_FRACTION, _LARGEST_FRACTION = 4, 2**14
# Its sums and products take the time of a greatest common divisor, with the square of its bits, here for an eighth of a step.
_SMALL_FRACTION, _BITS = 2**9, 2**17
_TEXT = re.compile(r"([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")

_lock = RLock()


class Doubts:
    """What is not certain in a run over balls that stand for all numbers in them: comparisons, which are decided as is
    said for the first of them and are true then, and whether a function jumped inside a ball."""

    # Further ones are errors.
    most = 4

    def __init__(self, decisions: Sequence[bool] = ()) -> None:
        self.decisions = [*decisions]
        self.count = 0
        self.jumped = False
        # Of two balls, which are kept, what is left of "<=>".
        self._left: dict[Any, tuple[str, Any]] = {}

    def decide(self, x: Number, relations: str, y: Number) -> bool:
        """Whether one of some relations, of `<=>`, is that of two numbers, the same whenever it is asked for. Raises
        UndecidedError where many were open before."""
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


_doubts: ContextVar[Doubts | None] = ContextVar("gradcli_doubts", default=None)


@contextmanager
def doubting(doubts: Doubts | None) -> Iterator[None]:
    """Within the block balls stand for all numbers in them, and what is not certain is kept in `doubts`; where that is None,
    it is an UndecidedError."""
    token = _doubts.set(doubts)
    try:
        yield
    finally:
        _doubts.reset(token)


def jumps() -> None:
    """A function has all its values in a ball that one is a step in."""
    doubts = _doubts.get()
    if doubts is not None:
        doubts.jumped = True


def stands_for_others(number: Number) -> bool:
    """Whether a number is a ball that stands for all numbers in it."""
    return type(number) is not fmpq and _doubts.get() is not None and not number.is_exact()


@contextmanager
def precise(bits: int) -> Iterator[None]:
    """Within the block FLINT computes with so many bits.

    That is a setting of the whole process: of several threads each waits for the one that is in such a block.
    """
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def precision() -> int:
    """The bits that FLINT computes with."""
    return ctx.prec  # type: ignore[no-any-return]


def settled(number: Number) -> Number:
    """A number as it is, a fraction that has grown too large as a ball. What large ones take is charged."""
    if type(number) is fmpq:
        bits = number.height_bits()
        if bits > _SMALL_FRACTION:
            limits.charge_steps(bits * bits // _BITS)
        if bits > _most_bits():
            return arb(number)
    return number


def _most_bits() -> int:
    return min(_FRACTION * ctx.prec, _LARGEST_FRACTION)  # type: ignore[no-any-return]


def exact(value: Any) -> Number:
    """The number that a number of Python, NumPy or flint is: a float is the binary number that it is, a text, a decimal or
    a float that keeps the text it was written as is that decimal. Raises TypeError or ValueError for what is none."""
    kind = type(value)
    if kind is fmpq or kind is arb:
        return value
    if kind is not float:
        text = str(value) if isinstance(value, (str, Decimal)) else getattr(value, "text", "")
        match = _TEXT.fullmatch(text) if text else None
        if match is not None:
            return _decimal(match)
        if isinstance(value, (Rational, bool)):
            return settled(fmpq(value.numerator, value.denominator))
        value = operator.index(value) if hasattr(value, "__index__") else float(value)
        if type(value) is int:
            return settled(fmpq(value))
    if not math.isfinite(value):
        return UNDEFINED if math.isnan(value) else INFINITY if value > 0 else NEGATIVE_INFINITY
    numerator, denominator = value.as_integer_ratio()
    number = fmpq(numerator, denominator)
    # The ball of a float has no radius.
    return number if number.height_bits() <= _most_bits() else arb(value)


def from_text(text: str) -> Number:
    """The number that a decimal is, as in `0.1`, `-1e-5`, `.5`: 0.1 is one tenth. Raises ValueError for other text."""
    match = _TEXT.fullmatch(text.strip().replace("_", ""))
    if match is None:
        raise ValueError(f"{text!r} is not a decimal number")
    return _decimal(match)


def _decimal(match: re.Match[str]) -> Number:
    """The number that the parts of a decimal say."""
    if not (match[2] or match[3]):
        raise ValueError(f"{match[0]!r} is not a decimal number")
    sign, whole, behind, exponent = match.groups(default="")
    digits = (whole + behind).lstrip("0")
    if not digits:
        return fmpq(0)
    power = int(exponent or "0") - len(behind)
    if abs(power) + len(digits) > _most_bits():
        # Its fraction would be too large, and may have no end.
        return arb(f"{sign}{digits}e{power}")
    # Python reads no whole number of so many digits as FLINT does.
    top = fmpq(-fmpz(digits) if sign == "-" else fmpz(digits))
    return settled(top * fmpq(10) ** power)


def is_exact(number: Number) -> bool:
    """Whether a number is known without any error; infinities and what is undefined are."""
    return type(number) is fmpq or number.is_exact() or number is UNDEFINED


def is_nan(number: Number) -> bool:
    """Whether a number is undefined."""
    return type(number) is arb and number.is_nan()


def decided(truth: bool, opposite: bool, x: Number, relations: str, y: Number) -> bool:
    """`truth`, that one of the relations, of `<=>`, is that of x and y, unless neither it nor its opposite is certain.
    Raises UndecidedError then, where balls do not stand for all numbers in them.

    `decided(x < y, x >= y, x, "<", y)`: of balls FLINT says that a comparison holds where it does for all numbers in them.
    """
    if truth is opposite:
        doubts = _doubts.get()
        if doubts is None:
            raise UndecidedError("two numbers cannot be told apart")
        return doubts.decide(x, relations, y)
    return truth


def bounded(result: Number, operands: Sequence[Any]) -> Number:
    """A result that says something, of finite bounds or certainly infinite or undefined. Raises UndecidedError else."""
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
    """The dtype of all arrays of balls: they stand where numbers in double precision would."""

    name = "float64"

    def __repr__(self) -> str:
        return self.name


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    def apply(self: Balls, *others: Any) -> Any:
        if any(type(o) not in PLAIN and backends.backend_of(type(o)) is None for o in others):
            # It reads its operands in a way of its own.
            return NotImplemented
        return getattr(_namespace(), name)(*((*others, self) if reflected else (self, *others)))

    return apply


@cache
def _namespace() -> Any:
    return backends.namespace("flint")


class Balls:
    """An array of numbers: of zero dimensions `numbers` is one, else an object array of NumPy."""

    __slots__ = ("numbers",)
    dtype = _Dtype()
    # Arrays of NumPy leave operators to this class.
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
        """The number of an array of one."""
        return self.numbers.item() if self.shape else self.numbers

    def as_integer_ratio(self) -> tuple[int, int]:
        """The numerator and the denominator of a number that is kept as a fraction. Raises ValueError for others."""
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


def to_float(number: Number) -> float:
    """The float next to a number, or nearly so: that of the midpoint of a ball. Raises EvaluationError for one that
    stands for all numbers in it."""
    if type(number) is not fmpq and _doubts.get() is not None and number.is_finite() and number.rad() > 0:
        raise EvaluationError("an interval stands where one number is needed", hint="give this name a number")
    if type(number) is fmpq:
        try:
            return int(number.p) / int(number.q)
        except OverflowError:
            return math.inf if number > 0 else -math.inf
    return float(number)
