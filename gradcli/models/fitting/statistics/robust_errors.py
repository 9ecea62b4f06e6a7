"""Covariances of estimates that do not rest on the distribution that a fit assumes: those of the sandwich, of rows or of
clusters of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.errors import EvaluationError
from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.statistics.inference import FitRows, Statistics

# What `errors` may be, beside a column of clusters, as in `cluster:site`.
INFORMATION, ROBUST, CLUSTER = "information", "robust", "cluster"
ERRORS = (INFORMATION, ROBUST)
# Number of clusters below which the errors are known to be too small (A. C. Cameron and D. L. Miller, Journal of Human
# Resources 50 (2015) 317, VI).
_FEW_CLUSTERS = 20


def cluster_column(errors: str) -> str | None:
    """The column of clusters, None where there is none."""
    kind, separator, column = errors.partition(":")
    return column if kind == CLUSTER and separator else None


def with_robust_errors(found: Statistics, rows: FitRows, known: Assumptions, clusters: Any) -> Statistics:
    """The statistics of one fit with the covariances of the sandwich B M B, where B is the inverse of the information,
    and M the sum of the squares of the gradients of the costs of rows, or of `clusters`, the codes `[n]` of rows. Priors
    add to M what they add to the information.

    For least squares M of the rows is multiplied by n/(n - p), and of clusters by (n - 1)/(n - p), where n - p are the
    degrees of freedom; for G clusters also by G/(G - 1), with which intervals are those of G - 1 degrees of freedom.
    Sources: H. White, Econometrica 48 (1980) 817; J. G. MacKinnon and H. White, J. Econometrics 29 (1985) 305 (HC1);
    A. C. Cameron and D. L. Miller, above.

    Raises EvaluationError for a single cluster.
    """
    if known.errors == INFORMATION or not found.information.is_determined.all():
        return found
    value, response, sigma, first = rows.value[0], rows.response[0], rows.sigma[0], rows.first[0]
    scores = known.likelihood(value, response, sigma).first[:, None] * first
    n = len(scores)
    quantile, tail = found.quantile, found.tail
    least_squares = known.family == "gaussian"
    with np.errstate(all="ignore"):
        factor = np.float64(n if known.errors == ROBUST else n - 1) / found.dof[0] if least_squares else 1.0
    if known.errors == CLUSTER:
        codes = np.unique(clusters, return_inverse=True)[1]
        count = int(codes.max()) + 1
        if count < 2:
            raise EvaluationError(
                "there is one cluster of rows, and errors of clusters need several", hint="--errors robust has none"
            )
        scores = np.stack([np.bincount(codes, column, count) for column in scores.T], axis=1)
        factor *= count / (count - 1)
        if known.is_scaled:
            tail = np.array([count - 1])
            quantile = known.quantile(tail)
    inverse = found.information.covariance[0]
    squares = scores.T @ scores * factor
    if rows.priors is not None:
        scale = found.reduced_chi2[0] if known.is_scaled else 1.0
        squares += np.diag(scale / rows.priors[1][0] ** 2)
    covariance = inverse @ squares @ inverse
    return found._replace(covariance=covariance[None], quantile=quantile, tail=tail)


def cluster_warnings(known: Assumptions, clusters: Any, parameters: int) -> list[str]:
    """Warnings of too few clusters."""
    if known.errors != CLUSTER:
        return []
    count = len(np.unique(clusters))
    if count <= parameters:
        return [f"there are {count} clusters for {parameters} parameters: some combination of these has the error 0"]
    return [f"there are only {count} clusters: the standard errors are too small"] if count < _FEW_CLUSTERS else []
