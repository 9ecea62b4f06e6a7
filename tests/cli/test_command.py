"""Tests that a command, an output language and a drawing format are added by a file and a list entry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated

import pytest

import gradcli
from gradcli.cli import main
from gradcli.cli import options as opt
from gradcli.cli.command import Command
from gradcli.cli.commands import diff, graph
from gradcli.errors import ExitStatus
from gradcli.formulas.writing.documents import separate_formulas


class ShoutOptions(opt.Options):
    words: opt.Words = None
    times: Annotated[int, opt.Option("--times", metavar="N", min=1, max=9, help="How often.")] = 1
    share: Annotated[float | None, opt.Option("--share", metavar="P", help="How much.")] = None
    to: Annotated[list[str] | None, opt.Option("--to", metavar="NAME", help="To whom.")] = None


def shout(options: ShoutOptions, environment):
    environment.write(f"{options.words} {options.times} {options.traceback} {options.to}\n")
    return ExitStatus.FAILURE


@pytest.fixture
def with_shout(monkeypatch):
    module = ModuleType("gradcli.cli.commands.shout")
    module.COMMAND = Command(ShoutOptions, shout, "Examples:\n\n  gradcli shout x\n")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(main.COMMANDS, "shout", "Say it loud.")


@pytest.mark.usefixtures("with_shout")
class TestAnotherCommand:
    def test_it_is_given_its_options_and_says_how_it_went(self, run):
        done = run("shout", "-x", "y=1", "--times", "3")
        assert (done.status, done.err) == (1, "")
        assert done.out == "['-x', 'y=1'] 3 False None\n"
        assert run("shout").out == "None 1 False None\n"

    def test_what_every_command_has_it_has_too(self, run):
        assert run("shout", "--traceback").out == "None 1 True None\n"

    def test_its_options_are_checked(self, run):
        assert "did you mean --times?" in run("shout", "--tims", "3").err
        assert "'x' is not a whole number in digits" in run("shout", "--times", "x").err
        assert "did you mean 'shout'?" in run("shot").err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--times"], "Option '--times' requires an argument"),
            (["--times", "1", "--times=1"], "--times is given twice"),
            (["--times", "0"], "Invalid value for '--times': 0 is not in the range 1<=x<=9"),
            (["--times=10"], "Invalid value for '--times': 10 is not in the range 1<=x<=9"),
            (["--times="], "Invalid value for '--times': '' is not a whole number in digits"),
            (["--share", "1,5"], "Invalid value for '--share': '1,5' is not a number"),
            (["--traceback=1"], "Option '--traceback' does not take a value"),
            (["--help=1"], "Option '--help' does not take a value"),
            (["x", "-t"], "there is no option -t"),
        ],
    )
    def test_an_option_that_is_wrong(self, run, words, message):
        done = run("shout", *words)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith(f"error: {message}\n")

    def test_options_may_stand_anywhere_and_repeat_where_they_are_lists(self, run):
        assert run("shout", "--to", "a", "x", "--to=--b", "--", "-y").out == "['x', '-y'] 1 False ['a', '--b']\n"
        assert run("shout", "--traceback", "--traceback", "--times", " 2").out == "None 2 True None\n"
        assert run("shout", "--times", "x", "--help").status == 0

    def test_its_help(self, run):
        assert "Say it loud." in run("--help").out
        page = run("shout", "--help-all").out
        for text in ("Say it loud.", "gradcli shout x", "How often.", "Default: 1.", "PROGRAM [NAME=VALUE]..."):
            assert text in page


def test_brackets_are_no_styles_of_a_help(run):
    assert "extra gradcli[sympy]." in " ".join(run("diff", "--help-all").out.split())


def test_a_command_loads_no_other():
    code = (
        "import sys; from gradcli.cli import main; from gradcli.cli.process.environment import Environment\n"
        "main.main(sys.argv[1:], Environment.of_process())\n"
        "print(*(name for name in main.COMMANDS if f'gradcli.cli.commands.{name}' in sys.modules), file=sys.stderr)"
    )
    for words, loaded in ((["--help"], ""), (["eval", "x", "x=1"], "eval"), (["diff", "--help"], "diff")):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert done.stdout
        assert done.stderr == loaded + "\n"


# Modules that take a hundredth of a short run or more, and that a number and its derivatives do not need.
SLOW_TO_IMPORT = {
    "dataclasses",
    "importlib.util",
    "inspect",
    "json",
    "numpy",
    "threading",
    "typing",
    "weakref",
}


@pytest.mark.parametrize("options", [[], ["--json"], ["--no-grad"]])
def test_a_short_run_imports_little(options):
    # Without the site module, which imports what the environment of the tests wants.
    code = (
        "import sys; sys.path[:0] = sys.argv.pop(1).split(); before = {*sys.modules}\n"
        "from gradcli.cli import main; from gradcli.cli.process.environment import Environment\n"
        "main.main(sys.argv[1:], Environment.of_process())\n"
        f"print(*sorted({SLOW_TO_IMPORT} & ({{*sys.modules}} - before)), file=sys.stderr)"
    )
    words = [sys.executable, "-S", "-c", code, str(Path(gradcli.__file__).parents[1])]
    done = subprocess.run(
        [*words, "eval", "log(x**q)", "x=5", "q=3", *options], capture_output=True, text=True, check=True
    )
    assert "4.828313737302301" in done.stdout
    assert done.stderr == "\n"


def test_words_that_are_too_many_or_too_few(run):
    assert "Got unexpected extra argument(s) (exp sin)" in run("ops", "log", "exp", "sin").err
    assert "there is no option -x" in run("ops", "-x").err
    assert "there is no option -x" in run("-x", "eval", "1").err
    assert run("--version", "eval", "1").out.startswith("gradcli ")


@pytest.mark.parametrize("words", [["eval", "log(x**q)", "x=5", "q=3"], ["diff", "x**2"]])
def test_a_plain_run_loads_no_module_for_what_it_does_not_do(words):
    code = (
        "import sys; from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment;"
        "main(sys.argv[1:], Environment(None, None, None, {}));"
        "print(*{'typer', 'inspect', 'dataclasses', 'json', 'traceback', 'subprocess', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize("words", [["eval", "log(x**q)", "x=5", "q=3"], ["diff", "log(x**q)"]])
def test_a_plain_run_compiles_no_annotations(words):
    code = (
        "import sys, typing; typing.ForwardRef = None; from gradcli.cli.main import main;"
        "from gradcli.cli.process.environment import Environment; main(sys.argv[1:], Environment(None, None, None, {}))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_without_limits_loads_nothing_for_them():
    code = (
        "import sys; from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment;"
        "main(['eval', 'x**2', 'x=3'], Environment(None, None, None, {}));"
        "sys.exit(not {'gradcli.subprocess_calls', 'gradcli.cli.process.child_process', 'numpy'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_another_language(run, monkeypatch):
    module = ModuleType("gradcli.formulas.languages.loud")
    text = diff.languages.find("text")
    module.LANGUAGE = text._replace(name="loud", document=lambda formulas: separate_formulas(formulas, lambda _: "X!"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(diff.languages, "NAMES", (*diff.languages.NAMES, "loud"))
    assert run("diff", "x*y", "--to", "loud").out == "x: X!\ny: X!\n"
    assert run("diff", "x*y", "--to", "loud", "--json").json["derivatives"] == {"x": "X!", "y": "X!"}
    assert run("diff", "x*y", "--to", "lod").err.endswith("hint: did you mean 'loud'?\n")


def test_another_drawing(run, monkeypatch):
    module = ModuleType("gradcli.cli.rendering.drawing.boxes")
    module.draw = lambda picture, environment: environment.write(f"{[label.title for label in picture.labels()]}\n")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(graph.FORMATS, "titles", "boxes")
    assert run("graph", "x*y", "x=1", "y=2", "--to", "titles").out == "['x', 'y', 'multiply']\n"
    assert run("graph", "x*y", "x=1", "y=2", "--to", "title").err.endswith("hint: did you mean 'titles'?\n")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["minimize", "--", "(x-3)**2", "x=0", "--bounds", "x=0:2"], "--bounds"),
        (["eval", "--", "-x", "x=3", "--order=2"], "--order=2"),
        (["eval", "x", "x=3", "--", "--json"], "--json"),
    ],
)
def test_an_option_behind_the_end_of_options_is_refused(run, words, option):
    outcome = run(*words)
    assert outcome.status == 2
    assert f"{option} stands behind --, which ends the options" in outcome.err + outcome.out


def test_a_program_behind_the_end_of_options_may_start_with_two_minuses(run):
    assert run("eval", "--order", "1", "--", "--x", "x=3").out.startswith("value  3.0")
