"""`gradcli.distributions` beside PyTorch's: densities, entropies, moments and divergences, with their gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = [
    pytest.mark.usefixtures("float64"),
    # Some of PyTorch's own functions look at how they are traced.
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Singular sample detected"),
]


LOC, SCALE = [0.3, -1.0, 2.0], [0.5, 1.5, 2.5]
OTHER_LOC, OTHER_SCALE = [0.1, 0.4, 1.0], [1.5, 0.75, 2.0]
SHARES, OTHER_SHARES = [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]], [[0.3, 0.3, 0.4], [0.1, 0.2, 0.7]]
COVARIANCE = [[2.0, 0.5, 0.1], [0.5, 1.5, -0.3], [0.1, -0.3, 1.0]]
FACTOR = [[1.2, 0.0, 0.0], [0.4, 0.9, 0.0], [-0.2, 0.3, 1.1]]

# Of a distribution its name, parameters, those of another one of its kind, and values.
CASES = [
    ("Normal", {"loc": LOC, "scale": SCALE}, {"loc": OTHER_LOC, "scale": OTHER_SCALE}, [0.1, 2.0, -3.0]),
    ("Normal", {"loc": 0.5, "scale": SCALE}, {"loc": OTHER_LOC, "scale": 2.0}, 0.7),
    ("LogNormal", {"loc": LOC, "scale": SCALE}, {"loc": OTHER_LOC, "scale": OTHER_SCALE}, [0.1, 2.0, 3.0]),
    ("HalfNormal", {"scale": SCALE}, {"scale": OTHER_SCALE}, [0.1, 2.0, 3.0]),
    ("Uniform", {"low": LOC, "high": [1.0, 0.0, 3.0]}, {"low": -2.0, "high": [2.0, 0.5, 3.5]}, [0.5, -0.5, 2.5]),
    ("Exponential", {"rate": SCALE}, {"rate": OTHER_SCALE}, [0.1, 2.0, 3.0]),
    ("Laplace", {"loc": LOC, "scale": SCALE}, {"loc": OTHER_LOC, "scale": OTHER_SCALE}, [0.1, 2.0, -3.0]),
    ("Cauchy", {"loc": LOC, "scale": SCALE}, None, [0.1, 2.0, -3.0]),
    ("Gumbel", {"loc": LOC, "scale": SCALE}, None, [0.1, 2.0, -3.0]),
    ("Gamma", {"concentration": SCALE, "rate": OTHER_SCALE}, {"concentration": OTHER_SCALE, "rate": SCALE}, [0.1, 2.0, 3.0]),
    ("Chi2", {"df": SCALE}, None, [0.1, 2.0, 3.0]),
    ("Beta", {"concentration1": SCALE, "concentration0": OTHER_SCALE}, {"concentration1": 2.0, "concentration0": 0.5}, [0.1, 0.5, 0.9]),
    ("StudentT", {"df": [2.5, 4.0, 9.0], "loc": LOC, "scale": SCALE}, None, [0.1, 2.0, -3.0]),
    ("Poisson", {"rate": SCALE}, {"rate": OTHER_SCALE}, [0.0, 2.0, 5.0]),
    ("Bernoulli", {"probs": [0.2, 0.7, 0.4]}, {"probs": [0.3, 0.6, 0.9]}, [0.0, 1.0, 1.0]),
    ("Bernoulli", {"logits": LOC}, {"logits": OTHER_LOC}, [0.0, 1.0, 1.0]),
    ("Geometric", {"probs": [0.2, 0.7, 0.4]}, {"probs": [0.3, 0.6, 0.9]}, [0.0, 1.0, 4.0]),
    ("Binomial", {"total_count": 5.0, "probs": [0.2, 0.7, 0.4]}, {"total_count": 5.0, "probs": [0.3, 0.6, 0.9]}, [0.0, 3.0, 5.0]),
    ("Categorical", {"probs": SHARES}, {"probs": OTHER_SHARES}, [2, 0]),
    ("Categorical", {"logits": [LOC, SCALE]}, {"logits": [OTHER_LOC, OTHER_SCALE]}, [[2, 0], [1, 1]]),
    ("OneHotCategorical", {"probs": SHARES}, {"probs": OTHER_SHARES}, [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    ("Dirichlet", {"concentration": [SCALE, OTHER_SCALE]}, {"concentration": OTHER_SCALE}, SHARES),
    ("MultivariateNormal", {"loc": LOC, "covariance_matrix": COVARIANCE}, {"loc": OTHER_LOC, "scale_tril": FACTOR}, [0.1, 2.0, -3.0]),
    ("MultivariateNormal", {"loc": [LOC, OTHER_LOC], "scale_tril": FACTOR}, {"loc": LOC, "precision_matrix": COVARIANCE}, [[[0.1, 2.0, -3.0]], [[1.0, 0.0, 1.0]]]),
    ("HalfCauchy", {"scale": SCALE}, None, [0.1, 2.0, 3.0]),
    ("Weibull", {"scale": SCALE, "concentration": OTHER_SCALE}, None, [0.1, 2.0, 3.0]),
    ("Pareto", {"scale": SCALE, "alpha": [1.5, 2.5, 0.75]}, {"scale": [0.3, 1.0, 4.0], "alpha": OTHER_SCALE}, [0.6, 2.0, 3.0]),
    ("InverseGamma", {"concentration": [0.5, 1.5, 3.0], "rate": OTHER_SCALE}, None, [0.1, 2.0, 3.0]),
    ("FisherSnedecor", {"df1": [1.5, 3.0, 4.0], "df2": [1.5, 5.0, 3.0]}, None, [0.1, 2.0, 3.0]),
    ("GeneralizedPareto", {"loc": LOC, "scale": SCALE, "concentration": [0.2, 0.6, -0.3]}, None, [0.4, 2.0, 3.0]),
    ("GeneralizedPareto", {"loc": LOC, "scale": SCALE, "concentration": [0.0, 1.5, 0.4]}, None, [0.4, 2.0, 3.0]),
    ("Kumaraswamy", {"concentration1": SCALE, "concentration0": [1.25, 2.0, 0.5]}, None, [0.1, 0.5, 0.9]),
    ("ContinuousBernoulli", {"probs": [0.2, 0.7, 0.4]}, {"probs": [0.3, 0.6, 0.9]}, [0.1, 0.5, 1.0]),
    ("ContinuousBernoulli", {"logits": [0.3, 0.001, -2.0]}, {"logits": OTHER_LOC}, [0.1, 0.5, 0.9]),
    ("VonMises", {"loc": LOC, "concentration": SCALE}, None, [0.1, 2.0, -3.0]),
    ("NegativeBinomial", {"total_count": [2.5, 4.0, 1.0], "probs": [0.2, 0.7, 0.4]}, None, [0.0, 3.0, 5.0]),
    ("NegativeBinomial", {"total_count": 3.0, "logits": LOC}, None, [0.0, 3.0, 5.0]),
    ("OneHotCategoricalStraightThrough", {"probs": SHARES}, None, [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    ("RelaxedBernoulli", {"temperature": 0.7, "probs": [0.2, 0.7, 0.4]}, None, [0.1, 0.5, 0.9]),
    ("RelaxedOneHotCategorical", {"temperature": 0.7, "logits": [LOC, SCALE]}, None, SHARES),
    ("LogisticNormal", {"loc": LOC[:2], "scale": SCALE[:2]}, None, SHARES),
    ("LowRankMultivariateNormal", {"loc": LOC, "cov_factor": [[0.5, 1.0], [-0.3, 0.2], [0.1, 0.4]], "cov_diag": SCALE},
        {"loc": OTHER_LOC, "cov_factor": [[0.2], [0.7], [-0.5]], "cov_diag": OTHER_SCALE}, [0.1, 2.0, -3.0]),
    ("Wishart", {"df": [4.5, 6.0], "covariance_matrix": COVARIANCE}, None, [[[2.0, 0.2, 0.1], [0.2, 1.0, 0.3], [0.1, 0.3, 4.0]]] * 2),
    ("Wishart", {"df": 4.0, "scale_tril": FACTOR}, None, [[2.0, 0.2, 0.1], [0.2, 1.0, 0.3], [0.1, 0.3, 4.0]]),
]  # fmt: skip
KNOWN = ("log_prob", "cdf", "entropy", "mean", "variance", "stddev", "mode", "kl")


def made(library, name, parameters):
    leaves = {key: library.tensor(value, requires_grad=True) for key, value in parameters.items()}
    return getattr(library.distributions, name)(**leaves), leaves


def found(library, name, parameters, others, value, what, other_name=None):
    """What is known of a distribution, and its gradients by parameters and by the value."""
    p, leaves = made(library, name, parameters)
    x = library.tensor(value, requires_grad=np.asarray(value).dtype == float)
    if what == "kl":
        q, more = made(library, other_name or name, others)
        result = library.distributions.kl_divergence(p, q)
        leaves |= {f"other {key}": leaf for key, leaf in more.items()}
    elif what in ("log_prob", "cdf"):
        result = getattr(p, what)(x)
        leaves["value"] = x
    else:
        result = getattr(p, what)
        result = result() if callable(result) else result
    gradients = {}
    if result.requires_grad and bool(result.isfinite().all()):
        weights = library.tensor(np.random.default_rng(0).uniform(1, 2, tuple(result.shape)))
        (result * weights).sum().backward()
        gradients = {
            key: leaf.grad.numpy()
            for key, leaf in leaves.items()
            if leaf.grad is not None and leaf.grad.abs().sum() > 0
        }
    return result.detach().numpy(), gradients


@pytest.mark.cases(40)
@pytest.mark.parametrize("what", KNOWN)
@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)])
def test_what_is_known_is_that_of_pytorch(case, what):
    name, parameters, others, value = case
    # PyTorch's mode of Kumaraswamy's distribution is nan, by a logarithm of a negative number.
    if (what == "kl" and others is None) or (name, what) == ("Kumaraswamy", "mode"):
        return
    try:
        expected, slopes = found(torch, name, parameters, others, value, what)
    except NotImplementedError:
        return
    ours, own_slopes = found(gradcli, name, parameters, others, value, what)
    # PyTorch's Bessel functions are polynomials in single precision there.
    close = 1e-6 if name == "VonMises" else 1e-9
    np.testing.assert_allclose(ours, expected, rtol=close, atol=1e-12)
    assert ours.shape == expected.shape
    assert own_slopes.keys() == slopes.keys()
    for key, slope in slopes.items():
        # Above the diagonal of a triangular matrix there is nothing to differentiate by.
        pair = map(np.tril, (own_slopes[key], slope)) if key == "scale_tril" else (own_slopes[key], slope)
        np.testing.assert_allclose(*pair, rtol=max(close, 1e-8), atol=close / 100, err_msg=key)


OF_PAIRS = {
    **{name: {"loc": [0.3, -1.0], "scale": [0.5, 1.5]} for name in ("Normal", "Laplace", "Gumbel")},
    "Uniform": {"low": [0.25, -0.5], "high": [0.75, 1.5]},
    "Beta": {"concentration1": [0.5, 2.0], "concentration0": [1.5, 0.75]},
    "ContinuousBernoulli": {"probs": [0.2, 0.7]},
    "Gamma": {"concentration": [0.5, 2.0], "rate": [1.5, 0.75]},
    "Exponential": {"rate": [1.5, 0.75]},
    "Pareto": {"scale": [0.5, 2.0], "alpha": [3.5, 2.25]},
}


@pytest.mark.parametrize(
    ("p", "q"), [*itertools.permutations(OF_PAIRS, 2), ("Bernoulli", "Poisson"), ("Poisson", "Bernoulli")]
)
def test_divergences_between_kinds_are_those_of_pytorch(p, q):
    parameters = OF_PAIRS | {"Bernoulli": {"probs": [0.2, 0.7]}, "Poisson": {"rate": [1.5, 0.75]}}
    try:
        expected, slopes = found(torch, p, parameters[p], parameters[q], [0.5, 0.5], "kl", q)
    except NotImplementedError:
        return
    ours, own_slopes = found(gradcli, p, parameters[p], parameters[q], [0.5, 0.5], "kl", q)
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)
    for key, slope in slopes.items():
        np.testing.assert_allclose(own_slopes[key], slope, rtol=1e-8, atol=1e-11, err_msg=key)


@pytest.mark.parametrize(
    "code", ["d.Multinomial(5, t(SHARES))", "d.Multinomial(3, logits=t(SHARES[0]))", "d.LKJCholesky(3, t([0.5, 2.0]))"]
)
def test_counts_and_correlations_are_those_of_pytorch(code):
    own, other = (eval(code, {"d": m.distributions, "t": m.tensor, "SHARES": SHARES}) for m in (gradcli, torch))
    assert (own.batch_shape, own.event_shape) == (tuple(other.batch_shape), tuple(other.event_shape))
    torch.manual_seed(0)
    gradcli.manual_seed(0)
    x = other.sample((4,))
    np.testing.assert_allclose(own.log_prob(gradcli.tensor(x.numpy())).numpy(), other.log_prob(x).numpy(), 1e-9)
    assert own.sample((5,)).shape == tuple(other.sample((5,)).shape)
    assert own.support.check(own.sample((5,))).all()
    if code.startswith("d.Multinomial"):
        for name in ("mean", "variance"):
            np.testing.assert_allclose(getattr(own, name).numpy(), getattr(other, name).numpy(), 1e-12)
        np.testing.assert_allclose(own.entropy().numpy(), other.entropy().numpy(), 1e-9)
        np.testing.assert_allclose(own.sample((4000,)).numpy().mean(0), own.mean.numpy(), atol=0.2)
    else:
        expected = other.sample((4000,)).numpy()
        np.testing.assert_allclose(own.sample((4000,)).numpy().mean(0), expected.mean(0), atol=0.1)
        np.testing.assert_allclose(own.sample((4000,)).numpy().std(0), expected.std(0), atol=0.1)


INDEPENDENT = {
    "normals": lambda d, t: d.Independent(d.Normal(t([LOC, OTHER_LOC]), t(SCALE)), 1),
    "in two axes": lambda d, t: d.Independent(d.Gamma(t([SCALE, OTHER_SCALE]), t(SCALE)), 2),
    "mixture": lambda d, t: d.MixtureSameFamily(d.Categorical(t(SHARES)[0]), d.Normal(t(LOC), t(SCALE))),
    "mixture of vectors": lambda d, t: d.MixtureSameFamily(
        d.Categorical(logits=t(SHARES)[:1]), d.Independent(d.Normal(t([[LOC, SCALE, LOC]]), t(1.5)), 1)
    ),
}


TRANSFORMED = {
    "affine": lambda d, t: d.TransformedDistribution(d.Normal(t(LOC), t(SCALE)), [d.AffineTransform(1.5, -2.0)]),
    "exp": lambda d, t: d.TransformedDistribution(d.Normal(t(LOC), t(SCALE)), d.ExpTransform()),
    "tanh": lambda d, t: d.TransformedDistribution(
        d.Independent(d.Normal(t([LOC, SCALE]), t(SCALE)), 1), [d.TanhTransform(cache_size=1), d.AffineTransform(0.2, 3.0)]
    ),
    "logistic": lambda d, t: d.TransformedDistribution(
        d.Uniform(t(0.0), t(1.0)), [d.SigmoidTransform().inv, d.AffineTransform(t(LOC), t(SCALE))]
    ),
    "power": lambda d, t: d.TransformedDistribution(d.Exponential(t(SCALE)), [d.PowerTransform(t(0.5))]),
    "an event": lambda d, t: d.TransformedDistribution(
        d.Normal(t([LOC, SCALE]), t(1.0)), [d.ExpTransform(), d.AffineTransform(t(LOC), t(SCALE), event_dim=1)]
    ),
    "softplus": lambda d, t: d.TransformedDistribution(d.Laplace(t(LOC), t(SCALE)), [d.SoftplusTransform()]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_distributions(name):
    ours, theirs = (TRANSFORMED[name](m.distributions, m.tensor) for m in (gradcli, torch))
    assert (ours.batch_shape, ours.event_shape) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    torch.manual_seed(2)
    y = theirs.sample((4,))
    one = gradcli.tensor(y.numpy(), requires_grad=True)
    other = y.requires_grad_()
    for own, expected in ((ours.log_prob(one), theirs.log_prob(other)),):
        np.testing.assert_allclose(own.detach().numpy(), expected.detach().numpy(), rtol=1e-8)
        own.sum().backward()
        expected.sum().backward()
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-7, atol=1e-9)
    if not ours.event_shape:
        np.testing.assert_allclose(ours.cdf(one).detach().numpy(), theirs.cdf(other).detach().numpy(), rtol=1e-9)
    gradcli.manual_seed(2)
    assert ours.rsample((5,)).shape == tuple(theirs.rsample((5,)).shape)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_distributions_of_distributions(name):
    ours, theirs = (INDEPENDENT[name](m.distributions, m.tensor) for m in (gradcli, torch))
    assert (ours.batch_shape, ours.event_shape) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    shape = (4, *ours.batch_shape, *ours.event_shape)
    x = np.random.default_rng(1).uniform(0.1, 2, shape)
    for one, other in (
        (ours.log_prob(gradcli.tensor(x)), theirs.log_prob(torch.tensor(x))),
        (ours.mean, theirs.mean),
        (ours.variance, theirs.variance),
    ):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-10)
    assert ours.sample((5,)).shape == tuple(theirs.sample((5,)).shape)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("Gamma", {"concentration": SCALE, "rate": OTHER_SCALE}), ("Beta", {"concentration1": SCALE, "concentration0": OTHER_SCALE})],
)  # fmt: skip
def test_gradients_of_samples_are_those_of_pytorch(name, parameters, monkeypatch):
    """Of the same samples, drawn here and given to PyTorch, whose rule for their derivatives is its own."""
    gradcli.manual_seed(0)
    own, leaves = made(gradcli, name, parameters)
    x = own.rsample((50,))
    x.sum().backward()
    shapes = {key: torch.tensor(value, requires_grad=True) for key, value in parameters.items()}
    y = torch.tensor(x.detach().numpy())
    if name == "Gamma":
        slope = torch._standard_gamma_grad(shapes["concentration"].expand(50, 3), y * shapes["rate"])
        expected = {"concentration": (slope / shapes["rate"]).sum(0), "rate": -(y / shapes["rate"]).sum(0)}
    else:
        both = torch.stack([shapes["concentration1"], shapes["concentration0"]], -1).expand(50, 3, 2)
        pairs = torch.stack([y, 1 - y], -1)
        total = both.sum(-1, True).expand_as(both)
        slopes = torch._dirichlet_grad(pairs, both, total)
        # x of the first share moves by its own concentration, and by the other one as 1 - x does.
        expected = {
            "concentration1": (slopes[..., 0] * (1 - y)).sum(0),
            "concentration0": (-slopes[..., 1] * y).sum(0),
        }
    for key, leaf in leaves.items():
        np.testing.assert_allclose(leaf.grad.numpy(), expected[key].detach().numpy(), rtol=2e-3)


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)])
def test_samples_have_the_moments_of_the_distribution(case):
    name, parameters, _, _ = case
    gradcli.manual_seed(1)
    own, _ = made(gradcli, name, parameters)
    x = own.sample((4000,))
    other, _ = made(torch, name, parameters)
    assert x.shape == tuple(other.sample((4000,)).shape)
    assert not x.requires_grad
    # Without a finite variance, or without formulas for moments.
    if name in ("Cauchy", "Categorical", "HalfCauchy", "VonMises", "LogisticNormal") or name.startswith("Relaxed"):
        return
    mean, deviation = other.mean.detach().numpy(), other.stddev.detach().numpy()
    # Nine deviations of the mean of so many.
    known = np.isfinite(deviation)
    far = np.abs(x.numpy().mean(0) - mean)[known]
    np.testing.assert_array_less(far, 9 * deviation[known] / np.sqrt(4000) + 1e-12)


def test_parameters_that_are_none_are_refused():
    with pytest.raises(ValueError, match="Expected parameter scale of distribution Normal to satisfy the constraint"):
        gradcli.distributions.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified, but not both"):
        gradcli.distributions.Bernoulli(0.5, logits=0.0)
    with pytest.raises(
        NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q type Poisson"
    ):
        gradcli.distributions.kl_divergence(gradcli.distributions.Normal(0, 1), gradcli.distributions.Poisson(1.0))


# Of a distribution, a value that no sample is.
OUTSIDE = [
    ("Normal", {"loc": 0.0, "scale": 1.0}, float("nan")),
    ("Uniform", {"low": 0.0, "high": 1.0}, 1.5),
    ("Exponential", {"rate": 1.0}, -1.0),
    ("Gamma", {"concentration": 1.0, "rate": 1.0}, -1.0),
    ("Beta", {"concentration1": 1.0, "concentration0": 1.0}, 1.5),
    ("LogNormal", {"loc": 0.0, "scale": 1.0}, 0.0),
    ("Poisson", {"rate": 1.0}, 2.5),
    ("Bernoulli", {"probs": 0.3}, 0.5),
    ("Binomial", {"total_count": 3.0, "probs": 0.3}, 4.0),
    ("Geometric", {"probs": 0.3}, -1.0),
    ("Categorical", {"probs": [0.3, 0.7]}, -1.0),
    ("Categorical", {"probs": [0.3, 0.7]}, 2.0),
    ("OneHotCategorical", {"probs": [0.3, 0.7]}, [1.0, 1.0]),
    ("Dirichlet", {"concentration": [0.3, 0.7]}, [0.5, 0.6]),
]


@pytest.mark.parametrize(("name", "parameters", "value"), OUTSIDE, ids=[f"{c[0]}-{i}" for i, c in enumerate(OUTSIDE)])
def test_values_that_no_sample_is_are_refused(name, parameters, value):
    for library in (torch, gradcli):
        distribution, _ = made(library, name, parameters)
        with pytest.raises(ValueError, match=r"Expected value argument \(Tensor of shape .* to be within the support"):
            distribution.log_prob(library.tensor(value))


def test_repeated_distributions_look_at_values_as_before():
    d = gradcli.distributions
    for made in (d.Poisson(1.0), d.Bernoulli(0.5), d.Categorical([0.5, 0.5])):
        with pytest.raises(ValueError, match="to be within the support"):
            made.expand((2,)).log_prob(-1.0)
    assert d.Exponential(1.0, validate_args=False).expand((2,)).log_prob(-1.0).tolist() == [-float("inf")] * 2


@pytest.mark.parametrize(("name", "parameters"), [("Gamma", (2.0, 3.0)), ("Gamma", (0.5, 3.0)), ("Chi2", (4.0,))])
def test_the_density_at_0_has_the_derivatives_of_pytorch(name: str, parameters: tuple[float, ...]) -> None:
    found: list[Any] = []
    expected: list[Any] = []
    for library, to in ((gradcli, found), (torch, expected)):
        values = library.tensor([0.0, 0.5], dtype=library.float64, requires_grad=True)
        given = [library.tensor([p, p], dtype=library.float64, requires_grad=True) for p in parameters]
        density = getattr(library.distributions, name)(*given).log_prob(values)
        density.sum().backward()
        to.extend(t.detach().numpy() for t in (density, *(leaf.grad for leaf in (values, *given))))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize(("concentration1", "concentration0"), [(1.5, 2.0), (3.0, 1.25)])
def test_the_mode_of_kumaraswamy_is_the_largest_density(concentration1, concentration0):
    made = gradcli.distributions.Kumaraswamy(concentration1, concentration0)
    x = gradcli.linspace(0.0005, 0.9995, 1000)
    assert x[made.log_prob(x).argmax()].item() == pytest.approx(made.mode.item(), abs=1e-3)
    assert np.isnan(gradcli.distributions.Kumaraswamy(0.5, 2.0).mode.item())
