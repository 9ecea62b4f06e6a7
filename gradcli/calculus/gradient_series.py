"""Expands gradients along directions by Taylor series: second derivatives, and third derivatives with a repeated
direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.kinds import batch
from gradcli.kinds.jets import Jet
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.conversions import reshape


class DirectionalDerivatives(NamedTuple):
    """Directional derivatives of the gradients of a function from n numbers to m numbers, along k directions.

    `second` is the Hessian of each value times each direction, `[m, k, n]`; `third` has the third derivatives by each
    direction twice, `[m, k, n]`.
    """

    second: Any
    third: Any


def gradients_along(function: Callable[[Any], Any], point: Any, directions: Any, size: int) -> DirectionalDerivatives:
    """Expand the gradients of the `size` elements of `function(point)` along `directions`, by reverse mode over Taylor
    series of order 2.

    `point` is a vector `[n]`, `directions` is `[k, n]`. As many directions are computed at once as memory permits.
    Raises NotImplementedError and EvaluationError where an operation has no series or fails.
    """
    np = arrays.numpy_namespace()
    shape = (size, *directions.shape)
    limits.charge(2 * size * directions.size)
    second, third = np.zeros(shape), np.zeros(shape)
    at_once = max(1, batch.MAX_ELEMENTS // max(1, point.size))
    for start in range(0, len(directions), at_once):
        chunk = directions[start : start + at_once]
        nesting = batch.new_batch_id()
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
    return DirectionalDerivatives(second, third)
