"""The declaration of commands, and the parser that turns a command line into the options of one of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar, get_type_hints

import typer

from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus, GradcliError, UsageError, closest_word, did_you_mean

if TYPE_CHECKING:
    from gradcli.cli.options import Options

Asked = TypeVar("Asked", bound="Options")

# Names of types in Click's messages, and their replacements.
_KIND, _KINDS = re.compile(r"a valid (int|float)( range)?\b"), {"int": "a whole number in digits", "float": "a number"}
_SHORT = re.compile(r"-[A-Za-z][\w-]*")


class Command(NamedTuple, Generic[Asked]):
    """A command, declared as `COMMAND` in its module.

    `run` receives the parsed `options`. `help` is the text after the one-line summary on the help page.
    """

    options: type[Asked]
    run: Callable[[Asked, Environment], ExitStatus]
    help: str


# The start of a style tag in Rich's markup.
_STYLE = re.compile(r"\[(?=[a-z#/@])")
# Returns the options of a command by its name.
OptionsOf = Callable[[str], Collection[str]]
# Runs the current command line in a child process, with the limits in its options.
RunInChild = Callable[[Any], ExitStatus]


def call(
    commands: Mapping[str, str], arguments: Sequence[str], environment: Environment, run_in_child: RunInChild
) -> ExitStatus:
    """Run the command that the arguments name; `commands` maps names to one-line summaries. `run_in_child` runs
    a command whose time or memory is limited.

    Raises UsageError for an invalid command line, and whatever the command raises.
    """
    arguments = _with_help(arguments)
    named = next((i for i, a in enumerate(arguments) if not a.startswith("-")), len(arguments))
    name = next((n for n in arguments[named : named + 1] if n in commands), "")
    options_of = partial(_options_of, tuple(commands.items()))
    parser = _parser(tuple(commands.items()), name)
    elsewhere = partial(_commands_with_option, commands, options_of)
    _check_words(parser, arguments[:named], elsewhere)
    if named < len(arguments):
        _check_words(_command(parser, arguments[named]), arguments[named + 1 :], elsewhere)
    page = _Page(environment)
    try:
        with redirect_stdout(page):
            # The result is None or a number where a help page is printed, else the command's options.
            options: Any = parser.main(args=[*arguments], prog_name="gradcli", standalone_mode=False)
    except typer.TyperException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "gradcli")
        raise UsageError(_usage_message(error), hint=f"{path} --help shows the usage") from None
    if options is None or isinstance(options, int):
        environment.write(page.getvalue())
        return ExitStatus.SUCCESS
    limited = any(getattr(options, limit, None) is not None for limit in ("max_seconds", "max_memory"))
    if limited and not environment.is_child:
        return run_in_child(options)
    try:
        return _declared(name).run(options, environment)
    except GradcliError as error:
        # Imported here so that only a failing command pays for it.
        from gradcli.cli import hints

        hints.check(error, name, options, options_of)
        raise


def _options_of(commands: tuple[tuple[str, str], ...], name: str) -> set[str]:
    """The options of a command; only --help for an unknown command."""
    command = _parser(commands, name).commands.get(name)
    return {"--help", *(option for p in getattr(command, "params", ()) for option in p.opts)}


def _commands_with_option(commands: Iterable[str], options_of: OptionsOf, option: str) -> list[str]:
    """The commands that have an option."""
    return [name for name in commands if option in options_of(name)]


def _with_help(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments with a trailing `-h` as `--help`, where `-h` cannot be a program because no values follow."""
    return [*arguments[:-1], "--help"] if arguments[-1:] == ["-h"] and len(arguments) <= 2 else arguments


