"""From text to tree."""

from __future__ import annotations

from typing import Any, Never

from gradcli.errors import GradcliError, ProgramSyntaxError, Span
from gradcli.language.syntax import build, lalr, lexer, parse_tables, tree


def parse(source: str) -> tree.Module:
    """The tree of a program. Raises ProgramSyntaxError, located in `source`."""
    body = _parse(source, "program", lines=True)
    if not body:
        raise ProgramSyntaxError(
            "the program is empty",
            hint="write an expression, as in log(x**q)",
            span=Span(len(source), len(source)),
            source=source,
        )
    return tree.Module(Span(0, len(source)), source, body)


def parse_expression(source: str) -> tree.Expression:
    """The tree of a single expression. Raises ProgramSyntaxError, located in `source`."""
    expression: tree.Expression = _parse(source, "expression", lines=False)
    return expression


def _parse(source: str, start: str, *, lines: bool) -> Any:
    prepared = parse_tables.load()
    try:
        return lalr.run(prepared, start, lexer.tokens(source, prepared, lines=lines), vars(build))
    except GradcliError as error:
        error.locate(None, source)
        raise
    except lalr.UnexpectedToken as unexpected:
        _explain(source, unexpected)


def _explain(source: str, unexpected: lalr.UnexpectedToken) -> Never:
    # Only a wrong program pays for the import.
    from gradcli.language.syntax.mistakes import explain

    error = explain(source, unexpected)
    error.locate(None, source)
    raise error from None
