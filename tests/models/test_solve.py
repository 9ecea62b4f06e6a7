"""Tests `gradcli solve`: equations, their roots, and the derivatives of roots."""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
import pytest

import gradcli
from gradcli.errors import BindingError, EvaluationError, GradcliError, ProgramSyntaxError, UsageError
from gradcli.models import solve
from gradcli.models.equations import sign_changes

BLACK_SCHOLES = "d = (log(S/K) + (r + v**2/2)*T)/(v*sqrt(T)); S*ndtr(d) - K*exp(-r*T)*ndtr(d - v*sqrt(T)) = price"
OPTION = {"S": 100.0, "K": 110.0, "r": 0.02, "T": 0.5, "price": 4.0}
# A weak acid in water: charge, mass, dissociation and the ions of water, in logarithms of concentrations.
BUFFER = """
h = exp(lh); oh = exp(loh); a = exp(la); ha = exp(lha)
h + na = oh + a
a + ha = c
lh + la - lha = log(Ka)
lh + loh = log(Kw)
"""
ACID = {"na": 0.05, "c": 0.1, "Ka": 1.8e-5, "Kw": 1e-14}
ACID_START = {"lh": -10.0, "loh": -20.0, "la": -3.0, "lha": -3.0}


def moved(equations: str, start: Any, constants: dict[str, float], by: str) -> dict[str, float]:
    """Derivatives of the roots by the constants, by fourth-order differences."""
    h = 1e-3 * constants[by]
    at = {}
    for k in (-2, -1, 1, 2):
        at[k] = solve(equations, {**constants, by: constants[by] + k * h}, start=start, order=0).roots[0].point
    return {n: (8 * (at[1][n] - at[-1][n]) - (at[2][n] - at[-2][n])) / (12 * h) for n in start}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equations", "start", "constants"),
    [
        ("E - e*sin(E) = M", {"E": 1.0}, {"e": 0.3, "M": 0.8}),
        (BLACK_SCHOLES, {"v": 0.3}, OPTION),
        (BUFFER, ACID_START, ACID),
    ],
)
def test_derivatives_by_every_constant(equations: str, start: dict[str, float], constants: dict[str, float]) -> None:
    found = solve(equations, constants, start=start)
    derivatives = found.roots[0].derivatives
    for constant, value in constants.items():
        want = moved(equations, found.roots[0].point, constants, constant)
        for name in start:
            # Relative to the constant: the roots have rounding errors, too.
            assert value * derivatives[name][constant] == pytest.approx(value * want[name], rel=1e-8, abs=1e-11)


def test_second_derivatives_are_those_of_the_formula() -> None:
    root = solve("x**2 + b*x = c", {"b": 1.5, "c": 2.0}, start={"x": 1}, order=2).roots[0]
    want = gradcli.compile("(-b + sqrt(b**2 + 4*c))/2").derivatives({"b": 1.5, "c": 2.0}, 2)
    assert root.derivatives["x"] == pytest.approx({k: float(v) for k, v in want.items()}, rel=1e-13)


def test_vectors_as_unknowns_and_constants() -> None:
    A, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])  # noqa: N806
    root = solve("A@x + x**3 = b", A=A, b=b, start={"x": [0.0, 0.0]}, order=2).roots[0]
    x = root.point["x"]
    assert np.allclose(A @ x + x**3, b, atol=1e-15)
    inverse = np.linalg.inv(A + np.diag(3 * x**2))
    assert np.allclose(root.derivatives["x"]["b"], inverse)
    assert np.allclose(root.derivatives["x"]["A"], -np.einsum("ij,k->ijk", inverse, x))
    want = -np.einsum("ij,jk,jl,j->ikl", inverse, inverse, inverse, 6 * x)
    assert np.allclose(root.derivatives["x"]["b,b"], want)


