"""Where a program has no finite value: the operation that has none, and its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.errors import EvaluationError
from gradcli.language.syntax.tree import Module
from gradcli.run import session


def nonfinite(program: Module, given: Mapping[str, Any], wrt: Sequence[str], otherwise: str) -> EvaluationError:
    """The error, with the place, that a program has no finite value for what is given, or no such derivative by `wrt`;
    `otherwise` says so where the operation is not known."""
    seen = session.run(session.EvaluationRequest(program, given, wrt)).warnings
    warning = next((w for w in seen if w.code == "nonfinite"), None)
    error = EvaluationError(otherwise if warning is None else warning.message)
    error.locate(None if warning is None else warning.span, program.source)
    return error
