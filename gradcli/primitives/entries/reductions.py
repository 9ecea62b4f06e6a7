"""Reductions: sums, products, extremes, order statistics."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import boolean, normalize_axes, normalize_axis
from gradcli.primitives.bind import assume, bind, constant
from gradcli.primitives.conversions import expanded, permute, reshape, reshaped
from gradcli.primitives.costs import sort_cost
from gradcli.primitives.entries.arithmetic import absolute, add, divide, floor, is_normal, multiply, ones_like
from gradcli.primitives.entries.comparisons import (
    clip,
    equal,
    greater,
    isfinite,
    less,
    logical_and,
    logical_or,
    maximum,
    minimum,
    not_equal,
    nowhere,
    where,
)
from gradcli.primitives.entries.exponential import exp2, log2
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.shape import concat, expand_dims, stack
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients, linear, locally_constant
from gradcli.primitives.primitive import NodeName, Primitive, names_elsewhere
from gradcli.type_hints import Any

SUBJECT = "reductions"

# Bounds for products of others without overflow: up to 512 factors in [1, 2) do not overflow, nor do powers of 2 whose
# exponents' magnitudes sum to less than 900; exponents beyond 3000 make the product with such factors 0 or infinite.
_MODERATE, _FEW_FACTORS, _MOST_HALVINGS = 900.0, 512, 3000.0
SIGNATURE = "x, axis=None, keepdims=False"
_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.5], [4.0, 5.5, 6.0]]
_CUBE = [[[1.0, 2.0], [3.5, -1.0]], [[0.5, 4.0], [2.5, 3.0]]]
SAMPLES = ((_VECTOR,), (_MATRIX, 1), (_MATRIX, 0, True), (_CUBE, (0, 2)))


def _reduction_call(x: Any, axis: Any = None, keepdims: Any = False) -> tuple[Sequence[Any], Mapping[str, Any]]:
    axes = normalize_axes(axis, len(arrays.shape(x)))
    return (x,), {"axis": axes, "keepdims": boolean(keepdims, "'keepdims'")}


def _kept(shape: Shape, axis: Shape) -> Shape:
    return tuple(1 if a in axis else s for a, s in enumerate(shape))


def keep_axes(g: Any, shape: Shape, axis: Shape) -> Any:
    """A reduction of a tensor of `shape` with the reduced axes restored as axes of size 1."""
    return reshaped(g, _kept(shape, axis))


def _repeated(g: Any, shape: Shape, axis: Shape) -> Any:
    """The cotangent of a sum broadcast to its terms. A scalar broadcasts without reshaping."""
    return expanded(g if arrays.shape(g) == () else keep_axes(g, shape, axis), shape)


def _reduced_elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
    """The cost of a reduction in elements: those of the result, and a quarter of those that are read."""
    return math.prod(_kept(shapes[0], params["axis"])) + math.prod(shapes[0]) // 4


def _reduction_name(stem: str, of_all: int = 0) -> Any:
    """A function that returns PyTorch's node name, which ends in `of_all` if all axes are reduced, else in 1 -
    `of_all`."""

    of_everything, of_some = NodeName(f"{stem}Backward{of_all}"), NodeName(f"{stem}Backward{1 - of_all}")

    def name(operands: Sequence[Any], params: Mapping[str, Any]) -> NodeName:
        return of_everything if len(params["axis"]) == len(arrays.shape(operands[0])) else of_some

    return name


def _reduction(name: str, doc: str, rule: Any, **fields: Any) -> Primitive:
    fields.setdefault("prepare", _reduction_call)
    fields.setdefault("node_name", _reduction_name(name.capitalize()))
    return Primitive(
        name, SIGNATURE, doc,
        vjp=None if rule is None else (rule,),
        batch=batching.along_axis,
        elements=_reduced_elements,
        samples=SAMPLES,
        **fields,
    )  # fmt: skip


sum_ = _reduction(
    "sum", "sum over the axes",
    lambda g, _y, _x, *, axis, **_params: _repeated(g, _x.shape, axis),
    numbers="analytic",
    jet=linear,
    reduces=add,
    derivative="g for every element",
    edges=("the sum of no elements is 0",),
)  # fmt: skip


def count_along(shape: Shape, axis: Shape) -> int:
    """The number of elements along the axes."""
    return math.prod(shape[a] for a in axis)


def _mean_rule(g: Any, _y: Any, _x: Any, *, axis: Shape, **_params: Any) -> Any:
    return _repeated(divide(g, float(count_along(_x.shape, axis))), _x.shape, axis)


mean = _reduction(
    "mean", "mean over the axes",
    _mean_rule,
    numbers="analytic",
    forward=lambda xp, x, *, axis, keepdims: xp.divide(
        xp.sum(x, axis=axis, keepdims=keepdims), float(count_along(arrays.shape(x), axis))
    ),
    jet=linear,
    reduces=add,
    spelling=names_elsewhere("numpy"),
    derivative="g/n for every element",
    edges=("the mean of no elements is nan",),
)  # fmt: skip


def axes_last(x: Any, axis: Shape) -> Any:
    """`x` with the axes in `axis` moved to the end and flattened into one."""
    sizes = arrays.shape(x)
    others = tuple(a for a in range(len(sizes)) if a not in axis)
    moved = permute(x, others + axis) if sizes else x
    return reshape(moved, (*(sizes[a] for a in others), count_along(sizes, axis)))


def _axes_back(flat: Any, shape: Shape, axis: Shape) -> Any:
    others = tuple(a for a in range(len(shape)) if a not in axis)
    order = others + axis
    moved = reshape(flat, tuple(shape[a] for a in order))
    return permute(moved, tuple(order.index(a) for a in range(len(shape)))) if shape else moved


def _prod_rule(g: Any, y: Any, x: Any, *, axis: Shape, **_params: Any) -> Any:
    sizes = arrays.shape(x)
    g = keep_axes(g, sizes, axis)
    if assume(is_normal(constant(y))):
        return g * divide(keep_axes(y, sizes, axis), x)
    # y/x is 0/0 at a zero and inaccurate where y is subnormal; the products of the other elements are always accurate.
    return g * _axes_back(_scaled_product_of_others(axes_last(x, axis)), sizes, axis)


def _scaled_product_of_others(x: Any) -> Any:
    """`_product_of_others`, with the binary exponents handled separately where a partial product might overflow (0*inf
    is nan)."""
    size = absolute(constant(x))
    counted = logical_and(greater(size, 0), isfinite(size))
    exponents = where(counted, floor(log2(where(counted, size, 1.0))), 0.0)
    moderate = less(sum_(absolute(exponents), -1), _MODERATE)
    if is_exact() or arrays.shape(x)[-1] > _FEW_FACTORS or assume(moderate):
        return _product_of_others(x)
    others = sum_(exponents, -1, True) - exponents
    half = floor(0.5 * clip(others, -_MOST_HALVINGS, _MOST_HALVINGS))
    quarters = [floor(0.5 * half), half - floor(0.5 * half)]
    product = _product_of_others(divide(x, exp2(exponents)))
    for power in (*quarters, *quarters, clip(others, -_MOST_HALVINGS, _MOST_HALVINGS) - 2.0 * half):
        product = product * exp2(power)
    return product


def _product_of_others(x: Any) -> Any:
    """The product of all other elements, for each element along the last axis.

    Computed by a binary tree, so that it and all its derivatives take O(n) operations: the product of the others of an
    element is its sibling times the product of the others of their pair.
    """
    *batch, n = arrays.shape(x)
    if n < 2:
        return ones_like(x)
    first, second = index(x, (Ellipsis, slice(0, n - 1, 2))), index(x, (Ellipsis, slice(1, n, 2)))
    pairs = multiply(first, second)
    left_over = index(x, (Ellipsis, slice(n - n % 2, n)))
    others = _product_of_others(concat([pairs, left_over], -1))
    of_pairs = index(others, (Ellipsis, slice(0, n // 2)))
    both = reshape(stack([of_pairs * second, of_pairs * first], -1), (*batch, n - n % 2))
    return concat([both, index(others, (Ellipsis, slice(n // 2, None)))], -1)


def _prod_series(primitive: Primitive, y: Any, x: Any, *, axis: Shape, keepdims: bool) -> Coefficients:
    """Jet rule of prod: the derivative is the product with the gradient, which is the vjp of ones."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    gradient = primitive.rule(0)(ones_like(y.inner), y, inner, axis=axis, keepdims=keepdims)
    if x.varies is not None:
        gradient = where(x.varies, gradient, 0.0)
    yield from integrate_coefficients(y, sum_(gradient * x.derivative(), axis, keepdims))


