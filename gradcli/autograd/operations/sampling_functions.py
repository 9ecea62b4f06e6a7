"""Sampling from tensors and searching of their elements, with PyTorch's functions; the results are in no graph."""

from __future__ import annotations

import itertools
from typing import Any

from gradcli import arrays
from gradcli.autograd import generators
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import CallError, NotBatchableError, ShapeError, expect
from gradcli.primitives.axes import boolean, integer, integer_array, normalize_axis
from gradcli.primitives.bind import Kind, concrete, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add, identity
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.indexing import scatter as put_at
from gradcli.primitives.entries.manipulation.functional_update import set_at
from gradcli.primitives.entries.manipulation.gather_scatter import take_along_axis
from gradcli.primitives.entries.sampled_data.order_statistics import Pair
from gradcli.primitives.entries.shape import ravel, squeeze


def bernoulli(input: Any, p: Any = None, *, generator: Any = None) -> Any:
    """1 with the probability `p` (by default the element itself), else 0, in the dtype of `input`."""
    expect(input, TensorBase, "bernoulli takes a tensor")
    dtype = input.dtype if input.is_floating_point() else "float64"
    points = input.made(generators.uniform(input.shape, dtype, generator=generator))
    return (points < (input.detach() if p is None else p)).to(input.dtype)


def multinomial(input: Any, num_samples: Any, replacement: Any = False, *, generator: Any = None) -> Any:
    """`num_samples` class indices, drawn with probabilities proportional to the elements of each row."""
    expect(input, TensorBase, "multinomial takes a tensor")
    weights, count = input.detach(), integer(num_samples, "a number of samples")
    if weights.ndim not in (1, 2) or not bool((weights >= 0).all()) or not bool((weights.sum(-1) > 0).all()):
        raise ShapeError("multinomial() takes rows of weights that are not negative, and not all 0")
    if boolean(replacement, "'replacement'") and count > 1:
        shares = (weights / weights.sum(-1, keepdims=True)).cumsum(-1)
        points = weights.made(generators.uniform((*weights.shape[:-1], count), "float64", generator=generator))
        below = index(shares, (..., None, slice(None))) < index(points, (..., None))
        return below.long().sum(-1).clip(max=weights.shape[-1] - 1)
    if count > weights.shape[-1]:
        raise ShapeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    waits = weights.made(generators.exponential(weights.shape, weights.dtype, generator=generator))
    return (weights / waits).topk(count)[1]


def unique(
    input: Any, sorted: Any = True, return_inverse: Any = False, return_counts: Any = False, dim: Any = None
) -> Any:
    """The distinct elements, or slices along an axis, in ascending order.

    With `return_inverse` also the index of each element among them is returned, with `return_counts` how often each
    occurs.
    """
    expect(input, TensorBase, "unique takes a tensor")
    given = constant(input)
    if isinstance(given, Kind):
        raise NotBatchableError("how many elements differ depends on their numbers, which are not known here")
    axis = None if dim is None else normalize_axis(dim, input.ndim)
    asked = (boolean(return_inverse, "'return_inverse'"), boolean(return_counts, "'return_counts'"))
    found = arrays.numpy_namespace().unique(arrays.to_numpy(given), False, *asked, axis=axis)
    if not any(asked):
        return input.made(arrays.like_library_of(found, given))
    return tuple(input.made(arrays.like_library_of(part, given)) for part in found)


def combinations(input: Any, r: Any = 2, with_replacement: Any = False) -> Any:
    """The combinations of `r` elements of a vector, a row for each; with repeated elements if `with_replacement`."""
    expect(input, TensorBase, "combinations takes a tensor")
    if input.ndim != 1:
        raise ShapeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = [*choose(range(len(input)), r)]
    return index(input, (arrays.numpy_namespace().asarray(rows, "int64").reshape(len(rows), r),))


def unique_consecutive(input: Any, return_inverse: Any = False, return_counts: Any = False, dim: Any = None) -> Any:
    """The elements of the flat tensor, or slices along an axis, without those that equal the one before; see `unique`."""
    expect(input, TensorBase, "unique_consecutive takes a tensor")
    given = arrays.to_numpy(constant(input))
    axis = None if dim is None else normalize_axis(dim, input.ndim)
    xp = arrays.numpy_namespace()
    rows = given.reshape(-1) if axis is None else xp.moveaxis(given, axis, 0)
    flat = rows.reshape(len(rows), -1)
    first = xp.ones(len(flat), bool)
    first[1:] = (flat[1:] != flat[:-1]).any(1)
    starts = xp.nonzero(first)[0]
    distinct = rows[first] if axis is None else xp.moveaxis(rows[first], 0, axis)
    found = [input.made(arrays.like_library_of(distinct, constant(input)))]
    if boolean(return_inverse, "'return_inverse'"):
        number = xp.cumsum(first) - 1
        found.append(input.made(number.reshape(given.shape) if axis is None else number))
    if boolean(return_counts, "'return_counts'"):
        found.append(input.made(xp.diff(xp.append(starts, len(flat)))))
    return found[0] if len(found) == 1 else tuple(found)


