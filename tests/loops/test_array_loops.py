"""Loops whose rounds compute with arrays: one equation, and the same numbers as round by round."""

import warnings
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import gradcli
from gradcli import limits
from gradcli.arrays import backends
from gradcli.errors import LimitError
from gradcli.evaluation.derivative_traces import value_and_hessian
from gradcli.evaluation.recordings import recording
from gradcli.language.interpreter import loop_policy
from gradcli.loops import loop_execution, rolling
from gradcli.loops.loop_primitive import loop_history
from tests.loops.test_rolled_loops import numbers

RANDOM = np.random.default_rng(0)
U = RANDOM.standard_normal(300)
PLANE = RANDOM.standard_normal((18, 17))
NETWORK = {
    "W": RANDOM.standard_normal((12, 20)) / 5, "V": RANDOM.standard_normal((12, 12)) / 5,
    "b": RANDOM.standard_normal(12), "e": RANDOM.standard_normal((15, 20)),
}  # fmt: skip
SYSTEM = {"A": RANDOM.standard_normal((20, 20)) / 9 + 3 * np.eye(20), "b": RANDOM.standard_normal(20)}
PLACES = {"x": RANDOM.standard_normal((40, 3)), "v": RANDOM.standard_normal((40, 3)) / 9, "m": RANDOM.random(40) + 0.5}
# Programs whose rounds read more numbers than are computed one by one, and inputs.
PROGRAMS = {
    "heat": ("for i in range(20) { u = u + k*(roll(u, 1) - 2*u + roll(u, -1)) }; sum(u**2)", {"u": U, "k": 0.2}),
    "heat with fixed ends": (
        "for i in range(20) { u = concat([u[:1], u[1:-1] + k*(u[2:] - 2*u[1:-1] + u[:-2]), u[-1:]]) }; sum(u**3)",
        {"u": U, "k": 0.2},
    ),
    "waves": (
        "a = u; b = u; for i in range(20) { a, b = 2*a - b + c**2*(roll(a, 1) - 2*a + roll(a, -1)), a }; sum(a**2) + b[7]",
        {"u": U, "c": 0.4},
    ),
    "a plane": (
        """
        for i in range(14) {
          inner = p[1:-1, 1:-1] + d*(p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4*p[1:-1, 1:-1])
          p[1:-1, 1:-1] = inner*(1 - r*inner)
        }
        mean(p**2)""",
        {"p": PLANE, "d": 0.1, "r": 0.02},
    ),
    "a network": ("h = zeros(12); for x in e { h = tanh(W@x + V@h + b) }; mean(h**2)", NETWORK),
    "a network with its states": (
        "h = zeros(12); hs = []; for x in e { h = tanh(W@x + V@h + b); hs.append(h) }; sum(stack(hs)**2 * e[:, :12])",
        NETWORK,
    ),
    "a network with a gate": (
        "h = zeros(12); for x in e { z = sigmoid(V@h + b); h = z*h + (1 - z)*tanh(W@x) }; sum(h*b)", NETWORK,
    ),
    "gradient descent": (
        "w = zeros(20); for i in range(15) { w = w - s*A.T@(A@w - b)/20 }; sum((A@w - b)**2)", {**SYSTEM, "s": 0.05},
    ),
    "power iteration": ("v = ones(20); for i in range(15) { v = A@v; v = v/norm(v) }; v@A@v", {"A": SYSTEM["A"]}),
    "matrices": ("B = A; for i in range(13) { B = B@A/9 + A.T/(i + 1) }; sum(B*B)", {"A": SYSTEM["A"]}),
    "bodies": (
        """
        for t in range(13) {
          d = x[:, None, :] - x[None, :, :]
          v = v - 0.01*sum(m[None, :, None]*d/(sum(d**2, axis=-1) + 0.1)[:, :, None]**1.5, axis=1)
          x = x + 0.01*v
        }
        sum(x**2)""",
        PLACES,
    ),
    "softmax": ("for i in range(14) { u = softmax(3*u) + 0.1*sin(c*u + i) }; sum(u*u)", {"u": U, "c": 0.4}),
    "extremes": ("for i in range(14) { u = maximum(0.9*u, roll(u, 1)) - c*where(u > 0, u, u**2)/9 }; sum(u)", {"u": U, "c": 0.4}),
    "statistics": ("for i in range(14) { u = c*(u - mean(u))/std(u) + exp(-u**2) }; max(u) + sum(u**2)", {"u": U, "c": 0.4}),
    "a branch": (
        "for i in range(20) { if norm(u) > 10 { u = c*u } else { u = u + cos(u + i) } }; sum(u**2)", {"u": U, "c": 0.4},
    ),
    "while": (
        "x = b; r = b - A@x; while norm(r) > 1e-3 { x = x + s*r; r = b - A@x }; sum(x**2)", {**SYSTEM, "s": 0.2},
    ),
    "scan": (
        "jax.lax.scan(lambda h, x: (tanh(V@h + W@x + b), sum(h)), zeros(12), e)[1] @ e[:, 3]",
        NETWORK,
    ),
    "fori_loop": ("jax.lax.fori_loop(0, 14, lambda i, u: u + k*(roll(u, 1) - u)*i, u) @ u", {"u": U, "k": 0.2}),
    "rows that are filled": (
        "y = zeros((15, 300)); y[0] = u; for i in range(1, 15) { y[i] = y[i-1] + k*(roll(y[i-1], 1) - y[i-1]**2) }; sum(y**2)",
        {"u": U / 4, "k": 0.2},
    ),
    "a sum of rows": ("s = 0; for i in range(14) { s = s*0.9 + u*sin(c*u + i) }; s @ s", {"u": U, "c": 0.4}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def short_loops_are_rolled(monkeypatch):
    monkeypatch.setattr(loop_policy, "_WORTH_RECORDING", 0)
    monkeypatch.setattr(rolling, "_FEW_EQUATIONS", 0)


@pytest.fixture
def compiled(monkeypatch):
    """Loops are compiled at their first run, if there is a compiler."""
    monkeypatch.setattr(loop_execution, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(loop_execution, "_states", WeakKeyDictionary())


def round_by_round(source, function):
    """The numbers that a function of a compiled program gives where no loop is rolled."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loop_policy, "_MOST_REFUSALS", 0)
        return numbers(function(gradcli.compile(source)))


def assert_same(source, function, **tolerances):
    """Compare the first call, which is not recorded, and two more with a run round by round."""
    program = gradcli.compile(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gradcli.AccuracyWarning)
        expected = round_by_round(source, function)
        for _ in range(3):
            np.testing.assert_allclose(
                numbers(function(program)), expected, **{"rtol": 1e-11, "atol": 1e-12} | tolerances
            )


def loops(source, values, wrt=None):
    trace = recording(gradcli.compile(source).program, values, tuple(values) if wrt is None else wrt).trace
    return [e.params["loop"] for e in trace.program.equations if e.primitive is loop_history]


@pytest.mark.parametrize("name", PROGRAMS)
def test_rounds_are_traced_once(name):
    source, values = PROGRAMS[name]
    found = loops(source, values)
    assert len(found) >= 2
    assert all(loop.has_arrays for loop in found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_rounds(name):
    source, values = PROGRAMS[name]
    assert_same(source, lambda program: program.value_and_grad(values))


@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_gives_the_same_numbers(name, compiled):
    source, values = PROGRAMS[name]
    assert_same(source, lambda program: program.value_and_grad(values))
    if backends.is_installed("llvmlite"):
        states = loop_execution._states.values()
        assert all(state.single is not None for state in states)


SCALARS = {name: [n for n, v in values.items() if not np.ndim(v)] for name, (_, values) in PROGRAMS.items()}


@pytest.mark.parametrize("name", [name for name, wrt in SCALARS.items() if wrt])
def test_higher_derivatives_are_those_of_the_rounds(name):
    source, values = PROGRAMS[name]
    assert_same(source, lambda program: program.derivatives(values, 3, SCALARS[name]), rtol=1e-9)


@pytest.mark.parametrize("name", ["heat", "a network", "a plane", "bodies", "while"])
def test_hessians_are_those_of_the_rounds(name):
    source, values = PROGRAMS[name]
    wrt = [n for n, v in values.items() if np.size(v) < 40]
    assert_same(source, lambda program: program.hessian(values, wrt), rtol=1e-9)


@pytest.mark.parametrize("name", ["heat", "a plane", "gradient descent", "while", "a branch"])
def test_rows_of_a_table_are_those_of_the_rounds(name):
    source, values = PROGRAMS[name]
    number = SCALARS[name][0]
    table = {number: values[number] * np.linspace(0.9, 1.1, 25)}
    others = {n: v for n, v in values.items() if n != number}
    assert_same(source, lambda program: program.map(table, wrt=[number], **others))


@pytest.mark.parametrize("name", ["heat", "a network", "a network with its states", "a plane", "waves"])
@pytest.mark.parametrize("way", ["NumPy", "machine code"])
def test_checkpoints_give_the_same_numbers(name, way, monkeypatch, request):
    if way == "machine code":
        request.getfixturevalue("compiled")
    monkeypatch.setattr(limits, "MAX_STORED_BYTES", 0)
    source, values = PROGRAMS[name]
    assert_same(source, lambda program: program.value_and_grad(values))
    if "states" not in name:
        assert {loop.spacing for loop in loops(source, values)} > {1}


def test_sums_over_all_rounds_are_not_kept_for_each_of_them():
    # The rows of a loop back have the cotangents of a state and of a row of data, and not those of the weights.
    source, values = PROGRAMS["a network"]
    trace = recording(gradcli.compile(source).program, values, tuple(values)).trace
    equations = [e for e in trace.program.equations if e.primitive is loop_history]
    assert {e.params["loop"].carries for e in equations if not e.params["last"]} == {12, 12 + 20}
    assert max(e.params["loop"].carries for e in equations) == 12 + 12 * 12 + 12 * 20 + 12


def test_the_cost_of_a_round_does_not_grow(monkeypatch):
    # A loop whose rounds could not be rolled would have as many equations as rounds.
    source = "for i in range(3000) { u = u + k*(roll(u, 1) - 2*u + roll(u, -1)) }; sum(u**2)"
    monkeypatch.setattr(rolling, "_FEW_EQUATIONS", 3_000)
    program = gradcli.compile(source)
    trace = recording(program.program, {"u": U, "k": 0.2}, ("u", "k")).trace
    assert len(trace.program.equations) < 60


def test_an_infinite_derivative_is_not_hidden():
    # The derivative of sqrt at 0 is infinite, and is multiplied by the 0 of what is not selected.
    source = "for i in range(14) { u = where(u > 0, sqrt(u), 0*u) + 0*k }; sum(u)"
    values = {"u": np.concatenate([np.zeros(20), np.abs(U)]), "k": 0.3}
    assert_same(source, lambda program: program.value_and_grad(values))


def test_shapes_that_change_are_run_round_by_round():
    source = "for i in range(14) { u = concat([u, u[:1]*k]) }; sum(u**2)"
    assert loops(source, {"u": U, "k": 0.3}) == []
    assert_same(source, lambda program: program.value_and_grad({"u": U, "k": 0.3}))


def test_complex_arrays_are_run_round_by_round():
    source = "z = u + 1j*k; for i in range(14) { z = z*z/2 + 0.1 }; real(sum(z*conj(z)))"
    values = {"u": U / 9, "k": 0.3}
    assert_same(source, lambda program: program.value_and_grad(values))


def test_rounds_are_counted_where_they_end_by_a_condition():
    source, values = PROGRAMS["while"]
    taken = int(
        gradcli.compile(
            source.replace("x = b", "n = 0; x = b")
            .replace("r = b - A@x }", "r = b - A@x; n = n + 1 }")
            .replace("sum(x**2)", "n")
        )(**values)
    )
    assert taken > 5
    assert all(taken < loop.rounds < 3 * taken + 20 for loop in loops(source, values))


def test_a_loop_without_end_is_tried_for_as_long_as_the_budget_lasts(monkeypatch):
    tried = []

    def rounds_until_end(loop, *operands):
        tried.append(loop.rounds)
        return known(loop, *operands)

    known = loop_execution.rounds_until_end
    monkeypatch.setattr(loop_execution, "rounds_until_end", rounds_until_end)
    monkeypatch.setattr(loop_policy, "_WORTH_TRACING", 0)
    program = gradcli.compile("while norm(u) >= 0 { u = 0.9*u }; sum(u)", max_elements=100_000)
    with pytest.raises(LimitError, match="array elements"):
        program(u=U)
    assert 0 < max(tried, default=0) < 1_000


def test_a_loop_is_not_refused_where_its_rounds_are_not():
    source, values = "for i in range(200) { u = u + k*(roll(u, 1) - 2*u + roll(u, -1)) }; sum(u**2)", {"u": U, "k": 0.2}
    assert loops(source, values)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loop_policy, "_MOST_REFUSALS", 0)
        gradcli.compile(source, max_elements=580_000).value_and_grad(values)
    gradcli.compile(source, max_elements=580_000).value_and_grad(values)


def test_sums_that_are_not_wanted_are_not_computed():
    # A loop back carries the cotangents of the state and of the bias, and not those of the weights.
    source, values = PROGRAMS["a network"]
    assert max(loop.carries for loop in loops(source, values, wrt=("b",))) == 12 + 12


def test_second_derivatives_keep_no_sums_over_all_rounds():
    # The rows of all rounds have states and their cotangents, and not those of the weights, which are larger.
    source, values = PROGRAMS["a network"]
    trace = value_and_hessian(gradcli.compile(source).program, values, ("b",))
    found = [e.params for e in trace.program.equations if e.primitive is loop_history]
    assert max(p["loop"].carries for p in found if not p["last"]) <= 3 * 12 + 20
    assert max(p["loop"].carries for p in found if p["last"]) > 12 * 12


@pytest.mark.parametrize(
    "source",
    [
        "u = u0; n = 0; while sum(u*u) > 0.1 { v = u; u = 0.5*tanh(M@v) + 0.1*v; n = n + 1 }; sum(u) + n",
        "u = u0; N = M; for i in range(13) { N = 0.3*tanh(M@N + N.T); u = tanh(N@u + i/9) }; sum(N) + sum(u)",
        """
        u = u0; v = u0; n = 0; T = 0*u
        while sum(abs(u)) + n < 20 {
          v = tanh(maximum(u, 2*v)); u = 0.5*tanh(M@v) + 0.1*u; T = T + M[2]*0.3; n = n + 1
        }
        sum(u**2) + u@v + sum(sin(T))""",
    ],
)
def test_hessians_by_what_adds_up_are_those_of_the_rounds(source, monkeypatch):
    monkeypatch.setattr(rolling, "_MOST_NUMBERS", -1)
    values = {"u0": U[:3], "M": PLANE[:3, :3] / 3}
    assert_same(source, lambda program: program.hessian(values, ["M", "u0"]), rtol=1e-9)
