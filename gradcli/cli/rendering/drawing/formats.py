"""The registry of formats that a graph can be drawn in."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.labels import Picture

# The module of each format.
FORMATS = {"tree": "text_tree", "dot": "dot", "mermaid": "mermaid", "svg": "svg", "json": "json_graph"}


def find(name: str) -> Callable[[Picture, Environment], None]:
    """The `draw` function of a format, imported on demand."""
    draw: Callable[[Picture, Environment], None] = import_module(f"gradcli.cli.rendering.drawing.{FORMATS[name]}").draw
    return draw
