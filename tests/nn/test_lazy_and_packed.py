"""Lazy layers, packed sequences, grids, scattered reductions and comparisons: what is refused, and edge cases.

Their numbers are compared with PyTorch's in `tests/backends/test_pytorch_code.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import nn
from gradcli.nn import functional
from gradcli.nn.utils import rnn


def test_a_parameter_of_a_lazy_layer_has_no_numbers_before_the_first_call():
    layer = nn.LazyLinear(2)
    optimizer = gradcli.optim.SGD(layer.parameters(), lr=0.5)
    assert layer.has_uninitialized_params()
    for refused in (lambda: layer.weight.sum(), layer.state_dict, lambda: layer.weight + 1):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            refused()
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        layer.weight.numel()
    weight = layer.weight
    layer(gradcli.ones(1, 3)).sum().backward()
    before = weight.detach().clone()
    optimizer.step()
    assert layer.weight is weight
    assert type(layer) is nn.Linear
    np.testing.assert_allclose((before - weight).tolist(), [[0.5] * 3] * 2)


def test_a_lazy_layer_keeps_a_dtype():
    layer = nn.LazyConv1d(2, 1).to(gradcli.float32)
    layer(gradcli.ones(1, 3, 4, dtype="float32"))
    assert layer.weight.dtype == "float32"
    assert layer.bias.shape == (2,)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [([1, 2], "sorted in decreasing order"), ([2, 0], "greater than 0"), ([3, 1], "at most 2"), ([2], "batch_size=2")],
)
def test_lengths_that_do_not_fit_are_refused(lengths, message):
    with pytest.raises(RuntimeError, match=message):
        rnn.pack_padded_sequence(gradcli.zeros(2, 2, 1), lengths)


def test_sequences_are_packed_and_unpacked():
    sequences = [gradcli.tensor(numbers) for numbers in ([1.0], [2.0, 3.0, 4.0], [5.0, 6.0])]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.tolist() == [2.0, 5.0, 1.0, 3.0, 6.0, 4.0]
    assert [part.tolist() for part in rnn.unpack_sequence(packed)] == [x.tolist() for x in sequences]
    with pytest.raises(ValueError, match="total_length"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_a_packed_sequence_of_the_wrong_width_is_refused():
    with pytest.raises(RuntimeError, match=r"Expected 2, got 1"):
        nn.GRU(2, 3)(rnn.pack_sequence([gradcli.zeros(4, 1)]))


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
def test_scattered_reductions_are_those_of_each_place(how):
    rng = np.random.default_rng(0)
    x, src, places = rng.normal(size=(5, 2)), rng.normal(size=(30, 2)), rng.integers(0, 4, (30, 2))
    found = gradcli.tensor(x).scatter_reduce(0, gradcli.tensor(places), gradcli.tensor(src), how)
    of = {"amax": np.max, "amin": np.min}.get(how) or getattr(np, how)
    expected = [[of([x[i, j], *src[places[:, j] == i, j]]) for j in range(2)] for i in range(5)]
    np.testing.assert_allclose(found.tolist(), expected, rtol=1e-12)


def test_scattered_reductions_differentiate_again():
    def reduced(x, src):
        return x.scatter_reduce(0, gradcli.tensor([0, 0, 1]), src, "prod").sum()

    x, src = gradcli.tensor([2.0, 3.0], requires_grad=True), gradcli.tensor([0.0, 5.0, 7.0], requires_grad=True)
    by_x, by_src = gradcli.autograd.grad(reduced(x, src), (x, src), create_graph=True)
    # With a zero among the factors, the derivative is the product of the others.
    assert (by_x.tolist(), by_src.tolist()) == ([0.0, 7.0], [10.0, 0.0, 3.0])
    assert gradcli.autograd.grad(by_src.sum(), x)[0].tolist() == [5.0, 1.0]


def test_whole_numbers_stay_whole_in_scattered_reductions():
    x, places, src = gradcli.tensor([1, 2]), gradcli.tensor([0, 0]), gradcli.tensor([5, -8])
    found = [x.scatter_reduce(0, places, src, how).tolist() for how in ("sum", "amax", "amin", "mean")]
    assert found == [[-2, 2], [5, 2], [-8, 2], [-1, 2]]


def test_calls_that_do_not_fit_are_refused():
    x = gradcli.zeros(3)
    with pytest.raises(gradcli.GradcliError, match="no reduction 'max'"):
        x.scatter_reduce(0, gradcli.tensor([0]), x[:1], "max")
    with pytest.raises(gradcli.GradcliError, match="out of bounds"):
        x.scatter_reduce(0, gradcli.tensor([3]), x[:1], "sum")
    with pytest.raises(gradcli.GradcliError, match="grid_sampler"):
        functional.grid_sample(gradcli.zeros(1, 1, 2, 2), gradcli.zeros(1, 2, 2, 3))
    with pytest.raises(gradcli.GradcliError, match="affine matrices"):
        functional.affine_grid(gradcli.zeros(1, 3, 3), (1, 1, 2, 2))
    with pytest.raises(ValueError, match="offsets has to be"):
        functional.embedding_bag(gradcli.tensor([0]), gradcli.zeros(1, 1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'fullgrap'"):
        gradcli.compile(lambda x: x, fullgrap=True)
    with pytest.raises(AttributeError, match="float16 and float32 are there"):
        _ = gradcli.bfloat16


def test_assert_close_says_where_tensors_differ():
    compare = gradcli.testing.assert_close
    compare({"a": [gradcli.ones(2), 1.0]}, {"a": [gradcli.ones(2) + 1e-9, 1.0]})
    compare(gradcli.tensor([gradcli.nan]), gradcli.tensor([gradcli.nan]), equal_nan=True)
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 2 \(50\.0%\)\n.*1\.0 at index \(1,\)"):
        compare(gradcli.tensor([1.0, 2.0]), gradcli.tensor([1.0, 3.0]))
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        compare(gradcli.ones(1), gradcli.ones(1, dtype="float32"))
    with pytest.raises(AssertionError, match="'shape' do not match"):
        compare(gradcli.ones(1), gradcli.ones(2))
    with pytest.raises(AssertionError, match="failure occurred for item \\[1\\]"):
        compare([1.0, 2.0], [1.0, 3.0])
    with pytest.raises(ValueError, match="both be specified"):
        compare(1.0, 1.0, rtol=0.1)


@pytest.mark.parametrize(
    ("targets", "lengths", "message"),
    [
        ([[1, 0]], ([4], [2]), "other than the blank"),
        ([[1, 2]], ([5], [2]), "at most 4"),
        ([[1, 2]], ([4], [3]), "shorter than target_lengths"),
        ([[1, 2]], ([4, 4], [2]), "takes 1 lengths"),
    ],
)
def test_targets_of_ctc_loss_that_do_not_fit_are_refused(targets, lengths, message):
    with pytest.raises(RuntimeError, match=message):
        functional.ctc_loss(gradcli.zeros(4, 1, 3), gradcli.tensor(targets), *lengths)
