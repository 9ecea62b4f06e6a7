"""Powers of Euler's number, which are values of exp: `e**x` has fewer digits, as the number is rounded, and stands for
exp(x) in every form that knows it."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.language.syntax import tree

_NAME = "e"


def exponentials(program: tree.Module, named: Collection[str], module: str) -> dict[tree.Expression, tree.Call]:
    """The powers of Euler's number in a program as calls of the function exp of a `module`; among the names with other
    values, `named`, may be that of the number."""
    return {
        node: tree.Call(node.span, "exp", node.span, None, (node.right,), (), module)
        for node in tree.everything(program)
        if isinstance(node, tree.Binary) and node.operator == "**" and _is_number(node.left, named)
    }


def _is_number(node: tree.Expression, named: Collection[str]) -> bool:
    return isinstance(node, tree.Name) and node.id == _NAME and (bool(node.module) or _NAME not in named)
