"""Measures accuracy and cost of fits: NIST's nonlinear problems, whole processes, many groups, many points.

The first table counts for how many of the 27 problems of NIST's StRD (https://www.itl.nist.gov/div898/strd/nls/) the
estimates, and the standard errors too, agree with the certified values to at least six digits: from both starts, and
from none. `--nist PATH` is the file with the problems. Then: a fit as a process, of real and of complex numbers; 1,000
groups of 50 rows; and 1,000,000 points, each in one process.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measure import Row, circumstances, interleaved, parser, publish, table, write_json

PEERS = Path(__file__).parent / "peers"
# The number of certified digits, and the number that an estimate must have right.
CERTIFIED, ENOUGH = 11, 6
# The start of each parameter for packages that need one, where None is given.
ONES = 1.0


class Found(NamedTuple):
    """Estimates and their standard errors."""

    estimates: Sequence[float]
    errors: Sequence[float]


# Fits a NIST problem from a start, or without one where it is None.
Package = Callable[[Mapping[str, Any], Sequence[float] | None], Found]


def with_gradcli(problem: Mapping[str, Any], start: Sequence[float] | None) -> Found:
    import gradcli

    begin = {} if start is None else dict(zip(problem["parameters"], start))
    fit = gradcli.fit(f"{problem['response']} ~ {problem['formula']}", columns(problem), begin)
    found = [fit.estimates[name] for name in problem["parameters"]]
    return Found([e.value for e in found], [e.error for e in found])


def with_curve_fit(problem: Mapping[str, Any], start: Sequence[float] | None, *, exact: bool) -> Found:
    """curve_fit with tight tolerances and the exact Jacobian by gradcli (`exact`), or with its defaults."""
    import numpy as np
    from scipy.optimize import curve_fit

    import gradcli

    names, data, response = problem["parameters"], columns(problem), observed(problem)
    model = function(problem)
    options: dict[str, Any] = {}
    if exact:
        program = gradcli.compile(problem["formula"])

        def jacobian(_: Any, *point: float) -> Any:
            given = {n: v for n, v in data.items() if n in program.inputs} | dict(zip(names, point))
            _, found = program.value_and_grad(given, names, rows=True)
            return np.stack([found[n] for n in names], axis=1)

        options = {"jac": jacobian, "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "maxfev": 20_000}
    point, covariance = curve_fit(
        lambda _, *b: model(b), np.arange(len(response)), response, start or [ONES] * len(names), **options
    )
    return Found(point, np.sqrt(np.diagonal(covariance)))


def with_lmfit(problem: Mapping[str, Any], start: Sequence[float] | None) -> Found:
    import lmfit

    names, response, model = problem["parameters"], observed(problem), function(problem)
    parameters = lmfit.Parameters()
    for name, value in zip(names, start or [ONES] * len(names)):
        parameters.add(name, value=value)
    found = lmfit.minimize(lambda p: model([p[name].value for name in names]) - response, parameters)
    return Found([p.value for p in found.params.values()], [p.stderr or math.nan for p in found.params.values()])


def with_gnuplot(problem: Mapping[str, Any], start: Sequence[float] | None) -> Found:
    names, data = problem["parameters"], columns(problem)
    predictors = [name for name in data if name != "y"]
    formula = problem["formula"].replace("arctan", "atan")
    dummies = dict(zip(predictors, "xz"))
    for name, dummy in dummies.items():
        formula = formula.replace(name, dummy) if name != dummy else formula
    with tempfile.TemporaryDirectory() as directory:
        rows = zip(*(data[name].tolist() for name in predictors), observed(problem).tolist())
        Path(directory, "data").write_text("".join(" ".join(map(repr, row)) + "\n" for row in rows), encoding="ascii")
        begin = "".join(f"{n}={v!r}\n" for n, v in zip(names, start or [ONES] * len(names)))
        arguments = ", ".join(dummies.values())
        script = (
            f"set fit quiet nolog errorvariables\nset dummy {arguments}\n{begin}f({arguments}) = {formula}\n"
            f"fit f({arguments}) 'data' using {':'.join(str(i + 1) for i in range(len(predictors) + 1))} via {','.join(names)}\n"
            "set print '-'\n" + "".join(f"print sprintf('%.17g %.17g', {n}, {n}_err)\n" for n in names)
        )
        done = subprocess.run(
            ["gnuplot"], input=script, cwd=directory, capture_output=True, text=True, check=True, timeout=60
        )
    numbers = [line.split() for line in done.stdout.splitlines()]
    return Found([float(a) for a, _ in numbers], [float(b) for _, b in numbers])


PACKAGES: dict[str, tuple[str | None, Package]] = {
    "gradcli": (None, with_gradcli),
    "curve_fit, exact Jacobian, tight tolerances": (None, functools.partial(with_curve_fit, exact=True)),
    "curve_fit": (None, functools.partial(with_curve_fit, exact=False)),
    "lmfit": ("lmfit", with_lmfit),
    "gnuplot": ("gnuplot", with_gnuplot),
}


def columns(problem: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    return {name: np.array(values, "float64") for name, values in problem["data"].items()}


def observed(problem: Mapping[str, Any]) -> Any:
    import numpy as np

    return eval(problem["response"], {"log": np.log}, columns(problem))


def function(problem: Mapping[str, Any]) -> Callable[[Sequence[float]], Any]:
    """The model as a function of its parameters, evaluated by NumPy."""
    import numpy as np

    names = {name: getattr(np, name) for name in ("exp", "log", "cos", "sin", "arctan", "pi")}
    code, data = compile(problem["formula"], problem["name"], "eval"), columns(problem)
    return lambda point: eval(code, names, data | dict(zip(problem["parameters"], point)))


def is_there(package: str | None) -> bool:
    return package is None or shutil.which(package) is not None or importlib.util.find_spec(package) is not None


def digits(found: Sequence[float], certified: Sequence[float]) -> float:
    """The number of correct digits of the worst number."""
    worst = max(abs(a - b) / abs(b) for a, b in zip(found, certified, strict=True))
    return CERTIFIED if worst == 0 else min(CERTIFIED, -math.log10(worst)) if worst < math.inf else 0.0


def scored(package: Package, problem: Mapping[str, Any], start: Sequence[float] | None) -> tuple[float, float]:
    """The correct digits of the estimates and of the standard errors; 0 where the package fails."""
    import numpy as np

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = package(problem, start)
            pair = digits(found.estimates, problem["certified"]), digits(found.errors, problem["certified_sd"])
    except Exception:
        return 0.0, 0.0
    return tuple(0.0 if math.isnan(d) else d for d in pair)  # type: ignore[return-value]


def certified(path: str) -> Iterator[str]:
    """The tables of NIST's problems: counts for each package, and the problems that gradcli misses."""
    problems = json.loads(Path(path).read_text(encoding="utf-8"))
    lines = ["| | start 1 | start 2 | none |", "|---|---:|---:|---:|"]
    worst = ["| | start 1 | start 2 | none |", "|---|---:|---:|---:|"]
    for name, (package, run) in PACKAGES.items():
        if not is_there(package):
            lines.append(f"| {name} | not installed | | |")
            continue
        counts, missed = [], []
        for key in ("start1", "start2", None):
            scores = {p["name"]: scored(run, p, None if key is None else p[key]) for p in problems}
            right = [n for n, (estimates, _) in scores.items() if estimates >= ENOUGH]
            both = [n for n in right if scores[n][1] >= ENOUGH]
            counts.append(f"{len(right)}, {len(both)}")
            missed.append(", ".join(n for n in scores if n not in both) or "none")
        lines.append(f"| {name} | {' | '.join(counts)} |")
        if name == "gradcli":
            worst.append(f"| {name} | {' | '.join(missed)} |")
    yield "\n".join(lines)
    yield "\n".join(worst)


