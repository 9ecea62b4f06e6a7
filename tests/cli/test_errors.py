"""Tests errors: exit status, place, hint, and that there is never a traceback."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

from gradcli import limits


def test_the_text_of_an_error(run):
    outcome = run("eval", "y = lgo(x**q)", "x=5", "q=3")
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err == ("error: unknown function 'lgo'\n  | y = lgo(x**q)\n  |     ^^^\nhint: did you mean 'log'?\n")


def test_the_same_as_json(run):
    outcome = run("eval", "y = lgo(x**q)", "x=5", "q=3", "--json")
    assert outcome.error == {
        "kind": "name", "message": "unknown function 'lgo'", "line": 1, "column": 5, "hint": "did you mean 'log'?",
    }  # fmt: skip


# words, exit status, kind, line and column of the caret, a part of the message, a part of the hint
CASES = {
    "unknown name": (["x + qq", "x=1"], 2, "name", (1, 5), "unknown name 'qq'", "qq=1"),
    "unknown name near another": (["alpha + alpah", "alpha=1"], 2, "name", (1, 9), "'alpah'", "'alpha'"),
    "unknown function": (["sine(x)", "x=1"], 2, "name", (1, 1), "'sine'", "'sin'"),
    "unknown method": (["x.summ()", "x=1"], 2, "name", (1, 3), "'summ'", "'sum'"),
    "unknown attribute": (["x.TT", "x=1"], 2, "name", (1, 3), "'TT'", "'.T'"),
    "a function as a value": (["log*x", "x=1"], 2, "name", (1, 1), "'log'", "call it"),
    "a value as a function": (["x(2)", "x=1"], 2, "call", (1, 1), "'x'", "x*(2)"),
    "too many arguments": (["exp(x, 2)", "x=1"], 2, "call", (1, 1), "1 argument", "exp(x)"),
    "too few arguments": (["atan2(x)", "x=1"], 2, "call", (1, 1), "'x'", "atan2(y, x)"),
    "arguments of an own function": (["f(a, b) = a*b; f(x)", "x=1"], 2, "call", (1, 16), "'b'", "f(a, b)"),
    "unknown keyword": (["sum(x, axs=0)", "x=[1]"], 2, "call", (1, 1), "'axs'", "'axis'"),
    "an argument twice": (["sum(x, 0, axis=0)", "x=[1]"], 2, "call", (1, 1), "'axis' twice", "sum(x"),
    "syntax at the end": (["log(x", "x=1"], 2, "syntax", (1, 4), "never closed", ""),
    "syntax in the middle": (["x + * 2", "x=1"], 2, "syntax", (1, 5), "'*'", ""),
    "one bracket too many": (["log(x))", "x=1"], 2, "syntax", (1, 7), "')'", ""),
    "an empty program": ([""], 2, "syntax", (1, 1), "empty", ""),
    "shapes in a long program": (
        ["a = x*2\nb = a + 1\nc = b @ [1,2,3]\nsum(c)", "x=[1,2]"], 1, "shape", (3, 5), "[2] and [3]", "size",
    ),
    "broadcasting": (["x + [1,2,3]", "x=[1,2]"], 1, "shape", (1, 1), "[2] and [3]", "sizes"),
    "an axis that is not there": (["sum(x, axis=3)", "x=[1,2]"], 1, "shape", (1, 1), "axis 3", ""),
    "an index out of bounds": (["x[5]", "x=[1,2]"], 1, "shape", (1, 1), "index 5", ""),
    "a value that is no scalar": (["x*2", "x=[1,2]"], 1, "differentiation", (1, 1), "a gradient is that of a single number", "--grad-output"),
    "orders of no scalar": (["x*2", "x=[1,2]", "--jacobian", "--order", "2"], 1, "differentiation", (1, 1), "a single number", "sum"),
    "a condition of many": (["1 if x else 2", "x=[1,2]"], 1, "shape", (1, 6), "one number", "where"),
    "diff of no scalar": (["diff(x*[1,2], x)", "x=1"], 1, "differentiation", (1, 1), "scalar", "diff(sum(y), x)"),
    "diff by an expression": (["diff(x**2, x+1)", "x=1"], 1, "differentiation", (1, 12), "name", "u = "),
    "a missing file": (["x", "x=@nothing.npy"], 2, "binding", (1, 3), "nothing.npy", ""),
    "a name that is not read": (["x", "x=1", "y=2"], 2, "binding", (1, 1), "'y'", "'x'"),
    "a name twice": (["x", "x=1", "x=2"], 2, "binding", (1, 1), "twice", "one value"),
    "a word that gives no value": (["x", "x"], 2, "binding", (1, 1), "'x'", "x=1"),
    "a value with a name": (["x", "x=y+1"], 2, "name", (1, 3), "'y'", ""),
    "a value that is none": (["x", "x=1+"], 2, "syntax", (1, 5), "ends", ""),
    "two statements as a value": (["x", "x=1;2"], 2, "syntax", (1, 4), "';'", ""),
    "an endless loop": (["while 1 { x = x + 1 }", "x=1", "--max-steps", "5002"], 1, "limit", (1, 1), "5,002 steps", "--max-steps"),
    "endless recursion": (["f(a) = f(a); f(x)", "x=1", "--max-steps", "5000"], 1, "limit", (1, 8), "steps", "--max-steps"),
    "a derivative of too high an order": (["diff(x**0.5*log(x), x, 20)", "x=1", "--max-steps", "20000"], 1, "limit", (1, 6), "steps", "--max-steps"),
    "an order that takes too long": (["sum(sin(x))", "x=[1,2,3,4,5,6]", "--order", "12", "--max-steps", "200"], 1, "limit", (1, 1), "steps", "--max-steps"),
    "an order without right digits": (["exp(x*y)", "x=1", "y=2", "--order", "60"], 1, "limit", (1, 1), "few right digits", "orders up to 16"),
    "recursion without end": (["f(a) = f(a) + 1; f(x)", "x=1"], 1, "limit", (1, 8), "100,000 deep", "recursion"),
    "a loop along a number": (["for i in x { y = i }", "x=1"], 1, "shape", (1, 10), "a number", "range"),
    "a cotangent with a name": (["x", "x=[1]", "--grad-output", "x"], 2, "name", (1, 1), "'x'", "--grad-output"),
    "a huge tensor": (["zeros(10**6, 10**6)"], 1, "limit", (1, 1), "elements", "--max-elements"),
    "a huge product": (["sum(x[:,None]*x[None,:])", "x=ones(10**5)"], 1, "limit", (1, 5), "elements", "--max-elements"),
    "a singular matrix": (["sum(inv(A))", "A=[[1,2],[2,4]]"], 1, "evaluation", (1, 5), "singular", ""),
    "no value": (["f(a) = a"], 1, "evaluation", (1, 1), "without a value", ""),
    "a branch not taken": (["if x > 1 { y = x }; y", "x=0"], 2, "name", (1, 21), "no value yet", ""),
    "a global behind a hand-written derivative": (
        ["f(a) = a*k backward(g) = g; f(x)", "x=1", "k=2"], 1, "differentiation", (1, 10), "'k'", "parameter",
    ),
}  # fmt: skip


@pytest.mark.all_cases
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_input(run, case, monkeypatch):
    words, status, kind, place, message, hint = case
    outcome = run("eval", *words, "--json")
    assert outcome.out == ""
    error = outcome.error
    assert (outcome.status, error["kind"]) == (status, kind)
    assert (error["line"], error["column"]) == place
    assert message in error["message"]
    assert hint in (error["hint"] or "")
    # It takes a second to reach the other depth again.
    monkeypatch.setattr(limits, "MAX_DEPTH", 1000)
    for_people = run("eval", *words).err
    assert "^" in for_people
    assert "Traceback" not in for_people


USAGE = {
    "a misspelt option": (["eval", "x", "x=1", "--jsno"], "--jsno", "--json"),
    "an option that is none": (["eval", "--frobnicate", "x"], "--frobnicate", "--help"),
    "no program": (["eval"], "no program", "gradcli eval"),
    "an unknown command": (["evla", "x"], "'evla'", "'eval'"),
    "an option without its value": (["eval", "x", "x=1", "--order"], "--order", ""),
    "an order that is no number": (["eval", "x", "x=1", "--order", "two"], "two", ""),
    "an order below 1": (["eval", "x", "x=1", "--order", "0"], "--order", ""),
    "an unknown dtype": (["eval", "x", "x=1", "--dtype", "float16"], "float16", "float32"),
    "an unknown backend": (["eval", "x", "x=1", "--backend", "nunpy"], "nunpy", "numpy"),
    "an unknown device": (["eval", "x", "x=1", "--device", "cuda"], "cuda", "cpu"),
    "a name to differentiate by that has no value": (["eval", "x", "x=1", "--wrt", "y"], "'y'", ""),
    "a constant that has no value": (["eval", "x", "x=1", "--const", "y"], "'y'", ""),
    "a program file that is not there": (["eval", "--file", "nothing.grad"], "nothing.grad", ""),
    "contradicting options": (["eval", "x", "x=1", "--no-grad", "--order", "2"], "--order", ""),
    "a result file of another kind": (["eval", "x", "x=1", "--save", "out.txt"], ".npz", ""),
    "an intermediate that is not there": (["eval", "y=x", "x=1", "--retain", "z"], "'z'", ""),
    "an option twice": (["eval", "x", "x=1", "--order", "2", "--order=3"], "--order is given twice", "leave one"),
    "values in front of the program": (["eval", "x=5", "y=2", "x**y"], "'x=5'", "'x**y' x=5 y=2"),
    "spaces around an equals sign": (["eval", "x*y", "x", "=", "5", "y=2"], "'x'", "write x=5"),
    "a space behind an equals sign": (["eval", "x**2", "x=", "5"], "'x'", "write x=5"),
    "a space before an equals sign": (["eval", "x**2", "x", "=5"], "'x'", "write x=5"),
    "a function that is not called": (["eval", "f(x, y) = x*y", "x=1", "y=2"], "'x'", "f(x, y) = x*y; f(x, y)"),
    "both from standard input": (["eval", "-", "--vars", "-"], "standard input", ""),
}  # fmt: skip


@pytest.mark.all_cases
@pytest.mark.parametrize("case", USAGE.values(), ids=USAGE)
def test_wrong_usage(run, case):
    words, message, hint = case
    outcome = run(*words)
    assert outcome.status == 2
    assert outcome.out == ""
    first, *rest = outcome.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert hint in "\n".join(rest)


def test_no_grammar_names_are_shown(run):
    for program in ("log(x", "x +", "f(", "[1, 2", "if x {", "x y", "1..2", "for i in", "'abc"):
        error = run("eval", program, "x=1").err
        assert not any(word.isupper() and len(word) > 2 for word in error.replace("'", " ").split()), error


def test_an_error_in_backward_points_at_the_text(run):
    program = "f(a) = sum(a**2) backward(g) = g*[1,2,3]\ny = 2*f(x)\ny + 1"
    error = run("eval", program, "x=[1,2]", "--json").error
    assert error["kind"] == "differentiation"
    assert "invalid gradient" in error["message"]
    assert (error["line"], error["column"]) == (1, 8)


def test_a_pickle_is_never_loaded(run, tmp_path):
    path = tmp_path / "evil.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    outcome = run("eval", "x", f"x=@{path}", "--json")
    assert outcome.status == 2
    assert "pickle" in outcome.error["message"]
    path.write_bytes(pickle.dumps(os.system))
    assert run("eval", "x", f"x=@{path}").status == 2


def test_broken_files(run, tmp_path):
    for name, content in {"a.npy": b"\x93NUMPY", "b.npz": b"PK", "c.csv": b"a,b\n1,x\n", "d.json": b"[1, 2"}.items():
        (tmp_path / name).write_bytes(content)
        outcome = run("eval", "x", f"x=@{tmp_path / name}")
        assert outcome.status == 2
        assert name in outcome.err
        assert "^" in outcome.err


def test_bad_variables(run):
    for text in ("{", "[1]", '{"x": 1, "x": 2}', '{"x": [[1],[1,2]]}', '{"x": null}', '{"1x": 1}'):
        outcome = run("eval", "x", "--vars", "-", stdin=text)
        assert outcome.status == 2
        assert "Traceback" not in outcome.err
    twice = run("eval", "x", "x=1", "--vars", "-", stdin='{"x": 2}')
    assert twice.status == 2


def test_deep_nesting_is_refused_at_once(run):
    outcome = run("eval", "(" * 20_000 + "x" + ")" * 20_000, "x=1", "--json")
    assert (outcome.status, outcome.error["kind"]) == (2, "syntax")
    assert len(run("eval", "(" * 20_000 + "x", "x=1").err) < 1000


def test_nothing_of_python_is_in_reach(run):
    for program in ("__import__('os')", "x.__class__", "x.__class__()", "open('f')", "eval('1')", "().__class__"):
        outcome = run("eval", program, "x=1")
        assert outcome.status == 2
        assert "internal" not in outcome.err


def test_an_internal_error_is_no_traceback(run, monkeypatch):
    def fail(*_arguments):
        raise ZeroDivisionError("made up")

    monkeypatch.setattr("gradcli.evaluation.session.run", fail)
    outcome = run("eval", "x", "x=1")
    assert outcome.status == 1
    assert outcome.err.startswith("error: internal error: ZeroDivisionError: made up\nhint: ")
    assert "Traceback" in run("eval", "x", "x=1", "--traceback").err


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("norm(y, ord=x)", "the order of a norm must be one number"),
        ("var(y, correction=x)", "a correction must be one"),
    ],
)
def test_a_parameter_that_must_be_one_number_is_no_tensor(run, program, message):
    outcome = run("eval", program, "x=[1,2]", "y=[1,2]", "--json")
    assert outcome.status == 1
    assert message in outcome.error["message"]


def test_a_derivative_that_overflows_is_not_laid_to_an_input(run):
    outcome = run("eval", "log(x)", "x=1e-308", "--order", "2", "--sparse")
    assert "a derivative is not finite, though all numbers that it is made of are" in outcome.err
