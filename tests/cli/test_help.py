"""Tests the help: pages that fit a screen, short options, `gradcli help`, and what rounds and shortens results."""

from __future__ import annotations

import re

import pytest

from gradcli.cli.main import COMMANDS

every_command = pytest.mark.parametrize("command", COMMANDS)


def page(run, *words, columns=80):
    done = run(*words, variables={"COLUMNS": str(columns)})
    assert (done.status, done.err) == (0, "")
    return done.out.splitlines()


class TestPages:
    @pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
    def test_the_first_screen(self, run, words):
        lines = page(run, *words)
        # With the line of the next prompt below, 24.
        assert len(lines) <= 23
        assert max(map(len, lines)) < 80
        assert "  gradcli eval 'log(x**q)' x=5 q=3  a value and its derivatives" in lines
        assert sum(line.startswith("  gradcli ") for line in lines) == 3

    def test_commands_stand_in_the_order_of_use(self, run):
        rows = [line.split()[0] for line in page(run) if re.match("  [a-z]+  ", line)]
        assert rows == [
            "eval", "diff", "plot", "solve", "fit", "minimize", "propagate", "series", "map", "ode", "check", "graph",
            "explain", "shell",
        ]  # fmt: skip

    @pytest.mark.all_cases
    @every_command
    def test_a_command_fits_a_screen(self, run, command):
        lines = page(run, command, "-h")
        assert len(lines) <= 24
        assert max(map(len, lines)) < 80
        assert sum(line.startswith(("  gradcli ", "  echo ")) for line in lines) == 3
        assert COMMANDS[command] in " ".join(line.strip() for line in lines)

    def test_h_behind_a_program_is_no_program(self, run):
        assert run("eval", "x**2", "x=1", "-h").out == run("eval", "--help").out
        assert run("eval", "-h", "h=2", "--bare").out == "-2.0\n"

    @pytest.mark.all_cases
    @every_command
    def test_nothing_is_cut_at_40_columns(self, run, command):
        for option in ("--help", "--help-all"):
            wide = page(run, command, option, columns=200)
            narrow = page(run, command, option, columns=40)
            assert " ".join(" ".join(narrow).split()) == " ".join(" ".join(wide).split())
            assert "".join(narrow).count("…") == "".join(wide).count("…")
            # What can be copied is not wrapped, and names of options and of their values are not cut.
            long = [line for line in narrow if len(line) > 40 and " " in line.strip()]
            assert all(re.match(r" *(gradcli|echo|-|[A-Z|]+ )", line) for line in long)

    def test_all_options_are_explained_and_the_limits_last(self, run):
        lines = page(run, "eval", "--help-all")
        assert lines == page(run, "help", "eval")
        titles = [line for line in lines if re.fullmatch(r"[A-Z][a-z]+", line)]
        assert titles[-1] == "Limits"
        assert lines[-1].startswith("  --max-memory") or "--max-memory" in "\n".join(lines[-8:])


class TestTopics:
    @pytest.mark.parametrize(
        ("topic", "text"),
        [
            ("eval", "--require-digits"), ("order", "All derivatives up to order N."), ("log", "natural logarithm"),
            ("for", "for i in range"), ("standard deviation", "std"),
        ],
    )  # fmt: skip
    def test_a_topic(self, run, topic, text):
        assert text in run("help", topic).out

    @pytest.mark.parametrize(
        ("word", "text"),
        [
            ("uncertainty", "gradcli propagate  The uncertainty"), ("roots", "gradcli solve  The roots"),
            ("csv", "--from csv"), ("latex", "--to text|latex"), ("gpu", "--device"), ("limits", "--max-seconds"),
            ("quoting", "gradcli eval  Quoting the program"), ("MCMC", "gradcli sample"), ("table", "gradcli map"),
        ],
    )  # fmt: skip
    def test_a_word_that_is_mentioned(self, run, word, text):
        assert text in run("help", word).out

    def test_a_function_follows_the_commands(self, run):
        assert re.search(r"\n\nroots\(p\) ", run("help", "roots").out)

    @pytest.mark.parametrize("command", ["eval", "diff", "plot", "series", "check", "graph", "explain"])
    def test_a_command_without_a_program_shows_its_own_example(self, run, command):
        done = run(command)
        assert done.status == 2
        assert done.err.startswith(f"error: there is no program\nhint: gradcli {command} '")

    def test_what_is_no_topic(self, run):
        assert run("help", "zzzz").status == 2
        assert "gradcli help order explains it" in run("help", "--order").err


