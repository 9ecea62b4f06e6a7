"""Draws a graph as a self-contained SVG picture."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from xml.sax.saxutils import escape

from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.graph_layout import Layout, Point, Size, layout
from gradcli.cli.rendering.drawing.labels import Label, Picture
from gradcli.errors import LimitError

# Limits the time, which grows with the square of the number of boxes; more could not be read anyway.
_MOST_BOXES = 1000
_FONT = 13
# An upper bound of the width of common monospaced fonts, relative to their size.
_CHARACTER = 0.62 * _FONT
_LINE = 1.35 * _FONT
_PADDING = 8.0
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}">
<style>
text {{ font: {2}px monospace; text-anchor: middle; fill: #1a1a1a; }}
.title {{ font-weight: bold; }}
rect {{ stroke: #4a5568; fill: #ffffff; }}
.leaf {{ fill: #d9ead3; }}
.group {{ fill: #dce6f5; stroke-width: 2; }}
path {{ fill: none; stroke: #4a5568; marker-end: url(#arrow); }}
</style>
<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<polygon points="0,1 8,4 0,7" fill="#4a5568"/>
</marker>
<rect width="100%" height="100%" style="stroke: none"/>
"""


def draw(picture: Picture, environment: Environment) -> None:
    """Write the picture; edges lead downwards from operands to results.

    Raises LimitError for more than _MOST_BOXES boxes.
    """
    labels = picture.labels()
    if len(labels) > _MOST_BOXES:
        raise LimitError(
            f"a picture of {len(labels):,} boxes is too large", hint=f"draw at most {_MOST_BOXES:,}, or use --to dot"
        )
    sizes = [_size(label) for label in labels]
    placed = layout(sizes, [label.operands for label in labels])
    lines = [_path(points) for points in placed.lines]
    boxes = [_box(label, size, centre) for label, size, centre in zip(labels, sizes, placed.centres)]
    environment.write("".join([_head(placed), *lines, *boxes, "</svg>\n"]))


def _head(placed: Layout) -> str:
    return _HEAD.format(*placed.size, _FONT)


def _size(label: Label) -> Size:
    columns = max(sum(map(_columns, line)) for line in label.lines)
    return Size(columns * _CHARACTER + 2 * _PADDING, len(label.lines) * _LINE + 2 * _PADDING)


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _path(points: Sequence[Point]) -> str:
    """An edge as an SVG path: straight through each layer, curved between layers."""
    _, start, *between = points
    parts = [f"M{start.x:.1f},{start.y:.1f}"]
    for above, below in zip(between[::2], between[1::2]):
        middle = (start.y + above.y) / 2
        parts.append(f"C{start.x:.1f},{middle:.1f} {above.x:.1f},{middle:.1f} {above.x:.1f},{above.y:.1f}")
        if below is not between[-1]:
            parts.append(f"V{below.y:.1f}")
        start = below
    return f'<path d="{"".join(parts)}"/>\n'


def _box(label: Label, size: Size, centre: Point) -> str:
    left, top = centre.x - size.width / 2, centre.y - size.height / 2
    radius = 14 if label.kind == "leaf" else 4
    parts = [
        f'<rect class="{label.kind}" x="{left:.1f}" y="{top:.1f}" width="{size.width:.1f}" '
        f'height="{size.height:.1f}" rx="{radius}"/>\n'
    ]
    for i, line in enumerate(label.lines):
        style = ' class="title"' if i == 0 else ""
        base = top + _PADDING + _LINE * (i + 0.75)
        parts.append(f'<text x="{centre.x:.1f}" y="{base:.1f}"{style}>{escape(line)}</text>\n')
    return "".join(parts)
