"""Sums, limits, roots and minima in programs, with their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest

import gradcli
from gradcli.errors import EvaluationError, GradcliError
from gradcli.evaluation import session
from gradcli.language.syntax import parse


def evaluated(program: str, order: int | None = None, **bindings: float) -> session.Result:
    request = session.EvaluationRequest(parse(program), bindings, tuple(bindings), order=order)
    return session.run(request)


# Programs of one parameter with their values as functions of it, and a place.
CLOSED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "nsum(1/k**x, k, 1, inf)": (mpmath.zeta, 1.5),
    "nsum(x**k/factorial(k), k, 0, inf)": (mpmath.exp, 2.0),
    "nsum((-1)**k*x**(2*k+1)/(2*k+1), k, 0, inf)": (mpmath.atan, 0.8),
    "summation(1/(k**2+x**2), (k, -inf, inf))": (lambda x: mpmath.pi / (x * mpmath.tanh(mpmath.pi * x)), 1.2),
    "nsum(sin(x*k)/k**3, k, 1, inf)": (lambda x: mpmath.clsin(3, x), 1.0),
    "nsum(cos(x*k)/k**4, k, 1, inf)": (lambda x: mpmath.clcos(4, x), 0.1),
    "nsum((-1)**k/k**x, k, 1, inf)": (lambda x: -mpmath.altzeta(x), 0.5),
    # Terms that grow up to k = exp(100).
    "nsum((-1)**k*log(k)/k**x, k, 1, inf)": (lambda x: mpmath.diff(mpmath.altzeta, x), 0.01),
    "nsum(where(k > 20, (-x)**k, 0)/k, k, 1, inf)": (
        lambda x: -mpmath.log(1 + x) - sum((-x) ** k / k for k in range(1, 21)),
        0.97,
    ),
    "nsum(k*x**2, k, 1, 100)": (lambda x: 5050 * x**2, 2.0),
    "nsum(lambda k: x**k, [0, inf])": (lambda x: 1 / (1 - x), 0.9),
    "limit(sin(x*h)/h, h, 0)": (lambda x: x, 2.0),
    "limit((1+x/n)**n, n, inf)": (mpmath.exp, 2.0),
    "limit(sqrt(n**2+x*n)-n, n, inf)": (lambda x: x / 2, 3.0),
    "limit((x**h-1)/h, h, 0)": (mpmath.log, 3.0),
    "limit(x*atan(h), h, -inf)": (lambda x: -mpmath.pi / 2 * x, 3.0),
    "limit(abs(h)/h*x, h, 0, '-')": (lambda x: -x, 3.0),
    # Nests whose integrands have no numbers far away, or whose sums converge slowly near a limit.
    "nsum(integrate(t**k*exp(-x*t), t, 0, inf)/factorial(k), k, 0, inf)": (lambda x: 1 / (x - 1), 2.0),
    "integrate(nsum(exp(-k*x*t)/k, k, 1, inf), t, 0, inf)": (lambda x: mpmath.zeta(2) / x, 1.5),
    "integrate(integrate(nsum((s*t)**k, k, 0, inf), s, 0, x), t, 0, 1)": (lambda x: mpmath.polylog(2, x), 0.5),
    # Terms that are 0 for all numbers, each of which has a derivative of 0.
    "limit((h**x-1)/(h-1), h, 1)": (lambda x: x, 3.0),
    "limit((h**x-1)/(h**(2*x+1)-1), h, 1)": (lambda x: x / (2 * x + 1), 3.0),
    "limit((h**3-x**3)/(h-x), h, x)": (lambda x: 3 * x**2, 2.0),
    "limit((exp(x*h)-1-x*h)/h**2, h, 0)": (lambda x: x**2 / 2, 2.0),
    "limit((erf(x+h)-erf(x))/h, h, 0)": (lambda x: 2 * mpmath.exp(-(x**2)) / mpmath.sqrt(mpmath.pi), 1.2),
    # At a point that is computed.
    "limit((h**2-4*x**2)/(h-2*x), h, 2*x)": (lambda x: 4 * x, 2.0),
    "p = 2*x; limit((h**2-4*x**2)/(h-2*x), h, p)": (lambda x: 4 * x, 2.0),
    "q = x+1; p = 2*q; limit((h**2-4*q**2)/(h-p), h, p)": (lambda x: 4 * (x + 1), 1.0),
    # Floats gave -0.0, as 2*x + 3 differs from r by rounding.
    "q = x+1; p = 2*q; r = p+1; limit((h**2-r**2)/(h-2*x-3), h, r)": (lambda x: 2 * (2 * x + 3), 1.3),
    "limit((exp(h)-exp(x*x))/(h-x*x), h, x*x)": (lambda x: mpmath.exp(x * x), 1.5),
    "limit((h-x-1)/abs(h-x-1)*x**2, h, x+1, '-')": (lambda x: -(x**2), 1.5),
    # The series of both terms agree up to the first order that is left.
    "limit((cos(x*h)-exp(-x**2*h**2/2))/h**4, h, 0)": (lambda x: -(x**4) / 12, 1.5),
    # Exponentials that grow or vanish beside each other.
    "x*limit((x**n+3**n)**(1/n), n, inf)": (lambda x: 3 * x, 2.0),
    "limit((2**n+x**n)**(1/n), n, inf)": (lambda x: x, 3.0),
    "x*limit((2**n+x**n)**(1/n), n, -inf)": (lambda x: 2 * x, 3.0),
    "limit(log(1+exp(k*x))/k, k, inf)": (lambda x: x, 2.0),
    "limit(softplus(x*k)/k, k, inf)": (lambda x: x, 2.0),
    "x*limit((exp(x*k)+k**2)/(2*exp(x*k)+k), k, inf)": (lambda x: x / 2, 2.0),
    "limit((2**n+x*3**n)/(3**n-n**2), n, inf)": (lambda x: x, 2.0),
    "limit(x/(1+exp(1/h)), h, 0, '-')": (lambda x: x, 2.0),
    "limit(log(cosh(x*k)) - x*k + x**2, k, inf)": (lambda x: x**2 - mpmath.log(2), 2.0),
    "limit(exp(k+x*exp(-k))-exp(k), k, inf)": (lambda x: x, 2.0),
    "limit(log1p(exp(-x*k))*exp(x*k)*x, k, inf)": (lambda x: x, 2.0),
    "limit(exp(k-k**2)/exp(k-k**2+x), k, inf)": (lambda x: mpmath.exp(-x), 2.0),
    "limit(x*maximum(h, 100)/h, h, inf)": (lambda x: x, 2.0),
    # Integrals up to the variable, or from it.
    "limit(integrate(exp(-x*t), t, 0, b), b, inf)": (lambda x: 1 / x, 2.0),
    "limit(integrate(exp(-t)*sin(x*t), t, 0, b), b, inf)": (lambda x: x / (1 + x**2), 2.0),
    "limit(integrate(exp(-x*t**2), t, -b, 2*b), b, inf)": (lambda x: mpmath.sqrt(mpmath.pi / x), 2.0),
    "limit(exp(x*b**2)*b*integrate(exp(-x*t**2), t, b, inf), b, inf)": (lambda x: 1 / (2 * x), 2.0),
    "limit(b*exp(-x*b**2)*integrate(exp(x*t**2), t, 0, b), b, inf)": (lambda x: 1 / (2 * x), 2.0),
    "limit(b**x*integrate(t**(-x-1), t, b, inf), b, inf)": (lambda x: 1 / x, 1.5),
    "limit(integrate(t**x, t, 1, b)/b**(x+1), b, inf)": (lambda x: 1 / (x + 1), 1.5),
    "limit(log(integrate(exp(x*t), t, 0, b))/b, b, inf)": (lambda x: x, 2.0),
    "limit(b*(pi/2 - x*integrate(1/(x**2+t**2), t, 0, b)), b, inf)": (lambda x: x, 2.0),
    "root(lambda y: y*exp(y) - x, 1)": (mpmath.lambertw, 2.0),
    "newton(lambda y: y**3 - x, 1)": (mpmath.cbrt, 2.0),
    "brentq(lambda y: exp(y) - x, 0, 2)": (mpmath.log, 2.0),
    "fsolve(lambda v: [v[0] + v[1] - 3, v[0]*v[1] - x], [0.5, 3])[0]": (
        lambda x: (3 - mpmath.sqrt(9 - 4 * x)) / 2,
        2.0,
    ),
    "argmin(lambda y: exp(y) - x*y, 1)": (mpmath.log, 2.0),
    "sum(argmax(lambda v: -(v[0]-x)**2 - (v[1]-x*v[0])**2, [0, 0]))": (lambda x: x + x**2, 1.2),
    "integrate(root(lambda y: y**2 - x*t, 1), t, 0.5, 1)": (
        lambda x: mpmath.sqrt(x) * (1 - mpmath.mpf(0.5) ** 1.5) / 1.5,
        2.0,
    ),
}


@pytest.mark.parametrize("program", CLOSED)
def test_values_and_derivatives(program: str) -> None:
    function, x = CLOSED[program]
    result = evaluated(program, 2, x=x)
    assert result.grad is not None
    assert result.derivatives is not None
    with mpmath.workdps(30):
        derivatives = [float(mpmath.re(mpmath.diff(function, x, n))) for n in range(3)]
    found = [result.value, result.grad["x"], result.derivatives["x,x"]]
    assert [*map(float, found)] == pytest.approx(derivatives, rel=1e-9, abs=1e-9)


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("nsum(1/k, k, 1, inf)", "the sum diverges"),
        ("nsum((-1)**k*log(k), k, 1, inf)", "the sum diverges"),
        ("nsum((-1)**k, k, 0, inf)", "the sum diverges"),
        ("nsum((-1)**k*(1 + 1/k**2), k, 1, inf)", "the sum diverges"),
        ("nsum((-1)**k*(k - 1)/k, k, 1, inf)", "the sum diverges"),
        ("nsum(sin(k), k, 1, inf)", "the sum diverges"),
        ("nsum(k, k, 0.5, 3)", "0.5 is none"),
        ("limit(1/x, x, 0)", "-inf from the left, inf from the right"),
        ("limit(floor(x), x, 2)", "1 from the left, 2 from the right"),
        ("limit(sin(1/x), x, 0)", "no limit was found at 0"),
        ("limit(floor(x)/x, x, inf)", "no limit was found at inf, near which the function switches again and again"),
        ("limit(x*floor(1/x), x, 0)", "no limit was found at 0, near which the function switches again and again"),
        ("limit(where(sin(x) > 0, 1, 2), x, inf)", "switches again and again"),
        ("limit(1/(1+exp(1/x)), x, 0)", "1 from the left, 0 from the right"),
        ("limit(exp(exp(x))/exp(x), x, inf)", "no limit was found at inf"),
        ("limit(integrate(1/t, t, x, inf), x, inf)", "no limit was found at inf"),
        ("limit(integrate(sin(t), t, 0, x), x, inf)", "no limit was found at inf"),
        ("root(lambda x: x**2 + 1, 1)", "no root was found: at .* the residual is 1"),
        ("root(lambda x: x**2, 1)", "the Jacobian is singular"),
        ("root(lambda x: 1/x, 1)", "at a pole"),
        ("brentq(lambda x: x**2 + 1, 0, 1)", "do not differ in sign"),
        ("fsolve(lambda v: [v[0]], [1, 2])", "as many equations as unknowns"),
        ("argmin(lambda x: x, 0)", "no minimum was found"),
        ("integrate(x**2, 0, 1)", "needs a function or a variable"),
        ("integrate(x**2, x)", "'integrate' needs 'b'"),
        ("quad(2, 0, 1)", "'quad' needs a function$"),
        ("root(2, 0)", "'root' needs a function$"),
    ],
)
def test_errors(program: str, message: str) -> None:
    with pytest.raises(GradcliError, match=message):
        evaluated(program, **({"x": 1.0} if program.startswith("integrate") else {}))


def test_a_function_with_limits_and_points_binds_no_variable() -> None:
    assert float(evaluated("integrate(lambda t: t*a, a, b, [0.5])", a=1.0, b=2.0).value) == pytest.approx(1.5)


@pytest.mark.parametrize(
    "program",
    [
        "p = 2*x; limit((t**3-8)/(t-2), t, p)",
        pytest.param("limit((t**3-8)/(t-2), t, 2*x)", marks=pytest.mark.slow),
    ],
)
def test_a_limit_at_a_removable_point_has_derivatives_by_the_point(program: str) -> None:
    """Of t**2 + 2*t + 4 at 2*x."""
    result = evaluated(program, 3, x=1.0)
    assert result.derivatives is not None
    found = [result.value, result.derivatives["x,x"], result.derivatives["x,x,x"]]
    assert found == pytest.approx([12.0, 8.0, 0.0], rel=1e-12, abs=1e-12)
    assert result.grad == pytest.approx({"x": 12.0}, rel=1e-12)


def test_a_limit_at_a_pole_is_infinite() -> None:
    assert math.isinf(float(evaluated("limit(1/x**2, x, 0)").value))


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("limit(integrate(1/t, t, 1, x), x, inf)", math.inf),
        ("limit(-integrate(1/(1 + t), t, 0, x**2), x, inf)", -math.inf),
        ("limit(integrate(1/sqrt(t), t, 1, x), x, inf)", math.inf),
        ("limit(integrate(1/(1 + t), t, 0, x)/x, x, inf)", 0.0),
    ],
)
def test_an_integral_that_diverges_as_its_limit_grows_has_a_limit(program: str, value: float) -> None:
    assert float(evaluated(program).value) == value


def test_the_constant_of_an_integral_that_diverges_is_not_known() -> None:
    with pytest.raises(EvaluationError, match="no limit was found"):
        evaluated("limit(integrate(1/(1 + t), t, 1, x) - log(x), x, inf)")


@pytest.mark.parametrize(
    "program",
    [
        "limit(x*(pi/2*(1 + 1e-12) - integrate(1/(1 + t**2), t, 0, x)), x, inf)",
        "limit(x*(pi/2*(1 + 1e-14) - atan(x)), x, inf)",
    ],
)
def test_a_limit_that_takes_a_difference_for_zero_says_so(program: str) -> None:
    result = evaluated(program)
    assert float(result.value) == 1.0
    assert "takes a difference of 1.6e-1" in result.warnings[0].message
    assert result.warnings[0].message.endswith("if it is not, the value is inf")
    with pytest.raises(EvaluationError, match="takes a difference"):
        gradcli.compile(program)()


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("root(lambda t: log(t) + 100, 1)", math.exp(-100)),
        ("root(lambda t: log(t) + 600, 1)", math.exp(-600)),
        ("root(lambda t: 1e30*t - 1, 1)", 1e-30),
        ("root(lambda t: x*(log(t) + 100), 1)", math.exp(-100)),
        ("argmin(lambda t: (log(t) + 100)**2, 1)", math.exp(-100)),
    ],
)
def test_a_root_that_is_small_beside_its_start_has_all_digits(program: str, value: float) -> None:
    """They were 8e-21, 7e-22, 1.01e-30 and 8e-21: steps below 4e-19 ended the search."""
    result = evaluated(program, **({"x": 2.0} if "x*" in program else {}))
    assert float(result.value) == pytest.approx(value, rel=1e-12)


def test_a_sign_that_changes_at_the_least_float_is_no_root() -> None:
    with pytest.raises(EvaluationError, match="no root was found"):
        evaluated("root(lambda t: log(t) + 1e3, 1)")


@pytest.mark.parametrize(
    ("terms", "value"),
    [
        ("1/2**k*where(k == 200, 2**200, 1)", 2.0),
        ("where(k == 20000, 1, 0)", 1.0),
        ("where(k < 0, 1, 0)", 0.0),
        ("exp(-k)*abs(k - 3)", math.fsum(math.exp(-k) * abs(k - 3) for k in range(1, 60))),
    ],
)
def test_single_terms_of_another_branch_are_summed(terms: str, value: float) -> None:
    """The first two were 1 and 0: no term that was examined was of the other branch."""
    result = evaluated(f"nsum({terms}, k, 1, inf)")
    assert float(result.value) == pytest.approx(value, rel=1e-12)
    assert not result.warnings


def test_a_peak_as_narrow_as_a_few_numbers_is_summed() -> None:
    """It was pi, its integral."""
    expected = math.pi / math.tanh(math.pi) - 1.0000049999999e-05
    result = evaluated("nsum(1/(1 + (k - 1e5)**2), k, 1, inf)")
    assert float(result.value) == pytest.approx(expected, rel=1e-12)


def test_terms_of_which_a_factor_underflows_have_not_vanished() -> None:
    """It was 0, and is 1."""
    with pytest.raises(EvaluationError, match="is no number"):
        evaluated("nsum(1e5**k/factorial(k)*exp(-1e5), k, 0, inf)")


def test_a_series_with_branches_far_away_is_not_said_to_have_ended() -> None:
    """They were 1e-6, by one of the terms, and 0."""
    result = evaluated("nsum(where(k % 1000 == 0, 1/k, 0)**2, k, 1, inf)")
    assert "accurate to about" in result.warnings[0].message
    with pytest.raises(EvaluationError, match="the terms switch beyond number"):
        evaluated("nsum(where(k == 1e9, 1, 0), k, 1, inf)")


@pytest.mark.parametrize(
    "program", ["limit((t**2 - 2)/(t - sqrt(2)), t, sqrt(2))", "limit((sin(t) - 0.5)/(t - pi/6), t, pi/6)"]
)
def test_the_rounding_of_a_few_operations_is_no_difference(program: str) -> None:
    assert not evaluated(program).warnings


@pytest.mark.parametrize(
    ("program", "value"), [("limit(exp(x)/x**10, x, inf)", math.inf), ("limit(x-exp(x), x, inf)", -math.inf)]
)
def test_a_limit_at_which_an_exponential_grows_is_infinite(program: str, value: float) -> None:
    assert float(evaluated(program).value) == value


def test_exponentials_that_grow_alike_have_no_derivative() -> None:
    """The larger one leads, and which one that is changes there."""
    with pytest.raises(EvaluationError, match="no derivative of the limit was found"):
        evaluated("limit((a**n+b**n)**(1/n), n, inf)", a=2.0, b=2.0)


def test_a_slow_series_is_a_warning() -> None:
    result = evaluated("nsum(1/(k*log(k)**2), k, 2, inf)")
    assert [w.code for w in result.warnings] == ["inaccurate"]


@pytest.mark.slow
def test_an_integral_of_a_slow_series_that_oscillates() -> None:
    """It was beyond the limits."""
    result = evaluated("integrate(nsum(cos(k*x*a)/k**2, k, 1, inf), x, 0, 1)", a=1.0)
    with mpmath.workdps(30):
        assert result.value == pytest.approx(float(mpmath.clsin(3, 1)), rel=1e-12)
        assert result.grad["a"] == pytest.approx(float(mpmath.diff(lambda a: mpmath.clsin(3, a) / a, 1)), rel=1e-10)


@pytest.mark.parametrize(
    ("series", "value"),
    [
        ("where(k % 2 == 0, 1, 2)/k**2, k, 1, inf", 1.75 * mpmath.zeta(2)),
        ("cos(2*pi*k)/k**2, k, 1, inf", mpmath.zeta(2)),
        ("where(k > 1e6 + 0.1, 1/k**2, 0), k, 1, inf", mpmath.zeta(2, 1_000_001)),
        ("exp(-(k - 1e5)**2), k, 0, inf", mpmath.jtheta(3, 0, mpmath.exp(-1))),
        ("exp(-k**2), k, -10000, inf", mpmath.jtheta(3, 0, mpmath.exp(-1))),
        ("1/k**2 + exp(-((k - 1e5)/100)**2), k, 1, inf", mpmath.zeta(2) + 100 * mpmath.sqrt(mpmath.pi)),
    ],
)
def test_series_that_their_terms_between_whole_numbers_do_not_tell(series: str, value: Any) -> None:
    """The formula of Euler and Maclaurin does not hold for these terms, and gave other values without a warning."""
    result = evaluated(f"nsum({series})")
    assert float(result.value) == pytest.approx(float(value), rel=1e-11)
    assert not result.warnings


def test_terms_that_switch_far_away_are_an_error() -> None:
    with pytest.raises(EvaluationError, match="the terms switch beyond number 4,194,305"):
        evaluated("nsum(where(k > 1e8 + 0.1, 1/k**2, 0), k, 1, inf)")


def test_a_function_of_the_program_may_read_others() -> None:
    program = "f(t) = a*t**2; g(u) = integrate(f, 0, u); root(lambda u: g(u) - 9, 1)"
    assert float(evaluated(program, a=1.0).value) == pytest.approx(3.0)


def test_loops_and_branches_inside() -> None:
    program = "def f(t) { s = 0; for i in range(5) { s = s + t**i }; if t > 1 { return s } else { return 0 } }\nintegrate(f, 0, 2)*x"
    assert float(evaluated(program, x=1.0).value) == pytest.approx(sum((2 ** (i + 1) - 1) / (i + 1) for i in range(5)))


def test_a_while_inside_cannot_be_recorded() -> None:
    program = "def f(t) { while t > 1 { t = t/2 }; return t }\nintegrate(f, 0, 2)"
    with pytest.raises(EvaluationError, match="the function cannot be recorded"):
        evaluated(program)


@pytest.mark.parametrize(
    ("program", "closed"),
    [
        ("root(lambda x: x*exp(x) - a, 1)", "lambertw(a)"),
        ("newton(lambda x: erf(x) - a/10, 0.1)", "erfinv(a/10)"),
        ("fsolve(lambda v: [v[0]**2 + v[1] - a, v[1] - 0.5], [1, 1])[0]", "sqrt(a - 0.5)"),
        ("argmin(lambda x: exp(x) - a*x, 1)", "log(a)"),
        ("brentq(lambda x: cos(x) - a/4, 0, 3)", "acos(a/4)"),
    ],
)
def test_digits_of_roots_are_proved(program: str, closed: str, run: Callable[..., Any]) -> None:
    words = ("a=2.1", "--digits", "30", "--order", "2", "--json")
    found, expected = (run("eval", text, *words).json for text in (program, closed))
    for part in ("value", "grad", "derivatives"):
        assert found[part] == expected[part]


def test_a_rational_root_is_exact(run: Callable[..., Any]) -> None:
    assert run("eval", "root(lambda x: sin(x) + a*x, 0.5)", "a=1", "--digits", "20").out == (
        "value  0\n\nby  gradient\na   0\n"
    )


def test_a_root_over_an_interval_is_enclosed(run: Callable[..., Any]) -> None:
    done = run("eval", "root(lambda x: x*exp(x) - a, 1)", "a=2..2.1", "--enclose")
    assert done.out.startswith("value  [0.852605502, 0.8752187587]")
    assert "increasing" in done.out


def test_a_double_root_has_no_digits(run: Callable[..., Any]) -> None:
    done = run("eval", "root(lambda x: (x - a)**2, 1.5)", "a=1", "--digits", "20", "--max-precision", "50")
    assert done.status == 1
    assert "the Jacobian is singular at the solution" in done.err


def test_digits_of_a_finite_sum_are_proved(run: Callable[..., Any]) -> None:
    words = ("s=2.5", "--digits", "30", "--order", "2")
    expected = run("eval", "sum(1/(arange(20) + 1)**s)", *words)
    assert run("eval", "nsum(1/k**s, k, 1, 20)", *words).out == expected.out
    assert run("eval", "nsum(0.1*k, k, 1, 10)", "--digits", "30").out.startswith("value  5.5\n")


@pytest.mark.parametrize(
    ("series", "closed"),
    [
        ("nsum(k*x**k, k, 1, inf)", "x/(1 - x)**2"),
        ("nsum((-x)**k, k, 0, inf)", "1/(1 + x)"),
        ("nsum(x**k/factorial(k), k, 0, inf)", "exp(x)"),
        ("nsum(exp(k*x), k, -inf, -1)", "1/(exp(x) - 1)"),
        ("nsum(exp(-x*abs(k)), k, -inf, inf)", "coth(x/2)"),
    ],
)
def test_digits_of_an_infinite_sum_are_proved(series: str, closed: str, run: Callable[..., Any]) -> None:
    found, expected = (
        run("eval", p, "x=2/5", "--order", "2", "--digits", "25", "--json").json for p in (series, closed)
    )
    for key in ("value", "grad", "derivatives"):
        assert found[key] == expected[key]


@pytest.mark.parametrize(
    ("last", "message"),
    [("inf", "whose terms are not known to decrease fast"), ("2.5", "and 2.5 is none"), ("2**60", "steps")],
)
def test_sums_without_digits(last: str, message: str, run: Callable[..., Any]) -> None:
    done = run("eval", f"nsum(x/k**2, k, 1, {last})", "x=1", "--digits", "10")
    assert done.status
    assert message in done.err


@pytest.mark.parametrize(
    "program",
    [
        "root(lambda x: x**2 + 1j, 1)",
        "argmin(lambda x: x**2 + 1j, 1)",
        "odeint(lambda y, t: 1j*y, 1, [0, 1])[1]",
    ],
)
def test_complex_functions_are_refused(program: str, run: Callable[..., Any]) -> None:
    done = run("eval", program, "--no-grad")
    assert done.status
    assert "complex" in done.err
    assert "internal" not in done.err


@pytest.mark.parametrize(
    ("program", "value", "reason"),
    [
        ("integrate((a-1)/(1+x) + 1/(1+x**2), x, 0, inf)", math.pi / 2, "the integral diverges at inf"),
        ("nsum(sin(a*k)/k, k, 1, inf)", (math.pi - 1) / 2, "the sum diverges"),
    ],
)
def test_a_derivative_that_diverges_inside(program: str, value: float, reason: str, run: Callable[..., Any]) -> None:
    """The error said so of the value."""
    assert run("eval", program, "a=1", "--no-grad", "--json").json["value"] == pytest.approx(value, rel=1e-12)
    assert f"no derivative was found: with the derivative inside, {reason}" in run("eval", program, "a=1").err


def test_a_series_whose_later_terms_overflow(run: Callable[..., Any]) -> None:
    program = "nsum(integrate(t**k*exp(-a*t), t, 0, inf)/factorial(k), k, 0, inf)"
    done = run("eval", program, "a=1.05", "--no-grad", "--json")
    assert done.json["value"] == pytest.approx(20, rel=1e-9)
    message = "the term 72 is no number: the integral diverges at 0"
    assert message in run("eval", "nsum(integrate(t**(70.5 - k), t, 0, 1), k, 0, inf)", "--no-grad").err


def test_real_parts_of_complex_functions(run: Callable[..., Any]) -> None:
    found = run("eval", "nsum(real(1j**k)/k**2, k, 1, 4)", "--no-grad", "--json").json["value"]
    assert found == pytest.approx(-1 / 4 + 1 / 16, rel=1e-14)


@pytest.mark.parametrize(
    ("program", "value"), [("(p*x + x**2)/x**2", 1.0), ("p*log(x) + 3", 3.0), ("p/x", 0.0), ("sin(p*x)/x", 0.0)]
)
def test_a_limit_that_is_infinite_for_other_numbers(program: str, value: float, run: Callable[..., Any]) -> None:
    """A term that goes to infinity but for its coefficient, which is 0, was the limit: inf in place of 1."""
    words = (f"limit({program}, x, 0, '+')", "p=0")
    assert run("eval", *words, "--no-grad", "--json").json["value"] == value
    done = run("eval", *words)
    assert done.out.startswith("value  0.0") if program.startswith("sin") else "no derivative of the limit" in done.err


def test_a_limit_whose_derivatives_are_not_found(run: Callable[..., Any]) -> None:
    words = ("f(p) = limit((h**2-4*x**2)/(h-2*x), h, p); f(2*x)", "x=2")
    assert run("eval", *words, "--no-grad", "--json").json["value"] == 8.0
    assert "no derivative of the limit was found" in run("eval", *words).err


def test_digits_of_a_sum_need_limits_that_are_whole_numbers(run):
    done = run("eval", "nsum(2.0**-k, k, exp(1e-25), inf)", "--digits", "20")
    assert done.status == 1
    assert "which its limits are not known to be" in done.err


def test_digits_of_a_root_are_of_one_between_the_places(run):
    """In floats, the first place is a root."""
    done = run("eval", "brentq(lambda x: (1e16 + x - 0.6) - 1e16, 0, 0.5)", "--digits", "20")
    assert done.status == 1
    assert "no root is proved between 0 and 0.5" in done.err
    assert run("eval", "brentq(lambda x: x - 0.3, 0, 0.3)", "--digits", "20").out == "value  0.3\n"


@pytest.mark.parametrize(("name", "sign"), [("argmin", ""), ("argmax", "-")])
def test_digits_of_an_extreme_need_a_definite_hessian(name, sign, run):
    """Floats lose the 3 in the angle, and find a minimum where a maximum is near."""
    done = run(
        "eval", f"{name}(lambda x: {sign}(x**2/2 + 2e-30*cos(1e15*x + (x + 16384 + 1e20) + 3)), 0.1)", "--digits", "20"
    )
    assert done.status == 1
    assert "the Hessian is not definite there" in done.err


def test_digits_of_an_extreme_of_several_unknowns(run):
    done = run("eval", "argmin(lambda v: v[0]**2 + v[0]*v[1] + v[1]**2 - 3*v[0], [1, 1])", "--digits", "20")
    assert done.out == "value  [2, -1]\n"


def test_digits_of_a_minimum_of_a_choice(run):
    done = run("eval", "argmin(lambda x: max(x**2, 0.5) + (x - a)**2, 3)", "a=3", "--digits", "20", "--json").json
    assert (done["value"], done["grad"]["a"]) == ("1.5", "0.5")


@pytest.mark.parametrize(
    ("limit", "closed"),
    [
        ("limit((exp(x) - 1 - x - x**2/2)/x**3, x, 0)", "1/6"),
        ("limit((log(1+x) - x + x**2/2)/x**3, x, 0)", "1/3"),
        ("limit(((8+x)**(1/3) - 2)/x, x, 0)", "1/12"),
        ("limit(log2(exp(x)+1)/x, x, inf)", "1/log(2)"),
        ("limit(log10(exp(x)+x)/x, x, inf)", "1/log(10)"),
        ("limit(log(exp2(x)+x)/x, x, inf)", "log(2)"),
        ("limit(log(exp(pi*x)+1)*0.1/x, x, inf)", "0.1*pi"),
    ],
)
def test_digits_of_limits_are_proved(limit: str, closed: str, run: Callable[..., Any]) -> None:
    done = run("eval", limit, "--digits", "30")
    assert not done.status
    assert done.out == run("eval", closed, "--digits", "30").out


def test_an_exponential_with_a_coefficient_of_zero(run: Callable[..., Any]) -> None:
    assert run("eval", "limit(a*exp(x) + 3, x, inf)", "a=0", "--no-grad").out == "value  3.0\n"
    assert "a coefficient that is 0 for these numbers" in run("eval", "limit(a*exp(x) + 3, x, inf)", "a=0").err


def test_digits_of_an_infinite_limit_need_its_sign(run: Callable[..., Any]) -> None:
    done = run("eval", "limit(((8+exp(-x))**(1/3) - 2)*exp(x), x, inf)", "--digits", "20", "--max-precision", "50")
    assert done.status
    assert "cannot be told apart" in done.err


def test_small_sums_with_few_digits_are_reported(run):
    """Their errors were below the absolute tolerance, and were not reported: 4 digits of this sum are right."""
    done = run("eval", "nsum(1e-10*(-x)**k/factorial(k), k, 0, inf)", "x=15")
    assert "the value of 'nsum' is accurate to about" in done.err
    assert "a derivative of 'nsum' is accurate to about" in done.err
    assert not run("eval", "nsum(1e-10*(-x)**k/factorial(k), k, 0, inf)", "x=1").err
