"""Tests `odeint` and `solve_ivp`: derivatives of every order, switches, stiffness and errors."""

from __future__ import annotations

import itertools
import math
import sys
from decimal import Decimal

import numpy as np
import pytest

import gradcli
from gradcli.executors import llvm_ufuncs

_LOTKA_VOLTERRA = "f(t, s) = [a*s[0] - b*s[0]*s[1], d*s[0]*s[1] - c*s[1]]; solve_ivp(f, (0, 10), [x, 5.0]).y[0, 1]"
_VALUES = ("x=10", "a=1.1", "b=0.4", "c=0.4", "d=0.1")


def _states(run, start, right_side, end, *options):
    program = f"solve_ivp(lambda t, y: {right_side}, (0, {end!r}), {start!r}).y[:, 1]"
    return np.array(run("eval", program, "--no-grad", "--json", *options).json["value"])


def test_a_harmonic_oscillator_keeps_its_digits(run):
    found = _states(run, [1.0, 0.0], "[y[1], -y[0]]", 100.0)
    assert found == pytest.approx([math.cos(100), -math.sin(100)], rel=1e-14)


def test_gradient_of_lotka_and_volterras_equations(run):
    done = run("eval", _LOTKA_VOLTERRA, *_VALUES, "--json").json
    gradient = {"x": 0.57482079708740, "a": -1.61987559442970, "b": 26.0559949098451, "c": 25.1135312718616}
    assert done["value"] == pytest.approx(13.6336392439217, rel=1e-13)
    for name, slope in gradient.items():
        assert done["grad"][name] == pytest.approx(slope, rel=1e-12)


def test_many_calls_give_the_same_digits_as_the_first():
    # After some calls, machine code computes them.
    program = gradcli.compile(_LOTKA_VOLTERRA)
    values = {"x": 10.0, "a": 1.1, "b": 0.4, "c": 0.4, "d": 0.1}
    first = program.jacobian(values)
    for i in range(30):
        program.jacobian({**values, "a": 1.2 + 1e-3 * i})
    # The last solutions are kept; these are computed again.
    last = program.jacobian({**values, "a": 1.1 + 1e-15})
    for name, slope in first.items():
        assert float(last[name]) == pytest.approx(float(slope), rel=1e-11)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("right_side", "closed"),
    [
        ("-k*y**1.5", lambda k, t: (1.5**-0.5 + k * t / 2) ** -2),
        ("-k*t*y/(1 + t*t)", lambda k, t: 1.5 * (1 + t * t) ** (-k / 2)),
        ("k*cos(t)*y", lambda k, t: 1.5 * math.exp(k * math.sin(t))),
        ("k*where(t < 1, y, y*y)", lambda k, t: 1 / (1 / (1.5 * math.exp(k)) - k * (t - 1))),
    ],
)
def test_many_calls_without_a_compiler(monkeypatch, right_side, closed):
    # After some calls, longer code of Python computes them.
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setattr(llvm_ufuncs, "_target", llvm_ufuncs._target.__wrapped__)
    program = gradcli.compile(f"odeint(lambda y, t: {right_side}, 1.5, [0, 1.4])[1]")
    for i in range(100):
        k = 0.1 + 1e-3 * i
        value, grad = program.value_and_grad({"k": k})
        assert value == pytest.approx(closed(k, 1.4), rel=1e-12)
        h = 1e-5
        assert float(grad["k"]) == pytest.approx((closed(k + h, 1.4) - closed(k - h, 1.4)) / (2 * h), rel=1e-6)


def test_many_calls_find_jumps_as_the_first():
    program = gradcli.compile("odeint(lambda y, t: where(t < lag, y, -y), 0.7, [0, 6])[1]")
    for i in range(150):
        lag = 2 + 1e-3 * i
        assert program(lag=lag) == pytest.approx(0.7 * math.exp(2 * lag - 6), rel=1e-12)


def test_derivatives_of_order_3_by_a_parameter_and_the_end(run):
    program = "solve_ivp(lambda t, y: y*(1 - y/K), (0, T), [0.1]).y[0, 1]"
    closed = "K/(1 + (K/0.1 - 1)*exp(-T))"
    found, expected = (run("eval", p, "K=3", "T=2", "--order", "3", "--json").json for p in (program, closed))
    for key in ("value", "grad", "derivatives"):
        if key in expected:
            assert found[key] == pytest.approx(expected[key], rel=1e-11)


def test_derivatives_by_the_start_time_and_by_each_time(run):
    program = "odeint(lambda y, t: -k*t*y, v, [s, 1.5, e])"
    found = run("eval", program, "k=1.3", "v=0.9", "s=0.3", "e=1.7", "--jacobian", "--json").json
    last = 0.9 * math.exp(-1.3 * (1.7**2 - 0.3**2) / 2)
    assert found["value"][2] == pytest.approx(last, rel=1e-14)
    assert found["jacobian"]["s"][2] == pytest.approx(last * 1.3 * 0.3, rel=1e-13)
    assert found["jacobian"]["e"] == pytest.approx([0, 0, -last * 1.3 * 1.7], rel=1e-13)
    assert found["jacobian"]["s"][0] == 0


