"""Loops that become one equation: the same numbers as round by round, in every way to run a program."""

import math
import re
import time
import warnings
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import gradcli
from gradcli.evaluation.recordings import recording
from gradcli.language.interpreter import loop_policy
from gradcli.loops import loop_execution
from gradcli.loops.loop_primitive import loop_history

E = np.sin(np.arange(40.0))
RUNGE_KUTTA = """
h = t/13; y = y0
for i in range(13) {
  k1 = r*y*(1 - y/c)
  k2 = r*(y + h/2*k1)*(1 - (y + h/2*k1)/c)
  k3 = r*(y + h/2*k2)*(1 - (y + h/2*k2)/c)
  k4 = r*(y + h*k3)*(1 - (y + h*k3)/c)
  y = y + h/6*(k1 + 2*k2 + 2*k3 + k4)
}
y"""
KALMAN = """
F = [[1, dt], [0, 1]]; P = [[1, 0], [0, 1]]; m = [0, 0]; ll = 0
for t in range(14) {
  m = F@m; P = F@P@F.T + q*[[1, 0], [0, 1]]
  S = P[0, 0] + r; K = P[:, 0]/S; v = e[t] - m[0]
  m = m + K*v; P = P - S*outer(K, K); ll = ll + log(S) + v**2/S
}
ll"""
GARCH = "h = w; ll = 0; for t in range(1, 40) { h = w + a*e[t-1]**2 + b*h; ll = ll + log(h) + e[t]**2/h }; ll"
MANDELBROT = """
zr = 0; zi = 0; n = 0
for i in range(80) {
  t = zr*zr - zi*zi + a; zi = 2*zr*zi + b; zr = t
  if zr*zr + zi*zi > 4 { break }
  n = n + 1
}
n + zr*zr + zi*zi"""
# Programs whose loops are rolled, and inputs.
PROGRAMS = {
    "a differential equation": (RUNGE_KUTTA, {"y0": 0.1, "r": 0.7, "c": 2.0, "t": 5.0}),
    "the counter": ("s = 0; for i in range(40) { s = s + sin(x*i)/(i + 1) }; s", {"x": 0.3}),
    "steps of the counter": ("s = 0; k = 0; for k in range(3, 90, 2) { s = s*0.9 + x**2/k }; s + k", {"x": 0.3}),
    "a counter that falls": ("s = 0; for i in range(90, 3, -3) { s = s*0.9 + x**2/i }; s", {"x": 0.3}),
    "rows of data": (GARCH, {"w": 0.1, "a": 0.2, "b": 0.6, "e": E}),
    "strides of data": ("s = 0; for i in range(38, 1, -2) { s = s*q + e[i]*e[i-1] }; s", {"q": 0.9, "e": E}),
    "a loop over a tensor": ("s = 0; for v in e { s = s*q + v**2 }; s", {"q": 0.9, "e": E}),
    "a list of numbers": (
        "s = x; ys = []; for i in range(20) { s = s*0.9; ys.append(s*i) }; sum(ys) + ys[3]",
        {"x": 0.3},
    ),
    "lists of tensors": (
        "def f(s) { ys = []; for i in range(14) { s = s*0.9 + sin(s)/9; ys.append(s) }; return ys }\n"
        "sum(stack(f(sin([x, y])))@[1, 2]) + f(cos([y, y]))[4][0]",
        {"x": 0.3, "y": 0.1},
    ),
    "a list that had items": ("s = x; ys = [x]; for i in range(20) { s = s*0.9; ys.append(s) }; prod(ys)", {"x": 0.8}),
    "zipped tensors": ("s = 0; for u, v in zip(e, e[1:]) { s = s*q + u*v }; s", {"q": 0.9, "e": E}),
    "a zipped range": ("s = 0; for k, v in zip(range(5, 99, 2), e) { s = s*q + k*v }; s", {"q": 0.9, "e": E}),
    "numbered rows": ("s = 0; for k, v in enumerate(e) { s = s*q + k*v }; s", {"q": 0.9, "e": E}),
    "a value of the last statement": ("s = x; for k in range(30) { s = s*0.9; s*x + k }", {"x": 0.3}),
    "a value of one branch": ("s = x; for k in range(30) { s = s*0.9; if s > 0.1 { s*x } else { 7*x } }", {"x": 0.3}),
    "rows of a matrix": ("s = 0; for v in m { s = s*q + v[0]*v[1] }; s", {"q": 0.9, "m": E.reshape(20, 2)}),
    "small matrices": (KALMAN, {"dt": 0.1, "q": 0.2, "r": 0.3, "e": E}),
    "a function": ("f(z) = c*z*(1 - z); x = x0; for i in range(30) { x = f(x) }; x", {"c": 3.2, "x0": 0.3}),
    "what the first round makes": ("s = 0; for i in range(30) { s = s*0.9 + [x, x*x] }; sum(s)", {"x": 0.3}),
    "names of the last round": ("k = 0; for k in range(30) { t = x*k; u = t + 1 }; u*t*k", {"x": 0.3}),
    "names that are exchanged": (
        "a = x; b = y; for i in range(60) { a, b = b, a + 0.1*b }; a - b",
        {"x": 0.3, "y": 0.7},
    ),
    "where": ("s = x; for i in range(30) { s = where(s > 0, sqrt(s) - 0.9*y, 0.5 - s) }; s", {"x": 0.3, "y": 1.2}),
    "a branch": (
        "s = x; for i in range(60) { if s > 0 { s = sqrt(s) - 0.9*y } else { s = 0.5 - s } }; s",
        {"x": 0.3, "y": 1.2},
    ),
    "a branch by the counter": (
        "s = x; for i in range(60) { if i % 3 == 1 { continue }; s = s*0.95 + x/9 }; s",
        {"x": 0.3},
    ),
    "selected numbers": (
        "s = x; for i in range(60) { s = clip(max(s*1.1, y), 0, 3) + 0.01*y*s }; s",
        {"x": 0.3, "y": 0.2},
    ),
    "special functions": ("s = x; for i in range(14) { s = lgamma(s + 2) + erf(s) + j0(y) }; s", {"x": 0.3, "y": 0.2}),
    "a softmax": ("s = sin([x, y, 1]); for i in range(20) { s = softmax(s*2) + 0.1*y }; s[0]", {"x": 0.3, "y": 0.2}),
    "a loop in a loop": ("s = x; for i in range(20) { for j in range(4) { s = s*0.9 + sin(i*j*x)/9 } }; s", {"x": 0.3}),
    "overflow": ("s = x; for i in range(20) { s = exp(s) }; exp(-s) + x", {"x": 0.3}),
    "a pole": ("s = x; for i in range(20) { s = s/(i - 5) + 1 }; x + exp(-s*s)", {"x": 0.3}),
    "while": ("s = x; while abs(s*s - a) > 1e-9 { s = s - 0.4*(s*s - a)/(2*s) }; s", {"x": 1.3, "a": 2.0}),
    "while with two conditions": ("k = 0; s = x; while s > 0.01 and k < 500 { s = s*0.9; k = k + 1 }; s*k", {"x": 0.3}),
    "break": (MANDELBROT, {"a": -0.7, "b": 0.37}),
    "a loop that may be left": (
        "s = 0; k = 0; for k in range(50) { s = s + x*k; if s > 1e9 { break } }; s*k",
        {"x": 0.3},
    ),
    "bisection": (
        "lo = 0; hi = 2; for i in range(50) { m = (lo + hi)/2; if m*m > a { hi = m } else { lo = m } }; lo*a",
        {"a": 2.0},
    ),
    "elements of a list": (
        "p = [x, 1]; v = [0, y]; for i in range(40) { v[0] -= 0.1*p[0]; p[0] += 0.1*v[0]; p[1] = p[1]*v[1] }; sum(p)",
        {"x": 0.3, "y": 0.9},
    ),
    "elements of a tensor": (
        "p = array([x, 1, y]); s = 0; for i in range(40) { p[:2] = 0.9*p[1:]; p[-1] += e[i]; s += p[0]**2 }; s",
        {"x": 0.3, "y": 0.9, "e": E},
    ),
    "a tensor that is filled": (
        "u = zeros(40); u[0] = x; for i in range(1, 40) { u[i] = u[i-1]*q + e[i] }; sum(u**2) + u[7]",
        {"x": 0.3, "q": 0.9, "e": E},
    ),
    "rows of several rounds before": (
        "u = x*ones(45); for i in range(4, 45) { u[i] = sin(u[i-1]) + q*u[i-4] }; sum(u) + u[-2]",
        {"x": 0.3, "q": 0.9},
    ),
    "rows that are not written yet": (
        "u = x*e; for i in range(1, 39) { u[i] = (u[i-1] + q*u[i] + u[i+1])/3; u[i] *= y }; u @ u",
        {"x": 0.3, "q": 0.9, "y": 0.8, "e": E},
    ),
    "every other row": (
        "u = x*e; for i in range(2, 40, 2) { u[i] = u[i-2]*q + u[i-1]*u[i] }; sum(u*u)",
        {"x": 0.3, "q": 0.9, "e": E},
    ),
    "from the end": (
        "u = x*ones(40); for i in range(38, -1, -1) { u[i] = e[i]*q + u[i+1]*0.9 }; u[0] + u[3]*u[20]",
        {"x": 0.3, "q": 0.9, "e": E},
    ),
    "rows on one path": (
        "u = x*ones(40); for i in range(1, 40) { if e[i] > 0 { u[i] = u[i-1]*q } elif e[i] < -0.9 { u[i] += y } }; sum(u)",
        {"x": 0.3, "q": 0.9, "y": 0.1, "e": E},
    ),
    "elements of rows": (
        "p = zeros((40, 2)); p[0] = [x, 0]\n"
        "for i in range(39) { p[i+1, 1] = p[i, 1] - h*sin(p[i, 0]); p[i+1, 0] = p[i, 0] + h*p[i+1, 1] }\n"
        "sum(p[:, 0]**2) + p[-1, 1]",
        {"x": 0.3, "h": 0.1},
    ),
    "a list and a tensor that are filled": (
        "u = [0.0]*40; v = zeros(40); for i in range(40) { v[i] = x*e[i]; u[i] = v[i]**2 + (u[i-1] if i > 30 else y) }\n"
        "sum(u) + v[3]*u[35]",
        {"x": 0.3, "y": 0.2, "e": E},
    ),
    "a list that reads its last items": (
        "u = [x, 1]; for i in range(40) { u.append(q*u[-1] - 0.1*u[-2] + e[i]) }; u[7]*u[-1] + sum(u)",
        {"x": 0.3, "q": 0.9, "e": E},
    ),
    "lists that read each other": (
        "u = [x]; v = [y]; for i in range(40) { u.append(u[i] + h*v[-1]); v.append(v[i] - h*sin(u[-1])*u[0]) }\n"
        "u[-1] + sum(v)",
        {"x": 0.3, "y": 0.2, "h": 0.1},
    ),
    "a list of tensors that reads its last ones": (
        "u = [sin([x, 1.0])]; for i in range(1, 40) { u.append([[0.9, y], [-y, 0.9]] @ u[i-1]) }; sum(u[-1]) + u[3][0]",
        {"x": 0.3, "y": 0.2},
    ),
    "sums of rows": (
        "m = 0; u = zeros(40); for i in range(40) { m = m*q + x*e[i]; u[i] = m }; v = u[2:5]; m*u[39] + sum(v)",
        {"x": 0.3, "q": 0.9, "e": E},
    ),
    "fori_loop": ("import jax; jax.lax.fori_loop(3, 40, lambda i, s: s*0.9 + sin(x*i), x)", {"x": 0.3}),
    "fori_loop with a pair": (
        "import jax; def f(i, c) { a, b = c; return (b, a*0.9 + e[i]*y) }\njax.lax.fori_loop(1, 40, f, (x, 1.0))[0]",
        {"x": 0.3, "y": 0.7, "e": E},
    ),
    "fori_loop with a branch": (
        "import jax; def f(i, s) { if s > 0.5 { return s*y }; return s + x }\njax.lax.fori_loop(0, 60, f, 0)",
        {"x": 0.3, "y": 0.7},
    ),
    "while_loop": (
        "import jax; jax.lax.while_loop(lambda s: abs(s*s - a) > 1e-9, lambda s: s - 0.4*(s*s - a)/(2*s), x)",
        {"x": 1.3, "a": 2.0},
    ),
    "scan": (
        "import jax; def f(c, v) { c = c*q + v; return (c, c*c) }\nc, ys = jax.lax.scan(f, x, e); c + ys[3] + sum(ys)",
        {"x": 0.3, "q": 0.9, "e": E},
    ),
    "scan over a pair of tensors": (
        "import jax; def f(c, r) { u, v = r; c = c*q + u*v; return (c, (c, [c, 1.0])) }\n"
        "c, (ys, zs) = jax.lax.scan(f, 0, (e, 2*e)); c + sum(ys**2) + zs[0][3]",
        {"q": 0.9, "e": E},
    ),
    "scan without data": (
        "import jax; def f(c, _) { x, v = c; v = v - 0.1*k*sin(x); return ((x + 0.1*v, v), None) }\n"
        "jax.lax.scan(f, (x0, 0.0), None, length=50)[0][0]",
        {"x0": 0.3, "k": 2.0},
    ),
    "a comprehension": ("sum([sin(x*i)/(i + 1) for i in range(40)])", {"x": 0.3}),
    "a comprehension over pairs": (
        "ys = [x*u + sin(v*x) for u, v in zip(e, e[1:])]; ys[3]*ys[-1] + prod(ys) + len(ys)",
        {"x": 0.3, "e": E},
    ),
    "a function that calls itself": (
        "def f(n, s) { if n == 0 { return s } else { return f(n - 1, sin(s)*x + y/n) } }\nf(40, x)",
        {"x": 0.9, "y": 0.2},
    ),
    "a lambda that calls itself": (
        "f = lambda a, b, n=30: a*b if n < 1 else f(b, a + 0.1*b, n=n - 1); f(x, y)",
        {"x": 0.3, "y": 0.7},
    ),
    "a call of itself with an input": (
        "f(s) = s if abs(s*s - a) < 1e-9 else f(s - 0.4*(s*s - a)/(2*s)); f(x)",
        {"x": 1.3, "a": 2.0},
    ),
    "a map": ("f(v) = x*v if v > 0 else x**2; ys = list(map(f, e)); sum(ys) + ys[2]", {"x": 0.3, "e": E}),
}
# Those with functions that machine code does not have.
INTERPRETED = {"a branch by the counter", "selected numbers", "special functions"}
# Those whose gradients differ by more than two units in the last place: what a round computes of parameters alone, or
# twice, is computed once, and what is sent to it adds up before it is sent on.
ROUNDED_ONCE = [
    "a differential equation",
    "steps of the counter",
    "a softmax",
    "a list of tensors that reads its last ones",
    "scan without data",
]
DERIVATIVES = {
    "gradient": lambda p, v, wrt: p.value_and_grad(v, wrt),
    "Hessian": lambda p, v, wrt: p.hessian(v, wrt),
    "order 3": lambda p, v, wrt: p.derivatives(v, 3, [n for n in wrt if np.ndim(v[n]) == 0]),
    "table": lambda p, v, wrt: p.map({n: np.linspace(x, x*1.3, 25) for n, x in v.items() if np.ndim(x) == 0}, wrt=[
        n for n in wrt if np.ndim(v[n]) == 0
    ], **{n: x for n, x in v.items() if np.ndim(x)}),
}  # fmt: skip


