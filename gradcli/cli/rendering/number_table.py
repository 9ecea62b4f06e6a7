"""Prints columns of numbers as CSV, TSV or JSON lines."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

from gradcli.io import json_text

FORMATS = ("csv", "tsv", "jsonl")


def text(columns: Mapping[str, Any], format: str) -> str:
    """The table; a number is the shortest text that reads back as the same number, and texts stay as they are."""
    rows = zip(*(column.tolist() for column in columns.values()))
    if format == "jsonl":
        return "".join(f"{json_text.dumps(dict(zip(columns, row)))}\n" for row in rows)
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_written, rows))
    return stream.getvalue()


def _written(row: tuple[float | str, ...]) -> list[str]:
    return [x if isinstance(x, str) else _number(x) for x in row]


def _number(x: float) -> str:
    return repr(x) if math.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"
