"""The words that can be completed at the cursor: names, functions, files, `:` commands, their options and the values of
these."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from gradcli.cli import command, main
from gradcli.cli.shell import colon_commands
from gradcli.cli.shell.workspace import Definition, Workspace
from gradcli.language.names import reference, scope
from gradcli.language.names.evaluator_functions import PYTHON_FUNCTIONS, TRANSFORMS
from gradcli.named_tuples import NamedTuple

# Words of the language that no table has.
_KEYWORDS = ("and", "break", "continue", "def", "elif", "else", "for", "from", "if", "import", "in", "lambda", "not")
_MORE_KEYWORDS = ("or", "pass", "return", "while", "True", "False", "None", "backward")
_COMMAND = re.compile(r"\s*:(\w*)$")
_OF_COMMAND = re.compile(r"\s*:(\w+)\s")
_FILE_COMMAND = re.compile(r"\s*:(?:load|save)\s+(\S*)$")
_FILE_VALUE = re.compile(r"=\s*@([^\s'\"]*)$")
_OPTION = re.compile(r"(?<!\S)(--?[\w-]*)$")
_OPTION_VALUE = re.compile(r"(?<!\S)(--?[\w-]+)(?:=|\s+)([^\s=]*)$")
_WORD = re.compile(r"[^\W\d]\w*$")
# The most completions that are shown.
_MOST = 200


class Completion(NamedTuple):
    """A text that may replace the last `replaced` characters before the cursor, and what it is."""

    text: str
    replaced: int
    about: str


def completions(before: str, workspace: Workspace) -> list[Completion]:
    """The completions of a text at its end."""
    found = _files(before) or _of_command(before, workspace)
    return [*found][:_MOST]


def _files(before: str) -> list[Completion]:
    found = _FILE_COMMAND.match(before) or _FILE_VALUE.search(before)
    if found is None:
        return []
    typed = found[1]
    folder, start = os.path.split(typed)
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder or ".")), key=lambda entry: entry.name)
    except OSError:
        return []
    hidden = start.startswith(".")
    return [
        Completion(os.path.join(folder, entry.name) + ("/" if entry.is_dir() else ""), len(typed), "")
        for entry in entries
        if entry.name.startswith(start) and (hidden or not entry.name.startswith("."))
    ]


def _of_command(before: str, workspace: Workspace) -> Iterator[Completion]:
    if (named := _COMMAND.match(before)) is not None:
        told = main.COMMANDS | colon_commands.OWN
        names = [name for name in colon_commands.names() if name.startswith(named[1])]
        yield from (Completion(name, len(named[1]), told[name]) for name in names)
        return
    within = _OF_COMMAND.match(before)
    if within is not None:
        if within[1] == "help" and (word := _WORD.search(before)) is not None:
            names = [name for name in colon_commands.names() if name.startswith(word[0])]
            yield from (Completion(name, len(word[0]), "command") for name in names)
        if within[1] in main.COMMANDS:
            options = command.parameters_of(within[1]).options
            if (option := _OPTION.search(before)) is not None:
                yield from (Completion(o, len(option[1]), "") for o in options if o.startswith(option[1]))
                return
            if (valued := _OPTION_VALUE.search(before)) is not None and "|" in (options.get(valued[1]) or ""):
                values = (options[valued[1]] or "").split("|")
                yield from (Completion(v, len(valued[2]), "") for v in values if v.startswith(valued[2]))
                return
    yield from _words(before, workspace)


def _words(before: str, workspace: Workspace) -> Iterator[Completion]:
    word = _WORD.search(before)
    if word is None:
        return
    typed = word[0]
    seen = set()
    for name, about in _known_words(workspace):
        if name.startswith(typed) and name not in seen:
            seen.add(name)
            yield Completion(name, len(typed), about)


def _known_words(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """The names of the session, then those of the language, each with what it is."""
    for name, entry in sorted(workspace.entries.items()):
        yield name, entry.text if isinstance(entry, Definition) else "input"
    # By subject, the elementary ones first.
    for described in reference.entries():
        operation = described.operation
        yield operation.name, operation.doc
        yield from ((alias, f"{operation.name}, {operation.doc}") for alias in operation.aliases)
    words = {*_KEYWORDS, *_MORE_KEYWORDS, *PYTHON_FUNCTIONS, *TRANSFORMS, *scope.CONSTANTS}
    yield from ((name, "") for name in sorted(words))
