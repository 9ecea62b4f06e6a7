"""Samplers: the order in which the indices of a data set are taken, and in which batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from gradcli.autograd import generators
from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.creation.random_tensors import randint, randperm
from gradcli.autograd.generators import Generator
from gradcli.autograd.operations.sampling_functions import multinomial
from gradcli.errors import ArgumentError

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """The base class of samplers: a subclass defines `__iter__`, and usually `__len__`."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class SequentialSampler(Sampler[int]):
    """The indices of a data set in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """`num_samples` indices of a data set in random order, or drawn independently with `replacement`."""

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._count = num_samples
        if self.num_samples <= 0:
            raise ArgumentError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._count is None else self._count

    def __iter__(self) -> Iterator[int]:
        size, generator = len(self.data_source), self.generator
        if generator is None:
            # The seed is drawn as in PyTorch, so that manual_seed gives the same order.
            generator = Generator().manual_seed(int(generators.integers((), 0, 2**63)))
        if self.replacement:
            yield from randint(size, (self.num_samples,), generator=generator).tolist()
            return
        left = self.num_samples
        while left > 0:
            yield from randperm(size, generator=generator).tolist()[:left]
            left -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to their weights."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if num_samples <= 0:
            raise ArgumentError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        self.weights, self.num_samples = tensor(weights, dtype="float64"), num_samples
        self.replacement, self.generator = replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`; a shorter last one is omitted with `drop_last`."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ArgumentError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        for batch in in_batches(self.sampler, self.batch_size):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def in_batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Consecutive lists of `size` items; the last one may be shorter."""
    left = iter(items)
    while batch := [*islice(left, size)]:
        yield batch
