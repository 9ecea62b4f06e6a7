"""Finds expressions that may have a removable singularity, by their operators and names, without evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gradcli.language.names.resolution import resolve, root_of
from gradcli.language.syntax import tree
from gradcli.type_hints import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.language.stable.one_variable import ExpressionReader

# Functions that may be nan or infinite at finite operands.
_SINGULAR = frozenset({"divide", "reciprocal", "pow", "cot", "csc", "coth", "csch", "gamma", "digamma", "polygamma"})
# Functions whose derivatives are infinite where the last operand is 0.
_IRREGULAR = frozenset({"log", "log2", "log10", "sqrt", "rsqrt"})
# Expressions with more nodes are skipped; their subexpressions are examined. The current equation of Goldman, Hodgkin
# and Katz in all its quantities has 43.
_MOST_PARTS = 100


class SingularitySearch:
    """Iterates over the expressions that may have a removable singularity, innermost first.

    They combine a singular subexpression with another one that depends on the same names.
    """

    def __init__(
        self,
        program: tree.Module,
        reader: ExpressionReader | WrittenReader,
        is_singular: Callable[[tree.SyntaxNode, str | None], bool] | None = None,
    ) -> None:
        self._reader = reader
        self._roots = resolve(program).roots
        self._is_singular = is_singular or may_be
        # Whether singular functions of singular operands count as well.
        self._nested = is_singular is not None
        self._nodes = [*reversed(tree.all_nodes(program))]
        if reader.reads_names:
            # Definitions come before the names that refer to them, as statements are run: those of differential
            # equations are in another order than in the text.
            self._nodes = []
            for statement in program.body:
                nodes = [*tree.walk(statement)]
                # Nodes that end at the same place are ordered from the innermost outward.
                nodes.reverse()
                nodes.sort(key=lambda node: node.span.end)
                self._nodes += nodes
        # For each expression: the number of its nodes, the names in it, and the names in which it may be singular.
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
            root = self._roots.get(node)  # type: ignore[call-overload]
            singular = self._is_singular(node, root)
            met = len(below) > 1 and self._meet(node, below, singular)
            # exp has limits at infinite operands.
            near_pole = self._nested and (singular or root == "exp")
            met = met or (near_pole and _singular_with(root, below) in self._poles)
            if not self._removed.isdisjoint(below):
                # Digits of the limit may cancel.
                met = met or not _multiplies(node)
                self._removed |= {node} if _multiplies(node) else set()
            poles = [self._poles[b] for b in below if b in self._poles]
            if singular:
                poles.append(names[_singular_with(root, below)])
            if poles:
                self._poles[node] = frozenset().union(*poles)
            if met and parts <= _MOST_PARTS:
                yield node  # type: ignore[misc]

    def removed(self, node: tree.Expression) -> None:
        """Record that an expression has a form without the singularity."""
        self._poles.pop(node, None)
        self._removed.add(node)

    def _leaf(self, node: tree.SyntaxNode) -> None:
        if isinstance(node, tree.Name):
            self._names[node] = frozenset({node.id})
        elif isinstance(node, tree.Expression):
            below = [self._names[c] for c in tree.children(node) if c in self._names]
            # The empty name stands for unnamed variation, as that of literal tensors.
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


def _singular_with(root: str | None, below: Sequence[tree.Expression]) -> tree.Expression:
    """The operand in which an expression is singular: the base of a power, the last operand of any other function."""
    return below[0] if root in ("**", "pow") else below[-1]


class WrittenReader:
    """Reads expressions as written; an `ExpressionReader` instead follows names to their definitions."""

    reads_names = False

    @staticmethod
    def operands(node: tree.SyntaxNode) -> Sequence[tree.Expression] | None:
        if isinstance(node, (tree.Unary, tree.Binary)) or (isinstance(node, tree.Call) and not node.keywords):
            return tree.children(node)  # type: ignore[return-value]
        return () if isinstance(node, tree.Number) else None


def has_irregular(program: tree.Module) -> bool:
    """Return whether an expression may lack a value or derivative, as written, where a limit exists.

    This is a cheap check that avoids reading programs where that is impossible.
    """
    resolution = resolve(program)
    if not any(may_be_irregular(node, root) for node, root in resolution.roots.items()):
        return False
    return (
        bool(resolution.nodes(tree.Assign))
        or next(iter(SingularitySearch(program, WrittenReader(), may_be_irregular)), None) is not None
    )


def singular_operand(node: tree.SyntaxNode, below: Sequence[tree.Expression]) -> int | None:
    """The index of the operand in which an expression may be singular or have infinite derivatives, or None."""
    root = root_of(node)
    return below.index(_singular_with(root, below)) if may_be_irregular(node, root) else None


def may_be_irregular(node: tree.SyntaxNode, root: str | None) -> bool:
    """Return whether a derivative may be infinite or nan at finite operands; `root` is the function or operator."""
    if root == "**" and isinstance(node, tree.Binary) and isinstance(node.right, tree.Number):
        return node.right.value % 1.0 != 0.0
    return root in _IRREGULAR or may_be(node, root)


def may_be(node: tree.SyntaxNode, root: str | None) -> bool:
    """Return whether a value may be infinite or nan at finite operands; `root` is the function or operator."""
    if isinstance(node, tree.Binary):
        return root in ("/", "**") and not isinstance(node.right, tree.Number)
    return root in _SINGULAR


def _multiplies(node: tree.SyntaxNode) -> bool:
    """Return whether it is a product or a unary operation, which is finite and accurate wherever its operands are."""
    return isinstance(node, tree.Unary) or (isinstance(node, tree.Binary) and node.operator == "*")
