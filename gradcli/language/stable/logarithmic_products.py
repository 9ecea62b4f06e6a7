"""Rewrites products u*log(u) with `entr`: enclosures of them are then bounded down to u = 0, where log(u) is not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import reduce

from gradcli.language.stable import stable_expressions
from gradcli.language.stable.stable_expressions import Fitting
from gradcli.language.stable.stable_forms import StableForm
from gradcli.language.syntax import tree
from gradcli.primitives import table

_RULE = StableForm("x*log(x)", "-entr(x)", "entr(x) is -x*log(x), and 0 at 0")


def logarithmic_products(program: tree.Module, own: Collection[str]) -> Iterator[Fitting]:
    """The products with factors u and log(u), in their rewritten form; `own` are functions that the program defines."""
    inner: set[tree.SyntaxNode] = set()
    for node in tree.everything(program):
        if not isinstance(node, tree.Binary) or node.operator != "*" or node in inner:
            continue
        factors = [*_factors(node, inner)]
        for place, factor in enumerate(factors):
            found = _with_entropy(program, factors, place, node) if _is_log(factor, own) else None
            if found is not None:
                yield Fitting(node.span, _RULE, node, found, {})
                break


def _factors(node: tree.Expression, inner: set[tree.SyntaxNode]) -> Iterator[tree.Expression]:
    """The factors of a product from left to right; a unary minus gives a factor of -1."""
    if isinstance(node, tree.Binary) and node.operator == "*":
        inner.add(node)
        yield from _factors(node.left, inner)
        yield from _factors(node.right, inner)
    elif isinstance(node, tree.Unary) and node.operator == "-":
        yield tree.Number(node.span, -1.0, "")
        yield from _factors(node.operand, inner)
    else:
        yield node


def _is_log(node: tree.Expression, own: Collection[str]) -> bool:
    if (
        not isinstance(node, tree.Call)
        or node.receiver
        or node.keywords
        or len(node.arguments) != 1
        or node.name in own
    ):
        return False
    return getattr(table.find(node.name), "name", "") == "log"


def _with_entropy(
    program: tree.Module, factors: list[tree.Expression], place: int, node: tree.Expression
) -> tree.Expression | None:
    """The product of `factors` with u*log(u) replaced by -entr(u); None where u is no factor.

    `place` is the index of log(u).
    """
    log = factors[place]
    assert isinstance(log, tree.Call)
    (operand,) = log.arguments
    text = _text(program, operand)
    for other, factor in enumerate(factors):
        rest = [f for n, f in enumerate(factors) if n not in (place, other)]
        if isinstance(factor, tree.Binary) and factor.operator == "**" and isinstance(factor.right, tree.Number):
            if _text(program, factor.left) != text or factor.right.value % 1.0 or factor.right.value < 2.0:
                continue
            exponent = tree.Number(factor.right.span, factor.right.value - 1.0, "")
            rest.append(tree.Binary(factor.span, "**", factor.operator_span, factor.left, exponent))
        elif _text(program, factor) != text:
            continue
        entropy = tree.Call(log.span, "entr", log.span, None, (operand,), (), stable_expressions.MODULE)
        rest += [tree.Number(node.span, -1.0, ""), entropy]
        return reduce(lambda a, b: tree.Binary(node.span, "*", node.span, a, b), rest)
    return None


def _text(program: tree.Module, node: tree.Expression) -> str:
    text = "".join(program.source[node.span.start : node.span.end].split())
    return text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text
