"""Inference mode, undefined gradients, checkpoints and gradcheck beside PyTorch's: the same lines run in both."""

from __future__ import annotations

import re
from typing import Any

import pytest

import gradcli
import gradcli.utils.checkpoint

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

BOTH = (torch, gradcli)


def told(library: Any, line: Any, *arguments: Any) -> Any:
    """What a line gives, or the beginning of the message of its error: what PyTorch adds names itself."""
    try:
        found = line(library, *arguments)
    except RuntimeError as error:
        return re.split(r"[.:\n]", str(error))[0]
    return found.tolist() if hasattr(found, "tolist") else found


def leaf(library: Any, data: Any) -> Any:
    return library.tensor(data, requires_grad=True, **({"dtype": library.float64} if library is torch else {}))


INFERENCE = {
    "made inside": lambda m, x, c: c.is_inference(),
    "computed outside": lambda m, x, c: (c * 2).is_inference(),
    "a view outside": lambda m, x, c: (c[0].is_inference(), c[0]._is_view()),
    "its version": lambda m, x, c: c._version,
    "saved": lambda m, x, c: x * c,
    "not saved": lambda m, x, c: (x + c).requires_grad,
    "changed": lambda m, x, c: c.add_(1),
    "an element changed": lambda m, x, c: c.__setitem__(0, 1.0),
    "its gradient asked for": lambda m, x, c: c.requires_grad_(),
    "changes another": lambda m, x, c: (x * 1).mul_(c),
}


@pytest.mark.parametrize("name", INFERENCE)
def test_an_inference_tensor(name: str) -> None:
    seen = []
    for library in BOTH:
        x = leaf(library, [1.0, 2.0])
        with library.inference_mode():
            constant = x.detach() * 1
        seen.append(told(library, INFERENCE[name], x, constant))
    assert seen[0] == seen[1]


VIEWS = {
    "requires grad": lambda m, y, v: (v.requires_grad, v.is_leaf, v._is_view()),
    "is changed": lambda m, y, v: v.add_(1),
    "its base is changed": lambda m, y, v: (y.add_(1), v.grad_fn),
}


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_that_is_not_recorded(name: str, mode: str) -> None:
    seen = []
    for library in BOTH:
        y = leaf(library, [1.0, 2.0]) * 1
        with getattr(library, mode)():
            view = y.view(-1)
        seen.append(told(library, VIEWS[name], y, view))
    assert seen[0] == seen[1]


def test_hooks_and_functions_behind_a_gradient_that_is_not_there() -> None:
    seen = []
    for library in BOTH:
        events: list[Any] = []

        class Nothing(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return None

        class Double(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g, events=events):
                events.append(g.tolist())
                return g * 2

        x, z = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        y = Double.apply(x)
        for tensor in (x, y):
            tensor.register_hook(lambda g, events=events: events.append(g if g is None else g.tolist()))
        Nothing.apply(y * z).sum().backward()
        seen.append((events, x.grad.tolist(), z.grad))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("early_stop", [True, False])
def test_how_often_a_checkpoint_is_computed(early_stop: bool) -> None:
    seen = []
    for library in BOTH:
        calls: list[str] = []

        def function(x, library=library, calls=calls):
            calls.append("begin")
            y = library.exp(library.sin(x))
            calls.append("end")
            return y + 1

        checkpoint = library.utils.checkpoint
        x = leaf(library, [1.0, 2.0])
        with checkpoint.set_checkpoint_early_stop(early_stop):
            y = checkpoint.checkpoint(function, x, use_reentrant=False).sum()
        y.backward(retain_graph=True)
        y.backward()
        seen.append((calls, pytest.approx(x.grad.tolist())))
    assert seen[0] == (seen[1][0], seen[1][1].expected)


CHECKED = {
    "right": lambda m, x: m.sin(x) * x,
    "detached": lambda m, x: x.detach() * m.sin(x),
    "constant": lambda m, x: x.detach() * 0,
    "not connected": lambda m, x: x.detach() * 2,
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", CHECKED)
def test_a_check_of_gradients(name: str, fast: bool) -> None:
    seen = []
    for library in BOTH:
        check = library.autograd.gradcheck

        def line(m, check=check):
            return check(lambda x: CHECKED[name](m, x), (leaf(m, [0.3, 1.2]),), fast_mode=fast)

        seen.append(told(library, line))
    assert seen[0].split(",")[0] == seen[1].split(",")[0] if isinstance(seen[0], str) else seen[0] == seen[1]
