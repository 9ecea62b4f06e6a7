"""`sample`: draws from the density whose logarithm a program is, with the diagnostics of R-hat and effective sample
size."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.compiled.compiling import compile
from gradcli.errors import BindingError, UsageError, expect, expect_callable
from gradcli.io.text_tables import Table, members
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import checked_arguments
from gradcli.models.data import DataTable, table_of
from gradcli.models.optima.bounds import bounds_of
from gradcli.models.optima.optimization_problems import MinimizeRequest, OptimizationProblem, pose
from gradcli.models.packing import Bounds, Packing
from gradcli.models.results import MAY_BE_NULL, Reported, Sampling
from gradcli.models.sampling import chain_processes
from gradcli.models.sampling.chains import Chain, SamplerSettings
from gradcli.models.sampling.densities import SampledDensity
from gradcli.models.sampling.unconstrained_parameters import BoundedTransform, ConstrainedVector, freed, kinds_of

# Above the one, and below the other for each chain, draws cannot be relied on (Vehtari and others, 2021).
_AGREED, _FEW = 1.01, 100
_LITTLE_INFORMATION = 0.3
_REPARAMETRISE = "another parametrisation, as mu + tau*z with standard normal z, is often better"
# Chains stay in different places where their means differ by more than this many deviations of a chain, and where R-hat
# of each alone is below the other.
_APART, _SETTLED = 3.0, 1.1
# The most chains whose positions a message lists.
_MOST_PLACES = 8
# A chain is stuck where fewer than this share of its draws differ from the ones before.
_MOVES = 0.1
# Upper bounds of what is asked for: draws are kept in memory, and a trajectory has 2**depth steps.
_MOST_CHAINS, _MOST_ITERATIONS, _DEEPEST = 1_000, 50_000_000, 20
# Upper bound of the rows of a table.
_MOST_ROWS = 60


@dataclass(frozen=True)
class Marginal:
    """The draws of one number: mean, standard deviation, Monte Carlo error of the mean, median, the interval of the
    central 90 %, effective sample sizes, and R-hat. They are None where draws do not vary."""

    mean: float
    sd: float
    error: float | None = field(metadata=MAY_BE_NULL)
    median: float
    low: float
    high: float
    ess_bulk: float | None = field(metadata=MAY_BE_NULL)
    ess_tail: float | None = field(metadata=MAY_BE_NULL)
    r_hat: float | None = field(metadata=MAY_BE_NULL)


@dataclass(frozen=True)
class Draws(Reported):
    """Draws by name, arrays `[chains, draws, …]`, their summaries by the label of each number, and how the chains went:
    `divergences`, transitions that ended at the largest depth (`too_deep`), step sizes and leapfrog steps by chain.

    `converged` says that R-hat is at most 1.01 and the effective sample sizes at least 100 for each chain.
    """

    posterior: dict[str, Marginal]
    chains: int
    warmup: int
    count: int
    seed: int
    divergences: int
    too_deep: int
    step_sizes: list[float]
    steps: list[int]
    left_out: int | None
    converged: bool
    warnings: list[str]
    draws: dict[str, Any] | None = field(repr=False)

    def columns(self) -> dict[str, Any]:
        """The draws as columns of a table: `chain`, `draw`, and one for each number."""
        chains, count = self.chains, self.count
        found: dict[str, Any] = {
            "chain": np.repeat(np.arange(chains), count).tolist(),
            "draw": np.tile(np.arange(count), chains).tolist(),
        }
        for label, numbers in zip(self.posterior, _numbers(self.draws or {})):
            found[label] = numbers.ravel().tolist()
        return found

    def report(self) -> Sequence[Table]:
        return _tables(self)


# Is told how many iterations of all chains are done.
Watch = Callable[[Sampling], object]


def sample(
    program: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    data: Any = None,
    wrt: Sequence[str] | str | None = None,
    const: Sequence[str] | str | None = None,
    bounds: Mapping[str, Bounds] | Sequence[str] | str | None = None,
    ordered: Sequence[str] | str = (),
    simplex: Sequence[str] | str = (),
    chains: int = 4,
    draws: int = 1_000,
    warmup: int = 1_000,
    target: float = 0.8,
    max_depth: int = 10,
    seed: int = 0,
    output: str | None = None,
    watch: Watch | None = None,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> Draws:
    """Draws from the density whose logarithm, up to a constant, is a scalar program, by the no-U-turn sampler with
    exact gradients.

    The starts and the constants are given by name, in `values` or as keyword arguments; the names `wrt` are drawn, or
    all names except those in `const` and the columns of `data`. `bounds` are texts such as "tau=0:" or pairs by name;
    the sampler moves on the logarithm of the distance to a bound, or on the log-odds between two. Vectors that are `ordered`
    increase from element to element, and those of a `simplex` are above 0 and have the sum 1. Each of the `chains`
    takes `warmup` iterations that adapt the step size to the acceptance probability `target`, and then its `draws`.
    `output` is the path of a table of the draws, `watch` is called with the number of iterations.

    Each transition may take `max_steps` steps and compute `max_elements` array elements, as many for each row of the
    data. Raises what compiling and evaluating raise, BindingError for a name without a value and for a start outside of
    its bounds, EvaluationError where no start has a finite density.
    """
    expect(program, str, "a program is a text")
    if watch is not None:
        expect_callable(watch, "what watches the draws is a function")
    settings = SamplerSettings(
        checked_arguments.integer(chains, "the number of chains", 1),
        checked_arguments.integer(warmup, "the warm-up", 0),
        checked_arguments.integer(draws, "the number of draws", 4),
        _share(target),
        checked_arguments.integer(max_depth, "the largest depth", 1),
        checked_arguments.integer(seed, "the seed", 0),
    )
    if settings.chains > _MOST_CHAINS or settings.chains * (settings.draws + settings.warmup) > _MOST_ITERATIONS:
        raise UsageError(
            f"{settings.chains:,} chains of {settings.warmup + settings.draws:,} iterations are asked for",
            hint=f"at most {_MOST_CHAINS:,} chains and {_MOST_ITERATIONS:,} iterations are made",
        )
    if settings.max_depth > _DEEPEST:
        raise UsageError(f"the largest depth is {settings.max_depth}, and at most {_DEEPEST}")
    check_output(output)
    given = {**checked_arguments.mapping_by_name(values, "'values'"), **named}
    constants = checked_arguments.names(const, "'const'")
    _check_real({name: value for name, value in given.items() if name not in constants})
    table = data if isinstance(data, DataTable) else table_of(data)
    kinds = kinds_of(checked_arguments.names(ordered, "'ordered'"), checked_arguments.names(simplex, "'simplex'"))
    limits = bounds_of(bounds)
    for name in limits:
        if name in kinds:
            raise UsageError(f"'{name}' is {kinds[name]}, and has no bounds beside", hint="leave out its bounds")
    density = freed(
        program,
        given,
        constants,
        None if wrt is None else checked_arguments.names(wrt, "'wrt'"),
        kinds,
        table.columns,
    )
    asked = MinimizeRequest(
        density.program,
        density.given,
        density.wrt,
        density.constants,
        table,
        limits,
        (),
        is_maximum=True,
        is_global=True,
    )
    with density.relocation.relocating():
        problem = pose(
            asked, lambda text: compile(text, max_steps=max_steps, max_elements=max_elements), (max_steps, max_elements)
        )
        with arrays.quiet():
            found = _drawn(problem, density.vectors, settings, watch or (lambda _: None))
    if output is not None:
        save_draws(found, output)
    return found


def _check_real(starts: Mapping[str, Any]) -> None:
    """Raise BindingError for a start that is complex."""
    for name, start in starts.items():
        if arrays.is_array(start) and arrays.is_complex(start):
            raise BindingError(
                f"'{name}' is complex, and draws are of real numbers",
                hint=f"write complex(a, b) in place of {name}, with a and b as inputs",
            )


def check_output(path: str | None) -> None:
    """Raise UsageError for a path whose ending is no known format, and OutputError for one that no file can have."""
    if path is not None:
        from gradcli.rows.formats import outputs

        expect(path, (str, os.PathLike), "the path of the draws is a text")
        outputs.check_path(os.fspath(path))


def save_draws(found: Draws, path: str, *save: Any) -> None:
    """Write the draws as a table, in the format of the ending of the path."""
    from gradcli.rows.formats import new_tables

    new_tables.save(found.columns(), os.fspath(path), *save)


def _share(target: float) -> float:
    expect(target, (int, float), "the acceptance probability is a number")
    if not 0 < target < 1:
        raise UsageError(f"the acceptance probability is {target}, which is not between 0 and 1")
    return float(target)


def _drawn(
    problem: OptimizationProblem, vectors: Sequence[ConstrainedVector], settings: SamplerSettings, watch: Watch
) -> Draws:
    transform = BoundedTransform(problem.low, problem.high)
    start = transform.inverse(problem.start)
    if not np.isfinite(start).all():
        place = int((~np.isfinite(start)).argmax())
        label = problem.objective.packing.labels()[place]
        raise UsageError(f"the start of '{label}' is at its bound", hint="start inside of the bounds")
    made = chain_processes.chains(_target(problem, settings), settings, watch)
    return _result(problem, transform, vectors, settings, made)


def _target(problem: OptimizationProblem, settings: SamplerSettings) -> SampledDensity:
    objective = problem.objective
    return SampledDensity(
        objective.program.program.source, objective.packing, objective.constants, problem.low, problem.high,
        problem.start, settings.max_depth, problem.limits,
    )  # fmt: skip


def _result(
    problem: OptimizationProblem,
    transform: BoundedTransform,
    vectors: Sequence[ConstrainedVector],
    settings: SamplerSettings,
    chains: Sequence[Chain],
) -> Draws:
    packing = problem.objective.packing
    flat = transform.numbers(np.array([chain.positions for chain in chains]))
    constrained = {each.free: each for each in vectors}
    by_name = {}
    for name, place in packing.places().items():
        drawn = flat[:, :, place].reshape(settings.chains, settings.draws, *packing.shapes[name])
        vector = constrained.get(name)
        by_name[name if vector is None else vector.name] = drawn if vector is None else vector.numbers(drawn)
    labels = Packing({name: draws.shape[2:] for name, draws in by_name.items()}).labels()
    numbers = dict(zip(labels, _numbers(by_name)))
    posterior = {label: _marginal(draws) for label, draws in numbers.items()}
    divergences, too_deep = sum(c.divergences for c in chains), sum(c.too_deep for c in chains)
    warnings = [
        *_of_trajectories(settings, divergences, too_deep),
        *_of_energies(chains),
        *_of_stuck(chains),
        *(quality := _of_quality(settings, posterior, numbers)),
    ]
    return Draws(
        posterior, settings.chains, settings.warmup, settings.draws, settings.seed, divergences, too_deep,
        [chain.step_size for chain in chains], [chain.steps for chain in chains], problem.left_out or None,
        not quality, warnings, by_name,
    )  # fmt: skip


def _marginal(draws: Any) -> Marginal:
    def known(number: float) -> float | None:
        return number if math.isfinite(number) else None

    low, median, high = (float(q) for q in np.quantile(draws, (0.05, 0.5, 0.95)))
    return Marginal(
        float(draws.mean()), float(draws.std(ddof=1)), known(mean_error(draws)), median, low, high,
        known(ess_bulk(draws)), known(_ess_tail(draws)), known(r_hat(draws)),
    )  # fmt: skip


def _of_trajectories(settings: SamplerSettings, divergences: int, too_deep: int) -> list[str]:
    total, found = settings.chains * settings.draws, []
    if divergences:
        found.append(
            f"{divergences:,} of {total:,} transitions diverged: parts of the density may be missed; "
            f"--target 0.99 takes smaller steps, and {_REPARAMETRISE}"
        )
    if too_deep:
        found.append(
            f"{too_deep:,} of {total:,} trajectories were cut at depth {settings.max_depth}: --max-depth allows more"
        )
    return found


def _of_energies(chains: Sequence[Chain]) -> list[str]:
    little = [c for c in chains if _energy_information(c.energies) < _LITTLE_INFORMATION]
    if not little:
        return []
    return [
        f"the energies of {len(little)} chain{'s' * (len(little) > 1)} change slowly (information below "
        f"{_LITTLE_INFORMATION}): the tails may be missed; {_REPARAMETRISE}"
    ]


def _of_stuck(chains: Sequence[Chain]) -> list[str]:
    moves = [float((np.diff(c.positions, axis=0) != 0).any(axis=1).mean()) for c in chains]
    return [
        f"chain {k} is stuck: {share:.0%} of its draws differ from the ones before; --warmup and --target 0.99 may help, "
        "and so may another start"
        for k, share in enumerate(moves)
        if share < _MOVES
    ]


def _of_quality(settings: SamplerSettings, posterior: Mapping[str, Marginal], draws: Mapping[str, Any]) -> list[str]:
    found = []
    apart = {n: m.r_hat for n, m in posterior.items() if m.r_hat is None or m.r_hat > _AGREED}
    if apart:
        worst = max(apart, key=lambda name: apart[name] or math.inf)
        told = "unknown" if apart[worst] is None else f"{apart[worst]:.3f}"
        disagree = f"the chains do not agree (R-hat of '{worst}' is {told}, above {_AGREED})"
        places = _places(draws[worst])
        if places is not None:
            # Further draws would not change that.
            return [
                f"{disagree}: they stay near {places}, as where there are several modes; how likely each of these is "
                "cannot be told from the draws"
            ]
        found.append(f"{disagree}: --warmup and --draws take more")
    few = {n: min(m.ess_bulk or 0.0, m.ess_tail or 0.0) for n, m in posterior.items()}
    least = min(few, key=few.__getitem__)
    if few[least] < _FEW * settings.chains:
        found.append(
            f"there are few effective draws ({few[least]:.0f} of '{least}', fewer than {_FEW} for each chain): "
            "--draws takes more"
        )
    return found


def _places(draws: Any) -> str | None:
    """A text with the places of the chains of one number, if they settled in different ones."""
    means, deviations = draws.mean(axis=1), draws.std(axis=1)
    settled = all(r_hat(chain[None]) < _SETTLED for chain in draws)
    if not settled or np.ptp(means) <= _APART * deviations.max():
        return None
    return ", ".join(f"{mean:.3g}" for mean in means[:_MOST_PLACES]) + ", …" * (len(means) > _MOST_PLACES)


def _numbers(draws: Mapping[str, Any]) -> list[Any]:
    """The draws of each number, arrays `[chains, draws]`."""
    found = []
    for array in draws.values():
        columns = array.reshape(*array.shape[:2], -1)
        found += [columns[:, :, k] for k in range(columns.shape[2])]
    return found


def _tables(found: Any) -> list[Table]:
    heads = ("name", "mean", "error", "sd", "5 %", "median", "95 %", "bulk ESS", "tail ESS", "R-hat")
    rows = [
        (name, _text(m.mean), _text(m.error, 2), *(_text(n) for n in (m.sd, m.low, m.median, m.high)),
         _whole(m.ess_bulk), _whole(m.ess_tail), "unknown" if m.r_hat is None else f"{m.r_hat:.3f}")
        for name, m in islice(found.posterior.items(), _MOST_ROWS)
    ]  # fmt: skip
    if len(found.posterior) > len(rows):
        rows.append(("…", f"{len(found.posterior) - len(rows):,} more", *[""] * (len(heads) - 2)))
    summary = members(
        {
            "chains": found.chains,
            "draws of each": found.count,
            "warm-up": found.warmup,
            "divergences": found.divergences,
            "rows left out": found.left_out,
            "gradients": sum(found.steps),
        }
    )
    return [Table(heads, rows), summary]


def _text(number: float | None, digits: int = 5) -> str:
    return "unknown" if number is None else f"{number:.{digits}g}"


def _whole(number: float | None) -> str:
    return "unknown" if number is None else f"{number:,.0f}"


def r_hat(draws: Any) -> float:
    """Rank-normalised split R-hat of draws `[chains, draws]`: the larger one of the bulk and the folded draws."""
    halves = _split(draws)
    if not np.isfinite(halves).all() or np.ptp(halves) == 0:
        return math.nan
    return max(_plain_r_hat(_ranked(halves)), _plain_r_hat(_ranked(abs(halves - np.median(halves)))))


def ess_bulk(draws: Any) -> float:
    """The effective sample size of the bulk: that of rank-normalised draws."""
    return _ess(_ranked(_split(draws)))


def _ess_tail(draws: Any) -> float:
    """The effective sample size of the tails: the smaller one of the 5 % and the 95 % quantile."""
    halves = _split(draws)
    return min(_ess((halves <= np.quantile(halves, share)).astype(float)) for share in (0.05, 0.95))


def mean_error(draws: Any) -> float:
    """The Monte Carlo standard error of the mean."""
    count = _ess(_split(draws))
    return float(np.std(draws, ddof=1) / math.sqrt(count)) if count > 0 else math.nan


def _energy_information(energies: Any) -> float:
    """The Bayesian fraction of missing information of a chain's energies; a small one says that momenta are resampled
    too slowly (Betancourt, 2016)."""
    return float(np.square(np.diff(energies)).sum() / np.square(energies - energies.mean()).sum())


def _split(draws: Any) -> Any:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _ranked(draws: Any) -> Any:
    """Normal scores of the ranks."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(draws, method="average").reshape(draws.shape)
    return ndtri((ranks - 0.375) / (draws.size + 0.25))