def test_sensitivities_of_a_stiff_system(run):
    program = """f(t, y) = [-k*y[0] + m*y[1]*y[2], k*y[0] - m*y[1]*y[2] - n*y[1]**2, n*y[1]**2]
solve_ivp(f, (0, end), [1.0, 0.0, 0.0]).y[0, 1]"""
    grad = run("eval", program, "k=0.04", "m=1e4", "n=3e7", "end=1e4", "--json").json["grad"]
    # By SciPy's Radau with complex steps.
    assert grad["k"] == pytest.approx(-3.437816911, rel=1e-8)
    # Rates that are all multiplied by a number are those of a time that passes so much faster.
    assert grad["k"] * 0.04 + grad["m"] * 1e4 + grad["n"] * 3e7 == pytest.approx(grad["end"] * 1e4, rel=1e-8)


@pytest.mark.parametrize(
    ("right_side", "expected"),
    [
        ("where(t < 3, 1.0, -2.0) + 0*y", -1.0),
        ("abs(t - 2.5) + 0*y", 6.25),
        ("floor(t) + 0*y", 10.0),
        ("maximum(t, 2) + 0*y", 4 + 10.5),
        ("t % 2 + 0*y", 4.5),
    ],
)
def test_kinks_and_jumps_are_stepped_onto(run, right_side, expected):
    found = run("eval", f"odeint(lambda y, t: {right_side}, 0, [0, 5])[1]", "--no-grad", "--json").json["value"]
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("width", ["1.0", "0.01", "0.001"])
def test_a_peak_far_from_the_start_is_seen(run, width):
    program = f"odeint(lambda y, t: exp(-((t - 50)/{width})**2), 0, [0, 100])[1]"
    found = run("eval", program, "--no-grad", "--json").json["value"]
    assert found == pytest.approx(math.sqrt(math.pi) * float(width), rel=1e-12)


@pytest.mark.parametrize(
    ("width", "method"),
    [
        (1e-2, "radau"),
        (1e-6, "taylor"),
        pytest.param(1e-2, "taylor", marks=pytest.mark.slow),
        pytest.param(1e-6, "radau", marks=pytest.mark.slow),
    ],
)
def test_narrow_peaks_beside_a_decay_are_seen(run, width, method):
    """Doses that come as narrow peaks: steps that the decay made short were not examined, and the doses were lost."""
    right_side = "exp(-((t % 24 - 12)/w)**2)/(w*sqrt(pi)) - k*y"
    program = f"odeint(lambda y, t: {right_side}, 0, [0, 37], method='{method}')[1]"
    found = run("eval", program, f"w={width}", "k=1", "--no-grad", "--json").json["value"]
    assert found == pytest.approx((math.exp(-1) + math.exp(-25)) * math.exp(width**2 / 4), rel=1e-8)


@pytest.mark.cases(4)
@pytest.mark.parametrize("method", ["taylor", "radau"])
@pytest.mark.parametrize(
    ("pulse", "area", "centre"),
    [
        # Windows, a high power, and one of a quotient.
        ("erf(1000*(t - 12)) - erf(1000*(t - 12.01))", 0.02, 12.005),
        ("tanh(1e5*(t - 12)) - tanh(1e5*(t - 12.01))", 0.02, 12.005),
        ("cos(t/7 - 12/7)**1000000", 7e-3 * math.sqrt(2 * math.pi), 12.0),
        ("1/(1 + 1e8*(t - 12)**2)**8", 1e-4 * math.sqrt(math.pi) * math.gamma(7.5) / math.gamma(8), 12.0),
    ],
)
def test_narrow_pulses_of_any_form_are_seen(run, pulse, area, centre, method):
    program = f"odeint(lambda y, t: {pulse} - y/10, 0, [0, 24], method='{method}')[1]"
    found = run("eval", program, "--no-grad", "--json").json["value"]
    assert found == pytest.approx(area * math.exp((centre - 24) / 10), rel=1e-6)


def test_a_small_pulse_beside_a_large_one_is_seen(run):
    pulses = "1000*exp(-1e6*(t - 5)**2) + 1e-4*exp(-1e6*(t - at)**2)"
    program = f"odeint(lambda y, t: {pulses} - y/10, 1, [0, 24])[1]"
    slope = run("eval", program, "at=12", "--json").json["grad"]["at"]
    area = 1e-7 * math.sqrt(math.pi) * math.exp(0.01 / 4e6)
    assert slope == pytest.approx(area * math.exp(-1.2) / 10, rel=1e-6)


def test_rows_of_a_table_with_narrow_peaks(run, tmp_path):
    (tmp_path / "rows.csv").write_text("at\n" + "".join(f"{10 + k / 8}\n" for k in range(20)))
    program = "odeint(lambda y, t: exp(-((t - at)/0.01)**2)/(0.01*sqrt(pi)) - y, 1, [0, 13])[1]"
    lines = run("map", program, str(tmp_path / "rows.csv"), "--no-grad").out.splitlines()[1:]
    found = [float(line.split(",")[1]) for line in lines]
    expected = [math.exp(-13) + math.exp(10 + k / 8 - 13 + 0.01**2 / 4) for k in range(20)]
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_derivative_by_the_time_of_a_jump(run):
    program = "odeint(lambda y, t: where(t < lag, 0, k) - y, 0, [0.5, 3])[1]"
    done = run("eval", program, "lag=1.3", "k=2", "--json").json
    assert done["value"] == pytest.approx(2 * (1 - math.exp(-1.7)), rel=1e-13)
    assert done["grad"] == pytest.approx({"lag": -2 * math.exp(-1.7), "k": 1 - math.exp(-1.7)}, rel=1e-13)


