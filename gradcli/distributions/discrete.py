"""Distributions of integers and of categories."""

from __future__ import annotations

import math
from typing import Any, Self

from gradcli import arrays
from gradcli.arrays.shapes import broadcast
from gradcli.autograd import generators
from gradcli.autograd.modes import no_grad
from gradcli.autograd.operations.sampling_functions import multinomial
from gradcli.distributions import constraints
from gradcli.distributions.constraints import Constraint
from gradcli.distributions.distribution import (
    Distribution,
    Univariate,
    as_tensor,
    broadcast_all,
    constrained,
    dtype_of,
    exactly_one,
)
from gradcli.errors import ArgumentError
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.comparisons import clip, logical_and, minimum, where
from gradcli.primitives.entries.exponential import log1p, sigmoid, softplus, xlogy
from gradcli.primitives.entries.manipulation.gather_scatter import one_hot, take_along_axis
from gradcli.primitives.entries.scans import softmax
from gradcli.primitives.entries.statistics import logsumexp

_ONE_OF_TWO = ("probs", "logits")


class _Simplex(Constraint):
    """Weights whose sum is positive, which become probabilities; PyTorch calls this constraint a simplex too."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) > 0)


_SHARES = _Simplex()


class ProbabilityOrLogits(Univariate):
    """The base class of distributions with a probability, given as `probs` or as log-odds, `logits`."""

    _given: str

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        Distribution.__init__(self, getattr(self, self._given).shape, (), validate_args)

    def _take(self, probs: Any, logits: Any) -> None:
        self._given = exactly_one(probs=probs, logits=logits)
        (value,) = broadcast_all(probs if logits is None else logits)
        self.__dict__[self._given] = value

    def __getattr__(self, name: str) -> Any:
        if name == "probs":
            return sigmoid(self.logits)
        if name == "logits":
            return log_odds(self.probs)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")

    def expand(self, batch_shape: Any) -> Self:
        shape = tuple(batch_shape)
        return self._with_parameters(shape, **{self._given: broadcast_to(getattr(self, self._given), shape)})


def clipped_probs(probs: Any) -> Any:
    """Probabilities clipped to have finite logarithms, as in PyTorch."""
    least = 2.0 ** (-23 if probs.dtype == "float32" else -52)
    return clip(probs, least, 1.0 - least)


def log_odds(probs: Any) -> Any:
    """The finite logarithms of p/(1 - p) for clipped probabilities p."""
    p = clipped_probs(probs)
    return p.log() - log1p(-p)


class Bernoulli(ProbabilityOrLogits):
    """1 with probability `probs`, else 0."""

    parameter_names = _ONE_OF_TWO
    support = constraints.boolean
    arg_constraints = constrained(probs=constraints.unit_interval)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            probs = self.probs
            drawn = as_tensor(generators.uniform(self._extended_shape(sample_shape), dtype_of(probs)))
            return (drawn < probs).to(dtype_of(probs))

    def _log_prob(self, value: Any) -> Any:
        x = as_tensor(value)
        return x * self.logits - softplus(self.logits)

    def entropy(self) -> Any:
        return softplus(self.logits) - self.probs * self.logits

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        probs = self.probs
        return where(probs == 0.5, math.nan, (probs >= 0.5).to(dtype_of(probs)))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)


class Geometric(ProbabilityOrLogits):
    """The number of failures before the first success, which has probability `probs`."""

    parameter_names = _ONE_OF_TWO
    support = constraints.nonnegative_integer
    arg_constraints = constrained(probs=constraints.unit_interval)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            # 1 - u is positive, so that its logarithm is finite.
            drawn = 1.0 - as_tensor(generators.uniform(self._extended_shape(sample_shape), dtype_of(self.probs)))
            return (drawn.log() / (-self.probs).log1p()).floor()

    def _log_prob(self, value: Any) -> Any:
        x, probs = as_tensor(value), self.probs
        return x * (-probs).log1p() + probs.log()

    def entropy(self) -> Any:
        return Bernoulli(self.probs, validate_args=False).entropy() / self.probs

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return self.probs * 0.0

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs


class _Counting(ProbabilityOrLogits):
    """The base class of distributions with a `total_count` beside the probability."""

    parameter_names = ("total_count", *_ONE_OF_TWO)

    def __init__(self, total_count: Any, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self._take(probs, logits)
        self.total_count, given = broadcast_all(total_count, getattr(self, self._given))
        self.__dict__[self._given] = given
        Distribution.__init__(self, given.shape, (), validate_args)

    def expand(self, batch_shape: Any) -> Self:
        made = super().expand(batch_shape)
        made.total_count = broadcast_to(self.total_count, tuple(batch_shape))
        return made


class Binomial(_Counting):
    """The number of successes in `total_count` trials with probability `probs`."""

    arg_constraints = constrained(probs=constraints.unit_interval, total_count=constraints.nonnegative)

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        return constraints.integer_interval(0, self.total_count)

    def sample(self, sample_shape: Any = ()) -> Any:
        counts, probs = arrays.to_numpy(self.total_count.inner), arrays.to_numpy(self.probs.detach().inner)
        drawn = numpy_generator().binomial(counts.astype("int64"), probs, self._extended_shape(sample_shape))
        return as_tensor(drawn).to(dtype_of(self.probs))

    def _log_prob(self, value: Any) -> Any:
        n, x, logits = self.total_count, as_tensor(value), self.logits
        choices = (n + 1).lgamma() - (x + 1).lgamma() - (n - x + 1).lgamma()
        return choices + x * logits - n * softplus(logits)

    def entropy(self) -> Any:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All possible counts, along a new first axis. Raises NotImplementedError where `total_count` differs."""
        most = int(self.total_count.max().item())
        if not (self.total_count == most).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        numbers = as_tensor([*map(float, range(most + 1))]).reshape(-1, *[1] * len(self.batch_shape))
        return numbers.expand(-1, *self.batch_shape) if expand else numbers

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)


