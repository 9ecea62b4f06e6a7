"""Elementwise hypergeometric functions."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.host_functions import by_balls
from gradcli.primitives.entries.arithmetic import divide
from gradcli.primitives.entries.special_functions.numerical_partials import derivative
from gradcli.primitives.families import complex_by_scipy, elementwise, keeping_float32
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

# The time of one value in FLINT, in elements (the time of one element of a sum).
_TIME = 5_000


def _in_balls(name: str) -> Any:
    """Evaluate in ball arithmetic, as SciPy's functions are inaccurate for many parameters."""
    return keeping_float32(lambda xp, *operands: by_balls(xp, name, *operands))


hyp0f1: Primitive = elementwise(
    "hyp0f1", "b, z", "confluent hypergeometric limit function 0F1(b; z)",
    numbers="analytic", of_complex=complex_by_scipy("hyp0f1"),
    time=40,
    vjp=(derivative("hyp0f1", 0, 2), lambda g, _y, b, z: g * divide(hyp0f1(b + 1.0, z), b)),
    spelling=names_elsewhere("scipy"),
    derivative="by b computed by itself, g*hyp0f1(b + 1, z)/b",
    domain="b is no whole number <= 0",
    samples=((1.5, 0.7), ([0.5, 2.2], [-2.5, 0.4])),
)  # fmt: skip

hyp1f1: Primitive = elementwise(
    "hyp1f1", "a, b, x", "Kummer's confluent hypergeometric function 1F1(a; b; x)",
    numbers="analytic", of_complex=complex_by_scipy("hyp1f1"),
    time=_TIME,
    forward=_in_balls("hyp1f1"),
    vjp=(
        derivative("hyp1f1", 0, 3),
        derivative("hyp1f1", 1, 3),
        lambda g, _y, a, b, x: g * (divide(a, b) * hyp1f1(a + 1.0, b + 1.0, x)),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="by a and b computed by themselves, g*a/b*hyp1f1(a + 1, b + 1, x)",
    domain="b is no whole number <= 0",
    samples=((2.5, 1.5, 0.7), ([0.5, -1.2], 2.2, [0.4, -2.5])),
)  # fmt: skip

hyperu: Primitive = elementwise(
    "hyperu", "a, b, x", "Tricomi's confluent hypergeometric function U(a, b, x)",
    time=_TIME,
    forward=_in_balls("hyperu"),
    vjp=(
        derivative("hyperu", 0, 3),
        derivative("hyperu", 1, 3),
        lambda g, _y, a, b, x: -g * (a * hyperu(a + 1.0, b + 1.0, x)),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="by a and b computed by themselves, -g*a*hyperu(a + 1, b + 1, x)",
    domain="x > 0",
    samples=((2.5, 1.5, 0.7), ([0.5, 1.2], 2.2, [0.4, 2.5])),
)  # fmt: skip

hyp2f1: Primitive = elementwise(
    "hyp2f1", "a, b, c, z", "Gauss's hypergeometric function 2F1(a, b; c; z)",
    numbers="analytic", of_complex=complex_by_scipy("hyp2f1"),
    time=_TIME,
    forward=_in_balls("hyp2f1"),
    vjp=(
        derivative("hyp2f1", 0, 4),
        derivative("hyp2f1", 1, 4),
        derivative("hyp2f1", 2, 4),
        lambda g, _y, a, b, c, z: g * (divide(a * b, c) * hyp2f1(a + 1.0, b + 1.0, c + 1.0, z)),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="by a, b and c computed by themselves, g*a*b/c*hyp2f1(a + 1, b + 1, c + 1, z)",
    domain="z < 1, c is no whole number <= 0",
    samples=((2.5, 1.5, 2.2, 0.4), ([0.5, 1.2], 2.2, 1.7, [0.3, -2.5])),
)  # fmt: skip
