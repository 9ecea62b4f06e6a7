"""Reference derivatives of order 0 to 4 at points where a function is 0/0 as written, and near them.

`python -m tests.removable_points` recomputes them, with `pip install sympy mpmath`, and writes them to
tests/data/removable-points.json with 20 digits: at the point from exact series of SymPy, near it from mpmath with 150
digits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ORDER = 4
DATA = Path(__file__).parent / "data/removable-points.json"
DISTANCES = (1e-12, -1e-12, 1e-8, -1e-8, 1e-4, -1e-4, 1e-2, -1e-2)
DIGITS = 150

AT_0 = (
    "sin(x)/x", "sinh(x)/x", "(1-cos(x))/x**2", "(1-cos(x))/x", "(exp(x)-1)/x", "log(1+x)/x", "tan(x)/x",
    "asin(x)/x", "atan(x)/x", "tanh(x)/x", "asinh(x)/x", "atanh(x)/x", "erf(x)/x", "x/sin(x)", "x/tan(x)",
    "x/(exp(x)-1)", "x/log(1+x)", "x/sinh(x)", "x/tanh(x)", "x/atan(x)", "(cosh(x)-1)/x**2", "(x-sin(x))/x**3",
    "(tan(x)-x)/x**3", "(tan(x)-sin(x))/x**3", "(exp(x)-1-x)/x**2", "(exp(x)-1-x-x**2/2)/x**3", "(x-log(1+x))/x**2",
    "(x*cos(x)-sin(x))/x**3", "(cos(x)-1+x**2/2)/x**4", "(sqrt(1+x)-1)/x", "(sqrt(1+x)-sqrt(1-x))/x",
    "(1-sqrt(1-x**2))/x**2", "(exp(x)-exp(-x))/x", "(exp(2*x)-1)/x", "(2**x-1)/x", "(3**x-2**x)/x", "sin(3*x)/x",
    "sin(3*x)/sin(2*x)", "sin(x)**2/x**2", "sin(x)**2/x", "(sin(x)/x)**2", "(1-cos(x))/sin(x)",
    "(1-cos(x))/(x*sin(x))", "(exp(x)-cos(x))/sin(x)", "(exp(sin(x))-1)/x", "(exp(x)-1)/sin(x)",
    "(exp(x)-1)**2/x**2", "x*exp(x)/(exp(x)-1)", "sin(x)*cos(x)/x", "sin(x)*exp(x)/x", "log(cos(x))/x**2",
    "log(cosh(x))/x**2", "log(1+x)/sin(x)", "log(1+sin(x))/x", "log(sin(x)/x)", "sqrt(sin(x)/x)", "exp(sin(x)/x)",
    "(1+x)**(1/x)", "(1+2*x)**(1/x)", "cos(x)**(1/x**2)", "(sin(x)/x)**(1/x**2)", "1/x-1/sin(x)", "1/x-1/tan(x)",
    "1/sin(x)-1/tan(x)", "1/x**2-1/sin(x)**2", "1/x-1/(exp(x)-1)", "1/log(1+x)-1/x", "1/x-1/tanh(x)", "coth(x)-1/x",
    "x*cot(x)", "x*csc(x)", "x*coth(x)", "x**2/(1-cos(x))", "x/(1-exp(-x))", "(1-exp(-x))/x", "(1-exp(-x**2))/x**2",
    "atan(x)/sin(x)", "tan(x)/tanh(x)", "asin(x)/atan(x)", "sin(sin(x))/x", "sin(tan(x))/x",
    "(sin(tan(x))-tan(sin(x)))/x**7", "sinh(x)/sin(x)", "1/x*sin(x)", "sin(x)*x**-1",
)  # fmt: skip
ELSEWHERE = (
    ("log(x)/(x-1)", 1.0),
    ("(x-1)/log(x)", 1.0),
    ("(x**2-1)/(x-1)", 1.0),
    ("(sqrt(x)-1)/(x-1)", 1.0),
    ("sin(x-1)/(x-1)", 1.0),
    ("x*log(x)/(x-1)", 1.0),
    ("1/(x-1)-1/log(x)", 1.0),
    ("(x**3-8)/(x-2)", 2.0),
    ("(sqrt(x)-2)/(x-4)", 4.0),
    ("(exp(x+1)-1)/(x+1)", -1.0),
)
FUNCTIONS = (*((program, 0.0) for program in AT_0), *ELSEWHERE)


def _computed(program: str, point: float) -> dict[str, Any]:
    import mpmath
    import sympy

    x = sympy.Symbol("x")
    # SymPy has the same names for these functions.
    expression = sympy.sympify(program, locals={"x": x}, rational=True)
    shifted = sympy.series(expression.subs(x, x + sympy.Integer(int(point))), x, 0, ORDER + 1).removeO()
    exact = [shifted.coeff(x, k) * sympy.factorial(k) for k in range(ORDER + 1)]
    with mpmath.workdps(DIGITS):
        function = sympy.lambdify(x, expression, "mpmath")
        beside = {
            str(point + d): [mpmath.nstr(mpmath.diff(function, mpmath.mpf(point + d), k), 20) for k in range(ORDER + 1)]
            for d in DISTANCES
        }
        at = [mpmath.nstr(mpmath.mpf(sympy.N(c, 30)), 20) for c in exact]
    return {"program": program, "derivatives": {str(point): at, **beside}}


def main() -> None:
    cases = [_computed(program, point) for program, point in FUNCTIONS]
    DATA.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
