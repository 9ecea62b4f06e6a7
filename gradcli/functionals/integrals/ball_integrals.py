"""Integrals with proved digits, by Arb's integration of analytic functions (F. Johansson, arXiv:1802.07942)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from flint import acb, arb

from gradcli import arrays, limits
from gradcli.arrays.flint.balls import UNDEFINED, Balls, UndecidedError, exact, is_nan, precise, precision, real_ball
from gradcli.errors import BackendError, EvaluationError
from gradcli.functionals.body import Body
from gradcli.functionals.real_parts import in_real_parts
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program, Variable

# The cost of an evaluation of the integrand, in eighths of a step for each of its operations, and the precision up to
# which it hardly depends on that; beyond, an exponential takes about as much longer as there are more bits.
_OPERATION, _CHEAP_BITS = 8, 128
# What an operation on complex numbers, of which there are two, costs more.
_COMPLEX_OPERATION = 56

# The cost of the nodes of the rules of quadrature, which rises with the cube of the precision: the bits at which it is an
# eighth of a step. At 16,000 bits it takes 10 s.
_BITS_OF_NODES = 50
# Shares of the way between the limits at which an integrand must have a value: no simple fractions, where it may be 0/0.
_SHARES = (0.13711, 0.48731, 0.86309)
# How far integrals over exponentials go, in units of the precision in bits, and by which factor farther at a time.
_FARTHEST, _FARTHER = 40, arb(5) / 4

_UNDEFINED = acb("nan")


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
    program = body.program
    if not _is_regular_at_both(program, first, last, given):
        _require_values(body, *ends, reads)
        program = _real_program(body)
    edges = [first, *(acb(exact(p)) for p in points), last]
    if len(edges) == 2 and not (first.is_finite() or last.is_finite()):
        edges.insert(1, acb(0))
    found = sum((_part(program, a, b, given) for a, b in itertools.pairwise(edges)), acb(0))
    if not found.is_finite():
        _require_values(body, *ends, reads)
        raise UndecidedError("the integral cannot be enclosed: its integrand is unbounded, or not piecewise analytic")
    return Balls(found.real)


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


_real_programs: WeakKeyDictionary[Body, Program] = WeakKeyDictionary()


def _real_program(body: Body) -> Program:
    """The program of a body, by real and imaginary parts, which are analytic in the variable each, where it computes with
    complex numbers; unchanged where it has a function that is not known by these."""
    found = _real_programs.get(body)
    if found is None:
        try:
            found = in_real_parts(body, "").program
        except EvaluationError:
            found = body.program
        _real_programs[body] = found
    return found


def _part(program: Program, low: acb, high: acb, reads: Sequence[acb]) -> acb:
    """The integral between two limits, which may be infinite, and where the integrand may be."""
    if _is_regular(program, low, reads):
        return _outward(program, low, high, reads)
    if _is_regular(program, high, reads):
        return -_outward(program, high, low, reads)
    middle = (low + high) / 2
    if not middle.is_finite():
        finite, infinite = (low, high) if low.is_finite() else (high, low)
        middle = finite + (1 if infinite.real > 0 else -1)
    return _outward(program, middle, high, reads) - _outward(program, middle, low, reads)


def _is_regular_at_both(program: Program, first: acb, last: acb, reads: Sequence[acb]) -> bool:
    """Return whether the integrand is regular at two limits, as far as it is known for complex numbers as they are."""
    try:
        return _is_regular(program, first, reads) and _is_regular(program, last, reads)
    except BackendError:
        return False


def _is_regular(program: Program, end: acb, reads: Sequence[acb]) -> bool:
    """Return whether the integrand is finite at a limit, and has bounds beside it."""
    beside = end + arb(0, arb(2) ** -precision())
    return bool(
        end.is_finite() and all(value_of(program, [x, *reads], analytic=False).is_finite() for x in (end, beside))
    )


def _outward(program: Program, start: acb, end: acb, reads: Sequence[acb]) -> acb:
    """The integral from a place where the integrand is finite to a limit."""
    if _is_regular(program, end, reads):
        return _between(program, start, end, reads)
    found = _oscillating(program, start, end, reads)
    if found is not None:
        return found
    if end.is_finite():
        return _to_singularity(program, start, end, reads)
    sign = 1 if end.real > 0 else -1
    return sign * _to_infinity(program, start, sign, reads)


def _oscillating(program: Program, start: acb, end: acb, reads: Sequence[acb]) -> acb | None:
    """The integral up to a limit towards which the integrand oscillates; None where that is not known."""
    from gradcli.functionals.integrals.ball_oscillations import tail_from

    sign = 1 if end.real > start.real else -1
    tail = tail_from(program, start.real, end.real, sign, [read.real for read in reads])
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
    return _between(program, start, acb(tail.first), reads) + sign * found


def _to_infinity(program: Program, start: acb, sign: int, reads: Sequence[acb]) -> acb:
    """The integral by the distance d from `start` in a direction, which is exp(x) - 1, so that what decays as a power of d
    decays exponentially with x; what is left is bounded."""
    # Imported here as most integrals are between finite limits.
    from gradcli.functionals.integrals.growth import add, constant, distance, growth, negative

    numbers = [read.real for read in reads]

    def bound(end: arb) -> arb | None:
        begin = end.exp() - 1
        d = distance(begin)
        place = add(constant(start.real), d if sign > 0 else negative(d))
        return growth(program, place, numbers).rest(begin.upper())

    def value(inputs: Sequence[acb], analytic: bool) -> acb:
        e = inputs[0].exp()
        return value_of(program, [start + sign * (e - 1), *inputs[1:]], analytic) * e

    end, rest = _end(bound, "the integrand is not known to decay fast enough for proved digits up to infinity")
    return _between(value, acb(0), acb(end), reads) + arb(0, rest)


def _to_singularity(program: Program, start: acb, end: acb, reads: Sequence[acb]) -> acb:
    """The integral by the distance from `end`, which is abs(end - start)*exp(-x): what grows as a power of its reciprocal,
    above -1, decays exponentially with x; what is left is bounded."""
    from gradcli.functionals.integrals.growth import growth_near

    width, numbers = end - start, [read.real for read in reads]
    sign = -1 if width.real > 0 else 1

    def bound(x: arb) -> arb | None:
        nearest = (1 / (abs(width.real) * (-x).exp())).lower()
        return growth_near(program, end.real, sign, nearest, numbers).rest(nearest)

    last, rest = _end(bound, "integrals of what is infinite at a limit have no proved digits")
    # Next to the limit, differences from it keep their digits.
    bits = precision() + math.ceil(2 * float(last) / math.log(2))

    def value(inputs: Sequence[acb], analytic: bool) -> acb:
        with precise(bits):
            e = width * (-inputs[0]).exp()
            return value_of(program, [end - e, *inputs[1:]], analytic) * e

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
    function: Program | Callable[[Sequence[acb], bool], acb],
    low: acb,
    high: acb,
    reads: Sequence[acb],
    *,
    analytic: bool = False,
) -> acb:
    """The integral of a program, or of a function of the same inputs that is told whether it must be analytic."""
    raised: list[BaseException] = []

    def value(t: acb, of_panel: bool) -> acb:
        # FLINT does not pass on what is raised here, an interrupt included.
        try:
            if raised:
                return _UNDEFINED
            inputs, strict = [t, *reads], of_panel or analytic
            return function(inputs, strict) if callable(function) else value_of(function, inputs, strict)
        except BaseException as error:
            raised.append(error)
            return _UNDEFINED

    limits.charge_steps((precision() // _BITS_OF_NODES) ** 3)
    found = acb.integral(value, low, high)
    if raised:
        raise raised[0]
    return found


def complex_ball(value: Any) -> acb:
    return acb(real_ball(value))


def value_of(program: Program, inputs: Sequence[acb], analytic: bool) -> acb:
    """The value for complex balls; not finite where it must be `analytic` and may be not."""
    limits.charge_steps(_OPERATION * len(program.equations) * max(1, precision() // _CHEAP_BITS))
    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))

    for primitive, operands, params, output in program.equations:
        given = [known[a] if type(a) is Variable else _constant(a) for a in operands]
        # Results of other kinds, and parts of complex numbers, may be of complex operands.
        if (output.dtype != "float64" or primitive.name in _COMPLEX_RULES) and (
            primitive.name == "complex" or any(type(x) is _Conjugates for x in given)
        ):
            known[output] = _of_complex(primitive, analytic, given, params)
            continue
        rule = RULES.get(primitive.name) or rule_of(primitive.name, primitive.called)
        found = rule(analytic, *given, **params)
        if not analytic and type(found) is acb and not found.imag.is_zero() and _leaves_reals(given, found):
            found = _UNDEFINED
        known[output] = found
    result = program.outputs[0]
    return known[result] if type(result) is Variable else _constant(result)


def _constant(atom: Any) -> Any:
    if arrays.is_complex(atom):
        return _complex(False, complex_ball(atom.real), complex_ball(atom.imag))
    return atom if type(atom) is bool else complex_ball(atom)


def _leaves_reals(operands: Sequence[Any], result: acb) -> bool:
    """Return whether a function of real numbers has no real value for any of them, as the square root below 0."""
    if result.imag.contains(0):
        return False
    return all(type(x) is not acb or x.imag.is_zero() for x in operands)


class _Conjugates(NamedTuple):
    """A complex number as a function of the real variable, and its conjugate, which are analytic in the variable each."""

    number: acb
    conjugate: acb


def _of_complex(primitive: Primitive, analytic: bool, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The result of an operation on complex numbers. Raises BackendError where it is not known."""
    limits.charge_steps(_COMPLEX_OPERATION)
    special = _COMPLEX_RULES.get(primitive.name)
    if special is not None:
        return special(analytic, *operands)
    if primitive.name in _OF_REALS:
        raise BackendError(f"'{primitive.called}' of complex numbers has no proved digits inside an integral")
    rule = rule_of(primitive.name, primitive.called)
    number = rule(analytic, *(x.number if type(x) is _Conjugates else x for x in operands), **params)
    if not analytic:
        # The variable is real. On a branch cut, the function of a conjugate is not the conjugate.
        return _Conjugates(number, number.conjugate())
    conjugate = rule(analytic, *(x.conjugate if type(x) is _Conjugates else x for x in operands), **params)
    return _Conjugates(number, conjugate)


