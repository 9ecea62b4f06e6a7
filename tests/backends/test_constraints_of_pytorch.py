"""Constraints of distributions, and the transforms to what satisfies them, beside PyTorch's: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.usefixtures("float64")

DRAW = np.random.default_rng(0)
PAIR, MATRICES, PARTS = DRAW.normal(size=(2, 4)), DRAW.normal(size=(2, 3, 3)), DRAW.dirichlet([1, 1, 1, 1], size=2)


def assert_alike(found, expected, x):
    """Two functions of a tensor have the same values and gradients."""
    leaves = gradcli.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    results = found(leaves[0]), expected(leaves[1])
    assert results[0].shape == tuple(results[1].shape)
    weights = DRAW.normal(size=results[0].shape)
    for library, result in zip((gradcli, torch), results):
        (result * library.tensor(weights)).sum().backward()
    for one, other in (results, [leaf.grad for leaf in leaves]):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), 1e-9, 1e-11)


TRANSFORMS = {
    "absolute values": (lambda d: d.AbsTransform(), PAIR),
    "softmax": (lambda d: d.SoftmaxTransform(), PAIR),
    "stick breaking": (lambda d: d.StickBreakingTransform(), PAIR),
    "inverse": (lambda d: d.StickBreakingTransform().inv, PARTS),
    "lower triangular": (lambda d: d.LowerCholeskyTransform(), MATRICES),
    "positive definite": (lambda d: d.PositiveDefiniteTransform(), MATRICES),
    "correlations": (lambda d: d.CorrCholeskyTransform(), DRAW.normal(size=(2, 6))),
    "distribution function": (lambda d: d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)), PAIR),
    "other shape": (lambda d: d.ReshapeTransform((2, 3), (6,)), DRAW.normal(size=(4, 2, 3))),
    "event": (lambda d: d.IndependentTransform(d.ExpTransform(), 1), PAIR),
    "slices": (lambda d: d.StackTransform([d.ExpTransform(), d.TanhTransform()], 0), PAIR),
    "parts": (lambda d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], 1, [1, 3]), PAIR),
    "composed": (lambda d: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.StickBreakingTransform()]), PAIR),
    "composed of larger ones": (lambda d: d.ComposeTransform([d.StickBreakingTransform(), d.ExpTransform()]), PAIR),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    make, x = TRANSFORMS[name]
    own, other = make(gradcli.distributions), make(torch.distributions)
    assert_alike(own, other, x)
    assert own.bijective == other.bijective
    assert own.domain.event_dim == other.domain.event_dim
    assert own.codomain.event_dim == other.codomain.event_dim
    assert own.forward_shape(x.shape) == tuple(other.forward_shape(torch.Size(x.shape)))
    if own.bijective:
        assert_alike(lambda t: own.inv(own(t)), lambda t: other.inv(other(t)), x)
        if name != "other shape":
            assert_alike(
                lambda t: own.log_abs_det_jacobian(t, own(t)), lambda t: other.log_abs_det_jacobian(t, other(t)), x
            )


CONSTRAINTS = {
    "real": (lambda c: c.real, (3,)),
    "positive": (lambda c: c.positive, (3,)),
    "nonnegative": (lambda c: c.nonnegative, (3,)),
    "greater than": (lambda c: c.greater_than(2.0), (3,)),
    "at least": (lambda c: c.greater_than_eq(2.0), (3,)),
    "less than": (lambda c: c.less_than(2.0), (3,)),
    "unit interval": (lambda c: c.unit_interval, (3,)),
    "interval": (lambda c: c.interval(-1.0, 4.0), (3,)),
    "half-open interval": (lambda c: c.half_open_interval(-1.0, 4.0), (3,)),
    "simplex": (lambda c: c.simplex, (2, 3)),
    "lower Cholesky": (lambda c: c.lower_cholesky, (2, 3, 3)),
    "correlations": (lambda c: c.corr_cholesky, (2, 6)),
    "positive definite": (lambda c: c.positive_definite, (2, 3, 3)),
    "vectors": (lambda c: c.independent(c.positive, 1), (2, 3)),
}


@pytest.mark.parametrize("way", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_transforms_to_a_constraint(name, way):
    make, shape = CONSTRAINTS[name]
    own, other = (make(library.distributions.constraints) for library in (gradcli, torch))
    try:
        expected = getattr(torch.distributions, way)(other)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            getattr(gradcli.distributions, way)(own)
        return
    found = getattr(gradcli.distributions, way)(own)
    x = DRAW.normal(size=shape)
    assert_alike(found, expected, x)
    inside = expected(torch.tensor(x)).numpy()
    for value in (inside, DRAW.normal(size=inside.shape), np.zeros(inside.shape)):
        one, two = own.check(gradcli.tensor(value)), other.check(torch.tensor(value))
        np.testing.assert_array_equal(one.numpy(), two.numpy())


@pytest.mark.parametrize(
    "code",
    [
        "c.boolean.check(t([0.0, 1.0, 0.5]))",
        "c.one_hot.check(t([[0.0, 1.0], [1.0, 1.0]]))",
        "c.nonnegative_integer.check(t([0.0, 1.5, -1.0]))",
        "c.positive_integer.check(t([0.0, 1.0]))",
        "c.integer_interval(1, 3).check(t([0.0, 3.0, 2.5]))",
        "c.multinomial(3).check(t([[1.0, 2.0], [2.0, 2.0]]))",
        "c.lower_triangular.check(t([[1.0, 0.0], [1.0, -1.0]]))",
        "c.symmetric.check(t([[1.0, 2.0], [1.0, 1.0]]))",
        "c.square.check(t([[1.0, 2.0]]))",
        "c.positive_semidefinite.check(t([[1.0, 1.0], [1.0, 1.0]]))",
        "repr(c.positive)",
        "repr(c.interval(0.0, 2.0))",
        "repr(c.simplex)",
        "c.is_dependent(c.dependent)",
        "(c.real_vector.event_dim, c.one_hot.is_discrete)",
    ],
)
def test_constraints(code):
    one, other = (eval(code, {"c": m.distributions.constraints, "t": m.tensor}) for m in (gradcli, torch))
    assert (one.tolist() if hasattr(one, "tolist") else one) == (other.tolist() if hasattr(other, "tolist") else other)


TRANSFORMED = {
    "to a simplex": (lambda d, t: d.TransformedDistribution(d.Normal(t([0.1, 0.2]), t([1.0, 2.0])), [d.StickBreakingTransform()]), [0.2, 0.3, 0.5]),
    "to a matrix": (lambda d, t: d.TransformedDistribution(d.Normal(t([0.1] * 6), 1.0), [d.ReshapeTransform((6,), (2, 3))]), [[0.1, 0.2, 0.3]] * 2),
    "of vectors": (
        lambda d, t: d.TransformedDistribution(
            d.MultivariateNormal(t([0.1, 0.2]), t([[1.0, 0.2], [0.2, 1.0]])), [d.ExpTransform(), d.AffineTransform(0.0, t([2.0, 3.0]))]
        ),
        [0.2, 0.3],
    ),
    "to correlations": (
        lambda d, t: d.TransformedDistribution(d.Normal(t([0.1, 0.2, 0.3]), 1.0), [d.CorrCholeskyTransform()]),
        np.linalg.cholesky([[1.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.0]]).tolist(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMED)
def test_distributions_after_transforms_of_events(name):
    make, value = TRANSFORMED[name]
    own, other = make(gradcli.distributions, gradcli.tensor), make(torch.distributions, torch.tensor)
    assert (own.batch_shape, own.event_shape) == (tuple(other.batch_shape), tuple(other.event_shape))
    assert_alike(own.log_prob, other.log_prob, np.array(value))
    assert own.sample((5,)).shape == tuple(other.sample((5,)).shape)
    with pytest.raises(ValueError, match="to be within the support"):
        own.log_prob(gradcli.tensor(value) * float("nan"))


def square_distribution(d):
    """A distribution as users write them, for the distributions of a library."""

    class Square(d.Distribution):
        arg_constraints = {"side": d.constraints.positive}  # noqa: RUF012

        def __init__(self, side, validate_args=None):
            self.side = side
            super().__init__(side.shape, (2,), validate_args=validate_args)

        @d.constraints.dependent_property(is_discrete=False, event_dim=1)
        def support(self):
            return d.constraints.independent(d.constraints.interval(0.0, self.side[..., None]), 1)

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return -2 * self.side.log()

    return Square


def test_distributions_of_users_have_what_those_of_pytorch_have():
    found = []
    for library in (gradcli, torch):
        kind = square_distribution(library.distributions)
        with pytest.raises(ValueError, match="Expected parameter side"):
            kind(library.tensor([1.0, -1.0]))
        made = kind(library.tensor([1.0, 2.0]))
        with pytest.raises(ValueError, match="to be within the support"):
            made.log_prob(library.tensor([0.5, 1.5]))
        found.append((made.log_prob(library.tensor([0.5, 0.7])).tolist(), tuple(made._extended_shape((3,)))))
    assert found[0] == found[1]
