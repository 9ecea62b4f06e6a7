"""The command `gradcli sample`: draws from the density whose logarithm a program is."""

from __future__ import annotations

import dataclasses

from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, map_arguments, model_arguments
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import model_report
from gradcli.errors import EvaluationError, ExitStatus
from gradcli.models.sampling.posterior_draws import check_output, sample, save_draws
from gradcli.type_hints import Annotated

_HELP = """\
PROGRAM is the logarithm of a density, up to a constant, as of a posterior; NUTS, an MCMC sampler,
draws from it by the gradient. NAME=START says what is drawn. The names in --const keep their values, and so do the columns of DATA that the program reads.

Examples:

  gradcli sample '-x**2/2' x=0

  gradcli sample 'sum(-((y - mu)/s)**2/2 - log(s)) - (mu/10)**2/2 - s' data.csv mu=0 s=1 --bounds s=0:

  gradcli sample '-(x**2 + (y - x**2)**2)/2' x=0 y=0 --output draws.parquet

  gradcli sample '-x**2/2 - 3*log(1 + x**2)' x=1 --chains 2 --draws 500
"""
_EXAMPLE = "gradcli sample '-x**2/2' x=0"


class SampleOptions(model_arguments.SearchArguments):
    """The options of `gradcli sample`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="PROGRAM [DATA]... [NAME=START]...",
            help="The log density; files, globs and folders of data, - for standard input; then starts and constants.",
        ),
    ] = None
    file: opt.File = None
    vars: opt.Vars = None
    wrt: Annotated[
        list[str] | None,
        opt.wrt(
            "Draw these, as in x,y; default: every name that has a value.",
            "Draw these; otherwise all that have a value.",
        ),
    ] = None
    const: Annotated[list[str] | None, opt.const("Do not draw these.", brief=True)] = None
    bounds: Annotated[
        list[str] | None,
        opt.Option(
            "--bounds",
            brief="Where the density is above 0.",
            metavar="NAME=LOW:HIGH,...",
            help="Where the density is above 0; one end may be left out.",
        ),
    ] = None
    ordered: Annotated[
        list[str] | None,
        opt.Option(
            "--ordered",
            brief="Vectors whose numbers increase.",
            metavar="NAMES",
            help="Vectors whose numbers increase from one to the next.",
        ),
    ] = None
    simplex: Annotated[
        list[str] | None,
        opt.Option(
            "--simplex",
            brief="Vectors of shares of 1.",
            metavar="NAMES",
            help="Vectors of numbers above 0 with the sum 1.",
        ),
    ] = None
    chains: Annotated[
        int,
        opt.Option(
            "--chains",
            brief="How many chains.",
            metavar="N",
            min=1,
            help="How many chains, from starts around the given one.",
        ),
    ] = 4
    draws: Annotated[
        int,
        opt.Option(
            "--draws",
            brief=True,
            metavar="N",
            min=4,
            help="How many draws each chain makes.",
        ),
    ] = 1_000
    warmup: Annotated[
        int,
        opt.Option(
            "--warmup",
            brief="Iterations that adapt the sampler.",
            metavar="N",
            min=0,
            help="How many iterations before the draws adapt the sampler.",
        ),
    ] = 1_000
    target: Annotated[
        float,
        opt.Option(
            "--target",
            metavar="P",
            help="The acceptance probability that the step size aims at; 0.99 takes small steps.",
        ),
    ] = 0.8
    max_depth: Annotated[
        int,
        opt.Option(
            "--max-depth",
            metavar="N",
            min=1,
            help="Trajectories have 2**N steps at most.",
        ),
    ] = 10
    output: Annotated[
        str | None,
        opt.output_path(
            "Write the draws to a table, as in draws.csv or .parquet.", "Write the draws, as .csv or .parquet."
        ),
    ] = None


def run(options: SampleOptions, environment: Environment) -> ExitStatus:
    """Draw and print; see `gradcli sample --help`."""
    check_output(options.output)
    words = model_arguments.read_words(options, environment, _EXAMPLE, map_arguments.reading_of(options))
    with model_report.progress_line(environment, options.quiet) as watch:
        found = sample(
            words.text,
            words.values,
            data=words.table,
            wrt=None if options.wrt is None else inputs.names_of(options.wrt),
            const=inputs.names_of(options.const),
            bounds=options.bounds,
            ordered=inputs.names_of(options.ordered),
            simplex=inputs.names_of(options.simplex),
            chains=options.chains,
            draws=options.draws,
            warmup=options.warmup,
            target=options.target,
            max_depth=options.max_depth,
            seed=options.seed,
            watch=watch,
            max_steps=options.max_steps,
            max_elements=options.max_elements,
        )
    if options.output is not None:
        save_draws(found, options.output, environment.save)
    if options.json:
        model_report.report({"program": words.text}, dataclasses.replace(found, draws=None), environment)
    else:
        model_report.show_tables(found.report(), environment)
        for warning in () if options.quiet else found.warnings:
            environment.write_error(f"warning: {warning}")
    if not found.converged:
        raise EvaluationError("the draws cannot be relied on yet", hint="the warnings say why")
    return ExitStatus.SUCCESS


COMMAND = Command(SampleOptions, run, _HELP)
