"""The options that commands share, declared once."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from gradcli.limits import MAX_ELEMENTS, MAX_STEPS

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PROGRAM [NAME=VALUE]...",
        help="The program, or - for standard input; then the values of its names: x=5, W=[[1,2],[3,4]], "
        "x=linspace(0,1,5), x=@data.csv:column.",
        show_default=False,
    ),
]
Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="A function, constant or operator.", show_default=False)
]
File = Annotated[str | None, typer.Option("--file", metavar="PATH", help="Read the program from a file.")]
Vars = Annotated[
    str | None,
    typer.Option(
        "--vars", metavar="PATH|-", help="Read values from a JSON object of names to numbers or nested lists."
    ),
]
Wrt = Annotated[
    str | None,
    typer.Option("--wrt", metavar="NAMES", help="Differentiate by these, as in x,q; default: every bound name."),
]
Const = Annotated[str | None, typer.Option("--const", metavar="NAMES", help="Do not differentiate by these.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="float64|float32", help="The precision of every number.")]
Backend = Annotated[
    str, typer.Option("--backend", metavar="numpy|torch|cupy|jax", help="The array library that computes.")
]
Device = Annotated[
    str | None,
    typer.Option("--device", metavar="cpu|cuda|cuda:N", help="Where it computes; default: cpu, for cupy cuda."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")]
Order = Annotated[int | None, typer.Option("--order", metavar="N", help="All derivatives up to order N.")]
Sparse = Annotated[
    bool, typer.Option("--sparse", help="The derivatives of order 2 as coordinates: those that may differ from 0.")
]
Jacobian = Annotated[bool, typer.Option("--jacobian", help="The derivative of each element of the value by each leaf.")]
GradOutput = Annotated[
    str | None, typer.Option("--grad-output", metavar="EXPR", help="The cotangent of a value that is no scalar.")
]
Retain = Annotated[
    str | None, typer.Option("--retain", metavar="NAMES", help="The gradients of these intermediates too.")
]
Nodes = Annotated[bool, typer.Option("--nodes", help="A row for every named value and its place in the graph.")]
Save = Annotated[str | None, typer.Option("--save", metavar="PATH.npz", help="Write the arrays in full precision.")]
NoGrad = Annotated[bool, typer.Option("--no-grad", help="The value alone.")]
NoRewrite = Annotated[
    bool, typer.Option("--no-rewrite", help="Evaluate log(x**q) and its like as they stand, not in a stable form.")
]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="eager|compiled",
        help="How to compute value and gradients: operation by operation, or as one recorded program, which the "
        "backend compiles; default: compiled for large arrays.",
    ),
]
Timing = Annotated[
    bool,
    typer.Option(
        "--timing",
        help="The seconds spent on import (of array libraries), parse (of the program), read (the values of its names), "
        "record, compile, transfer (to the device and back) and run; 0 for what did not happen.",
    ),
]
FailOnNonfinite = Annotated[
    bool, typer.Option("--fail-on-nonfinite", help="Exit with status 1 where a result is nan or infinite.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No warnings on standard error.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where in gradcli an error was raised.")]
MaxSteps = Annotated[int, typer.Option("--max-steps", metavar="N", min=1, help="Stop a program after so many steps.")]
MaxElements = Annotated[
    int, typer.Option("--max-elements", metavar="N", min=1, help="Stop a program that computes more array elements.")
]
CheckOrder = Annotated[
    int, typer.Option("--order", metavar="N", help="Check every order up to N against the one below it.")
]
Tolerance = Annotated[
    float, typer.Option("--tolerance", metavar="X", help="How far derivatives may differ, relative to the larger.")
]
DiffWrt = Annotated[
    str | None,
    typer.Option("--wrt", metavar="NAMES", help="Differentiate by these, as in x,q; default: every name it reads."),
]
DiffOrder = Annotated[int, typer.Option("--order", metavar="N", help="The derivatives of order N.")]
Language = Annotated[str, typer.Option("--to", metavar="text|latex|python|c|sql", help="The language of the formulas.")]
Simplify = Annotated[bool, typer.Option("--simplify", help="Simplify further by SymPy, from the extra gradcli[sympy].")]
Drawing = Annotated[str, typer.Option("--to", metavar="FORMAT", help="tree, dot, mermaid, svg or json.")]
Values = Annotated[bool, typer.Option("--values", help="The value of each node and the gradient by it.")]
Expand = Annotated[bool, typer.Option("--expand", help="Every operation by itself.")]


class EvalOptions(NamedTuple):
    """What `gradcli eval` was asked for."""

    words: list[str] | None = None
    file: str | None = None
    vars: str | None = None
    wrt: str | None = None
    const: str | None = None
    dtype: str = "float64"
    backend: str = "numpy"
    device: str | None = None
    json: bool = False
    order: int | None = None
    sparse: bool = False
    jacobian: bool = False
    grad_output: str | None = None
    retain: str | None = None
    nodes: bool = False
    save: str | None = None
    no_grad: bool = False
    no_rewrite: bool = False
    executor: str | None = None
    timing: bool = False
    fail_on_nonfinite: bool = False
    quiet: bool = False
    traceback: bool = False
    max_steps: int = MAX_STEPS
    max_elements: int = MAX_ELEMENTS


class CheckOptions(NamedTuple):
    """What `gradcli check` was asked for."""

    words: list[str] | None = None
    file: str | None = None
    vars: str | None = None
    wrt: str | None = None
    const: str | None = None
    backend: str = "numpy"
    device: str | None = None
    json: bool = False
    order: int = 1
    tolerance: float = 1e-6
    quiet: bool = False
    traceback: bool = False
    max_steps: int = MAX_STEPS
    max_elements: int = MAX_ELEMENTS


class GraphOptions(NamedTuple):
    """What `gradcli graph` was asked for."""

    words: list[str] | None = None
    file: str | None = None
    vars: str | None = None
    wrt: str | None = None
    const: str | None = None
    backend: str = "numpy"
    device: str | None = None
    to: str = "tree"
    json: bool = False
    values: bool = False
    expand: bool = False
    grad_output: str | None = None
    no_grad: bool = False
    no_rewrite: bool = False
    traceback: bool = False
    max_steps: int = MAX_STEPS
    max_elements: int = MAX_ELEMENTS


class DiffOptions(NamedTuple):
    """What `gradcli diff` was asked for."""

    words: list[str] | None = None
    file: str | None = None
    vars: str | None = None
    wrt: str | None = None
    order: int = 1
    to: str = "text"
    simplify: bool = False
    json: bool = False
    traceback: bool = False
    max_steps: int = MAX_STEPS
    max_elements: int = MAX_ELEMENTS
