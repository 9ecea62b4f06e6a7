"""Tests `gradcli diff` of programs that index, assign, loop and branch: the printed code has the gradients of
`eval`."""

from __future__ import annotations

import ctypes
import math
import re
import types
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.language.names import scope
from gradcli.language.syntax import parse
from tests.printed_code import NEEDS_GCC, STRICT, database, in_c

X = [0.7, -1.3, 2.1]
P = [0.4, 1.7]
A = [[0.5, 1.5], [-0.7, 2.0]]
ROSENBROCK = """
def rosenbrock(x):
    total = 0
    for i in range(len(x) - 1):
        total += 100*(x[i+1] - x[i]**2)**2 + (1 - x[i])**2
    return total
"""
# Programs, the values at which they are compared, and whether `diff` gets these, because it needs the sizes.
PROGRAMS: list[tuple[str, dict[str, Any], bool]] = [
    ("x[0]**2*x[1]", {"x": X}, False),
    ("x[0]**2*x[1]", {"x": X}, True),
    ("sum(100*(x[1:]-x[:-1]**2)**2+(1-x[:-1])**2)", {"x": X}, True),
    (ROSENBROCK, {"x": X}, True),
    (ROSENBROCK.replace("len(x)", "3"), {"x": X}, False),
    ("y = [0.0, 0.0]\nfor i in range(2): y[i] = x[i]**2\ny[0]*y[1]", {"x": X}, False),
    ("y = zeros(3)\nfor i in range(3):\n    y[i] = exp(x[i])*x[2-i]\nsum(y**2)", {"x": X}, True),
    ("ys = []\nfor i in range(3): ys.append(x[i]**2)\nsum(ys)*ys[0]", {"x": X}, False),
    ("sum([v**3 for v in x])", {"x": X}, True),
    ("sum(v*i for i, v in enumerate(x))", {"x": X}, True),
    ("y = x.at[0].set(3*x[1]); sum(y**2)", {"x": X}, True),
    ("y = x.at[1].add(x[0]**2); prod(y)", {"x": X}, True),
    ("x[0] = x[1]**2; sum(x**2)", {"x": X}, True),
    ("y = x.copy(); y[1:] *= x[0]; sum(y**2)", {"x": X}, True),
    ("A[0, 1]*A[1, 0]**2", {"A": A}, False),
    ("A[0][1]*A[1][0]**2 - A[1, 1]", {"A": A}, False),
    ("det(A)*A[0, 0]", {"A": A}, True),
    ("inv(A)[0, 1]", {"A": A}, True),
    ("(A@p)[0]**2 + p[1]", {"A": A, "p": P}, True),
    ("sum((p[0]*x + p[1] - y)**2)", {"p": P, "x": X, "y": [1.0, 2.0, 0.5]}, True),
    ("norm([u, v])*u", {"u": 0.3, "v": 1.9}, False),
    ("a, b = p; a*b**2", {"p": P}, True),
    ("h = 0.0\nfor v in x: h = tanh(h*w + v)\nh", {"x": X, "w": 0.6}, True),
    ("cumsum(x)[1]*x[2]", {"x": X}, True),
    ("-log(softmax(x)[1])", {"x": X}, True),
    ("x[::-1]@x", {"x": X}, True),
    ("sum(np.roll(x, 1)[:2]*x[1:])", {"x": X}, True),
    ("u**2 if u > 0 else -u", {"u": -0.4}, False),
    ("u**2 if u > 0 else -u", {"u": 0.4}, False),
    ("if u > v: y = u**2*v\nelif u > -v: y = sin(u)\nelse: y = v\ny*3", {"u": 0.4, "v": 1.2}, False),
    ("if u > v: y = u**2*v\nelif u > -v: y = sin(u)\nelse: y = v\ny*3", {"u": -1.4, "v": 1.2}, False),
    ("s = 0\nfor i in range(3):\n    if x[i] > 0: s += x[i]**2\n    else: s -= x[i]\ns", {"x": X}, False),
    ("u*v if u > 0 and v > 0 else u + v", {"u": 0.4, "v": 1.2}, False),
    ("u*v if u > 0 or v > 0 else u + v", {"u": -0.4, "v": -1.2}, False),
    ("u**2*v if not 0 < u < 1 else v**2", {"u": 0.4, "v": 1.2}, False),
    ("f(t) = t**2 if t < 1 else 2*t - 1\nf(u) + f(v)", {"u": 0.4, "v": 1.2}, False),
    ("def huber(r, d=1.5):\n    if abs(r) <= d:\n        return r**2/2\n    return d*(abs(r) - d/2)\nhuber(u - v)",
     {"u": 0.4, "v": 2.9}, False),
    ("s = 0\nfor i in range(3):\n    if x[i] < 0: break\n    s += x[i]**2\ns*x[0]", {"x": X}, False),
    ("where(x[0] > x[1], x[0]**2, x[1]*x[0])", {"x": X}, False),
    ("sum(where(x[1:] > 0, x[1:]**2, x[:-1]))", {"x": X}, True),
    ("max(x[0], x[1])*x[2]", {"x": X}, False),
    ("0.1*x[0]**2 + 9.81*x[1]", {"x": X}, False),
]  # fmt: skip
IDS = [f"{i}-{' '.join(program.split())[:40]}" for i, (program, _, _) in enumerate(PROGRAMS)]


