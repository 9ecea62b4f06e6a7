"""Propagation of distributions by the Monte Carlo method (JCGM 101:2008, supplement 1 to the GUM); correlated inputs
have a Gaussian copula."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import BindingError, EvaluationError, GradcliError, ShapeError
from gradcli.language.syntax.tree import Module
from gradcli.models.results import Sampling
from gradcli.models.uncertainty.input_quantities import CorrelatedInputs, Quantities, triangular_factor
from gradcli.models.uncertainty.propagation_tables import tolerance
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_programs import RowProgram

# Largest number of input values drawn at once.
_AT_ONCE = 2**20
# The fewest draws of a block of adaptive sampling (JCGM 101, 7.9.4), and the most of all blocks.
_BLOCK, _MOST_SAMPLES = 10_000, 5 * 10**7
# With fewer blocks, such as the 2 of the guide, statistics often agree by chance (G. Wübbeler and others, Measurement
# Science and Technology 21 (2010) 075103).
_FEWEST_BLOCKS = 10
# Estimated work to sort and sum values, in array elements each.
_SUMMARY = 3
# The largest normal quantity of the trapezoidal rule, and the number of its points.
_REACH, _POINTS = 8.0, 4_001
# Terms of an expansion in Hermite polynomials.
_TERMS = 48
# An attainable correlation may be exceeded by this rounding error.
_ROUNDING = 1e-6
# The most degrees of freedom with which there are no correlations, as the variance is infinite.
_NO_DEVIATION = 2.0


@dataclass(frozen=True)
class MonteCarlo:
    """The mean of a result over the samples, their standard deviation, and a coverage interval; with adaptive sampling
    the stable `digits` of u, and the numerical `tolerance` that all of these meet."""

    mean: float
    u: float
    interval: tuple[float, float]
    samples: int
    seed: int
    digits: int | None = None
    tolerance: float | None = None


class AdaptiveSampling(NamedTuple):
    """The number of significant digits of the uncertainty that are to be stable, the level of the interval, whether it
    is the shortest one, and the seed."""

    digits: int
    level: float
    shortest: bool
    seed: int


class Drawn(NamedTuple):
    """The finite values `[N, m]` of the program for draws of its inputs, the number of draws left out because a value
    is not finite, and the first error of a draw."""

    values: Any
    left_out: int
    error: GradcliError | None


class InputSampler:
    """Draws inputs, and evaluates a program for each draw; `most` are the limits of steps and elements.

    Correlated inputs are drawn from a normal distribution with their covariance, or from Student's where all of them
    have the same finite degrees of freedom; where a distribution is assigned to one of them that is not normal, from a
    Gaussian copula. Other inputs are drawn from the distribution assigned to them, else from Student's where their
    degrees of freedom are finite (JCGM 101, 6.4.9), else from a normal one.

    Raises BindingError for correlations that the distributions cannot have.
    """

    def __init__(self, program: Module, quantities: Quantities, most: tuple[int, int]) -> None:
        self._quantities, self._joint = quantities, _copulas(quantities)
        self._run = RowProgram(program, (), 0, max_steps=most[0], max_elements=most[1])

    def draw(self, samples: int, generator: Any, watch: Callable[[Sampling], object]) -> Drawn:
        """Draw samples by a generator of NumPy; `watch` is called with the number of draws so far.

        Raises the error of the first draw where all of them fail, and ShapeError where the values have different shapes.
        """
        np, quantities = arrays.numpy_namespace(), self._quantities
        limits.charge(samples * (quantities.packing.size + 1))
        at_once = max(1, _AT_ONCE // quantities.packing.size)
        parts, error = [], None
        for start in range(0, samples, at_once):
            rows = min(at_once, samples - start)
            columns = columns_of(quantities, quantities.mean + _deviations(quantities, self._joint, generator, rows))
            results = self._run.run(columns, quantities.exact, rows=rows)
            if results.failures and error is None:
                error = results.failures[0].error
            if len(results.failures) < rows:
                parts.append(_flat(results.value))
            watch(Sampling(start + rows, samples))
        if not parts and error is not None:
            raise error
        if len({part.shape[1] for part in parts}) > 1:
            raise ShapeError("the value has other shapes for other draws of the inputs")
        values = np.concatenate(parts)
        finite = np.isfinite(values).all(1)
        kept = values if finite.all() else values[finite]
        if len(kept) < 2:
            raise error or EvaluationError(
                f"{len(kept)} of {samples:,} samples have a finite value", hint="gradcli eval shows where it comes from"
            )
        return Drawn(kept, samples - len(kept), error)

    def draw_adaptively(
        self, asked: AdaptiveSampling, watch: Callable[[Sampling], object]
    ) -> tuple[Drawn, list[float]]:
        """Draw blocks of samples until that many significant digits of the uncertainty of each result are stable, and
        with them the mean and the ends of the interval (JCGM 101, 7.9.4). Returns also the numerical tolerances of the
        results.

        Raises EvaluationError where that takes too many samples, and what `draw` raises.
        """
        np = arrays.numpy_namespace()
        count = max(math.ceil(100 / (1 - asked.level)), _BLOCK)
        generator = np.random.default_rng(asked.seed)
        blocks: list[Drawn] = []
        statistics: list[Any] = []
        while len(blocks) * count < _MOST_SAMPLES:
            blocks.append(self.draw(count, generator, lambda _: None))
            each = [summary(column, asked.level, asked.shortest, count, 0)[0] for column in blocks[-1].values.T]
            statistics.append([(one.mean, one.u, *one.interval) for one in each])
            watch(Sampling(len(blocks) * count, _MOST_SAMPLES))
            if len(blocks) < _FEWEST_BLOCKS:
                continue
            known = np.asarray(statistics)
            deviations = np.sqrt((known[:, :, 1] ** 2).mean(axis=0) + known[:, :, 0].var(axis=0))
            tolerances = [tolerance(u, asked.digits) for u in deviations.tolist()]
            errors = known.std(axis=0, ddof=1) / math.sqrt(len(blocks))
            if (2 * errors <= np.asarray(tolerances)[:, None]).all():
                values = np.concatenate([block.values for block in blocks])
                first = next((block.error for block in blocks if block.error is not None), None)
                return Drawn(values, sum(block.left_out for block in blocks), first), tolerances
        raise EvaluationError(
            f"{_MOST_SAMPLES:,} samples do not make {asked.digits} digits of the uncertainty stable",
            hint="ask for fewer, or for a number of --samples",
        )


def _flat(values: Any) -> Any:
    if values.dtype == object:
        raise ShapeError("the value has other shapes for other draws of the inputs")
    return values.reshape(len(values), -1)


def columns_of(quantities: Quantities, numbers: Any) -> dict[str, Any]:
    """The values of each input by name, `[rows, …]`, from numbers `[rows, n]`."""
    shapes = quantities.packing.shapes
    return {
        name: numbers[:, place].reshape(len(numbers), *shapes[name])
        for name, place in quantities.packing.places().items()
    }


def student_dofs(quantities: Quantities) -> Any:
    """The degrees of freedom `[n]` of the Student's distributions from which the inputs are drawn, infinite for other
    distributions."""
    found = quantities.dof.copy()
    found[[*quantities.distributions]] = math.inf
    for block in quantities.blocks:
        dof = quantities.dof[block.places]
        found[block.places] = dof[0] if (dof == dof[0]).all() else math.inf
    return found


def _deviations(quantities: Quantities, joint: Sequence[GaussianCopula], generator: Any, rows: int) -> Any:
    """Draws `[rows, n]` of the inputs, less their means; `joint` are the copulas of correlated ones."""
    np = arrays.numpy_namespace()
    independent = generator.standard_normal((rows, quantities.packing.size))
    dofs = student_dofs(quantities)
    alone = np.isfinite(dofs)
    for block in quantities.blocks:
        alone[block.places] = False
        dof = dofs[block.places[0]]
        if math.isfinite(dof):
            independent[:, block.places] /= np.sqrt(generator.chisquare(dof, (rows, 1)) / dof)
    for place in np.flatnonzero(alone).tolist():
        independent[:, place] = generator.standard_t(dofs[place], rows)
    found = quantities.deviations(independent)
    blocked = {place for block in quantities.blocks for place in block.places.tolist()}
    for place, assigned in quantities.distributions.items():
        if place not in blocked:
            found[:, place] = assigned.draw(generator, rows) - quantities.mean[place]
    for copula in joint:
        normal = generator.standard_normal((rows, len(copula.places)))
        found[:, copula.places] = copula.draw(quantities, normal) - quantities.mean[copula.places]
    return found


def summary(
    values: Any, level: float, shortest: bool, samples: int, seed: int
) -> tuple[MonteCarlo, tuple[float, float]]:
    """The mean, standard deviation and coverage interval of the values `[N]` of a result, and the standard errors of
    the ends of the interval. With `shortest` that is the shortest one, else the one with equal probabilities on both
    sides (JCGM 101, 7.5 to 7.7)."""
    np = arrays.numpy_namespace()
    limits.charge(_SUMMARY * len(values))
    ordered = np.sort(values)
    count = len(ordered)
    inside = min(count - 1, math.floor(level * count + 0.5))
    if shortest:
        first = int(np.argmin(ordered[inside:] - ordered[: count - inside]))
    else:
        first = max(0, math.floor((count - inside) / 2 + 0.5) - 1)
    ends = (first, min(count - 1, first + inside))
    found = MonteCarlo(
        float(ordered.mean()),
        float(ordered.std(ddof=1)),
        (float(ordered[ends[0]]), float(ordered[ends[1]])),
        samples,
        seed,
    )
    return found, (_error_of_end(ordered, ends[0]), _error_of_end(ordered, ends[1]))


def _error_of_end(ordered: Any, at: int) -> float:
    """The standard error of the order statistic at an index of sorted draws."""
    count = len(ordered)
    spread = max(1, round(math.sqrt(count * (at + 0.5) / count * (1 - (at + 0.5) / count))))
    return float(ordered[min(count - 1, at + spread)] - ordered[max(0, at - spread)]) / 2


class GaussianCopula(NamedTuple):
    """The copula of correlated inputs: their indices, and a factor of the correlation matrix of the normal
    quantities."""

    places: Sequence[int]
    factor: Any

    def draw(self, quantities: Quantities, independent: Any) -> Any:
        """The inputs `[rows, k]` for independent standard normal numbers `[rows, k]`."""
        from scipy import special

        np = arrays.numpy_namespace()
        normal = independent @ self.factor.T
        columns = [
            _transformed(quantities, place, normal[:, column], special.ndtr) for column, place in enumerate(self.places)
        ]
        return np.stack(columns, axis=1)


def _copulas(quantities: Quantities) -> list[GaussianCopula]:
    """The copulas of the correlated inputs among which there is an assigned distribution that is not normal.

    Raises BindingError for correlations that these distributions cannot have.
    """
    return [_copula(quantities, block) for block in quantities.blocks if _needs_copula(quantities, block)]


def _needs_copula(quantities: Quantities, block: CorrelatedInputs) -> bool:
    assigned = [quantities.distributions.get(place) for place in block.places.tolist()]
    return any(each is not None and each.name != "normal" for each in assigned)


def _transformed(quantities: Quantities, place: int, normal: Any, ndtr: Any) -> Any:
    """The input that a standard normal quantity becomes."""
    assigned = quantities.distributions.get(place)
    if (assigned is None or assigned.name == "normal") and math.isinf(_freedom(quantities, place)):
        return quantities.mean[place] + quantities.u[place] * normal
    np = arrays.numpy_namespace()
    # Below 1, at which quantiles may be infinite.
    return quantile(quantities, place, np.minimum(ndtr(normal), 1 - 2.0**-53))


def _freedom(quantities: Quantities, place: int) -> float:
    """The degrees of freedom of the distribution of an input; those of an assigned one tell of its uncertainty."""
    return math.inf if place in quantities.distributions else float(quantities.dof[place])


def _copula(quantities: Quantities, block: CorrelatedInputs) -> GaussianCopula:
    np = arrays.numpy_namespace()
    places, labels = block.places.tolist(), quantities.packing.labels()
    for place in places:
        if _freedom(quantities, place) <= _NO_DEVIATION:
            raise BindingError(
                f"'{labels[place]}' has {_freedom(quantities, place):g} degrees of freedom, and no standard deviation "
                "that a correlation could refer to",
                hint="leave out its correlation",
            )
    expansions = {place: _expansion(quantities, place) for place in places}
    matrix = np.eye(len(places))
    for i, first in enumerate(places):
        for j, second in enumerate(places[:i]):
            given = quantities.correlations[first].get(second, 0.0)
            if given:
                names = labels[second], labels[first]
                matrix[i, j] = matrix[j, i] = _of_normal(expansions[first] * expansions[second], given, names)
    if np.linalg.eigvalsh(matrix)[0] < -_ROUNDING:
        raise BindingError(
            f"the correlations of {', '.join(labels[place] for place in places)} have no Gaussian copula with these "
            "distributions",
            hint="smaller correlations have one",
        )
    return GaussianCopula(places, triangular_factor(matrix))


def _expansion(quantities: Quantities, place: int) -> Any:
    """The coefficients of the normalised Hermite polynomials 1, 2, … of the standard normal quantity in an input, as a
    vector of length 1."""
    from scipy import special

    np = arrays.numpy_namespace()
    normal = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-(normal**2) / 2)
    weights /= weights.sum()
    values = _transformed(quantities, place, normal, special.ndtr)
    values = values - weights @ values
    before, polynomial, found = np.ones(_POINTS), normal, []
    for degree in range(1, _TERMS + 1):
        found.append(weights @ (values * polynomial))
        before, polynomial = (
            polynomial,
            (normal * polynomial - math.sqrt(degree) * before) / math.sqrt(degree + 1),
        )
    return np.asarray(found) / math.sqrt(weights @ values**2)


def _of_normal(products: Any, given: float, names: tuple[str, str]) -> float:
    """The correlation of the normal quantities for that of the inputs, which is the power series of it with these
    coefficients (H. O. Lancaster, 1957). Raises BindingError for a correlation that no copula has."""
    from scipy.optimize import brentq

    np = arrays.numpy_namespace()
    powers = np.arange(1, _TERMS + 1)

    def excess(normal: float) -> float:
        return float(products @ normal**powers) - given

    least, most = excess(-1.0) + given, excess(1.0) + given
    if not least - _ROUNDING <= given <= most + _ROUNDING:
        raise BindingError(
            f"'{names[0]}' and '{names[1]}' cannot have the correlation {given:g} with their distributions",
            hint=f"it lies between {least:.3g} and {most:.3g}",
        )
    if not least < given < most:
        return math.copysign(1.0, given)
    return float(brentq(excess, -1.0, 1.0, xtol=1e-14))


def uncertain_places(quantities: Quantities) -> Sequence[int]:
    """The indices of the inputs whose uncertainty is not 0."""
    np = arrays.numpy_namespace()
    found: Sequence[int] = np.flatnonzero(quantities.u).tolist()
    return found


def check_independent(quantities: Quantities, what: str) -> None:
    """Raise BindingError for correlated inputs, of which there are no `what`."""
    labels = quantities.packing.labels()
    for block in quantities.blocks:
        first, second, *_ = [labels[place] for place in block.places.tolist()]
        raise BindingError(
            f"'{first}' and '{second}' are correlated, and {what} are those of independent inputs",
            hint="leave out the correlation",
        )


def quantile(quantities: Quantities, place: int, probabilities: Any) -> Any:
    """The quantiles of an input by its index: of its assigned distribution, else of Student's where its degrees of
    freedom are finite (JCGM 101, 6.4.9), else of the normal one."""
    assigned = quantities.distributions.get(place)
    if assigned is not None:
        return assigned.quantile(probabilities)
    from scipy import special

    dof = float(quantities.dof[place])
    standard = special.stdtrit(dof, probabilities) if math.isfinite(dof) else special.ndtri(probabilities)
    return quantities.mean[place] + quantities.u[place] * standard
