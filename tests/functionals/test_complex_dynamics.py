"""Differential equations of complex states, solved for their real and imaginary parts."""

from __future__ import annotations

import cmath

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import gradcli


def number(value):
    return complex(value["re"], value["im"]) if isinstance(value, dict) else value


def test_a_rotation(run):
    found = run(
        "eval", "odeint(lambda y, t: -1j*w*y, z0, [0, 1.5])[1]", "w=2", "z0=1-0.5j", "--wrt", "w", "--json"
    ).json
    exact = (1 - 0.5j) * cmath.exp(-3j)
    assert number(found["value"]) == pytest.approx(exact, rel=1e-12)
    assert number(found["grad"]["w"]) == pytest.approx(-1.5j * exact, rel=1e-12)


@pytest.mark.parametrize(
    ("slope", "function"),
    [
        ("y**3/(1 + 1j*t) + tan(y)", lambda t, y: y**3 / (1 + 1j * t) + np.tan(y)),
        ("log(y)*tanh(y) - sinh(conj(y))", lambda t, y: np.log(y) * np.tanh(y) - np.sinh(np.conj(y))),
        ("y**(0.5 + 1j) + exp(y)/abs(y)", lambda t, y: y ** (0.5 + 1j) + np.exp(y) / abs(y)),
        ("sqrt(y)*cos(y) + sin(y)/y**2", lambda t, y: np.sqrt(y) * np.cos(y) + np.sin(y) / y**2),
        ("cosh(y) + 1j*angle(y) + y**-1", lambda t, y: np.cosh(y) + 1j * np.angle(y) + 1 / y),
        ("complex(imag(y), real(y)) - y/2j", lambda t, y: y.imag + 1j * y.real - y / 2j),
        ("expm1(y) + log1p(y)*atanh(y)", lambda t, y: np.expm1(y) + np.log1p(y) * np.arctanh(y)),
        ("atan(y) - log2(y)/log10(y + 2)", lambda t, y: np.arctan(y) - np.log2(y) / np.log10(y + 2)),
        ("exp2(y)*sigmoid(y) + rsqrt(y)", lambda t, y: 2**y / (1 + np.exp(-y)) + y**-0.5),
        ("where(t < 0.1, 1j*y, -y)", None),
    ],
)
def test_functions_of_complex_states(slope, function):
    """As by SciPy's DOP853; a switch by both pieces in closed form."""
    found = gradcli.compile(f"odeint(lambda y, t: {slope}, 0.3+0.2j, [0, 0.3])[1]")()
    if function is None:
        expected = (0.3 + 0.2j) * cmath.exp(0.1j - 0.2)
    else:
        expected = solve_ivp(function, (0, 0.3), [0.3 + 0.2j], method="DOP853", rtol=1e-12, atol=1e-13).y[0, -1]
    assert found == pytest.approx(expected, rel=1e-11)


LEVELS = "H = array([[-D, W], [W, D]])/2; psi = odeint(lambda y, t: -1j*H@y, [1+0j, 0], [0, t]); abs(psi[1][1])**2"
RABI = "W**2/(W**2 + D**2)*sin(sqrt(W**2 + D**2)*t/2)**2"


def test_two_levels_have_the_oscillations_of_rabi():
    values = {"D": 0.3, "W": 1.2, "t": 2.0}
    found, expected = gradcli.compile(LEVELS), gradcli.compile(RABI)
    assert found(**values) == pytest.approx(expected(**values), rel=1e-12)
    assert found.derivatives(values, 2) == pytest.approx(expected.derivatives(values, 2), rel=1e-10)


def test_many_times_rows_and_solve_ivp():
    at_times = gradcli.compile("odeint(lambda y, t: -1j*w*y, 1+0j, t)")
    t = np.linspace(0, 1, 5)
    assert at_times(w=2.0, t=t) == pytest.approx(np.exp(-2j * t), rel=1e-12)
    assert at_times.jacobian({"w": 2.0, "t": t}, ["w"])["w"] == pytest.approx(-1j * t * np.exp(-2j * t), rel=1e-11)
    rows = gradcli.compile("odeint(lambda y, t: -1j*w*y, 1+0j, [0, 1])[1]").map({"w": np.array([1.0, 2.0])}, order=1)
    assert rows["value"] == pytest.approx(np.exp(-1j * np.array([1, 2])), rel=1e-12)
    assert rows["d_w"] == pytest.approx(-1j * np.exp(-1j * np.array([1, 2])), rel=1e-11)
    found = gradcli.compile("solve_ivp(lambda t, y: [1j*y[1], y[0]], (0, 1), [1+0j, 2j], t_eval=[0, 1]).y")()
    expected = solve_ivp(lambda t, y: [1j * y[1], y[0]], (0, 1), [1 + 0j, 2j], rtol=1e-12, atol=1e-13).y[:, -1]
    assert found.shape == (2, 2)
    assert found[:, 1] == pytest.approx(expected, rel=1e-10)