def numbers(found):
    """All numbers of a result, whatever its structure."""
    if isinstance(found, dict):
        return [n for value in found.values() for n in numbers(value)]
    if isinstance(found, (list, tuple)):
        return [n for value in found for n in numbers(value)]
    return [math.nan] if found is None else np.ravel(np.asarray(found, float)).tolist()


@pytest.fixture
def round_by_round(monkeypatch):
    """The numbers that a function of a compiled program gives where no loop is rolled."""

    def find(source, function):
        with monkeypatch.context() as patched:
            patched.setattr(loop_policy, "_MOST_REFUSALS", 0)
            return numbers(function(gradcli.compile(source)))

    return find


def repeated(source, function):
    """The numbers that a function of a compiled program gives at the first call, which is not recorded, and at two
    more."""
    program = gradcli.compile(source)
    return [numbers(function(program)) for _ in range(3)]


@pytest.fixture(autouse=True)
def short_loops_are_rolled(monkeypatch):
    """The loops here have few rounds, so that running them round by round takes no time."""
    monkeypatch.setattr(loop_policy, "_WORTH_RECORDING", 0)


def recorded_names(source, values, wrt=None):
    made = recording(gradcli.compile(source).program, values, tuple(values) if wrt is None else wrt)
    return [e.primitive for e in made.trace.program.equations]


