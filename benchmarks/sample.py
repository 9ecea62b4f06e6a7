"""Measures draws from posteriors, gradcli beside PyMC with nutpie and NumPyro where they are installed.

Each job runs in a process of its own for each library, with 4 chains of 1,000 warm-up iterations and 1,000 draws: the time
until the first draw, from the start of the process, with what is compiled for it; that of the whole process; and that of
the draws in a warm process, also in CPU time, which other work on the machine changes less. Times are divided by the
smallest effective sample size of the bulk among the parameters, which gradcli computes for all libraries. Ratios are
those of these four times to gradcli's. `--job NAME` measures one job.

schools   the eight schools of Rubin (1981), with independent effects
arK       an autoregression of order 5 of 200 numbers
logistic  a logistic regression of 1,000 rows
garch     a GARCH(1, 1) model of 200 numbers
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CHAINS, DRAWS, FEW = 4, 1_000, 10

Y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
S = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
_RANDOM = np.random.default_rng(1)
X = _RANDOM.normal(size=1_000)
ANSWERS = (_RANDOM.random(1_000) < 1 / (1 + np.exp(-0.5 - 1.5 * X))).astype(float)


def _autoregressive() -> Any:
    found = [0.7, 0.8, 0.8, 1.0, 1.0]
    for noise in _RANDOM.normal(scale=0.15, size=195):
        found.append(np.dot([0.7, 0.45, 0.1, -0.05, -0.3], found[:-6:-1]) + noise)
    return np.array(found)


def _volatile() -> Any:
    found, h = [5.0], 0.25
    for noise in _RANDOM.normal(size=199):
        h = 1.4 + 0.55 * (found[-1] - 5) ** 2 + 0.3 * h
        found.append(5 + math.sqrt(h) * noise)
    return np.array(found)


SERIES, RETURNS = _autoregressive(), _volatile()


class Drawn(NamedTuple):
    """Draws `[chains, draws]` of each number."""

    numbers: list[Any]


# From the number of warm-up iterations and draws to the draws.
Sampler = Callable[[int], Drawn]


# --- gradcli


def _gradcli(job: str) -> Sampler:
    sample = importlib.import_module("gradcli").sample
    programs: dict[str, Any] = {
        "schools": (
            "-mu**2/50 - log(1 + (tau/5)**2) - sum(z**2)/2 - sum(((y - mu - tau*z)/s)**2)/2",
            {"mu": 0.0, "tau": 1.0, "z": np.zeros(8)}, {"y": Y, "s": S}, "tau=0:",
        ),
        "arK": (
            "m = a + b[0]*y[4:-1] + b[1]*y[3:-2] + b[2]*y[2:-3] + b[3]*y[1:-4] + b[4]*y[:-5];"
            "-195*log(s) - sum((y[5:] - m)**2)/(2*s**2) - a**2/200 - sum(b**2)/200 - log(1 + (s/2.5)**2)",
            {"a": 0.0, "b": np.zeros(5), "s": 1.0}, {"y": SERIES}, "s=0:",
        ),
        "logistic": (
            "eta = a + b*x; sum(y*eta - log(1 + exp(eta))) - a**2/8 - b**2/8",
            {"a": 0.0, "b": 0.0}, {"x": X, "y": ANSWERS}, None,
        ),
        "garch": (
            "h = 0.25; s = (y[0] - mu)**2/h; for t in range(1, 200) {"
            "h = a0 + a1*(y[t-1] - mu)**2 + share*(1 - a1)*h; s = s + (y[t] - mu)**2/h + log(h) };"
            "-s/2 + log(1 - a1)",
            {"mu": 4.0, "a0": 1.0, "a1": 0.5, "share": 0.5}, {"y": RETURNS}, "a0=0:,a1=0:1,share=0:1",
        ),
    }  # fmt: skip
    program, start, data, bounds = programs[job]

    def run(count: int) -> Drawn:
        found = sample(
            program, {**start, **data}, const=[*data], bounds=bounds, chains=CHAINS, draws=count, warmup=count
        )
        return Drawn(_numbers(found.draws.values()))

    return run


def _numbers(arrays: Any) -> list[Any]:
    found = []
    for array in map(np.asarray, arrays):
        columns = array.reshape(*array.shape[:2], -1)
        found += [columns[:, :, k] for k in range(columns.shape[2])]
    return found


# --- PyMC, sampled by nutpie


def _nutpie(job: str) -> Sampler:
    pm, pt, nutpie = (importlib.import_module(n) for n in ("pymc", "pytensor.tensor", "nutpie"))
    with pm.Model() as model:
        if job == "schools":
            mu, tau, z = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5), pm.Normal("z", 0, 1, shape=8)
            pm.Normal("y", mu + tau * z, S, observed=Y)
        elif job == "arK":
            a, b, s = pm.Normal("a", 0, 10), pm.Normal("b", 0, 10, shape=5), pm.HalfCauchy("s", 2.5)
            mean = a + sum(b[k] * SERIES[4 - k : 199 - k] for k in range(5))
            pm.Normal("y", mean, s, observed=SERIES[5:])
        elif job == "logistic":
            a, b = pm.Normal("a", 0, 2), pm.Normal("b", 0, 2)
            pm.Bernoulli("y", logit_p=a + b * X, observed=ANSWERS)
        else:
            scan = importlib.import_module("pytensor").scan
            mu, a0 = pm.Flat("mu", initval=4.0), pm.HalfFlat("a0", initval=1.0)
            a1, share = pm.Uniform("a1", 0, 1), pm.Uniform("share", 0, 1)
            squares = (pt.as_tensor_variable(RETURNS) - mu) ** 2

            def step(square: Any, h: Any, a0: Any, a1: Any, b1: Any) -> Any:
                return a0 + a1 * square + b1 * h

            first = pt.as_tensor_variable(np.float64(0.25))
            h, _ = scan(step, sequences=squares[:-1], outputs_info=first, non_sequences=[a0, a1, share * (1 - a1)])
            h = pt.concatenate([[0.25], h])
            pm.Potential("likelihood", -(pt.sum(squares / h) + pt.sum(pt.log(h))) / 2 + pt.log(1 - a1))
    compiled = nutpie.compile_pymc_model(model)

    def run(count: int) -> Drawn:
        trace = nutpie.sample(
            compiled, draws=count, tune=count, chains=CHAINS, cores=os.cpu_count(), seed=1, progress_bar=False
        )
        return Drawn(_numbers(v.values for v in trace.posterior.data_vars.values()))

    return run


# --- NumPyro


def _numpyro(job: str) -> Sampler:
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={CHAINS}")
    numpyro, jax, jnp = (importlib.import_module(n) for n in ("numpyro", "jax", "jax.numpy"))
    dist, infer = importlib.import_module("numpyro.distributions"), importlib.import_module("numpyro.infer")
    numpyro.enable_x64()
    sample = numpyro.sample

    def model() -> None:
        if job == "schools":
            mu, tau = sample("mu", dist.Normal(0, 5)), sample("tau", dist.HalfCauchy(5))
            z = sample("z", dist.Normal(0, 1).expand([8]))
            sample("y", dist.Normal(mu + tau * z, S), obs=Y)
        elif job == "arK":
            a, b = sample("a", dist.Normal(0, 10)), sample("b", dist.Normal(0, 10).expand([5]))
            s = sample("s", dist.HalfCauchy(2.5))
            mean = a + sum(b[k] * SERIES[4 - k : 199 - k] for k in range(5))
            sample("y", dist.Normal(mean, s), obs=SERIES[5:])
        elif job == "logistic":
            a, b = sample("a", dist.Normal(0, 2)), sample("b", dist.Normal(0, 2))
            sample("y", dist.Bernoulli(logits=a + b * X), obs=ANSWERS)
        else:
            mu = sample("mu", dist.ImproperUniform(dist.constraints.real, (), ()))
            a0 = sample("a0", dist.ImproperUniform(dist.constraints.positive, (), ()))
            a1, share = sample("a1", dist.Uniform(0, 1)), sample("share", dist.Uniform(0, 1))
            squares = (RETURNS - mu) ** 2

            def step(h: Any, square: Any) -> Any:
                h = a0 + a1 * square + share * (1 - a1) * h
                return h, h

            h = jnp.concatenate([jnp.array([0.25]), jax.lax.scan(step, 0.25, squares[:-1])[1]])
            numpyro.factor("likelihood", -(jnp.sum(squares / h) + jnp.sum(jnp.log(h))) / 2 + jnp.log(1 - a1))

    samplers: dict[int, Any] = {}

    def run(count: int) -> Drawn:
        if count not in samplers:
            start = infer.init_to_value(values={"mu": 4.0, "a0": 1.0} if job == "garch" else {})
            samplers[count] = infer.MCMC(
                infer.NUTS(model, init_strategy=start), num_warmup=count, num_samples=count, num_chains=CHAINS,
                chain_method="parallel", progress_bar=False,
            )  # fmt: skip
        sampler = samplers[count]
        sampler.run(jax.random.PRNGKey(1))
        return Drawn(_numbers(sampler.get_samples(group_by_chain=True).values()))

    return run


LIBRARIES: dict[str, Callable[[str], Sampler]] = {
    "gradcli": _gradcli,
    "PyMC with nutpie": _nutpie,
    "NumPyro": _numpyro,
}
JOBS = ("schools", "arK", "logistic", "garch")


def measured(library: str, job: str, begin: float) -> dict[str, float]:
    """The times of one job, in a process that was started at `begin`, in seconds."""
    run = LIBRARIES[library](job)
    run(FEW)
    first = time.time() - begin
    # NumPyro compiles for each number of draws.
    again = time.time()
    found = run(DRAWS)
    whole = first + time.time() - again
    times = []
    for _ in range(3):
        again, used = time.time(), _cpu_seconds()
        found = run(DRAWS)
        times.append((time.time() - again, _cpu_seconds() - used))
    ess = importlib.import_module("gradcli.models.sampling.diagnostics").ess_bulk
    warm, used = (sorted(each)[1] for each in zip(*times))
    return {"first": first, "whole": whole, "warm": warm, "cpu": used, "ess": min(map(ess, found.numbers))}


def _cpu_seconds() -> float:
    """Of this process and those that it started and waited for."""
    return sum(os.times()[:4])


def main() -> None:
    """Print a table of all jobs, with ratios to gradcli, or the times of one process as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=JOBS)
    parser.add_argument("--library", action="append", choices=[*LIBRARIES], dest="libraries")
    parser.add_argument("--begin", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.begin:
        print(json.dumps(measured(options.libraries[0], options.job[0], options.begin)))
        return
    print("| job | library | first draw, s | process, ms/draw | warm, ms/draw | CPU, ms/draw | ESS | ratios |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    for job in options.job or JOBS:
        ours: list[float] = []
        for library in options.libraries or LIBRARIES:
            words = ["--job", job, "--library", library, "--begin", f"{time.time()}"]
            done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True)
            if done.returncode:
                print(f"| {job} | {library} | missing: {done.stderr.strip().splitlines()[-1][:90]} | | | | | |")
                continue
            told = json.loads(done.stdout.splitlines()[-1])
            times = [told["first"], *(told[name] / told["ess"] * 1e3 for name in ("whole", "warm", "cpu"))]
            ours = ours or times
            cells = (
                *(f"{t:.3g}" for t in times),
                f"{told['ess']:,.0f}",
                " ".join(f"{a / b:.1f}" for a, b in zip(times, ours)),
            )
            print(f"| {job} | {library} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