def test_a_complex_start_has_wirtinger_derivatives(run):
    """The solution is z*exp(-1j) + conj(z)*0."""
    words = ("odeint(lambda y, t: -1j*y, z, [0, 1])[1]", "z=1+2j")
    found = run("eval", *words, "--wirtinger", "--json").json["wirtinger"]["z"]
    assert number(found["by"]) == pytest.approx(cmath.exp(-1j), rel=1e-12)
    assert abs(number(found["by_conjugate"])) < 1e-12
    assert "not known to be" in run("eval", *words).err


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("odeint(lambda y, t: -1j*y, 1, [0, 1])[1]", "write a complex start, as in 1+0j"),
        ("odeint(lambda y, t: gamma(y), 1+0j, [0, 1])[1]", "'gamma' is not known by these"),
        ("odeint(lambda y, t: y, 1+0j, [0, 1j])[1]", "takes real numbers, and not complex ones"),
        ("odeint(lambda y, t: [y, y], 1+0j, [0, 1])[1]", "the right side has 2 values for 1 states"),
    ],
)
def test_what_is_not_solved(run, program, message):
    done = run("eval", program)
    assert done.status
    assert message in done.err


def test_complex_numbers_within_a_real_right_side(run):
    found = run("eval", "odeint(lambda y, t: a*real(exp(1j*t))*y, 1, [0, 2])[1]", "a=2", "--json").json
    assert found["value"] == pytest.approx(np.exp(2 * np.sin(2)), rel=1e-12)
    assert found["grad"]["a"] == pytest.approx(np.sin(2) * np.exp(2 * np.sin(2)), rel=1e-12)


# --- gradcli ode


def columns_of(run, *words):
    found = run("ode", *words, "--json")
    assert found.status == 0, found.err
    return {name: np.asarray(column) for name, column in found.json["columns"].items()}


def test_a_complex_state_has_columns_of_its_parts(run):
    found = columns_of(
        run, "psi' = -1j*w*psi", "psi=1+0.5j", "w=2", "t=0..2", "--wrt", "w,psi", "--show", "abs(psi)**2"
    )
    t = found["t"]
    exact = (1 + 0.5j) * np.exp(-2j * t)
    assert found["real(psi)"] + 1j * found["imag(psi)"] == pytest.approx(exact, rel=1e-11)
    assert found["d_real(psi)_w"] + 1j * found["d_imag(psi)_w"] == pytest.approx(-1j * t * exact, rel=1e-11)
    assert found["d_real(psi)_real(psi)"] == pytest.approx(np.cos(2 * t), abs=1e-12)
    assert found["d_real(psi)_imag(psi)"] == pytest.approx(np.sin(2 * t), abs=1e-12)
    assert found["abs(psi)**2"] == pytest.approx(1.25)


def test_states_of_second_order_and_those_that_start_real(run):
    """A state is complex where one of its derivatives is; of two states each has a start of its own."""
    found = columns_of(run, "z'' = -w**2*z", "z=1+0j", "z'=0", "w=2", "t=0..2", "--points", "3", "--show", "abs(z')")
    assert [*found] == ["t", "real(z)", "imag(z)", "real(z')", "imag(z')", "abs(z')"]
    assert found["real(z)"] == pytest.approx(np.cos([0, 2, 4]), rel=1e-11)
    assert found["abs(z')"] == pytest.approx(2 * abs(np.sin([0, 2, 4])), rel=1e-11)
    found = columns_of(run, "a' = -1j*x*a; x' = -x", "a=1j", "x=1", "t=0..2", "--points", "3")
    phase = np.exp(-1j * (1 - np.exp([0, -1.0, -2.0])))
    assert found["real(a)"] + 1j * found["imag(a)"] == pytest.approx(1j * phase, rel=1e-11)


def test_jumps_stops_and_pictures_of_complex_states(run, tmp_path):
    found = columns_of(run, "psi' = -1j*psi; at t = 1: psi *= 2j", "psi=1+0j", "t=0..2", "--points", "3")
    assert found["real(psi)"] + 1j * found["imag(psi)"] == pytest.approx(np.exp([0, -1j, -2j]) * [1, 2j, 2j], rel=1e-11)
    words = ("psi' = -1j*w*psi", "psi=1+0j", "w=2", "t=0..2")
    found = run("ode", *words, "--stop", "real(psi) = 0", "--wrt", "w", "--json").json["stop"]
    assert (found["t"], found["d_t_w"]) == pytest.approx((np.pi / 4, -np.pi / 8))
    picture = tmp_path / "plane.svg"
    assert run("ode", *words, "--plot", str(picture), "--phase", "real(psi),imag(psi)").status == 0
    assert "<svg" in picture.read_text()


