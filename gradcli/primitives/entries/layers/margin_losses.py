"""Margin and pairwise losses with PyTorch's semantics, with reduction to a mean, a sum or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.primitives.axes import boolean, integer_array
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.comparisons import equal, maximum, minimum, where
from gradcli.primitives.entries.exponential import logsigmoid, relu, softplus
from gradcli.primitives.entries.indexing import index, take_along_key
from gradcli.primitives.entries.layers.losses import reduced
from gradcli.primitives.entries.layers.networks import cosine_similarity, pairwise_distance
from gradcli.primitives.entries.powers import power
from gradcli.primitives.entries.reductions import mean, sum_
from gradcli.primitives.entries.shape import expand_dims
from gradcli.primitives.operation import Composite

SUBJECT = "losses"

_X, _OTHER, _SIGNS = [1.0, 2.5, -3.0], [0.5, 4.0, 1.0], [1.0, -1.0, 1.0]
_CHOICES = [1, -1, 1]
_ROWS, _SECOND, _THIRD = (
    [[1.0, 2.0, 3.5], [4.0, -5.5, 6.0]],
    [[0.5, 2.5, 3.0], [3.0, -5.0, 6.5]],
    [[1.5, 1.0, 4.0], [3.5, -4.5, 5.0]],
)
_SUM_OR_MEAN = "reduction='none' gives one for each element, 'sum' their sum"


def _margin_ranking(input1: Any, input2: Any, target: Any, margin: Any = 0.0, reduction: Any = "mean") -> Any:
    return reduced(relu(add(multiply(negative(target), subtract(input1, input2)), margin)), reduction)


margin_ranking_loss = Composite(
    "margin_ranking_loss", "input1, input2, target, margin=0.0, reduction='mean'",
    "mean of max(0, margin - target*(input1 - input2))", _margin_ranking,
    derivative="-g*target/n where it is above 0, its negative",
    domain="smooth where no loss is on its border", edges=(_SUM_OR_MEAN,),
    samples=((_X, _OTHER, _SIGNS), (_X, _OTHER, _SIGNS, 0.75, "sum")),
)  # fmt: skip

soft_margin_loss = Composite(
    "soft_margin_loss", "input, target, reduction='mean'", "mean of log(1 + exp(-target*input))",
    lambda input, target, reduction="mean": reduced(softplus(multiply(negative(target), input)), reduction),
    derivative="-g*target*sigmoid(-target*input)/n, -g*input*sigmoid(-target*input)/n",
    edges=(_SUM_OR_MEAN,),
    samples=((_X, _SIGNS), (_X, _SIGNS, "sum")),
)  # fmt: skip


def _hinge_embedding(input: Any, target: Any, margin: Any = 1.0, reduction: Any = "mean") -> Any:
    apart = relu(where(equal(target, 1), -1.0, subtract(margin, input)))
    return reduced(add(apart, where(equal(target, -1), 0.0, input)), reduction)


hinge_embedding_loss = Composite(
    "hinge_embedding_loss", "input, target, margin=1.0, reduction='mean'",
    "mean of input where target is 1, and of max(0, margin - input) where it is -1", _hinge_embedding,
    derivative="g/n where target is 1, -g/n where it is -1 and input < margin",
    domain="smooth where input != margin", edges=(_SUM_OR_MEAN,),
    samples=((_X, _CHOICES), (_OTHER, _CHOICES, 5.0, "sum")),
)  # fmt: skip


def _cosine_embedding(input1: Any, input2: Any, target: Any, margin: Any = 0.0, reduction: Any = "mean") -> Any:
    cosine = cosine_similarity(input1, input2, -1)
    return reduced(where(equal(target, 1), subtract(1.0, cosine), relu(subtract(cosine, margin))), reduction)


cosine_embedding_loss = Composite(
    "cosine_embedding_loss", "input1, input2, target, margin=0.0, reduction='mean'",
    "mean of 1 - cosine_similarity where target is 1, and of max(0, cosine_similarity - margin) where it is -1", _cosine_embedding,
    derivative="that of -cosine_similarity/n or of cosine_similarity/n",
    domain="smooth where no norm is 0 and no cosine is the margin", edges=(_SUM_OR_MEAN,),
    samples=((_ROWS, _SECOND, [1, -1]), (_ROWS, _SECOND, [-1, 1], 0.25, "sum")),
)  # fmt: skip


def _labelled(input: Any, target: Any) -> tuple[Any, Any]:
    """Scores as a matrix `[rows, classes]`, and the class of each row as a column. Raises ShapeError if they do not
    fit."""
    classes = integer_array(concrete(target), "a class")
    rows = input if len(arrays.shape(input)) > 1 else reshape(input, (1, -1))
    count = arrays.shape(rows)[-1]
    if len(arrays.shape(rows)) != 2 or classes.size != arrays.shape(rows)[0]:
        raise ShapeError(
            f"'multi_margin_loss' does not fit scores of {list(arrays.shape(input))} and classes of {list(classes.shape)}"
        )
    if classes.size and not 0 <= classes.min() <= classes.max() < count:
        raise ShapeError(f"there are {count} classes, and a label is none of 0 to {count - 1}")
    return rows, classes.reshape(-1, 1)


def _multi_margin(
    input: Any, target: Any, p: Any = 1, margin: Any = 1.0, weight: Any = None, reduction: Any = "mean"
) -> Any:
    rows, classes = _labelled(input, target)
    shape = arrays.shape(rows)
    right = index(rows, take_along_key((shape[0], 1), 1, classes))
    losses = power(relu(add(subtract(margin, right), rows)), p)
    losses = losses if weight is None else multiply(losses, index(weight, (classes,)))
    others = classes != arrays.numpy_namespace().arange(shape[1])
    found = divide(sum_(where(others, losses, 0.0), 1), float(shape[1]))
    return reduced(found if len(arrays.shape(input)) > 1 else reshape(found, ()), reduction)


multi_margin_loss = Composite(
    "multi_margin_loss", "input, target, p=1, margin=1.0, weight=None, reduction='mean'",
    "mean of sum(max(0, margin - input[target] + input)**p)/classes over the other classes", _multi_margin,
    derivative="g/(n*classes) for each class within the margin, less as much for the right one, for p=1",
    domain="smooth where no score is on the margin", edges=(_SUM_OR_MEAN,),
    samples=((_ROWS, [2, 0], 1, 4.0), (_ROWS, [1, 2], 2, 1.25, [0.5, 1.0, 2.0], "sum")),
)  # fmt: skip


def _multilabel_margin(input: Any, target: Any, reduction: Any = "mean") -> Any:
    shape, labels = arrays.shape(input), integer_array(concrete(target), "a class")
    if labels.shape != shape or len(shape) not in (1, 2):
        raise ShapeError(
            f"'multilabel_margin_loss' does not fit scores of {list(shape)} and classes of {list(labels.shape)}"
        )
    count = shape[-1]
    if labels.size and not -1 <= labels.min() <= labels.max() < count:
        raise ShapeError(f"there are {count} classes, and a label is none of -1 to {count - 1}")
    numpy = arrays.numpy_namespace()
    # The labels of a row end before its first -1.
    given = numpy.logical_and.accumulate(labels >= 0, axis=-1)
    right = ((labels[..., None] == numpy.arange(count)) & given[..., None]).any(-2)
    places = numpy.where(given, labels, 0)
    scores = index(input, take_along_key(shape, len(shape) - 1, places))
    pairs = given[..., None] & ~right[..., None, :]
    losses = relu(add(subtract(1.0, expand_dims(scores, -1)), expand_dims(input, -2)))
    return reduced(divide(sum_(where(pairs, losses, 0.0), (-2, -1)), float(count)), reduction)


multilabel_margin_loss = Composite(
    "multilabel_margin_loss", "input, target, reduction='mean'",
    "mean of sum(max(0, 1 - input[label] + input[other]))/classes over the labels of a row and the other classes",
    _multilabel_margin,
    derivative="g/(n*classes) for each pair within the margin at the other class, less as much at the label",
    domain="smooth where no score is on the margin",
    edges=("the labels of a row end before its first -1", _SUM_OR_MEAN),
    samples=((_ROWS, [[2, -1, 0], [0, 1, -1]]), (_X, [1, 0, -1], "sum")),
)  # fmt: skip


def _multilabel_soft_margin(input: Any, target: Any, weight: Any = None, reduction: Any = "mean") -> Any:
    losses = add(multiply(target, logsigmoid(input)), multiply(subtract(1.0, target), logsigmoid(negative(input))))
    losses = losses if weight is None else multiply(losses, weight)
    return reduced(negative(mean(losses, -1)), reduction)


multilabel_soft_margin_loss = Composite(
    "multilabel_soft_margin_loss", "input, target, weight=None, reduction='mean'",
    "mean of -(target*logsigmoid(input) + (1 - target)*logsigmoid(-input)) over the classes and then the rows",
    _multilabel_soft_margin,
    derivative="g*(sigmoid(input) - target)/n, -g*input/n", edges=(_SUM_OR_MEAN,),
    samples=((_ROWS, [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), (_ROWS, _SECOND, [0.5, 1.0, 2.0], "sum")),
)  # fmt: skip


def _triplet(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: Any = 1.0,
    p: Any = 2.0,
    eps: Any = None,
    swap: Any = False,
    reduction: Any = "mean",
) -> Any:
    return triplet_loss(
        anchor, positive, negative, lambda x, y: pairwise_distance(x, y, p, eps), margin, swap, reduction
    )


def triplet_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    distance: Callable[[Any, Any], Any],
    margin: Any,
    swap: Any,
    reduction: Any,
) -> Any:
    """The `triplet_margin_loss` with distances of any kind."""
    near, far = distance(anchor, positive), distance(anchor, negative)
    if boolean(swap, "'swap'"):
        far = minimum(far, distance(positive, negative))
    return reduced(maximum(add(subtract(near, far), margin), 0.0), reduction)


triplet_margin_loss = Composite(
    "triplet_margin_loss", "anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, reduction='mean'",
    "mean of max(0, pairwise_distance(anchor, positive) - pairwise_distance(anchor, negative) + margin)", _triplet,
    derivative="those of the distances",
    domain="smooth where no distance is 0 and no loss is on its border",
    edges=("swap takes the distance of positive and negative where that is less", _SUM_OR_MEAN),
    samples=((_ROWS, _SECOND, _THIRD), (_ROWS, _THIRD, _SECOND, 2.0, 2.0, None, True, "sum")),
)  # fmt: skip