@pytest.mark.cases(1)
@pytest.mark.parametrize("right_side", ["where(abs(t - k) < 1e-3, 1, 0)", "[1, where(abs(y[0] - k) < 1e-3, 1, 0)]"])
def test_the_derivative_by_the_place_of_a_narrow_pulse(run, right_side):
    """Steps are short beside a pulse; within them its end, which is rounded, seemed to be ahead, again and again."""
    start, last = ("[0, 0]", "1, 1") if "[" in right_side else ("0", "1")
    done = run("eval", f"odeint(lambda y, t: {right_side}, {start}, [0, 100])[{last}]", "k=50.03", "--json").json
    assert done["value"] == pytest.approx(2e-3, rel=1e-10)
    assert done["grad"]["k"] == 0.0


@pytest.mark.slow
def test_the_derivative_by_the_time_of_a_jump_among_many_parameters(run):
    names = [f"p{i}" for i in range(10)]
    program = f"odeint(lambda y, t: where(t < lag, 0, k) - y + 0*({'+'.join(names)}), 0, [0.5, 3])[1]"
    values = [f"{name}=1" for name in names]
    for option in ([], ["--order", "1"], ["--jacobian"]):
        done = run("eval", program, "lag=1.3", "k=2", *values, "--json", *option).json
        found = done.get("grad") or done["jacobian"]
        assert found["lag"] == pytest.approx(-2 * math.exp(-1.7), rel=1e-13)


@pytest.mark.slow
def test_higher_derivatives_by_the_time_of_a_jump(run):
    program = "odeint(lambda y, t: where(t < lag, 0, k) - y, 0, [0.5, 3])[1]"
    found = run("eval", program, "lag=1.3", "k=2", "--order", "3", "--json").json["derivatives"]
    decay = math.exp(-1.7)
    expected = {"lag,lag": -2 * decay, "lag,k": -decay, "k,k": 0.0, "lag,lag,lag": -2 * decay, "lag,lag,k": -decay}
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-13)


@pytest.mark.cases(3)
@pytest.mark.parametrize("method", ["taylor", "radau"])
@pytest.mark.parametrize(
    ("right_side", "values", "closed"),
    [
        # It decays to c, and then in another way.
        ("-k*y if y > c else -m*y**2", {"k": 0.5, "c": 1, "m": 2}, "1/(1/c + m*(4 - log(3/c)/k))"),
        ("-k*maximum(y, c)", {"k": 0.5, "c": 2.0}, "c - k*c*(4 - log(3/c)/k)"),
        ("where(t < c**2, -k, 1) + abs(t - c)", {"k": 0.5, "c": 1.25}, "3 - k*c**2 + 4 - c**2 + (c**2 + (4 - c)**2)/2"),
        ("-k*(1 + floor(y + 0.5))", {"k": 0.3}, "23/24 + 1/2 - 4*k"),
    ],
)
def test_second_derivatives_where_a_switch_moves(run, right_side, values, closed, method):
    words = [*(f"{name}={value}" for name, value in values.items()), "--order", "2", "--json"]
    found, expected = (
        run("eval", program, *words).json
        for program in (f"odeint(lambda y, t: {right_side}, 3, [0, 4], method={method!r})[1]", closed)
    )
    assert found["grad"] == pytest.approx(expected["grad"], rel=1e-11)
    assert found["derivatives"] == pytest.approx(expected["derivatives"], rel=1e-10, abs=1e-11)


def test_a_ball_that_bounces_at_places_that_depend_on_the_start(run):
    # y'' = -sign(y) has arcs of parabolas: a quarter of a period takes sqrt(2*x).
    program = "solve_ivp(lambda t, y: [y[1], -sign(y[0])], (0, 6), [x, 0]).y[0, 1]"
    done = run("eval", program, "x=1", "--json").json
    late = 6 - 3 * math.sqrt(2)
    speed = math.sqrt(2)
    assert done["value"] == pytest.approx(speed * late - late**2 / 2, rel=1e-13)
    slope = late / speed + (speed - late) * -3 / speed
    assert done["grad"]["x"] == pytest.approx(slope, rel=1e-12)
    # It is 24*sqrt(2*x) - 15*x - 18.
    higher = run("eval", program, "x=1", "--order", "4", "--json").json["derivatives"]
    expected = {"x,x": -12 / 2**0.5, "x,x,x": 18 / 2**0.5, "x,x,x,x": -45 / 2**0.5}
    assert higher == pytest.approx(expected, rel=1e-12)


def test_derivatives_of_a_stiff_system_across_a_switch(run):
    program = """\
f(t, y) = [-k*y[0] + m*y[1]*y[2], k*y[0] - m*y[1]*y[2] - where(y[0] > c, n, 2*n)*y[1]**2, where(y[0] > c, n, 2*n)*y[1]**2]
solve_ivp(f, (0, end), [1, 0, 0]).y[0, 1]"""
    words = ["k=0.04", "m=1e4", "n=3e7", "c=0.7", "end=1e3", "--wrt", "k,m,n,c,end", "--json"]
    grad = run("eval", program, *words).json["grad"]
    assert grad["k"] * 0.04 + grad["m"] * 1e4 + grad["n"] * 3e7 == pytest.approx(grad["end"] * 1e3, rel=1e-8)
    # By central differences, extrapolated.
    assert grad["c"] == pytest.approx(-0.02264508675, rel=1e-9)


