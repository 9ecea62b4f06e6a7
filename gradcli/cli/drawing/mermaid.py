"""A graph in the language of Mermaid, which Markdown pages show as a picture."""

from __future__ import annotations

import re

from gradcli.cli.drawing.labels import Label, Picture
from gradcli.cli.environment import Environment

# How the two sides of a box are written.
_SHAPES = {"leaf": ("([", "])"), "operation": ("[", "]"), "group": ("[[", "]]")}
# Mermaid reads Markdown and HTML in labels; what may be part of either is written by its number.
_SPECIAL = re.compile(r"[^\w\s(),=/]|_", re.ASCII)


def draw(picture: Picture, environment: Environment) -> None:
    """Arrows lead from operands to what is computed from them."""
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
