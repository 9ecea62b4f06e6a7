"""`plot`: pictures of the value and derivatives of a program over the range of one name, or of its values over two."""

from __future__ import annotations

import dataclasses
import math
import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradcli import arrays, limits
from gradcli.calculus.complex_derivatives import names_of_parts
from gradcli.errors import BindingError, CallError, EvaluationError, UsageError, as_bool, expect
from gradcli.evaluation import python_values
from gradcli.language.formula_lists import formulas_of
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import checked_arguments
from gradcli.models.complex_inputs import real_inputs
from gradcli.models.plotting import by_matplotlib, ranges
from gradcli.models.plotting.charts import Arrows, Chart, GridValues, HueField, Layer, Points, Polyline, axes_of, shown
from gradcli.models.plotting.plot_samples import (
    PlotSampler,
    PlottedComplexCurve,
    PlottedComplexField,
    PlottedCurve,
    PlottedField,
    phase_in_degrees,
    program_label,
    sampled,
    sampled_in_plane,
)
from gradcli.models.plotting.ranges import ComplexRange, PlotRange, SeveralValues
from gradcli.models.plotting.refinement import Evaluate
from gradcli.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gradcli.models.data import DataTable


# The number of gradient arrows of a field along both axes; each is in the middle of an equal part.
_ARROWS = (20, 15)
# A longer program is shortened in a title, which may have several lines.
_LONGEST_TITLE = 240
# The beginning of a range that is found for a logarithmic axis, as a share of its end.
_FROM = 1e-3
# Upper bound of the absolute values of the ends of a range, and lower bound of its width relative to these.
_GIANT, _NARROW = 1e300, 1e-10
# The lengths of the ranges around 0 that are examined, one after the other, and the points in each.
_LENGTHS = [10.0**k for k in range(-3, 5)]
_POINTS = 401
# The reach of a range, relative to the farthest root or extremum, and to the farthest inflection.
_BEHIND_EXTREMUM, _BEHIND_INFLECTION = 1.5, 3.0
# Its reach, relative to the distance over which the slope changes by its own size.
_SCALES = 5.0
# A function with more roots and extrema on one side oscillates, and the range contains this number of them.
_OSCILLATING, _SHOWN = 10, 5
# The reach where nothing says how far to go.
_USUAL = 5.0
# Reaches are rounded up to these, times a power of 10.
_ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
# The number of halvings by which the end of a domain is located.
_HALVINGS = 40


@dataclass(frozen=True)
class PlottedPoints:
    """Two columns of data, named by `label`, without the `left_out` rows in which a number is missing."""

    label: tuple[str, str]
    x: Any
    y: Any
    left_out: int

    def layer(self) -> Points:
        """The points as a layer of a chart."""
        return Points(", ".join(self.label), self.x, self.y)