def test_derivatives_where_two_switches_meet_are_refused(run):
    program = "odeint(lambda y, t: where(t < a, 0, 1) + where(t < b, 0, 2), 0, [0, 2])[1]"
    done = run("eval", program, "a=1", "b=1")
    assert done.status == 1
    assert "the right side switches in several ways at t = 1" in done.err


def test_times_that_descend_or_repeat(run):
    found = run("eval", "odeint(lambda y, t: y, 1, [1, 1, 0, -1])", "--no-grad", "--json").json["value"]
    assert found == pytest.approx([1, 1, math.exp(-1), math.exp(-2)], rel=1e-15)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("odeint(lambda y, t: y**2, x, [0, 1, 2])[2]", "the solution leaves to infinity at t = 0.5"),
        ("odeint(lambda y, t: exp(y), 0*x, [0, 2])[1]", "the solution leaves to infinity at t = 1"),
        ("odeint(lambda y, t: y, x, [0, 2, 1])", "times go back"),
        ("odeint(lambda y, t: -sign(y), 1, [0, 2*x])", "the right side switches back and forth"),
        ("odeint(lambda y, t: -sqrt(y), 1, [0, 2*x])", "the step becomes too small at t = 2"),
        ("odeint(lambda y, t: [y, y], x, [0, 2])", "the right side has 2 values for 1 states"),
        ("odeint(lambda y, t: y, x, 2)", "times are a list with at least the time of the start"),
        ("odeint(lambda y, t: y, x, [])", "times are a list with at least the time of the start"),
        ("odeint(x, 1, [0, 2])", "'odeint' needs a function"),
        (
            "odeint(lambda y, t: y, x, [0, 1], rtol=3)",
            "rtol= is a number above 0 and up to 0.01, and atol= is 0 or more",
        ),
        ("solve_ivp(lambda t, y: y, (0, 1), [x], method='RK99').y", "there is no method 'RK99'"),
    ],
)
def test_errors(run, program, message):
    done = run("eval", program, "x=2")
    assert done.status
    assert message in done.err


def test_rows_of_a_table_are_problems_of_their_own(run, tmp_path):
    rows = [(0.5 + 0.01 * i, 1 + 0.1 * i) for i in range(40)]
    path = tmp_path / "rows.csv"
    path.write_text("k,end\n" + "".join(f"{k},{end}\n" for k, end in rows))
    done = run("map", "odeint(lambda y, t: -k*y, 1, [0, end])[1]", str(path), "--wrt", "k")
    for line, (k, end) in zip(done.out.splitlines()[1:], rows):
        value, slope = map(float, line.split(",")[2:])
        assert (value, slope) == pytest.approx((math.exp(-k * end), -end * math.exp(-k * end)), rel=1e-12)


def test_further_arguments_as_scipy_jax_and_hips_give_them(run):
    for arguments in ("k, c", "args=(k, c)", "(k, c)"):
        program = f"odeint(lambda y, t, k, c: c - k*y, 0, [0, 1], {arguments})[1]"
        done = run("eval", program, "k=2", "c=3", "--json").json
        assert done["value"] == pytest.approx(1.5 * (1 - math.exp(-2)), rel=1e-13)


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    ("program", "closed"),
    [
        ("integrate(odeint(lambda y, t: -k*y, 1, [0, s])[1], s, 0, 2)", "(1 - exp(-2*k))/k"),
        ("integrate(odeint(lambda y, t: -k*y, 1, [s, 2])[1], s, 0, 2)", "(1 - exp(-2*k))/k"),
        ("integrate(sum(odeint(lambda y, t: -s*y, 1, [0, k, 1])), s, 0, 1)", "1 + 1 - exp(-1) + (1 - exp(-k))/k"),
        ("root(lambda s: odeint(lambda y, t: -s*y, 1, [0, 2])[1] - k, 1)", "-log(k)/2"),
        (
            "fsolve(lambda v: [odeint(lambda y, t: -v[0]*y, v[1], [0, 1])[1] - k, v[0] - v[1]*k], [1, 1])[1]",
            "root(lambda v: v*exp(-v*k) - k, 1)",
        ),
        ("argmin(lambda s: (odeint(lambda y, t: -s*y, 1, [0, 2])[1] - k)**2, 1)", "-log(k)/2"),
        ("odeint(lambda y, t: -odeint(lambda z, s: z*y, 1, [0, 0.5])[1], 1, [0, k])[1]", "-2*log(exp(-0.5) + k/2)"),
        ("odeint(lambda y, t: -argmin(lambda v: (v - 1)*(v - 2*y), 0) + 0.5, 1, [0, k])[1]", "exp(-k)"),
        ("nsum(odeint(lambda y, t: -k*y, 1, [0, 1])[1]**n, n, 1, 10)", "nsum(exp(-k*n), n, 1, 10)"),
        (
            "odeint(lambda y, t: -fsolve(lambda v: [v[0] + v[1] - y, v[0]*v[1] - 0.1*t], [1, 0])[0], 1, [0, k])[1]",
            "odeint(lambda y, t: -(y + sqrt(y**2 - 0.4*t))/2, 1, [0, k])[1]",
        ),
        ("integrate(fsolve(lambda v: [v[0] + v[1] - s, v[0]*v[1] - k/9], [1, 0])[0], s, 1, 2)",
         "integrate((s + sqrt(s**2 - 4*k/9))/2, s, 1, 2)"),
    ],
)  # fmt: skip
def test_functionals_inside_each_other(run, program, closed):
    found, expected = (run("eval", p, "k=0.3", "--order", "2", "--json").json for p in (program, closed))
    assert found["value"] == pytest.approx(expected["value"], rel=1e-12)
    assert found["grad"] == pytest.approx(expected["grad"], rel=1e-11)
    assert found["derivatives"] == pytest.approx(expected["derivatives"], rel=1e-10)