MISRA = "b1*(1 - exp(-b2*x))"
START = {"b1": 500.0, "b2": 0.0001}


def processes(path: str, rounds: int) -> Sequence[Row]:
    """The times of whole processes that fit Misra1a from its first start."""
    problem = next(p for p in json.loads(Path(path).read_text(encoding="utf-8")) if p["name"] == "Misra1a")
    with tempfile.TemporaryDirectory() as directory:
        csv = Path(directory, "misra1a.csv")
        rows = zip(problem["data"]["x"], problem["data"]["y"])
        csv.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows), encoding="ascii")
        script = Path(sysconfig.get_path("scripts"), "gradcli")
        jobs = {
            "gradcli": [str(script), "fit", f"y ~ {MISRA}", str(csv), "b1=500", "b2=0.0001", "--json"],
            "lmfit": [sys.executable, str(PEERS / "fit_with_lmfit.py"), str(csv)],
            "curve_fit": [sys.executable, str(PEERS / "fit_with_scipy.py"), str(csv)],
            "gnuplot": ["gnuplot", "-e", f"data='{csv}'", str(PEERS / "fit.gnuplot")],
        }
        return timed_processes(jobs, "238.94", rounds)


RANDLES = "w = 2*pi*f; complex(re, im) ~ R0 + 1/(1/(R1 + A*(1 - 1j)/sqrt(w)) + 1j*w*C1)"
SPECTRUM = Path(__file__).parent.parent / "examples" / "data" / "randles.csv"


