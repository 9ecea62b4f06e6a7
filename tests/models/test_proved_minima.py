"""Tests `gradcli minimize --prove`: proved bounds contain published minima, and boxes their points."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.proofs import box_arithmetic
from gradcli.proofs.box_arithmetic import BoxInterval

# Programs, bounds, the global minimum, and points at which it is taken.
PROBLEMS: dict[str, tuple[str, str, float, list[dict[str, float]]]] = {
    "Rosenbrock": ("(1 - x)**2 + 100*(y - x**2)**2", "x=-5:5,y=-5:5", 0.0, [{"x": 1, "y": 1}]),
    "six-hump camel": (
        "(4 - 2.1*x**2 + x**4/3)*x**2 + x*y + (4*y**2 - 4)*y**2",
        "x=-3:3,y=-2:2",
        -1.031628453489877,
        [{"x": 0.08984201, "y": -0.7126564}, {"x": -0.08984201, "y": 0.7126564}],
    ),
    "three-hump camel": ("2*x**2 - 1.05*x**4 + x**6/6 + x*y + y**2", "x=-5:5,y=-5:5", 0.0, [{"x": 0, "y": 0}]),
    "Himmelblau": (
        "(x**2 + y - 11)**2 + (x + y**2 - 7)**2",
        "x=-5:5,y=-5:5",
        0.0,
        [
            {"x": 3, "y": 2},
            {"x": -2.805118, "y": 3.131313},
            {"x": -3.779310, "y": -3.283186},
            {"x": 3.584428, "y": -1.848127},
        ],
    ),
    "Booth": ("(x + 2*y - 7)**2 + (2*x + y - 5)**2", "x=-10:10,y=-10:10", 0.0, [{"x": 1, "y": 3}]),
    "Beale": (
        "(1.5 - x + x*y)**2 + (2.25 - x + x*y**2)**2 + (2.625 - x + x*y**3)**2",
        "x=-4.5:4.5,y=-4.5:4.5",
        0.0,
        [{"x": 3, "y": 0.5}],
    ),
    "Matyas": ("0.26*(x**2 + y**2) - 0.48*x*y", "x=-10:10,y=-10:10", 0.0, [{"x": 0, "y": 0}]),
    "Rastrigin": (
        "20 + x**2 + y**2 - 10*(cos(2*pi*x) + cos(2*pi*y))",
        "x=-5.12:5.12,y=-5.12:5.12",
        0.0,
        [{"x": 0, "y": 0}],
    ),
    "Griewank": ("1 + (x**2 + y**2)/4000 - cos(x)*cos(y/sqrt(2))", "x=-60:50,y=-60:50", 0.0, [{"x": 0, "y": 0}]),
    "Branin": (
        "(y - 5.1/(4*pi**2)*x**2 + 5/pi*x - 6)**2 + 10*(1 - 1/(8*pi))*cos(x) + 10",
        "x=-5:10,y=0:15",
        0.397887357729739,
        [{"x": -math.pi, "y": 12.275}, {"x": math.pi, "y": 2.275}, {"x": 3 * math.pi, "y": 2.475}],
    ),
    "Easom": (
        "-cos(x)*cos(y)*exp(-(x - pi)**2 - (y - pi)**2)",
        "x=-10:10,y=-10:10",
        -1.0,
        [{"x": math.pi, "y": math.pi}],
    ),
    "McCormick": (
        "sin(x + y) + (x - y)**2 - 1.5*x + 2.5*y + 1",
        "x=-1.5:4,y=-3:4",
        -1.913222954981037,
        [{"x": -0.5471976, "y": -1.5471976}],
    ),
    # Entropies, whose terms are 0*-inf at a bound, which was divided as far as floats go.
    "x*log(x)": ("x*log(x)", "x=0:1", -1 / math.e, [{"x": 1 / math.e}]),
    "entropy": (
        "x*log(x) + y*log(y) + (1 - x - y)*log(1 - x - y)",
        "x=0:0.45,y=0:0.45",
        -math.log(3),
        [{"x": 1 / 3, "y": 1 / 3}],
    ),
    "Levy 13": (
        "sin(3*pi*x)**2 + (x - 1)**2*(1 + sin(3*pi*y)**2) + (y - 1)**2*(1 + sin(2*pi*y)**2)",
        "x=-10:10,y=-10:10",
        0.0,
        [{"x": 1, "y": 1}],
    ),
    "Schaffer 2": (
        "0.5 + (sin(x**2 - y**2)**2 - 0.5)/(1 + 0.001*(x**2 + y**2))**2",
        "x=-10:11,y=-10:11",
        0.0,
        [{"x": 0, "y": 0}],
    ),
    "Ackley": (
        "-20*exp(-0.2*sqrt(0.5*(x**2 + y**2))) - exp(0.5*(cos(2*pi*x) + cos(2*pi*y))) + exp(1) + 20",
        "x=-5:6,y=-5:6",
        0.0,
        [{"x": 0, "y": 0}],
    ),
    "Hartmann 3": (
        "-sum([1, 1.2, 3, 3.2]*exp(-sum([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]*([x, y, z] - "
        "[[0.3689, 0.117, 0.2673], [0.4699, 0.4387, 0.747], [0.1091, 0.8732, 0.5547], [0.03815, 0.5743, 0.8828]])**2, "
        "axis=1)))",
        "x=0:1,y=0:1,z=0:1",
        -3.862782147820756,
        [{"x": 0.114614, "y": 0.555649, "z": 0.852547}],
    ),
    "Shekel 5": (
        "-sum(1/(sum(([a, b, c, d] - [[4, 4, 4, 4], [1, 1, 1, 1], [8, 8, 8, 8], [6, 6, 6, 6], [3, 7, 3, 7]])**2, "
        "axis=1) + [0.1, 0.2, 0.2, 0.4, 0.4]))",
        "a=0:10,b=0:10,c=0:10,d=0:10",
        -10.15319967905823,
        [{"a": 4.000037, "b": 4.000133, "c": 4.000037, "d": 4.000133}],
    ),
    "a kink": (
        "abs(x - 1) + abs(y + 2) + max(x, y)",
        "x=-10:10,y=-10:10",
        1.0,
        [{"x": 1, "y": -2}, {"x": -2, "y": -2}],
    ),
    "jumps": ("floor(x) + abs(x)", "x=-1:5", -1.0, [{"x": 0 - 1e-9}]),
    "on the boundary": ("x**2 + 2*x*y", "x=1:2,y=-1:1", -1.0, [{"x": 1, "y": -1}]),
}


def inside(point: dict[str, float], box: dict[str, Any], margin: float = 1e-6) -> bool:
    return all(box[name][0] - margin <= x <= box[name][1] + margin for name, x in point.items())


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", PROBLEMS)
def test_proved_bounds_contain_published_minima(name: str) -> None:
    program, bounds, minimum, points = PROBLEMS[name]
    names = [part.partition("=")[0] for part in bounds.split(",")]
    ends = [part.partition("=")[2].split(":") for part in bounds.split(",")]
    start = {n: 0.3 * float(low) + 0.7 * float(high) for n, (low, high) in zip(names, ends)}
    found = gradcli.minimize(program, start, bounds=bounds, prove=True)
    assert found.converged
    proof = found.proof
    assert proof is not None
    assert proof.closed
    # Published decimals are rounded.
    rounding = 1e-14 * max(1.0, abs(minimum))
    assert proof.low - rounding <= minimum <= proof.high + rounding
    assert proof.high - proof.low <= 1.1e-8 * max(1.0, abs(minimum))
    assert math.isclose(found.value, minimum, rel_tol=1e-8, abs_tol=1e-8)
    for point in points:
        assert any(inside(point, each.box) for each in proof.minimisers), point


def asked(run: Any, *words: str) -> dict[str, Any]:
    done = run("minimize", *words, "--prove", "--json")
    assert (done.status, done.err) == (0, "")
    return dict(json.loads(done.out))


def test_the_keys_of_a_proof(run: Any) -> None:
    found = asked(run, "(x - 1)**2 + y**2", "x=0", "y=1", "--bounds", "x=-2:2,y=-2:2")
    assert list(found["proof"]) == ["low", "high", "closed", "minimisers", "left", "boxes"]
    (minimiser,) = found["proof"]["minimisers"]
    assert list(minimiser) == ["box", "unique"]
    assert minimiser["unique"]
    assert inside({"x": 1, "y": 0}, minimiser["box"])
    assert found["message"] == "the global minimum, which is proved"


def test_a_maximum(run: Any) -> None:
    found = asked(run, "x*(1 - x)*y", "x=0.1", "y=1", "--bounds", "x=0:1,y=0:2", "--max")
    assert found["proof"]["low"] <= 0.5 <= found["proof"]["high"]
    assert found["message"] == "the global maximum, which is proved"
    assert inside({"x": 0.5, "y": 2}, found["proof"]["minimisers"][0]["box"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "bounds", "conditions", "minimum"),
    [
        ("x**2 + y**2", "x=-5:5,y=-5:5", ["x + y >= 2"], 2.0),
        # Problem 4.10 of C. A. Floudas and P. M. Pardalos, A Collection of Test Problems, 1990.
        (
            "-x - y",
            "x=0:3,y=0:4",
            ["y <= 2*x**4 - 8*x**3 + 8*x**2 + 2", "y <= 4*x**4 - 32*x**3 + 88*x**2 - 96*x + 36"],
            -5.508013271595342,
        ),
        # Problem 24 of W. Hock and K. Schittkowski, Test Examples for Nonlinear Programming Codes, 1981.
        (
            "((x - 3)**2 - 9)*y**3/(27*sqrt(3))",
            "x=0:6,y=0:4",
            ["x/sqrt(3) >= y", "x + sqrt(3)*y >= 0", "x + sqrt(3)*y <= 6"],
            -1.0,
        ),
    ],
)
def test_conditions(program: str, bounds: str, conditions: list[str], minimum: float) -> None:
    found = gradcli.minimize(program, x=1, y=0.5, bounds=bounds, subject_to=conditions, prove=True)
    assert found.converged
    assert found.proof is not None
    rounding = 1e-15 * abs(minimum)
    assert found.proof.low <= minimum + rounding
    assert found.proof.high >= minimum - rounding
    assert found.proof.high - found.proof.low < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "bounds", "conditions", "minimum"),
    [
        # Problem 71 of W. Hock and K. Schittkowski, Test Examples for Nonlinear Programming Codes, 1981.
        (
            "x*w*(x + y + z) + z",
            "x=1:5,y=1:5,z=1:5,w=1:5",
            ["x*y*z*w >= 25", "x**2 + y**2 + z**2 + w**2 = 40"],
            17.01401728916,
        ),
        ("x + y", "x=-5:5,y=-5:5", ["x**2 + y**2 = 2"], -2.0),
        ("x**2 + y", "x=0:3,y=1:3", ["x*y = 3"], 3 * 1.5 ** (2 / 3)),
        # The minima are at vertices of the box.
        ("-x - y", "x=0:3,y=1:3", ["x*y = 3"], -4.0),
        # Two equations for two names.
        ("x - y", "x=-3:3,y=-3:3", ["x**2 + y**2 = 4", "y = x**2 - 1"], -2.820265551283974),
    ],
)
def test_equations(program: str, bounds: str, conditions: list[str], minimum: float) -> None:
    start = {name.partition("=")[0]: 2.0 for name in bounds.split(",")}
    found = gradcli.minimize(program, start, bounds=bounds, subject_to=conditions, prove=True)
    assert found.converged
    assert found.proof is not None
    assert found.proof.low <= minimum + 1e-10
    assert found.proof.high >= minimum - 1e-10
    assert found.proof.high - found.proof.low < 1e-6


def _polynomial(generator: np.random.Generator, names: list[str]) -> str:
    """A random polynomial with whole coefficients, products of two variables, and a square."""
    terms = [f"{generator.integers(-3, 4)}*{a}*{b}" for a, b in itertools.combinations(names, 2)]
    terms += [f"{generator.integers(-3, 4)}*{name}" for name in names]
    return " + ".join([*terms, f"{generator.integers(-2, 3)}*{names[0]}**2"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_bounds_contain_a_minimum_that_is_known_by_construction(seed: int) -> None:
    # A sum of squares and a condition that hold exactly at a point, whose coordinates are quarters.
    generator = np.random.default_rng(seed)
    names = ["x", "y", "z"][: 2 + seed % 2]
    point = {name: int(generator.integers(-6, 7)) / 4 for name in names}
    parts = [_polynomial(generator, names) for _ in range(3)]
    values = [eval(part, {}, point) for part in parts]
    least = int(generator.integers(-3, 4))
    squares = " + ".join(f"({part} - ({value}))**2" for part, value in zip(parts[:2], values))
    relation = "=" if seed < 3 else "<="
    condition = f"{parts[2]} {relation} {values[2]}"
    bounds = dict.fromkeys(names, (-3, 3))
    start = dict.fromkeys(names, 0.3)
    found = gradcli.minimize(f"{squares} + {least}", start, bounds=bounds, subject_to=condition, prove=True)
    assert found.proof is not None
    assert found.proof.low is not None
    assert found.proof.low <= least
    assert found.proof.high is None or least <= found.proof.high
    assert found.proof.left or any(inside(point, each.box) for each in found.proof.minimisers)


@pytest.mark.slow
def test_conditions_that_cut_all_boxes_at_once() -> None:
    # Problem 14.1.8 of C. A. Floudas et al., Handbook of Test Problems in Local and Global Optimization, 1999.
    first = "(0.0476666666666666 - 0.0649999999999999*x)*exp(10*x/(1 + 0.01*x)) - x"
    second = "(0.143 - 0.13*x - 0.195*y)*exp(10*y/(1 + 0.01*y)) + x - 3*y"
    conditions = [f"{sign}({each}) - z <= 0" for each in (first, second) for sign in ("", "-")]
    bounds = {"x": (0, 1), "y": (0, 1), "z": (-1e8, 1e8)}
    start = {"x": 0.5, "y": 0.5, "z": 1.0}
    found = gradcli.minimize("z", start, bounds=bounds, subject_to=conditions, prove=True)
    assert found.proof is not None
    assert found.proof.closed
    assert found.proof.low is not None
    assert abs(found.proof.low) < 1e-9


@pytest.mark.slow
def test_equations_that_contradict_each_other(run: Any) -> None:
    words = ["--bounds", "x=-3:3,y=-3:3", "--subject-to", "x*y = 1", "--subject-to", "x + y = 0", "--prove"]
    done = run("minimize", "x**2 + y", "x=1", "y=1", *words)
    assert done.status == 1
    assert done.err.startswith("error: no point of the box meets the conditions, which is proved\n")


def test_whole_numbers(run: Any) -> None:
    program = "(x - 2.4)**2 + (y - 0.6*x)**2 + 0.1*x*y"
    found = asked(run, program, "x=0", "y=0", "--bounds", "x=-10:10,y=-10:10", "--integer", "x,y")
    values = {
        (x, y): (x - 2.4) ** 2 + (y - 0.6 * x) ** 2 + 0.1 * x * y
        for x, y in itertools.product(range(-10, 11), repeat=2)
    }
    x, y = min(values, key=values.__getitem__)
    low, point = values[x, y], {"x": x, "y": y}
    assert found["point"] == point
    assert math.isclose(found["value"], low)
    assert found["proof"]["low"] <= low + 1e-15
    assert [each["box"] for each in found["proof"]["minimisers"]] == [{n: [v, v] for n, v in point.items()}]


@pytest.mark.slow
def test_whole_numbers_beside_others() -> None:
    found = gradcli.minimize("(x - n/3)**2 + sin(n)*x", x=0, n=1, bounds="x=-5:5,n=-6.5:6.5", prove=True, integer="n")
    values = {n: min((x - n / 3) ** 2 + math.sin(n) * x for x in np.linspace(-5, 5, 100_001)) for n in range(-6, 7)}
    # The objective is even: there are two.
    best = min(values, key=values.__getitem__)
    assert abs(found.point["n"]) == abs(best)
    assert math.isclose(found.value, values[best], abs_tol=1e-8)


def test_arrays_and_constants() -> None:
    found = gradcli.minimize(
        "sum((w - c)**2)", w=[0.0, 0.0], c=[1.0, 2.0], const="c", bounds={"w": (-1, 1.5)}, prove=True
    )
    assert found.proof is not None
    assert found.proof.low <= 0.25 <= found.proof.high
    assert np.allclose(found.point["w"], [1, 1.5])


def test_a_box_without_feasible_points(run: Any) -> None:
    done = run("minimize", "x**2", "x=1", "--bounds", "x=-1:1", "--subject-to", "x >= 3", "--prove")
    assert done.status == 1
    assert done.err.startswith("error: no point of the box meets the conditions, which is proved\n")


@pytest.mark.slow
def test_a_pole_is_not_closed(run: Any) -> None:
    done = run("minimize", "1/x", "x=3", "--bounds", "x=-1:5", "--prove", "--json")
    proof = json.loads(done.out)["proof"]
    assert done.status == 1
    assert proof["low"] is None
    assert not proof["closed"]
    assert "not closed" in done.err


@pytest.mark.slow
def test_limits_end_with_bounds(run: Any) -> None:
    words = [
        "sum(sin(w*w[::-1]*3)*exp(0.3*w)) + sum(cos(w)*w)",
        "w=[0.1,0.2,0.3,0.4,0.5,0.6]",
        "--bounds",
        "w=-9:9",
        "--prove",
    ]
    done = run("minimize", *words, "--max-steps", "30000", "--json")
    found = json.loads(done.out)
    assert done.status == 1
    assert found["proof"]["low"] <= found["proof"]["high"]
    assert "more than" in found["message"]


@pytest.mark.parametrize(
    ("further", "error", "message"),
    [
        ({}, BindingError, "'x' has none on one side"),
        ({"bounds": "x=0:"}, BindingError, "'x' has none on one side"),
        ({"bounds": "x=0:2", "global_": True}, UsageError, "--prove and --global"),
        ({"bounds": "x=0:2", "method": "adam"}, UsageError, "--prove and --method adam"),
        ({"bounds": "x=0:2", "integer": "y"}, BindingError, "'y' is to be a whole number"),
    ],
)
def test_what_a_proof_needs(further: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gradcli.minimize("x**2", x=1, prove=True, **further)


def test_whole_numbers_need_a_proof() -> None:
    with pytest.raises(UsageError, match="for --prove"):
        gradcli.minimize("x**2", x=1, integer="x")


@pytest.mark.parametrize("program", ["x if x > 0.5 else -x", "x*x.detach()"])
def test_programs_without_a_proof(program: str) -> None:
    with pytest.raises(EvaluationError, match="a proof needs"):
        gradcli.minimize(program, x=1, bounds="x=0:2", prove=True)


def test_powers_of_numbers_below_0_have_both_signs() -> None:
    found = gradcli.minimize("x**n", x=1, n=2, bounds="x=-2:1,n=0:3", integer="n", prove=True, max_steps=100_000)
    assert found.proof is not None
    assert found.proof.low is not None
    assert found.proof.low == pytest.approx(-8)


def test_a_cusp_is_a_minimum() -> None:
    found = gradcli.minimize("abs(x)**0.5", x=0.61, bounds="x=-1:1.3", prove=True)
    assert found.proof is not None
    assert found.proof.closed
    assert found.proof.low == 0


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("program", "bounds", "minimum", "point"),
    [
        ("sqrt(x)", "x=-1:1", 0.0, {"x": 0.0}),
        ("0.1*sqrt(x) - 0.02*cos(300*x)", "x=-0.7:1", -0.02, {"x": 0.0}),
        ("sqrt(x) + sqrt(y)", "x=-3:3,y=-1:1", 0.0, {"x": 0.0, "y": 0.0}),
        ("x - 0.02*cos(300*x) + x*sqrt(x)", "x=-0.7:1", -0.02, {"x": 0.0}),
    ],
)
def test_a_minimum_may_be_at_the_end_of_a_domain(program, bounds, minimum, point) -> None:
    proof = gradcli.minimize(program, dict.fromkeys(point, 0.5), bounds=bounds, prove=True).proof
    assert proof.low <= minimum <= proof.high
    assert any(all(low <= point[n] <= high for n, (low, high) in each.box.items()) for each in proof.minimisers)


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["sqrt(x) >= 0", "sqrt(x) <= 5", "x*sqrt(x) >= -1"])
def test_a_condition_holds_where_it_has_a_value_alone(condition: str) -> None:
    found = gradcli.minimize("x", x=0.5, bounds="x=-1:1", subject_to=condition, prove=True)
    assert (found.proof.low, found.proof.high) == (0.0, 0.0)
    assert found.converged


@pytest.mark.cases(1)
@pytest.mark.parametrize("program", ["max(x, y)", "abs(x) + abs(y - x) - 1", "abs(x - y) + max(-x, 2*x) - 1"])
def test_a_proof_may_begin_at_a_kink(program: str) -> None:
    found = gradcli.minimize(program, x=0, y=0, bounds="x=-1:1,y=-2:2", prove=True)
    assert found.converged
    assert found.proof.low <= -1.0 <= found.proof.high


def test_bounds_of_a_number_times_its_logarithm() -> None:
    generator = np.random.default_rng(0)
    for _ in range(2_000):
        low, high = np.sort(generator.choice([0.0, 1e-300, 1 / math.e, 1.0, 2.0, *generator.random(4) * 3], 2))
        box = BoxInterval(np.array([low]), np.array([high]))
        with np.errstate(all="ignore"):
            found = box_arithmetic.times_logarithm(box, box_arithmetic.logarithm(box))
        places = low + (high - low) * generator.random(20)
        values = [x * math.log(x) for x in places if x > 0]
        assert all(found.low[0] <= v + 1e-15 and v - 1e-15 <= found.high[0] for v in values)
        # At 0 itself it is no number.
        assert high == 0 or np.isfinite([found.low[0], found.high[0]]).all()
