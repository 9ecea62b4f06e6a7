"""Derivatives of the solution of equations by their parameters, by the implicit function theorem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import element_ranges
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import inner_value
from gradcli.calculus.first_orders import Function
from gradcli.calculus.interpolation import Counts, Weights, counts, directions, multiplicities
from gradcli.calculus.jacobians import jacobians_by_either_mode
from gradcli.calculus.rows import shaped
from gradcli.kinds import batch
from gradcli.kinds.jets import Jet
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add, multiply, negative
from gradcli.primitives.entries.linear_algebra.matrices import solve
from gradcli.primitives.entries.shape import concat, matrix_transpose, stack

# Derivatives by unknown, and for each by names joined with commas as in `higher_orders`.
Found = dict[str, dict[str, Any]]


def square_jacobian(function: Function, unknowns: Mapping[str, Any], others: Mapping[str, Any]) -> Any:
    """Return the Jacobian of n equations by their n unknowns, whose elements are concatenated: a matrix [n, n]."""

    def run(given: Mapping[str, Any]) -> Any:
        return function({**others, **unknowns, **given})

    with enable_grad():
        leaves = {name: Tensor(value).requires_grad_() for name, value in unknowns.items()}
        value = run(leaves)
        found = jacobians_by_either_mode(run, leaves, value)
    size = arrays.size(value)
    parts = [
        arrays.zeros((size, leaf.size), leaf.dtype, arrays.foreign_namespace((leaf.inner,)))
        if found[name] is None
        else reshape(found[name], (size, leaf.size))
        for name, leaf in leaves.items()
    ]
    return inner_value(concat(parts, 1) if len(parts) > 1 else parts[0])


def implicit_derivatives(
    function: Function, unknowns: Mapping[str, Any], constants: Mapping[str, Any], order: int
) -> Found:
    """Return the derivatives up to an order, by `constants`, of the `unknowns` that solve function(unknowns, constants)
    = 0.

    The equations must hold at the given values, and their Jacobian by the unknowns must be regular. The shape of a
    derivative is that of the unknown followed by those of the constants.

    The unknowns are expanded as Taylor series along directions of the constants. Each coefficient solves the same
    linear system: the coefficient of order k cancels the residual of order k of the equations with the unknowns up to
    order k-1 (A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed. 2008, ch. 15).
    """
    solution = _Solution(function, unknowns, constants, order)
    return {name: solution.derivatives(name) for name in unknowns}


class _Solution:
    def __init__(
        self, function: Function, unknowns: Mapping[str, Any], constants: Mapping[str, Any], order: int
    ) -> None:
        self.function = function
        self.unknowns = unknowns
        self.constants = constants
        self.order = order
        self.jacobian = square_jacobian(function, unknowns, constants)
        self.places = element_ranges({name: arrays.size(value) for name, value in unknowns.items()})
        self.variables = element_ranges({name: arrays.size(value) for name, value in constants.items()})
        count = sum(map(len, self.variables.values()))
        number = math.comb(count + order - 1, order) if count else 0
        limits.charge_steps(limits.UNITS_PER_STEP * number)
        limits.charge(number * order * (count + sum(map(len, self.places.values()))))
        self.directions = [*directions(count, order)]
        # The coefficients of all unknowns from order 1 on; each is a matrix with a row for every direction.
        self.coefficients: list[Any] = []
        self.weights = Weights(order)
        self.rows = {direction: i for i, direction in enumerate(self.directions)}
        if count:
            self._expand()

    def _expand(self) -> None:
        number, nesting = len(self.directions), batch.new_batch_id()
        steps = {name: self._steps(name) for name in self.constants}
        for k in range(1, self.order + 1):
            given = {
                name: Jet([value, batch.Batched(steps[name], nesting)], k) for name, value in self.constants.items()
            }
            for name, value in self.unknowns.items():
                known = [batch.Batched(self._part(c, name), nesting) for c in self.coefficients]
                given[name] = Jet([value, *known], k)
            with batch.row_by_row(nesting):
                rest = inner_value(self.function(given))
            missing = rest.coefficient(k) if isinstance(rest, Jet) else None
            size = arrays.shape(self.jacobian)[0]
            if missing is None:
                missing = rest.zeros() if isinstance(rest, Jet) else arrays.zeros_like(rest)
            right = reshape(batch.unbatched(missing, nesting, number), (number, size))
            self.coefficients.append(negative(matrix_transpose(solve(self.jacobian, matrix_transpose(right)))))

    def _steps(self, name: str) -> Any:
        """The components of all directions that belong to one constant, with its shape."""
        value = self.constants[name]
        rows = multiplicities(self.directions, self.variables[name], arrays.dtype_name(value))
        return arrays.like_library_of(shaped(rows, arrays.shape(value)), value)

    def _part(self, coefficient: Any, name: str) -> Any:
        """The part of a coefficient that belongs to one unknown, with its shape, for each direction."""
        places = self.places[name]
        part = coefficient[:, places.start : places.stop]
        return reshape(part, (len(self.directions), *arrays.shape(self.unknowns[name])))

    def derivatives(self, name: str) -> dict[str, Any]:
        """Return the derivatives of one unknown."""
        keys: Iterator[tuple[str, ...]] = (
            key for n in range(1, self.order + 1) for key in combinations_with_replacement(self.constants, n)
        )
        return {",".join(key): self._derivative(name, key) for key in keys}

    def _derivative(self, name: str, key: Sequence[str]) -> Any:
        rows = self._part(self.coefficients[len(key) - 1], name)
        places = [*product(*(self.variables[by] for by in key))]
        found: dict[Counts, Any] = {}
        for place in places:
            by = counts(place)
            if by not in found:
                terms = [multiply(weight, rows[self.rows[d]]) for d, weight in self.weights.of(by)]
                total = terms[0]
                for term in terms[1:]:
                    total = add(total, term)
                found[by] = total
        shape = tuple(s for by in key for s in arrays.shape(self.constants[by]))
        if not shape:
            return found[counts(places[0])]
        own = arrays.shape(self.unknowns[name])
        # The axes of the unknown come first.
        return reshape(stack([reshape(found[counts(p)], (math.prod(own),)) for p in places], 1), (*own, *shape))
