"""The command `gradcli map`: evaluates and differentiates a program for each row of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from functools import partial

from gradcli import arrays
from gradcli.cli import options as opt
from gradcli.cli.arguments import map_arguments
from gradcli.cli.command import Command
from gradcli.cli.process import progress
from gradcli.cli.process.environment import Environment, Output, input_of
from gradcli.cli.rendering import row_report
from gradcli.errors import ExitStatus, UsageError
from gradcli.io.output import make_directory
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.rows.distributed.job import Job
from gradcli.rows.failures import RowError
from gradcli.rows.formats.opening import ConcatenatedTables
from gradcli.rows.formats.outputs import STDIN, OutputTarget, compressing, targets
from gradcli.rows.formats.reading import TableReadOptions
from gradcli.rows.formats.sources import files
from gradcli.rows.pipeline import FailurePolicy, RunReport, run_rows
from gradcli.rows.plan import Plan, RowRequest, has_numbers_for_names, make_plan
from gradcli.type_hints import IO, Annotated, cast

# The policies for rows that fail: empty results, no row, or stop.
ON_ERROR = ("null", "skip", "fail")

_HELP = """\
Reads rows of CSV, TSV, JSON lines, Parquet or Arrow, from files or from
standard input, and writes them again with a column for the value and one for
each derivative. Columns give the values of the names that they are called by;
NAME=VALUE gives those of others, and NAME='column:TITLE' says which column to
take. A file whose name has a '=' is written ./a=1.csv.

Examples:

  gradcli map 'a*exp(-k*t)' data.csv a=2 k=0.25

  gradcli map 'x**q' - q=3 --from jsonl --wrt x --only

  gradcli map 'sin(q*log(x))' 'runs/*.parquet' --output out/ --on-error skip
"""


class MapOptions(map_arguments.TableOptions, opt.ProgramRun):
    """The options of `gradcli map`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="PROGRAM [FILE]... [NAME=VALUE]...",
            help="The program; files, globs and folders of them, - for standard input; then the values that all rows "
            "share: q=3, W=[[1,2],[3,4]], x='column:Time (s)'.",
        ),
    ] = None
    file: opt.File = None
    program_column: Annotated[
        str | None,
        opt.Option("--program-column", metavar="NAME", help="Each row brings its own program, in this column."),
    ] = None
    vars: opt.Vars = None
    wrt: Annotated[
        list[str] | None,
        opt.wrt(
            "Differentiate by these, as in x,q; default: every name, columns first.",
            "Differentiate by these names alone.",
        ),
    ] = None
    const: opt.Const = None
    order: Annotated[int, opt.order("All derivatives up to order N.", min=1)] = 1
    no_grad: opt.NoGrad = False
    propagate: Annotated[
        bool,
        opt.Option(
            "--propagate",
            help="A column u, the standard uncertainty of the value by those of the inputs: of x the column u_x, or u_x=0.1.",
        ),
    ] = False
    dtype: opt.Dtype = "float64"
    value: Annotated[str, opt.Option("--value", metavar="NAME", help="What the column of the value is called.")] = (
        "value"
    )
    prefix: Annotated[
        str, opt.Option("--prefix", metavar="TEXT", help="What stands before the name of each column of results.")
    ] = ""
    keep: Annotated[
        list[str] | None, opt.Option("--keep", metavar="NAMES", help="Write these columns of the table alone.")
    ] = None
    only: Annotated[
        bool,
        opt.Option(
            "--only",
            brief="Results alone, without the columns of the table.",
            help="Write no column of the table, but the results alone.",
        ),
    ] = False
    output: Annotated[
        str | None,
        opt.output_path(
            "Write a file, or into a directory one for each that is read; - is standard output.",
            "Write to a file or a directory.",
        ),
    ] = None
    to: Annotated[
        str | None,
        opt.Option(
            "--to",
            group=opt.OUTPUT,
            brief="The format to write.",
            metavar=map_arguments.FORMATS,
            help="The format to write; default: that of the table.",
        ),
    ] = None
    on_error: Annotated[
        str,
        opt.Option(
            "--on-error",
            brief="What to do with rows that fail.",
            metavar="|".join(ON_ERROR),
            help="What becomes of a row that fails: empty results, none, or the end.",
        ),
    ] = "null"
    max_errors: Annotated[
        int | None, opt.Option("--max-errors", metavar="N", min=0, help="Stop when more than N rows have failed.")
    ] = None
    cluster: opt.Cluster = None
    part_bytes: Annotated[
        str | None,
        opt.Option(
            "--part-bytes", metavar="SIZE", help="The size of a part of what is read, as in 16MiB; default: 64MiB."
        ),
    ] = None
    resume: opt.Resume = False
    retries: Annotated[
        int | None,
        opt.Option("--retries", metavar="N", min=0, help="Give a part to N more workers where one dies; default: 3."),
    ] = None
    json: Annotated[
        bool,
        opt.Option(
            "--json",
            short="-j",
            group=opt.OUTPUT,
            help="Errors, and at the end the counts of rows, as JSON on standard error.",
        ),
    ] = False
    quiet: Annotated[
        bool, opt.quiet("No warnings and no progress bar on standard error.", "No warnings and no progress bar.")
    ] = False
    max_steps: Annotated[
        int,
        opt.Option(
            "--max-steps", group=opt.LIMITS, metavar="N", min=1, help="Stop the program of a row after N steps."
        ),
    ] = MAX_STEPS
    max_elements: Annotated[
        int,
        opt.Option(
            "--max-elements",
            group=opt.LIMITS,
            metavar="N",
            min=1,
            help="Stop that of a row that computes more array elements.",
        ),
    ] = MAX_ELEMENTS


