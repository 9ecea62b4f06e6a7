"""Formats warnings as text and as JSON."""

from __future__ import annotations

from typing import Any

from gradcli.errors import caret_text, position
from gradcli.evaluation.diagnose import Warning


def warning_text(warning: Warning, source: str) -> str:
    return f"warning: {warning.message}\n{caret_text(source, warning.span)}"


def warning_json(warning: Warning, source: str) -> dict[str, Any]:
    place = position(source, warning.span)
    return {
        "code": warning.code,
        "phase": warning.phase,
        "operation": warning.operation,
        "line": place.line,
        "column": place.column,
        "message": warning.message,
    } | ({} if warning.digits is None else {"digits": dict(warning.digits)})
