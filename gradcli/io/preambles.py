"""The preamble of a text table before its first record: blank lines, comments, and Excel's declaration of the
separator."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence

from gradcli.io import separators
from gradcli.named_tuples import NamedTuple

_BLANK = rb"[ \t]*\r?\n"
_OF_EXCEL = re.compile(rb'(?:%s)*+"?sep=([^\w\s".+-]|\t| )"?[,;\t ]*\r?\n' % _BLANK, re.IGNORECASE)
_COMMENTS = re.compile(rb"(?:%s|[ \t]*#[^\n]*\n)*+" % _BLANK)
_COMMENT = re.compile(rb"[ \t]*(#[ \t]*)[^\n]*\n(?:%s)*+\Z" % _BLANK)


class Preamble(NamedTuple):
    """The number of bytes before the first record, and the `separator` that they declare, None where they do not."""

    size: int
    separator: str | None = None


def of(text: bytes, marks: Sequence[str] = separators.DEFAULT, header: bool = True) -> Preamble:
    """The preamble of a table that begins with `text`; its separator is one of `marks`.

    Lines that begin with `#` are comments. Where there is a `header`, the last of them may be it: where it has as many
    names as the line below has fields, with a number among these, or where nothing is below. A `#` before names that
    are separated by spaces is not a name.
    """
    start, separator = _of_excel(text)
    end = _end_of_comments(text, start)
    last = _last_comment(text, start, end) if header else None
    if last is None:
        return Preamble(end, separator)
    title = text[last.start() : last.end()].decode(errors="replace")
    below = text[end:].decode(errors="replace")
    notation = separators.detected_notation(below, [separator] if separator else marks)
    row, names = _cells(below, notation), _cells(title, notation)
    if not row or (len(names) == len(row) and _has_number(row, notation)):
        return Preamble(last.start(), separator)
    if notation.separator == " " and names[0] == "#" and len(names) == len(row) + 1 and _has_number(row, notation):
        return Preamble(last.end(1), separator)
    return Preamble(end, separator)


def end_of_comments(text: bytes) -> int:
    """The end of the last whole line of a preamble, including a header among the comments."""
    return _end_of_comments(text, _of_excel(text)[0])


def _of_excel(text: bytes) -> tuple[int, str | None]:
    start = len(codecs.BOM_UTF8) if text.startswith(codecs.BOM_UTF8) else 0
    found = _OF_EXCEL.match(text, start)
    return (found.end(), found[1].decode()) if found else (start, None)


def _end_of_comments(text: bytes, start: int) -> int:
    found = _COMMENTS.match(text, start)
    return found.end() if found else start


def _last_comment(text: bytes, start: int, end: int) -> re.Match[bytes] | None:
    at = text.rfind(b"#", start, end)
    if at < 0:
        return None
    return _COMMENT.match(text, max(text.rfind(b"\n", 0, at) + 1, start), end)


def _cells(text: str, notation: separators.CellNotation) -> list[str]:
    lines = (line.strip(" \r\n") for line in text.splitlines()[:1])
    return next(csv.reader(lines, delimiter=notation.separator, skipinitialspace=True), [])


def _has_number(row: Sequence[str], notation: separators.CellNotation) -> bool:
    return any(notation.number(cell) is not None for cell in row)
