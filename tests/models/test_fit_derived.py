"""Tests `gradcli fit --derive`: quantities derived from the estimates, by the delta method and by profiles."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, CallError, ProgramSyntaxError, ShapeError

PUROMYCIN = str(Path(__file__).parents[2] / "examples" / "data" / "puromycin.csv")
MENTEN = "rate ~ V*conc/(K + conc)"
BOD = {"x": [1, 2, 3, 5, 7, 10], "y": [109, 149, 149, 191, 213, 224]}


def rising(**options):
    return gradcli.fit("y ~ a*(1 - exp(-k*x))", BOD, {"a": 100, "k": 0.75}, **options)


class TestDeltaMethod:
    def test_as_r_has_it(self):
        # R: m <- nls(rate ~ V*conc/(K+conc), subset(Puromycin, state == "treated"), start=list(V=212, K=.064))
        # g <- c(1/K, -V/K^2); c(V/K, sqrt(t(g) %*% vcov(m) %*% g)), to the 1e-5 of its criterion
        treated, untreated = gradcli.fit(MENTEN, PUROMYCIN, by="state", derive={"eff": "V/K"})
        assert treated.derived["eff"].value == pytest.approx(3316.902, rel=3e-6)
        assert treated.derived["eff"].error == pytest.approx(352.4436, rel=3e-6)
        assert untreated.derived["eff"].value == untreated.estimates["V"].value / untreated.estimates["K"].value

    def test_a_quantity_is_as_the_parameter_it_could_be(self):
        derived = rising(derive={"half": "log(2)/k", "rate": "a*k"})
        for name, model, start in (
            ("half", "y ~ a*(1 - exp(-log(2)/half*x))", {"a": 100, "half": 1}),
            ("rate", "y ~ a*(1 - exp(-rate/a*x))", {"a": 200, "rate": 100}),
        ):
            found = gradcli.fit(model, BOD, start).estimates[name]
            assert derived.derived[name] == pytest.approx((found.value, found.error, found.low, found.high), rel=1e-7)

    def test_constants_and_fixed_parameters(self):
        found = gradcli.fit(
            "y ~ a + b*x", BOD, {"a": 100}, fix="a", derive={"two": "2*a", "log2": "log(2)", "c": "a - b*pi"}
        )
        assert found.derived["two"] == (200, 0, 200, 200)
        assert found.derived["log2"].error == 0
        assert found.derived["c"].error == pytest.approx(math.pi * found.estimates["b"].error)

    def test_what_has_no_error(self):
        found = gradcli.fit("y ~ a + b*x", BOD, bounds={"b": (None, 2)}, derive={"c": "a + b", "d": "3*a"})
        assert math.isnan(found.derived["c"].error)
        assert found.derived["d"].error == pytest.approx(3 * found.estimates["a"].error)
        found = gradcli.fit("y ~ a*b*x", BOD, derive={"c": "a/b"})
        assert math.isinf(found.derived["c"].error)
        found = gradcli.fit("y ~ a + b*x", BOD, derive={"c": "log(b - 1000)"})
        assert math.isnan(found.derived["c"].value)
        assert math.isnan(found.derived["c"].error)
        assert "c has no finite value at the estimates" in found.warnings

    def test_a_warning_of_second_order(self):
        (warning,) = [text for text in rising(derive={"half": "log(2)/k", "twice": "2*k"}).warnings if "order" in text]
        assert warning.startswith(
            "the linear interval of half cannot be trusted: terms of second order change it by 0.19"
        )
        assert not [text for text in rising(derive={"half": "log(2)/k"}, profile=True).warnings if "order" in text]

    def test_states_at_the_start(self):
        model = "n' = -k*n\ny ~ n"
        data = {"t": [0, 1, 2, 3, 4], "y": [2, 1.2, 0.7, 0.5, 0.3]}
        found = gradcli.fit(model, data, k=1, derive={"loss": "n(0)*k"})
        assert found.derived["loss"].value == pytest.approx(found.estimates["n(0)"].value * found.estimates["k"].value)


class TestProfiles:
    @pytest.mark.slow
    @pytest.mark.parametrize("level", [0.5, 0.95])
    def test_a_quantity_is_as_the_parameter_it_could_be(self, level):
        derived = rising(derive={"half": "log(2)/k", "rate": "a*k"}, profile=True, level=level).derived
        half = gradcli.fit("y ~ a*(1 - exp(-log(2)/half*x))", BOD, {"a": 100, "half": 1}, profile=True, level=level)
        rate = gradcli.fit("y ~ a*(1 - exp(-rate/a*x))", BOD, {"a": 200, "rate": 100}, profile=True, level=level)
        assert derived["half"][2:] == pytest.approx(half.estimates["half"][3:5], rel=1e-6)
        assert derived["rate"][2:] == pytest.approx(rate.estimates["rate"][3:5], rel=1e-6)

    def test_an_interval_without_end(self):
        data = {"x": [0, 1, 2, 3, 4], "y": [1, 2, 1.2, 2.2, 1.1]}
        found = gradcli.fit("y ~ a + k*x", data, derive={"h": "1/k", "less": "-1/k"}, profile=True)
        assert found.derived["h"].low == pytest.approx(1 / found.estimates["k"].high, rel=1e-6)
        assert found.derived["h"].high == math.inf
        assert found.derived["less"].low == -math.inf

    def test_bounds_end_an_interval(self):
        data = {"x": [0, 1, 2, 3, 4], "y": [1, 2, 1.2, 2.2, 1.1]}
        found = gradcli.fit("y ~ a + k*x", data, bounds={"k": (0.01, None)}, derive={"h": "1/k"}, profile=True)
        assert found.derived["h"].high == pytest.approx(100)

    def test_exact_data(self):
        data = {"x": [0, 1, 2, 3], "y": [1, 3, 5, 7]}
        found = gradcli.fit("y ~ a + b*x", data, derive={"r": "b/a"}, profile=True)
        assert found.derived["r"][2:] == pytest.approx((2, 2))

    def test_counts(self):
        data = {"x": [0, 1, 2, 3, 4], "y": [2, 3, 6, 7, 8]}
        found = gradcli.fit("y ~ exp(a + b*x)", data, family="poisson", derive={"ratio": "exp(b)"}, profile=True)
        assert found.derived["ratio"].high == pytest.approx(math.exp(found.estimates["b"].high), rel=1e-6)


class TestCommand:
    def test_the_table(self, run):
        words = ("y ~ a*(1 - exp(-k*x))", f"x={BOD['x']}", f"y={BOD['y']}", "a=100", "k=0.75")
        done = run("fit", *words, "--derive", "half=log(2)/k", "--derive", "r=a*k,s=a", "--level", "0.9")
        lines = done.out.splitlines()
        place = next(i for i, line in enumerate(lines) if line.startswith("derived"))
        assert lines[place].split() == ["derived", "value", "error", "90", "%", "from", "to"]
        assert [line.split()[0] for line in lines[place + 1 : place + 4]] == ["half", "r", "s"]

    def test_groups(self, run):
        done = run("fit", MENTEN, PUROMYCIN, "--by", "state", "--derive", "eff=V/K", "-q")
        rows = [*csv.DictReader(io.StringIO(done.out))]
        assert float(rows[0]["eff"]) == pytest.approx(3316.898, rel=1e-6)
        assert float(rows[0]["eff_error"]) == pytest.approx(352.443, rel=1e-6)
        told = [
            json.loads(line)
            for line in run("fit", MENTEN, PUROMYCIN, "--by", "state", "--derive", "eff=V/K", "-j").out.splitlines()
        ]
        assert [each["derived"]["eff"]["value"] for each in told] == [float(row["eff"]) for row in rows]
        assert set(told[0]["derived"]["eff"]) == {"value", "error", "low", "high"}

    def test_a_group_that_cannot_be_fitted(self, run):
        data = "x=[1,2,3,4]", "y=[1,2,2,3]", "g=[1,1,1,2]"
        done = run("fit", "y ~ a + b*x", *data, "--by", "g", "--derive", "c=a/b")
        assert "nan" in done.out.splitlines()[2].split(",")[6].lower() or done.out.splitlines()[2].split(",")[6] == ""
        assert done.status == 1

    @pytest.mark.slow
    def test_many_machines_have_the_same_digits(self, run, tmp_path):
        rng = np.random.default_rng(0)
        lines = [f"{g},{x},{2 * math.exp(-0.3 * x) + rng.normal(0, 0.05)}" for g in range(5) for x in range(8)]
        (tmp_path / "runs.csv").write_text("g,x,y\n" + "\n".join(lines) + "\n")
        words = ("fit", "y ~ a*exp(-k*x)", str(tmp_path / "runs.csv"), "--by", "g", "--derive", "half=log(2)/k", "-q")
        run(*words, "--cluster", "local:1", "--output", str(tmp_path / "out"))
        assert (tmp_path / "out" / "part-00000.csv").read_text() == run(*words).out

    @pytest.mark.parametrize(
        ("text", "error", "message"),
        [
            ("half=log(2)/kk", BindingError, "'kk' in the derived 'half' is no parameter"),
            ("k=2*k", BindingError, "'k' is a parameter, and cannot be derived too"),
            ("v=[a, k]", ShapeError, "has the shape [2], and is one number"),
            ("v=x*a", BindingError, "'x' in the derived 'v' is no parameter"),
            ("v=a*", ProgramSyntaxError, ""),
        ],
    )
    def test_errors(self, run, text, error, message):
        name, formula = text.split("=", 1)
        with pytest.raises(error) as raised:
            rising(derive={name: formula})
        assert message in str(raised.value)
        words = ("y ~ a*(1 - exp(-k*x))", f"x={BOD['x']}", f"y={BOD['y']}", "a=100", "k=0.75")
        done = run("fit", *words, "--derive", text)
        assert done.status != 0
        assert message in done.err

    def test_errors_of_python(self):
        with pytest.raises(CallError):
            rising(derive={"v": 3})
        with pytest.raises(CallError):
            rising(derive="half=log(2)/k")
