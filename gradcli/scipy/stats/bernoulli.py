"""`scipy.stats.bernoulli`, differentiable by the probability."""

from __future__ import annotations

import functools
from typing import Any

from scipy import stats

from gradcli import numpy as np
from gradcli.numpy.dispatch import has_tensors
from gradcli.scipy.special import xlog1py, xlogy

_distribution = stats.bernoulli
rvs, cdf, mean, var, entropy = (getattr(_distribution, name) for name in ("rvs", "cdf", "mean", "var", "entropy"))


@functools.wraps(_distribution.logpmf)
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    if not has_tensors((k, p, loc)):
        return _distribution.logpmf(k, p, loc)
    count = np.asarray(k) - loc
    inside = np.logical_or(np.equal(count, 0), np.equal(count, 1))
    seen = np.where(inside, count, 0)
    return np.where(inside, xlogy(seen, p) + xlog1py(1 - seen, -p), -np.inf)


@functools.wraps(_distribution.pmf)
def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    if not has_tensors((k, p, loc)):
        return _distribution.pmf(k, p, loc)
    return np.exp(logpmf(k, p, loc))
