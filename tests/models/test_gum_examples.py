"""Tests `gradcli propagate` on published examples: of the GUM (JCGM 100:2008, annex H), its supplement 1 (JCGM
101:2008, section 9), and the guide of EURACHEM and CITAC."""

from __future__ import annotations

import pytest

import gradcli


def published(number: float, like: str) -> str:
    """A number with as many decimals as a published one."""
    return f"{number:.{len(like.partition('.')[2])}f}"


class TestAnnexH:
    def test_the_calibration_of_an_end_gauge(self):
        values = {
            "ls": "50000623(25)",
            "d": "215±9.7",
            "alpha": "~uniform(9.5e-6, 13.5e-6)",
            "dalpha": "~uniform(-1e-6, 1e-6)",
            "dtheta": "~uniform(-0.05, 0.05)",
            "theta": "-0.1±0.41",
        }
        dof = {"ls": 18, "d": 25.6, "dalpha": 50, "dtheta": 2}
        found = gradcli.propagate("ls + d - ls*(dalpha*theta + alpha*dtheta)", values, dof=dof, level=0.99)
        assert published(found.value, "50000838") == "50000838"
        assert published(found.u, "32") == "32"
        assert found.dof == pytest.approx(16.7, abs=0.1)
        assert published(found.k, "2.92") == "2.92"
        # The GUM multiplies rounded numbers.
        assert round(round(found.k, 2) * round(found.u)) == 93
        contributions = {each.name: published(each.contribution, "16.6") for each in found.budget}
        assert contributions == {
            "ls": "25.0", "d": "9.7", "alpha": "0.0", "dalpha": "2.9", "dtheta": "16.6", "theta": "0.0"
        }  # fmt: skip
        # H.1.7, where both terms of second order are added.
        assert published(found.second_order.u, "34") == "34"
        assert [warning.code for warning in found.warnings] == ["nonlinear"]

    def test_simultaneous_resistance_and_reactance(self, run, tmp_path):
        (tmp_path / "h2.csv").write_text(
            "V,I,phi\n5.007,19.663e-3,1.0456\n4.994,19.639e-3,1.0438\n5.005,19.640e-3,1.0468\n"
            "4.990,19.685e-3,1.0428\n4.999,19.678e-3,1.0433\n"
        )
        program = "V, I, phi = m; R = V/I*cos(phi); X = V/I*sin(phi); Z = V/I; [R, X, Z]"
        found = run("propagate", program, f"m=@{tmp_path}/h2.csv:all", "--json").json
        inputs = [(each["name"], each["value"], each["u"], each["dof"]) for each in found["budget"]["R"]]
        assert [(name, published(v, like), published(u, unit)) for (name, v, u, _), like, unit in zip(
            inputs, ("4.9990", "0.0196610", "1.04446"), ("0.0032", "0.0000095", "0.00075")
        )] == [("m[0]", "4.9990", "0.0032"), ("m[1]", "0.0196610", "0.0000095"), ("m[2]", "1.04446", "0.00075")]  # fmt: skip
        assert [dof for *_, dof in inputs] == [4.0, 4.0, 4.0]
        results = {name: (found["value"][name], found["u"][name]) for name in found["value"]}
        # The GUM prints 0.295 for X, from rounded uncertainties.
        assert {name: (published(v, "0.001"), published(u, "0.001")) for name, (v, u) in results.items()} == {
            "R": ("127.732", "0.071"), "X": ("219.847", "0.296"), "Z": ("254.260", "0.236")
        }  # fmt: skip
        covariance, u = found["covariance"], [found["u"][name] for name in "RXZ"]
        correlations = [covariance[i][j] / u[i] / u[j] for i, j in ((0, 1), (0, 2), (1, 2))]
        assert [published(r, "0.001") for r in correlations] == ["-0.588", "-0.485", "0.993"]

    def test_the_calibration_of_a_thermometer(self):
        found = gradcli.propagate(
            "y1 + y2*(t - 20)",
            {"y1": "-0.1712(29)", "y2": "0.00218(67)", "t": 30.0},
            correlation={"y1,y2": -0.930},
            dof={"y1": 9, "y2": 9},
        )
        assert (published(found.value, "0.1494"), published(found.u, "0.0041")) == ("-0.1494", "0.0041")
        assert found.dof == 9.0

    def test_the_measurement_of_activity(self):
        values = {"a": "0.1368(18)", "m": "5.0192(50)", "mx": "5.0571(10)"}
        rates = {"rx": "652.60(6.42)", "rs": "206.09(3.79)"}
        found = gradcli.propagate("a*m/mx*rx/rs", values | rates, correlation={("rx", "rs"): 0.646})
        assert (published(found.value, "0.430"), published(found.u, "0.0083")) == ("0.430", "0.0083")
        found = gradcli.propagate("a*m/mx*r", values | {"r": "3.170(46)"})
        assert (published(found.value, "0.4304"), published(found.u, "0.0084")) == ("0.4304", "0.0084")

    def test_days_of_a_voltage_standard(self, run, tmp_path):
        means = (172, 116, 13, 144, 106, 31, 60, 125, 163, 41)
        (tmp_path / "h5.csv").write_text("V\n" + "".join(f"{10 + mean * 1e-6:.6f}\n" for mean in means))
        found = run("propagate", "v", f"v=@{tmp_path}/h5.csv:V", "--json").json
        assert (published(found["value"], "10.000097"), published(found["u"] * 1e6, "18")) == ("10.000097", "18")
        assert found["dof"] == 9.0

    def test_the_hardness_of_a_block(self):
        # H.6.5: the mean depth of five indentations, the non-uniformity of the block, and the national standard, in mm.
        values = {"depth": "0.0720(0.00040)", "uneven": "0±0.00022", "standard": "0±0.0010", "unit": 0.002}
        found = gradcli.propagate("h = 100*unit - depth + uneven + standard; index = h/unit; [h, index]", values)
        assert (published(found.value["h"], "0.1280"), published(found.u["h"], "0.0011")) == ("0.1280", "0.0011")
        assert (published(found.value["index"], "64.0"), published(found.u["index"], "0.55")) == ("64.0", "0.55")


