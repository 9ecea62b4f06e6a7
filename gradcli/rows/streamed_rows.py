"""Computes rows that arrive one at a time, with the execution path of the row before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.rows.row_paths import RowPath
from gradcli.rows.row_results import RowResults


class LoneRows:
    """Computes single rows by an execution path that all rows take.

    `inputs` are those of an example row: NumPy columns of shape `[1, …]` and shared inputs.
    """

    def __init__(self, path: RowPath, inputs: Mapping[str, Any]) -> None:
        self._kind = _kind(inputs)
        self._path = path

    def results(self, inputs: Mapping[str, Any]) -> RowResults | None:
        """Return the results of a row; None where its inputs have other types, shapes or dtypes, or its evaluation
        fails."""
        outputs = self._path.of_one(inputs) if _kind(inputs) == self._kind else None
        if outputs is None:
            return None
        return RowResults(outputs[0], {k: None if i is None else outputs[i] for k, i in self._path.positions.items()})


def _kind(inputs: Mapping[str, Any]) -> Any:
    """A key that is equal for rows whose inputs have the same types, shapes and dtypes."""
    return [(n, type(v), getattr(v, "shape", None), getattr(v, "dtype", None)) for n, v in inputs.items()]