def _plain_r_hat(draws: Any) -> float:
    count = draws.shape[1]
    between = count * draws.mean(axis=1).var(ddof=1)
    within = draws.var(axis=1, ddof=1).mean()
    return math.sqrt((between / within + count - 1) / count) if within > 0 else math.nan


def _ess(draws: Any) -> float:
    """The effective sample size of draws `[chains, draws]` by Geyer's initial monotone sequence."""
    chains, count = draws.shape
    if count < 4 or not np.isfinite(draws).all() or np.ptp(draws) == 0:
        return math.nan
    covariances = _autocovariances(draws)
    within = float((covariances[:, 0] * count / (count - 1.0)).mean())
    variance = within * (count - 1.0) / count
    if chains > 1:
        variance += float(draws.mean(axis=1).var(ddof=1))
    correlations = 1.0 - (within - covariances.mean(axis=0) * count / (count - 1.0)) / variance
    correlations[0] = 1.0
    pairs = correlations[0 : count - count % 2 : 2] + correlations[1 : count - count % 2 : 2]
    negative = np.flatnonzero(pairs < 0)
    last = int(negative[0]) if len(negative) else len(pairs)
    monotone = np.minimum.accumulate(pairs[:last])
    # The first correlation after the pairs improves estimates for antithetic chains.
    further = max(float(correlations[2 * last]), 0.0) if 2 * last < count else 0.0
    time = max(-1.0 + 2.0 * float(monotone.sum()) + further, 1.0 / math.log10(chains * count))
    return float(chains * count / time)


def _autocovariances(draws: Any) -> Any:
    count = draws.shape[1]
    length = 2 ** math.ceil(math.log2(2 * count))
    spectrum = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), length, axis=1)
    return np.fft.irfft(spectrum * spectrum.conj(), length, axis=1)[:, :count] / count