prod = _reduction(
    "prod", "product over the axes",
    _prod_rule,
    numbers="analytic",
    jet=_prod_series,
    reach=lambda taken, *, axis, keepdims: taken if keepdims else expand_dims(taken, axis),
    reduces=multiply,
    derivative="g times the product of the other elements",
    edges=(
        "with a zero among the elements, the derivative is still the product of the others",
        "the product of no elements is 1",
    ),
)  # fmt: skip


def _share_ties(g: Any, y: Any, x: Any, axis: Shape) -> Any:
    """`g` distributed in equal shares to the elements that equal `y`; if there is a nan, to the nans."""
    sizes = arrays.shape(x)
    chosen = equal(x, keep_axes(y, sizes, axis))
    if not assume(isfinite(constant(y))):
        chosen = logical_or(chosen, not_equal(x, x))
    count = sum_(where(chosen, 1.0, 0.0), axis=axis, keepdims=True)
    return where(chosen, divide(keep_axes(g, sizes, axis), count), 0.0)


def _chosen_series(primitive: Primitive, y: Any, x: Any, **params: Any) -> Coefficients:
    """Jet rule of an extreme: a sum over the chosen elements, with the shares of the vjp rule as weights."""
    shares = primitive.rule(0)(ones_like(y.inner), y.inner, x.inner, **params)
    axes, keepdims = params.get("axis", (x.ndim - 1,)), params.get("keepdims", False)
    for k in itertools.count(1):
        part = x.coefficient(k)
        yield None if part is None else sum_(where(equal(shares, 0), 0.0, shares * part), axes, keepdims)


