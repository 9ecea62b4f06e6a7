"""The L-BFGS method: steps along the gradient times an inverse Hessian that is estimated from previous steps.

J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition (Springer 2006), section 7.2. The stopping criteria
and constants are those of PyTorch, which has them from M. Schmidt's minFunc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.autograd.modes import enable_grad, no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError, expect, expect_callable
from gradcli.optim.line_search import TrialStep, strong_wolfe
from gradcli.optim.optimizer import Closure, Optimizer, Parameters
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, zeros_like
from gradcli.primitives.entries.reductions import max_ as largest
from gradcli.primitives.entries.reductions import sum_ as total
from gradcli.primitives.entries.shape import concat

# A step whose product with the change of the gradient is at most this is not used for the inverse Hessian.
_LEAST_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """Up to `max_iter` iterations per step with a history of `history_size` gradient changes, and the step length `lr`
    or, with `line_search_fn="strong_wolfe"`, one that satisfies the strong Wolfe conditions.

    A step needs a closure that computes the loss and the gradients. It ends after `max_eval` evaluations, and when the
    gradient is below `tolerance_grad` or the change of the loss or the parameters below `tolerance_change`. There is a
    single group of parameters. Raises ArgumentError for invalid options, as in PyTorch.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        expect(max_iter, int, "'max_iter' is a whole number")
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ArgumentError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Closure | None = None) -> Any:
        """Take a step and return the loss before it. Raises ArgumentError without a closure."""
        if closure is None:
            raise ArgumentError("LBFGS evaluates the loss several times: give step a closure")
        expect_callable(closure, "a closure is a function")
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        with no_grad():
            return _LBFGSStep(closure, group, state).taken()


class _LBFGSStep:
    def __init__(self, closure: Closure, group: Mapping[str, Any], state: dict[str, Any]) -> None:
        self._closure, self._group, self._state = closure, group, state
        self._parameters: Sequence[Tensor] = group["params"]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

    def taken(self) -> Any:
        group, state = self._group, self._state
        first, loss, gradient = self._evaluated()
        state["func_evals"] += 1
        evaluations = 1
        if _max_abs(gradient) <= group["tolerance_grad"]:
            return first
        for number in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(gradient)
            state["d"] = direction
            length = group["lr"]
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(total(absolute(gradient))))
            state["t"] = length
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            slope = _dot(gradient, direction)
            if slope > -group["tolerance_change"]:
                break
            before, spent = loss, 0
            is_last = number == group["max_iter"]
            if group["line_search_fn"] is not None:
                loss, gradient, spent = self._searched(
                    TrialStep(0.0, loss, gradient, slope), direction, group["max_eval"] - evaluations
                )
            else:
                self._move(state["t"], direction)
                if not is_last:
                    _, loss, gradient = self._evaluated()
                    spent = 1
            evaluations += spent
            state["func_evals"] += spent
            if is_last or evaluations >= group["max_eval"] or _max_abs(gradient) <= group["tolerance_grad"]:
                break
            if _max_abs(direction * state["t"]) <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _direction(self, gradient: Any) -> Any:
        state = self._state
        if state["n_iter"] == 1:
            state |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
            return -gradient
        change, moved = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        bent = _dot(change, moved)
        if bent > _LEAST_CURVATURE:
            for name, newest in (("old_dirs", change), ("old_stps", moved), ("ro", 1.0 / bent)):
                state[name] = [*state[name], newest][-self._group["history_size"] :]
            state["H_diag"] = bent / _dot(change, change)
        return self._inverse_hessian(-gradient)

    def _inverse_hessian(self, q: Any) -> Any:
        """The inverse Hessian times a vector, by the two-loop recursion."""
        state = self._state
        changes = [*zip(state["old_dirs"], state["old_stps"], state["ro"])]
        weights = []
        for change, moved, inverse in reversed(changes):
            weights.append(_dot(moved, q) * inverse)
            q = q - weights[-1] * change
        q = q * state["H_diag"]
        for (change, moved, inverse), weight in zip(changes, reversed(weights)):
            q = q + (weight - _dot(change, q) * inverse) * moved
        return q

    def _searched(self, start: TrialStep, direction: Any, most: int) -> tuple[float, Any, int]:
        if self._group["line_search_fn"] != "strong_wolfe":
            raise EvaluationError("only 'strong_wolfe' is supported")
        here = [p.clone() for p in self._parameters]

        def at(length: float) -> TrialStep:
            self._move(length, direction)
            _, loss, gradient = self._evaluated()
            for parameter, value in zip(self._parameters, here):
                parameter.copy_(value)
            return TrialStep(length, loss, gradient, _dot(gradient, direction))

        found, spent = strong_wolfe(
            at, start, self._state["t"], _max_abs(direction), self._group["tolerance_change"], most
        )
        self._state["t"] = found.length
        self._move(found.length, direction)
        return found.loss, found.gradient, spent

    def _evaluated(self) -> tuple[Any, float, Any]:
        """The loss as the closure returns it and as a float, and the gradients as one vector."""
        with enable_grad():
            loss = self._closure()
        parts = [zeros_like(p) if p.grad is None else p.grad for p in self._parameters]
        return loss, float(loss), concat([reshape(part, (-1,)) for part in parts], axis=0).detach()

    def _move(self, length: float, direction: Any) -> None:
        first = 0
        for parameter in self._parameters:
            part = direction[first : first + parameter.size]
            parameter.copy_(parameter + length * reshape(part, parameter.shape))
            first += parameter.size


def _dot(one: Any, other: Any) -> float:
    return float(total(one * other))


def _max_abs(vector: Any) -> float:
    return float(largest(absolute(vector)))
