"""Tests the limits of a run: all kinds of work are charged to its single budget."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import gradcli
from gradcli import arrays, limits, subprocess_calls
from gradcli.errors import LimitError, UsageError
from gradcli.evaluation import graph_view, session
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.language.syntax import parse
from gradcli.models import dense_matrices
from gradcli.program.passes import optimise
from gradcli.program.record import record

STEPS = "the program takes more than"
ELEMENTS = "array elements"


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "words",
    [
        ["check", "x*x", "x=1", "--order", "1000000000"],
        ["check", "sin(x)*exp(x)", "x=1", "--order", "30"],
        ["check", "y = x; ys = []; for i in range(5000) { y = y*0.99; ys.append(len(ys)) }; y", "x=1"],
        ["check", "sum(x)", "x=ones(100000)"],
        ["eval", "sin(a*b)*exp(c+d)*e", "a=1", "b=2", "c=3", "d=4", "e=5", "--order", "16"],
        ["eval", "a*b*c*d", "a=1", "b=2", "c=3", "d=4", "--order", "12"],
        ["eval", "prod(sin(x))", "x=[1, 2, 3, 4, 5, 6, 7, 8]", "--order", "8"],
        ["eval", "y = x; for i in range(300) { y = y*x }; y", "x=0.5", "--order", "170"],
        [
            "eval",
            "y = x*x; ys = []; for i in range(10000) { y = x*x; ys.append(len(ys)) }; y",
            "x=0.5",
            "--order",
            "170",
        ],
        ["eval", "ys = []; for i in range(1000) { ys.append([" + "i, " * 1000 + "i]) }; 1"],
        ["eval", "y = x; ys = []; for i in range(10000) { y = logsumexp([y, x]); ys.append(len(ys)) }; y", "x=1"],
        [
            "eval",
            "y = x; ys = []; for i in range(10000) { y = sin(y); ys.append(len(ys)) }; y",
            "x=1",
            "--executor",
            "compiled",
        ],
        ["eval", "half(t) = t/2 backward(g) = g/2; y = x; for i in range(10000) { y = half(y) }; y", "x=1"],
        ["eval", "y = x; ys = []; for i in range(5000) { y = y*x; ys.append(len(ys)) }; [y, y]", "x=1", "--jacobian"],
        ["graph", "y = x; for i in range(100000) { y = y*x }; y", "x=1"],
        ["eval", "ys = []; ys += range(10**10); x", "x=1"],
        ["eval", "ys = []; ys.extend(range(10**10)); x", "x=1"],
        ["eval", "len(list(range(10**10)))*x", "x=1"],
        ["eval", "len(zip(range(10**10), range(10**10)))*x", "x=1"],
        ["eval", "sum(map(lambda a: x, range(10**10)))", "x=1"],
        ["eval", "jax.lax.scan(lambda c, a: (c, c), x, None, length=10**10)[0]", "x=1"],
        ["eval", "jax.lax.scan(lambda c, a: (c, c), x, range(10**10))[0]", "x=1"],
        ["eval", "jax.lax.fori_loop(0, 10**10, lambda i, s: s, x)", "x=1"],
        ["eval", "a = [x]; for i in range(40) { a = [a, a] }; grad(lambda u: x)(a)", "x=1"],
        ["eval", "a = [x]; for i in range(40) { a = [a, a] }; vmap(lambda u: a)(ones(3))", "x=1"],
        ["eval", "ys = list(range(10000)); for i in range(100) { ys[0] = i; sum(ys) }; x", "x=1"],
        ["eval", "ys = list(range(5000)); for i in range(100) { sorted(ys) }; x", "x=1"],
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_work_takes_steps(run, words):
    outcome = run(*words, "--max-steps", "50000")
    assert outcome.status == 1
    assert f"error: {STEPS} 50,000 steps" in outcome.err
    assert "--max-steps" in outcome.err


@pytest.mark.parametrize(
    "program",
    [
        "s = 0; for i in range(1000) { s = s + sum(x) }; s",
        "s = 0; for i in range(1000) { s = s + max(x[m]) }; s",
        "s = 0; for i in range(1000) { s = s + argmax(x) }; s",
    ],
)
def test_what_is_gone_through_counts_though_little_comes_of_it(run, program):
    words = ("x=arange(10000)", "m=arange(10000)") if "[m]" in program else ("x=arange(10000)",)
    outcome = run("eval", program.replace("[m]", "[m > 9000]"), *words, "--no-grad", "--max-elements", "1000000")
    assert outcome.status == 1
    assert ELEMENTS in outcome.err


@pytest.mark.parametrize(
    "program",
    [
        "a = [x]; for i in range(40) { a = [a, a] }; np.sum(a)",
        "a = [1]; for i in range(40) { a = [a, a] }; np.sum(a)*x",
        "ys = [x]; for i in range(60) { ys.extend(ys) }; x",
        "ys = [x]; for i in range(60) { ys += ys }; x",
        "ys = list(range(4000)); for i in range(300) { zs = ys[:] }; x",
        "ys = list(range(4000)); for i in range(300) { zs = ys.copy() }; x",
        "ys = list(range(4000)); for i in range(300) { zs = list(ys) }; x",
        "ys = list(range(9000)); for i in range(3000) { ys.pop(0) }; x",
    ],
)
def test_lists_count(run, program):
    outcome = run("eval", program, "x=1", "--max-elements", "1000000")
    assert outcome.status == 1
    assert ELEMENTS in outcome.err


def test_a_list_in_several_places_of_another_is_gone_through_once(run):
    program = "a = zeros(0, 1); for i in range(30) { a = [a, a] }; x"
    assert run("eval", program, "x=1").status == 0
    assert "a list that contains itself" in run("eval", "a = [x]; b = [a]; a.append(b); np.sum(a)", "x=1").err


def test_what_statements_leave_is_looked_for_once(run):
    """A search for each statement would take minutes."""
    outcome = run("eval", "def f(x):\n" + "    if x > 1: return x\n" * 6000 + "f(x)", "x=2", "--no-grad")
    assert outcome.status == 0


@pytest.mark.parametrize("view", ["x.T", "x[1:]", "x[2]", "x[:, None]", "reshape(x, -1)", "squeeze(x)", "flip(x)"])
def test_a_view_of_an_array_is_none_of_its_own(run, view):
    program = f"for i in range(200) {{ {view} }}; 1"
    assert run("eval", program, "x=ones(100, 100)", "--no-grad", "--max-elements", "20000").status == 0


@pytest.mark.parametrize(
    "copy", ["reshape(x.T, -1)", "x.T + 1", "x[1:] * 2", "x[[0, 1]]", "broadcast_to(x, [2, 100, 100])"]
)
def test_what_is_made_of_a_view_counts(run, copy):
    program = f"for i in range(200) {{ {copy} }}; 1"
    outcome = run("eval", program, "x=ones(100, 100)", "--no-grad", "--max-elements", "20000")
    assert outcome.status == 1
    assert ELEMENTS in outcome.err


def test_what_is_copied_to_be_kept_for_the_gradient_counts(run):
    program = "A = ones(100, 100); for i in range(50) { x = 0.01*x @ A }; sum(x)"
    outcome = run("eval", program, "x=ones(100)", "--max-elements", "200000")
    assert outcome.status == 1
    assert ELEMENTS in outcome.err


def test_what_is_written_counts(run):
    words = ("eval", "sum(x)", "x=ones(1000)", "--max-elements", "20000")
    assert run(*words).status == 0
    outcome = run(*words, "--json")
    assert outcome.status == 1
    assert ELEMENTS in outcome.err
    assert not outcome.out


def test_a_derivative_of_any_order_ends_where_nothing_is_left(run):
    assert run("eval", "diff(x*x, x, 1e9)", "x=3", "--json").status == 0
    assert run("eval", "diff(x*x, x, 2)", "x=3").out.split()[:2] == ["value", "2.0"]
    assert run("eval", "diff(x*x, x, 3)", "x=3").out.split()[:2] == ["value", "0.0"]


@pytest.mark.parametrize("words", [["2"], ["sum(x)", "x=[1]"], ["sum(x)", "x=[]"], ["x*y", "x=1", "y=2"]], ids=str)
def test_no_order_goes_on_for_ever(run, words):
    outcome = run("eval", *words, "--order", "100000000")
    assert outcome.status == 1
    assert "order 100000000" in outcome.err


@pytest.mark.slow
def test_a_derivative_has_no_more_axes_than_arrays_have(run):
    for x in ("[]", "[1]"):
        outcome = run("eval", "sum(x)", f"x={x}", "--order", "80")
        assert outcome.status == 1
        assert "internal" not in outcome.err


def test_zeros_in_the_place_of_a_derivative_count(run):
    outcome = run("eval", "sum(jacobian(y, x))", "x=ones(20000)", "y=ones(30000)")
    assert outcome.status == 1
    assert ELEMENTS in outcome.err


class TestPrograms:
    """The limits of the Python interface."""

    BIG = "x + sum(zeros(30000, 30000)[0])"

    @pytest.mark.parametrize(
        "use",
        [
            lambda f: f(x=1.0),
            lambda f: f.value_and_grad({"x": 1.0}),
            lambda f: f.jacobian({"x": 1.0}),
            lambda f: f.hessian({"x": 1.0}),
            lambda f: f.derivatives({"x": 1.0}, 3),
            lambda f: f.compiled(("x",))(1.0),
            lambda f: f(x=gradcli.tensor(1.0, requires_grad=True)),
            lambda f: gradcli.gradcheck(f, {"x": 1.0}),
        ],
    )
    def test_every_use_has_the_limits_of_the_command_line(self, use):
        for _ in range(3):
            with pytest.raises(LimitError, match="more than 400,000,000 array elements") as caught:
                use(gradcli.compile(self.BIG))
            assert caught.value.span is not None

    def test_they_are_parameters(self):
        f = gradcli.compile("y = x; for i in range(100) { y = y + sum(x*ones(10)) }; y", max_steps=100)
        for _ in range(3):
            with pytest.raises(LimitError, match="more than 100 steps"):
                f.value_and_grad({"x": 1.0})
        f = gradcli.compile("sum(x*ones(100))", max_elements=150)
        with pytest.raises(LimitError, match="more than 150 array elements"):
            f(x=1.0)
        with pytest.raises(LimitError):
            gradcli.gradcheck("sum(x)", {"x": np.ones(10)}, max_steps=100)
        with pytest.raises(LimitError):
            gradcli.gradcheck("sum(x*ones(100))", {"x": 1.0}, max_elements=500)

    @pytest.mark.parametrize("limit", [0, -1, 1.5, "9", None, True])
    def test_a_limit_is_a_whole_number(self, limit):
        with pytest.raises(UsageError, match="'max_steps' must be a whole number"):
            gradcli.compile("x", max_steps=limit)
        with pytest.raises(UsageError, match="'max_elements' must be a whole number"):
            gradcli.compile("x", max_elements=limit)

    def test_what_could_be_run_once_can_be_run_again(self):
        """Recording takes more steps than a run; where it exceeds the limit, the program runs unrecorded."""
        f = gradcli.compile("y = x; for i in range(50) { y = y*x }; y", max_steps=1000)
        assert [f.value_and_grad({"x": 1.0}) for _ in range(4)] == [(1.0, {"x": 51.0})] * 4

    def test_a_recorded_program_is_charged_too(self):
        f = gradcli.compile("sum(sin(x)*x)", max_elements=10_000)
        for size in (10, 10, 10, 1000, 1000):
            f(x=np.ones(size))
        for _ in range(3):
            with pytest.raises(LimitError):
                f(x=np.ones(5000))

    def test_functions_and_tensors_have_none(self):
        x = gradcli.tensor(np.ones(100), requires_grad=True)
        assert limits.budget() is None
        assert gradcli.gradcheck(lambda x: gradcli.sum(x * x), [x])


def test_a_block_inside_a_block_has_no_budget_of_its_own():
    with limits.within(max_steps=10), limits.within(max_steps=100):
        limits.charge_steps(80)
        with pytest.raises(LimitError, match="more than 10 steps"):
            limits.charge_steps(1)


def test_what_is_refused_is_not_counted():
    with limits.within(max_elements=10):
        with pytest.raises(LimitError):
            limits.charge(11)
        limits.charge(10)


def test_an_attempt_takes_nothing_from_the_run():
    with limits.within(max_steps=8):
        with limits.optional_budget(), pytest.raises(LimitError):
            limits.charge_steps(33)
        limits.charge_steps(64)
    with limits.optional_budget():
        limits.charge_steps(1000)


@pytest.mark.parametrize(("taken", "allowed"), [(10, 100_000), (300_000, 300_000), (1_900_000, 50_000)])
def test_the_digits_of_a_result_are_examined_in_as_many_steps_as_it_took(taken, allowed):
    """A gradient through a stiff equation took half a second, and its examination minutes."""
    with limits.within():
        limits.charge_steps(limits.UNITS_PER_STEP * taken)
        with limits.diagnosis_budget():
            limits.charge_steps(limits.UNITS_PER_STEP * allowed)
            with pytest.raises(LimitError):
                limits.charge_steps(1)


def test_a_result_that_is_not_finite_is_given_where_its_cause_is_too_far_to_find(run):
    outcome = run("eval", "y = x; for i in range(500) { y = y*2 }; y/0", "x=1", "--max-steps", "6000")
    assert outcome.status == 0
    assert "inf" in outcome.out
    assert "warning: a result is not finite, where that comes from takes too many steps to find" in outcome.err


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("s = 0; for i in range(1000) { s = s + svdvals(A)[0] }; s", ["A=rand(300, 300, seed=0)"]),
        ("s = 0; for i in range(1000) { s = s + pinv(A)[0, 0] }; s", ["A=rand(20, 20, seed=0)"]),
        ("s = 0; for i in range(1000) { s = s + sum(expm(A)) }; s", ["A=rand(8, 8, seed=0)"]),
        ("s = 0; for i in range(1000) { s = s + sort(x)[0] }; s", ["x=rand(3000, seed=0)"]),
        ("s = 0; for i in range(1000) { s = s + median(x) }; s", ["x=rand(3000, seed=0)"]),
        ("s = 0; for i in range(1000) { s = s + sum(polygamma(2, x)) }; s", ["x=rand(1000, seed=0)"]),
        ("s = 0; for i in range(1000) { s = s + einsum('i,ij,j->', x, A, x) }; s", ["x=ones(2)", "A=eye(2)"]),
        ("sum(qr(A)[0])", ["A=rand(500, 500, seed=0)"]),
        ("sum(fmod(x*1e300, 1e-310))", ["x=rand(20000, seed=0)"]),
        ("sum(x*1e300 % 1e-300) + sum(x*1e300 // 1e-300)", ["x=rand(20000, seed=0)"]),
        ("sum(sin(x) + cos(x))", ["x=linspace(1e9, 2e9, 250000)"]),
        ("sum((-x)**round(4*x))", ["x=linspace(1, 2, 150000)"]),
        ("sum(x**400)", ["x=linspace(10, 20, 250000)"]),
        ("sum(atan2(x, x))", ["x=linspace(1e-310, 1e-309, 250000)"]),
        ("sum(digamma(x))", ["x=linspace(-0.7, -0.3, 20000)"]),
    ],
)
def test_what_takes_longer_than_an_element_is_charged_as_more(run, program, words):
    outcome = run("eval", program, *words, "--no-grad", "--max-elements", "2000000")
    assert outcome.status == 1
    assert ELEMENTS in outcome.err


@pytest.mark.parametrize("executor", ["eager", "compiled"])
@pytest.mark.parametrize(
    ("program", "easy", "hard"), [("sin(x) + sin(2*x)", 1e6, 1e9), ("x % 0.7", 1.0, 1e200), ("x**30.5", 1.0, 1e20)]
)
def test_numbers_that_take_longer_are_charged_as_more(run, executor, program, easy, hard):
    def status(scale: float) -> int:
        words = (f"x=linspace({scale}, {2 * scale}, 100000)", "--no-grad", "--max-elements", "1000000")
        return run("eval", f"sum({program})", *words, "--executor", executor).status

    assert (status(easy), status(hard)) == (0, 1)


def test_bessel_functions_of_higher_orders_are_charged_by_them(run):
    words = ("x=linspace(10, 20, 10000)", "--max-elements", "1000000")
    assert run("eval", "sum(j0(x))", *words).status == 0
    assert run("eval", "sum(diff(j0(x), x, 2))", *words).status == 1


@pytest.mark.parametrize("x", ["1e16", "[1e16]"])
def test_bessel_functions_of_high_orders_far_out_are_charged_by_them(run, x):
    assert run("eval", "sum(yv(1e6, x))", f"x={x}").status == 0
    outcome = run("eval", "sum(yv(1e9, x))", f"x={x}")
    assert outcome.status == 1
    assert "array elements" in outcome.err


@pytest.mark.parametrize("how", [("--digits", "20"), ("--enclose",), ("--certify",)])
def test_a_derivative_of_digamma_on_the_left_is_charged_for_those_before_it(run, how):
    assert STEPS in run("eval", "polygamma(1e9, x)", "x=-20.5", *how).err


def test_zeta_is_charged_by_its_powers_of_logarithms(run):
    assert "steps" in run("eval", "zeta(x, n=1e9)", "x=0.5").err
    assert run("eval", "zeta(x, n=1000)", "x=3", "--max-steps", "20000").status == 0


@pytest.mark.parametrize(
    "words",
    [
        # Balls of tall and wide parts of the critical strip took FLINT minutes each.
        ("integrate(real(zeta(1/2 + 1j*t)), t, 0, 1e4)", "--digits", "20", "--max-steps", "100000"),
        ("zeta(1/2 + 1e15j)", "--digits", "20"),
        ("zeta(1/2 + 1e12j)",),
    ],
)
def test_zeta_far_from_the_real_axis_is_charged_by_its_height(run, words):
    assert STEPS in run("eval", *words).err


def test_zeta_of_many_numbers_takes_the_steps_of_its_time(run):
    words = ("t=linspace(100, 300, 10000)", "--no-grad", "--max-steps", "100000")
    assert run("eval", "sum(real(zeta(1/2 + 1j*t)))", *words).status == 0


def test_exponentials_of_matrices_are_charged_by_their_norm(run):
    words = ("A=eye(2)", "--no-grad", "--max-elements", "1000000")
    assert run("eval", "s = 0; for i in range(80) { s = s + sum(expm(A)) }; s", *words).status == 0
    assert run("eval", "s = 0; for i in range(80) { s = s + sum(expm(-1e15*A)) }; s", *words).status == 1


def test_powers_of_many_negative_numbers_are_those_of_a_few():
    x = np.r_[np.linspace(-3, 3, 100), 0.0, -0.0, np.inf, -np.inf]
    for n in (3, 4, -3, -4, 1, 301):
        few = [gradcli.tensor([number]).pow(n).numpy()[0] for number in x]
        many = gradcli.tensor(x).pow(n).numpy()
        np.testing.assert_allclose(many, few, rtol=1e-15)
        assert np.signbit(many).tolist() == np.signbit(few).tolist()


@pytest.mark.parametrize(
    ("text", "values", "steps"),
    [
        ("x" + "+diff(x*x,x)" * 500, {"x": 1.0}, 12_000),
        (f"einsum('{','.join('i' * 600)}->',{','.join('v' * 600)})", {"v": [1.0, 0.5]}, 60_000),
    ],
)
def test_a_pass_and_a_choice_take_the_steps_of_their_time(text, values, steps):
    with pytest.raises(LimitError):
        gradcli.compile(text, max_steps=steps).value_and_grad(values)


def test_what_is_read_from_files_is_charged(run, tmp_path):
    """The elements of each file, and of all together, must be within the limit."""
    np.save(tmp_path / "x.npy", np.ones(600))
    np.save(tmp_path / "y.npy", np.ones(600))
    words = [f"x=@{tmp_path}/x.npy", f"y=@{tmp_path}/y.npy"]
    assert run("eval", "x[0]", words[0], "--no-grad", "--max-elements", "1000").status == 0
    outcome = run("eval", "x[0] + y[0]", *words, "--no-grad", "--max-elements", "1000")
    assert (outcome.status, outcome.out) == (1, "")
    assert "more than 1,000 array elements" in outcome.err
    assert "^^^" in outcome.err


def test_formulas_whose_rules_fit_again_and_again_are_charged(run):
    assert run("diff", "x" + "*x" * 299, "--order", "3", "--max-steps", "250000").status == 0
    outcome = run("diff", "x" + "*x" * 399, "--order", "3", "--max-steps", "250000")
    assert (outcome.status, outcome.out) == (1, "")
    assert "^" in outcome.err


def test_a_limit_that_ends_between_a_gradient_and_its_formula_is_told(run):
    """The remaining steps may not suffice for the constants of a formula."""
    for steps in range(880, 1100, 10):
        outcome = run("diff", "entr(min([q, x, q]))", "q=1.812", "x=0.684", "--max-steps", str(steps))
        assert (outcome.status, outcome.out) == (1, "")
        assert f"the program takes more than {steps:,} steps" in outcome.err


def test_rules_that_fit_are_charged():
    program = record(lambda x: [reduce(lambda y, _: -y, range(100), x)], {"x": 1.0}).program
    with limits.within(max_steps=10), pytest.raises(LimitError):
        optimise(program)


def test_to_parse_a_program_takes_steps_in_python_too():
    with pytest.raises(LimitError, match="more than 1,000 steps"):
        gradcli.compile("x" + "+x" * 1000, max_steps=1000)
    gradcli.compile("x" + "+x" * 100, max_steps=1000)


class Unsearchable(tuple):
    """A collection of names that must not be searched."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        raise AssertionError(f"{name!r} is looked for among all of them")


