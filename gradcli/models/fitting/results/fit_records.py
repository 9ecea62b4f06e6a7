"""Parts of the result of a fit beside its estimates: fits of other rows, and comparisons with other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradcli.named_tuples import NamedTuple


class ResampledEstimate(NamedTuple):
    """An estimate's bias, standard error and confidence interval, from fits of resampled rows."""

    bias: float
    error: float
    low: float
    high: float

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class ConfidenceContour(NamedTuple):
    """The `points` of the boundary of the confidence region of two parameters, in their order around it, and whether
    it is `closed`: it has no points in directions in which it has no end."""

    points: Sequence[tuple[float, float]]
    closed: bool

    def as_json(self) -> dict[str, Any]:
        return {"points": [[*point] for point in self.points], "closed": self.closed}


@dataclass(frozen=True)
class Resampled:
    """Fits of other rows: how many `samples` there were and how many of these `failed`, and what the others say about
    the estimates, and about derived quantities where there are any."""

    samples: int
    failed: int
    estimates: Mapping[str, ResampledEstimate]
    derived: Mapping[str, ResampledEstimate] | None = None


@dataclass(frozen=True)
class CrossValidation:
    """The errors of predictions of rows by fits without them: the number of `folds` of the rows and of these fits that
    `failed`; the root mean square of the errors, the mean of their sizes, and R², one less the ratio of their squares to
    those about the mean of the other rows."""

    folds: int
    failed: int
    rmse: float
    mae: float
    r2: float


class ComparedModel(NamedTuple):
    """A model of a comparison: its text, the number of its free parameters, and how well it fits."""

    model: str
    parameters: int
    dof: float
    rss: float
    loglik: float
    aic: float
    aicc: float
    bic: float
    converged: bool

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class ModelTest(NamedTuple):
    """A test of the smaller of two nested models: the statistic, its degrees of freedom, of which the second is that of
    the residuals for an F test, and the probability of a larger one."""

    value: float
    dof: tuple[float, ...]
    p: float

    def as_json(self) -> dict[str, Any]:
        return {"value": self.value, "dof": [*self.dof], "p": self.p}


class VuongStatistic(NamedTuple):
    """A statistic of Vuong's test, above 0 where this model is nearer to the data, with the probabilities of a larger
    and of a smaller one where both are equally near: `p` and `p_against`."""

    value: float
    p: float
    p_against: float

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class VuongTest(NamedTuple):
    """Vuong's test of two models of which none is a special case of the other: the `raw` statistic, and those
    corrected for the numbers of parameters as in AIC and as in BIC."""

    raw: VuongStatistic
    aic_corrected: VuongStatistic
    bic_corrected: VuongStatistic

    def as_json(self) -> dict[str, Any]:
        return {name: part.as_json() for name, part in zip(self._fields, self)}


class Comparison(NamedTuple):
    """The two models; the `f` test, None for all but least squares with an estimated standard deviation; and the
    likelihood ratio test, twice the difference of the log-likelihoods. Both are None for models with as many
    parameters, and of different families. `vuong` is None where the models are equal in each row."""

    model: ComparedModel
    against: ComparedModel
    f: ModelTest | None
    likelihood_ratio: ModelTest | None
    vuong: VuongTest | None = None

    def as_json(self) -> dict[str, Any]:
        return {name: part.as_json() for name, part in zip(self._fields, self) if part is not None}


class RandomSpread(NamedTuple):
    """A standard deviation or a correlation of random effects, with its confidence interval, which is nan at 0 and at a
    correlation of 1."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True)
class RandomGroup:
    """The random effects of the levels of a column: how many levels there are; the standard deviations of the effects
    by name, and the correlations by pairs of names, as `1,Days`; and the predictions by level and name."""

    levels: int
    deviations: Mapping[str, RandomSpread]
    correlations: Mapping[str, RandomSpread]
    effects: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class RandomEffects:
    """The random effects of a fit: the `method` by which they are integrated out of the likelihood, the `groups` by
    column, and the `residual` standard deviation, None for families without one."""

    method: str
    groups: Mapping[str, RandomGroup]
    residual: RandomSpread | None = None
