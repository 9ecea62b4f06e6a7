"""Tests fits of differential equations: missing measurements, where trajectories begin, columns of single rows, and
standard deviations that are fitted, beside closed forms and published models of systems biology."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests import petab_models
from tests.conftest import Outcome

Run = Callable[..., Outcome]

# Of y ~ 2*exp(-0.5*t) with errors, and of z ~ 3*y.
TIMES = [0.0, 1.0, 2.0, 3.0, 4.0]
FIRST = [2.02, 1.19, 0.75, 0.44, 0.28]
SECOND = [6.1, 3.6, 2.25, 1.32, 0.8]


def _list(values: list[float]) -> str:
    return str(values).replace(" ", "")


def test_each_response_has_the_rows_in_which_it_is_measured(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("t,y,z\n0,2.02,\n1,1.19,3.6\n2,,2.25\n3,0.44,1.32\n4,,\n")
    found = run("fit", "x' = -k*x; y ~ x; z ~ 3*x", str(path), "k=0.5", "--json").json
    rows = [(0, 2.02), (1, 1.19), (3, 0.44), (1, 3.6 / 3), (2, 2.25 / 3), (3, 1.32 / 3)]
    words = [f"t={_list([t for t, _ in rows])}", f"y={_list([y for _, y in rows])}", "w=[1,1,1,3,3,3]"]
    expected = run("fit", "w*y ~ w*a*exp(-k*t)", *words, "k=0.5", "a=2", "--json").json
    assert found["n"] == 6
    # The last row has no measurement.
    assert found["left_out"] == 1
    assert found["rss"] == pytest.approx(expected["rss"], rel=1e-9)
    for name, of in (("k", "k"), ("x(0)", "a")):
        for part in ("value", "error"):
            assert found["estimates"][name][part] == pytest.approx(expected["estimates"][of][part], rel=1e-7)


def test_a_trajectory_begins_with_its_first_row(run: Run, tmp_path: Path) -> None:
    """Also where nothing is measured there."""
    path = tmp_path / "data.csv"
    path.write_text("t,y\n-2,\n0,2\n1,1\n2,0.5\n")
    found = run("fit", "x' = -k*x; y ~ x", str(path), "k=0.5", "--json").json["estimates"]
    assert found["x(0)"]["value"] == pytest.approx(8, rel=1e-8)
    assert found["k"]["value"] == pytest.approx(math.log(2), rel=1e-8)


def test_a_response_reads_columns_that_differ_from_row_to_row(run: Run) -> None:
    """They belong to no trajectory of their own."""
    weight = [1.0, 2.0, 1.5, 3.0, 2.5]
    scaled = [w * y for w, y in zip(weight, FIRST)]
    found = run(
        "fit", "x' = -k*x; y ~ w*x", f"t={_list(TIMES)}", f"y={_list(scaled)}", f"w={_list(weight)}", "k=0.5", "--json"
    )
    expected = run(
        "fit",
        "y ~ w*a*exp(-k*t)",
        f"t={_list(TIMES)}",
        f"y={_list(scaled)}",
        f"w={_list(weight)}",
        "k=0.5",
        "a=2",
        "--json",
    )
    assert found.json["estimates"]["x(0)"]["value"] == pytest.approx(expected.json["estimates"]["a"]["value"], rel=1e-8)
    assert found.json["rss"] == pytest.approx(expected.json["rss"], rel=1e-8)


def test_standard_deviations_are_fitted(run: Run) -> None:
    """Of each response its own: at the maximum it is the root of the mean square."""
    data = [f"t={_list(TIMES)}", f"y={_list(FIRST)}", f"z={_list(SECOND)}", "k=0.5"]
    found = run("fit", "x' = -k*x; y ~ x; z ~ 3*x", *data, "--sigma", "y=sy,z=sz", "sy=0.1", "sz=0.1", "--json").json
    k, start, *sigmas = (found["estimates"][name]["value"] for name in ("k", "x(0)", "sy", "sz"))
    value = start * np.exp(-k * np.array(TIMES))
    loglik = 0.0
    for sigma, off in zip(sigmas, (FIRST - value, SECOND - 3 * value)):
        assert sigma == pytest.approx(math.sqrt(np.mean(off**2)), rel=1e-6)
        loglik -= len(off) * (math.log(sigma) + (1 + math.log(2 * math.pi)) / 2)
    assert found["loglik"] == pytest.approx(loglik, rel=1e-9)
    assert found["converged"]


def test_a_standard_deviation_is_an_expression_of_the_solution(run: Run) -> None:
    data = [f"t={_list(TIMES)}", f"y={_list(FIRST)}", "k=0.5"]
    found = run("fit", "x' = -k*x; y ~ x", *data, "--sigma", "s*x", "s=0.1", "--json").json
    density = "-log(s*a*exp(-k*t)) - 0.5*log(2*pi) - 0.5*((y - a*exp(-k*t))/(s*a*exp(-k*t)))**2"
    expected = run("fit", "--likelihood", density, *data, "a=2", "s=0.1", "--json").json
    assert found["loglik"] == pytest.approx(expected["loglik"], rel=1e-9)
    for name, of in (("k", "k"), ("s", "s"), ("x(0)", "a")):
        for part in ("value", "error"):
            assert found["estimates"][name][part] == pytest.approx(expected["estimates"][of][part], rel=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sigma", "dy"], "the data have no column 'dy'"),
        (["--sigma", "s*", "s=1"], "the program ends where an expression should follow"),
        (["--sigma", "s", "s=1", "--loss", "huber"], "a standard deviation that is an expression is that of a normal"),
        (["--sigma", "-s", "s=1"], "not finite"),
    ],
)
def test_wrong_standard_deviations(run: Run, words: list[str], message: str) -> None:
    done = run("fit", "x' = -k*x; y ~ x", f"t={_list(TIMES)}", f"y={_list(FIRST)}", "k=0.5", *words)
    assert done.status != 0
    assert message in done.err


@pytest.mark.slow
@pytest.mark.parametrize(("name", "by"), [("bruno", ["kb1", "init_zea"]), ("rahman", ["rate"]), ("boehm", [])])
def test_likelihoods_are_the_published_ones(name: str, by: list[str]) -> None:
    """The gradient by the logarithms of some parameters, beside the published ones, is that of SciPy's solutions."""
    found = petab_models.by_gradcli(name)
    model = petab_models.MODELS[name]
    assert found.value == pytest.approx(model.published, rel=1e-8)
    if by:
        found, other = petab_models.by_gradcli(name, 1.05), petab_models.by_scipy(name, 1.05, by)
        assert found.value == pytest.approx(other.value, rel=1e-9)
        places = [[*model.parameters].index(parameter) for parameter in by]
        assert found.gradient[places] == pytest.approx(other.gradient, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", petab_models.GRADIENTS)
def test_gradients_of_published_models(name: str) -> None:
    found = petab_models.by_gradcli(name, 0.95).gradient
    own = dict(zip(petab_models.MODELS[name].parameters, found))
    expected = petab_models.GRADIENTS[name]
    largest = max(map(abs, expected.values()))
    assert {parameter: own[parameter] for parameter in expected} == pytest.approx(
        expected, rel=1e-7, abs=1e-10 * largest
    )