def test_digits_of_a_solution_inside_a_root(run):
    program = "root(lambda s: odeint(lambda y, t: -s*y, 1, [0, 2])[1] - k, 1)"
    found, expected = (run("eval", p, "k=3/10", "--digits", "25", "--json").json for p in (program, "-log(k)/2"))
    assert found["value"] == expected["value"]
    assert found["grad"] == expected["grad"]
    inside = run("eval", "integrate(odeint(lambda y, t: -y, 1, [0, s])[1], s, 0, 1)", "--digits", "20")
    assert "'odeint' has no proved digits inside an integral" in inside.err


def test_the_derivative_of_a_solution_has_no_formula(run):
    for language in ("text", "latex"):
        done = run("diff", "odeint(lambda y, t: -k*y, 1, [0, 1])[1]", "--to", language)
        assert done.status == 1
        assert f"'odeint' cannot be written as {language}" in done.err


_NETWORK = "sum(odeint(lambda y, t: tanh(W@y)*cos(t) - 0.5*y, y0, [s, 1, end]{})[1:]**2)"


@pytest.mark.slow
def test_adjoint_equations_give_the_derivatives_of_variational_ones():
    values = {"W": np.sin(np.arange(4.0)).reshape(2, 2), "y0": np.array([1.0, -0.5]), "s": 0.1, "end": 2.0}
    adjoint, variational = (gradcli.compile(_NETWORK.format(f", adjoint={a}")) for a in (True, False))
    for name, expected in variational.jacobian(values).items():
        assert np.asarray(adjoint.jacobian(values)[name]) == pytest.approx(np.asarray(expected), rel=1e-11, abs=1e-13)
    for name, expected in variational.hessian(values).items():
        assert np.asarray(adjoint.hessian(values)[name]) == pytest.approx(np.asarray(expected), rel=1e-9, abs=1e-12)


def test_adjoint_equations_of_states_that_grow_backward():
    text = "sum(odeint(lambda y, t: -k*y + W@sin(y), y0, [0, 1, 5]{})[1:]**2)"
    values = {"W": np.sin(np.arange(9.0)).reshape(3, 3), "y0": [1, -0.5, 2], "k": [6, 9, 3]}
    adjoint, variational = (gradcli.compile(text.format(f", adjoint={a}")) for a in (True, False))
    found = adjoint.jacobian(values)
    for name, expected in variational.jacobian(values).items():
        assert np.asarray(found[name]) == pytest.approx(np.asarray(expected), rel=1e-12, abs=1e-14)


@pytest.mark.slow
def test_a_gradient_by_a_thousand_parameters():
    program = gradcli.compile("odeint(lambda y, t: -sum(p*(1 + q*t))*y, 1, [0, 1])[1]")
    p, q = np.full(500, 0.002), np.linspace(0.5, 3, 500)
    value, grad = program.value_and_grad({"p": p, "q": q})
    closed = math.exp(-np.sum(p * (1 + q / 2)))
    assert float(value) == pytest.approx(closed, rel=1e-13)
    assert np.asarray(grad["p"]) == pytest.approx(-closed * (1 + q / 2), rel=1e-9)
    assert np.asarray(grad["q"]) == pytest.approx(-closed * p / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("program", "slope"),
    [
        ("odeint(lambda y, t: -a*y, 1, [3, 1, 0, 0], adjoint=True)[2]", 3 * math.exp(6)),
        ("odeint(lambda y, t: -a*y, 1, [0, 0], adjoint=True)[1]", 0.0),
        # Stiff systems have no adjoint ones that are solved backward; the variational ones are taken.
        ("solve_ivp(lambda t, y: -1000*(y - a*cos(t)), (0, 3), [0], adjoint=True, method='radau').y[0, 1]",
         (1000 * math.sin(3) + 1e6 * math.cos(3)) / (1 + 1e6)),
    ],
)  # fmt: skip
def test_adjoint_equations_of_special_problems(run, program, slope):
    assert run("eval", program, "a=2", "--json").json["grad"]["a"] == pytest.approx(slope, rel=1e-11)


def test_adjoint_equations_across_switches_are_refused(run):
    done = run("eval", "odeint(lambda y, t: -abs(y - a), 2, [0, 3], adjoint=True)[1]", "a=1")
    assert "adjoint= is for right sides that bend and jump nowhere" in done.err
    assert "adjoint= is True or False" in run("eval", "odeint(lambda y, t: -y, 1, [0, 1], adjoint='yes')[1]").err
    found = run("eval", "odeint(lambda y, t: -abs(y - a), 2, [0, 3])[1]", "a=1", "--json").json
    assert found["grad"]["a"] == pytest.approx(1 - math.exp(-3), rel=1e-11)


