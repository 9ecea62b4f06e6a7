"""Tests `gradcli sample`: moments of known densities, the diagnostics, and the draws as tables."""

from __future__ import annotations

import csv
import json
import math
import re
from typing import Any

import numpy as np
import pytest

from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.models import sample
from gradcli.models.sampling import posterior_draws

EIGHT_SCHOOLS = "-mu**2/50 - log(1 + (tau/5)**2) - sum(z**2)/2 - sum((y - mu - tau*z)**2/(2*s**2))"
SCHOOLS = {"y": [28, 8, -3, 7, -1, 1, 18, 12], "s": [15, 10, 16, 11, 9, 11, 10, 18]}


def close(found: Any, mean: float, sd: float) -> bool:
    """Whether mean and standard deviation are within four Monte Carlo errors."""
    error_of_sd = sd * 1.5 / math.sqrt(min(found.ess_bulk, found.ess_tail))
    return abs(found.mean - mean) <= 4 * found.error and abs(found.sd - sd) <= 4 * error_of_sd


def test_a_normal_density_with_correlations() -> None:
    covariance = np.array([[2.0, 1.2, 0], [1.2, 1.0, 0], [0, 0, 100.0]])
    precision = np.linalg.inv(covariance)
    found = sample(
        "-(x - m) @ P @ (x - m)/2",
        x=np.zeros(3),
        m=np.array([1.0, 2, 3]),
        P=precision,
        const=["m", "P"],
        draws=500,
        warmup=400,
    )
    assert found.converged
    assert not found.warnings
    for k in range(3):
        assert close(found.posterior[f"x[{k}]"], k + 1.0, math.sqrt(covariance[k, k]))
    assert found.draws["x"].shape == (4, 500, 3)
    flat = found.draws["x"].reshape(-1, 3)
    assert np.corrcoef(flat.T)[0, 1] == pytest.approx(1.2 / math.sqrt(2), abs=0.08)


@pytest.mark.parametrize(
    ("program", "options"),
    [("x", {}), ("x**2", {}), ("exp(x)", {}), ("0*x", {"target": 0.01}), ("x", {"bounds": "x=0:"})],
)
def test_a_density_without_a_finite_integral_is_told(program: str, options: dict[str, Any]) -> None:
    found = sample(program, x=1, draws=50, warmup=150, max_depth=4, **options)
    assert not found.converged
    assert any("the chains do not agree" in warning for warning in found.warnings)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("program", "bounds", "start", "mean", "sd"),
    [
        # An exponential, a uniform, a beta, and a gamma distribution below 0.
        ("-2*x", "x=0:", 1.0, 0.5, 0.5),
        ("0*x", "x=-1:3", 0.5, 1.0, 4 / math.sqrt(12)),
        ("log(x) + 3*log(1 - x)", "x=0:1", 0.5, 1 / 3, math.sqrt(2 * 4 / (36 * 7))),
        ("2*log(-x) + x", "x=:0", -1.0, -3.0, math.sqrt(3)),
    ],
)
def test_bounds(program: str, bounds: str, start: float, mean: float, sd: float) -> None:
    found = sample(program, x=start, bounds=bounds, draws=1_000)
    assert found.posterior["x"].r_hat < 1.02
    assert close(found.posterior["x"], mean, sd)


def test_eight_schools() -> None:
    """Means and standard deviations of the reference draws of posteriordb (eight_schools-eight_schools_noncentered)."""
    found = sample(
        EIGHT_SCHOOLS,
        {"mu": 1, "tau": 1, "z": np.zeros(8), **{n: np.array(v, float) for n, v in SCHOOLS.items()}},
        const=["y", "s"],
        bounds="tau=0:",
        draws=400,
        warmup=400,
    )
    assert found.converged, found.warnings
    assert abs(found.posterior["mu"].mean - 4.41) <= 4 * found.posterior["mu"].error
    assert abs(found.posterior["tau"].mean - 3.60) <= 4 * found.posterior["tau"].error
    assert abs(found.posterior["mu"].sd - 3.30) < 0.3
    assert abs(found.posterior["tau"].sd - 3.20) < 0.5


def test_a_logistic_regression_beside_quadrature() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=60)
    y = (random.random(60) < 1 / (1 + np.exp(-(0.5 + 1.5 * x)))).astype(float)
    a, b = np.meshgrid(np.linspace(-3, 4, 300), np.linspace(-2, 7, 300), indexing="ij")
    logarithm = sum(v * (a + b * u) - np.logaddexp(0, a + b * u) for u, v in zip(x, y)) - a**2 / 8 - b**2 / 8
    weights = np.exp(logarithm - logarithm.max())
    weights /= weights.sum()
    program = "sum(y*(a + b*x) - log(1 + exp(a + b*x))) - a**2/8 - b**2/8"
    found = sample(program, a=0, b=0, data={"x": x, "y": y}, draws=600, warmup=400)
    assert found.converged
    for name, values in (("a", a), ("b", b)):
        mean = float((weights * values).sum())
        assert close(found.posterior[name], mean, math.sqrt(float((weights * values**2).sum()) - mean**2))


