"""Elementwise Student distribution function and its inverse."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.host_functions import by_scipy
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import divide
from gradcli.primitives.entries.exponential import exp, log, log1p
from gradcli.primitives.entries.numerical_partials import derivative, partial_of_two
from gradcli.primitives.entries.special import betaln
from gradcli.primitives.families import elementwise, keeping_float32
from gradcli.primitives.primitive import names_elsewhere

SUBJECT = "special"


def log_student_density(df: Any, t: Any) -> Any:
    """The logarithm of the density of Student's t distribution."""
    return -betaln(0.5, 0.5 * df) - 0.5 * log(df) - (0.5 * (df + 1.0)) * log1p(divide(t, df) * t)


stdtr = elementwise(
    "stdtr", "df, t", "distribution function of Student's distribution with df degrees of freedom",
    time=150,
    forward=keeping_float32(lambda xp, df, t: by_scipy(xp, "stdtr", df, t)),
    vjp=(derivative("stdtr", 0, 2), lambda g, _y, df, t: g * exp(log_student_density(df, t))),
    spelling=names_elsewhere("scipy"),
    derivative="by df computed by itself, g*(1 + t**2/df)**(-(df + 1)/2)/(sqrt(df)*beta(1/2, df/2))",
    domain="df > 0",
    samples=((2.5, 0.7), ([1.5, 4.0], [0.4, -2.5])),
)  # fmt: skip

stdtrit = elementwise(
    "stdtrit", "df, y", "the t with stdtr(df, t) = y",
    time=300,
    forward=keeping_float32(lambda xp, df, p: by_scipy(xp, "stdtrit", df, p)),
    vjp=(
        lambda g, y, df, _p: -g * bind(partial_of_two, (df, y), {"function": "stdtr", "orders": (1, 0)})
        * exp(-log_student_density(df, y)),
        lambda g, y, df, _p: g * exp(-log_student_density(df, y)),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="by df g*-d/f, d being that of stdtr by df and f the density, g/f",
    domain="df > 0, 0 < y < 1",
    samples=((2.5, 0.7), ([1.5, 4.0], [0.2, 0.6])),
)  # fmt: skip
