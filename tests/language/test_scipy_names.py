"""Tests SciPy's functions and distributions under the names of `autograd.scipy`, for arrays and tensors."""

from __future__ import annotations

import importlib

import numpy
import pytest
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import gradcli
import gradcli.numpy as np
import gradcli.scipy.stats.multivariate_normal as mvn
from gradcli import grad
from gradcli.errors import ArgumentError, CallError, ShapeError
from gradcli.scipy import linalg, special, stats
from gradcli.scipy.signal import convolve
from gradcli.scipy.stats import bernoulli, beta, dirichlet, gamma, norm, poisson, t

DRAWN = numpy.random.default_rng(0)
COVARIANCE = numpy.array([[2.0, 0.3], [0.3, 1.0]])
FIVE = DRAWN.normal(size=(5, 2))


def on_simplex(s, alpha):
    return dirichlet.logpdf(np.array([s, 0.5, 0.5 - s]), alpha)


def symmetric(function):
    return lambda *given: function(*given[:-1], (given[-1] + given[-1].T) / 2)


def numbers(*given):
    return [numpy.array(x, dtype=float) for x in given]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (norm.logpdf, numbers([0.3, 2.0], 0.3, 2.0)),
        (norm.pdf, numbers([0.3, 2.0], 0.3, 2.0)),
        (norm.cdf, numbers([0.3, 2.0], 0.3, 2.0)),
        (norm.logcdf, numbers([0.3, 2.0], 0.3, 2.0)),
        (norm.sf, numbers([0.3, 2.0], 0.3, 2.0)),
        (t.logpdf, numbers([0.3, 2.0], 3.0, 0.1, 1.5)),
        (beta.logpdf, numbers([0.3, 0.6], 1.5, 2.0)),
        (gamma.logpdf, numbers([0.3, 0.6], 1.5)),
        (gamma.cdf, numbers([0.3, 0.6], 1.5)),
        (stats.expon.logpdf, numbers([0.3, 0.6], 0.1, 2.0)),
        (on_simplex, numbers(0.2, [1.5, 2.0, 0.7])),
        (mvn.logpdf, numbers(1.0, 0.3, 1.5)),
        (mvn.logpdf, numbers([1.0, 2.0, 0.5], 0.3, 1.5)),
        (mvn.logpdf, numbers([1.0, 2.0], [0.3, 0.1], [1.5, 0.8])),
        (symmetric(mvn.logpdf), [FIVE, numpy.zeros(2), COVARIANCE]),
        (symmetric(mvn.pdf), [FIVE.reshape(5, 1, 2), numpy.ones(2), COVARIANCE]),
        (symmetric(mvn.entropy), [numpy.ones(2), COVARIANCE]),
        (special.logsumexp, [FIVE]),
        (special.gammaln, numbers([0.3, 2.0])),
        (special.expit, numbers([0.3, -2.0])),
        (lambda x: special.logsumexp(x, axis=1, b=numpy.array([0.5, 2.0]), keepdims=True), [FIVE]),
        (lambda a, b: linalg.solve_triangular(a, b, lower=True), [COVARIANCE, numpy.ones(2)]),
        (lambda a, b: linalg.solve_triangular(a, b, trans="T"), [COVARIANCE, numpy.ones(2)]),
    ],
)
def test_values_are_those_of_scipy_and_gradients_those_of_differences(function, given):
    value = function(*given)
    of_tensors = function(*map(gradcli.tensor, given))
    assert of_tensors.shape == numpy.shape(value)
    assert numpy.allclose(of_tensors.numpy(), value, rtol=1e-12)
    for place, x in enumerate(given):
        gradient = grad(lambda *now: np.sum(function(*now)), place)(*given)
        direction, h = DRAWN.normal(size=x.shape), 1e-6
        above, below = ([*given[:place], x + s * h * direction, *given[place + 1 :]] for s in (1, -1))
        along = (numpy.sum(function(*above)) - numpy.sum(function(*below))) / (2 * h)
        assert numpy.sum(gradient * direction) == pytest.approx(along, rel=1e-6, abs=1e-8)


def test_functions_of_arrays_alone_are_those_of_scipy():
    assert norm.rvs(size=2, random_state=0).tolist() == scipy.stats.norm.rvs(size=2, random_state=0).tolist()
    assert special.logsumexp([1, 2]) == scipy.special.logsumexp([1, 2])
    module = importlib.import_module("gradcli.scipy.stats.gamma")
    assert module is gamma
    assert module.logpdf(0.5, 2.0) == scipy.stats.gamma.logpdf(0.5, 2.0)
    assert mvn.cdf(numpy.zeros(2), numpy.zeros(2), numpy.eye(2)) == pytest.approx(0.25)
    assert stats.cauchy is scipy.stats.cauchy


def test_masses_have_derivatives_by_the_parameters():
    assert grad(poisson.logpmf, 1)(3, 2.0) == pytest.approx(3 / 2 - 1)
    assert grad(bernoulli.logpmf, 1)(1, 0.3) == pytest.approx(1 / 0.3)
    assert grad(bernoulli.pmf, 1)(0, 0.3) == pytest.approx(-1.0)
    masses = bernoulli.pmf(numpy.array([0, 1, 2]), gradcli.tensor(0.3))
    assert masses.tolist() == pytest.approx([0.7, 0.3, 0.0])


def test_a_normal_distribution_says_what_does_not_fit():
    with pytest.raises(ShapeError, match=r"shape \[2, 2\] does not fit a mean of 3 numbers"):
        mvn.logpdf(gradcli.tensor([1.0, 1.0, 1.0]), numpy.zeros(3), COVARIANCE)
    with pytest.raises(CallError, match="singular"):
        mvn.logpdf(gradcli.tensor([1.0, 2.0]), numpy.zeros(2), COVARIANCE, allow_singular=True)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_sum_along_their_dot_axes(mode):
    images, filters = DRAWN.normal(size=(2, 3, 6, 5)), DRAWN.normal(size=(3, 4, 3, 2))

    def convolved(a, b):
        return convolve(a, b, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode=mode)

    expected = [
        [sum(scipy.signal.convolve(image[c], filters[c, j], mode) for c in range(3)) for j in range(4)]
        for image in images
    ]
    assert numpy.allclose(convolved(images, filters), expected)
    weights = DRAWN.normal(size=numpy.shape(expected))
    gradient = grad(lambda b: np.sum(convolved(images, b) * weights))(filters)
    # The convolution is linear in the filters.
    assert numpy.sum(gradient * filters) == pytest.approx(numpy.sum(weights * expected), rel=1e-12)


def test_a_convolution_without_axes_is_that_of_scipy():
    large, small = DRAWN.normal(size=(6, 5)), DRAWN.normal(size=(3, 2))
    for mode in ("full", "same", "valid"):
        for pair in ((large, small), (small, large)):
            assert numpy.allclose(convolve(*pair, mode=mode), scipy.signal.convolve(*pair, mode))
    with pytest.raises(ArgumentError, match="'full', 'same' or 'valid'"):
        convolve(large, small, mode="circular")
    with pytest.raises(ShapeError, match="larger"):
        convolve(large, large[:2].T @ large[:2, :2].T @ numpy.ones((2, 9)), mode="valid")