def test_derivatives_by_complex_parameters_are_by_their_parts(run):
    found = columns_of(run, "psi' = -1j*w*psi", "psi=1+0.5j", "w=2-0.3j", "t=0..2", "--wrt", "w", "--order", "2")
    t = found["t"]
    exact = (1 + 0.5j) * np.exp(-1j * (2 - 0.3j) * t)
    # Holomorphic in w: a step along the imaginary axis is i times that along the real one.
    for power, by in enumerate(("real(w)", "imag(w)")):
        slope = found[f"d_real(psi)_{by}"] + 1j * found[f"d_imag(psi)_{by}"]
        assert slope == pytest.approx(-1j * t * exact * 1j**power, rel=1e-10, abs=1e-14)
    mixed = found["d_real(psi)_real(w)_imag(w)"] + 1j * found["d_imag(psi)_real(w)_imag(w)"]
    assert mixed == pytest.approx(-(t**2) * exact * 1j, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(
    ("equations", "starts", "by"),
    [
        ("x' = -abs(k)**2*x + imag(k*c)", ("x=1",), "k,c,x"),
        ("z' = conj(z)*k - z*abs(z)*x; x' = -x", ("z=0.5+0.2j", "x=1"), "k,z"),
        ("z' = k*z + c; at t = 0.5: z += real(c)*k", ("z=0.5+0.2j",), "k,c"),
    ],
)
def test_they_are_those_of_differences(run, equations, starts, by):
    values = {"k": 0.4 - 0.3j, "c": 1.1 + 0.2j}

    def solved(*more, **moved):
        given = values | moved
        read = [f"{name}={given[name].real!r}{given[name].imag:+}j" for name in names]
        return columns_of(run, equations, *starts, *read, "t=0..1", "--points", "2", *more)

    names = [name for name in values if name in by]
    found = solved("--wrt", by)
    for name in names:
        for part, step in (("real", 1e-6), ("imag", 1e-6j)):
            above, below = (solved(**{name: values[name] + sign * step}) for sign in (1, -1))
            for column in below:
                if column != "t" and f"d_{column}_{part}({name})" in found:
                    slope = (above[column][-1] - below[column][-1]) / 2e-6
                    own = found[f"d_{column}_{part}({name})"][-1]
                    assert own == pytest.approx(slope, rel=1e-6, abs=1e-8)
    assert any(key.endswith("_imag(k)") for key in found)


def test_proved_digits_of_complex_states_and_parameters(run):
    words = ("psi' = -1j*w*psi", "psi=1+0.5j", "w=2-0.3j", "t=[0,1.5]", "--wrt", "w", "--show", "real(psi**2)")
    found = columns_of(run, *words, "--digits", "30")
    with mpmath.workdps(50):
        exact = mpmath.mpc(1, 0.5) * mpmath.exp(-1j * mpmath.mpc("2", "-0.3") * 1.5)
        slope = -1.5j * exact
        wanted = {
            "real(psi)": exact.real, "imag(psi)": exact.imag, "real(psi**2)": (exact**2).real,
            "d_real(psi)_real(w)": slope.real, "d_imag(psi)_real(w)": slope.imag, "d_real(psi)_imag(w)": -slope.imag,
        }  # fmt: skip
        for name, number in wanted.items():
            assert mpmath.almosteq(mpmath.mpf(found[name][1]), number, 1e-29), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a' = -1j*b; b' = -1j*a", "a=1+0j", "b=0"), "write its start as a complex number, as in 1+0j"),
        (("psi' = -1j*psi", "psi=1+0j", "--show", "psi*2"), "a column of a solution takes real numbers"),
        (("x' = -x", "x=1", "--show", "x*(1 + 1j)"), "a column of a solution takes real numbers"),
        (("psi' = -1j*w[0]*psi", "psi=1+0j", "w=[1j]", "--wrt", "w"), "'w' is one number"),
        (("x' = -w*x", "x=1", "w=1j", "--wrt", "w"), "write its start as a complex number, as in 1+0j"),
        (("psi' = floor(psi)", "psi=1+0j", "--digits", "9"), "  | psi' = floor(psi)\n"),
        (("psi' = -1j*floor(psi)", "psi=1+0j"), "  | psi' = -1j*floor(psi)\n  |            ^^^^^^^^^^"),
        (("psi' = -1j*psi", "psi=inf+0j"), "the start of 'real(psi)' is inf"),
        (("psi' = -1j*psi", "psi=[1j, 2]"), "'real(psi)' is one number"),
    ],
)
def test_what_ode_refuses(run, words, message):
    done = run("ode", *words, "t=0..1")
    assert done.status
    assert message in done.err
    assert "internal" not in done.err
