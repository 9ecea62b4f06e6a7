"""Distributions as objects, with the names and behaviour of `torch.distributions`.

`distribution` has what all of them share; their functions of single numbers are those of the language.
"""

from gradcli.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from gradcli.distributions.distribution import Distribution
from gradcli.distributions.divergences import kl_divergence, register_kl
from gradcli.distributions.multivariate import Dirichlet, Independent, MixtureSameFamily, MultivariateNormal
from gradcli.distributions.univariate import (
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
    StudentT,
    Uniform,
)

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "StudentT",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
