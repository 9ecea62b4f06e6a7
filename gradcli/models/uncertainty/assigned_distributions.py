"""Distributions assigned to input quantities: `uniform(4.9, 5.1)`, `triangular(0, 1)`, `lognormal(0, 0.1)`.

They are those of JCGM 101:2008, table 1, the lognormal, the beta and the Poisson one, each with its moments and its
random draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.errors import did_you_mean
from gradcli.evaluation.nested_lists import Read, items, unreadable
from gradcli.named_tuples import NamedTuple

# Halvings that take an interval to the spacing of floats.
_BISECTIONS = 60
HINT = "write x=~uniform(4.9, 5.1), x=~triangular(0, 1) or x=~lognormal(0, 0.1)"
_CALL = re.compile(r"\s*~\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


class Family(NamedTuple):
    """A family of distributions. `shown` are its parameters in words, the last `optional` of which may be left out.

    All functions take the parameters as separate arguments. `valid` tells whether they are allowed; `mean` and
    `variance` also accept exact fractions; `shape` is the skewness and the excess kurtosis; `draw` takes a NumPy
    generator and a number of draws in front; `reach` is the range of about 95 % of the draws, or of all; and `quantile`
    takes an array of probabilities in front.
    """

    shown: str
    valid: Callable[..., bool]
    mean: Callable[..., float]
    variance: Callable[..., float]
    shape: Callable[..., tuple[float, float]]
    draw: Callable[..., Any]
    reach: Callable[..., tuple[float, float]]
    quantile: Callable[..., Any]
    optional: int = 0


class AssignedDistribution(NamedTuple):
    """A distribution of a family, given by its name."""

    name: str
    parameters: tuple[float, ...]

    @property
    def mean(self) -> float:
        return FAMILIES[self.name].mean(*self.parameters)

    @property
    def u(self) -> float:
        """The standard uncertainty."""
        return math.sqrt(FAMILIES[self.name].variance(*self.parameters))

    @property
    def shape(self) -> tuple[float, float]:
        """The skewness and the excess kurtosis, both 0 for a normal distribution."""
        return FAMILIES[self.name].shape(*self.parameters)

    @property
    def reach(self) -> tuple[float, float]:
        """The range of about 95 % of the draws, or of all."""
        return FAMILIES[self.name].reach(*self.parameters)

    def draw(self, generator: Any, size: int) -> Any:
        """Draw `size` numbers by a generator of NumPy."""
        return FAMILIES[self.name].draw(generator, size, *self.parameters)

    def quantile(self, probabilities: Any) -> Any:
        """The quantiles of an array of probabilities, which may be infinite at 0 and 1."""
        with arrays.quiet():
            return FAMILIES[self.name].quantile(probabilities, *self.parameters)


def is_distribution(text: str) -> bool:
    """Return whether the text of a value is a distribution."""
    return text.lstrip().startswith("~")


def distribution(text: str, offset: int, whole: str, read: Read) -> AssignedDistribution:
    """The distribution of a text that starts at `offset` of `whole`; `read` reads its parameters.

    Raises BindingError, with the place, for an unknown name, and for parameters that the family does not have.
    """
    call = _CALL.fullmatch(text)
    if call is None:
        raise unreadable("this is no distribution", text, offset, whole, HINT)
    name = call[1]
    if name not in FAMILIES:
        known = f"there are {', '.join(FAMILIES)}"
        raise unreadable(
            f"there is no distribution {name!r}", text, offset, whole, did_you_mean(name, FAMILIES, known) or known
        )
    family = FAMILIES[name]
    parts = [part for part in items(call[2]) if part[1].strip()]
    numbers = [read(part, offset + call.start(2) + at) for at, part in parts]
    most = family.shown.count(",") + 1
    if not most - family.optional <= len(numbers) <= most or any(map(arrays.shape, numbers)):
        raise unreadable(f"{name!r} has other parameters", text, offset, whole, f"it is {name}({family.shown})")
    parameters = tuple(map(float, numbers))
    if not all(map(math.isfinite, parameters)) or not family.valid(*parameters):
        raise unreadable(
            f"there is no such {name!r} distribution", text, offset, whole, f"it is {name}({family.shown})"
        )
    found = AssignedDistribution(name, parameters)
    try:
        finite = math.isfinite(found.mean) and math.isfinite(found.u)
    except OverflowError:
        finite = False
    if not finite:
        raise unreadable(f"this {name!r} distribution is too wide", text, offset, whole, HINT)
    return found


def _ordered(low: float, high: float) -> bool:
    return low < high


def _middle(low: float, high: float, *_: float) -> float:
    return (low + high) / 2


def _limits(low: float, high: float, *_: float) -> tuple[float, float]:
    return low, high


def _mode(low: float, high: float, mode: float | None) -> float:
    return _middle(low, high) if mode is None else mode


def _triangular_variance(low: float, high: float, mode: float | None = None) -> float:
    top = _mode(low, high, mode)
    return ((high - low) ** 2 - (top - low) * (high - top)) / 18


def _triangular_shape(low: float, high: float, mode: float | None = None) -> tuple[float, float]:
    # Scaled to the limits -1 and 1, which does not change the shape.
    top = (_mode(low, high, mode) - _middle(low, high)) / ((high - low) / 2)
    return math.sqrt(2) * 2 * top * (top**2 - 9) / (5 * (3 + top**2) ** 1.5), -0.6


def _trapezoidal_shape(low: float, high: float, beta: float) -> tuple[float, float]:
    # A sum of two uniform quantities, whose fourth cumulants are -1.2 times the squares of their variances.
    first, second = (1 + beta) ** 2, (1 - beta) ** 2
    return 0.0, -1.2 * (first**2 + second**2) / (first + second) ** 2


def _curvilinear_shape(low: float, high: float, inexact: float) -> tuple[float, float]:
    # A uniform quantity with half-width w (1 - d v), where v is uniform from -1 to 1.
    d = inexact / ((high - low) / 2)
    square, fourth = 1 + d**2 / 3, 1 + 2 * d**2 + d**4 / 5
    return 0.0, 1.8 * fourth / square**2 - 3


def _lognormal_shape(mu: float, sigma: float) -> tuple[float, float]:
    w = math.exp(sigma**2)
    return (w + 2) * math.sqrt(math.expm1(sigma**2)), w * w * (w * w + 2 * w + 3) - 6


def _triangular(generator: Any, size: int, low: float, high: float, mode: float | None = None) -> Any:
    return generator.triangular(low, _mode(low, high, mode), high, size)


def _trapezoidal(generator: Any, size: int, low: float, high: float, beta: float) -> Any:
    first, second = generator.random(size), generator.random(size)
    return low + (high - low) / 2 * ((1 + beta) * first + (1 - beta) * second)


def _curvilinear(generator: Any, size: int, low: float, high: float, inexact: float) -> Any:
    start = low + inexact * (2 * generator.random(size) - 1)
    return start + (low + high - 2 * start) * generator.random(size)


def _exp(x: Any) -> Any:
    return math.exp(x) if isinstance(x, float) else _ball(x).exp()


def _expm1(x: Any) -> Any:
    return math.expm1(x) if isinstance(x, float) else _ball(x).expm1()


def _ball(fraction: Any) -> Any:
    # Imported here, so that FLINT is needed only where proved digits are requested.
    from flint import arb

    return arb(fraction)


def _arcsine(generator: Any, size: int, low: float, high: float) -> Any:
    angles = 2 * math.pi * generator.random(size)
    return _middle(low, high) + (high - low) / 2 * arrays.numpy_namespace().sin(angles)


def _beta_variance(a: float, b: float, low: float = 0, high: float = 1) -> float:
    return (high - low) ** 2 * a * b / ((a + b) ** 2 * (a + b + 1))


def _beta_shape(a: float, b: float, *_: float) -> tuple[float, float]:
    n = a + b
    skewness = 2 * (b - a) * math.sqrt(n + 1) / ((n + 2) * math.sqrt(a * b))
    return skewness, 6 * ((a - b) ** 2 * (n + 1) - a * b * (n + 2)) / (a * b * (n + 2) * (n + 3))


# --- quantiles of arrays of probabilities


def _special() -> Any:
    # Imported here because most propagations need no quantiles.
    from scipy import special

    return special


def _triangular_quantile(p: Any, low: float, high: float, mode: float | None = None) -> Any:
    np, top = arrays.numpy_namespace(), _mode(low, high, mode)
    rising = low + np.sqrt(p * (high - low) * (top - low))
    falling = high - np.sqrt((1 - p) * (high - low) * (high - top))
    return np.where(p * (high - low) < top - low, rising, falling)


def _trapezoidal_quantile(p: Any, low: float, high: float, beta: float) -> Any:
    np, half = arrays.numpy_namespace(), (high - low) / 2
    tail = np.minimum(p, 1 - p)
    slope = half * np.sqrt(2 * tail * (1 - beta**2))
    top = half * ((1 - beta) / 2 + tail * (1 + beta))
    inner = np.where(2 * tail * (1 + beta) < 1 - beta, slope, top)
    return np.where(p < 0.5, low + inner, high - inner)


def _curvilinear_quantile(p: Any, low: float, high: float, inexact: float) -> Any:
    """The quantiles by bisection of the probability of a greater distance from the middle."""
    np, half = arrays.numpy_namespace(), (high - low) / 2
    inside, outside = half - inexact, half + inexact
    tail = 2 * np.minimum(p, 1 - p)

    def beyond(distance: Any) -> Any:
        far = np.maximum(distance, inside)
        slope = (outside - far - distance * np.log(outside / far)) / (2 * inexact)
        near = 1 - distance * math.log(outside / inside) / (2 * inexact)
        return np.where(distance < inside, near, slope)

    least, most = np.zeros_like(tail), np.full_like(tail, outside)
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        is_less = beyond(middle) > tail
        least, most = np.where(is_less, middle, least), np.where(is_less, most, middle)
    distance = (least + most) / 2
    return _middle(low, high) + np.where(p < 0.5, -distance, distance)


def _poisson_quantile(p: Any, mean: float) -> Any:
    from scipy import stats

    return stats.poisson.ppf(p, mean)


FAMILIES = {
    "normal": Family(
        "mean, u",
        lambda mean, u: u >= 0,
        lambda mean, u: mean,
        lambda mean, u: u**2,
        lambda mean, u: (0.0, 0.0),
        lambda generator, size, mean, u: generator.normal(mean, u, size),
        lambda mean, u: (mean - 2 * u, mean + 2 * u),
        lambda p, mean, u: mean + u * _special().ndtri(p),
    ),
    "uniform": Family(
        "low, high",
        _ordered,
        _middle,
        lambda low, high: (high - low) ** 2 / 12,
        lambda low, high: (0.0, -1.2),
        lambda generator, size, low, high: generator.uniform(low, high, size),
        _limits,
        lambda p, low, high: low + (high - low) * p,
    ),
    "triangular": Family(
        "low, high, mode",
        lambda low, high, mode=None: low < high and low <= _mode(low, high, mode) <= high,
        lambda low, high, mode=None: (low + high + _mode(low, high, mode)) / 3,
        _triangular_variance,
        _triangular_shape,
        _triangular,
        _limits,
        _triangular_quantile,
        optional=1,
    ),
    # JCGM 101, 6.4.4: beta is the ratio of the widths of the top and of the base.
    "trapezoidal": Family(
        "low, high, beta",
        lambda low, high, beta: low < high and 0 <= beta <= 1,
        _middle,
        lambda low, high, beta: (high - low) ** 2 * (1 + beta**2) / 24,
        _trapezoidal_shape,
        _trapezoidal,
        _limits,
        _trapezoidal_quantile,
    ),
    # JCGM 101, 6.4.3: limits known with the uncertainty ±d.
    "curvilinear": Family(
        "low, high, d",
        lambda low, high, d: 0 < 2 * d < high - low,
        _middle,
        lambda low, high, d: (high - low) ** 2 / 12 + d**2 / 9,
        _curvilinear_shape,
        _curvilinear,
        _limits,
        _curvilinear_quantile,
    ),
    # JCGM 101, 6.4.6: a quantity that oscillates between limits as a sine.
    "arcsine": Family(
        "low, high",
        _ordered,
        _middle,
        lambda low, high: (high - low) ** 2 / 8,
        lambda low, high: (0.0, -1.5),
        _arcsine,
        _limits,
        lambda p, low, high: _middle(low, high) - (high - low) / 2 * arrays.numpy_namespace().cos(math.pi * p),
    ),
    "lognormal": Family(
        "mu, sigma",
        lambda mu, sigma: sigma >= 0,
        lambda mu, sigma: _exp(mu + sigma**2 / 2),
        lambda mu, sigma: _expm1(sigma**2) * _exp(2 * mu + sigma**2),
        _lognormal_shape,
        lambda generator, size, mu, sigma: generator.lognormal(mu, sigma, size),
        lambda mu, sigma: (_exp(mu - 2 * sigma), _exp(mu + 2 * sigma)),
        lambda p, mu, sigma: arrays.numpy_namespace().exp(mu + sigma * _special().ndtri(p)),
    ),
    "exponential": Family(
        "mean",
        lambda mean: mean > 0,
        lambda mean: mean,
        lambda mean: mean**2,
        lambda mean: (2.0, 6.0),
        lambda generator, size, mean: generator.exponential(mean, size),
        lambda mean: (0.0, 3 * mean),
        lambda p, mean: -mean * arrays.numpy_namespace().log1p(-p),
    ),
    "gamma": Family(
        "shape, scale",
        lambda shape, scale: shape > 0 and scale > 0,
        lambda shape, scale: shape * scale,
        lambda shape, scale: shape * scale**2,
        lambda shape, scale: (2 / math.sqrt(shape), 6 / shape),
        lambda generator, size, shape, scale: generator.gamma(shape, scale, size),
        lambda shape, scale: (0.0, scale * (shape + 2 * math.sqrt(shape))),
        lambda p, shape, scale: scale * _special().gammaincinv(shape, p),
    ),
    # For a standard uncertainty with few degrees of freedom; a kurtosis exists with more than 4 of them.
    "student": Family(
        "dof above 4, location, scale",
        lambda dof, location, scale: dof > 4 and scale >= 0,
        lambda dof, location, scale: location,
        lambda dof, location, scale: scale**2 * dof / (dof - 2),
        lambda dof, location, scale: (0.0, 6 / (dof - 4)),
        lambda generator, size, dof, location, scale: location + scale * generator.standard_t(dof, size),
        lambda dof, location, scale: (location - 3 * scale, location + 3 * scale),
        lambda p, dof, location, scale: location + scale * _special().stdtrit(dof, p),
    ),
    "beta": Family(
        "a, b, low, high",
        lambda a, b, low=0.0, high=1.0: a > 0 and b > 0 and low < high,
        lambda a, b, low=0, high=1: low + (high - low) * a / (a + b),
        _beta_variance,
        _beta_shape,
        lambda generator, size, a, b, low=0.0, high=1.0: low + (high - low) * generator.beta(a, b, size),
        lambda a, b, low=0.0, high=1.0: (low, high),
        lambda p, a, b, low=0.0, high=1.0: low + (high - low) * _special().betaincinv(a, b, p),
        optional=2,
    ),
    "poisson": Family(
        "mean",
        lambda mean: 0 < mean < 1e15,
        lambda mean: mean,
        lambda mean: mean,
        lambda mean: (1 / math.sqrt(mean), 1 / mean),
        lambda generator, size, mean: generator.poisson(mean, size).astype(float),
        lambda mean: (max(0.0, mean - 2 * math.sqrt(mean)), mean + 2 * math.sqrt(mean)),
        _poisson_quantile,
    ),
}
