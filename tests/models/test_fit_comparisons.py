"""Tests comparisons of models by `gradcli fit --against`, resampling by `--bootstrap` and `--jackknife`, and p-values."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, EvaluationError, UsageError

PUROMYCIN = str(Path(__file__).parents[2] / "examples" / "data" / "puromycin.csv")
STACKLOSS = str(Path(__file__).parents[2] / "examples" / "data" / "stackloss.csv")
BOD = {"x": [1, 2, 3, 5, 7, 10], "y": [109, 149, 149, 191, 213, 224]}
LINE = {"x": [1, 2, 3, 4, 5, 6], "y": [1.1, 2.3, 2.2, 4.6, 4.7, 6.9]}

ZEROS = {
    "x": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6],
    "n": [0, 3, 0, 1, 0, 4, 0, 5, 3, 0, 0, 8, 9, 7, 0, 12, 0, 10],
}


class TestComparisons:
    def test_nonlinear_models(self):
        # R: anova(nls(rate ~ V[state]*conc/(K + conc), …), nls(rate ~ V[state]*conc/(K[state] + conc), …)) on Puromycin
        fit = gradcli.fit(
            "rate ~ V[state]*conc/(K[state] + conc)", PUROMYCIN, against="rate ~ V[state]*conc/(K + conc)"
        )
        found = fit.comparison
        assert found.f.value == pytest.approx(1.71817, rel=1e-5)
        assert found.f.dof == (1, 19)
        assert found.f.p == pytest.approx(0.20555, rel=2e-5)
        assert found.against.rss == pytest.approx(2240.891, rel=1e-6)
        # R: AIC(m) + 2*5*6/(23 - 6)
        assert found.model.aicc == pytest.approx(182.129528, rel=1e-8)
        assert fit.aicc == found.model.aicc
        assert found.likelihood_ratio.value == pytest.approx(2 * (fit.loglik - found.against.loglik))

    def test_counts(self):
        # R: anova(glm(n ~ 1, poisson), glm(n ~ x, poisson), test="LRT"): 310.7125 with 5 degrees for InsectSprays; here
        # the difference of the deviances.
        data = {"x": [0, 1, 2, 3, 4], "n": [2, 3, 6, 7, 8]}
        large = gradcli.fit("n ~ exp(a + b*x)", data, family="poisson", against="n ~ exp(a)")
        small = gradcli.fit("n ~ exp(a)", data, family="poisson")
        found = large.comparison
        assert found.f is None
        assert found.likelihood_ratio.value == pytest.approx(small.deviance - large.deviance)
        assert found.likelihood_ratio.p == pytest.approx(math.erfc(math.sqrt(found.likelihood_ratio.value / 2)))

    def test_the_smaller_model_may_come_first(self):
        one = gradcli.fit("y ~ a + b*x", LINE, against="y ~ a + b*x + c*x**2").comparison
        other = gradcli.fit("y ~ a + b*x + c*x**2", LINE, against="y ~ a + b*x").comparison
        assert one.f.value == pytest.approx(other.f.value)
        assert one.f.dof == other.f.dof
        assert one.f.p == pytest.approx(other.f.p)

    def test_the_test_of_a_parameter_is_its_t_squared(self):
        fit = gradcli.fit("y ~ a + b*x", LINE, against="a")
        assert fit.comparison.f.value == pytest.approx(fit.estimates["b"].t ** 2)
        assert fit.comparison.f.p == pytest.approx(fit.estimates["b"].p)

    def test_both_models_have_the_same_rows(self):
        data = {"x": [1, 2, 3, 4, 5], "z": [1, math.nan, 2, 5, 3], "y": [1, 2, 3, 5, 4]}
        fit = gradcli.fit("y ~ a + b*x", data, against="y ~ a + b*x + c*z")
        assert fit.n == 4
        assert fit.left_out == 1
        assert fit.comparison.against.dof == 1

    def test_settings_go_to_the_model_that_has_the_name(self):
        fit = gradcli.fit(
            "y ~ a*(1 - exp(-k*x))", BOD, {"a": 100, "k": 1, "c": 100, "m": 1}, against="y ~ c*x/(m + x)",
            bounds={"m": (0, None)},
        )  # fmt: skip
        assert [*fit.estimates] == ["a", "k"]
        assert fit.comparison.f is None
        assert any("as many parameters" in warning for warning in fit.warnings)

    def test_vuongs_test_is_that_of_pscl(self):
        # From R: vuong(zeroinfl(n ~ x | 1), glm(n ~ x, family=poisson)) of pscl; the p of H_A: model1 > model2.
        found = gradcli.fit("n ~ exp(a + b*x)", ZEROS, family="zipoisson", against="poisson").comparison
        assert found.likelihood_ratio is None
        for told, value, p in (
            (found.vuong.raw, 2.637796429, 0.0041723329),
            (found.vuong.aic_corrected, 2.509347354, 0.0060477240),
            (found.vuong.bic_corrected, 2.452163640, 0.0071000034),
        ):
            assert told.value == pytest.approx(value, rel=1e-6)
            assert (told.p, told.p_against) == pytest.approx((p, 1 - p), rel=1e-5)
        # vuong(glm(n ~ x, family=poisson), glm(n ~ log(x), family=poisson))
        found = gradcli.fit("n ~ exp(a + b*x)", ZEROS, family="poisson", against="exp(c + d*log(x))").comparison
        assert found.vuong.bic_corrected.value == pytest.approx(0.3194210449, rel=1e-7)

    def test_vuongs_test_is_of_normal_densities_for_least_squares(self):
        x, y = np.array(LINE["x"], float), np.array(LINE["y"], float)
        found = gradcli.fit("y ~ a + b*x", LINE, against="y ~ c*x**2").comparison

        def densities(design):
            off = y - design @ np.linalg.lstsq(design, y)[0]
            variance = np.mean(off**2)
            return -(off**2) / (2 * variance) - np.log(variance) / 2

        m = densities(np.stack([np.ones_like(x), x], axis=1)) - densities(x[:, None] ** 2)
        assert found.vuong.raw.value == pytest.approx(m.sum() / np.sqrt(len(x)) / m.std(ddof=1), rel=1e-7)

    def test_models_that_are_the_same_have_no_test(self):
        assert gradcli.fit("y ~ a + b*x", LINE, against="a + b*(x + 1)").comparison.vuong is None

    def test_another_model_may_have_another_family(self):
        found = gradcli.fit("n ~ exp(a + b*x)", ZEROS, family="zipoisson", against="negbinomial: exp(a)").comparison
        alone = gradcli.fit("n ~ exp(a)", ZEROS, family="negbinomial")
        assert found.against.loglik == pytest.approx(alone.loglik)
        assert found.against.model == "negbinomial: exp(a)"

    def test_standard_input_is_read_once(self, run):
        text = "x,y\n" + "".join(f"{x},{y}\n" for x, y in zip(LINE["x"], LINE["y"]))
        done = run("fit", "y ~ a + b*x", "-", "--against", "y ~ a + b*x + c*x^2", "--json", stdin=text)
        told = json.loads(done.out)["comparison"]
        assert told["against"]["model"] == "y ~ a + b*x + c*x^2"
        assert set(told) == {"model", "against", "f", "likelihood_ratio", "vuong"}
        assert told["f"]["dof"] == [1, 3]

    def test_the_table(self, run):
        words = "fit", "y ~ a + b*x", f"x={LINE['x']}", f"y={LINE['y']}", "--against", "y ~ a"
        lines = run(*words).out.splitlines()
        assert any(line.split() == ["comparison", "this", "model", "against"] for line in lines)
        assert any(line.startswith("AICc ") for line in lines)
        assert any(line.startswith("likelihood ratio ") for line in lines)

    def test_a_larger_model_that_fits_less_well(self):
        fit = gradcli.fit("y ~ a*x**2 + b*x**3", LINE, against="y ~ a*x")
        assert any("the larger model fits less well" in warning for warning in fit.warnings)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"against": "log(y) ~ a"}, UsageError, "the models are of different responses"),
            ({"against": "y ~ a", "loss": "huber"}, UsageError, "tests of models rest on the likelihood"),
            ({"against": "y ~ a", "errors": "robust"}, UsageError, "tests of models rest on the likelihood"),
            ({"against": "multinomial"}, UsageError, "there is no comparison with the family multinomial"),
            ({"against": "student", "sigma": 2.0}, UsageError, "families that are compared have no --sigma"),
            ({"against": "y ~ a", "by": "x"}, UsageError, "--against is for one fit"),
            ({"against": "y ~ c", "values": {"d": 1}}, BindingError, "'d' is given a start"),
            ({"bootstrap": 100, "by": "x"}, UsageError, "--bootstrap is for one fit"),
            ({"bootstrap": -1}, UsageError, "at least 0"),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_together(self, options, error, message):
        with pytest.raises(error) as raised:
            gradcli.fit("y ~ a + b*x", LINE, **options)
        assert message in str(raised.value)


class TestResampling:
    def test_the_jackknife_of_a_mean_is_its_error(self):
        fit = gradcli.fit("y ~ m", LINE, jackknife=True)
        found = fit.jackknife.estimates["m"]
        assert found.error == pytest.approx(fit.estimates["m"].error)
        assert found.bias == pytest.approx(0, abs=1e-12)
        assert (found.low, found.high) == pytest.approx((fit.estimates["m"].low, fit.estimates["m"].high))

    def test_the_jackknife_of_a_model(self):
        fits = [
            gradcli.fit("y ~ a + b*x", {name: np.delete(column, i) for name, column in LINE.items()})
            .estimates["b"]
            .value
            for i in range(6)
        ]
        found = gradcli.fit("y ~ a + b*x", LINE, jackknife=True).jackknife.estimates["b"]
        assert found.error == pytest.approx(math.sqrt(5 / 6 * np.square(np.array(fits) - np.mean(fits)).sum()))

    @pytest.mark.parametrize(("model", "options"), [
        ("y ~ a*(1 - exp(-k*x))", {}),
        ("y ~ a*(1 - exp(-k*x))", {"family": "poisson"}),
    ])  # fmt: skip
    def test_the_bootstrap_is_near_other_errors(self, model, options):
        x = np.linspace(0.5, 10, 60)
        y = np.random.default_rng(3).poisson(200 * (1 - np.exp(-0.5 * x)))
        start = {"a": 100, "k": 1}
        fit = gradcli.fit(model, {"x": x, "y": y}, start, bootstrap=300, derive={"half": "log(2)/k"}, **options)
        for name, found in fit.bootstrap.estimates.items():
            assert found.error == pytest.approx(fit.estimates[name].error, rel=0.3)
            assert found.low < fit.estimates[name].value < found.high
        assert fit.bootstrap.derived["half"].error == pytest.approx(fit.derived["half"].error, rel=0.3)
        assert fit.bootstrap.failed == 0

    def test_the_seed_determines_the_samples(self):
        one, same, other = (gradcli.fit("y ~ a + b*x", LINE, bootstrap=50, seed=seed).bootstrap for seed in (0, 0, 1))
        assert one.estimates == same.estimates
        assert one.estimates != other.estimates

    def test_samples_of_one_cluster_alone_are_fitted(self):
        # The sample of the last row is fitted without residuals, and not with the others.
        data = {"x": [1, 2, 3, 5, 4], "y": [2.1, 3.9, 6.2, 9.7, 7.7], "g": [0, 0, 0, 0, 1]}
        fit = gradcli.fit("y ~ k*x", data, errors="cluster:g", bootstrap=20)
        assert fit.bootstrap.failed == 0

    def test_clusters_are_sampled(self):
        data = {**LINE, "g": [1, 1, 2, 2, 3, 3]}
        fit = gradcli.fit("y ~ a + b*x", data, errors="cluster:g", jackknife=True)
        assert fit.jackknife.samples == 3

    @pytest.mark.slow
    def test_samples_that_cannot_be_fitted(self):
        fit = gradcli.fit("y ~ a + b*x", {"x": [1, 2, 4], "y": [1, 2, 5]}, bootstrap=200)
        # A sample of one row three times does not determine a line.
        assert 0 < fit.bootstrap.failed < 60
        assert any("could not be fitted" in warning for warning in fit.warnings)
        with pytest.raises(EvaluationError, match="fewer than two samples"):
            gradcli.fit("y ~ a + b*x", {"x": [1, 2], "y": [1, 2]}, jackknife=True)

    @pytest.mark.slow
    def test_likelihoods_and_levels(self):
        rng = np.random.default_rng(0)
        data = {"t": rng.exponential(2, 40), "g": np.arange(40) % 2}
        fit = gradcli.fit(likelihood="log(k) - k*t", data=data, values={"k": 1}, bootstrap=60)
        assert fit.bootstrap.estimates["k"].error == pytest.approx(fit.estimates["k"].error, rel=0.5)
        fit = gradcli.fit("t ~ m[g]", data, jackknife=True)
        assert fit.jackknife.estimates["m[0]"].error == pytest.approx(fit.estimates["m[0]"].error, rel=0.5)

    def test_the_command(self, run):
        words = (
            "fit",
            "y ~ a + b*x",
            f"x={LINE['x']}",
            f"y={LINE['y']}",
            "--bootstrap",
            "500",
            "--jackknife",
            "--seed",
            "2",
        )
        out = run(*words).out
        assert out == run(*words).out
        assert "\nbootstrap  bias" in out
        assert "\njackknife  bias" in out
        told = json.loads(run(*words, "--json").out)
        assert told["bootstrap"]["samples"] == 500
        assert set(told["bootstrap"]["estimates"]["a"]) == {"bias", "error", "low", "high"}


class TestProbabilities:
    def test_least_squares(self):
        # R: coef(summary(lm(stack.loss ~ Air.Flow + Water.Temp + Acid.Conc., stackloss)))[, 4]
        fit = gradcli.fit("lost ~ a + b*air + c*water + d*acid", STACKLOSS)
        p = [estimate.p for estimate in fit.estimates.values()]
        assert p == pytest.approx([3.75030683e-03, 5.79902472e-05, 2.63005440e-03, 3.44046097e-01], rel=1e-7)

    def test_other_families_take_the_normal_distribution(self):
        data = {"x": [0, 1, 2, 3, 4], "n": [2, 3, 6, 7, 8]}
        for estimate in gradcli.fit("n ~ exp(a + b*x)", data, family="poisson").estimates.values():
            assert estimate.p == pytest.approx(math.erfc(abs(estimate.t) / math.sqrt(2)))

    def test_what_has_none(self, run):
        fit = gradcli.fit("y ~ a + b*x", LINE, {"a": 0}, fix="a")
        assert math.isnan(fit.estimates["a"].p)
        out = run("fit", "y ~ a + b*x", f"x={LINE['x']}", f"y={LINE['y']}", "a=0", "--fix", "a").out
        assert out.splitlines()[0].split()[:5] == ["parameter", "estimate", "error", "t", "p"]
        assert out.splitlines()[1].split() == ["a", "0", "fixed"]


def test_a_bootstrap_is_bounded(run):
    done = run("fit", "y ~ a", "y=[1,2,4]", "--bootstrap", str(10**30))
    assert done.status == 2
    assert "the bootstrap has too many samples" in done.err


class TestCrossValidation:
    @pytest.mark.parametrize("options", [{"bootstrap": 9}, {"jackknife": True}, {"cross_validate": 3}])
    def test_solutions_of_differential_equations_are_not_resampled(self, options):
        # Without its first row a solution began at another time, and its initial value was that of that time.
        data = {"t": [0, 1, 2, 3], "y": [10, 6, 3.5, 2.2]}
        with pytest.raises(UsageError, match="not for differential equations"):
            gradcli.fit("x' = -k*x; y ~ x", data, {"x(0)": 10, "k": 0.5}, **options)

    def test_leaving_out_each_row_of_a_linear_model(self):
        # The error of a row that is left out is its residual over 1 less its leverage.
        fit = gradcli.fit("lost ~ a + b*air + c*water + d*acid", STACKLOSS, cross_validate=21)
        with open(STACKLOSS, newline="") as stream:
            table = np.array([[float(field) for field in row.values()] for row in csv.DictReader(stream)])
            stream.seek(0)
            names = next(csv.reader(stream))
        y = table[:, names.index("lost")]
        x = np.column_stack([np.ones(21), *(table[:, names.index(name)] for name in ("air", "water", "acid"))])
        hat = x @ np.linalg.solve(x.T @ x, x.T)
        errors = (y - hat @ y) / (1 - np.diagonal(hat))
        found = fit.cross_validation
        assert found.folds == 21
        assert found.rmse == pytest.approx(math.sqrt(np.square(errors).mean()), rel=1e-8)
        assert found.mae == pytest.approx(np.abs(errors).mean(), rel=1e-8)
        about_mean = (y - y.mean()) * 21 / 20
        assert found.r2 == pytest.approx(1 - np.square(errors).sum() / np.square(about_mean).sum(), rel=1e-8)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("model", "options"),
        [
            ("y ~ a*exp(-k*x)", {}),
            ("y ~ a[g]*exp(-k*x)", {}),
            ("y ~ a*exp(-k*x)", {"family": "poisson"}),
            ("y ~ a*exp(-k*x)", {"family": "gamma"}),
            ("y ~ a[g]*exp(-k*x)", {"family": "gamma"}),
        ],
    )
    def test_parts_are_predicted_by_fits_of_the_others(self, model, options):
        x = np.tile([0.0, 1, 2, 3, 4, 5], 2)
        y = np.array([90.0, 61, 36, 23, 13, 9, 105, 70, 41, 27, 16, 10])
        data = {"x": x, "y": y, "g": ["u"] * 6 + ["v"] * 6}
        found = gradcli.fit(model, data, cross_validate=4, seed=3, **options).cross_validation
        assert found.failed == 0
        errors = []
        for part in np.array_split(np.random.default_rng(3).permutation(12), 4):
            rest = np.setdiff1d(np.arange(12), part)
            some = {"x": x[rest], "y": y[rest], "g": [data["g"][i] for i in rest]}
            values = {name: each.value for name, each in gradcli.fit(model, some, **options).estimates.items()}
            for i in part:
                factor = values[f"a[{data['g'][i]}]"] if "[" in model else values["a"]
                errors.append(y[i] - factor * math.exp(-values["k"] * x[i]))
        assert found.rmse == pytest.approx(math.sqrt(np.square(errors).mean()), rel=1e-5)

    def test_whole_clusters_are_predicted(self, run):
        data = {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": [1, 2, 2, 4, 6, 5, 7, 9], "g": [1, 1, 2, 2, 3, 3, 4, 4]}
        fit = gradcli.fit("y ~ a + b*x", data, errors="cluster:g", cross_validate=4)
        assert fit.cross_validation.folds == 4
        words = ("fit", "y ~ a + b*x", f"x={data['x']}", f"y={data['y']}", "--cross-validate", "4")
        assert "\npredicted in 4 parts" in run(*words).out
        assert json.loads(run(*words, "--json").out)["cross_validation"]["failed"] == 0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"cross_validate": 1}, "at least 2 folds"),
            ({"cross_validate": 9}, "there are 6 rows, fewer than 9 folds"),
            ({"cross_validate": 3, "family": "weibull"}, "the family weibull has no model of the mean"),
            ({"cross_validate": 3, "by": "x"}, "--cross-validate is for one fit"),
            ({"cross_validate": 3, "x_sigma": {"x": 0.1}}, "--cross-validate is not for errors of the predictors"),
        ],
    )
    def test_what_does_not_fit_together(self, options, message):
        with pytest.raises(UsageError, match=message):
            gradcli.fit("y ~ a + b*x", LINE, **options)
