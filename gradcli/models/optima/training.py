"""Training by first-order optimizers, with gradients of all rows or of mini-batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.errors import UsageError
from gradcli.models import checked_arguments, dense_matrices
from gradcli.models.optima.newton import NewtonEnd
from gradcli.models.optima.optimization_problems import OptimizationProblem
from gradcli.models.optima.verdicts import Verdict
from gradcli.models.results import Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple
from gradcli.optim.adam import Adam
from gradcli.optim.optimizer import Optimizer
from gradcli.optim.rmsprop import RMSprop
from gradcli.optim.sgd import SGD

STOCHASTIC: dict[str, type[Optimizer]] = {"adam": Adam, "sgd": SGD, "rmsprop": RMSprop}
# The factor of the learning rate as a function of the share of all steps taken.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda share: 1.0,
    "linear": lambda share: 1.0 - share,
    "cosine": lambda share: (1.0 + math.cos(math.pi * share)) / 2,
}
# A training converged where the gradient has fallen to the share `_FALLEN` of that at the start, and it ended at a
# saddle where the least eigenvalue of the Hessian is below -`_DOWNWARDS` times the largest.
_FALLEN, _DOWNWARDS = 1e-2, 1e-3
# The default number of steps, and of epochs where a batch size is given.
_STEPS, _EPOCHS = 1_000, 10
# Steps, in units of 1/8, that are charged for each update beyond the evaluation, and array elements charged for each
# parameter.
_UPDATE, _OF_PARAMETER = 72, 16


class Training(NamedTuple):
    """The options of a training: `batch` rows per step, for a number of `steps`, or of `epochs` (passes over all rows).
    None stands for the default. `seed` determines the order of the rows."""

    method: str
    steps: int | None = None
    lr: float | None = None
    momentum: float | None = None
    batch: int | None = None
    epochs: int | None = None
    schedule: str | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise UsageError for invalid options, and for options that the method does not have."""
        given = {name: getattr(self, name) for name in ("lr", "momentum", "batch", "epochs", "schedule")}
        asked = [name for name, value in given.items() if value is not None]
        if self.method not in STOCHASTIC and asked:
            raise UsageError(
                f"--{asked[0]} is for the methods {', '.join(STOCHASTIC)}", hint="add --method adam, or leave it out"
            )
        if self.schedule is not None:
            checked_arguments.one_of(self.schedule, [*SCHEDULES], "schedule")
        if self.steps is not None and self.epochs is not None:
            raise UsageError("--steps and --epochs contradict each other", hint="leave out one of them")
        for name in ("steps", "batch", "epochs"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise UsageError(f"--{name} is a whole number of 1 or more")
        if type(self.seed) is not int or self.seed < 0:
            raise UsageError("--seed is a whole number of 0 or more")
        if self.lr is not None and not 0 < checked_arguments.number(self.lr, "'lr'") < math.inf:
            raise UsageError("--lr is a number above 0")
        if self.momentum is not None and not 0 <= checked_arguments.number(self.momentum, "'momentum'") < 1:
            raise UsageError("--momentum is a number from 0 to below 1")

    def optimizer(self, parameters: Mapping[str, Tensor]) -> Optimizer:
        """The optimizer of the method with the given options."""
        options: dict[str, Any] = {} if self.lr is None else {"lr": self.lr}
        if self.momentum is not None:
            options |= {"betas": (self.momentum, 0.999)} if self.method == "adam" else {"momentum": self.momentum}
        return STOCHASTIC[self.method](parameters.values(), **options)


def train(posed: OptimizationProblem, training: Training, watch: ProgressCallback) -> NewtonEnd:
    """Take all steps. The result is the last point, or the start where that is no worse. `converged` says that the last
    point is better and its gradient small relative to that at the start. A value that is not finite ends the training.

    Raises UsageError for bounds and constraints, which first-order steps do not support, and for batches where there
    are no rows.
    """
    _check_suits(posed, training)
    batch = min(training.batch or posed.rows, posed.rows)
    each = -(-posed.rows // batch) if batch else 1
    epochs = training.epochs or (_EPOCHS if training.batch is not None else _STEPS)
    steps = training.steps or epochs * each
    last, taken, message = _stepped(posed, training, steps, batch if each > 1 else None, watch)
    return _judged(posed, last, steps, taken, message)


def _check_suits(posed: OptimizationProblem, training: Training) -> None:
    np = arrays.numpy_namespace()
    if len(posed.constraints) or np.isfinite(posed.low).any() or np.isfinite(posed.high).any():
        raise UsageError(f"the method {training.method} takes no bounds and no constraints", hint="--method auto does")
    if training.batch is not None and not posed.by_row:
        raise UsageError("there are no rows to take a batch of", hint="give a file of data, or constants with rows")


def _stepped(
    posed: OptimizationProblem, training: Training, steps: int, batch: int | None, watch: ProgressCallback
) -> tuple[Any, int, str]:
    """The point after all steps on batches (or on all rows where `batch` is None), the number of steps taken, and a
    message."""
    np, objective, packing = arrays.numpy_namespace(), posed.objective, posed.objective.packing
    parameters = {name: Tensor(arrays.asarray(v)).requires_grad_() for name, v in packing.named(posed.start).items()}
    optimizer = training.optimizer(parameters)
    rate, schedule = optimizer.param_groups[0]["lr"], SCHEDULES[training.schedule or "constant"]
    last, taken = posed.start, 0
    for taken, rows in zip(range(steps), _batches(posed, batch or posed.rows, training.seed)):
        limits.charge_steps(_UPDATE)
        limits.charge(_OF_PARAMETER * packing.size)
        optimizer.param_groups[0]["lr"] = rate * schedule(taken / steps)
        constants = {n: v[rows] if n in posed.by_row else v for n, v in objective.constants.items()} if batch else None
        value, gradient = objective.value_and_gradient(last, constants)
        watch(Iteration(taken, objective.sign * value, float(np.linalg.norm(gradient)), last))
        if not math.isfinite(value):
            return last, taken + 1, f"there is no number after {taken:,} steps: a smaller --lr may help"
        for name, part in packing.named(gradient).items():
            parameters[name].grad = Tensor(arrays.asarray(part))
        optimizer.step()
        last = packing.flat({name: arrays.to_numpy(p.inner) for name, p in parameters.items()})
    return last, taken + 1, f"{steps:,} steps"


def _judged(posed: OptimizationProblem, last: Any, steps: int, taken: int, message: str) -> NewtonEnd:
    """The result at the last point, or at the start where that is no worse."""
    np, objective = arrays.numpy_namespace(), posed.objective
    start_value, start_gradient = objective.value_and_gradient(posed.start)
    value, gradient = objective.value_and_gradient(last)
    left = float(np.linalg.norm(gradient)) / (float(np.linalg.norm(start_gradient)) or 1.0)
    if not math.isfinite(value):
        return NewtonEnd(posed.start, start_value, start_gradient, taken, False, message)
    if value > start_value:
        message = f"the objective is greater after {steps:,} steps: try another --lr"
        return NewtonEnd(posed.start, start_value, start_gradient, taken, False, message)
    if left > _FALLEN:
        message += (
            f", after which the gradient is still {left:.2g} of that at the start: more steps or another --lr may help"
        )
    return NewtonEnd(last, value, gradient, taken, left <= _FALLEN, message)


def of_training(found: NewtonEnd, verdict: Verdict) -> tuple[bool, str]:
    """Return whether a training ended near a minimum, and a message: steps may also lead to a saddle."""
    if verdict.kind in ("saddle", "kink"):
        return verdict.converged, verdict.message
    if found.converged and isinstance(verdict.hessian, arrays.numpy_namespace().ndarray):
        bends = dense_matrices.symmetric_eigenvalues(verdict.hessian)
        if bends[0] < -_DOWNWARDS * abs(bends[-1]):
            return False, f"{found.message}, which lead to a saddle: the objective bends downwards there"
    return found.converged, found.message


def _batches(posed: OptimizationProblem, batch: int, seed: int) -> Iterator[Any]:
    """Endlessly, the row indices of one batch after the other, in passes over all rows, each in another random
    order."""
    generator = arrays.numpy_namespace().random.default_rng(seed)
    while True:
        order: Any = generator.permutation(posed.rows) if batch < posed.rows else slice(None)
        for first in range(0, max(posed.rows, 1), max(batch, 1)):
            yield order[first : first + batch] if batch < posed.rows else order
