"""The exponential of a matrix, over the last two axes.

The rules: R. Mathias, "A chain rule for matrix functions" (1996).
"""

from __future__ import annotations

import itertools
from typing import Any

from gradcli import arrays
from gradcli.primitives import batching
from gradcli.primitives.entries.arithmetic import divide, multiply, zeros_like
from gradcli.primitives.entries.comparisons import maximum
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.matrices import matrix_cost, square_matrix
from gradcli.primitives.entries.powers import power
from gradcli.primitives.entries.shape import concat, matrix_transpose
from gradcli.primitives.entries.statistics import finite_scale
from gradcli.primitives.jet_rules import Coefficients
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.value_costs import of_matrix_exp

SUBJECT = "linear algebra"

_SQUARE = [[2.0, 0.5], [-1.0, 3.0]]
_SYMMETRIC = [[2.0, 0.5], [0.5, 3.0]]


def _matrix_exp_rule(g: Any, _y: Any, x: Any) -> Any:
    # The corner of the exponential of the block triangular matrix [[A.T, g], [0, A.T]] is the derivative of exp at A.T
    # in the direction g. It is linear in g, which is scaled to magnitude 1.
    n = arrays.shape(x)[-1]
    rank = len(arrays.shape(g))
    scale = finite_scale(g, (rank - 2, rank - 1))
    a = matrix_transpose(x)
    blocks = concat([concat([a, divide(g, scale)], -1), concat([zeros_like(a), a], -1)], -2)
    return scale * index(matrix_exp(blocks), (Ellipsis, slice(0, n), slice(n, None)))


def _matrix_exp_series(_primitive: Primitive, _y: Any, x: Any) -> Coefficients:
    """Coefficients of exp(x) from exponentials of block triangular Toeplitz matrices.

    These multiply as truncated power series do, so that the corner of the exponential of the matrix with coefficients 0
    to k is coefficient k of exp(x).
    """
    rank, parts = len(arrays.shape(x)), [x.inner]
    nothing: Any = zeros_like(x.inner)
    scale: Any = 1.0
    for k in itertools.count(1):
        part = x.coefficient(k)
        parts.append(nothing if part is None else part)
        if part is not None:
            scale = maximum(scale, finite_scale(part, (rank - 2, rank - 1)))
        # Dividing the coefficient on diagonal k by scale**k preserves the Toeplitz structure and keeps all entries near
        # 1 or below.
        sizes = itertools.accumulate(itertools.repeat(scale, k), multiply, initial=1.0)
        scaled = [divide(part, size) for part, size in zip(parts, (*sizes,))]
        rows = [concat([*[nothing] * i, *scaled[: k + 1 - i]], -1) for i in range(k + 1)]
        found = matrix_exp(concat(rows, -2))
        corner = index(found, (Ellipsis, slice(0, arrays.shape(x)[-1]), slice(k * arrays.shape(x)[-1], None)))
        yield multiply(corner, power(scale, float(k)))


matrix_exp: Primitive = Primitive(
    "matrix_exp", "A", "the exponential of a square matrix, I + A + A@A/2 + …",
    numbers="analytic",
    forward=lambda xp, x: xp.expm(x),
    vjp=(_matrix_exp_rule,),
    jet=_matrix_exp_series,
    prepare=square_matrix("matrix_exp"),
    elements=matrix_cost(call=2000, matrix=500, element=4, cube=4),
    surcharge=of_matrix_exp,
    batch=batching.trailing,
    derivative="the upper right block of exp([[A.T, g], [0, A.T]])",
    aliases=("expm",),
    samples=((_SQUARE,), ([_SQUARE, _SYMMETRIC],)),
)  # fmt: skip
