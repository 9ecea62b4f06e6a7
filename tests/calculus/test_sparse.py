"""Tests sparse Hessians: their structure, the number of directions needed, and their values."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import gradcli
from gradcli.arrays import sparsity_patterns
from gradcli.calculus.sparse import Coordinates, colouring
from gradcli.errors import DifferentiationError, LimitError, NotRecordableError
from gradcli.evaluation.hessians import program_hessian
from gradcli.language.syntax import parse

ROSENBROCK = "sum(100*(x[1:]-x[:-1]**2)**2 + (1-x[:-1])**2)"
GRID = "sum((X[1:,:]-X[:-1,:])**4) + sum((X[:,1:]-X[:,:-1])**4)"
R = np.random.default_rng(0)
# A program, its inputs, and the number of directions that it needs.
CASES = [
    (ROSENBROCK, {"x": R.random(30)}, 3),
    ("sum(x**3)", {"x": R.random(30)}, 1),
    ("sum(log(x**q)) + q**3", {"x": R.random(30) + 1, "q": 2.0}, 2),
    ("sum(x**2)**2", {"x": R.random(20)}, 20),
    ("sum(sin(x[1:]*x[:-1])) + sum(x*roll(x,3)) + sum(flip(x)[:5]*y[:5]) + sum(concat([x,y])**3)",
     {"x": R.random(30), "y": R.random(7)}, 6),
    ("sum(stack([x, y])[:, 1:]**2*x[:-1]) + sum(tile(x, 2)**3)", {"x": R.random(20), "y": R.random(20)}, 4),
    ("sum(tanh(W@x)**2)", {"W": R.random((4, 5)), "x": R.random(5)}, 10),
    ("sum((X@W)**3)", {"X": R.random((8, 3)), "W": np.eye(3, 2)}, None),
    ("sum(matmul(X, Y)**3)", {"X": R.random((6, 2, 3)), "Y": R.random((6, 3, 1))}, 9),
    ("sum((v@A)**2)", {"v": R.random(4), "A": R.random((4, 6))}, None),
    (GRID, {"X": R.random((6, 7))}, 7),
    ("sum(prod(X,axis=1)) + sum(logsumexp(X,axis=1)) + sum(cumsum(X,axis=1)**3) + sum(softmax(X[:3])**2)",
     {"X": R.random((6, 4))}, 4),
    ("sum(sort(X, axis=1)[:, 0]**3) + sum(X.T[0]**2*X[:, 1])", {"X": R.random((6, 3))}, None),
    ("sum(einsum('bij,bj->bi',A,v)**3)", {"A": R.random((6, 2, 3)), "v": R.random((6, 3))}, 9),
    ("logdet(A@A.T+2*eye(3)) + sum(take(x,[0,0,2,3])**3)", {"A": R.random((3, 3)), "x": R.random(16)}, None),
    ("sum(tril(X)**3) + sum(where(X > 0.5, X**2, X**4)) + sum(floor(X)*X)", {"X": R.random((5, 5))}, 1),
    ("sum(norm(X, axis=1)) + sum(max(X, axis=1)**2)", {"X": R.random((6, 3))}, 3),
    ("x[0]*x[1] + 3*sum(x)", {"x": R.random(20)}, 1),
]  # fmt: skip


def dense(found: Coordinates, shape: tuple[int, ...]) -> Any:
    return scipy.sparse.coo_array((found.value, (found.row, found.column)), found.shape).toarray().reshape(shape)


def recorded(program: Any) -> bool:
    return all(known.versions for known in program._recordings._known.values())


@pytest.mark.cases(4)
@pytest.mark.parametrize(("text", "values", "directions"), CASES)
def test_sparse_hessians_are_the_dense_ones(text, values, directions):
    sparse, whole = gradcli.compile(text), gradcli.compile(text)
    for scale in (1.0, 1.25, 0.75):
        given = {name: value * scale for name, value in values.items()}
        expected = gradcli.compile(text).hessian(given)
        found, compiled = sparse.hessian(given, sparse=True), whole.hessian(given)
        assert [*found] == [*expected] == [*compiled]
        for key, matrix in expected.items():
            np.testing.assert_allclose(dense(found[key], np.shape(matrix)), matrix, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(compiled[key], matrix, rtol=1e-9, atol=1e-12)
    assert recorded(sparse)
    assert recorded(whole)
    if directions is not None:
        assert program_hessian(parse(text), values, tuple(values)).sparse.colouring.number == directions


def test_only_what_may_differ_from_zero_is_there():
    found = gradcli.compile(ROSENBROCK).hessian({"x": R.random(50)}, sparse=True)["x,x"]
    assert isinstance(found, Coordinates)
    assert found.shape == (50, 50)
    assert (np.abs(found.row - found.column) <= 1).all()
    assert len(found.value) == len(found.row) == 148


@pytest.mark.slow
def test_a_large_hessian_takes_a_few_passes():
    n = 100_000
    program, x = gradcli.compile(ROSENBROCK), R.random(n)
    tracemalloc.start()
    found = program.hessian({"x": x}, sparse=True)["x,x"]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A dense matrix would be 80 GB.
    assert most < 300e6
    np.testing.assert_allclose(found.value[found.row == found.column][1:-1], 202 + 1200 * x[1:-1] ** 2 - 400 * x[2:])
    above = found.row + 1 == found.column
    np.testing.assert_allclose(found.value[above], -400 * x[:-1])


def test_single_precision():
    found = gradcli.compile(ROSENBROCK).hessian({"x": R.random(20).astype("float32")}, sparse=True)["x,x"]
    assert found.value.dtype == np.float32


def test_a_leaf_without_influence():
    program = gradcli.compile("sum(x**2) + detach(q)")
    for _ in range(3):
        found = program.hessian({"x": np.ones(20), "q": 1.0}, sparse=True)
        assert found["q,q"] is None
        assert (found["x,q"].shape, len(found["x,q"].value)) == ((20, 1), 0)
        assert program.hessian({"x": np.ones(20), "q": 1.0})["q,q"] is None
    assert gradcli.compile("3*detach(x)").hessian({"x": 1.0}, sparse=True) == {"x,x": None}
    assert gradcli.compile("sum(x**2)").hessian({"x": np.zeros(0)}, sparse=True)["x,x"].shape == (0, 0)
    assert gradcli.compile("q**2").hessian({"q": 2.0}, wrt=(), sparse=True) == {}


@pytest.mark.slow
def test_what_is_not_finite_stays_where_it_is_in_a_dense_hessian():
    program = gradcli.compile("sum(sqrt(x)) + sum(x[1:]*x[:-1])")
    for x in (np.ones(8), np.linspace(0.0, 1.0, 8)):
        expected = gradcli.compile(program.program.source).hessian({"x": x})["x,x"]
        for _ in range(3):
            np.testing.assert_allclose(program.hessian({"x": x})["x,x"], expected)


def test_guards_hold_for_sparse_hessians_too():
    program = gradcli.compile("sum(x**q)")
    for q in (2.0, 2.0, 3.0, 2.5, 2.0):
        found = program.hessian({"x": np.full(20, 1.5), "q": q}, wrt=("x",), sparse=True)["x,x"]
        np.testing.assert_allclose(found.value, q * (q - 1) * 1.5 ** (q - 2))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x**2", DifferentiationError, "a single number"),
        ("y = 0*x[0]\nif x[0] > 0 { y = sum(x**2) }; y", NotRecordableError, "depends on the numbers"),
        ("sum(exp(x))**2", LimitError, "not sparse"),
    ],
)
def test_refusals(text, error, message):
    program = gradcli.compile(text)
    for _ in range(3):
        with pytest.raises(error, match=message):
            program.hessian({"x": np.full(5000, 1e-3)}, sparse=True)


class TestCommandLine:
    def test_lost_digits_are_warned_of(self, run):
        words = ("eval", "f(t) = 1 - cos(t)\nw = v*v\nsum(f(v)/w)", "v=[1e-6,2]", "--order", "2", "--sparse")
        warning, of_gradient = run(*words, "--json").json["warnings"]
        assert warning["code"] == of_gradient["code"] == "inaccurate"
        assert warning["digits"]["v,v"] < 3
        assert of_gradient["digits"]["v"] < 3
        assert "digits" in run(*words).out
        assert "warnings" not in run("eval", "sum(sin(v)*v)", "v=[1e-6,2]", "--order", "2", "--sparse", "--json").json

    def test_coordinates_as_json(self, run):
        record = run("eval", "sum(x[1:]*x[:-1]*q)", "x=[1,2,3]", "q=2", "--order", "2", "--sparse", "--json").json
        assert record["grad"] == {"x": [4.0, 8.0, 4.0], "q": 8.0}
        assert record["derivatives"] == {
            "x,x": {"shape": [3, 3], "row": [0, 1, 1, 2], "column": [1, 0, 2, 1], "value": [2.0, 2.0, 2.0, 2.0]},
            "x,q": {"shape": [3, 1], "row": [0, 1, 2], "column": [0, 0, 0], "value": [2.0, 4.0, 2.0]},
            "q,q": {"shape": [1, 1], "row": [], "column": [], "value": []},
        }

    def test_a_leaf_without_influence(self, run):
        record = run("eval", "sum(detach(x))*q", "x=[1,2]", "q=2", "--order", "2", "--sparse", "--json").json
        assert record["derivatives"]["x,x"] is None
        assert (
            "x,x  -    -       -\n" in run("eval", "sum(detach(x))*q", "x=[1,2]", "q=2", "--order", "2", "--sparse").out
        )

    def test_a_derivative_that_the_program_takes(self, run):
        record = run("eval", "diff(x**3*y, x)", "x=2", "y=5", "--order", "2", "--sparse", "--json").json
        assert record["derivatives"]["x,x"]["value"] == [30.0]
        assert record["derivatives"]["x,y"]["value"] == [12.0]

    def test_a_table_that_is_cut_short(self, run):
        lines = run("eval", "sum(x**3)", "x=ones(1000)", "--order", "2", "--sparse").out.splitlines()
        assert [line.split() for line in lines[-8:]] == [
            ["by", "row", "column", "derivative"],
            *(["x,x", str(k), str(k), "6.0"] for k in range(3)),
            ["x,x", "...", "...", "..."],
            *(["x,x", str(k), str(k), "6.0"] for k in range(997, 1000)),
        ]

    def test_saved(self, run, tmp_path):
        path = tmp_path / "found.npz"
        run("eval", ROSENBROCK, "x=linspace(0,1,20000)", "--order", "2", "--sparse", "--save", str(path))
        with np.load(path) as saved:
            matrix = Coordinates(*(saved[f"derivatives/x,x/{field}"] for field in Coordinates._fields))
        assert [*matrix.shape] == [20000, 20000]
        expected = gradcli.compile(ROSENBROCK).hessian({"x": np.linspace(0.0, 1.0, 20000)}, sparse=True)["x,x"]
        for found, wanted in zip(matrix, expected):
            np.testing.assert_array_equal(found, wanted)

    def test_warnings_are_those_of_the_dense_hessian(self, run):
        words = ("eval", "sum(x*x + sqrt(x))", "x=[0,1]", "--order", "2")
        assert run(*words, "--sparse").err == run(*words).err != ""
        assert run(*words, "--sparse", "--fail-on-nonfinite").status == 1

    @pytest.mark.parametrize(
        ("words", "status", "message", "hint"),
        [
            (("sum(x)**2", "x=ones(10000)", "--order", "2"), 1, "not sparse", "leave out --sparse"),
            (
                ("y = x\nif x > 0 { y = x**2 }; y", "x=1", "--order", "2"),
                1,
                "depends on the numbers",
                "leave out --sparse",
            ),
            (("x**2", "x=1"), 2, "order 2", "add --order 2"),
            (("x**2", "x=1", "--order", "3"), 2, "order 2", "add --order 2"),
        ],
    )
    def test_refusals(self, run, words, status, message, hint):
        outcome = run("eval", *words, "--sparse", "--json")
        assert (outcome.status, outcome.error["hint"]) == (status, hint)
        assert message in outcome.error["message"]


@pytest.mark.parametrize("seed", range(20))
def test_variables_of_one_colour_share_no_row(seed):
    draw = np.random.default_rng(seed)
    size = int(draw.integers(1, 40))
    full = draw.random((size, size)) < draw.choice([0.02, 0.1, 0.5])
    full[draw.random(size) < 0.05] = True
    full |= full.T
    found = colouring(sparsity_patterns.symmetric(scipy.sparse.csr_array(full)))
    assert 0 <= found.number <= size
    assert set(found.colours) == set(range(found.number))
    for one, other in itertools.combinations(range(size), 2):
        if found.colours[one] == found.colours[other]:
            assert not found.alone[[one, other]].any()
            assert not (full[~found.alone, one] & full[~found.alone, other]).any()


@pytest.mark.parametrize(
    "program",
    [
        "x*detach(x)",
        "x**2*detach(x**3) + x**3",
        "s = detach(x)*x; sin(s)*x",
    ],
)
def test_what_is_detached_is_a_constant_as_in_other_derivatives(run, program):
    entries = run("eval", program, "x=2", "--order", "2", "--sparse", "--json").json["derivatives"]["x,x"]["value"]
    right = run("eval", program, "x=2", "--order", "2", "--json").json["derivatives"]["x,x"]
    assert (entries or [0.0]) == pytest.approx([right])
    x = np.arange(1.0, 21.0)
    *before, last = program.split(";")
    compiled = gradcli.compile(";".join([*before, f"sum({last})"]))
    for _ in range(3):
        found = compiled.hessian({"x": x})["x,x"]
        assert np.diag(found)[1] == pytest.approx(right)


def test_rules_that_detach_are_refused_or_have_their_derivatives(run):
    program = "f(t) = t**3 backward(g) = g*2*t*detach(t); "
    outcome = run("eval", program + "f(x)*x", "x=2", "--order", "2", "--sparse")
    assert (outcome.status, outcome.err.splitlines()[-1]) == (1, "hint: leave out --sparse")
    compiled = gradcli.compile(program + "sum(f(x)*x)")
    for _ in range(3):
        assert np.diag(compiled.hessian({"x": np.arange(1.0, 21.0)})["x,x"])[1] == pytest.approx(24)


def test_functions_that_detach_have_one_hessian_however_often_they_are_called():
    compiled = gradcli.compile(lambda x: (x * x.detach() + x**3).sum())
    x = np.arange(1.0, 21.0)
    for _ in range(3):
        np.testing.assert_allclose(np.diag(compiled.hessian({"x": x})["x,x"]), 6 * x)
