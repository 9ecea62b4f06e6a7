"""Generates Python functions of floats for a computation on scalars, when it is called again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gradcli import limits
from gradcli.errors import GradcliError, NotRecordableError
from gradcli.evaluation.recordings import abstract, recording
from gradcli.executors import scalars

if TYPE_CHECKING:
    from gradcli.evaluation.callables import Computation

# Bounds on the number of functions, and of versions of each, under different guards.
_MOST = 32
_MOST_VERSIONS = 4


class ScalarFunctions:
    """Generated functions of floats that return the value and gradients of a computation, within its limits."""

    def __init__(self, computation: Computation, most: tuple[int, int]) -> None:
        self._computation = computation
        self._limits = most
        # By the names of the inputs and of those to differentiate by.
        self.functions: dict[Any, Callable[..., Any]] = {}
        self._versions: Counter[Any] = Counter()

    def made(
        self, inputs: Mapping[str, Any], wrt: Sequence[str], *, raised: Callable[..., Any], refused: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """Record the computation and generate a function of floats; None where it is no program on scalars.

        The function calls `raised` where the generated code raises, and `refused` where an input is no float or a guard
        does not hold. Raises NotRecordableError where control flow depends on the numbers.
        """
        try:
            with limits.within(*self._limits), limits.attempt():
                made = recording(self._computation, inputs, wrt)
        except NotRecordableError:
            raise
        except GradcliError:
            return None
        if not scalars.fits(made.trace.program):
            return None
        positions = made.trace.positions.values()

        def result(outputs: Sequence[str]) -> str:
            found = ("None" if i is None else outputs[i] for i in positions)
            return f"({outputs[0]}, ({''.join(f'{text}, ' for text in found)}))"

        return scalars.function(made.trace.program, result, raised=raised, refused=refused)

    def version(
        self, inputs: Mapping[str, Any], wrt: Sequence[str], *, raised: Callable[..., Any], refused: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """Like `made`, but None also where the computation cannot be recorded."""
        with suppress(NotRecordableError):
            return self.made(inputs, wrt, raised=raised, refused=refused)
        return None

    def value_and_grad(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> tuple[Any, dict[str, Any]] | None:
        """Return the value and the gradients; None where no function for these inputs exists or it has no result."""
        if type(values) is not dict or not self.functions:
            return None
        names = tuple(values)
        try:
            leaves = names if wrt is None else tuple(wrt)
            run = self.functions.get((names, leaves))
        except TypeError:
            # The key is unhashable because of an invalid name; a later step raises the error.
            return None
        found = None if run is None else run(*values.values())
        return (found[0], dict(zip(leaves, found[1]))) if found else None

    def prepare(self, names: tuple[str, ...], wrt: tuple[str, ...], values: Mapping[str, Any]) -> None:
        """Generate a function for the next call with floats of these names, or another version where the existing one
        refuses `values`."""
        key = names, wrt
        if not all(type(v) is float for v in values.values()):
            return
        known = self.functions.get(key)
        if known is None and len(self.functions) < _MOST:
            self.functions[key] = self._first_version(values, wrt) or _nothing
        elif known is not None and self._versions[key] < _MOST_VERSIONS and known(*values.values()) is _REFUSED:
            self._versions[key] += 1
            self.functions[key] = self.version(values, wrt, raised=_nothing, refused=known) or known

    def _first_version(self, values: Mapping[str, Any], wrt: Sequence[str]) -> Callable[..., Any] | None:
        """A function for all numbers, or, where control flow depends on them, for numbers that take the execution path
        of `values`."""
        some = dict.fromkeys(values, abstract(0.0))
        try:
            return self.made(some, wrt, raised=_nothing, refused=_refused)
        except NotRecordableError:
            return self.version(values, wrt, raised=_nothing, refused=_refused)


_REFUSED = ()


def _nothing(*_values: Any) -> None:
    """Result of a function that raised: None."""


def _refused(*_values: Any) -> tuple[()]:
    """Result of a function whose guards do not hold."""
    return _REFUSED
