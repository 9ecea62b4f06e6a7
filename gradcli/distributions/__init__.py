"""Probability distributions as objects, with the names and behaviour of `torch.distributions`.

Their functions of single numbers are those of the expression language.
"""

from gradcli.distributions import constraints, transforms
from gradcli.distributions.constraint_registry import biject_to, transform_to
from gradcli.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from gradcli.distributions.distribution import Distribution
from gradcli.distributions.divergences import kl_divergence, register_kl
from gradcli.distributions.multivariate import Dirichlet, Independent, MixtureSameFamily, MultivariateNormal
from gradcli.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    TransformedDistribution,
    identity_transform,
)
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
from gradcli.package_aliases import alias_files, alias_package

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "Laplace",
    "LogNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]

alias_files(
    "gradcli.distributions",
    {
        "discrete": "bernoulli binomial categorical geometric one_hot_categorical poisson",
        "distribution": "utils",
        "divergences": "kl",
        "multivariate": "dirichlet independent mixture_same_family multivariate_normal",
        "transforms": "transformed_distribution",
        "univariate": "beta cauchy chi2 exponential gamma gumbel half_normal laplace log_normal normal studentT uniform",
    },
)

if __name__ != "gradcli.distributions":
    alias_package(__name__, "gradcli.distributions")