def _proved(run, program, *words):
    return run("eval", program, *words, "--json").json


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("program", "closed"),
    [
        ("odeint(lambda y, t: -k*t*y + 0*c, s, [0.2, 1.5, e])[2]", "s*exp(-k*(e**2 - 0.04)/2) + 0*c"),
        ("odeint(lambda y, t: c*sqrt(y) + 0*k, s, [e, 0.3])[1]", "(sqrt(s) + c*(0.3 - e)/2)**2 + 0*k"),
        ("solve_ivp(lambda t, y: [y[1], -k**2*y[0] + 0*c], (0, 10*e), [s, 0]).y[0, 1]", "s*cos(10*k*e) + 0*c"),
        ("odeint(lambda y, t: y*(1 - y/k) + erf(0*c), s, [0, e])[1]", "k/(1 + (k/s - 1)*exp(-e)) + 0*c"),
        ("odeint(lambda y, t: c*erf(k*t), s, [0, e])[1]", "s + c*(e*erf(k*e) + (exp(-(k*e)**2) - 1)/(k*sqrt(pi)))"),
    ],
)
@pytest.mark.parametrize("order", ["1", "2"])
def test_digits_of_a_solution_are_proved(run, program, closed, order):
    words = ("k=1.3", "c=0.7", "s=0.9", "e=1.7", "--digits", "30", "--order", order)
    found, expected = (_proved(run, p, *words) for p in (program, closed))
    assert float(found["value"]) == pytest.approx(float(expected["value"]), rel=1e-15)
    for part in ("value", "grad", "derivatives"):
        assert found.get(part) == _with_noughts(found.get(part), expected.get(part))


def _with_noughts(found, expected):
    """What is expected; numbers that are exact have fewer digits."""
    if isinstance(expected, dict):
        return {name: _with_noughts(found[name], text) for name, text in expected.items()}
    return found if found is not None and _decimal(found) == _decimal(expected) else expected


def _decimal(text):
    return Decimal(text) if isinstance(text, str) else text


@pytest.mark.slow
def test_digits_where_nearby_solutions_part(run):
    # The equations of E. N. Lorenz, beside `odefun` of mpmath with 45 digits.
    right_side = "[10*(y[1] - y[0]), y[0]*(28 - y[2]) - y[1], y[0]*y[1] - 8/3*y[2]]"
    done = run(
        "eval", f"solve_ivp(lambda t, y: {right_side}, (0, 5), [1, 1, 1]).y[0, 1]", "--no-grad", "--digits", "25"
    )
    assert done.out == "value  -6.512113699419599047000097\n"


def test_a_rotation_does_not_widen_the_balls(run):
    program = "solve_ivp(lambda t, y: [y[1], -y[0]], (0, 60), [1, 0]).y[0, 1]"
    done = run("eval", program, "--no-grad", "--digits", "40")
    assert done.out == run("eval", "cos(60)", "--no-grad", "--digits", "40").out


def test_digits_of_a_float_solution_are_certified(run):
    done = run("eval", "odeint(lambda y, t: -k*y, 1, [0, 2])[1]", "k=1.2", "--certify", "--json").json
    assert done["certified"]["value"] >= 14
    assert done["certified"]["grad"]["k"] >= 14


def test_a_solution_over_intervals_is_enclosed(run):
    done = run("eval", "odeint(lambda y, t: -k*y, 1, [0, e])[1]", "k=1..1.1", "e=2..2.1", "--enclose")
    assert done.out.splitlines()[0] == "value  [0.09926125155, 0.1353352833]"
    assert done.out.count("decreasing") == 2


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("odeint(lambda y, t: y**2, x, [0, 1])[1]", "the solution is enclosed up to t = 0.4999999"),
        ("odeint(lambda y, t: where(t < 0.3, 1, 2)*y, x, [0, 1])[1]", "the solution is enclosed up to t = 0.3 only"),
        ("odeint(lambda y, t: sqrt(y), x - 2, [0, 1])[1]", "the solution is enclosed up to t = 0 only"),
        ("odeint(lambda y, t: y, x, [0, 2, 1])", "times go back"),
        ("odeint(lambda y, t: zeta(y), x, [0, 1])[1]", "'zeta' has no proved digits inside a differential equation"),
    ],
)
def test_what_cannot_be_proved_is_an_error(run, program, message):
    done = run("eval", program, "x=2", "--digits", "15", "--no-grad")
    assert done.status
    assert message in done.err


@pytest.mark.parametrize("method", ["taylor", "radau"])
@pytest.mark.parametrize(
    ("rate", "start", "time"), [("c", 0.0, 12.0), ("c/3*s[0]", 1.0, 12 * math.log(3))], ids=["clock", "growth"]
)
def test_peaks_of_states_are_not_stepped_over(run, method, rate, start, time):
    """Far from such a peak it is 0 with all its derivatives, and the time at which the state is 3 there is known by the
    solution alone."""
    slopes = f"[{rate}, 100*exp(-((s[0] - 3)/w)**2) - s[1]]"
    program = f"solve_ivp(lambda t, s: {slopes}, (0, 20), [{start}, 0], method='{method}').y[1, -1]"
    found = run("eval", program, "w=0.003", "c=0.25", "--json").json
    # As a function of the time it is that of Gauss, nearly: the state passes with a slope of c.
    area = 100 * 0.003 / 0.25 * math.sqrt(math.pi)
    assert found["value"] == pytest.approx(area * math.exp(time - 20), rel=1e-3)
    assert found["grad"]["w"] == pytest.approx(found["value"] / 0.003, rel=1e-3)


