"""Curves of complex values: what of them is sampled, and their phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradcli import arrays
from gradcli.errors import EvaluationError
from gradcli.models.plotting.refinement import Evaluate

# The largest difference in radians between the change of the phase from one point to the next and the predictions of
# its derivatives. Where it is larger, the phase may have made whole turns between the points.
_LARGEST_ERROR = 1.0
# Deviations of the parts of a number of modulus 1 that count as rounding errors. One part may be far smaller than the
# other, whose rounding errors it has.
UNIT_ROUNDING = 1e-12
# The margin around a curve in the complex plane, as a share of its extent.
_MARGIN = 0.05


@dataclass(frozen=True)
class PlottedComplexCurve:
    """The points `[n]` of a curve of complex values, nan in its gaps; the rest is as in `PlottedCurve`."""

    label: str
    order: int
    values: Mapping[str, Any] | None
    x: Any
    value_re: Any
    value_im: Any

    @property
    def value(self) -> Any:
        return arrays.numpy_namespace().asarray(self.value_re) + 1j * arrays.numpy_namespace().asarray(self.value_im)


def part_of(evaluate: Evaluate, name: str) -> Evaluate:
    """The part `real` or `imag` of a complex function, and its derivatives."""
    np = arrays.numpy_namespace()

    def part(x: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = (getattr(np.asarray(each, "complex128"), name) for each in evaluate(x))
        return f, f1, f2

    return part


def modulus_of(evaluate: Evaluate) -> Evaluate:
    """The modulus of a function, and its derivatives. That of a real function is itself."""
    np = arrays.numpy_namespace()

    def modulus(x: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = evaluate(x)
        if not arrays.is_complex(f):
            return f, f1, f2
        with arrays.quiet():
            size = np.abs(f)
            direction = np.conj(f) / size
            bend = (direction * f1).imag ** 2 / size + (direction * f2).real
            return size, (direction * f1).real, bend

    return modulus


def unit_of(evaluate: Evaluate) -> Evaluate:
    """f/|f|, whose parts are smooth where the phase is, and its derivatives."""
    np = arrays.numpy_namespace()

    def unit(x: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = evaluate(x)
        with arrays.quiet():
            found = f / np.abs(f)
            relative = f1 / f
            slope, bend = relative.imag, (f2 / f - relative**2).imag
            return found, 1j * slope * found, (1j * bend - slope**2) * found

    return unit


def phase_in_degrees(values: Any) -> Any:
    """The phase without jumps by whole turns, nan where there is none."""
    np = arrays.numpy_namespace()
    here = np.isfinite(values) & (values != 0)
    phase = np.full(values.shape, np.nan)
    phase[here] = np.degrees(np.unwrap(np.angle(values[here])))
    return phase


def check_phase(x: Any, values: Any, unit: tuple[Any, Any, Any]) -> None:
    """Raise EvaluationError where points are too far apart for the phase of the values to be known, by `unit_of` at
    the same points."""
    np = arrays.numpy_namespace()
    with arrays.quiet():
        slope = (np.conj(unit[0]) * unit[1]).imag
        change = np.angle(unit[0][1:] * np.conj(unit[0][:-1]))
        change[np.isnan(values[1:]) | np.isnan(values[:-1])] = np.nan
        # Beside a zero of the value the slope at one end may be a rounding error.
        predictions = (slope[:-1], slope[1:], (slope[:-1] + slope[1:]) / 2)
        errors = [np.abs(change - np.diff(x) * predicted) for predicted in predictions]
    if (np.min(errors, 0) > _LARGEST_ERROR).any():
        raise EvaluationError(
            "the phase turns too often to be followed over this range",
            hint="give it a shorter range, or draw abs(…) and angle(…)",
        )


def with_margin(ends: tuple[float, float]) -> tuple[float, float]:
    """The ends of an axis with a margin at both, also where they are equal."""
    low, high = ends
    margin = _MARGIN * (high - low) or abs(low) / 2 or 1.0
    return low - margin, high + margin