def test_what_is_a_definition_and_what_an_equation() -> None:
    assert solve("y = x**2; y == 2 - x", start={"x": 2}).roots[0].point["x"] == pytest.approx(1.0)
    assert solve("x = cos(x)", start={"x": 1}).roots[0].point["x"] == pytest.approx(0.7390851332151607)
    assert solve("a = x**2", start={"x": 1}, a=4).roots[0].point["x"] == pytest.approx(2.0)
    assert solve("f(t) = t**2 - 2; f(x) = 2", start={"x": 1}).roots[0].point["x"] == pytest.approx(2.0)
    assert solve("sin(x) = 0.5", start={"x": 0}).roots[0].point["x"] == pytest.approx(math.pi / 6)
    assert solve("x, y = 2, 3", start={"x": 0, "y": 0}).roots[0].point == {"x": 2.0, "y": 3.0}
    assert solve("[x, y] = [2, 3]", start={"x": 0, "y": 0}).roots[0].point == {"x": 2.0, "y": 3.0}
    assert solve("sqrt([x, 2])[0] = 3", start={"x": 1}).roots[0].point == {"x": pytest.approx(9.0)}
    assert solve("p, q = 2, 3; x = p*q", start={"x": 0}).roots[0].point == {"x": 6.0}
    assert solve("x**2 - 2", unknowns=["x"]).roots[0].point["x"] == pytest.approx(math.sqrt(2))
    assert solve("def f(x):\n    return x**2 - 2\n", start={"x": 1}).roots[0].residual < 1e-15


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("x**2 > 2", "'>' makes no equation", "x**2 > 2"),
        ("x != 2", "'!=' makes no equation", "x != 2"),
        ("x == 1 and x == 2", "truth value", "x == 1 and x == 2"),
        ("y = x; y = 2 - x", "given a value twice", "y = 2 - x"),
        ("y = x", "there is no equation", "y = x"),
        ("x + = 3", "expression should follow", ""),
        ("2*x = lgo(3)", "unknown function 'lgo'", "lgo"),
        ("[x, x] = [1, 2, 3]", "do not broadcast", "[x, x] = [1, 2, 3]"),
        ("log(-x**2) = 1", "no value at the start", "log(-x**2)"),
        ("x = y", "unknown name 'y'", "y"),
    ],
)
def test_errors_point_into_the_text(text: str, message: str, caret: str) -> None:
    with pytest.raises(GradcliError, match=message.replace("(", r"\(")) as caught:
        solve(text, start={"x": 1})
    error = caught.value
    assert error.source == text
    assert error.span is not None
    assert not caret or text[error.span.start : error.span.end] == caret


@pytest.mark.parametrize(
    ("equation", "roots", "message"),
    [
        ("x**3 = 2", [2 ** (1 / 3)], "1 root, and no other change of sign at "),
        ("x = cos(x)", [0.7390851332151607], "1 root, and no other change of sign at "),
        ("x = 2", [2.0], "1 root, and no other change of sign at "),
        ("log(x) = 50", [math.exp(50)], "1 root, and there may be more below x=-10 and above x=10, where "),
        ("x**2 - 300*x + 2", [2 / 299.9933331851786, 299.9933331851786], "2 roots, and there may be more below "),
        ("(x - 20)*(x - 21)", [20.0, 21.0], "2 roots, and there may be more below "),
        ("(x - 100/3)**2", [100 / 3], "signs do not change there, and there may be others"),
        ("f(t) = t**2; f(x) = 4", [-2.0, 2.0], "2 roots, and no other change of sign at "),
        ("sin(x)", [k * math.pi for k in range(-3, 4)], "7 roots, those between x=-10 and x=10; beyond are more, as "),
        ("tan(x) = x + 1", None, "and there may be more below x=-10 and above x=10"),
    ],
)
def test_one_unknown_without_a_start_is_looked_for_anywhere(run: Any, equation, roots, message) -> None:
    found = run("solve", equation, "--json").json
    assert found["converged"]
    assert message in found["message"]
    if roots is not None:
        assert [root["point"]["x"] for root in found["roots"]] == pytest.approx(roots, rel=1e-12, abs=1e-12)


def test_no_root_anywhere_and_several_unknowns(run: Any) -> None:
    done = run("solve", "x**2 + 1 = 0")
    assert done.status == 1
    assert "no root was found: the smallest residual, 1, is at this point, and the sign does not change" in done.err
    assert done.err.endswith("hint: x~1j finds a complex root\n")
    assert "hint" not in run("solve", "abs(x) + 1 = 0").err
    assert "hint" not in run("solve", "1/(1 + x**2) = 0", "x~1").err
    found = run("solve", "a*x**2 = 4", "a=2", "--json").json
    assert [root["derivatives"]["x"]["a"] for root in found["roots"]] == pytest.approx(
        [math.sqrt(2) / 4, -math.sqrt(2) / 4]
    )
    assert run("solve", "a*x**2 = 4").err.splitlines() == [
        "error: there is no unknown",
        "hint: give one a start, as in a~1, and the others too, or values, as in x=1",
    ]