@dataclass(frozen=True)
class Plot:
    """The sampled data of a picture: `curves` over one range or a `field` over two, and the `points` of data."""

    program: str
    ranges: Mapping[str, PlotRange]
    log: str
    curves: Sequence[PlottedCurve | PlottedComplexCurve] | None
    field: PlottedField | PlottedComplexField | None
    points: PlottedPoints | None
    # The limits of the y axis, or of the colours, where a pole would hide the rest; else None.
    view: tuple[float, float] | None
    # Whether the range was found, and not given.
    found: bool = False
    # The ends of both axes of the complex plane, `re` and `im`, where the curves are drawn in it; else None.
    plane: Mapping[str, tuple[float, float]] | None = None

    def chart(self) -> Chart:
        """The chart to draw."""
        x, *others = self.ranges
        layers: list[Layer] = []
        if isinstance(self.field, PlottedComplexField):
            layers.append(HueField(self.label, self.field.x, self.field.y, self.field.value))
        elif self.field is not None:
            layers.append(_field_layer(self.field, self.label, self.view, "z" in self.log))
        if self.points is not None:
            layers.append(self.points.layer())
        if others:
            return Chart(layers, x, others[0])
        title = program_label(self.program, _LONGEST_TITLE)
        if self.plane is not None:
            lines = self._lines(lambda curve: (curve.value_re, curve.value_im))
            return Chart(lines, "real part", "imaginary part", title, "", self.plane["re"], self.plane["im"])
        if any(isinstance(curve, PlottedComplexCurve) for curve in self.curves or ()):
            return self._bode(x, title)
        layers += self._lines(lambda curve: (curve.x, curve.y))
        y = "value" if all(c.order == 0 for c in self.curves or ()) else "value, derivatives"
        ends = self._with_points(self.ranges[x], "x"), self.view and self._with_points(self.view, "y")
        return Chart(layers, x, y, title, self.log, *ends)

    def _bode(self, x: str, title: str) -> Chart:
        """The modulus of complex curves, and their phase below it."""
        sizes = self._lines(lambda curve: (curve.x, abs(curve.value)))
        phases = self._lines(lambda curve: (curve.x, phase_in_degrees(curve.value)))
        over = self.ranges[x]
        below = Chart(phases, x, "phase in degrees", "", self.log.replace("y", ""), over)
        return Chart(sizes, x, "modulus", title, self.log, over, self.view, below=below)

    def hidden(self) -> int:
        """The number of data points that are not shown since they are not positive along a logarithmic axis."""
        return 0 if self.points is None else len(self.points.x) - len(shown(self.points.layer(), self.log).x)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the picture as `.png`, `.svg` or `.pdf`. Raises CallError for a value that is not a path, UsageError for
        another extension, BackendError where Matplotlib is not installed, and OutputError where the file cannot be
        written."""
        name = checked_arguments.path(path, "'path'")
        if name is None:
            raise CallError("'path' is the path of a picture, not None")
        by_matplotlib.save(self.chart(), name)

    def _repr_svg_(self) -> str:
        return by_matplotlib.svg(self.chart())

    @property
    def label(self) -> str:
        """The program on one line, shortened where it is long."""
        return program_label(self.program)

    def _lines(self, points: Callable[[Any], tuple[Any, Any]]) -> list[Polyline]:
        """The curves as polylines through their `points`, x and y. Where there are several choices of values, the value
        and the derivatives of each form a group."""
        curves = self.curves or ()
        choices = [number for number, curve in enumerate(curves) if curve.order == 0]
        grouped = 1 < len(choices) < len(curves)
        return [
            Polyline(c.label, *points(c), bisect_right(choices, number) if grouped else None)
            for number, c in enumerate(curves)
        ]

    def _with_points(self, ends: tuple[float, float], axis: str) -> tuple[float, float]:
        """The ends of an axis, extended to the data points that are shown."""
        if self.points is None:
            return ends
        numbers = getattr(shown(self.points.layer(), self.log), axis)
        if not len(numbers):
            return ends
        return min(ends[0], float(numbers.min())), max(ends[1], float(numbers.max()))


def plot(
    program: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    order: int = 0,
    data: Any = None,
    log: str = "",
    nyquist: bool = False,
    output: str | os.PathLike[str] | None = None,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> Plot:
    """A plot of `program` over the ranges among its values, given as a mapping or keywords; it is saved where `output`
    names a file.

    A range is a tuple of two numbers or a text, `"0..20"`: one range gives curves, two give a field with gradients, and
    so does one of complex numbers, `"-2-2j..2+2j"`, over both of their parts; one is found for a single name without a value. Several formulas, as in `"sin(x); x**2"`, have a curve each. A text such
    as `"0.1,0.2,0.5"` has several values, with a curve for each; other values are numbers and arrays. `order` adds the
    derivatives up to it. `log` names the logarithmic axes, `"x"`, `"y"` or `"x,y"`, or over two ranges `"z"`, the
    colours. `data` are the points of two columns of a table (a path, `"PATH:X,Y"`, a data frame or a mapping of
    columns). Curves of a complex value are its modulus and its phase below it, or with `nyquist` its imaginary part over
    its real one; a field of complex values is drawn with hues for their angles.

    Raises UsageError where there is no range or more than two, ShapeError for a value that is not a scalar, and
    EvaluationError where no value is finite.
    """
    limits.check(max_steps=max_steps, max_elements=max_elements)
    expect(program, str, "a program is a text")
    expect(log, str, "the names of axes are a text")
    path = checked_arguments.path(output, "'output'")
    if path is not None:
        by_matplotlib.format_of(path)
    with limits.within(max_steps, max_elements):
        given = {
            name: _given(name, value)
            for name, value in {**checked_arguments.mapping_by_name(values, "'values'"), **named}.items()
        }
        parsed = parse_charged(program)
        scope.check_read(given, parsed)
        scope.check_names(parsed, given)
        made = plotted(
            parsed, given, PlotRequest(order, log, _data(data), max_steps, max_elements, as_bool(nyquist, "nyquist"))
        )
    if path is not None:
        made.save(path)
    return made


class PlotRequest(NamedTuple):
    """The options of a plot. `data` are a table and the names of two of its columns, None for default columns."""

    order: int = 0
    log: str = ""
    data: tuple[DataTable, Sequence[str] | None] | None = None
    max_steps: int = MAX_STEPS
    max_elements: int = MAX_ELEMENTS
    nyquist: bool = False


def plotted(program: Module, values: Mapping[str, Any], asked: PlotRequest) -> Plot:
    """The plot of a program over the ranges among its values. Raises what `plot` does."""
    rectangles = {name: value for name, value in values.items() if isinstance(value, ComplexRange)}
    with real_inputs(program, [*rectangles]) as of_parts:
        values = {name: value for name, value in values.items() if name not in rectangles}
        values |= {part: ends for name, pair in rectangles.items() for part, ends in zip(names_of_parts(name), pair)}
        return dataclasses.replace(_plotted(of_parts, values, asked), program=program.source)


def _plotted(program: Module, values: Mapping[str, Any], asked: PlotRequest) -> Plot:
    """The plot of a program over its real ranges."""
    over = {name: value for name, value in values.items() if isinstance(value, PlotRange)}
    log = axes_of(asked.log)
    formulas = formulas_of(program)
    several = len(formulas) > 1
    samplers = [
        PlotSampler(f.program, values, (asked.max_steps, asked.max_elements), f.label if several else None)
        for f in formulas
    ]
    given = bool(over)
    if not given:
        over = _found(program, values, asked, samplers, log)
    _check(over, values, asked, log)
    points = None if asked.data is None else _points(*asked.data, [*over])
    if len(over) == 2:
        if several:
            raise UsageError(f"{len(formulas)} formulas are for one range", hint="over two there is one field")
        field, view = samplers[0].field(over)
        if "z" in log and isinstance(field, PlottedComplexField):
            raise UsageError("--log z is for real values", hint="abs(…) is real")
        if "z" in log and not (field.value > 0).any():
            raise EvaluationError(
                "there is nothing to be seen: the value is nowhere above 0",
                hint="a logarithmic scale has what is above 0",
            )
        return Plot(program.source, over, log, None, field, points, view)
    if asked.nyquist:
        lines, plane = sampled_in_plane(samplers, *next(iter(over.items())), asked.order, log)
        return Plot(program.source, over, log, lines, None, None, None, not given, plane)
    curves, view = sampled(samplers, *next(iter(over.items())), asked.order, log)
    if points is not None and isinstance(curves[0], PlottedComplexCurve):
        raise UsageError("--data is for real values", hint="real(…), imag(…), abs(…) and angle(…) are real")
    return Plot(program.source, over, log, curves, None, points, view, not given)


def _found(
    program: Module, values: Mapping[str, Any], asked: PlotRequest, samplers: Sequence[PlotSampler], log: str
) -> dict[str, PlotRange]:
    """A range for the one name of a program that has no value: that of the data, or one with something to see in it;
    empty where there is not one such name."""
    reads = scope.free_names(program)
    free = [n for n, read in reads.items() if n not in values and n not in scope.CONSTANTS and not read.maybe_assigned]
    if len(free) != 1:
        return {}
    (name,) = free
    if asked.data is not None:
        x = _points(*asked.data, free).x
        if len(x) and float(x.min()) < float(x.max()):
            return {name: PlotRange(float(x.min()), float(x.max()))}
    low, high = _found_range([sampler.probe(name) for sampler in samplers])
    return {name: PlotRange(max(low, high * _FROM) if "x" in log else low, high)}


def columns_of(text: str) -> tuple[str, Sequence[str] | None]:
    """The path and the two column names of a text such as `data.csv:t,y`, or the text and None where it names no
    columns."""
    path, colon, columns = text.rpartition(":")
    names = [name.strip() for name in columns.split(",")]
    if colon and len(names) == 2 and all(names) and not os.path.exists(text):
        return path, names
    return text, None


def _given(name: str, value: Any) -> Any:
    """A Python value as a range, as several values, or as an array."""
    if type(value) is tuple and len(value) == 2:
        value = f"{value[0]}..{value[1]}"
    if isinstance(value, str):
        word = f"{name}={value}"
        return ranges.value(value, "float64", word, len(word) - len(value))
    return value if isinstance(value, (PlotRange, ComplexRange, SeveralValues)) else python_values.value(value)


def _data(data: Any) -> tuple[DataTable, Sequence[str] | None] | None:
    if data is None:
        return None
    # Imported only where there are data.
    from gradcli.models.data import table_of

    path, columns = columns_of(data) if isinstance(data, str) else (data, None)
    return table_of(path), columns


def _check(over: Mapping[str, PlotRange], values: Mapping[str, Any], asked: PlotRequest, log: str) -> None:
    if not over:
        name = next(iter(values), "x")
        raise UsageError("there is no range to plot over", hint=f"give one name a range, as in {name}=0..20")
    if len(over) > 2:
        raise UsageError(f"there are {len(over)} ranges: {', '.join(over)}", hint="one for curves, or two for a field")
    if type(asked.order) is not int or asked.order < 0:
        raise UsageError("the order is a whole number from 0 on", hint="--order 1 adds the first derivative")
    if len(over) == 2:
        given = ("--order", asked.order > 0), ("--log", log not in ("", "z")), ("--nyquist", asked.nyquist)
        for what, is_given in given:
            if is_given:
                raise UsageError(f"{what} is for one range", hint="over two there are heights and gradients")
        if any(isinstance(value, SeveralValues) for value in values.values()):
            raise UsageError("a list of values is for one range", hint="over two ranges give each name one value")
    elif asked.nyquist and ("y" in log or asked.data is not None):
        what = "--log y" if "y" in log else "--data"
        raise UsageError(f"{what} is not for the complex plane", hint="leave out --nyquist")
    elif "z" in log:
        raise UsageError("--log z is for the colours over two ranges", hint="--log x, --log y or --log x,y")
    for name, (low, high) in over.items():
        if max(-low, high) > _GIANT or high - low < max(1 / _GIANT, _NARROW * max(abs(low), abs(high))):
            raise BindingError(
                f"the range of '{name}' is too wide or too narrow to draw",
                hint=f"its ends are up to {_GIANT:g}, and differ by more than {_NARROW:g} of their size",
            )
    if "x" in log and next(iter(over.values())).low <= 0:
        raise UsageError("a logarithmic axis begins above 0", hint=f"{next(iter(over))}=0.001..20")


def _points(table: DataTable, names: Sequence[str] | None, over: Sequence[str]) -> PlottedPoints:
    x, y = names or _two_columns(table.columns, over)
    found = table.taken([x, y])
    return PlottedPoints((x, y), found.columns[x], found.columns[y], found.left_out)


def _two_columns(columns: Sequence[str], over: Sequence[str]) -> tuple[str, str]:
    """The columns with the names of the ranges; else the first column, and for a curve the one after that of x."""
    if len(columns) < 2:
        raise BindingError("points have two columns, and the data have one", hint="a table has a line of names first")
    x = over[0] if over[0] in columns else columns[0]
    wanted = over[1] if len(over) > 1 else "y"
    behind = columns[(columns.index(x) + 1) % len(columns)]
    return x, wanted if wanted in columns and wanted != x else behind


def _field_layer(field: PlottedField, label: str, view: tuple[float, float] | None, log: bool) -> GridValues:
    np = arrays.numpy_namespace()
    columns, rows = ((np.arange(n) * 2 + 1) * size // (2 * n) for n, size in zip(_ARROWS, (field.x.size, field.y.size)))
    x, y = np.meshgrid(field.x[columns], field.y[rows])
    at = np.ix_(rows, columns)
    here = np.isfinite(field.value[at])
    arrows = Arrows(x[here], y[here], field.dx[at][here], field.dy[at][here])
    return GridValues(
        label, field.x, field.y, np.where(np.isfinite(field.value), field.value, np.nan), arrows, view, log
    )


def _found_range(functions: Sequence[Evaluate]) -> PlotRange:
    """A range for the curves of some functions, which have everything of interest near 0."""
    reach = _rounded(max(map(_reach, functions)))
    ends = [_domain(function, reach) for function in functions]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return PlotRange(low, high) if low < high else PlotRange(-reach, reach)


def _reach(function: Evaluate) -> float:
    """The distance from 0 within which there is something to see."""
    np = arrays.numpy_namespace()
    turns = inflections = np.empty(0)
    before, nearest = 0.0, math.inf
    for length in _LENGTHS:
        x = np.linspace(-length, length, _POINTS)
        value, slope, bend = function(x)
        if math.isinf(nearest):
            nearest = float(min(abs(x[np.isfinite(value)]), default=math.inf))
        # Points nearer to 0 were located in a shorter range, whose samples are closer together.
        turns = np.r_[turns, _beyond(before, _changes(x, value, slope))]
        inflections = np.r_[inflections, _beyond(before, _changes(x, bend))]
        for side in (turns[turns >= 0], -turns[turns < 0]):
            if side.size > _OSCILLATING:
                return float(np.sort(side)[_SHOWN - 1])
        before = length
    reach = max(_farthest(turns) * _BEHIND_EXTREMUM, _farthest(inflections) * _BEHIND_INFLECTION, _scale(function))
    return max(reach or _USUAL, 2 * nearest if math.isfinite(nearest) else 0.0)


def _changes(x: Any, *values: Any) -> Any:
    """The places at which numbers change their sign continuously, apart from the ends."""
    np = arrays.numpy_namespace()
    found = []
    for y in values:
        with arrays.quiet():
            sign = np.sign(y)
            crosses = (sign[:-1] * sign[1:] < 0) & (abs(np.diff(y)) <= abs(y[:-1]) + abs(y[1:]))
            exact = (sign[1:-1] == 0) & (sign[:-2] * sign[2:] < 0)
        found += [(x[:-1] + x[1:])[crosses] / 2, x[1:-1][exact]]
    return np.concatenate(found)


def _beyond(length: float, places: Any) -> Any:
    return places[abs(places) > length]


def _farthest(places: Any) -> float:
    return float(abs(places).max()) if places.size else 0.0


def _scale(function: Evaluate) -> float:
    """The distance from 1 or -1 over which the slope changes by its own size, as the decay length of exp."""
    np = arrays.numpy_namespace()
    _, slope, bend = function(np.asarray([1.0, -1.0]))
    with arrays.quiet():
        lengths = abs(slope / bend)
    lengths = lengths[np.isfinite(lengths) & (lengths > 0)]
    return _SCALES * float(lengths.min()) if lengths.size else 0.0


def _rounded(reach: float) -> float:
    power = 10.0 ** math.floor(math.log10(min(max(reach, _LENGTHS[0]), _LENGTHS[-1])))
    return next(step * power for step in _ROUND if step * power >= reach * (1 - 1e-9) or step == _ROUND[-1])


def _domain(function: Evaluate, reach: float) -> tuple[float, float]:
    """The part of the range from -reach to reach in which a function has values."""
    np = arrays.numpy_namespace()
    x = np.linspace(-reach, reach, 2 * _POINTS + 1)
    there = np.flatnonzero(np.isfinite(function(x)[0]))
    if not there.size:
        return reach, -reach
    first, last = int(there[0]), int(there[-1])
    low = x[0] if first == 0 else _end(function, x[first - 1], x[first])
    high = x[-1] if last == x.size - 1 else _end(function, x[last + 1], x[last])
    return float(low), float(high)


def _end(function: Evaluate, outside: float, inside: float) -> float:
    """The end of a domain between two points; a round number where one is as near as can be told."""
    np = arrays.numpy_namespace()
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if np.isfinite(function(np.asarray([middle]))[0][0]):
            inside = middle
        else:
            outside = middle
    nearest = round(inside, 6)
    return nearest if abs(nearest - inside) < 1e-9 * max(1.0, abs(inside)) else inside
