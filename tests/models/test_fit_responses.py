"""Fits of several responses of a row, which have parameters in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradcli.errors import GradcliError
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


# R: systemfit::GrunfeldGreene, three firms from 1935 on; Y. Grunfeld, The Determinants of Corporate Investment, 1958
GRUNFELD = {
    "ge": [33.1, 45, 77.2, 44.6, 48.1, 74.4, 113, 91.9, 61.3, 56.8, 93.6, 159.9, 147.2, 146.3, 98.3, 93.5, 135.2,
        157.3, 179.5, 189.6],
    "ge_value": [1170.6, 2015.8, 2803.3, 2039.7, 2256.2, 2132.2, 1834.1, 1588, 1749.4, 1687.2, 2007.7, 2208.3, 1656.7,
        1604.4, 1431.8, 1610.5, 1819.4, 2079.7, 2371.6, 2759.9],
    "ge_capital": [97.8, 104.4, 118, 156.2, 172.6, 186.6, 220.9, 287.8, 319.9, 321.3, 319.6, 346, 456.4, 543.4, 618.3,
        647.4, 671.3, 726.1, 800.3, 888.9],
    "wh": [12.93, 25.9, 35.05, 22.89, 18.84, 28.57, 48.51, 43.34, 37.02, 37.81, 39.27, 53.46, 55.56, 49.56, 32.04,
        32.24, 54.38, 71.78, 90.08, 68.6],
    "wh_value": [191.5, 516, 729, 560.4, 519.9, 628.5, 537.1, 561.2, 617.2, 626.7, 737.2, 760.5, 581.4, 662.3, 583.8,
        635.2, 723.8, 864.1, 1193.5, 1188.9],
    "wh_capital": [1.8, 0.8, 7.4, 18.1, 23.5, 26.5, 36.2, 60.8, 84.4, 91.2, 92.4, 86, 111.1, 130.6, 141.8, 136.7,
        129.7, 145.5, 174.8, 213.5],
    "us": [209.9, 355.3, 469.9, 262.3, 230.4, 261.6, 472.8, 445.6, 361.6, 288.2, 258.7, 420.3, 420.5, 494.5, 405.1,
        418.8, 588.2, 645.2, 641, 459.3],
    "us_value": [1362.4, 1807.1, 2676.3, 1801.9, 1957.3, 2202.9, 2380.5, 2168.6, 1985.1, 1813.9, 1850.2, 2067.7,
        1796.7, 1625.8, 1667, 1677.4, 2289.5, 2159.4, 2031.3, 2115.5],
    "us_capital": [53.8, 50.5, 118.1, 260.2, 312.7, 254.2, 261.4, 298.7, 301.8, 279.1, 213.8, 232.6, 264.8, 306.9,
        351.1, 357.8, 342.1, 444.2, 623.6, 669.7],
}  # fmt: skip
INVESTMENT = "; ".join(f"{f} ~ a_{f} + b_{f}*{f}_value + c_{f}*{f}_capital" for f in ("ge", "wh", "us"))


class TestCorrelated:
    def test_beside_systemfit(self):
        # R: systemfit(…, method="SUR", maxiter=2000, tol=1e-14, methodResidCov="noDfCor"); errors by numDeriv's hessian of
        # minus the log-likelihood, to about four digits
        found = fit(INVESTMENT, GRUNFELD, correlated=True)
        expected = {
            "a_ge": (-26.2562045064, 27.2819), "b_ge": (0.0423410611257, 0.0137626), "c_ge": (0.1158247801293, 0.028133),
            "a_wh": (1.3089258288855, 6.74285), "b_wh": (0.0608851084507, 0.0120231), "c_wh": (0.0085724668435, 0.0495819),
            "a_us": (47.9961904492253, 119.853), "b_us": (0.1356016826243, 0.0581754),
            "c_us": (0.3004152730820, 0.145219), "s_ge": (27.65804565, 5.01891), "s_wh": (10.22131722, 1.84631),
            "s_us": (96.47826838, 15.892), "r_ge_wh": (0.8093093214, 0.0934549), "r_ge_us": (0.5343118199, 0.185905),
            "r_wh_us": (0.7319926540, 0.118054),
        }  # fmt: skip
        assert [*found.estimates] == [*expected]
        for name, (value, error) in expected.items():
            assert found.estimates[name].value == pytest.approx(value, rel=1e-8)
            assert found.estimates[name].error == pytest.approx(error, rel=5e-4)
        assert found.loglik == pytest.approx(-270.8812501113, abs=1e-9)
        assert (found.n, found.dof) == (60, 45)
        assert found.responses["wh"].s == pytest.approx(found.estimates["s_wh"].value, rel=1e-7)

    def test_beside_gls(self, run, tmp_path):
        # R: gls(y ~ 0 + f/(v + c), correlation=corSymm(form=~1|year), weights=varIdent(form=~1|f), method="ML") of nlme
        path = tmp_path / "firms.csv"
        rows = zip(*(GRUNFELD[name] for name in GRUNFELD if name[:2] != "us"))
        path.write_text("\n".join(",".join(map(str, row)) for row in [[n for n in GRUNFELD if n[:2] != "us"], *rows]))
        model = "; ".join(INVESTMENT.split("; ")[:2])
        done = run("fit", model, str(path), "--correlated", "--profile", "--json").json
        assert (done["loglik"], done["aic"], done["bic"]) == pytest.approx(
            (-158.303106, 334.606212, 349.8061271), rel=1e-8
        )
        correlation = done["estimates"]["r_ge_wh"]
        assert correlation["value"] == pytest.approx(0.7729797292, rel=1e-7)
        assert 0.4 < correlation["low"] < 0.6
        assert 0.87 < correlation["high"] < 0.95
        assert done["estimates"]["b_ge"]["value"] == pytest.approx(0.04051069381, rel=1e-8)

    def test_a_correlation_of_0_is_that_of_independent_responses(self):
        data = {name: column for name, column in GRUNFELD.items() if name[:2] != "us"}
        model = "; ".join(INVESTMENT.split("; ")[:2])
        apart = fit(model, data)
        held = fit(model, data, {"r_ge_wh": 0}, fix="r_ge_wh", correlated=True)
        assert held.loglik == pytest.approx(apart.loglik, abs=1e-9)
        assert held.estimates["b_ge"][:2] == pytest.approx(apart.estimates["b_ge"][:2], rel=1e-7)

    def test_a_row_counts_where_it_has_all_responses(self):
        x = np.arange(8.0)
        data = {"x": x, "y": 1 + 2 * x + np.sin(5 * x), "z": 3 - x + np.cos(7 * x)}
        gap = {**data, "z": np.where(x == 3, np.nan, data["z"])}
        less = {name: np.delete(column, 3) for name, column in data.items()}
        model = "y ~ a + b*x; z ~ c + d*x**2"
        found, alone = fit(model, gap, correlated=True), fit(model, less, correlated=True)
        assert found.loglik == pytest.approx(alone.loglik, rel=1e-9)
        assert (found.n, found.left_out) == (14, 1)

    @pytest.mark.parametrize(
        ("model", "options", "message"),
        [
            ("y ~ a*x", {}, "correlations are those of several responses"),
            (
                "y ~ a*x; z ~ b*x",
                {"sigma": {"y": 1, "z": 1}},
                "correlations are estimated with the standard deviations",
            ),
            ("y ~ a*x; 2*y ~ b*x", {}, "the residuals of the responses depend on each other linearly"),
            ("y ~ a*x + r_y_z; z ~ b*x", {}, "'r_y_z' is the correlation of 'y' and 'z', and another name"),
            (
                "y ~ a*x; z ~ b*x; w ~ c*x",
                {
                    "values": {
                        "a": 1,
                        "b": 1,
                        "c": 1,
                        "s_y": 1,
                        "s_z": 1,
                        "s_w": 1,
                        "r_y_z": 0.9,
                        "r_y_w": 0.9,
                        "r_z_w": -0.9,
                    }
                },
                "at the start, the correlations r_y_z, r_y_w, r_z_w are impossible together",
            ),
        ],
    )
    def test_errors(self, model, options, message):
        x = np.arange(1.0, 7.0)
        data = {"x": x, "y": x + np.sin(x), "z": 2 * x + np.cos(3 * x), "w": x - np.sin(5 * x)}
        given = dict(options)
        with pytest.raises(GradcliError, match=message):
            fit(model, data, given.pop("values", None), correlated=True, **given)
