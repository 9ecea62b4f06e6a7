"""Tests tables with columns separated by any number of spaces, such as those of instruments, NIST and Fortran."""

from __future__ import annotations

import pytest

from tests.rows.test_tables import mapped

TABLE = b'  t     volts  run\n\n 0   1.5e0  "a b"\n10   NA     c   \n 20  -2.5   "d ""e"\n'
READ = b't volts run value\n0 1.5e0 "a b" 1.5\n10 NA c \n20 -2.5 "d ""e" 17.5\n'


@pytest.mark.parametrize("block", [16, 2**22])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_one_space_stands_for_any_number(block, end):
    assert mapped(TABLE.replace(b"\n", end), ["t", "volts"], block) == READ.replace(b"\n", end)


def test_a_decimal_comma(run):
    done = run("map", "2*V", "-", "--only", stdin="t  V\n0  1,5\n1  2\n")
    assert done.out.splitlines()[1:] == ["3,0 2,0", "4,0 2,0"]


@pytest.mark.parametrize("text", ["x\n1 2\n3 4\n", "x y\n1.5\n2.5\n", "first name\nAda L\nAlan T\n", "x y\n1 2\n"])
def test_spaces_in_one_column_separate_nothing(text, run):
    title = text.partition("\n")[0]
    assert run("map", "1", "-", stdin=text).out.startswith(f"{title},value\n")


def test_a_fit(run, tmp_path):
    (tmp_path / "line.dat").write_text("  x    y\n  1.0  2.0\n  2.0  4.0\n 10.0 20.0\n", encoding="utf-8")
    done = run("fit", "y ~ a*x", str(tmp_path / "line.dat"), "--json")
    assert done.json["estimates"]["a"]["value"] == pytest.approx(2)
