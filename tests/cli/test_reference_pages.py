"""Tests that the tables of docs/ agree with the code: commands, JSON keys, kinds of errors, Python names, limits,
folders."""

from __future__ import annotations

import builtins
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gradcli
from gradcli import errors, limits, timing
from gradcli.arrays import backends
from gradcli.cli.main import COMMANDS
from gradcli.io import json_numbers, text_lines
from gradcli.language.syntax import layout, lexer

DOCS = Path(__file__).resolve().parents[2] / "docs"


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def sections(page: str) -> dict[str, str]:
    """The text under each heading of the second level."""
    heads = re.split(r"^## (.*)\n", text_of(page), flags=re.MULTILINE)[1:]
    return dict(zip(heads[::2], heads[1::2]))


def rows(text: str) -> Iterator[list[str]]:
    """The cells of the tables in a text, without headers."""
    for found in re.findall(r"^\| .*\n\|-.*\n((?:\|.*\n?)*)", text, re.MULTILINE):
        yield from ([cell.strip() for cell in row.split("|")[1:-1]] for row in found.splitlines())


# --- commands


def test_every_command_has_its_help_on_the_page() -> None:
    shown = re.findall(r"^\$ (gradcli .*)--help(?:-all)?$", text_of("commands.md"), re.MULTILINE)
    assert [words.strip() for words in shown] == ["gradcli", *(f"gradcli {name}" for name in COMMANDS)]
    assert [*sections("commands.md")] == [words.strip() for words in shown]
    contents = re.findall(r"^- \[gradcli (\w+)\]\(#gradcli-(\w+)\): (.*)$", text_of("commands.md"), re.MULTILINE)
    assert contents == [(name, name, summary) for name, summary in COMMANDS.items()]


# --- JSON

