"""Searches for the shortest form of a formula: common factors taken out, products expanded, identities applied,
transposes cancelled and conditions nested."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.formulas.simplification import trigonometric_identities
from gradcli.formulas.simplification.algebra import (
    Algebra,
    Formula,
    OpaqueCall,
    Product,
    Sum,
    Symbol,
    Unit,
    is_call,
    is_constant,
    topological_order,
)
from gradcli.formulas.simplification.identities import IDENTITIES, make_where, opposite
from gradcli.formulas.simplification.numbers import TypedDecimal, numerator_and_denominator
from gradcli.formulas.simplification.printed_equations import negated_sums
from gradcli.formulas.simplification.quotients import MOST_TERMS, Quotients, expanded
from gradcli.formulas.writing.text_writer import ATOM, POWER, PRODUCT, SUM, UNARY
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.conversions import broadcast_to, permute, reshape
from gradcli.primitives.entries.linear import contract, matmul
from gradcli.program.ir import Variable

# Only sums of at most this many terms are searched for terms with a common function.
_MOST_COLLECTED = 8
# Bound on the nesting of searches: candidate forms have parts whose forms are searched in turn.
_DEEPEST = 10
# The number of times that the best form found is searched again for a shorter one.
_MOST_ROUNDS = 3
_MOST_CONDITIONS = 4
_DEEPEST_CONDITIONS = 10


class Forms:
    """Finds the shortest forms of expressions."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._best: dict[Formula, Formula] = {}
        self._depth = 0
        self.length = Lengths(algebra).of
        self.quotients = Quotients(algebra, self.length)

    def shortest(self, root: Formula) -> Formula:
        """The best form of an expression, with exponentials moved into sums at the top level only: deeper, the
        derivative of 1/(1 + exp(-x)) would become exp(x)/(exp(x) + 1)**2, which is nan where exp(x) overflows."""
        algebra, best = self.algebra, self.best(root)
        terms = [algebra.scale(c, t) for t, c in algebra.terms(best).items()]
        forms = [[t, *map(self.best, trigonometric_identities.with_exponential_inside_sum(algebra, t))] for t in terms]
        return algebra.add(*[min(of_term, key=self.length) for of_term in forms])

    def best(self, root: Formula) -> Formula:
        """The shortest form found of an expression and of all nodes below it; nested deeper than _DEEPEST, the
        expression itself."""
        if self._depth < _DEEPEST:
            self._depth += 1
            for node in topological_order(root):
                if node not in self._best:
                    self._best[node] = node
                    self._best[node] = self._shortest(self._with_best_parts(node))
            self._depth -= 1
        return self._best.get(root, root)

    def _with_best_parts(self, node: Formula) -> Formula:
        algebra = self.algebra
        if isinstance(node, Sum):
            return algebra.add(*[algebra.scale(c, self._best[t]) for t, c in node.terms.items()])
        if isinstance(node, Product):
            return algebra.multiply(*[algebra.power(self._best[b], self._best[e]) for b, e in node.powers.items()])
        if isinstance(node, OpaqueCall) and node.primitive is not None:
            operands = [self._best_in_shape(c) for c in node.children]
            if is_call(node, "where"):
                condition, x, y = operands
                return make_where(algebra, condition, x, y, node.dtype)
            return algebra.with_operands(node, operands)
        return node

    def _best_in_shape(self, node: Formula) -> Formula:
        """The best form, unless it lost axes that the enclosing function needs (as 0 or a single factor may)."""
        best = self._best[node]
        return best if best.shape == node.shape else node

    def _shortest(self, node: Formula) -> Formula:
        if not is_call(node, "where"):
            node = self._gathered(node)
        if len(node.children) > MOST_TERMS:
            return node
        algebra = self.algebra
        self._best.setdefault(node, node)
        best = node
        for _ in range(_MOST_ROUNDS):
            # A sum of squares, which cannot cancel, is not replaced by a form with negative terms.
            candidates = self._candidates(best)
            if algebra.is_sum_of_squares(best):
                candidates = (c for c in candidates if all(n > 0 for n in algebra.terms(c).values()))
            before, best = best, min([best, *candidates], key=self.length)
            if best is before:
                break
        self._best[node] = best
        return best

    def _candidates(self, node: Formula) -> Iterator[Formula]:
        for form in dict.fromkeys(self._forms(node)):
            yield form
            yield from trigonometric_identities.with_combined_factors(self.algebra, form)
            if isinstance(form, Sum):
                yield self._factored(form, lambda c, symbolic: symbolic or c > 0)
                yield self._factored(form, lambda _c, _symbolic: True)
            if self.algebra.has_time():
                yield from self._collected(form)
                yield self.quotients.factored(form)
                yield from self.quotients.with_factors_multiplied_out(form)
                yield from self.quotients.with_pairs_combined(form, self.best)

    def _forms(self, node: Formula) -> Iterator[Formula]:
        algebra = self.algebra
        yield node
        yield expanded(algebra, node)
        yield from trigonometric_identities.with_pythagorean_identities(algebra, node)
        yield from trigonometric_identities.with_double_angles(algebra, node)
        yield from trigonometric_identities.with_hyperbolic(algebra, node)
        yield from self._with_other_roots(node)
        yield from _without_transposes(algebra, node, self.best)
        if algebra.has_time():
            for form in dict.fromkeys([node, trigonometric_identities.with_tangents_as_quotients(algebra, node)]):
                yield self._with_best_factors(self.quotients.over_common_denominator(form))

    def _with_other_roots(self, node: Formula) -> Iterator[Formula]:
        """Products with roots of squares of sines and cosines replaced through the other function."""
        algebra = self.algebra
        for base, exponent in algebra.powers(node).items():
            n = algebra.as_number(exponent)
            if n is not None and n.denominator == 2:
                for form in trigonometric_identities.with_pythagorean_identities(algebra, base):
                    if not isinstance(form, Sum):
                        yield algebra.multiply(
                            node, algebra.power(base, algebra.number(-n)), algebra.power(form, exponent)
                        )

    def _with_best_factors(self, node: Formula) -> Formula:
        algebra = self.algebra
        coefficient, rest = algebra.split(node)
        powers = [algebra.power(self.best(b), e) for b, e in algebra.powers(rest).items()]
        return algebra.multiply(algebra.number(coefficient), *powers)

    # --- common factors

    def _factored(self, node: Sum, takes: Callable[[Fraction, bool], bool]) -> Formula:
        """A sum with the powers common to all its terms taken out, where `takes` accepts them."""
        algebra = self.algebra
        common: dict[Unit, Fraction] | None = None
        for term in node.terms:
            powers = self.quotients.units(term)
            if common is None:
                common = powers
            else:
                both = {key: (common[key], c) for key, c in powers.items() if key in common}
                common = {k: min(pair, key=abs) for k, pair in both.items() if pair[0] * pair[1] > 0}
        taken = {k: c for k, c in (common or {}).items() if takes(c, k[1] is not algebra.one)}
        if not taken:
            return node
        factor = algebra.multiply(*[algebra.power(base, algebra.scale(c, unit)) for (base, unit), c in taken.items()])
        rest = algebra.add(*[algebra.scale(c, algebra.divide(term, factor)) for term, c in node.terms.items()])
        return algebra.multiply(factor, self._best.get(rest, rest))

    def _collected(self, node: Formula) -> Iterator[Formula]:
        """Sums in which the terms that contain the same function are collected."""
        algebra = self.algebra
        if not isinstance(node, Sum) or not 2 < len(node.terms) <= _MOST_COLLECTED:
            return
        terms: dict[Formula, list[Formula]] = {}
        for term in node.terms:
            for base, exponent in algebra.powers(term).items():
                for (_, unit), n in algebra.units(base, exponent):
                    if isinstance(base, OpaqueCall) or unit is not algebra.one:
                        terms.setdefault(algebra.power(base, algebra.scale(n, unit)), []).append(term)
        for part, having in terms.items():
            if 1 < len(having) < len(node.terms):
                factor = algebra.add(*[algebra.scale(node.terms[t], algebra.divide(t, part)) for t in having])
                others = algebra.sum({t: c for t, c in node.terms.items() if t not in having})
                yield algebra.add(algebra.multiply(part, self.best(factor)), others)

    # --- choices

    def _gathered(self, node: Formula) -> Formula:
        """A sum of terms with a factor where(p, …), with the choices of each condition merged and other factors moved
        inside."""
        algebra = self.algebra
        branches: dict[Formula, list[tuple[Formula, Formula]]] = {}
        others = []
        for term, c in algebra.terms(node).items():
            choice = next(
                (b for b, e in algebra.powers(term).items() if is_call(b, "where") and e is algebra.one), None
            )
            if choice is None:
                others.append(algebra.scale(c, term))
                continue
            rest = algebra.scale(c, algebra.divide(term, choice))
            condition, x, y = choice.children
            pair = algebra.multiply(rest, x), algebra.multiply(rest, y)
            branches.setdefault(condition, []).append(pair)
        if not branches:
            return node
        choices = []
        for condition, pairs in branches.items():
            x = self.best(algebra.add(*[x for x, _ in pairs]))
            y = self.best(algebra.add(*[y for _, y in pairs]))
            choices.append(make_where(algebra, condition, x, y))
        best = algebra.add(*choices, *others)
        for condition in _conditions(algebra, best):
            x, y = (self.best(part) for part in _branch_values(algebra, best, condition))
            best = min(best, make_where(algebra, condition, x, y), key=self.length)
        return best


