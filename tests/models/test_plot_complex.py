"""Tests the pictures of complex values by `gradcli plot`: modulus and phase, and the complex plane."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli.errors import EvaluationError
from gradcli.models.plotting import by_matplotlib, by_plotext, charts

DIVIDER = "1/(1 + 1j*w*R*C)"


def phases_of(program, **options):
    """The phase in degrees of one curve, over its x."""
    (line,) = gradcli.plot(program, **options).chart().below.layers
    return np.asarray(line.x), np.asarray(line.y)


def test_modulus_and_phase_of_a_divider():
    """By its closed forms, also between the points, where lines are drawn."""
    made = gradcli.plot(DIVIDER, w=(1, 1e6), R=2000.0, C=1e-6, log="x,y")
    above = made.chart()
    (modulus,), (phase,) = above.layers, above.below.layers
    w = np.geomspace(1, 1e6, 10_001)
    log_w = np.log(w)
    size = np.exp(np.interp(log_w, np.log(modulus.x), np.log(modulus.y)))
    assert size == pytest.approx(1 / np.hypot(1, w * 2e-3), rel=0.02)
    assert np.interp(log_w, np.log(phase.x), phase.y) == pytest.approx(-np.degrees(np.arctan(w * 2e-3)), abs=0.2)
    assert (above.y, above.below.y, above.log, above.below.log) == ("modulus", "phase in degrees", "xy", "x")


def test_points_in_json(run):
    (curve,) = run("plot", DIVIDER, "w=1..1e6", "R=2000", "C=1e-6", "--log", "x", "--json").json["curves"]
    assert [*curve] == ["label", "order", "x", "value_re", "value_im"]
    found = np.asarray(curve["value_re"]) + 1j * np.asarray(curve["value_im"])
    assert found == pytest.approx(1 / (1 + 2e-3j * np.asarray(curve["x"])), rel=1e-13)
    assert (curve["x"][0], curve["x"][-1]) == (1.0, 1e6)


def test_the_phase_is_unwrapped():
    w, phase = phases_of("exp(-40j*w - w)", w=(0, 30))
    assert phase == pytest.approx(-np.degrees(40 * w), abs=1e-9)
    w, phase = phases_of("1/(1 + 1j*w)**3", w=(1e-3, 1e3), log="x")
    assert phase == pytest.approx(-3 * np.degrees(np.arctan(w)), abs=1e-9)
    _, phase = phases_of("1/(1j*w)", w=(0, 3))
    assert phase[np.isfinite(phase)] == pytest.approx(-90.0)


def test_a_phase_that_turns_too_often_is_refused():
    with pytest.raises(EvaluationError, match="the phase turns too often"):
        gradcli.plot("exp(1j*1e7*w)", w=(0, 3))


def test_zeros_of_an_array_of_antennas():
    """Its value is 0 up to rounding errors, and so is the derivative of its phase beside these places."""
    w, phase = phases_of("sum(exp(1j*w*x))", w=(0, 3), x=np.arange(10.0))
    between = np.abs(np.sin(5 * w)) > 1e-3
    expected = np.where(np.sin(5 * w) * np.sin(w / 2) > 0, 0.0, 180.0) + np.degrees(4.5 * w)
    error = (phase - expected)[between & np.isfinite(phase) & (w > 0)]
    assert np.abs((error + 180) % 360 - 180).max() < 1e-6


def test_a_notch_is_a_jump_of_the_phase():
    w, phase = phases_of("(1 - w**2)/(1 - w**2 + 0.3j*w)", w=(0, 3))
    before, after = phase[w < 1], phase[w > 1]
    assert before[np.isfinite(before)][-1] == pytest.approx(-90, abs=0.1)
    assert after[np.isfinite(after)][0] == pytest.approx(90, abs=0.1)
    assert np.isnan(phase[np.argmin(abs(w - 1))])


def test_derivatives_and_several_values():
    made = gradcli.plot(DIVIDER, w=(1, 100), R="1000,2000", C=1e-4, order=1)
    assert [curve.label for curve in made.curves] == ["R=1000", "d/dw, R=1000", "R=2000", "d/dw, R=2000"]
    curve = made.curves[1]
    assert curve.value == pytest.approx(-0.1j / (1 + 0.1j * curve.x) ** 2, rel=1e-12)


def test_the_complex_plane():
    """The curve of a divider is half a circle around 0.5."""
    made = gradcli.plot(DIVIDER, w=(1, 1e6), R=2000.0, C=1e-6, log="x", nyquist=True)
    chart = made.chart()
    (line,) = chart.layers
    assert abs(line.x + 1j * line.y - 0.5) == pytest.approx(0.5, rel=1e-12)
    assert (chart.x, chart.y, chart.log, chart.below) == ("real part", "imaginary part", "", None)
    assert min(line.y) == pytest.approx(-0.5, abs=1e-3)


def test_a_pole_does_not_hide_the_rest():
    chart = gradcli.plot("1/(1j*w)", w=(0, 3)).chart()
    assert chart.y_limits[1] < 10
    chart = gradcli.plot("1/(1j*w)", w=(0, 3), nyquist=True).chart()
    assert chart.y_limits[0] > -10


def test_pictures():
    made = gradcli.plot(DIVIDER, w=(1, 1e6), R="300,2000", C=1e-6, log="x")
    above, below = by_matplotlib.drawn(made.chart()).axes
    assert (above.get_ylabel(), below.get_ylabel(), below.get_xlabel()) == ("modulus", "phase in degrees", "w")
    assert (above.get_xscale(), below.get_xscale()) == ("log", "log")
    assert above.get_legend() is not None
    assert below.get_legend() is None
    assert len(below.lines) == 2
    lines = by_plotext.text(made.chart(), by_plotext.Style(50)).splitlines()
    frames = [line.index("┌") for line in lines if "┌" in line]
    assert frames == [frames[0]] * 2
    assert max(map(len, lines)) <= 50
    assert by_matplotlib.svg(gradcli.plot("0j*w", w=(0, 3)).chart()).startswith("<?xml")


def test_rounding_errors_are_no_gaps():
    for program in ("1/(1j*w)", "exp(1j*w)"):
        for nyquist in (False, True):
            (curve,) = gradcli.plot(program, w=(0.1, 30), nyquist=nyquist).curves
            assert np.isfinite(curve.value).all()


def test_a_range_is_found():
    (name, (low, high)), *_ = gradcli.plot("exp(1j*w)").ranges.items()
    assert name == "w"
    assert high - low > 6


MOBIUS = "(z**2 - 1)/(z**2 + 1)"


@pytest.mark.cases(1)
@pytest.mark.parametrize("ranges", [{"z": (-2 - 2j, 2 + 2j)}, {"x": (-2, 2), "y": (-2, 2)}])
def test_a_field_of_complex_values(ranges):
    """Over a range of complex numbers, or over those of both parts."""
    program = MOBIUS if "z" in ranges else f"z = x + 1j*y; {MOBIUS}"
    field = gradcli.plot(program, **ranges).field
    z = field.x + 1j * field.y[:, None]
    with np.errstate(all="ignore"):
        expected = (z**2 - 1) / (z**2 + 1)
    finite = np.isfinite(field.value)
    assert (~finite).sum() == 2
    assert field.value[finite] == pytest.approx(expected[finite], rel=1e-12)
    assert (field.x[0], field.x[-1], field.y[0], field.y[-1]) == (-2, 2, -2, 2)


def test_a_field_of_complex_values_in_json(run):
    found = run("plot", "z**2", "z=-2-1j..2+1j", "--json").json
    assert found["ranges"] == {"real(z)": [-2, 2], "imag(z)": [-1, 1]}
    assert [*found["field"]] == ["x", "y", "value_re", "value_im"]
    assert found["field"]["value_im"][0][0] == 4


def test_heights_over_complex_numbers():
    """The gradient of |z|**2."""
    field = gradcli.plot("abs(z)**2", z="-2-1j..2+1j").field
    x, y = np.meshgrid(field.x, field.y)
    assert field.value == pytest.approx(x**2 + y**2)
    assert field.dx == pytest.approx(2 * x)
    assert field.dy == pytest.approx(2 * y)


def test_hues():
    """Red, green and blue are a third of a turn apart; zeros are black, poles white."""
    z = np.asarray([[1, np.exp(2j * np.pi / 3), np.exp(-2j * np.pi / 3)], [0, np.inf, np.nan]])
    found = charts.rgb(z)
    assert found[0] == pytest.approx(np.eye(3))
    assert found[1] == pytest.approx(np.asarray([[0] * 3, [1] * 3, [0.5] * 3]))
    size = charts.rgb(np.geomspace(0.01, 100, 9))
    assert (np.diff(size.sum(-1)) > 0).all()


def test_pictures_of_a_field():
    chart = gradcli.plot(MOBIUS, z="-2-2j..2+2j").chart()
    axes, bar = by_matplotlib.drawn(chart).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("real(z)", "imag(z)")
    assert (axes.get_xlim(), axes.get_ylim()) == ((-2, 2), (-2, 2))
    (image,) = axes.images
    # The angle is 0 for large real numbers, and 180 degrees at 0: cyan.
    red, cyan = image.get_array()[90, 240], image.get_array()[90, 120]
    assert red[0] > 0.5 > red[1] == red[2]
    assert cyan[0] < 0.5 < cyan[1] == cyan[2]
    assert "angle in degrees" in bar.get_ylabel()
    for style, words in (
        (by_plotext.Style(60), ["→", "↖", "from 0 in steps of 45 degrees: the angle of"]),
        (by_plotext.Style(60, unicode=False), ["4", "01234567"]),
        (by_plotext.Style(60, colors=True), ["█", "\x1b["]),
        (by_plotext.Style(60, colors=True, unicode=False), ["########"]),
    ):
        text = by_plotext.text(chart, style)
        assert all(word in text for word in words)
        assert style.colors or max(map(len, text.splitlines())) <= 60


def test_the_directions_on_a_terminal_turn_around_a_zero():
    """Once as the angle does: z itself points away from 0 everywhere."""
    lines = by_plotext.text(gradcli.plot("z", z="-1-1j..1+1j").chart(), by_plotext.Style(60)).splitlines()
    rows = [line.split("┤" if "┤" in line else "│")[1].rstrip("│") for line in lines if line.rstrip().endswith("│")]
    middle = rows[len(rows) // 2]
    assert (middle[0], middle[-1]) == ("←", "→")
    assert (rows[0][0], rows[0][-1], rows[-1][0], rows[-1][-1]) == ("↖", "↗", "↙", "↘")
    assert (rows[0][len(middle) // 2], rows[-1][len(middle) // 2]) == ("↑", "↓")


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exp(1j*w); cos(w)", "w=0..3"], "some of the curves are complex, and others real"),
        (["cos(w)", "w=0..3", "--nyquist"], "a real value has no curve in the complex plane"),
        (["z**2", "z=-1-1j..1+1j", "--order", "1"], "--order is for one range"),
        (["z**2", "z=-1-1j..1+1j", "--log", "z"], "--log z is for real values"),
        (["z*w", "z=-1-1j..1+1j", "w=0..3"], "there are 3 ranges: w, real(z), imag(z)"),
        (["z", "z=-1-1j..1-1j"], "write z=-2-2j..2+2j, from the lower left corner to the upper right one"),
        (["z", "z=0..inf*1j"], "an end of a range must be finite"),
        (["1/0*z", "z=-1-1j..1+1j"], "the value is nowhere finite"),
        (["z", "z=-1-1j..1+1j", "--xlim", "0..1+1j"], "--xlim '0..1+1j' is no range"),
        pytest.param(["floor(z)", "z=-1-1j..1+1j"], "  | floor(z)\n  | ^^^^^^^^", marks=pytest.mark.slow),
        (["w*x", "w=0..3", "x=0..1", "--nyquist"], "--nyquist is for one range"),
        (["exp(1j*w)", "w=0..3", "--nyquist", "--log", "y"], "--log y is not for the complex plane"),
        (["exp(1j*w)", "w=0..3", "--data", "{data}"], "--data is for real values"),
        (["exp(1j*w)", "w=0..3", "--nyquist", "--data", "{data}"], "--data is not for the complex plane"),
        (["1j/0*w", "w=1..3"], "the value is nowhere finite"),
        (["1j/0*w", "w=1..3", "--nyquist"], "the value is nowhere finite"),
    ],
)
def test_what_is_not_drawn(run, tmp_path, words, message):
    data = tmp_path / "points.csv"
    data.write_text("w,z\n1,2\n2,3\n")
    done = run("plot", *(word.format(data=data) for word in words))
    assert done.status
    assert message in done.err
