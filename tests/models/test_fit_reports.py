"""Tests the reports of `gradcli fit`: errors, intervals, curvature, groups, bands, other likelihoods."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odrpack import odr_fit
from scipy.optimize import curve_fit, minimize
from scipy.special import stdtrit

import gradcli

Run = Callable[..., Any]

PUROMYCIN = Path(__file__).parents[2] / "examples" / "data" / "puromycin.csv"
MODEL = "rate ~ V*conc/(K + conc)"
TREATED = {
    "conc": np.array([0.02, 0.02, 0.06, 0.06, 0.11, 0.11, 0.22, 0.22, 0.56, 0.56, 1.1, 1.1]),
    "rate": np.array([76.0, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200]),
}
# Pearson's data with York's weights, the usual test of fits with errors in both variables.
PEARSON = {
    "x": [0, 0.9, 1.8, 2.6, 3.3, 4.4, 5.2, 6.1, 6.5, 7.4],
    "y": [5.9, 5.4, 4.4, 4.6, 3.5, 3.7, 2.8, 2.8, 2.4, 1.5],
    "dx": np.array([1000, 1000, 500, 800, 200, 80, 60, 20, 1.8, 1]) ** -0.5,
    "dy": np.array([1, 1.8, 4, 8, 20, 20, 70, 70, 100, 500]) ** -0.5,
}


def test_statistics_are_those_that_r_prints() -> None:
    """nls, AIC, logLik, and MASS's rms.curv and confint for the treated cells."""
    fit = gradcli.fit(MODEL, TREATED, {"V": 200, "K": 0.05}, profile=True)
    v, k = fit.estimates["V"], fit.estimates["K"]
    assert (v.value, v.error) == pytest.approx((212.7, 6.947), rel=1e-3)
    assert (k.value, k.error) == pytest.approx((0.06412, 0.008281), rel=1e-3)
    assert (fit.s, fit.dof) == (pytest.approx(10.93, rel=1e-3), 10)
    assert fit.curvature.parameter == pytest.approx(0.2121, abs=1e-4)
    assert fit.curvature.intrinsic == pytest.approx(0.092, abs=1e-4)
    assert (v.low, v.high, k.low, k.high) == pytest.approx((197.302, 229.29, 0.04692, 0.08616), rel=1e-4)
    assert fit.aic == pytest.approx(2 * 3 - 2 * fit.loglik)
    assert fit.r2 == pytest.approx(1 - fit.rss / np.sum((TREATED["rate"] - TREATED["rate"].mean()) ** 2))


def test_a_profile_ends_where_the_fit_without_the_parameter_is_as_bad_as_that() -> None:
    fit = gradcli.fit(MODEL, TREATED, {"V": 200, "K": 0.05}, profile=True)
    high = fit.estimates["K"].high
    held = gradcli.fit(MODEL, TREATED, {"V": 200, "K": high}, fix=["K"])
    assert math.sqrt((held.rss - fit.rss) / fit.s**2) == pytest.approx(2.2281388519649385, rel=1e-7)


def test_a_profile_without_an_end_is_infinite() -> None:
    data = {"x": [1.0, 2, 3, 4, 5], "y": [1.01, 0.98, 1.02, 0.99, 1.0]}
    fit = gradcli.fit("y ~ a*x/(x + k)", data, {"a": 1, "k": 0.1}, bounds={"k": (0, None)}, profile=True)
    assert fit.estimates["k"].low == 0


def test_errors_that_are_known_are_taken_as_they_stand() -> None:
    sigma = np.full(12, 10.0)
    data = TREATED | {"s": sigma}
    fit = gradcli.fit(MODEL, data, {"V": 200, "K": 0.05}, sigma="s", absolute_sigma=True)

    def rate(x: Any, v: float, k: float) -> Any:
        return v * x / (k + x)

    _, covariance = curve_fit(rate, data["conc"], data["rate"], [200, 0.05], sigma=sigma, absolute_sigma=True)
    assert [e.error for e in fit.estimates.values()] == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-3)
    assert fit.estimates["V"].high - fit.estimates["V"].value == pytest.approx(
        1.959963984540054 * fit.estimates["V"].error
    )


def test_a_combination_that_the_data_do_not_determine_is_named(run: Run) -> None:
    result = run("fit", "y ~ (a + b)*x + c", "x=[1,2,3,4]", "y=[2.1,3.9,6.2,7.8]", "a=1", "b=1", "c=0", "--json")
    found = json.loads(result.out)
    assert result.status == 1
    assert found["undetermined"] == ["a - b"]
    assert found["estimates"]["a"]["error"] == "Infinity"
    assert math.isfinite(found["estimates"]["c"]["error"])


