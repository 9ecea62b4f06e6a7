"""Integrals of what oscillates up to infinity, as sin(t)/t, or ever faster towards a limit, as sin(1/t), in ball
arithmetic.

With v a power of the variable, or of the reciprocal of its distance from the limit, the integrand is a sum of waves,
amplitudes times exp(i*c*v). Where the amplitude of a wave is analytic in the quarter plane of the v to the right of
some D and above it, and vanishes far away, its integral from D to infinity is that along the ray from D upwards, on
which the wave decays (Jordan's lemma; D. Huybrechs and S. Vandewalle, SIAM Journal on Numerical Analysis 44 (2006)
1026).

That an amplitude vanishes far away is proved by bounds by powers in the quarter plane.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Any

from flint import acb, arb

from gradcli import limits
from gradcli.arrays.flint.balls import real_ball
from gradcli.errors import BackendError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Program, Variable

# A logarithm is bounded by a power with this reciprocal exponent.
_SLOWLY = 8


class SectorBounds(NamedTuple):
    """Bounds of an analytic function in the quarter plane, with x = abs(v)/D: its magnitude is at most `most` * x**`order`
    and at least `least` * x**`below`, and its angle is between `low` and `high` half turns.

    The upper bound is unknown if `most` is None; the lower one and the angle are unknown if `least` is.
    """

    most: arb | None = None
    order: arb = arb(0)
    least: arb | None = None
    below: arb = arb(0)
    low: arb = arb(0)
    high: arb = arb(0)


def variable(start: arb) -> SectorBounds:
    """The bounds of v itself, to the right of `start`."""
    return SectorBounds(start.upper(), arb(1), start.lower(), arb(1), arb(0), arb(1) / 2)


def constant_bounds(x: arb) -> SectorBounds:
    found = SectorBounds(abs(x).upper())
    if x > 0 or x < 0:
        turns = arb(0 if x > 0 else 1)
        found = found._replace(least=abs(x).lower(), low=turns, high=turns)
    return found


def bounds_of(name: str, *operands: SectorBounds, **params: Any) -> SectorBounds:
    """The bounds of a function of others. Raises BackendError for a function of which no bounds are known."""
    rule = _RULES.get(name)
    if rule is None:
        raise BackendError(f"'{name}' has no known bounds for complex numbers")
    return rule(*operands, **params)


def _add(x: SectorBounds, y: SectorBounds) -> SectorBounds:
    for zero, other in ((x, y), (y, x)):
        if zero.most is not None and zero.most == 0:
            return other
    found = SectorBounds()
    if x.most is not None and y.most is not None:
        found = SectorBounds((x.most + y.most).upper(), max(x.order, y.order))
    if x.least is not None and y.least is not None:
        low, high = min(x.low, y.low), max(x.high, y.high)
        # The larger of two numbers is at most 1/sin(angle) times their sum, or once it for an angle up to a quarter turn.
        share = (high - low).sin_pi().lower() if high - low > 0.5 else arb(1)
        if high - low < 1 and share > 0:
            larger = max((x, y), key=lambda z: (z.below, z.least))
            return found._replace(least=(larger.least * share).lower(), below=larger.below, low=low, high=high)
    for large, small in ((x, y), (y, x)):
        if large.least is None or small.most is None:
            continue
        if small.order <= large.below and small.most < large.least:
            turn = (small.most / large.least).asin() / arb.pi()
            return found._replace(
                least=(large.least - small.most).lower(),
                below=large.below,
                low=(large.low - turn).lower(),
                high=(large.high + turn).upper(),
            )
    return found


def _multiply(x: SectorBounds, y: SectorBounds) -> SectorBounds:
    found = SectorBounds()
    if x.most is not None and y.most is not None:
        found = SectorBounds((x.most * y.most).upper(), (x.order + y.order).upper())
    if x.least is not None and y.least is not None:
        found = found._replace(
            least=(x.least * y.least).lower(),
            below=(x.below + y.below).lower(),
            low=(x.low + y.low).lower(),
            high=(x.high + y.high).upper(),
        )
    return found


def _reciprocal(x: SectorBounds) -> SectorBounds:
    if x.least is None:
        return SectorBounds()
    found = SectorBounds((1 / x.least).upper(), -x.below)
    if x.most is None:
        return found
    return found._replace(least=(1 / x.most).lower(), below=-x.order, low=-x.high, high=-x.low)


def _whole_power(x: SectorBounds, *, n: float) -> SectorBounds:
    found = reduce(_multiply, [x] * abs(int(n)), constant_bounds(arb(1)))
    return found if n >= 0 else _reciprocal(found)


def _pow(x: SectorBounds, y: SectorBounds) -> SectorBounds:
    """A power with a constant real exponent, of what is not on the negative real axis."""
    if not _is_off_cut(x) or y.most is None or y.least is None or y.order != 0 or y.below != 0 or y.low != y.high:
        return SectorBounds()
    found = _positive_power(x, y.least, y.most)
    return found if y.low == 0 else _reciprocal(found)


def _is_off_cut(x: SectorBounds) -> bool:
    return bool(x.least is not None and x.low > -1 and x.high < 1)


def _positive_power(x: SectorBounds, least: arb, most: arb) -> SectorBounds:
    """A power with an exponent between two positive numbers."""
    assert x.least is not None
    exponents = (least, most)
    found = SectorBounds()
    if x.most is not None:
        found = SectorBounds(max((x.most**e).upper() for e in exponents), max((x.order * e).upper() for e in exponents))
    return found._replace(
        least=min((x.least**e).lower() for e in exponents),
        below=min((x.below * e).lower() for e in exponents),
        low=min((x.low * e).lower() for e in exponents),
        high=max((x.high * e).upper() for e in exponents),
    )


def _exp(x: SectorBounds) -> SectorBounds:
    if x.most is not None and x.order <= 0:
        turns = (x.most / arb.pi()).upper()
        return SectorBounds(x.most.exp().upper(), arb(0), (-x.most).exp().lower(), arb(0), -turns, turns)
    half = arb(1) / 2
    if x.least is not None and ((x.low >= half and x.high <= 3 * half) or (x.low >= -3 * half and x.high <= -half)):
        # The real part is not positive.
        return SectorBounds(arb(1))
    return SectorBounds()


def _log(x: SectorBounds) -> SectorBounds:
    if not _is_off_cut(x) or x.least is None or x.most is None:
        return SectorBounds()
    # log(x) <= e*x**(1/e).
    slope = max(abs(x.order).upper(), abs(x.below).upper()) * _SLOWLY
    angle = max(abs(x.low).upper(), abs(x.high).upper()) * arb.pi()
    size = max(abs(x.most.log()).upper(), abs(x.least.log()).upper())
    return SectorBounds((size + slope + angle).upper(), arb(1) / _SLOWLY)


def _sin(x: SectorBounds) -> SectorBounds:
    """At most sinh(abs(x)) <= abs(x)*cosh(most)."""
    if x.most is None or not x.order <= 0:
        return SectorBounds()
    return SectorBounds((x.most * x.most.cosh()).upper(), x.order)


def _cos(x: SectorBounds) -> SectorBounds:
    return SectorBounds(x.most.cosh().upper()) if x.most is not None and x.order <= 0 else SectorBounds()


def _half_power(sign: int) -> Callable[[SectorBounds], SectorBounds]:
    return lambda x: _pow(x, constant_bounds(arb(sign) / 2))


def _negative(x: SectorBounds) -> SectorBounds:
    return _multiply(constant_bounds(arb(-1)), x)


_RULES: dict[str, Callable[..., SectorBounds]] = {
    "add": _add,
    "subtract": lambda x, y: _add(x, _negative(y)),
    "multiply": _multiply,
    "divide": lambda x, y: _multiply(x, _reciprocal(y)),
    "negative": _negative,
    "reciprocal": _reciprocal,
    "square": lambda x: _multiply(x, x),
    "whole_power": _whole_power,
    "pow": _pow,
    "sqrt": _half_power(1),
    "rsqrt": _half_power(-1),
    "exp": _exp,
    "log": _log,
    "log1p": lambda x: _log(_add(constant_bounds(arb(1)), x)),
    "sin": _sin,
    "cos": _cos,
}


# A sum of powers of u: coefficients by exponent.
Powers = Mapping[Fraction, arb]
# The number of each phase in a wave, for a wave that is a product.
Key = tuple[int, ...]
# The amplitude of each wave by its key.
Waves = dict[Key, Any]

_ZERO, _ONE = Fraction(0), Fraction(1)
_UNIT: Powers = {_ZERO: arb(1)}
# Upper bounds of the doublings of D that are tried, and of the exponent of a whole power of a sum.
_DOUBLINGS, _MOST_FACTORS = 12, 16
_OSCILLATING = frozenset({"sin", "cos"})
# The cost of an equation, in eighths of a step (see `gradcli.limits`).
_OPERATION = 8


class Tail(NamedTuple):
    """An integral from D to infinity of an integrand with respect to v, as sums of waves.

    The variables of the program that are sums of powers of u = v**(1/`power`) are `powers`, among them its first input,
    and those that oscillate are `phases`. The frequency of a phase is its coefficient of v.
    """

    program: Program
    reads: Sequence[arb]
    power: Fraction
    powers: Mapping[Variable, Powers]
    phases: Mapping[Variable, _Phase]
    frequencies: Sequence[arb]
    # D, and the bounds of the amplitudes from there on.
    start: arb = arb(1)
    bounds: Mapping[Key, SectorBounds] = MappingProxyType({})

    @property
    def place(self) -> Powers:
        """The variable of the integrand."""
        return self.powers[self.program.inputs[0]]

    @property
    def steady(self) -> Key:
        """The key of what does not oscillate."""
        return (0,) * len(self.frequencies)

    @property
    def first(self) -> arb:
        """The variable of the integrand where v is D."""
        return self._sum(self.place, acb(self.start)).real

    def frequency(self, key: Key) -> arb:
        """The coefficient c of a wave exp(i*c*v), 0 if it is none."""
        return sum((k * c for k, c in zip(key, self.frequencies) if k), arb(0))

    def decays(self, key: Key) -> bool:
        """Return whether the integral of a wave up to infinity is known to exist, and to be that along the ray."""
        bounds = self.bounds[key]
        if bounds.most is None:
            return False
        return bool(bounds.order < 0 and self.frequency(key) != 0 if any(key) else bounds.order < -1)

    def values(self, v: acb, apply: Callable[..., acb]) -> Waves:
        """The amplitude of each wave at v, times the derivative of the place by v; `apply(name, *numbers)` applies a
        function to complex balls."""

        def wave(name: str, phase: _Phase, sign: int) -> acb:
            found = (acb(0, sign) * self._sum(phase.rest, v)).exp() / 2
            return found if name == "cos" else found * acb(0, -sign)

        slope = self._sum(_slope(self), v)
        waves = _waves(self, _Algebra(acb, apply, wave, lambda powers: self._sum(powers, v)))
        return {key: found * slope for key, found in waves.items()}

    def _sum(self, powers: Powers, v: acb) -> acb:
        found = acb(0)
        for exponent, coefficient in powers.items():
            share = exponent / self.power
            whole = share.denominator == 1
            found += coefficient * (v ** int(share) if whole else v.pow(acb(_as_ball(share)), analytic=True))
        return found


class _Phase(NamedTuple):
    """The argument c*v + rest of a sine or cosine: its index among the phases, and `rest`, powers of u with exponents of
    at most 0."""

    number: int
    rest: Powers


def tail_from(program: Program, first: arb, end: arb, sign: int, reads: Sequence[arb]) -> Tail | None:
    """The integral from D, at or beyond a place `first`, to the limit `end`. `sign` is the direction of the variable, and
    `reads` are the values of the other inputs of the program.

    None where nothing is known to oscillate, or an amplitude is not known to be analytic and to vanish.
    """
    found = _tail_without_bounds(program, end, sign, reads)
    if found is None:
        return None
    u = 1 / abs(end - first) if end.is_finite() else sign * first
    begin = (u ** _as_ball(found.power)).upper() if u > 1 else arb(1)
    for _ in range(_DOUBLINGS):
        try:
            tail = found._replace(start=begin, bounds=_bounds(found, begin))
        except BackendError:
            return None
        if all(map(tail.decays, tail.bounds)):
            return tail
        begin = 2 * begin
    return None


def _tail_without_bounds(program: Program, end: arb, sign: int, reads: Sequence[arb]) -> Tail | None:
    """The tail with D and the bounds still unset; None unless all phases grow with the same single power."""
    place = {_ZERO: end, -_ONE: arb(-sign)} if end.is_finite() else {_ONE: arb(sign)}
    powers = _sums_of_powers(program, place, reads)
    phases: dict[Variable, _Phase] = {}
    numbers: dict[Hashable, int] = {}
    frequencies, exponents = list[arb](), set[Fraction]()
    for primitive, operands, _, output in program.equations:
        (argument,) = (powers.get(o) for o in operands) if primitive.name in _OSCILLATING else (None,)
        growing = [e for e in argument or () if e > 0]
        if argument is None or not growing:
            continue
        number = numbers.setdefault(operands[0], len(numbers))
        phases[output] = _Phase(number, {e: c for e, c in argument.items() if e <= 0})
        exponents.update(growing)
        if number == len(frequencies):
            frequencies.append(argument[growing[0]])
    if len(exponents) != 1:
        return None
    return Tail(program, reads, exponents.pop(), powers, phases, frequencies)


def _sums_of_powers(program: Program, place: Powers, reads: Sequence[arb]) -> dict[Any, Powers]:
    """The variables of a program that are sums of powers of u, where its first input is one."""
    known: dict[Any, Powers] = {}

    def keep(variable: Variable, powers: Powers) -> None:
        known[variable] = {e: c for e, c in powers.items() if not c.is_zero()}

    for variable, powers in zip(program.inputs, [place, *({_ZERO: read} for read in reads)]):
        keep(variable, powers)
    for primitive, operands, params, output in program.equations:
        given = [known.get(o) if isinstance(o, Variable) else {_ZERO: real_ball(o)} for o in operands]
        rule = _OF_POWERS.get(primitive.name)
        found = None if rule is None or None in given else rule(*given, **params)
        if found is not None:
            keep(output, found)
    return known


def _plus(x: Powers, y: Powers) -> Powers:
    return {e: x.get(e, arb(0)) + y.get(e, arb(0)) for e in {**x, **y}}


def _times(x: Powers, y: Powers) -> Powers:
    found: dict[Fraction, arb] = {}
    for e, c in x.items():
        for f, d in y.items():
            found[e + f] = found.get(e + f, arb(0)) + c * d
    return found


def _of_one_power(x: Powers, exponent: Fraction) -> Powers | None:
    """x**exponent for an x of one term; None otherwise, and where its coefficient may not be positive, or for a whole
    exponent may be 0."""
    if len(x) != 1:
        return None
    ((e, c),) = x.items()
    if exponent.denominator == 1 and not c.contains(0):
        return {e * exponent: c ** int(exponent)}
    return {e * exponent: c ** (arb(exponent.numerator) / exponent.denominator)} if c > 0 else None


def _whole_power_of(x: Powers, *, n: float) -> Powers | None:
    if n < 0 or len(x) == 1:
        return _of_one_power(x, Fraction(int(n)))
    return reduce(_times, [x] * int(n), _UNIT) if n <= _MOST_FACTORS else None


def _quotient(x: Powers, y: Powers) -> Powers | None:
    below = _of_one_power(y, -_ONE)
    return None if below is None else _times(x, below)


def _minus(x: Powers) -> Powers:
    return {e: -c for e, c in x.items()}


_OF_POWERS: dict[str, Callable[..., Powers | None]] = {
    "add": _plus,
    "subtract": lambda x, y: _plus(x, _minus(y)),
    "negative": _minus,
    "multiply": _times,
    "divide": _quotient,
    "reciprocal": lambda x: _of_one_power(x, -_ONE),
    "square": lambda x: _times(x, x),
    "whole_power": _whole_power_of,
    "sqrt": lambda x: _of_one_power(x, Fraction(1, 2)),
    "rsqrt": lambda x: _of_one_power(x, Fraction(-1, 2)),
}


class _Algebra(NamedTuple):
    """What a program of waves is computed with: numbers, or bounds.

    `constant` makes a number, `apply(name, *numbers)` applies a function, `wave(name, phase, sign)` is the amplitude of
    exp(±i*phase) in a sine or cosine, and `sum_of_powers` evaluates powers of u.
    """

    constant: Callable[[arb], Any]
    apply: Callable[..., Any]
    wave: Callable[[str, _Phase, int], Any]
    sum_of_powers: Callable[[Powers], Any]


def _waves(tail: Tail, algebra: _Algebra) -> Waves:
    """The integrand by its own variable, as waves. Raises BackendError for a function of a wave that is no sum of waves."""
    program = tail.program
    limits.charge_steps(_OPERATION * len(program.equations))
    sums = _SumsOfWaves(tail, algebra)
    known: dict[Variable, Any] = {v: algebra.sum_of_powers(tail.powers[v]) for v in program.inputs}

    def value(atom: Any) -> Any:
        if isinstance(atom, Variable):
            return known[atom]
        return atom if type(atom) is bool else algebra.constant(real_ball(atom))

    for primitive, operands, params, output in program.equations:
        given = [*map(value, operands)]
        if output in tail.phases:
            known[output] = sums.oscillating(primitive.name, tail.phases[output])
        elif output in tail.powers:
            known[output] = algebra.sum_of_powers(tail.powers[output])
        elif not any(isinstance(x, dict) for x in given):
            known[output] = algebra.apply(primitive.name, *given, **params)
        else:
            known[output] = sums.applied(primitive, given, params)
    return sums.waves(value(program.outputs[0]))


class _SumsOfWaves:
    """The operations of the language under which sums of waves stay sums of waves."""

    def __init__(self, tail: Tail, algebra: _Algebra) -> None:
        self._tail, self._algebra = tail, algebra
        self._rules: dict[str, Callable[..., Waves]] = {
            "add": self._add,
            "subtract": lambda x, y: self._add(x, self._negative(self.waves(y))),
            "multiply": self._multiply,
            "negative": self._negative,
            "square": lambda x: self._multiply(x, x),
            "divide": lambda x, y: self._multiply(x, algebra.apply("reciprocal", y)),
            "whole_power": self._whole_power,
        }

    def applied(self, primitive: Primitive, given: Sequence[Any], params: Mapping[str, Any]) -> Waves:
        """Raises BackendError where the result is not known to be a sum of waves."""
        name = primitive.name
        is_divided_by_waves = name == "divide" and isinstance(given[1], dict)
        if name not in self._rules or is_divided_by_waves or params.get("n", 1) < 1:
            raise BackendError(f"'{primitive.called}' of what oscillates is not known to be a sum of waves")
        return self._rules[name](*given, **params)

    def oscillating(self, name: str, phase: _Phase) -> Waves:
        """A sine or cosine of a phase."""
        key = tuple(int(j == phase.number) for j in range(len(self._tail.frequencies)))
        return {tuple(sign * k for k in key): self._algebra.wave(name, phase, sign) for sign in (1, -1)}

    def waves(self, x: Any) -> Waves:
        return x if isinstance(x, dict) else {self._tail.steady: x}

    def _add(self, x: Any, y: Any) -> Waves:
        found = dict(self.waves(x))
        for key, number in self.waves(y).items():
            found[key] = self._algebra.apply("add", found[key], number) if key in found else number
        return found

    def _multiply(self, x: Any, y: Any) -> Waves:
        found: Waves = {}
        for a, left in self.waves(x).items():
            for b, right in self.waves(y).items():
                product = self._algebra.apply("multiply", left, right)
                found = self._add(found, {tuple(map(operator.add, a, b)): product})
        return found

    def _negative(self, x: Waves) -> Waves:
        return {key: self._algebra.apply("negative", number) for key, number in x.items()}

    def _whole_power(self, x: Waves, *, n: float) -> Waves:
        return reduce(self._multiply, [x] * int(n))


def _bounds(tail: Tail, start: arb) -> Waves:
    """The bounds of the amplitudes to the right of `start`, with respect to v."""
    v = variable(start)

    def power(exponent: Fraction) -> SectorBounds:
        constant = constant_bounds(_as_ball(exponent / tail.power))
        return bounds_of("pow", v, constant) if exponent else constant_bounds(arb(1))

    def sum_of_powers(powers: Powers) -> SectorBounds:
        terms = [bounds_of("multiply", constant_bounds(c), power(e)) for e, c in powers.items()]
        return reduce(lambda x, y: bounds_of("add", x, y), terms, constant_bounds(arb(0)))

    def wave(_name: str, phase: _Phase, _sign: int) -> SectorBounds:
        """Bounds of exp(i*rest)/2. The constant term of `rest` is real and left out: its exponential has magnitude 1."""
        rest = sum_of_powers({e: c for e, c in phase.rest.items() if e})
        half = constant_bounds(arb(1) / 2)
        return bounds_of("multiply", half, bounds_of("exp", rest))._replace(least=None)

    waves = _waves(tail, _Algebra(constant_bounds, bounds_of, wave, sum_of_powers))
    slope = sum_of_powers(_slope(tail))
    return {key: bounds_of("multiply", found, slope) for key, found in waves.items()}


def _as_ball(fraction: Fraction) -> arb:
    return arb(fraction.numerator) / fraction.denominator


def _slope(tail: Tail) -> Powers:
    """The magnitude of the derivative of the place with respect to v."""
    ((exponent, _),) = ((e, c) for e, c in tail.place.items() if e)
    return {exponent - tail.power: _as_ball(1 / tail.power)}
