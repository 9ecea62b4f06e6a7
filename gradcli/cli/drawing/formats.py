"""The formats that a graph can be drawn in."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from gradcli.cli.drawing.labels import Picture
from gradcli.cli.environment import Environment

# The file of each.
FORMATS = {"tree": "text_tree", "dot": "dot", "mermaid": "mermaid", "svg": "svg", "json": "json_graph"}


def find(name: str) -> Callable[[Picture, Environment], None]:
    """What draws in this format, which is loaded now."""
    draw: Callable[[Picture, Environment], None] = import_module(f"gradcli.cli.drawing.{FORMATS[name]}").draw
    return draw
