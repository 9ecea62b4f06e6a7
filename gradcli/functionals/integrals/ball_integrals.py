"""Integrals with proved digits, by Arb's integration of analytic functions (F. Johansson, arXiv:1802.07942).

Exponentials and modified Bessel functions of multiples of the variable that cancel in products are collected:
exp(-x)*I(0, x/3)**3 is the third power of the scaled function exp(-x/3)*I(0, x/3). Of the factors nothing is left where
x is large: in balls, neither the decay of the product nor its digits.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from flint import acb, arb, fmpq

from gradcli import arrays, limits
from gradcli.arrays.flint import flint_names
from gradcli.arrays.flint.balls import UNDEFINED, Balls, UndecidedError, exact, is_nan, precise, precision
from gradcli.errors import BackendError, EvaluationError
from gradcli.functionals.body import Body
from gradcli.functionals.complex_programs import ComplexProgram, form
from gradcli.functionals.complex_rules import COMPLEX_RULES, RULES, UNDEFINED_BALL, Rule, complex_ball, rule_of
from gradcli.functionals.integrals.reciprocal_functions import in_reciprocal_functions
from gradcli.functionals.real_parts import in_real_parts
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import divide, multiply, negative
from gradcli.primitives.entries.exponential import exp
from gradcli.primitives.entries.powers import whole_power
from gradcli.primitives.entries.special_functions.bessel import iv, scaled_i
from gradcli.primitives.entries.special_functions.special import bessel_i
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import without_dead_code


class BallIntegrand:
    """A program of real numbers, also by way of complex ones, as a function of complex balls: where the inputs are real,
    its result is the real part of `factor` times the value of the function.

    Raises BackendError for a function that has no `rules`.
    """

    def __init__(self, program: Program, rules: Mapping[str, Rule]) -> None:
        self.program = program
        # Whether it is a part of a complex function, and its factor.
        self.is_part, self.factor = False, 1.0 + 0j
        try:
            part = _PartOfAnalytic(rules)
            self._compiled = ComplexProgram(program, part.rule_of)
            result = program.outputs[0]
            if isinstance(result, Variable) and result in part.factors:
                self.is_part, self.factor = True, part.factors[result]
        except _NeedsConjugatesError:
            self._compiled = ComplexProgram(program, _Pairs(rules).rule_of, of_complex=_constant_pair)
        # The cost of an evaluation in eighths of a step, by the precision.
        self._costs: dict[int, int] = {}

    @cached_property
    def form(self) -> Hashable:
        """What is equal for the real and the imaginary part of a complex function."""
        return form(self.program, name=lambda e: "part" if e.primitive.name in _FACTORS else e.primitive.name)

    def __call__(self, inputs: Sequence[acb], analytic: bool) -> acb:
        """The value; not finite where it must be `analytic` and may be not, and where it is no real number for real
        balls."""
        bits = precision()
        cost = self._costs.get(bits)
        if cost is None:
            used = [equation.primitive for equation in self.program.equations]
            cost = self._costs[bits] = math.ceil(sum(flint_names.cost_of_complex(p.name, p.time, bits) for p in used))
        return self._compiled.values(inputs, analytic=analytic, cost=cost)[self._compiled.outputs[0]]


def _found(rules: Mapping[str, Rule], equation: Equation) -> Rule:
    name = equation.primitive.name
    rule = COMPLEX_RULES.get(name, rules.get(name)) if arrays.is_complex(equation.output) else rules.get(name)
    if rule is None:
        raise BackendError(f"'{equation.primitive.called}' has no proved digits inside an integral")
    return rule


def _refuse_real_parts(equation: Equation) -> None:
    """Raise BackendError for an operation on complex numbers that is defined by their real parts."""
    if equation.primitive.name in _OF_REALS:
        called = equation.primitive.called
        raise BackendError(f"'{called}' of complex numbers has no proved digits inside an integral")


# --- parts of analytic functions


class _NeedsConjugatesError(Exception):
    """Raised for a program that is not linear in real and imaginary parts."""


class _PartOfAnalytic:
    """The rules of a program that is linear in the real and imaginary parts of complex numbers, which are analytic in the
    variable: a part is represented by the whole number."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        # By variable: it is the real part of this factor times the number that represents it.
        self.factors: dict[Variable, complex] = {}

    def rule_of(self, equation: Equation) -> Rule:
        name = equation.primitive.name
        factors = [self.factors.get(x) if isinstance(x, Variable) else None for x in equation.inputs]
        if any(factors):
            self.factors[equation.output] = _common_factor(equation, factors)
            return self._rules[name]
        if any(map(arrays.is_complex, equation.inputs)):
            if name in _FACTORS:
                self.factors[equation.output] = _FACTORS[name]
                return _represented
            if name in _OF_PAIRS:
                raise _NeedsConjugatesError
            _refuse_real_parts(equation)
        if name == "complex":
            return _joined
        rule = _found(self._rules, equation)
        is_real = name in _REAL_OF_REALS or arrays.is_complex(equation.output)
        return rule if is_real else _real_where_given_reals(rule)


