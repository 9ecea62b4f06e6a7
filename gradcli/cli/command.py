"""The declaration of commands, and the parser that turns a command line into the options of one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module

from gradcli.cli import options as opt
from gradcli.cli.options import Field, Option, Options, fields, fields_called
from gradcli.cli.process.environment import Environment
from gradcli.errors import ExitStatus, GradcliError, MissingProgramError, UsageError
from gradcli.named_tuples import NamedTuple
from gradcli.type_hints import Annotated, Any, Generic, TypeVar

# The bound is the class itself, as `typing` compiles one that is a string, which would be a thirtieth of a short run.
Asked = TypeVar("Asked", bound=Options)


class Command(NamedTuple, Generic[Asked]):
    """A command, declared as `COMMAND` in its module.

    `run` receives the parsed `options`. `help` is the text after the one-line summary on the help page.
    """

    options: type[Asked]
    run: Callable[[Asked, Environment], ExitStatus]
    help: str


class _GeneralOptions:
    """The options before the name of a command."""

    version: Annotated[bool, Option("--version", short="-V", help="Show the version and exit.")] = False


# Returns the commands that have an option.
Elsewhere = Callable[[str], Sequence[str]]
# Runs the current command line in a child process, with the limits in its options.
RunInChild = Callable[[Any], ExitStatus]


def call(
    commands: Mapping[str, str], arguments: Sequence[str], environment: Environment, run_in_child: RunInChild
) -> ExitStatus:
    """Run the command that the arguments name; `commands` maps names to one-line summaries. `run_in_child` runs
    a command whose time or memory is limited.

    Raises UsageError for an invalid command line, and whatever the command raises.
    """
    arguments = _with_help(arguments)
    named = next((i for i, a in enumerate(arguments) if not a.startswith("-")), len(arguments))
    elsewhere = partial(_commands_with_option, commands)
    general = _parsed(_GeneralOptions, arguments[:named], "gradcli", elsewhere)
    if general is None or (named == len(arguments) and not general):
        # Imported here because most calls need no help.
        from gradcli.cli import help_pages

        environment.write(help_pages.general_page(environment, commands))
        return ExitStatus.SUCCESS
    if general:
        from gradcli import __version__

        environment.write(f"gradcli {__version__}\n")
        return ExitStatus.SUCCESS
    name = arguments[named]
    if name not in commands:
        # Imported here because only an incorrect command line needs it.
        from gradcli.cli.usage_errors import unknown_command

        raise unknown_command(name, commands, arguments[named + 1 :])
    command = command_named(name)
    given = _parsed(command.options, arguments[named + 1 :], f"gradcli {name}", elsewhere)
    if given is None:
        from gradcli.cli import help_pages

        page = help_pages.full_page if _ALL in arguments else help_pages.command_page
        environment.write(page(environment, name, commands[name], command.options, command.help))
        return ExitStatus.SUCCESS
    options = command.options(**given)
    limited = any(getattr(options, limit, None) is not None for limit in ("max_seconds", "max_memory"))
    if limited and not environment.is_child:
        return run_in_child(options)
    try:
        return command.run(options, environment)
    except GradcliError as error:
        # Imported here so that only a failing command pays for it.
        from gradcli.cli import help_pages, hints

        if isinstance(error, MissingProgramError):
            error.hint = help_pages.examples(command.help)[0]
        hints.check(error, name, options, partial(_options_of, commands))
        raise


def _with_help(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments with a trailing `-h` as `--help`, where `-h` cannot be a program because no values follow."""
    return [*arguments[:-1], "--help"] if [*arguments[-1:]] == ["-h"] and len(arguments) <= 2 else arguments


def command_named(name: str) -> Command[Any]:
    command: Command[Any] = import_module(f"gradcli.cli.commands.{name}").COMMAND
    return command


def _options_of(commands: Collection[str], name: str) -> set[str]:
    """The options of a command; only those of help for an unknown command."""
    return {*_HELP, *(declared_options(name) if name in commands else ())}


def _commands_with_option(commands: Iterable[str], option: str) -> list[str]:
    """The commands that have an option."""
    return [name for name in commands if option in declared_options(name)]


def declared_options(name: str) -> Mapping[str, Field]:
    """The options of a command by the names that they have on the command line."""
    options: type = command_named(name).options
    return _by_name(fields(options))


