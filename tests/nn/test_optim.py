"""Tests every step of `gradcli.optim` against stored numbers of PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import nn, optim
from gradcli.errors import ArgumentError, CallError

CASES = json.loads((Path(__file__).parents[1] / "data" / "optimizers.json").read_text())["cases"]


def parameters() -> tuple[gradcli.Tensor, gradcli.Tensor]:
    return gradcli.tensor([-1.2, 1.0, 0.5], requires_grad=True), gradcli.tensor(0.3, requires_grad=True)


def made(case: dict[str, Any], given: Any) -> optim.Optimizer:
    options = {name: tuple(v) if isinstance(v, list) else v for name, v in case["options"].items()}
    return getattr(optim, case["optimizer"])(given, **options)


def closure_of(w: gradcli.Tensor, b: gradcli.Tensor, optimizer: optim.Optimizer) -> Any:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((w[1:] - w[:-1] ** 2) ** 2).sum() + ((1 - w) ** 2).sum() / 4 + gradcli.sin(b * w).sum() + b**2
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['optimizer']}-{len(case['options'])}")
def test_each_step_is_that_of_pytorch(case: dict[str, Any]) -> None:
    w, b = parameters()
    optimizer = made(case, [w, b])
    closure = closure_of(w, b, optimizer)
    for expected in case["steps"]:
        loss = optimizer.step(closure)
        assert [loss.item(), *w.tolist(), b.item()] == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("case", CASES[1::4], ids=lambda case: case["optimizer"])
def test_a_state_is_gone_on_from(case: dict[str, Any]) -> None:
    w, b = parameters()
    first = made(case, [w, b])
    for _ in range(3):
        first.step(closure_of(w, b, first))
    with gradcli.no_grad():
        v, c = (gradcli.tensor(p.tolist(), requires_grad=True) for p in (w, b))
    second = made({**case, "options": {**case["options"], "lr": 9.0}}, [v, c])
    second.load_state_dict(first.state_dict())
    for expected in case["steps"][3:]:
        second.step(closure_of(v, c, second))
        assert [*v.tolist(), c.item()] == pytest.approx(expected[1:], rel=1e-9, abs=1e-11)


def test_a_state_has_the_names_of_pytorch() -> None:
    w, b = parameters()
    optimizer = optim.Adam([{"params": [w], "lr": 0.5}, {"params": b}], amsgrad=True)
    optimizer.step(closure_of(w, b, optimizer))
    state = optimizer.state_dict()
    assert sorted(state["state"][1]) == ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]
    assert [(group["lr"], group["params"]) for group in state["param_groups"]] == [(0.5, [0]), (1e-3, [1])]


def test_what_has_no_gradient_stays() -> None:
    w, b = parameters()
    optimizer = optim.SGD([w, b], lr=1.0)
    b.grad = gradcli.tensor(1.0)
    optimizer.step()
    assert (w.tolist(), b.item()) == ([-1.2, 1.0, 0.5], pytest.approx(-0.7))
    optimizer.zero_grad(set_to_none=False)
    assert b.grad.item() == 0.0
    optimizer.zero_grad()
    assert b.grad is None


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda w: optim.SGD(w), CallError, "should be an iterable of Tensors"),
        (lambda w: optim.SGD([]), ArgumentError, "optimizer got an empty parameter list"),
        (lambda w: optim.SGD([w, w]), ArgumentError, "some parameters appear in more than one parameter group"),
        (lambda w: optim.SGD([w * 2]), ArgumentError, "can't optimize a non-leaf Tensor"),
        (lambda w: optim.SGD([1.0]), CallError, "can only optimize Tensors"),
        (lambda w: optim.SGD([w], lr=-1), ArgumentError, "Invalid learning rate: -1"),
        (lambda w: optim.SGD([w], nesterov=True), ArgumentError, "Nesterov momentum requires a momentum"),
        (lambda w: optim.Adam([w], betas=(0.9, 1.0)), ArgumentError, "Invalid beta parameter at index 1: 1.0"),
        (lambda w: optim.RMSprop([w], alpha=-1), ArgumentError, "Invalid alpha value"),
        (lambda w: optim.LBFGS([w]).step(), ArgumentError, "give step a closure"),
        (
            lambda w: optim.SGD([w]).load_state_dict({"state": {}, "param_groups": []}),
            ArgumentError,
            "different number",
        ),
    ],
)
def test_what_cannot_be_optimised(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make(gradcli.tensor([1.0], requires_grad=True))


def test_a_network_learns() -> None:
    weights = nn.Linear(1, 1)
    with gradcli.no_grad():
        weights.weight.copy_([[0.0]])
        weights.bias.copy_([0.0])
    x = gradcli.tensor([[0.0], [1.0], [2.0]])
    optimizer = optim.Adam(weights.parameters(), lr=0.2)
    for _ in range(150):
        optimizer.zero_grad()
        ((weights(x) - (3 * x + 1)) ** 2).mean().backward()
        optimizer.step()
    assert (weights.weight.item(), weights.bias.item()) == pytest.approx((3, 1), abs=0.01)


def test_a_mean_of_the_newest_gradient_alone_is_that_gradient() -> None:
    """Like PyTorch's `lerp`, which is exactly its end at weight 1, however large the previous value was."""
    w = gradcli.tensor([1.0], requires_grad=True)
    adam, rms = optim.Adam([w], betas=(0.0, 0.9)), optim.RMSprop([w], alpha=0.0, centered=True)
    for gradient in (1e17, 3.0):
        w.grad = gradcli.tensor([gradient])
        adam.step()
        rms.step()
    assert adam.state[w]["exp_avg"].item() == rms.state[w]["grad_avg"].item() == 3.0


@pytest.mark.parametrize("start", [1.0, [1.0, -2.0]])
def test_adam_takes_tensors_for_numbers_and_a_gradient_of_zeros(start):
    x = gradcli.tensor(start, requires_grad=True)
    optimizer = gradcli.optim.Adam([x], lr=gradcli.tensor(0.1), eps=0.0)
    (x * 0.0).sum().backward()
    optimizer.step()
    assert np.isnan(x.tolist()).all()
    again = gradcli.tensor(start, requires_grad=True)
    optimizer = gradcli.optim.Adam([again], lr=gradcli.tensor(0.1))
    again.square().sum().backward()
    optimizer.step()
    np.testing.assert_allclose(again.tolist(), np.asarray(start) - 0.1 * np.sign(start), rtol=1e-7)
    assert type(optimizer.state[again]["exp_avg"]) is gradcli.Tensor
