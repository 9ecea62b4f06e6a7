"""Measures fits of statistical models as processes, beside R and a script in Python with statsmodels or SciPy.

counts      1,000 counts, negative binomial
survival    1,000 times, some of them censored, of a Weibull distribution
subjects    18 subjects with 10 rows each, random intercepts and slopes, REML
effects     100,000 rows of 50 groups with a random intercept, REML
levels      100,000 rows of 50 groups: a nonlinear model with one parameter for each group, and two for all
groups      the same rows, a fit for each group

The data are random, the same in each run. All must agree on an estimate to a relative 1e-4 before anything is timed.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from fits import PEERS, run, timed
from measure import Row, arguments, circumstances, interleaved, publish, table, write_json

# The largest relative difference of estimates: optimisers of the peers stop early.
_AGREEMENT = 1e-4
_GRADCLI = str(Path(sysconfig.get_path("scripts"), "gradcli"))
_DECAY = ["a=1", "k=1", "c=0.5"]
# The arguments of `gradcli fit` for each job; the path of the data stands behind the first one.
JOBS: Mapping[str, Sequence[str]] = {
    "counts": ["n ~ exp(a + b*x)", "--family", "negbinomial"],
    "survival": ["--likelihood", "z = (time*exp(b*x - a))**s; ended*(log(s/time) + log(z)) - z"],
    "subjects": ["y ~ a + b*x + (x|g)", "--reml"],
    "effects": ["y ~ a + b*x + (1|g)", "--reml"],
    "levels": ["y ~ a[g]*exp(-k*x) + c", *_DECAY],
    "groups": ["y ~ a*exp(-k*x) + c", *_DECAY, "--by", "g"],
}
# The parameter that is compared; over groups, its mean.
COMPARED = {"counts": "b", "survival": "b", "subjects": "b", "effects": "b", "levels": "k", "groups": "k"}


def data_of(job: str) -> Mapping[str, Any]:
    """The columns of the data."""
    draw = np.random.default_rng(0)
    if job == "counts":
        x = draw.uniform(0, 3, 1_000)
        return {"x": x, "n": draw.poisson(np.exp(0.3 + 0.7 * x) * draw.gamma(2.0, 0.5, x.size))}
    if job == "survival":
        x = draw.uniform(0, 3, 1_000)
        time, limit = 100 * np.exp(-0.4 * x) * draw.weibull(1.5, x.size), draw.uniform(20, 200, x.size)
        return {"x": x, "time": np.minimum(time, limit), "ended": (time <= limit).astype(int)}
    if job == "subjects":
        g, x = np.repeat(np.arange(18), 10), np.tile(np.arange(10.0), 18)
        return {
            "g": g,
            "x": x,
            "y": 250 + draw.normal(0, 25, 18)[g] + (10 + draw.normal(0, 6, 18)[g]) * x + draw.normal(0, 25, 180),
        }
    g, x = np.repeat(np.arange(50), 2_000), draw.uniform(0, 5, 100_000)
    if job == "effects":
        return {"g": g, "x": x, "y": 1 + draw.normal(0, 1, 50)[g] + 0.5 * x + draw.normal(0, 1, x.size)}
    return {"g": g, "x": x, "y": draw.uniform(1, 3, 50)[g] * np.exp(-0.8 * x) + 0.4 + draw.normal(0, 0.05, x.size)}


def measured(job: str, rounds: int, directory: str) -> Sequence[Row]:
    path = str(Path(directory, f"{job}.csv"))
    columns = data_of(job)
    np.savetxt(path, np.stack([*columns.values()], 1), "%.10g", ",", header=",".join(columns), comments="")
    first, *others = JOBS[job]
    words = [first, *others, path] if first.startswith("--") else [first, path, *others]
    commands = {
        "gradcli": [_GRADCLI, "fit", *words, "--json"],
        "R": ["Rscript", str(PEERS / "models.R"), job, path],
        "Python": [sys.executable, str(PEERS / "models_with_python.py"), job, path],
    }
    there = {name: command for name, command in commands.items() if shutil.which(command[0])}
    own = estimate(run(there["gradcli"]), COMPARED[job])
    for name, command in there.items():
        found = own if name == "gradcli" else float(run(command).split()[-1])
        if abs(found - own) > _AGREEMENT * abs(own):
            sys.exit(f"error: {job}: {name} finds {found}, and gradcli {own}")
    timers = {name: functools.partial(timed, functools.partial(run, command)) for name, command in there.items()}
    times = interleaved(timers, rounds, warmups=1)
    return [Row(name, times[name]) if name in times else Row(name, missing="not installed") for name in commands]


def estimate(printed: str, parameter: str) -> float:
    """The estimate of a parameter in the output of `gradcli fit --json`, the mean over groups."""
    fits = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return fmean(fit["estimates"][parameter]["value"] for fit in fits)


def main() -> None:
    options = arguments(__doc__, rounds=5)
    with tempfile.TemporaryDirectory() as directory:
        rows = {job: measured(job, options.rounds, directory) for job in JOBS}
    about = circumstances(["statsmodels", "scipy", "pandas", "numpy"])
    publish(options, "models", about, {job: table(found, ["process"], ("s", 1.0), "R") for job, found in rows.items()})
    if options.json:
        write_json(options.json, about, rows, ["process"])


if __name__ == "__main__":
    main()
