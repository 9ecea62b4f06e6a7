"""The entry point of the command line: from arguments to an exit status, with every error reported."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from io import StringIO
from itertools import pairwise

from gradcli.cli import command
from gradcli.cli.process.environment import Environment, process_arguments
from gradcli.cli.process.interrupts import Interrupts
from gradcli.errors import ExitStatus, GradcliError, PipeClosed, internal
from gradcli.type_hints import Any

# The commands, whose modules have the same names, and the first lines of their help pages.
COMMANDS = {
    "eval": "The value of PROGRAM, a formula, and its derivative by each name.",
    "diff": "The derivatives of PROGRAM as formulas.",
    "plot": "A picture of PROGRAM over a range of a name, or over two.",
    "solve": "The roots of EQUATIONS, and how they change with constants.",
    "fit": "The parameters with which a model fits data best.",
    "minimize": "Where PROGRAM is least, from a start.",
    "propagate": "The uncertainty of PROGRAM from those of its inputs.",
    "series": "The Taylor polynomial of PROGRAM.",
    "map": "PROGRAM and its derivatives for each row of a table.",
    "ode": "The solutions of differential EQUATIONS, and their derivatives.",
    "check": "Whether the derivatives of PROGRAM are right.",
    "graph": "The operations of PROGRAM, from its value to its inputs.",
    "explain": "The chain rule for PROGRAM in words and numbers.",
    "shell": "An interactive session: names keep their values.",
    "sample": "Draws from the density whose logarithm PROGRAM is.",
    "design": "Which rows to measure, so that they tell most of a model.",
    "ops": "The functions of the language: a list, a search, or one of them.",
    "backends": "The array libraries that can compute, and how to install them.",
    "completion": "Completion by the Tab key in bash, zsh, fish and PowerShell.",
    "serve": "Answers other programs: by MCP, or by HTTP on this machine.",
    "help": "What a command, an option, a function or a word means.",
}


def main(
    arguments: Sequence[str], environment: Environment, interrupted: Callable[[], bool] = lambda: False
) -> ExitStatus:
    """Run a command line; every error becomes a message and an exit status.

    `interrupted` says whether there was an interrupt, which a library may have turned into another error.
    """
    status = ExitStatus.INTERRUPTED
    try:
        status = call(arguments, environment)
    except PipeClosed:
        return ExitStatus.SUCCESS
    except KeyboardInterrupt:
        pass
    except Exception as error:
        if not interrupted():
            return _report(explained(error), error, arguments, environment)
    if status is ExitStatus.INTERRUPTED or interrupted():
        environment.write_error("interrupted")
        return ExitStatus.INTERRUPTED
    return status


def call(arguments: Sequence[str], environment: Environment) -> ExitStatus:
    """Run a command line. Raises whatever the command raises."""
    arguments = arguments or _arguments_alone(environment)
    return command.call(COMMANDS, arguments, environment, partial(_run_in_child, arguments, environment))


def _arguments_alone(environment: Environment) -> Sequence[str]:
    """The command that `gradcli` without arguments runs: on a terminal the shell."""
    return ["shell"] if environment.is_interactive else []


def _run_in_child(arguments: Sequence[str], environment: Environment, options: Any) -> ExitStatus:
    from gradcli.cli.process import child_process

    return child_process.run(main, arguments, environment, options)


def explained(error: Exception) -> GradcliError:
    """The error to report for an exception."""
    if isinstance(error, GradcliError):
        return error
    from gradcli import subprocess_calls

    refused = subprocess_calls.out_of_memory(error)
    if refused is None and isinstance(error, OSError):
        # Usually about a file of a library: files named on the command line raise errors of their own.
        return GradcliError(f"the system refused: {error}", hint="check its limits and its disks")
    return refused or internal(error)


def _report(error: GradcliError, cause: Exception, arguments: Sequence[str], environment: Environment) -> ExitStatus:
    _check_proposal(error, arguments, environment)
    if "--traceback" in arguments:
        # Imported here because it compiles regular expressions.
        import traceback

        environment.write_error("".join(traceback.format_exception(cause)).rstrip())
    environment.report(error, wants_json(arguments))
    return error.exit_status


# The limits of the trial of a proposal: about 0.1 s.
_TRIAL = ("--max-steps", "20000", "--max-elements", "200000")
# Commands that only compute, so that a trial writes no file.
_COMPUTING = ("eval", "diff", "check", "graph", "series", "solve", "minimize", "propagate")


def _check_proposal(error: GradcliError, arguments: Sequence[str], environment: Environment) -> None:
    """Replace the hint at another command or option where that fails with the words of this command line."""
    proposed = getattr(error, "proposed", None)
    if proposed is None:
        return
    word = error.word  # type: ignore[attr-defined]
    words = [part for a in arguments for part in (proposed.split() if a == word else [a])]
    # Standard input can be read only once, and without a program there is nothing to try.
    programs = [w for w in words[1:] if not w.startswith("--") and "=" not in w]
    if words[0] not in _COMPUTING or not programs or any(w == "-" or w.endswith("@-") for w in words):
        return
    if any(w.startswith(("--save", "-o", "--output", "--max-")) for w in words):
        return
    trial = environment._replace(stdin=None, stdout=StringIO(), stderr=StringIO())
    try:
        command.call(COMMANDS, [words[0], *_TRIAL, *words[1:]], trial, lambda _options: ExitStatus.SUCCESS)
    except GradcliError as failure:
        # Only these failures show that the words do not fit: names may lack values, and a trial may take too long.
        if failure.kind in ("usage", "syntax") and "requires an argument" not in failure.message:
            error.hint = error.otherwise  # type: ignore[attr-defined]
    except Exception:
        return


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON; its errors are then reported as JSON too."""
    # Before any other word -j may be a program.
    return (
        "--json" in arguments
        or ("-j" in arguments[1:] and len(arguments) > 2)
        or "--to=json" in arguments
        or ("--to", "json") in pairwise(arguments)
    )


def run() -> None:
    """The entry point of the console script `gradcli`, with streams and signals of this process."""
    if not sys.warnoptions:
        # Warnings of libraries concern their callers, not the user.
        warnings.simplefilter("ignore")
    interrupts = Interrupts()
    environment = Environment.of_process()._replace(interrupts=interrupts)
    try:
        interrupts.listen()
        status = main(process_arguments(), environment, lambda: interrupts.seen)
    except KeyboardInterrupt:
        status = ExitStatus.INTERRUPTED
    interrupts.over = True
    interrupts.stop_listening()
    environment.redirect_broken_streams()
    sys.exit(status)
