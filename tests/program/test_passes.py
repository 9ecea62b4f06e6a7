"""Tests the passes: their effect on programs, and that they preserve results."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradcli
from gradcli import arrays
from gradcli.errors import EvaluationError, GradcliError
from gradcli.evaluation.derivative_traces import value_and_gradients
from gradcli.language.syntax import parse
from gradcli.primitives import conversions
from gradcli.primitives.bind import assume, bind
from gradcli.primitives.entries import arithmetic, comparisons, exponential, powers, reductions
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.elementwise import trigonometric
from gradcli.primitives.entries.linear import matmul
from gradcli.program import program_constants
from gradcli.program.builder import Builder
from gradcli.program.ir import Program, Variable, check
from gradcli.program.passes import optimise
from gradcli.program.record import record
from gradcli.program.rewrites import EXACT, FAST, TABLE, MovingRewrite, PatternTerm, rewrites
from tests.strategies import NAMES, expressions

VECTOR = np.array([0.5, 1.5, 2.0])
MATRIX = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]])
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, 1e300, float("inf"), float("-inf"), float("nan")]


def results(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """The outputs, computed equation by equation; None where a guard does not hold."""
    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))

    def value(atom: Any) -> Any:
        return known[atom] if isinstance(atom, Variable) else atom

    with arrays.quiet():
        for equation in program.equations:
            known[equation.output] = bind(equation.primitive, [value(a) for a in equation.inputs], equation.params)
    if not all(np.all(known[g]) for g in program.guards):
        return []
    return [value(o) for o in program.outputs]


def listing(program: Program) -> list[Any]:
    """The equations, outputs and guards, with numbers for the variables."""
    numbers = {v: i for i, v in enumerate([*program.inputs, *(e.output for e in program.equations)])}

    def told(atom: Any) -> Any:
        return numbers[atom] if isinstance(atom, Variable) else program_constants.key(atom)

    equations = [(e.primitive, [*map(told, e.inputs)], repr(dict(e.params))) for e in program.equations]
    return [*equations, [*map(told, program.outputs)], [*map(told, program.guards)]]


def names(function: Callable[..., Any], *, fast: bool = False, **inputs: Any) -> list[str]:
    """The primitives of a function's program after the passes."""
    traced = record(lambda **given: [function(**given)], inputs)
    return [e.primitive.name for e in optimise(traced.program, fast=fast).equations]


def of_text(text: str, *, fast: bool = False, **inputs: Any) -> list[str]:
    """The primitives of a program's value and gradients after the passes."""
    trace = value_and_gradients(parse(text), inputs, tuple(inputs))
    return [e.primitive.name for e in optimise(trace.program, fast=fast).equations]


def test_value_and_gradient_share_what_is_common():
    assert of_text("exp(x)*q", x=2.0, q=3.0) == ["exp", "multiply"]
    assert of_text("log(x**q)", x=2.0, q=3.0) == ["greater", "isfinite", "isfinite", "log", "multiply", "divide"]


def test_dead_code_goes_and_inputs_stay():
    program = record(lambda x, y: [exponential.log(x), exponential.exp(x)][:1], {"x": 2.0, "y": 1.0}).program
    optimised = optimise(program)
    assert [e.primitive.name for e in optimised.equations] == ["log"]
    assert [v.name for v in optimised.inputs] == ["x", "y"]


@pytest.mark.parametrize(
    ("statement", "good", "bad"),
    [
        ("B = inv(A)", np.eye(2), np.ones((2, 2))),
        ("w, V = eigh(A)", np.eye(2), np.full((2, 2), np.nan)),
        ("s = svdvals(A)", np.eye(2), np.full((2, 2), np.inf)),
        ("L = cholesky(A)", np.eye(2), -np.eye(2)),
        ("x = solve(A, A[0])", np.eye(2), np.zeros((2, 2))),
        ("P = pinv(A)", np.eye(2), np.full((2, 2), np.nan)),
    ],
)
def test_what_fails_does_so_in_a_recorded_program_too_if_nothing_uses_it(statement, good, bad):
    compiled = gradcli.compile(f"{statement}\nsum(A)")
    for _ in range(3):
        assert compiled.value_and_grad({"A": good})[0] == 2.0
    with pytest.raises(EvaluationError, match="failed"):
        compiled.value_and_grad({"A": bad})


