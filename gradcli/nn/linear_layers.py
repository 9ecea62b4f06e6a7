"""Linear and bilinear layers, embeddings, reshaping layers, and distances."""

from __future__ import annotations

import math
from typing import Any

from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError
from gradcli.nn import functional, init
from gradcli.nn.module import Module
from gradcli.nn.parameter import Parameter, parameter


class Identity(Module):
    """Returns its input; all arguments are ignored."""

    def __init__(self, *_arguments: Any, **_keywords: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Any:
        return input


class Linear(Module):
    """`x @ weight.T + bias`, for `x` of shape (…, in_features); initialised from U(±1/sqrt(in_features))."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = parameter((out_features, in_features), dtype=dtype, device=device)
        self.bias = parameter((out_features,), dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias again."""
        reset_linear(self.weight, self.bias)

    def forward(self, input: Tensor) -> Any:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for each k."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = parameter((out_features, in1_features, in2_features), dtype=dtype, device=device)
        self.bias = parameter((out_features,), dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias again."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        for drawn in self.parameters():
            init.uniform_(drawn, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Any:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Flatten(Module):
    """Merges the axes from `start_dim` to `end_dim` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits an axis into axes of the sizes in `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Embedding(Module):
    """Looks up rows of `weight` by integer indices; the rows are drawn from the normal distribution, and the row
    `padding_idx` is 0 and has no gradient."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError("Padding_idx must be within num_embeddings")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is not None:
            if _weight.shape != (num_embeddings, embedding_dim):
                raise ArgumentError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, not _freeze)
        else:
            self.weight = parameter((num_embeddings, embedding_dim), dtype=dtype, device=device)
            self.weight.requires_grad_(not _freeze)
            self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Embedding:
        """A layer with given rows, which do not require grad where `freeze` is true."""
        rows, columns = embeddings.shape
        return cls(rows, columns, **options, _weight=embeddings, _freeze=freeze)

    def reset_parameters(self) -> None:
        """Draw the rows again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0.0)

    def forward(self, input: Tensor) -> Any:
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along an axis."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of the difference of two tensors along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


def reset_linear(weight: Tensor, bias: Tensor | None) -> None:
    """Draw a weight and a bias from U(±1/sqrt(fan_in)), PyTorch's default initialisation."""
    fan_in = init.fans(weight)[0]
    if weight.numel():
        init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None and bias.numel():
        bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
        init.uniform_(bias, -bound, bound)
