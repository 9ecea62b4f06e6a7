"""Tests `gradcli map`: value and derivatives of each row of a table."""

from __future__ import annotations

import csv
import io
import json
import os
import threading

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError
from gradcli.evaluation import row_evaluation
from gradcli.rows import row_programs
from gradcli.rows.formats.records import blocks, last_line_end
from gradcli.rows.row_results import RowCollector

TABLE = "run,t\nA,0\nB,2\n"


def test_rows_of_csv(run):
    """The example of the documentation."""
    done = run("map", "a*exp(-k*t)", "a=2", "k=0.25", stdin=TABLE)
    assert (done.status, done.err) == (0, "")
    header, first, second = done.out.splitlines()
    assert header == "run,t,value,d_t,d_a,d_k"
    assert first == "A,0,2.0,-0.5,1.0,-0.0"
    assert second.startswith("B,2,1.2130613194252668,-0.3032653298563167,0.6065306597126334,-2.4261226388505")


def test_fields_are_kept_as_they_are(run):
    done = run("map", "x**2", "--wrt", "x", stdin='id;x;note\r\n007;1.50;"a;b"\r\n')
    assert done.out == 'id;x;note;value;d_x\r\n007;1.50;"a;b";2.25;3.0\r\n'


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ('x,n\n"1,5",a\n', '"1,5",a,"3,0","2,0"\n'),
        ('x,n\n"1,5",a\ninf,b\n', '"1,5",a,"3,0","2,0"\ninf,b,Infinity,"2,0"\n'),
        ('x,n\n"1,5",a\n,b\n', '"1,5",a,"3,0","2,0"\n,b,,\n'),
        ("x;n\n1,5;a\ninf;b\n", "1,5;a;3,0;2,0\ninf;b;Infinity;2,0\n"),
    ],
)
def test_results_have_decimal_commas_as_the_table_has(run, table, rows):
    assert run("map", "x*2", "--decimal-comma", stdin=table).out.partition("\n")[2] == rows


@pytest.mark.parametrize(
    ("table", "values", "why"),
    [
        ("x;n\n1.234,5;a\n1,5;b\n", [";", "3,0;2,0"], "'1.234,5' has marks between its thousands"),
        ("x;n\n1,5;a\n1.234;b\n", ["3,0;2,0", ";"], "'1.234' may be a thousand or little more than one"),
        (
            "x\tn\n1,234\ta\n5\tb\n",
            ["\t", "10.0\t2.0"],
            "'1,234' may be a thousand or little more than one",
        ),
        ("x\tn\n1,234\ta\n0,5\tb\n", ["2,468\t2,0", "1,0\t2,0"], ""),
        ('x,n\n"1,234.5",a\n5,b\n', [",", "10.0,2.0"], "'1,234.5' has marks between its thousands"),
        ("x,n\n1 234.5,a\n5,b\n", [",", "10.0,2.0"], "'1 234.5' has marks between its thousands"),
    ],
)
def test_numbers_that_may_have_marks_between_thousands_are_failing_rows(run, table, values, why):
    done = run("map", "x*2", stdin=table)
    rows = done.out.splitlines()[1:]
    assert all(row.endswith(value) for row, value in zip(rows, values, strict=True))
    assert why in done.err
    assert bool(why) == bool(done.err)


def test_json_lines_are_kept_as_they_are(run):
    done = run("map", "x**2", stdin='{"x": 1.50, "a": "é"}\n\n{"x":2}\n')
    assert done.out == '{"x": 1.50, "a": "é","value":2.25,"d_x":3.0}\n{"x":2,"value":4.0,"d_x":4.0}\n'


@pytest.mark.parametrize("between", [7091432587723106, "7091432587723106.0", "7.091432587723106e15", "true"])
def test_lines_are_read_one_by_one(run, between):
    # As members of a list, the first line would be two objects, and the next two lines one.
    lines = f'{{"x":1}},{between},{{"x":2}}\n{{"x":[{{}}\n{{}}]}}\n{{"x":3}}\n'
    done = run("map", "x", "--no-grad", "--from", "jsonl", stdin=lines)
    assert [json.loads(line)["value"] for line in done.out.splitlines()] == [None, None, None, 3]


def test_no_member_of_a_line_is_hidden_by_a_result(run):
    done = run("map", "x", "--no-grad", "--from", "jsonl", stdin='{"x":1}\n{"x":2,"value":7}\n{"x":3}\n')
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["value"] for line in lines] == [1, None, 3]
    assert json.loads(lines[1]["line"]) == {"x": 2, "value": 7}
    assert "row 2: the line has a member 'value', which a result is called" in done.err


