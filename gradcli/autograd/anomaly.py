"""Anomaly mode: report where the forward operation was recorded whose backward fails or returns nan."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from gradcli.autograd.engine import Visit, visit_wrapper
from gradcli.autograd.modes import ModeSwitch
from gradcli.autograd.node import Node, recorders
from gradcli.errors import DifferentiationError
from gradcli.primitives.bind import assume, primal_and_tangents
from gradcli.primitives.entries.comparisons import equal

# The keys in the metadata of a node: the traceback of its recording, and the node whose backward recorded it.
TRACEBACK, PARENT = "traceback_", "parent_"

_ENABLED = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)
_NOTHING_KNOWN = (
    "No forward pass information available. Enable detect anomaly during forward pass for more information."
)
_PACKAGE = os.path.dirname(os.path.dirname(__file__))


class Anomaly:
    """Anomaly mode with its options; it exists while the mode is on."""

    def __init__(self, check_nan: bool) -> None:
        self.check_nan = check_nan

    def watched(self, visit: Visit, node: Node, cotangents: Sequence[Any]) -> Sequence[Any]:
        """Visit a node in a backward pass and return its cotangents.

        A failure emits a warning that says where the node was recorded; with `check_nan`, nan raises
        DifferentiationError.
        """
        token = _visited.set(node)
        try:
            pulled = visit(node, cotangents)
            for i, cotangent in enumerate(pulled if self.check_nan else ()):
                if cotangent is not None and not all(
                    assume(equal(c, c)) for c in primal_and_tangents(_numbers(cotangent))
                ):
                    raise DifferentiationError(f"Function '{node.name}' returned nan values in its {i}th output.")
        except Exception:
            _tell(node)
            raise
        finally:
            _visited.reset(token)
        return pulled


# Both are context variables, so that each thread and task has its own: the mode, and the node that is being visited.
current: ContextVar[Anomaly | None] = ContextVar("gradcli_anomaly", default=None)
_visited: ContextVar[Node | None] = ContextVar("gradcli_anomaly_node", default=None)


def _numbers(cotangent: Any) -> Any:
    return getattr(cotangent, "inner", cotangent)


def _note(node: Node, _result: Any) -> None:
    """Store in a recorded node the current traceback, without the innermost frames of this package."""
    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(_PACKAGE):
        frames.pop()
    node.metadata[TRACEBACK] = frames.format()
    parent = _visited.get()
    if parent is not None:
        node.metadata[PARENT] = parent


def _tell(node: Node) -> None:
    """Warn that a node failed, with the tracebacks of where it and the nodes that induced it were recorded."""
    _warn(f"Error detected in {node.name}. ", "Traceback of forward call that caused the error:", node)
    parent = node.metadata.get(PARENT)
    while parent is not None:
        what = "Traceback of forward call that induced the previous calculation:"
        _warn(f"\n\nPrevious calculation was induced by {parent.name}. ", what, parent)
        parent = parent.metadata.get(PARENT)


def _warn(begin: str, what: str, node: Node) -> None:
    known = node.metadata.get(TRACEBACK)
    message = begin + (_NOTHING_KNOWN if known is None else f"{what}\n{''.join(known)}")
    try:
        warnings.warn(message, UserWarning, stacklevel=2)
    except UserWarning:
        # Warnings are errors here. Print instead, because the original error must not be replaced.
        print(message, file=sys.stderr)


def _set(anomaly: Anomaly | None) -> None:
    current.set(anomaly)
    visit_wrapper.set(None if anomaly is None else anomaly.watched)
    others = tuple(record for record in recorders.get() if record is not _note)
    recorders.set(others if anomaly is None else (*others, _note))


class set_detect_anomaly(ModeSwitch):
    """Turn anomaly mode on or off from the call on; as a context manager, until the end of the block."""

    variable = current

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._begin(Anomaly(check_nan) if mode else None)

    def _set(self, mode: Anomaly | None) -> None:
        _set(mode)


class detect_anomaly:
    """Within the block, a backward pass that fails warns of where the forward operation was recorded.

    That operation must have been recorded within such a block too. With `check_nan`, nan is a failure. For debugging,
    because it is slow.
    """

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(_ENABLED, UserWarning, stacklevel=2)
        self._anomaly = Anomaly(check_nan)
        self._before: list[Anomaly | None] = []

    def __enter__(self) -> None:
        self._before.append(current.get())
        _set(self._anomaly)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set(self._before.pop())


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on in this context."""
    return current.get() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode is on and treats nan as an error in this context."""
    anomaly = current.get()
    return anomaly is not None and anomaly.check_nan
