"""The command `gradcli graph`: shows the recorded operations of a program and their dependencies."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.drawing.node_labels import Picture
from gradcli.errors import ExitStatus, UsageError, did_you_mean, locating
from gradcli.evaluation import graph_view as graphs
from gradcli.evaluation.graph_view import GraphRequest
from gradcli.type_hints import Annotated

# The formats that a graph is drawn in, and their modules in `rendering.drawing`.
FORMATS = {"tree": "text_tree", "dot": "dot", "mermaid": "mermaid", "svg": "svg", "json": "json_graph"}
*_FIRST, _LAST = FORMATS
_FORMATS_HELP = f"{', '.join(_FIRST)} or {_LAST}"
_HELP = """\
Calls of the program's functions, long loops and long runs of one operation
are drawn as one; --expand shows what is in them. JSON has every operation.

Examples:

  gradcli graph 'y = x**q; z = log(y) + sqrt(y)' x=5 q=3 --values

  gradcli graph 'sum(tanh(W@x)**2)' W=[[1,2],[3,4]] x=[5,6] --to svg > g.svg

  gradcli graph 'f(t) = t**2; f(x) + f(2*x)' x=3 --expand
"""


class GraphOptions(opt.ProgramRun):
    """The options of `gradcli graph`."""

    words: opt.Words = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    wrt: opt.Wrt = None
    const: opt.Const = None
    backend: opt.Backend = "numpy"
    device: opt.Device = None
    to: Annotated[
        str, opt.Option("--to", brief="How it is written.", metavar="|".join(FORMATS), help=f"{_FORMATS_HELP}.")
    ] = "tree"
    json: opt.Json = False
    values: Annotated[
        bool,
        opt.Option(
            "--values", brief="With values and gradients.", help="The value of each node and the gradient by it."
        ),
    ] = False
    expand: opt.Expand = False
    grad_output: opt.GradOutput = None
    no_grad: opt.NoGrad = False
    no_rewrite: opt.NoRewrite = False


def run(options: GraphOptions, environment: Environment) -> ExitStatus:
    """Run a program and show its graph; see `gradcli graph --help`."""
    form = _format(options)
    with inputs.computing(options) as namespace:
        request = _request(options, environment)
        program = request.program
        # Drawing is charged to the limits too.
        with locating(program.source, program.body[-1].span):
            graph = graphs.run(request)
            _drawing_function(form)(Picture(graph, request, options.expand, namespace), environment)
    return ExitStatus.SUCCESS


def _format(options: GraphOptions) -> str:
    if options.json and options.to not in ("tree", "json"):
        raise UsageError(f"--json and --to {options.to} contradict each other", hint="leave out one of them")
    form = "json" if options.json else options.to
    if form not in FORMATS:
        hint = did_you_mean(form, FORMATS, f"--to {_FORMATS_HELP}")
        raise UsageError(f"there is no format {form!r}", hint=hint)
    for option, given in (("--grad-output", options.grad_output is not None), ("--no-grad", options.no_grad)):
        if given and not options.values:
            raise UsageError(f"{option} says which values to show", hint=f"--values {option}")
    if options.no_grad and options.grad_output is not None:
        raise UsageError("--no-grad and --grad-output contradict each other", hint="leave out one of them")
    return form


def _drawing_function(form: str) -> Callable[[Picture, Environment], None]:
    """The `draw` function of a format, imported on demand."""
    draw: Callable[[Picture, Environment], None] = import_module(f"gradcli.cli.rendering.drawing.{FORMATS[form]}").draw
    return draw


def _request(options: GraphOptions, environment: Environment) -> GraphRequest:
    program, bindings, wrt = inputs.gather(options, environment, "float64")
    return GraphRequest(
        program=program,
        bindings=bindings,
        wrt=wrt,
        values=options.values,
        gradient=not options.no_grad,
        grad_output=inputs.cotangent(options.grad_output, "float64"),
        rewrite=not options.no_rewrite,
    )


COMMAND = Command(GraphOptions, run, _HELP)
