"""Removable singularities: expressions such as sin(x)/x at 0, which have a value where they are 0/0 as they stand.

An expression in one variable is looked at where it may be nan, and where it has a Taylor series there, that is what it
is evaluated by nearby, where the expression as it stands would have lost its digits. The variable may be any expression,
as in sin(a*x)/(a*x). Other expressions are looked at where they have no value, or no derivative, as the program runs; see
`gradcli.language.limits_at_points`.

In numbers that do not round the same is done with fractions, and the series is used at the point alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.arrays.constants import is_exact, ratio
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.language import scope, singular, stable
from gradcli.language.stable import Rewritten
from gradcli.language.stable_forms import AT_0, StableForm
from gradcli.language.syntax import tree
from gradcli.primitives.arithmetic import add, multiply
from gradcli.primitives.powers import power

if TYPE_CHECKING:
    from gradcli.language.limits_at_points import Plan
    from gradcli.language.one_variable import Form, OneVariable, Place, Real
    from gradcli.primitives.taylor_series import ExactSeries, Series, SeriesOverBalls

_MOST_FORMS = 10_000
# To look at an expression, in eighths of steps.
_LOOK = 16
_MOST_NUMBERS = 4
# So many coefficients show that there is a series; those that cancel are asked for again, and not for ever.
_FEW, _FURTHER, _MOST_FURTHER = 4, 4, 64
# Within 2 to the power of plus or minus this, distances at which terms are as large as the first are usual: even the
# sixtieth power of them is a float.
_USUAL_EXPONENT = 16
# How far the series and the expression may be apart at its radius, where both have most of their digits.
_TOLERANCE = 1e-7
# Bits with which it is found out whether there is a series of numbers that do not round, and the distances at which it is
# compared with the expression, 2 to the power of minus these, each with the bits for what cancels there.
_BITS = 256
_NEAR = {30: 1200, 100: 1600, 300: 2000, 1000: 4000, 3000: 9000}
# Whole numbers below it are floats.
_WHOLE = 2**53


class Removable(Rewritten):
    """An expression that is a Taylor series in one variable, near a point where it is nan as it stands, times powers of
    others; see `gradcli.language.one_variable.OneVariable`."""

    series: Series | ExactSeries
    form: Form
    places: tuple[Place, ...]
    others: tuple[tuple[Place, int], ...]


class RemovableOverBalls(Rewritten):
    """A removable singularity as its series at all points of balls, where it `is_near` the point; see
    `gradcli.language.removable_over_balls`."""

    series: SeriesOverBalls
    is_near: Callable[[Any], bool]
    places: tuple[Place, ...]
    others: tuple[tuple[Place, int], ...]


class Limiting(Rewritten):
    """An expression that is its asymptotic series where it, or a derivative of it, has no value as it stands; see
    `gradcli.language.limits_at_points`."""

    plan: Plan


def rewrites(
    program: tree.Module, bound: Collection[str], apart: Collection[str] = ()
) -> Mapping[tree.SyntaxNode, Rewritten]:
    """The expressions of a program that are evaluated in another form, `bound` being the names with values from outside
    and `apart` those that no form may leave out: the expressions that have a stable form and those with a removable
    singularity. A program is asked for them again and again."""
    constants = frozenset(name for name in scope.CONSTANTS if name in bound)
    # In floats what is found is kept for all runs, whatever computes them.
    exactly = arrays.chosen_namespace() if is_exact() else None
    key = constants, frozenset(apart), exactly
    try:
        known: dict[Any, Any] = program._rewrites  # type: ignore[attr-defined]
    except AttributeError:
        known = {}
        object.__setattr__(program, "_rewrites", known)
    found = known.get(key)
    if found is None:
        own = scope.defined_functions(program)
        stable_forms = stable.rewrites(program, own, scope.inner_names(program) | constants)
        with arrays.using_namespace(exactly), _precise():
            found = stable_forms | _removable(program, own, constants, key[1], stable_forms)
            found = known[key] = found | _limits(program, own, constants, key[1], found)
    return found


def singularities(program: tree.Module, constants: Collection[str]) -> Mapping[tree.SyntaxNode, Removable]:
    """The expressions of a program that have a removable singularity in one variable, in numbers that do not round;
    `constants` are the names of constants that have values from outside."""
    with _precise():
        return _removable(program, scope.defined_functions(program), constants, (), {})


def _precise() -> AbstractContextManager[None]:
    if not is_exact():
        return nullcontext()
    from gradcli.arrays.balls import precise

    return precise(_BITS)


def _removable(
    program: tree.Module,
    own: Collection[str],
    bound: Collection[str],
    apart: Collection[str],
    known: Mapping[tree.SyntaxNode, Rewritten],
) -> dict[tree.SyntaxNode, Removable]:
    """The expressions of a program with a removable singularity, where `own` are the functions that it defines, and
    `known` the stable forms that they have elsewhere."""
    if not any(map(singular.may_be, tree.everything(program))):
        return {}
    # Loaded by programs with such expressions.
    from gradcli.language.one_variable import Reader

    reader = Reader(program, own, bound, apart)
    found: dict[tree.SyntaxNode, Removable] = {}
    search = singular.Search(program, reader)
    for node in search:
        limits.charge_steps(_LOOK)
        for read in reader.in_one_variable(node):
            for series in _all_series(read.form):
                text = program.source[node.span.start : node.span.end]
                title = f"Taylor series at {float(series.point):g}"
                rule = StableForm(text, title, "the series of its parts, divided")
                original = found.get(node) or known.get(node) or node
                found[node] = Removable(node.span, rule, original, series, read.form, *_in_numbers(read))
            if node in found and not read.others:
                break
        if node in found:
            search.removed(node)
    return found


def _limits(
    program: tree.Module,
    own: Collection[str],
    bound: Collection[str],
    apart: Collection[str],
    known: Mapping[tree.SyntaxNode, Rewritten],
) -> dict[tree.SyntaxNode, Rewritten]:
    """The expressions of a program that are looked at, when it runs, where they have no value or no derivative."""
    if not singular.has_irregular(program):
        return {}
    # Loaded by programs with such expressions.
    from gradcli.language.limits_at_points import plan_of
    from gradcli.language.one_variable import Reader

    reader = Reader(program, own, bound, apart)
    found: dict[tree.SyntaxNode, Rewritten] = {}
    for node in singular.Search(program, reader, singular.may_be_irregular):
        # Of what cancels altogether as it is written, such as x/x, nothing is left that has a value.
        skipped = _is_whole(known.get(node)) or reader.cancels(node)
        plan = None if skipped else plan_of(node, reader)
        if plan is not None and plan.variables:
            text = program.source[node.span.start : node.span.end]
            rule = StableForm(text, "its limit", "the asymptotic series of its parts")
            found[node] = Limiting(node.span, rule, known.get(node, node), plan)
    return found


def _is_whole(known: Rewritten | None) -> bool:
    """Whether an expression has another form that knows its limits: one at 0, or a Taylor series beside which no factor
    varies with the variable by a function of it."""
    if not isinstance(known, Removable):
        return known is not None and known.rule.pattern in AT_0
    variable = {n.id for place in known.places for n in tree.walk(place.node) if isinstance(n, tree.Name)}
    beside = [other.node for other, _ in known.others if not isinstance(other.node, tree.Name)]
    return variable.isdisjoint(n.id for node in beside for n in tree.walk(node) if isinstance(n, tree.Name))


def _in_numbers(read: OneVariable) -> tuple[tuple[Place, ...], tuple[tuple[Place, int], ...]]:
    """Where the variable stands, and the others, with numbers that are computed with."""

    def computed(place: Place) -> Place:
        return place._replace(times=_number(place.times))

    return tuple(map(computed, read.places)), tuple((computed(other), n) for other, n in read.others)


def _number(value: Real) -> Any:
    """A number that is computed with; a float where it is whole, as orders are."""
    if not is_exact() or (value % 1 == 0 and abs(value) < _WHOLE):
        return float(value)
    return ratio(*value.as_integer_ratio())


def _all_series(form: Form) -> Iterator[Series | ExactSeries]:
    for point in _points(form):
        series = _series_where_nan(form, point, _scalars())
        if series is not None:
            yield series


def _points(form: Form) -> list[Real]:
    """Where a function may be nan: at 0, at 1 and at the numbers in it."""
    found: dict[Real, None] = {0.0: None, 1.0: None, -1.0: None}
    waiting = [form]
    while waiting and len(found) < _MOST_NUMBERS:
        head, *rest = waiting.pop()
        if head == "number":
            found |= {rest[0]: None, -rest[0]: None}
        elif head != "variable" and head != "written":
            waiting.extend(rest[0])
    return [*found]


def _scalars() -> Any:
    """What makes numbers that do not round, None where they are floats."""
    return arrays.chosen_namespace().scalars if is_exact() else None  # type: ignore[union-attr]


def _series_where_nan(form: Form, point: Real, scalars: Any) -> Series | ExactSeries | None:
    """The series of a function at a point where it is nan; where its parts are alone, if digits of their limits cancel."""
    if form[0] in ("number", "variable", "written"):
        return None
    value = float(_of_limits(form, point, scalars))
    if math.isnan(value) or (value == 0.0 and math.isnan(_direct(form, point))):
        return (_series if scalars is None else _exact_series)(form, point)
    return None


@lru_cache(_MOST_FORMS)
def _limit(form: Form, point: Real, scalars: Any) -> Any:
    """The value of a function at a point; nan where it has none."""
    series = _series_where_nan(form, point, scalars)
    return _of_limits(form, point, scalars) if series is None else series.terms(0)[0]


def _of_limits(form: Form, point: Real, scalars: Any) -> Any:
    """The value where the parts are what they are at the point."""

    def limit(form: Form, point: Real) -> Any:
        return _limit(form, point, scalars)

    if form[0] is power or form[0] is add:
        sizes = [abs(float(limit(f, point))) for f in form[1]]
        # In floating point 1**inf is 1, and the signs of infinities are those of zeros, which are any.
        if sizes == ([1.0, math.inf] if form[0] is power else [math.inf, math.inf]):
            return math.nan
    return _value(form, point, limit)


def _value(form: Form, point: Real, of_part: Callable[[Form, Real], Any]) -> Any:
    head, *rest = form
    try:
        if head == "number":
            return _number(rest[0])
        if head == "written":
            return _written(rest[0])
        if head == "variable":
            found = multiply(_number(rest[0]), power(_number(point), float(rest[1])))
        else:
            found = head(*[of_part(f, point) for f in rest[0]])
        return found if is_exact() else float(found)
    except LimitError:
        raise
    except (GradcliError, NotImplementedError, ArithmeticError):
        return math.nan


def _written(text: str) -> Any:
    """A number that is no fraction, by its text."""
    scalars = _scalars()
    return scalars.constants[text]() if text in scalars.constants else scalars.number(text)


def _direct(form: Form, point: Real) -> Any:
    """The value as it is computed, without limits."""
    return _value(form, point, _direct)


def expanded(form: Form, x: Any) -> Any:
    """A function of a Laurent series."""
    head, *rest = form
    if head == "number":
        return _number(rest[0])
    if head == "written":
        return _written(rest[0])
    if head == "variable":
        return _number(rest[0]) * power(x, float(rest[1]))
    return head(*[expanded(f, x) for f in rest[0]])


def _coefficients(form: Form, point: Any, order: int) -> Sequence[Any]:
    """Those of the Taylor series of a function, up to this order or, where some cancel, a lower one."""
    # Most programs do without.
    from gradcli.kinds.laurent import Laurent, NoSeriesError, unobserved

    with unobserved():
        series = expanded(form, Laurent.variable(point, order))
    if not isinstance(series, Laurent):
        raise NoSeriesError("it does not vary")
    return series.taylor()


def _all_coefficients(form: Form, point: float) -> Callable[[int], Sequence[float]]:
    """What gives the first so many coefficients of a function's Taylor series at a point."""
    from gradcli.kinds.laurent import NoSeriesError

    known: list[float] = []

    def coefficients(count: int) -> Sequence[float]:
        further = _FURTHER
        while len(known) < count:
            # They are made anew each time, so that twice as many are asked for.
            wanted = max(count, 2 * len(known))
            found = _coefficients(form, point, wanted + further)
            further += max(1, wanted - len(found))
            if len(found) >= wanted:
                known[:] = found
            elif further > _MOST_FURTHER:
                raise NoSeriesError("the terms of the series cancel")
        return known[:count]

    return coefficients


