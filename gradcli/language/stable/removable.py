"""Removable singularities: expressions such as sin(x)/x at 0, which have a limit where they are 0/0 as written.

An expression in one variable is examined at points where it may be nan. Where it has a Taylor series there, it is
evaluated by that series near the point, where the expression as written would lose digits. The variable may be any
subexpression, as a*x in sin(a*x)/(a*x). Other expressions are examined at run time, where they have no value or no
derivative; see `gradcli.language.stable.limits_at_points`.

In exact arithmetic the series is computed with fractions, and used only at the point itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache, lru_cache, partial

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact, ratio
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.language.names import scope
from gradcli.language.names.resolution import resolve
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.language.stable import singularity_search, stable_expressions
from gradcli.language.stable.stable_expressions import RewrittenExpression
from gradcli.language.stable.stable_forms import COMPLETE_AT_0, StableForm
from gradcli.language.syntax import tree
from gradcli.primitives.entries.arithmetic import add, multiply
from gradcli.primitives.entries.powers import power
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.language.stable.limits_at_points import ExpressionPlan
    from gradcli.language.stable.one_variable import ExpressionReader, Form, OneVariable, Place, Real
    from gradcli.primitives.entries.elementwise.taylor_series import ExactSeries, PointSeries, SeriesOverBalls

# Size of the caches of series and limits.
_MOST_FORMS = 10_000
# Cost of examining an expression, in eighths of a step.
_EXAMINE_COST = 16
# The numbers in a function are searched until there are this many points to examine.
_MOST_NUMBERS = 4
# The number of coefficients that show that a series exists; and how many further terms are expanded, at first and at
# most, as leading terms may cancel.
_FIRST_COEFFICIENTS, _FURTHER, _MOST_FURTHER = 4, 4, 64
# Distances up to 2 to the power of plus or minus this need no scaling: even their sixtieth power is a float.
_USUAL_EXPONENT = 16
# Largest relative difference between the series and the expression at the radius of the series, where both have most of
# their digits.
_TOLERANCE = 1e-7
# Distances on both sides of a point, at one of which a function with a series there has a value.
_AROUND = tuple(2.0**-k for k in (4, 12, 25, 50, 100, 300, 1000))
# The number of points on a circle at which a series is compared with the function of complex numbers.
_ON_CIRCLE = 16
# Bits of precision with which a series is looked for in exact arithmetic. The mapping has exponents n of the distances
# 2**-n at which the series is compared with the expression, each with the bits needed, as digits cancel there.
_BITS = 256
_NEAR = {30: 1200, 100: 1600, 300: 2000, 1000: 4000, 3000: 9000}


class RemovableSingularity(RewrittenExpression):
    """An expression that, near a point where it is nan as written, is a Taylor series in one variable times powers of
    other expressions; see `gradcli.language.stable.one_variable.OneVariable`."""

    series: PointSeries | ExactSeries
    form: Form
    places: tuple[Place, ...]
    others: tuple[tuple[Place, int], ...]


class RemovableSingularityOverBalls(RewrittenExpression):
    """A removable singularity with a series over balls, used where `is_near` holds; see `removable_over_balls`."""

    series: SeriesOverBalls
    is_near: Callable[[Any], bool]
    places: tuple[Place, ...]
    others: tuple[tuple[Place, int], ...]


class ExpressionWithLimit(RewrittenExpression):
    """An expression that is evaluated by its asymptotic series where it, or a derivative, has no value as written; see
    `gradcli.language.stable.limits_at_points`."""

    plan: ExpressionPlan


def rewritten_expressions(
    program: tree.Module, bound: Collection[str], apart: Collection[str] = ()
) -> Mapping[tree.SyntaxNode, RewrittenExpression]:
    """The expressions of a program that are evaluated in another form, each with that form.

    These have a stable form, a removable singularity or a limit. `bound` are the names of inputs; no form drops a name
    of `apart`. Results are cached on the program, as each run asks for them.
    """
    constants = frozenset(name for name in scope.CONSTANTS if name in bound)
    # Forms found in floats are valid for every namespace, exact ones for their namespace only.
    exactly = arrays.chosen_namespace() if is_exact() else None
    key = constants, frozenset(apart), exactly
    try:
        known: dict[Any, Any] = program._rewrites  # type: ignore[attr-defined]
    except AttributeError:
        known = {}
        object.__setattr__(program, "_rewrites", known)
    found = known.get(key)
    if found is None:
        own = resolve(program).functions
        stable_forms = stable_expressions.stable_expressions(program, own, resolve(program).bound | constants)
        reader = cache(partial(_reader, program, own, constants, key[1]))
        with arrays.using_namespace(exactly), _precise():
            found = stable_forms | _removable(program, reader, stable_forms)
            found = known[key] = found | _limits(program, reader, found)
    return found


def singularities(program: tree.Module, constants: Collection[str]) -> Mapping[tree.SyntaxNode, RemovableSingularity]:
    """The expressions of a program that have a removable singularity in one variable, found in exact arithmetic;
    `constants` are the names of constants that are inputs."""
    with _precise():
        return _removable(program, partial(_reader, program, resolve(program).functions, constants, ()), {})


def _reader(
    program: tree.Module, own: Collection[str], bound: Collection[str], apart: Collection[str]
) -> ExpressionReader:
    # Imported here as few programs have expressions to examine.
    from gradcli.language.stable.one_variable import ExpressionReader

    return ExpressionReader(program, own, bound, apart)


def _precise() -> AbstractContextManager[None]:
    if not is_exact():
        return nullcontext()
    from gradcli.arrays.flint.balls import precise

    return precise(_BITS)


def _removable(
    program: tree.Module,
    made: Callable[[], ExpressionReader],
    known: Mapping[tree.SyntaxNode, RewrittenExpression],
) -> dict[tree.SyntaxNode, RemovableSingularity]:
    """The expressions of a program with a removable singularity; `made` gives the reader of its expressions, `known` has
    the stable forms that are used away from the singularity."""
    if not any(singularity_search.may_be(node, root) for node, root in resolve(program).roots.items()):
        return {}
    reader = made()
    found: dict[tree.SyntaxNode, RemovableSingularity] = {}
    search = singularity_search.SingularitySearch(program, reader)
    for node in search:
        limits.charge_steps(_EXAMINE_COST)
        for read in reader.in_one_variable(node):
            for series in _all_series(read.form):
                text = program.source[node.span.start : node.span.end]
                title = f"Taylor series at {float(series.point):g}"
                rule = StableForm(text, title, "the series of its parts, divided")
                original = found.get(node) or known.get(node) or node
                found[node] = RemovableSingularity(node.span, rule, original, series, read.form, *_in_numbers(read))
            if node in found and not read.others:
                break
        if node in found:
            search.removed(node)
    return found


def _limits(
    program: tree.Module,
    made: Callable[[], ExpressionReader],
    known: Mapping[tree.SyntaxNode, RewrittenExpression],
) -> dict[tree.SyntaxNode, RewrittenExpression]:
    """The expressions of a program to examine at run time where they have no value or no derivative."""
    if not singularity_search.has_irregular(program):
        return {}
    reader = made()
    found: dict[tree.SyntaxNode, RewrittenExpression] = {}
    for node in singularity_search.SingularitySearch(program, reader, singularity_search.may_be_irregular):
        # An expression that cancels to a constant, such as x/x, is left as it is.
        if _is_whole(known.get(node)) or reader.cancels(node):
            continue
        from gradcli.language.stable.limits_at_points import plan_of

        plan = plan_of(node, reader)
        if plan is not None and plan.variables:
            text = program.source[node.span.start : node.span.end]
            rule = StableForm(text, "its limit", "the asymptotic series of its parts")
            found[node] = ExpressionWithLimit(node.span, rule, known.get(node, node), plan)
    return found


def _is_whole(known: RewrittenExpression | None) -> bool:
    """Return whether an expression has another form that covers all of its limits.

    This is one of the forms at 0, or a Taylor series whose other factors contain the variable at most as a plain name.
    """
    if not isinstance(known, RemovableSingularity):
        return known is not None and known.rule.pattern in COMPLETE_AT_0
    variable = {n.id for place in known.places for n in tree.walk(place.node) if isinstance(n, tree.Name)}
    beside = [other.node for other, _ in known.others if not isinstance(other.node, tree.Name)]
    return variable.isdisjoint(n.id for node in beside for n in tree.walk(node) if isinstance(n, tree.Name))


def _in_numbers(read: OneVariable) -> tuple[tuple[Place, ...], tuple[tuple[Place, int], ...]]:
    """The places of the variable and of the other factors, with their multiples as numbers of the namespace."""

    def computed(place: Place) -> Place:
        return place._replace(times=_number(place.times))

    return tuple(map(computed, read.places)), tuple((computed(other), n) for other, n in read.others)


def _number(value: Real) -> Any:
    """A number of the namespace in use; a float where it is whole, as orders are."""
    if not is_exact() or (value % 1 == 0 and abs(value) < EXACT_INTEGERS):
        return float(value)
    return ratio(*value.as_integer_ratio())


def _all_series(form: Form) -> Iterator[PointSeries | ExactSeries]:
    for point in _points(form):
        series = _series_where_nan(form, point, _scalars())
        if series is not None:
            yield series


def _points(form: Form) -> list[Real]:
    """The points at which a function may be nan: 0, 1, -1, and the first other number in it with its negative."""
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
    """The constructors of exact numbers, None in floating point."""
    return arrays.chosen_namespace().scalars if is_exact() else None  # type: ignore[union-attr]


def _series_where_nan(form: Form, point: Real, scalars: Any) -> PointSeries | ExactSeries | None:
    """The series of a function at a point where it is nan, or where the limits of its parts cancel to 0; else None."""
    if form[0] in ("number", "variable", "written"):
        return None
    value = float(_of_limits(form, point, scalars))
    if math.isnan(value) or (value == 0.0 and math.isnan(_direct(form, point))):
        return (_series if scalars is None else _exact_series)(form, point)
    return None


@lru_cache(_MOST_FORMS)
def _limit(form: Form, point: Real, scalars: Any) -> Any:
    """The value or limit of a function at a point; nan where it has none."""
    series = _series_where_nan(form, point, scalars)
    return _of_limits(form, point, scalars) if series is None else series.terms(0)[0]


def _of_limits(form: Form, point: Real, scalars: Any) -> Any:
    """The value of the outermost operation applied to the limits of its operands."""

    def limit(form: Form, point: Real) -> Any:
        return _limit(form, point, scalars)

    if form[0] is power or form[0] is add:
        sizes = [abs(float(limit(f, point))) for f in form[1]]
        # In floating point 1**inf is 1, and the signs of infinities come from signs of zeros, which are arbitrary.
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
    """A number that is not a fraction, made from its text."""
    scalars = _scalars()
    return scalars.constants[text]() if text in scalars.constants else scalars.number(text)


def _direct(form: Form, point: Real) -> Any:
    """The value computed as written, without limits."""
    return _value(form, point, _direct)


def expand_in_series(form: Form, x: Any) -> Any:
    """A function applied to a Laurent series."""
    head, *rest = form
    if head == "number":
        return _number(rest[0])
    if head == "written":
        return _written(rest[0])
    if head == "variable":
        return _number(rest[0]) * power(x, float(rest[1]))
    return head(*[expand_in_series(f, x) for f in rest[0]])


def _coefficients(form: Form, point: Any, order: int) -> Sequence[Any]:
    """The Taylor coefficients of a function up to `order`, or fewer where leading terms cancel."""
    # Imported here as few programs need it.
    from gradcli.kinds.jets import without_observer
    from gradcli.kinds.laurent import Laurent, NoSeriesError

    with without_observer():
        series = expand_in_series(form, Laurent.variable(point, order))
    if not isinstance(series, Laurent):
        raise NoSeriesError("it does not vary")
    return series.taylor()


def _all_coefficients(form: Form, point: float) -> Callable[[int], Sequence[float]]:
    """A function of n that gives the first n Taylor coefficients of a function at a point."""
    from gradcli.kinds.laurent import NoSeriesError

    known: list[float] = []

    def coefficients(count: int) -> Sequence[float]:
        further = _FURTHER
        while len(known) < count:
            # Each expansion starts from scratch, so that the number is at least doubled.
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
    """A power of 2 as the unit of distances from the point, so that further coefficients do not over- or underflow."""
    from gradcli.primitives.entries.elementwise.taylor_series import ratios

    exponents = [math.frexp(r)[1] for r in ratios(known) if math.isfinite(r)]
    least = min(exponents, default=0)
    return 2.0**least if abs(least) > _USUAL_EXPONENT else 1.0


def _in_units(form: Form, unit: float) -> Form:
    """A function of the variable, rewritten for the variable divided by `unit`."""
    head, *rest = form
    if head == "number" or head == "written":
        return form
    if head == "variable":
        return head, rest[0] * unit ** rest[1], rest[1]
    return head, tuple(_in_units(f, unit) for f in rest[0])


@lru_cache(_MOST_FORMS)
def _series(form: Form, point: float) -> PointSeries | None:
    """The Taylor series of a function at a point where it is nan as written; None where it has none."""
    if not _has_values_around(form, point):
        return None
    from gradcli.primitives.entries.elementwise.taylor_series import PointSeries

    try:
        coefficients = _all_coefficients(form, point)
        unit = _unit(coefficients(_FIRST_COEFFICIENTS))
        if unit != 1.0:
            coefficients = _all_coefficients(_in_units(form, unit), point / unit)
            coefficients(_FIRST_COEFFICIENTS)
        series = PointSeries(point, coefficients, unit)
        return series if _agrees(form, series) else None
    except LimitError:
        raise
    except (GradcliError, NotImplementedError, ArithmeticError):
        return None


def _has_values_around(form: Form, point: float) -> bool:
    """Return whether a function has values on both sides of a point, unlike x**1.5 at -1."""
    return all(any(not math.isnan(_direct(form, point + side * t)) for t in _AROUND) for side in (-1.0, 1.0))


def _exact_series(form: Form, point: Real) -> ExactSeries | None:
    """The Taylor series of a function in exact arithmetic, at a point where it is nan as written; None if it has none.

    Where only a series in floats can be found, the result raises EvaluationError when coefficients are asked for.
    """
    from gradcli.arrays.flint.balls import precision
    from gradcli.kinds.laurent import NoSeriesError, ZeroSeriesError
    from gradcli.primitives.entries.elementwise.taylor_series import ExactSeries

    at = _number(point)
    # By precision: derivatives of a high order ask for all orders below it, one by one.
    known: dict[int, Sequence[Any]] = {}

    def coefficients(count: int) -> Sequence[Any]:
        before = known.get(precision(), ())
        if len(before) >= count:
            return before
        for further in (_FIRST_COEFFICIENTS, 4 * _FIRST_COEFFICIENTS, _MOST_FURTHER):
            with suppress(ZeroSeriesError):
                # Each expansion starts from scratch, so that the number is at least doubled.
                found = _coefficients(form, at, max(count, 2 * len(before)) + further)
                if len(found) >= count:
                    known[precision()] = found
                    return found
        raise NoSeriesError("the terms of the series cancel")

    try:
        if _agrees_exactly(form, point, coefficients(_FIRST_COEFFICIENTS)):
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


def _agrees(form: Form, series: PointSeries) -> bool:
    """Return whether a series agrees with a function on both sides of the point, within the accuracy of the function
    there."""
    from gradcli.primitives.entries.elementwise.taylor_series import taylor_series

    sides = [side * series.radius for side in (-1.0, -0.5, 0.5, 1.0)]
    values = [taylor_series(series.point + t, series) for t in sides]
    most = max(map(abs, values))
    return all(abs(_direct(form, series.point + t) - v) <= _TOLERANCE * most for t, v in zip(sides, values))


@lru_cache(_MOST_FORMS)
def is_analytic(form: Form, series: PointSeries | ExactSeries) -> bool:
    """Return whether a series agrees with a function on a circle around the point too, as that of an analytic function
    does; sqrt(x**4)/x**2 is 1 on the real axis, and -1 on the imaginary one."""
    # Imported here as few programs have complex numbers.
    import cmath

    from gradcli.primitives.entries.elementwise.taylor_series import PointSeries, taylor_series

    if not isinstance(series, PointSeries):
        with arrays.using_namespace(None):
            form = _in_floats(form)
            in_floats = _series(form, float(series.point))
            return in_floats is not None and is_analytic(form, in_floats)
    numbers = [
        series.point + series.radius * cmath.rect(1.0, 2.0 * math.pi * k / _ON_CIRCLE) for k in range(_ON_CIRCLE)
    ]
    values = [taylor_series(z, series) for z in numbers]
    most = max(map(abs, values))
    try:
        return all(abs(_in_complex(form, z) - v) <= _TOLERANCE * most for z, v in zip(numbers, values))
    except (GradcliError, NotImplementedError, ArithmeticError):
        return False


def _in_complex(form: Form, z: complex) -> Any:
    """The value of a function of a complex number, computed as written."""
    head, *rest = form
    if head == "number":
        return _number(rest[0])
    if head == "variable":
        return multiply(_number(rest[0]), power(z, float(rest[1])))
    return head(*[_in_complex(f, z) for f in rest[0]])


def _agrees_exactly(form: Form, point: Real, known: Sequence[Any]) -> bool:
    """Return whether leading coefficients agree with a function on both sides of the point, at a distance in
    `_NEAR`."""
    from fractions import Fraction

    from gradcli.arrays.flint.balls import precise

    def is_close(distance: Real) -> bool:
        series = sum(c * _number(distance) ** k for k, c in enumerate(known))
        return bool(abs(_direct(form, Fraction(point) + distance) - series) <= abs(series) * _TOLERANCE)

    for n, bits in _NEAR.items():
        with precise(bits):
            if all(is_close(Fraction(side, 2**n)) for side in (-1, 1)):
                return True
    return False
