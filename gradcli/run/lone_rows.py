"""Rows that come one at a time, as they do where each of them is awaited: with what the one before was computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.run.row_paths import RowPath
from gradcli.run.row_results import RowResults


class LoneRows:
    """Computes rows of one kind, by a path that all of them take, the `inputs` being those of one: columns `[1, …]` of NumPy
    and what all rows share."""

    def __init__(self, path: RowPath, inputs: Mapping[str, Any]) -> None:
        self._kind = _kind(inputs)
        self._path = path

    def results(self, inputs: Mapping[str, Any]) -> RowResults | None:
        """Those of a row; None where it is of another kind, or fails."""
        outputs = self._path.of_one(inputs) if _kind(inputs) == self._kind else None
        if outputs is None:
            return None
        return RowResults(outputs[0], {k: None if i is None else outputs[i] for k, i in self._path.positions.items()})


def _kind(inputs: Mapping[str, Any]) -> Any:
    """Equal for rows whose inputs have the same types, shapes and dtypes."""
    return [(n, type(v), getattr(v, "shape", None), getattr(v, "dtype", None)) for n, v in inputs.items()]
