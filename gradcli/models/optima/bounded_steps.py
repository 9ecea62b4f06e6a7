"""The step of a quadratic model within a trust region and between bounds.

A. R. Conn, N. I. M. Gould and P. L. Toint, "Trust-Region Methods" (SIAM 2000), chapter 12. A step that is clipped at
the bounds may increase the model. The generalised Cauchy point, at which the model has decreased enough along the
projected gradient, never does, and a search whose steps decrease the model at least as much converges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcli import arrays
from gradcli.models.optima.trust_region_steps import Step, step

# Upper bound of the halvings of the step along the projected gradient: 60 shorten it by 1e18.
_MOST_HALVINGS = 60
# The share of the linear prediction by which the model must fall at the Cauchy point (Armijo's condition).
_LOWERS = 0.1
# Upper bound of the faces of the box, each with fewer free variables, on which the model is minimised in turn.
_MOST_FACES = 10


def bounded_step(slope: Any, hessian: Any, radius: float, low: Any, high: Any) -> Step:
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