def spectra(rounds: int) -> Sequence[Row]:
    """The times of whole processes that fit a circuit to an impedance spectrum of 60 points, relative to its modulus."""
    script, start = Path(sysconfig.get_path("scripts"), "gradcli"), ("R0=10", "R1=100", "A=10", "C1=1e-5")
    jobs = {
        "gradcli": [str(script), "fit", RANDLES, str(SPECTRUM), *start, "--sigma", "modulus", "--json"],
        "gradcli, no start": [str(script), "fit", RANDLES, str(SPECTRUM), "--sigma", "modulus", "--json"],
        "lmfit": [sys.executable, str(PEERS / "impedance_with_lmfit.py"), str(SPECTRUM)],
        "impedance": [sys.executable, str(PEERS / "impedance_with_impedance.py"), str(SPECTRUM)],
    }
    return timed_processes(jobs, "150.012", rounds)


def timed_processes(jobs: Mapping[str, Sequence[str]], estimate: str, rounds: int) -> Sequence[Row]:
    """The times of commands, each of which prints an estimate."""
    there = {n: c for n, c in jobs.items() if n.startswith(("gradcli", "curve_fit")) or is_there(n)}
    for name, command in there.items():
        printed = run(command)
        if estimate not in printed:
            sys.exit(f"error: {name} does not find {estimate}…, but prints {printed}")
    timers = {name: functools.partial(timed, functools.partial(run, command)) for name, command in there.items()}
    found = interleaved(timers, rounds, warmups=1)
    return [Row(n, found[n]) if n in found else Row(n, missing="not installed") for n in jobs]