def _by_name(declared: Iterable[Field]) -> dict[str, Field]:
    """The options among the fields by the names that they have on the command line."""
    return {field.declared.name: field for field in declared if isinstance(field.declared, Option)}


# The options that ask for help, the last of which for all of it.
_ALL = "--help-all"
_HELP = ("--help", _ALL)
# A word that looks like a short option; compiled where a word may be one.
_SHORT = r"-[A-Za-z][\w-]*"


def _is_short(word: str) -> bool:
    return word.startswith("-") and re.fullmatch(_SHORT, word) is not None


def _declared_for(options: type, words: Iterable[str]) -> dict[str, Field]:
    """The options by name: those among the words alone where each is called as its field, to spare the evaluation of
    other declarations, else all."""
    given = {word.partition("=")[0] for word in words if word.startswith("--") or _is_short(word)}
    given -= {"--", *_HELP}
    found = _by_name(fields_called(options, (name[2:].replace("-", "_") for name in given)))
    return found if found.keys() == given else _by_name(fields(options))


# What the types of numbers are called in messages.
_NUMBERS = {int: "a whole number in digits", float: "a number"}


def _parsed(options: type, words: Sequence[str], path: str, elsewhere: Elsewhere) -> dict[str, Any] | None:
    """The values of the fields that the words after `path`, as in `gradcli eval`, give; None where they ask for help.

    A program, the first word that is not an option, may start with a minus; a value before it is reported where the
    words are read.
    """
    declared = _declared_for(options, words)
    argument = opt.argument(options)
    texts: dict[str, list[str]] = {}
    others: list[str] = []
    has_program = not _takes_program(argument)
    rest = iter(_with_long_names(words, declared, has_program))
    for word in rest:
        if word == "--":
            others += _behind_options(rest, declared)
        elif word.startswith("--"):
            name = word.partition("=")[0]
            if name not in _HELP and name not in declared:
                raise _unknown(name, declared, path, elsewhere)
            found = texts.setdefault(name, [])
            if name in _HELP or declared[name].kind is bool:
                _expect_no_value(word, path)
                continue
            if found and declared[name].kind is not list:
                raise UsageError(f"{name} is given twice", hint="leave one of them out")
            found.append(_text_of_option(word, rest, path))
        else:
            if has_program and _is_short(word):
                raise _unknown(word, declared, path, elsewhere)
            has_program = has_program or _may_be_program(word)
            others.append(word)
    if not texts.keys().isdisjoint(_HELP):
        return None
    given = {declared[name].name: _value(declared[name], name, found, path) for name, found in texts.items()}
    return given | _argument(argument, others, path)


def _takes_program(argument: Field | None) -> bool:
    return argument is not None and argument.kind is list


def _with_long_names(words: Sequence[str], declared: Mapping[str, Field], has_program: bool) -> list[str]:
    """The words with short options as long ones. Before the program one is an option only where a program follows: `-q`
    is itself the program in `gradcli eval -q q=3`."""
    short: dict[str, Field] = {field.declared.short: field for field in declared.values() if field.declared.short}
    found: list[str] = []
    rest = [*words]
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*found, word, *rest]
        if word == "-h" and has_program:
            # A word after the program cannot be a program.
            word = "--help"
        field = short.get(word) or declared.get(word)
        if word in short and not (has_program or _has_program(short[word], rest, {**short, **declared})):
            field = None
        found.append(word if field is None else field.declared.name)
        if field is None:
            has_program = has_program or (_may_be_program(word) and not word.startswith("--"))
        elif field.kind is not bool and rest:
            found.append(rest.pop(0))
            has_program = has_program or field.declared.name == "--file"
    return found


def _may_be_program(word: str) -> bool:
    """Return whether a word may be a program: it is no NAME=VALUE, or its value reads a name, as in `y=x**2`."""
    if "=" not in word:
        return True
    value = re.fullmatch(_VALUE, word)
    return value is None or (value[1][:1] != "@" and re.search(_READ_NAME, value[1]) is not None)


