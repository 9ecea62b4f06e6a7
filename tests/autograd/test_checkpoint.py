"""Tests checkpoints, whose values are recomputed in backward, as in PyTorch."""

from __future__ import annotations

import contextlib
import gc
import weakref

import numpy as np
import pytest

import gradcli
from gradcli import autograd, nn
from gradcli.errors import ArgumentError, CheckpointError
from gradcli.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

both = pytest.mark.parametrize("reentrant", [False, True])


def leaf(data):
    return gradcli.tensor(data, requires_grad=True)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def chain(x):
    return gradcli.sin(gradcli.exp(gradcli.sin(x)))


def slope(function):
    """The derivative of a function, as a function that can be differentiated again."""

    def derivative(x):
        with gradcli.enable_grad():
            return gradcli.grad(function(x).sum(), x, create_graph=True)[0]

    return derivative


def lazy(function):
    return lambda x: checkpoint(function, x, use_reentrant=False)


@both
class TestEither:
    def test_gives_the_gradients_of_the_function(self, reentrant):
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        function = Counted(lambda a, scale, b: (a * b * scale, gradcli.exp(a)))
        product, exponential = checkpoint(function, x, 2.0, y, use_reentrant=reentrant)
        assert function.calls == 1
        (product.sum() + exponential.sum()).backward()
        assert function.calls == 2
        assert np.allclose(x.grad.numpy(), [6 + np.e, 8 + np.e**2])
        assert y.grad.tolist() == [2.0, 4.0]

    def test_reaches_parameters_that_are_no_arguments(self, reentrant):
        layer = nn.Linear(2, 2)
        x = leaf([[1.0, 2.0]])
        checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
        assert layer.weight.grad.tolist() == [[1.0, 2.0], [1.0, 2.0]]

    def test_of_segments(self, reentrant):
        layers = nn.Sequential(*(nn.Linear(2, 2) for _ in range(5)))
        x = leaf([[1.0, 2.0]])
        value = checkpoint_sequential(layers, 2, x, use_reentrant=reentrant)
        assert np.allclose(value.detach().numpy(), layers(x).detach().numpy())
        value.sum().backward()
        expected = gradcli.grad(layers(x).sum(), x)[0]
        assert np.allclose(x.grad.numpy(), expected.numpy())

    def test_can_be_gone_through_twice(self, reentrant):
        x = leaf([1.0, 2.0])
        y = checkpoint(lambda x: x**3, x, use_reentrant=reentrant).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.tolist() == [6.0, 24.0]
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()

    def test_sees_that_an_argument_was_changed(self, reentrant):
        x = leaf([1.0, 2.0]) * 1
        y = checkpoint(lambda x: x**3, x, use_reentrant=reentrant).sum()
        x.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


class TestReentrant:
    def test_is_to_be_asked_for(self):
        x = leaf([1.0, 2.0])
        with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
            checkpoint(gradcli.exp, x)
        with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
            checkpoint_sequential([gradcli.exp, gradcli.exp], 2, x)

    def test_goes_with_backward_of_all_leaves_alone(self):
        x = leaf([1.0, 2.0])
        y = checkpoint(gradcli.exp, x, use_reentrant=True).sum()
        with pytest.raises(CheckpointError, match=r"is incompatible with \.grad\(\)"):
            gradcli.grad(y, x)
        with pytest.raises(CheckpointError, match="passing an `inputs` parameter"):
            y.backward(inputs=[x])
        y.backward()
        assert np.allclose(x.grad.numpy(), np.exp([1.0, 2.0]))

    def test_takes_no_keywords_or_contexts(self):
        x = leaf(1.0)
        with pytest.raises(ArgumentError, match=r"^Unexpected keyword arguments: scale$"):
            checkpoint(lambda x, scale: x, x, use_reentrant=True, scale=1)
        with pytest.raises(ArgumentError, match=r"only supported when use_reentrant=False\.$"):
            checkpoint(gradcli.exp, x, use_reentrant=True, debug=True)

    def test_warns_of_arguments_none_of_which_requires_grad(self):
        with pytest.warns(UserWarning, match=r"^None of the inputs have requires_grad=True\. Gradients will be None$"):
            assert not checkpoint(nn.Linear(1, 1), gradcli.tensor([1.0]), use_reentrant=True).requires_grad

    def test_has_segments(self):
        with pytest.raises(ArgumentError, match=r"^there is at least one segment, not 0$"):
            checkpoint_sequential([gradcli.exp], 0, leaf(1.0), use_reentrant=True)

    def test_says_when_there_is_nothing_to_go_back_through(self):
        x = leaf(1.0)
        y = checkpoint(lambda x: x.detach() * 2, x, use_reentrant=True)
        with pytest.raises(RuntimeError, match=r"^none of output has requires_grad=True"):
            y.backward()


