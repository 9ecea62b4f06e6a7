"""Averaged stochastic gradient descent.

B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by averaging" (SIAM Journal on Control and
Optimization 30, 1992).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.optim.optimizer import Optimizer, Parameters, with_weight_decay
from gradcli.primitives.entries.arithmetic import zeros_like


class ASGD(Optimizer):
    """x ← (1 - lambd·η)·x - η·g, where g is the gradient plus weight_decay·x and η = lr/(1 + lambd·lr·t)**alpha, the
    rate of the step before. The average of x over the steps after `t0`, and x itself up to then, is "ax" in the state
    of a parameter.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        if not state:
            state |= {"step": 0, "eta": group["lr"], "mu": 1.0, "ax": zeros_like(parameter)}
        state["step"] += 1
        gradient = with_weight_decay(gradient, parameter, group)
        rate = state["eta"]
        parameter.copy_((1.0 - group["lambd"] * rate) * parameter - rate * gradient)
        mean, share = state["ax"], state["mu"]
        state["ax"] = parameter.detach().clone() if share == 1.0 else mean + share * (parameter - mean)
        state["eta"] = group["lr"] / (1.0 + group["lambd"] * group["lr"] * state["step"]) ** group["alpha"]
        state["mu"] = 1.0 / max(1.0, state["step"] - group["t0"])
