"""The exponential, the square root and the logarithm of matrices, over the last two axes.

The rules: R. Mathias, "A chain rule for matrix functions" (1996).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.primitives import batching
from gradcli.primitives.costs import of_matrix_exp
from gradcli.primitives.entries.arithmetic import divide, multiply, zeros_like
from gradcli.primitives.entries.comparisons import maximum
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear_algebra.matrices import matrix_cost, square_matrix
from gradcli.primitives.entries.powers import power
from gradcli.primitives.entries.shape import concat, matrix_transpose
from gradcli.primitives.entries.statistics import finite_scale
from gradcli.primitives.jet_rules import Coefficients
from gradcli.primitives.primitive import Primitive

SUBJECT = "linear algebra"

_SQUARE = [[2.0, 0.5], [-1.0, 3.0]]
_SYMMETRIC = [[2.0, 0.5], [0.5, 3.0]]


def _rule_of(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """The vjp rule of an analytic function of matrices.

    The corner of the function of the block triangular matrix [[A.T, g], [0, A.T]] is its derivative at A.T in the
    direction g. It is linear in g, which is scaled to magnitude 1.
    """

    def rule(g: Any, _y: Any, x: Any) -> Any:
        n = arrays.shape(x)[-1]
        rank = len(arrays.shape(g))
        scale = finite_scale(g, (rank - 2, rank - 1))
        a = matrix_transpose(x)
        blocks = concat([concat([a, divide(g, scale)], -1), concat([zeros_like(a), a], -1)], -2)
        return scale * index(function(blocks), (Ellipsis, slice(0, n), slice(n, None)))

    return rule


def _series_of(function: Callable[[Any], Any]) -> Callable[..., Coefficients]:
    """The jet rule of an analytic function of matrices: coefficients from block triangular Toeplitz matrices.

    These multiply as truncated power series do, so that the corner of the function of the matrix with coefficients 0 to
    k is coefficient k of the function.
    """

    def series(_primitive: Primitive, _y: Any, x: Any) -> Coefficients:
        rank, parts = len(arrays.shape(x)), [x.inner]
        nothing: Any = zeros_like(x.inner)
        scale: Any = 1.0
        for k in itertools.count(1):
            part = x.coefficient(k)
            parts.append(nothing if part is None else part)
            if part is not None:
                scale = maximum(scale, finite_scale(part, (rank - 2, rank - 1)))
            # Dividing the coefficient on diagonal k by scale**k preserves the Toeplitz structure and keeps all entries
            # near 1 or below.
            sizes = itertools.accumulate(itertools.repeat(scale, k), multiply, initial=1.0)
            scaled = [divide(part, size) for part, size in zip(parts, (*sizes,))]
            rows = [concat([*[nothing] * i, *scaled[: k + 1 - i]], -1) for i in range(k + 1)]
            found = function(concat(rows, -2))
            corner = index(found, (Ellipsis, slice(0, arrays.shape(x)[-1]), slice(k * arrays.shape(x)[-1], None)))
            yield multiply(corner, power(scale, float(k)))

    return series


matrix_exp: Primitive = Primitive(
    "matrix_exp", "A", "the exponential of a square matrix, I + A + A@A/2 + …",
    numbers="analytic",
    forward=lambda xp, x: xp.expm(x),
    vjp=(_rule_of(lambda x: matrix_exp(x)),),
    jet=_series_of(lambda x: matrix_exp(x)),
    prepare=square_matrix("matrix_exp"),
    elements=matrix_cost(call=2000, matrix=500, element=4, cube=4),
    surcharge=of_matrix_exp,
    batch=batching.trailing,
    derivative="the upper right block of exp([[A.T, g], [0, A.T]])",
    aliases=("expm",),
    samples=((_SQUARE,), ([_SQUARE, _SYMMETRIC],)),
)  # fmt: skip


sqrtm: Primitive = Primitive(
    "sqrtm", "A", "the principal square root X of a square matrix, with X@X = A",
    numbers="analytic",
    forward=lambda xp, x: xp.sqrtm(x),
    vjp=(_rule_of(lambda x: sqrtm(x)),),
    jet=_series_of(lambda x: sqrtm(x)),
    prepare=square_matrix("sqrtm"),
    elements=matrix_cost(call=3000, matrix=3000, row=20, element=8, cube=30),
    fails=True,
    batch=batching.trailing,
    derivative="the W with X.T@W + W@X.T = g",
    domain="no eigenvalue is 0; of a real matrix none is negative either",
    edges=("nan for a real matrix whose square root is not real; write sqrtm(A + 0j)",),
    samples=((_SQUARE,), ([_SQUARE, _SYMMETRIC],)),
)  # fmt: skip

logm: Primitive = Primitive(
    "logm", "A", "the principal logarithm of a square matrix, whose exponential is A",
    numbers="analytic",
    forward=lambda xp, x: xp.logm(x),
    vjp=(_rule_of(lambda x: logm(x)),),
    jet=_series_of(lambda x: logm(x)),
    prepare=square_matrix("logm"),
    elements=matrix_cost(call=10_000, matrix=10_000, row=40, element=8, cube=60),
    fails=True,
    batch=batching.trailing,
    derivative="the upper right block of logm([[A.T, g], [0, A.T]])",
    domain="no eigenvalue is 0; of a real matrix none is negative either",
    edges=("nan for a singular matrix, and for a real one whose logarithm is not real; write logm(A + 0j)",),
    samples=((_SQUARE,), ([_SQUARE, _SYMMETRIC],)),
)  # fmt: skip
