"""Many starts for one minimum: the lowest is kept, and it is counted how many there are."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.models.optima.local_search import search
from gradcli.models.optima.newton import SearchEnd
from gradcli.models.optima.optimality import infeasible
from gradcli.models.optima.posing import PosedObjective
from gradcli.models.optima.verdicts import judged
from gradcli.models.results import Watcher

# So many starts, and so many more for each variable, but no more than the last.
_STARTS, _FOR_EACH, _MOST = 20, 10, 200
# Iterations of each.
_SHORT = 200
# How far apart minima are that are told apart, beside the size of their points and values.
_APART = 1e-5
# Without bounds starts are drawn so far around the one that was given, in its sizes.
_AROUND = 10.0


def search_globally(posed: PosedObjective, method: str, most: int, seed: int, watch: Watcher) -> tuple[SearchEnd, int]:
    """The lowest minimum that the starts lead to, and the number of different ones. The starts are a Latin hypercube
    between the bounds, where there are such, and around the given start, which is the first of them."""
    np = arrays.numpy_namespace()
    found: list[SearchEnd] = []
    failed: list[SearchEnd] = []
    spent = 0
    for number, start in enumerate(_starts(posed, seed)):
        if not math.isfinite(posed.objective.value_and_gradient(start)[0]):
            continue
        ended = search(posed, start, method, most if not number else min(most, _SHORT), watch)
        spent += ended.iterations
        (found if judged(posed, ended).converged else failed).append(ended)
    different: list[SearchEnd] = []
    for each in sorted(found, key=lambda each: each.value):
        if not any(_is_same(each, other, np) for other in different):
            different.append(each)
    lowest = different[0] if different else failed[0]
    # What came deeper than all minima is no end of a search, and says that there is no lowest one where it has none.
    deeper = [end for end in failed if _is_below(posed, end, lowest)]
    if deeper:
        deepest = min(deeper, key=lambda end: end.value)
        ended = search(posed, deepest.point, method, most, watch) if math.isfinite(deepest.value) else deepest
        spent += ended.iterations
        lowest = ended if _is_below(posed, ended, lowest) else deepest
        if judged(posed, lowest).converged:
            different.append(lowest)
    return lowest._replace(iterations=spent), len(different)


def _is_below(posed: PosedObjective, end: SearchEnd, lowest: SearchEnd) -> bool:
    if not end.value < lowest.value - _APART * (1.0 + abs(lowest.value)):
        return False
    return not len(posed.constraints) or not infeasible(posed.constraints, end.point).any()


def _is_same(one: SearchEnd, other: SearchEnd, np: Any) -> bool:
    near = abs(one.point - other.point) <= _APART * (1.0 + abs(one.point))
    return bool(near.all()) and abs(one.value - other.value) <= _APART * (1.0 + abs(one.value))


def _starts(posed: PosedObjective, seed: int) -> Any:
    """Vectors `[k, n]`: each variable has one number in each of k - 1 equal parts of its range."""
    np = arrays.numpy_namespace()
    size = len(posed.start)
    count = min(_MOST, _STARTS + _FOR_EACH * size)
    reach = _AROUND * np.maximum(1.0, abs(posed.start))
    low = np.where(np.isfinite(posed.low), posed.low, np.minimum(posed.start, posed.high) - reach)
    high = np.where(np.isfinite(posed.high), posed.high, np.maximum(posed.start, low) + reach)
    generator = np.random.default_rng(seed)
    parts = np.stack([generator.permutation(count - 1) for _ in range(size)], axis=1)
    shares = (parts + generator.random((count - 1, size))) / (count - 1)
    return np.concatenate([posed.start[None], low + shares * (high - low)])
