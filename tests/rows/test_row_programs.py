"""Tests programs over rows: the result of a row does not depend on its position or on other rows."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

import gradcli
from gradcli.errors import (
    BindingError,
    EvaluationError,
    GradcliError,
    LimitError,
    ShapeError,
    UsageError,
)
from gradcli.executors import row_blocks
from gradcli.language.parsing import parse_charged
from gradcli.rows import row_paths
from gradcli.rows.row_programs import RowProgram

_DRAW = np.random.default_rng(7)
_N = 150
_X = _DRAW.uniform(0.1, 4.0, _N)
_Q = _DRAW.uniform(-2.0, 3.0, _N)
_V = _DRAW.normal(size=(_N, 3))
_M = _DRAW.normal(size=(_N, 3, 3)) + 3.0 * np.eye(3)
_A = _DRAW.normal(size=(3, 3))
_EDGES = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e300, -2.5, 5e-324])

# The columns are the lower-case names and M; values shared by all rows are given with the program.
_SCALARS = {
    "sin(q*log(x))*exp(-x)": {},
    "a*exp(-k*x)": {"a": 2.0, "k": 0.25},
    "tanh(q)*sigmoid(x) + gamma(x) + erf(q) + x % q": {},
    "y = x\nif x > 1: y = x*q\ny": {},
    "log(x) if q > 0 else (x if q > -1 else x*a)": {"a": 3.0},
    "y = x\nwhile y > 0.01: y = y/2*cos(y)\ny*q": {},
    "y = 1\nwhile abs(y*y - x) > 1e-12: y = (y + x/y)/2\ny": {},
    "s = 0\nfor i in range(k): s += x**i/(i + 1)\ns": {"k": 5.0},
    "def f(t):\n  return t*t if t > 1 else t\nf(x) + f(q)": {},
    "t = q*x\ndiff(sin(x*t)*t, t)*q": {},
    "v[int(abs(q)) % 3]*x": {},
    "3*(x > 9)": {},
    "x > 1": {},
    "sum(v*v)*x": {},
    "v@A@v": {"A": _A},
    "det(M)": {},
    "max(v) + sort(v)[1]": {},
    "where(q > 0, log(x), q)": {},
}
_TENSORS = {
    "v*x": {},
    "M@v": {},
    "A@v": {"A": _A},
    "solve(M, v)": {},
    "softmax(v, 0)": {},
    "[x, q, x*q]": {},
}
_COLUMNS = {"x": _X, "q": _Q, "v": _V, "M": _M}


def _columns(program, shared, n):
    return {name: _COLUMNS[name][:n] for name in program.inputs if name not in shared}


def _same(found, expected):
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    zeros = (found == 0) & (expected == 0)
    assert (np.signbit(found) == np.signbit(expected))[zeros].all()


def _bits(numbers):
    """The bytes of numbers, which distinguish signed zeros but not nans."""
    return np.where(np.isnan(numbers), np.nan, numbers).tobytes()


def _identical(found, expected, rows):
    """Assert equality bit for bit."""
    assert _bits(found.value) == _bits(expected.value[rows])
    for key, whole in expected.derivatives.items():
        part = found.derivatives[key]
        if part is not None:
            assert _bits(part) == _bits(whole[rows])
        elif whole is not None:
            assert expected.absent[key][rows].all()


@pytest.mark.parametrize("text", _SCALARS)
def test_each_row_gives_what_it_gives_alone(text):
    program, shared = gradcli.compile(text), _SCALARS[text]
    columns = _columns(program, shared, 12)
    values, gradients = program.value_and_grad({**columns, **shared}, rows=[*columns])
    for i in range(12):
        value, expected = program.value_and_grad({**{n: c[i] for n, c in columns.items()}, **shared})
        _same(values[i], value)
        for name, gradient in expected.items():
            if gradient is None:
                assert gradients[name] is None or np.isnan(gradients[name][i]).all()
            else:
                _same(gradients[name][i], gradient)


@pytest.mark.parametrize("text", _TENSORS)
def test_the_derivative_of_a_row_that_is_a_tensor_is_its_jacobian(text):
    program, shared = gradcli.compile(text), _TENSORS[text]
    columns = _columns(program, shared, 6)
    values, jacobians = program.value_and_grad({**columns, **shared}, rows=[*columns])
    for i in range(6):
        alone = {**{n: c[i] for n, c in columns.items()}, **shared}
        _same(values[i], program(**alone))
        for name, jacobian in program.jacobian(alone).items():
            _same(jacobians[name][i], jacobian)


@pytest.mark.parametrize("text", ["abs(x) + sqrt(x) + 1/x + x**2", "max(x, 0) + x**3", "where(x > 0, log(x), x*0)"])
def test_rows_have_infinities_kinks_and_signs_of_zero_as_they_are_alone(text):
    program = gradcli.compile(text)
    values, gradients = program.value_and_grad({"x": _EDGES}, rows=True)
    for i, x in enumerate(_EDGES):
        value, expected = program.value_and_grad({"x": float(x)})
        _same(values[i], value)
        _same(gradients["x"][i], expected["x"])


@pytest.mark.parametrize("text", ["sin(q*log(x))*exp(-x)", "x**3 if q > 0 else x*x*q", "sum(v*v)*x", "a*x*x"])
def test_second_derivatives_of_rows_are_called_as_alone(text):
    program, n = gradcli.compile(text), 5
    shared = {"a": 2.0} if "a" in program.inputs else {}
    columns = _columns(program, shared, n)
    results = RowProgram(parse_charged(text), program.inputs, 2).run(columns, shared)
    for i in range(n):
        alone = {**{name: c[i] for name, c in columns.items()}, **shared}
        expected = program.derivatives(alone, 2, program.inputs)
        assert results.derivatives.keys() == expected.keys()
        for key, derivative in expected.items():
            if derivative is None:
                assert results.derivatives[key] is None or results.absent[key][i]
            else:
                _same(results.derivatives[key][i], derivative)


@pytest.mark.parametrize("text", [*_SCALARS, *_TENSORS])
def test_what_a_row_gives_does_not_depend_on_the_rows_beside_it(text):
    program, shared = gradcli.compile(text), (_SCALARS | _TENSORS)[text]
    columns = _columns(program, shared, _N)
    made = RowProgram(program.program, program.inputs)
    whole = made.run(columns, shared, threads=2)
    for rows in (slice(0, 7), slice(7, 8), slice(8, 100), slice(100, _N)):
        part = {name: c[rows] for name, c in columns.items()}
        _identical(RowProgram(program.program, program.inputs).run(part, shared, threads=1), whole, rows)
        _identical(made.run(part, shared), whole, rows)


@pytest.mark.parametrize("text", [*_SCALARS, *_TENSORS])
def test_rows_that_come_one_by_one_give_the_same_bits(text):
    """A row is computed like the previous one if it has the same types."""
    program, shared = gradcli.compile(text), (_SCALARS | _TENSORS)[text]
    columns = _columns(program, shared, 20)
    whole = RowProgram(program.program, program.inputs).run(columns, shared)
    made = RowProgram(program.program, program.inputs)
    for i in range(20):
        row = {name: c[i : i + 1] for name, c in columns.items()}
        _identical(made.run(row, shared), whole, slice(i, i + 1))


def test_rows_of_other_kinds_and_failing_ones_may_come_in_between():
    program = RowProgram(parse_charged("sum(inv(a))*x"), ("x",))
    rows = [
        {"x": np.array([2.0]), "a": np.eye(2)[None]},
        {"x": np.array([3]), "a": np.eye(2)[None]},
        {"x": np.array([3.0], "float32"), "a": np.eye(2, dtype="float32")[None]},
        {"x": np.array([5.0]), "a": np.ones((1, 2, 2))},
        {"x": np.array([5.0]), "a": 2 * np.eye(3)[None]},
    ]
    for row in [*rows, *rows, *reversed(rows)]:
        found, expected = program.run(row, {}), RowProgram(program.program, ("x",)).run(row, {})
        assert [f.error.report() for f in found.failures] == [f.error.report() for f in expected.failures]
        assert found.value.dtype == expected.value.dtype
        _identical(found, expected, slice(None))
    shared = [{"a": np.eye(2)}, {"a": np.eye(2) * 4}, {"a": np.eye(3)}, {"a": np.ones((2, 2))}, {"a": np.eye(2)}]
    for given in shared:
        column = {"x": np.array([2.0])}
        found, expected = program.run(column, given), RowProgram(program.program, ("x",)).run(column, given)
        assert len(found.failures) == len(expected.failures)
        _identical(found, expected, slice(None))


@pytest.mark.parametrize("text", ["[n/(x-2), q]", "sqrt(abs(x - 2))*n", "where(x > 2, log(x - 2), q)*n"])
def test_a_row_takes_its_own_path_whichever_row_is_the_first(text):
    i = np.arange(1.0, 101)
    columns = {"n": i, "x": 1 + i % 7 / 4, "q": i % 5 - 2}
    columns = {name: columns[name] for name in gradcli.compile(text).inputs}
    whole = RowProgram(parse_charged(text), columns).run(columns, {})
    for first in range(1, 8):
        part = {name: c[first:] for name, c in columns.items()}
        _identical(RowProgram(parse_charged(text), columns).run(part, {}), whole, slice(first, None))


@pytest.mark.parametrize(
    "text",
    [
        "sin(q*log(x))*exp(-x) if q > 0 else x**q",
        "log(x)*q if x > 1 else x*x*q",
        "q/(x - 2) if x > 2 else x*q if x > 1 else sqrt(x - 0.5)*q",
    ],
)
def test_blocks_of_every_size_and_any_number_of_threads_give_the_same_bits(text):
    n = 70_000
    columns = {"x": np.resize(_X, n), "q": np.resize(_Q, n)}
    program = RowProgram(parse_charged(text), ("x", "q"))
    whole = program.run(columns, {}, threads=1)
    _identical(program.run(columns, {}, threads=3), whole, slice(None))
    for rows in (slice(0, 300), slice(300, 9_001), slice(9_001, n)):
        _identical(program.run({name: c[rows] for name, c in columns.items()}, {}), whole, rows)


def test_many_threads_run_one_program():
    program = RowProgram(parse_charged("y = x\nwhile y > 0.01: y = y/2*cos(y)\ny*q"), ("x", "q"))
    whole = RowProgram(program.program, ("x", "q")).run({"x": _X, "q": _Q}, {})
    found = {}
    cuts = [slice(i, i + 15) for i in range(0, _N, 15)]

    def work(i):
        found[i] = program.run({"x": _X[cuts[i]], "q": _Q[cuts[i]]}, {})

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(cuts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, rows in enumerate(cuts):
        _identical(found[i], whole, rows)


def test_rows_that_fail_are_told_apart_and_the_others_stand():
    matrices = np.array(_M)
    bad = [3, 64, 65, _N - 1]
    matrices[bad] = 1.0
    text = "inv(M)[0, 0]*x"
    results = RowProgram(parse_charged(text), ("x",)).run({"M": matrices, "x": _X}, {})
    assert [failure.index for failure in results.failures] == bad
    with pytest.raises(GradcliError) as alone:
        gradcli.compile(text)(M=matrices[3], x=_X[3])
    assert {failure.error.report() for failure in results.failures} == {alone.value.report()}
    assert np.isnan([results.value[bad], results.derivatives["x"][bad]]).all()
    good = np.delete(np.arange(_N), bad)
    _same(results.value[good], np.linalg.inv(matrices[good])[:, 0, 0] * _X[good])


def test_rows_behind_whole_blocks_fail_in_their_places_however_often_they_were_run():
    matrices = np.resize(_M, (2**13 + 10, *np.shape(_M)[1:]))
    bad = [5, 2**13 + 3]
    matrices[bad] = 1.0
    program = RowProgram(parse_charged("inv(M)[0, 0]"), ())
    first = program.run({"M": matrices}, {})
    for _ in range(12):
        found = program.run({"M": matrices}, {})
        assert [failure.index for failure in found.failures] == bad
        _identical(found, first, slice(None))


def test_a_row_that_fails_in_python_says_which_it_is():
    program = gradcli.compile("inv(M)*x")
    with pytest.raises(GradcliError, match=r"^row 1: 'inv' failed") as error:
        program.value_and_grad({"M": np.array([np.eye(2), np.ones((2, 2))]), "x": 1.0}, rows=True)
    assert "^^^" in error.value.report()


def test_each_row_has_the_limits_of_one_evaluation():
    text = "s = 0\nwhile s < x: s += 1\ns*x"
    program = gradcli.compile(text, max_steps=2_000)
    values, _ = program.value_and_grad({"x": np.full(5_000, 3.0)}, rows=True)
    assert (values == 9).all()
    with pytest.raises(LimitError, match=r"^row 1: .*2,000 steps"):
        program.value_and_grad({"x": np.array([3.0, 1e6, 3.0])}, rows=True)
    wide = gradcli.compile("sum(v*v)", max_elements=100)
    assert wide.value_and_grad({"v": np.ones((10_000, 3))}, rows=True)[0].sum() == 30_000
    with pytest.raises(LimitError, match=r"^row 0"):
        wide.value_and_grad({"v": np.ones((3, 300))}, rows=True)


def test_a_derivative_that_some_rows_have_is_absent_in_the_others():
    results = RowProgram(parse_charged("x*q if x > 1 else x"), ("x", "q", "k")).run(
        {"x": np.array([0.5, 2.0]), "q": np.array([3.0, 4.0])}, {"k": 1.0}
    )
    assert results.derivatives["k"] is None
    assert results.absent.keys() == {"q"}
    assert results.absent["q"].tolist() == [True, False]
    np.testing.assert_equal(results.derivatives["q"], [math.nan, 2.0])


def test_rows_of_other_shapes_are_arrays_of_their_own():
    column = np.empty(3, "object")
    column[:] = [np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0])]
    results = RowProgram(parse_charged("sum(v*v)"), ("v",)).run({"v": column}, {})
    assert results.value.tolist() == [5.0, 14.0, 61.0]
    assert [d.tolist() for d in results.derivatives["v"]] == [[2.0, 4.0], [2.0, 4.0, 6.0], [10.0, 12.0]]


@pytest.mark.parametrize(("limit", "most"), [("_MOST_PATHS", 5), ("_LONGEST", 300), ("_STEPS", 500)])
def test_courses_that_are_too_many_or_too_long_to_record_are_evaluated_row_by_row(monkeypatch, limit, most):
    monkeypatch.setattr(row_paths, limit, most)
    text = "n = 0\ny = x\nwhile y > 1:\n  y = y - 1\n  n += 1\nn + y*y"
    x = np.arange(12) + 0.5
    values, gradients = gradcli.compile(text).value_and_grad({"x": x}, rows=True)
    _same(values, np.floor(x) + 0.25)
    _same(gradients["x"], np.ones(12))


def test_functions_of_python_are_run_for_rows():
    @gradcli.compile
    def energy(x, q):
        return (gradcli.sin(x) * q).sum() if q > 0 else x.sum()

    values, gradients = energy.value_and_grad({"x": _V, "q": _Q}, rows=True)
    _same(values, np.where(_Q > 0, (np.sin(_V) * _Q[:, None]).sum(1), _V.sum(1)))
    _same(gradients["x"], np.where(_Q[:, None] > 0, np.cos(_V) * _Q[:, None], 1.0))


def test_float32_rows_stay_float32():
    x = _X.astype("float32")
    values, gradients = gradcli.compile("exp(x)*a").value_and_grad({"x": x, "a": 2.0}, rows=True)
    assert values.dtype == gradients["x"].dtype == np.float32
    np.testing.assert_allclose(values, 2 * np.exp(x), rtol=1e-6)


def test_masked_numbers_are_missing():
    values, gradients = gradcli.compile("x*x").value_and_grad({"x": np.ma.masked_array([1.0, 2.0], [0, 1])}, rows=True)
    np.testing.assert_equal(values, [1.0, math.nan])
    np.testing.assert_equal(gradients["x"], [2.0, math.nan])


def test_an_input_without_a_gradient_in_any_row(run):
    """Its column is empty, and NumPy does not warn about an empty sum."""
    rows = run("map", "x[t]", "x=[1,2]", "--on-error", "skip", stdin="t\n0\n5\n")
    assert rows.out == "t,value,d_t,d_x_0,d_x_1\n0,1.0,,1.0,0.0\n"
    assert rows.err.startswith("warning: 1 of 2 rows failed")


def test_a_column_that_is_called_as_a_function_is_and_is_not_there(run):
    """The rows are not reported as failing."""
    outcome = run("map", "k*exp(-beta*t)", "k=2", stdin="u,beta\n1,2\n")
    assert (outcome.status, outcome.out) == (2, "")
    assert "the table has no column 't'" in outcome.err
    assert "give it a value, as in t=1" in run("eval", "exp(-t)").err


def test_no_rows_and_a_program_in_a_process_of_its_own():
    values, gradients = gradcli.compile("x*q").value_and_grad({"x": np.empty(0), "q": 2.0}, rows=True)
    assert values.shape == gradients["x"].shape == gradients["q"].shape == (0,)
    confined = gradcli.compile("x*q", max_seconds=60)
    assert confined.value_and_grad({"x": np.array([1.0, 2.0]), "q": 2.0}, ["q"], rows=True)[1]["q"].tolist() == [1, 2]


def test_what_cannot_be_rows_says_so():
    program = gradcli.compile("x*q")
    with pytest.raises(ShapeError, match="'q' has 2 rows, and 'x' has 3"):
        program.value_and_grad({"x": _X[:3], "q": _Q[:2]}, rows=True)
    with pytest.raises(ShapeError, match="no input has rows"):
        program.value_and_grad({"x": 1.0, "q": 2.0}, rows=True)
    with pytest.raises(BindingError, match="'q' is one number"):
        program.value_and_grad({"x": _X[:3], "q": 2.0}, rows=["q"])
    with pytest.raises(UsageError, match="grad_output"):
        program.value_and_grad({"x": _X[:3], "q": 2.0}, rows=True, grad_output=1.0)
    with pytest.raises(EvaluationError, match="numbers from datetime64"):
        program.value_and_grad({"x": np.array(["2020-01-01"], "datetime64[D]"), "q": 2.0}, rows=True)
    with pytest.raises(BindingError, match="cannot differentiate by 'k'"):
        RowProgram(parse_charged("x*q"), ("k",)).run({"x": _X}, {"q": 2.0})


def test_an_interrupt_in_a_thread_ends_the_run():
    def compute(start, _stop):
        if start == 20:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        row_blocks.over_blocks(compute, 1_000, 10, 2)
