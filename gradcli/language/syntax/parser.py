"""From text to tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcli.errors import GradcliError, ProgramSyntaxError, Span
from gradcli.language.syntax import (
    build_expressions,
    build_statements,
    lalr,
    layout,
    lexer,
    parse_tables,
    products,
    soft_words,
    tree,
)
from gradcli.language.syntax.readings import Readings

# What the rules of the grammar make, by their names.
ACTIONS = {**vars(build_expressions), **vars(build_statements)}


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
    return tree.Module(Span(0, len(source)), source, (*body, *_call_of_the_last(body)))


def _call_of_the_last(body: tuple[tree.Statement, ...]) -> tuple[tree.Statement, ...]:
    """A file with a `def` at its end that calls nothing means the call of that function by its parameters' names."""
    last = body[-1]
    if not (isinstance(last, tree.Define) and isinstance(last.body, tree.Block)):
        return ()
    if any(isinstance(s, tree.Evaluate) and not isinstance(s.value, tree.String) for s in body):
        return ()
    given = tuple(tree.Keyword(p.span, p.name, tree.Input(p.span, p.name, p.default)) for p in last.parameters)
    call = tree.Call(last.name_span, last.name, last.name_span, None, (), given, "")
    return (tree.Evaluate(last.name_span, call),)


def parse_expression(source: str) -> tree.Expression:
    """The tree of a single expression. Raises ProgramSyntaxError, located in `source`."""
    expression: tree.Expression = _parse(source, "expression", lines=False)
    return expression


def _parse(source: str, start: str, *, lines: bool) -> Any:
    try:
        return _read(source, start, lines=lines)
    except GradcliError as found:
        error: GradcliError = found
    except Readings as readings:
        unclear = readings.error(source)
        unclear.locate(None, source)
        raise unclear from None
    except lalr.UnexpectedToken as unexpected:
        error = _explained(source, unexpected)
    error.locate(None, source)
    _propose(error, source, start, lines=lines)
    raise error from None


def _read(source: str, start: str, *, lines: bool) -> Any:
    prepared = parse_tables.load()
    lexer.check_text(source)
    return lalr.run(prepared, start, tokens(source, prepared, lines=lines), ACTIONS)


def tokens(source: str, prepared: parse_tables.Tables, *, lines: bool) -> Iterator[lexer.Token]:
    """The tokens that the grammar is written over, then an END."""
    words = soft_words.told_apart(lexer.scan(source, prepared))
    laid_out = layout.laid_out(products.with_products(words, source), source, lines=lines)
    if not any(word in source for word in ("import", *lexer.PREFIXES)):
        return laid_out
    # Loaded by programs that may have prefixes.
    from gradcli.language.syntax.libraries import named

    return named(laid_out)


def _explained(source: str, unexpected: lalr.UnexpectedToken) -> GradcliError:
    # Only a wrong program pays for the import.
    from gradcli.language.syntax.mistakes import explain

    return explain(source, unexpected)


def _propose(error: GradcliError, source: str, start: str, *, lines: bool) -> None:
    """Have the hint of an error say what to write, where that is a notation that is known."""
    from gradcli.language.syntax.notations import proposal

    def is_read(text: str, place: int) -> bool:
        try:
            _read(text, start, lines=lines)
        except GradcliError as stopped:
            return stopped.span is not None and stopped.span.start > place
        except Readings:
            return False
        except lalr.UnexpectedToken as stopped:
            return stopped.token.start_pos > place
        return True

    if isinstance(error, ProgramSyntaxError) and error.span is not None:
        written = proposal(source, error.span.start, is_read)
        if written is not None:
            transposed = ".T" in written and ".T" not in source
            error.hint = f"write {written}" + " for the transpose, diff(y, x) for a derivative" * transposed