def words_of(program: str, values: dict[str, Any], given: bool) -> list[str]:
    words = [f"{name}={v}" for name, v in values.items()] if given else []
    return [program, *words]


def gradient(program: str, values: dict[str, Any]) -> dict[str, float]:
    """The derivatives that `eval` computes, by the names that `diff` uses."""
    inputs = {name: np.asarray(v, float) if isinstance(v, list) else v for name, v in values.items()}
    found = {}
    for name, derivative in gradcli.compile(program).value_and_grad(inputs)[1].items():
        found |= in_parts(name, np.zeros(np.shape(values[name])) if derivative is None else np.asarray(derivative))
    return found


def printed(run: Any, to: str, program: str, values: dict[str, Any], given: bool) -> dict[str, str]:
    outcome = run("diff", *words_of(program, values, given), "--to", to, "--json")
    assert outcome.status == 0, outcome.err
    return outcome.json["derivatives"]


def check(found: dict[str, Any], expected: dict[str, float], given: bool) -> None:
    if given:
        assert set(found) == set(expected)
    else:
        # Elements that are not read are left out.
        assert all(derivative == 0 for by, derivative in expected.items() if by not in found)
    for by, value in found.items():
        assert float(value) == pytest.approx(expected[by], rel=1e-12, abs=1e-13), by


def in_parts(by: str, whole: Any) -> dict[str, float]:
    """The derivative by a tensor, by elements."""
    return {
        f"{by}[{', '.join(map(str, key))}]" if key else by: float(whole[key]) for key in np.ndindex(np.shape(whole))
    }


@pytest.mark.parametrize(("program", "values", "given"), PROGRAMS, ids=IDS)
def test_text_reads_back(run, program, values, given):
    found = {}
    for by, text in printed(run, "text", program, values, given).items():
        assert not re.search("put_at|zeros|scatter|diff", text)
        read = [n for n in scope.free_names(parse(text)) if n not in scope.CONSTANTS]
        found |= in_parts(by, np.asarray(gradcli.compile(text)(**{n: values[n] for n in read})))
    check(found, gradient(program, values), given)


@pytest.mark.parametrize(("program", "values", "given"), PROGRAMS, ids=IDS)
def test_python(run, program, values, given):
    found = {}
    for by, code in printed(run, "python", program, values, given).items():
        module = types.ModuleType("printed")
        exec(compile(code, "printed", "exec"), module.__dict__)
        (function,) = [f for n, f in vars(module).items() if n.startswith("derivative_")]
        arguments = {n: values[n] for n in function.__code__.co_varnames[: function.__code__.co_argcount]}
        with np.errstate(all="ignore"):
            found |= in_parts(by, np.asarray(function(**arguments)))
    check(found, gradient(program, values), given)


