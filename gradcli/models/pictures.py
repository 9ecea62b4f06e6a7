"""What is to be seen of a program: its value and its derivatives over a range of a name, or its heights over two."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.errors import (
    BindingError,
    DifferentiationError,
    EvaluationError,
    LimitError,
    ShapeError,
    UsageError,
    did_you_mean,
    expect,
)
from gradcli.language import scope
from gradcli.language.reading import read
from gradcli.language.syntax.tree import Module
from gradcli.limits import MAX_ELEMENTS, MAX_STEPS
from gradcli.models import by_matplotlib, ranges
from gradcli.models.charts import Arrows, Chart, Field, Layer, Line, Points
from gradcli.models.data import Table, table_of
from gradcli.models.ranges import Range, Several
from gradcli.models.refinement import MOST_EVALUATIONS, Evaluate, refined
from gradcli.run import converted
from gradcli.run.row_programs import RowProgram
from gradcli.run.row_results import RowResults

# Curves in one picture, and evaluations for all of them.
_MOST_CURVES = 50
_MOST_POINTS = 8 * MOST_EVALUATIONS
# Points of a field along both axes, and how many of them have an arrow: the middles of so many parts.
_GRID = (241, 181)
_ARROWS = (20, 15)
# Colours of a field with a pole are for this part of its numbers.
_USUAL = (0.02, 0.98)
_LONGEST_LABEL = 60
# Ends of ranges that are further off are none, nor are those that are closer by their size.
_GIANT, _NARROW = 1e300, 1e-10


@dataclass(frozen=True)
class PlottedCurve:
    """The points of a curve, `[n]`, nan in its gaps: the derivative of an `order` by the name of the range, 0 for the
    value, for one choice of the `values` that there are several of."""

    label: str
    order: int
    values: Mapping[str, Any] | None
    x: Any
    y: Any


@dataclass(frozen=True)
class PlottedField:
    """The value, `[m, n]`, at the places `x`, `[n]`, and `y`, `[m]`, and its derivatives by both names."""

    x: Any
    y: Any
    value: Any
    dx: Any
    dy: Any


@dataclass(frozen=True)
class PlottedPoints:
    """Two columns of data, called `x` and `y`, without the rows in which one is missing, of which so many are left out."""

    label: tuple[str, str]
    x: Any
    y: Any
    left_out: int


@dataclass(frozen=True)
class Plot:
    """The points of a picture: `curves` over one range or a `field` over two, and the `points` of data."""

    program: str
    ranges: Mapping[str, Range]
    log: str
    curves: Sequence[PlottedCurve] | None
    field: PlottedField | None
    points: PlottedPoints | None
    # The ends of the upright axis, or of the colours, where those of the numbers hide what there is beside a pole.
    view: tuple[float, float] | None

    def chart(self) -> Chart:
        """What is drawn of it."""
        x, *others = self.ranges
        layers: list[Layer] = []
        if self.field is not None:
            layers.append(_field_layer(self.field, self.label, self.view))
        if self.points is not None:
            layers.append(Points(", ".join(self.points.label), self.points.x, self.points.y))
        layers += [Line(curve.label, curve.x, curve.y) for curve in self.curves or ()]
        y = others[0] if others else "value" if all(c.order == 0 for c in self.curves or ()) else "value, derivatives"
        return Chart(layers, x, y, "" if others else self.label, self.log, None if others else self._limits())

    def save(self, path: str) -> None:
        """Save the picture as `.png`, `.svg` or `.pdf`. Raises BackendError where Matplotlib is not installed, and
        OutputError where the file cannot be written."""
        by_matplotlib.save(self.chart(), path)

    @property
    def label(self) -> str:
        """The program, on one line and not too long."""
        return _label(self.program)

    def _limits(self) -> tuple[float, float] | None:
        """The view, with the points of data in it."""
        if self.view is None or self.points is None or not len(self.points.y):
            return self.view
        return min(self.view[0], float(self.points.y.min())), max(self.view[1], float(self.points.y.max()))


def plot(
    program: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    order: int = 0,
    data: Any = None,
    log: str = "",
    output: str | None = None,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> Plot:
    """The picture of `program` over the ranges among its values, a mapping or keywords, which is saved where `output`
    names a file.

    A range is a tuple of two numbers or a text, `"0..20"`: of one name for curves, of two for a field with its
    gradients. A text such as `"0.1,0.2,0.5"` has several values, with a curve for each; other values are numbers and
    arrays. `order` adds the derivatives up to it, `log` names the axes that are logarithmic, `"x"`, `"y"` or `"x,y"`, and
    `data` are the points of two columns of a table (a path, `"PATH:X,Y"`, a data frame or a mapping of columns).

    Raises UsageError where there is no range, or more than two, ShapeError for a value that is no number, and
    EvaluationError where there is nothing to be seen.
    """
    limits.check(max_steps=max_steps, max_elements=max_elements)
    expect(program, str, "a program is a text")
    expect(log, str, "the names of axes are a text")
    if output is not None:
        expect(output, str, "the path of a picture is a text")
        by_matplotlib.format_of(output)
    with limits.within(max_steps, max_elements):
        given = {name: _given(name, value) for name, value in {**(values or {}), **named}.items()}
        parsed = read(program)
        reads = scope.outer_reads(parsed)
        unknown = next((name for name in given if name not in reads), None)
        if unknown is not None:
            hint = did_you_mean(unknown, reads, f"it reads {', '.join(reads) or 'no names'}")
            raise BindingError(f"the program does not read '{unknown}'", hint=hint)
        scope.check(parsed, given)
        made = plotted(parsed, given, Asked(order, log, _data(data), max_steps, max_elements))
    if output is not None:
        made.save(output)
    return made


class Asked(NamedTuple):
    """What is to be plotted beside a program and its values; `data` are a table and the names of two of its columns,
    None where the table is to say them."""

    order: int = 0
    log: str = ""
    data: tuple[Table, Sequence[str] | None] | None = None
    max_steps: int = MAX_STEPS
    max_elements: int = MAX_ELEMENTS


def plotted(program: Module, values: Mapping[str, Any], asked: Asked) -> Plot:
    """The plot of a program over the Ranges among its values. Raises what `plot` does."""
    over = {name: value for name, value in values.items() if isinstance(value, Range)}
    log = _axes(asked.log)
    _check(over, values, asked, log)
    sampler = _Sampler(program, values, (asked.max_steps, asked.max_elements))
    points = None if asked.data is None else _points(*asked.data, [*over])
    if len(over) == 2:
        field, view = sampler.field(over)
        return Plot(program.source, over, log, None, field, points, view)
    curves, view = sampler.curves(*next(iter(over.items())), asked.order, log)
    return Plot(program.source, over, log, curves, None, points, view)


def columns_of(text: str) -> tuple[str, Sequence[str] | None]:
    """A path and the columns that are named behind it, as in `data.csv:t,y`."""
    path, colon, columns = text.rpartition(":")
    names = [name.strip() for name in columns.split(",")]
    if colon and len(names) == 2 and all(names) and not os.path.exists(text):
        return path, names
    return text, None


def _given(name: str, value: Any) -> Any:
    """A value of Python's as a Range, Several values, or an array."""
    if type(value) is tuple and len(value) == 2:
        value = f"{value[0]}..{value[1]}"
    if isinstance(value, str):
        word = f"{name}={value}"
        return ranges.value(value, "float64", word, len(word) - len(value))
    return value if isinstance(value, (Range, Several)) else converted.value(value)


