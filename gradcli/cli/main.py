"""The command line: from arguments to an exit status, with every error caught on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from gradcli.cli import command
from gradcli.cli.environment import Environment
from gradcli.errors import ExitStatus, GradcliError, LimitError, OutputError, PipeClosed

# The commands, whose files have the same names, and the first line of their help.
COMMANDS = {
    "eval": "Value and leaf gradients of PROGRAM.",
    "check": "Whether the derivatives of PROGRAM are right: reverse mode beside central differences.",
    "graph": "The operations that PROGRAM records, from its value down to its inputs.",
    "diff": "The derivatives of PROGRAM as formulas.",
    "ops": "The functions of the language, or all about the one called NAME.",
    "backends": "The array libraries that can compute: which are installed, their devices, and how to install the rest.",
}


def main(arguments: Sequence[str], environment: Environment) -> ExitStatus:
    """Run a command line; every error becomes a message and an exit status."""
    try:
        return command.call(COMMANDS, arguments, environment)
    except PipeClosed:
        _abandon_stdout()
        return ExitStatus.SUCCESS
    except KeyboardInterrupt:
        environment.complain("interrupted")
        return ExitStatus.INTERRUPTED
    except Exception as error:
        return _report(_explained(error), error, arguments, environment)


def _explained(error: Exception) -> GradcliError:
    if isinstance(error, GradcliError):
        return error
    if isinstance(error, OSError):
        return OutputError(f"cannot write: {error.strerror or error}")
    if isinstance(error, MemoryError):
        return LimitError("out of memory", hint="make the arrays smaller")
    return GradcliError(
        f"internal error: {type(error).__name__}: {error}",
        hint="this is a fault of gradcli; --traceback shows where",
    )


def _report(error: GradcliError, cause: Exception, arguments: Sequence[str], environment: Environment) -> ExitStatus:
    if "--traceback" in arguments:
        import traceback

        environment.complain("".join(traceback.format_exception(cause)).rstrip())
    if _wants_json(arguments):
        from gradcli.io import json_text

        environment.complain(json_text.dumps({"error": error.as_json()}))
    else:
        environment.complain(error.report())
    if error.kind == "output":
        _abandon_stdout()
    return error.exit_status


def _wants_json(arguments: Sequence[str]) -> bool:
    return "--json" in arguments or "--to=json" in arguments or ("--to", "json") in pairwise(arguments)


def _abandon_stdout() -> None:
    """Point standard output at nothing, so that the interpreter's last flush cannot fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def run() -> None:
    """The entry point of the `gradcli` command."""
    sys.exit(main(sys.argv[1:], Environment.of_process()))
