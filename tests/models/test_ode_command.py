"""Tests `gradcli ode`: the text of equations, trajectories, their derivatives, events and doses."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Outcome

Run = Callable[..., Outcome]

LOTKA = "dx/dt = a*x - b*x*y; dy/dt = d*x*y - c*y"
PREY = ["x=10", "y=5", "a=1.1", "b=0.4", "c=0.4", "d=0.1"]


def table(run: Run, *words: str) -> dict[str, Any]:
    """The columns that the command writes."""
    done = run("ode", *words)
    assert done.status == 0, done.err
    header, *rows = csv.reader(io.StringIO(done.out))
    return dict(zip(header, np.array(rows, float).T))


def test_states_and_exact_derivatives_are_columns(run: Run) -> None:
    found = table(run, LOTKA, *PREY, "t=0..20", "--points", "3", "--wrt", "a,x", "--order", "2")
    assert list(found)[:4] == ["t", "x", "y", "d_x_a"]
    # Beside SciPy's DOP853 at 1e-13 and its central differences.
    assert found["x"][-1] == pytest.approx(10.214110659, rel=1e-9)
    h = 1e-4
    low, high = (table(run, LOTKA, *PREY[:2], f"a={1.1 + s * h}", *PREY[3:], "t=0..20", "--wrt", "a") for s in (-1, 1))
    assert found["d_x_a"][-1] == pytest.approx((high["x"][-1] - low["x"][-1]) / (2 * h), rel=1e-5)
    assert found["d_x_a_a"][-1] == pytest.approx((high["d_x_a"][-1] - low["d_x_a"][-1]) / (2 * h), rel=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        "x'' = -4*x",
        "d2x/dt2 = -k*x; k = 4",
        "d²x/dt² = -4*x",
        "d^2x/dt^2 = -4*x",
        "x′′ = -4*x\n",
        "x' = v; dv/dt = -4*x",
    ],
)
def test_notations_of_second_order(run: Run, text: str) -> None:
    velocity = "v=0" if "v" in text else "x'(0)=0"
    found = table(run, text, "x=1", velocity, "t=0..2", "--points", "5")
    assert found["x"] == pytest.approx(np.cos(2 * found["t"]), abs=1e-11)


def test_a_derivative_of_lower_order_may_be_read(run: Run) -> None:
    found = table(run, "d2x/dt2 = -x - 0.2*dx/dt", "x=1", "x'=0", "t=0..3", "--points", "2")
    same = table(run, "x'' = -x - 0.2*x'", "x=1", "x'=0", "t=0..3", "--points", "2")
    w = math.sqrt(0.99)
    assert found["x"][-1] == same["x"][-1]
    assert found["x"][-1] == pytest.approx(math.exp(-0.3) * (math.cos(3 * w) + 0.1 / w * math.sin(3 * w)), rel=1e-11)


def test_definitions_hold_in_any_order(run: Run) -> None:
    found = table(run, "def g(u): return u*k\nx' = f\nf = g(-x)", "x=1", "k=2", "t=0..1", "--wrt", "k")
    assert found["x"][-1] == pytest.approx(math.exp(-2), rel=1e-12)
    assert found["d_x_k"][-1] == pytest.approx(-math.exp(-2), rel=1e-12)


def test_functions_may_be_defined_behind_what_calls_them(run: Run) -> None:
    found = table(run, "x' = -g(x); g(u) = h(u)*k; h(u) = u*two; two = 2", "x=1", "k=0.5", "t=0..1", "--points", "2")
    assert found["x"] == pytest.approx([1.0, math.exp(-1)], rel=1e-13)


def test_what_happens_at_known_times(run: Run) -> None:
    words = ["dx/dt = -k*x; at t = 12, 24: x += dose", "x=0", "k=0.2", "dose=5", "t=[0, 12, 24, 36]"]
    found = table(run, *words, "--wrt", "dose,k", "--order", "2")
    first, second = math.exp(-0.2 * 24), math.exp(-0.2 * 12)
    assert found["x"] == pytest.approx([0, 5, 5 + 5 * second, 5 * first + 5 * second], rel=1e-12)
    assert found["d_x_k"][-1] == pytest.approx(-5 * 24 * first - 5 * 12 * second, rel=1e-11)
    assert found["d_x_k_k"][-1] == pytest.approx(5 * 24**2 * first + 5 * 12**2 * second, rel=1e-11)


def test_the_time_of_a_jump_has_derivatives(run: Run) -> None:
    words = ["dx/dt = -k*x + t; at t = lag: { x = x + dose }", "x=1", "k=0.2", "dose=5", "lag=2.5", "t=[0,4]"]
    found = table(run, *words, "--wrt", "lag")
    assert found["d_x_lag"][-1] == pytest.approx(0.2 * 5 * math.exp(-0.2 * 1.5), rel=1e-11)
    second = table(run, *words, "--wrt", "lag,k", "--order", "2")
    assert second["d_x_lag_lag"][-1] == pytest.approx(0.2**2 * 5 * math.exp(-0.2 * 1.5), rel=1e-11)
    assert second["d_x_lag_k"][-1] == pytest.approx((1 - 0.2 * 1.5) * 5 * math.exp(-0.2 * 1.5), rel=1e-11)


def test_known_switches_are_stepped_onto(run: Run) -> None:
    found = table(run, "dx/dt = 1 if t < s else 2", "x=0", "s=3", "t=0..6", "--points", "4", "--wrt", "s")
    assert found["x"] == pytest.approx([0, 2, 5, 9], abs=1e-12)
    assert found["d_x_s"][-1] == -1


def test_the_time_of_an_event_and_its_derivatives(run: Run) -> None:
    words = ["y'' = -g", "y=20", "y'=0", "g=9.81", "t=0..10", "--stop", "y = 0", "--wrt", "y,g", "--order", "2"]
    found = table(run, *words)
    time = math.sqrt(2 * 20 / 9.81)
    assert found["t"][-1] == pytest.approx(time, rel=1e-14)
    assert found["d_t_y"][-1] == pytest.approx(time / 40, rel=1e-12)
    assert found["d_t_y_y"][-1] == pytest.approx(-time / 1600, rel=1e-11)
    assert found["d_t_g_g"][-1] == pytest.approx(0.75 * time / 9.81**2, rel=1e-11)
    # The speed there is -sqrt(2*g*y), and the height stays 0.
    assert found["d_y'_g"][-1] == pytest.approx(-math.sqrt(40 / 9.81) / 2, rel=1e-12)
    assert found["d_y_g"][-1] == pytest.approx(0, abs=1e-11)
    assert "y = 0 at t = 2.019" in run("ode", *words).err


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("equations", "stop"),
    [
        ("x' = k*x; at t = tau: x += 5", "x = 3"),
        ("x' = k*x; at t = tau: x = 3", "x = 3"),
        ("x' = k*x if t < tau else 4", "x' = 2"),
    ],
)
def test_a_jump_over_the_condition_has_no_derivatives(run: Run, equations: str, stop: str) -> None:
    words = [equations, "x=1", "k=0.1", "tau=2.0015", "t=0..4", "--points", "2", "--stop", stop]
    assert table(run, *words)["t"][-1] == pytest.approx(2.0015, rel=1e-12)
    done = run("ode", *words, "--wrt", "k,tau")
    assert done.status != 0
    assert "the condition jumps over 0 at 2.0015" in done.err


def test_a_condition_that_is_touched_has_no_derivatives(run: Run) -> None:
    words = ["x' = a*(t - 2)", "x=2", "a=1", "t=0..5", "--stop", "x = 0"]
    assert "the condition touches 0 at 2, and this time has no derivatives" in run("ode", *words, "--wrt", "a").err
    assert run("ode", *words).err == "x = 0 at t = 1.999999998\n"


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("stop", "time"),
    [
        ("(x-3.003)**2 = 1e-10", 3.00299),
        ("(x-3.0031)*(x-3.0032)*(x-3.0034) = 0", 3.0031),
        ("x*(x-1e-7) = 0", 1e-7),
        ("sin(1000*x) = 0.99999999999", 0.001570791855),
    ],
)
def test_a_condition_that_is_met_for_a_moment_is_seen(run: Run, stop: str, time: float) -> None:
    found = table(run, "x' = 1", "x=0", "t=0..10", "--points", "2", "--stop", stop)
    assert found["t"][-1] == pytest.approx(time, rel=1e-8)


def test_a_condition_that_is_jumped_over_is_a_warning(run: Run) -> None:
    words = ["x' = x; at t = 2: x += 5", "x=1", "t=0..4", "--points", "2"]
    assert "warning: x = 10 is jumped over, and not met" in run("ode", *words, "--stop", "x = 10").err
    assert "warning" not in run("ode", *words, "--stop", "x = 5").err


def test_a_condition_may_have_a_choice_on_its_left(run: Run) -> None:
    words = ["x' = 1; y' = 2", "x=0", "y=0", "c=1", "t=0..5", "--points", "2", "--stop", "x if c else y = 3"]
    assert table(run, *words)["t"][-1] == pytest.approx(3, rel=1e-12)


def test_an_event_after_a_jump_has_derivatives(run: Run) -> None:
    words = ["x' = k*x; at t = tau: x += 5", "x=1", "k=0.1", "tau=2", "t=0..10", "--points", "2", "--stop", "x = 8"]
    found = table(run, *words, "--wrt", "tau")
    # x is (exp(k*tau) + 5)*exp(k*(t - tau)).
    inside = math.exp(0.2) + 5
    assert found["t"][-1] == pytest.approx(2 + math.log(8 / inside) / 0.1, rel=1e-12)
    assert found["d_t_tau"][-1] == pytest.approx(1 - math.exp(0.2) / inside, rel=1e-10)


def test_expressions_are_shown(run: Run) -> None:
    found = table(run, "x' = -k*x", "x=2", "k=1", "t=0..1", "--points", "2", "--show", "x**2", "--wrt", "k")
    assert found["x**2"][-1] == pytest.approx(4 * math.exp(-2), rel=1e-12)
    assert found["d_x**2_k"][-1] == pytest.approx(-8 * math.exp(-2), rel=1e-12)


def test_what_is_not_finite_is_told(run: Run) -> None:
    done = run("ode", "x' = -x", "x=1", "t=0..1", "--points", "2", "--show", "log(-x)")
    assert "'log(-x)' is not finite in 2 rows" in done.err


def test_definitions_behind_what_reads_them_keep_limits(run: Run) -> None:
    found = table(run, "y' = f/y; f = 2*sin(t)/t", "y=1", "t=[1,2]", "--stop", "y' - 0.5 = 0", "--show", "y'")
    assert found["y'"][-1] == pytest.approx(0.5, rel=1e-11)


def test_times_of_a_file_and_backwards(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("time\n0\n1\n5\n")
    assert table(run, "x' = -x", "x=1", f"t=@{path}:time")["t"].tolist() == [0, 1, 5]
    found = table(run, "x' = -x", "x=1", "t=1..0", "--points", "2")
    assert found["x"][-1] == pytest.approx(math.e, rel=1e-12)


def test_json_and_pictures(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plane.svg"
    done = run("ode", LOTKA, *PREY, "t=0..1", "--points", "2", "--json", "--plot", str(path), "--phase", "x,y")
    columns = json.loads(done.out)["columns"]
    assert list(columns) == ["t", "x", "y"]
    assert columns["t"] == [0.0, 1.0]
    assert path.read_text().startswith("<?xml")


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "message", "place"),
    [
        ([LOTKA, "x=1", "t=0..1"], "the state 'y' has no start", None),
        (["x'' = -x", "x=1", "t=0..1"], "the state 'x'' has no start", None),
        (["dx/dt = -x; dx/dt = 3", "x=1", "t=0..1"], "'x' has an equation already", "dx/dt = 3"),
        (["dx/dt = x**2", "x=1", "t=0..2"], "the solution leaves to infinity at t = 1", None),
        (["dx/dt = -x", "x=1", "t=[0,2,1]"], "the times go back: 1 is after 2", None),
        (["dx/dt = -x", "x=1", "t=[0,1,1,5,2]"], "the times go back: 2 is after 5", None),
        (["T' = 2*(T < 20) - T/20", "T=10", "t=0..20"], "switches back and forth at t = 8.1093022", None),
        (["m*x'' = -k*x", "x=1", "t=0..1"], "write x'' = (-k*x)/(m)", "m*x'' = -k*x"),
        (["x' = V - x; at t = 1: V = 5", "x=1", "t=0..2"], "V' = 0 makes V one", "V = 5"),
        (["dx/dt = -k*x", "x=1", "t=0..1"], "'k' has no value", "k"),
        (["dx/dt = -x; dy/ds = 3", "x=1", "t=0..1"], "this differentiates by 's'", "dy/ds"),
        (["d2x/dt = -x", "x=1", "t=0..1"], "the orders of this derivative differ", "d2x/dt"),
        (["x' = -x; at t = 2: k = 1", "x=1", "t=0..1"], "only states jump", "k = 1"),
        (["x' = -x; at t = 2: x += 1", "x=1", "t=5..0"], "jumps are for times that ascend", None),
        (["x' = -x; at t = x: x += 1", "x=1", "t=0..1"], "depends on no state", "x"),
        (["x' = -x; at t: x += 1", "x=1", "t=0..1"], "'at' says at which times", "at t: x += 1"),
        (["x' = -x; x = 3", "x=1", "t=0..1"], "'x' has an equation, and is given a value", "x = 3"),
        (["x' = -x; if t > 1: x = 0", "x=1", "t=0..4"], "for a jump of it at t = 12: x += 5", "if t > 1: x = 0"),
        (["x' = x(t - 1)", "x=1", "t=0..4"], "equations with delays are not solved", "x(t - 1)"),
        (["x'(t) = -x(t)", "x=1", "t=0..4"], "write x' = …", "x'(t) = -x(t)"),
        (["y' = -9; at y = 0: y = 1", "y=1", "t=0..4"], "--stop 'y = 0' ends where", "at y = 0: y = 1"),
        (["x = 3", "x=1", "t=0..1"], "there is no differential equation", None),
        (["x'' + 0.1x' + x = 0", "x=1", "x'=0", "t=0..1"], "write x'' = -(0.1x' + x)", "x'' + 0.1x' + x = 0"),
        (["dx/dt - k*x = sin(t)", "x=1", "k=2", "t=0..1"], "write dx/dt = sin(t) - (-k*x)", "dx/dt - k*x = sin(t)"),
        (["d2x/dt2 + x = a", "x=1", "t=0..1"], "write d2x/dt2 = a - x", "d2x/dt2 + x = a"),
        (["2x'' + x = 0", "x=1", "t=0..1"], "an equation is dx/dt = …", "2x'' + x = 0"),
        (["(x') + x = 0", "x=1", "t=0..1"], "an equation is dx/dt = …", None),
        (["x' = -x", "x=1", "t=0..1", "z=1"], "the equations do not read 'z'", None),
        (["x' = -x", "x=1", "t=0..1", "--stop", "x = 2"], "x = 2 is not met up to t = 1", None),
        (["x' = -x", "x=1", "t=0..1", "--method", "bdf"], "there is no method 'bdf'", None),
        (["x' = -x", "x=1", "t=0..1", "--order", "3", "--wrt", "x"], "order 3", None),
        (["x' = -x", "x=1"], "there are no times 't'", None),
        (["x'' = -x", "x=1", "x'(1)=2", "t=0..1"], "is the value at t = 1, and the first time is 0", None),
        (["x'' = -x", "x=1", "x'=1", "x'(0)=2", "t=0..1"], "'x'' is given twice", "x'"),
        (["x' = -x", "x=1", "t=0..1", "--stop", "x < 0.5"], "--stop x < 0.5 is no equation", None),
        (["x' = -x", "x=1", "t=0..1", "--stop", "x ="], "--stop x = is no equation", None),
        (["x' = -x", "x=1", "t=0..1", "--points", "1000000000"], "array elements", None),
    ],
)
def test_errors(run: Run, words: list[str], message: str, place: str | None) -> None:
    done = run("ode", *words)
    assert done.status != 0
    assert not done.out
    assert message in done.err
    assert "ʹ" not in done.err
    if place is not None:
        lines = done.err.splitlines()
        at = next(i for i, line in enumerate(lines) if set(line.strip(" |")) == {"^"})
        marks = lines[at]
        assert lines[at - 1][marks.index("^") : marks.rindex("^") + 1] == place


DATA = Path(__file__).parents[2] / "examples" / "data"
HUDSON = [
    "dH/dt = a*H - b*H*L; dL/dt = -c*L + d*H*L; log(Hare) ~ log(H); log(Lynx) ~ log(L)",
    str(DATA / "hudson.csv"),
    "t=column:Year",
]


@pytest.mark.parametrize(
    "starts",
    [
        ["a=0.5", "b=0.03", "c=0.8", "d=0.02"],
        ["a=1", "b=0.05", "c=1", "d=0.05"],
        ["a=0.6", "b=0.02", "c=0.6", "d=0.03", "H(0)=40", "L(0)=4"],
    ],
)
def test_lynx_and_hare_have_one_fit(run: Run, starts: list[str]) -> None:
    """The minimum is one, wherever the search begins."""
    found = run("fit", *HUDSON, *starts, "--json").json
    assert found["estimates"]["a"]["value"] == pytest.approx(0.5401589923, rel=1e-8)
    assert found["estimates"]["a"]["error"] == pytest.approx(0.0594887, rel=1e-5)
    assert found["rss"] == pytest.approx(2.01866116, rel=1e-8)


@pytest.mark.slow
def test_a_study_of_subjects_with_doses(run: Run) -> None:
    text = "A1' = -(cl + q)/v1*A1 + q/v2*A2; A2' = q/v1*A1 - q/v2*A2; log(conc) ~ log(A1/v1)"
    done = run(
        "fit", text, str(DATA / "two_compartments.csv"), "t=column:time", "A1=0", "A2=0", "v1=8", "cl=1.5", "v2=15", "q=2",
        "--by", "subject", "--events", str(DATA / "two_compartments_doses.csv"),
    )  # fmt: skip
    fits = [*csv.DictReader(io.StringIO(done.out))]
    assert [fit["subject"] for fit in fits] == [f"s{k}" for k in range(1, 7)]
    assert all(fit["converged"] == "true" for fit in fits)
    for fit in fits:
        assert float(fit["rss"]) == pytest.approx(_rss_by_eigenvalues(fit), rel=1e-8)


def _rss_by_eigenvalues(fit: dict[str, str]) -> float:
    """The residual sum of squares of a subject from the solution as exponentials."""
    cl, q, v1, v2 = (float(fit[name]) for name in ("cl", "q", "v1", "v2"))
    roots, vectors = np.linalg.eig([[-(cl + q) / v1, q / v2], [q / v1, -q / v2]])
    with (DATA / "two_compartments_doses.csv").open() as file:
        doses = [(float(r["time"]), float(r["amount"])) for r in csv.DictReader(file) if r["subject"] == fit["subject"]]
    total = 0.0
    with (DATA / "two_compartments.csv").open() as file:
        for row in csv.DictReader(file):
            if row["subject"] == fit["subject"]:
                time = float(row["time"])
                central = sum(
                    (vectors @ (np.exp(roots * (time - at)) * np.linalg.solve(vectors, [amount, 0])))[0]
                    for at, amount in doses
                    if time >= at
                )
                total += math.log(float(row["conc"]) * v1 / central) ** 2
    return total


DECAY = ["x' = -k*x; y ~ x", "t=[0,1,2,3]", "y=[2,1,0.5,0.3]"]


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x' = -k*x", "t=[0,1]", "y=[1,2]"], "the equations do not say what the data are of"),
        (["x' = -k*x; y ~ x", "s=[0,1]", "y=[1,2]"], "the data have no column 't' of the times"),
        (["x' = -k*x; z ~ x", "t=[0,1]", "y=[1,2]"], "the response 'z' is no column of the data"),
        (["x' = -k*x; y ~ x", "t=[0,1,2]", "y=[1,2,3]", "m=2"], "'m' is given a start, and the model does not use it"),
        (["x' = -k*x; y ~ ", "t=[0,1]", "y=[1,2]"], "there is no model behind '~'"),
        (["x' = -k*x; y ~ x", "t=[0]", "y=[1]"], "there are too few data: 1 row for 2 parameters"),
        ([*DECAY, "k=1", "--bounds", "k=2:3"], "the start k=1 is outside its bounds, 2 to 3"),
        ([*DECAY, "k=inf"], "the start of 'k' is inf"),
        ([*DECAY, "k=1", "--prior", "k=1±0"], "the prior of 'k' has the uncertainty 0"),
        ([*DECAY, "k=1", "--fix", "k", "--prior", "k=1±1"], "'k' is kept at its value, and is given a prior"),
        ([*DECAY, "s=[1,0,1,1]", "--sigma", "s"], "sigma is 0 in row 2, and a standard deviation is above 0"),
        (["x' = -k*x; -y ~ x", *DECAY[1:], "--family", "poisson"], "'-y' has values below 0, which are no counts"),
        (["y ~ k*t", "t=[0,1,2]", "y=[1,2,3]", "--events", str(DATA / "hudson.csv")], "events are for differential"),
    ],
)
def test_wrong_fits(run: Run, words: list[str], message: str) -> None:
    done = run("fit", *words)
    assert done.status == 2
    assert message in done.err


def test_rows_of_one_parameter_are_exact(run: Run) -> None:
    found = run("fit", "x' = -k*x; y ~ x", "t=[0,1,2,3]", "y=[2,1,0.5,0.25]", "k=1", "--json").json
    assert found["estimates"]["k"]["value"] == pytest.approx(math.log(2), rel=1e-10)
    assert found["estimates"]["x(0)"]["value"] == pytest.approx(2, rel=1e-10)


def test_shares_weigh_by_their_trials(run: Run) -> None:
    data = ["t=[0,1,2,3]", "e=[19,8,9,2]", "n=[20,10,20,10]", "k=0.5", "--family", "binomial", "--json"]
    found = run("fit", "x' = -k*x; e/n ~ x", "x=0.99", *data).json["estimates"]["k"]
    expected = run("fit", "e/n ~ 0.99*exp(-k*t)", *data).json["estimates"]["k"]
    assert found["value"] == pytest.approx(expected["value"], rel=1e-8)
    assert found["error"] == pytest.approx(expected["error"], rel=1e-6)


def test_digits_are_proved(run: Run) -> None:
    words = ["dx/dt = -k*x; at t = 12, tau: x += dose", "x=0", "k=0.2", "dose=5", "tau=24", "t=[0, 12, 24, 36]"]
    done = run("ode", *words, "--wrt", "k", "--order", "2", "--show", "x**2", "--digits", "30")
    assert done.status == 0, done.err
    last = dict(zip(*(line.split(",") for line in (done.out.splitlines()[0], done.out.splitlines()[-1]))))
    closed = "5*exp(-12*k) + 5*exp(-24*k)"
    expected = run("eval", closed, "k=0.2", "--order", "2", "--digits", "30", "--json").json
    assert last["x"] == expected["value"]
    assert last["d_x_k"] == expected["grad"]["k"]
    assert last["d_x_k_k"] == expected["derivatives"]["k,k"]
    assert last["x**2"] == run("eval", f"({closed})**2", "k=0.2", "--digits", "30", "--json").json["value"]


def test_digits_of_derivatives_by_the_time_of_a_jump(run: Run) -> None:
    words = [
        "dx/dt = -k*x + t; at t = lag: x += dose",
        "x=1",
        "k=1/3",
        "dose=5",
        "lag=0.7",
        "t=0.1..1.2",
        "--points",
        "3",
    ]
    words += ["--wrt", "lag,k", "--order", "2"]
    proved, floats = (run("ode", *words, *more).out for more in (("--digits", "17"), ()))
    for line, other in zip(proved.splitlines()[1:], floats.splitlines()[1:]):
        assert [*map(float, line.split(","))] == pytest.approx([*map(float, other.split(","))], rel=1e-13)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["y' = y**2", "y=1", "t=0..2"], "the solution is enclosed up to t = 0.9999999"),
        (["y' = -y", "y=1", "t=0..2", "--stop", "y = 0.5"], "there are no proved digits of a time to stop at"),
        (["y' = -y", "y=1", "t=0..2", "--method", "radau"], "--digits and --method radau contradict each other"),
        (["y' = -y", "y=1", "t=0..2", "--plot", "a.svg"], "--digits and --plot contradict each other"),
        (["y' = -y; at t = pi: y = 2", "y=1", "t=[0,pi]", "--max-precision", "50"], "cannot be told apart"),
        (["y' = -y", "y=1", "t=[0,2,1]"], "the times go back: 1 is after 2"),
    ],
)
def test_digits_that_cannot_be_proved(run: Run, words: list[str], message: str) -> None:
    done = run("ode", *words, "--digits", "12")
    assert done.status
    assert message in done.err


def test_a_number_before_a_derivative_multiplies_it(run):
    words = ["x=1", "x'=0", "t=0..10", "--points", "3"]
    assert run("ode", "x'' = -0.1x' - 2e-1x", *words).out == run("ode", "x'' = -0.1*x' - 0.2*x", *words).out


def test_missing_times_are_told_with_another_mistake(run):
    outcome = run("ode", "x'' + x = 0", "x=1", "x'=0")
    assert "hint: write x'' = -x; the times are missing too, as in t=0..20" in outcome.err


LORENZ = "x' = 10*(y - x); y' = x*(r - z) - y; z' = x*y - 8/3*z"


def test_columns_with_few_right_digits_are_told(run: Run) -> None:
    """They were printed with all digits and without a warning."""
    done = run("ode", LORENZ, "x=1", "y=1", "z=1", "r=28", "t=0..60", "--points", "3")
    assert "'x' has no right digit at t = 60" in done.err
    done = run("ode", LORENZ, "x=1", "y=1", "z=1", "r=28", "t=0..10", "--points", "3", "--wrt", "r")
    assert not done.err
    oscillator = "x' = y; y' = m*(1 - x**2)*y - x"
    done = run("ode", oscillator, "x=2", "y=0", "m=1000", "t=[0,1000]", "--wrt", "m", "--order", "2")
    assert re.search("'d_x_m_m' has about [345] right digits at t = 1000", done.err)


def test_names_of_states_that_begin_with_those_of_others(run):
    done = run("ode", "x' = -a*x; x_y' = -x_y", "x=1", "x_y=2", "a=1", "t=0..2", "--wrt", "a")
    assert done.status == 0, done.err
    assert "d_x_y_a" in done.out


def test_a_derivative_that_a_condition_makes_0_is_not_inaccurate(run):
    done = run("ode", "s' = -v*s/(km + s)", "s=5", "v=1.2", "km=0.8", "t=0..20", "--stop", "s = 0.5", "--wrt", "v,km")
    assert done.status == 0
    assert "digit" not in done.err
