"""The log density on the scale of the sampler, with its gradient: a recording of the program, in which data are
constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli import limits
from gradcli.compiled.compiling import compile
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.evaluation.derivative_traces import value_and_gradients
from gradcli.executors import cpu
from gradcli.language.names import scope
from gradcli.models.packing import Packing
from gradcli.models.sampling.transforms import BoundedTransform
from gradcli.program.passes import optimise


class Target(NamedTuple):
    """What is sampled: a program in the names of `packing`, with `constants` for its other inputs, between `low` and
    `high` `[n]`, from `start` `[n]`. Each transition may take the steps and array elements in `budget`."""

    text: str
    packing: Packing
    constants: Mapping[str, Any]
    low: Any
    high: Any
    start: Any
    budget: tuple[int, int]

    def transform(self) -> BoundedTransform:
        """The transform between the numbers that are drawn and those on the scale of the sampler."""
        return BoundedTransform(self.low, self.high)


# The value and the gradient `[n]` of a program at a vector; None where a recording does not hold.
_Run = Callable[[Any], tuple[float, Any] | None]


class LogDensity:
    """The logarithm of a density on the scale of the sampler and its gradient; minus infinity and zeros where there is
    none.

    It gives the same bits for the same numbers whatever it was called with before, unless control flow depends on the
    numbers.
    """

    def __init__(self, target: Target) -> None:
        self.program = compile(target.text, max_steps=target.budget[0], max_elements=target.budget[1])
        self.packing, self._constants = target.packing, target.constants
        known = scope.free_names(self.program.program)
        self._names = [name for name in target.packing.shapes if name in known]
        self._transform = target.transform()
        self._recorded = self._recording(target)

    def __call__(self, free: Any) -> tuple[float, Any]:
        x, slope, logarithm, bent = self._transform.forward(free)
        try:
            value, found = (self._recorded and self._recorded(x)) or self._evaluated(x)
        except LimitError:
            raise
        except EvaluationError:
            return -math.inf, np.zeros(len(free))
        gradient = found * slope + bent
        value += logarithm
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return -math.inf, np.zeros(len(free))
        return value, gradient

    def _recording(self, target: Target) -> _Run | None:
        """The recording of the program at its start; None where its control flow depends on the numbers."""
        named = self.packing.named(target.start)
        try:
            with limits.within(*target.budget), limits.optional_budget():
                given = {name: named[name] for name in self._names}
                trace = value_and_gradients(self.program.program, given, self._names, fixed=self._constants)
                run = cpu.executable(optimise(trace.program), reproducible=True)
        except GradcliError:
            return None
        places = [trace.positions[name] for name in self._names]

        def recorded(x: Any) -> tuple[float, Any] | None:
            named = self.packing.named(x)
            outputs = run([named[name] for name in self._names])
            return None if outputs is None else (float(outputs[0]), self._flat([p and outputs[p] for p in places]))

        return recorded

    def _evaluated(self, x: Any) -> tuple[float, Any]:
        named = self.packing.named(x)
        values = {**{name: named[name] for name in self._names}, **self._constants}
        value, found = self.program.value_and_grad(values, self._names)
        return float(value), self._flat([found.get(name) for name in self._names])

    def _flat(self, gradients: Sequence[Any]) -> Any:
        return self.packing.flat({**dict.fromkeys(self.packing.shapes), **dict(zip(self._names, gradients))})
