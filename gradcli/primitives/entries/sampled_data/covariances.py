"""Covariance and correlation matrices."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import ShapeError
from gradcli.primitives.axes import boolean, one_number_or_tensor
from gradcli.primitives.bind import Kind, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, divide, multiply, subtract
from gradcli.primitives.entries.comparisons import clip, greater, maximum, where
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.indexing import diag
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.powers import sqrt
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import concat, matrix_transpose, squeeze
from gradcli.primitives.operation import Composite

SUBJECT = "reductions"

_ROWS = [[1.0, 2.0, 4.0, 3.0], [0.5, -1.0, 2.0, 1.5]]


def _variables(x: Any, rowvar: Any) -> Any:
    """`x` as a matrix with a row for each variable."""
    shape = arrays.shape(x)
    if len(shape) > 2:
        raise ShapeError(f"covariances are those of the rows of a matrix, not of a tensor of {list(shape)}")
    if len(shape) < 2:
        return reshape(x, (1, -1))
    return x if boolean(rowvar, "'rowvar'") else matrix_transpose(x)


def _cov(
    x: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    correction: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    rows = _variables(x, rowvar)
    rows = rows if y is None else concat([rows, _variables(y, rowvar)], 0)
    if correction is None:
        correction = 0.0 if boolean(bias, "'bias'") else 1.0
    correction = one_number_or_tensor(correction, "a correction")
    given = [w for w in (fweights, aweights) if w is not None]
    check_real("cov", *given)
    weights = multiply(*given) if len(given) == 2 else given[0] if given else None
    total = float(arrays.shape(rows)[1]) if weights is None else sum_(weights)
    weighted = rows if weights is None else multiply(rows, weights)
    deviation = subtract(rows, divide(sum_(weighted, 1, True), total))
    weighted = deviation if weights is None else multiply(deviation, weights)
    # As in NumPy and PyTorch, `correction` is scaled by the weighted mean of `aweights`.
    unit = 1.0 if aweights is None else divide(sum_(multiply(weights, aweights)), total)
    freedom = subtract(total, multiply(correction, unit))
    freedom = maximum(freedom, 0.0) if isinstance(freedom, Kind) else max(float(freedom), 0.0)
    if arrays.is_complex(weighted):
        # Imported here, because only programs with complex numbers need it.
        from gradcli.primitives.entries.elementwise.complex_numbers import conj

        weighted = conj(weighted)
    return squeeze(divide(matmul(deviation, matrix_transpose(weighted)), freedom))


_SIGNATURE = "x, y=None, rowvar=True"
cov = Composite(
    "cov", f"{_SIGNATURE}, bias=False, correction=None, fweights=None, aweights=None",
    "covariances of variables, a row for each with its observations, by n - correction, which is 1 unless said; their variance, of one",
    _cov, subject="reductions",
    derivative="(g + g.T)@(x - mean(x))/(n - correction)",
    edges=("fweights count observations, aweights say their relative importance", "inf or nan where n <= correction"),
    samples=((_ROWS,), (_ROWS[0],), (_ROWS, [1.0, 0.0, -1.0, 0.5]), (_ROWS, None, True, True), (_ROWS, None, True, False, 1, None, [0.5, 1.0, 0.7, 0.2])),
)  # fmt: skip


def _corrcoef(x: Any, y: Any = None, rowvar: Any = True) -> Any:
    covariances = _cov(x, y, rowvar)
    if not arrays.shape(covariances):
        return divide(covariances, covariances)
    variances = diag(covariances)
    deviations = sqrt(absolute(variances) if arrays.is_complex(variances) else variances)
    found = divide(divide(covariances, reshape(deviations, (-1, 1))), deviations)
    if is_exact() or arrays.is_complex(found):
        return found
    # Values outside [-1, 1] are due to rounding.
    beyond = greater(multiply(constant(found), constant(found)), 1.0)
    return where(beyond, clip(constant(found), -1.0, 1.0), found)


corrcoef = Composite(
    "corrcoef", _SIGNATURE, "correlations of variables, a row for each with its observations", _corrcoef,
    subject="reductions",
    derivative="that of cov(x)[i, j]/sqrt(cov(x)[i, i]*cov(x)[j, j])",
    domain="smooth where no variance is 0",
    samples=((_ROWS,), (_ROWS, [1.0, 0.0, -1.0, 0.5])),
)  # fmt: skip
