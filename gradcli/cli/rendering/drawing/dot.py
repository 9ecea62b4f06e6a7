"""Draws a graph in the DOT language of Graphviz."""

from __future__ import annotations

from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.node_labels import Label, Picture

_HEAD = 'digraph gradcli {\n  node [fontname="monospace", fontsize=11];\n'
_SHAPES = {"leaf": "ellipse", "operation": "box", "group": "box3d"}


def draw(picture: Picture, environment: Environment) -> None:
    """Write the graph; edges point from operands to results."""
    labels = picture.labels()
    nodes = [f'  n{i} [shape={_SHAPES[label.kind]}, label="{_escaped(label)}"];\n' for i, label in enumerate(labels)]
    edges = [f"  n{operand} -> n{i};\n" for i, label in enumerate(labels) for operand in label.operands]
    environment.write("".join([_HEAD, *nodes, *edges, "}\n"]))


def _escaped(label: Label) -> str:
    return "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in label.lines)
