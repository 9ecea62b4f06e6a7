"""Tests `gradcli minimize` and `gradcli.minimize`: published minima, constraints, multipliers, sensitivities,
failures."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, CallError, GradcliError, UsageError

PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "minima.json").read_text())
DATA = "t,y\n0,2\n1,1.2\n2,0.7\n3,0.45\n4,\n5,0.2\n"


def number(text: Any) -> Any:
    return np.asarray(gradcli.compile(str(text))())


@pytest.mark.cases(6)
@pytest.mark.parametrize("problem", PUBLISHED["unconstrained"], ids=lambda problem: problem["name"])
def test_published_minima(problem: dict[str, Any]) -> None:
    found = gradcli.minimize(problem["program"], {name: number(v) for name, v in problem["start"].items()})
    assert found.converged
    assert found.kind in ("minimum", "flat")
    assert any(math.isclose(found.value, value, rel_tol=1e-5, abs_tol=1e-16) for value in problem["value"])


@pytest.mark.parametrize("problem", PUBLISHED["constrained"], ids=lambda problem: f"HS{problem['name']}")
def test_published_minima_under_constraints(problem: dict[str, Any]) -> None:
    start = {name: number(v) for name, v in (word.split("=") for word in problem["start"].split())}
    bounds, constraints = problem.get("bounds"), problem.get("subject_to", ())
    found = gradcli.minimize(problem["program"], start, bounds=bounds, subject_to=constraints)
    assert found.converged
    assert math.isclose(found.value, float(number(problem["value"])), rel_tol=2e-8, abs_tol=1e-10)


def asked(run: Any, *words: str, **further: Any) -> dict[str, Any]:
    done = run("minimize", *words, "--json", **further)
    assert (done.status, done.err) == (0, "")
    return dict(json.loads(done.out))


def test_the_keys_and_their_order(run: Any) -> None:
    found = asked(run, "(x - 3)**2 + 2*y**2", "x=0.5", "y=1")
    assert found == {
        "schema": "gradcli/1",
        "program": "(x - 3)**2 + 2*y**2",
        "value": 0.0,
        "point": {"x": 3.0, "y": 0.0},
        "gradient_norm": 0.0,
        "eigenvalues": {"min": 2.0, "max": 4.0},
        "kind": "minimum",
        "multipliers": None,
        "sensitivity": None,
        "iterations": 2,
        "evaluations": 5,
        "converged": True,
        "message": "a minimum",
    }


@pytest.mark.parametrize("method", ["auto", "slsqp", "trust-constr"])
def test_methods_with_constraints_end_on_those_that_hold(method, run):
    words = ["(x - 1)**2 + (y - 2)**2", "x=0", "y=0", "--subject-to", "x + y = 1", "--subject-to", "x >= 0.2"]
    found = run("minimize", *words, "--method", method, "--json")
    assert found.status == 0
    assert found.json["point"] == pytest.approx({"x": 0.2, "y": 0.8}, abs=1e-14)
    assert found.json["multipliers"] == pytest.approx({"x + y = 1": 2.4, "x >= 0.2": 0.8})


@pytest.mark.parametrize("method", ["newton", "bfgs", "l-bfgs", "trust-exact", "trust-krylov", "slsqp", "trust-constr"])
def test_every_method_finds_a_minimum(run: Any, method: str) -> None:
    found = asked(run, "(1 - x)**2 + 10*(y - x**2)**2 + sum(w**2)", "x=-1.2", "y=1", "w=[1,2]", "--method", method)
    assert [found["point"]["x"], found["point"]["y"], *found["point"]["w"]] == pytest.approx([1, 1, 0, 0], abs=1e-6)


def test_a_maximum(run: Any) -> None:
    found = asked(run, "x*exp(-x)", "x=0.5", "--max")
    assert found["value"] == pytest.approx(math.exp(-1), rel=1e-14)
    assert (found["kind"], found["eigenvalues"]["max"]) == ("maximum", pytest.approx(-math.exp(-1)))


def test_multipliers_and_sensitivities(run: Any) -> None:
    """The minimum is c**2/2 at the point c/2, where x + y >= c is active."""
    words = ("x**2 + y**2", "x=1", "y=1", "c=3", "z=0", "--const", "z", "--subject-to", "x + y >= c + z")
    found = asked(run, *words, "--sensitivity", "c,z")
    assert found["multipliers"] == {"x + y >= c + z": pytest.approx(3.0)}
    for name in ("c", "z"):
        moved = found["sensitivity"][name]
        assert moved["value"] == pytest.approx(3.0)
        assert moved["point"] == {"x": pytest.approx(0.5), "y": pytest.approx(0.5)}


def test_sensitivities_are_those_of_minima_nearby() -> None:
    program, start = "(x - a)**4 + x**2*b + y**2*a - sin(b*y)", {"x": 1.0, "y": 0.5}

    def at(a: float, b: float) -> Any:
        return gradcli.minimize(program, start, a=a, b=b, const=["a"], sensitivity="b", subject_to="y <= x*0.3 + b")

    moved, step = at(0.8, 0.4).sensitivity["b"], 1e-5
    after, before = at(0.8, 0.4 + step), at(0.8, 0.4 - step)
    assert moved.value == pytest.approx((after.value - before.value) / (2 * step), rel=1e-8)
    for name in ("x", "y"):
        assert moved.point[name] == pytest.approx((after.point[name] - before.point[name]) / (2 * step), rel=1e-6)


def test_a_bound_holds(run: Any) -> None:
    found = asked(run, "(x - 3)**2 + y**2", "x=0.5", "y=1", "--bounds", "x=0:1,y=-5:")
    assert (found["kind"], found["point"]) == ("bound", {"x": 1.0, "y": 0.0})
    assert found["multipliers"] == {"x <= 1.0": 4.0}


def test_many_starts(run: Any) -> None:
    found = asked(run, "(x**2 - 1)**2 + x/10", "x=2", "--bounds", "x=-3:3", "--global")
    assert (found["minima"], found["kind"]) == (2, "minimum")
    assert found["point"]["x"] == pytest.approx(-1.01228, abs=1e-4)


_EGGHOLDER = "-(y + 47)*sin(sqrt(abs(x/2 + y + 47))) - x*sin(sqrt(abs(x - y - 47)))"
_SCHWEFEL = "2094.9144363621695 - sum(x*sin(sqrt(abs(x))))"
_RASTRIGIN = "50 + sum(x**2 - 10*cos(2*pi*x))"
_ACKLEY = "20 + e - 20*exp(-0.2*sqrt(mean(x**2))) - exp(mean(cos(2*pi*x)))"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words", "least"),
    [
        (_EGGHOLDER, ["x=0", "y=0", "--bounds", "x=-512:512,y=-512:512"], -959.6406627208506),
        # The gradient vanishes at the given start and at the minimum.
        (_SCHWEFEL, ["x=zeros(5)", "--bounds", "x=-500:500", "--starts", "20"], 0.0),
        (_RASTRIGIN, ["x=zeros(5)+4", "--bounds", "x=-5.12:5.12", "--seed", "3", "--starts", "20"], 0.0),
        (_ACKLEY, ["x=zeros(5)+9", "--bounds", "x=-32:32", "--starts", "20"], 0.0),
    ],
)
def test_the_lowest_of_many_minima(run: Any, program: str, words: list[str], least: float) -> None:
    found = asked(run, program, *words, "--global")
    assert found["value"] == pytest.approx(least, rel=1e-10, abs=1e-7)
    assert found["message"].endswith(" of them once: there are more, and there may be a lower one")


def test_how_sure_a_global_minimum_is(run: Any) -> None:
    found = asked(run, "(x**2 - 1)**2 + x/10", "x=2", "--bounds", "x=-3:3", "--starts", "9", "--max")
    assert found["message"] == (
        "a maximum that bounds hold: the highest of 3 that 11 searches found, which does not prove that there is no higher one"
    )


def test_a_global_minimum_under_constraints(run: Any) -> None:
    """On the circle x = √2·cos t it is a minimum of one variable, which a grid finds."""
    t = np.linspace(-np.pi, np.pi, 200_001)
    x, y = math.sqrt(2) * np.cos(t), math.sqrt(2) * np.sin(t)
    words = ["sin(3*x) + cos(5*y)*x", "x=1", "y=1", "--bounds", "x=-5:5,y=-5:5", "--subject-to", "x**2 + y**2 <= 2"]
    found = asked(run, *words, "--starts", "10")
    assert found["value"] <= (np.sin(3 * x) + np.cos(5 * y) * x).min() + 1e-8


def test_a_global_search_tells_what_it_found_before_a_limit(run: Any) -> None:
    words = [
        "sum((a*exp(-b*t) + c - 1/(1 + t))**2)",
        "a=1",
        "b=1",
        "c=0",
        "t=linspace(0, 5, 999)",
        "--const",
        "t",
        "--global",
    ]
    found = asked(run, *words, "--max-elements", "30000000")
    assert re.search(
        r"the only one that \d searches found before a limit was met: there may be a lower one$", found["message"]
    )


@pytest.mark.parametrize(("starts", "said"), [("0", "--starts"), ("10001", "is 10001, and at most 10,000")])
def test_a_number_of_starts_is_within_limits(run: Any, starts: str, said: str) -> None:
    done = run("minimize", "x**2", "x=1", "--starts", starts)
    assert (done.status, said in done.err) == (2, True)


def test_a_global_search_without_any_number(run: Any) -> None:
    done = run("minimize", "log(-1 - x**2)", "x=1", "--global")
    assert (done.status, done.err.splitlines()[0]) == (
        1,
        "error: there is no number, or no gradient, at the start: 'log' gives nan for operand -2.0; "
        "write log(-1 - x**2+0j) for complex numbers",
    )


def test_a_minimum_that_rounds_to_0_has_all_its_digits(run: Any) -> None:
    """Values around it round to 0, and do not show where the gradient vanishes."""
    found = asked(run, "20 + sum(x**2 - 10*cos(2*pi*x))", "x=[1e-9,-3e-9]", "--method", "newton")
    assert abs(np.array(found["point"]["x"])).max() < 1e-15


def test_a_saddle_is_left_and_said(run: Any) -> None:
    assert asked(run, "x**2 - y**2 + y**4", "x=1", "y=0")["value"] == pytest.approx(-0.25)
    done = run("minimize", "x**2 - y**2 + y**4", "x=1", "y=0", "--method", "bfgs", "--json")
    assert (done.status, json.loads(done.out)["kind"]) == (1, "saddle")
    assert "saddle" in json.loads(done.err)["error"]["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("2*x + 1", "x=1"), "the objective falls without a bound"),
        (("log(x)", "x=1"), "the objective falls without a bound"),
        (("x**2", "x=5", "--steps", "2", "--method", "sgd", "--lr", "9"), "the objective is greater after 2 steps"),
        (
            ("(1-x)**2 + 100*(y-x**2)**2", "x=-1.2", "y=1", "--steps", "3"),
            "the limit of 3 iterations was met before the minimum",
        ),
        (("x**2", "x=1", "--subject-to", "x <= 1", "--subject-to", "x >= 2"), "the constraint 'x <= 1' does not hold"),
        (
            ("x + y", "x=1", "y=1", "--subject-to", "x**2 + y**2 = -1"),
            "the constraint 'x**2 + y**2 = -1' does not hold",
        ),
    ],
)
def test_failures_print_the_best_point_and_the_reason(run: Any, words: tuple[str, ...], message: str) -> None:
    done = run("minimize", *words, "--json")
    assert done.status == 1
    found = json.loads(done.out)
    assert not found["converged"]
    assert message in found["message"]
    assert found["message"] in json.loads(done.err)["error"]["message"]
    assert all(math.isfinite(value) for value in found["point"].values())


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("log(x)", "x=-1"), 1, "there is no number, or no gradient, at the start: 'log' gives nan for operand -1.0"),
        (("x**2", "x=3", "--bounds", "x=0:1"), 2, "the start x=3.0 is outside of its bounds, 0.0 to 1.0"),
        (("x**2", "x=3", "--bounds", "y=0:1"), 2, "there are bounds for 'y', which is not varied"),
        (("x**2", "x=3", "--bounds", "x=4"), 2, "'x=4' are no bounds"),
        (("x**2 + q", "x=3"), 2, "'q' has no value"),
        (("x**2", "x=3", "q=1"), 2, "the program does not read 'q'"),
        (("x**2", "x=3", "--const", "x"), 2, "there is nothing to vary"),
        (("x**2", "x=3", "--sensitivity", "c"), 2, "'c' has no value"),
        (("[x, 1]", "x=3"), 1, "what is minimised is a number, and the value has shape [2]"),
        (("x**2", "x=3", "--subject-to", "x < 1"), 2, "a constraint has no '<'"),
        (("x**2", "x=3", "--subject-to", "x + 1"), 2, "a constraint compares two expressions"),
        (("x**2", "x=3", "--method", "simplex"), 2, "there is no method 'simplex'"),
        (("x**2", "x=3", "--method", "bfgs", "--bounds", "x=0:4"), 2, "the method bfgs takes no bounds"),
        (("x**2", "x=3", "--lr", "0.1"), 2, "--lr is for the methods adam, sgd, rmsprop"),
        (("x**2", "x=3", "--method", "sgd", "--batch", "2"), 2, "there are no rows to take a batch of"),
        (("x**2", "x=3", "--method", "sgd", "--steps", "2", "--epochs", "2"), 2, "--steps and --epochs contradict"),
        (("x**2", "x=3", "--trace", "steps.xyz"), 2, "the name 'steps.xyz' does not say what to write"),
        (("sum(x - y)", "nowhere.csv", "x=3"), 2, "nowhere.csv"),
    ],
)
def test_what_cannot_be_minimised(run: Any, words: tuple[str, ...], status: int, message: str) -> None:
    done = run("minimize", *words)
    assert (done.status, done.out) == (status, "")
    assert message in done.err


def test_a_start_without_a_number_is_pointed_at(run: Any) -> None:
    assert "  | sqrt(x)*y\n  | ^^^^^^^\n" in run("minimize", "sqrt(x)*y", "x=-1", "y=2").err


@pytest.mark.slow
def test_rows_of_data(run: Any, tmp_path: Path) -> None:
    """Newton's method on all rows, and gradient steps on batches, which come close; a row without y is left out."""
    table = tmp_path / "cooling.csv"
    table.write_text(DATA)
    words = ("sum((a*exp(-k*t) - y)**2)", str(table), "a=1", "k=1")
    best = asked(run, *words)
    assert best["value"] == pytest.approx(0.002496347334370, rel=1e-9)
    steps, curve = tmp_path / "steps.csv", tmp_path / "loss.svg"
    options = ("--method", "adam", "--lr", "0.05", "--batch", "2", "--epochs", "100", "--schedule", "cosine")
    found = asked(run, *words, *options, "--trace", str(steps), "--plot", str(curve))
    assert found["value"] == pytest.approx(best["value"], rel=1e-2)
    assert (found["iterations"], found["message"]) == (300, "300 steps")
    header, first, *_ = steps.read_text().splitlines()
    assert header == "iteration,objective,gradient_norm,a,k"
    assert first.startswith("0,")
    assert first.endswith(",1.0,1.0")
    assert curve.read_text().startswith("<?xml")


