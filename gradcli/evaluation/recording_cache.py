"""Keeps recordings of a program, one for each combination of shapes and dtypes of its inputs, for further calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gradcli import arrays, limits
from gradcli.arrays import backends
from gradcli.errors import BackendError, GradcliError
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation
    from gradcli.evaluation.derivative_traces import Outcome

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(dict[Key, Value]):
    """A dictionary to which items are added by assignment, at most `size`: a further one replaces the oldest.

    Items that are removed on use and added again are replaced in the order of their last use.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __setitem__(self, key: Key, value: Value) -> None:
        if key not in self and len(self) >= self._size:
            # Another thread may have removed the same item.
            self.pop(next(iter(self)), None)
        super().__setitem__(key, value)


# Number of elements of an input beyond which a program is recorded with the shapes and dtypes of its inputs, without
# their values.
_LARGE = 2**18
# Bounds on the number of kinds of inputs that are kept, and of recordings for each, under different guards.
_MOST_KINDS = 32
_MOST_VERSIONS = 4


class WantedDerivatives(NamedTuple):
    """The derivatives by the inputs `wrt` that are computed.

    `kind` is `gradients`, `jacobians`, `derivatives` (all up to `order`), or the second derivatives alone, as tensors
    (`hessian`) or as coordinates (`sparse`).
    """

    wrt: tuple[str, ...]
    kind: str = "gradients"
    order: int = 1


# Second derivatives use SciPy, which needs NumPy arrays.
_ON_HOST_ALONE = frozenset({"hessian", "sparse"})


class Replay(Protocol):
    """A recording that may give an outcome for inputs."""

    def outcome(self, inputs: Sequence[Any]) -> Outcome | None: ...


class _Versions:
    """The recordings for one kind of inputs; `versions` is None where they cannot be recorded."""

    def __init__(self) -> None:
        self.versions: list[Replay] | None = []
        # The dtype of tensors that are made from numbers.
        self.dtype = arrays.default_dtype()

    def outcome(self, values: Sequence[Any]) -> Outcome | None:
        """Return the outcome of the first recording whose guards hold; None where there is none."""
        versions = self.versions or []
        for number, version in enumerate(versions):
            outcome = version.outcome(values)
            if outcome is not None:
                if number:
                    # Move it to the front: the next inputs are likely to meet the same guards.
                    self.versions = [version, *(v for v in versions if v is not version)]
                return outcome
        return None


