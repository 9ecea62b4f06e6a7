"""Newton's method between bounds, with exact Hessians: each step is the minimum of a quadratic model in a trust region."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from gradcli import arrays
from gradcli.models import dense_matrices
from gradcli.models.optima.objectives import MOST_DENSE, Objective, is_sparse
from gradcli.models.results import Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple

VANISHES = "the gradient vanishes"
STUCK = "no step lowers the objective, and its gradient does not vanish: there may be a kink"
UNBOUNDED = "the objective falls without a bound"
SLOW_DESCENT = "the objective falls on and on, ever more slowly"
KINK = "a minimum at a kink: the objective is not smooth there, and 0 is among its subgradients"
FALLS_FROM_FLAT = "the gradient vanishes, but the objective falls along a direction without curvature"
FALLS_FROM_KINK = "the objective is not smooth there, and falls from there"
SADDLE = "the gradient vanishes, but the point is a saddle"
BY_BOUNDS = "a minimum that bounds hold"

_OF_MAXIMA = {
    STUCK: "no step raises the objective, and its gradient does not vanish: there may be a kink",
    UNBOUNDED: "the objective rises without a bound",
    SLOW_DESCENT: "the objective rises on and on, ever more slowly",
    KINK: "a maximum at a kink: the objective is not smooth there, and 0 is among its subgradients",
    FALLS_FROM_FLAT: "the gradient vanishes, but the objective rises along a direction without curvature",
    FALLS_FROM_KINK: "the objective is not smooth there, and rises from there",
    BY_BOUNDS: "a maximum that bounds hold",
}


def worded(message: str, sign: float) -> str:
    """A message of a search, worded for a maximum where the sign of the objective is negative (searches minimise its
    negative)."""
    return _OF_MAXIMA.get(message, message) if sign < 0 else message


def extremum(sign: float) -> str:
    """The word for what is searched for."""
    return "maximum" if sign < 0 else "minimum"


# The search converged where the model predicts a decrease of at most the share `_SHARE` of the objective, or of at most
# `_NOTHING`.
_SHARE, _NOTHING = 1e-15, 1e-30
# The relative rounding error of differences of the objective. Where a difference is at most the share `_LITTLE` of the
# objective or of its first value, a second run estimates the rounding error, as for a sum whose terms cancel.
_ROUNDING, _LITTLE = 1e-13, 1e-8
# The objective is unbounded where it falls below `_DEEP`, or falls where a variable is beyond `_FAR`.
_DEEP, _FAR = -1e30, 1e30
# The relative deviation of the length of a step from the radius that is accepted, since the radius itself is a guess.
_OFF_RADIUS = 0.2
_MOST_SHIFTS = 30
# An eigenvalue counts as not positive up to this share of the largest absolute one.
_FLAT_EIGENVALUE = 1e-14


class NewtonEnd(NamedTuple):
    """The point at which a search ended, and how; `converged` says that the method reported a minimum, not that there
    is one."""

    point: Any
    value: float
    gradient: Any
    iterations: int
    converged: bool
    message: str


class NoHessianError(Exception):
    """There is no Hessian at `point`, to which a search has come, or it is too large a matrix."""

    def __init__(self, point: Any) -> None:
        self.point = point


def held_by_bounds(x: Any, gradient: Any, low: Any, high: Any) -> Any:
    """A mask of the variables that their bounds hold: at a bound beyond which the objective falls, or with equal
    bounds."""
    return ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)) | (low == high)


def newton(objective: Objective, start: Any, low: Any, high: Any, most: int, watch: ProgressCallback) -> NewtonEnd:
    """Minimise from `start` between `low` and `high`, vectors `[n]`, in at most `most` iterations. The objective must
    be finite at the start. Raises NoHessianError.

    The variables are scaled by their curvatures, so that the search does not depend on their units. Where it does not
    converge, as along an endless valley, a second search without scaling is tried.
    """
    found = _newton(objective, start, low, high, most, watch, by_curvature=True)
    if found.converged or found.message in (STUCK, UNBOUNDED) or len(start) > MOST_DENSE:
        return found
    other = _newton(objective, start, low, high, most, watch, by_curvature=False)
    return other if other.value < found.value else found


def _newton(
    objective: Objective, start: Any, low: Any, high: Any, most: int, watch: ProgressCallback, *, by_curvature: bool
) -> NewtonEnd:
    np = arrays.numpy_namespace()
    x = start
    value, gradient = objective.value_and_gradient(x)
    hessian = _hessian(objective, x)
    radius = -1.0
    for number in range(most):
        free = ~held_by_bounds(x, gradient, low, high)
        watch(Iteration(number, objective.sign * value, float(np.linalg.norm(gradient[free])), x))
        if not free.any():
            return NewtonEnd(x, value, gradient, number, True, "every variable is held by a bound")
        scales = np.sqrt(abs(hessian.diagonal())) if by_curvature else np.ones(len(x))
        units = np.where(scales > 0, scales, 1.0)[free]
        reduced, slope = _scaled(hessian, free, units), gradient[free] / units
        if radius < 0:
            radius = max(1.0, float(np.linalg.norm(x[free] * units)))
        rounding = _ROUNDING * abs(value)
        moved = False
        while not moved:
            down, up = (low - x)[free] * units, (high - x)[free] * units
            found = bounded_step(slope, reduced, radius, down, up)
            trial = x.copy()
            trial[free] = np.clip(x[free] + found.direction / units, low[free], high[free])
            # Variables that reach a bound are set to it exactly, independently of rounding in the units.
            for bound, ends in ((low, found.direction <= down), (high, found.direction >= up)):
                trial[free] = np.where(ends, bound[free], trial[free])
            change = trial - x
            expected = -float(gradient @ change + change @ (hessian @ change) / 2)
            norm = float(np.linalg.norm(change[free] * units))
            inside = float(np.linalg.norm(found.direction)) < 0.9 * radius
            if inside and expected <= _SHARE * abs(value) + _NOTHING:
                return _polished(objective, NewtonEnd(x, value, gradient, number, True, VANISHES), trial, low, high)
            if norm <= 1e-16 * float(np.linalg.norm(x[free] * units)) or norm < 1e-150:
                return NewtonEnd(x, value, gradient, number, not gradient[free].any(), STUCK)
            if expected <= 0:
                radius = norm / 4
                continue
            trial_value, trial_gradient = objective.value_and_gradient(trial)
            if trial_value < _DEEP * max(1.0, abs(value)) or ((abs(trial) > _FAR).any() and trial_value < value):
                return NewtonEnd(trial, trial_value, trial_gradient, number + 1, False, UNBOUNDED)
            gained = value - trial_value
            if not gained > 0 and abs(gained) <= _LITTLE * max(abs(value), objective.first) and expected > rounding:
                rounding = max(rounding, objective.rounding_error(x))
            if expected <= rounding and abs(gained) <= rounding:
                # The change of the objective is below its rounding errors, so that the gradient decides.
                gained = expected if _norm(trial_gradient, free, units) < _norm(gradient, free, units) else -1.0
            ratio = gained / expected if math.isfinite(gained) else -1.0
            if ratio < 0.25:
                radius = norm / 4
            elif ratio > 0.75 and not inside:
                radius = max(radius, 3 * norm)
            moved = ratio > 1e-4
        x, value, gradient = trial, trial_value, trial_gradient
        hessian = _hessian(objective, x)
    message = f"the limit of {most:,} iterations was met before the {extremum(objective.sign)}"
    return NewtonEnd(x, value, gradient, most, False, message)


def _hessian(objective: Objective, x: Any) -> Any:
    found = objective.hessian(x)
    if found is None:
        raise NoHessianError(x)
    return found


def _norm(gradient: Any, free: Any, units: Any) -> float:
    return float(arrays.numpy_namespace().linalg.norm(gradient[free] / units))


def _polished(objective: Objective, found: NewtonEnd, trial: Any, low: Any, high: Any) -> NewtonEnd:
    """The result after a last step, where the gradient is smaller there: the point has more correct digits."""
    np = arrays.numpy_namespace()
    value, gradient = objective.value_and_gradient(trial)
    before = np.where(held_by_bounds(found.point, found.gradient, low, high), 0.0, found.gradient)
    after = np.where(held_by_bounds(trial, gradient, low, high), 0.0, gradient)
    if math.isfinite(value) and np.linalg.norm(after) < np.linalg.norm(before):
        return found._replace(point=trial, value=value, gradient=gradient)
    return found


def _scaled(hessian: Any, free: Any, units: Any) -> Any:
    """The Hessian of the free variables, scaled by their units."""
    np = arrays.numpy_namespace()
    if not is_sparse(hessian):
        return hessian[np.ix_(free, free)] / units[:, None] / units
    from scipy.sparse import diags_array

    scaling = diags_array(1 / units)
    part = hessian if free.all() else hessian[free][:, free]
    return (scaling @ part @ scaling).tocsc()


# --- the step of a quadratic model between bounds

# Upper bound of the halvings of the step along the projected gradient: 60 shorten it by 1e18.
_MOST_HALVINGS = 60
# The share of the linear prediction by which the model must fall at the Cauchy point (Armijo's condition).
_LOWERS = 0.1
# Upper bound of the faces of the box, each with fewer free variables, on which the model is minimised in turn.
_MOST_FACES = 10


def bounded_step(slope: Any, hessian: Any, radius: float, low: Any, high: Any) -> NewtonStep:
    """A step between `low` and `high`, vectors on both sides of 0, that lowers the model `slope·s + s·hessian·s/2`: its
    minimum within the radius where that is within the bounds; else the lowest of that minimum clipped at the bounds,
    the Cauchy point, and minima on the faces of the box to which that leads."""
    np = arrays.numpy_namespace()
    whole = step(slope, hessian, radius)
    cut = np.clip(whole.direction, low, high)
    if (cut == whole.direction).all():
        return whole
    tried = [cut, *_on_faces(slope, hessian, radius, low, high)]
    return whole._replace(direction=min(tried, key=lambda s: float(slope @ s + s @ (hessian @ s) / 2)))


def _on_faces(slope: Any, hessian: Any, radius: float, low: Any, high: Any) -> Iterator[Any]:
    """The Cauchy point, and from there the minima along the variables that are not at a bound yet, each as far as the
    next bound."""
    np = arrays.numpy_namespace()
    at = _cauchy_point(slope, hessian, radius, low, high)
    yield at
    for _ in range(_MOST_FACES):
        free = (low < at) & (at < high)
        room = radius - float(np.linalg.norm(at))
        if not free.any() or not room > 0.0:
            return
        inner = np.zeros(len(at))
        inner[free] = step((slope + hessian @ at)[free], hessian[free][:, free], room).direction
        towards = np.where(inner > 0.0, high, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(inner != 0.0, (towards - at) / inner, np.inf)
        share = min(1.0, float(shares.min()))
        at = np.where(shares <= share, towards, np.clip(at + share * inner, low, high))
        yield at
        if share == 1.0:
            return


def _cauchy_point(slope: Any, hessian: Any, radius: float, low: Any, high: Any) -> Any:
    np = arrays.numpy_namespace()
    length = radius / float(np.linalg.norm(slope)) if slope.any() else 0.0
    for _ in range(_MOST_HALVINGS):
        found = np.clip(-length * slope, low, high)
        along = float(slope @ found)
        if along + float(found @ (hessian @ found)) / 2 <= _LOWERS * along:
            break
        length /= 2.0
    return found


class NewtonStep(NamedTuple):
    """A step `[n]`, and the `shift` that was added to the Hessian's diagonal to keep it within the radius; 0 for
    Newton's step."""

    direction: Any
    shift: float


