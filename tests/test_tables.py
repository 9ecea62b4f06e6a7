"""Tables in and out: every row is written again as it was, with its results, whatever the blocks."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy
import pytest

from gradcli.rows import columns, reading, writing


def _mapped(data: bytes, needed: Sequence[str], block: int = 2**22, **options: object) -> bytes:
    """The table with the sum of the needed columns."""
    reader = reading.open_table("t.csv", reading.Reading(block=block, **options), stream=io.BytesIO(data))
    out = io.BytesIO()
    writer = writing.writer(reader.format, out, ["value"], reader)
    for piece in reader.pieces(needed):
        block_ = piece.block()
        found = [columns.numbers(block_, name) for name in needed]
        null = numpy.any([column.missing for column in found], axis=0)
        null[[*block_.failed, *(index for column in found for index in column.failing)]] = True
        results = {"value": numpy.sum([column.values for column in found], axis=0)}
        writer.write(writer.prepared(block_, results, null))
    writer.close()
    return out.getvalue()


TABLES = [
    (b"x,q\n1,2\n3,4", b"x,q,value\n1,2,3.0\n3,4,7.0\n"),
    (b'x,q\r\n1,"2"\r\n3,4\r\n', b'x,q,value\r\n1,"2",3.0\r\n3,4,7.0\r\n'),
    (b'\xef\xbb\xbfx,n,q\n1,"a\nb,c",2\n007,"d""e",1.50\n', b'x,n,q,value\n1,"a\nb,c",2,3.0\n007,"d""e",1.50,8.5\n'),
    (b"x,q\n,3\nNA,1\n 1 , 2\nabc,2\n\n5,6\n", b"x,q,value\n,3,\nNA,1,\n 1 , 2,3.0\nabc,2,\n5,6,11.0\n"),
    (b"x,q\n2020-01-02,1\n1e400,2\ninf,1\nnan,1\n", b"x,q,value\n2020-01-02,1,\n1e400,2,\ninf,1,Infinity\nnan,1,NaN\n"),
    (b'x,q\n1,2,3\n4\n5,6\n"7"a,8\n9,10\n', b'x,q,value\n1,2,3,\n4,,\n5,6,11.0\n"7"a,8,\n9,10,19.0\n'),
    (b'x,q\n1,"2\n3,4\n5,6\n', b'x,q,value\n1,"2,\n3,4,7.0\n5,6,11.0\n'),
    (b'q;x;n\n1,5;2,25;5" pipe\n2;"3";\n', b'q;x;n;value\n1,5;2,25;5" pipe;3,75\n2;"3";;5,0\n'),
    (b"x,q\n", b"x,q,value\n"),
]


@pytest.mark.parametrize(("table", "expected"), TABLES)
@pytest.mark.parametrize("block", [1, 7, 2**22])
def test_rows_are_written_as_they_were_whatever_the_blocks(table: bytes, expected: bytes, block: int) -> None:
    assert _mapped(table, ["x", "q"], block) == expected


def test_a_blank_line_of_a_single_column_is_a_row() -> None:
    assert _mapped(b"x\n1\n\n3\n", ["x"]) == b"x,value\n1,1.0\n,\n3,3.0\n"
