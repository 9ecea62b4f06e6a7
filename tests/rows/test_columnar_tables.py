"""Tests reading and writing columnar tables: Parquet and Arrow."""

from __future__ import annotations

import datetime
import decimal
import io
from pathlib import Path

import numpy
import polars
import pytest

from gradcli.errors import BindingError, PipeClosed
from gradcli.rows.formats import writing
from gradcli.rows.formats.opening import open_table
from gradcli.rows.formats.reading import ByteRange, ColumnSelection, TableReadOptions

TABLE = polars.DataFrame(
    {
        "x": [1, 2, None, 4],
        "note": ["a", "b,c", None, 'q"'],
        "day": [datetime.date(2020, 1, 1)] * 4,
        "v": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], None],
        "text": ["1.5", "NA", "2020-01-02", " 7 "],
        "flag": [True, False, None, True],
    }
)


@pytest.fixture
def table(tmp_path: Path, format: str) -> Path:
    path = tmp_path / f"table.{format}"
    TABLE.write_parquet(path) if format == "parquet" else TABLE.write_ipc(path)
    return path


def _read(path: Path) -> polars.DataFrame:
    return polars.read_parquet(path) if path.suffix == ".parquet" else polars.read_ipc(path)


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_columns_are_written_as_they_were(run, table, format):
    output = table.with_name(f"out.{format}")
    done = run("map", "x*v", str(table), "--output", str(output))
    assert (done.status, done.err) == (0, "")
    found = _read(output)
    assert found.select(TABLE.columns).equals(TABLE)
    assert found["value"].to_list() == [[1.0, 2.0], [6.0, 8.0], None, None]
    assert found["d_v"].to_list()[:3] == [[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]], None]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("program", "expected", "warned"),
    [
        ("x*2", "2.0\n4.0\n\n8.0\n", False),
        ("flag*2", "2.0\n0.0\n\n2.0\n", False),
        ("text*2", "3.0\n\n\n14.0\n", True),
        ("day*2", "\n" * 4, True),
        ("sum(v)", "3.0\n7.0\n11.0\n\n", False),
    ],
)
def test_columns_of_all_kinds_as_numbers(run, table, program, expected, warned):
    done = run("map", program, str(table), "--only", "--no-grad", "--to", "csv")
    assert done.out == "value\n" + expected
    assert bool(done.err) is warned


@pytest.mark.parametrize("format", ["parquet"])
def test_other_formats(run, table):
    done = run("map", "x", str(table), "--no-grad", "--to", "csv")
    assert done.out.splitlines()[1] == '1,a,2020-01-01,"[1.0,2.0]",1.5,true,1.0'
    done = run("map", "x", str(table), "--no-grad", "--to", "jsonl", "--keep", "note,v")
    assert done.out.splitlines()[1] == '{"note":"b,c","v":[3.0,4.0],"value":2.0}'


# Types that text formats lack, and their representation in CSV and JSON lines.
KINDS = [
    ([datetime.timedelta(days=1, seconds=3)], "P1DT3S", '"P1DT3S"'),
    ([b"\x00a"], "0061", '"0061"'),
    ([[decimal.Decimal("1.10")]], '"[""1.10""]"', '["1.10"]'),
    ([{"a": datetime.date(2020, 1, 2), "b": [b"a"]}], '"{""a"":""2020-01-02"",""b"":[""61""]}"', None),
    (polars.Series([1], dtype=polars.Datetime("ns")), "1970-01-01T00:00:00.000000001", None),
    (polars.Series(["2"], dtype=polars.Categorical), "2", '"2"'),
    (["2"], "2", '"2"'),
    ([decimal.Decimal("2.50")], "2.50", '"2.50"'),
]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize(("column", "text", "line"), KINDS)
def test_columns_of_kinds_that_text_lacks(run, tmp_path, format, column, text, line):
    path = tmp_path / f"table.{format}"
    table = polars.DataFrame({"x": [1.0, 2.0], "n": polars.Series(column).extend_constant(None, 1)})
    table.write_parquet(path) if format == "parquet" else table.write_ipc(path)
    done = run("map", "x", str(path), "--no-grad", "--to", "csv")
    assert (done.out, done.err) == (f"x,n,value\n1.0,{text},1.0\n2.0,,2.0\n", "")
    first, second = run("map", "x", str(path), "--no-grad", "--to", "jsonl").out.splitlines()
    assert first == f'{{"x":1.0,"n":{line},"value":1.0}}' or line is None
    assert second == '{"x":2.0,"n":null,"value":2.0}'