def run(options: MapOptions, environment: Environment) -> ExitStatus:
    """Evaluate the rows and write them; see `gradcli map --help`."""
    policy = _policy(options)
    reading = _reading(options)
    given = map_arguments.read_words(options, environment)
    sources = [STDIN] if given.sources == [STDIN] else files(given.sources)
    of_cluster = {
        "--part-bytes": options.part_bytes is not None,
        "--resume": options.resume,
        "--retries": options.retries is not None,
    }
    if opt.is_on_cluster(options.cluster, of_cluster):
        # Imported here because most commands run on one machine.
        from gradcli.cli.commands import map_cluster

        return map_cluster.run(options, Job(given.asked, reading, policy, options.to), sources, environment)
    outputs = targets(sources, options.output, options.to)
    stream = input_of(environment, "the table") if STDIN in sources else None
    tables = [ConcatenatedTables(output.sources, reading, stream) for output in outputs]
    plans = [make_plan(given.asked, each.columns) for each in tables]
    _tell_header(given.asked, reading, tables, options, environment)
    _tell_reduction(given.asked, tables, options, environment)
    report = RunReport()
    try:
        for each, plan, output in zip(tables, plans, outputs):
            report = report.plus(_mapped(each, plan, output, policy, options, environment))
    except RowError as error:
        raise error.failure.error(with_source=len(sources) > 1) from error
    if options.json:
        row_report.tell_json(report, len(sources) > 1, environment)
    elif not options.quiet:
        row_report.tell(report, plans[0], policy, len(sources) > 1, environment)
    return ExitStatus.SUCCESS


def _tell_header(
    asked: RowRequest,
    reading: TableReadOptions,
    tables: Sequence[ConcatenatedTables],
    options: MapOptions,
    environment: Environment,
) -> None:
    """Warn where a first line that was read as column names holds numbers, unless columns were chosen by name."""
    if options.quiet or asked.columns or not reading.header:
        return
    for table in tables:
        if table.format in ("csv", "tsv") and has_numbers_for_names(table.columns or ()):
            environment.write_error(
                f"warning: the first line of {table.name} holds numbers, and is read as the names of columns\n"
                "hint: --no-header reads it as a row"
            )
            return


# A reduction of one name.
_REDUCTION = re.compile(r"(?<![\w.])(?:mean|average|median|std|var|sum|max|min)\(\s*([^\W\d]\w*)\s*\)")


def _tell_reduction(
    asked: RowRequest, tables: Sequence[ConcatenatedTables], options: MapOptions, environment: Environment
) -> None:
    """Tell where a program has the mean, say, of a column of numbers: that of one row is its number."""
    reductions = [] if options.quiet else [r for r in _REDUCTION.finditer(asked.program) if r[1] not in asked.shared]
    for table in tables if reductions else ():
        for call in reductions:
            if table.format in ("csv", "tsv") and call[1] in (table.columns or ()):
                environment.write_error(
                    f"note: {call[0]} is that of each row alone, which has one number; "
                    f"gradcli eval '{call[0]}' {call[1]}=@FILE:{call[1]} has that of the column"
                )
                return


def _policy(options: MapOptions) -> FailurePolicy:
    if options.on_error not in ON_ERROR:
        raise UsageError(f"there is no --on-error {options.on_error!r}", hint=f"--on-error {' or '.join(ON_ERROR)}")
    if options.on_error == "fail" and options.max_errors is not None:
        raise UsageError("--on-error fail stops at the first row that fails", hint="leave out --max-errors")
    return FailurePolicy(options.on_error == "skip", 0 if options.on_error == "fail" else options.max_errors)


def _reading(options: MapOptions) -> TableReadOptions:
    if options.dtype not in arrays.DTYPES:
        raise UsageError(f"there is no dtype {options.dtype!r}", hint=f"--dtype {' or '.join(arrays.DTYPES)}")
    return map_arguments.reading_of(options)


def _mapped(
    tables: ConcatenatedTables,
    plan: Plan,
    output: OutputTarget,
    policy: FailurePolicy,
    options: MapOptions,
    environment: Environment,
) -> RunReport:
    """Evaluate the rows of tables and write them to one output."""
    format = output.format or tables.format
    reports: list[RunReport] = []

    def write(stream: IO[bytes]) -> None:
        with progress.shown(environment, options.quiet, tables.size) as show, closing(iter(tables)) as readers:
            reports.append(run_rows(readers, plan, format, stream, policy, show))

    if output.path is None:
        with closing(Output(environment)) as stream:
            write(cast("IO[bytes]", stream))
    else:
        if output.directory is not None:
            make_directory(output.directory)
        environment.save(output.path, partial(compressing, write=write, compression=output.compression))
    return reports[0]


COMMAND = Command(MapOptions, run, _HELP)