def test_what_may_fail_is_in_no_formula_that_does_without(run):
    assert run("diff", "B = inv(A); sum(A*A)", "A=[[1,2],[3,4]]").out == "2*A\n"


def test_operands_of_a_sum_are_the_same_in_any_order():
    assert names(lambda x, y: (x + y) * (y + x), x=1.0, y=2.0) == ["add", "multiply"]
    assert names(lambda x, y: (x - y) * (y - x), x=1.0, y=2.0) == ["subtract", "subtract", "multiply"]


def test_constants_are_told_apart_by_sign_and_dtype():
    assert names(lambda x: where(x > 1, x / 0.0, x / -0.0), x=2.0).count("divide") == 2
    nan = float("nan")
    assert names(lambda x: (x + nan) * (x + -nan), x=2.0).count("add") == 1
    small, large = np.full(3, 2.0, "float32"), np.full(3, 2.0)
    assert names(lambda x: (x * small) + (x * large), x=VECTOR.astype("float32")).count("multiply") == 2


def test_the_seed_of_a_backward_pass_is_no_factor():
    assert of_text("sum(log(x))", x=VECTOR) == ["log", "sum", "divide"]
    assert of_text("mean(x*q)", x=VECTOR, q=2.0) == ["multiply", "mean", "multiply", "broadcast_to", "multiply", "sum"]


def test_a_result_keeps_its_shape_and_dtype():
    traced = record(lambda x: [x * np.ones((2, 3)), x * np.float32(1), x * np.zeros((2, 3))], {"x": VECTOR})
    assert [arrays.shape(o) for o in optimise(traced.program, fast=True).outputs] == [(2, 3), (3,), (2, 3)]
    wide = record(lambda x: [x * np.ones(3)], {"x": VECTOR.astype("float32")})
    assert optimise(wide.program).outputs[0].dtype == "float64"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * 1.0, []),
        (lambda x: x / 1.0, []),
        (lambda x: x - 0.0, []),
        (lambda x: x + -0.0, []),
        (lambda x: x + 0.0, ["add"]),
        (lambda x: 0.0 - x, ["subtract"]),
        (lambda x: x * 0.0, ["multiply"]),
        (lambda x: x / x, ["divide"]),
        (lambda x: x - x, ["subtract"]),
        (lambda x: exponential.exp(exponential.log(x)), ["log", "exp"]),
        (lambda x: -(-x), []),  # noqa: B002
        (lambda x: x * -1.0, ["negative"]),
        (lambda x: 3.0 * (-x), ["multiply"]),
        (lambda x: -x - x, ["multiply"]),
        (lambda x: x**1.0, []),
        (lambda x: x**2.0, ["multiply"]),
        (lambda x: x**3.0, ["whole_power"]),
        (lambda x: abs(-x), ["abs"]),
        (lambda x: where(x > 0, x, x), []),
        (lambda x: where(comparisons.logical_not(x > 0), x, 1.0), ["greater", "where"]),
        (lambda x: conversions.reshape(x * 2.0, x.shape), ["multiply"]),
        (lambda x: conversions.cast(x, "float64"), []),
        (lambda x: arithmetic.zeros_like(x) + x, ["add"]),
    ],
)
@pytest.mark.parametrize("value", [1.5, VECTOR], ids=["number", "vector"])
def test_exact_rewrites(function, expected, value):
    assert names(function, x=value) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x + 0.0, []),
        (lambda x: x * 0.0, []),
        (lambda x: exponential.exp(x) * (1.0 / x), ["exp", "divide"]),
        (lambda x: 2.0 * (3.0 * x), ["multiply"]),
        (lambda x: (3.0 * x) / 2.0, ["multiply"]),
        (lambda x: 3.0 * (x / 2.0), ["multiply"]),
        (lambda x: x * 2.0 + x * exponential.exp(x), ["exp", "add", "multiply"]),
    ],
)
def test_fast_rewrites_are_made_only_when_asked_for(function, expected):
    assert names(function, x=VECTOR, fast=True) == expected
    assert names(function, x=VECTOR) != expected


def test_transposes():
    def both(x: Any) -> Any:
        return matmul(x.T.T, x.T)

    assert names(both, x=MATRIX) == ["permute", "matmul"]
    assert names(lambda x: matmul(x.T, x).T, x=MATRIX, fast=True) == ["permute", "matmul", "permute"]
    assert names(lambda x: conversions.reshape(conversions.reshape(x, 6), (3, 2)), x=MATRIX) == ["reshape"]
    assert names(lambda x: conversions.reshape(x, (6, 1)).T, x=MATRIX) == ["reshape"]