def test_the_command_takes_the_steps_of_the_optimizers(run: Any) -> None:
    from gradcli import optim

    found = asked(run, "(x - 2)**4", "x=0", "--method", "rmsprop", "--momentum", "0.5", "--lr", "0.1", "--steps", "7")
    x = gradcli.tensor(0.0, requires_grad=True)
    steps = optim.RMSprop([x], lr=0.1, momentum=0.5)
    for _ in range(7):
        steps.zero_grad()
        ((x - 2) ** 4).backward()
        steps.step()
    assert found["point"]["x"] == pytest.approx(x.item(), rel=1e-13)


@pytest.mark.slow
def test_a_sparse_hessian_serves_many_variables() -> None:
    program = "sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
    found = gradcli.minimize(program, x=np.full(5_000, 1.2))
    assert (found.converged, found.kind) == (True, "minimum")
    assert np.allclose(found.point["x"], 1.0)
    assert found.eigenvalues is not None
    assert found.eigenvalues["min"] == pytest.approx(0.49875312, rel=1e-6)


def test_a_minimum_of_many_variables_moves_with_a_constant() -> None:
    found = gradcli.minimize(
        "sum((x[1:] - x[:-1])**2) + sum((x - c)**2)", x=np.zeros(1_700), c=2.0, sensitivity="c", bounds={"x": (-9, 9)}
    )
    assert found.sensitivity is not None
    assert found.sensitivity["c"].value == pytest.approx(0.0, abs=1e-9)
    assert np.allclose(found.sensitivity["c"].point["x"], 1.0)