class NegativeBinomial(_Counting):
    """The number of successes, each with probability `probs`, before `total_count` failures."""

    support = constraints.nonnegative_integer
    arg_constraints = constrained(
        total_count=constraints.nonnegative, probs=constraints.half_open_interval(0.0, 1.0), logits=constraints.real
    )

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        count, odds = (arrays.to_numpy(x.detach().inner) for x in (self.total_count, self.logits.exp()))
        generator, shape = numpy_generator(), self._extended_shape(sample_shape)
        drawn = generator.poisson(generator.gamma(count, odds, shape))
        return as_tensor(drawn).to(dtype_of(self.logits))

    def _log_prob(self, value: Any) -> Any:
        n, x = self.total_count, as_tensor(value)
        # Without failures to wait for, 0 is certain, and the logarithms of the gamma functions are infinite.
        certain = n + x == 0
        number = where(certain, 1.0, n)
        choices = (number + x).lgamma() - (x + 1).lgamma() - number.lgamma()
        shares = -n * softplus(self.logits) - x * softplus(-self.logits)
        return shares + where(certain, 0.0, choices)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return clip(((self.total_count - 1) * self.logits.exp()).floor(), 0.0)

    @property
    def variance(self) -> Any:
        return self.mean / sigmoid(-self.logits)


