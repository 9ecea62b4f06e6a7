"""Adafactor: step sizes from squared gradients, of which a matrix keeps the means of rows and columns alone.

N. Shazeer and M. Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost" (arXiv:1804.04235).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradcli.arrays import dtype_name, is_complex
from gradcli.arrays.dtypes import epsilon
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, DifferentiationError
from gradcli.optim.optimizer import Optimizer, Parameters
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.comparisons import maximum
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.powers import rsqrt
from gradcli.primitives.entries.reductions import mean
from gradcli.primitives.entries.statistics import norm


class Adafactor(Optimizer):
    """x ← (1 - lr·weight_decay)·x - α·u/max(1, rms(u)/d), where u = g/√v and α = max(eps2, rms(x))·min(lr, 1/√n) in
    step n = 1, 2, …

    v is a moving average of g² to which step n adds the newest with weight n**beta2_decay. Of tensors with more than one
    axis, averages over rows r and columns c are kept instead, and v = r·c/mean(r). `eps` is (eps1, eps2), where eps1**2
    is the least v and eps1 the least mean(r); None for eps1 is the spacing of the numbers at 1.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    numbers = Optimizer.numbers - {"eps"}

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        if not group["beta2_decay"] <= 0.0:
            raise ArgumentError(f"beta2_decay should be <= 0 but is: {group['beta2_decay']}")
        for number, eps in enumerate(group["eps"], 1):
            if eps is not None and not eps >= 0.0:
                raise ArgumentError(f"epsilon{number} should be >= 0 but is: {eps}")
        if not group["d"] >= 1.0:
            raise ArgumentError(f"Clipping threshold d should be >= 1 but is: {group['d']}")

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        if is_complex(parameter):
            raise DifferentiationError("Adafactor does not support complex parameters")
        least, least_scale = group["eps"]
        if least is None:
            least = epsilon(dtype_name(parameter))
        state["step"] = state.get("step", 0) + 1
        length = maximum(least_scale, _root_mean_square(parameter)) * min(group["lr"], state["step"] ** -0.5)
        variance = _variance(gradient, state, state["step"] ** group["beta2_decay"], least)
        step = gradient * rsqrt(maximum(variance, least * least))
        step = step / maximum(1.0, _root_mean_square(step) / group["d"])
        parameter.copy_(parameter * (1 - group["lr"] * group["weight_decay"]) - length * step)


def _variance(gradient: Any, state: dict[str, Any], weight: float, least: float) -> Any:
    """The moving average of squared gradients, whose parts in `state` take in a gradient with a weight."""
    squares = gradient * gradient
    if gradient.ndim < 2:
        return _averaged(state, "variance", squares, weight)
    rows = _averaged(state, "row_var", mean(squares, -1, True), weight)
    columns = _averaged(state, "col_var", mean(squares, -2, True), weight)
    return matmul(rows, columns) / maximum(mean(rows, -2, True), least)


def _averaged(state: dict[str, Any], name: str, newest: Any, weight: float) -> Any:
    before = state.get(name, zeros_like(newest))
    state[name] = before + weight * (newest - before)
    return state[name]


def _root_mean_square(x: Any) -> Any:
    return norm(x) / math.sqrt(x.size)
