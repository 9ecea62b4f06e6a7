"""The command `gradcli shell`: an interactive session."""

from __future__ import annotations

from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.process.environment import Environment
from gradcli.cli.shell import read_loop
from gradcli.errors import ExitStatus
from gradcli.type_hints import Annotated

_HELP = """\
x = 5 gives a name a value, log(x**q) prints the value and the gradient by the names that have one, _ is the last value.
:diff log(x**q) and the like run commands with the names of the session; :help lists them. Where input is no terminal,
statements are read from it.

Examples:

  gradcli shell

  gradcli shell lesson.grad

  echo 'x = 5; log(x**2)' | gradcli shell
"""


class ShellOptions(opt.Options):
    """The options of `gradcli shell`."""

    transcript: Annotated[
        str | None,
        opt.Argument(metavar="[FILE]", help="Run the statements of a file, as :save writes it, and end."),
    ] = None
    plain: Annotated[
        bool,
        opt.Option(
            "--plain",
            brief="Plain lines, for screen readers.",
            help="Read plain lines, without completion: for screen readers.",
        ),
    ] = False


def run(options: ShellOptions, environment: Environment) -> ExitStatus:
    """Run a session; see `gradcli shell --help`."""
    if options.transcript is not None:
        return read_loop.run_file(options.transcript, environment, traceback=options.traceback)
    if environment.is_interactive:
        return read_loop.run_interactively(environment, plain=options.plain, traceback=options.traceback)
    return read_loop.run_input(environment, traceback=options.traceback)


COMMAND = Command(ShellOptions, run, _HELP)
