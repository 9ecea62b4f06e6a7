"""Probability distributions as objects, with the names and behaviour of `torch.distributions`.

Their functions of single numbers are those of the expression language.
"""

from gradcli.distributions import constraints, transforms
from gradcli.distributions.bounded_numbers import ContinuousBernoulli, Kumaraswamy, VonMises
from gradcli.distributions.constraint_registry import biject_to, transform_to
from gradcli.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from gradcli.distributions.distribution import Distribution
from gradcli.distributions.divergences import kl_divergence, register_kl
from gradcli.distributions.matrices import LKJCholesky, LowRankMultivariateNormal, Wishart
from gradcli.distributions.multivariate import Dirichlet, Independent, MixtureSameFamily, MultivariateNormal
from gradcli.distributions.positive_numbers import (
    FisherSnedecor,
    GeneralizedPareto,
    HalfCauchy,
    InverseGamma,
    Pareto,
    Weibull,
)
from gradcli.distributions.relaxed import LogisticNormal, RelaxedBernoulli, RelaxedOneHotCategorical
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
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
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
    "VonMises",
    "Weibull",
    "Wishart",
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
        "bounded_numbers": "continuous_bernoulli kumaraswamy von_mises",
        "discrete": "bernoulli binomial categorical geometric multinomial negative_binomial one_hot_categorical poisson",
        "distribution": "utils",
        "divergences": "kl",
        "matrices": "lkj_cholesky lowrank_multivariate_normal wishart",
        "multivariate": "dirichlet independent mixture_same_family multivariate_normal",
        "positive_numbers": "fishersnedecor generalized_pareto half_cauchy inverse_gamma pareto weibull",
        "relaxed": "logistic_normal relaxed_bernoulli relaxed_categorical",
        "transforms": "transformed_distribution",
        "univariate": "beta cauchy chi2 exponential gamma gumbel half_normal laplace log_normal normal studentT uniform",
    },
)

if __name__ != "gradcli.distributions":
    alias_package(__name__, "gradcli.distributions")