@pytest.mark.slow
def test_a_hessian_that_is_too_large_is_multiplied_with_vectors() -> None:
    found = gradcli.minimize("sum((x - 1)**2)**2 + sum((x - 1)**2)", x=np.zeros(1_200))
    assert found.converged
    assert np.allclose(found.point["x"], 1.0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("y", [2.0, 0.5])
def test_a_name_with_equal_bounds_is_constant_where_the_start_is_not_allowed(y: float) -> None:
    found = gradcli.minimize("(x-3)**2 + y**2", x=3.0, y=y, bounds={"y": (y, y)}, subject_to=["x**2 + y**2 <= 1"])
    assert found.point["y"] == y
    assert found.converged is (y < 1)
    if y < 1:
        assert found.point["x"] == pytest.approx(0.75**0.5, rel=1e-9)


def test_iterations_are_told_of() -> None:
    seen: list[Any] = []
    gradcli.minimize("(x - 1)**4", x=3.0, watch=seen.append)
    assert [i.number for i in seen] == [*range(len(seen))]
    assert seen[0].objective == 16.0
    assert seen[0].point.tolist() == [3.0]


def test_names_may_be_those_of_options() -> None:
    found = gradcli.minimize("(max - 1)**2 + (data + 2)**2", {"max": 0.0, "data": 0.0})
    assert found.point == {"max": 1.0, "data": -2.0}


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"method": "x"}, UsageError, "there is no method 'x'"),
        ({"bounds": {"x": 3}}, BindingError, "the bounds of 'x' are no pair"),
        ({"bounds": "x=3:1"}, BindingError, "no number lies between the bounds of 'x'"),
        ({"subject_to": 5}, CallError, "names are given as a list"),
        ({"seed": -1}, UsageError, "--seed is a whole number of 0 or more"),
        ({"steps": 2.5}, UsageError, "--steps is a whole number of 1 or more"),
        ({"watch": 5}, CallError, "what watches the iterations is a function, not int"),
        ({"trace": 5}, CallError, "the path of a file is a text, not int"),
        ({"data": 5}, GradcliError, "table"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        gradcli.minimize("x**2", x=1, **options)


@pytest.mark.parametrize(
    "words", [("x**3", "x=1"), ("x**3 + y**2", "x=1", "y=2"), ("floor(x)", "x=1.5"), ("exp(-x**2)", "x=30", "--max")]
)
def test_an_inflection_and_a_step_are_no_minima(run, words):
    done = run("minimize", *words, "--json")
    assert (done.status, done.json["kind"]) == (1, "flat")
    assert "along a direction without curvature" in done.json["message"]


@pytest.mark.parametrize("words", [("(x + y)**4", "x=1", "y=1"), ("x**4 + x**5", "x=0.1"), ("0*x", "x=1")])
def test_a_flat_minimum_is_one(run, words):
    assert asked(run, *words)["kind"] == "flat"


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "words",
    [
        ("abs(x)", "x=1"),
        ("abs(x)", "x=0.3"),
        ("abs(x) + x**2", "x=0.3"),
        ("abs(x)", "x=0.3", "--method", "sgd", "--lr", "0.01", "--steps", "30"),
        ("maximum(x, -2*x)", "x=0.3"),
        ("abs(x) + abs(y)*2", "x=0.3", "y=0"),
        ("norm(x)", "x=[1,2]"),
        ("-abs(x - c)", "x=1", "c=1", "--max", "--sensitivity", "c"),
    ],
)
def test_a_minimum_that_is_not_smooth_is_said_to_be_that(run, words):
    found = asked(run, *words)
    assert (found["kind"], found["eigenvalues"]) == ("kink", {"min": None, "max": None})
    assert "0 is among its subgradients" in found["message"]
    assert "c" not in words or found["sensitivity"]["c"]["value"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-abs(x)", "x=0"), "the objective is not smooth there, and falls from there"),
        (("abs(x)", "x=0", "--max"), "the objective is not smooth there, and rises from there"),
    ],
)
def test_a_kink_that_is_no_minimum(run, words, message):
    done = run("minimize", *words, "--json")
    assert (done.status, done.json["message"]) == (1, message)


