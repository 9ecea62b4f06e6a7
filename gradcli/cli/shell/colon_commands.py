"""The `:` commands: those of the session itself, and the commands of `gradcli` with the names of the session bound."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from textwrap import wrap

from gradcli.arrays import shape
from gradcli.cli import command, main
from gradcli.cli.process.environment import Environment
from gradcli.cli.shell.typed_text import BINDING, LAST, Words, command_words
from gradcli.errors import ExitStatus, GradcliError, UsageError, did_you_mean
from gradcli.io import system
from gradcli.type_hints import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.cli.shell.shell_session import Session
    from gradcli.cli.shell.workspace import Assembled, Entry, SessionInput

# The commands of the session itself, and what they do.
OWN = {
    "vars": "The names of the session, with their values.",
    "reset": "Forget the names that are given, or all.",
    "load": "Run the statements of a file.",
    "save": "Write what ran without an error to a file, which :load and gradcli shell run again.",
    "help": "This list, or the help of a command or function.",
    "quit": "Leave, as Ctrl-D does.",
}
# The commands that the list of :help begins with.
_FIRST = ("eval", "diff", "plot", "graph", "check", "series", "solve", "fit", "propagate", "explain", "ode")
# Commands whose text is not a program: a name beside `=` or `~` is read there, not assigned.
_EQUATIONS = ("solve", "fit", "ode")
# The first line of a saved transcript.
HEADER = "# A session of gradcli: gradcli shell runs it again."
# The options by which commands that look for the values of names keep some of them.
_HOLDING = {"fit": "--fix", "minimize": "--const", "series": "--const"}
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")


def names() -> list[str]:
    """The names of all `:` commands, those of the session last."""
    commands = dict.fromkeys(name for name in (*_FIRST, *main.COMMANDS) if name in main.COMMANDS and name != "shell")
    return [*commands, *(name for name in OWN if name not in commands)]


def run(session: Session, text: str) -> None:
    """Run a `:` command, written with the colon. Raises what the command raises."""
    name, rest = divided(text)
    if name in OWN:
        _OWN[name](session, rest)
        return
    if name not in names():
        raise unknown_command(name)
    if _run_command(session, name, rest) and name != "ops" and "--help" not in rest:
        session.transcript.append(text)


def unknown_command(name: str) -> UsageError:
    """The error for an unknown `:` command."""
    hint = ":help lists the commands"
    if name in _FIRST:
        return UsageError(f"this version of gradcli has no command '{name}'", hint=hint)
    begun = [known for known in names() if name and known.startswith(name)]
    if len(begun) == 1:
        hint = f"did you mean '{begun[0]}'?"
    return UsageError(f"there is no command ':{name}'", hint=did_you_mean(name, names(), hint))


def divided(text: str) -> tuple[str, str]:
    """The name of a `:` command, and what follows it."""
    name, _, rest = text[1:].lstrip().partition(" ")
    return name, rest.strip()


def _run_command(session: Session, name: str, rest: str) -> bool:
    """Run a command of gradcli; whether it ran without an error."""
    parameters = command.parameters_of(name)
    takes_value = {option: values is not None for option, values in parameters.options.items()}
    try:
        names = session.workspace.entries
        words = command_words(rest, takes_value, parameters.short, names, equations=name in _EQUATIONS)
    except ValueError as error:
        raise UsageError(str(error), hint="close it, or leave quotes out: a program needs none") from None
    # A command reads what is typed here, and never the rest of the session's input.
    environment = session.environment._replace(stdin=None)
    if parameters.takes_program and words.program is None and "--help" not in words.rest:
        words = _with_program(session, name, words)
    if words.program is None or not parameters.takes_program:
        return _call(session, [name, *filter(None, [words.program]), *words.rest], environment)
    assembled, bound = _bound(session, name, words)
    try:
        return _call(session, [name, assembled.source, *words.rest, *bound], environment)
    except GradcliError as error:
        from gradcli.cli.shell.workspace import place_in

        if error.source == assembled.source and error.span is not None:
            error.source, error.span = place_in(assembled, error.span)
        if not main.wants_json(words.rest):
            raise
        environment.report(error, as_json=True)
        session.status = session.status or error.exit_status
        return False


def _call(session: Session, arguments: Sequence[str], environment: Environment) -> bool:
    """Run a command line; whether it succeeded."""
    status = main.call(arguments, environment)
    session.status = session.status or status
    return status is ExitStatus.SUCCESS


def _with_program(session: Session, name: str, words: Words) -> Words:
    """The words of a command with the program of `--file`, or else the one that gave the last value, if there is
    any."""
    from gradcli.cli.arguments.inputs import read_program

    for i, word in enumerate(words.rest):
        option, equals, path = word.partition("=")
        if option == "--file" and (equals or i + 1 < len(words.rest)):
            rest = words.rest[:i] + words.rest[i + (1 if equals else 2) :]
            return words._replace(program=read_program(path or words.rest[i + 1]), rest=rest)
    if name in _EQUATIONS or LAST not in session.workspace.entries:
        return words
    return words._replace(program=LAST)


def _bound(session: Session, name: str, words: Words) -> tuple[Assembled, list[str]]:
    """A program with the definitions that it needs in front, and words that give names their values in the session."""
    from gradcli.cli.shell.workspace import names_read, values_as_words

    program = words.program or ""
    mentioned = {*_NAME.findall(program)}
    reads = mentioned if name in _EQUATIONS else names_read(program, mentioned)
    assembled = session.workspace.assembled(program, reads)
    every = {each.name for each in assembled.inputs}
    read = every if name in _EQUATIONS else names_read(assembled.source, every)
    given = {found[1] for word in words.rest if (found := BINDING.match(word))}
    left_out = given | _unknowns(words.rest) | (_columns(words.operands) if name == "fit" else set())
    bound = [each for each in assembled.inputs if each.name in read and each.name not in left_out]
    return assembled, [
        *values_as_words(bound),
        *_held(session, name, words.rest, bound if given or name == "fit" or "--bounds" in words.rest else []),
    ]


def _held(session: Session, name: str, words: Sequence[str], bound: Sequence[SessionInput]) -> list[str]:
    """The option by which a command that looks for values keeps those of the session."""
    option = _HOLDING.get(name)
    # Arrays are data of a fit.
    names = [each.name for each in bound if name != "fit" or not shape(each.value)]
    if option is None or not names or {"--wrt", "--const"} & {word.partition("=")[0] for word in words}:
        return []
    listed = ", ".join(f"'{each}'" for each in names)
    held = "is held at its value" if len(names) == 1 else "are held at their values"
    session.environment.write_error(f"note: {listed} {held} in the session; {names[0]}=… behind the program frees it")
    return [option, ",".join(names)]


def _columns(files: Sequence[str]) -> set[str]:
    """The columns of the tables among the words of a fit; an error is reported by the command itself."""
    from gradcli.models.data import table_of

    with suppress(GradcliError):
        return {*table_of([*files]).columns} if files else set()
    return set()


def _unknowns(words: Sequence[str]) -> set[str]:
    """The names after `--for`, which are looked for."""
    texts = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--for"]
    texts += [word.partition("=")[2] for word in words if word.startswith("--for=")]
    return {part.strip() for text in texts for part in text.split(",")}


def _show_names(session: Session, _rest: str) -> None:
    from gradcli.cli.rendering.render import show
    from gradcli.io.text_tables import Table

    rows = [(name, *_described(name, entry)) for name, entry in session.workspace.entries.items()]
    if rows:
        show([Table(("name", "value", "from"), rows)], session.environment)
    else:
        session.environment.write("There are no names yet: x = 5 makes one.\n")


def _described(name: str, entry: Entry) -> tuple[str, str]:
    """The value of an entry, and the statement that it came from, as far as there are any."""
    from gradcli.cli.shell.workspace import SessionInput
    from gradcli.io.text_tables import number_text

    if isinstance(entry, SessionInput):
        return number_text(entry.value), entry.text if entry.text is not None and entry.text.startswith("@") else ""
    value = number_text(entry.values[name]) if name in entry.values else ""
    first, *more = entry.text.removeprefix("_ = ").split("\n")
    return value, f"{first} …" if more else first


def _reset(session: Session, rest: str) -> None:
    session.workspace.forget(rest.replace(",", " ").split())
    session.transcript.append(f":reset {rest}".rstrip())


def _load(session: Session, rest: str) -> None:
    session.run_file(_path(rest, ":load"))


def _save(session: Session, rest: str) -> None:
    path = _path(rest, ":save")
    if not _may_be_written(path):
        raise UsageError(f"{path} exists, and is no session", hint="choose another name")
    text = "".join(f"{part}\n" for part in (HEADER, *session.transcript))
    session.environment.save(path, partial(_write, text))
    session.environment.write_error(f"saved {path}")


def _may_be_written(path: str) -> bool:
    """Return whether a path is that of a transcript, or of no file."""
    try:
        return system.read_text(path, len(HEADER)).startswith(HEADER)
    except UnicodeDecodeError:
        return False
    except OSError:
        # Writing reports what is wrong with it.
        return True


def _write(text: str, file: IO[bytes]) -> None:
    file.write(text.encode("utf-8", "surrogatepass"))


def _path(rest: str, name: str) -> str:
    path = rest.strip("'\"")
    if not path:
        raise UsageError(f"{name} needs the name of a file", hint=f"write {name} lesson.grad")
    return os.path.expanduser(path)


def _help(session: Session, rest: str) -> None:
    name = rest.removeprefix(":").strip(" '\"")
    if not name:
        columns = session.environment.columns or _HELP_COLUMNS
        session.environment.write("".join(f"{line}\n" for line in _help_lines(columns)))
    elif name in OWN:
        session.environment.write(f":{name}  {OWN[name]}\n")
    elif name in names():
        main.call([name, "--help"], session.environment)
    else:
        main.call(["ops", name], session.environment)


# Words that are often typed for a command and are none.
_TYPED = {
    "x = 5": "a name with a value",
    "x = @data.csv:column": "one from a file",
    "log(x**q)": "the value, and the gradient by the names that have a value",
    LAST: "the last value",
    "f(x) = x**2": "a function; def f(x): goes on until a blank line",
    ":diff log(x) --wrt x": "a command of gradcli with its options; without a program it takes the last one",
}
# Widths in characters: of the help where there is no terminal, of its first column, and the least for two columns.
_HELP_COLUMNS, _FIRST_COLUMN, _TWO_COLUMNS = 80, 22, 60


def _help_lines(columns: int) -> Iterator[str]:
    """The help, with what may be typed and all commands, in lines of a width."""
    yield from _described_lines(_TYPED, columns)
    yield ""
    yield from wrap(f"Commands of gradcli: {' '.join(f':{name}' for name in names() if name not in OWN)}", columns)
    yield from wrap(":help diff has the options of one, :help log is about a function.", columns)
    yield ""
    yield from _described_lines({f":{name}": about for name, about in OWN.items()}, columns)


def _described_lines(texts: Mapping[str, str], columns: int) -> Iterator[str]:
    for name, about in texts.items():
        if columns >= _TWO_COLUMNS:
            yield from wrap(
                about, columns, initial_indent=name.ljust(_FIRST_COLUMN), subsequent_indent=" " * _FIRST_COLUMN
            )
        else:
            yield name
            yield from wrap(about, columns, initial_indent="  ", subsequent_indent="  ")


def _quit(session: Session, _rest: str) -> None:
    session.is_over = True


_OWN: dict[str, Callable[[Session, str], None]] = {
    "vars": _show_names, "reset": _reset, "load": _load, "save": _save, "help": _help, "quit": _quit,
}  # fmt: skip
