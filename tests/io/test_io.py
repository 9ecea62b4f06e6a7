"""Tests values from words and files, JSON output, and output files that are complete or not written at all."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradcli import install_command
from gradcli.errors import BindingError, OutputError, UsageError
from gradcli.io.files import read
from gradcli.io.json_text import dumps
from gradcli.io.json_variables import read_variables
from gradcli.io.output import save_npz, write_atomically
from gradcli.io.variables import split_binding
from gradcli.language.syntax import parse_tables, parser

SOFT_WORDS = sorted(word.lower() for word in parser.SOFT)
WORDS_OF_THE_GRAMMAR = sorted({*re.findall(r'"([A-Za-z]+)"', parse_tables.read_grammar().decode())} - {*SOFT_WORDS})

fixed = settings(derandomize=True, deadline=None, max_examples=150, database=None)


@pytest.fixture(autouse=True)
def _in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def put(name, content):
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def refused(reference, **limits):
    """The error of reading `reference`, which names the path and has a hint."""
    with pytest.raises(BindingError) as caught:
        read(reference, **limits)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


def assert_array(value, expected):
    expected = np.asarray(expected, dtype=np.float64)
    assert isinstance(value, np.ndarray)
    assert value.dtype == np.float64
    assert value.flags.c_contiguous
    assert value.flags.writeable
    np.testing.assert_array_equal(value, expected, strict=True)


def npy(header, data=b"", version=(1, 0)):
    """The bytes of a `.npy` file with any header."""
    text = (header if isinstance(header, bytes) else header.encode()) + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def header(shape, descr="<f8", fortran=False):
    return repr({"descr": descr, "fortran_order": fortran, "shape": shape})


class TestPaths:
    def test_missing_file_suggests_the_nearest_name(self):
        Path("sub").mkdir()
        put("sub/weights.npy", "")
        error = refused("sub/weight.npy")
        assert "sub/weight.npy" in error.message
        assert error.hint == "did you mean 'sub/weights.npy'?"

    def test_missing_file_with_nothing_near(self):
        assert "current directory" in refused("zzz.npy").hint

    def test_a_removed_directory(self, tmp_path, monkeypatch):
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        error = refused("a.csv")
        assert error.message == "cannot read 'a.csv': there is no such file"
        assert error.hint == "the current directory was removed: cd to another"
        with pytest.raises(OutputError, match="cannot write 'a"):
            save_npz("a.npz", {"value": 1.0})
        save_npz(str(tmp_path / "a.npz"), {"value": 1.0})
        assert read(str(tmp_path / "a.npz")) == 1.0

    def test_missing_directory(self):
        assert "'nowhere'" in refused("nowhere/x.npy").hint

    def test_missing_file_with_a_member(self):
        assert "cannot read 'a.npz': there is no such file" in refused("a.npz:grad/x").message
        assert "cannot read 'a.npz'" in refused("a.npz:grad.csv").message

    def test_empty_reference(self):
        assert "no file" in refused("").message

    @pytest.mark.parametrize("name", ["x.txt", "x", "x.npy.gz", ".npy"])
    def test_unknown_suffix_lists_the_known_ones(self, name):
        put(name, "1")
        assert refused(name).hint.endswith(".npy .npz .csv .tsv .json .jsonl .parquet .arrow .ndjson .feather")

    @pytest.mark.parametrize("name", ["folder", "folder.npy", "folder.npy:x"])
    def test_directory(self, name):
        Path(name.partition(":")[0]).mkdir()
        assert "is a directory" in refused(name).message

    def test_fifo_does_not_block(self):
        os.mkfifo("pipe.csv")
        assert "no regular file" in refused("pipe.csv").message

    def test_permission_denied(self, monkeypatch):
        def deny(*_):
            raise PermissionError(13, "Permission denied")

        put("x.json", "1")
        monkeypatch.setattr("gradcli.io.system.FileIO", deny)
        assert "cannot read 'x.json': permission denied" in refused("x.json").message

    @pytest.mark.parametrize("name", ["a\0b.npy", "x" * 5000 + ".npy"])
    def test_impossible_names(self, name):
        refused(name)

    def test_a_path_may_hold_colons(self):
        put("a:b.csv", "x,y\n1,2\n")
        assert_array(read("a:b.csv"), [[1, 2]])
        assert_array(read("a:b.csv:y"), [2])

    def test_a_member_may_hold_colons_and_slashes(self):
        save_npz("a.npz", {"u:v": 1.0, "grad/x.csv": 2.0})
        assert read("a.npz:u:v") == 1.0
        assert read("a.npz:grad/x.csv") == 2.0

    def test_suffixes_in_capitals(self):
        assert read(put("X.JSON", "4")) == 4.0


class TestNpy:
    @pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2", "i1", "<u8", ">i4", "?", np.longdouble])
    def test_real_dtypes_become_float64(self, dtype):
        array = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype)
        np.save("a.npy", array)
        assert_array(read("a.npy"), array.astype(np.float64))

    def test_float32_values_stay(self):
        np.save("a.npy", np.float32([0.1]))
        assert read("a.npy")[0] == 0.10000000149011612

    def test_large_integers_round_as_usual(self):
        np.save("a.npy", np.array([2**53 + 1]))
        assert_array(read("a.npy"), [2.0**53])

    def test_no_axes_gives_a_float(self):
        np.save("a.npy", np.int32(3))
        value = read("a.npy")
        assert type(value) is float
        assert value == 3.0

    def test_fortran_order(self):
        np.save("a.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
        assert_array(read("a.npy"), [[0, 1, 2], [3, 4, 5]])

    @pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
    def test_empty(self, shape):
        np.save("a.npy", np.zeros(shape))
        assert_array(read("a.npy"), np.zeros(shape))

    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    def test_format_versions(self, version):
        put("a.npy", npy(header((1,)), struct.pack("<d", 7), version))
        assert_array(read("a.npy"), [7])

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.array(["a"]), "dtype '<U1'"),
            (np.array([b"a"]), "dtype '|S1'"),
            (np.array(["2024-01-01"], dtype="M8[D]"), "dtype"),
            (np.zeros(2, dtype=[("u", "f8")]), "dtype"),
        ],
    )
    def test_other_dtypes_are_refused(self, array, words):
        np.save("a.npy", array)
        error = refused("a.npy")
        assert words in error.message
        assert "not numbers" in error.message

    def test_pickles_are_never_loaded(self):
        np.save("a.npy", np.array([{}], dtype=object), allow_pickle=True)
        assert "holds Python objects (a pickle)" in refused("a.npy").message
        np.savez("a.npz", np.array([None]), allow_pickle=True)
        assert "holds Python objects (a pickle)" in refused("a.npz").message

    def test_a_bare_pickle_is_never_loaded(self):
        put("a.npy", b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.")
        assert "a pickle" in refused("a.npy").message
        assert not Path("owned").exists()

    @pytest.mark.parametrize("content", [b"", b"\x93NUM", b"\x93NUMPY\x01", b"<html>not found</html>", b"PK\x03\x04"])
    def test_not_npy(self, content):
        assert "no .npy file" in refused(put("a.npy", content)).message

    @pytest.mark.parametrize("keep", [8, 9, 40, 128, 130, 151])
    def test_truncated(self, keep):
        np.save("a.npy", np.arange(3.0))
        put("a.npy", Path("a.npy").read_bytes()[:keep])
        assert "damaged" in refused("a.npy").message

    @pytest.mark.parametrize(
        "content",
        [
            npy("{"),
            npy("(" * 9000),
            npy("[" * 60000),
            npy("{'descr': '<f8'}"),
            npy(header((-1,))),
            npy(header((True, 2.5))),
            npy(header((True,)), bytes(8)),
            npy(header((True, False))),
            npy(header((10**30, 0))),
            npy(header((1,) * 65), bytes(8)),
            npy(header((1,), "<f99")),
            npy(header((1,)), bytes(8), (9, 9)),
            npy(b"\xff\xfe\x00", version=(3, 0)),
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        ],
    )
    def test_hostile_headers(self, content):
        assert "damaged" in refused(put("a.npy", content)).message

    @pytest.mark.parametrize("shape", [(10**15,), (10**9, 10**9, 10**9), (2,)])
    def test_claims_beyond_the_file_allocate_nothing(self, shape):
        error = refused(put("a.npy", npy(header(shape), bytes(8))))
        assert f"claims {8 * math.prod(shape)} bytes of data, and 8 are there" in error.message

    def test_max_elements(self):
        np.save("a.npy", np.zeros((2, 3)))
        assert read("a.npy", max_elements=6).shape == (2, 3)
        error = refused("a.npy", max_elements=5)
        assert "6 elements, more than the limit of 5" in error.message
        assert "--max-elements" in error.hint

    @pytest.mark.skipif(
        np.finfo(np.longdouble).max <= np.finfo(np.float64).max, reason="a long double is no larger than a double here"
    )
    def test_numbers_too_large(self):
        np.save("a.npy", np.longdouble(["1e4000"]))
        assert "too large for float64" in refused("a.npy").message

    def test_signalling_nan(self):
        put("a.npy", npy(header((1,), "<f4"), struct.pack("<I", 0x7FA00000)))
        assert np.isnan(read("a.npy")).all()

    def test_member_is_refused(self):
        np.save("a.npy", np.zeros(2))
        assert "one value" in refused("a.npy:x").message


class TestNpz:
    def test_member(self):
        np.savez("a.npz", x=np.float32([1, 2]), y=3)
        assert_array(read("a.npz:x"), [1, 2])
        assert read("a.npz:y") == 3.0

    def test_only_array_needs_no_member(self):
        np.savez_compressed("a.npz", np.eye(2))
        assert_array(read("a.npz"), np.eye(2))

    def test_open_choice_lists_the_keys(self):
        np.savez("a.npz", x=1, y=2)
        error = refused("a.npz")
        assert "2 arrays" in error.message
        assert error.hint == "write '@a.npz:NAME' with one of 'x', 'y'"

    @pytest.mark.parametrize("member", ["weight", ""])
    def test_missing_member(self, member):
        np.savez("a.npz", weights=1, bias=2)
        error = refused(f"a.npz:{member}")
        assert f"no array {member!r}" in error.message
        assert error.hint.endswith("it has 'weights', 'bias'")
        assert ("did you mean 'weights'?" in error.hint) == bool(member)

    def test_many_keys_are_cut(self):
        save_npz("a.npz", {f"k{i}": 0.0 for i in range(50)})
        assert refused("a.npz").hint.endswith("and 30 more")

    def test_without_arrays(self):
        with zipfile.ZipFile("a.npz", "w") as archive:
            archive.writestr("readme.txt", "")
        assert "no arrays" in refused("a.npz").message

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"x" * 100])
    def test_not_a_zip(self, content):
        assert "no .npz file" in refused(put("a.npz", content)).message

    def test_any_flipped_byte_gives_a_value_or_an_error(self):
        np.savez_compressed("a.npz", x=np.arange(4.0))
        whole = Path("a.npz").read_bytes()
        for at in range(len(whole)):
            put("a.npz", whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            with suppress(BindingError):
                assert_array(read("a.npz:x"), np.arange(4.0))

    @pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_claims_beyond_the_member_allocate_nothing(self, compression):
        with zipfile.ZipFile("a.npz", "w", compression) as archive:
            archive.writestr("x.npy", npy(header((10**15,)), bytes(1000)))
        assert "claims 8000000000000000 bytes" in refused("a.npz").message

    def test_bomb_stops_at_the_limit(self):
        with zipfile.ZipFile("a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", npy(header((10**6,)), bytes(8 * 10**6)))
        assert os.path.getsize("a.npz") < 20_000
        assert "1000000 elements" in refused("a.npz", max_elements=1000).message
        assert read("a.npz").shape == (10**6,)

    def test_compressions_that_numpy_does_not_use(self):
        with zipfile.ZipFile("a.npz", "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr("x.npy", npy(header((1,)), bytes(8)))
        assert "compressed in a way" in refused("a.npz").message

    def test_encrypted(self):
        np.savez("a.npz", x=1)
        content = bytearray(Path("a.npz").read_bytes())
        content[content.rindex(b"PK\x01\x02") + 8] |= 1
        assert "encrypted" in refused(put("a.npz", bytes(content))).message


class TestTables:
    def test_whole_table(self):
        assert_array(read(put("a.csv", "1,2\n3,4\n5,6\n")), [[1, 2], [3, 4], [5, 6]])

    def test_one_row_is_still_a_table(self):
        assert_array(read(put("a.csv", "1,2,3")), [[1, 2, 3]])

    @pytest.mark.parametrize("text", ["1\n2\n3\n", "x\n1\n2\n3\n"])
    def test_one_column_has_one_axis(self, text):
        assert_array(read(put("a.csv", text)), [1, 2, 3])

    def test_header_is_skipped(self):
        assert_array(read(put("a.csv", "x, y\n1,2\n")), [[1, 2]])

    def test_header_alone(self):
        assert_array(read(put("a.csv", "x,y\n")), np.zeros((0, 2)))
        assert_array(read("a.csv:y"), [])

    def test_tabs(self):
        assert_array(read(put("a.tsv", "x\ty\n1\t\n 3 \t4\n")), [[1, np.nan], [3, 4]])

    def test_tabs_alone_are_empty_cells(self):
        assert_array(read(put("a.tsv", "1\t2\n\t\n")), [[1, 2], [np.nan, np.nan]])

    def test_byte_order_mark_carriage_returns_blank_lines_spaces_and_quotes(self):
        text = '\ufeff"x, first" , y\r\n\r\n 1 , "2"\r\n   \r\n"-3e-1",+4.\r\n\r\n'
        assert_array(read(put("a.csv", text)), [[1, 2], [-0.3, 4]])
        assert_array(read("a.csv:x, first"), [1, -0.3])

    def test_old_line_ends(self):
        assert_array(read(put("a.csv", "1,2\r3,4\r")), [[1, 2], [3, 4]])

    def test_missing_numbers_and_infinities(self):
        text = "x,y,z\n,nan,NaN\ninf,-inf,Infinity\n"
        assert_array(read(put("a.csv", text)), [[np.nan] * 3, [np.inf, -np.inf, np.inf]])

    def test_empty_cells_of_a_lone_column_are_quoted(self):
        assert_array(read(put("a.csv", 'x\n1\n\n""\n2\n')), [1, np.nan, 2])

    def test_column_by_name(self):
        put("a.csv", "time,äöü,two\n1,2,3\n4,5,6\n")
        assert_array(read("a.csv:äöü"), [2, 5])

    def test_column_by_number_without_a_header(self):
        put("a.csv", "1,2\n3,4\n")
        assert_array(read("a.csv:1"), [1, 3])
        assert_array(read("a.csv:2"), [2, 4])

    def test_text_in_other_columns_is_left_alone(self):
        put("a.csv", "name,x\nann,1\nbob,2\n")
        assert_array(read("a.csv:x"), [1, 2])

    @pytest.mark.parametrize("member", ["0", "3", "x", "-1", "", "1" * 5000])
    def test_missing_column_number(self, member):
        put("a.csv", "1,2\n")
        assert "numbered 1 to 2" in refused(f"a.csv:{member}").hint

    @pytest.mark.parametrize("member", ["hight", "1", ""])
    def test_missing_column_name(self, member):
        error = refused(put("a.csv", "height,weight\n1,2\n") + f":{member}")
        assert f"no column {member!r}" in error.message
        assert error.hint.endswith("it has 'height', 'weight'")

    def test_column_name_twice(self):
        put("a.csv", "x,x\n1,2\n")
        assert "more than one column 'x'" in refused("a.csv:x").message
        assert_array(read("a.csv"), [[1, 2]])

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("1,2\n3,abc\n", "line 2, column 2: 'abc'"),
            ("x,y\n\n1,2\n3,#N/A\n", "line 4, column 2: '#N/A'"),
            ("a,1\n2,3\n", "line 1, column 1: 'a'"),
            ('"x\ny",z\n1,2\n1_000,2\n', "line 4, column 1: '1_000'"),
            ("x\n1e400\n", "line 2, column 1: '1e400'"),
            ("1e400\n1\n", "line 1, column 1: '1e400'"),
            ("x;y\n1;a\n", "line 2, column 2: 'a'"),
            ("x\n" + "z" * 100 + "\n", "line 2, column 1: '" + "z" * 40 + "…'"),
        ],
    )
    def test_cells_that_are_no_numbers(self, text, place):
        put("a.csv", text)
        error = refused("a.csv")
        assert error.message == f"cannot read 'a.csv': {place} is no float64 number"

    def test_bad_cell_in_a_chosen_column(self):
        assert "line 2, column 2: 'b'" in refused(put("a.csv", "x,y\na,b\n") + ":y").message

    @pytest.mark.parametrize(("text", "count"), [("1,2\n3\n", 1), ("1,2\n3,4,5\n", 3)])
    def test_ragged_rows(self, text, count):
        message = refused(put("a.csv", text)).message
        assert f"line 2 has {count} cells where the first line has 2" in message

    @pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "  \r\n"])
    def test_empty(self, text):
        assert "is empty" in refused(put("a.csv", text)).message

    @pytest.mark.parametrize("text", ['1,2\n"3,4\n', '1,2\n"3"x,4\n', "1,2\n3," + "9" * 200_000])
    def test_malformed(self, text):
        assert "line 2 is malformed" in refused(put("a.csv", text)).message

    @pytest.mark.parametrize("name", ["a.csv", "a.json"])
    def test_other_encodings(self, name):
        assert "not UTF-8" in refused(put(name, "1,2\n3,4".encode("utf-16"))).message

    def test_max_elements(self):
        put("a.csv", "1,2\n3,4\n")
        assert read("a.csv", max_elements=4).size == 4
        assert "more than the limit of 3" in refused("a.csv", max_elements=3).message
        assert read("a.csv:1", max_elements=2).size == 2


class TestJsonFiles:
    def test_number(self):
        value = read(put("a.json", "\ufeff 3 \n"))
        assert type(value) is float
        assert value == 3.0

    def test_nested_lists(self):
        assert_array(read(put("a.json", "[[1,2.5],[-3e2,4]]")), [[1, 2.5], [-300, 4]])

    def test_numbers_that_json_lacks(self):
        assert_array(read(put("a.json", '["NaN","Infinity","-Infinity"]')), [np.nan, np.inf, -np.inf])
        assert math.isnan(read(put("b.json", '"NaN"')))

    @pytest.mark.parametrize(("text", "shape"), [("[]", (0,)), ("[[],[]]", (2, 0)), ("[[[]]]", (1, 1, 0))])
    def test_empty_lists(self, text, shape):
        assert_array(read(put("a.json", text)), np.zeros(shape))

    @pytest.mark.all_cases
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[[1,2],[3]]", "'a.json'[1] has length 1 where the lists beside it have 2"),
            ("[[[1]],[[1,2]]]", "'a.json'[1][0] has length 2"),
            ("[1,[2]]", "'a.json'[1] is a list where the items beside it are numbers"),
            ("[[1],2]", "'a.json'[1] is a number where the items beside it are lists"),
            ("[[],[[]]]", "'a.json'[1] has length 1"),
            ("[[1],null]", "'a.json'[1] is null, not a number"),
            ("[[1,true]]", "'a.json'[0][1] is true, not a number"),
            ('["inf"]', "'a.json'[0] is the string \"inf\", not a number"),
            ('{"x":1}', "'a.json' is an object, not a number"),
            ("[1e400]", "'a.json'[0] is too large for float64"),
            ("1" * 5000, "'a.json' is too large for float64"),
            ("[" * 65 + "1" + "]" * 65, "nested 65 deep"),
            ("[" * 100_000, "nested too deeply"),
            ("1 2", "goes on after its value"),
            ("", "'a.json' is not JSON: expecting value"),
            ("[1,]", "not JSON"),
            ("[1", "not JSON"),
        ],
    )
    def test_refused(self, text, words):
        error = refused(put("a.json", text))
        assert words in error.message

    def test_place_of_bad_json(self):
        error = refused(put("a.json", "[1,\n 2 3]"))
        assert error.position == (2, 4)

    def test_member_and_limit(self):
        put("a.json", "[1,2]")
        assert "one value" in refused("a.json:x").message
        assert "2 elements" in refused("a.json", max_elements=1).message


class TestParquet:
    def put(self, **columns):
        pq.write_table(pa.table(columns), "a.parquet")

    def test_column(self):
        self.put(x=[1, None, 3], y=[0.5, 1.5, 2.5], z=[True, False, True])
        assert_array(read("a.parquet:x"), [1, np.nan, 3])
        assert_array(read("a.parquet:y"), [0.5, 1.5, 2.5])
        assert_array(read("a.parquet:z"), [1, 0, 1])

    @pytest.mark.parametrize("kind", ["float16", "float32", "uint64", "int8"])
    def test_only_column(self, kind):
        self.put(x=pa.array(np.array([1, 2], dtype=kind)))
        assert_array(read("a.parquet"), [1, 2])

    def test_large_integers_and_decimals(self):
        self.put(x=[2**53 + 1], d=pa.array([1.25]).cast(pa.decimal128(5, 2)))
        assert_array(read("a.parquet:x"), [2.0**53])
        assert_array(read("a.parquet:d"), [1.25])

    def test_names_with_dots_and_no_rows(self):
        self.put(**{"a.b": pa.array([], pa.float64())})
        assert_array(read("a.parquet:a.b"), [])

    def test_choice(self):
        self.put(height=[1], weight=[2])
        assert "'height', 'weight'" in refused("a.parquet").hint
        assert "did you mean 'height'?" in refused("a.parquet:hight").hint

    @pytest.mark.parametrize("column", [["a"], [[1]], [{"u": 1}], [None]])
    def test_other_types(self, column):
        self.put(x=column)
        assert "not numbers" in refused("a.parquet").message

    def test_column_twice(self):
        table = pa.table([[1], [2]], names=["x", "x"])
        pq.write_table(table, "a.parquet")
        assert "more than one column 'x'" in refused("a.parquet:x").message

    def test_damaged(self):
        self.put(x=[1.0, 2.0])
        whole = Path("a.parquet").read_bytes()
        for content in (b"", b"PAR1", whole[:50], whole[:-100] + bytes(92) + whole[-8:]):
            assert "damaged" in refused(put("a.parquet", content)).message

    def test_damage_that_polars_panics_at(self, capfd):
        """Threads of Polars report the damage on standard error, bypassing Python."""
        pq.write_table(pa.table({"x": [1.0, 2.0] * 20}), "a.parquet", compression="none", use_dictionary=False)
        content = bytearray(Path("a.parquet").read_bytes())
        # The size of the first page.
        assert content[9:12] == b"\x15\x8c\x05"
        content[11] = 0
        assert "damaged" in refused(put("a.parquet", bytes(content))).message
        assert capfd.readouterr() == ("", "")

    def test_max_elements(self):
        self.put(x=[1, 2])
        assert "2 elements" in refused("a.parquet", max_elements=1).message

    def test_without_polars(self, monkeypatch):
        self.put(x=[1])
        monkeypatch.setitem(sys.modules, "polars", None)
        error = refused("a.parquet")
        assert error.message == "'a.parquet', a .parquet file, needs Polars, which is not installed"
        assert error.hint == install_command.install_command("tables")


class TestSplitBinding:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("x=5", ("x", "5", 2)),
            ("W=[[1,2],[3,4]]", ("W", "[[1,2],[3,4]]", 2)),
            (" x = 5 ", ("x", "5 ", 5)),
            ("x=@a=b.npy", ("x", "@a=b.npy", 2)),
            ("x=f(1,seed=0)", ("x", "f(1,seed=0)", 2)),
            ("αβ_1=2", ("αβ_1", "2", 5)),
            ("ﬁ=1", ("fi", "1", 2)),
            ("x=a==b", ("x", "a==b", 2)),
        ],
    )
    def test_parts(self, text, expected):
        assert split_binding(text) == expected

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("x~1", "write x=1"),
            ("y~uniform(4.9,5.1)", "write y=~uniform(4.9,5.1)"),
            ("~1", "write NAME=VALUE, such as x=5"),
        ],
    )
    def test_a_tilde_without_an_equals_sign(self, text, hint):
        with pytest.raises(BindingError) as caught:
            split_binding(text)
        assert caught.value.hint == hint

    @pytest.mark.parametrize(
        ("text", "span", "words"),
        [
            ("x", (0, 1), "gives no name a value"),
            ("", (0, 0), "gives no name a value"),
            ("=5", (0, 1), "no name"),
            (" =5", (1, 2), "no name"),
            ("2x=3", (0, 2), "'2x' is not a name"),
            (" a-b =3", (1, 4), "'a-b' is not a name"),
            ("x.y=3", (0, 3), "'x.y' is not a name"),
            ("x=", (1, 2), "no value"),
            ("x= ", (1, 2), "no value"),
            ("x==5", (1, 3), "'=='"),
            ("x<=5", (0, 2), "'x<' is not a name"),
            ("²=5", (0, 1), "is not a name"),
        ],
    )
    def test_faults(self, text, span, words):
        with pytest.raises(BindingError) as caught:
            split_binding(text)
        assert caught.value.span == span
        assert caught.value.source == text
        assert words in caught.value.message
        assert caught.value.hint

    @pytest.mark.all_cases
    @pytest.mark.parametrize("name", [*WORDS_OF_THE_GRAMMAR, "\uff42ackward"])
    def test_reserved_words(self, name):
        with pytest.raises(BindingError, match="reserved word") as caught:
            split_binding(f"{name}=1")
        assert caught.value.span == (0, len(name))

    @pytest.mark.parametrize("name", SOFT_WORDS)
    def test_a_word_that_is_one_in_its_place_alone(self, run, name):
        assert split_binding(f"{name}=1").name == name
        assert run("eval", f"exp(-{name}*t)", f"{name}=0", "t=2", "--json").json["grad"] == {name: -2.0, "t": 0.0}


class TestReadVariables:
    def test_numbers_and_lists(self):
        got = read_variables('{"x": 5, "W": [[1, 2], [3, 4.5]], "z": "-Infinity", "é": []}', "v.json")
        assert list(got) == ["x", "W", "z", "é"]
        assert type(got["x"]) is float
        assert got["x"] == 5.0
        assert_array(got["W"], [[1, 2], [3, 4.5]])
        assert got["z"] == -math.inf
        assert_array(got["é"], [])

    @pytest.mark.parametrize("text", ["{}", " { } \n", "\ufeff{}"])
    def test_none(self, text):
        assert read_variables(text, "stdin") == {}

    def test_names_are_normalised(self):
        assert read_variables('{"\\ufb01": 1}', "stdin") == {"fi": 1.0}

    def test_the_numbers_that_json_lacks_need_no_quotes(self):
        got = read_variables('{"x": [NaN, Infinity, -Infinity], "y": ["NaN", "Infinity", "-Infinity"], "z": NaN}', "-")
        assert_array(got["x"], [math.nan, math.inf, -math.inf])
        assert_array(got["y"], [math.nan, math.inf, -math.inf])
        assert math.isnan(got["z"])

    @pytest.mark.all_cases
    @pytest.mark.parametrize(
        ("text", "marked", "words"),
        [
            ("", "", "expected '{'"),
            ("[1]", "[", "expected '{'"),
            ("{x: 1}", "x", "expected a name in double quotes"),
            ("{'x': 1}", "'", "expected a name in double quotes"),
            ('{"x": 1,}', "}", "expected a name in double quotes"),
            ('{"x" 1}', "1", "expected ':'"),
            ('{"x": 1 "y": 2}', '"', "expected ',' or '}'"),
            ('{"x": 1', "", "expected ',' or '}'"),
            ('{"x": }', "}", "v.json is not JSON: expecting value"),
            ('{"x": 01}', "1", "expected ',' or '}'"),
            ('{"x": [1,]}', None, "v.json is not JSON"),
            ('{"x', None, "v.json is not JSON"),
            ('{"x": 1} {}', "{", "goes on after its object"),
            ("{}]", "]", "goes on after its object"),
            ('{"x": 1, "x": 2}', '"x"', "gives variable 'x' twice"),
            ('{"fi": 1, "ﬁ": 2}', '"ﬁ"', "gives variable 'fi' twice"),
            ('{"2x": 1}', '"2x"', "'2x' is not a name"),
            ('{"": 1}', '""', "'' is not a name"),
            ('{"\\ud800": 1}', '"\\ud800"', "'\\ud800' is not a name"),
            ('{"for": 1}', '"for"', "reserved word"),
            ('{"x": null}', "null", "variable 'x' in v.json is null, not a number"),
            ('{"x": true}', "true", "variable 'x' in v.json is true"),
            ('{"x": {"y": 1}}', '{"y": 1}', "variable 'x' in v.json is an object"),
            ('{"x": "5"}', '"5"', "variable 'x' in v.json is the string \"5\""),
            ('{"x": [1, "nan"]}', '[1, "nan"]', "variable 'x' in v.json[1] is the string"),
            ('{"x": [[1], [2, 3]]}', "[[1], [2, 3]]", "variable 'x' in v.json[1] has length 2"),
            (f'{{"x": {10**400}}}', str(10**400), "variable 'x' in v.json is too large for float64"),
            (f'{{"x": {"9" * 5000}}}', "9" * 5000, "too large for float64"),
            (f'{{"x": {"[" * 100_000}', "[", "nested too deeply"),
        ],
    )
    def test_faults(self, text, marked, words):
        with pytest.raises(BindingError) as caught:
            read_variables(text, "v.json")
        error = caught.value
        assert words in error.message
        assert error.hint
        assert error.source == text
        if marked is not None:
            assert text[slice(*error.span)] == marked
        error.report().encode()


class TestDumps:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, "null"),
            (True, "true"),
            (3, "3"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e22, "1e+22"),
            (5e-324, "5e-324"),
            (math.nan, '"NaN"'),
            (math.inf, '"Infinity"'),
            (-math.inf, '"-Infinity"'),
            ("é\n\"'", '"é\\n\\"\'"'),
            ("\udc80é", '"\\udc80é"'),
            ({"b": [1, (2.5, None)], "a": {}}, '{"b":[1,[2.5,null]],"a":{}}'),
            (np.float64(0.1), "0.1"),
            (np.float32(0.1), "0.1"),
            (np.float32("nan"), '"NaN"'),
            (np.float16(0.1), "0.1"),
            (np.float32(1e22), "1e+22"),
            (np.int64(7), "7"),
            (np.bool_(True), "true"),
            (np.array(2.0), "2.0"),
            (np.array([True, False]), "[true,false]"),
            (np.arange(6, dtype=np.int8).reshape(2, 3), "[[0,1,2],[3,4,5]]"),
            (np.array([[0.1, 3]], dtype=np.float32), "[[0.1,3.0]]"),
            (np.array([[0.1, np.nan], [-np.inf, np.inf]]), '[[0.1,"NaN"],["-Infinity","Infinity"]]'),
            (np.zeros(0), "[]"),
            (np.zeros((2, 0)), "[[],[]]"),
            (np.zeros((0, 2)), "[]"),
            (np.zeros((1, 2, 0), dtype=np.float32), "[[[],[]]]"),
            ({"x": [np.float32([0.3])]}, '{"x":[[0.3]]}'),
        ],
    )
    def test_text(self, value, text):
        assert dumps(value) == text

    @pytest.mark.parametrize("value", [object(), {1, 2}])
    def test_other_values(self, value):
        with pytest.raises(TypeError):
            dumps(value)

    @pytest.mark.slow
    @fixed
    @given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.floats(), st.lists))
    def test_plain_values_read_back(self, value):
        text = dumps(value)
        assert "\n" not in text
        assert json.loads(text, parse_constant=pytest.fail) == named(value)

    @fixed
    @given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
    def test_float64_arrays_read_back(self, array):
        text = dumps(array)
        assert json.loads(text, parse_constant=pytest.fail) == named(array.tolist())

    @fixed
    @given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4)))
    def test_float32_arrays_read_back_in_the_shortest_text(self, array):
        text = dumps(array)
        back = np.array(json.loads(text), dtype=object).astype(np.float64).astype(np.float32)
        np.testing.assert_array_equal(back.reshape(array.shape), array, strict=True)
        for number in array[np.isfinite(array)].ravel():
            assert json.loads(dumps(number)) == float(str(number))


def named(value):
    """The value that strict JSON returns for `value`."""
    if isinstance(value, list):
        return [named(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def test_nothing_is_imported_before_it_is_needed():
    program = (
        "import sys\n"
        "import gradcli.io.files, gradcli.io.output\n"
        "from gradcli.io.json_text import dumps\n"
        "from gradcli.io.json_variables import read_variables\n"
        "from gradcli.io.variables import split_binding\n"
        "dumps({'x': [1.5, float('nan')]}), split_binding('x=5'), read_variables('{\"x\": 5}', '-')\n"
        "print({'numpy', 'csv', 'polars'} & set(sys.modules))\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


class TestOutput:
    def entries(self):
        return sorted(os.listdir("."))

    def test_new_file_has_the_usual_permissions(self):
        old = os.umask(0o027)
        try:
            write_atomically("a.txt", lambda stream: stream.write(b"whole"))
        finally:
            os.umask(old)
        assert Path("a.txt").read_bytes() == b"whole"
        assert stat.S_IMODE(os.stat("a.txt").st_mode) == 0o640
        assert self.entries() == ["a.txt"]

    def test_an_earlier_file_keeps_its_permissions(self):
        put("a.txt", "old")
        os.chmod("a.txt", 0o604)
        write_atomically("a.txt", lambda stream: stream.write(b"new"))
        assert Path("a.txt").read_text() == "new"
        assert stat.S_IMODE(os.stat("a.txt").st_mode) == 0o604

    @pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
    def test_a_failure_leaves_the_earlier_file_and_nothing_else(self, kind):
        def fail(stream):
            stream.write(b"half")
            raise kind

        put("a.txt", "old")
        with pytest.raises(kind):
            write_atomically("a.txt", fail)
        assert Path("a.txt").read_text() == "old"
        assert self.entries() == ["a.txt"]

    def test_full_disk(self):
        def fail(_):
            raise OSError(28, "No space left on device")

        with pytest.raises(OutputError, match=r"cannot write 'a\.txt': No space left on device") as caught:
            write_atomically("a.txt", fail)
        assert "free some space" in caught.value.hint
        assert self.entries() == []

    @pytest.mark.parametrize(
        ("path", "hint"),
        [
            ("no/a.txt", "create its directory first"),
            (".", "name a file"),
            ("file/a.txt", "is a file"),
            ("", ""),
        ],
    )
    def test_impossible_paths(self, path, hint):
        put("file", "")
        with pytest.raises(OutputError) as caught:
            write_atomically(path, lambda stream: stream.write(b""))
        assert repr(path) in caught.value.message
        assert hint in caught.value.hint
        assert self.entries() == ["file"]

    def test_a_protected_file_is_not_replaced(self, monkeypatch):
        put("a.txt", "old")
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(OutputError, match="Permission denied"):
            write_atomically("a.txt", lambda stream: stream.write(b"new"))
        assert Path("a.txt").read_text() == "old"

    def test_links_are_followed(self):
        put("real", "old")
        os.symlink("real", "link")
        write_atomically("link", lambda stream: stream.write(b"new"))
        assert Path("link").is_symlink()
        assert Path("real").read_text() == "new"

    def test_a_pipe_is_written_directly(self):
        os.mkfifo("pipe")
        reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            write_atomically("pipe", lambda stream: stream.write(b"through"))
            assert os.read(reader, 100) == b"through"
        finally:
            os.close(reader)
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)

    def test_a_redirected_descriptor_is_written_through(self):
        with open("out", "w+b") as out:
            write_atomically(f"/dev/fd/{out.fileno()}", lambda stream: stream.write(b"through"))
            assert out.read() == b"through"

    def test_a_closed_pipe_stays_a_broken_pipe(self):
        def fail(_):
            raise BrokenPipeError(32, "Broken pipe")

        with pytest.raises(BrokenPipeError):
            write_atomically("/dev/null", fail)


class TestSaveNpz:
    def test_full_precision_under_every_key(self):
        arrays = {
            "value": 0.1,
            "grad/x": np.array([1 / 3, np.nan]),
            "grad/β": np.float32([0.1]),
            "file": np.zeros((2, 0)),
        }
        save_npz("out.npz", arrays)
        with np.load("out.npz") as saved:
            assert list(saved) == list(arrays)
            for key, array in arrays.items():
                np.testing.assert_array_equal(saved[key], np.asarray(array), strict=True)
        assert_array(read("out.npz:grad/x"), arrays["grad/x"])
        assert os.listdir(".") == ["out.npz"]

    @pytest.mark.parametrize("path", ["out", "out.npy", "out.npz.bak", "npz"])
    def test_other_suffixes(self, path):
        with pytest.raises(UsageError, match=r"does not end in \.npz") as caught:
            save_npz(path, {"value": 1.0})
        assert f"{path}.npz" in caught.value.hint
        assert os.listdir(".") == []

    def test_suffix_in_capitals_is_kept(self):
        save_npz("OUT.NPZ", {"value": 1.0})
        assert os.listdir(".") == ["OUT.NPZ"]

    def test_missing_directory(self):
        with pytest.raises(OutputError, match=r"cannot write 'no/out\.npz'"):
            save_npz("no/out.npz", {"value": 1.0})

    def test_the_same_arrays_give_the_same_bytes(self):
        save_npz("a.npz", {"value": 1.0})
        save_npz("b.npz", {"value": 1.0})
        assert Path("a.npz").read_bytes() == Path("b.npz").read_bytes()
