"""Rprop: step sizes that adapt to the signs of the gradient.

M. Riedmiller and H. Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm" (ICNN
1993).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.optim.optimizer import Optimizer, Parameters
from gradcli.primitives.entries.arithmetic import sign, zeros_like
from gradcli.primitives.entries.comparisons import clip, where


class Rprop(Optimizer):
    """Moves each element against the sign of its gradient by its own step size, which grows by the second of `etas`
    while the sign stays the same and shrinks by the first when it changes, within `step_sizes`; after a change the
    element does not move.

    Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        shrinking, growing = group["etas"]
        if not 0.0 < shrinking < 1.0 < growing:
            raise ArgumentError(f"Invalid eta values: {shrinking}, {growing}")

    def update(self, parameter: Tensor, gradient: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        if not state:
            state |= {"step": 0, "prev": zeros_like(parameter), "step_size": zeros_like(parameter) + group["lr"]}
        state["step"] += 1
        (shrinking, growing), (least, most) = group["etas"], group["step_sizes"]
        same: Any = gradient * state["prev"]
        factor = where(same > 0, growing, where(same < 0, shrinking, 1.0))
        state["step_size"] = clip(state["step_size"] * factor, least, most)
        state["prev"] = where(same < 0, 0.0, gradient)
        parameter.copy_(parameter - sign(state["prev"]) * state["step_size"])
