"""Kullback–Leibler divergences between distributions in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from gradcli.distributions.distribution import LOG_2_PI, Distribution
from gradcli.distributions.multivariate import Dirichlet, Independent, MultivariateNormal
from gradcli.distributions.univariate import (
    Beta,
    Chi2,
    Exponential,
    Gamma,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from gradcli.errors import MissingRuleError
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.comparisons import logical_and, where
from gradcli.primitives.entries.exponential import softplus
from gradcli.primitives.entries.linear_systems import solve_triangular
from gradcli.primitives.entries.special import betaln, digamma, lgamma

Formula = Callable[[Any, Any], Any]
_FORMULAS: dict[tuple[type[Distribution], type[Distribution]], Formula] = {}


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """KL(p || q), the expectation of p.log_prob(x) - q.log_prob(x) under p. Raises NotImplementedError without a
    formula."""
    found = [pair for pair in _FORMULAS if isinstance(p, pair[0]) and isinstance(q, pair[1])]
    if not found:
        raise MissingRuleError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    # The formula for the most derived classes.
    depth = {pair: len(pair[0].__mro__) + len(pair[1].__mro__) for pair in found}
    return _FORMULAS[max(found, key=depth.__getitem__)](p, q)


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Formula], Formula]:
    """Register a function of two distributions as the divergence between two classes: `@register_kl(P, Q)`."""

    def registered(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return registered


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
def _lognormal(p: LogNormal, q: LogNormal) -> Any:
    return _normal(Normal(p.loc, p.scale, False), Normal(q.loc, q.scale, False))


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Any:
    return _normal(Normal(0.0, p.scale, False), Normal(0.0, q.scale, False))


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    shapes = lgamma(b) - lgamma(a) + (a - b) * digamma(a)
    return b * (p.rate / q.rate).log() + shapes + (q.rate - p.rate) * (a / p.rate)


@register_kl(Chi2, Chi2)
def _chi2(p: Chi2, q: Chi2) -> Any:
    return _gamma(Gamma(0.5 * p.df, 0.5, False), Gamma(0.5 * q.df, 0.5, False))


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Any:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    shapes = (a - c) * digamma(a) + (b - d) * digamma(b) + (c + d - a - b) * digamma(a + b)
    return betaln(c, d) - betaln(a, b) + shapes


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Any:
    inside = logical_and(q.low <= p.low, p.high <= q.high)
    return where(inside, ((q.high - q.low) / (p.high - p.low)).log(), math.inf)


@register_kl(Uniform, Normal)
def _uniform_from_normal(p: Uniform, q: Normal) -> Any:
    width = p.high - p.low
    spread = (width**2 / 12 + ((p.high + p.low - 2 * q.loc) / 2) ** 2) / (2 * q.scale**2)
    return 0.5 * LOG_2_PI + (q.scale / width).log() + spread


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Any:
    share = p.probs
    one = share * (softplus(-q.logits) - softplus(-p.logits))
    none = (1 - share) * (softplus(q.logits) - softplus(p.logits))
    return one + none


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Any:
    each = _bernoulli(Bernoulli(p.probs, validate_args=False), Bernoulli(q.probs, validate_args=False))
    # If p has more trials, q gives some outcomes probability 0.
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = where(q.probs == 0, math.inf, terms)
    return where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    shapes = ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)
    return lgamma(total) - lgamma(b.sum(-1)) + (lgamma(b) - lgamma(a)).sum(-1) + shapes


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    mine, other = p.scale_tril, q.scale_tril
    size = p.event_shape[0]
    lead = (mine[..., 0, 0] + other[..., 0, 0]).shape
    mine, other = (broadcast_to(scale, (*lead, size, size)) for scale in (mine, other))
    centred = broadcast_to(q.loc - p.loc, (*lead, size))[..., None]
    trace = (solve_triangular(other, mine, lower=True) ** 2).sum((-1, -2))
    distance = (solve_triangular(other, centred, lower=True) ** 2).sum((-1, -2))
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + distance - size)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise MissingRuleError("the two are to have as many axes of one sample")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))
