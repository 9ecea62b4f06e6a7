"""The command `gradcli fit --by COLUMN --cluster`: fits groups of rows on many machines."""

from __future__ import annotations

from gradcli.cli.process import cluster_runs
from gradcli.cli.process.environment import Environment
from gradcli.cli.rendering import fit_report
from gradcli.errors import ExitStatus, UsageError
from gradcli.models.fitting.fit_execution import prepare
from gradcli.models.fitting.fit_requests import FitRequest
from gradcli.models.fitting.groups import group_parts
from gradcli.models.fitting.search.estimation import SearchOptions
from gradcli.rows.distributed.cluster import ClusterRequest
from gradcli.rows.formats.sources import is_read_once


def run(
    options: cluster_runs.ClusterOptions, request: FitRequest, search: SearchOptions, environment: Environment
) -> ExitStatus:
    """Fit the groups and report missing parts and groups that are not fitted."""
    directory = cluster_runs.directory_of(options)
    if request.by is None:
        raise UsageError("one fit is for one machine", hint="--by COLUMN fits each group of rows")
    ready = prepare(request, search)
    if ready.mixed is not None:
        raise UsageError("random effects are fitted on one machine", hint="leave out --cluster")
    # Standard input is read by this process; only files must be visible to workers.
    paths = cluster_runs.absolute_paths([path for path in request.table.sources if not is_read_once(path)])
    work = group_parts.GroupWork(request, ready, paths, "jsonl" if options.json else "csv")
    done = cluster_runs.compute_parts(options, ClusterRequest(work, directory, options.resume), environment)

    has_missing = cluster_runs.report_missing(options, done, group_parts.failures(done), environment)
    account = group_parts.report(done)
    if not options.quiet:
        fit_report.report_problems(account, ready.data.left_out, request.by, environment)
    return ExitStatus.FAILURE if has_missing or account.open else ExitStatus.SUCCESS
