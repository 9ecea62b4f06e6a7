"""Writes a graph as a JSON object with every operation."""

from __future__ import annotations

from gradcli import arrays, limits
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.node_labels import Picture, Texts
from gradcli.cli.rendering.render import opening, show_json
from gradcli.evaluation.graph_view import GraphRequest, Group, Vertex
from gradcli.type_hints import Any

# Cost of describing and writing one vertex, in eighths of a step.
_VERTEX = 28


def draw(picture: Picture, environment: Environment) -> None:
    """Write members for the value, the vertices, the edges, and the groups of vertices that are drawn as one."""
    graph, texts = picture.graph, Texts(picture.graph)
    limits.charge_steps(_VERTEX * len(graph.vertices))
    record = {
        "shape": list(arrays.shape(graph.value)),
        "value": graph.value,
        "root": len(graph.vertices) - 1,
        "nodes": [_vertex_json(i, vertex, texts, picture.request) for i, vertex in enumerate(graph.vertices)],
        "edges": [{"from": o, "to": i} for i, vertex in enumerate(graph.vertices) for o in vertex.operands],
        "groups": [_group_json(i, group, texts) for i, group in enumerate(graph.groups)],
    }
    show_json(opening(graph.program.source, picture.namespace) | record, environment)


def _vertex_json(number: int, vertex: Vertex, texts: Texts, request: GraphRequest) -> dict[str, Any]:
    record = {
        "id": number,
        "operation": vertex.operation,
        "grad_fn": vertex.grad_fn,
        "name": vertex.name,
        "label": texts.at(vertex.span) or None,
        "shape": vertex.shape,
        "group": vertex.group,
    }
    if request.values:
        record["value"] = vertex.value
    if request.values and request.gradient:
        record["grad"] = vertex.grad
    return record


def _group_json(number: int, group: Group, texts: Texts) -> dict[str, Any]:
    return {
        "id": number,
        "kind": group.kind,
        "name": group.name,
        "label": texts.at(group.span),
        "times": group.times,
        "parent": group.parent,
    }
