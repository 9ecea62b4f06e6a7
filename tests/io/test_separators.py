"""Tests recognition of a table's format from its first lines."""

from __future__ import annotations

import pytest

from gradcli.io import separators
from gradcli.io.separators import detected_notation

TOLD = [
    ("", ",."),
    ("\n \n", ",."),
    ("5", ",."),
    ("x\n1\n2\n", ",."),
    ("1,2\n3,4\n", ",."),
    ("1,2\r3,4\r", ",."),
    ("1, 2\n3, 4\n", ",."),
    ("1,\t2\n3,\t4\n", ",."),
    ("a,b\n1,\n,2\n", ",."),
    ("1,2\n3,4,5\n", ",."),
    ("a,b\nx,y z\n", ",."),
    ("id,text\n1,hello there; you\n2,bye now; you\n", ",."),
    ("day,x\n2020-01-01 10:00,5\n2020-01-02 10:00,5\n", ",."),
    ('"x, first" , y\r\n\r\n 1 , "2"\r\n', ",."),
    ("a;b\n1;2\n", ";."),
    ('"a;b";c\n"1";"2"\n', ";."),
    ("name;note, more;v\nA;b, c;1", ";."),
    ("1,5;2,5\n3,5;4,5", ";,"),
    ("t;T\n0;1,5\n1;2\n", ";,"),
    ("t;T\n0;1,500\n1;0,125\n", ";,"),
    ("a\tb\n1.5\t5\n", "\t."),
    ("a\tb\n1,25\t5\n", "\t,"),
    # One thousand, or a bit more than one: refused, and not guessed.
    ("a\tb\n1,234\t5\n", "\t."),
    ("a\tb\n1,234,567.5\t5\n", "\t."),
    ("a;b\n1.234,5;1\n1.234;3\n", ";,"),
    ("a|b\n1|2\n", "|."),
    ("|v|,t\n1,2\n", ",."),
    ("x y\n1 2\n3 4\n", " ."),
    ("  1   2 \n 3 4\n", " ."),
    ("1,5 2,5\n3,5 4,5\n", " ,"),
    # One column has no separator.
    ("x\n1,5\n2,5\n", ";,"),
]


@pytest.mark.all_cases
@pytest.mark.parametrize(("text", "expected"), TOLD)
def test_what_is_told(text, expected):
    notation = detected_notation(text)
    assert notation.separator + ".,"[notation.decimal_comma] == expected


def test_of_some_separators():
    assert detected_notation("x;y\n1;2\n", ["\t"]) == ("\t", False)
    assert detected_notation("x\ty\n1\t2,5\n", ["\t"]) == ("\t", True)


def test_a_line_that_is_cut_tells_nothing():
    assert detected_notation("1;2\n" * 3 + "1,2" * 100_000) == (";", False)


@pytest.mark.parametrize(
    ("cell", "point", "comma"),
    [
        ("1.5", 1.5, None),
        (" 1 ", 1.0, 1.0),
        ("1,5", None, 1.5),
        ("1,2,3", None, None),
        ("-,5e1", None, -5.0),
        ("", None, None),
    ],
)
def test_numbers(cell, point, comma):
    assert (detected_notation("1.5").number(cell), detected_notation("x\n1,5").number(cell)) == (point, comma)


@pytest.mark.parametrize(
    ("table", "size", "separator"),
    [
        (b"x,q\n1,2\n", 0, None),
        (b"\xef\xbb\xbf\n# a, b\r\n \n#\nx,q\n1,2\n", 16, None),
        (b"sep=;\r\nx;q\n", 7, ";"),
        (b'\xef\xbb\xbf"SEP=,"\n# c\nx,q\n', 15, ","),
        (b"sep=x\n1\n", 0, None),
        # The header is among the comments, where names are above numbers or nothing.
        (b"# c\n#n,x\nA,2\n", 4, None),
        (b"# c\n#n,x\n", 4, None),
        (b"#,x\n1,2\n", 0, None),
        (b"# n,x\nn,x\n1,2\n", 6, None),
        (b"#x y\n1 2\n", 0, None),
        (b"# c\n# x y\n1 2\n3 4\n", 6, None),
    ],
)
def test_what_stands_before_the_first_record(table, size, separator):
    assert separators.preamble_of(table) == (size, separator)


def test_no_comment_is_a_header_where_there_is_none():
    assert separators.preamble_of(b"#n,x\n1,2\n", header=False).size == 5
