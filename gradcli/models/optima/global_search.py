"""Global search: local searches from many starts, the lowest minimum, and an estimate of whether others remain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.errors import LimitError
from gradcli.models.optima.local_search import search
from gradcli.models.optima.newton import SearchEnd
from gradcli.models.optima.optimality import infeasible
from gradcli.models.optima.optimization_problems import Problem, check_start
from gradcli.models.optima.populations import MOST_VARIABLES, Population
from gradcli.models.optima.verdicts import verdict_of
from gradcli.models.results import ProgressCallback

# The default number of starts: `_STARTS` and `_FOR_EACH` per variable, at most `_MOST`.
_STARTS, _FOR_EACH, _MOST = 20, 10, 200
# Upper bound of the iterations of each local search.
_SHORT = 200
# Relative distance of points and values beyond which minima count as different.
_APART = 1e-5
# Without bounds, starts are drawn within this multiple of the size of the given start.
_AROUND = 10.0
# The largest offset, as a share of the range, from a point without a gradient to the start of a search.
_ASIDE = 1e-4
# Where more than this share of the searches ended at minima that no other search found, many minima are likely to be
# unseen (I. J. Good, "The population frequencies of species", Biometrika 40 (1953) 237).
_UNSEEN = 0.1


class GlobalEnd(NamedTuple):
    """The lowest point that was found, the numbers of different `minima`, of `searches`, and of minima that only one
    search found (`alone`), and whether a limit of the run ended the global search early (`is_cut`)."""

    lowest: SearchEnd
    minima: int
    searches: int
    alone: int
    is_cut: bool

    def told(self, is_maximum: bool) -> str:
        """A message on how likely a lower minimum is."""
        lowest, lower = ("highest", "higher") if is_maximum else ("lowest", "lower")
        which = "the only one" if self.minima == 1 else f"the {lowest} of {self.minima:,}"
        found = f"{which} that {self.searches:,} searches found"
        if self.is_cut:
            return f"{found} before a limit was met: there may be a {lower} one"
        if self.alone > max(1.0, _UNSEEN * self.searches):
            return f"{found}, {self.alone:,} of them once: there are more, and there may be a {lower} one"
        return f"{found}, which does not prove that there is no {lower} one"


def search_globally(
    posed: Problem, method: str, most: int, starts: int | None, seed: int, watch: ProgressCallback
) -> GlobalEnd:
    """The lowest minimum that local searches find from `starts` starts and from the results of differential evolution.
    The starts are the given one, sampled points that are lower than their neighbours, and a Latin hypercube between the
    bounds or, without bounds, around the given start."""
    np = arrays.numpy_namespace()
    ends: list[SearchEnd] = []
    found: list[SearchEnd] = []
    is_cut = False

    def search_from(start: Any, longest: int) -> None:
        if math.isfinite(posed.objective.value_and_gradient(start)[0]):
            ended = search(posed, start, method, longest, watch)
            if verdict_of(posed, ended).converged:
                found.append(ended)
            ends.append(ended)

    search_from(posed.start, most)
    population, others = _starts(posed, starts, seed)
    for further in (lambda: others, lambda: _evolved(posed, population, seed, watch)):
        try:
            # At a limit, the minima found so far are reported: limits.attempt leaves a part of the budget for their
            # verdicts.
            with limits.optional_budget():
                for start in further():
                    search_from(start, min(most, _SHORT))
        except LimitError:
            is_cut = True
    if not ends:
        check_start(posed.objective, posed.start)
    failed = [end for end in ends if not any(end is each for each in found)]
    spent = sum(end.iterations for end in ends)
    different: list[list[SearchEnd]] = []
    for each in sorted(found, key=lambda each: each.value):
        known = next((ends for ends in different if _is_same(each, ends[0], np)), None)
        if known is None:
            different.append([each])
        else:
            known.append(each)
    lowest = different[0][0] if different else failed[0]
    # A search that ended below all minima without converging is continued; it may show that there is no lowest minimum.
    deeper = [end for end in failed if _is_below(posed, end, lowest)]
    if deeper:
        deepest = min(deeper, key=lambda end: end.value)
        ended = search(posed, deepest.point, method, most, watch) if math.isfinite(deepest.value) else deepest
        spent += ended.iterations
        lowest = ended if _is_below(posed, ended, lowest) else deepest
        if verdict_of(posed, lowest).converged:
            different.append([lowest])
    alone = sum(len(ends) == 1 for ends in different)
    return GlobalEnd(lowest._replace(iterations=spent), len(different), len(ends), alone, is_cut)


def _is_below(posed: Problem, end: SearchEnd, lowest: SearchEnd) -> bool:
    if not end.value < lowest.value - _APART * (1.0 + abs(lowest.value)):
        return False
    return not len(posed.constraints) or not infeasible(posed.constraints, end.point).any()


def _is_same(one: SearchEnd, other: SearchEnd, np: Any) -> bool:
    near = abs(one.point - other.point) <= _APART * (1.0 + abs(one.point))
    return bool(near.all()) and abs(one.value - other.value) <= _APART * (1.0 + abs(one.value))


def _starts(posed: Problem, count: int | None, seed: int) -> tuple[Population | None, Any]:
    """The population between the bounds, None for too many variables, and the starts `[k, n]` in addition to the given
    one."""
    np = arrays.numpy_namespace()
    size = len(posed.start)
    left = (min(_MOST, _STARTS + _FOR_EACH * size) if count is None else count) - 1
    reach = _AROUND * np.maximum(1.0, abs(posed.start))
    low = np.where(np.isfinite(posed.low), posed.low, np.minimum(posed.start, posed.high) - reach)
    high = np.where(np.isfinite(posed.high), posed.high, np.maximum(posed.start, low) + reach)
    generator = np.random.default_rng(seed)
    population = Population(posed, low, high) if size <= MOST_VARIABLES else None
    low_points = np.zeros((0, size)) if population is None else population.low_points(left // 2, generator)
    left -= len(low_points)
    # A Latin hypercube: each variable has one point in each of `left` equal parts of its range.
    parts = np.stack([generator.permutation(left) for _ in range(size)], axis=1)
    cube = low + (parts + generator.random((left, size))) / max(left, 1) * (high - low)
    return population, np.concatenate([low_points, cube])


def _evolved(posed: Problem, population: Population | None, seed: int, watch: ProgressCallback) -> Iterator[Any]:
    """The results of differential evolution, slightly moved where a kink leaves them without a gradient."""
    np = arrays.numpy_namespace()
    if population is None:
        return
    generator = np.random.default_rng(seed)
    for point in population.evolved(seed, watch):
        is_smooth = np.isfinite(posed.objective.value_and_gradient(point)[1]).all()
        aside = _ASIDE * (generator.random(len(point)) - 0.5) * (population.high - population.low)
        yield point if is_smooth else np.clip(point + aside, population.low, population.high)
