"""Problems of engineers and physicists with complex numbers: control loops, networks, quantum systems."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import gradcli

EXAMPLES = Path(__file__).parents[2] / "examples"

# --- a PI controller before a plant of three time constants

LOOP = "L(s) = (Kp + Ki/s)/((1 + s)*(1 + 0.2*s)*(1 + 0.05*s))"
CONTROLLER = ("Kp=4", "Ki=2")
# From python-control 0.10.2: control.margin of the loop, and central differences of it, whose step is 1e-4; poles are
# those of control.feedback(L, 1).
CROSSOVER, PHASE_MARGIN = 3.2110747608719414, 56.61683997238282
PHASE_CROSSOVER, GAIN_MARGIN = 10.603992793598097, 7.058903105834222
SLOPES = {
    "crossover": (0.6258121, 0.03034682),
    "phase margin": (-6.11985497, -4.75755795),
    "phase crossover": (0.1474195, -0.29483899),
    "gain margin": (-1.56150519, -0.40644117),
}
POLES = (-21.194268985195546, -2.180364034490661 + 4.056047342204846j, -0.4450029458231226)


def test_the_crossover_of_a_control_loop(run):
    (root,) = run("solve", f"{LOOP}; abs(L(1j*w)) = 1", "w~1", *CONTROLLER, "--json").json["roots"]
    assert root["point"]["w"] == pytest.approx(CROSSOVER, rel=1e-13)
    assert [root["derivatives"]["w"][name] for name in ("Kp", "Ki")] == pytest.approx(SLOPES["crossover"], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "program", "value"),
    [
        ("phase margin", "w = root(lambda w: abs(L(1j*w)) - 1, 1); 180 + degrees(angle(L(1j*w)))", PHASE_MARGIN),
        ("phase crossover", "brentq(lambda w: imag(L(1j*w)), 2, 100)", PHASE_CROSSOVER),
        ("gain margin", "w = brentq(lambda w: imag(L(1j*w)), 2, 100); 1/abs(L(1j*w))", GAIN_MARGIN),
    ],
)
def test_margins_of_a_control_loop(run, name, program, value):
    found = run("eval", f"{LOOP}; {program}", *CONTROLLER, "--json").json
    assert found["value"] == pytest.approx(value, rel=1e-13)
    assert [found["grad"]["Kp"], found["grad"]["Ki"]] == pytest.approx(SLOPES[name], rel=1e-6)


def test_poles_of_a_control_loop():
    """A pole s of the closed loop moves by -1/D'(s) for the constant of the denominator D, and by -s/D'(s) for that of s."""
    denominator = "polyadd(polymul([1, 1, 0], polymul([0.2, 1], [0.05, 1])), [Kp, Ki])"
    program = gradcli.compile(f"roots({denominator})")
    values = {"Kp": 4.0, "Ki": 2.0}
    poles, slopes = program(**values), program.jacobian(values)
    assert sorted(poles, key=lambda s: s.real)[0] == pytest.approx(POLES[0], rel=1e-13)
    assert min(abs(poles - POLES[1])) < 1e-13
    assert max(poles, key=lambda s: s.real) == pytest.approx(POLES[2], rel=1e-12)
    change = -1 / np.polyval(np.polyder(gradcli.compile(denominator)(**values)), poles)
    assert slopes["Ki"] == pytest.approx(change, rel=1e-12)
    assert slopes["Kp"] == pytest.approx(change * poles, rel=1e-12)


# --- a network of 20 nodes for alternating current

NODES, COLUMNS = 20, 5
LINES = [(k, k + 1) for k in range(NODES) if k % COLUMNS < COLUMNS - 1]
LINES += [(k, k + COLUMNS) for k in range(NODES - COLUMNS)]
NETWORK = "y = 1/(R + 1j*w*L); v = solve(A@diag(y)@A.T + diag(G + 1j*w*C), I); abs(v[19])"
# The same with the real and imaginary parts of voltages and currents.
REAL_NETWORK = """
z2 = R**2 + (w*L)**2
g = A@diag(R/z2)@A.T + diag(G)
b = A@diag(-w*L/z2)@A.T + diag(w*C)
v = solve(concat([concat([g, -b], 1), concat([b, g], 1)], 0), concat([I, zeros(20)]))
sqrt(v[19]**2 + v[39]**2)
"""


def components():
    incidence = np.zeros((NODES, len(LINES)))
    for line, (first, last) in enumerate(LINES):
        incidence[first, line], incidence[last, line] = 1, -1
    numbers = np.random.default_rng(20)
    return {
        "A": incidence,
        "I": np.eye(NODES)[0],
        "w": 2 * np.pi * 1e3,
        "R": numbers.uniform(1, 10, len(LINES)),
        "L": numbers.uniform(1e-4, 1e-3, len(LINES)),
        "C": numbers.uniform(1e-6, 1e-5, NODES),
        "G": numbers.uniform(1e-3, 1e-2, NODES),
    }


def test_a_network_and_its_derivatives_by_all_components():
    values = components()
    names = ["R", "L", "C", "G", "w"]
    found, gradients = gradcli.compile(NETWORK).value_and_grad(values, names)
    expected, in_parts = gradcli.compile(REAL_NETWORK).value_and_grad(values, names)
    assert found == pytest.approx(expected, rel=1e-12)
    for name in names:
        assert not np.iscomplexobj(gradients[name])
        assert np.abs(gradients[name] - in_parts[name]).max() <= 1e-12 * np.abs(in_parts[name]).max()
    # More impedance everywhere is more voltage by the same factor.
    by_scale = sum((gradients[name] * values[name]).sum() * sign for name, sign in zip("RLCG", (1, 1, -1, -1)))
    assert by_scale == pytest.approx(found, rel=1e-12)


def test_second_derivatives_of_a_network():
    """By two components of the smallest network, a divider, in closed form."""
    program = gradcli.compile("v = solve([[1/R + 1j*w*C, -1j*w*C], [-1j*w*C, 1/R + 1j*w*C]], [1, 0]); v[1]")
    values = {"R": 2.0, "C": 0.3, "w": 1.5}
    closed = gradcli.compile("1j*w*C*R**2/(1 + 2j*w*C*R)")
    assert program(**values) == pytest.approx(closed(**values), rel=1e-14)
    found, expected = program.hessian(values), closed.hessian(values)
    assert found == {key: pytest.approx(value, rel=1e-12) for key, value in expected.items()}


# --- quantum systems

TWO_LEVELS = "H = array([[-D, W], [W, D]])/2; abs((matrix_exp(-1j*t*H) @ [1, 0])[1])**2"
RABI = "W**2/(W**2 + D**2)*sin(sqrt(W**2 + D**2)*t/2)**2"


def test_oscillations_of_rabi():
    values = {"D": 0.3, "W": 1.2, "t": 2.0}
    found, expected = gradcli.compile(TWO_LEVELS), gradcli.compile(RABI)
    assert found(**values) == pytest.approx(expected(**values), rel=1e-13)
    for order in (1, 2, 3):
        by_w = found.derivatives(values, order, wrt=["W"])
        assert by_w == pytest.approx(expected.derivatives(values, order, wrt=["W"]), rel=1e-11)
    second = expected.hessian(values)
    assert found.hessian(values) == {key: pytest.approx(value, rel=1e-11) for key, value in second.items()}


def test_a_pulse_on_two_qubits(run):
    """The slices are those of SciPy's expm; the whole approaches the solution of Schroedinger's equation as their number
    grows, by its square."""
    pulse = {"a": 2.0, "s": 0.8, "T": 4.0, "d1": 0.3, "d2": -0.2, "J": 0.4}
    source = (EXAMPLES / "two_qubits.grad").read_text(encoding="utf-8")
    found = run("eval", source, *(f"{name}={value}" for name, value in pulse.items()), "--json").json
    assert found["value"] == pytest.approx(0.7728886511842212, rel=1e-12)
    h = 1e-5
    for name in ("a", "s", "T", "J"):
        changed = [probability(pulse | {name: pulse[name] + step}, 40) for step in (-h, h)]
        assert found["grad"][name] == pytest.approx((changed[1] - changed[0]) / (2 * h), abs=1e-9)
    exact = by_runge_kutta(pulse)
    errors = [abs(probability(pulse, n) - exact) for n in (40, 80)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)


def hamiltonian(t, pulse):
    x, z, one = np.array([[0, 1], [1, 0]]), np.diag([1, -1]), np.eye(2)
    drift = (pulse["d1"] * np.kron(z, one) + pulse["d2"] * np.kron(one, z) + pulse["J"] * np.kron(x, x) / 2) / 2
    shape = pulse["a"] * math.exp(-(((t - pulse["T"] / 2) / pulse["s"]) ** 2))
    return drift + shape * (np.kron(x, one) + np.kron(one, x)) / 2


def probability(pulse, slices):
    psi, dt = np.array([1, 0, 0, 0], complex), pulse["T"] / slices
    for k in range(slices):
        energies, vectors = np.linalg.eigh(hamiltonian((k + 0.5) * dt, pulse))
        psi = vectors @ (np.exp(-1j * dt * energies) * (vectors.T @ psi))
    return abs(psi[3]) ** 2


def by_runge_kutta(pulse):
    found = solve_ivp(
        lambda t, psi: -1j * hamiltonian(t, pulse) @ psi,
        (0, pulse["T"]),
        np.array([1, 0, 0, 0], complex),
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
    )
    return abs(found.y[3, -1]) ** 2


@pytest.mark.slow
def test_the_pulse_as_a_differential_equation():
    """Its derivatives are those of differences of the solutions by Runge and Kutta's method."""
    pulse = {"a": 2.0, "s": 0.8, "T": 4.0, "d1": 0.3, "d2": -0.2, "J": 0.4}
    program = gradcli.compile(
        "sx = array([[0, 1], [1, 0]]); sz = array([[1, 0], [0, -1]])\n"
        "drift = (d1*kron(sz, eye(2)) + d2*kron(eye(2), sz) + J*kron(sx, sx)/2)/2\n"
        "drive = (kron(sx, eye(2)) + kron(eye(2), sx))/2\n"
        "slope(psi, t) = -1j*(drift + a*exp(-((t - T/2)/s)**2)*drive) @ psi\n"
        "abs(odeint(slope, [1+0j, 0, 0, 0], [0, T])[1][3])**2"
    )
    value, gradient = program.value_and_grad(pulse)
    assert value == pytest.approx(by_runge_kutta(pulse), rel=1e-10)
    h = 1e-3
    for name in ("a", "s", "J"):
        at = [by_runge_kutta(pulse | {name: pulse[name] + k * h}) for k in (-2, -1, 1, 2)]
        difference = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
        assert gradient[name] == pytest.approx(difference, rel=1e-7)
