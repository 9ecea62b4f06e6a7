"""A computation on numbers as generated functions of them, made when it is called again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gradcli import limits
from gradcli.errors import GradcliError, NotRecordableError
from gradcli.executors import scalars
from gradcli.run.recordings import abstract, recording

if TYPE_CHECKING:
    from gradcli.run.callables import Computation

# So many functions are kept, and of each so many versions, under different guards.
_MOST = 32
_MOST_VERSIONS = 4


class ScalarFunctions:
    """Functions of floats that give the value and gradients of a computation within these limits."""

    def __init__(self, computation: Computation, most: tuple[int, int]) -> None:
        self._computation = computation
        self._limits = most
        # By the names of the inputs and those to differentiate by.
        self.functions: dict[Any, Callable[..., Any]] = {}
        self._versions: Counter[Any] = Counter()

    def made(
        self, inputs: Mapping[str, Any], wrt: Sequence[str], *, raised: Callable[..., Any], refused: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """The program as a function of floats, recorded for some, which is `raised` or `refused` for what it does
        not fit; None where it is no program on scalars."""
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
        """`made` for who can do without: None too where it cannot be recorded."""
        with suppress(NotRecordableError):
            return self.made(inputs, wrt, raised=raised, refused=refused)
        return None

    def value_and_grad(self, values: Mapping[str, Any], wrt: Sequence[str] | None) -> tuple[Any, dict[str, Any]] | None:
        """The value and the gradients, where the inputs are floats and it was called so before."""
        if type(values) is not dict or not self.functions:
            return None
        names = tuple(values)
        try:
            leaves = names if wrt is None else tuple(wrt)
            run = self.functions.get((names, leaves))
        except TypeError:
            # No names: whoever reads them next says so.
            return None
        found = None if run is None else run(*values.values())
        return (found[0], dict(zip(leaves, found[1]))) if found else None

    def prepare(self, names: tuple[str, ...], wrt: tuple[str, ...], values: Mapping[str, Any]) -> None:
        """Have a function for the next call with floats of these names, and like these where one for others is there."""
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
        """A function for any numbers, or where its course depends on them, for those that take the course of `values`."""
        some = dict.fromkeys(values, abstract(0.0))
        try:
            return self.made(some, wrt, raised=_nothing, refused=_refused)
        except NotRecordableError:
            return self.version(values, wrt, raised=_nothing, refused=_refused)


_REFUSED = ()


def _nothing(*_values: Any) -> None:
    """What a function for scalars gives where it has no result for its inputs."""


def _refused(*_values: Any) -> tuple[()]:
    """What it gives where it was recorded for other inputs."""
    return _REFUSED
