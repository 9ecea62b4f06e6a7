"""Multi-head attention and transformer encoders and decoders.

A. Vaswani et al., "Attention Is All You Need" (NeurIPS 2017).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import ArgumentError, EvaluationError, ShapeError
from gradcli.nn import functional, init
from gradcli.nn.activation_layers import Dropout
from gradcli.nn.containers import ModuleList
from gradcli.nn.linear_layers import Linear
from gradcli.nn.module import Module
from gradcli.nn.norm_layers import LayerNorm
from gradcli.nn.parameter import filled, parameter
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.linear_algebra.linear_systems import linear
from gradcli.primitives.entries.scans import softmax
from gradcli.primitives.entries.shape import concat

Activation = str | Callable[[Any], Any]


class MultiheadAttention(Module):
    """Multi-head attention of queries (L, N, E) to keys (S, N, kdim) and values (S, N, vdim); with `batch_first` N
    comes first.

    Returns a tensor with the shape of the query and the attention weights, averaged over heads, or None where
    `need_weights` is False. A boolean mask is true where a key is ignored; a numeric mask is added to the scores.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ArgumentError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads}"
            )
        if embed_dim % num_heads:
            raise ArgumentError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        place = {"dtype": dtype, "device": device}
        together = self._qkv_same_embed_dim
        for name, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            weight = None if together else parameter((embed_dim, width), **place)
            self.register_parameter(f"{name}_proj_weight", weight)
        weight = parameter((3 * embed_dim, embed_dim), **place) if together else None
        self.register_parameter("in_proj_weight", weight)
        self.register_parameter("in_proj_bias", parameter((3 * embed_dim,), **place) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, **place)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, parameter((1, 1, embed_dim), **place) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.get_parameter("bias"))
        for drawn in (self.bias_k, self.bias_v):
            if drawn is not None:
                init.xavier_normal_(drawn)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        if query.ndim not in (2, 3):
            raise ShapeError(
                f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
            )
        if is_causal and attn_mask is None:
            raise EvaluationError("Need attn_mask if specifying the is_causal hint.")
        batched = query.ndim == 3
        q, k, v = (
            (x if self.batch_first else x.transpose(0, 1)) if batched else x.unsqueeze(0) for x in (query, key, value)
        )
        if key_padding_mask is not None and not batched:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        q, k, v = self._projected(q, k, v)
        count, sources = q.shape[0], k.shape[1]
        mask = self._mask(attn_mask, key_padding_mask, count, q.shape[1], sources, q)
        if self.bias_k is not None:
            k, v = (concat([x, b.expand(count, 1, -1)], 1) for x, b in ((k, self.bias_k), (v, self.bias_v)))
        if self.add_zero_attn:
            k, v = (concat([x, x.new_zeros((count, 1, x.shape[2]))], 1) for x in (k, v))
        if mask is not None and k.shape[1] > sources:
            # Added keys are visible to all queries.
            mask = functional.pad(mask, (0, k.shape[1] - sources))
        q, k, v = (x.reshape(count, -1, self.num_heads, self.head_dim).transpose(1, 2) for x in (q, k, v))
        scores = (q / math.sqrt(self.head_dim)) @ k.transpose(2, 3)
        shares: Any = softmax(scores if mask is None else scores + mask, -1)
        shares = functional.dropout(shares, self.dropout, self.training)
        seen = (shares @ v).transpose(1, 2).reshape(count, -1, self.embed_dim)
        found = self.out_proj(seen)
        weights = (shares.mean(1) if average_attn_weights else shares) if need_weights else None
        if not batched:
            return found.squeeze(0), None if weights is None else weights.squeeze(0)
        return (found if self.batch_first else found.transpose(0, 1)), weights

    def _projected(self, *given: Any) -> list[Any]:
        """Queries, keys and values after their input projections."""
        if self.in_proj_weight is not None:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [linear(x, weight, bias) for x, weight, bias in zip(given, weights, biases)]

    def _mask(self, mask: Any, padding: Any, count: int, targets: int, sources: int, like: Any) -> Any:
        """The combined mask that is added to the scores (N, heads, L, S), or None."""
        if mask is not None:
            mask = _additive_mask(mask, like)
            if mask.ndim == 2:
                _check_shape("2D attn_mask", mask, (targets, sources))
            else:
                _check_shape("3D attn_mask", mask, (count * self.num_heads, targets, sources))
                mask = mask.reshape(count, self.num_heads, targets, sources)
        if padding is not None:
            _check_shape("key_padding_mask", padding, (count, sources))
            padding = _additive_mask(padding, like)[:, None, None, :]
            mask = padding if mask is None else mask + padding
        return mask if mask is None or mask.ndim == 4 else mask[None, None]


def _additive_mask(mask: Any, like: Any) -> Any:
    """A mask as numbers to add: -inf where a boolean mask is true."""
    if mask.dtype != "bool":
        return mask
    return where(mask, like.new_full((), -math.inf), like.new_zeros(()))


def _check_shape(what: str, mask: Any, wanted: tuple[int, ...]) -> None:
    if tuple(mask.shape) != wanted:
        raise ShapeError(f"The shape of the {what} is {list(mask.shape)}, but should be {wanted}.")


def _activation(given: Activation) -> Callable[[Any], Any]:
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise EvaluationError(f"activation should be relu/gelu, not {given}")
    found: Callable[[Any], Any] = getattr(functional, given)
    return found


class _TransformerLayer(Module):
    """The attentions of a layer and its feed-forward network of two linear layers, each followed by a dropout, with a
    layer norm for each."""

    attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        # The order of parameters is that of PyTorch.
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **place))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        numbers = range(1, len(self.attentions) + 2)
        for number in numbers:
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps, bias=bias, **place))
        for number in numbers:
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation)

    def _through(self, x: Any, *attended: Callable[[Any], Any]) -> Any:
        """x after each of the attentions and the feed-forward network, with a residual connection around each."""
        for number, function in enumerate((*attended, self._feed_forward), 1):
            norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
            x = x + dropout(function(norm(x))) if self.norm_first else norm(x + dropout(function(x)))
        return x

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network of two linear layers, each with a residual connection and a layer norm,
    which comes first with `norm_first`."""

    attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Any:
        def attended(x: Any) -> Any:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        return self._through(src, attended)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to a memory, and a feed-forward network; see `TransformerEncoderLayer`."""

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        def to_itself(x: Any) -> Any:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def to_memory(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )[0]

        return self._through(tgt, to_itself, to_memory)


class _Stack(Module):
    """A stack of copies of a layer, with an optional final norm."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def _through(self, x: Any, *beside: Any, **options: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *beside, **options)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """A stack of encoder layers."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Any:
        return self._through(
            src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal)
        )  # fmt: skip


class TransformerDecoder(_Stack):
    """A stack of decoder layers."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        return self._through(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=bool(tgt_is_causal),
            memory_is_causal=memory_is_causal,
        )


class Transformer(Module):
    """A transformer: an encoder of a source sequence, and a decoder of a target sequence that attends to it."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def made(own: Module | None, stack: Any, layer: Any, count: int) -> Module:
            if own is not None:
                return own
            inner = layer(*settings, **place)
            made: Module = stack(inner, count, LayerNorm(d_model, layer_norm_eps, bias=bias, **place))
            return made

        self.encoder = made(custom_encoder, TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder = made(custom_decoder, TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        for drawn in self.parameters():
            if drawn.ndim > 1:
                init.xavier_uniform_(drawn)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """The causal mask: -inf above the diagonal, else 0."""
        return filled((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )
