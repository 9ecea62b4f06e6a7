"""Work in parts on many machines, as commands have it: from their options to the manifest, and which parts are missing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

from gradcli.cli import progress
from gradcli.cli.environment import Environment, is_unicode
from gradcli.errors import GradcliError, UsageError
from gradcli.io import json_text, output
from gradcli.rows import cluster, dask_pool
from gradcli.rows.manifest import Manifest
from gradcli.rows.sources import is_url
from gradcli.rows.targets import STDOUT

# Parts that are told of on standard error; the manifest has all.
_MOST_TOLD = 10


class ClusterOptions(Protocol):
    """What is read of the options of a command that may run on a cluster."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def resume(self) -> bool: ...
    @property
    def max_seconds(self) -> float | None: ...
    @property
    def max_memory(self) -> str | None: ...
    @property
    def output(self) -> str | None: ...
    @property
    def json(self) -> bool: ...
    @property
    def quiet(self) -> bool: ...


def directory_of(options: ClusterOptions) -> str:
    """Where the parts go. Raises UsageError where that is not said, and for limits of one process."""
    if options.output is None or options.output == STDOUT:
        raise UsageError("--cluster writes parts into a directory", hint="add --output DIRECTORY")
    if options.max_seconds is not None or options.max_memory is not None:
        raise UsageError(
            "--max-seconds and --max-memory limit one process, and a cluster has many",
            hint="--max-steps and --max-elements limit each row",
        )
    return os.path.abspath(options.output)


def absolute(sources: Sequence[str]) -> list[str]:
    """The paths as who works elsewhere finds them. Raises BindingError where there is no such file."""
    paths = [path if is_url(path) else os.path.abspath(path) for path in sources]
    for path in paths:
        cluster.found(path)
    return paths


def computed(options: ClusterOptions, request: cluster.Request, environment: Environment) -> Manifest:
    """Have the parts computed; what came of each."""

    def tell(text: str) -> None:
        if not options.quiet:
            environment.complain(f"warning: {text}")

    done = None
    try:
        with dask_pool.opened(options.cluster or "", tell) as pool:
            done = cluster.begin(request, pool)
            with progress.shown(environment, options.quiet, len(done.parts)) as show:
                cluster.run(request, done, pool, show)
    finally:
        # Of workers that died, or were cancelled; where the directory is of another run, that may be at work.
        if done is not None:
            output.sweep(request.directory)
    return done


def tell_missing(
    options: ClusterOptions, done: Manifest, failures: Iterable[tuple[str, GradcliError]], environment: Environment
) -> bool:
    """Say which parts are missing, and why: whether there are some."""
    missing = [*failures]
    for name, error in missing[:_MOST_TOLD]:
        error.message = f"{name} is missing: {error.message}"
        if options.json:
            environment.complain(json_text.dumps({"error": error.as_json()}, ascii=not is_unicode(environment.stderr)))
        else:
            environment.complain(error.report())
    if len(missing) > _MOST_TOLD:
        environment.complain(f"{len(missing) - _MOST_TOLD:,} more parts are missing: {done.file} says which")
    return bool(missing)
