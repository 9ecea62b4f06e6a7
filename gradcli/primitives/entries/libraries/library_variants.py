"""Functions whose name has another meaning in one library than in the language, with that library's semantics."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.arrays import mathematical_constants
from gradcli.arrays.shapes import Shape
from gradcli.errors import ShapeError
from gradcli.primitives.axes import boolean, integer, integer_array, normalize_axis, option, whole_numbers
from gradcli.primitives.bind import concrete, constant
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.arithmetic import absolute, add, divide, floor_divide, fmod, multiply, round_, subtract
from gradcli.primitives.entries.comparisons import (
    clip,
    equal,
    isfinite,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    nowhere,
    where,
)
from gradcli.primitives.entries.elementwise.elementary import lerp
from gradcli.primitives.entries.elementwise.trigonometric import sinc
from gradcli.primitives.entries.exponential import exp, log, xlogy
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.layers.losses import reduced
from gradcli.primitives.entries.linear import diagonal, trace
from gradcli.primitives.entries.linear_algebra.decompositions import cholesky, qr
from gradcli.primitives.entries.linear_algebra.linear_systems import matrix_norm, vander
from gradcli.primitives.entries.linear_algebra.matrices import adjoint, conjugated, cross, dot, vdot
from gradcli.primitives.entries.linear_algebra.products import Factors, lu_factor, lu_solve, solved_by_factors
from gradcli.primitives.entries.linear_algebra.singular_vectors import svd
from gradcli.primitives.entries.manipulation.gather_scatter import meshgrid, nonzero, split
from gradcli.primitives.entries.manipulation.numpy_shape import slopes
from gradcli.primitives.entries.manipulation.slice_updates import broadcast_tensors
from gradcli.primitives.entries.reductions import all_, any_, argmax, argmin, max_, mean, min_, order_statistic, sum_
from gradcli.primitives.entries.sampled_data.order_statistics import (
    Pair,
    cummax,
    cummin,
    difference,
    kth_value,
    positions_falling,
    positions_in_order,
)
from gradcli.primitives.entries.sampled_data.sampling import padded
from gradcli.primitives.entries.scans import cumprod, cumsum, log_softmax, softmax, sort
from gradcli.primitives.entries.shape import (
    along_axis,
    expand_dims,
    flip,
    ravel,
    sequence,
    squeeze,
    stack,
    take,
    tile,
)
from gradcli.primitives.entries.special_functions.bessel_orders import spherical_jn, spherical_yn
from gradcli.primitives.entries.special_functions.distributions import rel_entr
from gradcli.primitives.entries.special_functions.orthogonal_polynomials import eval_genlaguerre
from gradcli.primitives.entries.special_functions.special import gelu, polygamma
from gradcli.primitives.entries.statistics import norm, std, var
from gradcli.primitives.operation import Composite, Operation
from gradcli.primitives.primitive import Primitive

_VECTOR = [0.5, -1.25, 2.0, 0.75]
_MATRIX = [[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]]


def _deviation(of: Composite) -> Any:
    def definition(x: Any, axis: Any = None, correction: Any = 1, keepdims: Any = False) -> Any:
        # A bool in second place is PyTorch's `unbiased`: `x.std(False)`.
        axis, correction = (None, axis) if type(axis) is bool else (axis, correction)
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
    """The position of each element along an axis, broadcast to `shape`."""
    counted = arrays.numpy_namespace().arange(shape[axis])
    return broadcast_to(reshape(counted, (-1,) + (1,) * (len(shape) - axis - 1)), shape)


def _at(x: Any, indices: Any, axis: int, keepdims: Any) -> Pair:
    """The elements at `indices` along an axis, and the indices; the cotangent goes to these elements only, as in
    PyTorch."""
    there = equal(_places(arrays.shape(x), axis), indices)
    kept = boolean(keepdims, "'keepdims'")
    return Pair(sum_(where(there, x, 0.0), axis, kept), indices if kept else squeeze(indices, axis))


def _extreme(name: str, doc: str, whole: Any, position: Any, pairwise: Any) -> Composite:
    def definition(x: Any, second: Any = None, keepdims: Any = False, *, axis: Any = None) -> Any:
        if second is not None and type(second) not in arrays.PYTHON_NUMBERS:
            return pairwise(x, second)
        axis = second if axis is None else axis
        if axis is None:
            return whole(x)
        return along_axis(x, axis, lambda x, number: _at(x, position(x, number, True), number, keepdims))

    return Composite(
        name, "x, axis=None, keepdims=False",
        f"{doc}; along an axis those and where they are; of each two elements, where a tensor is in the place of the axis",
        definition,
        derivative="g to the extreme element; of all elements, ties share it evenly", dialects="torch",
        aliases=(), samples=((_VECTOR,),),
    )  # fmt: skip


torch_max = _extreme("max", "the largest element", max_, argmax, maximum)
torch_min = _extreme("min", "the smallest element", min_, argmin, minimum)


def _ordered(x: Any, axis: Any = -1, descending: Any = False, stable: Any = False) -> Any:
    falling = boolean(descending, "'descending'")

    def ordered(x: Any, number: int) -> Pair:
        if not falling:
            return Pair(sort(x, number), positions_in_order(x, number))
        # Turned round before and after, equal elements keep their order, and nan comes first.
        return Pair(flip(sort(flip(x, number), number), number), positions_falling(x, number))

    return along_axis(x, axis, ordered)


torch_sort = Composite(
    "sort", "x, axis=-1, descending=False, stable=False", "in rising order along an axis, and where the elements were",
    _ordered,
    derivative="g in the old order", dialects="torch",
)  # fmt: skip


def _median_along(x: Any, number: int, keepdims: Any) -> Any:
    lower = kth_value(x, None, number, keepdims)
    undefined = any_(isnan(constant(x)), number, keepdims)
    if nowhere(undefined):
        return lower
    # The largest element is nan where one is, and so is the median.
    largest = Pair(max_(x, number, keepdims), argmax(x, number, keepdims))
    return Pair(*(where(undefined, other, part) for other, part in zip(largest, lower)))


def _lower_median(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    if axis is not None:
        return along_axis(x, axis, lambda x, number: _median_along(x, number, keepdims))
    if not arrays.size(x):
        raise ShapeError("an empty tensor has no 'median'")
    return order_statistic(ravel(x), (arrays.size(x) - 1) // 2)


torch_median = Composite(
    "median", "x, axis=None, keepdims=False", "the middle element, the lower of two; along an axis those and where they are",
    _lower_median,
    derivative="g to that element; of all elements, ties share it evenly", dialects="torch",
    samples=((_VECTOR,),),
)  # fmt: skip


def _nanmedian_along(x: Any, number: int, keepdims: Any) -> Any:
    present = sum_(logical_not(isnan(constant(x))), number, True)
    rank = maximum(floor_divide(subtract(present, 1), 2), 0)
    here = equal(_places(arrays.shape(x), number), rank)
    return _at(x, sum_(where(here, positions_in_order(x, number), 0), number, True), number, keepdims)


def _lower_nanmedian(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    if axis is not None:
        return along_axis(x, axis, lambda x, number: _nanmedian_along(x, number, keepdims))
    missing = isnan(x)
    present = integer(concrete(sum_(logical_not(missing))), "a number of elements")
    if not present:
        return mean(x)
    return order_statistic(ravel(where(missing, math.inf, x)), (present - 1) // 2)


torch_nanmedian = Composite(
    "nanmedian", "x, axis=None, keepdims=False",
    "the middle of the elements that are not nan, the lower of two; along an axis those and where they are",
    _lower_nanmedian,
    derivative=torch_median.derivative, dialects="torch",
    samples=((_VECTOR,),),
)  # fmt: skip

method_where = Composite(
    "where", "x, condition, y", "the elements of x where a condition holds, else those of y: the method of a tensor",
    lambda x, condition, y: where(condition, x, y),
    derivative=where.derivative, dialects="method",
)  # fmt: skip


def _along_the_first_of_three(a: Any, b: Any, axis: Any = None) -> Any:
    a, b = broadcast_tensors(a, b)
    if axis is None:
        axis = next((number for number, size in enumerate(arrays.shape(a)) if size == 3), -1)
    return cross(a, b, axis)


torch_cross = Composite(
    "cross", "a, b, axis=None", "cross product of vectors of 3, along the first axis of size 3 unless another is said",
    _along_the_first_of_three,
    derivative=cross.derivative, dialects="torch",
    samples=(([0.5, -1.25, 2.0], [1.0, 0.25, -0.75]),),
)  # fmt: skip

torch_equal = Composite(
    "equal", "x, y", "whether x and y have the same shape and elements",
    lambda x, y: all_(equal(x, y)) if arrays.shape(x) == arrays.shape(y) else False,
    derivative="none", dialects="torch",
)  # fmt: skip

method_polygamma = Composite(
    "polygamma", "x, n", polygamma.doc, lambda x, n: polygamma(n, x),
    derivative=polygamma.derivative, domain=polygamma.domain, dialects="method",
)  # fmt: skip


def _slice(x: Any, axis: Any, index: Any) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    return take(x, integer(index, "an index"), number)


torch_select = Composite(
    "select", "x, axis, index", "the slice at a position along an axis", _slice,
    derivative="g put back, 0 elsewhere", dialects="torch",
    samples=((_MATRIX, 1, 2),),
)  # fmt: skip


def _first_that_holds(condlist: Any, choicelist: Any, default: Any = 0.0) -> Any:
    conditions, choices = sequence(condlist, "select"), sequence(choicelist, "select")
    if len(conditions) != len(choices):
        raise ShapeError(f"'select' needs a condition for each choice, not {len(conditions)} for {len(choices)}")
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        default = where(condition, choice, default)
    return default


numpy_select = Composite(
    "select", "condlist, choicelist, default=0", "of each element the first choice whose condition holds", _first_that_holds,
    derivative="g where the choice is taken", dialects="numpy",
)  # fmt: skip

linalg_lu_solve = Composite(
    "lu_solve", "LU, pivots, B, left=True, adjoint=False",
    "the X with A@X = B, from the factors L and U of A in one matrix and the exchanges of its rows, counted from 1",
    solved_by_factors,
    derivative=lu_solve.derivative, domain=lu_solve.domain, dialects="torch.linalg",
    samples=(([[2.0, 1.0], [0.5, 3.0]], [2, 2], [[1.0], [2.0]], True, True),),
)  # fmt: skip


def _lu_factor_from_0(a: Any) -> Factors:
    factors, pivots = lu_factor(a)
    return Factors(factors, subtract(pivots, 1))


def _solved_from_0(lu_and_piv: Any, b: Any, trans: Any = 0) -> Any:
    factors, pivots = lu_and_piv
    way = integer(trans, "'trans'")
    if way not in (0, 1, 2):
        raise ShapeError(f"'trans' of 'lu_solve' is 0, 1 or 2, not {way}")
    if way == 1:
        # A.T is the conjugate of the adjoint.
        return conjugated(_solved_from_0((factors, pivots), conjugated(b), 2))
    vector = len(arrays.shape(b)) == 1
    found = solved_by_factors(factors, add(pivots, 1), expand_dims(b, -1) if vector else b, True, way == 2)
    return squeeze(found, -1) if vector else found


scipy_lu_solve = Composite(
    "lu_solve", "lu_and_piv, b, trans=0",
    "the x with A@x = b, from the pair that scipy.linalg.lu_factor(A) gives; with trans=1 A.T@x = b, with trans=2 A^H@x = b",
    _solved_from_0,
    derivative=lu_solve.derivative, domain=lu_solve.domain, dialects="scipy.linalg",
    example="'scipy.linalg.lu_solve(scipy.linalg.lu_factor(A), b)[0]' A='[[1, 2], [3, 5]]' b='[1, 2]'",
)  # fmt: skip


scipy_lu_factor = Composite(
    "lu_factor", "a", "the factors L and U of a in one matrix, and the exchanges of its rows, counted from 0", _lu_factor_from_0,
    derivative=lu_factor.derivative, domain=lu_factor.domain, dialects="scipy.linalg",
)  # fmt: skip


def _rows_of_places(x: Any, as_tuple: Any = False) -> Any:
    found = nonzero(x if arrays.shape(x) else reshape(x, 1))
    if boolean(as_tuple, "'as_tuple'"):
        return found
    return stack(found, -1) if arrays.shape(x) else reshape(index(found[0], slice(0)), (arrays.shape(found[0])[0], 0))


torch_nonzero = Composite(
    "nonzero", "x, as_tuple=False",
    "a row for each element that is not 0, with its position; for each axis where as_tuple is true", _rows_of_places,
    derivative="none", dialects="torch",
)  # fmt: skip

torch_repeat = Composite(
    "repeat", "x, *repeats", "copies of the whole tensor side by side", tile,
    derivative=tile.derivative, dialects="torch",
    samples=((_VECTOR, 2),),
)  # fmt: skip


def _sizes(x: Any, axis: Any = None) -> Any:
    sizes = [float(s) for s in arrays.shape(x)]
    if axis is None:
        return arrays.in_default_namespace(arrays.asarray(sizes, arrays.default_dtype()))
    return sizes[normalize_axis(axis, len(sizes))]


torch_size = Composite(
    "size", "x, axis=None", "the sizes of all axes, or that of one", _sizes,
    derivative="none", dialects="torch",
)  # fmt: skip


def _norm_of_linalg(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    count = len(arrays.shape(x)) if axis is None else len(whole_numbers(axis, "an axis"))
    if ord is None or count != 2:
        return norm(x, 2 if ord is None else ord, axis, keepdims)
    return matrix_norm(x, ord, axis, keepdims)


linalg_norm = Composite(
    "norm", "x, ord=None, axis=None, keepdims=False",
    "the norm of a vector, or of a matrix where an order is given: 'fro', 'nuc', 1, 2, inf", _norm_of_linalg,
    derivative=norm.derivative, domain=norm.domain, edges=norm.edges, dialects="linalg",
)  # fmt: skip

linalg_trace = Composite(
    "trace", "x, k=0", "sum of diagonal k of each matrix along the last two axes", lambda x, k=0: trace(x, k, -2, -1),
    derivative=trace.derivative, dialects="numpy.linalg",
    samples=((_MATRIX,), ([_MATRIX, _MATRIX], 1)),
)  # fmt: skip

linalg_diagonal = Composite(
    "diagonal", "x, k=0, axis1=-2, axis2=-1", "diagonal k of each matrix along the last two axes, unless others are named",
    lambda x, k=0, axis1=-2, axis2=-1: diagonal(x, k, axis1, axis2),
    derivative=diagonal.derivative, dialects="numpy.linalg torch.linalg",
    samples=((_MATRIX,), ([_MATRIX, _MATRIX], 1)),
)  # fmt: skip

library_diff = Composite(
    "diff", difference.signature, difference.doc, difference.definition,
    derivative=difference.derivative, dialects="numpy torch",
)  # fmt: skip


numpy_gradient = Composite(
    "gradient", slopes.signature, slopes.doc, slopes.definition,
    derivative=slopes.derivative, dialects="numpy",
)  # fmt: skip


def _slopes_of_torch(x: Any, spacing: Any = 1.0, axis: Any = None, edge_order: Any = 1) -> Any:
    steps = spacing if isinstance(spacing, (list, tuple)) else (spacing,)
    found = slopes(x, *steps, axis=axis, edge_order=edge_order)
    return found if isinstance(found, tuple) else (found,)


torch_gradient = Composite(
    "gradient", "x, spacing=1, axis=None, edge_order=1",
    "the slopes at each element between its neighbours, a tensor for each axis; spacing is a distance, or a list with that or the places for each",
    _slopes_of_torch,
    derivative=slopes.derivative, dialects="torch",
    example="'torch.gradient(x, spacing=0.5)[0] @ [1, 10, 100]' x='[1, 4, 9]'",
)  # fmt: skip


def _split_by_sizes(x: Any, split_size_or_sections: Any, axis: Any = 0) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    size = arrays.shape(x)[number]
    given = arrays.to_numpy(concrete(split_size_or_sections))
    if given.ndim:
        sizes = integer_array(given, "the size of a part").ravel()
        if sizes.sum() != size or (sizes < 0).any():
            raise ShapeError(f"the sizes of parts {sizes.tolist()} do not add up to {size}")
        return split(x, sizes.cumsum()[:-1], number)
    part = integer(split_size_or_sections, "the size of a part")
    if part < 1:
        raise ShapeError("the size of a part is 1 or more")
    return split(x, arrays.numpy_namespace().arange(part, max(size, 1), part), number)


torch_split = Composite(
    "split", "x, split_size_or_sections, axis=0", "the parts of a size along an axis, or of the sizes in a list",
    _split_by_sizes,
    derivative=split.derivative, dialects="torch jax.lax",
)  # fmt: skip


def _divergence(input: Any, target: Any, reduction: Any = "mean", log_target: Any = False) -> Any:
    if boolean(log_target, "'log_target'"):
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


def _of_vectors(of: Composite, doc: str) -> Composite:
    def definition(a: Any, b: Any) -> Any:
        if any(len(arrays.shape(x)) != 1 for x in (a, b)):
            raise ShapeError(
                f"PyTorch's '{of.name}' takes two vectors, and these have shapes {list(arrays.shape(a))} and "
                f"{list(arrays.shape(b))}",
                hint="a @ b multiplies matrices, and sum(a*b) adds the products of all elements",
            )
        return of(a, b)

    return Composite(
        of.name, "a, b", doc, definition,
        derivative=of.derivative, dialects="torch",
        samples=((_VECTOR, _VECTOR),),
    )  # fmt: skip


torch_dot = _of_vectors(dot, "inner product of two vectors")
torch_vdot = _of_vectors(vdot, "inner product of two vectors, the first of which is conjugated")

jax_gelu = Composite(
    "gelu", "x, approximate=True", "x*ndtr(x), by a tanh unless approximate=False",
    lambda x, approximate=True: gelu(x, "tanh" if boolean(approximate, "'approximate'") else "none"),
    derivative=gelu.derivative, dialects="jax.nn",
    samples=(_VECTOR,),
)  # fmt: skip


def _padded_from_the_last(x: Any, pad: Any, mode: Any = "constant", value: Any = None) -> Any:
    widths = integer_array(concrete(pad), "a width")
    rank = len(arrays.shape(x))
    if widths.ndim != 1 or widths.size % 2 or widths.size > 2 * rank:
        raise ShapeError(
            f"PyTorch's widths are a pair for the last axis, then one for that before it, not {widths.tolist()}",
            hint="np.pad takes a pair for each axis",
        )
    pairs = [*([0, 0] for _ in range(rank - widths.size // 2)), *widths.reshape(-1, 2)[::-1].tolist()]
    if widths.size and widths.min() < 0:
        # A negative width crops.
        x = index(x, tuple(slice(max(-before, 0), min(behind, 0) or None) for before, behind in pairs))
        pairs = [[max(width, 0) for width in pair] for pair in pairs]
    return padded(x, pairs, mode, 0.0 if value is None else value)


torch_pad = Composite(
    "pad", "x, pad, mode='constant', value=None",
    "more elements before and behind those along the last axes, the last one first", _padded_from_the_last,
    derivative="g without what was added, or that added up where it came from", dialects="torch",
    samples=((_VECTOR, (1, 2)), (_MATRIX, (1, 0, 0, 2), "constant", 0.5)),
)  # fmt: skip

torch_vander = Composite(
    "vander", "x, N=None", "the matrix with the powers of x as columns, the lowest first",
    lambda x, N=None: vander(x, N, True),  # noqa: N803
    derivative=vander.derivative, dialects="torch.linalg",
    samples=(_VECTOR,),
)  # fmt: skip


def _torch_lerp(x: Any, end: Any, weight: Any) -> Any:
    """Interpolated from the nearer end, as PyTorch does: exact there, and right where the other end is infinite."""
    rise = subtract(end, x)
    near = add(x, multiply(weight, rise))
    return where(less(absolute(weight), 0.5), near, subtract(end, multiply(subtract(1.0, weight), rise)))


torch_lerp = Composite(
    "lerp", lerp.signature, lerp.doc, _torch_lerp,
    node_name=lerp.node_name, derivative=lerp.derivative, dialects="torch",
    samples=((0.7, 1.3, 0.25), ([[0.3, -1.2]], [[0.8], [2.5]], 0.6)),
)  # fmt: skip


torch_meshgrid = Composite(
    "meshgrid", "*tensors, indexing='ij'", "vectors repeated over a grid, the first along the first axis",
    lambda *tensors, indexing="ij": meshgrid(*tensors, indexing=indexing),
    derivative=meshgrid.derivative, dialects="torch",
)  # fmt: skip


def _reduced_svd(x: Any, some: Any = True, compute_uv: Any = True) -> Any:
    if not boolean(compute_uv, "'compute_uv'"):
        raise ShapeError("PyTorch's 'svd' without vectors gives zeros for them", hint="svdvals(A) has the values alone")
    left, values, right = svd(x, not boolean(some, "'some'"))
    return left, values, adjoint(right)


torch_svd = Composite(
    "svd", "A, some=True, compute_uv=True", "the U, the singular values s in falling order and the V with U@diag(s)@V.T = A",
    _reduced_svd,
    derivative=svd.derivative, domain=svd.domain, edges=svd.edges, dialects="torch",
)  # fmt: skip


def _of_all(of: Any) -> Composite:
    def definition(x: Any, axis: Any = None) -> Any:
        return of(x, axis) if axis is not None else reshape(of(ravel(x), 0), arrays.shape(x))

    return Composite(
        of.name, "x, axis=None", f"{of.doc.removesuffix(' along an axis, without overflow')} over all elements, or along an axis",
        definition,
        derivative=of.derivative, dialects="scipy.special",
        samples=(_MATRIX,),
    )  # fmt: skip


scipy_softmax = _of_all(softmax)
scipy_log_softmax = _of_all(log_softmax)


scipy_assoc_laguerre = Composite(
    "assoc_laguerre", "x, n, k=0.0", eval_genlaguerre.doc, lambda x, n, k=0.0: eval_genlaguerre(n, k, x),
    derivative="g times that of eval_genlaguerre(n, k, x)", domain=eval_genlaguerre.domain, dialects="scipy.special",
    samples=((_VECTOR, 2), (_VECTOR, 2, 0.5)),
)  # fmt: skip


def _triangle(A: Any, lower: Any = False) -> Any:  # noqa: N803
    root = cholesky(A)
    return root if boolean(lower, "'lower'") else adjoint(root)


scipy_cholesky = Composite(
    "cholesky", "A, lower=False", "the upper triangular R with R.T@R = A, or the lower L with L@L.T = A", _triangle,
    derivative=f"that of R.T: {cholesky.derivative}", domain=cholesky.domain, edges=cholesky.edges,
    dialects="scipy.linalg",
)  # fmt: skip


def _full_qr(A: Any, mode: Any = "full") -> Any:  # noqa: N803
    rows, columns = arrays.shape(A)[-2:] if len(arrays.shape(A)) > 1 else (0, 0)
    if option(mode, ("full", "r", "economic"), "'mode'") != "economic" and rows > columns:
        raise ShapeError(
            f"of a matrix of {rows} by {columns}, the columns of Q beyond the first {columns} may be any",
            hint="scipy.linalg.qr(A, mode='economic') leaves them out",
        )
    return (qr(A)[1],) if mode == "r" else qr(A)


scipy_qr = Composite(
    "qr", "A, mode='full'", qr.doc, _full_qr,
    derivative=qr.derivative, domain=qr.domain, edges=(*qr.edges, "mode='full' is for matrices that are not tall"),
    dialects="scipy.linalg",
)  # fmt: skip


def _nearest_remainder(x: Any, y: Any) -> Any:
    # The remainder of x by 2*y preserves the parity of the quotient, so that ties are rounded to even.
    rest = fmod(x, multiply(2.0, y))
    return subtract(rest, multiply(y, round_(divide(rest, y))))


def _is_near(a: Any, b: Any, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    larger = maximum(absolute(a), absolute(b))
    near = less_equal(absolute(subtract(a, b)), maximum(multiply(rel_tol, larger), abs_tol))
    # An infinity is close to itself alone.
    return logical_or(logical_and(near, isfinite(larger)), equal(a, b))


math_isclose = Composite(
    "isclose", "a, b, rel_tol=1e-09, abs_tol=0.0", "whether abs(a - b) <= max(rel_tol*max(abs(a), abs(b)), abs_tol)",
    _is_near,
    derivative="none", dialects="math",
    samples=((0.7, 0.7000001),),
)  # fmt: skip

math_remainder = Composite(
    "remainder", "x, y", "x - y*n, n the whole number nearest to x/y, of two the even one", _nearest_remainder,
    derivative="g, -g*n", domain="y != 0", dialects="math",
    samples=((7.3, 2.1), ([-7.3, 1.0], [2.1, 0.75])),
)  # fmt: skip

log_to_base = Composite(
    "log", "x, base", "logarithm of x to a base", lambda x, base: divide(log(x), log(base)),
    derivative="g/(x*log(base)), -g*log(x)/(base*log(base)**2)", domain="x > 0, base > 0, base != 1", dialects="base",
    samples=((0.7, 3.0), ([0.3, 2.5], [2.0, 0.5])),
)  # fmt: skip

jax_clamp = Composite(
    "clamp", "min, x, max", "x held between min and max", lambda min, x, max: clip(x, min, max),
    derivative=clip.derivative, domain=clip.domain, edges=clip.edges, dialects="jax.lax",
    samples=((0.0, 0.7, 1.0),),
)  # fmt: skip


jax_select = Composite(
    "select", "pred, on_true, on_false", "the elements of on_true where pred is true, else those of on_false",
    lambda pred, on_true, on_false: where(pred, on_true, on_false),
    derivative=where.derivative, dialects="jax.lax",
    samples=(([True, False, True, False], _VECTOR, [1.0, 2.0, 3.0, 4.0]),),
)  # fmt: skip


def _of_two(name: str, of: Primitive) -> Composite:
    return Composite(
        name, "x, y", of.doc, lambda x, y: of(x, y),
        derivative=of.derivative, dialects="jax.lax",
        samples=((_VECTOR, [1.0, -2.0, 2.5, 0.25]),),
    )  # fmt: skip


jax_max = _of_two("max", maximum)
jax_min = _of_two("min", minimum)


def _scan(of: Operation) -> Composite:
    def definition(operand: Any, axis: Any = 0, reverse: Any = False) -> Any:
        backward = boolean(reverse, "'reverse'")
        found = of(flip(operand, axis) if backward else operand, axis)
        values = found.values if isinstance(found, Pair) else found
        return flip(values, axis) if backward else values

    return Composite(
        of.name, "operand, axis=0, reverse=False",
        f"{of.name} of NumPy's names along one axis, the values alone, from its end where reverse is true", definition,
        derivative=of.derivative, dialects="jax.lax",
        samples=((_MATRIX,), (_MATRIX, 1, True)),
    )  # fmt: skip


jax_cumsum = _scan(cumsum)
jax_cumprod = _scan(cumprod)
jax_cummax = _scan(cummax)
jax_cummin = _scan(cummin)


sympy_sinc = Composite(
    "sinc", "x", "sin(x)/x, 1 at 0", lambda x: sinc(divide(x, mathematical_constants.pi())),
    derivative="g*(cos(x) - sin(x)/x)/x, 0 at 0", dialects="sympy",
    samples=(_VECTOR,),
)  # fmt: skip
sympy_jn = Composite(
    "jn", "n, z", spherical_jn.doc, lambda n, z: spherical_jn(n, z),
    derivative=spherical_jn.derivative, dialects="sympy",
    samples=((2, _VECTOR),),
)  # fmt: skip
sympy_yn = Composite(
    "yn", "n, z", spherical_yn.doc, lambda n, z: spherical_yn(n, z),
    derivative=spherical_yn.derivative, domain=spherical_yn.domain, dialects="sympy",
    samples=((2, _VECTOR),),
)  # fmt: skip
