"""Computes all derivatives of a scalar function up to any order, by Taylor series."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import element_ranges
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.accuracy import deviation
from gradcli.calculus.derivatives import gradients, inner_value, repeated
from gradcli.calculus.first_orders import Derivatives, Function, note_kinks, settled
from gradcli.calculus.interpolation import Counts, Weights, counts, directions, multiplicities
from gradcli.calculus.rows import shaped
from gradcli.errors import DifferentiationError, EvaluationError, LimitError, NotBatchableError, NotRecordableError
from gradcli.kinds import batch
from gradcli.kinds.branch_points import BranchPointWatcher, watching
from gradcli.kinds.jets import Jet, check_order, perturbed_of
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.conversions import permute, reshape
from gradcli.primitives.entries.arithmetic import add, multiply
from gradcli.primitives.entries.comparisons import isfinite
from gradcli.primitives.entries.shape import iter_first_axis, stack

if TYPE_CHECKING:
    pass


# Bound on the order of derivatives by several numbers: at this order, interpolation leaves half of the digits.
_HIGHEST_OF_SEVERAL = 16


def derivatives(function: Function, leaves: Mapping[str, Any], order: int) -> tuple[Any, Mapping[str, Any]]:
    """Return the scalar value of `function` at the arrays `leaves`, and all its derivatives from order 1 to `order`.

    They are keyed by leaves joined with commas. Each mixed one appears once, in the order of the leaves; its shape is
    the concatenation of the shapes of the leaves. None where the value does not depend on a leaf.

    A single scalar leaf takes one Taylor series. Otherwise, from order 3 on, gradients of series along several
    directions are interpolated, which loses about one digit for each order from 5 on. Repeated reverse mode serves
    lower orders, functions that have no series or fail in it, and derivatives by several numbers that are not finite.
    Raises DifferentiationError for a non-scalar value, and LimitError for an order above 170, or above 16 where there
    are several numbers to differentiate by.
    """
    result = _derivatives(function, leaves, order, None)
    return result.value, result.found


def derivatives_with_shadow(function: Function, leaves: Mapping[str, Any], order: int) -> Derivatives:
    """Like `derivatives`, with the distances between the results of two computations with different roundings.

    They are computed from order 2 on, see `gradcli.calculus.accuracy`. Ball arithmetic bounds its errors itself and
    needs none.
    """
    namespace = arrays.chosen_namespace()
    floats = namespace is None or namespace.scalars is None
    return _derivatives(function, leaves, order, Perturbation() if order > 1 and floats else None)


def _derivatives(
    function: Function, leaves: Mapping[str, Any], order: int, roundings: Perturbation | None
) -> Derivatives:
    if order < 2:
        return _of_branch_taken(function, leaves, order, roundings)
    switching = BranchPointWatcher()
    with watching(switching):
        result = _of_branch_taken(function, leaves, order, roundings)
    value = constant(result.value)
    if isinstance(value, Kind) or not assume(isfinite(value)) or (not switching and result.are_finite()):
        return result
    found = settled(function, leaves, value, result.found, at_kink=switching.at_kink).found
    if all(found[key] is d for key, d in result.found.items()):
        return result
    # The distances to the shadow belong to the branch that was taken.
    return Derivatives(result.value, found)


def _of_branch_taken(
    function: Function, leaves: Mapping[str, Any], order: int, roundings: Perturbation | None
) -> Derivatives:
    """The derivatives of the branch that is taken at the leaves, with conventional derivatives at kinks."""
    shapes = [arrays.shape(leaf) for leaf in leaves.values()]
    check_order(order)
    try:
        if shapes == [()] and order > 1:
            result = _by_single_series(function, leaves, order, roundings)
            if result.are_finite():
                return result
            return _by_single_series(function, leaves, order, roundings, followed=True)
        if order > _HIGHEST_OF_SEVERAL and sum(map(math.prod, shapes)) > 1:
            raise LimitError(
                f"a derivative of order {order} by several numbers would have few right digits",
                hint=f"orders up to {_HIGHEST_OF_SEVERAL}, or more by one name that is a number",
            )
        in_complex = any(map(arrays.is_complex, leaves.values()))
        if (order > 2 or (in_complex and order > 1)) and shapes and all(map(math.prod, shapes)):
            result = _along_directions(function, leaves, order, roundings)
            # Along a direction, a non-finite derivative affects finite ones.
            if result.are_finite():
                return result
    except (LimitError, NotRecordableError, NotBatchableError):
        raise
    except (NotImplementedError, EvaluationError):
        # The series also contain derivatives that were not requested, which may have failed.
        if any(map(arrays.is_complex, leaves.values())) and order > 1:
            raise
    return _by_reverse_mode(function, leaves, order, roundings)


def scalar(value: Any) -> Any:
    """Return `value`. Raises DifferentiationError for a non-scalar value."""
    if arrays.shape(value):
        raise DifferentiationError(
            f"derivatives of higher order are of a single number, and the value has shape {list(arrays.shape(value))}",
            hint="sum(…) of it is a number, and so is an element, as in (…)[0]",
        )
    return value


def _by_single_series(
    function: Function, leaves: Mapping[str, Any], order: int, roundings: Perturbation | None, followed: bool = False
) -> Derivatives:
    ((name, point),) = leaves.items()
    value = scalar(function({name: _series(point, arrays.ones_like(point), order, roundings, followed)}))
    value = inner_value(value)
    keys = [",".join([name] * k) for k in range(1, order + 1)]
    if not isinstance(value, Jet):
        return Derivatives(value, dict.fromkeys(keys))
    found = value.derivatives()
    others = [] if value.shadow is None else value.shadow.derivatives()
    deviations = dict(zip(keys, map(deviation, found[1:], others[1:])))
    return Derivatives(value.inner, dict(zip(keys, found[1:])), deviations)


def _series(point: Any, step: Any, order: int, roundings: Perturbation | None, followed: bool = False) -> Jet:
    """A leaf as a Taylor series along a direction."""
    series = Jet([point, step] if order else [point], order)
    if followed:
        series.followed()
    return series if roundings is None else series.watched(roundings)


def _along_directions(
    function: Function, leaves: Mapping[str, Any], order: int, roundings: Perturbation | None
) -> Derivatives:
    result = _Directions(function, leaves, order, roundings).derivatives()
    return result if result.are_finite() else _Directions(function, leaves, order, roundings, True).derivatives()


# By direction and leaf, the Taylor coefficients of the gradient; None where there is no gradient.
_Gradients = dict[Counts, dict[str, Sequence[Any] | None]]


class _Directions:
    """Gradients of a function as Taylor series along directions, one order lower than the derivatives.

    The variables are the elements of all leaves, concatenated.
    """

    def __init__(
        self,
        function: Function,
        leaves: Mapping[str, Any],
        order: int,
        roundings: Perturbation | None,
        followed: bool = False,
    ) -> None:
        self.function = function
        self.roundings = roundings
        self.followed = followed
        self.leaves = leaves
        self.order = order
        self.weights = Weights(order - 1)
        self.variables = element_ranges({name: arrays.size(value) for name, value in leaves.items()})
        count = sum(map(len, self.variables.values()))
        self.value: Any = None
        self.gradients: _Gradients = {}
        # The same for the shadow.
        self.others: _Gradients = {}
        limits.charge_steps(limits.UNITS_PER_STEP * math.comb(count + order - 2, order - 1))
        limits.charge(sum(math.prod(len(self.variables[n]) for n in names) for names in self._keys()))
        waiting = directions(count, order - 1)
        at_once = 1 if all(not arrays.shape(leaf) for leaf in leaves.values()) else max(1, batch.MAX_ELEMENTS // count)
        while chunk := [*itertools.islice(waiting, at_once)]:
            self._expand(chunk)

    def _expand(self, chunk: Sequence[Counts]) -> None:
        """Compute the gradients along some directions, several of them as the rows of a batch."""
        nesting = batch.new_batch_id() if len(chunk) > 1 else None
        given = {name: self._leaf(name, chunk, nesting) for name in self.leaves}
        with nullcontext() if nesting is None else batch.row_by_row(nesting):
            self.value = scalar(self.function(given))
            found = gradients(self.value, list(given.values()), retain_graph=False)
        for name, gradient in zip(given, found):
            series = None if gradient is None else gradient.inner
            self._keep(self.gradients, name, series, chunk, nesting)
            if self.roundings is not None:
                self._keep(self.others, name, perturbed_of(series), chunk, nesting)

    def _keep(
        self, gradients: _Gradients, name: str, series: Any, chunk: Sequence[Counts], nesting: int | None
    ) -> None:
        rows = [None] * len(chunk) if series is None else _rows(series, nesting, len(chunk))
        for direction, row in zip(chunk, rows):
            gradients.setdefault(direction, {})[name] = row

    def _leaf(self, name: str, chunk: Sequence[Counts], nesting: int | None) -> Tensor:
        point, variables = self.leaves[name], self.variables[name]
        shape, dtype = arrays.shape(point), arrays.dtype_name(point)
        if nesting is None and not shape:
            step = arrays.like_library_of(arrays.astype(float(dict(chunk[0]).get(variables[0], 0)), dtype), point)
        else:
            rows = arrays.like_library_of(shaped(multiplicities(chunk, variables, dtype), shape), point)
            step = rows[0] if nesting is None else batch.Batched(rows, nesting)
        return Tensor(_series(point, step, self.order - 1, self.roundings, self.followed)).requires_grad_()

    def _keys(self) -> Iterator[tuple[str, ...]]:
        """Yield the leaves that each derivative is taken by."""
        for n in range(1, self.order + 1):
            yield from itertools.combinations_with_replacement(self.leaves, n)

    def derivatives(self) -> Derivatives:
        found = self._joined(self.gradients)
        others = self._joined(self.others) if self.others else {}
        deviations = {key: None if other is None else deviation(found[key], other) for key, other in others.items()}
        return Derivatives(_inner(self.value), found, deviations)

    def _joined(self, gradients: _Gradients) -> dict[str, Any]:
        some = next(iter(gradients.values()))
        return {
            ",".join(names): None if some[names[0]] is None else self._tensor(gradients, names[0], names[1:])
            for names in self._keys()
        }

    def _tensor(self, gradients: _Gradients, first: str, others: Sequence[str]) -> Any:
        """The derivatives by `others` of the gradient by `first`, whose axes come first."""
        places = itertools.product(*(self.variables[name] for name in others))
        parts: dict[Counts, Any] = {}
        rows = []
        for place in places:
            derivative = counts(place)
            if derivative not in parts:
                parts[derivative] = self._part(gradients, first, derivative)
            rows.append(parts[derivative])
        shape = [s for name in others for s in arrays.shape(self.leaves[name])]
        own = arrays.shape(self.leaves[first])
        if not shape:
            return rows[0]
        axes = range(len(shape) + len(own))
        return permute(reshape(stack(rows), (*shape, *own)), (*axes[len(shape) :], *axes[: len(shape)]))

    def _part(self, gradients: _Gradients, first: str, derivative: Counts) -> Any:
        """One derivative of the gradient by `first`, for all its elements."""
        order = sum(n for _, n in derivative)
        if not order:
            series = next(iter(gradients.values()))[first]
            return None if series is None else series[0]
        total = None
        for direction, weight in self.weights.of(derivative):
            series = gradients[direction][first]
            part = series[order] if series is not None and order < len(series) else None
            if part is not None:
                term = part if weight == 1 else multiply(weight, part)
                total = term if total is None else add(total, term)
        return arrays.zeros_like(self.leaves[first]) if total is None else total


def _inner(value: Any) -> Any:
    while isinstance(value, (Tensor, Jet)):
        value = value.inner
    return value


def _rows(series: Any, nesting: int | None, size: int) -> list[Sequence[Any]]:
    """The coefficients of a series for each row of a batch."""
    coefficients = series.coefficients if isinstance(series, Jet) else (series,)
    if nesting is None:
        return [coefficients]
    return [*zip(*(iter_first_axis(batch.unbatched(c, nesting, size)) for c in coefficients))]


def _by_reverse_mode(
    function: Function, leaves: Mapping[str, Any], order: int, roundings: Perturbation | None
) -> Derivatives:
    tensors = {
        name: Tensor(array).requires_grad_() if roundings is None else leaf_with_shadow(array, roundings)
        for name, array in leaves.items()
    }
    value = scalar(function(tensors))
    note_kinks(value)
    found = repeated(value, tensors, order)
    if roundings is None:
        return Derivatives(value, found)
    series = {key: None if d is None else d.inner for key, d in found.items()}
    deviations = {
        key: None if d is None else deviation(_inner(d), _inner(perturbed_of(d))) for key, d in series.items()
    }
    return Derivatives(_inner(value), {key: _inner(d) for key, d in series.items()}, deviations)


def leaf_with_shadow(array: Any, roundings: Perturbation) -> Tensor:
    """A leaf for reverse mode whose results have shadows."""
    return Tensor(_series(array, None, 0, roundings)).requires_grad_()


class DirectionalDerivatives(NamedTuple):
    """Directional derivatives of the gradients of a function from n numbers to m numbers, along k directions.

    `second` is the Hessian of each value times each direction, `[m, k, n]`; `third` has the third derivatives by each
    direction twice, `[m, k, n]`.
    """

    second: Any
    third: Any


def gradients_along(function: Callable[[Any], Any], point: Any, directions: Any, size: int) -> DirectionalDerivatives:
    """Expand the gradients of the `size` elements of `function(point)` along `directions`, by reverse mode over Taylor
    series of order 2.

    `point` is a vector `[n]`, `directions` is `[k, n]`. As many directions are computed at once as memory permits.
    Raises NotImplementedError and EvaluationError where an operation has no series or fails.
    """
    np = arrays.numpy_namespace()
    shape = (size, *directions.shape)
    limits.charge(2 * size * directions.size)
    second, third = np.zeros(shape), np.zeros(shape)
    at_once = max(1, batch.MAX_ELEMENTS // max(1, point.size))
    for start in range(0, len(directions), at_once):
        chunk = directions[start : start + at_once]
        nesting = batch.new_batch_id()
        leaf = Tensor(Jet([point, batch.Batched(chunk, nesting)], 2)).requires_grad_()
        with batch.row_by_row(nesting):
            value = function(leaf)
            if not isinstance(value, Tensor) or not value.requires_grad:
                break
            elements = reshape(value, (size,))
            for row in range(size):
                (found,) = gradients(elements[row], [leaf], retain_graph=True)
                series = found.inner.coefficients if found is not None and isinstance(found.inner, Jet) else ()
                for target, factor, coefficient in zip((second, third), (1.0, 2.0), series[1:]):
                    rows = batch.unbatched(coefficient, nesting, len(chunk))
                    target[row, start : start + len(chunk)] = factor * np.asarray(rows)
    return DirectionalDerivatives(second, third)
