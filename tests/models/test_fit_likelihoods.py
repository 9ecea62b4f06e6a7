"""Tests `gradcli fit --likelihood`, the families with parameters of their own, `--weights` and `--errors`, beside R."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, EvaluationError, UsageError

STACKLOSS = str(Path(__file__).parents[2] / "examples" / "data" / "stackloss.csv")
CLOTTING = {"u": [5, 10, 15, 20, 30, 40, 60, 80, 100], "y": [118, 58, 42, 35, 27, 25, 21, 19, 18]}
# survival::lung, the first 30 rows.
LUNG = {
    "time": [306, 455, 1010, 210, 883, 1022, 310, 361, 218, 166, 170, 654, 728, 71, 567, 144, 613, 707, 61, 88, 301, 81,
             624, 371, 394, 520, 574, 118, 390, 12],
    "status": [2, 2, 1, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
    "age": [74, 68, 56, 57, 60, 74, 68, 71, 53, 61, 57, 68, 68, 60, 57, 67, 70, 63, 56, 57, 67, 49, 50, 58, 72, 70, 60, 70,
            53, 74],
}  # fmt: skip
SALE = {"x": [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "n": [3, 0, 5, 1, 8, 2, 4, 11, 31, 9, 6, 14],
        "g": [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]}  # fmt: skip

# The numbers of R; the calls stand in the tests.
R = {
    "nb": [0.84839025796, 0.93885199422, 3.5983951584, -32.563452297, 71.126904593, 13.236052281, 0.36500532693,
           0.25206427559, 2.33646637],
    "weibull": [5.4558411813, 0.010026030078, 0.71896042776, -207.80820764, 1.1476742496, 0.0180715833, 0.14811490386],
    "lognormal": [5.1758394192, 0.0075616592907, 0.98610966774, -211.70012014, 1.5384238895, 0.024277322776,
                  0.12909944487],
    "censored": [5.3208778823, 0.012669672777, 0.77908765185, -196.67841087, 1.2843923399, 0.020281195537,
                 0.15526672109, 1.4289552658, 0.022401071714, 0.16000573221],
    "cl": [1.1459999879, 2.1034817367],
    "pois": [0.35362049555, 0.26713048374],
    "poiscl": [0.21900876916, 0.19483746677],
}  # fmt: skip


def numbers(fit, member="value"):
    return [getattr(estimate, member) for estimate in fit.estimates.values()]


class TestFamilies:
    def test_gamma(self):
        # R: m <- glm(y ~ log(u), family=Gamma); coef(m); MASS::gamma.shape(m, eps.max=1e-12); deviance(m); the errors of
        # numDeriv::hessian of the log-likelihood of coefficients and shape.
        fit = gradcli.fit("y ~ 1/(a + b*log(u))", CLOTTING, family="gamma")
        assert fit.converged
        assert numbers(fit) == pytest.approx([-0.01655438173, 0.01534311491, 538.1315417], rel=1e-8)
        assert numbers(fit, "error") == pytest.approx([8.084671e-04, 3.616858e-04, 253.5966], rel=2e-5)
        assert fit.deviance == pytest.approx(0.01672971518, rel=1e-8)
        assert math.isnan(fit.rss)
        # R: 1 - deviance/null.deviance
        assert fit.r2 == pytest.approx(0.99523753413, rel=1e-8)

    def test_negative_binomial(self):
        # R: m <- glm.nb(n ~ x, control=glm.control(epsilon=1e-14)); coef(m); m$theta; logLik(m); AIC(m); deviance(m)
        fit = gradcli.fit("n ~ exp(a + b*x)", SALE, family="negbinomial")
        assert numbers(fit) == pytest.approx(R["nb"][:3], rel=1e-7)
        assert (fit.loglik, fit.aic, fit.deviance) == pytest.approx(R["nb"][3:6], rel=1e-8)
        assert numbers(fit, "error") == pytest.approx(R["nb"][6:], rel=2e-5)

    def test_counts_with_extra_zeros(self):
        # R: pscl::zeroinfl(y ~ x | 1, control=zeroinfl.control(reltol=1e-14)); zero is plogis of its intercept
        data = {
            "y": [0, 0, 3, 1, 0, 4, 2, 0, 0, 5, 7, 0, 6, 3, 0, 8, 9, 0, 4, 7],
            "x": [x for x in range(1, 6) for _ in range(4)],
        }
        fit = gradcli.fit("y ~ exp(a + b*x)", data, family="zipoisson")
        assert fit.converged
        assert numbers(fit) == pytest.approx([0.574438850, 0.282755102, 0.376748124], rel=1e-7)
        assert numbers(fit, "error")[:2] == pytest.approx([0.439308586, 0.108519699], rel=1e-5)
        assert fit.loglik == pytest.approx(-37.032741382, abs=1e-8)
        offset = gradcli.fit("y ~ exp(a)", data, family="zipoisson", offset="b0*x", b0=[0.25] * 20)
        written = gradcli.fit("y ~ exp(a + 0.25*x)", data, family="zipoisson")
        assert numbers(offset) == pytest.approx(numbers(written))

    @pytest.mark.slow
    def test_counts_without_extra_zeros(self):
        fit = gradcli.fit("y ~ exp(a)", {"y": [0, 1, 1, 1, 2, 2, 1, 0, 1, 2]}, family="zipoisson")
        assert any("no more zeros than those of --family poisson" in warning for warning in fit.warnings)
        fit = gradcli.fit("y ~ exp(a)", {"y": [3, 4, 2, 1, 2, 3, 4, 5]}, family="zipoisson")
        assert not fit.converged

    @pytest.mark.parametrize("family", ["weibull", "lognormal"])
    def test_survival_times(self, family):
        # R: m <- survreg(Surv(time) ~ age, dist=…, control=list(rel.tolerance=1e-14)); coef(m); m$scale; logLik(m);
        # sqrt(diag(vcov(m)))
        data = {name: LUNG[name] for name in ("time", "age")}
        scale = "1/shape" if family == "weibull" else "sigma"
        fit = gradcli.fit("time ~ exp(a + b*age)", data, family=family, derive={"scale": scale, "log": f"log({scale})"})
        a, b, value, loglik, *errors = R[family]
        assert numbers(fit)[:2] == pytest.approx([a, b], rel=1e-7)
        assert fit.derived["scale"].value == pytest.approx(value, rel=1e-7)
        assert fit.loglik == pytest.approx(loglik, rel=1e-8)
        assert [*numbers(fit, "error")[:2], fit.derived["log"].error] == pytest.approx(errors, rel=1e-5)

    def test_student(self):
        # R: optim of -sum(dt((lost - a - b*air)/scale, dof, log=TRUE) - log(scale)) from c(-44, 1, 2, 3), and the Hessian
        # there in 40 digits by mpmath.
        fit = gradcli.fit("lost ~ a + b*air", STACKLOSS, family="student")
        found = {name: (e.value, e.error) for name, e in fit.estimates.items()}
        assert found["a"] == pytest.approx((-41.9128, 3.11167), rel=1e-5)
        assert found["scale"] == pytest.approx((1.526178, 0.584652), rel=1e-5)
        assert found["dof"] == pytest.approx((1.462513, 0.770913), rel=1e-5)
        assert fit.loglik == pytest.approx(-54.43041908, rel=1e-8)

    @pytest.mark.cases(1)
    @pytest.mark.parametrize(
        ("family", "density", "start"),
        [
            ("gamma", "shape*log(shape/m) + (shape-1)*log(y) - shape*y/m - lgamma(shape)", {"shape": 3}),
            ("beta", "lgamma(phi) - lgamma(m*phi) - lgamma((1-m)*phi) + (m*phi-1)*log(y) + ((1-m)*phi-1)*log(1-y)", {"phi": 9}),
            ("lognormal", "-log(y*sigma*sqrt(2*pi)) - 0.5*(log(y/m)/sigma)**2", {"sigma": 0.5}),
        ],
    )  # fmt: skip
    def test_a_family_is_its_log_density(self, family, density, start):
        data = {"x": [0, 1, 2, 3, 4, 5, 6, 7], "y": [0.12, 0.3, 0.21, 0.34, 0.52, 0.4, 0.71, 0.63]}
        named = gradcli.fit("y ~ 1/(1 + exp(-a - b*x))", data, family=family)
        written = gradcli.fit(
            likelihood=f"m = 1/(1 + exp(-a - b*x)); {density}", data=data, values={"a": -2, "b": 0.4, **start}
        )
        assert named.converged
        assert written.converged
        for name, estimate in named.estimates.items():
            assert written.estimates[name][:2] == pytest.approx(estimate[:2], rel=1e-6)
        assert written.loglik == pytest.approx(named.loglik, rel=1e-10)

    def test_a_parameter_that_is_fixed(self):
        # With shape 1 a gamma and a Weibull distribution are exponential ones.
        data = {name: LUNG[name] for name in ("time", "age")}
        found = [
            gradcli.fit("time ~ exp(a + b*age)", data, {"shape": 1}, family=family, fix="shape")
            for family in ("gamma", "weibull")
        ]
        assert numbers(found[0])[:2] == pytest.approx(numbers(found[1])[:2], rel=1e-6)
        assert found[0].estimates["shape"].fixed
        assert found[0].dof == len(LUNG["time"]) - 2

    def test_an_offset_is_a_factor_of_the_mean(self):
        with_offset = gradcli.fit("n ~ exp(a)", SALE, family="negbinomial", offset="0.5*x")
        written = gradcli.fit("n ~ exp(a + 0.5*x)", SALE, family="negbinomial")
        assert numbers(with_offset) == pytest.approx(numbers(written), rel=1e-8)

    def test_predictions_are_means(self, tmp_path):
        path = tmp_path / "means.csv"
        data = {"x": [0, 1, 2, 3, 4], "y": [1.1, 2.3, 2.9, 6.1, math.nan]}
        fit = gradcli.fit("y ~ exp(a + b*x)", data, family="gamma", predict=str(path))
        rows = [*csv.DictReader(path.read_text().splitlines())]
        assert len(rows) == 5
        assert [*rows[0]] == ["x", "value", "error", "low", "high"]
        a, b = numbers(fit)[:2]
        assert float(rows[4]["value"]) == pytest.approx(math.exp(a + 4 * b))

    def test_groups(self, run):
        done = run(
            "fit", "n ~ exp(a)", f"n={SALE['n']}", f"x={SALE['x']}", "--by", "x", "--family", "negbinomial", "-q"
        )
        rows = [*csv.DictReader(io.StringIO(done.out))]
        assert float(rows[1]["a"]) == pytest.approx(math.log(25 / 4))
        assert float(rows[1]["theta"]) > 0


class TestLikelihoods:
    @pytest.mark.parametrize("errors", ["information", "robust"])
    def test_censored_times(self, errors):
        # R: m <- survreg(Surv(time, status) ~ age, dist="weibull", robust=…, control=list(rel.tolerance=1e-14))
        likelihood = "m = exp(a + b*age); z = (time/m)^(1/s); where(status == 2, -log(s*time) + log(z) - z, -z)"
        fit = gradcli.fit(likelihood=likelihood, data=LUNG, values={"a": 6, "b": 0, "s": 1}, errors=errors)
        a, b, scale, loglik, *errors_of_r = R["censored"]
        assert numbers(fit) == pytest.approx([a, b, scale], rel=1e-7)
        assert fit.loglik == pytest.approx(loglik, rel=1e-8)
        of_log = [*numbers(fit, "error")[:2], numbers(fit, "error")[2] / scale]
        assert of_log == pytest.approx(errors_of_r[:3] if errors == "information" else errors_of_r[3:], rel=1e-5)

    def test_starts_are_found(self):
        data = {"y": [1.2, 1.9, 4.1, 5.2, 11, 14]}
        fit = gradcli.fit(likelihood="-log(s) - 0.5*((y - m)/s)**2", data=data, profile=True)
        mean, deviation = np.mean(data["y"]), np.std(data["y"])
        assert fit.estimates["m"].value == pytest.approx(mean)
        assert fit.estimates["s"].value == pytest.approx(deviation)
        # The profile of m: n log(1 + (m - mean)²/s²) is the quantile of chi-square.
        width = deviation * math.sqrt(math.exp(3.8414588 / 6) - 1)
        assert fit.estimates["m"][3:5] == pytest.approx((mean - width, mean + width), rel=1e-6)

    def test_the_command(self, run):
        done = run("fit", "--likelihood", "log(k) - k*t", "t=[1,2,3,6]", "--json")
        told = json.loads(done.out)
        assert told["model"] == "log(k) - k*t"
        assert told["estimates"]["k"]["value"] == pytest.approx(1 / 3)
        assert told["estimates"]["k"]["error"] == pytest.approx(1 / 6)
        assert told["rss"] == "NaN"
        table = run("fit", "--likelihood", "log(k) - k*t", "t=[1,2,3,6]").out
        assert "residual" not in table
        assert "log-likelihood" in table

    def test_weights_are_factors(self):
        weighted = gradcli.fit(likelihood="log(k) - k*t", data={"t": [1, 2, 5]}, weights=[1, 3, 2])
        repeated = gradcli.fit(likelihood="log(k) - k*t", data={"t": [1, 2, 2, 2, 5, 5]})
        assert weighted.estimates["k"][:2] == pytest.approx(repeated.estimates["k"][:2])
        assert weighted.loglik == pytest.approx(repeated.loglik)

    def test_no_maximum(self, run):
        done = run(
            "fit", "--likelihood", "p = 1/(1 + exp(-(a + b*x))); where(y > 0.5, log(p), log(1 - p))", "x=[1,2,3,4,5,6]",
            "y=[0,0,0,1,1,1]", "a=0", "b=0",
        )  # fmt: skip
        assert done.status == 1
        assert "the likelihood rises without end with a and b" in done.err
        counts = gradcli.fit("n ~ exp(a)", {"n": [3, 4, 3, 4, 3, 4]}, family="negbinomial")
        assert not counts.converged
        assert any("vary no more than those of --family poisson" in warning for warning in counts.warnings)

    def test_what_the_data_do_not_determine(self):
        fit = gradcli.fit(likelihood="-0.5*(y - a - b - c*x)**2", data={"x": [1, 2, 3, 4], "y": [1, 3, 2, 5]})
        assert not fit.converged
        assert fit.undetermined == ["a - b"]


class TestErrors:
    def test_least_squares(self):
        # R: m <- lm(stack.loss ~ Air.Flow + Water.Temp, stackloss); sqrt(diag(sandwich::vcovHC(m, "HC1")))
        fit = gradcli.fit("lost ~ a + b*air + c*water", STACKLOSS, errors="robust")
        assert numbers(fit, "error") == pytest.approx([4.3349861317, 0.1800643284, 0.5007281207], rel=1e-8)
        assert fit.errors == "robust"
        assert fit.clusters is None

    def test_clusters(self):
        # R: sqrt(diag(sandwich::vcovCL(lm(n ~ x), ~ g)))
        fit = gradcli.fit("n ~ a + b*x", SALE, errors="cluster:g")
        assert numbers(fit, "error") == pytest.approx(R["cl"], rel=1e-7)
        assert fit.clusters == 6
        # Student's t with 5 degrees of freedom
        assert fit.estimates["b"].high - fit.estimates["b"].value == pytest.approx(
            2.570581836 * fit.estimates["b"].error
        )
        assert "there are only 6 clusters: the standard errors are too small" in fit.warnings

    def test_counts(self):
        # R: m <- glm(n ~ x, poisson); sqrt(diag(sandwich::sandwich(m))); sqrt(diag(sandwich::vcovCL(m, ~ g)))
        for errors, reference in (("robust", R["pois"]), ("cluster:g", R["poiscl"])):
            fit = gradcli.fit("n ~ exp(a + b*x)", SALE, family="poisson", errors=errors)
            assert numbers(fit, "error") == pytest.approx(reference, rel=1e-6)

    def test_text_clusters_by_groups(self, run, tmp_path):
        path = tmp_path / "data.csv"
        rows = [f"{half},{'abc'[i % 3]},{i},{(i * 7) % 5 + i}" for half in "pq" for i in range(9)]
        path.write_text("half,who,x,y\n" + "\n".join(rows) + "\n")
        words = ("fit", "y ~ a + b*x", str(path), "--errors", "cluster:who", "--by", "half", "--json", "-q")
        told = [json.loads(line) for line in run(*words).out.splitlines()]
        assert [each["clusters"] for each in told] == [3, 3]
        assert told[0]["estimates"] == told[1]["estimates"]

    def test_one_cluster(self):
        with pytest.raises(EvaluationError, match="there is one cluster"):
            gradcli.fit("y ~ a + b*x", {"x": [1, 2, 3], "y": [1, 2, 4], "g": [1, 1, 1]}, errors="cluster:g")

    def test_as_many_parameters_as_clusters(self):
        fit = gradcli.fit("y ~ a + b*x", {"x": [1, 2, 3, 4], "y": [1, 2, 4, 4], "g": [1, 1, 2, 2]}, errors="cluster:g")
        assert "there are 2 clusters for 2 parameters: some combination of these has the error 0" in fit.warnings


class TestWeights:
    def test_least_squares(self):
        # R: m <- lm(stack.loss ~ Air.Flow, stackloss, weights=1:21); coef(summary(m)); logLik(m)
        fit = gradcli.fit("lost ~ a + b*air", STACKLOSS, weights=range(1, 22))
        assert fit.estimates["b"][:3] == pytest.approx((0.6831353492, 0.1145303923, 5.964664361), rel=1e-8)
        assert fit.loglik == pytest.approx(-58.36724654, rel=1e-8)

    def test_counts(self):
        weighted = gradcli.fit(
            "n ~ exp(a + b*x)", {"x": [0, 1, 2], "n": [3, 5, 9]}, family="poisson", weights=[1, 2, 1]
        )
        repeated = gradcli.fit("n ~ exp(a + b*x)", {"x": [0, 1, 1, 2], "n": [3, 5, 5, 9]}, family="poisson")
        assert numbers(weighted) == pytest.approx(numbers(repeated))
        assert numbers(weighted, "error") == pytest.approx(numbers(repeated, "error"))
        assert weighted.deviance == pytest.approx(repeated.deviance)


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"likelihood": "y ~ a"}, UsageError, "a likelihood has no '~'"),
        ({"likelihood": "a*y", "response": "y"}, UsageError, "a likelihood reads its response itself"),
        ({"likelihood": "a*y", "offset": "x"}, UsageError, "a likelihood has no link"),
        ({"likelihood": "a*y", "sigma": 1}, UsageError, "a likelihood has no standard deviation"),
        ({"likelihood": "a*y", "family": "gamma"}, UsageError, "instead of a model and a family"),
        ({"likelihood": "-a**2"}, BindingError, "the likelihood reads no column"),
        ({"likelihood": "-(y-a)**2", "predict": "p.csv"}, UsageError, "a likelihood predicts nothing"),
        ({"model": "y ~ a", "family": "gamma", "residuals": "r.csv"}, UsageError, "have no residuals"),
        ({"model": "y ~ a", "family": "gama"}, UsageError, "there is no family 'gama'"),
        ({"model": "y ~ a", "family": "log density"}, UsageError, "there is no family"),
        ({"model": "x ~ a", "family": "gamma"}, BindingError, "'x' is 0 in row 1, and a response of the family gamma is above 0"),
        ({"model": "y ~ a", "family": "beta"}, BindingError, "between 0 and 1"),
        ({"model": "y/2 ~ a", "family": "negbinomial"}, BindingError, "a whole number from 0 on"),
        ({"model": "y/2 ~ a", "family": "zipoisson"}, BindingError, "a whole number from 0 on"),
        ({"model": "y ~ a*shape", "family": "gamma"}, BindingError, "'shape' is a name in the model"),
        ({"model": "y ~ a", "weights": 1, "sigma": 1}, UsageError, "both weight the rows"),
        ({"model": "y ~ a", "weights": "x"}, BindingError, "the weight is 0 in row 1"),
        ({"model": "y/4 ~ a", "weights": "y", "family": "binomial"}, UsageError, "are their trials"),
        ({"model": "y ~ a", "errors": "hc3"}, UsageError, "there is no kind of standard error"),
        ({"model": "y ~ a", "errors": "cluster:z"}, BindingError, "the data have no column 'z' of clusters"),
        ({"model": "y ~ a", "errors": "robust", "profile": True}, UsageError, "no robust errors"),
        ({"model": "y ~ a", "errors": "robust", "loss": "huber"}, UsageError, "has errors of its own"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together(options, error, message):
    data = {"x": [0, 1, 2], "y": [1, 2, 4]}
    with pytest.raises(error) as raised:
        gradcli.fit(data=data, **options)
    assert message in str(raised.value)


def test_the_hint_for_residuals_of_a_likelihood(tmp_path):
    data, path = {"y": [1, 2, 4]}, str(tmp_path / "r.csv")
    for options, hint in (
        ({"likelihood": "-(y - a)**2"}, "leave out --residuals"),
        ({"model": "y ~ a", "family": "gamma"}, "leave out --residuals; --predict writes the fitted means"),
    ):
        with pytest.raises(UsageError) as caught:
            gradcli.fit(data=data, residuals=path, **options)
        assert caught.value.hint == hint