def test_names_are_not_looked_for_among_all_others():
    program, names = parse("x*y"), Unsearchable(("x", "y"))
    bindings = {"x": np.asarray(2.0), "y": np.asarray(3.0)}
    assert session.run(session.EvaluationRequest(program, bindings, names)).grad == {"x": 3.0, "y": 2.0}
    assert graph_view.run(graph_view.GraphRequest(program, bindings, names, values=True)).vertices[0].grad == 3.0
    assert [*derivatives_as_formulas(program, {}, names).derivatives] == ["x", "y"]
    assert derivatives_as_formulas(program, bindings, Unsearchable(("x",))).derivatives


def test_a_function_of_a_number_takes_the_steps_of_its_time(run):
    words = ("x=0.7", "--no-grad", "--max-steps", "5000")
    assert run("eval", "y = 0; for i in range(800) { y = sin(x) }; y", *words).status == 0
    assert run("eval", "y = 0; for i in range(800) { y = polygamma(2, x) }; y", *words).status == 1


def test_polygamma_far_below_zero_takes_no_longer():
    near, far = gradcli.polygamma(1, -30.25), gradcli.polygamma(1, -1e12 - 0.25)
    # The poles repeat, and distant ones hardly matter.
    assert near == pytest.approx(19.706691341963047, rel=1e-15)
    assert far == pytest.approx(19.73920880217872, rel=1e-13)
    # Beside large numbers, whose mirror images are far below.
    assert gradcli.polygamma(1, np.array([-30.25, 1e300])).tolist() == [near, 1e-300]
    assert gradcli.polygamma(2, np.array([-25.5, 1.5, -3.0, np.nan])).tolist() == pytest.approx(
        [-0.0014787433374562856, -0.8287966442343199, -np.inf, np.nan], rel=1e-11, nan_ok=True
    )


