"""Tests the list of behaviours of the autograd engine through the Python interface.

The expected numbers are those that PyTorch 2.13 prints; those with 7 digits are float32.
"""

from __future__ import annotations

import gc
import math
import sys
import threading
import weakref

import numpy as np
import pytest

import gradcli
from gradcli import enable_grad, no_grad, tensor

FREED = r"^Trying to backward through the graph a second time .*retain_graph=True"
NO_GRAPH = "^element 0 of tensors does not require grad and does not have a grad_fn$"
LEAF_IN_PLACE = r"^a leaf Variable that requires grad is being used in an in-place operation\.$"
MODIFIED = "^one of the variables needed for gradient computation has been modified by an inplace operation"


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture
def no_gc():
    """Garbage collection is off, so that only reference counts free memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(data, dtype=None):
    return tensor(data, dtype=dtype, requires_grad=True)


def cube_and_log(dtype=None, q=3):
    """x = 5, y = x**q, z = log(y)."""
    x = leaf(5.0, dtype)
    y = x**q
    return x, y, gradcli.log(y)


def single(number):
    """A number rounded to float32."""
    return float(np.float32(number))


class TestRow1NothingRequiresGrad:
    def test_all_are_leaves_outside_of_any_graph(self, dtype):
        x = tensor(5.0, dtype=dtype)
        y = x**3
        z = gradcli.log(y)
        for t in (x, y, z):
            assert t.requires_grad is False
            assert t.is_leaf is True
            assert t.grad_fn is None
            assert t.grad is None
            assert t.dtype == dtype

    def test_the_value(self):
        assert gradcli.log(tensor(5.0) ** 3).item() == pytest.approx(4.828313737302301, rel=1e-15)
        z = gradcli.log(tensor(5.0, dtype="float32") ** 3)
        assert z.item() == pytest.approx(4.8283, abs=5e-5)


class TestRow2ALeafThatRequiresGrad:
    def test_the_results_belong_to_the_graph(self, dtype):
        x, y, z = cube_and_log(dtype)
        assert (x.requires_grad, x.is_leaf, x.grad_fn) == (True, True, None)
        for t, name in ((y, "PowBackward0"), (z, "LogBackward0")):
            assert t.requires_grad is True
            assert t.is_leaf is False
            assert t.grad_fn.name == name
            assert repr(t.grad_fn) == f"<{name}>"
            assert f"grad_fn=<{name}>" in repr(t)

    def test_the_gradient_in_double_precision(self):
        x, _, z = cube_and_log()
        z.backward()
        assert x.grad.item() == 0.6

    def test_the_gradient_in_single_precision(self):
        x, _, z = cube_and_log("float32")
        z.backward()
        assert x.grad.item() == 0.6000000238418579
        assert x.grad.dtype == "float32"

    def test_reading_the_grad_of_a_non_leaf_warns_and_gives_none(self):
        _, y, z = cube_and_log()
        z.backward()
        for t in (y, z):
            with pytest.warns(UserWarning, match=r"not a leaf Tensor.*retain_grad\(\)"):
                assert t.grad is None


class TestRow3RetainGrad:
    def test_the_gradients_of_non_leaves_are_kept(self):
        x, y, z = cube_and_log()
        assert (y.retains_grad, z.retains_grad) == (False, False)
        y.retain_grad()
        z.retain_grad()
        assert (y.retains_grad, z.retains_grad) == (True, True)
        z.backward()
        assert y.grad.item() == 0.008
        assert z.grad.item() == 1.0
        assert x.grad.item() == pytest.approx(0.6, rel=1e-15)

    def test_the_gradients_of_non_leaves_in_single_precision(self):
        _, y, z = cube_and_log("float32")
        y.retain_grad()
        z.retain_grad()
        z.backward()
        assert y.grad.item() == 0.00800000037997961
        assert z.grad.item() == 1.0

    def test_reading_a_retained_grad_does_not_warn(self):
        _, y, _ = cube_and_log()
        y.retain_grad()
        assert y.grad is None


class TestRow4ASecondBackward:
    def test_it_raises_and_keeps_the_first_gradient(self, dtype):
        x, _, z = cube_and_log(dtype)
        z.backward()
        first = x.grad.item()
        with pytest.raises(RuntimeError, match=FREED):
            z.backward()
        assert x.grad.item() == first == (0.6 if dtype == "float64" else 0.6000000238418579)


class TestRow5Accumulation:
    def test_gradients_accumulate_while_the_graph_is_retained(self):
        x, _, z = cube_and_log()
        z.backward(retain_graph=True)
        z.backward()
        assert x.grad.item() == 1.2

    def test_gradients_accumulate_in_single_precision(self):
        x, _, z = cube_and_log("float32")
        z.backward(retain_graph=True)
        z.backward()
        assert x.grad.item() == 1.2000000476837158

    def test_a_third_call_raises(self):
        x, _, z = cube_and_log()
        z.backward(retain_graph=True)
        z.backward()
        with pytest.raises(RuntimeError, match=FREED):
            z.backward()
        assert x.grad.item() == 1.2


class TestRow6ResettingGradients:
    def test_zeroing_in_place(self, dtype):
        x, _, z = cube_and_log(dtype)
        z.backward(retain_graph=True)
        x.grad.zero_()
        assert x.grad.item() == 0.0
        z.backward()
        assert x.grad.item() == (0.6 if dtype == "float64" else single(0.6))

    def test_setting_to_none(self, dtype):
        x, _, z = cube_and_log(dtype)
        z.backward(retain_graph=True)
        x.grad = None
        assert x.grad is None
        z.backward()
        assert x.grad.item() == (0.6 if dtype == "float64" else single(0.6))


class TestRow7TwoPaths:
    def test_the_gradients_of_two_paths_add_up(self, dtype):
        x = leaf(5.0, dtype)
        y, w = x**3, x**2
        z = gradcli.log(y) + gradcli.sqrt(w)
        assert z.grad_fn.name == "AddBackward0"
        assert z.item() == pytest.approx(9.828313737302301, rel=1e-15 if dtype == "float64" else 1e-7)
        z.backward()
        assert x.grad.item() == pytest.approx(1.6, rel=1e-15 if dtype == "float64" else 1e-7)


class TestRow8AnExponentThatRequiresGrad:
    def test_both_gradients(self):
        q = leaf(3.0)
        x, y, z = cube_and_log(q=q)
        assert y.grad_fn.name == "PowBackward1"
        z.backward()
        assert x.grad.item() == 0.6
        assert q.grad.item() == pytest.approx(math.log(5), rel=1e-15)

    def test_both_gradients_in_single_precision(self):
        q = leaf(3.0, "float32")
        x, y, z = cube_and_log("float32", q)
        assert y.grad_fn.name == "PowBackward1"
        z.backward()
        assert q.grad.item() == 1.6094380617141724
        assert x.grad.item() == 0.6000000238418579


class MyPow(gradcli.Function):
    @staticmethod
    def forward(ctx, x, q):
        ctx.save_for_backward(x, q)
        return x**q

    @staticmethod
    def backward(ctx, g):
        x, q = ctx.saved_tensors
        by_x = g * (q * x ** (q - 1)) if ctx.needs_input_grad[0] else None
        by_q = g * (x**q * gradcli.log(x)) if ctx.needs_input_grad[1] else None
        return by_x, by_q


class TestRow9AFunctionOfTheUser:
    def test_the_numbers_of_the_built_in_power(self):
        x, q = leaf(5.0, "float32"), leaf(3.0, "float32")
        y = MyPow.apply(x, q)
        assert y.grad_fn.name == "MyPowBackward"
        assert y.item() == 125.0
        gradcli.log(y).backward()
        assert q.grad.item() == 1.6094380617141724
        assert x.grad.item() == 0.6000000238418579

    def test_the_numbers_in_double_precision(self):
        x, q = leaf(5.0), leaf(3.0)
        gradcli.log(MyPow.apply(x, q)).backward()
        assert x.grad.item() == pytest.approx(0.6, rel=1e-15)
        assert q.grad.item() == pytest.approx(math.log(5), rel=1e-15)

    @pytest.mark.parametrize(("by_x", "by_q"), [(True, False), (False, True), (True, True)])
    def test_needs_input_grad_says_what_is_wanted(self, by_x, by_q):
        seen = []

        class Watched(MyPow):
            @staticmethod
            def backward(ctx, g):
                seen.append(ctx.needs_input_grad)
                return MyPow.backward(ctx, g)

        x, q = tensor(5.0, requires_grad=by_x), tensor(3.0, requires_grad=by_q)
        Watched.apply(x, q).backward()
        assert seen == [(by_x, by_q)]
        assert (x.grad is not None, q.grad is not None) == (by_x, by_q)

    def test_a_separate_setup_context(self):
        class Separate(gradcli.Function):
            @staticmethod
            def forward(x, q):
                return x**q

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
                ctx.shape_of_output = output.shape

            @staticmethod
            def backward(ctx, g):
                assert ctx.shape_of_output == ()
                return MyPow.backward(ctx, g)

        x, q = leaf(5.0), leaf(3.0)
        y = Separate.apply(x, q)
        assert y.grad_fn.name == "SeparateBackward"
        gradcli.log(y).backward()
        assert x.grad.item() == pytest.approx(0.6, rel=1e-15)
        assert q.grad.item() == pytest.approx(math.log(5), rel=1e-15)

    def test_an_instance_is_not_called(self):
        with pytest.raises(RuntimeError, match=r"MyPow\.apply"):
            MyPow()(leaf(5.0), leaf(3.0))

    def test_forward_called_through_apply_records_nothing_inside(self):
        inside = []

        class Watched(gradcli.Function):
            @staticmethod
            def forward(_ctx, x):
                inside.append(gradcli.is_grad_enabled())
                y = x * 2
                inside.append(y.requires_grad)
                return y

            @staticmethod
            def backward(_ctx, g):
                return g * 2

        assert Watched.apply(leaf(1.0)).requires_grad
        assert inside == [False, False]

    def test_a_wrong_number_of_gradients_names_the_function(self):
        class TooFew(MyPow):
            @staticmethod
            def backward(ctx, g):
                return MyPow.backward(ctx, g)[0]

        y = TooFew.apply(leaf(5.0), leaf(3.0))
        message = r"^function TooFewBackward returned an incorrect number of gradients \(expected 2, got 1\)$"
        with pytest.raises(RuntimeError, match=message):
            y.backward()

    def test_saved_tensors_are_freed_after_backward(self):
        y = MyPow.apply(leaf(5.0), leaf(3.0))
        y.backward()
        with pytest.raises(RuntimeError, match=FREED):
            y.backward()


def detached_dot(dtype=None):
    x = leaf(5.0, dtype)
    y = x * [2, 3, 5]
    return x, y, y.detach()


class TestRow10Detach:
    def test_nothing_behind_detach_requires_grad(self, dtype):
        x, y, w = detached_dot(dtype)
        assert y.tolist() == [10.0, 15.0, 25.0]
        assert (y.requires_grad, y.dtype) == (True, dtype)
        z = w @ [4, 7, 9]
        for t in (w, z):
            assert t.requires_grad is False
            assert t.grad_fn is None
        assert z.item() == 370.0
        with pytest.raises(RuntimeError, match=NO_GRAPH):
            z.backward()
        assert x.grad is None

    def test_x_is_broadcast(self):
        x = leaf(5.0)
        (x * [2, 3, 5]).sum().backward()
        assert x.grad.item() == 10.0


class TestRow11ANewLeafBehindDetach:
    def test_it_collects_its_own_gradient(self, dtype):
        x, _, w = detached_dot(dtype)
        assert w.requires_grad_() is w
        assert w.is_leaf
        z = w @ [4, 7, 9]
        assert z.grad_fn.name == "DotBackward0"
        z.backward()
        assert w.grad.tolist() == [4.0, 7.0, 9.0]
        assert w.grad.dtype == dtype
        assert x.grad is None


class TestRow12AGradientWithoutAGraph:
    def test_it_cannot_be_differentiated(self, dtype):
        x, _, z = cube_and_log(dtype)
        z.backward()
        assert x.grad.grad_fn is None
        assert x.grad.requires_grad is False
        with pytest.raises(RuntimeError, match=NO_GRAPH):
            gradcli.grad(x.grad, x)


class TestRow13AGradientWithAGraph:
    def test_it_can_be_differentiated(self):
        x, _, z = cube_and_log()
        z.backward(create_graph=True)
        assert x.grad.item() == 0.6
        assert x.grad.grad_fn is not None
        (second,) = gradcli.grad(x.grad, x)
        assert second.item() == pytest.approx(-0.12, rel=1e-14)

    def test_it_can_be_differentiated_in_single_precision(self):
        x, _, z = cube_and_log("float32")
        z.backward(create_graph=True)
        assert x.grad.item() == 0.6000000238418579
        (second,) = gradcli.grad(x.grad, x)
        assert second.item() == pytest.approx(-0.12, rel=1e-6)
        assert second.dtype == "float32"

    def test_any_order_by_repeating(self):
        # The nth derivative of 3*log(x) is 3*(-1)**(n-1)*(n-1)!/x**n.
        x, _, value = cube_and_log()
        for n in range(1, 8):
            (value,) = gradcli.grad(value, x, create_graph=True)
            assert value.item() == pytest.approx(3 * (-1) ** (n - 1) * math.factorial(n - 1) / 5**n, rel=1e-11)


class TestRow14MatricesAndVectors:
    def test_two_layers(self, dtype):
        inp = tensor([1.0, 2.0], dtype=dtype)
        w_1, w_2 = leaf([[1.0, 2.0], [3.0, 4.0]], dtype), leaf([[2.0, 3.0], [4.0, 2.0]], dtype)
        y_1 = w_1 @ inp
        y_2 = w_2 @ y_1
        total = gradcli.sum(y_2)
        assert y_1.tolist() == [5.0, 11.0]
        assert y_2.tolist() == [43.0, 42.0]
        assert y_2.grad_fn.name == "MvBackward0"
        assert total.item() == 85.0
        assert total.grad_fn.name == "SumBackward0"
        assert w_1.grad is None
        assert w_2.grad is None
        total.backward()
        assert w_1.grad.tolist() == [[6.0, 12.0], [5.0, 10.0]]
        assert w_2.grad.tolist() == [[5.0, 11.0], [5.0, 11.0]]
        assert inp.grad is None


class TestRow15OutputsThatAreNoScalars:
    def test_backward_needs_a_gradient(self, dtype):
        w = leaf([[2.0, 3.0], [4.0, 2.0]], dtype)
        y = w @ tensor([5.0, 11.0], dtype=dtype)
        with pytest.raises(RuntimeError, match=r"^grad can be implicitly created only for scalar outputs$"):
            y.backward()
        y.backward(gradient=tensor([1.0, 1.0], dtype=dtype))
        assert w.grad.tolist() == [[5.0, 11.0], [5.0, 11.0]]

    def test_the_gradient_has_the_shape_of_the_output(self):
        y = leaf([1.0, 2.0]) * 2
        with pytest.raises(RuntimeError, match=r"^Mismatch in shape: grad_output\[0\] has a shape of \[3\]"):
            y.backward(gradient=[1.0, 1.0, 1.0])


class TestRow16TheMeanOfSquares:
    def test_values_names_and_gradient(self, dtype):
        x = leaf(np.ones((2, 2)), dtype)
        y = x + 2
        z = y * y * 3
        out = gradcli.mean(z)
        assert y.tolist() == [[3.0, 3.0], [3.0, 3.0]]
        assert z.tolist() == [[27.0, 27.0], [27.0, 27.0]]
        assert out.item() == 27.0
        assert [t.grad_fn.name for t in (y, z, out)] == ["AddBackward0", "MulBackward0", "MeanBackward0"]
        out.backward()
        assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]
        assert x.grad.dtype == dtype


class TestRow17BackwardTwiceFromAMatrix:
    def test_the_gradients_accumulate(self, dtype):
        x = leaf(np.ones((2, 2)), dtype)
        y = x + 2
        y.backward(tensor(np.ones((2, 2)), dtype=dtype), retain_graph=True)
        assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        y.backward(tensor(np.ones((2, 2)), dtype=dtype), retain_graph=True)
        assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


class TestRow18AVectorOfOutputs:
    def test_the_gradients_by_both(self, dtype):
        a, b = leaf([2.0, 3.0], dtype), leaf([6.0, 4.0], dtype)
        outputs = 3 * a**3 - b**2
        outputs.backward(gradient=tensor([1.0, 1.0], dtype=dtype))
        assert a.grad.tolist() == [36.0, 81.0]
        assert b.grad.tolist() == [-12.0, -8.0]

    def test_the_gradient_may_be_a_list(self):
        a = leaf([2.0, 3.0])
        (3 * a**3).backward(gradient=[1, 1])
        assert a.grad.tolist() == [36.0, 81.0]


class TestRow19ChosenInputs:
    def test_only_they_get_a_gradient(self, dtype):
        x, y = leaf(2.0, dtype), leaf(3.0, dtype)
        z = x * y
        z.backward(inputs=[x])
        assert x.grad.item() == 3.0
        assert y.grad is None


class TestRow20RequiresGrad:
    def test_it_can_be_set_later(self, dtype):
        a = tensor([1.0, 2.0], dtype=dtype)
        assert not (a * 2).requires_grad
        assert a.requires_grad_(True) is a
        assert (a * 2).requires_grad

    @pytest.mark.parametrize("of_a", [False, True])
    @pytest.mark.parametrize("of_b", [False, True])
    def test_a_result_requires_grad_if_any_operand_does(self, of_a, of_b):
        a, b = tensor(1.0, requires_grad=of_a), tensor(2.0, requires_grad=of_b)
        total = a + b
        assert total.requires_grad == (of_a or of_b)
        assert (total.grad_fn is not None) == (of_a or of_b)

    @pytest.mark.parametrize("data", [1, [1, 2], True, [True, False]])
    def test_integers_and_booleans_refuse_it(self, data):
        message = "^only Tensors of floating point dtype can require gradients"
        with pytest.raises(RuntimeError, match=message):
            tensor(data, requires_grad=True)
        with pytest.raises(RuntimeError, match=message):
            tensor(data).requires_grad_(True)


class TestRow21GradModes:
    def test_a_block_without_grad(self):
        x = leaf(2.0)
        with no_grad():
            y = x * x
        assert (y.requires_grad, y.grad_fn, y.is_leaf) == (False, None, True)
        assert (x * x).requires_grad

    def test_grad_enabled_within_a_block_without(self):
        x = leaf(2.0)
        with no_grad():
            with enable_grad():
                assert gradcli.is_grad_enabled()
                y = x * x
            assert not gradcli.is_grad_enabled()
            assert not (x * x).requires_grad
        assert gradcli.is_grad_enabled()
        y.backward()
        assert x.grad.item() == 4.0

    @pytest.mark.parametrize("decorate", [no_grad(), no_grad])
    def test_as_a_decorator_with_and_without_parentheses(self, decorate):
        @decorate
        def double(x):
            """Twice."""
            return x * 2

        assert not double(leaf(2.0)).requires_grad
        assert double.__name__ == "double"
        assert double.__doc__ == "Twice."
        assert gradcli.is_grad_enabled()

    def test_enable_grad_as_a_decorator(self):
        @enable_grad()
        def double(x):
            return x * 2

        with no_grad():
            assert double(leaf(2.0)).requires_grad
            assert not gradcli.is_grad_enabled()

    def test_a_decorated_function_may_recurse(self):
        @no_grad()
        def power(x, n):
            return x if n == 1 else x * power(x, n - 1)

        assert not power(leaf(2.0), 4).requires_grad
        assert gradcli.is_grad_enabled()

    def test_a_decorated_generator_runs_in_the_mode_and_its_caller_does_not(self):
        x = leaf(2.0)

        @no_grad()
        def multiples():
            sent = yield x * 2
            yield x * sent

        generator = multiples()
        assert not next(generator).requires_grad
        assert (x * 1).requires_grad
        second = generator.send(3.0)
        assert (second.item(), second.requires_grad) == (6.0, False)
        assert list(generator) == []
        assert gradcli.is_grad_enabled()

    def test_a_decorated_generator_is_closed_and_thrown_into_in_the_mode(self):
        seen = []

        @no_grad()
        def items():
            try:
                yield 1
            except ValueError:
                seen.append(gradcli.is_grad_enabled())
            try:
                yield 2
            finally:
                seen.append(gradcli.is_grad_enabled())

        generator = items()
        assert next(generator) == 1
        assert generator.throw(ValueError) == 2
        generator.close()
        assert seen == [False, False]
        assert gradcli.is_grad_enabled()

    def test_set_grad_enabled_from_here_on(self):
        gradcli.set_grad_enabled(False)
        try:
            assert not (leaf(2.0) * 2).requires_grad
        finally:
            gradcli.set_grad_enabled(True)
        assert (leaf(2.0) * 2).requires_grad

    def test_set_grad_enabled_as_a_block_and_as_a_decorator(self):
        with gradcli.set_grad_enabled(False):
            assert not gradcli.is_grad_enabled()
            with gradcli.set_grad_enabled(True):
                assert gradcli.is_grad_enabled()
            assert not gradcli.is_grad_enabled()
        assert gradcli.is_grad_enabled()

        @gradcli.set_grad_enabled(False)
        def double(x):
            return x * 2

        assert gradcli.is_grad_enabled()
        assert not double(leaf(2.0)).requires_grad
        assert gradcli.is_grad_enabled()

    def test_inference_mode(self):
        with gradcli.inference_mode():
            assert not (leaf(2.0) * 2).requires_grad
            with gradcli.inference_mode(False):
                assert (leaf(2.0) * 2).requires_grad

        @gradcli.inference_mode
        def double(x):
            return x * 2

        @gradcli.inference_mode(mode=True)
        def triple(x):
            return x * 3

        assert not double(leaf(2.0)).requires_grad
        assert not triple(leaf(2.0)).requires_grad

    @pytest.mark.parametrize("mode", [no_grad, enable_grad])
    def test_the_state_is_restored_after_an_exception(self, mode):
        with pytest.raises(ZeroDivisionError), mode():
            raise ZeroDivisionError
        assert gradcli.is_grad_enabled()

        @mode()
        def fail():
            raise ZeroDivisionError

        with no_grad():
            with pytest.raises(ZeroDivisionError):
                fail()
            assert not gradcli.is_grad_enabled()

    def test_the_state_is_restored_after_an_exception_in_backward(self):
        x = leaf(2.0)
        y = x * 2

        def fail(_grad):
            raise ZeroDivisionError

        y.register_hook(fail)
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert gradcli.is_grad_enabled()

    def test_one_object_can_be_entered_twice(self):
        mode = no_grad()
        with mode:
            with mode:
                pass
            assert not gradcli.is_grad_enabled()
        assert gradcli.is_grad_enabled()

    @pytest.mark.usefixtures("no_gc")
    def test_no_graph_is_kept_in_memory(self):
        x = leaf(np.ones(3))
        with no_grad():
            y = x * 2
            kept = weakref.ref(y)
            y = y * 2
        assert kept() is None

    def test_threads_have_modes_of_their_own(self):
        x = leaf(2.0)
        inside, checked = threading.Event(), threading.Event()
        seen = {}

        def without():
            with no_grad():
                inside.set()
                checked.wait(10)
                seen["without"] = (x * 2).requires_grad

        def fresh():
            seen["fresh"] = gradcli.is_grad_enabled()

        thread = threading.Thread(target=without)
        thread.start()
        inside.wait(10)
        seen["outside"] = (x * 2).requires_grad
        checked.set()
        thread.join()
        with no_grad():
            other = threading.Thread(target=fresh)
            other.start()
            other.join()
        assert seen == {"outside": True, "without": False, "fresh": True}

    def test_threads_differentiate_graphs_of_their_own(self):
        results = {}

        def work(n):
            x = leaf(float(n))
            y = x
            for _ in range(200):
                y = y + gradcli.sin(x) / 200
            y.backward()
            results[n] = x.grad.item()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {n: pytest.approx(1 + math.cos(n), rel=1e-12) for n in range(8)}


class TestRow22ALeafInPlace:
    def test_it_is_refused(self, dtype):
        x = leaf(1.0, dtype)
        with pytest.raises(RuntimeError, match=LEAF_IN_PLACE):
            x += 1
        assert x.item() == 1.0
        assert x.is_leaf

    @pytest.mark.parametrize("method", ["add_", "sub_", "mul_", "div_", "pow_", "fill_", "copy_", "clip_"])
    def test_every_in_place_operation_is_refused(self, method):
        with pytest.raises(RuntimeError, match=LEAF_IN_PLACE):
            getattr(leaf(1.0), method)(2.0)

    @pytest.mark.parametrize("method", ["zero_", "exp_", "neg_", "sqrt_"])
    def test_every_in_place_function_is_refused(self, method):
        with pytest.raises(RuntimeError, match=LEAF_IN_PLACE):
            getattr(leaf(1.0), method)()

    def test_it_works_without_grad(self, dtype):
        x = same = leaf(1.0, dtype)
        with no_grad():
            x += 1
        assert x is same
        assert x.item() == 2.0
        assert (x.is_leaf, x.requires_grad, x.dtype) == (True, True, dtype)
        (x * x).backward()
        assert x.grad.item() == 4.0


class TestRow23ASavedTensorModifiedInPlace:
    def test_backward_says_which_version_it_found(self, dtype):
        x = leaf(2.0, dtype)
        y = x**2
        z = y * x
        with no_grad():
            x.add_(1)
        with pytest.raises(RuntimeError, match=MODIFIED + ".*is at version 1; expected version 0 instead"):
            z.backward()
        assert x.grad is None

    def test_the_versions_count_up(self):
        x = leaf(2.0)
        with no_grad():
            x.add_(1)
        z = x * x
        with no_grad():
            x.add_(1)
            x.mul_(2)
        with pytest.raises(RuntimeError, match="is at version 3; expected version 1 instead"):
            z.backward()

    def test_what_was_not_saved_may_be_modified(self):
        x = leaf(2.0)
        z = (x + 3) - x
        with no_grad():
            x.add_(1)
        z.backward()
        assert x.grad.item() == 0.0


def fit_polynomial(seed):
    """The loss after 2000 steps of gradient descent from a standard normal start."""
    x = tensor(np.linspace(-math.pi, math.pi, 2000))
    y = gradcli.sin(x)
    a, b, c, d = (leaf(start) for start in np.random.default_rng(seed).standard_normal(4))
    for _ in range(2000):
        y_pred = a + b * x + c * x**2 + d * x**3
        loss = (y_pred - y).pow(2).sum()
        loss.backward()
        with no_grad():
            for parameter in (a, b, c, d):
                parameter -= 1e-6 * parameter.grad
                parameter.grad = None
    return loss.item()


class TestRow24PolynomialFit:
    @pytest.mark.cases(1)
    @pytest.mark.parametrize("seed", range(6))
    def test_the_loss_ends_in_the_known_range(self, seed):
        assert 8.8 < fit_polynomial(seed) < 16


class TestRow25ControlFlow:
    @pytest.mark.parametrize(("start", "factor"), [(3.0, 64.0), (-60.0, 2.0), (200.0, 1.0)])
    def test_the_gradient_is_that_of_the_path_that_ran(self, start, factor):
        x = leaf(start)
        y = x * 1
        while abs(y) < 100:
            y = y * 2
        y.backward()
        assert y.item() == start * factor
        assert x.grad.item() == factor

    def test_each_run_makes_a_new_graph(self):
        x = leaf(1.0)
        for power in range(1, 5):
            y = x * 1
            for _ in range(power):
                y = y * x * 2
            x.grad = None
            y.backward()
            assert x.grad.item() == (power + 1) * 2**power


class TestRow26TheGraphAfterBackward:
    @pytest.mark.usefixtures("no_gc")
    def test_saved_tensors_are_freed_while_the_result_lives(self):
        x = leaf(np.ones(4))
        y = x * 2
        z = gradcli.sum(y * y)
        saved = weakref.ref(y)
        del y
        assert saved() is not None
        z.backward()
        assert saved() is None
        assert z.grad_fn is not None

    @pytest.mark.usefixtures("no_gc")
    def test_saved_tensors_of_a_function_are_freed(self):
        x, q = leaf(5.0), leaf(3.0)
        y = x * 1
        z = MyPow.apply(y, q)
        saved = weakref.ref(y)
        del y
        assert saved() is not None
        z.backward()
        assert saved() is None

    @pytest.mark.usefixtures("no_gc")
    def test_intermediate_nodes_go_with_the_result(self):
        x = leaf(2.0)
        y = x * 3
        z = gradcli.exp(y) + gradcli.sin(y)
        node = weakref.ref(y.grad_fn)
        z.backward()
        del y, z
        assert node() is None

    @pytest.mark.usefixtures("no_gc")
    def test_a_graph_that_was_not_used_has_no_cycles(self):
        x = leaf(2.0)
        y = x * 3
        y.retain_grad()
        y.register_hook(lambda g: g)
        z = MyPow.apply(gradcli.exp(y), x)
        nodes = [weakref.ref(t.grad_fn) for t in (y, z)]
        del y, z
        assert [n() for n in nodes] == [None, None]

    @pytest.mark.usefixtures("no_gc")
    def test_an_in_place_operation_makes_no_cycle(self):
        x = leaf(2.0)
        y = x * 3
        y.retain_grad()
        y *= x
        y += y
        kept = weakref.ref(y), weakref.ref(y.grad_fn)
        y.backward()
        del y
        assert [k() for k in kept] == [None, None]

    @pytest.mark.usefixtures("no_gc")
    def test_a_function_that_saves_its_output_makes_no_cycle(self):
        class Exp(gradcli.Function):
            @staticmethod
            def forward(ctx, x):
                y = gradcli.exp(x)
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                (y,) = ctx.saved_tensors
                return g * y

        y = Exp.apply(leaf(2.0))
        kept = weakref.ref(y), weakref.ref(y.grad_fn)
        del y
        assert [k() for k in kept] == [None, None]

    @pytest.mark.usefixtures("no_gc")
    def test_a_gradient_with_a_graph_makes_no_cycle_through_grad(self):
        x = leaf(2.0)
        y = gradcli.exp(x * 3)
        (g,) = gradcli.grad(y, x, create_graph=True)
        kept = weakref.ref(y.grad_fn), weakref.ref(g.grad_fn)
        del y, g
        assert [k() for k in kept] == [None, None]

    @pytest.mark.usefixtures("no_gc")
    def test_memory_does_not_grow(self):
        x = leaf(np.ones(10))

        def rounds(n):
            for _ in range(n):
                x.grad = None
                gradcli.sum(gradcli.exp(x * 2) * x).backward()

        # Fill Python's free lists of tuples first.
        rounds(2_000)
        before = sys.getallocatedblocks()
        rounds(3_000)
        assert sys.getallocatedblocks() - before < 200


class TestRow27AHundredThousandOperations:
    @pytest.mark.usefixtures("no_gc")
    def test_forward_backward_and_freeing(self):
        x = leaf(1.0)
        y = x * 3
        first = weakref.ref(y.grad_fn)
        for _ in range(100_000):
            y = y * 1.00001
        y.backward()
        assert y.item() == pytest.approx(x.grad.item(), rel=1e-15)
        assert x.grad.item() == pytest.approx(3 * 1.00001**100_000, rel=1e-9)
        del y
        assert first() is None

    @pytest.mark.usefixtures("no_gc")
    def test_freeing_without_backward(self):
        x = leaf(np.ones(2))
        y = x * 3
        first = weakref.ref(y.grad_fn)
        for _ in range(100_000):
            y = gradcli.sin(y)
        del y
        assert first() is None

    def test_a_chosen_input_at_the_far_end(self):
        x = leaf(1.0)
        y = x
        for _ in range(20_000):
            y = y + 1.0
        assert gradcli.grad(y, x)[0].item() == 1.0


class TestRow28Hooks:
    def test_a_hook_sees_the_gradient(self):
        seen = []
        x, y, z = cube_and_log()
        y.register_hook(lambda g: seen.append(g.item()))
        z.backward()
        assert seen == [0.008]
        assert x.grad.item() == pytest.approx(0.6, rel=1e-15)

    def test_a_hook_may_replace_the_gradient(self):
        x, y, z = cube_and_log()
        y.register_hook(lambda g: g * 10)
        z.backward()
        assert x.grad.item() == pytest.approx(6.0, rel=1e-15)

    def test_the_handle_removes_the_hook(self):
        x, y, z = cube_and_log()
        handle = y.register_hook(lambda g: g * 10)
        z.backward(retain_graph=True)
        handle.remove()
        handle.remove()
        x.grad = None
        z.backward()
        assert x.grad.item() == pytest.approx(0.6, rel=1e-15)

    def test_a_hook_on_a_leaf(self):
        x, _, z = cube_and_log()
        handle = x.register_hook(lambda g: g + 1)
        z.backward(retain_graph=True)
        assert x.grad.item() == 1.6
        handle.remove()
        x.grad = None
        z.backward()
        assert x.grad.item() == 0.6
