"""The command `gradcli fit`: estimates the parameters of a model from data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gradcli import arrays
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs, map_arguments, model_arguments
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import fit_report, model_report
from gradcli.errors import BindingError, ExitStatus, Span, UsageError, did_you_mean
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import items, unreadable
from gradcli.io import variables
from gradcli.language.differential_equations import has_differential_equations
from gradcli.models import checked_arguments
from gradcli.models.data import DataTable, table_of
from gradcli.models.fitting.fit_execution import execute
from gradcli.models.fitting.fit_files import FitFiles
from gradcli.models.fitting.fit_requests import FitRequest, Resampling, errors_of, pair_of, prior_of
from gradcli.models.fitting.groups.group_reports import summary_of
from gradcli.models.fitting.notation.model_texts import has_several_responses
from gradcli.models.fitting.problem.fit_problems import Parameters
from gradcli.models.fitting.problem.likelihoods import CATEGORICAL, FAMILIES, LOG_DENSITY, LOSSES, MEDIAN, Assumptions
from gradcli.models.fitting.responses.complex_fits import MODULUS, in_parts
from gradcli.models.fitting.results import fit_tables
from gradcli.models.fitting.search.estimation import SearchOptions
from gradcli.models.fitting.statistics.inference import INFORMATION
from gradcli.models.optima.bounds import bounds_of
from gradcli.models.plotting.charts import axes_of
from gradcli.models.uncertainty import uncertain_values
from gradcli.type_hints import Annotated, Any

_EXAMPLE = "gradcli fit 'y ~ b1*(1 - exp(-b2*x))' misra.csv b1=500 b2=0.0001"

_HELP = """\
Names that are columns of the data are data, the others parameters, whose
NAME=VALUE is where the search begins; those without one are found. Exit status
1 where no minimum was found: the best point is printed, and why it is none.

Examples:

  gradcli fit 'y ~ b1*(1 - exp(-b2*x))' misra.csv b1=500 b2=0.0001

  gradcli fit 'a + b*x' data.csv --response y --sigma dy --absolute-sigma

  gradcli fit 'y ~ a*exp(-k*x)' x=[0,1,2,3] y=[2,1.2,0.7,0.5] --bounds 'k=0:'

  gradcli fit 'y ~ a*exp(-k*x)' runs.csv --by run --cluster local --output fits/
