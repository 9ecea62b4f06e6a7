"""Random number generators with PyTorch's interface; a default one, seeded at random, is used unless another is given.

The numbers for a seed are those of PyTorch on the CPU.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import NoneType
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.autograd.dtype_names import Device
from gradcli.autograd.modes import recording_program
from gradcli.errors import CallError, EvaluationError, NotBatchableError, NotRecordableError, expect
from gradcli.kinds.batch import batched
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.axes import integer, one_float

if TYPE_CHECKING:
    from gradcli.arrays.random_streams import RandomStream

_SEEDS = range(-(2**63), 2**64)
_INT64 = range(-(2**63), 2**63)

_IN_ERROR_MODE = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
RANDOMNESS = ("error", "different", "same")


class Batch(NamedTuple):
    """A batch that a function is mapped over, and how random numbers in it are handled.

    `randomness` says whether they are an error, different or the same in all rows.
    """

    nesting: int
    rows: int
    randomness: str


batches: ContextVar[tuple[Batch, ...]] = ContextVar("gradcli_draws_in_batches", default=())


class Generator:
    """A random number generator. Its initial seed is PyTorch's, 67280421310721."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device(device)
        self._seed = 67280421310721
        self._stream: RandomStream | None = None

    def manual_seed(self, seed: Any) -> Generator:
        """Set the seed, an integer of 64 bits; returns the generator."""
        number = integer(seed, "a seed")
        if number not in _SEEDS:
            raise CallError("Overflow when unpacking long: a seed is a whole number of 64 bits")
        self._seed, self._stream = number % 2**64, None
        return self

    def initial_seed(self) -> int:
        """The current seed."""
        return self._seed

    def seed(self) -> int:
        """Set a random seed, and return it."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def get_state(self) -> Any:
        """The state of the generator, for `set_state`."""
        return self._seed, self.stream().state

    def set_state(self, new_state: Any) -> Generator:
        """Restore a state that `get_state` returned; returns the generator."""
        seed, state = new_state
        self.manual_seed(seed).stream().state = state
        return self

    def stream(self) -> RandomStream:
        """The underlying stream, which draws NumPy arrays."""
        if self._stream is None:
            # Imported here, because it loads NumPy.
            from gradcli.arrays.random_streams import RandomStream

            self._stream = RandomStream(self._seed)
        return self._stream


default_generator = Generator()
default_generator.seed()


def drawn(shape: Shape, draw: Callable[[RandomStream, int], Any], generator: Any = None) -> Any:
    """An array of random numbers of a shape, where `draw` takes a stream and a count.

    It is batched if the rows of an enclosing batch get different numbers.

    Raises NotBatchableError in a batch with randomness "error".
    """
    expect(generator, (Generator, NoneType), "a generator is a Generator")
    if recording_program():
        raise NotRecordableError("random numbers are others each time, and a recording would draw them once")
    inside = batches.get()
    if any(batch.randomness == "error" for batch in inside):
        raise NotBatchableError(_IN_ERROR_MODE)
    own = [batch for batch in inside if batch.randomness == "different"]
    sizes = (*(batch.rows for batch in own), *shape)
    limits.charge(math.prod(sizes))
    numbers = draw((generator or default_generator).stream(), math.prod(sizes)).reshape(sizes)
    array = arrays.in_default_namespace(arrays.tidy(numbers))
    for batch in own:
        array = batched(array, batch.nesting)
    return array


def uniform(shape: Shape, dtype: str, low: Any = 0.0, high: Any = 1.0, generator: Any = None) -> Any:
    """Uniform numbers in [low, high)."""
    first, last = one_float(low, "a bound"), one_float(high, "a bound")
    return drawn(shape, lambda stream, count: first + (last - first) * stream.uniform(count, dtype), generator)


def normal(shape: Shape, dtype: str, mean: Any = 0.0, deviation: Any = 1.0, generator: Any = None) -> Any:
    """Normal numbers of a mean and a standard deviation."""
    center, scale = one_float(mean, "a mean"), one_float(deviation, "a standard deviation")
    if not scale >= 0:
        raise EvaluationError(f"normal expects std >= 0.0, but found std {scale}")
    return drawn(shape, lambda stream, count: stream.normal(count, dtype, center, scale), generator)


def exponential(shape: Shape, dtype: str, rate: Any = 1.0, generator: Any = None) -> Any:
    """Exponential numbers of a rate."""
    by = one_float(rate, "a rate")
    if not by > 0:
        raise EvaluationError(f"exponential_ expects lambda > 0.0, but found lambda={by}")
    return drawn(shape, lambda stream, count: stream.exponential(count, dtype) / by, generator)


def integers(shape: Shape, low: Any, high: Any, generator: Any = None) -> Any:
    """Integers in [low, high)."""
    first, last = integer(low, "a bound"), integer(high, "a bound")
    if first >= last:
        raise EvaluationError(f"random_ expects 'from' to be less than 'to', but got from={first} >= to={last}")
    if not (first in _INT64 and last - 1 in _INT64):
        raise EvaluationError("whole numbers are drawn within those of 64 bits")
    return drawn(shape, lambda stream, count: stream.integers(first, last, count), generator)


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator, and return it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator at random; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Restore a state of the default generator that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = (), enabled: bool = True) -> Iterator[None]:
    """At the end of the block the default generator is restored to its state at the beginning, if `enabled`."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
