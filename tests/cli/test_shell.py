"""Tests `gradcli shell` on plain streams, and the parts of the line editor that need no terminal; tests/cli/test_shell_terminal.py
has those that do."""

from __future__ import annotations

import io
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.cli.main import COMMANDS, main
from gradcli.cli.process.environment import Environment
from gradcli.cli.shell import colon_commands, completions, live_checks, read_loop
from gradcli.cli.shell.editor import HistoryFile, default_path
from gradcli.cli.shell.read_loop import Shell
from gradcli.cli.shell.typed_text import InputReader, command_words, inputs_of, is_complete


@pytest.fixture
def answer(run: Callable[..., object]) -> Callable[..., str]:
    """`answer('x = 5', 'x**2')` is what the last line prints after the others, standard output and error together."""

    def answer(*lines: str) -> str:
        printed = io.StringIO()
        shell = Shell(Environment(None, printed, printed, {}))
        before = 0
        for text in inputs_of("\n".join(lines)):
            before = len(printed.getvalue())
            shell.run(text)
        return printed.getvalue()[before:]

    return answer


def gradients(printed: str) -> dict[str, float]:
    rows = [line.split() for line in printed.partition("gradient\n")[2].splitlines() if line.strip()]
    return {name: float(number) for name, number in (row for row in rows if len(row) == 2 and row[1] != "-")}


# --- values and gradients


def test_an_expression_prints_value_and_gradient_by_the_names_that_have_a_value(answer):
    assert answer("x = 5", "q = 3", "log(x**q)") == (
        "value  4.828313737302301\n\nby  gradient\nx   0.6\nq   1.6094379124341003\n"
    )


def test_the_last_value_has_its_derivatives(answer):
    assert gradients(answer("x = 5", "x**2", "_*3")) == {"x": 30.0}
    assert gradients(answer("x = 5", "x**2", "_*3", "_ + _")) == {"x": 60.0}
    assert answer("2 + 3", "_*2") == "value  10.0\n\nby  gradient\n_   2.0\n"
    assert "unknown name '_'" in answer("_ + 1")


def test_a_name_made_of_others_depends_on_them(answer):
    assert gradients(answer("x = 3", "y = x**2", "y = y + 1", "y*2")) == {"x": 12.0}


def test_a_name_keeps_its_value_where_another_changes(answer):
    assert answer("x = 3", "y = x**2", "x = 10") == "note: 'y' keeps its value, computed from the former 'x'\n"
    assert gradients(answer("x = 3", "y = x**2", "x = 10", "y*x")) == {"y": 10.0, "x": 9.0}
    assert answer("x = 3", "x = x + 1", "x") == "value  4.0\n\nby  gradient\nx   1.0\n"
    assert answer("x = 1", "z = 2", "x = x + z") == "note: 'x' no longer depends on 'z', as an input has changed\n"


def test_a_function_reads_names_when_it_is_called_and_a_value_does_not_change(answer):
    lines = ("a = 2", "f(t) = a*t", "y = f(3)", "a = 5")
    assert "value  15.0" in answer(*lines, "f(3)")
    assert "value  6.0" in answer(*lines, "y")
    assert "value  6.0" in answer("f(t) = t", "y = f(2)", "f(t) = 2*t", "y + f(1)*2")


def test_names_of_one_statement_stay_together(answer):
    lines = ("x = 3", "for i in range(3) { y = i*x }", "i = 7")
    assert "value  13.0" in answer(*lines, "y + i")
    # With another input the loop leaves what was there before.
    assert "value  8.0" in answer("x = 3", "z = 2*x", "if x > 5 { z = 3 }", ":eval z x=4")
    assert "value  3.0" in answer("x = 3", "z = 2*x", "if x > 5 { z = 3 }", ":eval z x=6")


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (("x = 3", "v = [x, 2*x]", "u = v", "v[0] = 9", "u[0]"), "9.0"),
        (("x = 3", "v = [x, 2*x]", "u = v", "u[1] = 9", "v[1]"), "9.0"),
        (("m = [1, 2]", "n = m", "n[0] = 7", "m[0]"), "7.0"),
        (("m = [1, 2]", "n = m.clone()", "n[0] = 7", "m[0]"), "1.0"),
        (("m = [1, 2]", "r = 2*m", "def f(t):", "    t[0] = 8", "    return t", "f(r)", "r[0]"), "8.0"),
        (("m = [1, 2]", "m[0] = 5", "sum(m)"), "7.0"),
        (("xs = []", "for i in range(3) { xs.append(i*2) }", "sum(xs)"), "6.0"),
        (("xs = []", "ys = xs", "ys.append(5)", "sum(xs)"), "5.0"),
        (("xs = [1, 2]", "xs.append(3)", "sum(xs)"), "6.0"),
    ],
)
def test_changes_in_place_are_those_of_one_program(answer, lines, value):
    assert answer(*lines).startswith(f"value  {value}\n")