def _complex(_analytic: bool, a: acb, b: acb) -> _Conjugates:
    return _Conjugates(a + acb(0, 1) * b, a - acb(0, 1) * b)


def _real_part(_analytic: bool, x: _Conjugates) -> acb:
    return (x.number + x.conjugate) / 2


def _imaginary_part(_analytic: bool, x: _Conjugates) -> acb:
    return (x.number - x.conjugate) / acb(0, 2)


def _modulus(analytic: bool, x: _Conjugates) -> acb:
    return (x.number * x.conjugate).sqrt(analytic=analytic)


_COMPLEX_RULES: dict[str, Callable[..., Any]] = {
    "complex": _complex,
    "real_part": _real_part,
    "imaginary_part": _imaginary_part,
    "conjugate": lambda _, x: _Conjugates(x.conjugate, x.number),
    "abs": _modulus,
}
# Operations that are defined by real parts.
_OF_REALS = frozenset(
    {"sign", "floor", "ceil", "maximum", "minimum", "relu", "clip", "hypot", "atan2", "cbrt", "softsign", "integral"}
    | {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "may_differ_from_zero", "isfinite"}
)


Rule = Callable[..., Any]


def rule_of(name: str, called: str | None = None) -> Rule:
    """The rule of a primitive. Raises BackendError where there is none."""
    rule = RULES.get(name)
    if rule is None:
        raise BackendError(f"'{called or name}' has no proved digits inside an integral")
    return rule


