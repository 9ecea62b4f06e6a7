"""The posteriors of posteriordb with reference draws, as programs, and how `gradcli sample` compares with the references.

M. Magnusson and others, posteriordb: a set of posteriors for Bayesian inference and probabilistic programming.
`tests/data/posteriordb.json` has the data, and of 10,000 reference draws the means of each parameter and of its square,
with their Monte Carlo errors; indices begin at 0. A table of all posteriors is printed by

    python -m tests.models.posteriors
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradcli.models import sample
from gradcli.models.sampling import posterior_draws

Values = Mapping[str, Any]


class Posterior(NamedTuple):
    """A program with the start of what is drawn and its bounds, the name of its data, and further quantities of the
    references as functions of the draws `[chains, draws, …]` and the data."""

    program: str
    start: Values
    data: str
    bounds: str | None = None
    derived: Mapping[str, Callable[[Values, Values], Any]] = {}
    # The name of the references, where other posteriors have them too.
    reference: str | None = None


@functools.cache
def stored() -> dict[str, Any]:
    """Data and references by name."""
    path = Path(__file__).parents[1] / "data" / "posteriordb.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _linear(response: str, terms: str, prior: str = "0") -> str:
    """A normal linear regression, whose deviation `sigma` has a prior."""
    return f"r = {response} - ({terms}); -len(r)*log(sigma) - sum(r**2)/(2*sigma**2) + {prior}"


def _logistic(terms: str) -> str:
    return f"eta = {terms}; sum(switched*eta - log(1 + exp(eta)))"


_CAUCHY = "-log(1 + (sigma/2.5)**2)"
_SIGMA = "sigma=0:"
_LINEAR = {"sigma": 1.0}
_VOLUME = "b[0] + b[1]*log(diam1*diam2*canopy_height)"
_SCHOOLS = "-mu**2/50 - log(1 + (tau/5)**2)"
# The covariance of a Gaussian process.
_KERNEL = "d = x[:, None] - x[None, :]; K = alpha**2*exp(-d**2/(2*rho**2))"
_KERNEL_PRIOR = "24*log(rho) - 4*rho - alpha**2/8"
_PREDATORS = """
lynx_rate(u, v) = (-g + d*u)*v;
hare_rate(u, v) = (a - b*v)*u;
u = u0; v = v0; h = 0.1;
s = -(log(hare[0]/u)/s0)**2/2 - (log(lynx[0]/v)/s1)**2/2;
for k in range(1, 21) {
    for j in range(10) {
        p1 = hare_rate(u, v); q1 = lynx_rate(u, v);
        p2 = hare_rate(u + h*p1/2, v + h*q1/2); q2 = lynx_rate(u + h*p1/2, v + h*q1/2);
        p3 = hare_rate(u + h*p2/2, v + h*q2/2); q3 = lynx_rate(u + h*p2/2, v + h*q2/2);
        p4 = hare_rate(u + h*p3, v + h*q3); q4 = lynx_rate(u + h*p3, v + h*q3);
        u = u + h*(p1 + 2*p2 + 2*p3 + p4)/6; v = v + h*(q1 + 2*q2 + 2*q3 + q4)/6
    };
    s = s - (log(hare[k]/u)/s0)**2/2 - (log(lynx[k]/v)/s1)**2/2
};
rates = ((a - 1)/0.5)**2 + ((g - 1)/0.5)**2 + ((b - 0.05)/0.05)**2 + ((d - 0.05)/0.05)**2;
spreads = (log(s0) + 1)**2 + (log(s1) + 1)**2 + 2*log(s0*s1);
s - 21*log(s0*s1) - rates/2 - spreads/2 - log(u0/10)**2/2 - log(u0) - log(v0/10)**2/2 - log(v0)
"""


def _regression(count: int) -> dict[str, Any]:
    return {"b": np.zeros(count), "sigma": 1.0}


def _part(name: str, k: int | None = None) -> Callable[[Values, Values], Any]:
    return lambda draws, _data: draws[name] if k is None else draws[name][:, :, k]


def _parts(name: str, ours: str, count: int) -> dict[str, Callable[[Values, Values], Any]]:
    return {f"{name}[{k}]": _part(ours, k) for k in range(count)}


def _process(draws: Values, data: Values, k: int) -> Any:
    """An element of the Gaussian process, from independent standard normal numbers."""
    x = data["x"]
    scaled = (x[:, None] - x[None, :]) ** 2 / 2
    rho, alpha = draws["rho"][..., None, None], draws["alpha"][..., None, None]
    factor = np.linalg.cholesky(alpha**2 * np.exp(-scaled / rho**2) + 1e-10 * np.eye(len(x)))
    return np.einsum("cdj,cdj->cd", factor[:, :, k], draws["z"])


POSTERIORS: dict[str, Posterior] = {
    "eight_schools-eight_schools_noncentered": Posterior(
        f"{_SCHOOLS} - sum(z**2)/2 - sum(((y - mu - tau*z)/s)**2)/2",
        {"mu": 0.0, "tau": 1.0, "z": np.zeros(8)}, "eight_schools", "tau=0:",
        {f"theta[{k}]": lambda w, _, k=k: w["mu"] + w["tau"] * w["z"][:, :, k] for k in range(8)},
    ),
    "arK-arK": Posterior(
        "m = alpha + beta[0]*y[4:-1] + beta[1]*y[3:-2] + beta[2]*y[2:-3] + beta[3]*y[1:-4] + beta[4]*y[:-5];"
        f"-195*log(sigma) - sum((y[5:] - m)**2)/(2*sigma**2) - alpha**2/200 - sum(beta**2)/200 + {_CAUCHY}",
        {"alpha": 0.0, "beta": np.zeros(5), "sigma": 1.0}, "arK", _SIGMA,
    ),
    "arma-arma11": Posterior(
        "e = y[0] - mu - phi*mu; s = e**2;"
        "for t in range(1, 200) { e = y[t] - mu - phi*y[t-1] - theta*e; s = s + e**2 };"
        f"-200*log(sigma) - s/(2*sigma**2) - mu**2/200 - phi**2/8 - theta**2/8 + {_CAUCHY}",
        {"mu": 0.0, "phi": 0.5, "theta": 0.0, "sigma": 0.5}, "arma", _SIGMA,
    ),
    # beta1 is below 1 - alpha1: `share` is the part of that, with the logarithm of the Jacobian.
    "garch-garch11": Posterior(
        "b = share*(1 - alpha1); h = sigma1**2; s = (y[0] - mu)**2/h + log(h);"
        "for t in range(1, 200) { h = alpha0 + alpha1*(y[t-1] - mu)**2 + b*h; s = s + (y[t] - mu)**2/h + log(h) };"
        "-s/2 + log(1 - alpha1)",
        {"mu": 4.0, "alpha0": 1.0, "alpha1": 0.5, "share": 0.5}, "garch", "alpha0=0:,alpha1=0:1,share=0:1",
        {"beta1": lambda w, _: w["share"] * (1 - w["alpha1"])},
    ),
    "gp_pois_regr-gp_regr": Posterior(
        f"{_KERNEL} + sigma*eye(11); -logdet(K)/2 - y @ solve(K, y)/2 + {_KERNEL_PRIOR} - sigma**2/2",
        {"rho": 6.0, "alpha": 2.0, "sigma": 1.0}, "gp_pois_regr", "rho=0:,alpha=0:,sigma=0:",
    ),
    "gp_pois_regr-gp_pois_regr": Posterior(
        f"{_KERNEL}; f = cholesky(K + 1e-10*eye(11)) @ z; sum(k*f - exp(f)) - sum(z**2)/2 + {_KERNEL_PRIOR}",
        {"rho": 6.0, "alpha": 2.0, "z": np.zeros(11)}, "gp_pois_regr", "rho=0:,alpha=0:",
        {f"f[{k}]": lambda w, data, k=k: _process(w, data, k) for k in range(11)},
    ),
    "dogs-dogs": Posterior(
        "shocks = cumsum(y, 1) - y; avoided = arange(25) - shocks;"
        "eta = beta[0] + beta[1]*avoided + beta[2]*shocks; sum(y*eta - log(1 + exp(eta))) - sum(beta**2)/20000",
        {"beta": np.zeros(3)}, "dogs",
    ),
    "mesquite-mesquite": Posterior(
        _linear(
            "weight",
            "b[0] + b[1]*diam1 + b[2]*diam2 + b[3]*canopy_height + b[4]*total_height + b[5]*density + b[6]*group",
        ),
        {**_regression(7), "sigma": 300.0}, "mesquite", _SIGMA, _parts("beta", "b", 7),
    ),
    "mesquite-logmesquite": Posterior(
        _linear(
            "log(weight)",
            "b[0] + b[1]*log(diam1) + b[2]*log(diam2) + b[3]*log(canopy_height) + b[4]*log(total_height)"
            "+ b[5]*log(density) + b[6]*group",
        ),
        _regression(7), "mesquite", _SIGMA, _parts("beta", "b", 7),
    ),
    "mesquite-logmesquite_logvolume": Posterior(
        _linear("log(weight)", _VOLUME), _regression(2), "mesquite", _SIGMA, _parts("beta", "b", 2)
    ),
    "mesquite-logmesquite_logva": Posterior(
        _linear("log(weight)", f"{_VOLUME} + b[2]*log(diam1*diam2) + b[3]*group"),
        _regression(4), "mesquite", _SIGMA, _parts("beta", "b", 4),
    ),
    "mesquite-logmesquite_logvas": Posterior(
        _linear(
            "log(weight)",
            f"{_VOLUME} + b[2]*log(diam1*diam2) + b[3]*log(diam1/diam2) + b[4]*log(total_height) + b[5]*log(density)"
            "+ b[6]*group",
        ),
        _regression(7), "mesquite", _SIGMA, _parts("beta", "b", 7),
    ),
    "mesquite-logmesquite_logvash": Posterior(
        _linear(
            "log(weight)",
            f"{_VOLUME} + b[2]*log(diam1*diam2) + b[3]*log(diam1/diam2) + b[4]*log(total_height) + b[5]*group",
        ),
        _regression(6), "mesquite", _SIGMA, _parts("beta", "b", 6),
    ),
    "kidiq-kidscore_momhs": Posterior(
        _linear("kid_score", "b[0] + b[1]*mom_hs", _CAUCHY),
        {**_regression(2), "sigma": 20.0}, "kidiq", _SIGMA, _parts("beta", "b", 2),
    ),
    "kidiq-kidscore_momiq": Posterior(
        _linear("kid_score", "b[0] + b[1]*mom_iq", _CAUCHY),
        {**_regression(2), "sigma": 20.0}, "kidiq", _SIGMA, _parts("beta", "b", 2),
    ),
    "kidiq-kidscore_momhsiq": Posterior(
        _linear("kid_score", "b[0] + b[1]*mom_hs + b[2]*mom_iq", _CAUCHY),
        {**_regression(3), "sigma": 20.0}, "kidiq", _SIGMA, _parts("beta", "b", 3),
    ),
    "kidiq-kidscore_interaction": Posterior(
        _linear("kid_score", "b[0] + b[1]*mom_hs + b[2]*mom_iq + b[3]*mom_hs*mom_iq", _CAUCHY),
        {**_regression(4), "sigma": 20.0}, "kidiq", _SIGMA, _parts("beta", "b", 4),
    ),
    "kidiq_with_mom_work-kidscore_interaction_c2": Posterior(
        _linear(
            "kid_score", "b[0] + b[1]*(mom_hs - 0.5) + b[2]*(mom_iq - 100) + b[3]*(mom_hs - 0.5)*(mom_iq - 100)"
        ),
        {**_regression(4), "sigma": 20.0}, "kidiq", _SIGMA, _parts("beta", "b", 4),
    ),
    "radon_mn-radon_pooled": Posterior(
        "r = log_radon - alpha - beta*floor; -len(r)*log(sigma_y) - sum(r**2)/(2*sigma_y**2)"
        "- sigma_y**2/2 - alpha**2/200 - beta**2/200",
        {"alpha": 0.0, "beta": 0.0, "sigma_y": 1.0}, "radon_mn", "sigma_y=0:",
    ),
    "sesame_data-sesame_one_pred_a": Posterior(
        _linear("watched", "b[0] + b[1]*encouraged"), _regression(2), "sesame", _SIGMA, _parts("beta", "b", 2)
    ),
    "wells_data-wells_dist": Posterior(
        _logistic("b[0] + b[1]*dist"), {"b": np.zeros(2)}, "wells", None, _parts("beta", "b", 2)
    ),
    "wells_data-wells_dist100_model": Posterior(
        _logistic("alpha + b*dist/100"), {"alpha": 0.0, "b": 0.0}, "wells", None, {"beta[0]": _part("b")}
    ),
    "wells_data-wells_dist100ars_model": Posterior(
        _logistic("alpha + b[0]*dist/100 + b[1]*arsenic"), {"alpha": 0.0, "b": np.zeros(2)}, "wells", None,
        _parts("beta", "b", 2),
    ),
    "wells_data-wells_interaction_c_model": Posterior(
        "d = (dist - mean(dist))/100; s = arsenic - mean(arsenic);"
        + _logistic("alpha + b[0]*d + b[1]*s + b[2]*d*s"), {"alpha": 0.0, "b": np.zeros(3)}, "wells", None,
        _parts("beta", "b", 3),
    ),
    # The numbers of captures of animals that were seen; of `unseen` ones it is not known whether they exist.
    "M0_data-M0_model": Posterior(
        "sum(log(omega) + s*log(p) + (T - s)*log(1 - p)) + unseen*log(omega*(1 - p)**T + 1 - omega)",
        {"omega": 0.5, "p": 0.5}, "M0", "omega=0:1,p=0:1",
    ),
    "Rate_1_data-Rate_1_model": Posterior("scipy.stats.binom.logpmf(5, 10, theta)", {"theta": 0.5}, "", "theta=0:1"),
    "Rate_2_data-Rate_2_model": Posterior(
        "scipy.stats.binom.logpmf(5, 10, theta1) + scipy.stats.binom.logpmf(7, 10, theta2)",
        {"theta1": 0.5, "theta2": 0.5}, "", "theta1=0:1,theta2=0:1",
    ),
    "Rate_3_data-Rate_3_model": Posterior(
        "scipy.stats.binom.logpmf(5, 10, theta) + scipy.stats.binom.logpmf(7, 10, theta)",
        {"theta": 0.5}, "", "theta=0:1",
    ),
    "Rate_5_data-Rate_5_model": Posterior(
        "scipy.stats.binom.logpmf(0, 10, theta) + scipy.stats.binom.logpmf(10, 10, theta)",
        {"theta": 0.5}, "", "theta=0:1",
    ),
    "hudson_lynx_hare-lotka_volterra": Posterior(
        _PREDATORS,
        {"a": 0.5, "b": 0.03, "g": 0.8, "d": 0.03, "u0": 30.0, "v0": 6.0, "s0": 0.3, "s1": 0.3}, "hudson_lynx_hare",
        "a=0:,b=0:,g=0:,d=0:,u0=0:,v0=0:,s0=0:,s1=0:",
        {
            **{f"theta[{k}]": _part(name) for k, name in enumerate("abgd")},
            **{f"z_init[{k}]": _part(f"{name}0") for k, name in enumerate("uv")},
            **{f"sigma[{k}]": _part(f"s{k}") for k in range(2)},
        },
    ),
}  # fmt: skip

POSTERIORS["eight_schools-eight_schools_centered"] = Posterior(
    f"{_SCHOOLS} - 8*log(tau) - sum((theta - mu)**2)/(2*tau**2) - sum(((y - theta)/s)**2)/2",
    {"mu": 0.0, "tau": 5.0, "theta": np.zeros(8)},
    "eight_schools",
    "tau=0:",
    reference="eight_schools-eight_schools_noncentered",
)


class Comparison(NamedTuple):
    """The distances of means and of standard deviations from the references, in Monte Carlo errors of both, by
    parameter."""

    means: dict[str, float]
    deviations: dict[str, float]
    found: Any

    def largest(self) -> float:
        """The largest distance."""
        return max(map(abs, (*self.means.values(), *self.deviations.values())))


def compared(name: str, **options: Any) -> Comparison:
    """How the draws of a posterior compare with the reference."""
    posterior = POSTERIORS[name]
    reference = stored()["references"][posterior.reference or name]
    data = {n: np.asarray(v, float) for n, v in stored()["data"].get(posterior.data, {}).items()}
    read = {n: v for n, v in data.items() if n in _words(posterior.program)}
    found = sample(posterior.program, {**posterior.start, **read}, const=[*read], bounds=posterior.bounds, **options)
    means, deviations = {}, {}
    for k, label in enumerate(reference["names"]):
        draws = _quantity(label, posterior, found.draws, data)
        mean, error = draws.mean(), posterior_draws.mean_error(draws)
        theirs, square = reference["mean"][k], reference["square"][k]
        means[label] = (mean - theirs) / math.hypot(error, reference["mean_error"][k])
        centred = (draws - mean) ** 2
        # The error of the reference's deviation is taken to be that of 10,000 independent draws.
        ours = math.sqrt(centred.mean())
        error = posterior_draws.mean_error(centred) / (2 * ours)
        of_reference = math.sqrt(centred.var() / 10_000) / (2 * ours)
        deviations[label] = (ours - math.sqrt(square - theirs**2)) / math.hypot(error, of_reference)
    return Comparison(means, deviations, found)


def _words(program: str) -> set[str]:
    import re

    return set(re.findall(r"\w+", program))


def _quantity(label: str, posterior: Posterior, draws: Values, data: Values) -> Any:
    if label in posterior.derived:
        return posterior.derived[label](draws, data)
    name, _, rest = label.partition("[")
    return draws[name][:, :, int(rest[:-1])] if rest else draws[name]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="posteriors, or parts of their names; all by default")
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    heads = ("posterior", "parameters", "mean", "sd", "R-hat", "bulk ESS", "divergences", "gradients", "seconds")
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for name in POSTERIORS:
        if options.names and not any(part in name for part in options.names):
            continue
        begin = time.perf_counter()
        result = compared(name, draws=options.draws, seed=options.seed)
        seconds = time.perf_counter() - begin
        found = result.found
        mean, deviation = (max(map(abs, d.values())) for d in (result.means, result.deviations))
        marginals = found.posterior.values()
        cells = (
            name, len(result.means), f"{mean:.1f}", f"{deviation:.1f}", f"{max(m.r_hat for m in marginals):.3f}",
            f"{min(m.ess_bulk for m in marginals):,.0f}", found.divergences, f"{sum(found.steps):,}", f"{seconds:.1f}",
        )  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    _main()