@pytest.mark.parametrize("command", ["eval", "graph"])
def test_lists_without_elements_are_charged_where_they_are_written(run, command):
    words = [command, "zeros(100000000, 0)", *["--no-grad"] * (command == "eval")]
    outcome = run(*words, "--json")
    assert outcome.status == 1
    assert f"400,000,000 {ELEMENTS}" in outcome.err
    assert run(*words).status == 0


def test_the_text_of_a_program_takes_steps(run):
    outcome = run("eval", "x" + "+x" * 8000, "x=1", "--no-grad", "--max-steps", "25000")
    assert outcome.status == 1
    assert f"error: {STEPS} 25,000 steps" in outcome.err


@pytest.mark.parametrize("name", ["lines.csv", "cells.csv", "numbers.json", "lists.json", "zeros.npz"])
def test_files_that_are_read_take_steps(run, tmp_path, name):
    path = tmp_path / name
    if name == "zeros.npz":
        np.savez_compressed(path, zeros=np.zeros(1_000_000))
    else:
        text = {
            "lines.csv": "1\n" * 10_000,
            "cells.csv": "1," * 19_999 + "1",
            "numbers.json": "[" + "1," * 20_000 + "1]",
            "lists.json": "[" + "[1]," * 10_000 + "[1]]",
        }
        path.write_text(text[name])
    words = ["eval", "x.shape[0]", f"x=@{path}", "--no-grad"]
    outcome = run(*words, "--max-steps", "1000")
    assert outcome.status == 1
    assert f"error: {STEPS} 1,000 steps" in outcome.err
    assert run(*words).status == 0


