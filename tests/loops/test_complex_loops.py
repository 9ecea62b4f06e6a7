"""Loops of complex numbers that become one equation: the same numbers as round by round, in every way to run a program."""

import re
import warnings
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import gradcli
from gradcli.evaluation.recordings import recording
from gradcli.language.interpreter import loop_policy
from gradcli.loops import loop_execution
from gradcli.loops.loop_primitive import loop_history

E = np.exp(1j * np.arange(40.0)) + 0.1
Z, C = 0.3 - 0.2j, 0.1 + 0.4j
# Programs whose loops are rolled, and inputs. The value of the first ones is complex, and holomorphic in the inputs.
HOLOMORPHIC = {
    "an iterated map": ("for i in range(30) { z = z*z + c }; z", {"z": Z, "c": C}),
    "powers": ("for i in range(30) { z = z**3/9 - 0.3*z**-1 + c }; z", {"z": Z, "c": C}),
    "Newton's method": ("for i in range(20) { z = z - (z**3 - c)/(3*z**2) }; z", {"z": Z + 1, "c": C}),
    "a recurrence": ("u = 0j; for v in e { u = q*u + v }; u", {"q": 0.6 + 0.3j, "e": E}),
    "a list": ("zs = [z]; for i in range(30) { zs.append(zs[-1]*c + 0.1j) }; zs[7] + sum(zs)", {"z": Z, "c": C}),
    "a tensor that is filled": (
        "u = e*1; for i in range(2, 40) { u[i] = u[i-1]*q - 0.3*u[i-2] }; sum(u*u)",
        {"q": 0.6 + 0.3j, "e": E},
    ),
    "a scan": (
        "import jax; def f(s, v) { s = s*q + v; return (s, s*s) }\ns, ys = jax.lax.scan(f, q, e); s + ys[3] + sum(ys)",
        {"q": 0.6 + 0.3j, "e": E},
    ),
    "a comprehension": ("sum([sin(z*i)/(i + 1) for i in range(20)])", {"z": Z}),
    "a ladder network": ("y = 1/c; for i in range(30) { y = 1/(z + 1/(c + y)) }; y", {"z": Z + 1, "c": C + 1}),
    "small matrices": (
        "A = array([[z, 1j], [c, 0.2]]); v = array([1 + 0j, c]); for i in range(20) { v = A @ v*0.7 + z }; sum(v)",
        {"z": Z, "c": C},
    ),
    "a call": ("f(z) = sqrt(z + 2) + c; for i in range(20) { z = f(z) }; z", {"z": Z, "c": C}),
    "exponentials": ("s = 0j; for i in range(30) { s = s*0.7 + exp(1j*z*i)/(i + 1) }; s + c", {"z": Z, "c": C}),
    "functions": (
        "for i in range(20) { z = sin(z)/2 + cosh(z)*c/3 + tan(z)/9 + tanh(z)*0.2 - cos(z)/7 - sinh(z)/8 }; z",
        {"z": Z, "c": C},
    ),
    "logarithms and roots": ("for i in range(20) { z = log(z + 4) - rsqrt(z + 1j)*c }; z", {"z": Z, "c": C}),
    "names that are exchanged": (
        "a = z; b = c; for i in range(30) { a, b = b, a*0.5 + 0.1j*b }; a - b",
        {"z": Z, "c": C},
    ),
    "a branch of a where": ("for i in range(30) { z = where(abs(z) > 0.5, z*c, z + 0.4) }; z", {"z": Z, "c": C}),
}
OTHERS = {
    "an escape": (
        "z = 0j; n = 0; while abs(z) < 2 and n < 90 { z = z*z + c; n = n + 1 }; n + abs(z)",
        {"c": -0.75 + 0.3j},
    ),
    "break": ("z = c; for i in range(60) { z = z*z + c; if abs(z) > 2 { break } }; abs(z)**2", {"c": -0.75 + 0.3j}),
    "a branch": (
        "for i in range(60) { if real(z) > 0 { z = sqrt(z) - 0.9*y } else { z = (0.5 + 0.2j) - z } }; imag(z)*real(z)",
        {"z": Z, "y": 1.2},
    ),
    "parts": ("for i in range(30) { z = complex(imag(z), 0.5*real(z)) + c*conj(z) }; real(z)**2", {"z": Z, "c": C}),
    "a modulus": ("s = 0; for i in range(30) { z = z*c/abs(z); s = s + angle(z)*x }; s*abs(z + 1)", {"z": Z, "c": C, "x": 0.4}),
    "a damped oscillator": (
        "s = 0; for i in range(40) { s = s + abs(exp((-g + 1j*w)*i*0.1) - 0.3)**2 }; s",
        {"g": 0.3, "w": 2.0},
    ),
    "polar coordinates": ("s = 0j; for k in range(30) { s = s*0.8 + polar(r, k*t) }; abs(s)", {"r": 0.7, "t": 0.4}),
    "data": ("s = 0; u = 0j; for v in e { u = q*u + v; s = s + abs(u - v*x)**2 }; s", {"q": 0.6 + 0.3j, "x": 0.7, "e": E}),
}  # fmt: skip
PROGRAMS = HOLOMORPHIC | OTHERS


