"""Joint confidence regions of two parameters, by `gradcli fit --contour`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, f

import gradcli

X = np.linspace(0, 10, 25)
DECAY = {"x": X, "y": 5 * np.exp(-0.4 * X) + 1 + 0.2 * np.sin(7 * np.arange(25))}
START = {"a": 5, "k": 0.4, "c": 1}
BOD = {"x": [1, 2, 3, 5, 7, 10], "y": [109, 149, 149, 191, 213, 224]}


def rise(point, least):
    """By how much the sum of squares is above the least one where the first two parameters are held."""
    a, k = point

    def squares(c):
        return np.square(DECAY["y"] - a * np.exp(-k * X) - c).sum()

    return minimize_scalar(squares, bracket=(0.9, 1.1), options={"xtol": 1e-12}).fun - least


def test_points_are_where_the_profile_has_the_level():
    fit = gradcli.fit("y ~ a*exp(-k*x) + c", DECAY, START, contour="a,k")
    contour = fit.contours["a,k"]
    assert contour.closed
    assert len(contour.points) >= 32
    wanted = 2 * f.ppf(0.95, 2, fit.dof) * fit.s**2
    assert [rise(point, fit.rss) for point in contour.points[::5]] == pytest.approx([wanted] * len(contour.points[::5]))


def test_points_are_those_of_minuit_for_known_deviations():
    fit = gradcli.fit("y ~ a*exp(-k*x) + c", DECAY, START, sigma=0.2, absolute_sigma=True, contour="a,k", level=0.95)
    points = np.array(fit.contours["a,k"].points)
    # From iminuit: Minuit(LeastSquares(x, y, 0.2, model), a=5, k=0.4, c=1).mncontour("a", "k", cl=0.95, size=60), its
    # least and greatest values, between which are few of the points here.
    np.testing.assert_allclose(points.min(axis=0), [4.7533112, 0.33682818], rtol=1e-3)
    np.testing.assert_allclose(points.max(axis=0), [5.47321943, 0.48391086], rtol=1e-3)
    assert all(rise(point, 0.04 * fit.rss) == pytest.approx(0.04 * chi2.ppf(0.95, 2)) for point in points[::7])


def test_a_region_of_counts_has_the_points_of_the_likelihood():
    x, n = np.arange(6.0), np.array([1.0, 2, 2, 5, 8, 14])
    fit = gradcli.fit("n ~ exp(a + b*x)", {"x": x, "n": n}, family="poisson", contour=["a,b"])
    logliks = [(n * (a + b * x) - np.exp(a + b * x)).sum() for a, b in fit.contours["a,b"].points]
    best = [fit.estimates[name].value for name in "ab"]
    top = (n * (best[0] + best[1] * x) - np.exp(best[0] + best[1] * x)).sum()
    assert 2 * (top - np.array(logliks)) == pytest.approx(np.full(len(logliks), chi2.ppf(0.95, 2)), rel=1e-6)


def test_a_region_without_an_end_is_told():
    fit = gradcli.fit("y ~ p*(1 - exp(-q*x))", BOD, {"p": 100, "q": 0.75}, contour="p,q", level=0.999)
    assert not fit.contours["p,q"].closed
    assert any("has no end in some directions" in warning for warning in fit.warnings)


def test_a_bound_ends_a_region():
    fit = gradcli.fit("y ~ p*(1 - exp(-q*x))", BOD, {"p": 200, "q": 0.75}, bounds={"q": (0.3, 0.8)}, contour="p,q")
    q = [point[1] for point in fit.contours["p,q"].points]
    assert (min(q), max(q)) == pytest.approx((0.3, 0.8))


def test_the_table_lists_the_points(run):
    done = run("fit", "y ~ p*(1 - exp(-q*x))", "x=[1,2,3,5,7,10]", "y=[109,149,149,191,213,224]", "--contour", "p,q")
    lines = done.out.splitlines()
    assert lines[4].split() == ["95", "%", "region", "of", "p", "q"]
    assert len(lines[5].split()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--contour", "p"), "a contour is of two parameters, and 'p' is not two"),
        (("--contour", "p,r"), "there is a contour of 'r', and the model has no such parameter"),
        (("--contour", "p,q", "--fix", "q", "q=0.5"), "there is a contour of 'q', which is kept at its value"),
        (("--contour", "p,q", "--loss", "huber"), "a contour is of the likelihood"),
        (("--contour", "p,q", "--by", "x"), "--contour is for one fit"),
    ],
)
def test_what_has_no_contour_is_an_error(run, options, message):
    done = run("fit", "y ~ p*(1 - exp(-q*x))", "x=[1,2,3,5,7,10]", "y=[109,149,149,191,213,224]", *options)
    assert done.status != 0
    assert message in done.err
