"""The command `gradcli minimize`: searches for a minimum of a program."""

from __future__ import annotations

from gradcli import arrays
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, map_arguments, model_arguments
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.errors import EvaluationError, ExitStatus
from gradcli.models import complex_unknowns, results
from gradcli.models.optima.minima import METHODS, minimize
from gradcli.models.optima.training import SCHEDULES
from gradcli.models.packing import Packing
from gradcli.models.results import Iteration
from gradcli.type_hints import Annotated

_HELP = """\
NAME=START says what is varied, and where the search begins. The names in
--const keep their values, and so do the columns of DATA that the program reads.

Examples:

  gradcli minimize '(1-x)**2 + 100*(y-x**2)**2' x=-1.2 y=1

  gradcli minimize 'x*exp(-x)' x=0.5 --max

  gradcli minimize 'x**2 + y**2' x=1 y=1 --subject-to 'x + y >= 2'

  gradcli minimize 'x**2 + y**2' x=1 y=1 c=2 --subject-to 'x + y >= c' --sensitivity c

  gradcli minimize '(x**2 + y - 11)**2 + (x + y**2 - 7)**2' x=0 y=0 --bounds x=-5:5,y=-5:5 --prove

  gradcli minimize 'mean((a*exp(-k*t) - y)**2)' data.csv a=1 k=1 --method adam --batch 32 --epochs 20
"""
_EXAMPLE = "gradcli minimize '(x - 2)**2' x=1"


class MinimizeOptions(model_arguments.SearchArguments):
    """The options of `gradcli minimize`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="PROGRAM [DATA]... [NAME=START]...",
            help="The program; files, globs and folders of data, - for standard input; then starts and constants: x=1, "
            "w='zeros(3)', t='column:Time (s)'.",
        ),
    ] = None
    file: opt.File = None
    vars: opt.Vars = None
    wrt: Annotated[
        list[str] | None,
        opt.wrt(
            "Vary these, as in x,y; default: every name that has a value.",
            "Vary these; otherwise all that have a value.",
        ),
    ] = None
    const: Annotated[list[str] | None, opt.const("Do not vary these.", brief=True)] = None
    method: Annotated[
        str, opt.Option("--method", metavar="|".join(METHODS), help="How to search; auto takes what suits.")
    ] = "auto"
    max: Annotated[bool, opt.Option("--max", brief=True, help="Find a maximum.")] = False
    bounds: Annotated[
        list[str] | None,
        opt.Option(
            "--bounds",
            brief="Stay within bounds.",
            metavar="NAME=LOW:HIGH,...",
            help="Stay within these, one of which may be left out.",
        ),
    ] = None
    subject_to: Annotated[
        list[str] | None,
        opt.Option(
            "--subject-to",
            brief="A condition: 'x + y <= 1'.",
            metavar="CONSTRAINT",
            help="As in 'x**2 + y <= 1', also with >= and =; repeated.",
        ),
    ] = None
    global_: Annotated[
        bool,
        opt.Option(
            "--global", brief="Try many starts.", help="Try many starts, and say how many different minima there are."
        ),
    ] = False
    starts: Annotated[
        int | None,
        opt.Option("--starts", metavar="N", min=1, help="How many starts --global tries, which it implies."),
    ] = None
    prove: Annotated[
        bool,
        opt.Option(
            "--prove",
            brief="Prove bounds of the global minimum.",
            help="Prove bounds of the global minimum between the --bounds of all names, and find all its points.",
        ),
    ] = False
    integer: Annotated[
        list[str] | None,
        opt.Option("--integer", metavar="NAMES", help="With --prove, vary these over whole numbers."),
    ] = None
    sensitivity: Annotated[
        list[str] | None,
        opt.Option(
            "--sensitivity",
            brief="How the minimum changes with constants.",
            metavar="NAMES",
            help="How the minimum changes with these constants.",
        ),
    ] = None
    steps: Annotated[
        int | None,
        opt.Option(
            "--steps", metavar="N", min=1, help="The most iterations; the number of steps of adam, sgd, rmsprop."
        ),
    ] = None
    lr: Annotated[float | None, opt.Option("--lr", metavar="RATE", help="The learning rate of adam, sgd, rmsprop.")] = (
        None
    )
    momentum: Annotated[
        float | None, opt.Option("--momentum", metavar="SHARE", help="The momentum of adam, sgd, rmsprop.")
    ] = None
    batch: Annotated[
        int | None,
        opt.Option("--batch", metavar="ROWS", min=1, help="Rows of the data for each step of adam, sgd, rmsprop."),
    ] = None
    epochs: Annotated[int | None, opt.Option("--epochs", metavar="N", min=1, help="Passes through all rows.")] = None
    schedule: Annotated[
        str | None,
        opt.Option("--schedule", metavar="|".join(SCHEDULES), help="How the learning rate falls, to 0 at the end."),
    ] = None
    trace: Annotated[
        str | None, opt.Option("--trace", metavar="PATH", help="Write every iterate to a table, as in steps.csv.")
    ] = None
    plot: Annotated[
        str | None, opt.Option("--plot", metavar="PATH", help="Draw the objective by iterations, as in loss.png.")
    ] = None


def run(options: MinimizeOptions, environment: Environment) -> ExitStatus:
    """Search and print; see `gradcli minimize --help`."""
    results.check_paths(options.trace, options.plot)
    words = model_arguments.read_words(options, environment, _EXAMPLE, map_arguments.reading_of(options))
    history = results.History(kept=options.trace is not None)
    with model_report.progress_line(environment, options.quiet) as show:

        def watch(iteration: Iteration) -> None:
            show(iteration)
            if options.trace is not None or options.plot is not None:
                history(iteration)

        found = minimize(
            words.text,
            words.values,
            data=words.table,
            wrt=None if options.wrt is None else inputs.names_of(options.wrt),
            const=inputs.names_of(options.const),
            method=options.method,
            max=options.max,
            bounds=options.bounds,
            subject_to=options.subject_to or (),
            global_=options.global_,
            starts=options.starts,
            prove=options.prove,
            integer=inputs.names_of(options.integer),
            seed=options.seed,
            sensitivity=inputs.names_of(options.sensitivity),
            steps=options.steps,
            lr=options.lr,
            momentum=options.momentum,
            batch=options.batch,
            epochs=options.epochs,
            schedule=options.schedule,
            watch=watch,
            max_steps=options.max_steps,
            max_elements=options.max_elements,
        )
    if options.trace is not None:
        of_complex = [name for name, value in found.point.items() if arrays.is_complex(value)]
        packing = Packing.of(complex_unknowns.in_parts(found.point, of_complex))
        history.save_table(options.trace, packing, environment.save)
    if options.plot is not None:
        history.save_curve(options.plot, words.text, environment.save)
    if options.json:
        model_report.report({"program": words.text}, found, environment)
    else:
        model_report.show_tables(found.report(), environment)
    if not found.converged:
        what = "maximum" if options.max else "minimum"
        reason = f"no {what} was found: {found.message}" if found.proof is None else found.message
        raise EvaluationError(reason, hint="the best point is printed")
    return ExitStatus.SUCCESS


COMMAND = Command(MinimizeOptions, run, _HELP)
