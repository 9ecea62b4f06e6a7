"""Iterates over the items of a data set in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd import generators
from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, CallError, EvaluationError, expect_callable
from gradcli.primitives.entries.shape import stack
from gradcli.utils.data.dataset import IterableDataset
from gradcli.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler, in_batches


class DataLoader:
    """Iterates over a data set in batches that `collate_fn` combines: in order, in random order with `shuffle`, or in
    the order of a `sampler`; with batch_size=None item by item.

    Everything runs in the calling thread: `num_workers` and similar options, which do not affect the result, are
    ignored.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ArgumentError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
            )
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError("DataLoader with IterableDataset: expected neither shuffle, sampler nor batch_sampler")
        if sampler is not None and shuffle:
            raise ArgumentError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ArgumentError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ArgumentError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if not self._is_iterable and sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.pin_memory, self.generator = num_workers, pin_memory, generator
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        if batch_size is not None and sampler is not None:
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        one_by_one = batch_size is None and batch_sampler is None
        self.collate_fn = (default_convert if one_by_one else default_collate) if collate_fn is None else collate_fn
        expect_callable(self.collate_fn, "collate_fn is a function of a list of items")

    def __iter__(self) -> Iterator[Any]:
        # PyTorch draws a seed for its workers here; drawing it too keeps later random numbers the same.
        generators.integers((), 0, 2**63, self.generator)
        if self._is_iterable:
            return self._of_stream()
        if self.batch_sampler is not None:
            return (self.collate_fn(self._items(numbers)) for numbers in self.batch_sampler)
        return (self.collate_fn(self.dataset[number]) for number in self.sampler)

    def _of_stream(self) -> Iterator[Any]:
        if self.batch_size is None:
            yield from map(self.collate_fn, self.dataset)
            return
        for items in in_batches(self.dataset, self.batch_size):
            if len(items) == self.batch_size or not self.drop_last:
                yield self.collate_fn(items)

    def _items(self, numbers: Iterable[Any]) -> list[Any]:
        return [self.dataset[number] for number in numbers]

    def __len__(self) -> int:
        if self._is_iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


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
