"""Data sets: items by index, or items from an iterator."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

from gradcli.autograd.creation.random_tensors import randperm
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """The base class of data sets: a subclass defines `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """The base class of data sets without indices: a subclass defines `__iter__`."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tuples of the slices of tensors at one index of their first axes."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(tensor) != len(tensors[0]) for tensor in tensors):
            raise ArgumentError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """The items of several data sets at one index, as a tuple, or as a dict by names."""

    def __init__(self, *datasets: Any, **named: Any) -> None:
        if bool(datasets) == bool(named):
            raise ArgumentError("StackDataset takes data sets, or names of them, and not both")
        self.datasets: Any = named or datasets
        self._length = len(next(iter(named.values() if named else datasets)))
        if any(len(dataset) != self._length for dataset in (named.values() if named else datasets)):
            raise ArgumentError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """The concatenation of data sets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = [*datasets]
        if not self.datasets:
            raise ArgumentError("datasets should not be an empty iterable")
        self.cumulative_sizes = [*accumulate(map(len, self.datasets))]

    def __getitem__(self, index: int) -> Any:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError("absolute value of index should not exceed dataset length")
        number = bisect_right(self.cumulative_sizes, place)
        return self.datasets[number][place - (self.cumulative_sizes[number - 1] if number else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """The concatenation of iterable data sets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class Subset(Dataset[T]):
    """The items of a data set at some indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Split a data set randomly into subsets of given lengths, or of fractions with the sum 1; a remainder from
    rounding is distributed one by one. Raises ValueError if the lengths do not add up to that of the data set."""
    count = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= share <= 1 for share in lengths):
            raise ArgumentError("the shares of random_split are numbers between 0 and 1")
        sizes = [math.floor(count * share) for share in lengths]
        for number in range(count - sum(sizes)):
            sizes[number % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != count:
        raise ArgumentError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(count, generator=generator).tolist()
    return [Subset(dataset, order[end - size : end]) for end, size in zip(accumulate(sizes), sizes)]
