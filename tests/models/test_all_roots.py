"""Tests `gradcli solve --all --prove`: all roots of systems in a box, each proved, or the boxes that are left."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.models import solve


def broyden(n: int) -> str:
    """The tridiagonal system of C. G. Broyden (1965)."""
    x = ["0", *(f"x{k}" for k in range(1, n + 1)), "0"]
    return "; ".join(f"(3 - 2*{x[k]})*{x[k]} - {x[k - 1]} - 2*{x[k + 1]} + 1 = 0" for k in range(1, n + 1))


# Equations, the range of all unknowns, and how many roots there are.
SYSTEMS: dict[str, tuple[str, dict[str, tuple[float, float]], int]] = {
    "circle and line": ("x**2 + y**2 = 1; x = y", {"x": (-2, 2), "y": (-2, 2)}, 2),
    "circle and parabola": ("x**2 + y**2 = 4; y = x**2 - 1", {"x": (-3, 3), "y": (-3, 3)}, 2),
    "apart": ("x**2 + y**2 = 1; x + y = 5", {"x": (-9, 9), "y": (-9, 9)}, 0),
    "gradient of Himmelblau": (
        "2*x*(x**2 + y - 11)*2 + 2*(x + y**2 - 7); 2*(x**2 + y - 11) + 4*y*(x + y**2 - 7)",
        {"x": (-5, 5), "y": (-5, 5)},
        9,
    ),
    "Broyden, 5": (broyden(5), {f"x{k}": (-2, 2) for k in range(1, 6)}, 2),
    # Two of the problems of R. B. Kearfott, "Some tests of generalized bisection", ACM TOMS 13 (1987).
    "Kearfott 1": ("x**2 - y; y**2 - x", {"x": (-2, 2), "y": (-1, 3)}, 2),
    "Kearfott 11": ("4*x**3 - 3*x - y; x**2 - y", {"x": (-2, 2), "y": (-2, 2)}, 3),
    "Rosenbrock's gradient": ("-2*(1 - x) - 400*x*(y - x**2); 200*(y - x**2)", {"x": (-5, 5), "y": (-5, 5)}, 1),
    "sines": ("sin(x) = y/2; sin(y) = x/2", {"x": (-3, 3), "y": (-3, 3)}, 3),
    "cyclic": ("x + y + z; x*y + y*z + z*x + 3; x*y*z - 1", {"x": (-3, 3), "y": (-3, 3), "z": (-3, 3)}, 6),
    "one unknown": ("x*sin(x) = 1", {"x": (0, 20)}, 7),
    "a root at a corner": ("x + y; x - y", {"x": (0, 1), "y": (0, 1)}, 1),
    "roots where boxes are cut": ("x*(x - 1)*(x + 1); y*(y - 1)*(y + 1)", {"x": (-2, 2), "y": (-2, 2)}, 9),
    # Wide ranges, in which boxes are narrowed by each equation first.
    "Himmelblau, wide": (
        "4*x*(x**2 + y - 11) + 2*(x + y**2 - 7); 2*(x**2 + y - 11) + 4*y*(x + y**2 - 7)",
        {"x": (-1e8, 1e8), "y": (-1e8, 1e8)},
        9,
    ),
    "circles": ("x**2 + y**2 - 1; (x - 1)**2 + y**2 - 1", {"x": (-1e8, 1e8), "y": (-1e8, 1e8)}, 2),
    "Smiley and Chun 2.2": (
        "x**2 + 4*y**2 - 4; y*(x - 1.995)*(y - x**2)*(y - x + 1)",
        {"x": (-3, 3), "y": (-3, 3)},
        8,
    ),
    "powers and roots": (
        "sqrt(x) + y**3 = 3; x/y = exp(-y) + 1; z**-2 = abs(x)",
        {"x": (0, 9), "y": (-9, 9), "z": (-5, 5)},
        2,
    ),
    "a kink": ("abs(x) + abs(y) = 1; y = x/2", {"x": (-2, 2), "y": (-2, 2)}, 2),
}


def test_a_quotient_of_floats_is_0_at_a_pole() -> None:
    # Issue 131 of IntervalRootFinding.jl: the value is 0 where the inner quotient is infinite, and nothing is proved.
    found = solve("1/(1/((1 - x)*(1 + x)))", bracket={"x": (-10, 10)}, all=True, prove=True)
    assert found.proof is not None
    assert not found.roots
    for place in (-1, 1):
        assert any(box["x"][0] <= place <= box["x"][1] for box in found.proof.left)


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", SYSTEMS)
def test_all_roots_of_a_system(name: str) -> None:
    equations, ranges, count = SYSTEMS[name]
    found = solve(equations, bracket=ranges, all=True, prove=True)
    assert found.proof is not None
    assert found.proof.complete, found.message
    assert not found.proof.left
    assert len(found.roots) == count
    assert found.converged is (count > 0)
    for root in found.roots:
        assert root.box is not None
        assert root.residual < 1e-10
        for unknown, (low, high) in root.box.items():
            assert low <= root.point[unknown] <= high
            assert high - low < 1e-9


def asked(run: Any, *words: str) -> tuple[int, dict[str, Any]]:
    done = run("solve", *words, "--all", "--prove", "--json")
    return done.status, json.loads(done.out)


def test_the_keys_and_the_derivatives(run: Any) -> None:
    status, found = asked(run, "x**2 + y**2 = r; x = y", "x=0..2", "y=0..2", "r=2")
    assert status == 0
    assert list(found) == ["schema", "program", "roots", "converged", "message", "proof"]
    (root,) = found["roots"]
    assert list(root) == ["point", "residual", "condition", "derivatives", "box"]
    assert root["derivatives"]["x"]["r"] == pytest.approx(0.25)
    assert found["proof"] == {"complete": True, "left": [], "unlisted": 0, "boxes": found["proof"]["boxes"]}
    assert found["message"] == "1 root, which is proved to be all in the box"


@pytest.mark.parametrize(
    ("equation", "ranges", "roots"),
    [
        # Roots at the ends of ranges, whose Newton images never lie inside.
        ("x**2 = 4", ["x=0..2"], [2.0]),
        ("(x - 1)*(x - 3)", ["x=1..3"], [1.0, 3.0]),
        ("x**3 - x", ["x=-1..1"], [-1.0, 0.0, 1.0]),
        ("x**2 = 2", ["x=0..1.4142135623730947"], []),
        # The floats of these ends are on the outer and on the inner side of the fractions.
        ("x - 0.1", ["x=0.1..1"], [0.1]),
        ("x - 0.1", ["x=0..0.1"], [0.1]),
        ("x - 0.3", ["x=0..0.3"], [0.3]),
        ("3*x - 1", ["x=0..1/3"], [1 / 3]),
        ("x*(x - 0.7)", ["x=0.7..3"], [0.7]),
        ("x - 0.1", ["x=0.11..1"], []),
    ],
)
def test_roots_at_the_ends_of_a_range(run: Any, equation: str, ranges: list[str], roots: list[float]) -> None:
    status, found = asked(run, equation, *ranges)
    assert [root["point"]["x"] for root in found["roots"]] == pytest.approx(roots, abs=1e-12)
    assert found["proof"]["complete"]
    assert status == (0 if roots else 1)


@pytest.mark.parametrize(
    ("equations", "ranges", "point"),
    [
        ("(x - 1)**2", ["x=-3..3"], {"x": 1.0}),
        ("x**2 + y**2 = 1; x = 1", ["x=-3..3", "y=-3..3"], {"x": 1.0, "y": 0.0}),
        ("x**4", ["x=-1..2"], {"x": 0.0}),
        # Powers of numbers below 0, which only whole exponents have.
        ("(-2)**x = 4", ["x=0.5..3"], {"x": 2.0}),
    ],
)
def test_double_roots_are_in_the_boxes_that_are_left(
    run: Any, equations: str, ranges: list[str], point: dict[str, float]
) -> None:
    status, found = asked(run, equations, *ranges)
    assert status == 1
    assert not found["proof"]["complete"]
    assert any(all(box[n][0] <= x <= box[n][1] for n, x in point.items()) for box in found["proof"]["left"])
    assert "may contain more" in found["message"]


def test_a_curve_of_roots_is_covered(run: Any) -> None:
    status, found = asked(run, "x*y; x*y*2", "x=-1..1", "y=-1..1", "--max-steps", "50000")
    assert status == 1
    boxes = found["proof"]["left"]
    for t in np.linspace(-1, 1, 9):
        for point in ({"x": t, "y": 0.0}, {"x": 0.0, "y": t}):
            assert any(all(box[n][0] <= x <= box[n][1] for n, x in point.items()) for box in boxes)


def test_no_root_is_proved(run: Any) -> None:
    done = run("solve", "x**2 + y**2 = -1; x = y", "x=-5..5", "y=-5..5", "--all", "--prove")
    assert done.status == 1
    assert done.err == "error: no root in the box, which is proved\n"


def test_where_equations_have_no_value() -> None:
    found = solve("log(x) = y; x + y = 1", bracket={"x": (-3, 3), "y": (-3, 3)}, all=True, prove=True)
    assert found.proof is not None
    assert found.proof.complete
    assert [root.point for root in found.roots] == [{"x": pytest.approx(1.0), "y": pytest.approx(0.0, abs=1e-12)}]


def test_digits_of_all_roots(run: Any) -> None:
    status, found = asked(run, "x**2 + y**2 = 1; x = y", "x=-2..2", "y=-2..2", "--digits", "30")
    assert status == 0
    assert [root["point"]["x"] for root in found["roots"]] == [
        "-0.707106781186547524400844362105",
        "0.707106781186547524400844362105",
    ]


@pytest.mark.slow
def test_limits_leave_boxes(run: Any) -> None:
    equations = "; ".join(f"sum(sin(stack([a, b, c, d])*{k + 1}))*{k + 1} = {name}" for k, name in enumerate("abcd"))
    status, found = asked(run, equations, *(f"{n}=-9..9" for n in "abcd"), "--max-steps", "60000")
    assert status == 1
    assert found["proof"]["left"]
    assert "more than" in found["message"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bracket": {"x": (0, 1), "y": (0, 1)}}, BindingError, "two brackets"),
        ({"bracket": {"x": (0, 1), "y": (0, 1)}, "prove": True}, UsageError, "all roots"),
        ({"bracket": {"x": (0, 1)}, "start": {"y": 1}, "prove": True, "all": True}, UsageError, "range of 'y'"),
        ({"bracket": {"x": (1, 0), "y": (0, 1)}, "prove": True, "all": True}, UsageError, "no number in the range"),
        ({"bracket": {"x": (0, math.inf), "y": (0, 1)}, "prove": True, "all": True}, UsageError, "no number"),
    ],
)
def test_what_a_proof_needs(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        solve("x = y; x*y = 1", **options)


def test_the_ends_of_a_range_are_real(run: Any) -> None:
    done = run("solve", "x**2 = -1", "x=-3..3+0j", "--all")
    assert done.status == 2
    assert done.err.startswith("error: an end of a bracket is a real number\n  | x=-3..3+0j\n")


def test_branches_cannot_be_proved() -> None:
    with pytest.raises(EvaluationError, match="a proof needs the same operations"):
        solve("(x if x > 0 else -x) = 1", bracket={"x": (-2, 3)}, all=True, prove=True)