@pytest.mark.parametrize(
    ("line", "value", "why"),
    [
        ('{"x":1,"x":2}', None, "the line has the member 'x' twice"),
        ('{"x" : 1,"x" :1}', None, "the line has the member 'x' twice"),
        ('{"x":1,"\\u0078":2,"t":"a:b"}', None, "the line has the member 'x' twice"),
        ('{"x":1,"t":"a:b","\\":":{"a":1,"a":2}}', 1, ""),
        ('{"x":true}', None, "'x': true is a truth value, and no number"),
        ('{"x":"3"}', None, "'x': '3' is a text, and no number: numbers of JSON have no quotes"),
        ('{"x":" 1e3 "}', None, "'x': ' 1e3 ' is a text"),
        ('{"x":"inf"}', None, "'x': 'inf' is a text"),
        ('{"x":"Infinity"}', "Infinity", ""),
        ('{"x":[1,[true]]}', None, "'x': it is a list of something else than numbers"),
        ('{"x":["1"]}', None, "'x': it is a list of something else than numbers"),
        ('{"x":[1,"NaN"]}', [1, "NaN"], ""),
        ('{"error":1,"x":3}', None, "the line has a member 'error', which says why a line fails"),
        ('{"error":null,"x":3}', None, "the line has a member 'error', which says why a line fails"),
    ],
)
@pytest.mark.parametrize("before", ["", '{"x":7}\n'], ids=["alone", "behind"])
def test_lines_are_read_as_variables_are(run, line, value, why, before):
    done = run("map", "x", "--no-grad", "--from", "jsonl", stdin=f"{before}{line}\n")
    assert json.loads(done.out.splitlines()[-1])["value"] == value
    assert why in done.err
    assert bool(why) == ("failed" in done.err)


def test_a_zero_of_json_has_its_sign(run):
    assert run("map", "1/x", "--no-grad", "--only", "--quiet", stdin='{"x":-0}\n{"x":-0.0}\n{"x":0}\n').out == (
        '{"value":"-Infinity"}\n{"value":"-Infinity"}\n{"value":"Infinity"}\n'
    )


@pytest.mark.parametrize("program", ["x.shape", "zeros(0)"])
def test_results_without_elements(run, program):
    done = run("map", program, "--only", "--no-grad", stdin="x\n1\n2\n")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("error: the results have no elements, and no column is left to write\n")
    assert run("map", program, "--only", "--no-grad", "--to", "jsonl", stdin="x\n1\n").out == '{"value":[]}\n'


def test_a_first_line_of_numbers_is_told(run):
    table = "1\n2\n3\n"
    hint = "its first line holds numbers, and no names: --no-header calls its columns c1, c2 and so on"
    assert hint in run("map", "c1**2", stdin=table).err
    assert f"{hint}, and x=column:c1 takes one" in run("map", "x^2", stdin=table).err
    assert f"{hint}, and x=column:c1 takes one" in run("map", "x^2", stdin="0x1F\n2\n").err
    assert run("map", "x**2", "x=column:c1", "--no-header", "--only", "--no-grad", stdin=table).out == "1.0\n4.0\n9.0\n"
    done = run("map", "2", "--no-grad", stdin=table)
    assert done.err == (
        "warning: the first line of standard input holds numbers, and is read as the names of columns\n"
        "hint: --no-header reads it as a row\n"
    )
    assert run("map", "x", "x=column:1", stdin=table).err == ""
    assert run("map", "x", stdin="x,1\n1,2\n").err == ""


def test_a_comma_that_may_stand_before_a_fraction_is_told(run):
    done = run("map", "x", stdin="x;n\n" + "123,000;1\n" * 2_100)
    assert done.err.startswith("warning: 2,100 of 2,100 rows failed")
    assert "\nhint: --decimal-comma has the comma stand before a fraction; " in done.err
    assert "hint" not in run("map", "x", stdin="x;n\n1,5;a\n1.234;b\n").err


