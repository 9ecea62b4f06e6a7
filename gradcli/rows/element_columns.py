"""Tensor results in formats whose fields are single numbers: one column for each element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from gradcli import arrays
from gradcli.errors import GradcliError, ShapeError
from gradcli.rows.evaluation import EvaluatedRows
from gradcli.rows.formats.blocks import unmasked, without

# The formats without lists.
_FLAT = frozenset({"csv", "tsv"})
_SCALAR: tuple[int, ...] = ()
# Shapes of results by key.
Shapes = Mapping[str, tuple[int, ...]]


class ElementColumns:
    """The columns of results in a format; `results` maps keys to column names.

    In a format without lists, a tensor has one column for each element, `value_0` and so on, or `value_0_1` for a
    matrix. The shape is that of the first row with a result, and rows with another shape fail. Complex results have two
    columns, `value_re` and `value_im`; where those of the first rows are real, later complex ones fail.
    """

    def __init__(self, results: Mapping[str, str], format: str, shapes: Shapes | None = None) -> None:
        self._results = results
        self._flat = format in _FLAT
        self._shapes = None if shapes is None else dict(shapes)
        # The keys of complex results.
        self._complex: frozenset[str] = frozenset()

    def names(self, first: EvaluatedRows | None) -> list[str]:
        """The names of the columns, given the first results. Must be called once, before `columns`."""
        if self._shapes is None:
            self._shapes = shapes_of(first, self._results) if first is not None and self._flat else {}
        if first is not None:
            self._complex = frozenset(key for key in self._results if _is_complex(first.results[key]))
        return [name for key in self._results for name in self._spread(key)]

    def _spread(self, key: str) -> list[str]:
        if key not in self._complex:
            return self._elements(key)
        return [f"{name}_{part}" for name in self._elements(key) for part in ("re", "im")]

    def _elements(self, key: str) -> list[str]:
        name = self._results[key]
        return ["_".join((name, *map(str, index))) for index in product(*map(range, self._shape(key)))]

    def _shape(self, key: str) -> tuple[int, ...]:
        return (self._shapes or {}).get(key, _SCALAR)

    def columns(self, evaluated: EvaluatedRows) -> EvaluatedRows:
        """The results by column name."""
        evaluated = self._of_one_kind(evaluated)
        if not self._flat:
            results: dict[str, Any] = {}
            for key, found in evaluated.results.items():
                results.update(zip(self._spread(key), self._parts(key, found)))
            return evaluated._replace(results=results)
        failures: dict[int, GradcliError] = dict(evaluated.failures)
        null = evaluated.null
        columns: dict[str, Any] = {}
        for key, found in evaluated.results.items():
            shape = self._shape(key)
            if found.dtype == "object" or found.shape[1:] != shape:
                found, other = self._fitted(found, shape, null)
                failures = other | failures
            elements = [found] if not shape else found.reshape(len(found), -1).T
            columns.update(zip(self._spread(key), (part for each in elements for part in self._parts(key, each))))
        if len(failures) > len(evaluated.failures):
            null = null.copy()
            null[[*failures]] = True
        return evaluated._replace(results=columns, null=null, failures=failures)

    def _of_one_kind(self, evaluated: EvaluatedRows) -> EvaluatedRows:
        """The results, in which rows with complex results that are real in earlier rows fail."""
        np = arrays.numpy_namespace()
        wrong = [key for key, found in evaluated.results.items() if key not in self._complex and _is_complex(found)]
        if not wrong:
            return evaluated
        error = ShapeError("a result is complex, and in rows before it is real", hint="write x+0j for a real number x")
        failures = dict.fromkeys(np.flatnonzero(~evaluated.null).tolist(), error) | {**evaluated.failures}
        results = {**evaluated.results, **{key: np.full(len(evaluated.null), np.nan) for key in wrong}}
        return evaluated._replace(results=results, null=np.ones_like(evaluated.null), failures=failures)

    def _parts(self, key: str, found: Any) -> list[Any]:
        """The columns of a result: itself, or its real and imaginary part."""
        if key not in self._complex:
            return [found]
        np = arrays.numpy_namespace()
        if found.dtype != "object":
            return [found.real, found.imag]
        items, absent = unmasked(found)
        parts = []
        for part in (np.real, np.imag):
            column = np.empty(len(items), "object")
            for row, item in enumerate(items):
                column[row] = part(item)
            parts.append(column if absent is None else np.ma.masked_array(column, absent))
        return parts

    def _fitted(self, found: Any, shape: Sequence[int], null: Any) -> tuple[Any, dict[int, GradcliError]]:
        """An array in which each row has the given shape, and the errors of rows with another one."""
        np = arrays.numpy_namespace()
        dtype = "complex128" if _is_complex(found) else "float64"
        fitted = np.ma.masked_array(np.full((len(found), *shape), np.nan, dtype), False)
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


def _is_complex(found: Any) -> bool:
    """Return whether results are complex: an array, or one of arrays."""
    if found.dtype != "object":
        return bool(found.dtype.kind == "c")
    return any(getattr(item, "dtype", None) is not None and item.dtype.kind == "c" for item in unmasked(found)[0])


def shapes_of(evaluated: EvaluatedRows, keys: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The shape of the first existing result of each key."""
    return {key: _shape(evaluated, key) for key in keys}


def _shape(evaluated: EvaluatedRows, key: str) -> tuple[int, ...]:
    """The shape of the first existing result of a key."""
    np = arrays.numpy_namespace()
    found, missing = without(evaluated.results[key], evaluated.null)
    there = np.flatnonzero(~missing)
    return np.shape(found[there[0]]) if len(there) else _SCALAR
