"""Measures differential equations and integrals with their derivatives, gradcli beside libraries that are installed.

Each job runs in a process of its own for each library: the time of the first result, with what is compiled for it; the
median of warm ones, each for another parameter than the one before; and the largest difference of its numbers from those of
gradcli, relative to the largest of them. `--job NAME` measures one job.

lotka       the Jacobian of x(10) of the equations of Lotka and Volterra by four parameters
lotka2      its Hessian
rober       Robertson's stiff equations to t = 1e4, the first state by the three rates
chain       the position of the last of 100 masses at t = 10 by the 200 starts
subjects    a two-compartment model of 1,000 subjects, each with derivatives by its four rates
quadrature  100 integrals of exp(-k*t)*sin(50*t) on 0..3, with derivatives by k
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

# From a number near 1, by which a parameter is multiplied, to the results.
Job = Callable[[float], Any]

LOTKA = "f(t, s) = [a*s[0] - b*s[0]*s[1], d*s[0]*s[1] - c*s[1]]; solve_ivp(f, (0, 10), [10, 5]).y[0, 1]"
VALUES = {"a": 1.1, "b": 0.4, "c": 0.4, "d": 0.1}
ROBER = """\
f(t, y) = [-k*y[0] + m*y[1]*y[2], k*y[0] - m*y[1]*y[2] - n*y[1]**2, n*y[1]**2]
solve_ivp(f, (0, 1e4), [1.0, 0.0, 0.0]).y[0, 1]"""
RATES = {"k": 0.04, "m": 1e4, "n": 3e7}
CHAIN = """\
f(t, s) = concat([s[100:], k*(concat([s[1:100], [0]]) - 2*s[:100] + concat([[0], s[:99]]))])
solve_ivp(f, (0, 10), s0).y[99, 1]"""
# All modes move: of a start in a slow one, steps that are controlled by the solution alone have no accurate derivatives.
START = np.concatenate([np.random.default_rng(0).normal(size=100), np.zeros(100)])
SUBJECTS = """\
f(t, s) = [-ka*s[0], ka*s[0] - (k + k12)*s[1] + k21*s[2], k12*s[1] - k21*s[2]]
solve_ivp(f, (0, 10), [100, 0, 0]).y[1, 1]"""
_RANDOM = np.random.default_rng(1)
SHIFTS = {"ka": 1.0, "k": 0.2, "k12": 0.3, "k21": 0.1}
SUBJECT_RATES = {name: shift + 0.1 * _RANDOM.random(1000) for name, shift in SHIFTS.items()}
INTEGRAL = "integrate(exp(-k*t)*sin(50*t), t, 0, 3)"
EXPONENTS = np.linspace(0.5, 5.0, 100)
# Calls that are not measured, those that are, the time in seconds after which no more are made, and the number of
# processes of which the shortest time is shown.
WARMING, CALLS, LONGEST, PROCESSES = 5, 20, 10.0, 10


def _names(values: dict[str, float], factor: float) -> dict[str, float]:
    first = next(iter(values))
    return {**values, first: values[first] * factor}


# --- gradcli


def _gradcli() -> dict[str, Callable[[], Job]]:
    def program(text: str) -> Any:
        return importlib.import_module("gradcli").compile(text)

    def jacobian(text: str, values: dict[str, float]) -> Job:
        made = program(text)
        return lambda factor: [*map(float, made.jacobian(_names(values, factor)).values())]

    def hessian() -> Job:
        made = program(LOTKA)
        return lambda factor: [*map(float, made.hessian(_names(VALUES, factor)).values())]

    def chain() -> Job:
        made = program(CHAIN)
        return lambda factor: made.value_and_grad({"s0": START, "k": factor}, wrt=["s0"])[1]["s0"]

    def subjects() -> Job:
        made = program(SUBJECTS)

        def called(factor: float) -> Any:
            found = made.map({**SUBJECT_RATES, "ka": SUBJECT_RATES["ka"] * factor})
            return np.array([found[f"d_{name}"] for name in SUBJECT_RATES])

        return called

    def quadrature() -> Job:
        made = program(INTEGRAL)
        return lambda factor: np.asarray(made.map({"k": EXPONENTS * factor})["d_k"])

    return {
        "lotka": lambda: jacobian(LOTKA, VALUES),
        "lotka2": hessian,
        "rober": lambda: jacobian(ROBER, RATES),
        "chain": chain,
        "subjects": subjects,
        "quadrature": quadrature,
    }


# --- diffrax


def _diffrax() -> dict[str, Callable[[], Job]]:
    jax, library = importlib.import_module("jax"), importlib.import_module("diffrax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def solved(slopes: Any, start: Any, end: float, args: Any, *, stiff: bool = False, reverse: bool = False) -> Any:
        return library.diffeqsolve(
            library.ODETerm(slopes), library.Kvaerno5() if stiff else library.Dopri8(), 0.0, end, 1e-6 if stiff else 0.01,
            start, args, stepsize_controller=library.PIDController(rtol=1e-10 if stiff else 1e-12, atol=1e-12),
            max_steps=100_000, adjoint=library.RecursiveCheckpointAdjoint() if reverse else library.ForwardMode(),
        ).ys[-1]  # fmt: skip

    def lotka(p: Any) -> Any:
        def slopes(_t: Any, s: Any, p: Any) -> Any:
            return jnp.stack([p[0] * s[0] - p[1] * s[0] * s[1], p[3] * s[0] * s[1] - p[2] * s[1]])

        return solved(slopes, jnp.array([10.0, 5.0]), 10.0, p)[0]

    def rober(p: Any) -> Any:
        def slopes(_t: Any, y: Any, p: Any) -> Any:
            fast, slow, last = p[1] * y[1] * y[2], p[0] * y[0], p[2] * y[1] ** 2
            return jnp.stack([fast - slow, slow - fast - last, last])

        return solved(slopes, jnp.array([1.0, 0.0, 0.0]), 1e4, p, stiff=True)[0]

    def chain(start: Any, k: Any) -> Any:
        def slopes(_t: Any, s: Any, k: Any) -> Any:
            x = jnp.pad(s[:100], 1)
            return jnp.concatenate([s[100:], k * (x[2:] - 2 * x[1:-1] + x[:-2])])

        return solved(slopes, start, 10.0, k, reverse=True)[99]

    def subject(p: Any) -> Any:
        def slopes(_t: Any, s: Any, p: Any) -> Any:
            return jnp.stack(
                [-p[0] * s[0], p[0] * s[0] - (p[1] + p[2]) * s[1] + p[3] * s[2], p[2] * s[1] - p[3] * s[2]]
            )

        return solved(slopes, jnp.array([100.0, 0.0, 0.0]), 10.0, p)[1]

    def of(function: Any, values: dict[str, float]) -> Job:
        compiled = jax.jit(function)
        return lambda factor: np.asarray(compiled(jnp.array([*_names(values, factor).values()])))

    def upper(function: Any) -> Any:
        return lambda p: jax.jacfwd(jax.jacfwd(function))(p)[np.triu_indices(4)]

    def of_chain() -> Job:
        compiled = jax.jit(jax.grad(chain))
        return lambda factor: np.asarray(compiled(jnp.array(START), factor))

    def of_subjects() -> Job:
        compiled = jax.jit(jax.vmap(jax.jacfwd(subject)))
        rates = np.array([*SUBJECT_RATES.values()]).T
        return lambda factor: np.asarray(compiled(jnp.array(rates * [factor, 1, 1, 1]))).T

    return {
        "lotka": lambda: of(jax.jacfwd(lotka), VALUES),
        "lotka2": lambda: of(upper(lotka), VALUES),
        "rober": lambda: of(jax.jacfwd(rober), RATES),
        "chain": of_chain,
        "subjects": of_subjects,
    }


# --- heyoka


def _heyoka() -> dict[str, Callable[[], Job]]:
    library = importlib.import_module("heyoka")

    def of(order: int) -> Job:
        x, y = library.make_vars("x", "y")
        a, b, c, d = (library.par[i] for i in range(4))
        slopes = [(x, a * x - b * x * y), (y, d * x * y - c * y)]
        varied = library.var_ode_sys(slopes, library.var_args.params, order=order)
        start = [10.0, 5.0]
        made = library.taylor_adaptive(varied, start, pars=[*VALUES.values()], compact_mode=True)
        begin = np.array(made.state)
        slices = made.get_vslice(order=order, component=0)

        def called(factor: float) -> Any:
            made.time, made.state[:] = 0.0, begin
            made.pars[:] = [*_names(VALUES, factor).values()]
            made.propagate_until(10.0)
            return np.array(made.state[slices])

        return called

    return {"lotka": lambda: of(1), "lotka2": lambda: of(2)}


# --- SciPy, with central differences


def _scipy() -> dict[str, Callable[[], Job]]:
    integrate = importlib.import_module("scipy.integrate")

    def differences(end: Callable[[Any], float], values: dict[str, float]) -> Job:
        def called(factor: float) -> list[float]:
            p = np.array([*_names(values, factor).values()])
            steps = 1e-5 * np.diag(p)
            return [(end(p + step) - end(p - step)) / (2e-5 * p[i]) for i, step in enumerate(steps)]

        return called

    def lotka(p: Any) -> float:
        a, b, c, d = p
        found = integrate.solve_ivp(
            lambda _t, s: [a * s[0] - b * s[0] * s[1], d * s[0] * s[1] - c * s[1]], (0, 10), [10, 5], method="DOP853",
            rtol=1e-12, atol=1e-12,
        )  # fmt: skip
        return float(found.y[0, -1])

    def rober(p: Any) -> float:
        k, m, n = p
        found = integrate.solve_ivp(
            lambda _t, y: [m * y[1] * y[2] - k * y[0], k * y[0] - m * y[1] * y[2] - n * y[1] ** 2, n * y[1] ** 2],
            (0, 1e4), [1.0, 0.0, 0.0], method="Radau", rtol=1e-10, atol=1e-14,
        )  # fmt: skip
        return float(found.y[0, -1])

    def quadrature(factor: float) -> Any:
        k = EXPONENTS * factor
        found, _ = integrate.quad_vec(lambda t: -t * np.exp(-k * t) * np.sin(50 * t), 0, 3, epsabs=1e-13, epsrel=1e-12)
        return found

    return {
        "lotka": lambda: differences(lotka, VALUES),
        "rober": lambda: differences(rober, RATES),
        "quadrature": lambda: quadrature,
    }


# --- quadrature in JAX and PyTorch


def _quadax() -> dict[str, Callable[[], Job]]:
    jax, library = importlib.import_module("jax"), importlib.import_module("quadax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def one(k: Any) -> Any:
        return library.quadgk(
            lambda t, k: jnp.exp(-k * t) * jnp.sin(50 * t), jnp.array([0.0, 3.0]), args=(k,), epsabs=1e-13, epsrel=1e-12
        )[0]

    def quadrature() -> Job:
        compiled = jax.jit(jax.vmap(jax.jacfwd(one)))
        return lambda factor: np.asarray(compiled(jnp.array(EXPONENTS * factor)))

    return {"quadrature": quadrature}


def _torchquad() -> dict[str, Callable[[], Job]]:
    torch, library = importlib.import_module("torch"), importlib.import_module("torchquad")
    torch.set_default_dtype(torch.float64)

    def quadrature() -> Job:
        rule = library.GaussLegendre()

        def called(factor: float) -> Any:
            k = torch.tensor(EXPONENTS * factor, requires_grad=True)
            domain = torch.tensor([[0.0, 3.0]])
            value = rule.integrate(
                lambda t: torch.exp(-k * t) * torch.sin(50 * t), dim=1, N=201, integration_domain=domain
            )
            return torch.autograd.grad(value.sum(), k)[0].numpy()

        return called

    return {"quadrature": quadrature}


PEERS = {
    "gradcli": _gradcli,
    "heyoka": _heyoka,
    "diffrax": _diffrax,
    "scipy": _scipy,
    "quadax": _quadax,
    "torchquad": _torchquad,
}
JOBS = ("lotka", "lotka2", "rober", "chain", "subjects", "quadrature")


def measure(library: str, job: str) -> None:
    """Print the times and results of a job as JSON; null where the library has no such job."""
    start = time.perf_counter()
    jobs = PEERS[library]()
    if job not in jobs:
        print("null")
        return
    called = jobs[job]()
    found = np.asarray(called(1.0), float).ravel()
    first = time.perf_counter() - start
    times: list[float] = []
    begin = time.perf_counter()
    for i in range(WARMING + CALLS):
        before = time.perf_counter()
        called(1 + 1e-6 * (i + 1))
        times.append(time.perf_counter() - before)
        if time.perf_counter() - begin > LONGEST:
            break
    warm = median(times[min(WARMING, len(times) - 1) :])
    print(json.dumps({"first": first, "warm": warm, "found": found.tolist()}))


def compare(job: str) -> None:
    """Print a table of all libraries."""
    print(f"\n{job}\nlibrary    first, s  warm, ms  ratio  difference")
    known: dict[str, Any] | None = None
    for library in PEERS:
        done = subprocess.run([sys.executable, __file__, library, job], capture_output=True, text=True)
        if done.returncode:
            print(f"{library:9}  {done.stderr.strip().splitlines()[-1]}")
            continue
        found = json.loads(done.stdout.strip().splitlines()[-1])
        if found is None:
            continue
        known = known or found
        numbers = np.array(known["found"])
        apart = np.abs(np.array(found["found"]) - numbers).max() / np.abs(numbers).max()
        ratio = found["warm"] / known["warm"]
        print(f"{library:9}  {found['first']:8.2f}  {1e3 * found['warm']:8.2f}  {ratio:5.2f}  {apart:.1e}")


def process_time() -> float:
    """The shortest time of `gradcli eval` with the Jacobian of the first job."""
    words = [LOTKA, *(f"{name}={value}" for name, value in VALUES.items()), "--jacobian"]
    times = []
    for _ in range(PROCESSES):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "gradcli", "eval", *words], check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("one", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--job", choices=JOBS, action="append")
    options = parser.parse_args()
    if options.one:
        measure(*options.one)
        return
    for job in options.job or JOBS:
        compare(job)
        if job == "lotka":
            print(f"gradcli eval, process: {process_time():.3f} s")


if __name__ == "__main__":
    main()
