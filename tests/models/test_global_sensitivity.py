"""Tests Sobol' indices and elementary effects of `gradcli propagate`, against closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import gradcli

ISHIGAMI = "sin(x1) + 7*sin(x2)**2 + 0.1*x3**4*sin(x1)"
ANGLES = [f"x{i}=~uniform(-pi, pi)" for i in (1, 2, 3)]


def near(found, expected, error):
    return abs(found - expected) <= 4 * error + 1e-12


def test_the_function_of_ishigami(run):
    found = run("propagate", ISHIGAMI, *ANGLES, "--sobol", "--quiet", "--json").json["sobol"]
    a, b = 7, 0.1
    variance = a**2 / 8 + b * math.pi**4 / 5 + b**2 * math.pi**8 / 18 + 0.5
    first = [(0.5 * (1 + b * math.pi**4 / 5) ** 2) / variance, a**2 / 8 / variance, 0]
    both = b**2 * math.pi**8 * (1 / 18 - 1 / 50) / variance
    total = [first[0] + both, first[1], both]
    assert found["points"] == 8192
    assert found["evaluations"] == 5 * 8192
    for index, one, every in zip(found["indices"], first, total):
        assert index["first"] == pytest.approx(one, abs=0.01)
        assert index["total"] == pytest.approx(every, abs=0.01)
        assert near(index["first"], one, index["first_error"])
        assert near(index["total"], every, index["total_error"])
        assert index["first_interval"][0] <= index["first"] <= index["first_interval"][1]
        assert index["total_interval"][0] <= index["total"] <= index["total_interval"][1]


@pytest.mark.slow
def test_the_function_of_sobol():
    factors = [0, 1, 4.5, 9]
    program = "*".join(f"(abs(4*x{i} - 2) + {a})/{1 + a}" for i, a in enumerate(factors))
    values = {f"x{i}": "~uniform(0, 1)" for i in range(4)}
    found = gradcli.propagate(program, values, sobol=True, samples=2e5).sobol
    own = np.array([1 / (3 * (1 + a) ** 2) for a in factors])
    whole = np.prod(1 + own) - 1
    total = own * np.prod(1 + own) / (1 + own) / whole
    assert [each.first for each in found.indices] == pytest.approx(own / whole, abs=0.01)
    assert [each.total for each in found.indices] == pytest.approx(total, abs=0.01)
    assert found.evaluations <= 200_000


def test_indices_of_a_linear_formula_are_the_shares_of_the_budget():
    inputs = {"a": "1.0±0.3", "b": "~triangular(0, 6, 1)", "c": "~lognormal(0, 0.5)", "d": "5.0±0.4", "k": 3}
    found = gradcli.propagate("k*a + b - 2*c + d", inputs, dof={"d": 8}, sobol=True)
    # Student's distribution is wider than its scale.
    squares = {each.name: each.contribution**2 * (8 / 6 if each.name == "d" else 1) for each in found.budget}
    for index in found.sobol.indices:
        assert index.first == pytest.approx(squares[index.name] / sum(squares.values()), abs=0.01)
        assert index.total == pytest.approx(index.first, abs=0.01)


@pytest.mark.slow
def test_several_results_and_elements():
    found = gradcli.propagate("p = x[0]*2; q = x[0]*x[1]; [p, q]", x="[1±0.1, 2±0.1]", sobol=True, morris=True)
    assert [*found.sobol] == ["p", "q"]
    assert [each.name for each in found.sobol["p"].indices] == ["x[0]", "x[1]"]
    assert [each.first for each in found.sobol["p"].indices] == pytest.approx([1, 0], abs=0.01)
    assert [each.first for each in found.sobol["q"].indices] == pytest.approx([0.8, 0.2], abs=0.02)
    assert found.morris["p"].effects[1].mu_star == 0


def test_the_seed_gives_other_points():
    one, same, other = (
        gradcli.propagate("x*y", x="1±0.1", y="1±0.2", sobol=True, morris=True, seed=seed, samples=1e3)
        for seed in (1, 1, 2)
    )
    assert one.sobol == same.sobol
    assert one.sobol != other.sobol
    assert one.morris == same.morris


def test_elementary_effects_are_those_of_the_levels(run):
    found = run("propagate", ISHIGAMI, *ANGLES, "--morris", "--samples", "4e4", "--quiet", "--json").json["morris"]
    assert found["evaluations"] == 4 * found["trajectories"] <= 40_000

    def value(shares):
        x1, x2, x3 = (2 * math.pi * share - math.pi for share in shares)
        return math.sin(x1) + 7 * math.sin(x2) ** 2 + 0.1 * x3**4 * math.sin(x1)

    # The effects of all steps of 2/3 between the four levels.
    levels = [0, 1 / 3, 2 / 3, 1]
    for place, effect in enumerate(found["effects"]):
        effects = []
        for point in itertools.product(levels, repeat=3):
            if point[place] < 0.5:
                moved = [*point]
                moved[place] += 2 / 3
                effects.append((value(moved) - value(point)) * 1.5)
        assert effect["mu_star"] == pytest.approx(np.abs(effects).mean(), abs=4 * effect["mu_star_error"] + 1e-9)
        assert effect["mu"] == pytest.approx(np.mean(effects), abs=0.4)
        assert effect["sigma"] == pytest.approx(np.std(effects), rel=0.05)


def test_the_effects_of_inputs_without_limits_avoid_their_tails():
    found = gradcli.propagate("2*x + y", x="1±0.5", y="~exponential(1)", morris=True)
    # x goes from its quantile of 0.5 % to that at 0.5 % + 2/3 of 99 %, or from there to that of 99.5 %.
    x, y = found.morris.effects
    assert x.mu_star == pytest.approx(2 * 0.5 * (2.5758293 + 0.4357) * 1.5, rel=0.01)
    assert math.isfinite(y.mu_star)


@pytest.mark.parametrize("option", ["--sobol", "--morris"])
def test_what_has_no_indices(run, option):
    correlated = run("propagate", "a*b", "a=1±0.1", "b=1±0.1", "--correlation", "a,b=0.5", option)
    assert correlated.status == 2
    assert "'a' and 'b' are correlated" in correlated.err
    digits = run("propagate", "a*b", "a=1±0.1", "b=1±0.1", "--digits", "10", option)
    assert digits.status == 2
    assert f"--digits and {option} contradict each other" in digits.err
    beyond = run("propagate", "log(a)", "a=1±1", option, "--quiet")
    assert beyond.status == 1
    assert "log" in beyond.err


def test_a_constant_has_no_shares(run):
    found = run("propagate", "0*a + 1", "a=1±0.1", "--sobol", "--json").json["sobol"]
    assert found["indices"][0]["first"] == "NaN"


def test_the_tables(run):
    out = run("propagate", "a + b", "a=1±0.1", "b=1±0.2", "--sobol", "--morris").out
    assert "Sobol' index  first order" in out
    assert "elementary effect  mu" in out
