"""Tests `gradcli ops`: every function is listed and described, the stated conventions hold, and the page
docs/functions.md is current. `python -m tests.cli.test_ops` rewrites the page.
"""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.cli.commands import ops
from gradcli.errors import GradcliError
from gradcli.language import operations
from gradcli.language.names import reference, scope
from gradcli.language.names.evaluator_functions import DERIVATIVES, DETACH, FUNCTIONALS
from gradcli.primitives import table
from tests.samples import several

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"
ENTRIES = reference.entries()
NAMES = [entry.operation.name for entry in ENTRIES]
ALIASES = [alias for entry in ENTRIES for alias in entry.operation.aliases]
KEYS = ["name", "subject", "signature", "operator", "aliases", "doc", "derivative", "domain", "edges", "digits"]

SUBJECTS = [*dict.fromkeys(entry.subject for entry in ENTRIES)]

every_entry = several("entry", ENTRIES, lambda entry: entry.operation.name)


# --- the listing


def test_the_listing_fits_a_screen_and_counts_every_function(run):
    done = run("ops")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) < 80
    for subject in SUBJECTS:
        assert any(line.startswith(subject) for line in lines)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_group_has_every_function_once(run, subject):
    done = run("ops", subject)
    assert (done.status, done.err) == (0, "")
    members = [entry for entry in ENTRIES if entry.subject == subject]
    if len(members) == 1 or subject in NAMES:
        return
    lines = done.out.splitlines()[1:]
    assert len(lines) == len(members)
    for line, entry in zip(lines, members):
        assert re.split(r"[( ]", line)[0] == entry.operation.name
        assert line.endswith(entry.operation.doc)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("derivative", "diff("), ("root", "root("), ("root", "sqrt"), ("for", "for i in range"), ("^", "x**q"), ("!", "factorial("),
        ("standard deviation", "std"), ("square root", "sqrt(x)"), ("while", "while y < 10"), ("operators", "x**q"),
        ("statements", "lambda t"), ("LOSSES", "mse_loss"),
    ],
)  # fmt: skip
def test_a_word_is_looked_for(run, word, meant):
    done = run("ops", word)
    assert (done.status, done.err) == (0, "")
    assert meant in done.out


def test_statements_are_as_the_language_has_them(run):
    for program, _ in ops.STATEMENTS:
        done = (
            run("eval", program, "x=2", "--no-grad")
            if "y += x" not in program
            else run("eval", f"y = 1; {program}; y", "x=2")
        )
        assert done.status == 0, done.err


def test_the_listing_as_json(run):
    record = run("ops", "--json").json
    assert [*record] == ["schema", "functions"]
    assert [function["name"] for function in record["functions"]] == NAMES
    assert all([*function] == KEYS for function in record["functions"])


def test_the_listing_covers_all_that_a_program_can_call_or_name():
    callable_names = {*table.names(), *DERIVATIVES, *DETACH, *FUNCTIONALS}
    assert sorted([*NAMES, *ALIASES]) == sorted([*callable_names, *(scope.CONSTANTS.keys() - scope.TYPES.keys())])


def test_the_operators_are_those_of_the_evaluator():
    for known in (operations.BINARY, operations.COMPARE):
        for symbol, operation in known.items():
            assert reference.find(symbol).operation is operation


def test_listing_loads_no_array_library():
    code = "import sys; from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment\n"
    code += "main(['ops', *sys.argv[1:]], Environment.of_process())\n"
    code += "print(*({'numpy', 'scipy', 'torch', 'lark'} & set(sys.modules)), file=sys.stderr)"
    for words in ((), ("--json",)):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert done.stdout
        assert done.stderr == "\n"


# --- one function


def assert_describes(text: str, operation: Any) -> None:
    description, example = text.split("\n\n", 1)
    for part in (operation.doc, operation.derivative, operation.domain, *operation.aliases, *operation.edges):
        assert part in description
    assert example.startswith("value  ")
    assert "warning" not in example


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_described(run, alias):
    done = run("ops", alias)
    assert (done.status, done.err) == (0, "")
    assert_describes(done.out, reference.find(alias).operation)


@pytest.mark.all_cases
@every_entry
def test_a_function_is_described_with_an_example_that_prints_what_is_shown(run, entry):
    shown = run("ops", entry.operation.name)
    assert (shown.status, shown.err) == (0, "")
    assert_describes(shown.out, reference.find(entry.operation.name).operation)
    description, output = shown.out.split("\n\n", 1)
    program, *words = shlex.split(description.splitlines()[-1].removeprefix("example"))
    assert program == "gradcli"
    done = run(*words)
    assert (done.status, done.out) == (0, output)
    assert all(line.startswith("note: ") for line in done.err.splitlines())
    differentiated = "\nby  " in output
    assert differentiated == (entry.operation.derivative != "none")


@every_entry
def test_a_description_as_json(run, entry):
    record = run("ops", entry.operation.name, "--json").json
    assert [*record] == ["schema", *KEYS, "example"]
    assert record["name"] == entry.operation.name
    assert record["signature"] == entry.usage
    words = shlex.split(record["example"]["command"])
    assert words[0] == "gradcli"
    assert run(*words[1:]).json == record["example"]["output"]
    assert "warnings" not in record["example"]["output"]
    assert entry.usage.partition("(")[0] in record["example"]["output"]["program"]


