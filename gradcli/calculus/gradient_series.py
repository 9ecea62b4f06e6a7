"""Gradients along directions, as series: second derivatives, and of the third those that have a direction twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.kinds import batch
from gradcli.kinds.taylor import Jet
from gradcli.primitives.conversions import reshape


class Along(NamedTuple):
    """For a function of n numbers with m numbers as its value: the Hessian of each times each of k directions,
    `[m, k, n]`, and its third derivative by each direction twice, `[m, k, n]`."""

    second: Any
    third: Any


def gradients_along(function: Callable[[Any], Any], point: Any, directions: Any, size: int) -> Along:
    """Expand the gradients of the `size` elements of what a `function` makes of the vector `point` `[n]` along
    `directions` `[k, n]`, by reverse mode over series of order 2; all directions at once, as far as memory allows it.

    Raises NotImplementedError and EvaluationError where something has no series or fails in it.
    """
    np = arrays.numpy_namespace()
    shape = (size, *directions.shape)
    limits.charge(2 * size * directions.size)
    second, third = np.zeros(shape), np.zeros(shape)
    at_once = max(1, batch.MOST_ELEMENTS // max(1, point.size))
    for start in range(0, len(directions), at_once):
        chunk = directions[start : start + at_once]
        nesting = batch.new_nesting()
        leaf = Tensor(Jet([point, batch.Batched(chunk, nesting)], 2)).requires_grad_()
        with batch.row_by_row(nesting):
            value = function(leaf)
            if not isinstance(value, Tensor) or not value.requires_grad:
                break
            elements = reshape(value, (size,))
            for row in range(size):
                (found,) = gradients(elements[row], [leaf], retain_graph=True)
                series = found.inner.coefficients if found is not None and isinstance(found.inner, Jet) else ()
                for target, factor, coefficient in zip((second, third), (1.0, 2.0), series[1:]):
                    rows = batch.unbatched(coefficient, nesting, len(chunk))
                    target[row, start : start + len(chunk)] = factor * np.asarray(rows)
    return Along(second, third)