def _data(data: Any) -> tuple[Table, Sequence[str] | None] | None:
    if data is None:
        return None
    path, columns = columns_of(data) if isinstance(data, str) else (data, None)
    return table_of(path), columns


def _axes(log: str) -> str:
    names = [name.strip() for name in log.split(",") if name.strip()]
    for name in names:
        if name not in ("x", "y") or names.count(name) > 1:
            raise UsageError(f"there is no logarithmic axis {name!r}", hint="--log x, --log y or --log x,y")
    return "".join(sorted(names))


def _check(over: Mapping[str, Range], values: Mapping[str, Any], asked: Asked, log: str) -> None:
    if not over:
        name = next(iter(values), "x")
        raise UsageError("there is no range to plot over", hint=f"give one name a range, as in {name}=0..20")
    if len(over) > 2:
        raise UsageError(f"there are {len(over)} ranges: {', '.join(over)}", hint="one for curves, or two for a field")
    if type(asked.order) is not int or asked.order < 0:
        raise UsageError("the order is a whole number from 0 on", hint="--order 1 adds the first derivative")
    if len(over) == 2:
        for what, is_given in (("--order", asked.order > 0), ("--log", bool(log))):
            if is_given:
                raise UsageError(f"{what} is for one range", hint="over two there are heights and gradients")
        if any(isinstance(value, Several) for value in values.values()):
            raise UsageError("a list of values is for one range", hint="over two ranges give each name one value")
    for name, (low, high) in over.items():
        if max(-low, high) > _GIANT or high - low < max(1 / _GIANT, _NARROW * max(abs(low), abs(high))):
            raise BindingError(
                f"the range of '{name}' is too wide or too narrow to draw",
                hint=f"its ends are up to {_GIANT:g}, and differ by more than {_NARROW:g} of their size",
            )
    if "x" in log and next(iter(over.values())).low <= 0:
        raise UsageError("a logarithmic axis begins above 0", hint=f"{next(iter(over))}=0.001..20")


