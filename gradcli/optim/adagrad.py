"""Adagrad and Adadelta: step sizes for each element that adapt to the past gradients.

J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization" (JMLR
2011); M. D. Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (arXiv:1212.5701).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.optim.optimizer import Optimizer, Parameters, at_least_0, with_weight_decay
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.powers import sqrt


class Adagrad(Optimizer):
    """x ← x - lr/(1 + n·lr_decay)·g/(√s + eps) in step n = 0, 1, …, where s is `initial_accumulator_value` plus the sum
    of all squared gradients.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "eps": eps,
                "maximize": maximize,
            },
        )

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        for name in ("lr_decay", "initial_accumulator_value"):
            at_least_0(group, name, f"{name} value")
        at_least_0(group, "eps", "epsilon value")

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        if not state:
            state |= {"step": 0, "sum": zeros_like(parameter) + group["initial_accumulator_value"]}
        state["step"] += 1
        gradient = with_weight_decay(gradient, parameter, group)
        state["sum"] = state["sum"] + gradient * gradient
        length = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        parameter.copy_(parameter - length * gradient / (sqrt(state["sum"]) + group["eps"]))


class Adadelta(Optimizer):
    """x ← x - lr·√(d + eps)/√(v + eps)·g, where v and d are exponential moving averages of the squares of gradients and
    of steps, with decay rate rho.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options)

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        if not 0.0 <= group["rho"] <= 1.0:
            raise ArgumentError(f"Invalid rho value: {group['rho']}")
        at_least_0(group, "eps", "epsilon value")

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        if not state:
            state |= {"step": 0, "square_avg": zeros_like(parameter), "acc_delta": zeros_like(parameter)}
        state["step"] += 1
        gradient = with_weight_decay(gradient, parameter, group)
        state["square_avg"] = rho * state["square_avg"] + (1 - rho) * gradient * gradient
        delta = sqrt(state["acc_delta"] + eps) / sqrt(state["square_avg"] + eps) * gradient
        state["acc_delta"] = rho * state["acc_delta"] + (1 - rho) * delta * delta
        parameter.copy_(parameter - group["lr"] * delta)