def test_wrong_questions() -> None:
    with pytest.raises(UsageError, match="1 equation for 2 unknowns"):
        solve("x + y = 1", start={"x": 1, "y": 1})
    with pytest.raises(UsageError, match="no unknown"):
        solve("a = 1", a=2)
    with pytest.raises(BindingError, match="do not read 'q'"):
        solve("x = 1", start={"x": 1}, q=2)
    with pytest.raises(EvaluationError, match="no change of sign"):
        solve("x**2 = 2", bracket={"x": (3, 5)})
    with pytest.raises(UsageError, match="one unknown"):
        solve("x = y; x + y = 1", bracket={"x": (3, 5)}, start={"y": 1})
    with pytest.raises(ProgramSyntaxError):
        solve("", start={"x": 1})


def test_a_bracket_gives_a_root_and_never_a_pole() -> None:
    assert solve("x**9 = 1e-30", bracket={"x": (0, 5)}).roots[0].point["x"] == pytest.approx(
        1e-30 ** (1 / 9), rel=1e-12
    )
    assert solve("cbrt(x - 1/3)", bracket={"x": (0, 5)}).roots[0].point["x"] == pytest.approx(1 / 3, rel=1e-15)
    pole = solve("1/(x - 1/3)", bracket={"x": (0, 5)})
    assert (pole.converged, pole.roots) == (False, [])
    assert "pole" in pole.message
    assert "jump" in solve("floor(x) = 0.5", bracket={"x": (0, 5)}).message


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("equation", "range_", "count"),
    [
        ("cos(40*x) = x/30", "x=-2..9.9", 151),
        ("exp(-((x - 0.3)/1e-4)**2) = 1/2", "x=0..1", 2),
    ],
)
def test_all_roots_of_a_fast_oscillation(run: Any, equation: str, range_: str, count: int) -> None:
    found = run("solve", equation, range_, "--all", "--order", "0", "--json").json
    listed = [root["point"]["x"] for root in found["roots"]]
    assert listed == sorted(set(listed))
    assert len(listed) == count
    assert "more" not in found["message"]