_STATEMENTS = (
    "a = x*y", "b = sin(a) + v[0]", "a = a + b", "a += x", "v = stack([x, y, a])", "w = v", "v[0] = x*y", "w[1] = b", "u = v + 1",
    "u[2] += x", "b = sum(w)*x", "w[0] = u[2]", "if a > 1 { b = a } else { b = 2*x }", "for i in range(2) { a = a*x + i }", "c = u[0]*b",
    "f(t) = t*a + x", "b = f(y)", "c = b", "a, b = b, a", "w = v[0:2]", "w *= 2", "w = v.clone()", "u = w", "u[1] *= y", "v = v/2", "def f(t):\n    s = v\n    s[0] = t\n    return sum(s)",
)  # fmt: skip
_NAMES = ("a", "b", "c", "v[0] + v[1]", "sum(w)", "u[2]", "f(x)")


@pytest.mark.parametrize("seed", range(40))
def test_a_session_has_the_values_and_gradients_of_one_program(answer, run, seed):
    chosen = random.Random(seed)
    first = ("a = x", "b = y", "c = x*y", "v = stack([x, y, x*y])", "w = 2*v", "u = v*y", "f(t) = a*t")
    body = [*first, *chosen.choices(_STATEMENTS, k=8)]
    last = chosen.choice(_NAMES)
    whole = run("eval", "\n".join([*body, last]), "x=1.5", "y=0.75", "--quiet")
    printed = answer("x = 1.5", "y = 0.75", *body, last)
    assert whole.status == 0, whole.err
    value, by = printed.split("\n")[0], gradients(printed)
    assert float(value.split()[1]) == pytest.approx(float(whole.out.split()[1]), rel=1e-12)
    # A name that no derivative reaches has no row where the definitions that are needed do not read it.
    expected = {name: g for name, g in gradients(whole.out).items() if g or name in by}
    assert by == pytest.approx(expected, rel=1e-12)


def test_a_tensor_has_a_note_instead_of_a_gradient(answer):
    printed = answer("x = [1, 2]", "x**2")
    assert printed.startswith("value  [1., 4.]\nnote: a value of shape [2] has no gradient")
    assert "by  jacobian" in answer("x = [1, 2]", "x**2", ":eval _ --jacobian")


def test_truth_values_select(answer):
    assert "value  6.0" in answer("x = [1, 2, 4]", "m = [False, True, True]", "sum(x[m])")


def test_functions_texts_and_what_has_no_value(answer):
    assert answer("g = lambda t: t**3", "w = 2", "g(w)") == "value  8.0\n\nby  gradient\nw   12.0\n"
    assert "value  12.0" in answer("g(t) = t**3", "h = grad(g)", "h(2)")
    assert answer('"what a program is about"') == ""
    assert answer("# a comment") == ""
    assert answer("pass") == ""
    assert "2 values" in answer("1, 2")


def test_libraries_give_their_meaning(answer):
    assert "value  1.247" in answer("v = [1, 2, 4]", "std(v)")
    told = answer("import torch")
    assert told == "note: from here on, names without a prefix have the meaning that PyTorch gives them\n"
    assert "value  1.527" in answer("v = [1, 2, 4]", "torch.mean(v)", "std(v)")
    assert "value  2.333" in answer("import numpy as n", "v = [1, 2, 4]", "n.mean(v)")
    assert "one thing in PyTorch" in answer("import torch", "import numpy", "v = [1, 2, 4]", "std(v)")