def _entire(name: str) -> Rule:
    """A function that is analytic wherever it is finite."""
    return lambda _analytic, x: getattr(x, name)()


def _with_cut(compute: Callable[[acb], acb], touches: Callable[[acb], bool]) -> Rule:
    """A function with a branch cut; `touches` says whether a ball may meet it."""
    return lambda analytic, x: _UNDEFINED if analytic and touches(x) else compute(x)


def _is_real(x: acb) -> bool:
    return bool(x.imag.contains(0))


def _is_imaginary(x: acb) -> bool:
    return bool(x.real.contains(0))


def _outside(part: arb) -> bool:
    """Return whether a part may be at least 1 in magnitude."""
    return not abs(part) < 1


def _whole_power(_analytic: bool, x: acb, *, n: float) -> acb:
    return x ** int(n)


def _power(analytic: bool, x: acb, y: acb) -> acb:
    exponent = y.unique_fmpz() if y.is_exact() else None
    return x ** int(exponent) if exponent is not None else x.pow(y, analytic=analytic)


def _compared(holds: Callable[[arb], bool], fails: Callable[[arb], bool]) -> Rule:
    """A comparison of real parts: whether it holds, None where the balls do not decide."""

    def rule(_analytic: bool, x: acb, y: acb) -> bool | None:
        difference = (x - y).real
        return True if holds(difference) else False if fails(difference) else None

    return rule


