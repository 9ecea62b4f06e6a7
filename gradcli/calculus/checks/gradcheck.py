"""Checks derivatives of reverse mode against finite differences."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.checks.finite_differences import EPSILON, Difference, ridders_derivative
from gradcli.calculus.derivatives import gradients
from gradcli.errors import DifferentiationError, EvaluationError, LimitError, expect
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.axes import integer, one_number
from gradcli.primitives.bind import concrete
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import stack
from gradcli.primitives.operators import operand

# The relative difference that checks accept by default.
TOLERANCE = 1e-6

MISMATCH = "mismatch"
NONFINITE = "nonfinite"
KINK = "kink"
UNRESOLVED = "unresolved"
# Costs in eighths of steps: of each entry of the inputs, and of changing one entry.
_ENTRY = 16
_CHANGE = 16
# Problems in order of severity, the worst first.
_PROBLEMS = (MISMATCH, NONFINITE, KINK, UNRESOLVED)

# Multiple of the estimated error that a deviation must exceed to count.
_WELL_BEYOND = 10.0
# Subnormal numbers have fewer digits, and their differences have none.
_TINY = 2.0**-1022
# Relative error above which a difference is uninformative.
_USELESS = 0.01
# Relative change of the slope below which a jump cannot be distinguished from the error of the differences.
_SLIGHT_JUMP = 1e-4
# Decimal digits of a float64 number.
_MOST_DIGITS = 15


class Check(NamedTuple):
    """A derivative of order `order` by one entry of a leaf, by reverse mode and by differences.

    `entry` is the index of the entry. `reverse` is None where the value does not depend on the leaf. `uncertainty` is
    the estimated error of `ridders_derivative`; `error` is the difference of both, relative to the larger one, and `digits` the
    number of digits that are known to agree. `problem` is None where they agree, else "mismatch", "nonfinite", "kink",
    or "unresolved" where the differences do not converge.
    """

    leaf: str
    order: int
    entry: tuple[int, ...]
    reverse: float | None
    difference: float
    uncertainty: float
    error: float
    digits: int
    problem: str | None

    @property
    def agrees(self) -> bool:
        return self.problem is None


class Report(NamedTuple):
    """The worst entry of each leaf in each order. A report is true where all agree."""

    rows: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """True if reverse mode and differences agree everywhere."""
        return all(row.agrees for row in self.rows)

    def __bool__(self) -> bool:
        return self.ok


def check_gradients(function: Callable[..., Any], inputs: Any, order: int = 1, tolerance: float = TOLERANCE) -> Report:
    """Compare the derivatives of `function` up to `order` with differences of the order below.

    `inputs` are numbers, arrays or Tensors, converted to float64: a mapping, whose values are passed as keyword
    arguments, a sequence, or a single value. Complex numbers are checked along both axes, part by part. The value of
    `function` may have any shape: a non-scalar value, or derivative of lower order, is weighted by a fixed cotangent of
    random numbers. Derivatives agree where they differ by less than `tolerance`, relative to the larger one, or by less
    than the error of the differences.

    Raises DifferentiationError where there is nothing to differentiate by, and what `function` raises at `inputs`. An
    EvaluationError at neighbouring points counts as the value nan.
    """
    expect(function, Callable, "the derivatives are checked of a program or a function")  # type: ignore[arg-type]
    order, tolerance = integer(order, "an order"), one_number(tolerance, "a tolerance")
    if order < 1 or not 0 < tolerance < 1:
        raise DifferentiationError("a check needs an order of 1 or more and a tolerance between 0 and 1")
    given = _named(inputs)
    namespace = arrays.foreign_namespace(given.values())
    # Overhead of each entry, beside the evaluations.
    limits.charge_steps(_ENTRY * sum(map(arrays.size, given.values())))
    hosted = {name: arrays.in_precision(arrays.on_host(array), "float64") for name, array in given.items()}
    named = {part: array for name in hosted for part, array in _parts(name, hosted[name]).items()}
    if not any(entries(array) for array in named.values()):
        raise DifferentiationError("there is nothing to differentiate by")
    of_names = function if isinstance(inputs, Mapping) else lambda **leaves: function(*leaves.values())
    call = _of_parts(of_names, hosted)
    with arrays.using_namespace(namespace), arrays.quiet():
        checker = _Checker(call, named, tolerance)
        return Report(tuple(row for n in range(1, order + 1) for row in checker.rows(n)))


def _parts(name: str, array: Any) -> dict[str, Any]:
    """A leaf by its name, or the parts of a complex one."""
    if not arrays.is_complex(array):
        return {name: array}
    return {f"real({name})": arrays.tidy(array.real), f"imag({name})": arrays.tidy(array.imag)}


def _of_parts(function: Callable[..., Any], point: Mapping[str, Any]) -> Callable[..., Any]:
    """A function as one of the parts of its complex inputs, whose value has the parts of a complex one along a new first
    axis."""
    complex_names = [name for name, array in point.items() if arrays.is_complex(array)]

    def parts(**leaves: Any) -> Any:
        inputs = _from_parts(leaves, point) if complex_names else leaves
        value = operand(function(**inputs))
        return value if type(value) is float or not arrays.is_complex(value) else _stacked_parts(value)

    return parts


def _from_parts(leaves: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    # Loaded on demand, here and below: few functions have complex numbers.
    from gradcli.primitives.entries.complex_parts import from_parts

    given = iter(leaves.values())
    return {n: from_parts(next(given), next(given)) if arrays.is_complex(a) else next(given) for n, a in point.items()}


def _stacked_parts(value: Any) -> Any:
    from gradcli.primitives.entries.elementwise.complex_numbers import imag, real

    return stack([real(value), imag(value)])


def _named(inputs: Any) -> dict[str, Any]:
    if not isinstance(inputs, Mapping):
        inputs = {str(i): x for i, x in enumerate(inputs if isinstance(inputs, (list, tuple)) else (inputs,))}
    return {name: concrete(operand(x)) for name, x in inputs.items()}


def entries(array: Any) -> list[tuple[int, ...]]:
    return [*itertools.product(*map(range, arrays.shape(array)))]


def _entry(array: Any, index: tuple[int, ...]) -> float:
    return float(array[index] if index else array)


def _neighbours(point: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield points that differ from `point` in the last bits of every number."""
    for seed in (2, 3):
        generator = random.Random(seed)
        yield {n: a * (1.0 + 2.0**-50 * _random(arrays.shape(a), generator)) for n, a in point.items()}


