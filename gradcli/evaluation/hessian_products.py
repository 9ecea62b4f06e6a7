"""Computes Hessian-vector products of a program at the cost of a few gradients, without a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.evaluation.derivative_traces import gradients_of_scalar
from gradcli.evaluation.detached_constants import separated
from gradcli.executors import stepwise
from gradcli.executors.executor_choice import executable
from gradcli.kinds.jets import Jet
from gradcli.program.ir import Executable
from gradcli.program.passes import optimise
from gradcli.program.record import record

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation

# Prefix of the input names of directions. The spaces keep them apart from the names of the language.
_DIRECTION = "direction of "


class HessianProducts:
    """Hessian-vector products of a scalar program: forward-over-reverse differentiation, recorded.

    The gradient is recorded as a program, and evaluated with Taylor series of order 1 along the direction, which is
    recorded too. The recording is made at the first call, and again where the program takes another execution path.
    """

    def __init__(self, program: Computation, wrt: Sequence[str]) -> None:
        self._program = program
        self._wrt = tuple(wrt)
        self._run: Executable | None = None
        self._places: Mapping[str, int | None] = {}

    def along(self, inputs: Mapping[str, Any], directions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the product by each of `wrt`; None where the gradient by it does not depend on them.

        `inputs` and `directions` are float64 numbers or arrays by name. Raises DifferentiationError for a non-scalar
        value, and NotRecordableError where control flow depends on the numbers in a way that no guard can express.
        """
        given = [*inputs.values(), *(directions[name] for name in self._wrt)]
        outputs = None if self._run is None else self._run(given)
        if outputs is None:
            self._record(inputs)
            assert self._run is not None
            outputs = self._run(given)
        assert outputs is not None
        return {name: None if i is None else outputs[i] for name, i in self._places.items()}

    def _record(self, inputs: Mapping[str, Any]) -> None:
        trace = gradients_of_scalar(self._program, inputs, self._wrt)
        present = {name: i for name, i in trace.positions.items() if i is not None}
        self._places = dict.fromkeys(self._wrt) | {name: place for place, name in enumerate(present)}
        outputs = tuple(trace.program.outputs[i] for i in present.values())
        apart = separated(trace.program._replace(outputs=outputs), trace.detached)
        gradient = optimise(apart.gradient)

        def run(**given: Any) -> list[Any]:
            series = {name: Jet([given[name], given[_DIRECTION + name]], 1) for name in self._wrt}
            known = {**apart.given(given), **series}
            outputs = stepwise.run(gradient, [known[v.name or ""] for v in gradient.inputs])
            assert outputs is not None
            return [_along(output) for output in outputs]

        ones = {_DIRECTION + name: arrays.ones_like(inputs[name]) for name in self._wrt}
        self._run = executable(optimise(record(run, {**inputs, **ones}).program))


def _along(output: Any) -> Any:
    found = output.coefficient(1) if isinstance(output, Jet) else None
    return arrays.zeros(arrays.shape(output), arrays.dtype_name(output)) if found is None else found
