"""`gradcli graph`: the recorded operations of a program and what they depend on."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer

from gradcli import arrays, limits
from gradcli.cli import inputs
from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.drawing.labels import Label, Texts, labels
from gradcli.cli.environment import Environment
from gradcli.cli.opening import opening
from gradcli.cli.render import Table, number_text, show
from gradcli.errors import ExitStatus, UsageError, nearest
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.run import graph as graphs
from gradcli.run.graph import Graph, GraphRequest, Vertex
from gradcli.run.groups import Group
from gradcli.run.outline import outline

_FORMATS = ("tree", "dot", "mermaid", "svg", "json")

_HELP = """\
Calls of the program's functions, long loops and long runs of one operation
are drawn as one; --expand shows what is in them. JSON has every operation.

Examples:

  gradcli graph 'y = x**q; z = log(y) + sqrt(y)' x=5 q=3 --values

  gradcli graph 'sum(tanh(W@x)**2)' W=[[1,2],[3,4]] x=[5,6] --to svg > graph.svg
"""


class GraphOptions(NamedTuple):
    """What `gradcli graph` was asked for."""

    words: opt.Words = None
    file: opt.File = None
    vars: opt.Vars = None
    wrt: opt.Wrt = None
    const: opt.Const = None
    backend: opt.Backend = "numpy"
    device: opt.Device = None
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="tree, dot, mermaid, svg or json.")] = "tree"
    json: opt.Json = False
    values: Annotated[bool, typer.Option("--values", help="The value of each node and the gradient by it.")] = False
    expand: Annotated[bool, typer.Option("--expand", help="Every operation by itself.")] = False
    grad_output: opt.GradOutput = None
    no_grad: opt.NoGrad = False
    no_rewrite: opt.NoRewrite = False
    traceback: opt.Traceback = False
    max_steps: opt.MaxSteps = MAX_STEPS
    max_elements: opt.MaxElements = MAX_ELEMENTS


def run(options: GraphOptions, environment: Environment) -> ExitStatus:
    """Run a program and show its graph; see `gradcli graph --help`."""
    form = _format(options)
    namespace = arrays.chosen(options.backend, options.device)
    with arrays.using_namespace(namespace), limits.max_elements(options.max_elements):
        request = _request(options, environment)
        graph = graphs.run(request)
    if form == "json":
        from gradcli.io import json_text

        environment.write(json_text.dumps(_json(graph, request, namespace)) + "\n")
        return ExitStatus.SUCCESS
    drawn = labels(graph, outline(graph, expand=options.expand), request)
    if form == "tree":
        show(_tables(graph, drawn), environment)
    else:
        environment.write(_text(form, drawn))
    return ExitStatus.SUCCESS


def _format(options: GraphOptions) -> str:
    if options.json and options.to not in ("tree", "json"):
        raise UsageError(f"--json and --to {options.to} contradict each other", hint="leave out one of them")
    form = "json" if options.json else options.to
    if form not in _FORMATS:
        close = nearest(form, _FORMATS)
        hint = f"did you mean '{close}'?" if close else f"--to {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}"
        raise UsageError(f"there is no format {form!r}", hint=hint)
    for option, given in (("--grad-output", options.grad_output is not None), ("--no-grad", options.no_grad)):
        if given and not options.values:
            raise UsageError(f"{option} says which values to show", hint=f"--values {option}")
    if options.no_grad and options.grad_output is not None:
        raise UsageError("--no-grad and --grad-output contradict each other", hint="leave out one of them")
    return form


def _request(options: GraphOptions, environment: Environment) -> GraphRequest:
    program, bindings, wrt = inputs.gather(options, environment, "float64")
    return GraphRequest(
        program=program,
        bindings=bindings,
        wrt=wrt,
        values=options.values,
        gradient=not options.no_grad,
        grad_output=inputs.cotangent(options.grad_output, "float64", options.max_steps),
        rewrite=not options.no_rewrite,
        max_steps=options.max_steps,
    )


def _text(form: str, drawn: list[Label]) -> str:
    if form == "dot":
        from gradcli.cli.drawing import dot

        return dot.text(drawn)
    if form == "mermaid":
        from gradcli.cli.drawing import mermaid

        return mermaid.text(drawn)
    from gradcli.cli.drawing import svg

    return svg.text(drawn)


def _tables(graph: Graph, drawn: list[Label]) -> list[Table]:
    from gradcli.cli.drawing import text_tree

    columns = {"program": 2, "shape": 3, "value": 4, "gradient": 5}
    used = {name: i for name, i in columns.items() if any(label[i] for label in drawn)}
    rows = []
    for line in text_tree.lines(drawn):
        label = drawn[line.number]
        # Where a box is only referred to, its text says which it is.
        rows.append((line.text, *(str(label[i]) if line.first or i == 2 else "" for i in used.values())))
    tables = [Table((), [("value", number_text(graph.value))]), Table(("graph", *used), rows, drawn=True)]
    if graph.rewritten:
        tables.append(Table(("rewritten", "as"), [(r.rule.pattern, r.rule.stable) for r in graph.rewritten]))
    return tables


def _json(graph: Graph, request: GraphRequest, namespace: Any) -> dict[str, Any]:
    texts = Texts(graph)
    return opening(graph.program.source, namespace) | {
        "shape": list(arrays.shape(graph.value)),
        "value": graph.value,
        "root": len(graph.vertices) - 1,
        "nodes": [_vertex_json(i, vertex, texts, request) for i, vertex in enumerate(graph.vertices)],
        "edges": [{"from": o, "to": i} for i, vertex in enumerate(graph.vertices) for o in vertex.operands],
        "groups": [_group_json(i, group, texts) for i, group in enumerate(graph.groups)],
    }


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


COMMAND = Command(GraphOptions, run, _HELP)
