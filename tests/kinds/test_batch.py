"""Tests batches against a loop over their rows: every entry of the table, every program of the conformance file."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import Tensor, arrays, grad
from gradcli.calculus import rows
from gradcli.calculus.derivatives import gradients, jacobians
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import NotBatchableError
from gradcli.kinds import batch
from gradcli.kinds.batch import Batched, batched, new_batch_id, row_by_row, sum_over_rows, unbatched
from gradcli.kinds.jets import Jet
from gradcli.language.interpreter.run import evaluate
from gradcli.language.syntax import parse
from gradcli.primitives import table
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries import indexing, linear, reductions, scans, shape
from gradcli.primitives.entries.linear_algebra import decompositions, matrices
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import NotImplementedRule, Primitive
from gradcli.program.record import record
from tests.language.test_conformance import CASES as PROGRAMS
from tests.language.test_conformance import numbers
from tests.primitives.test_primitives import DIFFERENTIABLE, PRIMITIVES, Case, data, leaf, slope, weights
from tests.primitives.test_primitives import WITH_OPERANDS as TABLE_CASES
from tests.samples import at_each

ROWS = 3
_GRID = np.arange(24.0).reshape(2, 3, 4) + 1.0
_POSITIONS = np.array([0, 1, 1])
_MATRIX = np.array([[2.0, 0.3], [-0.4, 1.5]])
_STACK = np.array([_MATRIX, _MATRIX.T + 1.0, 2.0 * _MATRIX])
_VECTOR = np.array([0.7, -1.3])
_KEYS = (
    (_POSITIONS, slice(None), _POSITIONS),
    (0, slice(1, None), _POSITIONS),
    (slice(None), _POSITIONS, _POSITIONS),
    (_POSITIONS[:, None], Ellipsis, _POSITIONS),
    (_POSITIONS[:, None], _POSITIONS),
    (np.array([True, False]), None, 1),
    (Ellipsis, None, -1),
)
_PRODUCTS = ((_VECTOR, _VECTOR), (_MATRIX, _STACK), (_STACK, _VECTOR), (_VECTOR, _STACK), (_STACK, _STACK[:, None]))


def _put_back(x: Any, key: Any) -> Any:
    return indexing.scatter(indexing.index(x, key), key, (2, 3, 4))


def _case(name: str, call: Callable[..., Any], *operands: Any) -> Case:
    """A case that the samples of the table do not cover."""
    return Case(Composite(name, "*tensors", name, call, derivative="-"), call, operands, name)


SPECIAL = [
    *(_case(f"index-{i}", functools.partial(indexing.index, place=k), _GRID) for i, k in enumerate(_KEYS)),
    *(_case(f"scatter-{i}", functools.partial(_put_back, key=k), _GRID) for i, k in enumerate(_KEYS)),
    *(_case(f"product-{i}", linear.matmul, *operands) for i, operands in enumerate(_PRODUCTS)),
    _case("solve-stack", matrices.solve, _STACK, _MATRIX),
    _case("solve-beside-stack", matrices.solve, _MATRIX, _STACK),
    _case("contract", functools.partial(linear.einsum, "ij,kjl,l->ki"), _MATRIX, _STACK, _VECTOR),
    _case("roll-all", functools.partial(shape.roll, shift=3), _GRID),
    _case("roll-axes", functools.partial(shape.roll, shift=(1, -2), axis=(0, 2)), _GRID),
    _case("mixed-stack", lambda x: shape.stack([x, np.ones(2), x * 2.0], -1), _VECTOR),
    _case("mixed-concat", lambda x: shape.concat([_MATRIX, x], 1), _MATRIX),
    _case("sort-ties", lambda x: scans.sort(x * np.array([1.0, 0.0, 0.0, 2.0])), _GRID),
    _case("max-ties", lambda x: reductions.max_(x * np.array([1.0, 0.0, 0.0, -2.0]), -1), -_GRID),
    _case("prod-zeros", lambda x: reductions.prod(x * np.array([1.0, 0.0]), 0), _MATRIX),
    _case("cumprod-zeros", lambda x: scans.cumprod(x - 0.7, 0), _VECTOR),
]
WITH_OPERANDS = TABLE_CASES + SPECIAL
TOLERANCE = {"rtol": 1e-11, "atol": 1e-11}


def is_elementwise(case: Any) -> bool:
    return getattr(case.entry, "elementwise", False)


def copies(value: Any, seed: int, count: int = ROWS) -> np.ndarray:
    """Slightly different copies of an operand along a new first axis; the first is exact."""
    spread = np.random.default_rng(seed).uniform(-0.02, 0.02, (count, *np.shape(value)))
    spread[0] = 0.0
    return np.asarray(value) * (1 + spread)


def row(value: Any, i: int) -> Any:
    return arrays.tidy(value[i])


def subsets(count: int) -> Iterator[tuple[bool, ...]]:
    return (flags for flags in itertools.product([True, False], repeat=count) if any(flags))


def per_row(value: Any, nesting: int, size: int = ROWS) -> np.ndarray:
    """The rows of a result, whether it is a Tensor or not."""
    return np.asarray(unbatched(value.inner if isinstance(value, Tensor) else value, nesting, size))


def assert_rows(found: Any, nesting: int, expected: Sequence[Any]) -> None:
    np.testing.assert_allclose(per_row(found, nesting), [data(e) for e in expected], **TOLERANCE)


every_case = at_each(WITH_OPERANDS)
every_differentiable_case = at_each(DIFFERENTIABLE + SPECIAL)


class Mixed:
    """The operands of a case, those in `flags` batched, and the operands of each row."""

    def __init__(self, case: Case, flags: Sequence[bool]) -> None:
        self.nesting = new_batch_id()
        many = [copies(o, seed) for seed, o in enumerate(case.operands)]
        self.operands = [Batched(m, self.nesting) if flag else o for m, o, flag in zip(many, case.operands, flags)]
        self.rows = [[row(m, i) if flag else o for m, o, flag in zip(many, case.operands, flags)] for i in range(ROWS)]


# --- the table


def test_every_primitive_has_a_rule():
    missing = [e.name for e in table.entries() if isinstance(e, Primitive) and isinstance(e.batch, NotImplementedRule)]
    assert missing == []


@every_case
def test_a_batch_of_operands_gives_the_values_of_its_rows(case):
    for flags in subsets(len(case.operands)):
        mixed = Mixed(case, flags)
        value = case.call(*mixed.operands)
        expected = [case.call(*operands) for operands in mixed.rows]
        assert isinstance(value, Batched)
        assert value.shape == arrays.shape(expected[0])
        assert_rows(value, mixed.nesting, expected)


# Rows that differ slightly would have the same floor, sign and truth value.
FAR_APART = np.array([1.0, -1.0, 0.0, np.nan])


# `matrix_rank` refuses nan.
@at_each(
    c for c in WITH_OPERANDS if is_elementwise(c) or (c.entry.derivative == "none" and c.entry.name != "matrix_rank")
)
def test_rows_far_apart_stay_where_they_are(case):
    nesting = new_batch_id()
    many = [np.multiply.outer(FAR_APART, o) for o in case.operands]
    with arrays.quiet():
        found = case.call(*(Batched(m, nesting) for m in many))
        expected = [case.call(*(row(m, i) for m in many)) for i in range(len(FAR_APART))]
    np.testing.assert_allclose(per_row(found, nesting), [data(e) for e in expected], **TOLERANCE)


@pytest.mark.parametrize(
    "entry", [e for e in PRIMITIVES if e.elementwise and e.truths and e.vjp is None], ids=lambda e: e.name
)
def test_truth_values_in_a_batch(entry):
    nesting = new_batch_id()
    truths = np.array([[True, True], [True, False], [False, True], [False, False], [True, False]])
    many = [truths, np.array([[False], [True], [False], [False], [True]])][: len(entry.parameters)]
    found = entry(*(Batched(m, nesting) for m in many))
    np.testing.assert_array_equal(found.rows, [entry(*operands) for operands in zip(*many)])


@at_each(c for c in WITH_OPERANDS if c.entry is not cast)
def test_single_precision_stays_single_in_a_batch(case):
    with arrays.using_dtype("float32"):
        for flags in subsets(len(case.operands)):
            mixed = Mixed(case, flags)
            single = [
                Batched(o.rows.astype("float32"), mixed.nesting)
                if isinstance(o, Batched)
                else arrays.asarray(o, "float32")
                for o in mixed.operands
            ]
            value = case.call(*single)
            expected = case.call(*(arrays.asarray(o, "float32") for o in case.operands))
            assert value.dtype == arrays.dtype_name(expected)


def test_a_column_of_numbers_has_no_say_in_the_dtype():
    nesting = new_batch_id()
    column = Batched(np.array([1.0, 2.0]), nesting)
    assert (column * np.ones(3, "float32")).dtype == "float32"
    assert (np.ones(3, "float32") + column).dtype == "float32"
    assert (column * np.ones(3)).dtype == "float64"
    assert (column * 2.0).dtype == "float64"


def nested(
    operand: Any, seed: int, inner: int, outer: int, levels: tuple[bool, bool]
) -> tuple[Any, Callable[..., Any]]:
    """An operand in two batches, one or none, and its value in row i, j."""
    in_inner, in_outer = levels
    many = copies(copies(operand, seed), seed + 1, 2)
    if not in_outer:
        value = batched(many[0], inner) if in_inner else operand
        return value, lambda i, _j: row(many[0], i) if in_inner else operand
    if not in_inner:
        return batched(many[:, 1], outer), lambda _i, j: row(many[j], 1)
    return batched(batched(many, outer), inner), lambda i, j: row(many[j], i)


@pytest.mark.cases(2)
@every_case
def test_batches_nest(case):
    choices = [(True, True), (True, False), (False, True), (False, False)]
    for shift in range(3):
        inner, outer = new_batch_id(), new_batch_id()
        if shift == 2:
            inner, outer = outer, inner
        made = [nested(o, 2 * k, inner, outer, choices[(k + shift) % 4]) for k, o in enumerate(case.operands)]
        value = case.call(*(m[0] for m in made))
        found = unbatched(unbatched(value, outer, 2), inner, ROWS)
        for i, j in itertools.product(range(ROWS), range(2)):
            np.testing.assert_allclose(found[i, j], data(case.call(*(m[1](i, j) for m in made))), **TOLERANCE)


KINKED = [c for c in WITH_OPERANDS if getattr(c.entry, "smooth", None) and c.entry.vjp is not None]


@at_each(KINKED)
def test_a_batch_is_smooth_where_each_row_is(case):
    node = case.call(*(leaf(o) for o in Mixed(case, [True] * len(case.operands)).operands)).grad_fn
    assert case.entry.smooth(*(o.inner if isinstance(o, Tensor) else o for o in node.saved), **node.params)


def test_one_row_that_is_not_smooth_is_enough():
    def in_batch(*matrices: Any) -> Batched:
        return Batched(np.array([np.diag(m) for m in matrices]), new_batch_id())

    for smooth in (decompositions.eigvalsh.smooth, decompositions.svdvals.smooth):
        assert smooth(in_batch([1.0, 2.0], [1.0, 3.0]))
        assert smooth(np.array([np.diag([1.0, 2.0]), np.diag([1.0, 3.0])]))
        assert not smooth(in_batch([1.0, 2.0], [3.0, 3.0]))
    assert not decompositions.svdvals.smooth(in_batch([1.0, 2.0], [1.0, 0.0]))
    assert not reductions.max_.smooth(in_batch([1.0, 2.0], [3.0, 3.0]), axis=(0, 1))
    assert reductions.max_.smooth(in_batch([1.0, 2.0], [1.0, 3.0]), axis=(0, 1))


def row_gradients(case: Case, operands: Sequence[Any], cotangent: Any) -> list[Any]:
    tensors = [leaf(o) for o in operands]
    value = case.call(*tensors)
    found = grad(value, tensors, Tensor(cotangent), allow_unused=True)
    return [np.zeros(t.shape) if g is None else data(g) for t, g in zip(tensors, found)]


@pytest.mark.cases(4)
@every_differentiable_case
def test_gradients_of_a_batch_are_those_of_its_rows(case):
    for flags in subsets(len(case.operands)):
        mixed = Mixed(case, flags)
        tensors = [leaf(o) for o in mixed.operands]
        value = case.call(*tensors)
        given = copies(weights(value), 7)
        seed = Tensor(Batched(given, mixed.nesting))
        with row_by_row(mixed.nesting):
            found = grad(value, tensors, seed, allow_unused=True, retain_graph=True)
        summed = grad(value, tensors, seed, allow_unused=True)
        expected = [row_gradients(case, o, row(given, i)) for i, o in enumerate(mixed.rows)]
        for k, (g, s, flag) in enumerate(zip(found, summed, flags)):
            if g is None:
                assert not np.any([e[k] for e in expected])
            else:
                assert g.shape == tensors[k].shape
                assert_rows(g, mixed.nesting, [e[k] for e in expected])
                if flag:
                    assert_rows(s, mixed.nesting, [e[k] for e in expected])
                else:
                    np.testing.assert_allclose(data(s), sum(e[k] for e in expected), **TOLERANCE)


@pytest.mark.cases(4)
@every_differentiable_case
def test_a_batch_of_cotangents_gives_the_gradients_of_each(case):
    tensors = [leaf(o) for o in case.operands]
    value = case.call(*tensors)
    nesting = new_batch_id()
    given = copies(weights(value), 3)
    with row_by_row(nesting):
        found = grad(value, tensors, Batched(given, nesting), allow_unused=True)
    expected = [row_gradients(case, case.operands, row(given, i)) for i in range(ROWS)]
    for k, g in enumerate(found):
        if g is None:
            assert not np.any([e[k] for e in expected])
        else:
            assert_rows(g, nesting, [e[k] for e in expected])


@pytest.mark.cases(4)
@every_differentiable_case
def test_second_derivatives_of_a_batch_are_those_of_its_rows(case):
    mixed = Mixed(case, [True] * len(case.operands))

    def second(operands: Sequence[Any]) -> list[Any]:
        tensors = [leaf(o) for o in operands]
        value = slope(case, tensors)
        if not value.requires_grad:
            return [None] * len(tensors)
        return list(grad(value, tensors, allow_unused=True))

    expected = [second(operands) for operands in mixed.rows]
    for k, found in enumerate(second(mixed.operands)):
        if found is not None:
            assert_rows(found, mixed.nesting, [e[k] for e in expected])


# --- programs


def nudged(value: Any, i: int) -> Any:
    """Copy `i` of a leaf; integers and values that are not finite stay unchanged."""
    array = np.asarray(numbers(value), dtype=float)
    moved = array * (1 + 1e-3 * i * np.cos(np.arange(array.size).reshape(array.shape)))
    return arrays.tidy(np.where(np.isfinite(array) & (array != np.round(array)), moved, array))


def run_case(case: dict[str, Any], leaves: dict[str, Tensor], names: Sequence[str]) -> tuple[Any, list[Any]]:
    """The value of a program, and its gradients by `names`."""
    value = evaluate(parse(case["program"]), leaves).value
    cotangent = numbers(case["grad_output"]) if "grad_output" in case else None
    return value, list(gradients(value, [leaves[n] for n in names], cotangent))


def assert_same_rows(found: Any, nesting: int, expected: Sequence[Any]) -> None:
    assert (found is None) == (expected[0] is None)
    if found is not None:
        wanted = np.array([data(e) for e in expected], dtype=float)
        scale = max([1.0, *abs(wanted[np.isfinite(wanted)])])
        np.testing.assert_allclose(
            np.asarray(per_row(found, nesting), dtype=float), wanted, rtol=1e-10, atol=1e-13 * scale
        )


@pytest.mark.parametrize("case", PROGRAMS, ids=[c["id"] for c in PROGRAMS])
def test_a_program_in_a_batch_gives_what_it_gives_for_each_row(case):
    names = [n for n in case["bindings"] if n in case["grad"]]
    copied = [{n: nudged(v, i) for n, v in case["bindings"].items()} for i in range(ROWS)]
    nesting = new_batch_id()
    together = {n: leaf(Batched(np.array([c[n] for c in copied]), nesting)) for n in case["bindings"]}
    value, found = run_case(case, together, names)
    apart = [run_case(case, {n: leaf(v) for n, v in c.items()}, names) for c in copied]
    assert_same_rows(value, nesting, [a[0] for a in apart])
    for k, gradient in enumerate(found):
        assert_same_rows(gradient, nesting, [a[1][k] for a in apart])


# --- Jacobians


@pytest.fixture
def looped(monkeypatch):
    """Calls a function with Jacobians computed row by row."""

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(rows, "_rows_at_once", lambda *_: 0)
            return function(*arguments)

    return call


@pytest.fixture
def passes(monkeypatch):
    """Counts the backward passes for rows."""
    seen = []
    count = rows._gradients
    monkeypatch.setattr(rows, "_gradients", lambda *arguments: seen.append(1) or count(*arguments))
    return seen


def assert_same_arrays(found: Any, expected: Any) -> None:
    for name, wanted in expected.items():
        assert (found[name] is None) == (wanted is None)
        if wanted is not None:
            scale = max([1.0, *np.abs(np.ravel(wanted))[np.isfinite(np.ravel(wanted))]])
            np.testing.assert_allclose(found[name], wanted, rtol=1e-10, atol=1e-13 * scale)


@pytest.mark.parametrize("case", PROGRAMS, ids=[c["id"] for c in PROGRAMS])
def test_a_jacobian_in_one_pass_is_that_of_a_pass_for_each_row(case, looped):
    program = gradcli.compile(case["program"])
    values = {n: numbers(v) for n, v in case["bindings"].items() if n in case["program"]}
    wrt = case.get("wrt")
    assert_same_arrays(program.jacobian(values, wrt), looped(program.jacobian, values, wrt))
    if not np.ndim(numbers(case["value"])) and sum(map(np.size, values.values())) <= 12:
        assert_same_arrays(program.hessian(values, wrt), looped(program.hessian, values, wrt))


VECTOR = {"x": np.array([0.5, -1.5, 2.0, 0.3]), "w": np.array([1.0, 2.0, -0.5, 0.7])}
INSIDE = (
    "jacobian(x*w, x) @ w",
    "sum(jacobian(sin(x)*w, x) * jacobian(cumsum(x**2*w), x), axis=1)",
    "jacobian(jacobian(x**3*w, x) @ x, x) @ w",
    "hessian(sum(x**3*w) + prod(x), x) @ w",
    "u = x*w; jacobian(hessian(sum(u**4), u) @ u, u)",
    "jacobian(sort(x)*x, x) @ w",
    "f(a) = a**3 backward(g) = 3*g*a**2; jacobian(f(x)*w, x) @ x",
    "f(a) = a**3 backward(g) = 3*g*a**2; hessian(sum(f(x)*w), x) @ x",
    "f(a, b) = a*b backward(g) = g*diff(sum(a*b), a), g*a; jacobian(f(x, w)**2, x) @ w",
    "f(a, b) = a**2*b backward(g) = diff(sum(g*a**2*b), a), g*a**2; jacobian(f(x, w), x) @ w",
    "f(a, b) = a**2*b backward(g) = jacobian(g*a**2, a) @ b, g*a**2; jacobian(f(x, w), x) @ w",
    "f(a) = log(exp(a)) backward(g) = g*log(exp(a))/a; jacobian(f(x)*w, x) @ x",
)


@pytest.mark.cases(4)
@pytest.mark.parametrize("program", INSIDE)
def test_jacobians_inside_a_program_can_be_differentiated(program, looped, passes):
    compiled = gradcli.compile(program)

    def everything() -> dict[str, Any]:
        value, found = compiled.value_and_grad(VECTOR, grad_output=np.ones(np.shape(compiled(**VECTOR))))
        return {"value": value, **found, **{f"J {n}": j for n, j in compiled.jacobian(VECTOR).items()}}

    found = everything()
    together = len(passes)
    assert_same_arrays(found, looped(everything))
    assert together < len(passes) - together


def test_a_jacobian_takes_one_pass(passes):
    found = gradcli.compile("tanh(W @ x)").jacobian({"x": np.ones(20), "W": np.eye(30, 20)})
    assert len(passes) == 1
    assert found["x"].shape == (30, 20)
    assert found["W"].shape == (30, 30, 20)


def test_rows_that_do_not_fit_into_memory_together_take_several_passes(passes, monkeypatch):
    program, values = gradcli.compile("sum(jacobian(x**3*w, x), axis=0)"), VECTOR
    whole = program.jacobian(values)
    first = len(passes)
    monkeypatch.setattr(batch, "MAX_ELEMENTS", 40)
    assert_same_arrays(program.jacobian(values), whole)
    assert len(passes) - first > first


def test_the_widest_intermediate_result_counts(passes, monkeypatch):
    monkeypatch.setattr(batch, "MAX_ELEMENTS", 1000)
    gradcli.compile("sum(exp(x[:, None] + x), axis=1)").jacobian({"x": np.linspace(0.0, 1.0, 20)})
    assert len(passes) == 10


def test_the_value_may_be_the_leaf_or_constant_or_empty():
    jacobian = gradcli.compile("x").jacobian({"x": [1.0, 2.0]})["x"]
    np.testing.assert_array_equal(jacobian, np.eye(2))
    assert gradcli.compile("w + detach(x)").jacobian({"x": [1.0], "w": [2.0]})["x"] is None
    assert gradcli.compile("x[2:]").jacobian({"x": [1.0, 2.0]})["x"].shape == (0, 2)


CONDITIONS = (
    "f(a) = a**2 backward(g) = (g*2*a if sum(g) > 0.5 else g*0); f(x)",
    "f(a) = a**2 backward(g) = 2*g[argmax(g)]*a*(g > 0); f(x)",
)


@pytest.mark.parametrize("program", CONDITIONS)
def test_a_backward_clause_that_looks_at_the_numbers_gets_one_row_at_a_time(program, passes):
    found = gradcli.compile(program).jacobian({"x": VECTOR["x"]})
    np.testing.assert_allclose(found["x"], np.diag(2 * VECTOR["x"]))
    assert len(passes) == 5


def test_a_users_function_gets_one_row_at_a_time(passes):
    class Square(gradcli.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return Tensor(2 * g.detach().numpy() * x.detach().numpy())

    found = gradcli.jacobian(lambda x: Square.apply(x) * 3.0, gradcli.tensor([1.0, 2.0]))
    np.testing.assert_array_equal(found.numpy(), [[6.0, 0.0], [0.0, 12.0]])
    assert len(passes) == 2


def test_hooks_get_one_row_at_a_time(passes):
    x = gradcli.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    jacobians(y * y, (x,))
    assert seen == [[4.0, 0.0], [0.0, 8.0]]
    seen.clear()
    z = gradcli.tensor([1.0, 2.0], requires_grad=True)
    z.register_hook(lambda g: seen.append(g.tolist()))
    jacobians(z * z, (z,))
    assert seen == [[2.0, 0.0], [0.0, 4.0]]
    assert len(passes) == 4


def test_a_sum_over_rows_of_a_series():
    # Coefficients outside the batch count once for each row.
    nesting = new_batch_id()
    for shared in (0, 1):
        coefficients = [np.ones(2), Batched(np.ones((3, 2)), nesting)]
        summed = sum_over_rows(Jet(coefficients[:: 1 - 2 * shared], 1), np.ones(2))
        assert [summed.coefficient(k).tolist() for k in (0, 1)] == [[3.0, 3.0], [3.0, 3.0]]


def test_a_retained_gradient_is_the_sum_over_the_rows():
    x = gradcli.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    y.retain_grad()
    jacobians(y * y, (x,))
    assert y.grad.tolist() == [4.0, 8.0]


UNTAKEN = (
    "sqrt(x)[::-1]",
    "y = norm(x/w - x, axis=0)*log(x); where(x > 0, y, x)",
    "stack([max(sqrt(x)), min(x*log(x + 1)), sum(x)])",
    "y = cumsum(log(x)); stack([where(x[0] > 0, y[1], x[1]), y[1]])",
    "y = prod(x)/x; concat([y[:1], x*w])",
    "hessian(sum(sqrt(x)[1:]), x)[1:]",
)


@pytest.mark.parametrize("program", UNTAKEN)
def test_what_was_not_taken_in_a_row_stays_out_of_it(program, looped):
    """A derivative is infinite where some rows do not take a branch."""
    compiled, values = gradcli.compile(program), {"x": [0.0, 3.0], "w": [2.0, 5.0]}
    values = {n: values[n] for n in compiled.inputs}
    assert_same_arrays(compiled.jacobian(values), looped(compiled.jacobian, values))


def test_zeros_of_what_was_not_taken_are_told_apart_row_by_row():
    found = gradcli.compile("sqrt(x)[::-1]").jacobian({"x": [0.0, 4.0]})["x"]
    np.testing.assert_array_equal(found, [[0.0, 0.25], [np.inf, 0.0]])
    values = {"W": [[np.inf, 1.0], [2.0, 3.0]], "x": [1.0, 2.0]}
    found = gradcli.compile("y = W @ x; stack([y[0], x[1]])").jacobian(values)["x"]
    np.testing.assert_array_equal(found, [[np.inf, 1.0], [0.0, 1.0]])


def test_the_rows_of_a_jacobian_have_the_dtype_of_the_leaf():
    x = gradcli.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    (found,) = jacobians(gradcli.sin(x) * x, (x,))
    assert found.dtype == "float32"


def test_a_number_cannot_be_taken_out_of_a_batch():
    value = Batched(np.array([1.0, 2.0]), new_batch_id())
    for look in (bool, float, int, np.asarray, lambda v: Tensor(v).item(), lambda v: bool(Tensor(v))):
        with pytest.raises(NotBatchableError, match="others in each row"):
            look(value)


def test_a_hessian_is_the_jacobian_of_a_gradient(passes):
    _, found = derivatives(lambda named: (named["x"] ** 3 * named["x"].sum()).sum(), {"x": np.array([0.5, -1.5])}, 2)
    assert found["x,x"].shape == (2, 2)
    assert len(passes) == 1


def test_a_jacobian_can_be_recorded():
    program = parse("jacobian(sin(x)*sum(x*w), x)")

    def function(x: Any, w: Any) -> list[Any]:
        return [evaluate(program, {"x": leaf(x), "w": leaf(w)}).value]

    traced = record(function, VECTOR)
    np.testing.assert_allclose(traced.values[0], gradcli.compile("jacobian(sin(x)*sum(x*w), x)")(**VECTOR))
    assert len(traced.program.equations) < 40
