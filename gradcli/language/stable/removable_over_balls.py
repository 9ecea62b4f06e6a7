"""Removable singularities in ball arithmetic, where a ball stands for all numbers in it: sin(x)/x over -1..1.

Where f and g have a zero of order m at a point, f(x)/g(x) is a quotient of functions without this zero. Their Taylor
coefficients follow from those of f and g over the ball, to m orders more; see `gradcli.kinds.laurent_range`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

from flint import arb, fmpq

from gradcli import arrays
from gradcli.arrays.flint.balls import Balls, Number, Undecided, exact, interval_evaluation, precision
from gradcli.errors import EvaluationError, LimitError, UndecidedError
from gradcli.kinds.laurent_range import LaurentRange
from gradcli.language.names import scope
from gradcli.language.names.resolution import called_function, resolve
from gradcli.language.stable import removable, stable_expressions
from gradcli.language.stable.one_variable import Form
from gradcli.language.stable.stable_expressions import RewrittenExpression, StableExpression
from gradcli.language.stable.stable_forms import StableForm
from gradcli.language.syntax import tree
from gradcli.primitives.entries.elementwise.taylor_series import SeriesOverBalls

# The series is used for balls whose distance from the point is at most this many radii: that close, the direct quotient
# gives a wider enclosure.
_NEAR = 16
# The highest order of a zero that is tried; each order needs one more coefficient.
_MOST_ZEROS = 12
# The number of balls of which coefficients are cached.
_MOST_KNOWN = 64


def rewrites(program: tree.Module, bound: Collection[str]) -> Mapping[tree.SyntaxNode, RewrittenExpression]:
    """The expressions with a removable singularity in one variable, and the products u*log(u), with their forms.

    `bound` are the names of inputs of the program.
    """
    constants = frozenset(name for name in scope.CONSTANTS if name in bound)
    own = resolve(program).functions
    products: dict[tree.SyntaxNode, RewrittenExpression] = {
        product.original: product for product in logarithmic_products(program, own)
    }
    return products | {node: _over_balls(known) for node, known in removable.singularities(program, constants).items()}


def _over_balls(known: removable.RemovableSingularity) -> removable.RemovableSingularityOverBalls:
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
    if isinstance(original, removable.RemovableSingularity):
        original = _over_balls(original)
    return removable.RemovableSingularityOverBalls(
        known.span, known.rule, original, series, is_near, known.places, known.others
    )


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
        doubts = Undecided()
        try:
            with interval_evaluation(doubts), arrays.quiet():
                x = LaurentRange.variable(Balls(point), Balls(around), count + zeros)
                series = removable.expand_in_series(form, x)
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


# --- products u*log(u): enclosures of them are then bounded down to u = 0, where log(u) is not

_RULE = StableForm("x*log(x)", "-entr(x)", "entr(x) is -x*log(x), and 0 at 0")


def logarithmic_products(program: tree.Module, own: Collection[str]) -> Iterator[StableExpression]:
    """The products with factors u and log(u), in their rewritten form; `own` are functions that the program defines."""
    inner: set[tree.SyntaxNode] = set()
    for node in tree.all_nodes(program):
        if not isinstance(node, tree.Binary) or node.operator != "*" or node in inner:
            continue
        factors = [*_factors(node, inner)]
        for place, factor in enumerate(factors):
            found = _with_entropy(program, factors, place, node) if _is_log(factor, own) else None
            if found is not None:
                yield StableExpression(node.span, _RULE, node, found, {})
                break


def _factors(node: tree.Expression, inner: set[tree.SyntaxNode]) -> Iterator[tree.Expression]:
    """The factors of a product from left to right; a unary minus gives a factor of -1."""
    if isinstance(node, tree.Binary) and node.operator == "*":
        inner.add(node)
        yield from _factors(node.left, inner)
        yield from _factors(node.right, inner)
    elif isinstance(node, tree.Unary) and node.operator == "-":
        yield tree.Number(node.span, -1.0, "")
        yield from _factors(node.operand, inner)
    else:
        yield node


def _is_log(node: tree.Expression, own: Collection[str]) -> bool:
    if not isinstance(node, tree.Call) or node.receiver or node.keywords or node.name in own:
        return False
    return len(node.arguments) == 1 and called_function(node) == "log"


def _with_entropy(
    program: tree.Module, factors: list[tree.Expression], place: int, node: tree.Expression
) -> tree.Expression | None:
    """The product of `factors` with u*log(u) replaced by -entr(u); None where u is not a factor.

    `place` is the index of log(u).
    """
    log = factors[place]
    assert isinstance(log, tree.Call)
    (operand,) = log.arguments
    text = _text(program, operand)
    for other, factor in enumerate(factors):
        rest = [f for n, f in enumerate(factors) if n not in (place, other)]
        if isinstance(factor, tree.Binary) and factor.operator == "**" and isinstance(factor.right, tree.Number):
            if _text(program, factor.left) != text or factor.right.value % 1.0 or factor.right.value < 2.0:
                continue
            exponent = tree.Number(factor.right.span, factor.right.value - 1.0, "")
            rest.append(tree.Binary(factor.span, "**", factor.operator_span, factor.left, exponent))
        elif _text(program, factor) != text:
            continue
        entropy = tree.Call(log.span, "entr", log.span, None, (operand,), (), stable_expressions.MODULE)
        rest += [tree.Number(node.span, -1.0, ""), entropy]
        return reduce(lambda a, b: tree.Binary(node.span, "*", node.span, a, b), rest)
    return None


def _text(program: tree.Module, node: tree.Expression) -> str:
    text = "".join(program.source[node.span.start : node.span.end].split())
    return text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text