def test_what_is_repeated_is_computed_once():
    assert names(lambda x: conversions.broadcast_to(x, (1000,)) * 2.0, x=1.5) == ["multiply", "broadcast_to"]
    assert names(lambda x, y: conversions.broadcast_to(x, (3,)) * y, x=1.5, y=VECTOR) == ["multiply"]


def test_guards_are_facts():
    def guarded(x: Any) -> Any:
        magnitude = abs(x) * exponential.relu(x)
        assert assume(x > 0)
        return where(x > 0, magnitude, 0.0) + where(comparisons.equal(x, 0), 1.0, x)

    assert names(guarded, x=VECTOR) == ["greater", "multiply", "add"]


def test_guards_are_kept_once():
    def twice(x: Any) -> Any:
        assert assume(x > 0)
        assert assume(x > 0)
        assert assume(comparisons.not_equal(x, 0))
        return x * 2.0

    program = record(lambda x: [twice(x)], {"x": VECTOR}).program
    assert len(program.guards) == 3
    assert len(optimise(program).guards) == 1
    assert results(optimise(program), [VECTOR]) != []
    assert results(optimise(program), [-VECTOR]) == []


def test_powers_of_bases_other_than_zero_have_plain_derivatives():
    assert of_text("x**q", x=2.0, q=3.0) == [
        "abs",
        "greater",
        "greater_equal",
        "pow",
        "subtract",
        "pow",
        "multiply",
        "log",
        "multiply",
    ]
    assert "where" in of_text("x**q", x=0.0, q=3.0)


def test_a_positive_base_needs_no_guard_that_it_is_not_zero():
    assert "equal" not in of_text("log(x**q)", x=5.0, q=3.0)
    assert of_text("log(x**q)", x=5.0, q=3.0)[:3] == ["greater", "isfinite", "isfinite"]


def test_a_long_program_takes_time_in_proportion():
    def chain(x: Any, steps: int) -> Any:
        for i in range(steps):
            x = arithmetic.multiply(trigonometric.sin(x), 1.0 + i % 7) + x
        return x

    program = record(lambda x: [chain(x, 33_000)], {"x": 0.5}).program
    begin = time.process_time()
    optimised = optimise(program)
    assert time.process_time() - begin < 20
    assert results(optimised, [0.5]) == results(program, [0.5])


def test_every_rule_says_why_and_how_far():
    assert all(rule.tag in (EXACT, FAST) and rule.why for rule in TABLE)


# --- rewrite rules at all special numbers


def parts(rule: Any) -> tuple[str, ...]:
    code = rule.pattern.__code__
    return code.co_varnames[: code.co_argcount]


@pytest.mark.parametrize(
    "rule", [r for r in TABLE if r.tag == EXACT and not isinstance(r, MovingRewrite)], ids=lambda r: r.why
)
def test_both_sides_of_an_exact_rule_are_the_same(rule):
    truths = ("p",)
    kept = rule.replacement.__code__.co_varnames[: rule.replacement.__code__.co_argcount]
    grids = np.meshgrid(*[[True, False] if n in truths else SPECIAL for n in parts(rule)])
    values = {n: g.ravel().astype(bool if n in truths else float) for n, g in zip(parts(rule), grids)}
    if rule.given is not None:
        holds = rule.given(*values.values())
        values = {n: v[holds] for n, v in values.items()}
    with arrays.quiet():
        expected = record(lambda **v: [rule.pattern(**v)], values).values[0]
        found = record(lambda **v: [rule.replacement(**{n: v[n] for n in kept})], values).values[0]
    assert_same(np.broadcast_to(np.asarray(found, expected.dtype), expected.shape), expected)


# Values for the parts of a rule to apply it; c and d are constants, p is a boolean.
GENERIC = {"x": 0.7, "y": 1.3, "z": 2.9, "c": 1.7, "d": 0.4, "p": True}


def sides(rule: Any, *, guarded: bool) -> list[Program]:
    """Both sides of a rule as programs of its parts, which satisfy its condition, possibly by a guard."""
    given = {n: np.full(3, GENERIC[n]) for n in parts(rule) if n not in "cd"}
    fixed = {n: GENERIC[n] for n in parts(rule) if n in "cd"}

    def program(side: Callable[..., Any]) -> Program:
        names = side.__code__.co_varnames[: side.__code__.co_argcount]

        def function(**variables: Any) -> list[Any]:
            if guarded:
                assert assume(rule.given(*(variables[n] for n in parts(rule))))
            return [side(**{n: (variables | fixed)[n] for n in names})]

        return record(function, given).program

    return [program(rule.pattern), program(rule.replacement)]