def _with_entry(array: Any, index: tuple[int, ...], value: float) -> Any:
    if not index:
        return value
    limits.charge_steps(_CHANGE)
    limits.charge(array.size)
    changed = array.copy()
    changed[index] = value
    return changed


class _Checker:
    """The check of one function at one point."""

    def __init__(self, function: Callable[..., Any], point: Mapping[str, Any], tolerance: float) -> None:
        self.function = function
        self.point = point
        self.tolerance = tolerance
        self.directions = directions(point)
        # The largest magnitude of a value so far. Derivatives along directions that are proportional to the point have
        # similar magnitudes.
        self.magnitude = 0.0

    def rows(self, order: int) -> list[Check]:
        """Return the worst entry of every leaf that has entries."""
        centre, found = self._gradients(self.point, order)
        self.magnitude = abs(centre) if _is_one_number(self.point) else max(self.magnitude, abs(centre))
        # Gradients at points that differ only in the last bits show the effect of rounding.
        beside = [self._gradients(point, order)[1] for point in _neighbours(self.point)]
        rows = []
        for name, array in self.point.items():
            checks = []
            for index in entries(array):
                reverse, *others = (
                    None if gradients[name] is None else _entry(gradients[name], index)
                    for gradients in (found, *beside)
                )
                rounding = max(abs((other or 0.0) - (reverse or 0.0)) for other in others)
                checks.append(self._check(name, order, index, reverse, rounding, centre))
            if checks:
                rows.append(min(checks, key=badness))
        return rows

    def _gradients(self, point: Mapping[str, Any], order: int) -> tuple[float, dict[str, Any]]:
        """Return the derivative of order `order` - 1, and its gradient by each leaf."""
        value, found = gradients_along(self.function, point, self.directions, order - 1)
        return float(concrete(value)), {n: None if g is None else arrays.on_host(g.inner) for n, g in found.items()}

    def _derivative(self, point: Mapping[str, Any], order: int) -> tuple[dict[str, Tensor], Any]:
        return _along_directions(self.function, point, self.directions, order)

    def _check(
        self, name: str, order: int, index: tuple[int, ...], reverse: float | None, rounding: float, centre: float
    ) -> Check:
        x = _entry(self.point[name], index)
        scale = abs(x) or 1.0
        comparison = _Comparison(reverse or 0.0, rounding, self.magnitude / scale, self.tolerance)
        found = None
        if math.isfinite(centre) and math.isfinite(x):
            along = self._along(name, index, order - 1)
            found = ridders_derivative(along, x, centre, scale, comparison.accepts)
            if scale < 1.0 and (found is None or comparison.is_coarse(found)):
                # Near 0, the function may vary on the scale of 1 rather than on that of the number.
                found = comparison.better(found, ridders_derivative(along, x, centre, 1.0, comparison.accepts))
        return comparison.check(name, order, index, reverse, found)

    def _along(self, name: str, index: tuple[int, ...], order: int) -> Callable[[float], float]:
        """The derivative of this order as a function of one entry of a leaf."""

        def function(x: float) -> float:
            point = {**self.point, name: _with_entry(self.point[name], index, x)}
            try:
                return float(concrete(self._derivative(point, order)[1]))
            except LimitError:
                raise
            except EvaluationError:
                return math.nan

        return function


def gradients_along(
    function: Callable[..., Any], point: Mapping[str, Any], along: Sequence[Any], order: int
) -> tuple[Any, dict[str, Tensor | None]]:
    """Return the derivative of this order along the directions `along`, under the fixed cotangent, and its gradient by
    each leaf."""
    leaves, value = _along_directions(function, point, along, order)
    return value, dict(zip(leaves, gradients(value, list(leaves.values()))))


