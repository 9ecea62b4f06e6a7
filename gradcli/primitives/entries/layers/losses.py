"""Loss functions with PyTorch's semantics: of predictions and targets, with reduction to a mean, a sum or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import by_formula, decimal, half_log_2_pi
from gradcli.errors import ShapeError
from gradcli.primitives.axes import boolean, integer, integer_array, one_number_or_tensor, option
from gradcli.primitives.bind import Kind, concrete, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import (
    absolute,
    add,
    divide,
    multiply,
    negative,
    ones_like,
    subtract,
)
from gradcli.primitives.entries.comparisons import clip, greater, less, not_equal, where
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.exponential import exp, log, log1p, softplus
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.manipulation.batched_indexing import is_batched, take, taken_along
from gradcli.primitives.entries.powers import square
from gradcli.primitives.entries.reductions import mean, sum_
from gradcli.primitives.entries.scans import log_softmax
from gradcli.primitives.entries.shape import expand_dims, moveaxis, squeeze
from gradcli.primitives.entries.statistics import squared_modulus
from gradcli.primitives.operation import Composite

SUBJECT = "losses"

_X, _TARGET = [1.0, 2.5, -3.0], [0.5, 2.0, 1.0]
_P, _LABELS = [0.7, 0.2, 0.5], [1.0, 0.25, 0.5]
_LOGITS, _CLASSES = [[1.0, 2.0, 3.5], [4.0, -5.5, 6.0]], [2, 0]
_SHARES = [[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]]
# The lower bound of logarithms in binary_cross_entropy, as in PyTorch.
_LOWEST_LOG = -100.0
_two_pi = by_formula(lambda m: 2 * m.pi)
_least_variance, _off_zero = decimal("1e-6"), decimal("1e-8")
_SUM_OR_MEAN = "reduction='none' gives one for each element, 'sum' their sum"


_REDUCTIONS: Mapping[str, Callable[[Any], Any]] = {"mean": mean, "sum": sum_, "none": lambda loss: loss}


def reduced(loss: Any, reduction: Any) -> Any:
    """The mean or the sum of the losses, or the losses themselves, as `reduction` says."""
    return _REDUCTIONS[option(reduction, _REDUCTIONS, "reduction")](loss)


def _loss(name: str, doc: str, of_elements: Any, **known: Any) -> Composite:
    def definition(input: Any, target: Any, reduction: Any = "mean", *rest: Any, **params: Any) -> Any:
        return reduced(of_elements(subtract(input, target), *rest, **params), reduction)

    signature = "input, target, reduction='mean'"
    return Composite(name, signature + known.pop("more", ""), doc, definition, **known)


mse_loss = _loss(
    "mse_loss", "mean of (input - target)**2, of abs(input - target)**2 where they are complex", squared_modulus,
    node_name="MseLossBackward0",
    derivative="2*g*(input - target)/n, its negative",
    edges=(_SUM_OR_MEAN,),
    samples=((_X, _TARGET), (_X, _TARGET, "sum"), (_X, _TARGET, "none")),
)  # fmt: skip

l1_loss = _loss(
    "l1_loss", "mean of abs(input - target)", absolute,
    derivative="g*sign(input - target)/n, its negative",
    domain="smooth where input != target",
    edges=("0 is the derivative where input = target",),
    samples=((_X, _TARGET), (_X, _TARGET, "sum")),
)  # fmt: skip


def _smooth_l1(difference: Any, beta: Any = 1.0) -> Any:
    size = absolute(difference)
    if type(beta) in arrays.PYTHON_NUMBERS and beta == 0:
        return size
    inside = divide(multiply(0.5, squared_modulus(difference)), beta)
    return where(less(size, beta), inside, subtract(size, multiply(0.5, beta)))


smooth_l1_loss = _loss(
    "smooth_l1_loss", "mean of d**2/(2*beta) where d = abs(input - target) < beta, else d - beta/2", _smooth_l1,
    more=", beta=1.0",
    node_name="SmoothL1LossBackward0",
    derivative="g*clip((input - target)/beta, -1, 1)/n, its negative",
    domain="beta >= 0",
    edges=("beta = 0 is l1_loss",),
    samples=((_X, _TARGET), (_X, _TARGET, "sum", 0.7)),
)  # fmt: skip


def _huber(difference: Any, delta: Any = 1.0) -> Any:
    size = absolute(difference)
    outside = multiply(delta, subtract(size, multiply(0.5, delta)))
    return where(less(size, delta), multiply(0.5, squared_modulus(difference)), outside)


huber_loss = _loss(
    "huber_loss", "mean of d**2/2 where d = abs(input - target) < delta, else delta*(d - delta/2)", _huber,
    more=", delta=1.0",
    node_name="HuberLossBackward0",
    derivative="g*clip(input - target, -delta, delta)/n, its negative",
    domain="delta > 0",
    samples=((_X, _TARGET), (_X, _TARGET, "sum", 0.7)),
)  # fmt: skip


def _weighted(loss: Any, weight: Any) -> Any:
    return loss if weight is None else multiply(loss, weight)


def _entropy(input: Any, target: Any, weight: Any = None, reduction: Any = "mean") -> Any:
    there = multiply(target, clip(log(input), _LOWEST_LOG))
    others = multiply(subtract(1.0, target), clip(log1p(negative(input)), _LOWEST_LOG))
    return reduced(_weighted(negative(add(there, others)), weight), reduction)


binary_cross_entropy = Composite(
    "binary_cross_entropy", "input, target, weight=None, reduction='mean'",
    "mean of -target*log(input) - (1 - target)*log(1 - input), the logarithms no less than -100", _entropy,
    node_name="BinaryCrossEntropyBackward0",
    derivative="g*(input - target)/(input*(1 - input))/n, g*(log(1 - input) - log(input))/n",
    domain="0 <= input <= 1",
    edges=("where a logarithm is held at -100, its derivative is 0",),
    samples=((_P, _LABELS), (_P, _LABELS, [1.0, 2.0, 0.5], "sum")),
)  # fmt: skip


def _entropy_of_logits(
    input: Any, target: Any, weight: Any = None, reduction: Any = "mean", pos_weight: Any = None
) -> Any:
    there = multiply(target, softplus(negative(input)))
    there = there if pos_weight is None else multiply(pos_weight, there)
    loss = add(there, multiply(subtract(1.0, target), softplus(input)))
    return reduced(_weighted(loss, weight), reduction)


binary_cross_entropy_with_logits = Composite(
    "binary_cross_entropy_with_logits", "input, target, weight=None, reduction='mean', pos_weight=None",
    "binary_cross_entropy of sigmoid(input), without overflow or cancellation; pos_weight weighs the targets 1",
    _entropy_of_logits,
    node_name="BinaryCrossEntropyWithLogitsBackward0",
    derivative="g*(sigmoid(input) - target)/n, -g*input/n",
    samples=((_X, _LABELS), (_X, _LABELS, [1.0, 2.0, 0.5], "sum", [2.0, 0.5, 3.0])),
)  # fmt: skip


def _class_axis(input: Any, name: str) -> int:
    rank = len(arrays.shape(input))
    if not rank:
        raise ShapeError(f"'{name}' needs scores of classes, and a number was given")
    return min(rank - 1, 1)


def _picked(logs: Any, target: Any, weight: Any, ignored: Any, name: str) -> tuple[Any, Any]:
    """The log-probability of the class of each label and the weight of that class, both 0 for ignored labels. Classes
    are along the last axis of `logs`."""
    *sizes, classes = arrays.shape(logs)
    if is_batched(target):
        return _picked_by_row(logs, target, weight, ignored)
    labels = integer_array(concrete(target), "a class label")
    if list(labels.shape) != sizes:
        raise ShapeError(f"labels of shape {list(labels.shape)} do not fit scores of {classes} classes for {sizes}")
    limits.charge(labels.size)
    kept = labels != integer(ignored, "'ignore_index'")
    if not ((labels >= 0) & (labels < classes) | ~kept).all():
        raise ShapeError(f"'{name}' has {classes} classes, and a label is none of 0 to {classes - 1}")
    places = (labels * kept).ravel()
    rows = arrays.numpy_namespace().arange(places.size)
    found = index(reshape(logs, (places.size, classes)), (rows, places))
    weights = ones_like(found) if weight is None else index(weight, (places,))
    weights = where(kept.ravel(), weights, 0.0)
    return reshape(where(kept.ravel(), found, 0.0), sizes), reshape(weights, sizes)


def _picked_by_row(logs: Any, target: Any, weight: Any, ignored: Any) -> tuple[Any, Any]:
    """Like `_picked`, for labels that differ between the rows of a batch."""
    kept = not_equal(target, integer(ignored, "'ignore_index'"))
    labels = expand_dims(where(kept, target, 0), -1)
    found = squeeze(taken_along(logs, labels, len(arrays.shape(logs)) - 1), -1)
    weights = ones_like(found) if weight is None else take(weight, squeeze(labels, -1))
    return where(kept, found, 0.0), where(kept, weights, 0.0)


def _averaged(losses: Any, weights: Any, reduction: Any) -> Any:
    if option(reduction, _REDUCTIONS, "reduction") == "mean":
        return divide(sum_(losses), sum_(weights))
    return reduced(losses, reduction)


def _nll(input: Any, target: Any, weight: Any = None, ignore_index: Any = -100, reduction: Any = "mean") -> Any:
    logs = moveaxis(input, _class_axis(input, "nll_loss"), -1)
    found, weights = _picked(logs, target, weight, ignore_index, "nll_loss")
    return _averaged(negative(multiply(weights, found)), weights, reduction)


nll_loss = Composite(
    "nll_loss", "input, target, weight=None, ignore_index=-100, reduction='mean'",
    "mean of -input at the labels, weighted by class; classes are axis 1, or 0 of a vector", _nll,
    node_name="NllLossBackward0",
    derivative="-g*weight/sum(weight) at the labels, else 0",
    edges=("labels that are ignore_index count nothing", "the mean of no labels is nan"),
    samples=((_LOGITS, _CLASSES), (_LOGITS, _CLASSES, [1.0, 2.0, 0.5]), (_X, 2)),
)  # fmt: skip


def _cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: Any = -100,
    reduction: Any = "mean",
    label_smoothing: Any = 0.0,
) -> Any:
    axis = _class_axis(input, "cross_entropy")
    logs = moveaxis(log_softmax(input, axis), axis, -1)
    classes = arrays.shape(logs)[-1]
    smoothing = one_number_or_tensor(label_smoothing, "'label_smoothing'")
    smooths = isinstance(smoothing, Kind) or bool(smoothing)
    rest, share = subtract(1.0, smoothing), divide(smoothing, float(classes))
    if arrays.shape(target) == arrays.shape(input):
        shares = moveaxis(target, axis, -1)
        if smooths:
            shares = add(multiply(rest, shares), share)
        loss = negative(sum_(_weighted(multiply(shares, logs), weight), -1))
        return reduced(loss, reduction)
    found, weights = _picked(logs, target, weight, ignore_index, "cross_entropy")
    loss = negative(multiply(weights, found))
    if smooths:
        kept = not_equal(constant(target), integer(ignore_index, "'ignore_index'"))
        evenly = where(kept, sum_(_weighted(logs, weight), -1), 0.0)
        loss = subtract(multiply(rest, loss), multiply(share, evenly))
    return _averaged(loss, weights, reduction)


cross_entropy = Composite(
    "cross_entropy",
    "input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0",
    "mean of -log_softmax(input) at the labels, or times the shares that target gives each class", _cross_entropy,
    node_name="NllLossBackward0",
    derivative="g*(softmax(input) - shares)/n",
    edges=(
        "a target in the shape of input is shares, one without the axis of classes (1, or 0 of a vector) is labels",
        "labels that are ignore_index count nothing",
    ),
    samples=(
        (_LOGITS, _CLASSES), (_LOGITS, _SHARES), (_X, 2),
        (_LOGITS, _CLASSES, [1.0, 2.0, 0.5]), ([_LOGITS], [[1, 0, 1]]),
    ),
)  # fmt: skip


def _gaussian(input: Any, target: Any, var: Any, full: Any = False, eps: Any = None, reduction: Any = "mean") -> Any:
    check_real("gaussian_nll_loss", input, target, var)
    if len(arrays.shape(var)) == len(arrays.shape(input)) - 1 and arrays.shape(var):
        var = reshape(var, (*arrays.shape(var), 1))
    var = clip(var, _least_variance() if eps is None else eps)
    loss = multiply(0.5, add(log(var), divide(square(subtract(input, target)), var)))
    return reduced(add(loss, half_log_2_pi()) if boolean(full, "'full'") else loss, reduction)


gaussian_nll_loss = Composite(
    "gaussian_nll_loss", "input, target, var, full=False, eps=1e-06, reduction='mean'",
    "mean of (log(var) + (input - target)**2/var)/2, with log(2*pi)/2 where full; var no less than eps", _gaussian,
    derivative="g*(input - target)/var/n, its negative, g*(1/var - (input - target)**2/var**2)/(2*n)",
    domain="var >= 0",
    edges=("where var is held at eps, its derivative is 0",),
    samples=((_X, _TARGET, [0.5, 2.0, 1.5]), (_LOGITS, _SHARES, [0.5, 2.0])),
)  # fmt: skip


def _stirling(count: Any) -> Any:
    many = greater(count, 1)
    n = where(many, count, 2.0)
    value = add(subtract(multiply(n, log(n)), n), multiply(0.5, log(multiply(_two_pi(), n))))
    return where(many, value, 0.0)


def _poisson(
    input: Any, target: Any, log_input: Any = True, full: Any = False, eps: Any = None, reduction: Any = "mean"
) -> Any:
    if boolean(log_input, "'log_input'"):
        loss = subtract(exp(input), multiply(target, input))
    else:
        loss = subtract(input, multiply(target, log(add(input, _off_zero() if eps is None else eps))))
    return reduced(add(loss, _stirling(target)) if boolean(full, "'full'") else loss, reduction)


poisson_nll_loss = Composite(
    "poisson_nll_loss", "input, target, log_input=True, full=False, eps=1e-08, reduction='mean'",
    "mean of exp(input) - target*input, or of input - target*log(input + eps); full adds Stirling's log(target!)",
    _poisson,
    derivative="g*(exp(input) - target)/n, -g*input/n",
    samples=((_X, _TARGET), (_P, _TARGET, False), (_P, [3.0, 2.0, 0.5], False, True)),
)  # fmt: skip
