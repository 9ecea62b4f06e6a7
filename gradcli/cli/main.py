"""The command line: from arguments to an exit status, with every error caught on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer

from gradcli.cli import options as opt
from gradcli.cli.environment import Environment
from gradcli.errors import ExitStatus, GradcliError, LimitError, OutputError, PipeClosed, UsageError, nearest
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS

_EVAL_HELP = """Value and leaf gradients of PROGRAM.

Examples:

  gradcli eval 'log(x**q)' x=5 q=3

  gradcli eval 'sum((X@w - y)**2)' X=@data.npz:X y=@data.npz:y w=[0,0] --wrt w --json

  gradcli eval 'sin(x)*exp(x)' x=1 --order 4

  gradcli eval 'sum(log(x**q)*sin(x))' x=@x.npy q=3 --backend torch --device cuda
"""

_CHECK_HELP = """Whether the derivatives of PROGRAM are right: reverse mode beside central differences.

A row for each leaf, of its worst entry, with the number of digits that are known to agree. The exit
status is 1 where a derivative does not agree, or cannot be checked at this point.

Examples:

  gradcli check 'log(x**q)' x=5 q=3

  gradcli check 'cube(t) = t**3 backward(g) = 3*g*t**2; sum(cube(x))' x=[1,2] --order 2
"""

_GRAPH_HELP = """The operations that PROGRAM records, from its value down to its inputs.

Calls of the program's functions, long loops and long runs of one operation
are drawn as one; --expand shows what is in them. JSON has every operation.

Examples:

  gradcli graph 'y = x**q; z = log(y) + sqrt(y)' x=5 q=3 --values

  gradcli graph 'sum(tanh(W@x)**2)' W=[[1,2],[3,4]] x=[5,6] --to svg > graph.svg
"""

_DIFF_HELP = """The derivatives of PROGRAM as formulas.

A name without a value stands for any number. A number that is given as NAME=VALUE is put in for its
name, unless the derivative is by that name; a tensor gives its name a shape. The formulas are
simplified as for real numbers where the functions are smooth: at a kink or a pole, eval has the
conventions, and the formula need not.

Examples:

  gradcli diff 'log(x**q)' --wrt x

  gradcli diff 'a*exp(-x**2/2)' --wrt x --order 2 --to latex

  gradcli diff 'sum((X@w - y)**2)' X='eye(3, 2)' w=[1,2] y=[1,2,3] --wrt w --to python
"""

_OPS_HELP = """The functions of the language, or all about the one called NAME.

NAME may be an alias or an operator. In the derivative g is the derivative by the function's result.

Examples:

  gradcli ops

  gradcli ops atan2

  gradcli ops '**' --json
"""

_BACKENDS_HELP = """The array libraries that can compute: which are installed, their devices, and how to install the rest.

Examples:

  gradcli backends

  gradcli backends --json
