"""Reference derivatives of order 0 to 20 of some fifty functions, from mpmath.

`python -m tests.high_orders` recomputes them, with `pip install mpmath`, and writes them to tests/data/high-orders.json
with 25 digits. It uses enough digits for mpmath's finite differences, and checks the results with other step sizes.

The points are such that double precision suffices. It does not where large terms cancel: for lgamma(exp(x)) at 0.4,
order 19 is a sum of terms 10**13 times as large.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ORDER = 20
DATA = Path(__file__).parent / "data/high-orders.json"

# Programs in x, each with a point.
FUNCTIONS = (
    ("exp(x)", 0.7),
    ("log(x)", 1.3),
    ("sqrt(x)", 1.7),
    ("1/x", -1.3),
    ("1/(1 + x**2)", 0.4),
    ("x**2.5", 1.4),
    ("x**-1.5", 2.1),
    ("x**7 - 3*x**4 + x", 0.9),
    ("(x - 1)**25", -0.7),
    ("x**x", 1.2),
    ("x**sin(x)", 1.9),
    ("2**x*3**(x/2)", 0.3),
    ("exp(x)*sin(x)", 1.0),
    ("sin(x**2)*exp(x)/x", 1.3),
    ("sin(x)*exp(x)/(1 + x*x)", 0.5),
    ("tan(x)", 0.9),
    ("tan(sin(x))", 0.6),
    ("sin(cos(sin(x)))", 2.2),
    ("exp(sin(x))", 1.1),
    ("exp(-x**2/2)", 0.3),
    ("exp(exp(x))", 0.2),
    ("log(1 + exp(x))", 0.4),
    ("log(cos(x))", 0.5),
    ("log(log(x))", 3.5),
    ("log1p(x**2)*expm1(x)", 0.6),
    ("sinh(x)/cosh(2*x)", 0.3),
    ("tanh(x)", 0.2),
    ("tanh(x**2 - 1)", 1.3),
    ("asin(x/2)", 0.7),
    ("acos(x)*x", -0.3),
    ("atan(x)", 1.2),
    ("atan(exp(x))", -0.4),
    ("asinh(x)", 0.9),
    ("acosh(x)", 2.3),
    ("atanh(x**2)", 0.5),
    ("sqrt(1 + sqrt(1 + x))", 0.7),
    ("cbrt(x)*exp2(x)", 1.6),
    ("1/sqrt(1 - 0.5*sin(x)**2)", 0.8),
    ("erf(x)", 0.6),
    ("erf(sin(x))", 1.1),
    ("erfc(x)*exp(x**2)", 0.4),
    ("gamma(x)", 2.6),
    ("gamma(1 + x**2)", 0.9),
    ("lgamma(x)", 1.7),
    ("lgamma(1 + x + x**2)", 0.7),
    ("digamma(x)*x", 2.4),
    ("polygamma(2, x)", 1.9),
    ("j0(x)", 1.2),
    ("j1(x**2)", 1.1),
    ("i0(x)/i1(x)", 1.5),
    ("sigmoid(3*x)", 0.4),
    ("softplus(x)*sigmoid(x)", -0.8),
    ("log10(x)/log2(1 + x)", 1.8),
    ("hypot(x, sin(x))", 1.4),
    ("atan2(x, 1 + x**2)", 0.7),
    ("erfinv(x)", 0.3),
    ("sinc(x)", 0.7),
)


def namespace(mp: Any) -> dict[str, Any]:
    """The functions of the language, implemented by mpmath."""
    names = "exp log sqrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh"
    names += " cbrt erf erfc gamma log1p expm1 hypot erfinv"
    return {name: getattr(mp, name) for name in names.split()} | {
        "lgamma": mp.loggamma,
        "digamma": mp.digamma,
        "polygamma": mp.polygamma,
        "j0": lambda x: mp.besselj(0, x),
        "j1": lambda x: mp.besselj(1, x),
        "i0": lambda x: mp.besseli(0, x),
        "i1": lambda x: mp.besseli(1, x),
        "exp2": lambda x: mp.mpf(2) ** x,
        "log2": lambda x: mp.log(x) / mp.log(2),
        "log10": mp.log10,
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "sinc": mp.sincpi,
    }


def derivatives(program: str, point: float, digits: int) -> list[Any]:
    """The derivatives of a program at a point, from differences with steps of about 10**-digits."""
    import mpmath as mp

    mp.mp.dps = digits
    function = eval(f"lambda x: {program}", namespace(mp))
    return [mp.re(c) * math.factorial(k) for k, c in enumerate(mp.taylor(function, mp.mpf(point), ORDER))]


def main() -> None:
    import mpmath as mp

    found = []
    for program, point in FUNCTIONS:
        values, others = (derivatives(program, point, digits) for digits in (60, 50))
        for value, other in zip(values, others):
            assert abs(value - other) <= mp.mpf(10) ** -25 * (abs(value) + mp.mpf(10) ** -20), program
        found.append({"program": program, "x": point, "derivatives": [mp.nstr(v, 25) for v in values]})
        print(program, flush=True)
    DATA.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")


if __name__ == "__main__":
    main()
