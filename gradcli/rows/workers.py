"""What a worker of a cluster does: tasks that are named, and told in plain data; so are their results.

Nothing else travels: a worker runs its own gradcli, within the limits that a task says, and refuses one of another
version.
"""

from __future__ import annotations

import logging
import pkgutil
import signal
from collections.abc import Mapping
from typing import Any

from gradcli import __version__, confined
from gradcli.errors import GradcliError, Span, UsageError, internal

VERSION = __version__
SAME_FILES = "all workers must see the same files"
# Each kind of task by its name: what is called with the data of one, and returns those of its result.
_KINDS = {
    "divide": "gradcli.rows.row_tasks:divide",
    "map": "gradcli.rows.row_tasks:compute",
    "fit": "gradcli.models.fitting.group_tasks:compute",
}


def perform(version: str, kind: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """What comes of a task of some kind; under `error` why nothing does, or under `version` that this is another
    gradcli."""
    if version != VERSION:
        return {"version": VERSION}
    try:
        result: dict[str, Any] = pkgutil.resolve_name(_KINDS[kind])(task)
        return result
    except BaseException as error:  # Polars has one that is no Exception.
        return {"error": _plain(error)}


def _plain(error: BaseException) -> dict[str, Any]:
    if isinstance(error, OSError):
        error = GradcliError(f"the system refused: {error}", hint=SAME_FILES)
    if not isinstance(error, GradcliError):
        error = confined.out_of_memory(error) or internal(error)
    return {"message": error.message, "hint": error.hint, "span": error.span, "text": error.source}


def error_of(told: Mapping[str, Any], where: str = "") -> GradcliError:
    """The error that a worker has told, met in some place."""
    span = told["span"] and Span(*told["span"])
    return GradcliError(where + told["message"], hint=told["hint"], span=span, source=told["text"])


def other_version(theirs: str | None) -> UsageError:
    """The error that workers run another version, or, where that is None, no gradcli."""
    run = "have no gradcli" if theirs is None else f"run gradcli {theirs}"
    return UsageError(f"the workers {run}, and this is gradcli {VERSION}", hint="install the same version everywhere")


def dask_setup(_worker: object) -> None:
    """Called by Dask in each process of a cluster of this machine: a Ctrl-C in the terminal is for who started it,
    who also says what there is to say."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