def _unit(known: Sequence[float]) -> float:
    """The power of 2 in which to count distances from the point, so that the coefficients that follow are floats too."""
    from gradcli.primitives.taylor_series import ratios

    exponents = [math.frexp(r)[1] for r in ratios(known) if math.isfinite(r)]
    least = min(exponents, default=0)
    return 2.0**least if abs(least) > _USUAL_EXPONENT else 1.0


def _in_units(form: Form, unit: float) -> Form:
    """A function of the variable as one of the variable divided by the unit."""
    head, *rest = form
    if head == "number" or head == "written":
        return form
    if head == "variable":
        return head, rest[0] * unit ** rest[1], rest[1]
    return head, tuple(_in_units(f, unit) for f in rest[0])


@lru_cache(_MOST_FORMS)
def _series(form: Form, point: float) -> Series | None:
    """The Taylor series of a function at a point where it is nan as it stands; None where it has none."""
    from gradcli.primitives.taylor_series import Series

    try:
        coefficients = _all_coefficients(form, point)
        unit = _unit(coefficients(_FEW))
        if unit != 1.0:
            coefficients = _all_coefficients(_in_units(form, unit), point / unit)
            coefficients(_FEW)
        series = Series(point, coefficients, unit)
        return series if _agrees(form, series) else None
    except LimitError:
        raise
    except (GradcliError, NotImplementedError, ArithmeticError):
        return None


