"""The information in data about parameters: their covariances, and the combinations of them that the data do not
determine.

Arrays have a leading axis of fits, so that many small fits take as few calls as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.models.fitting.problem import batched_matrices

# Singular values of the scaled Jacobian below this, relative to the largest, are rounding errors.
RANK_TOLERANCE = 1e-13
# Frobenius norm of the inverse of a matrix with columns of length 1 below which that is as exact as one from singular
# values.
_MAX_INVERSE_NORM = 1e8


class Information:
    """The information on the p parameters of g fits, whose scaled Jacobians have the triangular factors `scaled`
    `[g, p, p]`.

    The columns of `axes` `[g, p, p]` are changes of the parameters that change the rows by orthonormal vectors; those
    that are not determined are 0. `covariance` `[g, p, p]` is the inverse of the information: infinite on the diagonal
    for parameters that are not determined, and nan between these and others. `null[i]` `[k, p]`, with k from 0 on, are
    the combinations of parameters that fit i does not determine, and `is_determined` `[g]` says where there is none.
    """

    def __init__(self, scaled: Any, axes: Any, covariance: Any, null: Sequence[Any], is_determined: Any) -> None:
        self._scaled = scaled
        self.axes, self.covariance, self.null, self.is_determined = axes, covariance, null, is_determined

    @cached_property
    def condition(self) -> Any:
        """The condition numbers `[g]` of the Jacobians with columns scaled to length 1; nan where there are no
        columns."""
        if not self._scaled.shape[-1]:
            return np.full(len(self._scaled), np.nan)
        lengths = np.linalg.svd(self._scaled, compute_uv=False)
        with np.errstate(divide="ignore", invalid="ignore"):
            return lengths[:, 0] / np.where(self.is_determined, lengths[:, -1], 0.0)

    def chosen(self, fits: slice) -> Information:
        """The information of some of the fits."""
        parts = self._scaled, self.axes, self.covariance, self.null, self.is_determined
        return Information(*(part[fits] for part in parts))


def factor_of_rows(jacobian: Any) -> Any:
    """The factors R `[g, p, p]` of the QR decompositions of `[g, n, p]`; with fewer rows than columns the last rows are
    0."""
    g, n, p = jacobian.shape
    if n < p:
        jacobian = np.concatenate([jacobian, np.zeros((g, p - n, p))], axis=1)
    return np.linalg.qr(jacobian, mode="r")


def factor_of_matrix(information: Any) -> Any:
    """Upper triangular factors R with RᵀR equal to the matrices `[g, p, p]`, whose negative eigenvalues count as 0."""
    scales = _scales(np.sqrt(np.maximum(np.einsum("gii->gi", information), 0.0)))
    values, vectors = np.linalg.eigh(information / (scales[:, :, None] * scales[:, None, :]))
    roots = np.sqrt(np.maximum(values, 0.0))
    return factor_of_rows(roots[:, :, None] * np.swapaxes(vectors, 1, 2) * scales[:, None, :])


def information(factor: Any, rows: int) -> Information:
    """The information RᵀR of fits, from upper triangular factors R `[g, p, p]`; `rows` is the number of rows that these
    come from. A factor that is not finite determines nothing."""
    factor = np.where(np.isfinite(factor).all(axis=(1, 2))[:, None, None], factor, 0.0)
    scales = _scales(np.linalg.norm(factor, axis=1))
    scaled = factor / scales[:, None, :]
    found = batched_matrices.inverse(batched_matrices.batch_last(scaled))
    axes = np.ascontiguousarray(found.transpose(2, 0, 1)) / scales[:, :, None]
    null = [np.zeros((0, factor.shape[-1]))] * len(factor)
    is_determined = np.ones(len(factor), "bool")
    # Columns have length 1: with an inverse this short all parameters are determined.
    with np.errstate(all="ignore"):
        left = np.flatnonzero(~(batched_matrices.squared_norms(found).sum(0) < _MAX_INVERSE_NORM**2))
    if not len(left):
        return Information(scaled, axes, axes @ axes.mT, null, is_determined)
    axes[left], open_ones = _axes_and_null(scaled[left], scales[left], rows)
    covariance = axes @ axes.mT
    for i, across in zip(left.tolist(), open_ones):
        if len(across):
            null[i], is_determined[i] = across, False
            _mark_undetermined(covariance[i], across.any(axis=0))
    return Information(scaled, axes, covariance, null, is_determined)


def _axes_and_null(scaled: Any, scales: Any, rows: int) -> tuple[Any, list[Any]]:
    """The axes, and the combinations of parameters that are not determined, by singular value decomposition."""
    _, lengths, directions = np.linalg.svd(scaled)
    nothing = lengths <= max(RANK_TOLERANCE, rows**0.5 * np.finfo(float).eps) * lengths[:, :1]
    weighted = directions / np.where(nothing, np.inf, lengths)[:, :, None] / scales[:, None, :]
    open_ones = [
        np.where(np.abs(across) > _MIN_COMPONENT, across / own, 0.0)
        for across, own in zip((every[none] for every, none in zip(directions, nothing)), scales)
    ]
    return weighted.mT, open_ones


# A parameter whose component of a direction is below this does not take part in it.
_MIN_COMPONENT = 1e-6
# Ratio of the smallest to the largest coefficient below which a combination is written in units of the estimates.
_MIN_COEFFICIENT_RATIO = 1e-3


def _mark_undetermined(covariance: Any, undetermined: Any) -> None:
    covariance[undetermined] = np.nan
    covariance[:, undetermined] = np.nan
    covariance[undetermined, undetermined] = np.inf


def _scales(lengths: Any) -> Any:
    return np.where(lengths > 0, lengths, 1.0)


def correlation(covariance: Any) -> Any:
    """The correlations of covariances `[…, p, p]`: nan where a variance is 0 or infinite, but 1 on the diagonal."""
    errors = np.sqrt(np.einsum("...ii->...i", covariance))
    with np.errstate(all="ignore"):
        found = covariance / errors[..., :, None] / errors[..., None, :]
    found[..., range(found.shape[-1]), range(found.shape[-1])] = 1.0
    return found


def combination_text(direction: Any, estimates: Any, labels: Sequence[str]) -> str:
    """A combination of parameters as a formula whose largest coefficient is 1: `a - 0.5*b`. Where the coefficients
    differ too much, parameters are divided by the sizes of their estimates: `a/1e-09 - b/3e+08`."""
    taking = np.flatnonzero(direction)
    coefficients = direction[taking]
    in_units = np.abs(coefficients).max() * _MIN_COEFFICIENT_RATIO > np.abs(coefficients).min()
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
