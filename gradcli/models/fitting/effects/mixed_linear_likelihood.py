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

    `predictors` `[n, p]`, which `labels` name in errors, `responses` `[n]` and the slopes `[m, n]` of the row variables
    are divided by the standard deviations of the rows, whose logarithms sum to `log_sigma`. Raises EvaluationError
    where the data do not determine a parameter, and where the model explains the responses exactly.
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
        """Minus the log-likelihood; infinite where a matrix is not positive definite, or no squares are left."""
        try:
            found = self._moments(point)
            return self._profiled(found)
        except np.linalg.LinAlgError:
            return math.inf

    def slopes(self, point: Any) -> tuple[Any, Any]:
        """The gradient and Hessian by the factors, for the best residual standard deviation at each."""
        gradient, hessian = self.joint_slopes(point)
        cross = hessian[:-1, -1]
        return gradient[:-1], hessian[:-1, :-1] - np.outer(cross, cross) / hessian[-1, -1]

    def joint_slopes(self, point: Any) -> tuple[Any, Any]:
        """The gradient and Hessian by the factors and the logarithm of the residual standard deviation, at its best
        value."""
        # With G = LLᵀ for the factor L, which is linear in the parameters, V = 1 + ZGZᵀ, A = ZᵀV⁻¹Z, B = ZᵀV⁻¹E, and
        # C = EᵀV⁻¹E with the part P of the predictors, and with derivatives as indices:
        #   G_i = L_iLᵀ + LL_iᵀ, G_ij = L_iL_jᵀ + L_jL_iᵀ
        #   (log det V)_i = tr(AG_i), (log det V)_ij = tr(AG_ij) - tr(AG_iAG_j)
        #   C_i = -BᵀG_iB, C_ij = -BᵀG_ijB + Bᵀ(G_iAG_j + G_jAG_i)B
        #   (log det P)_i = tr(P⁻¹P_i), (log det P)_ij = tr(P⁻¹P_ij) - tr(P⁻¹P_iP⁻¹P_j), for REML
        # The squares that are left are r = uᵀCu with u = (-β, 1), where β is the best one; of C_iu only the part of the
        # predictors is in the last term:
        #   r_i = uᵀC_iu, r_ij = uᵀC_iju - 2(C_iu)ᵀP⁻¹C_ju
        found = self._moments(point)
        structure, k = self._structure, len(point)
        inverse, direction, squares = self._solved(found)
        variance = squares / self.dof
        factor = self._covariances.factor(point)
        factor_slopes = [self._covariances.slope(t) for t in range(k)]
        changes = [
            _plus_transpose(structure, structure.product(slope, structure.transposed(factor)))
            for slope in factor_slopes
        ]
        changed_outer = [structure.times(change, found.outer) for change in changes]
        inner_changes = [structure.product(found.inner, change) for change in changes]
        among_slopes = [-found.outer.T @ each for each in changed_outer]
        gradient, hessian = np.zeros(k + 1), np.zeros((k + 1, k + 1))
        p = len(inverse)
        squares_slopes = [direction @ first @ direction for first in among_slopes]
        for i in range(k):
            gradient[i] = structure.trace(inner_changes[i]) / 2 + squares_slopes[i] / variance / 2
            hessian[i, -1] = hessian[-1, i] = -squares_slopes[i] / variance
            if self._restricted:
                gradient[i] += np.trace(inverse @ among_slopes[i][:p, :p]) / 2
            for j in range(i + 1):
                second_change = _plus_transpose(
                    structure, structure.product(factor_slopes[i], structure.transposed(factor_slopes[j]))
                )
                among_second = -found.outer.T @ structure.times(second_change, found.outer)
                crossed = changed_outer[i].T @ structure.times(found.inner, changed_outer[j])
                among_second = among_second + crossed + crossed.T
                squares_second = direction @ among_second @ direction
                on_predictors = [(first @ direction)[:p] for first in (among_slopes[i], among_slopes[j])]
                squares_second -= 2 * on_predictors[0] @ inverse @ on_predictors[1]
                log_det_second = structure.trace(
                    structure.product(found.inner, second_change)
                ) - structure.trace_of_product(inner_changes[i], inner_changes[j])
                if self._restricted:
                    log_det_second += np.trace(inverse @ among_second[:p, :p])
                    log_det_second -= np.trace(inverse @ among_slopes[i][:p, :p] @ inverse @ among_slopes[j][:p, :p])
                hessian[i, j] = hessian[j, i] = (log_det_second + squares_second / variance) / 2
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


def _plus_transpose(structure: Any, matrix: Any) -> Any:
    return matrix + structure.transposed(matrix)