# Members whose keys are names of the program.
RESULTS = ("grad", "derivatives", "jacobian", "retained")
MOVED = ("point", "multipliers", "sensitivity", "sensitivity.*.point")
NAMED = (
    "cells",
    "box",
    "center",
    "estimates",
    "derived",
    "random.groups",
    *(f"random.groups.*.{part}" for part in ("deviations", "correlations", "effects", "effects.*")),
    "responses",
    "contours",
    "comparison",
    *(f"{method}.{group}" for method in ("bootstrap", "jackknife") for group in ("estimates", "derived")),
    "monotonic",
    "wirtinger",
    "certified.wirtinger",
    "ranges",
    "curves[].values",
    "formulas[].derivatives",
    "formulas[].values",
    "values",
    "roots[].point",
    "roots[].box",
    "proof.minimisers[].box",
    "proof.left[]",
    "posterior",
    "support[].point",
    "exact[].point",
    "parameters",
    "roots[].derivatives",
    "roots[].derivatives.*",
    *RESULTS,
    *MOVED,
    *(f"certified.{part}" for part in RESULTS),
    "timing",
    "warnings[].digits",
    "inputs",
    "gradients",
    "second",
    "steps[].with",
    "steps[].assigned",
)
# Members whose contents are described elsewhere.
CLOSED = ("functions", "example.output")
# Digits of chaotic solutions differ from one processor to another, so that no page shows them.
LORENZ = "f(t, s) = [10*(s[1] - s[0]), s[0]*(r - s[2]) - s[1], s[0]*s[1] - 8/3*s[2]]; solve_ivp(f, (0, 40), [1, 1, 1]).y[0, 1]"
# What commands that read tables read.
ROWS = {"gradcli map": "r\n28\n"}
# Calls whose output no block of the page shows completely.
FURTHER: dict[str, tuple[tuple[str, ...], ...]] = {
    "gradcli eval": (
        ("eval", "x", "x=1", "--timing", "--json"),
        ("eval", "x", "x=0..1", "--enclose", "--json"),
        ("eval", "sin(x)**2 + cos(x)**2", "x=0.7", "--order", "2", "--json"),
    ),
    "gradcli fit": (
        (
            "fit",
            "rate ~ V*conc/(K + conc)",
            str(DOCS.parent / "examples/data/puromycin.csv"),
            "--by",
            "state",
            "--json",
        ),
        (
            "fit",
            "y ~ a + b*x",
            "x=[1,2,3,4]",
            "y=[1.1,1.9,3.2,3.9]",
            "--contour",
            "a,b",
            "--against",
            "y ~ a",
            "--derive",
            "r=a/b",
            "--bootstrap",
            "20",
            "--jackknife",
            "--cross-validate",
            "4",
            "--json",
        ),
        ("fit", "y ~ a", "y=[1,2,4]", "g=[1,1,2]", "--errors", "cluster:g", "--json"),
        ("fit", "y ~ a; z ~ 2*a", "y=[1,2,4]", "z=[3,5,6]", "--json"),
        ("fit", "z ~ a", "z=[1,2j,4]", "--json"),
        (
            "fit",
            "y ~ a + b*x + (x|g)",
            "x=[0,1,2,0,1,2,0,1,2]",
            "y=[1,2,5,3,3,5,2,2,3]",
            "g=[1,1,1,2,2,2,3,3,3]",
            "--json",
        ),
    ),
    "gradcli map": (("map", LORENZ, "--no-grad", "--json"),),
    "gradcli minimize": (
        ("minimize", "abs(x - c)", "x=0.3", "c=1", "--sensitivity", "c", "--json"),
        ("minimize", "x**2", "x=1", "--bounds", "x=-1:1", "--prove", "--json"),
    ),
    "gradcli solve": (
        ("solve", "x**2 = 2", "x=0..3", "--all", "--prove", "--json"),
        ("solve", "x**2 = 0", "x=-1..1", "--all", "--prove", "--json"),
    ),
    "gradcli sample": (
        (
            "sample",
            "-sum((y - m)**2)",
            str(Path(__file__).parents[1] / "data/missing.csv"),
            "m=1",
            "--draws",
            "20",
            "--json",
        ),
    ),
    "gradcli design": (("design", "y ~ a*sqrt(x)", "x=-1..1", "--derive", "a", "--rows", "1", "--json"),),
    "gradcli propagate": (
        ("propagate", "a*b", "a=1±0.1", "b=1±0.1", "--sobol", "--morris", "--samples", "1e3", "--json"),
        ("propagate", "a", "a=1±0.1", "--adaptive", "1", "--json"),
        ("propagate", "det([[a,b,c],[b,c,a],[c,a,b]])", "a=1±1", "b=2±1", "c=3±1", "--limits", "--quiet", "--json"),
    ),
    "gradcli explain": (
        ("explain", "y = x; for i in range(2) { y = y*x + i }; sum([y, x])*log(q)", "x=-2", "q=0", "--json"),
        ("explain", "y = x; for i in range(99) { y = sin(y) }; y", "x=2", "--json"),
        ("explain", "sum(x*x)", "x=[1,2]", "--json"),
        ("explain", "log(x)", "x=0", "--symbolic", "--json"),
    ),
    "gradcli diff": (
        ("diff", "x", "--to", "polars", "--json"),
        ("diff", "x; x**2", "x=1", "--json"),
        ("diff", "x", "--to", "excel", "--json"),
        ("diff", "x", "--to", "sql", "--dialect", "sqlite", "--json"),
    ),
    "gradcli plot": (
        ("plot", "k/x", "x=-1..1", "k=1,2", "--data", str(DOCS.parent / "examples/data/cooling.csv"), "--json"),
        ("plot", "1/(x - y)", "x=0..1", "y=0..1", "--json"),
        ("plot", "exp(1j*w)", "w=0..1", "--nyquist", "--json"),
        ("plot", "z**2", "z=-1-1j..1+1j", "--json"),
    ),
    "gradcli ops": (("ops", "--json"),),
    "gradcli backends": (("backends", "--json"),),
    "gradcli series": (("series", "exp(-1/x**2)", "x=0", "--json"),),
}
JSON = sections("json.md")


