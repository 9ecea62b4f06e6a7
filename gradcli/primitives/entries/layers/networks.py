"""Network layers with PyTorch's semantics: norms, similarities, embeddings and attention."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import by_formula, decimal, ratio
from gradcli.arrays.shapes import broadcast
from gradcli.errors import CallError, ShapeError
from gradcli.primitives.axes import boolean, integer, integer_array, normalize_axis, one_float, whole_numbers
from gradcli.primitives.bind import concrete, constant
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.arithmetic import add, divide, multiply, subtract
from gradcli.primitives.entries.comparisons import greater, maximum, where
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.exponential import sigmoid
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.manipulation.batched_indexing import is_batched, take
from gradcli.primitives.entries.powers import rsqrt, square
from gradcli.primitives.entries.reductions import mean, sum_
from gradcli.primitives.entries.scans import softmax
from gradcli.primitives.entries.shape import matrix_transpose, repeat
from gradcli.primitives.entries.statistics import norm
from gradcli.primitives.operation import Composite

SUBJECT = "layers"

_VECTOR, _OTHER = [1.0, 2.5, -3.0], [0.5, -2.0, 1.0]
_MATRIX, _SECOND = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]], [[0.5, -1.0, 2.0], [1.5, 0.25, -2.0]]
_least_spread, _least_norm = decimal("1e-5"), decimal("1e-12")
_least_factor, _off_zero, _off_norm = decimal("1e-8"), decimal("1e-6"), decimal("1e-7")


def _normalize(input: Any, p: Any = 2.0, axis: Any = 1, eps: Any = None) -> Any:
    return divide(input, maximum(norm(input, p, axis, True), _least_norm() if eps is None else eps))


normalize = Composite(
    "normalize", "input, p=2.0, axis=1, eps=1e-12", "input/norm(input, p, axis), the norm no less than eps", _normalize,
    derivative="(g - y*sum(g*y))/norm(input) for p=2",
    domain="smooth where the norm is not 0",
    edges=("where the norm is no more than eps, y is input/eps",),
    samples=((_MATRIX,), (_VECTOR, 2.0, 0), (_MATRIX, 3.0, 0)),
)  # fmt: skip


def _renorm(x: Any, p: Any, axis: Any, maxnorm: Any) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    others = tuple(a for a in range(len(arrays.shape(x))) if a != number)
    norms = norm(x, p, others, True)
    long = greater(norms, maxnorm)
    # As in PyTorch, whose divisor is off 0 by 1e-7.
    return where(long, divide(multiply(x, maxnorm), add(where(long, norms, 1.0), _off_norm())), x)


renorm = Composite(
    "renorm", "x, p, axis, maxnorm", "x with the slices along an axis whose norm is above maxnorm brought to that norm", _renorm,
    derivative="g for the other slices, maxnorm*(g - y*sum(g*y)/maxnorm**2)/norm(x) for these, for p=2",
    domain="smooth where no norm is maxnorm",
    samples=((_MATRIX, 2.0, 0, 4.0), (_MATRIX, 1.0, 1, 6.5)),
)  # fmt: skip


def _cosine_similarity(x1: Any, x2: Any, axis: Any = 1, eps: Any = None) -> Any:
    check_real("cosine_similarity", x1, x2)
    least = _least_factor() if eps is None else eps
    # Broadcast first: an axis of size 1 that is repeated must be normalised with the norm of the repeated vector.
    shape = broadcast([arrays.shape(x1), arrays.shape(x2)])
    pair = [broadcast_to(x, shape) for x in (x1, x2)]
    sizes = (maximum(norm(x, 2, axis, True), least) for x in pair)
    return sum_(multiply(*map(divide, pair, sizes)), axis)


cosine_similarity = Composite(
    "cosine_similarity", "x1, x2, axis=1, eps=1e-08",
    "cosine of the angle between x1 and x2: sum(x1*x2)/(norm(x1)*norm(x2)) along an axis, each norm no less than eps",
    _cosine_similarity,
    derivative="g*(x2/norm(x2) - y*x1/norm(x1))/norm(x1), and likewise",
    domain="smooth where no norm is 0",
    samples=((_MATRIX, _SECOND), (_VECTOR, _OTHER, 0)),
)  # fmt: skip


def _pairwise_distance(x1: Any, x2: Any, p: Any = 2.0, eps: Any = None, keepdims: Any = False) -> Any:
    return norm(add(subtract(x1, x2), _off_zero() if eps is None else eps), p, -1, keepdims)


pairwise_distance = Composite(
    "pairwise_distance", "x1, x2, p=2.0, eps=1e-06, keepdims=False",
    "norm(x1 - x2 + eps, p) along the last axis", _pairwise_distance,
    derivative="g*(x1 - x2 + eps)/y for p=2, its negative",
    domain="smooth where y != 0",
    samples=((_MATRIX, _SECOND), (_MATRIX, _OTHER, 3.0), (_VECTOR, _OTHER)),
)  # fmt: skip


def _normalized_axes(input: Any, normalized_shape: Any, name: str) -> tuple[int, ...]:
    """The last axes, whose sizes must equal `normalized_shape`. Raises ShapeError otherwise."""
    sizes, shape = whole_numbers(normalized_shape, "a size"), arrays.shape(input)
    if not sizes or shape[-len(sizes) :] != sizes:
        raise ShapeError(f"'{name}' over axes of sizes {list(sizes)} does not fit a tensor of {list(shape)}")
    return tuple(range(-len(sizes), 0))


def _scaled(x: Any, weight: Any, bias: Any = None) -> Any:
    x = x if weight is None else multiply(x, weight)
    return x if bias is None else add(x, bias)


def _layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = None) -> Any:
    check_real("layer_norm", input)
    axes = _normalized_axes(input, normalized_shape, "layer_norm")
    centred = subtract(input, mean(input, axes, keepdims=True))
    spread = add(mean(square(centred), axes, keepdims=True), _least_spread() if eps is None else eps)
    return _scaled(multiply(centred, rsqrt(spread)), weight, bias)


layer_norm = Composite(
    "layer_norm", "input, normalized_shape, weight=None, bias=None, eps=1e-05",
    "(input - mean)/sqrt(var + eps)*weight + bias over the last axes, whose sizes are normalized_shape", _layer_norm,
    node_name="NativeLayerNormBackward0",
    derivative="(h - mean(h) - z*mean(h*z))/sqrt(var + eps) with h = g*weight and z the normalized input; g*z, g",
    samples=((_MATRIX, 3), (_MATRIX, (2, 3)), (_MATRIX, (3,), _VECTOR, _OTHER)),
)  # fmt: skip


def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    axes = _normalized_axes(input, normalized_shape, "rms_norm")
    least = ratio(1, 2 ** (23 if arrays.dtype_name(input) in ("float32", "complex64") else 52)) if eps is None else eps
    return _scaled(multiply(input, rsqrt(add(mean(square(input), axes, keepdims=True), least))), weight)


rms_norm = Composite(
    "rms_norm", "input, normalized_shape, weight=None, eps=None",
    "input/sqrt(mean(input**2) + eps)*weight over the last axes, whose sizes are normalized_shape", _rms_norm,
    derivative="(h - z*mean(h*z))/sqrt(mean(input**2) + eps) with h = g*weight and z the normalized input; g*z",
    edges=("eps=None is the distance from 1 to the next number of the dtype",),
    samples=((_MATRIX, 3), (_MATRIX, (3,), _VECTOR)),
)  # fmt: skip


def _prelu(input: Any, weight: Any) -> Any:
    shape, slopes = arrays.shape(input), weight
    if arrays.shape(weight) and arrays.shape(weight) != (1,):
        slopes = reshape(weight, (-1, *[1] * (len(shape) - 2)))
    elif arrays.shape(weight):
        slopes = reshape(weight, ())
    return where(greater(input, 0), input, multiply(slopes, input))


prelu = Composite(
    "prelu", "input, weight", "input where it is above 0, else weight*input, with one weight or one for each channel", _prelu,
    node_name="PreluKernelBackward0",
    derivative="g where input > 0, else g*weight; sum(g*input) where input <= 0",
    domain="smooth where input != 0",
    samples=((_VECTOR, [0.25]), (_MATRIX, [0.25, 0.5, 0.75])),
)  # fmt: skip


def _glu(input: Any, axis: Any = -1) -> Any:
    number = normalize_axis(axis, len(arrays.shape(input)))
    size = arrays.shape(input)[number]
    if size % 2:
        raise ShapeError(f"'glu' halves an axis, and one of size {size} has no halves")
    first, second = slice(0, size // 2), slice(size // 2, size)
    return multiply(index(input, axis_key(number, first)), sigmoid(index(input, axis_key(number, second))))


glu = Composite(
    "glu", "input, axis=-1", "a*sigmoid(b) of the halves a and b of an axis", _glu,
    node_name="GluBackward0",
    derivative="g*sigmoid(b), g*a*sigmoid(b)*(1 - sigmoid(b))",
    samples=(([1.0, 2.5, -3.0, 0.5],), (_MATRIX, 0)),
)  # fmt: skip


def _embedding(
    input: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: Any = 2.0,
    scale_grad_by_freq: Any = False,
    sparse: Any = False,
) -> Any:
    boolean(sparse, "'sparse'")
    if max_norm is not None or boolean(scale_grad_by_freq, "'scale_grad_by_freq'"):
        raise CallError(
            "'embedding' changes neither the weight nor its gradient", hint="leave out max_norm and scale_grad_by_freq"
        )
    shape = arrays.shape(weight)
    if is_batched(input) and padding_idx is None and len(shape) == 2:
        return take(weight, input)
    places = integer_array(concrete(input), "a row")
    if len(shape) != 2:
        raise ShapeError(f"'embedding' takes the rows of a matrix, not of a tensor of {list(shape)}")
    if places.size and not 0 <= places.min() <= places.max() < shape[0]:
        raise ShapeError(f"a matrix of {shape[0]} rows has none but 0 to {shape[0] - 1}")
    limits.charge(places.size * shape[1])
    rows = index(weight, (places,))
    if padding_idx is None:
        return rows
    padding = integer(padding_idx, "'padding_idx'")
    return where((places == padding + shape[0] * (padding < 0))[..., None], constant(rows), rows)


embedding = Composite(
    "embedding", "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False", "for each whole number of input, that row of weight", _embedding,
    node_name="EmbeddingBackward0",
    derivative="none, g added up in the rows",
    edges=("the row padding_idx has no gradient",),
    samples=(([1, 0, 1], _MATRIX), ([[0], [1]], _MATRIX)),
)  # fmt: skip


def _scale(size: int) -> Any:
    return by_formula(lambda m: 1.0 / m.sqrt(float(size)))() if size else math.inf


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
) -> Any:
    shape = arrays.shape(query)
    if len(shape) < 2:
        raise ShapeError(f"'scaled_dot_product_attention' takes matrices, not a tensor of {list(shape)}")
    if one_float(dropout_p, "'dropout_p'"):
        raise CallError("'scaled_dot_product_attention' drops nothing out", hint="dropout_p is 0 or left away")
    if boolean(enable_gqa, "'enable_gqa'"):
        key, value = (repeat(part, shape[-3] // arrays.shape(part)[-3], -3) for part in (key, value))
    factor = _scale(shape[-1]) if scale is None else scale
    scores = multiply(matmul(query, matrix_transpose(key)), factor)
    if boolean(is_causal, "'is_causal'"):
        if attn_mask is not None:
            raise CallError("'scaled_dot_product_attention' takes 'attn_mask' or 'is_causal', not both")
        rows, columns = arrays.shape(scores)[-2:]
        attn_mask = arrays.guard_memory(lambda xp: xp.tri(rows, columns) > 0)
    if attn_mask is None:
        return matmul(softmax(scores, -1), value)
    mask = broadcast_to(attn_mask, arrays.shape(scores))
    if arrays.dtype_name(mask) != "bool":
        return matmul(softmax(add(scores, mask), -1), value)
    # A query that is masked from every key gets 0 rather than nan.
    shares = softmax(where(mask, scores, -math.inf), -1)
    return matmul(where(mask, shares, 0.0), value)


scaled_dot_product_attention = Composite(
    "scaled_dot_product_attention",
    "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False",
    "softmax(query@key.T*scale + attn_mask)@value, scale being 1/sqrt of the size of the last axis", _attention,
    derivative="h@key*scale, h.T@query*scale with h = p*(g@value.T - sum(g@value.T*p)) and p the softmax; p.T@g",
    edges=(
        "a mask of truth values is true where a query sees a key, one of numbers is added",
        "is_causal lets each row see no key behind it",
        "a row that sees nothing is 0",
    ),
    samples=(
        (_MATRIX, _SECOND, _MATRIX), (_MATRIX, _SECOND, _SECOND, [[0.5, -1.0], [0.0, 2.0]]),
        (_MATRIX, _SECOND, _MATRIX, None, 0, True),
    ),
)  # fmt: skip