# Whether a function calls itself for the first time is decided before there is a loop, here by an input.
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "a call of itself with an input"])
def test_it_is_one_equation(name):
    source, values = PROGRAMS[name]
    assert loop_history in recorded_names(source, values)


@pytest.mark.cases(3)
@pytest.mark.parametrize("kind", DERIVATIVES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_those_of_the_rounds(name, kind, round_by_round):
    source, values = PROGRAMS[name]
    wrt = [n for n in values if n != "e"]

    def function(program):
        return DERIVATIVES[kind](program, values, wrt)

    with warnings.catch_warnings():
        # Digits that are lost, as where an iteration has converged.
        warnings.simplefilter("ignore", gradcli.AccuracyWarning)
        found, expected = repeated(source, function), round_by_round(source, function)
    for result in found:
        np.testing.assert_allclose(result, expected, rtol=2e-12, atol=1e-14)


def last_places(found, expected):
    """The largest difference of two sequences of numbers in units in the last place of `expected`."""
    pairs = [(a, b) for a, b in zip(found, expected, strict=True) if a != b and not (math.isnan(a) and math.isnan(b))]
    return max((abs(a - b) / math.ulp(b) for a, b in pairs), default=0)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ROUNDED_ONCE])
def test_gradients_round_as_those_of_the_rounds(name, round_by_round):
    source, values = PROGRAMS[name]

    def function(program):
        return program.value_and_grad(values, [n for n in values if n != "e"])

    expected = round_by_round(source, function)
    for result in repeated(source, function):
        assert result[0] == expected[0] or math.isnan(expected[0])
        assert last_places(result, expected) <= 2