def test_what_is_not_determined_is_named_whatever_its_size() -> None:
    data = {"x": [0.0, 1, 2, 3], "y": [2.0, 2.7, 3.9, 5.2]}
    fit = gradcli.fit("y ~ a*c*exp(b*x)", data, {"a": 1e-9, "c": 2e9, "b": 0.3})
    assert not fit.converged
    (text,) = fit.undetermined
    assert text.startswith(("a/", "-a/"))
    assert "c/" in text
    assert math.isfinite(fit.estimates["b"].error)


def test_a_parameter_at_its_bound_has_no_error(run: Run) -> None:
    words = ["fit", MODEL, str(PUROMYCIN), "V=150", "K=0.05", "--bounds", "V=0:160"]
    fit = json.loads(run(*words, "--json").out)
    assert (fit["estimates"]["V"]["value"], fit["estimates"]["V"]["error"]) == (160, "NaN")
    assert "V is at its bound 160" in fit["warnings"][0]
    held = json.loads(run("fit", MODEL, str(PUROMYCIN), "V=160", "K=0.05", "--fix", "V", "--json").out)
    assert fit["estimates"]["K"]["value"] == pytest.approx(held["estimates"]["K"]["value"])
    assert re.search(r"^V +160 +- +- +- +- +-$", run(*words).out, re.MULTILINE)


def test_as_many_parameters_as_rows_leave_no_errors(run: Run) -> None:
    result = run("fit", "y ~ a*x + b", "x=[1,2]", "y=[2,4.5]")
    assert result.status == 0
    assert re.search(r"^a +2.5 +- +- +- +- +-$", result.out, re.MULTILINE)
    assert "nothing is left to tell errors from" in result.err


