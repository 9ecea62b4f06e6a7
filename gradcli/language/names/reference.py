"""Describes everything that a program can call or name: functions of the table and the evaluator, and constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gradcli.errors import UnknownNameError, did_you_mean
from gradcli.language.names.evaluator_functions import DERIVATIVES, DETACH, FUNCTIONALS
from gradcli.language.suggestions.unknown_names import suggested_function
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.operation import Operation


class Entry(NamedTuple):
    """A function or constant with its subject.

    `usage` is how a program calls it, `operator` the same call written with an operator, if there is one.
    """

    subject: str
    operation: Operation
    usage: str
    operator: str | None


# The arithmetic operators in the order of a listing, which has unary minus and the comparisons after them. Those from
# the third on are written without blanks around them.
_COMPUTING = ("+", "-", "*", "/", "//", "%", "@", "**")


def _operators() -> dict[str, str]:
    found = {
        name: (symbol, [p.name for p in table.known(name).parameters]) for name, symbol in table.operators().items()
    }

    def place(name: str) -> int:
        symbol, operands = found[name]
        if len(operands) == 1:
            return len(_COMPUTING)
        return _COMPUTING.index(symbol) if symbol in _COMPUTING else len(_COMPUTING) + 1

    return {name: _with_operator(*found[name]) for name in sorted(found, key=place)}


def _with_operator(symbol: str, operands: Sequence[str]) -> str:
    if len(operands) == 1:
        return f"{symbol}{operands[0]}"
    return (symbol if symbol in _COMPUTING[2:] else f" {symbol} ").join(operands)


# For each function that has an operator, the call written with it.
OPERATORS = _operators()

_BY_A_NAME = "x is a name that the program was given or assigned"

_DERIVATIVES = (
    Operation(
        "diff", DERIVATIVES["diff"], "the nth derivative of the number y by x",
        derivative="that of the derivative, of any order",
        domain=_BY_A_NAME,
        edges=("0 where y does not depend on x", "n = 0 is y"),
        example="'y = x**3; diff(y, x)' x=2",
    ),
    Operation(
        "jacobian", DERIVATIVES["jacobian"], "the derivative of each element of y by each of x",
        derivative="that of the derivative, of any order",
        domain=_BY_A_NAME,
        edges=("0 where y does not depend on x",),
        example="'y = [p[0]*cos(p[1]), p[0]*sin(p[1])]; det(jacobian(y, p))' p='[2, 0.5]'",
    ),
    Operation(
        "hessian", DERIVATIVES["hessian"], "the second derivatives of the number y by each pair of elements of x",
        derivative="that of the derivative, of any order",
        domain=_BY_A_NAME,
        edges=("0 where y does not depend on x",),
        example="'trace(hessian(sum(x**4), x))' x='[1, 2]'",
    ),
    Operation(
        "jvp", DERIVATIVES["jvp"], "how y changes as x moves along v: the Jacobian times v, in the shape of y",
        derivative="that of the derivative, of any order",
        domain=_BY_A_NAME,
        edges=("0 where y does not depend on x",),
        example="'sum(jvp(x**3, x, v))' x='[1, 2]' v='[1, 0.5]'",
    ),
    Operation(
        "vjp", DERIVATIVES["vjp"], "the gradient of sum(v*y) by x: v times the Jacobian, in the shape of x",
        derivative="that of the derivative, of any order",
        domain=_BY_A_NAME,
        edges=("0 where y does not depend on x",),
        example="'sum(vjp(x**3, x, v))' x='[1, 2]' v='[1, 0.5]'",
    ),
    Operation(
        DETACH[0], "x", "x as a constant, cut off from what it was computed from",
        derivative="no gradient reaches x",
        aliases=DETACH[1:],
        example="'detach(x)*y' x=3 y=2",
    ),
)  # fmt: skip

_FUNCTION = "f is a function; integrate(expr, t, a, b) stands for integrate(lambda t: expr, a, b)"

_FUNCTIONALS = (
    Operation(
        "integrate", FUNCTIONALS["integrate"], "the integral of f from a to b, also of an expression in t",
        derivative="g*f(b) by b, -g*f(a) by a, and the integral of the derivatives of f",
        domain=_FUNCTION,
        edges=("limits may be infinite", "an integral that diverges is an error", "a doubtful one is a warning"),
        aliases=("integral",),
        example="'integrate(exp(-k*t), t, 0, inf)' k=2",
    ),
    Operation(
        "quad", FUNCTIONALS["quad"], "the integral of f from a to b and its estimated error, as in SciPy",
        derivative="that of integrate",
        domain="f is a function",
        example="'quad(lambda t: exp(-k*t), 0, 1)[0]' k=2",
    ),
    Operation(
        "dblquad", FUNCTIONALS["dblquad"], "the integral of func(y, x), x from a to b, y from gfun(x) to hfun(x)",
        derivative="that of integrate",
        domain="func is a function; a limit is a number or a function of x",
        example="'dblquad(lambda y, x: k*x*y, 0, 2, 0, lambda x: x)[0]' k=3",
    ),
    Operation(
        "tplquad", FUNCTIONALS["tplquad"], "the integral of func(z, y, x), z from qfun(x, y) to rfun(x, y)",
        derivative="that of integrate",
        domain="func is a function; a limit is a number or a function of the outer variables",
        example="'tplquad(lambda z, y, x: k*x*y*z, 0, 1, 0, 1, 0, 1)[0]' k=3",
    ),
    Operation(
        "nsum", FUNCTIONALS["nsum"], "the sum of f(k) for whole numbers k from first to last",
        derivative="the sum of the derivatives of the terms",
        domain="f is a function; nsum(expr, k, 1, inf) stands for nsum(lambda k: expr, 1, inf)",
        edges=("last may be infinite", "a series that diverges is an error"),
        aliases=("summation",),
        example="'nsum(1/k**s, k, 1, inf)' s=2",
    ),
    Operation(
        "limit", FUNCTIONALS["limit"], "the limit of f at x, from one side with '+' or '-'",
        derivative="the limit of the derivative by what f reads",
        domain="f is a function; limit(expr, x, 0) stands for limit(lambda x: expr, 0)",
        edges=("x may be infinite", "limits that differ from both sides are an error"),
        example="'limit(sin(a*x)/x, x, 0)' a=2",
    ),
    Operation(
        "root", FUNCTIONALS["root"], "where f is 0, near start; f has as many values as start has elements",
        derivative="-f_x/f_y, by the implicit function theorem",
        domain="f is a function",
        edges=("no root is an error, and a singular Jacobian",),
        aliases=("fsolve", "newton"),
        example="'root(lambda x: x*exp(x) - a, 1)' a=2",
    ),
    Operation(
        "brentq", FUNCTIONALS["brentq"], "where f is 0 between a and b, at which its signs differ",
        derivative="-f_x/f_y, by the implicit function theorem",
        domain="f is a function",
        example="'brentq(lambda x: exp(-x) - a*x, 0, 2)' a=2",
    ),
    Operation(
        "odeint", FUNCTIONALS["odeint"], "the solution of y' = f(y, t) at the times t, y0 at the first of them",
        derivative="the solution of the variational equations",
        domain="f is a function",
        example="'odeint(lambda y, t: -k*y, 1, [0, 2])[1]' k=1.5",
    ),
    Operation(
        "solve_ivp", FUNCTIONALS["solve_ivp"], "the solution of y' = fun(t, y), as in SciPy: .y at the times .t",
        derivative="the solution of the variational equations",
        domain="fun is a function",
        example="'solve_ivp(lambda t, y: [-k*y[0]], (0, 2), [1], t_eval=[1, 2]).y[0, 1]' k=1.5",
    ),
)  # fmt: skip

# For each constant, its description and an example program.
_CONSTANTS = {
    "pi": ("the circumference of a circle over its diameter", "pi"),
    "π": ("pi", "π"),
    "e": ("the base of the natural logarithm", "e"),
    "inf": ("infinity", "1/inf"),
    "nan": ("not a number, which nothing equals", "'nan != nan'"),
}


@cache
def entries() -> tuple[Entry, ...]:
    """All functions and constants, grouped by subject."""
    functions = table.subjects() | {"derivatives": _DERIVATIVES, "integrals and roots": _FUNCTIONALS}
    found = [_function(subject, o) for subject, operations in functions.items() for o in operations]
    return (*found, *(_constant(name) for name in _CONSTANTS))


def _function(subject: str, operation: Operation) -> Entry:
    usage = f"{operation.name}({operation.signature})"
    return Entry(subject, operation, usage, OPERATORS.get(operation.name))


def _constant(name: str) -> Entry:
    doc, example = _CONSTANTS[name]
    described = Operation(name, "", doc, derivative="none", domain="where the name is not bound", example=example)
    return Entry("constants", described, name, None)


def find(name: str) -> Entry:
    """The entry with this name, alias or operator. Raises UnknownNameError with a suggestion."""
    by_name = _by_name()
    if name not in by_name:
        meant = suggested_function(name)
        close = (
            f"did you mean '{meant}'?"
            if meant in by_name
            else did_you_mean(name, by_name, "gradcli ops lists them all")
        )
        hint = table.why_missing(name) or close
        raise UnknownNameError(f"there is no function or constant '{name}'", hint=hint)
    return by_name[name]


@cache
def _by_name() -> dict[str, Entry]:
    named = {n: entry for entry in entries() for n in (entry.operation.name, *entry.operation.aliases)}
    # Where two functions share a symbol, the first entry wins: `-` is subtract, not negative.
    operators = {symbol(e.operator): e for e in reversed(entries()) if e.operator is not None}
    return operators | named


def symbol(operator: str) -> str:
    """The symbol in the use of an operator, as `**` in `x ** q`."""
    return "".join(c for c in operator if not c.isalpha() and not c.isspace())
