"""Fits of categories: multinomial logits and ordered categories."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.models import fit

# Satisfaction of renters, from `housing` of R's MASS: counts by satisfaction, which changes first, influence, kind of
# flat, and contact.
COUNTS = [
    21,
    21,
    28,
    34,
    22,
    36,
    10,
    11,
    36,
    61,
    23,
    17,
    43,
    35,
    40,
    26,
    18,
    54,
    13,
    9,
    10,
    8,
    8,
    12,
    6,
    7,
    9,
    18,
    6,
    7,
    15,
    13,
    13,
    7,
    5,
    11,
    14,
    19,
    37,
    17,
    23,
    40,
    3,
    5,
    23,
    78,
    46,
    43,
    48,
    45,
    86,
    15,
    25,
    62,
    20,
    23,
    20,
    10,
    22,
    24,
    7,
    10,
    21,
    57,
    23,
    13,
    31,
    21,
    13,
    5,
    6,
    13,
]
SATISFACTION = np.tile(["Low", "Medium", "High"], 24)
INFLUENCE = np.tile(np.repeat([0, 1, 2], 3), 8)
KIND = np.tile(np.repeat([0, 1, 2, 3], 9), 2)
HOUSING = {
    "Sat": SATISFACTION,
    "number": COUNTS,
    "medium": INFLUENCE == 1,
    "high": INFLUENCE == 2,
    "apartment": KIND == 1,
    "atrium": KIND == 2,
    "terrace": KIND == 3,
    "contact": np.repeat([0, 1], 36),
}
HOUSING = {name: column if name == "Sat" else np.asarray(column, float) for name, column in HOUSING.items()}
# From R: summary(polr(Sat ~ Infl + Type + Cont, weights=Freq, data=housing)), as printed in W. N. Venables and B. D.
# Ripley, Modern Applied Statistics with S, 2002, 7.3, with more digits.
POLR = {
    "b1": (0.5663937, 0.1046528),
    "b2": (1.2888191, 0.1271561),
    "b3": (-0.5723500, 0.1192380),
    "b4": (-0.3661864, 0.1551733),
    "b5": (-1.0910146, 0.1514860),
    "b6": (0.3602840, 0.0955358),
    "cut[Low|Medium]": (-0.4961351, 0.1248472),
    "cut[Medium|High]": (0.6907082, 0.1254719),
}
# From R, with the levels in this order: summary(multinom(Sat ~ Infl + Type + Cont, weights=Freq, data=housing,
# Hess=TRUE, reltol=1e-14)).
MULTINOM = {
    "a[Medium]": (-0.4192287, 0.1729345),
    "a[High]": (-0.1387427, 0.1592296),
    "b1[High]": (0.7348632, 0.1369380),
    "b5[Medium]": (-0.6665704, 0.2062533),
    "b6[High]": (0.4818270, 0.1241371),
}
FORMULA = "b1{0}*medium + b2{0}*high + b3{0}*apartment + b4{0}*atrium + b5{0}*terrace + b6{0}*contact"
X = np.linspace(-2, 2, 12)
FOOD = np.array([*"aabacbbccbcc"])


def assert_estimates(found, expected):
    for name, (value, error) in expected.items():
        assert found.estimates[name].value == pytest.approx(value, rel=1e-5)
        assert found.estimates[name].error == pytest.approx(error, rel=1e-5)


def test_ordered_categories_are_fitted_as_by_polr():
    found = fit("Sat ~ " + FORMULA.format(""), HOUSING, family="ordinal", weights="number")
    assert_estimates(found, POLR)
    assert (found.deviance, found.aic) == pytest.approx((3479.149299, 3495.149299), rel=1e-9)
    assert found.warnings == [
        "the categories are in the order in which they appear: Low, Medium, High; numbers are ordered by size"
    ]


def test_categories_are_fitted_as_by_multinom():
    names = [f"{name}[Low]" for name in ("a", *(f"b{k}" for k in range(1, 7)))]
    found = fit(
        "Sat ~ a[Sat] + " + FORMULA.format("[Sat]"),
        HOUSING,
        dict.fromkeys(names, 0.0),
        fix=names,
        family="multinomial",
        weights="number",
    )
    assert_estimates(found, MULTINOM)
    assert (found.deviance, found.aic) == pytest.approx((3470.083866, 3498.083866), rel=1e-9)


def test_parameters_of_the_first_category_are_0_and_the_others_are_relative_to_it():
    found = fit("food ~ a[food] + b[food]*x", {"x": X, "food": FOOD}, family="multinomial")
    assert [name for name, each in found.estimates.items() if each.fixed] == ["a[a]", "b[a]"]
    other = fit(
        "food ~ a[food] + b[food]*x",
        {"x": X, "food": FOOD},
        {"a[c]": 0.0, "b[c]": 0.0},
        fix=["a[c]", "b[c]"],
        family="multinomial",
    )
    assert other.loglik == pytest.approx(found.loglik)
    assert other.estimates["b[a]"].value == pytest.approx(-found.estimates["b[c]"].value, rel=1e-6)


def test_two_categories_are_the_events_of_a_binomial_family():
    data = {"x": X, "y": (FOOD == "c").astype(float)}
    found = fit("y ~ a[y] + b[y]*x", data, family="multinomial")
    events = fit("y ~ 1/(1 + exp(-(a + b*x)))", data, family="binomial")
    assert found.estimates["b[1]"].value == pytest.approx(events.estimates["b"].value, rel=1e-7)
    assert found.estimates["b[1]"].error == pytest.approx(events.estimates["b"].error, rel=1e-6)
    assert (found.deviance, found.r2) == pytest.approx((events.deviance, events.r2))


def test_numbers_are_ordered_by_size():
    found = fit("y ~ b*x", {"x": X, "y": [10, 2, 2, 10, 9, 2, 9, 10, 9, 10, 2, 10]}, family="ordinal")
    assert [*found.estimates] == ["b", "cut[2|9]", "cut[9|10]"]
    assert not found.warnings


@pytest.mark.slow
def test_options_of_other_fits_go_with_categories(run, tmp_path):
    path = tmp_path / "food.csv"
    path.write_text("x,food\n" + "".join(f"{x},{food}\n" for x, food in zip(X, FOOD)))
    options = ["--profile", "--bounds", "b=-9:9", "--derive", "odds=exp(b[c])", "--json"]
    found = run("fit", "food ~ a[food] + b[food]*x", str(path), "--family", "multinomial", *options).json
    slope = found["estimates"]["b[c]"]
    assert slope["low"] < slope["value"] < slope["high"]
    assert found["derived"]["odds"]["value"] == pytest.approx(np.exp(slope["value"]))


@pytest.mark.slow
def test_separable_categories_have_no_estimates():
    y = np.repeat([1.0, 2.0, 3.0], 4)
    for model, family in (("y ~ a[y] + b[y]*x", "multinomial"), ("y ~ b*x", "ordinal")):
        found = fit(model, {"x": X, "y": y}, family=family)
        assert not found.converged
        assert any("tell the categories of all rows apart" in warning for warning in found.warnings)


def test_a_category_without_complete_rows_is_told():
    data = {"x": [*X, np.nan], "food": [*FOOD, "d"]}
    assert (
        "no row of d has all numbers: the fit is without that"
        in fit("food ~ a[food] + b[food]*x", data, family="multinomial").warnings
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("y ~ a[y] + b[y]*x", "y=[1,1,1]"), "'y' has one category, 1, and a fit needs two at least"),
        (("y ~ a + b*x", "y=[1,2,3]"), "no parameter has a value for each category"),
        (("y ~ a[y] + b[y]*x", "y=[1,2,1]", "--by", "x"), "--by is not for --family multinomial"),
        (("y ~ a[x] + b[y]*x", "y=[1,2,1]"), "'a' has values by 'x', and this is not for categories"),
        (("y + 1 ~ a[y] + b[y]*x", "y=[1,2,1]"), "the categories are a column of the data, and not y + 1"),
        (("y ~ a[y] + b[y]*log(-x)", "y=[1,2,1]"), "'log' gives nan for operand -1.0"),
        (("y ~ a[y] + b[y]*x", "y=[1,2,1]", "--plot", "p.png"), "no files are written for categories"),
    ],
)
def test_what_categories_lack_is_an_error(run, arguments, message):
    model, *others = arguments
    done = run("fit", model, "x=[1,2,3]", *others, "--family", "multinomial")
    assert done.status != 0
    assert message in done.err