def test_a_minimum_that_is_flat_has_no_sensitivity_and_is_not_lost(run, tmp_path):
    steps = tmp_path / "steps.csv"
    found = asked(run, "(x + y - c)**2", "x=1", "y=2", "c=1", "--sensitivity", "c", "--trace", str(steps))
    moved = found["sensitivity"]["c"]
    assert (moved["value"], moved["point"]) == (None, {"x": None, "y": None})
    assert "the Hessian is singular there" in moved["reason"]
    assert steps.exists()


@pytest.mark.parametrize("held", [("--subject-to", "x <= 1"), ("--bounds", "x=:1")])
def test_a_constraint_that_is_only_touched_leaves_no_derivative_of_the_point(run, held):
    """The point is c for c < 1, and 1 for c > 1."""
    found = asked(run, "(x - c)**2", "x=0", "c=1", "--sensitivity", "c", *held)
    moved = found["sensitivity"]["c"]
    assert (moved["value"], moved["point"]) == (0.0, {"x": None})
    assert "only touched" in moved["reason"]
    assert "-0.0" not in repr(found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("x**2 - y**2 + y**4", "x=1", "y=0", "--method", "sgd", "--lr", "0.1", "--steps", "40"), "lead to a saddle"),
        (("x**2 - y**2 + y**4", "x=0", "y=0", "--method", "sgd"), "the point is a saddle"),
        (("x**2", "x=1", "--method", "sgd", "--lr", "1e-12"), "the gradient is still 1 of that at the start"),
    ],
)
def test_steps_that_lead_to_no_minimum_are_said_to(run, words, message):
    done = run("minimize", *words, "--json")
    assert (done.status, done.json["converged"]) == (1, False)
    assert message in done.json["message"]


