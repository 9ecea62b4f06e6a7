"""Of several forms of a formula the shortest: with common factors taken out, with products expanded, …"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from gradcli.arrays.shapes import broadcast
from gradcli.formulas.algebra import Algebra, Application, Formula, Product, Sum, in_order, is_call
from gradcli.formulas.lengths import Lengths
from gradcli.primitives.comparisons import where
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.trigonometric import cos, cosh, sin, sinh

# Products are expanded to at most this many terms, and powers up to this exponent.
_MOST_TERMS = 30
_LARGEST_POWER = 4
# sin(x)**2 = 1 - cos(x)**2, cosh(x)**2 = 1 + sinh(x)**2, and the other way round.
_SQUARES = ((sin, cos, -1, 1), (cos, sin, -1, 1), (cosh, sinh, 1, 1), (sinh, cosh, 1, -1))


class Forms:
    """The shortest forms of expressions."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._best: dict[Formula, Formula] = {}
        self.length = Lengths(algebra).of

    def best(self, root: Formula) -> Formula:
        """The shortest form that is found of an expression, and of everything below it."""
        for node in in_order(root):
            if node not in self._best:
                self._best[node] = self._shortest(self._with_best_parts(node))
        return self._best[root]

    def _with_best_parts(self, node: Formula) -> Formula:
        algebra = self.algebra
        if isinstance(node, Sum):
            return algebra.add(*[algebra.scale(c, self._best[t]) for t, c in node.terms.items()])
        if isinstance(node, Product):
            return algebra.multiply(*[algebra.power(self._best[b], self._best[e]) for b, e in node.powers.items()])
        if isinstance(node, Application) and node.primitive is not None:
            return algebra.with_operands(node, [self._best_in_shape(c) for c in node.children])
        return node

    def _best_in_shape(self, node: Formula) -> Formula:
        """What is found to be zero, or a factor, may have lost axes that a function needs."""
        best = self._best[node]
        return best if best.shape == node.shape else node

    def _shortest(self, node: Formula) -> Formula:
        if not is_call(node, "where"):
            node = self._gathered(node)
        if len(node.children) > _MOST_TERMS:
            return node
        candidates = [node, *self._candidates(node)]
        return min(candidates, key=self.length)

    def _candidates(self, node: Formula) -> Iterator[Formula]:
        expanded = self._expanded(node)
        for form in dict.fromkeys([node, *self._with_other_squares(node), expanded]):
            yield form
            if isinstance(form, Sum):
                yield self._factored(form, lambda c, symbolic: symbolic or c > 0)
                yield self._factored(form, lambda _c, _symbolic: True)
                yield self._together(form)

    # --- expanding

    def _expanded(self, node: Formula) -> Formula:
        """A product of sums as a sum."""
        total: dict[Formula, Fraction] = {}
        for term, c in self.algebra.terms(node).items():
            for product, d in self._expanded_product(term).items():
                total[product] = total.get(product, Fraction(0)) + c * d
            if len(total) > _MOST_TERMS:
                return node
        return self.algebra.add(*[self.algebra.scale(c, t) for t, c in total.items()])

    def _expanded_product(self, term: Formula) -> Mapping[Formula, Fraction]:
        algebra = self.algebra
        found: dict[Formula, Fraction] = {algebra.one: Fraction(1)}
        for base, exponent in algebra.powers(term).items():
            n = algebra.as_number(exponent)
            opens = isinstance(base, Sum) and n is not None and n.denominator == 1 and 0 < n <= _LARGEST_POWER
            parts = [base] * int(n or 0) if opens else [algebra.power(base, exponent)]
            for part in parts:
                found = self._all_products(found, algebra.terms(part))
                if len(found) > _MOST_TERMS:
                    return {term: Fraction(1)}
        return found

    def _all_products(
        self, first: Mapping[Formula, Fraction], second: Mapping[Formula, Fraction]
    ) -> dict[Formula, Fraction]:
        total: dict[Formula, Fraction] = {}
        for a, c in first.items():
            for b, d in second.items():
                for term, e in self.algebra.terms(self.algebra.multiply(a, b)).items():
                    total[term] = total.get(term, Fraction(0)) + c * d * e
        return total

    # --- squares of sines

    def _with_other_squares(self, node: Formula) -> Iterator[Formula]:
        if not isinstance(node, Sum):
            return
        for function, other, sign, constant in _SQUARES:
            if any(is_call(b, function.name) for term in node.terms for b in self.algebra.powers(term)):
                yield self._replaced_squares(node, function, other, sign, constant)

    def _replaced_squares(self, node: Sum, function: Primitive, other: Primitive, sign: int, constant: int) -> Formula:
        algebra = self.algebra
        parts = []
        for term, c in node.terms.items():
            squared = next(
                (b for b, e in algebra.powers(term).items() if is_call(b, function.name) and _two(algebra, e)), None
            )
            if squared is None:
                parts.append(algebra.scale(c, term))
                continue
            assert isinstance(squared, Application)
            two = algebra.number(2)
            rest = algebra.divide(term, algebra.power(squared, two))
            square = algebra.power(algebra.call(other, squared.children, {}, squared.shape, squared.dtype), two)
            parts += [algebra.scale(c * constant, rest), algebra.scale(c * sign, algebra.multiply(rest, square))]
        return algebra.add(*parts)

    # --- common factors

    def _factored(self, node: Sum, takes: Callable[[Fraction, bool], bool]) -> Formula:
        """A sum with the powers that all its terms have taken out."""
        algebra = self.algebra
        common: dict[tuple[Formula, Formula], Fraction] | None = None
        for term in node.terms:
            powers = dict(part for b, e in algebra.powers(term).items() for part in self._unit_powers(b, e))
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

    def _unit_powers(self, base: Formula, exponent: Formula) -> Iterator[tuple[tuple[Formula, Formula], Fraction]]:
        """A power as ((base, exponent without coefficient), coefficient); the number in a sum stands by itself."""
        algebra = self.algebra
        constant = algebra.terms(exponent).get(algebra.one, Fraction(0))
        coefficient, unit = algebra.split(algebra.add(exponent, algebra.number(-constant)))
        if unit is not algebra.zero:
            yield (base, unit), coefficient
        if constant:
            yield (base, algebra.one), constant

    def _together(self, node: Sum) -> Formula:
        """A sum over its common denominator."""
        algebra = self.algebra
        least: dict[Formula, Fraction] = {}
        for term in node.terms:
            for base, exponent in algebra.powers(term).items():
                n = algebra.as_number(exponent)
                if n is not None and n < 0 and base is not algebra.euler:
                    least[base] = min(n, least.get(base, n))
        if not least:
            return node
        denominator = algebra.multiply(*[algebra.power(b, algebra.number(-n)) for b, n in least.items()])
        terms = [algebra.multiply(algebra.scale(c, term), denominator) for term, c in node.terms.items()]
        numerator = self._shortest_of_sum(self._expanded(algebra.add(*[self._expanded(t) for t in terms])))
        return algebra.divide(numerator, denominator)

    def _shortest_of_sum(self, node: Formula) -> Formula:
        if not isinstance(node, Sum):
            return node
        forms = [node, self._factored(node, lambda c, symbolic: symbolic or c > 0)]
        return min(forms, key=self.length)

    # --- choices

    def _gathered(self, node: Formula) -> Formula:
        """Terms with a factor where(p, …) inside it, together with those of the same condition."""
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
            shape = broadcast([condition.shape, x.shape, y.shape])
            choices.append(x if x is y else algebra.call(where, [condition, x, y], {}, shape, "float64"))
        return algebra.add(*choices, *others)


def _two(algebra: Algebra, exponent: Formula) -> bool:
    n = algebra.as_number(exponent)
    return n is not None and n.denominator == 1 and n >= 2
