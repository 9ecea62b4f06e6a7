"""Reads the request and the tables from the words and options of `gradcli map`, and of other commands that read tables."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence

from gradcli.cli.arguments import inputs
from gradcli.cli.options import Option, Options
from gradcli.cli.process.environment import Environment
from gradcli.errors import UsageError
from gradcli.io import system, variables
from gradcli.language.syntax.lexer import MAX_LENGTH
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats.outputs import NAMES, STDIN
from gradcli.rows.formats.reading import TableReadOptions
from gradcli.rows.plan import COLUMN, RowRequest
from gradcli.type_hints import Annotated, Any, Protocol

# A binding with a wrong sign, such as x~1 or x:=1.
_MISWRITTEN = re.compile(r"\s*([^\W\d]\w*)\s*(?:~|:=|==|=$|:(?=\s*[-+.]?\d))\s*(.*)", re.DOTALL)
_EXAMPLE = "gradcli map 'a*exp(-k*t)' data.csv a=2 k=0.25"
FORMATS = "|".join(NAMES)


class RowOptions(inputs.BindingOptions, Protocol):
    """The options that say what to compute for each row."""

    @property
    def wrt(self) -> list[str] | None: ...
    @property
    def const(self) -> list[str] | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def order(self) -> int: ...
    @property
    def no_grad(self) -> bool: ...
    @property
    def value(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def keep(self) -> list[str] | None: ...
    @property
    def only(self) -> bool: ...
    @property
    def propagate(self) -> bool: ...
    @property
    def program_column(self) -> str | None: ...


class Given(NamedTuple):
    """The request, and the files, globs and folders that hold the rows."""

    asked: RowRequest
    sources: list[str]


def read_words(options: RowOptions, environment: Environment) -> Given:
    """Read the words and options of a command line.

    Raises UsageError if there is no program or no table, and BindingError for a value that cannot be read.
    """
    text, words = (None, options.words or []) if _by_row(options) else program_of(options, environment)
    sources = tables_among(words)
    columns: dict[str, str] = {}
    values: dict[str, str] = {}
    for word in words:
        if inputs.is_binding(word):
            add_binding(word, columns, values)
    check_standard_input(values, sources)
    shared = {
        name: value()
        for name, value in inputs.bindings_of([*values.values()], options.dtype, options, environment).items()
    }
    shared |= inputs.variables_of(options.vars, environment, False, ChainMap(columns, shared))
    return Given(_asked(options, text, columns, shared), _sources(sources, options, environment))


def _by_row(options: RowOptions) -> bool:
    """Return whether each row has its own program. Raises UsageError if --file gives a program too."""
    if options.program_column is not None and options.file is not None:
        raise UsageError("--program-column and --file both give the program", hint="leave out one of them")
    return options.program_column is not None


def program_of(
    options: inputs.BindingOptions, environment: Environment, example: str = _EXAMPLE
) -> tuple[str, list[str]]:
    """The text of the program, and the remaining words: tables and values. `example` is a correct command line for
    hints.

    Raises UsageError if there is no program.
    """
    text, words = _program_of(options, environment, example)
    inputs.note_degree_functions(text, options, environment)
    return text, words


def _program_of(options: inputs.BindingOptions, environment: Environment, example: str) -> tuple[str, list[str]]:
    words = options.words or []
    if options.file is not None:
        return inputs.read_program(options.file), words
    if not words:
        raise UsageError("there is no program", hint=example)
    if words[0] == STDIN:
        if not [w for w in words[1:] if not inputs.is_binding(w) and w != STDIN]:
            raise UsageError(
                "the program and the table cannot both be standard input",
                hint=f"the first word is the program: {example}",
            )
        return environment.read_stdin("the program", MAX_LENGTH), words[1:]
    # A name that is followed by a table is a program, even if the directory has a file of that name.
    if system.exists(words[0]) and not (words[0].isidentifier() and any(map(system.exists, words[1:]))):
        programs = [w for w in words[1:] if not inputs.is_binding(w) and not system.exists(w)]
        if programs:
            # Imported here because only incorrect command lines need it.
            from shlex import join

            example = join([programs[0], *(w for w in words if w is not programs[0])])
        raise UsageError(
            f"the file '{words[0]}' stands where the program should",
            hint=f"the program comes first: {example}; --file reads it from a file",
        )
    return words[0], words[1:]


def tables_among(words: Sequence[str]) -> list[str]:
    """The words other than NAME=VALUE. Raises UsageError for one that is not a file but resembles a binding, such as
    `x~1`."""
    found = [word for word in words if not inputs.is_binding(word)]
    for word in found:
        miswritten = _MISWRITTEN.fullmatch(word)
        if miswritten and not system.exists(word):
            name, value = miswritten.groups()
            raise UsageError(f"'{word}' is neither a file nor a value of '{name}'", hint=f"write {name}={value or 1}")
    return found


def add_binding(word: str, columns: dict[str, str], values: dict[str, str]) -> None:
    """Add a binding to `columns` if its value names a column, else to `values`."""
    name, value, _ = variables.split_binding(word)
    inputs.check_unbound(name, ChainMap(columns, values), word)
    if value.startswith(COLUMN):
        columns[name] = value.removeprefix(COLUMN)
    else:
        values[name] = word


def check_standard_input(values: Mapping[str, str], sources: Sequence[str]) -> None:
    taking = [name for name, word in values.items() if inputs.reads_input(word)]
    if taking and (not sources or STDIN in sources):
        raise UsageError(
            f"the table and the value of '{taking[0]}' cannot both be standard input", hint="put one of them in a file"
        )


def _asked(options: RowOptions, text: str | None, columns: Mapping[str, str], shared: Mapping[str, Any]) -> RowRequest:
    if options.only and options.keep is not None:
        raise UsageError("--only and --keep contradict each other", hint="leave out one of them")
    wrt = None if options.wrt is None else inputs.names_of(options.wrt)
    order = 0 if options.no_grad else options.order
    if text is None and wrt is None and order:
        raise UsageError(
            "with --program-column the names to differentiate by are to be said",
            hint="--wrt x,q, or --no-grad for the value alone",
        )
    return RowRequest(
        program=text or "",
        program_column=options.program_column,
        columns=columns,
        shared=shared,
        wrt=wrt,
        const=inputs.names_of(options.const),
        order=order,
        dtype=options.dtype,
        value=options.value,
        prefix=options.prefix,
        propagate=options.propagate,
        keep=() if options.only else None if options.keep is None else inputs.names_of(options.keep),
        max_steps=options.max_steps,
        max_elements=options.max_elements,
    )


def _sources(words: list[str], options: RowOptions, environment: Environment) -> list[str]:
    """The tables to read; standard input if none are named."""
    if words.count(STDIN) > 1:
        raise UsageError("standard input is read once", hint="leave out one '-'")
    if options.vars == STDIN and (not words or STDIN in words):
        raise UsageError("--vars and the table cannot both be standard input", hint="put one of them in a file")
    if not words and environment.stdin is not None and environment.stdin.isatty():
        raise UsageError(
            "there is no table", hint="give a file, as in gradcli map 'x**2' data.csv, or - for the keyboard"
        )
    return words or [STDIN]


From = Annotated[
    str | None,
    Option("--from", metavar=FORMATS, help="The format to read; default: by the name, or by the content."),
]
Separator = Annotated[
    str | None,
    Option("--separator", metavar="CHARACTER", help="What separates the fields; default: recognised."),
]
DecimalComma = Annotated[bool, Option("--decimal-comma", help="Numbers are written 1,5; default: recognised.")]
Encoding = Annotated[str | None, Option("--encoding", metavar="NAME", help="The encoding of the text, as in latin-1.")]
NoHeader = Annotated[bool, Option("--no-header", help="The first line is a row: columns are called c1 c2 …")]


class TableOptions(Options):
    """The options of a command that reads tables."""

    from_: From = None
    separator: Separator = None
    decimal_comma: DecimalComma = False
    encoding: Encoding = None
    no_header: NoHeader = False


def reading_of(options: TableOptions) -> TableReadOptions:
    """The options for reading tables. Raises UsageError for an unknown format."""
    if options.from_ is not None and options.from_ not in NAMES:
        raise UsageError(f"there is no format {options.from_!r}", hint=f"--from {' or '.join(NAMES)}")
    return TableReadOptions(
        options.from_, options.separator, options.decimal_comma, options.encoding, header=not options.no_header
    )