@pytest.mark.parametrize(
    ("program", "start", "bounds", "least"),
    [
        ("cos(x*y) + x*sin(y)", (2.73, -1.22), "x=-3:3,y=-3:3", -3.695518130045147),
        ("(1 - x)**2 + 100*(y - x**2)**2", (-1.93, 0.34), "x=-2:0.5,y=-1:2", 0.25),
        ("(1 - x)**2 + 100*(y - x**2)**2", (-0.18, 0.095), "x=-2:0.5,y=-1:2", 0.25),
        # With a sparse Hessian.
        ("sum(100*(x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", "linspace(-0.9, 0.3, 300)", "x=-1:0.5", 294.6649064365),
    ],
)
def test_a_step_that_bounds_cut_off_does_not_end_the_search(
    run: Any, program: str, start: Any, bounds: str, least: float
) -> None:
    """Newton's step descends, but ascends where bounds cut it off; the minima are those of L-BFGS-B."""
    words = [f"x={start}"] if isinstance(start, str) else [f"x={start[0]}", f"y={start[1]}"]
    found = asked(run, program, *words, "--bounds", bounds, "--method", "newton")
    assert (found["kind"], found["value"]) == ("bound", pytest.approx(least, rel=1e-9))


@pytest.mark.parametrize(
    ("program", "constraints", "kind"),
    [
        ("x**2 + 0*y", ["y <= 0", "y >= 0"], "minimum"),
        ("x**2 + 0*y", ["y >= x", "y <= -x", "y >= -x", "y <= x"], "minimum"),
        # The direction without curvature leads out of one constraint or the other.
        ("(x - 1)**2 + 0*y", ["x + y <= 2", "y - x >= 0"], "minimum"),
        ("x**2 + 0*y", ["y >= 0"], "flat"),
        ("x**2 + 0*y", ["y >= x", "y >= -x"], "flat"),
    ],
)
def test_directions_that_constraints_forbid_make_nothing_flat(
    run: Any, program: str, constraints: list[str], kind: str
) -> None:
    found = asked(run, program, "x=1", "y=0.5", *(word for text in constraints for word in ("--subject-to", text)))
    assert found["kind"] == kind


