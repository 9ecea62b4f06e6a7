"""What the rows of a table give: put together from groups of rows, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import GradcliError, LimitError


class RowFailure:
    """A row, counted from 0, that has no value, and why."""

    __slots__ = ("error", "index")

    def __init__(self, index: int, error: GradcliError) -> None:
        self.index = index
        self.error = error


class RowResults(NamedTuple):
    """The value of each of n rows, `[n, …]`, and its derivatives by what they are called, `[n, …]` too.

    A derivative is None where no row depends on the input. `absent` says, for those derivatives that some rows have and
    others do not, which do not: they are nan there. Rows of `failures` are nan everywhere. Where values have other
    shapes in other rows, an array of objects holds them.
    """

    value: Any
    derivatives: Mapping[str, Any]
    failures: Sequence[RowFailure] = ()
    absent: Mapping[str, Any] = MappingProxyType({})


class Gathered:
    """The results of `count` rows, as they come; arrays of NumPy unless a `namespace` is given. No more than `most_limited`
    of them are to reach a limit."""

    def __init__(
        self, count: int, keys: Sequence[str], most_limited: int, namespace: arrays.Namespace | None = None
    ) -> None:
        self.count = count
        self.keys = keys
        self.most_limited = most_limited
        self.namespace = namespace
        self._parts: list[tuple[Any, Any, Mapping[str, Any]]] = []
        self.failures: list[RowFailure] = []
        # How many of them failed by a limit.
        self.limited = 0

    def put(self, rows: Any, value: Any, derivatives: Mapping[str, Any]) -> None:
        """The results of some rows, whose numbers `rows` are, a range or an array."""
        self._parts.append((rows, value, derivatives))

    def put_one(self, row: int, value: Any, derivatives: Mapping[str, Any]) -> None:
        """The results of one row."""
        np = arrays.numpy_namespace()
        found = {key: None if derivatives[key] is None else np.asarray(derivatives[key])[None] for key in self.keys}
        self.put([row], np.asarray(value)[None], found)

    def fail(self, row: int, error: GradcliError) -> None:
        # The frames of its traceback hold what was evaluated: megabytes for each row of a long loop.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.failures.append(RowFailure(row, error))
        self.limited += isinstance(error, LimitError)

    def is_hopeless(self) -> bool:
        """Whether more rows have reached a limit than may."""
        return self.limited > self.most_limited

    def hopeless(self) -> LimitError:
        """The error of a row that is not evaluated then."""
        return LimitError(
            f"it is not evaluated, as more than {self.most_limited:,} row{'' if self.most_limited == 1 else 's'} reached a limit",
            hint="raise the limit with --max-steps or --max-elements, or allow more rows with --max-errors",
        )

    def results(self) -> RowResults:
        failures = tuple(sorted(self.failures, key=lambda failure: failure.index))
        if len(self._parts) == 1 and len(self._parts[0][1]) == self.count:
            _, value, found = self._parts[0]
            whole = {key: None if found[key] is None else self._own(found[key]) for key in self.keys}
            return RowResults(self._own(value), whole, failures)
        value = self._joined([(rows, value) for rows, value, _ in self._parts])
        derivatives: dict[str, Any] = {}
        absent: dict[str, Any] = {}
        for key in self.keys:
            there = [(rows, found[key]) for rows, _, found in self._parts if found[key] is not None]
            derivatives[key] = None if self._parts and not there else self._joined(there)
            if there and len(there) < len(self._parts):
                absent[key] = arrays.numpy_namespace().zeros(self.count, "bool")
                for rows, _, found in self._parts:
                    absent[key][_places(rows)] = found[key] is None
        return RowResults(value, derivatives, failures, absent)

    def _joined(self, parts: Sequence[tuple[Any, Any]]) -> Any:
        return self._own(_joined([(rows, arrays.to_numpy(part)) for rows, part in parts], self.count))

    def _own(self, array: Any) -> Any:
        return array if self.namespace is None else self.namespace.asarray(array)


def _joined(parts: Sequence[tuple[Any, Any]], count: int) -> Any:
    """The results of some rows where they stand, and nan elsewhere."""
    np = arrays.numpy_namespace()
    shapes = {found.shape[1:] for _, found in parts}
    if len(shapes) > 1:
        joined = np.full(count, np.nan, "object")
        for rows, found in parts:
            for row, item in zip(rows, found):
                joined[row] = item
        return joined
    dtype = parts[0][1].dtype if parts else "float64"
    joined = np.empty((count, *next(iter(shapes), ())), dtype)
    if sum(len(found) for _, found in parts) < count:
        joined.fill(np.nan)
    for rows, found in parts:
        joined[_places(rows)] = found
    return joined


def _places(rows: Any) -> Any:
    """Rows as NumPy takes them for an index at no cost."""
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows
