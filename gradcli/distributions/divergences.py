"""Kullback–Leibler divergences between distributions in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.arrays.shapes import broadcast
from gradcli.distributions.bounded_numbers import ContinuousBernoulli
from gradcli.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from gradcli.distributions.distribution import Distribution, as_tensor
from gradcli.distributions.multivariate import Dirichlet, Independent, MultivariateNormal
from gradcli.distributions.positive_numbers import Pareto
from gradcli.distributions.transforms import TransformedDistribution
from gradcli.distributions.univariate import (
    EULER_GAMMA,
    Beta,
    Cauchy,
    Chi2,
    Exponential,
    Gamma,
    Gumbel,
    HalfNormal,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from gradcli.errors import MissingRuleError
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.comparisons import logical_and, logical_or, where
from gradcli.primitives.entries.exponential import softplus, xlogy
from gradcli.primitives.entries.linear_algebra.linear_systems import solve_triangular
from gradcli.primitives.entries.special_functions.special import betaln, digamma, erf, lgamma

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


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Any:
    """F. Chyzak and F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions"
    (2019)."""
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    spread = (lgamma(1 + ratio) - distance).exp()
    return -ratio.log() + distance + ratio * EULER_GAMMA + spread - (1 + EULER_GAMMA)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, found)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Any:
    return p.mean * (p.logits - q.logits) + p._log_norm() - q._log_norm() + softplus(q.logits) - softplus(p.logits)


@register_kl(Normal, Laplace)
def _laplace_from_normal(p: Normal, q: Laplace) -> Any:
    distance = p.loc - q.loc
    z = distance / p.scale
    expected = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z**2).exp() + distance * erf(math.sqrt(0.5) * z)
    return (2 * q.scale).log() + expected / q.scale - p.entropy()


@register_kl(Normal, Gumbel)
def _gumbel_from_normal(p: Normal, q: Gumbel) -> Any:
    distance = (p.loc - q.loc) / q.scale
    return q.scale.log() + distance + (0.5 * (p.scale / q.scale) ** 2 - distance).exp() - p.entropy()


@register_kl(Gamma, Gumbel)
def _gumbel_from_gamma(p: Gamma, q: Gumbel) -> Any:
    scales = p.rate * q.scale
    far = (q.loc / q.scale).exp() * (1 + 1 / scales) ** -p.concentration
    return q.scale.log() + (p.mean - q.loc) / q.scale + far - p.entropy()


@register_kl(Exponential, Gumbel)
def _gumbel_from_exponential(p: Exponential, q: Gumbel) -> Any:
    return _gumbel_from_gamma(Gamma(1.0, p.rate, False), q)


@register_kl(Uniform, Gumbel)
def _gumbel_from_uniform(p: Uniform, q: Gumbel) -> Any:
    low, high, width = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale, (p.high - p.low) / q.scale
    return -width.log() + 0.5 * (high + low) - ((-high).exp() - (-low).exp()) / width


@register_kl(Bernoulli, Poisson)
def _poisson_from_bernoulli(p: Bernoulli, q: Poisson) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _normal_from(p: Any, q: Normal) -> Any:
    return (
        0.5 * (q.variance * 2 * math.pi).log() + 0.5 * (p.variance + (p.mean - q.loc) ** 2) / q.variance - p.entropy()
    )


def _exponential_from(p: Any, q: Exponential) -> Any:
    """The divergence between a distribution of numbers of at least 0 and an exponential one."""
    return q.rate * p.mean - q.rate.log() - p.entropy()


def _mean_log(p: Any) -> Any:
    """The mean of log(x) for an x of a beta, Pareto, exponential or uniform distribution of positive numbers."""
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    if isinstance(p, Exponential):
        return -EULER_GAMMA - p.rate.log()
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1


def _gamma_from(p: Any, q: Gamma) -> Any:
    a = q.concentration
    return lgamma(a) - a * q.rate.log() - (a - 1) * _mean_log(p) + q.rate * p.mean - p.entropy()


def _uniform_from(p: Any, q: Uniform) -> Any:
    """The divergence between a distribution on [0, 1] and a uniform one."""
    return where(logical_or(q.low > 0, q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


def _continuous_bernoulli_from(p: Any, q: ContinuousBernoulli) -> Any:
    return softplus(q.logits) - q.logits * p.mean - q._log_norm() - p.entropy()


def _where_above_0(formula: Formula) -> Formula:
    """A formula that is infinite where a uniform distribution reaches below 0."""
    return lambda p, q: where(p.low < 0, math.inf, formula(p, q))


def _where_within_0_and_1(formula: Formula) -> Formula:
    """A formula that is infinite where a uniform distribution reaches out of [0, 1]."""
    return lambda p, q: where(logical_or(p.low < 0, p.high > 1), math.inf, formula(p, q))


def _beta_from_uniform(p: Uniform, q: Beta) -> Any:
    a, b = q.concentration1, q.concentration0
    # 1 - x is uniform too.
    mirrored = _mean_log(Uniform(1 - p.high, 1 - p.low, False))
    return betaln(a, b) - (a - 1) * _mean_log(p) - (b - 1) * mirrored - p.entropy()


@register_kl(Uniform, Pareto)
def _pareto_from_uniform(p: Uniform, q: Pareto) -> Any:
    found = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return where(p.low < q.scale, math.inf, found)


for _kind in (Beta, Gamma, Exponential, Gumbel, Laplace, Pareto, ContinuousBernoulli, Uniform):
    register_kl(_kind, Normal)(_normal_from)
for _kind in (Beta, Gamma, Pareto, ContinuousBernoulli):
    register_kl(_kind, Exponential)(_exponential_from)
for _kind in (Beta, Exponential, Pareto):
    register_kl(_kind, Gamma)(_gamma_from)
for _kind in (Beta, ContinuousBernoulli):
    register_kl(_kind, Uniform)(_uniform_from)
register_kl(Beta, ContinuousBernoulli)(_continuous_bernoulli_from)
register_kl(Uniform, ContinuousBernoulli)(_where_within_0_and_1(_continuous_bernoulli_from))
register_kl(Uniform, Beta)(_where_within_0_and_1(_beta_from_uniform))
register_kl(Uniform, Exponential)(_where_above_0(_exponential_from))
register_kl(Uniform, Gamma)(_where_above_0(_gamma_from))

# Pairs (p, q) of which p allows values that are impossible under q, so that the divergence is infinite.
_BOUNDED, _HALF_LINE = (Uniform, Beta, ContinuousBernoulli), (Gamma, Exponential, Pareto)
_INFINITE = [
    *((p, q) for p in (Normal, Laplace, Gumbel) for q in (*_BOUNDED, *_HALF_LINE)),
    *((p, q) for p in _HALF_LINE for q in _BOUNDED),
    *((p, Pareto) for p in (Beta, ContinuousBernoulli, Exponential, Gamma)),
    *((Poisson, q) for q in (Bernoulli, Binomial)),
]


def _infinite(p: Distribution, q: Distribution) -> Any:
    return as_tensor(math.inf).expand(broadcast([p.batch_shape, q.batch_shape]))


for _pair in _INFINITE:
    register_kl(*_pair)(_infinite)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise MissingRuleError("both distributions must have the same transforms")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise MissingRuleError("both distributions must have the same number of reinterpreted axes")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))
