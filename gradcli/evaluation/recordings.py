"""Records a program with its derivatives, to be run on arrays of a library."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.evaluation.derivative_traces import (
    Outcome,
    Trace,
    value_and_gradients,
)
from gradcli.executors import schedule
from gradcli.executors.executor_choice import executable
from gradcli.named_tuples import NamedTuple
from gradcli.program.abstract import Abstract
from gradcli.program.ir import Atom, Executable, Variable
from gradcli.program.passes import optimise

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation


class Recording(NamedTuple):
    """A trace and its executable. The outputs with an index in `shared` may share memory with inputs, constants or each
    other."""

    trace: Trace
    run: Executable
    shared: Sequence[int] = ()

    def outcome(self, inputs: Sequence[Any]) -> Outcome | None:
        """Run the recording; None where its guards do not hold for `inputs`."""
        outputs = self.run(inputs)
        if outputs is None:
            return None
        return self.named(self._unshared(inputs, outputs) if self.shared else outputs)

    def named(self, outputs: Sequence[Any]) -> Outcome:
        """Return the outputs of a run by name."""

        trace = self.trace
        apart = _by_name(trace.deviations, outputs) if trace.deviations else {}
        return Outcome(outputs[0], _by_name(trace.positions, outputs), apart)

    def _unshared(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return outputs that share no memory with inputs, constants or each other."""
        others = [*inputs, *(a for a in self.trace.program.outputs if not isinstance(a, Variable))]
        own = [*outputs]
        for i in self.shared:
            own[i] = arrays.unshared(own[i], others)
            others.append(own[i])
        return own


def _by_name(places: Mapping[str, int | None], outputs: Sequence[Any]) -> dict[str, Any]:
    return {name: None if i is None else outputs[i] for name, i in places.items()}


def recording(
    program: Computation,
    inputs: Mapping[str, Any],
    wrt: Sequence[str],
    cotangent: Any = None,
    namespace: arrays.Namespace | None = None,
    **options: Any,
) -> Recording:
    """Record `program` for `inputs`, numbers or NumPy arrays, to be run on the arrays of `namespace`.

    The options and errors are those of `value_and_gradients`.
    """
    # Arrays that the program makes from numbers become NumPy constants of the recording.
    with arrays.using_namespace(None):
        trace = value_and_gradients(program, inputs, wrt, cotangent=cotangent, **options)
    return executable_recording(trace, namespace)


def executable_recording(trace: Trace, namespace: arrays.Namespace | None = None) -> Recording:
    """A trace with its executable, for the arrays of `namespace`."""
    # Results of constant folding are NumPy constants as well.
    with arrays.using_namespace(None):
        trace = trace._replace(program=optimise(trace.program))
    run = executable(trace.program, namespace)
    outputs = trace.program.outputs
    if namespace is not None:
        return Recording(trace, run, range(len(outputs)))
    own = schedule.unshared(trace.program)
    return Recording(trace, run, [i for i, atom in enumerate(outputs) if not _is_own(atom, own)])


def _is_own(output: Atom, own: Container[Variable]) -> bool:
    """Return whether an output of the NumPy executor is a number, or one of the arrays in `own`, which nothing else
    shares."""
    if isinstance(output, Variable):
        return output in own or (not output.shape and output.dtype == "float64")
    return type(output) is float


def abstract(array: Any) -> Abstract:
    """The shape and dtype of an array."""
    return Abstract(arrays.shape(array), arrays.dtype_name(array))