# --- the length of a formula as text: in characters without spaces, to compare equivalent forms

# Assumed characters per element of an array, and at most per array; arrays are the same in all forms.
_ELEMENT, _LONGEST_ARRAY = 3, 300
_OPERATORS = {name: len(symbol) for name, symbol in table.operators().items()}
_HALF = Fraction(1, 2)


class Length(NamedTuple):
    """The length of a text in characters, its number of names and numbers, its precedence level, and whether it
    contains a fraction."""

    characters: int
    parts: int = 1
    level: int = ATOM
    bars: bool = False

    def at(self, level: int) -> int:
        """The number of characters where an operand of precedence `level` is expected, with parentheses if needed."""
        return self.characters if self.level >= level else self.characters + 2


class Lengths:
    """The lengths of formulas in the expression language; lengths in other languages differ by little."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._known: dict[Formula, Length] = {}

    def of(self, root: Formula) -> tuple[int, int]:
        """The sort key of a formula: its characters, then its number of names and numbers. A nested fraction, which is
        hard to read, counts as one more character and two more parts."""
        if root not in self._known:
            for node in topological_order(root):
                if node not in self._known:
                    self._known[node] = self._length(node)
        return self._known[root][:2]

    def _length(self, node: Formula) -> Length:
        if isinstance(node, Symbol):
            return Length(len(node.value.name or "") if isinstance(node.value, Variable) else 2)
        if isinstance(node, OpaqueCall):
            return self._call(node)
        return self._sum(self.algebra.terms(node).items())

    def _call(self, node: OpaqueCall) -> Length:
        if node.primitive is None:
            return Length(min(_ELEMENT * arrays.size(node.array), _LONGEST_ARRAY))
        name, operands = node.primitive.name, [self._known[c] for c in node.children]
        parts = sum(o.parts for o in operands)
        if name == "permute":
            return Length(operands[0].at(ATOM) + 2, parts)
        if name in _OPERATORS and len(operands) == 2:
            return Length(sum(o.at(PRODUCT) for o in operands) + _OPERATORS[name], parts, PRODUCT)
        return Length(len(name) + 1 + sum(o.characters + 1 for o in operands), parts)

    def _sum(self, terms: Iterable[tuple[Formula, Fraction]]) -> Length:
        products = [(self._term(abs(c), t), self._has_sign(c, t)) for t, c in terms]
        if not products:
            return Length(1)
        signs = len(products) - (not all(negative for _, negative in products))
        if len(products) == 1 and not signs:
            return products[0][0]
        return Length(
            sum(product.at(PRODUCT) for product, _ in products) + signs,
            sum(product.parts for product, _ in products),
            SUM if len(products) > 1 else UNARY,
            any(product.bars for product, _ in products),
        )

    def _has_sign(self, coefficient: Fraction, term: Formula) -> bool:
        """Return whether a term is written with a minus that no factor such as x - 1 can absorb."""
        signs = (coefficient < 0) + len(negated_sums(self.algebra, coefficient, self.algebra.powers(term)))
        return signs % 2 == 1

    def _term(self, coefficient: Fraction, term: Formula) -> Length:
        """A positive coefficient times a product."""
        above: list[Length] = []
        below: list[Length] = []
        for base, exponent in self.algebra.powers(term).items():
            if base is self.algebra.euler and exponent is not self.algebra.one:
                known = self._known[exponent]
                above.append(Length(5 + known.characters, known.parts))
            elif self.algebra.is_negative(exponent):
                below.append(self._power(base, self.algebra.negative(exponent)))
            else:
                above.append(self._power(base, exponent))
        p, q = numerator_and_denominator(coefficient)
        if q != 1:
            below.append(_digits(q))
        if p != 1 or not above:
            above.append(_digits(p))
        numerator = _product(above)
        if not below:
            return numerator
        denominator = _product(below)
        nested = numerator.bars + denominator.bars
        characters = numerator.at(PRODUCT) + 1 + denominator.at(UNARY) + nested
        return Length(characters, numerator.parts + denominator.parts + 2 * nested, PRODUCT, bars=True)

    def _power(self, base: Formula, exponent: Formula) -> Length:
        inner, n = self._known[base], self.algebra.as_number(exponent)
        if n == 1:
            return inner
        if n == _HALF:
            return Length(6 + inner.characters, inner.parts)
        written = self._sum(self.algebra.terms(exponent).items()) if n is None else _number(n)
        parts = inner.parts + written.parts
        return Length(inner.at(ATOM) + 2 + written.at(UNARY), parts, POWER, inner.bars)


# Numbers with more bits are not converted to text: Python limits integers to 4,300 digits, about 14,280 bits.
_LONGEST_NUMBER = 14_000


def _number(n: Fraction) -> Length:
    if isinstance(n, TypedDecimal):
        return _digits(n)
    return Length(len(str(n)), 1, ATOM if n.denominator == 1 else PRODUCT)


def _digits(number: Fraction | int) -> Length:
    """A number that terminates as a decimal, as it is written: an integer, or a float unless it overflows."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _LONGEST_NUMBER:
        # At least as many characters as any number that is converted, so that this form is not chosen.
        return Length(_LONGEST_NUMBER)
    try:
        return Length(len(str(number if number.denominator == 1 else float(number))))
    except OverflowError:
        return Length(len(str(number)))


