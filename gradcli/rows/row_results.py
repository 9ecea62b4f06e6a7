"""Assembles the results of groups of rows in the order of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gradcli import arrays
from gradcli.errors import GradcliError, LimitError
from gradcli.named_tuples import NamedTuple


class RowFailure:
    """A row, counted from 0, that has no value, and its error."""

    __slots__ = ("error", "index")

    def __init__(self, index: int, error: GradcliError) -> None:
        self.index = index
        self.error = error


class RowResults(NamedTuple):
    """The value of each of n rows, of shape `[n, …]`, and its derivatives by name, of shape `[n, …]` too.

    A derivative is None where no row depends on the input. `absent` marks, for derivatives that only some rows have,
    the rows without one, which are nan. Rows in `failures` are nan everywhere. Values of different shapes are held in
    an object array. `inaccurate` are the numbers of rows with results of few digits, where these are noted.
    """

    value: Any
    derivatives: Mapping[str, Any]
    failures: Sequence[RowFailure] = ()
    absent: Mapping[str, Any] = MappingProxyType({})
    inaccurate: Sequence[int] = ()

    def derivative(self, key: str) -> Any:
        """The derivative by a name or names, 0 in the rows without one; the number 0 where no row has one."""
        found = self.derivatives[key]
        if found is None:
            return 0.0
        return arrays.numpy_namespace().where(self.absent[key], 0.0, found) if key in self.absent else found


class RowCollector:
    """Collects the results of `count` rows as they arrive, as arrays of `namespace` (None: NumPy).

    At most `most_limited` rows may reach a limit.
    """

    def __init__(
        self, count: int, keys: Sequence[str], most_limited: int, namespace: arrays.Namespace | None = None
    ) -> None:
        self.count = count
        self.keys = keys
        self.most_limited = most_limited
        self.namespace = namespace
        self._parts: list[tuple[Any, Any, Mapping[str, Any]]] = []
        self.failures: list[RowFailure] = []
        # The number of failures due to a limit.
        self.limited = 0
        # The rows whose results have few digits.
        self.inaccurate: set[int] = set()

    def put(self, rows: Any, value: Any, derivatives: Mapping[str, Any]) -> None:
        """Add the results of some rows with the indices `rows`, a range or an array."""
        self._parts.append((rows, value, derivatives))

    def put_one(self, row: int, value: Any, derivatives: Mapping[str, Any]) -> None:
        """Add the results of one row."""
        np = arrays.numpy_namespace()
        found = {key: None if derivatives[key] is None else np.asarray(derivatives[key])[None] for key in self.keys}
        self.put([row], np.asarray(value)[None], found)

    def fail(self, row: int, error: GradcliError) -> None:
        # The frames of a traceback keep what was evaluated alive: megabytes for each row of a long loop.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.failures.append(RowFailure(row, error))
        self.limited += isinstance(error, LimitError)

    def has_too_many_limited(self) -> bool:
        """Return whether more rows have reached a limit than allowed."""
        return self.limited > self.most_limited

    def too_many_limited_error(self) -> LimitError:
        """The error of a row that is not evaluated for that reason."""
        return LimitError(
            f"it is not evaluated, as more than {self.most_limited:,} row{'' if self.most_limited == 1 else 's'} reached a limit",
            hint="raise the limit with --max-steps or --max-elements, or allow more rows with --max-errors",
        )

    def results(self) -> RowResults:
        failures = tuple(sorted(self.failures, key=lambda failure: failure.index))
        if len(self._parts) == 1 and len(self._parts[0][1]) == self.count:
            _, value, found = self._parts[0]
            whole = {key: None if found[key] is None else self._own(found[key]) for key in self.keys}
            return RowResults(self._own(value), whole, failures, inaccurate=sorted(self.inaccurate))
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
        return RowResults(value, derivatives, failures, absent, sorted(self.inaccurate))

    def _joined(self, parts: Sequence[tuple[Any, Any]]) -> Any:
        return self._own(_joined([(rows, arrays.to_numpy(part)) for rows, part in parts], self.count))

    def _own(self, array: Any) -> Any:
        return array if self.namespace is None else self.namespace.asarray(array)


def _joined(parts: Sequence[tuple[Any, Any]], count: int) -> Any:
    """Scatter the results of some rows; other rows are nan."""
    np = arrays.numpy_namespace()
    shapes = {found.shape[1:] for _, found in parts}
    if len(shapes) > 1:
        joined = np.full(count, np.nan, "object")
        for rows, found in parts:
            for row, item in zip(rows, found):
                joined[row] = item
        return joined
    dtype = np.result_type(*{found.dtype for _, found in parts}) if parts else "float64"
    joined = np.empty((count, *next(iter(shapes), ())), dtype)
    if sum(len(found) for _, found in parts) < count:
        joined.fill(np.nan)
    for rows, found in parts:
        joined[_places(rows)] = found
    return joined


def _places(rows: Any) -> Any:
    """An index for NumPy: ranges become slices, which cost no copy."""
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows
