"""The likelihood of a linear model with random effects, which are integrated out exactly: maximum likelihood and REML.

D. Bates, M. Mächler, B. Bolker and S. Walker, Fitting linear mixed-effects models using lme4, J. Stat. Softw. 67 (2015).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.errors import EvaluationError
from gradcli.models.fitting.effects.effect_structure import Covariances
from gradcli.models.fitting.effects.row_designs import RowDesign
from gradcli.models.fitting.statistics.information import combination_text, factor_of_rows, information
from gradcli.named_tuples import NamedTuple

# The squares that are left of the responses, relative to those about the model without random effects, up to which
# nothing is left.
_NOTHING = 1e-24


class _Moments(NamedTuple):
    """The moments that the covariances determine: `inner` and `outer` are ZᵀV⁻¹Z, a matrix, and ZᵀV⁻¹E `[Q, p + 1]`,
    where V is the covariance matrix of the responses over the residual variance, and E has the predictors and the
    responses; `among` is EᵀV⁻¹E, and `log_det` log det V."""

    inner: Any
    outer: Any
    among: Any
    log_det: float


class LinearLikelihood:
    """Minus the log-likelihood as a function of the Cholesky factors of the covariances over the residual standard
    deviation, which as the other parameters has its best value.

    `predictors` `[n, p]`, `responses` `[n]` and the slopes `[m, n]` of the row variables are divided by the standard
    deviations of the rows, whose logarithms sum to `log_sigma`.
    """

    def __init__(
        self,
        design: RowDesign,
        covariances: Covariances,
        slopes: Any,
        predictors: Any,
        responses: Any,
        labels: Any,
        log_sigma: float,
        *,
        restricted: bool,
    ) -> None:
        self._covariances, self._structure = covariances, design.structure
        self._restricted = restricted
        n, p = predictors.shape
        self.dof = n - p if restricted else n
        found = information(factor_of_rows(predictors[None]), n)
        if not found.is_determined[0]:
            text = combination_text(found.null[0][0], np.ones(p), labels)
            raise EvaluationError(f"the data do not determine {text}", hint="--fix keeps a parameter at its value")
        # Orthonormal predictors, and responses less what these explain, keep digits.
        basis, self._triangle = np.linalg.qr(predictors)
        self._first = basis.T @ responses
        rest = responses - basis @ self._first
        every = np.column_stack([basis, rest])
        self._constant = self.dof / 2 * math.log(2 * math.pi) + log_sigma
        if restricted:
            self._constant += float(np.log(np.abs(np.diagonal(self._triangle))).sum())
        self._among = every.T @ every
        self._inner = design.gathered_matrix(slopes[:, None] * slopes)
        self._outer = np.column_stack([design.gathered(slopes * column) for column in every.T])
        if not self._among[-1, -1] > _NOTHING * float(responses @ responses):
            raise EvaluationError("the model explains the responses exactly: no residuals are left")

    def value(self, point: Any) -> float:
        try:
            found = self._moments(point)
            return self._profiled(found)
        except np.linalg.LinAlgError:
            return math.inf

    def slopes(self, point: Any) -> tuple[Any, Any]:
        gradient, hessian = self.joint_slopes(point)
        cross = hessian[:-1, -1]
        return gradient[:-1], hessian[:-1, :-1] - np.outer(cross, cross) / hessian[-1, -1]

    def joint_slopes(self, point: Any) -> tuple[Any, Any]:
        """The gradient and Hessian by the factors and the logarithm of the residual standard deviation, at its best
        value."""
        found = self._moments(point)
        structure, k = self._structure, len(point)
        inverse, direction, squares = self._solved(found)
        variance = squares / self.dof
        factor = self._covariances.factor(point)
        slopes = [self._covariances.slope(t) for t in range(k)]
        changes = [
            _with_transposed(structure, structure.product(slope, structure.transposed(factor))) for slope in slopes
        ]
        moved = [structure.times(change, found.outer) for change in changes]
        mixed = [structure.product(found.inner, change) for change in changes]
        firsts = [-found.outer.T @ each for each in moved]
        gradient, hessian = np.zeros(k + 1), np.zeros((k + 1, k + 1))
        p = len(inverse)
        own = [direction @ first @ direction for first in firsts]
        for i in range(k):
            gradient[i] = structure.trace(mixed[i]) / 2 + own[i] / variance / 2
            hessian[i, -1] = hessian[-1, i] = -own[i] / variance
            if self._restricted:
                gradient[i] += np.trace(inverse @ firsts[i][:p, :p]) / 2
            for j in range(i + 1):
                bent = _with_transposed(structure, structure.product(slopes[i], structure.transposed(slopes[j])))
                second = -found.outer.T @ structure.times(bent, found.outer)
                crossed = moved[i].T @ structure.times(found.inner, moved[j])
                second = second + crossed + crossed.T
                of_squares = direction @ second @ direction
                along = [(first @ direction)[:p] for first in (firsts[i], firsts[j])]
                of_squares -= 2 * along[0] @ inverse @ along[1]
                bend = structure.trace(structure.product(found.inner, bent)) - structure.trace_of_product(
                    mixed[i], mixed[j]
                )
                if self._restricted:
                    bend += np.trace(inverse @ second[:p, :p])
                    bend -= np.trace(inverse @ firsts[i][:p, :p] @ inverse @ firsts[j][:p, :p])
                hessian[i, j] = hessian[j, i] = (bend + of_squares / variance) / 2
        hessian[-1, -1] = 2.0 * self.dof
        return gradient, hessian

    def estimates(self, point: Any) -> tuple[Any, Any, float, Any]:
        """The parameters `[p]`, their covariances `[p, p]`, the residual standard deviation and the effects `[Q]`."""
        found = self._moments(point)
        inverse, direction, squares = self._solved(found)
        s = math.sqrt(squares / self.dof)
        back = np.linalg.inv(self._triangle)
        estimates = back @ (self._first - direction[:-1])
        factor = self._covariances.factor(point)
        along = self._structure.times(self._structure.transposed(factor), found.outer @ direction)
        return estimates, s**2 * back @ inverse @ back.T, s, self._structure.times(factor, along)

    def _profiled(self, found: _Moments) -> float:
        _, _, squares = self._solved(found)
        value: float = self._constant + found.log_det / 2 + self.dof / 2 * (math.log(squares / self.dof) + 1)
        if self._restricted:
            value += float(np.linalg.slogdet(found.among[:-1, :-1])[1]) / 2
        return value

    def _solved(self, found: _Moments) -> tuple[Any, Any, float]:
        """The inverse of the part of the predictors of EᵀV⁻¹E, the vector (-β, 1), and the squares that are left."""
        among = found.among
        inverse = np.linalg.inv(np.linalg.cholesky(among[:-1, :-1]))
        inverse = inverse.T @ inverse
        direction = np.append(-inverse @ among[:-1, -1], 1.0)
        squares = float(direction @ among @ direction)
        if not squares > 0:
            raise np.linalg.LinAlgError
        return inverse, direction, squares

    def _moments(self, point: Any) -> _Moments:
        structure = self._structure
        factor = self._covariances.factor(point)
        inner, outer, log_det = [], [], 0.0
        among = self._among.copy()
        blocks = zip(structure.matrices(factor), structure.matrices(self._inner), structure.vectors(self._outer))
        for own, cross, with_every in blocks:
            turned = np.swapaxes(own, 1, 2)
            triangle = np.linalg.cholesky(turned @ cross @ own + np.eye(own.shape[1]))
            log_det += 2 * float(np.log(np.einsum("gii->gi", triangle)).sum())
            reduced = np.linalg.solve(triangle, turned @ with_every)
            half = np.linalg.solve(triangle, turned @ cross)
            among -= np.einsum("gqi,gqj->ij", reduced, reduced)
            inner.append((cross - np.swapaxes(half, 1, 2) @ half).reshape(-1))
            outer.append((with_every - np.swapaxes(half, 1, 2) @ reduced).reshape(-1, among.shape[0]))
        return _Moments(np.concatenate(inner), np.concatenate(outer), among, log_det)


def _with_transposed(structure: Any, matrix: Any) -> Any:
    return matrix + structure.transposed(matrix)
