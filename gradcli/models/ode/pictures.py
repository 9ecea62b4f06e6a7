"""Charts of solutions: the states over time, or one over another."""

from __future__ import annotations

from gradcli.errors import UsageError
from gradcli.language.syntax.derivative_marks import readable
from gradcli.models.ode.initial_values import InitialValueRequest, Solution, in_real_numbers
from gradcli.models.plotting.charts import Chart, Polyline


def chart(asked: InitialValueRequest, found: Solution, phase: str | None) -> Chart:
    """The chart of a solution; `phase` are the names of the axes of a phase plane. Raises UsageError for other names."""
    equations = in_real_numbers(asked).equations
    names = [*map(readable, equations.states), *asked.show]
    if phase is None:
        time = found.columns[equations.time]
        return Chart([Polyline(name, time, found.columns[name]) for name in names], equations.time, ", ".join(names))
    axes = [name.strip() for name in phase.split(",")]
    if len(axes) != 2 or not set(axes) <= set(names):
        raise UsageError(f"--phase {phase} does not name two columns", hint=f"two of {', '.join(names)}")
    x, y = axes
    return Chart([Polyline(f"{y} over {x}", found.columns[x], found.columns[y])], x, y)