EVERY_PATTERN = [r for r in TABLE if not isinstance(r, MovingRewrite)]


@pytest.mark.parametrize("rule", EVERY_PATTERN, ids=lambda r: r.why)
def test_every_rule_is_applied(rule):
    pattern, replacement = (
        [e.primitive.name for e in optimise(p, fast=rule.tag == FAST).equations]
        for p in sides(rule, guarded=rule.given is not None)
    )
    assert pattern == replacement


@pytest.mark.parametrize("rule", [r for r in EVERY_PATTERN if r.given is not None], ids=lambda r: r.why)
def test_without_its_guard_a_rule_is_not_applied(rule):
    program = sides(rule, guarded=False)[0]
    assert [e.primitive for e in optimise(program).equations] == [e.primitive for e in program.equations]


@pytest.mark.parametrize("rule", [r for r in EVERY_PATTERN if r.tag == FAST], ids=lambda r: r.why)
def test_both_sides_of_a_fast_rule_are_the_same_number(rule):
    kept = rule.replacement.__code__.co_varnames[: rule.replacement.__code__.co_argcount]
    expected = rule.pattern(**{n: GENERIC[n] for n in parts(rule)})
    np.testing.assert_allclose(rule.replacement(**{n: GENERIC[n] for n in kept}), expected, rtol=1e-14)


class Watched(Builder):
    """A builder that records how deeply rewrites were nested."""

    deepest = 0

    def fit(self, *operands: Any) -> Any:
        self.deepest = max(self.deepest, self._depth)
        return super().fit(*operands)

    def _shared(self, *operands: Any) -> Any:
        self.deepest = max(self.deepest, self._depth)
        return super()._shared(*operands)


# Six elements, where constants of at most five are computed here.
LARGE = np.arange(6.0)
ATOMS = [Variable((6,), "float64"), -1.0, 2.0, LARGE, LARGE[:3, None]]


@pytest.mark.cases(4)
@pytest.mark.parametrize("rule", EVERY_PATTERN, ids=lambda r: r.why)
def test_no_rules_undo_one_another(rule, monkeypatch):
    monkeypatch.setattr(program_constants, "_MOST_FOLDED", 5)
    for atoms in itertools.product(ATOMS, repeat=len(parts(rule))):
        draft = Watched(rewrites(EXACT, FAST))
        with arrays.quiet():
            made = rule.pattern(*(PatternTerm(draft, a) for a in atoms))
            for outer in EVERY_PATTERN:
                outer.pattern(*(made if i == 0 else PatternTerm(draft, atoms[0]) for i in range(len(parts(outer)))))
        assert draft.deepest < 8


def test_constants_that_are_too_large_to_be_computed_here_keep_their_sign():
    for program in ("sum(-(arange(70000)*x))", "sum(arange(70000)*(-x))", "sum(-(arange(70000)/x))"):
        compiled = gradcli.compile(program)
        assert len({compiled(x=1.0) for _ in range(3)}) == 1


@pytest.mark.parametrize("product", ["n*(-x)", "-(n*x)", "-(n/x)"])
def test_whole_numbers_that_are_constants_keep_the_sign_of_a_zero(product):
    compiled = gradcli.compile(f"n = argmax([[2, 1], [0, 1]], axis=1); 1/({product})")
    for _ in range(3):
        assert compiled(x=np.array([1.0, 1.0])).tolist() == [-np.inf, -1.0]


def test_sums_of_products_with_many_common_factors(run):
    def product(last: str) -> str:
        return "*(".join([f"x{i}" for i in range(400)] + [last + ")" * 400])

    assert run("diff", f"w*({product('y')} + {product('z')})", "--wrt", "w", "--json").status == 0


def test_only_the_last_shape_counts():
    assert names(lambda x: conversions.broadcast_to(conversions.broadcast_to(x, (2, 3)), (4, 2, 3)), x=VECTOR) == [
        "broadcast_to"
    ]


