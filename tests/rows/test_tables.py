"""Tests reading and writing tables: every row is written as it was read, with its results, for any block size."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest

from gradcli.errors import BindingError, UsageError
from gradcli.rows.formats import opening, reading, records, sources, writing
from gradcli.rows.formats.reading import ColumnSelection


def mapped(
    data: bytes, needed: Sequence[str], block: int = 2**22, kept: Sequence[str] | None = None, **options: object
) -> bytes:
    """The table, or its kept columns, with the sum of the needed columns."""
    reader = opening.open_table("t.csv", reading.TableReadOptions(block=block, **options), stream=io.BytesIO(data))
    out = io.BytesIO()
    writer = writing.writer(reader.format, out, ["value"], reader, kept)
    for piece in reader.pieces(ColumnSelection(needed, kept)):
        block_ = piece.block()
        found = [block_.numbers[name] for name in needed]
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
    (b'x,q\n1,2,3\n4\n5,6\n"7"a,8\n9,10\n', b'x,q,value\n1,"2,3",\n4,,\n5,6,11.0\n"7"a,8,\n9,10,19.0\n'),
    (b'x,q\n1,"2\n3,4\n5,6\n', b'x,q,value\n1,"2,\n3,4,7.0\n5,6,11.0\n'),
    (b'q;x;n\n1,5;2,25;5" pipe\n2;"3";\n', b'q;x;n;value\n1,5;2,25;5" pipe;3,75\n2;"3";;5,0\n'),
    (b"x,q\n", b"x,q,value\n"),
    (b"# by me, today\n\n# at 5\nx,q\n1,2\n# 3\n", b"x,q,value\n1,2,3.0\n# 3,,\n"),
    (b"sep=;\r\nx;q\r\n1,5;2\r\n", b"x;q;value\r\n1,5;2;3,5\r\n"),
    # The right number of fields in total, but not in each row.
    (b"x,q\n1,2,3\n4\n5,6\n", b'x,q,value\n1,"2,3",\n4,,\n5,6,11.0\n'),
    (b"x,q\n5,6\n\n1,2,3\n", b'x,q,value\n5,6,11.0\n1,"2,3",\n'),
]


@pytest.mark.parametrize(("table", "expected"), TABLES)
@pytest.mark.parametrize("block", [1, 7, 2**22])
def test_rows_are_written_as_they_were_whatever_the_blocks(table: bytes, expected: bytes, block: int) -> None:
    assert mapped(table, ["x", "q"], block) == expected


@pytest.mark.parametrize("malformed", [b"", b"7,8\n", b'"7"a,8,9\n'])
@pytest.mark.parametrize("block", [1, 7, 2**22])
def test_columns_are_kept_in_the_order_asked_for_and_empty_texts_in_their_quotes(malformed: bytes, block: int) -> None:
    table = b'x,q,n\n1,2,""\n3,4,\n' + malformed
    assert mapped(table, ["x"], block, ["n", "x"]).startswith(b'n,x,value\n"",1,1.0\n,3,3.0\n')


def test_a_blank_line_of_a_single_column_is_a_row() -> None:
    assert mapped(b"x\n1\n\n3\n", ["x"]) == b"x,value\n1,1.0\n,\n3,3.0\n"


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", "zst"])
def test_compressed_tables_are_read_and_written(compression: str) -> None:
    out = io.BytesIO()
    with sources.packed(out, compression) as stream:
        stream.write(b"x,q\n1,2\n" * 2)
    assert mapped(out.getvalue(), ["x", "q"]) == b"x,q,value\n1,2,3.0\nx,q,\n1,2,3.0\n"
    with pytest.raises(BindingError, match="cannot read"):
        mapped(out.getvalue()[:-5], ["x", "q"])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_tables_in_other_encodings_are_written_in_utf8(encoding: str) -> None:
    options = {} if encoding == "utf-16" else {"encoding": encoding}
    assert mapped("é,x\nü,2\n".encode(encoding), ["x"], **options) == "é,x,value\nü,2,2.0\n".encode()


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(BindingError, match="not UTF-8"):
        mapped(b"n,x\n\xe9,1\n", ["x"])


def test_columns_without_a_header_have_numbers() -> None:
    assert mapped(b"1;2,5\n3;4,0\n", ["c1", "c2"], header=False) == b"1;2,5;3,5\n3;4,0;7,0\n"


def test_a_repeated_header_is_an_error_where_it_is_needed() -> None:
    table = b"x,n,n\n1,2,3\n"
    assert mapped(table, ["x"]) == b"x,n,n,value\n1,2,3,1.0\n"
    with pytest.raises(BindingError, match="more than one column 'n'"):
        mapped(table, ["n"])


def test_an_empty_file_is_an_error() -> None:
    with pytest.raises(BindingError, match="is empty"):
        mapped(b"", ["x"])


def test_patterns_and_folders_stand_for_their_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv.gz", "note.txt", "below/c.parquet", ".hidden.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = sources.files([f"{tmp_path}/*.csv", str(tmp_path), "-", "https://example.org/x.csv"])
    assert [os.path.relpath(path, tmp_path) for path in found[:4]] == ["b.csv", "a.csv.gz", "b.csv", "below/c.parquet"]
    assert found[4:] == ["-", "https://example.org/x.csv"]
    with pytest.raises(UsageError, match="no file matches"):
        sources.files([f"{tmp_path}/*.tsv"])


def test_a_pipe_yields_its_rows_as_they_come() -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as stream, os.fdopen(theirs, "wb", buffering=0) as other:
        other.write(b"x\n1\n2\n")
        pieces = opening.open_table("-", reading.TableReadOptions(), stream=stream).pieces(ColumnSelection(["x"]))
        assert next(pieces).block().rows == 2
        other.write(b"3\n4")
        assert next(pieces).block().rows == 1
        other.close()
        assert [piece.block().rows for piece in pieces] == [1]


def test_who_waits_for_rows_of_a_pipe_sleeps_however_soon_those_before_came() -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as stream, os.fdopen(theirs, "wb", buffering=0) as other:
        other.write(b'{"x":1}\n')
        pieces = opening.open_table("-", reading.TableReadOptions(format="jsonl"), stream=stream).pieces(
            ColumnSelection(["x"])
        )
        for _ in range(9):
            next(pieces)
            other.write(b'{"x":1}\n')
        next(pieces)
        late = threading.Timer(0.4, other.write, [b'{"x":2}\n'])
        late.start()
        begin = time.thread_time()
        assert next(pieces).block().numbers["x"].values.tolist() == [2]
        assert time.thread_time() - begin < 0.2
        late.join()


def test_the_header_of_a_pipe_may_come_behind_comments() -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as stream, os.fdopen(theirs, "wb", buffering=0) as other:
        other.write(b"# a\n# b\n")
        late = threading.Timer(0.1, other.write, [b"# c\nx\n1\n"])
        late.start()
        reader = opening.open_table("-", reading.TableReadOptions(), stream=stream)
        late.join()
        assert reader.columns == ["x"]


def test_a_record_that_does_not_end_takes_no_more_memory_than_the_longest_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_RECORD", 1000)
    table = b'x,q\n1,"2\n' + b"3,4\n" * 1000
    assert mapped(table, ["x", "q"], 100) == b'x,q,value\n1,"2,\n' + b"3,4,7.0\n" * 1000
    with pytest.raises(BindingError, match=r"a row is longer than 1,000 bytes"):
        mapped(b"x\n" + b"1" * 5000, ["x"], 100)


def test_blocks_hold_about_as_many_bytes_as_they_are_to(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,q\n" + b"1,2\n" * 100_000)
    reader = opening.open_table(str(path), reading.TableReadOptions(block=10_000))
    sizes = [piece.size for piece in reader.pieces(ColumnSelection(["x"]))]
    reader.close()
    assert sum(sizes) == 400_000
    assert max(sizes) <= 10_000


def test_no_result_is_an_empty_field_in_any_table() -> None:
    # The row that lacks a field has a number nevertheless.
    assert mapped(b'x,q\n"1,5"\n', ["x"], kept=["x"], decimal_comma=True) == b'x,value\n"1,5",\n'
