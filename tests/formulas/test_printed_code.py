"""Tests the code that `gradcli diff` prints at edge cases of every operator: NumPy, C, SQL and Polars against
`eval`."""

from __future__ import annotations

import ctypes
import itertools
import math
import sqlite3
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pytest

import gradcli
from gradcli.language.names import scope
from gradcli.language.syntax import parse
from tests.printed_code import NEEDS_GCC, in_c

Points = Sequence[Mapping[str, float]]
# The value and the derivatives at each point; None where a database has no such number.
Rows = Sequence[Sequence[float | None]]


def names_of(program: str) -> list[str]:
    return [name for name in scope.free_names(parse(program)) if name not in scope.CONSTANTS]


def in_python(run: Any, program: str, points: Points, _folder: Path) -> Rows:
    module = types.ModuleType("printed")
    exec(run("diff", program, "--to", "python").out, module.__dict__)
    with np.errstate(all="ignore"):
        return [[*map(float, module.value_and_derivatives(**point))] for point in points]


def in_gcc(run: Any, program: str, points: Points, folder: Path) -> Rows:
    function = in_c(run("diff", program, "--to", "c").out, folder)("value_and_derivatives")
    found = []
    for point in points:
        results = (ctypes.c_double * (1 + len(point)))()
        function(*map(ctypes.c_double, point.values()), results)
        found.append([*results])
    return found


def in_polars(run: Any, program: str, points: Points, _folder: Path) -> Rows:
    known: dict[str, Any] = {}
    exec(run("diff", program, "--to", "polars").out, known)
    return polars.DataFrame(points).select(**known["columns"]).rows()


def in_sqlite(run: Any, program: str, points: Points, _folder: Path) -> Rows:
    select = run("diff", program, "--to", "sql", "--dialect", "sqlite").out
    columns = ", ".join(f"? AS {name}" for name in points[0])
    query = f"{select} FROM (SELECT {columns})"
    connection = sqlite3.connect(":memory:")
    return [connection.execute(query, [*point.values()]).fetchone() for point in points]


def in_duckdb(run: Any, program: str, points: Points, _folder: Path) -> Rows:
    select = run("diff", program, "--to", "sql", "--dialect", "duckdb").out
    texts = [[str(i), *(f"CAST('{v!r}' AS DOUBLE)" for v in point.values())] for i, point in enumerate(points)]
    numbers = ", ".join(f"({', '.join(row)})" for row in texts)
    names = ", ".join(points[0])
    return duckdb.connect().execute(f"{select} FROM (VALUES {numbers}) AS points(i, {names}) ORDER BY i").fetchall()


LANGUAGES = [in_python, pytest.param(in_gcc, marks=NEEDS_GCC), in_polars, in_sqlite, in_duckdb]


def computed(program: str, points: Points) -> Iterator[list[float]]:
    """The results of `gradcli eval`."""
    compiled = gradcli.compile(program)
    for point in points:
        value, derivatives = compiled.value_and_grad(point)
        yield [float(value), *(float(derivatives[name]) for name in point)]


def is_close(found: float | None, expected: float) -> bool:
    if found is None:
        return True
    return float(found) == pytest.approx(expected, rel=1e-9, abs=1e-300, nan_ok=True)


