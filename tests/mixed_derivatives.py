"""Reference mixed derivatives up to order 4 of functions of four numbers, from SymPy.

`python -m tests.mixed_derivatives` recomputes them, with `pip install sympy`, and writes them to
tests/data/mixed-derivatives.json with 25 digits.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

ORDER = 4
DATA = Path(__file__).parent / "data/mixed-derivatives.json"
POINT = {"x": 0.75, "y": 1.25, "z": -0.5, "w": 2.0}
FUNCTIONS = (
    "sin(x*y)*exp(z/w) + log(w)*x",
    "(x + y*z)**3/w",
    "exp(x - y**2)*atan(z*w)",
    "sqrt(x**2 + y**2 + z**2 + w**2)",
    "x**y*z/w",
    "x*y*z*w + x**2*y**2",
)


def main() -> None:
    import sympy

    point = {sympy.Symbol(name): sympy.Rational(value) for name, value in POINT.items()}
    found = []
    for program in FUNCTIONS:
        formula = sympy.sympify(program)
        values = {}
        for n in range(1, ORDER + 1):
            for key in itertools.combinations_with_replacement(POINT, n):
                values[",".join(key)] = str(sympy.diff(formula, *key).subs(point).evalf(25))
        found.append({"program": program, "point": POINT, "derivatives": values})
    DATA.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")


if __name__ == "__main__":
    main()
