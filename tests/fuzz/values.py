"""Numbers and tensors for the names of a program."""

from __future__ import annotations

import math
from random import Random
from typing import Any

EDGES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -2.0, 10.0, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e-160, 1e-17, 1e-8, 1e-3,
    1e8, 2.0**53, 1e16, 1e160, 1e300, 1.7e308, -1.7e308, 88.7, 170.6, -170.5, 709.7, 710.5, -745.0, 0.1, 1.4616321449683623,
    math.pi / 2, math.pi, 2.404825557695773, 0.9999999999999999, 1.0000000000000002, math.inf, -math.inf, math.nan,
)  # fmt: skip
POLICIES = ("plain", "plain", "plain", "signed", "whole", "edges", "mixed")


def number(rng: Random, policy: str) -> float:
    """A number as a policy has it: `plain` ones are moderate and positive, where most functions are smooth."""
    if policy == "mixed":
        policy = rng.choice(("plain", "signed", "whole", "edges"))
    if policy == "plain":
        return round(rng.uniform(0.2, 2.0), 3)
    if policy == "signed":
        return round(rng.gauss(0.0, 1.5), 3)
    if policy == "whole":
        return float(rng.randint(-3, 4))
    return rng.choice(EDGES)


def tensor(rng: Random, policy: str, shape: tuple[int, ...]) -> Any:
    """A number, or nested lists of numbers of this shape."""
    if not shape:
        return number(rng, policy)
    return [tensor(rng, policy, shape[1:]) for _ in range(shape[0])]


def any_shape(rng: Random) -> tuple[int, ...]:
    """Most are small; some are empty or have sizes of 1."""
    return rng.choice(
        ((), (), (), (2,), (3,), (3,), (2, 2), (2, 3), (3, 3), (1,), (1, 3), (3, 1), (2, 1, 3), (0,), (2, 0))
    )
