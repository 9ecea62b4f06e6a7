"""Reads a model of differential equations: the equations, and a line `column ~ expression of the states` for each
response."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from gradcli.errors import ProgramSyntaxError, Span, UsageError
from gradcli.language.differential_equations import (
    DifferentialEquations,
    located,
    read_differential_equations,
)
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.language.syntax import tree
from gradcli.models.fitting.densities import HALF_LOG_TWO_PI
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

    def program(self, response: ResponseText) -> tree.Module:
        """The program of the value of a response along a solution."""
        return self.equations.program(response.value)

    @property
    def names(self) -> set[str]:
        """The names that the equations give a value, and those of the states and the time."""
        return {*self.equations.states, self.equations.time, *scope.assigned_names(self.equations.slopes)}


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


def names_along(model: TrajectoryText, value: tree.Expression) -> list[str]:
    """The names that an expression of a solution reads, but not the states, the time and what the equations define."""
    alone = tree.Module(value.span, model.source, (tree.Evaluate(value.span, value),))
    return [name for name in scope.free_names(alone) if name not in model.names]


def log_density(model: TrajectoryText, response: ResponseText, deviation: str, measured: str) -> tree.Module:
    """The program of the log density of a response, whose distribution is normal with a standard deviation that is an
    expression of a solution; `measured` is the name of the column of what was measured."""
    found = model.equations.with_expression(deviation)
    *before, last = found.body
    assert isinstance(last, tree.Evaluate)
    density = _normal_log_density(response.value, last.value, measured)
    return tree.Module(found.span, f"{model.source}\n{deviation}", (*before, tree.Evaluate(density.span, density)))


def _normal_log_density(value: tree.Expression, deviation: tree.Expression, measured: str) -> tree.Expression:
    span = deviation.span

    def of(operator: Literal["-", "*", "/", "**"], left: tree.Expression, right: tree.Expression) -> tree.Expression:
        return tree.Binary(span, operator, span, left, right)

    def number(x: float) -> tree.Expression:
        return tree.Number(span, x, repr(x))

    off = of("/", of("-", tree.Name(span, measured, ""), value), deviation)
    square = of("*", number(0.5), of("**", off, number(2.0)))
    size = tree.Call(span, "log", span, None, (deviation,), (), "")
    return of("-", of("-", number(-HALF_LOG_TWO_PI), size), square)