@pytest.mark.parametrize(
    ("name", "function"), [("**", "pow"), ("@", "matmul"), ("-", "subtract"), ("%", "remainder"), ("<=", "less_equal")]
)
def test_an_operator_is_described(run, name, function):
    assert run("ops", name, "--json").json["name"] == function


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lgo", "did you mean 'log'?"),
        ("arcsine", "did you mean 'arcsin'?"),
        ("schur", "a Schur form is not unique: eigvals, sqrtm and logm are there"),
    ],
)
def test_an_unknown_name(run, name, hint):
    done = run("ops", name)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"error: there is no function or constant '{name}'\nhint: {hint}\n"
    assert run("ops", name, "--json").error["kind"] == "name"


def test_a_name_like_no_other(run):
    assert "gradcli ops" in run("ops", "qqqq").err


def test_wrong_usage(run):
    for words in (("sin", "cos"), ("--frobnicate",)):
        done = run("ops", *words)
        assert done.status == 2
        assert "gradcli ops --help" in done.err


# --- conventions at edge cases

INF, NAN = math.inf, math.nan
FAILS = "an error"
NONE: list[float] = []
ZEROS = [0.0, 0.0]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
COFACTORS = [[4.0, -2.0], [-2.0, 1.0]]


class Case:
    """A program at an edge case: its value, or that it fails, and the derivatives by the inputs named."""

    def __init__(self, program: str, value: Any, derivatives: dict[str, Any] | None = None, **inputs: Any) -> None:
        self.program = program
        self.value = value
        self.derivatives = derivatives or {}
        self.inputs = inputs


