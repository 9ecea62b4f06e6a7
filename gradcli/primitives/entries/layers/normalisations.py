"""Layers that normalise the channels of a tensor to mean 0 and variance 1, with PyTorch's semantics."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import decimal
from gradcli.arrays.shapes import Shape
from gradcli.errors import CallError, ShapeError
from gradcli.primitives.axes import boolean, integer
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add, divide, multiply, subtract
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.powers import power, rsqrt, square
from gradcli.primitives.entries.reductions import mean
from gradcli.primitives.entries.sampled_data.sampling import padded
from gradcli.primitives.operation import Composite

SUBJECT = "layers"

_VECTOR, _OTHER = [1.0, 2.5], [0.5, -2.0]
_MATRIX = [[1.0, 2.0], [4.0, 5.5], [-1.0, 0.5]]
_SIGNALS = [[[1.0, 2.5, -3.0], [0.5, 2.0, 1.0]], [[0.0, 1.0, 2.0], [2.5, -1.0, 0.75]]]
_least_spread, _small_share = decimal("1e-5"), decimal("1e-4")


def _channels(input: Any, name: str) -> Shape:
    check_real(name, input)
    shape = arrays.shape(input)
    if len(shape) < 2:
        raise ShapeError(f"'{name}' takes a tensor with channels along its second axis, not one of {list(shape)}")
    return shape


def _for_each_channel(x: Any, shape: Shape) -> Any:
    return reshape(x, (-1, *[1] * (len(shape) - 2)))


def _normalized(x: Any, axes: tuple[int, ...], eps: Any) -> Any:
    centred = subtract(x, mean(x, axes, True))
    return multiply(centred, rsqrt(add(mean(square(centred), axes, True), _least_spread() if eps is None else eps)))


def _weighted(x: Any, weight: Any, bias: Any, shape: Shape) -> Any:
    x = x if weight is None else multiply(x, _for_each_channel(weight, shape))
    return x if bias is None else add(x, _for_each_channel(bias, shape))


def _group_norm(input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: Any = None) -> Any:
    shape, groups = _channels(input, "group_norm"), integer(num_groups, "'num_groups'")
    if groups < 1 or shape[1] % groups:
        raise ShapeError(f"{shape[1]} channels are not {groups} equal groups")
    grouped = reshape(input, (shape[0], groups, math.prod(shape[1:]) // groups))
    return _weighted(reshape(_normalized(grouped, (2,), eps), shape), weight, bias, shape)


group_norm = Composite(
    "group_norm", "input, num_groups, weight=None, bias=None, eps=1e-05",
    "(input - mean)/sqrt(var + eps)*weight + bias over the channels of each group and all that follow them", _group_norm,
    derivative="that of layer_norm over each group; g*z, g",
    samples=((_SIGNALS, 1), (_SIGNALS, 2, _VECTOR, _OTHER)),
)  # fmt: skip


def _from_statistics(input: Any, running_mean: Any, running_var: Any, eps: Any, shape: Shape) -> Any:
    spread = add(running_var, _least_spread() if eps is None else eps)
    return multiply(subtract(input, _for_each_channel(running_mean, shape)), _for_each_channel(rsqrt(spread), shape))


def _batch_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: Any = False,
    momentum: Any = 0.1,
    eps: Any = None,
) -> Any:
    shape = _channels(input, "batch_norm")
    if boolean(training, "'training'"):
        found = _normalized(input, (0, *range(2, len(shape))), eps)
    elif running_mean is None or running_var is None:
        raise CallError(
            "'batch_norm' needs 'running_mean' and 'running_var'", hint="training=True takes those of the batch"
        )
    else:
        found = _from_statistics(input, running_mean, running_var, eps, shape)
    return _weighted(found, weight, bias, shape)


batch_norm = Composite(
    "batch_norm",
    "input, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05",
    "(input - mean)/sqrt(var + eps)*weight + bias for each channel, by the running statistics, or in training by those of the batch",
    _batch_norm,
    derivative="g*weight/sqrt(var + eps), in training that of layer_norm over each channel; g*z, g",
    edges=("the running statistics are not changed, so that momentum says nothing",),
    samples=((_MATRIX, None, None, None, None, True), (_SIGNALS, _OTHER, _VECTOR, _VECTOR, _OTHER)),
)  # fmt: skip


def _instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: Any = True,
    momentum: Any = 0.1,
    eps: Any = None,
) -> Any:
    shape = _channels(input, "instance_norm")
    if boolean(use_input_stats, "'use_input_stats'"):
        found = _normalized(input, tuple(range(2, len(shape))), eps)
    elif running_mean is None or running_var is None:
        raise CallError("'instance_norm' needs 'running_mean' and 'running_var' where it takes none of the input")
    else:
        found = _from_statistics(input, running_mean, running_var, eps, shape)
    return _weighted(found, weight, bias, shape)


instance_norm = Composite(
    "instance_norm",
    "input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05",
    "(input - mean)/sqrt(var + eps)*weight + bias for each channel of each item of a batch", _instance_norm,
    derivative="that of layer_norm over each channel; g*z, g",
    edges=("the running statistics are not changed, so that momentum says nothing",),
    samples=((_SIGNALS,), (_SIGNALS, None, None, _VECTOR, _OTHER)),
)  # fmt: skip


def _local_response_norm(input: Any, size: Any, alpha: Any = None, beta: Any = 0.75, k: Any = 1.0) -> Any:
    shape, count = _channels(input, "local_response_norm"), integer(size, "'size'")
    if count < 1:
        raise ShapeError("'local_response_norm' needs a size of 1 or more")
    widths = [(0, 0), (count // 2, (count - 1) // 2), *[(0, 0)] * (len(shape) - 2)]
    squares = padded(square(input), widths, "constant", 0.0)
    total = 0.0
    for shift in range(count):
        total = add(total, index(squares, axis_key(1, slice(shift, shift + shape[1]))))
    share = multiply(_small_share() if alpha is None else alpha, divide(total, float(count)))
    return divide(input, power(add(share, k), beta))


local_response_norm = Composite(
    "local_response_norm", "input, size, alpha=0.0001, beta=0.75, k=1.0",
    "input/(k + alpha*mean(input**2))**beta, the mean over size neighbouring channels", _local_response_norm,
    derivative="g/(k + alpha*m)**beta, less what each element has in the means",
    samples=((_SIGNALS, 2, 0.5), (_SIGNALS, 3, 0.5, 0.5, 2.0)),
)  # fmt: skip
