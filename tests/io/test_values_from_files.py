"""Tests values from files and standard input: one pass for several columns, format detection, large tables."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import numpy as np
import polars
import pytest

from gradcli import limits
from gradcli.errors import GradcliError
from gradcli.io import by_polars, regular_tables, system, tables, text_lines
from gradcli.io.files import Reference, ValueReadOptions, read, read_all


@pytest.fixture(autouse=True)
def _in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def values(run, *words, stdin=""):
    """The values of the names a, b and so on, in a list."""
    names = [word.partition("=")[0] for word in words if "=" in word]
    outcome = run("eval", f"[{', '.join(names)}]", *words, "--no-grad", "--json", stdin=stdin)
    assert outcome.err == ""
    return outcome.json["value"]


def refused(run, *words, stdin=""):
    outcome = run("eval", "a + b" if any(w.startswith("b=") for w in words) else "a", *words, "--json", stdin=stdin)
    assert (outcome.status, outcome.out) == (2, "")
    return outcome.error


@pytest.mark.parametrize("large", [False, True])
def test_comments_before_a_table_count_as_lines(run, monkeypatch, large):
    if large:
        monkeypatch.setattr(tables, "_LARGE", 32)
    Path("t.csv").write_text("sep=;\n# by me; today\n\nx;y\n1,5;2\n" + "3;4\n" * 9)
    Path("s.csv").write_text("# x y\n1 2\n3 4\n")
    assert values(run, "a=@t.csv:x") == [[1.5, *[3] * 9]]
    assert values(run, "a=@s.csv:y") == [[2, 4]]
    Path("t.csv").write_text("# by me, today\n\nx,y\n1,2\n" + "3,4\n" * 9 + "3,k\n")
    assert "line 14, column 2: 'k' is no" in refused(run, "a=@t.csv:y")["message"]


class TestOnePass:
    def test_a_file_is_opened_once(self, run, monkeypatch):
        Path("t.csv").write_text("x,y,z\n1,2,3\n4,5,6\n")
        opened = []
        reader = system.reader
        monkeypatch.setattr(system, "reader", lambda path: opened.append(path) or reader(path))
        assert values(run, "a=@t.csv:z", "b=[7,8]", "c=@t.csv:x", "d=@t.csv:z") == [[3, 6], [7, 8], [1, 4], [3, 6]]
        assert opened == ["t.csv"]

    def test_the_whole_table_beside_a_column(self):
        Path("t.csv").write_text("x,y\n1,2\n3,4\n")
        whole, y = read_all([Reference("t.csv"), Reference("t.csv:y")], ValueReadOptions())
        np.testing.assert_array_equal(whole, [[1, 2], [3, 4]])
        np.testing.assert_array_equal(y, [2, 4])

    def test_the_same_column_twice_is_two_arrays(self):
        Path("t.csv").write_text("x\n1\n2\n")
        first, second = read_all([Reference("t.csv:x"), Reference("t.csv:x")], ValueReadOptions())
        assert not np.shares_memory(first, second)

    def test_files_of_every_form_for_several_names(self):
        array = np.arange(3.0)
        np.save("a.npy", array)
        np.savez("a.npz", x=array, y=array + 1)
        Path("a.json").write_text("[0, 1, 2]")
        Path("a.jsonl").write_text('{"x": 0}\n{"x": 1}\n{"x": 2}\n')
        polars.DataFrame({"x": array, "y": array + 1}).write_parquet("a.parquet")
        polars.DataFrame({"x": array, "y": array + 1}).write_ipc("a.arrow")
        for asked in ("a.npy", "a.npz:x", "a.json", "a.jsonl:x", "a.parquet:x", "a.arrow:x"):
            first, second = read_all([Reference(asked), Reference(asked)], ValueReadOptions())
            np.testing.assert_array_equal([first, second], [array, array])
            assert not np.shares_memory(first, second)
        for asked in ("a.npz", "a.parquet", "a.arrow"):
            found = read_all([Reference(f"{asked}:y"), Reference(f"{asked}:x")], ValueReadOptions())
            np.testing.assert_array_equal(found, [array + 1, array])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x,y\n1,2\n3,k\n", "line 3, column 2: 'k' is no float64 number"),
            ("x,z\n1,2\n", "it has no column 'y'"),
            ("x,y\n1,2\n3\n", "line 3 has 1 cells where the first line has 2"),
        ],
    )
    def test_an_error_stands_under_the_word_that_it_is_about(self, run, text, message):
        Path("t.csv").write_text(text)
        outcome = run("eval", "a + b", "a=@t.csv:x", "b=@t.csv:y")
        assert outcome.status == 2
        word = "b=@t.csv:y" if "'k'" in message or "'y'" in message else "a=@t.csv:x"
        assert f"error: cannot read 't.csv': {message}\n  | {word}\n  |   ^^^^^^^^" in outcome.err

    @pytest.mark.parametrize("cell", ["0x1F", "0b101", "1.5d3", "-2D-1", "1'000", "5%", "10k", "1e5k"])
    def test_a_number_in_another_notation_is_no_header(self, run, cell):
        Path("t.csv").write_text(f"{cell}\n2\n")
        outcome = run("eval", "sum(x)", "x=@t.csv")
        assert outcome.status == 2
        assert "line 1, column 1: " in outcome.err
        # An explicit request for the column works.
        assert run("eval", "sum(x)", f"x=@t.csv:{cell}", "--no-grad", "--json").json["value"] == 2.0

    @pytest.mark.parametrize("cell", ["2theta", "2020-01-01", "2020.01.31", "1st", "d3", "10 mV"])
    def test_a_name_may_begin_with_a_number(self, run, cell):
        Path("t.csv").write_text(f"{cell}\n2\n")
        assert run("eval", "sum(x)", "x=@t.csv", "--no-grad", "--json").json["value"] == 2.0

    def test_a_number_in_another_notation_is_a_name_beside_words(self, run):
        Path("t.csv").write_text("count,mean,25%,0xFF\n3,1.5,1.25,7\n")
        assert run("eval", "a + b", "a=@t.csv:25%", "b=@t.csv:0xFF", "--no-grad", "--json").json["value"] == [8.25]

    def test_each_value_has_the_limit_of_elements_and_lines_are_charged_once(self, run):
        Path("t.csv").write_text("x,y\n" + "1,2\n" * 1000)
        words = ["eval", "sum(a*b)", "a=@t.csv:x", "b=@t.csv:y", "--no-grad"]
        assert run(*words, "--max-elements", "5000").status == 0
        assert "it holds 1000 elements, more than the limit of 999" in run(*words, "--max-elements", "999").err
        assert run(*words, "--max-steps", "700").status == 0
        assert run(*words, "--max-steps", "600").status == 1


class TestStandardInput:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("1,2\n3,4\n", [[1, 2], [3, 4]]),
            ("x\n1\n2\n", [1, 2]),
            ("\ufeffx\n1\n2\n", [1, 2]),
            ("1\t2\n3\t4\n", [[1, 2], [3, 4]]),
            ("1 2\n3 4", [[1, 2], [3, 4]]),
            (" [1, 2.5]\n", [1, 2.5]),
            ("2.5\n", 2.5),
            ("-1e3", -1000),
            ('{"x": 1}\n{"x": 2}\n', [1, 2]),
            ("1,5;2\n3,5;4\n", [[1.5, 2], [3.5, 4]]),
        ],
    )
    def test_the_form_is_told(self, run, text, expected):
        assert values(run, "a=@-", stdin=text) == [expected]

    def test_several_columns(self, run):
        assert values(run, "a=@-:y", "b=[3]", "c=@-:x", "--from", "csv", stdin="x,y\n1,2\n") == [[2], [3], [1]]
        lines = '{"x":1,"y":2,"z":[1,2]}\n{"x":null,"z":[3,4]}\n'
        assert values(run, "a=@-:y", "b=@-:x", stdin=lines) == [[2, "NaN"], [1, "NaN"]]
        assert values(run, "a=@-:z", stdin=lines) == [[[1, 2], [3, 4]]]

    def test_the_form_is_said(self, run):
        assert values(run, "a=@-", "--from", "csv", stdin="2.5\n") == [[2.5]]
        assert values(run, "a=@-:2", "--from", "tsv", stdin="1,2\t3\n") == [[3]]

    def test_arrays_of_numpy(self):
        stream = io.BytesIO()
        np.save(stream, np.eye(2))
        (found,) = read_all([Reference("-")], ValueReadOptions(standard_input=lambda: io.BytesIO(stream.getvalue())))
        np.testing.assert_array_equal(found, np.eye(2))

    @pytest.mark.parametrize("command", ["check", "graph", "diff"])
    def test_of_every_command(self, run, command):
        outcome = run(command, "sum(a**2)", "a=@-", stdin="[3]")
        assert (outcome.status, outcome.err) == (0, "")

    def test_in_a_process_of_its_own(self, run):
        assert values(run, "a=@-", "--max-seconds", "50", stdin="[1,2]") == [[1, 2]]

    def test_a_name_without_a_suffix(self, run):
        Path("data").write_text("x;y\n1;2\n")
        assert values(run, "a=@data:y", "--from", "csv") == [[2]]

    @pytest.mark.all_cases
    @pytest.mark.parametrize(
        ("words", "stdin", "message"),
        [
            (["--from", "csv"], "", "nothing is read of which --from says the form"),
            (["a=@t.csv", "--from", "csv"], "", "nothing is read of which --from says the form"),
            (["a=@-", "--from", "cvs"], "1", "there is no form 'cvs' to read"),
            (["a=@-", "--vars", "-"], "{}", "--vars and the value of 'a' cannot both be standard input"),
            (["a=@-"], "", "cannot read standard input: it is empty"),
            (["a=@-:z"], "x,y\n1,2\n", "cannot read standard input: it has no column 'z'"),
            (["a=@-"], "PAR1 and more", "cannot read standard input: it is a .parquet file"),
            (["a=@-"], "1\nx\n", "cannot read standard input: line 2, column 1: 'x' is no float64 number"),
            (["a=@-"], "1 2\n3\n", "cannot read standard input: line 1, column 1: '1 2' is no float64 number"),
            (["a=@-"], "1\0002\n", "cannot read standard input: line 1, column 1: '1\\x002' is no float64 number"),
            (["a=@-"], "[1,2", "standard input is not JSON: expecting ',' delimiter"),
            (["a=@-"], '{"x":1,"y":2}\n', "cannot read standard input: it holds 2 names, and none was chosen"),
            (["a=@-:x"], '{"x":1}\n[2]\n', "cannot read standard input: line 2 is no object"),
            (["a=@-:x"], '{"x":1}\n{"x":[2]}\n', "the list of 'x'[1] is a list where the items beside it are numbers"),
            (["a=@-:z"], '{"x":1}\n', "cannot read standard input: it has no name 'z'"),
            (["a=@-:x", "b=@-:y"], '{"x":1,"y":"k"}\n', "the list of 'y'[0] is the string \"k\", not a number"),
        ],
    )
    def test_what_is_refused(self, run, words, stdin, message):
        Path("t.csv").write_text("1\n")
        error = refused(run, *words, stdin=stdin)
        assert message in error["message"]
        assert error["hint"]

    def test_the_program_is_standard_input_already(self, run):
        outcome = run("eval", "-", "a=@-", stdin="a**2")
        assert outcome.status == 2
        assert "error: the program and the value of 'a' cannot both be standard input" in outcome.err

    def test_beside_a_table_of_rows(self, run):
        Path("t.csv").write_text("x\n1\n2\n")
        outcome = run("map", "k*x", "t.csv", "k=@-", "--no-grad", stdin="3")
        assert (outcome.out, outcome.err) == ("x,value\n1,3.0\n2,6.0\n", "")
        outcome = run("map", "k*x", "k=@-", stdin="3")
        assert "error: the table and the value of 'k' cannot both be standard input" in outcome.err

    def test_a_closed_one(self):
        from gradcli.cli.main import main
        from gradcli.cli.process.environment import Environment

        err = io.StringIO()
        assert main(["eval", "a", "a=@-"], Environment(None, io.StringIO(), err, {})) == 2
        assert "error: standard input is closed, and 'a' is read from it" in err.getvalue()


class TestForms:
    def test_separators_and_decimal_commas(self, run):
        Path("t.csv").write_text('Zeit;"T; °C"\r\n0;1,5\r\n1;\r\n2;-3e2\r\n')
        assert values(run, "a=@t.csv:T; °C", "b=@t.csv:Zeit") == [[1.5, "NaN", -300], [0, 1, 2]]
        Path("t.csv").write_text("  x   y \n 1   2 \n\n 3  4,5\n")
        assert values(run, "a=@t.csv:y") == [[2, 4.5]]
        Path("t.tsv").write_text("1,5\t2\n")
        assert values(run, "a=@t.tsv") == [[[1.5, 2]]]

    def test_a_point_among_decimal_commas_is_no_number(self, run):
        Path("t.csv").write_text("x;y\n1,5;2,5\n1,5;2\n1.000;2\n")
        assert "line 4, column 1: '1.000' is no float64 number" in refused(run, "a=@t.csv")["message"]

    def test_digits_of_decimal_commas_are_those_that_are_written(self, run):
        Path("t.csv").write_text("x;y\n0,1;2\n")
        outcome = run("eval", "a[0]/3", "a=@t.csv:x", "--digits", "30", "--no-grad", "--json")
        assert outcome.json["value"] == "0.0333333333333333333333333333333"

    def test_lines_of_json(self, run):
        Path("t.jsonl").write_text('{"x": 1, "name": "k"}\n\n{"x": "NaN"}\r\n{"name": "l", "w": 5}\n')
        assert values(run, "a=@t.jsonl:x", "b=@t.jsonl:w") == [[1, "NaN", "NaN"], ["NaN", "NaN", 5]]

    @pytest.mark.parametrize("name", ["t.arrow", "t.feather"])
    def test_arrow(self, run, name):
        polars.DataFrame({"x": [1, None, 3], "s": ["a", "b", "c"]}).write_ipc(name)
        assert values(run, f"a=@{name}:x") == [[1, "NaN", 3]]
        assert "column 's' holds String, not numbers" in refused(run, f"a=@{name}:s")["message"]
        Path(name).write_bytes(b"ARROW1 and more")
        assert "it is damaged" in refused(run, f"a=@{name}:s")["message"]


class TestLargeTables:
    """The same numbers, charges and errors with and without Polars, for any file."""

    @pytest.fixture(autouse=True)
    def _small_blocks(self, monkeypatch):
        monkeypatch.setattr(tables, "_LARGE", 60)
        monkeypatch.setattr(tables, "_BLOCK", 40)
        monkeypatch.setattr(tables, "_ROWS", 3)
        monkeypatch.setattr(text_lines, "_CHARACTERS", 50)

    def result(self, references):
        try:
            with limits.within(100_000, 1_000_000):
                found = read_all([Reference(r, r) for r in references], ValueReadOptions())
                return limits.budget().eighths, [(a.shape, a.tobytes(), a.flags.carray) for a in found]
        except GradcliError as error:
            return error.message, error.hint, error.source

    def cell(self, generator, decimal_comma):
        kind = generator.random()
        if kind < 0.9:
            text = repr(generator.gauss(0, 1) * 10.0 ** generator.choice([0, 1, 100, -300]))
            return text.replace(".", ",") if decimal_comma else text
        if kind < 0.995:
            return generator.choice(["", "", "nan", " 5", "7 ", "1e5", "-0", "05", "+1"])
        odd = [
            "inf",
            "1_0",
            "k",
            '"4"',
            "1e400",
            '"a"b',
            "\xa05",
            "1.5",
            "1,5",
            "\ufeff1",
            '"',
            "\r",
            "\n",
            " ",
            "\0",
            "٣",
        ]
        return generator.choice(odd)

    def table(self, generator):
        width, end = generator.randrange(1, 5), generator.choice(["\n", "\n", "\r\n"])
        separator = generator.choice([",", ",", ";", "\t", " "])
        commas = separator != "," and generator.random() < 0.3
        rows = [[self.cell(generator, commas) for _ in range(width)] for _ in range(generator.randrange(2, 25))]
        if generator.random() < 0.04:
            generator.choice(rows).append("1")
        if generator.random() < 0.04:
            generator.choice(rows).pop()
        if generator.random() < 0.8:
            rows.insert(0, [generator.choice(["a", "a", "a", '"a"', " a"]) for _ in range(width - 1)] + ["é"])
        text = end.join(map(separator.join, rows)) + end * generator.choice([0, 1, 1, 1, 2])
        content = (text.replace(end, end * 2, 1) if generator.random() < 0.03 else text).encode()
        return b"\xef\xbb\xbf" * (generator.random() < 0.1) + content.replace(b"5", b"\xff", generator.random() < 0.02)

    def test_with_polars_and_without(self, monkeypatch):
        generator = random.Random(0)
        fast = []
        columns = regular_tables.columns
        monkeypatch.setattr(regular_tables, "columns", lambda *a: (fast.append(columns(*a)), fast[-1])[1])
        right = 0
        for _ in range(300):
            Path("t.csv").write_bytes(self.table(generator))
            asked = [generator.choice(["t.csv", "t.csv:é", "t.csv:é", "t.csv:1"]) for _ in range(2)]
            with_polars = self.result(asked)
            with monkeypatch.context() as patch:
                patch.setattr(by_polars, "installed", lambda: None)
                assert self.result(asked) == with_polars
            right += isinstance(with_polars[0], int)
        assert right > 50
        assert sum(f is not None for f in fast) > 200
        assert sum(f is None for f in fast) > 20

    def test_the_first_line_that_is_out_of_the_ordinary(self):
        lines = ["x,y"] + ["1,2"] * 100
        lines[90] = "3,k"
        Path("t.csv").write_text("\n".join(lines))
        with pytest.raises(GradcliError, match="line 91, column 2: 'k'"):
            read("t.csv")
        assert read("t.csv:x")[89] == 3

    def test_limits(self):
        Path("t.csv").write_text("x,y\n" + "1,2\n" * 100)
        with pytest.raises(GradcliError, match="more than the limit of 99"):
            read("t.csv:x", max_elements=99)
        with limits.within(50), pytest.raises(GradcliError, match="more than 50 steps"):
            read("t.csv:x")

    def test_a_fast_pass_reads_what_is_written(self):
        table = np.random.default_rng(0).normal(size=(500, 3)) * 10.0 ** np.arange(-200, 300, 1)[:, None]
        Path("t.csv").write_text("\n".join(",".join(map(repr, row)) for row in table.tolist()) + "\n")
        np.testing.assert_array_equal(read("t.csv"), table)


def test_json_of_results_can_be_read_again(run):
    """The printed JSON of a column is valid input of the next command."""
    printed = run("eval", "a*2", "a=@-:x", "--no-grad", "--json", stdin="x\n1\n\n0.1\n").json["value"]
    assert values(run, "a=@-", stdin=json.dumps(printed)) == [[2, 0.2]]
