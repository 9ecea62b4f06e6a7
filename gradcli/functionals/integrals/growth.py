"""Bounds of functions up to infinity, by powers: what proves that little is left of an integral or sum beyond a
place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from flint import acb, arb, arb_poly

from gradcli.arrays.flint.balls import real_ball
from gradcli.errors import BackendError
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Program, Variable

# Airy's function Ai is at most 0.5357 in magnitude on the real line (DLMF 9.9, its first extreme value).
_LARGEST_AIRY = arb("0.54")
# A logarithm is bounded by a power with this exponent.
_SLOWLY = 8


class Growth(NamedTuple):
    """Bounds for all distances d from some D > 0 on, with x = d/D: the magnitude is at most `most` * x**`order`, if
    that is known, and `sign` times the value, if a sign is known, at least `least` * x**`below`, which is positive.

    The numbers are exact, and rounded to the safe side.
    """

    most: arb | None = None
    order: arb = arb(0)
    sign: int = 0
    least: arb = arb(0)
    below: arb = arb(0)

    def rest(self, distance: arb) -> arb | None:
        """A bound of the integral of the magnitude from the distance D on; None where there is none."""
        if self.most is None or not (self.order < -1 or self.most == 0):
            return None
        if self.most == 0:
            return arb(0)
        return (self.most * distance / (-self.order - 1)).upper()


# A truth value may be unknown.
_Bound = Growth | bool | None
# The coefficients of a polynomial, from that of order 0 on, and a bound on their number.
Polynomial = Sequence[arb]
_LONGEST = 16


def growth_near(program: Program, end: arb, sign: int, start: arb, reads: Sequence[arb]) -> Growth:
    """The bounds of the first output of a program divided by d**2, where its first input is `end` + `sign`/d, for all
    distances d from `start` on: the integrand by d of its integral up to `end`.

    Raises BackendError for a function of which no bounds are known.
    """
    near = Near(_reciprocal(distance(start)), [end, arb(sign)])
    found = growth(program, near.bounds(near.place), reads, near)
    return _multiply(found, _multiply(near.small, near.small))


class Near(NamedTuple):
    """The first input of a program as a polynomial, `place`, in u, which grows as `small`."""

    small: Growth
    place: Polynomial

    def bounds(self, polynomial: Polynomial) -> Growth:
        """The bounds of a polynomial in u, from the coefficient of order 0 on."""
        power, terms = constant(arb(1)), list[Growth]()
        for coefficient in polynomial:
            if not coefficient.is_zero():
                terms.append(_multiply(constant(coefficient), power))
            power = _multiply(power, self.small)
        return reduce(add, terms) if terms else constant(arb(0))


def growth(program: Program, place: Growth, reads: Sequence[arb], near: Near | None = None) -> Growth:
    """The bounds of the first output of a program whose first input grows as `place`, and whose others are `reads`.

    With `near`, values that are polynomials in its u are bounded by these, so that differences vanish as they do, as 1 - x
    near 1. Raises BackendError for a function of which no bounds are known.
    """
    known: dict[Variable, _Bound] = dict(zip(program.inputs, [place, *map(constant, reads)]))
    start: Polynomial = [arb(0), arb(1)] if near is None else near.place
    polynomials: dict[Variable, Polynomial] = dict(zip(program.inputs, [start, *([read] for read in reads)]))

    def polynomial(atom: Any) -> Polynomial | None:
        if isinstance(atom, Variable):
            return polynomials.get(atom)
        return None if type(atom) is bool else [real_ball(atom)]

    def value(atom: Any) -> _Bound:
        if isinstance(atom, Variable):
            return known[atom]
        return atom if type(atom) is bool else constant(real_ball(atom))

    forms = _ExponentialForms(Near(place, [arb(0), arb(1)]) if near is None else near)
    for primitive, operands, params, output in program.equations:
        given = [*map(polynomial, operands)]
        form = forms.of(primitive.name, operands, [*map(value, operands)], given, params)
        rule = _RULES.get(primitive.name)
        if rule is not None:
            known[output] = rule(*map(value, operands), **params)
        elif form is None:
            unproved = "to decay, and there are no proved digits up to infinity"
            if near is not None:
                unproved = "to be bounded, and there are no proved digits where an integrand is infinite"
            raise BackendError(f"'{primitive.called}' is not known {unproved}", hint="leave out --digits")
        if form is not None:
            forms.known[output] = form
            known[output] = _better(forms.bounds(form), known.get(output, Growth()))
        found = _polynomial(primitive.name, given, params)
        if found is not None:
            polynomials[output] = found
        if near is None:
            continue
        if found is not None:
            known[output] = near.bounds(found)
        elif primitive.name == "log1p" and given[0] is not None:
            known[output] = _log(near.bounds((arb_poly([*given[0]]) + 1).coeffs()))
        elif primitive.name in _OSCILLATING and any(
            isinstance(x, Growth) and x.below > 0 for x in map(value, operands)
        ):
            raise BackendError(
                "integrals of what oscillates ever faster at a limit have no proved digits", hint="leave out --digits"
            )
    bounds = value(program.outputs[0])
    return bounds if isinstance(bounds, Growth) else Growth()


def _polynomial(name: str, operands: Sequence[Polynomial | None], params: Mapping[str, Any]) -> Polynomial | None:
    """The result of an operation on polynomials, None if it is none."""
    given = [arb_poly([*o]) for o in operands if o is not None]
    rule = _OF_POLYNOMIALS.get(name)
    if rule is None or len(given) < len(operands):
        return None
    found = rule(*given, **params)
    return None if found is None or found.length() > _LONGEST else found.coeffs()


class _ExponentialForm(NamedTuple):
    """A value as the exponential of a polynomial times what grows as `rest`."""

    exponent: Polynomial
    rest: Growth


class _ExponentialForms:
    """The values of a program that are known as exponentials of polynomials times others: these add up in products, as
    in exp(-2*x)*cosh(x), of which bounds of the factors say nothing."""

    def __init__(self, variable: Near) -> None:
        self._variable = variable
        self.known: dict[Variable, _ExponentialForm] = {}

    def bounds(self, form: _ExponentialForm) -> Growth:
        return _multiply(_exp(self._variable.bounds(form.exponent)), form.rest)

    def of(
        self,
        name: str,
        operands: Sequence[Any],
        values: Sequence[_Bound],
        polynomials: Sequence[Polynomial | None],
        params: Mapping[str, Any],
    ) -> _ExponentialForm | None:
        """The form of the result of an operation; None where it is none."""
        if name in _OF_EXPONENTS and polynomials[-1] is not None:
            return self._of_exponent(name, polynomials[-1], values)
        forms = [self.known.get(o) if isinstance(o, Variable) else None for o in operands]
        if not any(forms) or name not in _OF_FORMS:
            return None
        # A value without a form has the exponent 0.
        given = [form or _ExponentialForm([], v) for form, v in zip(forms, values) if isinstance(v, Growth)]
        return _OF_FORMS[name](self, *given, **params) if len(given) == len(forms) else None

    def _of_exponent(self, name: str, exponent: Polynomial, values: Sequence[_Bound]) -> _ExponentialForm | None:
        size = self._variable.bounds(exponent)
        if name == "exp":
            return _ExponentialForm(exponent, constant(arb(1)))
        if not size.sign:
            return None
        if name == "sigmoid":
            return _ExponentialForm(exponent if size.sign < 0 else [], Growth(arb(1), arb(0), 1, arb(0.5), arb(0)))
        if name in ("iv", "bessel_i"):
            order = values[0]
            if name == "iv" and not (isinstance(order, Growth) and (order.sign > 0 or order.most == 0)):
                return None
            # It is at most that of order 0.
            rest = _scaled_i(_abs(size), n=0)
        elif name == "cosh":
            rest = Growth(arb(1), arb(0), 1, arb(0.5), arb(0))
        elif name == "sinh":
            rest = _short_of_one(2 * size.least, size)
            rest = _multiply(rest, constant(arb(0.5)))
        else:
            rest = _short_of_one(size.least, size)
            if size.sign < 0:
                return _ExponentialForm([], rest)
        return _ExponentialForm(exponent if size.sign > 0 else [-c for c in exponent], rest)

    def product(self, x: _ExponentialForm, y: _ExponentialForm) -> _ExponentialForm:
        return _ExponentialForm((arb_poly([*x.exponent]) + arb_poly([*y.exponent])).coeffs(), _multiply(x.rest, y.rest))

    def reciprocal(self, x: _ExponentialForm) -> _ExponentialForm:
        return _ExponentialForm([-c for c in x.exponent], _reciprocal(x.rest))

    def power(self, x: _ExponentialForm, n: float) -> _ExponentialForm:
        return _ExponentialForm([int(n) * c for c in x.exponent], _whole_power(x.rest, n=n))

    def total(self, x: _ExponentialForm, y: _ExponentialForm) -> _ExponentialForm | None:
        """The sum, by the exponent that is larger."""
        difference = (arb_poly([*y.exponent]) - arb_poly([*x.exponent])).coeffs()
        size = self._variable.bounds(difference)
        if size.most == 0:
            return _ExponentialForm(x.exponent, add(x.rest, y.rest))
        if not size.sign:
            return None
        if size.sign > 0:
            x, y, size = y, x, negative(size)
        return _ExponentialForm(x.exponent, add(x.rest, _multiply(_exp(size), y.rest)))


def _short_of_one(exponent: arb, size: Growth) -> Growth:
    """1 - exp(-t), with the sign of a number, for t from `exponent` on."""
    least = (1 - (-exponent).exp()).lower() if size.below >= 0 else arb(0)
    return Growth(arb(1), arb(0), size.sign if least > 0 else 0, least, arb(0))


def _of_negative(x: _ExponentialForm) -> _ExponentialForm:
    return x._replace(rest=negative(x.rest))


_OF_EXPONENTS = frozenset({"exp", "expm1", "sigmoid", "cosh", "sinh", "iv", "bessel_i"})
_OF_FORMS: dict[str, Callable[..., _ExponentialForm | None]] = {
    "multiply": _ExponentialForms.product,
    "divide": lambda forms, x, y: forms.product(x, forms.reciprocal(y)),
    "reciprocal": _ExponentialForms.reciprocal,
    "negative": lambda _, x: _of_negative(x),
    "square": lambda forms, x: forms.power(x, 2),
    "whole_power": _ExponentialForms.power,
    "add": _ExponentialForms.total,
    "subtract": lambda forms, x, y: forms.total(x, _of_negative(y)),
}


def _better(x: Growth, y: _Bound) -> Growth:
    """Bounds that both hold, each as the one that falls faster, or grows faster from below, says."""
    if not isinstance(y, Growth):
        return x
    found = x
    if x.most is None or (y.most is not None and y.order < x.order):
        found = found._replace(most=y.most, order=y.order)
    if not x.sign or (y.sign and y.below > x.below):
        found = found._replace(sign=y.sign, least=y.least, below=y.below)
    return found


_OSCILLATING = frozenset({"sin", "cos", "tan", "sinpi", "cospi"})
_OF_POLYNOMIALS: dict[str, Callable[..., arb_poly | None]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "negative": lambda x: -x,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x * arb_poly([1 / y[0]]) if y.length() == 1 else None,
    "square": lambda x: x * x,
    "one_minus_square": lambda x: 1 - x * x,
    "whole_power": lambda x, n: x ** int(n) if 0 <= n < _LONGEST else None,
}


def distance(start: arb) -> Growth:
    """That of the distance from D, `start`, on."""
    return Growth(start.upper(), arb(1), 1, start.lower(), arb(1))


def constant(x: arb) -> Growth:
    """That of a number."""
    sign = 1 if x > 0 else -1 if x < 0 else 0
    return Growth(_most(x), arb(0), sign, abs(x).lower() if sign else arb(0), arb(0)) if x.is_finite() else Growth()


def _most(x: arb) -> arb:
    return abs(x).upper()


def negative(x: Growth) -> Growth:
    return x._replace(sign=-x.sign)


def add(x: Growth, y: Growth) -> Growth:
    """The larger power is at least as large as that of a sum, as x >= 1."""
    most = None if x.most is None or y.most is None else (x.most + y.most).upper()
    found = Growth(most, max(x.order, y.order))
    if x.sign and x.sign == y.sign:
        larger = x if x.below >= y.below else y
        least = (x.least + y.least).lower() if x.below == y.below else larger.least
        return found._replace(sign=x.sign, least=least, below=larger.below)
    for large, small in ((x, y), (y, x)):
        if large.sign and small.most is not None and small.order <= large.below and small.most < large.least:
            return found._replace(sign=large.sign, least=(large.least - small.most).lower(), below=large.below)
    return found


def _multiply(x: Growth, y: Growth) -> Growth:
    most = None if x.most is None or y.most is None else (x.most * y.most).upper()
    return Growth(
        most, (x.order + y.order).upper(), x.sign * y.sign, (x.least * y.least).lower(), (x.below + y.below).lower()
    )


def _reciprocal(x: Growth) -> Growth:
    found = Growth()
    if x.sign:
        found = Growth((1 / x.least).upper(), -x.below)
        if x.most is not None:
            found = found._replace(sign=x.sign, least=(1 / x.most).lower(), below=-x.order)
    return found


def _square(x: Growth) -> Growth:
    return _abs(_multiply(x, x))


def _whole_power(x: Growth, *, n: float) -> Growth:
    found = reduce(_multiply, [x] * abs(int(n)), constant(arb(1)))
    return found if n >= 0 else _reciprocal(found)


def _pow(x: Growth, y: Growth) -> Growth:
    """A power of a positive base whose exponent has bounds, or of a base that has some."""
    if x.order == 0 and x.below == 0 and x.sign and x.most is not None:
        # A power of a negative base has a whole exponent, or no value.
        found = _exp(_multiply(y, constant(x.least.log().union(x.most.log()))))
        return found if x.sign > 0 else found._replace(sign=0)
    if y.most is None or y.order != 0 or y.below != 0 or x.sign <= 0:
        return Growth()
    low, high = (y.least if y.sign > 0 else -y.most), (-y.least if y.sign < 0 else y.most)
    if y.sign < 0:
        return _reciprocal(_positive_power(x, -high, -low))
    return _positive_power(x, low, high) if y.sign > 0 else Growth()


def _positive_power(x: Growth, low: arb, high: arb) -> Growth:
    """A positive number to an exponent between two positive numbers."""
    most = None
    order = max((x.order * low).upper(), (x.order * high).upper())
    if x.most is not None:
        most = max((x.most**low).upper(), (x.most**high).upper())
    least = min((x.least**low).lower(), (x.least**high).lower())
    below = min((x.below * low).lower(), (x.below * high).lower())
    return Growth(most, order, 1 if least > 0 else 0, least, below)


def _exp(x: Growth) -> Growth:
    if x.most is not None and x.order <= 0:
        # It is bounded on both sides.
        return Growth(x.most.exp().upper(), arb(0), 1, (-x.most).exp().lower(), arb(0))
    rate = (x.least * x.below).lower()
    if x.sign < 0 and rate > 0:
        # exp(-c*x**b) <= exp(-c) * x**(-c*b): the quotient of both sides falls from x = 1 on.
        return Growth((-x.least).exp().upper(), -rate)
    if x.sign > 0 and rate > 0:
        return Growth(None, arb(0), 1, x.least.exp().lower(), rate)
    return Growth(arb(1), arb(0)) if x.sign < 0 else Growth()


def _expm1(x: Growth) -> Growth:
    """Between (1 - 1/e)*t and (e - 1)*t for t of magnitudes up to 1."""
    if x.most is not None and x.order <= 0 and x.most <= 1:
        least, most = 1 - arb(-1).exp(), arb(1).exp() - 1
        return x._replace(most=(most * x.most).upper(), least=(least * x.least).lower())
    return add(_exp(x), constant(arb(-1)))


def _log(x: Growth) -> Growth:
    if x.sign <= 0 or x.most is None:
        return Growth()
    # log(x) <= e*x**(1/e).
    slope = max(_most(x.order), _most(x.below)) * _SLOWLY
    most = max(_most(x.most.log()), _most(x.least.log())) + slope
    found = Growth(most.upper(), arb(1) / _SLOWLY)
    least = x.least.log().lower()
    return found._replace(sign=1, least=least) if least > 0 and x.below >= 0 else found


def _bounded(bound: Callable[[], arb]) -> Callable[[Growth], Growth]:
    """An odd function of a magnitude that is at most a bound, and at most that of its argument."""

    def rule(x: Growth) -> Growth:
        if x.most is not None and x.order < 0:
            return Growth(x.most, x.order)
        return Growth(bound().upper())

    return rule


def _sin(x: Growth) -> Growth:
    """At least sin(1)*t for t from 0 to 1."""
    found = _bounded(lambda: arb(1))(x)
    if x.sign and x.most is not None and x.order <= 0 and x.most <= 1:
        return found._replace(sign=x.sign, least=(x.least * arb(1).sin()).lower(), below=x.below)
    return found


def _gamma(x: Growth) -> Growth:
    """The growth for t >= 2, where gamma(t) rises, and so does t*digamma(t), the slope of its logarithm by log(t)."""
    if x.sign > 0 and x.least >= 2 and x.below > 0:
        rate = (x.least.digamma() * x.least * x.below).lower()
        return Growth(None, arb(0), 1, x.least.gamma().lower(), rate)
    return Growth()


def _rgamma(x: Growth) -> Growth:
    """At most 1/gamma(x), which falls from x = 2 on as the power of x with the exponent -x*digamma(x)."""
    gamma = _gamma(x)
    return _reciprocal(gamma) if gamma.sign else Growth()


def _digamma(x: Growth) -> Growth:
    """Positive and rising for t >= 2, and at most log(t)."""
    if not (x.sign > 0 and x.least >= 2 and x.below >= 0):
        return Growth()
    return _log(x)._replace(sign=1, least=x.least.digamma().lower(), below=arb(0))


def _polygamma(x: Growth, *, n: int) -> Growth:
    """Of falling magnitude for t > 0, for n > 0."""
    if n == 0:
        return _digamma(x)
    if not (x.sign > 0 and x.below >= 0):
        return Growth()
    return Growth(_most(acb(x.least).polygamma(n).real))


def _decaying(order: arb) -> Callable[[Growth], Growth]:
    """The modified Bessel function K of a constant order v: exp(x)*sqrt(x)*K(v, x) falls for v >= 1/2, and is at most
    sqrt(pi/2) below."""

    def rule(x: Growth) -> Growth:
        if not (x.sign > 0 and x.below >= 0):
            return Growth()
        size, start = abs(order), x.least
        most = start.exp() * start.sqrt() * start.bessel_k(size) if size >= 0.5 else (arb.pi() / 2).sqrt()
        found = _multiply(_exp(negative(x)), _pow(x, constant(arb(-1) / 2)))
        return _multiply(found, constant(most))._replace(sign=0)

    return rule


def _kv(v: Growth, x: Growth) -> Growth:
    """The function for an order that is a constant."""
    if v.most is None or v.order != 0 or v.below != 0 or not v.sign:
        return Growth()
    return _decaying(v.most.union(v.least))(x)


def _exp1(x: Growth) -> Growth:
    """At most exp(-x)/x."""
    return _multiply(_exp(negative(x)), _reciprocal(x))._replace(sign=0) if x.sign > 0 and x.below >= 0 else Growth()


def _scaled_i(x: Growth, *, n: int) -> Growth:
    """The mean of u**n*exp(-x*u), u = 1 - cos(t), over all angles t: by 2*t**2/pi**2 <= u <= t**2/2, at most
    gamma(n + 1/2)*(pi**2/(2*x))**(n + 1/2)/(2**(n + 1)*pi)."""
    power = arb(n) + arb(1) / 2
    if not x.sign > 0:
        return Growth(arb(2) ** n)
    scale = power.gamma() * (arb.pi() ** 2 / 2) ** power / (2 ** (n + 1) * arb.pi())
    return _multiply(_pow(x, constant(-power)), constant(scale))._replace(sign=0)


def _below_one(_x: Growth) -> Growth:
    return Growth(arb(1))


def _rising(name: str, bound: Callable[[], arb]) -> Callable[[Growth], Growth]:
    """Such a function that rises, too."""
    bounded = _bounded(bound)

    def rule(x: Growth) -> Growth:
        found = bounded(x)
        if x.sign and x.below >= 0:
            least = getattr(x.least, name)().lower()
            return found._replace(sign=x.sign, least=least, below=arb(0)) if least > 0 else found
        return found

    return rule


def _abs(x: Growth) -> Growth:
    return x._replace(sign=abs(x.sign))


def _cosh(x: Growth) -> Growth:
    """At least half of exp(abs(x)), and at least 1."""
    found = _multiply(_exp(_abs(x)), constant(arb(1) / 2)) if x.sign else Growth()
    if found.sign and found.below > 0:
        return found._replace(most=None)
    return Growth(None, arb(0), 1, arb(1), arb(0))


def _sinh(x: Growth) -> Growth:
    """At least t in magnitude, and at most sinh(1)*t for t up to 1."""
    if x.most is not None and x.order <= 0 and x.most <= 1:
        return x._replace(most=(arb(1).sinh() * x.most).upper())
    return x._replace(most=None, order=arb(0))


def _erfc(x: Growth) -> Growth:
    return _exp(negative(_multiply(x, x))) if x.sign > 0 and x.below > 0 else Growth(arb(2))


def _sigmoid(x: Growth) -> Growth:
    return _reciprocal(add(constant(arb(1)), _exp(negative(x))))


def _either(x: Growth, y: Growth) -> Growth:
    """One of two values."""
    most = None if x.most is None or y.most is None else max(x.most, y.most)
    found = Growth(most, max(x.order, y.order))
    if x.sign and x.sign == y.sign:
        found = found._replace(sign=x.sign, least=min(x.least, y.least), below=min(x.below, y.below))
    return found


def _where(condition: bool | None, x: Growth, y: Growth) -> Growth:
    return _either(x, y) if condition is None else x if condition else y


def _compared(sign: int) -> Callable[[Growth, Growth], bool | None]:
    """A comparison that holds where the difference has a sign, and fails where it has the other one."""

    def rule(x: Growth, y: Growth) -> bool | None:
        difference = add(x, negative(y))
        return None if not difference.sign else difference.sign == sign

    return rule


_RULES: dict[str, Callable[..., _Bound]] = {
    "add": add,
    "subtract": lambda x, y: add(x, negative(y)),
    "multiply": _multiply,
    "divide": lambda x, y: _multiply(x, _reciprocal(y)),
    "negative": negative,
    "reciprocal": _reciprocal,
    "square": _square,
    "whole_power": _whole_power,
    "pow": _pow,
    "sqrt": lambda x: _pow(x, constant(arb(1) / 2)),
    "rsqrt": lambda x: _pow(x, constant(arb(-1) / 2)),
    "exp": _exp,
    "expm1": _expm1,
    "log": _log,
    "log1p": lambda x: _log(add(x, constant(arb(1)))),
    "sigmoid": _sigmoid,
    "airyai": lambda _x: Growth(_LARGEST_AIRY),
    "bessel_j": lambda _x, n: Growth(arb(1)),
    "ndtr": _below_one,
    "sin": _sin,
    "cos": _below_one,
    "tanh": _rising("tanh", lambda: arb(1)),
    "atan": _rising("atan", lambda: arb.pi() / 2),
    "atan2": lambda _y, _x: Growth(arb.pi().upper()),
    "hypot": lambda x, y: _pow(add(_square(x), _square(y)), constant(arb(1) / 2)),
    "erf": _below_one,
    "erfc": _erfc,
    "gamma": _gamma,
    "rgamma": _rgamma,
    "digamma": _digamma,
    "polygamma": _polygamma,
    "scaled_i": _scaled_i,
    "k0": _decaying(arb(0)),
    "k1": _decaying(arb(1)),
    "kv": _kv,
    "exp1": _exp1,
    "expn": lambda x, n: _exp1(x),
    "abs": _abs,
    "sign": lambda x: constant(arb(x.sign)) if x.sign else Growth(arb(1)),
    "cosh": _cosh,
    "sinh": _sinh,
    "sech": lambda x: _reciprocal(_cosh(x)),
    "sech_square": lambda x: _square(_reciprocal(_cosh(x))),
    "maximum": _either,
    "minimum": _either,
    "where": _where,
    "less": _compared(-1),
    "less_equal": _compared(-1),
    "greater": _compared(1),
    "greater_equal": _compared(1),
    "logical_and": lambda a, b: False if a is False or b is False else None if None in (a, b) else True,
    "logical_or": lambda a, b: True if a or b else None if None in (a, b) else False,
    "logical_not": lambda a: None if a is None else not a,
    "isfinite": lambda x: None if x.most is None else True,
    "may_differ_from_zero": lambda _x: None,
    "equal": lambda x, y: False if add(x, negative(y)).sign else None,
    "not_equal": lambda x, y: True if add(x, negative(y)).sign else None,
}
