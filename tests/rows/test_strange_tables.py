"""Tests unusual tables: rows are never lost, doubled or reordered, and their text is unchanged."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.rows.formats.records import Quoting
from tests.rows.test_tables import mapped

_SEPARATORS = st.sampled_from([",", ";", "\t"])
_NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(
        ["007", "1.50", " 2 ", "+3", ".5", "1e3", "", "NA", "null", "abc", "1_000", "0x10", "1e", "-", "é"]
    ),
)
# The csv module does not quote a lone carriage return, which at the end of a line would belong to its end.
_TEXTS = st.lists(st.sampled_from([*'ab ,;\t"\né€😀\x01', "\r\n"]), max_size=6).map("".join)


def _number(text: str) -> float | None:
    text = text.strip()
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[list[str]], dict[str, object]]:
    texts = draw(st.integers(0, 2))
    rows = draw(st.lists(st.tuples(_NUMBERS, *[_TEXTS] * texts), max_size=8))
    writing = {
        "delimiter": draw(_SEPARATORS) if texts else ",",
        "lineterminator": draw(st.sampled_from(["\n", "\r\n"])),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    }
    return [["x", *(f"t{place}" for place in range(texts))], *map(list, rows)], writing


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(_tables(), st.sampled_from([1, 5, 23, 2**22]), st.booleans(), st.booleans())
def test_well_formed_tables(table: tuple[list[list[str]], dict], block: int, mark: bool, cut: bool) -> None:
    rows, writing = table
    text = io.StringIO()
    csv.writer(text, **writing).writerows(rows)
    data = text.getvalue()
    if cut and not data.endswith(("\n\n", '"\r\n')) and len(rows) > 1:
        data = data.removesuffix("\n").removesuffix("\r")
    separator = writing["delimiter"]
    found = mapped(("\ufeff" * mark + data).encode(), ["x"], block, separator=separator).decode()
    assert found.count("\ufeff") == 0
    back = list(csv.reader(io.StringIO(found, newline=""), delimiter=separator))
    # The csv module can write a record of one empty field only in quotes.
    assert [row[:-1] for row in back] == rows
    for row, result in zip(rows[1:], back[1:]):
        number = _number(row[0])
        assert result[-1] == "" if number is None else _same(float(result[-1]), number)


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.sampled_from([b"1", b",", b'"', b'""', b"\n", b"\r\n", b"\r", b"a", b" ", b"\xc3\xa9", b"\x01"]), max_size=24
    ).map(b"".join)
)
def test_tables_of_any_text(body: bytes) -> None:
    """Also with stray quotes and ragged rows: the lines are unchanged except for quotes around surplus fields, and the
    block size makes no difference."""
    table = b"x,q\n" + body
    found, swapped = mapped(table, ["x", "q"]), mapped(table, ["x", "q"], kept=["q", "x"])
    for block in (1, 2, 3, 7):
        assert mapped(table, ["x", "q"], block) == found
        assert mapped(table, ["x", "q"], block, ["q", "x"]) == swapped
    lines = [line.removesuffix(b"\r").replace(b'"', b"") for line in table.split(b"\n")]
    kept = iter(found.replace(b'"', b"").split(b"\n"))
    assert all(any(other.startswith(line) for other in kept) for line in lines if line)
    assert {len(record.fields) for record in Quoting(b",").records(found) if record.fields} == {3}