READOUTS = {
    name: (f"{before}; real((0.8 - 0.6j)*({value}))", values)
    for name, (source, values) in HOLOMORPHIC.items()
    for before, value in [re.match(r"(?s)(?:(.*); )?(.*)", source).groups(default="0")]
}


def derivatives(program, values, wrt):
    numbers = [n for n in wrt if np.ndim(values[n]) == 0]
    real = not np.iscomplexobj(program(**values))
    return program.derivatives(values, 2, [n for n in numbers if not (real and np.iscomplexobj(values[n]))])


DERIVATIVES = {
    "gradient": lambda p, v, wrt: p.value_and_grad(v, wrt),
    "Jacobian": lambda p, v, wrt: p.jacobian(v, wrt),
    "order 2": derivatives,
    "rows": lambda p, v, wrt: p.map({n: x*np.linspace(1, 1.1, 25) for n, x in v.items() if np.ndim(x) == 0}, wrt=[
        n for n in wrt if np.ndim(v[n]) == 0
    ], **{n: x for n, x in v.items() if np.ndim(x)}),
}  # fmt: skip


def numbers(found):
    """All numbers of a result, whatever its structure."""
    if isinstance(found, dict):
        return [n for value in found.values() for n in numbers(value)]
    if isinstance(found, (list, tuple)):
        return [n for value in found for n in numbers(value)]
    return [complex("nan")] if found is None else np.ravel(np.asarray(found, complex)).tolist()


@pytest.fixture
def round_by_round(monkeypatch):
    """The numbers that a function of a compiled program gives where no loop is rolled."""

    def find(source, function):
        with monkeypatch.context() as patched:
            patched.setattr(loop_policy, "_MOST_REFUSALS", 0)
            return numbers(function(gradcli.compile(source)))

    return find


@pytest.fixture(autouse=True)
def short_loops_are_rolled(monkeypatch):
    """The loops here have few rounds, so that running them round by round takes no time."""
    monkeypatch.setattr(loop_policy, "_WORTH_RECORDING", 0)


def is_rolled(source, values):
    made = recording(gradcli.compile(source).program, values, tuple(values))
    return loop_history in [e.primitive for e in made.trace.program.equations]


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_one_equation(name):
    assert is_rolled(*(READOUTS | OTHERS)[name])


