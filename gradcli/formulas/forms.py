"""Searches for the shortest form of a formula: common factors taken out, products expanded, identities applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from gradcli.formulas import trigonometric_identities
from gradcli.formulas.algebra import Algebra, Application, Formula, Product, Sum, Unit, in_order, is_call
from gradcli.formulas.expansion import MOST_TERMS, expanded
from gradcli.formulas.identities import chosen
from gradcli.formulas.lengths import Lengths
from gradcli.formulas.matrix_products import without_transposes
from gradcli.formulas.nested_conditionals import by_condition, conditions
from gradcli.formulas.quotients import Quotients

# Only sums of at most this many terms are searched for terms with a common function.
_MOST_COLLECTED = 8
# Bound on the nesting of searches: candidate forms have parts whose forms are searched in turn.
_DEEPEST = 10
# How often the best form found is searched again for a shorter one.
_MOST_ROUNDS = 3


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
        forms = [[t, *map(self.best, trigonometric_identities.inside_a_sum(algebra, t))] for t in terms]
        return algebra.add(*[min(of_term, key=self.length) for of_term in forms])

    def best(self, root: Formula) -> Formula:
        """The shortest form found of an expression and of all nodes below it; nested deeper than _DEEPEST, the
        expression itself."""
        if self._depth < _DEEPEST:
            self._depth += 1
            for node in in_order(root):
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
        if isinstance(node, Application) and node.primitive is not None:
            operands = [self._best_in_shape(c) for c in node.children]
            if is_call(node, "where"):
                condition, x, y = operands
                return chosen(algebra, condition, x, y, node.dtype)
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
            yield from trigonometric_identities.merged(self.algebra, form)
            if isinstance(form, Sum):
                yield self._factored(form, lambda c, symbolic: symbolic or c > 0)
                yield self._factored(form, lambda _c, _symbolic: True)
            if self.algebra.has_time():
                yield from self._collected(form)
                yield self.quotients.factored(form)
                yield from self.quotients.joined(form)
                yield from self.quotients.in_parts(form, self.best)

    def _forms(self, node: Formula) -> Iterator[Formula]:
        algebra = self.algebra
        yield node
        yield expanded(algebra, node)
        yield from trigonometric_identities.with_other_squares(algebra, node)
        yield from trigonometric_identities.with_double_angles(algebra, node)
        yield from trigonometric_identities.with_hyperbolic(algebra, node)
        yield from self._with_other_roots(node)
        yield from without_transposes(algebra, node, self.best)
        if algebra.has_time():
            for form in dict.fromkeys([node, trigonometric_identities.by_sines(algebra, node)]):
                yield self._with_best_factors(self.quotients.flat(form))

    def _with_other_roots(self, node: Formula) -> Iterator[Formula]:
        """Products with roots of squares of sines and cosines replaced through the other function."""
        algebra = self.algebra
        for base, exponent in algebra.powers(node).items():
            n = algebra.as_number(exponent)
            if n is not None and n.denominator == 2:
                for form in trigonometric_identities.with_other_squares(algebra, base):
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
                    if isinstance(base, Application) or unit is not algebra.one:
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
            choices.append(chosen(algebra, condition, x, y))
        best = algebra.add(*choices, *others)
        for condition in conditions(algebra, best):
            x, y = (self.best(part) for part in by_condition(algebra, best, condition))
            best = min(best, chosen(algebra, condition, x, y), key=self.length)
        return best
