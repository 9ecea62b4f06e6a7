"""The names of the distributions in SciPy, JAX and PyTorch; the functions are in `gradcli.primitives.entries.libraries.probability`."""

_OF_SCIPY = "norm t chi2 f gamma beta expon weibull_min lognorm uniform poisson binom"
_OF_TORCH = "Normal StudentT Chi2 FisherSnedecor Gamma Beta Exponential Weibull LogNormal Uniform Poisson Binomial"
_METHODS = "pdf logpdf pmf logpmf cdf logcdf sf logsf ppf isf log_prob icdf"
DISTRIBUTIONS = {
    "scipy.stats": frozenset(_OF_SCIPY.split()),
    "torch.distributions": frozenset(_OF_TORCH.split()),
}
METHODS = frozenset(_METHODS.split())


def may_be_distribution(module: str) -> bool:
    """Return whether the parent of `module` is a package of distributions, as that of `scipy.stats.norm` is, supported
    or not."""
    return module.removeprefix("jax.").rpartition(".")[0] in DISTRIBUTIONS


def is_distribution(module: str) -> bool:
    """Return whether `module` is a supported distribution: `scipy.stats.norm`, `jax.scipy.stats.norm` or
    `torch.distributions.Normal`."""
    library, _, name = module.removeprefix("jax.").rpartition(".")
    return name in DISTRIBUTIONS.get(library, ())
