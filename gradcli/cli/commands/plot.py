"""The command `gradcli plot`: draws a program over a range, on the terminal or in a file."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli import limits
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment, input_of, is_unicode
from gradcli.cli.rendering.model_report import report
from gradcli.errors import ExitStatus, UsageError
from gradcli.type_hints import Annotated, Any

# The width of a picture that is not drawn on a terminal.
_COLUMNS = 80

_HELP = """\
One range gives curves, two give heights with their gradients, and so does a
range of complex numbers, z=-2-2j..2+2j. A complex value is drawn as modulus
and phase, and over two ranges as hues of its angle. A list of values gives a
curve for each, and so do several formulas. Where one name has no value and no
range, one is found for it. Without --output the picture is drawn as text, with
colours on a terminal.

Examples:

  gradcli plot 'sin(x); x - x**3/6'

  gradcli plot 'exp(-k*x)*cos(3*x)' x=0..5 k=0.1,0.2,0.5

  gradcli plot 'x**3 - x' x=-2..2 --order 2 -o cubic.svg --title 'A cubic'

  gradcli plot 'sin(x)*y' x=0..20 y=0..5

  gradcli plot '(z**2 - 1)/(z**2 + 1)' z=-2-2j..2+2j --output hues.png

  gradcli plot '21 + c*exp(-k*t)' t=0..60 c=60 k=0.05 --data cooling.csv:minutes,celsius
"""


class PlotOptions(opt.PictureRun):
    """The options of `gradcli plot`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="PROGRAM NAME=LOW..HIGH [NAME=VALUE]...",
            help="The program, or - for standard input; the range of a name, or of two; then the values of the others: "
            "k=5, k=0.1,0.2,0.5 for a curve each, W=[[1,2],[3,4]], k=@data.csv:column.",
        ),
    ] = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    order: Annotated[int, opt.order("The derivatives up to order N too.", min=0)] = 0
    data: Annotated[
        str | None,
        opt.Option(
            "--data",
            brief="With points from a table.",
            metavar="PATH[:X,Y]",
            help="Points from two columns of a table: those named, or those that are called as the range and y, or the "
            "first two. - is standard input.",
        ),
    ] = None
    nyquist: Annotated[
        bool,
        opt.Option(
            "--nyquist",
            brief="A complex value in its plane.",
            help="Draw the imaginary part of a complex value over its real part, not its modulus and its phase.",
        ),
    ] = False
    output: Annotated[
        str | None,
        opt.output_path(
            "Write the picture as .png, .svg or .pdf, by the end of its name.", "Write it as .png, .svg or .pdf."
        ),
    ] = None
    json: Annotated[
        bool,
        opt.Option(
            "--json",
            short="-j",
            group=opt.OUTPUT,
            brief="The points as JSON.",
            help="Print the points as one JSON object on one line.",
        ),
    ] = False
    quiet: opt.Quiet = False


def run(options: PlotOptions, environment: Environment) -> ExitStatus:
    """Sample, draw and print; see `gradcli plot --help`."""
    # Imported here because plotting libraries are slow to load.
    from gradcli.cli.arguments import picture_arguments
    from gradcli.models.plotting import by_matplotlib, pictures, ranges

    looks = picture_arguments.presentation(options)
    if options.output is not None:
        by_matplotlib.format_of(options.output)
    with limits.within(options.max_steps, options.max_elements):
        data = _data(options, environment)
        sources = inputs.sources(options, environment, "float64", ranges.value)
        values = {name: value() for name, value in sources.values.items()}
        asked = pictures.PlotRequest(
            options.order, options.log, data, options.max_steps, options.max_elements, options.nyquist
        )
        made = pictures.plotted(sources.program, values, asked)
    if made.field is not None and (looks.x_limits or looks.y_limits):
        raise UsageError("the ends of both axes are the two ranges", hint="leave out --xlim and --ylim")
    if not options.quiet:
        for line in _notes(made):
            environment.write_error(line)
    if options.output is not None:
        by_matplotlib.save(looks.of(made.chart()), options.output, environment.save)
    if options.json:
        report({}, made, environment)
    elif options.output is None:
        for name in ("size", "dpi"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name} is for a saved picture", hint="--output picture.png")
        _draw(looks.of(made.chart()), environment)
    return ExitStatus.SUCCESS


def _data(options: PlotOptions, environment: Environment) -> Any:
    if options.data is None:
        return None
    from gradcli.models.data import table_of
    from gradcli.models.plotting import pictures
    from gradcli.rows.formats.outputs import STDIN

    path, columns = pictures.columns_of(options.data)
    if path != STDIN:
        return table_of(path), columns
    if options.vars == "-" or (options.file is None and (options.words or [])[:1] == ["-"]):
        raise UsageError("--data and the program cannot both be standard input", hint="put one of them in a file")
    return table_of(path, None, input_of(environment, "--data")), columns


def _notes(made: Any) -> Iterator[str]:
    """Notes on a range that was found, and on data points that are not in the picture."""
    if made.found:
        ((name, (low, high)),) = made.ranges.items()
        yield f"note: no range is given; this one is {name}={low:g}..{high:g}"
    if made.points is not None and made.points.left_out:
        yield f"{made.points.left_out:,} rows of the data lack a number and are left out"
    if hidden := made.hidden():
        yield f"{hidden:,} points of the data are not above 0 and have no place on a logarithmic axis"


def _draw(chart: Any, environment: Environment) -> None:
    """Draw on standard output, in the width of the terminal."""
    from gradcli.models.plotting import by_plotext

    style = by_plotext.Style(
        environment.columns or _COLUMNS, environment.for_terminal, is_unicode(environment.stdout), environment.rows
    )
    environment.write(by_plotext.text(chart, style))


COMMAND = Command(PlotOptions, run, _HELP)