def test_nothing_of_a_time_is_lost_in_lines(run, tmp_path):
    column = polars.Series([1], dtype=polars.Datetime("ns"))
    polars.DataFrame({"x": [1.0], "n": column, "l": [[datetime.time(1)]]}).write_parquet(tmp_path / "t.parquet")
    done = run("map", "x", str(tmp_path / "t.parquet"), "--keep", "n,l", "--no-grad", "--to", "jsonl")
    assert done.out == '{"n":"1970-01-01 00:00:00.000000001","l":["01:00:00"],"value":1.0}\n'


@pytest.mark.parametrize("format", ["parquet"])
def test_a_column_of_texts_that_is_needed_as_numbers_stays_one_of_texts(run, table):
    output = table.with_name("out.parquet")
    done = run("map", "2*text", str(table), "--no-grad", "--output", str(output))
    assert done.status == 0
    found = _read(output)
    assert found.select(TABLE.columns).equals(TABLE)
    assert found["value"].to_list() == [3.0, None, None, 14.0]


def test_text_becomes_columns_of_numbers_and_of_texts(run, tmp_path):
    output = tmp_path / "out.parquet"
    done = run("map", "x+1", "--output", str(output), stdin="x,n\n1,007\n,b\n")
    assert (done.status, done.err) == (0, "")
    assert polars.read_parquet(output).rows() == [(1.0, "007", 2.0, 1.0), (None, "b", None, None)]
    run("map", "x+1", "--output", str(output), stdin="x,n\n")
    assert polars.read_parquet(output).columns == ["x", "n", "value", "d_x"]


@pytest.mark.parametrize("block", [1, 40, 2**22])
def test_parts_and_streams_give_each_row_once(tmp_path, block):
    path = tmp_path / "t.parquet"
    polars.DataFrame({"x": range(1000), "y": [1.5] * 1000}).write_parquet(path, row_group_size=100)
    found = []
    for part in (ByteRange(0, 130), ByteRange(130, 131), ByteRange(131, 1000)):
        reader = open_table(str(path), TableReadOptions(block=block * 100), part)
        found += [x for piece in reader.pieces(ColumnSelection(["x"])) for x in piece.block().numbers["x"].values]
        reader.close()
    assert found == [*range(1000)]
    reader = open_table("-", TableReadOptions(), stream=io.BytesIO(path.read_bytes()))
    assert (reader.format, sum(piece.block().rows for piece in reader.pieces(ColumnSelection([])))) == ("parquet", 1000)
    reader.close()


def test_a_damaged_file_is_an_error(tmp_path):
    path = tmp_path / "t.parquet"
    TABLE.write_parquet(path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(BindingError, match="it is damaged, or no parquet file"):
        open_table(str(path), TableReadOptions())


def test_a_full_disk_is_said(run):
    done = run("map", "x+1", "--output", "/dev/full", "--to", "parquet", stdin="x\n" + "1\n" * 1000)
    assert (done.status, done.out) == (1, "")
    assert "No space left on device" in done.err


def test_an_error_of_the_stream_is_raised_as_it_is():
    class Gone(io.BytesIO):
        """A stream that fails after the first write."""

        def write(self, data: object) -> int:
            if self.tell():
                raise PipeClosed
            return super().write(data)

    reader = open_table("-", TableReadOptions(), stream=io.BytesIO(b"x\n1\n"))
    writer = writing.writer("arrow", Gone(), [], reader)
    block = next(reader.pieces(ColumnSelection([], to="arrow"))).block()
    writer.write(writer.prepared(block, {}, numpy.zeros(1, bool)))
    with pytest.raises(PipeClosed):
        writer.close()