def test_walls_without_bounds_diverge(run: Any) -> None:
    words = ["where(abs(x) < 1, -x**2, -inf)", "x=0", "--draws", "100", "--warmup", "50", "--chains", "2"]
    done = run("sample", *words)
    assert "transitions diverged" in done.err
    assert "--target 0.99" in done.err


@pytest.mark.parametrize("seed", range(4))
def test_modes_that_no_chain_leaves_are_not_converged(run: Any, seed: int) -> None:
    words = ["--draws", "200", "--warmup", "100", "--json", "--seed", str(seed)]
    done = run("sample", "log(exp(-(x - 40)**2/2) + exp(-(x + 40)**2/2))", "x=0", *words)
    found = json.loads(done.out)
    assert done.status == 1
    assert found["converged"] is False
    (warning,) = found["warnings"]
    assert re.search(
        r"do not agree .*: they stay near (-?[34][90]\.?\d?(, )?){4}, as where there are several modes", warning
    )
    assert "the draws cannot be relied on yet" in done.err


def test_a_funnel_is_told(run: Any) -> None:
    """Neal's funnel, whose neck no step size suits."""
    done = run(
        "sample", "-v**2/18 - sum(x**2*exp(-v))/2 - 9*v/2", "v=0", "x=zeros(9)", "--draws", "300", "--chains", "2"
    )
    assert done.status == 1
    assert "few effective draws" in done.err
    assert "another parametrisation, as mu + tau*z with standard normal z" in done.err


def test_a_chain_that_does_not_move(run: Any) -> None:
    done = run("sample", "-1e9*x**2 - 1e9*abs(x)", "x=1", "--draws", "50", "--warmup", "0", "--chains", "2")
    assert done.status == 1
    assert "chain 0 is stuck" in done.err


def test_the_keys_and_the_table_of_draws(run: Any, tmp_path: Any) -> None:
    path = tmp_path / "draws.csv"
    done = run(
        "sample",
        "-sum(w**2)/2 - (x - 1)**2/2",
        "x=0",
        "w=[0,0]",
        "--draws",
        "400",
        "--chains",
        "2",
        "--json",
        "-o",
        str(path),
    )
    found = json.loads(done.out)
    assert list(found) == [
        "schema", "program", "posterior", "chains", "warmup", "count", "seed", "divergences", "too_deep", "step_sizes",
        "steps", "converged", "warnings",
    ]  # fmt: skip
    assert list(found["posterior"]) == ["x", "w[0]", "w[1]"]
    assert list(found["posterior"]["x"]) == [
        "mean",
        "sd",
        "error",
        "median",
        "low",
        "high",
        "ess_bulk",
        "ess_tail",
        "r_hat",
    ]
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == ["chain", "draw", "x", "w[0]", "w[1]"]
    assert [(row["chain"], row["draw"]) for row in (rows[0], rows[399], rows[400])] == [
        ("0", "0"),
        ("0", "399"),
        ("1", "0"),
    ]
    assert np.mean([float(row["x"]) for row in rows]) == pytest.approx(found["posterior"]["x"]["mean"], rel=1e-12)


