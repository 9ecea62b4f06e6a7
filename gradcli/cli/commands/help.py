"""The command `gradcli help`: explains a command, an option, a function or a word."""

from __future__ import annotations

from typing import Annotated

from gradcli.cli import help_pages
from gradcli.cli import options as opt
from gradcli.cli.command import Command, command_named, declared_options
from gradcli.cli.commands import ops
from gradcli.cli.main import COMMANDS
from gradcli.cli.options import Field
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus

_HELP = """\
A command is explained with all its options, anything else as by gradcli ops.

Examples:

  gradcli help eval

  gradcli help order

  gradcli help log
"""


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
        of_commands = _with_option(f"--{topic}")
        if of_commands:
            environment.write(help_pages.option_page(environment, of_commands))
        if not of_commands or ops.is_described(topic):
            environment.write("\n" if of_commands else "")
            return ops.run(ops.OpsOptions(name=topic), environment)
    return ExitStatus.SUCCESS


def _with_option(option: str) -> dict[str, Field]:
    """The commands that have an option, and its declaration in each."""
    declared = {name: declared_options(name) for name in COMMANDS}
    return {name: options[option] for name, options in declared.items() if option in options}


COMMAND = Command(HelpOptions, run, _HELP)