class Poisson(Univariate):
    """The Poisson distribution with mean `rate`."""

    parameter_names = ("rate",)
    support = constraints.nonnegative_integer
    arg_constraints = constrained(rate=constraints.nonnegative)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(rate, validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        rate = arrays.to_numpy(self.rate.detach().inner)
        return as_tensor(numpy_generator().poisson(rate, self._extended_shape(sample_shape))).to(dtype_of(self.rate))

    def _log_prob(self, value: Any) -> Any:
        x = as_tensor(value)
        return xlogy(x, self.rate) - self.rate - (x + 1).lgamma()

    @property
    def mean(self) -> Any:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Any:
        return self.rate.floor()


class Categorical(Distribution):
    """Class indices with probabilities proportional to `probs`, or to exp(logits), along the last axis."""

    parameter_names = _ONE_OF_TWO

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._given = exactly_one(probs=probs, logits=logits)
        given = as_tensor(probs if logits is None else logits)
        if given.ndim < 1:
            raise ArgumentError(f"`{self._given}` parameter must be at least one-dimensional.")
        if probs is not None:
            if validate_args is not False:
                self._check("probs", given, _SHARES)
            self.__dict__["probs"] = given / given.sum(-1, keepdims=True)
        else:
            self.__dict__["logits"] = given - logsumexp(given, -1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    def __getattr__(self, name: str) -> Any:
        if name == "probs":
            return softmax(self.logits, -1)
        if name == "logits":
            return clipped_probs(self.probs).log()
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    def expand(self, batch_shape: Any) -> Self:
        given = broadcast_to(getattr(self, self._given), (*batch_shape, self._num_events))
        return self._with_parameters(batch_shape, **{self._given: given})

    @property
    def param_shape(self) -> Any:
        return getattr(self, self._given).shape

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rows = self.probs.detach().reshape(-1, self._num_events)
            count = math.prod(shape) // max(rows.shape[0], 1)
            return multinomial(rows, count, True).T.reshape(shape)

    def _log_prob(self, value: Any) -> Any:
        chosen = as_tensor(value).long()
        shape = broadcast([chosen.shape, self.batch_shape])
        logits = broadcast_to(self.logits, (*shape, self._num_events))
        return take_along_axis(logits, broadcast_to(chosen, shape)[..., None], -1).squeeze(-1)

    def entropy(self) -> Any:
        # A class with probability 0 contributes 0, not nan from -inf times 0.
        least = -3.4028234663852886e38 if self.logits.dtype == "float32" else -1.7976931348623157e308
        return -(clip(self.logits, least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All class indices, along a new first axis."""
        numbers = as_tensor([*range(self._num_events)]).long().reshape(-1, *[1] * len(self.batch_shape))
        return numbers.expand(-1, *self.batch_shape) if expand else numbers

    @property
    def mean(self) -> Any:
        return self.probs.sum(-1) * math.nan

    variance = mean

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)


class OfCategories(Distribution):
    """The base class of distributions of vectors with an element for each class of a `Categorical`."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, (self._categorical._num_events,), validate_args)

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    def expand(self, batch_shape: Any) -> Self:
        return self._with_parameters(batch_shape, _categorical=self._categorical.expand(batch_shape))


class OneHotCategorical(OfCategories):
    """`Categorical` with one-hot vectors instead of indices."""

    support = constraints.one_hot

    def sample(self, sample_shape: Any = ()) -> Any:
        return as_tensor(one_hot(self._categorical.sample(sample_shape), self.event_shape[0])).to(dtype_of(self.probs))

    def _log_prob(self, value: Any) -> Any:
        return self._categorical.log_prob(as_tensor(value).argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return as_tensor(one_hot(self.probs.argmax(-1), self.event_shape[0])).to(dtype_of(self.probs))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples have the gradient of the probabilities.

    Y. Bengio, N. Léonard and A. Courville, "Estimating or Propagating Gradients Through Stochastic Neurons for Conditional
    Computation" (2013).
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategories):
    """How often each class is drawn in `total_count` draws with probabilities `probs`."""

    parameter_names = _ONE_OF_TWO
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample(
            (self.total_count, *self._extended_shape(sample_shape)[: -len(self.batch_shape) - 1])
        )
        return as_tensor(one_hot(drawn, self.event_shape[0])).sum(0).to(dtype_of(self.probs))

    def _log_prob(self, value: Any) -> Any:
        x = as_tensor(value)
        # A class with probability 0 that was not drawn contributes 0, not nan from -inf times 0.
        logits = where(logical_and(x == 0, self.logits == -math.inf), 0.0, self.logits)
        return (x.sum(-1) + 1).lgamma() - (x + 1).lgamma().sum(-1) + (logits * x).sum(-1)

    def entropy(self) -> Any:
        count = self.total_count
        each = Binomial(float(count), self.probs, validate_args=False)
        numbers = each.enumerate_support(expand=False)[1:]
        expected = (each.log_prob(numbers).exp() * (numbers + 1).lgamma()).sum((0, -1))
        return count * self._categorical.entropy() - math.lgamma(count + 1) + expected

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)


def numpy_generator() -> Any:
    """A NumPy generator seeded from gradcli's, for distributions that are not sampled by a formula."""
    seed = generators.integers((), 0, 2**62)
    return arrays.numpy_namespace().random.default_rng(int(seed))