def _exact_series(form: Form, point: Real) -> ExactSeries | None:
    """The Taylor series of a function, in numbers that do not round, at a point where it is nan as it stands; None where
    it has none. Where one in floats is all that is known, it gives no coefficients, but raises EvaluationError."""
    from gradcli.kinds.laurent import NoSeriesError, ZeroError
    from gradcli.primitives.taylor_series import ExactSeries

    at = _number(point)

    def coefficients(count: int) -> Sequence[Any]:
        for further in (_FEW, 4 * _FEW, _MOST_FURTHER):
            with suppress(ZeroError):
                found = _coefficients(form, at, count + further)
                if len(found) >= count:
                    return found
        raise NoSeriesError("the terms of the series cancel")

    try:
        if _agrees_exactly(form, point, coefficients(_FEW)):
            return ExactSeries(at, coefficients)
    except LimitError:
        raise
    except (GradcliError, NotImplementedError, ArithmeticError):
        pass
    try:
        with arrays.using_namespace(None):
            rounded = _series(_in_floats(form), float(point))
    except OverflowError:
        return None
    return None if rounded is None else ExactSeries(at, _unproved)


def _unproved(_count: int) -> Sequence[Any]:
    raise EvaluationError(
        "this has no value as it stands, and no digits of its limit are proved",
        hint="a number in it is not told from 0; at points nearby there are digits",
    )