def test_columns_of_a_file_that_is_no_text_are_limited(run, tmp_path):
    table = ",".join(f"c{i}" for i in range(100_001)) + "\n" + "1," * 100_000 + "1\n"
    words = ["map", "c1", "--no-grad", "--output", str(tmp_path / "a.parquet")]
    done = run(*words, stdin=table)
    assert (done.status, os.listdir(tmp_path)) == (1, [])
    assert "the output has 100,001 columns of the table, and a .parquet file has at most 100,000" in done.err
    assert run(*words, "--keep", "c1", stdin=table).status == 0


def test_digits_of_other_scripts_are_no_number_of_json(run):
    done = run("map", "x", "--no-grad", "--to", "jsonl", stdin="x,n\n1,1\u0663\n")
    assert done.out == '{"x":1,"n":"1\u0663","value":1.0}\n'


def test_a_dash_is_standard_output(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("map", "x**2", "--no-grad", "--output", "-", "--to", "jsonl", stdin="x\n1\n")
    assert (done.status, done.out, os.listdir()) == (0, '{"x":1,"value":1.0}\n', [])
    assert "add --output DIRECTORY" in run("map", "x", "--cluster", "local", "--output", "-", stdin="x\n1\n").err


@pytest.mark.parametrize("name", ["idna", "punycode", "unicode_escape", "undefined", "rot13"])
def test_encodings_of_no_file(run, name):
    done = run("map", "x", "--encoding", name, stdin="x\n1\n")
    assert (done.status, done.err.splitlines()[0]) == (2, f"error: there is no encoding '{name}'")


def test_a_file_and_an_output(run, tmp_path):
    table, output = tmp_path / "a=1.csv", tmp_path / "out.jsonl"
    table.write_text(TABLE)
    done = run("map", "t**2", str(table), "--output", str(output), "--only")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert [json.loads(line) for line in output.read_text().splitlines()] == [
        {"value": 0.0, "d_t": 0.0},
        {"value": 4.0, "d_t": 4.0},
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["T**2"], "the table has no column 'T'"),
        (["t**2", "t=1"], "'t' is given a value and is a column of the table"),
        (["t**2", "q=1"], "the program does not read 'q'"),
        (["t**2", "--value", "run"], "the result 'run' is called as a column of the table is"),
        (["t**2", "--keep", "tt"], "the table has no column 'tt'"),
        (["t**2", "--wrt", "q"], "--wrt names 'q', which has no value"),
        (["t**2", "--encoding", "rot13"], "there is no encoding 'rot13'"),
        (["t**2", "--output", "out.xlsx"], "the name 'out.xlsx' does not say what to write"),
        (["t**2", "--output", "out.old.gz"], "the name 'out.old.gz' does not say what to write"),
        (["-"], "the program and the table cannot both be standard input"),
        ([], "there is no program"),
    ],
)
def test_wrong_words(run, words, message):
    done = run("map", *words, "--json", stdin=TABLE)
    assert (done.status, done.out) == (2, "")
    assert done.error["message"] == message


@pytest.mark.parametrize(
    ("order", "message"), [("1000000000", "has a factorial that is no float"), ("100", "more than 2,000,000 steps")]
)
def test_there_are_no_more_results_than_fit(run, order, message):
    done = run("map", "a*b*c*d", "--order", order, stdin="a,b,c,d\n1,2,3,4\n")
    assert (done.status, done.out) == (1, "")
    assert message in done.err


def test_lines_that_end_in_cr_alone_are_no_table(run):
    done = run("map", "t", stdin=TABLE.replace("\n", "\r"))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: the lines of standard input end in CR alone")


@pytest.mark.parametrize("table", [TABLE.encode("utf-16-le"), b"PK\x03\x04\x14\0\x06\0\x08\0 a spreadsheet\r\r"])
def test_what_is_no_text_is_no_table(run, tmp_path, table):
    (tmp_path / "table.csv").write_bytes(table)
    done = run("map", "t", str(tmp_path / "table.csv"), "--json")
    assert (done.status, done.out) == (2, "")
    assert done.error["message"].endswith("table.csv is no text in UTF-8")


def test_a_header_is_as_long_as_it_is(run):
    names = [f"c{i}" for i in range(20_000)]
    done = run("map", "c5*c19999", "--only", stdin=f"{','.join(names)}\n{','.join(['3'] * len(names))}\n")
    assert (done.out, done.err) == ("value,d_c5,d_c19999\n9.0,3.0,3.0\n", "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are those of POSIX")
@pytest.mark.parametrize("name", ["table", "table.csv"])
def test_a_pipe_is_opened_once(run, tmp_path, name):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TABLE,))
    writer.start()
    done = run("map", "t", str(pipe), "--only")
    writer.join()
    assert (done.out, done.err) == ("value,d_t\n0.0,1.0\n2.0,1.0\n", "")


