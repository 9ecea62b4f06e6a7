"""Functions of time, states and parameters at many points, with their first and second derivatives and the chain rule
for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.errors import EvaluationError
from gradcli.language.syntax.tree import Module
from gradcli.models.value_checks import real_value
from gradcli.named_tuples import NamedTuple
from gradcli.rows.row_programs import RowProgram

# A float64 array of NumPy.
Array = Any


class RowFunctions:
    """Programs of the numbers `names`, each with one number as its value; `shared` are the values of other names. The
    derivatives by the names in `held` count as 0 and are not computed."""

    def __init__(
        self, programs: Sequence[Module], names: Sequence[str], shared: Mapping[str, Any], held: Sequence[str] = ()
    ) -> None:
        self._programs = programs
        self._names = tuple(names)
        self._varied = tuple(name for name in names if name not in held)
        self._shared = dict(shared)
        self._runs: dict[int, list[RowProgram]] = {}

    def at(self, points: Array, order: int) -> ValueExpansion:
        """The values `[…, programs]` at points `[…, names]`, with derivatives by the names up to an order.

        Raises the error of the first point that has no value.
        """
        lead, q, m = points.shape[:-1], len(self._names), len(self._programs)
        rows = points.reshape(-1, q)
        columns = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(self._names)}
        value = np.empty((len(rows), m))
        first = np.zeros((len(rows), m, q)) if order else None
        second = np.zeros((len(rows), m, q, q)) if order > 1 else None
        if order not in self._runs:
            self._runs[order] = [RowProgram(p, self._varied if order else (), order) for p in self._programs]
        for k, program in enumerate(self._runs[order]):
            found = program.run(columns, self._shared, rows=len(rows))
            for failed in found.failures:
                raise failed.error
            number = real_value(found.value, "a column of a solution")
            if number.ndim > 1:
                raise EvaluationError(
                    f"this has a value of shape {list(number.shape[1:])}, and a number is needed",
                    span=self._programs[k].body[-1].span,
                    source=self._programs[k].source,
                )
            value[:, k] = number
            for key in found.derivatives:
                i, *rest = map(self._names.index, key.split(","))
                if rest and second is not None:
                    second[:, k, i, rest[0]] = second[:, k, rest[0], i] = found.derivative(key)
                elif first is not None:
                    first[:, k, i] = found.derivative(key)
        shaped = (None if part is None else part.reshape(*lead, *part.shape[1:]) for part in (value, first, second))
        return ValueExpansion(*shaped)


class ValueExpansion(NamedTuple):
    """Values `[…, m]`, their derivatives by q variables `[…, m, q]`, and second ones `[…, m, q, q]`, up to some order."""

    value: Array
    first: Array = None
    second: Array = None

    @property
    def order(self) -> int:
        return (self.first is not None) + (self.second is not None)

    def of(self, inner: ValueExpansion) -> ValueExpansion:
        """The same values by the variables of their inputs, whose derivatives are those of `inner`."""
        first = second = None
        if self.first is not None and inner.first is not None:
            first = self.first @ inner.first
        if self.second is not None and inner.first is not None and inner.second is not None:
            second = np.einsum("...mrs,...ra,...sb->...mab", self.second, inner.first, inner.first)
            second += np.einsum("...mr,...rab->...mab", self.first, inner.second)
        return ValueExpansion(self.value, first, second)

    def taken(self, key: object) -> ValueExpansion:
        """The expansions at an index of the leading axes."""
        return ValueExpansion(*(None if part is None else part[key] for part in self))


def constants(value: Array, variables: int, order: int) -> ValueExpansion:
    """Values that depend on no variable."""
    shape = (*value.shape, variables)
    first = np.zeros(shape, value.dtype) if order else None
    return ValueExpansion(value, first, np.zeros((*shape, variables), value.dtype) if order > 1 else None)


def joined(parts: list[ValueExpansion], axis: int = -1) -> ValueExpansion:
    """Expansions one after another along an axis of the values."""
    if axis < 0:
        axis += parts[0].value.ndim
    return ValueExpansion(*(None if of[0] is None else np.concatenate(of, axis) for of in zip(*parts)))
