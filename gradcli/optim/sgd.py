"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, as_bool
from gradcli.optim.optimizer import Optimizer, Parameters, with_weight_decay


class SGD(Optimizer):
    """x ← x - lr·b with b ← momentum·b + (1 - dampening)·g, where g is the gradient plus weight_decay·x; with
    `nesterov`, g + momentum·b replaces b.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        if not group["momentum"] >= 0.0:
            raise ArgumentError(f"Invalid momentum value: {group['momentum']}")
        if as_bool(group["nesterov"], "nesterov") and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentError("Nesterov momentum requires a momentum and zero dampening")

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        momentum = group["momentum"]
        gradient = with_weight_decay(gradient, parameter, group)
        if momentum:
            buffer = state.get("momentum_buffer")
            buffer = gradient.clone() if buffer is None else momentum * buffer + (1 - group["dampening"]) * gradient
            state["momentum_buffer"] = buffer
            gradient = gradient + momentum * buffer if group["nesterov"] else buffer
        parameter.copy_(parameter - group["lr"] * gradient)