def _in_floats(form: Form) -> Form:
    head, *rest = form
    if head == "written":
        return "number", scope.LIBRARY_CONSTANTS.get(rest[0]) or float(rest[0])
    if head == "number" or head == "variable":
        return head, float(rest[0]), *rest[1:]
    return head, tuple(map(_in_floats, rest[0]))


def _agrees(form: Form, series: Series) -> bool:
    """Whether a series is that of a function on both sides, as far as the function itself has digits there."""
    from gradcli.primitives.taylor_series import taylor_series

    sides = [side * series.radius for side in (-1.0, -0.5, 0.5, 1.0)]
    values = [taylor_series(series.point + t, series) for t in sides]
    most = max(map(abs, values))
    return all(abs(_direct(form, series.point + t) - v) <= _TOLERANCE * most for t, v in zip(sides, values))


def _agrees_exactly(form: Form, point: Real, known: Sequence[Any]) -> bool:
    """Whether the coefficients that are known are those of a function on both sides, where it is near enough."""
    from fractions import Fraction

    from gradcli.arrays.balls import precise

    def is_close(distance: Real) -> bool:
        series = sum(c * _number(distance) ** k for k, c in enumerate(known))
        return bool(abs(_direct(form, Fraction(point) + distance) - series) <= abs(series) * _TOLERANCE)

    for n, bits in _NEAR.items():
        with precise(bits):
            if all(is_close(Fraction(side, 2**n)) for side in (-1, 1)):
                return True
    return False