# Programs that show the conventions, for every function that states some.
CASES = {
    "abs": [Case("abs(x)", 0.0, {"x": 0.0}, x=0.0)],
    "sign": [Case("sign(x)", 0.0, {"x": 0.0}, x=0.0)],
    "sgn": [Case("sgn(x)", 0.0, {"x": 0.0}, x=0.0)],
    "reciprocal": [Case("reciprocal(x)", INF, {"x": -INF}, x=0.0)],
    **{name: [Case(f"{name}(x)", 2.0, {"x": 0.0}, x=2.0)] for name in ("floor", "ceil", "trunc")},
    "rint": [Case("rint(x)", v, {"x": 0.0}, x=x) for x, v in ((0.5, 0.0), (1.5, 2.0), (2.5, 2.0))],
    "round": [Case("round(x)", v, {"x": 0.0}, x=x) for x, v in ((0.5, 0.0), (1.5, 2.0), (2.5, 2.0))],
    **{name: [Case(f"{name}(A)", NAN, A=[[-1.0, 0.0], [0.0, -2.0]])] for name in ("sqrtm", "logm")},
    "angle": [Case("angle(x)", 0.0, {"x": 0.0}, x=0.0)],
    "irfft": [Case("irfft(x)[2]", -0.75, {"x": [0.25, -0.5, 0.25]}, x=[1.0, 2.0, 0.0])],
    "frac": [Case("frac(x)", 0.0, {"x": 1.0}, x=2.0)],
    "clip": [
        Case("clip(x, a, b)", 0.0, {"x": 1.0, "a": 0.0, "b": 0.0}, x=0.0, a=0.0, b=1.0),
        Case("clip(x, a, b)", 1.0, {"x": 1.0, "a": 0.0, "b": 0.0}, x=1.0, a=0.0, b=1.0),
        Case("clip(x, 1, 0)", 0.0, x=0.5),
    ],
    **{
        name: [
            Case(f"{name}(x, y)", 1.0, {"x": 0.5, "y": 0.5}, x=1.0, y=1.0),
            Case(f"{name}(x, y)", NAN, x=1.0, y=NAN),
        ]
        for name in ("maximum", "minimum")
    },
    "where": [
        Case("where(x > 0, log(x), 0)", 0.0, {"x": 0.0}, x=0.0),
        Case("where(x > 0, x, sqrt(-x)/0)", 1.0, {"x": 1.0}, x=1.0),
    ],
    "copysign": [
        Case("copysign(x, y)", -2.0, {"x": -1.0, "y": 0.0}, x=2.0, y=-0.0),
        Case("copysign(x, y)", 0.0, {"x": 0.0}, x=0.0, y=1.0),
    ],
    "fmod": [Case("fmod(x, y)", 0.0, {"y": -3.0}, x=3.0, y=1.0), Case("fmod(x, 0)", NAN, x=1.0)],
    "remainder": [Case("x % y", 0.0, {"y": -3.0}, x=3.0, y=1.0), Case("remainder(x, 0)", NAN, x=1.0)],
    "floor_divide": [
        Case("x // y", 3.0, {"x": 0.0, "y": 0.0}, x=3.0, y=1.0),
        Case("x // 0", INF, x=1.0),
        Case("x // 0", -INF, x=-1.0),
        Case("x // 0", NAN, x=0.0),
    ],
    "divide": [Case("x / 0", INF, x=1.0), Case("x / 0", -INF, x=-1.0), Case("x / 0", NAN, x=0.0)],
    "pow": [
        Case("x**q", 1.0, {"x": 0.0, "q": 0.0}, x=0.0, q=0.0),
        Case("x**q", 0.0, {"x": 0.0, "q": 0.0}, x=0.0, q=2.0),
        Case("diff(x**q, x)", 0.0, {"x": 2.0, "q": 0.0}, x=0.0, q=2.0),
        Case("diff(x**q, x)", INF, {"x": -INF, "q": -INF}, x=0.0, q=0.5),
        Case("x**q", -8.0, {"x": 12.0, "q": NAN}, x=-2.0, q=3.0),
        Case("x**q", NAN, x=-2.0, q=0.5),
    ],
    "sqrt": [Case("sqrt(x)", 0.0, {"x": INF}, x=0.0), Case("sqrt(x)", NAN, x=-1.0)],
    "rsqrt": [Case("rsqrt(x)", INF, {"x": -INF}, x=0.0)],
    "cbrt": [
        Case("cbrt(x)", 0.0, {"x": INF}, x=0.0),
        Case("diff(cbrt(x), x)", INF, {"x": -INF}, x=0.0),
        Case("diff(cbrt(x), x)", INF, {"x": INF}, x=-0.0),
    ],
    **{
        name: [Case(f"{name}(x)", -INF, {"x": INF}, x=0.0), Case(f"{name}(x)", NAN, x=-1.0)]
        for name in ("log", "log2", "log10")
    },
    "log1p": [Case("log1p(x)", -INF, {"x": INF}, x=-1.0), Case("log1p(x)", NAN, x=-2.0)],
    "logit": [Case("logit(x)", -INF, {"x": INF}, x=0.0), Case("logit(x)", INF, {"x": INF}, x=1.0)],
    "xlogy": [Case("xlogy(x, y)", 0.0, {"x": 0.0}, x=0.0, y=y) for y in (0.0, -2.0)],
    "xlog1py": [Case("xlog1py(x, y)", 0.0, {"x": 0.0}, x=0.0, y=y) for y in (-1.0, -2.0)],
    "asin": [
        Case("asin(x)", math.pi / 2, {"x": INF}, x=1.0),
        Case("diff(asin(x), x)", INF, {"x": -INF}, x=-1.0),
        Case("asin(x)", NAN, x=2.0),
    ],
    "acos": [
        Case("acos(x)", math.pi, {"x": -INF}, x=-1.0),
        Case("diff(acos(x), x)", -INF, {"x": -INF}, x=1.0),
        Case("acos(x)", NAN, x=2.0),
    ],
    "acosh": [
        Case("acosh(x)", 0.0, {"x": INF}, x=1.0),
        Case("diff(acosh(x), x)", INF, {"x": -INF}, x=1.0),
        Case("acosh(x)", NAN, x=0.5),
    ],
    "acot": [Case("acot(x)", math.pi / 2, x=0.0)],
    "acoth": [Case("acoth(x)", x * INF, x=x) for x in (1.0, -1.0)],
    "asech": [Case("asech(x)", INF, x=0.0)],
    "acsch": [Case("acsch(x)", INF, x=0.0)],
    "atanh": [Case("atanh(x)", x * INF, {"x": INF}, x=x) for x in (1.0, -1.0)],
    "atan2": [
        Case("atan2(y, x)", 0.0, {"x": 0.0, "y": 0.0}, x=0.0, y=0.0),
        Case("diff(atan2(y, x), y)", 0.0, {"x": 0.0, "y": 0.0}, x=0.0, y=0.0),
        Case("atan2(y, x)", math.pi, y=0.0, x=-1.0),
        Case("atan2(y, x)", -math.pi, y=-0.0, x=-1.0),
    ],
    "hypot": [Case("hypot(x, y)", 0.0, {"x": NAN, "y": NAN}, x=0.0, y=0.0)],
    "logaddexp": [
        Case("logaddexp(x, y)", INF, {"x": 1.0, "y": 0.0}, x=INF, y=0.0),
        Case("logaddexp(x, y)", 0.0, {"x": 0.0, "y": 1.0}, x=-INF, y=0.0),
        Case("logaddexp(x, y)", INF, {"x": 0.5, "y": 0.5}, x=INF, y=INF),
    ],
    **{name: [Case(f"{name}(x)", INF, {"x": -INF}, x=0.0)] for name in ("csc", "cot", "csch", "coth")},
    **{
        name: [
            Case(f"{name}(x, y)", 1.0, {"x": 1.0, "y": 0.0}, x=1.0, y=1.0),
            Case(f"{name}(x, y)", 1.0, {"x": 1.0, "y": 0.0}, x=1.0, y=NAN),
            Case(f"{name}(x, y)", 1.0, {"x": 0.0, "y": 1.0}, x=NAN, y=1.0),
            Case(f"{name}(x, y)", NAN, x=NAN, y=NAN),
        ]
        for name in ("fmax", "fmin")
    },
    "logaddexp2": [
        Case("logaddexp2(x, y)", INF, {"x": 1.0, "y": 0.0}, x=INF, y=0.0),
        Case("logaddexp2(x, y)", 0.0, {"x": 0.0, "y": 1.0}, x=-INF, y=0.0),
        Case("logaddexp2(x, y)", -INF, {"x": 0.5, "y": 0.5}, x=-INF, y=-INF),
    ],
    "nan_to_num": [
        Case("nan_to_num(x, a)", 3.0, {"x": 0.0, "a": 1.0}, x=NAN, a=3.0),
        Case("nan_to_num(x)", 1.7976931348623157e308, {"x": 0.0}, x=INF),
        Case("nan_to_num(x, neginf=a)", 3.0, {"x": 0.0, "a": 1.0}, x=-INF, a=3.0),
    ],
    "isclose": [
        Case("isclose(x, y)", value, x=x, y=y)
        for x, y, value in ((INF, INF, 1.0), (INF, -INF, 0.0), (1.0, INF, 0.0), (NAN, NAN, 0.0), (1.0, 1 + 1e-6, 1.0))
    ]
    + [Case("isclose(x, y, equal_nan=True)", 1.0, x=NAN, y=NAN)],
    **{name: [Case(f"{name}(x, k)", 0.0, {"x": 0.0, "k": 0.0}, x=3.0, k=5.0)] for name in ("comb", "perm")},
    "erfcinv": [Case("erfcinv(x)", INF * (1 - x), {"x": -INF}, x=x) for x in (0.0, 2.0)],
    "i0e": [Case("i0e(x)", 1.0, {"x": 0.0}, x=0.0)],
    "ellipk": [Case("ellipk(x)", INF, x=1.0)],
    "ellipe": [Case("ellipe(x)", 1.0, {"x": -INF}, x=1.0)],
    "lambertw": [Case("lambertw(x)", 0.0, {"x": 1.0}, x=0.0), Case("lambertw(x, -1)", -INF, x=0.0)],
    "entr": [Case("entr(x)", 0.0, {"x": INF}, x=0.0), Case("entr(x)", -INF, x=-1.0)],
    "rel_entr": [Case("rel_entr(x, y)", 0.0, {"x": -INF, "y": 0.0}, x=0.0, y=2.0)]
    + [Case("rel_entr(x, y)", INF, x=x, y=y) for x, y in ((-1.0, 1.0), (1.0, -1.0), (1.0, 0.0))],
    "threshold": [Case("threshold(x, 2, y)", 5.0, {"x": 0.0, "y": 1.0}, x=2.0, y=5.0)],
    "hardtanh": [Case("hardtanh(x)", x, {"x": 0.0}, x=x) for x in (-1.0, 1.0)],
    "relu6": [Case("relu6(x)", x, {"x": 0.0}, x=x) for x in (0.0, 6.0)],
    "hardsigmoid": [Case("hardsigmoid(x)", (x + 3) / 6, {"x": 0.0}, x=x) for x in (-3.0, 3.0)],
    "hardswish": [Case("hardswish(x)", x * (x > 0), {"x": float(x > 0)}, x=x) for x in (-3.0, 3.0)],
    "selu": [Case("selu(x)", 0.0, {"x": 1.0507009873554805 * 1.6732632423543773}, x=0.0)],
    "softshrink": [Case("softshrink(x, a)", 0.0, {"x": 0.0, "a": 0.0}, x=0.5, a=0.5)],
    "hardshrink": [Case("hardshrink(x)", 0.0, {"x": 0.0}, x=0.5)],
    "sinc": [
        Case("sinc(x)", 0.0, {"x": 0.5}, x=2.0),
        Case("sinc(x)", 1.0, {"x": 0.0}, x=0.0),
        Case("diff(sinc(x), x)", 0.0, {"x": -(math.pi**2) / 3}, x=0.0),
    ],
    "relu": [Case("relu(x)", 0.0, {"x": 0.0}, x=0.0)],
    "leaky_relu": [Case("leaky_relu(x, 0.3)", 0.0, {"x": 0.3}, x=0.0)],
    "elu": [Case("elu(x, 0.3)", 0.0, {"x": 0.3}, x=0.0)],
    "erfinv": [Case("erfinv(x)", x * INF, {"x": INF}, x=x) for x in (1.0, -1.0)],
    "ndtri": [Case("ndtri(p)", v, {"p": INF}, p=p) for p, v in ((0.0, -INF), (1.0, INF))],
    "sum": [Case("sum(x)", 0.0, x=NONE)],
    "mean": [Case("mean(x)", NAN, x=NONE)],
    "prod": [Case("prod(x)", 0.0, {"x": [6.0, 0.0, 0.0]}, x=[0.0, 2.0, 3.0]), Case("prod(x)", 1.0, x=NONE)],
    **{
        name: [
            Case(f"{name}(x)", 1.0, {"x": [0.5, 0.0, 0.5]}, x=[1.0, other, 1.0]),
            Case(f"{name}(x)", FAILS, x=NONE),
        ]
        for name, other in (("max", 0.0), ("min", 2.0))
    },
    "var": [Case("var(x, correction=1)", NAN, x=[1.0])],
    "std": [Case("std(x)", 0.0, {"x": ZEROS}, x=[3.0, 3.0]), Case("std(x, correction=1)", NAN, x=[1.0])],
    "median": [
        Case("median(x)", 2.0, {"x": [0.0, 0.5, 0.5]}, x=[1.0, 2.0, 2.0]),
        Case("median(x)", FAILS, x=NONE),
    ],
    "norm": [
        *(Case(f"norm(x, {order})", 0.0, {"x": ZEROS}, x=ZEROS) for order in ("1", "2", "3", "0.5", "inf")),
        Case("norm(x)", 0.0, x=NONE),
    ],
    "logsumexp": [
        Case("logsumexp(x)", -INF, x=NONE),
        Case("logsumexp(x)", INF, {"x": [0.0, 1.0, 0.0]}, x=[1.0, INF, -INF]),
        Case("logsumexp(x)", INF, {"x": [0.5, 0.0, 0.5]}, x=[INF, 1.0, INF]),
    ],
    "any": [Case("any(x)", 0.0, x=NONE)],
    "all": [Case("all(x)", 1.0, x=NONE)],
    **{
        name: [Case(f"{name}(x)", 1.0, x=[other, 2.0, 2.0]), Case(f"{name}(x)", FAILS, x=NONE)]
        for name, other in (("argmax", 0.0), ("argmin", 3.0))
    },
    "cumprod": [Case("sum(cumprod(x))", 2.0, {"x": [1.0, 8.0, 0.0]}, x=[2.0, 0.0, 3.0])],
    "sort": [
        Case("sort(x) @ [1, 10, 100]", 211.0, {"x": [100.0, 1.0, 10.0]}, x=[2.0, 1.0, 1.0]),
        Case("sort(x)[:2]", [1.0, 2.0], x=[NAN, 2.0, 1.0]),
    ],
    "argsort": [Case("argsort(x)", [1.0, 2.0, 0.0], x=[2.0, 1.0, 1.0]), Case("argsort(x)", [1.0, 0.0], x=[NAN, 1.0])],
    "topk": [
        Case("topk(x, 2)[1]", [1.0, 2.0], x=[0.0, 2.0, 2.0]),
        Case("topk(x, 2)[0]", [NAN, 2.0], x=[1.0, NAN, 2.0]),
    ],
    **{
        name: [
            Case(f"{name}(x)[1]", [0.0, 0.0, 2.0], x=[2.0, other, 2.0]),
            Case(f"{name}(x)[0]", [1.0, NAN, NAN], x=[1.0, NAN, other]),
        ]
        for name, other in (("cummax", 1.0), ("cummin", 3.0))
    },
    "nansum": [Case("nansum(x)", 0.0, {"x": [0.0]}, x=[NAN])],
    "nanmean": [Case("nanmean(x)", NAN, x=[NAN]), Case("nanmean(x)", 2.0, {"x": [1.0, 0.0]}, x=[2.0, NAN])],
    "matrix_rank": [Case("matrix_rank(diag(x))", v, x=[1.0, y]) for y, v in ((1e-15, 2.0), (1e-16, 1.0), (0.0, 1.0))],
    "digitize": [
        Case("digitize(x, [1, 2])", [0.0, 1.0, 2.0], x=[0.0, 1.0, 2.0]),
        Case("digitize(x, [2, 1])", [2.0, 1.0, 0.0], x=[0.0, 1.0, 2.0]),
    ],
    "nanprod": [Case("nanprod(x)", 1.0, {"x": [0.0]}, x=[NAN])],
    **{
        name: [
            Case(f"{name}(x)", 2.0, {"x": [0.5, 0.0, 0.5]}, x=[2.0, NAN, 2.0]),
            Case(f"{name}(x)", NAN, x=[NAN, NAN]),
            Case(f"{name}(x)", FAILS, x=NONE),
        ]
        for name in ("nanmax", "nanmin", "nanmedian")
    },
    "nanvar": [Case("nanvar(x, correction=2)", NAN, x=[1.0, NAN, 3.0])],
    "nanstd": [
        Case("nanstd(x)", 0.0, {"x": [0.0, 0.0, 0.0]}, x=[2.0, NAN, 2.0]),
        Case("nanstd(x, correction=2)", NAN, x=[1.0, NAN, 3.0]),
    ],
    **{
        name: [
            Case(f"{name}(x, {half})", 2.0, {"x": [0.0, 0.5, 0.5]}, x=[1.0, 2.0, 2.0]),
            Case(f"{name}(x, q)", 1.5, {"q": 2.0 / half}, x=[1.0, 3.0, -2.0], q=half * 1.25),
            Case(f"{name}(x, {half})", NAN, x=[1.0, NAN]),
            Case(f"{name}(x, {half})", FAILS, x=NONE),
        ]
        for name, half in (("quantile", 0.5), ("percentile", 50))
    },
    "mse_loss": [
        Case("mse_loss(x, y, reduction='none')", [1.0, 4.0], x=[1.0, 3.0], y=[2.0, 1.0]),
        Case("mse_loss(x, y, reduction='sum')", 5.0, {"x": [-2.0, 4.0]}, x=[1.0, 3.0], y=[2.0, 1.0]),
    ],
    "l1_loss": [Case("l1_loss(x, y)", 0.5, {"x": [0.0, 0.5]}, x=[1.0, 3.0], y=[1.0, 2.0])],
    "smooth_l1_loss": [Case("smooth_l1_loss(x, y, beta=0)", 0.25, {"x": 1.0}, x=1.25, y=1.0)],
    "binary_cross_entropy": [
        Case("binary_cross_entropy(p, y)", 100.0, {"p": 0.0}, p=0.0, y=1.0),
        Case("binary_cross_entropy(p, y)", 0.0, {"p": 1.0}, p=0.0, y=0.0),
        Case("binary_cross_entropy(p, y)", 0.0, {"p": -1.0}, p=1.0, y=1.0),
    ],
    "nll_loss": [
        Case("nll_loss(x, [1, -100])", -2.0, {"x": [[0.0, -1.0], ZEROS]}, x=[[1.0, 2.0], [3.0, 4.0]]),
        Case("nll_loss(x, [-100])", NAN, x=[[1.0, 2.0]]),
    ],
    "cross_entropy": [
        Case("cross_entropy(x, [0.5, 0.5])", math.log(2.0), {"x": ZEROS}, x=ZEROS),
        Case("cross_entropy(x, [1, -100])", math.log(2.0), {"x": [[0.5, -0.5], ZEROS]}, x=[ZEROS, [1.0, 2.0]]),
    ],
    "gaussian_nll_loss": [Case("gaussian_nll_loss(x, 1, v)", math.log(1e-6) / 2, {"v": 0.0}, x=1.0, v=0.0)],
    "normalize": [Case("sum(normalize(x, dim=0))", 0.0, {"x": [1e12, 1e12]}, x=ZEROS)],
    "rms_norm": [Case("rms_norm(x, 1)", [1 / math.sqrt(2.0)], x=[2.0**-26])],
    "scaled_dot_product_attention": [
        Case("sum(scaled_dot_product_attention(x, x, [[2], [6]], [[1, 0], [0, 0]] == 1))", 2.0, {"x": [[0.0], [0.0]]}, x=[[1.0], [2.0]]),
        Case("scaled_dot_product_attention(x, x, [[2], [6]], [[2, 2], [-inf, 1]])", [[4.0], [6.0]], x=[[0.0], [0.0]]),
        Case("scaled_dot_product_attention(x, x, [[2], [6]], is_causal=True)", [[2.0], [4.0]], x=[[0.0], [0.0]]),
    ],
    "conv1d": [
        Case("conv1d(x, [[[1, 2]]])", [[5.0, 8.0]], x=[[1.0, 2.0, 3.0]]),
        Case("conv1d(x, [[[1, 2]]], padding='same')", [[5.0, 8.0, 3.0]], x=[[1.0, 2.0, 3.0]]),
        Case("conv1d(x, [[[1, 2]]], padding=1)", [[2.0, 5.0, 8.0, 3.0]], x=[[1.0, 2.0, 3.0]]),
    ],
    "conv2d": [Case("conv2d(x, [[[[1, 2]]]])", [[[5.0, 8.0]]], x=[[[1.0, 2.0, 3.0]]])],
    "avg_pool1d": [Case("avg_pool1d(x, 2, padding=1)", [[0.5, 2.5]], x=[[1.0, 2.0, 3.0]])],
    "avg_pool3d": [
        Case("avg_pool3d(x, (1, 1, 2), padding=(0, 0, 1))", [[[[0.5, 2.5]]]], x=[[[[1.0, 2.0, 3.0]]]]),
        Case("avg_pool3d(x, (1, 1, 2), ceil_mode=True)", [[[[1.5, 3.0]]]], x=[[[[1.0, 2.0, 3.0]]]]),
    ],
    "max_pool3d": [Case("max_pool3d(x, (1, 1, 2), padding=(0, 0, 1))", [[[[-1.0, -2.0]]]], x=[[[[-1.0, -2.0, -3.0]]]])],
    "interpolate": [
        Case("interpolate(x, 4, mode='linear')", [[[1.0, 1.5, 2.5, 3.0]]], x=[[[1.0, 3.0]]]),
        Case("interpolate(x, 3, mode='linear', align_corners=True)", [[[1.0, 2.0, 3.0]]], x=[[[1.0, 3.0]]]),
    ],
    "conv3d": [
        Case("conv3d(x, [[[[[1, 2]]]]])", [[[[5.0, 8.0]]]], x=[[[[1.0, 2.0, 3.0]]]]),
        Case("conv3d(x, [[[[[1, 1, 1]]]]], padding='same')", [[[[3.0, 6.0, 5.0]]]], x=[[[[1.0, 2.0, 3.0]]]]),
    ],
    "batch_norm": [
        Case("sum(batch_norm(x, [1], [4], momentum=0.5, eps=0))", 2.0, {"x": [[0.5], [0.5]]}, x=[[2.0], [4.0]])
    ],
    "instance_norm": [Case("instance_norm(x, [5], [7], eps=0)", [[[-1.0, 1.0]]], x=[[[2.0, 4.0]]])],
    "embedding": [Case("sum(embedding([0, 1, 1], w, padding_idx=1))", 8.0, {"w": [[1.0], [0.0]]}, w=[[2.0], [3.0]])],
    "margin_ranking_loss": [Case("margin_ranking_loss([1, 2], y, 1, reduction='none')", [1.0, 0.0], y=[2.0, 1.0])],
    "soft_margin_loss": [Case("soft_margin_loss(x, 1, 'sum')", 2 * math.log(2.0), x=[0.0, 0.0])],
    "hinge_embedding_loss": [Case("hinge_embedding_loss(x, [1, -1], reduction='none')", [3.0, 0.5], x=[3.0, 0.5])],
    "cosine_embedding_loss": [Case("cosine_embedding_loss(x, [[2, 0], [0, 1]], [1, -1], 0, 'none')", ZEROS, x=[[1.0, 0.0], [1.0, 0.0]])],
    "multi_margin_loss": [Case("multi_margin_loss(x, [0, 1], reduction='none')", [0.25, 0.0], x=[[1.0, 0.5], [0.0, 2.0]])],
    "scatter_reduce": [
        Case("scatter_reduce(x, 0, [0, 0], [5, 6], 'sum', include_self=False)", [11.0, 2.0], x=[1.0, 2.0]),
        Case("scatter_reduce(x, 0, [0], [1], 'amax') @ [4, 1]", 6.0, {"x": [2.0, 1.0]}, x=[1.0, 2.0]),
    ],
    "bucketize": [Case("bucketize(x, [1, 2])", [0.0, 0.0, 2.0], x=[0.0, 1.0, 7.0])],
    "multilabel_margin_loss": [Case("multilabel_margin_loss(x, [[1, -1, 0]], 'sum')", 3.5 / 3, x=[[1.0, 0.5, 1.5]])],
    "index_reduce": [
        Case("index_reduce(x, 0, [0, 0], [5, 6], 'prod', include_self=False)", [30.0, 2.0], x=[1.0, 2.0]),
        Case("index_reduce(x, 0, [0], [1], 'amax') @ [4, 1]", 6.0, {"x": [2.0, 1.0]}, x=[1.0, 2.0]),
    ],
    "adaptive_max_pool1d": [Case("adaptive_max_pool1d(x, 1, return_indices=True)[1]", [[2.0]], {}, x=[[1.0, 2.0, 5.0]])],
    "adaptive_max_pool3d": [
        Case("adaptive_max_pool3d(x, 1, return_indices=True)[1]", [[[[2.0]]]], {}, x=[[[[1.0, 2.0, 5.0]]]])
    ],
    "lp_pool1d": [Case("lp_pool1d(x, 1, 2)", [[3.0, 7.0]], x=[[1.0, 2.0, 3.0, 4.0]])],
    "lp_pool2d": [Case("lp_pool2d(x, 1, (1, 2))", [[[3.0, 7.0]]], x=[[[1.0, 2.0, 3.0, 4.0]]])],
    "lp_pool3d": [Case("lp_pool3d(x, 1, (1, 1, 2))", [[[[3.0, 7.0]]]], x=[[[[1.0, 2.0, 3.0, 4.0]]]])],
    "max_unpool2d": [Case("max_unpool2d(x, [[[1]]], (1, 2), output_size=(1, 3))", [[[0.0, 7.0, 0.0]]], x=[[[7.0]]])],
    "max_unpool3d": [
        Case("max_unpool3d(x, [[[[1]]]], (1, 1, 2), output_size=(1, 1, 3))", [[[[0.0, 7.0, 0.0]]]], x=[[[[7.0]]]])
    ],
    "adaptive_max_pool2d": [Case("adaptive_max_pool2d(x, 1, return_indices=True)[1]", [[[2.0]]], {}, x=[[[1.0, 2.0, 5.0]]])],
    "max_unpool1d": [Case("max_unpool1d(x, [[1]], 2, output_size=3)", [[0.0, 7.0, 0.0]], x=[[7.0]])],
    "multilabel_soft_margin_loss": [Case("multilabel_soft_margin_loss(x, [[1, 0]], reduction='sum')", math.log(2.0), x=[ZEROS])],
    "triplet_margin_loss": [
        Case("triplet_margin_loss(a, [[0]], [[3]], eps=0)", 0.0, a=[[0.0]]),
        Case("triplet_margin_loss(a, [[2]], [[3]], eps=0, swap=True)", 2.0, a=[[0.0]]),
        Case("triplet_margin_loss(a, [[0], [0]], [[0], [0]], eps=0, reduction='none')", [1.0, 1.0], a=[[0.0], [0.0]]),
    ],
    "dist": [Case("dist(x, [1, 2])", 0.0, {"x": ZEROS}, x=[1.0, 2.0])],
    "pdist": [Case("sum(pdist(x))", 0.0, {"x": [ZEROS, ZEROS]}, x=[[1.0, 2.0], [1.0, 2.0]])],
    "cov": [
        Case("cov(x, fweights=[1, 2])", 3.0, x=[1.0, 4.0]),
        Case("cov(x, fweights=[1, 2, 1], aweights=[0.5, 1, 0.7])", 1.993333333333333, x=[1.0, 4.0, 2.0]),
        Case("cov(x, aweights=[1, 1])", 4.5, x=[1.0, 4.0]),
        Case("cov(x)", NAN, x=[1.0]),
    ],
    "index_copy": [Case("index_copy(x, 0, [0, 0], [5, 6])", [6.0, 2.0], {}, x=[1.0, 2.0])],
    "index_put": [
        Case("index_put(x, ([0, 0],), [5, 6])", [6.0, 2.0], {}, x=[1.0, 2.0]),
        Case("index_put(x, ([0, 0],), [5, 6], accumulate=True)", [12.0, 2.0], x=[1.0, 2.0]),
    ],
    "avg_pool2d": [Case("avg_pool2d(x, (1, 2), padding=(0, 1))", [[[0.5, 2.5]]], x=[[[1.0, 2.0, 3.0]]])],
    "max_pool1d": [Case("max_pool1d(x, 2, padding=1)", [[-1.0, -2.0]], x=[[-1.0, -2.0, -3.0]])],
    "max_pool2d": [Case("max_pool2d(x, (1, 2), padding=(0, 1))", [[[-1.0, -2.0]]], x=[[[-1.0, -2.0, -3.0]]])],
    "scatter": [Case("scatter(x, 0, [1, 1], y) @ [1, 10]", 40.0, {"x": [1.0, 0.0], "y": [0.0, 10.0]}, x=ZEROS, y=[3.0, 4.0])],
    "pad": [
        Case(f"pad(x, 2, mode='{mode}')", value, x=[1.0, 2.0, 3.0])
        for mode, value in (
            ("constant", [0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0]),
            ("edge", [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]),
            ("reflect", [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]),
            ("symmetric", [2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0]),
            ("wrap", [2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0]),
        )
    ],
    "interp": [
        Case("interp(x, [0, 1, 3], [0, 2, 3])", 2.0, {"x": 0.5}, x=1.0),
        Case("interp(x, [0, 1, 3], [0, 2, 3])", 3.0, {"x": 0.0}, x=3.0),
        Case("interp(x, [0, 1, 3], [0, 2, 3])", 0.0, {"x": 0.0}, x=-1.0),
    ],
    "convolve": [
        Case("convolve(x, [1, 2], 'same')", [1.0, 4.0, 7.0], x=[1.0, 2.0, 3.0]),
        Case("convolve(x, [1, 2], 'valid')", [4.0, 7.0], x=[1.0, 2.0, 3.0]),
    ],
    "cdist": [Case("sum(cdist(x, [[1, 2]]))", 0.0, {"x": [ZEROS]}, x=[[1.0, 2.0]])],
    "slogdet": [Case("slogdet(A)[0]", 0.0, A=SINGULAR), Case("slogdet(A)[1]", -INF, A=SINGULAR)],
    "solve_triangular": [
        Case("solve_triangular(A, [2, 8], trans=1)", [2.0, 1.0], A=[[1.0, 2.0], [9.0, 4.0]]),
        Case("solve_triangular(A, [2, 8], upper=False)", [2.0, 1.0], A=[[1.0, 9.0], [2.0, 4.0]]),
        Case("solve_triangular(A, [2, 8], unitriangular=True)", [-14.0, 8.0], A=[[5.0, 2.0], [9.0, 4.0]]),
    ],
    "lstsq": [Case("sum(lstsq(A, [1, 2])[1])", 0.0, A=IDENTITY)],
    "svd": [
        Case("svd(A)", FAILS, A=[[1.0, 2.0]]),
        Case("svd(A)[0]", [[1.0, 0.0], [0.0, 1.0]], A=[[-2.0, 0.0], [0.0, 1.0]]),
    ],
    "matrix_norm": [Case("matrix_norm(A)", 0.0, {"A": [ZEROS, ZEROS]}, A=[ZEROS, ZEROS])],
    "inv": [Case("inv(A)", FAILS, A=SINGULAR)],
    "solve": [Case("solve(A, [1, 1])", FAILS, A=SINGULAR)],
    "det": [Case("det(A)", 0.0, {"A": COFACTORS}, A=SINGULAR)],
    "logdet": [Case("logdet(A)", -INF, A=SINGULAR), Case("logdet(A)", NAN, A=[[1.0, 0.0], [0.0, -1.0]])],
    "cholesky": [
        Case("cholesky(A)", [[1.0, 0.0], [2.0, 3.0]], {}, A=[[1.0, 1.0], [3.0, 13.0]]),
        Case("cholesky(A)", FAILS, A=SINGULAR),
    ],
    "eigvalsh": [
        Case("eigvalsh(A)", [1.0, 3.0], A=[[2.0, 0.0], [2.0, 2.0]]),
        Case("hessian(sum(eigvalsh(A)**2), A)[0, 1, 0, 1]", NAN, A=IDENTITY),
    ],
    "eigh": [
        Case("eigh(A)[0]", [1.0, 3.0], A=[[2.0, 0.0], [2.0, 2.0]]),
        Case("hessian(sum(eigh(A)[0]**2), A)[0, 1, 0, 1]", NAN, A=IDENTITY),
        Case("w, V = eigh(A); abs(V)", [[math.sqrt(0.5)] * 2] * 2, A=[[2.0, 1.0], [1.0, 2.0]]),
    ],
    "qr": [Case("qr(A)[1][0, 0]", -5.0, A=[[3.0, 1.0], [4.0, 2.0]])],
    "svdvals": [
        Case("svdvals(A)[1]", 0.0, {"A": [ZEROS, ZEROS]}, A=[[3.0, 0.0], [0.0, 0.0]]),
        Case("hessian(sum(svdvals(A)), A)[0, 1, 0, 1]", NAN, A=IDENTITY),
    ],
    "matrix_power": [Case("sum(matrix_power(A, 0))", 2.0, {"A": [ZEROS, ZEROS]}, A=SINGULAR)],
    "diff": [
        Case("diff(3*y, x)", 0.0, x=1.0, y=2.0),
        Case("diff(x**2, x, 0)", 4.0, {"x": 4.0}, x=2.0),
    ],
    "jacobian": [Case("jacobian([y, 1], x)", ZEROS, x=1.0, y=2.0)],
    "hessian": [Case("hessian(y, x)", 0.0, x=1.0, y=2.0)],
    "jvp": [Case("sum(jvp([y, 1], x, 3))", 0.0, x=1.0, y=2.0)],
    "vjp": [Case("vjp([y, 1], x, 3)", 0.0, x=1.0, y=2.0)],
    "integrate": [
        Case("integrate(exp(-x*t), t, 0, inf)", 0.5, x=2.0),
        Case("integrate(x/t, t, 0, 1)", FAILS, x=2.0),
        Case("integrate((1-t)**-x, t, 0, 1)", FAILS, x=0.99),
    ],
    "nsum": [Case("nsum(x**k, k, 0, inf)", 2.0, x=0.5), Case("nsum(x/k, k, 1, inf)", FAILS, x=2.0)],
    "limit": [
        Case("limit(x + 1/n, n, inf)", 2.0, x=2.0),
        Case("limit(x/n, n, 0)", FAILS, x=2.0),
    ],
    "root": [
        Case("root(lambda y: y**2 + x, 1)", FAILS, x=2.0),
        Case("root(lambda y: x*y**2, 1)", FAILS, x=2.0),
    ],
}  # fmt: skip