@pytest.mark.parametrize(
    ("program", "constraints"),
    [
        ("x", ["y >= 0", "x**3 - y >= 0"]),
        ("x", ["y**2 = x**3"]),
        ("-x", ["(1 - x)**3 >= y", "y >= 0"]),
    ],
)
def test_a_minimum_without_multipliers_is_not_said_to_be_one(run: Any, program: str, constraints: list[str]) -> None:
    """The minimum at the cusp has no multipliers; those on the way there grow without bound."""
    words = [word for text in constraints for word in ("--subject-to", text)]
    done = run("minimize", program, "x=0.9", "y=1", *words, "--json")
    assert (done.status, done.json["converged"], done.json["kind"]) == (1, False, None)
    assert "no constraint qualification holds" in done.json["message"]


def test_equations_on_many_variables_take_few_steps(run: Any) -> None:
    """A discretised control problem with dx/dt = u - x**3; the minimum is the one with one variable eliminated."""
    words = ["x=ones(61)", "u=zeros(60)", "h=1/60", "--const", "h", "--subject-to", "x[0] = 1"]
    found = asked(
        run, "h*sum(u**2) + h*sum(x**2)", *words, "--subject-to", "x[1:] = x[:-1] + h*(u - x[:-1]**3)"
    )  # fmt: skip
    assert (found["kind"], found["evaluations"] < 15) == ("minimum", True)
    eliminated = "h*sum(((x[1:] - x[:-1])/h + x[:-1]**3)**2) + h*sum(x**2)"
    same = asked(run, f"x = concatenate([[1.0], y]); {eliminated}", "y=ones(60)", "h=1/60", "--const", "h")
    assert found["value"] == pytest.approx(same["value"], rel=1e-10)


