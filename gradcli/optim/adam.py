"""Adam and AdamW: step sizes from estimates of the gradient's first and second moments.

D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization" (ICLR 2015); S. J. Reddi, S. Kale and S. Kumar, "On
the Convergence of Adam and Beyond" (ICLR 2018) for `amsgrad`; I. Loshchilov and F. Hutter, "Decoupled Weight Decay
Regularization" (ICLR 2019) for AdamW.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.arrays import quiet
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, expect
from gradcli.optim.optimizer import Optimizer, Parameters, running_mean
from gradcli.primitives.bind import detached
from gradcli.primitives.entries.arithmetic import divide, zeros_like
from gradcli.primitives.entries.comparisons import maximum
from gradcli.primitives.entries.powers import sqrt


class Adam(Optimizer):
    """x ← x - lr·m̂/(√v̂ + eps), where m and v are moving averages of the gradient and its square, and m̂ and v̂ are
    corrected for their start at 0. `weight_decay` adds its multiple of x to the gradient or, with
    `decoupled_weight_decay`, shrinks x directly; with `amsgrad` v̂ is the maximum over all steps.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        check_moments(group)

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        lr, decay, eps = (detached(group[name]) for name in ("lr", "weight_decay", "eps"))
        beta1, beta2 = group["betas"]
        if not state:
            state |= {"step": 0, "exp_avg": zeros_like(parameter), "exp_avg_sq": zeros_like(parameter)}
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_like(parameter)
        state["step"] += 1
        # Nothing is recorded here, so the computation uses the arrays directly.
        start, slope = parameter.inner, gradient.inner
        with quiet():
            if decay and group["decoupled_weight_decay"]:
                start = start * (1 - lr * decay)
            elif decay:
                slope = slope + decay * start
            mean = running_mean(state["exp_avg"].inner, slope, 1 - beta1)
            square = beta2 * state["exp_avg_sq"].inner + (1 - beta2) * slope * slope
            state["exp_avg"], state["exp_avg_sq"] = Tensor(mean), Tensor(square)
            if group["amsgrad"]:
                square = maximum(state["max_exp_avg_sq"].inner, square)
                state["max_exp_avg_sq"] = Tensor(square)
            scale = sqrt(square) / (1 - beta2 ** state["step"]) ** 0.5 + eps
            moved = start - lr / (1 - beta1 ** state["step"]) * divide(mean, scale)
        parameter.copy_(Tensor(moved))


class AdamW(Adam):
    """Adam with decoupled weight decay, by default 0.01."""

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True)


def check_moments(group: Mapping[str, Any]) -> None:
    """Raise ArgumentError for an invalid `eps` or `betas`."""
    if not group["eps"] >= 0.0:
        raise ArgumentError(f"Invalid epsilon value: {group['eps']}")
    expect(group["betas"], (tuple, list), "'betas' are two numbers")
    for index, beta in enumerate(group["betas"]):
        expect(beta, (int, float), "'betas' are two numbers")
        if not 0.0 <= beta < 1.0:
            raise ArgumentError(f"Invalid beta parameter at index {index}: {beta}")
