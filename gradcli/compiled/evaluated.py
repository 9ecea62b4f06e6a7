"""Evaluates programs to proved digits from Python: `gradcli.compile(p).evaluate(values, digits=50)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.evaluation import python_values
from gradcli.evaluation.session import EvaluationRequest, Result
from gradcli.language.names.resolution import resolve
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_DIGITS, MAX_PRECISION
from gradcli.named_tuples import NamedTuple
from gradcli.proofs import digits
from gradcli.proofs.proved_recordings import ProvedRecordings

# Bound on the working precision in digits; larger numbers do not fit into memory.
_MOST_PRECISION = 10**9


class Evaluated(NamedTuple):
    """The value of a program and the requested derivatives, in proved decimals.

    A number is a `decimal.Decimal` with the requested significant digits, of which the last is off by at most one unit,
    or with fewer digits where it is exact; a tensor is a NumPy array of them. A number that is not distinguished from 0
    is a zero with the exponent of its bound: `Decimal("0E-10000")` is less than 1e-10000 in magnitude. With `balls`,
    numbers are those of python-flint: `fmpq` where exact, else `arb`.
    """

    value: Any
    grad: dict[str, Any] | None = None
    derivatives: dict[str, Any] | None = None
    jacobian: dict[str, Any] | None = None


class EvaluationOptions(NamedTuple):
    """The options of `CompiledProgram.evaluate`."""

    digits: int
    order: int | None = None
    jacobian: bool = False
    gradient: bool = True
    grad_output: Any = None
    max_precision: int = MAX_PRECISION
    balls: bool = False


def evaluated(
    program: Module,
    values: Mapping[str, Any],
    wrt: Sequence[str],
    options: EvaluationOptions,
    recordings: ProvedRecordings,
) -> Evaluated:
    """Evaluate a program to proved digits, from `recordings` where the same was requested before.

    Raises UsageError for invalid options, BindingError for values that are not numbers, BackendError where python-flint
    is not installed, and what a run raises.
    """
    _check(options)
    masks = resolve(program).masks

    def request() -> EvaluationRequest:
        return EvaluationRequest(
            program,
            {name: _bound(value, name, name in masks) for name, value in values.items()},
            wrt,
            gradient=options.gradient,
            grad_output=None if options.grad_output is None else numbers(options.grad_output, "grad_output"),
            jacobian=options.jacobian,
            order=options.order,
        )

    with digits.computing():
        found = digits.proved(request, options.digits, options.max_precision, recordings.result)
        return _parts(digits.map_numbers(found, _ball if options.balls else _decimal(options)))


def _bound(value: Any, name: str, truths: bool) -> Any:
    """Convert the value of a name to balls; a boolean mask is left as it is."""
    if truths and not isinstance(value, (str, int, float)):
        array = arrays.numpy_namespace().asarray(value)
        if python_values.is_boolean_array(array):
            return array
    return numbers(value, f"the value of '{name}'")


def check_digits(digits: Any, max_precision: Any) -> None:
    """Raise UsageError for invalid digits or precision; `digits` may be None."""
    if digits is None:
        return
    _check_number("digits", digits, MAX_DIGITS)
    check_precision(max_precision)
    if max_precision < digits:
        raise UsageError("'max_precision' is less than 'digits'", hint="it is the most digits to compute with")


def check_precision(number: Any, name: str = "max_precision") -> None:
    """Raise UsageError for a precision in digits that is invalid or too large."""
    _check_number(name, number, _MOST_PRECISION)


def check_order(order: Any) -> None:
    """Raise UsageError for an invalid order of derivatives; None is valid."""
    if order is not None and (type(order) is not int or order < 1):
        raise UsageError("'order' must be a whole number from 1 on")


def _check_number(name: str, number: Any, most: int) -> None:
    if type(number) is not int or not 1 <= number <= most:
        raise UsageError(f"'{name}' must be a whole number from 1 on, at most {most:,}")


def in_namespace(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert Python values by name to the current namespace. Texts are decimals."""
    if not is_exact():
        return {
            name: python_values.value(_decimal_text(v, name) if isinstance(v, str) else v) for name, v in given.items()
        }
    return {name: numbers(value, f"the value of '{name}'") for name, value in given.items()}


def _decimal_text(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BindingError(f"the value of '{name}' is no number", hint='a text is a decimal, such as "0.1"') from None


def _check(options: EvaluationOptions) -> None:
    _check_number("digits", options.digits, MAX_DIGITS)
    check_digits(options.digits, options.max_precision)
    check_order(options.order)


def numbers(value: Any, what: str) -> Any:
    """Convert a number, or lists or an array of numbers, to balls. Texts are decimals, and floats are taken exactly.

    Raises BindingError for anything else.
    """
    from gradcli.arrays.flint.balls import Balls, exact

    try:
        if type(value) in (str, int, float):
            # Fast path: the general conversion takes much longer for single numbers.
            return Balls(exact(value))
        if isinstance(value, (list, tuple)):
            value = arrays.numpy_namespace().asarray(value, dtype=object)
        return arrays.default_namespace().asarray(value, "float64")
    except (TypeError, ValueError):
        raise BindingError(
            f"{what} is no number", hint='give a number, a text such as "0.1", or lists of them'
        ) from None


class ComplexDecimal(NamedTuple):
    """A complex number with proved digits."""

    real: Decimal
    imag: Decimal


def _ball(number: Any) -> Any:
    """A number as python-flint has it."""
    return number.ball() if digits.is_complex_number(number) else number


def _decimal(options: EvaluationOptions) -> Callable[[Any], Decimal | ComplexDecimal]:
    from gradcli.arrays.flint import ball_decimals

    def decimal(number: Any) -> Any:
        if digits.is_complex_number(number):
            return ComplexDecimal(*map(decimal, number.parts))
        try:
            found = ball_decimals.in_python(number, options.digits)
            if found is not None:
                return found
            bound = ball_decimals.bound(number, options.max_precision)
            return Decimal("nan" if bound is None else f"0{bound[1:]}")
        except ArithmeticError:
            raise EvaluationError(
                "a result has an exponent beyond those of decimal.Decimal", hint="balls=True gives numbers of any size"
            ) from None

    return decimal


def _parts(result: Result) -> Evaluated:
    return Evaluated(result.value, result.grad, result.derivatives, result.jacobian)
