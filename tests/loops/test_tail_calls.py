"""Functions that call themselves last: no depth is too deep, and the numbers are those of nested calls."""

import math

import numpy as np
import pytest

import gradcli
from gradcli.language.interpreter import loop_policy


@pytest.fixture
def call_by_call(monkeypatch):
    """The value and gradient of a program where no calls become one equation."""

    def find(source, values):
        with monkeypatch.context() as patched:
            patched.setattr(loop_policy, "_MOST_REFUSALS", 0)
            return gradcli.compile(source).value_and_grad(values)

    return find


DEEP = {
    "statements": "def f(n, s) { if n == 0 { return s } else { return f(n-1, s*x) } }\nf(300000, 1)",
    "Python": "def f(n, s):\n    if n == 0:\n        return s\n    s = s*x\n    return f(n - 1, s=s)\nf(300000, 1)",
    "an expression": "f(n, s) = s if n == 0 else f(n - 1, s*x); f(300000, 1)",
    "a lambda": "f = lambda n, s: s if n == 0 else f(n - 1, s*x); f(300000, 1)",
    "a function that is passed on": "f(g, n, s) = s if n == 0 else f(g, n - 1, g(s)); f(lambda t: t*x, 300000, 1)",
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", DEEP)
def test_more_calls_than_may_be_nested(name, run):
    outcome = run("eval", DEEP[name], "x=1.00001", "--json", "--order", "2")
    value, first, second = outcome.json["value"], outcome.json["grad"]["x"], outcome.json["derivatives"]["x,x"]
    n = 300_000
    assert value == pytest.approx(1.00001**n, rel=1e-9)
    assert first == pytest.approx(n * 1.00001 ** (n - 1), rel=1e-9)
    assert second == pytest.approx(n * (n - 1) * 1.00001 ** (n - 2), rel=1e-9)


def test_a_depth_that_is_an_input():
    program = gradcli.compile("f(n, s) = s if n <= 0 else f(n - 1, s*x); f(k, x)")
    for k in (200_000.0, 200_000.0, 3.0, 150_000.5):
        value, gradient = program.value_and_grad({"x": 1.00001, "k": k}, ["x"])
        calls = math.ceil(k)
        assert value == pytest.approx(1.00001 ** (calls + 1), rel=1e-9)
        assert gradient["x"] == pytest.approx((calls + 1) * 1.00001**calls, rel=1e-9)


def test_many_calls_for_rows():
    program = gradcli.compile("f(n, s) = s if n <= 0 else f(n - 1, s*x); f(k, x)")
    x = np.array([1.0, 1.00001, 0.99999])
    found = program.map({"x": x}, k=50_000.0, wrt=["x"])
    np.testing.assert_allclose(found["value"], x**50_001, rtol=1e-9)
    np.testing.assert_allclose(found["d_x"], 50_001 * x**50_000, rtol=1e-9)


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "source",
    [
        # Calls that are not the last thing a function does, and functions that call each other.
        "f(n) = 1 if n < 1 else x*f(n - 1); f(50)",
        "f(n, s) = s if n < 1 else f(n - 1, s*x) + f(n - 5, s); f(20, 1)",
        "f(n, s) = s if n < 1 else f(n - 3, f(n - 4, s*x)); f(25, 1)",
        "even(n, s) = s if n < 1 else odd(n - 1, s*x); odd(n, s) = even(n - 1, s + x); even(60, 1)",
        # Arguments by name, defaults, and names of the function that are assigned.
        "def f(n, s, h=0.5) { if n < 1 { return s*h }; t = s*x; h = h*0.9 + t/9; return f(h=h, n=n - 1, s=t) }\nf(40, 1)",
        "def f(n, s, h=x) { if n < 1 { return s }; return f(n - 1, s*h) }\nf(40, 1, 0.9)",
        "def f(n, s) { for i in range(9) { if s < i { return f(n - 1, s + x) if n > 0 else s } }; return s*x }\nf(40, 1)",
        "def f(n, s) { while True { s = s*0.9 + x; if s > 1 { return f(n - 1, s/2) if n > 0 else s } } }\nf(40, 1)",
        # Arguments that are no numbers, or change their kind.
        "f(n, ys) = sum(ys) if n < 1 else f(n - 1, [ys[1]*0.9, ys[0] + x]); f(40, [x, 1])",
        "def f(n, ys) { if n < 1 { return sum(ys) }; ys.append(ys[-1]*x); return f(n - 1, ys) }\nf(40, [1.0])",
        "f(n, g) = g(x) if n < 1 else f(n - 1, lambda t: g(t)*0.9); f(40, lambda t: t*t)",
        "f(n, s) = sum(s) if n < 1 else f(n - 1, s*[x, 1]); f(40, x)",
        "f(n, s) = s if n < 1 else f(n - 1, None if s is None else s*x); f(40, x)",
        # Functions within functions, and a name that means another function.
        "def f(n, s) { g(m, t) = t if m < 1 else g(m - 1, t*x + n); return s if n < 1 else f(n - 1, g(15, s)/99) }\nf(20, 1)",
        "f(n, s) = s if n < 1 else f(n - 1, s*x); h = f; f(n, s) = s + n; h(40, 1)",
        "f(s, n) = s if n < 1 else f(s*x, n - 1); y = 0; for i in range(30) { y = y*0.5 + f(x, 3) }; y",
        "f(n, s) = s if n < 1 else f(n - 1, s*x); y = 0; for i in range(30) { y = y*0.5 + f(i, x) }; y",
        # Derivatives of its own, within, and of a function that repeats itself.
        "f(n, s) = s if n < 1 else f(n - 1, s*0.9) backward(g) = 0*g, 3*g; f(20, x)",
        "f(n, s) = s if n < 1 else f(n - 1, s + diff(s**2, s)*x/9); f(20, x)",
        "f(t) = g(20, t); g(n, s) = s if n < 1 else g(n - 1, s*s/2 + s); grad(f)(x)",
        "f(n, s) = s if n < 1 else f(n - 1, detach(s)*x); f(20, x)",
    ],
)  # fmt: skip
def test_numbers_are_those_of_nested_calls(source, call_by_call, monkeypatch):
    monkeypatch.setattr(loop_policy, "_WORTH_TRACING", 0)
    expected = call_by_call(source, {"x": 0.8})
    program = gradcli.compile(source)
    for _ in range(3):
        value, gradient = program.value_and_grad({"x": 0.8})
        assert value == pytest.approx(expected[0], rel=1e-13)
        assert gradient["x"] == pytest.approx(expected[1]["x"], rel=1e-12)


def test_wrong_arguments_of_a_last_call(run):
    error = run("eval", "f(n, s) = s if n < 1 else f(n - 1); f(3, x)", "x=1").err
    assert error.startswith(
        "error: 'f' needs 's'\n  | f(n, s) = s if n < 1 else f(n - 1); f(3, x)\n  |" + " " * 27 + "^"
    )


def test_calls_without_end_take_too_many_steps(run):
    for source in ("f(a) = f(a); f(x)", "f(a) = f(a + 1) if a > 0 else a; f(x)"):
        outcome = run("eval", source, "x=1")
        assert outcome.status == 1
        assert "more than 2,000,000 steps" in outcome.err
        assert "a loop may not end" in outcome.err


@pytest.mark.slow
def test_a_long_recursion_within_the_round_of_a_loop(run):
    source = "f(n, s) = s if n == 0 else f(n - 1, s*0.5); s = 0; for i in range(1000) { s = s*x + f(i % 90, x) }; s"
    assert run("eval", source, "x=0.5", "--no-grad").status == 0