class TestShortOptions:
    @pytest.mark.all_cases
    @every_command
    def test_every_command_has_them(self, run, command):
        text = "\n".join(page(run, command, "--help-all"))
        for short, name in zip("onwjqf", ("output", "order", "wrt", "json", "quiet", "file"), strict=True):
            assert not re.search(rf"^  --{name}\b", text, re.MULTILINE), f"-{short}, --{name}"

    @pytest.mark.parametrize(
        "words",
        [
            ["x**3*y", "x=2", "y=1", "-n", "2", "-w", "x", "-j"], ["-n", "2", "-w", "x", "-j", "x**3*y", "x=2", "y=1"],
            ["-j", "--wrt", "x", "-n", "2", "--", "x**3*y", "x=2", "y=1"],
        ],
    )  # fmt: skip
    def test_they_mean_the_long_ones(self, run, words):
        assert (
            run("eval", *words).json == run("eval", "x**3*y", "x=2", "y=1", "--order", "2", "--wrt", "x", "--json").json
        )

    @pytest.mark.parametrize("name", "onwjqf")
    def test_a_program_may_be_called_as_one(self, run, name):
        assert run("eval", f"-{name}", f"{name}=3", "--bare").out == "-3.0\n"
        assert run("eval", f"-{name}", f"{name}=3", "--wrt", name).out == run("eval", f"0-{name}", f"{name}=3").out

    @pytest.mark.parametrize(
        "words",
        [
            ["eval", "y = x**2; y", "x=2", "-j"], ["eval", "y=x**2", "x=2", "-j"], ["eval", "-j", "y=x; y", "x=2"],
            ["eval", "x == 2", "x=2", "-j"], ["eval", "f(t)=t**2; f(x)", "x=2", "-n", "2", "-j"],
            ["solve", "x**3 = 2", "-j"], ["ode", "x' = -x", "x=1", "t=0..1", "-j"],
            ["ode", "y'' = -9.81", "y=1", "y'=0", "t=0..1", "-j"], ["minimize", "y=x**2; y", "x=1", "-j"],
        ],
    )  # fmt: skip
    def test_a_program_may_have_an_equals_sign(self, run, words):
        done = run(*words)
        assert (done.status, done.err) == (0, "")
        assert done.json["schema"] == "gradcli/1"

    @pytest.mark.parametrize("value", ["3", "[1,2]", "linspace(0,1,5)", "randn(3, seed=0)", "1e-3", "-pi/2", "@a.csv"])
    def test_before_a_value_alone_they_are_the_program(self, run, tmp_path, monkeypatch, value):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.csv").write_text("1\n2\n", encoding="utf-8")
        assert run("eval", "-q", f"q={value}", "--no-grad").out == run("eval", "(-q)", f"q={value}", "--no-grad").out

    def test_files(self, run, tmp_path):
        (tmp_path / "p.txt").write_text("x**2")
        assert run("eval", "-f", str(tmp_path / "p.txt"), "x=3", "--bare").out == "9.0\n"
        assert run("plot", "x", "x=0..1", "-o", str(tmp_path / "p.svg")).status == 0
        assert (tmp_path / "p.svg").exists()

    def test_given_twice(self, run):
        assert "--order is given twice" in run("eval", "x", "x=1", "-n", "2", "--order", "2").err

    def test_version(self, run):
        assert run("-V").out == run("--version").out

    def test_an_error_is_json_too(self, run):
        assert run("eval", "lgo(x)", "x=1", "-j").err.startswith('{"error"')


class TestNumbers:
    def test_precision_rounds_tables_alone(self, run):
        assert run("eval", "x/3", "x=1", "--precision", "3").out == "value  0.333\n\nby  gradient\nx   0.333\n"
        assert run("eval", "[x/3, 1e10*x]", "x=1", "--no-grad", "--precision", "2").out == "value  [0.33, 1e+10]\n"
        for other in (["--json"], ["--digits", "20"]):
            assert run("eval", "x/3", "x=1", "--precision", "3", *other).status == 2

    def test_bare(self, run):
        assert run("eval", "x/3", "x=1", "--bare").out == "0.3333333333333333\n"
        assert run("eval", "[[x, 2], [3, x/4]]", "x=1", "--bare").out == "1.0\n2.0\n3.0\n0.25\n"
        assert run("eval", "x", "x=[]", "--bare").out == ""
        assert "--bare and --order contradict" in run("eval", "x", "x=1", "--bare", "--order", "2").err
        assert run("eval", "x", "x=1", "--bare", "--json").status == 2
