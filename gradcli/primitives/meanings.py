"""Names that mean something else in one library than in another: each in the meaning of that library."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.errors import ShapeError
from gradcli.primitives.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.axes import normalize_axis, truth, whole, whole_array
from gradcli.primitives.bind import concrete, constant
from gradcli.primitives.comparisons import equal, maximum, minimum, where
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.distributions import rel_entr
from gradcli.primitives.equations import matrix_norm
from gradcli.primitives.exponential import exp, xlogy
from gradcli.primitives.indexing import along, index
from gradcli.primitives.losses import reduced
from gradcli.primitives.orders import Pair, difference
from gradcli.primitives.primitive import Composite
from gradcli.primitives.rearranging import split
from gradcli.primitives.reductions import argmax, argmin, max_, min_, order_statistic, sum_
from gradcli.primitives.scans import sort_by
from gradcli.primitives.shape import ravel, squeeze, tile
from gradcli.primitives.statistics import norm, std, var

_VECTOR = [0.5, -1.25, 2.0, 0.75]
_MATRIX = [[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]]


def _deviation(of: Composite) -> Any:
    def definition(x: Any, axis: Any = None, correction: Any = 1, keepdims: Any = False) -> Any:
        return of(x, axis, keepdims, correction)

    return definition


std_ = Composite(
    "std", "x, axis=None, correction=1, keepdims=False", "standard deviation, with n - 1 in the denominator",
    _deviation(std),
    derivative=std.derivative, domain=std.domain, edges=std.edges, dialects="torch",
    samples=((_VECTOR,), (_MATRIX, 1)),
)  # fmt: skip
var_ = Composite(
    "var", "x, axis=None, correction=1, keepdims=False", "variance, with n - 1 in the denominator", _deviation(var),
    derivative=var.derivative, edges=var.edges, dialects="torch",
    samples=((_VECTOR,), (_MATRIX, 1)),
)  # fmt: skip


def _places(shape: Shape, axis: int) -> Any:
    """For each element its place along an axis."""
    counted = arrays.numpy_namespace().arange(shape[axis])
    return broadcast_to(reshape(counted, (-1,) + (1,) * (len(shape) - axis - 1)), shape)


def _at(x: Any, indices: Any, axis: int, keepdims: Any) -> Pair:
    """What stands at one place along an axis; the gradient goes there alone, as in PyTorch."""
    there = equal(_places(arrays.shape(x), axis), indices)
    kept = truth(keepdims, "'keepdims'")
    return Pair(sum_(where(there, x, 0.0), axis, kept), indices if kept else squeeze(indices, axis))


def _extreme(name: str, doc: str, whole: Any, position: Any, pairwise: Any) -> Composite:
    def definition(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        if axis is None:
            return whole(x)
        if type(axis) not in arrays.PLAIN:
            return pairwise(x, axis)
        number = normalize_axis(axis, len(arrays.shape(x)))
        return _at(x, position(constant(x), number, True), number, keepdims)

    return Composite(
        name, "x, axis=None, keepdims=False",
        f"{doc}; along an axis those and where they are; of each two elements, where a tensor is in the place of the axis",
        definition,
        derivative="g to the extreme element; of all elements, ties share it evenly", dialects="torch",
        aliases=(), samples=((_VECTOR,),),
    )  # fmt: skip


torch_max = _extreme("max", "the largest element", max_, argmax, maximum)
torch_min = _extreme("min", "the smallest element", min_, argmin, minimum)


def _ordered(x: Any, axis: Any = -1, descending: Any = False, stable: Any = False) -> Pair:
    number = normalize_axis(axis, len(arrays.shape(x)))
    keys = negative(constant(x)) if truth(descending, "'descending'") else constant(x)
    return Pair(sort_by(x, keys, number), sort_by(_places(arrays.shape(x), number), keys, number))


torch_sort = Composite(
    "sort", "x, axis=-1, descending=False, stable=False", "in rising order along an axis, and where the elements were",
    _ordered,
    derivative="g in the old order", dialects="torch",
)  # fmt: skip


def _lower_median(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    if axis is None:
        x = ravel(x)
    number = normalize_axis(0 if axis is None else axis, len(arrays.shape(x)))
    if not arrays.shape(x)[number]:
        raise ShapeError("an empty tensor has no 'median'")
    if axis is None:
        return order_statistic(x, (arrays.shape(x)[0] - 1) // 2)
    lower = (arrays.shape(x)[number] - 1) // 2
    ordered = _ordered(x, number)
    middle = along(number, slice(lower, lower + 1) if truth(keepdims, "'keepdims'") else lower)
    values, indices = (index(part, middle) for part in ordered)
    return Pair(values, indices)


torch_median = Composite(
    "median", "x, axis=None, keepdims=False", "the middle element, the lower of two; along an axis those and where they are",
    _lower_median,
    derivative="g to that element; of all elements, ties share it evenly", dialects="torch",
    samples=((_VECTOR,),),
)  # fmt: skip

torch_repeat = Composite(
    "repeat", "x, *repeats", "copies of the whole tensor side by side", tile,
    derivative=tile.derivative, dialects="torch",
    samples=((_VECTOR, 2),),
)  # fmt: skip


def _sizes(x: Any, axis: Any = None) -> Any:
    sizes = [float(s) for s in arrays.shape(x)]
    if axis is None:
        return arrays.placed(arrays.asarray(sizes, arrays.default_dtype()))
    return sizes[normalize_axis(axis, len(sizes))]


torch_size = Composite(
    "size", "x, axis=None", "the sizes of all axes, or that of one", _sizes,
    derivative="none", dialects="torch",
)  # fmt: skip


def _norm_of_linalg(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    rank = len(arrays.shape(x))
    axes = (axis,) if type(axis) in arrays.PLAIN else axis
    of_matrices = rank == 2 if axis is None else arrays.shape(arrays.asarray(axes)) == (2,)
    if ord is None or not of_matrices:
        return norm(x, 2 if ord is None else ord, axis, keepdims)
    return matrix_norm(x, ord, axis, keepdims)


linalg_norm = Composite(
    "norm", "x, ord=None, axis=None, keepdims=False",
    "the norm of a vector, or of a matrix where an order is given: 'fro', 'nuc', 1, 2, inf", _norm_of_linalg,
    derivative=norm.derivative, domain=norm.domain, edges=norm.edges, dialects="linalg",
)  # fmt: skip

library_diff = Composite(
    "diff", difference.signature, difference.doc, difference.definition,
    derivative=difference.derivative, dialects="numpy torch",
)  # fmt: skip


def _split_by_sizes(x: Any, split_size_or_sections: Any, axis: Any = 0) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    size = arrays.shape(x)[number]
    given = arrays.to_numpy(concrete(split_size_or_sections))
    if given.ndim:
        sizes = whole_array(given, "the size of a part").ravel()
        if sizes.sum() != size or (sizes < 0).any():
            raise ShapeError(f"the sizes of parts {sizes.tolist()} do not add up to {size}")
        return split(x, sizes.cumsum()[:-1], number)
    part = whole(split_size_or_sections, "the size of a part")
    if part < 1:
        raise ShapeError("the size of a part is 1 or more")
    return split(x, arrays.numpy_namespace().arange(part, max(size, 1), part), number)


torch_split = Composite(
    "split", "x, split_size_or_sections, axis=0", "the parts of a size along an axis, or of the sizes in a list",
    _split_by_sizes,
    derivative=split.derivative, dialects="torch",
)  # fmt: skip


def _divergence(input: Any, target: Any, reduction: Any = "mean", log_target: Any = False) -> Any:
    if truth(log_target, "'log_target'"):
        loss = multiply(exp(target), subtract(target, input))
    else:
        loss = subtract(xlogy(target, target), multiply(target, input))
    if isinstance(reduction, str) and reduction == "batchmean":
        return divide(sum_(loss), float(arrays.shape(loss)[0] if arrays.shape(loss) else 1))
    return reduced(loss, reduction)


torch_kl_div = Composite(
    "kl_div", "input, target, reduction='mean', log_target=False",
    "mean of target*(log(target) - input), where input is the logarithm of a distribution", _divergence,
    derivative="-g*target/n, g*(log(target) + 1 - input)/n", dialects="torch",
    samples=(([-1.0, -2.0], [0.25, 0.5], "sum"),),
)  # fmt: skip
scipy_kl_div = Composite(
    "kl_div", "x, y", "x*log(x/y) - x + y, element by element",
    lambda x, y: add(subtract(rel_entr(x, y), x), y),
    derivative="g*log(x/y), g*(1 - x/y)", dialects="numpy",
    samples=(([0.5, 2.0], [0.25, 1.0]),),
)  # fmt: skip