def test_every_stated_convention_has_a_case():
    assert CASES.keys() == {entry.operation.name for entry in ENTRIES if entry.operation.edges}


@pytest.mark.all_cases
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{name}-{i}") for name, cases in CASES.items() for i, case in enumerate(cases)]
)
def test_a_convention_holds(case):
    program = gradcli.compile(case.program)
    inputs = {name: np.asarray(value, dtype=float) for name, value in case.inputs.items()}
    if case.value == FAILS:
        with pytest.raises(GradcliError):
            program(**inputs)
        return
    np.testing.assert_allclose(program(**inputs), case.value, rtol=1e-14)
    if case.derivatives:
        _, found = program.value_and_grad(inputs, wrt=tuple(case.derivatives))
        for name, expected in case.derivatives.items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-14)


# --- the page


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == ops.page(), "python -m tests.cli.test_ops writes it anew"


def test_every_function_is_in_the_contents_and_has_a_row():
    contents = re.search(r"^## Contents\n(.*?)^## ", ops.page(), re.MULTILINE | re.DOTALL)[1]
    linked = dict(re.findall(r"\[`(\w+)`\]\(#([\w-]+)\)", contents))
    assert [*linked] == NAMES
    rows = dict(re.findall(r'^\| <a id="([\w-]+)"></a>`(\w+)', ops.page(), re.MULTILINE))
    assert rows == {anchor: name for name, anchor in linked.items()}


def test_a_cell_of_the_page_is_one_cell():
    widths = {}
    for line in ops.page().splitlines():
        if line.startswith("## "):
            section = line
        elif line.startswith("|"):
            widths.setdefault(section, set()).add(line.count("|"))
    assert widths
    assert all(len(found) == 1 for found in widths.values())


@pytest.mark.parametrize(("columns", "lines"), [(40, 50), (80, 23)])
def test_the_groups_fit_the_terminal(run, columns, lines):
    shown = run("ops", variables={"COLUMNS": str(columns)}).out.splitlines()
    assert max(map(len, shown)) < columns
    assert len(shown) <= lines


if __name__ == "__main__":
    PAGE.write_text(ops.page(), encoding="utf-8")
