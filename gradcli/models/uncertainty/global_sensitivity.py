"""Which inputs matter over their whole distributions? Sobol' indices, and the elementary effects of Morris.

Both are of independent inputs, for which the program is evaluated at many points; derivatives at the estimates are in the
budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli import arrays, limits
from gradcli.errors import EvaluationError, GradcliError, ShapeError, UsageError
from gradcli.language.syntax.tree import Module
from gradcli.models.results import Sampling
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.models.uncertainty.monte_carlo import check_independent, columns_of, quantile, uncertain_places
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_programs import RowProgram

# The number of evaluations unless a number of samples is given, and the fewest points of a Sobol' sequence and
# trajectories.
_SOBOL_EVALUATIONS, _MORRIS_EVALUATIONS = 2**16, 1_000
_FEWEST_POINTS, _FEWEST_TRAJECTORIES = 64, 4
# Bootstrap samples of the standard errors of indices.
_RESAMPLES = 400
# The levels of each input in a trajectory, and the step between two of them, as Morris chose them.
_LEVELS = 4
_STEP = _LEVELS / (2 * (_LEVELS - 1))
# The range of an input without limits, in probabilities.
_TAIL = 0.005
# Largest number of input values at once.
_AT_ONCE = 2**20
# Digits and dimensions of SciPy's Sobol' sequence.
_BITS = 30
_MOST_DIMENSIONS = 21_201


@dataclass(frozen=True)
class SobolIndex:
    """The first-order index of an input, the share of the variance that it explains alone, and the total index, that of
    all terms in which it takes part, with standard errors and intervals."""

    name: str
    first: float
    first_error: float
    first_interval: tuple[float, float]
    total: float
    total_error: float
    total_interval: tuple[float, float]


@dataclass(frozen=True)
class SobolIndices:
    """The Sobol' indices of a result, from `points` points of a Sobol' sequence and `evaluations` of the program."""

    indices: Sequence[SobolIndex]
    points: int
    evaluations: int


@dataclass(frozen=True)
class ElementaryEffect:
    """The mean `mu` of the elementary effects of an input, the mean `mu_star` of their absolute values with its
    standard error, and their standard deviation `sigma`, which is large where the effect is not linear or depends on
    others.

    An effect is the change of the result for the range of the input.
    """

    name: str
    mu: float
    mu_star: float
    mu_star_error: float
    sigma: float


@dataclass(frozen=True)
class MorrisEffects:
    """The elementary effects on a result, from a number of `trajectories` and of `evaluations` of the program."""

    effects: Sequence[ElementaryEffect]
    trajectories: int
    evaluations: int


class SensitivityRun(NamedTuple):
    """The problem of an analysis: the program of m results, its inputs, the number of samples that was asked for, the
    seed, the limits of steps and elements, and a function that is called with the number of evaluations so far."""

    program: Module
    quantities: Quantities
    samples: int | None
    seed: int
    most: tuple[int, int]
    watch: Callable[[Sampling], object]

    def values(self, numbers: Any) -> Any:
        """The results `[rows, m]` for inputs `[rows, n]`. Raises the error of the first row that has none, as indices
        would be those of another distribution without it."""
        rows, size = numbers.shape
        limits.charge(rows * (size + 1))
        program = RowProgram(self.program, (), 0, max_steps=self.most[0], max_elements=self.most[1])
        at_once = max(1, _AT_ONCE // size)
        parts = []
        for start in range(0, rows, at_once):
            part = numbers[start : start + at_once]
            found = program.run(columns_of(self.quantities, part), self.quantities.exact, rows=len(part))
            if found.failures:
                raise found.failures[0].error
            if found.value.dtype == object:
                raise ShapeError("the value has other shapes for other values of the inputs")
            values = np.asarray(found.value, "float64").reshape(len(part), -1)
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if len(bad):
                raise self._nonfinite(part[bad[0]])
            parts.append(values)
            self.watch(Sampling(start + len(part), rows))
        return np.concatenate(parts)

    def _nonfinite(self, numbers: Any) -> GradcliError:
        labels = self.quantities.packing.labels()
        where = ", ".join(f"{labels[place]} = {numbers[place]:.6g}" for place in uncertain_places(self.quantities)[:3])
        return EvaluationError(
            f"the value is not finite at {where}",
            hint="give the inputs distributions where it is, as in x=~uniform(1, 2)",
            span=self.program.body[-1].span,
            source=self.program.source,
        )

    def inputs(self, probabilities: Any) -> Any:
        """The inputs `[rows, n]` at probabilities `[rows, k]` of the k uncertain ones."""
        numbers = np.tile(self.quantities.mean, (len(probabilities), 1))
        for column, place in enumerate(uncertain_places(self.quantities)):
            numbers[:, place] = quantile(self.quantities, place, probabilities[:, column])
        return numbers

    @property
    def labels(self) -> Sequence[str]:
        """The labels `[k]` of the uncertain inputs."""
        labels = self.quantities.packing.labels()
        return [labels[place] for place in uncertain_places(self.quantities)]


# --- Sobol' indices


def sobol_indices(run: SensitivityRun, level: float) -> list[SobolIndices]:
    """The indices of each of m results.

    The first-order estimator is that of A. Saltelli and others (Computer Physics Communications 181 (2010) 259), the one
    of total indices that of M. J. W. Jansen (1999), on a Sobol' sequence with a random shift; standard errors and intervals at a
    `level` are from bootstrap samples of its points.
    """
    from scipy.stats import qmc

    check_independent(run.quantities, "Sobol' indices")
    size = len(run.labels)
    if 2 * size > _MOST_DIMENSIONS:
        raise UsageError(f"{size:,} inputs are too many for Sobol' indices", hint="--morris finds those that matter")
    count = _points(size, run.samples)
    limits.charge(count * (size + 2) * (size + 1))
    generator = np.random.default_rng(run.seed)
    # A random digital shift, whose points depend on the seed alone, not on the version of SciPy.
    whole = (qmc.Sobol(2 * size, scramble=False, bits=_BITS).random(count) * 2**_BITS).astype("int64")
    shares = ((whole ^ generator.integers(0, 2**_BITS, 2 * size)) + 0.5) / 2**_BITS
    first, second = shares[:, :size], shares[:, size:]
    mixed = [np.where(np.arange(size) == place, second, first) for place in range(size)]
    values = run.values(run.inputs(np.concatenate([first, second, *mixed])))
    values = values.reshape(size + 2, count, -1)
    limits.charge(_RESAMPLES * count)
    return [_indices(run.labels, values[:, :, place], generator, level) for place in range(values.shape[2])]


def _points(size: int, samples: int | None) -> int:
    """The number of points, a power of 2 with at most `samples` evaluations."""
    asked = _SOBOL_EVALUATIONS if samples is None else samples
    return max(_FEWEST_POINTS, 1 << max(0, (asked // (size + 2)).bit_length() - 1))


def _indices(labels: Sequence[str], values: Any, generator: Any, level: float) -> SobolIndices:
    """The indices from the results `[2 + k, N]` at the first and the second points and at those with one input of the
    second."""
    size, count = len(labels), values.shape[1]
    # The estimators have smaller errors for results about 0.
    first, second, *mixed = values - values[:2].mean()
    terms = [first + second, first**2 + second**2]
    terms += [second * (each - first) for each in mixed] + [(first - each) ** 2 / 2 for each in mixed]
    means = _means(np.stack(terms, axis=1), generator)
    with arrays.quiet():
        variance = means[:, 1] / 2 - (means[:, 0] / 2) ** 2
        # Rounding errors of the values, whose variance is that of a constant.
        variance[variance <= 1e-28 * (values**2).mean()] = np.nan
        shares = means[:, 2:] / variance[:, None]
    ends = np.quantile(shares[1:], [(1 - level) / 2, (1 + level) / 2], axis=0).T.tolist()
    errors = shares[1:].std(axis=0, ddof=1).tolist()
    found = shares[0].tolist()
    return SobolIndices(
        [
            SobolIndex(
                label, found[i], errors[i], tuple(ends[i]), found[size + i], errors[size + i], tuple(ends[size + i])
            )
            for i, label in enumerate(labels)
        ],
        count,
        (size + 2) * count,
    )


def _means(terms: Any, generator: Any) -> Any:
    """The means `[1 + R, t]` of terms `[N, t]` over all points, and over R bootstrap samples, in which each point is as
    often as a Poisson number says."""
    count = len(terms)
    found = [terms.mean(axis=0, keepdims=True)]
    at_once = max(1, _AT_ONCE // count)
    for start in range(0, _RESAMPLES, at_once):
        weights = generator.poisson(1.0, (min(at_once, _RESAMPLES - start), count)).astype("float64")
        found.append(weights @ terms / np.maximum(weights.sum(axis=1, keepdims=True), 1.0))
    return np.concatenate(found)


# --- elementary effects


def morris_effects(run: SensitivityRun) -> list[MorrisEffects]:
    """The elementary effects on each of m results, by random trajectories in which one input after the other changes
    (M. D. Morris, Technometrics 33 (1991) 161; mu* of F. Campolongo and others, 2007)."""
    check_independent(run.quantities, "elementary effects")
    size = len(run.labels)
    asked = _MORRIS_EVALUATIONS if run.samples is None else run.samples
    count = max(_FEWEST_TRAJECTORIES, asked // (size + 1))
    generator = np.random.default_rng(run.seed)
    starts = generator.integers(0, _LEVELS // 2, (count, size)) / (_LEVELS - 1)
    rising = generator.integers(0, 2, (count, size)).astype(bool)
    order = generator.permuted(np.tile(np.arange(size), (count, 1)), axis=1)
    # Input i has changed at the points of a trajectory after the one at its rank.
    changed = np.arange(size + 1)[None, :, None] > np.argsort(order, axis=1)[:, None, :]
    points = starts[:, None, :] + _STEP * (changed == rising[:, None, :])
    values = run.values(run.inputs(_probabilities(run, points.reshape(-1, size))))
    changes = np.diff(values.reshape(count, size + 1, -1), axis=1) / _STEP
    effects = np.empty_like(changes)
    np.put_along_axis(effects, order[:, :, None], changes, axis=1)
    effects *= np.where(rising, 1.0, -1.0)[:, :, None]
    return [_effects(run.labels, effects[:, :, place]) for place in range(values.shape[1])]


def _probabilities(run: SensitivityRun, levels: Any) -> Any:
    """The probabilities of levels from 0 to 1: those of an input without limits avoid its tails."""
    found = levels.copy()
    for column, place in enumerate(uncertain_places(run.quantities)):
        ends = quantile(run.quantities, place, np.array([0.0, 1.0]))
        if not np.isfinite(ends).all():
            found[:, column] = _TAIL + (1 - 2 * _TAIL) * levels[:, column]
    return found


def _effects(labels: Sequence[str], effects: Any) -> MorrisEffects:
    """The moments of the effects `[trajectories, k]`."""
    count = len(effects)
    sizes = np.abs(effects)
    columns = (
        effects.mean(axis=0),
        sizes.mean(axis=0),
        sizes.std(axis=0, ddof=1) / math.sqrt(count),
        effects.std(axis=0, ddof=1),
    )
    return MorrisEffects(
        [ElementaryEffect(label, *row) for label, *row in zip(labels, *(column.tolist() for column in columns))],
        count,
        count * (len(labels) + 1),
    )
