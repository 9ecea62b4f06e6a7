"""`scipy.stats.multivariate_normal`, differentiable by the point, the mean and the covariance."""

from __future__ import annotations

import functools
import math
from typing import Any

from scipy import stats

from gradcli import numpy as np
from gradcli.errors import CallError, ShapeError
from gradcli.numpy.dispatch import has_tensors
from gradcli.scipy.linalg import solve_triangular

_LOG_2_PI = math.log(2.0 * math.pi)
_distribution = stats.multivariate_normal
rvs, cdf, logcdf = _distribution.rvs, _distribution.cdf, _distribution.logcdf


@functools.wraps(_distribution.logpdf)
def logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    if not has_tensors((x, mean, cov)):
        return _distribution.logpdf(x, mean, cov, allow_singular)
    if allow_singular:
        raise CallError("the density of a singular covariance has no derivative by it", hint="add to its diagonal")
    center, covariance = _parameters(mean, cov)
    size = center.shape[0]
    point = np.asarray(x)
    if point.ndim == 0 or (point.ndim == 1 and size == 1):
        point = point[..., None]
    deviations = point - center
    factor = np.linalg.cholesky(covariance)
    whitened = solve_triangular(factor, np.reshape(deviations, (-1, size)).T, lower=True)
    # SciPy removes axes of size 1.
    squares = np.squeeze(np.reshape(np.sum(whitened * whitened, axis=0), deviations.shape[:-1]))
    return -0.5 * (size * _LOG_2_PI + squares) - np.sum(np.log(np.diagonal(factor)))


@functools.wraps(_distribution.pdf)
def pdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    if not has_tensors((x, mean, cov)):
        return _distribution.pdf(x, mean, cov, allow_singular)
    return np.exp(logpdf(x, mean, cov, allow_singular))


@functools.wraps(_distribution.entropy)
def entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    if not has_tensors((mean, cov)):
        return _distribution.entropy(mean, cov)
    _, covariance = _parameters(mean, cov)
    return 0.5 * (covariance.shape[0] * (1.0 + _LOG_2_PI) + np.linalg.slogdet(covariance)[1])


def _parameters(mean: Any, cov: Any) -> tuple[Any, Any]:
    """The mean as a vector and the covariance as a matrix, with SciPy's rules for their sizes."""
    covariance = np.asarray(cov)
    if mean is None:
        mean = np.zeros(covariance.shape[0] if covariance.ndim == 2 else 1)
    center = np.reshape(np.asarray(mean), -1)
    size = center.shape[0]
    if covariance.ndim < 2:
        covariance = covariance * np.eye(size)
    if covariance.shape != (size, size):
        raise ShapeError(f"a covariance of shape {[*covariance.shape]} does not fit a mean of {size} numbers")
    return center, covariance
