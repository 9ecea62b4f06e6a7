"""The tasks that a worker of a cluster performs: they have names, and take and return plain data.

Nothing else is transferred: a worker runs its own installation of gradcli within the limits of the task, and refuses
tasks of another version.
"""

from __future__ import annotations

import logging
import pkgutil
import signal
from collections.abc import Mapping
from typing import Any

from gradcli import __version__, subprocess_calls
from gradcli.errors import GradcliError, Span, UsageError, internal

VERSION = __version__
SAME_FILES = "all workers must see the same files"
# The function of each kind of task, which takes the data of a task and returns those of its result.
_KINDS = {
    "divide": "gradcli.rows.distributed.row_tasks:divide",
    "map": "gradcli.rows.distributed.row_tasks:compute",
    "fit": "gradcli.models.fitting.groups.group_tasks:compute",
}


def perform(version: str, kind: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a task. On failure the reason is under `error`; where the worker runs another version, that is
    under `version`."""
    if version != VERSION:
        return {"version": VERSION}
    try:
        result: dict[str, Any] = pkgutil.resolve_name(_KINDS[kind])(task)
        return result
    except BaseException as error:  # Panics of Polars are BaseExceptions.
        return {"error": _plain(error)}


def _plain(error: BaseException) -> dict[str, Any]:
    if isinstance(error, OSError):
        error = GradcliError(f"the system refused: {error}", hint=SAME_FILES)
    if not isinstance(error, GradcliError):
        error = subprocess_calls.out_of_memory(error) or internal(error)
    return {"message": error.message, "hint": error.hint, "span": error.span, "text": error.source}


def error_of(told: Mapping[str, Any], where: str = "") -> GradcliError:
    """The error in a result of a worker, with the place `where` it occurred as prefix."""
    span = told["span"] and Span(*told["span"])
    return GradcliError(where + told["message"], hint=told["hint"], span=span, source=told["text"])


def other_version(theirs: str | None) -> UsageError:
    """The error for workers of another version, or, where `theirs` is None, without gradcli."""
    run = "have no gradcli" if theirs is None else f"run gradcli {theirs}"
    return UsageError(f"the workers {run}, and this is gradcli {VERSION}", hint="install the same version everywhere")


def dask_setup(_worker: object) -> None:
    """Called by Dask in each process of a local cluster: ignores Ctrl-C, which the starting process handles, and
    silences logging."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
