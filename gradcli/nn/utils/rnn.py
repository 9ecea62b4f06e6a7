"""Packs sequences of different lengths into one padded tensor and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError
from gradcli.primitives.entries.sampling import padded
from gradcli.primitives.entries.shape import stack


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
