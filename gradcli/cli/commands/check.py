"""The command `gradcli check`: compares the derivatives of a program with differences or proved values."""

from __future__ import annotations

import math

from gradcli import arrays
from gradcli.calculus.checks.gradcheck import KINK, MISMATCH, NONFINITE, UNRESOLVED, Check, Report
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering.render import opening, show, show_json
from gradcli.compiled.derivative_check import Checked, check_program
from gradcli.errors import DifferentiationError, ExitStatus, UsageError
from gradcli.io.text_tables import Table, number_text
from gradcli.language.names.resolution import resolve
from gradcli.language.syntax.tree import Module
from gradcli.type_hints import Annotated, Any

_HEADER = ("leaf", "order", "index", "reverse", "{}", "digits", "agrees")
# The text of the last column, and of the error message, for each kind of problem.
_WORDS = {
    MISMATCH: ("no", "reverse mode and {1} disagree on the derivative by {0}"),
    NONFINITE: ("not finite", "the derivative by {} cannot be checked where numbers are not finite"),
    KINK: ("kink", "the derivative by {} cannot be checked at a kink"),
    UNRESOLVED: ("unknown", "the derivative by {} cannot be checked, as the differences do not settle"),
}
# The codes of the warnings that explain a problem.
_CODES = {NONFINITE: "nonfinite", KINK: "nonsmooth"}

_HELP = """\
A row for each name, of its worst element, with the number of digits that are known to agree. The exit
status is 1 where a derivative does not agree, or cannot be checked at this point. With --certify the
derivatives of functions with a 'backward' clause are compared with those that they have without it,
which are proved, and the number of digits is that of the derivative in float64 that are right.

Examples:

  gradcli check 'log(x**q)' x=5 q=3

  gradcli check 'sin(x)*exp(y)' x=1 y=2 --order 2

  gradcli check 'cube(t) = t**3 backward(g) = 3*g*t**2; cube(x)' x=2

  gradcli check 'cube(t) = t**3 backward(g) = 3*g*t**2; sum(cube(x))' x=[1,2] --certify
"""


class CheckOptions(opt.ProgramRun):
    """The options of `gradcli check`."""

    words: opt.Words = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    wrt: opt.Wrt = None
    const: opt.Const = None
    backend: opt.Backend = "numpy"
    device: opt.Device = None
    json: opt.Json = False
    order: Annotated[
        int, opt.order("Check every order up to N against the one below it.", brief="Check all orders up to N.")
    ] = 1
    tolerance: Annotated[
        float,
        opt.Option(
            "--tolerance",
            brief="How far derivatives may differ.",
            metavar="X",
            help="How far derivatives may differ, relative to the larger.",
        ),
    ] = 1e-6
    certify: Annotated[
        bool, opt.Option("--certify", help="Compare with derivatives that are proved, not with differences.")
    ] = False
    quiet: opt.Quiet = False


def run(options: CheckOptions, environment: Environment) -> ExitStatus:
    """Compare derivatives with differences or proofs and print the result; see `gradcli check --help`."""
    _check(options)
    with inputs.computing(options) as namespace:
        program, bindings, wrt = inputs.gather(options, environment, "float64")
        if not wrt:
            raise UsageError("there is no derivative to check", hint="gradcli check 'log(x**q)' x=5 q=3")
        checked = check_program(
            program, bindings, wrt, order=options.order, tolerance=options.tolerance, by_proof=options.certify
        )
    known = "proved" if options.certify else "difference"
    if options.json:
        show_json(_json(program.source, checked.report, namespace, known), environment)
    else:
        header = tuple(title.format(known) for title in _HEADER)
        show([Table(header, [*map(_cells, checked.report.rows)])], environment)
    if options.quiet or checked.report.ok:
        return ExitStatus.SUCCESS if checked.report.ok else ExitStatus.FAILURE
    raise _disagreement(checked, program, "proof" if options.certify else "differences")


def _check(options: CheckOptions) -> None:
    if options.order < 1:
        raise UsageError("--order is 1 or more", hint="--order 1 checks the gradient")
    if not 0 < options.tolerance < 1:
        raise UsageError("--tolerance is between 0 and 1", hint="--tolerance 1e-6 asks for six digits")


def _json(text: str, report: Report, namespace: arrays.Namespace | None, known: str) -> dict[str, Any]:
    return opening(text, namespace) | {
        "agrees": report.ok,
        "checks": [_row_json(row, known) for row in report.rows],
    }


def _row_json(row: Check, known: str) -> dict[str, Any]:
    record = {
        "leaf": row.leaf,
        "order": row.order,
        "index": row.entry,
        "reverse": row.reverse,
        known: row.difference,
        "error": row.error,
        "digits": row.digits,
        "agrees": row.agrees,
    }
    return record if row.agrees else record | {"problem": row.problem}


def _cells(row: Check) -> tuple[str, ...]:
    index = str(list(row.entry)) if row.entry else "-"
    verdict = "yes" if row.problem is None else _WORDS[row.problem][0]
    known = _known_text(row.difference, row.uncertainty)
    return row.leaf, str(row.order), index, number_text(row.reverse), known, str(row.digits), verdict


def _known_text(value: float, uncertainty: float) -> str:
    """A number rounded to the digits that its uncertainty leaves meaningful."""
    if value == 0 or uncertainty == 0 or not math.isfinite(value) or not math.isfinite(uncertainty):
        return str(value)
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(uncertainty))
    return str(float(f"{value:.{min(16, max(0, digits))}e}"))


def _disagreement(checked: Checked, program: Module, by: str) -> DifferentiationError:
    """The error that names the leaves that do not agree, and the cause where it is known."""
    problem = next(p for p in _WORDS if any(row.problem == p for row in checked.report.rows))
    leaves = dict.fromkeys(f"'{row.leaf}'" for row in checked.report.rows if row.problem == problem)
    message = _WORDS[problem][1].format(" and ".join(leaves), by)
    if problem == MISMATCH:
        return _mismatch(message, program)
    cause = next((w for w in checked.warnings if w.code == _CODES.get(problem)), None)
    return DifferentiationError(
        message if cause is None else f"{message}: {cause.message}",
        hint="check at another point, or leave this name out with --const",
        span=cause and cause.span,
        source=cause and program.source,
    )


def _mismatch(message: str, program: Module) -> DifferentiationError:
    clauses = [(define.name, define.backward.span) for define in resolve(program).with_backward if define.backward]
    if not clauses:
        return DifferentiationError(
            message,
            hint="it is so by intention for 'detach', and for functions of a symmetric matrix, "
            "which is (A + A.T)/2, where a single entry is varied",
        )
    names = " and ".join(f"'{name}'" for name, _ in clauses)
    return DifferentiationError(
        message,
        hint=f"check the 'backward' clause of {names}, which is written by hand",
        span=clauses[0][1],
        source=program.source,
    )


COMMAND = Command(CheckOptions, run, _HELP)
