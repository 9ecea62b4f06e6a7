"""The trust-region subproblem: the minimum of a quadratic model within a radius.

J. J. Moré and D. C. Sorensen, "Computing a trust region step", SIAM J. Sci. Stat. Comput. 4 (1983).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models import dense_matrices
from gradcli.models.optima.objectives import is_sparse

# The relative deviation of the length of a step from the radius that is accepted, since the radius itself is a guess.
_SHARE = 0.2
_MOST = 30
# An eigenvalue counts as not positive up to this share of the largest absolute one.
_FLAT = 1e-14


class Step(NamedTuple):
    """A step `[n]`, and the `shift` that was added to the Hessian's diagonal to keep it within the radius; 0 for
    Newton's step."""

    direction: Any
    shift: float


def step(gradient: Any, hessian: Any, radius: float) -> Step:
    """The minimum of `gradient·s + s·hessian·s/2` over steps s of norm at most `radius`, for a symmetric matrix `[n,
    n]`. For a sparse matrix of SciPy it is approximate."""
    return _by_factors(gradient, hessian, radius) if is_sparse(hessian) else _by_eigenvectors(gradient, hessian, radius)


def _by_eigenvectors(gradient: Any, hessian: Any, radius: float) -> Step:
    np = arrays.numpy_namespace()
    bends, vectors = dense_matrices.symmetric_eigenvectors(hessian)
    along = vectors.T @ gradient
    least, most = float(bends[0]), float(max(abs(bends[0]), abs(bends[-1])))
    if least > _FLAT * most:
        direct = -along / bends
        if np.linalg.norm(direct) <= radius:
            return Step(vectors @ direct, 0.0)
    lowest = max(0.0, -least)

    def length(shift: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return float(np.linalg.norm(np.where(along == 0.0, 0.0, along / (bends + shift))))

    # The step is longest just above the least shift. Where it is within the radius even there (the hard case), it is
    # extended along the eigenvector of the least eigenvalue.
    edge = lowest + _FLAT * max(most, 1e-300)
    if length(edge) <= radius:
        inside = np.where(along == 0.0, 0.0, -along / (bends + edge))
        inside[0] = 0.0 if least <= 0 else inside[0]
        rest = math.sqrt(max(radius**2 - float(inside @ inside), 0.0))
        if least > 0 or (least == 0.0 and not along[0]):
            rest = 0.0
        inside[0] -= math.copysign(rest, along[0])
        return Step(vectors @ inside, edge)
    low, high = edge, lowest + float(np.linalg.norm(gradient)) / radius
    shift = high
    for _ in range(_MOST):
        found = length(shift)
        if abs(found - radius) <= 1e-3 * radius:
            break
        low, high = (shift, high) if found > radius else (low, shift)
        # With nearly infinite eigenvalues the length and its slope underflow.
        slope = float(np.sum(along**2 / (bends + shift) ** 3)) / found if found > 0 else 0.0
        better = shift + (found - radius) / radius * found / slope if slope > 0 else math.inf
        shift = better if low < better < high else math.sqrt(low * high)
    return Step(vectors @ (-along / (bends + shift)), shift)


def _by_factors(gradient: Any, hessian: Any, radius: float) -> Step:
    np = arrays.numpy_namespace()
    from scipy.sparse import eye_array

    unit = eye_array(len(gradient), format="csc")
    # By Gershgorin's theorem no eigenvalue has a greater absolute value.
    size = float(abs(hessian).sum(axis=0).max())
    length = float(np.linalg.norm(gradient))
    low, high, shift = 0.0, size + length / radius, 0.0
    best: Step | None = None
    for _ in range(_MOST):
        factors = _factors(hessian + shift * unit if shift else hessian)
        if factors is None:
            low = shift
        else:
            found = -factors.solve(gradient)
            norm = float(np.linalg.norm(found))
            if norm <= radius * (1 + _SHARE):
                best, high = Step(found, shift), shift
                if shift == 0.0 or norm >= radius * (1 - _SHARE):
                    break
            else:
                low = shift
            if norm > 0:
                slope = float(found @ factors.solve(found)) / norm
                shift += (norm - radius) / radius * norm / slope
        if factors is None or not low < shift < high:
            shift = math.sqrt(max(low, 1e-6 * high) * high)
        if high - low <= 1e-3 * high:
            break
    if best is None:
        best = Step(-gradient * (radius / length if length else 0.0), high)
    return best


# Upper bound of the bandwidth of a matrix that is factored as a band.
_NARROW = 20


def _factors(matrix: Any) -> Any:
    """A factorisation, with a method `solve`, of a sparse symmetric matrix that is positive definite; None for
    another."""
    np = arrays.numpy_namespace()
    entries = matrix.tocoo()
    width = int(abs(entries.row - entries.col).max(initial=0))
    if width <= _NARROW:
        return _Band.of(entries, width)
    from scipy.sparse.linalg import splu

    try:
        found = splu(
            matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True, "Equil": False}
        )
    except RuntimeError:
        # The matrix is singular.
        return None
    # By Sylvester's law of inertia the pivots have the signs of the eigenvalues, as long as no pivot is off the
    # diagonal.
    definite = bool((found.U.diagonal() > 0).all()) and bool(np.array_equal(found.perm_r, found.perm_c))
    return found if definite else None


class _Band:
    """The Cholesky factor of a band matrix, computed many times as fast as that of a general sparse matrix."""

    def __init__(self, factor: Any) -> None:
        self._factor = factor

    @classmethod
    def of(cls, entries: Any, width: int) -> _Band | None:
        from scipy.linalg import LinAlgError, cholesky_banded

        band = arrays.numpy_namespace().zeros((width + 1, entries.shape[0]))
        below = entries.row >= entries.col
        band[entries.row[below] - entries.col[below], entries.col[below]] = entries.data[below]
        try:
            return cls(cholesky_banded(band, lower=True))
        except LinAlgError:
            return None

    def solve(self, right: Any) -> Any:
        from scipy.linalg import cho_solve_banded

        return cho_solve_banded((self._factor, True), right)


def is_definite(hessian: Any) -> bool:
    """Whether a symmetric matrix is positive definite: sparse ones by factorisation, dense ones where the least
    eigenvalue is not negligible relative to the largest."""
    if is_sparse(hessian):
        return _factors(hessian) is not None
    bends = dense_matrices.symmetric_eigenvalues(hessian)
    return bool(bends[0] > _FLAT * max(abs(bends[0]), abs(bends[-1])))
