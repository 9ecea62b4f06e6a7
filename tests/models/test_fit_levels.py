"""Tests parameters of `gradcli fit` that have a value for each level of a column, as `V[state]`, beside R."""

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
# R: InsectSprays
SPRAYS = {
    "count": [10, 7, 20, 14, 14, 12, 10, 23, 17, 20, 14, 13, 11, 17, 21, 11, 16, 14, 17, 17, 19, 21, 7, 13, 0, 1, 7, 2, 3, 1,
              2, 1, 3, 0, 1, 4, 3, 5, 12, 6, 4, 3, 5, 5, 5, 5, 2, 4, 3, 5, 3, 5, 3, 6, 1, 1, 3, 2, 6, 4, 11, 9, 15, 22, 15,
              16, 13, 10, 26, 26, 24, 13],
    "spray": [letter for letter in "ABCDEF" for _ in range(12)],
}  # fmt: skip


def told(fit):
    return {name: (estimate.value, estimate.error) for name, estimate in fit.estimates.items()}


class TestBesideR:
    def test_a_shared_parameter(self):
        # R: nls(rate ~ V[state]*conc/(K + conc), Puromycin, start=list(V=c(210, 160), K=.06))
        found = told(gradcli.fit("rate ~ V[state]*conc/(K + conc)", PUROMYCIN))
        assert found["V[treated]"] == pytest.approx((208.6301, 5.803995), rel=1e-6)
        assert found["V[untreated]"] == pytest.approx((166.6041, 5.807431), rel=1e-6)
        assert found["K"] == pytest.approx((0.05797190, 0.005910181), rel=3e-6)

    def test_all_parameters_by_level_are_the_fits_of_groups(self):
        together = gradcli.fit(
            "rate ~ V[state]*conc/(K[state] + conc)", PUROMYCIN, derive={"r": "V[treated]/K[treated]"}
        )
        apart = gradcli.fit("rate ~ V*conc/(K + conc)", PUROMYCIN, by="state")
        for fit in apart:
            for name, estimate in fit.estimates.items():
                assert together.estimates[f"{name}[{fit.group}]"].value == pytest.approx(estimate.value, rel=1e-8)
        assert together.rss == pytest.approx(sum(fit.rss for fit in apart))
        # R: coef(summary(nls(rate ~ V[state]*conc/(K[state] + conc), …)))
        assert together.estimates["V[treated]"].error == pytest.approx(6.608092789, rel=2e-6)
        assert together.derived["r"].value == pytest.approx(3316.898, rel=1e-6)

    @pytest.mark.parametrize("levels", [("A+", "A-"), ("a b", "a-b"), ("x²", "x?")])
    def test_quantities_of_levels_that_differ_in_signs_alone(self, levels):
        one, other = levels
        fit = gradcli.fit(
            "y ~ V[g] + W_*x + 0*V_A__",
            {"g": [one, one, other, other], "y": [3.0, 3.0, 1.0, 1.5], "x": [1.0, -1.0, 1.0, -1.0]},
            {"V_A__": 7.0},
            fix=["V_A__"],
            derive={"d": f"V[{one}] - V[{other}]"},
        )
        assert fit.derived["d"].value == pytest.approx(1.75)

    @pytest.mark.parametrize("family", ["poisson", "negbinomial"])
    def test_families(self, family):
        # R: glm(count ~ 0 + spray, poisson, InsectSprays)
        fit = gradcli.fit("count ~ exp(a[spray])", SPRAYS, family=family)
        found = told(fit)
        assert found["a[C]"][0] == pytest.approx(0.7339691751, rel=1e-6)
        if family == "poisson":
            assert found["a[C]"][1] == pytest.approx(0.19999987421, rel=2e-6)
            assert fit.loglik == pytest.approx(-182.294604, rel=1e-8)
            assert fit.dof == 66

    def test_linear_models(self):
        # R: a <- anova(lm(count ~ spray, InsectSprays)); a$"Sum Sq"[2]; errors sqrt(a$"Mean Sq"[2]/12)
        fit = gradcli.fit("count ~ m[spray]", SPRAYS)
        assert fit.rss == pytest.approx(1015.1666667)
        assert fit.estimates["m[A]"][:2] == pytest.approx((14.5, math.sqrt(1015.1666667 / 66 / 12)))


