"""The tables that a fit is printed as; its class, whose method calls these, is not imported here."""

from __future__ import annotations

from typing import Any

from gradcli.io.text_tables import Table, members, number_text

# The most parameters whose correlations, and whose estimates, a report on one screen shows.
_MOST_CORRELATED, _MOST_ESTIMATES = 5, 12


def tables(fit: Any, level: float) -> list[Table]:
    """Tables of the estimates, of their correlations where there are several, and of the fit as a whole."""
    ends = f"{100 * level:.15g} % from"
    correlations = [_correlations(fit)] if len(fit.estimates) > 1 else []
    further = [*_contours(fit, level), *_resampled(fit, ends), *_cross_validation(fit), *_comparison(fit)]
    own = [_estimates(fit, ends), *_random(fit, ends), *_responses(fit), _derived(fit, ends)]
    return [*own, *further, *correlations, _whole(fit)]


def brief(fit: Any) -> list[Table]:
    """The same on one screen: without the correlations of many parameters, and without what is seldom asked for."""
    estimates = _estimates(fit, "from")
    if len(estimates.rows) > _MOST_ESTIMATES:
        more = f"{len(estimates.rows) - _MOST_ESTIMATES:,} more"
        estimates = estimates._replace(rows=[*estimates.rows[:_MOST_ESTIMATES], ("…", more, "", "", "", "", "")])
    correlations = [_correlations(fit)] if 1 < len(fit.estimates) <= _MOST_CORRELATED else []
    whole = {
        "rows": f"{fit.n if fit.rows is None else fit.rows:,}, with {_count(fit.dof)} degrees of freedom",
        "residual standard deviation": _six(fit.s) if fit.s == fit.s else None,
        "reduced chi-square": _six(fit.reduced_chi2) if fit.reduced_chi2 == fit.reduced_chi2 else None,
        "R²": _six(fit.r2) if fit.r2 == fit.r2 else None,
        "AIC": _six(fit.aic) if fit.aic == fit.aic else None,
        "ended": fit.message,
        "warning": "; ".join(fit.warnings) or None,
    }
    own = [estimates, *_random(fit, "from"), *_responses(fit), _derived(fit, "from")]
    return [*own, *correlations, members(whole)]


def _random(fit: Any, level: str) -> list[Table]:
    """Tables of the standard deviations of random effects, with that of the residuals, and of their correlations."""
    told = fit.random
    if told is None:
        return []
    every = [(name, group, own) for group, each in told.groups.items() for name, own in each.deviations.items()]
    every += [] if told.residual is None else [("residual", "", told.residual)]
    pairs = [
        (*pair.split(",", 1), group, own)
        for group, each in told.groups.items()
        for pair, own in each.correlations.items()
    ]
    return [
        Table(
            ("random effect", "by", "standard deviation", level, "to"),
            [(name, group, *map(_six, own)) for name, group, own in every],
        ),
        Table(
            ("random effect", "and", "by", "correlation", level, "to"),
            [(one, other, group, *(_digits(n, 3) for n in own)) for one, other, group, own in pairs],
        ),
    ]


def _responses(fit: Any) -> list[Table]:
    """The table of how well each of several responses is fitted."""
    if fit.responses is None:
        return []
    rows = [(name, f"{e.n}", *map(_six, (e.rss, e.s, e.r2))) for name, e in fit.responses.items()]
    return [Table(("response", "rows", "sum of squares", "standard deviation", "R²"), rows)]


def _contours(fit: Any, level: float) -> list[Table]:
    """Tables of the points of confidence regions."""
    title = f"{100 * level:.15g} % region of"
    return [
        Table((title, *pair.split(",")), [("", _six(x), _six(y)) for x, y in told.points])
        for pair, told in (fit.contours or {}).items()
    ]


def _resampled(fit: Any, level: str) -> list[Table]:
    """Tables of the estimates from fits of other rows."""
    found = []
    for method, told in (("bootstrap", fit.bootstrap), ("jackknife", fit.jackknife)):
        if told is not None:
            every = {**told.estimates, **(told.derived or {})}
            rows = [(name, *map(_six, (e.bias, e.error, e.low, e.high))) for name, e in every.items()]
            found.append(Table((method, "bias", "error", level, "to"), rows))
    return found


def _cross_validation(fit: Any) -> list[Table]:
    told = fit.cross_validation
    if told is None:
        return []
    numbers = {"root mean square error": told.rmse, "mean absolute error": told.mae, "R²": told.r2}
    rows = [(name, _six(number)) for name, number in numbers.items()]
    return [Table((f"predicted in {told.folds:,} parts", ""), rows)]