def step(gradient: Any, hessian: Any, radius: float) -> NewtonStep:
    """The minimum of `gradient·s + s·hessian·s/2` over steps s of norm at most `radius`, for a symmetric matrix `[n,
    n]`. For a sparse matrix of SciPy it is approximate."""
    return _by_factors(gradient, hessian, radius) if is_sparse(hessian) else _by_eigenvectors(gradient, hessian, radius)


def _by_eigenvectors(gradient: Any, hessian: Any, radius: float) -> NewtonStep:
    np = arrays.numpy_namespace()
    bends, vectors = dense_matrices.symmetric_eigenvectors(hessian)
    along = vectors.T @ gradient
    least, most = float(bends[0]), float(max(abs(bends[0]), abs(bends[-1])))
    if least > _FLAT_EIGENVALUE * most:
        direct = -along / bends
        if np.linalg.norm(direct) <= radius:
            return NewtonStep(vectors @ direct, 0.0)
    lowest = max(0.0, -least)

    def length(shift: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return float(np.linalg.norm(np.where(along == 0.0, 0.0, along / (bends + shift))))

    # The step is longest just above the least shift. Where it is within the radius even there (the hard case), it is
    # extended along the eigenvector of the least eigenvalue.
    edge = lowest + _FLAT_EIGENVALUE * max(most, 1e-300)
    if length(edge) <= radius:
        inside = np.where(along == 0.0, 0.0, -along / (bends + edge))
        inside[0] = 0.0 if least <= 0 else inside[0]
        rest = math.sqrt(max(radius**2 - float(inside @ inside), 0.0))
        if least > 0 or (least == 0.0 and not along[0]):
            rest = 0.0
        inside[0] -= math.copysign(rest, along[0])
        return NewtonStep(vectors @ inside, edge)
    low, high = edge, lowest + float(np.linalg.norm(gradient)) / radius
    shift = high
    for _ in range(_MOST_SHIFTS):
        found = length(shift)
        if abs(found - radius) <= 1e-3 * radius:
            break
        low, high = (shift, high) if found > radius else (low, shift)
        # With nearly infinite eigenvalues the length and its slope underflow.
        slope = float(np.sum(along**2 / (bends + shift) ** 3)) / found if found > 0 else 0.0
        better = shift + (found - radius) / radius * found / slope if slope > 0 else math.inf
        shift = better if low < better < high else math.sqrt(low * high)
    return NewtonStep(vectors @ (-along / (bends + shift)), shift)


def _by_factors(gradient: Any, hessian: Any, radius: float) -> NewtonStep:
    np = arrays.numpy_namespace()
    from scipy.sparse import eye_array

    unit = eye_array(len(gradient), format="csc")
    # By Gershgorin's theorem no eigenvalue has a greater absolute value.
    size = float(abs(hessian).sum(axis=0).max())
    length = float(np.linalg.norm(gradient))
    low, high, shift = 0.0, size + length / radius, 0.0
    best: NewtonStep | None = None
    for _ in range(_MOST_SHIFTS):
        factors = _factors(hessian + shift * unit if shift else hessian)
        if factors is None:
            low = shift
        else:
            found = -factors.solve(gradient)
            norm = float(np.linalg.norm(found))
            if norm <= radius * (1 + _OFF_RADIUS):
                best, high = NewtonStep(found, shift), shift
                if shift == 0.0 or norm >= radius * (1 - _OFF_RADIUS):
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
        best = NewtonStep(-gradient * (radius / length if length else 0.0), high)
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
    """Return whether a symmetric matrix is positive definite: sparse ones by factorisation, dense ones where the least
    eigenvalue is not negligible relative to the largest."""
    if is_sparse(hessian):
        return _factors(hessian) is not None
    bends = dense_matrices.symmetric_eigenvalues(hessian)
    return bool(bends[0] > _FLAT_EIGENVALUE * max(abs(bends[0]), abs(bends[-1])))
