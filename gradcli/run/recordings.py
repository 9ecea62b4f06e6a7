"""Programs of the language as recorded programs, for each shape and dtype of their inputs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import BackendError, GradcliError
from gradcli.executors import schedule
from gradcli.executors.choose import executable
from gradcli.program.abstract import Abstract
from gradcli.program.ir import Atom, Executable, Variable
from gradcli.program.passes import optimise
from gradcli.run.trace import (
    Outcome,
    Trace,
    value_and_derivatives,
    value_and_gradients,
    value_and_hessian,
    value_and_jacobians,
)

if TYPE_CHECKING:
    from gradcli.run.callables import Computation

# An input with more elements is recorded by its shape alone.
_LARGE = 2**18
# So many kinds of inputs are known at a time, and so many recordings of each, under different guards.
_MOST_KINDS = 32
_MOST_VERSIONS = 4


class Wanted(NamedTuple):
    """Which derivatives by the inputs `wrt`: `gradients`, `jacobians`, all `derivatives` up to `order`, or
    the second ones alone, as tensors (`hessian`) or coordinates (`sparse`)."""

    wrt: tuple[str, ...]
    kind: str = "gradients"
    order: int = 1


# The second derivatives are found by SciPy, on NumPy's arrays.
_ON_HOST_ALONE = frozenset({"hessian", "sparse"})


class Recording(NamedTuple):
    """A trace that can be run. The outputs that are `shared` may be arrays that something else is or looks at."""

    trace: Trace
    run: Executable
    shared: Sequence[int] = ()

    def outcome(self, inputs: Sequence[Any]) -> Outcome | None:
        """What it computes for `inputs`; None where its guards do not hold."""
        outputs = self.run(inputs)
        if outputs is None:
            return None
        return self.named(self._unshared(inputs, outputs) if self.shared else outputs)

    def named(self, outputs: Sequence[Any]) -> Outcome:
        """The outputs of a run by their names."""

        trace = self.trace
        apart = _by_name(trace.deviations, outputs) if trace.deviations else {}
        return Outcome(outputs[0], _by_name(trace.positions, outputs), apart)

    def _unshared(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Outputs that share no memory with anything."""
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
    """Record `program` for `inputs`, numbers or arrays of NumPy, to be run on the arrays of a namespace.

    The `options` and what is raised are those of `value_and_gradients`.
    """
    # What a program makes from numbers are constants of the recording.
    with arrays.using_namespace(None):
        trace = value_and_gradients(program, inputs, wrt, cotangent=cotangent, **options)
    return _executable(trace, namespace)


def _recording_of(
    program: Computation, inputs: Mapping[str, Any], wanted: Wanted, cotangent: Any, namespace: arrays.Namespace | None
) -> Replay:
    """Record `program` and the derivatives that are wanted for `inputs`."""
    if wanted.kind == "gradients":
        return recording(program, inputs, wanted.wrt, cotangent, namespace)
    if wanted.kind == "jacobians":
        return _executable(value_and_jacobians(program, inputs, wanted.wrt), namespace)
    if wanted.kind == "derivatives":
        return _executable(value_and_derivatives(program, inputs, wanted.wrt, wanted.order), namespace)
    # Most programs do without, and it takes milliseconds to load.
    from gradcli.run.hessians import coordinates_recording, hessian_recording

    if wanted.kind == "sparse":
        return coordinates_recording(program, inputs, wanted.wrt)
    return hessian_recording(program, inputs, wanted.wrt) or _executable(value_and_hessian(program, inputs, wanted.wrt))


def _executable(trace: Trace, namespace: arrays.Namespace | None = None) -> Recording:
    # And so is what is computed from constants.
    with arrays.using_namespace(None):
        trace = trace._replace(program=optimise(trace.program))
    run = executable(trace.program, namespace)
    outputs = trace.program.outputs
    if namespace is not None:
        return Recording(trace, run, range(len(outputs)))
    own = schedule.unshared(trace.program)
    return Recording(trace, run, [i for i, atom in enumerate(outputs) if not _is_own(atom, own)])


def _is_own(output: Atom, own: Container[Variable]) -> bool:
    """Whether an output of NumPy's executor is a number, or an array among its `own`."""
    if isinstance(output, Variable):
        return output in own or (not output.shape and output.dtype == "float64")
    return type(output) is float


def abstract(array: Any) -> Abstract:
    """An array's shape and dtype alone."""
    return Abstract(arrays.shape(array), arrays.dtype_name(array))


class Replay(Protocol):
    """Anything that may give an outcome for inputs."""

    def outcome(self, inputs: Sequence[Any]) -> Outcome | None: ...