class Recordings:
    """The recordings of a program.

    A program is recorded at the second run with inputs of one kind, or at the first for large inputs.
    """

    def __init__(self, program: Computation) -> None:
        self.program = program
        # By the shapes and dtypes of the inputs as arrays, and by the keys of inputs that are not converted yet.
        self._known: BoundedCache[Any, _Versions] = BoundedCache(_MOST_KINDS)
        self._seen: BoundedCache[Any, _Versions] = BoundedCache(_MOST_KINDS)

    def replay(self, seen: Any, values: Mapping[str, Any]) -> Outcome | None:
        """Return the outcome for `values` whose kind, under the key `seen`, had an outcome in `run`.

        None for an unknown kind, and for values that take another execution path.
        """
        try:
            known = self._seen.get(seen)
        except TypeError:
            # The key is unhashable because of an invalid name; a later step raises the error.
            return None
        if known is None:
            return None
        try:
            if known.dtype == arrays.default_dtype():
                return known.outcome([*values.values()])
            with arrays.using_dtype(known.dtype):
                return known.outcome([*values.values()])
        except (GradcliError, MemoryError):
            return None

    def run(
        self, inputs: Mapping[str, Any], wanted: WantedDerivatives, cotangent: Any = None, seen: Any = None
    ) -> Outcome | None:
        """Return the outcome for `inputs`, arrays by name; None where it must be computed eagerly.

        Where there is an outcome, `replay` accepts further inputs under the key `seen`, if that is given.
        """
        namespace = arrays.foreign_namespace((*inputs.values(), cotangent))
        backend = backends.of_namespace(namespace)
        if backend is None or (namespace is not None and wanted.kind in _ON_HOST_ALONE):
            return None
        key = (namespace, wanted, *map(_kind, inputs.items()), _kind(("", cotangent)))
        known = self._known.get(key)
        largest = max(map(arrays.size, inputs.values()), default=1)
        if known is None:
            known = self._known[key] = _Versions()
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
            # A failed compiler is not tried again.
            known.versions = None
            return None
        except (GradcliError, MemoryError):
            # Eager evaluation raises the error with its position.
            return None

    def _outcome(
        self, known: _Versions, inputs: Mapping[str, Any], wanted: WantedDerivatives, cotangent: Any
    ) -> Outcome | None:
        values = [*inputs.values(), *([] if cotangent is None else [cotangent])]
        outcome = known.outcome(values)
        if outcome is not None:
            return outcome
        versions = known.versions
        if versions is None or len(versions) >= _MOST_VERSIONS:
            return None
        try:
            with limits.optional_budget():
                made = self._record(inputs, wanted, cotangent, by_shape=not versions)
        except GradcliError:
            known.versions = versions or None
            raise
        known.versions = [*versions, made]
        return made.outcome(values)

    def _record(
        self, inputs: Mapping[str, Any], wanted: WantedDerivatives, cotangent: Any, *, by_shape: bool
    ) -> Replay:
        # Loaded on demand: a program that is run once is not recorded.
        from gradcli.evaluation.recordings import abstract

        namespace = arrays.foreign_namespace((*inputs.values(), cotangent))
        large = any(arrays.size(a) > _LARGE for a in inputs.values())
        seen = abstract if by_shape and wanted.kind == "gradients" and large else arrays.on_host
        given = None if cotangent is None else seen(cotangent)
        return _recording_of(self.program, {n: seen(a) for n, a in inputs.items()}, wanted, given, namespace)


def _recording_of(
    program: Computation,
    inputs: Mapping[str, Any],
    wanted: WantedDerivatives,
    cotangent: Any,
    namespace: arrays.Namespace | None,
) -> Replay:
    """Record `program` and the wanted derivatives for `inputs`."""
    from gradcli.evaluation.derivative_traces import value_and_derivatives, value_and_hessian, value_and_jacobians
    from gradcli.evaluation.recordings import executable_recording, recording

    if wanted.kind == "gradients":
        return recording(program, inputs, wanted.wrt, cotangent, namespace)
    if wanted.kind == "jacobians":
        return executable_recording(value_and_jacobians(program, inputs, wanted.wrt), namespace)
    if wanted.kind == "derivatives":
        return executable_recording(value_and_derivatives(program, inputs, wanted.wrt, wanted.order), namespace)
    # Loaded on demand: it takes milliseconds, and most programs have no Hessians.
    from gradcli.evaluation.hessians import coordinates_recording, hessian_recording

    if wanted.kind == "sparse":
        return coordinates_recording(program, inputs, wanted.wrt)
    return hessian_recording(program, inputs, wanted.wrt) or executable_recording(
        value_and_hessian(program, inputs, wanted.wrt)
    )


def _kind(item: tuple[str, Any]) -> Any:
    name, array = item
    if type(array) is float or array is None:
        return name, array is None
    return name, arrays.shape(array), arrays.dtype_name(array)


def input_key(values: Mapping[str, Any], wrt: Sequence[str] | None) -> Any:
    """A key for inputs of one kind and the names to differentiate by, made without converting the values.

    None where the kind cannot be determined without conversion.
    """
    if type(values) is not dict or not (wrt is None or type(wrt) is tuple or type(wrt) is list):
        return None
    try:
        kinds = [float if type(v) is float else (type(v), v.shape, v.dtype) for v in values.values()]
    except Exception:
        # Any exception may come from an attribute; converting the value raises the proper error.
        return None
    return (*values, None if wrt is None else (*wrt,), *kinds)