def keys_of(value: Any, path: str = "") -> Iterator[str]:
    """The paths in a JSON value that lead to numbers, strings and lists of them."""
    if path in CLOSED or not isinstance(value, (dict, list)):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from keys_of(item, f"{path}.*" if path in NAMED else f"{path}.{key}".removeprefix("."))
    elif any(isinstance(item, dict) for item in value):
        for item in value:
            yield from keys_of(item, f"{path}[]")
    else:
        yield path


@pytest.mark.all_cases
@pytest.mark.parametrize("title", JSON)
def test_the_keys_of_json_are_those_on_the_page(title: str, run: Any) -> None:
    documented = {key for row in rows(JSON[title]) for key in re.findall("`(.*?)`", row[0])}
    printed = re.findall(r"^\{.*\}$", JSON[title], re.MULTILINE)
    for words in FURTHER.get(title, ()):
        done = run(*words, stdin=ROWS.get(title))
        # Commands that read tables write theirs to standard output, and the counts of rows beside it.
        printed += re.findall(r"^\{.*\}$", done.err if title in ROWS else done.out, re.MULTILINE)
    found = {key for line in printed for key in keys_of(json.loads(line))}
    # An empty list or null may stand in place of objects whose keys are on the page.
    of_objects = {key[: mark.start()] for key in documented for mark in re.finditer(r"\[\]|\.", key)}
    assert documented - of_objects == found - of_objects


# --- errors


def kinds() -> list[type[errors.GradcliError]]:
    return [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.GradcliError)]


def also_a(kind: type[errors.GradcliError]) -> Iterator[str]:
    """The built-in exceptions, except for general ones, that catch a kind of error."""
    for name in ("ValueError", "NameError", "TypeError", "RuntimeError", "AssertionError"):
        if issubclass(kind, getattr(builtins, name)):
            yield name


def test_the_kinds_of_errors_are_those_on_the_page() -> None:
    documented = {
        (re.findall("`(.*?)`", name)[0], int(status), kind.strip("`"), frozenset(re.findall("`(.*?)`", also)))
        for kind, status, name, also, _ in rows(sections("errors.md")["Kinds of errors"])
    }
    found = {(e.__name__, int(e.exit_status), e.kind, frozenset(also_a(e))) for e in kinds()}
    assert documented == found


def test_every_exit_status_is_on_the_page() -> None:
    found = [int(status) for status, _ in rows(sections("errors.md")["Exit status"])]
    assert found == [int(status) for status in errors.ExitStatus]


# --- limits


def test_the_limits_are_those_on_the_page() -> None:
    documented = {what: int(much.split()[0].replace(",", "")) for what, much, _ in rows(text_of("limits.md"))}
    assert documented == {
        "length of a program": lexer.MAX_LENGTH,
        "brackets within brackets": layout.MAX_NESTING,
        "length of a name": lexer.MAX_NAME,
        "calls within calls": limits.MAX_DEPTH,
        "steps: operations, and rounds of loops": limits.MAX_STEPS,
        "elements of all arrays that it computes": limits.MAX_ELEMENTS,
        "JSON that values are read from": json_numbers.MAX_TEXT,
        "a line of a table that values are read from": text_lines.MAX_LINE,
    }


# --- backends and phases


def test_the_backends_of_the_guide_are_those_there_are() -> None:
    text = sections("guide.md")["Backends"]
    assert [name.strip("`") for name, _, _ in rows(text)] == [backend.name for backend in backends.BACKENDS]
    for backend, (_, installed, _) in zip(backends.BACKENDS[1:], list(rows(text))[1:]):
        assert installed == f"`.venv/bin/pip install '.[{backend.extra}]'`"


