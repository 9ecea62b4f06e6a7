"""Jets: truncated Taylor series as operands, which interpret primitives by their jet rules."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact, ratio
from gradcli.errors import EvaluationError, LimitError, NotBatchableError, NotRecordableError
from gradcli.kinds.branch_points import watcher_now
from gradcli.kinds.levels import JET
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.conversions import broadcast_to, cast
from gradcli.primitives.entries.arithmetic import (
    add,
    divide,
    identity,
    multiply,
    negative,
    subtract,
    zeros_like,
)
from gradcli.primitives.entries.comparisons import (
    compares_with_itself,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from gradcli.primitives.entries.reductions import any_
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}

_SUMS = (add, subtract)
_EXACT = (negative, identity)

# The cost of a primitive applied to series, in eighths of a step, without that of the coefficients.
_SERIES_COST = 16

# A callback that receives the operands and the result of each primitive outside of rules.
Observer = Callable[[Sequence[Any], "Jet"], None]
observer: ContextVar[Observer | None] = ContextVar("gradcli_series_observer", default=None)


@contextmanager
def without_observer() -> Iterator[None]:
    """Within the block, series are not reported to the observer, as they are not operands of the program itself."""
    token = observer.set(None)
    try:
        yield
    finally:
        observer.reset(token)


# 170! is the largest factorial that is a double.
_MAX_ORDER = 170

# The primitive and the parameters that produced a series, by which it is looked up.
Key = tuple[Any, ...]


class Jet(Operators):
    """A power series in one variable t, truncated after t**order.

    The coefficients have the shape of the first one and are values of the kinds inside this one; trailing ones that are
    zero by construction are omitted. If the operands are series in t, coefficient k of a result is its kth derivative
    by t divided by k!.

    Inside a rule, the coefficients of a series under construction are computed one by one on demand: the rule of y may
    read y, provided that it asks for no coefficient that is not available yet.

    A watched series has a `shadow`, which undergoes the same operations but is perturbed by a few roundings after each
    of them: the difference of the two is a rounding-error estimate.

    A followed series knows in `varies` which of its elements vary, by what they are computed from. The derivatives of
    the others are 0, even where a rule computes 0 times infinity; elements that are constant by chance are not
    detected.
    """

    __slots__ = ("_begun", "_growing", "_images", "_known", "_rest", "order", "roundings", "shadow", "varies")
    level = JET
    differential = True

    def __init__(self, coefficients: Sequence[Any], order: int) -> None:
        self.order = order
        self._known = [*coefficients]
        self._rest: Iterator[Any] | None = None
        # Whether coefficients may be missing yet, here or in the series from which this one was made.
        self._growing = False
        # Functions of this series that a rule has started to compute.
        self._images: dict[Key, Jet] | None = None
        # Those of the rule of this series itself, if it is the outermost one.
        self._begun: dict[Key, Jet] = {}
        self.shadow: Jet | None = None
        # The perturbations of a shadow and of everything computed from it.
        self.roundings: Perturbation | None = None
        # For a followed series, truth values of its shape.
        self.varies: Any = None

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Apply the primitive to the first coefficients, and its jet rule for the further ones.

        If the primitive has no derivative by any operand that is a series, the result is not a series.
        """
        result = Jet._applied(primitive, operands, params)
        if not isinstance(result, Jet) or result._growing:
            return result
        shadowed = followed = False
        for operand in operands:
            if isinstance(operand, Jet):
                # A result of order 0 is complete before its operands are.
                if operand._growing:
                    return result
                shadowed |= operand.shadow is not None
                followed |= operand.varies is not None
        if shadowed:
            result.shadow = result._shadow(primitive, operands, params)
        if followed:
            result._follow(primitive, operands, params)
        observe = observer.get()
        if observe is not None:
            observe(operands, result)
        return result

    @staticmethod
    def _applied(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        limits.charge_steps(_SERIES_COST)
        primals: list[Any] = []
        jets: list[Jet] = []
        order, constant, growing, roundings = 0, True, False, None
        differentiable = primitive.differentiable(len(operands))
        for operand in operands:
            if isinstance(operand, Jet):
                primals.append(operand._known[0])
                if differentiable & 1:
                    jets.append(operand)
                    order = operand.order if len(jets) == 1 else min(order, operand.order)
                    constant = constant and operand._rest is None and len(operand._known) == 1
                    growing = growing or operand._growing
                    roundings = roundings or operand.roundings
            else:
                primals.append(operand)
            differentiable >>= 1
        see = watcher_now() if primitive.smooth is not None or not jets else None
        if see is not None and not compares_with_itself(primitive, operands):
            see(primitive, primals, params)
        if not jets:
            return bind(primitive, primals, params)
        images = jets[0]._images if _has_images(primitive, operands, params) else None
        if images is not None:
            found = images.get(_key(primitive, params))
            if found is not None and found.order >= order:
                return found
        first = bind(primitive, primals, params)
        exact = primitive in _EXACT or primitive.moves or primitive.selects or primitive.truths
        off = None if roundings is None or exact else roundings.off
        if roundings is not None and primitive in _SUMS:
            first = _rounded_sum(roundings, primitive, first, *primals)
            off = None
        elif roundings is not None and not exact:
            first = roundings.perturb_result(primitive, first, primals, params)
        result = type(jets[0])([first], order)
        result.roundings = roundings
        if order and not constant:
            rest = primitive.jet(primitive, result, *map(result.lift, operands), **params)
            if off is not None:
                rest = map(off, rest)
            elif roundings is not None and primitive in _SUMS:
                series = [map(result.lift(o).coefficient, itertools.count(1)) for o in operands]
                rest = map(functools.partial(_rounded_sum, roundings, primitive), rest, *series)
            if primitive.selects and type(first) is float:
                rest = _if_taken(rest, primitive, first, operands, params)
            result.begin(rest)
        if images is not None:
            images[_key(primitive, params)] = result
        if not growing:
            result.coefficient(order)
            result._growing = False
        return result

    def _shadow(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Jet:
        """The primitive applied to the operands' shadows; twice this series if that fails, as where a matrix is regular
        only because of rounding."""
        shadows = [perturbed_of(o) for o in operands]
        if not (primitive.elementwise or primitive.moves or primitive.selects):
            # Sums and eliminations inside the primitive round as well.
            shadows = [o._off() if isinstance(o, Jet) else o for o in shadows]
        try:
            made = Jet._applied(primitive, shadows, params)
            assert isinstance(made, Jet)
            return made
        except (LimitError, NotRecordableError, NotBatchableError):
            raise
        except EvaluationError:
            return Jet(
                [c if c is None else bind(multiply, (2.0, c), _NO_PARAMS) for c in self.coefficients], self.order
            )

    def _follow(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Determine which elements of a result vary, and set the derivatives of the others to 0."""
        for there, other in constant_cases(self, primitive, operands, params) if primitive.elementwise else ():
            self._replace(there, other)
        self.varies = varying(self, primitive, operands, params)
        if isinstance(self.varies, Kind) or not arrays.all_true(self.varies):
            self._replace(logical_not(self.varies), Jet([self.inner], self.order))

    def _replace(self, there: Any, other: Jet) -> None:
        """Replace the derivatives at some elements by those of another series, also in the shadow."""
        for k in range(1, self.order + 1):
            new, old = other.coefficient(k), self.coefficient(k)
            if new is not None or old is not None:
                self._known += [None] * (k + 1 - len(self._known))
                self._known[k] = where(there, 0.0 if new is None else new, 0.0 if old is None else old)
        if self.shadow is not None:
            self.shadow._replace(there, perturbed_of(other))

    def _off(self) -> Jet:
        """A shadow with each coefficient perturbed by a few more roundings."""
        if self.roundings is None:
            return self
        made = Jet([self.roundings.off(c) for c in self.coefficients], self.order)
        made.roundings = self.roundings
        return made

    @property
    def inner(self) -> Any:
        return self._known[0]

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(c for c in self.coefficients if c is not None)

    @property
    def coefficients(self) -> tuple[Any, ...]:
        """All coefficients, up to the last one that is not zero by construction."""
        self.coefficient(self.order)
        return tuple(self._known)

    @property
    def is_growing(self) -> bool:
        """True if coefficients may be requested before they are available."""
        return self._rest is not None

    @property
    def degree(self) -> int:
        """The highest order whose coefficient may be nonzero."""
        return len(self._known) - 1 if self._rest is None else self.order

    def derivatives(self) -> list[Any]:
        """The derivatives by t from order 0 to the order of the series. Raises LimitError above order 170."""
        check_order(self.order)
        found = [self.coefficient(k) for k in range(self.order + 1)]
        return [self.zeros() if c is None else _times_factorial(c, k) for k, c in enumerate(found)]

    def watched(self, roundings: Perturbation) -> Jet:
        """Give this series, a leaf, a shadow; returns it."""
        self.shadow = Jet(self._known, self.order)
        self.shadow.roundings = roundings
        return self

    def followed(self) -> Jet:
        """Mark all elements of this series, a leaf, as varying; returns it."""
        self.varies = all_varying(self.shape, self.inner)
        return self

    def mapped(self, function: Callable[[Any], Any]) -> Jet:
        """The series, with its shadow and `varies`, with `function` applied to each coefficient."""
        made = Jet([None if c is None else function(c) for c in self.coefficients], self.order)
        made.roundings = self.roundings
        made.shadow = None if self.shadow is None else self.shadow.mapped(function)
        made.varies = None if self.varies is None else function(self.varies)
        return made

    def begin(self, rest: Iterator[Any]) -> None:
        """Set the iterator that yields the further coefficients."""
        self._rest = rest
        self._growing = True

    def coefficient(self, k: int) -> Any:
        """Coefficient `k`, or None if it is zero by construction."""
        while self._rest is not None and len(self._known) <= k:
            self._prepare(len(self._known))
            self._grow(next(self._rest))
        return self._known[k] if k < len(self._known) else None

    def _prepare(self, k: int) -> None:
        """Advance the functions from which this series is computed to what its coefficient `k` needs, the innermost
        first.

        Otherwise a chain of derivatives of derivatives would be evaluated by deep recursion.
        """
        for image in reversed([*self._begun.values()]):
            depth = self.order - image.order
            if 0 < depth < k:
                image.coefficient(k - depth)

    def _grow(self, value: Any) -> None:
        if value is not None and arrays.shape(value) != self.shape:
            value = broadcast_to(value, self.shape)
        self._known.append(value)
        if len(self._known) > self.order:
            self._rest = None
            self._begun = {}
            while self._known[-1] is None:
                self._known.pop()

    def __repr__(self) -> str:
        return f"Jet({self._known}, order={self.order})"

    # --- for rules

    def lift(self, value: Any) -> Jet:
        """`value` as a series: itself if it is one, else a constant one; None is zero."""
        if isinstance(value, Jet):
            return value
        return type(self)([self.zeros() if value is None else value], self.order)

    def dense_coefficient(self, k: int) -> Any:
        """Coefficient `k`, also where it is zero by construction."""
        found = self.coefficient(k)
        return self.zeros() if found is None else found

    def zeros(self) -> Any:
        """A zero coefficient."""
        return bind(zeros_like, (self.inner,), _NO_PARAMS)

    @staticmethod
    def total(terms: Iterable[Any]) -> Any:
        """The sum of `terms`, values or series, where None is zero; None if all are."""
        result, exact = None, is_exact()
        for term in terms:
            if result is None or term is None:
                result = term if result is None else result
            elif type(result) is float and type(term) is float and not exact:
                # Same as `bind`, without its overhead: most terms are floats.
                result += term
            else:
                result = bind(add, (result, term), _NO_PARAMS)
        return result

    @staticmethod
    def scaled(value: Any, numerator: int, denominator: int = 1) -> Any:
        """A coefficient times numerator/denominator; None stays None."""
        if value is not None and numerator != 1:
            value = bind(multiply, (float(numerator), value), _NO_PARAMS)
        if value is not None and denominator != 1:
            value = bind(divide, (value, float(denominator)), _NO_PARAMS)
        return value

    def derivative(self) -> Jet:
        """The series of the derivative by t, one order shorter."""
        first = self.coefficient(1)
        first = self.zeros() if first is None else first
        return self._shorter(first, lambda k: self.scaled(self.coefficient(k + 1), k + 1))

    def growing(self, first: Any, rest: Iterator[Any]) -> Jet:
        """A series under construction, one order shorter than this one, for use inside a rule."""
        made = type(self)([first], self.order - 1)
        made._rest = rest if made.order > 0 else None
        made._growing = True
        made.roundings = self.roundings
        return made

    def _shorter(self, first: Any, further: Callable[[int], Any]) -> Jet:
        """A series, one order shorter than this one, with coefficients `further`; complete at once if this one is."""
        made = self.growing(first, map(further, itertools.count(1)))
        if self._rest is None:
            made._known += map(further, range(1, min(made.order + 1, len(self._known))))
            made._rest = None
        return made

    def inside_rule(self, primitive: Primitive, operands: Sequence[Jet], params: Mapping[str, Any]) -> list[Any]:
        """The operands for a rule of `primitive` whose result is this series, one order shorter.

        Functions of a single operand are cached: the derivative of sin is cos, whose derivative uses the same sin.
        """
        inner = [x._shorter(x.inner, x.coefficient) for x in operands]
        if _has_images(primitive, operands, params):
            known = operands[0]._images
            if known is None:
                known = self._begun = {_key(primitive, params): self}
            inner[0]._images = known
        return [x.inner if jet.coefficient(1) is None else x for x, jet in zip(inner, operands)]


def perturbed_of(value: Any) -> Any:
    """The shadow of a series that has one, else `value` itself."""
    return value if not isinstance(value, Jet) or value.shadow is None else value.shadow


def check_order(order: int) -> None:
    """Raise LimitError for an order above 170."""
    if order > _MAX_ORDER:
        raise LimitError(f"a derivative of order {order} has a factorial that is no float")


def _has_images(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Return whether this is a function of one operand whose parameters can be compared, so that it can be cached."""
    return len(operands) == 1 and (primitive.elementwise or not params)


def _key(primitive: Primitive, params: Mapping[str, Any]) -> Key:
    return (primitive, *params.items())


def _times_factorial(value: Any, k: int) -> Any:
    if k < 2:
        return value
    # Factorials from 35! on overflow single precision.
    double = "complex128" if arrays.is_complex(value) else "float64"
    exact = bind(multiply, (cast(value, double), ratio(math.factorial(k))), _NO_PARAMS)
    return cast(exact, arrays.dtype_name(value))


def _rounded_sum(roundings: Perturbation, primitive: Primitive, total: Any, a: Any, b: Any) -> Any:
    if total is None or a is None or b is None:
        return total
    return roundings.perturb_sum(total, a, b if primitive is add else bind(negative, (b,), _NO_PARAMS))


def _if_taken(
    coefficients: Iterator[Any], primitive: Primitive, first: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> Iterator[Any]:
    """The coefficients of a selecting primitive on numbers, with zeros that mean "not taken" replaced by None.

    A coefficient 0 becomes None if all taken operands have a coefficient that is zero by construction.
    """
    primals = [o.inner if isinstance(o, Jet) else o for o in operands]
    taken: list[Jet] | None = None
    for k, coefficient in enumerate(coefficients, 1):
        if type(coefficient) is float and coefficient == 0:
            if taken is None and primitive.elementwise:
                rules = [(o, primitive.rule(i)) for i, o in enumerate(operands) if isinstance(o, Jet)]
                taken = [o for o, rule in rules if rule is not None and rule(1.0, first, *primals, **params) != 0]
            yield None if all(o.coefficient(k) is None for o in taken or ()) else coefficient
        else:
            yield coefficient


# --- the elements of a Taylor series that vary

# The class Jet; `gradcli.kinds.jets` imports this module.
Series = Any


def all_varying(shape: tuple[int, ...], like: Any) -> Any:
    """A mask of `shape` in which all elements vary, in the namespace of `like`."""
    return arrays.like_library_of(arrays.numpy_namespace().ones(shape, bool), like) if shape else True


def varying(result: Series, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The mask of the varying elements of a result, from those of its series operands."""
    series = type(result)
    if not result.degree:
        # For example floor, which is locally constant.
        return broadcast_to(False, result.shape)
    varied = [_varies(operands[i]) for i in _series_among(series, primitive, operands)]
    product = primitive.multilinear or primitive is multiply
    if product or primitive.selects or primitive.jet is linear or primitive.reorders:
        # The derivative of a result whose varying operands have derivative 1 is a sum of ones over what varies.
        mark = _marked_factor if product else _marked
        made = series._applied(primitive, [mark(series, o) for o in operands], params)
        slope = made.coefficient(1) if isinstance(made, series) else None
        found = broadcast_to(False, result.shape) if slope is None else not_equal(slope, 0)
        # 0 times an inf or nan factor is not 0.
        return logical_and(found, functools.reduce(logical_or, varied)) if primitive.elementwise else found
    if primitive.reduces is not None:
        return any_(*varied, **params)
    if not primitive.elementwise:
        varied = [any_(v) for v in varied]
    return broadcast_to(functools.reduce(logical_or, varied), result.shape)


def constant_cases(
    result: Series, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]
) -> Iterator[tuple[Any, Series]]:
    """Pairs of a mask, where some operands of an elementwise primitive vary and others do not, and the result with the
    latter as constants."""
    series = type(result)
    among = _series_among(series, primitive, operands)
    for count in range(1, len(among)):
        for fixed in itertools.combinations(among, count):
            there = functools.reduce(
                logical_and,
                [logical_not(_varies(operands[i])) if i in fixed else _varies(operands[i]) for i in among],
            )
            if isinstance(there, Kind) or not arrays.all_true(logical_not(there)):
                given = [o.inner if i in fixed else o for i, o in enumerate(operands)]
                yield there, series.read(primitive, given, params)


def _series_among(series: type[Series], primitive: Primitive, operands: Sequence[Any]) -> list[int]:
    mask = primitive.differentiable(len(operands))
    return [i for i, o in enumerate(operands) if isinstance(o, series) and mask >> i & 1]


def _varies(series: Series) -> Any:
    return True if series.varies is None else series.varies


def _marked(series: type[Series], operand: Any) -> Any:
    """The operand as a series with derivative 1 where it varies, else 0."""
    return series([operand.inner, where(_varies(operand), 1.0, 0.0)], 1) if isinstance(operand, series) else operand


def _marked_factor(series: type[Series], operand: Any) -> Any:
    """A factor as 1 where it varies, with derivative 1, or is a constant other than 0; else as 0, which makes the
    product constant."""
    if not isinstance(operand, series):
        return where(not_equal(operand, 0), 1.0, 0.0)
    varies = _varies(operand)
    if not isinstance(varies, Kind) and arrays.all_true(varies):
        counts = varies
    else:
        counts = logical_or(varies, not_equal(operand.inner, 0))
    return series([where(counts, 1.0, 0.0), where(varies, 1.0, 0.0)], 1)
