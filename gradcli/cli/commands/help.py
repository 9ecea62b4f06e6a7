"""The command `gradcli help`: explains a command, an option, a function or a word."""

from __future__ import annotations

import re
from collections.abc import Callable

from gradcli.cli import help_pages
from gradcli.cli import options as opt
from gradcli.cli.command import Command, command_named, declared_options
from gradcli.cli.commands import ops
from gradcli.cli.main import COMMANDS
from gradcli.cli.options import Field
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus, UnknownNameError
from gradcli.type_hints import Annotated

_HELP = """\
A command is explained with all its options, a function as by gradcli ops. Of any other word, what mentions it is
listed: commands, functions and options.

Examples:

  gradcli help eval

  gradcli help order

  gradcli help log

  gradcli help uncertainty
"""

# The fewest characters of a word that is looked for in texts.
_SHORTEST_SEARCHED = 3


class HelpOptions(opt.Options):
    """The options of `gradcli help`."""

    topic: Annotated[
        str | None,
        opt.Argument(metavar="[TOPIC]", help="A command, an option, a function, or a word of what is meant."),
    ] = None


def run(options: HelpOptions, environment: Environment) -> ExitStatus:
    """Write the page of a topic; see `gradcli help --help`."""
    topic = options.topic
    if topic is None:
        environment.write(help_pages.general_page(environment, COMMANDS))
    elif topic in COMMANDS:
        declared = command_named(topic)
        environment.write(help_pages.full_page(environment, topic, COMMANDS[topic], declared.options, declared.help))
    else:
        _explain_word(topic, environment)
    return ExitStatus.SUCCESS


def _explain_word(word: str, environment: Environment) -> None:
    """Explain the option that is called so, and list commands and functions; where there are none, what mentions it."""
    of_commands = _with_option(f"--{word}")
    commands = {} if of_commands else {name: text for name, text in COMMANDS.items() if _mentions(text, word)}
    if of_commands:
        environment.write(help_pages.option_page(environment, of_commands))
        for others in _options_for_which(lambda declared: declared.group.lower() == word.lower()).values():
            environment.write(help_pages.option_page(environment, others))
    if commands:
        environment.write(help_pages.commands_page(environment, commands))
    if of_commands and not ops.is_described(word):
        return
    try:
        environment.write("\n" if of_commands or (commands and ops.is_found(word)) else "")
        ops.run(ops.OpsOptions(name=word), environment)
    except UnknownNameError:
        mentioning = _mentioning(word)
        described = {n: t for n in COMMANDS if n not in commands and (t := _sentence(n, word))}
        if not (commands or described or mentioning):
            raise
        environment.write(help_pages.commands_page(environment, described))
        for of_commands in mentioning.values():
            environment.write(help_pages.option_page(environment, of_commands))


def _mentions(text: str, word: str) -> bool:
    """Return whether a text has a word that begins like this one, in the singular or plural."""
    stem = word[:-1] if word.endswith("s") else word
    return len(word) >= _SHORTEST_SEARCHED and re.search(rf"\b{re.escape(stem)}", text, re.IGNORECASE) is not None


def _sentence(command: str, word: str) -> str | None:
    """The first sentence of the help page of a command that mentions a word."""
    text = " ".join(help_pages.paragraphs(command_named(command).help))
    return next((s for s in re.split(r"(?<=\.) (?=[A-Z])", text) if _mentions(s, word)), None)


def _mentioning(word: str) -> dict[str, dict[str, Field]]:
    """The options whose explanation, values or group mention a word, each with its declaration by command."""

    def mentions(declared: opt.Option) -> bool:
        return _mentions(f"{declared.metavar} {declared.help} {declared.group}", word)

    return _options_for_which(mentions)


def _options_for_which(holds: Callable[[opt.Option], bool]) -> dict[str, dict[str, Field]]:
    """The options with a property, each with its declaration by command."""
    found: dict[str, dict[str, Field]] = {}
    for command in COMMANDS:
        for name, field in declared_options(command).items():
            if holds(field.declared):
                found.setdefault(name, {})[command] = field
    return found


def _with_option(option: str) -> dict[str, Field]:
    """The commands that have an option, and its declaration in each."""
    declared = {name: declared_options(name) for name in COMMANDS}
    return {name: options[option] for name, options in declared.items() if option in options}


COMMAND = Command(HelpOptions, run, _HELP)