"""


class FitOptions(map_arguments.TableOptions, opt.PictureRun):
    """The options of `gradcli fit`."""

    words: Annotated[
        list[str] | None,
        opt.Argument(
            metavar="MODEL [DATA]... [NAME=VALUE]...",
            help="The model, y ~ f; tables, - for standard input; then the starts of parameters: b1=500, columns: "
            "x=[1,2,3], and t='column:Time (s)'.",
        ),
    ] = None
    file: opt.File = None
    vars: opt.Vars = None
    response: Annotated[
        str | None,
        opt.Option(
            "--response",
            brief="What was measured, if the model names none.",
            metavar="NAME",
            help="The response, where the model does not name it.",
        ),
    ] = None
    fix: Annotated[
        list[str] | None,
        opt.Option(
            "--fix",
            brief=True,
            metavar="NAMES",
            help="Keep these parameters at their values.",
        ),
    ] = None
    bounds: Annotated[
        list[str] | None,
        opt.Option(
            "--bounds",
            brief="Keep parameters between bounds.",
            metavar="NAME=LOW:HIGH",
            help="Keep parameters between bounds: 'b2=0:1,b1=0:'.",
        ),
    ] = None
    prior: Annotated[
        list[str] | None,
        opt.Option("--prior", metavar="NAME=VALUE±U", help="What is known of a parameter before: 'b1=500±50'."),
    ] = None
    sigma: Annotated[
        str | None,
        opt.Option(
            "--sigma",
            brief="The uncertainties of the measurements.",
            metavar="COLUMN|NUMBER|modulus",
            help="The standard deviations of the response, up to a common factor: the weight of a row is 1/sigma²; of several "
            "responses by name, hare=dh,lynx=0.1; of differential equations also expressions, whose parameters are fitted; "
            "modulus: those of both parts of a complex response are its modulus.",
        ),
    ] = None
    absolute_sigma: Annotated[
        bool, opt.Option("--absolute-sigma", help="Take the standard deviations as they stand.")
    ] = False
    loss: Annotated[
        str,
        opt.Option("--loss", metavar="|".join(LOSSES), help="What a residual costs; others than linear are robust."),
    ] = "linear"
    loss_scale: Annotated[
        str | None,
        opt.Option(
            "--loss-scale",
            metavar=f"VALUE|{MEDIAN}",
            help="The residual, over its standard deviation in --sigma, from which on a robust loss is no square; default: "
            f"{MEDIAN}, by the median absolute residual.",
        ),
    ] = None
    family: Annotated[
        str,
        opt.Option(
            "--family",
            metavar="|".join(FAMILIES),
            help="The distribution of the response; of categories "
            "multinomial, food ~ a[food] + b[food]*x, and ordinal, rating ~ b*x.",
        ),
    ] = "gaussian"
    likelihood: Annotated[
        str | None,
        opt.Option(
            "--likelihood",
            metavar="LOGDENSITY",
            help="Instead of a model: the log density of a row, an expression of columns and parameters, whose sum over the "
            "rows is maximised.",
        ),
    ] = None
    trials: Annotated[
        str | None,
        opt.Option(
            "--trials",
            metavar="COLUMN|NUMBER",
            help="Of how many trials a binomial response is the share of events; not needed for events/trials ~ …",
        ),
    ] = None
    offset: Annotated[
        str | None,
        opt.Option(
            "--offset",
            metavar="EXPR",
            help="A known term of the scale of the link: it is added to the value of a model for measurements, to its logarithm "
            "for counts, as log(t) for exposures t, and to the log-odds for events.",
        ),
    ] = None
    weights: Annotated[
        str | None,
        opt.Option(
            "--weights",
            metavar="COLUMN|NUMBER",
            help="The weights of the rows: factors of their log densities, and for measurements 1/sigma².",
        ),
    ] = None
    errors: Annotated[
        str,
        opt.Option(
            "--errors",
            metavar="information|robust|cluster:COLUMN",
            help="What standard errors are from: the information, or the sandwich of rows or of clusters of them.",
        ),
    ] = INFORMATION
    x_sigma: Annotated[
        list[str] | None,
        opt.Option(
            "--x-sigma",
            metavar="NAME=COLUMN|NUMBER",
            help="The standard deviations of predictors, x=dx: least distances in all directions.",
        ),
    ] = None
    by: Annotated[
        str | None,
        opt.Option(
            "--by",
            brief="A fit for each group of rows.",
            metavar="COLUMN",
            help="A fit for each group of rows: a table of them.",
        ),
    ] = None
    events: Annotated[
        str | None,
        opt.Option(
            "--events",
            metavar="PATH",
            help="Doses of differential equations: a table with columns time, state, amount, and the group of --by.",
        ),
    ] = None
    random: Annotated[
        list[str] | None,
        opt.Option(
            "--random",
            metavar="NAMES|COLUMN",
            help="Parameters that vary by a column, 'Asym|Tree', or correlated ones, 'ka,Cl|Subject': random effects about "
            "their means; in a model (1|column) is a number that varies about 0.",
        ),
    ] = None
    reml: Annotated[
        bool, opt.Option("--reml", help="Restricted maximum likelihood for linear models with random effects.")
    ] = False
    correlated: Annotated[
        bool, opt.Option("--correlated", help="Estimate the correlations of the residuals of several responses.")
    ] = False
    derive: Annotated[
        list[str] | None,
        opt.Option(
            "--derive",
            brief="Compute a quantity from the estimates.",
            metavar="NAME=EXPR",
            help="Compute a quantity from the estimates, with its standard error and interval: 'half=log(2)/k'.",
        ),
    ] = None
    against: Annotated[
        str | None,
        opt.Option(
            "--against",
            metavar="MODEL|FAMILY",
            help="Compare with another model of the same rows, or with another family, poisson or 'poisson: exp(a)': F, "
            "likelihood ratio and Vuong's tests, AIC, AICc and BIC.",
        ),
    ] = None
    bootstrap: Annotated[
        int,
        opt.Option(
            "--bootstrap",
            metavar="N",
            min=0,
            help="Fit N samples of the rows, or of the clusters of --errors: errors and intervals of percentiles.",
        ),
    ] = 0
    jackknife: Annotated[
        bool, opt.Option("--jackknife", help="Fit all rows, or clusters, but one, each in turn: bias and errors.")
    ] = False
    cross_validate: Annotated[
        int,
        opt.Option(
            "--cross-validate",
            metavar="K",
            min=0,
            help="Predict each of K parts of the rows, or of the clusters, by a fit of the others: errors of prediction.",
        ),
    ] = 0
    level: Annotated[float, opt.Option("--level", metavar="P", help="The level of the confidence intervals.")] = 0.95
    profile: Annotated[bool, opt.Option("--profile", help="Take the intervals from the profile of the likelihood.")] = (
        False
    )
    contour: Annotated[
        list[str] | None,
        opt.Option(
            "--contour",
            metavar="NAME,NAME",
            help="The points around the joint confidence region of two parameters, by the profile of the likelihood.",
        ),
    ] = None
    residuals: Annotated[
        str | None,
        opt.Option("--residuals", metavar="PATH", help="Write a table of the rows with their residuals."),
    ] = None
    predict: Annotated[
        str | None,
        opt.Option(
            "--predict",
            brief="Predict at further points.",
            metavar="PATH",
            help="Write a table of what the model predicts, with bands, for all rows, also those without a response.",
        ),
    ] = None
    plot: Annotated[
        str | None,
        opt.Option(
            "--plot",
            brief="Write a picture: .png, .svg or .pdf.",
            metavar="PATH",
            help="Write a picture of the data and the fit: .png, .svg or .pdf.",
        ),
    ] = None
    starts: Annotated[
        int,
        opt.Option("--starts", metavar="N", min=1, help="Search from at most N points, where starts are missing."),
    ] = 32
    seed: Annotated[
        int,
        opt.Option(
            "--seed",
            metavar="N",
            min=0,
            help="The seed of the points of --starts, the samples of --bootstrap, and the parts of --cross-validate.",
        ),
    ] = 0
    cluster: opt.Cluster = None
    output: Annotated[
        str | None,
        opt.Option(
            "--output",
            short="-o",
            group=opt.OUTPUT,
            metavar="DIR",
            help="The directory of the parts of the table of groups, with --cluster.",
        ),
    ] = None
    resume: opt.Resume = False
    json: opt.Json = False
    quiet: opt.Quiet = False


def run(options: FitOptions, environment: Environment) -> ExitStatus:
    """Fit and print; see `gradcli fit --help`."""
    asked = _request(options, environment)
    request = in_parts(asked)
    files = FitFiles(options.residuals, options.predict, options.plot, environment.save, *_looks(options))
    of_cluster = {"--output": options.output is not None, "--resume": options.resume}
    if opt.is_on_cluster(options.cluster, of_cluster):
        # Imported here because most commands run on one machine.
        from gradcli.cli.commands import fit_cluster

        _check_for_cluster(asked, options, files)
        return fit_cluster.run(options, request, SearchOptions(options.starts, options.seed), environment)
    files.check(_value_files(options))
    with model_report.progress_line(environment, options.quiet) as watch:
        found = execute(request, SearchOptions(options.starts, options.seed, watch), files)
    if options.json:
        for fit in found.fits:
            model_report.report({"model": asked.model}, fit, environment)
    elif options.by is None:
        model_report.show_tables(fit_tables.tables(found.fits[0], options.level), environment)
    else:
        fit_report.tell_groups(found.fits, options.by, environment)
    account = summary_of(found.fits)
    if not options.quiet:
        fit_report.report_problems(account, found.left_out, options.by, environment)
    return ExitStatus.FAILURE if account.open else ExitStatus.SUCCESS


def _request(options: FitOptions, environment: Environment) -> FitRequest:
    """What is to be fitted, with the table that the words of the command line name."""
    errors, clusters = errors_of(options.errors)
    known = Assumptions(
        _family(options), options.loss, options.absolute_sigma, options.level, _loss_scale(options.loss_scale), errors
    )
    initial = _initial_values(options)
    given = model_arguments.read_words(options, environment, _EXAMPLE, map_arguments.reading_of(options))
    np = arrays.numpy_namespace()
    vectors = {name: value for name, value in given.values.items() if np.ndim(value)}
    table = (table_of(None) if given.table is None else given.table).with_vectors(vectors)
    parameters = Parameters(
        {n: v if arrays.is_complex(v) else float(v) for n, v in given.values.items() if n not in vectors} | initial,
        inputs.names_of(options.fix),
        bounds_of(options.bounds),
        _priors(options.prior or ()),
    )
    return FitRequest(
        given.text,
        options.response,
        table,
        parameters,
        known,
        None if options.sigma is None else _sigmas(options.sigma, table, given.text),
        _x_sigma(options.x_sigma or (), table),
        options.by,
        options.profile,
        (options.max_steps, options.max_elements),
        None if options.trials is None else _sigma(options.trials, table, "--trials"),
        options.offset,
        None if options.events is None else table_of(options.events),
        {name: text for name, (text, _, _) in _parts(options.derive or (), "--derive", "'half=log(2)/k'").items()},
        None if options.weights is None else _sigma(options.weights, table, "--weights"),
        clusters,
        options.against,
        Resampling(options.bootstrap, options.jackknife, options.cross_validate),
        options.random or (),
        options.reml,
        [pair_of(said) for said in options.contour or ()],
        options.correlated,
    )


def _family(options: FitOptions) -> str:
    """The family; a likelihood becomes the program, the first of the words."""
    if options.likelihood is None:
        return checked_arguments.one_of(options.family, FAMILIES, "family")
    if options.family != "gaussian":
        raise UsageError("a likelihood stands instead of a family", hint="leave out one of them")
    if options.file is not None:
        raise UsageError("a likelihood stands instead of a program in a file", hint="leave out --file")
    options.words = [options.likelihood, *(options.words or ())]
    return LOG_DENSITY


def _looks(options: FitOptions) -> tuple[Any, ...]:
    """The looks of the picture and its logarithmic axes; nothing where there is none."""
    # Imported here because few fits draw.
    from gradcli.cli.arguments import picture_arguments

    if options.plot is None:
        for name in picture_arguments.given(options):
            raise UsageError(f"{name} is for a picture", hint="--plot fit.png draws one")
        return ()
    log = axes_of(options.log)
    if "z" in log:
        raise UsageError("--log z is for the colours over two ranges", hint="--log x, --log y or --log x,y")
    return picture_arguments.presentation(options), log


# A start of the search for the value of a state at the first time, as in H(0)=30 or x'(0)=1, or for that of a level, as in
# V[treated]=200.
_INITIAL = re.compile(r"\s*([^\W\d]\w*(?:'*\(0\)|\[[^\[\]]*\]))\s*=(?!=)(.*)", re.DOTALL)


def _initial_values(options: FitOptions) -> dict[str, float]:
    """The starts of initial values, whose words are taken out of the options."""
    found: dict[str, float] = {}
    others = []
    for k, word in enumerate(options.words or ()):
        match = _INITIAL.fullmatch(word) if k or options.file is not None else None
        if match is None:
            others.append(word)
        else:
            found[match[1]] = float(constant(match[2], "float64", word, match.start(2)))
    options.words = others if found else options.words
    return found


def _check_for_cluster(request: FitRequest, options: FitOptions, files: FitFiles) -> None:
    """Raise UsageError for what is not available on a cluster."""
    for name in ("residuals", "predict", "plot"):
        if getattr(files, name) is not None:
            raise UsageError(f"--{name} is for one machine", hint="--cluster writes the table of groups alone")
    if has_differential_equations(request.model):
        raise UsageError("differential equations are fitted on one machine", hint="leave out --cluster")
    if request.known.family in CATEGORICAL:
        raise UsageError(f"--family {request.known.family} is for one machine", hint="leave out --cluster")
    if has_several_responses(request.model) and options.likelihood is None:
        raise UsageError("several responses are fitted on one machine", hint="leave out --cluster")


def _value_files(options: FitOptions) -> list[str]:
    """The files that values are read from: those in `x=@PATH:column` and of --vars."""
    named = [word.partition("=@")[2] for word in options.words or () if "=@" in word]
    return [*named, *(path.rpartition(":")[0] for path in named), *([options.vars] if options.vars else [])]


def _sigma(text: str, table: DataTable, option: str) -> str | float:
    """A column name or a number, for standard deviations or trials. Raises BindingError for other text."""
    if text in table.columns:
        return text
    try:
        return float(text)
    except ValueError:
        hint = did_you_mean(text, table.columns, "a column, or a number")
        raise BindingError(f"{option} {text!r}: the data have no such column", hint=hint) from None


# An equals sign that stands between a name and its value.
_EQUALS = re.compile(r"(?<![=<>!])=(?!=)")


def _sigmas(text: str, table: DataTable, model: str) -> str | float | Mapping[str, str | float]:
    """The standard deviations of the response, or those of several responses by name, as in `hare=dh,lynx=0.1`."""
    if _EQUALS.search(text) is None:
        return text if text == MODULUS else _one_sigma(text, table, model)
    found: dict[str, str | float] = {}
    for start, part in items(text):
        # A response may be an expression, as in log(hare)=0.1.
        equals = _EQUALS.search(part)
        if equals is None or not part[: equals.start()].strip():
            raise UsageError(
                f"--sigma {part!r} is no NAME=…",
                hint="--sigma hare=dh,lynx=0.1",
                span=Span(start, start + len(part)),
                source=text,
            )
        name = part[: equals.start()].strip()
        if name in found:
            raise UsageError(f"--sigma names '{name}' twice", span=Span(start, start + len(part)), source=text)
        found[name] = _one_sigma(part[equals.end() :].strip(), table, model)
    return found


def _one_sigma(text: str, table: DataTable, model: str) -> str | float:
    """A column name, a number, or for differential equations an expression."""
    try:
        return _sigma(text, table, "--sigma")
    except BindingError:
        if not has_differential_equations(model):
            raise
        return text.strip()


def _loss_scale(text: str | None) -> float | None:
    """The threshold of a robust loss; None if it is estimated from the residuals."""
    if text is None or text == MEDIAN:
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--loss-scale {text!r} is neither a number nor {MEDIAN}") from None


def _x_sigma(texts: Sequence[str], table: DataTable) -> dict[str, str | float]:
    parts = _parts(texts, "--x-sigma", "x=dx")
    return {name: _sigma(text, table, "--x-sigma") for name, (text, _, _) in parts.items()}


def _parts(texts: Sequence[str], option: str, example: str) -> dict[str, tuple[str, str, int]]:
    """The values of lists such as `x=dx,z=0.1` by name, each with the whole text and its offset there."""
    found: dict[str, tuple[str, str, int]] = {}
    for text in texts:
        for start, part in items(text):
            try:
                name, value, offset = variables.split_binding(part)
            except BindingError as error:
                raise UsageError(
                    f"{option} {part!r} is no NAME=…",
                    hint=f"{option} {example}",
                    span=Span(start, start + len(part)),
                    source=text,
                ) from error
            if name in found:
                raise UsageError(f"{option} names '{name}' twice", hint="leave out one of them")
            found[name] = value, text, start + offset
    return found


def _priors(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, (text, whole, offset) in _parts(texts, "--prior", "'b1=500±50'").items():
        if not uncertain_values.is_uncertain(text):
            raise unreadable(f"the prior of '{name}' has no uncertainty", text, offset, whole, f"write {name}=500±50")
        known = uncertain_values.read_uncertain(text, offset, whole, uncertain_values.in_floats(whole))
        found[name] = prior_of(known, name)
    return found


COMMAND = Command(FitOptions, run, _HELP)
