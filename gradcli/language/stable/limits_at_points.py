"""Limits, with derivatives, at points where an expression or a derivative of it has no value as written.

They are computed from the asymptotic series at the point, see `gradcli.kinds.asymptotic`. This handles what
`gradcli.language.stable.removable` cannot: expressions in several variables, such as (cos(a*x) - cos(b*x))/x**2 at x = 0,
infinite subexpressions, as in 1/(1 + 1/x), and powers and logarithms of which only the first derivatives exist, as in
x**2*log(x). The series is evaluated only at the point itself, not near it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from gradcli import arrays
from gradcli.arrays.mathematical_constants import GOLDEN_RATIO, is_exact
from gradcli.errors import GradcliError, LimitError, UndecidedError
from gradcli.kinds.branch_points import watching
from gradcli.language.stable.one_variable import ExpressionReader, operation_of
from gradcli.language.stable.singularity_search import singular_operand
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, concrete, constant
from gradcli.primitives.entries.arithmetic import absolute, divide, multiply, negative, subtract
from gradcli.primitives.entries.comparisons import equal, isfinite, logical_not, where
from gradcli.primitives.entries.powers import power
from gradcli.primitives.operation import Operation
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.kinds.asymptotic import Asymptotic

# The numbers of exponents beyond the leading one to which a series is computed, tried in this order, and the number
# beyond the highest order that suffices where nothing cancels.
_SERIES_LENGTHS, _BEYOND_ORDER = (10, 24, 48), 2
# The limit is computed to this many orders more than are differentiated at once, as it may be differentiated again.
_EXTRA_ORDERS = 3
# The distances from the point at which a series is compared with the expression, and the relative tolerance.
_DISTANCES = (2.0**-4, 2.0**-7, 2.0**-10, 2.0**-13)
_TOLERANCE = 1e-6
# Relative tolerance to rounding below which two quantities count as equal.
_RELATIVE_ROUNDING = 2.0**-40
# At most this many of the numbers written in an expression are examined as singular points.
_MOST_NUMBERS = 4
# Samples of the other variables are perturbed by a fraction of up to this, both relative to their values and absolute.
_PERTURBATION = 0.0137


class LeafOperand(NamedTuple):
    """An operand that has no operands: the nodes at which it occurs, and its value, None for a variable."""

    nodes: tuple[tree.Expression, ...]
    number: float | None


class PlannedStep(NamedTuple):
    """An operation with the indices of its operands among leaves and earlier steps.

    `singular` is the index of the operand in which it is singular, if there is one.
    """

    operation: Operation
    operands: tuple[int, ...]
    singular: int | None


class LimitPoint(NamedTuple):
    """A point at which the expression has a limit but no value.

    Leaf number `leaf` equals `value` there or, where `other` is not None, the leaf of that number. At `distance` from
    the point the expression can be evaluated as written.
    """

    leaf: int
    value: float
    other: int | None
    distance: float


class ExpressionPlan:
    """An expression as a list of leaves and a list of steps; the last step gives its value."""

    def __init__(self, leaves: Sequence[LeafOperand], steps: Sequence[PlannedStep]) -> None:
        self.leaves = leaves
        self.steps = steps
        self.numbers = frozenset(self._numbers())

    def _numbers(self) -> Iterator[float]:
        yield from (0.0, 1.0, -1.0)
        for number in [leaf.number for leaf in self.leaves if leaf.number is not None][:_MOST_NUMBERS]:
            yield from (number, -number)

    def is_suspect(self, numbers: Sequence[float]) -> bool:
        """Return whether a variable is at one of the numbers that are examined as singular points."""
        return any(numbers[leaf] in self.numbers for leaf in self.variables)

    def number(self, point: float, values: Sequence[Any], numbers: Sequence[float]) -> Any:
        """`point` with all of its digits where it is the float of a numeric leaf or its negative, else itself."""
        for leaf, value, number in zip(self.leaves, values, numbers):
            if leaf.number is not None and abs(point) == abs(number):
                return value if point == number else negative(value)
        return point

    @cached_property
    def variables(self) -> Sequence[int]:
        """The indices of the variable leaves on which the singular operands depend."""
        below = self._leaves_below
        found = set().union(*[below[step.singular] for step in self.steps if step.singular is not None])
        return [i for i in sorted(found) if self.leaves[i].number is None]

    @cached_property
    def exponents(self) -> frozenset[int]:
        """The indices of the variable leaves on which exponents depend."""
        powers = [step.operands[1] for step in self.steps if step.operation is power]
        found = frozenset().union(*[self._leaves_below[p] for p in powers])
        return frozenset(i for i in found if self.leaves[i].number is None)

    @cached_property
    def _leaves_below(self) -> Sequence[frozenset[int]]:
        """The indices of the leaves on which each leaf and step depends."""
        below = [frozenset({i}) for i in range(len(self.leaves))]
        for step in self.steps:
            below.append(frozenset().union(*[below[o] for o in step.operands]))
        return below

    def results(self, values: Sequence[Any]) -> list[Any]:
        """The values of the leaves, followed by those of all steps."""
        found = [*values]
        for step in self.steps:
            found.append(step.operation(*[found[o] for o in step.operands]))
        return found

    def is_singular(self, numbers: Sequence[float]) -> bool:
        """Return whether some step is infinite or nan, or has a singular operand that is 0."""
        found = self.floats(numbers)
        if found is None or not all(map(math.isfinite, found[len(self.leaves) :])):
            return True
        return any(step.singular is not None and found[step.singular] == 0.0 for step in self.steps)

    def value(self, numbers: Sequence[float]) -> float:
        found = self.floats(numbers)
        return math.nan if found is None else found[-1]

    def has_value(self, numbers: Sequence[float]) -> bool:
        return math.isfinite(self.value(numbers))

    def floats(self, numbers: Sequence[float]) -> list[float] | None:
        try:
            with arrays.using_namespace(None), arrays.quiet():
                return [float(n) for n in self.results(numbers)]
        except LimitError:
            raise
        except (GradcliError, NotImplementedError, ArithmeticError, TypeError):
            return None

    def is_regular(self, numbers: Sequence[float], leaf: int, order: int) -> bool:
        """Return whether the value and the derivatives by a leaf up to `order` are finite when computed as written."""
        from gradcli.kinds.jets import Jet

        try:
            with arrays.using_namespace(None), arrays.quiet(), watching(None):
                given: list[Any] = [*numbers]
                given[leaf] = Jet([numbers[leaf], 1.0], order)
                found = self.results(given)[-1]
        except LimitError:
            raise
        except (GradcliError, NotImplementedError, ArithmeticError, TypeError):
            return False
        return all(c is None or math.isfinite(c) for c in getattr(found, "coefficients", (found,)))

    def limit(self, values: Sequence[Any], samples: Sequence[float], leaf: int, point: Any, order: int) -> Any:
        """The expression near the value `point` of a leaf, as a function of all leaves, differentiable up to `order`.

        Raises NoLimitError where there is no limit or none is found.
        """
        side, series, _ = self._series(values, samples, leaf, point, order)
        found = series.at(multiply(side, subtract(values[leaf], point)), order)
        for value in values:
            if isinstance(value, Kind) and value.differential and assume(isfinite(constant(value))):
                # Values that do not occur in the limit have zero derivatives.
                found = found + multiply(0.0, value)
        return found

    def _series(
        self, values: Sequence[Any], samples: Sequence[float], leaf: int, point: Any, order: int
    ) -> tuple[float, Asymptotic, float]:
        """The side of the point with a series (1.0 right, -1.0 left), the series, and a distance where it agrees."""
        # Imported here as few programs need it.
        from gradcli.kinds.asymptotic import NoLimitError

        try:
            return self._series_on(1.0, values, samples, leaf, point, order)
        except NoLimitError:
            # Powers and logarithms may be defined on the left only, as those of 1 - x at x = 1.
            if not math.isnan(self.value(_moved(samples, leaf, _DISTANCES[-1]))):
                raise
            return self._series_on(-1.0, values, samples, leaf, point, order)

    def _series_on(
        self, side: float, values: Sequence[Any], samples: Sequence[float], leaf: int, point: Any, order: int
    ) -> tuple[float, Asymptotic, float]:
        from gradcli.kinds.asymptotic import Asymptotic, NoLimitError

        # The time grows with the square of the number or faster.
        lengths = {*_SERIES_LENGTHS, min(order + _BEYOND_ORDER, _SERIES_LENGTHS[-1])}
        for count in sorted(n for n in lengths if n >= _SERIES_LENGTHS[0]):
            given: list[Any] = []
            for i, (known, value, sample) in enumerate(zip(self.leaves, values, samples)):
                if i == leaf:
                    given.append(Asymptotic.variable(point, sample, count, side))
                else:
                    # A literal number stays a plain float, so that powers with whole exponents are products.
                    plain = type(value) is float and known.number is not None
                    given.append(value if plain else Asymptotic.constant(value, sample, count))
            found = self.results(given)[-1]
            if found.end > order:
                return side, found, self._distance(found, samples, leaf, side)
        raise NoLimitError("too few terms are known")

    def _distance(self, series: Asymptotic, samples: Sequence[float], leaf: int, side: float) -> float:
        """The first of `_DISTANCES`, with the sign of the side, at which the series agrees with the expression.

        Raises NoLimitError where they differ at all of them.
        """
        from gradcli.kinds.asymptotic import NoLimitError

        whole = all(t.exponent % 1.0 == 0.0 and not t.logs for t in series.terms)
        for distance in _DISTANCES:
            seen = []
            for t in (distance, -distance):
                direct = self.value(_moved(samples, leaf, side * t))
                if not math.isnan(direct):
                    sample = series.sample_at(t) if t > 0.0 or whole else math.nan
                    seen.append(abs(direct - sample) <= _TOLERANCE * abs(sample) or direct == sample)
            if seen and all(seen):
                return side * distance
        raise NoLimitError("the series is not that of the expression")

    @cached_property
    def points(self) -> Sequence[LimitPoint]:
        """The points at which the expression has a limit but no value, whatever the values of the other leaves."""
        return [*self._points()]

    def _points(self) -> Iterator[LimitPoint]:
        samples = self.sampled(-1, 0.0)
        for leaf in self.variables:
            pairs = [(samples[other], other) for other in self.variables if other < leaf]
            for number, other in [*((n, None) for n in self.numbers), *pairs]:
                numbers = [number if i == leaf else s for i, s in enumerate(samples)]
                if not self.is_singular(numbers) or not self._has_values_around(numbers, leaf):
                    continue
                if self.is_regular(numbers, leaf, _EXTRA_ORDERS):
                    continue
                try:
                    with arrays.using_namespace(None), arrays.quiet(), watching(None):
                        _, series, distance = self._series(numbers, numbers, leaf, number, 0)
                        series.at(0.0, 0)
                    yield LimitPoint(leaf, number, other, distance)
                except LimitError:
                    raise
                except (GradcliError, NotImplementedError, ArithmeticError, TypeError):
                    continue

    def _has_values_around(self, numbers: Sequence[float], leaf: int) -> bool:
        """Return whether the expression has a value at one of `_DISTANCES` at least, as `_distance` needs."""
        return any(not math.isnan(self.value(_moved(numbers, leaf, t))) for d in _DISTANCES for t in (d, -d))

    def sampled(
        self, leaf: int, point: float, numbers: Sequence[float] | None = None, kept: Collection[int] = ()
    ) -> list[float]:
        """Sample values of all leaves, with leaf number `leaf` at `point`.

        With `numbers` the samples are perturbations of these, except for the leaves in `kept`, which keep their values.
        """
        found = []
        for i, known in enumerate(self.leaves):
            if known.number is not None or i == leaf:
                found.append(point if known.number is None else known.number)
                continue
            share = (i + 1.0) * GOLDEN_RATIO % 1.0
            if numbers is None:
                found.append(0.6 + share)
            else:
                off = 0.0 if i in kept else _PERTURBATION * share
                found.append(numbers[i] * (1.0 + off) + off)
        return found


def _moved(numbers: Sequence[float], place: int, by: float) -> list[float]:
    return [n + by if i == place else n for i, n in enumerate(numbers)]


def plan_of(node: tree.Expression, reader: ExpressionReader) -> ExpressionPlan | None:
    """An expression as leaves and steps; None where it is a single leaf."""
    leaves: dict[Any, list[tree.Expression]] = {}
    numbers: dict[Any, float | None] = {}
    order: list[tuple[tree.Expression, Sequence[tree.Expression] | None]] = []
    waiting: list[tree.Expression] = [node]
    while waiting:
        part = waiting.pop()
        below = reader.operands(part)
        order.append((part, below))
        if not below:
            key = reader.key(part)
            leaves.setdefault(key, []).append(part)
            numbers[key] = reader.float_of(part)
        waiting += below or ()
    places: dict[tree.SyntaxNode, int] = {}
    listed = [*leaves]
    for key, nodes in leaves.items():
        places.update(dict.fromkeys(nodes, listed.index(key)))
    steps: list[PlannedStep] = []
    for part, below in reversed(order):
        if not below or part in places:
            continue
        operation = operation_of(part)
        operands = tuple(places[b] for b in below)
        if operation is None:
            # A node without an operation of its own, such as a name, stands for its operand.
            places[part] = operands[0]
            continue
        which = singular_operand(part, below)
        steps.append(PlannedStep(operation, operands, None if which is None else operands[which]))
        places[part] = len(listed) + len(steps) - 1
    if not steps:
        return None
    return ExpressionPlan([LeafOperand(tuple(leaves[key]), numbers[key]) for key in listed], steps)


def limit_at_literal(plan: ExpressionPlan, values: Sequence[Any], numbers: Sequence[float]) -> Any:
    """The limit where a variable is at one of `plan.numbers`, None where there is none or the value is regular."""
    if not plan.is_singular(numbers):
        return None
    from gradcli.kinds.asymptotic import samples

    order = max(map(_orders, values))
    for leaf in plan.variables:
        point = numbers[leaf]
        live = plan.number(point, values, numbers) if point in plan.numbers else None
        if live is None or not _is_at(values[leaf], live) or plan.is_regular(numbers, leaf, order):
            continue
        for kept in ((), plan.exponents) if plan.exponents else ((),):
            with samples(independent=not kept):
                found = _tried(plan, values, plan.sampled(leaf, point, numbers, kept), leaf, live, order)
            if found is not None:
                return found
    return None


def limit_at_equal_variables(plan: ExpressionPlan, values: Sequence[Any], numbers: Sequence[float]) -> Any:
    """The limit where a variable equals a value given by others, as x = a in (log(x) - log(a))/(x - a), or None."""
    from gradcli.kinds.asymptotic import samples

    order = max(map(_orders, values))
    drawn = plan.sampled(-1, 0.0, numbers)
    for leaf, point, sample in _zeros(plan, values, numbers, drawn):
        with samples(independent=True):
            found = _tried(plan, values, [sample if i == leaf else s for i, s in enumerate(drawn)], leaf, point, order)
        if found is not None:
            return found
    return None


def _tried(
    plan: ExpressionPlan, values: Sequence[Any], samples: Sequence[float], leaf: int, point: Any, order: int
) -> Any:
    try:
        found = plan.limit(values, samples, leaf, point, order)
        return found if assume(isfinite(constant(found))) else None
    except LimitError:
        raise
    except (GradcliError, NotImplementedError, ArithmeticError, TypeError):
        return None


def limit_at_elements(plan: ExpressionPlan, values: Sequence[Any]) -> tuple[Any, Any, int, Any] | None:
    """Limits at single elements, for tensors and for values that are not known yet.

    Returns a mask of the elements at a singular point, the limits there, the index of the leaf concerned, and values of
    this leaf that avoid the point. Returns None where there are none.
    """
    for leaf, number, other, distance in plan.points:
        x = values[leaf]
        target = number if other is None else values[other]
        near = equal(constant(x), constant(target))
        if assume(logical_not(near)):
            continue
        drawn = plan.sampled(-1, 0.0)
        drawn[leaf] = number
        varying = [known.number is None for known in plan.leaves]
        inside = [where(near, v, s) if varies else v for v, s, varies in zip(values, drawn, varying)]
        point = number if other is None else inside[other]
        try:
            found = plan.limit(inside, drawn, leaf, point, max(map(_orders, values)))
        except LimitError:
            raise
        except (GradcliError, NotImplementedError, ArithmeticError, TypeError):
            continue
        return near, found, leaf, where(near, target + distance, x)
    return None


def _orders(value: Any) -> int:
    """The order of the derivatives carried by a value and the values inside it, plus `_EXTRA_ORDERS`."""
    from gradcli.kinds.jets import Jet

    found = _EXTRA_ORDERS
    while isinstance(value, Kind) and value.differential:
        found += value.order if isinstance(value, Jet) else 1
        value = value.inner
    return found


def _is_at(value: Any, point: Any) -> bool:
    try:
        return assume(equal(constant(value), constant(point)))
    except UndecidedError:
        return False


def _zeros(
    plan: ExpressionPlan, values: Sequence[Any], numbers: Sequence[float], samples: Sequence[float]
) -> Iterator[tuple[int, Any, float]]:
    """Leaves, each with a value and a sample at which a step is singular that is singular now.

    The value is that of another leaf, as in log(x) - log(a), or the root of an operand that is linear in the leaf, as
    in x - 2*a.
    """
    found = plan.floats(numbers)
    places = [
        s.singular for s in plan.steps if found is not None and s.singular is not None and found[s.singular] == 0.0
    ]
    for place in places:
        for leaf in plan.variables:
            for other in plan.variables:
                is_other = other != leaf and numbers[other] == numbers[leaf]
                if is_other and _is_zero_at(plan, samples, leaf, samples[other], place):
                    yield leaf, values[other], samples[other]
            with arrays.using_namespace(None):
                sample = _linear_root(plan, samples, leaf, place)
            if sample is not None:
                yield leaf, _linear_root(plan, values, leaf, place), sample


def _is_zero_at(plan: ExpressionPlan, samples: Sequence[float], leaf: int, point: float, place: int) -> bool:
    """Return whether result number `place` is 0 by its samples where the leaf is at `point`, and is not 0 beside it."""
    at, beside = (plan.floats(_moved(samples, leaf, point + by - samples[leaf])) for by in (0.0, _DISTANCES[0]))
    return at is not None and beside is not None and abs(at[place]) <= _RELATIVE_ROUNDING * abs(beside[place]) > 0.0


def _linear_root(plan: ExpressionPlan, values: Sequence[Any], leaf: int, place: int) -> Any:
    """The value of a leaf at which result number `place` is 0; None where that is not linear in the leaf."""

    def at(number: float) -> Any:
        return plan.results([number if i == leaf else v for i, v in enumerate(values)])[place]

    zero, one, two = at(0.0), at(1.0), at(2.0)
    slope, further = subtract(one, zero), subtract(two, one)
    if not assume(isfinite(constant(slope))) or assume(equal(constant(slope), 0.0)):
        return None
    off = float(concrete(absolute(subtract(constant(further), constant(slope)))))
    if off > _RELATIVE_ROUNDING * float(concrete(absolute(constant(two)))):
        return None
    return divide(negative(zero), slope)


def as_floats(values: Sequence[Any]) -> list[float] | None:
    """The floats that scalar values equal, or are rounded to. Returns None where some are tensors or not known yet."""
    numbers = [constant(v) for v in values]
    if all(type(n) is float for n in numbers):
        return numbers
    if not is_exact() or any(isinstance(n, Kind) or arrays.shape(n) for n in numbers):
        return None
    from gradcli.arrays.flint.balls import exact, to_float

    return [n if type(n) is float else to_float(exact(n)) for n in numbers]