@pytest.mark.parametrize(
    "source",
    [
        "s = x; for i in range(40) { s = s*q + q*sin(s)*q }; s",
        "u = x; for i in range(30) { u = u*q + (1 - u)*q*q*u }; u",
        "s = 0; ys = []; for i in range(40) { s = sin(s*q) - s*s*q + x; ys.append(s) }; sum(ys)",
    ],
)
def test_what_many_rounds_send_to_a_parameter_adds_up_in_the_same_order(source, round_by_round):
    def function(program):
        return program.value_and_grad({"x": 0.3, "q": 0.9})

    expected = round_by_round(source, function)
    for result in repeated(source, function):
        assert result == expected


@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_gradients_that_round_otherwise_are_as_near_to_the_exact_ones(name, round_by_round):
    source, values = PROGRAMS[name]

    def function(program):
        return program.value_and_grad(values)

    found = gradcli.compile(source).evaluate(values, digits=40)
    exact = [*map(Fraction, np.ravel(found.value)), *map(Fraction, found.grad.values())]

    def most(results):
        return max(abs(Fraction(r) - e) / Fraction(math.ulp(e)) for r, e in zip(results, exact, strict=True))

    by_rounds = most(round_by_round(source, function))
    for result in repeated(source, function):
        assert most(result) <= by_rounds + 3


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_gives_the_same_numbers(name, monkeypatch):
    source, values = PROGRAMS[name]
    expected = gradcli.compile(source)
    expected.value_and_grad(values)
    monkeypatch.setattr(loop_execution, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(loop_execution, "_states", WeakKeyDictionary())
    program = gradcli.compile(source)
    program.value_and_grad(values)
    found, plain = program.value_and_grad(values), expected.value_and_grad(values)
    assert last_places(numbers(found), numbers(plain)) <= 2
    states = loop_execution._states.values()
    assert all(state.function is not None for state in states) == (name not in INTERPRETED)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "source",
    [
        "s = x; for i in range(60) { s = s*0.9 + detach(s)*0.05 }; s",
        "half(t) = t/2 backward(g) = 3*g; s = x; for i in range(60) { s = half(s) + x }; s",
        "s = x; ys = []; for i in range(60) { s = s*0.9; ys.append(s); s = s + ys[-1]/99 }; sum(ys)",
        "ys = []; def f(s) { ys.append(s); return s*0.9 }\ns = x; for i in range(60) { s = f(s) }; sum(ys)",
        "s = x; for i in range(12) { s = s + diff(s**2, x)/100 }; s",
        "s = x; for i in range(60) { if s == 0.3 { s = s*s } else { s = s*0.99 } }; s",
        "p = array([x, 1.0]); q = p; for i in range(40) { p[0] = p[0]*0.9; q[0] = q[0] + 0.1 }; sum(p)",
        "p = [x, 1.0]; q = p; for i in range(40) { p[0] = p[0]*0.9; q[0] = q[0] + 0.1 }; sum(p)",
        "p = [x]; q = p; for i in range(40) { p.append(i*x); q.append(x) }; p[1] + 2*p[2]",
        "u = x*ones(40); v = u; for i in range(40) { u[i] = u[i]*0.9; v[i] = v[i] + 0.1 }; sum(u)",
        "u = x*ones(60); for i in range(1, 60) { u[i] = u[i-1] + sum(u)/99 }; sum(u)",
        "u = [x]; for i in range(60) { u.append(u[-1]*0.9 + len(u)/99) }; sum(u)",
        "u = [x]; def f() { return len(u)/99 }\nfor i in range(60) { u.append(u[-1]*0.9 + f()) }; sum(u)",
        "u = [x]; def f() { return sum(u)/99 }\nfor i in range(60) { u.append(u[-1]*0.9 + f()) }; sum(u)",
        "u = []; for i in range(60) { u.append(u[-1]*0.9 if i > 0 else x) }; sum(u)",
        "u = [x]; for i in range(60) { u.append(u[3]*0.9 if i > 3 else x) }; sum(u)",
        "v = array([x, 1.0]); u = [v]; for i in range(60) { v[0] *= 0.9; u.append(u[-1] + 0.1) }; sum(u[9]) + sum(u[0])",
        "v = array([x, 1.0]); u = [v, v]; for i in range(60) { v[0] *= 0.9; u[1] = u[0] + 0.1 }; sum(u[1])",
        "u = x*ones(60); for i in range(1, 60) { u[i] = u[i-1]*0.9; u[i-1] = 0.5*u[i] }; sum(u)",
        "u = x*ones(60); v = u[3:]; for i in range(1, 60) { u[i] = u[i-1]*0.9 + v[0] }; sum(u)",
        "u = x*ones(60); for i in range(60) { u[i] = u[i-1]*0.9 }; sum(u)",
        "u = x*ones(60); for i in range(60) { u[0] += u[i]/60 }; sum(u)",
        "u = x*ones(60); for i in range(1, 60) { u[i] = u[i-1]*0.9; if u[i] < 0.01 { break } }; sum(u)",
        "u = x*ones(60); for i in range(1, 60) { u[i] = u[int(i/2)]*0.9 }; sum(u)",
        "ys = []; def f(s) { ys.append(s); return s*0.9 }\nsum(list(map(f, x*ones(60)))) + sum(ys)",
        "import jax; f(i, s) = [s[1], s[0]*0.9] if i > 3 else [s[0], s[1] + 1]; sum(jax.lax.fori_loop(0, 40, f, [x, x]))",
        "import jax; f(s, t) = (s*0.9, [s, [s]]); jax.lax.scan(f, x, ones(40))[1][1][0][3]",
    ],
)
def test_loops_that_are_run_round_by_round(source, round_by_round):
    def function(program):
        return program.value_and_grad({"x": 0.3})

    for result in repeated(source, function):
        np.testing.assert_allclose(result, round_by_round(source, function), rtol=1e-13)


