"""The command `gradcli series`: prints the Taylor polynomial of a program."""

from __future__ import annotations

from gradcli import limits
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.cli.rendering.render import warning_json, warning_text
from gradcli.errors import ExitStatus, UsageError, did_you_mean
from gradcli.evaluation.nested_lists import items
from gradcli.io.text_tables import Table
from gradcli.limits import MAX_PRECISION
from gradcli.models.expansions.power_series import LANGUAGES, ORDER, SeriesAnswer, expand
from gradcli.models.expansions.taylor_coefficients import SeriesRequest
from gradcli.models.results import as_json
from gradcli.type_hints import Annotated, Any

_HELP = """\
Around the values of its names. What is rational there has fractions as its coefficients, which are
exact; that and --over need the extra gradcli[digits].

Examples:

  gradcli series 'exp(sin(x))' x=0 --order 8

  gradcli series 'log(x)' x=1 --order 4 --over 0.9..1.1

  gradcli series 'exp(x)*cos(y)' x=0 y=0 --order 3 --to latex

  gradcli series 'sin(x)/x' x=0 --json
"""


class SeriesOptions(opt.ProgramRun):
    """The options of `gradcli series`."""

    words: opt.Words = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    wrt: Annotated[
        list[str] | None,
        opt.wrt("The series is in these; default: every name with a value.", "The series is in these names."),
    ] = None
    const: Annotated[list[str] | None, opt.const("It is not in these.")] = None
    order: Annotated[
        int, opt.order("The highest degree, that of all powers together.", brief="The highest degree.")
    ] = ORDER
    to: Annotated[
        str,
        opt.Option(
            "--to",
            brief=True,
            metavar="|".join(LANGUAGES),
            help="The language of the polynomial.",
        ),
    ] = "text"
    over: Annotated[
        list[str] | None,
        opt.Option(
            "--over",
            brief="A proved bound of the error over a range.",
            metavar="[NAME=]LOW..HIGH",
            help="A bound of the distance from PROGRAM over this range, which is proved.",
        ),
    ] = None
    digits: opt.Digits = None
    max_precision: opt.MaxPrecision = MAX_PRECISION
    json: opt.Json = False
    quiet: opt.Quiet = False


def run(options: SeriesOptions, environment: Environment) -> ExitStatus:
    """Expand and print; see `gradcli series --help`."""
    if options.to not in LANGUAGES:
        hint = did_you_mean(options.to, LANGUAGES, f"--to is one of {', '.join(LANGUAGES)}")
        raise UsageError(f"there is no language {options.to!r} to write a series in", hint=hint)
    inputs.check_digits(options)
    with limits.within(options.max_steps, options.max_elements):
        sources = inputs.sources(options, environment, "float64")
        question = SeriesRequest(
            sources.program, sources.bindings, inputs.leaves(sources.values, options), options.order
        )
        answer = expand(question, over=_ranges(options), digits=options.digits, max_precision=options.max_precision)
        source = sources.program.source
        text = answer.series.to(options.to, doc=f"The Taylor polynomial of {source} {_around(answer)}.")
    if options.json:
        asked: dict[str, Any] = {"program": source}
        asked |= {} if options.digits is None else {"digits": options.digits}
        written = {} if options.to == "text" else {"to": options.to, "formula": text}
        notes = [warning_json(w, source) for w in answer.warnings]
        found = as_json(answer.series) | written | ({"warnings": notes} if notes else {})
        model_report.report(asked, found, environment)
    else:
        environment.write(text + "\n")
        if options.to == "text":
            _tell(answer, options, environment)
        for warning in () if options.quiet else answer.warnings:
            environment.write_error(warning_text(warning, source))
    return ExitStatus.SUCCESS if answer.complete else ExitStatus.FAILURE


def _around(answer: SeriesAnswer) -> str:
    return "at " + ", ".join(f"{name}={value}" for name, value in answer.series.center.items())


def _ranges(options: SeriesOptions) -> dict[str | None, str] | None:
    """The ranges of --over by name; the key is None for a range without a name."""
    if not options.over:
        return None
    found: dict[str | None, str] = {}
    for word in (part for each in options.over for _, part in items(each)):
        name, equals, text = word.rpartition("=")
        key = name.strip() if equals else None
        if key in found:
            raise UsageError("--over is given twice for one name", hint="leave one of them out")
        found[key] = text.strip()
    return found


def _tell(answer: SeriesAnswer, options: SeriesOptions, environment: Environment) -> None:
    series = answer.series
    rows = (
        []
        if series.remainder is None
        else [("remainder", f"at most {series.remainder:g} over {', '.join(options.over or ())}")]
    )
    if series.radius is not None:
        rows.append(("radius", f"{series.radius:g} ({series.radius_method})"))
    model_report.show_tables([Table((), rows)], environment)


COMMAND = Command(SeriesOptions, run, _HELP)