FAILING = "x,n\n4,0\n9,1\n,0\n2024-01-02,1\n1,2,3\n16,0\n"
PROGRAM = "y = [x, 2*x]; y[int(n)]"


def test_rows_that_fail_have_no_results(run):
    done = run("map", PROGRAM, "--wrt", "x", stdin=FAILING.replace("9,1", "9,2"))
    assert done.status == 0
    assert [line.split(",")[-2:] for line in done.out.splitlines()[1:]] == [
        *(["4.0", "1.0"], ["", ""], ["", ""], ["", ""], ["", ""], ["16.0", "1.0"])
    ]
    assert done.err.startswith(
        "warning: 3 of 6 rows failed and are without results; the first is row 2, where x=9.0, n=2.0"
    )


def test_rows_that_fail_are_skipped(run):
    done = run("map", PROGRAM, "--wrt", "x", "--on-error", "skip", stdin=FAILING)
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == ["4", "9", "", "16"]


def test_a_row_that_fails_ends_the_run(run, tmp_path):
    done = run("map", PROGRAM, "--wrt", "x", "--on-error", "fail", stdin=FAILING)
    assert done.status == 1
    assert len(done.out.splitlines()) == 4
    assert done.err.startswith("error: row 4, where n=1.0: 'x': '2024-01-02' is a date")
    output = tmp_path / "out.csv"
    done = run("map", PROGRAM, "--wrt", "x", "--max-errors", "1", "--output", str(output), stdin=FAILING)
    assert (done.status, output.exists()) == (1, False)
    assert done.err.startswith("error: row 5")


def test_each_row_has_its_program(run):
    done = run(
        "map", "--program-column", "f", "--wrt", "x,q", "q=2", stdin='f,x\nx**2,3\n"sin(x)+q",2\nx[,1\n,1\nx**2,4\n'
    )
    rows = [line.split(",")[-3:] for line in done.out.splitlines()[1:]]
    assert rows[0] == ["9.0", "6.0", ""]
    assert rows[1][2] == "1.0"
    assert rows[2:] == [["", "", ""], ["", "", ""], ["16.0", "8.0", ""]]
    assert "1 of 5 rows failed and is without results; the first is row 3" in done.err


def test_results_that_are_not_finite_are_counted(run):
    done = run("map", "log(x)", stdin="x\n1\n0\n0\n")
    assert done.out == "x,value,d_x\n1,0.0,1.0\n0,-Infinity,Infinity\n0,-Infinity,Infinity\n"
    assert done.err == (
        "warning: 2 of 3 rows have results that are not finite; the first is row 2: 'log' gives -inf for operand 0.0\n"
        "  | log(x)\n  | ^^^^^^\n"
    )


def test_a_result_that_is_not_finite_is_explained_as_by_eval(run):
    done = run("map", "sqrt(x - 2)", stdin="x\n1\n3\n")
    assert done.status == 0
    assert done.err == (
        "warning: 1 of 2 rows has results that are not finite; the first is row 1: "
        "'sqrt' gives nan for operand -1.0; write sqrt(x - 2+0j) for complex numbers\n"
        "  | sqrt(x - 2)\n  | ^^^^^^^^^^^\n"
    )


LORENZ = "f(t, s) = [10*(s[1] - s[0]), s[0]*(r - s[2]) - s[1], s[0]*s[1] - 8/3*s[2]]; solve_ivp(f, (0, 40), [1, 1, 1]).y[0, 1]"


@pytest.mark.parametrize("options", [(), ("--no-grad",)])
def test_rows_with_few_right_digits_are_told(run, options):
    """Solutions of chaotic systems had all digits and no warning."""
    done = run("map", LORENZ, *options, stdin="r\n10\n28\n5\n29\n")
    assert done.status == 0
    assert "warning: 2 of 4 rows have results with few right digits; the first is row 2: the value of" in done.err
    assert not run("map", LORENZ, *options, stdin="r\n10\n5\n").err
    counts = json.loads(run("map", LORENZ, "--json", *options, stdin="r\n10\n28\n").err)["rows"]
    assert (counts["inaccurate"], counts["first_inaccurate"]["row"]) == (1, 2)


