"""Draws a graph in the Mermaid language, which Markdown pages render as a picture."""

from __future__ import annotations

import re

from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.node_labels import Label, Picture

# The delimiters of a box by its kind.
_SHAPES = {"leaf": ("([", "])"), "operation": ("[", "]"), "group": ("[[", "]]")}
# Mermaid reads Markdown and HTML in labels; characters of either are written as character references.
_SPECIAL = re.compile(r"[^\w\s(),=/]|_", re.ASCII)


def draw(picture: Picture, environment: Environment) -> None:
    """Write the graph; edges point from operands to results."""
    labels = picture.labels()
    nodes = [f"  n{i}{_box(label)}\n" for i, label in enumerate(labels)]
    edges = [f"  n{operand} --> n{i}\n" for i, label in enumerate(labels) for operand in label.operands]
    environment.write("".join(["flowchart TD\n", *nodes, *edges]))


def _box(label: Label) -> str:
    left, right = _SHAPES[label.kind]
    return f'{left}"{"<br/>".join(_SPECIAL.sub(_number, line) for line in label.lines)}"{right}'


def _number(match: re.Match[str]) -> str:
    character = match[0]
    return f"#{ord(character)};" if character.isascii() else character
