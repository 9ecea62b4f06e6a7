"""The options that say how tables are read, shared by all commands that read tables."""

from __future__ import annotations

from typing import Annotated

from gradcli.cli.options import Option, Options
from gradcli.errors import UsageError
from gradcli.rows.outputs import NAMES
from gradcli.rows.reading import TableReadOptions

FORMATS = "|".join(NAMES)

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
    """How tables are to be read. Raises UsageError for an unknown format."""
    if options.from_ is not None and options.from_ not in NAMES:
        raise UsageError(f"there is no format {options.from_!r}", hint=f"--from {' or '.join(NAMES)}")
    return TableReadOptions(
        options.from_, options.separator, options.decimal_comma, options.encoding, header=not options.no_header
    )