def _comparison(fit: Any) -> list[Table]:
    """Tables of the criteria of two models, and of the tests between them."""
    told = fit.comparison
    if told is None:
        return []
    numbers = {
        "parameters": "parameters",
        "degrees of freedom": "dof",
        "residual sum of squares": "rss",
        "log-likelihood": "loglik",
        "AIC": "aic",
        "AICc": "aicc",
        "BIC": "bic",
    }
    values = ((title, getattr(told.model, key), getattr(told.against, key)) for title, key in numbers.items())
    rows = [(title, _six(own), _six(other)) for title, own, other in values if own == own or other == other]
    tests = [
        (name, _six(test.value), ", ".join(map(str, test.dof)), _digits(test.p, 4))
        for name, test in (("F", told.f), ("likelihood ratio", told.likelihood_ratio))
        if test is not None
    ]
    return [
        Table(("comparison", "this model", "against"), rows),
        Table(("test", "statistic", "degrees of freedom", "p"), tests),
        _vuong(told.vuong),
    ]


def _vuong(told: Any) -> Table:
    """The table of Vuong's test; one without rows where there is none."""
    titles = {"raw": "as it is", "aic_corrected": "corrected as AIC", "bic_corrected": "corrected as BIC"}
    rows = [] if told is None else [(title, getattr(told, key)) for key, title in titles.items()]
    return Table(
        ("Vuong's test, if not nested", "statistic", "p, this model nearer", "p, against nearer"),
        [(title, _six(each.value), _digits(each.p, 4), _digits(each.p_against, 4)) for title, each in rows],
    )


def _derived(fit: Any, level: str) -> Table:
    """The derived quantities; a table without rows where there are none."""
    rows = [(name, _ten(e.value), *map(_six, (e.error, e.low, e.high))) for name, e in (fit.derived or {}).items()]
    return Table(("derived", "value", "error", level, "to"), rows)


def _estimates(fit: Any, level: str) -> Table:
    header = ("parameter", "estimate", "error", "t", "p", level, "to")
    rows = [
        (name, _ten(e.value), "fixed", "", "", "", "")
        if e.fixed
        else (name, _ten(e.value), *map(_six, (e.error, e.t)), _digits(e.p, 3), *map(_six, (e.low, e.high)))
        for name, e in fit.estimates.items()
    ]
    return Table(header, rows)


def _correlations(fit: Any) -> Table:
    names = [*fit.estimates]
    rows = [
        (
            name,
            *(f"{number:.3f}" if number == number else number_text(None) for number in row[: place + 1]),
            *[""] * (len(names) - place - 1),
        )
        for place, (name, row) in enumerate(zip(names, fit.correlation.tolist()))
    ]
    return Table(("correlation", *names), rows)


def _whole(fit: Any) -> Table:
    curvature = fit.curvature
    numbers = {
        "residual sum of squares": fit.rss,
        f"residual standard deviation{' (MAD)' if fit.loss_scale == fit.loss_scale else ''}": fit.s,
        "scale of the loss": fit.loss_scale,
        "reduced chi-square": fit.reduced_chi2,
        "R²": fit.r2,
        "log-likelihood": fit.loglik,
        "AIC": fit.aic,
        "BIC": fit.bic,
        # For least squares the deviance equals the residual sum of squares.
        "deviance": fit.deviance if fit.deviance != fit.rss else None,
        "condition": fit.condition,
        "curvature, intrinsic": None if curvature is None else curvature.intrinsic,
        "curvature, by parameters": None if curvature is None else curvature.parameter,
    }
    return members(
        {
            "rows": fit.n if fit.rows is None else fit.rows,
            "real and imaginary parts": None if fit.rows is None else fit.n,
            "clusters of them": fit.clusters,
            "standard errors": fit.errors,
            "method": None if fit.random is None else fit.random.method,
        }
        | ({} if fit.random is None else {f"levels of {g}": each.levels for g, each in fit.random.groups.items()})
        | {
            "degrees of freedom": _count(fit.dof),
        }
        # Undefined quantities are nan.
        | {name: _six(number) for name, number in numbers.items() if number is not None and number == number}
        | {
            "iterations": fit.iterations,
            "evaluations": fit.evaluations,
            "starts": f"{fit.starts.tried}, of which {fit.starts.agreed} agreed" if fit.starts.tried > 1 else None,
            "ended": fit.message,
        }
    )


def _ten(value: float) -> str:
    """A number to 10 significant digits, which agree on all machines; `--json` prints all digits."""
    return f"{value:.10g}"


def _count(number: float) -> str:
    """A number of degrees of freedom, which is whole unless there are priors."""
    return f"{number:,}" if isinstance(number, int) else _six(number)


def _six(value: float) -> str:
    return _digits(value, 6)


def _digits(value: float, count: int) -> str:
    return f"{value:.{count}g}" if value == value else number_text(None)