def test_a_first_line_that_is_no_object(run):
    """The invalid line is answered too, and the column names come from later lines."""
    done = run("map", "t**2*e", "--only", "--from", "jsonl", stdin='1\n{"t":2}\n{"s":2}\n')
    error, found, missing = map(json.loads, done.out.splitlines())
    assert error == {"error": "the line is no JSON object", "line": "1", "value": None, "d_t": None}
    assert found["d_t"] == pytest.approx(4 * 2.718281828459045)
    assert missing == {"value": None, "d_t": None}


def test_rows_that_take_all_they_may_end_the_run(run):
    done = run("map", "while x > 0: x = x + 1\nx", "--max-steps", "50", stdin="x\n" + "1\n" * 100)
    assert done.status == 1
    assert done.err.startswith("error: row 11, where x=1.0: the program takes more than 50 steps")
    assert len(done.out.splitlines()) == 11


@pytest.fixture
def alone(monkeypatch):
    """The rows that are evaluated individually, in order."""
    found = []

    def evaluated(program, inputs, *options):
        found.append(inputs)
        return row_evaluation.evaluated(program, inputs, *options)

    monkeypatch.setattr(row_programs, "evaluated", evaluated)
    return found


@pytest.mark.parametrize(("options", "count"), [((), 11), (("--max-errors", "60"), 61), (("--on-error", "fail"), 1)])
def test_no_row_is_evaluated_behind_too_many_that_take_all_they_may(run, alone, tmp_path, options, count):
    table = tmp_path / "table.csv"
    table.write_text("x,note\n" + "1,a\n" * 100)
    done = run("map", "while x > 0: x = x + 1\nx", str(table), "--max-steps", "50", *options)
    assert (done.status, len(alone)) == (1, count)
    assert done.err.startswith(f"error: row {count}, where x=1.0: the program takes more than 50 steps")
    table.write_text("p,x\n" + "".join(f'"while x > {row}: x = x + 1\nx",1000\n' for row in range(100)))
    done = run("map", "--program-column", "p", str(table), "--no-grad", "--max-steps", "50", *options)
    assert (done.status, len(alone)) == (1, 2 * count)


def test_a_function_of_rows_ends_with_the_first_that_takes_all_it_may(alone):
    endless = gradcli.compile("while x > 0: x = x + 1\nx", max_steps=50)
    with pytest.raises(gradcli.GradcliError, match="row 0: the program takes more than 50 steps"):
        endless.value_and_grad({"x": [1.0] * 100}, rows=True)
    assert len(alone) == 1


@pytest.mark.parametrize("limits", [("--max-seconds", "50"), ("--max-memory", "4GB")])
def test_a_run_with_limits_of_its_own(run, tmp_path, limits):
    tables = [tmp_path / name for name in ("a.csv", "b.csv")]
    for number, table in enumerate(tables):
        table.write_text(f"x\n{number}\n")
    done = run("map", "x**2", *map(str, tables), "--output", f"{tmp_path}/out/", *limits)
    assert done.status == 0, done.err
    written = [(tmp_path / "out" / table.name).read_text() for table in tables]
    assert written == ["x,value,d_x\n0,0.0,0.0\n", "x,value,d_x\n1,1.0,2.0\n"]


def test_several_files(run, tmp_path):
    for name, rows in (("a", "1\n2\n"), ("b", "3\n")):
        (tmp_path / f"{name}.csv").write_text(f"x\n{rows}")
    done = run("map", "x**2", "--no-grad", str(tmp_path))
    assert (done.status, done.out) == (0, "x,value\n1,1.0\n2,4.0\n3,9.0\n")
    output = tmp_path / "deep" / "results"
    done = run("map", "x**2", "--no-grad", str(tmp_path / "*.csv"), "--output", str(output), "--to", "jsonl")
    assert done.status == 0
    assert {path.name: path.read_text() for path in output.iterdir()} == {
        "a.jsonl": '{"x":1,"value":1.0}\n{"x":2,"value":4.0}\n',
        "b.jsonl": '{"x":3,"value":9.0}\n',
    }
    done = run("map", "x**2", str(tmp_path / "a.csv"), "--output", str(tmp_path / "a.csv"))
    assert (done.status, done.err.splitlines()[0]) == (2, f"error: '{tmp_path / 'a.csv'}' is read and would be written")


