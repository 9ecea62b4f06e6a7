"""Reference values, derivatives to order 4 and gradients of every elementwise function, from mpmath with 105 digits.

`python -m tests.proved_digits` recomputes them, with `pip install mpmath`, and writes them to
tests/data/proved-digits.json. The functions are those of tests/references.py, each at two decimal points of its domain;
the derivatives are by t, where operand i is x[i] + i*t, counted from 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import mpmath
from mpmath import mpf

from tests.references import ELEMENTWISE, Interval

ORDER = 4
DIGITS = 105
# The number of points on each side for finite differences, and the working precision, of which these lose 44 digits.
POINTS, WORKING = 10, 170
STEP = Fraction(1, 10**11)
DATA = Path(__file__).parent / "data/proved-digits.json"
# The relative position of a point in the interval of each operand.
_PLACES = ((0.57, 0.31, 0.43, 0.71), (0.13, 0.83, 0.37, 0.61))
# Exact constants for functions that tests/references.py defines with floats.
_EXACT: dict[str, Callable[..., Any]] = {
    "selu": lambda x: (
        mpf("1.0507009873554804934193349852946")
        * (x if x > 0 else mpf("1.6732632423543772848170429916717") * mpmath.expm1(x))
    ),
    "deg2rad": lambda x: x * mpmath.pi / 180,
    "rad2deg": lambda x: x * 180 / mpmath.pi,
}


def function_of(name: str) -> Callable[..., Any]:
    return _EXACT.get(name, ELEMENTWISE[name].function)


def points_of(name: str) -> list[list[str]]:
    """Decimals in the domains of the operands, which are limited where functions become very large."""
    domains = ELEMENTWISE[name].domains
    return [[_decimal(domain, place) for domain, place in zip(domains, places)] for places in _PLACES]


def _decimal(domain: Interval, place: float) -> str:
    low, high = max(domain[0], -3.0), max(min(domain[1], 4.0), domain[0] + 1.0)
    return f"{low + place * (min(high, domain[1]) - low):.4g}"


@cache
def _weights(points: int) -> list[list[Fraction]]:
    """The weights of the values at the integers from -points to points in the derivatives at 0, for each order: B.
    Fornberg, Mathematics of Computation 51 (1988)."""
    nodes = range(-points, points + 1)
    known = [[Fraction(1)] + [Fraction(0)] * ORDER]
    product = Fraction(1)
    for n, node in enumerate(nodes):
        if not n:
            continue
        before, product = product, math.prod((Fraction(node - other) for other in nodes[:n]), start=Fraction(1))
        last = known[-1]
        for i, row in enumerate(known):
            shorter = [Fraction(0), *row[:-1]]
            known[i] = [(node * w - k * s) / (node - nodes[i]) for k, (w, s) in enumerate(zip(row, shorter))]
        shorter = [Fraction(0), *last[:-1]]
        ratio = before / product
        known.append([ratio * (k * s - nodes[n - 1] * w) for k, (w, s) in enumerate(zip(last, shorter))])
    return [[row[k] for row in known] for k in range(ORDER + 1)]


def _derivatives(function: Callable[[Any], Any]) -> list[Any]:
    """The derivatives at 0 up to order 4; using two points fewer on each side must not change the digits that are
    kept."""
    step = mpf(STEP.numerator) / STEP.denominator
    values = [mpf(function(j * step)) for j in range(-POINTS, POINTS + 1)]
    found, others = (
        [sum(w.numerator * v / w.denominator for w, v in zip(row, given)) / step**k for k, row in enumerate(weights)]
        for weights, given in ((_weights(POINTS), values), (_weights(POINTS - 2), values[2:-2]))
    )
    for x, y in zip(found, others):
        assert abs(x - y) <= mpf(10) ** -(DIGITS + 2) * max(abs(x), mpf(10) ** -3), (x, y)
    # Numbers within the error of the differences are 0.
    return [x if abs(x) > mpf(10) ** -(DIGITS - 10) else mpf(0) for x in found]


def digits(name: str, point: Sequence[str]) -> list[str]:
    """The derivatives along the direction (1, 2, …), and those of order 1 by each operand."""
    with mpmath.workdps(WORKING):
        function, numbers = function_of(name), [mpf(x) for x in point]
        found = _derivatives(lambda t: function(*(x + (i + 1) * t for i, x in enumerate(numbers))))
        for i in range(len(numbers)):
            moved = partial(_moved, function, numbers, i)
            found.append(found[1] if len(numbers) == 1 else _derivatives(moved)[1])
        return [mpmath.nstr(x, DIGITS) if x else "0" for x in found]


def _moved(function: Callable[..., Any], numbers: Sequence[Any], i: int, t: Any) -> Any:
    return function(*(x + t if k == i else x for k, x in enumerate(numbers)))


def references() -> dict[str, Any]:
    return {name: [[p, digits(name, p)] for p in points_of(name)] for name in sorted(ELEMENTWISE)}


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(cases)}" for name, cases in references().items())
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")
