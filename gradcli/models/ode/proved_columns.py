"""Tables of solutions with proved digits: the computation of floats, with balls as the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb

from gradcli import arrays
from gradcli.arrays.flint.balls import Balls, exact
from gradcli.arrays.flint.flint_numbers import compared
from gradcli.errors import EvaluationError
from gradcli.evaluation.session import EvaluationRequest
from gradcli.language.syntax.tree import Module
from gradcli.models.ode.row_functions import Array, RowFunctions, ValueExpansion
from gradcli.named_tuples import NamedTuple
from gradcli.proofs import digits as proving


class ProvedTable(NamedTuple):
    """Columns of texts, and whether all numbers have their digits."""

    columns: dict[str, Array]
    complete: bool


def table(compute: Callable[[], Mapping[str, Array]], digits: int, most: int) -> ProvedTable:
    """The columns that `compute` returns at the working precision, as texts of `digits` digits, within
    `digits.computing`."""
    found, _ = proving.at_rising_precision(
        compute,
        lambda columns: all(proving.have_digits(map(number, column), digits) for column in columns.values()),
        digits,
        most,
    )
    columns = {
        name: np.array([proving.text_of(number(x), digits, most) for x in column], object)
        for name, column in found.items()
    }
    complete = not any(proving.is_bound(text) for column in columns.values() for text in column)
    return ProvedTable(columns, complete)


def number(value: Any) -> Any:
    """A float or ball as a number of FLINT."""
    return value.numbers if type(value) is Balls else exact(value)


def numbers(values: Sequence[Any]) -> Array:
    """Such numbers as an array."""
    found = np.empty(len(values), object)
    found[:] = [number(v) for v in values]
    return found


class ProvedFunctions(RowFunctions):
    """Functions of numbers in balls."""

    def at(self, points: Array, order: int) -> ValueExpansion:
        """The values `[…, programs]` at points `[…, names]`, with derivatives by the names up to an order."""
        lead, q, m = points.shape[:-1], len(self._names), len(self._programs)
        rows = points.reshape(-1, q)
        value = np.empty((len(rows), m), object)
        first = np.zeros((len(rows), m, q), object) if order else None
        second = np.zeros((len(rows), m, q, q), object) if order > 1 else None
        for k, row in enumerate(rows):
            for i, program in enumerate(self._programs):
                found = self._found(program, row, order)
                value[k, i] = _one(found.value, program)
                for name, slope in (found.grad or {}).items():
                    if first is not None and slope is not None:
                        first[k, i, self._names.index(name)] = number(slope)
                for key, slope in (found.derivatives or {}).items():
                    a, b = (self._names.index(name) for name in key.split(","))
                    if second is not None and slope is not None:
                        second[k, i, a, b] = second[k, i, b, a] = number(slope)
        shaped = (None if part is None else part.reshape(*lead, *part.shape[1:]) for part in (value, first, second))
        return ValueExpansion(*shaped)

    def _found(self, program: Module, row: Array, order: int) -> Any:
        from gradcli.language.names import scope

        reads = scope.free_names(program)
        values = {name: Balls(number(x)) for name, x in zip(self._names, row) if name in reads}
        shared = {name: x for name, x in self._shared.items() if name in reads}
        wrt = tuple(values) if order else ()
        return proving.at_precision(
            lambda: EvaluationRequest(program, {**shared, **values}, wrt, order=max(order, 1) if wrt else None)
        )


def _one(value: Any, program: Module) -> Any:
    shape = arrays.shape(value)
    if shape:
        raise EvaluationError(
            f"this has a value of shape {list(shape)}, and a number is needed",
            span=program.body[-1].span,
            source=program.source,
        )
    return number(value)


def check_order(times: Sequence[Any], jumps: Sequence[Any]) -> None:
    """Raise UndecidedError where it is not known which of a time and of a jump, or of two jumps, is first."""
    for k, jump in enumerate(jumps):
        for time in (*times, *jumps[:k]):
            compared(number(time), number(jump))


def is_finite(value: Any) -> bool:
    """Return whether a number has bounds."""
    return bool(arb(number(value)).is_finite())