def test_no_file_is_written_that_is_read_or_written_too(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_bytes(PUROMYCIN.read_bytes())
    result = run("fit", MODEL, str(data), "--predict", str(data))
    assert (result.status, data.read_bytes()) == (2, PUROMYCIN.read_bytes())
    assert "is read and would be written" in result.err
    both = str(tmp_path / "b.csv")
    assert "two files would be written" in run("fit", MODEL, str(data), "--predict", both, "--residuals", both).err


COUNTS = {"x": np.arange(8.0), "y": np.array([2.0, 3, 6, 7, 8, 9, 10, 12])}


def test_a_poisson_fit_is_the_maximum_of_its_likelihood() -> None:
    fit = gradcli.fit("y ~ exp(a + b*x)", COUNTS, {"a": 0.5, "b": 0.1}, family="poisson")

    def cost(point: Any) -> float:
        mean = np.exp(point[0] + point[1] * COUNTS["x"])
        return float(np.sum(mean - COUNTS["y"] * np.log(mean)) + sum(map(math.lgamma, COUNTS["y"] + 1)))

    found = minimize(cost, [0.5, 0.1], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    mean = np.exp(found.x[0] + found.x[1] * COUNTS["x"])
    rows = np.stack([np.ones(8), COUNTS["x"]])
    errors = np.sqrt(np.diag(np.linalg.inv((rows * mean) @ rows.T)))
    assert [e.value for e in fit.estimates.values()] == pytest.approx(found.x, rel=1e-6)
    assert [e.error for e in fit.estimates.values()] == pytest.approx(errors, rel=1e-6)
    assert fit.loglik == pytest.approx(-found.fun)
    assert fit.aic == pytest.approx(4 + 2 * found.fun)


# Girls of Warsaw by age: the number examined, and the number after menarche. E. Milicer and F. Szczotka, Human Biology
# 38 (1966) 199; `menarche` of R's MASS.
MENARCHE = """9.21 376 0 10.21 200 0 10.58 93 0 10.83 120 2 11.08 90 2 11.33 88 5 11.58 105 10 11.83 111 17 12.08 100 16
12.33 93 29 12.58 100 39 12.83 108 51 13.08 99 47 13.33 106 67 13.58 105 81 13.83 117 88 14.08 98 79 14.33 97 90
14.58 120 113 14.83 102 95 15.08 122 117 15.33 111 107 15.58 94 92 15.83 114 112 17.58 1049 1049"""
LOGIT = "1/(1 + exp(-(a + b*age)))"


@pytest.fixture
def menarche(tmp_path: Path) -> str:
    path = tmp_path / "menarche.csv"
    words = MENARCHE.split()
    rows = [f"{age},{n},{k},{int(k) / int(n)}\n" for age, n, k in zip(words[::3], words[1::3], words[2::3])]
    path.write_text("age,total,come,share\n" + "".join(rows))
    return str(path)


@pytest.mark.parametrize(
    "words",
    [
        ("come/total",),
        ("come/(total + 0)",),
        ("come/total", "--trials", "total"),
        ("share", "--trials", "total"),
    ],
)
def test_shares_of_trials_have_their_likelihood(run: Run, menarche: str, words: tuple[str, ...]) -> None:
    response, *others = words
    fit = run("fit", f"{response} ~ {LOGIT}", menarche, "--family", "binomial", "--json", *others).json
    # summary(glm(cbind(Menarche, Total - Menarche) ~ Age, binomial, menarche)) of R.
    estimates = fit["estimates"]
    assert [round(estimates[name]["value"], 5) for name in "ab"] == [-21.22639, 1.63197]
    assert [estimates[name]["error"] for name in "ab"] == pytest.approx([0.77068, 0.05895], rel=1e-4)
    assert [estimates[name]["t"] for name in "ab"] == pytest.approx([-27.54, 27.68], rel=2e-4)
    assert (round(fit["deviance"], 3), round(fit["aic"], 2), fit["dof"]) == (26.703, 114.76, 23)
    assert fit["r2"] == pytest.approx(1 - 26.703 / 3693.884, rel=1e-6)
    assert not fit["warnings"]


def test_shares_of_trials_are_as_many_events_as_they_are(run: Run, tmp_path: Path) -> None:
    trials = np.array([5, 8, 3, 9, 4, 6, 7])
    events = np.array([0, 3, 1, 5, 3, 4, 7])
    x = np.arange(7.0)
    model = "1/(1 + exp(-(a + b*x)))"
    single = {
        "x": np.repeat(x, trials),
        "y": np.concatenate([np.arange(n) < k for n, k in zip(trials, events)]).astype(float),
    }
    one = gradcli.fit(f"y ~ {model}", single, family="binomial")
    data = {"x": x, "k": events, "n": trials}
    many = gradcli.fit(f"k/n ~ {model}", data, family="binomial")
    for name in "ab":
        assert many.estimates[name][:2] == pytest.approx(one.estimates[name][:2], rel=1e-8)
    given = gradcli.fit(f"p ~ {model}", {"x": x, "p": events / trials}, family="binomial", trials=trials)
    assert given.estimates == many.estimates
    # The contribution of a row to Pearson's statistic.
    csv_path = tmp_path / "residuals.csv"
    columns = [f"{name}={column.tolist()}" for name, column in data.items()]
    run("fit", f"k/n ~ {model}", *columns, "--family", "binomial", "--residuals", str(csv_path))
    rows = [*csv.DictReader(csv_path.read_text().splitlines())]
    pearson = [float(row["standardized"]) ** 2 * (1 - float(row["leverage"])) for row in rows]
    assert sum(pearson) == pytest.approx(many.reduced_chi2 * many.dof)
    assert sum(float(row["leverage"]) for row in rows) == pytest.approx(2)
    groups = {name: [*column, *column] for name, column in data.items()} | {"g": [0] * 7 + [1] * 7}
    for group in gradcli.fit(f"k/n ~ {model}", groups, family="binomial", by="g", a=0, b=0):
        assert group.estimates["b"][:2] == pytest.approx(many.estimates["b"][:2], rel=1e-8)
        assert group.deviance == pytest.approx(many.deviance)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("y ~ a", "y=[0,0.25,1]"), "'y' is 0.25 in row 2, and it is not said of how many trials"),
        (("y/m ~ a", "y=[0,0.3,1]", "m=[1,2,2]"), "'y/m' is 0.15 in row 2, and it is not said of how many trials"),
        (("y/2.5 ~ a", "y=[0,1,2]"), "'y/2.5' is 0.4 in row 2, and it is not said of how many trials"),
        (("y ~ a", "y=[0,2,1]"), "'y' is 2 in row 2, outside 0 to 1"),
        (("y ~ a", "y=[0,2,1]", "--trials", "5"), "'y' is 2 in row 2, outside 0 to 1"),
        (("y/n ~ a", "y=[0,2,3]", "n=[3,3,2]"), "'y/n' is 1.5 in row 3, outside 0 to 1"),
        (("y ~ a", "y=[0,0.5,1]", "--trials", "2.5"), "the trials are 2.5 in row 1, and they are a whole number"),
        (("y ~ a", "y=[0,0.5,1]", "--trials", "n"), "--trials 'n': the data have no such column"),
        (("y ~ a", "y=[0,1,1]", "--sigma", "2"), "--trials gives the weights of binomial rows"),
    ],
)
def test_a_share_of_no_known_trials_is_an_error(run: Run, words: tuple[str, ...], message: str) -> None:
    done = run("fit", *words, "--family", "binomial")
    assert done.status == 2
    assert message in done.err


EXPOSED = ("t=[12,30,45,20,60,33,51,18]", "x=[0,1,2,3,4,5,6,7]", "k=[1,4,9,5,20,13,27,12]")


def test_an_offset_of_counts_is_that_of_a_generalised_linear_model(run: Run) -> None:
    words = (*EXPOSED, "--family", "poisson", "--json")
    fit = run("fit", "k ~ exp(a + b*x)", *words, "--offset", "log(t)").json
    # statsmodels: GLM(k, add_constant(x), family=Poisson(), offset=log(t)).
    estimates = fit["estimates"]
    assert [estimates[name]["value"] for name in "ab"] == pytest.approx([-2.17945205, 0.25730075], rel=1e-7)
    assert [estimates[name]["error"] for name in "ab"] == pytest.approx([0.29645355, 0.0589588], rel=1e-6)
    assert (fit["deviance"], fit["aic"]) == (pytest.approx(0.24941024, rel=1e-6), pytest.approx(35.7835222, rel=1e-7))