def test_members_without_a_column_are_named(run):
    table = '{"x":1}\n{"x":2,"note":"a"}\n{"x":3,"y":1,"note":"b"}\n'
    done = run("map", "x", "--no-grad", "--to", "csv", stdin=table)
    assert (done.status, done.out) == (0, "x,value\n1,1.0\n2,2.0\n3,3.0\n")
    assert "leaves out 'note', 'y'\n" in done.err
    counts = run("map", "x", "--to", "csv", "--json", stdin=table).err.splitlines()[-1]
    assert json.loads(counts)["rows"]["lost"] == ["note", "y"]
    for words in (["--to", "jsonl"], ["--to", "csv", "--keep", "x"], ["--to", "csv", "--only"]):
        assert run("map", "x", *words, stdin=table).err == ""
    many = "".join(f'{{"x":{i},"m{i}":0}}\n' for i in range(20))
    assert "'m8' and others" in run("map", "x", "--to", "csv", stdin=many).err


def test_tensors_of_rows(run):
    table = '{"v":[1,2],"s":1}\n{"v":[3,4],"s":2}\n'
    done = run("map", "v*s", "--wrt", "s", "--only", stdin=table)
    assert done.out == '{"value":[1.0,2.0],"d_s":[1.0,2.0]}\n{"value":[6.0,8.0],"d_s":[3.0,4.0]}\n'
    done = run("map", "v*s", "--wrt", "s", "--only", "--to", "csv", stdin=table + '{"v":[1],"s":1}\n')
    assert done.out.splitlines() == ["value_0,value_1,d_s_0,d_s_1", "1.0,2.0,1.0,2.0", "6.0,8.0,3.0,4.0", ",,,"]
    assert "row 3, where s=1.0: the result has shape (1,), and in rows before (2,)" in done.err


def test_second_derivatives_and_other_names(run):
    words = ["x**2*q", "q=column:a b", "--order", "2", "--prefix", "r_", "--value", "f", "--keep", "x"]
    done = run("map", *words, stdin="a b,x\n2,3\n")
    assert done.out == "x,r_f,r_d_x,r_d_q,r_d2_x_x,r_d2_x_q,r_d2_q_q\n3,18.0,12.0,9.0,4.0,6.0,0.0\n"


def test_counts_of_rows_as_json(run):
    done = run("map", "log(x)", "--json", stdin="x\n1\n0\nNA\n2024-01-02\n")
    assert json.loads(done.err)["rows"] == {
        "rows_in": 4,
        "rows_out": 4,
        "missing": 1,
        "failed": 1,
        "nonfinite": 1,
        "lost": [],
        "first_failure": {
            "row": 4,
            "table": "standard input",
            "kind": "evaluation",
            "message": "row 4: 'x': '2024-01-02' is a date",
            "line": None,
            "column": None,
            "hint": None,
        },
    }


def test_texts_in_the_place_of_numbers_are_told(run):
    table = 'x,q\n1,2\nNA,a\n2020-01-02,b\n-,\n3,5 mm\n"1,5",1\n'
    done = run("map", "x*q", "--no-grad", stdin=table)
    assert done.out.splitlines()[1] == "1,2,2.0"
    assert done.err == (
        "warning: 1 of 6 rows failed and is without results; the first is row 3: 'x': '2020-01-02' is a date\n"
        "warning: 3 of 6 rows have a text for a number and no results; the first is row 2: 'q': 'a' is no number\n"
    )
    counts = json.loads(run("map", "x*q", "--no-grad", "--json", stdin=table).err)["rows"]
    assert (counts["missing"], counts["texts"]) == (4, 3)
    assert counts["first_text"] == {"row": 2, "table": "standard input", "name": "q", "text": "a"}
    assert run("map", "x", "--no-grad", stdin="x,q\nNA,5 mm\n--,\n#N/A,a\n2,a\n").err == ""


@pytest.mark.parametrize("lines", [False, True], ids=["csv", "jsonl"])
def test_a_text_in_the_place_of_a_number_is_a_failing_row_where_these_count(run, lines):
    table = "x,q\n1,2\nNA,3\n,4\nabc,5\n6,b\n"
    if lines:
        rows = [{"x": 1, "q": 2}, {"x": None, "q": 3}, {"q": 4}, {"x": "abc", "q": 5}, {"x": 6, "q": "b"}]
        table = "".join(json.dumps(row) + "\n" for row in rows)
    words = ["map", "x*q", "--no-grad", "--only"]
    for option in ("--on-error=fail", "--max-errors=0"):
        done = run(*words, option, stdin=table)
        assert (done.status, done.err) == (1, "error: row 4, where q=5.0: 'x': 'abc' is no number\n")
        assert len(done.out.splitlines()) == (3 if lines else 4)
    done = run(*words, "--max-errors", "1", stdin=table)
    assert (done.status, done.err) == (1, "error: row 5, where x=6.0: 'q': 'b' is no number\n")
    done = run(*words, "--on-error", "skip", "--json", stdin=table)
    counts = json.loads(done.err)["rows"]
    assert (counts["rows_out"], counts["missing"], counts["failed"]) == (3, 2, 2)
    assert run(*words, "--max-errors", "2", stdin=table).status == 0


