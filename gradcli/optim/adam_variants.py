"""Adamax, NAdam and RAdam: Adam with the maximum norm, with Nesterov momentum, and with a rectified variance.

D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization" (ICLR 2015) for Adamax; T. Dozat, "Incorporating
Nesterov Momentum into Adam" (ICLR workshop 2016); L. Liu et al., "On the Variance of the Adaptive Learning Rate and
Beyond" (ICLR 2020) for RAdam.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.optim.adam import check_moments
from gradcli.optim.optimizer import Optimizer, Parameters, at_least_0, running_mean, with_weight_decay
from gradcli.primitives.entries.arithmetic import absolute, zeros_like
from gradcli.primitives.entries.comparisons import maximum
from gradcli.primitives.entries.powers import sqrt

# The base of the momentum schedule of NAdam, from Dozat's paper.
_WARM_UP = 0.96
# At or below this number of degrees of freedom RAdam does not use the variance, as in PyTorch.
_LEAST_FREEDOM = 5.0


class _MomentOptimizer(Optimizer):
    """The base class of optimizers with moving averages of the gradient and of another function of it."""

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        check_moments(group)

    def _decayed(self, parameter: Tensor, gradient: Any, group: Mapping[str, Any]) -> tuple[Any, Any]:
        """The parameter and the gradient, one of them with the weight decay applied."""
        if group["weight_decay"] and group.get("decoupled_weight_decay"):
            return parameter * (1 - group["lr"] * group["weight_decay"]), gradient
        return parameter, with_weight_decay(gradient, parameter, group)

    def _update_moments(self, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        """Update the moving averages of the gradient and of its square."""
        beta1, beta2 = group["betas"]
        state["exp_avg"] = running_mean(state["exp_avg"], gradient, 1 - beta1)
        state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * gradient * gradient


class Adamax(_MomentOptimizer):
    """x ← x - lr·m̂/u, where m is the moving average of the gradient, and u the maximum of its absolute values, decayed
    by beta2.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options)

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        if not state:
            state |= {"step": 0, "exp_avg": zeros_like(parameter), "exp_inf": zeros_like(parameter)}
        state["step"] += 1
        start, gradient = self._decayed(parameter, gradient, group)
        state["exp_avg"] = running_mean(state["exp_avg"], gradient, 1 - beta1)
        state["exp_inf"] = maximum(beta2 * state["exp_inf"], absolute(gradient) + group["eps"])
        length = group["lr"] / (1 - beta1 ** state["step"])
        parameter.copy_(start - length * (state["exp_avg"] / state["exp_inf"]))


class NAdam(_MomentOptimizer):
    """Adam with Nesterov momentum.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
        )

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        at_least_0(group, "momentum_decay", "momentum_decay value")

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        lr, (beta1, beta2), fading = group["lr"], group["betas"], group["momentum_decay"]
        if not state:
            state |= {
                "step": 0,
                "mu_product": 1.0,
                "exp_avg": zeros_like(parameter),
                "exp_avg_sq": zeros_like(parameter),
            }
        state["step"] += 1
        step = state["step"]
        start, gradient = self._decayed(parameter, gradient, group)
        momentum, ahead = (beta1 * (1 - 0.5 * _WARM_UP ** (n * fading)) for n in (step, step + 1))
        state["mu_product"] *= momentum
        self._update_moments(gradient, state, group)
        scale = sqrt(state["exp_avg_sq"] / (1 - beta2**step)) + group["eps"]
        by_gradient = lr * (1 - momentum) / (1 - state["mu_product"])
        by_mean = lr * ahead / (1 - state["mu_product"] * ahead)
        parameter.copy_(start - by_gradient * (gradient / scale) - by_mean * (state["exp_avg"] / scale))


class RAdam(_MomentOptimizer):
    """Adam that divides by the second moment only once its variance is known; earlier steps use the mean alone.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
            },
        )

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        if not state:
            state |= {"step": 0, "exp_avg": zeros_like(parameter), "exp_avg_sq": zeros_like(parameter)}
        state["step"] += 1
        start, gradient = self._decayed(parameter, gradient, group)
        self._update_moments(gradient, state, group)
        change = state["exp_avg"] / (1 - beta1 ** state["step"])
        rectified = _rectification(beta2, state["step"])
        if rectified:
            change = change * rectified / (sqrt(state["exp_avg_sq"]) + group["eps"])
        parameter.copy_(start - group["lr"] * change)


def _rectification(beta2: float, step: int) -> float:
    """The rectification factor of RAdam's steps; 0 while the variance is not known."""
    most = 2 / (1 - beta2) - 1
    corrected = 1 - beta2**step
    freedom = most - 2 * step * beta2**step / corrected
    if freedom <= _LEAST_FREEDOM:
        return 0.0
    share = (freedom - 4) * (freedom - 2) * most / ((most - 4) * (most - 2) * freedom)
    return math.sqrt(share * corrected)