def test_calls_with_floats_and_with_other_numbers():
    source = "x = 3; d = 1; while abs(d) > 1e-12 { d = (x**3 - a*x - b)/(3*x**2 - a); x = x - d }; x"
    program = gradcli.compile(source)
    for a in (2.0, 2.0, 2.0, 3.5, 2, np.float64(2.5), 2.0, 1e5, 2.0, math.nan, 26.999999, 2.0):
        found = program.value_and_grad({"a": a, "b": 5.0})
        expected = gradcli.compile(source).value_and_grad({"a": a, "b": 5.0})
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-9)


def test_a_function_of_positions_runs_a_loop_for_all_numbers():
    source = "s = 0; for i in range(200) { s = s*q + x }; s"
    called = gradcli.compile(source).compiled(["x", "q"])
    for x in (0.3, 2, np.float64(0.3), math.inf, 0.3):
        found, expected = called(x, 0.9), gradcli.compile(source).value_and_grad({"x": x, "q": 0.9})
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-12)


def test_a_loop_that_ends_later_for_other_inputs_is_run_anew():
    program = gradcli.compile("s = x; while s > 1 { s = s*0.9 }; s")
    for x in (3.0, 3.0, 3.5, 1e12, 0.5, 1e300):
        value, gradient = program.value_and_grad({"x": x})
        rounds = 0
        expected = x
        while expected > 1:
            expected, rounds = expected * 0.9, rounds + 1
        assert value == pytest.approx(expected, rel=1e-13)
        assert gradient["x"] == pytest.approx(0.9**rounds, rel=1e-12)


def test_short_loops_with_a_condition_are_rolled_and_others_are_not(monkeypatch):
    monkeypatch.setattr(loop_policy, "_WORTH_RECORDING", 1_000)
    assert loop_history in recorded_names("s = x; while s > 1 { s = s*0.9 }; s", {"x": 1.5})
    assert loop_history not in recorded_names("s = x; for i in range(20) { s = s*0.9 }; s", {"x": 1.5})


def test_a_shortcut_that_a_later_round_does_not_take():
    # The derivative of a product has a shortcut for numbers without zeros.
    source = "s = x; for i in range(30) { s = prod([s, i - 20 + y]) / 20 + x }; s"
    program = gradcli.compile(source)
    values = {"x": 0.3, "y": 0.0}
    first, *others = [program.value_and_grad(values) for _ in range(3)]
    for other in others:
        np.testing.assert_allclose(numbers(other), numbers(first), rtol=1e-12)