def _product(factors: Sequence[Length]) -> Length:
    if len(factors) == 1:
        return factors[0]
    characters = sum(f.at(PRODUCT) for f in factors) + len(factors) - 1
    return Length(characters, sum(f.parts for f in factors), PRODUCT, any(f.bars for f in factors))


def _conditions(algebra: Algebra, node: Formula) -> list[Formula]:
    """The conditions of the choices among the terms of a sum, where there are several choices and few conditions."""
    choices = [b for term in algebra.terms(node) for b in algebra.powers(term) if is_call(b, "where")]
    found = list(dict.fromkeys(part for c in choices for part in _parts(c.children[0])))
    return found if len(choices) > 1 and len(found) <= _MOST_CONDITIONS else []


def _parts(condition: Formula) -> Iterator[Formula]:
    if is_call(condition, "logical_and") or is_call(condition, "logical_or"):
        yield from condition.children
    else:
        yield condition


def _branch_values(algebra: Algebra, node: Formula, condition: Formula) -> tuple[Formula, Formula]:
    """The values of a formula where a condition holds and where it does not."""
    against = opposite(algebra, condition)
    yes, no = algebra.true, algebra.false
    known = (
        ({condition: yes}, {condition: no})
        if against is None
        else ({condition: yes, against: no}, {condition: no, against: yes})
    )
    return _where(algebra, node, known[0]), _where(algebra, node, known[1])


