"""Computes results to a given number of proved digits, in ball arithmetic whose precision is doubled until it suffices.

The computation is the ordinary run (values, gradients, Jacobians and derivatives of every order), with its numbers as
they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import LimitError
from gradcli.evaluation import session
from gradcli.evaluation.diagnose import Warning
from gradcli.evaluation.session import PARTS, RequestFactory, Result
from gradcli.io.text_tables import ComplexText
from gradcli.language.operations import operation_at
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_PRECISION
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gradcli.arrays.flint.balls import Number

# log2(10), rounded up.
_BITS_PER_DIGIT = 3.3219280948873626
# Guard bits beyond the requested digits: most results need a few, and a second run costs more than these.
_GUARD = 40
# Bits of relative accuracy that a ball must have beyond its digits for these to count as proved.
_MARGIN = 3
# A part of a complex number that is not told from 0 is looked for down to this many digits below those of the other part.
_DIGITS_OF_PARTS = 100
# The prefix of a magnitude bound.
_BOUND = "|…| < "

# Computes the result of a request at the current working precision; its inputs are balls of that precision.
Compute = Callable[[RequestFactory], Result]
Computed = TypeVar("Computed")


@contextmanager
def computing(*, as_written: bool = True) -> Iterator[arrays.Namespace]:
    """Within the block, compute in ball arithmetic.

    Literals of a program are the decimals as written, or without `as_written` the nearest floats. Raises BackendError
    where python-flint is not installed.
    """
    namespace: Any = backends.namespace(backends.DIGITS.name)
    if not as_written:
        namespace = namespace.of_floats()
    with arrays.using_namespace(namespace):
        yield namespace


class DigitTexts(NamedTuple):
    """A result whose numbers are texts or object arrays of texts, and whether all have their digits."""

    result: Result
    complete: bool


def run(request: RequestFactory, digits: int, most: int = MAX_PRECISION, compute: Compute | None = None) -> DigitTexts:
    """Evaluate and differentiate, within `computing`, to `digits` digits; exact numbers may have fewer.

    `compute` runs a request (None: `at_precision`). A number that is not distinguished from 0 with `most` digits
    becomes a bound of its magnitude, with a warning; without one if it is a part of a complex number below `digits`
    digits of the other part. Raises what `at_rising_precision` raises.
    """
    missing: list[Number] = []

    def text(number: Number) -> str | float | ComplexText:
        known = _text(number, digits, most)
        if _lacks_digits(number, known, digits):
            missing.append(number)
        return known

    found, bits = _proved(request, digits, most, compute)
    result = map_numbers(found, text)
    if missing:
        result.warnings = [*result.warnings, _too_few(request().program, bits, most)]
    return DigitTexts(result, not missing)


def _too_few(program: Module, bits: int, most: int) -> Warning:
    last = program.body[-1].span
    reason = "--max-precision is the most digits" if bits == bits_of(most) else "more would take more than --max-steps"
    message = f"computed with {digits_of(bits):,} digits, a result is not told from 0 ({reason})"
    return Warning("unproved", "digits", operation_at(program, last) or "program", last, message)


def texts(inputs: Callable[[], Mapping[str, Any]], digits: int) -> dict[str, str | float | ComplexText]:
    """Return numbers by name as texts of `digits` digits, within `computing`."""
    from gradcli.arrays.flint.balls import precise

    with precise(bits_of(digits)):
        return {name: _text(value.numbers, digits, digits) for name, value in inputs().items()}


def _text(number: Number, digits: int, most: int) -> str | float | ComplexText:
    """Return a real or complex number as text."""
    if is_complex_number(number):
        return ComplexText(*(text_of(part, digits, most) for part in number.parts))
    return text_of(number, digits, most)


def text_of(number: Number, digits: int, most: int) -> str | float:
    """Return a number as text, and nan and infinities as floats.

    A number that is not distinguished from 0 becomes a bound of its magnitude, of at least 10**-most; see `is_bound`.
    """
    from gradcli.arrays.flint import ball_decimals

    known = ball_decimals.text(number, digits)
    if known is None:
        return f"{_BOUND}{ball_decimals.bound(number, most) or 'inf'}"
    return float(known) if known.endswith(("nan", "inf")) else known


def proved(request: RequestFactory, digits: int, most: int = MAX_PRECISION, compute: Compute | None = None) -> Result:
    """Return the result of a run as balls with `digits` proved digits, except for numbers not distinguished from 0,
    within `computing`.

    `compute` runs a request at each working precision (None: `at_precision`).
    """
    return _proved(request, digits, most, compute)[0]


def _proved(request: RequestFactory, digits: int, most: int, compute: Compute | None) -> tuple[Result, int]:
    """The result, and its precision in bits."""
    compute = compute or at_precision
    return at_rising_precision(lambda: compute(request), lambda result: _has_digits(result, digits), digits, most)


def at_rising_precision(
    compute: Callable[[], Computed], enough: Callable[[Computed], bool], digits: int, most: int = MAX_PRECISION
) -> tuple[Computed, int]:
    """Compute at rising precision until `enough` holds, within `computing`; return the result and its precision in
    bits.

    The precision starts at that of `digits` and doubles up to that of `most` digits. Raises what `compute` raises, and
    UndecidedError with its position where a comparison is undecided at the largest precision. Where the limits of the
    run stop a refinement, the previous result is returned.
    """
    from gradcli.arrays.flint.balls import UndecidedError, precise

    largest = bits_of(most)
    bits = min(bits_of(digits), largest)
    found: tuple[Computed, int] | None = None
    while True:
        try:
            with precise(bits), nullcontext() if found is None else limits.optional_budget():
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
    """The working precision in bits for a number of decimal digits, including guard bits."""
    return int(digits * _BITS_PER_DIGIT) + _GUARD


def digits_of(bits: int) -> int:
    """The number of decimal digits of a working precision; the inverse of `bits_of`."""
    return round((bits - _GUARD) / _BITS_PER_DIGIT)


def at_precision(request: RequestFactory) -> Result:
    """Run a request eagerly in balls, at the current working precision."""
    return session.run(request()._replace(executor="eager"))


def members(result: Result) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the numbers and arrays of a result, keyed by the member of the result and by name."""
    yield ("value",), result.value
    for part in PARTS:
        for name, found in (getattr(result, part) or {}).items():
            yield (part, name), found
    for name, pair in (result.wirtinger or {}).items():
        for side, found in (pair or {}).items():
            yield ("wirtinger", name, side), found


