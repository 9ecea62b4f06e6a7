"""A proof that a program of numbers is holomorphic: its derivatives by conjugates of inputs are identically 0.

That they are 0 for all inputs is proved in exact arithmetic. A number is a quotient of polynomials with rational
coefficients, and every float is the fraction that it is. The variables of the polynomials are the inputs, the imaginary
unit, of which the square is -1, square roots, of which the squares are known, exponentials, in which exp, sin, cosh and
their like are written, and other functions, each a variable of its own. So what is found to be 0 is 0, at all points
where no denominator is; the converse does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import DifferentiationError
from gradcli.executors import stepwise
from gradcli.formulas.complex_variables.conjugate_variables import by_conjugates, conjugate_name
from gradcli.language.names.scope import IMAGINARY_UNIT
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import absolute
from gradcli.primitives.entries.comparisons import equal, greater, isfinite, not_equal, where
from gradcli.primitives.entries.complex_parts import conjugate, from_parts, imaginary_part, real_part
from gradcli.primitives.entries.elementwise.complex_numbers import phase
from gradcli.program.builder import frozen
from gradcli.program.ir import Atom, Equation, Program, Variable

# The powers of variables, by their numbers.
Monomial = tuple[tuple[int, int], ...]
Polynomial = dict[Monomial, Fraction]

# The number of the imaginary unit among the variables of polynomials.
_UNIT = 0
# More terms than a polynomial has in a proof, products of terms in one product, and the largest power that is expanded.
_MOST_TERMS, _MOST_PRODUCTS, _LARGEST_POWER = 500, 20_000, 64
# Exponentials are powers of exp(m/12), for a monomial m: then exp(z/2), exp(z/3) and exp(z/4) are powers of one.
_TWELFTHS = 12
# Cost of one product of terms, in eighths of a step.
_TERM = 4
_ONE: Polynomial = {(): Fraction(1)}


class TooHardError(Exception):
    """There is no proof: a number is not finite, or a polynomial is too long."""


class RationalFunction(NamedTuple):
    """A quotient of polynomials."""

    above: Polynomial
    below: Polynomial

    @property
    def key(self) -> Hashable:
        return frozenset(self.above.items()), frozenset(self.below.items())


def is_zero(program: Program, squares: Mapping[Variable, tuple[Atom, Atom]]) -> bool:
    """Return whether all outputs of a program are proved to be 0. Inputs in `squares` are moduli, of which the squares
    are the products of two atoms."""
    try:
        return _Proof(program, squares).holds()
    except TooHardError:
        return False


class _Proof:
    def __init__(self, program: Program, squares: Mapping[Variable, tuple[Atom, Atom]]) -> None:
        self.program = program
        self.squares = squares
        self.numbers: dict[Hashable, int] = {IMAGINARY_UNIT: _UNIT}
        # The squares of variables that are square roots.
        self.roots: dict[int, RationalFunction] = {}
        # Moduli, by those with the same square.
        self.equals: dict[int, int] = {}
        self.known: dict[Variable, RationalFunction] = {}

    def holds(self) -> bool:
        for variable in self.program.inputs:
            self.known[variable] = self._variable(variable.name)
        for equation in self.program.equations:
            self.known[equation.output] = self._equation(equation)
        moduli: dict[Hashable, int] = {}
        for variable, (one, other) in self.squares.items():
            i, square = self.numbers[variable.name], product(self.atom(one), self.atom(other))
            self.roots[i] = square
            self.equals[i] = moduli.setdefault(square.key, i)
        return all(self._vanishes(self.atom(output).above) for output in self.program.outputs)

    def atom(self, atom: Atom) -> RationalFunction:
        if isinstance(atom, Variable):
            return self.known[atom]
        if arrays.shape(atom) or arrays.is_complex(atom) or not math.isfinite(atom):
            raise TooHardError
        return number(Fraction(float(atom)))

    def _variable(self, key: Hashable) -> RationalFunction:
        return RationalFunction({((self.numbers.setdefault(key, len(self.numbers)), 1),): Fraction(1)}, _ONE)

    def _equation(self, equation: Equation) -> RationalFunction:
        primitive, inputs, params, _ = equation
        if primitive is where:
            return self._choice(*inputs)
        if not primitive.elementwise or any(map(arrays.shape, inputs)):
            raise TooHardError
        operands = [self.atom(a) for a in inputs]
        if primitive.name == "cast" and params["dtype"].startswith("float"):
            return operands[0]
        rule = _RULES.get(primitive.name)
        if rule is not None:
            return rule(self, *operands, **params)
        return self._variable((primitive.name, frozen(params), *(o.key for o in operands)))

    def _choice(self, condition: Atom, one: Atom, other: Atom) -> RationalFunction:
        """One of two numbers. Rules of derivatives choose by equality at single points, which do not matter."""
        made = next((e for e in self.program.equations if e.output is condition), None)
        if made is not None and made.primitive is equal and self._differ(*map(self.atom, made.inputs)):
            return self.atom(other)
        first, second = self.atom(one), self.atom(other)
        return first if first == second else self._variable(("where", condition, first.key, second.key))

    def _differ(self, x: RationalFunction, y: RationalFunction) -> bool:
        """Return whether two numbers differ at almost all points, as polynomials of inputs do."""
        independent = {self.numbers[v.name] for v in self.program.inputs if v not in self.squares}
        above = total(x, scaled(-1, y)).above
        return bool(above) and all(i in independent for monomial in above for i, _ in monomial)

    def root(self, x: RationalFunction) -> RationalFunction:
        found = self._variable(("sqrt", x.key))
        self.roots[self.numbers["sqrt", x.key]] = x
        return found

    def exponential(self, x: RationalFunction) -> RationalFunction:
        if len(x.below) != 1:
            sign = 1 if min(x.above.items())[1] > 0 else -1
            found = self._variable(("exp", scaled(sign, x).key))
            return found if sign > 0 else quotient(ONE, found)
        (below,) = x.below
        found = ONE
        for monomial, coefficient in x.above.items():
            twelfths = coefficient / x.below[below] * _TWELFTHS
            key = "exp", _merged(monomial, below, -1), twelfths.denominator
            found = product(found, self._power(self._variable(key), twelfths.numerator))
        return found

    def _power(self, x: RationalFunction, n: int) -> RationalFunction:
        """A whole power of a variable."""
        ((monomial, _),) = x.above.items()
        ((i, _),) = monomial
        above: Polynomial = {((i, abs(n)),): Fraction(1)}
        return RationalFunction(above, _ONE) if n > 0 else RationalFunction(_ONE, above)

    def power(self, x: RationalFunction, y: RationalFunction) -> RationalFunction:
        """x**y, as a whole power times exp(r*log(x)) with the rest r of the exponent."""
        constant = y.above.get((), Fraction(0)) if y.below == _ONE else Fraction(0)
        n = math.floor(constant)
        rest = total(y, number(Fraction(-n)))
        found = whole_power(x, n)
        if not rest.above:
            return found
        if rest.above == {(): Fraction(1, 2)}:
            return product(found, self.root(x))
        return product(found, self.exponential(product(rest, self.logarithm(x))))

    def logarithm(self, x: RationalFunction) -> RationalFunction:
        return self._variable(("log", frozen({}), x.key))

    def wave(self, x: RationalFunction, sign: int, *, turned: bool) -> RationalFunction:
        """The sum (`sign` 1) or difference (-1) of exp(x) and exp(-x), halved; `turned` with 1j*x in place of x."""
        unit = self._variable(IMAGINARY_UNIT)
        inner = product(unit, x) if turned else x
        found = self.exponential(inner)
        both = total(found, scaled(sign, quotient(ONE, found)))
        return quotient(scaled(Fraction(1, 2), both), unit) if turned and sign < 0 else scaled(Fraction(1, 2), both)

    def _vanishes(self, polynomial: Polynomial) -> bool:
        """Return whether a polynomial is 0 if the squares of roots are what they are."""
        pending = [_renamed(polynomial, self.equals)]
        for root in sorted(self.roots, key=self._depths().__getitem__, reverse=True):
            pending = [half for one in pending for half in self._halves(one, root)]
        return not any(pending)

    def _depths(self) -> dict[int, int]:
        """The nesting depth of each root, which orders roots so that those in the square of a root come after it.

        The square of a root contains only older roots and moduli; the squares of moduli are computed last.
        """
        depths: dict[int, int] = {}

        def depth(root: int, above: frozenset[int]) -> int:
            if root not in depths:
                if root in above:
                    raise TooHardError
                square = self.roots[root]
                inner = {i for part in square for monomial in part for i, _ in monomial if i in self.roots}
                depths[root] = 1 + max((depth(i, above | {root}) for i in inner), default=0)
            return depths[root]

        for root in self.roots:
            depth(root, frozenset())
        return depths

    def _halves(self, polynomial: Polynomial, root: int) -> list[Polynomial]:
        """The polynomials p and q for which a polynomial is 0 where p + q*root is."""
        powers: dict[int, Polynomial] = {}
        for monomial, coefficient in polynomial.items():
            exponent = dict(monomial).get(root, 0)
            rest = tuple(factor for factor in monomial if factor[0] != root)
            powers.setdefault(exponent, {})[rest] = coefficient
        square, most = self.roots[root], max(powers, default=0) // 2
        halves: list[Polynomial] = [{}, {}]
        for exponent, others in powers.items():
            half = exponent // 2
            factor = _times(_raised(square.above, half), _raised(square.below, most - half))
            halves[exponent % 2] = _plus(halves[exponent % 2], _times(others, factor))
        return [half for half in halves if half]


# --- arithmetic


def number(value: Fraction) -> RationalFunction:
    return RationalFunction({(): value} if value else {}, _ONE)


ONE = number(Fraction(1))


def scaled(factor: Fraction | int, x: RationalFunction) -> RationalFunction:
    return RationalFunction({m: factor * c for m, c in x.above.items()}, x.below)


def total(x: RationalFunction, y: RationalFunction) -> RationalFunction:
    if x.below == y.below:
        return _reduced(_plus(x.above, y.above), x.below)
    return _reduced(_plus(_times(x.above, y.below), _times(y.above, x.below)), _times(x.below, y.below))


def product(x: RationalFunction, y: RationalFunction) -> RationalFunction:
    if x.above == y.below:
        return RationalFunction(y.above, x.below)
    if y.above == x.below:
        return RationalFunction(x.above, y.below)
    return _reduced(_times(x.above, y.above), _times(x.below, y.below))


def quotient(x: RationalFunction, y: RationalFunction) -> RationalFunction:
    if not y.above:
        raise TooHardError
    return product(x, RationalFunction(y.below, y.above))


def whole_power(x: RationalFunction, n: float) -> RationalFunction:
    if abs(n) > _LARGEST_POWER or not float(n).is_integer():
        raise TooHardError
    found = _reduced(_raised(x.above, abs(int(n))), _raised(x.below, abs(int(n))))
    return found if n >= 0 else quotient(ONE, found)


def _reduced(above: Polynomial, below: Polynomial) -> RationalFunction:
    """A quotient without common monomials, and with 1 as the first coefficient of the denominator."""
    if not below:
        raise TooHardError
    if not above:
        return RationalFunction({}, _ONE)
    while all(monomial and monomial[0][0] == _UNIT for monomial in below):
        above, below = (_times(part, {((_UNIT, 1),): Fraction(1)}) for part in (above, below))
    common: dict[int, int] | None = None
    for monomial in (*above, *below):
        powers = dict(monomial)
        common = powers if common is None else {i: min(n, powers[i]) for i, n in common.items() if i in powers}
        if not common:
            break
    divisor = tuple(sorted((common or {}).items()))
    first = below[min(below)]
    return RationalFunction(*({_merged(m, divisor, -1): c / first for m, c in part.items()} for part in (above, below)))


def _merged(one: Monomial, other: Monomial, sign: int = 1) -> Monomial:
    """The product of two monomials, or with `sign` -1 their quotient, without the square of the imaginary unit."""
    if not other:
        return one
    powers = dict(one)
    for i, n in other:
        powers[i] = powers.get(i, 0) + sign * n
    return tuple(sorted((i, n) for i, n in powers.items() if n))


def _renamed(polynomial: Polynomial, equals: Mapping[int, int]) -> Polynomial:
    """A polynomial with some variables in place of others."""
    found: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        renamed: Monomial = ()
        for i, n in monomial:
            renamed = _merged(renamed, ((equals.get(i, i), n),))
        found = _plus(found, {renamed: coefficient})
    return found


def _plus(one: Polynomial, other: Polynomial) -> Polynomial:
    found = dict(one)
    for monomial, coefficient in other.items():
        found[monomial] = found.get(monomial, Fraction(0)) + coefficient
    return {m: c for m, c in found.items() if c}


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    if one == _ONE:
        return other
    if other == _ONE:
        return one
    limits.charge_steps(_TERM * len(one) * len(other))
    if len(one) * len(other) > _MOST_PRODUCTS:
        raise TooHardError
    found: Polynomial = {}
    for m, c in one.items():
        for n, d in other.items():
            monomial, coefficient = _merged(m, n), c * d
            if monomial and monomial[0] == (_UNIT, 2):
                monomial, coefficient = monomial[1:], -coefficient
            found[monomial] = found.get(monomial, Fraction(0)) + coefficient
    found = {m: c for m, c in found.items() if c}
    if len(found) > _MOST_TERMS:
        raise TooHardError
    return found


def _raised(polynomial: Polynomial, n: int) -> Polynomial:
    found = _ONE
    for _ in range(n):
        found = _times(found, polynomial)
    return found


# --- the functions that are written in others


def _sine(proof: _Proof, x: RationalFunction) -> RationalFunction:
    return proof.wave(x, -1, turned=True)


def _cosine(proof: _Proof, x: RationalFunction) -> RationalFunction:
    return proof.wave(x, 1, turned=True)


def _hyperbolic_sine(proof: _Proof, x: RationalFunction) -> RationalFunction:
    return proof.wave(x, -1, turned=False)


def _hyperbolic_cosine(proof: _Proof, x: RationalFunction) -> RationalFunction:
    return proof.wave(x, 1, turned=False)


def _inverse(
    function: Callable[[_Proof, RationalFunction], RationalFunction], proof: _Proof, x: RationalFunction, n: int = 1
) -> RationalFunction:
    return quotient(ONE, whole_power(function(proof, x), n))


def _ratio(
    above: Callable[[_Proof, RationalFunction], RationalFunction],
    below: Callable[[_Proof, RationalFunction], RationalFunction],
    proof: _Proof,
    x: RationalFunction,
) -> RationalFunction:
    return quotient(above(proof, x), below(proof, x))


def _square(x: RationalFunction) -> RationalFunction:
    return product(x, x)


_RULES: Mapping[str, Callable[..., RationalFunction]] = {
    "add": lambda _proof, x, y: total(x, y),
    "subtract": lambda _proof, x, y: total(x, scaled(-1, y)),
    "multiply": lambda _proof, x, y: product(x, y),
    "divide": lambda _proof, x, y: quotient(x, y),
    "negative": lambda _proof, x: scaled(-1, x),
    "identity": lambda _proof, x: x,
    "reciprocal": lambda _proof, x: quotient(ONE, x),
    "whole_power": lambda _proof, x, n: whole_power(x, n),
    "one_minus_square": lambda _proof, x: total(ONE, scaled(-1, _square(x))),
    "over_one_plus_square": lambda _proof, x: quotient(ONE, total(ONE, _square(x))),
    "zeros_like": lambda _proof, _x: number(Fraction(0)),
    "ones_like": lambda _proof, _x: ONE,
    "pow": _Proof.power,
    "sqrt": _Proof.root,
    "rsqrt": lambda proof, x: quotient(ONE, proof.root(x)),
    "exp": _Proof.exponential,
    "expm1": lambda proof, x: total(proof.exponential(x), number(Fraction(-1))),
    "log1p": lambda proof, x: proof.logarithm(total(ONE, x)),
    "sin": _sine,
    "cos": _cosine,
    "sinh": _hyperbolic_sine,
    "cosh": _hyperbolic_cosine,
    "tan": partial(_ratio, _sine, _cosine),
    "tanh": partial(_ratio, _hyperbolic_sine, _hyperbolic_cosine),
    "coth": partial(_ratio, _hyperbolic_cosine, _hyperbolic_sine),
    "sech": partial(_inverse, _hyperbolic_cosine),
    "csch": partial(_inverse, _hyperbolic_sine),
    "sech_square": partial(_inverse, _hyperbolic_cosine, n=2),
}


_KNOWN = frozenset([conjugate, real_part, imaginary_part, phase, from_parts])


def is_holomorphic(program: Program, complex_names: Collection[str]) -> bool:
    """Return whether a program is proved to be holomorphic in its complex inputs, except at branch cuts and single
    points.

    Nothing is claimed of a program that is piecewise another function: one that chooses, rounds or takes the modulus of
    a real number.
    """
    program = _in_complex_numbers(program)
    if not _excludes_points(program) or not _is_one_function(program, complex_names):
        return False
    names = [name for name in complex_names if any(v.name == name for v in program.inputs)]
    try:
        found = by_conjugates(program, complex_names, names, keep=[absolute])
    except (DifferentiationError, NotImplementedError):
        return False
    derivatives = [found.by(conjugate_name(name)).outputs[0] for name in names]
    squares = {part.variable: (part.argument, part.conjugate) for part in found.kept}
    return _excludes_points(found.program) and is_zero(found.program._replace(outputs=tuple(derivatives)), squares)


def is_regular(program: Program, point: Mapping[str, Any]) -> bool:
    """Return whether a program of numbers has no modulus or angle of 0 at a point, where these have no derivative, and
    no test that holds there."""
    if any(arrays.shape(atom) for e in program.equations for atom in (*e.inputs, e.output)):
        return False
    with arrays.quiet():
        for equation, operands, result in stepwise.steps(program, [point[v.name or ""] for v in program.inputs]):
            primitive = equation.primitive
            if primitive in (absolute, phase, equal) and (result if primitive is equal else not operands[0]):
                return False
    return True


def _excludes_points(program: Program) -> bool:
    """Return whether a program is recorded for all inputs but those for which numbers are 0, have another single value,
    or are not finite."""
    made = {equation.output: equation for equation in program.equations}
    for guard in program.guards:
        primitive, inputs, _, _ = made[guard]
        if primitive is greater:
            modulus = made.get(inputs[0])
            known = modulus is not None and modulus.primitive is absolute
        else:
            known = primitive is isfinite or primitive is not_equal
        if not known or any(isinstance(a, Variable) for a in inputs[1:]):
            return False
    return True


def _in_complex_numbers(program: Program) -> Program:
    """A program with hypot and atan2 of parts of complex numbers as the modulus and the angle of a complex number."""
    equations = []
    for equation in program.equations:
        part = {"hypot": absolute, "atan2": phase}.get(equation.primitive.name)
        if part is not None and not any(map(arrays.shape, equation.inputs)):
            number = Variable((), "complex128")
            real, imaginary = equation.inputs if part is absolute else reversed(equation.inputs)
            equations.append(Equation(from_parts, (real, imaginary), {}, number))
            equation = equation._replace(primitive=part, inputs=(number,))
        equations.append(equation)
    return program._replace(equations=tuple(equations))


def _is_one_function(program: Program, complex_names: Collection[str]) -> bool:
    dependent: set[Variable] = {v for v in program.inputs if v.name in complex_names}
    # The tests whether an input has one value.
    tests: set[Variable] = set()
    for primitive, inputs, params, output in program.equations:
        read = [a for a in inputs if isinstance(a, Variable) and a in dependent]
        if not read:
            continue
        dependent.add(output)
        if primitive is where:
            # Functions such as sgn choose another number at the origin alone.
            known = inputs[0] in tests
        elif primitive is equal:
            known = read[0] in program.inputs and not all(isinstance(a, Variable) for a in inputs)
            tests.add(output)
        elif primitive is absolute:
            known = arrays.is_complex(inputs[0])
        elif primitive is cast:
            # To whole numbers it rounds.
            known = params["dtype"].startswith(("float", "complex"))
        else:
            known = primitive.numbers == "analytic" or primitive in _KNOWN
        if not known:
            return False
    return True
