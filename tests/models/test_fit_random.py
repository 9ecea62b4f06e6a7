"""Tests random effects in `gradcli fit`, beside R's nlme, lme4 and TMB, and beside quadrature."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, EvaluationError, ProgramSyntaxError, UsageError

# R: lme4::sleepstudy, published in G. Belenky et al., J. Sleep Res. 12 (2003) 1
SLEEP = {
    "Reaction": [249.56, 258.7047, 250.8006, 321.4398, 356.8519, 414.6901, 382.2038, 290.1486, 430.5853, 466.3535,
                 222.7339, 205.2658, 202.9778, 204.707, 207.7161, 215.9618, 213.6303, 217.7272, 224.2957, 237.3142,
                 199.0539, 194.3322, 234.32, 232.8416, 229.3074, 220.4579, 235.4208, 255.7511, 261.0125, 247.5153,
                 321.5426, 300.4002, 283.8565, 285.133, 285.7973, 297.5855, 280.2396, 318.2613, 305.3495, 354.0487,
                 287.6079, 285.0, 301.8206, 320.1153, 316.2773, 293.3187, 290.075, 334.8177, 293.7469, 371.5811,
                 234.8606, 242.8118, 272.9613, 309.7688, 317.4629, 309.9976, 454.1619, 346.8311, 330.3003, 253.8644,
                 283.8424, 289.555, 276.7693, 299.8097, 297.171, 338.1665, 332.0265, 348.8399, 333.36, 362.0428,
                 265.4731, 276.2012, 243.3647, 254.6723, 279.0244, 284.1912, 305.5248, 331.5229, 335.7469, 377.299,
                 241.6083, 273.9472, 254.4907, 270.8021, 251.4519, 254.6362, 245.4523, 235.311, 235.7541, 237.2466,
                 312.3666, 313.8058, 291.6112, 346.1222, 365.7324, 391.8385, 404.2601, 416.6923, 455.8643, 458.9167,
                 236.1032, 230.3167, 238.9256, 254.922, 250.7103, 269.7744, 281.5648, 308.102, 336.2806, 351.6451,
                 256.2968, 243.4543, 256.2046, 255.5271, 268.9165, 329.7247, 379.4445, 362.9184, 394.4872, 389.0527,
                 250.5265, 300.0576, 269.8939, 280.5891, 271.8274, 304.6336, 287.7466, 266.5955, 321.5418, 347.5655,
                 221.6771, 298.1939, 326.8785, 346.8555, 348.7402, 352.8287, 354.4266, 360.4326, 375.6406, 388.5417,
                 271.9235, 268.4369, 257.2424, 277.6566, 314.8222, 317.2135, 298.1353, 348.1229, 340.28, 366.5131,
                 225.264, 234.5235, 238.9008, 240.473, 267.5373, 344.1937, 281.1481, 347.5855, 365.163, 372.2288,
                 269.8804, 272.4428, 277.8989, 281.7895, 279.1705, 284.512, 259.2658, 304.6306, 350.7807, 369.4692,
                 269.4117, 273.474, 297.5968, 310.6316, 287.1726, 329.6076, 334.4818, 343.2199, 369.1417, 364.1236],
    "Days": [float(day) for _ in range(18) for day in range(10)],
    "Subject": [subject for subject in (308, 309, 310, 330, 331, 332, 333, 334, 335, 337, 349, 350, 351, 352, 369, 370,
                                        371, 372) for _ in range(10)],
}  # fmt: skip
# R: nlme::Machines, of O. L. Davies (ed.), The Design and Analysis of Industrial Experiments
MACHINES = {
    "score": [52.0, 52.8, 53.1, 51.8, 52.8, 53.1, 60.0, 60.2, 58.4, 51.1, 52.3, 50.3, 50.9, 51.8, 51.4, 46.4, 44.8, 49.2,
              62.1, 62.6, 64.0, 59.7, 60.0, 59.0, 68.6, 65.8, 69.7, 63.2, 62.8, 62.2, 64.8, 65.0, 65.4, 43.7, 44.2, 43.0,
              67.5, 67.2, 66.9, 61.5, 61.7, 62.3, 70.8, 70.6, 71.0, 64.1, 66.2, 64.0, 72.1, 72.0, 71.1, 62.0, 61.4, 60.5],
    "Worker": [worker for _ in range(3) for worker in range(1, 7) for _ in range(3)],
    "Machine": [machine for machine in "ABC" for _ in range(18)],
}  # fmt: skip
# R: Orange, of N. R. Draper and H. Smith, Applied Regression Analysis
ORANGE = {
    "circumference": [30, 58, 87, 115, 120, 142, 145, 33, 69, 111, 156, 172, 203, 203, 30, 51, 75, 108, 115, 139, 140,
                      32, 62, 112, 167, 179, 209, 214, 30, 49, 81, 125, 142, 174, 177],
    "age": [118, 484, 664, 1004, 1231, 1372, 1582] * 5,
    "Tree": [tree for tree in range(1, 6) for _ in range(7)],
}  # fmt: skip
LOGISTIC = "circumference ~ Asym/(1 + exp(-(age - xmid)/scal))"
# R: lme4::cbpp, of M. Lesnoff et al., Prev. Vet. Med. 64 (2004) 101
CBPP = {
    "herd": [1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 9, 9, 9, 9, 10, 10, 10,
             10, 11, 11, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15],
    "period": [1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 1, 2, 3, 4, 1, 2, 3,
               4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4],
    "incidence": [2, 3, 4, 0, 3, 1, 1, 8, 2, 0, 2, 2, 0, 2, 0, 5, 0, 0, 1, 3, 0, 0, 1, 8, 1, 3, 0, 12, 2, 0, 0, 0, 1, 1,
                  0, 2, 0, 5, 3, 1, 2, 1, 0, 0, 1, 2, 0, 0, 11, 0, 0, 0, 1, 1, 1, 0],
    "size": [14, 12, 9, 5, 22, 18, 21, 22, 16, 16, 20, 10, 10, 9, 6, 18, 25, 24, 4, 17, 17, 18, 20, 16, 10, 9, 5, 34, 9,
             6, 8, 6, 22, 22, 18, 22, 25, 27, 22, 22, 10, 8, 6, 5, 21, 24, 19, 23, 19, 2, 3, 2, 19, 15, 15, 15],
}  # fmt: skip
# R: lme4::Dyestuff2, of G. E. P. Box and G. C. Tiao, Bayesian Inference in Statistical Analysis
DYESTUFF2 = {
    "Yield": [7.298, 3.846, 2.434, 9.566, 7.99, 5.22, 6.556, 0.608, 11.788, -0.892, 0.11, 10.386, 13.434, 5.51, 8.166,
              2.212, 4.852, 7.092, 9.288, 4.98, 0.282, 9.014, 4.458, 9.446, 7.198, 1.722, 4.782, 8.106, 0.758, 3.758],
    "Batch": [batch for batch in "ABCDEF" for _ in range(5)],
}  # fmt: skip
# R: Indometh, of K. C. Kwan et al., J. Pharmacokin. Biopharm. 4 (1976) 255
INDOMETH = {
    "conc": [1.5, 0.94, 0.78, 0.48, 0.37, 0.19, 0.12, 0.11, 0.08, 0.07, 0.05, 2.03, 1.63, 0.71, 0.7, 0.64, 0.36, 0.32,
             0.2, 0.25, 0.12, 0.08, 2.72, 1.49, 1.16, 0.8, 0.8, 0.39, 0.22, 0.12, 0.11, 0.08, 0.08, 1.85, 1.39, 1.02,
             0.89, 0.59, 0.4, 0.16, 0.11, 0.1, 0.07, 0.07, 2.05, 1.04, 0.81, 0.39, 0.3, 0.23, 0.13, 0.11, 0.08, 0.1,
             0.06, 2.31, 1.44, 1.03, 0.84, 0.64, 0.42, 0.24, 0.17, 0.13, 0.1, 0.09],
    "time": [0.25, 0.5, 0.75, 1, 1.25, 2, 3, 4, 5, 6, 8] * 6,
    "Subject": [subject for subject in range(1, 7) for _ in range(11)],
}  # fmt: skip
# R: Theoph, of R. Upton, in A. J. Boeckmann, L. B. Sheiner and S. L. Beal, NONMEM Users Guide
THEOPH = {
    "Time": [0, 0.25, 0.57, 1.12, 2.02, 3.82, 5.1, 7.03, 9.05, 12.12, 24.37, 0, 0.27, 0.52, 1, 1.92, 3.5, 5.02, 7.03,
             9, 12, 24.3, 0, 0.27, 0.58, 1.02, 2.02, 3.62, 5.08, 7.07, 9, 12.15, 24.17, 0, 0.35, 0.6, 1.07, 2.13,
             3.5, 5.02, 7.02, 9.02, 11.98, 24.65, 0, 0.3, 0.52, 1, 2.02, 3.5, 5.02, 7.02, 9.1, 12, 24.35, 0, 0.27,
             0.58, 1.15, 2.03, 3.57, 5, 7, 9.22, 12.1, 23.85, 0, 0.25, 0.5, 1.02, 2.02, 3.48, 5, 6.98, 9, 12.05,
             24.22, 0, 0.25, 0.52, 0.98, 2.02, 3.53, 5.05, 7.15, 9.07, 12.1, 24.12, 0, 0.3, 0.63, 1.05, 2.02, 3.53,
             5.02, 7.17, 8.8, 11.6, 24.43, 0, 0.37, 0.77, 1.02, 2.05, 3.55, 5.05, 7.08, 9.38, 12.1, 23.7, 0, 0.25,
             0.5, 0.98, 1.98, 3.6, 5.02, 7.03, 9.03, 12.12, 24.08, 0, 0.25, 0.5, 1, 2, 3.52, 5.07, 7.07, 9.03, 12.05,
             24.15],
    "conc": [0.74, 2.84, 6.57, 10.5, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28, 0, 1.72, 7.91, 8.31, 8.33, 6.85, 6.08,
             5.4, 4.55, 3.01, 0.9, 0, 4.4, 6.9, 8.2, 7.8, 7.5, 6.2, 5.3, 4.9, 3.7, 1.05, 0, 1.89, 4.6, 8.6, 8.38,
             7.54, 6.88, 5.78, 5.33, 4.19, 1.15, 0, 2.02, 5.63, 11.4, 9.33, 8.74, 7.56, 7.09, 5.9, 4.37, 1.57, 0,
             1.29, 3.08, 6.44, 6.32, 5.53, 4.94, 4.02, 3.46, 2.78, 0.92, 0.15, 0.85, 2.35, 5.02, 6.58, 7.09, 6.66,
             5.25, 4.39, 3.53, 1.15, 0, 3.05, 3.05, 7.31, 7.56, 6.59, 5.88, 4.73, 4.57, 3, 1.25, 0, 7.37, 9.03, 7.14,
             6.33, 5.66, 5.67, 4.24, 4.11, 3.16, 1.12, 0.24, 2.89, 5.22, 6.41, 7.83, 10.21, 9.18, 8.02, 7.14, 5.68,
             2.42, 0, 4.86, 7.24, 8, 6.81, 5.87, 5.22, 4.45, 3.62, 2.69, 0.86, 0, 1.25, 3.96, 7.82, 9.72, 9.75, 8.57,
             6.59, 6.11, 4.57, 1.17],
    "Dose": [dose for dose in (4.02, 4.4, 4.53, 4.4, 5.86, 4.0, 4.95, 4.53, 3.1, 5.5, 4.92, 5.3) for _ in range(11)],
    "Subject": [subject for subject in range(1, 13) for _ in range(11)],
}  # fmt: skip


def values(named):
    return {name: each.value for name, each in named.items()}


class TestLinear:
    def test_intercepts_and_slopes(self):
        # R: lmer(Reaction ~ Days + (Days | Subject), sleepstudy, REML=FALSE); lme of nlme agrees
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP)
        assert fit.converged
        assert fit.loglik == pytest.approx(-875.9696722, abs=1e-7)
        assert (fit.aic, fit.bic) == pytest.approx((1763.9393, 1783.0971), abs=1e-4)
        assert fit.estimates["a"][:2] == pytest.approx((251.4051048, 6.632123), rel=3e-5)
        assert fit.estimates["b"][:2] == pytest.approx((10.4672860, 1.502230), rel=1e-5)
        # R: lme(Reaction ~ Days, random = ~Days | Subject, sleepstudy, method="ML")
        group = fit.random.groups["Subject"]
        assert values(group.deviations) == pytest.approx({"1": 23.7805, "Days": 5.716830}, rel=1e-5)
        assert values(group.correlations) == pytest.approx({"1,Days": 0.081321}, abs=5e-6)
        assert fit.s == pytest.approx(25.59182, rel=1e-6)
        assert group.levels == 18
        # R: ranef(…)$Subject["308", ]
        assert group.effects["308"] == pytest.approx({"1": 2.8158, "Days": 9.0755}, rel=1e-4)

    def test_reml(self):
        # R: lmer(Reaction ~ Days + (Days | Subject), sleepstudy)
        fit = gradcli.fit("Reaction ~ a + b*Days + (1 + Days|Subject)", SLEEP, reml=True)
        assert fit.loglik == pytest.approx(-871.8141360, abs=1e-7)
        assert fit.estimates["a"][:2] == pytest.approx((251.4051048, 6.824597), rel=1e-5)
        assert values(fit.random.groups["Subject"].deviations) == pytest.approx(
            {"1": 24.7405, "Days": 5.92213}, rel=1e-5
        )
        assert fit.random.method == "REML"

    def test_effects_without_a_correlation(self):
        # R: lmer(Reaction ~ Days + (1 | Subject) + (0 + Days | Subject), sleepstudy, REML=FALSE)
        fit = gradcli.fit("Reaction ~ a + b*Days + (1|Subject) + (0 + Days|Subject)", SLEEP)
        assert fit.loglik == pytest.approx(-876.0016276, abs=1e-7)
        group = fit.random.groups["Subject"]
        assert values(group.deviations) == pytest.approx({"1": 24.1715, "Days": 5.79939}, rel=2e-5)
        assert not group.correlations
        assert [*group.effects["308"]] == ["1", "Days"]

    def test_intervals_are_those_of_the_observed_information(self):
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP)
        days, y = np.array(SLEEP["Days"]).reshape(18, 10), np.array(SLEEP["Reaction"]).reshape(18, 10)

        def cost(point):
            one, other, z, log_s = point
            factor = np.array([[math.exp(one), 0], [math.tanh(z) * math.exp(other), math.exp(other) / math.cosh(z)]])
            x = np.column_stack([np.ones(10), days[0]])
            spread = x @ factor @ factor.T @ x.T + math.exp(2 * log_s) * np.eye(10)
            inverse = np.linalg.inv(spread)
            mean = np.linalg.solve(18 * x.T @ inverse @ x, x.T @ inverse @ y.sum(axis=0))
            off = y - x @ mean
            return 9 * np.linalg.slogdet(spread)[1] + 0.5 * np.einsum("gi,ij,gj->", off, inverse, off)

        group = fit.random.groups["Subject"]
        point = np.array(
            [math.log(each.value) for each in group.deviations.values()]
            + [math.atanh(group.correlations["1,Days"].value), math.log(fit.s)]
        )
        step = 1e-3 * np.eye(4)
        hessian = np.array(
            [
                [cost(point + a + b) - cost(point + a - b) - cost(point - a + b) + cost(point - a - b) for a in step]
                for b in step
            ]
        ) / (4e-6)
        width = 1.959963985 * np.sqrt(np.diagonal(np.linalg.inv(hessian)))
        lows = [group.deviations["1"].low, group.deviations["Days"].low]
        assert lows == pytest.approx(np.exp(point[:2] - width[:2]), rel=1e-4)
        assert group.correlations["1,Days"].high == pytest.approx(math.tanh(point[2] + width[2]), rel=1e-3)
        assert fit.random.residual.high == pytest.approx(math.exp(point[3] + width[3]), rel=1e-4)

    @pytest.mark.parametrize("groups", ["(1|Worker/Machine)", "(1|Worker) + (1|Worker:Machine)"])
    def test_nested_groups_and_levels(self, groups):
        # R: lmer(score ~ 0 + Machine + (1 | Worker/Machine), Machines)
        fit = gradcli.fit(f"score ~ m[Machine] + {groups}", MACHINES, reml=True)
        assert fit.loglik == pytest.approx(-107.843784, abs=1e-6)
        assert fit.estimates["m[A]"][:2] == pytest.approx((52.3555556, 2.48583), rel=1e-5)
        found = {name: each.deviations["1"].value for name, each in fit.random.groups.items()}
        assert found == pytest.approx({"Worker": 4.78105, "Worker:Machine": 3.72954}, rel=2e-6)
        assert fit.s == pytest.approx(0.9615766, rel=1e-6)
        assert "1:A" in fit.random.groups["Worker:Machine"].effects

    def test_crossed_groups(self):
        # Each plate and each sample has a number; balanced, so that the sums of squares give the estimates.
        rng = np.random.default_rng(1)
        plates, samples = np.repeat(np.arange(12), 6), np.tile(np.arange(6), 12)
        y = 20 + rng.normal(0, 1, 12)[plates] + rng.normal(0, 2, 6)[samples] + rng.normal(0, 0.5, 72)
        fit = gradcli.fit("y ~ m + (1|p) + (1|s)", {"y": y, "p": plates, "s": samples}, reml=True)
        table = y.reshape(12, 6)
        of_plates, of_samples = table.mean(axis=1), table.mean(axis=0)
        rest = ((table - of_plates[:, None] - of_samples + table.mean()) ** 2).sum() / 55
        assert fit.s == pytest.approx(math.sqrt(rest), rel=1e-8)
        deviation = math.sqrt(of_plates.var(ddof=1) - rest / 6)
        assert fit.random.groups["p"].deviations["1"].value == pytest.approx(deviation, rel=1e-7)
        deviation = math.sqrt(of_samples.var(ddof=1) - rest / 12)
        assert fit.random.groups["s"].deviations["1"].value == pytest.approx(deviation, rel=1e-7)

    def test_weights_fixed_parameters_and_derived_quantities(self):
        # R: lmer(I(Reaction - 10*Days) ~ 1 + (1 | Subject), sleepstudy, weights=1/(1 + Days), REML=FALSE)
        weights = [1 / (1 + day) for day in SLEEP["Days"]]
        fit = gradcli.fit(
            "Reaction ~ a + b*Days + (1|Subject)", SLEEP, {"b": 10}, fix="b", weights=weights, derive={"d": "a/b"}
        )
        moved = {**SLEEP, "Reaction": [y - 10 * x for y, x in zip(SLEEP["Reaction"], SLEEP["Days"])]}
        same = gradcli.fit("Reaction ~ a + (1|Subject)", moved, sigma=[w**-0.5 for w in weights])
        assert fit.loglik == pytest.approx(same.loglik)
        assert fit.estimates["a"].value == pytest.approx(same.estimates["a"].value)
        assert fit.estimates["b"].fixed
        assert fit.derived["d"].error == pytest.approx(same.estimates["a"].error / 10)

    def test_a_variance_of_0(self, run):
        # R: lmer(Yield ~ 1 + (1 | Batch), Dyestuff2, REML=FALSE), which is singular
        fit = gradcli.fit("Yield ~ a + (1|Batch)", DYESTUFF2)
        assert fit.converged
        assert fit.loglik == pytest.approx(-81.43651833, abs=1e-8)
        told = fit.random.groups["Batch"].deviations["1"]
        assert told.value == 0
        assert math.isnan(told.low)
        assert any("singular" in warning for warning in fit.warnings)
        assert fit.estimates["a"].error == pytest.approx(0.6669857, rel=1e-6)

    def test_a_correlation_of_1(self):
        days = np.tile(np.arange(6.0), 8)
        group = np.repeat(np.arange(8), 6)
        shift = np.array([-3, -2, -1, 0, 0, 1, 2, 3.0])[group]
        y = 5 + days + shift * (1 + 0.5 * days) + 0.1 * np.random.default_rng(0).normal(size=48)
        fit = gradcli.fit("y ~ a + b*x + (x|g)", {"y": y, "x": days, "g": group})
        assert fit.converged
        told = fit.random.groups["g"].correlations["1,x"]
        assert told.value == pytest.approx(1, abs=0.01)


class TestNonlinear:
    @pytest.mark.slow
    def test_a_parameter_that_varies(self):
        # R: nlmer(circumference ~ SSlogis(age, Asym, xmid, scal) ~ Asym | Tree, Orange)
        fit = gradcli.fit(LOGISTIC, ORANGE, random="Asym|Tree")
        assert fit.loglik == pytest.approx(-131.5718851, abs=1e-6)
        found = [each.value for each in fit.estimates.values()]
        assert found == pytest.approx([192.0532, 727.9063, 348.0730], rel=1e-5)
        assert fit.random.groups["Tree"].deviations["Asym"].value == pytest.approx(31.64630, rel=1e-5)
        assert fit.s == pytest.approx(7.843012, rel=1e-5)
        assert fit.random.method == "Laplace's approximation"

    @pytest.mark.slow
    def test_the_same_within_the_model(self):
        one = gradcli.fit(LOGISTIC, ORANGE, random="Asym|Tree")
        other = gradcli.fit(LOGISTIC.replace("Asym", "(Asym + (1|Tree))"), ORANGE)
        assert other.loglik == pytest.approx(one.loglik, abs=1e-9)
        assert other.estimates["Asym"][:2] == pytest.approx(one.estimates["Asym"][:2])

    def test_laplace_is_exact_for_linear_models(self):
        # The same model, written so that it is not linear in its parameters.
        linear = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP)
        fit = gradcli.fit("Reaction ~ exp(la) + b*Days + (Days|Subject)", SLEEP)
        assert fit.loglik == pytest.approx(linear.loglik, abs=1e-8)
        assert math.exp(fit.estimates["la"].value) == pytest.approx(linear.estimates["a"].value, rel=1e-6)
        one, other = (each.random.groups["Subject"] for each in (linear, fit))
        assert other.deviations["Days"] == pytest.approx(one.deviations["Days"], rel=1e-5)
        assert other.correlations["1,Days"] == pytest.approx(one.correlations["1,Days"], rel=1e-4, abs=1e-5)
        assert other.effects["308"] == pytest.approx(one.effects["308"], rel=1e-5)

    @pytest.mark.slow
    def test_names_that_the_model_assigns(self):
        plain = gradcli.fit("Reaction ~ exp(a) + b*Days + (1|Subject)", SLEEP)
        text = "y = exp(a); w = b*Days; value = y + w; cost = value; log_s = cost; r = 0; Reaction ~ log_s + r + (1|Subject)"
        assert gradcli.fit(text, SLEEP).loglik == pytest.approx(plain.loglik, abs=1e-8)
        assert gradcli.fit(text.replace("exp(a)", "a"), SLEEP).loglik == pytest.approx(plain.loglik, abs=1e-8)

    @pytest.mark.slow
    def test_several_parameters(self):
        model = "conc ~ A1*exp(-exp(l1)*time) + A2*exp(-exp(l2)*time)"
        start = {"A1": 2.8, "l1": 0.8, "A2": 0.5, "l2": -1.3}
        fit = gradcli.fit(model, INDOMETH, start, random=["A1|Subject", "A2|Subject"])
        assert fit.converged
        together = gradcli.fit(model, INDOMETH, start, random="A1,A2|Subject")
        assert together.loglik >= fit.loglik
        assert [*together.random.groups["Subject"].correlations] == ["A1,A2"]

    @pytest.mark.slow
    def test_beside_tmb(self):
        # R, with TMB and this model: nlminb and sdreport, which has finite differences of the exact gradient
        fit = gradcli.fit(
            "conc ~ Dose*exp(lKe + lKa - lCl)/(exp(lKa) - exp(lKe))*(exp(-exp(lKe)*Time) - exp(-exp(lKa)*Time))",
            THEOPH,
            {"lKe": -2.4, "lKa": 0.45, "lCl": -3.2},
            random="lKa,lCl|Subject",
        )
        assert fit.loglik == pytest.approx(-177.869507167, abs=1e-8)
        found = fit.estimates
        assert found["lKe"][:2] == pytest.approx((-2.4589925595, 0.0512425978), rel=1e-5)
        assert found["lCl"][:2] == pytest.approx((-3.2267532699, 0.0594619727), rel=1e-5)
        group = fit.random.groups["Subject"]
        assert group.deviations["lCl"].value == pytest.approx(math.exp(-1.7878925030), rel=1e-5)
        assert group.deviations["lCl"].high == pytest.approx(
            math.exp(-1.7878925030 + 1.959964 * 0.2177150055), rel=1e-4
        )
        assert group.correlations["lKa,lCl"].value == pytest.approx(math.tanh(-0.0115445622), abs=1e-5)
        assert group.correlations["lKa,lCl"].low == pytest.approx(
            math.tanh(-0.0115445622 - 1.959964 * 0.308885564), rel=1e-4
        )


class TestFamilies:
    def test_binomial(self):
        # R: glmer(cbind(incidence, size - incidence) ~ 0 + period + (1 | herd), cbpp, binomial)
        fit = gradcli.fit("incidence/size ~ 1/(1 + exp(-(p[period] + (1|herd))))", CBPP, family="binomial")
        assert fit.loglik == pytest.approx(-92.02628, abs=1e-5)
        assert fit.estimates["p[1]"][:2] == pytest.approx((-1.398532, 0.232472), rel=1e-5)
        assert fit.random.groups["herd"].deviations["1"].value == pytest.approx(0.64226, rel=1e-5)
        assert math.isnan(fit.s)
        assert fit.random.residual is None

    def test_poisson_beside_quadrature(self):
        # With many counts in each group the approximation is near the integral.
        rng = np.random.default_rng(3)
        group = np.repeat(np.arange(6), 8)
        x = np.tile(np.linspace(0, 1, 8), 6)
        y = rng.poisson(np.exp(3 + x + rng.normal(0, 0.5, 6)[group]))
        fit = gradcli.fit("y ~ exp(a + b*x + (1|g))", {"y": y, "x": x, "g": group}, family="poisson")
        a, b = (each.value for each in fit.estimates.values())
        deviation = fit.random.groups["g"].deviations["1"].value
        nodes = np.linspace(-8, 8, 20001)
        mean = np.exp(a + b * x[:, None] + deviation * nodes)
        logs = y[:, None] * np.log(mean) - mean - np.array([math.lgamma(n + 1) for n in y])[:, None]
        normal = np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi)
        of_groups = np.trapezoid(np.exp(logs.reshape(6, 8, -1).sum(axis=1)) * normal, nodes)
        assert fit.loglik == pytest.approx(np.log(of_groups).sum(), abs=0.005)

    @pytest.mark.slow
    def test_families_with_parameters_and_likelihoods(self):
        text = "incidence ~ exp(a + (1|herd))"
        one = gradcli.fit(text, CBPP, family="negbinomial")
        likelihood = (
            "m = exp(a + (1|herd)); lgamma(incidence + theta) - lgamma(theta) - lgamma(incidence + 1)"
            " - theta*log1p(m/theta) - xlogy(incidence, 1 + theta/m)"
        )
        other = gradcli.fit(likelihood=likelihood, data=CBPP, values={"a": 0.5, "theta": 1})
        assert one.loglik == pytest.approx(other.loglik, abs=1e-8)
        assert one.estimates["theta"][:2] == pytest.approx(other.estimates["theta"][:2], rel=1e-5)

    @pytest.mark.slow
    def test_separable_events_have_no_maximum(self):
        data = {"y": [1, 1, 1, 0, 0, 0, 1, 0], "g": [1, 1, 1, 2, 2, 2, 3, 3], "x": [1, 2, 3, -1, -2, -3, 1, -1]}
        fit = gradcli.fit("y ~ 1/(1 + exp(-(a + b*x + (1|g))))", data, family="binomial")
        assert not fit.converged
        assert "rises without end" in fit.message

    @pytest.mark.slow
    def test_means_outside_their_range_are_impossible(self):
        # As a probability a + b*x is none below 0, where the likelihood of no events would rise.
        data = {
            "y": [2, 0, 3, 5, 5, 9, 0, 4],
            "n": [10] * 8,
            "g": [1, 1, 2, 2, 3, 3, 4, 4],
            "x": [0, 1, 2, 3, 4, 5, 1, 4],
        }
        fit = gradcli.fit("y/n ~ a + b*x + (1|g)", data, {"a": 0.1, "b": 0.1}, family="binomial")
        assert fit.converged
        assert 0 < fit.estimates["a"].value < 0.2
        assert fit.loglik < 0

    def test_no_convergence_has_status_1(self, run):
        done = run("fit", "y ~ 1/(1 + exp(-(a + (1|g))))", "y=[1,1,1,1,1,1]", "g=[1,1,2,2,3,3]", "--family", "binomial")
        assert done.status == 1
        assert "error: not converged" in done.err


class TestWords:
    def test_the_tables(self, run, tmp_path):
        path = tmp_path / "sleep.csv"
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(SLEEP)
            writer.writerows(zip(*SLEEP.values()))
        done = run("fit", "Reaction ~ a + b*Days + (Days|Subject)", str(path))
        assert done.status == 0
        assert "random effect  by       standard deviation  95 % from  to" in done.out
        assert "levels of Subject            18" in done.out
        done = run("fit", "Reaction ~ a + b*Days + (1|Subject)", str(path), "--reml", "--json")
        told = json.loads(done.out)["random"]
        assert told["method"] == "REML"
        assert told["groups"]["Subject"]["levels"] == 18
        assert [*told["groups"]["Subject"]["deviations"]["1"]] == ["value", "low", "high"]
        assert len(told["groups"]["Subject"]["effects"]) == 18

    def test_few_levels_are_a_warning(self):
        some = {name: column[:40] for name, column in SLEEP.items()}
        fit = gradcli.fit("Reaction ~ a + b*Days + (1|Subject)", some)
        assert "'Subject' has 4 levels, too few to say much about a standard deviation" in fit.warnings

    @pytest.mark.all_cases
    @pytest.mark.parametrize(
        ("model", "options", "words"),
        [
            ("Reaction ~ a + (1|Subjct)", {}, "'Subjct', by which a random effect varies, is no column"),
            ("Reaction ~ a + (x|Subject)", {}, "'x' in a random effect of 'Subject' is no column"),
            ("Reaction ~ a + (Days - 1|Subject)", {}, "a random effect is a sum of columns"),
            ("Reaction ~ a + (Days||Subject)", {}, "random effects without correlations are terms of their own"),
            ("Reaction ~ a + (0|Subject)", {}, "a random effect of 0 is none"),
            ("Reaction ~ a + (1|Subject) + (1|Subject)", {}, "two random effects of 'Subject' are called '1'"),
            ("Reaction ~ a + b*Days", {"random": "c|Subject"}, "'c' varies by 'Subject', and is no parameter"),
            ("Reaction ~ a + b*Days", {"random": "a+b|Subject"}, "does not say which parameters vary by which column"),
            ("Reaction ~ a + b*Days", {"random": "a|Sub"}, "'Sub', by which a random effect varies"),
            ("Reaction ~ a + b*Days", {"reml": True}, "REML is for random effects"),
            ("Reaction ~ exp(a) + b*Days + (1|Subject)", {"reml": True}, "REML is for models that are linear"),
            ("Reaction ~ a + (1|Subject)", {"family": "poisson", "reml": True}, "REML is for the family gaussian"),
            ("Reaction ~ a + (1|Subject)", {"cross_validate": 10}, "--cross-validate is not for random effects"),
            ("Reaction ~ a + (1|Subject)", {"contour": "a,a2"}, "--contour is not for random effects"),
            (
                "Reaction ~ a + (1|Subject) + (1|Days)",
                {"bootstrap": 10},
                "samples are of the levels of one column, and the random effects vary by several",
            ),
            ("Reaction ~ a + (1|Subject)", {"profile": True, "reml": True}, "--profile is not for REML"),
            ("Reaction ~ a + (1|Subject)", {"bounds": "a=0:", "reml": True}, "--bounds is not for REML"),
            (
                "Reaction ~ a + (1|Subject)",
                {"profile": True, "derive": {"half": "a/2"}},
                "derived quantities have no profile with random effects",
            ),
            ("Reaction ~ a + (1|Reaction)", {}, "they cannot be told from residuals"),
            ("Reaction ~ a + (1|Subject)", {"residuals": "r.csv"}, "no files are written for random effects"),
            ("Reaction ~ a + b*(Days + (1|Subject)", {}, "is never closed"),
            ("Reaction ~ a + b + (1|Subject)", {}, "reads no column"),
        ],
    )
    def test_errors(self, model, options, words):
        with pytest.raises(
            (BindingError, EvaluationError, ProgramSyntaxError, UsageError), match=words.replace("(", r"\(")
        ):
            gradcli.fit(model, SLEEP, **options)

    def test_levels_are_texts(self):
        y, codes = [1.0, 2, 1.5, 4, 5, 4.5, 8, 7, 7.5], [0, 0, 0, 1, 1, 1, 2, 2, 2]
        whole = gradcli.fit("y ~ a + (1|g)", {"y": y, "g": [float(code) for code in codes]})
        assert [*whole.random.groups["g"].effects] == ["0", "1", "2"]
        texts = gradcli.fit("y ~ a + (1|g)", {"y": y, "g": [["1", "1.0", "b"][code] for code in codes]})
        assert [*texts.random.groups["g"].effects] == ["1", "1.0", "b"]
        assert texts.loglik == pytest.approx(whole.loglik)
        parted = {"g": [["a", "a", "b"][code] for code in codes], "h": [["x", "y", "y"][code] for code in codes]}
        fit = gradcli.fit("y ~ a + (1|g:h)", {"y": y, **parted})
        assert [*fit.random.groups["g:h"].effects] == ["a:x", "a:y", "b:y"]
        assert fit.loglik == pytest.approx(whole.loglik)

    def test_many_groups(self):
        rng = np.random.default_rng(0)
        group = rng.integers(0, 5_000, 20_000)
        x = rng.random(20_000)
        y = 1 + x + rng.normal(size=5_000)[group] + rng.normal(size=20_000)
        fit = gradcli.fit("y ~ a + b*x + (x|g)", {"y": y, "x": x, "g": group})
        assert fit.converged
        assert fit.s == pytest.approx(1, rel=0.05)
        assert fit.random.groups["g"].deviations["1"].value == pytest.approx(1, rel=0.1)

    def test_weights_and_offsets_of_both_ways(self):
        rng = np.random.default_rng(0)
        group, x = np.repeat(np.arange(12), 6), np.tile(np.arange(6.0), 12)
        data = {"g": group, "x": x, "w": rng.random(72) + 0.5}
        data["y"] = 3 + x + rng.normal(size=12)[group] + rng.normal(size=72)
        linear = gradcli.fit("y ~ a + b*x + (1|g)", data, weights="w", offset="2*x")
        other = gradcli.fit("y ~ exp(la) + b*x + 2*x + (1|g)", data, weights="w")
        assert other.loglik == pytest.approx(linear.loglik, abs=1e-8)
        assert other.s == pytest.approx(linear.s, rel=1e-6)

    def test_one_level(self):
        with pytest.raises(BindingError, match="'g' is the same in all rows"):
            gradcli.fit("y ~ a + (1|g)", {"y": [1.0, 2, 3], "g": [1, 1, 1]})

    def test_errors_show_the_model_as_it_is_written(self, run):
        done = run("fit", "y ~ a + bogus(x) + (1|g)", "x=[1,2,3,4]", "y=[1,2,3,5]", "g=[1,1,2,2]")
        assert done.status != 0
        assert "(1|g)" in done.err

    def test_truth_values_stay_what_they_are(self):
        fit = gradcli.fit(
            "y ~ a + b*where((x > 2) | (z > 0), 1, 0)", {"x": [1, 2, 3, 4], "z": [0, 1, 0, 0], "y": [1, 2, 2, 2.1]}
        )
        assert fit.random is None


def ends(spread):
    return spread.low, spread.high


class TestProfiles:
    def test_parameters_deviations_and_correlations(self):
        # R: confint(lmer(Reaction ~ Days + (Days | Subject), sleepstudy, REML=FALSE), method="profile")
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, profile=True)
        group = fit.random.groups["Subject"]
        assert ends(fit.estimates["a"]) == pytest.approx((237.6806955, 265.1295147), rel=1e-6)
        assert ends(fit.estimates["b"]) == pytest.approx((7.3586533, 13.5759188), rel=1e-6)
        assert ends(group.deviations["1"]) == pytest.approx((14.3814344, 37.7160122), rel=2e-5)
        assert ends(group.deviations["Days"]) == pytest.approx((3.8011647, 8.7533667), rel=1e-5)
        assert ends(group.correlations["1,Days"]) == pytest.approx((-0.4815004, 0.6849862), rel=2e-4)
        assert ends(fit.random.residual) == pytest.approx((22.8982662, 28.8579973), rel=1e-6)

    def test_events(self):
        # R: confint(glmer(cbind(incidence, size - incidence) ~ period + (1 | herd), cbpp, binomial), method="profile")
        fit = gradcli.fit(
            "incidence/size ~ 1/(1 + exp(-(a[period] + (1|herd))))", CBPP, family="binomial", profile=True
        )
        assert ends(fit.estimates["a[1]"]) == pytest.approx((-1.90121, -0.94775), rel=1e-4)
        assert ends(fit.random.groups["herd"].deviations["1"]) == pytest.approx((0.346073, 1.099975), rel=1e-4)

    def test_a_deviation_of_0_has_an_upper_end(self):
        # The likelihood of balanced groups, maximised by SciPy with the mean held; lme4 has 4.3121 by interpolation
        fit = gradcli.fit("Yield ~ a + (1|Batch)", DYESTUFF2, profile=True)
        assert ends(fit.estimates["a"]) == pytest.approx((4.31283749, 7.01836251), rel=1e-7)
        # R: confint(lmer(Yield ~ 1 + (1 | Batch), Dyestuff2, REML=FALSE), method="profile")
        assert ends(fit.random.groups["Batch"].deviations["1"]) == pytest.approx((0.0, 2.0840435), rel=1e-5)
        assert fit.warnings == [
            "the standard deviation of '1' by 'Batch' is 0: the fit is singular; a model without this effect fits as well"
        ]

    def test_a_bound(self):
        # R: confint(lmer(Reaction ~ 1 + offset(9*Days) + (Days | Subject), sleepstudy, REML=FALSE))
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, bounds="b=:9", profile=True)
        assert ends(fit.estimates["a"]) == pytest.approx((238.3466192, 266.2457270), rel=1e-6)
        assert fit.estimates["b"].value == fit.estimates["b"].high == 9.0
        assert 6 < fit.estimates["b"].low < 8
        assert ends(fit.random.groups["Subject"].deviations["Days"]) == pytest.approx((3.956095, 9.005621), rel=1e-5)
        assert any("b is at its bound 9" in warning for warning in fit.warnings)

    def test_an_end_that_is_not_found_is_a_warning(self):
        far = {**DYESTUFF2, "Yield": [y + 1e6 for y in DYESTUFF2["Yield"]]}
        fit = gradcli.fit("Yield ~ a + (1|Batch)", far, profile=True)
        lost = [name for name, own in fit.estimates.items() if math.isnan(own.low) or math.isnan(own.high)]
        (warning,) = (each for each in fit.warnings if "too few digits for the profile of" in each)
        assert lost
        assert all(name in warning for name in lost)


class TestBoundsAndPriors:
    def test_a_bound_that_holds(self):
        # R: lmer(Reaction ~ 1 + offset(9*Days) + (Days | Subject), sleepstudy, REML=FALSE)
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, bounds="b=:9")
        assert (fit.loglik, fit.aic) == pytest.approx((-876.4344659, 1762.8689), abs=1e-4)
        assert fit.estimates["a"][:2] == pytest.approx((252.2961559, 6.5692582), rel=1e-5)
        assert math.isnan(fit.estimates["b"].error)
        assert values(fit.random.groups["Subject"].deviations) == pytest.approx(
            {"1": 23.7973829, "Days": 5.9021648}, rel=1e-5
        )

    def test_a_bound_that_does_not(self):
        free, bounded = (
            gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, bounds=bounds) for bounds in (None, "b=0:90")
        )
        assert (bounded.loglik, bounded.estimates) == (free.loglik, free.estimates)
        # The prior of 1e9 standard errors says nothing, but the search is that of Laplace's approximation.
        vague = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, prior={"b": (0, 1e9)})
        assert vague.loglik == pytest.approx(free.loglik, abs=1e-9)
        assert vague.estimates["b"][:2] == pytest.approx(free.estimates["b"][:2], rel=1e-6)
        assert vague.random.method == free.random.method == "maximum likelihood"

    def test_a_prior(self):
        # The sum of the log-likelihood and the logarithm of the prior, maximised by Nelder and Mead's method in SciPy
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, prior={"b": (8, 0.5)})
        assert fit.estimates["a"].value == pytest.approx(252.76905513, rel=1e-8)
        assert fit.estimates["b"].value == pytest.approx(8.2213244, rel=1e-7)
        assert values(fit.random.groups["Subject"].deviations) == pytest.approx(
            {"1": 23.819650, "Days": 6.142193}, rel=1e-6
        )
        # The likelihood is that of the rows.
        assert fit.loglik == pytest.approx(-877.0231657, abs=1e-6)
        # A prior as narrow as that keeps its parameter.
        held = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, {"b": 9}, fix="b")
        near = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, prior={"b": (9, 1e-6)})
        assert near.estimates["a"][:2] == pytest.approx(held.estimates["a"][:2], rel=1e-6)

    def test_a_model_that_is_not_linear(self):
        fit = gradcli.fit(LOGISTIC, ORANGE, random="Asym|Tree", bounds="xmid=:700,scal=0:")
        held = gradcli.fit(LOGISTIC, ORANGE, {"xmid": 700}, fix="xmid", random="Asym|Tree")
        assert fit.estimates["xmid"].value == 700
        assert fit.loglik == pytest.approx(held.loglik, abs=1e-8)
        assert fit.estimates["Asym"][:2] == pytest.approx(held.estimates["Asym"][:2], rel=1e-6)


class TestSamplesAndGroups:
    """Fits with random effects of groups of rows, and of samples of the levels within which effects vary."""

    def test_a_group_is_fitted_as_it_would_be_alone(self):
        data = {**SLEEP, "half": [float(day < 5) for day in SLEEP["Days"]]}
        fits = gradcli.fit("Reaction ~ a + b*Days + (1|Subject)", data, by="half")
        own = [i for i, day in enumerate(SLEEP["Days"]) if day < 5]
        alone = gradcli.fit("Reaction ~ a + b*Days + (1|Subject)", {n: [c[i] for i in own] for n, c in SLEEP.items()})
        assert [fit.group for fit in fits] == ["1.0", "0.0"]
        assert fits[0].loglik == pytest.approx(alone.loglik)
        assert fits[0].estimates == alone.estimates
        assert fits[0].random == alone.random

    def test_a_group_that_cannot_be_fitted_says_why(self):
        first, *_ = gradcli.fit("Reaction ~ a + (1|Subject)", SLEEP, by="Subject")
        assert not first.converged
        assert "'Subject' is the same in all rows" in first.message

    @pytest.mark.slow
    def test_the_jackknife_leaves_out_each_level(self):
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, jackknife=True)
        subjects = [*dict.fromkeys(SLEEP["Subject"])]
        assert fit.jackknife.samples == len(subjects)
        values = []
        for left_out in subjects:
            own = [i for i, subject in enumerate(SLEEP["Subject"]) if subject != left_out]
            rest = {name: [column[i] for i in own] for name, column in SLEEP.items()}
            values.append(gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", rest).estimates["b"].value)
        error = np.sqrt((len(values) - 1) / len(values) * np.square(np.array(values) - np.mean(values)).sum())
        assert fit.jackknife.estimates["b"].error == pytest.approx(error, rel=1e-5)

    def test_a_sample_has_whole_levels_which_may_be_there_twice(self):
        # The slope of balanced data is the mean of those of the subjects, and so it is in a sample of subjects.
        fit = gradcli.fit("Reaction ~ a + b*Days + (Days|Subject)", SLEEP, bootstrap=20)
        days, reaction = np.arange(10.0), np.reshape(SLEEP["Reaction"], (18, 10))
        slopes = reaction @ (days - days.mean()) / np.square(days - days.mean()).sum()
        rng = np.random.default_rng(0)
        means = [slopes[rng.integers(0, 18, 18)].mean() for _ in range(20)]
        assert fit.bootstrap.failed == 0
        assert fit.bootstrap.estimates["b"].error == pytest.approx(np.std(means, ddof=1), rel=1e-6)

    def test_a_cluster_has_no_random_effects(self, run, tmp_path):
        path = tmp_path / "y.csv"
        path.write_text("y,g,h\n" + "".join(f"{k % 7},{k % 3},{k % 2}\n" for k in range(24)))
        done = run(
            "fit", "y ~ a + (1|g)", str(path), "--by", "h", "--cluster", "local", "--output", str(tmp_path / "o")
        )
        assert "random effects are fitted on one machine" in done.err
