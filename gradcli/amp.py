"""Mixed precision with the names of `torch.amp`: scaled losses, whose small gradients do not vanish in float16."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Self

from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


class GradScaler:
    """Scales a loss before backward, and divides the gradients again before a step of an optimizer.

    The factor grows by `growth_factor` after `growth_interval` steps with finite gradients, and is multiplied by
    `backoff_factor` after others, which move no parameter. For a device other than the CPU the scaler is disabled with a
    warning, as PyTorch does without a GPU: losses and gradients stay as they are.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and not str(device).startswith("cpu"):
            warnings.warn(
                f"torch.{device}.amp.GradScaler is enabled, but {device} is not available.  Disabling.", stacklevel=2
            )
            enabled = False
        if growth_factor <= 1.0:
            raise ArgumentError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise ArgumentError("The backoff factor must be < 1.0.")
        self._enabled, self._scale, self._growth_tracker = enabled, float(init_scale), 0
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        # By the id of each optimizer seen since the last `update`: True if its gradients are finite.
        self._finite: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or those in a list or tuple, times the factor."""
        if not self._enabled:
            return outputs
        return outputs * self._scale if isinstance(outputs, Tensor) else type(outputs)(map(self.scale, outputs))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, before they are clipped. Raises
        EvaluationError for a second time."""
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise EvaluationError("unscale_() has already been called on this optimizer since the last update().")
        finite = True
        with no_grad():
            for group in optimizer.param_groups:
                for gradient in (p.grad for p in group["params"] if p.grad is not None):
                    gradient.mul_(1.0 / self._scale)
                    finite = finite and bool(gradient.isfinite().all())
        self._finite[id(optimizer)] = finite

    def step(self, optimizer: Any, *arguments: Any, **named: Any) -> Any:
        """A step of the optimizer, unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*arguments, **named)
        if id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        return optimizer.step(*arguments, **named) if self._finite[id(optimizer)] else None

    def update(self, new_scale: float | None = None) -> None:
        """Choose the factor of the next step. Raises EvaluationError without a `step` or `unscale_` before."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._finite:
            raise EvaluationError("No inf checks were recorded prior to update.")
        elif all(self._finite.values()):
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        else:
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        self._finite = {}

    def get_scale(self) -> float:
        """The factor, 1 where the scaler is disabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor and the settings by which it grows and shrinks; empty where the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from the state of another scaler. Raises EvaluationError for that of a disabled one."""
        if not self._enabled:
            return
        if not state_dict:
            raise EvaluationError(
                "The source state dict is empty, possibly because it was saved from a disabled scaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]


class autocast:
    """A context or decorator that changes nothing; in PyTorch's, products are computed in lower precision. For a device
    other than the CPU it is disabled with a warning, as PyTorch does without a GPU.

    Raises EvaluationError where it is enabled on the CPU, because products are computed in neither of its dtypes,
    "bfloat16" and "float16".
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device_type = str(device_type)
        if enabled and self.device_type == "cpu":
            raise EvaluationError(
                "autocast does not compute in bfloat16 or float16 here",
                hint="autocast('cpu', enabled=False) is accepted",
            )
        if enabled:
            warnings.warn(
                f"User provided device_type of '{self.device_type}', but it is not available. Disabling", stacklevel=2
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing, as `__enter__` does."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return wraps(function)(lambda *arguments, **named: function(*arguments, **named))


def custom_fwd(
    forward: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """A decorator for `forward` of a `Function`, which changes nothing, as `autocast` does not."""
    return (lambda f: f) if forward is None else forward


def custom_bwd(backward: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """A decorator for `backward` of a `Function`; see `custom_fwd`."""
    return (lambda f: f) if backward is None else backward


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` computes in lower precision on a device, which it does on none."""
    return False
