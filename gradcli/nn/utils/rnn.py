"""Sequences of different lengths in one tensor: padded to one length, or packed without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.sampled_data.sampling import padded
from gradcli.primitives.entries.shape import concat, stack


class PackedSequence(NamedTuple):
    """Sequences without padding: the elements of the first time step, followed by those of the second, and so on.

    The sequences are sorted by length, the longest one first, so that those that reach step t are the first
    `batch_sizes[t]`. `sorted_indices` are their numbers in the order given, and `unsorted_indices` leads back; both are
    None for sequences that were given in this order.
    """

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    @property
    def is_cuda(self) -> bool:
        """True if the data is on a GPU."""
        found: bool = self.data.is_cuda
        return found

    def to(self, *wanted: Any, **options: Any) -> Self:
        """Convert the data to another dtype or device; see `Tensor.to`."""
        return self._replace(data=self.data.to(*wanted, **options))

    def cpu(self) -> Self:
        """Move the data to the CPU."""
        return self.to("cpu")


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Stack sequences (L, …) to (L, N, …), or with `batch_first` (N, L, …), padded to the longest one on
    `padding_side`. Raises RuntimeError for an empty list."""
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"padding_side should be either 'right' or 'left' but got {padding_side}")
    if not sequences:
        raise EvaluationError("received an empty list of sequences")
    longest = max(len(sequence) for sequence in sequences)

    def filled(sequence: Tensor) -> Any:
        missing = longest - len(sequence)
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        return padded(sequence, [ends, *[(0, 0)] * (sequence.ndim - 1)], "constant", padding_value)

    return stack([filled(sequence) for sequence in sequences], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Sequence[int], batch_first: bool = False) -> list[Any]:
    """The sequences in a tensor that `pad_sequence` made, given their lengths."""
    rows: Any = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[number, : int(length)] for number, length in enumerate(lengths)]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences from a padded tensor (L, N, …), or with `batch_first` (N, L, …).

    Raises EvaluationError for lengths that are not in descending order, unless `enforce_sorted` is False, or that do
    not fit the tensor.
    """
    steps: Any = input.transpose(0, 1) if batch_first else input
    sizes = [int(length) for length in lengths]
    if len(sizes) != steps.shape[1]:
        raise EvaluationError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={steps.shape[1]})"
        )
    if not sizes or min(sizes) <= 0:
        raise EvaluationError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if max(sizes) > steps.shape[0]:
        raise EvaluationError(
            f"Expected a length of at most {steps.shape[0]}, the size of the tensor, but got {max(sizes)}"
        )
    order = unsorted = None
    if not enforce_sorted:
        numbers = sorted(range(len(sizes)), key=lambda number: -sizes[number])
        sizes = [sizes[number] for number in numbers]
        order, unsorted = tensor(numbers), tensor(sorted(range(len(numbers)), key=numbers.__getitem__))
        steps = steps.index_select(1, order)
    elif sizes != sorted(sizes, reverse=True):
        raise EvaluationError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
            "not need ONNX exportability."
        )
    counts = [sum(size > step for size in sizes) for step in range(sizes[0])]
    data = concat([steps[step, :count] for step, count in enumerate(counts)], 0)
    return PackedSequence(data, tensor(counts), order, unsorted)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L, …) of different lengths; see `pack_padded_sequence`."""
    lengths = [len(sequence) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """The padded tensor of packed sequences, up to `total_length`, and their lengths, in the order in which they were
    packed."""
    counts = [int(count) for count in sequence.batch_sizes]
    length = len(counts) if total_length is None else total_length
    if length < len(counts):
        raise ArgumentError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(counts)}"
        )
    rest = [(0, 0)] * (sequence.data.ndim - 1)
    rows = [
        padded(step, [(0, counts[0] - count), *rest], "constant", padding_value)
        for step, count in zip(sequence.data.split(counts, 0), counts)
    ]
    steps: Any = padded(stack(rows), [(0, length - len(counts)), (0, 0), *rest], "constant", padding_value)
    lengths = tensor([sum(count > number for count in counts) for number in range(counts[0])])
    if sequence.unsorted_indices is not None:
        steps, lengths = steps.index_select(1, sequence.unsorted_indices), lengths[sequence.unsorted_indices]
    return (steps.transpose(0, 1) if batch_first else steps), lengths


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences that were packed, in their order."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
