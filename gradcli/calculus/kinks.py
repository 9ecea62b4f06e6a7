"""Finds the true derivatives of a function at points where its computation switches branches or has a kink.

`abs(x)**2` and `where(x == 0, 1, sin(x)/x)` are smooth at 0, though `abs` and the comparison are not. At such a point,
f is expanded along rays x + t*v, t > 0, by one-sided Taylor series (`gradcli.kinds.one_sided_jets`). If f is smooth to order
n, the coefficients 0 to n along all rays are those of one polynomial in v. This is checked along the directions that
determine the polynomial, along their opposites, and along some further directions.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact, ratio
from gradcli.arrays.shapes import element_ranges
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import all_finite, repeated
from gradcli.calculus.interpolation import Counts, Weights, counts, directions
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.kinds.one_sided_jets import OneSidedJet, OutsideDomainError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, concrete
from gradcli.primitives.conversions import permute, reshape
from gradcli.primitives.entries.arithmetic import absolute, add, multiply, subtract
from gradcli.primitives.entries.comparisons import equal, isfinite, less_equal, maximum
from gradcli.primitives.entries.reductions import max_, sum_
from gradcli.primitives.entries.shape import stack

# Number of coefficients beyond those requested: roots and quotients of numbers that are 0 at the point use some up.
_FURTHER = 6
# Allowed difference of coefficients along two rays, in units of rounding: relative to the largest coefficient of their
# order, and to the largest of any order.
_OF_THEIR_ORDER, _OF_ANY_ORDER = 2.0**12, 512.0
# The unit of rounding in exact arithmetic: the assumed relative size of numbers that are not distinguished from 0.
_EXACT_UNIT = 1e-30
# Number of random directions beside those that distinguish any two variables: `_DIRECTIONS` divided by the number of
# variables, so that for two variables they are some degrees apart, but at least `_LEAST_DIRECTIONS`. `_LENGTHS` are the
# magnitudes of their components.
_DIRECTIONS, _LEAST_DIRECTIONS = 64, 8
_LENGTHS = (1, 2, 3, 5, 9, 20)
# Bounds on the number of rays, each of which takes an evaluation of the function, and on the number of variables.
_MOST_RAYS, _MOST_VARIABLES = 4000, 10_000
# Up to this number, rays are faster and more accurate than second derivatives of series.
_FEW_RAYS = 64
# Distance from the point at which a function is tested for a value, relative to the magnitude of the variable or 1.
_BESIDE = 2.0**-20
_NO_SERIES = (EvaluationError, NotImplementedError, ArithmeticError)

# Maps leaves by name, which may be of any kinds, to a value.
Function = Callable[[Mapping[str, Any]], Any]


class DerivativesAtSwitch(NamedTuple):
    """Derivatives by key, and whether the function is smooth to their order; None where that is unknown."""

    found: dict[str, Any]
    smooth: bool | None


def derivatives_at_switch(
    function: Function, leaves: Mapping[str, Any], value: Any, found: Mapping[str, Any], *, at_kink: bool
) -> DerivativesAtSwitch:
    """Return the derivatives of a function that switches at `leaves`, arrays by name.

    `found` are those of the branch that is taken, of all orders up to the highest, keyed by leaves joined with commas;
    None by a leaf that the function does not depend on.

    A derivative of order 2 or higher that does not exist is nan; one of order 1 is left as found. Where existence is
    undecided, all are left as found, except that those of order 2 and higher are nan with `at_kink`, and where some
    that were found are wrong. By complex leaves it is undecided: rays are along real numbers.
    """
    if any(map(arrays.is_complex, leaves.values())):
        return _undecided(found, at_kink=at_kink)
    sized = {name: leaf for name, leaf in leaves.items() if arrays.size(leaf)}
    if len(sized) < len(leaves):
        # Leaves without elements have no derivatives to settle.
        if not sized:
            return DerivativesAtSwitch(dict(found), True)
        own = {key: d for key, d in found.items() if sized.keys() >= set(key.split(","))}
        inner = derivatives_at_switch(function, sized, value, own, at_kink=at_kink)
        return inner._replace(found={**found, **inner.found})
    order = max((key.count(",") + 1 for key in found), default=0)
    rays = _Rays(function, leaves, value, order)
    try:
        with limits.optional_budget(), arrays.quiet():
            found_is_wrong = False
            for candidate in (dict, *rays.candidates()):
                with suppress(_UnknownError):
                    better = candidate(found)
                    if rays.agree_with(better):
                        return DerivativesAtSwitch(better, True)
                    found_is_wrong |= candidate is dict and all_finite(found.values())
            better = rays.derivatives(found, at_kink or found_is_wrong)
            with suppress(_UnknownError):
                return DerivativesAtSwitch(better, None if rays.unknown else rays.agree_with(better))
            return DerivativesAtSwitch(better, None)
    except (_TooManyError, LimitError):
        return _undecided(found, at_kink=at_kink)
    except EvaluationError:
        # Interval arithmetic encloses the derivatives of all branches.
        return DerivativesAtSwitch(dict(found), None)


def _undecided(found: Mapping[str, Any], *, at_kink: bool) -> DerivativesAtSwitch:
    return DerivativesAtSwitch({key: _nan_like(d) if at_kink and "," in key else d for key, d in found.items()}, None)


class _UnknownError(GradcliError):
    """Required series are not known."""


class _TooManyError(GradcliError):
    """There are more directions than may be evaluated."""


class _Rays:
    """The one-sided Taylor series of a function along directions.

    The variables are the elements of all leaves, concatenated; a direction has an integer component for each.
    """

    def __init__(self, function: Function, leaves: Mapping[str, Any], value: Any, order: int) -> None:
        self.function, self.leaves, self.value, self.order = function, leaves, value, order
        self.variables = element_ranges({name: arrays.size(value) for name, value in leaves.items()})
        self.number = sum(map(len, self.variables.values()))
        self.dtype = arrays.dtype_name(value) if arrays.is_floating(value) else "float64"
        self.unit = _EXACT_UNIT if is_exact() else float(arrays.numpy_namespace().finfo(self.dtype).eps)
        self._weights = Weights(order)
        self._known: dict[Counts, Sequence[Any] | None] = {}
        # Directions that leave the domain of the function.
        self._outside: set[Counts] = set()
        self._smooth: dict[tuple[int, ...], int] = {}
        self._together: frozenset[int] = frozenset()
        # Whether the existence of some derivatives is undecided.
        self.unknown = False

    # --- series

    def _along(self, steps: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return coefficients 0 to `order` along a direction, given by leaf; None where they are unknown.

        Raises OutsideDomainError where the direction leaves the domain of the function.
        """
        try:
            made = self.function({name: self._ray(name, step) for name, step in steps.items()})
        except (LimitError, OutsideDomainError):
            raise
        except _NO_SERIES:
            return None
        while isinstance(made, Kind) and not isinstance(made, OneSidedJet):
            made = made.inner
        if not isinstance(made, OneSidedJet):
            return [made, *[arrays.zeros_like(made)] * self.order]
        if made.poles or made.order < self.order:
            return None
        found = [made.coefficient(k) for k in range(self.order + 1)]
        # Adding 0.0 removes the sign of a negative zero.
        found = [made.zeros() if c is None else add(c, 0.0) for c in found]
        return found if all(assume(isfinite(c)) for c in found) else None

    def _ray(self, name: str, step: Any) -> OneSidedJet:
        """A leaf as a one-sided Taylor series along a direction."""
        return OneSidedJet([self.leaves[name], step], self.order + _FURTHER)

    def _coefficients(self, direction: Counts) -> Sequence[Any]:
        """Return the coefficients along a direction. Raises _UnknownError where they are unknown."""
        known = self._known_coefficients(direction)
        if known is None:
            raise _UnknownError("no series")
        return known

    def _known_coefficients(self, direction: Counts) -> Sequence[Any] | None:
        if direction not in self._known:
            if len(self._known) >= _MOST_RAYS:
                raise _TooManyError("too many directions")
            numbers = dict(direction)
            try:
                self._known[direction] = self._along(self._steps([numbers.get(i, 0) for i in range(self.number)]))
            except OutsideDomainError:
                self._known[direction] = None
                self._outside.add(direction)
        return self._known[direction]

    def _steps(self, numbers: Sequence[float]) -> dict[str, Any]:
        """A direction as arrays by leaf name."""
        found = {}
        for name, leaf in self.leaves.items():
            own = [float(numbers[i]) for i in self.variables[name]]
            shape, dtype = arrays.shape(leaf), arrays.dtype_name(leaf)
            array = arrays.asarray(own, dtype) if shape else arrays.astype(own[0], dtype)
            found[name] = arrays.like_library_of(reshape(array, shape) if shape else array, leaf)
        return found

    def _has_value_beside(self, direction: Counts) -> bool:
        """Return whether the function has a finite value a short way along a direction; True where that is
        undecided."""
        if direction in self._outside:
            return False
        numbers = dict(direction)
        steps = self._steps([_BESIDE * numbers.get(i, 0) for i in range(self.number)])
        moved = {n: add(leaf, multiply(steps[n], maximum(absolute(leaf), 1.0))) for n, leaf in self.leaves.items()}
        try:
            return assume(isfinite(concrete(self.function(moved))))
        except LimitError:
            raise
        except _NO_SERIES:
            return True

    # --- whether derivatives are those along rays

    def agree_with(self, found: Mapping[str, Any]) -> bool:
        """Return whether derivatives match the series on both sides of a few directions.

        Directions without a series are skipped, such as x = 0 for x*y/x, where a quotient is 0/0. Raises _UnknownError
        where at least half of the directions have none.
        """
        if self.number > _MOST_VARIABLES:
            raise _TooManyError("too many variables")
        if not all_finite(found.values()):
            return False
        directions = [*_other_directions(self.number)] if self.number > 1 else [[1]]
        known = 0
        for numbers in directions:
            expected = [self.value, *self._expected(found, self._steps(numbers))]
            terms = [0.0, *self._largest_terms(found, max(map(abs, numbers)))]
            with suppress(_UnknownError):
                if min(self._agreements(tuple(enumerate(numbers)), expected, terms)) < self.order:
                    return False
                known += 1
        if 2 * known <= len(directions):
            raise _UnknownError("no series along most directions")
        return True

    def _largest_terms(self, found: Mapping[str, Any], step: int) -> Iterator[float]:
        """Yield the largest terms of the coefficients from order 1 on; the terms may cancel along a direction."""
        for k in range(1, self.order + 1):
            sizes = (_largest(d) for key, d in found.items() if d is not None and key.count(",") == k - 1)
            yield max(sizes, default=0.0) * float(step) ** k / math.factorial(k)

    def _agreements(self, direction: Counts, expected: Sequence[Any], terms: Sequence[float] = ()) -> Iterator[int]:
        """Yield the orders up to which coefficients along a direction and along its opposite match the expected ones.

        A side that leaves the domain of the function is skipped. Raises _UnknownError where a side in the domain has no
        series.
        """
        both = (direction, _opposite(direction))
        sides = [self._known_coefficients(d) for d in both]
        if all(side is None for side in sides):
            raise _UnknownError("no series on either side")
        if any(side is None and self._has_value_beside(d) for d, side in zip(both, sides)):
            raise _UnknownError("no series where the function has values")
        for along, sign in zip(sides, (1, -1)):
            if along is not None:
                yield self._agreement(along, expected, sign, terms)

    def _expected(self, found: Mapping[str, Any], steps: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the coefficients from order 1 on along a direction, computed from derivatives."""
        for k in range(1, self.order + 1):
            total = arrays.zeros_like(self.value)
            for key in itertools.combinations_with_replacement(self.leaves, k):
                term = found[",".join(key)]
                if term is None:
                    continue
                for name in reversed(key):
                    rank, axes = len(arrays.shape(term)), len(arrays.shape(steps[name]))
                    term = multiply(term, steps[name])
                    term = sum_(term, tuple(range(rank - axes, rank))) if axes else term
                orders = math.factorial(k) // math.prod(math.factorial(key.count(n)) for n in {*key})
                total = add(total, multiply(term, ratio(orders, math.factorial(k))))
            yield total

    def _agreement(self, along: Sequence[Any], expected: Sequence[Any], side: int, terms: Sequence[float]) -> int:
        """Return the order up to which coefficients match those expected; -1 where the values differ.

        `side` is -1 where `along` belongs to the opposite direction of `expected`, else 1.
        """
        size = [max(_largest(a), _largest(e)) for a, e in zip(along, expected)]
        size = [max(pair) for pair in itertools.zip_longest(size, terms, fillvalue=0.0)]
        for k, (one, other) in enumerate(zip(along, expected)):
            apart = absolute(subtract(one, multiply(other, float(side**k))))
            allowed = self.unit * (_OF_THEIR_ORDER * size[k] + _OF_ANY_ORDER * max(size))
            if not assume(less_equal(apart, allowed)):
                return k - 1
        return self.order

    # --- the derivatives themselves

    def candidates(self) -> Sequence[Callable[[Mapping[str, Any]], dict[str, Any]]]:
        """Return the methods that find the derivatives of a smooth function, the one with fewer evaluations first."""
        rays = math.comb(self.number + self.order - 1, self.order)
        if rays > _MOST_RAYS:
            return (self.along_one_ray,)
        return (self.polynomial, self.along_one_ray) if rays <= _FEW_RAYS else (self.along_one_ray, self.polynomial)

    def along_one_ray(self, _found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the limits of the derivatives along one ray, by repeated reverse mode over series. Raises
        _UnknownError where there are none."""
        generator = random.Random(self.number)
        numbers = [generator.choice((-1, 1)) * n for n in generator.sample(range(1, self.number + 1), self.number)]
        size = 2 ** self.number.bit_length()
        for side in (1.0, -1.0):
            steps = self._steps([side * n / size for n in numbers])
            leaves = {n: Tensor(self._ray(n, step)).requires_grad_() for n, step in steps.items()}
            try:
                with enable_grad():
                    found = repeated(self.function(leaves), leaves, self.order)
                made = {key: _limit(d) for key, d in found.items()}
            except LimitError:
                raise
            except _NO_SERIES:
                continue
            if all_finite(made.values()):
                return made
        raise _UnknownError("no limits")

    def polynomial(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the derivatives of the polynomial that the series along one side of each direction determine."""
        return self._joined(found, lambda derivative, _old, _index: self._derivative(derivative))

    def derivatives(self, found: Mapping[str, Any], without: bool) -> dict[str, Any]:
        """Decide for each derivative whether it exists.

        One that does not exist is nan from order 2 on; of order 1 it is left as found. An undecided derivative is left
        as found, or with `without` nan from order 2 on.
        """
        if math.comb(self.number + self.order - 1, self.order) > _MOST_RAYS:
            raise _TooManyError("too many directions")
        self._find_smooth_together()

        def part(derivative: Counts, old: Any, index: int) -> Any:
            try:
                return self._part(derivative, old, index)
            except _UnknownError:
                self.unknown = True
                order = sum(n for _, n in derivative)
                return _nan_like(self.value) if without and order > 1 else self._element(old, index)

        return self._joined(found, part)

    def _joined(self, found: Mapping[str, Any], part: Callable[[Counts, Any, int], Any]) -> dict[str, Any]:
        better: dict[str, Any] = {}
        for key, old in found.items():
            names = key.split(",")
            parts = [
                part(counts(place), old, index)
                for index, place in enumerate(itertools.product(*(self.variables[n] for n in names)))
            ]
            flat = old is None and all(assume(equal(p, 0.0)) for p in parts)
            if flat and (len(names) == 1 or better[names[0]] is None):
                better[key] = None
                continue
            shape = tuple(s for n in names for s in arrays.shape(self.leaves[n]))
            own = arrays.shape(self.value)
            whole = reshape(stack(parts), (*shape, *own)) if shape else parts[0]
            axes = range(len(shape) + len(own))
            better[key] = permute(whole, (*axes[len(shape) :], *axes[: len(shape)])) if own and shape else whole
        return better

    def _part(self, derivative: Counts, old: Any, index: int) -> Any:
        order = sum(n for _, n in derivative)
        if self._smooth_order(tuple(v for v, _ in derivative)) >= order:
            return self._derivative(derivative)
        return _nan_like(self.value) if order > 1 else self._element(old, index)

    def _element(self, old: Any, index: int) -> Any:
        """The part of a derivative that belongs to one element of the leaves."""
        if old is None:
            return arrays.zeros_like(self.value)
        if not arrays.shape(old):
            return old
        size = arrays.size(self.value)
        rows = reshape(old, (size, arrays.size(old) // size))
        return reshape(rows[:, index], arrays.shape(self.value))

    def _derivative(self, derivative: Counts) -> Any:
        order = sum(n for _, n in derivative)
        terms = (multiply(w, self._coefficients(d)[order]) for d, w in self._weights.of(derivative))
        total = None
        for term in terms:
            total = term if total is None else add(total, term)
        return total

    def _find_smooth_together(self) -> None:
        """Test whether the function is smooth in all variables in each of which it is smooth: testing each pair takes
        many times as many rays."""
        each = [v for v in range(self.number) if self._is_smooth((v,))]
        if self._is_smooth(tuple(each)):
            self._together = frozenset(each)

    def _is_smooth(self, variables: tuple[int, ...]) -> bool:
        with suppress(_UnknownError):
            return bool(variables) and self._smooth_order(variables) >= self.order
        return False

    def _smooth_order(self, variables: tuple[int, ...]) -> int:
        """Return the order to which the function of these variables alone is smooth; -1 where it jumps."""
        if self._together.issuperset(variables):
            return self.order
        if variables not in self._smooth:
            self._smooth[variables] = min(self._orders(variables))
        return self._smooth[variables]

    def _orders(self, variables: tuple[int, ...]) -> Iterator[int]:
        for direction in directions(len(variables), self.order):
            there = tuple((variables[v], n) for v, n in direction)
            known = self._coefficients(there)
            yield from self._agreements(there, [self.value, *known[1:]])
        if len(variables) > 1:
            for numbers in _other_directions(len(variables)):
                there = tuple(zip(variables, numbers))
                yield from self._agreements(there, [self.value, *self._polynomial(variables, there)])

    def _polynomial(self, variables: Sequence[int], direction: Counts) -> Iterator[Any]:
        """Yield the coefficients along a direction, computed from the derivatives by its variables."""
        numbers = dict(direction)
        for k in range(1, self.order + 1):
            total = arrays.zeros_like(self.value)
            for derivative in map(counts, itertools.combinations_with_replacement(variables, k)):
                weight = ratio(
                    math.prod(numbers[v] ** n for v, n in derivative),
                    math.prod(math.factorial(n) for _, n in derivative),
                )
                total = add(total, multiply(weight, self._derivative(derivative)))
            yield total


def _limit(derivative: Any) -> Any:
    """The limit of a derivative along a ray. Raises _UnknownError where it has a pole."""
    while isinstance(derivative, Kind):
        if isinstance(derivative, OneSidedJet) and derivative.poles:
            raise _UnknownError("a pole")
        derivative = derivative.inner
    return None if derivative is None else add(derivative, 0.0)


def _opposite(direction: Counts) -> Counts:
    return tuple((v, -n) for v, n in direction)


def _other_directions(number: int) -> Iterator[list[int]]:
    """Yield a fixed set of directions. For any two variables, one direction has components of opposite sign, one has
    components of the same sign, and one has a zero component for the first variable only."""
    generator = random.Random(number)
    bits = range((number - 1).bit_length())
    patterns = [[sign * (i >> bit & 1) + other * (~i >> bit & 1) for i in range(number)]
                for sign, other in ((1, -1), (1, 0), (0, 1)) for bit in bits]  # fmt: skip
    patterns += [[1] * number]
    further = max(_LEAST_DIRECTIONS, _DIRECTIONS // number)
    patterns += [[generator.choice((-1, 1)) for _ in range(number)] for _ in range(further)]
    for signs in patterns:
        yield [sign * generator.choice(_LENGTHS) for sign in signs]


def _largest(value: Any) -> float:
    if not arrays.size(value):
        return 0.0
    size = absolute(value)
    return float(max_(size) if arrays.shape(size) else size)


def _nan_like(value: Any) -> Any:
    return value if value is None else multiply(arrays.zeros_like(value), math.nan)