"""


app = typer.Typer(
    name="gradcli",
    help="Exact derivatives of a formula: gradcli eval 'log(x**q)' x=5 q=3",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def gradcli(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> ExitStatus:
    if version:
        from gradcli import __version__

        context.obj.write(f"gradcli {__version__}\n")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    return ExitStatus.SUCCESS


@app.command("eval", help=_EVAL_HELP, context_settings={"ignore_unknown_options": True})
def evaluate(
    context: typer.Context,
    words: opt.Words = None,
    file: opt.File = None,
    vars: opt.Vars = None,
    wrt: opt.Wrt = None,
    const: opt.Const = None,
    dtype: opt.Dtype = "float64",
    backend: opt.Backend = "numpy",
    device: opt.Device = None,
    json: opt.Json = False,
    order: opt.Order = None,
    sparse: opt.Sparse = False,
    jacobian: opt.Jacobian = False,
    grad_output: opt.GradOutput = None,
    retain: opt.Retain = None,
    nodes: opt.Nodes = False,
    save: opt.Save = None,
    no_grad: opt.NoGrad = False,
    no_rewrite: opt.NoRewrite = False,
    executor: opt.Executor = None,
    timing: opt.Timing = False,
    fail_on_nonfinite: opt.FailOnNonfinite = False,
    quiet: opt.Quiet = False,
    traceback: opt.Traceback = False,
    max_steps: opt.MaxSteps = MAX_STEPS,
    max_elements: opt.MaxElements = MAX_ELEMENTS,
) -> ExitStatus:
    from gradcli.cli import eval as command

    return command.run(opt.EvalOptions(**context.params), context.obj)


@app.command("check", help=_CHECK_HELP, context_settings={"ignore_unknown_options": True})
def check(
    context: typer.Context,
    words: opt.Words = None,
    file: opt.File = None,
    vars: opt.Vars = None,
    wrt: opt.Wrt = None,
    const: opt.Const = None,
    backend: opt.Backend = "numpy",
    device: opt.Device = None,
    json: opt.Json = False,
    order: opt.CheckOrder = 1,
    tolerance: opt.Tolerance = 1e-6,
    quiet: opt.Quiet = False,
    traceback: opt.Traceback = False,
    max_steps: opt.MaxSteps = MAX_STEPS,
    max_elements: opt.MaxElements = MAX_ELEMENTS,
) -> ExitStatus:
    from gradcli.cli import check as command

    return command.run(opt.CheckOptions(**context.params), context.obj)


@app.command("graph", help=_GRAPH_HELP, context_settings={"ignore_unknown_options": True})
def graph(
    context: typer.Context,
    words: opt.Words = None,
    file: opt.File = None,
    vars: opt.Vars = None,
    wrt: opt.Wrt = None,
    const: opt.Const = None,
    backend: opt.Backend = "numpy",
    device: opt.Device = None,
    to: opt.Drawing = "tree",
    json: opt.Json = False,
    values: opt.Values = False,
    expand: opt.Expand = False,
    grad_output: opt.GradOutput = None,
    no_grad: opt.NoGrad = False,
    no_rewrite: opt.NoRewrite = False,
    traceback: opt.Traceback = False,
    max_steps: opt.MaxSteps = MAX_STEPS,
    max_elements: opt.MaxElements = MAX_ELEMENTS,
) -> ExitStatus:
    from gradcli.cli import graph as command

    return command.run(opt.GraphOptions(**context.params), context.obj)


@app.command("diff", help=_DIFF_HELP, context_settings={"ignore_unknown_options": True})
def differentiate(
    context: typer.Context,
    words: opt.Words = None,
    file: opt.File = None,
    vars: opt.Vars = None,
    wrt: opt.DiffWrt = None,
    order: opt.DiffOrder = 1,
    to: opt.Language = "text",
    simplify: opt.Simplify = False,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
    max_steps: opt.MaxSteps = MAX_STEPS,
    max_elements: opt.MaxElements = MAX_ELEMENTS,
) -> ExitStatus:
    from gradcli.cli import diff as command

    return command.run(opt.DiffOptions(**context.params), context.obj)


@app.command("ops", help=_OPS_HELP)
def operations(
    context: typer.Context,
    name: opt.Name = None,
    json: opt.Json = False,
    traceback: opt.Traceback = False,
) -> ExitStatus:
    from gradcli.cli import ops as command

    return command.run(name, json, context.obj)


@app.command("backends", help=_BACKENDS_HELP)
def backends(context: typer.Context, json: opt.Json = False, traceback: opt.Traceback = False) -> ExitStatus:
    from gradcli.cli import backends as command

    return command.run(json, context.obj)


def main(arguments: Sequence[str], environment: Environment) -> ExitStatus:
    """Run a command line; every error becomes a message and an exit status."""
    try:
        return _dispatch(list(arguments), environment)
    except PipeClosed:
        _abandon_stdout()
        return ExitStatus.SUCCESS
    except KeyboardInterrupt:
        environment.complain("interrupted")
        return ExitStatus.INTERRUPTED
    except Exception as error:
        return _report(_explained(error), error, arguments, environment)


def _dispatch(arguments: list[str], environment: Environment) -> ExitStatus:
    command = typer.main.get_command(app)
    _check_options(command, arguments)
    try:
        status = command.main(args=arguments, prog_name="gradcli", standalone_mode=False, obj=environment)
    except typer.TyperException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "gradcli")
        raise UsageError(_usage_message(error), hint=f"{path} --help shows the usage") from None
    except typer.Exit as stop:
        status = stop.exit_code
    return ExitStatus(status or 0)


def _check_options(command: Any, arguments: Sequence[str]) -> None:
    """Raise UsageError for a word that starts with -- and is no option.

    The parser lets unknown options through, so that a program may start with a minus.
    """
    first = next((i for i, a in enumerate(arguments) if not a.startswith("-")), len(arguments))
    _check_words(command, arguments[:first])
    if first == len(arguments):
        return
    name = arguments[first]
    if name not in command.commands:
        close = nearest(name, command.commands)
        hint = f"did you mean '{close}'?" if close else f"gradcli eval {name!r} evaluates a program"
        raise UsageError(f"there is no command {name!r}", hint=hint)
    _check_words(command.commands[name], arguments[first + 1 :])


def _check_words(command: Any, arguments: Sequence[str]) -> None:
    options = {name: parameter for parameter in command.params for name in parameter.opts}
    path = "gradcli" if command.name == "gradcli" else f"gradcli {command.name}"
    words = iter(arguments)
    for word in words:
        if word == "--":
            return
        if not word.startswith("--"):
            continue
        name, equals, _ = word.partition("=")
        if name in options:
            if not equals and not getattr(options[name], "is_flag", False):
                next(words, None)
        elif name != "--help":
            close = nearest(name, [*options, "--help"])
            hint = f"did you mean {close}?" if close else f"{path} --help lists the options"
            raise UsageError(f"there is no option {name}", hint=hint)


def _usage_message(error: Any) -> str:
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    return str(text).rstrip(".")


def _explained(error: Exception) -> GradcliError:
    if isinstance(error, GradcliError):
        return error
    if isinstance(error, OSError):
        return OutputError(f"cannot write: {error.strerror or error}")
    if isinstance(error, MemoryError):
        return LimitError("out of memory", hint="make the arrays smaller")
    return GradcliError(
        f"internal error: {type(error).__name__}: {error}",
        hint="this is a fault of gradcli; --traceback shows where",
    )


def _report(error: GradcliError, cause: Exception, arguments: Sequence[str], environment: Environment) -> ExitStatus:
    if "--traceback" in arguments:
        import traceback

        environment.complain("".join(traceback.format_exception(cause)).rstrip())
    if _wants_json(arguments):
        from gradcli.io import json_text

        environment.complain(json_text.dumps({"error": error.as_json()}))
    else:
        environment.complain(error.report())
    if error.kind == "output":
        _abandon_stdout()
    return error.exit_status


def _wants_json(arguments: Sequence[str]) -> bool:
    return "--json" in arguments or "--to=json" in arguments or ("--to", "json") in pairwise(arguments)


def _abandon_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush cannot fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def run() -> None:
    """The entry point of the `gradcli` command."""
    sys.exit(main(sys.argv[1:], Environment.of_process()))