@pytest.mark.parametrize(
    ("model", "written", "offset", "family"),
    [
        ("k ~ exp(a + b*x)", "k ~ exp(a + b*x + log(t))", "log(t)", "poisson"),
        ("k ~ a + b*x", "k ~ a + b*x + t", "t", "gaussian"),
        ("k ~ a + b*x", "k ~ a + b*x + 2.5", "2.5", "gaussian"),
        ("c = a + b*x\nk ~ c", "k ~ a + b*x + t", "t", "gaussian"),
        ("k/t ~ 1/(1 + exp(-a - b*x))", "k/t ~ 1/(1 + exp(-a - b*x - x**2/50))", "x**2/50", "binomial"),
    ],
)
def test_an_offset_is_a_term_on_the_scale_of_the_link(
    run: Run, model: str, written: str, offset: str, family: str
) -> None:
    words = (*EXPOSED, "a=0.1", "b=0.1", "--family", family, "--json")
    words = words if "t" in written.split() or "t" in written else words[1:]
    expected = run("fit", written, *words).json["estimates"]
    found = run("fit", model, *words, "--offset", offset).json["estimates"]
    for name in "ab":
        assert [found[name][key] for key in ("value", "error")] == pytest.approx(
            [expected[name][key] for key in ("value", "error")], rel=1e-7
        )


def test_an_offset_of_python_may_be_an_array(run: Run) -> None:
    data = {"x": [0, 1, 2, 3], "y": [1, 2.5, 3, 5]}
    fits = [gradcli.fit("y ~ a*x", data, offset=offset) for offset in (1, [1, 1, 1, 1])]
    fits.append(gradcli.fit("y ~ a*x + 1", data))
    groups = {name: [*column, *column] for name, column in data.items()} | {"g": [0] * 4 + [1] * 4}
    fits += gradcli.fit("y ~ a*x", groups, offset=1, by="g")
    assert [fit.estimates["a"].value for fit in fits] == pytest.approx([fits[0].estimates["a"].value] * 5)


def test_an_offset_may_be_called_like_what_it_is_rewritten_to() -> None:
    data = {"x": [1.0, 2, 3, 4], "y": [1.0, 2, 3.1, 5]}
    estimates = gradcli.fit("y ~ a*x + b", data, offset=[1.0, 1, 1, 1]).estimates
    named = gradcli.fit("y ~ a*x + offset_of_rows", data, offset=[1.0, 1, 1, 1]).estimates
    assert named == {"a": estimates["a"], "offset_of_rows": estimates["b"]}
    columns = {**data, "offset_of_rows": data["x"]}
    assert gradcli.fit("y ~ a*x + b", columns, offset=[1.0, 1, 1, 1]).estimates == estimates
    events = {"x": [1.0, 2, 3, 4, 5, 6], "y": [0.0, 1, 0, 1, 0, 1], "t": [0.1, 0.3, 0.2, 0.5, 0.4, 0.6]}
    renamed = {"x": events["x"], "y": events["y"], "value_before_offset": events["t"]}
    model = "y ~ 1/(1 + exp(-a*x))"
    fits = [
        gradcli.fit(model, columns, offset=offset, family="binomial").estimates
        for columns, offset in ((events, "t"), (renamed, "value_before_offset"))
    ]
    assert fits[0] == fits[1]


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ("log(u)", "'u' in the offset is no column of the data"),
        ("s = 1; s", "an offset is one expression"),
        ("log(", "'(' is never closed"),
        ("log(x)", "'log' gives -inf for operand 0.0"),
    ],
)
def test_an_offset_that_is_none_is_an_error(run: Run, offset: str, message: str) -> None:
    done = run("fit", "k ~ a + b*x", *EXPOSED[1:], "--offset", offset)
    assert done.status in (1, 2)
    assert message in done.err


def test_shares_that_may_be_counts_are_told(run: Run) -> None:
    words = ("x=[0,1,2,3,4]", "--family", "binomial", "a=0", "b=0")
    model = "1/(1 + exp(-(a + b*x)))"
    told = run("fit", f"y ~ {model}", "y=[0,0,1,0,1]", *words, "--trials", "5").err
    assert "'y' is 0 or 1 in all rows, and taken for the share of events" in told
    told = run("fit", f"y ~ {model}", "y=[0,0.3,0.5,0.2,0.9]", *words, "--trials", "5").err
    assert "'y' times the trials is no whole number in some rows" in told
    told = run("fit", "y ~ exp(a + b*x)", "y=[0,0.3,1.5,2,3.5]", "x=[0,1,2,3,4]", "--family", "poisson").err
    assert "'y' has values that are no whole numbers" in told
    assert "deviance" in run("fit", "y ~ exp(a + b*x)", "y=[0,1,1,2,3]", "x=[0,1,2,3,4]", "--family", "poisson").out