def _where(algebra: Algebra, node: Formula, known: dict[Formula, Formula], depth: int = 0) -> Formula:
    """A formula simplified by the known truth values of conditions."""
    if depth > _DEEPEST_CONDITIONS:
        return node
    if isinstance(node, Sum):
        return algebra.add(*[algebra.scale(c, _where(algebra, t, known, depth + 1)) for t, c in node.terms.items()])
    if isinstance(node, Product):
        parts = [algebra.power(_where(algebra, b, known, depth + 1), e) for b, e in node.powers.items()]
        return algebra.multiply(*parts)
    if is_call(node, "where") and isinstance(node, OpaqueCall):
        condition, x, y = node.children
        x, y = _where(algebra, x, known, depth + 1), _where(algebra, y, known, depth + 1)
        return make_where(algebra, _known(algebra, condition, known), x, y, node.dtype)
    return node


def _known(algebra: Algebra, condition: Formula, known: dict[Formula, Formula]) -> Formula:
    """A condition simplified by the known truth values."""
    for name in ("logical_and", "logical_or"):
        if is_call(condition, name):
            parts = [known.get(c, c) for c in condition.children]
            return IDENTITIES[name](algebra, parts, {}) or condition
    return known.get(condition, condition)


def simplified_product(algebra: Algebra, operands: Sequence[Formula], shape: Shape) -> Formula | None:
    """A matrix product with the identity matrix or with a single-element matrix, simplified; else None."""
    for one, other in (operands, operands[::-1]):
        if other.shape == shape and _is_identity(one):
            return other
        if other.shape == shape and math.prod(one.shape) == 1:
            return algebra.multiply(one.children[0] if is_call(one, "reshape") else one, other)
    return None