@pytest.mark.slow
def test_more_roots_than_are_listed_are_told_of(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 318,310 up to 1e6, and a grid of 2,001 points finds some of them."""
    monkeypatch.setattr(sign_changes, "_MOST_CROSSINGS", 10)
    found = run("solve", "sin(x)", "x=0.1..1e6", "--all", "--order", "0", "--json").json
    assert [root["point"]["x"] for root in found["roots"]] == pytest.approx([math.pi * n for n in range(1, 11)])
    assert found["message"] == "10 roots, and 318,299 changes of sign more: the list is not whole"


@pytest.mark.parametrize(
    ("equation", "doubt"),
    [
        (
            "sin(log(x)) = 0",
            "10 roots, and 7 changes of sign more: the list is not whole, and there may be more between x=",
        ),
        ("x*sin(1/x) = 0", ", and there may be more between x="),
    ],
)
def test_roots_that_pile_up_are_not_said_to_be_all(
    run: Any, monkeypatch: pytest.MonkeyPatch, equation: str, doubt: str
) -> None:
    monkeypatch.setattr(sign_changes, "_MOST_CROSSINGS", 10)
    found = run("solve", equation, "x=0..1.5", "--all", "--order", "0", "--json").json
    assert doubt in found["message"]
    listed = np.array([root["point"]["x"] for root in found["roots"] if root["point"]["x"]])
    turns = (np.log(listed) if "log" in equation else 1 / listed) / math.pi
    assert turns == pytest.approx(turns.round(), abs=1e-9)


def test_roots_among_rounding_errors_are_not_said_to_be_all(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 1e12 the sine changes when its argument is rounded differently."""
    monkeypatch.setattr(sign_changes, "_MOST_CROSSINGS", 1)
    found = run("solve", "sin(x)", "x=1e13..1e14", "--all", "--order", "0", "--json").json
    assert found["message"].endswith("and there may be more between x=1e+13 and x=1e+14")


def test_floats_that_are_far_apart_show_no_roots(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between neighbouring floats the tangent has several periods."""
    monkeypatch.setattr(sign_changes, "_MOST_CROSSINGS", 10)
    found = run("solve", "tan(x) = 0", "x=1e290..1e300", "--all", "--order", "0", "--json")
    assert (found.status, found.json["roots"]) == (1, [])
    assert "changes of sign at floats that are so far apart that they show no roots" in found.json["message"]
    assert "the list is not whole" in found.json["message"]
    found = run("solve", "sin(x)", "x=1e16..10000000000000010", "--json")
    message = "the sign changes at floats that are so far apart that no root can be told"
    assert (found.status, found.json["message"]) == (1, message)


def test_all_roots_of_a_range() -> None:
    found = solve("tan(x) = x", bracket={"x": (0.1, 20)}, all=True)
    assert [round(r.point["x"], 9) for r in found.roots] == [
        4.493409458, 7.725251837, 10.904121659, 14.066193913, 17.220755272,
    ]  # fmt: skip
    assert found.message == "5 roots, 6 changes of sign at poles"
    close = solve("(x - 1.2345)*(x - 1.2346)*(x - 3)", bracket={"x": (0, 5)}, all=True)
    assert [r.point["x"] for r in close.roots] == pytest.approx([1.2345, 1.2346, 3.0], rel=1e-11)
    touching = solve("(x - 1.23)**2*(x - a)", bracket={"x": (0, 5)}, a=4, all=True)
    assert [round(r.point["x"], 9) for r in touching.roots] == [1.23, 4.0]
    assert touching.roots[0].derivatives == {"x": {"a": None}}
    assert solve("exp(x)", bracket={"x": (0, 5)}, all=True).converged is False


@pytest.mark.parametrize(
    ("equations", "starts", "at", "off"),
    [
        ("x**20 = 0", ["x~1"], {"x": 0.0}, 1e-15),
        ("(x - 2)**20 = 0", ["x~1"], {"x": 2.0}, 1e-14),
        ("x**5 = 0; y + x = 1", ["x~1", "y~1"], {"x": 0.0, "y": 1.0}, 1e-15),
        ("(x - 1)**7 = 0; y = x", ["x~0", "y~0"], {"x": 1.0, "y": 1.0}, 1e-14),
        ("1e-30*x**20 = 0; y**19 = 0", ["x~5", "y~2"], {"x": 0.0, "y": 0.0}, 1e-14),
        ("x**2 + y = 1; 2*y + x**3 = 2", ["x~1", "y~1"], {"x": 0.0, "y": 1.0}, 1e-7),
        ("x**3 + y = 1; 2*y + x**2 = 2", ["x~0", "y~0"], {"x": 0.0, "y": 1.0}, 1e-14),
        ("1 - cos(x) + y = 1; 2*y + x**4 = 2", ["x~0.5", "y~1"], {"x": 0.0, "y": 1.0}, 1e-3),
        ("x*y = 0; x + y = 0", ["x~0.1", "y~2"], {"x": 0.0, "y": 0.0}, 1e-14),
        ("x + y = 1; 2*x + 2*y = 2", ["x~0", "y~1"], {"x": 0.0, "y": 1.0}, 1e-14),
    ],
)
def test_roots_of_high_multiplicity(
    run: Any, equations: str, starts: list[str], at: dict[str, float], off: float
) -> None:
    found = run("solve", equations, *starts, "--json")
    assert (found.status, found.json["roots"][0]["condition"]) == (0, "Infinity")
    assert found.json["roots"][0]["point"] == pytest.approx(at, abs=off)


@pytest.mark.cases(1)
@pytest.mark.parametrize("equation", ["x**20 + 1e-30", "exp(-x)", "1/x**20", "x**4 + 1e-12"])
def test_steps_that_become_shorter_lead_to_no_root_where_there_is_none(run: Any, equation: str) -> None:
    assert run("solve", equation, "x~1", "--json").status == 1


def test_a_limit_that_ends_a_search_in_vain_is_told_beside_the_best_point(run: Any) -> None:
    """Bratu's equation has no solution for 4, and one for 3.5."""
    equations = "concatenate([u[:1], u[2:] - 2*u[1:-1] + u[:-2] + L*h**2*exp(u[1:-1]), u[-1:]])"
    words = [equations, "--for", "u", "u=zeros(41)", "h=1/40", "--order", "0", "--max-elements", "2000000", "--json"]
    found = run("solve", *words, "L=4")
    assert (found.status, found.json["converged"], len(found.json["roots"])) == (1, False, 1)
    assert found.json["message"].startswith("no root was found: the smallest residual, ")
    assert found.json["message"].endswith(
        ", as far as the limits went: the program computes more than 2,000,000 array elements"
    )
    assert run("solve", *words, "L=3.5").status == 0


@pytest.mark.slow
def test_no_root_is_said_with_the_least_residual() -> None:
    found = solve("x**2 = -1", start={"x": 3})
    assert not found.converged
    assert found.roots[0].residual == pytest.approx(1.0, abs=1e-6)
    assert solve("sqrt(x) = -1", start={"x": 1}).roots[0].residual == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("equations", ["(x - 1)**2", "x**3 - 3*x**2 + 3*x - 1"])
def test_a_singular_jacobian_is_said(equations: str) -> None:
    found = solve(equations + " = 0*a", start={"x": 3}, a=1)
    assert found.converged
    assert found.roots[0].point["x"] == pytest.approx(1.0, abs=1e-4)
    assert found.roots[0].condition == math.inf
    assert "singular" in found.message
    assert found.roots[0].derivatives == {"x": {"a": None}}


@pytest.mark.parametrize(
    ("equations", "start", "root"),
    [
        ("atan(x) = 0", {"x": 10}, {"x": 0}),
        ("exp(x) = 1e10", {"x": -3}, {"x": math.log(1e10)}),
        ("10000*x*y = 1; exp(-x) + exp(-y) = 1.0001", {"x": 0, "y": 1}, {"x": 1.098159e-5, "y": 9.106146}),
        ("x**2 + y**2 = 1e-20; x = y", {"x": 1, "y": 2}, {"x": 1e-10 / math.sqrt(2), "y": 1e-10 / math.sqrt(2)}),
        ("log(x) = -50", {"x": 1}, {"x": math.exp(-50)}),
        ("exp(1000*(x - 1)) = 1", {"x": 1.1}, {"x": 1}),
        ("sin(x) + x - 1 + cos(x)", {"x": 0.5}, {"x": 0}),
        ("x + y = 0.3; x = 0.1 + 0.2", {"x": 3, "y": 1}, {"x": 0.3, "y": 0}),
        ("10*(y - x**2) = 0; 1 - x = 0", {"x": -1.2, "y": 1}, {"x": 1, "y": 1}),
    ],
)
def test_hard_starts(equations: str, start: dict[str, float], root: dict[str, float]) -> None:
    found = solve(equations, start=start)
    assert found.converged
    assert found.roots[0].point == pytest.approx(root, rel=1e-6, abs=1e-30 if len(root) == 1 and root["x"] else 1e-12)
    assert found.roots[0].condition < 1e8


def test_the_command(run: Any) -> None:
    line = run("solve", "x**3 + a*x = b", "x~1", "a=2", "b=5", "--json").json
    assert line["converged"]
    assert line["roots"][0]["derivatives"]["x"].keys() == {"a", "b"}
    assert run("solve", "x = cos(x)", "--for", "x", "--json").json["roots"][0]["point"]["x"] == pytest.approx(
        0.739085133
    )
    assert run("solve", "x@x = s; x[0] = x[1]", "x~[1,2]", "s=8", "--json").json["roots"][0]["point"] == {
        "x": [2.0, 2.0]
    }
    failed = run("solve", "x**2 = -1", "x~3")
    assert failed.status == 1
    assert "no root was found" in failed.err
    assert failed.out
    assert run("solve", "x = 1", "x~1", "x=2").status == 2
    assert run("solve", "x = 1", "x~1", "x~2").status == 2
    assert run("solve", "x = 1", "x=2..").status == 2
    assert run("solve", "x = 1", "x=2..1").status == 2
    assert run("solve", "x = 1", "y~1").status == 2
    assert run("solve", "x > 1", "x~1").status == 2
    assert run("solve", "x = 1", "x~[]").status == 2
    assert run("solve", "x = 1", "x~1", "a=@../none..csv").status == 2


@pytest.mark.parametrize(
    ("equations", "starts", "at", "by"),
    [
        ("x + 2*y = a; 3*x + 4*y = 2", ["x~0", "y~0"], {"x": 0.0, "y": 0.5}, {"x": -2.0, "y": 1.5}),
        ("x + 2*y = a; 3*x + 4*y = 2", ["x~1", "y~1"], {"x": 0.0, "y": 0.5}, {"x": -2.0, "y": 1.5}),
        ("[[1,2],[3,4]]@u = [a,2]", ["u~[0,0]"], {"u": [0.0, 0.5]}, {"u": [-2.0, 1.5]}),
        ("sinh(x) + y = 300*a; y - x = 300", ["x~0", "y~0"], {"x": 0.0, "y": 300.0}, {"x": 150.0, "y": 150.0}),
        ("1e12*x + y = 5e11*a; 3e12*x - y = -5e11", ["x~0", "y~0"], {"x": 0.0, "y": 5e11}, {"x": 0.125, "y": 3.75e11}),
        ("x + 1e-9*y = a - 1; x - 2e-9*y = 0", ["x~1", "y~1"], {"x": 0.0, "y": 0.0}, {"x": 2 / 3, "y": 1e9 / 3}),
    ],
)
def test_unknowns_that_are_0_at_a_root_have_the_scale_at_which_they_matter(
    run: Any, equations: str, starts: list[str], at: dict[str, Any], by: dict[str, Any]
) -> None:
    found = run("solve", equations, *starts, "a=1", "--json").json
    (root,) = found["roots"]
    assert found["message"] == "a root"
    assert root["condition"] < 20
    for name, value in at.items():
        assert root["point"][name] == pytest.approx(value, abs=1e-15)
        assert root["derivatives"][name]["a"] == pytest.approx(by[name], rel=1e-12)


def test_derivatives_of_a_root_are_those_of_newton_steps_that_lead_to_it() -> None:
    steps = "E = 1.0\nfor i in range(9): E = E - (E - e*sin(E) - M)/(1 - e*cos(E))\nE"
    constants = {"e": 0.3, "M": 0.8}
    root = solve("E - e*sin(E) = M", constants, start={"E": 1}).roots[0]
    value, by = gradcli.compile(steps).value_and_grad(constants)
    assert root.point["E"] == pytest.approx(value, rel=1e-15)
    assert root.derivatives["E"] == pytest.approx(by, rel=1e-13)
    assert gradcli.gradcheck(steps, constants)


def test_digits_of_roots_are_proved(run: Any) -> None:
    found = solve("E - e*sin(E) = M", start={"E": 1}, e="0.3", M="0.8", digits=60, order=2).roots[0]
    with flint.ctx.workprec(400):
        e, m = flint.arb("0.3"), flint.arb("0.8")
        x = flint.arb(found.point["E"])
        for _ in range(3):
            x -= (x - e * x.sin() - m) / (1 - e * x.cos())
        by_m = 1 / (1 - e * x.cos())
        want = [x, by_m, x.sin() * by_m, -e * x.sin() * by_m**3]
        texts = [found.point["E"], *(found.derivatives["E"][key] for key in ("M", "e", "M,M"))]
        for number, text in zip(want, texts):
            assert len(text.lstrip("-0.").replace(".", "")) == 60
            assert abs(flint.arb(text) - number) <= abs(number) * flint.arb("1e-59")
    line = run("solve", "x**2 = a", "x~1", "a=4", "--digits", "20", "--json").json
    assert line["roots"][0]["point"] == {"x": "2"}
    assert line["roots"][0]["derivatives"] == {"x": {"a": "0.25"}}
    vector = solve("x@x = 4; x[0] = x[1]*a", start={"x": [1, 2]}, a=3, digits=20).roots[0]
    assert vector.point["x"].tolist() == ["1.8973665961010275992", "0.63245553203367586640"]
    with pytest.raises(EvaluationError, match="no root can be proved"):
        solve("(x - 1)**2", start={"x": 3}, digits=20)


@pytest.mark.parametrize(("equation", "bracket"), [("cosh(x) = 0", "x=-40..41"), ("1e-200*(x**2 + 1) = 0", "x=-1..2")])
def test_what_turns_back_far_from_0_is_no_root(run, equation, bracket):
    result = run("solve", equation, bracket, "--all", "--json")
    assert result.status == 1
    assert result.json["roots"] == []


@pytest.mark.parametrize("words", [["x=0..1000"], ["x=0..1000", "--all"], ["x=744..745.1332191019412"], ["x~800"]])
def test_what_rounds_to_0_is_no_root(run, words):
    result = run("solve", "exp(-x) = 0", *words, "--json")
    assert result.status == 1
    assert not result.json["converged"]
    assert "rounds to 0" in result.json["message"]


@pytest.mark.parametrize("words", [["x=0..100"], ["x=0..100", "--all"], ["x=0..19.07"], ["x~0"], ["x~30"]])
def test_a_limit_is_no_root(run, words):
    result = run("solve", "tanh(x) = 1", *words, "--json")
    assert (result.status, result.json["converged"]) == (1, False)
    assert "rounds to 0" in result.json["message"]


@pytest.mark.parametrize("words", [["x=0..1"], ["x=0..1", "--all"], ["x=-1..2", "--all"], ["x~0.5"]])
def test_a_root_around_which_floats_are_0_is_a_point(run, words):
    found = run("solve", "cos(x) = 1", *words, "--json").json
    assert [root["point"]["x"] for root in found["roots"]] == [pytest.approx(0.0, abs=1e-7)]
    assert found["converged"]


def test_a_pole_among_the_points_that_are_looked_at_is_no_root(run):
    result = run("solve", "1/(x - 2) = 0", "x=0..5", "--all", "--json")
    assert (result.status, result.json["roots"]) == (1, [])
    assert "pole" in result.json["message"]


@pytest.mark.parametrize(
    ("equation", "unknown", "expected"),
    [
        ("tan(x)=1e6", "x=0..10", [math.atan(1e6) + k * math.pi for k in range(3)]),
        ("1/(x - 1) + 1e4=0", "x=0..10", [0.9999]),
        ("1/(x - pi) = 1e8", "x=0..10", [math.pi + 1e-8]),
    ],
)
def test_a_root_beside_a_pole_far_from_0_is_found(run, equation, unknown, expected):
    found = run("solve", equation, unknown, "--all", "--json").json
    assert [root["point"]["x"] for root in found["roots"]] == pytest.approx(expected, rel=1e-14)
    assert "may be more" not in found["message"]


def test_a_root_with_poles_a_tenth_beside_it_is_regular(run):
    (root,) = run("solve", "tan(x)=a", "x~15", "a=0", "--json").json["roots"]
    assert root["condition"] == pytest.approx(1)
    assert root["derivatives"]["x"]["a"] == pytest.approx(1)
    found = run("solve", "tan(x)=0", "x=0..100", "--all", "--json").json["roots"]
    assert [root["condition"] for root in found] == pytest.approx([1] * 32)


def test_a_double_root_of_a_system_is_singular(run):
    found = run("solve", "x**2 - 2*x*y + y**2 = 0; x + y = 2", "x~3", "y~0", "--json").json
    assert found["roots"][0]["condition"] == "Infinity"
    assert "singular" in found["message"]


@pytest.mark.parametrize(
    ("equation", "ends"), [("maximum(x, 0) = 0", (-1, 0)), ("floor(x) = 0", (0, 1)), ("x - x = 0", (-1, 2))]
)
@pytest.mark.parametrize("words", [["--all"], []])
def test_a_stretch_of_roots_is_given_by_its_ends(run, equation, ends, words):
    found = run("solve", equation, "x=-1..2", *words, "--json").json
    assert found["converged"]
    assert [root["point"]["x"] for root in found["roots"]] == pytest.approx(ends)
    assert f"left - right is 0 from x={ends[0]} to x={ends[1]}" in found["message"]
    assert "beside others" in run("solve", equation, f"x~{sum(ends) / 2}", "--json").json["message"]


def test_a_root_of_high_order_is_no_stretch(run):
    found = run("solve", "(x - 1)**30 = 0", "x=0..2", "--all", "--json").json
    assert [root["point"]["x"] for root in found["roots"]] == [1.0]
    assert run("solve", "x**2*1e-300 = 0", "x=0..2", "--json").json["roots"][0]["point"] == {"x": 0.0}


@pytest.mark.parametrize(
    ("equation", "root"),
    [
        ("x**2 = 1e300", 1e150),
        ("1/x = 1e-300", 1e300),
        ("log(x) = 500", math.exp(500)),
        ("exp(-x) = 1e-250", 250 * math.log(10)),
        ("x**2 = 1e-300", 1e-150),
        ("(x - 2)**3 = 0", 2.0),
    ],
)
def test_roots_that_are_far_from_their_start(run, equation, root):
    found = run("solve", equation, "x~1", "--json")
    assert found.status == 0
    assert found.json["roots"][0]["point"]["x"] == pytest.approx(root, rel=1e-13)


def test_what_rounding_leaves_of_values_is_no_root(run):
    found = run("solve", "sin(x*y) = 0.5; x + y = 3", "x~1", "y~1", "--json")
    assert (found.status, found.json["roots"][0]["residual"] < 1e-9) == (0, True)
    # So far away 1 - tanh(x) is exactly 0, and the start looks like a root.
    assert run("solve", "tanh(x) = 1", "x~1", "--json").status == 1


@pytest.mark.parametrize("words", [["--all"], []])
@pytest.mark.parametrize(
    ("equation", "root"), [("sqrt(x) = 0", 0.0), ("sqrt(x**2 - 2) = 0", math.sqrt(2.0)), ("sqrt(x) = 1e-4", 1e-8)]
)
def test_a_root_where_values_begin(run, equation, root, words):
    found = run("solve", equation, "x=-1..2", *words, "--json")
    assert [r["point"]["x"] for r in found.json["roots"]] == pytest.approx([root], rel=1e-12)


def test_what_begins_above_0_has_no_root(run):
    assert run("solve", "sqrt(x - 1) + 5 = 0", "x=0..2").status == 1
    assert run("solve", "sqrt(x - 1) + 5 = 0", "x=0..2", "--all", "--json").json["roots"] == []


@pytest.mark.parametrize("words", [["--all"], []])
def test_values_that_begin_at_a_pole_begin_at_no_root(run, words):
    assert [r["point"]["x"] for r in run("solve", "log(x) = 0", "x=-1..3", *words, "--json").json["roots"]] == [1.0]


@pytest.mark.cases(1)
@pytest.mark.parametrize(("equation", "start"), [("exp(-exp(x)) = 0", 1), ("exp(x)/(1 + exp(x)) = 1", 50)])
def test_neither_infinity_nor_what_rounds_to_0_far_away_is_a_root(run, equation, start):
    assert run("solve", equation, f"x~{start}", "--json").status == 1


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("sqrt(x**2 + 1) - x", ["x~1"]),
        ("sqrt(x**2 + 1) - x", ["x=1..1e10"]),
        ("coth(x) = 1", ["x~1"]),
        ("coth(x) = 1", ["x~50"]),
        ("sqrt(x + 1) - sqrt(x)", ["x~1"]),
        ("(x + 1e8)**2 - x**2 - 1e16 - 2e8*x - 1", ["x~1"]),
        ("(x + 1e8)**2 - x**2 - 1e16 - 2e8*x - 1", ["x=-5..5", "--all"]),
        ("y = 2; sqrt(x**2 + 1) = x*y/2", ["x~1", "y~1"]),
    ],
)
def test_what_is_rounding_errors_alone_is_no_root(run, equation, words):
    found = run("solve", equation, *words)
    assert found.status == 1
    assert "which shows no root" in found.err or "no root was found" in found.err


