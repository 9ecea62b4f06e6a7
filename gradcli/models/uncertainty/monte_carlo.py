"""Propagation of distributions by the Monte Carlo method (JCGM 101:2008, supplement 1 to the GUM)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.errors import BindingError, EvaluationError, GradcliError, ShapeError
from gradcli.language.syntax.tree import Module
from gradcli.models.results import Sampling
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.rows.row_programs import RowProgram

# Largest number of input values drawn at once.
_AT_ONCE = 2**20
# Estimated work to sort and sum values, in array elements each.
_SUMMARY = 3


@dataclass(frozen=True)
class MonteCarlo:
    """The mean of a result over the samples, their standard deviation, and a coverage interval."""

    mean: float
    u: float
    interval: tuple[float, float]
    samples: int
    seed: int


class Drawn(NamedTuple):
    """The finite values `[N, m]` of the program for draws of its inputs, the number of draws left out because a value
    is not finite, and the first error of a draw."""

    values: Any
    left_out: int
    error: GradcliError | None


def check_distributions(quantities: Quantities) -> None:
    """Raise BindingError for correlated inputs whose assigned distributions have no joint distribution to draw from."""
    labels = quantities.packing.labels()
    for block in quantities.blocks:
        for place in block.places.tolist():
            assigned = quantities.distributions.get(place)
            if assigned is not None and assigned.name != "normal":
                raise BindingError(
                    f"'{labels[place]}' is {assigned.name} and correlated with others, which Monte Carlo draws from a "
                    "normal distribution",
                    hint=f"leave out its correlation, or write its value and uncertainty: {labels[place]}=5.0±0.1",
                )


def draw(
    program: Module,
    quantities: Quantities,
    samples: int,
    seed: int,
    most: tuple[int, int],
    watch: Callable[[Sampling], object],
) -> Drawn:
    """Draw the inputs `samples` times, and evaluate the program for each draw; `most` are the limits of steps and
    elements, and `watch` is called with the number of draws so far.

    Correlated inputs are drawn from a normal distribution with their covariance, or from Student's where all of them
    have the same finite degrees of freedom. Other inputs are drawn from the distribution assigned to them, else from
    Student's where their degrees of freedom are finite (JCGM 101, 6.4.9), else from a normal one. Raises the error of
    the first draw where all of them fail, and ShapeError where the values have different shapes.
    """
    np = arrays.numpy_namespace()
    limits.charge(samples * (quantities.packing.size + 1))
    generator = np.random.default_rng(seed)
    run = RowProgram(program, (), 0, max_steps=most[0], max_elements=most[1])
    at_once = max(1, _AT_ONCE // quantities.packing.size)
    parts, error = [], None
    for start in range(0, samples, at_once):
        rows = min(at_once, samples - start)
        columns = columns_of(quantities, quantities.mean + _deviations(quantities, generator, rows))
        results = run.run(columns, quantities.exact, rows=rows)
        if results.failures and error is None:
            error = results.failures[0].error
        if len(results.failures) < rows:
            parts.append(_flat(results.value))
        watch(Sampling(start + rows, samples))
    if not parts and error is not None:
        raise error
    if len({part.shape[1] for part in parts}) > 1:
        raise ShapeError("the value has other shapes for other draws of the inputs")
    values = np.concatenate(parts)
    finite = np.isfinite(values).all(1)
    kept = values if finite.all() else values[finite]
    if len(kept) < 2:
        raise error or EvaluationError(
            f"{len(kept)} of {samples:,} samples have a finite value", hint="gradcli eval shows where it comes from"
        )
    return Drawn(kept, samples - len(kept), error)


def _flat(values: Any) -> Any:
    if values.dtype == object:
        raise ShapeError("the value has other shapes for other draws of the inputs")
    return values.reshape(len(values), -1)


def columns_of(quantities: Quantities, numbers: Any) -> dict[str, Any]:
    """The values of each input by name, `[rows, …]`, from numbers `[rows, n]`."""
    shapes = quantities.packing.shapes
    return {
        name: numbers[:, place].reshape(len(numbers), *shapes[name])
        for name, place in quantities.packing.places().items()
    }


def student_dofs(quantities: Quantities) -> Any:
    """The degrees of freedom `[n]` of the Student's distributions from which the inputs are drawn, infinite for other
    distributions."""
    found = quantities.dof.copy()
    found[[*quantities.distributions]] = math.inf
    for block in quantities.blocks:
        dof = quantities.dof[block.places]
        found[block.places] = dof[0] if (dof == dof[0]).all() else math.inf
    return found


def _deviations(quantities: Quantities, generator: Any, rows: int) -> Any:
    """Draws `[rows, n]` of the inputs, less their means."""
    np = arrays.numpy_namespace()
    independent = generator.standard_normal((rows, quantities.packing.size))
    dofs = student_dofs(quantities)
    alone = np.isfinite(dofs)
    for block in quantities.blocks:
        alone[block.places] = False
        dof = dofs[block.places[0]]
        if math.isfinite(dof):
            independent[:, block.places] /= np.sqrt(generator.chisquare(dof, (rows, 1)) / dof)
    for place in np.flatnonzero(alone).tolist():
        independent[:, place] = generator.standard_t(dofs[place], rows)
    found = quantities.deviations(independent)
    blocked = {place for block in quantities.blocks for place in block.places.tolist()}
    for place, assigned in quantities.distributions.items():
        if place not in blocked:
            found[:, place] = assigned.draw(generator, rows) - quantities.mean[place]
    return found


def summary(
    values: Any, level: float, shortest: bool, samples: int, seed: int
) -> tuple[MonteCarlo, tuple[float, float]]:
    """The mean, standard deviation and coverage interval of the values `[N]` of a result, and the standard errors of
    the ends of the interval. With `shortest` that is the shortest one, else the one with equal probabilities on both
    sides (JCGM 101, 7.5 to 7.7)."""
    np = arrays.numpy_namespace()
    limits.charge(_SUMMARY * len(values))
    ordered = np.sort(values)
    count = len(ordered)
    inside = min(count - 1, math.floor(level * count + 0.5))
    if shortest:
        first = int(np.argmin(ordered[inside:] - ordered[: count - inside]))
    else:
        first = max(0, math.floor((count - inside) / 2 + 0.5) - 1)
    ends = (first, min(count - 1, first + inside))
    found = MonteCarlo(
        float(ordered.mean()),
        float(ordered.std(ddof=1)),
        (float(ordered[ends[0]]), float(ordered[ends[1]])),
        samples,
        seed,
    )
    return found, (_error_of_end(ordered, ends[0]), _error_of_end(ordered, ends[1]))


def _error_of_end(ordered: Any, at: int) -> float:
    """The standard error of the order statistic at an index of sorted draws."""
    count = len(ordered)
    spread = max(1, round(math.sqrt(count * (at + 0.5) / count * (1 - (at + 0.5) / count))))
    return float(ordered[min(count - 1, at + spread)] - ordered[max(0, at - spread)]) / 2
