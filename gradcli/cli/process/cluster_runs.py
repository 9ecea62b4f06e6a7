"""Runs the parts of a command on a cluster: checks the options, shows progress, and reports missing parts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from gradcli.cli.process import progress
from gradcli.cli.process.environment import Environment
from gradcli.errors import GradcliError, UsageError
from gradcli.io import output
from gradcli.rows.distributed import cluster, dask_pool
from gradcli.rows.distributed.manifest import Manifest
from gradcli.rows.formats.outputs import STDOUT
from gradcli.rows.formats.sources import is_url
from gradcli.type_hints import Protocol

# The maximum number of missing parts that are reported; the manifest lists all.
_MOST_TOLD = 10


class ClusterOptions(Protocol):
    """The options that are used of a command that may run on a cluster."""

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
    """The output directory. Raises UsageError if there is none, and for limits that hold for one process only."""
    if options.output is None or options.output == STDOUT:
        raise UsageError("--cluster writes parts into a directory", hint="add --output DIRECTORY")
    if options.max_seconds is not None or options.max_memory is not None:
        raise UsageError(
            "--max-seconds and --max-memory limit one process, and a cluster has many",
            hint="--max-steps and --max-elements limit each row",
        )
    return os.path.abspath(options.output)


def absolute_paths(sources: Sequence[str]) -> list[str]:
    """Absolute paths, valid in other processes. Raises BindingError for a missing file."""
    paths = [path if is_url(path) else os.path.abspath(path) for path in sources]
    for path in paths:
        cluster.found(path)
    return paths


def compute_parts(options: ClusterOptions, request: cluster.ClusterRequest, environment: Environment) -> Manifest:
    """Compute the parts and return the manifest with their states."""

    def tell(text: str) -> None:
        if not options.quiet:
            environment.write_error(f"warning: {text}")

    done = None
    try:
        with dask_pool.opened(options.cluster or "", tell) as pool:
            done = cluster.begin(request, pool)
            with progress.shown(environment, options.quiet, len(done.parts)) as show:
                cluster.run(request, done, pool, show)
    finally:
        # Remove unfinished files of workers that died; not in a directory that belongs to another run, which may be
        # active.
        if done is not None:
            output.sweep(request.directory)
    return done


def report_missing(
    options: ClusterOptions, done: Manifest, failures: Iterable[tuple[str, GradcliError]], environment: Environment
) -> bool:
    """Report the missing parts and the reasons; returns whether there are any."""
    missing = [*failures]
    for name, error in missing[:_MOST_TOLD]:
        error.message = f"{name} is missing: {error.message}"
        environment.report(error, options.json)
    if len(missing) > _MOST_TOLD:
        environment.write_error(f"{len(missing) - _MOST_TOLD:,} more parts are missing: {done.file} says which")
    return bool(missing)
