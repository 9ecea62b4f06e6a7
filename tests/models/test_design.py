"""Tests `gradcli design`: known optimal designs, the equivalence theorem, exact designs, and errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, UsageError

MICHAELIS_MENTEN = ("y ~ V*c/(K+c)", "V=200", "K=0.06", "c=0.01..1")


def points(found: Any, *names: str) -> Any:
    return np.array([[each["point"][name] for name in names] for each in found["support"]])


def weights(found: Any) -> Any:
    return np.array([each["weight"] for each in found["support"]])


ROOT_5, LOGIT = 1 / math.sqrt(5), 1.5434046384182084
KNOWN = [
    # K·b/(2K + b) and b (W. J. Hill and others; A. C. Atkinson, Optimum Experimental Designs, section 17.3).
    (MICHAELIS_MENTEN, "c", [0.06 / 1.12, 1], [0.5, 0.5]),
    (("y ~ exp(-k*t)", "k=0.5", "t=0..20"), "t", [2], [1]),
    (("y ~ a*exp(-k*t)", "a=3", "k=0.5", "t=0..20"), "t", [0, 2], [0.5, 0.5]),
    # The roots of (1 - x²)P'(x), with P the Legendre polynomial of the degree.
    (("y ~ a + b*x + c*x**2", "x=-1..1"), "x", [-1, 0, 1], [1 / 3] * 3),
    (("y ~ a + b*x + c*x**2 + d*x**3", "x=-1..1"), "x", [-1, -ROOT_5, ROOT_5, 1], [0.25] * 4),
    # ED50·b/(2 ED50 + b) for the Emax model (H. Dette and others, Biometrika 97 (2010) 513).
    (("y ~ e0 + m*d/(h + d)", "e0=0.2", "m=0.7", "h=25", "d=0..150"), "d", [0, 18.75, 150], [1 / 3] * 3),
    (("y ~ 1/(1 + exp(-(a + b*x)))", "a=0", "b=1", "x=-9..9", "--family", "binomial"), "x", [-LOGIT, LOGIT], [0.5] * 2),
    (("y ~ exp(a - b*x)", "a=1", "b=0.5", "x=0..10", "--family", "poisson"), "x", [0, 4], [0.5, 0.5]),
    (("y ~ a + b*x + c*x**2", "x=-1..1", "--criterion", "A"), "x", [-1, 0, 1], [0.25, 0.5, 0.25]),
    # For the highest coefficient the extrema of the Chebyshev polynomial.
    (
        ("y ~ a + b*x + c*x**2 + d*x**3", "x=-1..1", "--derive", "d"),
        "x",
        [-1, -0.5, 0.5, 1],
        [1 / 6, 1 / 3, 1 / 3, 1 / 6],
    ),
    # A singular design: only the slope is determined.
    (("y ~ a + b*x + c*x**2", "x=-1..1", "--derive", "b"), "x", [-1, 1], [0.5, 0.5]),
    (
        (*MICHAELIS_MENTEN, "--derive", "V/K"),
        "c",
        [0.06 * (math.sqrt(2) - 1) / (2 - math.sqrt(2) + 0.06), 1],
        [0.8535533905932737, 0.14644660940672627],
    ),
]

# Designs of A. C. Atkinson and others (Biometrics 49 (1993) 325) for a compartment model: of all parameters, of the area
# under the curve, of the time of the maximum, and of the maximum.
COMPARTMENT = ("y ~ h*(exp(-k*t) - exp(-q*t))", "k=0.05884", "q=4.298", "h=21.80", "t=0..48")
AT_MAXIMUM = "log(q/k)/(q - k)"
OF_COMPARTMENTS = [
    ((), [0.2288, 1.3886, 18.417], [1 / 3] * 3),
    (("--derive", "h*(1/k - 1/q)"), [0.2327, 17.634], [0.0135, 0.9865]),
    (("--derive", AT_MAXIMUM), [0.1793, 3.5658], [0.6062, 0.3938]),
    (("--derive", f"h*(exp(-k*{AT_MAXIMUM}) - exp(-q*{AT_MAXIMUM}))"), [1.0122], [1]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "places", "shares"), OF_COMPARTMENTS)
def test_a_compartment_model(words: tuple[str, ...], places: list[float], shares: list[float], run: Any) -> None:
    found = run("design", *COMPARTMENT, *words, "--json").json
    assert points(found, "t")[:, 0] == pytest.approx(places, rel=3e-4)
    assert weights(found) == pytest.approx(shares, abs=1e-4)


@pytest.mark.cases(4)
@pytest.mark.parametrize(("words", "name", "places", "shares"), KNOWN, ids=lambda part: str(part)[:40])
def test_known_designs(words: tuple[str, ...], name: str, places: list[float], shares: list[float], run: Any) -> None:
    found = run("design", *words, "--json").json
    assert found["converged"]
    assert 1 - 1e-9 < found["efficiency_bound"] <= 1
    assert points(found, name)[:, 0] == pytest.approx(places, abs=1e-9)
    assert weights(found) == pytest.approx(shares, abs=1e-9)


def test_the_quadratic_model_of_two_inputs(run: Any) -> None:
    # R. H. Farrell, J. Kiefer and A. Walbran (1967): the points of the 3×3 factorial.
    found = run("design", "y ~ a + b*x + c*z + d*x*z + e2*x**2 + f*z**2", "x=-1..1", "z=[-1,0,1]", "--json").json
    of_points = {tuple(map(abs, each["point"].values())): each["weight"] for each in found["support"]}
    assert len(found["support"]) == 9
    assert of_points == pytest.approx({(1, 1): 0.14579, (0, 1): 0.08016, (1, 0): 0.08016, (0, 0): 0.09619}, abs=1e-5)


def test_the_equivalence_theorem_holds_between_the_candidates() -> None:
    a, b, k, h = 2.0, 1.0, 0.3, 1.7
    found = gradcli.design("y ~ a*exp(-k*t) - b*exp(-h*t)", a=a, b=b, k=k, h=h, t=(0, 15))

    def gradients(t: Any) -> Any:
        slow, fast = np.exp(-k * t), np.exp(-h * t)
        return np.stack([slow, -a * t * slow, -fast, b * t * fast], axis=-1)

    at = gradients(np.array([each.point["t"] for each in found.support]))
    matrix = (at.T * [each.weight for each in found.support]) @ at
    every = gradients(np.linspace(0, 15, 100_001))
    variance = np.einsum("ij,jk,ik->i", every, np.linalg.inv(matrix), every)
    assert variance.max() == pytest.approx(4, abs=1e-6)
    assert found.efficiency_bound == pytest.approx(1)


def test_the_deviation_of_the_response(run: Any) -> None:
    # For y ~ a*x with the deviation exp(x) the information x²exp(-2x) is greatest at 1.
    found = run("design", "y ~ a*x", "x=0..5", "--sigma", "exp(x)", "--json").json
    assert points(found, "x")[0] == pytest.approx([1], abs=1e-9)
    assert found["parameters"]["a"]["error"] == pytest.approx(math.e)
    twice = run("design", *MICHAELIS_MENTEN, "--sigma", "2", "--json").json
    once = run("design", *MICHAELIS_MENTEN, "--json").json
    assert twice["parameters"]["V"]["error"] == pytest.approx(2 * once["parameters"]["V"]["error"])


def test_standard_errors_are_those_of_the_rows(run: Any) -> None:
    found = run("design", *MICHAELIS_MENTEN, "--rows", "12", "--derive", "V/K", "--json").json
    rows = [(each["point"]["c"], each["rows"]) for each in found["exact"]]
    assert sum(count for _, count in rows) == 12
    at = np.array([[c / (0.06 + c), -200 * c / (0.06 + c) ** 2] for c, _ in rows])
    covariance = np.linalg.inv((at.T * [count for _, count in rows]) @ at)
    assert found["parameters"]["K"]["error"] == pytest.approx(math.sqrt(covariance[1, 1]))
    slope = np.array([1 / 0.06, -200 / 0.06**2])
    assert found["derived"]["V/K"] == pytest.approx(
        {"value": 200 / 0.06, "error": math.sqrt(slope @ covariance @ slope)}
    )


@pytest.mark.cases(3)
@pytest.mark.parametrize("criterion", ["D", "A"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_exact_designs_are_no_worse_than_the_best_on_a_grid(criterion: str, count: int) -> None:
    found = gradcli.design("y ~ V*c/(K+c)", V=1, K=0.4, c=(0.01, 3), rows=count, criterion=criterion)

    def value(places: Any) -> float:
        at = np.stack([places / (0.4 + places), -places / (0.4 + places) ** 2], axis=-1)
        matrix = at.T @ at
        if criterion == "D":
            return float(np.linalg.det(matrix))
        return -float(np.trace(np.linalg.inv(matrix))) if np.linalg.det(matrix) > 1e-12 else -math.inf

    rows = np.repeat([each.point["c"] for each in found.exact], [each.rows for each in found.exact])
    assert len(rows) == count
    grid = np.linspace(0.01, 3, 14)
    best = max(value(np.array(chosen)) for chosen in itertools.combinations_with_replacement(grid, count))
    assert value(rows) >= best
    assert 0.7 < found.efficiency <= 1


def test_fewer_rows_than_support_points() -> None:
    # Six parameters have nine support points.
    found = gradcli.design("a + b*x + c*z + d*x*z + f*x**2 + g*z**2", x=[-1, 0, 1], z=[-1, 0, 1], rows=6)
    assert sum(each.rows for each in found.exact) == 6
    # The best of all choices of six of the nine points.
    cells = np.array([*itertools.product([-1, 0, 1], repeat=2)], float)

    def determinant(chosen: Any) -> float:
        x, z = chosen.T
        at = np.stack([np.ones_like(x), x, z, x * z, x**2, z**2], axis=-1)
        return float(np.linalg.det(at.T @ at))

    best = max(determinant(cells[[*each]]) for each in itertools.combinations(range(9), 6))
    own = np.array([[*each.point.values()] for each in found.exact for _ in range(each.rows)])
    assert determinant(own) == pytest.approx(best)


def test_many_rows_have_the_efficiency_1(run: Any) -> None:
    found = run("design", *MICHAELIS_MENTEN, "--criterion", "a", "--rows", "1000001", "--json").json
    assert found["criterion"] == "A"
    assert sum(each["rows"] for each in found["exact"]) == 1_000_001
    assert found["efficiency"] == pytest.approx(1, abs=1e-9)


def test_fixed_parameters_are_known(run: Any) -> None:
    found = run("design", *MICHAELIS_MENTEN, "--fix", "V", "--json").json
    assert [*found["parameters"]] == ["K"]
    assert points(found, "c") == pytest.approx(np.array([[0.06]]))


def test_the_table(run: Any) -> None:
    out = run("design", "y ~ a + b*x", "x=-1..1", "--rows", "4").out
    assert "efficiency of 4 rows  1\n" in out
    assert out.endswith("parameter  value  standard error\na          1.0    0.5\nb          1.0    0.5\n")
    assert "not determined" in run("design", "y ~ a + b*x + c*x**2", "x=-1..1", "--derive", "b").out


def test_information_without_bound_is_told(run: Any) -> None:
    done = run("design", "y ~ a*log(x)", "x=-1..1", "--json")
    assert done.status == 1
    assert not done.json["converged"]
    assert done.json["left_out"] > 500
    assert "the best design was not found" in done.err


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("y ~ a*x", "a=1", "x=1"), 2, "there is no region to choose rows from"),
        (("y ~ a*exp(-k*x)", "a=1", "x=0..1"), 2, "'k' has no value, and the information depends on it"),
        (("y ~ a + b*x + c*x", "x=0..1"), 1, "c: the information is singular"),
        (("y ~ a + b*x", "x=[1]"), 1, "no rows of this region determine"),
        (("y ~ a + b*x", "x=[1]", "--derive", "b"), 1, "no rows of this region determine the quantity"),
        (("y ~ a + b*x", "x=0..1", "--rows", "1"), 2, "1 rows are fewer than the 2 parameters"),
        (("y ~ a + b*x", "x=0..1", "--criterion", "E"), 2, "there is no criterion 'E'"),
        (("y ~ a + b*x", "x=0..1", "--criterion", "c"), 2, "the criterion c is for a quantity"),
        (("y ~ a + b*x", "x=0..1", "--criterion", "D", "--derive", "b"), 2, "the criterion D is for all parameters"),
        (("y ~ a + b*x", "a=1", "x=0..1", "--derive", "0*a"), 1, "the derivatives of '0*a' by the parameters are 0"),
        (("y ~ a + b*x", "x=0..1", "--sigma", "a"), 2, "the standard deviation reads 'a'"),
        (("y ~ a + b*x", "x=0..1", "--sigma", "-1"), 1, "there is no finite information at x = 0"),
        (("y ~ a + b*x", "x=0..1", "--fix", "q"), 2, "--fix names 'q', which has no value"),
        (("y ~ [a, b]*x", "x=0..1"), 1, "the model has the shape [2], and is one number for a row"),
        (("y ~ a + b*x", "x=0..1", "q=2"), 2, "the program does not read 'q'"),
        (("y ~ a + b*x", "x=0..1", "data.csv"), 2, "'data.csv' gives no name a value"),
        (("dx/dt = -k*x; y ~ x", "t=0..1", "k=1"), 2, "a design is for a formula, not for differential equations"),
        (("y ~ 1 + x", "x=0..1"), 2, "the model has no parameters to estimate"),
        (("y ~ a*x", "x=1..0"), 2, "there is nothing in this range"),
        (("y ~ a*x*1j", "x=0..1"), 1, "a design takes real numbers"),
    ],
)
def test_errors(words: tuple[str, ...], status: int, message: str, run: Any) -> None:
    done = run("design", *words)
    assert message in done.err
    assert done.status == status


def test_from_python() -> None:
    found = gradcli.design("V*c/(K + c)", {"V": 200, "c": "0.01..1"}, K=0.06, rows=4, derive="ratio=V/K")
    assert found.criterion == "c"
    assert [*found.derived] == ["ratio"]
    assert str(found).startswith("criterion")
    with pytest.raises(BindingError, match="neither a finite number, nor a range"):
        gradcli.design("a*x", a=math.nan, x=(0, 1))
    with pytest.raises(UsageError, match="no family"):
        gradcli.design("a*x", a=1, x=(0, 1), family="gamma")


@pytest.mark.slow
def test_rates_that_differ_by_a_factor_of_10000(run: Any) -> None:
    words = ("y ~ a*exp(-k*t) + b*exp(-h*t)", "a=1", "b=1", "k=0.01", "h=100", "t=0..1000")
    found = run("design", *words, "--json").json
    assert found["converged"]
    # The two terms are nearly apart: 0, 1/h, between them, and 1/k later.
    assert points(found, "t")[:, 0] == pytest.approx([0, 0.01, 0.1146, 100.1], rel=1e-3)


@pytest.mark.slow
def test_nearby_support_points_are_joined(run: Any) -> None:
    terms = " + ".join(f"b{i}*x**{i}" for i in range(8))
    found = run("design", f"y ~ {terms}", "x=-1..1", "--json").json
    # The roots of (1 - x²)P'(x) for the Legendre polynomial P of degree 7.
    inner = np.polynomial.legendre.Legendre.basis(7).deriv().roots()
    assert points(found, "x")[:, 0] == pytest.approx([-1, *sorted(inner), 1], abs=1e-7)


def test_a_jump_is_found(run: Any) -> None:
    found = run("design", "y ~ where(x < 0.5, a*x, b*x)", "x=0..1", "--json").json
    assert points(found, "x")[:, 0] == pytest.approx([0.5, 1], abs=1e-5)


def test_the_model_on_standard_input(run: Any) -> None:
    assert run("design", "-", "x=0..1", "--json", stdin="y ~ a*x").json["support"] == [
        {"point": {"x": 1.0}, "weight": 1.0}
    ]


def test_a_linear_quantity_needs_no_values(run: Any) -> None:
    found = run("design", "y ~ a + b*x", "x=-1..1", "--derive", "a + b", "--json").json
    assert found["support"] == [{"point": {"x": 1.0}, "weight": 1.0}]
    assert "'a' has no value" in run("design", "y ~ a + b*x", "x=-1..1", "--derive", "a/b").err


def test_very_large_and_small_inputs(run: Any) -> None:
    for ends in ("1e300..1.1e300", "-1e-300..1e-300"):
        found = run("design", "y ~ a + b*x", f"x={ends}", "--json").json
        assert points(found, "x")[:, 0] == pytest.approx([*map(float, ends.split(".."))])