class TestSupplement1:
    @pytest.mark.parametrize(
        ("last", "u", "linear", "sampled"),
        [
            (["normal(0, 1)"] * 4, "2.00", 3.92, 3.92),
            (["uniform(-sqrt(3), sqrt(3))"] * 4, "2.00", 3.92, 3.88),
            (["uniform(-sqrt(3), sqrt(3))"] * 3 + ["uniform(-10*sqrt(3), 10*sqrt(3))"], "10.15", 19.89, 17.0),
        ],
    )
    def test_additive_models(self, last, u, linear, sampled):
        values = {name: f"~{text}" for name, text in zip("abcd", last)}
        found = gradcli.propagate("a + b + c + d", values, samples=1e6)
        assert (found.value, published(found.u, u)) == (0.0, u)
        assert found.interval == pytest.approx((-linear, linear), abs=0.005)
        assert found.monte_carlo.interval == pytest.approx((-sampled, sampled), abs=0.02)
        # Where one rectangular distribution dominates, the linear interval is not confirmed (9.2.4).
        assert (found.warnings is not None) == (sampled == 17.0)

    def test_the_calibration_of_a_weight(self):
        values = {
            "m": "100000.000(50)",
            "dm": "1.234(20)",
            "air": "~uniform(1.10, 1.30)",
            "w": "~uniform(7000, 9000)",
            "r": "~uniform(7950, 8050)",
        }
        found = gradcli.propagate("(m + dm)*(1 + (air - 1.2)*(1/w - 1/r)) - 100000", values, samples=1e6, shortest=True)
        assert (published(found.value, "1.2340"), published(found.u, "0.0539")) == ("1.2340", "0.0539")
        assert [published(end, "1.1285") for end in found.interval] == ["1.1285", "1.3395"]
        assert (published(found.second_order.mean, "1.2340"), published(found.second_order.u, "0.0750")) == (
            "1.2340", "0.0750"
        )  # fmt: skip
        assert published(found.monte_carlo.mean, "1.234") == "1.234"
        assert found.monte_carlo.u == pytest.approx(0.0754, abs=2e-4)
        assert found.monte_carlo.interval == pytest.approx((1.0834, 1.3825), abs=3e-3)
        assert [warning.code for warning in found.warnings] == ["nonlinear", "not_validated"]

    @pytest.mark.cases(3)
    @pytest.mark.parametrize(
        ("x1", "r", "linear", "second", "sampled"),
        [
            (0.000, 0.0, (0, 0), (50, 50), (50, 50, 0, 150)),
            (0.010, 0.0, (100, 100), (150, 112), (150, 112, 0, 367)),
            (0.050, 0.0, (2500, 500), (2550, 502), (2551, 502, 1590, 3543)),
            (0.000, 0.9, (0, 0), (50, 67), (50, 67, 0, 185)),
            (0.010, 0.9, (100, 100), (150, 121), (150, 121, 13, 398)),
            (0.050, 0.9, (2500, 500), (2550, 505), (2551, 505, 1628, 3555)),
        ],
    )
    def test_the_comparison_loss_of_a_power_meter(self, x1, r, linear, second, sampled):
        values = {"x1": (x1, 0.005), "x2": (0.0, 0.005)}
        found = gradcli.propagate("x1**2 + x2**2", values, correlation={"x1,x2": r}, samples=1e6, shortest=True)
        in_millionths = [round(1e6 * number) for number in (found.value, found.u)]
        assert tuple(in_millionths) == linear
        assert (round(1e6 * found.second_order.mean), round(1e6 * found.second_order.u)) == second
        drawn = (found.monte_carlo.mean, found.monte_carlo.u, *found.monte_carlo.interval)
        assert [1e6 * number for number in drawn] == [
            pytest.approx(number, abs=tolerance) for number, tolerance in zip(sampled, (1, 1, 10, 10))
        ]

    @pytest.mark.slow
    def test_the_calibration_of_a_gauge_block(self):
        values = {
            "ls": "50000623(25)",
            "d": "215±6",
            "d1": "0±4",
            "d2": "0±7",
            "alpha": "~uniform(9.5e-6, 13.5e-6)",
            "t0": "-0.1±0.2",
            "dt0": "~arcsine(-0.5, 0.5)",
            "dalpha": "~curvilinear(-1.0e-6, 1.0e-6, 0.1e-6)",
            "dtheta": "~curvilinear(-0.050, 0.050, 0.025)",
        }
        program = "ls + d + d1 + d2 - ls*(dalpha*(t0 + dt0) + alpha*dtheta) - 50000000"
        dof = {"ls": 18, "d": 24, "d1": 5, "d2": 8}
        found = gradcli.propagate(program, values, dof=dof, level=0.99, samples=1e6, shortest=True)
        assert (published(found.value, "838"), published(found.u, "32")) == ("838", "32")
        drawn = found.monte_carlo
        assert (published(drawn.mean, "838"), published(drawn.u, "36")) == ("838", "36")
        assert drawn.interval == pytest.approx((745, 932), abs=2)


