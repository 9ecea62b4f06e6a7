"""The hint that writes a call outside the domain of a real function for complex numbers: `sqrt(-1+0j)`."""

from __future__ import annotations

from gradcli.errors import Span
from gradcli.language.syntax import tree

# Longer expressions are not repeated in messages.
_LONGEST = 60
# Expressions to which `+0j` can be appended.
_SUMMANDS = (tree.Number, tree.Name, tree.Unary, tree.Binary, tree.Call, tree.Index, tree.Attribute)


def complex_operand(program: tree.Module, span: Span) -> str | None:
    """The call or power at a span with `+0j` added to its operand; None for anything else, and where it is long."""
    if span.end - span.start > _LONGEST:
        return None
    for node in tree.all_nodes(program):
        if node.span != span:
            continue
        if isinstance(node, tree.Call) and node.receiver is None and len(node.arguments) == 1:
            operand = node.arguments[0]
        elif isinstance(node, tree.Binary) and node.operator == "**":
            operand = node.left
        else:
            continue
        if isinstance(operand, _SUMMANDS):
            before, behind = (
                program.source[span.start : operand.span.start],
                program.source[operand.span.end : span.end],
            )
            text = f"{program.source[operand.span.start : operand.span.end]}+0j"
            return f"{before}{text if before.endswith('(') else f'({text})'}{behind}"
    return None