@pytest.mark.cases(4)
@pytest.mark.parametrize("kind", DERIVATIVES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_those_of_the_rounds(name, kind, round_by_round):
    source, values = (READOUTS | OTHERS if kind == "gradient" else PROGRAMS)[name]

    def function(program):
        return DERIVATIVES[kind](program, values, [*values])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gradcli.AccuracyWarning)
        program = gradcli.compile(source)
        found, expected = [numbers(function(program)) for _ in range(3)], round_by_round(source, function)
    for result in found:
        np.testing.assert_allclose(result, expected, rtol=2e-12, atol=1e-14)


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_gives_the_same_numbers(name, monkeypatch):
    source, values = (READOUTS | OTHERS)[name]
    expected = gradcli.compile(source)
    expected.value_and_grad(values)
    monkeypatch.setattr(loop_execution, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(loop_execution, "_states", WeakKeyDictionary())
    program = gradcli.compile(source)
    program.value_and_grad(values)
    found, plain = program.value_and_grad(values), expected.value_and_grad(values)
    np.testing.assert_allclose(numbers(found), numbers(plain), rtol=1e-14, atol=1e-300)
    states = loop_execution._states.values()
    assert states
    assert all(state.function is not None for state in states)


# Rounds at points where formulas of parts would lose digits, signs of zeros or branches.
SINGULAR = {
    "a quotient by 0": ("for i in range(30) { z = (z + 1)/(i - 9 + 0j) + c }; z", {"z": Z, "c": C}),
    "signs of zeros": ("for i in range(30) { z = sqrt(z/(-2))*i/3; z = conj(z) }; z", {"z": 4 + 0j}),
    "zeros of quotients": (
        "for i in range(30) { z = sqrt(3.5j/(z - 3.5j)) + 0*c; z = z*0 - 0.0 }; z",
        {"z": 0j, "c": C},
    ),
    "logarithms near 0": ("s = 0j; for i in range(30) { s = s + log(exp(1j*z*i)*(1 + 1e-12)) }; s", {"z": 0.2 + 0j}),
    "exponentials that overflow": (
        "s = 0j; for i in range(30) { s = s*0.5 + exp(709.9 + 1j*(1.5 + z))*1e-300 }; s",
        {"z": 0.05 + 0j},
    ),
    "large numbers": ("for i in range(30) { z = sqrt(z)*1e150 + c }; z", {"z": Z + 1e200, "c": C}),
    "small numbers": ("for i in range(30) { z = sqrt(z*1e-305)*c }; z", {"z": Z, "c": C}),
    "numbers that become infinite": ("for i in range(30) { z = z*z*9 + c }; abs(z)", {"z": Z + 3, "c": C}),
    "a modulus of 0": ("for i in range(30) { z = z*0.5*abs(z) + 0*c }; abs(z)", {"z": 0j, "c": C}),
    "the origin": ("for i in range(30) { z = angle(z)*z + sqrt(z*c) }; abs(z)", {"z": 0j, "c": C}),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_points_are_those_of_the_rounds(name, round_by_round):
    source, values = SINGULAR[name]

    def function(program):
        value = program(**values)
        return value, program.jacobian(values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = gradcli.compile(source)
        found, expected = [numbers(function(program)) for _ in range(3)], round_by_round(source, function)
    for result in found:
        np.testing.assert_allclose(result, expected, rtol=1e-13)
        for part in (np.real, np.imag):
            one, other = part(result), part(expected)
            assert np.array_equal(np.signbit(one)[~np.isnan(one)], np.signbit(other)[~np.isnan(one)])


def test_operations_without_formulas_of_parts_are_run_round_by_round(round_by_round):
    source = "for i in range(30) { z = asin(z) + c }; abs(z)"
    values = {"z": Z, "c": C}
    assert not is_rolled(source, values)

    def function(program):
        return program.value_and_grad(values)

    assert numbers(function(gradcli.compile(source))) == round_by_round(source, function)


@pytest.mark.slow
def test_a_loop_of_conjugates_is_holomorphic_in_them(run):
    outcome = run("eval", "w = conj(z); for i in range(900) { w = w*w*0.5 + 0.1*w }; conj(w)", "z=2+1j", "--json").json
    assert outcome["grad"]["z"] is not None


def test_many_rounds_from_the_command_line(run):
    outcome = run("eval", "for i in range(600000) { z = z*z + c }; z", "z=0.1+0.2j", "c=0.1+0.1j", "--json").json
    # The fixed point of the map, and its derivative by c.
    c = 0.1 + 0.1j
    point = (1 - np.sqrt(1 - 4 * c)) / 2
    assert complex(*outcome["value"].values()) == pytest.approx(point, rel=1e-14)
    assert complex(*outcome["grad"]["c"].values()) == pytest.approx(1 / np.sqrt(1 - 4 * c), rel=1e-13)


@pytest.mark.cases(2)
@pytest.mark.parametrize("options", [["--wirtinger"], ["--order", "2"], ["--jacobian"], []])
@pytest.mark.parametrize("body", ["z*z*0.3 + c", "z*conj(z)*0.3 + c", "c/(2 + z)"])
def test_derivatives_from_the_command_line_are_those_of_the_rounds(run, body, options, monkeypatch):
    arguments = ["eval", f"for i in range(300) {{ z = {body} }}; z", "z=0.1+0.2j", "c=0.1+0.1j", "--json", *options]
    monkeypatch.setattr(loop_policy, "_WORTH_TRACING", 0)
    found = run(*arguments)
    monkeypatch.setattr(loop_policy, "_MOST_REFUSALS", 0)
    expected = run(*arguments)
    assert (found.status, found.err) == (expected.status, expected.err)
    if not found.status:
        flat = [[n for _, n in sorted(_flat(outcome.json))] for outcome in (found, expected)]
        np.testing.assert_allclose(*flat, rtol=1e-13, atol=1e-300)


def _flat(found, key=""):
    """The numbers in JSON by their place."""
    if isinstance(found, dict):
        return [pair for k, v in found.items() for pair in _flat(v, f"{key}/{k}")]
    return [(key, found)] if isinstance(found, float) else []
