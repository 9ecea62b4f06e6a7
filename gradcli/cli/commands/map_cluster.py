"""The command `gradcli map --cluster`: evaluates the rows of tables on many machines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from gradcli import subprocess_calls
from gradcli.cli.process import cluster_runs
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import row_report
from gradcli.errors import ExitStatus, UsageError
from gradcli.rows.distributed import row_parts
from gradcli.rows.distributed.cluster import RETRIES, ClusterRequest
from gradcli.rows.distributed.job import Job
from gradcli.rows.distributed.row_parts import RowWork
from gradcli.rows.formats.opening import open_table
from gradcli.rows.formats.outputs import STDIN, check_format
from gradcli.rows.pipeline import first_shapes
from gradcli.rows.plan import make_plan
from gradcli.type_hints import Protocol


class MapOptionsOnCluster(cluster_runs.ClusterOptions, Protocol):
    """The options of `gradcli map` that are used here."""

    @property
    def part_bytes(self) -> str | None: ...
    @property
    def retries(self) -> int | None: ...


def run(options: MapOptionsOnCluster, job: Job, sources: Sequence[str], environment: Environment) -> ExitStatus:
    """Evaluate the parts and report missing ones."""
    directory = cluster_runs.directory_of(options)
    check_format(job.to)
    if STDIN in sources:
        raise UsageError("standard input is on one machine alone", hint="--cluster reads files that all workers see")
    part_bytes = options.part_bytes and subprocess_calls.byte_count(options.part_bytes, "size of parts")
    paths = cluster_runs.absolute_paths(sources)
    with closing(open_table(sources[0], job.reading)) as reader:
        plan = make_plan(job.asked, reader.columns)
        shapes = first_shapes(reader, plan, job.to or reader.format)
    retries = RETRIES if options.retries is None else options.retries
    request = ClusterRequest(RowWork(job, paths, shapes, part_bytes or None), directory, options.resume, retries)
    done = cluster_runs.compute_parts(options, request, environment)

    report = row_parts.report(done, sources, job.asked.dtype)
    has_missing = cluster_runs.report_missing(options, done, row_parts.failures(done, sources), environment)
    too_many = job.policy.max_failures is not None and report.failed > job.policy.max_failures
    if too_many:
        environment.write_error(
            f"error: {report.failed:,} rows failed, and --max-errors allows {job.policy.max_failures:,}"
        )
    if options.json:
        row_report.tell_json(report, several=True, environment=environment)
    elif not options.quiet:
        row_report.tell(report, plan, job.policy, several=True, environment=environment)
    return ExitStatus.FAILURE if has_missing or too_many else ExitStatus.SUCCESS
