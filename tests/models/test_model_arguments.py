"""Tests the arguments of the models, from Python and the command line, and the errors for invalid ones."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

import gradcli
from gradcli import GradcliError, models
from gradcli.cli.main import main
from gradcli.cli.process.environment import Environment
from tests.evaluation.test_wrong_types import WRONG, attempt, parameters

DATA = {"x": [1.0, 2, 3, 4], "y": [1.0, 3, 2, 5], "dy": [1.0, 1, 2, 1]}
LINE = "y ~ a + b*x"
CALLS = {
    "fit": (models.fit, {"model": LINE, "data": DATA}, ()),
    "minimize": (models.minimize, {"x": 1}, ("(x - 1)**2",)),
    "solve": (models.solve, {"start": {"x": 1}, "a": 2}, ("x**2 = a",)),
    "propagate": (models.propagate, {"x": "5±1", "y": 2}, ("x*y",)),
    "sample": (models.sample, {"x": 0, "draws": 10, "warmup": 10}, ("-(x**2)",)),
    "design": (models.design, {"a": 1, "x": (0, 1)}, ("a*x",)),
    "series": (models.series, {"x": 0}, ("exp(x)",)),
}
SOME = (
    "None",
    "half a surrogate pair",
    "an object",
    "a dict",
    "a huge number",
    "nan",
    "a ragged list",
    "an array of dates",
)
# Arguments by name: values of any other type are only found inside a mapping.
MAPPINGS = ("bounds", "prior", "x_sigma", "start", "bracket", "correlation", "dof", "values")


@pytest.mark.cases(4)
@pytest.mark.parametrize("wrong", SOME)
@pytest.mark.parametrize("called", CALLS)
def test_what_is_of_a_wrong_type_is_an_error(called, wrong):
    function, given, words = CALLS[called]
    for name in parameters(function):
        if name in ("max_steps", "max_elements", "watch"):
            continue
        attempt(function, *words, **{**given, name: WRONG[wrong]})
        if name in MAPPINGS:
            attempt(function, *words, **{**given, name: {"x": WRONG[wrong]}})
            attempt(function, *words, **{**given, name: {"b": (WRONG[wrong], 1)}})


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starts": 0}, "the number of starts is 0, and at least 1"),
        ({"seed": -1}, "the seed is -1, and at least 0"),
        ({"level": 95}, "there is no level 95"),
        ({"bounds": {"a": ("x", 1)}}, "a bound of 'a' is no number"),
        ({"b": "x"}, "the start of 'b' is a number, not str"),
        ({"b": float("nan")}, "the start of 'b' is nan"),
        ({"fix": {"b": 1}}, "'fix' is a name or a list of names, not a mapping"),
        ({"sigma": [1, 2]}, "'sigma=[…]' has 2 rows, and the other data have 4"),
        ({"x_sigma": {"x": [0, 1, 1, 1]}}, "an error of 'x' is not above 0 in row 1"),
        ({"b": 1, "fix": "b", "prior": {"b": "1±1"}}, "'b' is kept at its value, and is given a prior"),
        ({"prior": {"b": "[1, 2]±1"}}, "the prior of 'b' is of several numbers"),
        ({"by": [1, 1, 2, 2]}, "'by' is the name of a column, not list"),
        ({"seed": True}, "the seed is a whole number, not bool"),
        ({"data": []}, "there are no files in the list of data"),
        ({"family": "normal"}, "there is no family 'normal'"),
        ({"watch": 3}, "what watches the iterations is a function"),
    ],
)
def test_what_is_no_fit_is_said(options, message):
    with pytest.raises(GradcliError, match=re.escape(message)):
        gradcli.fit(LINE, **{"data": DATA, **options})


def test_arrays_and_single_names_are_taken_as_they_are_meant(tmp_path):
    of_column = gradcli.fit(LINE, DATA, sigma="dy", absolute_sigma=True)
    of_array = gradcli.fit(LINE, DATA, sigma=DATA["dy"], absolute_sigma=True)
    assert of_array.estimates == of_column.estimates
    across = gradcli.fit(LINE, DATA, x_sigma={"x": np.array([0.1, 0.1, 0.2, 0.1])})
    assert across.converged
    fixed = gradcli.fit(LINE, DATA, b=1, fix="b", bounds="a=0:", residuals=tmp_path / "r.csv")
    assert fixed.estimates["b"].fixed
    assert (tmp_path / "r.csv").exists()
    # A row with an unknown standard deviation is left out like any other.
    assert gradcli.fit(LINE, DATA, sigma=[1, None, 1, 1]).left_out == 1


@pytest.mark.parametrize(
    ("words", "row"),
    [
        (("y ~ a*x", "--sigma", "s"), "sigma is 0 in row 4"),
        (("log(y - 1) ~ a*x",), "in row 5"),
        (("y ~ a*log(x - 2)", "a=1"), "at the start, in row 3 of the data"),
        (("y ~ a*x", "--x-sigma", "x=s"), "an error of 'x' is not above 0 in row 4"),
    ],
)
def test_a_row_is_called_by_its_number_in_the_table(run, tmp_path, words, row):
    data = tmp_path / "d.csv"
    data.write_text("x,y,s\n5,NA,1\n,7,1\n2,3,1\n4,5,0\n6,1,1\n")
    found = run("fit", words[0], str(data), *words[1:])
    assert found.status
    assert row in found.err


def test_lines_of_json_need_no_polars(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    assert run(*FITTED, "--residuals", str(tmp_path / "r.jsonl")).status == 0
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 4


def test_rows_that_are_left_out_are_counted(run, tmp_path):
    data = tmp_path / "d.csv"
    data.write_text("x,y,g\n1,1,u\n2,2.1,u\n3,3,u\n4,,u\n1,2,v\n2,3.9,v\n3,6.1,v\n1,,w\n2,NA,w\n")
    whole = run("fit", "y ~ a*x", str(data), "--json")
    assert (whole.json["n"], whole.json["left_out"]) == (6, 3)
    groups = run("fit", "y ~ a*x", str(data), "--by", "g")
    # A group is reported even if none of its rows is complete.
    assert [line.split(",")[:2] for line in groups.out.splitlines()[1:]] == [["u", "3"], ["v", "3"], ["w", "0"]]
    assert groups.status == 1
    assert "the first is 'w'" in groups.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("y ~ a*[x, x]",), "the model has a value of shape [2] in a row"),
        (("[y, y] ~ a*x",), "the response is one number in a row"),
        (("y ~ a*x", "z=[1,2,3]"), "'z' is given a column, and nothing reads it"),
        (("y ~ a*x", "z=column:x"), "'z' is given a column, and nothing reads it"),
        (("y ~ e*x",), "e is a constant; with a start, e=1, it is a parameter"),
        (("y ~ d*x + e",), "'e' is Euler's number here, and stands as a parameter does beside 'd'"),
        (("y ~ a*x + b", "--prior", "a=1"), "the prior of 'a' has no uncertainty"),
        (("y ~ a*x + b", "b=1", "--fix", "b", "--bounds", "b=0:"), "'b' is kept at its value, and is given bounds"),
        (("y ~ a*x + b", "--sigma", "dyy"), "did you mean 'dy'?"),
    ],
)
def test_what_cannot_be_fitted_is_said(run, tmp_path, words, message):
    data = tmp_path / "d.csv"
    data.write_text("x,y,dy\n1,1,1\n2,2.1,1\n3,3,2\n")
    found = run("fit", words[0], str(data), *words[1:])
    assert found.status
    assert message in found.err
    assert "internal error" not in found.err


@pytest.mark.parametrize(
    "words", [["y ~ a + b*e**(-d*x)"], ["y ~ a + b*pow(e, -d*x)"], ["y ~ a*x/e"], ["y ~ a + d*x/e", "e=1"]]
)
def test_an_e_that_is_no_parameter_or_has_a_start_is_taken(run, words):
    found = run("fit", *words, "x=[0,1,2,3,4,5]", "y=[5,3.1,2.2,1.5,1.1,0.9]")
    assert "Euler" not in found.err


def test_numbers_whose_squares_overflow_have_a_fit(run):
    found = run("fit", "y ~ a*x + b", "x=[1e300,2e300,3e300]", "y=[1e300,2.1e300,2.9e300]", "--json")
    assert found.status == 0
    a, b = found.json["estimates"].values()
    assert [a["value"], a["error"]] == pytest.approx([0.95, 0.75**0.5 / 10], rel=1e-9)
    assert b["value"] == pytest.approx(1e299, rel=1e-9)


def test_a_model_that_overflows_has_no_fit_and_no_fault(run):
    found = run("fit", "y ~ a*x**2", "x=[1e300,2e300,3e300]", "y=[1e300,2.1e300,2.9e300]")
    assert found.status == 1
    assert "gives inf for operand" in found.err


def test_rows_of_a_model_without_predictors_are_predicted_once(run, tmp_path):
    data, bands = tmp_path / "d.csv", tmp_path / "p.csv"
    data.write_text("y,g\n1,u\n2,u\n3,u\n2,v\n4,v\n,v\n")
    assert run("fit", "y ~ a", str(data), "--by", "g", "--predict", str(bands)).status == 0
    assert [line[0] for line in bands.read_text().splitlines()[1:]] == ["u"] * 3 + ["v"] * 3
    assert run("fit", "y ~ a", str(data), "--predict", str(bands)).status == 0
    assert len(bands.read_text().splitlines()) == 7


@pytest.mark.filterwarnings("error")
def test_a_profile_of_exact_data_is_a_point():
    (estimate,) = gradcli.fit("y ~ a", {"y": [2.0, 2, 2]}, profile=True).estimates.values()
    assert (estimate.low, estimate.high) == (2, 2)


FIT = (
    "n dof converged message estimates covariance correlation rss s reduced_chi2 r2 loglik aic bic condition curvature "
)
FIT += "left_out iterations evaluations starts undetermined warnings"
MINIMUM = "value point gradient_norm eigenvalues kind multipliers sensitivity iterations evaluations converged message"
PROPAGATION = "value u relative budget dof k level interval second_order monte_carlo"
FITTED = ("fit", LINE, "x=[1,2,3,4]", "y=[1,3,2,5]")


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (FITTED, FIT),
        ((*FITTED, "--loss", "huber"), FIT),
        ((*FITTED, "--family", "poisson", "a=1", "b=1"), FIT),
        ((*FITTED, "--sigma", "2", "--absolute-sigma", "--profile"), FIT),
        ((*FITTED, "--x-sigma", "x=0.1"), FIT),
        ((*FITTED, "b=1", "--fix", "b", "--bounds", "a=0:"), FIT),
        ((*FITTED, "--prior", "b=1±1"), FIT),
        (("fit", "y ~ a*b*x", "x=[1,2,3]", "y=[1,2,4]", "a=1", "b=1"), FIT),
        (("minimize", "(x-1)**2", "x=0"), MINIMUM),
        (("minimize", "(x-c)**2", "x=0", "c=1", "--sensitivity", "c"), MINIMUM),
        (("minimize", "x**2", "x=1", "--bounds", "x=1:2", "--global"), f"{MINIMUM} minima"),
        (("minimize", "x", "x=0"), MINIMUM),
        (("solve", "x**2 = a", "x~1", "a=2"), "roots converged message"),
        (("propagate", "x*y", "x=5±1", "y=2"), PROPAGATION),
        (("propagate", "[x, x*x]", "x=5±1", "--samples", "100"), f"{PROPAGATION} covariance"),
        (("propagate", "x", "x=5±1", "--digits", "5"), PROPAGATION),
        (("series", "exp(x)", "x=0"), "center order coefficients text remainder radius"),
        (("plot", "x**2", "x=0..1"), "curves"),
    ],
)
def test_every_key_is_there(run, words, keys):
    found = run(*words, "--json").json
    assert [key for key in keys.split() if key not in found] == []
    for root in found.get("roots", ()):
        assert [*root] == ["point", "residual", "condition", "derivatives"]


def test_a_root_without_derivatives_has_the_key(run):
    for words in (("x**2 = -1", "x~1"), ("x**2 = 4", "x~1", "--order", "0")):
        (root,) = run("solve", *words, "--json").json["roots"]
        assert root["derivatives"] is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((*FITTED, "--profile"), "objective"),
        (
            ("fit", "y ~ a*exp(k*x)", "x=[0,1,2,3,0,1,2,3]", "y=[1,2,4,9,2,3,4,5]", "g=[0,0,0,0,1,1,1,1]", "--by", "g"),
            "gradient",
        ),
        (("propagate", "x**2", "x=5±1", "--samples", "1e5"), "sample 100,000 of 100,000"),
    ],
)
def test_what_takes_long_says_on_a_terminal_how_far_it_is(words, shown, monkeypatch):
    monkeypatch.setattr("gradcli.cli.rendering.model_report._FIRST_SHOWN", 0.0)
    monkeypatch.setattr("gradcli.cli.rendering.model_report._UPDATE_INTERVAL", 0.0)
    err = Terminal()
    assert main(words, Environment(io.StringIO(), io.StringIO(), err, {})) == 0
    assert shown in err.getvalue()
