"""Continuous relaxations of discrete distributions, whose samples are differentiable, and the logistic-normal one.

C. J. Maddison, A. Mnih and Y. W. Teh, "The Concrete Distribution" (ICLR 2017); E. Jang, S. Gu and B. Poole, "Categorical
Reparameterization with Gumbel-Softmax" (ICLR 2017).
"""

from __future__ import annotations

import math
from typing import Any, Self

from gradcli.autograd import generators
from gradcli.distributions import constraints
from gradcli.distributions.discrete import OfCategories, ProbabilityOrLogits, clipped_probs, log_odds
from gradcli.distributions.distribution import as_tensor, constrained, dtype_of
from gradcli.distributions.transforms import StickBreakingTransform, TransformedDistribution
from gradcli.distributions.univariate import Normal
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.exponential import softplus
from gradcli.primitives.entries.scans import softmax
from gradcli.primitives.entries.statistics import logsumexp


def _uniform(shape: Any, dtype: str) -> Any:
    """Uniform numbers with finite logarithms."""
    return clipped_probs(as_tensor(generators.uniform(shape, dtype)))


class RelaxedBernoulli(ProbabilityOrLogits):
    """Numbers in (0, 1), near 0 and 1 where the `temperature` is low: the sigmoid of a logistic number with centre
    `logits`, divided by the temperature."""

    has_rsample = True
    parameter_names = ("probs", "logits")
    support = constraints.unit_interval
    arg_constraints = constrained(probs=constraints.unit_interval, logits=constraints.real)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.temperature = as_tensor(temperature)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = _uniform(self._extended_shape(sample_shape), dtype_of(self.probs))
        return ((log_odds(drawn) + log_odds(self.probs)) / self.temperature).sigmoid()

    def _log_prob(self, value: Any) -> Any:
        logit = log_odds(as_tensor(value))
        difference = self.logits - logit * self.temperature
        return self.temperature.log() + difference - 2 * softplus(difference) + softplus(logit) + softplus(-logit)


class RelaxedOneHotCategorical(OfCategories):
    """Probability vectors, near one-hot vectors where the `temperature` is low: the softmax of logits with Gumbel noise,
    divided by the temperature."""

    has_rsample = True
    parameter_names = ("probs", "logits")
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.temperature = as_tensor(temperature)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = _uniform(self._extended_shape(sample_shape), dtype_of(self.logits))
        return softmax((self.logits - (-drawn.log()).log()) / self.temperature, -1)

    def _log_prob(self, value: Any) -> Any:
        x, count = as_tensor(value).log(), self.event_shape[0]
        scores = self.logits - x * self.temperature
        total = (scores - logsumexp(scores, -1, True)).sum(-1)
        return total + math.lgamma(count) + (count - 1) * self.temperature.log() - x.sum(-1)


class LogisticNormal(TransformedDistribution):
    """Probability vectors: normal numbers after a `StickBreakingTransform`, one fewer than there are probabilities."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    def expand(self, batch_shape: Any) -> Self:
        shape = (*batch_shape, self.event_shape[0] - 1)
        return type(self)(broadcast_to(self.loc, shape), broadcast_to(self.scale, shape), False)

    @property
    def _normal(self) -> Any:
        vectors: Any = self.base_dist
        return vectors.base_dist

    @property
    def loc(self) -> Any:
        return self._normal.loc

    @property
    def scale(self) -> Any:
        return self._normal.scale
