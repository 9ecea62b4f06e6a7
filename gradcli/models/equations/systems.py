"""A system of equations as a function of the flat vector of its unknowns, real or complex: residuals and exact
Jacobian, and all roots of polynomials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.compiled.programs import CompiledProgram
from gradcli.errors import EvaluationError, GradcliError, LimitError, Span, UsageError
from gradcli.evaluation import session
from gradcli.kinds.jets import Jet
from gradcli.language.equations import Equations
from gradcli.language.interpreter.run import evaluate
from gradcli.models.packing import Packing
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import concrete

# Smaller derivatives may be due to underflow.
_LOST = 1e-290
# The largest degree of a polynomial whose roots are found, and the steps of Newton's method that polish them.
_HIGHEST_DEGREE, _STEPS = 100, 8
# A root of multiplicity m is found to about the m-th root of the machine epsilon; groups within these distances are
# examined, and derivatives of up to this number of rounding errors a term count as 0.
_RADII, _ROUNDINGS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7), 8.0


class EquationSystem:
    """Equations for unknowns of given shapes, with the values of all other names."""

    # Words in the error for a wrong number of equations.
    _how_counted = ""

    def __init__(self, equations: Equations, unknowns: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self.equations = equations
        self.packing = Packing.of(unknowns)
        self.constants = dict(constants)
        self.program = CompiledProgram(equations.program)

    @property
    def is_of_one_number(self) -> bool:
        """True if the only unknown is a real number."""
        return self.packing.size == 1 and [*self.packing.shapes.values()] == [()]

    def check_count(self, point: Any) -> Any:
        """The residuals at a point. Raises UsageError unless there are as many equations as unknowns."""
        residual = self.flat_residual(self.program(**self.values(point)))
        count, size = len(residual), self.packing.size
        program = self.equations.program
        if count != size:
            raise UsageError(
                f"there {_are(count, 'equation')} for {size} unknown{'s' * (size != 1)}{self._how_counted}",
                hint="there must be as many; gradcli minimize takes a sum of squares of more",
                span=Span(0, len(program.source)),
                source=program.source,
            )
        return residual

    def check(self, point: Any) -> None:
        """Raise EvaluationError, with its place in the source, where the residuals at a point are not finite, and what
        `check_count` raises."""
        residual, program = self.check_count(point), self.equations.program
        xp = arrays.numpy_namespace()
        if not xp.all(xp.isfinite(residual)):
            request = session.EvaluationRequest(program, self.values(point), gradient=False, executor="eager")
            found = [w for w in session.run(request).warnings if w.code == "nonfinite"]
            raise EvaluationError(
                "the equations have no value at the start" + (f": {found[0].message}" if found else ""),
                hint="give another start, as in x~0.5",
                span=found[0].span if found else self.equations.places[0],
                source=program.source,
            )

    def values(self, point: Any) -> dict[str, Any]:
        """The values of all names, with the unknowns taken from a vector."""
        return {**self.constants, **self.packing.named(point)}

    def flat_residual(self, value: Any) -> Any:
        """The evaluated differences of the sides as a float64 vector. Raises UsageError where they are complex, as the
        unknowns are real."""
        if arrays.is_complex(value):
            raise UsageError(
                "the equations are complex, and their unknowns real", hint="give a complex start, as in z~1+1j"
            )
        return arrays.numpy_namespace().asarray(value, dtype=float)

    def residual(self, point: Any) -> Any:
        """The differences `[n]` of the sides; nan where they have no value."""
        xp = arrays.numpy_namespace()
        try:
            return self.flat_residual(self.program(**self.values(point)))
        except LimitError:
            raise
        except EvaluationError:
            return xp.full(self.packing.size, xp.nan)

    def jacobian(self, point: Any) -> Any:
        """The derivatives `[n, n]` of the residuals by the unknowns; nan where there are none."""
        xp = arrays.numpy_namespace()
        size = self.packing.size
        try:
            found = self.program.jacobian(self.values(point), [*self.packing.shapes])
        except LimitError:
            raise
        except EvaluationError:
            return xp.full((size, size), xp.nan)
        matrix = xp.zeros((size, size))
        for name, place in self.packing.places().items():
            if found[name] is not None:
                matrix[:, place] = xp.reshape(found[name], (size, -1))
        return matrix

    def scaled_jacobian(self, point: Any, sizes: Any) -> Any:
        """The Jacobian `[n, n]` times the `sizes` `[n]` of the unknowns. These products are also found where the
        derivatives themselves overflow or underflow."""
        xp = arrays.numpy_namespace()
        found = self.jacobian(point)
        if not self.is_lost(found):
            return found * sizes
        return xp.stack([self._along(point, size * unit) for size, unit in zip(sizes, xp.eye(len(point)))], axis=1)

    @staticmethod
    def is_lost(jacobian: Any) -> bool:
        """Return whether a derivative is not finite, or all derivatives of an equation or by an unknown are so small
        that they may have underflowed."""
        xp = arrays.numpy_namespace()
        small = xp.abs(jacobian) < _LOST
        return bool((small.all(axis=0) | small.all(axis=1)).any() or not xp.isfinite(jacobian).all())

    def _along(self, point: Any, step: Any) -> Any:
        """The directional derivative `[n]` of the residuals along a step `[n]`; nan where they have no value."""
        xp = arrays.numpy_namespace()
        steps = self.packing.named(step)
        try:
            value = self.function({name: Jet([x, steps[name]], 1) for name, x in self.packing.named(point).items()})
        except LimitError:
            raise
        except GradcliError:
            return xp.full(len(point), xp.nan)
        change = value.coefficient(1) if isinstance(value, Jet) else None
        return xp.zeros(len(point)) if change is None else self.flat_residual(concrete(change))

    def function(self, given: Mapping[str, Any]) -> Any:
        """The residuals for values of any kind, such as jets and balls."""
        others = {name: value for name, value in self.constants.items() if name not in given}
        return evaluate(self.equations.program, {**others, **given}).value

    def depends(self, point: Any, names: Sequence[str]) -> list[str]:
        """Those of the constants `names` on which the residuals depend, also if the derivatives are 0 at the point."""
        found = self.program.jacobian(self.values(point), list(names))
        return [name for name in names if found[name] is not None]


def _are(count: int, what: str) -> str:
    """The verb and the number: "is 1 equation", "are 2 equations"."""
    return f"is 1 {what}" if count == 1 else f"are {count} {what}s"


class ComplexSystem(EquationSystem):
    """Holomorphic equations for complex unknowns. Points, residuals and the Jacobian are those of the real and
    imaginary parts; the Jacobian follows from the complex one by the Cauchy-Riemann equations."""

    _how_counted = ", where a complex one counts as two"
    packing: ComplexPacking  # type: ignore[assignment]

    def __init__(self, equations: Equations, unknowns: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        super().__init__(equations, {}, constants)
        self.packing = ComplexPacking.of(unknowns)

    def check_count(self, point: Any) -> Any:
        residual = super().check_count(point)
        if not arrays.is_complex(self.program(**self.values(point))):
            name = next(iter(self.packing.of_complex))
            raise UsageError(
                f"the equations are of real numbers, and '{name}' is complex",
                hint=f"write complex(x, y) for {name}, with real starts, as in x~1 y~1",
                span=Span(0, len(self.equations.program.source)),
                source=self.equations.program.source,
            )
        return residual

    def flat_residual(self, value: Any) -> Any:
        """The real and the imaginary part of each difference of complex numbers, and differences of real ones."""
        return _real_parts(value, arrays.is_complex(value))

    def jacobian(self, point: Any) -> Any:
        """The derivatives `[n, n]` of the parts of the residuals by those of the unknowns; nan where there are none."""
        xp = arrays.numpy_namespace()
        size = self.packing.size
        matrix = xp.full((size, size), xp.nan)
        try:
            found = self.program.jacobian(self.values(point), [*self.packing.shapes])
        except LimitError:
            raise
        except EvaluationError:
            return matrix
        for name, place in self.packing.places().items():
            of_name = 0.0 if found[name] is None else xp.asarray(found[name], "complex128")
            columns = xp.reshape(xp.broadcast_to(of_name, (size // 2, *self.packing.shapes[name])), (size // 2, -1))
            first, step = place.start, 2 if name in self.packing.of_complex else 1
            for part, factor in enumerate((1.0, 1j)[:step]):
                along = factor * columns
                matrix[0::2, first + part : place.stop : step] = along.real
                matrix[1::2, first + part : place.stop : step] = along.imag
        return matrix


def polynomial_roots(system: ComplexSystem) -> Any:
    """All complex roots `[degree]` of an equation that is a polynomial in its one unknown, with those of multiplicity m
    m times: the eigenvalues of the companion matrix, polished by Newton's method. Raises UsageError for other
    equations."""
    xp = arrays.numpy_namespace()
    coefficients = _coefficients(system)
    while coefficients and coefficients[-1] == 0:
        coefficients.pop()
    if len(coefficients) < 2:
        raise UsageError("the equation does not depend on its unknown")
    polynomial = xp.asarray(coefficients[::-1])
    with arrays.quiet():
        found = xp.roots(polynomial)
        # The mean of the group of a multiple root is accurate. Newton's method is for single roots: those that the
        # grouping leaves unchanged.
        roots = _with_multiple_roots(polynomial, found)
        return _sorted(xp.where(roots == found, _polished(polynomial, found), roots))


def _polished(polynomial: Any, roots: Any) -> Any:
    xp = arrays.numpy_namespace()
    for _ in range(_STEPS):
        value = xp.polyval(polynomial, roots)
        closer = roots - value / xp.polyval(xp.polyder(polynomial), roots)
        roots = xp.where(xp.abs(xp.polyval(polynomial, closer)) < xp.abs(value), closer, roots)
    return roots


def _sorted(roots: Any) -> Any:
    """The roots by real parts, and those of equal real parts, up to rounding, by imaginary parts."""
    xp = arrays.numpy_namespace()
    return roots[xp.lexsort((roots.imag, roots.real.round(12)))]


def _with_multiple_roots(polynomial: Any, roots: Any) -> Any:
    """The roots, with each group that is one multiple root within rounding replaced by its mean, which has far more
    digits than its members."""
    xp = arrays.numpy_namespace()
    found, single = roots.copy(), xp.ones(len(roots), bool)
    for radius in _RADII:
        for place in range(len(roots)):
            near = single & (xp.abs(roots - roots[place]) <= radius * max(1.0, abs(roots[place])))
            if single[place] and near.sum() > 1 and _is_multiple(polynomial, roots[near].mean(), int(near.sum())):
                found[near], single = roots[near].mean(), single & ~near
    return found


def _is_multiple(polynomial: Any, root: Any, multiplicity: int) -> bool:
    """Return whether the polynomial and its first derivatives are 0 at a number, up to their rounding
    errors."""
    xp = arrays.numpy_namespace()
    for _ in range(multiplicity):
        size = xp.polyval(xp.abs(polynomial), abs(root))
        if abs(xp.polyval(polynomial, root)) > _ROUNDINGS * len(polynomial) * arrays.epsilon("float64") * size:
            return False
        polynomial = xp.polyder(polynomial)
    return True


def _coefficients(system: ComplexSystem) -> list[complex]:
    """The coefficients of the polynomial, that of order 0 first: those of its Taylor series at 0."""
    if [*system.packing.shapes.values()] != [()]:
        raise UsageError("all complex roots are those of one equation for one number", hint="leave out --all")
    (name,) = system.packing.shapes
    order = _HIGHEST_DEGREE + 1
    series = system.function({name: Jet([0j, 1.0 + 0j], order)})
    if not isinstance(series, Jet):
        return [complex(concrete(series).reshape(-1)[0])]
    found = [series.coefficient(k) for k in range(order + 1)]
    numbers = [0j if c is None else complex(arrays.numpy_namespace().reshape(concrete(c), -1)[0]) for c in found]
    if numbers[-1] != 0 or not all(map(arrays.numpy_namespace().isfinite, numbers)):
        raise UsageError(
            f"all complex roots are those of polynomials, up to the degree {_HIGHEST_DEGREE}, and this is none",
            hint="give a start without --all for one root",
        )
    return numbers


class ComplexPacking(NamedTuple):
    """Like `Packing`, for values of which those of the names in `of_complex` are complex: the vector has the real and
    the imaginary part of each of their elements, one after the other."""

    shapes: Mapping[str, tuple[int, ...]]
    of_complex: frozenset[str]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ComplexPacking:
        """The packing of numbers and arrays by name."""
        shapes = {name: arrays.shape(value) for name, value in values.items()}
        return cls(shapes, frozenset(name for name, value in values.items() if arrays.is_complex(value)))

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(map(self._length, self.shapes))

    def _length(self, name: str) -> int:
        return math.prod(self.shapes[name]) * (2 if name in self.of_complex else 1)

    def places(self) -> dict[str, slice]:
        """The slice of the vector that holds the elements of each name."""
        found, first = {}, 0
        for name in self.shapes:
            found[name] = slice(first, first + self._length(name))
            first = found[name].stop
        return found

    def flat(self, values: Mapping[str, Any]) -> Any:
        """The float64 vector `[size]` of values by name."""
        xp = arrays.numpy_namespace()
        parts = [_real_parts(values[name], name in self.of_complex) for name in self.shapes]
        return xp.concatenate(parts) if parts else xp.zeros(0)

    def named(self, vector: Any) -> dict[str, Any]:
        """The values by name: scalars as Python numbers, and the others as arrays."""
        xp = arrays.numpy_namespace()
        found = {}
        for name, place in self.places().items():
            part = xp.ascontiguousarray(vector[place])
            part = part.view("complex128") if name in self.of_complex else part
            found[name] = part.reshape(self.shapes[name]).copy() if self.shapes[name] else part[0].item()
        return found

    def labels(self) -> list[str]:
        """A label for each element of the vector: `x`, or `real(z[0, 2])` for the part of an element of an array."""
        xp = arrays.numpy_namespace()
        found = []
        for name, shape in self.shapes.items():
            elements = [f"{name}{list(key)}" if shape else name for key in xp.ndindex(*shape)]
            parts = ("real({})", "imag({})") if name in self.of_complex else ("{}",)
            found += [part.format(element) for element in elements for part in parts]
        return found


def _real_parts(value: Any, is_complex: bool = True) -> Any:
    """The elements as a float64 vector; of complex ones the real and the imaginary part of each."""
    xp = arrays.numpy_namespace()
    vector = xp.ascontiguousarray(xp.asarray(value, "complex128" if is_complex else "float64")).reshape(-1)
    return vector.view("float64")
