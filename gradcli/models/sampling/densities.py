"""The log density on the scale of the sampler, with its gradient: a recording of the program, in which data are
constants."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli import limits
from gradcli.compiled.compiling import compile
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.evaluation.derivative_traces import value_and_gradients
from gradcli.executors import cpu, llvm_ufuncs
from gradcli.language.names import scope
from gradcli.models.packing import Packing
from gradcli.models.sampling.unconstrained_parameters import BoundedTransform
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Program
from gradcli.program.passes import optimise

if TYPE_CHECKING:
    from gradcli.models.sampling.compiled_trajectories import CompiledDensity


class SampledDensity(NamedTuple):
    """The density that is sampled: a program in the names of `packing`, with `constants` for its other inputs, between
    `low` and `high` `[n]`, from `start` `[n]`, by trees of at most `depth`. Each transition may take the steps and
    array elements in `budget`."""

    text: str
    packing: Packing
    constants: Mapping[str, Any]
    low: Any
    high: Any
    start: Any
    depth: int
    budget: tuple[int, int]

    def transform(self) -> BoundedTransform:
        """The transform between the numbers that are drawn and those on the scale of the sampler."""
        return BoundedTransform(self.low, self.high)


# The value and the gradient `[n]` of a program at a vector; None where a recording does not hold.
_Run = Callable[[Any], tuple[float, Any] | None]


class LogDensity:
    """The logarithm of a density on the scale of the sampler and its gradient; minus infinity and zeros where there is
    none.

    After `renew` it gives the same bits for the same calls, whatever it was called with before.
    """

    def __init__(self, target: SampledDensity) -> None:
        self._target = target
        self.renew()
        self.packing, self._constants = target.packing, target.constants
        known = scope.free_names(self.program.program)
        self._names = [name for name in target.packing.shapes if name in known]
        self._transform = target.transform()
        self._recorded: _Run | None = None
        # The density as machine code, where it can be compiled.
        self.compiled: CompiledDensity | None = None
        self._record()

    def renew(self) -> None:
        """Forget recordings of the paths of earlier calls."""
        steps, most = self._target.budget
        self.program = compile(self._target.text, max_steps=steps, max_elements=most)

    def seconds(self) -> float:
        """The time of one evaluation."""
        point = self._transform.inverse(self._target.start)
        if self.compiled is not None:
            self.compiled.begin(point)
        run = (lambda: self(point)) if self.compiled is None else self.compiled.step
        # The first call compiles what later calls run.
        run()
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    def __call__(self, free: Any) -> tuple[float, Any]:
        x, slope, logarithm, bent = self._transform.forward(free)
        try:
            found = None if self._recorded is None else self._recorded(x)
            value, gradient = found or self._evaluated(x)
        except LimitError:
            raise
        except EvaluationError:
            return -math.inf, np.zeros(len(free))
        gradient = gradient * slope + bent
        value += logarithm
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return -math.inf, np.zeros(len(free))
        return value, gradient

    def _record(self) -> None:
        """Record the program at its start, unless its control flow depends on the numbers."""
        named = self.packing.named(self._target.start)
        try:
            with limits.within(*self._target.budget), limits.optional_budget():
                given = {name: named[name] for name in self._names}
                trace = value_and_gradients(self.program.program, given, self._names, fixed=self._constants)
                program = optimise(trace.program)
                run = cpu.executable(program, reproducible=True)
        except GradcliError:
            return
        places = [trace.positions[name] for name in self._names]

        def recorded(x: Any) -> tuple[float, Any] | None:
            named = self.packing.named(x)
            outputs = run([named[name] for name in self._names])
            return None if outputs is None else (float(outputs[0]), self._flat([p and outputs[p] for p in places]))

        self._recorded = recorded
        self.compiled = self._machine_code(program, places)

    def _machine_code(self, program: Program, places: Sequence[int | None]) -> CompiledDensity | None:
        if not llvm_ufuncs.is_available():
            return None
        from gradcli.models.sampling.compiled_trajectories import CompiledDensity
        from gradcli.models.sampling.density_code import UncompiledError

        slices = self.packing.places()
        outputs = [program.outputs[0], *(None if p is None else program.outputs[p] for p in places)]
        try:
            return CompiledDensity(
                program, [slices[n] for n in self._names], outputs, self._transform, self, self._target.depth
            )
        except UncompiledError:
            return None

    def _evaluated(self, x: Any) -> tuple[float, Any]:
        named = self.packing.named(x)
        values = {**{name: named[name] for name in self._names}, **self._constants}
        value, found = self.program.value_and_grad(values, self._names)
        return float(value), self._flat([found.get(name) for name in self._names])

    def _flat(self, gradients: Sequence[Any]) -> Any:
        return self.packing.flat({**dict.fromkeys(self.packing.shapes), **dict(zip(self._names, gradients))})