def test_results_of_rows_with_too_many_fields_stand_under_their_names(run):
    """The last column contains the rest of the row, in quotes."""
    table = 'x,y\n1,2,3\n4,5\n6\n1,"2","3"\n'
    done = run("map", "x*y", "--no-grad", stdin=table)
    rows = [["1", "2,3", ""], ["4", "5", "20.0"], ["6", "", ""], ["1", '"2","3"', ""]]
    assert [*csv.reader(io.StringIO(done.out))] == [["x", "y", "value"], *rows]
    assert "warning: 3 of 4 rows failed and are without results; the first is row 1: it has 3 fields" in done.err
    done = run("map", "x*y", "--no-grad", "--keep", "y", stdin=table)
    assert [*csv.reader(io.StringIO(done.out))][1:] == [row[1:] for row in rows]
    done = run("map", "x*y", "--no-grad", "--to", "jsonl", stdin=table)
    assert json.loads(done.out.splitlines()[0]) == {"x": 1, "y": "2,3", "value": None}


def test_errors_of_rows_hold_nothing_of_their_evaluation():
    def fail(frames):
        if frames:
            fail(frames - 1)
        try:
            raise KeyError
        except KeyError as error:
            raise BindingError("no") from error

    gathered = RowCollector(1, (), 1)
    try:
        fail(3)
    except BindingError as error:
        gathered.fail(0, error)
    found = gathered.failures[0].error
    assert (found.__traceback__, found.__cause__, found.__context__) == (None, None, None)


def test_many_rows_that_fail_take_no_more_memory_than_a_block():
    data = b"1\n" * 2_000_000
    lengths = [len(block) for block in blocks(io.BytesIO(data).read, last_line_end, head=b"1\n" * 100)]
    assert max(lengths) <= 2**20
    assert sum(lengths) == len(data) + 200


def test_a_second_header_among_the_rows_is_told(run, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\nx\n2\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"x": 1}\n{"x": "1 V"}\n', encoding="utf-8")
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl")]
    said = "warning: 1 of 3 rows has a text for a number and no results; the first is row 2: 'x': 'x' is no number\n"
    assert run("map", "x", paths[0]).err == said
    assert "row 2: 'x': '1 V' is no number" in run("map", "x", paths[1]).err


def test_a_text_that_the_program_of_a_row_does_not_read_is_not_told(run):
    table = "f,x,q\nx,1,a\nq,2,3\n"
    assert run("map", "--program-column", "f", "--no-grad", stdin=table).err == ""
    done = run("map", "--program-column", "f", "--no-grad", stdin=table + "q,2,b\n")
    assert "the first is row 3: 'q': 'b' is no number" in done.err


def test_no_column_has_numbers(run):
    done = run("map", "x**2", stdin="x\na\nb\n")
    assert done.status == 0
    assert done.err.startswith("warning: no row has a number in 'x', and none has results\n")


@pytest.mark.parametrize("format", ["jsonl", "parquet", "arrow"])
def test_objects_and_frames_have_one_member_of_a_name(run, format):
    table = "x,n,n\n1,2,3\n"
    done = run("map", "x*2", "--to", format, stdin=table)
    assert (done.status, done.out) == (2, "")
    assert f"several columns 'n', which no .{format} file can have" in done.err
    assert run("map", "x*2", "--to", format, "--keep", "x", stdin=table).status == 0


@pytest.mark.parametrize("command", [["minimize", "x**2"], ["map", "x*t"], ["fit", "t ~ x"]])
@pytest.mark.parametrize(("word", "written"), [("x~-2", "x=-2"), ("x:=3", "x=3"), ("x==3", "x=3"), ("x=", "x=1")])
def test_a_word_like_a_value_is_no_file(run, command, word, written):
    done = run(*command, word)
    assert done.status == 2
    assert done.err == f"error: '{word}' is neither a file nor a value of 'x'\nhint: write {written}\n"


