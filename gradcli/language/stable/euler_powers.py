"""Rewrites powers of Euler's number, `e**x`, as exp(x).

exp(x) is more accurate, as the float `e` is rounded, and stable forms recognize it.
"""

from __future__ import annotations

from collections.abc import Collection

from gradcli.language.syntax import tree

_NAME = "e"


def exponentials(program: tree.Module, named: Collection[str], module: str) -> dict[tree.Expression, tree.Call]:
    """The powers of Euler's number in a program, each as a call of exp of a `module`.

    If `e` is in `named`, it has another value and is not Euler's number.
    """
    return {
        node: tree.Call(node.span, "exp", node.span, None, (node.right,), (), module)
        for node in tree.everything(program)
        if isinstance(node, tree.Binary) and node.operator == "**" and _is_number(node.left, named)
    }


def _is_number(node: tree.Expression, named: Collection[str]) -> bool:
    return isinstance(node, tree.Name) and node.id == _NAME and (bool(node.module) or _NAME not in named)