def test_a_value_from_a_file(answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("x,y\n1,2\n3,5\n")
    assert "value  4.0" in answer("x = @d.csv:x", "sum(x)")
    assert "value  4.0" in answer("x = @d.csv:x", ":eval sum(x)")
    assert "there is no such file" in answer("x = @none.csv")
    assert "standard input" in answer("x = @-")


# --- errors


def test_an_error_points_into_what_was_typed_and_changes_nothing(answer):
    lines = ("x = 5", "f(t) = t + lgo(t)")
    assert answer(*lines, "log(x) + y").splitlines()[1:3] == ["  | log(x) + y", "  |          ^"]
    assert answer(*lines, "2*f(x)") == (
        "error: unknown function 'lgo'\n  | f(t) = t + lgo(t)\n  |            ^^^\nhint: did you mean 'log'?\n"
    )
    assert "value  5.0" in answer(*lines, "x = x + nothing", "x")
    assert answer("x = 5", "y = x**2", "log(y - 25)").endswith("  | log(y - 25)\n  | ^^^^^^^^^^^\n")


def test_hints_are_written_for_the_shell(answer):
    assert ":propagate" in answer("x = 5 ± 0.1")
    assert answer("y = 0; while y < 1 { x = 1 }").endswith("--max-steps; :eval PROGRAM takes options\n")
    assert answer("plot sin(x) x=0..3").endswith("hint: commands begin with a colon: :plot sin(x) x=0..3\n")
    assert answer(":explian 1").startswith("error: there is no command ':explian'")
    assert "did you mean 'diff'" in answer(":dif x")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("x**2 --order 2", "options stand behind a command: :eval x**2 --order 2"),
        ("x --json", "options stand behind a command: :eval x --json"), ("x --y", "give it a value, as in y=1"),
        (":q", "did you mean 'quit'?"), (":s", ":help lists the commands"), (":dif x", "did you mean 'diff'?"),
    ],
)  # fmt: skip
def test_hints_at_options_and_commands(answer, line, hint):
    assert answer("x = 3", line).endswith(f"hint: {hint}\n")


def test_a_command_that_is_not_there_yet(answer, monkeypatch):
    monkeypatch.delitem(COMMANDS, "explain", raising=False)
    assert answer(":explain 1").startswith("error: this version of gradcli has no command 'explain'")


def test_the_exit_status_is_that_of_the_first_error(run):
    assert run("shell", stdin="x = 5\nx\n").status == 0
    outcome = run("shell", stdin="log(\nx = 2\n1 +* 2\n)\nlgo(1)\nx = 3\nx**2\n")
    assert outcome.status == 2
    assert "value  9.0" in outcome.out
    assert "unknown function 'lgo'" in outcome.err
    assert run("shell", stdin="sum([1, 2])[5]\nlgo(1)\n").status == 1


def test_the_status_and_the_errors_of_a_command_are_its_own(run):
    assert run("shell", stdin=":eval log(x) x=-1 --fail-on-nonfinite\n").status == 1
    outcome = run("shell", stdin="x = 1\n:eval lgo(x) --json\n")
    assert outcome.status == 2
    assert outcome.error["message"] == "unknown function 'lgo'"
    assert outcome.error["column"] == 1


def test_traceback(run):
    assert "Traceback" in run("shell", "--traceback", stdin="lgo(1)\n").err


# --- commands