def _along_directions(
    function: Callable[..., Any], point: Mapping[str, Any], along: Sequence[Any], order: int
) -> tuple[dict[str, Tensor], Any]:
    """Return the leaves at `point`, and the derivative of this order along the directions, with its graph."""
    leaves = {name: Tensor(arrays.in_default_namespace(array)).requires_grad_() for name, array in point.items()}
    with enable_grad():
        value = operand(function(**leaves))
        value = _weighted(value, _cotangent(arrays.shape(value)))
        for _ in range(order):
            limits.charge_steps()
            found = gradients(value, list(leaves.values()), create_graph=True)
            parts = [_weighted(g, d) for g, d in zip(found, along) if g is not None]
            value = sum(parts[1:], parts[0]) if parts else 0.0
    return leaves, value


class _Comparison:
    """Compares a derivative of reverse mode with a difference.

    `rounding` is the estimated error of the derivative itself. `natural` is the slope at which doubling x changes the
    value by its own magnitude; differences near 0 are judged relative to it.
    """

    def __init__(self, reverse: float, rounding: float, natural: float, tolerance: float) -> None:
        self.reverse = reverse
        self.natural = natural if math.isfinite(natural) else 0.0
        self.rounding = max(rounding if math.isfinite(rounding) else 0.0, EPSILON * self.natural)
        self.tolerance = tolerance

    def problem(self, found: Difference | None) -> str | None:
        if found is None or not math.isfinite(self.reverse):
            return NONFINITE
        size = self._size(found)
        slope, jump = found.slope, found.jump
        if abs(jump.value) > max(_WELL_BEYOND * jump.error, _SLIGHT_JUMP * size):
            return KINK
        deviation = abs(slope.value - self.reverse)
        if deviation > self.tolerance * size + _WELL_BEYOND * (slope.error + self.rounding) + _TINY:
            return UNRESOLVED if found.drift > deviation / 2 else MISMATCH
        return UNRESOLVED if slope.error > _USELESS * max(size, self._natural(found)) else None

    def accepts(self, found: Difference) -> bool:
        return self.problem(found) is None

    def is_coarse(self, found: Difference) -> bool:
        return not self.accepts(found) or found.slope.error > self.tolerance * self._size(found)

    def better(self, one: Difference | None, other: Difference | None) -> Difference | None:
        if one is None or other is None:
            return one or other
        if self.accepts(one) != self.accepts(other):
            return one if self.accepts(one) else other
        return min(one, other, key=lambda d: d.slope.error)

    def check(
        self, leaf: str, order: int, index: tuple[int, ...], reverse: float | None, found: Difference | None
    ) -> Check:
        problem = self.problem(found)
        if found is None or problem == NONFINITE:
            slope = math.nan if found is None else found.slope.value
            return Check(leaf, order, index, reverse, slope, math.nan, math.nan, 0, problem)
        slope, uncertainty = found.slope
        deviation = abs(slope - self.reverse)
        size = self._size(found)
        if size <= _WELL_BEYOND * (uncertainty + self.rounding):
            size = max(size, self._natural(found))
        error = deviation / size if size else 0.0
        known = max(deviation, uncertainty) / size if size else 0.0
        return Check(leaf, order, index, reverse, slope, uncertainty, error, _digits(known), problem)

    def _natural(self, found: Difference) -> float:
        return max(self.natural, found.chord)

    def _size(self, found: Difference) -> float:
        return max(abs(self.reverse), abs(found.slope.value))


def _digits(error: float) -> int:
    return _MOST_DIGITS if error == 0 else min(_MOST_DIGITS, max(0, math.floor(-math.log10(error))))


def badness(check: Check) -> tuple[int, int, float]:
    """A sort key; the worst check has the smallest."""
    rank = len(_PROBLEMS) if check.problem is None else _PROBLEMS.index(check.problem)
    return rank, check.digits, -check.error


def _weighted(value: Any, weights: Any) -> Any:
    """The sum of the elements of `value`, weighted."""
    product = multiply(value, weights)
    return sum_(product) if arrays.shape(product) else product


def _cotangent(shape: tuple[int, ...]) -> Any:
    """A fixed cotangent without small elements. It is 1 for a scalar, so that the plain derivative is checked."""
    return 1.0 if not shape else _random(shape, random.Random(0))


def directions(point: Mapping[str, Any]) -> Sequence[Any]:
    """The directions of the inner derivatives of higher orders.

    They are proportional to each entry, so that leaves of all scales count; 1 for a single number.
    """
    if _is_one_number(point):
        return [1.0]
    generator = random.Random(1)
    return [_scales(array) * _random(arrays.shape(array), generator) for array in point.values()]


def _is_one_number(point: Mapping[str, Any]) -> bool:
    return [arrays.shape(array) for array in point.values()] == [()]


def _scales(array: Any) -> Any:
    if not arrays.shape(array):
        return abs(array) or 1.0
    return abs(array) + (array == 0)


def _random(shape: tuple[int, ...], generator: random.Random) -> Any:
    numbers = [generator.uniform(0.5, 1.5) * generator.choice((-1.0, 1.0)) for _ in range(math.prod(shape))]
    return arrays.asarray(numbers).reshape(shape) if shape else numbers[0]
