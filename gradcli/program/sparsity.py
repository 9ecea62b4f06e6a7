"""Finds which elements of a program's outputs depend on which elements of its inputs.

A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition (SIAM 2008), section 7.1: index sets are propagated
through the equations. Primitives without a sparse rule count as dense.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays import sparsity_patterns
from gradcli.arrays.shapes import Shape
from gradcli.arrays.sparsity_patterns import Pattern
from gradcli.errors import LimitError
from gradcli.primitives import batching
from gradcli.primitives.entries import indexing, linear
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.positions import broadcast_positions, positions, source_positions, targets

# Bound on the number of entries in the pattern of any intermediate result.
_MOST_ENTRIES = 2**24


def dependence(program: Program, variables: Sequence[Variable]) -> list[Pattern]:
    """Return a pattern for each output, with a row for each of its elements and a column for each element of all
    `variables`.

    `variables` are inputs of `program`, whose elements are concatenated. A dependence without a derivative is ignored.
    Raises LimitError where an intermediate result has too many entries, because the dependence is not sparse.
    """
    return _Propagation(variables).outputs(program)


class _Propagation:
    def __init__(self, variables: Sequence[Variable]) -> None:
        self.size = sum(math.prod(v.shape) for v in variables)
        # Variables that do not depend on any input element are omitted.
        self.known: dict[Variable, Pattern] = {}
        first = 0
        for variable in variables:
            size = math.prod(variable.shape)
            self.known[variable] = sparsity_patterns.units(first, size, self.size)
            first += size

    def outputs(self, program: Program) -> list[Pattern]:
        last = {a: e.output for e in program.equations for a in e.inputs if isinstance(a, Variable)}
        kept = {a for a in program.outputs if isinstance(a, Variable)}
        for equation in program.equations:
            found = self._of(equation)
            if found is not None and found.nnz:
                self.known[equation.output] = found
            for atom in equation.inputs:
                if isinstance(atom, Variable) and atom not in kept and last[atom] is equation.output:
                    self.known.pop(atom, None)
        return [self._pattern(o) for o in program.outputs]

    def _pattern(self, atom: Atom) -> Pattern:
        found = self.known.get(atom) if isinstance(atom, Variable) else None
        return sparsity_patterns.empty(arrays.size(atom), self.size) if found is None else found

    def _of(self, equation: Equation) -> Pattern | None:
        primitive = equation.primitive
        mask = primitive.differentiable(len(equation.inputs))
        operands = [a for i, a in enumerate(equation.inputs) if mask >> i & 1 and self._depends(a)]
        if not operands:
            return None
        if primitive.elementwise:
            return self._united([self._spread(self.known[o], o.shape, equation.output.shape) for o in operands])
        if primitive.moves:
            parts = [sparsity_patterns.empty(1, self.size), *map(self._pattern, equation.inputs)]
            return self._taken(sparsity_patterns.vstack(parts), source_positions(equation))
        if primitive is indexing.scatter:
            return self._scattered(equation)
        if primitive is linear.matmul:
            return self._contracted(equation, *linear.matmul_letters([arrays.shape(a) for a in equation.inputs]))
        if primitive is linear.contract and all(len(set(t)) == len(t) for t in equation.params["terms"]):
            return self._contracted(equation, equation.params["terms"], equation.params["result"])
        if primitive.batch is batching.along_axis:
            return self._along_axes(operands[0], equation.output.shape, equation.params["axis"])
        return self._dense(operands, equation)

    def _depends(self, atom: Atom) -> bool:
        return isinstance(atom, Variable) and atom in self.known

    def _spread(self, pattern: Pattern, given: Shape, wanted: Shape) -> Pattern:
        """The pattern of a tensor that is broadcast to a shape."""
        if given == wanted:
            return pattern
        return self._taken(pattern, broadcast_positions(given, wanted))

    def _taken(self, pattern: Pattern, places: Any) -> Pattern:
        _charge(sparsity_patterns.taken_entries(pattern, places))
        return sparsity_patterns.rows_at(pattern, places)

    def _united(self, parts: Sequence[Pattern]) -> Pattern:
        _charge(sum(p.nnz for p in parts))
        return sparsity_patterns.union(parts)

    def _scattered(self, equation: Equation) -> Pattern:
        (operand,), params = equation.inputs, equation.params
        places = targets(params)
        sources = broadcast_positions(operand.shape, places.shape)
        return sparsity_patterns.merged(self.known[operand], sources, places, math.prod(params["shape"]))

    def _along_axes(self, operand: Variable, wanted: Shape, axis: int | tuple[int, ...]) -> Pattern:
        """Each element of the result depends on all elements along the axes."""
        axes = axis if isinstance(axis, tuple) else (axis,)
        kept = tuple(1 if a in axes else s for a, s in enumerate(operand.shape))
        found = self._merged(self.known[operand], operand.shape, kept)
        return found if math.prod(wanted) == math.prod(kept) else self._spread(found, kept, wanted)

    def _merged(self, pattern: Pattern, given: Shape, kept: Shape) -> Pattern:
        """The pattern of a tensor that is reduced along the axes of size 1 in `kept`."""
        return sparsity_patterns.merged(pattern, positions(given), broadcast_positions(kept, given), math.prod(kept))

    def _contracted(self, equation: Equation, terms: Sequence[Sequence[Any]], result: Sequence[Any]) -> Pattern:
        """A sum of products (einsum), with axes named by letters."""
        parts = []
        for operand, term in zip(equation.inputs, terms):
            if self._depends(operand):
                kept = tuple(s if letter in result else 1 for s, letter in zip(operand.shape, term))
                found = self._merged(self.known[operand], operand.shape, kept)
                places = _by_letters(positions(kept), term, result)
                parts.append(self._taken(found, arrays.numpy_namespace().broadcast_to(places, equation.output.shape)))
        return self._united(parts)

    def _dense(self, operands: Sequence[Variable], equation: Equation) -> Pattern:
        """Each element of the result depends on all variables that any operand depends on."""
        parts = [self._merged(self.known[o], o.shape, (1,) * len(o.shape)) for o in operands]
        return self._spread(self._united(parts), (1,), (math.prod(equation.output.shape),))


def _by_letters(x: Any, term: Sequence[Any], result: Sequence[Any]) -> Any:
    """Transpose `x`, whose axes are named by `term`, to the order of `result`; missing axes have size 1."""
    shared = [letter for letter in result if letter in term]
    others = [letter for letter in term if letter not in result]
    sizes = dict(zip(term, x.shape))
    return x.transpose([term.index(a) for a in (*shared, *others)]).reshape([sizes.get(a, 1) for a in result])


def _charge(entries: int) -> None:
    limits.charge(entries)
    if entries > _MOST_ENTRIES:
        raise LimitError("too many elements depend on too many variables: this is not sparse")
