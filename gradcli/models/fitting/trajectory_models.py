"""Reads a model of differential equations: the equations, and a line `column ~ expression of the states` for each
response."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gradcli.errors import ProgramSyntaxError, Span, UsageError
from gradcli.language.differential_equations import (
    DifferentialEquations,
    located,
    read_differential_equations,
)
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.fitting.model_texts import TILDE

_STATEMENT = re.compile(r"[^;\n]+")


class ResponseText(NamedTuple):
    """A response: the program of its columns, and the expression of the states that it is compared with."""

    response: tree.Module
    value: tree.Expression

    @property
    def name(self) -> str:
        return self.response.source

    def alone(self, source: str) -> tree.Module:
        """The program of the value without the equations; `source` is the text of the model."""
        return tree.Module(self.value.span, source, (tree.Evaluate(self.value.span, self.value),))


class TrajectoryText(NamedTuple):
    """A model of differential equations with its responses."""

    source: str
    equations: DifferentialEquations
    responses: Sequence[ResponseText]


def read_trajectory_model(source: str) -> TrajectoryText:
    """Read the text of a model.

    Raises ProgramSyntaxError for invalid equations, and UsageError where there is no response.
    """
    lines: list[tuple[int, int, str]] = []
    text = source
    for statement in _STATEMENT.finditer(source):
        tilde = TILDE.search(source, *statement.span())
        if tilde is None:
            continue
        # Blanks in its place keep the places of the equations.
        text = text[: statement.start()] + " " * len(statement[0]) + text[statement.end() :]
        lines.append((statement.start(), tilde.end(), source[statement.start() : tilde.end() - 1].strip()))
        if not source[tilde.end() : statement.end()].strip():
            span = Span(tilde.end() - 1, tilde.end())
            raise ProgramSyntaxError("there is no model behind '~'", source=source, span=span)
    equations = read_differential_equations(text)
    if not lines:
        state = equations.states[0]
        raise UsageError(
            "the equations do not say what the data are of",
            hint=f"add a line for each column that is measured: column ~ {state}",
        )
    responses = []
    for start, behind, response in lines:
        end = next(m.end() for m in _STATEMENT.finditer(source, start))
        with located(source):
            value = equations.expression(" " * behind + source[behind:end])
        responses.append(ResponseText(parse_charged(response), value))
    return TrajectoryText(source, equations, responses)


def names_read(model: TrajectoryText) -> dict[str, Span]:
    """The names that the equations and the expressions of the responses read, but not the states and the time."""
    found = dict(model.equations.parameters)
    defined = scope.assigned_names(model.equations.slopes)
    for response in model.responses:
        for name, read in scope.free_names(response.alone(model.source)).items():
            if name not in (*model.equations.states, model.equations.time) and name not in defined:
                found.setdefault(name, read.span)
    return found
