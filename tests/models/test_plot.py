"""Tests `gradcli plot` and `gradcli.plot`: the points of curves and fields, and their drawings."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, CallError, EvaluationError, GradcliError, ShapeError, UsageError
from gradcli.models.plotting import by_matplotlib, by_plotext
from gradcli.models.plotting.refinement import MOST_EVALUATIONS


def curve_of(program, over, **options):
    (curve,) = gradcli.plot(program, {"x": over}, **options).curves
    return curve.x, curve.y


def gaps_of(x, y):
    """The midpoints of the gaps in a curve."""
    at = np.flatnonzero(np.isnan(y))
    return (x[at - 1] + x[at + 1]) / 2


# --- points of curves


@pytest.mark.parametrize(
    ("program", "low", "high", "function"),
    [
        ("sin(x)", 0.0, 20.0, np.sin),
        ("exp(x)", 0.0, 700.0, np.exp),
        ("tanh(1e6*x)", -1.0, 1.3, lambda x: np.tanh(1e6 * x)),
        ("1/(x**2 + 1e-12)", -1.0, 1.1, lambda x: 1 / (x**2 + 1e-12)),
        ("abs(x - 0.3)", 0.0, 1.0, lambda x: abs(x - 0.3)),
        ("cbrt(x)", -1.0, 1.3, np.cbrt),
        ("sin(40*x)", 0.0, 20.0, lambda x: np.sin(40 * x)),
        ("exp(-((x - 3.3)/0.05)**2)", 0.0, 20.0, lambda x: np.exp(-(((x - 3.3) / 0.05) ** 2))),
    ],
)
def test_lines_between_the_points_follow_a_curve(program, low, high, function):
    x, y = curve_of(program, (low, high))
    assert (x[0], x[-1]) == (low, high)
    assert np.isfinite(y).all()
    assert len(x) < 10_000
    everywhere = np.linspace(low, high, 100_003)
    # A steep part must be right to less than one dot sideways.
    dot = (high - low) / 2000
    near = np.stack([function(everywhere + step) for step in np.linspace(-dot, dot, 9)])
    drawn = np.interp(everywhere, x, y)
    height = np.ptp(y)
    assert (drawn <= near.max(0) + 0.003 * height).all()
    assert (drawn >= near.min(0) - 0.003 * height).all()


def test_points_stand_where_a_curve_bends():
    x, _ = curve_of("1/(1 + (20*x)**2)", (-4.0, 4.0))
    assert np.diff(x).max() / np.diff(x).min() >= 8


@pytest.mark.parametrize(
    ("program", "low", "high", "poles"),
    [
        ("tan(x)", 0.0, 20.0, np.pi * (np.arange(6) + 0.5)),
        ("1/x", -1.0, 1.0, [0.0]),
        ("1/(x - 1/3)", -1.0, 1.2, [1 / 3]),
        ("1/(x - 1/3)**2", -1.0, 1.2, [1 / 3]),
        ("gamma(x)", -3.5, 4.0, [-3.0, -2.0, -1.0, 0.0]),
        ("1/x + 0.02/(x - 0.6)", -1.0, 1.0, [0.0, 0.6]),
    ],
)
def test_a_pole_is_a_gap(program, low, high, poles):
    made = gradcli.plot(program, {"x": (low, high)})
    (curve,) = made.curves
    np.testing.assert_allclose(gaps_of(curve.x, curve.y), poles, atol=1e-9)
    # The neighbourhood of a gap is visible.
    below, above = made.view
    seen = np.isfinite(curve.y) & (curve.y >= below) & (curve.y <= above)
    assert seen.mean() > 0.5
    assert above - below < 300
    axes = by_matplotlib.drawn(made.chart()).axes[0]
    assert axes.get_ylim() == made.view
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), curve.y)


def test_the_poles_of_many_periods_are_gaps():
    x, y = curve_of("tan(x)", (0.0, 1000.0))
    np.testing.assert_allclose(gaps_of(x, y), np.pi * (np.arange(318) + 0.5), atol=1e-6)


@pytest.mark.parametrize(
    ("program", "low", "high", "jumps"),
    [
        ("floor(x)", 0.0, 5.3, [1, 2, 3, 4, 5]),
        ("x - floor(x)", 0.0, 3.1, [1, 2, 3]),
        ("where(x < 0.37, x, x**2 + 3)", 0.0, 1.0, [0.37]),
        ("if x < 1/3 { 0 } else { 1 }", 0.0, 1.0, [1 / 3]),
        ("sign(x)", -1.0, 2.1, [0.0]),
    ],
)
def test_a_jump_is_a_gap_and_hides_nothing(program, low, high, jumps):
    made = gradcli.plot(program, {"x": (low, high)})
    (curve,) = made.curves
    np.testing.assert_allclose(gaps_of(curve.x, curve.y), jumps, atol=1e-9)
    assert made.view is None


@pytest.mark.parametrize(
    ("program", "low", "high", "begin", "end"),
    [
        ("sqrt(x)", -1.0, 1.0, 0.0, 1.0),
        ("sqrt(x)", -1.3, 1.0, 0.0, 1.0),
        ("acos(x)", -2.0, 2.5, -1.0, 1.0),
        ("log(x)", -0.7, 1.0, 0.0, 1.0),
        ("sqrt(-x)", 0.0, 1.0, 0.0, 0.0),
    ],
)
def test_a_curve_reaches_the_ends_of_its_domain(program, low, high, begin, end):
    x, y = curve_of(program, (low, high))
    np.testing.assert_allclose([x[0], x[-1]], [begin, end], atol=1e-12)
    assert np.isfinite(y).all()


@pytest.mark.parametrize("program", ["sin(1/x)", "sin(1e6*x)", "tan(1e5*x)", "x*sin(1/x)"])
def test_points_are_bounded(program):
    x, _ = curve_of(program, (-1.0, 1.0))
    assert len(x) <= 2 * MOST_EVALUATIONS


def test_what_has_no_derivative_is_drawn_all_the_same():
    x, y = curve_of("nextafter(x, 2)", (0.0, 1.0))
    np.testing.assert_allclose(x, y, atol=1e-9)
    x, y = curve_of("detach(x)**2", (0.0, 1.0))
    np.testing.assert_allclose(y, x**2)


# --- several curves


def test_derivatives_are_exact():
    value, first, second = gradcli.plot("x**3 - x", {"x": "-2..2"}, order=2).curves
    assert [c.label for c in (value, first, second)] == ["x**3 - x", "d/dx", "d2/dx2"]
    np.testing.assert_allclose(value.y, value.x**3 - value.x, atol=1e-14)
    np.testing.assert_allclose(first.y, 3 * first.x**2 - 1, atol=1e-14)
    np.testing.assert_allclose(second.y, 6 * second.x, atol=1e-14)


def test_a_list_has_a_curve_for_each_value(run):
    made = run("plot", "exp(-k*x + b)", "x=0..5", "k=0.1,0.2, 1/2", "b=0,1", "--order", "1", "--json").json
    assert made["ranges"] == {"x": [0.0, 5.0]}
    assert [(c["order"], c["values"]) for c in made["curves"]] == [
        (order, {"k": k, "b": b}) for k in (0.1, 0.2, 0.5) for b in (0, 1) for order in (0, 1)
    ]
    assert made["curves"][3]["label"] == "d/dx, k=0.1, b=1"
    last = made["curves"][-1]
    np.testing.assert_allclose(last["y"], -0.5 * np.exp(1 - 0.5 * np.array(last["x"])))


def test_values_may_be_tensors(run):
    (curve,) = run("plot", "sum(w*x)", "x=-pi..pi", "w=[1,2]", "--json").json["curves"]
    np.testing.assert_allclose(curve["y"], 3 * np.array(curve["x"]))
    assert (curve["x"][0], curve["x"][-1]) == (-np.pi, np.pi)
    assert "values" not in curve


def test_gaps_in_json_are_nan(run):
    (curve,) = run("plot", "1/x", "x=-1..1", "--json").json["curves"]
    assert curve["y"].count("NaN") == 1


# --- logarithmic axes


def test_logarithmic_axes_have_points_all_along_them():
    x, y = curve_of("1/(1 + x**2)", (1e-3, 1e3), log="x,y")
    assert (x[0], x[-1]) == (1e-3, 1e3)
    np.testing.assert_allclose(y, 1 / (1 + x**2))
    assert (x < 0.01).sum() > 10
    axes = by_matplotlib.drawn(gradcli.plot("x**2", {"x": (1, 10)}, log="y").chart()).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")


def test_along_a_logarithmic_axis_there_is_what_is_above_0():
    x, y = curve_of("x", (-1.0, 1.0), log="y")
    assert 0 <= x[0] < 1e-12
    assert (y > 0).all()


def test_points_that_have_no_place_on_a_logarithmic_axis_are_told_and_change_nothing(run, tmp_path):
    random = np.random.default_rng(0)
    for count in (3, 6_000):
        path = tmp_path / f"{count}.csv"
        np.savetxt(path, -random.uniform(1, 2, (count, 2)), delimiter=",", header="t,y", comments="")
        words = ("plot", "1/t", "t=0.5..5", "--log", "y", "--data", str(path))
        drawn = run(*words)
        assert drawn.status == 0
        assert drawn.err == f"{count:,} points of the data are not above 0 and have no place on a logarithmic axis\n"
        assert "points" not in drawn.out
        by_matplotlib.drawn(gradcli.plot("1/t", {"t": (0.5, 5)}, log="y", data=str(path)).chart())
    assert run(*words, "--quiet").err == ""
    # Nor do they extend the view of a pole.
    data = {"x": [1.0, 2.0, 3.0], "y": [-2.5, 4.0, 0.0]}
    made = gradcli.plot("1/x**2", {"x": (-1, 4)}, log="y", data=data)
    low, high = by_matplotlib.drawn(made.chart()).axes[0].get_ylim()
    assert 0.01 < low < high < 1e3


def test_a_logarithmic_axis_reaches_as_far_as_numbers_do(tmp_path):
    made = gradcli.plot("exp(x)", {"x": (-700, 700)}, log="y")
    axes = by_matplotlib.drawn(made.chart()).axes[0]
    low, high = axes.get_ylim()
    assert low < 1e-303
    assert high > 1e303
    marks = np.log10(axes.get_yticks())
    assert (marks == np.arange(-300, 301, 100)).all()
    made.save(str(tmp_path / "f.png"))


# --- fields


def test_a_field_has_values_and_gradients(run):
    field = run("plot", "sin(x)*y**2", "x=0..20", "y=0..5", "--json").json["field"]
    x, y = np.meshgrid(field["x"], field["y"])
    assert (x[0, 0], x[0, -1], y[0, 0], y[-1, 0]) == (0, 20, 0, 5)
    np.testing.assert_allclose(field["value"], np.sin(x) * y**2, atol=1e-14)
    np.testing.assert_allclose(field["dx"], np.cos(x) * y**2, atol=1e-14)
    np.testing.assert_allclose(field["dy"], np.sin(x) * 2 * y, atol=1e-14)


def test_the_colours_of_a_field_are_cut_at_a_pole_and_not_at_a_peak():
    pole = gradcli.plot("1/(x - y)", {"x": (-1, 1), "y": (-1, 1)})
    assert -50 < pole.view[0] < pole.view[1] < 50
    peak = gradcli.plot("exp(-200*(x**2 + y**2))", {"x": (-5, 5), "y": (-5, 5)})
    assert peak.view is None
    mesh = by_matplotlib.drawn(pole.chart()).axes[0].collections[0]
    assert mesh.get_clim() == pole.view


def test_arrows_stand_where_there_is_a_value():
    field, *_ = gradcli.plot("log(x*y)", {"x": (-2, 2), "y": (-1, 1)}).chart().layers
    assert field.arrows.x.size > 100
    assert (field.arrows.x * field.arrows.y > 0).all()


# --- points from a file


def test_points_are_drawn_with_their_curve(run, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("id,t,y\n1,0,2\n2,1,\n3,2,0.3\n")
    result = run("plot", "2*exp(-t)", "t=0..3", "--data", str(path), "--json")
    assert result.json["points"] == {"label": ["t", "y"], "x": [0.0, 2.0], "y": [2.0, 0.3], "left_out": 1}
    assert result.err == "1 rows of the data lack a number and are left out\n"
    chosen = run("plot", "2*x", "x=0..3", "--data", f"{path}:id,t", "--json", "--quiet")
    assert chosen.json["points"]["x"] == [1, 2, 3]
    assert chosen.err == ""
    piped = run("plot", "2*t", "t=0..3", "--data", "-", "--json", stdin="t,v\n1,5\n")
    assert piped.json["points"]["y"] == [5.0]


# --- axes and legends


@pytest.mark.parametrize("log", ["", "x"])
def test_the_axis_of_a_range_is_the_range(log):
    chart = gradcli.plot("sqrt(x - 2)", {"x": (1, 5)}, log=log).chart()
    np.testing.assert_allclose(by_matplotlib.drawn(chart).axes[0].get_xlim(), (1, 5))
    below = by_plotext.text(chart, by_plotext.Style()).splitlines()[-2].split()
    assert (below[0], below[-1]) == ("1", "5")
    # Points outside the range of the curve are visible and complete.
    low, high = (
        by_matplotlib.drawn(gradcli.plot("x", {"x": (1, 5)}, data={"x": [0.5, 8.0], "y": [1.0, 1.0]}).chart())
        .axes[0]
        .get_xlim()
    )
    assert low < 0.5 < 8 < high


def test_the_derivatives_of_a_choice_have_its_colour():
    chart = gradcli.plot("k*x**3", {"x": (0, 1), "k": "1,2"}, order=2).chart()
    lines = by_matplotlib.drawn(chart).axes[0].lines
    first, second = lines[:3], lines[3:]
    assert [len({line.get_color() for line in group}) for group in (first, second)] == [1, 1]
    assert first[0].get_color() != second[0].get_color()
    assert [line._dash_pattern for line in first] == [line._dash_pattern for line in second]
    assert len({str(line._dash_pattern) for line in first}) == 3


def test_many_curves_are_told_apart_beside_a_legend_that_leaves_them_room(run):
    made = gradcli.plot("x + k", {"x": (0, 1), "k": ",".join(map(str, range(40)))})
    figure = by_matplotlib.drawn(made.chart())
    axes = figure.axes[0]
    assert len({tuple(line.get_color()) for line in axes.lines}) == 40
    figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    assert legend.x0 >= axes.bbox.x1
    assert axes.bbox.width > 0.6 * figure.bbox.width
    assert axes.bbox.height > 0.7 * figure.bbox.height
    text = by_plotext.text(made.chart(), by_plotext.Style(200))
    marks = re.findall(r"(\S) k=\d", text)
    assert len(marks) == len({*marks}) == 40


@pytest.mark.parametrize(
    ("program", "log", "texts"),
    [
        ("1e-300*x", "", ["5e-300", "4e-300", "1e-300", "0"]),
        ("x*1e-5", "", ["5e-05", "1e-05", "0"]),
        ("1e10 + x", "", ["10000000005", "10000000004", "10000000000"]),
        ("(x - 2.5)*4e6", "", ["1e+07", "5e+06", "0", "-5e+06", "-1e+07"]),
        ("x/10", "", ["0.5", "0.4", "0.0"]),
        ("1 + x*1e-5", "y", ["1.00005", "1.00004", "1.00000"]),
        ("3 + 12*x", "y", ["60", "30", "20", "10"]),
        ("10**x", "y", ["100000", "100", "10", "1"]),
    ],
)
def test_ticks_have_the_digits_that_tell_them_apart(program, log, texts):
    text = by_plotext.text(gradcli.plot(program, {"x": (0, 5)}, log=log).chart(), by_plotext.Style())
    found = [line.split("┤")[0].strip() for line in text.splitlines() if "┤" in line]
    assert [t for t in found if t in texts] == texts
    assert len({*found}) == len(found)


def test_labels_have_the_digits_that_tell_values_apart():
    def labels(k):
        return [curve.label for curve in gradcli.plot("sum(k)*x", {"x": (0, 1), "k": k}).curves]

    assert labels("0.1,1/3,1e6") == ["k=0.1", "k=0.333333", "k=1e+06"]
    assert labels("1000000,1000001") == ["k=1000000", "k=1000001"]
    long = labels(f"[1,2],{[0.125] * 1000}")
    assert long[0] == "k=[1.0, 2.0]"
    assert long[1].endswith("…")
    assert len(long[1]) == 60


def test_a_value_at_one_place_alone_is_a_dot():
    chart = gradcli.plot("sqrt(-x**2)", {"x": (-1, 1)}).chart()
    dot = by_matplotlib.drawn(chart).axes[0].lines[-1]
    assert (dot.get_marker(), dot.get_xydata().tolist()) == ("o", [[0.0, 0.0]])
    text = by_plotext.text(chart, by_plotext.Style())
    assert sum("⠀" < c <= "⣿" for c in text) == 1


# --- drawn as text


def test_a_curve_is_drawn_on_80_columns(run):
    result = run("plot", "sin(x)", "x=0..20")
    assert result.status == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert max(map(len, lines)) == 80
    assert "\x1b" not in result.out
    assert sum(any("⠀" < c <= "⣿" for c in line) for line in lines) > 15


def test_curves_without_colours_are_told_by_characters(run):
    out = run("plot", "k*x", "x=0..1", "k=1,2,-1").out
    assert all(mark in out for mark in ("* k=1", "+ k=2", "o k=-1"))


class Terminal:
    """A terminal with a known or unknown number of columns."""

    def __init__(self, run, columns):
        self.columns = columns

    def draw(self, *words, variables=None, encoding="utf-8"):
        import io

        from gradcli.cli.main import main
        from gradcli.cli.process.environment import Environment

        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        stream.isatty = lambda: True
        known = {"COLUMNS": str(self.columns)} if self.columns else {}
        assert main(words, Environment(io.StringIO(), stream, io.StringIO(), known | (variables or {}))) == 0
        stream.seek(0)
        return stream.read()


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.mark.parametrize("columns", [None, 50, 133, 3])
def test_a_terminal_has_colours_and_its_own_width(run, columns):
    out = Terminal(run, columns).draw("plot", "k*x", "x=0..1", "k=1,2")
    assert "\x1b[" in out
    widest = max(len(line.rstrip()) for line in plain(out).splitlines())
    assert widest == {None: 80, 3: 32}.get(columns, columns)
    out = Terminal(run, columns).draw("plot", "sin(x)*cos(y)*1e5 + 0*x", "x=0..1", "y=0..2")
    assert max(len(line.rstrip()) for line in plain(out).splitlines()) == widest


def test_no_color_is_heeded_and_ascii_is_enough(run):
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in Terminal(run, 80).draw("plot", "x", "x=0..1", variables=variables)


def test_a_field_is_drawn_with_shades_and_arrows(run):
    lines = run("plot", "x + 2*y", "x=0..1", "y=0..1").out.splitlines()
    assert lines[1].startswith("1.0┤###")
    assert lines[1].endswith("@@@│")
    assert lines[20].startswith("0.0┤...")
    assert lines[-1] == "  .:-=+*#%@ x + 2*y: 0 to 3"
    # Arrows point uphill in the picture, which is wider than high.
    assert sum(line.count("↑") for line in lines) == 35
    assert not any(arrow in line for line in lines for arrow in "→↗↖←↙↓↘")


def test_a_million_points_are_drawn_as_shades():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 1_000_000))
    chart = gradcli.plot("x", {"x": (-3, 3)}, data={"x": x, "y": y}).chart()
    text = by_plotext.text(chart, by_plotext.Style())
    assert "x, y: 1,000,000 points, 1 to " in text
    assert text.count("@") > 20
    figure = by_matplotlib.drawn(chart)
    assert figure.axes[0].collections[0].get_array().sum() == 1_000_000


def test_lines_are_drawn_by_what_is_seen_of_them_in_a_column():
    x = np.r_[np.linspace(0, 0.5, 50_001), np.linspace(0.5, 1, 50_001)]
    y = np.abs(np.sin(1e4 * x))
    found_x, found_y, begins = by_plotext.thinned(x, y, [0, 50_001], 100)
    assert len(found_x) <= 4 * 103
    for low in np.arange(100) / 100:
        here, there = ((x >= low) & (x < low + 0.01)), ((found_x >= low) & (found_x < low + 0.01))
        assert (y[here].min(), y[here].max()) == (found_y[there].min(), found_y[there].max())
    assert (found_x[begins[1] - 1], found_x[begins[1]]) == (0.5, 0.5)
    assert (found_x[0], found_x[-1]) == (0, 1)


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "program", ["1e300*x**3", "1e-300*x", "1e308*tan(x)", "3 + 0*x", "1e-320*x", "1e15 + x", "-1/x**8"]
)
@pytest.mark.parametrize("columns", [32, 80])
def test_strange_heights_are_drawn(program, columns):
    chart = gradcli.plot(program, {"x": (-1, 7)}).chart()
    assert len(by_plotext.text(chart, by_plotext.Style(columns)).splitlines()) >= 12
    by_matplotlib.drawn(chart).draw_without_rendering()


# --- files


def test_a_picture_is_saved(run, tmp_path):
    for format, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        path = tmp_path / f"f.{format}"
        result = run("plot", "tan(x)", "x=0..7", "--output", str(path))
        assert (result.status, result.out, result.err) == (0, "", "")
        assert path.read_bytes().startswith(begins)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.pdf", "f.png", "f.svg"]
    failed = run("plot", "x", "x=0..1", "--output", str(tmp_path / "no" / "f.png"))
    assert failed.status == 1
    assert "cannot write" in failed.err


def test_a_command_with_limits_saves_all_its_files(run, tmp_path):
    trace, picture = tmp_path / "t.csv", tmp_path / "p.png"
    words = ("--trace", str(trace), "--plot", str(picture), "--max-seconds", "60")
    assert run("minimize", "x**2", "x=1", *words).status == 0
    assert trace.read_bytes().startswith(b"iteration,")
    assert b"PNG" not in trace.read_bytes()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_libraries_that_draw_are_loaded_by_who_draws():
    code = (
        "import sys; from gradcli.cli.main import main; from gradcli.cli.process.environment import Environment;"
        "main(['plot', 'x', 'x=0..1', '--json'], Environment.of_process());"
        "main(['eval', 'x', 'x=0'], Environment.of_process());"
        "print([m for m in ('matplotlib', 'plotext') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize(("library", "words"), [("plotext", ()), ("matplotlib", ("--output", "f.png"))])
def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(library, words, run, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    result = run("plot", "x", "x=0..1", *words)
    assert result.status == 1
    assert library in result.err.lower()
    assert "install" in result.err.splitlines()[-1]


# --- errors


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["x*y"], "there is no range to plot over", "x=0..20"),
        (["k*x", "k=2", "x=1"], "there is no range to plot over", "k=0..20"),
        (["x*y*z", "x=0..1", "y=0..1", "z=0..1"], "there are 3 ranges: x, y, z", "two for a field"),
        (["x", "x=1..1"], "there is nothing in this range", "x=0..20"),
        (["x", "x=1..0"], "there is nothing in this range", "lower number"),
        (["x", "x=..1"], "this is no range", "x=0..20"),
        (["x", "x=0..1..2"], "'1..2' is not a number", ""),
        (["x", "x=0..1/0"], "an end of a range must be finite", ""),
        (["x", "x=-1e308..1e308"], "the range of 'x' is too wide or too narrow to draw", "1e+300"),
        (["x", "x=1..1+1e-12"], "the range of 'x' is too wide or too narrow to draw", "1e-10"),
        (["x", "x=0..[1]"], "an end of a range is a number", ""),
        (["x", "x=0..1", "--output", "a.gif"], "'a.gif' does not end in .png, .svg, .pdf", "write 'a.png'"),
        (["x", "x=0..1", "--output", "a"], "'a' does not end in .png, .svg, .pdf", "'a.png'"),
        (["x", "x=0..1", "--log", "q"], "there is no logarithmic axis 'q'", "--log x,y"),
        (["x", "x=0..1", "--log", "z"], "--log z is for the colours over two ranges", "--log x,y"),
        (["x + y", "x=0..1", "y=0..1", "--log", "x"], "--log is for one range", ""),
        (["-x - y", "x=0..1", "y=0..1", "--log", "z"], "the value is nowhere above 0", ""),
        (["x; x*y", "x=0..1", "y=0..1"], "2 formulas are for one range", ""),
        (["x*y", "x=0..1", "y=0..1", "--xlim", "0..1"], "the ends of both axes are the two ranges", ""),
        (["x", "x=0..1", "--size", "8x5"], "--size is for a saved picture", "--output"),
        (["x", "x=0..1", "--dpi", "100"], "--dpi is for a saved picture", "--output"),
        (["x", "x=0..1", "--output", "a.png", "--size", "8"], "--size '8' is no size", "8x5"),
        (["x", "x=0..1", "--output", "a.png", "--size", "0x5"], "--size '0x5' is no size", "8x5"),
        (["x", "x=0..1", "--output", "a.png", "--size", "100x100", "--dpi", "200"], "20,000 dots is too large", ""),
        (["x", "x=0..1", "--ylim", "5"], "--ylim '5' is no range", "0..20"),
        (["x", "x=0..1", "--ylim", "5..1"], "there is nothing in this range", ""),
        (["x", "x=0.1..1", "--log", "y", "--ylim", "0..1"], "a logarithmic axis begins above 0", "--ylim"),
        (["x", "x=0..1", "--log", "x"], "a logarithmic axis begins above 0", "x=0.001..20"),
        (["x*k", "x=0..1"], "unknown name 'k'", "k=1"),
        (["x", "x=0..1", "k=2"], "the program does not read 'k'", ""),
        (["x + y", "x=0..1", "y=0..1", "--order", "1"], "--order is for one range", ""),
        (["x + y*k", "x=0..1", "y=0..1", "k=1,2"], "a list of values is for one range", ""),
        (["x*ones(2)", "x=0..1"], "a curve is of numbers, and the value has shape [2]", "sum"),
        (["k*x", "x=0..1", "k=[1,2]"], "a curve is of numbers, and the value has shape [2]", "k=1,2 without brackets"),
        (["k*x", "x=0..1", "k=" + ",".join(["1"] * 51)], "there are 51 curves, more than 50", ""),
    ],
)
def test_errors_of_usage(words, message, hint, run):
    result = run("plot", *words)
    assert result.out == ""
    assert message in result.err.splitlines()[0]
    assert hint in result.err


def test_a_program_that_goes_on_is_stopped_at_its_first_point(run):
    result = run("plot", "while x > 0 { x = x - 1e-9 }; x", "x=0..5", "--max-steps", "10000")
    assert result.status == 1
    assert "takes more than 10,000 steps" in result.err
    # A limit error is not shown as a gap either.
    late = run("plot", "while x > 4 { x = x*1 }; x", "x=0..5", "--max-steps", "1000")
    assert "takes more than 1,000 steps" in late.err


def test_standard_input_is_read_once(run):
    result = run("plot", "-", "x=0..1", "--data", "-", stdin="x")
    assert "--data and the program cannot both be standard input" in result.err


def test_where_nothing_is_finite_nothing_is_drawn(run):
    result = run("plot", "log(x)", "x=-2..-1")
    assert result.status == 1
    assert "nothing to be seen" in result.err
    with pytest.raises(EvaluationError, match="nothing to be seen"):
        gradcli.plot("log(x*y)", {"x": (-2, -1), "y": (1, 2)})


def test_errors_in_python():
    for values, error in (({"x": 1}, UsageError), ({"x": (2, 1)}, BindingError), ({"x": "0.."}, BindingError)):
        with pytest.raises(error):
            gradcli.plot("x", values)
    with pytest.raises(ShapeError, match="a curve is of numbers"):
        gradcli.plot("x*ones(2)", {"x": (0, 1)})
    for wrong in ({"program": 3}, {"log": None}, {"output": 3}, {"order": "1"}, {"order": -1}, {"max_steps": 0}):
        with pytest.raises(GradcliError):
            gradcli.plot(wrong.pop("program", "x"), x=(0, 1), **wrong)
    for values in (3, [("x", (0, 1))], "x"):
        with pytest.raises(CallError, match="is a mapping of names"):
            gradcli.plot("x", values)
    for path in (3, None):
        with pytest.raises(CallError, match="'path' is"):
            gradcli.plot("x", x=(0, 1)).save(path)
    for value in ("a..1", (0, "a"), (0, None), "0,", object()):
        with pytest.raises(GradcliError):
            gradcli.plot("x*y", x=(0, 1), y=value)
    with pytest.raises(BindingError, match="does not read 'q'"):
        gradcli.plot("x", x=(0, 1), q=2)
    with pytest.raises(BindingError, match="two columns"):
        gradcli.plot("x", {"x": (0, 1)}, data={"x": [1.0]})


def test_a_range_with_a_colon_is_shown_as_one_with_dots(run):
    outcome = run("plot", "x", "x=0:2*pi")
    assert outcome.status == 2
    assert "hint: write 0..2*pi" in outcome.err
    assert "2*pi\n  |   ^^^^^^" in outcome.err


# --- several formulas, and ranges that are found


@pytest.mark.parametrize("program", ["sin(x); x^2", "[sin(x), x^2]", "sin(x), x^2", "y = x^2; [sin(x), y]"])
def test_several_formulas_have_a_curve_each(program, run):
    found = run("plot", program, "x=0..2", "--json").json
    assert len(found["curves"]) == 2
    for curve, function in zip(found["curves"], (np.sin, np.square)):
        np.testing.assert_allclose(curve["y"], function(np.asarray(curve["x"])), atol=1e-12)
    assert [curve["label"] for curve in found["curves"]] == ["sin(x)", "y" if "y" in program else "x^2"]


def test_formulas_have_derivatives_and_values_of_their_own(run):
    found = run("plot", "k*x; x**2; 3", "x=0..2", "k=1,2", "--order", "1", "--json").json
    labels = [curve["label"] for curve in found["curves"]]
    assert labels == ["k*x, k=1", "d/dx k*x, k=1", "k*x, k=2", "d/dx k*x, k=2", "x**2", "d/dx x**2", "3", "d/dx 3"]
    assert {*found["curves"][6]["y"]} == {3.0}
    many = run("plot", ";".join(["x"] * 51), "x=0..1")
    assert "there are 51 curves, more than 50" in many.err


@pytest.mark.parametrize(
    ("program", "low", "high"),
    [
        ("sin(x)", -8, 8),
        ("sin(100*x)", -0.08, 0.08),
        ("x**3 - 3*x", -3, 3),
        ("exp(-x**2/2)", -5, 5),
        ("log(x)", 0, 5),
        ("sqrt(1 - x**2)", -1, 1),
        ("sqrt(x - 5)", 5, 10),
        ("60*exp(-x/20)", -100, 100),
        ("x", -5, 5),
        ("3 + 0*x", -5, 5),
        ("abs(x - 20)", -30, 30),
        ("sin(x); (x - 1)*(x - 20)", -50, 50),
    ],
)
def test_a_range_is_found_where_there_is_something_to_see(program, low, high):
    made = gradcli.plot(program)
    assert made.found
    np.testing.assert_allclose(made.ranges["x"], (low, high), atol=1e-6)


def test_a_range_that_was_found_is_told(run, tmp_path):
    assert run("plot", "sin(t)").err == "note: no range is given; this one is t=-8..8\n"
    assert run("plot", "sin(t)", "--quiet").err == ""
    assert gradcli.plot("exp(x)", log="x").ranges["x"][0] > 0
    assert gradcli.plot("2*pi*x*e").ranges.keys() == {"x"}
    data = tmp_path / "data.csv"
    data.write_text("t,y\n3,1\n9,2\n4,5\n")
    assert tuple(gradcli.plot("sqrt(t)", data=str(data)).ranges["t"]) == (3.0, 9.0)


# --- the looks of pictures


def test_titles_labels_ends_and_size_are_those_asked_for(run, tmp_path):
    from PIL import Image

    options = [
        "--title",
        "a $ title",
        "--xlabel",
        "time / s",
        "--ylabel",
        "u / V",
        "--xlim",
        "0..pi",
        "--ylim",
        "-2..2",
    ]
    path = tmp_path / "a.png"
    run("plot", "sin(x)", "x=0..9", *options, "--size", "4x3", "--dpi", "100", "--output", str(path))
    with Image.open(path) as picture:
        assert picture.size == (400, 300)
    out = run("plot", "sin(x)", "x=0..9", *options).out
    lines = out.splitlines()
    assert "a $ title" in lines[0]
    assert "time / s" in lines[-1]
    assert lines[-1].startswith("u / V")
    assert lines[2].startswith(" 2┤") or " 2" in out


def chart_of(program, looks, **values):
    return looks.of(gradcli.plot(program, values).chart())


def test_the_ends_of_axes_are_exact():
    from gradcli.models.plotting.charts import Presentation

    made = gradcli.plot("x", {"x": (0, 1)}, data={"x": [0.0, 1.0], "y": [0.0, 1.0]})
    looks = Presentation(x_limits=(0.0, 0.5), y_limits=(-1.0, 2.0))
    axes = by_matplotlib.drawn(looks.of(made.chart())).axes[0]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.0, 0.5), (-1.0, 2.0))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(6.0, 5.0), (8.0, 5.0)])
def test_no_text_is_clipped(size, tmp_path):
    from gradcli.models.plotting.charts import Presentation

    words = "a long title with many words that nobody can read at once, and " * 3
    looks = Presentation(words + "unbroken" * 12, "across " * 20, "upwards " * 20, size=size)
    for chart in (
        chart_of("x; x**2 + sqrt(1 + x**4)*exp(-x)/(1 + x); sin(x)", looks, x=(0, 1)),
        chart_of("x*y", looks, x=(0, 1), y=(0, 1)),
    ):
        figure = by_matplotlib.drawn(chart)
        figure.draw_without_rendering()
        (axes, *_) = figure.axes
        for text in (figure._suptitle, axes.xaxis.label, axes.yaxis.label):
            box = text.get_window_extent()
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0
            assert box.y1 <= figure.bbox.y1
    with pytest.raises(UsageError, match="its texts leave no room for a picture of 2x1 inches"):
        by_matplotlib.save(chart._replace(size=(2.0, 1.0)), str(tmp_path / "a.png"))
    assert not [*tmp_path.iterdir()]


def test_contours_have_labels_and_colours_may_be_logarithmic(run):
    from matplotlib.colors import LogNorm

    plain = by_matplotlib.drawn(gradcli.plot("x*y", x=(0, 1), y=(0, 9)).chart())
    assert [text.get_text() for text in plain.axes[0].texts]
    made = gradcli.plot("1000*exp(-x**2 - y**2) - 0.01", x=(-4, 4), y=(-4, 4), log="z")
    figure = by_matplotlib.drawn(made.chart())
    mesh = figure.axes[0].collections[0]
    assert isinstance(mesh.norm, LogNorm)
    assert mesh.norm.vmin > 0
    assert {text.get_text() for text in figure.axes[0].texts} >= {"1", "100"}
    out = run("plot", "1000*exp(-x**2 - y**2) - 0.01", "x=-4..4", "y=-4..4", "--log", "z").out
    assert "@" in out.splitlines()[10]
    assert out.splitlines()[2].count(" ") > 70


def test_points_stay_visible_above_a_curve(run, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n" + "".join(f"{k / 10},{k / 10}\n" for k in range(1, 10)))
    out = run("plot", "x", "x=0..1", "--data", str(data)).out
    assert out.count("•") == 9 + 1


@pytest.mark.parametrize(
    ("program", "title"),
    [
        ("f(t) = a*t**2\nf(x)", "f(x)"),
        ("  \ny = x**2\n\nsin(y)\ny", "sin(y); y"),
        ("sin(x)\ncos(x)", "sin(x); cos(x)"),
        ("if x > 0 {\n  x\n} else {\n  1\n}", "if x > 0 { x } else { 1 }"),
    ],
)
def test_the_title_of_a_program_of_lines_is_what_is_drawn(run, program, title):
    words = ["a=2"] if "a*" in program else []
    assert run("plot", program, "x=1..2", *words).out.splitlines()[0].strip() == title


def test_a_long_title_has_several_lines_on_a_terminal(run):
    title = "words " * 30
    lines = run("plot", "x", "x=0..1", "--title", title).out.splitlines()
    assert " ".join(" ".join(lines[:3]).split()) == title.strip()
    assert max(map(len, lines)) <= 80
