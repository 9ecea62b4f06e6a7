"""Tests programs as people paste them: values, gradients, and errors for ambiguous ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import gradcli
from gradcli.errors import GradcliError
from gradcli.language.interpreter.builtin_calls import function_transforms, python_functions
from gradcli.language.names.evaluator_functions import DERIVATIVES, LIST_METHODS, PYTHON_FUNCTIONS, TRANSFORMS


def value_and_grad(program, **values):
    """The results of a first run, equal to those of later runs, which may be recorded ones."""
    compiled = gradcli.compile(program)
    first = compiled.value_and_grad(values)
    for _ in range(2):
        again = compiled.value_and_grad(values)
        np.testing.assert_equal(again[0], first[0])
        for name, gradient in first[1].items():
            np.testing.assert_allclose(again[1][name], gradient, 1e-12) if gradient is not None else None
    return first


def assert_is(program, value, gradients, **values):
    found, by = value_and_grad(program, **values)
    np.testing.assert_allclose(found, value, 1e-12)
    assert by.keys() == gradients.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(by[name], gradient, 1e-12)


V = np.array([1.0, 2.0, 3.0])
A = np.array([[1.0, 2.0], [3.0, 4.0]])

FUNCTIONS = [
    ("def f(x):\n    return x**2", 9.0, 6.0),
    ("def f(x, k=2.0, *, c=1):\n    '''A docstring.'''\n    y: float = k*x\n    return y + c", 7.0, 2.0),
    ("def f(a, b=2): return a*b\nf(x) + f(b=x, a=2) + f(x, x)", 21.0, 10.0),
    ("def f(x):\n    if x > 5:\n        return 0\n    elif x > 2:\n        return x*x\n    else: return 1\nf(x)", 9.0, 6.0),
    ("def outer(a):\n    def inner(b):\n        return a*b\n    return inner\nouter(x)(x)", 9.0, 6.0),
    ("f = lambda a, b=3: a*b\nf(x) + (lambda q: q**2)(x)", 18.0, 9.0),
    ("def fact(n):\n    return 1 if n <= 1 else n*fact(n - 1)\nfact(4)*x", 72.0, 24.0),
    ("def f(u):\n    u = 2*u\n    return u\nf(x) + x", 9.0, 3.0),
    ("def two(a):\n    return a, a**2\np, q = two(x)\np*q + two(x)[1]", 36.0, 33.0),
    ("s = 0\nfor i in range(10):\n    if i == 1: continue\n    if i > 3: break\n    s += i*x\ns", 15.0, 5.0),
    ("n = 0\nwhile True {\n  n += x\n  if n > 8 { break }\n}\nn", 9.0, 3.0),
    ("a = b = x\na*b", 9.0, 6.0),
    ("(p, q), r = (x, 2), x**2\np*q + r", 15.0, 8.0),
    ("y = None\nx if y is None else 0", 3.0, 1.0),
    ("def f(kind, u):\n    return u if kind == 'same' else -u\nf('same', x) + f('other', x)*2", -3.0, -1.0),
    ("x + \\\n  1", 4.0, 1.0),
    ("exp = lambda u: u + 1\nexp(x)", 4.0, 1.0),
    ("def sigmoid(u):\n    return 1/(1 + np.exp(-u))\nsigmoid(0*x)", 0.5, 0.0),
    ("sum([f(x) for f in [math.exp, torch.exp]])/exp(x)", 2.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("program", "value", "gradient"), FUNCTIONS)
def test_functions_and_control_flow(program, value, gradient):
    found, by = value_and_grad(program, x=3.0)
    np.testing.assert_allclose(found, value, 1e-12)
    np.testing.assert_allclose(by["x"], gradient, 1e-12, 1e-15)


LISTS = [
    ("ys = []\nfor a in v:\n    ys.append(a**2)\nsum(ys) + ys[1] + len(ys) + ys[-1]", 30.0, [2.0, 8.0, 12.0]),
    ("sum(a*b for a, b in zip(v, v[::-1]) if a > 1)", 7.0, [3.0, 4.0, 1.0]),
    ("m = [[a*b for a in v] for b in v]\nsum(m[1]) + m[2][0]", 15.0, [2.0 + 3.0, 6.0 + 2.0, 2.0 + 1.0]),
    ("sum([i*a for i, a in enumerate(v)])", 8.0, [0.0, 1.0, 2.0]),
    ("layers = [(v, 2.0), (2*v, 1.0)]\nh = 0\nfor w, b in layers:\n    h = h + sum(w)*b\nh", 24.0, [4.0, 4.0, 4.0]),
    ("rows = [v, v**2]\nrows.append(v)\nsum(r for r in rows)[1]", 8.0, [0.0, 6.0, 0.0]),
    ("stack([a for a in v])[2] + sorted([v[1], v[0]])[0]", 4.0, [1.0, 0.0, 1.0]),
    ("w = [0.0]*3\nw[1] = v[2]\nsum(w)", 3.0, [0.0, 0.0, 1.0]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "value", "gradient"), LISTS)
def test_lists(program, value, gradient):
    assert_is(program, value, {"v": gradient}, v=V)


IN_PLACE = [
    ("v[0] = 5\nsum(v**2)", 38.0, [0.0, 4.0, 6.0]),
    ("z = v[1:]\nz *= 2\nsum(v*v)", 53.0, [2.0, 16.0, 24.0]),
    ("z = v\nz += 1\nsum(v*z)", 29.0, [4.0, 6.0, 8.0]),
    ("w = v.copy()\nw[0] = 9\nsum(v) + sum(w)", 20.0, [1.0, 2.0, 2.0]),
    ("def f(a):\n    a += 1\n    return sum(a)\nf(v) + v[0]", 11.0, [2.0, 1.0, 1.0]),
    ("u = zeros(4)\nu[0] = v[0]\nfor i in range(1, 4):\n    u[i] = u[i - 1]*v[1]\nu[3]", 8.0, [8.0, 12.0, 0.0]),
    ("v[v > 1] = v[0]\nsum(v)", 3.0, [3.0, 0.0, 0.0]),
    ("v[[0, 0]] = [v[1], v[2]]\nsum(v)", 8.0, [0.0, 1.0, 2.0]),
    ("v.at[1].set(v[0]*3).sum() + v.at[0].add(v[1])[0]", 10.0, [5.0, 1.0, 1.0]),
    ("v[1:][0] = 7\nv[1] + v[2]", 10.0, [0.0, 0.0, 1.0]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "value", "gradient"), IN_PLACE)
def test_tensors_changed_in_place(program, value, gradient):
    assert_is(program, value, {"v": gradient}, v=V)


def test_views_of_a_matrix_see_its_changes():
    assert_is("B = A.T\nB[0, 1] = 10\nA[1][0]*2 + sum(A)", 37.0, {"A": [[1.0, 1.0], [0.0, 1.0]]}, A=A)
    assert_is("for row in A:\n    row *= 2\nsum(A)", 20.0, {"A": [[2.0, 2.0], [2.0, 2.0]]}, A=A)
    assert_is("r = A.reshape(4)\nr[3] = 0\nsum(A**2)", 14.0, {"A": [[2.0, 4.0], [6.0, 0.0]]}, A=A)


OF_FUNCTIONS = [
    ("def f(u): return u**3\njax.grad(f)(x)", 27.0, 18.0),
    ("def f(u): return u**3\njax.grad(jax.grad(f))(x)", 18.0, 6.0),
    ("def f(a, b): return a**2*b\nsum([g for g in torch.func.grad(f, argnums=(0, 1))(x, x)])", 27.0, 18.0),
    ("v, g = jax.value_and_grad(lambda u: sin(u))(x)\nv**2 + g**2", 1.0, 0.0),
    ("sum(jax.vmap(lambda u: u*x)(arange(3)))", 9.0, 3.0),
    ("y = x**2\ntorch.autograd.grad(y, x)[0]", 6.0, 2.0),
    ("jax.lax.fori_loop(0, 3, lambda i, c: c*x, 1.0)", 27.0, 27.0),
    ("c, ys = jax.lax.scan(lambda c, u: (c + u*x, c), 0.0, arange(4))\nc + sum(ys)", 30.0, 10.0),
    ("jax.lax.cond(x > 0, lambda u: u**2, lambda u: -u, x)", 9.0, 6.0),
    ("jax.lax.while_loop(lambda c: c < 50, lambda c: c*x, x)", 81.0, 108.0),
]  # fmt: skip


@pytest.mark.parametrize(("program", "value", "gradient"), OF_FUNCTIONS)
def test_functions_of_functions(program, value, gradient):
    found, by = value_and_grad(program, x=3.0)
    np.testing.assert_allclose(found, value, 1e-12)
    np.testing.assert_allclose(by["x"], gradient, 1e-12, 1e-12)


AS_FLOATS = [
    ("sum((v > 1).float() + (v > 2).astype(float))", 3.0, None),
    ("import numpy as np\nnp.sum(v.astype(np.float64)*v)", 14.0, [2.0, 4.0, 6.0]),
    ("sum(v.double()**2)", 14.0, [2.0, 4.0, 6.0]),
]


@pytest.mark.parametrize(("program", "value", "gradient"), AS_FLOATS)
def test_the_type_that_numbers_have_anyway(program, value, gradient):
    found, by = value_and_grad(program, v=V)
    assert found == value
    np.testing.assert_equal(by["v"], None if gradient is None else np.array(gradient))


PRINTED = [("2x", 6.0), ("3(x + 1)", 12.0), ("x²", 9.0), ("-x⁻¹", -1 / 3), ("√(x + 1)", 2.0), ("∛27", 3.0), ("x!", 6.0),
           ("2x·x − 1", 17.0), ("x ÷ 3 × 2", 2.0), ("x ≤ 3", 1.0), ("2π", 2 * np.pi), ("2√(x + 1)", 4.0)]  # fmt: skip


@pytest.mark.parametrize(("program", "value"), PRINTED)
def test_what_print_writes(program, value):
    compiled = gradcli.compile(program)
    assert compiled(**{n: 3.0 for n in compiled.inputs if n == "x"}) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        ("scipy.linalg.cholesky(P)", np.linalg.cholesky(A @ A.T).T),
        ("scipy.linalg.cholesky(P, lower=True)", np.linalg.cholesky(A @ A.T)),
        ("np.linalg.cholesky(P)", np.linalg.cholesky(A @ A.T)),
        ("scipy.linalg.qr(P)[1]**2", np.linalg.qr(A @ A.T)[1] ** 2),
        ("scipy.linalg.qr(P[:, :1], mode='economic')[1]**2", np.linalg.qr((A @ A.T)[:, :1])[1] ** 2),
    ],
)
def test_factors_of_scipy_are_those_of_scipy(factor, expected):
    value, _ = value_and_grad(f"sum({factor}*[[1, 10], [100, 1000]])", P=A @ A.T)
    np.testing.assert_allclose(value, np.sum(expected * [[1, 10], [100, 1000]]), 1e-12)


def test_a_number_with_a_point_is_no_axis():
    assert_is("sum(max(v, 1.5))", 6.5, {"v": [0.0, 1.0, 1.0]}, v=V)


def test_a_matrix_of_a_stable_form_has_its_elements_raised():
    assert_is("sum(1 - tanh(A)**2)", np.sum(1 / np.cosh(A) ** 2), {"A": -2 * np.tanh(A) / np.cosh(A) ** 2}, A=A)


GELU_BY_TANH = 0.5 * V * (1 + np.tanh(np.sqrt(2 / np.pi) * (V + 0.044715 * V**3)))
ROOT = np.linalg.cholesky(A @ A.T)
# Names to which a module gives its own meaning, and keywords of different libraries for the same option.
OF_MODULES = [
    ("jax.nn.gelu(v)", GELU_BY_TANH),
    ("jax.nn.gelu(v, approximate=False)", V * special.ndtr(V)),
    ("F.gelu(v, approximate='tanh')", GELU_BY_TANH),
    ("F.gelu(v)", V * special.ndtr(V)),
    ("F.pad(A, (1, 0, 0, 2), value=5.0)", np.pad(A, ((0, 2), (1, 0)), constant_values=5.0)),
    ("np.pad(A, ((1, 0), (0, 2)))", np.pad(A, ((1, 0), (0, 2)))),
    ("torch.linalg.vander(v)", np.vander(V, increasing=True)),
    ("torch.vander(v)", np.vander(V)),
    ("torch.median(stack([v, where(v > 2, nan, v)]), 1)[0]", [2.0, np.nan]),
    ("torch.median(stack([v, where(v > 2, nan, v)]), 1)[1]", [1.0, 2.0]),
    ("torch.sort(where(v > 2, nan, v), descending=True)[0]", [np.nan, 2.0, 1.0]),
    ("torch.sort(where(v > 2, nan, v), descending=True)[1]", [2.0, 1.0, 0.0]),
    ("torch.sort(where(v > 1, 2.0, v), descending=True)[1]", [1.0, 2.0, 0.0]),
    ("torch.meshgrid(v, v)[0]", np.meshgrid(V, V, indexing="ij")[0]),
    ("np.meshgrid(v, v)[0]", np.meshgrid(V, V)[0]),
    ("torch.abs(torch.svd(A)[2])", np.abs(np.linalg.svd(A)[2].T)),
    ("np.abs(np.linalg.svd(A)[2])", np.abs(np.linalg.svd(A)[2])),
    ("scipy.special.softmax(A)", special.softmax(A)),
    ("jax.nn.softmax(A)", special.softmax(A, -1)),
    ("scipy.special.log_softmax(A, axis=0)", special.log_softmax(A, 0)),
    ("scipy.special.assoc_laguerre(x, 2, 0.5)", special.assoc_laguerre(3.0, 2, 0.5)),
    ("scipy.integrate.trapezoid(v, x=v)", 4.0),
    ("from scipy.integrate import quad\nquad(lambda t: t*x, 0, 2)[0]", 6.0),
    ("import scipy.integrate as si\nsi.odeint(lambda y, t: 0*y + x, 1, [0, 2])[1]", 7.0),
    ("np.trapezoid(v[:2], x=A)", [1.5, 1.5]),
    ("scipy.integrate.cumulative_trapezoid(v[:2], x=2*A)", [[3.0], [3.0]]),
    ("sympy.assoc_laguerre(2, 0.5, x)", special.assoc_laguerre(3.0, 2, 0.5)),
    ("scipy.linalg.cholesky(A @ A.T)", ROOT.T),
    ("scipy.linalg.cholesky(A @ A.T, lower=True)", ROOT),
    ("np.linalg.cholesky(A @ A.T)", ROOT),
    ("math.remainder(5*x/3, 2)", 1.0),
    ("math.remainder(x, 2)", -1.0),
    ("np.remainder(x, 2)", 1.0),
    ("jax.lax.clamp(2.0, v, 2.5)", np.clip(V, 2.0, 2.5)),
    ("jax.lax.max(v, 2) - jax.lax.min(v, 2)", np.abs(V - 2)),
    ("jax.lax.select(A > 1, A, -A)", np.where(A > 1, A, -A)),
    ("jax.lax.cumsum(A) + jax.lax.cumprod(A, 1)", np.cumsum(A, 0) + np.cumprod(A, 1)),
    ("jax.lax.cummax(-A, axis=1, reverse=True)", np.maximum.accumulate(-A[:, ::-1], 1)[:, ::-1]),
    ("jax.lax.split(v, (1, 2))[1]", V[1:]),
    ("math.isclose(x, 3.00001) + 2*math.isclose(x, 3.0000000001) + 4*math.isclose(0, 1e-10)", 2.0),
    ("np.isclose(x, 3.00001)", 1.0),
    ("np.linalg.trace([A, 2*A]) + jnp.linalg.trace([A, 2*A])", 2 * np.trace(A) * np.array([1, 2])),
    ("np.trace([A, 2*A])", A[0] + 2 * A[1]),
    ("torch.linalg.diagonal(stack([A, 2*A]))", np.stack([A.diagonal(), 2 * A.diagonal()])),
    ("torch.linalg.diagonal(stack([A, 2*A]), dim1=0, dim2=1)", np.stack([A, 2 * A]).diagonal()),
    ("np.linalg.diagonal([A, 2*A], offset=1)", np.stack([A.diagonal(1), 2 * A.diagonal(1)])),
    ("torch.diagonal(stack([A, 2*A]))", np.stack([A, 2 * A]).diagonal()),
    ("math.log(x, 3) + log(9, x) + log(base=3, x=x)", 4.0),
    ("torch.atan2(input=x, other=1)", np.arctan2(3, 1)),
    ("torch.where(condition=v > 1, input=v, other=0)", np.where(V > 1, V, 0)),
    ("np.sum(a=A, axis=0)", A.sum(0)),
    ("torch.linalg.solve(A=A, B=A)", np.eye(2)),
    ("np.linalg.solve(a=A, b=A)", np.eye(2)),
    ("torch.dot(input=v, tensor=v)", V @ V),
]


@pytest.mark.parametrize(("program", "value"), OF_MODULES)
def test_a_name_has_the_meaning_of_its_module(program, value):
    values = {"x": 3.0, "v": V, "A": A}
    compiled = gradcli.compile(program)
    np.testing.assert_allclose(compiled(**{n: values[n] for n in compiled.inputs}), value, 1e-12, 1e-12)


# Refused programs, each with parts of the error.
REFUSED = [
    ("max(v, 0)", ["max(x, axis=0)", "maximum(x, 0)"]),
    ("sum(v, x)", ["axis=x", "v + x"]),
    ("sum(v, x - 3)", ["axis=x - 3"]),
    ("amax(v, 0)", ["amax(x, axis=0)", "maximum(x, 0)"]),
    ("np.sum(v, True)", ["an axis must be a whole number, not True"]),
    ("diff(sum(v)**2, v, x)", ["diff(sum(v)**2, v, n=x)"]),
    ("v.sort()[0]", ["np.sort(x)", "torch.sort(x)[0]"]),
    ("(v > 1) + (v > 2)", ["a | b", "1*a + b"]),
    ("(x, 2)*2", ["tile(x, n)", "multiply(x, n)"]),
    ("(x, 1) + (x, 2)", ["concat([a, b])", "add(a, b)"]),
    ("scipy.linalg.qr(stack([v, v**2], 1))[1]", ["mode='economic'"]),
    ("v.astype(int)[0]", ["float64", "trunc(x)"]),
    ("sum(v.float(1))", ["'float' takes 1 argument"]),
    ("sum(v.astype())", ["'dtype'"]),
    ("[1 -2]*x", ["1 - 2", "1, -2"]),
    ("x <- 2", ["x = 2", "x < -2"]),
    ("1.000+-0.002", ["1.000 - 0.002", "1.000 ± 0.002"]),
    ("sum([v, v])", ["axis=0", "np.sum"]),
    ("[v, v]*2", ["tile(x, n)", "multiply(x, n)"]),
    ("[x, 1] + [2, x]", ["concat([a, b])", "add(a, b)"]),
    ("(v > 1)^(v > 2)", ["a != b", "a**b"]),
    ("A^2", ["A**n", "matrix_power"]),
    ("A²", ["A**n", "matrix_power"]),
    ("np.mean(v) + torch.mean(v) + v.std()", ["torch.std", "np.std"]),
    ("x, x**2", ["[a, b]"]),
    ("1,5", ["1.5"]),
    ("import torch\nloss = x**2\nloss.item()*2", ["gradient"]),
    ("import pandas as pd\nx", ["numpy"]),
    ("from scipy.optimize import minimize\nx", ["numpy"]),
    ("import numpy as np\nsum(A)", ["axis=0", "np.sum"]),
    ("return x", ["last statement"]),
    ("break", ["loop"]),
    ("if x > 0:\ny = 1", ["indented block"]),
    ("if x > 0:\n    y = 1\n  z = 2", ["indent"]),
    ("f(x)", ["f(x) = "]),
    ("x = lambda u: u\nx + 1", ["a function", "call it"]),
    ("v += A", ["shape"]),
    ("v[7] = 1", ["out of bounds"]),
    ("torch.dot(A, A)", ["PyTorch's 'dot' takes two vectors", "a @ b"]),
    ("torch.sum(A.dot(A))", ["PyTorch's 'dot' takes two vectors"]),
    ("F.pad(v, 1)", ["np.pad"]),
    ("torch.nn.functional.unfold(A, 1, 2)", ["blocks of images"]),
    ("jax.lax.round(x)", ["half away from zero"]),
    ("torch.range(0, 3)", ["includes the end"]),
    ("v.int()", ["no method", "write int(x)"]),
    ("int(v)", ["trunc(x)"]),
    ("np.nan_to_num(v, True)", ["'copy'", "nan=0.0"]),
    ("jax.nn.identity(x)", ["gives its argument"]),
    ("np.random.gamma(v)", ["draws random numbers"]),
    ("np.log(x, 2)", ["log(x)"]),
    ("scipy.linalg.qr(np.vstack([A, A]))[0]", ["mode='economic'"]),
]  # fmt: skip


@pytest.mark.all_cases
@pytest.mark.parametrize(("program", "shown"), REFUSED)
def test_what_could_mean_something_else_is_an_error(program, shown):
    values = {"x": 3.0, "v": V, "A": A}

    def run() -> None:
        compiled = gradcli.compile(program)
        compiled.value_and_grad({n: values[n] for n in compiled.inputs})

    with pytest.raises(GradcliError) as caught:
        run()
    text = f"{caught.value.message}\n{caught.value.hint}"
    for part in shown:
        assert part in text


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("program", "warned"),
    [
        ("y = x^2\ny\n+ 1", ["not used"]),
        ("x^2\nx", ["not used"]),
        (
            "".join(f"f{i}(u) = u\n" for i in range(25)) + "x",
            [f"'f{i}' is defined and never called" for i in range(19)]
            + ["'f19' is defined and never called; 5 more are not listed"],
        ),
        ("f(u) = u**2; x + 1", ["'f' is defined and never called"]),
        ("f(u) = u**2; f(x)", []),
        ("f = lambda u: u**2; x + 1", ["'f' is defined and never called"]),
        ("f(u) = f(u - 1); x", ["'f' is defined and never called"]),
        ("y = x^2\n+ 1", ["this line is a statement of its own"]),
        ("y = x^2\n-1", ["this line is a statement of its own"]),
        ("y = x^2\n-y", []),
        ("y = x^2; -1", []),
        ("def f(u):\n    '''What it is.'''\n    return u\nf(x)", []),
        ("ys = []\nys.append(x)\nsum(ys)", []),
    ],
)
def test_what_is_not_used_is_warned_of(run, program, warned):
    outcome = run("eval", program, "x=3")
    assert outcome.status == 0
    for part in warned:
        assert part in outcome.err
    assert bool(outcome.err) == bool(warned)


def test_euler_s_number_in_a_formula_is_said(run):
    assert "'e' is read as Euler's number" in run("diff", "e**x").err
    assert run("diff", "e**x", "--wrt", "e").err == ""
    assert run("diff", "e**x", "--json").json["warnings"][0]["code"] == "constant"


WRONG_ARGUMENTS = [
    ("ys = []\nys.append()\nx", "'append' needs 'item'"),
    ("ys = []\nys.append(x, k=1)\nx", "'append' has no argument 'k'"),
    ("ys = [x]\nys.pop(5)", "index 5 is out of bounds for a list of 1 items"),
    ("ys = [x]\nys.pop('a')", "'pop' needs a number"),
    ("ys = [x]\nys.copy(1)", "'copy' takes no arguments, and 1 were given"),
    ("list(range(3))[::0][0]*x", "the step of a slice must not be 0"),
    ("x*range(bounds=3)", "'range' has no argument 'bounds'"),
    ("x*int(inf)", "'int' needs a whole number, and this is inf"),
    ("if [x] { x }", "a condition needs one number, and this is a list"),
    ("if np.sin { x }", "a condition needs a number"),
    ("torch.autograd.grad(x)", "'grad' needs 'inputs'"),
    ("torch.autograd.grad(x, x, is_grads_batched=True)", "'grad' has no argument 'is_grads_batched'"),
    ("f(a, b) = a*b\nvmap(f)(ones(2)*x, b=2)", "JAX's 'vmap' goes along 'b', PyTorch's hands it on"),
    ("f(a, b=1) = a*b\ngrad(f)(x, c=2)", "'f' has no argument 'c'"),
    ("grad()(x)", "'grad' needs a function of the program"),
    ("map(lambda a: a, [x], k=1)", "'map' has no argument 'k'"),
    ("jax.lax.scan(lambda c, a: (c, a), x)", "'scan' needs 'xs' or 'length'"),
    ("jax.lax.scan(lambda c, a: (c, a), x, ([1, 2], [3]))", "what 'scan' goes along is not of one length"),
    ("jax.lax.scan(lambda c, a: (c, a), x, ones(3), length=2)", "what 'scan' goes along is not of one length"),
    ("jax.lax.scan(lambda c, a: (c, a), x, [ones(2), ones(2)])", "JAX goes along the tensors in a list beside each"),
    ("a = [x]\na.append(a)\nsum(a)", "a list that contains itself is no tensor"),
    ("x.append(1)", "'append' is a method of lists"),
    ("x.at[0].set()", "'set' needs 'values'"),
    ("x.at[0].add(1, 2)", "'add' takes 1 argument, and 2 were given"),
    ("1 if x in [1, 2] else 2", "'in' asks for a value among others in Python"),
    ("1 if x not in [1, 2] else 2", "'in' asks for a value among others in Python"),
    ("def f(*a): return x\nf(x)", "a function has no parameters for any number of arguments"),
    ("a, *b = [x, x]\na", "'*' cannot unpack here"),
    ("*a, b = [x, x]\na", "'*' cannot unpack here"),
    ("@jax.jit\ndef f(x):\n    return x\nf(x)", "decorators are not part of the language"),
    ("raise ValueError('a')\nx", "'raise' is not part of the language"),
]  # fmt: skip


@pytest.mark.all_cases
@pytest.mark.parametrize(("program", "message"), WRONG_ARGUMENTS)
def test_arguments_that_a_function_does_not_take(run, program, message):
    outcome = run("eval", program, "x=2")
    assert outcome.status in (1, 2)
    assert f"error: {message}" in outcome.err


ARGUMENTS = [
    ("ones(3).at[0].set(values=x)[0]", 2.0, 1.0),
    ("(a, b), (c, [d, f]) = (x, 1), (2, (3, 4))\na + 10*b + 100*c + 1000*d + 10000*f", 43212.0, 1.0),
    ("[" * 900 + "a," + "]" * 900 + " = " + "(" * 900 + "x" + ",)" * 900 + "\na", 2.0, 1.0),
    ("f(a, b=1) = a**2*b\ngrad(f)(x, b=2)", 8.0, 4.0),
    ("f(a, b=1) = a*b\njax.jit(f)(x, b=3)", 6.0, 3.0),
    ("jax.grad(fun=lambda a: a**2)(x)", 4.0, 2.0),
    ("sum(np.zeros(shape=(2,)) + x)", 4.0, 2.0),
    ("sum(list(items=[x, 1]))", 3.0, 1.0),
    ("ys = [x]\nys.extend(ys)\nys.extend(items=[x])\nsum(ys)", 6.0, 3.0),
    ("ys = [x, 1, 2]\nys.pop(0) + ys.pop(index=-2) + ys.pop()", 5.0, 1.0),
    ("jax.lax.scan(lambda c, a: (c + a[0]*a[1][0], a), x, ([1, 2], ([3, 4], [5, 6])), 2)[0]", 13.0, 1.0),
    ("sum(map(lambda a, b: a*b, [x, 1], range(1, 10**10)))", 4.0, 1.0),
    ("sum(a*b for a, b in zip(range(1, 10**10), [x, 1]))", 4.0, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("program", "value", "gradient"), ARGUMENTS, ids=lambda given: str(given)[:60])
def test_arguments_by_name_are_used(program, value, gradient):
    assert_is(program, value, {"x": gradient}, x=2.0)


CHANGED = [
    ("a = [x]\nb = [a, a]\ns = np.sum(b)\na[0] = 5\nnp.sum(b) + x", 12.0, 1.0),
    ("a = [x]\nb = [a, a]\ns = np.sum(b)\na.append(x)\nnp.sum(b)", 8.0, 4.0),
    ("y = x*ones(2)\nb = [y, y]\ns = np.sum(b)\ny[0] = 5\nnp.sum(b)", 14.0, 2.0),
    ("y = x*ones(2)\nb = [y, y]\ns = np.sum(b)\ny += 1\nnp.sum(b)", 12.0, 4.0),
]  # fmt: skip


@pytest.mark.parametrize(("program", "value", "gradient"), CHANGED)
def test_a_list_is_what_its_items_are_now(program, value, gradient):
    assert_is(program, value, {"x": gradient}, x=2.0)


def test_the_names_of_functions_are_those_of_the_tables():
    """The names of functions are known before the module that implements them is loaded."""
    functions = python_functions._FUNCTIONS.keys() | python_functions._METHODS_OF_TENSORS.keys()
    assert functions == PYTHON_FUNCTIONS
    assert python_functions._METHODS.keys() == LIST_METHODS
    made = (
        function_transforms.TRANSFORMATIONS.keys()
        | function_transforms.LOOPS.keys()
        | function_transforms._OF_PYTHON.keys()
    )
    assert made - DERIVATIVES.keys() == TRANSFORMS


# The rows of A are [1, 2] and [3, 4].
SAID_BY_A_KEYWORD = [
    ("sum(A.median(dim=0)[0])", 3.0),
    ("sum(A.median(dim=0).values)", 3.0),
    ("sum(A.median(axis=0))", 5.0),
    ("A.std(dim=1)[0]", np.sqrt(0.5)),
    ("A.std(axis=1)[0]", 0.5),
    ("A.std(unbiased=True)", np.std(A, ddof=1)),
    ("A.std(dim=1)[0] + std(A)", np.sqrt(0.5) + np.std(A, ddof=1)),
    ("A.std(dim=1, ddof=0)[0]", 0.5),
    ("A.var(dim=1, keepdim=True)[0, 0]", 0.5),
    ("A.max(dim=1)[0] @ A.max(dim=1).indices", 6.0),
    ("A.sort(descending=True)[0][0, 0]", 2.0),
    ("0*sum(np.exp(v)) + A.var(dim=1)[0]", 0.5),
    ("def var(u, dim): return dim*sum(u)\nvar(A, dim=2) + A.std()", 20.0 + np.std(A)),
    ("import torch\ntorch.sum(A.diff(dim=0)**2)", 8.0),
]


@pytest.mark.all_cases
@pytest.mark.parametrize(("program", "value"), SAID_BY_A_KEYWORD)
def test_a_keyword_that_one_library_has_says_which_is_meant(program, value):
    values = {"A": A, "v": V}
    compiled = gradcli.compile(program)
    np.testing.assert_allclose(compiled(**{name: values[name] for name in compiled.inputs}), value, 1e-12)


def test_keywords_of_both_libraries_are_an_error_that_shows_both(run):
    outcome = run("eval", "sum(kl_div(A, log_target=True, y=A))", "A=[[1,2],[3,4]]")
    assert "torch.kl_div" in outcome.err
    assert "np.kl_div" in outcome.err


def test_two_statistics_at_once_are_pytorchs(run):
    for name, spread, gradient in (
        ("var_mean", 7 / 3, [-4 / 3, -1 / 3, 5 / 3]),
        ("std_mean", 1.5275252316519465, [-0.4364357804719848, -0.10910894511799618, 0.545544725589981]),
    ):
        for call in (f"torch.{name}(x)", f"x.{name}()", f"{name}(x, correction=1)", f"torch.{name}(x, unbiased=True)"):
            found = run("eval", f"{call}[0]", "x=[1,2,4]", "--json").json
            np.testing.assert_allclose([found["value"], *found["grad"]["x"]], [spread, *gradient], 1e-12)
            assert run("eval", f"{call}[1]", "x=[1,2,4]", "--json").json["value"] == 7 / 3
    found = run("eval", "torch.var_mean(x, False)[0]", "x=[1,2,4]", "--json").json
    np.testing.assert_allclose(found["value"], 14 / 9, 1e-12)


def test_the_similarity_of_tensors_that_are_broadcast(run):
    words = ("a=[[1,2],[3,4]]", "b=[[1,5]]", "--json")
    # For the columns [1, 3] and [2, 4] with [1, 1] and [5, 5].
    right = 4 / np.sqrt(20) + 6 / np.sqrt(40)
    found = run("eval", "sum(torch.cosine_similarity(a, b, dim=-2))", *words).json
    np.testing.assert_allclose(found["value"], right, 1e-12)
    np.testing.assert_allclose(found["grad"]["b"], [[0.0, 0.0]], atol=1e-15)


LOSES_NOTHING = [
    ("s = sum(v**2)\nif s.item() > 10:\n    y = 2*s\nelse:\n    y = s\ny", 28.0, [4.0, 8.0, 12.0]),
    ("s = sum(v)\n2*s if float(s) > 3 and not s.item() < 0 else s", 12.0, [2.0, 2.0, 2.0]),
    ("v[int(sum(v).item()) - 4]**2 + v[v[0].item()]", 11.0, [0.0, 1.0, 6.0]),
    ("n = int(sum(v).item())\nsum([v[0] for i in range(n)])", 6.0, [6.0, 0.0, 0.0]),
    ("e = v.max().item()\nwhile e > 1:\n    v = v/2\n    e = v.max().item()\nsum(v)", 1.5, [0.25, 0.25, 0.25]),
    ("f(s) = 2*s if s.item() > 2 else s\nf(v[0]) + f(v[2])", 7.0, [1.0, 0.0, 2.0]),
    ("sum([u for u in v if u.item() > 1])", 5.0, [0.0, 1.0, 1.0]),
]


@pytest.mark.parametrize(("program", "value", "gradient"), LOSES_NOTHING)
def test_a_number_may_lose_its_gradient_where_it_has_none_to_give(program, value, gradient):
    assert_is(program, value, {"v": gradient}, v=V)


@pytest.mark.parametrize(
    "program",
    [
        "s = sum(v).item()\nif s > 2: y = s*v[0]\ny",
        "s = sum(v).item()\ns += 1\nv[0] if s > 2 else v[1]",
        "if v[0] > 0 { s = v[0].item() }",
        "v[0].item() if v[0] > 0 else v[1]",
        "2*float(v[0])",
    ],
)
def test_elsewhere_a_number_that_loses_its_gradient_is_an_error(program):
    with pytest.raises(GradcliError, match="gradient"):
        gradcli.compile(program).value_and_grad({"v": V})


# v is [1, 2, 3], x is 3.
FORMS_OF_PYTORCH = [
    ("sum(torch.nonzero(A - 1)[0]*[1, 10])", 10.0),
    ("torch.nonzero(A - 1, as_tuple=True)[0].sum()", 2.0),
    ("torch.add(v, v, alpha=2).sum() + v.sub(v, alpha=3).sum()", 6.0),
    ("v.add(v, alpha=x).sum()", 24.0),
    ("torch.div(v, 2, rounding_mode='floor').sum() + torch.div(-v, 2, rounding_mode='trunc').sum()", 0.0),
    ("torch.sum(v, dim=0, dtype=torch.float64) + torch.zeros(2, dtype=torch.double)[0]", 6.0),
    ("torch.eye(2, device='cpu').sum() + np.zeros(2, dtype=float)[0]", 2.0),
    ("torch.softplus(v, beta=2)[0]", np.log1p(np.exp(2.0)) / 2),
    ("torch.squeeze(v[None], dim=(0, 1)).sum() + torch.logit(v/4, eps=0.25)[0]", 6.0 - np.log(3)),
    ("torch.kthvalue(-v, 1).values + v.kthvalue(2)[1]", -2.0),
    ("torch.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]], upper=True)[0, 1]", 1.0),
    ("torch.linalg.eigvalsh(A, UPLO='U')[0]", (5.0 - 5.0) / 2),
]
FORMS_OF_PYTORCH += [
    ("torch.select(A, 1, 0).sum() + A.select(0, 1)[1]", 8.0),
    ("np.select([v > 2, v > 1], [v, 10*v], 7)[1] + np.select([v > 2], [v])[0]", 20.0),
    ("v.polygamma(1)[0]", np.pi**2 / 6),
    ("scipy.linalg.lu_solve(scipy.linalg.lu_factor([[1.0, 2.0], [3.0, 5.0]]), [5.0, 13.0])[1]", 2.0),
    (
        "from scipy.linalg import lu_factor, lu_solve; lu, piv = lu_factor([[1.0, 2.0], [3.0, 5.0]]); lu_solve((lu, piv), [7.0, 12.0], trans=1)",
        [1.0, 2.0],
    ),
    ("torch.bucketize(v, torch.tensor([1.0, 3.0]), right=True) + 10*torch.bucketize(v, [1.0, 3.0])", [1.0, 11.0, 12.0]),
    (
        "torch.scatter_reduce(v, 0, torch.tensor([0, 0, 2]), torch.tensor([5.0, 4.0, 1.0]), reduce='amax', include_self=False)",
        [5.0, 2.0, 1.0],
    ),
    ("v.scatter_reduce(0, torch.tensor([1, 1, 1]), v, 'sum')", [1.0, 8.0, 3.0]),
    (
        "torch.linalg.lu([[0.0, 1.0], [0.0, 3.0]])[2].sum() + torch.linalg.lu([[2.0, 4.0, 1.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]])[2].sum()",
        4.0 + 7.0 + 2.5 + 3.5,
    ),
    ("torch.lerp(torch.tensor(inf), 0.0, 0.5)", np.inf),
    ("torch.heaviside(input=v - 2, values=torch.tensor(0.5))", [0.0, 0.5, 1.0]),
    ("torch.linalg.lu_solve([[2.0, 1.0], [0.5, 3.0]], [2, 2], [[1.0], [2.0]], adjoint=True)[1, 0]", 0.25),
    (
        "scipy.linalg.lu_factor([[1.0, 2.0], [3.0, 4.0]])[1][0] + torch.linalg.lu_factor([[1.0, 2.0], [3.0, 4.0]])[1][0]",
        3.0,
    ),
    ("torch.searchsorted(A, A + 0.5, right=True).sum() + torch.searchsorted(v, 2, side='right')", 8.0),
    ("torch.take_along_dim(A, torch.tensor([[3, 0]])).sum() + torch.take_along_dim(A, [[1], [0]], dim=1).sum()", 10.0),
    ("torch.masked_select(x, x > 1).sum() + F.adaptive_avg_pool2d(A[None], (None, 1))[0, 1, 0]", 6.5),
    ("torch.cross(C, C[::-1])[0, 1] + torch.linalg.cross(C, C[::-1])[0, 1]", 3.0),
    ("torch.equal(v, v) + 2*torch.equal(v, v + 1) + 4*torch.equal(v, A)", 1.0),
    ("F.log_softmax(C[None]*0, dim=1)[0, 0, 0] + F.softmax(C[None, :2]*0)[0, 0, 0]", 1.0 - np.log(3.0)),
    ("torch.argwhere(v > 1).sum() + x.softmax(-1) + A.softmax(1).sum()", 6.0),
    ("torch.clamp_min(v, 2).sum() + v.clamp_max(2).sum()", 12.0),
    ("F.pad(v, (-1, 1)).sum() + torch.cdist(A, A, compute_mode='use_mm_for_euclid_dist')[0, 0]", 5.0),
]
AXES_OF_A_NUMBER = [
    *(
        f"torch.{name}(x, dim=0)"
        for name in ("sum", "mean", "prod", "amax", "logsumexp", "cumsum", "cumprod", "logcumsumexp")
    ),
    *(f"torch.{name}(x, -1).values" for name in ("max", "min", "median", "sort", "cummax")),
    *(
        "torch.sum(x, dim=0, keepdim=True)",
        "torch.transpose(x, 0, -1)",
        "torch.topk(x, 1, dim=0)[0]",
        "np.sum(x, axis=-1)",
    ),
]


@pytest.mark.parametrize(("program", "value"), FORMS_OF_PYTORCH)
def test_a_form_that_pytorch_alone_has(program, value):
    values = {"A": A, "v": V, "x": 3.0, "C": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0], [0.0, 1.0, 2.0]])}
    compiled = gradcli.compile(program)
    np.testing.assert_allclose(compiled(**{name: values[name] for name in compiled.inputs}), value, 1e-12, 1e-15)


@pytest.mark.parametrize("program", AXES_OF_A_NUMBER)
def test_a_number_has_the_axes_of_a_vector(program):
    assert_is(program, 3.0, {"x": 1.0}, x=3.0)
    with pytest.raises(GradcliError, match="axis 1 is out of range"):
        gradcli.compile(program.replace("dim=0", "dim=1").replace("-1", "1").replace(", 0, ", ", 1, "))(x=3.0)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("torch.sum(v, dtype=torch.long)", "dtype asks for"),
        ("np.zeros(2, dtype=int)[0]", "dtype asks for"),
        ("np.add(v, v, alpha=2)", "no argument 'alpha'"),
        ("torch.pinverse(A, rtol=0.5)", "rtol"),
        ("select(A, 1, 0)", "another in NumPy"),
    ],
)
def test_a_form_that_asks_for_something_else_is_an_error(program, words):
    values = {"A": A, "v": V}
    compiled = gradcli.compile(program)
    with pytest.raises(GradcliError, match=words):
        compiled(**{name: values[name] for name in compiled.inputs})


MASK = np.array([True, False, True])


class TestTruthValuesAsInputs:
    """An input written as booleans selects elements as a mask, as in NumPy and PyTorch."""

    def test_on_the_command_line(self, run):
        words = ("x=[1,2,3]", "m=[True,False,True]", "--json")
        for program in ("sum(x[m]**2)", "sum(x[~m])**2 + sum(x[m]**2) - 4", "torch.index_put(x, (m,), 0*x[m])[1]*5"):
            found = run("eval", program, *words).json
            assert found["value"] == 10.0
            assert found["grad"]["m"] is None
        assert run("eval", "sum(x[m]**2)", *words, "--digits", "5").json["value"] == "10"
        assert run("eval", "sum(x[m]**2)", *words, "--jacobian").json["jacobian"] == {"x": [2.0, 0.0, 6.0], "m": None}
        assert run("eval", "sum(x[m]**2)", "x=[1,2,3]", "m=[0,1,0]", "--json").json["value"] == 6.0
        assert run("eval", "sum(x*m)", *words).json["grad"]["m"] == [1.0, 2.0, 3.0]

    def test_in_python(self):
        compiled = gradcli.compile("sum(x[m]**3)")
        values = {"x": V, "m": MASK}
        for _ in range(3):
            value, gradients = compiled.value_and_grad(values)
            assert (value, gradients["x"].tolist()) == (28.0, [3.0, 0.0, 27.0])
        assert compiled(x=V, m=~MASK) == 8.0
        assert compiled(x=V, m=[0, 2]) == 28.0
        assert compiled.jacobian(values)["x"].tolist() == [3.0, 0.0, 27.0]
        assert compiled.hessian(values)["x,x"].diagonal().tolist() == [6.0, 0.0, 18.0]
        assert compiled.evaluate(values, digits=5).value == 28
        with pytest.raises(GradcliError, match="truth values"):
            compiled.value_and_grad({"x": np.stack([V, V]), "m": MASK}, rows=["x"])
