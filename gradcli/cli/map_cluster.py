"""`gradcli map --cluster`: the rows of tables on many machines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Protocol

from gradcli import confined
from gradcli.cli import progress, row_report
from gradcli.cli.environment import Environment, is_unicode
from gradcli.errors import ExitStatus, UsageError
from gradcli.io import json_text, output
from gradcli.rows import cluster, dask_pool
from gradcli.rows.job import Job
from gradcli.rows.manifest import Manifest
from gradcli.rows.opening import open_table
from gradcli.rows.pipeline import first_shapes
from gradcli.rows.plan import Plan, planned
from gradcli.rows.sources import is_url
from gradcli.rows.targets import STDIN, check_format

# Parts that are told of on standard error; the manifest has all.
_MOST_TOLD = 10


class ClusterOptions(Protocol):
    """What it reads of the options of `gradcli map`."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def part_bytes(self) -> str | None: ...
    @property
    def resume(self) -> bool: ...
    @property
    def retries(self) -> int | None: ...
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


def run(options: ClusterOptions, job: Job, sources: Sequence[str], environment: Environment) -> ExitStatus:
    """Have the parts computed, and say which are missing."""
    request = _request(options, job, sources)
    with closing(open_table(sources[0], job.reading)) as reader:
        plan = planned(job.asked, reader.columns)
        request = request._replace(shapes=first_shapes(reader, plan, job.to or reader.format))

    def tell(text: str) -> None:
        if not options.quiet:
            environment.complain(f"warning: {text}")

    try:
        with dask_pool.opened(options.cluster or "", tell) as pool:
            done = cluster.begin(request, pool)
            with progress.shown(environment, options.quiet, len(done.parts)) as show:
                cluster.run(request, done, pool, show)
    finally:
        # Of workers that died, or were cancelled.
        output.sweep(request.directory)
    return _told(options, done, plan, job, sources, environment)


def _request(options: ClusterOptions, job: Job, sources: Sequence[str]) -> cluster.Request:
    if options.output is None:
        raise UsageError("--cluster writes parts into a directory", hint="add --output DIRECTORY")
    if options.max_seconds is not None or options.max_memory is not None:
        raise UsageError(
            "--max-seconds and --max-memory limit one process, and a cluster has many",
            hint="--max-steps and --max-elements limit each row",
        )
    check_format(job.to)
    if STDIN in sources:
        raise UsageError("standard input is on one machine alone", hint="--cluster reads files that all workers see")
    part_bytes = options.part_bytes and confined.byte_count(options.part_bytes, "size of parts")
    # Workers are started elsewhere.
    paths = [path if is_url(path) else os.path.abspath(path) for path in sources]
    for path in paths:
        cluster.found(path)
    retries = cluster.RETRIES if options.retries is None else options.retries
    return cluster.Request(
        job, paths, os.path.abspath(options.output), None, part_bytes or None, options.resume, retries
    )


def _told(
    options: ClusterOptions,
    done: Manifest,
    plan: Plan,
    job: Job,
    sources: Sequence[str],
    environment: Environment,
) -> ExitStatus:
    """Say what came of the rows and which parts are missing; the exit status."""
    report = cluster.report(done, sources, job.asked.dtype)
    failures = [*cluster.failures(done, sources)]
    for name, error in failures[:_MOST_TOLD]:
        error.message = f"{name} is missing: {error.message}"
        if options.json:
            environment.complain(json_text.dumps({"error": error.as_json()}, ascii=not is_unicode(environment.stderr)))
        else:
            environment.complain(error.report())
    too_many = job.policy.most is not None and report.failed > job.policy.most
    if too_many:
        environment.complain(f"error: {report.failed:,} rows failed, and --max-errors allows {job.policy.most:,}")
    if len(failures) > _MOST_TOLD:
        environment.complain(f"{len(failures) - _MOST_TOLD:,} more parts are missing: {done.file} says which")
    if options.json:
        row_report.tell_json(report, several=True, environment=environment)
    elif not options.quiet:
        row_report.tell(report, plan, job.policy, several=True, environment=environment)
    return ExitStatus.FAILURE if failures or too_many else ExitStatus.SUCCESS
