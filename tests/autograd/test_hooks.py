"""Tests hooks on tensors, on graph nodes and on leaves, and the edges of the graph, as in PyTorch."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import tensor
from gradcli.autograd.graph import (
    AccumulateGrad,
    GradientEdge,
    Node,
    current_graph_task_id,
    get_gradient_edge,
    increment_version,
    queue_callback,
    register_multi_grad_hook,
    will_engine_execute_node,
)
from gradcli.errors import ArgumentError, CallError, DifferentiationError


class Double(gradcli.Function):
    @staticmethod
    def forward(_ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(_ctx: Any, g: Any) -> Any:
        return g * 2


class Two(gradcli.Function):
    """A Function with two outputs."""

    @staticmethod
    def forward(_ctx: Any, x: Any) -> Any:
        return x * 2, x * 3

    @staticmethod
    def backward(_ctx: Any, g: Any, h: Any) -> Any:
        return g * 2 + h * 3


def leaf(value: Any = 2.0) -> Any:
    return tensor(value, requires_grad=True)


class TestNodes:
    def test_every_grad_fn_is_a_node_with_a_name(self):
        x = leaf()
        for y, name in ((x * x, "MulBackward0"), (Double.apply(x), "DoubleBackward"), (x.exp(), "ExpBackward0")):
            assert isinstance(y.grad_fn, Node)
            assert (y.grad_fn.name(), y.grad_fn.name) == (name, name)
            assert issubclass(type(y.grad_fn), Node)

    def test_leaves_end_the_graph_at_nodes_that_accumulate(self):
        x, w = leaf(), leaf()
        y = x * w
        (first, number), (second, _) = y.grad_fn.next_functions
        assert isinstance(first, AccumulateGrad)
        assert (first.variable is x, second.variable is w, number, first.name()) == (True, True, 0, "AccumulateGrad")
        assert first is (x + 1).grad_fn.next_functions[0][0]
        assert first.next_functions == ()
        assert (y + 5).grad_fn.next_functions == ((y.grad_fn, 0), (None, 0))

    def test_the_graph_can_be_walked_to_its_leaves(self):
        x, w = leaf(), leaf()
        waiting, leaves = [(gradcli.sin(x * w) + x).grad_fn], set()
        while waiting:
            node = waiting.pop()
            if hasattr(node, "variable"):
                leaves.add(node.variable)
            waiting += [node for node, _ in node.next_functions if node is not None]
        assert leaves == {x, w}

    def test_metadata_is_kept_with_the_node(self):
        x = leaf()
        y = x * x
        y.grad_fn.metadata["note"] = "squared"
        assert (y + 1).grad_fn.next_functions[0][0].metadata == {"note": "squared"}
        node = y.grad_fn.next_functions[0][0]
        node.metadata[0] = 1
        assert (x * 1).grad_fn.next_functions[0][0].metadata == {0: 1}

    def test_a_node_is_called_with_the_gradients_of_its_results(self):
        x = leaf()
        assert (x**2).grad_fn(tensor(3.0)).item() == 12.0
        assert [g.item() for g in (x * leaf(5.0)).grad_fn(tensor(1.0))] == [5.0, 2.0]
        slope = (x**2).grad_fn(tensor(1.0))
        assert gradcli.grad(slope, x)[0].item() == 2.0
        with gradcli.no_grad():
            assert not (x**2).requires_grad
        accumulate = (x * 1).grad_fn.next_functions[0][0]
        assert accumulate(tensor(3.0)) == ()
        assert x.grad.item() == 3.0

    def test_a_node_is_called_with_as_many_gradients_as_it_has_results(self):
        with pytest.raises(CallError, match=r"^expected 1 arguments, got 0 instead$"):
            (leaf() ** 2).grad_fn()
        with pytest.raises(CallError, match=r"^argument 0 is not a Tensor$"):
            (leaf() ** 2).grad_fn(1.0)
        with pytest.raises(TypeError, match=r"^expected 2 arguments, got 1 instead$"):
            Two.apply(leaf())[0].grad_fn(tensor(1.0))


class TestHooksOfNodes:
    @pytest.mark.parametrize("double", [lambda x: x * 2, Double.apply])
    def test_before_and_after(self, double):
        x, log = leaf(), []
        y = double(x)

        def after(gradients, cotangents):
            log.append((gradients[0].item(), cotangents[0].item()))
            return tuple(g if g is None else g * 10 for g in gradients)

        y.grad_fn.register_prehook(lambda gs: (gs[0] * 3,))
        y.grad_fn.register_prehook(lambda gs: log.append(gs[0].item()))
        y.grad_fn.register_hook(after)
        y.backward()
        assert log == [3.0, (6.0, 3.0)]
        assert x.grad.item() == 60.0

    def test_hooks_of_tensors_come_before_those_of_nodes(self):
        log = []
        x = leaf()
        y = x.clone()
        y.grad_fn.register_prehook(lambda _: log.append("node y"))
        y.register_hook(lambda _: log.append("tensor y"))
        end = y.grad_fn.next_functions[0][0]
        end.register_hook(lambda given, got: log.append(("after x", given, got[0].item())))
        end.register_prehook(lambda _: log.append("node x"))
        x.register_hook(lambda _: log.append("tensor x"))
        x.register_post_accumulate_grad_hook(lambda x: log.append(("accumulated", x.grad.item())))
        y.sum().backward(retain_graph=True)
        of_x = ["node x", ("accumulated", 1.0), ("after x", (), 1.0)]
        assert log == ["tensor y", "node y", "tensor x", *of_x]
        log.clear()
        gradcli.grad(y.sum(), x, retain_graph=True)
        assert log == ["tensor y", "node y", "tensor x"]
        log.clear()
        gradcli.grad(y.sum(), y)
        assert log == ["tensor y"]

    def test_a_retained_gradient_is_that_before_the_hooks_of_the_node(self):
        x = leaf()
        y = x * 1
        y.register_hook(lambda g: g * 3)
        y.retain_grad()
        y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
        y.backward()
        assert (y.grad.item(), x.grad.item()) == (3.0, 300.0)

    def test_of_one_of_several_outputs_there_is_none(self):
        x, seen = leaf(), []
        a, _ = Two.apply(x)
        a.grad_fn.register_prehook(lambda gs: seen.append([g is None for g in gs]))
        a.backward()
        assert (seen, x.grad.item()) == ([[False, True]], 2.0)

    def test_no_gradient_from_a_hook_goes_no_further(self):
        x = leaf()
        y = x * x
        y.grad_fn.register_prehook(lambda gs: (None,))
        y.backward()
        assert x.grad is None

    def test_handles_remove_them_also_while_they_are_called(self):
        x, log = leaf(), []
        y = x * 1
        y.grad_fn.register_prehook(lambda _: second.remove())
        second = y.grad_fn.register_prehook(lambda _: log.append("second"))
        twice = y.grad_fn.register_prehook(print)
        twice.remove()
        twice.remove()
        with y.register_hook(lambda _: log.append("within")):
            y.backward(retain_graph=True)
        y.backward()
        assert log == ["within", "second"]

    def test_what_they_return_is_checked(self):
        x = leaf([1.0, 2.0])

        def run(register, hook):
            y = x * x
            getattr(y.grad_fn, register)(hook)
            y.sum().backward()

        with pytest.raises(TypeError, match=r"^expected tuple, but hook returned 'Tensor'$"):
            run("register_prehook", lambda gs: gs[0])
        with pytest.raises(
            DifferentiationError, match=r"^hook '<lambda>' has returned an incorrect number of values \(got 2, but exp"
        ):
            run("register_prehook", lambda gs: gs * 2)
        with pytest.raises(DifferentiationError, match=r"^hook '<lambda>' has changed the size of value$"):
            run("register_hook", lambda given, _: (given[0], tensor([1.0])))

    def test_they_are_recorded_with_create_graph(self):
        x = leaf(3.0)
        y = x * x
        y.grad_fn.register_prehook(lambda gs: (gs[0] * x,))
        (slope,) = gradcli.grad(y, x, create_graph=True)
        assert slope.item() == 18.0
        assert gradcli.grad(slope, x)[0].item() == 12.0

    def test_they_live_as_long_as_the_graph(self):
        class Kept:
            pass

        def graph():
            x, kept = leaf(), Kept()
            y = x * 2
            node = y.grad_fn
            handle = node.register_hook(lambda *_: (node, kept))
            return y + 1, weakref.ref(kept), handle

        y, kept, handle = graph()
        gc.collect()
        assert kept() is not None
        del y
        gc.collect()
        assert kept() is None
        handle.remove()

    def test_what_was_registered_on_a_view_that_was_edited_stays_with_what_it_was(self):
        seen = []
        base = leaf([1.0, 2.0]).clone()
        view = base[:]
        view.register_hook(lambda _: seen.append("before"))
        view.mul_(2)
        view.register_hook(lambda _: seen.append("after"))
        view.sum().backward()
        assert seen == ["after"]

    def test_jacobians_call_them_for_each_row(self):
        seen = []

        def f(x):
            y = x * 2
            y.grad_fn.register_prehook(lambda gs: seen.append(gs[0].tolist()))
            return y

        jacobian = gradcli.jacobian(f, leaf([1.0, 2.0]))
        assert np.asarray(jacobian).tolist() == [[2.0, 0.0], [0.0, 2.0]]
        assert sorted(seen) == [[0.0, 1.0], [1.0, 0.0]]


class TestPostAccumulateGradHooks:
    def test_a_step_within_backward(self):
        w = leaf([1.0, 2.0])

        def step(w):
            w -= 0.25 * w.grad
            w.grad = None

        handle = w.register_post_accumulate_grad_hook(step)
        (w**2).sum().backward()
        assert (w.tolist(), w.grad) == ([0.5, 1.0], None)
        handle.remove()
        (w**2).sum().backward()
        assert (w.tolist(), w.grad.tolist()) == ([0.5, 1.0], [1.0, 2.0])

    def test_they_run_in_order_and_for_backward_alone(self):
        x, log = leaf(), []
        x.register_post_accumulate_grad_hook(lambda x: log.append(("first", x.grad.item(), gradcli.is_grad_enabled())))
        x.register_post_accumulate_grad_hook(lambda _: log.append("second"))
        (x * 3).backward()
        (x * 3).backward(create_graph=True)
        gradcli.grad(x * 3, x)
        (x * 3).backward(inputs=[x])
        assert [entry for entry in log if entry != "second"] == [
            ("first", 3.0, False),
            ("first", 6.0, True),
            ("first", 9.0, False),
        ]
        assert log.count("second") == 3

    def test_they_run_as_soon_as_the_gradient_is_known(self):
        log = []

        def noted(x, name):
            x.register_hook(lambda _: log.append(name))
            return x

        first = noted(leaf(), "first")
        hidden = noted(first * noted(leaf(), "of the start"), "hidden")
        last = noted(leaf(), "last")
        (noted(hidden * last, "product") + last).backward()
        assert log == ["product", "last", "hidden", "first", "of the start"]
        log.clear()
        x = noted(leaf(), "leaf")
        noted(x * x, "square").backward(inputs=[x])
        assert (log, x.grad.item()) == (["square", "leaf"], 4.0)

    def test_a_gradient_is_there_although_what_comes_after_fails(self):
        w = leaf()
        w.register_post_accumulate_grad_hook(lambda w: None)
        y = leaf() * 1
        y.register_hook({}.__getitem__)
        with pytest.raises((KeyError, TypeError)):
            (y * w).backward()
        assert w.grad.item() == 2.0

    def test_they_return_nothing(self):
        x = leaf()
        x.register_post_accumulate_grad_hook(lambda x: x.grad)
        with pytest.raises(DifferentiationError, match=r"^Tensor post accumulate grad hooks should return None\.$"):
            (x * 1).backward()

    def test_they_are_for_leaves(self):
        with pytest.raises(DifferentiationError, match="post accumulate grad hooks cannot be registered on non-leaf"):
            (leaf() * 2).register_post_accumulate_grad_hook(print)
        with pytest.raises(DifferentiationError, match="cannot register a hook on a tensor that doesn't require grad"):
            tensor(1.0).register_post_accumulate_grad_hook(print)

    def test_a_copy_has_none(self):
        x = leaf()
        x.register_post_accumulate_grad_hook(lambda _: pytest.fail("the hook of another"))
        other = copy.deepcopy(x)
        (other * 2).backward()
        assert other.grad.item() == 2.0


class TestInputsOfBackward:
    def test_those_that_are_no_leaves_retain_their_gradients(self):
        x = leaf()
        y = x * 2
        (y * 3).backward(inputs=[y])
        assert (y.retains_grad, y.grad.item(), x.grad) == (True, 3.0, None)

    def test_hooks_see_them_once(self):
        x, seen = leaf(), []
        y = x * 2
        y.register_hook(lambda g: seen.append(g.item()))
        y.grad_fn.register_prehook(lambda gs: seen.append("node"))
        (y * 3).backward(inputs=[x, y])
        assert seen == [3.0, "node"]


class TestGradientEdges:
    def test_in_place_of_tensors(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        z = (y * y).sum()
        edges = [get_gradient_edge(y), get_gradient_edge(x)]
        by_edges = gradcli.grad(z, edges, retain_graph=True)
        assert [g.tolist() for g in by_edges] == [g.tolist() for g in gradcli.grad(z, [y, x], retain_graph=True)]
        z.backward(inputs=edges[1])
        assert x.grad.tolist() == [18.0, 36.0]

    def test_of_a_tensor_that_was_changed_since(self):
        x = leaf([1.0, 2.0]).clone()
        before = get_gradient_edge(x)
        x *= 2
        old, new = gradcli.grad(x.sum(), (before, x))
        assert (old.tolist(), new.tolist()) == ([2.0, 2.0], [1.0, 1.0])

    def test_by_hand(self):
        x = leaf()
        a, b = Two.apply(x)
        assert get_gradient_edge(b) == GradientEdge(b.grad_fn, 1)
        assert gradcli.grad(a * 5 + b * 7, [GradientEdge(a.grad_fn, 1)])[0].item() == 7.0

    def test_a_pass_in_two_steps(self):
        x = leaf([1.0, 2.0])
        y = x.sin()
        edge, z = get_gradient_edge(y), (y * y).sum()
        (cotangent,) = gradcli.grad(z, y)
        (gradient,) = gradcli.grad(edge, x, cotangent, retain_graph=True)
        assert gradient.tolist() == pytest.approx(np.sin([2.0, 4.0]))
        with pytest.raises(DifferentiationError, match=r"^grad can be implicitly created only for scalar outputs$"):
            gradcli.grad(edge, x)
        with pytest.raises(DifferentiationError, match=r"^Mismatch in shape"):
            gradcli.grad(edge, x, tensor([1.0, 2.0, 3.0]))
        gradcli.autograd.backward(get_gradient_edge(x), tensor([1.0, 2.0]))
        assert x.grad.tolist() == [1.0, 2.0]

    def test_from_an_edge_of_a_scalar_and_of_float32(self):
        x = tensor([1.0, 2.0], dtype="float32", requires_grad=True)
        (gradient,) = gradcli.grad(get_gradient_edge(x.sum()), x)
        assert (gradient.dtype, gradient.tolist()) == ("float32", [1.0, 1.0])
        doubled = Double.apply(x)
        (gradient,) = gradcli.grad(get_gradient_edge(doubled), x, tensor([1.0, 3.0], dtype="float32"))
        assert (gradient.dtype, gradient.tolist()) == ("float32", [2.0, 6.0])

    def test_what_cannot_be(self):
        x = leaf()
        y = x * 2
        with pytest.raises(DifferentiationError, match="It is not possible to get the gradient edge for a Tensor that"):
            get_gradient_edge(tensor(1.0))
        nothing: Any = None
        with pytest.raises(
            DifferentiationError, match=r"GradientEdge's first object must be an autograd\.graph\.Node but"
        ):
            gradcli.grad(y, GradientEdge(nothing, 0))
        unused = get_gradient_edge(x.exp())
        with pytest.raises(DifferentiationError, match="index 0 appears to not have been used in the graph"):
            gradcli.grad(y, unused, retain_graph=True)
        with pytest.raises(
            DifferentiationError, match="materialize_grads cannot be used when the given input is a Grad"
        ):
            gradcli.grad(y, (x, unused), materialize_grads=True)


class TestHooksOfSeveralTensors:
    def test_all_of_those_that_a_pass_reaches(self):
        a, b = leaf(2.0), leaf(3.0)
        c, d = a * b, a * b
        seen = []
        handle = register_multi_grad_hook(
            (a, b, c, d), lambda grads: seen.append([None if g is None else g.item() for g in grads])
        )
        c.backward(retain_graph=True)
        c.backward(inputs=(a,), retain_graph=True)
        gradcli.grad(c, b, retain_graph=True)
        handle.remove()
        c.backward()
        assert seen == [[3.0, 2.0, 1.0, None], [3.0, None, 1.0, None], [None, 2.0, 1.0, None]]

    def test_any_of_them_once_in_a_pass(self):
        a, b = leaf(2.0), leaf(3.0)
        c = a * b
        seen = []
        handle = register_multi_grad_hook((a, c, tensor(1.0)), lambda g: seen.append(g.item()), mode="any")
        c.backward(retain_graph=True)
        c.backward(retain_graph=True)
        handle.remove()
        c.backward()
        assert seen == [1.0, 1.0]

    def test_each_thread_has_its_own_pass(self):
        a, b = leaf(2.0), leaf(3.0)
        c = a * b
        seen: list[int] = []
        register_multi_grad_hook((a, b), lambda grads: seen.append(len(grads)))
        threads = [threading.Thread(target=lambda: c.backward(retain_graph=True)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [2] * 5

    def test_a_mode_that_there_is_not(self):
        wrong: Any = "foo"
        with pytest.raises(ArgumentError, match=r"^Expects mode to be one of \('all', 'any'\) but got foo$"):
            register_multi_grad_hook((leaf(), leaf()), print, mode=wrong)


class TestPasses:
    def test_each_has_a_number(self):
        x, numbers = leaf(), []
        y = x * 1
        y.register_hook(lambda _: numbers.append(current_graph_task_id()))
        y.backward(retain_graph=True)
        y.backward()
        assert numbers[1] - numbers[0] == 1
        assert current_graph_task_id() == -1

    def test_where_one_will_go(self):
        x, other = leaf(), leaf()
        y = x * other
        aside = y.cos()
        ends = [end for end, _ in y.grad_fn.next_functions]
        seen = []
        z = y * 2
        z.register_hook(lambda _: seen.append([will_engine_execute_node(n) for n in (*ends, y.grad_fn, aside.grad_fn)]))
        z.backward(retain_graph=True)
        z.backward(inputs=[x])
        assert seen == [[True, True, True, False], [True, False, True, False]]
        with pytest.raises(DifferentiationError, match="during the backward pass"):
            will_engine_execute_node(y.grad_fn)


class Deeper(gradcli.Function):
    """A Function whose backward is another backward pass, one level less deep."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        with gradcli.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.x >= 0:
            with gradcli.enable_grad():
                Deeper.apply(ctx.x).sum().backward()
        return g


