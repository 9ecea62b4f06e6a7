"""One chain of draws: its start, its warm-up, which adapts step size and variances as in Stan, and its transitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli import arrays, limits
from gradcli.errors import EvaluationError
from gradcli.models.sampling.densities import LogDensity, SampledDensity
from gradcli.models.sampling.no_u_turn import NoUTurnSampler, Transition
from gradcli.named_tuples import NamedTuple

# Starts are drawn within this distance of the given one, on the scale of the sampler, and at most so often.
_AROUND, _MOST_STARTS = 1.0, 100
# The constants of dual averaging (Hoffman and Gelman, 2014, section 3.2).
_REGULARISATION, _DELAY, _FORGETTING = 0.05, 10.0, 0.75
# The logarithm of the largest step size, whose exponential is finite.
_LARGEST_LOGARITHM = 700.0
# The first phase, the last one, and the first window, in iterations; their shares where the warm-up is short.
_FIRST, _LAST, _WINDOW, _SHARES = 75, 50, 25, (0.15, 0.1)


class SamplerSettings(NamedTuple):
    """The numbers of chains, warm-up iterations and draws; the acceptance probability aimed at, the largest depth of a
    tree, and the seed."""

    chains: int
    warmup: int
    draws: int
    target: float
    max_depth: int
    seed: int

    def seeds(self) -> list[ChainSeeds]:
        """The seeds of each chain."""
        pairs = np.random.SeedSequence(self.seed, spawn_key=(self.chains,)).spawn(-(-self.chains // 2))
        own = np.random.SeedSequence(self.seed).spawn(self.chains)
        return [ChainSeeds(seed, pairs[k // 2], 1.0 - 2.0 * (k % 2)) for k, seed in enumerate(own)]


class ChainSeeds(NamedTuple):
    """The seeds of the transitions of a chain and of its start. Two chains start on opposite sides of the given start:
    of two modes around that, both are found."""

    transitions: np.random.SeedSequence
    start: np.random.SeedSequence
    side: float


class Chain(NamedTuple):
    """Positions `[draws, n]` on the scale of the sampler, energies `[draws]`, and how the transitions went."""

    positions: Any
    energies: Any
    divergences: int
    too_deep: int
    step_size: float
    steps: int


def chain(
    density: LogDensity,
    target: SampledDensity,
    settings: SamplerSettings,
    seeds: ChainSeeds,
    tell: Callable[[int], object],
) -> Chain:
    """The chain of two seeds, which depends on nothing else. `tell` is called with the number of iterations done."""
    density.renew()
    with arrays.quiet():
        return _chain(density, target, settings, seeds, tell)


def _chain(
    density: LogDensity,
    target: SampledDensity,
    settings: SamplerSettings,
    seeds: ChainSeeds,
    tell: Callable[[int], object],
) -> Chain:
    start = target.transform().inverse(target.start)
    with limits.within(*target.budget):
        position, value, gradient = _begin(density, start, seeds)
    random = np.random.default_rng(seeds.transitions)
    sampler = _sampler(density, len(start), settings.max_depth, random)
    step_size, variances = DualAveraging(settings.target), Variances(len(start))
    first, ends = _window_ends(settings.warmup)
    with limits.within(*target.budget):
        sampler.find_step_size(position, value, gradient)
    step_size.restart(sampler.step_size)
    positions = np.empty((settings.draws, len(start)))
    energies = np.empty(settings.draws)
    divergences = too_deep = steps = 0
    for n in range(settings.warmup + settings.draws):
        with limits.within(*target.budget):
            made: Transition = sampler.transition(position, value, gradient)
            position, value, gradient = made.position, made.density, made.gradient
            if n < settings.warmup:
                sampler.step_size = step_size.learn(made.acceptance)
                if first <= n < (ends[-1] if ends else 0):
                    variances.add(position)
                if n + 1 in ends:
                    sampler.variances, variances = variances.estimate(), Variances(len(start))
                    sampler.find_step_size(position, value, gradient)
                    step_size.restart(sampler.step_size)
                if n + 1 == settings.warmup:
                    sampler.step_size = step_size.final
            else:
                k = n - settings.warmup
                positions[k], energies[k] = position, made.energy
                divergences += made.diverged
                too_deep += made.depth == settings.max_depth and not made.diverged
                steps += made.steps
        tell(n + 1)
    return Chain(positions, energies, divergences, too_deep, sampler.step_size, steps)


def _sampler(density: LogDensity, size: int, max_depth: int, random: np.random.Generator) -> NoUTurnSampler:
    if density.compiled is None:
        return NoUTurnSampler(density, size, max_depth, random)
    from gradcli.models.sampling.compiled_trajectories import CompiledSampler

    return CompiledSampler(density.compiled, max_depth, random)


def _begin(density: LogDensity, start: Any, seeds: ChainSeeds) -> tuple[Any, float, Any]:
    random = np.random.default_rng(seeds.start)
    for k in range(_MOST_STARTS + 1):
        # The last try is the given start itself.
        offset = 0.0 if k == _MOST_STARTS else seeds.side * random.uniform(-_AROUND, _AROUND, len(start))
        value, gradient = density(start + offset)
        if math.isfinite(value):
            return start + offset, value, gradient
    raise EvaluationError(
        "there is no finite log density, with a gradient, at the start", hint="start where the program has a value"
    )


class DualAveraging:
    """The step size whose mean acceptance probability is `target`."""

    def __init__(self, target: float) -> None:
        self.target = target
        self.restart(1.0)

    def restart(self, step_size: float) -> None:
        self._count, self._excess, self._mean = 0, 0.0, 0.0
        self._toward = math.log(10.0 * step_size)

    def learn(self, acceptance: float) -> float:
        """The next step size, after a transition with this acceptance probability."""
        self._count += 1
        share = 1.0 / (self._count + _DELAY)
        self._excess = (1 - share) * self._excess + share * (self.target - acceptance)
        # A density that is flat, or that grows without end, accepts steps of any size.
        logarithm = min(self._toward - self._excess * math.sqrt(self._count) / _REGULARISATION, _LARGEST_LOGARITHM)
        weight = self._count**-_FORGETTING
        self._mean = weight * logarithm + (1 - weight) * self._mean
        return math.exp(logarithm)

    @property
    def final(self) -> float:
        """The step size to stay with."""
        return math.exp(self._mean)


class Variances:
    """The variances of positions, shrunk toward 0.001 while there are few."""

    def __init__(self, size: int) -> None:
        self._count = 0
        self._mean, self._squares = np.zeros(size), np.zeros(size)

    def add(self, position: Any) -> None:
        self._count += 1
        offset = position - self._mean
        self._mean += offset / self._count
        self._squares += offset * (position - self._mean)

    def estimate(self) -> Any:
        count = self._count
        return (count / (count + 5.0)) * self._squares / max(1, count - 1) + 1e-3 * (5.0 / (count + 5.0))


def _window_ends(warmup: int) -> tuple[int, list[int]]:
    """The iteration at which the first window begins, and those at which windows end, after which the variances are
    used."""
    first, last, length = _FIRST, _LAST, _WINDOW
    if warmup < 20:
        return warmup, []
    if first + last + length > warmup:
        first, last = (int(share * warmup) for share in _SHARES)
        return first, [warmup - last]
    ends, begin = [], first
    while begin < warmup - last:
        end = begin + length
        # A window that would leave no room for the next, of twice the length, takes what is left.
        if end + 2 * length > warmup - last:
            end = warmup - last
        ends.append(end)
        begin, length = end, 2 * length
    return first, ends