def test_a_shortcut_of_the_derivative_of_one_path():
    # The rule of xlogy has one for numbers other than 0, and that of clip another where numbers are finite.
    source = "s = x; for i in range(60) { if s > 0.5 { s = xlogy(s, x)/9 + 0.3 } else { s = clip(s*1.5, 0, 3) } }; s"
    with pytest.raises(gradcli.errors.NotRecordableError):
        recorded_names(source, {"x": 0.4})


def test_a_kink_of_a_round_gives_no_second_derivative():
    program = gradcli.compile("s = x; for i in range(60) { s = abs(s)*0.9 }; s")
    program.hessian({"x": 0.0})
    assert all(math.isnan(n) for n in numbers(program.hessian({"x": 0.0})))
    assert numbers(program.hessian({"x": 0.5})) == [0.0]


def test_lost_digits_of_rounds_are_told():
    # Each round adds and subtracts a large number.
    program = gradcli.compile("s = x; for i in range(40) { s = sin(s)*(1 + 1e9) - sin(s)*1e9 }; s")
    for _ in range(2):
        with pytest.warns(gradcli.AccuracyWarning, match="digits"):
            program.derivatives({"x": 0.7}, 3)


def test_many_rounds_from_the_command_line(run):
    outcome = run("eval", "s = 0; for i in range(10000000) { s = s + x }; s", "x=1")
    assert "value  10000000.0" in outcome.out
    assert "x   10000000.0" in outcome.out


def test_many_items_of_a_comprehension(run):
    outcome = run("eval", "ys = [x*i for i in range(1000000)]; sum(ys) + ys[2] + len(ys)", "x=1")
    assert "value  500000500002.0" in outcome.out
    assert "x   499999500002.0" in outcome.out


def test_a_map_of_a_function_without_a_value(run):
    outcome = run("eval", "def f(v) { y = sqrt(v/x); return }\nlen(list(map(f, x*ones(5000))))", "x=1", "--no-grad")
    assert outcome.out == "value  5000.0\n"


def test_a_loop_that_passes_on_no_numbers():
    program = gradcli.compile("b = y; for i in range(60) { a, b = b, b }; sum(a)")
    for _ in range(3):
        value, gradient = program.value_and_grad({"y": np.zeros(0)})
        assert value == 0.0
        assert gradient["y"].shape == (0,)


def test_an_intermediate_of_a_long_loop_is_retained(run):
    program = "s = x; for i in range(5000) { t = s*0.999; s = t + 0.001 }; s"
    outcome = run("eval", program, "x=2", "--retain", "t", "--json")
    assert outcome.json["retained"]["t"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "source",
    [
        "s = x; while s > 0 { s = s + 1 }; s",
        "s = x; while True { s = s + 1 }; s",
        "s = x; while s > 0 { s = s + 1; if s > 1e9 { break } }; s",
        "s = x; for i in range(1000000000000) { s = s + 1 }; s",
        "s = x; for i in range(1000000000000000000000000000000) { s = s + 1 }; s",
        "ys = [x]; while 1 { ys.append(ys[-1]) }; sum(ys)",
    ],
)
def test_a_loop_without_end_is_an_error_at_once(source, run):
    start = time.process_time()
    outcome = run("eval", source, "x=1")
    assert outcome.status == 1
    assert "a loop may not end" in outcome.err
    # Two million steps take ten times as long.
    assert time.process_time() - start < 5


def test_a_long_list_that_had_items_is_summed(run):
    outcome = run(
        "eval", "zs = [x]; for i in range(20000) { zs.append(zs[-1]*q + 0.1) }; sum(zs)", "x=1", "q=0.3", "--json"
    )
    assert outcome.json["grad"]["x"] == pytest.approx(1 / 0.7)


def test_a_counter_beside_an_imaginary_number(run):
    outcome = run("eval", "s = 0j; for i in range(3000) { s = s + z/(i + 1j) }; s", "z=2+1j", "--json")
    expected = sum(1 / (i + 1j) for i in range(3000))
    assert complex(*outcome.json["grad"]["z"].values()) == pytest.approx(expected, rel=1e-12)


def test_a_place_in_a_number_is_an_error(run):
    outcome = run("eval", "s = 0; for i in range(5000) { s = s + y[i] }; s", "y=1")
    assert outcome.status == 1
    assert "too many indices" in outcome.err


def test_errors_of_loops_without_end_are_told(run):
    assert "index" in run("eval", "i = 0; while True { s = x[i]; i = i + 1 }; s", "x=[1,2,3]").err
    assert run("eval", "def f(s) { while True { s = s + 1; if s > 2000 { return s } } }\nf(x)", "x=1").status == 0


@pytest.mark.slow
def test_a_kink_in_a_long_loop_is_warned_of(run):
    outcome = run("eval", "s = x; for i in range(3000) { s = abs(s)*0.999 + 0*s }; s", "x=0")
    assert "not differentiable" in outcome.err


