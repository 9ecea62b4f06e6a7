"""Tests draws of correlated inputs with any distributions, and adaptive Monte Carlo, in `gradcli propagate`."""

from __future__ import annotations

import math

import pytest

import gradcli
from gradcli.errors import BindingError


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("a", "b", "r"),
    [
        ("~uniform(0, 1)", "~uniform(2, 5)", 0.5),
        ("~lognormal(0, 0.4)", "~lognormal(1, 0.7)", -0.3),
        ("~arcsine(0, 1)", "1±0.2", 0.8),
        ("~poisson(3)", "~triangular(0, 1, 0.2)", -0.6),
        ("~gamma(2, 1)", "~beta(2, 5)", 0.7),
        ("~trapezoidal(0, 1, 0.5)", "~curvilinear(0, 1, 0.1)", 0.9),
        ("~exponential(2)", "~student(9, 0, 1)", 0.4),
    ],
)
def test_the_draws_have_the_given_moments_and_correlation(a, b, r):
    found = gradcli.propagate("[a + b, a - b, a, b]", a=a, b=b, correlation={"a,b": r}, samples=1e5)
    plus, minus, first, second = found.monte_carlo.values()
    u, v = found.u["value[2]"], found.u["value[3]"]
    assert (first.u, second.u) == (pytest.approx(u, rel=0.03), pytest.approx(v, rel=0.03))
    # The covariance is a quarter of the difference of the variances of sum and difference.
    covariance = (plus.u**2 - minus.u**2) / 4
    assert covariance / (first.u * second.u) == pytest.approx(r, abs=0.02)
    # The linear propagation is exact for sums.
    assert plus.u == pytest.approx(found.u["value[0]"], rel=0.03)


def test_the_marginal_distributions_are_the_assigned_ones():
    found = gradcli.propagate(
        "[u, e]", u="~uniform(2, 3)", e="~exponential(1)", correlation={"u,e": 0.6}, samples=1e5, level=0.9
    ).monte_carlo
    assert found["u"].interval == pytest.approx((2.05, 2.95), abs=0.01)
    assert found["e"].interval == pytest.approx((-math.log(0.95), -math.log(0.05)), abs=0.05)


def test_three_inputs_of_which_one_is_not_assigned():
    found = gradcli.propagate(
        "[a, b, c, a + c]",
        a="~uniform(-1, 1)",
        b="~lognormal(0, 0.2)",
        c="2±0.5",
        correlation={"a,b": 0.5, "b,c": -0.3},
        dof={"c": 12},
        samples=1e5,
    )
    assert found.monte_carlo["value[2]"].u == pytest.approx(0.5 * math.sqrt(12 / 10), rel=0.02)
    # a and c are not correlated.
    assert found.monte_carlo["value[3]"].u == pytest.approx(math.sqrt(1 / 3 + 0.25 * 1.2), rel=0.02)


@pytest.mark.parametrize(
    ("values", "dof", "message"),
    [
        ({"a": "~uniform(0, 1)", "b": "~exponential(1)"}, {}, "it lies between -0.866 and 0.866"),
        ({"a": "~uniform(0, 1)", "b": "1±0.1"}, {"b": 2}, "'b' has 2 degrees of freedom"),
    ],
)
def test_correlations_that_distributions_cannot_have(values, dof, message):
    with pytest.raises(BindingError) as caught:
        gradcli.propagate("a*b", values, dof=dof, correlation={"a,b": -0.9}, samples=1e3)
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_correlations_whose_copula_contradicts_itself():
    with pytest.raises(BindingError, match="have no Gaussian copula with these distributions"):
        gradcli.propagate(
            "a*b*c",
            dict.fromkeys("abc", "~lognormal(0, 1)"),
            correlation={"a,b": -0.35, "b,c": -0.35, "a,c": -0.2},
            samples=1e3,
        )


# --- adaptive Monte Carlo


def test_adaptive_draws_of_the_sum_of_four_rectangular_quantities(run):
    # JCGM 101, 9.2.3: the interval is ±3.88.
    words = [f"x{i}=~uniform(-{math.sqrt(3)}, {math.sqrt(3)})" for i in range(4)]
    found = run("propagate", "x0 + x1 + x2 + x3", *words, "--adaptive", "2", "--json").json["monte_carlo"]
    assert (found["digits"], found["tolerance"]) == (2, pytest.approx(0.05))
    assert found["samples"] % 10_000 == 0
    assert found["u"] == pytest.approx(2, abs=0.05)
    assert found["interval"] == pytest.approx([-3.88, 3.88], abs=0.05)
    one = run("propagate", "x0 + x1 + x2 + x3", *words, "--adaptive", "1", "--json").json["monte_carlo"]
    assert one["samples"] <= found["samples"]
    assert one["tolerance"] == pytest.approx(0.5)


def test_the_table_has_the_stable_digits(run):
    out = run("propagate", "a + 10", "a=~uniform(0, 1)", "--adaptive", "1").out
    assert "samples       10.5 ± 0.3\ninterval of 0.95      [10.0, 11.0]" in out


def test_adaptive_draws_of_several_results_meet_all_tolerances():
    found = gradcli.propagate("[a, b]", a="1±0.1", b="~exponential(5)", adaptive=1, shortest=True).monte_carlo
    assert found["a"].samples == found["b"].samples
    assert found["b"].tolerance == pytest.approx(0.5)
    assert found["b"].interval[0] == pytest.approx(0, abs=0.01)


def test_a_constant_is_stable_at_once():
    assert gradcli.propagate("0*a", a="1±0.1", adaptive=2).monte_carlo.samples == 100_000


def test_the_seed_repeats_adaptive_draws():
    one, same, other = (gradcli.propagate("a", a="1±0.1", adaptive=1, seed=s).monte_carlo for s in (3, 3, 4))
    assert one == same
    assert one.mean != other.mean