def test_a_robust_loss_leaves_an_outlier_alone() -> None:
    x = np.linspace(0, 9, 10)
    y = 1 + 2 * x + np.array([0.1, -0.2, 0.15, -0.1, 0.05, -0.05, 0.1, -0.15, 0.2, 60])
    fits = {
        loss: gradcli.fit("y ~ a + b*x", {"x": x, "y": y}, sigma=0.2, loss=loss)
        for loss in ("linear", "soft_l1", "huber", "cauchy")
    }
    assert fits["linear"].estimates["b"].value > 4
    for loss in ("soft_l1", "huber", "cauchy"):
        b = fits[loss].estimates["b"]
        assert abs(b.value - 2) < 0.1
        assert 0 < b.error < 0.1
        assert math.isnan(fits[loss].aic)


def test_errors_in_both_variables_are_those_of_the_known_solution() -> None:
    fit = gradcli.fit("y ~ a + b*x", PEARSON, sigma="dy", x_sigma={"x": "dx"})
    assert (fit.estimates["a"].value, fit.estimates["b"].value) == pytest.approx((5.47991022, -0.480533407), rel=1e-8)
    assert fit.rss == pytest.approx(11.8663531941, rel=1e-9)
    theirs = odr_fit(
        lambda x, b: b[0] + b[1] * x,
        np.array(PEARSON["x"]),
        np.array(PEARSON["y"]),
        [5, -0.5],
        weight_x=np.asarray(PEARSON["dx"]) ** -2,
        weight_y=np.asarray(PEARSON["dy"]) ** -2,
    )
    assert [e.error for e in fit.estimates.values()] == pytest.approx(theirs.sd_beta, rel=1e-4)


def decays(groups: int, rows: int) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    x = np.tile(np.linspace(0, 5, rows), (groups, 1))
    a, k, c = (draw.uniform(low, high, (groups, 1)) for low, high in ((1, 3), (0.5, 2), (0, 1)))
    y = a * np.exp(-k * x) + c + draw.normal(0, 0.05, x.shape)
    return {"x": x.ravel(), "y": y.ravel(), "run": np.repeat([f"r{i}" for i in range(groups)], rows)}


def test_a_group_is_fitted_as_it_would_be_alone() -> None:
    data = decays(20, 30)
    # Groups need not be contiguous nor of equal size.
    order = np.random.default_rng(2).permutation(len(data["x"]))[:-40]
    data = {name: column[order] for name, column in data.items()}
    start = {"a": 1.0, "k": 1.0, "c": 0.5}
    fits = gradcli.fit("y ~ a*exp(-k*x) + c", data, start, by="run")
    assert [fit.group for fit in fits] == list(dict.fromkeys(data["run"]))
    for fit in fits[:5]:
        own = {name: column[data["run"] == fit.group] for name, column in data.items() if name != "run"}
        alone = gradcli.fit("y ~ a*exp(-k*x) + c", own, start)
        assert fit.converged
        assert fit.n == alone.n
        for name, estimate in alone.estimates.items():
            assert fit.estimates[name].value == pytest.approx(estimate.value, rel=1e-9)
            assert fit.estimates[name].high == pytest.approx(estimate.high, rel=1e-7)
        assert (fit.loglik, fit.condition) == pytest.approx((alone.loglik, alone.condition), rel=1e-7)
        assert fit.curvature.intrinsic == pytest.approx(alone.curvature.intrinsic, rel=1e-6)


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        ([2, 2, 1, 2, 1, 1], ["2", "1"]),
        ([True, True, False, False, True, False], ["True", "False"]),
        (["b", "b", "a", "a", "b", "a"], ["b", "a"]),
        ([0.0, -0.0, 0.0, -0.0, 0.0, math.nan], ["0.0", "-0.0"]),
    ],
)
def test_groups_come_in_the_order_of_the_rows_wherever_these_stand(labels: list[object], texts: list[str]) -> None:
    data = {"y": np.arange(6.0), "g": np.array(labels)}
    fits = gradcli.fit("y ~ a", data, by="g", a=1)
    means = [np.mean([i for i, label in enumerate(labels) if str(label) == text and label == label]) for text in texts]
    assert [fit.group for fit in fits] == texts
    assert [fit.estimates["a"].value for fit in fits] == pytest.approx(means)


