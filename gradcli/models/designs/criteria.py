"""The criteria of designs: functions of the information matrix, with their derivatives by the weights of points."""

from __future__ import annotations

from typing import Any

import numpy as np


class Criterion:
    """A criterion as the convex function h(M) of the p×p information matrix that is least for the best design; h falls
    by log t where M grows t-fold, so that the efficiency of a design is exp(h of the best - h).

    For h the matrix A(M) is such that gᵀAg is minus the derivative of h by the weight of a row with the gradient g, and
    the mean of gᵀAg over the design is 1. By the General Equivalence Theorem (J. Kiefer, Annals of Statistics 2 (1974)
    849) a design is the best one if gᵀAg is at most 1 in all of the region; and 1/max gᵀAg is a lower bound of its
    efficiency.
    """

    def values(self, matrices: Any) -> Any:
        """h `[…]` of matrices `[…, p, p]`, infinite where they are singular."""
        raise NotImplementedError

    def value(self, matrix: Any) -> float:
        """h of one matrix."""
        return float(self.values(matrix))

    def slope(self, matrix: Any) -> Any:
        """A `[p, p]`."""
        raise NotImplementedError

    def curvature(self, matrix: Any, gradients: Any) -> Any:
        """The second derivatives `[m, m]` of h by the weights of rows with the gradients `[m, p]`."""
        raise NotImplementedError


class DCriterion(Criterion):
    """h = -log(det M)/p."""

    def values(self, matrices: Any) -> Any:
        sign, logarithm = np.linalg.slogdet(matrices)
        return np.where(sign > 0, -logarithm / matrices.shape[-1], np.inf)

    def slope(self, matrix: Any) -> Any:
        return np.linalg.inv(matrix) / len(matrix)

    def curvature(self, matrix: Any, gradients: Any) -> Any:
        products = gradients @ np.linalg.inv(matrix) @ gradients.T
        return products**2 / len(matrix)


class ACriterion(Criterion):
    """h = log tr(K M⁻¹), the logarithm of the sum of the variances of the parameters for a matrix K `[p, p]`, which
    converts M to their units."""

    def __init__(self, units: Any) -> None:
        self._units = units

    def values(self, matrices: Any) -> Any:
        lengths, vectors = np.linalg.eigh(matrices)
        regular = lengths[..., 0] > np.finfo(float).eps * lengths[..., -1]
        inverse = 1 / np.where(regular[..., None], lengths, 1.0)
        total = np.einsum("...ij,ik,...kj,...j->...", vectors, self._units, vectors, inverse, optimize=True)
        return np.where(regular, np.log(total), np.inf)

    def slope(self, matrix: Any) -> Any:
        inverse = np.linalg.inv(matrix)
        return inverse @ self._units @ inverse / (self._units * inverse).sum()

    def curvature(self, matrix: Any, gradients: Any) -> Any:
        products = gradients @ np.linalg.inv(matrix) @ gradients.T
        weighted = gradients @ self.slope(matrix) @ gradients.T
        rises = np.diagonal(weighted)
        return 2 * products * weighted - np.outer(rises, rises)
