"""Runs what is typed, input by input: statements, and `:` commands. Errors are reported, and the session continues."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from traceback import format_exception
from types import SimpleNamespace

from gradcli import arrays
from gradcli.cli import main
from gradcli.cli.command import parameters_of
from gradcli.cli.process.environment import Environment
from gradcli.cli.shell import colon_commands
from gradcli.cli.shell.shell_session import Session, check_hint
from gradcli.cli.shell.typed_text import CONTINUED, PROMPT, InputReader, inputs_of, is_command
from gradcli.errors import ExitStatus, GradcliError, PipeClosed, UnknownNameError, UsageError
from gradcli.install_command import install_command
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.cli.shell.workspace import Answer

# It fits 40 columns.
WELCOME = "Try x=5; q=3; log(x**q)  :help  :quit"
# Depth of files that load each other.
_MAX_FILES = 16
# Words that leave Python's shell, or ask it for help.
_BARE_COMMANDS = {"quit": ":quit", "exit": ":quit", "help": ":help", "?": ":help", "quit()": ":quit", "exit()": ":quit"}
# An option at the end of an input, which may have a value.
_OPTION = re.compile(r"\S\s+(--[a-z][a-z-]*)(?:\s+[\w,.]+)?\s*$")
# A command in a hint.
_COMMAND = re.compile(r"\bgradcli (--help|[a-z]+)")


def _hint_at_options(error: GradcliError, text: str) -> None:
    """Replace the hint of an error if `text` is an expression followed by an option."""
    found = _OPTION.search(text)
    if found is not None and found[1] in parameters_of("eval").options:
        error.hint = f"options stand behind a command: :eval {text.strip()}"


class Shell(Session):
    """A session that runs inputs."""

    def __init__(self, environment: Environment, *, interactive: bool = False, traceback: bool = False) -> None:
        super().__init__(environment, interactive=interactive, traceback=traceback)
        # The number of nested files that are being run.
        self._files = 0

    def run(self, text: str) -> None:
        """Run an input; errors are reported."""
        workspace = self.loaded_workspace
        if workspace is None or text.strip() not in workspace.entries:
            text = _BARE_COMMANDS.get(text.strip(), text)
        try:
            self._run_reported(text)
        except KeyboardInterrupt:
            if not self.interactive or self._files:
                # It stops the file as well.
                raise
            self._take_interrupt()
            # The terminal has written ^C.
            self.environment.write_error("\ninterrupted")

    def _run_reported(self, text: str) -> None:
        try:
            self._run(text)
        except PipeClosed:
            raise
        except Exception as error:
            if self._take_interrupt():
                raise KeyboardInterrupt from None
            self._report(error)
        if self._take_interrupt():
            raise KeyboardInterrupt

    def _take_interrupt(self) -> bool:
        """Return whether there was an interrupt since the last call; a library may have turned it into another
        error."""
        interrupts = self.environment.interrupts
        seen = interrupts is not None and interrupts.seen
        if interrupts is not None:
            interrupts.seen = interrupts.seen and not self.interactive
        return seen

    def _run(self, text: str) -> None:
        if all(line.lstrip()[:1] in ("", "#") for line in text.split("\n")):
            return
        # It waits until everything is loaded.
        names = self.workspace
        if is_command(text):
            colon_commands.run(self, text.strip())
            return
        from gradcli.cli.shell import workspace

        if workspace.reads_file(text):
            names.read_file(text)
            self.transcript.append(text)
            return
        try:
            found = workspace.statements(text)
        except GradcliError as error:
            check_hint(error, [text])
            if text.split()[0] in colon_commands.names():
                error.hint = f"commands begin with a colon: :{text.strip()}"
            _hint_at_options(error, text)
            raise
        for statement in found:
            try:
                answer = names.run(statement)
            except UnknownNameError as error:
                _hint_at_options(error, statement.text)
                raise
            self.transcript.append(statement.text)
            if answer is not None:
                self._show(statement.text, answer)

    def _show(self, text: str, answer: Answer) -> None:
        from gradcli.cli.arguments import inputs
        from gradcli.cli.rendering.evaluation_report import evaluation_tables
        from gradcli.cli.rendering.render import show, warning_text
        from gradcli.cli.shell.workspace import place_in

        result = answer.result
        show(evaluation_tables(result), self.environment)
        inputs.note_degree_functions(text, SimpleNamespace(quiet=False), self.environment)
        if result.grad is None and answer.inputs:
            shape = list(arrays.shape(result.value))
            self.environment.write_error(
                f"note: a value of shape {shape} has no gradient: :eval _ --jacobian differentiates each element"
            )
        for warning in result.warnings:
            source, span = place_in(answer.assembled, warning.span)
            # Other statements may use definitions that this one does not.
            if warning.code != "unused" or warning.span.start >= answer.assembled.lead:
                self.environment.write_error(warning_text(warning._replace(span=span), source))

    def _report(self, cause: Exception) -> None:
        """Report an error, with a hint that is written for the shell."""
        if self.traceback:
            self.environment.write_error("".join(format_exception(cause)).rstrip())
        error = main.explained(cause)
        self.status = self.status or error.exit_status
        if error.hint is not None:
            error.hint = _COMMAND.sub(_as_colon_command, str(error.hint))
        self.environment.report(error, as_json=False)

    def run_file(self, path: str) -> None:
        """Run the inputs of a file, until one of them ends the session."""
        from gradcli.cli.arguments.inputs import read_program

        if self._files == _MAX_FILES:
            raise UsageError(f"{path} is loaded within {_MAX_FILES} files", hint="a file may load itself")
        text = read_program(path)
        self._files += 1
        try:
            self.run_all(inputs_of(text))
        finally:
            self._files -= 1

    def run_all(self, inputs: Iterator[str]) -> None:
        for text in inputs:
            self.run(text)
            if self.is_over:
                return


def _as_colon_command(found: re.Match[str]) -> str:
    name = found[1].removeprefix("--")
    return f":{name}" if name in {*main.COMMANDS, "help"} else found[0]


def run_file(path: str, environment: Environment, *, traceback: bool) -> ExitStatus:
    """Run a transcript."""
    shell = Shell(environment._replace(stdin=None), traceback=traceback)
    shell.run_file(path)
    return shell.status


def run_input(environment: Environment, *, traceback: bool) -> ExitStatus:
    """Run the statements on standard input."""
    shell = Shell(environment._replace(stdin=None), traceback=traceback)
    shell.run_all(_read_inputs(environment))
    return shell.status


def _read_inputs(environment: Environment) -> Iterator[str]:
    if environment.stdin is None:
        raise UsageError("standard input is closed, and statements are read from it")
    reader = InputReader(at_blank=False)
    try:
        for line in environment.stdin:
            yield from reader.feed(line.rstrip("\r\n"))
    except UnicodeDecodeError:
        raise UsageError("standard input is not UTF-8 text, and statements are read from it") from None
    yield from reader.end()


def run_interactively(environment: Environment, *, plain: bool, traceback: bool) -> ExitStatus:
    """Run a session at a terminal."""
    shell = Shell(environment, interactive=True, traceback=traceback)
    environment.write(f"{WELCOME}\n")
    shell.run_all(_typed_inputs(shell, plain=plain or environment.variables.get("TERM") in ("dumb", "unknown")))
    return ExitStatus.SUCCESS


def _typed_inputs(shell: Shell, *, plain: bool) -> Iterator[str]:
    if not plain:
        try:
            from gradcli.cli.shell.editor import Editor
        except ImportError:
            shell.environment.write_error(f"note: completion and history need {install_command('shell')}")
        else:
            yield from Editor(shell).inputs()
            return
    yield from _plain_inputs(shell.environment)


def _plain_inputs(environment: Environment) -> Iterator[str]:
    """Inputs from plain lines; with Python's readline, where it exists, lines can be edited."""
    reader = InputReader(at_blank=True)
    while True:
        try:
            line = _line(environment, CONTINUED if reader.is_within else PROMPT)
        except KeyboardInterrupt:
            reader = InputReader(at_blank=True)
            if environment.interrupts is not None:
                environment.interrupts.seen = False
            environment.write("\n")
            continue
        if line is None:
            environment.write("\n")
            yield from reader.end()
            return
        yield from reader.feed(line)


def _line(environment: Environment, prompt: str) -> str | None:
    """A line that is typed; None at the end."""
    if environment.stdin is sys.stdin and environment.stdout is sys.stdout:
        with suppress(ImportError):
            import readline  # noqa: F401
        try:
            return input(prompt)
        except EOFError:
            return None
    environment.write(prompt)
    line: Any = environment.stdin.readline() if environment.stdin is not None else ""
    return line.rstrip("\r\n") if line else None