class TestWithoutReentrance:
    def test_is_that_of_gradcli(self):
        assert gradcli.checkpoint is checkpoint

    def test_takes_and_gives_anything(self):
        x, y = leaf([1.0, 2.0]), leaf(3.0)

        def function(data, *, scale, names):
            return {names[0]: data["x"] * gradcli.exp(scale), names[1]: 5}, "text"

        found, text = checkpoint(function, {"x": x}, scale=y, names=("a", "b"), use_reentrant=False)
        assert (found["b"], text) == (5, "text")
        by_x, by_y = gradcli.grad(found["a"].sum(), (x, y))
        assert np.allclose(by_x.numpy(), np.exp(3.0))
        assert np.allclose(by_y.item(), 3 * np.exp(3.0))

    def test_keeps_nothing_but_the_arguments(self):
        kept = []

        def function(x):
            y = x * 2
            kept.append(weakref.ref(y))
            return gradcli.exp(y * y)

        x = leaf([1.0, 2.0])
        gc.collect()
        gc.disable()
        try:
            z = checkpoint(function, x, use_reentrant=False)
            assert kept[0]() is None
            z.sum().backward()
            node = weakref.ref(z.grad_fn)
            del z
            assert node() is None
        finally:
            gc.enable()

    def test_is_computed_again_once_in_each_pass(self):
        x = leaf(1.0)
        function = Counted(lambda x: (chain(x), chain(2 * x)))
        y, z = checkpoint(function, x, use_reentrant=False)
        gradcli.grad(y + z, x, retain_graph=True)
        assert function.calls == 2
        gradcli.grad(y, x)
        assert function.calls == 3

    def test_is_not_computed_again_where_nothing_was_saved(self):
        function = Counted(lambda x: x.clone() + 1)
        checkpoint(function, leaf(1.0), use_reentrant=False).backward()
        assert function.calls == 1

    @pytest.mark.parametrize("stops", [True, False])
    def test_stops_when_all_that_was_saved_is_known(self, stops):
        end = Counted(lambda x: x.clone())
        x = leaf(1.0)
        checkpoint(lambda x: end(chain(x)), x, use_reentrant=False, early_stop=stops).backward()
        assert end.calls == (1 if stops else 2)
        end.calls = 0
        with set_checkpoint_early_stop(stops):
            y = checkpoint(lambda x: end(chain(x)), x, use_reentrant=False, early_stop=not stops)
        y.backward()
        assert end.calls == (1 if stops else 2)

    @pytest.mark.parametrize("stops", [True, False])
    def test_nests_with_itself_and_with_derivatives(self, stops):
        x = leaf([0.5, 1.5])
        expected = slope(slope(slope(chain)))(x).detach().numpy()
        with set_checkpoint_early_stop(stops):
            for function in (
                lazy(slope(slope(slope(chain)))),
                slope(lazy(slope(slope(lazy(chain))))),
                slope(lazy(slope(lazy(slope(lazy(lazy(chain))))))),
                slope(slope(slope(lazy(lambda x: lazy(gradcli.sin)(lazy(gradcli.exp)(lazy(gradcli.sin)(x))))))),
            ):
                assert np.allclose(function(x).detach().numpy(), expected)

    def test_hooks_are_called_once(self):
        x = leaf(1.0)
        seen = []
        y = checkpoint(chain, x, use_reentrant=False)
        y.register_hook(seen.append)
        y.backward()
        assert len(seen) == 1

    def test_lets_a_hook_go_back_through_a_part(self):
        x = leaf(1.0)
        part, whole = checkpoint(lambda x: (y := gradcli.cos(gradcli.sin(x)), gradcli.sin(y)), x, use_reentrant=False)
        whole.register_hook(lambda _: part.backward(retain_graph=True))
        whole.backward()
        expected = slope(lambda x: gradcli.cos(gradcli.sin(x)) + gradcli.sin(gradcli.cos(gradcli.sin(x))))(x)
        assert np.allclose(x.grad.item(), expected.item())

    def test_what_is_saved_comes_back_once_in_a_pass(self):
        class Cube(gradcli.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                with pytest.raises(CheckpointError, match=r"^Unpack is being triggered for a tensor that was already"):
                    _ = ctx.saved_tensors
                return 3 * x**2 * g

        x = leaf(2.0)
        checkpoint(Cube.apply, x, use_reentrant=False).backward()
        assert x.grad.item() == 12.0

    def test_is_seen_outside_of_a_pass_as_often_as_one_likes(self):
        x = leaf(1.0)
        function = Counted(gradcli.exp)
        y = checkpoint(function, x, use_reentrant=False)
        assert y.grad_fn._saved_result.item() == y.grad_fn._saved_result.item() == y.item()
        assert function.calls == 3

    def test_runs_within_blocks(self):
        seen = []

        @contextlib.contextmanager
        def block(name):
            seen.append(name)
            yield

        y = checkpoint(gradcli.exp, leaf(1.0), use_reentrant=False, context_fn=lambda: (block("first"), block("again")))
        assert seen == ["first"]
        y.backward()
        assert seen == ["first", "again"]

    def test_records_nothing_where_nothing_is_recorded(self):
        with gradcli.no_grad():
            assert not checkpoint(gradcli.exp, leaf(1.0), use_reentrant=False).requires_grad

    def test_within_saved_tensors_hooks(self):
        x = leaf([1.0, 2.0])
        packed = []

        def pack(tensor):
            packed.append(tensor.tolist())
            return tensor

        with autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = checkpoint(lambda x: gradcli.exp(x * 2), x, use_reentrant=False)
        assert packed == [[1.0, 2.0]]
        y.sum().backward()
        assert np.allclose(x.grad.numpy(), 2 * np.exp([2.0, 4.0]))


class TestDifferentSecondRun:
    def run(self, first, second, **options):
        runs = iter([first, second])
        checkpoint(lambda x: next(runs)(x), leaf([1.0]), use_reentrant=False, **options).sum().backward()

    def test_saves_less(self):
        with pytest.raises(CheckpointError, match=r"^A different number of tensors was saved"):
            self.run(chain, lambda x: gradcli.exp(gradcli.sin(x)))

    def test_saves_more(self):
        self.run(lambda x: gradcli.exp(gradcli.sin(x)), chain)
        with pytest.raises(CheckpointError, match=r"^trying to save more tensors during recomputation"):
            self.run(lambda x: gradcli.exp(gradcli.sin(x)), chain, early_stop=False)

    def test_saves_others(self):
        def first(x):
            return gradcli.exp(gradcli.sin(x))

        def second(x):
            return gradcli.sin(x) * gradcli.tensor([1.0, 2.0])

        with pytest.raises(CheckpointError, match=r"have different metadata than during the forward pass\.\ntensor at"):
            self.run(first, second)
        self.run(lambda x: gradcli.exp(x * 1), lambda x: gradcli.exp(x * gradcli.tensor(2.0)), determinism_check="none")

    def test_is_listed_where_that_is_asked_for(self):
        message = r"^You are seeing this error because you passed `debug=True` to checkpoint"
        with pytest.raises(CheckpointError, match=message) as told:
            self.run(chain, gradcli.cos, debug=True)
        assert "original forward: SinBackward0, ExpBackward0, SinBackward0;" in told.value.message
        with pytest.raises(CheckpointError, match=message), set_checkpoint_debug_enabled(True):
            self.run(chain, gradcli.cos)
        with pytest.raises(CheckpointError, match=r"^A different number"), set_checkpoint_debug_enabled(False):
            self.run(chain, gradcli.cos, debug=True)

    def test_is_compared_as_said(self):
        with pytest.raises(
            ArgumentError, match=r"^determinism_check should be one of \['default', 'none'\], but got all"
        ):
            checkpoint(chain, leaf(1.0), use_reentrant=False, determinism_check="all")


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_random_numbers_are_the_same_again(use_reentrant):
    x = gradcli.ones(8, requires_grad=True)
    factors = []

    def drop(x):
        factors.append((gradcli.rand(8) > 0.5).double() * 2)
        return x * factors[-1]

    gradcli.manual_seed(0)
    y = gradcli.checkpoint(drop, x.exp(), use_reentrant=use_reentrant)
    after = gradcli.rand(2).tolist()
    y.sum().backward()
    assert len(factors) == 2 or not use_reentrant
    assert factors[0].tolist() == factors[-1].tolist()
    np.testing.assert_allclose(x.grad.numpy(), factors[0].numpy() * np.e)
    gradcli.manual_seed(0)
    gradcli.rand(8)
    assert gradcli.rand(2).tolist() == after
