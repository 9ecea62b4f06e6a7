"""The words that the Tab key completes: commands, their options, the values of these, and names of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradcli.cli.command import command_named
from gradcli.cli.options import Field, Option, argument, fields
from gradcli.named_tuples import NamedTuple

# The values of options that are paths, and the words that are files, as help pages name them.
_PATHS, _FILES = ("PATH", "DIR", "FILE"), ("[DATA]", "FILE", "PATH")
HELP = {"--help": "Explain the command on one screen.", "--help-all": "Explain all of its options."}


class Completed(NamedTuple):
    """An option with its short name, what it explains, and the `values` it may have: None for a flag, an empty list
    where anything may stand. `takes_file` is whether its value is the path of a file."""

    name: str
    short: str | None
    text: str
    values: Sequence[str] | None
    takes_file: bool


class CompletedCommand(NamedTuple):
    """A command with its options, the `words` that may follow it, and whether files may."""

    name: str
    summary: str
    options: Sequence[Completed]
    words: Sequence[str]
    takes_files: bool


def completed_commands(commands: Mapping[str, str], words: Mapping[str, Sequence[str]]) -> list[CompletedCommand]:
    """The commands by their summaries; `words` has what may follow some of them."""
    return [_command(name, summary, words.get(name, ())) for name, summary in commands.items()]


def _command(name: str, summary: str, words: Sequence[str]) -> CompletedCommand:
    options: type = command_named(name).options
    found = [_option(field) for field in fields(options) if isinstance(field.declared, Option)]
    found += [Completed(option, None, text, None, False) for option, text in HELP.items()]
    expected = argument(options)
    takes_files = expected is not None and any(word in expected.declared.metavar for word in _FILES)
    return CompletedCommand(name, summary, found, words, takes_files)


def _option(field: Field) -> Completed:
    declared = field.declared
    text = declared.brief or declared.help
    if field.kind is bool:
        return Completed(declared.name, declared.short, text, None, False)
    metavar = declared.metavar or ""
    values = [value for value in metavar.split("|") if value.replace(":", "").replace("-", "_").isidentifier()]
    fixed = [value for value in values if value == value.lower()] if "|" in metavar else []
    takes_file = any(metavar.startswith(path) for path in _PATHS)
    return Completed(declared.name, declared.short, text, [] if takes_file else fixed, takes_file)