def test_variables_that_are_read_take_steps(run, tmp_path):
    path = tmp_path / "variables.json"
    path.write_text('{"x": [' + "1, " * 20_000 + "1]}")
    assert f"error: {STEPS} 1,000 steps" in run("eval", "x.shape[0]", "--vars", str(path), "--max-steps", "1000").err


@pytest.mark.parametrize(
    ("size", "text"),
    [(500_000_000, "500 MB"), (2**31, "2 GiB"), (512_000_000, "512 MB"), (1001, "1,001 bytes"), (1000, "1 kB")],
)
def test_how_a_size_of_memory_is_said(size, text):
    assert subprocess_calls.size_text(size) == text


@pytest.mark.parametrize("make", [arrays.zeros_like, arrays.ones_like])
def test_what_does_not_fit_into_memory_is_not_made(make):
    with pytest.raises(LimitError, match="does not fit into memory"):
        make(np.broadcast_to(0.0, (2**50,)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["minimize", "(x-1)**2", "x=0", "--method", "sgd", "--steps", "1000000000000"], f"{STEPS} 20,000 steps"),
        (["minimize", "(x-1)**2", "x=0", "--method", "adam", "--epochs", "1000000000"], f"{STEPS} 20,000 steps"),
        (["fit", "y ~ a*exp(b*x)+c", "x=[0,1,2,3]", "y=[1,2,3,5]", "--starts", "10000000"], "500,000 array elements"),
        (["propagate", "x", "x=1+-0.1", "--samples", "150000"], "500,000 array elements"),
        (["solve", "; ".join(f"x{i}**2 = 1" for i in range(60)), *(f"x{i}~2" for i in range(60))], "20,000 steps"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_models_take_no_more_than_one_program_may(run, words, said):
    outcome = run(*words, "--max-steps", "20000", "--max-elements", "500000")
    assert outcome.status == 1
    assert said in outcome.err


def test_what_models_ask_about_matrices_counts():
    matrix = np.eye(400)
    for ask in (
        dense_matrices.symmetric_eigenvalues,
        dense_matrices.singular_values,
        lambda m: dense_matrices.solve(m, m[0]),
    ):
        with limits.within(max_elements=500_000), pytest.raises(LimitError):
            ask(matrix)


def test_what_is_looked_at_after_a_run_has_a_place(run):
    # All of it is computed, and then checked to be finite.
    for most in range(300_000, 700_001, 100_000):
        outcome = run("eval", "sum(2*y)", "y=ones(100000)", "--max-elements", str(most))
        assert outcome.status == 0 or "^" in outcome.err


def test_arrays_of_many_axes(run):
    # NumPy's iterators over arrays allow at most 32 axes.
    deep = "[" * 40 + "x" + "]" * 40
    assert run("eval", f"np.sum({deep})", "x=0..1", "--enclose").out.startswith("value  [0, 1]\n")
    assert run("eval", f"np.sum({deep})", "x=2", "--digits", "5").out.startswith("value  2")
    many = f"x=ones({', '.join('1' * 64)})"
    for program, *options in (
        ["x + 1", "--jacobian"],
        ["sum(x)", "--order", "3"],
        ["sum(x**2)", "--order=2", "--sparse"],
    ):
        assert "error: the derivatives have " in run("eval", program, many, *options).err
    empty = f"x=ones(0, {', '.join('1' * 39)})"
    error = "error: the derivatives have 80 axes, more than the 64 of the largest arrays\n"
    assert run("eval", "x + 1", empty, "--jacobian", "--digits", "5").err.startswith(error)


def test_numbers_of_arrays_that_become_fractions_are_charged(run):
    for program in ("sum(ones(10**7)*x)", "sum(searchsorted(arange(10**7), x))"):
        assert "more than 2,000,000 steps" in run("eval", program, "x=1", "--digits", "20").err