def _is_identity(node: Formula) -> bool:
    if not isinstance(node, OpaqueCall) or not is_constant(node) or len(node.shape) != 2:
        return False
    rows, columns = node.shape
    return rows == columns and arrays.tolist(node.array) == [[float(i == j) for j in range(rows)] for i in range(rows)]


def outer_product(algebra: Algebra, left: Formula, right: Formula) -> Formula | None:
    """The product of a column and a row as an outer product of two vectors; None if the operands are not these."""
    if not (is_call(left, "reshape") and is_call(right, "reshape")):
        return None
    (a,), (b,) = left.children, right.children
    if len(a.shape) != 1 or len(b.shape) != 1 or left.shape != (*a.shape, 1) or right.shape != (1, *b.shape):
        return None
    return algebra.call(contract, [a, b], {"terms": ("a", "b"), "result": "ab"}, a.shape + b.shape, "float64")


def reshaped(algebra: Algebra, operand: Formula, shape: Shape, dtype: str) -> Formula | None:
    """A simplified reshape: of a single element, of a reshape, or of a product with a row or a column; else None."""
    if 1 in (math.prod(shape), math.prod(operand.shape)):
        return operand
    if is_call(operand, "reshape"):
        (inner,) = operand.children
        return inner if inner.shape == shape else algebra.call(reshape, [inner], {"shape": shape}, shape, dtype)
    return _with_vector(algebra, operand, shape) if is_call(operand, "matmul") else None


def _with_vector(algebra: Algebra, product: Formula, shape: Shape) -> Formula | None:
    """A matrix-column or row-matrix product reshaped to a vector, as a product with a vector; else None."""
    left, right = product.children
    if len(shape) != 1 or len(left.shape) != 2 or len(right.shape) != 2:
        return None
    for i, (factor, sizes) in enumerate(((left, right.shape[:1]), (right, left.shape[1:]))):
        if is_call(factor, "reshape") and factor.children[0].shape == sizes and product.shape[i] == 1:
            operands = [left, right]
            operands[i] = factor.children[0]
            return algebra.call(matmul, operands, {}, shape, "float64")
    return None


def _transposed(algebra: Algebra, node: Formula) -> Formula:
    """The transpose of a matrix; a transpose is undone and a broadcast single element broadcast to the other shape."""
    if _is_transpose(node):
        return node.children[0]
    if is_call(node, "broadcast_to") and math.prod(node.children[0].shape) == 1:
        return algebra.call(broadcast_to, node.children, {"shape": node.shape[::-1]}, node.shape[::-1], "float64")
    return algebra.call(permute, [node], {"axes": (1, 0)}, node.shape[::-1], "float64")


def _without_transposes(algebra: Algebra, node: Formula, best: Callable[[Formula], Formula]) -> Iterator[Formula]:
    """The transpose of a product or sum through the transposes of its parts, and vector @ A.T as A @ vector."""
    if _is_transpose(node):
        (inner,) = node.children
        yield _transposed(algebra, inner)
        if is_call(inner, "matmul") and all(len(c.shape) == 2 for c in inner.children):
            left, right = (best(_transposed(algebra, c)) for c in inner.children)
            yield algebra.call(matmul, [right, left], {}, node.shape, "float64")
        elif isinstance(inner, Sum) and all(t.shape == inner.shape for t in inner.terms):
            yield algebra.add(*[algebra.scale(c, best(_transposed(algebra, t))) for t, c in inner.terms.items()])
    elif is_call(node, "matmul"):
        left, right = node.children
        if len(left.shape) == 1 and _is_transpose(right):
            yield algebra.call(matmul, [right.children[0], left], {}, node.shape, "float64")


def _is_transpose(node: Formula) -> bool:
    return isinstance(node, OpaqueCall) and is_call(node, "permute") and node.params["axes"] == (1, 0)
