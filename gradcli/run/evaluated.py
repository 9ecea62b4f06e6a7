"""What Python asks of a program with digits that are proved: `gradcli.compile(p).evaluate(values, digits=50)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.arrays.constants import is_exact
from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.language import scope
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_DIGITS, MAX_PRECISION
from gradcli.run import converted, digits
from gradcli.run.proved_recordings import ProvedRecordings
from gradcli.run.session import EvaluationRequest, Result

# Digits to compute with, more of which fit into no memory.
_MOST_PRECISION = 10**9


class Evaluated(NamedTuple):
    """The value of a program and what it was asked for of derivatives, each number in decimals that are proved.

    A number is a `decimal.Decimal` of so many significant digits, of which the last is off by at most one unit, and of
    fewer where it is exact; a tensor is an array of NumPy of them. A number that is not told from 0 is a zero with
    the exponent of its bound: `Decimal("0E-10000")` is less than 1e-10000. Where balls were asked for, numbers are those
    of python-flint: `fmpq`, which is exact, or `arb`.
    """

    value: Any
    grad: dict[str, Any] | None = None
    derivatives: dict[str, Any] | None = None
    jacobian: dict[str, Any] | None = None


class Options(NamedTuple):
    """What is asked for beside the value, as `CompiledProgram.evaluate` says it."""

    digits: int
    order: int | None = None
    jacobian: bool = False
    gradient: bool = True
    grad_output: Any = None
    max_precision: int = MAX_PRECISION
    balls: bool = False


def evaluated(
    program: Module, values: Mapping[str, Any], wrt: Sequence[str], options: Options, recordings: ProvedRecordings
) -> Evaluated:
    """What is asked for of a program, by its `recordings` where it was asked for before.

    Raises UsageError for digits that cannot be asked for, BindingError for what is no number, BackendError where FLINT
    is not installed, and what a run raises.
    """
    _check(options)
    masks = scope.masks(program)

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
        return _parts(digits.mapped(found, (lambda n: n) if options.balls else _decimal(options)))


def _bound(value: Any, name: str, truths: bool) -> Any:
    """The value of a name as balls, or as the truth values that it is where it takes elements."""
    if truths and not isinstance(value, (str, int, float)):
        array = arrays.numpy_namespace().asarray(value)
        if converted.is_truths(array):
            return array
    return numbers(value, f"the value of '{name}'")


def check_digits(digits: Any, max_precision: Any) -> None:
    """Raise UsageError for digits that cannot be asked for; None are."""
    if digits is None:
        return
    _check_number("digits", digits, MAX_DIGITS)
    check_precision(max_precision)
    if max_precision < digits:
        raise UsageError("'max_precision' is less than 'digits'", hint="it is the most digits to compute with")


def check_precision(number: Any, name: str = "max_precision") -> None:
    """Raise UsageError for so many digits that nothing can be computed with."""
    _check_number(name, number, _MOST_PRECISION)


def check_order(order: Any) -> None:
    """Raise UsageError for what is no order of derivatives; None is one."""
    if order is not None and (type(order) is not int or order < 1):
        raise UsageError("'order' must be a whole number from 1 on")


def _check_number(name: str, number: Any, most: int) -> None:
    if type(number) is not int or not 1 <= number <= most:
        raise UsageError(f"'{name}' must be a whole number from 1 on, at most {most:,}")


def in_namespace(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of Python by name in the namespace that computes: a text is a decimal."""
    if not is_exact():
        return {name: converted.value(_decimal_text(v, name) if isinstance(v, str) else v) for name, v in given.items()}
    return {name: numbers(value, f"the value of '{name}'") for name, value in given.items()}


def _decimal_text(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BindingError(f"the value of '{name}' is no number", hint='a text is a decimal, such as "0.1"') from None


def _check(options: Options) -> None:
    _check_number("digits", options.digits, MAX_DIGITS)
    check_digits(options.digits, options.max_precision)
    check_order(options.order)


def numbers(value: Any, what: str) -> Any:
    """A number, or lists or an array of them, as balls: a text is a decimal, a float the binary number that it is. Raises
    BindingError for what is none."""
    from gradcli.arrays.balls import Balls, exact

    try:
        if type(value) in (str, int, float):
            # Without the time that the namespace takes to find out what it is.
            return Balls(exact(value))
        if isinstance(value, (list, tuple)):
            value = arrays.numpy_namespace().asarray(value, dtype=object)
        return arrays.default_namespace().asarray(value, "float64")
    except (TypeError, ValueError):
        raise BindingError(
            f"{what} is no number", hint='give a number, a text such as "0.1", or lists of them'
        ) from None


def _decimal(options: Options) -> Callable[[Any], Decimal]:
    from gradcli.arrays import ball_text

    def decimal(number: Any) -> Decimal:
        try:
            found = ball_text.in_python(number, options.digits)
            if found is not None:
                return found
            bound = ball_text.bound(number, options.max_precision)
            return Decimal("nan" if bound is None else f"0{bound[1:]}")
        except ArithmeticError:
            raise EvaluationError(
                "a result has an exponent beyond those of decimal.Decimal", hint="balls=True gives numbers of any size"
            ) from None

    return decimal


def _parts(result: Result) -> Evaluated:
    return Evaluated(result.value, result.grad, result.derivatives, result.jacobian)
