"""The functions that the evaluator itself provides, beside those of the table, by name."""

from __future__ import annotations

# Functions of the derivatives of a program, with their signatures.
DERIVATIVES = {
    "diff": "y, x, n=1, *more",
    "jacobian": "y, x",
    "hessian": "y, x",
    "jvp": "y, x, v",
    "vjp": "y, x, v",
}
DETACH = ("detach", "stop_gradient")
# Functions that take functions, see `gradcli.language.interpreter.builtin_calls.function_transforms`.
TRANSFORMS = frozenset(
    [
        "grad",
        "value_and_grad",
        "grad_and_value",
        "jacfwd",
        "jacrev",
        "vmap",
        "jit",
        "cond",
        "fori_loop",
        "while_loop",
        "scan",
        "map",
    ]
)
# Those that take no derivatives.
CONTROL_FLOW = frozenset(["vmap", "jit", "cond", "fori_loop", "while_loop", "scan", "map"])
# Functions of functions that are found by iteration, with their signatures, see
# `gradcli.language.interpreter.builtin_calls.functionals`.
_TOLERANCES = "rtol=1e-12, atol=1e-14"
FUNCTIONALS = {
    "integrate": f"f, a, b, points=None, {_TOLERANCES}",
    "integral": f"f, a, b, points=None, {_TOLERANCES}",
    "quad": f"func, a, b, args=None, points=None, {_TOLERANCES}",
    "dblquad": f"func, a, b, gfun, hfun, args=None, {_TOLERANCES}",
    **dict.fromkeys(("root", "fsolve", "newton"), "f, start, args=None"),
    "brentq": "f, a, b, args=None",
    **dict.fromkeys(("argmin", "argmax"), "f, start, args=None"),
    "limit": "f, x, side=None",
    **dict.fromkeys(("nsum", "summation"), f"f, first, last=None, {_TOLERANCES}"),
    "odeint": f"func, y0, t, *more, args=None, {_TOLERANCES}, method='auto', adjoint=None",
    "solve_ivp": f"fun, t_span, y0, method='auto', t_eval=None, args=None, {_TOLERANCES}, adjoint=None",
    "tplquad": f"func, a, b, gfun, hfun, qfun, rfun, args=None, {_TOLERANCES}",
}
# Functions that drop the gradient in Python.
GRADIENT_DROPPING = frozenset({"item", "float"})
LIST_METHODS = frozenset({"append", "extend", "pop", "copy"})
# Python's functions, see `gradcli.language.interpreter.builtin_calls.python_functions`.
PYTHON_FUNCTIONS = frozenset(
    {"range", "zip", "enumerate", "reversed", "list", "tuple", "len", "float", "int", "sorted", "double", "astype"}
)