def test_a_command_has_the_names_of_the_session(answer):
    lines = ("x = 5", "q = 3", "f(t) = t**q", "y = f(x)")
    assert answer(*lines, ":diff log(y)") == (
        "q: log(x)\nx: q/x\n# q: 1.6094379124341003 at q=3.0, x=5.0\n# x: 0.6 at q=3.0, x=5.0\n"
    )
    assert answer(*lines, ":diff log(y) --wrt x") == "3/x\n# 0.6 at x=5.0\n"
    assert answer(*lines, ":diff 'log(y)' --wrt x x=2").endswith("at x=2.0\n")
    assert answer(*lines, "log(y)", ":diff --wrt x") == answer(*lines, ":diff log(y) --wrt x")
    assert "x by q" not in answer("q = 2", "x = 1", ":solve x**2 = q x~1")
    assert "value  14.0" in answer("x = 4", ":eval x + 10")


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        (":plot a*x x=0..3", "┤"),
        (":graph a*x + 1", "└── multiply"),
        (":check a**x", "agrees"),
        (":series exp(a*x) x=0 --order 2", "1 + 2*x + 2*x**2"),
        (":solve t**2 = a t~1", "1.414213562373095"),
        (":propagate a*x a=2±0.1", "± 0.50"),
        (":minimize (t - a)**2 t=0", "t      2.0"),
        (":ops log", "natural logarithm"),
        (":eval x + lgo(a)", "  | x + lgo(a)\n  |     ^^^"),
        (":eval x --jsn", "did you mean --json?"),
        (":diff 'x", "a quote is not closed"),
    ],
)
def test_commands(answer, line, printed):
    assert printed in answer("a = 2", "x = 5", line)


def test_a_program_from_a_file_has_the_names_of_the_session(answer, tmp_path):
    program = tmp_path / "p.grad"
    program.write_text("f(x)**2\n")
    assert "value  36.0" in answer("x = 3", "f(t) = 2*t", f":eval --file {program}")
    assert "value  36.0" in answer("x = 3", "f(t) = 2*t", f":eval --file={program} --no-grad")


def test_equations_and_models_have_no_program_by_default(answer):
    assert "there is no program" in answer("x = 3", "x + 1", ":fit")
    assert "there is no program" in answer("x = 3", "x + 1", ":solve")


def test_a_command_that_looks_for_values_holds_those_of_the_session(answer):
    lines = ("x = [0, 1, 2, 3]", "y = [2, 1.2, 0.7, 0.5]", "k = 0.4")
    held = answer(*lines, ":fit y ~ a*exp(-k*x)")
    assert held.startswith("note: 'k' is held at its value in the session; k=… behind the program frees it\n")
    assert "fixed" in held
    assert "fixed" not in answer(*lines, ":fit y ~ a*exp(-k*x) k=0.4")


def test_the_columns_of_a_file_go_before_names(answer, tmp_path):
    table = tmp_path / "d.csv"
    table.write_text("x,y\n1,2\n2,4\n3,6.1\n")
    assert answer("x = 5", f":fit y ~ a*x {table}").startswith("parameter  estimate")


def test_names_and_reset(answer):
    lines = ("x = 3", "y = x**2", "f(t) = x*t")
    assert answer(*lines, ":vars") == ("name  value  from\nx     3.0\ny     9.0    y = x**2\nf            f(t) = x*t\n")
    assert "note: 'y' keeps its value" in answer(*lines, ":reset x")
    assert answer(*lines, ":reset", ":vars") == "There are no names yet: x = 5 makes one.\n"
    assert "there is no name 'z'" in answer(*lines, ":reset z")


def test_help(answer):
    listed = answer(":help")
    assert {f":{name}" for name in colon_commands.names()} <= {*listed.split()}
    assert len(listed.splitlines()) < 24
    assert max(map(len, listed.splitlines())) <= 80
    assert "--wrt" in answer(":help diff")
    assert "natural logarithm" in answer(":help log")
    assert ":vars  " in answer(":help vars")
    assert answer("help") == listed


def test_an_array_that_is_too_large_for_a_command(answer):
    assert "too many to hand to a command" in answer("v = linspace(0, 1, 30000)", "w = v*2", "v = w*1", ":eval sum(w)")
    assert "value" in answer("v = linspace(0, 1, 30000)", ":eval sum(v)")


# --- transcripts and streams


def test_a_transcript_runs_again(run, tmp_path):
    saved = tmp_path / "lesson.grad"
    typed = f"x = 5\nlgo(x)\ndef f(t):\n    return t**2\n\nf(x)\n:diff f(x)\n:vars\n:save {saved}\n"
    first = run("shell", stdin=typed)
    again = run("shell", str(saved))
    assert again.status == 0
    assert again.out == first.out.partition("name  value")[0]
    assert run("shell", stdin=f":load {saved}\n").out == again.out
    assert saved.read_text().splitlines()[1:] == ["x = 5", "def f(t):", "    return t**2", "f(x)", ":diff f(x)"]
    assert run("shell", stdin=f"y = 1\n:save {saved}\n").status == 0
    assert saved.read_text().splitlines()[1:] == ["y = 1"]


