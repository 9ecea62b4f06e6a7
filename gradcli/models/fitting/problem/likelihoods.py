"""What is assumed about the distribution of a row, and its cost as a function of the model's value: the negative
logarithm of its likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.errors import UsageError
from gradcli.named_tuples import NamedTuple

LOSSES = ("linear", "soft_l1", "huber", "cauchy")
# Thresholds of robust losses, in standard deviations of the residuals, at which the estimates have 95 % of the
# efficiency of least squares for normal residuals: (E psi')^2 / E psi^2 = 0.95. That of huber is the one of R's rlm and
# of statsmodels.
TUNING = {"soft_l1": 1.287, "huber": 1.345, "cauchy": 2.385}
# The argument that chooses the threshold from the median of the residuals.
MEDIAN = "mad"
# Ratio of the standard deviation of a normal distribution to the median of its absolute values.
_MAD = 1.482602218505602
# Families whose cost is minus a log density that is itself the program of a row; LOG_DENSITY is one that the user wrote.
DENSITIES = ("gamma", "negbinomial", "zipoisson", "beta", "weibull", "lognormal", "student")
# Families of categories.
MULTINOMIAL, ORDINAL = "multinomial", "ordinal"
CATEGORICAL = (MULTINOMIAL, ORDINAL)
FAMILIES = ("gaussian", "poisson", "binomial", *DENSITIES, *CATEGORICAL)
# Families whose model is the mean of the response, or where it is symmetric its centre.
MEANS = ("gaussian", "poisson", "binomial", "gamma", "negbinomial", "beta", "student")
LOG_DENSITY = "log density"


class Cost(NamedTuple):
    """The cost of each row, and its first and second derivatives by the model's value: arrays of the shape of the
    values."""

    value: Any
    first: Any
    second: Any


# Computes the costs of rows from the model's values, the responses and their standard deviations.
Likelihood = Callable[[Any, Any, Any], Cost]


class Assumptions(NamedTuple):
    """Assumptions about the rows: their distribution (`family` and `loss`), whether `sigma` is their standard deviation
    as it stands (`absolute`) or up to a factor that is estimated, and the `level` of confidence intervals.

    `loss_scale` is the residual, divided by `sigma`, from which on a robust loss is no longer quadratic; None where it
    follows from the median of the residuals. `errors` says what standard errors are from: the `information`, or the
    sandwich of rows (`robust`) or of clusters of them (`cluster`).
    """

    family: str = "gaussian"
    loss: str = "linear"
    absolute: bool = False
    level: float = 0.95
    loss_scale: float | None = None
    errors: str = "information"

    @property
    def likelihood(self) -> Likelihood:
        return likelihood(self.family, self.loss)

    @property
    def is_scaled(self) -> bool:
        """True if the factor of the standard deviations is estimated."""
        return self.family == "gaussian" and not self.absolute

    @property
    def is_least_squares(self) -> bool:
        return self.family == "gaussian" and self.loss == "linear"

    @property
    def is_density(self) -> bool:
        """True if the program of a row, whose result is the model's value, is its log density."""
        return self.family in (*DENSITIES, *CATEGORICAL, LOG_DENSITY)

    @property
    def is_robust(self) -> bool:
        """True if the loss is another one than `linear`."""
        return self.loss != "linear"

    def quantile(self, dof: Any) -> Any:
        """The half-width of an interval in standard errors, for `dof` degrees of freedom: a quantile of Student's t
        distribution where the standard deviation is estimated, else of the normal distribution."""
        from scipy.special import ndtri, stdtrit

        if not self.is_scaled:
            return np.broadcast_to(ndtri((1 + self.level) / 2), np.shape(dof))
        return by_dof(lambda known: stdtrit(known, (1 + self.level) / 2), dof)


def likelihood(family: str = "gaussian", loss: str = "linear") -> Likelihood:
    """The cost function of a family; a gaussian one can have a robust loss.

    Constants are left out for `gaussian`. For families other than gaussian, poisson and binomial, the model's value is
    the log density itself, and the response is not read. A cost is infinite where the model's value is outside the
    family's domain. Raises UsageError for an unknown family or loss, and for a loss with another family.
    """
    if family not in (*FAMILIES, LOG_DENSITY):
        raise UsageError(f"there is no family {family!r}", hint=f"it is one of {', '.join(FAMILIES)}")
    if loss not in LOSSES:
        raise UsageError(f"there is no loss {loss!r}", hint=f"it is one of {', '.join(LOSSES)}")
    if family == "gaussian":
        return lambda value, response, sigma: _scaled(_SHAPES[loss], value, response, sigma)
    if loss != "linear":
        raise UsageError(f"a loss is for the family gaussian, not for {family}", hint="leave out one of them")
    return {"poisson": _poisson, "binomial": _binomial}.get(family, _log_density)


