"""Tensor results in formats whose fields are single numbers: one column for each element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from gradcli import arrays
from gradcli.errors import GradcliError, ShapeError
from gradcli.rows.evaluation import Evaluated
from gradcli.rows.masked_results import unmasked, without

# The formats without lists.
_FLAT = frozenset({"csv", "tsv"})
_SCALAR: tuple[int, ...] = ()
# Shapes of results by key.
Shapes = Mapping[str, tuple[int, ...]]


class ElementColumns:
    """The columns of results in a format; `results` maps keys to column names.

    In a format without lists, a tensor has one column for each element, `value_0` and so on, or `value_0_1` for a
    matrix. The shape is that of the first row with a result, and rows with another shape fail.
    """

    def __init__(self, results: Mapping[str, str], format: str, shapes: Shapes | None = None) -> None:
        self._results = results
        self._flat = format in _FLAT
        self._shapes = None if shapes is None else dict(shapes)

    def names(self, first: Evaluated | None) -> list[str]:
        """The names of the columns, given the first results. Must be called once, before `columns`."""
        if self._shapes is None:
            self._shapes = shapes_of(first, self._results) if first is not None and self._flat else {}
        return [name for key in self._results for name in self._spread(key)]

    def _spread(self, key: str) -> list[str]:
        name = self._results[key]
        return ["_".join((name, *map(str, index))) for index in product(*map(range, self._shape(key)))]

    def _shape(self, key: str) -> tuple[int, ...]:
        return (self._shapes or {}).get(key, _SCALAR)

    def columns(self, evaluated: Evaluated) -> Evaluated:
        """The results by column name."""
        if not self._flat:
            return evaluated._replace(results={self._results[key]: found for key, found in evaluated.results.items()})
        failures: dict[int, GradcliError] = dict(evaluated.failures)
        null = evaluated.null
        columns: dict[str, Any] = {}
        for key, found in evaluated.results.items():
            shape = self._shape(key)
            if found.dtype == "object" or found.shape[1:] != shape:
                found, other = self._fitted(found, shape, null)
                failures = other | failures
            if not shape:
                columns[self._results[key]] = found
            else:
                columns.update(zip(self._spread(key), found.reshape(len(found), -1).T))
        if len(failures) > len(evaluated.failures):
            null = null.copy()
            null[[*failures]] = True
        return evaluated._replace(results=columns, null=null, failures=failures)

    def _fitted(self, found: Any, shape: Sequence[int], null: Any) -> tuple[Any, dict[int, GradcliError]]:
        """An array in which each row has the given shape, and the errors of rows with another one."""
        np = arrays.numpy_namespace()
        fitted = np.ma.masked_array(np.full((len(found), *shape), np.nan), False)
        failures: dict[int, GradcliError] = {}
        items, absent = unmasked(found)
        for row, item in enumerate(items):
            if null[row]:
                continue
            if absent is not None and absent[row]:
                fitted[row] = np.ma.masked
            elif np.shape(item) == tuple(shape):
                fitted[row] = item
            else:
                failures[row] = ShapeError(
                    f"the result has shape {np.shape(item)}, and in rows before {tuple(shape)}",
                    hint="JSON lines, Parquet and Arrow hold lists of any length: --to jsonl",
                )
        return fitted, failures


def shapes_of(evaluated: Evaluated, keys: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The shape of the first existing result of each key."""
    return {key: _shape(evaluated, key) for key in keys}


def _shape(evaluated: Evaluated, key: str) -> tuple[int, ...]:
    """The shape of the first existing result of a key."""
    np = arrays.numpy_namespace()
    found, missing = without(evaluated.results[key], evaluated.null)
    there = np.flatnonzero(~missing)
    return np.shape(found[there[0]]) if len(there) else _SCALAR
