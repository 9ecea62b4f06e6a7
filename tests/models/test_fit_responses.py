"""Fits of several responses of a row, which have parameters in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradcli.models import fit

DECAY = str(Path(__file__).parents[2] / "examples/data/decay.csv")
MODEL = "drug ~ a*exp(-k*hours); product ~ b*(1 - exp(-k*hours))"

# From R, with the responses stacked as y, and i the indicator of the first one:
#
#     nls(y ~ i*a*exp(-k*t) + (1-i)*b*(1-exp(-k*t)), data=s, weights=ifelse(i==1, 1/0.03^2, 1/0.05^2))
WEIGHTED = {"a": (2.02923325384, 0.01835602716), "k": (0.50333653737, 0.00826990261), "b": (1.2383092394, 0.0183508322)}
# From R: gnls(…, weights=varIdent(form=~1|response)) of nlme for the estimates, the log-likelihood -loglik, AIC and BIC;
# optimHess of minus the log-likelihood of dnorm for the standard errors.
ESTIMATED = {
    "a": (2.02776905, 0.0118597),
    "k": (0.50205909, 0.00541518),
    "b": (1.23930941, 0.0189877),
    "s_drug": (0.0126718, 0.00339548),
    "s_product": (0.0354066, 0.00948734),
}


def test_given_deviations_weight_the_responses_as_in_nls(run):
    found = run("fit", MODEL, DECAY, "--sigma", "drug=0.03,product=0.05", "--json").json
    for name, (value, error) in WEIGHTED.items():
        assert found["estimates"][name]["value"] == pytest.approx(value, rel=1e-8)
        assert found["estimates"][name]["error"] == pytest.approx(error, rel=1e-6)
    assert (found["n"], found["dof"], found["left_out"]) == (14, 11, 0)
    assert found["s"] == pytest.approx(0.657046922, rel=1e-8)
    assert (found["loglik"], found["bic"]) == pytest.approx((33.2190239413, -55.8818185642), rel=1e-9)


def test_each_response_has_a_deviation_which_is_estimated_as_in_gnls(run):
    found = run("fit", MODEL, DECAY, "--json").json
    assert [*found["estimates"]] == [*ESTIMATED]
    for name, (value, error) in ESTIMATED.items():
        assert found["estimates"][name]["value"] == pytest.approx(value, rel=1e-5)
        assert found["estimates"][name]["error"] == pytest.approx(error, rel=1e-5)
    assert (found["loglik"], found["aic"], found["bic"]) == pytest.approx(
        (34.0994609723, -58.1989219446, -55.0036352965), rel=1e-9
    )
    assert {name: each["n"] for name, each in found["responses"].items()} == {"drug": 7, "product": 7}
    assert found["responses"]["drug"]["s"] == pytest.approx(found["estimates"]["s_drug"]["value"], rel=1e-6)


def test_numbers_that_are_missing_drop_their_response_alone():
    x = np.arange(8.0)
    y, z = 1 + 2 * x + np.sin(5 * x), 3 - x + 0.1 * np.cos(7 * x)
    z[[2, 5]] = np.nan
    both = fit("y ~ a + b*x; z ~ c + d*x", {"x": x, "y": y, "z": z})
    for name, response in (("b", y), ("d", z)):
        alone = fit("r ~ p + q*x", {"x": x, "r": response}).estimates["q"].value
        assert both.estimates[name].value == pytest.approx(alone, rel=1e-9)
    assert both.n == 14


def test_a_predictor_of_one_formula_is_no_matter_of_the_other():
    x = np.arange(6.0)
    w = np.array([1.0, np.nan, 3.0, 5.0, np.nan, 2.0])
    found = fit("y ~ a + b*x; z ~ c*w", {"x": x, "w": w, "y": x + np.sin(x), "z": x**2})
    assert [each.n for each in found.responses.values()] == [6, 4]


def test_weights_of_measurements_are_relative():
    x = np.arange(8.0)
    w = 10.0 * (1 + x)
    data = {"x": x, "y": 1 + 2 * x + np.sin(5 * x), "z": 3 - x + 0.1 * np.cos(7 * x), "w": w}
    both = fit("y ~ a + b*x; z ~ c + d*x", data, weights="w")
    alone = [fit(f"{response} ~ p + q*x", data, weights="w") for response in "yz"]
    for name, other in zip("bd", alone):
        assert both.estimates[name].value == pytest.approx(other.estimates["q"].value, rel=1e-8)
        # The likelihood has n where least squares have the degrees of freedom.
        assert both.estimates[name].error == pytest.approx(other.estimates["q"].error * (6 / 8) ** 0.5, rel=1e-6)
    assert both.loglik == pytest.approx(sum(each.loglik for each in alone))
    twice = fit("y ~ a + b*x; z ~ c + d*x", {**data, "w": 2 * w}, weights="w")
    assert twice.estimates["b"].error == pytest.approx(both.estimates["b"].error, rel=1e-6)


@pytest.mark.slow
def test_statements_before_the_responses_are_for_all_of_them(run):
    found = run("fit", "E = exp(-k*hours)\ndrug ~ a*E\nproduct ~ b*(1 - E)", DECAY, "--json").json
    assert found["estimates"]["k"]["value"] == pytest.approx(ESTIMATED["k"][0], rel=1e-7)


@pytest.mark.slow
def test_other_options_go_with_several_responses(run):
    done = run(
        "fit", MODEL, DECAY, "--profile", "--bootstrap", "8", "--bounds", "k=0:1", "--derive", "h=log(2)/k", "--json"
    )
    found = done.json
    interval = found["estimates"]["k"]
    assert interval["low"] < interval["value"] < interval["high"]
    assert found["bootstrap"]["failed"] < 3
    assert found["derived"]["h"]["value"] == pytest.approx(np.log(2) / interval["value"])


def test_groups_are_fitted_apart():
    x = np.tile(np.arange(6.0), 2)
    data = {"g": [1] * 6 + [2] * 6, "x": x, "y": x + np.sin(np.arange(12)), "z": 2 * x + np.cos(3 * np.arange(12))}
    first = fit("y ~ a*x; z ~ b*x", data, by="g")[0]
    alone = fit("y ~ a*x; z ~ b*x", {name: column[:6] for name, column in data.items()})
    assert first.loglik == pytest.approx(alone.loglik)
    assert first.responses == alone.responses


def test_python_takes_deviations_by_name():
    found = fit(MODEL, DECAY, sigma={"drug": 0.03, "product": [0.05] * 8})
    assert found.estimates["b"].value == pytest.approx(WEIGHTED["b"][0], rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MODEL, "--sigma", "drug=1"), "--sigma names other responses, and not 'product'"),
        ((MODEL, "--errors", "robust"), "--errors robust takes the responses of a row for independent"),
        ((MODEL, "--loss", "huber"), "a robust loss of several responses takes their standard deviations as given"),
        ((MODEL, "--family", "poisson"), "several responses are measurements"),
        ((MODEL, "--residuals", "r.csv"), "no files are written for several responses"),
        ((MODEL, "--random", "k|hours"), "random effects are for one response"),
        ((MODEL, "--against", "drug ~ a"), "--against is not for several responses"),
        (("drug ~ a; drug ~ b",), "'drug' has two models"),
        (("drug ~ a*hours; c = 2; product ~ c*a",), "a statement stands behind a formula"),
        (("drug ~ a; product ~ ",), "there is no model behind '~'"),
        (("drug ~ a; hours ~ b + c*hours",), "the model gives 'hours' exactly, so that its standard deviation is 0"),
    ],
)
def test_what_several_responses_lack_is_an_error(run, arguments, message):
    model, *options = arguments
    done = run("fit", model, DECAY, *options)
    assert done.status != 0
    assert message in done.err


def test_an_error_shows_the_model_as_it_is_written(run):
    done = run("fit", "drug ~ a*exp(-k*hours); product ~ b*log(-k*hours)", DECAY)
    assert "| drug ~ a*exp(-k*hours); product ~ b*log(-k*hours)\n" in done.err
    assert "|                                     ^^^^^^^^^^^^^" in done.err
