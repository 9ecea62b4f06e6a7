"""Which expressions of a program may have a removable singularity, found by names alone: the few that are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from gradcli.language.syntax import tree
from gradcli.primitives import table

if TYPE_CHECKING:
    from gradcli.language.one_variable import Reader

# What may be nan where its operands are numbers.
_SINGULAR = frozenset({"divide", "reciprocal", "pow", "cot", "csc", "coth", "csch", "gamma", "digamma", "polygamma"})
# What has derivatives that are infinite where its last operand is 0.
_IRREGULAR = frozenset({"log", "log2", "log10", "sqrt", "rsqrt"})
# An expression with more parts is not looked at, but its parts are.
_MOST_PARTS = 40


class Search:
    """Goes through the expressions of a program, the innermost first, and says which may have a removable singularity:
    those in which something singular meets something else of the same names."""

    def __init__(
        self,
        program: tree.Module,
        reader: Reader | Written,
        is_singular: Callable[[tree.SyntaxNode], bool] | None = None,
    ) -> None:
        self._reader = reader
        self._is_singular = is_singular or may_be
        # Whether what is singular in something singular counts too.
        self._nested = is_singular is not None
        self._nodes = [*reversed(tree.everything(program))]
        if reader.reads_names:
            # What names stand for comes before them.
            self._nodes.sort(key=lambda node: node.span.end)
        # How many parts expressions have, the names in them, and those with which they may be singular.
        self._parts: dict[tree.SyntaxNode, int] = {}
        self._names: dict[tree.SyntaxNode, frozenset[str]] = {}
        self._poles: dict[tree.SyntaxNode, frozenset[str]] = {}
        self._removed: set[tree.SyntaxNode] = set()

    def __iter__(self) -> Iterator[tree.Expression]:
        for node in self._nodes:
            below = self._reader.operands(node)
            if below is None:
                self._leaf(node)
                continue
            names = self._names
            names[node] = frozenset().union(*[names[b] for b in below])
            if not names[node]:
                continue
            self._parts[node] = parts = 1 + sum([self._parts.get(b, 1) for b in below])
            singular = self._is_singular(node)
            met = len(below) > 1 and self._meet(node, below, singular)
            met = met or (self._nested and (singular or _is_exp(node)) and _singular_with(node, below) in self._poles)
            if not self._removed.isdisjoint(below):
                # Digits of its limit may cancel.
                met = met or not _multiplies(node)
                self._removed |= {node} if _multiplies(node) else set()
            poles = [self._poles[b] for b in below if b in self._poles]
            if singular:
                poles.append(names[_singular_with(node, below)])
            if poles:
                self._poles[node] = frozenset().union(*poles)
            if met and parts <= _MOST_PARTS:
                yield node  # type: ignore[misc]

    def removed(self, node: tree.Expression) -> None:
        """That an expression is not singular any more."""
        self._poles.pop(node, None)
        self._removed.add(node)

    def _leaf(self, node: tree.SyntaxNode) -> None:
        if isinstance(node, tree.Name):
            self._names[node] = frozenset({node.id})
        elif isinstance(node, tree.Expression):
            below = [self._names[c] for c in tree.children(node) if c in self._names]
            # It may vary with no name, as tensors of numbers do.
            self._names[node] = frozenset({""}).union(*below)

    def _meet(self, node: tree.SyntaxNode, below: Sequence[tree.Expression], singular: bool) -> bool:
        first, *others = below
        for other in others:
            names, poles = [self._names[b] for b in (first, other)], [self._poles.get(b) for b in (first, other)]
            if isinstance(node, tree.Binary) and node.operator in ("+", "-"):
                return bool(poles[0] and poles[1] and not poles[0].isdisjoint(poles[1]))
            if any(p and not p.isdisjoint(n) for p, n in zip(poles, reversed(names))):
                return True
            if singular and not names[0].isdisjoint(names[1]):
                return True
        return False


def _singular_with(node: tree.SyntaxNode, below: Sequence[tree.Expression]) -> tree.Expression:
    """The operand that a singular expression is singular with: the base of a power, the last one of all else."""
    is_power = isinstance(node, tree.Binary) and node.operator == "**"
    is_power |= isinstance(node, tree.Call) and getattr(table.find(node.name), "name", "") == "pow"
    return below[0] if is_power else below[-1]


class Written:
    """Reads expressions as they are written, where a `Reader` reads names as what they stand for, and numbers."""

    reads_names = False

    @staticmethod
    def operands(node: tree.SyntaxNode) -> Sequence[tree.Expression] | None:
        if isinstance(node, (tree.Unary, tree.Binary)) or (isinstance(node, tree.Call) and not node.keywords):
            return tree.children(node)  # type: ignore[return-value]
        return () if isinstance(node, tree.Number) else None


def has_irregular(program: tree.Module) -> bool:
    """Whether an expression may have a limit, or a derivative in the limit, where it has none as it stands; without the
    time to read it where it plainly has not."""
    nodes = tree.everything(program)
    if not any(map(may_be_irregular, nodes)):
        return False
    named = any(isinstance(n, tree.Assign) for n in nodes)
    return named or next(iter(Search(program, Written(), may_be_irregular)), None) is not None


def _is_exp(node: tree.SyntaxNode) -> bool:
    """Whether it has a limit where its operand is infinite."""
    return isinstance(node, tree.Call) and getattr(table.find(node.name), "name", "") == "exp"


def singular_operand(node: tree.SyntaxNode, below: Sequence[tree.Expression]) -> int | None:
    """Which operand an expression may be singular with, or have derivatives that are infinite."""
    return below.index(_singular_with(node, below)) if may_be_irregular(node) else None


def may_be_irregular(node: tree.SyntaxNode) -> bool:
    """Whether a derivative may be infinite, or nan, where the operands are numbers."""
    if isinstance(node, tree.Binary) and node.operator == "**" and isinstance(node.right, tree.Number):
        return node.right.value % 1.0 != 0.0
    if isinstance(node, tree.Call) and getattr(table.find(node.name), "name", "") in _IRREGULAR:
        return True
    return may_be(node)


def may_be(node: tree.SyntaxNode) -> bool:
    if isinstance(node, tree.Binary):
        return (node.operator == "/" or node.operator == "**") and not isinstance(node.right, tree.Number)
    return isinstance(node, tree.Call) and getattr(table.find(node.name), "name", "") in _SINGULAR


def _multiplies(node: tree.SyntaxNode) -> bool:
    """Whether it has a number as its value wherever its operands have, with the digits that they have."""
    return isinstance(node, tree.Unary) or (isinstance(node, tree.Binary) and node.operator == "*")
