"""A run with digits that are proved: in ball arithmetic, at a precision that is doubled until it is enough.

What is computed is the ordinary run, of values, gradients, Jacobians and derivatives of every order, with the numbers
as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import LimitError
from gradcli.language.operations import operation_at
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_PRECISION
from gradcli.run import session
from gradcli.run.diagnose import Warning
from gradcli.run.session import PARTS, EvaluationRequest, Result

if TYPE_CHECKING:
    from gradcli.arrays.balls import Number

_BITS_PER_DIGIT = 3.3219280948873626
# Bits beyond the digits that are asked for: most results need a few, and a second run costs more than these.
_GUARD = 40
# Of a ball that says where it is to so many bits beyond its digits, these are proved.
_MARGIN = 3
# What stands before a bound.
_BOUND = "|…| < "

# What a run is of: the request, its inputs being balls of the precision that holds when it is asked for.
Request = Callable[[], EvaluationRequest]
# From it to the result at the precision that holds.
Compute = Callable[[Request], Result]
Computed = TypeVar("Computed")


@contextmanager
def computing(*, as_written: bool = True) -> Iterator[arrays.Namespace]:
    """Within the block everything is computed in balls. The numbers in a program are then the decimals that are written,
    or unless `as_written` the floats next to them. Raises BackendError where FLINT is not installed."""
    namespace: Any = backends.namespace(backends.DIGITS.name)
    if not as_written:
        namespace = namespace.of_floats()
    with arrays.using_namespace(namespace):
        yield namespace


class Texts(NamedTuple):
    """What was computed, each number as a text or an object array of texts, and whether all have their digits."""

    result: Result
    complete: bool


def run(request: Request, digits: int, most: int = MAX_PRECISION, compute: Compute | None = None) -> Texts:
    """Evaluate and differentiate, within `computing`, as `compute` does: every number in so many digits, or fewer where
    those are all.

    One that is not told from 0 with `most` digits is a bound of its magnitude. Raises what `refined` raises.
    """
    missing: list[Number] = []

    def text(number: Number) -> str | float:
        known = text_of(number, digits, most)
        if is_bound(known):
            missing.append(number)
        return known

    result = mapped(proved(request, digits, most, compute), text)
    if missing:
        result.warnings = [*result.warnings, _too_few(request().program, most)]
    return Texts(result, not missing)


def _too_few(program: Module, most: int) -> Warning:
    last = program.body[-1].span
    message = f"computed with {most:,} digits, a result is not told from 0 (--max-precision is the most digits)"
    return Warning("unproved", "digits", operation_at(program, last) or "program", last, message)


def texts(inputs: Callable[[], Mapping[str, Any]], digits: int) -> dict[str, str | float]:
    """Numbers by name, within `computing`, in so many digits."""
    from gradcli.arrays.balls import precise

    with precise(bits_of(digits)):
        return {name: text_of(value.numbers, digits, digits) for name, value in inputs().items()}


def text_of(number: Number, digits: int, most: int) -> str | float:
    """A number as text, nan and the infinities as floats; one that is not told from 0 is a bound of its magnitude, not
    below 10**-most, see `is_bound`."""
    from gradcli.arrays import ball_text

    known = ball_text.text(number, digits)
    if known is None:
        return f"{_BOUND}{ball_text.bound(number, most) or 'inf'}"
    return float(known) if known.endswith(("nan", "inf")) else known


def proved(request: Request, digits: int, most: int = MAX_PRECISION, compute: Compute | None = None) -> Result:
    """The result of a run, within `computing`, in balls that have so many digits, but for those not told from 0. At each
    precision `compute` gives it, `at_precision` where that is None."""
    compute = compute or at_precision
    return refined(lambda: compute(request), lambda result: _has_digits(result, digits), digits, most)[0]


def refined(
    compute: Callable[[], Computed], enough: Callable[[Computed], bool], digits: int, most: int = MAX_PRECISION
) -> tuple[Computed, int]:
    """What is computed, within `computing`, at a precision at which it is `enough`, or at that of `most` digits, and the
    bits of that.

    The first is one of `digits`; each further one is twice as large. Raises what `compute` raises, and UndecidedError with
    its place where a comparison is open at the largest precision. A result is not lost where the limits of the run stop a
    further one.
    """
    from gradcli.arrays.balls import UndecidedError, precise

    largest = bits_of(most)
    bits = min(bits_of(digits), largest)
    found: tuple[Computed, int] | None = None
    while True:
        try:
            with precise(bits), nullcontext() if found is None else limits.attempt():
                found = compute(), bits
                if bits == largest or enough(found[0]):
                    return found
        except UndecidedError as error:
            if bits == largest:
                raise error.at_most(most) from None
        except LimitError:
            if found is None:
                raise
            return found
        bits = min(2 * bits, largest)


def bits_of(digits: int) -> int:
    """A precision in bits that is above so many digits."""
    return int(digits * _BITS_PER_DIGIT) + _GUARD


def digits_of(bits: int) -> int:
    """Of how many digits a precision is."""
    return round((bits - _GUARD) / _BITS_PER_DIGIT)


def at_precision(request: Request) -> Result:
    """The result of a run in balls, at the precision that holds."""
    return session.run(request()._replace(executor="eager"))


def numbers(result: Result) -> Iterator[Number]:
    """Every number in a result."""
    parts = [result.value]
    for name in PARTS:
        parts += (getattr(result, name) or {}).values()
    for part in parts:
        if part is not None:
            yield from part.numbers.ravel() if part.shape else (part.numbers,)


def _has_digits(result: Result, digits: int) -> bool:
    return have_digits(numbers(result), digits)


def have_digits(numbers: Iterable[Number], digits: int) -> bool:
    """Whether so many digits of every number are certain."""
    from gradcli.arrays.balls import is_exact

    bits = digits * _BITS_PER_DIGIT + _MARGIN
    return all(is_exact(number) or number.rel_accuracy_bits() >= bits for number in numbers)


def is_bound(text: str | float) -> bool:
    """Whether a text of `text_of` is a bound, and no number."""
    return str(text).startswith(_BOUND)


def mapped(result: Result, function: Callable[[Number], Any]) -> Result:
    """A result with what a function makes of each number in it, in object arrays where there are several."""

    def each(part: Any) -> Any:
        if part is None or not part.shape:
            return None if part is None else function(part.numbers)
        import numpy

        return numpy.frompyfunc(function, 1, 1)(part.numbers)

    made = Result(each(result.value))
    for name in PARTS:
        members = getattr(result, name)
        setattr(made, name, None if members is None else {key: each(part) for key, part in members.items()})
    if result.nodes is not None:
        made.nodes = [{**row, "grad": each(row["grad"])} for row in result.nodes]
    made.warnings, made.finite = result.warnings, result.finite
    return made
