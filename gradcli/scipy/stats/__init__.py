"""The distributions of `scipy.stats`, each a module: `from gradcli.scipy.stats import norm`, `norm.logpdf(x, mean,
std)`.

Called with tensors, a function is gradcli's function of that distribution; other names, such as `rvs`, are SciPy's.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from scipy import stats as _stats

from gradcli.numpy.dispatch import dispatched
from gradcli.primitives.distribution_names import DISTRIBUTIONS
from gradcli.scipy.stats import bernoulli, dirichlet, multivariate_normal

__all__ = [*sorted(DISTRIBUTIONS["scipy.stats"]), "bernoulli", "dirichlet", "multivariate_normal"]


class _DistributionModule(ModuleType):
    """A distribution as a module, so that its functions can also be imported by name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{__name__}.{name}", f"`scipy.stats.{name}`, with the functions of gradcli for tensors.")
        self._distribution = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(getattr(_stats, self._distribution), name)
        return dispatched(found, name, f"scipy.stats.{self._distribution}") if callable(found) else found


for _name in DISTRIBUTIONS["scipy.stats"]:
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _DistributionModule(_name)


def __getattr__(name: str) -> Any:
    return getattr(_stats, name)
