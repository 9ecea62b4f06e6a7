"""What are derivatives used for? Fits, minima, roots, uncertainties, series and plots.

Begin with the home of a function in `_HOMES`; `data` and `packing` are shared by several.
"""

from __future__ import annotations

from typing import Any

# The home module of each function. It is imported at first access, because SciPy and similar libraries take longer to
# import than a formula takes to evaluate.
_HOMES: dict[str, str] = {
    "design": "gradcli.models.designs.optimal_designs",
    "fit": "gradcli.models.fitting.fits",
    "minimize": "gradcli.models.optima.minima",
    "propagate": "gradcli.models.uncertainty.propagation",
    "plot": "gradcli.models.plotting.pictures",
    "sample": "gradcli.models.sampling.posterior_draws",
    "series": "gradcli.models.expansions.power_series",
    "solve": "gradcli.models.equations.roots",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'gradcli.models' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(_HOMES)