@pytest.mark.parametrize("equation", ["1/x = 1e-300", "1/x = 1e200", "x**2 = 1e-320"])
def test_roots_are_judged_by_how_large_they_are(run, equation):
    found = run("solve", equation, "x~1", "--json").json
    assert found["message"] == "a root"
    assert found["roots"][0]["condition"] == 1


def test_derivatives_that_are_no_floats_are_told(run):
    found = run("solve", "1/x = a", "x~1", "a=1e-300", "--json").json
    assert found["roots"][0]["derivatives"] == {"x": {"a": None}}
    assert found["message"] == "a root whose derivatives are too large or too small for floats"


@pytest.mark.slow
def test_unknowns_of_a_system_may_be_in_different_units(run):
    root = run("solve", "x**2 = a; y = 1e12", "x~1", "y~1", "a=1e-40", "--json").json["roots"][0]
    assert root["point"] == pytest.approx({"x": 1e-20, "y": 1e12})
    assert root["derivatives"]["x"]["a"] == pytest.approx(5e19)
    # From here x gets close to 0 before y gets large, where the second equation is off by a third.
    assert run("solve", "x**2 = 1e-200; y*x = 1", "x~1", "y~1", "--json").status == 1


@pytest.mark.slow
def test_an_equation_with_an_integral_needs_no_start(run):
    # Beyond 10, what is integrated oscillates more often than there is time for.
    done = run("solve", "integrate(1/sqrt(1-k*sin(t)**2), t, 0, x) = 1", "k=0.5", "--max-elements", "40000000")
    assert done.status == 0, done.err
    # The inverse of the integral is Jacobi's amplitude: am(1 | 0.5).
    assert "x  0.932315" in done.out
    assert "those between x=-10 and x=10; to look beyond takes too long" in done.out
