"""Sums, means and maxima of embeddings, for bags of indices of different lengths."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError
from gradcli.nn import init
from gradcli.nn.module import Module
from gradcli.nn.parameter import Parameter, parameter
from gradcli.primitives.entries.manipulation.scatter_reductions import scatter_reduce

_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax"}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The sum, mean or maximum of the rows of `weight` with the indices of each bag: a row of a matrix `input`, or the
    part of a vector from one of the `offsets` to the next.

    Indices that are `padding_idx` do not count, and the result for a bag without others is 0. `per_sample_weights` are
    factors of the rows in a sum. Raises EvaluationError for arguments that do not fit together.
    """
    if max_norm is not None or scale_grad_by_freq:
        raise EvaluationError(
            "'embedding_bag' changes neither the weight nor its gradient",
            hint="leave out max_norm and scale_grad_by_freq",
        )
    if mode not in _REDUCTIONS:
        raise ArgumentError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise EvaluationError("embedding_bag: per_sample_weights was not None, and is only supported for mode='sum'")
    numbers, bags, count = _bags(input, offsets, include_last_offset)
    rows = weight[numbers]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if padding_idx is not None:
        counted = numbers != padding_idx % len(weight)
        rows, bags = rows[counted], bags[counted]
    nothing = weight.new_zeros(count, weight.shape[1])
    places = bags.unsqueeze(1).expand(len(bags), weight.shape[1])
    return scatter_reduce(nothing, 0, places, rows, _REDUCTIONS[mode], include_self=False)


def _bags(input: Any, offsets: Any, include_last_offset: bool) -> tuple[Any, Any, int]:
    """The indices, the number of the bag of each, and the number of bags."""
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError("if input is 2D, then offsets has to be None, as input is treated as a mini-batch")
        count, length = input.shape
        return input.reshape(-1), input.new_tensor(range(count)).long().repeat_interleave(length), count
    if input.ndim != 1 or offsets is None:
        raise ArgumentError("offsets has to be a 1D Tensor if input is 1D")
    starts = [int(offset) for offset in offsets][: -1 if include_last_offset else None]
    if not starts or starts[0] != 0 or starts != sorted(starts) or starts[-1] > len(input):
        raise EvaluationError("offsets[0] has to be 0, and offsets must not decrease or exceed the length of the input")
    lengths = [end - start for start, end in zip(starts, [*starts[1:], len(input)])]
    numbers = [number for number, length in enumerate(lengths) for _ in range(length)]
    return input, input.new_tensor(numbers).long(), len(starts)


class EmbeddingBag(Module):
    """`embedding_bag` of a weight drawn from the normal distribution."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse, self.include_last_offset = sparse, include_last_offset
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        if _weight is not None:
            self.weight = Parameter(_weight)
        else:
            self.weight = parameter((num_embeddings, embedding_dim), dtype=dtype, device=device)
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.data[self.padding_idx])

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Any:
        return embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}, mode='{self.mode}'{padding}"
