"""Help pages, which Typer writes from the declarations of the options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Annotated, Any

import typer

from gradcli.cli.options import Field, Option, fields
from gradcli.cli.process.environment import Environment

# The start of a style tag in Rich's markup.
_STYLE = re.compile(r"\[(?=[a-z#/@])")


def general_page(environment: Environment, general: type, commands: Mapping[str, str]) -> str:
    """The page of `gradcli --help`; `commands` maps names to one-line summaries."""
    return _printed(_parser(general, {name: (summary, None) for name, summary in commands.items()}), [], environment)


def command_page(environment: Environment, name: str, summary: str, options: type, text: str) -> str:
    """The help page of a command: its summary, the `text` behind that, and its options."""
    parser = _parser(None, {name: (f"{summary}\n\n{text}", options)})
    return _printed(parser, [name], environment)


def _parser(general: type | None, commands: Mapping[str, tuple[str, type | None]]) -> Any:
    """The Click parser of commands with a help text and options."""
    app = typer.Typer(
        name="gradcli",
        help="Exact derivatives of a formula: gradcli eval 'log(x**q)' x=5 q=3",
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_with_parameters(general))
    for name, (text, options) in commands.items():
        app.command(name, help=text)(_with_parameters(options))
    parser: Any = typer.main.get_command(app)
    for described in (parser, *parser.commands.values()):
        described.help = _as_markup(described.help)
        for parameter in described.params:
            parameter.help = _as_markup(getattr(parameter, "help", None))
    return parser


def _printed(parser: Any, path: Sequence[str], environment: Environment) -> str:
    captured = _Page(environment)
    with redirect_stdout(captured):
        parser.main(args=[*path, "--help"], prog_name="gradcli", standalone_mode=False)
    return captured.getvalue()


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


def _as_markup(text: str | None) -> str | None:
    """A text escaped for Rich, which reads words in brackets as styles."""
    return text and _STYLE.sub(r"\\[", text)


def _with_parameters(options: type | None) -> Any:
    """A function with a parameter for each option, from which Typer reads what to write."""
    declared = () if options is None else fields(options)

    def function(**_given: Any) -> None:
        pass

    function.__signature__ = inspect.Signature([_parameter(field) for field in declared])  # type: ignore[attr-defined]
    return function


def _parameter(field: Field) -> inspect.Parameter:
    declared, default = field.declared, field.default
    described: Any
    if isinstance(declared, Option):
        described = typer.Option(
            declared.name, metavar=declared.metavar, help=declared.help, min=declared.min, max=declared.max
        )
    else:
        described = typer.Argument(metavar=declared.metavar, help=declared.help, show_default=False)
    required = inspect.Parameter.empty
    kind = list[str] if field.kind is list else field.kind
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=required if field.required else default,
        annotation=Annotated[kind | None if default is None else kind, described],
    )
