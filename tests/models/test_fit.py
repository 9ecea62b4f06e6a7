"""Tests `gradcli fit` and `gradcli.fit`: estimates, starts, and reported failures."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, EvaluationError, ProgramSyntaxError, UsageError

# NIST's Statistical Reference Datasets for nonlinear regression, with certified values to 11 digits.
NIST = {
    problem["name"]: problem
    for problem in json.loads((Path(__file__).parents[1] / "data" / "nist-nonlinear.json").read_text(encoding="utf-8"))
}
# Problems that are solved quickly without a start, up to an exchange of parameters or of their signs.
WITHOUT_START = [
    "BoxBOD",
    "DanWood",
    "Eckerle4",
    "Lanczos3",
    "MGH09",
    "MGH17",
    "Misra1a",
    "Rat43",
    "Roszman1",
    "Thurber",
]


def digits(found, certified):
    """The correct digits of the worst estimate."""
    return -math.log10(max(abs(f / c - 1) for f, c in zip(found, certified)) + 1e-16)


@pytest.mark.cases(4)
@pytest.mark.parametrize("start", ["start1", "start2"])
@pytest.mark.parametrize("name", NIST)
def test_the_problems_of_nist(name, start):
    problem = NIST[name]
    names = problem["parameters"]
    fit = gradcli.fit(problem["model"], problem["data"], dict(zip(names, problem[start])))
    assert fit.converged
    assert fit.dof == problem["dof"]
    assert digits([fit.estimates[b].value for b in names], problem["certified"]) > 7
    errors = [fit.estimates[b].error for b in names]
    assert errors == pytest.approx(problem["certified_sd"], rel=1e-7)
    assert fit.rss == pytest.approx(problem["certified_rss"], rel=1e-7)


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", WITHOUT_START)
def test_no_start_is_needed(name):
    problem = NIST[name]
    fit = gradcli.fit(problem["model"], problem["data"])
    assert fit.converged
    assert fit.rss == pytest.approx(problem["certified_rss"], rel=1e-7)
    found = sorted(abs(e.value) for e in fit.estimates.values())
    assert digits(found, sorted(map(abs, problem["certified"]))) > 6
    assert fit.starts.tried == 32
    assert fit.starts.agreed > 1


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("model", "true", "x"),
    [
        ("a*exp(-(x - m)**2/(2*s**2)) + c", {"a": 5, "m": 42, "s": 3, "c": 1}, np.linspace(0, 100, 100)),
        ("a*sin(w*x + p) + c", {"a": 2, "w": 12, "p": 1, "c": 10}, np.linspace(0, 6, 90)),
        ("a*sin(2*pi*f*x + p)", {"a": 2, "f": 50, "p": 0.6}, np.linspace(0, 1, 300)),
        ("a*exp(-(x - m)**2/(2*s**2)) + c", {"a": 5, "m": 1200043, "s": 6, "c": 1}, np.linspace(1.2e6, 1.2001e6, 80)),
        ("A*exp(-E/(8.314*x))", {"A": 3e7, "E": 52_000}, np.linspace(280, 400, 30)),
        # Names that are functions elsewhere.
        ("gamma*x/(t + x)", {"gamma": 212, "t": 0.064}, np.geomspace(0.02, 1.1, 20)),
    ],
)
def test_starts_are_found_at_the_scales_of_the_data(model, true, x):
    y = gradcli.compile(model).value_and_grad({"x": x, **true}, (), rows=["x"])[0]
    fit = gradcli.fit(f"y ~ {model}", {"x": x, "y": y})
    assert fit.converged
    assert fit.rss < 1e-20 * np.sum(y**2)


def test_a_poor_minimum_is_left_for_one_that_is_far_better():
    conc = [0.02, 0.02, 0.06, 0.06, 0.11, 0.11, 0.22, 0.22, 0.56, 0.56, 1.1, 1.1]
    rate = [76, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200]
    # From here the search meets a pole between the concentrations.
    fit = gradcli.fit("rate ~ V*conc/(K + conc)", {"conc": conc, "rate": rate}, V=1, K=1)
    assert fit.converged
    assert fit.estimates["K"].value == pytest.approx(6.412128e-2, rel=1e-6)
    assert any("from the start that was given the search came to a minimum with" in text for text in fit.warnings)
    groups = gradcli.fit(
        "rate ~ V*conc/(K + conc)", {"conc": conc * 2, "rate": rate * 2, "g": [1] * 12 + [2] * 12}, by="g", V=1, K=1
    )
    assert [group.estimates["K"].value for group in groups] == pytest.approx([fit.estimates["K"].value] * 2)


@pytest.mark.parametrize(
    ("family", "model", "d", "y"),
    [
        # Separated events, and a group of counts that are all 0.
        ("binomial", "1/(1 + exp(-(a + b*d)))", [1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1]),
        ("poisson", "exp(a + b*d)", [0, 0, 0, 1, 1, 1], [3, 2, 1, 0, 0, 0]),
    ],
)
def test_a_likelihood_without_a_maximum_is_a_failure(family, model, d, y):
    for start in (None, {"a": 0, "b": 0}):
        fit = gradcli.fit(f"y ~ {model}", {"d": d, "y": y}, start, family=family)
        assert fit.message == (
            "not converged: the likelihood rises without end as some of the fitted means go to the ends of their range"
        )


def test_second_derivatives_that_overflow_are_no_minimum():
    data = {"x": np.arange(6.0), "y": [0, 0.1, 1, 0.3, 0.05, 0]}
    fit = gradcli.fit("y ~ a*exp(-((x - m)*f)**2)", data, m=2, f=1e200)
    assert fit.converged
    assert fit.warnings[0].startswith("from the start that was given the search did not converge")


def test_linear_parameters_need_no_start_and_one_search():
    problem = NIST["Misra1a"]
    fit = gradcli.fit(problem["model"], problem["data"], b2=1e-4)
    assert fit.starts.tried == 1
    assert fit.estimates["b1"].value == pytest.approx(problem["certified"][0], rel=1e-9)


def test_a_linear_model_is_its_least_squares():
    x = np.linspace(0, 1, 20)
    y = np.sin(5 * x)
    fit = gradcli.fit("y ~ a + b*x + c*x**2", {"x": x, "y": y})
    design = np.stack([x**0, x, x**2], 1)
    best = np.linalg.lstsq(design, y, rcond=None)[0]
    assert [e.value for e in fit.estimates.values()] == pytest.approx(best, rel=1e-12)
    assert fit.starts.tried == 1


def test_weights_are_those_of_the_standard_deviations():
    data = {"x": [0.0, 1, 2, 3], "y": [0.1, 1.2, 1.9, 3.3], "s": [0.1, 0.2, 0.1, 0.4]}
    fit = gradcli.fit("y ~ a + b*x", data, sigma="s", absolute_sigma=True)
    weights = np.asarray(data["s"]) ** -2.0
    design = np.stack([np.ones(4), np.arange(4.0)], 1)
    information = design.T @ (weights[:, None] * design)
    best = np.linalg.solve(information, design.T @ (weights * data["y"]))
    assert [e.value for e in fit.estimates.values()] == pytest.approx(best, rel=1e-12)
    assert [e.error for e in fit.estimates.values()] == pytest.approx(np.sqrt(np.linalg.inv(information).diagonal()))


def test_a_fixed_parameter_stays():
    fit = gradcli.fit("y ~ a*exp(-k*x)", {"x": [0.0, 1, 2, 3], "y": [2, 1.2, 0.7, 0.5]}, a=2, fix=["a"])
    assert fit.estimates["a"].fixed
    assert fit.estimates["a"].value == 2
    assert fit.dof == 3


def test_bounds_hold_and_others_are_best_within_them():
    fit = gradcli.fit("y ~ a + b*x", {"x": [0.0, 1, 2], "y": [0.0, 2, 4]}, bounds={"b": (0, 1)})
    assert fit.converged
    assert fit.estimates["b"].value == 1
    assert fit.estimates["a"].value == pytest.approx(1)


def test_a_prior_counts_as_a_row():
    data = {"x": [1.0, 2, 3], "y": [1.0, 2, 3.5]}
    fit = gradcli.fit("y ~ a*x", data, prior={"a": "1.0±0.1"}, sigma=1.0, absolute_sigma=True)
    x, y = np.array(data["x"]), np.array(data["y"])
    assert fit.estimates["a"].value == pytest.approx((x @ y + 1.0 / 0.01) / (x @ x + 1 / 0.01))


def test_a_prior_weighs_the_same_whatever_the_unit_of_the_response():
    x, y = np.array([0.0, 1, 2, 3, 4]), np.array([0.1, 2.2, 3.8, 6.3, 7.9])
    fits = [
        gradcli.fit("y ~ a + b*x", {"x": x, "y": unit * y}, prior={"b": (1.5 * unit, 0.05 * unit)})
        for unit in (1, 1e3, 1e-3)
    ]
    slopes = [fit.estimates["b"].value / unit for fit, unit in zip(fits, (1, 1e3, 1e-3))]
    assert slopes == pytest.approx([slopes[0]] * 3, rel=1e-8)
    assert 1.5 < slopes[0] < 1.96
    # The standard deviation of the rows is the estimated one.
    a, b = (e.value for e in fits[0].estimates.values())
    s = fits[0].s
    assert (y - a - b * x) @ x / s**2 == pytest.approx((b - 1.5) / 0.05**2)


def test_a_vague_prior_changes_nothing():
    data = {"x": [0.0, 1, 2, 3, 4], "y": [0.1, 2.2, 3.8, 6.3, 7.9]}
    without, vague = (gradcli.fit("y ~ a + b*x", data, prior=prior) for prior in (None, {"b": (0, 1e9)}))
    assert vague.dof == pytest.approx(3)
    assert [e.error for e in vague.estimates.values()] == pytest.approx([e.error for e in without.estimates.values()])
    robust = [gradcli.fit("y ~ a + b*x", data, prior=prior, loss="huber") for prior in (None, {"b": (0, 1e9)})]
    assert robust[1].estimates["b"].error == pytest.approx(robust[0].estimates["b"].error)


def test_the_deviation_beside_a_prior_is_the_most_probable_one():
    from scipy.optimize import minimize_scalar

    x, y = np.array([0.0, 1, 2, 3, 4]), np.array([0.1, 2.2, 3.8, 6.3, 7.9])
    fit = gradcli.fit("y ~ a + b*x", {"x": x, "y": y}, prior={"b": (1.5, 0.1)})

    def restricted(log_s):
        """Minus the logarithm of the restricted likelihood, where b is a normal random number."""
        v = np.exp(2 * log_s) * np.eye(5) + 0.1**2 * np.outer(x, x)
        one, r = np.linalg.solve(v, np.ones(5)), y - 1.5 * x
        return (
            np.linalg.slogdet(v)[1] + np.log(one.sum()) + r @ np.linalg.solve(v, r) - (one @ r) ** 2 / one.sum()
        ) / 2

    assert fit.s == pytest.approx(np.exp(minimize_scalar(restricted).x), rel=1e-6)
    assert 3 < fit.dof < 4


def test_sandwich_errors_know_priors():
    data = {"x": [1.0, 2, 3, 4], "y": [1.1, 1.9, 3.2, 3.9]}
    fit = gradcli.fit("y ~ a*x + 0*b", data, prior={"b": "5±1"}, errors="robust")
    alone = gradcli.fit("y ~ a*x", data, errors="robust")
    assert fit.estimates["b"].error == pytest.approx(1)
    assert fit.estimates["a"].error == pytest.approx(alone.estimates["a"].error)


def test_degrees_of_freedom_count_what_is_determined():
    data = {"x": [1.0, 2, 3, 4, 5], "y": [1.1, 1.9, 3.2, 3.9, 5.2]}
    aliased, plain = (gradcli.fit(f"y ~ a + {slope}*x", data) for slope in ("(b + c)", "b"))
    assert aliased.undetermined
    assert not aliased.converged
    for name in ("dof", "s", "aic", "bic"):
        assert getattr(aliased, name) == pytest.approx(getattr(plain, name)), name
    assert aliased.estimates["a"].error == pytest.approx(plain.estimates["a"].error)


def test_what_only_a_prior_says_has_its_error():
    x = np.array([1.0, 2, 3, 4])
    fit = gradcli.fit("y ~ a*x + 0*b", {"x": x, "y": [1.1, 1.9, 3.2, 3.9]}, prior={"b": "5±1"})
    assert fit.estimates["b"].value == pytest.approx(5)
    assert fit.estimates["b"].error == pytest.approx(1)
    robust = gradcli.fit("y ~ a*x + 0*b", {"x": x, "y": [1.1, 1.9, 3.2, 3.9]}, prior={"b": "5±1"}, loss="huber")
    assert robust.estimates["b"].error == pytest.approx(1, rel=0.5)


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy"])
def test_a_robust_loss_is_that_of_scipy(loss):
    from scipy.optimize import least_squares

    x = np.linspace(0, 5, 30)
    y = 3 * np.exp(-0.8 * x) + 0.05 * np.cos(40 * x)
    y[[3, 17]] += 4.0
    fit = gradcli.fit("y ~ a*exp(-k*x)", {"x": x, "y": y}, a=2, k=1, loss=loss, loss_scale=1, sigma=0.1)
    best = least_squares(
        lambda p: (p[0] * np.exp(-p[1] * x) - y) / 0.1, [2, 1], loss=loss, xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    assert fit.converged
    assert [e.value for e in fit.estimates.values()] == pytest.approx(best.x, rel=1e-6)


STACKLOSS = Path(__file__).parents[2] / "examples" / "data" / "stackloss.csv"


def stackloss(run, *words, unit=1.0, loss="huber"):
    model = f"lost*{unit!r} ~ a + b*air + c*water + d*acid"
    return run("fit", model, str(STACKLOSS), "--loss", loss, "--json", *words).json


def test_a_robust_fit_is_that_of_rlm(run):
    found = stackloss(run)
    # summary(rlm(stack.loss ~ ., stackloss)) of R's MASS.
    assert [round(e["value"], 4) for e in found["estimates"].values()] == [-41.0265, 0.8294, 0.9261, -0.1278]
    assert [e["error"] for e in found["estimates"].values()] == pytest.approx(
        [9.8073, 0.1112, 0.3034, 0.1289], rel=5e-4
    )
    assert [e["t"] for e in found["estimates"].values()] == pytest.approx([-4.1832, 7.4597, 3.0524, -0.9922], rel=5e-4)
    assert found["s"] == pytest.approx(2.441, rel=3e-4)
    # statsmodels' RLM with HuberT(), at tol=1e-14.
    estimates = [-41.02649835, 0.82938433, 0.92606597, -0.12784672]
    assert [e["value"] for e in found["estimates"].values()] == pytest.approx(estimates, rel=1e-7)
    assert found["s"] == pytest.approx(2.440536091721, rel=1e-9)
    assert found["loss_scale"] == pytest.approx(1.345 * found["s"], rel=1e-9)
    assert found["converged"]
    assert found["deviance"] == "NaN"


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy"])
def test_a_robust_fit_is_the_same_in_other_units(loss, run):
    fits = [stackloss(run, unit=unit, loss=loss) for unit in (1.0, 1e-3, 1e6)]
    for name in "abcd":
        values, errors = ([fit["estimates"][name][key] for fit in fits] for key in ("value", "error"))
        assert [values[1] * 1e3, values[2] / 1e6] == pytest.approx([values[0]] * 2, rel=1e-8)
        assert [errors[1] * 1e3, errors[2] / 1e6] == pytest.approx([errors[0]] * 2, rel=1e-8)
    least = stackloss(run, loss="linear")["estimates"]
    assert abs(least["b"]["value"] / fits[0]["estimates"]["b"]["value"] - 1) > 0.05


def test_a_known_scale_of_a_loss_is_that_of_the_residuals(run):
    found = stackloss(run)
    again = stackloss(run, "--loss-scale", repr(found["loss_scale"]))
    named = stackloss(run, "--loss-scale", "mad")
    assert named == found
    for name, estimate in found["estimates"].items():
        assert again["estimates"][name]["value"] == pytest.approx(estimate["value"], rel=1e-8)
        assert again["estimates"][name]["error"] == pytest.approx(estimate["error"], rel=1e-8)
    # No residual exceeds such a threshold.
    wide, least = stackloss(run, "--loss-scale", "1e6"), stackloss(run, loss="linear")
    assert [e["value"] for e in wide["estimates"].values()] == pytest.approx(
        [e["value"] for e in least["estimates"].values()], rel=1e-8
    )
    assert [e["error"] for e in wide["estimates"].values()] == pytest.approx(
        [e["error"] for e in least["estimates"].values()], rel=1e-8
    )


def test_a_robust_fit_of_rows_with_their_own_deviations():
    x = np.arange(12.0)
    y = 1 + 2 * x + 0.3 * np.cos(5 * x)
    y[4] += 30
    s = np.where(x < 6, 1.0, 3.0)
    weighted = gradcli.fit("y ~ a + b*x", {"x": x, "y": y, "s": s}, sigma="s", loss="huber")
    # Rows and responses divided by their standard deviations must give the same fit.
    divided = gradcli.fit("y ~ a*c + b*x", {"x": x / s, "c": 1 / s, "y": y / s}, loss="huber")
    for name in "ab":
        assert weighted.estimates[name][:2] == pytest.approx(divided.estimates[name][:2], rel=1e-9)
    assert weighted.s == pytest.approx(divided.s, rel=1e-9)
    groups = gradcli.fit(
        "y ~ a + b*x", {"x": [*x, *x], "y": [*y, *y / 1e3], "g": [1] * 12 + [2] * 12}, loss="huber", by="g"
    )
    assert groups[1].estimates["b"].error * 1e3 == pytest.approx(groups[0].estimates["b"].error, rel=1e-8)


def test_a_robust_fit_of_which_half_is_exact_says_so():
    x = np.arange(9.0)
    y = 3 + 2 * x
    y[[2, 5]] += [10, -7]
    fit = gradcli.fit("y ~ a + b*x", {"x": x, "y": y}, loss="huber")
    assert [e.value for e in fit.estimates.values()] == pytest.approx([3, 2])
    assert "half of the rows and more are fitted without a residual" in fit.warnings


def test_a_prior_weighs_a_robust_fit_the_same_in_other_units():
    x = np.arange(10.0)
    y = 1 + 2 * x + 0.3 * np.cos(5 * x)
    y[4] += 30
    fits = [
        gradcli.fit("y ~ a + b*x", {"x": x, "y": y * unit}, prior={"b": (1.9 * unit, 0.02 * unit)}, loss="huber")
        for unit in (1, 1e3)
    ]
    b, other = (fit.estimates["b"] for fit in fits)
    assert [other.value / 1e3, other.error / 1e3] == pytest.approx([b.value, b.error], rel=1e-6)
    assert 1.9 < b.value < 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--loss-scale", "2"], "the loss linear has no scale"),
        (["--loss", "huber", "--loss-scale", "0"], "there is no scale 0 of a loss"),
        (["--loss", "huber", "--loss-scale", "mda"], "--loss-scale 'mda' is neither a number nor mad"),
    ],
)
def test_a_scale_of_a_loss_that_is_none_is_an_error(words, message, run):
    done = run("fit", "y ~ a*x", "x=[1,2,3]", "y=[1,2,4]", *words)
    assert (done.status, message in done.err) == (2, True)


def test_counts_have_their_likelihood():
    x = np.linspace(0, 2, 40)
    counts = np.round(np.exp(0.5 + 1.2 * x))
    fit = gradcli.fit("n ~ exp(a + b*x)", {"x": x, "n": counts}, family="poisson")
    mean = np.exp(fit.estimates["a"].value + fit.estimates["b"].value * x)
    assert fit.converged
    # The score equations.
    assert np.sum(counts - mean) == pytest.approx(0, abs=1e-8)
    assert np.sum((counts - mean) * x) == pytest.approx(0, abs=1e-8)


def test_exact_data_are_a_fit():
    x = np.linspace(0, 3, 20)
    fit = gradcli.fit("y ~ a*exp(-k*x)", {"x": x, "y": 2 * np.exp(-0.7 * x)}, a=1, k=1)
    assert fit.converged
    assert fit.estimates["k"].value == pytest.approx(0.7, rel=1e-13)


def test_exact_data_are_a_fit_where_small_parts_of_parameters_count():
    x = np.linspace(0, 6, 25)
    data = {"x": x, "y": 2 * np.sin(7 * x + 1) + np.sin(4.1 * x)}
    fit = gradcli.fit("y ~ a*sin(w*x + p) + b*sin(v*x + q)", data, starts=3)
    assert fit.converged
    assert fit.rss < 1e-25
    assert not fit.warnings
    # Another seed leads to local minima only.
    fit = gradcli.fit("y ~ a*sin(w*x + p) + b*sin(v*x + q)", data, starts=2, seed=1)
    assert "only one of 2 starts came to this minimum: there may be a lower one" in fit.warnings


def test_that_there_is_no_minimum_where_it_is_lowest_is_said():
    """Reported by the status, or as a warning beside a minimum, depending on where most starts end."""
    x = np.arange(1.0, 10)
    y = np.exp(-((x - 3) ** 2)) + np.random.default_rng(2).normal(0, 0.3, 9)
    fit = gradcli.fit("y ~ a*exp(-((x - m)/s)**2)", {"x": x, "y": y})
    warned = any(text.startswith("a search came lower than this minimum, where there is none") for text in fit.warnings)
    assert fit.converged is warned
    assert warned or "the data do not determine" in fit.message


def test_a_response_may_be_an_expression():
    x = np.linspace(1, 3, 10)
    fit = gradcli.fit("log(y) ~ a + b*x", {"x": x, "y": np.exp(1 + 2 * x)})
    assert [e.value for e in fit.estimates.values()] == pytest.approx([1, 2])


def test_rows_may_depend_on_some_of_the_parameters():
    data = {"x": [1.0, 2, 3, 4], "y": [1.0, 1.5, 2, 3]}
    fit = gradcli.fit("y ~ a if x > 2 else b", data)
    assert [fit.estimates["a"].value, fit.estimates["b"].value] == pytest.approx([2.5, 1.25])


def test_statements_may_stand_before_the_model():
    data = {"x": [1.0, 2, 3], "y": [1.0, 3, 5]}
    fit = gradcli.fit("s = 0\nfor i in range(2):\n  s = s + k*x\ny ~ s + c", data)
    assert [fit.estimates["k"].value, fit.estimates["c"].value] == pytest.approx([1, -1])
    with pytest.raises(gradcli.GradcliError, match="more than 1,000 steps"):
        gradcli.fit("s = 0\nwhile s < 1e9:\n  s = s + 1\ny ~ s*a", data, max_steps=1000)


def test_very_many_rows_are_all_counted():
    x = np.linspace(0, 10, 300_000)
    y = 5 * np.exp(-0.7 * x) + 0.5 + 0.1 * np.sin(1e4 * x**2)
    fit = gradcli.fit("y ~ a*exp(-k*x) + c", {"x": x, "y": y}, k=0.4)
    a, k, _ = (e.value for e in fit.estimates.values())
    residual = y - a * np.exp(-k * x) - fit.estimates["c"].value
    assert fit.converged
    assert fit.n == len(x)
    assert abs(residual @ (x * np.exp(-k * x))) < 1e-6


def test_what_the_data_do_not_determine_is_a_failure():
    fit = gradcli.fit("y ~ a*b*x", {"x": [0.0, 1, 2, 3], "y": [0, 1, 1.5, 1.7]}, a=1, b=1)
    assert not fit.converged
    assert "do not determine" in fit.message
    assert fit.undetermined


def test_a_search_that_runs_away_is_a_failure():
    # Least squares are attained at an infinite rate.
    fit = gradcli.fit("y ~ a*(1 - exp(-k*x))", {"x": [1.0, 2, 3, 4], "y": [2.1, 1.9, 2.05, 1.95]}, a=1, k=1)
    assert not fit.converged
    assert "does not depend on k any more" in fit.message or "do not determine" in fit.message
    assert fit.estimates["a"].value == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"x": [1.0], "y": [1.0]}, {}, "too few data: 1 row"),
        ({"x": [1.0, 2, 3], "y": [1, 2, 3]}, {"c": 3}, "'c' is given a start, and the model does not use it"),
        ({"x": [1.0, 2, 3], "y": ["1", "two", "3"]}, {}, "'y' is no column of numbers: row 2 has 'two'"),
        ({"x": [1.0, 2, 3], "y": [1, 2, 3], "s": [1, 0, 1]}, {"sigma": "s"}, "sigma is 0 in row 2"),
        ({"x": [1.0, 2, 3], "y": [1, 2, 3]}, {"sigma": 0}, "sigma is 0"),
        ({"x": [1.0, 2, 3], "y": [1, 2, 3]}, {"a": 5, "bounds": {"a": (0, 1)}}, "the start a=5 is outside its bounds"),
        ({"x": [1.0, 2, 3], "z": [1, 2, 3]}, {}, "the response 'y' is no column of the data"),
        ({"x": [1.0, 2, 3], "y": [1, 2, 3]}, {"fix": ["a"]}, "'a' is to be fixed, and has no value"),
        ({"x": [1.0, 2, 3], "y": [1, 2, math.inf]}, {}, "the column 'y' is infinite in row 3"),
    ],
)
def test_what_does_not_fit_together_is_an_error(data, options, message):
    with pytest.raises(BindingError, match=message):
        gradcli.fit("y ~ a*x + b", data, **options)


@pytest.mark.parametrize("text", ["y ~ a*x\n  + b", "y ~ a*x; b"])
def test_a_model_ends_with_its_statement(text):
    with pytest.raises(ProgramSyntaxError, match="the model ends before this"):
        gradcli.fit(text, {"x": [1.0, 2, 3], "y": [2.0, 4, 7]})


def test_a_model_needs_a_response():
    with pytest.raises(UsageError, match="does not say what it is a model of"):
        gradcli.fit("a*x", {"x": [1.0], "y": [1.0]})
    fit = gradcli.fit("a*x", {"x": [1.0, 2], "y": [1.0, 3]}, response="y")
    assert fit.estimates["a"].value == pytest.approx(1.4)


def test_no_value_at_the_start_is_an_error_that_points():
    with pytest.raises(EvaluationError, match="at the start, in row 1 of the data: 'log' gives -inf") as raised:
        gradcli.fit("y ~ a*log(x)", {"x": [0.0, 1, 2], "y": [1, 2, 3]}, a=1)
    assert raised.value.source == "y ~ a*log(x)"
    assert raised.value.span == (6, 12)


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        # A search from several starts reports where it fails, and whether other starts may help.
        (("y ~ exp(a)*log(x)", "x=[0,1,2]", "y=[1,2,3]"), ["in row 1 of the data: 'log' gives -inf", "leave out such"]),
        (("y ~ a/x", "x=[1,0,2]", "y=[1,2,3]"), ["in row 2 of the data: 'divide' gives nan", "leave out such rows"]),
        (("y ~ a*log(x + b)", "x=[0,1,2]", "y=[1,2,3]", "a=1", "b=0"), ["'log' gives -inf", "other start values"]),
        (("y ~ a*sqrt(x + b)", "x=[-5,1,2]", "y=[1,2,3]", "a=1", "b=0"), ["'sqrt' gives nan", "other start values"]),
        (("y ~ a*log(x)", "x=[0,1,2]", "y=[1,2,3]", "--loss", "huber"), ["in row 1 of the data: 'log' gives -inf"]),
        (("log(y) ~ a*x", "x=[1,2,3]", "y=[1,0,3]"), ["in row 2 of the data: 'log' gives -inf", "| log(y)"]),
        (("y/x ~ a", "x=[1,2,0]", "y=[1,0,3]"), ["in row 3 of the data: 'divide' gives inf", "| y/x"]),
    ],
)
def test_where_a_model_has_no_value_is_said(words, messages, run):
    done = run("fit", *words)
    assert done.status == 1
    assert [message for message in messages if message not in done.err] == []


def test_a_group_without_a_value_is_not_fitted(run):
    words = ("x=[0,1,2,1,2,3]", "y=[1,2,3,2,3,5]", "g=[1,1,1,2,2,2]", "--by", "g")
    done = run("fit", "y ~ a*log(x) + b", *words)
    assert done.status == 1
    assert "'log' gives -inf for operand 0.0" in done.err
    assert done.out.splitlines()[1].endswith("false")
    assert done.out.splitlines()[2].endswith("true")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--loss", "huber"),
        ("--family", "poisson"),
        ("--x-sigma", "x=0.1"),
        ("--sigma", "0.5", "--absolute-sigma"),
        ("a=0.5",),
    ],
)
def test_all_parameters_may_be_at_bounds(words, run):
    done = run("fit", "y ~ a*x", "x=[1,2,3]", "y=[2,4,6]", "--bounds", "a=0:1", *words, "--json")
    assert done.status == 0
    assert done.json["estimates"]["a"]["value"] == 1
    assert done.json["estimates"]["a"]["error"] == "NaN"
    assert done.json["warnings"][-1] == "a is at its bound 1: it has no standard error"
    assert "condition" not in run("fit", "y ~ a*x", "x=[1,2,3]", "y=[2,4,6]", "--bounds", "a=0:1", *words).out


def test_several_parameters_at_bounds_have_intervals_by_the_profile(run):
    words = ("x=[1,2,3]", "y=[12,14,16.5]", "--bounds", "a=0:1,b=0:10", "--json")
    fit = run("fit", "y ~ a*x + b", *words, "--profile").json
    assert [fit["estimates"][name]["value"] for name in "ab"] == [1, 10]
    assert [fit["estimates"][name]["high"] for name in "ab"] == [1, 10]
    assert fit["estimates"]["b"]["low"] < 10
    groups = run(
        "fit", "y ~ a*x", "x=[1,2,3,1,2,3]", "y=[2,4,6,3,6,9]", "g=[1,1,1,2,2,2]", "--by", "g", *words[2:3], "a=0:1"
    )
    assert [line.split(",")[2] for line in groups.out.splitlines()[1:]] == ["1.0", "1.0"]


def test_a_large_intrinsic_curvature_hides_no_other_warning(run):
    words = ("y ~ a*x**b", "x=[0,1,2,3]", "y=[1,2,3,4]", "--json")
    intrinsic, parameter = run("fit", *words).json["warnings"]
    assert "intrinsic curvature 0.46, more than 0.3" in intrinsic
    assert "curvature by the parameters 2.5" in parameter
    assert "--profile gives better ones" in parameter
    (alone,) = run("fit", *words, "--profile").json["warnings"]
    assert alone == intrinsic


def test_the_command_prints_the_fit(run, tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n0,2\n1,1.2\n2,\n3,0.5\n4,NA\n5,0.2\n")
    done = run("fit", "y ~ a*exp(-k*x)", str(tmp_path / "data.csv"), "a=2", "k=1", "--json")
    assert done.status == 0
    found = done.json
    assert [*found][:5] == ["schema", "model", "n", "dof", "converged"]
    assert found["n"] == 4
    assert [*found["estimates"]["k"]] == ["value", "error", "t", "low", "high", "fixed", "p"]
    assert "2 rows were left out" in done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# measured in May\n# x in mm\nx;y\n1,5;2,9\n2,5;5,1\n3,5;7,2\n", ()),
        ("x:y\n1.5:2.9\n2.5:5.1\n3.5:7.2\n4.5:n.a.\n", ("--separator", ":")),
        ("x;y\n1,5;2,9\n2,5;5,1\n3,5;7,2\n", ("--decimal-comma", "--separator", ";")),
        ("x\ty\n1.5\t2.9\n2.5\t5.1\n3.5\t7.2\n", ("--encoding", "utf-16-le")),
        ('{"x":1.5,"y":2.9}\n{"x":2.5,"y":5.1}\n{"x":3.5,"y":7.2}\n', ("--from", "jsonl")),
    ],
)
def test_tables_are_read_as_those_of_map(text, words, run, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(text, encoding="utf-16-le" if "utf-16-le" in words else "utf-8")
    expected = gradcli.fit("y ~ a*x", {"x": [1.5, 2.5, 3.5], "y": [2.9, 5.1, 7.2]}).estimates["a"]
    found = run("fit", "y ~ a*x", str(path), *words, "--json").json["estimates"]["a"]
    assert [found["value"], found["error"]] == pytest.approx(expected[:2])
    point = run("minimize", "sum((y - a*x)**2)", str(path), "a=1", *words, "--json").json["point"]
    assert (
        run("map", "x*y", str(path), *words, "--only", "--no-grad", "--to", "csv").out.split("\n")[1].replace(",", ".")
        == "4.35"
    )
    assert point["a"] == pytest.approx(expected.value)


@pytest.mark.parametrize("number", ["123,000", "1,5", "-2,25e-3"])
def test_a_comma_before_a_fraction_has_its_option_named(number, run):
    table = f'x,y\n"{number}",2\n"{number}",3\n'
    assert "--decimal-comma" in run("fit", "y ~ a*x", "-", "--json", stdin=table).error["hint"]


def test_a_table_without_a_header_has_names_for_its_columns(run):
    done = run("fit", "c2 ~ a*c1", "-", "--no-header", "--json", stdin="1.5 2.9\n2.5 5.1\n3.5 7.2\n")
    assert done.json["estimates"]["a"]["value"] == pytest.approx(2.0385542168674697)
    words = ("minimize", "sum((c2 - a*c1)**2)", "-", "a=1", "--no-header", "--json")
    assert run(*words, stdin="1.5 2.9\n2.5 5.1\n3.5 7.2\n").json["point"]["a"] == pytest.approx(2.0385542168674697)


def test_the_command_fails_where_the_search_does(run):
    done = run("fit", "y ~ a*b*x", "x=[0,1,2,3]", "y=[0,1,1.5,1.7]", "a=1", "b=1", "--json")
    assert done.status == 1
    assert done.json["converged"] is False
    assert "error: not converged: the data do not determine" in done.err


def test_a_broken_model_points_into_its_text(run):
    done = run("fit", "y ~ a*x +", "x=[0,1]", "y=[0,1]")
    assert done.status == 2
    assert "| y ~ a*x +" in done.err


def test_a_fit_does_not_depend_on_what_its_model_was_fitted_to_before():
    x = np.linspace(0.1, 4, 30)
    y, z = 2 * x**1.5, np.where(x < 2, x, 4 - x)

    def fits():
        yield gradcli.fit("y ~ a*x**q", {"x": x, "y": y + 0.1 * x}, a=1, q=1)
        yield gradcli.fit("y ~ a*x**q", {"x": x, "y": z}, a=1, q=2, fix="q")
        # A former parameter name is now a column.
        yield gradcli.fit("y ~ a*x**q", {"x": x, "q": 2 - x / 4, "y": y}, a=1)
        # Rows that take different branches.
        yield gradcli.fit("y ~ a*x if x < b else a*(2*b - x)", {"x": x, "y": z + 0.01 * x**2}, a=1, b=2)
        yield gradcli.fit("y ~ a*x if x < b else a*(2*b - x)", {"x": x, "y": z + 0.02 * x}, a=1, b=3)

    def told():
        return [(fit.message, {name: e.value for name, e in fit.estimates.items()}, fit.rss) for fit in fits()]

    assert told() == told() == told()
    with pytest.raises(EvaluationError, match="in row 2 of the data") as raised:
        gradcli.fit("y ~ a*x**q", {"x": [1.0, -1.0, 2.0], "y": [1, 2, 3]}, a=1, q=0.5)
    assert raised.value.source == "y ~ a*x**q"


def test_errors_that_are_rounding_are_proved_or_told():
    data = {"x": [1, 2, 3, 4], "y": [0.1, 0.2, 0.3, 0.4]}
    exact = gradcli.fit("y ~ a*x + b", data)
    assert [(e.value, e.error) for e in exact.estimates.values()] == [(0.1, 0), (0, 0)]
    assert not exact.warnings
    # log(y) was not written in decimals.
    computed = gradcli.fit("log(y) ~ a*x + b", {"x": [1, 2, 3, 4], "y": np.exp([0.1, 0.2, 0.3, 0.4])})
    assert [*computed.warnings] == ["the residuals are rounding errors, and so are the standard errors"]
    x = np.linspace(0, 1, 5000)
    many = gradcli.fit("y ~ a*x", {"x": x, "y": 2 * x + 1e-12 * np.sin(1e4 * x)})
    assert [*many.warnings] == [
        "rounding errors are a part of the residuals: digits of the standard errors that are right: 3"
    ]
    assert not gradcli.fit("y ~ a*x", {"x": x, "y": 2 * x}, sigma=0.1, absolute_sigma=True).warnings


def test_a_model_that_is_0_everywhere_determines_nothing(run):
    told = run("fit", "y ~ a*0*x", "x=[1,2,3]", "y=[1,2,4]", "a=1").err
    assert told.startswith("warning: the data do not determine a\n")


SIZES = [(1.0, 1e200), (1e200, 1.0), (1.0, 1e-200), (1e-170, 1e130), (1e307, 1e307)]


@pytest.mark.cases(2)
@pytest.mark.parametrize("words", [(), ("--loss", "huber"), ("--profile",), ("--bounds", "a=:0"), ("--by", "g")])
def test_numbers_whose_squares_are_out_of_range(words, run):
    def parts(model, of_x, of_y, of_b):
        x = [each * of_x for each in (0.5, 1, 2, 3, 4, 5)]
        y = [each * of_y for each in (1.2, 1.9, 4.3, 5.8, 8.1, 9.7)]
        groups = ["g=[1,1,1,1,1,1]"] if "--by" in words else []
        done = run("fit", model, f"x={x}", f"y={y}", *groups, "--json", *words)
        assert done.status == 0
        a, b = (done.json["estimates"][name] for name in "ab")
        numbers = [a["value"] / of_y, float(a["error"]) / of_y, done.json["s"] / of_y, done.json["r2"], b["t"]]
        return numbers + [b[name] / of_b for name in ("value", "error", "low", "high")]

    expected = parts("y ~ a + b*x", 1.0, 1.0, 1.0)
    for of_x, of_y in SIZES:
        found = parts("y ~ a + b*x", of_x, of_y, of_y / of_x)
        assert found == pytest.approx(expected, rel=1e-6, nan_ok=True)
    if "--bounds" not in words:
        decay = parts("y ~ a - 20*exp(-x/b)", 1.0, 1.0, 1.0)
        assert parts("y ~ a - 20*exp(-x/b)", 1e200, 1.0, 1e200) == pytest.approx(decay, rel=1e-6)


def test_files_of_numbers_out_of_range_are_refused(run, tmp_path):
    done = run("fit", "y ~ a*x", "x=[1,2,3]", "y=[1e200,2e200,3e200]", "--residuals", str(tmp_path / "r.csv"))
    assert (done.status, "give the data in other units" in done.err) == (2, True)
