"""Computes values and gradients for each row of arrays, for compiled programs in Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.errors import BindingError, UsageError
from gradcli.evaluation import python_values
from gradcli.evaluation.recording_cache import BoundedCache
from gradcli.primitives.bind import concrete
from gradcli.rows.row_programs import RowProgram

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation

# Bound on the number of cached row programs, one for each choice of inputs to differentiate by.
_MOST = 32


class RowGradients:
    """A computation that is run for each row of its inputs."""

    def __init__(self, computation: Computation, limits: tuple[int, int]) -> None:
        self._computation = computation
        self._limits = limits
        self._programs: BoundedCache[tuple[str, ...], RowProgram] = BoundedCache(_MOST)

    def value_and_grad(
        self, bindings: Mapping[str, Any], wrt: Sequence[str], rows: bool | Sequence[str]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the values of the rows and their derivatives.

        `rows` names the inputs that have rows; True stands for all with axes. Raises the error of the first row that
        fails, with its index.
        """
        named = [n for n, b in bindings.items() if arrays.shape(b)] if rows is True else _listed(rows, bindings)
        given = {name: _filled(concrete(value)) for name, value in bindings.items()}
        program = self._program(tuple(wrt))
        shared = {n: v for n, v in given.items() if n not in named}
        found = program.run({n: given[n] for n in named}, shared, most_limited=0)
        for index, error in ((f.index, f.error) for f in found.failures[:1]):
            error.message = f"row {index}: {error.message}"
            error.args = (error.message,)
            raise error
        return found.value, dict(found.derivatives)

    def _program(self, wrt: tuple[str, ...]) -> RowProgram:
        if wrt not in self._programs:
            max_steps, max_elements = self._limits
            self._programs[wrt] = RowProgram(self._computation, wrt, max_steps=max_steps, max_elements=max_elements)
        return self._programs[wrt]


def check(rows: Any, grad_output: Any) -> None:
    """Raise CallError where `rows` does not name inputs, and UsageError for a cotangent together with rows."""
    if grad_output is not None:
        raise UsageError(
            "grad_output weights the elements of one value, and with rows there is a value for each",
            hint="multiply by the weights in the program, where they are an input",
        )
    if not isinstance(rows, bool):
        python_values.names_tuple(rows)


def _filled(array: Any) -> Any:
    """A masked array with nan in place of masked elements."""
    mask = getattr(array, "mask", None)
    return array if mask is None or not hasattr(array, "filled") else array.filled(math.nan)


def _listed(rows: Any, bindings: Mapping[str, Any]) -> Sequence[str]:
    names = python_values.names_tuple(rows)
    for name in names:
        if name not in bindings:
            raise BindingError(f"'{name}' is to have rows, and has no value")
        if not arrays.shape(bindings[name]):
            raise BindingError(f"'{name}' is one number, and has no rows")
    return names