def test_the_sizes_from_which_backends_compile_are_those_of_the_guide() -> None:
    worth = {backend.name: backend.worth for backend in backends.BACKENDS}
    text = " ".join(sections("guide.md")["Backends"].split())
    assert f"from {worth['jax'].once:,} elements on with JAX" in text
    assert f"{worth['cupy'].once:,} with CuPy and {worth['torch'].once:,} with PyTorch" in text
    on_gpu = backends.check_name("torch").worth_on_gpu
    assert on_gpu is not None
    assert f"with PyTorch from {worth['torch'].again:,} elements on, on a GPU from {on_gpu.again:,}." in text


def test_the_phases_of_the_guide_are_those_that_are_measured() -> None:
    assert [name.strip("`") for name, _ in rows(sections("guide.md")["Large arrays"])] == [*timing.PHASES]


# --- Python


def codes_in(title: str) -> Iterator[str]:
    """The codes in the first column of a section of python.md."""
    for row in rows(sections("python.md")[title]):
        yield from re.findall("`(.*?)`", row[0])


def names_in(title: str, prefix: str = "") -> set[str]:
    """The names at the beginning of the codes in a section."""
    found = [re.match(rf"{re.escape(prefix)}(\w+)", code) for code in codes_in(title)]
    return {match[1] for match in found if match}


def test_every_name_of_the_module_is_on_the_page() -> None:
    words = [word for code in codes_in("Names") for word in code.partition("(")[0].split()]
    names = {word.partition(".")[0] for word in words} - set(gradcli._MODULES)
    assert names == {*gradcli._HOMES, *gradcli.__all__}


def test_every_method_of_a_program_is_on_the_page() -> None:
    program = gradcli.compile("x")
    public = {name for name in [*dir(type(program)), *vars(program)] if not name.startswith("_")}
    assert names_in("Programs", "f.") == public


def test_what_the_page_says_of_tensors_is_there() -> None:
    names = names_in("Tensors and gradients", "x.")
    assert {"backward", "grad", "grad_fn", "requires_grad", "is_leaf", "retain_grad", "detach"} <= names
    assert [name for name in names if not hasattr(gradcli.tensor([[1.0]]), name)] == []


def test_the_parameters_on_the_page_are_those_of_the_functions() -> None:
    for row in rows(sections("python.md")["Names"]):
        for name, parameters in re.findall(r"`(\w+)\((.*?)\)`", row[0]):
            written = [parameter.strip().rstrip("=") for parameter in parameters.split(",") if parameter]
            assert written == [*inspect.signature(getattr(gradcli, name)).parameters]


# --- architecture


def test_every_folder_of_the_package_is_on_the_page() -> None:
    package = Path(gradcli.__file__).parent
    folders = [f"gradcli/{path.parent.name}" for path in package.glob("*/__init__.py")]
    named = [name for row in rows(sections("architecture.md")["Folders"]) for name in re.findall("`(.*?)`", row[0])]
    assert sorted(named) == sorted(folders)


def test_every_stop_of_a_way_is_a_file_and_a_name_in_it() -> None:
    root = DOCS.parent
    ways = re.split(r"^### ", sections("architecture.md")["The way of a command"], flags=re.MULTILINE)[1:]
    for way in ways:
        stops = re.findall(r"^\d+\. (.*)$", way, re.MULTILINE)
        assert 5 <= len(stops) <= 10
        for file in re.findall(r"`([\w/]+\.py)`", way):
            assert (root / file if file.startswith("tests/") else root / "gradcli" / file).exists(), file
        for file, name in re.findall(r"`([\w/]+\.py)`, `(\w+)`", way):
            text = (root / "gradcli" / file).read_text(encoding="utf-8")
            assert re.search(rf"^ *(?:def|class) {name}\b|^{name}\b.* = ", text, re.MULTILINE), (file, name)


def test_the_words_of_the_code_are_few_and_each_stands_once() -> None:
    words = [row[0] for row in rows(sections("architecture.md")["Words"])]
    assert len(words) <= 40
    assert len(words) == len({*words})
