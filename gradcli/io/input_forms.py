"""The forms in which numbers come on standard input, and which it is, told from the beginning."""

from __future__ import annotations

from gradcli.io.json_numbers import is_number

FORMS = ("csv", "tsv", "jsonl", "json", "npy")
# Bytes that tell it.
ENOUGH = 512
_BEGINNINGS = {b"\x93NUMPY": "npy", b"PK": "npz", b"PAR1": "parquet", b"ARROW1": "arrow", b"[": "json", b"{": "jsonl"}


def told(start: bytes) -> str:
    """The form of what begins like this; `start` is all of it, or `ENOUGH`. A table as text where nothing tells."""
    beginning = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    for begins, form in _BEGINNINGS.items():
        if beginning.startswith(begins):
            return form
    return "json" if len(start) < ENOUGH and is_number(beginning.decode("latin-1")) else "csv"
