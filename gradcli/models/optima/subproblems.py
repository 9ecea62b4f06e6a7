"""The step that a quadratic model recommends within a radius.

J. J. Moré and D. C. Sorensen, "Computing a trust region step", SIAM J. Sci. Stat. Comput. 4 (1983).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models import dense_matrices
from gradcli.models.optima.objectives import is_sparse

# A step may be longer than the radius, or shorter, by this share: the radius is a guess itself.
_SHARE = 0.2
_MOST = 30
# How much a direction may be bent upwards, beside all others, and count as bent down.
_FLAT = 1e-14


class Step(NamedTuple):
    """A step `[n]`; `shift` is what was added to the curvature to keep it within the radius, 0 for Newton's own."""

    direction: Any
    shift: float


def step(gradient: Any, hessian: Any, radius: float) -> Step:
    """The minimum of `gradient·s + s·hessian·s/2` where the norm of `s` is at most `radius`, for a symmetric matrix
    `[n, n]`, which may be a sparse one of SciPy's: for that, near it."""
    return _by_factors(gradient, hessian, radius) if is_sparse(hessian) else _by_eigenvectors(gradient, hessian, radius)


def _by_eigenvectors(gradient: Any, hessian: Any, radius: float) -> Step:
    np = arrays.numpy_namespace()
    bends, vectors = dense_matrices.spectral_decomposition(hessian)
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

    # Just above the least shift the step is longest; where it is short even there, it goes on along the bend.
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
        slope = float(np.sum(along**2 / (bends + shift) ** 3)) / found
        better = shift + (found - radius) / radius * found / slope
        shift = better if low < better < high else math.sqrt(low * high)
    return Step(vectors @ (-along / (bends + shift)), shift)


def _by_factors(gradient: Any, hessian: Any, radius: float) -> Step:
    np = arrays.numpy_namespace()
    from scipy.sparse import eye_array

    unit = eye_array(len(gradient), format="csc")
    # By Gershgorin's circles no eigenvalue is below the least of these, nor above the greatest.
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


# Diagonals beside the main one of a matrix that is factored as a band: at most so many.
_NARROW = 20


def _factors(matrix: Any) -> Any:
    """What solves with a sparse symmetric matrix that is positive definite; None for another."""
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
        # It is singular.
        return None
    # By Sylvester's law the pivots have the signs of the eigenvalues, as long as none was moved off the diagonal.
    definite = bool((found.U.diagonal() > 0).all()) and bool(np.array_equal(found.perm_r, found.perm_c))
    return found if definite else None


class _Band:
    """Cholesky's factor of a matrix with few diagonals, many times as fast as that of any sparse one."""

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
    """Whether all eigenvalues of a symmetric matrix are above 0, those beside which others are great included."""
    if is_sparse(hessian):
        return _factors(hessian) is not None
    bends = dense_matrices.spectrum(hessian)
    return bool(bends[0] > _FLAT * max(abs(bends[0]), abs(bends[-1])))
