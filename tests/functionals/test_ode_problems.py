"""Tests the solutions of published problems, and their derivatives, beside those of other methods in 60 digits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gradcli.executors import llvm_ufuncs
from tests.conftest import Outcome
from tests.ode_problems import PROBLEMS, SMOOTH, STIFF
from tests.ode_references import PATH

Run = Callable[..., Outcome]

REFERENCES = json.loads(PATH.read_text())
# States of F. Mazzia and C. Magherini's and of E. Hairer and G. Wanner's test sets.
PUBLISHED = {
    "ROBER": [0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050],
    "VDPOL": [1.706167732170483, -0.8928097010247975],
    "OREGO": [1.000814870318523, 1228.178521549917, 132.0554942846706],
    "HIRES": [
        0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2, 0.2386356198831331e-2,
        0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
    ],
    "POLLU": [
        0.5646255480022769e-1, 0.1342484130422339, 0.4139734331099427e-8, 0.5523140207484359e-2, 0.2018977262302196e-6,
        0.1464541863493966e-6, 0.7784249118997964e-1, 0.3245075353396018, 0.7494013383880406e-2, 0.1622293157301561e-7,
        0.1135863833257075e-7, 0.2230505975721359e-2, 0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2,
        0.4352846369330103e-17, 0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4,
    ],
}  # fmt: skip


def _solved(run: Run, name: str, *options: str, wrt: tuple[str, ...] = ()) -> dict[str, Any]:
    """What `gradcli eval` prints for the states at the end; the starts that are in `wrt` are names, `x0`, `x1`, …"""
    problem = PROBLEMS[name]
    starts = [f"x{i}" if str(i) in wrt else repr(s) for i, s in enumerate(problem.start)]
    program = (
        f"solve_ivp(lambda t, y: {problem.right_side}, (0, {problem.end!r}), [{', '.join(starts)}], "
        f"atol={problem.atol!r}).y[:, 1]"
    )
    values = [f"{n}={v!r}" for n, v in problem.parameters.items()]
    values += [f"x{i}={s!r}" for i, s in enumerate(problem.start) if str(i) in wrt]
    done = run("eval", program, *values, "--json", *options)
    assert done.status == 0, done.err
    found: dict[str, Any] = done.json
    return found


def test_references_are_published_states() -> None:
    for name, states in PUBLISHED.items():
        assert REFERENCES[name]["states"] == pytest.approx(states, rel=1e-9, abs=0)


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_problems(run: Run, name: str) -> None:
    found = _solved(run, name, "--no-grad")["value"]
    assert found == pytest.approx(REFERENCES[name]["states"], rel=1e-10, abs=1e-13)


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "POLLU" else n for n in STIFF])
def test_stiff_problems(run: Run, name: str) -> None:
    found = _solved(run, name, "--no-grad")["value"]
    assert found == pytest.approx(REFERENCES[name]["states"], rel=1e-8, abs=1e-18)


# Those that take seconds, whose derivatives are tested with --all, and how far the references are known to be right.
_SLOW = {"C4", "C5", "D3", "HIRES", "OREGO", "ROBER", "VDPOL"}
_KNOWN = {"OREGO": 1e-5, "VDPOL": 1e-6, "ROBER": 1e-7}


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in _SLOW else n for n in PROBLEMS if n != "POLLU"]
)
def test_derivatives_by_parameters_and_starts(run: Run, name: str) -> None:
    expected = REFERENCES[name]["derivatives"]
    names = {by: f"x{by}" if by.isdigit() else by for by in expected}
    found = _solved(run, name, "--jacobian", "--wrt", ",".join(names.values()), wrt=tuple(expected))["jacobian"]
    for by, slopes in expected.items():
        size = max(map(abs, slopes))
        assert found[names[by]] == pytest.approx(slopes, rel=_KNOWN.get(name, 1e-8), abs=1e-12 * size), by


def test_a_rate_that_is_read_twice_is_one_parameter(run: Run) -> None:
    """The derivatives by k and by -k alone are a billion times larger than by k."""
    problem = PROBLEMS["ROBER"]
    program = f"solve_ivp(lambda t, y: {problem.right_side}, (0, 1e9), [1, 0, 0]).y[:, 1]"
    found = run("eval", program, "k=0.04", "m=1e4", "n=3e7", "--json", "--wrt", "k", "--jacobian").json["jacobian"]["k"]
    assert sum(found) == pytest.approx(0, abs=1e-9 * abs(found[0]))
    table = run("ode", "a' = -k*a + m*b*c; b' = k*a - m*b*c - n*b**2; c' = n*b**2", "k=0.04", "m=1e4", "n=3e7", "a=1",
                "b=0", "c=0", "t=[0,1e9]", "--wrt", "k").out.splitlines()  # fmt: skip
    row = dict(zip(table[0].split(","), map(float, table[-1].split(","))))
    assert found == pytest.approx([row[f"d_{name}_k"] for name in "abc"], rel=1e-8)


def test_elements_of_a_vector_that_are_read_twice_are_one_parameter(run: Run) -> None:
    program = "f(y, t, p) = [-p[0]*y[0] + p[1]*y[1], p[0]*y[0] - p[1]*y[1]]; odeint(f, [1, 0], [0, 50], p)[1, 0]"
    found = run("eval", program, "p=[2.0, 3.0, 7.0]", "--json").json["grad"]["p"]
    assert found == pytest.approx([-3 / 25, 2 / 25, 0], rel=1e-10)


@pytest.mark.parametrize("compiled", [True, False])
def test_variations_that_decay_beside_a_rounded_state(
    run: Run, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """The forcing 1 - y of the variations is known to the rounding of y, which was taken for a step that is too long."""
    if not compiled:
        monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
        monkeypatch.setattr(llvm_ufuncs, "_target", llvm_ufuncs._target.__wrapped__)
    words = ("r=1", "K=2", "y=1e-10", "--order", "2", "--wrt", "r,K")
    table = run("ode", "y' = r*y*(1 - y/K)", *words, "t=[0,25,200]", "--max-steps", "200000").out.splitlines()
    rows = [dict(zip(table[0].split(","), map(float, line.split(",")))) for line in table[1:]]
    closed = "K/(1 + (K/1e-10 - 1)*exp(-r*25))"
    expected = run("eval", closed, "r=1", "K=2", "--order", "2", "--wrt", "r,K", "--json").json["derivatives"]
    for labels, value in expected.items():
        name = "_".join(["d_y", *labels.split(",")])
        assert rows[1][name] == pytest.approx(value, rel=1e-9), name
        assert rows[2][name] == pytest.approx(0, abs=1e-14), name