def _has_digits(result: Result, digits: int) -> bool:
    parts = (part for _, part in members(result) if part is not None)
    return all(have_digits(part.numbers.ravel() if part.shape else (part.numbers,), digits) for part in parts)


def have_digits(numbers: Iterable[Number], digits: int) -> bool:
    """Return whether every number has at least `digits` certain digits.

    A part of a complex number may lack them where it is far below those of the other part: it may be 0.
    """
    from gradcli.arrays.flint.balls import is_exact

    bits, far = digits * _BITS_PER_DIGIT + _MARGIN, digits + _DIGITS_OF_PARTS

    def is_known(part: Number) -> bool:
        return is_exact(part) or bool(part.rel_accuracy_bits() >= bits)

    def has_digits(number: Any) -> bool:
        if not is_complex_number(number):
            return is_known(number)
        re, im = number.parts
        if is_known(re) and is_known(im):
            return True
        return (is_known(im) and _is_below(re, im, far)) or (is_known(re) and _is_below(im, re, far))

    return all(map(has_digits, numbers))


def _lacks_digits(number: Any, known: str | float | ComplexText, digits: int) -> bool:
    """Return whether the text of a number is a bound; of a complex one, that of a part that is not below `digits` digits
    of the other part."""
    if not isinstance(known, ComplexText):
        return is_bound(known)
    re, im = number.parts
    return (is_bound(known.real) and not _is_below(re, im, digits)) or (
        is_bound(known.imag) and not _is_below(im, re, digits)
    )


def _is_below(part: Number, other: Number, digits: int) -> bool:
    """Return whether a part of a complex number is certainly below 10**-digits times the other part."""
    from flint import arb

    return bool(arb(part).abs_upper() * arb(10) ** digits < arb(other).abs_lower())


def is_complex_number(number: Any) -> bool:
    """Return whether an element of an array of balls is complex."""
    return hasattr(number, "parts")


def is_bound(text: str | float | ComplexText) -> bool:
    """Return whether a text of a number, or of a part of it, is a magnitude bound rather than a number."""
    return _BOUND in str(text)


def map_numbers(result: Result, function: Callable[[Number], Any]) -> Result:
    """Return a result with `function` applied to each number; several numbers become object arrays."""

    def each(part: Any) -> Any:
        if part is None or not part.shape:
            return None if part is None else function(part.numbers)
        import numpy

        return numpy.frompyfunc(function, 1, 1)(part.numbers)

    made = Result(each(result.value))
    for name in PARTS:
        members = getattr(result, name)
        setattr(made, name, None if members is None else {key: each(part) for key, part in members.items()})
    if result.wirtinger is not None:
        pairs = result.wirtinger.items()
        made.wirtinger = {name: pair and {side: each(part) for side, part in pair.items()} for name, pair in pairs}
    if result.nodes is not None:
        made.nodes = [{**row, "grad": each(row["grad"])} for row in result.nodes]
    made.warnings, made.finite = result.warnings, result.finite
    return made
