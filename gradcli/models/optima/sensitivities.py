"""The derivatives of a minimum by constants, by the implicit function theorem.

Where a small change of a constant keeps the same constraints active, the optimality conditions hold along the path of
the minimum. Differentiating them gives a linear system for the derivatives of the point and of the multipliers, and the
value changes as the Lagrangian does (A. V. Fiacco, "Introduction to Sensitivity and Stability Analysis in Nonlinear
Programming", 1983, chapter 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gradcli import arrays
from gradcli.models import dense_matrices
from gradcli.models.optima.constraints import Constraints
from gradcli.models.optima.objectives import MOST_DENSE, Objective, is_sparse
from gradcli.models.optima.optimality import Active
from gradcli.models.optima.optimization_problems import PosedObjective
from gradcli.models.optima.verdicts import Verdict
from gradcli.models.packing import Packing
from gradcli.models.results import MAY_BE_NULL

_SINGULAR = "the minimum is not one point that moves smoothly with the constants: the Hessian is singular there"
# A multiplier times the norm of its normal counts as 0 up to this share of the first gradient.
_NO_FORCE = 1e-10


@dataclass(frozen=True)
class Sensitivity:
    """The derivatives by a constant: `value` of the minimal value, a number or an array of the constant's shape, and
    `point` by name of each variable, of its shape followed by the constant's. They are None where they do not exist,
    with the `reason`."""

    value: Any = field(metadata=MAY_BE_NULL)
    point: dict[str, Any]
    reason: str | None = None


def sensitivities(posed: PosedObjective, x: Any, verdict: Verdict, names: Sequence[str]) -> dict[str, Sensitivity]:
    """The derivatives of a minimum by the named constants, or the reasons why they do not exist: the linear system is
    singular, the active constraints depend on the direction of the change, or second derivatives are not known."""
    np = arrays.numpy_namespace()
    objective, constraints, there = posed.objective, posed.constraints, verdict.active
    varied = objective.packing
    constants = Packing.of({name: constraints.constants[name] for name in names})
    together = Packing({**varied.shapes, **constants.shapes})
    weights = np.zeros(len(constraints))
    weights[there.numbers] = there.multipliers
    reason = _obstacle(verdict)
    if reason is not None:
        return {name: Sensitivity(None, dict.fromkeys(varied.shapes), reason) for name in names}
    first, mixed = _by_constants(objective, varied, constants, x)
    if len(there.numbers):
        first = first + weights @ constraints.jacobian(x, constants)
        mixed = mixed + constraints.hessian(x, weights, together)[: varied.size, varied.size :]
    touched = _touched(posed, x, there)
    moved = None if touched else _moved(verdict.hessian, constraints, x, there, mixed, constants)
    reason = None if moved is not None else touched or _SINGULAR
    places = constants.places()
    return {
        name: Sensitivity(
            # At a weakly active constraint the value is still differentiable, and only the point is not.
            _shaped(objective.sign * first[places[name]], shape) if reason != _SINGULAR else None,
            {
                one: None if moved is None else _shaped(moved[place, places[name]], (*varied.shapes[one], *shape))
                for one, place in varied.places().items()
            },
            reason,
        )
        for name, shape in constants.shapes.items()
    }


def _obstacle(verdict: Verdict) -> str | None:
    if verdict.kind == "kink":
        return "the objective is not smooth at the minimum"
    if verdict.hessian is None:
        return "the second derivatives are not known, and with them how the minimum moves"
    return _SINGULAR if verdict.is_flat else None


def _touched(posed: PosedObjective, x: Any, there: Active) -> str | None:
    """Why the point has only one-sided derivatives: a constraint or bound is active with a multiplier of 0. None where
    there is none."""
    np = arrays.numpy_namespace()
    nothing = _NO_FORCE * posed.objective.steepest
    forces = abs(there.multipliers) * np.linalg.norm(there.normals, axis=1)
    weak = (forces <= nothing) & ~posed.constraints.is_equation[there.numbers]
    if weak.any():
        label = posed.constraints.labels[there.numbers[int(weak.argmax())]]
        return f"the constraint '{label}' is only touched: its multiplier is 0"
    at_bound = ((x <= posed.low) | (x >= posed.high)) & (posed.low < posed.high) & (abs(there.of_bounds) <= nothing)
    if at_bound.any():
        label = posed.objective.packing.labels()[int(at_bound.argmax())]
        return f"the bound of {label} is only touched: its multiplier is 0"
    return None


def _shaped(numbers: Any, shape: tuple[int, ...]) -> Any:
    # Adding 0.0 turns -0.0 into 0.0.
    return numbers.reshape(shape) + 0.0 if shape else float(numbers.ravel()[0]) + 0.0


def _by_constants(objective: Objective, varied: Packing, constants: Packing, x: Any) -> tuple[Any, Any]:
    """The gradient `[c]` of the objective by the constants, and its mixed second derivatives `[n, c]` by variables and
    constants."""
    np = arrays.numpy_namespace()
    values, known = objective.values(x), objective.program.inputs
    names = [name for name in constants.shapes if name in known]
    given = {name: value for name, value in values.items() if name in known}
    _, found = objective.program.value_and_grad(given, names)
    first = objective.sign * constants.flat({name: found.get(name) for name in constants.shapes})
    mixed = np.zeros((varied.size, constants.size))
    if names:
        rows, columns = varied.places(), constants.places()
        both = [*(name for name in varied.shapes if name in known), *names]
        # A dense Hessian would also hold the second derivatives by the variables, n² elements.
        sparse = varied.size > MOST_DENSE
        for key, block in objective.program.hessian(given, both, sparse=sparse).items():
            one, other = key.split(",")
            if block is None or one not in rows or other not in columns:
                continue
            place, along = rows[one], columns[other]
            if sparse:
                mixed[place.start + block.row, along.start + block.column] = block.value
            else:
                mixed[place, along] = np.reshape(block, (place.stop - place.start, along.stop - along.start))
    return first, objective.sign * mixed


def _moved(hessian: Any, constraints: Constraints, x: Any, there: Active, mixed: Any, constants: Packing) -> Any:
    """The derivatives `[n, c]` of the point by the constants; None where the linear system for them is singular."""
    np = arrays.numpy_namespace()
    free, needed = ~there.fixed, there.holding
    moved = np.zeros_like(mixed)
    if is_sparse(hessian):
        from scipy.sparse.linalg import splu

        try:
            moved[free] = -splu(hessian[free][:, free].tocsc()).solve(mixed[free])
        except RuntimeError:
            return None
        return moved
    rows = there.normals[needed][:, free]
    count = len(rows)
    matrix = np.block([[hessian[np.ix_(free, free)], rows.T], [rows, np.zeros((count, count))]])
    shifted = constraints.jacobian(x, constants)[there.numbers[needed]] if count else np.zeros((0, constants.size))
    right = -np.concatenate([mixed[free], shifted])
    if not len(matrix):
        return moved
    # Equilibrate the matrix, so that the units of the variables do not affect its condition number.
    sizes = np.sqrt(np.maximum(abs(matrix).max(axis=0), 1e-300))
    scaled = matrix / sizes[:, None] / sizes
    if dense_matrices.condition_number(scaled) > 1e13:
        return None
    moved[free] = (dense_matrices.solution(scaled, right / sizes[:, None]) / sizes[:, None])[: int(free.sum())]
    return moved
