"""Removable singularities: expressions such as sin(x)/x at 0, which have a value where they are 0/0 as they stand.

An expression in one variable is looked at where it may be nan, and where it has a Taylor series there, that is what it
is evaluated by nearby, where the expression as it stands would have lost its digits. The variable may be any expression,
as in sin(a*x)/(a*x). What cancels as it is written, as in x/x, is left alone: it has no value at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.errors import GradcliError, LimitError
from gradcli.language import scope, singular, stable
from gradcli.language.stable import Rewritten, StableForm
from gradcli.language.syntax import tree
from gradcli.primitives.arithmetic import add, multiply
from gradcli.primitives.powers import power

if TYPE_CHECKING:
    from gradcli.language.one_variable import Form, Place
    from gradcli.primitives.taylor_series import ExactSeries, Series

_MOST_FORMS = 10_000
# To look at an expression, in eighths of steps.
_LOOK = 16
_MOST_NUMBERS = 4
# So many coefficients show that there is a series; those that cancel are asked for again, and not for ever.
_FEW, _FURTHER, _MOST_FURTHER = 4, 4, 64
# A short number is a multiple of 1 over it, and smaller than it.
_SHORT, _LONG = 2.0**20, 20
# How far the series and the expression may be apart at its radius, where both have most of their digits.
_TOLERANCE = 1e-7


class Removable(Rewritten):
    """An expression that is a Taylor series in one variable, near a point where it is nan as it stands, times powers of
    others; see `gradcli.language.one_variable.OneVariable`. `form` is None where a number in it was rounded."""

    form: Form | None
    series: Series
    places: tuple[Place, ...]
    others: tuple[tuple[Place, int], ...]


def rewrites(
    program: tree.Module, bound: Collection[str], apart: Collection[str] = ()
) -> Mapping[tree.SyntaxNode, Rewritten]:
    """The expressions of a program that are evaluated in another form, `bound` being the names with values from outside
    and `apart` those that no form may leave out: the expressions that have a stable form and those with a removable
    singularity. A program is asked for them again and again."""
    constants = frozenset(name for name in scope.CONSTANTS if name in bound)
    key = constants, frozenset(apart)
    try:
        known: dict[tuple[frozenset[str], frozenset[str]], Any] = program._rewrites  # type: ignore[attr-defined]
    except AttributeError:
        known = {}
        object.__setattr__(program, "_rewrites", known)
    found = known.get(key)
    if found is None:
        own = scope.defined_functions(program)
        stable_forms = stable.rewrites(program, own)
        # What is found is kept for all runs: it is of floats, whatever computes this one.
        with arrays.using_namespace(None):
            found = known[key] = stable_forms | _removable(program, own, *key, stable_forms)
    return found


def _removable(
    program: tree.Module,
    own: Collection[str],
    bound: Collection[str],
    apart: Collection[str],
    known: Mapping[tree.SyntaxNode, Rewritten],
) -> dict[tree.SyntaxNode, Rewritten]:
    """The expressions of a program with a removable singularity, where `own` are the functions that it defines, and
    `known` the stable forms that they have elsewhere."""
    if not any(map(singular.may_be, tree.everything(program))):
        return {}
    # Loaded by programs with such expressions.
    from gradcli.language.one_variable import Reader

    reader = Reader(program, own, bound, apart)
    found: dict[tree.SyntaxNode, Rewritten] = {}
    search = singular.Search(program, reader)
    for node in search:
        limits.charge_steps(_LOOK)
        for read in reader.in_one_variable(node):
            for series in _all_series(read.form):
                text = program.source[node.span.start : node.span.end]
                rule = StableForm(text, f"Taylor series at {series.point:g}", "the series of its parts, divided")
                original = found.get(node) or known.get(node) or node
                form = read.form if read.exact else None
                found[node] = Removable(node.span, rule, original, form, series, read.places, read.others)
            if node in found and not read.others:
                break
        if node in found:
            search.removed(node)
    return found


def _all_series(form: Form) -> Iterator[Series]:
    for point in _points(form):
        series = _series_where_nan(form, point)
        if series is not None:
            yield series


def _points(form: Form) -> list[float]:
    """Where a function may be nan: at 0, at 1 and at the numbers in it."""
    found = {0.0: None, 1.0: None, -1.0: None}
    waiting = [form]
    while waiting and len(found) < _MOST_NUMBERS:
        head, *rest = waiting.pop()
        if head == "number":
            found |= {rest[0]: None, -rest[0]: None}
        elif head != "variable":
            waiting.extend(rest[0])
    return [*found]


def _series_where_nan(form: Form, point: float) -> Series | None:
    """The series of a function at a point where it is nan; where its parts are alone, if digits of their limits cancel."""
    if form[0] in ("number", "variable"):
        return None
    value = _of_limits(form, point)
    if math.isnan(value) or (value == 0.0 and math.isnan(_direct(form, point))):
        return _series(form, point)
    return None


@lru_cache(_MOST_FORMS)
def _limit(form: Form, point: float) -> float:
    """The value of a function at a point; nan where it has none."""
    series = _series_where_nan(form, point)
    return _of_limits(form, point) if series is None else series.terms(0)[0]


def _of_limits(form: Form, point: float) -> float:
    """The value where the parts are what they are at the point."""
    if form[0] is power or form[0] is add:
        sizes = [abs(_limit(f, point)) for f in form[1]]
        # In floating point 1**inf is 1, and the signs of infinities are those of zeros, which are any.
        if sizes == ([1.0, math.inf] if form[0] is power else [math.inf, math.inf]):
            return math.nan
    return _value(form, point, _limit)


def _value(form: Form, point: float, of_part: Callable[[Form, float], float]) -> float:
    head, *rest = form
    if head == "number":
        return float(rest[0])
    try:
        if head == "variable":
            return float(multiply(rest[0], power(point, float(rest[1]))))
        return float(head(*[of_part(f, point) for f in rest[0]]))
    except LimitError:
        raise
    except (GradcliError, NotImplementedError, ArithmeticError):
        return math.nan


def _direct(form: Form, point: float) -> float:
    """The value as it is computed, without limits."""
    return _value(form, point, _direct)


def _expanded(form: Form, x: Any) -> Any:
    """A function of a Laurent series."""
    head, *rest = form
    if head == "number":
        return rest[0]
    if head == "variable":
        return rest[0] * power(x, float(rest[1]))
    return head(*[_expanded(f, x) for f in rest[0]])


@lru_cache(_MOST_FORMS)
def _series(form: Form, point: float) -> Series | None:
    """The Taylor series of a function at a point where it is nan as it stands; None where it has none."""
    # Most programs do without.
    from gradcli.kinds.laurent import Laurent, NoSeriesError, unobserved
    from gradcli.primitives.taylor_series import Series

    known: list[float] = []

    def coefficients(count: int) -> Sequence[float]:
        further = _FURTHER
        while len(known) < count:
            # They are made anew each time, so that twice as many are asked for.
            wanted = max(count, 2 * len(known))
            with unobserved():
                expanded = _expanded(form, Laurent.variable(point, wanted + further))
            if not isinstance(expanded, Laurent):
                raise NoSeriesError("it does not vary")
            found = expanded.taylor()
            further += max(1, wanted - len(found))
            if len(found) >= wanted:
                known[:] = found
            elif further > _MOST_FURTHER:
                raise NoSeriesError("the terms of the series cancel")
        return known[:count]

    try:
        coefficients(_FEW)
        series = Series(point, coefficients)
        return series if _agrees(form, series) else None
    except LimitError:
        raise
    except (GradcliError, NotImplementedError, ArithmeticError):
        return None


def limit(node: Removable, program: tree.Module) -> ExactSeries | None:
    """The series of an expression at its point, in numbers that do not round; None where those of its text, which are
    read as floats, may have."""
    from gradcli.kinds.laurent import Laurent, NoSeriesError, unobserved
    from gradcli.language.one_variable import numbers_in
    from gradcli.primitives.taylor_series import ExactSeries

    form = node.form
    if form is None:
        return None
    written = (n for n in tree.everything(program) if isinstance(n, tree.Number))
    read = *numbers_in(form), *(place.times for place in (*node.places, *(other for other, _ in node.others)))
    if not all(map(_is_short, read)) or not all(map(_is_read_exactly, written)):
        return None

    def coefficients(count: int) -> Sequence[Any]:
        for further in (_FEW, _MOST_FURTHER):
            with unobserved():
                found = _expanded(form, Laurent.variable(node.series.point, count + further)).taylor()
            if len(found) >= count:
                return found  # type: ignore[no-any-return]
        raise NoSeriesError("the terms of the series cancel")

    return ExactSeries(node.series.point, coefficients)


def _is_read_exactly(number: tree.Number) -> bool:
    if not number.text:
        return True
    # What most programs do without.
    from fractions import Fraction

    # Exponents may be large.
    return len(number.text) < _LONG and number.text.strip("0123456789.") == "" and number.value == Fraction(number.text)


def _is_short(number: float) -> bool:
    """Whether it has few bits: one that was read as a float may have been rounded else."""
    return abs(number) < _SHORT and (number * _SHORT) % 1.0 == 0.0


def _agrees(form: Form, series: Series) -> bool:
    """Whether a series is that of a function on both sides, as far as the function itself has digits there."""
    from gradcli.primitives.taylor_series import taylor_series

    sides = [side * series.radius for side in (-1.0, -0.5, 0.5, 1.0)]
    values = [taylor_series(series.point + t, series) for t in sides]
    most = max(map(abs, values))
    return all(abs(_direct(form, series.point + t) - v) <= _TOLERANCE * most for t, v in zip(sides, values))
