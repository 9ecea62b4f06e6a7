"""RMSprop: steps divided by the root of the mean square of the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.optim.optimizer import Optimizer, Parameters, running_mean, with_weight_decay
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.powers import sqrt


class RMSprop(Optimizer):
    """x ← x - lr·g/(√v + eps), where v is the moving average of the squared gradient with decay `alpha`, minus the
    square of the average gradient if `centered`; with `momentum` the steps accumulate.

    G. Hinton, "Neural Networks for Machine Learning", lecture 6e (2012). Raises ArgumentError for invalid options, as
    in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
            },
        )

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        for name, what in (("eps", "epsilon"), ("momentum", "momentum"), ("alpha", "alpha")):
            if not group[name] >= 0.0:
                raise ArgumentError(f"Invalid {what} value: {group[name]}")

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        if not state:
            state |= {"step": 0, "square_avg": zeros_like(parameter)}
            state |= {"momentum_buffer": zeros_like(parameter)} if momentum > 0 else {}
            state |= {"grad_avg": zeros_like(parameter)} if group["centered"] else {}
        state["step"] += 1
        gradient = with_weight_decay(gradient, parameter, group)
        square = state["square_avg"] = alpha * state["square_avg"] + (1 - alpha) * gradient * gradient
        if group["centered"]:
            state["grad_avg"] = running_mean(state["grad_avg"], gradient, 1 - alpha)
            square = square - state["grad_avg"] * state["grad_avg"]
        step = gradient / (sqrt(square) + group["eps"])
        if momentum > 0:
            step = state["momentum_buffer"] = momentum * state["momentum_buffer"] + step
        parameter.copy_(parameter - group["lr"] * step)
