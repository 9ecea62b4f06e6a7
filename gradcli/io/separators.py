"""How a table of text separates its cells, and writes its numbers: told from its first lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

# What fields are separated by, as a rule; a space is any number of them.
DEFAULT = (",", ";", "\t", "|", " ")
# Those that are looked at; no cell of so few is too long for csv.
_LINES, _CHARACTERS = 100, 100_000
_SEVERAL_COLUMNS = 0.5
# Rows, the header among them, of which it is no accident that they have as many words.
_FEWEST = 3
# Whether 1,234 is a thousand or little more than one in a table with decimal commas nobody can tell from the cell alone.
_AMBIGUOUS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
# What may be a number of a table with decimal commas, though not one that is read: it has points between its thousands.
_WITH_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?")


class Notation(NamedTuple):
    """What stands between two cells, and whether a comma stands between the whole of a number and its fraction.

    A separator that is a space is any number of them.
    """

    separator: str
    decimal_comma: bool = False

    def number(self, cell: str) -> float | None:
        """The number that a cell is, None where it is none."""
        if self.decimal_comma:
            if "." in cell:
                return None
            cell = cell.replace(",", ".", 1)
        try:
            return float(cell)
        except ValueError:
            return None


def told(text: str, separators: Sequence[str] = DEFAULT) -> Notation:
    """The notation, with one of these `separators`, in which the beginning of a table has rows of one length and
    numbers for cells; the first of them where nothing tells.

    `text` is whole lines, or so many characters that this does not matter.
    """
    lines = _lines(text)
    points = [Notation(separator) for separator in separators]
    commas = [Notation(separator, decimal_comma=True) for separator in separators if separator != ","]
    return max(points + commas, key=lambda notation: _score(lines, notation))


def is_spaced(text: str) -> bool:
    """Whether the beginning of a table has several columns with spaces between them, a number in each row of one."""
    rows = list(csv.reader(_lines(text), delimiter=" ", skipinitialspace=True))
    if len(rows) < _FEWEST or len(rows[0]) == 1 or any(len(row) != len(rows[0]) for row in rows):
        return False
    comma = any("," in cell for row in rows[1:] for cell in row)
    notation = Notation(" ", decimal_comma=comma)
    return any(all(notation.number(cell) is not None for cell in column) for column in zip(*rows[1:]))


def _lines(text: str) -> list[str]:
    lines = list(islice(io.StringIO(text[:_CHARACTERS], newline=""), _LINES))
    if len(text) > _CHARACTERS and 1 < len(lines) < _LINES:
        lines.pop()
    return [line for line in (line.strip(" \r\n") for line in lines) if line]


def _score(lines: Sequence[str], notation: Notation) -> float:
    """How well a notation fits: the share of rows that are as long as the first, and of cells below it that are
    numbers, and somewhat more where there are several columns."""
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


def _is_number(cell: str, notation: Notation) -> bool:
    if notation.decimal_comma and _WITH_THOUSANDS.fullmatch(cell.strip()):
        return True
    return notation.number(cell) is not None
