"""Builds a program while sharing common subexpressions, folding constants and applying rewrites."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import GradcliError
from gradcli.primitives import conversions
from gradcli.primitives.bind import bind
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries import arithmetic, exponential, powers
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.ir import Atom, Equation, Variable
from gradcli.program.rewrites import Rewrites

# Bound on the depth of rewrites within replacements of other rewrites. A greater depth would help only sums whose
# products share many factors, and each level is a Python call, of which the stack holds a limited number.
_DEEPEST = 24

# Primitives whose result is 0 only where an operand is 0, or by underflow.
_NEVER_ZERO = frozenset(
    {
        exponential.exp, exponential.sigmoid, arithmetic.multiply, arithmetic.divide,
        powers.general_power, powers.whole_power,
    }
)  # fmt: skip
# Up to here every integer is exactly representable as a float.
_LARGEST_EXACT = 2**53


class Builder:
    """The equations so far, and what is known about their results.

    `true` has the boolean variables whose elements are all true for inputs that satisfy the guards.
    """

    def __init__(self, rewrites: Rewrites) -> None:
        self.rewrites = rewrites
        self.definitions: dict[Variable, Equation] = {}
        self.true: set[Variable] = set()
        self._known: dict[Hashable, Variable] = {}
        self._numbers: dict[Variable, int] = {}
        self._depth = 0

    def number(self, variable: Variable) -> int:
        """The position of a variable in the order of the program."""
        return self._numbers.setdefault(variable, len(self._numbers))

    def apply(
        self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Atom:
        """Return an atom with the value of `primitive` applied to `inputs`, of the given shape and dtype."""
        inner = shape
        if primitive.elementwise:
            inputs = _with_floats([self._known_truth(a) for a in inputs] if self.true else inputs)
            inputs, inner = self._without_broadcasts(primitive, inputs, params, shape, dtype)
        inputs = self._ordered(primitive, inputs)
        if inner != shape:
            return self.fit(self.apply(primitive, inputs, params, inner, dtype), shape, dtype)
        folded = (
            program_constants.filled(0.0, shape, dtype) if 0 in shape else _folded(primitive, inputs, params, shape)
        )
        if folded is None and self._depth < _DEEPEST:
            self._depth += 1
            folded = self.rewrites.rewritten(self, primitive, inputs, params, shape, dtype)
            self._depth -= 1
        if folded is not None:
            return self.fit(folded, shape, dtype)
        return self._shared(primitive, inputs, params, shape, dtype)

    def elementwise(self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any]) -> Atom:
        """Like `apply`, for an elementwise primitive: shape and dtype follow from the operands."""
        assert primitive.elementwise
        dtype = _result_dtype(primitive, inputs, params)
        return self.apply(primitive, inputs, params, broadcast(list(map(arrays.shape, inputs))), dtype)

    def fit(self, atom: Atom, new_shape: Shape, dtype: str) -> Atom:
        """Broadcast and convert `atom` to a shape and dtype."""
        if not isinstance(atom, Variable):
            same = arrays.shape(atom) == new_shape and arrays.dtype_name(atom) == dtype
            return atom if same else _broadcast_constant(arrays.astype(atom, dtype), new_shape)
        if atom.dtype != dtype:
            atom = self.apply(conversions.cast, [atom], {"dtype": dtype}, atom.shape, dtype)
        if arrays.shape(atom) != new_shape:
            atom = self.apply(broadcast_to, [atom], {"shape": new_shape}, new_shape, dtype)
        return atom

    def definition(self, atom: Atom) -> Equation | None:
        """Return the equation that defines an atom; None for inputs and constants."""
        return self.definitions.get(atom) if isinstance(atom, Variable) else None

    def holds(self, predicate: Primitive, inputs: Sequence[Atom]) -> bool:
        """Return whether a guard implies that `predicate` is true for every element of `inputs`."""
        found = self._known.get(equation_key(predicate, self._ordered(predicate, inputs), {}))
        return found is not None and found in self.true

    def _known_truth(self, atom: Atom) -> Atom:
        return (
            program_constants.filled(True, atom.shape, "bool")
            if isinstance(atom, Variable) and atom in self.true
            else atom
        )

    def _shared(
        self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> Variable:
        key = equation_key(primitive, inputs, params)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Variable(shape, dtype)
            self.number(found)
            self.definitions[found] = Equation(primitive, tuple(inputs), params, found)
        return found

    def _ordered(self, primitive: Primitive, inputs: Sequence[Atom]) -> Sequence[Atom]:
        """Order the operands of a commutative primitive: constants first, then by position in the program."""
        if not primitive.commutative or not isinstance(inputs[0], Variable):
            return inputs
        first, second = inputs
        if not isinstance(second, Variable) or self.number(second) < self.number(first):
            return [second, first]
        return inputs

    def _without_broadcasts(
        self, primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape, dtype: str
    ) -> tuple[Sequence[Atom], Shape]:
        """Return the operands before they were broadcast, and the shape of their result."""
        if not shape or not primitive.rounds_alike:
            return inputs, shape
        small = [self._before_broadcast(a) for a in inputs]
        if all(s is a for s, a in zip(small, inputs)) or _result_dtype(primitive, small, params) != dtype:
            return inputs, shape
        return small, broadcast([arrays.shape(a) for a in small])

    def _before_broadcast(self, atom: Atom) -> Atom:
        if isinstance(atom, Variable):
            equation = self.definitions.get(atom)
            return equation.inputs[0] if equation is not None and equation.primitive is broadcast_to else atom
        if not arrays.shape(atom):
            return atom
        element = program_constants.uniform(atom)
        return atom if element is None else arrays.tidy(element)


def _with_floats(inputs: Sequence[Atom]) -> Sequence[Atom]:
    """Convert integers beside floating-point operands to floats, as promotion would."""
    if int not in map(type, inputs):
        return inputs
    if not any(arrays.is_inexact(a) for a in inputs):
        return inputs
    return [float(a) if type(a) is int and abs(a) <= _LARGEST_EXACT else a for a in inputs]


def _folded(primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any], shape: Shape) -> Any:
    """The value of `primitive` applied to constants; None where an operand is a variable, or the value is too large."""
    for atom in inputs:
        if isinstance(atom, Variable):
            return None
    if primitive is broadcast_to:
        return _broadcast_constant(inputs[0], shape)
    if not program_constants.may_be_folded(shape):
        return None
    try:
        with arrays.quiet():
            found = bind(primitive, inputs, params)
        return None if _over_or_underflows(primitive, inputs, found) else found
    except GradcliError:
        # The error is raised when the program runs, if the equation is evaluated.
        return None


def _over_or_underflows(primitive: Primitive, inputs: Sequence[Atom], found: Any) -> bool:
    """Return whether folding overflowed or underflowed: rewriting may avoid that, as for exp(1000)*exp(-x)."""
    reals = all(type(a) in arrays.PYTHON_NUMBERS and type(a) is not complex for a in inputs)
    if type(found) is not float or not reals or not all(map(math.isfinite, inputs)):
        return False
    return math.isinf(found) or (found == 0.0 and primitive in _NEVER_ZERO and all(inputs))


def _broadcast_constant(constant: Any, new_shape: Shape) -> Any:
    if arrays.shape(constant) == new_shape:
        return constant
    return arrays.numpy_namespace().broadcast_to(constant, new_shape)


# Python numbers of the dtypes whose scalars are Python numbers.
_PLAIN_SAMPLES = {"float64": 1.0, "complex128": 1.0 + 0.0j, "int64": 1, "bool": True}


def _sort(atom: Atom) -> tuple[str, bool]:
    """The properties of an operand that determine the dtype of a result: its dtype, and whether it is a Python scalar,
    which does not promote arrays."""
    if isinstance(atom, Variable):
        return atom.dtype, not atom.shape and atom.dtype in _PLAIN_SAMPLES
    return arrays.dtype_name(atom), type(atom) in arrays.PYTHON_NUMBERS


def _result_dtype(primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any]) -> str:
    """The dtype of the result of an elementwise primitive."""
    return _dtype(primitive, tuple(map(_sort, inputs)), tuple(params.items()), arrays.default_dtype())


@cache
def _dtype(
    primitive: Primitive, sorts: tuple[tuple[str, bool], ...], params: tuple[tuple[str, Any], ...], _default: str
) -> str:
    """Evaluate the primitive on ones to find the dtype. `_default` is part of the cache key, as booleans become numbers
    of the default dtype."""
    samples = [_PLAIN_SAMPLES[dtype] if plain else arrays.numpy_namespace().ones((1,), dtype) for dtype, plain in sorts]
    with arrays.quiet():
        return arrays.dtype_name(bind(primitive, samples, dict(params)))


def equation_key(primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any]) -> Hashable:
    """A key that is equal for equations with bit-identical results."""
    operands = tuple([a if isinstance(a, Variable) else program_constants.key(a) for a in inputs])
    return (primitive, operands, frozen(params) if params else ())


def frozen(value: Any) -> Hashable:
    """Convert a parameter to a hashable value."""
    if isinstance(value, Mapping):
        return tuple((name, frozen(item)) for name, item in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, slice):
        return (slice, value.start, value.stop, value.step)
    if arrays.is_array(value):
        return program_constants.key(value)
    return value  # type: ignore[no-any-return]
