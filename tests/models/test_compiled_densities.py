"""Tests log densities as machine code against the recording that NumPy runs: the same values and gradients, for every
kind of operation, and the same transitions in distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gradcli.errors import LimitError
from gradcli.executors import llvm_ufuncs
from gradcli.models import sample
from gradcli.models.packing import Packing
from gradcli.models.sampling.densities import LogDensity, SampledDensity
from gradcli.models.sampling.no_u_turn import PhasePoint
from tests.models.posteriors import POSTERIORS, stored

pytest.importorskip("llvmlite", reason="densities are machine code with gradcli[llvm] alone")

X = np.linspace(0.2, 1.7, 12)
M = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])

# Programs in x `[3]` and s > 0, with data X `[12]` and M `[3, 3]`, and the operations that NumPy computes.
PROGRAMS = [
    ("-sum(x**2)/2 - s", []),
    ("-sum((X - x[0]*exp(-s*X))**2) - s*abs(x[1]) - sqrt(s)*cos(x[2])", []),
    ("-x @ M @ x/2 - s - tanh(x[0])*log1p(s)", []),
    ("-sum((M @ x)**2) - sum((M @ M*s)[0]) + max(x[0], 2)*min(s, 3)", []),
    ("-sum((X.reshape(3, 4) - x.reshape(3, 1))**2/s) - log(s)*6 - sum(x**4)", []),
    ("-sum(mean(X.reshape(4, 3)*x, axis=0)**2) - s*sum(sum(X.reshape(4, 3)*x, axis=1)**3)", ["mean"]),
    ("y = concat([x[1:], x[:2], [s, 1]]); -sum(y**2) - y[0]*y[3]", []),
    ("-sum(cumsum(x*s)**2) - sum(where(x > 0, x, -2*x)) - (x[0] > s)*3 - x[2]**2", ["cumsum"]),
    (
        "h = s; t = 0; for i in range(300) { h = 0.5*h + x[0]**2 + 1; t = t + log(h)/9 }; -t - x[1]**2 - x[2]**2",
        [],
    ),
    ("-logdet(M + s*eye(3)) - x @ solve(M + s*eye(3), x)", ["logdet", "solve", "inv"]),
    ("sum(scipy.stats.poisson.logpmf([1, 2, 3], exp(x))) + scipy.stats.gamma.logpdf(s, 2, scale=3)", ["gamma_density"]),
    ("-gammaln(s + 3) - sum(x**2) - s", ["lgamma", "digamma"]),
    ("-sum(log(1 + exp(x))) - sum(softplus(-x)) - s*sum(sigmoid(x)) - sum(erf(x)**2)", []),
    ("sum(x*log(s)) - s**2.5 - sum(x**2) - s**3 - 1/s", []),
    ("-norm(x - X[:3])**2 - s", ["max", "flat_sqrt"]),
]


def target(program: str, start: dict[str, Any], data: dict[str, Any], low: dict[str, float]) -> SampledDensity:
    packing = Packing.of(start)
    bounds = packing.bounds({name: (end, math.inf) for name, end in low.items()})
    return SampledDensity(program, packing, data, *bounds, packing.flat(start), 10, (10**6, 10**8))


def agrees(density: LogDensity, size: int, scale: float = 0.5, accuracy: float = 1e-11) -> None:
    """Compare the machine code with NumPy at random positions."""
    from gradcli.models.sampling.compiled_trajectories import CompiledSampler

    assert density.compiled is not None
    sampler = CompiledSampler(density.compiled, 5, np.random.default_rng(0))
    sampler.step_size = 0.0
    start = density._transform.inverse(density._target.start)
    assert math.isfinite(density(start)[0])
    for position in (start, *(start + np.random.default_rng(3).normal(scale=scale, size=(6, size)))):
        value, gradient = density(position)
        point = sampler.leapfrog(PhasePoint(position, np.zeros(size), 0.0, np.zeros(size)), 1.0)
        assert point.density == pytest.approx(value, rel=accuracy, abs=accuracy)
        assert point.gradient == pytest.approx(gradient, rel=100 * accuracy, abs=100 * accuracy)


@pytest.mark.cases(4)
@pytest.mark.parametrize(("program", "called"), PROGRAMS)
def test_operations(program: str, called: list[str]) -> None:
    data = {n: v for n, v in (("X", X), ("M", M)) if n in program}
    density = LogDensity(target(program, {"x": np.array([0.3, -0.7, 1.1]), "s": 0.8}, data, {"s": 0.0}))
    agrees(density, 4)
    assert density.compiled is not None
    assert {equation.primitive.name for equation, *_ in density.compiled._code._in_python} == set(called)


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", POSTERIORS)
def test_posteriors(name: str) -> None:
    posterior = POSTERIORS[name]
    data = {n: np.asarray(v, float) for n, v in stored()["data"].get(posterior.data, {}).items()}
    start = {n: np.asarray(v, float) if np.ndim(v) else float(v) for n, v in posterior.start.items()}
    low = {word.partition("=")[0]: 0.0 for word in (posterior.bounds or "").split(",") if word.endswith(":")}
    density = LogDensity(target(posterior.program, start, data, low))
    # The covariance of a Gaussian process without noise is nearly singular.
    agrees(density, density.packing.size, 0.02, 1e-8 if "pois_regr" in name else 1e-11)


def test_a_recording_that_does_not_hold_is_left_to_python() -> None:
    # The loop overflows where s is large; its recorded derivative holds for finite numbers alone.
    program = "h = s; for i in range(8) { h = h**2 + s }; -s**2/2 - sum(x**2)/2 - 1/(1 + h)"
    density = LogDensity(target(program, {"x": np.zeros(3), "s": 0.5}, {}, {"s": 0.0}))
    agrees(density, 4, 4.0)


def test_limits_hold_within_a_trajectory() -> None:
    with pytest.raises(LimitError, match="array elements"):
        sample("-sum(x**2)/2", x=np.zeros(50), max_elements=2_000, target=0.999, max_depth=12, chains=1)


def test_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for available in (True, False):
        monkeypatch.setattr(llvm_ufuncs, "is_available", lambda available=available: available)
        drawn = sample("-sum(((x - 1)/s)**2)/2", x=[0, 0], s=[1, 3], const=["s"], draws=400, warmup=300, chains=2)
        found[available] = drawn
    compiled, interpreted = found.values()
    for label, marginal in compiled.posterior.items():
        other = interpreted.posterior[label]
        assert abs(marginal.mean - other.mean) <= 4 * math.hypot(marginal.error, other.error)
        assert marginal.sd == pytest.approx(other.sd, rel=0.15)
    assert sum(compiled.steps) == pytest.approx(sum(interpreted.steps), rel=0.2)


def test_numpy_gets_whole_numbers_as_numbers() -> None:
    density = LogDensity(target("-sum(hypot(x, 3)) - sum(zeta(2, x**2 + 2)) - s", {"x": np.ones(3), "s": 0.5}, {}, {}))
    agrees(density, 4)