@pytest.mark.slow
@NEEDS_GCC
def test_c(run, tmp_path):
    """All functions in one file, compiled once."""
    parts, cases = [], []
    for i, case in enumerate(PROGRAMS):
        codes = printed(run, "c", *case)
        for j, code in enumerate(codes.values()):
            parts.append(re.sub(r"double derivative_\w+\(", f"double f{i}_{j}(", code))
        cases.append(codes)
    functions = in_c("\n".join(parts), tmp_path, *STRICT, "-O1")
    for i, ((program, values, given), codes) in enumerate(zip(PROGRAMS, cases, strict=True)):
        found = {}
        for j, (by, code) in enumerate(codes.items()):
            parameters = re.search(r"derivative_\w+\((.*)\)", code)[1]
            names = [re.sub(r".*double |\[.*", "", p) for p in parameters.split(",")]
            found[by] = functions(f"f{i}_{j}")(*(_c_argument(values[n]) for n in names))
        check(found, gradient(program, values), given)


def _c_argument(value: Any) -> Any:
    if not isinstance(value, list):
        return ctypes.c_double(value)
    flat = np.ravel(value)
    return (ctypes.c_double * flat.size)(*flat)


@pytest.mark.parametrize(("program", "values", "given"), PROGRAMS, ids=IDS)
def test_sql(run, program, values, given):
    outcome = run("diff", *words_of(program, values, given), "--to", "sql", "--json")
    assert outcome.status == 0, outcome.err
    columns = {
        "_".join([name, *map(str, key)]): float(np.asarray(v)[key])
        for name, v in values.items()
        for key in np.ndindex(np.shape(v))
    }
    given_columns = ", ".join(f'{v!r} AS "{name}"' for name, v in columns.items())
    cursor = database().execute(f"{outcome.json['select'].split('/*')[0]} FROM (SELECT {given_columns})")
    (row,) = cursor.fetchall()
    value, *derivatives = row
    inputs = {name: np.asarray(v, float) if isinstance(v, list) else v for name, v in values.items()}
    assert value == pytest.approx(float(gradcli.compile(program)(**inputs)), rel=1e-12)
    expected = {re.sub(r"\W+", "_", by).strip("_"): v for by, v in gradient(program, values).items()}
    check({d[0].removeprefix("d_"): v for d, v in zip(cursor.description[1:], derivatives)}, expected, given)


@pytest.mark.parametrize(("program", "values", "given"), PROGRAMS, ids=IDS)
def test_latex(run, program, values, given):
    for text in printed(run, "latex", program, values, given).values():
        assert not re.search("put|zeros|scatter|where|full", text)
        assert text.count("{") == text.count("}")
        assert text.count(r"\begin{cases}") == text.count(r"\end{cases}")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["x[0]**2*x[1]"], "x[0]: 2*x[0]*x[1]\nx[1]: x[0]**2"),
        (["x[0]**2*x[1]", "x=[1,2,3]"], "x[0]: 2*x[0]*x[1]\nx[1]: x[0]**2\nx[2]: 0"),
        (["x[0]**2*x[1]", "--to", "latex"], "x[0]: 2 x_{0} x_{1}\nx[1]: x_{0}^{2}"),
        (["x[0]**2*x[1]", "--order", "2"], "x[0],x[0]: 2*x[1]\nx[0],x[1]: 2*x[0]\nx[1],x[1]: 0"),
        (["x[0]**3*x[1]", "--order", "3"],
         "x[0],x[0],x[0]: 6*x[1]\nx[0],x[0],x[1]: 6*x[0]\nx[0],x[1],x[1]: 0\nx[1],x[1],x[1]: 0"),
        (["x[0]**2"], "x[0]: 2*x[0]"),
        (["x_1[0]**2", "--to", "latex"], r"x_1[0]: 2 \left(x_{1}\right)_{0}"),
        (["x[0]*x_0", "--to", "sql"],
         "SELECT\n    x_0_*x_0 AS value,\n    x_0 AS d_x_0,\n    x_0_ AS d_x_0_\n/* x_0_ stands for x[0] */"),
        (["u**2 if u > 0 else -u"], "where(u > 0, 2*u, -1)"),
        (["u**2 if u > 0 else -u", "--to", "latex"],
         r"\begin{cases} 2 u & u > 0 \\ -1 & \text{otherwise} \end{cases}"),
        (["u**2 if u > 0 else sin(u) if u > -1 else -u", "--to", "latex"],
         r"\begin{cases} 2 u & u > 0 \\ \cos\left(u\right) & u > -1 \\ -1 & \text{otherwise} \end{cases}"),
        (["u**2 if u > 0 else sin(u) if u > -1 else -u", "--to", "sql"],
         "SELECT\n    CASE WHEN u IS NOT NULL THEN "
         "CASE WHEN u > 0.0 THEN u*u WHEN u > -1.0 THEN SIN(u) ELSE -u END END AS value,\n"
         "    CASE WHEN u IS NOT NULL THEN CASE WHEN u > 0.0 THEN 2.0*u WHEN u > -1.0 THEN COS(u) ELSE -1.0 END END AS d_u"),
        (["u*v if u > 0 and v > 0 else 0", "--wrt", "u"], "where(logical_and(u > 0, v > 0), v, 0)"),
        (["u**2 if 0 < u < 1 else 1", "--to", "latex"],
         r"\begin{cases} 2 u & 0 < u \land u < 1 \\ 0 & \text{otherwise} \end{cases}"),
        (["u**2.5 if u > 0 else 0"], "where(u > 0, 2.5*u**1.5, 0)"),
        (["sum(x**2)", "x=[1,2]"], "2*x"),
        (["x[i]**2", "i=1", "--wrt", "x"], "x[1]: 2*x[1]"),
        (["w[0]*x + w[1]*x**2", "w=[1,2]", "--wrt", "x"], "2*w[1]*x + w[0]"),
        (["sum((p[0]*x + p[1] - y)**2)", "p=[1,2]", "x=[1,2,3]", "y=[1,2,4]", "--wrt", "p"],
         "p[0]: 2*sum(x*(p[0]*x + p[1] - y))\np[1]: 6*p[1] + 2*sum(p[0]*x - y)"),
        (["if u > 0: y = u\nelse: y = 0\nif u <= 0: y = y - u\ny"], "where(u > 0, 1, -1)"),
    ],
)  # fmt: skip
def test_formulas_as_people_write_them(run, words, text):
    outcome = run("diff", *words)
    assert (outcome.status, outcome.out) == (0, text + "\n")


