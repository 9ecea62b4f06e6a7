"""Removable singularities in ball arithmetic, where a ball stands for all numbers in it: sin(x)/x over -1..1.

Where f and g have a zero of order m at a point, f(x)/g(x) is a quotient of functions without this zero. Their Taylor
coefficients follow from those of f and g over the ball, to m orders more; see `gradcli.kinds.laurent_range`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from gradcli import arrays
from gradcli.arrays.flint.balls import Balls, Doubts, Number, doubting, exact, precision
from gradcli.errors import EvaluationError, LimitError, UndecidedError
from gradcli.kinds.laurent_range import LaurentRange
from gradcli.language.names import scope
from gradcli.language.stable import removable
from gradcli.language.stable.logarithmic_products import logarithmic_products
from gradcli.language.stable.one_variable import Form
from gradcli.language.stable.stable_expressions import Rewritten
from gradcli.language.syntax import tree
from gradcli.primitives.entries.taylor_series import SeriesOverBalls

# The series is used for balls whose distance from the point is at most this many radii: that close, the direct quotient
# gives a wider enclosure.
_NEAR = 16
# The highest order of a zero that is tried; each order needs one more coefficient.
_MOST_ZEROS = 12
# The number of balls of which coefficients are cached.
_MOST_KNOWN = 64


def rewrites(program: tree.Module, bound: Collection[str]) -> Mapping[tree.SyntaxNode, Rewritten]:
    """The expressions with a removable singularity in one variable, and the products u*log(u), with their forms.

    `bound` are the names of inputs of the program.
    """
    constants = frozenset(name for name in scope.CONSTANTS if name in bound)
    own = scope.defined_functions(program)
    products: dict[tree.SyntaxNode, Rewritten] = {
        product.original: product for product in logarithmic_products(program, own)
    }
    return products | {node: _over_balls(known) for node, known in removable.singularities(program, constants).items()}


def _over_balls(known: removable.Removable) -> removable.RemovableOverBalls:
    point, form = exact(known.series.point), known.form

    def is_near(x: Any) -> bool:
        return any(_is_near(number, point) for number in _numbers(x).ravel())

    # Cached per ball, as the derivatives of a number are asked for one after another.
    @lru_cache(_MOST_KNOWN)
    def coefficients(_key: Any) -> list[Number]:
        return []

    def coefficient(number: Number, n: int) -> Number:
        known = coefficients((_key(number), precision()))
        if n >= len(known):
            known[:] = _coefficients(form, point, number, max(n + 1, 2 * len(known)))
        return known[n]

    def derivative(x: Any, n: int) -> Balls:
        given = _numbers(x)
        found = given.copy()
        for place, number in enumerate(given.flat):
            found.flat[place] = coefficient(number, n) * math.factorial(n)
        return Balls(found if found.shape else found.item())

    series = SeriesOverBalls(point, derivative)
    original = known.original
    if isinstance(original, removable.Removable):
        original = _over_balls(original)
    return removable.RemovableOverBalls(known.span, known.rule, original, series, is_near, known.places, known.others)


def _numbers(x: Any) -> Any:
    """The balls of an array or a scalar, as a NumPy object array."""
    import numpy

    numbers = x.numbers if type(x) is Balls else exact(x)
    if getattr(numbers, "shape", ()):
        return numbers
    array = numpy.empty((), object)
    array[()] = numbers
    return array


def _is_near(number: Number, point: Number) -> bool:
    distance = number - point
    if type(distance) is fmpq:
        return not distance
    return bool(distance.abs_lower() <= _NEAR * distance.rad())


def _key(number: Number) -> Any:
    return number if type(number) is fmpq else (number.mid().man_exp(), number.rad().man_exp())


def _coefficients(form: Form, point: Number, number: Number, count: int) -> Sequence[Number]:
    """The Taylor coefficients, `count` or more, of a function over all points of a ball.

    Raises UndecidedError where it has no series there.
    """
    way = number - point
    around = way if type(way) is fmpq and not way else arb(0).union(arb(way))
    for zeros in range(_MOST_ZEROS + 1):
        doubts = Doubts()
        try:
            with doubting(doubts), arrays.quiet():
                x = LaurentRange.variable(Balls(point), Balls(around), count + zeros)
                series = removable.expanded(form, x)
                known = series.taylor() if isinstance(series, LaurentRange) else ()
        except LimitError:
            raise
        except (EvaluationError, NotImplementedError, ArithmeticError):
            continue
        if doubts.jumped or doubts.decisions:
            break
        if len(known) >= count:
            found = [fmpq(0) if c is None else _numbers(c).item() for c in known]
            if all(type(c) is fmpq or c.is_finite() for c in found[:count]):
                return found
            break
    raise UndecidedError("a function has no series over a ball")