def test_a_file_that_is_no_transcript_is_kept(run, tmp_path):
    kept = tmp_path / "data.csv"
    kept.write_text("x\n1\n")
    assert "is no session" in run("shell", stdin=f"x = 5\n:save {kept}\n").err
    assert kept.read_text() == "x\n1\n"


def test_a_transcript_that_loads_itself_ends(run, tmp_path):
    loop = tmp_path / "loop.grad"
    loop.write_text(f":load {loop}\n")
    assert "a file may load itself" in run("shell", str(loop)).err


def test_files_that_cannot_be_read(run, tmp_path):
    assert "cannot read" in run("shell", str(tmp_path / "none")).err
    (tmp_path / "latin").write_bytes(b"x = 5 \xe9\n")
    assert "is not UTF-8" in run("shell", str(tmp_path / "latin")).err
    assert "needs the name of a file" in run("shell", stdin=":load\n").err


def test_quit_ends_a_file(run):
    assert run("shell", stdin="x = 5\n:quit\nx\n").out == ""
    assert run("shell", stdin="x = 5\nexit\nx\n").out == ""


def test_gradcli_alone_prints_the_help_where_there_is_no_terminal(run):
    assert "gradcli eval" in run().out


def test_a_pipe_is_answered_line_by_line():
    command = [sys.executable, "-m", "gradcli", "shell"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("x = 5\nx**2\n")
        process.stdin.flush()
        assert process.stdout.readline() == "value  25.0\n"
        process.stdin.close()


def test_only_the_shell_imports_its_modules():
    script = (
        "import io, sys; from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment; "
        "main(['eval', 'x', 'x=1'], Environment(None, io.StringIO(), io.StringIO(), {})); "
        "print(*(name for name in sys.modules if 'cli.shell' in name or 'prompt_toolkit' in name))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"


# --- typed text


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("x = 5\n\nlog(x)\n", ["x = 5", "log(x)"]),
        ("def f(x):\n    y = x\n\n    return y\nf(2)\n", ["def f(x):\n    y = x\n\n    return y", "f(2)"]),
        ("sum([1,\n2])\n:vars\n", ["sum([1,\n2])", ":vars"]),
        ("if x > 0:\n    1\nelse:\n    2\nx", ["if x > 0:\n    1\nelse:\n    2", "x"]),
        ("if x > 0 { 1 }\nelse { 2 }\nx", ["if x > 0 { 1 }\nelse { 2 }", "x"]),
        ("f(x) = x\n  backward(g) = 2*g\nf(1)", ["f(x) = x\n  backward(g) = 2*g", "f(1)"]),
        ("    x = 1\n    y = 2\n", ["x = 1", "y = 2"]),
        ('"""two\nlines"""\nx', ['"""two\nlines"""', "x"]),
        ("x = (1 + # (\n 2)", ["x = (1 + # (\n 2)"]),
        ("for i in range(3) {\n  y = i\n\n}\ny", ["for i in range(3) {\n  y = i\n\n}", "y"]),
        ("f(\n1", ["f(\n1"]),
    ],
)
def test_lines_are_put_together(text, inputs):
    assert [*inputs_of(text)] == inputs


def test_a_blank_line_ends_a_block_that_is_typed():
    reader = InputReader(at_blank=True)
    assert [*reader.feed("def f(x):")] == []
    assert reader.is_within
    assert [*reader.feed("    return x")] == []
    assert [*reader.feed("")] == ["def f(x):\n    return x"]
    assert [*reader.feed("if x > 0 { 1 }")] == ["if x > 0 { 1 }"]


@pytest.mark.parametrize(
    "text", ["x", "", "f(x)", "def f(x):\n    return x\n", "if a { b } else { c }", ":diff x", "x)"]
)
def test_complete(text):
    assert is_complete(text)