def test_a_file_of_c_has_the_value_each_derivative_and_all_of_them(run):
    text = """\
#include <math.h>


/* The value of sqrt(u*v) if u > 0 or v > 0 else v. */
double value(double u, double v)
{
    return ((u > 0.0) || (v > 0.0)) ? sqrt(u*v) : v;
}


/* The derivative of sqrt(u*v) if u > 0 or v > 0 else v by v. */
double derivative_v(double u, double v)
{
    return ((u > 0.0) || (v > 0.0)) ? u/(2.0*sqrt(u*v)) : 1.0;
}


/* The value of sqrt(u*v) if u > 0 or v > 0 else v, and its derivatives by v. */
void value_and_derivatives(double u, double v, double results[2])
{
    const double v1 = sqrt(u*v);
    const double v2 = ((u > 0.0) || (v > 0.0));
    results[0] = v2 ? v1 : v;
    results[1] = v2 ? u/(2.0*v1) : 1.0;
}
"""
    assert run("diff", "sqrt(u*v) if u > 0 or v > 0 else v", "--wrt", "v", "--to", "c").out == text


def test_simplification_by_sympy_of_elements(run):
    texts = run("diff", "cos(x[0])**2*x[1] - sin(x[0])**2*x[1]", "--simplify", "--json").json["derivatives"]
    assert gradcli.compile(texts["x[0]"])(x=[0.3, 2.0]) == pytest.approx(-4 * math.sin(0.6))


@pytest.mark.slow
def test_a_path_for_each_of_many_choices_is_refused_in_time(run):
    program = "s = 0\nfor i in range(20):\n    if x[i] > 0: s += x[i]**2\n    else: s -= x[i]\ns"
    outcome = run("diff", program)
    assert (outcome.status, outcome.out) == (1, "")
    assert "one of more than 512 execution paths" in outcome.err or "takes more than" in outcome.err


@pytest.mark.parametrize("language", ["c", "sql"])
def test_a_tensor_of_no_elements_is_said_to_be_one(run, language):
    outcome = run("diff", "sum(2x)", "x=[]", "--to", language)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("error: there is nothing to differentiate by: 'x' has no elements")