def test_a_group_that_cannot_be_fitted_does_not_keep_the_others_from_it(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("g,x,y\na,1,2\na,2,4.1\na,3,5.9\nb,1,1\n,1,1\na,,7\n", encoding="utf-8")
    result = run("fit", "y ~ p + q*x", str(table), "--by", "g")
    assert result.status == 1
    rows = list(csv.DictReader(result.out.splitlines()))
    assert [(row["g"], row["n"], row["converged"]) for row in rows] == [("a", "3", "true"), ("b", "1", "false")]
    assert "1 of 2 groups are not fitted; the first is 'b': not converged: too few rows, 1 for 2" in result.err
    assert "2 rows were left out" in result.err
    lines = [json.loads(line) for line in run("fit", "y ~ p + q*x", str(table), "--by", "g", "--json").out.splitlines()]
    assert [line["group"] for line in lines] == ["a", "b"]
    assert [*lines[0]][:4] == ["schema", "model", "group", "n"]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_rows_without_a_response_are_predicted(run: Run, tmp_path: Path) -> None:
    data, bands, residuals = (tmp_path / name for name in ("d.csv", "bands.csv", "residuals.csv"))
    treated = [line for line in PUROMYCIN.read_text(encoding="utf-8").splitlines() if ",untreated" not in line]
    data.write_text("\n".join([*treated, "2,,treated", ",5,treated"]) + "\n", encoding="utf-8")
    result = run("fit", MODEL, str(data), "--predict", str(bands), "--residuals", str(residuals), "--json", "--quiet")
    found = json.loads(result.out)
    assert found["n"] == 12
    predicted, told = table(bands), table(residuals)
    assert [row["conc"] for row in predicted][-1] == "2.0"
    assert len(predicted) == 13
    v, k = (found["estimates"][name]["value"] for name in ("V", "K"))
    last = {name: float(text) for name, text in predicted[-1].items()}
    assert last["value"] == pytest.approx(v * 2 / (k + 2))
    gradient = np.array([2 / (k + 2), -v * 2 / (k + 2) ** 2])
    assert last["error"] == pytest.approx(math.sqrt(gradient @ np.array(found["covariance"]) @ gradient))
    wide = math.hypot(last["error"], found["s"])
    assert (last["high_response"] - last["value"]) / (last["high"] - last["value"]) == pytest.approx(
        wide / last["error"]
    )
    assert sum(float(row["residual"]) ** 2 for row in told) == pytest.approx(found["rss"])
    assert sum(float(row["leverage"]) for row in told) == pytest.approx(2)


def test_a_picture_of_the_fit_is_written(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "fit.svg"
    assert run("fit", MODEL, str(PUROMYCIN), "V=200", "K=0.05", "--plot", str(picture)).status == 0
    assert "95 % confidence" in picture.read_text(encoding="utf-8")


def drawn(monkeypatch: pytest.MonkeyPatch, run: Run, *words: str) -> Any:
    """The figure that a fit draws."""
    from gradcli.models.plotting import by_matplotlib

    charts: list[Any] = []
    monkeypatch.setattr(by_matplotlib, "save", lambda chart, path, write: charts.append(chart))
    assert run("fit", *words, "--plot", "a.png").status == 0
    (chart,) = charts
    return by_matplotlib.drawn(chart)


def test_a_picture_has_the_residuals_below(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    figure = drawn(monkeypatch, run, MODEL, str(PUROMYCIN), "--xlabel", "c / ppm", "--title", "Puromycin")
    above, below = figure.axes
    assert figure.get_suptitle() == "Puromycin"
    assert (below.get_xlabel(), below.get_ylabel(), above.get_ylabel()) == ("c / ppm", "residual", "rate")
    points = above.lines[0].get_xydata()
    curve = above.lines[1].get_xydata()
    residuals = below.lines[-1].get_xydata()
    expected = points[:, 1] - np.interp(points[:, 0], *curve.T)
    np.testing.assert_allclose(residuals, np.c_[points[:, 0], expected], atol=0.1)


def test_a_picture_has_a_curve_for_each_group(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    model = "rate ~ V*conc/(K + conc)"
    figure = drawn(monkeypatch, run, model, str(PUROMYCIN), "--by", "state", "--log", "x")
    above, below = figure.axes
    labels = [text.get_text() for text in above.get_legend().get_texts()]
    assert labels[::3] == ["treated: data", "untreated: data"]
    colors = [line.get_color() for line in above.lines]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    assert [line.get_color() for line in below.lines[1:]] == colors[::2]
    assert above.get_xscale() == "log"


def test_a_picture_has_error_bars_in_both_directions(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    words = ("rate ~ a + b*conc", str(PUROMYCIN), "--x-sigma", "conc=0.1", "--sigma", "10", "--absolute-sigma")
    above, _ = drawn(monkeypatch, run, *words).axes
    (bars,) = above.containers
    assert bars.has_xerr
    assert bars.has_yerr
    across = bars.lines[2][0].get_segments()
    np.testing.assert_allclose([end[0] - start[0] for start, end in across], 0.2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--predict", "bands.xyz"], "does not say what to write"),
        (["--by", "sate"], "no column 'sate'"),
        (["--x-sigma", "rate=1"], "'rate' has an error, and is no column that the model reads"),
        (["--x-sigma", "conc=0"], "an error of 'conc' is not above 0"),
        (["--x-sigma", "conc=nothing"], "no such column"),
        (["--loss", "huber", "--profile"], "has no likelihood"),
        (["--family", "poisson", "--x-sigma", "conc=1"], "for least squares"),
        (["--title", "a"], "--title is for a picture"),
        (["--log", "x"], "--log is for a picture"),
        (["--plot", "a.png", "--log", "q"], "there is no logarithmic axis 'q'"),
        (["--plot", "a.png", "--log", "z"], "--log z is for the colours"),
        (["--plot", "a.png", "--size", "1"], "--size '1' is no size"),
    ],
)
def test_what_cannot_be_asked_is_an_error(run: Run, words: list[str], message: str) -> None:
    result = run("fit", MODEL, str(PUROMYCIN), "V=200", "K=0.05", *words)
    assert result.status == 2
    assert message in result.err


def test_no_result_takes_the_place_of_a_column(tmp_path, run):
    data = tmp_path / "d.csv"
    data.write_text(
        "s,value,y\n"
        + "".join(f"{g},{x},{k * x + 0.1 * (-1) ** x}\n" for g, k in (("u", 2), ("v", 3)) for x in range(1, 6))
    )
    table = run("fit", "y ~ n*value", str(data), "--by", "s").out.splitlines()
    assert table[0] == "s,n,n_,n_error,rss,s_,r2,converged"
    assert [line[:3] for line in table[1:]] == ["u,5", "v,5"]
    assert run("fit", "y ~ n*value", str(data), "--residuals", str(tmp_path / "r.csv")).status == 0
    assert (tmp_path / "r.csv").read_text().splitlines()[0].startswith("row,value,y,value_,residual")


def test_what_is_read_is_not_written(tmp_path, run):
    for name in ("in1.csv", "in2.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n2,3.9\n3,6.1\n")
    read = str(tmp_path / "in2.csv")
    for words in ([str(tmp_path / "in*.csv")], [f"x=@{read}:x", f"y=@{read}:y"]):
        found = run("fit", "y ~ a*x", *words, "--residuals", read)
        assert found.status == 2
        assert "is read and would be written" in found.err


def test_residuals_of_distances_are_those_about_the_tangents(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    fit = gradcli.fit("y ~ a + b*x", PEARSON, sigma="dy", x_sigma={"x": "dx"}, residuals=str(path))
    rows = [{name: float(text) for name, text in row.items()} for row in table(path)]
    b = fit.estimates["b"].value
    spread = np.hypot(PEARSON["dy"], b * PEARSON["dx"])
    residual = np.array([row["residual"] for row in rows])
    leverage = np.array([row["leverage"] for row in rows])
    assert ((leverage > 0) & (leverage < 1)).all()
    assert leverage.sum() == pytest.approx(2)
    assert np.sum((residual / spread) ** 2) == pytest.approx(fit.rss)
    assert [row["standardized"] for row in rows] == pytest.approx(residual / spread / fit.s / np.sqrt(1 - leverage))


@pytest.mark.parametrize(
    ("model", "y"), [("a*exp(-k*x)", lambda x: 2 * np.exp(-0.7 * x)), ("a + b*x", lambda x: 1 + 2 * x)]
)
def test_distances_of_exact_data_are_a_fit(model: str, y: Callable[..., Any]) -> None:
    for n in (5, 20):
        x = np.arange(1.0, n + 1)
        fit = gradcli.fit(f"y ~ {model}", {"x": x, "y": y(x)}, x_sigma={"x": 0.1})
        assert (fit.converged, fit.message[:9]) == (True, "converged")


def test_a_question_that_is_wrong_stops_the_fits_of_groups(run: Run) -> None:
    done = run("fit", MODEL, str(PUROMYCIN), "V=200", "K=0.05", "--by", "state", "--x-sigma", "rate=1")
    assert (done.status, done.out) == (2, "")
    assert "is no column that the model reads" in done.err


def test_a_group_is_not_kept_in_a_minimum_that_another_has() -> None:
    draw = np.random.default_rng(4)
    x = np.tile(np.linspace(0, 6, 40), (6, 1))
    rates = draw.uniform(1, 9, (6, 1))
    y = 2 * np.sin(rates * x + 1) + draw.normal(0, 0.1, x.shape)
    data = {"x": x.ravel(), "y": y.ravel(), "run": np.repeat(range(6), 40)}
    fits = gradcli.fit("y ~ a*sin(w*x + p)", data, by="run")
    assert [fit.s for fit in fits] == pytest.approx([0.1] * 6, rel=0.3)
    assert [fit.estimates["w"].value for fit in fits] == pytest.approx(rates.ravel(), rel=0.02)


def test_the_profile_of_a_parameter_at_its_bound_goes_to_one_side(run: Run) -> None:
    words = ["fit", "y ~ a + b*x", "x=[0,1,2,3,4]", "y=[0.1,1,2.2,2.9,4.1]", "--bounds", "b=0:0.95", "--profile"]
    done = run(*words, "--json")
    fit = json.loads(done.out)
    b = fit["estimates"]["b"]
    assert (b["value"], b["high"]) == (0.95, 0.95)
    assert 0.8 < b["low"] < 0.93
    assert "its interval is one-sided" in done.err
    assert fit["covariance"][1] == ["NaN", "NaN"]
    # At the ends of the interval the sum of squares has increased by the quantile.
    x, y = np.arange(5.0), np.array([0.1, 1, 2.2, 2.9, 4.1])
    squares = [np.var(y - slope * x) * 5 for slope in (b["low"], 0.95)]
    assert math.sqrt((squares[0] - squares[1]) / fit["s"] ** 2) == pytest.approx(stdtrit(fit["dof"], 0.975), rel=1e-6)


@pytest.mark.slow
def test_linear_parameters_of_a_robust_fit_are_found_whatever_their_size() -> None:
    x = np.linspace(0, 5, 30)
    y = 1e9 - 3e-3 * 1e9 * np.exp(-0.8 * x)
    y[7] += 5e8
    fit = gradcli.fit("y ~ a + b*exp(-k*x)", {"x": x, "y": y}, loss="cauchy", sigma=1e4)
    assert fit.converged
    assert [e.value for e in fit.estimates.values()] == pytest.approx([1e9, -3e6, 0.8], rel=1e-3)


def test_warnings_of_groups_that_differ_in_their_numbers_are_one(run: Run, tmp_path: Path) -> None:
    x = np.linspace(0, 3, 6)
    noise = np.random.default_rng(1).normal(0, 0.15, (30, 6))
    rows = [
        f"s{group},{a!r},{b!r}"
        for group, own in enumerate(noise)
        for a, b in zip(x.tolist(), (2 * np.exp(-0.7 * x) + 0.3 + own).tolist())
    ]
    table = tmp_path / "runs.csv"
    table.write_text("\n".join(["g,x,y", *rows]) + "\n", encoding="utf-8")
    words = ("fit", "y ~ a*exp(-k*x) + c", str(table), "a=1", "k=1", "c=0.5", "--by", "g")
    told = run(*words)
    each = [json.loads(line) for line in run(*words, "--json").out.splitlines()]
    some = [fit for fit in each if any("intervals" in warning for warning in fit["warnings"])]
    curved = [fit["curvature"]["parameter"] for fit in some]
    (line,) = (line for line in told.err.splitlines() if "linear intervals" in line)
    assert f"(curvature by the parameters {min(curved):.2g} to {max(curved):.2g}, more than 0.3)" in line
    names = ", ".join(repr(fit["group"]) for fit in some[:3])
    assert line.endswith(f"(in {len(some)} groups: {names} and {len(some) - 3} others)")
    # Numbers in parameter names do not prevent the combination from being shown.
    err = run("fit", "y ~ b1*b2*x", "x=[1,2,3]", "y=[2,4.1,6]", "b1=1", "b2=2").err
    # Rounding determines which of the equally good fits is found.
    assert re.search(r"^warning: the data do not determine (b1 - [\d.]+\*b2|-[\d.]+\*b1 \+ b2)$", err, re.MULTILINE)


def test_leverage_and_cooks_distance_are_those_of_r(run, tmp_path):
    # From R: hatvalues and cooks.distance of glm(n ~ x, family=poisson(link="identity")), whose expected information is
    # not the observed one, for the first two rows.
    counts = tmp_path / "counts.csv"
    n = [0, 3, 0, 1, 0, 4, 0, 5, 3, 0, 0, 8, 9, 7, 0, 12, 0, 10]
    counts.write_text("x,n\n" + "".join(f"{1 + i // 3},{each}\n" for i, each in enumerate(n)))
    path = tmp_path / "rows.jsonl"
    run("fit", "n ~ a + b*x", str(counts), "a=1", "b=1", "--family", "poisson", "--residuals", str(path))
    rows = [json.loads(line) for line in path.read_text().splitlines()[:2]]
    assert [row["leverage"] for row in rows] == pytest.approx([0.25762253720, 0.25762253720], rel=1e-6)
    assert [row["cook"] for row in rows] == pytest.approx([0.1865834194, 1.419220698], rel=1e-6)
    # Of lm(stack.loss ~ ., data=stackloss).
    model = "lost ~ a + b*air + c*water + d*acid"
    stackloss = Path(__file__).parents[2] / "examples/data/stackloss.csv"
    run("fit", model, str(stackloss), "--residuals", str(path))
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["leverage"], last["cook"]) == pytest.approx((0.28453346273, 0.6919999163), rel=1e-8)