def test_the_seed_decides() -> None:
    one, same, other = (
        sample("-x**2/2", x=0, draws=50, warmup=50, chains=1, seed=seed).draws["x"] for seed in (3, 3, 4)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_numbers_that_are_always_the_same() -> None:
    """Densities of 0 everywhere but at the start move nowhere."""
    with pytest.raises(EvaluationError, match="no finite log density"):
        sample("where(x > 1e9, 0.0, -inf)*1 + 0*x", x=0, draws=10, warmup=10)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": 0, "bounds": "x=0:"}, UsageError, "at its bound"),
        ({"x": -1, "bounds": "x=0:"}, BindingError, "outside of its bounds"),
        ({"x": 1, "target": 1.0}, UsageError, "between 0 and 1"),
        ({"x": 1, "chains": 0}, UsageError, "number of chains"),
        ({"x": 1, "draws": 2}, UsageError, "number of draws"),
        ({"x": 1, "output": "draws.png"}, UsageError, "png"),
        ({}, BindingError, "nothing to vary"),
    ],
)
def test_wrong_use(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sample("-x**2/2", **arguments)


def test_diagnostics_of_known_chains() -> None:
    random = np.random.default_rng(0)
    independent = random.normal(size=(4, 1_000))
    assert posterior_draws.r_hat(independent) == pytest.approx(1.0, abs=0.005)
    assert posterior_draws.ess_bulk(independent) == pytest.approx(4_000, rel=0.15)
    walk = np.zeros((4, 4_000))
    for k in range(1, 4_000):
        walk[:, k] = 0.9 * walk[:, k - 1] + random.normal(size=4)
    # An autoregression of 0.9 has (1 - 0.9)/(1 + 0.9) effective draws for each.
    assert posterior_draws.ess_bulk(walk) == pytest.approx(16_000 / 19, rel=0.2)
    apart = independent + np.array([[0.0], [0.0], [0.0], [3.0]])
    assert posterior_draws.r_hat(apart) > 1.3
    wide = independent * np.array([[1.0], [1.0], [1.0], [10.0]])
    assert posterior_draws.r_hat(wide) > 1.1


def moments(found, label):
    own = found.posterior[label]
    return own.mean, own.sd, own.error


class TestVectors:
    def test_shares_of_counts_have_the_distribution_of_dirichlet(self):
        # Dirichlet(4, 2, 7): the mean of each share m, and the variance m(1 - m)/14
        found = sample("sum(n*log(p))", n=[3, 1, 6], p=[0.2, 0.3, 0.5], const="n", simplex="p", seed=1)
        assert found.converged
        assert found.draws["p"].shape == (4, 1000, 3)
        assert found.draws["p"].sum(axis=2) == pytest.approx(np.ones((4, 1000)), abs=1e-12)
        for k, alpha in enumerate((4, 2, 7)):
            mean, sd, error = moments(found, f"p[{k}]")
            expected = alpha / 13
            assert mean == pytest.approx(expected, abs=4 * error)
            assert sd == pytest.approx((expected * (1 - expected) / 14) ** 0.5, rel=0.06)

    def test_ordered_numbers_are_order_statistics(self):
        # The order statistics of three standard normal numbers have the means 0 and ±3/(2√π).
        found = sample("sum(-m**2/2)", m=[-1.0, 0.0, 1.0], ordered="m", seed=1)
        assert (np.diff(found.draws["m"], axis=2) > 0).all()
        for k, expected in enumerate((-0.8462844, 0.0, 0.8462844)):
            mean, _, error = moments(found, f"m[{k}]")
            assert mean == pytest.approx(expected, abs=4 * error)

    def test_a_mixture(self, run, tmp_path):
        data = tmp_path / "mix.csv"
        numbers = np.random.default_rng(1)
        y = np.concatenate([numbers.normal(-1, 0.7, 40), numbers.normal(2, 1, 60)])
        data.write_text("y\n" + "\n".join(map(str, y)))
        density = "sum(log(p[0]*exp(-(y - m[0])**2/2) + p[1]*exp(-(y - m[1])**2/2))) - (m[0]**2 + m[1]**2)/200"
        path = tmp_path / "draws.csv"
        done = run(
            "sample", density, str(data), "p=[0.5,0.5]", "m=[-1,1]", "--simplex", "p", "--ordered", "m",
            "--draws", "500", "--chains", "2", "--output", str(path), "--json",
        )  # fmt: skip
        found = done.json["posterior"]
        assert path.read_text().splitlines()[0] == "chain,draw,p[0],p[1],m[0],m[1]"
        # The posterior on a grid of share and means
        share = np.linspace(0.005, 0.995, 40)
        low, high = np.linspace(-2.5, 0.5, 40), np.linspace(0.8, 3.2, 40)
        first, second = (np.exp(-((y - mean[:, None]) ** 2) / 2) for mean in (low, high))
        mixed = share[:, None, None, None] * first[:, None] + (1 - share)[:, None, None, None] * second[None, :]
        log = np.log(mixed).sum(axis=-1) - (low[:, None] ** 2 + high**2) / 200
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        expected = {
            "p[0]": (weight.sum(axis=(1, 2)) * share).sum(),
            "m[0]": (weight.sum(axis=(0, 2)) * low).sum(),
            "m[1]": (weight.sum(axis=(0, 1)) * high).sum(),
        }
        for name, mean in expected.items():
            assert found[name]["mean"] == pytest.approx(mean, abs=4 * found[name]["error"])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("sum(log(p))", "p=[0.2,0.9]", "--simplex", "p"), "'p' is not of numbers above 0 with the sum 1"),
            (("sum(m)", "m=[2,1]", "--ordered", "m"), "the start of 'm' does not increase"),
            (("sum(m)", "m=2", "--ordered", "m"), "'m' is a vector of at least 2 numbers"),
            (("sum(m)", "m=[1,2]", "--ordered", "k"), "'k' is an ordered vector, and has no start"),
            (("sum(m)", "m=[1,2]", "--const", "m", "--ordered", "m"), "'m' is an ordered vector, and has no start"),
            (
                ("sum(m)", "m=[1,2]", "--ordered", "m", "--bounds", "m=0:"),
                "'m' is an ordered vector, and has no bounds",
            ),
            (("sum(m)", "m=[1,2]", "--ordered", "m", "--simplex", "m"), "'m' is a simplex, which is not ordered"),
            (("sum(m) + q", "m=[1,2]", "--ordered", "m"), "  | sum(m) + q\n  |          ^"),
        ],
    )
    def test_errors(self, run, arguments, message):
        done = run("sample", *arguments)
        assert done.status != 0
        assert message in done.err
