"""Tests details of JAX's names: errors, keys, and the types of arguments."""

from __future__ import annotations

import numpy
import pytest

import gradcli
import gradcli.jax as jax
import gradcli.jax.numpy as jnp
from gradcli.errors import ArgumentError, CallError, DifferentiationError, MissingRuleError, ShapeError
from gradcli.jax import lax, random


def test_arrays_come_out_as_tensors():
    for found in (jnp.zeros(3), jnp.sin(0.5), jax.grad(jnp.sin)(0.5), jax.jit(lambda x: x + 1)(numpy.arange(2.0))):
        assert type(found) is gradcli.Tensor
    assert jnp.shape(jnp.ones((2, 3))) == (2, 3)
    assert jnp.zeros(2, dtype=jnp.float32).dtype == "float32"
    assert isinstance(jnp.ones(2), jnp.ndarray)


def test_an_update_leaves_the_array_as_it_is():
    x = jnp.arange(3.0)
    assert x.at[1].set(9.0).tolist() == [0.0, 9.0, 2.0]
    assert x.at[jnp.array([0, 0, 2])].add(1.0).tolist() == [2.0, 1.0, 3.0]
    assert x.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(CallError, match="changed several times"):
        x.at[jnp.array([0, 0])].multiply(2.0)


def test_a_scan_says_what_is_missing():
    with pytest.raises(ArgumentError, match="needs its length"):
        lax.scan(lambda c, x: (c, x), 0.0)
    with pytest.raises(ShapeError, match="not equally many: 2, 3"):
        lax.scan(lambda c, x: (c, x), 0.0, (jnp.ones(2), jnp.ones(3)))
    state, outputs = lax.scan(lambda c, x: (c + x, None), 0.0, jnp.arange(3.0), reverse=True)
    assert (state.item(), outputs) == (3.0, None)


def test_a_rule_is_needed_and_sees_its_arguments_alone():
    with pytest.raises(MissingRuleError, match="no VJP is defined"):
        jax.custom_vjp(jnp.sin)(1.0)
    with pytest.raises(MissingRuleError, match="no JVP is defined"):
        jax.custom_jvp(jnp.sin)(1.0)

    def closed_over(a):
        f = jax.custom_vjp(lambda x: a * x)
        f.defvjp(lambda x: (a * x, None), lambda _, g: (g,))
        return f(a)

    with pytest.raises(DifferentiationError, match="tensors from outside"):
        jax.grad(closed_over)(2.0)


def test_a_key_always_gives_the_same_numbers():
    key = random.PRNGKey(0)
    first, second = random.split(key)
    assert random.normal(key, (3,)).tolist() == random.normal(random.key(0), (3,)).tolist()
    draws = [random.normal(k, (3,)).tolist() for k in (key, first, second, random.fold_in(key, 1), random.PRNGKey(1))]
    assert len({tuple(draw) for draw in draws}) == len(draws)
    numbers = random.uniform(first, (1000,), minval=2.0, maxval=3.0)
    assert 2.0 <= numbers.min().item() < 2.02 < 2.98 < numbers.max().item() < 3.0
    assert abs(random.normal(second, (2000,)).mean().item()) < 0.1
    assert sorted(random.permutation(key, 5).tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(ArgumentError, match="two whole numbers"):
        random.normal(random.split(key, 3))


def test_trees_have_none_as_a_part_and_their_keys_sorted():
    tree = {"b": 1.0, "a": (None, [2.0, 3.0])}
    assert jax.tree.leaves(tree) == [2.0, 3.0, 1.0]
    assert jax.tree.map(lambda x: 2 * x, tree) == {"b": 2.0, "a": (None, [4.0, 6.0])}
    assert jax.flatten_util.ravel_pytree(tree)[0].tolist() == [2.0, 3.0, 1.0]
    assert jax.tree.structure(tree) == jax.tree.structure(jax.tree.map(str, tree))
    with pytest.raises(CallError, match="sequence of 2"):
        jax.tree.map(lambda x, y: x, tree, {"b": 1.0, "a": [None]})


def test_float64_may_be_asked_for():
    jax.config.update("jax_enable_x64", True)
    with pytest.raises(ArgumentError, match="float64"):
        jax.config.update("jax_enable_x64", False)


def test_an_associative_scan_has_the_running_results():
    x = jnp.arange(6.0).reshape(3, 2) + 1
    assert lax.associative_scan(jnp.add, x).tolist() == numpy.cumsum(x.numpy(), 0).tolist()
    found = lax.associative_scan(jnp.multiply, x, reverse=True, axis=1)
    assert found.tolist() == [[2.0, 2.0], [12.0, 4.0], [30.0, 6.0]]
    matrices = jnp.stack([jnp.array([[1.0, k], [0.0, 1.0]]) for k in (1.0, 2.0, 3.0)])
    pair = lax.associative_scan(lambda a, b: (a[0] @ b[0], a[1] + b[1]), (matrices, x))
    assert pair[0][2].tolist() == [[1.0, 6.0], [0.0, 1.0]]
    assert pair[1].tolist() == numpy.cumsum(x.numpy(), 0).tolist()
    slope = jax.grad(lambda v: lax.associative_scan(jnp.multiply, v)[2])(jnp.array([2.0, 3.0, 5.0]))
    assert slope.tolist() == [15.0, 10.0, 6.0]


def test_scans_and_the_largest_elements_have_the_names_of_lax():
    x = jnp.array([1.0, 3.0, 2.0])
    assert lax.cumsum(x, reverse=True).tolist() == [6.0, 5.0, 2.0]
    assert lax.cummax(x).tolist() == [1.0, 3.0, 3.0]
    values, indices = lax.top_k(x, 2)
    assert (values.tolist(), indices.tolist()) == ([3.0, 2.0], [1, 2])


def test_activations_have_the_values_of_jax():
    x = jnp.array([-4.0, -1.0, 0.5, 4.0])
    numbers = x.numpy()
    expected = numpy.clip(numbers / 6 + 0.5, 0, 1)
    numpy.testing.assert_allclose(jax.nn.hard_sigmoid(x).numpy(), expected)
    numpy.testing.assert_allclose(jax.nn.hard_silu(x).numpy(), numbers * expected)
    numpy.testing.assert_allclose(jax.nn.mish(x).numpy(), numbers * numpy.tanh(numpy.log1p(numpy.exp(numbers))))
    numpy.testing.assert_allclose(jax.nn.squareplus(x, 1).numpy(), (numbers + numpy.sqrt(numbers**2 + 1)) / 2)
    spread = numpy.sqrt(numbers.var() + 1e-5)
    numpy.testing.assert_allclose(jax.nn.standardize(x).numpy(), (numbers - numbers.mean()) / spread)
    with pytest.raises(ArgumentError, match="no 'where'"):
        jax.nn.standardize(x, where=x > 0)
