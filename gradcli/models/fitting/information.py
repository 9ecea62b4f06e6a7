"""What data say about parameters: their covariances, and the combinations of them that the data do not determine.

Arrays here have a leading axis of fits, so that many small ones take as few calls as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# Directions in which scaled columns are shorter than this, beside the longest, are rounding alone.
NOTHING = 1e-13


class Information(NamedTuple):
    """Of g fits with p parameters each.

    `axes` `[g, p, p]` are the parameters' changes, as columns, that change the rows by orthogonal vectors of length 1:
    those that are not determined have length 0. `covariance` `[g, p, p]` is the inverse of the information: infinite on the diagonal for parameters that are not
    determined, and nan between these and others. `condition` `[g]` is that of the matrix whose columns have length 1,
    and `null[i]` the combinations of parameters that fit i leaves open, `[k, p]`, k of 0 and more.
    """

    axes: Any
    covariance: Any
    condition: Any
    null: Sequence[Any]


def factor_of_rows(jacobian: Any) -> Any:
    """R of the QR factors of `[g, n, p]`, as `[g, p, p]`; with fewer rows than columns the last rows are 0."""
    g, n, p = jacobian.shape
    if n < p:
        jacobian = np.concatenate([jacobian, np.zeros((g, p - n, p))], axis=1)
    return np.linalg.qr(jacobian, mode="r")


def factor_of_matrix(information: Any) -> Any:
    """A matrix R for each of `[g, p, p]`, positive semidefinite, so that this is Rᵀ R; parts where it is not are 0."""
    scales = _scales(np.sqrt(np.maximum(np.einsum("gii->gi", information), 0.0)))
    values, vectors = np.linalg.eigh(information / (scales[:, :, None] * scales[:, None, :]))
    roots = np.sqrt(np.maximum(values, 0.0))
    return roots[:, :, None] * np.swapaxes(vectors, 1, 2) * scales[:, None, :]


def information(factor: Any, rows: int) -> Information:
    """That of fits with the information Rᵀ R, for R as `[g, p, p]`, found from so many rows."""
    scales = _scales(np.linalg.norm(factor, axis=1))
    _, lengths, directions = np.linalg.svd(factor / scales[:, None, :])
    nothing = lengths <= max(NOTHING, rows**0.5 * np.finfo(float).eps) * lengths[:, :1]
    with np.errstate(divide="ignore"):
        condition = lengths[:, 0] / np.where(nothing[:, -1], 0.0, lengths[:, -1])
    weighted = directions / np.where(nothing, np.inf, lengths)[:, :, None] / scales[:, None, :]
    axes = np.swapaxes(weighted, 1, 2)
    covariance = axes @ weighted
    null = [np.zeros((0, factor.shape[-1]))] * len(factor)
    for i in np.flatnonzero(nothing.any(axis=1)).tolist():
        across = directions[i][nothing[i]]
        null[i] = np.where(np.abs(across) > _SHARE, across / scales[i], 0.0)
        _open(covariance[i], null[i].any(axis=0))
    return Information(axes, covariance, condition, null)


# A parameter with less than this of a direction does not take part in it.
_SHARE = 1e-6
# Coefficients that differ by more than this are of parameters in units that are far apart.
_ALIKE = 1e-3


def _open(covariance: Any, undetermined: Any) -> None:
    covariance[undetermined] = np.nan
    covariance[:, undetermined] = np.nan
    covariance[undetermined, undetermined] = np.inf


def _scales(lengths: Any) -> Any:
    return np.where(lengths > 0, lengths, 1.0)


def correlation(covariance: Any) -> Any:
    """That of `[…, p, p]`, nan where a variance is 0 or infinite, but 1 on the diagonal."""
    errors = np.sqrt(np.einsum("...ii->...i", covariance))
    with np.errstate(all="ignore"):
        found = covariance / errors[..., :, None] / errors[..., None, :]
    found[..., range(found.shape[-1]), range(found.shape[-1])] = 1.0
    return found


def combination_text(direction: Any, estimates: Any, labels: Sequence[str]) -> str:
    """A combination of parameters as a formula, its largest coefficient 1: `a - 0.5*b`; where their estimates are too far
    from each other for that, of what they are in units of these: `a/1e-09 - b/3e+08`."""
    taking = np.flatnonzero(direction)
    coefficients = direction[taking]
    in_units = np.abs(coefficients).max() * _ALIKE > np.abs(coefficients).min()
    sizes = np.where(estimates[taking] == 0, 1.0, np.abs(estimates[taking]))
    if in_units:
        coefficients = coefficients / sizes
    coefficients = coefficients / coefficients[np.argmax(np.abs(coefficients))]
    text = ""
    for place, coefficient, size in zip(taking.tolist(), coefficients.tolist(), sizes.tolist()):
        factor = f"{abs(coefficient):.3g}"
        term = ("" if factor == "1" else f"{factor}*") + labels[place] + (f"/{size:.3g}" if in_units else "")
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {term}" if text else f"-{term}" if sign == "-" else term
    return text