@pytest.mark.slow
def test_a_fit_of_a_differential_equation(run, tmp_path):
    rows = [(t, 2 / (1 + 19 * math.exp(-0.7 * t))) for t in np.arange(0, 10.5, 0.5)]
    (tmp_path / "d.csv").write_text("t,y\n" + "\n".join(f"{t},{y}" for t, y in rows))
    model = RUNGE_KUTTA.replace("13", "200").strip()
    function = "def f(t) {" + model.rpartition("\n")[0] + "\nreturn y }\ny ~ f(t)"
    outcome = run("fit", function, str(tmp_path / "d.csv"), "y0=0.2", "r=0.5", "c=1.5", "--json")
    assert outcome.status == 0, outcome.err
    assert {n: round(p["value"], 4) for n, p in outcome.json["estimates"].items()} == {"y0": 0.1, "r": 0.7, "c": 2.0}


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "source",
    [
        # A constant until the first round has assigned the name.
        "s = 0; for i in range(20) { if i > 0 { s = s + e }; e = x*i }; s",
        # What an earlier run of the inner loop has assigned.
        "s = 0; for j in range(3) { for i in range(20) { if j > 0 { s = s + e }; e = x*i } }; s",
        # A loop whose value is a constant on one path.
        "s = x; for i in range(60) { if s > 0.5 { s = s*0.5; 3 } else { s = s + 0.2*x } }",
        # Names that have no value without a round.
        "s = x; while s > 10 { t = s; s = s*0.9 }; if x > 10 { t } else { s }",
        # A list that is read under another name, or by a function, while items are appended to it.
        "ys = [x]; zs = ys; s = x; for i in range(60) { s = s*0.9 + zs[-1]/99; ys.append(s) }; sum(ys)",
        "ys = [x]; def f() { return ys[-1] }\ns = x; for i in range(60) { s = s*0.9 + f()/99; ys.append(s) }; sum(ys)",
        "ys = [x]; zs = [ys]; s = x; for i in range(60) { s = s*0.9 + zs[0][-1]/9; ys.append(s) }; sum(ys)",
        # Lists and tensors that change in place under another name.
        "ys = []; s = x; for i in range(60) { zs = ys; zs += [s]; s = s*0.9 }; sum(ys)",
        "def f(l, z) { l += [z]; return z*0.9 }\nys = []; s = x; for i in range(60) { s = f(ys, s) }; sum(ys)",
        "def f(v, z) { v[0] = z; return z*0.9 }\ny = [x, 2]; s = x; for i in range(60) { s = f(y, s) }; sum(y)",
        # Elements that change are those of all names of a list or tensor, during the loop and after it.
        "def f(v) { for i in range(60) { v[0] = v[0]*0.9 + v[1] }; return 0 }\ny = [x, 1]; f(y); y[0]",
        "y = [x, 1]; z = y; for i in range(60) { y[0] = y[0]*0.9; y[1] += y[0] }; sum(z)",
        "y = array([x, 1]); z = y; s = 0; for i in range(60) { y[0] = y[0]*0.9; s = s + z[0] }; s + z[0]",
        "y = array([x, 1]); z = y[0:2]; for i in range(60) { y[0] = y[0]*0.9 + z[1]; z[1] = 0.5 }; y[0]",
        "y = [x, 1]; z = [y]; for i in range(60) { y[0] = y[0]*0.9; y[1] += z[0][1]*0.01 }; sum(y)",
        "y = array([x, 1]); z = [0, 0]; for i in range(60) { y[0] = y[0]*0.9; z = y }; y[0] = 5; z[0]",
        "y = array([x, 1]); z = [0, 0]; for i in range(60) { y = y*0.9; z = y }; y[0] = 5; z[0]",
        "y = array([x, 1]); z = y; for i in range(60) { if y[0] > 100 { y = y*2 } }; y[0] = 5; z[0] + x",
        "y = array([x, 1]); z = y; while y[0] > 100 { y = y*0.9 }; y[0] = 5; z[0] + x",
        "y = array([x, 1]); ys = []; for i in range(60) { y = y*0.9; ys.append(y) }; ys[0][0] = 5; ys[0][0] + y[0]",
    ],
)
def test_names_and_values_are_those_of_the_rounds(source, round_by_round):
    def function(program):
        return program.derivatives({"x": 0.8}, 1)

    for result in repeated(source, function):
        np.testing.assert_allclose(result, round_by_round(source, function), rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("same", ["maximum(y, y)", "minimum(y, y)"])
def test_the_larger_of_a_value_and_itself_has_no_kink(same):
    source = "y = x; for i in range(200) {{ y = 0.9*{} + 0.1*x*y }}; sum(y)"
    values = {"x": np.array([0.7, 0.2])}
    expected = gradcli.compile(source.format("y")).hessian(values)["x,x"]
    np.testing.assert_allclose(gradcli.compile(source.format(same)).hessian(values)["x,x"], expected, rtol=1e-10)


def test_the_larger_of_two_equal_values_has_a_kink():
    source = "y = x; z = 2*x - 0.7; for i in range(200) { w = maximum(y, z); y = w; z = 0 }; y**2"
    assert math.isnan(gradcli.compile(source).hessian({"x": 0.7})["x,x"])


def test_a_sparse_hessian_through_a_loop_is_sparse():
    program = gradcli.compile("s = 0; for i in range(1, 300) { s = s + (x[i] - x[i-1])**2*sin(x[i]) }; s")
    x = np.linspace(0, 1, 300)
    assert len(program.hessian({"x": x}, sparse=True)["x,x"].value) < 1000


def test_a_formula_of_a_loop_is_that_of_its_rounds(run):
    assert run("diff", "s = x; for i in range(20) { s = s*x }; s").out.strip() == "21*x**20"


UNUSED = {
    "a value of the last round": "t = 0; s = x; for i in range(20) { t = sqrt(y*i); s = s*0.9 + y }; t + s",
    "a value that is never read": "u = 0; s = x; for i in range(20) { u = u + sqrt(y*i); s = s*0.9 + y }; s",
    "a value that is read elsewhere": (
        "t = 0; s = x; for i in range(20) { t = log(abs(y*i)); s = s*0.9 + y }; if x > 100 { t } else { s }"
    ),
    "a first value that is assigned anew": "t = sqrt(y - 1); s = x; for i in range(20) { t = x*i; s = s + t }; t*s",
    "a first value that is never read": "u = sqrt(y - 1); s = x; for i in range(20) { u = u + s; s = s*0.9 + y }; s",
    "a single value": "t = x; for i in range(20) { t = sqrt(y*i) }; t",
    "a value of the first of many rounds": "t = 0; s = x; for i in range(90) { t = sqrt(y*i); s = s*0.9 + y }; t + s",
    "a value of a round that others follow": (
        "t = 0; n = 0; s = x; while n < 70 { t = sqrt(y*n); n = n + 1; s = s*0.9 + y }; t + s"
    ),
}


@pytest.mark.parametrize("kind", ["gradient", "table"])
@pytest.mark.parametrize("rolled_at_once", [False, True])
@pytest.mark.parametrize("name", UNUSED)
def test_an_infinite_derivative_of_what_is_not_used(name, rolled_at_once, kind, round_by_round, monkeypatch):
    def function(program):
        return DERIVATIVES[kind](program, {"x": -0.5, "y": 1.0}, ["x", "y"])

    if rolled_at_once:
        monkeypatch.setattr(loop_policy, "_WORTH_TRACING", 0)
    expected = np.nan_to_num(round_by_round(UNUSED[name], function))
    for result in repeated(UNUSED[name], function):
        np.testing.assert_allclose(np.nan_to_num(result), expected, rtol=1e-12)


IDLE = {
    "a carry that is read elsewhere": (
        "u = sqrt(y - 1); s = 0; for i in range(40) { s = s + x; u = u + s }; if x > 100 { u } else { s }"
    ),
    "an operand of a carry that is read elsewhere": (
        "s = 0; t = z; for i in range(40) { s = s + x; t = t + y }; if x > 100 { t } else { s }"
    ),
    "what a branch that no round takes reads": (
        "u = sqrt(y - 1); s = 0; for i in range(40) { if s > 1e9 { s = s + z*u }; s = s + x }; s"
    ),
    "what a branch of `while` that no round takes reads": (
        "u = sqrt(y - 1); s = z; while s < 90 { if s > 1e9 { s = s + u }; s = s*1.1 + x }; s"
    ),
    "rows that a branch that no round takes reads": (
        "s = x; v = sqrt(y - 1)*e; for t in range(40) { if s > 1e9 { s = s + z*v[t] }; s = s*0.9 }; s"
    ),
    "an operand of `where`": (
        "u = sqrt(y - 1); s = x; for i in range(40) { s = where(s > 1e9, s + z*u, s*0.9) }; s"
    ),
}  # fmt: skip


@pytest.mark.parametrize("rolled_at_once", [False, True])
@pytest.mark.parametrize("name", IDLE)
def test_inputs_that_the_result_does_not_depend_on(name, rolled_at_once, round_by_round, monkeypatch):
    read = re.findall(r"\b[xyze]\b", IDLE[name])
    values = {n: v for n, v in {"x": 0.5, "y": 1.0, "z": 2.0, "e": E}.items() if n in read}

    def function(program):
        value, gradient = program.value_and_grad(values, [n for n in "xyz" if n in values])
        return [value, *(-1.0 if g is None else g for g in gradient.values())]

    if rolled_at_once:
        monkeypatch.setattr(loop_policy, "_WORTH_TRACING", 0)
    expected = round_by_round(IDLE[name], function)
    assert math.isfinite(sum(expected))
    for result in repeated(IDLE[name], function):
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_a_jacobian_by_what_no_round_reads(round_by_round):
    source = "s = x; for i in range(40) { if sum(s) > 1e9 { s = s + z }; s = s*0.9 + [x, 1] }; s"

    def function(program):
        return program.jacobian({"x": 0.5, "z": 2.0})

    for result in repeated(source, function):
        np.testing.assert_allclose(result, round_by_round(source, function), rtol=1e-12)


def test_a_branch_that_only_some_inputs_take():
    program = gradcli.compile("u = sqrt(y - 1); s = 0; for i in range(60) { if s > 9 { s = s + z*u }; s = s/2 + x }; s")
    for x in (1.0, 1.0, 2.0, 9.0, 9.0, 1.0, 2.0):
        value, gradient = program.value_and_grad({"x": x, "y": 1.0, "z": 2.0})
        assert value == pytest.approx(2 * x)
        assert gradient["y"] == (math.inf if x > 4.5 else None)


def test_rounds_that_no_result_depends_on():
    source = (
        "a = x; b = x - y; for i in range(2000) { if maximum(a, i/2000 + 0.01) > 1.4 { continue } }; x*y + a**2 + b*y"
    )
    program = gradcli.compile(source)
    for _ in range(2):
        assert program.hessian({"x": 0.3, "y": 0.4}) == {"x,x": 2.0, "x,y": 2.0, "y,y": -2.0}