def test_large_multipliers_of_small_constraints_are_no_doubt(run: Any) -> None:
    found = asked(run, "x**2 + y", "x=3", "y=3", "--subject-to", "1e-7*x >= 1e-7", "--subject-to", "1e-7*(y - x) >= 0")
    assert (found["kind"], found["value"]) == ("minimum", pytest.approx(2.0))
    assert found["multipliers"]["1e-7*x >= 1e-7"] == pytest.approx(3e7)


def test_a_bound_that_holds_a_maximum(run):
    found = asked(run, "-(x - 3)**2 + y", "x=0", "y=1", "--max", "--bounds", "x=0:1,y=1:1")
    assert found["message"] == "a maximum that bounds hold"
    assert found["multipliers"] == {"x <= 1.0": 4.0, "y = 1.0": 1.0}


def test_a_start_that_falls_without_a_bound_is_no_matter_of_minima(run):
    done = run("minimize", "x**3 - x", "x=1", "--global", "--json")
    assert (done.status, done.json["minima"]) == (1, 1)
    assert done.json["message"] == "the objective falls without a bound"


def test_a_constraint_without_a_value_at_the_start(run):
    done = run("minimize", "x + y", "x=-1", "y=1", "--subject-to", "y >= 1 + log(x)")
    assert (done.status, done.out) == (1, "")
    assert "the constraint 'y >= 1 + log(x)' has no value at the start" in done.err
    assert "  | 1 + log(x)\n  |     ^^^^^^\n" in done.err


def test_a_constraint_without_a_gradient_at_the_start_is_left(run):
    assert asked(run, "x + y", "x=0", "y=1", "--subject-to", "sqrt(x) + y >= 1")["value"] == pytest.approx(0.75)


@pytest.mark.parametrize("program", ["exp(-x)", "atan(x)"])
def test_what_falls_on_and_on_has_no_minimum(run, program):
    result = run("minimize", program, "x=0", "--json")
    assert result.status == 1
    assert not result.json["converged"]


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    ("program", "start", "least"),
    [
        ("maximum(x**2 + y, y**2 - y)", (1, 1), 0.0),
        # L. Lukšan and J. Vlček, "Test problems for nonsmooth optimization" (2000): CB2, DEM, QL, LQ and two of
        # Mifflin's.
        ("maximum(maximum(x**2 + y**4, (2-x)**2 + (2-y)**2), 2*exp(y-x))", (2, 2), 1.9522245),
        ("maximum(maximum(5*x + y, y - 5*x), x**2 + y**2 + 4*y)", (1, 1), -3.0),
        ("q = x**2 + y**2; maximum(maximum(q, q + 10*(-4*x - y + 4)), q + 10*(-x - 2*y + 6))", (-1, 5), 7.2),
        ("maximum(-x - y, -x - y + x**2 + y**2 - 1)", (-0.5, -0.5), -math.sqrt(2)),
        ("-x + 20*maximum(x**2 + y**2 - 1, 0)", (0.8, 0.6), -1.0),
        ("-x + 2*(x**2 + y**2 - 1) + 1.75*abs(x**2 + y**2 - 1)", (-1, -1), -1.0),
    ],
)
def test_curved_kinks(program: str, start: tuple[float, float], least: float) -> None:
    found = gradcli.minimize(program, x=start[0], y=start[1])
    assert (found.converged, found.kind, found.value) == (True, "kink", pytest.approx(least, abs=1e-6))


@pytest.mark.parametrize(
    ("program", "start", "bounds", "at", "least"),
    [
        ("sqrt(x)", 1.0, "x=0:", 0.0, 0.0),
        ("sqrt(1 - x)", 0.3, "x=:1", 1.0, 0.0),
        ("asin(x)", 0.3, "x=-1:1", -1.0, -math.pi / 2),
        ("x**0.3 + 2", 5.0, "x=0:9", 0.0, 2.0),
    ],
)
def test_a_bound_at_which_the_slope_is_infinite(
    run: Any, program: str, start: float, bounds: str, at: float, least: float
) -> None:
    done = run("minimize", program, f"x={start}", "--bounds", bounds, "--json")
    found = json.loads(done.out)
    assert (done.status, found["kind"], found["point"]["x"], found["value"]) == (0, "bound", at, pytest.approx(least))


def test_a_bound_with_an_infinite_slope_holds_a_minimum_of_the_other_variables_alone(run):
    held = run("minimize", "sqrt(x) + (y - 2)**2", "x=1", "y=0", "--bounds", "x=0:", "--json")
    assert (held.status, held.json["kind"]) == (0, "bound")
    saddle = run("minimize", "sqrt(x) - (y - 2)**2", "x=1", "y=2", "--bounds", "x=0:", "--json")
    assert (saddle.status, saddle.json["kind"]) == (1, "saddle")