class _Page(StringIO):
    """Captures what Typer prints: it reports the terminal and encoding of standard output, and writing never fails."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self._environment = environment

    def isatty(self) -> bool:
        return self._environment.for_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._environment.stdout, "encoding", None) or "utf-8"


@cache
def _parser(commands: tuple[tuple[str, str], ...], named: str) -> Any:
    """The Click parser, which returns the options of the command that is named, or None where it prints a page.

    Only the module of that command is imported; of the others the one-line summary is known.
    """
    app = typer.Typer(
        name="gradcli",
        help="Exact derivatives of a formula: gradcli eval 'log(x**q)' x=5 q=3",
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def gradcli(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    ) -> None:
        if version:
            from gradcli import __version__

            typer.echo(f"gradcli {__version__}")
        elif context.invoked_subcommand is None:
            typer.echo(context.get_help())

    for name, summary in commands:
        if name == named:
            _add(app, name, summary, _declared(name))
        else:
            app.command(name, help=summary)(lambda: None)
    parser = typer.main.get_command(app)
    for command in (parser, *getattr(parser, "commands", {}).values()):
        command.help = _as_markup(command.help)
        for parameter in command.params:
            parameter.help = _as_markup(getattr(parameter, "help", None))
    return parser


def _as_markup(text: str | None) -> str | None:
    """A text escaped for Rich, which reads words in brackets as styles."""
    return text and _STYLE.sub(r"\\[", text)


def _declared(name: str) -> Command[Any]:
    command: Command[Any] = import_module(f"gradcli.cli.commands.{name}").COMMAND
    return command


def _add(app: typer.Typer, name: str, summary: str, command: Command[Any]) -> None:
    def options(**given: Any) -> Any:
        return command.options(**given)

    hints = get_type_hints(command.options, include_extras=True)
    names = dict.fromkeys(name for kind in command.options.__mro__ for name in inspect.get_annotations(kind))
    given_by_name, required = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    options.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, given_by_name, default=getattr(command.options, name, required), annotation=hints[name]
            )
            for name in names
        ]
    )
    # A program may start with a minus, even -h.
    settings: dict[str, Any] = {"ignore_unknown_options": "words" in hints}
    app.command(name, help=f"{summary}\n\n{command.help}", context_settings=settings)(options)


# Option names that other tools use, and the equivalent options here.
_OPTION_SYNONYMS = {
    **dict.fromkeys(("--hessian", "--derivative", "--derivatives", "--degree", "--terms"), "--order"),
    **dict.fromkeys(("--format", "--as"), "--json"),
    **dict.fromkeys(("--constraint", "--constraints", "--st"), "--subject-to"),
    **dict.fromkeys(("--weights", "--errors", "--yerr"), "--sigma"),
    **dict.fromkeys(("--delimiter", "--sep"), "--separator"),
    **dict.fromkeys(("--language", "--lang"), "--to"),
    **{f"--{language}": f"--to {language}" for language in ("latex", "python", "sql", "polars")},
    **{"--by": "--wrt", "--tex": "--to latex", "--numpy": "--to python"},
    **dict.fromkeys(("--maximize", "--maximise"), "--max"),
    **dict.fromkeys(("--out", "--save"), "--output"),
    **dict.fromkeys(("--silent",), "--quiet"),
}
# Names that other tools use for the option with the start of a search.
_STARTS = ("--start", "--init", "--initial", "--guess", "--p0", "--x0")
# Command names that other tools use, and the hints for them.
_COMMAND_HINTS = {
    "help": "gradcli --help lists the commands, gradcli COMMAND --help says all about one",
    "maximize": "gradcli minimize --max finds a maximum",
    "maximise": "gradcli minimize --max finds a maximum",
    "minimise": "did you mean 'minimize'?",
    "optimize": "did you mean 'minimize'?",
    "grad": "gradcli eval prints the gradient, gradcli diff derivatives as formulas",
    "gradient": "gradcli eval prints the gradient, gradcli diff derivatives as formulas",
    "derivative": "gradcli diff prints derivatives as formulas, gradcli eval their values",
    "differentiate": "gradcli diff prints derivatives as formulas, gradcli eval their values",
    "calc": "did you mean 'eval'?",
    "run": "did you mean 'eval'?",
    "functions": "did you mean 'ops'?",
    "taylor": "did you mean 'series'?",
    "root": "did you mean 'solve'?",
    "roots": "did you mean 'solve'?",
    "version": "gradcli --version shows it",
    "simplify": "gradcli diff --simplify simplifies derivatives",
    **dict.fromkeys(
        ("integrate", "integral", "int"), "trapezoid(y, x) in a program adds values up; there are no formulas"
    ),
    "limit": "gradcli eval has the limit of a quotient such as sin(x)/x at x=0",
    **dict.fromkeys(("factor", "expand"), "the formulas here are derivatives alone: gradcli diff prints them"),
    **dict.fromkeys(("graph2d", "draw", "chart"), "did you mean 'plot'?"),
    **dict.fromkeys(("jacobian", "hessian"), "gradcli eval has --jacobian, and --order 2 for second derivatives"),
    **dict.fromkeys(("regress", "regression", "lm", "nls", "curve_fit"), "did you mean 'fit'?"),
    **dict.fromkeys(
        ("repl", "shell", "interactive", "console"),
        "each call of gradcli computes one program; gradcli map - --from jsonl answers line by line",
    ),
}


def _command(parser: Any, name: str) -> Any:
    if name not in parser.commands:
        a_word = name.isidentifier() and "_" not in name
        general = "gradcli --help lists the commands" if a_word else f"gradcli eval {name!r} evaluates a program"
        otherwise = _COMMAND_HINTS.get(name.casefold(), general)
        hint = otherwise if name.casefold() in _COMMAND_HINTS else did_you_mean(name, parser.commands, otherwise)
        raise UsageError(f"there is no command {name!r}", hint=hint)
    return parser.commands[name]


def _check_words(command: Any, arguments: Sequence[str], elsewhere: Callable[[str], Sequence[str]]) -> None:
    """Raise UsageError for an unknown option, for an option given twice, and for an option after `--`; `elsewhere`
    gives the commands that have an option.

    The parser passes unknown options through, so that the program, the first word that is not an option, may start with
    a minus.
    """
    options = {name: parameter for parameter in command.params for name in parameter.opts}
    path = "gradcli" if command.name == "gradcli" else f"gradcli {command.name}"
    given: set[str] = set()
    program = False
    words = iter(arguments)
    for word in words:
        if word == "--":
            _check_no_options(words, options)
            return
        if not word.startswith("--"):
            if program and _SHORT.fullmatch(word):
                raise _no_option(word, options, path, elsewhere)
            # A value before a program such as -x is reported where the words are read.
            program = program or "=" not in word
            continue
        name, equals, _ = word.partition("=")
        if name in options:
            if getattr(options[name], "is_flag", False):
                continue
            if name in given and not options[name].multiple:
                raise UsageError(f"{name} is given twice", hint="leave one of them out")
            given.add(name)
            if not equals:
                next(words, None)
        elif name != "--help":
            raise _no_option(name, options, path, elsewhere)


def _check_no_options(words: Iterable[str], options: Collection[str]) -> None:
    """Raise UsageError for an option after `--`."""
    for word in words:
        if word.startswith("--") and word.partition("=")[0] in options:
            raise UsageError(
                f"{word} stands behind --, which ends the options",
                hint="put -- behind them, or leave it out: a program may start with a minus without it",
            )


def _no_option(word: str, options: Iterable[str], path: str, elsewhere: Callable[[str], Sequence[str]]) -> UsageError:
    known = [*options, "--help"]
    if _OPTION_SYNONYMS.get(word, "").partition(" ")[0] in known:
        return UsageError(f"there is no option {word}", hint=f"did you mean {_OPTION_SYNONYMS[word]}?")
    if word in _STARTS and path != "gradcli":
        hint = "a start is a value behind the program: x=1 in gradcli fit and minimize, x~1 in gradcli solve"
        return UsageError(f"there is no option {word}", hint=hint)
    meant = [name for name in known if name.startswith(f"-{word}")]
    close = meant[0] if len(meant) == 1 else closest_word(word, known)
    hint = f"did you mean {close}?" if close else f"{path} --help lists the options"
    if path != "gradcli" and (others := elsewhere(word)):
        hint = f"{word} is an option of gradcli {', gradcli '.join(others)}"
    return UsageError(f"there is no option {word}", hint=hint)


def _usage_message(error: Any) -> str:
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    return _KIND.sub(lambda found: _KINDS[found[1]], str(text).rstrip("."))