@pytest.mark.parametrize("text", ["(x", "def f(x):", "def f(x):\n    return x", "if a {", '"""', "x + \\", "[1,"])
def test_incomplete(text):
    assert not is_complete(text)


_OPTIONS = {"--wrt": True, "--json": False, "--output": True, "--order": True, "--quiet": False}
_SHORT = {"-w": "--wrt", "-j": "--json", "-o": "--output", "-n": "--order", "-q": "--quiet"}


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("text", "program", "rest"),
    [
        ("log(x**q)", "log(x**q)", []),
        ("x + 1 --wrt x", "x + 1", ["--wrt", "x"]),
        ("--wrt x x + 1", "x + 1", ["--wrt", "x"]),
        ("x - y", "x - y", []),
        ("-x**2 x=3", "-x**2", ["x=3"]),
        ("sum([1, 2]) --json", "sum([1, 2])", ["--json"]),
        ("x**2 = a x~1", "x**2 = a", ["x~1"]),
        ("y ~ a*x + b data.csv a=1", "y ~ a*x + b", ["data.csv", "a=1"]),
        ("y ~ a*x /tmp/d.csv", "y ~ a*x", ["/tmp/d.csv"]),
        ("x / y", "x / y", []),
        ("'for i in range(3) { y = i }; y' x=1", "for i in range(3) { y = i }; y", ["x=1"]),
        ("x v='[1, 2]'", "x", ["v=[1, 2]"]),
        ("x t='column:Time (s)'", "x", ["t=column:Time (s)"]),
        ("1 if x > 2 else 3", "1 if x > 2 else 3", []),
        ("x -o out.png", "x", ["--output", "out.png"]),
        ("x -o /tmp/out.png -j", "x", ["--output", "/tmp/out.png", "--json"]),
        ("x**2 -n 2 -w x,y", "x**2", ["--order", "2", "--wrt", "x,y"]),
        ("x -n + 2", "x -n + 2", []),
        ("x -n", "x -n", []),
        ("-n -j", "-n", ["--json"]),
        ("-n 2 -x", "-x", ["--order", "2"]),
        ("x -j", "x", ["--json"]),
        # 'q' is a name of the session.
        ("x -q", "x -q", []),
        ("y=x**2; y", "y=x**2; y", []),
        ("x=5", None, ["x=5"]),
        ("", None, []),
    ],
)
def test_the_words_of_a_command(text, program, rest):
    assert command_words(text, _OPTIONS, _SHORT, ["q"], equations=False)[:2] == (program, rest)


def test_the_text_of_equations_may_look_like_a_value():
    assert command_words("y~a*x a=1", _OPTIONS, _SHORT, [], equations=True)[:2] == ("y~a*x", ["a=1"])
    assert command_words("v=g*t t~1", _OPTIONS, _SHORT, [], equations=True)[:2] == ("v=g*t", ["t~1"])


def test_long_blocks_are_read_in_linear_time():
    body = "".join(f"    y = y + {i}\n" for i in range(20_000))
    started = time.perf_counter()
    assert len([*inputs_of(f"def f(y):\n{body}    return y\nf([\n{'1,' * 10 + chr(10)}])\n")]) == 2
    assert time.perf_counter() - started < 5


# --- what is said while one types


@pytest.fixture(scope="module")
def workspace():
    shell = Shell(Environment(None, io.StringIO(), io.StringIO(), {}))
    for line in ("x = 5", "xs = [1, 2]", "f(t) = 3*t**2"):
        shell.run(line)
    return shell.workspace


def texts(before: str, workspace: object) -> list[str]:
    return [found.text for found in completions.completions(before, workspace)]


