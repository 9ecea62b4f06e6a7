"""Where the records of a text table begin, and its cell separator and decimal mark, by its first lines."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from itertools import islice

from gradcli.named_tuples import NamedTuple

# The usual separators; a space stands for one or more.
DEFAULT = (",", ";", "\t", "|", " ")
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')
# Upper bounds of the lines and characters that are examined; within them no cell is too long for csv.
_LINES, _CHARACTERS = 100, 100_000
_SEVERAL_COLUMNS = 0.5
# The number of rows, including the header, from which equal numbers of words are not taken for chance.
_FEWEST = 3
# In a table with decimal commas, 1,234 alone is ambiguous: one thousand, or 1.234.
_AMBIGUOUS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
# A number with points as thousands separators: evidence of decimal commas, though such numbers are not accepted.
_WITH_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?")


class CellNotation(NamedTuple):
    """The separator of cells, and whether the decimal mark is a comma. A separator that is a space stands for one or
    more."""

    separator: str
    decimal_comma: bool = False

    def number(self, cell: str) -> float | None:
        """The number in a cell, None where it is not one."""
        if self.decimal_comma:
            if "." in cell:
                return None
            cell = cell.replace(",", ".", 1)
        try:
            return float(cell)
        except ValueError:
            return None


def detected_notation(text: str, separators: Sequence[str] = DEFAULT) -> CellNotation:
    """The notation, with one of these `separators`, that fits the beginning of a table best: rows of equal lengths, and
    cells that are numbers. The first separator where all fit equally.

    `text` consists of whole lines, or is so long that a last partial line does not matter.
    """
    lines = _lines(text)
    points = [CellNotation(separator) for separator in separators]
    commas = [CellNotation(separator, decimal_comma=True) for separator in separators if separator != ","]
    return max(points + commas, key=lambda notation: _score(lines, notation))


def beside_texts(text: str) -> Sequence[str]:
    """The separators that a table of numbers and texts with this beginning may have: those of its first line. Spaces
    and `|` may be part of texts."""
    title = _QUOTED.sub("", text.split("\n", 1)[0])
    there = [separator for separator in DEFAULT if separator != " " and separator in title]
    if not there:
        return [" "] if _is_spaced(text) else [","]
    # | may be part of names, as in |v|.
    return [",", "|"] if there == ["|"] else there


def _is_spaced(text: str) -> bool:
    """Return whether the beginning of a table has several columns separated by spaces, one of which holds only numbers
    below the header."""
    rows = list(csv.reader(_lines(text), delimiter=" ", skipinitialspace=True))
    if len(rows) < _FEWEST or len(rows[0]) == 1 or any(len(row) != len(rows[0]) for row in rows):
        return False
    comma = any("," in cell for row in rows[1:] for cell in row)
    notation = CellNotation(" ", decimal_comma=comma)
    return any(all(notation.number(cell) is not None for cell in column) for column in zip(*rows[1:]))


def _lines(text: str) -> list[str]:
    lines = list(islice(io.StringIO(text[:_CHARACTERS], newline=""), _LINES))
    if len(text) > _CHARACTERS and 1 < len(lines) < _LINES:
        lines.pop()
    return [line for line in (line.strip(" \r\n") for line in lines) if line]


def _score(lines: Sequence[str], notation: CellNotation) -> float:
    """The score of a notation: the share of rows as long as the first, plus the share of cells below it that are
    numbers, plus a bonus for several columns."""
    rows = list(csv.reader(lines, delimiter=notation.separator, skipinitialspace=True))
    if not rows:
        return 0.0
    width = len(rows[0])
    agreeing = sum(len(row) == width for row in rows) / len(rows)
    cells = [cell for row in rows[1:] or rows for cell in row if cell.strip()]
    if notation.decimal_comma:
        cells = [cell for cell in cells if not _AMBIGUOUS.fullmatch(cell.strip())]
        if not any("," in cell for cell in cells):
            return 0.0
    numeric = sum(_is_number(cell, notation) for cell in cells) / len(cells) if cells else 0.0
    return agreeing + numeric + _SEVERAL_COLUMNS * (width > 1)


def _is_number(cell: str, notation: CellNotation) -> bool:
    if notation.decimal_comma and _WITH_THOUSANDS.fullmatch(cell.strip()):
        return True
    return notation.number(cell) is not None


_BLANK = rb"[ \t]*\r?\n"
_OF_EXCEL = re.compile(rb'(?:%s)*+"?sep=([^\w\s".+-]|\t| )"?[,;\t ]*\r?\n' % _BLANK, re.IGNORECASE)
_COMMENTS = re.compile(rb"(?:%s|[ \t]*#[^\n]*\n)*+" % _BLANK)
_COMMENT = re.compile(rb"[ \t]*(#[ \t]*)[^\n]*\n(?:%s)*+\Z" % _BLANK)


class Preamble(NamedTuple):
    """The number of bytes before the first record, and the `separator` that they declare, None where they do not."""

    size: int
    separator: str | None = None


def preamble_of(text: bytes, marks: Sequence[str] = DEFAULT, header: bool = True) -> Preamble:
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
    notation = detected_notation(below, [separator] if separator else marks)
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


def _cells(text: str, notation: CellNotation) -> list[str]:
    lines = (line.strip(" \r\n") for line in text.splitlines()[:1])
    return next(csv.reader(lines, delimiter=notation.separator, skipinitialspace=True), [])


def _has_number(row: Sequence[str], notation: CellNotation) -> bool:
    return any(notation.number(cell) is not None for cell in row)
