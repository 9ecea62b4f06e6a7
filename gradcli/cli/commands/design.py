"""The command `gradcli design`: optimal designs of experiments."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, map_arguments
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.errors import EvaluationError, ExitStatus, UsageError
from gradcli.language.syntax.lexer import MAX_LENGTH
from gradcli.models.designs.design_regions import input_value
from gradcli.models.designs.optimal_designs import CRITERIA, FAMILIES, DesignRequest, designed
from gradcli.type_hints import Annotated

_HELP = """\
Inputs have a range, c=0.01..1, or levels, c=[1,2,5]; the other names are parameters, at whose
values the design is best. A model that is linear in its parameters needs none.

Examples:

  gradcli design 'y ~ V*c/(K+c)' V=200 K=0.06 c=0.01..1 --rows 12

  gradcli design 'y ~ V*c/(K+c)' V=200 K=0.06 c=0.01..1 --derive 'V/K'

  gradcli design 'y ~ a + b*x + c*x**2' x=-1..1 --criterion A

  gradcli design 'y ~ 1/(1 + exp(-(a + b*x)))' a=0 b=1 x=-5..5 --family binomial
"""
_EXAMPLE = "gradcli design 'y ~ V*c/(K+c)' V=200 K=0.06 c=0.01..1"


class DesignOptions(opt.ProgramRun):
    """The options of `gradcli design`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="MODEL NAME=LOW..HIGH... [NAME=VALUE]...",
            help="The model, y ~ f, or - for standard input; then the ranges or levels of inputs, and the likely values of "
            "parameters: c=0.01..1, x=[-1,0,1], K=0.06.",
        ),
    ] = None
    file: opt.File = None
    vars: opt.Vars = None
    rows: Annotated[
        int | None,
        opt.Option(
            "--rows",
            brief="An exact design with N rows too.",
            metavar="N",
            min=1,
            help="Find an exact design of N rows too, and its efficiency.",
        ),
    ] = None
    criterion: Annotated[
        str | None,
        opt.Option(
            "--criterion",
            brief="What is to be best; default: D.",
            metavar="|".join(CRITERIA),
            help="D, the determinant of the information; A, the sum of the variances of the parameters; c, the variance of "
            "the quantity --derive. Default: D, and c with --derive.",
        ),
    ] = None
    derive: Annotated[
        str | None,
        opt.Option(
            "--derive",
            brief="The quantity of criterion c.",
            metavar="EXPR",
            help="The quantity of parameters whose variance is to be least, as in 'V/K', or half=log(2)/k.",
        ),
    ] = None
    fix: Annotated[
        list[str] | None,
        opt.Option(
            "--fix",
            brief="These are known.",
            metavar="NAMES",
            help="These have their values, and are not estimated.",
        ),
    ] = None
    sigma: Annotated[
        str,
        opt.Option(
            "--sigma",
            brief="The deviation of the response.",
            metavar="NUMBER|EXPR",
            help="The standard deviation of the response: a number, or an expression of inputs and known names, as in "
            "0.1*c.",
        ),
    ] = "1"
    family: Annotated[
        str,
        opt.Option("--family", metavar="|".join(FAMILIES), help="The distribution of the response, whose mean is f."),
    ] = "gaussian"
    json: opt.Json = False
    quiet: opt.Quiet = False


def run(options: DesignOptions, environment: Environment) -> ExitStatus:
    """Design and print; see `gradcli design --help`."""
    text, words = _model_and_words(options, environment)
    for word in words:
        if not inputs.is_binding(word):
            raise UsageError(f"'{word}' gives no name a value", hint=f"a design needs no data: {_EXAMPLE}")
    values = {
        name: value() for name, value in inputs.bindings_of(words, "float64", options, environment, input_value).items()
    }
    for name, value in inputs.values_of_vars_option(options, environment, "float64", values).items():
        values[name] = value()
    asked = DesignRequest(
        options.rows, options.criterion, options.derive, inputs.names_of(options.fix), options.sigma, options.family
    )
    found = designed(text, values, asked, (options.max_steps, options.max_elements))
    if options.json:
        model_report.report({"model": text}, found, environment)
    else:
        model_report.show_tables(found.report(), environment)
    if found.left_out and not options.quiet:
        environment.write_error(
            f"warning: {found.left_out:,} points of the region have no finite information and are left out"
        )
    if not found.converged:
        hint = "the best one so far is printed"
        if found.left_out:
            hint += "; the information may grow without bound where the model has no value"
        raise EvaluationError("the best design was not found", hint=hint)
    return ExitStatus.SUCCESS


def _model_and_words(options: DesignOptions, environment: Environment) -> tuple[str, Sequence[str]]:
    """The text of the model, and the words that give names values."""
    words = options.words or []
    if options.file is None and words[:1] == ["-"] and options.vars != "-":
        return environment.read_stdin("the model", MAX_LENGTH), words[1:]
    return map_arguments.program_of(options, environment, _EXAMPLE)


COMMAND = Command(DesignOptions, run, _HELP)
