"""Tests programs with many products and vectors, which are joined when a compiled program is called again."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.executors import joined_operations, stepwise
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add
from gradcli.primitives.entries.elementwise.trigonometric import tanh
from gradcli.primitives.entries.exponential import sigmoid
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.shape import concat
from gradcli.program.ir import Equation, Program, Variable, check

RNG = np.random.default_rng(0)
WEIGHTS = {name: RNG.standard_normal((6, 6)) / 3 for name in ("W", "U", "V", "X")} | {
    "b": RNG.standard_normal(6),
    "e": RNG.standard_normal((20, 6)),
}
NETWORKS = {
    "recurrent": "h = zeros(6); for x in e { h = tanh(W@x + U@h + b) }; mean(h**2)",
    "two layers": "h = b; k = b; for x in e { h = tanh(W@x + U@h); k = tanh(V@h + X@k) }; sum(k)",
    "shared weights": "h = b; for x in e { h = tanh(W@x + W@h) }; sum(h)",
    "loss of every step": "t = 0; for x in e { y = tanh(W@x); t = t + sum((U@y - V@x)**2) }; t",
    "matrices by matrices": "H = W; for x in e { H = tanh(U@H + V@W) }; sum(H)",
    "vectors as two columns": (
        "t = W; for x in e { t = t + concat([x, b*x]).reshape(6, 2)@concat([b, x*x]).reshape(2, 6) }; sum(t**2)"
    ),
    "vectors as columns and rows": "t = W; for x in e { t = t + (b*x).reshape(6, 1)@tanh(W@x).reshape(1, 6) }; sum(t**2)",
    "gates": "h = b; c = b; for x in e { g = sigmoid(W@x + U@h); c = g*c + tanh(V@x + X@h); h = g*tanh(c) }; sum(h)",
    "rows in the other order": "t = W; s = b; for x in flip(e, 0) { t = t + outer(U@x, x); s = s + tanh(x) }; sum(t)*sum(s)",
    "functions of vectors": "s = b; for x in e { s = s + sigmoid(W@x)*exp(U@x) }; sum(s**2)",
    "with a sum of squares": "t = sum(W**2)*W; for x in e { t = t + outer(U@x, x) }; sum(t*V)",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_same_gradient_again(name: str) -> None:
    program, wrt = gradcli.compile(NETWORKS[name]), [n for n in WEIGHTS if f"{n}" in NETWORKS[name] and n != "e"]
    values = {n: WEIGHTS[n] for n in [*wrt, "e"]}
    first, gradients = program.value_and_grad(values, wrt)
    for _ in range(4):
        again, others = program.value_and_grad(values, wrt)
        assert again == pytest.approx(first, rel=1e-12)
        for n in wrt:
            np.testing.assert_allclose(others[n], gradients[n], rtol=1e-10, atol=1e-12)


def test_the_gradient_of_a_recurrent_network_has_one_product_for_each_of_its_weights() -> None:
    equations = _outer_products(10)
    found = joined_operations.joined(equations)
    assert [e.primitive for e in found.equations].count(matmul) == 1
    inputs = [RNG.standard_normal(v.shape) for v in found.inputs]
    np.testing.assert_allclose(stepwise.outputs(found, inputs), stepwise.outputs(equations, inputs), rtol=1e-13)


def test_rows_of_a_matrix_are_not_stacked_again() -> None:
    matrix, weights = Variable((20, 5), "float64"), Variable((5, 5), "float64")
    rows = [Variable((5,), "float64") for _ in range(20)]
    products = [Variable((5,), "float64") for _ in rows]
    sums = _sums(products[::-1])
    found = joined_operations.joined(
        Program(
            (matrix, weights),
            (
                *(Equation(index, (matrix,), {"key": (i,)}, row) for i, row in enumerate(rows)),
                *(Equation(matmul, (weights, row), {}, product) for row, product in zip(rows, products)),
                *sums,
            ),
            (sums[-1].output,),
        )
    )
    assert [e.primitive for e in found.equations if e.primitive in (concat, matmul)] == [matmul]


def test_matrices_side_by_side_are_not_rows_of_a_tensor() -> None:
    tensor, vector = Variable((4, 2, 4), "float64"), Variable((4,), "float64")
    matrices = [Variable((2, 4), "float64") for _ in range(4)]
    wide, again, first, second = (Variable(s, "float64") for s in ((2, 16), (4, 2, 4), (4, 2), (4,)))
    program = Program(
        (tensor, vector),
        (
            *(Equation(index, (tensor,), {"key": (i,)}, m) for i, m in enumerate(matrices)),
            Equation(concat, tuple(matrices), {"axis": 1}, wide),
            Equation(reshape, (wide,), {"shape": (4, 2, 4)}, again),
            Equation(matmul, (again, vector), {}, first),
            Equation(tanh, (vector,), {}, second),
        ),
        (first, second),
    )
    found, inputs = joined_operations.joined(program), [RNG.standard_normal(v.shape) for v in program.inputs]
    np.testing.assert_allclose(stepwise.outputs(found, inputs)[0], stepwise.outputs(program, inputs)[0], rtol=1e-13)


def test_elements_that_lists_of_numbers_choose_are_joined() -> None:
    program = gradcli.compile("sum(concat([e[[0, 2]], e[[1, 0]]]).reshape(2, 2)@[1, x])")
    for _ in range(3):
        value, found = program.value_and_grad({"e": np.arange(5.0), "x": 2.0}, ["x"])
        assert (value, found["x"]) == (5.0, 2.0)


@pytest.mark.parametrize("terms", [7, 8, 20])
def test_many_vectors_are_added_and_given_to_a_function_at_once(terms: int) -> None:
    vectors = [Variable((5,), "float64") for _ in range(terms)]
    results = [Variable((5,), "float64") for _ in vectors]
    functions = [Equation(sigmoid, (v,), {}, r) for v, r in zip(vectors, results)]
    sums = _sums(results)
    program = Program((*vectors,), (*functions, *sums), (sums[-1].output,))
    found = check(joined_operations.joined(program))
    used = [e.primitive for e in found.equations]
    assert (used.count(sigmoid), used.count(add)) == ((1, 0) if terms >= 8 else (terms, terms - 1))
    inputs = [RNG.standard_normal(5) for _ in vectors]
    np.testing.assert_allclose(stepwise.outputs(found, inputs), stepwise.outputs(program, inputs), rtol=1e-13)


def _sums(terms: list[Variable]) -> list[Equation]:
    """The sum of the terms, one after the other."""
    found: list[Equation] = []
    for term in terms[1:]:
        total = found[-1].output if found else terms[0]
        found.append(Equation(add, (total, term), {}, Variable(term.shape, "float64")))
    return found


def _outer_products(count: int) -> Program:
    """The sum of the products of columns and rows."""
    columns = [Variable((5, 1), "float64") for _ in range(count)]
    rows = [Variable((1, 4), "float64") for _ in range(count)]
    equations: list[Equation] = []
    total = None
    for column, row in zip(columns, rows):
        product = Variable((5, 4), "float64")
        equations.append(Equation(matmul, (column, row), {}, product))
        if total is not None:
            equations.append(Equation(add, (total, product), {}, product := Variable((5, 4), "float64")))
        total = product
    return Program((*columns, *rows), tuple(equations), (total,))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_keep_their_results(seed: int) -> None:
    program = _random_program(random.Random(seed))
    found = check(joined_operations.joined(program))
    assert found.equations != program.equations
    inputs = [RNG.standard_normal(v.shape) / 2 for v in program.inputs]
    for before, after in zip(stepwise.outputs(program, inputs), stepwise.outputs(found, inputs)):
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


def _random_program(rng: random.Random) -> Program:
    """Sums of outer products and of vectors, matrices by vectors, and functions of them, in any order; some of the
    results are read."""
    matrix, vector, column, row = ([Variable(s, "float64") for _ in range(3)] for s in ((3, 3), (3,), (3, 1), (1, 3)))
    inputs, equations = (*matrix, *vector, *column, *row), list[Equation]()

    def computed(primitive: Any, *operands: Variable, like: list[Variable]) -> Variable:
        output = Variable(like[0].shape, "float64")
        equations.append(Equation(primitive, operands, {}, output))
        return output

    while len(equations) < 150:
        kind = rng.choice([matrix, vector, vector, column, row])
        if kind is matrix:
            sum_so_far = rng.choice(matrix)
            for _ in range(rng.randrange(4)):
                product = computed(matmul, rng.choice(column), rng.choice(row), like=matrix)
                operands = rng.sample([sum_so_far, product], 2)
                sum_so_far = computed(add, *operands, like=matrix)
            kind.append(sum_so_far)
        elif kind is vector and rng.random() < 0.5:
            kind.append(computed(matmul, rng.choice(matrix[:3]), rng.choice(vector), like=vector))
        elif kind is vector and rng.random() < 0.3:
            sum_so_far = rng.choice(vector)
            for term in rng.choices(vector, k=12):
                sum_so_far = computed(add, sum_so_far, computed(sigmoid, term, like=vector), like=vector)
            kind.append(sum_so_far)
        else:
            kind.append(computed(tanh, rng.choice(kind), like=kind))
    return Program(inputs, tuple(equations), tuple(rng.sample([e.output for e in equations], 12)))
