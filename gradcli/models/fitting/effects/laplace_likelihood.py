"""Laplace's approximation of the likelihood of a model with random effects, with its exact gradient and Hessian.

The effects are b = Λu, where Λ is the Cholesky factor of their covariance matrix and u has independent elements of
variance 1. With F(u, θ) the costs of the rows and u·u/2, û(θ) the minimum of F, and H its Hessian there, the approximation
is F + log(det H)/2 at û(θ). Its derivatives follow from those of û by the implicit function theorem. H. Skaug and D.
Fournier, Automatic approximation of the marginal likelihood in non-Gaussian hierarchical models, Comput. Statist. Data
Anal. 51 (2006) 699.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.models.fitting.effects.effect_structure import Covariances
from gradcli.models.fitting.effects.marginal_search import MarginalMinimum
from gradcli.models.fitting.effects.row_costs import RowCosts
from gradcli.models.fitting.effects.row_designs import RowDesign
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.search.convergence import NO_MAXIMUM, is_at_end, without_effect
from gradcli.named_tuples import NamedTuple

# The most steps to the inner minimum, and the most halvings of one; the squared length of Newton's step, in standard
# errors, up to which the minimum is reached, and up to which it is where rounding errors keep the step from shrinking.
_MOST_STEPS, _HALVINGS, _REACHED, _NEAR = 50, 20, 1e-18, 1e-9
# Share of a cost that may be rounding errors.
_HIDDEN = 1e-12


class _Inner(NamedTuple):
    """The inner minimum: the effects `u` `[Q]`, the values of the row variables, the `matrix` of the second derivatives
    of the costs by b, the factor Λ, the inverse of H, both as matrices, log det H, and the sum F."""

    u: Any
    values: dict[str, Any]
    matrix: Any
    factor: Any
    inverse: Any
    log_det: float
    cost: float


class LaplaceLikelihood:
    """Minus the logarithm of the approximated likelihood, and of the priors, as a function of a point: the values at the
    places `free` among all numbers of the design, and the parameters of the covariances. `priors` are the means and the
    standard deviations of the design's free parameters, the latter infinite for those without a prior."""

    def __init__(
        self,
        design: RowDesign,
        covariances: Covariances,
        costs: RowCosts,
        constant: float,
        numbers: Any,
        free: Any,
        priors: tuple[Any, Any],
    ) -> None:
        self._design, self._covariances, self._costs = design, covariances, costs
        self._prior_means, self._prior_deviations = priors
        self._numbers, self._free = numbers, free
        self._structure = design.structure
        self._constant = constant
        # Where the inner search begins: at effects, those at a point, and along their derivatives from there.
        self._begin = np.zeros(self._structure.count)
        self._slopes: tuple[Any, Any] | None = None
        # The derivatives of the row variables by the point, where they were computed last.
        self._rows: Sequence[Any] = ()
        self._last: tuple[Any, _Inner] | None = None
        self.evaluations = 0

    def value(self, point: Any) -> float:
        found = self._at(point)
        if found is None:
            return math.inf
        return self._constant + found.cost + found.log_det / 2 + self.of_priors(point)

    def of_priors(self, point: Any) -> float:
        """The part of the priors in the value: half of their squared distances in standard deviations."""
        distances = self._prior_distances(point)
        return float(distances @ distances) / 2

    def _prior_distances(self, point: Any) -> Any:
        return (point[: self._design.count] - self._prior_means) / self._prior_deviations

    def numbers(self, point: Any) -> Any:
        """All numbers of the design at a point."""
        found = self._numbers.copy()
        found[self._free] = point[: len(self._free)]
        return found

    def effects(self, point: Any) -> Any:
        """The effects b `[Q]` at the inner minimum."""
        found = self._at(point)
        assert found is not None
        return self._structure.times(found.factor, found.u)

    def sizes(self, point: Any) -> Any:
        """For each effect of the terms, the standard deviation with which it matters as much as the deviation of a row
        from the model: the inverse root of the mean second derivative of the costs."""
        values = self._design.values(self.numbers(point), np.zeros(self._structure.count))
        second = self._costs.costs(values, of_effects=True).second
        found = [np.mean(np.abs(second[a.variable, a.variable]) * a.factors**2) for a in self._design.addends]
        return np.array([1 / math.sqrt(each) if each > 0 and math.isfinite(each) else 1.0 for each in found])

    def _at(self, point: Any) -> _Inner | None:
        """The inner minimum; None where there is none."""
        if self._last is not None and np.array_equal(self._last[0], point):
            return self._last[1]
        self.evaluations += 1
        with np.errstate(all="ignore"):
            found = self._minimum(point, self._expected(point))
            if found is None and (self._begin.any() or self._slopes is not None):
                found = self._minimum(point, np.zeros(self._structure.count))
        if found is not None:
            self._last = point.copy(), found
        return found

    def _expected(self, point: Any) -> Any:
        """The effects near which the inner minimum is expected."""
        if self._slopes is None:
            return self._begin
        origin, slopes = self._slopes
        return self._begin + (point - origin) @ slopes

    def _minimum(self, point: Any, u: Any) -> _Inner | None:
        structure, numbers = self._structure, self.numbers(point)
        factor = self._covariances.factor(point[len(self._free) :])
        turned = structure.transposed(factor)

        def at(u: Any) -> tuple[Any, Any, Any]:
            values = self._design.values(numbers, structure.times(factor, u))
            found = self._costs.costs(values, of_effects=True)
            return values, found, structure.group_sums(u * u / 2, found.value)

        values, found, cost = at(u)
        if not np.isfinite(cost).all():
            return None
        before = math.inf
        for _ in range(_MOST_STEPS):
            gradient = structure.times(turned, self._design.gathered(found.first)) + u
            matrix = self._design.gathered_matrix(found.second)
            hessian = structure.product(turned, structure.product(matrix, factor)) + structure.unit()
            if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
                return None
            inverse, log_det = _inverses(structure, hessian)
            move = -structure.times(inverse, gradient)
            left = -float(structure.group_sums(gradient * move).min())
            if left <= _REACHED or before / 4 <= left <= _NEAR:
                if log_det is None:
                    return None
                return _Inner(u, values, matrix, factor, inverse, log_det, float(cost.sum()))
            before = left
            fraction = np.ones(len(cost))
            noise = _HIDDEN * (np.abs(cost) + 1)
            for _ in range(_HALVINGS):
                moved = u + move * fraction[structure.group_of]
                values, found, there = at(moved)
                worse = ~(there <= cost + noise)
                if not worse.any():
                    break
                fraction[worse] /= 2
            else:
                return None
            u, cost = moved, there
        return None

    def failure(self, minimum: MarginalMinimum, problem: Problem) -> str | None:
        """Why a point is no maximum of the likelihood, although its derivatives are 0: the model does not depend on a
        parameter there, or as with events that are perfectly separable the means go to the end of their range. None
        otherwise."""
        found, design = self._at(minimum.point), self._design
        assert found is not None
        mean = self._costs.means(found.values)
        p = design.count
        by_parameters = [(mean.first * design.direct(i)).sum(axis=0)[None] for i in range(p)]
        point = minimum.point[None, :p]
        sigma = 1.0 if problem.known.family != "gaussian" else problem.sigma
        lost = without_effect(mean.value[None], by_parameters, sigma, point, design.rows)[0]
        if lost.any():
            names = [name for name, is_lost in zip(problem.parameters, lost) if is_lost]
            return f"the model does not depend on {' and '.join(names)} any more there"
        change = sum(part * rows for part, rows in zip(minimum.step, self._rows))
        family = problem.known.family
        if family in ("poisson", "binomial") and is_at_end(mean.value, (mean.first * change).sum(axis=0), family):
            return NO_MAXIMUM
        return None

    def slopes(self, point: Any) -> tuple[Any, Any]:
        """The gradient and the Hessian."""
        inner = self._at(point)
        assert inner is not None
        design, structure, covariances, costs = self._design, self._structure, self._covariances, self._costs
        values, u, matrix, factor, inverse = inner.values, inner.u, inner.matrix, inner.factor, inner.inverse
        turned = structure.transposed(factor)
        found = costs.costs(values)
        by_effects = design.gathered(found.first)
        # The covariances of b given the rows, and the derivatives of log det H along the row variables.
        spread = structure.product(factor, inverse)
        moments = design.products(structure.product(spread, turned))
        of_moments = costs.of_moments(values, moments, 2)
        along_effects = design.gathered(of_moments.first)
        pull = structure.times(inverse, structure.times(turned, along_effects))
        pulled = structure.times(factor, pull)
        bends = found.second + (of_moments.second - costs.third(values, design.along(pulled))) / 2
        matrix_spread = structure.product(matrix, spread)
        back = structure.times(matrix, pulled)

        count, k = len(self._free), len(covariances.entries)
        size = count + k
        gradient = np.empty(size)
        rows, moved, gathered, changes, thirds = [], [], [], [], []
        for i in range(size):
            t = i - count
            if t < 0:
                direct, push = design.direct(self._free[i]), 0.0
            else:
                direct = design.along(covariances.along(t, u))
                push = covariances.along_transposed(t, by_effects)
            right = structure.times(turned, design.gathered(_times(found.second, direct))) + push
            moved.append(-structure.times(inverse, right))
            rows.append(direct + design.along(structure.times(factor, moved[-1])))
            gathered.append(design.gathered(_times(found.second, rows[-1])))
            third = design.gathered_matrix(costs.third(values, rows[-1], of_effects=True))
            change = structure.product(turned, structure.product(third, factor))
            thirds.append(structure.product(third, spread))
            gradient[i] = float((found.first * direct).sum() + (of_moments.first * rows[-1]).sum() / 2)
            if t >= 0:
                gradient[i] += covariances.sum_at(t, matrix_spread)
                half = structure.product(turned, structure.product(matrix, covariances.slope(t)))
                change = change + half + structure.transposed(half)
            changes.append(structure.product(inverse, change))
        self._begin, self._slopes = u, (point.copy(), np.array(moved))
        self._rows = rows
        hessian = np.empty((size, size))
        for i in range(size):
            bent = _times(bends, rows[i])
            for j in range(i + 1):
                total = float((bent * rows[j]).sum() + moved[i] @ moved[j])
                total -= structure.trace_of_product(changes[i], changes[j]) / 2
                a, b = i - count, j - count
                crossed = np.zeros(structure.count)
                if a >= 0:
                    crossed += covariances.along(a, moved[j])
                    total += covariances.sum_at(a, thirds[j]) - covariances.along(a, pull) @ gathered[j] / 2
                if b >= 0:
                    crossed += covariances.along(b, moved[i])
                    total += covariances.sum_at(b, thirds[i]) - covariances.along(b, pull) @ gathered[i] / 2
                if a >= 0 and b >= 0:
                    both = structure.product(matrix, structure.product(covariances.slope(b), inverse))
                    total += covariances.sum_at(a, both)
                total += float(crossed @ (by_effects + along_effects / 2 - back / 2))
                hessian[i, j] = hessian[j, i] = total
        known = np.arange(design.count)
        gradient[known] += self._prior_distances(point) / self._prior_deviations
        hessian[known, known] += self._prior_deviations**-2.0
        return gradient, hessian


def _times(second: Any, direction: Any) -> Any:
    """The products `[m, n]` of matrices `[m, m, n]` and vectors `[m, n]` of the rows."""
    return np.einsum("ijn,jn->in", second, direction)


def _inverses(structure: Any, hessian: Any) -> tuple[Any, float | None]:
    """The inverse of a matrix, and its log determinant; where a block is not positive definite, with the absolute
    eigenvalues of that batch, and no determinant."""
    found, log_det = [], 0.0
    is_definite = True
    for block in structure.matrices(hessian):
        try:
            triangle = np.linalg.cholesky(block)
            log_det += 2 * float(np.log(np.einsum("gii->gi", triangle)).sum())
            half = np.linalg.inv(triangle)
            found.append((np.swapaxes(half, 1, 2) @ half).reshape(-1))
        except np.linalg.LinAlgError:
            is_definite = False
            values, vectors = np.linalg.eigh(block)
            sizes = np.maximum(np.abs(values), 1e-3)
            found.append((vectors / sizes[:, None, :] @ np.swapaxes(vectors, 1, 2)).reshape(-1))
    return np.concatenate(found), log_det if is_definite else None
