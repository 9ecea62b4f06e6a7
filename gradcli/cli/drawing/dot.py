"""A graph in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.cli.drawing.labels import Label

_HEAD = 'digraph gradcli {\n  node [fontname="monospace", fontsize=11];\n'
_SHAPES = {"leaf": "ellipse", "operation": "box", "group": "box3d"}


def text(labels: Sequence[Label]) -> str:
    """Arrows lead from operands to what is computed from them."""
    nodes = [f'  n{i} [shape={_SHAPES[label.kind]}, label="{_escaped(label)}"];\n' for i, label in enumerate(labels)]
    edges = [f"  n{operand} -> n{i};\n" for i, label in enumerate(labels) for operand in label.operands]
    return "".join([_HEAD, *nodes, *edges, "}\n"])


def _escaped(label: Label) -> str:
    return "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in label.lines)
