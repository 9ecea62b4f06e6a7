"""The times of a solution: a range `0..20`, from either end, or a list of times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import BindingError
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import unreadable
from gradcli.models.ode.expansions import Array

_MARK = ".."
# The cost of a time, in array elements.
_ELEMENTS = 400


class TimeRange(NamedTuple):
    """The times from `first` to `last`, which may be the smaller one."""

    first: Any
    last: Any


def value(text: str, dtype: str, whole: str, offset: int = 0) -> Any:
    """The range or the times of a text that starts at `offset` of `whole`. Raises BindingError, with its place."""
    if _MARK not in text:
        return constant(text, dtype, whole, offset)
    low, _, high = text.partition(_MARK)
    if not low.strip() or not high.strip() or high.startswith("."):
        raise unreadable("this is no range of times", text, offset, whole, "write t=0..20")
    ends = [constant(low, dtype, whole, offset), constant(high, dtype, whole, offset + len(low) + len(_MARK))]
    if any(arrays.shape(end) for end in ends) or not all(math.isfinite(float(end)) for end in ends):
        raise unreadable("an end of a range is a finite number", text, offset, whole, "write t=0..20")
    return TimeRange(*ends) if is_exact() else TimeRange(float(ends[0]), float(ends[1]))


def moments(given: Any, points: int, name: str) -> Array:
    """The times: `points` of them from one end of a range to the other, or those of a vector."""
    if isinstance(given, TimeRange):
        # A time is several numbers in the table and in the solution.
        limits.charge(_ELEMENTS * points)
        if is_exact():
            step = (given.last - given.first) / float(points - 1)
            return _proved([given.first + step * float(k) for k in range(points - 1)] + [given.last])
        return np.linspace(given.first, given.last, points)
    if len(arrays.shape(given)) != 1:
        raise BindingError(
            f"the times '{name}' are a range or a list", hint=f"{name}=0..20, or {name}=[0,1,5] with the start first"
        )
    if is_exact():
        return _proved([given[k] for k in range(arrays.shape(given)[0])])
    return np.asarray(arrays.to_numpy(given), float)


def _proved(times: Sequence[Any]) -> Array:
    """Times as numbers of FLINT."""
    from gradcli.models.ode.proved_columns import numbers

    return numbers(times)