class TestQuantifyingUncertaintyInAnalyticalMeasurement:
    """Appendix A of the EURACHEM/CITAC guide."""

    def test_a_calibration_standard(self):
        found = gradcli.propagate("1000*m*P/V", {"m": "100.28(5)", "P": "~uniform(0.9998, 1.0000)", "V": "100.00(7)"})
        assert (published(found.value, "1002.7"), published(found.u, "0.9")) == ("1002.7", "0.9")

    def test_the_standardisation_of_sodium_hydroxide(self):
        masses = {
            "C": "~uniform(12.0099, 12.0115)",
            "H": "~uniform(1.00787, 1.00801)",
            "O": "~uniform(15.9991, 15.9997)",
            "K": "~uniform(39.0982, 39.0984)",
        }
        values = {"rep": "1.0±0.0005", "m": "0.3888(0.00013)", "P": "~uniform(0.9995, 1.0005)", "V": "18.64(0.013)"}
        found = gradcli.propagate("M = 8*C + 5*H + 4*O + K; c = 1000*rep*m*P/(M*V); [M, c]", masses | values)
        assert (published(found.value["M"], "204.2212"), published(found.u["M"], "0.0038")) == ("204.2212", "0.0038")
        assert (published(found.value["c"], "0.10214"), published(found.u["c"], "0.00010")) == ("0.10214", "0.00010")
