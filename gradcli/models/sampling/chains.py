"""One chain of draws: its start, its warm-up, and its transitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli import arrays, limits
from gradcli.errors import EvaluationError
from gradcli.models.sampling.adaptation import DualAveraging, Variances, window_ends
from gradcli.models.sampling.densities import LogDensity, Target
from gradcli.models.sampling.no_u_turn import NoUTurnSampler, Transition

# Starts are drawn within this distance of the given one, on the scale of the sampler, and at most so often.
_AROUND, _MOST_STARTS = 1.0, 100


class SamplerSettings(NamedTuple):
    """How many chains, warm-up iterations and draws; the acceptance probability aimed at, the largest depth of a tree,
    and the seed."""

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
    target: Target,
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
    target: Target,
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
    first, ends = window_ends(settings.warmup)
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