def assert_same(found: Any, expected: Any) -> None:
    """Assert equal shape, dtype and bits, except that all nans are equal."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


# --- random programs

UNARY = (
    arithmetic.negative, arithmetic.absolute, arithmetic.identity, arithmetic.sign, arithmetic.zeros_like,
    arithmetic.ones_like, arithmetic.reciprocal, exponential.exp, exponential.log, powers.sqrt,
    powers.square, exponential.relu, trigonometric.sin, comparisons.isfinite, comparisons.isnan,
    comparisons.logical_not,
)  # fmt: skip
BINARY = (
    arithmetic.add, arithmetic.subtract, arithmetic.multiply, arithmetic.divide, comparisons.maximum,
    comparisons.minimum, comparisons.less, comparisons.greater, comparisons.equal, comparisons.not_equal,
    comparisons.logical_and, comparisons.logical_or, powers.general_power,
)  # fmt: skip


@st.composite
def straight_line(draw: st.DrawFn) -> Callable[..., list[Any]]:
    """A function of x, y (vectors) and s (a number) that applies random primitives, many of them to constants."""
    numbers = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), float("nan")])
    uniform = numbers.map(lambda n: np.full(3, n))
    choices = draw(
        st.lists(
            st.tuples(
                st.one_of(
                    st.sampled_from(UNARY),
                    st.sampled_from(BINARY),
                    st.sampled_from(["where", "whole_power", "reshape", "broadcast", "sum", "assume"]),
                ),
                st.tuples(*[st.one_of(st.integers(0, 40), numbers, uniform)] * 3),
            ),
            min_size=1,
            max_size=25,
        )
    )

    def function(x: Any, y: Any, s: Any) -> list[Any]:
        made = [x, y, s]
        for operation, operands in choices:
            chosen = [made[-1 - o % len(made)] if type(o) is int else o for o in operands]
            result = _applied(operation, chosen)
            if result is not None:
                made.append(result)
        return made[3:][-4:] or [x]

    return function


def _applied(operation: Any, operands: list[Any]) -> Any:
    a, b, c = operands
    if operation == "where":
        return where(comparisons.greater(a, 0.0), b, c)
    if operation == "whole_power":
        return powers.whole_power(a, n=2.0)
    if operation == "reshape":
        return conversions.reshape(a, (1, *arrays.shape(a)))[0]
    if operation == "broadcast":
        return conversions.broadcast_to(a, (3,))
    if operation == "sum":
        return reductions.sum_(conversions.broadcast_to(a, (3,)))
    if operation == "assume":
        assume(comparisons.greater(a, 0.0))
        return None
    return operation(a) if operation in UNARY else operation(a, b)


ELEMENTS = st.sampled_from(SPECIAL)


@pytest.mark.slow
@settings(max_examples=130, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    function=straight_line(),
    x=st.lists(ELEMENTS, min_size=3, max_size=3).map(np.array),
    y=st.lists(ELEMENTS, min_size=3, max_size=3).map(np.array),
    s=ELEMENTS,
)
def test_exact_passes_keep_every_bit(function, x, y, s):
    with arrays.quiet():
        traced = record(function, {"x": x, "y": y, "s": s})
    optimised = optimise(traced.program)
    for found, expected in zip(results(optimised, [x, y, s]), traced.values, strict=True):
        assert_same(found, expected)
    assert listing(optimise(optimised)) == listing(optimised)


def test_programs_of_the_language_keep_every_bit():
    recorded = []

    @settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        text=st.one_of(expressions(), expressions(scalar=True)),
        values=st.tuples(*[st.one_of(ELEMENTS, st.just(0.7), st.just(VECTOR))] * len(NAMES)),
    )
    def check_program(text, values):
        inputs = dict(zip(NAMES, values))
        try:
            trace = value_and_gradients(parse(f"sum({text})"), inputs, NAMES)
        except GradcliError:
            recorded.append(False)
            return
        recorded.append(True)
        for found, expected in zip(results(optimise(trace.program), values), trace.values, strict=True):
            assert_same(found, expected)

    check_program()
    assert sum(recorded) > len(recorded) / 3


def test_a_pass_that_breaks_a_program_is_noticed(monkeypatch):
    x, y = Variable((), "float64", "x"), Variable((), "float64")
    broken = Program((x,), (), (y,))
    monkeypatch.setattr("gradcli.program.passes.without_dead_code", lambda _program, **_options: broken)
    with pytest.raises(AssertionError, match="not defined"):
        optimise(check(record(lambda x: [x * 2.0], {"x": 1.0}).program))