def isin(elements: Any, test_elements: Any, *, assume_unique: Any = False, invert: Any = False) -> Any:
    """True for each element that is among `test_elements`; with `invert`, for each that is not."""
    boolean(assume_unique, "'assume_unique'")
    given = next((x for x in (elements, test_elements) if isinstance(x, TensorBase)), None)
    if given is None:
        raise CallError("isin takes a tensor")
    one, other = (arrays.to_numpy(constant(x)) for x in (elements, test_elements))
    found = arrays.numpy_namespace().isin(one, other, invert=boolean(invert, "'invert'"))
    return given.made(arrays.tidy(found))


def histc(input: Any, bins: Any = 100, min: Any = 0, max: Any = 0) -> Any:
    """The numbers of elements in `bins` intervals of equal length between `min` and `max`, or if both are 0 between the
    smallest and the largest element."""
    expect(input, TensorBase, "histc takes a tensor")
    values, count = arrays.to_numpy(constant(input)).reshape(-1), integer(bins, "a number of bins")
    if count < 1 or max < min:
        raise ShapeError("histc() takes at least one bin, and a max that is not below min")
    low, high = (min, max) if min or max or not values.size else (values.min(), values.max())
    low, high = (low, high) if low < high else (low - 1, high + 1)
    counts = arrays.numpy_namespace().histogram(values[(values >= low) & (values <= high)], count, (low, high))[0]
    return input.made(arrays.astype(counts, input.dtype))


def fill_diagonal(input: Any, fill_value: Any, wrap: Any = False) -> Any:
    """A tensor of at least two axes with a value on its main diagonal; with `wrap`, the diagonal of a tall matrix goes on
    from its top after a row below the square."""
    expect(input, TensorBase, "fill_diagonal takes a tensor")
    sizes = input.shape
    if len(sizes) < 2 or (len(sizes) > 2 and len(set(sizes)) > 1):
        raise ShapeError("fill_diagonal takes a matrix, or a tensor with equal sizes along all axes")
    xp = arrays.numpy_namespace()
    diagonal = xp.zeros(sizes, bool)
    xp.fill_diagonal(diagonal, True, wrap=boolean(wrap, "'wrap'"))
    return where(diagonal, fill_value, input)


def detach(input: Any) -> Any:
    """The values of a tensor as a leaf without history."""
    expect(input, TensorBase, "detach takes a tensor")
    return input.detach()


def put(input: Any, index: Any, source: Any, accumulate: Any = False) -> Any:
    """`input` with the elements of `source` at positions in the flat tensor, or added there if `accumulate`; of several
    elements that go to one place, the last stays."""
    expect(input, TensorBase, "put takes a tensor")
    places = integer_array(concrete(index), "an index").reshape(-1)
    values, flat = ravel(source), ravel(input)
    if arrays.size(values) != places.size:
        raise ShapeError(
            f"put_(): Expected source and index to have the same number of elements, but got "
            f"{arrays.size(values)} and {places.size}"
        )
    key = (places,)
    changed = (
        add(flat, put_at(values, key, flat.shape)) if boolean(accumulate, "'accumulate'") else set_at(flat, key, values)
    )
    return reshape(changed, input.shape)


def mode(input: Any, dim: Any = -1, keepdim: Any = False) -> Pair:
    """The element that occurs most often along an axis, the smallest of several, and the index of its last occurrence."""
    expect(input, TensorBase, "mode takes a tensor")
    if not input.ndim:
        return Pair(identity(input), input.made(arrays.asarray(0)))
    xp, axis = arrays.numpy_namespace(), normalize_axis(dim, input.ndim)
    rows = xp.moveaxis(arrays.to_numpy(concrete(input)), axis, -1)
    if not rows.shape[-1]:
        raise ShapeError("mode needs at least one element along the axis")
    places = xp.apply_along_axis(_place_of_mode, -1, rows)
    indices = input.made(arrays.asarray(xp.expand_dims(places, axis)))
    values = take_along_axis(input, indices, axis)
    if boolean(keepdim, "'keepdim'"):
        return Pair(values, indices)
    return Pair(squeeze(values, axis), squeeze(indices, axis))


def _place_of_mode(row: Any) -> Any:
    xp = arrays.numpy_namespace()
    values, counts = xp.unique(row, return_counts=True)
    return xp.flatnonzero(row == values[counts.argmax()])[-1]
