"""Of several forms of a formula the shortest: with common factors taken out, with products expanded, …"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from gradcli.formulas import angles
from gradcli.formulas.algebra import Algebra, Application, Formula, Product, Sum, Unit, in_order, is_call
from gradcli.formulas.choices import by_condition, conditions
from gradcli.formulas.expansion import MOST_TERMS, expanded
from gradcli.formulas.identities import chosen
from gradcli.formulas.lengths import Lengths
from gradcli.formulas.matrix_products import without_transposes
from gradcli.formulas.quotients import Quotients

# Sums of more terms are not looked through for those with the same function.
_MOST_COLLECTED = 8
# So deep forms are looked for of parts of forms: the transpose of a product has one of a product in it, and so on.
_DEEPEST = 10
# How often a form is looked at for a shorter one, and that then again.
_MOST_ROUNDS = 3


class Forms:
    """The shortest forms of expressions."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._best: dict[Formula, Formula] = {}
        self._depth = 0
        self.length = Lengths(algebra).of
        self.quotients = Quotients(algebra, self.length)

    def shortest(self, root: Formula) -> Formula:
        """The best form, with exponentials inside of sums. Not so within it: exp(x)/(exp(x) + 1)**2, which that would
        make of the derivative of 1/(1 + exp(-x)), is nan where exp(x) is infinite."""
        algebra, best = self.algebra, self.best(root)
        terms = [algebra.scale(c, t) for t, c in algebra.terms(best).items()]
        forms = [[t, *map(self.best, angles.inside_a_sum(algebra, t))] for t in terms]
        return algebra.add(*[min(of_term, key=self.length) for of_term in forms])

    def best(self, root: Formula) -> Formula:
        """The shortest form that is found of an expression, and of everything below it; where it is a part of a form of
        a part of a form, and so on, as it is."""
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
        """What is found to be zero, or a factor, may have lost axes that a function needs."""
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
            # A sum that cannot cancel is not written as one that may.
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
            yield from angles.merged(self.algebra, form)
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
        yield from angles.with_other_squares(algebra, node)
        yield from angles.with_double_angles(algebra, node)
        yield from angles.with_hyperbolic(algebra, node)
        yield from self._with_other_roots(node)
        yield from without_transposes(algebra, node, self.best)
        if algebra.has_time():
            for form in dict.fromkeys([node, angles.by_sines(algebra, node)]):
                yield self._with_best_factors(self.quotients.flat(form))

    def _with_other_roots(self, node: Formula) -> Iterator[Formula]:
        """With the roots of squares of sines as other functions."""
        algebra = self.algebra
        for base, exponent in algebra.powers(node).items():
            n = algebra.as_number(exponent)
            if n is not None and n.denominator == 2:
                for form in angles.with_other_squares(algebra, base):
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
        """A sum with the powers that all its terms have taken out."""
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
        """A sum with the terms that have the same function in them together."""
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
            choices.append(chosen(algebra, condition, x, y))
        best = algebra.add(*choices, *others)
        for condition in conditions(algebra, best):
            x, y = (self.best(part) for part in by_condition(algebra, best, condition))
            best = min(best, chosen(algebra, condition, x, y), key=self.length)
        return best
