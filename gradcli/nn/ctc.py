"""The loss of connectionist temporal classification.

A. Graves, S. Fernández, F. Gomez and J. Schmidhuber, "Connectionist Temporal Classification: Labelling Unsegmented Sequence
Data with Recurrent Neural Networks" (ICML 2006).
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError
from gradcli.nn.module import Module
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.sampled_data.sampling import padded
from gradcli.primitives.entries.shape import stack
from gradcli.primitives.entries.statistics import logsumexp

# The logarithm of the probability of what is impossible: finite, so that differences of two are not nan.
_IMPOSSIBLE = -1e30


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """The negative logarithm of the probability that sequences of classes, with repetitions and blanks removed, are the
    targets.

    `log_probs` (T, N, C), or (T, C) for one sequence, are logarithms of probabilities; `targets` (N, S), or one after
    another in a vector. "mean" divides each loss by the length of its target. A target that does not fit into its
    sequence has an infinite loss, or with `zero_infinity` 0.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"{reduction} is not a valid value for reduction")
    single = log_probs.ndim == 2
    steps: Any = log_probs.unsqueeze(1) if single else log_probs
    times, sizes = _numbers(input_lengths), _numbers(target_lengths)
    labels = _labels(targets, sizes, steps.shape, times, blank)
    losses = stack([_loss(steps[:time, n], row, blank) for n, (time, row) in enumerate(zip(times, labels))])
    impossible = losses.detach() > -_IMPOSSIBLE / 2
    losses = where(impossible, 0.0 if zero_infinity else float("inf"), losses)
    if reduction == "none":
        return losses[0] if single else losses
    if reduction == "sum":
        return losses.sum()
    return (losses / losses.new_tensor([float(max(size, 1)) for size in sizes])).mean()


def _numbers(lengths: Any) -> list[int]:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [int(length) for length in (values if isinstance(values, (list, tuple)) else [values])]


def _labels(targets: Any, sizes: list[int], shape: Any, times: list[int], blank: int) -> list[list[int]]:
    """The target of each sequence. Raises EvaluationError where lengths or labels do not fit."""
    length, count, classes = shape
    if len(sizes) != count or len(times) != count:
        raise EvaluationError(
            f"ctc_loss takes {count} lengths of inputs and of targets, not {len(times)} and {len(sizes)}"
        )
    if max(times) > length:
        raise EvaluationError(f"Expected input_lengths to have value at most {length}, but got value {max(times)}")
    numbers = targets.long().tolist()
    if targets.ndim == 2:
        rows = [row[:size] for row, size in zip(numbers, sizes)]
    else:
        starts = [sum(sizes[:n]) for n in range(count)]
        rows = [numbers[start : start + size] for start, size in zip(starts, sizes)]
    if [len(row) for row in rows] != sizes:
        raise EvaluationError("the targets are shorter than target_lengths say")
    if any(not 0 <= label < classes or label == blank for row in rows for label in row):
        raise EvaluationError(f"a target is a class from 0 to {classes - 1} other than the blank, which is {blank}")
    return rows


def _loss(steps: Any, labels: list[int], blank: int) -> Any:
    """The loss of one sequence, by the forward algorithm: the states are the labels with blanks between and around."""
    states = [blank]
    for label in labels:
        states += [label, blank]
    emitted = steps[:, states]
    # A label may follow another one without a blank between if they differ.
    skips = [n > 1 and label != blank and label != states[n - 2] for n, label in enumerate(states)]
    skipping, starting = steps.new_tensor(skips), steps.new_tensor([n < 2 for n in range(len(states))])
    if not len(steps):
        return steps.new_tensor(0.0 if not labels else -_IMPOSSIBLE)
    ways = where(starting, emitted[0], _IMPOSSIBLE)
    for now in emitted[1:]:
        before = padded(ways, [(2, 0)], "constant", _IMPOSSIBLE)
        ways = logsumexp(stack([ways, before[1:-1], where(skipping, before[:-2], _IMPOSSIBLE)]), 0) + now
    return -logsumexp(ways[-2:], 0)


class CTCLoss(Module):
    """`ctc_loss` with its settings."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Any:
        return ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )  # fmt: skip
