"""The samples of a program for a plot: points of real or complex curves over one range, or values on a grid over
two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, takewhile
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError, EvaluationError, LimitError, ShapeError, UsageError
from gradcli.language.names import scope
from gradcli.language.syntax import parse, tree
from gradcli.models.plotting.ranges import PlotRange, SeveralValues
from gradcli.models.plotting.refinement import MOST_EVALUATIONS, Evaluate, SampledCurve, refined
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_programs import RowProgram
from gradcli.rows.row_results import RowResults

# Upper bounds of the curves in one picture, and of the evaluations for all of them.
_MOST_CURVES = 50
_MOST_EVALUATIONS_IN_ALL = 8 * MOST_EVALUATIONS
# Evaluations by which the median modulus of a complex value is estimated.
_MODULUS_EVALUATIONS = 256
# Grid points of a field along x and y.
_GRID = (241, 181)
# The quantiles of the values between which the colours of a field with a pole range.
_COLOR_QUANTILES = (0.02, 0.98)
# Upper bound of the characters of a label.
_LONGEST_LABEL = 60
# Significant digits of a value in a label: the first number of these that tells all values apart.
_DIGITS = (6, 9, 12, 17)
# The largest difference in radians between the change of the phase from one point to the next and the predictions of
# its derivatives. Where it is larger, the phase may have made whole turns between the points.
_LARGEST_ERROR = 1.0
# Deviations of the parts of a number of modulus 1 that count as rounding errors. One part may be far smaller than the
# other, whose rounding errors it has.
_UNIT_ROUNDING = 1e-12
# The margin around a curve in the complex plane, as a share of its extent.
_MARGIN = 0.05


@dataclass(frozen=True)
class PlottedCurve:
    """The points `[n]` of a curve, nan in its gaps. The curve is the derivative of an `order` by the name of the range,
    0 for the value itself, for one choice of `values` of the names with several."""

    label: str
    order: int
    values: Mapping[str, Any] | None
    x: Any
    y: Any


@dataclass(frozen=True)
class PlottedField:
    """The values `[m, n]` at the grid points `x` `[n]` and `y` `[m]`, and the derivatives by both names, `[m, n]`."""

    x: Any
    y: Any
    value: Any
    dx: Any
    dy: Any


class _ComplexParts:
    """Complex values that are held as their parts, of which JSON and tables consist."""

    value_re: Any
    value_im: Any

    @property
    def value(self) -> Any:
        return arrays.numpy_namespace().asarray(self.value_re) + 1j * arrays.numpy_namespace().asarray(self.value_im)


@dataclass(frozen=True)
class PlottedComplexField(_ComplexParts):
    """The parts of complex values, `[m, n]` each, at the grid points `x` `[n]` and `y` `[m]`."""

    x: Any
    y: Any
    value_re: Any
    value_im: Any


# The label of a curve, its order, and its choice of the values of the names with several.
_About = tuple[str, int, Mapping[str, Any] | None]


class SampledCurves(NamedTuple):
    """Curves, whether one of them has a pole, and the ends of each that are to be seen, as they are drawn."""

    curves: list[PlottedCurve] | list[PlottedComplexCurve]
    has_pole: bool
    ends: list[tuple[float, float]]


def sampled(
    samplers: Sequence[PlotSampler], name: str, over: PlotRange, order: int, log: str
) -> tuple[Sequence[PlottedCurve | PlottedComplexCurve], Any]:
    """The curves of several programs over a range, all real or all complex, and the limits of the y axis, None where no
    curve has a pole."""
    _check_count(samplers, order)
    count = sum(sampler.count(order) for sampler in samplers)
    found = [sampler.curves(name, over, order, log, count) for sampler in samplers]
    curves = [curve for each in found for curve in each.curves]
    if len({*map(type, curves)}) > 1:
        raise EvaluationError(
            "some of the curves are complex, and others real",
            hint="real(…), imag(…), abs(…) and angle(…) are real, and x+0j is complex",
        )
    ends = [pair for each in found for pair in each.ends]
    if not ends:
        raise _nothing(name, over, log)
    if not any(each.has_pole for each in found):
        return curves, None
    view = min(low for low, _ in ends), max(high for _, high in ends)
    return curves, tuple(10**e for e in view) if "y" in log else view


def sampled_in_plane(
    samplers: Sequence[PlotSampler], name: str, over: PlotRange, order: int, log: str
) -> tuple[list[PlottedComplexCurve], dict[str, tuple[float, float]]]:
    """The curves of several programs in the complex plane, and the ends of its axes, `re` and `im`."""
    _check_count(samplers, order)
    count = sum(sampler.count(order) for sampler in samplers)
    found = [each for sampler in samplers for each in sampler.in_plane(name, over, order, log, count)]
    ends = {}
    for place, axis in enumerate(("re", "im")):
        pairs = [pair for _, of_parts in found if (pair := of_parts[place]) is not None]
        if not pairs:
            raise _nothing(name, over, "")
        ends[axis] = _with_margin((min(low for low, _ in pairs), max(high for _, high in pairs)))
    return [curve for curve, _ in found], ends


def _check_count(samplers: Sequence[PlotSampler], order: int) -> None:
    count = sum(sampler.count(order) for sampler in samplers)
    if count > _MOST_CURVES:
        raise UsageError(f"there are {count} curves, more than {_MOST_CURVES}", hint="give fewer values or orders")


def _nothing(name: str, over: PlotRange, log: str) -> EvaluationError:
    return EvaluationError(
        f"there is nothing to be seen: the value is nowhere finite for {name}={over.low:g}..{over.high:g}",
        hint="gradcli eval shows where it comes from" if "y" not in log else "a logarithmic axis has what is above 0",
    )


class PlotSampler:
    """Evaluates a program over ranges, with fixed values of all other names."""

    def __init__(
        self, program: tree.Module, values: Mapping[str, Any], limits: tuple[int, int], label: str | None = None
    ) -> None:
        self.program = program
        self.limits = limits
        # The label of the formula, where curves of other formulas are drawn beside it.
        self.label = label
        reads = scope.free_names(program)
        values = {n: v for n, v in values.items() if n in reads}
        self.fixed = {n: v for n, v in values.items() if not isinstance(v, (PlotRange, SeveralValues))}
        # Whether the program has been run once.
        self.tried = False
        # Whether a value was complex.
        self.is_complex = False
        self.several = {n: v.values for n, v in values.items() if isinstance(v, SeveralValues)}

    def count(self, order: int) -> int:
        """The number of curves with derivatives up to an order."""
        return (order + 1) * math.prod(map(len, self.several.values()))

    def probe(self, name: str) -> Evaluate:
        """The function of one name by which its default range is found, at the first of several values of the others.

        A complex value is replaced by the sum of its parts.
        """
        evaluate = self._evaluate({**self.fixed, **next(self._choices())}, name, 0)

        def parts(x: Any) -> tuple[Any, Any, Any]:
            f, f1, f2 = (each.real + each.imag if arrays.is_complex(each) else each for each in evaluate(x))
            return f, f1, f2

        return parts

    def curves(self, name: str, over: PlotRange, order: int, log: str, count: int) -> SampledCurves:
        """The curves over a range; `count` are all in the picture."""
        made: list[Any] = []
        views, ends = [], []
        low, high = _scaled(over, log)
        most = min(MOST_EVALUATIONS, _MOST_EVALUATIONS_IN_ALL // count)
        for choice, k, evaluate in self._functions(name, order):
            curve = refined(_on_axes(_modulus_of(evaluate), over, log), low, high, most)
            about: _About = self._label(name, k, choice), k, choice or None
            if self.is_complex:
                made.append(self._bode(about, evaluate, curve, over, log, most))
            else:
                made.append(PlottedCurve(*about, *_unscaled(curve.x, curve.y, over, log)))
            if (pair := _ends(curve)) is not None:
                ends.append(pair)
                views.append(curve.view)
        return SampledCurves(made, any(views), ends)

    def _functions(self, name: str, order: int) -> Iterator[tuple[Mapping[str, Any], int, Evaluate]]:
        """The derivatives up to an order, with each choice of the values."""
        for choice in self._choices():
            for k in range(order + 1):
                yield choice, k, self._evaluate({**self.fixed, **choice}, name, k)

    def _bode(
        self, about: _About, evaluate: Evaluate, modulus: SampledCurve, over: PlotRange, log: str, most: int
    ) -> PlottedComplexCurve:
        """The curve of a complex function, at enough points for its modulus and its phase."""
        log_x = log.replace("y", "")
        unit = _unit_of(evaluate)
        parts = [
            refined(_on_axes(_part_of(unit, part), over, log_x), *_scaled(over, log), most, _UNIT_ROUNDING)
            for part in ("real", "imag")
        ]
        x, values = _merged([modulus, *parts], evaluate, over, log_x)
        if x.size:
            _check_phase(x, values, _on_axes(unit, over, log_x)(x))
        return PlottedComplexCurve(*about, _unscaled(x, x, over, log_x)[0], values.real, values.imag)

    def in_plane(
        self, name: str, over: PlotRange, order: int, log: str, count: int
    ) -> Iterator[tuple[PlottedComplexCurve, Sequence[tuple[float, float] | None]]]:
        """The curves in the complex plane, and the ends of the real and of the imaginary part of each that are to be
        seen."""
        low, high = _scaled(over, log)
        most = min(MOST_EVALUATIONS, _MOST_EVALUATIONS_IN_ALL // count)
        for choice, k, evaluate in self._functions(name, order):
            size = refined(_on_axes(_modulus_of(evaluate), over, log), low, high, _MODULUS_EVALUATIONS).y
            size = size[arrays.numpy_namespace().isfinite(size)]
            rounding = _UNIT_ROUNDING * float(sorted(size)[len(size) // 2]) if len(size) else 0.0
            parts = [
                refined(_on_axes(_part_of(evaluate, part), over, log), low, high, most, rounding)
                for part in ("real", "imag")
            ]
            if not self.is_complex:
                raise EvaluationError("a real value has no curve in the complex plane", hint="leave out --nyquist")
            x, values = _merged(parts, evaluate, over, log)
            about = self._label(name, k, choice), k, choice or None
            curve = PlottedComplexCurve(*about, _unscaled(x, x, over, log)[0], values.real, values.imag)
            yield curve, [_ends(part) for part in parts]

    def _choices(self) -> Iterator[Mapping[str, Any]]:
        for values in product(*self.several.values()):
            yield dict(zip(self.several, values))

    def _label(self, name: str, order: int, choice: Mapping[str, Any]) -> str:
        derivative = f"d/d{name}" if order == 1 else f"d{order}/d{name}{order}"
        parts = [*([derivative] if order else []), *(f"{n}={self._text(n, v)}" for n, v in choice.items())]
        if self.label is not None:
            parts = [f"{parts[0]} {self.label}", *parts[1:]] if order else [self.label, *parts]
        return _shortened(", ".join(parts)) or program_label(self.program.source)

    def _text(self, name: str, value: Any) -> str:
        """A value as text, with enough digits to tell it from the other values of its name."""
        if arrays.shape(value):
            return str(arrays.to_numpy(value).tolist())
        others = {float(v) for v in self.several[name] if not arrays.shape(v)}
        digits = next(d for d in _DIGITS if d == _DIGITS[-1] or len({f"{v:.{d}g}" for v in others}) == len(others))
        return f"{float(value):.{digits}g}"

    def _evaluate(self, fixed: Mapping[str, Any], name: str, order: int) -> Evaluate:
        """A function that computes the derivative of an order (0 for the value) and the next two."""
        np = arrays.numpy_namespace()
        keys = [",".join([name] * k) for k in range(order, order + 3)]
        run = self._runner((name,), order + 2, order)

        def evaluate(x: Any) -> tuple[Any, Any, Any]:
            value, derivatives = run({name: x}, fixed)
            first, second, third = (value if not key else derivatives.get(key) for key in keys)
            unknown = np.full(x.shape, np.nan)
            return first, unknown if second is None else second, unknown if third is None else third

        return evaluate

    def _runner(self, wrt: tuple[str, ...], most: int, needed: int) -> Callable[..., tuple[Any, Mapping[str, Any]]]:
        """A function that runs the program for columns and shared values, with derivatives up to the order `most`, or
        `needed` from the first DifferentiationError on; rows that fail are nan.

        The function raises the error of the first row where all rows fail, and LimitError where a row exceeds the limits.
        """
        max_steps, max_elements = self.limits
        programs = [
            RowProgram(self.program, wrt if n else (), n, max_steps=max_steps, max_elements=max_elements)
            for n in dict.fromkeys((most, needed))
        ]

        def run(columns: Mapping[str, Any], shared: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
            count = len(next(iter(columns.values())))
            if not self.tried:
                # A first run of one row finds a program that exceeds the limits, before all rows do so.
                self.tried = True
                _raise_limit_errors(
                    programs[-1].run({name: c[count // 2 :][:1] for name, c in columns.items()}, shared)
                )
            while True:
                with arrays.quiet():
                    found = programs[0].run(columns, shared)
                _raise_limit_errors(found)
                if len(found.failures) < count:
                    return self._filled(found, count)
                error = found.failures[0].error
                if not isinstance(error, DifferentiationError) or len(programs) == 1:
                    raise error
                programs.pop(0)

        return run

    def _filled(self, found: RowResults, count: int) -> tuple[Any, Mapping[str, Any]]:
        """The results as arrays of numbers; a derivative is 0 where the value does not depend on the name.

        Sets `is_complex` once a value is complex. Raises ShapeError where the value of a row is no single number.
        """
        np = arrays.numpy_namespace()
        if found.value.shape != (count,) or found.value.dtype == object:
            shape = found.value.shape[1:]
            listed = next((name for name, value in self.fixed.items() if arrays.shape(value) == shape), None)
            hint = "sum(…) of it is a number"
            if listed is not None:
                hint += f"; {listed}=1,2 without brackets has a curve for each"
            raise ShapeError(f"a curve is of numbers, and the value has shape {[*shape]}", hint=hint)
        self.is_complex |= arrays.is_complex(found.value)
        value = np.asarray(found.value, "complex128" if self.is_complex else "float64")
        return value, {
            key: np.broadcast_to(np.asarray(found.derivative(key), value.dtype), (count,)) for key in found.derivatives
        }

    # --- over two ranges

    def field(self, over: Mapping[str, PlotRange]) -> tuple[PlottedField | PlottedComplexField, Any]:
        """The field over two ranges, and the limits of its colours, None where it has no pole."""
        np = arrays.numpy_namespace()
        names = (*over,)
        x, y = (np.linspace(*ends, count) for ends, count in zip(over.values(), _GRID))
        columns = dict(zip(names, (part.ravel() for part in np.meshgrid(x, y))))
        value, derivatives = self._runner(names, 1, 0)(columns, self.fixed)
        shape = (y.size, x.size)
        if not np.isfinite(value).any():
            raise EvaluationError("there is nothing to be seen: the value is nowhere finite over these ranges")
        if self.is_complex:
            return PlottedComplexField(x, y, *(part.reshape(shape) for part in (value.real, value.imag))), None
        unknown = np.full(value.shape, np.nan)
        parts = (derivatives.get(name, unknown).reshape(shape) for name in names)
        field = PlottedField(x, y, value.reshape(shape), *parts)
        if not self._has_pole(over, columns, value):
            return field, None
        finite = value[np.isfinite(value)]
        return field, tuple(float(np.quantile(finite, part)) for part in _COLOR_QUANTILES)

    def _has_pole(self, over: Mapping[str, PlotRange], columns: Mapping[str, Any], value: Any) -> bool:
        """Return whether the values are unbounded along an axis through the point of the largest one."""
        np = arrays.numpy_namespace()
        if np.isinf(value).any():
            return True
        most = int(np.nanargmax(np.abs(value)))
        for name, ends in over.items():
            (other,) = (n for n in over if n != name)
            fixed = {**self.fixed, other: columns[other][most]}
            if refined(self._evaluate(fixed, name, 0), *ends).view is not None:
                return True
        return False


def _ends(curve: SampledCurve) -> tuple[float, float] | None:
    """The ends of a curve that are to be seen, None where it has no points."""
    seen = curve.y[arrays.numpy_namespace().isfinite(curve.y)]
    return (curve.view or (float(seen.min()), float(seen.max()))) if seen.size else None


def _merged(curves: Sequence[SampledCurve], evaluate: Evaluate, over: PlotRange, log: str) -> tuple[Any, Any]:
    """The positions of the points of several curves of one function, and its values there, nan in the gaps of each."""
    np = arrays.numpy_namespace()
    x = np.unique(np.concatenate([curve.x for curve in curves]))
    gaps = np.concatenate([curve.x[np.isnan(curve.y)] for curve in curves])
    if not x.size:
        return x, np.empty(0, "complex128")
    values = np.asarray(evaluate(_unscaled(x, x, over, log)[0])[0], "complex128")
    return x, np.where(np.isfinite(values) & ~np.isin(x, gaps), values, np.nan)


def _raise_limit_errors(found: RowResults) -> None:
    """Raise the error of the first row that exceeded the limits: a gap would wrongly say that there is no value."""
    for failure in found.failures:
        if isinstance(failure.error, LimitError):
            raise failure.error


# --- logarithmic axes


def _scaled(over: PlotRange, log: str) -> PlotRange:
    np = arrays.numpy_namespace()
    return PlotRange(float(np.log10(over.low)), float(np.log10(over.high))) if "x" in log else over


def _unscaled(x: Any, y: Any, over: PlotRange, log: str) -> tuple[Any, Any]:
    np = arrays.numpy_namespace()
    if "x" in log:
        x = np.clip(10**x, *over)
    return x, 10**y if "y" in log else y


def _on_axes(evaluate: Evaluate, over: PlotRange, log: str) -> Evaluate:
    """A function of positions along axes, logarithmic for those in `log`, and its derivatives by the chain rule."""
    np = arrays.numpy_namespace()

    def on_x(u: Any) -> tuple[Any, Any, Any]:
        # The logarithms of the ends are rounded, and beyond the ends there may be no value.
        x = np.clip(10**u, *over)
        f, f1, f2 = evaluate(x)
        s = np.log(10) * x
        with arrays.quiet():
            return f, f1 * s, f2 * s**2 + f1 * np.log(10) * s

    inner = on_x if "x" in log else evaluate

    def on_y(u: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = inner(u)
        with arrays.quiet():
            f = np.where(f > 0, f, np.nan)
            slope = f1 / f
            return np.log10(f), slope / np.log(10), (f2 / f - slope**2) / np.log(10)

    return on_y if "y" in log else inner


def program_label(program: str, most: int = _LONGEST_LABEL) -> str:
    """A program on one line, shortened where it has more than `most` characters. Of one with several lines these are
    the expressions at its end."""
    if "\n" in program.strip():
        module = parse(program)
        ends = [*takewhile(lambda statement: isinstance(statement, tree.Evaluate), reversed(module.body))]
        parts = [program[statement.span.start : statement.span.end] for statement in reversed(ends)]
        program = "; ".join(parts) or program
    return _shortened(" ".join(program.split()), most)


def _shortened(line: str, most: int = _LONGEST_LABEL) -> str:
    return line if len(line) <= most else line[: most - 1] + "…"


@dataclass(frozen=True)
class PlottedComplexCurve(_ComplexParts):
    """The points `[n]` of a curve of complex values, nan in its gaps; the rest is as in `PlottedCurve`."""

    label: str
    order: int
    values: Mapping[str, Any] | None
    x: Any
    value_re: Any
    value_im: Any


def _part_of(evaluate: Evaluate, name: str) -> Evaluate:
    """The part `real` or `imag` of a complex function, and its derivatives."""
    np = arrays.numpy_namespace()

    def part(x: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = (getattr(np.asarray(each, "complex128"), name) for each in evaluate(x))
        return f, f1, f2

    return part


def _modulus_of(evaluate: Evaluate) -> Evaluate:
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


def _unit_of(evaluate: Evaluate) -> Evaluate:
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


def _check_phase(x: Any, values: Any, unit: tuple[Any, Any, Any]) -> None:
    """Raise EvaluationError where points are too far apart for the phase of the values to be known, by `_unit_of` at
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


def _with_margin(ends: tuple[float, float]) -> tuple[float, float]:
    """The ends of an axis with a margin at both, also where they are equal."""
    low, high = ends
    margin = _MARGIN * (high - low) or abs(low) / 2 or 1.0
    return low - margin, high + margin
