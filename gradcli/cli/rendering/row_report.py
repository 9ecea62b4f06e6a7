"""The final report of a run over rows: rows that failed, lack numbers, or have results that are not finite."""

from __future__ import annotations

from contextlib import suppress

from gradcli import arrays, limits
from gradcli.cli.process.environment import Environment, is_unicode
from gradcli.cli.rendering.render import warning_text
from gradcli.errors import GradcliError
from gradcli.evaluation import session
from gradcli.io import json_text
from gradcli.rows.failures import Failure, TextForNumber
from gradcli.rows.formats.blocks import MOST_LOST
from gradcli.rows.pipeline import FailurePolicy, ReportedRow, RunReport
from gradcli.rows.plan import Plan
from gradcli.type_hints import Any


def tell(report: RunReport, plan: Plan, policy: FailurePolicy, several: bool, environment: Environment) -> None:
    """Write the warnings to standard error."""
    if report.first_failure is not None:
        environment.write_error(_failed(report, report.first_failure, policy, several))
    if report.rows_in and report.missing == report.rows_in:
        columns = " and ".join(f"'{c}'" for c in plan.needed)
        environment.write_error(
            f"warning: no row has a number in {columns}, and none has results\n"
            "hint: --separator and --decimal-comma say how numbers are written, NAME='column:TITLE' in which column"
        )
    elif report.first_text is not None:
        environment.write_error(_text(report, report.first_text, several))
    if report.lost:
        names = ", ".join(f"'{name}'" for name in report.lost)
        more = " and others" if len(report.lost) == MOST_LOST else ""
        environment.write_error(
            f"warning: the output, with the columns of the first line, leaves out {names}{more}\n"
            "hint: --to jsonl keeps lines whole"
        )
    if report.first_nonfinite is not None:
        text = f"{_rows(report.nonfinite, report.rows_in)} {_have(report.nonfinite)} results that are not finite"
        environment.write_error(_reported(text, report.first_nonfinite, plan, several, "nonfinite"))
    if report.first_inaccurate is not None:
        text = f"{_rows(report.inaccurate, report.rows_in)} {_have(report.inaccurate)} results with few right digits"
        environment.write_error(_reported(text, report.first_inaccurate, plan, several, "inaccurate"))


def tell_json(report: RunReport, several: bool, environment: Environment) -> None:
    """Write the counts to standard error, as one line of JSON."""
    first = report.first_failure
    members: dict[str, Any] = {
        "rows_in": report.rows_in,
        "rows_out": report.rows_out,
        "missing": report.missing,
        "failed": report.failed,
        "nonfinite": report.nonfinite,
        "lost": [*report.lost],
        "first_failure": None if first is None else _json(first, several),
    }
    if (text := report.first_text) is not None:
        shown = {"row": text.row, "table": text.source, "name": text.name, "text": text.text}
        members |= {"texts": report.texts, "first_text": shown}
    if (row := report.first_inaccurate) is not None:
        members |= {"inaccurate": report.inaccurate, "first_inaccurate": {"row": row.row, "table": row.source}}
    environment.write_error(json_text.dumps({"rows": members}, ascii=not is_unicode(environment.stderr)))


def _json(failure: Failure, several: bool) -> dict[str, Any]:
    return {"row": failure.row, "table": failure.source, **failure.error(with_source=several).as_json()}


def _rows(count: int, of: int) -> str:
    return f"{count:,} of {of:,} row{'' if of == 1 else 's'}"


def _failed(report: RunReport, first: Failure, policy: FailurePolicy, several: bool) -> str:
    error = first.error(with_source=several)
    became = "left out" if policy.skip else "without results"
    rows = f"{_rows(report.failed, report.rows_in)} failed and {_are(report.failed)} {became}"
    return error.report(f"warning: {rows}; the first is {error.message}")


def _text(report: RunReport, first: TextForNumber, several: bool) -> str:
    where = first.message(with_source=several)
    return f"warning: {_rows(report.texts, report.rows_in)} {_have(report.texts)} a text for a number and no results; the first is {where}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _reported(text: str, first: ReportedRow, plan: Plan, several: bool, code: str) -> str:
    """A warning about some rows, with what `gradcli eval` says of the first."""
    table = f" of {first.source}" if several else ""
    text = f"warning: {text}; the first is row {first.row}{table}"
    cause = _cause(first, plan, code)
    return text if cause is None else f"{text}: {cause}"


def _cause(odd: ReportedRow, plan: Plan, code: str) -> str | None:
    """The first warning of `gradcli eval` with this code for the row, if there is one."""
    if plan.program is None:
        return None
    # Elements of columns as Python numbers, of which alone it is known whether an operation on them is exact.
    inputs = {name: arrays.asarray(value) for name, value in odd.inputs.items()}
    request = session.EvaluationRequest(plan.program, inputs, plan.wrt, gradient=bool(plan.wrt))
    with (
        suppress(GradcliError),
        arrays.using_dtype(plan.asked.dtype),
        limits.within(plan.asked.max_steps, plan.asked.max_elements),
    ):
        warnings = [w for w in session.run(request).warnings if w.code == code]
        return warning_text(warnings[0], plan.program.source).removeprefix("warning: ") if warnings else None
    return None