def _one_at_most(chosen: Any, axis: Shape) -> bool:
    """Return whether nowhere more than one element along the axes is chosen."""
    return nowhere(greater(sum_(where(chosen, 1.0, 0.0), axis), 1))


def _extreme(name: str, doc: str, alias: str, of_two: Primitive) -> Primitive:
    def forward(xp: Any, x: Any, *, axis: Shape, keepdims: bool) -> Any:
        if 0 in (arrays.shape(x)[a] for a in axis):
            raise ShapeError(f"an empty tensor has no '{name}'")
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    def smooth(x: Any, *, axis: Shape, **_params: Any) -> bool:
        return not arrays.shape(x) or _one_at_most(equal(x, primitive(x, axis, True)), axis)

    def prepare(x: Any, axis: Any = None, keepdims: Any = False) -> tuple[Sequence[Any], Mapping[str, Any]]:
        try:
            return _reduction_call(x, axis, keepdims)
        except EvaluationError as error:
            error.hint = f"the second argument is an axis; for two numbers there is {name}imum(x, y)"
            raise

    primitive = _reduction(
        name, doc,
        lambda g, y, x, *, axis, **_params: _share_ties(g, y, x, axis),
        forward=forward,
        reduces=of_two,
        spelling=names_elsewhere("numpy"), jet=_chosen_series,
        derivative="g to the chosen element; ties share it evenly",
        domain="smooth where one element is chosen",
        edges=("n elements that tie get g/n each", "no elements are an error"),
        selects=True,
        smooth=smooth,
        node_name=_reduction_name(name.capitalize(), of_all=1),
        prepare=prepare,
        aliases=(alias,),
    )  # fmt: skip
    return primitive


