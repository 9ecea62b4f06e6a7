"""Whether a point that a search found is what was asked for, and why, or why not."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.optima import optimality
from gradcli.models.optima.constrained import lagrangian_hessian
from gradcli.models.optima.newton import UNBOUNDED, SearchEnd
from gradcli.models.optima.optimality import Active
from gradcli.models.optima.posing import PosedObjective

_ENDS = {
    None: "the gradient vanishes",
    "bound": "a minimum that bounds hold",
    "flat": "the gradient vanishes, and along a direction the curvature too",
}
# A search that is so far away, or has come so deep, does not end.
_FAR = 1e20
# Where the next step is not as small as this beside the point, or 1, the search is under way.
_SMALL = 1e-3


class Verdict(NamedTuple):
    """What is `active` at a point, the `hessian` there, None where it is not known, and what `kind` of point it is, None
    where the gradient does not vanish; `converged` says whether it is a minimum, and `message` why, or why not."""

    active: Active
    hessian: Any
    kind: str | None
    converged: bool
    message: str


def judged(posed: PosedObjective, found: SearchEnd) -> Verdict:
    """What the exact derivatives say of a point, whatever the search that led to it says."""
    np = arrays.numpy_namespace()
    objective, constraints, x = posed.objective, posed.constraints, found.point
    there = optimality.active(found.gradient, constraints, x, posed.low, posed.high)
    hessian = lagrangian_hessian(objective, constraints, x, there)
    kind = None
    stationary = optimality.is_stationary(objective, found, there.slope, hessian)
    if stationary:
        extremum = "maximum" if objective.sign < 0 else "minimum"
        kind = optimality.kind(found.value, x, hessian, there.fixed, there.normals[there.holding], extremum)
    broken = optimality.infeasible(constraints, x) if len(constraints) else None
    if broken is not None and broken.any():
        violated = constraints.violation(constraints.residuals(x))
        worst = int((violated * broken).argmax())
        reason = f"the constraint '{constraints.labels[worst]}' does not hold"
        return Verdict(
            there, hessian, None, False, f"{reason}: it is off by {float(violated[worst]):.3g} at the best point"
        )
    if not stationary and (found.value < -_FAR or float(abs(x).max(initial=0.0)) > _FAR):
        return Verdict(there, hessian, None, False, UNBOUNDED)
    if not stationary:
        kink = "the gradient does not vanish, there may be a kink"
        return Verdict(there, hessian, None, False, kink if found.converged else found.message)
    if kind == "saddle":
        return Verdict(there, hessian, kind, False, "the gradient vanishes, but the point is a saddle")
    if kind in ("flat", "minimum", "maximum") and not len(constraints) and isinstance(hessian, np.ndarray):
        step, is_similar = optimality.weakest_step(objective, x, found.gradient, hessian)
        if not is_similar:
            kind = "flat"
        if not is_similar and _SMALL * max(1.0, float(abs(x).max())) < step < math.inf:
            return Verdict(there, hessian, None, False, "the objective falls on and on, ever more slowly")
    return Verdict(there, hessian, kind, True, _ENDS.get(kind, f"a {kind}"))