@pytest.mark.parametrize(
    "window",
    [
        "sigmoid(1000*(x - 12))*sigmoid(1000*(12.1 - x))",
        "(tanh(1000*(x - 12)) - tanh(1000*(x - 12.1)))/2",
        "(erf(1000*(x - 12)) - erf(1000*(x - 12.1)))/2",
    ],
)
def test_narrow_windows_of_a_clock_are_not_stepped_over(run, window):
    slopes = f"[1, 100*{window.replace('x', 'y[0]')} - 0.01*y[1]]"
    found = _states(run, [0.0, 0.0], slopes, 24.0)
    expected = 1e4 * (math.exp(-0.01 * 11.9) - math.exp(-0.01 * 12))
    assert found[1] == pytest.approx(expected, rel=1e-8)


def test_sigmoids_by_taylors_method(run):
    program = "odeint(lambda y, t: sigmoid(k*(t - 1)), 0, [0, 3], method='taylor')[1]"
    closed = "(softplus(2*k) - softplus(-k))/k"
    found, expected = (run("eval", p, "k=300", "--order", "2", "--json").json for p in (program, closed))
    assert found["value"] == pytest.approx(expected["value"], rel=1e-12)
    assert found["grad"]["k"] == pytest.approx(expected["grad"]["k"], abs=1e-12)


_HODGKIN_HUXLEY = """\
rate(u) = u/(1 - exp(-u))
f(t, s) = [
    current - g*s[1]**3*s[2]*(s[0] - 50) - 36*s[3]**4*(s[0] + 77) - 0.3*(s[0] + 54.387),
    rate((s[0] + 40)/10)*(1 - s[1]) - 4*exp(-(s[0] + 65)/18)*s[1],
    0.07*exp(-(s[0] + 65)/20)*(1 - s[2]) - s[2]/(1 + exp(-(s[0] + 35)/10)),
    0.1*rate((s[0] + 55)/10)*(1 - s[3]) - 0.125*exp(-(s[0] + 65)/80)*s[3]]
solve_ivp(f, (0, 3), [-64.9, 0.053, 0.596, 0.318]).y[0, 1]"""


def test_removable_singularities_are_passed(run):
    """A step that began next to -40 or -55 mV, where a divisor is 0, had coefficients of rounding errors and could not leave
    the place."""
    done = run("eval", _HODGKIN_HUXLEY, "current=10.003", "g=120", "--json").json
    # By SciPy's DOP853 with complex steps, and the series of u/(1 - exp(-u)) next to 0.
    assert done["value"] == pytest.approx(3.04763208904, rel=1e-11)
    assert done["grad"] == pytest.approx({"current": -5.56209457117, "g": -0.148346110716}, rel=1e-10)


@pytest.mark.parametrize(
    ("slopes", "start", "expected"),
    [
        # Lane's and Emden's equation of index 1.
        ("[y[1], -2/t*y[1] - y[0]]", [1.0, 0.0], [math.sin(3) / 3, math.cos(3) / 3 - math.sin(3) / 9]),
        ("[1, y[0]/tanh(y[0])]", [0.0, 1.0], [3.0, 6.3137814003550657]),
    ],
)
def test_a_solution_may_begin_at_a_removable_singularity(run, slopes, start, expected):
    assert _states(run, start, slopes, 3.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("slope", ["1/t", "1/sqrt(t)", "y/t", "1/(y - 1)"])
def test_a_solution_does_not_begin_at_an_infinite_slope(run, slope):
    done = run("eval", f"odeint(lambda y, t: {slope}, x, [0, 3])[1]", "x=1", "--no-grad")
    assert done.status
    assert "the right side has no finite value at t = 0" in done.err


def test_the_derivative_of_a_relaxation_oscillation(run):
    """Errors were compared with what the steep slopes of its jumps would come to in a hundredth of the time."""
    program = "solve_ivp(lambda t, y: [y[1], mu*(1 - y[0]**2)*y[1] - y[0]], (0, 2000), [2, 0]).y[0, 1]"
    slope = run("eval", program, "mu=1000", "--json").json["grad"]["mu"]
    # The same with rtol=1e-11, 1e-13 and 3e-14 up to 3e-10.
    assert slope == pytest.approx(0.0017847936234, rel=5e-10)


def test_the_derivative_of_a_solution_that_no_rate_changes():
    """Prothero's and Robinson's problem on its smooth solution: the derivative is what rounding makes of 0, and the steps
    that resolved it were more than the allowed ones."""
    program = gradcli.compile("odeint(lambda y, t: -k*(y - cos(t)) - sin(t), 1, [0, 10])[1]")
    value, slopes = program.value_and_grad({"k": 1e6})
    assert float(value) == pytest.approx(math.cos(10), rel=1e-12)
    assert float(slopes["k"]) == pytest.approx(0.0, abs=1e-18)


# y' = f(t) - y from 0, with the derivatives of y(3) by c, by mpmath.
@pytest.mark.all_cases
@pytest.mark.parametrize("method", ["auto", "radau"])
@pytest.mark.parametrize(
    ("function", "c", "expected"),
    [
        ("clip(t, c, 1.5)", 0.7, (1.342277735716869, 0.05047177535494, 0.100258843723)),
        ("heaviside(t - c, 0.5)", 0.7, (0.8997411562771963, -0.1002588437228, -0.100258843723)),
        ("round(c*t)", 1.3, (2.693233733466106, 2.1881270724803, -7.39559473878)),
        ("leaky_relu(t - c)", 0.7, (1.400102635447829, -0.90024587403075, 0.0992562552856)),
        ("acot(t - c)", 0.7, (0.5009835889976497, 0.043057159685107, -0.0825112123944)),
        ("atan2(t - c, -1)", 0.7, (1.835012813009706, -0.27191528721186, -0.397483659291)),
        ("copysign(t, t - c)", 0.7, (2.010368237865818, -0.14036238121193, -0.340880068658)),
        ("angle(t - c)", 0.7, (0.1585617586687132, 0.31497244689697, 0.314972446897)),
        # No series begins at the jump.
        ("where(t < c, 0, sinc(t - c))", 0.73, (0.0392998127372226, -0.0658842265576113, 0.179106005173145)),
    ],
)
def test_functions_that_jump_at_times_that_move(run, function, c, expected, method):
    program = f"odeint(lambda y, t: {function} - y, 0, [0, 3], method='{method}')[1]"
    done = run("eval", program, f"c={c}", "--order", "2", "--json").json
    found = [done["value"], done["grad"]["c"], done["derivatives"]["c,c"]]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("right", "order"), [("norm(t - c)", "2"), ("(t - c)/abs(t - c)", "1")])