max_ = _extreme("max", "the largest element", "amax", maximum)
min_ = _extreme("min", "the smallest element", "amin", minimum)


def sum_to(g: Any, shape: Shape) -> Any:
    """`g` summed over the axes along which an operand of `shape` was broadcast (unbroadcast)."""
    stretched = _stretched_axes(arrays.shape(g), shape)
    return reshaped(bind(sum_, (g,), {"axis": stretched, "keepdims": False}) if stretched else g, shape)


@lru_cache(256)
def _stretched_axes(have: Shape, shape: Shape) -> Shape:
    """The axes of a result of shape `have` along which an operand of `shape` was broadcast."""
    extra = len(have) - len(shape)
    return tuple(a for a, size in enumerate(have) if a < extra or (shape[a - extra] == 1 and size != 1))


any_ = _reduction(
    "any", "whether some element is not 0",
    None,
    numbers="complex",
    truths=True, jet=locally_constant,
    reduces=logical_or,
    derivative="none",
    edges=("of no elements it is false",),
)  # fmt: skip

all_ = _reduction(
    "all", "whether every element is not 0",
    None,
    numbers="complex",
    truths=True, jet=locally_constant,
    reduces=logical_and,
    derivative="none",
    edges=("of no elements it is true",),
)  # fmt: skip


def _position_call(x: Any, axis: Any = None, keepdims: Any = False) -> tuple[Sequence[Any], Mapping[str, Any]]:
    rank = len(arrays.shape(x))
    number = None if axis is None else normalize_axis(axis, rank or 1)
    return (x,), {"axis": number if rank else None, "keepdims": boolean(keepdims, "'keepdims'")}


def _position(name: str, doc: str, of: Primitive) -> Primitive:
    def smooth(x: Any, *, axis: int | None, **_params: Any) -> bool:
        axes = tuple(range(len(arrays.shape(x)))) if axis is None else (axis,)
        return not axes or _one_at_most(equal(x, of(x, axes, True)), axes)

    return Primitive(
        name, SIGNATURE, doc,
        vjp=None,
        jet=locally_constant,
        prepare=_position_call,
        batch=batching.position,
        smooth=smooth,
        derivative="none",
        edges=("the first of several that tie", "no elements are an error"),
        samples=SAMPLES[:3],
    )  # fmt: skip


argmax = _position("argmax", "the position of the largest element", max_)
argmin = _position("argmin", "the position of the smallest element", min_)


def _order_smooth(x: Any, *, k: int) -> bool:
    last = len(arrays.shape(x)) - 1
    return _one_at_most(equal(x, keep_axes(order_statistic(x, k), arrays.shape(x), (last,))), (last,))


def _order_forward(xp: Any, x: Any, *, k: int) -> Any:
    ordered = xp.sort(x, axis=-1)
    last = xp.index(ordered, (Ellipsis, -1))
    # A sort puts nan last; a slice that contains one has no order statistics.
    return xp.where(xp.isnan(last), last, xp.index(ordered, (Ellipsis, k)))


order_statistic = Primitive(
    "order_statistic", "x, k", "the element of rank k along the last axis, nan where one is",
    internal=True,
    forward=_order_forward,
    vjp=(lambda g, y, x, **_params: _share_ties(g, y, x, (len(arrays.shape(x)) - 1,)),),
    jet=_chosen_series,
    prepare=lambda x, k: ((x,), {"k": k}),
    batch=batching.trailing,
    derivative="g to the chosen element; ties share it evenly",
    domain="smooth where one element is chosen",
    selects=True,
    smooth=_order_smooth,
    elements=sort_cost(),
    samples=((_VECTOR, 1), (_MATRIX, 0)),
)  # fmt: skip
