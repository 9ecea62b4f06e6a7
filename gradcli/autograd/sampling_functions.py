"""Sampling from tensors and searching of their elements, with PyTorch's functions; the results are in no graph."""

from __future__ import annotations

import itertools
from typing import Any

from gradcli import arrays
from gradcli.autograd import generators
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import NotBatchableError, ShapeError, expect
from gradcli.primitives.axes import boolean, integer, normalize_axis
from gradcli.primitives.bind import Kind, constant
from gradcli.primitives.entries.indexing import index


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


def detach(input: Any) -> Any:
    """The values of a tensor as a leaf without history."""
    expect(input, TensorBase, "detach takes a tensor")
    return input.detach()
