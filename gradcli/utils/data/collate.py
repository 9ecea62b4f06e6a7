"""Combines the items of a batch: numbers and tensors are stacked, containers are combined element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.factory import tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import CallError, EvaluationError
from gradcli.primitives.entries.shape import stack


def default_collate(batch: Sequence[Any]) -> Any:
    """The items of a batch combined into one. Raises TypeError for items other than numbers, tensors, arrays, strings
    and containers of these, and RuntimeError for sequences of different lengths."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if arrays.is_array(first):
        return tensor(batch) if type(first) in arrays.PYTHON_NUMBERS else stack([*map(tensor, batch)])
    if isinstance(first, Mapping):
        return {name: default_collate([item[name] for item in batch]) for name in first}
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise EvaluationError("each element in list of batch should be of equal size")
        parts = [default_collate(part) for part in zip(*batch)]
        if isinstance(first, tuple):
            return type(first)(*parts) if hasattr(first, "_fields") else parts
        return parts
    raise CallError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first).__name__}"
    )


def default_convert(data: Any) -> Any:
    """An item with its arrays converted to tensors."""
    if isinstance(data, Tensor) or type(data) in arrays.PYTHON_NUMBERS or isinstance(data, (str, bytes)):
        return data
    if arrays.is_array(data):
        return tensor(data)
    if isinstance(data, Mapping):
        return {name: default_convert(value) for name, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    return [*map(default_convert, data)] if isinstance(data, Sequence) else data
