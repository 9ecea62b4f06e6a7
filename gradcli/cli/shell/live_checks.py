"""The hints of the editor while a text is typed: a mistake in it, and the function under the cursor."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable

from gradcli.cli import main
from gradcli.cli.process.environment import Environment
from gradcli.cli.shell import colon_commands
from gradcli.cli.shell.typed_text import closing_brackets, is_command
from gradcli.cli.shell.workspace import Definition, Workspace, names_read, place_in, reads_file
from gradcli.errors import GradcliError, Span
from gradcli.language.names import reference, scope
from gradcli.language.names.resolution import resolve
from gradcli.language.syntax import parse, tree
from gradcli.named_tuples import NamedTuple

# Longest text that is checked while it is typed, in characters: checking takes a few microseconds for each.
_LONGEST = 3_000
_CALLED = re.compile(r"([^\W\d]\w*)\s*$")
_WORD = re.compile(r"[^\W\d]\w*")


class Mistake(NamedTuple):
    """A mistake, and its span in the text."""

    message: str
    span: Span


def mistake(text: str, cursor: int, workspace: Workspace) -> Mistake | None:
    """The mistake in a text that is being typed; None if it may merely be unfinished, with the cursor at its end."""
    if not text.strip() or len(text) > _LONGEST:
        return None
    try:
        _check(text, workspace)
    except GradcliError as error:
        found = error
    else:
        return None
    written = len(text.rstrip())
    if found.span is None or (found.span.end >= written and cursor >= written):
        return None
    hint = f"; {found.hint}" if found.hint else ""
    return Mistake(f"{found.message}{hint}", found.span)


def _check(text: str, workspace: Workspace) -> None:
    """Raise GradcliError, with the span in the text, for a text that could not run."""
    if is_command(text):
        _check_command(text)
        return
    if reads_file(text):
        return
    whole = text + closing_brackets(text)
    parse(whole)
    assembled = workspace.assembled(whole, names_read(whole, ()))
    module = parse(assembled.source)
    values = {each.name for each in assembled.inputs}
    try:
        scope.check_names(module, values)
        # A name that a function reads may get its value later.
        if not isinstance(module.body[-1], tree.Define):
            _check_values(module, values)
    except GradcliError as error:
        if error.span is not None:
            source, span = place_in(assembled, error.span)
            if source != whole:
                return
            error.span = span
        raise


def _check_values(module: tree.Module, values: set[str]) -> None:
    defined = any(isinstance(statement, tree.Define) for statement in module.body)
    for name, read in scope.free_names(module).items():
        if name in values or name in scope.CONSTANTS or read.maybe_assigned or defined:
            continue
        error = scope.unknown_name(name, resolve(module).assigned.union(values), module.source, read.span)
        error.locate(read.span)
        raise error


def _check_command(text: str) -> None:
    name, _ = colon_commands.divided(text.strip())
    if name not in colon_commands.names():
        start = text.index(":")
        error = colon_commands.unknown_command(name)
        error.span = Span(start, text.index(name, start + 1) + len(name))
        raise error


def function_at(text: str, cursor: int, is_function: Callable[[str], bool]) -> str | None:
    """The function that is named at the cursor, or else the innermost one whose arguments the cursor is in."""
    for found in _WORD.finditer(text):
        if found.start() <= cursor <= found.end() and is_function(found[0]):
            return found[0]
    depth = 0
    for i in reversed(range(min(cursor, len(text)))):
        depth += (text[i] in ")]}") - (text[i] in "([{")
        if depth < 0:
            depth = 0
            called = _CALLED.search(text[:i]) if text[i] == "(" else None
            if called is not None and is_function(called[1]):
                return called[1]
    return None


class FunctionDescriptions:
    """Signatures and derivatives of functions. `changed` is called when a derivative is there that was not known."""

    def __init__(self, workspace: Workspace, changed: Callable[[], None]) -> None:
        self._workspace = workspace
        self._changed = changed
        # By definition, the derivatives of the functions of the session.
        self._derivatives: dict[Definition, str] = {}

    def is_function(self, name: str) -> bool:
        return self._defined(name) is not None or _entry(name) is not None

    def of(self, name: str) -> str:
        """The signature of a function with its derivative, in which g is the derivative by the result."""
        definition = self._defined(name)
        if definition is not None:
            return self._of_definition(name, definition)
        entry = _entry(name)
        if entry is None:
            return ""
        return f"{entry.usage}  derivative {entry.operation.derivative}  {entry.operation.doc}"

    def _defined(self, name: str) -> Definition | None:
        entry = self._workspace.entries.get(name)
        return entry if isinstance(entry, Definition) and not entry.values else None

    def _of_definition(self, name: str, definition: Definition) -> str:
        parameters = _parameters(definition.text)
        usage = f"{name}({', '.join(parameters)})"
        if definition not in self._derivatives:
            self._derivatives[definition] = ""
            assembled = self._workspace.assembled(usage, [name])
            arguments = ["diff", assembled.source, "--wrt", ",".join(parameters), "--max-steps", "100000"]
            if parameters:
                threading.Thread(target=self._differentiate, args=(definition, arguments), daemon=True).start()
        derivative = self._derivatives[definition]
        return f"{usage}  derivative {derivative}" if derivative else usage

    def _differentiate(self, definition: Definition, arguments: list[str]) -> None:
        out = io.StringIO()
        main.main(arguments, Environment(None, out, io.StringIO(), {}))
        self._derivatives[definition] = "  ".join(out.getvalue().split("\n")).strip()
        self._changed()


def _parameters(text: str) -> list[str]:
    """The names of the parameters of a function that a statement defines."""
    node = parse(f"{text}\n0").body[0]
    function = node if isinstance(node, tree.Define) else getattr(node, "value", None)
    return [p.name for p in function.parameters] if isinstance(function, (tree.Define, tree.Lambda)) else []


def _entry(name: str) -> reference.Entry | None:
    try:
        return reference.find(name)
    except GradcliError:
        return None