EDGES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -7.5, 1e-9, -1e-9, 1e-5, 20.0, -40.0, 1e-200, -1e200, 1e17, math.inf, -math.inf, math.nan)  # fmt: skip
FEW_EDGES = (0.0, 1.0, -1.0, 2.5, -7.5, 0.1, 1e-200, 1e200, 1e17, math.inf, -math.inf, math.nan)
OPERATORS = [
    "x//y", "minimum(x, y)", "maximum(x, y)", "fmin(x, y)", "fmax(x, y)", "atan2(x, y)", "clip(x, y, 2)",
    "clip(x, -1, y)", "clip(x, -1, 2)", "where(x > y, x, 2*y)", "where(x <= y, x, 2*y)", "where(x == y, x, 2*y)",
    "where(x != y, x, 2*y)", "where(isfinite(x), y, x)", "sign(x)", "floor(x)", "ceil(x)", "log1p(x)", "expm1(x)",
    "softplus(x)", "logsigmoid(x)", "logaddexp(x, y)", "logaddexp2(x, y)", "xlogy(x, y)", "sinpi(x)", "cospi(x)",
    "logcosh(x)", "tanhshrink(x)", "x % y", "x % 0.5", "x//-0.25", "x**3", "x**-2", "x**y", "relu6(x)", "hardswish(x)", "mish(x)",
    "nan_to_num(x)", "lerp(x, y, 0.5)", "(x - 1)*(x + 1)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_operators_at_their_edges(run, tmp_path, language):
    """An operator that a language lacks is refused, and gives no other number."""
    words = {in_gcc: "c", in_sqlite: "sql --dialect sqlite", in_duckdb: "sql --dialect duckdb", in_polars: "polars"}
    for number, program in enumerate(OPERATORS):
        if run("diff", program, "--to", *words.get(language, "python").split()).status:
            assert (language, program) in [(in_polars, "x//y"), (in_polars, "x % y")]
            continue
        names = names_of(program)
        edges = EDGES if len(names) == 1 else FEW_EDGES
        points = [dict(zip(names, values)) for values in itertools.product(edges, repeat=len(names))]
        folder = tmp_path / str(number)
        folder.mkdir()
        compiled = gradcli.compile(program)
        for point, row in zip(points, language(run, program, points, folder), strict=True):
            assert is_close(row[0], float(compiled(**point))), (program, point)


# Programs whose derivatives overflow, vanish or cancel unless they are written with care.
SENSITIVE = [
    "norm([x, y])", "norm([x, y, z])", "1/norm([x, y])", "x/norm([x, y])", "hypot(x, y)", "asinh(x)", "atan2(x, y)", "x/y",
    "std([x, y])", "std([x, y, z])", "var([x, y, z])", "std([x, y, z], correction=1)", "logsumexp([x, y])",
    "logsumexp([x, y, z])", "softmax([x, y])[0]", "softmax([x, y, z])[1]", "softmax([x, y, z])@[1, 2, 3]",
    "log_softmax([x, y, z])[2]", "cross_entropy([x, y, 0], 1)", "tanh(x)", "tanh(20*x)", "sigmoid(x)",
]  # fmt: skip
HUGE = ((0.3e200, -1.7e200, 1e200), (1e150, 2e150, -1e150), (1e200, 1.0, 1e-200), (3e-200, 1e-200, 2e-200))
SHIFTED = ((1e8, 1e8 + 1, 1e8 + 3), (-1e7 + 2, -1e7, -1e7 + 0.5), (1000.0, 1001.0, 999.5), (-1000.0, -1001.0, 3.0))


@pytest.mark.cases(4)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("program", SENSITIVE)
def test_derivatives_do_not_overflow_or_cancel(run, tmp_path, program, language):
    names = names_of(program)
    points = [
        dict(zip(names, map(float, p))) for p in (*SHIFTED, *(() if "var" in program else HUGE), (2.0, 0.3, -1.7))
    ]
    rows = language(run, program, points, tmp_path)
    for point, row, expected in zip(points, rows, computed(program, points), strict=True):
        assert all(map(is_close, row, expected)), (point, row, expected)


@pytest.mark.parametrize("program", ["norm(x)", "norm(x)**3", "std(x)", "var(x)", "logsumexp(x)", "logsumexp(x)**2", "logsumexp(x) + x[0]*norm(x)"])  # fmt: skip
def test_derivatives_by_tensors_do_not_overflow_or_cancel(run, program):
    module = types.ModuleType("printed")
    exec(run("diff", program, "x=[1,2,3]", "--to", "python").out, module.__dict__)
    for x in (*SHIFTED, (0.2, 0.3, -1.7), *(HUGE[:1] if program in ("norm(x)", "std(x)") else ())):
        point = {"x": np.array(x)}
        expected = gradcli.compile(program).value_and_grad(point)
        with np.errstate(over="ignore"):
            value, *derivatives = module.value_and_derivatives(**point)
        np.testing.assert_allclose(value, expected[0], rtol=1e-9)
        np.testing.assert_allclose(np.squeeze(derivatives), expected[1]["x"], rtol=1e-9)