def median_deviation(residuals: Any) -> Any:
    """The standard deviations of residuals `[…, n]` about 0, estimated from the median of their absolute values; nan is
    ignored."""
    return _MAD * np.nanmedian(np.abs(residuals), axis=-1)


def _scaled(shape: Callable[[Any], Cost], value: Any, response: Any, sigma: Any) -> Cost:
    cost = shape((value - response) / sigma)
    return Cost(cost.value, cost.first / sigma, cost.second / sigma**2)


def _linear(u: Any) -> Cost:
    return Cost(u * u / 2, u, np.ones_like(u))


def _soft_l1(u: Any) -> Cost:
    """sqrt(1 + u²) - 1, without cancellation."""
    root = np.hypot(1.0, u)
    return Cost(u * (u / (root + 1)), u / root, root**-3)


def _huber(u: Any) -> Cost:
    inside = np.abs(u) <= 1
    return Cost(np.where(inside, u * u / 2, np.abs(u) - 0.5), np.clip(u, -1, 1), inside.astype(float))


def _cauchy(u: Any) -> Cost:
    square = u * u
    return Cost(np.log1p(square) / 2, u / (1 + square), (1 - square) / (1 + square) ** 2)


# Costs of the residual divided by its standard deviation: half of SciPy's rho of the square of that.
_SHAPES = {"linear": _linear, "soft_l1": _soft_l1, "huber": _huber, "cauchy": _cauchy}


def _log_density(value: Any, response: Any, sigma: Any) -> Cost:
    """The costs of rows with the weights 1/sigma², whose log density is the model's value."""
    weight = np.broadcast_to(1 / np.square(sigma), np.shape(value))
    return Cost(-weight * value, -weight, np.zeros_like(weight))


def _poisson(value: Any, response: Any, sigma: Any) -> Cost:
    """The costs of counts with the weights 1/sigma², whose mean is the model's value."""
    from scipy.special import gammaln

    first, second = _log_derivatives(response, value)
    with np.errstate(all="ignore"):
        cost = value - _times_log(response, value) + gammaln(response + 1)
    weight = 1 / np.square(sigma)
    return Cost(np.where(value >= 0, weight * cost, np.inf), weight * (1 + first), weight * second)


def _binomial(value: Any, response: Any, sigma: Any) -> Cost:
    """The costs of shares of events among 1/sigma² trials, each of which is an event with the probability `value`."""
    from scipy.special import gammaln

    trials, rest, failures = 1 / np.square(sigma), 1 - value, 1 - response
    first, second = _log_derivatives(response, value)
    first_of_rest, second_of_rest = _log_derivatives(failures, rest)
    with np.errstate(all="ignore"):
        cost = trials * (-_times_log(response, value) - _times_log(failures, rest))
        # Minus the logarithm of the binomial coefficient.
        cost += gammaln(trials * response + 1) + gammaln(trials * failures + 1) - gammaln(trials + 1)
    inside = (value >= 0) & (rest >= 0)
    return Cost(np.where(inside, cost, np.inf), trials * (first - first_of_rest), trials * (second + second_of_rest))


def _times_log(weight: Any, value: Any) -> Any:
    """weight*log(value), 0 where the weight is 0."""
    return np.where(weight == 0, 0.0, weight * np.log(np.where(weight == 0, 1.0, value)))


def _log_derivatives(weight: Any, value: Any) -> tuple[Any, Any]:
    """The first and second derivatives of -weight*log(value) by the value."""
    safe = np.where(weight == 0, 1.0, value)
    with np.errstate(all="ignore"):
        return -weight / safe, weight / safe**2


def by_dof(quantile: Callable[[Any], Any], dof: Any) -> Any:
    """A quantile for each of `dof`, computed once for each distinct number because that is slow; nan where `dof` is not
    above 0."""
    numbers, places = np.unique(dof, return_inverse=True)
    return np.where(numbers > 0, quantile(np.where(numbers > 0, numbers, 1)), np.nan)[places]
