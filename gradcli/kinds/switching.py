"""Where a computation switches: comparisons of what is equal, and functions at a kink, told while they are evaluated.

A derivative there is that of one side, or of a convention. Whoever differentiates asks by `watching` whether there is
such a place, as nothing of it shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gradcli import arrays
from gradcli.errors import NotRecordableError, UndecidedError
from gradcli.kinds.batch import stacked
from gradcli.primitives.bind import concrete, constant
from gradcli.primitives.comparisons import equal, greater, greater_equal, less, less_equal, not_equal, nowhere
from gradcli.primitives.primitive import Primitive


class SwitchingError(NotRecordableError):
    """A computation switches where it is recorded."""


# What decides at single points alone.
EQUALITIES = frozenset({equal, not_equal})
_COMPARISONS = EQUALITIES | {less, less_equal, greater, greater_equal}

# Called with a primitive, its operands without what is differentiated, and its parameters.
Watcher = Callable[[Primitive, Sequence[Any], Mapping[str, Any]], None]
watcher: ContextVar[Watcher | None] = ContextVar("gradcli_switching_watcher", default=None)
watcher_now = watcher.get


@contextmanager
def watching(see: Watcher | None) -> Iterator[None]:
    """Within the block, `see` is told of every comparison of what is differentiated, and of every primitive with kinks
    that a Taylor series is made by."""
    token = watcher.set(see)
    try:
        yield
    finally:
        watcher.reset(token)


def switches(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Whether a primitive has a kink at its operands, or compares some that are equal. A recorded program notes that
    it does not."""
    given = [constant(o) for o in operands]
    if primitive.smooth is None and len(given) == 2 and all(type(o) is float for o in given):
        # Without the time and the steps that `bind` takes: loops compare in each round.
        return primitive in _COMPARISONS and given[0] == given[1]
    try:
        with arrays.quiet():
            if primitive.smooth is not None:
                return not primitive.smooth(*given, **params)
            return primitive in _COMPARISONS and not nowhere(equal(*given))
    except UndecidedError:
        # Balls that are wide hold the derivatives of both sides.
        return False


class Switching:
    """Whether a computation switches where it is evaluated; it is told of its primitives, see `watching`, and tells the
    watcher around it of those that do.

    Raises SwitchingError where the computation is being recorded, as a recording has one side alone.
    """

    def __init__(self, primitives: Collection[Primitive] | None = None) -> None:
        """Of the given `primitives` alone, where there are any, and those whose derivatives are nan at kinks."""
        self.at_kink = False
        self.at_comparison = False
        self._primitives = primitives
        self._outer = watcher_now()

    def __bool__(self) -> bool:
        return self.at_kink or self.at_comparison

    def __call__(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        of_interest = self._primitives is None or primitive in self._primitives or primitive.nan_at_kinks
        if not of_interest or not switches(primitive, operands, params):
            return
        try:
            for operand in operands:
                concrete(stacked(constant(operand)))
        except NotRecordableError:
            raise SwitchingError(
                f"'{primitive.called}' is not smooth here, and a recording has one side alone"
            ) from None
        self.at_kink |= primitive.smooth is not None
        self.at_comparison |= primitive.smooth is None
        if self._outer is not None:
            self._outer(primitive, operands, params)
