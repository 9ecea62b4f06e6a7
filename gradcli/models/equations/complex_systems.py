"""Equations of complex unknowns, as a system of twice as many real ones, and all roots of polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli import arrays
from gradcli.errors import EvaluationError, LimitError, UsageError
from gradcli.kinds.jets import Jet
from gradcli.language.equations import Equations
from gradcli.models.complex_packing import ComplexPacking, real_parts
from gradcli.models.equations.systems import System
from gradcli.primitives.bind import concrete

# The largest degree of a polynomial whose roots are found, and the steps of Newton's method that polish them.
_HIGHEST_DEGREE, _STEPS = 100, 8
# A root of multiplicity m is found to about the m-th root of the machine epsilon; groups within these distances are
# examined, and derivatives of up to this number of rounding errors a term count as 0.
_RADII, _ROUNDINGS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7), 8.0


class ComplexSystem(System):
    """Holomorphic equations for complex unknowns. Points, residuals and the Jacobian are those of the real and imaginary
    parts; the Jacobian follows from the complex one by the Cauchy-Riemann equations."""

    packing: ComplexPacking  # type: ignore[assignment]

    def __init__(self, equations: Equations, unknowns: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        super().__init__(equations, {}, constants)
        self.packing = ComplexPacking.of(unknowns)

    def flat_residual(self, value: Any) -> Any:
        return real_parts(value, arrays.is_complex(value))

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
        # Newton's method is for single roots; before it, the mean of the group of a multiple root is accurate.
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
    """Whether the polynomial and its first derivatives are 0 at a number, as far as their rounding errors let tell."""
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