def test_completion(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").touch()
    Path("folder").mkdir()
    assert texts("lo", workspace)[0] == "log"
    assert texts("2*x", workspace)[:2] == ["x", "xs"]
    assert texts(":di", workspace) == ["diff"]
    assert "--wrt" in texts(":diff x --w", workspace)
    assert texts(":diff x --to la", workspace) == ["latex"]
    assert texts(":load da", workspace) == ["data.csv"]
    assert texts("y = @", workspace) == ["data.csv", "folder/"]
    assert "log" in texts(":diff lo", workspace)
    assert "diff" in texts(":help d", workspace)
    assert "while" in texts("whi", workspace)
    assert texts("1 + ", workspace) == []
    assert texts("y = @none/", workspace) == []


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("lgo(5)", "unknown function 'lgo'; did you mean 'log'?", "lgo"),
        ("x + zz * 2", "unknown name 'zz'; give it a value, as in zz=1", "zz"),
        ("1 +* 2", "unexpected '*'; an expression should follow '+'", "*"),
        ("def g(x):\n  return lgo(x)\n", "unknown function 'lgo'; did you mean 'log'?", "lgo"),
        (":dif x", "there is no command ':dif'; did you mean 'diff'?", ":dif"),
    ],
)
def test_a_mistake_while_it_is_typed(workspace, text, message, marked):
    found = live_checks.mistake(text, len(text), workspace)
    assert (found.message, text[found.span.start : found.span.end]) == (message, marked)


@pytest.mark.all_cases
@pytest.mark.parametrize(
    "text",
    [
        "",
        "lgo",
        "log(x",
        "log(",
        "1 +",
        "zz",
        "f(2) + x",
        "def g(x):",
        "y = @da",
        ":dif",
        ": diff x",
        "g(t) = a*t",
        "x y",
        "sin(x",
    ],
)
def test_what_is_only_unfinished_is_no_mistake(workspace, text):
    assert live_checks.mistake(text, len(text), workspace) is None


def test_the_function_at_the_cursor(workspace):
    descriptions = live_checks.FunctionDescriptions(workspace, lambda: None)

    def at(text: str, cursor: int) -> str | None:
        return live_checks.function_at(text, cursor, descriptions.is_function)

    assert at("log(x)", 1) == "log"
    assert at("log(x + ", 8) == "log"
    assert at("log(atan2(x, y) + ", 18) == "log"
    assert at("log(atan2(x, ", 13) == "atan2"
    assert at("f(2", 3) == "f"
    assert at("x + 1", 5) is None
    assert descriptions.of("log") == "log(x)  derivative g/x  natural logarithm"


def test_the_derivative_of_a_function_of_the_session(workspace):
    done = []
    descriptions = live_checks.FunctionDescriptions(workspace, lambda: done.append(True))
    assert descriptions.of("f").startswith("f(t)")
    until = time.monotonic() + 60
    while not done and time.monotonic() < until:
        time.sleep(0.01)
    assert descriptions.of("f") == "f(t)  derivative 6*t"


# --- history


def test_history_is_kept_for_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    path = default_path()
    if sys.platform.startswith("linux"):
        assert path == os.path.join(tmp_path, "settings", "gradcli", "shell-history")
    history = HistoryFile(path)
    history.append("x = 5")
    history.append("def f(t):\n    return 'ü'")
    assert HistoryFile(path).entries() == ["x = 5", "def f(t):\n    return 'ü'"]
    if os.name == "posix":
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        os.chmod(path, 0o644)
        history.append("y")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_history_survives_what_it_cannot_read(tmp_path):
    path = tmp_path / "history"
    path.write_bytes(b'"x"\nnot json\n5\n\xff\n"y"\n')
    assert HistoryFile(str(path)).entries() == ["x", "y"]
    assert HistoryFile("/dev/null/nothing").entries() == []
    HistoryFile("/dev/null/nothing").append("x")


def test_a_long_history_is_shortened(tmp_path):
    path = tmp_path / "history"
    path.write_text('"{}"\n'.format("x" * 300) * 12_000)
    entries = HistoryFile(str(path)).entries()
    assert len(entries) == 5_000


def test_the_welcome_fits_a_narrow_terminal():
    assert len(read_loop.WELCOME) < 40
    assert all(word in read_loop.WELCOME for word in ("log(x**q)", ":help", ":quit"))


def test_plain_lines():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    environment = Environment(Terminal("x = 5\ndef f(t):\n    return t**2\n\nf(x)\n"), out, out, {"TERM": "dumb"})
    assert main([], environment) == 0
    assert out.getvalue() == (f"{read_loop.WELCOME}\n> > . . > value  25.0\n\nby  gradient\nx   10.0\n> \n")
