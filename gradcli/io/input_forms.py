"""The formats of numbers on standard input, and their detection from the first bytes."""

from __future__ import annotations

from gradcli.io.json_numbers import is_number

FORMS = ("csv", "tsv", "jsonl", "json", "npy")
# The number of bytes from which the format is detected.
SAMPLE_BYTES = 512
_BEGINNINGS = {b"\x93NUMPY": "npy", b"PK": "npz", b"PAR1": "parquet", b"ARROW1": "arrow", b"[": "json", b"{": "jsonl"}


def detected_format(start: bytes) -> str:
    """The format of data with this beginning: `start` is all of it, or its first `SAMPLE_BYTES` bytes. A text table where
    nothing else fits."""
    beginning = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    for begins, form in _BEGINNINGS.items():
        if beginning.startswith(begins):
            return form
    return "json" if len(start) < SAMPLE_BYTES and is_number(beginning.decode("latin-1")) else "csv"
