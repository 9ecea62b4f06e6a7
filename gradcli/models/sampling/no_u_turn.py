"""The no-U-turn sampler with multinomial weights, as in Stan.

M. D. Hoffman and A. Gelman, "The No-U-Turn Sampler", JMLR 15 (2014) 1593; M. Betancourt, "A Conceptual Introduction to
Hamiltonian Monte Carlo", arXiv:1701.02434.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.named_tuples import NamedTuple

# An energy that is higher by this much than at the beginning counts as a divergence.
DIVERGED = 1_000.0

# The logarithm of a density and its gradient.
Density = Callable[[Any], tuple[float, Any]]


class PhasePoint(NamedTuple):
    """A position with its momentum, log density and gradient."""

    position: Any
    momentum: Any
    density: float
    gradient: Any


class Transition(NamedTuple):
    """A draw, with its tree: `depth`, leapfrog `steps`, mean acceptance probability, and whether it `diverged`. `energy`
    is that of the draw."""

    position: Any
    density: float
    gradient: Any
    depth: int
    steps: int
    acceptance: float
    diverged: bool
    energy: float


class _Tree(NamedTuple):
    """A part of a trajectory: its first and last points in the direction of time of its growth, the sum of momenta, a
    draw, the logarithm of the sum of weights, and whether it goes on."""

    first: PhasePoint
    last: PhasePoint
    momenta: Any
    draw: PhasePoint
    weight: float
    goes_on: bool


class NoUTurnSampler:
    """Transitions that leave a density invariant. `variances` `[n]` are the diagonal of the inverse mass matrix."""

    def __init__(self, density: Density, size: int, max_depth: int, random: np.random.Generator) -> None:
        self.density, self.max_depth, self.random = density, max_depth, random
        self.step_size = 1.0
        self.variances = np.ones(size)
        self._steps, self._acceptance, self._diverged, self._energy = 0, 0.0, False, 0.0

    def transition(self, position: Any, density: float, gradient: Any) -> Transition:
        """The next draw after a position."""
        momentum = self.random.standard_normal(len(position)) / np.sqrt(self.variances)
        point = PhasePoint(position, momentum, density, gradient)
        self._energy = self._energy_of(point)
        self._steps, self._acceptance, self._diverged = 0, 0.0, False
        backward = forward = draw = point
        momenta, weight, depth = momentum.copy(), 0.0, 0
        while depth < self.max_depth:
            is_forward = bool(self.random.random() < 0.5)
            tree = self._built(depth, forward if is_forward else backward, 1.0 if is_forward else -1.0)
            depth += 1
            if not tree.goes_on:
                break
            if tree.weight > weight or self.random.random() < math.exp(tree.weight - weight):
                draw = tree.draw
            weight = float(np.logaddexp(weight, tree.weight))
            joined = momenta + tree.momenta
            # The parts on both sides of the join must not turn either.
            if is_forward:
                turns = self._turns(backward, tree.last, joined) or self._turns(
                    backward, tree.first, momenta + tree.first.momentum
                )
                turns = turns or self._turns(forward, tree.last, tree.momenta + forward.momentum)
                forward = tree.last
            else:
                turns = self._turns(tree.last, forward, joined) or self._turns(
                    tree.first, forward, momenta + tree.first.momentum
                )
                turns = turns or self._turns(tree.last, backward, tree.momenta + backward.momentum)
                backward = tree.last
            momenta = joined
            if turns:
                break
        acceptance = self._acceptance / max(1, self._steps)
        return Transition(
            draw.position, draw.density, draw.gradient, depth, self._steps, acceptance, self._diverged,
            self._energy_of(draw),
        )  # fmt: skip

    def _energy_of(self, point: PhasePoint) -> float:
        kinetic = 0.5 * float((self.variances * point.momentum) @ point.momentum)
        energy = kinetic - point.density
        return math.inf if math.isnan(energy) else energy

    def leapfrog(self, point: PhasePoint, direction: float) -> PhasePoint:
        """One step of the integrator."""
        step = direction * self.step_size
        momentum = point.momentum + 0.5 * step * point.gradient
        position = point.position + step * self.variances * momentum
        density, gradient = self.density(position)
        return PhasePoint(position, momentum + 0.5 * step * gradient, density, gradient)

    def _turns(self, one: PhasePoint, other: PhasePoint, momenta: Any) -> bool:
        return bool((self.variances * one.momentum) @ momenta <= 0 or (self.variances * other.momentum) @ momenta <= 0)

    def _built(self, depth: int, start: PhasePoint, direction: float) -> _Tree:
        """A tree of 2**depth further steps; its depth is at most that of `max_depth`."""
        if depth == 0:
            point = self.leapfrog(start, direction)
            excess = self._energy_of(point) - self._energy
            self._steps += 1
            self._acceptance += math.exp(-max(0.0, excess)) if excess < 700 else 0.0
            diverged = not excess <= DIVERGED
            self._diverged |= diverged
            return _Tree(point, point, point.momentum, point, -excess, not diverged)
        first = self._built(depth - 1, start, direction)
        if not first.goes_on:
            return first
        second = self._built(depth - 1, first.last, direction)
        if not second.goes_on:
            return second
        weight = float(np.logaddexp(first.weight, second.weight))
        draw = second.draw if self.random.random() < math.exp(second.weight - weight) else first.draw
        momenta = first.momenta + second.momenta
        turns = (
            self._turns(first.first, second.last, momenta)
            or self._turns(first.first, second.first, first.momenta + second.first.momentum)
            or self._turns(first.last, second.last, second.momenta + first.last.momentum)
        )
        return _Tree(first.first, second.last, momenta, draw, weight, not turns)

    def find_step_size(self, position: Any, density: float, gradient: Any) -> None:
        """Double or halve the step size until one step has an acceptance probability of about 0.8."""
        point = PhasePoint(position, self.random.standard_normal(len(position)), density, gradient)
        way = 0.0
        for _ in range(60):
            momentum = self.random.standard_normal(len(position)) / np.sqrt(self.variances)
            point = point._replace(momentum=momentum)
            change = self._energy_of(point) - self._energy_of(self.leapfrog(point, 1.0))
            accepted = change > math.log(0.8)
            if way and accepted is not (way > 0):
                return
            way = 1.0 if accepted else -1.0
            self.step_size *= 2.0**way