class _Known:
    """The recordings for one kind of inputs; None where they cannot be recorded."""

    def __init__(self) -> None:
        self.versions: list[Replay] | None = []
        # In which tensors are made from numbers.
        self.dtype = arrays.default_dtype()

    def outcome(self, values: Sequence[Any]) -> Outcome | None:
        """From the recording whose guards hold; None where there is none."""
        versions = self.versions or []
        for number, version in enumerate(versions):
            outcome = version.outcome(values)
            if outcome is not None:
                if number:
                    # The next inputs are likely to meet the same guards.
                    self.versions = [version, *(v for v in versions if v is not version)]
                return outcome
        return None


class Recordings:
    """The recordings of a program, made when it is run again with inputs of a kind that it was run with before."""

    def __init__(self, program: Computation) -> None:
        self.program = program
        self._known: dict[Any, _Known] = {}
        self._seen: dict[Any, _Known] = {}

    def again(self, seen: Any, values: Mapping[str, Any]) -> Outcome | None:
        """The outcome for `values` that `run` had the like of before, under the same `seen`; None where it had none, or
        they take another course."""
        try:
            known = self._seen.get(seen)
        except TypeError:
            # No names: whoever reads them next says so.
            return None
        if known is None:
            return None
        try:
            with nullcontext() if known.dtype == arrays.default_dtype() else arrays.using_dtype(known.dtype):
                return known.outcome([*values.values()])
        except (GradcliError, MemoryError):
            return None

    def run(self, inputs: Mapping[str, Any], wanted: Wanted, cotangent: Any = None, seen: Any = None) -> Outcome | None:
        """The outcome for `inputs`, arrays by name; None where it must be computed eagerly. Where there is one, `again`
        knows such inputs as `seen`, if that is given."""
        namespace = arrays.foreign_namespace((*inputs.values(), cotangent))
        backend = backends.of_namespace(namespace)
        if backend is None or (namespace is not None and wanted.kind in _ON_HOST_ALONE):
            return None
        key = (namespace, wanted, *map(_kind, inputs.items()), _kind(("", cotangent)))
        known = self._known.get(key)
        largest = max(map(arrays.size, inputs.values()), default=1)
        if known is None:
            known = self._add(key)
            if wanted.kind != "gradients" or largest < backend.worth_on(namespace).first:
                return None
        if known.versions is None or largest < backend.worth_on(namespace).again:
            return None
        try:
            outcome = self._outcome(known, inputs, wanted, cotangent)
            if seen is not None and outcome is not None:
                self._seen[seen] = known
            return outcome
        except BackendError:
            # A compiler that fails once is not asked again.
            known.versions = None
            return None
        except (GradcliError, MemoryError):
            # Eager evaluation tells where in the program an error comes from.
            return None

    def _add(self, key: Any) -> _Known:
        if len(self._known) >= _MOST_KINDS:
            self._known.pop(next(iter(self._known)), None)
            self._seen.clear()
        return self._known.setdefault(key, _Known())

    def _outcome(self, known: _Known, inputs: Mapping[str, Any], wanted: Wanted, cotangent: Any) -> Outcome | None:
        values = [*inputs.values(), *([] if cotangent is None else [cotangent])]
        outcome = known.outcome(values)
        if outcome is not None:
            return outcome
        versions = known.versions
        if versions is None or len(versions) >= _MOST_VERSIONS:
            return None
        try:
            with limits.attempt():
                made = self._record(inputs, wanted, cotangent, by_shape=not versions)
        except GradcliError:
            known.versions = versions or None
            raise
        known.versions = [*versions, made]
        return made.outcome(values)

    def _record(self, inputs: Mapping[str, Any], wanted: Wanted, cotangent: Any, *, by_shape: bool) -> Replay:
        namespace = arrays.foreign_namespace((*inputs.values(), cotangent))
        large = any(arrays.size(a) > _LARGE for a in inputs.values())
        seen = abstract if by_shape and wanted.kind == "gradients" and large else arrays.on_host
        given = None if cotangent is None else seen(cotangent)
        return _recording_of(self.program, {n: seen(a) for n, a in inputs.items()}, wanted, given, namespace)


def _kind(item: tuple[str, Any]) -> Any:
    name, array = item
    if type(array) is float or array is None:
        return name, array is None
    return name, arrays.shape(array), arrays.dtype_name(array)


def seen_as(values: Mapping[str, Any], wrt: Sequence[str] | None) -> Any:
    """What inputs, some of them arrays, and the names to differentiate by are told from others by, without a look at what
    they are; None where that takes one."""
    if type(values) is not dict or not (wrt is None or type(wrt) is tuple or type(wrt) is list):
        return None
    try:
        kinds = [float if type(v) is float else (type(v), v.shape, v.dtype) for v in values.values()]
    except Exception:
        # An attribute may raise anything; what reads the value says so.
        return None
    return (*values, None if wrt is None else (*wrt,), *kinds)
