"""Rewrites a sum of `where` expressions by several conditions as nested choices."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.formulas.algebra import Algebra, Call, Formula, Product, Sum, is_call
from gradcli.formulas.identities import IDENTITIES, make_where, opposite

_MOST_CONDITIONS = 4
_DEEPEST = 10


def conditions(algebra: Algebra, node: Formula) -> list[Formula]:
    """The conditions of the choices among the terms of a sum, where there are several choices and few conditions."""
    choices = [b for term in algebra.terms(node) for b in algebra.powers(term) if is_call(b, "where")]
    found = list(dict.fromkeys(part for c in choices for part in _parts(c.children[0])))
    return found if len(choices) > 1 and len(found) <= _MOST_CONDITIONS else []


def _parts(condition: Formula) -> Iterator[Formula]:
    if is_call(condition, "logical_and") or is_call(condition, "logical_or"):
        yield from condition.children
    else:
        yield condition


def branch_values(algebra: Algebra, node: Formula, condition: Formula) -> tuple[Formula, Formula]:
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
    if depth > _DEEPEST:
        return node
    if isinstance(node, Sum):
        return algebra.add(*[algebra.scale(c, _where(algebra, t, known, depth + 1)) for t, c in node.terms.items()])
    if isinstance(node, Product):
        parts = [algebra.power(_where(algebra, b, known, depth + 1), e) for b, e in node.powers.items()]
        return algebra.multiply(*parts)
    if is_call(node, "where") and isinstance(node, Call):
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
