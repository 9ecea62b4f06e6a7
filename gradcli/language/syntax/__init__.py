"""What is the syntax tree of a text? It is frozen, and its nodes have spans.

Begin with `parser`, and with `tree`, the nodes. `parse` gives the tree of a program, `parse_expression` that of a
single expression, and `parse_equations` and `parse_timed_equations` the statements of a text of equations.
`statement_spans` says where the statements of a program stand. All raise `ProgramSyntaxError` and no other error.
"""

from gradcli.language.syntax.layout import MAX_NESTING
from gradcli.language.syntax.lexer import MAX_LENGTH
from gradcli.language.syntax.parser import (
    parse,
    parse_equations,
    parse_expression,
    parse_timed_equations,
    statement_spans,
)

__all__ = [
    "MAX_LENGTH",
    "MAX_NESTING",
    "parse",
    "parse_equations",
    "parse_expression",
    "parse_timed_equations",
    "statement_spans",
]
