"""Tests saved pictures by the Matplotlib artists in them."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gradcli import install_command
from gradcli.errors import BackendError, UsageError
from gradcli.models.plotting import by_matplotlib, charts
from gradcli.models.plotting.charts import Arrows, Band, Chart, GridValues, Points, Polyline
from gradcli.models.results import History, Iteration

X = np.linspace(0.0, 4.0, 9)


def axes_of(chart: Chart):
    return by_matplotlib.drawn(chart).axes[0]


def test_a_fit_has_its_points_its_curve_and_its_band_in_a_legend():
    chart = Chart(
        [Points("data", X, X + 0.1, 0.5), Polyline("fit", X, X), Band("95 %", X, X - 1, X + 1)], "t", "y", "y ~ t"
    )
    axes = axes_of(chart)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.figure.get_suptitle()) == ("t", "y", "y ~ t")
    points, *_, line = axes.lines
    np.testing.assert_array_equal(points.get_xydata(), np.c_[X, X + 0.1])
    np.testing.assert_array_equal(line.get_xydata(), np.c_[X, X])
    assert points.get_linestyle() == "None"
    bars, band = axes.collections
    assert {tuple(s[:, 1]) for s in bars.get_segments()} == {(y - 0.5, y + 0.5) for y in X + 0.1}
    assert band.get_paths()[0].get_extents().bounds == (0.0, -1.0, 4.0, 6.0)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["data", "fit", "95 %"]


def test_one_curve_needs_no_legend():
    axes = axes_of(Chart([Polyline("objective", X + 1, X + 1)], "iteration", "objective", log="y"))
    assert axes.get_legend() is None
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")


@pytest.mark.parametrize(("last", "scale"), [(0.0, "log"), (1e-9, "log"), (-1.0, "linear")])
def test_the_objective_is_drawn_by_decades_where_it_is_not_below_0(last, scale, monkeypatch):
    drawn = []
    monkeypatch.setattr(by_matplotlib, "save", lambda chart, *_: drawn.append(by_matplotlib.drawn(chart)))
    values = (100.0, 1.0, 1e-3, last)
    history = History(kept=False)
    for number, value in enumerate(values):
        history(Iteration(number, value))
    history.save_curve("f.png", "")
    axes = drawn[0].axes[0]
    assert axes.get_yscale() == scale
    assert all(place == round(place) for place in axes.get_xticks())


def test_a_dollar_is_a_dollar():
    axes = axes_of(Chart([Polyline("a", X, X), Polyline("$x^2$", X, X)], "Cost ($), $"))
    assert axes.get_xlabel().replace("\\$", "$") == "Cost ($), $"
    assert "mathdefault" not in str(axes.get_legend().get_texts()[1].get_text())


def test_many_points_are_drawn_by_their_number_in_cells():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 1_000_000))
    x[:3] = np.nan
    figure = by_matplotlib.drawn(Chart([Points("data", x, y)], "x", "y"))
    (mesh,) = figure.axes[0].collections
    assert mesh.get_array().sum() == 999_997
    assert not figure.axes[0].lines
    assert "999,997 points" in figure.axes[1].get_ylabel()


@pytest.mark.parametrize("log", ["x", "xy"])
def test_cells_are_evenly_wide_on_logarithmic_axes(log):
    x = np.r_[-1.0, 0.0, np.geomspace(1e-3, 1e3, 9_998)]
    columns, rows, counts = charts.density(charts.shown(Points("data", x, np.ones(10_000)), log), log, 6, 4)
    np.testing.assert_allclose(columns, np.geomspace(1e-3, 1e3, 7))
    assert rows[0] < 1 < rows[-1]
    assert counts.sum() == 9_998


def test_the_arrows_of_a_field_point_uphill():
    x, y = np.linspace(0, 10, 21), np.linspace(0, 1, 11)
    at = np.array([2.0, 5.0, 5.0]), np.array([0.5, 0.5, 0.2])
    arrows = Arrows(*at, np.array([1.0, 0.0, np.nan]), np.array([0.0, -3.0, 1.0]))
    figure = by_matplotlib.drawn(Chart([GridValues("f", x, y, x + 0 * y[:, None], arrows)], "x", "y"))
    mesh, _, quiver = figure.axes[0].collections
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(11, 21)[3], x)
    np.testing.assert_array_equal(quiver.get_offsets(), [[2.0, 0.5], [5.0, 0.5]])
    assert quiver.U[0] > 0 == quiver.V[0]
    assert quiver.U[1] == 0 > quiver.V[1]


@pytest.mark.cases(1)
@pytest.mark.parametrize("format", by_matplotlib.FORMATS)
def test_a_chart_gives_the_same_bytes_each_time(format, tmp_path):
    chart = Chart([Points("data", X, X), Polyline("fit", X, X)], "x", "y", "title")
    found = set()
    for name in "ab":
        by_matplotlib.save(chart, str(tmp_path / f"{name}.{format}"))
        found.add(hashlib.sha256((tmp_path / f"{name}.{format}").read_bytes()).hexdigest())
    assert len(found) == 1


def test_the_end_of_a_name_says_the_format():
    assert by_matplotlib.format_of("A.PNG") == "png"
    for path, hint in (("a.pmg", "did you mean 'png'?"), ("a", "'a.png'"), ("png", "'png.png'")):
        with pytest.raises(UsageError, match=r"does not end in \.png, \.svg, \.pdf") as caught:
            by_matplotlib.format_of(path)
        assert hint in caught.value.hint


def test_without_matplotlib_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(BackendError, match="needs Matplotlib") as caught:
        by_matplotlib.drawn(Chart([Polyline("a", X, X)]))
    assert caught.value.hint == install_command.install_command("plot")


def test_threads_draw_the_same_and_leave_the_settings_of_matplotlib_alone():
    import matplotlib

    chart = Chart([Points("data", X, X), Polyline("fit", X, X)], "x", "y", "title")
    found = []

    def draw(_: int) -> None:
        by_matplotlib.save(chart, "f.svg", lambda _, write: found.append(io.BytesIO()) or write(found[-1]))

    with matplotlib.rc_context({"lines.linewidth": 7.0}):
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(draw, range(4)))
        assert matplotlib.rcParams["lines.linewidth"] == 7.0
    assert len({stream.getvalue() for stream in found}) == 1


def test_numbers_that_the_library_takes_for_0_have_an_axis():
    axes = axes_of(Chart([Polyline("a", X, 1e-290 * X)]))
    assert axes.get_ylim() == pytest.approx((-0.2e-290, 4.2e-290), rel=0.1)
    assert [*axes.get_yticks()][::2] == pytest.approx([n * 1e-290 for n in range(5)], abs=1e-300)
    assert axes.get_xlim() == pytest.approx((-0.2, 4.2), abs=0.21)