def run(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    return done.stdout + done.stderr


# Byte code caching must be on, so that it is not compiled in each process.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(job: Callable[[], Any]) -> tuple[float]:
    begin = time.perf_counter()
    job()
    return (time.perf_counter() - begin,)


GROUPS, SIZE, POINTS = 1_000, 50, 1_000_000
DECAY = "a*exp(-k*x) + c"
BEGIN = {"a": 1.0, "k": 1.0, "c": 0.5}


def groups(rounds: int) -> Sequence[Row]:
    """Times of fits to groups of exponential decays with noise, each with its own parameters."""
    import numpy as np
    from scipy.optimize import curve_fit

    import gradcli

    draw = np.random.default_rng(0)
    x = np.tile(np.linspace(0, 5, SIZE), (GROUPS, 1))
    a, k, c = (draw.uniform(low, high, (GROUPS, 1)) for low, high in ((1, 3), (0.5, 2), (0, 1)))
    y = a * np.exp(-k * x) + c + draw.normal(0, 0.05, x.shape)
    data = {"x": x.ravel(), "y": y.ravel(), "run": np.repeat(np.arange(GROUPS), SIZE)}

    def by_gradcli() -> Any:
        return [[e.value for e in fit.estimates.values()] for fit in gradcli.fit(f"y ~ {DECAY}", data, BEGIN, by="run")]

    def decay(x: Any, a: float, k: float, c: float) -> Any:
        return a * np.exp(-k * x) + c

    def by_scipy() -> Any:
        return [curve_fit(decay, x[i], y[i], [*BEGIN.values()])[0] for i in range(GROUPS)]

    if not np.allclose(by_gradcli(), by_scipy(), rtol=1e-3):
        sys.exit("error: the groups are fitted otherwise than by curve_fit")
    jobs = {"gradcli, by=": by_gradcli, "a loop of curve_fit": by_scipy}
    found = interleaved({n: functools.partial(timed, job) for n, job in jobs.items()}, rounds, warmups=1)
    return [Row(name, times) for name, times in found.items()]


def points(rounds: int) -> Sequence[Row]:
    """Times of a fit of one exponential decay to a million points."""
    import numpy as np
    from scipy.optimize import curve_fit

    import gradcli

    draw = np.random.default_rng(0)
    x = draw.uniform(0, 5, POINTS)
    y = 2 * np.exp(-0.7 * x) + 0.3 + draw.normal(0, 0.05, POINTS)

    def by_gradcli() -> Any:
        return [e.value for e in gradcli.fit(f"y ~ {DECAY}", {"x": x, "y": y}, BEGIN).estimates.values()]

    def decay(x: Any, a: float, k: float, c: float) -> Any:
        return a * np.exp(-k * x) + c

    def jacobian(x: Any, a: float, k: float, c: float) -> Any:
        e = np.exp(-k * x)
        return np.stack([e, -a * x * e, np.ones_like(x)], axis=1)

    def by_scipy() -> Any:
        return curve_fit(decay, x, y, [*BEGIN.values()], jac=jacobian)[0]

    if not np.allclose(by_gradcli(), by_scipy(), rtol=1e-6):
        sys.exit("error: the points are fitted otherwise than by curve_fit")
    jobs = {"gradcli": by_gradcli, "curve_fit, Jacobian by hand": by_scipy}
    found = interleaved({n: functools.partial(timed, job) for n, job in jobs.items()}, rounds, warmups=1)
    return [Row(name, times) for name, times in found.items()]


def main() -> None:
    options = parser(__doc__, rounds=10)
    options.add_argument("--nist", metavar="PATH", required=True, help="NIST's problems, as JSON")
    given = options.parse_args()
    right, missed = certified(given.nist)
    about = circumstances(["scipy", "lmfit", "numpy"])
    unit = ("ms", 1e-3)
    rows = {
        "a fit as a process": processes(given.nist, given.rounds),
        "an impedance spectrum of 60 points as a process": spectra(given.rounds),
        f"{GROUPS:,} groups of {SIZE} rows": groups(given.rounds),
        f"{POINTS:,} points": points(given.rounds),
    }
    bases = ("lmfit", "lmfit", "a loop of curve_fit", "curve_fit, Jacobian by hand")
    tables = {
        f"problems with {ENOUGH} digits in all estimates, and in the standard errors too": right,
        "problems without": missed,
    } | {
        f"{title}, {given.rounds} rounds": table(timings, ["fit"], unit, base)
        for (title, timings), base in zip(rows.items(), bases)
    }
    publish(given, "fits", about, tables)
    if given.json:
        write_json(given.json, about, rows, ["fit"])


if __name__ == "__main__":
    main()
