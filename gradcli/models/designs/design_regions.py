"""The region of the inputs of a design: ranges, and lists of the levels that an input can have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.errors import BindingError, CallError, UsageError
from gradcli.evaluation import python_values
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import unreadable
from gradcli.models.plotting.ranges import PlotRange, range_of
from gradcli.named_tuples import NamedTuple

# The number of candidate points at equal distances with one continuous input, and the most with several: above it only
# where each combination of levels would have fewer than 2**_FEWEST points of the Sobol' sequence.
_ON_A_LINE, _MOST, _FEWEST = 1_001, 8_192, 6
# With more continuous inputs than this not all corners, centers of edges and faces are candidates.
_MOST_FACES, _MOST_CORNERS = 6, 12
# The distance of the candidates closest to the ends of a range, relative to it.
_CLOSEST = 1e-9
# The most combinations of levels.
_MOST_LEVELS = 2_048


class DesignRegion(NamedTuple):
    """The region of d inputs: by name, a range, or an array `[k]` of levels."""

    inputs: Mapping[str, Any]

    @property
    def names(self) -> Sequence[str]:
        return [*self.inputs]

    @property
    def low(self) -> Any:
        """The least values `[d]`."""
        return np.array([float(_ends(each)[0]) for each in self.inputs.values()])

    @property
    def high(self) -> Any:
        """The greatest values `[d]`."""
        return np.array([float(_ends(each)[1]) for each in self.inputs.values()])

    @property
    def widths(self) -> Any:
        """The widths `[d]`, 1 for an input with one level."""
        widths = self.high - self.low
        return np.where(widths > 0, widths, 1.0)

    @property
    def is_continuous(self) -> Any:
        """The mask `[d]` of the inputs that have a range."""
        return np.array([isinstance(each, PlotRange) for each in self.inputs.values()])

    def candidates(self) -> Any:
        """Points `[n, d]` that cover the region: all combinations of levels, with a grid of the ranges, or with the
        points of a Sobol' sequence and the corners, where there are several."""
        levels = [np.unique(each) for each in self.inputs.values() if not isinstance(each, PlotRange)]
        combinations = [*itertools.product(*levels)]
        continuous = self.is_continuous
        inner = self._continuous_points(max(1, _MOST // len(combinations))) if continuous.any() else np.zeros((1, 0))
        found = np.empty((len(combinations) * len(inner), len(continuous)))
        found[:, continuous] = np.tile(inner, (len(combinations), 1))
        found[:, ~continuous] = np.repeat(np.array(combinations).reshape(len(combinations), -1), len(inner), axis=0)
        return found

    def _continuous_points(self, most: int) -> Any:
        """Points `[n, k]` in the ranges: those of `_on_a_line` for one range; for several, at most `most` of a Sobol'
        sequence but at least 2**_FEWEST, and corners, and of few ranges centers of edges and faces."""
        low, high = self.low[self.is_continuous], self.high[self.is_continuous]
        if len(low) == 1:
            return _on_a_line(float(low[0]), float(high[0]), min(most, _ON_A_LINE))[:, None]
        from scipy.stats import qmc

        shares = qmc.Sobol(len(low), scramble=False).random_base2(max(_FEWEST, min(most, _MOST // 2).bit_length() - 1))
        marks = (0.0, 0.5, 1.0) if len(low) <= _MOST_FACES else (0.0, 1.0) if len(low) <= _MOST_CORNERS else ()
        has_few = 2 * len(marks) ** len(low) <= max(most, 2 * len(shares))
        faces = [*itertools.product(marks, repeat=len(low))] if has_few else []
        faces = faces or [(0.0,) * len(low), (1.0,) * len(low)]
        return low + np.concatenate([np.array(faces), shares]) * (high - low)


def _on_a_line(low: float, high: float, count: int) -> Any:
    """Points from one number to another: `count` at equal distances, others ever closer to both ends and to 0, and from
    a positive number on `count` at equal ratios."""
    distances = np.geomspace(_CLOSEST, 1, count // 4) * (high - low)
    points = [np.linspace(low, high, count), low + distances, high - distances, distances, -distances]
    if low > 0:
        points.append(np.geomspace(low, high, count))
    every = np.unique(np.concatenate(points))
    return every[(low <= every) & (every <= high)]


def _ends(of_input: Any) -> tuple[float, float]:
    return of_input if isinstance(of_input, PlotRange) else (of_input.min(), of_input.max())


def input_value(text: str, dtype: str, whole: str, offset: int = 0) -> Any:
    """The range, the levels or the number of a text that starts at `offset` of `whole`."""

    def read(part: str, at: int) -> Any:
        return constant(part, dtype, whole, at)

    if ".." not in text:
        return read(text, offset)
    found = range_of(text, offset, whole, read)
    if not isinstance(found, PlotRange):
        raise unreadable("the inputs of a design are real", text, offset, whole, "write x=0..1")
    return found


def given_value(name: str, value: Any) -> Any:
    """A Python value as a range, as levels, or as a number: a text, a tuple of two ends, a list or a number."""
    if type(value) is tuple:
        if len(value) != 2:
            raise CallError(f"the range of '{name}' is a tuple of its two ends", hint=f"{name}=(0, 1)")
        value = f"{value[0]}..{value[1]}"
    if isinstance(value, str):
        word = f"{name}={value}"
        return input_value(value, "float64", word, len(word) - len(value))
    return value if isinstance(value, PlotRange) else python_values.value(value)


def region_and_numbers(values: Mapping[str, Any]) -> tuple[DesignRegion, dict[str, float]]:
    """The region of the names that have a range or levels, and the numbers of the other names.

    Raises UsageError where there is no region, and BindingError for levels that are not finite real numbers.
    """
    inputs: dict[str, Any] = {}
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, PlotRange):
            inputs[name] = value
            continue
        if arrays.is_complex(value):
            raise BindingError(f"'{name}' is complex, and the inputs and parameters of a design are real")
        levels = np.asarray(value, "float64")
        if levels.ndim > 1 or not levels.size or not np.isfinite(levels).all():
            raise BindingError(
                f"'{name}' is neither a finite number, nor a range or a list of levels", hint=f"write {name}=0..1"
            )
        if levels.ndim:
            inputs[name] = levels
        else:
            numbers[name] = float(levels)
    if not inputs:
        example = next(reversed([*values]), "x")
        raise UsageError("there is no region to choose rows from", hint=f"give the inputs ranges, as in {example}=0..1")
    combinations = int(np.prod([float(len(each)) for each in inputs.values() if not isinstance(each, PlotRange)]))
    if combinations > _MOST_LEVELS:
        raise UsageError(f"{combinations:,} combinations of levels are too many", hint="give an input a range")
    return DesignRegion(inputs), numbers