def _same(difference: acb) -> bool | None:
    return True if difference == 0 else None if difference.contains(0) else False


def _where(analytic: bool, condition: bool | None, x: acb, y: acb) -> acb:
    if condition is not None:
        return x if condition else y
    return _UNDEFINED if analytic else x.union(y)


def _both(_analytic: bool, a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _either(_analytic: bool, a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False


_atan = _with_cut(acb.atan, lambda x: _is_imaginary(x) and _outside(x.imag))


def _atan2(analytic: bool, y: acb, x: acb) -> acb:
    """The angle, analytic in both parts away from the negative real axis."""
    if x.real > 0:
        return _atan(analytic, y / x)
    if y.real > 0 or y.real < 0:
        right = acb.pi() / 2
        return (right if y.real > 0 else -right) - _atan(analytic, x / y)
    return _UNDEFINED if analytic else acb(arb(0, arb.pi().upper()))


def _sigmoid(_analytic: bool, x: acb) -> acb:
    return 1 / (1 + (-x).exp()) if x.real > 0 else x.exp() / (1 + x.exp())


def _softplus(analytic: bool, x: acb) -> acb:
    """log(1 + exp(x)) = x + log(1 + exp(-x))."""
    return x + (1 + (-x).exp()).log(analytic=analytic) if x.real > 0 else (1 + x.exp()).log(analytic=analytic)


def _sinc(_analytic: bool, x: acb, *, n: int) -> acb:
    if n:
        raise BackendError("derivatives of 'sinc' have no proved digits inside an integral")
    return x.sinc_pi()


def _lambertw(analytic: bool, x: acb, *, k: int) -> acb:
    if k:
        raise BackendError("branches of 'lambertw' have no proved digits inside an integral")
    return _UNDEFINED if analytic and _is_real(x) and not x.real > -arb(-1).exp() else x.lambertw()


def _iv(_analytic: bool, order: acb, x: acb) -> acb:
    """The function for a constant whole order; for others it has a branch cut."""
    if not (order.is_exact() and order.real.is_integer() and order.imag.is_zero()):
        raise BackendError("'iv' has proved digits inside an integral for orders that are whole numbers")
    return x.bessel_i(order)


def _scaled_i(_analytic: bool, x: acb, *, n: int) -> acb:
    if n:
        raise BackendError("derivatives of 'i0e' have no proved digits inside an integral")
    return x.bessel_i(0, scaled=True)


def _cbrt(analytic: bool, x: acb) -> acb:
    """Odd, and analytic on both sides of 0."""
    third = acb(1) / 3
    if x.real > 0:
        return x.pow(third)
    if x.real < 0:
        return -((-x).pow(third))
    size = x.abs_upper().root(3).upper()
    return _UNDEFINED if analytic else acb(arb(0, size), arb(0, size))


def _inner(program: Program, low: acb, high: acb, reads: Sequence[acb], analytic: bool) -> acb:
    """An integral inside another."""
    if any(x.real.is_exact() and not x.is_finite() and not x.real.is_nan() for x in (low, high)):
        raise BackendError(
            "integrals up to infinity inside others have no proved digits", hint="give limits, or leave out --digits"
        )
    return _between(program, low, high, reads, analytic=analytic)


RULES: dict[str, Rule] = {
    "add": lambda _, x, y: x + y,
    "subtract": lambda _, x, y: x - y,
    "multiply": lambda _, x, y: x * y,
    "divide": lambda _, x, y: x / y,
    "negative": lambda _, x: -x,
    "reciprocal": lambda _, x: 1 / x,
    "square": lambda _, x: x * x,
    "whole_power": _whole_power,
    "pow": _power,
    "sqrt": lambda analytic, x: x.sqrt(analytic=analytic),
    "rsqrt": lambda analytic, x: x.rsqrt(analytic=analytic),
    "log": lambda analytic, x: x.log(analytic=analytic),
    "log2": lambda analytic, x: x.log(analytic=analytic) / arb(2).log(),
    "log10": lambda analytic, x: x.log(analytic=analytic) / arb(10).log(),
    "log1p": lambda analytic, x: (1 + x).log(analytic=analytic),
    "abs": lambda analytic, x: x.real_abs(analytic=analytic),
    "sign": lambda analytic, x: x.real_sgn(analytic=analytic),
    "floor": lambda analytic, x: x.real_floor(analytic=analytic),
    "ceil": lambda analytic, x: x.real_ceil(analytic=analytic),
    "maximum": lambda analytic, x, y: x.real_max(y, analytic=analytic),
    "minimum": lambda analytic, x, y: x.real_min(y, analytic=analytic),
    "relu": lambda analytic, x: x.real_max(acb(0), analytic=analytic),
    "hypot": lambda analytic, x, y: (x * x + y * y).sqrt(analytic=analytic),
    "asin": _with_cut(acb.asin, lambda x: _is_real(x) and _outside(x.real)),
    "acos": _with_cut(acb.acos, lambda x: _is_real(x) and _outside(x.real)),
    "atanh": _with_cut(acb.atanh, lambda x: _is_real(x) and _outside(x.real)),
    "atan": _atan,
    "atan2": _atan2,
    "asinh": _with_cut(acb.asinh, lambda x: _is_imaginary(x) and _outside(x.imag)),
    "acosh": _with_cut(acb.acosh, lambda x: _is_real(x) and not x.real > 1),
    "lgamma": _with_cut(acb.lgamma, lambda x: _is_real(x) and not x.real > 0),
    **{
        name: _entire(name)
        for name in (
            *("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc", "erfi", "gamma", "digamma"),
            *("sec", "csc", "cot", "sech", "csch", "coth", "si", "shi", "rgamma"),
        )
    },
    "sinc": _sinc,
    "sinpi": lambda _, x: x.sin_pi(),
    "cospi": lambda _, x: x.cos_pi(),
    "exp2": lambda _, x: (x * arb(2).log()).exp(),
    "one_minus_square": lambda _, x: (1 - x) * (1 + x),
    "over_one_plus_square": lambda _, x: 1 / (1 + x * x),
    "sech_square": lambda _, x: x.sech() ** 2,
    "clip": lambda analytic, x, low, high: x.real_max(low, analytic=analytic).real_min(high, analytic=analytic),
    "cbrt": _cbrt,
    "softsign": lambda analytic, x: x / (1 + x.real_abs(analytic=analytic)),
    "xlogy": lambda analytic, x, y: x * y.log(analytic=analytic),
    "entr": lambda analytic, x: -x * x.log(analytic=analytic),
    "scaled_i": _scaled_i,
    "iv": _iv,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "logsigmoid": lambda analytic, x: -_softplus(analytic, -x),
    "lambertw": _lambertw,
    "airyai": lambda _, x: x.airy_ai(),
    "airyaiprime": lambda _, x: x.airy_ai(derivative=1),
    "airybi": lambda _, x: x.airy_bi(),
    "airybiprime": lambda _, x: x.airy_bi(derivative=1),
    "bessel_j": lambda _, x, n: x.bessel_j(n),
    "bessel_i": lambda _, x, n: x.bessel_i(n),
    "polygamma": lambda _, x, n: x.polygamma(n),
    "fresnels": lambda _, x: x.fresnel_s(),
    "fresnelc": lambda _, x: x.fresnel_c(),
    "ndtr": lambda _, x: (-x / arb(2).sqrt()).erfc() / 2,
    "riemann_zeta": lambda _, x: x.zeta(),
    "less": _compared(lambda d: d < 0, lambda d: d >= 0),
    "less_equal": _compared(lambda d: d <= 0, lambda d: d > 0),
    "greater": _compared(lambda d: d > 0, lambda d: d <= 0),
    "greater_equal": _compared(lambda d: d >= 0, lambda d: d < 0),
    "isfinite": lambda _, x: True if x.is_finite() else None,
    "equal": lambda _, x, y: _same(x - y),
    "not_equal": lambda _, x, y: None if _same(x - y) is None else not _same(x - y),
    "logical_and": _both,
    "logical_or": _either,
    "logical_not": lambda _, a: None if a is None else not a,
    "may_differ_from_zero": lambda _, x: not x.is_zero(),
    "where": _where,
    "integral": lambda analytic, low, high, *reads, body, **_: _inner(body.program, low, high, reads, analytic),
}  # fmt: skip
