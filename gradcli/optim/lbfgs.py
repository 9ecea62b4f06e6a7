"""The L-BFGS method: steps along the gradient times an inverse Hessian that is estimated from previous steps.

J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition (Springer 2006), section 7.2. The stopping criteria
and constants are those of PyTorch, which has them from M. Schmidt's minFunc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli.autograd.modes import enable_grad, no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError, expect, expect_callable
from gradcli.named_tuples import NamedTuple
from gradcli.optim.optimizer import Closure, Optimizer, Parameters
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, zeros_like
from gradcli.primitives.entries.elementwise.complex_numbers import view_as_complex, view_as_real
from gradcli.primitives.entries.reductions import max_ as largest
from gradcli.primitives.entries.reductions import sum_ as total
from gradcli.primitives.entries.shape import concat

# A step whose product with the change of the gradient is at most this is not used for the inverse Hessian.
_LEAST_CURVATURE = 1e-10
# The constants c1 (sufficient decrease) and c2 (curvature) of the conditions.
_FALL, _SLOPE = 1e-4, 0.9


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
                    _TrialStep(0.0, loss, gradient, slope), direction, group["max_eval"] - evaluations
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

    def _searched(self, start: _TrialStep, direction: Any, most: int) -> tuple[float, Any, int]:
        if self._group["line_search_fn"] != "strong_wolfe":
            raise EvaluationError("only 'strong_wolfe' is supported")
        here = [p.clone() for p in self._parameters]

        def at(length: float) -> _TrialStep:
            self._move(length, direction)
            _, loss, gradient = self._evaluated()
            for parameter, value in zip(self._parameters, here):
                parameter.copy_(value)
            return _TrialStep(length, loss, gradient, _dot(gradient, direction))

        found, spent = _strong_wolfe(
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
        return loss, float(loss), concat([reshape(_in_pairs(part), (-1,)) for part in parts], axis=0).detach()

    def _move(self, length: float, direction: Any) -> None:
        first = 0
        for parameter in self._parameters:
            numbers = _in_pairs(parameter)
            moved = numbers + length * reshape(direction[first : first + numbers.size], numbers.shape)
            parameter.copy_(view_as_complex(moved) if parameter.is_complex() else moved)
            first += numbers.size


def _in_pairs(x: Any) -> Any:
    """Complex numbers as pairs of real ones."""
    return view_as_real(x) if x.is_complex() else x


def _dot(one: Any, other: Any) -> float:
    return float(total(one * other))


def _max_abs(vector: Any) -> float:
    return float(largest(absolute(vector)))


class _TrialStep(NamedTuple):
    """A step length, the loss and the gradient after the step, and the slope of the loss along the direction."""

    length: float
    loss: float
    gradient: Any
    slope: float


def _strong_wolfe(
    at: Callable[[float], _TrialStep], start: _TrialStep, length: float, size: float, tolerance: float, most: int
) -> tuple[_TrialStep, int]:
    """Find a step length that satisfies the strong Wolfe conditions by algorithms 3.5 and 3.6 of Nocedal and Wright.

    Returns the point there, or the lowest one found, and the number of evaluations: at most `most` or one more. `size`
    is the largest component of the direction; a bracket in which no parameter changes by more than `tolerance` is not
    divided further.
    """

    def too_high(point: _TrialStep) -> bool:
        return point.loss > start.loss + _FALL * point.length * start.slope

    def is_flat(point: _TrialStep) -> bool:
        return abs(point.slope) <= -_SLOPE * start.slope

    before, now = start, at(length)
    tried, done = 0, False
    bracket = [start, now]
    while tried < most:
        bracket = [before, now]
        if too_high(now) or (tried > 1 and now.loss >= before.loss):
            break
        if is_flat(now):
            return now, tried + 1
        if now.slope >= 0:
            break
        low, high = now.length + 0.01 * (now.length - before.length), now.length * 10
        before, now = now, at(_cubic_minimum(before, now, low, high))
        tried += 1
    if tried == most:
        bracket = [start, now]
    stalled = False
    low_place = 0 if bracket[0].loss <= bracket[-1].loss else 1
    while not done and tried < most:
        first, last = sorted(point.length for point in bracket)
        if (last - first) * size < tolerance:
            break
        length = _cubic_minimum(bracket[0], bracket[1], first, last)
        length, stalled = _away_from_ends(length, first, last, stalled)
        now = at(length)
        tried += 1
        if too_high(now) or now.loss >= bracket[low_place].loss:
            bracket[1 - low_place] = now
            low_place = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if is_flat(now):
            done = True
        elif now.slope * (bracket[1 - low_place].length - bracket[low_place].length) >= 0:
            bracket[1 - low_place] = bracket[low_place]
        bracket[low_place] = now
    return bracket[low_place], tried + 1


def _away_from_ends(length: float, first: float, last: float, stalled: bool) -> tuple[float, bool]:
    """A length inside the bracket, moved away from its ends the second time in a row that it is close to them; and
    whether it is close."""
    margin = 0.1 * (last - first)
    if min(last - length, length - first) >= margin:
        return length, False
    if stalled or length >= last or length <= first:
        return (last - margin if abs(length - last) < abs(length - first) else first + margin), False
    return length, True


def _cubic_minimum(one: _TrialStep, other: _TrialStep, low: float, high: float) -> float:
    """The minimum of the cubic through two points with their slopes, clipped to [low, high]."""
    left, right = (one, other) if one.length <= other.length else (other, one)
    apart = right.length - left.length
    if not apart:
        return min(max(left.length, low), high)
    mean = left.slope + right.slope - 3 * (left.loss - right.loss) / -apart
    square = mean**2 - left.slope * right.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    below = right.slope - left.slope + 2 * root
    if not below:
        return (low + high) / 2
    return min(max(right.length - apart * ((right.slope + root - mean) / below), low), high)
