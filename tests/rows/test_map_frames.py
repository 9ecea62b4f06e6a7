"""Tests `compile(program).map`, which adds columns of results to tables of other libraries."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gradcli
from gradcli.errors import BindingError, CallError, EvaluationError, LimitError, RowWarning, ShapeError

DECAY = gradcli.compile("a*exp(-k*t)")
TIMES = [0.0, 2.0, None]
VALUES = [2.0, 2 * np.exp(-0.5), None]
TABLES = {
    "polars": (pl.DataFrame({"run": ["A", "B", "C"], "t": TIMES}), lambda table: table.to_dict(as_series=False)),
    "pandas": (
        pd.DataFrame({"run": ["A", "B", "C"], "t": TIMES}, index=[7, 8, 9]),
        lambda table: {name: [None if v != v else v for v in table[name].tolist()] for name in table},
    ),
    "pyarrow": (pa.table({"run": ["A", "B", "C"], "t": TIMES}), lambda table: table.to_pydict()),
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_same_kind_comes_back(kind):
    table, plain = TABLES[kind]
    found = DECAY.map(table, a=2, k=0.25)
    assert type(found) is type(table)
    columns = plain(found)
    assert [*columns] == ["run", "t", "value", "d_t", "d_a", "d_k"]
    assert columns["run"] == ["A", "B", "C"]
    assert columns["value"] == pytest.approx(VALUES)
    assert columns["d_a"] == pytest.approx([1.0, np.exp(-0.5), None])


def test_a_mapping_of_arrays():
    times = np.linspace(0, 1, 5)
    found = DECAY.map({"time": times}, t="column:time", a=2, k=0.25, wrt="k", order=2)
    assert [*found] == ["time", "value", "d_k", "d2_k_k"]
    np.testing.assert_allclose(found["d2_k_k"], times**2 * found["value"], rtol=1e-14)


def test_rows_that_fail():
    table = {"x": np.array([1.0, 2.0]), "n": [0, datetime.date(2024, 1, 2)]}
    program = gradcli.compile("y = [x, 2*x]; y[int(n)]")
    with pytest.warns(RowWarning, match="1 of 2 rows failed and have no results; the first is row 2"):
        found = program.map(table, wrt="x")
    np.testing.assert_array_equal(found["value"], [1.0, np.nan])
    with pytest.raises(gradcli.GradcliError, match="row 2, where x=2"):
        program.map(table, on_error="fail")


def test_a_failing_row_is_told_with_the_numbers_that_it_has():
    table = pl.DataFrame({"x": ["2020-01-02", "1"], "q": [None, 2.0], "k": [3.0, 4.0]})
    with pytest.warns(RowWarning, match=r"the first is row 1, where k=3\.0: 'x': '2020-01-02' is a date"):
        gradcli.compile("x*q*k").map(table)


def test_rows_with_few_right_digits_are_told():
    lorenz = "odeint(lambda y, t: [10*(y[1] - y[0]), y[0]*(r - y[2]) - y[1], y[0]*y[1] - 8/3*y[2]], [1, 1, 1], [0, 40])[1][0]"
    with pytest.warns(RowWarning, match="1 of 3 rows have results with few right digits; the first is row 2"):
        gradcli.compile(lorenz).map({"r": [10.0, 28.0, 5.0]})


def test_texts_in_the_place_of_numbers_are_told():
    with pytest.warns(RowWarning, match="1 of 3 rows have a text for a number and no results; the first is row 2: 'x'"):
        found = gradcli.compile("2*x").map({"x": ["1", "5 mm", "NA"]})
    np.testing.assert_array_equal(found["value"], [2.0, np.nan, np.nan])


def test_a_text_in_the_place_of_a_number_fails_where_rows_may_not():
    with pytest.raises(EvaluationError, match="row 2: 'x': '5 mm' is no number"):
        gradcli.compile("2*x").map({"x": ["NA", "5 mm"]}, on_error="fail")


def test_tensors_of_rows():
    table = pl.DataFrame({"v": [[1.0, 2.0], [3.0, 4.0, 5.0]]})
    found = gradcli.compile("sum(v**2)").map(table)
    assert found["value"].to_list() == [5.0, 50.0]
    assert found["d_v"].to_list() == [[2.0, 4.0], [6.0, 8.0, 10.0]]


def test_wrong_tables():
    with pytest.raises(CallError, match="a table is a Polars or pandas data frame"):
        DECAY.map([1, 2], a=1, k=1)
    with pytest.raises(CallError, match="LazyFrame"):
        DECAY.map(pl.LazyFrame({"t": [1]}), a=1, k=1)
    with pytest.raises(BindingError, match="'a' is a number in a table of columns"):
        DECAY.map({"t": [1.0], "a": 2.0}, k=1)
    with pytest.raises(ShapeError):
        DECAY.map({"t": [1.0], "a": [2.0, 3.0]}, k=1)
    with pytest.raises(BindingError, match="the table has no column 'k'"):
        DECAY.map({"t": [1.0]}, a=1)
    with pytest.raises(LimitError):
        DECAY.map({"t": [1.0]}, a=1, k=1, order=10**9)


def test_limits_hold():
    endless = gradcli.compile("while x > 0: x = x + 1\nx", max_steps=50)
    with pytest.warns(RowWarning):
        assert np.isnan(endless.map({"x": [1.0]})["value"]).all()
    apart = gradcli.compile("x**2", max_seconds=60)
    np.testing.assert_array_equal(apart.map({"x": [1.0, 3.0]})["value"], [1.0, 9.0])