def test_gradients_whose_squares_are_no_floats_lead_down(run):
    found = run("minimize", "cosh(x)", "x=700", "--json")
    assert (found.status, found.err) == (0, "")
    assert found.json["value"] == pytest.approx(1.0)


def test_where_squares_and_gradients_are_no_numbers_it_is_said_how_it_ended(run):
    found = run("minimize", "x > 0", "x=1e308", "--method", "bfgs", "--json")
    assert found.json["kind"] == "flat"
    found = run("minimize", "sum(expm1([x, x]))", "x=-1", "--max")
    assert found.err.startswith("error: no maximum was found: the objective rises without a bound\n")


class TestComplexNumbers:
    """Complex numbers are varied as pairs of real ones."""

    def test_a_minimum_by_complex_and_real_numbers(self, run):
        found = run("minimize", "abs(z - 1 - 2j)**2 + abs(z*w - 3j)**2", "z=0j", "w=1", "--json").json
        z, w = complex(found["point"]["z"]["re"], found["point"]["z"]["im"]), found["point"]["w"]
        assert found["kind"] == "minimum"
        # The gradient by conj(z), and that by w.
        assert z - 1 - 2j + (z * w - 3j) * w == pytest.approx(0, abs=1e-9)
        assert (z.conjugate() * (z * w - 3j)).real == pytest.approx(0, abs=1e-9)
        parts = run("minimize", "(a - 1)**2 + (b - 2)**2 + (a*w)**2 + (b*w - 3)**2", "a=0", "b=0", "w=1", "--json").json
        assert found["value"] == pytest.approx(parts["value"])
        assert found["eigenvalues"] == pytest.approx(parts["eigenvalues"])

    def test_the_table(self, run):
        out = run("minimize", "real(z*conj(z)) - 2*real(z)", "z=1j").out
        assert out.startswith("value  -1.0\nz      1.0+0.0j\n")

    def test_constraints_bounds_and_constants(self, run):
        found = run("minimize", "real(z*conj(z))", "z=3+3j", "--subject-to", "imag(z) >= 2", "--json").json
        assert found["point"]["z"] == pytest.approx({"re": 0, "im": 2}, abs=1e-9)
        assert found["multipliers"] == pytest.approx({"imag(z) >= 2": 4})
        found = run("minimize", "real(z*conj(z))", "z=3+1j", "--bounds", "imag(z)=1:2,real(z)=0.5:", "--json").json
        assert found["point"]["z"] == pytest.approx({"re": 0.5, "im": 1})
        found = gradcli.minimize("real((z - c)*conj(z - c)) + x*imag(z)", z=0j, c=1 + 1j, x=2.0, const=["c", "x"])
        assert found.point == pytest.approx({"z": 1})

    def test_arrays_and_the_trace(self, run, tmp_path):
        trace = tmp_path / "trace.csv"
        found = run("minimize", "sum(abs(z - [1j, 2])**4)", "z=[0j, 1]", "--trace", str(trace), "--json").json
        assert [z["re"] for z in found["point"]["z"]] == pytest.approx([0, 2], abs=0.1)
        assert trace.read_text().splitlines()[0].endswith("real(z[0]),real(z[1]),imag(z[0]),imag(z[1])")

    def test_proofs_are_of_real_numbers(self, run):
        words = ["--bounds", "real(z)=-2:2,imag(z)=-2:2", "--prove"]
        outcome = run("minimize", "real(z*conj(z)) - real(z)", "z=1j", *words)
        assert outcome.status == 1
        assert "this is proved of real numbers alone, and there is a complex one" in outcome.err

    def test_a_complex_value_is_refused(self, run):
        outcome = run("minimize", "z**2", "z=1j")
        assert outcome.status == 1
        assert "what is minimised is a real number, and the value is complex" in outcome.err


def test_an_equation_may_have_no_value_beyond_a_point() -> None:
    # The minimum is at the end of the domain, where the equation has no derivative.
    found = gradcli.minimize("x", x=0.5, y=0.5, bounds="x=-1:1,y=0:1", subject_to="sqrt(x) = y")
    assert found.point["x"] == pytest.approx(0, abs=1e-6)
    inside = gradcli.minimize("(x - 0.3)**2", x=0.5, y=0.5, bounds="x=-1:1,y=0:1", subject_to="sqrt(x) = y")
    assert inside.converged
    assert inside.point["y"] == pytest.approx(0.3**0.5)
