"""The coefficients of Taylor polynomials from the derivatives of a program: in ball arithmetic where possible, else in
floats."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError, EvaluationError, Span
from gradcli.evaluation import session
from gradcli.evaluation.diagnose import Warning, all_finite
from gradcli.kinds.jets import check_order
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names.resolution import resolve
from gradcli.language.syntax.tree import Module
from gradcli.models.packing import Packing
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, concrete
from gradcli.primitives.entries.comparisons import equal
from gradcli.primitives.entries.reductions import any_

# The decimal digits that determine a float, and the largest number of digits to compute with; a number that is still
# not separated from 0 then is taken for 0.
_FLOAT, _MOST = 17, 100
# A number is taken for 0 only below this power of 10.
_NOTHING = -50

# The exponent of each variable in a monomial.
Powers = tuple[int, ...]


class TaylorNumber(NamedTuple):
    """A float or complex number, or a text where digits were asked for; the exact fraction, where one is proved; and
    whether a float is 0 by underflow."""

    value: Any
    fraction: Fraction | None = None
    is_too_small: bool = False


class Expansion(NamedTuple):
    """The numbers of the centre by label, the coefficients by their exponents in ascending degree, and the warnings of
    the run."""

    center: Mapping[str, TaylorNumber]
    coefficients: Mapping[Powers, TaylorNumber]
    warnings: Sequence[Warning]


class SeriesRequest(NamedTuple):
    """A program, a function that returns its inputs (in ball arithmetic, enclosures at the current precision), the
    names to expand in, and the order."""

    program: Module
    bindings: Callable[[], Mapping[str, Any]]
    wrt: Sequence[str]
    order: int

    def has_complex(self) -> bool:
        """Return whether an input is complex, or a number that the program makes of them."""
        values = self.bindings()
        if any(map(arrays.is_complex, values.values())):
            return True
        if not resolve(self.program).makes_complex:
            return False
        found: list[Any] = []

        def observe(_span: Span, _name: str, operands: Sequence[Any], result: Any) -> None:
            found.extend(x for x in (*operands, result) if isinstance(x, complex) or hasattr(x, "dtype"))

        found.append(evaluate(self.program, values, observe=observe).value)
        return any(map(arrays.is_complex, found))


def in_balls(question: SeriesRequest, digits: int | None, most: int = _MOST) -> Expansion:
    """The coefficients computed in ball arithmetic by FLINT: as texts of `digits` digits, or as the nearest floats
    where that is None. `most` is the largest number of digits to compute with.

    Raises BackendError where FLINT is not installed or lacks a function, UndecidedError where a comparison is undecided
    or no digit of a float is known, and what `in_floats` raises.
    """
    from gradcli.proofs import digits as proved

    wanted = digits or _FLOAT
    with proved.computing():
        from gradcli.arrays.flint.balls import UndecidedError, exact, is_exact, precise, to_float
        from gradcli.arrays.flint.flint_numbers import fraction, is_finite

        def number(found: Any) -> TaylorNumber:
            found = exact(found)
            rational = fraction(found) if is_exact(found) and is_finite(found) else None
            exactly = None if rational is None else Fraction(int(rational.p), int(rational.q))
            if digits is not None:
                return TaylorNumber(proved.text_of(found, digits, most), exactly)
            if exactly is not None or proved.have_digits([found], 1):
                value = _float(to_float(found), question)
                return TaylorNumber(value, exactly, value == 0.0 and exactly != 0)
            if not abs(found) < exact(10.0**_NOTHING):
                raise UndecidedError("a coefficient is not known")
            return TaylorNumber(0.0)

        def enough(found: _RawExpansion) -> bool:
            return proved.have_digits(map(exact, found.numbers()), wanted)

        found, bits = proved.at_rising_precision(lambda: _found(question), enough, wanted, most)
        with precise(bits):
            return found.expansion(number)


def in_floats(question: SeriesRequest) -> Expansion:
    """The coefficients in float64 or complex128, without exact fractions.

    Raises DifferentiationError for a value that is not a scalar, EvaluationError where there is no Taylor series,
    LimitError beyond order 170, or 16 in several variables.
    """
    return _found(question).expansion(
        lambda found: TaylorNumber(complex(found) if arrays.is_complex(found) else float(found))
    )


def _float(number: float, question: SeriesRequest) -> float:
    if math.isinf(number):
        last = question.program.body[-1]
        raise EvaluationError(
            "a coefficient is too large for a float",
            hint="--digits 17 gives its decimals",
            span=last.span,
            source=question.program.source,
        )
    return number


class _RawExpansion(NamedTuple):
    """The centre and the coefficients as numbers of the namespace that computes."""

    center: Mapping[str, Any]
    coefficients: Mapping[Powers, Any]
    warnings: Sequence[Warning]

    def numbers(self) -> Iterator[Any]:
        yield from self.center.values()
        yield from self.coefficients.values()

    def expansion(self, number: Callable[[Any], TaylorNumber]) -> Expansion:
        center = {label: number(found) for label, found in self.center.items()}
        return Expansion(center, {p: number(found) for p, found in self.coefficients.items()}, self.warnings)


def _found(question: SeriesRequest) -> _RawExpansion:
    program, order = question.program, question.order
    bindings = {name: arrays.in_default_namespace(value) for name, value in question.bindings().items()}
    request = session.EvaluationRequest(program, bindings, question.wrt, gradient=False, executor="eager")
    check_order(order)
    _check_center(question, bindings)
    value = session.run(request).value
    shape = arrays.shape(value)
    varied = next((name for name in question.wrt if arrays.is_complex(bindings[name])), None)
    if order and varied is not None and not arrays.is_complex(value):
        raise DifferentiationError(
            f"a real value is no power series in the complex '{varied}'",
            hint=f"with complex(a, b) in place of {varied} it may be one in a and b",
            span=program.body[-1].span,
            source=program.source,
        )
    if shape:
        raise DifferentiationError(
            f"a series is one of a scalar, and the value has shape {list(shape)}",
            hint="sum(…) of it is a number, and so is an element, as in (…)[0]",
            span=program.body[-1].span,
            source=program.source,
        )
    result = session.run(request._replace(gradient=order > 0, order=order if order > 1 else None))
    _check_regular(question, result)
    leaves = {name: bindings[name] for name in question.wrt}
    center = dict(zip(Packing.of(leaves).labels(), (n for leaf in leaves.values() for n in _elements(leaf))))
    return _RawExpansion(center, dict(_coefficients(question, leaves, result)), result.warnings)


def _check_center(question: SeriesRequest, bindings: Mapping[str, Any]) -> None:
    """Raise EvaluationError for a centre that is not finite."""
    for name in question.wrt:
        if not all_finite(bindings[name]):
            raise EvaluationError(
                f"a Taylor series is around a finite number, which {name} is not",
                hint=f"one around infinity is in t = 1/{name}: write 1/t for {name}, simplify, and expand around t=0, "
                "as exp(t) for exp(1/x)",
            )


# Operations whose infinite values are poles. Those of other operations are at branch points, as of a logarithm.
_WITH_POLES = frozenset(
    [
        "divide",
        "reciprocal",
        "pow",
        "gamma",
        "digamma",
        "polygamma",
        "zeta",
        "tan",
        "cot",
        "sec",
        "csc",
        "coth",
        "csch",
        "beta",
        "factorial",
        "y0",
        "y1",
        "k0",
        "k1",
    ]
)
_COMPARISONS = frozenset(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])


def _check_regular(question: SeriesRequest, result: session.Result) -> None:
    """Raise EvaluationError where the program has no Taylor series at its centre."""
    kinds = ("nonfinite", "nonsmooth") if question.order else ("nonfinite",)
    found = [w for w in result.warnings if w.code in kinds]
    if found:
        raise _no_series(question, f"{_singularity(found[0])}: {found[0].message}", found[0].span)
    if not result.finite:
        raise _no_series(question, "where its value or a derivative is not finite", question.program.body[-1].span)


def _singularity(warning: Warning) -> str:
    if warning.code == "nonsmooth":
        return "at a kink or a jump"
    if "nan" in warning.message.partition(" for ")[0]:
        return "outside the domain, or at a limit that is not found"
    is_pole = warning.operation in _WITH_POLES and warning.phase == "forward"
    return "at a pole" if is_pole else "at a branch point or a pole"


def check_comparisons(question: SeriesRequest) -> None:
    """Raise EvaluationError where a program compares varying numbers that are equal at the centre: on both sides of it
    the program may take different branches, which its derivatives do not show."""

    def observe(span: Span, name: str, operands: Sequence[Any], _result: Any) -> None:
        varies = any(isinstance(o, Tensor) and o.requires_grad for o in operands)
        if varies and name in _COMPARISONS and assume(any_(equal(*map(concrete, operands)))):
            raise _no_series(question, f"where '{name}' compares numbers that are equal", span)

    leaves = {
        name: Tensor(value).requires_grad_() if name in question.wrt else value
        for name, value in question.bindings().items()
    }
    with enable_grad():
        evaluate(question.program, leaves, observe=observe)


def _no_series(question: SeriesRequest, where: str, span: Span) -> EvaluationError:
    return EvaluationError(
        f"there is no Taylor series {where}",
        hint="expand around another centre",
        span=span,
        source=question.program.source,
    )


def _coefficients(
    question: SeriesRequest, leaves: Mapping[str, Any], result: session.Result
) -> Iterator[tuple[Powers, Any]]:
    """The coefficients by exponents, in ascending degree and then in the order of the names."""
    sizes = {name: arrays.size(leaf) for name, leaf in leaves.items()}
    places = [(name, i) for name, size in sizes.items() for i in range(size)]
    derivatives = {**(result.grad or {}), **(result.derivatives or {})}
    flat = {key: None if d is None else _elements(d) for key, d in derivatives.items()}
    yield (0,) * len(places), _elements(result.value)[0]
    for degree in range(1, question.order + 1):
        for chosen in combinations_with_replacement(range(len(places)), degree):
            numbers = flat[",".join(places[k][0] for k in chosen)]
            at = 0
            for k in chosen:
                name, i = places[k]
                at = at * sizes[name] + i
            counted = Counter(chosen)
            factor = math.prod(math.factorial(n) for n in counted.values())
            powers = tuple(counted[k] for k in range(len(places)))
            yield powers, 0.0 if numbers is None else numbers[at] / factor


def _elements(part: Any) -> Sequence[Any]:
    """The elements of an array; of a ball array, FLINT numbers."""
    numbers = getattr(part, "numbers", part)
    return [*numbers.reshape(-1)] if getattr(numbers, "shape", ()) else [numbers]