def _common_factor(equation: Equation, factors: Sequence[complex | None]) -> complex:
    """The factor of a result, from those of the operands that are parts."""
    name, known = equation.primitive.name, {f for f in factors if f is not None}
    if name in ("add", "subtract", "negative"):
        # A real number is the real part of itself.
        is_linear = len(known) == 1 and (None not in factors or known == {1.0})
    else:
        is_linear = (name == "multiply" and None in factors) or (name == "divide" and factors[1] is None)
    if arrays.is_complex(equation.output) or not is_linear:
        raise _NeedsConjugatesError
    return known.pop()


def _represented(_analytic: bool, x: acb) -> acb:
    return x


def _joined(_analytic: bool, a: acb, b: acb) -> acb:
    return a + acb(0, 1) * b


_FACTORS: Mapping[str, complex] = {"real_part": 1.0, "imaginary_part": -1j}


# --- pairs of conjugates


class ConjugatePair(NamedTuple):
    """A complex number as a function of a real variable, and its conjugate, which are analytic in the variable each."""

    number: acb
    conjugate: acb


class _Pairs:
    """The rules of a program that computes with complex numbers and their conjugates."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def rule_of(self, equation: Equation) -> Rule:
        name = equation.primitive.name
        if name == "complex":
            return _complex
        if any(map(arrays.is_complex, equation.inputs)):
            if name in _OF_PAIRS:
                return _OF_PAIRS[name]
            _refuse_real_parts(equation)
            of_pair = _decided_by_both if name in _OF_NUMBERS else _of_pairs
            return of_pair(_found(self._rules, equation))
        rule = _found(self._rules, equation)
        return rule if name in _REAL_OF_REALS else _real_where_given_reals(rule)


def _real_where_given_reals(rule: Rule) -> Rule:
    """A rule whose result for real operands is real, and undefined where a function has none, as the square root below
    0."""

    def real(analytic: bool, *operands: Any, **params: Any) -> Any:
        found = rule(analytic, *operands, **params)
        if analytic or type(found) is not acb or found.imag.contains(0):
            return found
        return UNDEFINED_BALL if all(type(x) is not acb or x.imag.is_zero() for x in operands) else found

    return real


def _of_pairs(rule: Rule) -> Rule:
    """A rule of complex numbers for these and their conjugates."""

    def pairs(analytic: bool, *operands: Any, **params: Any) -> ConjugatePair:
        number = rule(analytic, *(x.number if type(x) is ConjugatePair else x for x in operands), **params)
        if not analytic:
            # The variable is real. On a branch cut, the function of a conjugate is not the conjugate.
            return ConjugatePair(number, number.conjugate())
        conjugate = rule(analytic, *(x.conjugate if type(x) is ConjugatePair else x for x in operands), **params)
        return ConjugatePair(number, conjugate)

    return pairs


def _decided_by_both(rule: Rule) -> Rule:
    """A question about complex numbers, for these and their conjugates."""
    of_both = _of_pairs(rule)

    def decided(_analytic: bool, *operands: Any) -> bool | None:
        number, conjugate = of_both(True, *operands)
        return number if number is conjugate else None

    return decided


def _constant_pair(number: acb) -> ConjugatePair:
    return ConjugatePair(number, number.conjugate())


def _complex(_analytic: bool, a: acb, b: acb) -> ConjugatePair:
    return ConjugatePair(a + acb(0, 1) * b, a - acb(0, 1) * b)


def _real_part(_analytic: bool, x: ConjugatePair) -> acb:
    return (x.number + x.conjugate) / 2


def _imaginary_part(_analytic: bool, x: ConjugatePair) -> acb:
    return (x.number - x.conjugate) / acb(0, 2)


def _modulus(analytic: bool, x: ConjugatePair) -> acb:
    return (x.number * x.conjugate).sqrt(analytic=analytic)


_OF_PAIRS: dict[str, Callable[..., Any]] = {
    "real_part": _real_part,
    "imaginary_part": _imaginary_part,
    "conjugate": lambda _, x: ConjugatePair(x.conjugate, x.number),
    "abs": _modulus,
}
# Operations that are defined by real parts.
_OF_REALS = frozenset(
    {"sign", "floor", "ceil", "maximum", "minimum", "relu", "clip", "hypot", "atan2", "cbrt", "softsign", "integral"}
    | {"less", "less_equal", "greater", "greater_equal"}
)
# Questions about complex numbers, which do not depend on the part.
_OF_NUMBERS = frozenset({"equal", "not_equal", "may_differ_from_zero", "isfinite", "isnan", "isinf"})
# Operations whose results are real for all real operands for which there are any.
_REAL_OF_REALS = frozenset(
    {"add", "subtract", "multiply", "divide", "negative", "reciprocal", "square", "whole_power", "where", "exp", "sin"}
    | {"cos", "tan", "sinh", "cosh", "tanh", "sech", "abs", "sign", "floor", "ceil", "maximum", "minimum", "relu"}
)


class _Scaled(NamedTuple):
    """A value as exp(rate*x) times another."""

    rate: fmpq
    rest: Atom


def with_collected_exponentials(program: Program) -> Program:
    """The program with scaled functions in place of products whose exponentials cancel exactly; itself where there are
    none."""
    if not any(e.primitive in (iv, bessel_i) for e in program.equations):
        return program
    slopes: dict[Variable, fmpq] = {program.inputs[0]: fmpq(1)}
    scaled: dict[Variable, _Scaled] = {}
    equations = list[Equation]()
    for equation in program.equations:
        slope = _slope(equation, slopes)
        if slope is not None:
            slopes[equation.output] = slope
        rate = _rate(equation, slopes, scaled)
        if rate is None:
            equations.append(equation)
            continue
        if equation.primitive is exp:
            equations.append(equation)
            scaled[equation.output] = _Scaled(rate, 1.0)
        elif rate == 0:
            equations.append(_equation_of_rest(equation, scaled, equation.output))
        else:
            rest = Variable((), equation.output.dtype)
            equations += [equation, _equation_of_rest(equation, scaled, rest)]
            scaled[equation.output] = _Scaled(rate, rest)
    return without_dead_code(program._replace(equations=tuple(equations)))


def _fraction(atom: Atom) -> fmpq | None:
    """A constant that is an exact fraction."""
    if isinstance(atom, Variable) or not isinstance(atom, (Balls, float)):
        return None
    found = exact(atom.numbers if isinstance(atom, Balls) else atom)
    return found if isinstance(found, fmpq) else None


def _slope(equation: Equation, slopes: dict[Variable, fmpq]) -> fmpq | None:
    """The exact multiple of the variable that a result is."""
    known = [slopes.get(a) if isinstance(a, Variable) else None for a in equation.inputs]
    if equation.primitive is negative and known[0] is not None:
        return -known[0]
    if len(known) != 2 or equation.primitive not in (multiply, divide):
        return None
    constants = [*map(_fraction, equation.inputs)]
    if known[0] is not None and constants[1]:
        return known[0] * constants[1] if equation.primitive is multiply else known[0] / constants[1]
    if equation.primitive is multiply and known[1] is not None and constants[0]:
        return known[1] * constants[0]
    return None


def _rate(equation: Equation, slopes: dict[Variable, fmpq], scaled: dict[Variable, _Scaled]) -> fmpq | None:
    """The rate of the exponential in a result; None where that is not known."""
    primitive, inputs = equation.primitive, equation.inputs
    last = slopes.get(inputs[-1]) if isinstance(inputs[-1], Variable) else None
    if primitive is exp:
        return last
    if (primitive is iv and _fraction(inputs[0]) == 0) or (primitive is bessel_i and equation.params["n"] == 0):
        return last
    parts = [scaled.get(a) if isinstance(a, Variable) else None for a in inputs]
    rates = [fmpq(0) if part is None else part.rate for part in parts]
    if not any(parts):
        return None
    if primitive is multiply:
        return rates[0] + rates[1]
    if primitive is divide:
        return rates[0] - rates[1]
    return int(equation.params["n"]) * rates[0] if primitive is whole_power else None


def _equation_of_rest(equation: Equation, scaled: dict[Variable, _Scaled], output: Variable) -> Equation:
    primitive, inputs = equation.primitive, equation.inputs
    if primitive in (iv, bessel_i):
        return Equation(scaled_i, inputs[-1:], {"n": 0}, output)
    rests = (scaled[a].rest if isinstance(a, Variable) and a in scaled else a for a in inputs)
    return equation._replace(inputs=tuple(rests), output=output)


# The cost of the nodes of the rules of quadrature, which rises with the cube of the precision: the bits at which it is an
# eighth of a step. At 16,000 bits it takes 10 s.
_BITS_OF_NODES = 50
# Shares of the way between the limits at which an integrand must have a value: no simple fractions, where it may be 0/0.
_SHARES = (0.13711, 0.48731, 0.86309)
# How far integrals over exponentials go, in units of the precision in bits, and by which factor farther at a time.
_FARTHEST, _FARTHER = 40, arb(5) / 4


def integral(low: Any, high: Any, reads: Sequence[Any], body: Body, points: Sequence[float]) -> Balls:
    """The integral of a body between two numbers, as a ball.

    Raises BackendError for programs with a function that has no complex balls, and for infinite limits where the decay of
    the integrand is not known, and UndecidedError where the precision does not suffice.
    """
    first, last, *given = map(complex_ball, (low, high, *reads))
    if any(x.real.is_nan() for x in (first, last, *given)):
        return Balls(UNDEFINED)
    if first == last:
        return Balls(exact(0.0))
    ends = first.real.mid(), last.real.mid()
    integrand = _regular_integrand(body, first, last, given)
    if integrand is None:
        _require_values(body, *ends, reads)
        integrand = _integrand_by_parts(body)
    edges = [first, *(acb(exact(p)) for p in points), last]
    if len(edges) == 2 and not (first.is_finite() or last.is_finite()):
        edges.insert(1, acb(0))
    found = _computed_once(integrand, edges, given)
    if not found.is_finite():
        _require_values(body, *ends, reads)
        raise UndecidedError("the integral cannot be enclosed: its integrand is unbounded, or not piecewise analytic")
    return Balls((integrand.factor * found).real)


def _require_values(body: Body, first: arb, last: arb, reads: Sequence[Any]) -> None:
    """Raise EvaluationError where the integrand has no value at one of a few places between the limits, as the square root
    below 0: bounds would be looked for in vain."""
    start, width = first, last - first
    if not width.is_finite():
        start, infinite = (first, last) if first.is_finite() else (last, first)
        start, width = start if start.is_finite() else arb(0), arb(1 if infinite > 0 else -1)
    for share in _SHARES:
        place = (start + share * width).mid()
        try:
            (value,) = body(Balls(place), *reads)
        except UndecidedError:
            continue
        if type(value) is Balls and is_nan(value.numbers):
            raise EvaluationError(f"the integrand is no number at {float(place):.6g}")


class _Computed(NamedTuple):
    """The integral of an integrand between limits, for some values of its other inputs, at a precision of `bits`."""

    integrand: BallIntegrand
    limits: Sequence[acb]
    reads: Sequence[acb]
    bits: int
    value: acb

    def is_of(self, integrand: BallIntegrand, limits: Sequence[acb], reads: Sequence[acb]) -> bool:
        given, known = (*limits, *reads), (*self.limits, *self.reads)
        return (
            self.bits == precision()
            and self.integrand.form == integrand.form
            and len(given) == len(known)
            and all(map(_are_same, given, known))
        )


# The last integrals, of which the next ones may be other parts.
_latest: deque[_Computed] = deque(maxlen=8)


def _computed_once(integrand: BallIntegrand, edges: Sequence[acb], reads: Sequence[acb]) -> acb:
    """The integral over the intervals between edges; that of a complex function is computed once for both its parts."""
    if integrand.is_part:
        for computed in _latest:
            if computed.is_of(integrand, edges, reads):
                return computed.value
    found = sum((_part(integrand, a, b, reads) for a, b in itertools.pairwise(edges)), acb(0))
    if integrand.is_part:
        _latest.append(_Computed(integrand, edges, reads, precision(), found))
    return found


def _are_same(x: acb, y: acb) -> bool:
    """Return whether two balls are the same set of numbers."""
    return bool(x.contains(y) and y.contains(x))


_integrands: WeakKeyDictionary[Body, BallIntegrand] = WeakKeyDictionary()
_integrands_by_parts: WeakKeyDictionary[Body, BallIntegrand] = WeakKeyDictionary()


def _regular_integrand(body: Body, first: acb, last: acb, reads: Sequence[acb]) -> BallIntegrand | None:
    """The integrand of a body; None where it is not known to be regular at both limits, for complex numbers as they
    are."""
    try:
        found = _integrand(body)
        return found if all(_is_regular(found, end, reads) for end in (first, last)) else None
    except BackendError:
        return None


def _integrand(body: Body) -> BallIntegrand:
    """The integrand of a body. Raises BackendError for a function that has no complex balls."""
    found = _integrands.get(body)
    if found is None:
        found = _integrands[body] = integrand_of(body.program)
    return found


def _integrand_by_parts(body: Body) -> BallIntegrand:
    """The integrand of a body, by real and imaginary parts, which are analytic in the variable each, where it computes
    with complex numbers; unchanged where it has a function that is not known by these."""
    found = _integrands_by_parts.get(body)
    if found is None:
        try:
            program = in_real_parts(body, "").program
        except EvaluationError:
            program = body.program
        found = _integrands_by_parts[body] = integrand_of(program)
    return found


def integrand_of(program: Program) -> BallIntegrand:
    """A program as an integrand. Raises BackendError for a function that has no complex balls."""
    # Derivatives have further quotients.
    program = with_collected_exponentials(in_reciprocal_functions(program))
    return BallIntegrand(program, RULES_OF_INTEGRANDS)


def _part(integrand: BallIntegrand, low: acb, high: acb, reads: Sequence[acb]) -> acb:
    """The integral between two limits, which may be infinite, and where the integrand may be."""
    if _is_regular(integrand, low, reads):
        return _outward(integrand, low, high, reads)
    if _is_regular(integrand, high, reads):
        return -_outward(integrand, high, low, reads)
    middle = (low + high) / 2
    if not middle.is_finite():
        finite, infinite = (low, high) if low.is_finite() else (high, low)
        middle = finite + (1 if infinite.real > 0 else -1)
    return _outward(integrand, middle, high, reads) - _outward(integrand, middle, low, reads)


def _is_regular(integrand: BallIntegrand, end: acb, reads: Sequence[acb]) -> bool:
    """Return whether the integrand is finite at a limit, and has bounds beside it."""
    beside = end + arb(0, arb(2) ** -precision())
    return bool(end.is_finite() and all(integrand([x, *reads], False).is_finite() for x in (end, beside)))


def _outward(integrand: BallIntegrand, start: acb, end: acb, reads: Sequence[acb]) -> acb:
    """The integral from a place where the integrand is finite to a limit."""
    if _is_regular(integrand, end, reads):
        return _between(integrand, start, end, reads)
    found = _oscillating(integrand, start, end, reads)
    if found is not None:
        return found
    if end.is_finite():
        return _to_singularity(integrand, start, end, reads)
    sign = 1 if end.real > 0 else -1
    return sign * _to_infinity(integrand, start, sign, reads)


def _oscillating(integrand: BallIntegrand, start: acb, end: acb, reads: Sequence[acb]) -> acb | None:
    """The integral up to a limit towards which the integrand oscillates; None where that is not known."""
    from gradcli.functionals.integrals.ball_oscillations import tail_from

    sign = 1 if end.real > start.real else -1
    tail = tail_from(integrand.program, start.real, end.real, sign, [read.real for read in reads])
    if tail is None:
        return None
    rising = [(key, tail.frequency(key)) for key in tail.bounds if tail.frequency(key) > 0]

    def apply(name: str, *operands: acb, **params: Any) -> acb:
        return rule_of(name)(True, *operands, **params)

    def along_ray(inputs: Sequence[acb], _analytic: bool) -> acb:
        v = tail.start + acb(0, 1) * inputs[0]
        amplitudes = tail.values(v, apply)
        return acb(0, 1) * sum((amplitudes[key] * (acb(0, 1) * c * v).exp() for key, c in rising), acb(0))

    def along_line(inputs: Sequence[acb], _analytic: bool) -> acb:
        v = tail.start * inputs[0].exp()
        return tail.values(v, apply)[tail.steady] * v

    def rest_of_ray(height: arb) -> arb:
        return sum((tail.bounds[key].most * (-c * height).exp() / c for key, c in rising), arb(0)).upper()

    def rest_of_line(x: arb) -> arb:
        bounds = tail.bounds[tail.steady]
        left = -bounds.order - 1
        return (bounds.most * tail.start * (-left * x).exp() / left).upper()

    fault = "the integrand is not known to decay fast enough for proved digits"
    height, rest = _end(rest_of_ray, fault)
    # The other waves are the conjugates of these.
    found = 2 * (_between(along_ray, acb(0), acb(height), reads).real + arb(0, rest))
    if tail.steady in tail.bounds:
        last, rest = _end(rest_of_line, fault)
        found += _between(along_line, acb(0), acb(last), reads).real + arb(0, rest)
    return _between(integrand, start, acb(tail.first), reads) + sign * found


def _to_infinity(integrand: BallIntegrand, start: acb, sign: int, reads: Sequence[acb]) -> acb:
    """The integral by the distance d from `start` in a direction, which is exp(x) - 1, so that what decays as a power of d
    decays exponentially with x; what is left is bounded."""
    # Imported here as most integrals are between finite limits.
    from gradcli.functionals.integrals.growth import add, constant, distance, growth, negative

    numbers = [read.real for read in reads]

    def bound(end: arb) -> arb | None:
        begin = end.exp() - 1
        d = distance(begin)
        place = add(constant(start.real), d if sign > 0 else negative(d))
        return growth(integrand.program, place, numbers).rest(begin.upper())

    def value(inputs: Sequence[acb], analytic: bool) -> acb:
        e = inputs[0].exp()
        return integrand([start + sign * (e - 1), *inputs[1:]], analytic) * e

    end, rest = _end(bound, "the integrand is not known to decay fast enough for proved digits up to infinity")
    return _between(value, acb(0), acb(end), reads) + arb(0, rest)


def _to_singularity(integrand: BallIntegrand, start: acb, end: acb, reads: Sequence[acb]) -> acb:
    """The integral by the distance from `end`, which is abs(end - start)*exp(-x): what grows as a power of its reciprocal,
    above -1, decays exponentially with x; what is left is bounded."""
    from gradcli.functionals.integrals.growth import growth_near

    width, numbers = end - start, [read.real for read in reads]
    sign = -1 if width.real > 0 else 1

    def bound(x: arb) -> arb | None:
        nearest = (1 / (abs(width.real) * (-x).exp())).lower()
        return growth_near(integrand.program, end.real, sign, nearest, numbers).rest(nearest)

    last, rest = _end(bound, "integrals of what is infinite at a limit have no proved digits")
    # Next to the limit, differences from it keep their digits.
    bits = precision() + math.ceil(2 * float(last) / math.log(2))

    def value(inputs: Sequence[acb], analytic: bool) -> acb:
        with precise(bits):
            e = width * (-inputs[0]).exp()
            return integrand([end - e, *inputs[1:]], analytic) * e

    return _between(value, acb(0), acb(last), reads) + arb(0, rest)


def _end(bound: Callable[[arb], arb | None], fault: str) -> tuple[arb, arb]:
    """A number up to which a function is integrated, and the bound of the rest beyond it.

    Raises BackendError where no bound is small enough.
    """
    end, small = arb(2), arb(2) ** -precision()
    while end < _FARTHEST * precision():
        rest = bound(end)
        if rest is not None and rest < small:
            return end, rest
        end = (end * _FARTHER).mid()
    raise BackendError(fault, hint="leave out --digits")


def _between(
    function: Callable[[Sequence[acb], bool], acb],
    low: acb,
    high: acb,
    reads: Sequence[acb],
    *,
    analytic: bool = False,
) -> acb:
    """The integral of an integrand, or of a function of the same inputs that is told whether it must be analytic."""
    raised: list[BaseException] = []

    def value(t: acb, of_panel: bool) -> acb:
        # FLINT does not pass on what is raised here, an interrupt included.
        try:
            if raised:
                return UNDEFINED_BALL
            return function([t, *reads], of_panel or analytic)
        except BaseException as error:
            raised.append(error)
            return UNDEFINED_BALL

    limits.charge_steps((precision() // _BITS_OF_NODES) ** 3)
    found = acb.integral(value, low, high)
    if raised:
        raise raised[0]
    return found


def _inner(body: Body, low: acb, high: acb, reads: Sequence[acb], analytic: bool) -> acb:
    """An integral inside another."""
    if any(x.real.is_exact() and not x.is_finite() and not x.real.is_nan() for x in (low, high)):
        raise BackendError(
            "integrals up to infinity inside others have no proved digits", hint="give limits, or leave out --digits"
        )
    return _between(_integrand(body), low, high, reads, analytic=analytic)


RULES_OF_INTEGRANDS: dict[str, Rule] = {
    **RULES,
    "integral": lambda analytic, low, high, *reads, body, **_: _inner(body, low, high, reads, analytic),
}