def test_derivatives_across_a_singular_switch_are_refused(run, right, order):
    """The second derivative of the first one was 0: the place of the bend was not accurate enough to be found."""
    done = run("eval", f"odeint(lambda y, t: {right} - y/2, 0.2, [0, 2])[1]", "c=0.73", "--order", order)
    assert done.status == 1
    assert "the solution touches a place where its right side switches" in done.err


def test_a_norm_bends_where_it_is_0(run):
    expected = run("eval", "odeint(lambda y, t: abs(3*(t - c)) - y/2, 0.2, [0, 2])[1]", "c=0.73", "--json").json
    done = run("eval", "odeint(lambda y, t: norm(3*(t - c)) - y/2, 0.2, [0, 2])[1]", "c=0.73", "--json").json
    assert done["value"] == pytest.approx(expected["value"], rel=1e-12)
    assert done["grad"]["c"] == pytest.approx(expected["grad"]["c"], rel=1e-10)


@pytest.mark.parametrize("right", ["1/(t - c)", "gamma(t - c)", "zeta(3*t - c)"])
def test_an_implicit_step_does_not_go_over_a_pole(run, right):
    """Its nodes on both sides gave numbers without a warning."""
    done = run("eval", f"odeint(lambda y, t: {right} - y/2, 0, [0, 2], method='radau')[1]", "c=0.73")
    assert done.status == 1
    assert "the solution leaves to infinity at t = " in done.err


@pytest.mark.parametrize(("end", "told"), [(60, True), (10, False)])
def test_values_of_chaotic_systems_without_derivatives(run, end, told):
    """They were printed with all digits and without a warning where they have none."""
    lorenz = "[10*(y[1] - y[0]), y[0]*(28 - y[2]) - y[1], y[0]*y[1] - 8/3*y[2]]"
    done = run("eval", f"odeint(lambda y, t: {lorenz}, [1, 1, 1], [0, {end}])[1][0]")
    assert ("the value of 'odeint' is accurate to about" in done.err) == told


def test_an_unstable_solution_by_which_no_parameter_tells(run):
    """Rounding grows by exp(40), and the derivative of the solution by k is 0: 3.388 was printed without a warning."""
    right = "k*(y[0] - t**2/(1 + t)) + (t**2 + 2*t)/(1 + t)**2"
    done = run("eval", f"f(t, y) = [{right}]; solve_ivp(f, (0, 4), [0.0]).y[0, 1]", "k=10")
    assert "the value of 'odeint' is accurate to about" in done.err


@pytest.mark.parametrize("w", [10.3, 100.3, 200.7])
def test_switches_that_change_faster_than_states(run, w):
    """They were located by series that were not accurate over a step: to 4e-9, and not at all for w=200.7."""
    done = run(
        "eval", "f(t, y) = [where(sin(w*t) > 0, 1, -1) - y[0]]; solve_ivp(f, (0, 1), [0]).y[0, 1]", f"w={w}", "--json"
    )
    ends = [min(k * math.pi / w, 1.0) for k in range(100)]
    parts = [(-1) ** k * (math.exp(b - 1) - math.exp(a - 1)) for k, (a, b) in enumerate(itertools.pairwise(ends))]
    assert done.json["value"] == pytest.approx(math.fsum(parts), rel=1e-11)


@pytest.mark.parametrize(("end", "told"), [(40, True), (2, False)])
@pytest.mark.parametrize("states", [3, 20])
def test_chaotic_systems_with_derivatives(run, states, end, told):
    """The derivatives, of many states by the adjoint equations, were large, and no warning said what that means."""
    lorenz = "[10*(y[1] - y[0]), y[0]*(28 - y[2]) - y[1], y[0]*y[1] - 8/3*y[2]]"
    right = lorenz if states == 3 else "(roll(y, -1) - roll(y, 2))*roll(y, 1) - y + 8"
    start = str([1.0] * 3 if states == 3 else [8.01] + [8.0] * 19)
    done = run("eval", f"odeint(lambda y, t: {right}, y0, [0, {end}])[1][0]", f"y0={start}")
    assert ("the value of 'odeint' is accurate to about" in done.err) == told
