"""The formats of files by the extension of a path, and by the first bytes of a stream."""

from __future__ import annotations

import codecs
import os

# The formats of tables and of values by the extension of a path.
TABLE_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
VALUE_EXTENSIONS = {
    f".{name}": name for name in ("npy", "npz", "csv", "tsv", "json", "jsonl", "parquet", "arrow")
} | TABLE_EXTENSIONS
# The formats of values on standard input.
FORMS = ("csv", "tsv", "jsonl", "json", "npy")
# The number of bytes from which the format of values is detected.
SAMPLE_BYTES = 512
_COLUMNAR_BEGINNINGS = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_BEGINNINGS = {b"\x93NUMPY": "npy", b"PK": "npz", **_COLUMNAR_BEGINNINGS, b"[": "json"}


def format_of_values(path: str) -> str | None:
    """The format of values that the extension of a path names, None where it names none."""
    return VALUE_EXTENSIONS.get(os.path.splitext(path)[1].lower())


def detected_format(start: bytes) -> str:
    """The format of values with this beginning: `start` is all of them, or their first `SAMPLE_BYTES` bytes. A text
    table where nothing else fits."""
    beginning = _without_space(start)
    for first_bytes, name in _BEGINNINGS.items():
        if beginning.startswith(first_bytes):
            return name
    if begins_with_object(start):
        return "jsonl"
    # Imported here because only standard input and files of an unknown kind need it.
    from gradcli.io.json_numbers import is_number

    return "json" if len(start) < SAMPLE_BYTES and is_number(beginning.rstrip().decode("latin-1")) else "csv"


def columnar_format(start: bytes) -> str | None:
    """The columnar format of a file with this beginning, None for other formats."""
    return next((name for first_bytes, name in _COLUMNAR_BEGINNINGS.items() if start.startswith(first_bytes)), None)


def begins_with_object(start: bytes) -> bool:
    """Return whether a text begins with a JSON object, as JSON lines do."""
    return _without_space(start).startswith(b"{")


def _without_space(start: bytes) -> bytes:
    return start.removeprefix(codecs.BOM_UTF8).lstrip()