class TestPassesWithinPasses:
    def test_they_may_go_deep(self):
        x = leaf(300.0)
        Deeper.apply(x).backward()
        assert x.grad.item() == 1.0
        assert current_graph_task_id() == -1

    def test_an_error_deep_within_comes_through(self):
        def fail(x):
            with gradcli.enable_grad():
                y = x * 1
            y.register_hook(lambda _: fail(leaf(x.item() - 1)) if x.item() else {}[0])
            y.backward()

        with pytest.raises(KeyError):
            fail(leaf(40.0))

    def test_callbacks_at_the_end_of_a_pass(self):
        log = []

        def first():
            log.append(("first", x.grad.item()))
            queue_callback(lambda: log.append("last"))

        x = leaf()
        y = x * 3
        y.register_hook(lambda _: queue_callback(first))
        y.backward()
        assert log == [("first", 3.0), "last"]
        with pytest.raises(DifferentiationError, match=r"^Final callbacks can only be installed during backward pass"):
            queue_callback(print)


class TestVersions:
    def test_a_change_that_is_told_is_counted(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        z = y.exp()
        squared = (y * y).sum()
        view = y[:1]
        increment_version(y)
        assert (y._version, view._version) == (1, 1)
        with pytest.raises(DifferentiationError, match="modified by an inplace operation"):
            squared.backward()
        z.sum().backward()
        increment_version([x, view])
        assert (x._version, y._version, view._version) == (1, 2, 2)
        assert view.grad_fn is not None

    def test_of_a_result_that_backward_needs(self):
        x = leaf([1.0, 2.0])
        y = x.exp()
        increment_version(y)
        with pytest.raises(DifferentiationError, match="modified by an inplace operation"):
            y.sum().backward()
