"""A normal form for formulas: sums of products that collect equal terms and merge powers of the same base.

The identities hold for real numbers where the functions are smooth: `x/x` is 1, and `x**a*x**b` is
`x**(a+b)`. Coefficients are fractions, so that 3*(1/3) is exactly 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import DifferentiationError
from gradcli.formulas.simplification.numbers import TypedDecimal, common_factor, square_part
from gradcli.language.names.scope import IMAGINARY_UNIT
from gradcli.primitives.entries.arithmetic import absolute
from gradcli.primitives.primitive import Primitive
from gradcli.program.builder import frozen
from gradcli.program.ir import Variable

# Powers of numbers with a larger absolute exponent are not evaluated.
_LARGEST_EXPONENT = 64
# A base and an exponent without a numeric coefficient; every power is a product of units raised to numbers.
Unit = tuple["Formula", "Formula"]
# Cost of one part of a sum or product, in eighths of a step.
_PART = 16
# A formula may use at most 1/_SHARE of the steps that are left in the run.
_SHARE = 4
_ZERO, _ONE = Fraction(0), Fraction(1)


class TooLongError(Exception):
    """Simplifying a formula would exceed its share of the step budget."""


class Formula:
    """A node of a formula; equal nodes are one object. `rank` counts nodes in the order of creation, so that a node
    has a higher rank than its children."""

    __slots__ = ("children", "rank", "shape")

    def __init__(self, rank: int, shape: Shape, children: tuple[Formula, ...]) -> None:
        self.rank = rank
        self.shape = shape
        self.children = children


class Symbol(Formula):
    """An input of the program, or a number with a name, such as pi."""

    __slots__ = ("value",)
    value: Variable | float


class OpaqueCall(Formula):
    """A primitive that the algebra does not expand, applied to `children`; or, where `primitive` is None, the constant
    `array`."""

    __slots__ = ("array", "dtype", "params", "primitive")
    primitive: Primitive | None
    params: Mapping[str, Any]
    dtype: str
    array: Any


class Product(Formula):
    """A product of powers: exponents by base, without a numeric factor. The empty product is the number 1."""

    __slots__ = ("powers",)
    powers: Mapping[Formula, Formula]


class Sum(Formula):
    """Coefficients by term; no term is itself a sum with a single coefficient. The empty sum is the number 0."""

    __slots__ = ("terms",)
    terms: Mapping[Formula, Fraction]


class Algebra:
    """Creates the nodes of formulas, each in its normal form."""

    def __init__(self, typed: Collection[float] = (), *, equality: bool = False, finiteness: bool = False) -> None:
        # The numbers that the program's source writes with a decimal point.
        self.typed = typed
        # Whether the program compares numbers for equality, so that operands may be equal by intent and not only at
        # single points.
        self.equality = equality
        # Whether the program itself calls isfinite; the finiteness checks inside its functions are assumed to hold.
        self.finiteness = finiteness
        # Whether a constant contains nan, for which neither a comparison nor its opposite holds.
        self.has_nan = False
        budget = limits.budget()
        # The remaining work, in eighths of a step; None without limits.
        self._left = None if budget is None else budget.eighths // _SHARE
        self._share = self._left or 0
        self._known: dict[Hashable, Formula] = {}
        # The results of operations and the work of each: simplifying asks for most of them many times.
        self._results: dict[Hashable, tuple[Any, int]] = {}
        # Sums whose coefficients have no common factor, in the sign in which they were met first.
        self._primitive: set[Formula] = set()
        # The values of formulas at the sample points of `gradcli.formulas.simplification.identities`, by sample.
        self.probed: dict[int, dict[Formula, Any]] = {}
        self.one = self._product({})
        self.zero = self.sum({})
        self.euler = self.symbol(math.e)
        self.pi = self.symbol(math.pi)
        self.true = self.array(True, True, (), "bool")
        self.false = self.array(False, False, (), "bool")

    def charge(self, parts: int) -> None:
        """Charge the work of making a sum or product of `parts` parts. Raises TooLongError past the formula's share."""
        self._charge(_PART * (parts + 1))

    def _charge(self, eighths: int) -> None:
        if self._left is not None:
            self._left -= eighths
            if self._left < 0:
                raise TooLongError
            limits.charge_steps(eighths)

    def _once(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        """The result of an operation on nodes, which is computed once. Its work is charged each time, so that the form
        that a formula gets does not depend on what was asked before."""
        found = self._results.get((operation.__name__, arguments))
        if found is None:
            before = self._left or 0
            result = operation(*arguments)
            self._results[operation.__name__, arguments] = result, before - (self._left or 0)
            return result
        self._charge(found[1])
        return found[0]

    def has_time(self) -> bool:
        """Return whether less than half of the share is spent, so that more expensive forms may be tried."""
        return self._left is None or self._left > self._share // 2

    def _intern(self, key: Hashable, make: Any) -> Any:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make(len(self._known))
        return found

    # --- making nodes

    def symbol(self, value: Variable | float) -> Formula:
        def make(rank: int) -> Symbol:
            node = Symbol(rank, value.shape if isinstance(value, Variable) else (), ())
            node.value = value
            return node

        return self._intern(("symbol", value), make)  # type: ignore[no-any-return]

    def array(self, constant: Any, key: Hashable, shape: Shape, dtype: str) -> Formula:
        """A constant that is not a plain number."""

        def make(rank: int) -> OpaqueCall:
            node = OpaqueCall(rank, shape, ())
            node.primitive, node.params, node.dtype, node.array = None, {}, dtype, constant
            return node

        self.has_nan = self.has_nan or not arrays.all_true(constant == constant)
        return self._intern(("array", key), make)  # type: ignore[no-any-return]

    def call(
        self,
        primitive: Primitive,
        operands: Sequence[Formula],
        params: Mapping[str, Any],
        shape: Shape,
        dtype: str,
    ) -> Formula:
        def make(rank: int) -> OpaqueCall:
            node = OpaqueCall(rank, shape, tuple(operands))
            node.primitive, node.params, node.dtype, node.array = primitive, params, dtype, None
            return node

        return self._intern(("call", primitive, tuple(operands), frozen(params)), make)  # type: ignore[no-any-return]

    def function(self, primitive: Primitive, x: Formula, **params: Any) -> Formula:
        """An elementwise function of one operand."""
        return self.call(primitive, [x], params, x.shape, "float64")

    def with_operands(self, node: OpaqueCall, operands: Sequence[Formula]) -> Formula:
        """The same call with other operands, which have the same values."""
        assert node.primitive is not None
        return self.call(node.primitive, operands, node.params, node.shape, node.dtype)

    def number(self, value: Fraction | int) -> Formula:
        return self.sum({self.one: value if isinstance(value, Fraction) else Fraction(value)})

    def sum(self, terms: Mapping[Formula, Fraction]) -> Formula:
        """The sum of terms with coefficients."""
        self.charge(len(terms))
        return self._sum(terms)

    def _sum(self, terms: Mapping[Formula, Fraction]) -> Formula:
        left = {term: c for term, c in terms.items() if c}
        decimals = {term for term, c in left.items() if isinstance(c, TypedDecimal)} if self.typed else ()
        for term in [term for term in decimals if left[term].denominator == 1]:
            left[term] = Fraction(left[term])
        if len(left) == 1:
            ((term, c),) = left.items()
            if c == 1:
                return term
        shape = broadcast([t.shape for t in left])

        def make(rank: int) -> Sum:
            node = Sum(rank, shape, tuple(left))
            node.terms = left
            return node

        # The hash of a Fraction takes longer than the rest.
        ratios = frozenset([(term, c.as_integer_ratio()) for term, c in left.items()])
        return self._intern(("sum", ratios, frozenset(decimals)), make)  # type: ignore[no-any-return]

    def _product(self, powers: Mapping[Formula, Formula]) -> Formula:
        self.charge(len(powers))
        if len(powers) == 1:
            ((base, exponent),) = powers.items()
            if exponent is self.one:
                return base
        shape = broadcast([e.shape for pair in powers.items() for e in pair])

        def make(rank: int) -> Product:
            node = Product(rank, shape, tuple(e for pair in powers.items() for e in pair))
            node.powers = powers
            return node

        return self._intern(("product", frozenset(powers.items())), make)  # type: ignore[no-any-return]

    # --- reading nodes

    def terms(self, node: Formula) -> Mapping[Formula, Fraction]:
        return node.terms if isinstance(node, Sum) else {node: _ONE}

    def powers(self, node: Formula) -> Mapping[Formula, Formula]:
        return node.powers if isinstance(node, Product) else {node: self.one}

    def as_number(self, node: Formula) -> Fraction | None:
        """The value of a node that is a number, else None."""
        if node is self.one:
            return _ONE
        if isinstance(node, Sum):
            if not node.terms:
                return _ZERO
            if len(node.terms) == 1:
                return node.terms.get(self.one)
        return None

    def split(self, node: Formula) -> tuple[Fraction, Formula]:
        """A node as (coefficient, node without coefficient): a single term, or a sum with integer coefficients that
        have no common divisor, in the sign in which it was met first."""
        if not isinstance(node, Sum) or not node.terms:
            return _ONE, node
        if len(node.terms) == 1:
            ((term, c),) = node.terms.items()
            return c, term
        return self._once(self._split, node)  # type: ignore[no-any-return]

    def _split(self, node: Sum) -> tuple[Fraction, Formula]:
        content = common_factor(node.terms.values())
        rest = self.scale(1 / content, node)
        if rest not in self._primitive:
            # Not charged, because it is made only for the first of all sums that are multiples of this one.
            opposite = self._sum({term: -c for term, c in self.terms(rest).items()})
            if opposite in self._primitive:
                return -content, opposite
            self._primitive.add(rest)
        return content, rest

    def is_negative(self, node: Formula) -> bool:
        """Return whether the coefficient of every term is negative."""
        return node is not self.zero and all(c < 0 for c in self.terms(node).values())

    def is_sum_of_squares(self, node: Formula) -> bool:
        """Return whether every term has a positive coefficient and only even powers (or powers of e)."""
        return all(
            c > 0 and all(b is self.euler or self.is_even(e) for b, e in self.powers(term).items())
            for term, c in self.terms(node).items()
        )

    def units(self, base: Formula, exponent: Formula) -> Sequence[tuple[Unit, Fraction]]:
        """A power as units with coefficients; the numeric term of the exponent is a unit of its own."""
        return self._once(self._units, base, exponent)  # type: ignore[no-any-return]

    def _units(self, base: Formula, exponent: Formula) -> Sequence[tuple[Unit, Fraction]]:
        constant = self.terms(exponent).get(self.one, _ZERO)
        coefficient, unit = self.split(self.add(exponent, self.number(-constant)))
        found = [((base, unit), coefficient)] if unit is not self.zero else []
        return [*found, ((base, self.one), constant)] if constant else found

    # --- arithmetic

    def add(self, *nodes: Formula) -> Formula:
        total: dict[Formula, Fraction] = {}
        for node in nodes:
            for term, c in self.terms(node).items():
                known = total.get(term)
                total[term] = c if known is None else known + c
        return self.sum(total)

    def scale(self, factor: Fraction | int, node: Formula) -> Formula:
        if factor is _ONE:
            self.charge(len(self.terms(node)))
            return node
        return self.sum({term: c * factor for term, c in self.terms(node).items()})

    def negative(self, node: Formula) -> Formula:
        return self.scale(-1, node)

    def multiply(self, *nodes: Formula) -> Formula:
        return self._once(self._multiply, *nodes)  # type: ignore[no-any-return]

    def _multiply(self, *nodes: Formula) -> Formula:
        coefficient = _ONE
        merged: dict[Formula, Formula] = {}
        for node in nodes:
            c, rest = self.split(node)
            if rest is self.zero:
                return self.zero
            if c is not _ONE:
                coefficient *= c
            for base, exponent in self.powers(rest).items():
                known = merged.get(base)
                merged[base] = exponent if known is None else self.add(known, exponent)
        return self._merged(coefficient, merged)

    def _merged(self, coefficient: Fraction, merged: Mapping[Formula, Formula]) -> Formula:
        """A coefficient times powers, some of which may simplify to numbers or to powers of another base."""
        left: dict[Formula, Formula] = {}
        again: list[Formula] = []
        for base, exponent in merged.items():
            if exponent is self.zero:
                continue
            plain = self._simplified_power(base, exponent)
            if plain is None:
                left[base] = exponent
            else:
                again.append(plain)
        product = self.scale(coefficient, self._product(left))
        return self.multiply(product, *again) if again else product

    def _simplified_power(self, base: Formula, exponent: Formula) -> Formula | None:
        """A power as a simpler expression (a number, the argument of a logarithm, without abs or hypot), else None."""
        value, n = self.as_number(base), self.as_number(exponent)
        if isinstance(base, Symbol) and getattr(base.value, "name", "") == IMAGINARY_UNIT:
            return self._power_of_unit(base, n)
        if value is not None and n is not None and n.denominator == 1 and abs(n) <= _LARGEST_EXPONENT and value:
            return self.number(value ** int(n))
        if base is self.euler and is_call(exponent, "log"):
            return exponent.children[0]
        if is_call(base, "abs") and self.is_even(exponent):
            return self.power(base.children[0], exponent)
        if is_call(base, "hypot") and n is not None and self.is_even(exponent):
            return self.power(
                self.add(*[self.power(side, self.number(2)) for side in base.children]), self.number(n / 2)
            )
        return None

    def _power_of_unit(self, unit: Formula, n: Fraction | None) -> Formula | None:
        """A whole power of the imaginary unit, of which only the first remains; None for that and other powers."""
        if n is None or n.denominator != 1 or n == 1:
            return None
        return (self.one, unit, self.number(-1), self.negative(unit))[int(n) % 4]

    def divide(self, numerator: Formula, denominator: Formula) -> Formula:
        return self.multiply(numerator, self.power(denominator, self.number(-1)))

    def power(self, base: Formula, exponent: Formula) -> Formula:
        return self._once(self._power, base, exponent)  # type: ignore[no-any-return]

    def _power(self, base: Formula, exponent: Formula) -> Formula:
        n = self.as_number(exponent)
        if isinstance(n, TypedDecimal) and n.denominator == 2:
            # Roots are recognised by an exponent that is a plain fraction.
            n = Fraction(n)
            exponent = self.number(n)
        if n == 0 or base is self.one:
            return self.one
        if n == 1 or (base is self.zero and n is not None and n > 0):
            return base
        if n is not None and n.denominator == 1:
            return self._whole_power(base, n)
        coefficient, rest = _ONE, base
        if n is not None:
            coefficient, rest = self._root(base, n)
        raised: dict[Formula, Formula] = {}
        others: dict[Formula, Formula] = {}
        for inner, a in self.powers(rest).items():
            if n is not None and n.denominator == 2 and self.is_even(a):
                inner = self._magnitude(inner)
            elif not self._is_positive(inner, a):
                others[inner] = a
                continue
            raised[inner] = self.add(raised.get(inner, self.zero), self.multiply(a, exponent))
        if others:
            left = self._product(others)
            raised[left] = self.add(exponent, raised.get(left, self.zero))
        return self.scale(coefficient, self._merged(_ONE, raised))

    def _whole_power(self, base: Formula, n: Fraction) -> Formula:
        coefficient, rest = self.split(base)
        if rest is self.zero or abs(n) > _LARGEST_EXPONENT:
            return self._merged(_ONE, {base: self.number(n)})
        if n < 0 and self.zero in self.powers(rest):
            # 1/(x/0) is not a multiple of 0: the derivative through the infinite denominator is nan.
            raise DifferentiationError(
                "the program divides by a number that is divided by 0, of which there is no formula",
                hint="gradcli eval computes what comes of it",
            )
        raised = {b: self.scale(n, e) for b, e in self.powers(rest).items()}
        return self._merged(coefficient ** int(n), raised)

    def _root(self, base: Formula, n: Fraction) -> tuple[Fraction, Formula]:
        """`base` as (r, rest), where base**n is r*rest**n; r is a number other than 1 for square roots only."""
        coefficient, rest = self.split(base)
        if n.denominator != 2 or coefficient <= 0:
            return _ONE, base
        root = type(coefficient)(square_part(coefficient.numerator), square_part(coefficient.denominator))
        if isinstance(coefficient, TypedDecimal) and coefficient != root**2:
            # Decimals stay as they were typed.
            return _ONE, base
        return root ** int(2 * n), self.scale(coefficient / root**2, rest)

    def is_even(self, exponent: Formula) -> bool:
        n = self.as_number(exponent)
        return n is not None and n % 2 == 0

    def _magnitude(self, node: Formula) -> Formula:
        """abs(node), or `node` itself where no term can be negative."""
        powers = [power for term in self.terms(node) for power in self.powers(term).items()]
        signed = any(c < 0 for c in self.terms(node).values())
        if signed or not all(is_call(b, "cosh") or self.is_even(e) or self._is_positive(b, e) for b, e in powers):
            return self.function(absolute, node)
        return node

    def _is_positive(self, base: Formula, exponent: Formula) -> bool:
        """Return whether a base is positive, or its power undefined for a negative base."""
        n, value = self.as_number(exponent), self.as_number(base)
        if base is self.euler or base is self.pi or (value is not None and value > 0):
            return True
        return (n is not None and n.denominator != 1) or is_call(base, "abs") or _is_largest_magnitude(base)


def is_call(node: Formula, name: str) -> bool:
    """Return whether a node applies the primitive with this name."""
    return isinstance(node, OpaqueCall) and node.primitive is not None and node.primitive.name == name


def is_constant(node: Formula) -> bool:
    """Return whether a node is a constant that is not a plain number: an array, nan or an infinity."""
    return isinstance(node, OpaqueCall) and node.primitive is None


def _is_largest_magnitude(node: Formula) -> bool:
    return is_call(node, "max") and is_call(node.children[0], "abs")


def topological_order(root: Formula) -> Sequence[Formula]:
    """All nodes of an expression in topological order, children first."""
    seen, stack = {root}, [root]
    while stack:
        below = [c for c in stack.pop().children if c not in seen]
        seen.update(below)
        stack.extend(below)
    return sorted(seen, key=lambda node: node.rank)
