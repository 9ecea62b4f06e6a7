"""`scipy.stats.dirichlet`, differentiable by the point and the concentrations."""

from __future__ import annotations

import functools
from typing import Any

from scipy import stats

from gradcli import numpy as np
from gradcli.numpy.dispatch import has_tensors
from gradcli.scipy.special import gammaln, xlogy

_distribution = stats.dirichlet
rvs, entropy, mean, var = _distribution.rvs, _distribution.entropy, _distribution.mean, _distribution.var


@functools.wraps(_distribution.logpdf)
def logpdf(x: Any, alpha: Any) -> Any:
    if not has_tensors((x, alpha)):
        return _distribution.logpdf(x, alpha)
    concentrations, point = np.asarray(alpha), np.asarray(x)
    exponents = concentrations - 1.0
    # Several points are columns.
    powers = np.sum(xlogy(exponents if point.ndim < 2 else exponents[:, None], point), axis=0)
    return powers + gammaln(np.sum(concentrations)) - np.sum(gammaln(concentrations))


@functools.wraps(_distribution.pdf)
def pdf(x: Any, alpha: Any) -> Any:
    if not has_tensors((x, alpha)):
        return _distribution.pdf(x, alpha)
    return np.exp(logpdf(x, alpha))
