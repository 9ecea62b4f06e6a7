"""The command `gradcli explain`: the chain rule in words and numbers."""

from __future__ import annotations

from contextlib import suppress

from gradcli import limits
from gradcli.cli import options as opt
from gradcli.cli.arguments import inputs
from gradcli.cli.command import Command
from gradcli.cli.commands.diff import names_to_differentiate
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import explanation as rendering
from gradcli.cli.rendering.render import warning_text
from gradcli.errors import DifferentiationError, ExitStatus, UsageError, did_you_mean
from gradcli.evaluation.explanation.chain_rule import Explanation, ExplanationRequest, explain
from gradcli.evaluation.explanation.rules import RulesExplanation, explain_rules
from gradcli.language.names import scope
from gradcli.type_hints import Annotated

_HELP = """\
Each step that PROGRAM takes has its value and its local derivatives, as formulas and as numbers; then
follow, from the value back to the inputs, the products that add up to each gradient, and which branch
was taken. A long program is folded: calls, loops and statements are one step each. With --symbolic,
or without any values, the rules are shown by which a formula is differentiated.

Examples:

  gradcli explain 'log(x**q)' x=5 q=3

  gradcli explain 'y = sin(x); y*exp(y)' x=1 --to markdown

  gradcli explain 'x**2*sin(3*x)' --symbolic
"""


class ExplainOptions(opt.ProgramRun):
    """The options of `gradcli explain`."""

    words: opt.Words = None
    file: opt.File = None
    vars: opt.Vars = None
    input_form: opt.From = None
    wrt: opt.Wrt = None
    const: opt.Const = None
    order: Annotated[int, opt.order("2: the second derivatives too.", metavar="1|2")] = 1
    symbolic: Annotated[
        bool,
        opt.Option(
            "--symbolic",
            brief="The rules: product, chain, quotient and others.",
            help="The rules by which a formula is differentiated, as equations.",
        ),
    ] = False
    to: Annotated[
        str,
        opt.Option("--to", brief=True, metavar="|".join(rendering.FORMATS), help="How it is written."),
    ] = "text"
    json: opt.Json = False
    expand: opt.Expand = False
    quiet: opt.Quiet = False


def run(options: ExplainOptions, environment: Environment) -> ExitStatus:
    """Run a program and explain its derivatives; see `gradcli explain --help`."""
    form = _format(options)
    with limits.within(options.max_steps, options.max_elements):
        sources = inputs.sources(options, environment, "float64")
        found = _show(sources, options, form, environment)
    if form != "json" and not options.quiet:
        for warning in found.warnings:
            environment.write_error(warning_text(warning, found.program.source))
    return ExitStatus.SUCCESS


def _show(
    sources: inputs.Sources, options: ExplainOptions, form: str, environment: Environment
) -> Explanation | RulesExplanation:
    if options.symbolic:
        return _show_rules(sources, options, form, environment)
    reads = scope.free_names(sources.program).keys() - scope.CONSTANTS.keys()
    if reads and not sources.values and form != "json":
        # Without values there is no run, but there may be rules.
        with suppress(DifferentiationError):
            found = _show_rules(sources, options, form, environment)
            if not options.quiet:
                environment.write_error(
                    f"note: these are the rules; values, as in {min(reads)}=1, explain the steps of a run"
                )
            return found
    return _show_steps(sources, options, form, environment)


def _show_steps(sources: inputs.Sources, options: ExplainOptions, form: str, environment: Environment) -> Explanation:
    program, bindings = sources.program, sources.bindings()
    wrt = inputs.leaves(bindings, options)
    language = rendering.LANGUAGES[form]
    found = explain(ExplanationRequest(program, bindings, wrt, options.order, language, options.expand))
    rendering.show(found, form, environment)
    return found


def _show_rules(
    sources: inputs.Sources, options: ExplainOptions, form: str, environment: Environment
) -> RulesExplanation:
    constants = frozenset(inputs.names_of(options.const))
    wrt = [n for n in names_to_differentiate(sources.program, sources.values, options.wrt) if n not in constants]
    found = explain_rules(sources.program, sources.bindings(), wrt, options.order, rendering.LANGUAGES[form])
    rendering.show_rules(found, form, environment)
    return found


def _format(options: ExplainOptions) -> str:
    if options.json and options.to not in ("text", "json"):
        raise UsageError(f"--json and --to {options.to} contradict each other", hint="leave out one of them")
    form = "json" if options.json else {"tex": "latex", "md": "markdown"}.get(options.to, options.to)
    if form not in rendering.FORMATS:
        hint = did_you_mean(form, rendering.FORMATS, f"--to is one of {', '.join(rendering.FORMATS)}")
        raise UsageError(f"there is no format {form!r}", hint=hint)
    if options.order not in (1, 2):
        raise UsageError("--order is 1 or 2 here", hint="gradcli eval --order N has the values of all derivatives")
    return form


COMMAND = Command(ExplainOptions, run, _HELP)
