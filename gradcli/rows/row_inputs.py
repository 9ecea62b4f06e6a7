"""The inputs of many rows: columns with a value for each row, and values that all rows share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.evaluation import python_values


class SelectedRows:
    """Rows with the indices `numbers`, a range or an array.

    `columns` are arrays of shape `[n, …]`, which belong to the array library `namespace` (None: NumPy).
    """

    def __init__(
        self,
        numbers: Any,
        columns: Mapping[str, Any],
        shared: Mapping[str, Any],
        namespace: arrays.Namespace | None,
    ) -> None:
        self.numbers = numbers
        self.columns = columns
        self.shared = shared
        self.namespace = namespace

    @property
    def count(self) -> int:
        return len(self.numbers)

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """All inputs by name, columns with all their rows."""
        return {**self.shared, **self.columns}

    def row(self, place: int) -> dict[str, Any]:
        """The inputs of one row, as numbers and NumPy arrays."""
        return {**self._shared, **{n: arrays.tidy(arrays.to_numpy(c[place])) for n, c in self.columns.items()}}

    def chosen(self, rows: Any) -> SelectedRows:
        """The rows selected by a boolean array or a slice."""
        if isinstance(rows, slice):
            return self._of(self.numbers[rows], rows)
        # NumPy indexes faster by positions than by a mask, which it scans for every column.
        places = arrays.numpy_namespace().flatnonzero(rows)
        numbers = self.numbers.start + places if isinstance(self.numbers, range) else self.numbers[places]
        return self._of(numbers, places if self.namespace is None else self.namespace.asarray(places))

    def _of(self, numbers: Any, places: Any) -> SelectedRows:
        columns = {name: column[places] for name, column in self.columns.items()}
        return SelectedRows(numbers, columns, self.shared, self.namespace)

    @cached_property
    def _shared(self) -> Mapping[str, Any]:
        return {name: arrays.on_host(value) for name, value in self.shared.items()}

    @property
    def kind(self) -> Any:
        """A key that is equal for rows whose inputs have the same shapes and dtypes."""
        columns = tuple((name, arrays.shape(c)[1:], arrays.dtype_name(c)) for name, c in self.columns.items())
        return columns, tuple((name, arrays.shape(v), arrays.dtype_name(v)) for name, v in self.shared.items())


def counted(columns: Mapping[str, Any], rows: int | None) -> int:
    """Return the number of rows. Raises ShapeError where columns have different lengths, or nothing determines it."""
    if rows is None and not columns:
        raise ShapeError("no input has rows", hint="an input with one value for each row has them along its first axis")
    count = len(next(iter(columns.values()))) if rows is None else rows
    for name, column in columns.items():
        if len(column) != count:
            first = "there are" if rows is not None else f"'{next(iter(columns))}' has"
            raise ShapeError(f"'{name}' has {len(column):,} rows, and {first} {count:,}")
    return count


def uniform(
    columns: Mapping[str, Any], shared: Mapping[str, Any], count: int, namespace: arrays.Namespace | None
) -> Iterator[SelectedRows]:
    """Yield all rows in groups whose inputs have the same shapes; elements of object columns may differ in shape."""
    ragged = {
        name: [python_values.value(x) for x in c] for name, c in columns.items() if getattr(c.dtype, "kind", "") == "O"
    }
    plain = {name: python_values.value(c) for name, c in columns.items() if name not in ragged}
    if not ragged:
        yield SelectedRows(range(count), plain, shared, namespace)
        return
    np = arrays.numpy_namespace()
    groups: dict[Any, list[int]] = {}
    for row, items in enumerate(zip(*ragged.values())):
        groups.setdefault(tuple(map(arrays.shape, items)), []).append(row)
    for places in groups.values():
        stacked = {name: np.stack([items[row] for row in places]) for name, items in ragged.items()}
        yield SelectedRows(
            np.asarray(places), {**{n: c[places] for n, c in plain.items()}, **stacked}, shared, namespace
        )