class _Sampler:
    """A program with the values of all names but those of ranges."""

    def __init__(self, program: Module, values: Mapping[str, Any], limits: tuple[int, int]) -> None:
        self.program = program
        self.limits = limits
        self.fixed = {n: v for n, v in values.items() if not isinstance(v, (Range, Several))}
        # Whether the program has been run.
        self.tried = False
        self.several = {n: v.values for n, v in values.items() if isinstance(v, Several)}

    def curves(self, name: str, over: Range, order: int, log: str) -> tuple[list[PlottedCurve], Any]:
        """The curves over a range, and the ends of the upright axis where they have poles."""
        count = (order + 1) * max(1, len([*self._choices()]))
        if count > _MOST_CURVES:
            raise UsageError(f"there are {count} curves, more than {_MOST_CURVES}", hint="give fewer values or orders")
        made, views, ends = [], [], []
        for choice in self._choices():
            for k in range(order + 1):
                low, high = _scaled(over, log)
                evaluate = _on_axes(self._evaluate({**self.fixed, **choice}, name, k), log)
                curve = refined(evaluate, low, high, min(MOST_EVALUATIONS, _MOST_POINTS // count))
                x, y = _unscaled(curve.x, curve.y, over, log)
                made.append(PlottedCurve(self._label(name, k, choice), k, choice or None, x, y))
                seen = curve.y[arrays.numpy_namespace().isfinite(curve.y)]
                if seen.size:
                    ends.append(curve.view or (float(seen.min()), float(seen.max())))
                    views.append(curve.view)
        if not ends:
            raise EvaluationError(
                f"there is nothing to be seen: the value is nowhere finite for {name}={over.low:g}..{over.high:g}",
                hint="gradcli eval shows where it comes from"
                if "y" not in log
                else "a logarithmic axis has what is above 0",
            )
        view = min(low for low, _ in ends), max(high for _, high in ends)
        return made, None if not any(views) else tuple(10**e for e in view) if "y" in log else view

    def _choices(self) -> Iterator[Mapping[str, Any]]:
        for values in product(*self.several.values()):
            yield dict(zip(self.several, values))

    def _label(self, name: str, order: int, choice: Mapping[str, Any]) -> str:
        derivative = f"d/d{name}" if order == 1 else f"d{order}/d{name}{order}"
        parts = [*([derivative] if order else []), *(f"{n}={_number(v)}" for n, v in choice.items())]
        return ", ".join(parts) or _label(self.program.source)

    def _evaluate(self, fixed: Mapping[str, Any], name: str, order: int) -> Evaluate:
        """The derivative of an order, 0 for the value, and the next two."""
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
        """Runs the program for columns and what they share, with its derivatives up to the order `most`, or `needed`,
        where there are no more; rows that fail are nan."""
        max_steps, max_elements = self.limits
        programs = [
            RowProgram(self.program, wrt if n else (), n, max_steps=max_steps, max_elements=max_elements)
            for n in dict.fromkeys((most, needed))
        ]

        def run(columns: Mapping[str, Any], shared: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
            count = len(next(iter(columns.values())))
            if not self.tried:
                # What goes on and on does so once.
                self.tried = True
                _within_limits(programs[-1].run({name: c[count // 2 :][:1] for name, c in columns.items()}, shared))
            while True:
                with arrays.quiet():
                    found = programs[0].run(columns, shared)
                _within_limits(found)
                if len(found.failures) < count:
                    return self._filled(found, count)
                error = found.failures[0].error
                if not isinstance(error, DifferentiationError) or len(programs) == 1:
                    raise error
                programs.pop(0)

        return run

    def _filled(self, found: RowResults, count: int) -> tuple[Any, Mapping[str, Any]]:
        """Results as arrays of numbers: a derivative is 0 where the value does not depend on the name."""
        np = arrays.numpy_namespace()
        if found.value.shape != (count,) or found.value.dtype == object:
            shape = list(found.value.shape[1:])
            raise ShapeError(f"a curve is of numbers, and the value has shape {shape}", hint="sum(…) of it is a number")
        derivatives = {}
        for key, derivative in found.derivatives.items():
            derivatives[key] = np.zeros(count) if derivative is None else np.asarray(derivative, "float64")
            if key in found.absent:
                derivatives[key] = np.where(found.absent[key], 0.0, derivatives[key])
        return np.asarray(found.value, "float64"), derivatives

    # --- over two ranges

    def field(self, over: Mapping[str, Range]) -> tuple[PlottedField, Any]:
        """The field over two ranges, and the numbers between which its colours are, where it has poles."""
        np = arrays.numpy_namespace()
        names = (*over,)
        x, y = (np.linspace(*ends, count) for ends, count in zip(over.values(), _GRID))
        columns = dict(zip(names, (part.ravel() for part in np.meshgrid(x, y))))
        value, derivatives = self._runner(names, 1, 0)(columns, self.fixed)
        shape = (y.size, x.size)
        unknown = np.full(value.shape, np.nan)
        parts = (derivatives.get(name, unknown).reshape(shape) for name in names)
        field = PlottedField(x, y, value.reshape(shape), *parts)
        finite = value[np.isfinite(value)]
        if not finite.size:
            raise EvaluationError("there is nothing to be seen: the value is nowhere finite over these ranges")
        if not self._has_pole(over, columns, value):
            return field, None
        return field, tuple(float(np.quantile(finite, part)) for part in _USUAL)

    def _has_pole(self, over: Mapping[str, Range], columns: Mapping[str, Any], value: Any) -> bool:
        """Whether the value is not bounded along an axis where it is largest."""
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


def _within_limits(found: RowResults) -> None:
    """Raise the error of the first row that went beyond the limits: a gap would say that there is no value."""
    for failure in found.failures:
        if isinstance(failure.error, LimitError):
            raise failure.error


def _points(table: Table, names: Sequence[str] | None, over: Sequence[str]) -> PlottedPoints:
    x, y = names or _two_columns(table.columns, over)
    found = table.taken([x, y])
    return PlottedPoints((x, y), found.columns[x], found.columns[y], found.left_out)


def _two_columns(columns: Sequence[str], over: Sequence[str]) -> tuple[str, str]:
    """The columns that are called as the ranges are; else the first, and for a curve the one behind that."""
    if len(columns) < 2:
        raise BindingError("points have two columns, and the data have one", hint="a table has a line of names first")
    x = over[0] if over[0] in columns else columns[0]
    wanted = over[1] if len(over) > 1 else "y"
    behind = columns[(columns.index(x) + 1) % len(columns)]
    return x, wanted if wanted in columns and wanted != x else behind


def _field_layer(field: PlottedField, label: str, view: tuple[float, float] | None) -> Field:
    np = arrays.numpy_namespace()
    columns, rows = ((np.arange(n) * 2 + 1) * size // (2 * n) for n, size in zip(_ARROWS, (field.x.size, field.y.size)))
    x, y = np.meshgrid(field.x[columns], field.y[rows])
    at = np.ix_(rows, columns)
    arrows = Arrows(x.ravel(), y.ravel(), field.dx[at].ravel(), field.dy[at].ravel())
    return Field(label, field.x, field.y, np.where(np.isfinite(field.value), field.value, np.nan), arrows, view)


# --- logarithmic axes


def _scaled(over: Range, log: str) -> Range:
    np = arrays.numpy_namespace()
    return Range(float(np.log10(over.low)), float(np.log10(over.high))) if "x" in log else over


def _unscaled(x: Any, y: Any, over: Range, log: str) -> tuple[Any, Any]:
    np = arrays.numpy_namespace()
    if "x" in log:
        x = np.clip(10**x, *over)
    return x, 10**y if "y" in log else y


def _on_axes(evaluate: Evaluate, log: str) -> Evaluate:
    """A function of places along axes, which are logarithms along those in `log`, and its derivatives by the chain rule."""
    np = arrays.numpy_namespace()

    def on_x(u: Any) -> tuple[Any, Any, Any]:
        x = 10**u
        f, f1, f2 = evaluate(x)
        s = np.log(10) * x
        return f, f1 * s, f2 * s**2 + f1 * np.log(10) * s

    inner = on_x if "x" in log else evaluate

    def on_y(u: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = inner(u)
        with arrays.quiet():
            f = np.where(f > 0, f, np.nan)
            slope = f1 / f
            return np.log10(f), slope / np.log(10), (f2 / f - slope**2) / np.log(10)

    return on_y if "y" in log else inner


def _label(program: str) -> str:
    line = " ".join(program.split())
    return line if len(line) <= _LONGEST_LABEL else line[: _LONGEST_LABEL - 1] + "…"


def _number(value: Any) -> str:
    return f"{float(value):g}" if not arrays.shape(value) else str(arrays.to_numpy(value).tolist())
