"""Detection of points where a computation switches between branches: ties in comparisons, and kinks of functions.

A derivative at such a point is that of one side, or of a convention, which the result does not show. A caller that
differentiates uses `watching` to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli import arrays
from gradcli.errors import NotRecordableError, UndecidedError
from gradcli.primitives.bind import concrete, constant
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
    nowhere,
)
from gradcli.primitives.primitive import Primitive
from gradcli.type_hints import Any


class BranchPointError(NotRecordableError):
    """A computation switches while it is recorded."""


# Comparisons that switch at single points only.
EQUALITIES = frozenset({equal, not_equal})
_COMPARISONS = EQUALITIES | {less, less_equal, greater, greater_equal}

# A callback that receives a primitive, its operands without derivatives, and its parameters.
Watcher = Callable[[Primitive, Sequence[Any], Mapping[str, Any]], None]
watcher: ContextVar[Watcher | None] = ContextVar("gradcli_switching_watcher", default=None)
watcher_now = watcher.get


@contextmanager
def watching(see: Watcher | None) -> Iterator[None]:
    """Within the block, `see` is called for every comparison of differentiated values, and for every primitive with
    kinks whose Taylor series is computed."""
    token = watcher.set(see)
    try:
        yield
    finally:
        watcher.reset(token)


def is_at_branch_point(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Return whether a primitive has a kink at its operands, or compares equal ones. A recorded program is guarded
    against it."""
    given = [constant(o) for o in operands]
    if primitive.smooth is None and len(given) == 2 and all(type(o) is float for o in given):
        # A fast path without the time and the steps that `bind` takes: loops compare in each iteration.
        return primitive in _COMPARISONS and given[0] == given[1]
    try:
        with arrays.quiet():
            if primitive.smooth is not None:
                return not primitive.smooth(*given, **params)
            return primitive in _COMPARISONS and not nowhere(equal(*given))
    except UndecidedError:
        # Wide balls enclose the derivatives of both sides.
        return False


class BranchPointWatcher:
    """A watcher (see `watching`) that records whether a computation switches, and reports switching primitives to the
    watcher around it.

    Raises BranchPointError if the computation is being recorded, as a recording contains one side only.
    """

    def __init__(self, primitives: Collection[Primitive] | None = None) -> None:
        """Watch only `primitives`, if given, and those whose derivatives are nan at kinks."""
        self.at_kink = False
        self.at_comparison = False
        self._primitives = primitives
        self._outer = watcher_now()

    def __bool__(self) -> bool:
        return self.at_kink or self.at_comparison

    def __call__(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        of_interest = self._primitives is None or primitive in self._primitives or primitive.nan_at_kinks
        if not of_interest or not is_at_branch_point(primitive, operands, params):
            return
        # Loaded on demand, as most programs have no such point.
        from gradcli.kinds.batch import unwrap_rows

        try:
            for operand in operands:
                concrete(unwrap_rows(constant(operand)))
        except NotRecordableError:
            raise BranchPointError(
                f"'{primitive.called}' is not smooth here, and a recording has one side alone"
            ) from None
        self.at_kink |= primitive.smooth is not None
        self.at_comparison |= primitive.smooth is None
        if self._outer is not None:
            self._outer(primitive, operands, params)