# A word NAME=VALUE, and a name in a value that is neither called nor a constant. Both are compiled where they are used.
_VALUE = r"\s*[^\W\d]\w*\s*=(?!=)\s*([^;\n]*)"
_READ_NAME = r"(?i)(?<![\w.])(?!(?:pi|π|e|inf|infinity|nan|true|false)\b)[^\W\d]\w*\b(?!\s*[(=.])"


def _has_program(option: Field, rest: Sequence[str], declared: Mapping[str, Field]) -> bool:
    """Return whether the words after a short option have a program among them or name its file."""
    words = iter(rest)
    if option.kind is not bool and ("=" in next(words, "=") or option.declared.name == "--file"):
        return bool(rest) and "=" not in rest[0]
    for word in words:
        field = declared.get(word)
        if field is None and _may_be_program(word) and not word.startswith("--"):
            return True
        if field is not None and field.kind is not bool:
            if field.declared.name == "--file":
                return True
            next(words, None)
    return False


def _behind_options(words: Iterable[str], declared: Collection[str]) -> Sequence[str]:
    """The words after `--`. Raises UsageError for an option among them."""
    found = [*words]
    for word in found:
        if word.startswith("--") and word.partition("=")[0] in declared:
            raise UsageError(
                f"{word} stands behind --, which ends the options",
                hint="put -- behind them, or leave it out: a program may start with a minus without it",
            )
    return found


def _unknown(word: str, declared: Iterable[str], path: str, elsewhere: Elsewhere) -> UsageError:
    # Imported here because only an incorrect command line needs it.
    from gradcli.cli.usage_errors import unknown_option

    return unknown_option(word, declared, path, elsewhere)


def _expect_no_value(word: str, path: str) -> None:
    name, equals, _ = word.partition("=")
    if equals:
        raise UsageError(f"Option '{name}' does not take a value", hint=f"{path} --help shows the usage")


def _text_of_option(word: str, rest: Iterator[str], path: str) -> str:
    """The value of an option: the text after its `=`, or else the next word of the rest."""
    name, equals, text = word.partition("=")
    if equals:
        return text
    following = next(rest, None)
    if following is None:
        raise UsageError(f"Option '{name}' requires an argument", hint=f"{path} --help shows the usage")
    return following


def _value(field: Field, name: str, texts: list[str], path: str) -> Any:
    """The value of an option that is given. Raises UsageError if it is not a number or out of range."""
    if field.kind is bool:
        return True
    if field.kind is list:
        return texts
    if field.kind is str:
        return texts[0]
    usage = f"{path} --help shows the usage"
    try:
        number = field.kind(texts[0])
    except ValueError:
        what = _NUMBERS[field.kind]
        raise UsageError(f"Invalid value for '{name}': {texts[0]!r} is not {what}", hint=usage) from None
    low, high = field.declared.min, field.declared.max
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = f"x>={low}" if high is None else f"x<={high}" if low is None else f"{low}<=x<={high}"
        raise UsageError(f"Invalid value for '{name}': {number} is not in the range {bounds}", hint=usage)
    return number


def _argument(argument: Field | None, words: Sequence[str], path: str) -> dict[str, Any]:
    """The value of the argument, if there are words for it."""
    usage = f"{path} --help shows the usage"
    if argument is not None and argument.kind is list:
        return {argument.name: words} if words else {}
    extra = words[0 if argument is None else 1 :]
    if extra:
        raise UsageError(f"Got unexpected extra argument(s) ({' '.join(extra)})", hint=usage)
    if argument is None or (not words and not argument.required):
        return {}
    if not words:
        raise UsageError(f"Missing argument '{argument.declared.metavar}'", hint=usage)
    return {argument.name: words[0]}


class CommandParameters(NamedTuple):
    """The options of a command, the values that each may have as its help shows them, None for a flag; whether it
    takes a program; and the options by their short names."""

    options: Mapping[str, str | None]
    takes_program: bool
    short: Mapping[str, str]


def parameters_of(name: str) -> CommandParameters:
    """The parameters of a command."""
    options: type = command_named(name).options
    declared = fields(options)
    shown = {o: None if f.kind is bool else f.declared.metavar or "" for o, f in _by_name(declared).items()}
    short = {f.declared.short: option for option, f in _by_name(declared).items() if f.declared.short}
    return CommandParameters(shown | {"--help": None}, any(field.name == "words" for field in declared), short)
