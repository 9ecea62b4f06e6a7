"""Points from which to search, for parameters that have no start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.models.problems import Problem


def start_values(problem: Problem, start: Any, linear: Sequence[int], count: int, seed: int, beside: Any = None) -> Any:
    """At most `count` points `[g, p]`; parameters that have a number in `start` `[p]` have it in all of them."""
    np = arrays.numpy_namespace()
    rng = np.random.default_rng(seed)
    points = 10 ** rng.uniform(-3, 3, (count, len(start)))
    points = np.where(np.isnan(start), points, start)
    return np.clip(points, problem.low, problem.high)
