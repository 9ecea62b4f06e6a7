"""Computes Hessians of programs, by a few directional derivatives where they are sparse, and their products with
vectors at the cost of a few gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.calculus.accuracy import digits_left
from gradcli.calculus.sparse import SparseHessian
from gradcli.errors import LimitError, NotRecordableError
from gradcli.evaluation.derivative_traces import Outcome, SplitGradient, gradients_of_scalar, separated
from gradcli.executors import stepwise
from gradcli.executors.executor_choice import executable
from gradcli.kinds.jets import Jet
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume
from gradcli.primitives.entries.comparisons import isfinite
from gradcli.program.ir import Executable, Program
from gradcli.program.passes import optimise, without_dead_code
from gradcli.program.record import record

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation


# With fewer variables, one direction for each costs no more than finding a compression.
_FEW = 16
# Prefix of the input names of directions. The spaces keep them apart from the names of the language.
_DIRECTION = "direction of "


class ProgramHessian(NamedTuple):
    """The method by which the second derivatives of a program are computed.

    `absent` are leaves that the value does not depend on; the derivatives by them are None.
    """

    sparse: SparseHessian
    absent: frozenset[str]
    apart: SplitGradient

    def named(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return `parts` by key, with None for derivatives by absent leaves."""
        return {key: None if key.split(",")[0] in self.absent else part for key, part in parts.items()}

    def coordinates(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the matrices with the given entries, as coordinates."""
        return self.named({key: block.coordinates(values[key]) for key, block in self.sparse.blocks.items()})

    def at(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the matrices at `inputs`, which must have the shapes and dtypes of the recording."""
        return self.coordinates(self.values(inputs))

    def values(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of the matrices."""
        return self.sparse.values(self.apart.given(inputs))

    def watched_at(self, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the matrices as `at` does, and how many digits are right of those that have lost half of them."""
        values, deviations = self.sparse.watched_values(self.apart.given(inputs))
        return self.coordinates(values), digits_left(values, deviations, leaves=inputs)


def program_hessian(
    program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str], **options: Any
) -> ProgramHessian:
    """Analyse how the second derivatives of `program` by `wrt` depend on `inputs`, arrays by name.

    `options` and errors are those of `gradients_of_scalar`; raises LimitError as well where the Hessian is not sparse.
    """
    # A rolled loop would connect all elements that its rounds read.
    few = sum(arrays.size(inputs[name]) for name in wrt) < _FEW
    trace = gradients_of_scalar(program, inputs, wrt, rolling="early" if few else "never", **options)
    found = {name: None if i is None else trace.program.outputs[i] for name, i in trace.positions.items()}
    gradient = tuple(arrays.zeros_like(inputs[name]) if atom is None else atom for name, atom in found.items())
    apart = separated(trace.program._replace(outputs=gradient), trace.detached)
    recorded = without_dead_code(optimise(apart.gradient))
    absent = frozenset(n for n, atom in found.items() if atom is None)
    return ProgramHessian(SparseHessian(recorded, wrt), absent, apart)


class HessianRecording:
    """A recorded program of second derivatives, as coordinates or (`whole`) as dense tensors."""

    def __init__(self, hessian: ProgramHessian, program: Program, whole: bool) -> None:
        self.hessian = hessian
        self.whole = whole
        self.run: Executable = executable(optimise(program))

    def outcome(self, inputs: Sequence[Any]) -> Outcome | None:
        """Return the second derivatives at `inputs`; None where the guards of the recording do not hold."""
        outputs = self.run(inputs)
        if outputs is None:
            return None
        own = {key: arrays.unshared(o, inputs) for key, o in zip(self.hessian.sparse.blocks, outputs)}
        return Outcome(None, self.hessian.named(own) if self.whole else self.hessian.coordinates(own))


def coordinates_recording(program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str]) -> HessianRecording:
    """Record the second derivatives as coordinates. Raises what `program_hessian` raises."""
    hessian = program_hessian(program, inputs, wrt)
    traced = record(lambda **given: [*hessian.values(given).values()], inputs)
    return HessianRecording(hessian, traced.program, whole=False)


def hessian_recording(program: Computation, inputs: Mapping[str, Any], wrt: Sequence[str]) -> HessianRecording | None:
    """Record the second derivatives as dense tensors; None where they are not sparse or not finite.

    A non-finite entry would affect all entries that share its direction.
    """
    if sum(arrays.size(inputs[name]) for name in wrt) < _FEW:
        return None
    try:
        hessian = program_hessian(program, inputs, wrt)
        sparse = hessian.sparse
        if sparse.colouring.number == sparse.variables:
            return None
        shapes = {name: arrays.shape(inputs[name]) for name in wrt}

        def run(**given: Any) -> list[Any]:
            values = hessian.values(given)
            if not all(assume(isfinite(v)) for v in values.values()):
                raise NotRecordableError("a second derivative is not finite")
            return [
                block.dense(values[key], [size for name in key.split(",") for size in shapes[name]])
                for key, block in sparse.blocks.items()
            ]

        return HessianRecording(hessian, record(run, inputs).program, whole=True)
    except (LimitError, NotRecordableError):
        return None


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