@pytest.mark.parametrize(
    ("table", "column", "row"),
    [
        ("x|n\n3|a\n", "x", "3|a|6.0|2.0"),
        ("x|n\n1,5|a\n", "x", "1,5|a|3,0|2,0"),
        # One column, and two that commas separate.
        ("|v|\n3\n", "|v|", "3,6.0,2.0"),
        ("n,|v|\na,3\n", "|v|", "a,3,6.0,2.0"),
    ],
)
def test_fields_between_bars(run, table, column, row):
    done = run("map", "x*2", f"x=column:{column}", stdin=table)
    assert done.out.splitlines()[1] == row


@pytest.mark.parametrize("table", ['[{"x":1},{"x":2}]', '\ufeff[\n  {"x": 1}\n]\n', "[]"])
def test_an_array_of_json_is_no_table(run, table):
    done = run("map", "x*2", stdin=table)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: standard input is an array of JSON")
    assert "jq -c '.[]'" in done.err


def test_a_table_without_names_is_no_table_of_numbered_names(run):
    done = run("map", "c1*c2", stdin="1,2.5\n3,4\n")
    assert done.status == 2
    assert "--no-header calls its columns c1, c2 and so on" in done.err


def test_results_have_decimal_commas_in_another_format_too(run):
    table = "x\tn\n1,5\ta\n"
    assert run("map", "x*2", "--to", "csv", stdin=table).out == 'x,n,value,d_x\n"1,5",a,"3,0","2,0"\n'
    assert (
        run("map", "x*2", "--to", "tsv", stdin=table.replace("\t", ";")).out == "x\tn\tvalue\td_x\n1,5\ta\t3,0\t2,0\n"
    )


def test_a_number_too_large_for_the_dtype_fails_its_row(run):
    table = "x,y\n1,2\n1e39,3\n-1e39,4\n3,1e400\ninf,5\n"
    outcome = run("map", "x*y", "--dtype", "float32", "--no-grad", stdin=table)
    assert [line.split(",")[2] for line in outcome.out.splitlines()] == ["value", "2.0", "", "", "", "Infinity"]
    assert "'x': 1e+39 is a number too large for float32" in outcome.err


def test_the_variable_of_a_loop_is_no_column_after_it(run):
    outcome = run("map", "s = 0; for k in range(3) { s = s + x }; s + k", "-", stdin="x\n1\n2\n")
    assert outcome.out.splitlines() == ["x,value,d_x", "1,5.0,3.0", "2,8.0,3.0"]
    assert gradcli.compile("s = 0; for k in range(3) { s = s + x }; s + k").inputs == ("x",)


def test_a_name_that_is_also_a_file_is_the_program(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "d.csv").write_text("x\n2\n")
    assert run("map", "x", "d.csv").out == "x,value,d_x\n2,2.0,1.0\n"
    assert "the file 'd.csv' stands where the program should" in run("map", "d.csv", "x").err


def test_a_reduction_of_a_column_is_told_to_be_that_of_a_row(run):
    outcome = run("map", "mean(x)", stdin="x,y\n1,2\n3,4\n")
    assert outcome.out == "x,y,value,d_x\n1,2,1.0,1.0\n3,4,3.0,1.0\n"
    assert "note: mean(x) is that of each row alone" in outcome.err
    assert "gradcli eval 'mean(x)' x=@FILE:x" in outcome.err
    for program, words in (
        ("mean(x)", ["--quiet"]),
        ("sum(w)*x", ["w=[1,2]"]),
        ("max(x, y)", []),
        ("mean([x, y])", []),
    ):
        assert run("map", program, *words, stdin="x,y\n1,2\n3,4\n").err == ""
    assert run("map", "mean(x)", stdin='{"x": [1, 2]}\n').err == ""


@pytest.mark.parametrize(
    "branch", ["if s: s = s*0.5", "s = s and s*0.5", "s = s*0.5 if s else s", "s = s*0.5 if not not s else s"]
)
def test_a_number_that_is_a_condition_keeps_its_value(branch):
    program = gradcli.compile(f"s = x\nfor i in range(3):\n    {branch}\ns")
    x = np.array([0.7, -0.2, 0.0])
    found = program.map({"x": x}, wrt=["x"])
    assert found["value"].tolist() == (x / 8).tolist()
    assert found["d_x"].tolist() == [0.125, 0.125, 1.0]