class TestSettings:
    def test_starts_bounds_and_fixed_levels(self, run):
        done = run(
            "fit", "rate ~ V[state]*conc/(K + conc)", PUROMYCIN, "V[treated]=200", "--fix", "V[treated]", "--bounds",
            "K=0:0.05", "--json",
        )  # fmt: skip
        found = json.loads(done.out)["estimates"]
        assert found["V[treated]"]["fixed"] is True
        assert found["V[treated]"]["value"] == 200
        assert found["K"]["value"] == 0.05
        assert found["V[untreated]"]["fixed"] is False

    def test_a_start_of_all_levels(self):
        fit = gradcli.fit("rate ~ V[state]*conc/(K + conc)", PUROMYCIN, {"V": 100, "K": 0.1})
        assert fit.converged
        assert fit.starts.tried == 1

    def test_one_level_fixed_determines_a_sum(self):
        fit = gradcli.fit("count ~ c + a[spray]", SPRAYS, {"a[A]": 0}, fix="a[A]")
        assert fit.estimates["c"].value == pytest.approx(14.5)
        # R: coef(lm(count ~ spray, InsectSprays))
        assert fit.estimates["a[C]"].value == pytest.approx(-12.41666667)
        assert fit.estimates["a[C]"].error == pytest.approx(1.6011, rel=1e-4)

    def test_whole_numbers_are_levels(self):
        fit = gradcli.fit("y ~ a[g]", {"y": [1, 2, 3, 5], "g": [7, 7, 8, 8]})
        assert [*fit.estimates] == ["a[7]", "a[8]"]
        fit = gradcli.fit("y ~ a[g]", {"y": [1, 2, 3, 5], "g": [7.0, 7.0, 8.0, 8.0]})
        assert [*fit.estimates] == ["a[7]", "a[8]"]
        fit = gradcli.fit("y ~ a[g]", {"y": [1, 2, 3, 5], "g": ["v1.0", "v1.0", "v2.0", "v2.0"]})
        assert [*fit.estimates] == ["a[v1.0]", "a[v2.0]"]

    @pytest.mark.slow
    def test_profiles_and_robust_errors(self):
        fit = gradcli.fit("count ~ exp(a[spray])", SPRAYS, family="poisson", profile=True, derive={"d": "a[B] - a[A]"})
        # R: confint(glm(count ~ spray, poisson, InsectSprays))["sprayB", ]
        assert fit.derived["d"][2:] == pytest.approx((-0.1514, 0.2636), abs=5e-4)
        robust = gradcli.fit("count ~ m[spray]", SPRAYS, errors="robust")
        assert robust.estimates["m[A]"].error == pytest.approx(
            math.sqrt(np.square(np.array(SPRAYS["count"][:12]) - 14.5).sum()) / 12 * math.sqrt(72 / 66)
        )

    def test_residuals(self, tmp_path):
        path = tmp_path / "residuals.csv"
        gradcli.fit("count ~ m[spray]", SPRAYS, residuals=str(path))
        rows = [*csv.DictReader(path.read_text().splitlines())]
        assert float(rows[0]["value"]) == pytest.approx(14.5)
        assert float(rows[0]["leverage"]) == pytest.approx(1 / 12)

    def test_rows_without_a_level_are_left_out(self, run, tmp_path):
        path = tmp_path / "data.csv"
        path.write_text("g,y\na,1\na,2\n,50\nb,3\nb,4\n")
        done = run("fit", "y ~ m[g]", str(path), "--json")
        found = json.loads(done.out)
        assert found["n"] == 4
        assert found["left_out"] == 1
        assert found["estimates"]["m[a]"]["value"] == pytest.approx(1.5)

    def test_many_rows_and_levels(self):
        rng = np.random.default_rng(0)
        group, x = rng.integers(0, 50, 20_000), rng.random(20_000)
        y = np.exp(0.02 * group + 0.7 * x) + rng.normal(0, 0.1, 20_000)
        fit = gradcli.fit("y ~ exp(a[g] + b*x)", {"g": group, "x": x, "y": y})
        assert fit.converged
        assert len(fit.estimates) == 51
        assert fit.estimates["b"].value == pytest.approx(0.7, abs=0.01)
        assert fit.estimates["a[49]"].value == pytest.approx(0.98, abs=0.01)


class TestProblems:
    def test_a_sum_that_is_not_determined(self):
        fit = gradcli.fit("count ~ c + a[spray]", SPRAYS)
        assert not fit.converged
        assert fit.undetermined

    @pytest.mark.parametrize(
        ("model", "options", "error", "message"),
        [
            ("count ~ a[spray] + a", {}, UsageError, "'a' has a value for each 'spray', and stands here without"),
            ("count ~ a[spray] + a[count]", {}, UsageError, "'a' has values by 'spray', and by 'count'"),
            ("count ~ a[spry]", {}, UsageError, "'spry', by which 'a' has values, is no column of the data"),
            ("count ~ a[spray]", {"by": "spray"}, UsageError, "--by fits groups apart"),
            ("count ~ a[spray]", {"values": {"a[Z]": 1}}, BindingError, "there is no 'a[Z]'"),
            ("count ~ a[spray]", {"fix": "a[B]"}, BindingError, "'a[B]' is to be fixed, and has no value"),
            ("count ~ a[spray]", {"predict": "p.csv"}, UsageError, "have no predictions"),
            ("count ~ log(a[spray])", {"values": {"a": -1}}, EvaluationError, "in row 1 of the data"),
            ("count ~ a[count]*b[count]", {"values": {"a": 1}, "fix": "a"}, None, ""),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_together(self, model, options, error, message):
        if error is None:
            assert gradcli.fit(model, SPRAYS, **options).estimates["b[7]"].value == pytest.approx(7)
            return
        with pytest.raises(error) as raised:
            gradcli.fit(model, SPRAYS, **options)
        assert message in str(raised.value)

    def test_differential_equations_have_no_families(self):
        model = "n' = -k*n\ny ~ n"
        data = {"t": [0, 1, 2], "y": [2, 1.2, 0.7]}
        for options in ({"family": "gamma"}, {"weights": 2}, {"errors": "robust"}):
            with pytest.raises(UsageError, match="is not for differential equations"):
                gradcli.fit(model, data, k=1, **options)


def test_brackets_around_a_parameter_with_levels_change_nothing():
    data = {"y": [1.0, 2, 4, 3, 5, 9], "g": ["a", "a", "a", "b", "b", "b"], "x": [1.0, 2, 3, 1, 2, 3]}
    plain = gradcli.fit("y ~ a[g] + b[g]*x", data)
    for model in ("y ~ (a[g]) + (b[g])*x", "y ~ ((a[g]) + ((b[(g)] )*x))", "y ~ -(-(a[ g ])) + (b)[g]*x"):
        found = gradcli.fit(model, data)
        assert [e.value for e in found.estimates.values()] == pytest.approx([e.value for e in plain.estimates.values()])
