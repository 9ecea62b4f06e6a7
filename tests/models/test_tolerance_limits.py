"""Tests `gradcli propagate --limits` and `--budget`: tolerance analysis, and budgets as files."""

from __future__ import annotations

import csv
import itertools
import math

import pytest

import gradcli
from gradcli.errors import BindingError


def test_a_chain_of_dimensions(run):
    # A gap: the worst case is the sum of the tolerances, also for limits that a distribution has.
    words = ("a - b - c", "a=10.0±0.1", "b=4±0.05", "c=~uniform(5.9,5.95)", "--limits", "--json")
    found = run("propagate", *words).json
    assert found["limits"]["worst_case"] == ["-0.1", "0.25"]
    assert found["limits"]["linear"] == pytest.approx([-0.1, 0.25])
    root = math.sqrt(0.1**2 + 0.05**2 + 0.025**2)
    assert found["limits"]["rss"] == pytest.approx([0.075 - root, 0.075 + root])
    # Between limits a quantity is rectangular.
    assert found["u"] == pytest.approx(root / math.sqrt(3))
    assert "reached" not in found["limits"]


def test_the_worst_case_of_a_monotonic_formula_is_at_corners():
    found = gradcli.propagate("R1*R2/(R1 + R2)", R1="100±5%", R2="200±1%", limits=True).limits
    corners = [a * b / (a + b) for a, b in itertools.product((95, 105), (198, 202))]
    assert [float(end) for end in found.worst_case] == pytest.approx([min(corners), max(corners)], rel=1e-8)
    assert float(found.worst_case[0]) <= min(corners)
    assert float(found.worst_case[1]) >= max(corners)


def test_what_the_derivative_does_not_see_is_in_the_worst_case():
    found = gradcli.propagate("x*(1 - x)", x="0.5±0.5", limits=True).limits
    assert found.worst_case == ("0", "0.25")
    assert found.linear == (0.25, 0.25)


def test_several_results_arrays_and_exact_inputs():
    found = gradcli.propagate("p = sum(x)/n; q = x[0]*n; [p, q]", x="[1±0.1, 2±0.2]", n=2, limits=True).limits
    assert found["p"].worst_case == ("1.35", "1.65")
    assert found["q"].worst_case == ("1.8", "2.2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a", "a=~normal(1, 0.1)"), "'a' is normal and has no limits"),
        (("a", "a=~exponential(1)"), "'a' is exponential and has no limits"),
        (("a*b", "a=1±0.1", "b=1±0.1", "--correlation", "a,b=0.5"), "'a' is correlated"),
        (("a", "a=1±0.1", "--dof", "a=3"), "'a' is observations, which has no limits"),
        (("a", "a=1±0.1", "--digits", "9"), "--digits and --limits contradict each other"),
    ],
)
def test_inputs_without_limits(run, words, message):
    done = run("propagate", *words, "--limits")
    assert (done.status, message in done.err) == (2, True)


def test_limits_beyond_the_domain(run):
    done = run("propagate", "1/x", "x=1±1", "--limits", "--quiet")
    assert done.status == 1
    assert "there is no bound, or no value, at some point of x = 0.." in done.err


def test_draws_are_between_the_limits():
    found = gradcli.propagate("a", a="1±0.1", limits=True, samples=1e4, level=0.999)
    low, high = found.monte_carlo.interval
    assert 0.9 <= low < 0.901
    assert 1.099 < high <= 1.1


def test_the_table(run):
    out = run("propagate", "a*b", "a=2±0.1", "b=3±0.1", "--limits").out
    assert "limits in the worst case    [5.51, 6.51]" in out
    assert "root of the sum of squares  [5.64, 6.36]" in out


# --- files


def test_the_budget_as_csv(run, tmp_path):
    path = tmp_path / "budget.csv"
    found = run("propagate", "V/I_0", "V=5.00±0.01", "I_0=0.0200(1)", "--budget", str(path), "--json").json
    rows = [*csv.DictReader(path.read_text().splitlines())]
    assert [row["name"] for row in rows] == ["V", "I_0", "value"]
    assert float(rows[1]["sensitivity"]) == found["budget"][1]["sensitivity"]
    assert rows[0]["dof"] == "Infinity"
    assert (float(rows[2]["u"]), rows[2]["share"]) == (found["u"], "")


def test_the_budgets_of_several_results(tmp_path):
    path = tmp_path / "budget.csv"
    gradcli.propagate("p = a + b; q = a*b; [p, q]", a="1±0.1", b="2±0.1", budget=path)
    rows = [*csv.DictReader(path.read_text().splitlines())]
    assert [(row["result"], row["name"]) for row in rows] == [(r, name) for r in "pq" for name in ("a", "b", r)]


def test_the_budget_in_latex(run, tmp_path):
    path = tmp_path / "budget.tex"
    run("propagate", "V/I_0", "V=5.00±0.01", "I_0=0.0200(1)", "--budget", str(path))
    assert path.read_text().splitlines() == [
        r"\begin{tabular}{lrrrrr}",
        r"\hline",
        r"input & value & dof & sensitivity & contribution & share \\",
        r"\hline",
        r"V & $5.000 \pm 0.010$ & $\infty$ & $50$ & $0.5$ & 13.8\,\% \\",
        r"I\_0 & $0.02000 \pm 0.00010$ & $\infty$ & $-1.25 \times 10^{4}$ & $1.25$ & 86.2\,\% \\",
        r"\hline",
        r"value & $250.0 \pm 1.3$ & $\infty$ & & & \\",
        r"\hline",
        r"\end{tabular}",
    ]


def test_a_budget_with_proved_digits(run, tmp_path):
    path = tmp_path / "budget.csv"
    run("propagate", "V/I", "V=5.00±0.01", "I=0.0200(1)", "--digits", "30", "--budget", str(path))
    assert [*csv.DictReader(path.read_text().splitlines())][-1]["u"] == "1.34629120178362600781267762289"
    assert run("propagate", "a", "a=1±0.1", "--digits", "9", "--budget", str(tmp_path / "b.tex")).status == 0


def test_a_path_without_a_format(run, tmp_path):
    done = run("propagate", "a", "a=1±0.1", "--budget", "budget.doc")
    assert done.status == 2
    assert "or in .tex" in done.err
    assert done.out == ""


def test_a_budget_that_cannot_be_written(run, tmp_path):
    done = run("propagate", "a", "a=1±0.1", "--budget", str(tmp_path / "no" / "budget.tex"))
    assert done.status == 1
    assert "cannot write" in done.err


def test_limits_are_of_uncertain_inputs():
    with pytest.raises(BindingError, match="no input has an uncertainty"):
        gradcli.propagate("a", a=1, limits=True)
